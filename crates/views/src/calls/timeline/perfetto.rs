//! Function calls in Perfetto's format (`crate::perfetto`).

use super::super::by_function::ByFunction;
use super::super::label;
use super::super::stack::{Call, Ending};
use super::{ELSEWHERE, Format, Losses, SystemCall, Thread, Track};
use crate::perfetto::{BEGIN, END, Encoder, INSTANT, annotation, field, named, process, thread};
use crate::profile::name;
use std::collections::HashSet;

/// The writer.
#[derive(Debug, Default)]
pub struct Perfetto {
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC, ns, where the trace knows it.
    realtime_offset: Option<i64>,
    encoder: Encoder,
    /// Numbers of name and category of functions; 0 where they have none yet.
    functions: ByFunction<(u64, u64)>,
    processes: HashSet<u32>,
}

/// The track of a thread.
fn thread_track(t: Thread<'_>) -> u64 {
    1 << 63 | u64::from(t.tid)
}

/// The track of a process.
fn process_track(t: Thread<'_>) -> u64 {
    1 << 62 | u64::from(t.pid)
}

impl Perfetto {
    /// A writer for a trace whose clock is that much behind the time of day.
    pub fn new(realtime_offset: Option<i64>) -> Perfetto {
        Perfetto { realtime_offset, ..Perfetto::default() }
    }

    /// Number of name and category of a function.
    fn function(&mut self, track: &Track<'_>, function: u32) -> (u64, u64) {
        let known = *self.functions.of(function);
        if known.0 > 0 {
            return known;
        }
        let (name, module) = (label::plain(function, track.functions), label::module(function, track.functions));
        let ids = self.encoder.ids(&name, &module);
        *self.functions.of(function) = ids;
        ids
    }

    fn slice_end(&mut self, thread: Thread<'_>, time: u64, note: Option<&str>, out: &mut Vec<u8>) {
        self.encoder.event(time, out, |event| {
            event.number(field::event::TYPE, END);
            event.number(field::event::TRACK, thread_track(thread));
            if let Some(note) = note {
                annotation(event, "end", note);
            }
        });
    }
}

impl Format for Perfetto {
    fn begin(&mut self, time: u64, out: &mut Vec<u8>) {
        Encoder::begin(time, self.realtime_offset, out);
    }

    fn thread(&mut self, track: &mut Track<'_>) {
        let t = track.thread;
        let comm = name::visible(t.comm);
        if self.processes.insert(t.pid) {
            process(process_track(t), t.pid, &comm, track.out);
        }
        thread(thread_track(t), (t.pid, t.tid), &comm, track.out);
    }

    fn entered(&mut self, track: &mut Track<'_>, function: u32, time: u64) {
        let ids = self.function(track, function);
        self.encoder.event(time, track.out, |event| named(event, BEGIN, thread_track(track.thread), ids));
    }

    fn ended(&mut self, track: &mut Track<'_>, call: &Call) {
        let note = match call.ending {
            Ending::Returned => None,
            Ending::Left => Some("left without a recorded return"),
            Ending::Unfinished => Some("has not returned"),
        };
        self.slice_end(track.thread, call.end, note, track.out);
    }

    fn gap(&mut self, track: &mut Track<'_>, time: u64, dropped: u64) {
        let ids = self.encoder.ids("records are missing", "trapline");
        self.encoder.event(time, track.out, |event| {
            named(event, INSTANT, thread_track(track.thread), ids);
            annotation(event, "records", &dropped.to_string());
        });
    }

    fn system_call(&mut self, track: &mut Track<'_>, call: &SystemCall<'_>) {
        let ids = self.encoder.ids(&name::visible(call.name), "syscall");
        self.encoder.event(call.start, track.out, |event| {
            named(event, BEGIN, thread_track(track.thread), ids);
            annotation(event, "call", &name::visible(call.text));
        });
        self.slice_end(track.thread, call.end.max(call.start), None, track.out);
    }

    fn end(&mut self, losses: Option<Losses>, out: &mut Vec<u8>) {
        if let Some(Losses { all, elsewhere, last }) = losses.filter(|l| l.all > 0) {
            self.encoder.losses(all, elsewhere, last, ELSEWHERE, out);
        }
    }
}
