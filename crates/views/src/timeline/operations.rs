//! Operations of io_uring: spans of their processes, because those of one thread overlap.

use super::columns::{Item, Rows};
use super::lanes::{self, Lanes};
use super::{Kind, Of};
use std::collections::BTreeMap;

/// The operations of a trace, by name, with the processes that have submitted them.
#[derive(Debug, Default)]
pub(super) struct Operations {
    all: BTreeMap<&'static str, Vec<(usize, Item)>>,
    /// Those that are in no row: too many overlap.
    pub crowded: u64,
}

impl Operations {
    /// An operation of a process.
    pub(super) fn add(&mut self, name: &'static str, process: usize, item: Item) {
        self.all.entry(name).or_default().push((process, item));
    }

    /// Puts the operations into rows, behind the rows of the `sets` of spans.
    pub(super) fn end(&mut self, rows: &mut Rows, sets: usize) {
        for (nth, all) in (sets as u32..).zip(self.all.values_mut()) {
            order::by_key(all, |(_, item)| item.start);
            let mut lanes = Lanes::default();
            for (process, item) in all.drain(..) {
                match lanes.place(process, item.start, item.start.saturating_add(item.length)) {
                    Some(lane) => rows.of(Of::Process(process), Kind::Span, nth * lanes::MOST + lane).push(&item),
                    None => self.crowded += 1,
                }
            }
        }
    }
}
