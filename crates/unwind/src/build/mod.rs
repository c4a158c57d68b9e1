//! Tables of whole files: bytes of an ELF file in, rows and rules out.
//!
//! ```text
//!  image: segments, .eh_frame, linkage tables ─► frames: a run of rows per function ─┐
//!                                                plt: rows that the linker left out ─┴─► sorted ─► pages ─► Module
//!  Module ─► space: places in the tables of a session, rules by common numbers
//! ```
//!
//! Files are hostile: every offset is checked, and the work is bounded by the size of `.eh_frame`. Nothing here reads files; callers
//! map them, and build several at a time on as many threads as they like.

mod convert;
mod entries;
mod frames;
mod image;
mod instructions;
mod pages;
mod plt;
mod rules;
pub mod shared;
mod space;

pub use rules::Rules;
pub use space::{Full, Placed, Space};

use crate::rule::Rule;
use crate::table::{Page, Row, Tables};
use image::{Image, Segment};
use pages::Pages;
use std::fmt;
use std::vec::Vec;

/// Why a file has no tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// It is no ELF file of 64 bits for x86-64, or a damaged one.
    Kind,
    /// Its code spans more than 4 GiB, or it has more than 256 MiB of `.eh_frame`.
    Size,
    /// It has no executable segment.
    NoCode,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BuildError::Kind => "not an ELF file for x86-64",
            BuildError::Size => "more code than the tables can hold",
            BuildError::NoCode => "no executable segment",
        })
    }
}
impl std::error::Error for BuildError {}

/// What was found in a file, and what of it the tables cannot express.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Functions (FDEs) with rows.
    pub functions: u32,
    /// Their rows, before equal neighbours are merged.
    pub rows: u32,
    /// Rows among these that no rule expresses.
    pub unknown_rows: u32,
    /// Functions with such rows.
    pub unknown_functions: u32,
    /// Entries that are damaged, overlap an executable segment only in part or not at all, or are empty.
    pub damaged: u32,
    /// Linkage tables whose rows were made up.
    pub linkage_tables: u32,
    /// The rest was left out because reading it would take too long: the file is damaged, or made to take long.
    pub cut: bool,
}

/// The tables of one file. Numbers of rows and rules are its own; [`Space::add`] gives them common ones.
#[derive(Clone, Debug, Default)]
pub struct Module {
    first_page: u64,
    pages: Vec<Page>,
    rows: Vec<Row>,
    rules: Vec<Rule>,
    segments: Vec<Segment>,
    counts: Counts,
}

impl Module {
    /// Builds the tables of the file with these bytes.
    ///
    /// # Errors
    /// Why it has none. A file without `.eh_frame` has tables without rules ([`Module::is_empty`]).
    pub fn build(file: &[u8]) -> Result<Module, BuildError> {
        let image = Image::parse(file)?;
        let first_page = image.base() >> crate::table::PAGE_BITS;
        let mut rules = Rules::default();
        let mut runs = frames::read(&image, &mut rules);
        plt::add(&image, &mut runs, &mut rules);
        runs.sort();
        let mut pages = Pages::new(image.span());
        runs.write(&mut pages);
        let (pages, rows) = pages.finish();
        let (rules, segments) = (rules.into(), image.segments);
        Ok(Module { first_page, pages, rows, rules, segments, counts: runs.counts })
    }

    /// Tables of code that is in no file: from each address on, counted from the first page, a rule; below `span`.
    pub fn of_rules(of: &[(u32, Rule)], span: u32) -> Module {
        let (mut rules, mut pages) = (Rules::default(), Pages::new(span));
        of.iter().for_each(|(address, rule)| pages.push(*address, rules.number(*rule)));
        let (pages, rows) = pages.finish();
        Module { pages, rows, rules: rules.into(), ..Module::default() }
    }

    /// It has no unwind information at all.
    pub fn is_empty(&self) -> bool {
        self.counts.functions == 0 && self.counts.linkage_tables == 0
    }

    /// The address, in the file's own address space, at which its first page begins.
    pub fn base(&self) -> u64 {
        self.first_page << crate::table::PAGE_BITS
    }

    /// What was found.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Its tables; the first page begins at [`Module::base`].
    pub fn tables(&self) -> Tables<'_> {
        Tables { pages: &self.pages, rows: &self.rows, rules: &self.rules }
    }

    /// The rule at an address of the file's own address space.
    pub fn rule(&self, address: u64) -> Rule {
        self.tables().at(0, address.wrapping_sub(self.base())).unwrap_or(Rule::NONE)
    }
}
