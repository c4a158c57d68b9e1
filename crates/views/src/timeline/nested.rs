//! Calls of functions of a thread, from rows by depths to one order.

use super::columns::{Item, Row};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The calls of the rows of a thread in the order in which they begin, those around others first, with their depths.
pub(super) fn in_order<'r>(rows: &[&'r Row]) -> impl Iterator<Item = (u32, Item)> + use<'r> {
    let depths: Vec<u32> = rows.iter().map(|row| row.depth).collect();
    let mut rest: Vec<_> = rows.iter().map(|row| row.items()).collect();
    let mut next: Vec<Option<Item>> = rest.iter_mut().map(Iterator::next).collect();
    let starts = next.iter().enumerate().filter_map(|(nth, item)| Some(Reverse((item.as_ref()?.start, nth))));
    let mut heap: BinaryHeap<Reverse<(u64, usize)>> = starts.collect();
    std::iter::from_fn(move || {
        let mut first = heap.peek_mut()?;
        let Reverse((_, nth)) = *first;
        let item = next[nth].take()?;
        next[nth] = rest[nth].next();
        match &next[nth] {
            Some(item) => *first = Reverse((item.start, nth)),
            None => _ = std::collections::binary_heap::PeekMut::pop(first),
        }
        Some((depths[nth], item))
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Kind, Of};
    use super::*;

    #[test]
    fn calls_come_as_they_begin_and_callers_first() {
        let mut random = testkit::Random::new(5);
        let rows: Vec<Row> = (0..4)
            .map(|depth| {
                let (mut row, mut start) = (Row::new(Of::Thread(0), Kind::Function, depth), 0);
                for name in 0..random.below(40) as u32 {
                    start += random.below(3);
                    row.push(&Item { start, name, ..Item::default() });
                }
                row
            })
            .collect();
        let rows: Vec<&Row> = rows.iter().collect();
        let mut expected: Vec<(u32, Item)> =
            rows.iter().flat_map(|row| row.items().map(|item| (row.depth, item))).collect();
        expected.sort_by_key(|(depth, item)| (item.start, *depth));
        assert_eq!(in_order(&rows).collect::<Vec<_>>(), expected);
    }
}
