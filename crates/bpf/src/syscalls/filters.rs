//! Filters in the programs of calls: the code of the filter that belongs to the number of the call.
//!
//! ```text
//! number ──tree of comparisons──► code for calls with one argument layout ──► passes
//!                                                                        └──► counted by part, and left
//! ```
//!
//! A filter is evaluated before anything is read or written for the event, but for the event's time where the filter names it: both
//! have the same time. Parts that are known at entry, and that are evaluated before all others, are evaluated there too: a call that
//! they reject is counted, nothing of it is read, and its end finds it marked.
//!
//! Strings and intermediate numbers are in the scratch buffer, after the fixed part; at entry, where no buffer is claimed, on the stack.
//! A part that has more of them than fit there is evaluated at the end of the call.

use crate::asm::Label;
use crate::capture_row;
use crate::filter::{self, Argument, Bytes, Exits, Place, Places};
use crate::frame::{Emitter, Session, field, reg, slot, state};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg::*, Size};
use crate::scratch::{self, front};
use events::layout::Shape;
use lang::Filter;
use lang::filter::ir::{Leaf, Subject, Value};

/// The phase of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has begun.
    Entered,
    /// Its result is in [`slot::RET`].
    Returned,
    /// It ends without a result.
    CutOff,
}

/// The filters, before the fixed part of the event is written. Rejected events go to `out`, counted.
pub fn before(e: &mut Emitter<'_>, outcome: Outcome, out: Label) {
    let offsets = e.offsets;
    if timed(e.session) {
        e.note("the time of the event");
        e.call(Helper::KtimeGetNs);
        e.store_event(Size::D, field::TIME, R0);
    }
    if offsets.namespace.is_some() && asks_who(e.session) {
        e.who();
    }
    emit(e, outcome, out);
}

/// The filters at the entry of a call, as far as they are known there: with its flags, number and arguments in the state.
pub fn at_entry(e: &mut Emitter<'_>, out: Label) {
    if !decide_at_entry(e) {
        return;
    }
    let undecided = e.new_label();
    e.note("is the call wanted?");
    e.load_state(R1, state::FLAGS);
    e.jump_if(Cond::Set, R1, state::COMPAT | state::STARTING, undecided);
    e.load_state(R1, state::NR);
    e.row(undecided);
    e.load_row(Size::H, R1, capture_row::FLAGS);
    e.alu(Alu::And, R1, i32::from(capture_row::WANTED));
    e.jump_if(Cond::Eq, R1, 0, undecided);
    // Only counted: nothing is written to the buffer, so nobody has to have it.
    e.find(undecided);
    e.stopped(undecided);
    emit(e, Outcome::Entered, out);
    e.bind(undecided);
}

/// Whether filters reject some calls at entry. Names of descriptors are followed through calls that are filtered out too; in a
/// pid namespace ids need the scratch buffer.
pub fn decide_at_entry(e: &Emitter<'_>) -> bool {
    let (offsets, session) = (e.offsets, e.session);
    if session.no_entry {
        return false;
    }
    let far = offsets.names.is_some() || offsets.namespace.is_some() && asks_who(e.session);
    !far && session.filters.iter().any(|(_, f)| early(f) > 0)
}

/// How many of the parts that are evaluated first have equal values at the entry and at the end of a call.
fn early(filter: &Filter) -> usize {
    let name = events::registry::by_id(filter.schema()).map_or("", |s| s.name);
    let becomes_another = name.starts_with("execve");
    let renames = becomes_another || name == "prctl" || name.contains("write");
    let changes_user = becomes_another || name.starts_with("set") && name.contains("id");
    let known = |leaf: &Leaf<'_>| match leaf {
        Leaf::Value(Value::Pid | Value::Cpu | Value::Arg(_)) => true,
        Leaf::Value(Value::Tid) => !becomes_another,
        Leaf::Value(Value::Uid | Value::Gid) => !changes_user,
        Leaf::Test(t) => t.subject == Subject::Comm && !renames,
        Leaf::Value(Value::Nsecs | Value::Retval | Value::Dur) => false,
    };
    let decided = |part: &&usize| {
        let cond = &filter.parts()[**part].cond;
        let mut all = filter::words(cond, &|_| 0) <= slot::FREE_COUNT;
        cond.leaves(&mut |leaf| all &= known(&leaf));
        all
    };
    filter.order().iter().take_while(decided).count()
}

/// Whether filters name the time of the event: [`before`] has stored it then.
pub fn timed(session: &Session) -> bool {
    session.filters.iter().any(|(_, f)| f.needs().nsecs)
}

fn asks_who(session: &Session) -> bool {
    let mut asks = false;
    for part in session.filters.iter().flat_map(|(_, f)| f.parts()) {
        part.cond.leaves(&mut |leaf| asks |= matches!(leaf, Leaf::Value(Value::Pid | Value::Tid)));
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

fn emit(e: &mut Emitter<'_>, outcome: Outcome, out: Label) {
    let session = e.session;
    let Some(parts) = session.filters.iter().map(|(_, f)| f.parts().len()).max() else { return };
    let pass = e.new_label();
    if session.switch.is_some() {
        e.note("is it filtered elsewhere?");
        e.load_row(Size::H, R1, capture_row::FLAGS);
        e.jump_if(Cond::Set, R1, i32::from(capture_row::UNFILTERED), pass);
    }
    let exits = Exits { rejected: (0..parts).map(|_| e.new_label()).collect(), unknown: e.new_label() };
    let (groups, runs) = groups(e, &session.filters);
    if let [_, _, ..] = runs[..] {
        e.note("the filter of this call");
        e.load_state(R0, state::NR);
    }
    tree(e, &runs, &groups);
    for g in &groups {
        e.bind(g.label);
        if let Err(unfit) = code(e, g, outcome, &exits, pass) {
            e.fail(unfit);
        }
        e.jump(pass);
    }
    leave(e, &exits, outcome, out);
    e.bind(pass);
}

/// The groups, and runs of numbers: the first number of each, and its group.
fn groups<'f>(e: &mut Emitter<'_>, filters: &'f [(u32, Filter)]) -> (Vec<Group<'f>>, Vec<(u32, usize)>) {
    let (mut groups, mut runs): (Vec<Group<'f>>, Vec<(u32, usize)>) = Default::default();
    for (nr, filter) in filters {
        let kept = kept(filter);
        let late: Vec<u8> = filter.needs().strings.iter().filter(|s| s.at_exit).map(|s| s.arg).collect();
        let early = early(filter);
        let alike =
            |g: &Group<'_>| g.filter.parts() == filter.parts() && g.kept == kept && g.late == late && g.early == early;
        let at = groups.iter().position(alike).unwrap_or_else(|| {
            groups.push(Group { filter, kept, late: late.clone(), early, label: e.new_label() });
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
    let schema = events::registry::by_id(filter.schema())?;
    let first = events::registry::layout(schema.id)?.tails.first().copied()?;
    let asked = filter.needs().strings.iter().any(|s| s.arg == first.arg);
    let execve = matches!(schema.name, "execve" | "execveat");
    (execve && asked && first.shape == Shape::Str && !first.out).then_some(first.arg)
}

/// Goes to the group of the number in R0.
fn tree(e: &mut Emitter<'_>, runs: &[(u32, usize)], groups: &[Group<'_>]) {
    if let [(_, group)] = runs {
        return e.jump(groups[*group].label);
    }
    let (low, high) = runs.split_at(runs.len() / 2);
    let upper = e.new_label();
    e.jump_if(Cond::Ge, R0, high[0].0 as i32, upper);
    tree(e, low, groups);
    e.bind(upper);
    tree(e, high, groups);
}

fn code(
    e: &mut Emitter<'_>,
    group: &Group<'_>,
    outcome: Outcome,
    exits: &Exits,
    pass: Label,
) -> Result<(), filter::Unfit> {
    let places = places(e, outcome);
    if outcome == Outcome::Entered {
        return filter::emit_first(e, group.filter, group.early, &places, exits);
    }
    if group.filter.needs().start {
        e.load_state(R0, state::FLAGS);
        e.jump_if(Cond::Set, R0, state::ATTACHED, exits.unknown);
    }
    // The outcome of a call decides where strings are.
    let (failed, replaced) = (elsewhere(&places, &group.late, Bytes::Nowhere), group.kept.map(|arg| [arg]));
    let done = e.new_label();
    if !group.late.is_empty() {
        if outcome == Outcome::Returned {
            e.load_slot(R0, slot::RET);
            e.jump_if(Cond::Sge, R0, 0, done);
        }
        filter::emit(e, group.filter, &failed, exits)?;
        e.jump(pass);
    } else if let Some(arg) = replaced {
        // An execve that failed has not changed its memory; where nothing was kept at entry, memory is all there is.
        if outcome == Outcome::Returned {
            e.load_slot(R0, slot::RET);
            e.jump_if(Cond::Slt, R0, 0, done);
        }
        e.load_state(R0, state::LEN);
        e.jump_if(Cond::Eq, R0, 0, done);
        e.home(done);
        // Nothing of the event is there yet.
        e.mov(reg::END, R0);
        let kept = Bytes::Copy(reg::END, state::TAILS, Some((reg::STATE, state::CAPS, 2 * arg[0])));
        filter::emit(e, group.filter, &elsewhere(&places, &arg, kept), exits)?;
        e.jump(pass);
    }
    e.bind(done);
    filter::emit(e, group.filter, &places, exits)
}

/// `places`, but for the strings of some arguments.
fn elsewhere(places: &Places, args: &[u8], bytes: Bytes) -> Places {
    let mut places = places.clone();
    for arg in args {
        places.args[usize::from(*arg)].bytes = bytes;
    }
    places
}

fn places(e: &Emitter<'_>, outcome: Outcome) -> Places {
    let memory = |base, off| Place::Memory(base, off, Size::D);
    // At entry there is no buffer. The only strings there are names of threads.
    let mut p = match outcome {
        Outcome::Entered => filter::helpers((R10, slot::KEY), (R10, slot::FREE, slot::FREE_COUNT)),
        _ => filter::helpers((reg::BUFFER, front::STRINGS), (reg::BUFFER, front::TEMPS, front::TEMP_COUNT)),
    };
    p.args = (0..6).map(|i| Argument { value: memory(reg::STATE, state::ARGS + 8 * i), bytes: Bytes::User }).collect();
    if outcome != Outcome::Entered {
        p.cpu = memory(reg::STATE, state::CPU);
    }
    p.nsecs = memory(reg::BUFFER, 0);
    p.start = Some(memory(reg::STATE, state::START));
    e.find_ids(&mut p);
    p.retval = (outcome == Outcome::Returned).then_some(memory(R10, slot::RET));
    if e.offsets.namespace.is_some() {
        (p.tid, p.pid) = (Place::Memory(reg::BUFFER, 12, Size::W), Place::Memory(reg::BUFFER, 16, Size::W));
    }
    p
}

/// Counts events that do not pass.
fn leave(e: &mut Emitter<'_>, exits: &Exits, outcome: Outcome, out: Label) {
    let rejected = exits.rejected.iter().enumerate();
    let counters = rejected.map(|(i, l)| (*l, scratch::FILTERED + 8 * i.min(scratch::PARTS - 1) as i16));
    let common = e.new_label();
    for (label, which) in counters.chain([(exits.unknown, scratch::UNKNOWN)]) {
        e.bind(label);
        e.count(which);
        e.jump(common);
    }
    e.bind(common);
    e.note("filtered out");
    e.count(scratch::SEEN);
    e.load_state(R3, state::NR);
    e.count_nth((scratch::FILTERED_CALLS, scratch::CALLS), R3);
    e.load_state(R1, state::FLAGS);
    match outcome {
        Outcome::Entered => e.alu(Alu::Or, R1, state::REJECTED),
        // The start of the next call is known.
        Outcome::Returned | Outcome::CutOff => e.alu(Alu::And, R1, !state::ATTACHED),
    }
    e.store_state(state::FLAGS, R1);
    e.jump(out);
}
