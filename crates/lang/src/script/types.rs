//! The types of values, and what two of them have in common.
//!
//! Invariant: [`Slot`] gives one type for a set of values, whatever the order in which they were added.

use crate::ast::Cast;
use std::fmt;

/// The longest string, less its NUL, unless `max_strlen` says otherwise.
pub const MAX_STRLEN: u32 = 1024;

/// The most buckets of a histogram.
pub const MAX_BUCKETS: usize = 1000;

/// Of so many types one may be made: all that walk through one do so by recursion.
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
    /// A string of at most so many bytes, without its NUL.
    Str(u32),
    /// Bytes.
    Buffer(u32),
    /// An address; of what nobody knows, where it is `None`.
    Pointer(Box<Type>, Space),
    /// So many of one type.
    Array(Box<Type>, u64),
    /// A structure or union, by name.
    Struct(String),
    /// Several values.
    Tuple(Vec<Type>),
    /// Several values with names.
    Record(Vec<String>, Vec<Type>),
    /// A stack of at most so many frames.
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

/// The buckets of `llquantize`: from factor^from to before factor^(to + 1); those of a power are as large as its end divided by the steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Powers {
    pub factor: u16,
    pub from: u8,
    pub to: u8,
    pub steps: u16,
}

impl Powers {
    /// None: there are no such buckets, or too many.
    pub fn new(factor: i64, from: i64, to: i64, steps: i64) -> Option<Powers> {
        let powers = Powers {
            factor: u16::try_from(factor).ok().filter(|f| *f > 1)?,
            from: u8::try_from(from).ok()?,
            to: u8::try_from(to).ok().filter(|to| i64::from(*to) >= from)?,
            steps: u16::try_from(steps).ok().filter(|s| *s > 0)?,
        };
        // Steps divide each power, or are as small as one.
        let fits = |at: u8| {
            let end = powers.power(u32::from(at) + 1)?;
            let steps = i64::from(powers.steps);
            let whole = steps % i64::from(powers.factor) == 0 && (end % steps == 0 || steps % end == 0);
            whole.then_some(())
        };
        (powers.from..=powers.to).try_for_each(fits)?;
        (powers.buckets() <= MAX_BUCKETS).then_some(powers)
    }

    fn power(self, n: u32) -> Option<i64> {
        i64::from(self.factor).checked_pow(n)
    }

    /// Of a power: where it begins, where it ends, and how large its buckets are.
    fn of_power(self, at: u8) -> (i64, i64, i64) {
        let begin = self.power(at.into()).unwrap_or(i64::MAX);
        let end = self.power(u32::from(at) + 1).unwrap_or(i64::MAX);
        (begin, end, (end / i64::from(self.steps)).max(1))
    }

    /// How many buckets there are: first what is less, last what is more.
    pub fn buckets(self) -> usize {
        let of = |at| {
            let (begin, end, step) = self.of_power(at);
            ((end - begin) / step) as usize
        };
        (self.from..=self.to).map(of).fold(2, usize::saturating_add)
    }

    /// The bucket of a value.
    pub fn bucket(self, v: i64) -> usize {
        let mut first = 1;
        for at in self.from..=self.to {
            let (begin, end, step) = self.of_power(at);
            if v < begin {
                return 0;
            }
            if v < end {
                return first + ((v - begin) / step) as usize;
            }
            first += ((end - begin) / step) as usize;
        }
        first
    }

    /// From which number a bucket goes to before which one. None: it has no such end.
    pub fn range(self, bucket: usize) -> (Option<i64>, Option<i64>) {
        let mut first = 1;
        for at in self.from..=self.to {
            let (begin, end, step) = self.of_power(at);
            if bucket == 0 {
                return (None, Some(begin));
            }
            let all = ((end - begin) / step) as usize;
            if bucket < first + all {
                let begin = begin + (bucket - first) as i64 * step;
                return (Some(begin), Some(begin + step));
            }
            first += all;
        }
        (self.power(u32::from(self.to) + 1), None)
    }
}

impl Type {
    /// An integer of so many bytes.
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

/// What is assigned to a variable, a map's value or a part of its key: the type that holds all of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slot {
    /// The size of the largest signed, and of the largest unsigned integer.
    sizes: [Option<u8>; 2],
    /// The largest literal without a sign.
    literal: Option<u64>,
    /// It is counted up or down.
    wide: bool,
    /// What is no integer.
    other: Type,
    /// What it was declared to be.
    pub declared: Option<Type>,
    /// The parts, where it is a tuple or a record.
    parts: Vec<Slot>,
    /// The names of a record's parts.
    names: Vec<String>,
}

/// Two types that no value can have at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflict {
    /// What it holds.
    pub holds: Type,
}

impl Slot {
    /// Of a declaration.
    pub fn declared(ty: Type) -> Slot {
        Slot { declared: Some(ty), ..Slot::default() }
    }

    /// The type that holds all values that were added.
    pub fn ty(&self) -> Type {
        if let Some(t) = &self.declared {
            return t.clone();
        }
        if !self.parts.is_empty() {
            let parts = self.parts.iter().map(Slot::ty).collect();
            return if self.names.is_empty() { Type::Tuple(parts) } else { Type::Record(self.names.clone(), parts) };
        }
        if self.other != Type::None {
            return self.other.clone();
        }
        let solid = match self.sizes {
            [None, None] => return self.only_literals(),
            [Some(size), None] => Cast { size, signed: true },
            [None, Some(size)] => Cast { size, signed: false },
            [Some(s), Some(u)] => join_ints(Cast { size: s, signed: true }, Cast { size: u, signed: false })
                .unwrap_or(Cast { size: 8, signed: true }),
        };
        let least = self.literal.map_or(1, |v| size_for(v, solid.signed));
        Type::int(if self.wide { 8 } else { solid.size.max(least) }, solid.signed)
    }

    fn only_literals(&self) -> Type {
        match (self.literal, self.wide) {
            (None, false) => Type::None,
            (Some(v), wide) if v > i64::MAX as u64 || !wide => literal(v),
            _ => Type::INT,
        }
    }

    /// Nothing was added.
    pub fn is_empty(&self) -> bool {
        *self == Slot::default()
    }

    /// The largest literal, if nothing else was added.
    pub fn flexible(&self) -> Option<u64> {
        let only = self.sizes == [None, None] && !self.wide && self.other == Type::None && self.declared.is_none();
        self.literal.filter(|_| only)
    }

    /// What holds all that was added to both; None: nothing does.
    pub fn with(&self, other: &Slot) -> Option<Slot> {
        if self.declared.is_some() {
            return Some(self.clone());
        }
        let ints = |s: &Slot| s.sizes != [None, None] || s.literal.is_some() || s.wide;
        let mut parts = self.parts.clone();
        match (self.parts.len(), other.parts.len()) {
            (_, 0) => {}
            (0, _) => parts.clone_from(&other.parts),
            (a, b) if a == b && self.names == other.names => {
                parts = self.parts.iter().zip(&other.parts).map(|(a, b)| a.with(b)).collect::<Option<_>>()?;
            }
            _ => return None,
        }
        let joined = Slot {
            sizes: [self.sizes[0].max(other.sizes[0]), self.sizes[1].max(other.sizes[1])],
            literal: self.literal.max(other.literal),
            wide: self.wide | other.wide,
            other: match (&self.other, &other.other) {
                (a, Type::None) => a.clone(),
                (Type::None, b) => b.clone(),
                (a, b) => join(a, b)?,
            },
            declared: other.declared.clone(),
            parts,
            names: if self.names.is_empty() { other.names.clone() } else { self.names.clone() },
        };
        let kinds = [
            ints(&joined) && !matches!(joined.other, Type::Pointer(..)),
            joined.other != Type::None,
            !joined.parts.is_empty(),
        ];
        let signs = matches!(joined.sizes, [Some(s), Some(8)] if s == 8);
        (kinds.iter().filter(|k| **k).count() < 2 && !signs).then_some(joined)
    }

    /// It is counted up or down.
    pub fn step(&mut self) -> Result<(), Conflict> {
        if self.other != Type::None && !matches!(self.other, Type::Pointer(..)) || !self.parts.is_empty() {
            return Err(Conflict { holds: self.ty() });
        }
        self.wide = true;
        Ok(())
    }

    /// Adds a value's type; `flexible` is the value of a literal without a sign.
    pub fn add(&mut self, ty: &Type, flexible: Option<u64>) -> Result<(), Conflict> {
        let holds = self.ty();
        let conflict = Err(Conflict { holds: holds.clone() });
        if *ty == Type::None {
            return Ok(());
        }
        if let Some(declared) = &self.declared {
            return if fits(ty, flexible, declared) { Ok(()) } else { conflict };
        }
        let has_int = self.sizes != [None, None] || self.literal.is_some() || self.wide;
        match ty {
            Type::Int(c) if matches!(self.other, Type::None | Type::Pointer(..)) && self.parts.is_empty() => {
                match flexible {
                    Some(v) => self.literal = self.literal.max(Some(v)),
                    None if matches!(self.other, Type::Pointer(..)) => return conflict,
                    None => {
                        let which = usize::from(!c.signed);
                        self.sizes[which] = self.sizes[which].max(Some(c.size));
                    }
                }
                let mixed = |s, u| join_ints(Cast { size: s, signed: true }, Cast { size: u, signed: false }).is_none();
                match self.sizes {
                    [Some(s), Some(u)] if mixed(s, u) => conflict,
                    [Some(_), _] if self.literal.is_some_and(|v| v > i64::MAX as u64) => conflict,
                    _ => Ok(()),
                }
            }
            Type::Tuple(list) | Type::Record(_, list) if self.other == Type::None && !has_int => {
                let names = if let Type::Record(names, _) = ty { names.clone() } else { Vec::new() };
                if self.parts.is_empty() {
                    self.parts = vec![Slot::default(); list.len()];
                    self.names.clone_from(&names);
                }
                if self.parts.len() != list.len() || self.names != names {
                    return conflict;
                }
                let added = self.parts.iter_mut().zip(list).try_for_each(|(s, t)| s.add(t, None));
                added.map_err(|_| Conflict { holds })
            }
            Type::Pointer(..) if self.other == Type::None && self.sizes == [None, None] && self.parts.is_empty() => {
                self.other = ty.clone();
                Ok(())
            }
            _ if self.other == Type::None && !has_int && self.parts.is_empty() => {
                self.other = ty.clone();
                Ok(())
            }
            _ if !self.parts.is_empty() || (has_int && !matches!(self.other, Type::Pointer(..))) => conflict,
            _ => match join(&self.other, ty) {
                Some(t) => {
                    self.other = t;
                    Ok(())
                }
                None => conflict,
            },
        }
    }
}

fn join(a: &Type, b: &Type) -> Option<Type> {
    Some(match (a, b) {
        (Type::Str(a), Type::Str(b)) => Type::Str(*a.max(b)),
        (Type::Buffer(a), Type::Buffer(b)) => Type::Buffer(*a.max(b)),
        (Type::Aggregate(a), Type::Aggregate(b)) => Type::Aggregate(a.join(*b)?),
        (Type::Pointer(a, s), Type::Pointer(b, t)) => {
            let space = if *s == Space::User || *t == Space::User { Space::User } else { Space::Kernel };
            let of = if **a == **b { (**a).clone() } else { Type::None };
            Type::Pointer(Box::new(of), space)
        }
        (Type::Stack(s, m, a), Type::Stack(t, n, b)) if (s, m) == (t, n) => Type::Stack(*s, *m, *a.max(b)),
        (a, b) => return (a == b).then(|| a.clone()),
    })
}

/// Whether a value of `ty` may be assigned where `declared` was declared: it may become wider, not narrower.
fn fits(ty: &Type, flexible: Option<u64>, declared: &Type) -> bool {
    match (ty, declared) {
        (Type::Int(_), Type::Int(d)) if flexible.is_some() => {
            d.size == 8 && !d.signed || flexible.is_some_and(|v| v <= d.max())
        }
        (Type::Int(a), Type::Int(d)) => join_ints(*a, *d) == Some(*d),
        (Type::Int(_), Type::Pointer(..)) => flexible.is_some(),
        (Type::Str(a), Type::Str(d)) => a <= d,
        (Type::Buffer(a), Type::Buffer(d)) => a <= d,
        (Type::Pointer(a, _), Type::Pointer(d, _)) => **d == Type::None || a == d,
        (Type::Tuple(a), Type::Tuple(d)) => a.len() == d.len() && a.iter().zip(d).all(|(a, d)| fits(a, None, d)),
        (Type::Record(n, a), Type::Record(m, d)) => n == m && a.iter().zip(d).all(|(a, d)| fits(a, None, d)),
        (a, d) => a == d,
    }
}

impl Cast {
    /// The largest value.
    pub(crate) fn max(self) -> u64 {
        u64::MAX >> (64 - 8 * u32::from(self.size)) >> u32::from(self.signed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn types() -> impl Strategy<Value = (Type, Option<u64>)> {
        let int = (prop::sample::select(vec![1u8, 2, 4, 8]), any::<bool>()).prop_map(|(s, g)| (Type::int(s, g), None));
        let flexible = any::<u64>().prop_map(|v| (literal(v), Some(v)));
        let small = (0u64..300).prop_map(|v| (literal(v), Some(v)));
        prop_oneof![int, flexible, small, (0u32..99).prop_map(|n| (Type::Str(n), None)), Just((Type::Bool, None))]
    }

    proptest! {
        /// What a set of values gives depends on the set, not on its order.
        #[test]
        fn any_order(list in prop::collection::vec(types(), 0..6), turn in 0usize..6) {
            let all = |list: &[(Type, Option<u64>)]| {
                let mut s = Slot::default();
                let fine = list.iter().fold(true, |fine, (t, f)| s.add(t, *f).is_ok() && fine);
                fine.then(|| s.ty())
            };
            let mut other = list.clone();
            other.rotate_left(turn.min(list.len()));
            let mut back = list.clone();
            back.reverse();
            prop_assert_eq!(all(&list), all(&other));
            prop_assert_eq!(all(&list), all(&back));
        }
    }

    #[test]
    fn literals_take_the_sign_of_what_they_meet() {
        let mut s = Slot::default();
        s.add(&literal(200), Some(200)).unwrap();
        assert_eq!(s.ty().to_string(), "int16");
        s.add(&Type::int(1, false), None).unwrap();
        assert_eq!(s.ty().to_string(), "uint8");
        s.add(&Type::int(1, true), None).unwrap();
        assert_eq!(s.ty().to_string(), "int16");
        s.add(&Type::UINT, None).unwrap_err();
    }
}
