//! Maps of a clause: the bytes of keys, and values that change.

use super::Datum;
use super::exec::{Leaf, Result, Run};
use super::memory::array;
use crate::script::ir::{Expr, Kind, Place};
use crate::script::maps::Held;
use crate::script::types::{Aggregate, Type};
use crate::script::value::{Value, with_length};

impl Run<'_> {
    /// A count without keys that was taken away goes on from zero.
    pub(super) fn keep_count(&mut self, m: usize, had: bool) {
        let map = &self.program.maps[m];
        if had && map.key.is_empty() && map.value == Type::Aggregate(Aggregate::Count) {
            self.stores[m].at(&[], || Held::new(&map.value));
        }
    }

    /// The bytes of a key. The buffer is used again, but not by a key within this one.
    pub(super) fn with_key<T>(&mut self, parts: &[Expr], f: impl FnOnce(&mut Self, &[u8]) -> T) -> Result<T> {
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        for part in parts {
            self.encode(part, &mut key)?;
        }
        let out = f(self, &key);
        self.key = key;
        Ok(out)
    }

    /// A part of a key, without a copy where it lies in the event.
    fn encode(&mut self, e: &Expr, key: &mut Vec<u8>) -> Result<()> {
        match &e.kind {
            Kind::Leaf(i) => match &self.leaves[*i] {
                Leaf::Of(Datum::Text(b, _) | Datum::Bytes(b)) => with_length(b, key),
                Leaf::Of(Datum::Int(v) | Datum::At(v, ..)) => key.extend_from_slice(&v.to_le_bytes()),
                Leaf::Of(Datum::Of(word, pid)) => Value::Of { word: *word, pid: *pid }.encode(key),
                Leaf::Of(Datum::Strings(b)) => array(b).encode(key),
                Leaf::Read(v) => v.encode(key),
            },
            Kind::Text(b) => with_length(b, key),
            Kind::Tuple(list) => {
                for e in list {
                    self.encode(e, key)?;
                }
            }
            _ => self.any(e)?.encode(key),
        }
        Ok(())
    }

    /// Gives a variable or a map's value another number; the number before.
    pub(super) fn change(&mut self, place: &Place, new: impl FnOnce(i64) -> i64) -> Result<i64> {
        match place {
            Place::Var(i) => {
                let old = self.vars[*i].as_ref().map_or(0, Value::int);
                let ty = &self.clause.vars[*i];
                self.vars[*i] = Some(Value::Int(within(new(old), ty)));
                Ok(old)
            }
            Place::Map(m, key) => {
                let ty = &self.program.maps[*m].value;
                self.with_key(key, |run, key| match run.stores[*m].at(key, || Held::Value(Value::Int(0))) {
                    Some(held) => {
                        let old = held.read(ty).int();
                        *held = Held::Value(Value::Int(within(new(old), ty)));
                        old
                    }
                    None => {
                        run.is_full();
                        0
                    }
                })
            }
        }
    }
}

/// An integer, cut to its type.
#[inline]
pub(super) fn within(v: i64, ty: &Type) -> i64 {
    ty.as_int().map_or(v, |c| c.apply(v))
}
