//! Filters in the programs of calls: the code of the filter that belongs to the number of the call.
//!
//! ```text
//! number ──tree of comparisons──► code for calls whose arguments lie alike ──► goes on
//!                                                                        └──► counted by part, and left
//! ```
//!
//! A filter is looked at before anything is read or written for the event, but for the event's time where the filter names it:
//! it sees the same time as who reads the event. Parts that are known at entry, and that are evaluated before all others, are
//! looked at there too: a call that they reject is counted and then only its end is waited for.
//!
//! Registers as in [`super::emit`]; strings and intermediate numbers lie in the scratch buffer, behind the fixed part.

use super::emit::{claimed_or, row, slot, who};
use super::target::Target;
use super::{Maps, pause, plan, state};
use crate::asm::{AsmError, Assembler, Label};
use crate::filter::{self, Argument, Bytes, Exits, Place, Places};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg::*, Size};
use crate::scratch::{self, front};
use events::layout::{Layout, Shape};
use lang::Filter;
use lang::filter::ir::{Leaf, Subject, Value};

/// What became of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has begun.
    Entered,
    /// Its result is in [`slot::RET`].
    Returned,
    /// It has none.
    CutOff,
}

/// The filters, before the fixed part of the event is written. Rejected events go to `out`, counted.
pub fn before(a: &mut Assembler, target: &Target, outcome: Outcome, out: Label) {
    if timed(target) {
        a.note("the time of the event");
        a.call(Helper::KtimeGetNs);
        a.store(Size::D, R7, 0, R0);
    }
    if target.namespace.is_some() && asks_who(target) {
        who(a, target);
    }
    emit(a, target, outcome, out);
}

/// At entry, the same as far as it is known there: with the flags, the number and the arguments of the call in its state.
pub fn at_entry(a: &mut Assembler, maps: &Maps, target: &Target, out: Label) {
    if !decide_at_entry(target) {
        return;
    }
    let undecided = a.new_label();
    a.note("is the call wanted?");
    a.load(Size::D, R1, R6, state::FLAGS);
    a.jump_if(Cond::Set, R1, state::COMPAT | state::STARTING, undecided);
    a.load(Size::D, R1, R6, state::NR);
    row(a, maps, undecided);
    a.load(Size::H, R1, R9, plan::FLAGS);
    a.alu(Alu::And, R1, i32::from(plan::WANTED));
    a.jump_if(Cond::Eq, R1, 0, undecided);
    // Where the buffer is taken, the end of the call decides.
    claimed_or(a, maps, undecided, |a| a.jump(undecided));
    pause::stopped(a, target, undecided);
    emit(a, target, Outcome::Entered, out);
    a.bind(undecided);
}

/// Whether filters reject some calls at entry. Names of descriptors are followed through calls that are filtered out too; in a
/// namespace it takes more to know who calls.
pub fn decide_at_entry(target: &Target) -> bool {
    let far = target.names.is_some() || target.namespace.is_some() && asks_who(target);
    !far && target.filters.iter().any(|(_, f)| early(f) > 0)
}

/// How many parts, of those that are evaluated first, hold the same at the entry and at the end of a call.
fn early(filter: &Filter) -> usize {
    let name = events::schema::by_id(filter.schema()).map_or("", |s| s.name);
    let becomes_another = name.starts_with("execve");
    let renames = becomes_another || name == "prctl" || name.contains("write");
    let changes_user = becomes_another || name.starts_with("set") && name.contains("id");
    let known = |leaf: &Leaf<'_>| match leaf {
        Leaf::Value(Value::Pid | Value::Cpu | Value::Arg(_)) => true,
        Leaf::Value(Value::Tid) => !becomes_another,
        Leaf::Value(Value::Uid | Value::Gid) => !changes_user,
        Leaf::Text(t) => t.subject == Subject::Comm && !renames,
        Leaf::Value(Value::Nsecs | Value::Retval | Value::Dur) => false,
    };
    let decided = |part: &&usize| {
        let mut all = true;
        filter.parts()[**part].cond.values(&mut |leaf| all &= known(&leaf));
        all
    };
    filter.order().iter().take_while(decided).count()
}

/// Whether filters name the time of the event: [`before`] has stored it then.
pub fn timed(target: &Target) -> bool {
    target.filters.iter().any(|(_, f)| f.needs().nsecs)
}

fn asks_who(target: &Target) -> bool {
    let mut asks = false;
    for part in target.filters.iter().flat_map(|(_, f)| f.parts()) {
        part.cond.values(&mut |leaf| asks |= matches!(leaf, Leaf::Value(Value::Pid | Value::Tid)));
    }
    asks
}

/// Calls with the same code.
struct Group<'f> {
    filter: &'f Filter,
    /// The argument whose string was kept at entry, because the call may replace the memory that it is in.
    kept: Option<u8>,
    /// The arguments whose strings are there only after a call that succeeded.
    late: Vec<u8>,
    /// How many parts are decided at entry.
    early: usize,
    label: Label,
}

fn emit(a: &mut Assembler, target: &Target, outcome: Outcome, out: Label) {
    let Some(parts) = target.filters.iter().map(|(_, f)| f.parts().len()).max() else { return };
    let pass = a.new_label();
    let exits = Exits { rejected: (0..parts).map(|_| a.new_label()).collect(), unknown: a.new_label() };
    let (groups, runs) = groups(a, &target.filters);
    if let [_, _, ..] = runs[..] {
        a.note("the filter of this call");
        a.load(Size::D, R0, R6, state::NR);
    }
    tree(a, &runs, &groups);
    for g in &groups {
        a.bind(g.label);
        if let Err(unfit) = code(a, target, g, outcome, &exits, pass) {
            a.mistake(AsmError::Filter(unfit));
        }
        a.jump(pass);
    }
    leave(a, &exits, outcome, out);
    a.bind(pass);
}

/// The groups, and runs of numbers: the first number of each, and its group.
fn groups<'f>(a: &mut Assembler, filters: &'f [(u32, Filter)]) -> (Vec<Group<'f>>, Vec<(u32, usize)>) {
    let (mut groups, mut runs): (Vec<Group<'f>>, Vec<(u32, usize)>) = Default::default();
    for (nr, filter) in filters {
        let kept = kept(filter);
        let late: Vec<u8> = filter.needs().strings.iter().filter(|s| s.at_exit).map(|s| s.arg).collect();
        let early = early(filter);
        let alike =
            |g: &Group<'_>| g.filter.parts() == filter.parts() && g.kept == kept && g.late == late && g.early == early;
        let at = groups.iter().position(alike).unwrap_or_else(|| {
            groups.push(Group { filter, kept, late: late.clone(), early, label: a.new_label() });
            groups.len() - 1
        });
        if runs.last().is_none_or(|r| r.1 != at) {
            runs.push((*nr, at));
        }
    }
    (groups, runs)
}

/// execve and execveat: the name of the program is the first of the tails of entry.
fn kept(filter: &Filter) -> Option<u8> {
    let schema = events::schema::by_id(filter.schema())?;
    let first = Layout::by_id(schema.id)?.tails.first().copied()?;
    let asked = filter.needs().strings.iter().any(|s| s.arg == first.arg);
    let execve = matches!(schema.name, "execve" | "execveat");
    (execve && asked && first.shape == Shape::Str && !first.out).then_some(first.arg)
}

/// Goes to the group of the number in R0.
fn tree(a: &mut Assembler, runs: &[(u32, usize)], groups: &[Group<'_>]) {
    if let [(_, group)] = runs {
        return a.jump(groups[*group].label);
    }
    let (low, high) = runs.split_at(runs.len() / 2);
    let upper = a.new_label();
    a.jump_if(Cond::Ge, R0, high[0].0 as i32, upper);
    tree(a, low, groups);
    a.bind(upper);
    tree(a, high, groups);
}

fn code(
    a: &mut Assembler,
    target: &Target,
    group: &Group<'_>,
    outcome: Outcome,
    exits: &Exits,
    pass: Label,
) -> Result<(), filter::Unfit> {
    let places = places(target, outcome);
    if outcome == Outcome::Entered {
        return filter::emit_first(a, group.filter, group.early, &places, exits);
    }
    if group.filter.needs().start {
        a.load(Size::D, R0, R6, state::FLAGS);
        a.jump_if(Cond::Set, R0, state::ATTACHED, exits.unknown);
    }
    // The outcome of a call decides where strings are.
    let (failed, replaced) = (elsewhere(&places, &group.late, Bytes::Nowhere), group.kept.map(|arg| [arg]));
    let done = a.new_label();
    if !group.late.is_empty() {
        if outcome == Outcome::Returned {
            a.load(Size::D, R0, R10, slot::RET);
            a.jump_if(Cond::Sge, R0, 0, done);
        }
        filter::emit(a, group.filter, &failed, exits)?;
        a.jump(pass);
    } else if let Some(arg) = replaced {
        // An execve that failed has left its memory as it was, and one of which nothing was kept has nothing else.
        if outcome == Outcome::Returned {
            a.load(Size::D, R0, R10, slot::RET);
            a.jump_if(Cond::Slt, R0, 0, done);
        }
        a.load(Size::D, R0, R6, state::LEN);
        a.jump_if(Cond::Eq, R0, 0, done);
        filter::emit(a, group.filter, &elsewhere(&places, &arg, Bytes::Copy(R6, state::TAILS)), exits)?;
        a.jump(pass);
    }
    a.bind(done);
    filter::emit(a, group.filter, &places, exits)
}

/// The same places, but for the strings of some arguments.
fn elsewhere(places: &Places, args: &[u8], bytes: Bytes) -> Places {
    let mut places = places.clone();
    for arg in args {
        places.args[usize::from(*arg)].bytes = bytes;
    }
    places
}

fn places(target: &Target, outcome: Outcome) -> Places {
    let memory = |base, off| Place::Memory(base, off, Size::D);
    let mut p = filter::helpers((R7, front::STRINGS), (R7, front::TEMPS, front::TEMP_COUNT));
    p.args = (0..6).map(|i| Argument { value: memory(R6, state::ARGS + 8 * i), bytes: Bytes::User }).collect();
    if outcome != Outcome::Entered {
        p.cpu = memory(R6, state::CPU);
    }
    p.nsecs = memory(R7, 0);
    p.start = Some(memory(R6, state::START));
    target.find_ids(&mut p);
    p.retval = (outcome == Outcome::Returned).then_some(memory(R10, slot::RET));
    if target.namespace.is_some() {
        (p.tid, p.pid) = (Place::Memory(R7, 12, Size::W), Place::Memory(R7, 16, Size::W));
    }
    p
}

/// Counts what does not pass.
fn leave(a: &mut Assembler, exits: &Exits, outcome: Outcome, out: Label) {
    let rejected = exits.rejected.iter().enumerate();
    let counters = rejected.map(|(i, l)| (*l, scratch::FILTERED + 8 * i.min(scratch::PARTS - 1) as i16));
    let common = a.new_label();
    for (label, which) in counters.chain([(exits.unknown, scratch::UNKNOWN)]) {
        a.bind(label);
        scratch::count(a, which);
        a.jump(common);
    }
    a.bind(common);
    a.note("filtered out");
    scratch::count(a, scratch::SEEN);
    a.load(Size::D, R3, R6, state::NR);
    scratch::count_nth(a, (scratch::FILTERED_CALLS, scratch::CALLS), R3);
    a.load(Size::D, R1, R6, state::FLAGS);
    match outcome {
        Outcome::Entered => a.alu(Alu::Or, R1, state::REJECTED),
        // What is known of the next call is another matter.
        Outcome::Returned | Outcome::CutOff => a.alu(Alu::And, R1, !state::ATTACHED),
    }
    a.store(Size::D, R6, state::FLAGS, R1);
    a.jump(out);
}
