//! Events that a session has lost before anybody could take them over: which, and what would have kept them.

use events::Class;

/// What was lost on the way from the target to the front end: rings were full, or could not be written to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Events.
    pub total: u64,
    /// Those of calls, signals and of trapline's bookkeeping, by class id. What is not in it is of other probes, or of a class that
    /// nobody knows.
    pub classes: Vec<(u16, u64)>,
}

impl Losses {
    /// Events of a class.
    pub fn of(&self, class: u16) -> u64 {
        self.classes.iter().find(|(id, _)| *id == class).map_or(0, |(_, n)| *n)
    }

    /// Events of trapline's own bookkeeping (`process:*`), which are none of the enabled probes.
    pub fn bookkeeping(&self) -> u64 {
        let own = |id: u16| events::schema::by_id(id).is_some_and(|s| s.class == Class::Process);
        self.classes.iter().filter(|(id, _)| own(*id)).map(|(_, n)| n).sum()
    }

    /// Events of enabled probes.
    pub fn events(&self) -> u64 {
        self.total.saturating_sub(self.bookkeeping())
    }
}

/// What went through a ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Events that were taken out.
    pub events: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Passed {
    /// An event was taken out.
    pub fn add(&mut self, event: &[u8]) {
        self.events += 1;
        self.bytes += event.len() as u64;
    }
}

/// How large a ring must have been to hold all that it has lost beside what was in it: a power of two, in bytes. `size`: how large it
/// was.
pub fn large_enough(size: u64, passed: Passed, dropped: u64) -> Option<u64> {
    /// What the ring keeps for each event (`struct bpf_ringbuf_hdr`, kernel/bpf/ringbuf.c), and what it rounds up.
    const EACH: u64 = 8 + 4;
    /// Events of which nothing is known are taken to be so large, bytes.
    const USUAL: u64 = 64;
    let each = passed.bytes.checked_div(passed.events).unwrap_or(USUAL) + EACH;
    (size + dropped.checked_mul(each)?).checked_next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;
    use events::generated as g;

    #[test]
    fn bookkeeping_is_told_from_events() {
        let read = events::schema::by_name("read").unwrap().id;
        let lost = Losses { total: 10, classes: vec![(read, 4), (g::P_EXIT.id, 2), (g::P_FORK.id, 1)] };
        assert_eq!((lost.events(), lost.bookkeeping(), lost.of(read), lost.of(g::P_EXEC.id)), (7, 3, 4, 0));
    }

    #[test]
    fn a_ring_is_large_enough_for_all_that_was_lost() {
        let passed = Passed { events: 100, bytes: 6000 };
        assert_eq!(large_enough(4096, passed, 1), Some(8192));
        assert_eq!(large_enough(4096, passed, 1000), Some(128 << 10));
        assert_eq!(large_enough(4096, Passed::default(), 1000), Some(128 << 10));
        assert_eq!(large_enough(4096, passed, u64::MAX / 2), None);
    }
}
