//! The rule that says what the rows of `.eh_frame` say, where one does.

use super::instructions::{BP, Cfa, SP, Saved, State};
use crate::rule::{BX_LOST, Kind, Rule, SavedBp, UCONTEXT};
use gimli::{EndianSlice, Expression, LittleEndian, Operation, Register};

/// How expressions are encoded: x86-64 has 8-byte addresses, and unwind expressions use no format-dependent operation.
const ENCODING: gimli::Encoding = gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 5 };
/// Registers that rules may be relative to have lower numbers (System V ABI for x86-64, figure 3.36).
const REGISTERS: u64 = 16;

/// The rule of a frame; [`Rule::UNKNOWN`] where no kind expresses it. `signal`: a signal handler returns to it.
pub(super) fn rule(state: &State<'_>, signal: bool) -> Rule {
    convert(state, signal).unwrap_or(Rule::UNKNOWN)
}

fn convert(state: &State<'_>, signal: bool) -> Option<Rule> {
    if signal {
        return match state.cfa {
            Cfa::Expression(e) => of_signal(Term::of(e)?),
            Cfa::Sum { .. } => None,
        };
    }
    match state.ra {
        Saved::Undefined => return Some(Rule::END),
        Saved::Cfa(-8) => {}
        _ => return None,
    }
    let bp = match state.bp {
        Saved::Unset | Saved::Undefined | Saved::Same | Saved::Register(BP) => SavedBp::Same,
        Saved::Cfa(at) => SavedBp::Cfa(at.try_into().ok()?),
        Saved::Expression(e) => match Term::of(e)? {
            Term::Sum { register: BP, offset } => SavedBp::Bp(offset.try_into().ok()?),
            Term::Sum { register: SP, offset } => SavedBp::Sp(offset.try_into().ok()?),
            _ => return None,
        },
        Saved::Register(_) | Saved::Value => return None,
    };
    let bx = match state.bx {
        Saved::Unset | Saved::Same => 0,
        Saved::Cfa(at) => words_below(at),
        _ => BX_LOST,
    };
    match state.cfa {
        Cfa::Sum { register, offset } => sum(register, offset, bp, bx),
        Cfa::Expression(e) => match Term::of(e)? {
            Term::Sum { register, offset } => sum(register, offset, bp, bx),
            Term::At { register, offset, add } => {
                let kind = match register {
                    SP => Kind::SpAt,
                    BP => Kind::BpAt,
                    _ => return None,
                };
                Rule::new(kind, offset, bp, i8::try_from(add).ok()? as u8)
            }
            Term::Plt { offset, from } => Rule::new(Kind::Plt, offset, bp, from),
        },
    }
}

/// How many words below the CFA an offset from it is, as [`Rule::bx`] has it.
fn words_below(at: i64) -> u8 {
    let words = at.checked_neg().filter(|below| below & 7 == 0).map(|below| below / 8);
    words.and_then(|words| u8::try_from(words).ok()).filter(|words| *words > 0).unwrap_or(BX_LOST)
}

fn sum(register: u64, offset: i64, bp: SavedBp, bx: u8) -> Option<Rule> {
    match register {
        SP => Rule::new(Kind::Sp, offset, bp, bx),
        BP => Rule::new(Kind::Bp, offset, bp, bx),
        0..REGISTERS => Rule::new(Kind::Register, offset, bp, register as u8),
        _ => None,
    }
}

/// The kernel puts a `struct ucontext` on the stack, and the CFA is the rsp in it.
fn of_signal(cfa: Term) -> Option<Rule> {
    let Term::At { register: SP, offset, add: 0 } = cfa else { return None };
    Rule::new(Kind::Signal, offset.checked_sub(UCONTEXT[1] as i64)?, SavedBp::Same, 0)
}

/// The expressions that compilers and linkers write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Term {
    /// register + offset
    Sum { register: u64, offset: i64 },
    /// *(register + offset) + add
    At { register: u64, offset: i64, add: i64 },
    /// rsp + offset + ((rip & 15) >= from) * 8
    Plt { offset: i64, from: u8 },
}

impl Term {
    fn of(expression: &[u8]) -> Option<Term> {
        use Operation::*;
        let mut operations = Expression(EndianSlice::new(expression, LittleEndian)).operations(ENCODING);
        let mut next = || operations.next().ok().flatten();
        let RegisterOffset { register, mut offset, .. } = next()? else { return None };
        let register = u64::from(register.0);
        let mut operation = next();
        while let Some(PlusConstant { value }) = operation {
            offset = offset.checked_add(value as i64)?;
            operation = next();
        }
        match operation {
            None => Some(Term::Sum { register, offset }),
            Some(Deref { size: 8, space: false, .. }) => match (next(), next()) {
                (None, _) => Some(Term::At { register, offset, add: 0 }),
                (Some(PlusConstant { value }), None) => Some(Term::At { register, offset, add: value as i64 }),
                _ => None,
            },
            Some(RegisterOffset { register: Register(16), offset: 0, .. }) if register == SP => {
                let number = |o| match o {
                    Some(UnsignedConstant { value }) => u8::try_from(value).ok(),
                    Some(SignedConstant { value }) => u8::try_from(value).ok(),
                    _ => None,
                };
                let (mask, and) = (number(next())?, next());
                let (from, ge) = (number(next())?, next());
                let (shift, shl, plus) = (number(next())?, next(), next());
                let as_linkers = (mask, shift) == (15, 3)
                    && matches!((and, ge, shl, plus, next()), (Some(And), Some(Ge), Some(Shl), Some(Plus), None));
                as_linkers.then_some(Term::Plt { offset, from })
            }
            _ => None,
        }
    }
}
