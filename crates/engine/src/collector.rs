//! Takes events out of the ring, keeps the descriptor table, and hands both on.
//!
//! Live events arrive in the order of their emission, because one process writes them all. The collector never formats.

use crate::backend::Session;
use crate::fdtable::FdTable;
use events::Event;
use std::collections::BTreeMap;
use std::time::Duration;

/// Counters of one probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Events that reached the collector.
    pub seen: u64,
    /// Events that were shown or written.
    pub recorded: u64,
    /// Events that could not be written.
    pub dropped: u64,
    /// Events that a filter held back.
    pub filtered: u64,
}

/// What became of an event that was handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Shown or written.
    Recorded,
    /// Held back by a filter.
    Filtered,
    /// Lost on output.
    Dropped,
}

/// The collector of one session.
#[derive(Default)]
pub struct Collector {
    /// What is known of descriptors and processes.
    pub fds: FdTable,
    counters: BTreeMap<u16, Counters>,
    /// Time of the first event of an enabled probe, ns of the monotonic clock.
    pub first_event: Option<u64>,
    /// Frames that were no events. Always 0 unless something else wrote into the ring.
    pub malformed: u64,
    scratch: Vec<u8>,
}

impl Collector {
    /// Hands over everything that is in the ring. Returns the number of events.
    pub fn drain(&mut self, session: &mut Session, mut each: impl FnMut(&Event<'_>, &FdTable) -> Fate) -> usize {
        let mut scratch = std::mem::take(&mut self.scratch);
        let n = session.drain(&mut scratch, |frame| self.take(frame, &mut each));
        self.scratch = scratch;
        n
    }

    fn take(&mut self, frame: &[u8], each: &mut impl FnMut(&Event<'_>, &FdTable) -> Fate) {
        let Ok(ev) = Event::parse(frame) else {
            self.malformed += 1;
            return;
        };
        self.fds.before(&ev);
        let fate = each(&ev, &self.fds);
        self.fds.after(&ev);
        if ev.schema.class != events::Class::Process && self.first_event.is_none() {
            self.first_event = Some(ev.time());
        }
        let c = self.counters.entry(ev.schema.id).or_default();
        c.seen += 1;
        match fate {
            Fate::Recorded => c.recorded += 1,
            Fate::Filtered => c.filtered += 1,
            Fate::Dropped => c.dropped += 1,
        }
    }

    /// Events of these classes were taken as recorded, but could not be written after all.
    pub fn take_back(&mut self, classes: &[u16]) {
        for id in classes {
            if let Some(c) = self.counters.get_mut(id) {
                c.recorded -= 1;
                c.dropped += 1;
            }
        }
    }

    /// Counters per event class.
    pub fn counters(&self) -> impl Iterator<Item = (&'static events::Schema, Counters)> + '_ {
        self.counters.iter().filter_map(|(id, c)| Some((events::schema::by_id(*id)?, *c)))
    }

    /// How long to sleep when the ring was found empty `times` times in a row.
    pub fn pause(times: u32) -> Duration {
        Duration::from_millis((1u64 << times.min(4)).min(16))
    }
}
