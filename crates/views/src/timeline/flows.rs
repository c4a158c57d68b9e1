//! Who begins and wakes whom: both sides of each.

use super::Timeline;

/// One end of a flow between two threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct End {
    pub thread: usize,
    pub time: u64,
    /// The number of the flow, from 1: both ends have it.
    pub flow: u64,
    /// It is the end of the thread that is begun or woken.
    pub is_last: bool,
    pub what: &'static str,
}

/// The sides of all, by threads, each in the order of time.
pub(super) fn ends(timeline: &Timeline) -> Vec<End> {
    let mut ends = Vec::with_capacity(timeline.flows.len() * 2);
    for (flow, [time, from, to, kind]) in (1..).zip(&timeline.flows) {
        let (one, other) = if *kind == 0 { ("starts", "started") } else { ("wakes", "woken") };
        let end = |thread: u64, is_last, what| End { thread: thread as usize, time: *time, flow, is_last, what };
        ends.extend([end(*from, false, one), end(*to, true, other)]);
    }
    ends.sort_unstable();
    ends
}
