//! Rules from rows of call frame information, as gimli evaluates them. Allocates nothing.
//!
//! Register numbers are those of the System V ABI for x86-64, figure 3.36.

use crate::rule::{Kind, Rule, SavedBp, UCONTEXT};
use gimli::{
    CfaRule, Expression, Operation, Reader, Register, RegisterRule, UnwindContextStorage, UnwindExpression,
    UnwindSection, UnwindTableRow,
};

/// rbp.
pub const BP: Register = Register(6);
/// rsp.
pub const SP: Register = Register(7);
/// The return address.
pub const RA: Register = Register(16);

/// How expressions are encoded: x86-64 has 8-byte addresses, and unwind expressions use no format-dependent operation.
const ENCODING: gimli::Encoding = gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 5 };

/// The rule of a row; [`Rule::UNKNOWN`] where no kind expresses it. `signal`: it is of a frame that a signal handler returns to.
pub fn rule<R, S, H>(row: &UnwindTableRow<R::Offset, H>, signal: bool, section: &S) -> Rule
where
    R: Reader,
    S: UnwindSection<R>,
    H: UnwindContextStorage<R::Offset>,
{
    convert(row, signal, section).unwrap_or(Rule::UNKNOWN)
}

fn convert<R, S, H>(row: &UnwindTableRow<R::Offset, H>, signal: bool, section: &S) -> Option<Rule>
where
    R: Reader,
    S: UnwindSection<R>,
    H: UnwindContextStorage<R::Offset>,
{
    let expression = |e: &UnwindExpression<R::Offset>| Term::of(e.get(section).ok()?);
    if signal {
        return match row.cfa() {
            CfaRule::Expression(e) => of_signal(expression(e)?),
            CfaRule::RegisterAndOffset { .. } => None,
        };
    }
    let ra = row.register(RA);
    if matches!(ra, Some(RegisterRule::Undefined)) {
        return Some(Rule::END);
    }
    if !matches!(ra, Some(RegisterRule::Offset(-8))) {
        return None;
    }
    let bp = match row.register(BP) {
        None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => SavedBp::Same,
        Some(RegisterRule::Register(BP)) => SavedBp::Same,
        Some(RegisterRule::Offset(at)) => SavedBp::Cfa(at.try_into().ok()?),
        Some(RegisterRule::Expression(e)) => match expression(&e)? {
            Term::Sum { register: BP, offset } => SavedBp::Bp(offset.try_into().ok()?),
            Term::Sum { register: SP, offset } => SavedBp::Sp(offset.try_into().ok()?),
            _ => return None,
        },
        Some(_) => return None,
    };
    match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => sum(*register, *offset, bp),
        CfaRule::Expression(e) => match expression(e)? {
            Term::Sum { register, offset } => sum(register, offset, bp),
            Term::At { register, offset, add } => {
                let kind = of_register(register, Kind::SpAt, Kind::BpAt)?;
                Rule::new(kind, offset, bp, i8::try_from(add).ok()? as u8)
            }
            Term::Plt { offset, from } => Rule::new(Kind::Plt, offset, bp, from),
        },
    }
}

fn of_register(register: Register, sp: Kind, bp: Kind) -> Option<Kind> {
    match register {
        SP => Some(sp),
        BP => Some(bp),
        _ => None,
    }
}

fn sum(register: Register, offset: i64, bp: SavedBp) -> Option<Rule> {
    Rule::new(of_register(register, Kind::Sp, Kind::Bp)?, offset, bp, 0)
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
    Sum { register: Register, offset: i64 },
    /// *(register + offset) + add
    At { register: Register, offset: i64, add: i64 },
    /// rsp + offset + ((rip & 15) >= from) * 8
    Plt { offset: i64, from: u8 },
}

impl Term {
    fn of<R: Reader>(expression: Expression<R>) -> Option<Term> {
        use Operation::*;
        let mut operations = expression.operations(ENCODING);
        let mut next = || operations.next().ok().flatten();
        let RegisterOffset { register, mut offset, .. } = next()? else { return None };
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
            Some(RegisterOffset { register: RA, offset: 0, .. }) if register == SP => {
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
