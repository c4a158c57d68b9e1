//! Times of threads on a processor and off it, from the scheduler's switches.
//!
//! ```text
//! switch   A ─► B                 B ─► A
//!          A was on a processor   A has waited: its state is that of the first switch
//! ```
//!
//! A recording of a command has the switches that its own threads make, and not those to them. A thread that does something is on a processor
//! again. The last state of a thread lasts to the end of the thread or of the trace.

use super::columns::Item;
use super::{Kind, Of, Timeline};
use events::Event;
use events::hash::Table;
use events::names::Names;
use events::traces::{beside, own};

/// The tracepoint of a switch from one thread to another.
pub(super) const SWITCH: &str = "tracepoint:sched:sched_switch";
/// What a thread does that runs.
pub(super) const ON: &str = "on a processor";
/// What a thread does that has left a processor, where nothing says when it has come back.
const AWAY: &str = "off a processor, and on one";
/// States of a thread that has ended: EXIT_DEAD and EXIT_ZOMBIE of `include/linux/sched.h`.
const ENDED: u64 = 0x30;

/// What threads do, and since when.
#[derive(Debug, Default)]
pub(super) struct Runs {
    states: Table<u32, (u64, &'static str)>,
    /// When threads have ended whose last switch has not come.
    exits: Table<u32, u64>,
}

/// What a thread does that goes off a processor: `TASK_*` of `include/linux/sched.h`, as the tracepoint has them.
fn state(bits: u64) -> &'static str {
    match bits & 0xff {
        0 => "waits for a processor",
        b if b & 2 != 0 => "waits in the kernel, uninterruptible",
        b if b & 1 != 0 => "waits",
        b if b & 0xc != 0 => "stopped",
        _ => "off a processor",
    }
}

impl Runs {
    /// Whether no switch has been seen.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// A thread begins, maybe with the number of one that has ended.
    pub fn began(&mut self, tid: u32) {
        self.states.remove(&tid);
        self.exits.remove(&tid);
    }

    /// A thread ends. Its last switch follows, where it is recorded.
    pub fn exited(&mut self, tid: u32, time: u64) {
        if self.states.contains_key(&tid) {
            self.exits.insert(tid, time);
        }
    }
}

impl Timeline {
    /// A switch from one thread to another.
    pub(super) fn switch(&mut self, ev: &Event<'_>, names: &dyn Names) {
        let thread = |field: &str| beside(ev.tid(), ev.value_of(field) as u32);
        let (from, to, bits) = (thread("prev_pid"), thread("next_pid"), ev.value_of("prev_state"));
        // Each machine has processors of its own: of several traces, a number says nothing.
        let cpu = names.cpu().filter(|_| names.origin(ev.tid()).is_none());
        self.turns(from, state(bits), ev.time(), cpu);
        self.turns(to, ON, ev.time(), cpu);
        if bits & ENDED != 0 {
            self.runs.states.remove(&from);
        }
    }

    /// A thread goes on a processor, or off it.
    fn turns(&mut self, tid: u32, next: &'static str, time: u64, cpu: Option<u32>) {
        // Each processor has an idle thread, and all of these have one number.
        if own(tid) == 0 {
            return;
        }
        let before = self.runs.states.insert(tid, (time, next));
        self.runs.exits.remove(&tid);
        let Some(thread) = self.processes.known(tid) else { return };
        let first = self.processes.threads()[thread].first;
        let (since, was) = before.unwrap_or((first, if next == ON { "off a processor" } else { ON }));
        let was = if next != ON && was != ON { AWAY } else { was };
        self.ran(thread, since, time, was);
        if was == ON
            && let Some(cpu) = cpu
        {
            self.ran_on(cpu, thread, since, time);
        }
    }

    /// A thread was in a state.
    fn ran(&mut self, thread: usize, since: u64, until: u64, state: &str) {
        let (name, length) = (self.strings.number(state), until.saturating_sub(since));
        self.rows.of(Of::Thread(thread), Kind::Run, 0).push(&Item { start: since, length, name, ..Item::default() });
    }

    /// A thread was on a processor.
    fn ran_on(&mut self, cpu: u32, thread: usize, since: u64, until: u64) {
        let Some(of) = self.processes.threads().get(thread) else { return };
        let name = self.strings.number(&format!("{} {}", of.name, own(of.tid)));
        let (length, subject) = (until.saturating_sub(since), thread as u64 + 1);
        let row = self.rows.of(Of::Cpu(cpu), Kind::Cpu, cpu);
        row.push(&Item { start: since, length, name, subject, ..Item::default() });
    }

    /// A thread has done something.
    pub(super) fn runs(&mut self, ev: &Event<'_>, thread: usize) {
        if let Some(state) = self.runs.states.get_mut(&ev.tid())
            && state.1 != ON
        {
            let (since, was) = std::mem::replace(state, (ev.time(), ON));
            self.ran(thread, since, ev.time(), was);
        }
    }

    /// The trace ends: threads are in their last states until then.
    pub(super) fn end_runs(&mut self) {
        let Runs { states, exits } = std::mem::take(&mut self.runs);
        let mut last: Vec<_> = states.into_iter().collect();
        last.sort_unstable();
        for (tid, (since, state)) in last {
            if let Some(thread) = self.processes.known(tid) {
                self.ran(thread, since, exits.get(&tid).copied().unwrap_or(self.last), state);
            }
        }
    }
}
