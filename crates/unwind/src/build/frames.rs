//! `.eh_frame` as runs of rows: one run per function.

use super::Counts;
use super::image::Image;
use super::pages::Pages;
use super::rules::{NONE, Rules};
use crate::cfi;
use crate::rule::{Kind, Rule};
use gimli::{
    BaseAddresses, CieOrFde, CommonInformationEntry, EhFrame, EhFrameOffset, EndianSlice, FrameDescriptionEntry,
    LittleEndian, UnwindContext, UnwindSection,
};
use std::collections::HashMap;
use std::ops::Range;
use std::vec::Vec;

type Slice<'b> = EndianSlice<'b, LittleEndian>;
type Fde<'b> = FrameDescriptionEntry<Slice<'b>>;

/// How many bytes of unwind instructions are carried out for each byte of the section. Those that functions have in common are carried
/// out for each function; compilers write a dozen bytes of them.
const WORK: u64 = 64;
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
    let Some(frame) = image.eh_frame else { return runs };
    let section = EhFrame::new(frame.bytes, LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(frame.address).set_text(image.text).set_got(image.got);
    let mut cies: HashMap<usize, CommonInformationEntry<Slice<'_>>> = HashMap::new();
    let mut last: Option<(usize, CommonInformationEntry<Slice<'_>>)> = None;
    let mut reader =
        Reader { image, section, bases: &bases, context: UnwindContext::new(), rules, seen: (Rule::NONE, NONE) };
    let mut work = (frame.bytes.len() as u64).saturating_mul(WORK);
    let mut entries = section.entries(&bases);
    loop {
        let partial = match entries.next() {
            Ok(Some(CieOrFde::Fde(partial))) => partial,
            Ok(Some(CieOrFde::Cie(_))) => continue,
            Ok(None) => break,
            Err(_) => {
                runs.counts.damaged += 1;
                break;
            }
        };
        let fde = partial.parse(|section, bases, EhFrameOffset(at)| {
            if let Some((_, cie)) = last.as_ref().filter(|l| l.0 == at) {
                return Ok(cie.clone());
            }
            let cie = match cies.get(&at) {
                Some(known) => known.clone(),
                None => section.cie_from_offset(bases, EhFrameOffset(at))?,
            };
            cies.insert(at, cie.clone());
            last = Some((at, cie.clone()));
            Ok(cie)
        });
        let Ok(fde) = fde else {
            runs.counts.damaged += 1;
            continue;
        };
        work = work.saturating_sub((fde.entry_len() + fde.cie().entry_len()) as u64);
        if work == 0 || runs.rows.len() >= MAX_ROWS {
            runs.counts.cut = true;
            break;
        }
        reader.function(&fde, &mut runs);
    }
    runs
}

/// What the rows of a function are read with.
struct Reader<'r, 'b> {
    image: &'r Image<'b>,
    section: EhFrame<Slice<'b>>,
    bases: &'r BaseAddresses,
    context: UnwindContext<usize>,
    rules: &'r mut Rules,
    /// The last rule and its number.
    seen: (Rule, u16),
}

impl<'b> Reader<'_, 'b> {
    fn number(&mut self, rule: Rule) -> u16 {
        if self.seen.0 != rule {
            self.seen = (rule, self.rules.number(rule));
        }
        self.seen.1
    }

    fn function(&mut self, fde: &Fde<'b>, runs: &mut Runs) {
        let start = fde.initial_address();
        let Some(range) = start.checked_add(fde.len()).and_then(|end| self.image.relative(start, end)) else {
            // Of a function that the linker has dropped, which it leaves at address 0.
            runs.counts.damaged += 1;
            return;
        };
        let (at, unknown) = (runs.rows.len(), runs.counts.unknown_rows);
        if self.rows(fde, range.clone(), start, runs).is_err() {
            // What could be read stays; from there on nothing is known.
            runs.counts.damaged += 1;
            let from = runs.rows[at..].last().map_or(range.start, |r| r.0);
            let number = self.number(Rule::UNKNOWN);
            runs.rows.push((from, number));
        }
        runs.counts.functions += 1;
        runs.counts.unknown_functions += u32::from(runs.counts.unknown_rows > unknown);
        runs.end(range, at);
    }

    fn rows(&mut self, fde: &Fde<'b>, range: Range<u32>, start: u64, runs: &mut Runs) -> gimli::Result<()> {
        let signal = fde.is_signal_trampoline();
        let section = self.section;
        let mut context = std::mem::take(&mut self.context);
        let mut rows = fde.rows(&section, self.bases, &mut context)?;
        let mut from = range.start;
        loop {
            let row = match rows.next_row() {
                Ok(Some(row)) => row,
                end => {
                    let end = end.map(drop);
                    self.context = context;
                    return end;
                }
            };
            let within = u32::try_from(row.start_address().wrapping_sub(start)).unwrap_or(u32::MAX);
            let address = range.start.saturating_add(within);
            // Out of order, or behind the end.
            if address < from || address >= range.end {
                continue;
            }
            from = address;
            let rule = cfi::rule(row, signal, &section);
            runs.counts.rows += 1;
            runs.counts.unknown_rows += u32::from(rule.kind() == Kind::Unknown);
            let number = self.number(rule);
            match runs.rows.last_mut().filter(|_| address > range.start) {
                Some(last) if last.0 == address => last.1 = number,
                Some(last) if last.1 == number => {}
                _ => runs.rows.push((address, number)),
            }
        }
    }
}
