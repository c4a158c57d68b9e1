//! The counters of a recording: events recorded, and events lost.

use ctf::end::End;
use events::StreamId;
use std::collections::BTreeMap;

/// What was counted of a stream. Every event that the recorder took is in its files, or in one of the other two counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamTotals {
    /// Events that were taken.
    pub taken: u64,
    /// Of these, events that could not be written.
    pub unwritten: u64,
    /// Of these, events that were overwritten (`--max-size`, `--flight`).
    pub overwritten: u64,
    /// Events that found a ring full, and so never reached the recorder.
    pub discarded: u64,
}

impl StreamTotals {
    /// Events that were written, or kept in memory by a flight recorder, even if they were overwritten since.
    pub fn recorded(&self) -> u64 {
        self.taken.saturating_sub(self.unwritten)
    }

    fn add(&mut self, other: &StreamTotals) {
        self.taken += other.taken;
        self.unwritten += other.unwritten;
        self.overwritten += other.overwritten;
        self.discarded += other.discarded;
    }
}

/// The counters of a recording.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Events that were taken, by class id.
    pub taken: Vec<u64>,
    /// Of these, events that could not be written, by class id.
    pub unwritten: Vec<u64>,
    /// By stream.
    pub streams: BTreeMap<StreamId, StreamTotals>,
    /// Records of mappings that the kernel could not write because the earlier ones had not been read.
    pub lost_mappings: u64,
    /// Events that found a ring full, by class id, as far as that is known: not those of probes, which their enablings count.
    pub dropped: Vec<(u16, u64)>,
    /// Events that were overwritten (`--max-size`, `--flight`).
    pub overwritten: u64,
    /// Events whose time was set to that of the event before them.
    pub clamped: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// Time of the first event that is a call, ns of the monotonic clock.
    pub first_event: Option<u64>,
}

impl Totals {
    /// What was counted of an enabling: of the n-th probe that is no system call (from 1), or of all calls and what trapline says
    /// of processes (0), over all processors.
    pub fn of_enabling(&self, nth: u32) -> StreamTotals {
        let mut all = StreamTotals::default();
        self.streams.iter().filter(|(s, _)| u32::from(s.enabling()) == nth).for_each(|(_, t)| all.add(t));
        all
    }

    /// Writes into a record what was counted of classes.
    pub fn describe(&self, end: &mut End) {
        let name = |id: u16| Some(events::registry::by_id(id)?.probe().into_owned());
        let named = |counts: &[u64]| -> Vec<(String, u64)> {
            let some = (0u16..).zip(counts).filter(|(_, n)| **n > 0);
            some.filter_map(|(id, n)| Some((name(id)?, *n))).collect()
        };
        (end.taken, end.unwritten) = (named(&self.taken), named(&self.unwritten));
        end.dropped = self.dropped.iter().filter_map(|(id, n)| Some((name(*id)?, *n))).collect();
        (end.overwritten, end.clamped) = (Some(self.overwritten), Some(self.clamped));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use events::stream::Scope;

    #[test]
    fn an_enabling_has_the_streams_of_all_processors() {
        let of = |taken, unwritten| StreamTotals { taken, unwritten, overwritten: 1, discarded: 2 };
        let probe = |cpu| StreamId::new(Scope::Cpu(cpu), 1);
        let calls = [(StreamId::cpu(0), of(5, 0)), (StreamId::cpu(3), of(7, 1))];
        let streams = calls.into_iter().chain([(probe(0), of(11, 2)), (probe(3), of(13, 0))]);
        let own = [(StreamId::TRACER, of(17, 0)), (StreamId::MAPS, of(19, 3))];
        let t = Totals { streams: streams.chain(own).collect(), ..Totals::default() };
        assert_eq!(t.of_enabling(1), StreamTotals { taken: 24, unwritten: 2, overwritten: 2, discarded: 4 });
        assert_eq!((t.of_enabling(1).recorded(), t.of_enabling(2)), (22, StreamTotals::default()));
        assert_eq!(t.of_enabling(0).taken, 5 + 7 + 17 + 19);
    }
}
