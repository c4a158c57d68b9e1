//! `--sort start`: what was made of events, put into the order of their starts.
//!
//! Text is made when an event arrives, while the names of its descriptors are those of its moment; what waits here is the
//! finished text. It is handed on when nothing that starts earlier can come:
//! - a call that has been running for long was announced by a notice in flight, which carries its start: what starts later
//!   waits for its end;
//! - any other call ends within [`WINDOW`] of its start, or the backend has no notices.
//!
//! At most [`MOST`] events and [`MOST_BYTES`] wait. Beyond that the earliest is shown, and an earlier one that comes later
//! is shown after it.

use events::Event;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Backends announce a call that has run for 200 ms when they look next, which is every 100 ms or more often: ns.
pub const WINDOW: u64 = 500_000_000;
/// The most events that wait.
pub const MOST: usize = 64 << 10;
/// The most bytes of text that wait.
pub const MOST_BYTES: usize = 64 << 20;

/// An event's text and where it belongs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Held {
    start: u64,
    /// Equal starts stay in the order of their arrival.
    nth: u64,
    /// Thread.
    pub tid: u32,
    /// Class.
    pub id: u16,
    /// What a view made of it; may be nothing.
    pub text: Box<[u8]>,
}

/// What waits.
pub struct Reorder {
    held: BinaryHeap<Reverse<Held>>,
    bytes: usize,
    arrived: u64,
    /// By thread, the start of its call that was announced and has not ended.
    running: HashMap<u32, u64>,
    now: u64,
    most: usize,
}

impl Default for Reorder {
    fn default() -> Reorder {
        Reorder::with_room(MOST)
    }
}

impl Reorder {
    /// At most `most` events wait.
    pub fn with_room(most: usize) -> Reorder {
        Reorder { held: BinaryHeap::new(), bytes: 0, arrived: 0, running: HashMap::new(), now: 0, most }
    }

    /// Takes what was made of an event that was [seen](Reorder::see).
    pub fn push(&mut self, ev: &Event<'_>, text: &[u8]) {
        self.bytes += text.len();
        self.arrived += 1;
        let start = announced(ev).map_or_else(|| ev.start(), |(_, start)| start);
        let held = Held { start, nth: self.arrived, tid: ev.tid(), id: ev.schema.id, text: text.into() };
        self.held.push(Reverse(held));
    }

    /// Learns from an event, whether it is shown or not.
    pub fn see(&mut self, ev: &Event<'_>) {
        self.passed(ev.time());
        if ev.is_syscall() {
            self.running.remove(&ev.tid());
            return;
        }
        match ev.schema.name {
            "inflight" => {
                if let Some((tid, start)) = announced(ev)
                    && ev.value_of("attach") != LEFT_RUNNING
                {
                    self.running.insert(tid, start);
                }
            }
            // The call of a thread that another's execve ended.
            "exec" => drop(self.running.remove(&(ev.value_of("old_tid") as u32))),
            "exit" | "detach" | "superseded" => drop(self.running.remove(&ev.tid())),
            _ => {}
        }
    }

    /// Notes that every event before `now` (ns of the monotonic clock) has arrived.
    pub fn passed(&mut self, now: u64) {
        self.now = self.now.max(now);
    }

    /// Notes that no more events will come.
    pub fn finish(&mut self) {
        self.running.clear();
        self.now = u64::MAX;
    }

    /// The next in order, if it is its turn.
    pub fn pop(&mut self) -> Option<Held> {
        let first = self.held.peek()?.0.start;
        let full = self.held.len() > self.most || self.bytes > MOST_BYTES;
        if !full && first > self.safe() {
            return None;
        }
        let Reverse(held) = self.held.pop()?;
        self.bytes -= held.text.len();
        Some(held)
    }

    /// Up to this start everything has arrived; what starts with a running call may go before its end.
    fn safe(&self) -> u64 {
        let running = self.running.values().copied().min().unwrap_or(u64::MAX);
        running.min(if self.now == u64::MAX { u64::MAX } else { self.now.saturating_sub(WINDOW) })
    }
}

/// `attach` of a notice whose call is left running at the end of the trace: its end is never seen.
const LEFT_RUNNING: u64 = 2;

/// Thread and start of the call that a notice announces.
fn announced(ev: &Event<'_>) -> Option<(u32, u64)> {
    if ev.schema.name != "inflight" {
        return None;
    }
    let call = Event::parse(ev.bytes_of("call")).ok()?;
    Some((call.tid(), call.start()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use events::Schema;
    use events::encode::{self, Fixed};
    use events::generated::{P_EXIT, P_INFLIGHT};

    const MS: u64 = 1_000_000;

    fn encode(schema: &'static Schema, f: Fixed, args: &[u64], inner: &[u8]) -> Vec<u8> {
        let layout = events::registry::layout(schema.id).unwrap();
        let mut out = Vec::new();
        encode::fixed(&mut out, schema, layout, &f, args);
        for spec in &layout.tails {
            match inner {
                [] => encode::empty_tail(&mut out, spec.shape),
                _ => encode::bytes_tail(&mut out, inner),
            }
        }
        out
    }

    fn call(tid: u32, start: u64, end: u64) -> Vec<u8> {
        let f = Fixed { time: end * MS, start: start * MS, tid, pid: tid, ..Fixed::default() };
        encode(events::registry::by_name("getpid").unwrap(), f, &[], &[])
    }

    fn notice(tid: u32, start: u64, at: u64, attach: u64) -> Vec<u8> {
        let f = Fixed { time: at * MS, tid, pid: tid, cap: 1, ..Fixed::default() };
        encode(&P_INFLIGHT, f, &[0, attach], &call(tid, start, at))
    }

    fn exit(tid: u32, at: u64) -> Vec<u8> {
        encode(&P_EXIT, Fixed { time: at * MS, tid, pid: tid, ..Fixed::default() }, &[0; 3], &[])
    }

    /// Takes an event and returns the starts (ms) of the events that are passed on.
    fn take(r: &mut Reorder, event: &[u8]) -> Vec<u64> {
        let ev = Event::parse(event).unwrap();
        r.see(&ev);
        r.push(&ev, b"line\n");
        popped(r)
    }

    fn popped(r: &mut Reorder) -> Vec<u64> {
        std::iter::from_fn(|| r.pop()).map(|h| h.start / MS).collect()
    }

    fn rest(mut r: Reorder) -> Vec<u64> {
        r.finish();
        popped(&mut r)
    }

    #[test]
    fn calls_within_the_window_are_sorted_by_start() {
        let mut r = Reorder::default();
        assert!(take(&mut r, &call(1, 20, 30)).is_empty());
        assert!(take(&mut r, &call(2, 10, 40)).is_empty());
        assert_eq!(take(&mut r, &call(1, 535, 540)), [10, 20]);
        assert_eq!(rest(r), [535]);
    }

    #[test]
    fn what_starts_after_a_running_call_waits_for_its_end() {
        let mut r = Reorder::default();
        take(&mut r, &call(2, 90, 95));
        take(&mut r, &notice(1, 100, 300, 0));
        assert_eq!(take(&mut r, &call(2, 200, 2000)), [90, 100]);
        assert!(take(&mut r, &call(2, 2010, 3000)).is_empty());
        assert_eq!(take(&mut r, &call(1, 100, 3001)), [100, 200, 2010]);
    }

    #[test]
    fn a_thread_that_ended_or_was_left_is_not_waited_for() {
        let mut r = Reorder::default();
        take(&mut r, &notice(1, 100, 300, 0));
        take(&mut r, &notice(2, 50, 300, 2));
        assert_eq!(take(&mut r, &call(3, 200, 2000)), [50, 100]);
        assert_eq!(take(&mut r, &exit(1, 2001)), [200]);
    }

    #[test]
    fn an_end_that_a_filter_holds_back_counts() {
        let mut r = Reorder::default();
        take(&mut r, &notice(1, 100, 300, 0));
        assert_eq!(take(&mut r, &call(3, 200, 2000)), [100]);
        r.see(&Event::parse(&call(1, 100, 2001)).unwrap());
        assert_eq!(popped(&mut r), [200]);
    }

    #[test]
    fn no_more_than_there_is_room_for_waits() {
        let mut r = Reorder::with_room(2);
        take(&mut r, &call(1, 30, 40));
        take(&mut r, &call(2, 20, 41));
        assert_eq!(take(&mut r, &call(3, 50, 60)), [20]);
        assert_eq!(take(&mut r, &call(4, 10, 70)), [10]);
        assert_eq!(rest(r), [30, 50]);
    }

    #[test]
    fn time_that_passes_without_events_lets_lines_go() {
        let mut r = Reorder::default();
        take(&mut r, &call(1, 30, 40));
        r.passed(529 * MS);
        assert!(popped(&mut r).is_empty());
        r.passed(530 * MS);
        assert_eq!(popped(&mut r), [30]);
    }

    #[test]
    fn equal_starts_stay_in_order_of_arrival() {
        let mut r = Reorder::default();
        for tid in [5, 3, 4] {
            take(&mut r, &call(tid, 10, 20));
        }
        r.finish();
        assert_eq!(std::iter::from_fn(|| r.pop()).map(|h| h.tid).collect::<Vec<_>>(), [5, 3, 4]);
    }
}
