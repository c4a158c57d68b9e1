//! A rule as the cache has it: the 64 bits of [`Rule`] in an order that makes the common kinds cheap, or that there is none.
//!
//! ```text
//! u64   kind 4 │ rbp kind 2 │ common 1 │ absent 1 │ extra 8 │ rbp offset 16, signed │ CFA offset 32, signed, bytes
//! bits  0      │ 4          │ 6        │ 7        │ 8       │ 16                    │ 32
//! ```
//!
//! A rule is *common* where the CFA is rsp or rbp + offset, and rbp is where it was or at CFA + offset.

use crate::rule::{Kind, Rule, SavedBp};
use crate::stack::Ended;
use crate::walk::{self, Bx, Caller, Registers};

/// Of common rules: the CFA is relative to rbp. [`Kind::Sp`] and [`Kind::Bp`] differ in this bit.
pub const OF_BP: u8 = 1;
/// Of common rules: rbp is saved.
pub const SAVES: u8 = 1 << 4;
pub const COMMON: u8 = 1 << 6;
const ABSENT: u8 = 1 << 7;

/// A rule, or none.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Known(u64);

impl Known {
    pub const NONE: Known = Known(0);

    pub fn new(rule: Option<Rule>) -> Known {
        let Some(rule) = rule else { return Known(u64::from(ABSENT)) };
        let kind = rule.kind();
        let (bp, at) = match rule.bp() {
            SavedBp::Same => (0, 0),
            SavedBp::Cfa(at) => (1, at),
            SavedBp::Bp(at) => (2, at),
            SavedBp::Sp(at) => (3, at),
        };
        let is_common = matches!(kind, Kind::Sp | Kind::Bp) && bp < 2;
        let flags = kind as u8 | bp << 4 | if is_common { COMMON } else { 0 };
        let high = u64::from(rule.offset() as u32) << 32 | u64::from(at as u16) << 16;
        Known(high | u64::from(rule.extra()) << 8 | u64::from(flags))
    }

    /// The lowest 8 bits.
    #[inline]
    pub fn flags(self) -> u8 {
        self.0 as u8
    }

    #[inline]
    pub fn is_common(self) -> bool {
        self.flags() & COMMON != 0
    }

    /// As the tables have it.
    pub fn rule(self) -> Option<Rule> {
        if self.flags() & ABSENT != 0 {
            return None;
        }
        let (kind, bp) = (self.0 & 15, self.0 >> 4 & 3);
        let (extra, at, offset) = (self.0 >> 8 & 0xff, self.0 >> 16 & 0xffff, (self.0 as i64 >> 35) as u64 & 0xff_ffff);
        Some(Rule(kind | bp << 8 | offset << 16 | at << 40 | extra << 56))
    }

    /// The caller of a frame, as [`walk::step`] has it.
    #[inline(always)]
    pub fn step(
        self,
        frame: &Caller,
        context: &mut Option<u64>,
        read: impl Fn(u64) -> Option<u64>,
    ) -> Result<Caller, Ended> {
        if !self.is_common() {
            // Field by field: what calls of other functions lead to lies in memory, and would draw the rest of the loop there.
            let from = *frame;
            let Caller { registers: Registers { pc, sp, bp }, interrupted, guessed, bp_at } =
                self.uncommon(&from, context, read)?;
            return Ok(Caller { registers: Registers { pc, sp, bp }, interrupted, guessed, bp_at });
        }
        self.common(frame.registers, read)
    }

    /// The caller of a frame by a common rule.
    #[inline(always)]
    pub fn common(self, frame: Registers, read: impl Fn(u64) -> Option<u64>) -> Result<Caller, Ended> {
        let base = if self.flags() & OF_BP != 0 { frame.bp } else { frame.sp };
        let cfa = base.wrapping_add((self.0 as i64 >> 32) as u64);
        let at = cfa.wrapping_add((self.0 >> 16) as i16 as u64);
        let bp_at = (self.flags() & SAVES != 0).then_some(at);
        walk::above(frame, cfa, bp_at, |address| read(address).ok_or(Ended::ReadFault))?.or_end()
    }

    #[cold]
    #[inline(never)]
    fn uncommon(
        self,
        frame: &Caller,
        context: &mut Option<u64>,
        read: impl Fn(u64) -> Option<u64>,
    ) -> Result<Caller, Ended> {
        walk::step(frame, self.rule(), context, Bx::Lost, read, |_| None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_comes_back() {
        assert_eq!(Known::new(None).rule(), None);
        use Kind::{Bp, BpAt, End, Plt, Register, Signal, Sp, SpAt, Unknown};
        for kind in [Kind::None, End, Sp, Bp, Plt, Signal, SpAt, BpAt, Unknown, Register] {
            for bp in [SavedBp::Same, SavedBp::Cfa(-16), SavedBp::Bp(i16::MAX), SavedBp::Sp(i16::MIN)] {
                for offset in [-(1 << 26), -8, 0, 48, (1 << 26) - 8] {
                    let rule = Rule::new(kind, offset, bp, 0xf8).unwrap();
                    let known = Known::new(Some(rule));
                    assert_eq!(known.rule(), Some(rule));
                    let common = matches!(kind, Sp | Bp) && matches!(bp, SavedBp::Same | SavedBp::Cfa(_));
                    assert_eq!(known.is_common(), common);
                }
            }
        }
        // A kind that there is not.
        assert_eq!(Known::new(Some(Rule(0x77))).rule(), Some(Rule::UNKNOWN));
    }
}
