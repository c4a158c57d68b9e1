//! `.eh_frame` as runs of rows: one run per function.

use super::Counts;
use super::convert;
use super::entries::{self, Bases, Bytes, Cie, Function};
use super::image::Image;
use super::instructions::{Machine, NOTHING, State, Step};
use super::pages::Pages;
use super::rules::{NONE, Rules, UNKNOWN};
use crate::rule::Rule;
use std::collections::HashMap;
use std::ops::Range;
use std::vec::Vec;

/// How many bytes of entries are read for each byte of the section. What functions have in common is read once; there may be such an
/// entry at each byte.
const WORK: u64 = 64;
/// Bytes of the section for each row that room is made for. Compilers write 5 to 8 (measured).
const BYTES_PER_ROW: usize = 5;
/// The most rows. Files of 200 MB have 1.3 million.
const MAX_ROWS: usize = 1 << 25;
/// Padding between functions, which is never executed, takes the rule before it: a row fewer.
const PADDING: u32 = 16;

/// The rows of one function: from `at` on, `rows` of them. Addresses are relative to the first page.
#[derive(Clone, Copy, Debug)]
struct Run {
    start: u32,
    end: u32,
    at: u32,
    rows: u32,
}

/// The rows of all functions.
#[derive(Debug, Default)]
pub(super) struct Runs {
    runs: Vec<Run>,
    /// Address, number of the rule.
    rows: Vec<(u32, u16)>,
    pub counts: Counts,
}

impl Runs {
    /// Adds rows of the code at `range`.
    pub fn add(&mut self, range: Range<u32>, rows: impl IntoIterator<Item = (u32, u16)>) {
        let at = self.rows.len();
        self.rows.extend(rows);
        self.end(range, at);
    }

    fn end(&mut self, range: Range<u32>, at: usize) {
        let rows = (self.rows.len() - at) as u32;
        self.runs.push(Run { start: range.start, end: range.end, at: at as u32, rows });
    }

    /// Whether a function overlaps these addresses.
    pub fn covers(&self, range: &Range<u32>) -> bool {
        self.runs.iter().any(|r| r.start < range.end && range.start < r.end)
    }

    /// In order of addresses. Linkers mostly leave them so.
    pub fn sort(&mut self) {
        if !self.runs.is_sorted_by_key(|r| r.start) {
            self.runs.sort_by_key(|r| r.start);
        }
    }

    /// Writes all rows. Where functions overlap, the one that begins later is right.
    pub fn write(&self, pages: &mut Pages) {
        pages.reserve(self.rows.len());
        let mut end = 0;
        for (nth, run) in self.runs.iter().enumerate() {
            let padding = run.start - end.min(run.start) < PADDING && run.start.is_multiple_of(PADDING) && end > 0;
            if end < run.start && !padding {
                pages.push(end, NONE);
            }
            let next = self.runs.get(nth + 1).map_or(u32::MAX, |r| r.start);
            for (address, rule) in &self.rows[run.at as usize..][..run.rows as usize] {
                if *address >= next {
                    break;
                }
                pages.push(*address, *rule);
            }
            end = run.end.min(next);
        }
        pages.push(end, NONE);
    }
}

/// The runs of a file.
pub(super) fn read(image: &Image<'_>, rules: &mut Rules) -> Runs {
    let mut runs = Runs::default();
    let Some(section) = image.eh_frame else { return runs };
    let bases = Bases { text: image.text, data: image.got };
    let mut cies: HashMap<usize, Option<Common<'_>>> = HashMap::new();
    let mut last: Option<(usize, Common<'_>)> = None;
    let mut reader = Reader { image, machine: Machine::new(), rules, seen: [(Rule::NONE, NONE); SEEN] };
    let mut work = (section.bytes.len() as u64).saturating_mul(WORK);
    runs.rows.reserve(section.bytes.len() / BYTES_PER_ROW);
    let mut at = 0;
    loop {
        let (entry, next) = match entries::entry(&section, at) {
            Some(Some(entry)) => entry,
            Some(None) => break,
            None => {
                runs.counts.damaged += 1;
                break;
            }
        };
        at = next;
        let Some(of) = entry.cie else { continue };
        work = work.saturating_sub(entry.len);
        let common = match last {
            Some((known, common)) if known == of => Some(common),
            _ => *cies.entry(of).or_insert_with(|| {
                let cie = entries::cie(&section, of)?;
                work = work.saturating_sub(cie.len);
                reader.common(cie)
            }),
        };
        if work == 0 || runs.rows.len() >= MAX_ROWS {
            runs.counts.cut = true;
            break;
        }
        let function = common.and_then(|common| Some((common, entry.function(&common.cie, bases)?)));
        match function {
            Some((common, function)) => {
                last = Some((of, common));
                reader.function(&common, &function, &mut runs);
            }
            None => runs.counts.damaged += 1,
        }
    }
    runs
}

/// A CIE, and what holds where its functions begin.
#[derive(Clone, Copy, Debug)]
struct Common<'b> {
    cie: Cie<'b>,
    initial: State<'b>,
}

/// Rules that were numbered before, by some bits of theirs.
const SEEN: usize = 256;

/// What the rows of functions are read with.
struct Reader<'r, 'b> {
    image: &'r Image<'b>,
    machine: Machine<'b>,
    rules: &'r mut Rules,
    seen: [(Rule, u16); SEEN],
}

impl<'b> Reader<'_, 'b> {
    fn common(&mut self, cie: Cie<'b>) -> Option<Common<'b>> {
        self.machine.begin(&cie, NOTHING);
        let mut bytes = Bytes(cie.instructions);
        while self.machine.step(&mut bytes).ok()?.is_some() {}
        Some(Common { cie, initial: self.machine.state })
    }

    fn number(&mut self, rule: Rule) -> u16 {
        let seen = &mut self.seen[(rule.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize];
        if seen.0 != rule {
            *seen = (rule, self.rules.number(rule));
        }
        seen.1
    }

    fn function(&mut self, common: &Common<'b>, function: &Function<'b>, runs: &mut Runs) {
        let end = function.start.checked_add(function.len);
        let Some(range) = end.and_then(|end| self.image.relative(function.start, end)) else {
            // Of a function that the linker has dropped, which it leaves at address 0.
            runs.counts.damaged += 1;
            return;
        };
        let (at, unknown) = (runs.rows.len(), runs.counts.unknown_rows);
        self.rows(common, function, range.clone(), runs);
        runs.counts.functions += 1;
        runs.counts.unknown_functions += u32::from(runs.counts.unknown_rows > unknown);
        runs.end(range, at);
    }

    fn rows(&mut self, common: &Common<'b>, function: &Function<'b>, range: Range<u32>, runs: &mut Runs) {
        self.machine.begin(&common.cie, common.initial);
        let mut bytes = Bytes(function.instructions);
        let (mut address, len) = (function.start, function.len);
        let mut number = NONE;
        loop {
            let step = self.machine.step(&mut bytes);
            let next = match step {
                Ok(Some(Step::By(by))) => address.saturating_add(by),
                Ok(Some(Step::To(to))) if to >= address => to,
                Ok(None) => u64::MAX,
                // What could be read stays; from there on nothing is known.
                Err(_) | Ok(Some(Step::To(_))) => {
                    runs.counts.damaged += 1;
                    self.machine.state = NOTHING;
                    self.machine.changed = true;
                    u64::MAX
                }
            };
            if next > address {
                let within = address - function.start;
                if within >= len {
                    break;
                }
                runs.counts.rows += 1;
                if self.machine.changed {
                    let rule = convert::rule(&self.machine.state, common.cie.signal);
                    let before = std::mem::replace(&mut number, self.number(rule));
                    if before != number || within == 0 {
                        runs.rows.push((range.start + within as u32, number));
                    }
                    self.machine.changed = false;
                }
                runs.counts.unknown_rows += u32::from(number == UNKNOWN);
            }
            if next == u64::MAX {
                break;
            }
            address = next;
        }
    }
}
