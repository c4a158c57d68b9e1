//! Any text as a filter: parsed and checked against probes, or refused with a place in that text and a line to show.
#![no_main]

use events::generated::{C_OPENAT, P_EXIT};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let params = ["1".to_owned(), "abc".to_owned()];
    for schema in [&C_OPENAT, &P_EXIT] {
        if let Err(e) = lang::filter::parse(text, &params).and_then(|p| p.check(schema)) {
            assert!(text.get(e.span.start..e.span.end).is_some());
            assert!(!e.line("--where", text).contains(char::is_control));
            assert!(!e.block("--where", text).replace('\n', "").contains(char::is_control));
        }
    }
});
