//! Any text as a script: parsed, checked, and run over events with values of any kind, or refused with places in that text. What it
//! prints is formatted.
#![no_main]

use lang::script::attach::Point;
use lang::script::hoist::hoist;
use lang::script::ir::Leaf;
use lang::script::run::{Datum, Event, Host, Machine, Memory, Nothing, Output};
use lang::script::time::Wall;
use lang::script::types::{Space, Type};
use lang::script::{Parameters, Program, World, compile};
use libfuzzer_sys::fuzz_target;
use views::script::{Names, Printer, json, text};

/// Every probe has every argument.
struct All;

impl World for All {
    fn args(&self, _: &Point) -> Option<Vec<(String, Type)>> {
        None
    }

    fn late(&self, _: &Point) -> Option<Type> {
        Some(Type::INT)
    }
}

/// Every value is there, and some memory.
struct Hostile;

const BYTES: &[u8] = b"a\0\x1b[31m\xff%s\n12345678901234567890";

impl Event for Hostile {
    fn leaf(&self, index: usize, leaf: &Leaf) -> Option<Datum<'_>> {
        const INTS: [i64; 7] = [-1, 0, 1, 64, i64::MIN, i64::MAX, 0x1000];
        Some(match &leaf.ty {
            Type::Stack(..) | Type::Symbol(_) => Datum::Of(index as u64, 1),
            ty if ty.is_text() => Datum::Text(&BYTES[..index % BYTES.len()], index % 2 == 0),
            ty if ty.as_int().is_some() => Datum::Int(INTS[index % INTS.len()]),
            Type::Pointer(..) => Datum::Int(INTS[index % INTS.len()]),
            _ => Datum::Bytes(&BYTES[..index % BYTES.len()]),
        })
    }

    fn memory(&self, _: Space, address: u64, length: usize) -> Memory {
        match address % 3 {
            0 => Memory::Fault,
            _ => Memory::Bytes(BYTES.iter().cycle().copied().take(length.min(1 << 16)).collect()),
        }
    }

    fn text(&self, _: Space, address: u64, most: usize) -> Memory {
        match address % 3 {
            0 => Memory::Fault,
            _ => Memory::Bytes(BYTES.iter().filter(|b| **b != 0).copied().take(most + 1).collect()),
        }
    }

    fn frames(&self, stack: u64) -> Option<u64> {
        (stack % 2 == 0).then_some(stack)
    }
}

struct NoNames;

impl Names for NoNames {}

struct Prints<'p>(&'p Program, &'p str);

impl Host for Prints<'_> {
    fn output(&mut self, output: Output<'_>) {
        for raw_strings in [false, true] {
            let printer = Printer { program: self.0, source: ("stdin", self.1), names: &NoNames, raw_strings };
            let mut out = Vec::new();
            text::output(&printer, &output, &mut out);
            json::output(&printer, &output, &mut out);
        }
    }

    fn wall(&mut self, nsecs: Option<u64>) -> Wall {
        let n = nsecs.unwrap_or(0);
        Wall { seconds: n as i64, nanoseconds: (n % 1_000_000_000) as u32, offset: n as i32 }
    }
}

fuzz_target!(|text: &str| {
    let params = Parameters { positional: vec!["1".into(), "abc".into()], ..Parameters::default() };
    match compile(text, &params, &All) {
        Ok(mut program) => {
            hoist(&mut program);
            let clauses = program.clauses.len();
            let mut machine = Machine::new(program.clone(), 1);
            machine.limit_rounds(1000);
            let mut host = Prints(&program, text);
            (0..clauses).for_each(|c| machine.run(c, &Hostile, &mut host));
            (0..clauses).for_each(|c| machine.run(c, &Nothing, &mut host));
            machine.print_maps(&mut host);
        }
        Err(messages) => {
            for m in messages {
                assert!(text.get(m.span.start..m.span.end).is_some());
                assert!(!m.show("stdin", text).replace('\n', "").contains(char::is_control));
            }
        }
    }
});
