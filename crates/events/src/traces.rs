//! Several traces as one: threads, processes, stacks and functions of each get numbers that no other trace has.
//!
//! ```text
//!  31    22 21         0
//!  ┌───────┬────────────┐    A thread or process: its trace in the upper bits, and its number in that trace below. Numbers of the first
//!  │ trace │ own number │    trace, and of a trace that is read alone, stay as they are.
//!  └───────┴────────────┘
//! ```
//!
//! [`Renumber`] changes an event in its place, and its time to a clock that all traces share. Tables by thread or process
//! need to know nothing of traces; views show [`own`] numbers.

use crate::generated as g;
use crate::origin::BITS;
pub use crate::origin::{MOST, Origin, beside, of, own};
use crate::schema::{Class, Schema};
use crate::types::{Fmt, Int, Type};
use crate::{Event, functions, layout, stacks, values};

/// What changes in the events of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Renumber {
    /// Which of the traces it is; less than [`MOST`].
    pub nth: u32,
    /// What is added to times, ns.
    pub time: i64,
    /// What is added to the numbers of functions.
    pub functions: u32,
    /// How many functions have numbers, where the next trace's begin behind them: further ones are not known. 0: all have.
    pub most: u32,
}

/// Arguments of trapline's own events that are threads or processes of the trace.
const THREADS: [(u16, &str); 4] =
    [(g::P_FORK.id, "child"), (g::P_FORK.id, "tid"), (g::P_SUPERSEDED.id, "by"), (g::P_EXEC.id, "old_tid")];

/// Whether an argument is a thread or process of the trace, and changes with its trace.
pub fn is_thread(schema: &Schema, arg: &str) -> bool {
    THREADS.contains(&(schema.id, arg))
}

impl Renumber {
    /// Changes an event. Bytes that are none stay as they are.
    pub fn event(&self, bytes: &mut [u8]) {
        let Ok(ev) = Event::parse(bytes) else { return };
        let (schema, places, is_span) = (ev.schema, ev.layout, ev.is_span());
        // The call in a notice is an event itself, and the only tail, behind its length.
        let inner = (schema.id == g::P_INFLIGHT.id).then_some(places.fixed + 2);
        put(bytes, 0, 8, |time| self.moment(time));
        put(bytes, layout::TID, 4, |id| self.thread(id));
        put(bytes, layout::PID, 4, |id| self.thread(id));
        if is_span {
            put(bytes, places.start, 8, |time| self.moment(time));
        }
        if schema.class == Class::Process || stacks::may_have(schema) {
            for (i, arg) in schema.args.iter().enumerate() {
                let (at, width) = (usize::from(places.args[i].0), usize::from(places.args[i].1));
                match arg.ty {
                    Type::Int(Int { fmt: Fmt::Stack, .. }) => put(bytes, at, width, |id| self.stack(id)),
                    _ if is_thread(schema, arg.name) => put(bytes, at, width, |id| self.thread(id)),
                    _ if arg.name == "number" && has_function(schema) => {
                        put(bytes, at, width, |n| self.function(n));
                    }
                    _ => {}
                }
            }
        }
        if let Some(call) = inner.and_then(|at| bytes.get_mut(at..)) {
            self.contained(call);
        }
    }

    /// Changes the call in a notice, which has no notice in it.
    fn contained(&self, bytes: &mut [u8]) {
        if Event::parse(bytes).is_ok_and(|call| call.is_syscall()) {
            self.event(bytes);
        }
    }

    fn moment(&self, time: u64) -> u64 {
        // What is not known is 0.
        if time == 0 { 0 } else { time.saturating_add_signed(self.time) }
    }

    fn thread(&self, id: u64) -> u64 {
        u64::from(self.nth << BITS | own(id as u32))
    }

    fn function(&self, number: u64) -> u64 {
        let has_number = self.most == 0 || number < self.most.into();
        if has_number { number.saturating_add(self.functions.into()).min(u32::MAX.into()) } else { 0 }
    }

    fn stack(&self, id: u64) -> u64 {
        // Ids are hashes, and 0 is no stack: another hash for each trace (2 to the power of 64, divided by the golden ratio).
        if id == 0 { 0 } else { (id ^ u64::from(self.nth).wrapping_mul(0x9e37_79b9_7f4a_7c15)).max(1) }
    }
}

/// Whether `number` is that of a function.
fn has_function(schema: &Schema) -> bool {
    let of_record = || matches!(functions::kind(schema), Some(functions::Kind::Entry | functions::Kind::Exit));
    schema.id == g::P_FUNCTION.id || schema.name == values::CLASS || of_record()
}

/// Changes the number of `width` bytes at a place.
#[inline]
fn put(bytes: &mut [u8], at: usize, width: usize, change: impl FnOnce(u64) -> u64) {
    let Some(place) = bytes.get_mut(at..at + width.min(8)) else { return };
    let mut word = [0; 8];
    word[..place.len()].copy_from_slice(place);
    let n = place.len();
    place.copy_from_slice(&change(u64::from_le_bytes(word)).to_le_bytes()[..n]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{self, Fixed};
    use crate::layout::Layout;
    use crate::registry;

    const SECOND: Renumber = Renumber { nth: 2, time: 1000, functions: 7, most: 0 };

    fn event(schema: &'static Schema, values: &[u64]) -> Vec<u8> {
        let (mut out, layout) = (Vec::new(), registry::layout(schema.id).unwrap());
        encode::fixed(
            &mut out,
            schema,
            layout,
            &Fixed { time: 50, start: 40, pid: 10, tid: 11, ..Fixed::default() },
            values,
        );
        tails(&mut out, layout);
        out
    }

    fn tails(out: &mut Vec<u8>, layout: &Layout) {
        for tail in &layout.tails {
            match tail.shape {
                layout::Shape::Str => out.push(0),
                layout::Shape::One(_) => out.push(0),
                _ => out.extend([0, 0]),
            }
        }
    }

    fn changed(mut bytes: Vec<u8>) -> Vec<u8> {
        SECOND.event(&mut bytes);
        bytes
    }

    #[test]
    fn threads_of_two_traces_are_two() {
        let bytes = changed(event(&g::C_CLOSE, &[3]));
        let ev = Event::parse(&bytes).unwrap();
        assert_eq!((ev.time(), ev.start()), (1050, 1040));
        assert_eq!((own(ev.pid()), own(ev.tid()), of(ev.pid()), of(ev.tid())), (10, 11, 2, 2));
        assert_ne!(ev.tid(), 11);
        assert_eq!(ev.arg(0), 3);
        assert_eq!(beside(ev.tid(), 10), ev.pid());
        let mut same = event(&g::C_CLOSE, &[3]);
        Renumber::default().event(&mut same);
        assert_eq!(same, event(&g::C_CLOSE, &[3]));
    }

    #[test]
    fn children_are_in_the_trace_of_their_parents() {
        let bytes = changed(event(&g::P_FORK, &[0, 12, 13, 0x11]));
        let ev = Event::parse(&bytes).unwrap();
        let of = |name: &str| ev.value_of(name) as u32;
        assert_eq!((of("child"), of("tid")), (beside(ev.pid(), 12), beside(ev.pid(), 13)));
        // The sender of a signal may be of any machine's number space: it is shown, and is no identity.
        let bytes = changed(event(&g::P_SIGNAL, &[15, 0, 0, 77]));
        assert_eq!(Event::parse(&bytes).unwrap().value_of("pid"), 77);
    }

    #[test]
    fn a_call_in_a_notice_is_changed_too() {
        let call = event(&g::C_CLOSE, &[3]);
        let layout = registry::layout(g::P_INFLIGHT.id).unwrap();
        let mut bytes = Vec::new();
        encode::fixed(
            &mut bytes,
            &g::P_INFLIGHT,
            layout,
            &Fixed { time: 50, pid: 10, tid: 11, ..Fixed::default() },
            &[0, 1],
        );
        encode::bytes_tail(&mut bytes, &call);
        let bytes = changed(bytes);
        let ev = Event::parse(&bytes).unwrap();
        let inner = Event::parse(ev.bytes_of("call")).unwrap();
        assert_eq!((inner.tid(), inner.start()), (ev.tid(), 1040));
        assert_eq!(own(inner.tid()), 11);
    }

    #[test]
    fn stacks_and_functions_are_renumbered() {
        let stack = event(&g::P_STACK, &[0, 99, 1, 0, 0]);
        let id = |bytes: &[u8]| Event::parse(bytes).unwrap().value_of("id");
        let (first, second) = (id(&stack), id(&changed(stack.clone())));
        assert_eq!(first, 99);
        assert!(second != 99 && second != 0);
        let function = changed(event(&g::P_FUNCTION, &[0, 0, 0, 5, 0x1000]));
        assert_eq!(Event::parse(&function).unwrap().value_of("number"), 12);
        let entry = changed(event(functions::entry(), &[0, 5]));
        assert_eq!(Event::parse(&entry).unwrap().value_of("number"), 12);
        // It would be one of the next trace.
        let mut beyond = event(functions::entry(), &[0, 5]);
        Renumber { most: 5, ..SECOND }.event(&mut beyond);
        assert_eq!(Event::parse(&beyond).unwrap().value_of("number"), 0);
        // Which thread begins is no function's number.
        let begun = changed(event(functions::begun(), &[5]));
        assert_eq!(Event::parse(&begun).unwrap().value_of("number"), 5);
    }

    #[test]
    fn a_hostile_number_stays_in_its_trace() {
        let mut bytes = event(&g::C_CLOSE, &[3]);
        bytes[layout::TID..layout::TID + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        let bytes = changed(bytes);
        assert_eq!(of(Event::parse(&bytes).unwrap().tid()), 2);
        for len in 0..bytes.len() {
            SECOND.event(&mut bytes[..len].to_vec());
        }
    }
}
