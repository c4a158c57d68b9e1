//! Calls that take long: one notice after 200 ms, then the whole line.

use crate::lab::{self, each_backend};
use crate::trace::trace;

#[test]
fn a_long_call_gets_one_notice_and_then_its_whole_line() {
    each_backend(|user| {
        for options in [&["-e", "read,/nanosleep/"][..], &["--no-seccomp"]] {
            // cat's read is answered only after its notice must have been written.
            let t = trace(user, options, &["sh", "-c", "sleep 0.7 | cat"]);
            assert_eq!(t.outcome.code(), 0);
            let notice = t
                .lines
                .iter()
                .position(|l| l.text == "read(0,  <in flight>")
                .unwrap_or_else(|| panic!("no notice: {}", t.text()));
            let tid = t.lines[notice].tid;
            assert_eq!(
                t.lines.iter().filter(|l| l.tid == tid && l.text.contains("in flight")).count(),
                1,
                "{}",
                t.text()
            );
            let end = t.lines[notice..].iter().find(|l| l.tid == tid && l.is("read")).expect("the end");
            assert!(end.text.starts_with("read(0, \"\", ") && end.result() == "0", "{}", end.text);
            t.lacks("resumed");
            t.lacks("unfinished");
            assert!(
                t.lines.iter().any(|l| l.text.contains("nanosleep(") && l.text.ends_with(" <in flight>")),
                "{}",
                t.text()
            );
        }
    });
}

#[test]
fn a_short_call_gets_none() {
    each_backend(|user| {
        let Some(program) = lab::program("bad_number") else { return };
        let t = trace(user, &[], &[&program]);
        t.lacks("in flight");
    });
}

#[test]
fn an_unselected_long_call_gets_none() {
    each_backend(|user| {
        for options in [&["-e", "openat"][..], &["--no-seccomp", "-e", "openat"], &["-z", "-e", "/nanosleep/"]] {
            let t = trace(user, options, &["sleep", "0.5"]);
            assert_eq!(t.outcome.code(), 0);
            t.lacks("in flight");
        }
    });
}
