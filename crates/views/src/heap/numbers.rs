//! What is counted for each stack.

/// Blocks and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sum {
    /// How many blocks.
    pub blocks: u64,
    /// Their bytes; [`u64::MAX`] where there are more.
    pub bytes: u64,
}

impl Sum {
    /// Adds a block.
    pub fn add(&mut self, size: u64) {
        self.join(Sum { blocks: 1, bytes: size });
    }

    /// Takes a block away.
    pub fn remove(&mut self, size: u64) {
        self.blocks = self.blocks.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(size);
    }

    /// Takes another sum away.
    pub fn subtract(&mut self, other: Sum) {
        self.blocks = self.blocks.saturating_sub(other.blocks);
        self.bytes = self.bytes.saturating_sub(other.bytes);
    }

    /// Adds another sum.
    pub fn join(&mut self, other: Sum) {
        self.blocks = self.blocks.saturating_add(other.blocks);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    /// This sum and another one.
    #[must_use]
    pub fn and(mut self, other: Sum) -> Sum {
        self.join(other);
        self
    }
}

/// How memory was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// By malloc, calloc, operator new or another function of the allocator.
    Malloc,
    /// By mmap.
    Mmap,
}

/// The numbers of a stack, or of several stacks together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// All blocks that were malloc'd.
    pub total: Sum,
    /// How many of them were temporary: the thread's next event freed them.
    pub temporary: u64,
    /// Malloc'd blocks of processes that run.
    pub live: Sum,
    /// Malloc'd blocks that were outstanding when their process ended.
    pub ended: Sum,
    /// The most bytes that were live at once. Of several stacks, the sum of theirs.
    pub peak: u64,
    /// What was live when all stacks together had their peak.
    pub at_peak: Sum,
    /// Blocks that running processes got from their parent by fork and have not freed. Not part of the other numbers.
    pub copies: Sum,
    /// All mappings that were made.
    pub mapped_total: Sum,
    /// Mappings of processes that run.
    pub mapped_live: Sum,
    /// Mappings that were there when their process ended.
    pub mapped_ended: Sum,
}

impl Numbers {
    /// Malloc'd blocks that were never freed, or not yet.
    pub fn outstanding(&self) -> Sum {
        self.live.and(self.ended)
    }

    /// Mappings that were never unmapped, or not yet.
    pub fn mapped_outstanding(&self) -> Sum {
        self.mapped_live.and(self.mapped_ended)
    }

    /// Adds the numbers of another stack.
    pub fn join(&mut self, other: &Numbers) {
        self.temporary = self.temporary.saturating_add(other.temporary);
        self.peak = self.peak.saturating_add(other.peak);
        for (sum, other) in [
            (&mut self.total, other.total),
            (&mut self.live, other.live),
            (&mut self.ended, other.ended),
            (&mut self.at_peak, other.at_peak),
            (&mut self.copies, other.copies),
            (&mut self.mapped_total, other.mapped_total),
            (&mut self.mapped_live, other.mapped_live),
            (&mut self.mapped_ended, other.mapped_ended),
        ] {
            sum.join(other);
        }
    }
}
