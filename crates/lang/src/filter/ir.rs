//! The typed filter, and what its operators mean.
//!
//! Two kinds of nodes: [`Int`] gives 64 bits, [`Cond`] is true or false. All operations are total:
//!
//! | operation | meaning |
//! |---|---|
//! | `+ - *` | modulo 2^64 |
//! | `/ %` | truncated towards zero, signed; by zero: `/` gives 0, `%` the dividend; -2^63 / -1 is -2^63, the rest 0 |
//! | `<< >>` | by the lowest six bits of the count; `>>` fills with zeros |
//! | `< <= > >=` | signed |
//!
//! Those are the rules of eBPF's arithmetic, but for the sign of division, which eBPF had not before 6.6.
//!
//! Invariant: evaluation has no effects, so that operands may be evaluated in any order, once or never.

use crate::ast::Cast;
use crate::pattern::glob;

/// Bytes of a string that is searched: what every backend can capture.
pub const SEARCHED: usize = 4000;

/// A value that an event or its thread has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Process.
    Pid,
    /// Thread.
    Tid,
    /// User of the thread.
    Uid,
    /// Group of the thread.
    Gid,
    /// Processor at entry.
    Cpu,
    /// Time of the event: the end of a call. ns of the monotonic clock.
    Nsecs,
    /// Raw result.
    Retval,
    /// ns from entry to end.
    Dur,
    /// An argument.
    Arg(Arg),
}

/// An argument's integer: its register, cut and extended as its type says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arg {
    /// Index in the schema.
    pub index: u8,
    /// Its width; that of a pointer for all that is no integer.
    pub cast: Cast,
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
    Add,
    Sub,
    Mul,
    Div,
    Mod,
}

impl Op {
    /// The result.
    pub fn apply(self, a: i64, b: i64) -> i64 {
        match self {
            Op::Or => a | b,
            Op::Xor => a ^ b,
            Op::And => a & b,
            Op::Shl => a.wrapping_shl(b as u32),
            Op::Shr => (a as u64).wrapping_shr(b as u32) as i64,
            Op::Add => a.wrapping_add(b),
            Op::Sub => a.wrapping_sub(b),
            Op::Mul => a.wrapping_mul(b),
            Op::Div => a.checked_div(b).unwrap_or(if b == 0 { 0 } else { a }),
            Op::Mod => a.checked_rem(b).unwrap_or(if b == 0 { a } else { 0 }),
        }
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
}

impl Cmp {
    /// Whether it holds.
    pub fn holds(self, a: i64, b: i64) -> bool {
        match self {
            Cmp::Eq => a == b,
            Cmp::Ne => a != b,
            Cmp::Lt => a < b,
            Cmp::Le => a <= b,
            Cmp::Gt => a > b,
            Cmp::Ge => a >= b,
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
        }
    }

    /// The comparison that holds with the operands exchanged.
    pub fn mirrored(self) -> Cmp {
        match self {
            Cmp::Lt => Cmp::Gt,
            Cmp::Le => Cmp::Ge,
            Cmp::Gt => Cmp::Lt,
            Cmp::Ge => Cmp::Le,
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
pub enum Int {
    /// A constant.
    Const(i64),
    /// A value.
    Value(Value),
    /// Cut and extended.
    Cast(Cast, Box<Int>),
    /// `-x`
    Minus(Box<Int>),
    /// `~x`
    Complement(Box<Int>),
    /// Arithmetic.
    Binary(Op, Box<Int>, Box<Int>),
    /// One or the other.
    Choice(Box<Cond>, Box<Int>, Box<Int>),
    /// 1 where it holds, else 0.
    Truth(Box<Cond>),
}

/// What a string test is about. That of a null pointer is empty; one that could not be read is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The thread's name.
    Comm,
    /// A string argument, by its index in the schema.
    Arg(u8),
}

/// A string compared with a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The string.
    pub subject: Subject,
    /// The constant, without NUL.
    pub constant: Vec<u8>,
    /// How they are compared.
    pub how: How,
}

/// How a string is compared with a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// It is the constant.
    Is,
    /// It starts with it.
    Starts,
    /// It ends with it.
    Ends,
    /// It has it somewhere.
    Contains,
    /// It matches it, a pattern with `*` and `?`.
    Glob,
}

impl How {
    /// Whether the whole string is searched, however long it is.
    pub fn searches(self) -> bool {
        matches!(self, How::Ends | How::Contains | How::Glob)
    }

    /// Whether a string passes.
    pub fn holds(self, s: &[u8], constant: &[u8]) -> bool {
        match self {
            How::Is => s == constant,
            How::Starts => s.starts_with(constant),
            How::Ends => s.ends_with(constant),
            How::Contains => constant.is_empty() || s.windows(constant.len()).any(|w| w == constant),
            How::Glob => glob(constant, s),
        }
    }
}

impl Text {
    /// Whether `s` (without NUL) passes.
    pub fn holds(&self, s: &[u8]) -> bool {
        self.how.holds(s, &self.constant)
    }

    /// Whether a string passes of which only the start `s` is known; `None` where that does not decide.
    pub fn holds_cut(&self, s: &[u8]) -> Option<bool> {
        match self.how {
            How::Is | How::Starts if self.constant.len() > s.len() => {
                if self.constant.starts_with(s) {
                    None
                } else {
                    Some(false)
                }
            }
            How::Is => Some(false),
            How::Starts => Some(s.starts_with(&self.constant)),
            How::Ends => None,
            How::Contains => self.holds(s).then_some(true),
            How::Glob => {
                // Up to its first wildcard a pattern is a start; where it ends in a star, more of the string changes nothing.
                let start = self.constant.split(|c| matches!(c, b'*' | b'?')).next().unwrap_or_default();
                let known = start.len().min(s.len());
                let may = start[..known] == s[..known];
                if !may { Some(false) } else { (self.constant.ends_with(b"*") && self.holds(s)).then_some(true) }
            }
        }
    }

    /// How many bytes of the string, its NUL among them, decide.
    pub fn bytes(&self) -> usize {
        match self.how {
            How::Starts => self.constant.len(),
            How::Is => self.constant.len() + 1,
            How::Ends | How::Contains | How::Glob => SEARCHED,
        }
    }
}

/// True or false.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cond {
    /// A constant.
    Const(bool),
    /// A comparison.
    Compare(Cmp, Int, Int),
    /// A string test.
    Text(Text),
    /// The opposite.
    Not(Box<Cond>),
    /// All hold.
    All(Vec<Cond>),
    /// One holds.
    Any(Vec<Cond>),
}

impl Int {
    /// How much it costs to evaluate in the kernel, roughly in instructions.
    pub fn cost(&self) -> u32 {
        match self {
            Int::Const(_) => 0,
            Int::Value(Value::Uid | Value::Gid) => 8,
            Int::Value(Value::Nsecs | Value::Dur) => 12,
            Int::Value(_) => 2,
            Int::Cast(_, x) | Int::Minus(x) | Int::Complement(x) => 1 + x.cost(),
            Int::Binary(Op::Div | Op::Mod, a, b) => 16 + a.cost() + b.cost(),
            Int::Binary(_, a, b) => 1 + a.cost() + b.cost(),
            Int::Choice(c, a, b) => 2 + c.cost() + a.cost().max(b.cost()),
            Int::Truth(c) => 2 + c.cost(),
        }
    }

    /// Calls `each` with every value in it.
    pub fn values(&self, each: &mut dyn FnMut(Leaf<'_>)) {
        match self {
            Int::Const(_) => {}
            Int::Value(v) => each(Leaf::Value(*v)),
            Int::Cast(_, x) | Int::Minus(x) | Int::Complement(x) => x.values(each),
            Int::Binary(_, a, b) => [a, b].into_iter().for_each(|x| x.values(each)),
            Int::Choice(c, a, b) => {
                c.values(each);
                [a, b].into_iter().for_each(|x| x.values(each));
            }
            Int::Truth(c) => c.values(each),
        }
    }
}

/// What a filter needs of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaf<'f> {
    /// A value.
    Value(Value),
    /// A string test.
    Text(&'f Text),
}

impl Cond {
    /// The cost, in the unit of [`Int::cost`]. Strings are expensive: they are read from the target's memory.
    pub fn cost(&self) -> u32 {
        match self {
            Cond::Const(_) => 0,
            Cond::Compare(_, a, b) => 1 + a.cost() + b.cost(),
            Cond::Text(t) if t.how.searches() => 400 + t.constant.len() as u32,
            Cond::Text(t) => (if t.subject == Subject::Comm { 20 } else { 80 }) + t.constant.len() as u32 / 4,
            Cond::Not(c) => c.cost(),
            Cond::All(list) | Cond::Any(list) => list.iter().map(Cond::cost).sum(),
        }
    }

    /// Calls `each` with every value and string test in it.
    pub fn values(&self, each: &mut dyn FnMut(Leaf<'_>)) {
        match self {
            Cond::Const(_) => {}
            Cond::Compare(_, a, b) => [a, b].into_iter().for_each(|x| x.values(each)),
            Cond::Text(t) => each(Leaf::Text(t)),
            Cond::Not(c) => c.values(each),
            Cond::All(list) | Cond::Any(list) => list.iter().for_each(|c| c.values(each)),
        }
    }
}
