//! Addresses of code that a file has outside of its code: relocations of pointers, and landing places of exceptions. Something may jump
//! there that no jump in the code shows.

use crate::frames::Frames;
use crate::headers::{Headers, u32_at, u64_at};
use crate::segment::{Segment, table};
use object::elf::{R_X86_64_64, R_X86_64_IRELATIVE, R_X86_64_RELATIVE, SHT_DYNSYM, SHT_RELA};

/// `SHT_RELR`, and bytes of a relocation with an addend, and of a symbol (elf(5)).
const SHT_RELR: u32 = 19;
const RELOCATION: usize = 24;
const SYMBOL: usize = 24;
/// An encoding of pointers: there is none. Those of numbers: 32 and 64 bits, and LEB128 (Linux Standard Base, DWARF extensions).
const OMITTED: u8 = 0xff;
const ULEB128: u8 = 0x01;
const UDATA4: u8 = 0x03;
const UDATA8: u8 = 0x04;
const SDATA4: u8 = 0x0b;
const SDATA8: u8 = 0x0c;

/// Where pointers lead to, by the relocations of a file. `data`: the segments that they are in.
pub(crate) fn relocated(headers: &Headers, file: &std::fs::File, data: &[Segment]) -> Vec<u64> {
    let symbols = headers.sections.iter().find(|s| s.kind == SHT_DYNSYM).and_then(|s| table(file, s).ok());
    let symbol = |number: u32| u64_at(symbols.as_deref()?, (number as usize).checked_mul(SYMBOL)?.checked_add(8)?);
    let mut all = Vec::new();
    for section in headers.sections.iter().filter(|s| s.kind == SHT_RELA && s.address != 0) {
        let Ok(table) = table(file, section) else { continue };
        for r in table.as_chunks::<RELOCATION>().0 {
            let (Some(kind), Some(number), Some(addend)) = (u32_at(r, 8), u32_at(r, 12), u64_at(r, 16)) else {
                continue;
            };
            match kind {
                R_X86_64_RELATIVE | R_X86_64_IRELATIVE => all.push(addend),
                R_X86_64_64 => all.extend(symbol(number).map(|value| value.wrapping_add(addend))),
                _ => {}
            }
        }
    }
    let word = |at: u64| {
        let in_one = |s: &Segment| u64_at(s.bytes.get(usize::try_from(at.checked_sub(s.address)?).ok()?..)?, 0);
        data.iter().find_map(in_one)
    };
    for section in headers.sections.iter().filter(|s| s.kind == SHT_RELR) {
        let Ok(table) = table(file, section) else { continue };
        let mut at = 0u64;
        // An address, or 63 bits for the words behind the last one.
        for entry in table.as_chunks::<8>().0.iter().map(|e| u64::from_le_bytes(*e)) {
            if entry & 1 == 0 {
                all.extend(word(entry));
                at = entry.wrapping_add(8);
            } else {
                let bits = (0..63).filter(|bit| entry >> (bit + 1) & 1 != 0);
                all.extend(bits.filter_map(|bit| word(at.wrapping_add(8 * bit))));
                at = at.wrapping_add(63 * 8);
            }
        }
    }
    all
}

/// Where exceptions land, by the tables of functions (`.gcc_except_table`), which are in `data`.
pub(crate) fn landing(frames: &Frames, data: &[Segment]) -> Vec<u64> {
    let mut all = Vec::new();
    for (start, table) in frames.landing_tables() {
        let bytes = data.iter().find_map(|s| s.bytes.get(usize::try_from(table.checked_sub(s.address)?).ok()?..));
        if let Some(bytes) = bytes {
            // What cannot be read ends the table.
            let _ = places(&mut Reader { bytes }, start, &mut all);
        }
    }
    all
}

/// The landing places of one function.
fn places(reader: &mut Reader<'_>, start: u64, all: &mut Vec<u64>) -> Option<()> {
    let base = match reader.byte()? {
        OMITTED => start,
        encoding => reader.number(encoding & 0xf)?,
    };
    if reader.byte()? != OMITTED {
        reader.leb128()?;
    }
    let encoding = reader.byte()? & 0xf;
    let len = usize::try_from(reader.leb128()?).ok()?;
    let mut calls = Reader { bytes: reader.bytes.get(..len)? };
    while !calls.bytes.is_empty() {
        let [_, _, place] = [calls.number(encoding)?, calls.number(encoding)?, calls.number(encoding)?];
        calls.leb128()?;
        all.extend((place != 0).then(|| base.wrapping_add(place)));
    }
    Some(())
}

/// Takes numbers from the beginning of some bytes.
struct Reader<'b> {
    bytes: &'b [u8],
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.bytes.split_first_chunk::<N>()?;
        self.bytes = rest;
        Some(*first)
    }

    fn leb128(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn number(&mut self, encoding: u8) -> Option<u64> {
        match encoding {
            ULEB128 => self.leb128(),
            UDATA4 => Some(u32::from_le_bytes(self.array()?).into()),
            SDATA4 => Some(i64::from(i32::from_le_bytes(self.array()?)) as u64),
            0 | UDATA8 | SDATA8 => Some(u64::from_le_bytes(self.array()?)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_landing_places() {
        // The base omitted, types at 9 bytes, calls of LEB128: two, of which the second lands at 0x82.
        let table = [0xff, 0x9b, 9, 1, 9, 1, 5, 0, 0, 6, 5, 0x82, 1, 3, 0xaa];
        let mut all = vec![];
        assert_eq!(places(&mut Reader { bytes: &table }, 0x1000, &mut all), Some(()));
        assert_eq!(all, [0x1082]);
        for len in 0..table.len() - 1 {
            let _ = places(&mut Reader { bytes: &table[..len] }, 0x1000, &mut vec![]);
        }
        // A base of its own, calls of 32 bits.
        let table = [0x03, 0, 0x20, 0, 0, 0xff, 0x03, 13, 0, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0];
        all.clear();
        assert_eq!(places(&mut Reader { bytes: &table }, 0x1000, &mut all), Some(()));
        assert_eq!(all, [0x2007]);
    }
}
