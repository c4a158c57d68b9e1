//! The last stack, and what proves that it still is one.
//!
//! ```text
//!  place      first ……………………………………………… MAX - 1 │ MAX            the stack lies at the end: what is outside keeps its place
//!  frames     innermost               outermost │
//!  kept       rsp, rbp, hash, flags …           │ zeros: no frames
//!  checks     …│ step of a frame │ … │          │                {address, word}, in the order of frames
//!                rbp's, if it counts; pc's
//! ```
//!
//! A frame's rbp *counts* if a rule from there outward uses it before one restores another: `uses || (!restores && counts outside)`. What lies
//! in rbp elsewhere is a number of the program, which would never be the same.
//!
//! A *plain* step reads the word below the caller's rsp, which is the caller's pc, and at most one other within the frame: the caller's rbp.
//! Its addresses follow from the frame's rsp, and its rbp where that counts. So: if a frame is as it was (pc, rsp, rbp if it counts), and
//! the word for pc is, and the word for rbp if the caller's counts, then the caller is as it was in the same sense. The word for an rbp that does not count is not
//! read: it lies between others that can be, so that a walk would not fail there. Other steps, and the last one, are made again,
//! with the rbp of the last walk: if it is another now, it does not count, and so changes nothing of what the step leads to.

use super::hash;
use super::known::{COMMON, Known, OF_BP, SAVES};
use crate::rule::{Kind, SavedBp};
use crate::stack::{Ended, Frame, MAX_FRAMES};
use crate::walk::{Caller, Registers};

/// The most frames of a stack.
pub const MAX: usize = MAX_FRAMES;
/// A plain step has at most two.
const MAX_CHECKS: usize = 2 * MAX;
/// Return addresses have fewer bits; others are no addresses, and what is kept of them does not distinguish them.
const ADDRESS_BITS: u32 = 56;

/// Flag: the step uses rbp, and not only hands it on. This and the next two are those of common rules.
const USES: u32 = OF_BP as u32;
/// The step finds the caller's rbp elsewhere.
const RESTORES: u32 = SAVES as u32;
/// The step is plain.
const PLAIN: u32 = COMMON as u32;
/// The frame's rbp counts.
const COUNTS: u32 = 2;
/// A signal has interrupted the frame.
const EXACT: u32 = 4;
/// The frame's pc is no address.
const ODD: u32 = 8;
/// There is no step from the frame, whatever is in memory.
const FINAL: u32 = 32;
/// The frame was guessed.
const GUESSED: u32 = 128;

/// What a common rule has of them.
const OF_COMMON: u32 = USES | RESTORES | PLAIN;

/// A frame of the last stack.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Kept {
    sp: u64,
    /// If it counts, else any.
    bp: u64,
    /// Of this frame and those outside.
    hash: u64,
    /// How many checks there are from this frame outward.
    checks: u16,
    /// The place of the next frame from here outward whose step is not plain.
    stop: u16,
    /// All bytes are in use: copies of it are no copies of parts.
    flags: u32,
}

/// A word that a plain step reads.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Check {
    address: u64,
    word: u64,
}

/// A frame of the walk under way.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Fresh {
    registers: Registers,
    /// Where the caller's rbp was read.
    bp_at: u64,
    flags: u32,
}

impl Fresh {
    /// A frame, what its rule says, and the caller that this leads to.
    #[inline(always)]
    fn new(registers: Registers, mut flags: u32, next: Option<&Caller>) -> Fresh {
        let mut bp_at = 0;
        if let Some(Caller { bp_at: Some(place), registers: outer, .. }) = next {
            bp_at = *place;
            if *place < registers.sp || *place >= outer.sp.wrapping_sub(8) {
                flags &= !PLAIN;
            }
        }
        Fresh { registers, bp_at, flags }
    }

    /// As it is kept.
    #[inline]
    fn frame(&self) -> u64 {
        let exact = u64::from(self.flags & EXACT) * (Frame::EXACT / EXACT as u64);
        let guessed = u64::from(self.flags & GUESSED) * (Frame::GUESSED / GUESSED as u64);
        Frame(self.registers.pc).address() | exact | guessed
    }
}

#[derive(Debug)]
#[repr(C)]
pub struct Last {
    len: usize,
    ended: u8,
    /// There is no step from the outermost frame, whatever is in memory.
    is_final: bool,
    /// One more: what is outside of the outermost.
    kept: [Kept; MAX + 1],
    frames: [u64; MAX],
    checks: [Check; MAX_CHECKS],
    fresh: [Fresh; MAX],
}

/// What has become of the stack outside of a frame that is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verified {
    /// The frames are as they were, and end so.
    Ended(Ended),
    /// The frames are as they were, but behind the outermost one there is another.
    More,
    /// The step from the frame at this place leads elsewhere.
    Differs(usize),
}

impl Last {
    pub const EMPTY: Last = Last {
        len: 0,
        ended: 0,
        is_final: false,
        kept: [Kept { sp: 0, bp: 0, hash: hash::NONE, checks: 0, stop: 0, flags: 0 }; MAX + 1],
        frames: [0; MAX],
        checks: [Check { address: 0, word: 0 }; MAX_CHECKS],
        fresh: [Fresh { registers: Registers { pc: 0, sp: 0, bp: 0 }, bp_at: 0, flags: 0 }; MAX],
    };

    /// The place of the innermost frame.
    #[inline]
    pub fn first(&self) -> usize {
        MAX.saturating_sub(self.len)
    }

    pub fn frames(&self) -> &[u64] {
        self.frames.get(self.first()..).unwrap_or_default()
    }

    pub fn forget(&mut self) {
        self.len = 0;
    }

    /// From `at` outward the first frame that `frame` may be. Beyond a signal's frame only those that the walk comes to in the same way:
    /// they may lie on another stack.
    #[inline]
    pub fn meet(&self, mut at: usize, frame: &Caller) -> usize {
        while at < MAX {
            let Some(kept) = self.kept.get(at) else { break };
            let exact = kept.flags & EXACT != 0;
            if if frame.interrupted { exact } else { exact || kept.sp >= frame.registers.sp } {
                break;
            }
            at += 1;
        }
        at
    }

    /// The frame is the one at that place, with an rbp that does the same.
    #[inline]
    pub fn coincides(&self, at: usize, frame: &Caller) -> bool {
        let (Some(kept), Some(known)) = (self.kept.get(at), self.frames.get(at)) else { return false };
        let Registers { pc, sp, bp } = frame.registers;
        kept.sp == sp
            && *known == frame.frame().0
            && (kept.bp == bp || kept.flags & COUNTS == 0)
            && kept.flags & ODD == 0
            && pc >> ADDRESS_BITS == 0
    }

    /// What has become of the frames outside of the one at `at`, which is as it was. `context` as in [`step`].
    #[inline]
    pub fn verify(
        &self,
        mut at: usize,
        mut context: Option<u64>,
        mut rules: impl FnMut(&Caller) -> Known,
        read: impl Fn(u64) -> Option<u64>,
    ) -> Verified {
        loop {
            let Some(kept) = self.kept.get(at) else { return Verified::Differs(at) };
            let stop = usize::from(kept.stop);
            let Some(end) = self.kept.get(stop) else { return Verified::Differs(at) };
            let from = MAX_CHECKS.saturating_sub(usize::from(kept.checks));
            let to = MAX_CHECKS.saturating_sub(usize::from(end.checks));
            let checks = self.checks.get(from..to).unwrap_or_default();
            if let Some(nth) = checks.iter().position(|c| read(c.address) != Some(c.word)) {
                return Verified::Differs(self.step_of(from + nth, at, stop));
            }
            let is_last = stop + 1 >= MAX;
            if is_last && self.is_final {
                return Verified::Ended(Ended::of(self.ended));
            }
            let Some(caller) = self.caller(stop) else { return Verified::Differs(stop) };
            match rules(&caller).step(&caller, &mut context, &read) {
                Ok(_) if is_last => return Verified::More,
                Err(ended) if is_last => return Verified::Ended(ended),
                Ok(next) if self.coincides(stop + 1, &next) => at = stop + 1,
                _ => return Verified::Differs(stop),
            }
        }
    }

    /// The place of the frame whose step has this check: one from `at` up to before `stop`.
    #[cold]
    fn step_of(&self, check: usize, at: usize, stop: usize) -> usize {
        let left = MAX_CHECKS - check;
        let steps = self.kept.get(at..stop).unwrap_or_default();
        (at + steps.partition_point(|k| usize::from(k.checks) >= left)).saturating_sub(1)
    }

    /// The frame at a place, where what is kept is all of it.
    fn caller(&self, at: usize) -> Option<Caller> {
        let (kept, frame) = (self.kept.get(at)?, Frame(*self.frames.get(at)?));
        let registers = Registers { pc: frame.address(), sp: kept.sp, bp: kept.bp };
        let caller = Caller { interrupted: frame.is_exact(), ..Caller::returning(registers) };
        (kept.flags & ODD == 0).then_some(caller)
    }

    /// Notes the `nth` frame of the walk under way, its rule, and the caller that this leads to.
    #[inline]
    pub fn note(&mut self, nth: usize, frame: &Caller, rule: Known, next: Option<&Caller>) {
        let Some(fresh) = self.fresh.get_mut(nth) else { return };
        let mut flags = if rule.is_common() { u32::from(rule.flags()) & OF_COMMON } else { flags(rule) };
        for (is_so, flag) in
            [(frame.interrupted, EXACT), (frame.guessed, GUESSED), (frame.registers.pc >> ADDRESS_BITS != 0, ODD)]
        {
            flags |= if is_so { flag } else { 0 };
        }
        *fresh = Fresh::new(frame.registers, flags, next);
    }

    /// Steps by common rules, from frames that were called, and notes these from number `nth` on: up to where one may be that is at
    /// place `at` of the last stack, or one whose rule `rules` does not have. The registers of the frame where it ends, and its number.
    #[inline(always)]
    pub fn run(
        &mut self,
        mut nth: usize,
        at: usize,
        mut frame: Registers,
        rules: impl Fn(u64) -> Option<Known>,
        read: impl Fn(u64) -> Option<u64>,
    ) -> (usize, Registers) {
        let limit = self.kept.get(at).filter(|k| at < MAX && k.flags & EXACT == 0).map_or(u64::MAX, |k| k.sp);
        for fresh in self.fresh.get_mut(nth..).unwrap_or_default() {
            if frame.sp >= limit {
                break;
            }
            let Some(rule) = rules(frame.pc).filter(|rule| rule.is_common()) else { break };
            let Ok(next) = rule.common(frame, &read) else { break };
            *fresh = Fresh::new(frame, u32::from(rule.flags()) & OF_COMMON, Some(&next));
            frame = next.registers;
            nth += 1;
        }
        (nth, frame)
    }

    /// The stack is now `count` fresh frames and, outside of them, what was at `joint`. Its hash, and whether the frames are as before.
    #[inline]
    pub fn splice(&mut self, count: usize, joint: usize, ended: Ended) -> (u64, bool) {
        let before = (self.hash(), self.len);
        if count > 0 {
            self.put(count, joint);
        }
        self.len = count + (MAX - joint);
        self.ended = ended as u8;
        (hash::finish(self.hash()), (self.hash(), self.len) == before)
    }

    #[inline]
    fn hash(&self) -> u64 {
        self.kept.get(self.first()).map_or(hash::NONE, |k| k.hash)
    }

    /// Puts fresh frames inside of what is at `joint`, from the outermost one inward.
    fn put(&mut self, count: usize, joint: usize) {
        let Some(mut outer) = self.kept.get(joint).copied() else { return };
        let mut pc = self.frames.get(joint).map_or(0, |f| Frame(*f).address());
        let Some(innermost) = joint.checked_sub(count) else { return };
        let (Some(fresh), Some(kept), Some(frames)) =
            (self.fresh.get(..count), self.kept.get_mut(innermost..joint), self.frames.get_mut(innermost..joint))
        else {
            return;
        };
        for (nth, ((fresh, kept), frame)) in fresh.iter().zip(kept).zip(frames).enumerate().rev() {
            let (place, flags) = (innermost + nth, fresh.flags);
            let (mut checks, mut stop) = (outer.checks, place as u16);
            let outer_counts = outer.flags & COUNTS != 0;
            if place + 1 == MAX {
                self.is_final = flags & FINAL != 0;
            } else if flags & PLAIN != 0 {
                stop = outer.stop;
                let mut check = |address, word| {
                    checks += 1;
                    if let Some(check) = self.checks.get_mut(MAX_CHECKS.wrapping_sub(usize::from(checks))) {
                        *check = Check { address, word };
                    }
                };
                if flags & RESTORES != 0 && outer_counts {
                    check(fresh.bp_at, outer.bp);
                }
                check(outer.sp.wrapping_sub(8), pc);
            }
            let counts = (flags & USES != 0) | ((flags & RESTORES == 0) & outer_counts);
            let (Registers { sp, bp, .. }, address) = (fresh.registers, fresh.frame());
            let hash = hash::add(outer.hash, address);
            outer = Kept { sp, bp, hash, checks, stop, flags: flags | (u32::from(counts) * COUNTS) };
            pc = fresh.registers.pc;
            (*kept, *frame) = (outer, address);
        }
    }
}

/// What a rule that is not common says of the frame's step.
#[cold]
fn flags(rule: Known) -> u32 {
    let Some(rule) = rule.rule() else { return FINAL };
    let of_kind = match rule.kind() {
        Kind::End | Kind::Unknown => return FINAL,
        Kind::None => return PLAIN | USES | RESTORES,
        Kind::Signal => return RESTORES,
        Kind::Sp => PLAIN,
        Kind::Bp => PLAIN | USES,
        Kind::BpAt => USES,
        Kind::Plt | Kind::SpAt | Kind::Register | Kind::Stub => 0,
    };
    of_kind
        | match rule.bp() {
            SavedBp::Same => 0,
            SavedBp::Cfa(_) | SavedBp::Sp(_) => RESTORES,
            SavedBp::Bp(_) => RESTORES | USES,
        }
}
