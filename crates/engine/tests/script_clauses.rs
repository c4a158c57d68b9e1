//! Clauses of scripts in the kernel collect what they do in the interpreter: random ones, taken by the verifier and run as raw tracepoints
//! with random arguments (BPF_PROG_TEST_RUN), their loops made in each way that the kernel has. A property of `bpf` compares the interpreter with the
//! executor. Wants bpf(2).

use bpf::frame::{Generated, Maps, Session};
use bpf::interp;
use bpf::probes::collect::{Clauses, Counter, Descriptors, Loops, collect, key, words};
use bpf::probes::{Field, Plan, Value, Whose};
use bpf::{BtfOffsets, Program as Code};
use engine::request::collecting::{Clause, Collected, From, can_collect, layout};
use lang::script::ir::{Leaf, Program as Script, What};
use lang::script::maps::Row;
use lang::script::run::{Host, MAX_ROUNDS, Machine, Output};
use lang::script::time::Wall;
use lang::script::types::Type;
use lang::script::{Known, Parameters, compile};
use std::os::fd::AsFd;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use sys::bpf::prog::{LoadError, Program, ProgramKind, ProgramSpec, btf_load};
use sys::processors::{self, Processors};
use testkit::clauses::{ARGS, script, word};
use testkit::{Random, skip};

const NAMES: [&str; 4] = ["pid", "tid", "uid", "gid"];
const SCRIPTS: usize = 100;
const CLAUSES: usize = 20;
const ROUNDS: usize = 12;
const THREADS: usize = 8;
/// Of a program in which the verifier has gone too many ways (include/uapi/asm-generic/errno-base.h).
const E2BIG: i32 = 7;

/// What the addresses lead to that lead to something.
static BYTES: [u8; 32] = *b"\x80\xff0123456789abcdefghijklmnopqr\xfe\x7f";

fn arg(name: &str) -> usize {
    ARGS.iter().position(|a| a.0 == name).unwrap()
}

fn from(leaf: &Leaf) -> From {
    match &leaf.what {
        What::Arg(name) => From::Field(arg(name)),
        What::Value("comm") => From::Comm,
        What::Value("pid") => From::Pid,
        What::Value("tid") => From::Tid,
        What::Value("uid") => From::Uid,
        What::Value("gid") => From::Gid,
        What::Memory(n) => From::Memory(*n),
        _ => From::Nothing,
    }
}

/// What a script holds at its end, and what was counted.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    maps: Vec<(String, Vec<Row>)>,
    counted: Vec<(String, u64)>,
    /// Keys for which there was no room.
    refused: u64,
}

impl Outcome {
    /// The first number of a map.
    fn of(&self, map: &str) -> Option<i64> {
        self.maps.iter().find(|(name, _)| name == map).map(|(_, rows)| rows[0].held.read(&Type::INT).int())
    }
}

impl Host for Outcome {
    fn output(&mut self, output: Output<'_>) {
        let Output::Map { map, rows, .. } = output else { panic!("{output:?}") };
        self.maps.push((map.name.clone(), rows.to_vec()));
    }

    fn wall(&mut self, _: Option<u64>) -> Wall {
        Wall { seconds: 0, nanoseconds: 0, offset: 0 }
    }
}

fn outcome(machine: &Machine) -> Outcome {
    let mut all = Outcome::default();
    machine.print_maps(&mut all);
    all.counted = machine.refused().map(|(map, n)| (map.to_owned(), n)).collect();
    all.refused = all.counted.iter().map(|(_, n)| n).sum();
    all.counted.extend(machine.faults().map(|(fault, at, n)| (format!("{fault:?} {at:?}"), n)));
    all.counted.push(("reads".into(), machine.bad_reads()));
    all
}

fn compiled(text: &str) -> Option<Script> {
    let args = ARGS.iter().map(|(n, size, signed)| ((*n).to_owned(), Type::int(*size, *signed))).collect();
    let world = Known { args: [("tracepoint:t:p".to_owned(), args)].into(), ..Known::default() };
    compile(text, &Parameters::default(), &world).ok()
}

/// The clauses that the kernel can have: one may have too many values.
fn clauses_of(script: &Script) -> Vec<Clause> {
    let all = script.clauses.iter().enumerate();
    let clause = all.map(|(number, c)| Clause { number, leaves: c.leaves.iter().map(from).collect() });
    clause.filter(|c| can_collect(script, c)).collect()
}

fn code(collected: &Collected, clauses: &[Clause], loops: Loops) -> Generated {
    let number = |(i, (_, size, signed)): (usize, &(&str, u8, bool))| Field {
        value: Value::Context { off: 8 * i as i16, size: *size, signed: *signed },
        tail: None,
    };
    let plan = Plan {
        schema: events::generated::SCHEMAS[0],
        fields: ARGS.iter().enumerate().map(number).collect(),
        whose: Whose::Nobody,
        filter: None,
        by_cookie: false,
        slab: None,
    };
    let maps = collected.descriptors().unwrap();
    let all = Clauses { script: &collected.script, clauses, maps: &maps, faults: &collected.faults, loops };
    collect(&Maps::default(), &BtfOffsets::default(), &Session::default(), &plan, &all)
}

/// The ways to make loops that the kernel has.
fn ways() -> Vec<Loops> {
    let in_place = sys::bpf::probe::may_goto().then_some(Loops::InPlace);
    in_place.into_iter().chain([Loops::CalledBack]).collect()
}

/// The kernel takes functions that are called back only with their types.
fn take(code: &Code) -> Result<Program, LoadError> {
    let bytes = code.bytes();
    let mut spec = ProgramSpec::new(ProgramKind::RawTracepoint, "tl_clauses", &bytes);
    let (blob, main, callback) = sys::btf::build::program_types();
    let (types, starts) = (btf_load(&blob)?, code.functions());
    let ids = std::iter::once(main).chain(std::iter::repeat(callback));
    let records: Vec<u8> =
        starts.iter().zip(ids).flat_map(|(at, id)| [*at as u32, id]).flat_map(u32::to_ne_bytes).collect();
    if starts.len() > 1 {
        spec.functions = Some((types.as_fd(), &records));
    }
    Program::load(&spec)
}

/// The program in the kernel, and its maps.
struct Loaded {
    collected: Collected,
    clauses: usize,
    code: Code,
    program: Program,
}

/// `whose`: what is said where the verifier refuses it.
fn load(script: Script, loops: Loops, whose: &str) -> Option<Loaded> {
    let clauses = clauses_of(&script);
    let (numbers, maps) = (clauses.iter().map(|c| c.number).collect::<Vec<_>>(), vec![true; script.maps.len()]);
    let collected = Collected::new(Arc::new(script), &numbers, maps);
    collected.make().unwrap();
    let code = match code(&collected, &clauses, loops) {
        Ok(code) => code,
        // Functions leave less of the stack: a session runs its clauses in trapline then.
        Err(_) if loops == Loops::CalledBack => return None,
        Err(e) => panic!("{whose}\n{e}"),
    };
    let program = match take(&code) {
        Ok(program) => program,
        // Too many ways lead through it, mostly through its loops.
        Err(e) if e.error.raw_os_error() == Some(E2BIG) => return None,
        Err(e) => panic!("{whose}\n{e}\n{code}\n{}", &e.log[e.log.len().saturating_sub(4000)..]),
    };
    Some(Loaded { collected, clauses: clauses.len(), code, program })
}

/// The number of a map that is in another one, in the interpreter.
fn inner(map: usize) -> i32 {
    1_000_000 + map as i32
}

impl Loaded {
    /// What the kernel has.
    fn outcome(&self) -> Outcome {
        let script = &self.collected.script;
        let mut machine = Machine::new(script.as_ref().clone(), 1);
        let maps: Vec<usize> = (0..script.maps.len()).collect();
        for (map, taken) in maps.iter().zip(self.collected.take_all(&maps)) {
            taken.unwrap().iter().for_each(|taken| machine.merge(*map, &taken.key, &taken.words));
        }
        let told = self.collected.told();
        machine.bad_read(told.bad_reads);
        told.refused.iter().for_each(|(map, n)| machine.refuse(*map, *n));
        told.faults.iter().for_each(|(fault, at, n)| machine.fault(*fault, *at, *n));
        outcome(&machine)
    }

    /// The interpreter, in which this thread runs.
    fn interpreter(&self) -> interp::Machine {
        let script = &self.collected.script;
        let Descriptors { maps: outer, zeros, counters, .. } = self.collected.descriptors().unwrap();
        let mut machine = interp::Machine::new();
        machine.add_user(BYTES.as_ptr() as u64, &BYTES);
        let layouts: Vec<_> = script.maps.iter().map(|m| layout(m).unwrap()).collect();
        machine.add_array(zeros, 8 * layouts.iter().map(|l| l.1).max().unwrap_or(1), 1);
        machine.add_array(counters, 8 * (1 + layouts.len() + self.collected.faults.len()), 1);
        for (m, (parts, words)) in layouts.iter().enumerate() {
            match parts.is_empty() {
                true => machine.add_array(inner(m), 8 * words, 1),
                false => {
                    let key = parts.iter().map(|p| p.size()).sum();
                    machine.add_hash(inner(m), key, 8 * words, script.maps[m].entries as u32);
                }
            }
            machine.add_maps(outer[m].unwrap(), 1);
            assert!(machine.set_map(outer[m].unwrap(), 0, inner(m)));
        }
        let [pid, tid] = [sys::process::own_pid(), sys::process::own_tid()].map(|id| id as u64);
        let [uid, gid] = [sys::process::ruid(), sys::process::rgid()].map(u64::from);
        (machine.pid_tgid, machine.uid_gid) = (pid << 32 | tid, gid << 32 | uid);
        let comm = std::fs::read("/proc/thread-self/comm").unwrap();
        machine.comm[..comm.len() - 1].copy_from_slice(&comm[..comm.len() - 1]);
        machine
    }

    /// What the interpreter has.
    fn interpreted(&self, machine: &interp::Machine) -> Outcome {
        let script = &self.collected.script;
        let mut merged = Machine::new(script.as_ref().clone(), 1);
        for (m, map) in script.maps.iter().enumerate() {
            let (parts, _) = layout(map).unwrap();
            for raw in machine.keys(inner(m)) {
                let of = if parts.is_empty() { Vec::new() } else { key(&parts, &raw) };
                merged.merge(m, &of, &words(&machine.value(inner(m), &raw).unwrap()));
            }
        }
        let counters = self.collected.descriptors().unwrap().counters;
        let counted = words(&machine.value(counters, &[0; 4]).unwrap());
        let count = |c: Counter| counted[c.word(script.maps.len())];
        merged.bad_read(count(Counter::BadReads));
        (0..script.maps.len()).for_each(|m| merged.refuse(m, count(Counter::Refused(m))));
        for (nth, (fault, at)) in self.collected.faults.iter().enumerate() {
            merged.fault(*fault, *at, count(Counter::Fault(nth)));
        }
        outcome(&merged)
    }
}

fn is_possible() -> bool {
    sys::bpf::map::Map::array("tl_clauses", 8, 1, 0).is_ok() || {
        skip("root", "bpf(2) needs privilege");
        false
    }
}

/// Each processor has maps of its own, which are full by themselves; the interpreter has one. `nth`: of several threads.
fn stay_on_a_processor(nth: usize) {
    let only = |cpu: &u32| Processors::only(*cpu).is_some_and(|one| one.restrict().is_ok());
    let all = processors::online().expect("a list");
    assert!(all.iter().cycle().skip(nth).take(all.len()).any(only));
}

/// A random script, in one of the `ways` to make loops. How many clauses have run; none: the kernel takes no such script. And whether it has functions.
fn agrees(round: &str, r: &mut Random, ways: &[Loops]) -> Option<(usize, bool)> {
    // Many clauses, or few with loops.
    let clauses = r.of(&[CLAUSES, 2]);
    let text = script(r, &NAMES, clauses);
    let program = compiled(&text)?;
    let mut rounds: Vec<Vec<u64>> = Vec::new();
    for _ in 0..ROUNDS {
        let mut words: Vec<u64> = ARGS.iter().map(|_| word(r)).collect();
        words[arg("p")] = BYTES.as_ptr() as u64;
        rounds.push(words);
    }
    let loops = ways[r.index(ways.len())];
    // A map gets memory for an element when it needs it, without waiting: on a machine with little of it, that can fail, and is counted as
    // refused. Then nothing is learned.
    let mut tries = 0..5;
    loop {
        let load = |loops| load(program.clone(), loops, round);
        // As a session does.
        let loaded = load(loops).or_else(|| load(Loops::CalledBack))?;
        let mut machine = loaded.interpreter();
        for words in &rounds {
            assert_eq!(loaded.program.test_run(words).unwrap(), 0);
            machine.run_words(&loaded.code, words).unwrap();
        }
        let (interpreted, kernel) = (loaded.interpreted(&machine), loaded.outcome());
        if kernel.refused > interpreted.refused && tries.next().is_some() {
            continue;
        }
        assert_eq!(interpreted, kernel, "{round}\n{text}");
        return Some((loaded.clauses, loaded.code.functions().len() > 1));
    }
}

#[test]
fn the_kernel_and_the_interpreter_agree() {
    if !is_possible() || testkit::own_pid_namespace() {
        return skip("root", "in a pid namespace of its own");
    }
    let (scripts, ways) = (Mutex::new(testkit::seeded(7, 2 * SCRIPTS)), ways());
    let (clauses, called_back) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = &|nth: usize| {
        stay_on_a_processor(nth);
        loop {
            let Some((round, mut r)) = scripts.lock().ok().and_then(|mut all| all.next()) else { return };
            let Some((ran, has_functions)) = agrees(&round, &mut r, &ways) else { continue };
            clauses.fetch_add(ran, Relaxed);
            called_back.fetch_add(usize::from(has_functions), Relaxed);
        }
    };
    // Maps are read when the kernel has waited for its programs: that can be done for several scripts at once.
    std::thread::scope(|scope| (0..THREADS).for_each(|nth| drop(scope.spawn(move || work(nth)))));
    let (ran, called_back) = (clauses.into_inner(), called_back.into_inner());
    assert!(ran > SCRIPTS / 2 * CLAUSES && called_back > SCRIPTS / 10, "{ran} {called_back}");
}

/// A full map that drops keys has room for each new one, and reports none as refused.
#[test]
fn old_keys_make_room_for_new_ones() {
    if !is_possible() {
        return;
    }
    for kind in ["lruhash", "percpulruhash"] {
        let text = format!("let @m = {kind}(64); tracepoint:t:p {{ @m[args.g] = count(); }}");
        let loaded = load(compiled(&text).expect("it is right"), Loops::default(), &text).expect("it is taken");
        for last in 0..1000 {
            let mut words = [0; ARGS.len()];
            words[arg("g")] = last;
            assert_eq!(loaded.program.test_run(&words).unwrap(), 0);
        }
        let found = loaded.outcome();
        let keys: Vec<i64> = found.maps[0].1.iter().map(|row| row.key[0].int()).collect();
        assert!((1..=64).contains(&keys.len()) && keys.contains(&999) && !keys.contains(&0), "{kind}: {keys:?}");
        assert_eq!(found.refused, 0, "{kind}");
    }
}

/// The verifier does not follow each way through a clause by itself.
#[test]
fn many_branches_are_no_burden() {
    if !is_possible() {
        return;
    }
    let one = |i: u64| format!("if (args.a > {i}) {{ $v = {i}; }} if ($v == {i}) {{ $w++; }} ");
    let ifs: String = (0..60).map(one).collect();
    let text = format!("tracepoint:t:p {{ $v = (int64)1; $w = (int64)2; {ifs} if ($w > 3) {{ @[$v] = sum($w); }} }}");
    for (nth, way) in ways().into_iter().enumerate() {
        let loaded = load(compiled(&text).expect("it is right"), way, &text).expect("it is taken");
        let steps = sys::bpf::info::program(&loaded.program).expect("it is loaded").verified_insns;
        // The first one is the kernel's.
        assert!(nth > 0 || steps < 50_000, "{steps}");
        let mut machine = loaded.interpreter();
        for a in [-3i8, 0, 1, 2, 30, 31, 59, 60, 127] {
            let mut words = [0; ARGS.len()];
            words[arg("a")] = a as u64;
            assert_eq!(loaded.program.test_run(&words).unwrap(), 0);
            machine.run_words(&loaded.code, &words).unwrap();
        }
        let found = loaded.outcome();
        assert_eq!(loaded.interpreted(&machine), found, "{way:?}");
        // Each value that was set was found.
        let sums =
            found.maps[0].1.iter().map(|row| (row.key[0].int(), row.held.read(&Type::INT).int())).collect::<Vec<_>>();
        assert_eq!(sums, [(1, 4), (29, 32), (30, 33), (58, 61), (59, 2 * 62)], "{way:?}");
    }
}

/// Nor each round of a loop, whatever its number, and whatever it changes.
#[test]
fn many_rounds_are_no_burden() {
    if !is_possible() {
        return;
    }
    let nested = "for ($i : 0..20) { for ($j : 0..50) { for ($k : 0..10) { for ($l : 0..100) { if ($l == 3) { continue; } $v += $l * $j; $w++; } } } }";
    // 20 times 10 times the sum of all $l but 3, for each $j.
    let of_nested = 1 + 20 * 10 * (0..50).map(|j| j * (4950 - 3)).sum::<i64>();
    let one = "for ($i : 0..1000000) { if ($i & 1) { $v += $i; } else { $v -= 3; } $w++; }";
    let of_one = 1 + (0..1_000_000).map(|i| if i & 1 == 1 { i } else { -3 }).sum::<i64>();
    let while_ = "$i = (int64)0; while ($i < 1000000) { $i++; $v ^= $i; if ($i == 900001) { break; } $w++; }";
    let of_while = (1..=900_001).fold(1, |v, i| v ^ i);
    let of_each = [(nested, of_nested, 990_000), (one, of_one, 1_000_000), (while_, of_while, 900_000)];
    for ((loops, sum, rounds), way) in of_each.into_iter().flat_map(|of| ways().into_iter().map(move |way| (of, way))) {
        let text = format!("tracepoint:t:p {{ $v = (int64)1; $w = (int64)0; {loops} @v = sum($v); @w = sum($w); }}");
        let loaded = load(compiled(&text).expect("it is right"), way, &text).expect("it is taken");
        let steps = sys::bpf::info::program(&loaded.program).expect("it is loaded").verified_insns;
        assert!(steps < 5_000, "{steps}: {way:?} {text}");
        // More than once: the kernel's own limit is of one run.
        for _ in 0..3 {
            assert_eq!(loaded.program.test_run(&[0; ARGS.len()]).unwrap(), 0);
        }
        let found = loaded.outcome();
        assert_eq!([found.of("v"), found.of("w")], [Some(3 * sum), Some(3 * rounds)], "{way:?} {text}: {found:?}");
    }
}

/// A run with loops that are functions ends with the first round that is too many, in whichever loop that is.
#[test]
fn rounds_are_counted_to_the_last_one() {
    if !is_possible() {
        return;
    }
    let most = i64::from(MAX_ROUNDS);
    for (loops, rounds, too_many) in [
        (format!("for ($i : 0..{most}) {{ $w++; }}"), most, 0),
        (format!("for ($i : 0..{most} + 1) {{ $w++; }}"), most, 1),
        (format!("while (1) {{ if (++$w == {most}) {{ break; }} }}"), most, 0),
        ("while (1) { $w++; }".into(), most, 1),
        (format!("for ($i : 0..2) {{ for ($j : 0..{most} / 2 - 1) {{ $w++; }} }}"), most - 2, 0),
        (format!("for ($i : 0..2) {{ for ($j : 0..{most} / 2) {{ $w++; }} }}"), most - 2, 1),
    ] {
        let text = format!("tracepoint:t:p {{ $w = (int64)0; {loops} @w = sum($w); }}");
        let loaded = load(compiled(&text).expect("it is right"), Loops::CalledBack, &text).expect("it is taken");
        assert_eq!(loaded.program.test_run(&[0; ARGS.len()]).unwrap(), 0);
        let found = loaded.outcome();
        assert_eq!(found.of("w"), (too_many == 0).then_some(rounds), "{text}: {found:?}");
        let faults = found.counted.iter().filter(|c| c.0.starts_with("TooManyRounds"));
        assert_eq!(faults.map(|c| c.1).sum::<u64>(), too_many, "{text}: {found:?}");
    }
}

/// What a function finds on the stack is what the program, another function or an earlier round has left there, whatever the verifier has seen.
#[test]
fn functions_find_what_others_have_left() {
    if !is_possible() {
        return;
    }
    stay_on_a_processor(0);
    for text in [
        "$v = (int64)0; for ($i : 0..4) { if ($v == 0) { @a = count(); } else { @b = sum($v); } $v = 5; }",
        "$v = (int64)0; $w = (int64)0; while ($v < 3) { $v++; if ($w > 1) { @a = sum($w); } $w += 2; } @b = sum($v + $w);",
        "unroll(5) { @a = lhist(args.g > 3 ? (int64)1 : (int64)(-14), -7, 20, 6); @b = hist(args.h ? (int64)9 : (int64)1); }",
        "unroll(2) { @a[comm, args.h & 3, 7] = lhist(args.g > 3 ? (int64)1 : (int64)(-14), -7, 20, 6); }",
        "$v = args.g > 3 ? (int64)1 : (int64)7; $w = (int64)0; for ($i : 0..3) { if ($v == 7) { $w += 10; } else { $w++; } } @a = sum($w);",
        "$w = (int64)2; for ($i : 0..3) { $v = (int64)1; for ($j : 0..2) { if ($v == 1) { $v = 4; } else { $v = 9; } }
            if ($v == 9) { $w += 3; } if ($i == 1 && args.g > 3) { return; } } @a = sum($w); @b = max($w);",
        "$v = (int8)0; for ($i : 0..300) { if ($v++ == 100) { @a = count(); } if ($v < -100) { break; } } @b = sum($v);",
        "unroll(3) { @a[args.g > 3 ? (int64)1 : (int64)2, (args.h ? (int64)3 : (int64)4) > (args.g > 3 ? (int64)4 : (int64)3)] = count(); }",
    ] {
        let text = format!("tracepoint:t:p {{ {text} }}");
        let loaded = load(compiled(&text).expect("it is right"), Loops::CalledBack, &text).expect("it is taken");
        for (g, h) in [(0, 0), (5, 0), (4, 1), (0, 1), (9, 9)] {
            let (mut machine, mut words) = (loaded.interpreter(), [0; ARGS.len()]);
            (words[arg("g")], words[arg("h")]) = (g, h);
            assert_eq!(loaded.program.test_run(&words).unwrap(), 0);
            machine.run_words(&loaded.code, &words).unwrap();
            assert_eq!(loaded.interpreted(&machine), loaded.outcome(), "{text} {g} {h}");
        }
    }
}
