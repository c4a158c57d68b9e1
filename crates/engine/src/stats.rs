//! What backends count: events that were lost the buffer size that would have kept them, enablings, missed runs, costs.

pub mod planned;
pub mod totals;

use crate::request::expression::Filtered;
use crate::request::probe_enabling::ProbeEnabling;
use events::Class;
use planned::PlannedFile;
pub use unwind::Ended;

/// The counters of a session at its end.
#[derive(Debug, Default)]
pub struct Report {
    /// Dropped events, in all and by class.
    pub losses: Losses,
    /// The `--buffer` with which all would have found room, in bytes, where that is known.
    pub large_enough_buffer: Option<u64>,
    /// Missed runs: the kernel skipped the program because it was already running on that CPU. Nobody has seen these events.
    pub missed: Missed,
    /// Events that filters in the kernel rejected.
    pub filtered: Filtered,
    /// What was counted of enablings, by number, those that were taken away included; of calls, where it is counted for each.
    pub enablings: Vec<(u32, Counts)>,
    /// What was counted of stacks.
    pub stacks: StackCounts,
    /// These counts as lines that are kept with a trace.
    pub lines: Vec<String>,
    /// What the session has cost in the kernel.
    pub cost: Option<Cost>,
    /// What a session without durations has not captured.
    pub not_captured: Option<NotCaptured>,
    /// Programs that are not shown to the session's user.
    pub let_go: LetGo,
    /// Threads that had not finished exiting when the session ended: their last events are missing.
    pub cut_off: u64,
    /// The tracer process was killed before its work was done.
    pub killed: bool,
    /// The events could no longer be read, so the session has ended.
    pub unreadable: bool,
    /// What went wrong during the session, and what was lost by it; a line each.
    pub trouble: Vec<String>,
    /// What could not be traced from the beginning, such as a file without symbols; a line each.
    pub left_out: Vec<String>,
    /// Files whose functions the agent was to trace.
    pub planned: Vec<PlannedFile>,
    /// Processes that the agent has begun to trace.
    pub traced: u64,
}

/// What is not captured where nothing runs at the entry of calls (`--no-duration`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotCaptured {
    /// Arguments whose memory had to be read at entry.
    pub arguments: u64,
    /// Calls that did not return: a thread has ended in them, or was in them at the end of the session.
    pub calls: u64,
}

impl NotCaptured {
    /// The word that the line in a trace begins with.
    const WORD: &str = "not_captured ";

    /// As it is kept with a trace: `not_captured ARGUMENTS CALLS`.
    pub fn line(&self) -> String {
        format!("{}{} {}", NotCaptured::WORD, self.arguments, self.calls)
    }

    /// From a line of a trace.
    pub fn parse(line: &str) -> Option<NotCaptured> {
        let (arguments, calls) = line.strip_prefix(NotCaptured::WORD)?.split_once(' ')?;
        Some(NotCaptured { arguments: arguments.parse().ok()?, calls: calls.parse().ok()? })
    }

    /// In words.
    pub fn words(&self) -> String {
        let some = |n: u64, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
        let arguments = some(self.arguments, "argument", "arguments");
        format!(
            "{arguments} and {} not captured (--no-duration)",
            some(self.calls, "call without return", "calls without return")
        )
    }
}

/// Programs whose tasks are not shown to the session's user: names of the first ones, and how many.
pub type LetGo = (Vec<String>, u64);

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
    /// Adds others.
    pub fn add(&mut self, other: &Losses) {
        self.total += other.total;
        for (id, n) in &other.classes {
            match self.classes.iter_mut().find(|(known, _)| known == id) {
                Some((_, sum)) => *sum += n,
                None => self.classes.push((*id, *n)),
            }
        }
    }

    /// Events of a class.
    pub fn of(&self, class: u16) -> u64 {
        self.classes.iter().find(|(id, _)| *id == class).map_or(0, |(_, n)| *n)
    }

    /// Events of trapline's own bookkeeping (`process:*`), which are none of the enabled probes.
    pub fn bookkeeping(&self) -> u64 {
        let own = |id: u16| events::registry::by_id(id).is_some_and(|s| s.class == Class::Process);
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
    /// The assumed size of events whose size is not known, bytes.
    const USUAL: u64 = 64;
    let each = passed.bytes.checked_div(passed.events).unwrap_or(USUAL) + EACH;
    (size + dropped.checked_mul(each)?).checked_next_power_of_two()
}

/// What was counted of stacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackCounts {
    /// User stacks that were walked by tables, by how they ended, in the order of [`unwind::Ended::ALL`].
    pub endings: Vec<u64>,
    /// Return addresses that return probes had replaced and that were found.
    pub repaired: u64,
    /// Stacks that found a ring full: their events have none.
    pub lost: u64,
    /// What was done to keep the tables: name and number; none where there are no tables.
    pub tables: Vec<(&'static str, u64)>,
}

impl StackCounts {
    /// Adds others.
    pub fn add(&mut self, other: &StackCounts) {
        self.endings.resize(self.endings.len().max(other.endings.len()), 0);
        self.endings.iter_mut().zip(&other.endings).for_each(|(n, more)| *n += more);
        self.repaired += other.repaired;
        self.lost += other.lost;
    }
}

/// What was counted of an enabling.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events that happened.
    pub seen: u64,
    /// Events that were taken out of its rings, or have passed its filter.
    pub recorded: u64,
    /// Events that found a ring full, or the scratch buffer taken.
    pub dropped: u64,
    /// Events that its filter rejected.
    pub filtered: u64,
    /// Of these, by the filter's parts; after the last part that has a counter of its own, parts share one.
    pub parts: Vec<u64>,
    /// Runs of its program that the kernel skipped because it was already running on that CPU.
    pub missed: u64,
    /// For returns of functions: how often they were entered.
    pub entered: Option<u64>,
    /// Of several places: those where the kernel puts no breakpoint.
    pub refused: Vec<String>,
    /// The number of its streams, from 1; none where it shares them with others.
    pub streams: Option<u32>,
    /// Runs of its program, and the time that they took, ns; 0 where the kernel was not asked to measure.
    pub cost: (u64, u64),
}

impl Counts {
    /// Functions that were entered and whose returns the program has not seen.
    pub fn without_return(&self) -> u64 {
        self.entered.map_or(0, |n| n.saturating_sub(self.seen + self.missed))
    }

    /// Events that happened, as far as they are counted under the enabling's name: what was recorded of many probes that share a program
    /// is counted under theirs.
    pub fn seen_by_name(&self, of: &ProbeEnabling) -> u64 {
        if of.members.is_empty() { self.seen } else { self.dropped + self.filtered }
    }

    /// Adds what was counted of the same enabling elsewhere.
    pub fn add(&mut self, other: &Counts) {
        self.seen += other.seen;
        self.recorded += other.recorded;
        self.dropped += other.dropped;
        self.filtered += other.filtered;
        self.missed += other.missed;
    }

    /// As it is kept with a trace: `enabling SEEN DROPPED FILTERED MISSED LABEL`.
    pub fn line(&self, label: &str) -> String {
        let Counts { seen, dropped, filtered, missed, .. } = self;
        format!("enabling {seen} {dropped} {filtered} {missed} {label}")
    }
}

/// Runs that the kernel skipped because the program was already running on that CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missed {
    /// All of them. A call that is missed at both ends counts twice.
    pub total: u64,
    /// By event class, where the program determines it.
    pub classes: Vec<(u16, u64)>,
}

/// What a program has cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spent {
    /// The probe, or the program's name.
    pub name: String,
    /// Runs.
    pub runs: u64,
    /// Time, ns.
    pub ns: u64,
}

/// What a session has cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Of each program that ran; none where the kernel was not asked to measure.
    pub programs: Option<Vec<Spent>>,
    /// CPU time of the drain thread, ns.
    pub drain_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use events::generated as g;

    #[test]
    fn what_is_not_captured_is_read_as_it_was_written() {
        let lost = NotCaptured { arguments: 1, calls: 20 };
        assert_eq!(NotCaptured::parse(&lost.line()), Some(lost));
        assert_eq!(lost.words(), "1 argument and 20 calls without return not captured (--no-duration)");
        for bad in ["not_captured 1", "not_captured x 1", "enabling 9 0 0 0 x", ""] {
            assert_eq!(NotCaptured::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn bookkeeping_is_told_from_events() {
        let read = events::registry::by_name("read").unwrap().id;
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
