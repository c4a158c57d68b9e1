//! The executor over events: runs a clause for an event, and keeps the script's maps.
//!
//! ```text
//! Machine::run(clause, event, host): the predicate's leaves ─► predicate ─► the body's leaves ─► body ─► Host::output, in its order
//! ```
//!
//! A run of which a value is not known does not begin: it is counted as *unknown*, by clause. Memory is read on the way: a run that
//! comes to memory that nobody has captured ends there, and is counted as unknown too; what it has done before stays.
//!
//! Invariant: no run is endless ([`MAX_ROUNDS`]), and none needs memory without bound: strings, keys and maps have their limits.

mod exec;
mod keys;
mod memory;
mod print;
mod speculation;
mod statements;
mod values;

use super::ir::{Leaf, Map, Program, Site, Writing};
use super::maps::Store;
use super::time::Wall;
use super::types::{Space, Type};
use super::value::Value;
use crate::diag::Span;
use exec::{Run, Stop};
use speculation::Speculations;
use std::collections::BTreeMap;

pub use super::maps::{Held, Row};
pub use speculation::{MAX_KEPT, MAX_OPEN};

/// This many rounds all loops of a run may have.
pub const MAX_ROUNDS: u32 = 1 << 23;

/// A value of an event.
#[derive(Clone, Copy, Debug)]
pub enum Datum<'e> {
    /// An integer, an address.
    Int(i64),
    /// A string, and whether it was longer.
    Text(&'e [u8], bool),
    /// An address, and the string there.
    At(i64, &'e [u8], bool),
    /// Bytes.
    Bytes(&'e [u8]),
    /// The strings of an array, as events have them: `Shape::Strv` of [`events::layout`].
    Strings(&'e [u8]),
    /// A stack's number, or an address, and the process that it is of.
    Of(u64, u32),
}

/// What is known of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Its bytes; of a string those before its NUL.
    Bytes(Vec<u8>),
    /// There is no memory at this address.
    Fault,
    /// Nobody has captured it.
    Unknown,
}

/// What has happened.
pub trait Event {
    /// A value by its number in the clause's leaves; None: it is not known.
    fn leaf(&self, index: usize, leaf: &Leaf) -> Option<Datum<'_>>;

    /// This many bytes of memory.
    fn memory(&self, _space: Space, _address: u64, _length: usize) -> Memory {
        Memory::Unknown
    }

    /// The string at an address: at most `most` bytes of it and one more, if it is longer.
    fn text(&self, _space: Space, _address: u64, _most: usize) -> Memory {
        Memory::Unknown
    }

    /// Whether a value, by its number in the clause's leaves, is of memory that is not there.
    fn is_fault(&self, _index: usize) -> bool {
        false
    }

    /// How many frames a stack has.
    fn frames(&self, _stack: u64) -> Option<u64> {
        None
    }

    /// The process of an address.
    fn pid(&self) -> u32 {
        0
    }
}

/// What begin, end and intervals run for where nothing else is known.
pub struct Nothing;

impl Event for Nothing {
    fn leaf(&self, _: usize, _: &Leaf) -> Option<Datum<'_>> {
        None
    }
}

/// What a script prints.
#[derive(Clone, Debug)]
pub enum Output<'m> {
    /// By a format.
    Write {
        /// What for.
        writing: Writing,
        /// The format.
        site: &'m Site,
        /// The values.
        args: &'m [Value],
    },
    /// A value.
    Value {
        /// Its type.
        ty: &'m Type,
        /// The value.
        value: &'m Value,
        /// It is a text of the script itself.
        own: bool,
    },
    /// A map.
    Map {
        /// Which.
        map: &'m Map,
        /// Its lines, in their order.
        rows: &'m [Row],
        /// Values are divided by it.
        div: i64,
    },
    /// The time of day.
    Time(&'m [u8]),
    /// Strings that were joined.
    Join(&'m [u8]),
}

/// Something that has failed, and has done nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A key that was to be deleted is not there.
    Delete,
    /// A map is full.
    Update,
    /// A key that was read is not there: the value is zero.
    Lookup,
    /// There is no memory at an address: the value is zero.
    Read,
}

impl Failure {
    /// What the kernel calls the operation, and its result: an error number, or 0.
    pub fn named(self) -> (&'static str, i32) {
        // include/uapi/asm-generic/errno-base.h: ENOENT, E2BIG, EFAULT.
        match self {
            Failure::Delete => ("map_delete_elem", -2),
            Failure::Update => ("map_update_elem", -7),
            Failure::Lookup => ("map_lookup_elem", 0),
            Failure::Read => ("probe_read", -14),
        }
    }
}

/// Who runs a script.
pub trait Host {
    /// Something is printed.
    fn output(&mut self, output: Output<'_>);

    /// The moment that a time of `nsecs` is; None: now.
    fn wall(&mut self, nsecs: Option<u64>) -> Wall;

    /// Something has failed there.
    fn failed(&mut self, _what: Failure, _at: Span) {}

    /// An address is watched no more.
    fn unwatch(&mut self, _address: u64) {}

    /// The directories of a control group in the hierarchies whose names match a pattern: `HIERARCHY:/DIRECTORY`, with `;` between them.
    fn cgroup_path(&mut self, _id: u64, _hierarchies: &[u8]) -> String {
        String::new()
    }
}

/// How often a clause ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// To its end.
    pub done: u64,
    /// The predicate was false.
    pub rejected: u64,
    /// Something was not known.
    pub unknown: u64,
}

/// What went wrong while a script ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A division by zero; its result is 1.
    DivisionByZero,
    /// A run had as many rounds of loops as it may have, and was ended.
    TooManyRounds,
}

/// A script that runs.
pub struct Machine {
    program: Program,
    stores: Vec<Store>,
    counts: Vec<Counts>,
    faults: BTreeMap<(Fault, usize, usize), u64>,
    /// Reads of memory that is not there.
    bad_reads: u64,
    random: u64,
    exit: Option<i32>,
    rounds: u32,
    speculations: Speculations,
    /// Kept for the next run.
    key: Vec<u8>,
    vars: Vec<Option<Value>>,
}

impl Machine {
    /// One that has not run yet. `seed` is what random numbers begin with.
    pub fn new(program: Program, seed: u64) -> Machine {
        Machine {
            stores: program.maps.iter().map(Store::new).collect(),
            counts: vec![Counts::default(); program.clauses.len()],
            faults: BTreeMap::new(),
            bad_reads: 0,
            random: seed | 1,
            exit: None,
            rounds: MAX_ROUNDS,
            speculations: Speculations::default(),
            key: Vec::new(),
            vars: Vec::new(),
            program,
        }
    }

    /// Ends runs after fewer rounds of loops.
    pub fn limit_rounds(&mut self, rounds: u32) {
        self.rounds = rounds.min(MAX_ROUNDS);
    }

    /// The script.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// What `exit` was given: nothing runs any more, but `end`.
    pub fn exit(&self) -> Option<i32> {
        self.exit
    }

    /// How often each clause ran.
    pub fn counts(&self) -> &[Counts] {
        &self.counts
    }

    /// What went wrong: what, where, how often.
    pub fn faults(&self) -> impl Iterator<Item = (Fault, Span, u64)> {
        self.faults.iter().map(|((fault, start, end), n)| (*fault, Span { start: *start, end: *end }, *n))
    }

    /// How often memory was read that is not there.
    pub fn bad_reads(&self) -> u64 {
        self.bad_reads
    }

    /// How many new keys did not fit into a map: its name, and how many.
    pub fn refused(&self) -> impl Iterator<Item = (&str, u64)> {
        let all = self.program.maps.iter().zip(&self.stores);
        all.filter(|(_, s)| s.refused > 0).map(|(m, s)| (m.name.as_str(), s.refused))
    }

    /// Whether a map has, or once had, as many keys as fit into it, and refuses others.
    pub fn is_full(&self, name: &str) -> bool {
        let mut all = self.program.maps.iter().zip(&self.stores);
        all.any(|(m, s)| m.name == name && s.is_full())
    }

    /// What speculations have lost: those that were not opened, because too many were, and lines that there was no room for.
    pub fn speculations_lost(&self) -> (u64, u64) {
        (self.speculations.refused, self.speculations.lost)
    }

    /// A thread has ended: its variables go.
    pub fn forget_thread(&mut self, tid: u32) {
        for (map, store) in self.program.maps.iter().zip(&mut self.stores) {
            if map.is_of_threads() {
                store.remove(&i64::from(tid).to_le_bytes());
            }
        }
    }

    /// Adds what was collected elsewhere for a map at a key: words as [`super::maps::words_of`] has them.
    pub fn merge(&mut self, map: usize, key: &[u8], words: &[u64]) {
        if let (Some(m), Some(store)) = (self.program.maps.get(map), self.stores.get_mut(map)) {
            store.merge(&m.value, key, words);
        }
    }

    /// Adds what a clause of one statement has collected elsewhere, of events that are alike in everything that its predicate and its key read:
    /// `event` is one of them.
    pub fn collected(&mut self, clause: usize, event: &dyn Event, held: Held, host: &mut dyn Host) {
        self.run_with(clause, event, host, |run| run.collected(held));
    }

    /// A clause did not run this many times elsewhere, because something was not known.
    pub fn unknown(&mut self, clause: usize, times: u64) {
        if let Some(counts) = self.counts.get_mut(clause) {
            counts.unknown += times;
        }
    }

    /// A map has refused this many new keys elsewhere.
    pub fn refuse(&mut self, map: usize, keys: u64) {
        if let Some(store) = self.stores.get_mut(map) {
            store.refused += keys;
        }
    }

    /// This many reads of memory that is not there have happened elsewhere.
    pub fn bad_read(&mut self, reads: u64) {
        self.bad_reads += reads;
    }

    /// So often something went wrong elsewhere.
    pub fn fault(&mut self, fault: Fault, at: Span, n: u64) {
        if n > 0 {
            *self.faults.entry((fault, at.start, at.end)).or_default() += n;
        }
    }

    /// Runs a clause for an event.
    pub fn run(&mut self, clause: usize, event: &dyn Event, host: &mut dyn Host) {
        let Some(c) = self.program.clauses.get(clause) else { return };
        if self.exit.is_none() || c.points.iter().any(|p| p.provider.name == "end") {
            self.run_with(clause, event, host, |run| run.clause());
        }
    }

    fn run_with(
        &mut self,
        clause: usize,
        event: &dyn Event,
        host: &mut dyn Host,
        what: impl FnOnce(&mut Run<'_>) -> Result<bool, Stop>,
    ) {
        let Some(c) = self.program.clauses.get(clause) else { return };
        self.vars.clear();
        self.vars.resize(c.vars.len(), None);
        let mut run = Run {
            program: &self.program,
            clause: c,
            stores: &mut self.stores,
            faults: &mut self.faults,
            bad_reads: &mut self.bad_reads,
            random: &mut self.random,
            exit: &mut self.exit,
            vars: &mut self.vars,
            key: std::mem::take(&mut self.key),
            leaves: Vec::with_capacity(c.leaves.len()),
            rounds: self.rounds,
            speculations: &mut self.speculations,
            speculating: None,
            event,
            host,
        };
        let end = what(&mut run);
        let key = std::mem::take(&mut run.key);
        self.key = key;
        let counts = &mut self.counts[clause];
        match end {
            Ok(true) => counts.done += 1,
            Ok(false) => counts.rejected += 1,
            Err(Stop::Leave(_)) => counts.done += 1,
            Err(Stop::Unknown) => counts.unknown += 1,
        }
    }

    /// Prints all maps that hold something, as at the end of a script, unless its settings say otherwise.
    pub fn print_maps(&self, host: &mut dyn Host) {
        if !self.program.config.print_maps_on_exit {
            return;
        }
        for (map, store) in self.program.maps.iter().zip(&self.stores) {
            if store.len() > 0 && !map.is_of_threads() {
                host.output(Output::Map { map, rows: &store.rows(map, 0), div: 1 });
            }
        }
    }
}
