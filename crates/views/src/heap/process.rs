//! A program in a process: its malloc'd blocks by address, and its mappings.

use super::blocks::Block;
use super::mappings::Mappings;
use events::hash::Table;

/// A program in a process.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Malloc'd blocks by address.
    pub blocks: Table<u64, Block>,
    /// Mappings.
    pub mappings: Mappings,
    /// It began with blocks that are not in `blocks`, because there were too many.
    pub began_with_more: bool,
}
