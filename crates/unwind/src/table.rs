//! The tables as they lie in memory, in maps of the kernel and in slices: rows, pages, mappings.
//!
//! ```text
//!  address ─ bias ─► relative ─┬─ high bits ─► Page { first row, rows } ─► rows of the page, sorted ─► rule number ─► Rule
//!                              └─ low 16 bits ──────────────────────────► searched in them
//! ```
//!
//! A page is 64 KiB of a module's own address space. Its first row is at 0: the row that is in effect where the page begins. Rows lie
//! in chunks of [`CHUNK`] rows (1 MiB); those of a page are in one chunk.

use crate::rule::Rule;

/// Bits of an address within a page.
pub const PAGE_BITS: u32 = 16;
/// Bits of a row's number within its chunk.
pub const CHUNK_BITS: u32 = 18;
/// Rows of a chunk: 1 MiB.
pub const CHUNK: usize = 1 << CHUNK_BITS;
/// Steps of a search among the rows of a page: each halves what is left, and one is left in the end.
pub const STEPS: u32 = PAGE_BITS;

/// From an address (the upper 16 bits: the address within its page) a rule is in effect (the lower ones: its number).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Row(pub u32);

impl Row {
    /// A row.
    pub const fn new(low: u16, rule: u16) -> Row {
        Row((low as u32) << 16 | rule as u32)
    }
    /// From which address within the page.
    pub const fn low(self) -> u16 {
        (self.0 >> 16) as u16
    }
    /// The number of the rule.
    pub const fn rule(self) -> u16 {
        self.0 as u16
    }
}

/// The rows of 64 KiB of a module: `{ u32 first, u32 rows }`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Page {
    /// Number of the first row: the chunk in the bits from [`CHUNK_BITS`] on, the row within it below.
    pub first: u32,
    /// How many rows; 0 where the module has no code there.
    pub rows: u32,
}

impl Page {
    /// As the kernel's map has it.
    pub fn to_word(self) -> u64 {
        u64::from(self.first) | u64::from(self.rows) << 32
    }
}

/// A mapping of a process: `{ u64 start, u64 end, u64 bias, u32 first page, u32 flags }`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// The address behind the last one.
    pub end: u64,
    /// The address in the process of the beginning of the module's first page: not the ELF load bias, but that plus the address
    /// (in the file's own address space) of the first page that the module's table has.
    pub bias: u64,
    /// Number of the module's first page in the table of all pages.
    pub first_page: u32,
    /// [`Mapping::NO_ROWS`], or one of those of [`crate::patched`], or 0.
    pub flags: u32,
}

impl Mapping {
    /// The code has no tables (a just-in-time compiler's, a file without `.eh_frame`): its frames are guessed by rbp.
    pub const NO_ROWS: u32 = 1;
    /// Bytes in a map.
    pub const SIZE: usize = 32;
    /// A mapping that no address is in. In a sorted list it comes after all others.
    pub const ABSENT: Mapping = Mapping { start: i64::MAX as u64, end: 0, bias: 0, first_page: 0, flags: 0 };

    /// Whether an address is in it.
    pub fn holds(&self, address: u64) -> bool {
        self.start <= address && address < self.end
    }

    /// As the kernel's map has it.
    pub fn to_words(self) -> [u64; 4] {
        [self.start, self.end, self.bias, u64::from(self.first_page) | u64::from(self.flags) << 32]
    }
}

/// The rule of the row in effect at `low` among those of a page; their count does not matter for memory safety, only the slice.
fn search(rows: &[Row], low: u16) -> Option<Row> {
    let next = rows.partition_point(|r| r.low() <= low);
    rows.get(next.checked_sub(1)?).copied()
}

/// The tables of modules, as slices.
#[derive(Clone, Copy, Debug)]
pub struct Tables<'t> {
    /// Pages of all modules.
    pub pages: &'t [Page],
    /// All rows: those of one module, or chunks one behind the other.
    pub rows: &'t [Row],
    /// Rules by number.
    pub rules: &'t [Rule],
}

impl Tables<'_> {
    /// The rule at an address that is in `mapping`. What the tables lack, or contradict themselves in, is [`Rule::NONE`].
    pub fn rule(&self, mapping: &Mapping, address: u64) -> Rule {
        if mapping.flags & Mapping::NO_ROWS != 0 {
            return Rule::NONE;
        }
        self.at(mapping.first_page, address.wrapping_sub(mapping.bias)).unwrap_or(Rule::NONE)
    }

    /// The rule at `relative`, counted from the beginning of page number `first_page`.
    pub fn at(&self, first_page: u32, relative: u64) -> Option<Rule> {
        let page = u64::from(first_page).checked_add(relative >> PAGE_BITS)?;
        let page = self.pages.get(usize::try_from(page).ok()?)?;
        let first = page.first as usize;
        let rows = self.rows.get(first..first.checked_add(page.rows as usize)?)?;
        let row = search(rows, relative as u16)?;
        self.rules.get(usize::from(row.rule())).copied()
    }
}

/// The mapping that an address is in, of a list sorted by start.
pub fn find(mappings: &[Mapping], address: u64) -> Option<&Mapping> {
    let next = mappings.partition_point(|m| m.start <= address);
    mappings.get(next.checked_sub(1)?).filter(|m| m.holds(address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::{Kind, SavedBp};

    #[test]
    fn an_address_leads_to_its_rule() {
        let rules = [Rule::NONE, Rule::END, Rule::new(Kind::Sp, 8, SavedBp::Same, 0).unwrap()];
        let rows = [Row::new(0, 0), Row::new(0x10, 2), Row::new(0x20, 1), Row::new(0, 2)];
        let pages =
            [Page { first: 0, rows: 3 }, Page::default(), Page { first: 3, rows: 1 }, Page { first: 3, rows: 9 }];
        let tables = Tables { pages: &pages, rows: &rows, rules: &rules };
        let at = |relative| tables.at(0, relative);
        assert_eq!([at(0), at(0xf), at(0x10), at(0xffff)], [0, 0, 2, 1].map(|n| Some(rules[n])));
        assert_eq!(
            [at(0x10000), at(0x20005), at(0x30000), at(0x40000), at(u64::MAX)],
            [None, Some(rules[2]), None, None, None]
        );
        let mapping = Mapping { start: 0x5000, end: 0x9000, bias: 0x5000, ..Mapping::default() };
        assert_eq!(tables.rule(&mapping, 0x5010), rules[2]);
        assert_eq!(tables.rule(&Mapping { flags: Mapping::NO_ROWS, ..mapping }, 0x5010), Rule::NONE);
        assert_eq!(tables.rule(&mapping, 0x15010), Rule::NONE);
    }

    #[test]
    fn mappings_are_found() {
        let m = |start, end| Mapping { start, end, ..Mapping::default() };
        let all = [m(10, 20), m(20, 30), m(50, 60), Mapping::ABSENT];
        let at = |address| find(&all, address).map(|m| m.start);
        assert_eq!(
            [at(9), at(10), at(29), at(30), at(59), at(60), at(u64::MAX)],
            [None, Some(10), Some(20), None, Some(50), None, None]
        );
        assert_eq!(size_of::<Mapping>(), Mapping::SIZE);
    }
}
