//! Lanes of a picture: what overlaps lies beside each other.

use events::hash::Table;

/// Most lanes beside each other.
pub(super) const MOST: u32 = 200;

/// The lanes of each process.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// When each is free again.
    ends: Table<usize, Vec<u64>>,
}

impl Lanes {
    /// The first lane of a process that is free at `start`, until `end`; none where too much overlaps. Asked in the order of starts.
    pub(super) fn place(&mut self, process: usize, start: u64, end: u64) -> Option<u32> {
        let ends = self.ends.entry(process).or_default();
        let free = ends.iter().position(|end| *end <= start).unwrap_or(ends.len());
        if free >= MOST as usize {
            return None;
        }
        if free == ends.len() {
            ends.push(0);
        }
        ends[free] = end.max(start + 1);
        Some(free as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_has_lanes_of_its_own_up_to_a_limit() {
        let mut lanes = Lanes::default();
        let placed = [(1, 5), (2, 3), (3, 9), (5, 5), (5, 6)].map(|(start, end)| lanes.place(0, start, end));
        assert_eq!(placed, [Some(0), Some(1), Some(1), Some(0), Some(2)]);
        assert_eq!(lanes.place(1, 0, 1), Some(0));
        let last = (0..=MOST).map(|_| lanes.place(2, 0, 10)).last();
        assert_eq!(last, Some(None));
    }
}
