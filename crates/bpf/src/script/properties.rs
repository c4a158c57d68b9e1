//! Random numbers of scripts over random events: the generated code, interpreted, gives what the executor gives, and counts the same.

use super::*;
use crate::interp::{Access, Machine};
use lang::script::ir::{Program, Stmt, What};
use lang::script::run::{self, Datum, Event, Host, Memory, Output};
use lang::script::time::Wall;
use lang::script::types::Type;
use lang::script::value::Value;
use lang::script::{Known, Parameters, compile};
use proptest::prelude::*;
use testkit::clauses::ARGS;

const USER: u64 = 0x7f00_0000_1003;
const PID: u32 = 4711;

/// Bytes at [`USER`], and others in the kernel.
fn bytes() -> [Vec<u8>; 2] {
    [(0..40u8).map(|i| i.wrapping_mul(7) ^ 0x81).collect(), (0..40u8).map(|i| i.wrapping_mul(91)).collect()]
}

fn arg(name: &str) -> (usize, Cast) {
    let i = ARGS.iter().position(|a| a.0 == name).unwrap();
    (i, Cast { size: ARGS[i].1, signed: ARGS[i].2 })
}

/// What happened: the arguments as they lie in registers, whatever is above their types.
struct Happened {
    words: Vec<u64>,
    kernel: u64,
}

impl Event for Happened {
    fn leaf(&self, _: usize, leaf: &ir::Leaf) -> Option<Datum<'_>> {
        match &leaf.what {
            What::Arg(name) => {
                let (i, cast) = arg(name);
                Some(Datum::Int(cast.apply(self.words[i] as i64)))
            }
            What::Value("pid") => Some(Datum::Int(PID.into())),
            _ => None,
        }
    }

    fn memory(&self, space: Space, address: u64, length: usize) -> Memory {
        let [user, kernel] = bytes();
        let (start, bytes) = if space == Space::User { (USER, user) } else { (self.kernel, kernel) };
        let at = usize::try_from(address.wrapping_sub(start)).unwrap_or(usize::MAX);
        bytes.get(at..at.saturating_add(length)).map_or(Memory::Fault, |b| Memory::Bytes(b.to_vec()))
    }
}

#[derive(Default)]
struct Printed(Option<i64>);

impl Host for Printed {
    fn output(&mut self, output: Output<'_>) {
        if let Output::Value { value: Value::Int(v), .. } = output {
            self.0 = Some(*v);
        }
    }

    fn wall(&mut self, _: Option<u64>) -> Wall {
        Wall { seconds: 0, nanoseconds: 0, offset: 0 }
    }
}

/// One number of a value and of how often something was wrong.
fn folded(value: i64, zeros: u64, faults: u64) -> u64 {
    (value as u64).wrapping_mul(1_000_003).wrapping_add(zeros * 1009).wrapping_add(faults)
}

fn evaluated(program: &Program, event: &Happened) -> u64 {
    let mut machine = run::Machine::new(program.clone(), 1);
    let mut printed = Printed::default();
    machine.run(0, event, &mut printed);
    let zeros = machine.faults().map(|(.., n)| n).sum();
    folded(printed.0.expect("it is printed"), zeros, machine.bad_reads())
}

/// Where things are on the stack, below R10.
const VARS: i16 = -64;
const SCRATCH: i16 = -72;
const ZEROS: i16 = -80;
const FAULTS: i16 = -88;
const TEMPS: i16 = -88 - 8 * 20;

/// Where what a clause has read of memory is, by the number of its leaf.
fn read_at(leaf: usize) -> i16 {
    TEMPS - 8 * (leaf as i16 + 1)
}

/// Assignments to variables and the value that is printed at the end.
fn generated(program: &Program) -> crate::Program {
    let clause = &program.clauses[0];
    let place = |(nth, leaf): (usize, &ir::Leaf)| match &leaf.what {
        What::Arg(name) => {
            let (i, cast) = arg(name);
            Some((Place::Memory(R6, 8 * i as i16, Size::D), Some(cast)))
        }
        What::Memory(_) => Some((Place::Memory(R10, read_at(nth), Size::D), None)),
        _ => Some((Place::High(Helper::GetCurrentPidTgid), None)),
    };
    let leaves: Vec<_> = clause.leaves.iter().enumerate().map(place).collect();
    let count = |a: &mut Assembler, fault: Fault| {
        let at = if fault == Fault::BadRead { FAULTS } else { ZEROS };
        a.load(Size::D, R1, R10, at);
        a.alu(Alu::Add, R1, 1);
        a.store(Size::D, R10, at, R1);
    };
    let source = Places { leaves: &leaves, vars: (R10, VARS), scratch: (R10, SCRATCH), count: &count, zero: None };
    let mut a = Assembler::new();
    a.mov(R6, R1);
    for at in [ZEROS, FAULTS] {
        a.store(Size::D, R10, at, 0);
    }
    let mut g = Generator { a: &mut a, source: &source, temps: (R10, TEMPS, 20), depth: 0 };
    // What is read of memory is read first.
    for (nth, leaf) in clause.leaves.iter().enumerate() {
        if let What::Memory(n) = leaf.what {
            g.int(&program.hoisted[n].expr.clone().int()).unwrap();
            g.a.store(Size::D, R10, read_at(nth), R0);
        }
    }
    for stmt in &clause.body {
        match stmt {
            Stmt::Set(ir::Place::Var(i), e) => {
                g.int(&e.clone().int()).unwrap();
                let (base, off) = source.var(*i);
                g.a.store(Size::D, base, off, R0);
            }
            Stmt::Print(e) => g.int(&e.clone().int()).unwrap(),
            other => panic!("{other:?}"),
        }
    }
    a.constant(R1, 1_000_003);
    a.alu(Alu::Mul, R0, R1);
    a.load(Size::D, R1, R10, ZEROS);
    a.alu(Alu::Mul, R1, 1009);
    a.alu(Alu::Add, R0, R1);
    a.load(Size::D, R1, R10, FAULTS);
    a.alu(Alu::Add, R0, R1);
    a.exit();
    a.finish().unwrap()
}

fn word() -> impl Strategy<Value = u64> {
    let edges = [0, 1, 2, 63, 64, 0x7f, 0x80, 0xffff, 0x8000_0000, 0xffff_ffff, 1 << 63, u64::MAX, (1 << 63) - 1];
    prop_oneof![0u64..5, prop::sample::select(edges.to_vec()), any::<u64>(), any::<i32>().prop_map(|v| v as u64)]
}

fn number() -> impl Strategy<Value = String> {
    let names =
        ["args.a", "args.b", "args.c", "args.d", "args.e", "args.f", "args.g", "args.h", "pid", "$v", "$w", "$w"];
    prop_oneof![
        5 => prop::sample::select(names.to_vec()).prop_map(String::from),
        2 => word().prop_map(|v| v.to_string()),
        1 => (0..70i32).prop_map(|v| format!("(-{v})")),
        1 => prop::sample::select(vec!["$v++", "++$v", "$v--", "--$w"]).prop_map(String::from),
    ]
}

const TYPES: &[&str] = &["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"];

/// A number, fully parenthesised: a condition is one too.
fn expression() -> impl Strategy<Value = String> {
    number().prop_recursive(6, 40, 3, |e| {
        let ops = ["+", "-", "*", "/", "%", "/", "%", "&", "|", "^", "<<", ">>", "==", "!=", "<", "<=", ">", ">="];
        let ops = [&ops[..], &["&&", "||"]].concat();
        let ty = || prop::sample::select(TYPES);
        let load = (ty(), prop::sample::select(vec!["kptr", "uptr"]), 0..44u32, e.clone(), any::<bool>());
        prop_oneof![
            12 => (e.clone(), prop::sample::select(ops), e.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            1 => (prop::sample::select(vec!["-", "~", "!"]), e.clone()).prop_map(|(op, a)| format!("({op}{a})")),
            2 => (ty(), e.clone()).prop_map(|(t, a)| format!("(({t}){a})")),
            1 => (e.clone(), e.clone(), e.clone()).prop_map(|(a, b, c)| format!("((uint64)({a} ? {b} : {c}))")),
            1 => (e.clone(), e).prop_map(|(a, b)| format!("({a} ?: {b})")),
            1 => load.prop_map(|(t, space, at, e, odd)| match odd {
                true => format!("(*{space}(({t} *)({e})))"),
                false => format!("(*{space}(({t} *)(args.p + {at})))"),
            }),
            1 => (prop::sample::select(vec!["x", "y", "z"]), 0..36u32)
                .prop_map(|(m, at)| format!("((struct bits *)(args.p + {at}))->{m}")),
        ]
    })
}

/// None: the checker refuses it, for a type.
fn compiled(expression: &str) -> Option<Program> {
    let args = ARGS.iter().map(|(n, size, signed)| ((*n).to_owned(), Type::int(*size, *signed))).collect();
    let world = Known { args: [("tracepoint:t:p".to_owned(), args)].into(), ..Known::default() };
    let text = format!(
        "struct bits {{ int x : 3; unsigned y : 11; int z : 18; }};
        tracepoint:t:p {{ $v = args.g; $w = args.h; print({expression}); }}"
    );
    compile(&text, &Parameters::default(), &world).ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, max_global_rejects: 40_000, ..ProptestConfig::default() })]
    #[test]
    fn code_and_executor_agree(
        expression in expression(),
        mut words in prop::collection::vec(word(), ARGS.len()),
        at in prop::sample::select(vec![0, 1, 2]),
    ) {
        let mut machine = Machine::new();
        machine.pid_tgid = u64::from(PID) << 32;
        let [user, kernel] = bytes();
        machine.add_user(USER, &user);
        let kernel = machine.add_kernel(&kernel, Access::ReadOnly);
        let last = words.len() - 1;
        words[last] = [USER, kernel, 8][at];
        let Some(program) = compiled(&expression) else {
            prop_assume!(false, "types");
            return Ok(());
        };
        let code = generated(&program);
        let found = machine.run_words(&code, &words).unwrap_or_else(|e| panic!("{e}\n{code}"));
        let expected = evaluated(&program, &Happened { words, kernel });
        prop_assert_eq!(expected, found, "{}\n{}", expression, code);
    }
}

#[test]
fn the_samples_are_of_all_kinds() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut refused, mut zeros, mut faults) = (0, 0, 0);
    for _ in 0..1000 {
        let text = expression().new_tree(&mut runner).unwrap().current();
        let Some(program) = compiled(&text) else {
            refused += 1;
            continue;
        };
        let mut machine = run::Machine::new(program, 1);
        machine.run(0, &Happened { words: vec![0, 0, 0, 0, 0, 0, 0, 0, USER], kernel: 0 }, &mut Printed::default());
        zeros += usize::from(machine.faults().count() > 0);
        faults += usize::from(machine.bad_reads() > 0);
    }
    assert!(refused < 500 && zeros > 50 && faults > 50, "{refused} {zeros} {faults}");
}

#[test]
fn numbers_have_the_code_of_their_types() {
    for (expression, line) in [
        ("args.e < 7", "if w0 s>= 0x7 goto"),
        ("args.f < 7", "if w0 >= 0x7 goto"),
        ("args.h < args.b", "if r0 >= r1 goto"),
        ("args.h / 3", "r0 /= r1"),
        ("args.g / 3", "r2 ^= r1"),
        ("args.h % args.f", "if r1 != 0x0 goto"),
        ("*(int16 *)args.p", "call bpf_probe_read_kernel"),
        ("*uptr((int16 *)args.p)", "call bpf_probe_read_user"),
        ("((struct bits *)args.p)->x", "r0 s>>= 61"),
    ] {
        let text = generated(&compiled(expression).unwrap()).to_string();
        assert!(text.contains(line), "{expression}\n{text}");
    }
    let text = generated(&compiled("args.h / 3").unwrap()).to_string();
    assert!(!text.contains("goto"), "{text}");
}

#[test]
fn what_has_no_code_is_an_error() {
    let places =
        Places { leaves: &[], vars: (R10, -8), scratch: (R10, -16), count: &|_: &mut Assembler, _| {}, zero: None };
    let failing = |expression: &str| {
        let Some(Stmt::Print(e)) = compiled(expression).unwrap().clauses.remove(0).body.pop() else { panic!() };
        let mut a = Assembler::new();
        let mut g = Generator { a: &mut a, source: &places, temps: (R10, -24, 1), depth: 0 };
        g.int(&e.int()).unwrap_err()
    };
    assert_eq!(failing("args.a + 1"), Unfit::Leaf(2));
    assert_eq!(failing("($v + $w) * (($v - $w) * ($v + $w))"), Unfit::Temps);
    for none in ["comm == \"x\"", "rand", "strlen(comm)"] {
        assert_eq!(failing(none), Unfit::Value, "{none}");
    }
}
