//! Stacks of the calls that threads are in. No program can walk those of their processes: the helpers of the kernel read the memory of the thread
//! that runs.
//!
//! ```text
//! task iterator ─┬► registers ─► memory by process_vm_readv ─┬► process:stack, id ─► task iterator: still in the call?
//!                └► kernel's stack ──────────────────────────┘
//! ```
//!
//! Nobody is stopped: while a thread is in a call, its registers and its stack stay as they are. A stack counts if the thread was in the call all
//! the while. Rings are emptied while tables of files are made.

use super::Kernel;
use super::in_flight::{Seen, parse, still};
use engine::backend::code::{build_beside, id_of};
use engine::backend::in_flight::InFlight;
use engine::backend::stacks::Stacks;
use engine::capture::captures::Captures;
use engine::own_events::{self, Stack};
use engine::plan::Plan;
use engine::request::call_enabling::CallCaptures;
use events::Schema;
use std::collections::HashMap;
use std::io;
use std::time::Duration;

/// Walks them.
pub struct Walker {
    /// Classes with stacks, by those of their calls, and how many frames.
    classes: HashMap<u16, (&'static Schema, Captures)>,
    stacks: Stacks,
}

/// The memory of such a call may be that of the new program.
const REPLACING: [&str; 2] = ["execve", "execveat"];

impl Walker {
    /// One for the calls of a plan; none where they have no stacks.
    pub fn of(plan: &Plan) -> Option<Walker> {
        let has_stacks = |c: &&CallCaptures| c.frames.ustack > 0 || c.frames.kstack > 0;
        let captures = plan.call_captures.iter().filter(has_stacks).filter(|c| !REPLACING.contains(&c.schema.name));
        let classes: HashMap<_, _> = captures.map(|c| (c.schema.base, (c.schema, c.frames))).collect();
        (!classes.is_empty()).then(|| Walker { classes, stacks: Stacks::default() })
    }

    fn class(&self, call: &InFlight) -> Option<(&'static Schema, Captures)> {
        self.classes.get(&call.class().0.id).copied()
    }
}

impl Kernel {
    /// Gives calls the stacks of their threads, where their events have stacks.
    pub(super) fn walk(&mut self, calls: &mut [InFlight]) {
        let Some(mut walker) = self.walker.take() else { return };
        if calls.iter().any(|call| walker.class(call).is_some()) {
            // Other programs may have been executed since, and code mapped.
            walker.stacks.forget_all();
            if self.walk_by(&mut walker, calls).is_err() {
                calls.iter_mut().for_each(|call| call.stacks = None);
            }
        }
        self.walker = Some(walker);
    }

    fn walk_by(&mut self, walker: &mut Walker, calls: &mut [InFlight]) -> io::Result<()> {
        let Some(iterator) = &self.loaded.iterator else { return Ok(()) };
        let seen = parse(&iterator.read(0, u64::MAX)?).into_iter();
        let seen: HashMap<_, _> = seen.map(|s| ((s.call.tid, s.call.start), s)).collect();
        for call in calls.iter_mut() {
            if let Some((class, frames)) = walker.class(call)
                && let Some(seen) = seen.get(&(call.tid, call.start))
                && let Some(ids) = self.stacks_of(walker, seen, frames, call.now.saturating_sub(1))
            {
                call.stacks = Some((class, ids));
            }
        }
        let Some(iterator) = &self.loaded.iterator else { return Ok(()) };
        let still = still(iterator, 0, u64::MAX)?;
        let gone = calls.iter_mut().filter(|call| !still.contains(&(call.tid, call.start)));
        gone.for_each(|call| call.stacks = None);
        Ok(())
    }

    /// The ids of a call's stacks, which are reported at a time before the call's notice; none where registers are not known.
    fn stacks_of(&mut self, walker: &mut Walker, seen: &Seen, frames: Captures, time: u64) -> Option<[u64; 2]> {
        const KERNEL: u64 = 1;
        let registers = seen.registers?;
        let (pid, tid) = (seen.call.pid, seen.call.tid);
        let mut ids = [0; 2];
        if frames.kstack > 0 {
            let frames = &seen.kernel[..seen.kernel.len().min(frames.kstack.into())];
            ids[0] = id_of(frames, 0);
            self.report(time, (pid, tid), &Stack { numbers: [ids[0], KERNEL, 0, 0], frames });
        }
        if frames.ustack > 0 {
            let mut found = None;
            let mut drain = || {
                self.fill();
                std::thread::sleep(Duration::from_millis(1));
            };
            let mut build = |bytes| build_beside(bytes, &mut drain);
            let who = (pid as i32, tid as i32);
            ids[1] = walker.stacks.of(who, registers, frames.ustack.into(), &mut build, |stack| {
                found = Some((stack.numbers, stack.frames.to_vec()));
                true
            });
            if let Some((numbers, frames)) = found {
                self.report(time, (pid, tid), &Stack { numbers, frames: &frames });
            }
        }
        Some(ids)
    }

    fn report(&mut self, time: u64, who: (u32, u32), stack: &Stack<'_>) {
        let mut event = Vec::new();
        own_events::stack(time, who, stack, &mut event);
        self.merge.push(&event);
    }
}
