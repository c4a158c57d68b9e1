//! Which places the code of a module jumps to: all of it is read once, from each known beginning to the next, because a jump from
//! anywhere into the bytes that a patch replaces forbids the patch.
//!
//! Only pieces are decoded in which any byte could begin a branch that leads to where it matters: few of them.
//!
//! The pass sees direct jumps and calls. Other addresses that lead into code are looked for in [`crate::taken`]. Data in code is decoded as
//! if it were code, which may refuse a function too many. It may also hide the jump right behind
//! it, until decoding finds the instructions again: a few bytes later, at the latest at the next symbol or unwind entry.

use crate::input::{Module, Segment};
use crate::relocate::JUMP;
use crate::taken::taken;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind};
use std::ops::Range;
use std::thread;

/// Bytes of code for which a thread is worth its start.
const WORTH: usize = 1 << 20;
/// The most threads.
const THREADS: usize = 8;

/// Bytes of the longest instruction.
const LONGEST: u64 = 15;
/// Bytes that a place has at most to which nothing may lead: a patch in front of a probe begins with an instruction and ends behind another one.
const FARTHEST: u64 = JUMP as u64 + 2 * LONGEST;

/// How far a branch with a distance of one byte leads, or farther.
const SHORT: usize = 130;

/// Bits, one for a byte of a segment, and a word without any.
struct Bits(Vec<u64>);

impl Bits {
    fn new(bits: usize) -> Bits {
        Bits(vec![0; bits.div_ceil(64) + 1])
    }

    fn set(&mut self, bit: usize) {
        let words = self.0.len() - 1;
        if let Some(word) = self.0[..words].get_mut(bit / 64) {
            *word |= 1 << (bit % 64);
        }
    }

    /// Not behind the last byte, nor in front of the first, whose number has overflown.
    fn has(&self, bit: usize) -> bool {
        let word = (bit / 64).min(self.0.len() - 1);
        self.0[word] >> (bit % 64) & 1 != 0
    }

    fn has_any(&self, bits: Range<usize>) -> bool {
        let end = bits.end.div_ceil(64).min(self.0.len());
        self.0[(bits.start / 64).min(end)..end].iter().any(|word| *word != 0)
    }
}

/// A place that is to be patched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The first byte that is replaced.
    pub at: u64,
    /// The function: a jump in it to `start` or `at` is a loop.
    pub start: u64,
    /// Its end.
    pub end: u64,
    /// Not 0: instructions in front of it are repeated in the moved beginning, and what leads to `at`, or behind the first one of them, has not
    /// executed them all. 1, and the number of bytes from there to `at`.
    pub repeated: u64,
    /// Nothing may lead to bytes behind `at` up to this one, though they are not replaced: it is a probe, which would be missed.
    pub probe: u64,
}

impl Place {
    /// The bytes that nothing may lead to.
    fn closed(&self) -> Range<u64> {
        let first = self.at.wrapping_add(1).wrapping_sub(self.repeated);
        let probe = self.probe.saturating_add(u64::from(self.probe != 0));
        first..self.at.saturating_add(JUMP as u64).max(probe)
    }
}

/// What leads into places.
#[derive(Debug, Default)]
pub(crate) struct Hits {
    /// Addresses in the closed bytes of a place, sorted.
    pub inside: Vec<u64>,
    /// First bytes to which the function itself jumps, sorted.
    pub loops: Vec<u64>,
    /// Beginnings of functions that compute addresses of their own code: a table of distances may lead anywhere in them.
    pub labels: Vec<u64>,
}

impl Hits {
    fn sort(&mut self) {
        for list in [&mut self.inside, &mut self.loops, &mut self.labels] {
            list.sort_unstable();
            list.dedup();
        }
    }

    /// Something leads into the closed bytes of a place.
    pub fn is_inside(&self, place: &Place) -> bool {
        let closed = place.closed();
        let next = self.inside.partition_point(|hit| *hit < closed.start);
        self.inside.get(next).is_some_and(|hit| closed.contains(hit))
    }

    /// The function may have ways to its own instructions that nobody sees.
    pub fn has_label(&self, place: &Place) -> bool {
        self.labels.binary_search(&place.start).is_ok()
    }

    /// The function at whose beginning a patch would be jumps there.
    pub fn is_loop(&self, at: u64) -> bool {
        self.loops.binary_search(&at).is_ok()
    }
}

/// Looks for jumps into places, which are sorted by `at`.
pub(crate) fn hits(module: &Module<'_>, places: &[Place]) -> Hits {
    let mut hits = Hits::default();
    let is_empty = |s: &&Segment<'_>| !places.iter().any(|p| p.at.wrapping_sub(s.address) < s.bytes.len() as u64);
    let segments = module.segments.iter().filter(|s| !is_empty(s));
    for segment in segments {
        let scan = Scan::new(module, segment, places);
        let pieces = scan.pieces();
        let threads = thread::available_parallelism().map_or(1, |n| n.get()).min(THREADS);
        let threads = threads.min(1 + segment.bytes.len() / WORTH);
        let share = pieces.len().div_ceil(threads).max(1);
        let found: Vec<Hits> = thread::scope(|scope| {
            let others: Vec<_> = pieces.chunks(share).skip(1).map(|share| scope.spawn(|| scan.run(share))).collect();
            let own = scan.run(pieces.chunks(share).next().unwrap_or_default());
            // A thread that panicked has found nothing: it cannot, and a plan without its hits would be wrong.
            others.into_iter().map(|t| t.join().expect("decoding does not panic")).chain([own]).collect()
        });
        for one in found {
            hits.inside.extend(one.inside);
            hits.loops.extend(one.loops);
        }
    }
    let taken = taken(module);
    let closed = |p: &&Place, address: u64| p.closed().contains(&address);
    for address in taken.iter().map(|(_, to)| *to) {
        // A place that begins within the length of a patch below the address.
        let next = places.partition_point(|p| p.at <= address.saturating_add(LONGEST));
        let mut near = places[..next].iter().rev().take_while(|p| p.at + FARTHEST > address);
        hits.inside.extend(near.any(|p| closed(&p, address)).then_some(address));
    }
    let mut by_start: Vec<(u64, u64)> = places.iter().map(|p| (p.start, p.end)).collect();
    by_start.sort_unstable();
    for (from, to) in taken {
        let next = by_start.partition_point(|(start, _)| *start < to);
        let own = next.checked_sub(1).map(|last| by_start[last]);
        let own = own.filter(|(start, end)| (*start..*end).contains(&from) && (*start..*end).contains(&to));
        hits.labels.extend(own.map(|(start, _)| start));
    }
    hits.sort();
    hits
}

/// One segment's pass.
struct Scan<'s> {
    module: &'s Module<'s>,
    segment: &'s Segment<'s>,
    places: &'s [Place],
    /// Bytes behind the first of a patch.
    inside: Bits,
    /// First bytes of functions and patches.
    firsts: Bits,
    /// Both.
    marked: Bits,
}

impl<'s> Scan<'s> {
    fn new(module: &'s Module<'s>, segment: &'s Segment<'s>, places: &'s [Place]) -> Scan<'s> {
        let len = segment.bytes.len();
        let (mut inside, mut firsts) = (Bits::new(len), Bits::new(len));
        for place in places {
            let Some(at) = place.at.checked_sub(segment.address).filter(|at| *at < len as u64) else { continue };
            firsts.set(at as usize);
            firsts.set((at as usize).saturating_sub((place.at - place.start) as usize));
            place.closed().for_each(|byte| inside.set((byte - segment.address) as usize));
        }
        let marked = Bits(inside.0.iter().zip(&firsts.0).map(|(a, b)| a | b).collect());
        Scan { module, segment, places, inside, firsts, marked }
    }

    /// Offsets at which decoding begins anew.
    fn pieces(&self) -> Vec<(usize, usize)> {
        let (start, len) = (self.segment.address, self.segment.bytes.len());
        let offset = |a: u64| a.checked_sub(start).filter(|o| *o < len as u64).map(|o| o as usize);
        let symbols = self.module.symbols.iter().copied();
        let frames = self.module.frames.iter().flat_map(|f| [f.start, f.start.wrapping_add(f.len)]);
        let functions = self.module.functions.iter().map(|f| f.address);
        let mut starts: Vec<usize> =
            symbols.chain(frames).chain(functions).filter_map(offset).chain([0, len]).collect();
        starts.sort_unstable();
        starts.dedup();
        starts.windows(2).map(|w| (w[0], w[1])).collect()
    }

    fn run(&self, pieces: &[(usize, usize)]) -> Hits {
        let mut hits = Hits::default();
        for (start, end) in pieces {
            if self.may_hit(*start, &self.segment.bytes[*start..*end]) {
                self.decode((*start, *end), &mut hits);
            }
        }
        hits
    }

    fn decode(&self, (start, end): (usize, usize), hits: &mut Hits) {
        let mut instruction = Instruction::default();
        let bytes = &self.segment.bytes[start..end];
        let ip = self.segment.address.wrapping_add(start as u64);
        let mut decoder = Decoder::with_ip(64, bytes, ip, DecoderOptions::NO_INVALID_CHECK);
        while decoder.can_decode() {
            let at = decoder.position();
            decoder.decode_out(&mut instruction);
            if instruction.is_invalid() {
                // One byte on: there is always progress.
                let _ = decoder.set_position(at + 1);
                decoder.set_ip(ip.wrapping_add(at as u64 + 1));
            } else if instruction.flow_control() != FlowControl::Next {
                self.look(&instruction, hits);
            }
        }
    }

    /// Whether any branch that these bytes could be, from whichever byte on they were read, leads to where it matters. Reading bytes
    /// is many times faster than decoding instructions, and says no for nearly all of a program. What leads nowhere is found out first, because
    /// whether a byte begins a branch is hard to foresee for a processor.
    fn may_hit(&self, start: usize, bytes: &[u8]) -> bool {
        let matters = |i: usize, to: usize| {
            let at = |offset: usize| self.segment.address.wrapping_add(offset as u64);
            self.inside.has(to)
                || bytes[i] != 0xe8 && self.firsts.has(to) && self.loops(at(start + i), at(to)).next().is_some()
        };
        // A branch ends with its distance; what comes before its opcode does not matter.
        let near = || {
            bytes.windows(5).enumerate().any(|(i, window)| {
                let distance = i32::from_le_bytes([window[1], window[2], window[3], window[4]]);
                let to = (start + i + 5).wrapping_add_signed(distance as isize);
                let is_second = || i > 0 && bytes[i - 1] == 0x0f;
                self.marked.has(to)
                    && (matches!(window[0], 0xe8 | 0xe9) || matches!(window[0], 0x80..=0x8f) && is_second())
                    && matters(i, to)
            })
        };
        let short = || {
            bytes.windows(2).enumerate().any(|(i, window)| {
                let to = (start + i + 2).wrapping_add_signed(window[1] as i8 as isize);
                self.marked.has(to) && matches!(window[0], 0x70..=0x7f | 0xe0..=0xe3 | 0xeb) && matters(i, to)
            })
        };
        // A branch too, and longer or shorter: code with it is decoded, of which there is hardly any.
        let xbegin = bytes.iter().zip(bytes.iter().skip(1));
        let has_xbegin = xbegin.fold(false, |any, (first, second)| any | (*first == 0xc7) & (*second == 0xf8));
        let around = start.saturating_sub(SHORT)..start + bytes.len() + SHORT;
        has_xbegin || near() || self.marked.has_any(around) && short()
    }

    fn look(&self, instruction: &Instruction, hits: &mut Hits) {
        let is_branch = match instruction.op0_kind() {
            OpKind::NearBranch64 => true,
            // Of other sizes are those that nobody writes.
            OpKind::NearBranch32 | OpKind::NearBranch16 => true,
            _ => false,
        };
        if !is_branch {
            return;
        }
        let target = instruction.near_branch_target();
        let Some(offset) = target.checked_sub(self.segment.address).and_then(|o| usize::try_from(o).ok()) else {
            return;
        };
        if self.inside.has(offset) {
            hits.inside.push(target);
        }
        if self.firsts.has(offset) && instruction.flow_control() != FlowControl::Call {
            hits.loops.extend(self.loops(instruction.ip(), target));
        }
    }

    /// The patches of functions that a jump from one place to another, the first byte of a function or patch, makes a loop of.
    fn loops(&self, from: u64, target: u64) -> impl Iterator<Item = u64> {
        // The patch lies at the target or behind the instruction there.
        let next = self.places.partition_point(|p| p.at < target);
        let near = self.places[next..].iter().take_while(move |p| p.at - target <= LONGEST);
        let is_loop = move |p: &&Place| (p.start == target || p.at == target) && (p.start..p.end).contains(&from);
        near.filter(is_loop).map(|p| p.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::Random;

    /// What is found by decoding everything is found where only what may hit is decoded.
    #[test]
    fn reading_bytes_first_changes_nothing() {
        let mut random = Random::new(7);
        let mut found = 0;
        for _ in 0..300 {
            let mut bytes: Vec<u8> = (0..400).map(|_| random.below(256) as u8).collect();
            // Many short and near branches, with near targets.
            for _ in 0..60 {
                let at = random.below(390) as usize;
                let code = [0x74, 0xeb, 0xe3, 0xe8, 0xe9, 0x0f, 0xc7][random.below(7) as usize];
                bytes[at] = code;
                let distance = (random.below(200) as i32 - 100).to_le_bytes();
                let (near, second) = (matches!(code, 0x0f | 0xc7), [0x84, 0xf8][usize::from(code == 0xc7)]);
                if near {
                    bytes[at + 1] = second;
                }
                bytes[at + 1 + usize::from(near)..][..4].copy_from_slice(&distance);
            }
            let segment = Segment { address: 0x1000, bytes: &bytes };
            let segments = [segment];
            let symbols: Vec<u64> = (0..8).map(|n| 0x1000 + n * 50).collect();
            let module = Module { segments: &segments, symbols: &symbols, ..Module::default() };
            let place = |n: u64| Place {
                at: 0x1004 + n * 50,
                start: 0x1000 + n * 50,
                end: 0x1032 + n * 50,
                repeated: n % 3,
                probe: 0,
            };
            let places: Vec<Place> = (0..7).map(place).collect();
            let scan = Scan::new(&module, &module.segments[0], &places);
            let pieces = scan.pieces();
            let mut all = Hits::default();
            pieces.iter().for_each(|p| scan.decode(*p, &mut all));
            let some = scan.run(&pieces);
            assert_eq!((&some.inside, &some.loops), (&all.inside, &all.loops));
            found += all.inside.len() + all.loops.len();
        }
        assert!(found > 300, "{found}");
    }
}
