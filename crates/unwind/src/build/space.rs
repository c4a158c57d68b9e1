//! The tables of a session: modules get places in them, and rules common numbers.
//!
//! Rows lie in chunks, those of a page within one. Nothing is ever moved or removed: programs of the kernel may read at any time.

use super::Module;
use super::image::Segment;
use super::rules::Rules;
use crate::table::{CHUNK, Mapping, Page, Row};
use std::fmt;
use std::vec::Vec;

/// The tables have no room for a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// Rows.
    Rows,
    /// Pages.
    Pages,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Full::Rows => "no room for more rows of unwind tables",
            Full::Pages => "no room for more pages of unwind tables",
        })
    }
}
impl std::error::Error for Full {}

/// Where a module is in the tables of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    first_page: u32,
    base: u64,
    segments: Vec<Segment>,
}

impl Placed {
    /// A mapping of the module: addresses from `start` to `end` of a process have what lies at `offset` of the file. None where that is
    /// not code of the file.
    pub fn mapping(&self, start: u64, end: u64, offset: u64) -> Option<Mapping> {
        let address = self.segments.iter().find_map(|s| s.address_of(offset))?;
        let bias = start.wrapping_sub(address).wrapping_add(self.base);
        Some(Mapping { start, end, bias, first_page: self.first_page, flags: 0 })
    }
}

/// What the tables hold, and where the next module goes.
#[derive(Clone, Debug, Default)]
pub struct Space {
    rules: Rules,
    pages: Vec<Page>,
    /// The next row.
    next: usize,
    max_chunks: usize,
    max_pages: usize,
}

impl Space {
    /// Empty tables of at most so many chunks of rows, and pages.
    pub fn new(max_chunks: usize, max_pages: usize) -> Space {
        // Numbers of rows have 32 bits.
        Space { max_chunks: max_chunks.min(1 << 14), max_pages, ..Space::default() }
    }

    /// Places a module. `write` is called for each page: with the number of its first row, which is even, and its rows.
    ///
    /// # Errors
    /// There is no room; then nothing has changed.
    pub fn add(&mut self, module: &Module, mut write: impl FnMut(u32, &[Row])) -> Result<Placed, Full> {
        let mut next = self.next;
        let mut places = Vec::with_capacity(module.pages.len());
        for page in &module.pages {
            let rows = page.rows as usize;
            next = next.next_multiple_of(2);
            if next % CHUNK + rows > CHUNK {
                next = next.next_multiple_of(CHUNK);
            }
            places.push(Page { first: next as u32, rows: page.rows });
            next += rows;
        }
        if next > self.max_chunks * CHUNK {
            return Err(Full::Rows);
        }
        if self.pages.len() + places.len() > self.max_pages {
            return Err(Full::Pages);
        }
        let numbers: Vec<u16> = module.rules.iter().map(|r| self.rules.number(*r)).collect();
        let mut rows = Vec::new();
        for (page, place) in module.pages.iter().zip(&places) {
            rows.clear();
            let of_page = &module.rows[page.first as usize..][..page.rows as usize];
            rows.extend(of_page.iter().map(|r| Row::new(r.low(), numbers[usize::from(r.rule())])));
            write(place.first, &rows);
        }
        let first_page = self.pages.len() as u32;
        self.pages.extend(places);
        self.next = next;
        Ok(Placed { first_page, base: module.base(), segments: module.segments.clone() })
    }

    /// All pages, by number.
    pub fn pages(&self) -> &[Page] {
        &self.pages
    }

    /// All rules, by number.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// How many chunks of rows are in use.
    pub fn chunks(&self) -> usize {
        self.next.div_ceil(CHUNK)
    }
}
