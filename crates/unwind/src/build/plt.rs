//! Rows of procedure linkage tables that the linker has left out: those of the LLVM family leave out all.
//!
//! ```text
//! .plt       push; jmp; nop │ jmp *got; push n; jmp │ …      16 bytes each; with IBT: endbr64; push n; jmp
//! .plt.sec, .plt.got, .iplt   jmp *got │ …                   never push
//! ```

use super::frames::Runs;
use super::image::{Image, Linkage, Loaded};
use super::rules::Rules;
use crate::rule::{Kind, Rule, SavedBp};

/// Bytes of an entry of `.plt`.
const ENTRY: u32 = 16;
/// Length of the first push of `.plt`, after which the first entry has two words on the stack.
const FIRST_PUSH: u32 = 6;
/// Where an entry has pushed: behind `jmp *got` (6) and `push n` (5); behind `endbr64` (4) and `push n` (5).
const PUSHED: u8 = 11;
const PUSHED_IBT: u8 = 9;
const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

pub(super) fn add(image: &Image<'_>, runs: &mut Runs, rules: &mut Rules) {
    for (kind, table) in &image.linkage {
        let range = table.address.checked_add(table.bytes.len() as u64);
        let Some(range) = range.and_then(|end| image.relative(table.address, end)) else { continue };
        if runs.covers(&range) {
            continue;
        }
        let mut number =
            |kind, offset, extra| rules.number(Rule::new(kind, offset, SavedBp::Same, extra).unwrap_or(Rule::UNKNOWN));
        let called = number(Kind::Sp, 8, 0);
        let start = range.start;
        match kind {
            Linkage::Plain => runs.add(range, [(start, called)]),
            Linkage::Lazy => {
                // The first entry is jumped to with a number on the stack, and pushes another word.
                let [one, two] = [number(Kind::Sp, 16, 0), number(Kind::Sp, 24, 0)];
                let lazy = number(Kind::Plt, 8, pushed(table));
                let rows = [(start, one), (start + FIRST_PUSH, two), (start + ENTRY, lazy)];
                let len = range.end - start;
                runs.add(range, rows.into_iter().filter(move |r| r.0 - start < len));
            }
        }
        runs.counts.linkage_tables += 1;
    }
}

fn pushed(table: &Loaded<'_>) -> u8 {
    let entry = table.bytes.get(ENTRY as usize..).unwrap_or_default();
    if entry.starts_with(&ENDBR64) { PUSHED_IBT } else { PUSHED }
}
