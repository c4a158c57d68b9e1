//! The functions of a trace by their numbers: how they are called, and which of them are one for a view.
//!
//! Short names of several functions are equal: `push_back` of every vector. A view shows them as one function, whose number is that of
//! the first.

use super::calls::Demangle;
use ctf::functions::Record;
use ctf::trace::Trace;
use engine::pipeline::functions::shown_name;
use engine::request::functions::Functions as Wanted;
use events::functions::Table;
use std::collections::HashMap;
use views::calls::{Functions, Selection, Step};

/// Names of a trace's functions.
pub struct Known {
    table: Table,
    /// The names that are shown, where they are not the demangled ones.
    shown: Vec<Option<Box<str>>>,
    /// The number that each function has for the view; 0: it is not shown. Empty: all have their own.
    numbers: Vec<u32>,
}

impl Functions for Known {
    fn name(&self, number: u32) -> Option<&str> {
        match self.shown.get(number as usize) {
            Some(Some(shown)) => Some(shown),
            _ => self.whole_name(number),
        }
    }

    fn whole_name(&self, number: u32) -> Option<&str> {
        self.table.get(number).map(|f| f.name)
    }

    fn aliases(&self, number: u32) -> &[String] {
        self.table.get(number).map_or(&[], |f| f.aliases)
    }

    fn signature(&self, number: u32) -> Option<&events::values::Signature> {
        self.table.signature(number)
    }

    fn module(&self, number: u32) -> &str {
        self.table.get(number).map_or("", |f| f.module)
    }
}

impl Known {
    /// The functions of a trace; of those that are `wanted`, if some are named. Functions are one only if `selection` treats them alike.
    pub fn new(trace: &Trace, demangle: Demangle, wanted: &Wanted, selection: &Selection) -> Known {
        let table = trace.functions(shown_name);
        let shown = demangle.shown();
        let all = 0..=table.last();
        let name = |n| table.get(n).and_then(|f| Some(shown(&f)).filter(|s| s != f.name).map(Into::into));
        let shown = if demangle == Demangle::Plain { Vec::new() } else { all.clone().map(name).collect() };
        let mut known = Known { table, shown, numbers: Vec::new() };
        let mut first = HashMap::new();
        let numbers: Vec<u32> = all
            .clone()
            .map(|n| match (known.table.get(n), known.name(n)) {
                (Some(_), _) if !wanted.are_all() && !wanted.wants(known.table.names(n)) => 0,
                (Some(f), Some(name)) => *first.entry((name, f.module, selection.verdict(n, &known))).or_insert(n),
                _ => n,
            })
            .collect();
        if !numbers.iter().copied().eq(all) {
            known.numbers = numbers;
        }
        known
    }

    /// Whether a function is among those of which calls are shown, and not among those that are hidden.
    pub fn has_any_of(&self, selection: &Selection) -> bool {
        (1..=self.table.last())
            .filter(|n| self.table.get(*n).is_some())
            .any(|n| selection.verdict(n, self) == (true, false))
    }

    /// Whether each record is one of the view, as it is.
    pub fn takes_all(&self) -> bool {
        self.numbers.is_empty()
    }

    /// What a record is to the view; none where its function is not shown.
    pub fn step(&self, r: Record) -> Option<Step> {
        match self.numbers.get(r.function as usize).copied().unwrap_or(r.function) {
            0 => None,
            function => Some(step(Record { function, ..r })),
        }
    }
}

/// A record as a step.
pub fn step(r: Record) -> Step {
    if r.exit { Step::exit(r.time, r.function) } else { Step::entry(r.time, r.function) }
}
