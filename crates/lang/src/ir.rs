//! The typed expressions of filters and of scripts, and what their operators mean.
//!
//! Two kinds of nodes: [`Int`] gives 64 bits, [`Cond`] is true or false. Their leaves are the language's: `V` is a value of 64 bits, `T`
//! a test of what is no number ([`crate::filter::ir`], [`crate::script::ir`]). All operations are total:
//!
//! | operation | meaning |
//! |---|---|
//! | `+ - *` | modulo 2^64 |
//! | `/ %` | truncated towards zero, signed or not; by zero: see [`Zero`]; -2^63 / -1 is -2^63, the rest 0 |
//! | `<< >>` | by the lowest six bits of the count; `>>` fills with zeros, [`Op::Sar`] with the sign |
//! | `< <= > >=` | signed or not |
//!
//! Those are the rules of eBPF's arithmetic, but for the sign of division, which eBPF had not before 6.6.
//!
//! Invariant: operands are evaluated from left to right, and what does not decide is not: values of scripts may have effects.

use crate::ast::{Binary, Cast};
use crate::diag::Span;

/// What a division by zero gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zero {
    /// `/` gives 0, `%` the dividend, as in eBPF.
    Natural,
    /// 1, and it is counted for this place of the text.
    Counted(Span),
}

/// Arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Op {
    Or,
    Xor,
    And,
    Shl,
    Shr,
    Sar,
    Add,
    Sub,
    Mul,
    Div(Zero),
    Mod(Zero),
    DivU(Zero),
    ModU(Zero),
}

impl Op {
    /// Of an operator; None: it is a comparison.
    pub fn of(op: Binary, signed: bool, zero: Zero) -> Option<Op> {
        Some(match op {
            Binary::Or => Op::Or,
            Binary::Xor => Op::Xor,
            Binary::And => Op::And,
            Binary::Shl => Op::Shl,
            Binary::Shr => Op::Shr,
            Binary::Add => Op::Add,
            Binary::Sub => Op::Sub,
            Binary::Mul => Op::Mul,
            Binary::Div if signed => Op::Div(zero),
            Binary::Mod if signed => Op::Mod(zero),
            Binary::Div => Op::DivU(zero),
            Binary::Mod => Op::ModU(zero),
            _ => return None,
        })
    }

    /// The result.
    pub fn apply(self, a: i64, b: i64) -> i64 {
        match self {
            Op::Or => a | b,
            Op::Xor => a ^ b,
            Op::And => a & b,
            Op::Shl => a.wrapping_shl(b as u32),
            Op::Shr => (a as u64).wrapping_shr(b as u32) as i64,
            Op::Sar => a.wrapping_shr(b as u32),
            Op::Add => a.wrapping_add(b),
            Op::Sub => a.wrapping_sub(b),
            Op::Mul => a.wrapping_mul(b),
            Op::Div(zero) | Op::DivU(zero) if b == 0 => zero.instead_of(0),
            Op::Mod(zero) | Op::ModU(zero) if b == 0 => zero.instead_of(a),
            Op::Div(_) => a.wrapping_div(b),
            Op::Mod(_) => a.wrapping_rem(b),
            Op::DivU(_) => (a as u64 / b as u64) as i64,
            Op::ModU(_) => (a as u64 % b as u64) as i64,
        }
    }

    /// The rule for zero, of a division.
    pub fn zero(self) -> Option<Zero> {
        match self {
            Op::Div(zero) | Op::Mod(zero) | Op::DivU(zero) | Op::ModU(zero) => Some(zero),
            _ => None,
        }
    }

    /// The place for which a division by `b` is counted.
    pub fn counted(self, b: i64) -> Option<Span> {
        match self.zero() {
            Some(Zero::Counted(at)) if b == 0 => Some(at),
            _ => None,
        }
    }

    /// The operands may be exchanged.
    fn commutes(self) -> bool {
        matches!(self, Op::Or | Op::Xor | Op::And | Op::Add | Op::Mul)
    }
}

impl Zero {
    fn instead_of(self, natural: i64) -> i64 {
        if self == Zero::Natural { natural } else { 1 }
    }
}

/// Comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Cmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    LtU,
    LeU,
    GtU,
    GeU,
}

impl Cmp {
    /// Of an operator; None: it is no comparison.
    pub fn of(op: Binary, signed: bool) -> Option<Cmp> {
        Some(match (op, signed) {
            (Binary::Eq, _) => Cmp::Eq,
            (Binary::Ne, _) => Cmp::Ne,
            (Binary::Lt, true) => Cmp::Lt,
            (Binary::Le, true) => Cmp::Le,
            (Binary::Gt, true) => Cmp::Gt,
            (Binary::Ge, true) => Cmp::Ge,
            (Binary::Lt, false) => Cmp::LtU,
            (Binary::Le, false) => Cmp::LeU,
            (Binary::Gt, false) => Cmp::GtU,
            (Binary::Ge, false) => Cmp::GeU,
            _ => return None,
        })
    }

    /// Whether it holds.
    pub fn holds(self, a: i64, b: i64) -> bool {
        let (ua, ub) = (a as u64, b as u64);
        match self {
            Cmp::Eq => a == b,
            Cmp::Ne => a != b,
            Cmp::Lt => a < b,
            Cmp::Le => a <= b,
            Cmp::Gt => a > b,
            Cmp::Ge => a >= b,
            Cmp::LtU => ua < ub,
            Cmp::LeU => ua <= ub,
            Cmp::GtU => ua > ub,
            Cmp::GeU => ua >= ub,
        }
    }

    /// The comparison that holds where this one does not.
    pub fn negated(self) -> Cmp {
        match self {
            Cmp::Eq => Cmp::Ne,
            Cmp::Ne => Cmp::Eq,
            Cmp::Lt => Cmp::Ge,
            Cmp::Le => Cmp::Gt,
            Cmp::Gt => Cmp::Le,
            Cmp::Ge => Cmp::Lt,
            Cmp::LtU => Cmp::GeU,
            Cmp::LeU => Cmp::GtU,
            Cmp::GtU => Cmp::LeU,
            Cmp::GeU => Cmp::LtU,
        }
    }

    /// The comparison that holds with the operands exchanged.
    pub fn mirrored(self) -> Cmp {
        match self {
            Cmp::Lt => Cmp::Gt,
            Cmp::Le => Cmp::Ge,
            Cmp::Gt => Cmp::Lt,
            Cmp::Ge => Cmp::Le,
            Cmp::LtU => Cmp::GtU,
            Cmp::LeU => Cmp::GeU,
            Cmp::GtU => Cmp::LtU,
            Cmp::GeU => Cmp::LeU,
            same => same,
        }
    }
}

impl Cast {
    /// `v` cut and extended.
    pub fn apply(self, v: i64) -> i64 {
        let shift = 64 - 8 * u32::from(self.size);
        if self.signed { v << shift >> shift } else { ((v as u64) << shift >> shift) as i64 }
    }
}

/// 64 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Int<V, T> {
    /// A constant.
    Const(i64),
    /// A value.
    Value(V),
    /// Cut and extended.
    Cast(Cast, Box<Int<V, T>>),
    /// `-x`
    Minus(Box<Int<V, T>>),
    /// `~x`
    Complement(Box<Int<V, T>>),
    /// Arithmetic.
    Binary(Op, Box<Int<V, T>>, Box<Int<V, T>>),
    /// One or the other.
    Choice(Box<Cond<V, T>>, Box<Int<V, T>>, Box<Int<V, T>>),
    /// The first where it is not zero, else the second.
    Or(Box<Int<V, T>>, Box<Int<V, T>>),
    /// 1 where it holds, else 0.
    Truth(Box<Cond<V, T>>),
}

/// True or false.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cond<V, T> {
    /// A constant.
    Const(bool),
    /// A comparison.
    Compare(Cmp, Int<V, T>, Int<V, T>),
    /// A test of what is no number.
    Test(T),
    /// The opposite.
    Not(Box<Cond<V, T>>),
    /// All hold.
    All(Vec<Cond<V, T>>),
    /// One holds.
    Any(Vec<Cond<V, T>>),
}

/// A leaf of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaf<'i, V, T> {
    /// A value.
    Value(&'i V),
    /// A test.
    Test(&'i T),
}

/// Who knows what the leaves of an expression are.
pub trait Reader<V, T> {
    /// Why an expression has no value.
    type Stop;

    /// A value.
    fn value(&mut self, value: &V) -> Result<i64, Self::Stop>;

    /// Whether a test holds.
    fn test(&mut self, test: &T) -> Result<bool, Self::Stop>;

    /// Something is divided by zero, and this is counted.
    fn by_zero(&mut self, _at: Span) {}
}

impl<V, T> Int<V, T> {
    /// Its value.
    pub fn eval<R: Reader<V, T>>(&self, r: &mut R) -> Result<i64, R::Stop> {
        Ok(match self {
            Int::Const(v) => *v,
            Int::Value(v) => r.value(v)?,
            Int::Cast(cast, x) => cast.apply(x.eval(r)?),
            Int::Minus(x) => x.eval(r)?.wrapping_neg(),
            Int::Complement(x) => !x.eval(r)?,
            Int::Binary(op, a, b) => {
                let (a, b) = (a.eval(r)?, b.eval(r)?);
                if let Some(at) = op.counted(b) {
                    r.by_zero(at);
                }
                op.apply(a, b)
            }
            Int::Choice(c, a, b) => (if c.eval(r)? { a } else { b }).eval(r)?,
            Int::Or(a, b) => match a.eval(r)? {
                0 => b.eval(r)?,
                v => v,
            },
            Int::Truth(c) => c.eval(r)?.into(),
        })
    }

    /// Calls `each` with every leaf in it.
    pub fn leaves(&self, each: &mut dyn FnMut(Leaf<'_, V, T>)) {
        match self {
            Int::Const(_) => {}
            Int::Value(v) => each(Leaf::Value(v)),
            Int::Cast(_, x) | Int::Minus(x) | Int::Complement(x) => x.leaves(each),
            Int::Binary(_, a, b) | Int::Or(a, b) => [a, b].into_iter().for_each(|x| x.leaves(each)),
            Int::Choice(c, a, b) => {
                c.leaves(each);
                [a, b].into_iter().for_each(|x| x.leaves(each));
            }
            Int::Truth(c) => c.leaves(each),
        }
    }

    /// Cut and extended.
    pub fn cast(self, cast: Cast) -> Self {
        match self {
            Int::Const(v) => Int::Const(cast.apply(v)),
            i => Int::Cast(cast, Box::new(i)),
        }
    }

    /// `-x`
    pub fn minus(self) -> Self {
        match self {
            Int::Const(v) => Int::Const(v.wrapping_neg()),
            i => Int::Minus(Box::new(i)),
        }
    }

    /// `~x`
    pub fn complement(self) -> Self {
        match self {
            Int::Const(v) => Int::Const(!v),
            i => Int::Complement(Box::new(i)),
        }
    }

    /// Arithmetic, with a constant on the right where there is one and the operator allows it.
    pub fn binary(op: Op, a: Self, b: Self) -> Self {
        match (a, b) {
            (Int::Const(a), Int::Const(b)) if op.counted(b).is_none() => Int::Const(op.apply(a, b)),
            (a @ Int::Const(_), b) if op.commutes() => Int::Binary(op, Box::new(b), Box::new(a)),
            (a, b) => Int::Binary(op, Box::new(a), Box::new(b)),
        }
    }

    /// One or the other.
    pub fn choice(c: Cond<V, T>, a: Self, b: Self) -> Self {
        match c {
            Cond::Const(true) => a,
            Cond::Const(false) => b,
            c => Int::Choice(Box::new(c), Box::new(a), Box::new(b)),
        }
    }

    /// Whether it is not zero.
    pub fn truth(self) -> Cond<V, T> {
        Cond::compare(Cmp::Ne, self, Int::Const(0))
    }
}

impl<V, T> From<Cond<V, T>> for Int<V, T> {
    fn from(c: Cond<V, T>) -> Int<V, T> {
        match c {
            Cond::Const(c) => Int::Const(c.into()),
            c => Int::Truth(Box::new(c)),
        }
    }
}

impl<V, T> Cond<V, T> {
    /// Whether it holds.
    pub fn eval<R: Reader<V, T>>(&self, r: &mut R) -> Result<bool, R::Stop> {
        Ok(match self {
            Cond::Const(v) => *v,
            Cond::Compare(cmp, a, b) => cmp.holds(a.eval(r)?, b.eval(r)?),
            Cond::Test(t) => r.test(t)?,
            Cond::Not(c) => !c.eval(r)?,
            Cond::All(list) => {
                for c in list {
                    if !c.eval(r)? {
                        return Ok(false);
                    }
                }
                true
            }
            Cond::Any(list) => {
                for c in list {
                    if c.eval(r)? {
                        return Ok(true);
                    }
                }
                false
            }
        })
    }

    /// Calls `each` with every leaf in it.
    pub fn leaves(&self, each: &mut dyn FnMut(Leaf<'_, V, T>)) {
        match self {
            Cond::Const(_) => {}
            Cond::Compare(_, a, b) => [a, b].into_iter().for_each(|x| x.leaves(each)),
            Cond::Test(t) => each(Leaf::Test(t)),
            Cond::Not(c) => c.leaves(each),
            Cond::All(list) | Cond::Any(list) => list.iter().for_each(|c| c.leaves(each)),
        }
    }

    /// A comparison, with a constant on the right where there is one. `cond != 0` is `cond`.
    pub fn compare(cmp: Cmp, a: Int<V, T>, b: Int<V, T>) -> Self {
        match (cmp, a, b) {
            (cmp, Int::Const(a), Int::Const(b)) => Cond::Const(cmp.holds(a, b)),
            (cmp, a @ Int::Const(_), b) => Cond::compare(cmp.mirrored(), b, a),
            (Cmp::Ne, Int::Truth(c), Int::Const(0)) | (Cmp::Eq, Int::Truth(c), Int::Const(1)) => *c,
            (Cmp::Eq, Int::Truth(c), Int::Const(0)) | (Cmp::Ne, Int::Truth(c), Int::Const(1)) => c.negated(),
            (cmp, a, b) => Cond::Compare(cmp, a, b),
        }
    }

    /// The opposite.
    pub fn negated(self) -> Self {
        match self {
            Cond::Const(c) => Cond::Const(!c),
            Cond::Compare(cmp, a, b) => Cond::Compare(cmp.negated(), a, b),
            Cond::Not(c) => *c,
            Cond::All(list) => Cond::Any(list.into_iter().map(Cond::negated).collect()),
            Cond::Any(list) => Cond::All(list.into_iter().map(Cond::negated).collect()),
            c @ Cond::Test(_) => Cond::Not(Box::new(c)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_operations_are_total() {
        let at = Span { start: 3, end: 4 };
        let (natural, counted) = (Zero::Natural, Zero::Counted(at));
        for (op, a, b, expected) in [
            (Op::Div(natural), 5, 0, 0),
            (Op::Mod(natural), -5, 0, -5),
            (Op::DivU(natural), 5, 0, 0),
            (Op::ModU(natural), -5, 0, -5),
            (Op::Div(counted), 5, 0, 1),
            (Op::ModU(counted), -5, 0, 1),
            (Op::Div(natural), i64::MIN, -1, i64::MIN),
            (Op::Mod(counted), i64::MIN, -1, 0),
            (Op::Div(natural), -7, 2, -3),
            (Op::Mod(natural), -7, 2, -1),
            (Op::DivU(natural), -1, 2, i64::MAX),
            (Op::ModU(natural), -1, 10, 5),
            (Op::Shl, 1, 65, 2),
            (Op::Shr, -1, 63, 1),
            (Op::Shr, 4, -63, 2),
            (Op::Sar, -8, 66, -2),
            (Op::Mul, i64::MAX, 2, -2),
        ] {
            assert_eq!(op.apply(a, b), expected, "{op:?} {a} {b}");
            let by_zero = b == 0 && op.zero() == Some(counted);
            assert_eq!(op.counted(b), by_zero.then_some(at), "{op:?} {a} {b}");
        }
    }

    #[test]
    fn comparisons_have_opposites_and_mirrors() {
        use Cmp::*;
        for cmp in [Eq, Ne, Lt, Le, Gt, Ge, LtU, LeU, GtU, GeU] {
            for a in [i64::MIN, -1, 0, 1, i64::MAX] {
                for b in [i64::MIN, -1, 0, 1, i64::MAX] {
                    assert_eq!(cmp.holds(a, b), !cmp.negated().holds(a, b), "{cmp:?} {a} {b}");
                    assert_eq!(cmp.holds(a, b), cmp.mirrored().holds(b, a), "{cmp:?} {a} {b}");
                }
            }
        }
        assert!(LtU.holds(1, -1) && !Lt.holds(1, -1));
    }

    /// What is divided by zero is not folded where that is counted.
    #[test]
    fn constants_are_folded() {
        type I = Int<(), ()>;
        let zero = Zero::Counted(Span::default());
        assert_eq!(I::binary(Op::Add, Int::Const(1), Int::Const(2)), Int::Const(3));
        assert!(matches!(I::binary(Op::Div(zero), Int::Const(1), Int::Const(0)), Int::Binary(..)));
        assert_eq!(I::binary(Op::Sub, Int::Const(1), Int::Value(())), {
            Int::Binary(Op::Sub, Box::new(Int::Const(1)), Box::new(Int::Value(())))
        });
        assert_eq!(Cond::compare(Cmp::LtU, I::Const(1), Int::Value(())), {
            Cond::Compare(Cmp::GtU, Int::Value(()), Int::Const(1))
        });
    }
}
