//! A heap as a profile, of which flame graphs, pprof and folded stacks are made: weights are bytes, samples are blocks.
//!
//! Malloc'd and mapped memory are groups of their own where both are there.

use super::rows::{Row, Rows};
use super::{Of, Options};
use crate::profile::calltree::CallTree;
use crate::profile::flame::Flame;
use crate::profile::{Blocks, By, FrameId, Labels, LabelsId, Stacks, Tally, folded, pprof};

/// The profile, and what its views are grouped by.
pub fn profile(rows: &Rows, of: Of) -> (Stacks, By) {
    // Of these names, pprof knows the first two pairs.
    let (objects, space) = match of {
        Of::Outstanding => ("inuse_objects", "inuse_space"),
        Of::Total => ("alloc_objects", "alloc_space"),
        Of::Peak => ("peak_objects", "peak_space"),
    };
    let mut stacks = Stacks::of_memory(Blocks { objects, space });
    let [malloc, mmap] = ["malloc", "mmap"].map(|comm| stacks.labels(Labels { comm, ..Labels::default() }));
    let mut has_mapped = false;
    for row in rows.all() {
        add(rows, row, row.malloc(of), malloc, &mut stacks);
        has_mapped |= add(rows, row, row.mapped(of), mmap, &mut stacks);
    }
    (stacks, if has_mapped { By::Comm } else { By::Nothing })
}

/// Adds a row; whether there is something of it.
fn add(rows: &Rows, row: &Row, sum: super::Sum, labels: LabelsId, stacks: &mut Stacks) -> bool {
    if sum.blocks == 0 {
        return false;
    }
    let frames: Vec<FrameId> = rows.frames(row).map(|frame| stacks.frame(&frame)).collect();
    let stack = stacks.stack(&frames);
    let tally = Tally { samples: sum.blocks, weight: sum.bytes };
    stacks.add_many(stack, labels, tally, rows.summary.start);
    // The profile lasts up to now.
    stacks.add_many(stack, labels, Tally::default(), rows.summary.now);
    true
}

/// A flame graph.
pub fn flame(rows: &Rows, options: &Options, _realtime_offset: i64, out: &mut Vec<u8>) {
    let (stacks, by) = whole(rows, options);
    let mut title = format!("{}: memory, {}", options.name, options.of.name());
    if rows.summary.sample > 0 {
        let bytes = crate::units::size(rows.summary.sample);
        title += &format!(" (estimates: one sample for {bytes})");
    }
    let flame = Flame { title, by, ..Flame::default() };
    options.lens.whole(&stacks, |seen| flame.write(seen, out));
}

/// pprof's format, not compressed. `realtime_offset` is CLOCK_REALTIME minus the clock of the events, ns.
pub fn pprof(rows: &Rows, options: &Options, realtime_offset: i64, out: &mut Vec<u8>) {
    options.lens.whole(&whole(rows, options).0, |seen| pprof::write(seen, realtime_offset, out));
}

/// Folded stacks.
pub fn folded(rows: &Rows, options: &Options, _realtime_offset: i64, out: &mut Vec<u8>) {
    let (stacks, by) = whole(rows, options);
    options.lens.whole(&stacks, |seen| folded::write(seen, by, out));
}

/// A tree of functions, each below its callers.
pub fn calltree(rows: &Rows, options: &Options, _realtime_offset: i64, out: &mut Vec<u8>) {
    tree(rows, options, false, out);
}

/// A tree of functions, each below what it calls.
pub fn bottom_up(rows: &Rows, options: &Options, _realtime_offset: i64, out: &mut Vec<u8>) {
    tree(rows, options, true, out);
}

fn tree(rows: &Rows, options: &Options, bottom_up: bool, out: &mut Vec<u8>) {
    let (stacks, by) = whole(rows, options);
    let (lens, least) = (options.lens.clone(), options.least);
    CallTree { bottom_up, lens, by, least, rows: usize::MAX, width: usize::MAX }.write(&stacks, out);
}

fn whole(rows: &Rows, options: &Options) -> (Stacks, By) {
    let (mut stacks, by) = profile(rows, options.of);
    stacks.set_lost(Some(options.lost.unwrap_or(0).max(rows.summary.lost)));
    (stacks, by)
}
