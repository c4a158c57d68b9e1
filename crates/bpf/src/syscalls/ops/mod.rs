//! The ops: captures of memory, as the row of the call defines them, one block of code per op of a phase.
//!
//! Invariant: every op appends exactly one tail of its shape and leaves `reg::END` at its end; whatever fails leaves the empty
//! tail. `reg::END` stays below [`LAST_TAIL`] before each op, so that the scratch buffer has room for the largest.

mod capture;
mod iov;
mod lists;
mod message;
pub(super) mod op;
mod simple;
mod straight;

use crate::capture_row::{self, MAX_OPS, OP, length, when};
use crate::scratch::*;
use iov::iov_op;
use lists::{counted, strv};
use message::{MAX_MESSAGE_COUNT, message, sigpack};
use op::*;
use simple::{bytes, element, elements, message_text, string, string_bytes};
pub use straight::straight;

/// Which nested kinds a phase can meet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Nested {
    /// String arrays (at entry).
    Strings,
    /// All kinds.
    All,
}

/// Runs the ops that [`choose`] has chosen; `drop` where the event becomes too long.
///
/// One op is a function called back by bpf_loop: the verifier checks it once, and not once per op and path through the others.
/// The ops of entry and exit are neighbours in the row, so that one call runs both.
pub fn run(e: &mut Emitter<'_>, nested: Nested, drop: Label) {
    let none = e.new_label();
    e.note("tails");
    e.store_slot(slot::STATE, reg::STATE);
    e.store_slot(slot::SCRATCH, reg::BUFFER);
    e.store_slot(slot::ROW, reg::ROW);
    let function = match nested {
        Nested::Strings => e.callback("an op of entry", |e| ops_function(e, Nested::Strings)),
        Nested::All => e.callback("an op", |e| ops_function(e, Nested::All)),
    };
    e.reload(R1, FROM);
    e.reload(R2, TO);
    e.alu(Alu::Sub, R2, R1);
    e.jump_if(Cond::Eq, R2, 0, none);
    e.jump_if(Cond::Gt, R2, i32::from(MAX_OPS), none);
    e.reload(R1, FROM);
    e.spill(NEXT, R1);
    e.mov(R1, 0);
    e.spill(MORE, R1);
    // The last op ends it.
    call_back(e, function, i32::from(MAX_OPS) + 2 * MAX_MESSAGE_COUNT);
    e.jump_if(Cond::Gt, reg::END, MAX_EVENT, drop);
    e.bind(none);
}

/// Sets which ops `run` runs: from number r1 up to (not including) number r2.
pub fn choose(e: &mut Emitter<'_>) {
    e.spill(FROM, R1);
    e.spill(TO, R2);
}

fn ops_function(e: &mut Emitter<'_>, nested: Nested) {
    let [end, drop, more] = std::array::from_fn(|_| e.new_label());
    e.note("an op");
    enter(e);
    e.load(Size::D, reg::STATE, R2, slot::STATE);
    e.load(Size::D, reg::ROW, R2, slot::ROW);
    // Functions that this one calls back find the scratch buffer here.
    e.store_slot(slot::SCRATCH, reg::BUFFER);
    e.reload(R1, NEXT);
    e.jump_if(Cond::Ge, R1, i32::from(MAX_OPS), end);
    e.alu(Alu::Lsh, R1, 4);
    e.alu(Alu::Add, R1, reg::ROW);
    for half in [0, 8] {
        e.load(Size::D, R3, R1, capture_row::OPS + half);
        e.store_slot(slot::OP + half, R3);
    }
    forget_range(e, drop);
    one(e, nested);
    e.reload(R1, MORE);
    e.jump_if(Cond::Ne, R1, 0, more);
    e.reload(R1, NEXT);
    e.alu(Alu::Add, R1, 1);
    e.spill(NEXT, R1);
    e.reload(R2, TO);
    e.jump_if(Cond::Ge, R1, R2, end);
    e.bind(more);
    leave(e, 0);
    e.bind(drop);
    e.mov(reg::END, i32::MAX);
    e.bind(end);
    leave(e, 1);
}

/// An op of one of the kinds that the session has.
fn one(e: &mut Emitter<'_>, nested: Nested) {
    let session = e.session;
    let [done, empty] = [e.new_label(), e.new_label()];
    let met = |k: u8| session.kinds.is_none_or(|mask| mask >> k & 1 == 1);
    e.store_slot(slot::CAP, 0);
    if met(kind::SWITCH) {
        switch(e, empty);
    }
    if session.captures.is_some() && met(kind::COMM) {
        let next = e.new_label();
        e.load(Size::B, R1, R10, KIND);
        e.jump_if(Cond::Ne, R1, i32::from(kind::COMM), next);
        capture::comm(e);
        e.jump(done);
        e.bind(next);
    }
    wanted(e, empty);
    argument(e, R1, ARG);
    e.store_slot(slot::ADDR, R1);
    e.jump_if(Cond::Eq, R1, 0, empty);
    length_of(e);
    type Emit = fn(&mut Emitter<'_>, Label);
    let mut kinds: Vec<(u8, Emit)> = vec![
        (kind::BYTES, bytes),
        (kind::MSGBUF, message_text),
        (kind::STR, string),
        (kind::STR_BYTES, string_bytes),
        (kind::ONE, element),
        (kind::MANY, elements),
        (kind::SIGPACK, sigpack),
    ];
    match nested {
        Nested::Strings => {}
        Nested::All => kinds.extend([(kind::IOV, iov_op as Emit), (kind::MSG, message)]),
    }
    kinds.extend([(kind::STRV, strv as Emit), (kind::COUNT, counted)]);
    for (k, emit) in kinds.into_iter().filter(|(k, _)| met(*k)) {
        let [here, next] = [e.new_label(), e.new_label()];
        e.load(Size::B, R1, R10, KIND);
        if k == kind::MSG {
            e.jump_if(Cond::Eq, R1, i32::from(kind::MMSG), here);
        }
        e.jump_if(Cond::Ne, R1, i32::from(k), next);
        e.bind(here);
        emit(e, empty);
        e.jump(done);
        e.bind(next);
    }
    e.bind(empty);
    empty_tail(e);
    e.bind(done);
    caps(e);
}

/// Jumps to `empty` unless the result is one that this op waits for: there is none where the task ends. Ops of entry wait for
/// none.
fn wanted(e: &mut Emitter<'_>, empty: Label) {
    let [interrupted, positive, always] = std::array::from_fn(|_| e.new_label());
    e.load(Size::B, R1, R10, EXIT);
    let of_exit = e.new_label();
    e.jump_if(Cond::Ne, R1, 0, of_exit);
    if e.session.no_entry {
        too_late(e, empty);
    }
    e.jump(always);
    e.bind(of_exit);
    e.get_ended(R1);
    e.jump_if(Cond::Ne, R1, 0, empty);
    e.load(Size::B, R1, R10, WHEN);
    e.result(R2);
    e.jump_if(Cond::Eq, R1, i32::from(when::ALWAYS), always);
    e.jump_if(Cond::Eq, R1, i32::from(when::INTERRUPTED), interrupted);
    e.jump_if(Cond::Eq, R1, i32::from(when::POSITIVE), positive);
    e.jump_if(Cond::Sge, R2, 0, always);
    // Only -4095…-1 are errors (include/linux/err.h).
    e.jump_if(Cond::Sge, R2, -4095, empty);
    e.jump(always);
    e.bind(positive);
    e.jump_if(Cond::Sgt, R2, 0, always);
    e.jump(empty);
    e.bind(interrupted);
    e.jump_if(Cond::Eq, R2, -4, always); // EINTR
    e.jump_if(Cond::Sgt, R2, -512, empty); // ERESTARTSYS … ERESTART_RESTARTBLOCK
    e.jump_if(Cond::Slt, R2, -516, empty);
    e.bind(always);
}

/// Jumps to `empty` where the op is one of entry that comes too late; what is there is counted.
fn too_late(e: &mut Emitter<'_>, empty: Label) {
    let in_time = e.new_label();
    e.load(Size::B, R1, R10, WHEN);
    e.jump_if(Cond::Ne, R1, i32::from(when::TOO_LATE), in_time);
    argument(e, R1, ARG);
    e.jump_if(Cond::Eq, R1, 0, empty);
    set_cap(e, FAULT);
    e.count(TOO_LATE);
    e.jump(empty);
    e.bind(in_time);
}

/// Replaces a switch op by the op that the selector's value chooses.
fn switch(e: &mut Emitter<'_>, empty: Label) {
    let maps = e.maps;
    let [other, one, found] = [e.new_label(), e.new_label(), e.new_label()];
    e.load(Size::B, R1, R10, KIND);
    e.jump_if(Cond::Ne, R1, i32::from(kind::SWITCH), other);
    e.load_state(R1, state::NR);
    e.store_slot(slot::KEY, R1);
    e.load(Size::B, R1, R10, ARG);
    e.store(Size::B, R10, slot::KEY + 4, R1);
    // The selector: one argument of 32 bits, or two.
    argument(e, R1, LEN_ARG);
    e.alu(Alu::Lsh, R1, 32);
    e.load(Size::B, R2, R10, GUARD);
    e.jump_if(Cond::Eq, R2, 255, one);
    e.store_slot(slot::TEMP, R1);
    argument(e, R2, GUARD);
    e.alu(Alu::Lsh, R2, 32);
    e.alu(Alu::Rsh, R2, 32);
    e.load_slot(R1, slot::TEMP);
    e.alu(Alu::Or, R1, R2);
    e.jump(found);
    e.bind(one);
    e.alu(Alu::Rsh, R1, 32);
    e.bind(found);
    e.store_slot(slot::KEY + 8, R1);
    for default in [false, true] {
        let hit = e.new_label();
        let miss = e.new_label();
        if default {
            e.store_slot(slot::KEY + 8, -1);
        }
        e.map_fd(R1, maps.switches);
        e.slot_address(R2, slot::KEY);
        e.call(Helper::MapLookup);
        e.jump_if(Cond::Ne, R0, 0, hit);
        e.jump(if default { empty } else { miss });
        e.bind(hit);
        // Two ops: of entry, of exit.
        let entry = e.new_label();
        e.load(Size::B, R1, R10, EXIT);
        e.jump_if(Cond::Eq, R1, 0, entry);
        e.alu(Alu::Add, R0, i32::from(OP));
        e.bind(entry);
        for half in [0, 8] {
            e.load(Size::D, R1, R0, half);
            e.store_slot(slot::OP + half, R1);
        }
        e.jump(other);
        e.bind(miss);
    }
    e.bind(other);
}

/// Spills the op's length.
fn length_of(e: &mut Emitter<'_>) {
    let [constant, ret, deref, signed, wide, ready] =
        [e.new_label(), e.new_label(), e.new_label(), e.new_label(), e.new_label(), e.new_label()];
    let [guarded, small, nothing, wide_signed] = [e.new_label(), e.new_label(), e.new_label(), e.new_label()];
    // An argument that must not be 0.
    e.load(Size::B, R1, R10, GUARD);
    e.jump_if(Cond::Eq, R1, 255, guarded);
    argument(e, R1, GUARD);
    e.jump_if(Cond::Eq, R1, 0, nothing);
    e.bind(guarded);
    e.load(Size::B, R2, R10, LENGTH);
    e.jump_if(Cond::Eq, R2, i32::from(length::CONST), constant);
    e.jump_if(Cond::Eq, R2, i32::from(length::RET), ret);
    e.load(Size::B, R3, R10, LENGTH);
    argument(e, R1, LEN_ARG);
    e.jump_if(Cond::Eq, R3, i32::from(length::DEREF), deref);
    e.jump_if(Cond::Eq, R3, i32::from(length::ARG64), wide);
    e.jump_if(Cond::Eq, R3, i32::from(length::ARG64S), wide_signed);
    e.jump_if(Cond::Eq, R3, i32::from(length::ARG32S), signed);
    e.mov32(R1, R1);
    e.jump(ready);
    e.bind(signed);
    e.mov32(R1, R1);
    e.jump_if(Cond::Le, R1, i32::MAX, ready);
    e.mov(R1, 0);
    e.jump(ready);
    e.bind(wide_signed);
    e.jump_if(Cond::Sge, R1, 0, ready);
    e.bind(nothing);
    e.mov(R1, 0);
    e.jump(ready);
    e.bind(constant);
    e.load(Size::H, R1, R10, N);
    e.jump(ready);
    e.bind(ret);
    e.result(R1);
    e.jump_if(Cond::Sgt, R1, 0, ready);
    e.mov(R1, 0);
    e.jump(ready);
    e.bind(deref);
    e.store_slot(slot::WORD, 0);
    e.mov(R3, R1);
    e.slot_address(R1, slot::WORD);
    e.mov(R2, 4);
    e.call(Helper::ProbeReadUser);
    e.load(Size::W, R1, R10, slot::WORD);
    e.bind(wide);
    e.bind(ready);
    // So large a length cannot be read anyway, and must not wrap.
    e.mov(R2, R1);
    e.alu(Alu::Rsh, R2, 32);
    e.jump_if(Cond::Eq, R2, 0, small);
    e.constant(R1, 0xffff_ffff);
    e.bind(small);
    e.load(Size::B, R2, R10, MUL);
    e.alu(Alu::Mul, R1, R2);
    e.load(Size::H, R2, R10, DIV);
    e.alu(Alu::Add, R1, R2);
    e.alu(Alu::Sub, R1, 1);
    e.alu(Alu::Div, R1, R2);
    e.spill(LEN, R1);
}

/// The empty tail of the op's shape.
fn empty_tail(e: &mut Emitter<'_>) {
    let [one, four, two, done] = [e.new_label(), e.new_label(), e.new_label(), e.new_label()];
    e.place(R2, 0);
    e.load(Size::B, R1, R10, KIND);
    for k in [kind::STR, kind::ONE, kind::EMPTY1] {
        e.jump_if(Cond::Eq, R1, i32::from(k), one);
    }
    for k in [kind::STRV, kind::COUNT, kind::EMPTY4] {
        e.jump_if(Cond::Eq, R1, i32::from(k), four);
    }
    e.bind(two);
    e.store(Size::H, R2, 0, 0);
    e.alu(Alu::Add, reg::END, 2);
    e.jump(done);
    e.bind(one);
    e.store(Size::B, R2, 0, 0);
    e.alu(Alu::Add, reg::END, 1);
    e.jump(done);
    e.bind(four);
    e.store(Size::W, R2, 0, 0);
    e.alu(Alu::Add, reg::END, 4);
    e.bind(done);
}

/// Adds the op's mark to the capture bits, unless entry has left one.
fn caps(e: &mut Emitter<'_>) {
    let taken = e.new_label();
    e.load(Size::B, R1, R10, ARG);
    // There are marks of six arguments.
    e.jump_if(Cond::Ge, R1, 6, taken);
    e.alu(Alu::Lsh, R1, 1);
    e.reload(R2, CAPS);
    e.mov(R3, R2);
    e.alu(Alu::Rsh, R3, R1);
    e.alu(Alu::And, R3, 3);
    e.jump_if(Cond::Ne, R3, 0, taken);
    e.load_slot(R3, slot::CAP);
    e.alu(Alu::Lsh, R3, R1);
    e.alu(Alu::Or, R2, R3);
    e.spill(CAPS, R2);
    e.bind(taken);
}
