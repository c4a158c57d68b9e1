//! Calls that broke a rule, with their stacks: as text and as JSON.
//!
//! ```text
//! worker (5): draw called from job, 2 times
//!  > /usr/bin/app(draw+0x0) [0x2ea2] app.c:12
//!  > /usr/bin/app(job+0x9) [0x2f02] app.c:31
//! app (4): load called from loop took 2.50ms
//!  > …
//! ```
//!
//! In text, calls with one stack are one if their threads have one name. Below a stack that is not whole it says why.

use crate::calls::short::short;
use crate::escape;
use crate::stack::{self, Place};
use crate::units::duration;
use crate::write::json as w;
use std::borrow::Cow;
use std::collections::HashSet;

/// A call that broke a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violation<'a> {
    /// The thread.
    pub tid: u32,
    /// Its name.
    pub thread: &'a str,
    /// The function.
    pub function: &'a str,
    /// When, by the monotonic clock, in ns.
    pub time: u64,
    /// How long it has taken, in ns; 0 where only the call counts.
    pub took: u64,
    /// Its stack, innermost first: the function first, then its caller.
    pub stack: &'a [Place<'a>],
    /// Why the stack ends there; none: it is whole.
    pub ended: Option<&'a str>,
}

impl Violation<'_> {
    /// The function that has called it, without parameters.
    fn caller(&self) -> Option<Cow<'_, str>> {
        self.stack.get(1).map(|p| p.frame.function).filter(|name| !name.is_empty()).map(short)
    }
}

/// Appends them as text, and how many there was no room for.
pub fn text(all: &[Violation<'_>], lost: u64, colour: bool, out: &mut Vec<u8>) {
    let same = |a: &Violation<'_>, b: &Violation<'_>| {
        a.thread == b.thread && a.function == b.function && a.stack == b.stack && (a.took == 0) == (b.took == 0)
    };
    for (i, v) in all.iter().enumerate() {
        if all[..i].iter().any(|before| same(before, v)) {
            continue;
        }
        let alike: Vec<&Violation<'_>> = all[i..].iter().filter(|later| same(v, later)).collect();
        if colour {
            out.extend_from_slice(b"\x1b[31m");
        }
        headline(v, &alike, out);
        if colour {
            out.extend_from_slice(b"\x1b[0m");
        }
        out.push(b'\n');
        stack::text(v.stack, true, out);
        if let Some(why) = v.ended {
            out.extend_from_slice(format!("   (no more frames: {why})\n").as_bytes());
        }
    }
    if lost > 0 {
        out.extend_from_slice(format!("and {lost} more\n").as_bytes());
    }
}

fn headline(v: &Violation<'_>, alike: &[&Violation<'_>], out: &mut Vec<u8>) {
    escape::name_in_brackets(v.thread.as_bytes(), out);
    out.extend_from_slice(format!(" ({}): ", v.tid).as_bytes());
    escape::name_in_brackets(v.function.as_bytes(), out);
    if let Some(caller) = v.caller() {
        out.extend_from_slice(b" called from ");
        escape::name_in_brackets(caller.as_bytes(), out);
    }
    let longest = duration(alike.iter().map(|v| v.took).max().unwrap_or(0));
    let mut text = match (v.took > 0, alike.len()) {
        (false, 1) => String::new(),
        (false, n) => format!(", {n} times"),
        (true, 1) => format!(" took {longest}"),
        (true, n) => format!(" took {longest} at most, {n} times"),
    };
    let threads = alike.iter().map(|v| v.tid).collect::<HashSet<_>>().len();
    if threads > 1 {
        text += &format!(" by {threads} threads");
    }
    out.extend_from_slice(text.as_bytes());
}

/// Appends an object for each, on a line of its own, and one for those that there was no room for.
pub fn json(all: &[Violation<'_>], lost: u64, out: &mut Vec<u8>) {
    for v in all {
        out.extend_from_slice(b"{\"v\":1,\"type\":\"violation\"");
        let caller = v.caller();
        for (key, text) in [("thread", Some(v.thread)), ("function", Some(v.function)), ("caller", caller.as_deref())] {
            w::key(out, key);
            match text {
                Some(text) => w::string(out, text),
                None => w::null(out),
            }
        }
        let took = (v.took > 0).then_some(("took_ns", v.took));
        for (key, n) in [("tid", v.tid.into()), ("time_ns", v.time)].into_iter().chain(took) {
            w::key(out, key);
            w::number(out, n);
        }
        w::key(out, "stack");
        stack::json(v.stack, out);
        if let Some(why) = v.ended {
            w::key(out, "ended");
            w::string(out, why);
        }
        out.extend_from_slice(b"}\n");
    }
    if lost > 0 {
        out.extend_from_slice(format!("{{\"v\":1,\"type\":\"lost\",\"violations\":{lost}}}\n").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Frame;

    fn place(function: &'static str, line: u32) -> Place<'static> {
        let frame = Frame { function, module: "/bin/app", file: "app.c", line, ..Frame::default() };
        Place { frame, offset: Some(9), address: Some(16) }
    }

    fn drawn(all: &[Violation<'_>], lost: u64, colour: bool) -> String {
        let mut out = Vec::new();
        text(all, lost, colour, &mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn calls_of_one_stack_are_one_in_text() {
        let stack = [place("draw", 12), place("job", 31)];
        let other = [place("draw", 12), place("main", 3)];
        let v = Violation { tid: 5, thread: "worker", function: "draw", stack: &stack, ..Violation::default() };
        let all = [
            v.clone(),
            Violation { stack: &other, ended: Some("cut"), ..v.clone() },
            Violation { time: 9, ..v.clone() },
        ];
        assert_eq!(
            drawn(&all, 3, false),
            "worker (5): draw called from job, 2 times\n \
             > /bin/app(draw+0x9) [0x10] app.c:12\n \
             > /bin/app(job+0x9) [0x10] app.c:31\n\
             worker (5): draw called from main\n \
             > /bin/app(draw+0x9) [0x10] app.c:12\n \
             > /bin/app(main+0x9) [0x10] app.c:3\n   \
             (no more frames: cut)\n\
             and 3 more\n"
        );
        let slow = |took| Violation { took, stack: &[], thread: "a\x1b", ..v.clone() };
        assert_eq!(drawn(&[slow(2_500_000)], 0, true), "\x1b[31ma\\033 (5): draw took 2.50ms\x1b[0m\n");
        assert_eq!(drawn(&[slow(1), slow(2_500_000)], 0, false), "a\\033 (5): draw took 2.50ms at most, 2 times\n");
        let other = Violation { tid: 6, ..slow(2) };
        assert_eq!(
            drawn(&[slow(1), other, slow(3)], 0, false),
            "a\\033 (5): draw took 3ns at most, 3 times by 2 threads\n"
        );
    }

    #[test]
    fn each_call_is_an_object() {
        let stack = [place("draw", 12)];
        let v =
            Violation { tid: 5, thread: "w\"", function: "draw", stack: &stack, time: 7, took: 8, ended: Some("cut") };
        let mut out = Vec::new();
        json(&[v], 2, &mut out);
        let text = String::from_utf8(out).expect("UTF-8");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "{\"v\":1,\"type\":\"violation\",\"thread\":\"w\\\"\",\"function\":\"draw\",\"caller\":null,\"tid\":5,\"time_ns\":7,\
                 \"took_ns\":8,\"stack\":[{\"function\":\"draw\",\"module\":\"/bin/app\",\"file\":\"app.c\",\"line\":12,\
                 \"offset\":\"0x9\",\"address\":\"0x10\"}],\"ended\":\"cut\"}",
                "{\"v\":1,\"type\":\"lost\",\"violations\":2}"
            ]
        );
    }
}
