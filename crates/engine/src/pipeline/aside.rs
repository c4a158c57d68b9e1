//! Threads of a session stay off the processor that most of their events come from.
//!
//! The threads that take and store events have a real-time priority, and the kernel wakes such a thread where it ran last, whatever else
//! runs there. On the processor of a traced thread it would take a tenth of that thread's time.

use sys::processors::Processors;

/// Events of a round that say where they come from.
const ENOUGH: usize = 64;
/// Rounds that must agree.
const ROUNDS: u32 = 3;

/// Which processor most of the events of a round come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// This one: three quarters or more.
    Cpu(u32),
    /// From several.
    Several,
    /// There are too few.
    Unknown,
}

impl Origin {
    /// The origin of these numbers of events, by processor.
    pub fn of(counts: impl Iterator<Item = (u32, usize)>) -> Origin {
        let (mut all, mut most) = (0, (0, 0));
        for (cpu, n) in counts {
            all += n;
            most = if n > most.1 { (cpu, n) } else { most };
        }
        match () {
            () if all < ENOUGH => Origin::Unknown,
            () if most.1 >= all - all / 4 => Origin::Cpu(most.0),
            () => Origin::Several,
        }
    }
}

/// What the thread that takes events decides.
#[derive(Debug)]
pub struct Choice {
    off: Option<u32>,
    last: Origin,
    rounds: u32,
}

impl Default for Choice {
    fn default() -> Choice {
        Choice { off: None, last: Origin::Unknown, rounds: 0 }
    }
}

impl Choice {
    /// After a round: the processor to stay off from now on, or that there is none any more; none where nothing changes.
    pub fn after(&mut self, origin: Origin) -> Option<Option<u32>> {
        let off = match origin {
            Origin::Unknown => return None,
            Origin::Several => None,
            Origin::Cpu(cpu) => Some(cpu),
        };
        self.rounds = if self.last == origin { self.rounds.saturating_add(1) } else { 1 };
        self.last = origin;
        (self.rounds >= ROUNDS && self.off != off).then(|| {
            self.off = off;
            off
        })
    }
}

/// The processors of a thread.
pub struct Aside(Option<Processors>);

impl Aside {
    /// Those that the calling thread may run on now. The thread stays where it is if that is not known.
    pub fn here() -> Aside {
        Aside(Processors::allowed().ok())
    }

    /// Has the calling thread stay off a processor, if it may run on another, or run anywhere.
    pub fn keep_off(&self, cpu: Option<u32>) {
        let Some(allowed) = &self.0 else { return };
        let others = cpu.map_or(Some(*allowed), |cpu| allowed.without(cpu));
        // A processor may have gone: then the kernel decides.
        let _ = others.map(|others| others.restrict());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_three_quarters_of_enough_events() {
        let of = |counts: &[usize]| Origin::of((0..).zip(counts.iter().copied()));
        assert_eq!(of(&[0, 0]), Origin::Unknown);
        assert_eq!(of(&[63, 0]), Origin::Unknown);
        assert_eq!(of(&[64, 0]), Origin::Cpu(0));
        assert_eq!(of(&[20, 60]), Origin::Cpu(1));
        assert_eq!(of(&[50, 50]), Origin::Several);
        assert_eq!(of(&[29, 71]), Origin::Several);
    }

    #[test]
    fn a_choice_needs_rounds_that_agree() {
        let mut choice = Choice::default();
        let [one, two] = [Origin::Cpu(1), Origin::Cpu(2)];
        let mut after = |origins: &[Origin]| origins.iter().filter_map(|o| choice.after(*o)).collect::<Vec<_>>();
        assert_eq!(after(&[one, two, one, one]), []);
        assert_eq!(after(&[Origin::Unknown, one]), [Some(1)]);
        assert_eq!(after(&[one, one, one, two, two, one]), []);
        assert_eq!(after(&[two, two, two, two]), [Some(2)]);
        assert_eq!(after(&[Origin::Several; 5]), [None]);
        assert_eq!(after(&[one, one, one]), [Some(1)]);
    }
}
