//! Encodings of values in a page (Encodings.md of apache/parquet-format).
//!
//! ```text
//! hybrid: numbers below 2^width     n << 1, value                n times the same, at least 8 of them
//!                                   groups << 1 | 1, bits        8 numbers to a group, lowest bits first
//! delta:  head, then blocks of 128  least difference, 4 widths, 4 × 32 differences above it
//! ```

use super::thrift::{varint, zigzag};

/// Numbers in a group.
const GROUP: usize = 8;
/// Numbers in a block of differences, and in a part of it with a width of its own.
const BLOCK: usize = 128;
const PART: usize = 32;

/// How many bits the numbers up to `most` need.
pub fn width(most: u32) -> u32 {
    u32::BITS - most.leading_zeros()
}

/// Appends numbers below 2^`width`.
pub fn hybrid(values: &[u32], width: u32, out: &mut Vec<u8>) {
    let mut waiting = 0;
    let mut at = 0;
    while at < values.len() {
        let same = values[at..].iter().take_while(|v| **v == values[at]).count();
        // Only whole groups can be before a run.
        let rest = (GROUP - (at - waiting) % GROUP) % GROUP;
        if same < rest + GROUP {
            at += same;
            continue;
        }
        groups(&values[waiting..at + rest], width, out);
        at += rest;
        run(values[at], same - rest, width, out);
        at += same - rest;
        waiting = at;
    }
    groups(&values[waiting..], width, out);
}

/// Appends `n` times a number.
pub fn run(value: u32, n: usize, width: u32, out: &mut Vec<u8>) {
    varint((n as u64) << 1, out);
    out.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8) as usize]);
}

/// Appends numbers in groups, the last of which is filled up.
fn groups(values: &[u32], width: u32, out: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    let n = values.len().div_ceil(GROUP);
    varint((n as u64) << 1 | 1, out);
    let fill = n * GROUP - values.len();
    bits(values.iter().map(|v| u64::from(*v)).chain(std::iter::repeat_n(0, fill)), width, out);
}

/// Appends the lowest bits of numbers, one behind the other; their number times the width is whole bytes.
fn bits(values: impl Iterator<Item = u64>, width: u32, out: &mut Vec<u8>) {
    let (mut held, mut n) = (0u128, 0);
    for v in values {
        held |= u128::from(v) << n;
        n += width;
        while n >= 8 {
            out.push(held as u8);
            held >>= 8;
            n -= 8;
        }
    }
    if n > 0 {
        out.push(held as u8);
    }
}

/// Appends truths, a bit for each.
pub fn truths(values: &[i64], out: &mut Vec<u8>) {
    bits(values.iter().map(|v| u64::from(*v != 0)), 1, out);
}

/// Appends numbers as differences: DELTA_BINARY_PACKED.
pub fn delta(values: &[i64], out: &mut Vec<u8>) {
    varint(BLOCK as u64, out);
    varint((BLOCK / PART) as u64, out);
    varint(values.len() as u64, out);
    varint(zigzag(values.first().copied().unwrap_or(0)), out);
    let differences: Vec<i64> = values.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
    for block in differences.chunks(BLOCK) {
        let least = block.iter().copied().min().unwrap_or(0);
        varint(zigzag(least), out);
        let above = |part: &[i64]| part.iter().map(|d| d.wrapping_sub(least) as u64).collect::<Vec<u64>>();
        let parts: Vec<Vec<u64>> = block.chunks(PART).map(above).collect();
        let widths = parts.iter().map(|part| u64::BITS - part.iter().fold(0, |all, v| all | v).leading_zeros());
        let widths: Vec<u32> = widths.chain(std::iter::repeat(0)).take(BLOCK / PART).collect();
        out.extend(widths.iter().map(|width| *width as u8));
        for (part, width) in parts.iter().zip(&widths) {
            bits(part.iter().copied().chain(std::iter::repeat_n(0, PART - part.len())), *width, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_varint(bytes: &mut &[u8]) -> u64 {
        let (mut v, mut shift) = (0, 0);
        loop {
            let (first, rest) = bytes.split_first().expect("a number");
            *bytes = rest;
            v |= u64::from(first & 0x7f) << shift;
            shift += 7;
            if first & 0x80 == 0 {
                return v;
            }
        }
    }

    fn read_bits(bytes: &mut &[u8], n: usize, width: u32) -> Vec<u64> {
        let bit = |at: usize| u64::from(bytes[at / 8] >> (at % 8) & 1);
        let value = |i: usize| (0..width as usize).fold(0, |v, b| v | bit(i * width as usize + b) << b);
        let all = (0..n).map(value).collect();
        *bytes = &bytes[(n * width as usize).div_ceil(8)..];
        all
    }

    fn read_hybrid(mut bytes: &[u8], n: usize, width: u32) -> Vec<u32> {
        let mut all: Vec<u32> = Vec::new();
        while all.len() < n {
            let head = read_varint(&mut bytes);
            if head & 1 == 1 {
                let n = (head >> 1) as usize * GROUP;
                all.extend(read_bits(&mut bytes, n, width).iter().map(|v| *v as u32));
            } else {
                let mut le = [0; 4];
                let len = width.div_ceil(8) as usize;
                le[..len].copy_from_slice(&bytes[..len]);
                bytes = &bytes[len..];
                all.extend(std::iter::repeat_n(u32::from_le_bytes(le), (head >> 1) as usize));
            }
        }
        assert!(bytes.is_empty());
        all.truncate(n);
        all
    }

    fn read_delta(mut bytes: &[u8]) -> Vec<i64> {
        let unsigned = |v: u64| (v >> 1) as i64 ^ -((v & 1) as i64);
        let [block, parts, n] = [0; 3].map(|_: i32| read_varint(&mut bytes) as usize);
        let mut all = vec![unsigned(read_varint(&mut bytes))];
        all.truncate(n);
        while all.len() < n {
            let least = unsigned(read_varint(&mut bytes));
            let (widths, rest) = bytes.split_at(parts);
            bytes = rest;
            for width in widths.iter().take((n - all.len()).div_ceil(block / parts)) {
                for d in read_bits(&mut bytes, block / parts, (*width).into()) {
                    let next = all[all.len() - 1].wrapping_add(least).wrapping_add(d as i64);
                    all.push(next);
                }
            }
        }
        assert!(bytes.is_empty());
        all.truncate(n);
        all
    }

    #[test]
    fn runs_take_a_few_bytes() {
        let mut out = Vec::new();
        hybrid(&[3; 1000], 2, &mut out);
        assert_eq!(out, [0xd0, 0x0f, 3]);
        out.clear();
        hybrid(&[0; 5], 0, &mut out);
        assert_eq!(out, [3]);
    }

    proptest! {
        #[test]
        fn numbers_come_back(runs in prop::collection::vec((0..40u32, 1..30usize), 0..40)) {
            let values: Vec<u32> = runs.iter().flat_map(|(v, n)| std::iter::repeat_n(*v, *n)).collect();
            let mut out = Vec::new();
            hybrid(&values, width(40), &mut out);
            prop_assert_eq!(read_hybrid(&out, values.len(), width(40)), values);
        }

        #[test]
        fn differences_come_back(values in prop::collection::vec(prop_oneof![0..1000i64, any::<i64>()], 0..600)) {
            let mut out = Vec::new();
            delta(&values, &mut out);
            prop_assert_eq!(read_delta(&out), values);
        }
    }
}
