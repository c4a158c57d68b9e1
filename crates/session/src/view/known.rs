//! The functions of traces by their numbers: how they are called, and which of them are one for a view.
//!
//! Short names of several functions are equal: `push_back` of every vector. A view shows them as one function, whose number is that of
//! the first.

use super::calls;
use ctf::functions::Record;
use ctf::trace::Trace;
use engine::pipeline::functions::shown_name;
use engine::request::functions::Functions as Wanted;
use events::functions::Table;
use events::names::FunctionName;
use std::collections::HashMap;
use views::calls::Demangle;
use views::calls::{Functions, Selection, Step};

/// Names of the functions of one or several traces. Those of further traces have numbers behind those of the ones before.
pub struct Known {
    /// The functions of each trace, and how far its numbers are off.
    tables: Vec<(u32, Table)>,
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
        let (table, number) = self.table(number)?;
        table.get(number).map(|f| f.name)
    }

    fn aliases(&self, number: u32) -> &[String] {
        self.function(number).map_or(&[], |f| f.aliases)
    }

    fn signature(&self, number: u32) -> Option<&events::values::Signature> {
        let (table, number) = self.table(number)?;
        table.signature(number)
    }

    fn module(&self, number: u32) -> &str {
        self.function(number).map_or("", |f| f.module)
    }
}

impl Known {
    /// The functions of traces; of those that are `wanted`, if some are named. Functions are one only if `selection` treats them alike.
    pub fn new<'t>(
        traces: impl Iterator<Item = &'t Trace>,
        demangle: Demangle,
        wanted: &Wanted,
        selection: &Selection,
    ) -> Known {
        let mut known = Known { tables: Vec::new(), shown: Vec::new(), numbers: Vec::new() };
        for trace in traces {
            let (base, table) = (known.last(), trace.functions(shown_name));
            known.tables.push((base, table));
        }
        let shown = calls::named(demangle);
        let name = |n| known.function(n).and_then(|f| Some(shown(&f)).filter(|s| s != f.name).map(Into::into));
        let all = 0..=known.last();
        known.shown = if demangle == Demangle::Plain { Vec::new() } else { all.clone().map(name).collect() };
        let mut first = HashMap::new();
        let is_wanted =
            |n| wanted.are_all() || known.table(n).is_some_and(|(table, number)| wanted.wants(table.names(number)));
        let numbers: Vec<u32> = all
            .clone()
            .map(|n| match (known.function(n), known.name(n)) {
                (Some(_), _) if !is_wanted(n) => 0,
                (Some(f), Some(name)) => *first.entry((name, f.module, selection.verdict(n, &known))).or_insert(n),
                _ => n,
            })
            .collect();
        if !numbers.iter().copied().eq(all) {
            known.numbers = numbers;
        }
        known
    }

    /// The last number.
    fn last(&self) -> u32 {
        self.tables.last().map_or(0, |(base, table)| base.saturating_add(table.last()))
    }

    /// The trace that has a number, and its own number of the function.
    fn table(&self, number: u32) -> Option<(&Table, u32)> {
        let nth = self.tables.partition_point(|(base, _)| *base < number.max(1)).checked_sub(1)?;
        let (base, table) = &self.tables[nth];
        Some((table, number - base))
    }

    fn function(&self, number: u32) -> Option<FunctionName<'_>> {
        let (table, number) = self.table(number)?;
        table.get(number)
    }

    /// Whether a function is among those of which calls are shown, and not among those that are hidden.
    pub fn has_any_of(&self, selection: &Selection) -> bool {
        (1..=self.last()).filter(|n| self.function(*n).is_some()).any(|n| selection.verdict(n, self) == (true, false))
    }

    /// Whether each record of a trace is one of the view, as it is.
    pub fn takes_all(&self, nth: usize) -> bool {
        nth == 0 && self.numbers.is_empty()
    }

    /// What a record of a trace is to the view; none where its function is not shown.
    pub fn step(&self, nth: usize, r: Record) -> Option<Step> {
        let number = self.tables.get(nth).map_or(0, |(base, _)| *base).saturating_add(r.function);
        match self.numbers.get(number as usize).copied().unwrap_or(number) {
            0 => None,
            function => Some(step(Record { function, ..r })),
        }
    }
}

/// A record as a step.
pub fn step(r: Record) -> Step {
    if r.exit { Step::exit(r.time, r.function) } else { Step::entry(r.time, r.function) }
}
