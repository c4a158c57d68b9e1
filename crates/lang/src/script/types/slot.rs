//! The type that several values have in common.
//!
//! Invariant: [`Slot`] gives one type for a set of values, whatever the order in which they were added.

use super::{Space, Type, join_ints, literal, size_for};
use crate::ast::Cast;

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
