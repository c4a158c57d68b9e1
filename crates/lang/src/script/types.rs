//! The types of values.

mod powers;
mod slot;

use crate::ast::Cast;
use std::fmt;

pub use powers::Powers;
pub use slot::{Conflict, Slot};

/// The longest string, less its NUL, unless `max_strlen` says otherwise.
pub const MAX_STRLEN: u32 = 1024;

/// The most buckets of a histogram.
pub const MAX_BUCKETS: usize = 1000;

/// The most types that one may be made of: all that walk through one do so by recursion.
pub const MAX_WEIGHT: usize = 128;

/// Whose memory an address is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Space {
    /// The kernel's.
    #[default]
    Kernel,
    /// The process's.
    User,
}

/// How a stack is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum StackMode {
    #[default]
    Bpftrace,
    Perf,
    Raw,
}

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Type {
    /// Not known yet; or that of a call that gives nothing.
    #[default]
    None,
    /// `true` or `false`
    Bool,
    /// An integer.
    Int(Cast),
    /// An enumeration's value.
    Enum(String),
    /// A string of at most this many bytes, without its NUL.
    Str(u32),
    /// Bytes.
    Buffer(u32),
    /// An address; of what nobody knows, where it is `None`.
    Pointer(Box<Type>, Space),
    /// This many of one type.
    Array(Box<Type>, u64),
    /// A structure or union, by name.
    Struct(String),
    /// Several values.
    Tuple(Vec<Type>),
    /// Several values with names.
    Record(Vec<String>, Vec<Type>),
    /// A stack of at most this many frames.
    Stack(Space, StackMode, u32),
    /// An address that is shown by its symbol.
    Symbol(Space),
    /// A user's number that is shown by name.
    User,
    /// A moment that is shown as text.
    Moment,
    /// What a map collects.
    Aggregate(Aggregate),
}

/// What a map collects of values; `signed` where one of them was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Aggregate {
    Count,
    Sum {
        signed: bool,
    },
    Min {
        signed: bool,
    },
    Max {
        signed: bool,
    },
    Avg {
        signed: bool,
    },
    Stats {
        signed: bool,
    },
    Stddev {
        signed: bool,
    },
    /// Powers of two, each in 2^bits parts.
    Hist {
        bits: u8,
    },
    /// Steps.
    Lhist {
        min: i64,
        max: i64,
        step: i64,
    },
    /// Powers of a factor, each in steps of one size.
    Llquantize(Powers),
}

impl Type {
    /// An integer of this many bytes.
    pub fn int(size: u8, signed: bool) -> Type {
        Type::Int(Cast { size, signed })
    }
    /// `int64`
    pub const INT: Type = Type::Int(Cast { size: 8, signed: true });
    /// `uint64`
    pub const UINT: Type = Type::Int(Cast { size: 8, signed: false });

    /// The type of a value in this memory: addresses in it are addresses of this memory.
    pub(super) fn within(self, space: Space) -> Type {
        match self {
            Type::Pointer(of, _) => Type::Pointer(of, space),
            Type::Array(of, n) => Type::Array(Box::new(of.within(space)), n),
            other => other,
        }
    }

    /// Of a value that is an integer, or is used as one.
    pub fn as_int(&self) -> Option<Cast> {
        match self {
            Type::Int(c) => Some(*c),
            Type::Bool => Some(Cast { size: 1, signed: false }),
            Type::Enum(_) | Type::User => Some(Cast { size: 4, signed: false }),
            Type::Pointer(..) | Type::Symbol(_) => Some(Cast { size: 8, signed: false }),
            Type::Aggregate(a) => a.value().as_int(),
            _ => None,
        }
    }

    /// Of a value that 64 bits are all of.
    pub(super) fn is_word(&self) -> bool {
        self.as_int().is_some() && *self != Type::Symbol(Space::User)
    }

    /// A text, for comparisons and functions of strings.
    pub fn is_text(&self) -> bool {
        matches!(self, Type::Str(_)) || matches!(self, Type::Array(of, _) if **of == Type::int(1, true))
    }

    /// Of how many types it is made; a structure counts as one.
    pub(super) fn weight(&self) -> usize {
        match self {
            Type::Pointer(of, _) | Type::Array(of, _) => 1 + of.weight(),
            Type::Tuple(list) | Type::Record(_, list) => 1 + list.iter().map(Type::weight).sum::<usize>(),
            _ => 1,
        }
    }

    /// What a message calls it, where the width does not matter.
    pub fn kind(&self) -> String {
        match self {
            Type::Int(_) => "integers".into(),
            Type::Str(_) => "strings".into(),
            Type::Bool => "truth values".into(),
            Type::Aggregate(a) => a.to_string(),
            t => format!("values of type {t}"),
        }
    }
}

impl Aggregate {
    /// The type of its value where it is read; None: it has none.
    pub fn value(self) -> Type {
        match self {
            Aggregate::Count => Type::UINT,
            Aggregate::Sum { signed }
            | Aggregate::Min { signed }
            | Aggregate::Max { signed }
            | Aggregate::Avg { signed } => Type::int(8, signed),
            Aggregate::Stddev { .. } => Type::UINT,
            Aggregate::Stats { .. } | Aggregate::Hist { .. } | Aggregate::Lhist { .. } | Aggregate::Llquantize(_) => {
                Type::None
            }
        }
    }

    fn join(self, other: Aggregate) -> Option<Aggregate> {
        use Aggregate::*;
        Some(match (self, other) {
            (Sum { signed: a }, Sum { signed: b }) => Sum { signed: a | b },
            (Min { signed: a }, Min { signed: b }) => Min { signed: a | b },
            (Max { signed: a }, Max { signed: b }) => Max { signed: a | b },
            (Avg { signed: a }, Avg { signed: b }) => Avg { signed: a | b },
            (Stats { signed: a }, Stats { signed: b }) => Stats { signed: a | b },
            (Stddev { signed: a }, Stddev { signed: b }) => Stddev { signed: a | b },
            (a, b) => return (a == b).then_some(a),
        })
    }
}

impl fmt::Display for Aggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Aggregate::Count => f.write_str("count()"),
            Aggregate::Sum { .. } => f.write_str("sum()"),
            Aggregate::Min { .. } => f.write_str("min()"),
            Aggregate::Max { .. } => f.write_str("max()"),
            Aggregate::Avg { .. } => f.write_str("avg()"),
            Aggregate::Stats { .. } => f.write_str("stats()"),
            Aggregate::Stddev { .. } => f.write_str("stddev()"),
            Aggregate::Llquantize(Powers { factor, from, to, steps }) => {
                write!(f, "llquantize(…, {factor}, {from}, {to}, {steps})")
            }
            Aggregate::Hist { bits } => write!(f, "hist(…, {bits})"),
            Aggregate::Lhist { min, max, step } => write!(f, "lhist(…, {min}, {max}, {step})"),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::None => f.write_str("none"),
            Type::Bool => f.write_str("bool"),
            Type::Int(c) => write!(f, "{}int{}", if c.signed { "" } else { "u" }, u32::from(c.size) * 8),
            Type::Enum(n) => write!(f, "enum {n}"),
            Type::Str(n) => write!(f, "string[{}]", n.saturating_add(1)),
            Type::Buffer(n) => write!(f, "buffer[{n}]"),
            Type::Pointer(of, _) if **of == Type::None => f.write_str("void *"),
            Type::Pointer(of, _) => write!(f, "{of} *"),
            Type::Array(of, n) => write!(f, "{of}[{n}]"),
            Type::Struct(n) => write!(f, "struct {n}"),
            Type::Tuple(list) => {
                let list: Vec<String> = list.iter().map(Type::to_string).collect();
                write!(f, "({})", list.join(","))
            }
            Type::Record(names, list) => {
                let list: Vec<String> = names.iter().zip(list).map(|(n, t)| format!("{n}={t}")).collect();
                write!(f, "({})", list.join(","))
            }
            Type::Stack(Space::Kernel, ..) => f.write_str("kstack"),
            Type::Stack(Space::User, ..) => f.write_str("ustack"),
            Type::Symbol(Space::Kernel) => f.write_str("ksym"),
            Type::Symbol(Space::User) => f.write_str("usym"),
            Type::User => f.write_str("username"),
            Type::Moment => f.write_str("timestamp"),
            Type::Aggregate(a) => a.fmt(f),
        }
    }
}

/// The smallest size whose signed, or unsigned, integers hold `v`.
fn size_for(v: u64, signed: bool) -> u8 {
    let bits = 64 - v.leading_zeros() + u32::from(signed);
    [1, 2, 4].into_iter().find(|s| u32::from(*s) * 8 >= bits).unwrap_or(8)
}

/// The type of a literal: the smallest signed one that holds it, `uint64` where none does.
pub fn literal(v: u64) -> Type {
    Type::int(size_for(v, true), v <= i64::MAX as u64)
}

/// A type that holds the values of both; None: nothing does.
pub fn join_ints(a: Cast, b: Cast) -> Option<Cast> {
    if a.signed == b.signed {
        return Some(Cast { size: a.size.max(b.size), signed: a.signed });
    }
    let (s, u) = if a.signed { (a, b) } else { (b, a) };
    match (s.size > u.size, s.size.max(u.size)) {
        (true, _) => Some(s),
        (_, 8) => None,
        (_, size) => Some(Cast { size: size * 2, signed: true }),
    }
}

impl Cast {
    /// The largest value.
    pub(crate) fn max(self) -> u64 {
        u64::MAX >> (64 - 8 * u32::from(self.size)) >> u32::from(self.signed)
    }
}
