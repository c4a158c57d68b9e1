//! Where an area goes: into a hole between the mappings of a process, near the module that it belongs to.

use crate::link::{PAGE, REACH};
use std::ops::Range;

/// What a mapping is, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any.
    Other,
    /// The program's own file, or `[heap]`: behind the last of these, the heap grows (brk(2)).
    Heap,
    /// `[stack]`, which grows downwards.
    Stack,
}

/// A mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Its addresses.
    pub range: Range<u64>,
    /// What it is.
    pub kind: Kind,
}

/// The lowest address that is used; the kernel keeps the first pages free (vm.mmap_min_addr), and so do programs that want null
/// pointers to fail.
pub const LOWEST: u64 = 1 << 20;
/// Behind the highest address of a process with four levels of page tables.
pub const HIGHEST: u64 = (1 << 47) - PAGE;
/// What is left for the heap, where the area has to lie in its way. Where brk(2) fails, malloc(3) uses mmap(2).
pub const HEAP: u64 = 1 << 30;
/// What is left free of the distance that code can reach.
pub const MARGIN: u64 = 1 << 20;

/// The address of the nearest hole of `len` bytes, from which all of `reach` can be reached, and the other way round. `mappings` are
/// sorted. The hole below the stack is never used; that above the heap only if there is no other, at the farthest place.
pub fn nearest(mappings: &[Mapping], reach: &Range<u64>, len: u64) -> Option<u64> {
    let len = len.checked_next_multiple_of(PAGE).filter(|l| *l > 0)?;
    let span = reach.end.checked_sub(reach.start)?;
    let room = (REACH - MARGIN).checked_sub(span.checked_add(len)?)?;
    // The area may begin from here to here.
    let low = reach.start.saturating_sub(room + len).max(LOWEST);
    let high = reach.end.saturating_add(room);
    let heap = mappings.iter().rposition(|m| m.kind == Kind::Heap);
    let mut best: Option<(u64, u64)> = None;
    let mut in_the_heaps_way = None;
    for next in 0..=mappings.len() {
        let before = next.checked_sub(1).map_or(0, |b| mappings[b].range.end);
        let after = mappings.get(next).map_or(HIGHEST, |m| m.range.start);
        if mappings.get(next).is_some_and(|m| m.kind == Kind::Stack) {
            continue;
        }
        // A page is left free at both ends.
        let first = up(before.saturating_add(PAGE).max(low));
        let last = down(after.saturating_sub(PAGE).saturating_sub(len).min(high));
        if first.saturating_add(len) > after || first > last {
            continue;
        }
        if heap.is_some_and(|h| h + 1 == next) {
            in_the_heaps_way = Some(last).filter(|last| *last >= before.saturating_add(HEAP));
            continue;
        }
        let at = if last < reach.start { last } else { first };
        let distance = at.abs_diff(reach.start);
        if best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, at));
        }
    }
    best.map(|(_, at)| at).or(in_the_heaps_way)
}

fn up(address: u64) -> u64 {
    address.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX)
}

fn down(address: u64) -> u64 {
    address / PAGE * PAGE
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIB: u64 = 0x7f00_0000_0000;

    fn mapping(start: u64, end: u64, kind: Kind) -> Mapping {
        Mapping { range: start..end, kind }
    }

    fn check(mappings: &[Mapping], reach: Range<u64>, len: u64) -> Option<u64> {
        let at = nearest(mappings, &reach, len)?;
        assert!(at.is_multiple_of(PAGE) && at >= LOWEST);
        assert!(mappings.iter().all(|m| at + len < m.range.start || at > m.range.end), "{at:#x}");
        assert!(reach.end.max(at + len) - reach.start.min(at) <= REACH);
        Some(at)
    }

    #[test]
    fn the_nearest_hole() {
        let maps = [mapping(LIB, LIB + 0x10000, Kind::Other)];
        assert_eq!(check(&maps, LIB..LIB + 0x10000, 0x3000), Some(LIB - 0x4000));
        let full_below = [mapping(LIB - (4 << 30), LIB, Kind::Other), mapping(LIB, LIB + 0x10000, Kind::Other)];
        assert_eq!(check(&full_below, LIB..LIB + 0x10000, 0x3000), Some(LIB + 0x11000));
    }

    #[test]
    fn holes_that_are_too_small_are_passed_over() {
        let maps = [
            mapping(LIB - 0x20000, LIB - 0x4000, Kind::Other),
            mapping(LIB, LIB + 0x10000, Kind::Other),
            mapping(LIB + 0x15000, LIB + 0x16000, Kind::Other),
        ];
        assert_eq!(check(&maps, LIB..LIB + 0x10000, 0x2000), Some(LIB - 0x3000));
        assert_eq!(check(&maps, LIB..LIB + 0x10000, 0x3000), Some(LIB + 0x11000));
        assert_eq!(check(&maps, LIB..LIB + 0x10000, 0x4000), Some(LIB + 0x17000));
    }

    #[test]
    fn the_heap_has_room() {
        let pie = 0x5555_5555_4000;
        let maps = [
            mapping(pie, pie + 0x5000, Kind::Heap),
            mapping(pie + 0x100_0000, pie + 0x110_0000, Kind::Heap),
            mapping(LIB, LIB + 0x1000, Kind::Other),
        ];
        assert_eq!(check(&maps, pie..pie + 0x5000, 0x3000), Some(pie - 0x4000));
        // A program that is linked to a low address: nothing below, so as far above the heap as code reaches.
        let low = 0x40_0000;
        let maps = [mapping(low, low + 0x5000, Kind::Heap), mapping(low + 0x100_0000, low + 0x110_0000, Kind::Heap)];
        assert_eq!(check(&maps, low..low + 0x5000, 0x3000), Some(low - 0x4000));
        let at = check(&maps, low..low + 0x5000, 0x40_0000).unwrap();
        // Between the program and its heap is a hole that is nearer.
        assert_eq!(at, low + 0x6000);
        let maps = [mapping(low, low + 0x5000, Kind::Heap)];
        let at = check(&maps, low..low + 0x5000, 0x40_0000).unwrap();
        assert!(at > low + HEAP && at < low + (2 << 30), "{at:#x}");
    }

    #[test]
    fn the_stack_has_room() {
        let stack = LIB + 0x1_0000_0000;
        let maps = [mapping(LIB - (4 << 30), LIB + 0x1000, Kind::Other), mapping(stack, stack + 0x20000, Kind::Stack)];
        assert_eq!(check(&maps, LIB..LIB + 0x1000, 0x1000), None);
    }

    #[test]
    fn no_place_and_hostile_numbers() {
        let all = [mapping(0, HIGHEST, Kind::Other)];
        assert_eq!(nearest(&all, &(LIB..LIB + 1), 0x1000), None);
        assert_eq!(nearest(&[], &(LIB..LIB + 1), u64::MAX), None);
        assert_eq!(nearest(&[], &(LIB..LIB + (2 << 30)), 0x1000), None);
        assert_eq!(nearest(&[], &Range { start: LIB + 1, end: LIB }, 0x1000), None);
        let _ = nearest(&[mapping(u64::MAX, 0, Kind::Heap), mapping(5, u64::MAX, Kind::Stack)], &(0..u64::MAX), 1);
        let _ = nearest(&[mapping(u64::MAX, 0, Kind::Heap)], &(u64::MAX - 5..u64::MAX), 1);
    }
}
