//! Folded stacks: a line for each distinct stack, which flamegraph.pl, inferno and speedscope read.
//!
//! ```text
//! bash;main;execute_command;[libc.so.6];vfs_write_[k] 42
//! ```
//!
//! Outermost first, after the name of the group ([`By`]). Stacks that differ only in lines or files are one line. `;` and control
//! characters in names are escaped ([`name::without_separator`]); [`name::mark`] tells what is behind a name. Lines are in
//! the order of their text.

use super::stacks::{StackId, Stacks};
use super::{By, name};
use std::collections::{BTreeMap, HashMap};

/// Appends all stacks, with their weights.
pub fn write(stacks: &Stacks, by: By, out: &mut Vec<u8>) {
    for (line, weight) in lines(stacks, by) {
        out.extend_from_slice(line.as_bytes());
        out.push(b' ');
        crate::text::number::dec(weight, out);
        out.push(b'\n');
    }
}

/// The stacks, folded, and their weights.
pub(super) fn lines(stacks: &Stacks, by: By) -> BTreeMap<String, u64> {
    let names: Vec<String> = (0..stacks.frame_count() as u32).map(|id| frame(stacks, id)).collect();
    let mut tails: HashMap<StackId, String> = HashMap::new();
    let mut all = BTreeMap::new();
    for e in stacks.entries() {
        let tail = tails.entry(e.stack).or_insert_with(|| fold(stacks.frames_of(e.stack), &names));
        let mut line = by.group(stacks.labels_of(e.labels)).map_or_else(String::new, |g| safe(&g));
        if !line.is_empty() && !tail.is_empty() {
            line.push(';');
        }
        line.push_str(tail);
        if line.is_empty() {
            line.push_str("[unknown]");
        }
        let weight = all.entry(line).or_insert(0u64);
        *weight = weight.saturating_add(e.tally.weight);
    }
    all
}

fn fold(frames: &[u32], names: &[String]) -> String {
    let mut out = String::new();
    for (i, id) in frames.iter().rev().enumerate() {
        if i > 0 {
            out.push(';');
        }
        out.push_str(&names[*id as usize]);
    }
    out
}

fn frame(stacks: &Stacks, id: u32) -> String {
    let f = stacks.frame_at(id);
    format!("{}{}", safe(&name::function(&f)), name::mark(&f))
}

fn safe(text: &str) -> String {
    name::without_separator(text).into_owned()
}
