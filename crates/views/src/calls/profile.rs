//! Calls as a profile: the stacks of functions, weighed by the time in the innermost one, or by how often it was called.
//!
//! [`crate::profile`] draws it: flame graphs, folded lines, tables.

use super::by_thread::{ByThread, How};
use super::contexts::Contexts;
use super::{Functions, Thread};
use crate::profile::flame::Flame;
use crate::profile::{By, Frame, FrameId, Labels, Stacks, Tally, Unit, folded};
use std::collections::HashMap;

/// Appends a flame graph of the time in functions.
pub fn flame(calls: &dyn ByThread, how: &How, out: &mut Vec<u8>) {
    Flame { title: calls.command(), by: By::Nothing, icicle: how.icicle }.write(&stacks(calls), out);
}

/// Appends folded stacks of the time in functions.
pub fn folded(calls: &dyn ByThread, _: &How, out: &mut Vec<u8>) {
    folded::write(&stacks(calls), By::Nothing, out);
}

/// Stacks of functions, with the time in them.
fn stacks(calls: &dyn ByThread) -> Stacks {
    let mut stacks = Weight::Own.profile();
    stacks.set_lost(calls.lost());
    calls.contexts(&mut |thread, contexts| add(&mut stacks, contexts, thread, Weight::Own, calls.functions()));
    stacks
}

/// What stacks are weighed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Weight {
    /// Time in the innermost function, ns.
    #[default]
    Own,
    /// How often it was called.
    Calls,
}

impl Weight {
    /// An empty profile with these weights.
    pub fn profile(self) -> Stacks {
        Stacks::new(match self {
            Weight::Own => Unit::Nanoseconds,
            Weight::Calls => Unit::Events,
        })
    }
}

/// Adds the calls of a thread to a profile that [`Weight::profile`] has made. Frames beyond the most that a profile holds are cut.
pub fn add(stacks: &mut Stacks, contexts: &Contexts, thread: Thread<'_>, weight: Weight, functions: &dyn Functions) {
    let labels = stacks.labels(Labels { pid: thread.pid, tid: thread.tid, comm: thread.comm });
    let mut frames: HashMap<u32, FrameId> = HashMap::new();
    let mut path = Vec::new();
    for n in contexts.nodes.iter().skip(1) {
        let weight = match weight {
            Weight::Own => n.own,
            Weight::Calls => n.calls,
        };
        if weight == 0 {
            continue;
        }
        path.clear();
        let mut at = n;
        while at.function != 0 && path.len() < crate::profile::stacks::MAX_DEPTH {
            let number = at.function;
            path.push(*frames.entry(number).or_insert_with(|| {
                let unknown = format!("[function {number}]");
                let function = functions.name(number).unwrap_or(&unknown);
                stacks.frame(&Frame { function, module: functions.module(number), ..Frame::default() })
            }));
            at = &contexts.nodes[at.parent as usize];
        }
        let stack = stacks.stack(&path);
        stacks.add_many(stack, labels, Tally { samples: n.calls, weight }, 0);
    }
}
