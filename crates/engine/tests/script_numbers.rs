//! Numbers of scripts in the kernel are those of the executor: random ones, over random values, taken by the verifier and run at a
//! real call of this process. Wants bpf(2).

use bpf::expr::{Generator, Place};
use bpf::script::{Fault, Places};
use bpf::{Alu, Assembler, Cond, Helper, Reg::*, Size};
use lang::ast::Cast;
use lang::script::ir::{Leaf, Place as Target, Program as Script, Stmt, What};
use lang::script::run::{Datum, Event, Host, Machine, Memory, Output};
use lang::script::time::Wall;
use lang::script::types::{Space, Type};
use lang::script::value::Value;
use lang::script::{Known, Parameters, compile};
use std::os::fd::{AsFd, AsRawFd};
use sys::bpf::link::Link;
use sys::bpf::map::Map;
use sys::bpf::prog::{Program, ProgramKind, ProgramSpec};
use testkit::{Random, skip};

/// The value of the map: the arguments, what was counted, and the numbers.
mod at {
    pub const RUNS: i16 = 0;
    pub const ZEROS: i16 = 8;
    pub const FAULTS: i16 = 16;
    pub const ARGS: i16 = 64;
    pub const NUMBERS: i16 = 128;
    pub const SIZE: u32 = 512;
}

const NUMBERS: usize = 24;
const PROGRAMS: usize = 84;
const ROUNDS: usize = 12;

const CASTS: [Cast; 5] = [
    Cast { size: 1, signed: true },
    Cast { size: 2, signed: false },
    Cast { size: 4, signed: true },
    Cast { size: 4, signed: false },
    Cast { size: 8, signed: false },
];
const TYPES: [&str; 8] = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"];

/// What the addresses lead to that lead to something.
static BYTES: [u8; 32] = *b"\x80\xff0123456789abcdefghijklmnopqr\xfe\x7f";

fn word(r: &mut Random) -> u64 {
    match r.index(4) {
        0 => r.below(5),
        1 => r.of(&[63, 64, 0x7f, 0xffff, 0xffff_ffff, 1 << 63, u64::MAX, 0x8000_0000]),
        2 => r.next() as i32 as u64,
        _ => r.next(),
    }
}

/// A number, fully parenthesised: conditions are numbers too.
fn expression(r: &mut Random, depth: usize) -> String {
    if depth == 0 || r.index(6) == 0 {
        return match r.index(4) {
            0 => word(r).to_string(),
            1 => r.of(&["$v", "$w", "$v++", "--$w"]).into(),
            _ => format!("args.a{}", r.index(4)),
        };
    }
    let a = expression(r, depth - 1);
    match r.index(14) {
        0 => format!("({}{a})", r.of(&["-", "~", "!"])),
        1 => format!("(({}){a})", r.of(&TYPES)),
        2 => format!("((int64)({a} ? {} : {}))", expression(r, depth - 1), expression(r, depth - 1)),
        3 => format!("({a} ?: {})", expression(r, depth - 1)),
        4 => format!("(*uptr(({} *)(args.a4 + {})))", r.of(&TYPES), r.index(24)),
        // Nothing is there.
        5 => format!("(*{}(({} *)(uint8){a}))", r.of(&["uptr", "kptr"]), r.of(&TYPES)),
        _ => {
            let ops =
                ["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "==", "!=", "<", "<=", ">", ">=", "&&", "||"];
            format!("({a} {} {})", r.of(&ops), expression(r, depth - 1))
        }
    }
}

fn compiled(numbers: &[String]) -> Option<Script> {
    let args = CASTS.iter().enumerate().map(|(i, c)| (format!("a{i}"), Type::Int(*c))).collect();
    let world = Known { args: [("tracepoint:t:p".to_owned(), args)].into(), ..Known::default() };
    let prints: String = numbers.iter().map(|n| format!("print((int64){n});\n")).collect();
    let text = format!("tracepoint:t:p {{ $v = (int64)args.a2; $w = args.a4; {prints} }}");
    compile(&text, &Parameters::default(), &world).ok()
}

/// The argument that a leaf is.
fn number_of(leaf: &Leaf) -> usize {
    let What::Arg(name) = &leaf.what else { panic!("{leaf:?}") };
    name[1..].parse().unwrap()
}

struct Happened([u64; 5]);

impl Event for Happened {
    fn leaf(&self, _: usize, leaf: &Leaf) -> Option<Datum<'_>> {
        let i = number_of(leaf);
        Some(Datum::Int(CASTS[i].apply(self.0[i] as i64)))
    }

    fn memory(&self, space: Space, address: u64, length: usize) -> Memory {
        let at = address.wrapping_sub(BYTES.as_ptr() as u64);
        let bytes = usize::try_from(at).ok().and_then(|at| BYTES.get(at..at.checked_add(length)?));
        match bytes {
            Some(b) if space == Space::User => Memory::Bytes(b.to_vec()),
            _ => Memory::Fault,
        }
    }
}

#[derive(Default)]
struct Printed(Vec<u64>);

impl Host for Printed {
    fn output(&mut self, output: Output<'_>) {
        let Output::Value { value: Value::Int(v), .. } = output else { panic!("{output:?}") };
        self.0.push(*v as u64);
    }

    fn wall(&mut self, _: Option<u64>) -> Wall {
        Wall { seconds: 0, nanoseconds: 0, offset: 0 }
    }
}

/// The clause: its variables are on the stack, its numbers go into the map.
fn program(script: &Script, map: &Map) -> bpf::Program {
    const GETPPID: i32 = 110;
    let add = |a: &mut Assembler, at: i16| {
        a.load(Size::D, R1, R6, at);
        a.alu(Alu::Add, R1, 1);
        a.store(Size::D, R6, at, R1);
    };
    let mut a = Assembler::new();
    let out = a.new_label();
    a.load(Size::D, R1, R1, 8);
    a.jump_if(Cond::Ne, R1, GETPPID, out);
    a.call(Helper::GetCurrentPidTgid);
    a.alu(Alu::Rsh, R0, 32);
    a.jump_if(Cond::Ne, R0, std::process::id() as i32, out);
    a.map_value(R6, map.as_fd().as_raw_fd(), 0);
    let clause = &script.clauses[0];
    let place = |leaf: &Leaf| {
        let i = number_of(leaf);
        Some((Place::Memory(R6, at::ARGS + 8 * i as i16, Size::D), Some(CASTS[i])))
    };
    let leaves: Vec<_> = clause.leaves.iter().map(place).collect();
    let count = |a: &mut Assembler, fault| add(a, if fault == Fault::BadRead { at::FAULTS } else { at::ZEROS });
    let source = Places { leaves: &leaves, vars: (R10, -16), scratch: (R10, -24), count: &count, zero: None };
    let mut g = Generator { a: &mut a, source: &source, temps: (R10, -216, 24), depth: 0 };
    let mut next = at::NUMBERS;
    for stmt in &clause.body {
        let (e, to) = match stmt {
            Stmt::Set(Target::Var(i), e) => (e, source.var(*i)),
            Stmt::Print(e) => {
                next += 8;
                (e, (R6, next - 8))
            }
            other => panic!("{other:?}"),
        };
        g.int(&e.clone().int()).unwrap();
        g.a.store(Size::D, to.0, to.1, R0);
    }
    add(&mut a, at::RUNS);
    a.bind(out);
    a.mov(R0, 0);
    a.exit();
    a.finish().unwrap()
}

#[test]
fn the_kernel_and_the_executor_agree() {
    let Ok(map) = Map::array("tl_numbers", at::SIZE, 1, 0) else { return skip("root", "bpf(2) needs privilege") };
    if testkit::own_pid_namespace() {
        return skip("root", "in a pid namespace of its own");
    }
    let mut r = Random::new(11);
    let (mut zeros, mut faults) = (0, 0);
    for _ in 0..testkit::rounds(PROGRAMS) {
        let mut numbers = Vec::new();
        while numbers.len() < NUMBERS {
            let number = expression(&mut r, 4);
            numbers.extend(compiled(std::slice::from_ref(&number)).map(|_| number));
        }
        let script = compiled(&numbers).unwrap();
        let code = program(&script, &map);
        let bytes = code.bytes();
        let loaded = Program::load(&ProgramSpec::new(ProgramKind::RawTracepoint, "tl_numbers", &bytes))
            .unwrap_or_else(|e| panic!("{e}\n{code}\n{}", &e.log[e.log.len().saturating_sub(4000)..]));
        let link = Link::raw_tracepoint(&loaded, "sys_enter").unwrap();
        for _ in 0..ROUNDS {
            let mut words = [0; 5].map(|_: u64| word(&mut r));
            words[4] = BYTES.as_ptr() as u64;
            let mut value = vec![0; at::SIZE as usize];
            for (i, w) in words.iter().enumerate() {
                value[at::ARGS as usize + 8 * i..][..8].copy_from_slice(&w.to_le_bytes());
            }
            map.update(&[0; 4], &value, 0).unwrap();
            sys::process::parent();
            map.lookup(&[0; 4], &mut value).unwrap();
            let word = |at: usize| u64::from_le_bytes(value[at..at + 8].try_into().unwrap());
            assert_eq!(word(at::RUNS as usize), 1, "the program did not run to its end, once");
            let mut machine = Machine::new(script.clone(), 1);
            let mut printed = Printed::default();
            machine.run(0, &Happened(words), &mut printed);
            for (i, (text, expected)) in numbers.iter().zip(&printed.0).enumerate() {
                assert_eq!(word(at::NUMBERS as usize + 8 * i), *expected, "{text}\n{words:x?}");
            }
            let counted: u64 = machine.faults().map(|(.., n)| n).sum();
            assert_eq!(word(at::ZEROS as usize), counted, "{words:x?}");
            assert_eq!(word(at::FAULTS as usize), machine.bad_reads(), "{words:x?}");
            (zeros, faults) = (zeros + counted, faults + machine.bad_reads());
        }
        drop(link);
    }
    assert!(zeros > 50 && faults > 50, "{zeros} {faults}");
}
