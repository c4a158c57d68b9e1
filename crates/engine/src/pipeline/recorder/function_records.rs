//! Function records: how they get into packets, and their clock.

use super::{Job, MOST_LOST, Outlet, Recorder, Stream, Tsc, is_old};
use ctf::packet::PacketWriter;
use events::functions::{self, RECORD, Run, word};

impl Recorder {
    /// Keeps function records of a thread, all of them: the filter is applied when the trace is read.
    pub fn functions(&mut self, run: &Run<'_>) {
        self.note_clock(run);
        if !self.streams.contains_key(&run.stream) {
            let packets = PacketWriter::of_functions(self.uuid, run.stream, run.pid, run.from);
            let packets = if self.values { packets.with_values() } else { packets };
            self.streams.insert(run.stream, Stream { packets: packets.full_at(self.packet), taken: 0 });
            self.close(run.stream);
        } else if run.begins
            || run.dropped > 0
            || self.streams.get(&run.stream).is_some_and(|s| s.packets.pid() != run.pid)
        {
            self.close_open(run.stream);
        }
        let Some(s) = self.streams.get_mut(&run.stream) else { return };
        if run.begins && s.taken > 0 || s.packets.pid() != run.pid {
            s.packets.begin_thread(run.pid);
        }
        s.packets.set_discarded(s.packets.discarded().saturating_add(run.dropped).min(MOST_LOST));
        for (high, part) in run.parts() {
            let count = |part: &[u8]| match self.values {
                false => {
                    let all = part.as_chunks::<RECORD>().0;
                    (all.len() as u64, all.iter().fold(0u32, |n, r| n + (word(r) & 1)).into())
                }
                true => functions::each(part)
                    .fold((0u64, 0u64), |(n, exits), r| (n + 1, exits + u64::from(functions::parts_of(r).0 & 1))),
            };
            let (all, exits) = count(part);
            self.count_functions(all, exits);
            let mut rest = part;
            while !rest.is_empty() {
                let Some(s) = self.streams.get_mut(&run.stream) else { return };
                if !s.packets.takes_records(high) || is_old(&s.packets, run.to.monotonic) {
                    self.close_open(run.stream);
                }
                let Some(s) = self.streams.get_mut(&run.stream) else { return };
                let taken = s.packets.push_records(rest, high, run.from, run.to);
                s.taken +=
                    if self.values { functions::each(&rest[..taken]).count() as u64 } else { (taken / RECORD) as u64 };
                let full = s.packets.is_full();
                rest = &rest[taken..];
                if full {
                    self.close(run.stream);
                } else if taken == 0 {
                    break;
                }
            }
        }
    }

    /// Counts records of functions by class.
    fn count_functions(&mut self, records: u64, exits: u64) {
        for (class, n) in [(functions::entry(), records - exits), (functions::exit(), exits)] {
            let id = usize::from(class.id);
            if id >= self.taken.len() {
                self.taken.resize(id + 1, 0);
            }
            self.taken[id] += n;
        }
    }

    /// Measures the time stamp counter, and describes it, with the streams that have it, before the first packet, and again when it is known
    /// better.
    fn note_clock(&mut self, run: &Run<'_>) {
        if self.first_event.is_none() {
            self.first_event = Some(run.from.monotonic);
        }
        let (first, described) = self.tsc.map_or((run.from, 0), |t| (t.first, t.described));
        let span = run.to.monotonic.saturating_sub(first.monotonic);
        self.tsc = Some(Tsc { first, last: run.to, described });
        if described == 0 || span / 8 > described {
            self.describe_clock();
        }
    }

    pub(super) fn describe_clock(&mut self) {
        let Some(tsc) = &mut self.tsc else { return };
        tsc.described = tsc.last.monotonic.saturating_sub(tsc.first.monotonic).max(1);
        let moments = (tsc.first, tsc.last);
        match &mut self.outlet {
            Outlet::Waiting(writer) | Outlet::Inline(writer) => writer.set_clock(moments),
            Outlet::Thread(_) => {
                self.shared.queue().jobs.push_back(Job::Clock(moments));
                self.shared.ready.notify_one();
            }
            Outlet::Lost => {}
        }
    }
}
