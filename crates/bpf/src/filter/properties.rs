//! Random filters over random events: the generated code, interpreted, decides as `lang` does, by the same part.

use super::*;
use crate::insn::Size;
use crate::interp::Machine;
use events::encode::{self, Fixed};
use events::generated::{C_OPENAT, C_PWRITE64};
use events::layout::{CAP_NO_RESULT, CAP_START_UNKNOWN, Layout};
use events::types::Type;
use events::{Cap, Event, Schema};
use lang::Verdict;
use proptest::prelude::*;

const UNKNOWN: u64 = 1000;
/// Where the words of the context are, in bytes.
const TIME: i16 = 0;
const START: i16 = 8;
const RETVAL: i16 = 16;
const ARGS: i16 = 24;
const PID: i16 = 72;
const COPY: i16 = 80;
const ADDRESS: u64 = 0x7f00_0000_1003;

const STRINGS: &[&str] = &["", "/etc/passwd", "/etc/passwd2", "/etc/pass", "/etc/", "x", "/e", "0123456789abcde"];

#[derive(Clone)]
struct Case {
    schema: &'static Schema,
    fixed: Fixed,
    uid: u32,
    gid: u32,
    args: [u64; 6],
    comm: String,
    /// None: the memory cannot be read.
    string: Option<String>,
    /// Values are in memory where that is possible, else asked of helpers.
    in_memory: bool,
}

/// Without the schema, which is long.
impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let c = self;
        write!(f, "{} {:?} uid {} gid {} {:x?} ", c.schema.name, c.fixed, c.uid, c.gid, c.args)?;
        write!(f, "{:?} {:?} in memory: {}", c.comm, c.string, c.in_memory)
    }
}

fn word() -> impl Strategy<Value = u64> {
    let edges = [0, 1, 2, 63, 64, 0x7f, 0x80, 0xffff, 0x8000_0000, 0xffff_ffff, 1 << 63, u64::MAX, (1 << 63) - 1];
    prop_oneof![0u64..5, prop::sample::select(edges.to_vec()), any::<u64>(), any::<i32>().prop_map(|v| v as u64)]
}

fn string() -> impl Strategy<Value = String> {
    prop_oneof![4 => prop::sample::select(STRINGS).prop_map(String::from), 1 => "[a-c/]{0,40}"]
}

fn schema() -> impl Strategy<Value = &'static Schema> {
    prop_oneof![Just(&C_OPENAT), Just(&C_PWRITE64)]
}

fn case(schema: &'static Schema) -> impl Strategy<Value = Case> {
    let fixed = (
        word(),
        word(),
        word(),
        0u32..5,
        0u32..5,
        0u16..4,
        prop_oneof![9 => Just(0), 1 => Just(CAP_NO_RESULT), 1 => Just(CAP_START_UNKNOWN)],
    );
    let fixed = fixed.prop_map(|(time, start, ret, tid, pid, cpu, cap)| Fixed {
        time,
        start,
        ret: ret as i64,
        tid,
        pid,
        cpu_in: cpu,
        cpu_out: cpu,
        cap,
        ..Fixed::default()
    });
    let rest = (prop::array::uniform6(word()), string(), prop::option::weighted(0.8, string()), any::<bool>());
    (fixed, 0u32..3, word(), rest).prop_map(move |(fixed, uid, gid, (mut args, comm, string, in_memory))| {
        if schema.id == C_OPENAT.id {
            args[1] = ADDRESS;
        }
        Case { schema, fixed, uid, gid: gid as u32, args, comm, string, in_memory }
    })
}

fn constant() -> impl Strategy<Value = String> {
    prop_oneof![
        word().prop_map(|v| format!("{v}")),
        word().prop_map(|v| format!("{v:#x}")),
        (0..70i32).prop_map(|v| format!("(-{v})")),
        prop::sample::select(vec!["(-ENOENT)", "O_CREAT", "O_RDWR", "SIGKILL", "1ms"]).prop_map(String::from),
    ]
}

fn texts(schema: &'static Schema) -> BoxedStrategy<String> {
    let subjects = if schema.id == C_OPENAT.id { vec!["comm", "args.filename"] } else { vec!["comm"] };
    (prop::sample::select(subjects), prop::sample::select(STRINGS), 0..4, 0..16)
        .prop_map(|(s, c, how, n)| match how {
            0 => format!("({s} == \"{c}\")"),
            1 => format!("(\"{c}\" != str({s}))"),
            2 => format!("startswith({s}, \"{c}\")"),
            _ => format!("(strncmp({s}, \"{c}\", {n}) == 0)"),
        })
        .boxed()
}

fn numbers(schema: &'static Schema) -> BoxedStrategy<String> {
    let mut values = vec!["pid", "tid", "uid", "gid", "cpu", "nsecs", "retval", "dur"];
    values.extend(match schema.id == C_OPENAT.id {
        true => ["args.dfd", "args.flags", "args.mode", "args.flags"],
        false => ["args.fd", "args.buf", "args.count", "args.pos"],
    });
    prop_oneof![2 => prop::sample::select(values).prop_map(String::from), 1 => constant()].boxed()
}

/// A number, fully parenthesised: a condition is one too.
fn expression(schema: &'static Schema) -> impl Strategy<Value = String> {
    let leaf = prop_oneof![4 => numbers(schema), 1 => texts(schema)];
    leaf.prop_recursive(6, 40, 3, |e| {
        let ops = ["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "==", "!=", "<", "<=", ">", ">=", "&&", "||"];
        let casts = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"];
        prop_oneof![
            8 => (e.clone(), prop::sample::select(ops.to_vec()), e.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            1 => (prop::sample::select(vec!["-", "~", "!"]), e.clone()).prop_map(|(op, a)| format!("({op}{a})")),
            1 => (prop::sample::select(casts.to_vec()), e.clone()).prop_map(|(t, a)| format!("(({t}){a})")),
            1 => (e.clone(), e.clone(), e).prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
        ]
    })
}

fn sample() -> impl Strategy<Value = (String, Case)> {
    schema().prop_flat_map(|s| (prop::collection::vec(expression(s), 1..4).prop_map(|p| p.join(" && ")), case(s)))
}

/// The event as a backend writes it.
fn encoded(case: &Case) -> Vec<u8> {
    let layout = Layout::of(case.schema);
    let mut fixed = case.fixed;
    if case.schema.id == C_OPENAT.id {
        fixed.cap |= u16::from(if case.string.is_some() { Cap::Whole } else { Cap::Fault }.bits()) << 2;
    }
    let mut bytes = Vec::new();
    encode::fixed(&mut bytes, case.schema, &layout, &fixed, &case.args);
    for tail in &layout.tails {
        match case.schema.args[usize::from(tail.arg)].ty {
            Type::Str(_) => encode::str_tail(&mut bytes, case.string.as_deref().unwrap_or_default().as_bytes()),
            _ => encode::empty_tail(&mut bytes, tail.shape),
        }
    }
    bytes
}

fn comm(case: &Case) -> [u8; 16] {
    let mut comm = [0; 16];
    let n = case.comm.len().min(15);
    comm[..n].copy_from_slice(&case.comm.as_bytes()[..n]);
    comm
}

fn evaluated(filter: &Filter, case: &Case) -> Verdict {
    let bytes = encoded(case);
    let event = Event::parse(&bytes).unwrap();
    let comm = comm(case);
    let context = lang::Context { comm: Some(&comm), uid: Some(case.uid), gid: Some(case.gid), cpu: None };
    filter.matches(&event, &context)
}

fn places(case: &Case, filter: &Filter) -> Places {
    let memory = |off: i16| Place::Memory(R6, off, Size::D);
    let known = |bit: u16, place: Place| (case.fixed.cap & bit == 0).then_some(place);
    let bytes = if case.in_memory && case.string.is_some() { Bytes::Copy(R6, COPY, None) } else { Bytes::User };
    let scratch = -(room(filter) as i16);
    let mut p = helpers((R10, scratch), (R10, scratch - 96, 12));
    p.nsecs = memory(TIME);
    p.start = known(CAP_START_UNKNOWN, memory(START));
    p.retval = known(CAP_NO_RESULT, memory(RETVAL));
    p.args = (0..6).map(|i| Argument { value: memory(ARGS + 8 * i), bytes }).collect();
    if case.in_memory {
        p.pid = Place::Memory(R6, PID, Size::W);
        p.tid = Place::Memory(R6, PID + 4, Size::W);
    } else {
        p.nsecs = Place::Whole(Helper::KtimeGetNs);
    }
    p
}

fn program(filter: &Filter, places: &Places) -> Result<crate::Program, Unfit> {
    let mut a = Assembler::new();
    let exits = Exits { rejected: filter.parts().iter().map(|_| a.new_label()).collect(), unknown: a.new_label() };
    a.mov(R6, R1);
    emit(&mut a, filter, places, &exits)?;
    a.mov(R0, 0);
    a.exit();
    for (i, label) in exits.rejected.iter().enumerate() {
        a.bind(*label);
        a.mov(R0, 1 + i as i32);
        a.exit();
    }
    a.bind(exits.unknown);
    a.mov(R0, UNKNOWN as i32);
    a.exit();
    Ok(a.finish().unwrap())
}

fn interpreted(program: &crate::Program, case: &Case) -> u64 {
    let mut m = Machine::new();
    (m.time, m.tick, m.cpu) = (case.fixed.time, 0, case.fixed.cpu_in.into());
    m.pid_tgid = u64::from(case.fixed.pid) << 32 | u64::from(case.fixed.tid);
    m.uid_gid = u64::from(case.gid) << 32 | u64::from(case.uid);
    m.comm = comm(case);
    if let Some(s) = &case.string {
        m.add_user(ADDRESS, &[s.as_bytes(), b"\0"].concat());
    }
    let mut ctx = vec![case.fixed.time, case.fixed.start, case.fixed.ret as u64];
    ctx.extend(case.args);
    ctx.push(u64::from(case.fixed.tid) << 32 | u64::from(case.fixed.pid));
    let mut bytes: Vec<u8> = ctx.iter().flat_map(|w| w.to_le_bytes()).collect();
    bytes.extend(case.string.as_deref().unwrap_or_default().as_bytes());
    bytes.resize(usize::try_from(COPY).unwrap() + 272, 0);
    m.run(program, &bytes).unwrap_or_else(|e| panic!("{e}\n{program}"))
}

fn code(v: Verdict) -> u64 {
    match v {
        Verdict::Pass => 0,
        Verdict::Rejected(part) => 1 + part as u64,
        Verdict::Unknown(_) => UNKNOWN,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, max_global_rejects: 40_000, ..ProptestConfig::default() })]
    #[test]
    fn code_and_evaluator_agree((text, case) in sample()) {
        let parsed = lang::filter::parse(&text, &[]).unwrap_or_else(|e| panic!("{}", e.block("test", &text)));
        // Divisions by a constant zero and such.
        let filter = parsed.check(case.schema);
        prop_assume!(!matches!(&filter, Err(e) if e.code == lang::Code::Never), "never");
        let filter = filter.unwrap_or_else(|e| panic!("{}", e.block("test", &text)));
        // It takes no more words than it says.
        let mut places = places(&case, &filter);
        let most = filter.parts().iter().map(|p| words(&p.cond, &|_| 0)).max().unwrap_or(0);
        prop_assume!(most <= places.temps.2);
        places.temps.2 = most;
        let program = program(&filter, &places).unwrap();
        let (expected, found) = (evaluated(&filter, &case), interpreted(&program, &case));
        prop_assert_eq!(code(expected), found, "{:?}\n{}\n{}", expected, text, program);
    }
}

#[test]
fn the_samples_are_of_all_kinds() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen = [0; 3];
    for _ in 0..500 {
        let (text, case) = sample().new_tree(&mut runner).unwrap().current();
        let Ok(filter) = lang::filter::parse(&text, &[]).unwrap().check(case.schema) else { continue };
        if filter.constant().is_none() {
            seen[code(evaluated(&filter, &case)).min(2) as usize] += 1;
        }
    }
    assert!(seen.iter().all(|n| *n > 20), "{seen:?}");
}

fn listing(text: &str) -> String {
    let filter = lang::filter::parse(text, &[]).unwrap().check(&C_OPENAT).unwrap();
    let mut p = helpers((R10, -272), (R10, -304, 4));
    p.retval = Some(Place::Memory(R6, RETVAL, Size::D));
    p.args = (0..4).map(|i| Argument { value: Place::Memory(R6, ARGS + 8 * i, Size::D), bytes: Bytes::User }).collect();
    program(&filter, &p).unwrap().to_string()
}

/// Instructions of the filter, without those of [`program`] around it.
fn length(text: &str) -> usize {
    let lines: Vec<String> = listing(text).lines().map(String::from).collect();
    let exits = lines.iter().position(|l| l.contains("r0 = 0")).unwrap();
    lines[1..exits].iter().filter(|l| !l.trim_start().starts_with(';')).count()
}

#[test]
fn plain_filters_are_a_handful_of_instructions() {
    for (text, n) in [
        ("pid == 4711", 3),
        ("tid == 4711", 3),
        ("args.dfd == 3", 2),
        ("args.dfd == AT_FDCWD", 2),
        ("args.flags & O_CREAT", 3),
        ("!(args.flags & O_CREAT)", 2),
        ("retval < 0", 2),
        ("retval == -ENOENT", 2),
        ("retval < 0 && pid == 1", 5),
    ] {
        assert_eq!(length(text), n, "{text}\n{}", listing(text));
    }
}

#[test]
fn strings_are_read_last() {
    let text = listing(r#"args.filename == "/etc/passwd" && retval < 0"#);
    let (read, result) = (text.find("probe_read_user_str").unwrap(), text.find("s>= 0").unwrap());
    assert!(result < read, "{text}");
}

#[test]
fn what_has_no_place_is_an_error() {
    let filter = |t: &str| lang::filter::parse(t, &[]).unwrap().check(&C_OPENAT).unwrap();
    let p = helpers((R10, -64), (R10, -72, 1));
    let failing = |t: &str| program(&filter(t), &p).unwrap_err();
    assert_eq!(failing("args.flags == 1"), Unfit::Argument(2));
    assert_eq!(failing("((uid + gid) * (uid + gid)) - ((uid + gid) * (uid + gid)) == 1"), Unfit::Temps);
    assert_eq!(missing(&filter("retval == 1"), &p), Some(Missing::Retval));
    for search in ["endswith(comm, \"a\")", "contains(comm, \"a\")", "pid == 1 && glob(comm, \"a\")"] {
        assert_eq!(failing(search), Unfit::Search);
    }
    let mut a = Assembler::new();
    let unknown = a.new_label();
    assert_eq!(emit(&mut a, &filter("pid == 1"), &p, &Exits { rejected: vec![], unknown }), Err(Unfit::Exits));
}
