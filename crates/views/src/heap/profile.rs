//! A heap as a profile, of which flame graphs, pprof and folded stacks are made: weights are bytes, samples are blocks.
//!
//! Malloc'd and mapped memory are groups of their own where both are there.

use super::Of;
use super::rows::{Row, Rows};
use crate::profile::{Blocks, By, FrameId, Labels, LabelsId, Stacks, Tally};

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
