//! Brings the events of all rings into one order.
//!
//! Each ring is nearly in order, and the rings are drained in turn. An event may be handed on once nothing older can still come:
//! when it is older than the *watermark*: the moment at which the round of draining began, less the time that a program may
//! take between reading the clock and committing its record.

use events::StreamId;

/// The time that a program may take between reading the clock and committing its record, ns: a few interrupts long.
const SLACK: u64 = 2_000_000;

/// Events that wait for their turn.
#[derive(Default)]
pub struct Merge {
    bytes: Vec<u8>,
    /// Time, offset, length and stream of each.
    index: Vec<(u64, usize, usize, StreamId)>,
}

impl Merge {
    /// Takes an event of trapline's own making.
    pub fn push(&mut self, event: &[u8]) {
        self.push_from(StreamId::TRACER, event);
    }

    /// Takes an event of the ring of `stream`: its first eight bytes are its time.
    pub fn push_from(&mut self, stream: StreamId, event: &[u8]) {
        let time = event.get(..8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes);
        self.push_at(time, stream, event);
    }

    /// Takes bytes of a ring that belong to a time.
    pub fn push_at(&mut self, time: u64, stream: StreamId, bytes: &[u8]) {
        self.index.push((time, self.bytes.len(), bytes.len(), stream));
        self.bytes.extend_from_slice(bytes);
    }

    /// Bytes that wait.
    pub fn waiting(&self) -> usize {
        self.bytes.len()
    }

    /// The watermark of a round that began at `round`: what is older is handed over.
    pub fn watermark(round: u64) -> u64 {
        if round == u64::MAX { u64::MAX } else { round.saturating_sub(SLACK) }
    }

    /// Hands over the events older than the watermark of a round that began at `round`, each with its stream; all of them with
    /// `u64::MAX`.
    pub fn release(&mut self, round: u64, mut each: impl FnMut(StreamId, &[u8])) -> usize {
        let until = Merge::watermark(round);
        // Stable: events of one moment stay in the order of their streams, as a reader of the streams has them.
        self.index.sort_by_key(|e| (e.0, e.3));
        let n = self.index.partition_point(|e| e.0 < until);
        for (_, at, len, stream) in self.index.drain(..n) {
            each(stream, &self.bytes[at..at + len]);
        }
        if self.index.is_empty() {
            self.bytes.clear();
        } else if self.bytes.len() > 1 << 20 {
            let kept: Vec<u8> =
                self.index.iter().flat_map(|(_, at, len, _)| self.bytes[*at..*at + *len].iter().copied()).collect();
            let mut at = 0;
            for e in &mut self.index {
                e.1 = at;
                at += e.2;
            }
            self.bytes = kept;
        }
        n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_several_rings_come_out_in_order_and_not_too_early() {
        let event = |t: u64, tag: u8| [&t.to_le_bytes()[..], &[tag]].concat();
        let mut m = Merge::default();
        for (t, tag) in [(10, 1), (30, 2), (20, 3), (5_000_000, 4)] {
            m.push(&event(t, tag));
        }
        let mut tags = Vec::new();
        assert_eq!(m.release(3_000_000, |_, e| tags.push(e[8])), 3);
        assert_eq!(tags, [1, 3, 2]);
        m.push(&event(4_000_000, 5));
        tags.clear();
        assert_eq!(m.release(u64::MAX, |_, e| tags.push(e[8])), 2);
        assert_eq!(tags, [5, 4]);
    }

    #[test]
    fn events_of_one_moment_stand_in_the_order_of_their_streams() {
        let mut m = Merge::default();
        let (a, b) = (StreamId::cpu(0), StreamId::cpu(1));
        for stream in [StreamId::TRACER, b, a, b] {
            m.push_from(stream, &7u64.to_le_bytes());
        }
        let mut streams = Vec::new();
        m.release(u64::MAX, |s, _| streams.push(s));
        assert_eq!(streams, [a, b, b, StreamId::TRACER]);
    }
}
