//! Which places the code of a module jumps to: all of it is decoded once, from each known beginning to the next, because a jump from
//! anywhere into the bytes that a patch replaces forbids the patch.
//!
//! The pass sees direct jumps and calls. Tables of jumps are data, which x86-64 compilers keep outside of the code, and never lead into the
//! first block of a function: that has no predecessors in the control flow graphs of GCC and LLVM unless a loop begins with it, whose
//! jump is direct. Data in code is decoded as if it were code, which may refuse a function too many. It may also hide the jump right behind
//! it, until decoding finds the instructions again: a few bytes later, at the latest at the next symbol or unwind entry.

use crate::input::{Module, Segment};
use crate::relocate::JUMP;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind};
use std::thread;

/// Bytes of code for which a thread is worth its start.
const WORTH: usize = 1 << 20;
/// The most threads.
const THREADS: usize = 8;

/// Bits, one for a byte of a segment.
struct Bits(Vec<u64>);

impl Bits {
    fn new(bits: usize) -> Bits {
        Bits(vec![0; bits.div_ceil(64)])
    }

    fn set(&mut self, bit: usize) {
        if let Some(word) = self.0.get_mut(bit / 64) {
            *word |= 1 << (bit % 64);
        }
    }

    fn has(&self, bit: usize) -> bool {
        self.0.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 != 0)
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
}

/// What leads into places.
#[derive(Debug, Default)]
pub(crate) struct Hits {
    /// Addresses behind the first byte of a patch, sorted.
    pub inside: Vec<u64>,
    /// First bytes to which the function itself jumps, sorted.
    pub loops: Vec<u64>,
}

impl Hits {
    fn sort(&mut self) {
        for list in [&mut self.inside, &mut self.loops] {
            list.sort_unstable();
            list.dedup();
        }
    }

    /// Something leads into the patch at `at`, behind its first byte.
    pub fn is_inside(&self, at: u64) -> bool {
        let next = self.inside.partition_point(|hit| *hit <= at);
        self.inside.get(next).is_some_and(|hit| hit - at < JUMP as u64)
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
}

impl<'s> Scan<'s> {
    fn new(module: &'s Module<'s>, segment: &'s Segment<'s>, places: &'s [Place]) -> Scan<'s> {
        let len = segment.bytes.len();
        let (mut inside, mut firsts) = (Bits::new(len), Bits::new(len));
        for place in places {
            let Some(at) = place.at.checked_sub(segment.address).filter(|at| *at < len as u64) else { continue };
            firsts.set(at as usize);
            firsts.set((at as usize).saturating_sub((place.at - place.start) as usize));
            (1..JUMP).for_each(|byte| inside.set(at as usize + byte));
        }
        Scan { module, segment, places, inside, firsts }
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
        let mut instruction = Instruction::default();
        for (start, end) in pieces {
            let bytes = &self.segment.bytes[*start..*end];
            let ip = self.segment.address.wrapping_add(*start as u64);
            let mut decoder = Decoder::with_ip(64, bytes, ip, DecoderOptions::NO_INVALID_CHECK);
            while decoder.can_decode() {
                let at = decoder.position();
                decoder.decode_out(&mut instruction);
                if instruction.is_invalid() {
                    // One byte on: there is always progress.
                    let _ = decoder.set_position(at + 1);
                    decoder.set_ip(ip.wrapping_add(at as u64 + 1));
                } else if instruction.flow_control() != FlowControl::Next {
                    self.look(&instruction, &mut hits);
                }
            }
        }
        hits
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
            self.look_for_loop(instruction.ip(), target, hits);
        }
    }

    /// A jump to the first byte of a function or patch.
    fn look_for_loop(&self, from: u64, target: u64, hits: &mut Hits) {
        // The patch lies at the target or, behind endbr64, within 4 bytes of it.
        let next = self.places.partition_point(|p| p.at < target);
        for place in self.places[next..].iter().take_while(|p| p.at - target <= 4) {
            if (place.start == target || place.at == target) && (place.start..place.end).contains(&from) {
                hits.loops.push(place.at);
            }
        }
    }
}
