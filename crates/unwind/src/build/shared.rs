//! What to write into the file of [`crate::shared`]: an offset, and bytes.
//!
//! The order is that of all tables: rules, rows, then the pages that lead to them; then readers may get mappings with those pages. Pages of
//! a module that was taken out are written again before their numbers are given back ([`Space::remove`]).

use super::Space;
use crate::shared::{CHUNKS, PAGES, PAGES_AT, ROWS_AT, RULES_AT};
use crate::table::Row;
use std::ops::Range;
use std::vec::Vec;

/// Bytes, and where in the file they go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Offset in the file.
    pub offset: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Part {
    fn of<const N: usize>(begin: usize, first: usize, items: impl Iterator<Item = [u8; N]>) -> Part {
        Part { offset: (begin + first * N) as u64, bytes: items.flatten().collect() }
    }
}

impl Space {
    /// Tables that fit into such a file.
    pub fn shared() -> Space {
        Space::new(CHUNKS, PAGES)
    }

    /// The rules from number `known` on: those before it are written. None where there are no others.
    pub fn shared_rules(&self, known: usize) -> Option<Part> {
        let new = self.rules().all().get(known..).filter(|new| !new.is_empty())?;
        Some(Part::of(RULES_AT, known, new.iter().map(|r| r.0.to_le_bytes())))
    }

    /// Pages by their numbers: [`super::Placed::pages`].
    pub fn shared_pages(&self, numbers: Range<u32>) -> Part {
        let (first, last) = (numbers.start as usize, numbers.end as usize);
        let pages = self.pages().get(first..last).unwrap_or_default();
        Part::of(PAGES_AT, first, pages.iter().map(|p| p.to_word().to_le_bytes()))
    }
}

/// Rows, as [`Space::add`] hands them over: with the number of the first one.
pub fn rows(first: u32, rows: &[Row]) -> Part {
    Part::of(ROWS_AT, first as usize, rows.iter().map(|r| r.0.to_le_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::Module;
    use crate::shared::SIZE;
    use crate::table::{Page, Tables};
    use crate::{Row, Rule};

    /// A reader that finds the parts of the file by its numbers.
    #[test]
    fn who_reads_the_file_finds_the_rules() {
        let module = |rules: &[Rule]| Module {
            pages: std::vec![Page { first: 0, rows: 1 }, Page { first: 1, rows: 2 }],
            rows: std::vec![Row::new(0, 0), Row::new(0, 1), Row::new(0x10, 0)],
            rules: rules.to_vec(),
            ..Module::default()
        };
        let mut space = Space::shared();
        let mut file = std::vec![0u8; 1 << 24];
        let mut write = |part: Part| file[part.offset as usize..][..part.bytes.len()].copy_from_slice(&part.bytes);
        let mut known = 0;
        let mut places = Vec::new();
        for rules in [[Rule::END, Rule(0x1234)], [Rule(0x1234), Rule(0x5678)]] {
            let placed = space.add(&module(&rules), |first, some| write(rows(first, some))).unwrap();
            write(space.shared_rules(known).unwrap());
            known = space.rules().all().len();
            write(space.shared_pages(placed.pages()));
            places.push(placed.pages().start);
        }
        assert!(space.shared_rules(known).is_none());
        let words = |at: usize, n: usize| file[at..][..8 * n].as_chunks::<8>().0.iter().map(|b| u64::from_le_bytes(*b));
        let rules: Vec<Rule> = words(RULES_AT, 16).map(Rule).collect();
        let pages: Vec<Page> = words(PAGES_AT, 16).map(|w| Page { first: w as u32, rows: (w >> 32) as u32 }).collect();
        let rows: Vec<Row> =
            file[ROWS_AT..][..256].as_chunks::<4>().0.iter().map(|b| Row(u32::from_le_bytes(*b))).collect();
        let tables = Tables { pages: &pages, rows: &rows, rules: &rules };
        let at = |page: u32, relative| tables.at(page, relative).unwrap();
        assert_eq!(
            [at(places[0], 5), at(places[0], 0x1_0000), at(places[0], 0x1_0010)],
            [Rule::END, Rule(0x1234), Rule::END]
        );
        assert_eq!([at(places[1], 5), at(places[1], 0x1_0000)], [Rule(0x1234), Rule(0x5678)]);
        assert!((264 << 20..272 << 20).contains(&SIZE));
    }
}
