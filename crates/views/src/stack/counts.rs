//! Distinct stacks, the heaviest first: how much and how often, and below it the stack, innermost frame first.
//!
//! ```text
//! 1234 samples (48.62%) bash
//!  > /usr/lib/libc.so.6(write)
//!  > /usr/bin/bash(main) shell.c:1505
//! ```

use super::{Place, line};
use crate::profile::words::{ascii, in_all};
use crate::profile::{By, Frame, StackId, Stacks, name};
use std::cmp::Reverse;
use std::collections::HashMap;

/// Appends the `rows` heaviest stacks of each group together; those that weigh the same in the order of their first occurrence.
pub fn write(stacks: &Stacks, by: By, rows: usize, out: &mut Vec<u8>) {
    let mut weights: HashMap<(Option<String>, StackId), (u64, usize)> = HashMap::new();
    for (nth, e) in stacks.entries().iter().enumerate() {
        let key = (by.group(stacks.labels_of(e.labels)), e.stack);
        let (weight, _) = weights.entry(key).or_insert((0, nth));
        *weight = weight.saturating_add(e.tally.weight);
    }
    let mut all: Vec<_> = weights.into_iter().collect();
    let whole = stacks.kept();
    order::by_key(&mut all, |(_, (weight, nth))| (Reverse(*weight), *nth));
    out.extend_from_slice(in_all(stacks).as_bytes());
    out.push(b'\n');
    for ((group, id), (weight, _)) in all.iter().take(rows) {
        let share = name::percent(*weight, whole);
        let group = group.as_ref().map_or_else(String::new, |g| format!(" {}", ascii(g)));
        out.extend_from_slice(format!("\n{} ({share}){group}\n", stacks.unit().text(*weight)).as_bytes());
        for frame in stacks.frames_of(*id) {
            let frame: Frame<'_> = stacks.frame_at(*frame);
            line(&Place { frame, offset: None, address: None }, true, out);
        }
    }
    let more = all.len().saturating_sub(rows);
    if more > 0 {
        out.extend_from_slice(format!("\n{more} more {}\n", if more == 1 { "stack" } else { "stacks" }).as_bytes());
    }
}
