//! The keys of one map, and what it holds at each.
//!
//! Invariant: a map has at most as many keys as it was declared to have. A new key that finds it full is refused and counted; a map
//! declared as `lruhash` or `percpulruhash` drops the least recently used key instead.

use super::{Held, Row, ir, order, parts};
use crate::script::types::Type;
use std::collections::{BTreeMap, HashMap};

/// A map.
#[derive(Debug)]
pub(in crate::script) struct Store {
    keys: HashMap<Box<[u8]>, Held>,
    most: usize,
    /// How many new keys did not fit, here and where others collect for it.
    pub refused: u64,
    /// It had no room for a key. What it holds may have been taken out since.
    was_full: bool,
    /// Of a map that drops keys.
    uses: Option<Uses>,
}

impl Store {
    pub fn new(map: &ir::Map) -> Store {
        let most = usize::try_from(map.entries).unwrap_or(usize::MAX);
        Store { keys: HashMap::new(), most, refused: 0, was_full: false, uses: map.drops_keys().then(Uses::default) }
    }

    /// What is at a key. Printing a map is no use of its keys.
    pub fn get(&self, key: &[u8]) -> Option<&Held> {
        self.keys.get(key)
    }

    /// What a clause reads at a key.
    pub fn read(&mut self, key: &[u8]) -> Option<&Held> {
        let held = self.keys.get(key)?;
        if let Some(uses) = &mut self.uses {
            uses.used(key);
        }
        Some(held)
    }

    /// What is at a key, which is made where there is none. None: the map is full.
    pub fn at(&mut self, key: &[u8], new: impl FnOnce() -> Held) -> Option<&mut Held> {
        if !self.keys.contains_key(key) {
            if self.keys.len() >= self.most && !self.drop_oldest() {
                self.refused += 1;
                self.was_full = true;
                return None;
            }
            self.keys.insert(key.into(), new());
        }
        if let Some(uses) = &mut self.uses {
            uses.used(key);
        }
        self.keys.get_mut(key)
    }

    /// Makes room for a key; false: this map keeps what it has.
    fn drop_oldest(&mut self) -> bool {
        let oldest = self.uses.as_mut().and_then(Uses::take_oldest);
        oldest.is_some_and(|key| self.keys.remove(&key).is_some())
    }

    /// Adds what somebody else has collected at a key.
    pub fn merge(&mut self, ty: &Type, key: &[u8], words: &[u64]) {
        if words.iter().any(|n| *n != 0)
            && let Some(held) = self.at(key, || Held::new(ty))
        {
            held.merge(ty, words);
        }
    }

    pub fn remove(&mut self, key: &[u8]) -> bool {
        if let Some(uses) = &mut self.uses {
            uses.forget(key);
        }
        self.keys.remove(key).is_some()
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether it has, or once had, as many keys as fit into it, and refuses others.
    pub fn is_full(&self) -> bool {
        self.was_full || self.uses.is_none() && self.keys.len() >= self.most
    }

    pub fn clear(&mut self) {
        self.keys.clear();
        self.uses = self.uses.take().map(|_| Uses::default());
    }

    pub fn zero(&mut self, ty: &Type) {
        self.keys.values_mut().for_each(|h| *h = Held::new(ty));
    }

    /// All pairs, in the order of their keys' bytes.
    pub fn pairs(&self) -> Vec<(&[u8], &Held)> {
        let mut all: Vec<_> = self.keys.iter().map(|(k, h)| (&**k, h)).collect();
        all.sort_by_key(|p| p.0);
        all
    }

    /// Its lines, as they are shown: the last `top`, or all.
    pub fn rows(&self, map: &ir::Map, top: usize) -> Vec<Row> {
        let mut rows: Vec<Row> =
            self.keys.iter().map(|(k, h)| Row { key: parts(k, &map.key), held: h.clone() }).collect();
        rows.sort_by(|a, b| order(map, a, b));
        if top > 0 && rows.len() > top {
            rows.drain(..rows.len() - top);
        }
        rows
    }
}

/// When each key was used last.
#[derive(Debug, Default)]
struct Uses {
    last: HashMap<Box<[u8]>, u64>,
    /// The keys by those numbers: the first one was not used for longest.
    order: BTreeMap<u64, Box<[u8]>>,
    next: u64,
}

impl Uses {
    fn used(&mut self, key: &[u8]) {
        let now = self.next;
        self.next += 1;
        let key = match self.last.get_mut(key) {
            Some(last) => self.order.remove(&std::mem::replace(last, now)),
            None => self.last.insert(key.into(), now).map_or_else(|| Some(key.into()), |_| None),
        };
        self.order.extend(key.map(|key| (now, key)));
    }

    fn forget(&mut self, key: &[u8]) {
        if let Some(last) = self.last.remove(key) {
            self.order.remove(&last);
        }
    }

    fn take_oldest(&mut self) -> Option<Box<[u8]>> {
        let (_, key) = self.order.pop_first()?;
        self.last.remove(&key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Value;
    use super::*;
    use proptest::prelude::*;

    fn map(kind: Option<&str>, entries: u64) -> ir::Map {
        let kind = kind.map(str::to_string);
        ir::Map { name: "x".into(), key: vec![Type::INT], value: Type::INT, kind, entries, text: None }
    }

    #[test]
    fn only_declared_maps_drop_keys() {
        for (kind, drops) in [
            (None, false),
            (Some("hash"), false),
            (Some("percpuhash"), false),
            (Some("lruhash"), true),
            (Some("percpulruhash"), true),
        ] {
            let mut store = Store::new(&map(kind, 2));
            let mut put = |key: u8| store.at(&[key], || Held::Value(Value::Int(0))).is_some();
            assert_eq!([put(1), put(2), put(1), put(3)], [true, true, true, drops], "{kind:?}");
            assert_eq!((store.len(), store.refused), (2, u64::from(!drops)), "{kind:?}");
            assert_eq!((store.get(&[1]).is_some(), store.get(&[2]).is_some()), (true, !drops), "{kind:?}");
        }
    }

    proptest! {
        /// The keys are the last ones of a list in which every used key moves to the end.
        #[test]
        fn the_least_recently_used_key_goes(most in 1usize..6, steps in prop::collection::vec((0u8..4, 0u8..10), 0..60)) {
            let mut store = Store::new(&map(Some("lruhash"), most as u64));
            let mut list: Vec<u8> = Vec::new();
            for (what, key) in steps {
                let had = list.iter().position(|k| *k == key).map(|at| list.remove(at)).is_some();
                match what {
                    0 | 1 => {
                        prop_assert!(store.at(&[key], || Held::Value(Value::Int(0))).is_some());
                        list.push(key);
                        list.drain(..list.len().saturating_sub(most));
                    }
                    2 => {
                        prop_assert_eq!(store.read(&[key]).is_some(), had);
                        list.extend(had.then_some(key));
                    }
                    _ => prop_assert_eq!(store.remove(&[key]), had),
                }
                let mut sorted = list.clone();
                sorted.sort_unstable();
                let keys: Vec<u8> = store.pairs().iter().map(|(key, _)| key[0]).collect();
                prop_assert_eq!(keys, sorted);
            }
            store.clear();
            prop_assert!(store.at(&[1], || Held::Value(Value::Int(0))).is_some() && store.len() == 1);
        }
    }
}
