//! What the operators of scripts mean. All of them are total:
//!
//! | operation | meaning |
//! |---|---|
//! | `+ - *` | modulo 2^64 |
//! | `/ %` | signed where an operand is; by zero: 1, and counted; -2^63 / -1 is -2^63, the rest 0 |
//! | `<< >>` | by the lowest six bits of the count; `>>` fills with zeros |

use crate::ast::Binary;
use crate::filter::ir::Cmp;

/// Arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Op {
    Or,
    Xor,
    And,
    Shl,
    Shr,
    Add,
    Sub,
    Mul,
    Div { signed: bool },
    Mod { signed: bool },
}

impl Op {
    /// Of the operator of two operands, one of which is signed, or none. None: it is a comparison.
    pub fn of(op: Binary, signed: bool) -> Option<Op> {
        Some(match op {
            Binary::Or => Op::Or,
            Binary::Xor => Op::Xor,
            Binary::And => Op::And,
            Binary::Shl => Op::Shl,
            Binary::Shr => Op::Shr,
            Binary::Add => Op::Add,
            Binary::Sub => Op::Sub,
            Binary::Mul => Op::Mul,
            Binary::Div => Op::Div { signed },
            Binary::Mod => Op::Mod { signed },
            _ => return None,
        })
    }

    /// The result; None: it is a division by zero.
    pub fn apply(self, a: i64, b: i64) -> Option<i64> {
        Some(match self {
            Op::Or => a | b,
            Op::Xor => a ^ b,
            Op::And => a & b,
            Op::Shl => a.wrapping_shl(b as u32),
            Op::Shr => (a as u64).wrapping_shr(b as u32) as i64,
            Op::Add => a.wrapping_add(b),
            Op::Sub => a.wrapping_sub(b),
            Op::Mul => a.wrapping_mul(b),
            _ if b == 0 => return None,
            Op::Div { signed: true } => a.wrapping_div(b),
            Op::Mod { signed: true } => a.wrapping_rem(b),
            Op::Div { .. } => (a as u64 / b as u64) as i64,
            Op::Mod { .. } => (a as u64 % b as u64) as i64,
        })
    }
}

/// What division by zero gives.
pub const BY_ZERO: i64 = 1;

/// A comparison of two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compare {
    /// Which.
    pub op: Cmp,
    /// Of signed ones.
    pub signed: bool,
}

impl Compare {
    /// Of an operator; None: it is no comparison.
    pub fn of(op: Binary, signed: bool) -> Option<Compare> {
        let op = match op {
            Binary::Eq => Cmp::Eq,
            Binary::Ne => Cmp::Ne,
            Binary::Lt => Cmp::Lt,
            Binary::Le => Cmp::Le,
            Binary::Gt => Cmp::Gt,
            Binary::Ge => Cmp::Ge,
            _ => return None,
        };
        Some(Compare { op, signed })
    }

    /// Whether it holds.
    pub fn holds(self, a: i64, b: i64) -> bool {
        // Unsigned numbers are in the order of the signed ones that are half the range away.
        let turn = if self.signed { 0 } else { i64::MIN };
        self.op.holds(a ^ turn, b ^ turn)
    }
}

/// The operator of two signed constants, comparisons among them.
pub(super) fn constant_binary(op: Binary, a: i64, b: i64) -> i64 {
    match (Op::of(op, true), Compare::of(op, true)) {
        (Some(op), _) => op.apply(a, b).unwrap_or(BY_ZERO),
        (_, Some(c)) => c.holds(a, b).into(),
        _ => 0,
    }
}
