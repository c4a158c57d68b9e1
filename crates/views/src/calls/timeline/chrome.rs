//! Chrome's format ("Trace Event Format", the JSON object form): one complete event for each call, when it has ended. Times are in
//! microseconds, with three decimals.

use super::super::label::Labels;
use super::super::stack::{Call, Ending};
use super::{ELSEWHERE, Format, Losses, SystemCall, Thread, Track};
use crate::write::json as w;
use crate::write::number;
use std::collections::HashSet;

/// The writer.
#[derive(Debug, Default)]
pub struct Chrome {
    processes: HashSet<u32>,
    labels: Labels,
    /// Something was written into the list of events.
    begun: bool,
}

impl Chrome {
    /// A writer of a file.
    pub fn new() -> Chrome {
        Chrome::default()
    }

    /// Begins an event, up to its thread.
    fn event(&mut self, kind: &str, name: &str, thread: Thread<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(if std::mem::replace(&mut self.begun, true) { b",\n" } else { b"\n" });
        out.extend_from_slice(b"{\"ph\":");
        w::string(out, kind);
        w::key(out, "name");
        w::string(out, name);
        for (key, id) in [("pid", thread.pid), ("tid", thread.tid)] {
            w::key(out, key);
            w::number(out, id);
        }
    }

    fn slice(&mut self, name: &str, category: &str, (start, end): (u64, u64), track: &mut Track<'_>) {
        self.event("X", name, track.thread, track.out);
        w::key(track.out, "cat");
        w::string(track.out, category);
        micros("ts", start, track.out);
        micros("dur", end.saturating_sub(start), track.out);
    }

    /// Begins an instant event: of a thread, or of the whole (scope `g`).
    fn mark(&mut self, name: &str, scope: &str, thread: Thread<'_>, time: u64, out: &mut Vec<u8>) {
        self.event("i", name, thread, out);
        micros("ts", time, out);
        w::key(out, "s");
        w::string(out, scope);
    }

    fn describe(&mut self, what: &str, thread: Thread<'_>, out: &mut Vec<u8>) {
        self.event("M", what, thread, out);
        args("name", thread.comm, out);
        out.push(b'}');
    }
}

/// Appends ns as microseconds.
fn micros(key: &str, ns: u64, out: &mut Vec<u8>) {
    w::key(out, key);
    number::dec(ns / 1000, out);
    let part = ns % 1000;
    out.extend([b'.'].into_iter().chain([part / 100, part / 10 % 10, part % 10].map(|digit| b'0' + digit as u8)));
}

/// Appends the member `args` with one member.
fn args(key: &str, value: &str, out: &mut Vec<u8>) {
    w::key(out, "args");
    out.push(b'{');
    w::string(out, key);
    out.push(b':');
    w::string(out, value);
    out.push(b'}');
}

impl Format for Chrome {
    fn begin(&mut self, _time: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    }

    fn thread(&mut self, track: &mut Track<'_>) {
        if self.processes.insert(track.thread.pid) {
            self.describe("process_name", track.thread, track.out);
        }
        self.describe("thread_name", track.thread, track.out);
    }

    fn entered(&mut self, _track: &mut Track<'_>, _function: u32, _time: u64) {}

    fn ended(&mut self, track: &mut Track<'_>, call: &Call) {
        let name = self.labels.name(call.function, track.functions);
        let module = self.labels.module(call.function, track.functions);
        self.slice(&name, &module, (call.start, call.end), track);
        match call.ending {
            Ending::Returned => {}
            Ending::Left => args("end", "left without a recorded return", track.out),
            Ending::Unfinished => args("end", "has not returned", track.out),
        }
        track.out.push(b'}');
    }

    fn gap(&mut self, track: &mut Track<'_>, time: u64, dropped: u64) {
        self.mark("records are missing", "t", track.thread, time, track.out);
        args("records", &dropped.to_string(), track.out);
        track.out.push(b'}');
    }

    fn system_call(&mut self, track: &mut Track<'_>, call: &SystemCall<'_>) {
        self.slice(call.name, "syscall", (call.start, call.end), track);
        args("call", call.text, track.out);
        track.out.push(b'}');
    }

    fn end(&mut self, losses: Option<Losses>, out: &mut Vec<u8>) {
        if let Some(Losses { elsewhere, last, .. }) = losses.filter(|l| l.elsewhere > 0) {
            self.mark(ELSEWHERE, "g", Thread::default(), last, out);
            args("events", &elsewhere.to_string(), out);
            out.push(b'}');
        }
        out.extend_from_slice(b"\n]");
        if let Some(losses) = losses {
            w::key(out, "otherData");
            out.extend_from_slice(b"{\"lost\":");
            w::number(out, losses.all);
            out.push(b'}');
        }
        out.extend_from_slice(b"}\n");
    }
}
