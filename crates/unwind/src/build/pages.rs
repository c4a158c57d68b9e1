//! Rows in rising order of addresses become pages: equal neighbours are merged, and each page begins with the row in effect.

use super::rules::NONE;
use crate::table::{PAGE_BITS, Page, Row};
use std::vec::Vec;

/// Pages being filled. Addresses are relative to the first one.
pub(super) struct Pages {
    pages: Vec<Page>,
    rows: Vec<Row>,
    /// How many pages there will be.
    count: usize,
    /// The rule in effect.
    rule: u16,
}

impl Pages {
    /// Pages for addresses below `span`.
    pub fn new(span: u32) -> Pages {
        let count = (span as usize).div_ceil(1 << PAGE_BITS);
        Pages { pages: Vec::with_capacity(count), rows: Vec::new(), count, rule: NONE }
    }

    pub fn reserve(&mut self, rows: usize) {
        self.rows.reserve(rows);
    }

    /// From `address` on, the rule is `rule`. Addresses do not fall; of several rules at one address the last is in effect.
    pub fn push(&mut self, address: u32, rule: u16) {
        if rule == self.rule && !self.pages.is_empty() {
            return;
        }
        let page = (address >> PAGE_BITS) as usize;
        if page >= self.count {
            return;
        }
        self.open(page);
        let row = Row::new(address as u16, rule);
        match self.rows.last_mut() {
            Some(last) if last.low() == row.low() => *last = row,
            _ => self.rows.push(row),
        }
        self.rule = rule;
    }

    /// Opens pages up to number `page`, each with the rule in effect.
    fn open(&mut self, page: usize) {
        while self.pages.len() <= page {
            self.close();
            self.pages.push(Page { first: self.rows.len() as u32, rows: 0 });
            self.rows.push(Row::new(0, self.rule));
        }
    }

    fn close(&mut self) {
        if let Some(last) = self.pages.last_mut() {
            last.rows = self.rows.len() as u32 - last.first;
        }
    }

    /// All pages and rows.
    pub fn finish(mut self) -> (Vec<Page>, Vec<Row>) {
        if let Some(last) = self.count.checked_sub(1) {
            self.open(last);
        }
        self.close();
        (self.pages, self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_merged_and_carried() {
        let mut p = Pages::new(0x4_0001);
        for (address, rule) in [(0x10, 2), (0x20, 2), (0x30, 3), (0x30, 4), (0x2_0000, 5), (0x2_0010, 0), (0x9_0000, 7)]
        {
            p.push(address, rule);
        }
        let (pages, rows) = p.finish();
        let rows_of = |p: &Page| {
            rows[p.first as usize..][..p.rows as usize].iter().map(|r| (r.low(), r.rule())).collect::<Vec<_>>()
        };
        let all: Vec<_> = pages.iter().map(rows_of).collect();
        let want: [&[(u16, u16)]; 5] =
            [&[(0, 0), (0x10, 2), (0x30, 4)], &[(0, 4)], &[(0, 5), (0x10, 0)], &[(0, 0)], &[(0, 0)]];
        assert_eq!(all, want);
    }
}
