//! Addresses of code that are taken: what may lead to an instruction without a direct jump. A computed goto, a table of jumps, a table that
//! somebody made by hand.
//!
//! ```text
//!  lea reg, [rip+d] ─┬─► code: an address
//!                    └─► data: a table? its numbers of 32 bits, relative to its beginning, as long as they lead to code
//!  relocations of pointers, landing places of exceptions (from the caller)
//!  files that are linked to fixed addresses: numbers in code (32 bits) and data (64 bits) that are such an address
//! ```
//!
//! Bytes are read wherever an instruction could begin, so addresses that nobody takes may be among them: a function too many is left
//! unpatched.

use crate::input::{Module, Segment};
use std::ops::Range;

/// Addresses in code that are taken, each with the place that takes it: an address in code, or 0.
pub(crate) fn taken(module: &Module<'_>) -> Vec<(u64, u64)> {
    let code = module.code();
    let mut all: Vec<(u64, u64)> = module.pointers.iter().map(|to| (0, *to)).collect();
    let mut tables = vec![];
    for segment in module.segments {
        of_code(segment, &code, &mut all, &mut tables);
        if module.is_fixed {
            all.extend(
                numbers(segment, &code).filter(|(at, _)| is_operand(&segment.bytes[..(at - segment.address) as usize])),
            );
        }
    }
    for segment in module.data.iter().filter(|_| module.is_fixed) {
        all.extend(pointers(segment).filter(|to| code.contains(to)).map(|to| (0, to)));
    }
    tables.sort_unstable();
    tables.dedup();
    for (i, table) in tables.iter().enumerate() {
        let next = tables.get(i + 1).copied().unwrap_or(u64::MAX);
        all.extend(entries(module, *table..next, &code).map(|to| (0, to)));
    }
    all.retain(|(_, to)| code.contains(to));
    all
}

/// What `lea reg, [rip+d]` leads to, wherever it could be: in code, or elsewhere.
fn of_code(segment: &Segment<'_>, code: &Range<u64>, all: &mut Vec<(u64, u64)>, tables: &mut Vec<u64>) {
    for (i, window) in segment.bytes.windows(6).enumerate() {
        let [0x8d, modrm, distance @ ..] = window else { continue };
        if modrm & 0xc7 != 5 {
            continue;
        }
        let distance = i32::from_le_bytes([distance[0], distance[1], distance[2], distance[3]]);
        let from = segment.address.wrapping_add(i as u64);
        let to = from.wrapping_add(6).wrapping_add_signed(distance.into());
        if code.contains(&to) {
            all.push((from, to));
        } else {
            tables.push(to);
        }
    }
}

/// Numbers of 32 bits that are addresses in code, and where they are.
fn numbers(segment: &Segment<'_>, code: &Range<u64>) -> impl Iterator<Item = (u64, u64)> {
    segment.bytes.windows(4).enumerate().filter_map(move |(i, w)| {
        let number = u64::from(u32::from_le_bytes([w[0], w[1], w[2], w[3]]));
        code.contains(&number).then(|| (segment.address.wrapping_add(i as u64), number))
    })
}

/// Numbers of 64 bits. Those of 32 bits are more often text.
fn pointers(segment: &Segment<'_>) -> impl Iterator<Item = u64> {
    let number = |w: &[u8]| w.first_chunk().map_or(0, |w| u64::from_le_bytes(*w));
    segment.bytes.windows(8).step_by(4).map(number)
}

/// Whether a number of 32 bits behind these bytes could be what an instruction makes an address of: `mov`, `push`, `add`, `lea`.
fn is_operand(before: &[u8]) -> bool {
    let byte = |back: usize| before.len().checked_sub(back).map_or(0, |at| before[at]);
    let [last, second, third] = [1, 2, 3].map(byte);
    // mov register, push, add rax; mov and add of other operands, lea.
    matches!(last, 0xb8..=0xbf | 0x68)
        || (second, last) == (0x48, 0x05)
        || (2..=7).any(|back| byte(back) == 0xc7)
        || second == 0x81 && last & 0xf8 == 0xc0
        || second == 0x8d && last & 0xc0 == 0x80
        || third == 0x8d && (second & 0xc7 == 0x84 || second & 0xc7 == 0x04 && last == 0x25)
}

/// What the numbers of a table lead to, up to the first that does not lead to code, or the next table.
fn entries(module: &Module<'_>, table: Range<u64>, code: &Range<u64>) -> impl Iterator<Item = u64> {
    let bytes =
        module.data.iter().find_map(|s| s.bytes.get(usize::try_from(table.start.checked_sub(s.address)?).ok()?..));
    let most = usize::try_from(table.end - table.start).unwrap_or(usize::MAX);
    let bytes = bytes.map_or(&[][..], |b| &b[..b.len().min(most)]);
    let to = move |w: &[u8; 4]| table.start.wrapping_add_signed(i32::from_le_bytes(*w).into());
    bytes.as_chunks::<4>().0.iter().map(to).take_while(|to| code.contains(to))
}
