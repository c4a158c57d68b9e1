//! The tables of a session: modules get places in them, and rules common numbers.
//!
//! Rows lie in chunks, those of a page within one. Nothing is ever moved: programs of the kernel may read at any time. Modules may be taken
//! out; a chunk is used again as a whole, after the last module has left it.

use super::Module;
use super::image::Segment;
use super::rules::Rules;
use crate::table::{CHUNK, CHUNK_BITS, Mapping, Page, Row};
use std::fmt;
use std::ops::Range;
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
    pages: u32,
    chunks: Vec<u32>,
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

    /// The numbers of its pages.
    pub fn pages(&self) -> Range<u32> {
        self.first_page..self.first_page + self.pages
    }

    /// The numbers of the chunks that its rows are in.
    pub fn chunks(&self) -> &[u32] {
        &self.chunks
    }
}

/// A chunk of rows.
#[derive(Clone, Copy, Debug, Default)]
struct Chunk {
    /// Rows in use, from the first on.
    used: usize,
    /// How many modules have rows there.
    modules: u32,
}

/// A chunk, and how many rows of it would be in use.
type Filled = (u32, usize);

/// What the tables hold, and where the next module goes.
#[derive(Clone, Debug, Default)]
pub struct Space {
    rules: Rules,
    pages: Vec<Page>,
    /// Page numbers below the end of `pages` that may be used again.
    free_pages: Vec<Range<u32>>,
    /// By number.
    chunks: Vec<Chunk>,
    /// The chunk that has room left.
    open: Option<u32>,
    /// Numbers of chunks that no module is in; the last is used first.
    free_chunks: Vec<u32>,
    max_pages: usize,
}

/// Numbers of rows have 32 bits.
const MAX_CHUNKS: u32 = 1 << 14;

impl Space {
    /// Empty tables of at most this many chunks of rows, and pages.
    pub fn new(max_chunks: usize, max_pages: usize) -> Space {
        let mut space = Space { max_pages, ..Space::default() };
        (0..max_chunks.min(MAX_CHUNKS as usize) as u32).rev().for_each(|n| space.give_chunk(n));
        space
    }

    /// Lets modules use a chunk that none is in: of a number that there was not before, or one that [`Space::remove`] has returned.
    pub fn give_chunk(&mut self, number: u32) {
        if number >= MAX_CHUNKS || self.free_chunks.contains(&number) {
            return;
        }
        if self.chunks.len() <= number as usize {
            self.chunks.resize(number as usize + 1, Chunk::default());
        }
        self.free_chunks.push(number);
    }

    /// Lets modules use the numbers of pages that [`Space::remove`] has returned.
    pub fn give_pages(&mut self, pages: Range<u32>) {
        self.free_pages.push(pages);
    }

    /// Places a module. `write` is called for each page: with the number of its first row, which is even, and its rows.
    ///
    /// # Errors
    /// There is no room; then nothing has changed.
    pub fn add(&mut self, module: &Module, mut write: impl FnMut(u32, &[Row])) -> Result<Placed, Full> {
        let (places, chunks) = self.places(module)?;
        let first_page = self.page_numbers(places.len())?;
        let numbers: Vec<u16> = module.rules.iter().map(|r| self.rules.number(*r)).collect();
        let mut rows = Vec::new();
        for (page, place) in module.pages.iter().zip(&places) {
            rows.clear();
            let of_page = &module.rows[page.first as usize..][..page.rows as usize];
            rows.extend(of_page.iter().map(|r| Row::new(r.low(), numbers[usize::from(r.rule())])));
            write(place.first, &rows);
        }
        self.pages[first_page as usize..][..places.len()].copy_from_slice(&places);
        for (number, used) in &chunks {
            let chunk = &mut self.chunks[*number as usize];
            (chunk.used, chunk.modules) = (*used, chunk.modules + 1);
            self.free_chunks.retain(|n| n != number);
            self.open = Some(*number);
        }
        let chunks = chunks.into_iter().map(|c| c.0).collect();
        let (pages, segments) = (places.len() as u32, module.segments.clone());
        Ok(Placed { first_page, pages, chunks, base: module.base(), segments })
    }

    /// How many chunks a module would take that no module is in.
    pub fn chunks_for(&self, module: &Module) -> usize {
        let mut used = self.open.map_or(CHUNK, |n| self.chunks[n as usize].used);
        let mut wanted = 0;
        for page in &module.pages {
            let first = used.next_multiple_of(2);
            let fits = first + page.rows as usize <= CHUNK;
            used = if fits { first } else { 0 } + page.rows as usize;
            wanted += usize::from(!fits);
        }
        wanted
    }

    /// Where the rows of each page would go, and the chunks that they would be in, each with the rows that would be in use then.
    fn places(&self, module: &Module) -> Result<(Vec<Page>, Vec<Filled>), Full> {
        let mut free = self.free_chunks.iter().rev();
        let mut at = self.open.map(|n| (n, self.chunks[n as usize].used));
        let (mut places, mut chunks) = (Vec::with_capacity(module.pages.len()), Vec::new());
        for page in &module.pages {
            let rows = page.rows as usize;
            let behind = at.map(|(n, used)| (n, used.next_multiple_of(2))).filter(|(_, used)| used + rows <= CHUNK);
            let (number, first) = match behind {
                Some(place) => place,
                None => (*free.next().ok_or(Full::Rows)?, 0),
            };
            places.push(Page { first: number << CHUNK_BITS | first as u32, rows: page.rows });
            at = Some((number, first + rows));
            match chunks.last_mut() {
                Some((last, used)) if *last == number => *used = first + rows,
                _ => chunks.push((number, first + rows)),
            }
        }
        Ok((places, chunks))
    }

    /// This many numbers of pages in a row; the first.
    fn page_numbers(&mut self, count: usize) -> Result<u32, Full> {
        if let Some(at) = self.free_pages.iter().position(|r| r.len() >= count) {
            let range = &mut self.free_pages[at];
            let first = range.start;
            range.start += count as u32;
            if range.start >= range.end {
                self.free_pages.swap_remove(at);
            }
            return Ok(first);
        }
        let first = self.pages.len();
        if first + count > self.max_pages {
            return Err(Full::Pages);
        }
        self.pages.resize(first + count, Page::default());
        Ok(first as u32)
    }

    /// Takes a module out: its pages have no rows from now on. Returns the chunks that no module is in any more. They, and the numbers of
    /// its pages, are used again when they are given back: a reader may still be there.
    pub fn remove(&mut self, placed: &Placed) -> Vec<u32> {
        for page in placed.pages() {
            if let Some(page) = self.pages.get_mut(page as usize) {
                *page = Page::default();
            }
        }
        let mut left = Vec::new();
        for &number in &placed.chunks {
            let Some(chunk) = self.chunks.get_mut(number as usize) else { continue };
            chunk.modules = chunk.modules.saturating_sub(1);
            if chunk.modules == 0 {
                chunk.used = 0;
                self.open = self.open.filter(|open| *open != number);
                left.push(number);
            }
        }
        left
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
        self.chunks.iter().filter(|c| c.modules > 0).count()
    }

    /// How many chunks no module is in.
    pub fn free_chunks(&self) -> usize {
        self.free_chunks.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module of this many pages, each with this many rows.
    fn module(pages: u32, rows: u32) -> Module {
        let page = |n| Page { first: n * rows, rows };
        Module {
            pages: (0..pages).map(page).collect(),
            rows: (0..pages * rows).map(|n| Row::new((n % rows) as u16, 0)).collect(),
            rules: std::vec![crate::Rule::END],
            ..Module::default()
        }
    }

    #[test]
    fn modules_come_and_go() {
        let mut space = Space::new(2, 16);
        let mut written = Vec::new();
        let mut add = |space: &mut Space, m: &Module| {
            written.clear();
            let placed = space.add(m, |first, rows| written.push((first, rows.len())));
            placed.map(|p| (p, written.clone()))
        };
        let half = CHUNK as u32 / 2;
        let small = module(1, 5);
        // Two pages of a quarter each; five rows; then a half does not fit any more and takes the next chunk.
        let (first, rows) = add(&mut space, &module(2, half / 2)).unwrap();
        assert_eq!((first.chunks(), first.pages()), (&[0][..], 0..2));
        assert_eq!(rows, [(0, half as usize / 2), (half / 2, half as usize / 2)]);
        let (second, rows) = add(&mut space, &small).unwrap();
        assert_eq!((second.chunks(), second.pages(), &rows[..]), (&[0][..], 2..3, &[(half, 5)][..]));
        let (third, rows) = add(&mut space, &module(2, half / 2)).unwrap();
        assert_eq!((third.chunks(), rows[0].0, rows[1].0), (&[0, 1][..], half + 6, CHUNK as u32));
        assert_eq!((space.chunks(), space.free_chunks()), (2, 0));
        let large = module(4, half / 2);
        assert_eq!((space.chunks_for(&large), space.chunks_for(&small)), (1, 0));
        assert_eq!(add(&mut space, &large).unwrap_err(), Full::Rows);
        assert_eq!(add(&mut space, &module(12, 1)).unwrap_err(), Full::Pages);
        // A chunk is free when the last module has left it.
        assert_eq!(space.remove(&first), []);
        assert_eq!(space.remove(&third), [1]);
        assert_eq!(space.pages()[..2], [Page::default(); 2]);
        assert_eq!(add(&mut space, &large).unwrap_err(), Full::Rows);
        space.give_chunk(1);
        space.give_pages(first.pages());
        space.give_pages(third.pages());
        let (again, rows) = add(&mut space, &module(2, half / 2)).unwrap();
        assert_eq!((again.chunks(), again.pages(), rows[0].0), (&[1][..], 0..2, CHUNK as u32));
        assert_eq!(space.remove(&second), [0]);
        assert_eq!(space.remove(&again), [1]);
        assert_eq!(space.chunks(), 0);
    }
}
