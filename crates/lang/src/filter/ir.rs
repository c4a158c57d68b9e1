//! The typed filter: expressions of [`crate::ir`] over the values of an event.
//!
//! Numbers are signed; division by zero gives 0, its rest the dividend.
//!
//! Invariant: evaluation has no effects, so that operands may be evaluated in any order, once or never.

use crate::ast::Cast;
pub use crate::ir::{Cmp, Op};
use crate::pattern::glob;

/// What a filter needs of an event.
pub type Leaf<'f> = crate::ir::Leaf<'f, Value, Text>;
/// 64 bits.
pub type Int = crate::ir::Int<Value, Text>;
/// True or false.
pub type Cond = crate::ir::Cond<Value, Text>;

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

impl Int {
    /// How much it costs to evaluate in the kernel, roughly in instructions.
    pub fn cost(&self) -> u32 {
        match self {
            Int::Const(_) => 0,
            Int::Value(Value::Uid | Value::Gid) => 8,
            Int::Value(Value::Nsecs | Value::Dur) => 12,
            Int::Value(_) => 2,
            Int::Cast(_, x) | Int::Minus(x) | Int::Complement(x) => 1 + x.cost(),
            Int::Binary(op, a, b) if op.zero().is_some() => 16 + a.cost() + b.cost(),
            Int::Binary(_, a, b) => 1 + a.cost() + b.cost(),
            Int::Choice(c, a, b) => 2 + c.cost() + a.cost().max(b.cost()),
            Int::Or(a, b) => 1 + a.cost() + b.cost(),
            Int::Truth(c) => 2 + c.cost(),
        }
    }
}

impl Cond {
    /// The cost, in the unit of [`Int::cost`]. Strings are expensive: they are read from the target's memory.
    pub fn cost(&self) -> u32 {
        match self {
            Cond::Const(_) => 0,
            Cond::Compare(_, a, b) => 1 + a.cost() + b.cost(),
            Cond::Test(t) if t.how.searches() => 400 + t.constant.len() as u32,
            Cond::Test(t) => (if t.subject == Subject::Comm { 20 } else { 80 }) + t.constant.len() as u32 / 4,
            Cond::Not(c) => c.cost(),
            Cond::All(list) | Cond::Any(list) => list.iter().map(Cond::cost).sum(),
        }
    }
}
