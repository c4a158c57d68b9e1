//! Clauses of functions that only collect: they take the records of each thread as they come, instead of an event for each record. Where all
//! of what they collect follows from sums that threads keep themselves, there are no records: sums come instead.
//!
//! ```text
//! records of a thread ─► open calls ─┬► what is collected, by clause and function ─┐ before begin, end, intervals read the maps
//! sums of a thread and a function ───┘                                             └► Machine::collected ─► maps
//! ```
//!
//! A clause may, where nothing that it reads differs within a thread's calls of a function, but for `dur`, which is collected. All clauses of
//! events of the script have to be such: what else happens, an `exit()` for instance, wants one order.

use super::catalogue::As;
use super::places::{Places, fits};
use engine::pipeline::functions::Records;
use engine::pipeline::world::World;
use engine::request::functions::Sums;
use events::functions;
use events::names::Names as _;
use lang::ir::{Int, Op};
use lang::script::Program;
use lang::script::ir::{Clause, Cond, Expr, Kind, Leaf, Place, Stmt, What};
use lang::script::run::{Datum, Event, Held};
use lang::script::types::{Aggregate, Type};
use std::collections::HashMap;

/// What is collected of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Amount {
    /// A constant.
    Const(i64),
    /// How long it took, ns.
    Dur,
    /// That and a constant.
    OfDur(Op, i64),
}

/// A clause at the entry or the return of functions.
#[derive(Debug)]
struct Collects {
    /// Its number in the script.
    clause: usize,
    /// The functions.
    pattern: String,
    at_return: bool,
    map: Type,
    amount: Amount,
}

/// A clause of a function: its place among those that collect, and in [`Thread::held`].
#[derive(Clone, Copy)]
struct Act {
    nth: usize,
    slot: usize,
}

/// What is known of a function.
#[derive(Default)]
struct Function {
    entry: Vec<Act>,
    exit: Vec<Act>,
}

/// Something that is collected by itself: of a clause, for a function.
struct Slot {
    nth: usize,
    name: String,
}

#[derive(Default)]
struct Thread {
    pid: u32,
    /// Calls that have not returned: the function, and when it was entered, ns.
    open: Vec<(u32, u64)>,
    /// What was collected, by slot.
    held: Vec<Option<Held>>,
}

/// This many threads that are over are kept apart.
const MOST_OVER: usize = 256;

/// The clauses, and what is known of functions.
struct Clauses {
    all: Vec<Collects>,
    /// By their numbers.
    functions: Vec<Option<Box<Function>>>,
    slots: Vec<Slot>,
    /// By the same numbers: how often each was called within the records at hand; and those that were.
    tallies: Vec<u32>,
    called: Vec<u32>,
}

/// The clauses of a script that take records.
pub struct FromRecords {
    of: Clauses,
    /// None of them looks at the ends of calls.
    entries_alone: bool,
    threads: HashMap<u32, Thread>,
    /// Threads that are over: process, thread, what they have collected.
    over: Vec<(u32, u32, Vec<Option<Held>>)>,
    /// How many returns of unknown duration each clause has seen.
    unknown: Vec<u64>,
}

impl FromRecords {
    /// The clauses of a script, if all that run for events may.
    pub fn of(program: &Program, places: &Places) -> Option<FromRecords> {
        let of_events = |c: &&Clause| !c.points.iter().all(|p| p.is_own());
        let only = |c: &Clause| c.points.iter().all(|p| p.provider.name == "function");
        if places.values.is_some() || !places.objects.is_empty() || !program.clauses.iter().filter(of_events).all(only)
        {
            return None;
        }
        let collects = |(pattern, (role, number)): &(String, (As, usize))| {
            let clause = program.clauses.get(*number)?;
            let (map, amount) = collected(clause)?;
            let at_return = *role == As::Exit;
            let map = program.maps.get(map)?.value.clone();
            (at_return || matches!(amount, Amount::Const(_))).then_some(())?;
            Some(Collects { clause: *number, pattern: pattern.clone(), at_return, map, amount })
        };
        let all: Vec<Collects> = places.functions.iter().map(collects).collect::<Option<_>>()?;
        let unknown = vec![0; all.len()];
        let entries_alone = all.iter().all(|c| !c.at_return);
        let is_any = !all.is_empty();
        let (slots, tallies, called) = (Vec::new(), Vec::new(), Vec::new());
        let of = Clauses { all, functions: Vec::new(), slots, tallies, called };
        is_any.then_some(FromRecords { of, entries_alone, threads: HashMap::new(), over: Vec::new(), unknown })
    }

    /// Whether none of them looks at the ends of calls.
    pub fn takes_entries_alone(&self) -> bool {
        self.entries_alone
    }

    /// What threads have to keep themselves for all that is collected; none: it takes records.
    pub fn sums(&self) -> Option<Sums> {
        let mut unit = None;
        for c in self.of.all.iter().filter(|c| c.at_return) {
            let ns = match c.amount {
                Amount::Const(_) => continue,
                Amount::Dur => 1,
                Amount::OfDur(Op::Div(_) | Op::DivU(_), by) => u64::try_from(by).ok().filter(|by| *by > 0)?,
                Amount::OfDur(..) => return None,
            };
            let is_sum = match c.map {
                Type::Aggregate(Aggregate::Hist { bits }) => bits == 0,
                Type::Aggregate(Aggregate::Lhist { .. } | Aggregate::Llquantize(_) | Aggregate::Stddev { .. }) => false,
                _ => true,
            };
            // Durations are measured in one unit.
            (is_sum && unit.is_none_or(|unit| unit == ns)).then_some(())?;
            unit = Some(ns);
        }
        Some(if self.entries_alone { Sums::Calls } else { Sums::Durations(unit.unwrap_or(1)) })
    }

    /// Takes what a thread has added up of a function.
    pub fn add(&mut self, (pid, tid): (u32, u32), sums: &functions::Sums, world: &World) {
        let FromRecords { of, threads, over, unknown, .. } = self;
        let Thread { held, .. } = thread_of(threads, over, (pid, tid));
        of.learn(sums.number, world);
        of.collect(&of.get(sums.number).entry, held, (sums.calls, None), unknown);
        for act in &of.get(sums.number).exit {
            let amount = of.all[act.nth].amount;
            of.held(*act, held, |held, aggregate| match amount {
                Amount::Const(v) => held.collect_times(aggregate, v, sums.ended),
                _ => held.collect_sums(aggregate, sums),
            });
        }
    }

    /// Whether a clause is among them.
    pub fn has(&self, clause: usize) -> bool {
        self.of.all.iter().any(|c| c.clause == clause)
    }

    /// Takes records.
    pub fn take(&mut self, records: &Records<'_>, world: &World) {
        let FromRecords { of, entries_alone, threads, over, unknown } = self;
        let Thread { open, held, .. } = thread_of(threads, over, (records.pid, records.tid));
        if *entries_alone {
            for word in records.words().filter(|word| word & 1 == 0) {
                let number = word >> 1;
                of.learn(number, world);
                // It is known, and so has a tally.
                if let Some(n) = of.tallies.get_mut(number as usize) {
                    if *n == 0 {
                        of.called.push(number);
                    }
                    *n += 1;
                }
            }
            for number in std::mem::take(&mut of.called) {
                let times = of.tallies.get_mut(number as usize).map_or(0, std::mem::take);
                of.collect(&of.get(number).entry, held, (times.into(), None), unknown);
            }
            return;
        }
        if records.after_gap {
            open.clear();
        }
        for (time, word) in records.each() {
            let number = word >> 1;
            of.learn(number, world);
            if word & 1 == 0 {
                open.push((number, time));
                of.collect(&of.get(number).entry, held, (1, None), unknown);
            } else {
                // What an exception or longjmp has left returns never.
                let at = open.iter().rposition(|open| open.0 == number);
                let begun = at.map(|at| open.drain(at..).next().map_or(time, |open| open.1));
                let took = begun.map(|begun| time.saturating_sub(begun));
                of.collect(&of.get(number).exit, held, (1, took), unknown);
            }
        }
    }

    /// A thread has ended.
    pub fn forget_thread(&mut self, tid: u32) {
        if let Some(thread) = self.threads.remove(&tid) {
            self.over.push((thread.pid, tid, thread.held));
        }
    }

    /// Whether what it holds should be taken.
    pub fn is_full(&self) -> bool {
        self.over.len() >= MOST_OVER
    }

    /// Hands over what was collected: the clause, an event as those were, and what is held; and of each clause, how often it did not run.
    pub fn drain(&mut self, mut each: impl FnMut(usize, &dyn Event, Held), mut unknown: impl FnMut(usize, u64)) {
        let FromRecords { of: Clauses { all, slots, .. }, threads, over, unknown: so_far, .. } = self;
        let mut hand_over = |pid: u32, tid: u32, held: &mut Vec<Option<Held>>| {
            for (slot, held) in slots.iter().zip(held) {
                let (Some(c), Some(held)) = (all.get(slot.nth), held.take()) else { continue };
                let probe = format!("function:{}{}", c.pattern, if c.at_return { ":return" } else { "" });
                each(c.clause, &Alike { pid, tid, name: &slot.name, probe: &probe }, held);
            }
        };
        for (pid, tid, mut held) in over.drain(..) {
            hand_over(pid, tid, &mut held);
        }
        for (tid, thread) in threads {
            hand_over(thread.pid, *tid, &mut thread.held);
        }
        for (c, n) in all.iter().zip(so_far) {
            unknown(c.clause, std::mem::take(n));
        }
    }
}

impl Clauses {
    /// A function that is known.
    #[inline]
    fn get(&self, number: u32) -> &Function {
        static NONE: Function = Function { entry: Vec::new(), exit: Vec::new() };
        self.functions.get(number as usize).and_then(Option::as_deref).unwrap_or(&NONE)
    }

    /// Finds the clauses of a function, the first time.
    #[inline]
    fn learn(&mut self, number: u32, world: &World) {
        if self.functions.get(number as usize).is_none_or(Option::is_none) {
            self.learn_new(number, world);
        }
    }

    #[cold]
    fn learn_new(&mut self, number: u32, world: &World) {
        let mut known = Function::default();
        if let Some(f) = world.function(number) {
            for (nth, c) in self.all.iter().enumerate().filter(|(_, c)| fits(&c.pattern, &f)) {
                let acts = if c.at_return { &mut known.exit } else { &mut known.entry };
                acts.push(Act { nth, slot: self.slots.len() });
                self.slots.push(Slot { nth, name: f.name.into() });
            }
        }
        let at = number as usize;
        if self.functions.len() <= at {
            self.functions.resize_with(at + 1, || None);
            self.tallies.resize(at + 1, 0);
        }
        self.functions[at] = Some(Box::new(known));
    }

    /// Collects what clauses want of some calls; `took`: how long they were, ns, where that is known.
    #[inline]
    fn collect(
        &self,
        acts: &[Act],
        held: &mut Vec<Option<Held>>,
        (times, took): (u64, Option<u64>),
        unknown: &mut [u64],
    ) {
        for act in acts {
            let c = &self.all[act.nth];
            let v = match (c.amount, took) {
                (Amount::Const(v), _) => v,
                (Amount::Dur, Some(dur)) => dur as i64,
                (Amount::OfDur(op, by), Some(dur)) => op.apply(dur as i64, by),
                (_, None) => {
                    unknown[act.nth] += times;
                    continue;
                }
            };
            self.held(*act, held, |held, aggregate| held.collect_times(aggregate, v, times));
        }
    }

    /// Adds to what is held of a clause and a function.
    #[inline]
    fn held(&self, act: Act, held: &mut Vec<Option<Held>>, add: impl FnOnce(&mut Held, Aggregate)) {
        let map = &self.all[act.nth].map;
        if held.len() <= act.slot {
            held.resize_with(self.slots.len(), || None);
        }
        let held = held[act.slot].get_or_insert_with(|| Held::new(map));
        add(held, if let Type::Aggregate(a) = map { *a } else { Aggregate::Sum { signed: true } });
    }
}

/// What is known of a thread. One of another process with its id is over.
fn thread_of<'t>(
    threads: &'t mut HashMap<u32, Thread>,
    over: &mut Vec<(u32, u32, Vec<Option<Held>>)>,
    (pid, tid): (u32, u32),
) -> &'t mut Thread {
    let thread = threads.entry(tid).or_default();
    if thread.pid != pid {
        over.push((thread.pid, tid, std::mem::take(&mut thread.held)));
        thread.pid = pid;
    }
    thread
}

/// What a clause collects, and in which map, if that is all it does.
fn collected(c: &Clause) -> Option<(usize, Amount)> {
    let dur = c.leaves.iter().position(|leaf| leaf.what == What::Value("dur"));
    let alike = |leaf: &Leaf| matches!(leaf.what, What::Value("func" | "probe" | "probetype" | "pid" | "tid" | "dur"));
    if !c.leaves.iter().all(alike) || !c.vars.is_empty() {
        return None;
    }
    let [statement] = &c.body[..] else { return None };
    let (map, key, amount) = match statement {
        Stmt::Collect(map, key, _, amount, None) => {
            (*map, key, amount.as_ref().map_or(Some(Amount::Const(0)), |a| of(a, dur))?)
        }
        Stmt::Change(Place::Map(map, key), Op::Add, amount) => (*map, key, of(amount, dur)?),
        _ => return None,
    };
    let is_alike = |e: &Expr| match e.kind {
        Kind::Leaf(i) => Some(i) != dur,
        Kind::Const(..) | Kind::Text(_) => true,
        _ => false,
    };
    // The leaves of the predicate come first.
    let predicate = c.predicate.is_none() || dur.is_none_or(|i| i >= c.predicate_leaves);
    (key.iter().all(is_alike) && predicate && c.predicate.as_ref().is_none_or(is_pure)).then_some((map, amount))
}

/// Whether a predicate is one and the same whenever it is evaluated for equal leaves: without maps and random numbers.
fn is_pure(cond: &Cond) -> bool {
    let int = |int: &lang::script::ir::Int| match int {
        Int::Const(_) => true,
        Int::Value(e) => matches!(e.kind, Kind::Leaf(_) | Kind::Const(..)),
        _ => false,
    };
    match cond {
        Cond::Const(_) => true,
        Cond::Compare(_, a, b) => int(a) && int(b),
        Cond::Test(test) => {
            let known = |e: &Expr| matches!(e.kind, Kind::Leaf(_) | Kind::Const(..) | Kind::Text(_));
            known(&test.0) && known(&test.1)
        }
        Cond::Not(c) => is_pure(c),
        Cond::All(list) | Cond::Any(list) => list.iter().all(is_pure),
    }
}

/// A number that is collected, if it is a constant, or `dur` and a constant.
fn of(amount: &lang::script::ir::Int, dur: Option<usize>) -> Option<Amount> {
    let is_dur = |int: &lang::script::ir::Int| match int {
        Int::Value(e) => matches!(e.kind, Kind::Leaf(i) if Some(i) == dur),
        _ => false,
    };
    match amount {
        Int::Const(v) => Some(Amount::Const(*v)),
        a if is_dur(a) => Some(Amount::Dur),
        Int::Binary(op, a, by) if is_dur(a) => match **by {
            Int::Const(by) if op.counted(by).is_none() => Some(Amount::OfDur(*op, by)),
            _ => None,
        },
        _ => None,
    }
}

/// A call of a thread, as all of its calls of the function look to a clause.
struct Alike<'a> {
    pid: u32,
    tid: u32,
    name: &'a str,
    probe: &'a str,
}

impl Event for Alike<'_> {
    fn leaf(&self, _: usize, leaf: &Leaf) -> Option<Datum<'_>> {
        let What::Value(name) = leaf.what else { return None };
        Some(match name {
            "func" => Datum::Text(self.name.as_bytes(), false),
            "probe" => Datum::Text(self.probe.as_bytes(), false),
            "probetype" => Datum::Text(b"function", false),
            "pid" => Datum::Int(self.pid.into()),
            "tid" => Datum::Int(self.tid.into()),
            // It was collected already.
            "dur" => Datum::Int(0),
            _ => return None,
        })
    }

    fn pid(&self) -> u32 {
        self.pid
    }
}
