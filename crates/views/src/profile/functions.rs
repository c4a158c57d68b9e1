//! Functions and their weights.
//!
//! A function is a name and a module: inlined or not, and whatever its lines. What it weighs *itself* are the stacks of which it is
//! the innermost frame; in *total*, those in which it is at all, each counted once, however often it calls itself.

use super::stacks::Stacks;
use super::{Frame, name};
use std::collections::HashMap;

/// What makes a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key<'a> {
    /// Its name; empty where it is not known: then the module has one such function.
    pub function: &'a str,
    /// The file that contains it.
    pub module: &'a str,
    /// Of the kernel.
    pub kernel: bool,
}

impl<'a> Key<'a> {
    /// The function of a frame.
    pub fn of(f: &Frame<'a>) -> Key<'a> {
        Key { function: f.function, module: f.module, kernel: f.kernel }
    }

    /// A frame with this function.
    pub fn frame(&self) -> Frame<'a> {
        Frame { function: self.function, module: self.module, kernel: self.kernel, ..Frame::default() }
    }

    /// What it is called, its kernel frames marked.
    pub fn name(&self) -> String {
        let f = self.frame();
        format!("{}{}", name::function(&f), name::mark(&f))
    }
}

/// A function and its weights.
#[derive(Clone, Copy, Debug)]
pub struct Function<'a> {
    /// Which one.
    pub key: Key<'a>,
    /// Weight of the stacks of which it is the innermost frame.
    pub own: u64,
    /// Weight of the stacks that contain it.
    pub total: u64,
}

/// What the rows are sorted by, the largest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Sort {
    /// Its own weight.
    #[default]
    Own,
    /// Its total weight.
    Total,
}

impl Sort {
    /// The order that is called `name`.
    pub fn parse(name: &str) -> Option<Sort> {
        Some(match name {
            "self" => Sort::Own,
            "total" => Sort::Total,
            _ => return None,
        })
    }
}

/// All functions, in the order in which their frames were first seen.
pub fn functions(stacks: &Stacks) -> Vec<Function<'_>> {
    let mut ids = HashMap::new();
    let mut all: Vec<Function<'_>> = Vec::new();
    let of_frame: Vec<usize> = (0..stacks.frame_count() as u32)
        .map(|id| {
            let key = Key::of(&stacks.frame_at(id));
            *ids.entry(key).or_insert_with(|| {
                all.push(Function { key, own: 0, total: 0 });
                all.len() - 1
            })
        })
        .collect();
    // The stack in which a function was last seen, plus 1.
    let mut seen = vec![0; all.len()];
    for (n, tally) in stacks.by_stack().iter().enumerate() {
        for (depth, &frame) in stacks.frames_of(stacks.nth(n)).iter().enumerate() {
            let function = of_frame[frame as usize];
            if depth == 0 {
                all[function].own = all[function].own.saturating_add(tally.weight);
            }
            if std::mem::replace(&mut seen[function], n + 1) != n + 1 {
                all[function].total = all[function].total.saturating_add(tally.weight);
            }
        }
    }
    all
}

/// All functions, the largest first; those that weigh the same by name.
pub fn sorted(stacks: &Stacks, by: Sort) -> Vec<Function<'_>> {
    use std::cmp::Reverse;
    let mut all = functions(stacks);
    match by {
        Sort::Own => order::by_key(&mut all, |f| (Reverse((f.own, f.total)), f.key)),
        Sort::Total => order::by_key(&mut all, |f| (Reverse((f.total, f.own)), f.key)),
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Labels, Unit};

    #[test]
    fn a_function_that_calls_itself_is_counted_once() {
        let mut s = Stacks::new(Unit::Events);
        let mut frame =
            |function, line, inlined| s.frame(&Frame { function, module: "m", line, inlined, ..Frame::default() });
        let (main, f1, f2) = (frame("main", 1, false), frame("f", 1, false), frame("f", 2, true));
        let labels = s.labels(Labels::default());
        for (stack, weight) in [(vec![f1, f2, f1, main], 10), (vec![main], 1), (vec![f2, main], 5)] {
            let id = s.stack(&stack);
            s.add(id, labels, weight, 0);
        }
        let rows: Vec<_> = sorted(&s, Sort::Own).into_iter().map(|f| (f.key.function, f.own, f.total)).collect();
        assert_eq!(rows, [("f", 15, 15), ("main", 1, 16)]);
        assert_eq!(sorted(&s, Sort::Total)[0].key.function, "main");
    }
}
