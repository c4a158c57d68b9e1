//! Several recorded traces as one backend: their events merged by a clock that all of them share.
//!
//! ```text
//!  trace ─► Merged (its streams by time) ─► Renumber ─► head ─┐
//!  trace ─► Merged ────────────────────────► Renumber ─► head ─┴► the first of all heads ─► Deliver
//! ```

use super::past::Past;
use super::{Progress, ROUND};
use crate::pipeline::backend::{Deliver, Polled};
use crate::pipeline::functions::shown_name;
use ctf::native::Merged;
use ctf::trace::Trace;
use events::StreamId;
use events::rules::Rules;
use events::traces::Renumber;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// In which order events of different traces come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By time; those of one moment in the order of the traces.
    Time,
    /// One trace after the other: only one is in memory at a time.
    Traces,
}

/// A trace, with its window of time.
pub struct Part<'t> {
    /// The trace.
    pub trace: &'t Trace,
    /// What its events become.
    pub renumber: Renumber,
    /// The window of time, ns of its own clock, both ends included.
    pub window: (u64, u64),
}

/// The reader of one trace.
pub(super) struct Reader<'t> {
    /// Names of functions from before the window, and the events in it.
    queues: [Option<Merged<'t>>; 2],
    renumber: Renumber,
    /// Its next event.
    head: Vec<u8>,
    stream: StreamId,
    /// Bytes and events of queues that have ended.
    read: (u64, u64),
}

impl<'t> Reader<'t> {
    fn new(part: Part<'t>) -> Reader<'t> {
        let Part { trace, renumber, window: (from, to) } = part;
        let before = from.checked_sub(1).map(|until| trace.data.functions_until(&trace.known, until));
        Reader::of(before, trace.data.events(&trace.known, from, to).named(shown_name), renumber)
    }

    /// Of names of functions from before, and events.
    pub(super) fn of(before: Option<Merged<'t>>, events: Merged<'t>, renumber: Renumber) -> Reader<'t> {
        Reader { queues: [before, Some(events)], renumber, head: Vec::new(), stream: StreamId::TRACER, read: (0, 0) }
    }

    /// Goes on to its next event: its time.
    fn advance(&mut self) -> Option<u64> {
        self.head.clear();
        for queue in &mut self.queues {
            let Some(merged) = queue else { continue };
            if let Some((event, stream)) = merged.next() {
                self.head.extend_from_slice(event);
                self.stream = stream;
                self.renumber.event(&mut self.head);
                return Some(self.head.first_chunk().map_or(0, |time| u64::from_le_bytes(*time)));
            }
            self.read = (self.read.0 + merged.bytes_read(), self.read.1 + merged.events_read());
            // Its buffers go with it.
            *queue = None;
        }
        None
    }

    /// Bytes and events that were read.
    fn read(&self) -> (u64, u64) {
        self.queues.iter().flatten().fold(self.read, |n, q| (n.0 + q.bytes_read(), n.1 + q.events_read()))
    }
}

/// The reader of several traces.
pub struct Several<'t> {
    readers: Vec<Reader<'t>>,
    /// Time and number of each trace that has an event, the first of all in front.
    heads: BinaryHeap<Reverse<(u64, usize)>>,
    /// Traces that were begun.
    begun: usize,
    order: Order,
    progress: Arc<Progress>,
    rules: Option<Arc<dyn Rules>>,
    stopped: bool,
}

impl<'t> Several<'t> {
    /// Of these traces.
    pub fn new(parts: Vec<Part<'t>>, order: Order) -> Several<'t> {
        // They are those of the report, the same for all traces.
        let rules = parts.first().and_then(|part| part.trace.rules.clone());
        Several { rules, ..Several::reading(parts.into_iter().map(Reader::new).collect(), order) }
    }

    /// Of what these read.
    pub(super) fn reading(readers: Vec<Reader<'t>>, order: Order) -> Several<'t> {
        let (heads, progress) = (BinaryHeap::new(), Arc::default());
        Several { readers, heads, begun: 0, order, progress, rules: None, stopped: false }
    }

    /// A handle that shows the progress, also later.
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// Has the traces at their first events that are to be merged now.
    fn begin(&mut self) {
        while self.begun < self.readers.len() && (self.order == Order::Time || self.heads.is_empty()) {
            let nth = self.begun;
            self.begun += 1;
            self.heads.extend(self.readers[nth].advance().map(|time| Reverse((time, nth))));
        }
    }
}

impl Past for Several<'_> {
    fn next_events(&mut self, each: &mut dyn Deliver) -> Polled {
        let mut n = 0;
        let ended = loop {
            if self.stopped || n >= ROUND {
                break self.stopped;
            }
            self.begin();
            let Some(Reverse((_, nth))) = self.heads.pop() else { break true };
            let next = self.heads.peek().map(|head| head.0);
            let reader = &mut self.readers[nth];
            // Most often the trace goes on that has had the last one.
            loop {
                each.event(reader.stream, &reader.head);
                n += 1;
                match reader.advance().map(|time| (time, nth)) {
                    Some(head) if n < ROUND && next.is_none_or(|next| head < next) => {}
                    head => break self.heads.extend(head.map(Reverse)),
                }
            }
        };
        let (bytes, events) = self.readers.iter().map(Reader::read).fold((0, 0), |n, r| (n.0 + r.0, n.1 + r.1));
        self.progress.set(bytes, events);
        Polled { events: n, ended }
    }

    fn redacted(&self) -> Option<Arc<dyn Rules>> {
        self.rules.clone()
    }

    fn end(&mut self) {
        self.stopped = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::recorder::{Config, Recorder};
    use ctf::trace::Found;
    use events::encode::{self, Fixed};
    use events::generated::P_EXIT;
    use events::layout::Layout;
    use events::{Event, traces};
    use testkit::Scratch;

    /// A trace of ends of thread 1 at these times after `base`.
    fn recorded(dir: &Scratch, base: u64, times: &[u64]) -> Trace {
        let config = Config {
            dir: dir.to_path_buf(),
            command: "test".into(),
            backend: "none".into(),
            string: 32,
            ..Config::default()
        };
        let mut recorder = Recorder::new(&config).unwrap();
        for time in times {
            let (mut event, layout) = (Vec::new(), Layout::of(&P_EXIT));
            let fixed = Fixed { time: base + time, tid: 1, pid: 1, ..Fixed::default() };
            encode::fixed(&mut event, &P_EXIT, &layout, &fixed, &[0; 3]);
            recorder.event(StreamId::cpu(0), &event);
        }
        recorder.finish().unwrap();
        match ctf::trace::open(dir).unwrap() {
            Found::Native(trace) => *trace,
            Found::Foreign => panic!("a trace of its own"),
        }
    }

    /// Times and traces in the order of delivery, all of one thread.
    fn delivered(parts: Vec<Part<'_>>, order: Order) -> Vec<(u64, usize)> {
        let (mut several, mut all) = (Several::new(parts, order), Vec::new());
        let mut each = |_: StreamId, bytes: &[u8]| {
            let ev = Event::parse(bytes).unwrap();
            assert_eq!(traces::own(ev.tid()), 1);
            all.push((ev.time(), traces::of(ev.tid())));
        };
        while !several.next_events(&mut each).ended {}
        assert_eq!(several.progress().events(), all.len() as u64);
        all
    }

    #[test]
    fn traces_are_merged_by_a_common_clock() {
        let dirs = ["a", "b", "c"].map(Scratch::new);
        // What is older than its recording gets the time at which that began.
        let base = sys::time::monotonic() + 3_600_000_000_000;
        let times: [&[u64]; 3] = [&[10, 20, 30], &[1, 11, 21], &[]];
        let all = [0, 1, 2].map(|nth| recorded(&dirs[nth], base, times[nth]));
        let part = |nth: usize, time: i64, (from, to)| Part {
            trace: &all[nth],
            renumber: Renumber { nth: nth as u32, time: time - base as i64, ..Renumber::default() },
            window: (base + from, base + to),
        };
        let whole = (0, 1000);
        let parts = || vec![part(0, 100, whole), part(1, 109, whole), part(2, 0, whole)];
        // Of one moment, the first trace comes first.
        let expected = [(110, 0), (110, 1), (120, 0), (120, 1), (130, 0), (130, 1)];
        assert_eq!(delivered(parts(), Order::Time), expected);
        let expected = [(110, 0), (120, 0), (130, 0), (110, 1), (120, 1), (130, 1)];
        assert_eq!(delivered(parts(), Order::Traces), expected);
        let windows = vec![part(0, 100, (20, 30)), part(1, 109, (0, 11))];
        assert_eq!(delivered(windows, Order::Time), [(110, 1), (120, 0), (120, 1), (130, 0)]);
        assert_eq!(delivered(Vec::new(), Order::Time), []);
    }
}
