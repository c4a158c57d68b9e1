//! What an unwinder has done, and what it could not do.

use std::io;

/// How many powers of two of µs are counted apart.
pub const DELAYS: usize = 24;

/// Counts since the beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Modules whose tables were built.
    pub built: u64,
    /// Bytes of chunks of rows.
    pub bytes: u64,
    /// ns of building, of all threads together.
    pub build_ns: u64,
    /// ns of CPU time of the thread, once it has ended.
    pub cpu_ns: u64,
    /// Rows that no rule expresses.
    pub unknown_rows: u64,
    /// Modules whose tables had to go for others.
    pub evicted: u64,
    /// Modules for which there was never room.
    pub too_large: u64,
    /// Mappings of files that could not be read.
    pub unreadable: u64,
    /// Why the first of these could not.
    pub first_unreadable: Option<String>,
    /// Files without tables: no ELF file, or one without unwind information.
    pub without: u64,
    /// Processes with more mappings than the table holds ([`bpf::unwind::MAPPINGS`]).
    pub crowded: u64,
    /// Processes that found no room in the table.
    pub no_room: u64,
    /// Records of the kernel that were lost; then all processes are read anew.
    pub lost: u64,
    /// Processes that were read from `/proc`.
    pub snapshots: u64,
    /// Changes of a process in the table.
    pub updates: u64,
    /// These by how long after the first of their records they were made: less than 2^n µs.
    pub delays: [u64; DELAYS],
}

impl Counts {
    pub(super) fn unreadable(&mut self, path: &[u8], e: &io::Error) {
        self.unreadable += 1;
        self.first_unreadable.get_or_insert_with(|| format!("{}: {e}", String::from_utf8_lossy(path)));
    }

    pub(super) fn updated(&mut self, delay_ns: u64) {
        let n = (u64::BITS - (delay_ns / 1000).leading_zeros()) as usize;
        self.updates += 1;
        self.delays[n.min(DELAYS - 1)] += 1;
    }

    /// The time in µs that this many of a hundred changes took at most, to the next power of two.
    pub fn delay(&self, percent: u64) -> u64 {
        let mut left = self.updates * percent / 100;
        let at = self.delays.iter().position(|n| {
            left = left.saturating_sub(*n);
            left == 0
        });
        1 << at.unwrap_or(DELAYS - 1)
    }
}
