//! Random clauses over random events: what the program has collected, interpreted, is what the executor has, and what is counted too.

use super::*;
use crate::frame::{Maps, Session};
use crate::interp::Machine;
use crate::probes::check::is_possible;
use crate::probes::fields::{Field, Value, Whose};
use crate::probes::predicates::{Predicates, is_decidable};
use lang::ir::Reader;
use lang::script::ir::{Leaf as Read, Program, What};
use lang::script::maps::Row;
use lang::script::run::{self, Datum, Event, Host, Memory, Output};
use lang::script::time::Wall;
use lang::script::types::Space;
use lang::script::{Known, Parameters, compile};
use std::cell::RefCell;
use testkit::Random;
use testkit::clauses::{ARGS, script, word};

const USER: u64 = 0x7f00_0000_1003;
const COMM_AT: &[u8] = b"a worker";
const NAMES: [&str; 6] = ["pid", "tid", "uid", "gid", "cpu", "nsecs"];
const ZEROS: i32 = 1;
const COUNTERS: i32 = 2;
const PROGRAMS: i32 = 3;

/// Bytes at [`USER`].
fn bytes() -> Vec<u8> {
    (0..40u8).map(|i| i.wrapping_mul(7) ^ 0x81).collect()
}

/// What happened: the arguments as they lie in the context, and the values of [`NAMES`].
#[derive(Debug)]
struct Happened {
    words: Vec<u64>,
    names: [u64; 6],
}

fn arg(name: &str) -> usize {
    ARGS.iter().position(|a| a.0 == name).unwrap()
}

impl Happened {
    fn set(&self, machine: &mut Machine) {
        let [pid, tid, uid, gid, cpu, nsecs] = self.names;
        (machine.pid_tgid, machine.uid_gid) = (pid << 32 | tid, gid << 32 | uid);
        (machine.cpu, machine.time, machine.tick) = (cpu as u32, nsecs, 0);
    }

    fn number(&self, leaf: &Read) -> Option<i64> {
        match &leaf.what {
            What::Arg(name) => {
                let (_, size, signed) = ARGS[arg(name)];
                Some(Cast { size, signed }.apply(self.words[arg(name)] as i64))
            }
            What::Value(name) => Some(self.names[NAMES.iter().position(|n| n == name)?] as i64),
            _ => None,
        }
    }
}

/// What a clause sees of it, and what goes wrong when memory is read that is a value of the event.
struct Seen<'e> {
    event: &'e Happened,
    program: &'e Program,
    clause: usize,
    faults: RefCell<(Vec<Span>, u64)>,
}

impl Event for Seen<'_> {
    fn leaf(&self, _: usize, leaf: &Read) -> Option<Datum<'_>> {
        match &leaf.what {
            What::Value("comm") => Some(Datum::Text(COMM_AT, false)),
            What::Memory(n) => {
                let Ok(v) = self.program.hoisted[*n].expr.clone().int().eval(&mut { self });
                Some(Datum::Int(v))
            }
            _ => self.event.number(leaf).map(Datum::Int),
        }
    }

    fn memory(&self, space: Space, address: u64, length: usize) -> Memory {
        let at = usize::try_from(address.wrapping_sub(USER)).unwrap_or(usize::MAX);
        let user = bytes();
        let found = user.get(at..at.saturating_add(length)).filter(|_| space == Space::User);
        found.map_or(Memory::Fault, |b| Memory::Bytes(b.to_vec()))
    }
}

impl Reader<Box<Expr>, Box<ir::Equal>> for &Seen<'_> {
    type Stop = std::convert::Infallible;

    fn value(&mut self, value: &Box<Expr>) -> Result<i64, Self::Stop> {
        Ok(match &value.kind {
            Kind::Leaf(i) => self.event.number(&self.program.clauses[self.clause].leaves[*i]).expect("a number"),
            Kind::Load(address, space) => {
                let at = address.eval(self)? as u64;
                let size = value.ty.as_int().expect("a number").size;
                match self.memory(*space, at, size.into()) {
                    Memory::Bytes(b) => Scripts::read(&b, &value.ty).int(),
                    _ => {
                        self.faults.borrow_mut().1 += 1;
                        0
                    }
                }
            }
            other => panic!("{other:?}"),
        })
    }

    fn test(&mut self, _: &Box<ir::Equal>) -> Result<bool, Self::Stop> {
        panic!("a string")
    }

    fn by_zero(&mut self, at: Span) {
        self.faults.borrow_mut().0.push(at);
    }
}

/// What a script holds at its end, and what was counted.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    maps: Vec<(String, Vec<Row>)>,
    refused: Vec<(String, u64)>,
    divisions: Vec<(Span, u64)>,
    bad_reads: u64,
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

fn outcome(machine: &run::Machine) -> Outcome {
    let mut all = Outcome::default();
    machine.print_maps(&mut all);
    all.refused = machine.refused().map(|(map, n)| (map.to_owned(), n)).collect();
    all.divisions = machine.faults().map(|(_, at, n)| (at, n)).collect();
    all.bad_reads = machine.bad_reads();
    all
}

/// None: the checker refuses it.
fn compiled(text: &str) -> Option<Program> {
    let args = ARGS.iter().map(|(n, size, signed)| ((*n).to_owned(), Type::int(*size, *signed))).collect();
    let world = Known { args: [("tracepoint:t:p".to_owned(), args)].into(), ..Known::default() };
    compile(text, &Parameters::default(), &world).ok()
}

fn from(leaf: &Read) -> From {
    match &leaf.what {
        What::Arg(name) => From::Field(arg(name)),
        What::Value("comm") => From::Comm,
        What::Value("pid") => From::Pid,
        What::Value("tid") => From::Tid,
        What::Value("uid") => From::Uid,
        What::Value("gid") => From::Gid,
        What::Value("cpu") => From::Cpu,
        What::Value("nsecs") => From::Nsecs,
        What::Memory(n) => From::Memory(*n),
        _ => From::Nothing,
    }
}

fn clauses_of(program: &Program) -> Vec<Clause> {
    let clause = |(number, c): (usize, &ir::Clause)| Clause { number, leaves: c.leaves.iter().map(from).collect() };
    program.clauses.iter().enumerate().map(clause).collect()
}

/// The descriptors of a map of maps, and of the map in it.
fn outer(map: usize) -> i32 {
    10 + 2 * map as i32
}

fn inner(map: usize) -> i32 {
    outer(map) + 1
}

fn plan() -> Plan<'static> {
    let number = |(i, (_, size, signed)): (usize, &(&str, u8, bool))| Field {
        value: Value::Context { off: 8 * i as i16, size: *size, signed: *signed },
        tail: None,
    };
    Plan {
        schema: events::generated::SCHEMAS[0],
        fields: ARGS.iter().enumerate().map(number).collect(),
        whose: Whose::Nobody,
        filter: None,
        by_cookie: false,
        slab: None,
    }
}

/// The program of some of the clauses.
fn generated(program: &Program, clauses: &[Clause], loops: Loops) -> Generated {
    let maps = (0..program.maps.len()).map(|m| Some(outer(m))).collect();
    let maps = Descriptors { maps, zeros: ZEROS, counters: COUNTERS, programs: Some(PROGRAMS) };
    let numbers: Vec<usize> = (0..program.clauses.len()).collect();
    let all = Clauses { script: program, clauses, maps: &maps, faults: &faults(program, &numbers), loops };
    collect(&Maps::default(), &BtfOffsets::default(), &Session::default(), &plan(), &all)
}

/// What the kernel would have, of programs with some of the clauses each: its maps are read once, at the end.
fn collected(program: &Program, programs: &[crate::Program], events: &[Happened]) -> Outcome {
    let mut machine = Machine::new();
    machine.add_user(USER, &bytes());
    let layouts: Vec<_> = program.maps.iter().map(|m| layout(m).unwrap()).collect();
    machine.add_array(ZEROS, 8 * layouts.iter().map(|l| l.1).max().unwrap_or(1), 1);
    let numbers: Vec<usize> = (0..program.clauses.len()).collect();
    let places = faults(program, &numbers);
    machine.add_array(COUNTERS, 8 * (1 + layouts.len() + places.len()), 1);
    for (m, (parts, words)) in layouts.iter().enumerate() {
        match parts.is_empty() {
            true => machine.add_array(inner(m), 8 * words, 1),
            false => {
                let key = parts.iter().map(|p| p.size()).sum();
                machine.add_hash(inner(m), key, 8 * words, program.maps[m].entries as u32);
            }
        }
        machine.add_maps(outer(m), 1);
        assert!(machine.set_map(outer(m), 0, inner(m)));
    }
    machine.comm[..COMM_AT.len()].copy_from_slice(COMM_AT);
    for event in events {
        event.set(&mut machine);
        for code in programs {
            machine.run_words(code, &event.words).unwrap_or_else(|e| panic!("{e}\n{code}"));
        }
    }
    let mut merged = run::Machine::new(program.clone(), 1);
    for (m, (parts, _)) in layouts.iter().enumerate() {
        for raw in machine.keys(inner(m)) {
            let of = if parts.is_empty() { Vec::new() } else { key(parts, &raw) };
            merged.merge(m, &of, &words(&machine.value(inner(m), &raw).unwrap()));
        }
    }
    let counted = words(&machine.value(COUNTERS, &[0; 4]).unwrap());
    let count = |c: Counter| counted[c.word(layouts.len())];
    merged.bad_read(count(Counter::BadReads));
    (0..layouts.len()).for_each(|m| merged.refuse(m, count(Counter::Refused(m))));
    for (nth, (fault, at)) in places.iter().enumerate() {
        merged.fault(*fault, *at, count(Counter::Fault(nth)));
    }
    outcome(&merged)
}

fn executed(program: &Program, events: &[Happened]) -> Outcome {
    let mut machine = run::Machine::new(program.clone(), 1);
    for event in events {
        for clause in 0..program.clauses.len() {
            let seen = Seen { event, program, clause, faults: RefCell::default() };
            machine.run(clause, &seen, &mut Outcome::default());
            let (divisions, reads) = seen.faults.into_inner();
            divisions.iter().for_each(|at| machine.fault(run::Fault::DivisionByZero, *at, 1));
            machine.bad_read(reads);
        }
    }
    outcome(&machine)
}

fn happened(r: &mut Random) -> Happened {
    let mut words: Vec<u64> = ARGS.iter().map(|_| word(r)).collect();
    words[arg("p")] = USER;
    Happened { words, names: std::array::from_fn(|i| if i < 5 { word(r) & 0x7fff_ffff } else { word(r) }) }
}

#[test]
fn code_and_executor_agree() {
    let (mut ran, mut called_back, mut refused, mut divisions, mut bad_reads) = (0, 0, 0, 0, 0);
    let all = testkit::seeded(29, 2000);
    let rounds = all.len();
    for (round, mut r) in all {
        let clauses = 1 + r.index(3);
        let text = script(&mut r, &NAMES, clauses);
        let Some(program) = compiled(&text) else { continue };
        let clauses = clauses_of(&program);
        // One may have too many values.
        if !clauses.iter().all(|c| is_possible(&program, c, true)) {
            continue;
        }
        ran += 1;
        let events: Vec<Happened> = (0..1 + r.index(8)).map(|_| happened(&mut r)).collect();
        let (expected, (first, second)) = (executed(&program, &events), clauses.split_at(r.index(clauses.len())));
        for loops in [Loops::InPlace, Loops::CalledBack] {
            let programs = match [first, second].map(|some| generated(&program, some, loops)) {
                [Ok(one), Ok(other)] => [one, other],
                // Functions leave less of the stack.
                _ if loops == Loops::CalledBack => continue,
                refused => panic!("{refused:?}"),
            };
            if loops == Loops::CalledBack {
                called_back += usize::from(programs.iter().any(|p| p.functions().len() > 1));
            }
            let found = collected(&program, &programs, &events);
            assert_eq!(expected, found, "{round}\n{text}\n{events:x?}\n{}{}", programs[0], programs[1]);
        }
        refused += expected.refused.len();
        divisions += expected.divisions.len();
        bad_reads += usize::from(expected.bad_reads > 0);
    }
    let enough = |n| n > rounds / 40;
    assert!(
        ran > rounds / 10 * 9 && [called_back, refused, divisions, bad_reads].into_iter().all(enough),
        "{ran} {called_back} {refused} {divisions} {bad_reads}"
    );
}

/// An event is wanted where the predicate of a clause holds.
#[test]
fn predicates_and_executor_agree() {
    let (all, mut seen) = (testkit::seeded(31, 1000), [0; 2]);
    let rounds = all.len();
    for (round, mut r) in all {
        let count = 1 + r.index(2);
        let text = script(&mut r, &NAMES[..5], count);
        let Some(program) = compiled(&text) else { continue };
        let clauses = clauses_of(&program);
        if !clauses.iter().all(|c| is_decidable(&program, c)) {
            continue;
        }
        let (maps, offsets, session) = Default::default();
        let plan = plan();
        let code = super::program(&maps, &offsets, &session, |e, out| {
            e.store_slot(slot::CTX, R1);
            Predicates { script: &program, clauses: &clauses }.before(e, &plan, out);
            e.map_value(R1, COUNTERS, 0);
            e.store(Size::D, R1, 0, 1);
        });
        let (code, event) = (code.unwrap(), happened(&mut r));
        let mut machine = Machine::new();
        machine.add_array(COUNTERS, 8, 1);
        event.set(&mut machine);
        machine.run_words(&code, &event.words).unwrap_or_else(|e| panic!("{e}\n{code}"));
        let wanted = machine.value(COUNTERS, &[0; 4]).is_some_and(|v| v[0] == 1);
        let mut executor = run::Machine::new(program.clone(), 1);
        for clause in 0..clauses.len() {
            let seen = Seen { event: &event, program: &program, clause, faults: RefCell::default() };
            executor.run(clause, &seen, &mut Outcome::default());
        }
        assert_eq!(wanted, executor.counts().iter().any(|c| c.rejected == 0), "{round}\n{text}\n{event:x?}\n{code}");
        seen[usize::from(wanted)] += 1;
    }
    assert!(seen.iter().all(|n| *n > rounds / 50), "{seen:?}");
}

#[test]
fn predicates_that_may_be_others_later_are_not_decided() {
    for (predicate, is) in [
        ("args.a > 3", true),
        ("args.a / 2 > pid || !(args.p & 1)", true),
        ("args.a / args.b > 3", false),
        ("nsecs > 3", false),
        ("comm == \"x\"", false),
        ("args.a == 1 && (*uptr((int8 *)args.p)) > 3", false),
        ("@m0 > 3", false),
    ] {
        let program = compiled(&format!("tracepoint:t:p /{predicate}/ {{ @m0 = 1; printf(\"x\"); }}")).unwrap();
        assert_eq!(is_decidable(&program, &clauses_of(&program)[0]), is, "{predicate}");
    }
    let program = compiled("tracepoint:t:p { printf(\"x\"); }").unwrap();
    assert!(!is_decidable(&program, &clauses_of(&program)[0]));
}

/// What the stack has no room for runs elsewhere.
#[test]
fn too_complex_clauses_are_not_the_kernels() {
    let nested =
        |n: usize| (0..n).fold("args.a".to_owned(), |e, _| format!("*uptr((int8 *)(args.p - (args.b ^ {e})))"));
    let mut possible = 0;
    for n in 1..40 {
        let text = format!("tracepoint:t:p /3 < {e}/ {{ @[comm] = sum({e}); }}", e = nested(n));
        let Some(program) = compiled(&text) else { break };
        let clauses = clauses_of(&program);
        if is_possible(&program, &clauses[0], true) {
            (possible, _) = (n, generated(&program, &clauses, Loops::InPlace).unwrap());
        }
    }
    assert!((5..25).contains(&possible), "{possible}");
}

/// Nor are loops that the kernel cannot call back, for which it has eight frames and their stacks.
#[test]
fn loops_are_called_back_as_deep_as_the_kernel_does() {
    let nested = |n: usize, head: &dyn Fn(usize) -> String| {
        let heads: String = (0..n).map(head).collect();
        compiled(&format!("tracepoint:t:p {{ {heads} @n = count(); {} }}", "}".repeat(n))).unwrap()
    };
    let deepest = |head: &dyn Fn(usize) -> String| {
        let all = (1..12).map(|n| {
            let program = nested(n, head);
            let clauses = clauses_of(&program);
            assert!(is_possible(&program, &clauses[0], true) && generated(&program, &clauses, Loops::InPlace).is_ok());
            match generated(&program, &clauses, Loops::CalledBack) {
                Ok(code) => {
                    assert_eq!(code.functions().len(), 1 + n);
                    true
                }
                Err(e) => {
                    assert_eq!(e, crate::AsmError::Generator(filter::Unfit::Depth));
                    false
                }
            }
        });
        all.take_while(|fits| *fits).count()
    };
    // A loop over a range has a variable.
    assert_eq!(deepest(&|_| "while (args.a > 3) { ".into()), 7);
    assert_eq!(deepest(&|n| format!("for ($i{n} : 0..2) {{ ")), 6);
}
