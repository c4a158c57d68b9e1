//! The mappings of a process: ranges of addresses that do not overlap. A range that is unmapped may cut others.

use super::blocks::{Block, Owner};
use std::collections::BTreeMap;

/// What lengths are rounded up to, as the kernel does it.
const PAGE: u64 = 4096;

/// By first address.
#[derive(Clone, Debug, Default)]
pub struct Mappings {
    all: BTreeMap<u64, Block>,
}

/// Whole pages; the rest of the address space where there are fewer.
fn length(address: u64, len: u64) -> u64 {
    len.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX).min(u64::MAX - address)
}

impl Mappings {
    /// Adds a mapping, whose place is free, and returns its size.
    pub fn insert(&mut self, address: u64, block: Block) -> u64 {
        let size = length(address, block.size);
        if size > 0 {
            self.all.insert(address, Block { size, ..block });
        }
        size
    }

    /// Removes a range. `changed` gets each mapping that was in it, as a whole, and the bytes of the parts that are left of it.
    pub fn remove(&mut self, address: u64, len: u64, mut changed: impl FnMut(Block, [u64; 2])) {
        let end = address.saturating_add(length(address, len));
        if end == address {
            return;
        }
        // The one that begins before may reach into the range; all others begin in it.
        let first = self.all.range(..=address).next_back().map_or(address, |(start, _)| *start);
        while let Some((&start, &block)) =
            self.all.range(first..end).find(|(start, b)| start.saturating_add(b.size) > address)
        {
            self.all.remove(&start);
            let last = start.saturating_add(block.size);
            let left = [address.saturating_sub(start), last.saturating_sub(end)];
            for (at, size) in [(start, left[0]), (end, left[1])] {
                if size > 0 {
                    self.all.insert(at, Block { size, ..block });
                }
            }
            changed(block, left);
            if left[1] > 0 {
                break;
            }
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Block> {
        self.all.values()
    }

    /// Makes `owner` that of all mappings.
    pub fn belong_to(&mut self, owner: Owner) {
        self.all.values_mut().for_each(|b| b.owner = owner);
    }
}
