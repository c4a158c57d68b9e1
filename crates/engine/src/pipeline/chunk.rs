//! What a backend has delivered, as bytes on their way from the drain thread to the front end.
//!
//! ```text
//!  u32: length | kind << 30 │ bytes          event: its bytes; run: a head of 64 bytes, its records; settled: u64 time
//! ```

use crate::pipeline::backend::Deliver;
use events::StreamId;
use events::functions::{Moment, Run};

const RUN: u32 = 1 << 30;
const SETTLED: u32 = 2 << 30;
/// Bits of the kind.
const KIND: u32 = 3 << 30;
/// Bytes before the records of a run.
const HEAD: usize = 64;
/// The most bytes of records in one piece.
const PIECE: usize = 1 << 24;

/// Bytes that hold what was delivered, in its order.
#[derive(Default)]
pub struct Chunk(pub Vec<u8>);

impl Chunk {
    fn put(&mut self, kind: u32, parts: &[&[u8]]) {
        let len: usize = parts.iter().map(|p| p.len()).sum();
        self.0.extend_from_slice(&(len as u32 & !KIND | kind).to_le_bytes());
        parts.iter().for_each(|p| self.0.extend_from_slice(p));
    }
}

impl Deliver for Chunk {
    fn event(&mut self, _stream: StreamId, event: &[u8]) {
        self.put(0, &[event]);
    }

    fn functions(&mut self, run: &Run<'_>) {
        let mut words =
            [run.stream.number(), run.from.tsc, run.from.monotonic, run.to.tsc, run.to.monotonic, run.dropped, 0, 0];
        // A run that is cut is one of several threads' age: the upper half of the counter goes with each part.
        let mut first = true;
        for (high, part) in run.parts() {
            for piece in part.chunks(PIECE) {
                words[6] = u64::from(run.pid) << 32 | u64::from(high);
                words[7] = u64::from(first && run.begins);
                words[5] = if first { run.dropped } else { 0 };
                self.put(RUN, &[words.map(u64::to_le_bytes).as_flattened(), piece]);
                first = false;
            }
        }
        if first {
            words[6] = u64::from(run.pid) << 32 | u64::from(run.high);
            words[7] = u64::from(run.begins);
            self.put(RUN, &[words.map(u64::to_le_bytes).as_flattened()]);
        }
    }

    fn settled(&mut self, until: u64) {
        self.put(SETTLED, &[&until.to_le_bytes()]);
    }
}

/// Delivers what is in the bytes of a chunk; returns how many events and records.
pub fn deliver(bytes: &[u8], each: &mut dyn Deliver) -> usize {
    let (mut n, mut rest) = (0, bytes);
    while let Some((head, tail)) = rest.split_first_chunk::<4>() {
        let head = u32::from_le_bytes(*head);
        let (body, next) = tail.split_at(((head & !KIND) as usize).min(tail.len()));
        rest = next;
        match head & KIND {
            0 => {
                each.event(StreamId::TRACER, body);
                n += 1;
            }
            RUN => n += run(body, each).unwrap_or(0),
            _ => each.settled(body.first_chunk().map_or(0, |b| u64::from_le_bytes(*b))),
        }
    }
    n
}

fn run(body: &[u8], each: &mut dyn Deliver) -> Option<usize> {
    let (head, records) = body.split_first_chunk::<HEAD>()?;
    let mut words = [0; HEAD / 8];
    words.iter_mut().zip(head.as_chunks::<8>().0).for_each(|(w, b)| *w = u64::from_le_bytes(*b));
    let [stream, tsc, monotonic, to_tsc, to_monotonic, dropped, pid_high, begins] = words;
    each.functions(&Run {
        stream: StreamId::from_number(stream)?,
        pid: (pid_high >> 32) as u32,
        begins: begins != 0,
        records,
        high: pid_high as u32,
        from: Moment { tsc, monotonic },
        to: Moment { tsc: to_tsc, monotonic: to_monotonic },
        dropped,
    });
    Some(records.len() / events::functions::RECORD)
}
