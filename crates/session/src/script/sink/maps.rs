//! A script's maps: what was collected elsewhere comes into them before they are read.

use super::super::collecting;
use super::Script;
use lang::script::run::Event;

impl Script {
    /// Adds what was collected elsewhere to maps that are about to be read.
    pub(super) fn sync(&mut self, maps: impl Iterator<Item = usize>) {
        self.sync_records();
        let Some(collected) = self.collected.clone() else { return };
        let machine = &mut self.machine;
        let failed = collecting::taken(&collected, maps, |map, t| machine.merge(map, &t.key, &t.words));
        self.unread.extend(failed);
    }

    /// Adds what was collected of the records of functions.
    fn sync_records(&mut self) {
        let Some(mut from_records) = self.from_records.take() else { return };
        let mut unknown = Vec::new();
        self.with_host(None, self.last, |machine, host, _| {
            let each = |clause, event: &dyn Event, held| machine.collected(clause, event, held, host);
            from_records.drain(each, |clause, n| unknown.push((clause, n)));
        });
        unknown.iter().for_each(|(clause, n)| self.machine.unknown(*clause, *n));
        self.from_records = Some(from_records);
    }

    /// A thread that had records has ended.
    pub(super) fn forget_records(&mut self, tid: u32) {
        if let Some(from_records) = &mut self.from_records {
            from_records.forget_thread(tid);
            if from_records.is_full() {
                self.sync_records();
            }
        }
    }
}
