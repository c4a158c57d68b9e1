//! Any text as a script: parsed, checked, and run over events of which nothing is known, or refused with places in that text.
#![no_main]

use lang::script::run::{Host, Machine, Nothing, Output};
use lang::script::time::Wall;
use lang::script::{Known, Parameters, compile};
use libfuzzer_sys::fuzz_target;

struct Silent;

impl Host for Silent {
    fn output(&mut self, _: Output<'_>) {}

    fn wall(&mut self, _: Option<u64>) -> Wall {
        Wall::default()
    }
}

fuzz_target!(|text: &str| {
    let params = Parameters { positional: vec!["1".into(), "abc".into()], ..Parameters::default() };
    match compile(text, &params, &Known::default()) {
        Ok(program) => {
            let clauses = program.clauses.len();
            let mut machine = Machine::new(program, 1);
            machine.limit_rounds(1000);
            (0..clauses).for_each(|c| machine.run(c, &Nothing, &mut Silent));
            machine.print_maps(&mut Silent);
        }
        Err(messages) => {
            for m in messages {
                assert!(text.get(m.span.start..m.span.end).is_some());
                assert!(!m.show("stdin", text).replace('\n', "").contains(char::is_control));
            }
        }
    }
});
