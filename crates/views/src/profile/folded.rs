//! Folded stacks: a line for each distinct stack, which flamegraph.pl, inferno and speedscope read.
//!
//! ```text
//! bash;main;execute_command;[libc.so.6];vfs_write_[k] 42
//! ```
//!
//! Outermost first, after the name of the group ([`By`]). Stacks that differ only in lines or files are one line. `;` and control
//! characters in names are escaped ([`name::without_separator`]); [`name::mark`] is what follows a name. Lines are in
//! the order of the names in them. Where events were lost, a last line says so, which weighs nothing: some readers take a file for
//! folded stacks only if each of its lines ends in a number, and others take each such line for a stack. Only numbers of names are held for a line, not its text.

use super::stacks::Stacks;
use super::style::{Style, Terminal};
use super::words::losses;
use super::{By, name};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Draws a profile as lines of stacks.
pub fn draw(stacks: &Stacks, style: &Style, _: Option<Terminal>, out: &mut Vec<u8>) {
    style.lens.whole(stacks, |seen| write(seen, style.by, out));
}

/// Appends all stacks, with their weights.
pub fn write(stacks: &Stacks, by: By, out: &mut Vec<u8>) {
    let folds = Folds::new([stacks], by);
    for (line, [weight]) in &folds.lines {
        folds.line(line, out);
        out.push(b' ');
        crate::write::number::dec(*weight, out);
        out.push(b'\n');
    }
    if let Some(lost) = losses(stacks.lost()) {
        out.extend_from_slice(format!("[{lost}] 0\n").as_bytes());
    }
}

/// How many events were lost, from the last line of a file.
pub fn parse_lost(line: &str) -> Option<u64> {
    let (n, words) = line.strip_prefix('[')?.split_once(' ')?;
    n.parse().ok().filter(|_| words == "events were lost] 0" || words == "event was lost] 0")
}

/// The lines of one or more profiles, each with its weight in each of them.
pub(super) struct Folds<const N: usize> {
    /// Names, in order.
    names: Vec<String>,
    /// By the indices of the names of a line.
    pub lines: BTreeMap<Vec<u32>, [u64; N]>,
}

impl<const N: usize> Folds<N> {
    pub fn new(profiles: [&Stacks; N], by: By) -> Folds<N> {
        let mut names: Vec<String> = Vec::new();
        for s in profiles {
            names.extend((0..s.frame_count() as u32).map(|id| frame(s, id)));
            let labels: BTreeSet<_> = s.entries().iter().map(|e| e.labels).collect();
            names.extend(labels.into_iter().filter_map(|l| group(s, by, l)));
        }
        names.push(NOTHING.to_owned());
        names.sort_unstable();
        names.dedup();
        let mut folds = Folds { names, lines: BTreeMap::new() };
        for (nth, s) in profiles.into_iter().enumerate() {
            folds.add(nth, s, by);
        }
        folds
    }

    fn add(&mut self, nth: usize, s: &Stacks, by: By) {
        let frames: Vec<u32> = (0..s.frame_count() as u32).map(|id| self.index(&frame(s, id))).collect();
        let mut groups = HashMap::new();
        for e in s.entries() {
            let group = groups.entry(e.labels).or_insert_with(|| group(s, by, e.labels).map(|g| self.index(&g)));
            let inner = s.frames_of(e.stack).iter().rev().map(|id| frames[*id as usize]);
            let mut line: Vec<u32> = group.iter().copied().chain(inner).collect();
            if line.is_empty() {
                line.push(self.index(NOTHING));
            }
            let weight = &mut self.lines.entry(line).or_insert([0; N])[nth];
            *weight = weight.saturating_add(e.tally.weight);
        }
    }

    fn index(&self, name: &str) -> u32 {
        self.names.binary_search_by(|n| n.as_str().cmp(name)).unwrap_or(0) as u32
    }

    /// Appends a line, without its weights and its end.
    pub fn line(&self, line: &[u32], out: &mut Vec<u8>) {
        for (i, name) in line.iter().enumerate() {
            if i > 0 {
                out.push(b';');
            }
            out.extend_from_slice(self.names[*name as usize].as_bytes());
        }
    }
}

/// The name of a stack without frames.
const NOTHING: &str = "[unknown]";

fn frame(stacks: &Stacks, id: u32) -> String {
    let f = stacks.frame_at(id);
    format!("{}{}", name::without_separator(&name::function(&f)), name::mark(&f))
}

fn group(stacks: &Stacks, by: By, labels: super::LabelsId) -> Option<String> {
    by.group(stacks.labels_of(labels)).map(|g| name::without_separator(&g).into_owned())
}
