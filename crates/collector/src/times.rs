//! When a session records what the agent writes: between its starts and stops, and each enabling until it is taken away. A record counts by its
//! own time, not by the moment at which it is read. Stops and removals have each the clock of the records that are asked about.

use engine::request::enabling::Enabling;

/// The times of a session.
pub struct Times {
    /// Since when the session runs, or is stopped, in order.
    phases: Vec<(u64, bool)>,
    /// Enablings that were taken away, by number, and when.
    removed: Vec<(u32, u64)>,
}

impl Times {
    /// Of a session that runs, or is stopped, from its beginning on.
    pub fn new(running: bool) -> Times {
        Times { phases: vec![(0, running)], removed: Vec::new() }
    }

    /// From this moment on the session is stopped, or runs.
    pub fn switch(&mut self, at: u64, running: bool) {
        let last = self.phases.last().map_or(0, |p| p.0);
        self.phases.push((at.max(last), running));
    }

    /// Some of these were taken away, at this moment those of which that is new.
    pub fn remove(&mut self, at: u64, all: &[Enabling]) {
        for e in all.iter().filter(|e| e.removed) {
            if !self.removed.iter().any(|(id, _)| *id == e.id) {
                self.removed.push((e.id, at));
            }
        }
    }

    /// The session was never stopped.
    pub fn always_runs(&self) -> bool {
        matches!(self.phases[..], [(_, true)])
    }

    /// Whether the session runs at a moment.
    pub fn runs_at(&self, at: u64) -> bool {
        let phase = self.phases.partition_point(|p| p.0 <= at).max(1) - 1;
        self.phases.get(phase).is_some_and(|p| p.1)
    }

    /// Whether the enabling with this number has not been taken away by then.
    pub fn has(&self, id: u32, at: u64) -> bool {
        self.removed.iter().all(|(gone, since)| *gone != id || at < *since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::request::enabling::of_calls;
    use engine::request::select::Calls;

    #[test]
    fn times_of_records_count() {
        let mut times = Times::new(true);
        assert!(times.always_runs() && times.runs_at(0));
        times.switch(10, false);
        times.switch(20, true);
        assert!(!times.always_runs());
        assert_eq!([9, 10, 19, 20].map(|at| times.runs_at(at)), [true, false, false, true]);
        let mut all = of_calls(&Calls::parse("read").unwrap());
        times.remove(30, &all);
        assert!(times.has(0, 31));
        all[0].removed = true;
        times.remove(40, &all);
        times.remove(50, &all);
        assert_eq!([39, 40, 45].map(|at| times.has(0, at)), [true, false, false]);
        assert!(times.has(1, 45));
    }
}
