//! The programs of `bpf::syscalls`, interpreted, make the same events as [`engine::capture`]: every call, over random registers,
//! results and memory, of which some is unmapped.

use bpf::Program;
use bpf::btf_offsets::{BtfOffsets, Namespace};
use bpf::capture_row::{self as rows, Limits as RowLimits};
use bpf::interp::{Access, Machine};
use bpf::scratch::{self, FILTERED, SEEN, UNKNOWN};
use bpf::syscalls::{self, Maps, Session, Slots, Source, state};
use engine::capture::{Call, Limits, Memory, tails};
use events::Event;
use events::encode::{self, Fixed};
use events::layout::CAP_START_UNKNOWN;
use events::schema::Schema;
use events::types::{Len, LenFrom, Switch, Type};
use lang::Verdict;
use std::collections::BTreeMap;

const STRING: u32 = 32;
/// Where the mapped memory is; before and behind it there is none.
const BASE: u64 = 0x10_0000;
const LEN: usize = 3 * 4096;
const UNMAPPED: u64 = 0x90_0000;

const TASKS: i32 = 3;
const SCRATCHES: i32 = 4;
const RING: i32 = 5;
const ROWS: i32 = 6;
const SWITCHES: i32 = 7;
const SLOTS: Slots = Slots { map: 8, bits: 3 };

/// Calls whose events the programs make otherwise, by design.
const OTHERWISE: &[(&str, &str)] = &[
    ("process_vm_readv", "the second array is shown as its address"),
    ("process_vm_writev", "the second array is shown as its address"),
    ("rt_sigreturn", "its argument is not a register: the mask is in the frame on the stack"),
];

/// Random inputs of calls.
struct Random(testkit::Random);

impl Random {
    fn new(seed: u64) -> Random {
        Random(testkit::Random::new(seed))
    }
    fn below(&mut self, n: u64) -> u64 {
        self.0.below(n)
    }
    fn pointer(&mut self) -> u64 {
        match self.below(12) {
            0 => UNMAPPED + self.below(4096),
            1 => BASE + LEN as u64 - 1 - self.below(64),
            2 => 0,
            _ => BASE + 8 * self.below(LEN as u64 / 8),
        }
    }
    fn argument(&mut self) -> u64 {
        match self.below(8) {
            0 => self.below(4),
            1 | 2 => self.below(64),
            3 => [u64::MAX, i32::MAX as u64, 4096, 1 << 32, 0xffff_ff9c][self.below(5) as usize],
            _ => self.pointer(),
        }
    }
    fn result(&mut self) -> i64 {
        match self.below(6) {
            0 => [-1, -4, -14, -22, -512, -516][self.below(6) as usize],
            1 => 0,
            2 => 5000,
            _ => self.below(40) as i64,
        }
    }
    /// Words that are pointers, small numbers, zeros or text.
    fn memory(&mut self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(LEN);
        while bytes.len() < LEN {
            let run = 1 + self.below(5);
            match self.below(4) {
                0 => (0..run).for_each(|_| bytes.extend(self.pointer().to_le_bytes())),
                1 => (0..run).for_each(|_| bytes.extend(self.below(20).to_le_bytes())),
                2 => bytes.extend(vec![0; 8 * run as usize]),
                _ => bytes.extend((0..8 * run).map(|_| b"abc/\0"[self.below(30).min(4) as usize % 5])),
            }
        }
        bytes.truncate(LEN);
        bytes
    }
}

/// Memory that is read whole or not at all, as the programs' helpers do: an array of which a part is mapped is a fault.
struct User<'a>(&'a [u8]);

impl Memory for User<'_> {
    fn read(&mut self, addr: u64, buf: &mut [u8]) -> usize {
        let from = addr.checked_sub(BASE).map_or(usize::MAX, |at| at as usize);
        let Some(bytes) = self.0.get(from..).and_then(|rest| rest.get(..buf.len())) else { return 0 };
        buf.copy_from_slice(bytes);
        buf.len()
    }
}

/// What the backends that read memory from user space make of a call.
fn captured(schema: &'static Schema, args: &[u64; 6], ret: i64, memory: &[u8]) -> Vec<u8> {
    let layout = events::registry::layout(schema.id).expect("a layout");
    let limits = Limits { string: STRING as usize, text: 0, verbose: false, keep: Default::default() };
    let args = &args[..schema.args.len().min(6)];
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let mem = &mut User(memory);
    let caps = tails(&Call { schema, layout, args, result: None }, mem, limits, 0, &mut before);
    let cap = tails(&Call { schema, layout, args, result: Some(ret) }, mem, limits, caps, &mut after);
    let mut out = Vec::new();
    let fixed = Fixed { cap, ret, tid: 21, pid: 20, cpu_in: 0, cpu_out: 0, ..Fixed::default() };
    encode::fixed(&mut out, schema, layout, &fixed, args);
    [out, before, after].concat()
}

fn switch_ops(s: &'static Schema, nr: u32, limits: RowLimits) -> Vec<([u8; 16], [u8; 32])> {
    let mut ops = Vec::new();
    for (i, a) in s.args.iter().enumerate() {
        let Type::Switch { table, nth, .. } = a.ty else { continue };
        let table: &'static Switch = table;
        let cases = table.cases.iter().map(|c| (c.key, c.types.args));
        for (selector, types) in cases.chain([(u64::MAX, table.default.args)]) {
            let Some((ty, dir)) = types.get(usize::from(nth)).copied().flatten() else { continue };
            let op = |exit| rows::switch_op(s, i as u8, &ty, dir, exit, limits).bytes();
            let value = [op(false), op(true)].concat();
            ops.push((rows::switch_key(nr, i as u8, selector), value.try_into().expect("two ops")));
        }
    }
    ops
}

/// A machine with the maps of one call.
fn machine(schema: &'static Schema, nr: u32, memory: &[u8]) -> Machine {
    let limits = RowLimits { string: STRING, text: 0, verbose: false, keep: Default::default() };
    let mut m = Machine::new();
    m.tick = 0;
    m.pid_tgid = 20 << 32 | 21;
    // task_struct with its ids at 16 and 24, pointers to a signal_struct at 32, a struct pid at 40, another task at 48.
    // A namespace knows them as 8 and 7.
    let mut task = |[tgid, pid]: [u64; 2], signal: u64, id: u32, leader: u64| {
        let id = m.add_kernel(&id.to_le_bytes(), Access::ReadOnly);
        let words = [0, 0, tgid, pid, signal, id, leader, 0];
        m.add_kernel(&words.map(u64::to_le_bytes).concat(), Access::ReadOnly)
    };
    let leader = task([20, 20], 0, 7, 0);
    let signal = task([0, 0], 0, 0, 0);
    m.task = task([20, 21], signal, 8, leader);
    m.add_user(BASE, memory);
    m.add_task_storage(TASKS, state::SIZE as usize);
    m.add_array(SLOTS.map, state::SLOT as usize, SLOTS.entries(1));
    m.add_array(SCRATCHES, scratch::SIZE as usize, 1);
    m.add_ring(RING, 1 << 20);
    m.add_array(ROWS, rows::ROW, nr + 1);
    let ops = switch_ops(schema, nr, limits);
    m.add_hash(SWITCHES, 16, 32, ops.len().max(1) as u32);
    let task = m.task.to_le_bytes();
    assert!(m.set_value(TASKS, &task, &[0; state::SIZE as usize]));
    assert!(m.set_value(ROWS, &nr.to_le_bytes(), &rows::row(schema, true, limits)));
    for (key, value) in ops {
        assert!(m.set_value(SWITCHES, &key, &value));
    }
    m
}

/// The pid namespace, and the filters of calls.
type Given = (Option<Namespace>, Vec<(u32, lang::Filter)>);

/// What the programs make of it.
fn traced(schema: &'static Schema, nr: u32, args: &[u64; 6], ret: i64, memory: &[u8]) -> Vec<u8> {
    let (_, events) = filtered(schema, nr, args, ret, memory, (None, Vec::new()));
    assert_eq!(events.len(), 1, "{} {args:x?} = {ret}", schema.name);
    events.into_iter().next().unwrap_or_default()
}

/// What the machine's structs look like.
fn offsets(namespace: Option<Namespace>) -> BtfOffsets {
    BtfOffsets {
        thread_status: 8,
        task_tgid: 16,
        task_pid: 24,
        task_signal: 32,
        signal_exec: 8,
        namespace,
        ..BtfOffsets::default()
    }
}

/// A session with filters.
fn session(filters: Vec<(u32, lang::Filter)>) -> Session {
    Session { filters, ..Session::default() }
}

/// The maps of [`machine`].
fn maps(nr: u32) -> Maps {
    Maps {
        tasks: TASKS,
        scratch: SCRATCHES,
        shape: scratch::Shape::CALLS,
        rings: vec![RING],
        rows: ROWS,
        row_count: nr as i32 + 1,
        switches: SWITCHES,
        stacks: None,
        slots: None,
    }
}

/// A counter of the machine's only processor.
fn counter(m: &Machine, which: i16) -> u64 {
    let at = scratch::index(0, which);
    let value = m.value(SCRATCHES, &[0; 4]).expect("scratch memory");
    u64::from_le_bytes(std::array::from_fn(|i| value[at + i]))
}

/// A `struct pt_regs` with these in di, si, dx, r10, r8, r9, and the result in ax from the start.
fn registers(args: &[u64; 6], ret: i64) -> [u8; 168] {
    let mut regs = [0; 168];
    for (at, arg) in [112, 104, 96, 56, 72, 64].into_iter().zip(args) {
        regs[at..at + 8].copy_from_slice(&arg.to_le_bytes());
    }
    regs[80..88].copy_from_slice(&ret.to_le_bytes());
    regs
}

/// Runs the programs in a pid namespace, with filters; also returns the machine as it is afterwards.
fn filtered(
    schema: &'static Schema,
    nr: u32,
    args: &[u64; 6],
    ret: i64,
    memory: &[u8],
    (namespace, filters): Given,
) -> (Machine, Vec<Vec<u8>>) {
    let (offsets, session) = (offsets(namespace), session(filters));
    let program = |own: bool| {
        let maps = match own {
            true => Maps { shape: own_rings(), slots: Some(SLOTS), ..maps(nr) },
            false => maps(nr),
        };
        let enter = syscalls::sys_enter(&maps, &offsets, &session, Source::All).expect("a program");
        let exit = syscalls::sys_exit(&maps, &offsets, &session, Source::All).expect("a program");
        (enter, exit)
    };
    let (m, events) = run(schema, args, ret, machine(schema, nr, memory), nr, program(false));
    // The ring that programs write themselves: the same bytes.
    if nr.is_multiple_of(3) {
        let mut own = machine(schema, nr, memory);
        own.add_buffer(SCRATCHES, own_rings());
        let (mut own, _) = run(schema, args, ret, own, nr, program(true));
        assert_eq!(own.drain_buffer(SCRATCHES, own_rings()), events, "{} {args:x?} = {ret}", schema.name);
    }
    (m, events)
}

fn own_rings() -> scratch::Shape {
    scratch::Shape::CALLS.with_ring(1 << 18).expect("a small ring")
}

/// Runs the programs of entry and exit.
fn run(
    schema: &'static Schema,
    args: &[u64; 6],
    ret: i64,
    mut m: Machine,
    nr: u32,
    (enter, exit): (Program, Program),
) -> (Machine, Vec<Vec<u8>>) {
    let regs = m.add_kernel(&registers(args, ret), Access::ReadOnly);
    m.user_registers = regs;
    let run = |m: &mut Machine, p: Program, ctx: [u64; 2]| {
        if let Err(fault) = m.run_words(&p, &ctx) {
            panic!("{} {args:x?} = {ret}: {fault}\n{p}", schema.name);
        }
    };
    run(&mut m, enter, [regs, nr.into()]);
    if ret >= 0 && schema.name.starts_with("execve") {
        // The memory of the program before.
        m.memory.clear_user();
    }
    run(&mut m, exit, [regs, ret as u64]);
    let events = m.drain(RING);
    (m, events)
}

/// Whether both agree on a message: lengths that a kernel takes, and iovecs all of which are mapped.
fn message_agrees(at: u64, memory: &[u8]) -> bool {
    let mut h = [0; 48];
    User(memory).read(at, &mut h);
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|n| h[at + n]));
    let bytes = word(24).min(1024) * 16;
    let mapped = (BASE..BASE + LEN as u64 + 1 - bytes).contains(&word(16));
    mapped && word(8) as u32 <= 128 && word(40) <= 512
}

/// Whether programs and [`engine::capture`] read as much of argument `i`: of address lengths, sets and the like that no
/// kernel takes, they do not.
fn limits_agree(schema: &'static Schema, i: usize, args: &[u64; 6], ret: i64, memory: &[u8]) -> bool {
    let Some((&ty, _)) = schema.resolve(i, &args[..schema.args.len().min(6)]) else { return true };
    let len = match ty {
        Type::SigsetPack => return false,
        // Read one by one there, all at once here: both are right where all are mapped.
        Type::Iov(Len { from: LenFrom::Arg(j), .. }) => {
            let bytes = args[usize::from(j)].min(1024) * 16;
            return (BASE..BASE + LEN as u64 + 1 - bytes).contains(&args[i]);
        }
        // As far as there is room for them.
        Type::Mmsghdr(_) => {
            let asked = if schema.name == "sendmmsg" { args[2] & 0xffff_ffff } else { 0 };
            let all = asked.max(ret.max(0) as u64);
            return all <= 16 && (0..all).all(|n| message_agrees(args[i] + 64 * n, memory));
        }
        Type::Msghdr => return message_agrees(args[i], memory),
        Type::Sockaddr(len) | Type::Sigset(len) | Type::Cpuset(len) | Type::Fdset(len) => len,
        _ => return true,
    };
    let len = match len.from {
        LenFrom::Const(n) => n.into(),
        LenFrom::Arg(j) => args[usize::from(j)],
        LenFrom::Ret => ret.max(0) as u64,
        LenFrom::Deref(j) => {
            let mut b = [0; 4];
            User(memory).read(args[usize::from(j)], &mut b);
            u32::from_le_bytes(b).into()
        }
    };
    len <= 128
}

/// What is different about two events, but for the arguments of which `agree` says no.
fn difference(schema: &'static Schema, want: &[u8], have: &[u8], agree: impl Fn(usize) -> bool) -> Option<String> {
    if want == have {
        return None;
    }
    let (want, have) = match (Event::parse(want), Event::parse(have)) {
        (Ok(want), Ok(have)) => (want, have),
        (want, have) => return Some(format!("malformed: {:?} {:?}", want.err(), have.err())),
    };
    let mut all = Vec::new();
    if (want.ret(), want.args()) != (have.ret(), have.args()) {
        all.push(format!("{:x?} = {}, not {:x?} = {}", have.args(), have.ret(), want.args(), want.ret()));
    }
    for i in 0..schema.args.len().min(6) {
        // An argument that does not exist is shown by nobody; the programs capture it all the same.
        let exists = schema.resolve(i, &want.args()[..schema.args.len()]).is_some();
        if exists && want.cap(i) != have.cap(i) && agree(i) {
            all.push(format!("argument {i} ({}): {:?}, not {:?}", schema.args[i].name, have.cap(i), want.cap(i)));
        }
    }
    let exists = |i: u8| schema.resolve(i.into(), &want.args()[..schema.args.len()]).is_some();
    for t in want.layout.tails.iter().filter(|t| exists(t.arg)) {
        let bytes = |e: &Event<'_>| e.tail(usize::from(t.arg), t.out).map(|t| t.bytes.to_vec());
        let (w, h) = (bytes(&want), bytes(&have));
        if w != h && agree(t.arg.into()) {
            let (w, h) = (w.unwrap_or_default(), h.unwrap_or_default());
            let at = w.iter().zip(&h).position(|(w, h)| w != h).unwrap_or(w.len().min(h.len()));
            let hex = |b: &[u8]| {
                b.iter().skip(at.saturating_sub(4)).take(24).map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ")
            };
            let name = schema.args[usize::from(t.arg)].name;
            let phase = if t.out { "exit" } else { "entry" };
            let (shape, have, want) = (t.shape, hex(&h), hex(&w));
            let lens = format!("{} bytes, not {}", h.len(), w.len());
            all.push(format!("tail of {name} ({shape:?}, {phase}): {lens}; at {at}, and 4 before: {have}, not {want}"));
        }
    }
    (!all.is_empty()).then(|| all.join("\n  "))
}

#[test]
fn the_programs_capture_what_the_other_backends_do() {
    let rounds: u64 = std::env::var("ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    let mut random = Random::new(0x7261_706c_696e_6501);
    let mut different: BTreeMap<&str, (u64, String)> = BTreeMap::new();
    let mut compared = 0;
    for nr in 0..events::generated::X86_64.len() as u32 {
        let Some(schema) = events::registry::by_number(nr.into()) else { continue };
        if OTHERWISE.iter().any(|(name, _)| *name == schema.name) {
            continue;
        }
        for _ in 0..rounds {
            let memory = random.memory();
            let args: [u64; 6] = std::array::from_fn(|_| random.argument());
            let ret = random.result();
            let (want, have) = (captured(schema, &args, ret, &memory), traced(schema, nr, &args, ret, &memory));
            compared += 1;
            let agree = |i| limits_agree(schema, i, &args, ret, &memory);
            if let Some(d) = difference(schema, &want, &have, agree) {
                let entry = different.entry(schema.name).or_insert((0, String::new()));
                entry.0 += 1;
                let text = format!("{args:x?} = {ret}\n  {d}");
                if entry.1.is_empty() || text.len() < entry.1.len() {
                    entry.1 = text;
                }
            }
        }
    }
    assert!(compared > 3000, "{compared}");
    let list: Vec<String> = different.iter().map(|(name, (n, d))| format!("{name} ({n} of {rounds}): {d}")).collect();
    assert!(list.is_empty(), "{} calls differ, of each the shortest case:\n{}", list.len(), list.join("\n"));
}

/// Filters that say something of this event.
fn filters(event: &Event<'_>) -> Vec<String> {
    let general = [
        "pid == 20 && tid == 21",
        "pid == 21",
        "retval < 0",
        "dur >= 0 && retval >= 0",
        "nsecs == 0 && tid == 21",
        "comm == \"\" && uid == 0 && cpu == 0 && gid != 0",
        "retval == -ENOENT || retval > 20",
    ];
    let mut all = general.map(String::from).to_vec();
    for (i, arg) in event.schema.args.iter().enumerate().take(6) {
        let (name, value) = (arg.name, event.arg(i) as i64);
        if matches!(arg.ty, Type::Str(_)) {
            let bytes = event.tail(i, false).or_else(|| event.tail(i, true)).map(|t| t.bytes).unwrap_or_default();
            let exact: String = bytes.iter().take(200).map(|b| format!("\\x{b:02x}")).collect();
            all.push(format!("retval != 7 && args.{name} == \"{exact}\""));
            all.push(format!("args.{name} == \"{exact}\" && retval > 7"));
            all.push(format!("args.{name} != \"{exact}a\""));
            all.push(format!("startswith(args.{name}, \"a\")"));
            all.push(format!("args.{name} == \"\""));
        } else {
            all.push(format!("args.{name} & 1"));
            all.push(format!("args.{name} == {value:#x}"));
            all.push(format!("args.{name} > 3 && args.{name} / 3 != 2"));
        }
    }
    all
}

/// The filters of this call and of some near it, as one program may have them.
fn with_neighbours(text: &str, nr: u32) -> Vec<(u32, lang::Filter)> {
    let parsed = lang::filter::parse(text, &[]).unwrap_or_else(|e| panic!("{}", e.block("", text)));
    let filter = |nr: u32| parsed.check(events::registry::by_number(nr.into())?).ok();
    (nr.saturating_sub(3)..nr + 4).filter_map(|nr| Some((nr, filter(nr)?))).collect()
}

#[test]
fn filters_decide_as_the_evaluator_does() {
    let mut random = Random::new(0x7261_706c_696e_6502);
    let [mut passed, mut rejected] = [0; 2];
    for nr in 0..events::generated::X86_64.len() as u32 {
        let Some(schema) = events::registry::by_number(nr.into()) else { continue };
        let (memory, args, ret) = (random.memory(), std::array::from_fn(|_| random.argument()), random.result());
        let bytes = match filtered(schema, nr, &args, ret, &memory, (None, Vec::new())).1.pop() {
            Some(bytes) if schema.name != "rt_sigreturn" => bytes,
            _ => continue,
        };
        let event = Event::parse(&bytes).unwrap();
        // All about strings, and some of the others.
        for text in filters(&event) {
            if random.below(3) > 0 && !text.contains('"') {
                continue;
            }
            let list = with_neighbours(&text, nr);
            let Some((_, filter)) = list.iter().find(|(n, _)| *n == nr) else { continue };
            let context = lang::Context { comm: Some(b""), uid: Some(0), gid: Some(0), cpu: None };
            let verdict = filter.matches(&event, &context);
            let (m, events) = filtered(schema, nr, &args, ret, &memory, (None, list));
            let about = format!("{} {args:x?} = {ret}: {text}", schema.name);
            assert_eq!(counter(&m, SEEN), 1, "{about}");
            match verdict {
                Verdict::Pass => {
                    assert_eq!(events, std::slice::from_ref(&bytes), "{about}");
                    passed += 1;
                }
                Verdict::Rejected(part) => {
                    assert_eq!(events.len(), 0, "{about}");
                    assert_eq!(counter(&m, FILTERED + 8 * part as i16), 1, "{about}");
                    rejected += 1;
                }
                // Too little of the string is in the event; the programs read what they need.
                Verdict::Unknown(lang::Missing::Text(_)) => {}
                Verdict::Unknown(m) => panic!("{m:?} {about}"),
            }
        }
    }
    assert!(passed > 300 && rejected > 300, "{passed} passed, {rejected} rejected");
}

#[test]
fn filters_know_the_ids_of_the_session_s_namespace() {
    let close = events::registry::by_name("close").unwrap();
    let inner = Some(Namespace { thread_pid: 40, group_leader: 48, number: 0 });
    for (text, namespace, passes) in [
        ("pid == 20 && tid == 21", None, true),
        ("pid == 7 && tid == 8", inner, true),
        ("pid == 7 && tid == 8 && nsecs >= 0", inner, true),
        ("pid == 20", inner, false),
        ("nsecs >= 0 && pid == 20", inner, false),
    ] {
        let list = with_neighbours(text, 3);
        let (_, events) = filtered(close, 3, &[1; 6], 0, &[], (namespace, list));
        assert_eq!(events.len(), usize::from(passes), "{text}");
        if let (Some(bytes), Some(_)) = (events.first(), namespace) {
            let event = Event::parse(bytes).unwrap();
            assert_eq!((event.pid(), event.tid()), (7, 8), "{text}");
        }
    }
}

/// A machine whose task is in a call of close that began at 1000.
fn in_close(flags: i32) -> Machine {
    let mut m = machine(events::registry::by_name("close").unwrap(), 3, &[]);
    m.time = 5000;
    let mut value = vec![0; state::SIZE as usize];
    let mut put = |at: i16, v: u64| value[at as usize..at as usize + 8].copy_from_slice(&v.to_le_bytes());
    put(state::FLAGS, (state::IN_CALL | flags) as u64);
    put(state::START, 1000);
    put(state::NR, 3);
    let task = m.task.to_le_bytes();
    assert!(m.set_value(TASKS, &task, &value));
    m
}

#[test]
fn a_call_whose_start_is_not_known_has_no_duration() {
    const ATTACHED: i32 = state::ATTACHED;
    for (text, flags, passes) in
        [("dur == 4000", 0, true), ("dur >= 0", ATTACHED, false), ("pid == 20", ATTACHED, true)]
    {
        let mut m = in_close(flags);
        let program =
            syscalls::sys_exit(&maps(3), &offsets(None), &session(with_neighbours(text, 3)), Source::All).unwrap();
        m.run_words(&program, &[0, 0]).unwrap_or_else(|e| panic!("{text}: {e}\n{program}"));
        assert_eq!(m.drain(RING).len(), usize::from(passes), "{text}");
        let missing = u64::from(!passes);
        let counters = [SEEN, UNKNOWN, scratch::DROPPED].map(|c| counter(&m, c));
        assert_eq!(counters, [1, missing, 0], "{text}");
        // The next call's start is known.
        let state = m.value(TASKS, &m.task.to_le_bytes()).unwrap();
        assert_eq!(i32::from(state[0]) & (ATTACHED | state::IN_CALL), 0, "{text}");
    }
}

#[test]
fn a_call_that_does_not_return_has_no_result() {
    for (text, events, filtered, unknown) in [
        ("pid == 20", 2, 0, 0),
        ("pid == 21", 1, 1, 0),
        ("pid == 20 || retval == 0", 1, 0, 1),
        ("dur == 4000", 2, 0, 0),
        ("dur != 4000", 1, 1, 0),
    ] {
        let mut m = in_close(0);
        let program = syscalls::exit(&maps(3), &offsets(None), &session(with_neighbours(text, 3))).unwrap();
        let task = m.task;
        m.run_words(&program, &[task]).unwrap_or_else(|e| panic!("{text}: {e}\n{program}"));
        assert_eq!(m.drain(RING).len(), events, "{text}");
        assert_eq!([SEEN, FILTERED, UNKNOWN].map(|c| counter(&m, c)), [2, filtered, unknown], "{text}");
    }
}

/// On a whole machine: what a thread makes of its returns from calls, each a number, a result and whether it was entered; with
/// these flags in its task storage before.
fn returns(flags: i32, calls: &[(u32, i64, bool)]) -> Vec<Vec<u8>> {
    let schema = events::registry::by_name("getppid").expect("a row");
    let nr = schema.x86_64.expect("a number");
    let offsets = BtfOffsets { thread_status: 8, task_signal: 32, signal_exec: 8, ..BtfOffsets::default() };
    let session = Session { system_wide: true, ..Session::default() };
    let maps = Maps {
        tasks: TASKS,
        scratch: SCRATCHES,
        shape: scratch::Shape::CALLS,
        rings: vec![RING],
        rows: ROWS,
        row_count: nr as i32 + 1,
        switches: SWITCHES,
        stacks: None,
        slots: None,
    };
    let mut m = machine(schema, nr, &[]);
    // A start of 0 means that nothing is known.
    (m.time, m.tick) = (1000, 1);
    let mut value = [0; state::SIZE as usize];
    value[..4].copy_from_slice(&flags.to_le_bytes());
    let task = m.task.to_le_bytes();
    assert!(m.set_value(TASKS, &task, &value));
    let enter = syscalls::sys_enter(&maps, &offsets, &session, Source::All).expect("a program");
    let exit = syscalls::sys_exit(&maps, &offsets, &session, Source::All).expect("a program");
    for (nr, ret, entered) in calls {
        let mut regs = [0u8; 168];
        regs[120..124].copy_from_slice(&nr.to_le_bytes());
        regs[80..88].copy_from_slice(&ret.to_le_bytes());
        let regs = m.add_kernel(&regs, Access::ReadOnly);
        if *entered {
            m.run_words(&enter, &[regs, u64::from(*nr)]).expect("a run");
        }
        m.run_words(&exit, &[regs, *ret as u64]).expect("a run");
    }
    m.drain(RING)
}

#[test]
fn the_first_return_of_a_thread_tells_of_a_call_from_before() {
    const GETPPID: u32 = 110;
    const CLONE: u32 = 56;
    let known = |events: Vec<Vec<u8>>| -> Vec<(i64, bool)> {
        let parse =
            |e: &Vec<u8>| Event::parse(e).map(|e| (e.ret(), e.caps() & CAP_START_UNKNOWN == 0)).expect("an event");
        events.iter().map(parse).collect()
    };
    assert_eq!(known(returns(0, &[(GETPPID, 7, false), (GETPPID, 8, true)])), [(7, false), (8, true)]);
    // Later too: a call that was refused before it began has no entry.
    assert_eq!(known(returns(0, &[(GETPPID, 7, true), (GETPPID, 8, false)])), [(7, true), (8, false)]);
    // A child's first return, and then a call.
    assert_eq!(known(returns(0, &[(CLONE, 0, false), (GETPPID, 8, true)])), [(8, true)]);
    for mark in [state::LEFT_OUT, state::OWN] {
        assert_eq!(known(returns(mark, &[(GETPPID, 7, false), (GETPPID, 8, true)])), []);
    }
}

/// `n` messages of struct mmsghdr at the front, each with a name, two iovecs and control bytes behind them.
fn messages(n: u64) -> Vec<u8> {
    let mut memory = vec![0u8; LEN];
    let mut put = |at: u64, bytes: &[u8]| memory[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
    let data = BASE + 64 * n;
    for i in 0..n {
        let iov = BASE + LEN as u64 - 32;
        let header = [data, 6, iov, 1 + i % 2, data + 8, 8 * (i % 3), 0, 40 + 10 * i];
        put(64 * i, &header.map(u64::to_le_bytes).concat());
    }
    put(
        64 * n,
        b"namehere--control--control-bytes-of-a-message and what it says, which is longer than what is wanted of it",
    );
    put(LEN as u64 - 32, &[data + 20, 60, data + 30, 5].map(u64::to_le_bytes).concat());
    memory
}

#[test]
fn arrays_of_messages_are_captured_message_by_message() {
    for (name, nr, n, ret) in [
        ("recvmmsg", 299, 5, 4),
        ("recvmmsg", 299, 5, 0),
        ("recvmmsg", 299, 5, -11),
        ("sendmmsg", 307, 5, 5),
        ("sendmmsg", 307, 5, 1),
    ] {
        let schema = events::registry::by_name(name).expect("a call");
        let (args, memory) = ([3, BASE, n, 0, 0, 0], messages(n));
        let (want, have) = (captured(schema, &args, ret, &memory), traced(schema, nr, &args, ret, &memory));
        assert_eq!(difference(schema, &want, &have, |_| true), None, "{name} = {ret}");
        assert!(ret <= 0 || have.len() > 120 * ret as usize, "{name}: {} bytes", have.len());
    }
    // What there is no room for is cut, behind a whole message.
    let schema = events::registry::by_name("recvmmsg").expect("a call");
    let (args, memory) = ([3, BASE, 100, 0, 0, 0], messages(100));
    let (want, have) = (captured(schema, &args, 100, &memory), traced(schema, 299, &args, 100, &memory));
    let (want, have) = (Event::parse(&want).expect("an event"), Event::parse(&have).expect("an event"));
    let bytes = |e: &Event<'_>| e.tail(1, true).expect("a tail").bytes.to_vec();
    let (w, h) = (bytes(&want), bytes(&have));
    assert_eq!((have.cap(1), u16::from_le_bytes([w[0], w[1]])), (events::event::Cap::Cut, 100));
    assert!(u16::from_le_bytes([h[0], h[1]]) >= 30 && w[2..].starts_with(&h[2..]), "{} bytes", h.len());
}

/// Sets a word that user space has mapped: the switch of the machine's only processor.
fn switch(m: &mut Machine, to: u64) {
    let mut value = m.value(SCRATCHES, &[0; 4]).expect("scratch memory").to_vec();
    let at = scratch::index(0, scratch::SWITCH);
    value[at..at + 8].copy_from_slice(&to.to_le_bytes());
    assert!(m.set_value(SCRATCHES, &[0; 4], &value));
}

#[test]
fn a_session_that_is_stopped_holds_calls_back() {
    use syscalls::session_switch::{NO_UNKNOWN, STOPPED};
    let (offsets, session) = (offsets(None), Session { switch: Some(0), unknown: true, ..Session::default() });
    let exit = syscalls::sys_exit(&maps(3), &offsets, &session, Source::All).unwrap();
    for (flags, word, events) in [
        (0, 0, 1),
        (0, STOPPED, 0),
        (0, NO_UNKNOWN, 1),
        // Calls without a row.
        (state::COMPAT, 0, 1),
        (state::COMPAT, STOPPED, 0),
        (state::COMPAT, NO_UNKNOWN, 0),
        // One that was not wanted when it began.
        (state::UNREAD, 0, 0),
    ] {
        let mut m = in_close(flags);
        switch(&mut m, word);
        m.run_words(&exit, &[0, 0]).unwrap_or_else(|e| panic!("{flags} {word}: {e}\n{exit}"));
        assert_eq!((m.drain(RING).len(), counter(&m, SEEN)), (events, events as u64), "{flags} {word}");
        // The call is over in any case.
        let state = m.value(TASKS, &m.task.to_le_bytes()).unwrap();
        assert_eq!(i32::from(state[0]) & state::IN_CALL, 0);
    }
    // The end of a task is told of, the call that it ends in is not.
    let exit = syscalls::exit(&maps(3), &offsets, &session).unwrap();
    for (word, names) in [(0, &["close", "exit"][..]), (STOPPED, &["exit"][..])] {
        let mut m = in_close(0);
        switch(&mut m, word);
        let task = m.task;
        m.run_words(&exit, &[task]).unwrap_or_else(|e| panic!("{e}\n{exit}"));
        let events = m.drain(RING);
        let found: Vec<&str> = events.iter().map(|e| Event::parse(e).expect("an event").schema.name).collect();
        assert_eq!(found, names);
    }
}

/// The session's switch and what the ops keep in the scratch buffer are words of their own: with every call, so with every op.
#[test]
fn a_session_that_can_be_stopped_records_every_call_as_any_other_does() {
    let mut random = Random::new(0x7261_706c_696e_6503);
    for nr in 0..events::generated::X86_64.len() as u32 {
        let Some(schema) = events::registry::by_number(nr.into()) else { continue };
        for round in 0..4 {
            let (memory, args) = (random.memory(), std::array::from_fn(|_| random.argument()));
            let ret = if round == 0 { 5000 } else { random.result() };
            let want = traced(schema, nr, &args, ret, &memory);
            let (offsets, session) = (offsets(None), Session { switch: Some(0), ..Session::default() });
            let mut m = machine(schema, nr, &memory);
            let regs = m.add_kernel(&registers(&args, ret), Access::ReadOnly);
            let enter = syscalls::sys_enter(&maps(nr), &offsets, &session, Source::All).expect("a program");
            let exit = syscalls::sys_exit(&maps(nr), &offsets, &session, Source::All).expect("a program");
            let becomes_another = ret >= 0 && schema.name.starts_with("execve");
            for word in [0, 0, syscalls::session_switch::STOPPED, 0] {
                switch(&mut m, word);
                let about = format!("{} {args:x?} = {ret}, switch {word}", schema.name);
                m.run_words(&enter, &[regs, nr.into()]).unwrap_or_else(|e| panic!("{about}: {e}\n{enter}"));
                assert_eq!(counter(&m, scratch::SWITCH), word, "{about}");
                if becomes_another {
                    m.memory.clear_user();
                }
                m.run_words(&exit, &[regs, ret as u64]).unwrap_or_else(|e| panic!("{about}: {e}\n{exit}"));
                assert_eq!(counter(&m, scratch::SWITCH), word, "{about}");
                let expected = if word == 0 { std::slice::from_ref(&want) } else { &[] };
                assert_eq!(m.drain(RING), expected, "{about}");
                if becomes_another {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_call_that_became_wanted_too_late_to_be_read_is_not_shown() {
    let limits = RowLimits { string: STRING, text: 0, verbose: false, keep: Default::default() };
    for (name, events) in [("execve", 0), ("close", 1)] {
        let schema = events::registry::by_name(name).expect("a row");
        let nr = schema.x86_64.expect("a number");
        let (offsets, session) = (offsets(None), Session { switch: Some(0), ..Session::default() });
        let mut m = machine(schema, nr, &[0; 64]);
        let regs = m.add_kernel(&[0; 168], Access::ReadOnly);
        assert!(m.set_value(ROWS, &nr.to_le_bytes(), &rows::row(schema, false, limits)));
        let enter = syscalls::sys_enter(&maps(nr), &offsets, &session, Source::All).unwrap();
        let exit = syscalls::sys_exit(&maps(nr), &offsets, &session, Source::All).unwrap();
        let call = |m: &mut Machine| {
            m.run_words(&enter, &[regs, nr.into()]).unwrap_or_else(|e| panic!("{e}\n{enter}"));
            assert!(m.set_value(ROWS, &nr.to_le_bytes(), &rows::row(schema, true, limits)));
            m.run_words(&exit, &[regs, 0]).unwrap_or_else(|e| panic!("{e}\n{exit}"));
            m.drain(RING).len()
        };
        assert_eq!((call(&mut m), call(&mut m)), (events, 1), "{name}");
    }
}
