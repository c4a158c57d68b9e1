//! The table of stacks: the frames of each, once, below a number.
//!
//! Stacks are known by a hash of 128 bits with random keys. Of those that were met last as many are remembered as fit into the memory; one that
//! comes again after that is written again, with another number.

use super::column::Value;
use super::file::File;
use super::{About, schema};
use crate::stack::{Place, frames};
use events::Event;
use events::hash::{Keys, Table};
use events::names::Names;
use events::stacks;
use std::hash::{BuildHasher, Hash, Hasher};

/// Stacks that are remembered.
const MOST: usize = 1 << 18;

/// The table.
pub struct StackTable {
    /// Its rows.
    pub file: File,
    keys: [Keys; 2],
    known: Table<[u64; 2], i64>,
    written: i64,
}

impl StackTable {
    /// None so far.
    pub fn new(about: &About) -> StackTable {
        StackTable { file: about.file(&schema::STACKS), keys: Default::default(), known: Table::default(), written: 0 }
    }

    /// The number of the stack of an event, which is written where it is new: the kernel's frames first.
    pub fn number(&mut self, ev: &Event<'_>, names: &dyn Names) -> Value<'static> {
        if !stacks::may_have(ev.schema) {
            return Value::Null;
        }
        let (mut sums, mut any) = (self.keys.each_ref().map(Keys::build_hasher), false);
        for stack in stacks::of(ev, names) {
            frames(ev, &stack, names, &mut |place| {
                any = true;
                sums.iter_mut().for_each(|sum| hash(place, sum));
            });
        }
        if !any {
            return Value::Null;
        }
        let sums = sums.map(|sum| sum.finish());
        if let Some(number) = self.known.get(&sums) {
            return Value::Int(*number);
        }
        if self.known.len() >= MOST {
            self.known.clear();
        }
        self.written += 1;
        self.known.insert(sums, self.written);
        self.write(ev, names);
        Value::Int(self.written)
    }

    fn write(&mut self, ev: &Event<'_>, names: &dyn Names) {
        let (mut depth, number) = (0, Value::Int(self.written));
        for stack in stacks::of(ev, names) {
            frames(ev, &stack, names, &mut |place| {
                let f = &place.frame;
                let truth = |set: bool| Value::Int(set.into());
                self.file.row([
                    number,
                    Value::Int(depth),
                    Value::text(f.function.as_bytes()),
                    Value::text(f.module.as_bytes()),
                    Value::text(f.file.as_bytes()),
                    Value::maybe(Some(f.line).filter(|line| *line > 0)),
                    // Those of the kernel are in the upper half of all addresses.
                    Value::maybe(place.address.map(|address| address as i64)),
                    truth(f.kernel),
                    truth(f.inlined),
                    truth(f.guessed),
                ]);
                depth += 1;
            });
        }
    }
}

fn hash(place: &Place<'_>, sum: &mut impl Hasher) {
    let f = &place.frame;
    (f.function, f.module, f.file, f.line, place.address, f.kernel, f.inlined, f.guessed).hash(sum);
}
