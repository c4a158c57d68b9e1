//! The ops: captures of memory, carried out as the row of the call says, one block of code per op of a phase.
//!
//! Invariant: every op appends exactly one tail of its shape and leaves r8 at its end; whatever fails leaves the empty tail. r8
//! stays below [`LAST_TAIL`] before each op, so that the scratch buffer has room for the largest.

mod capture;
mod iov;
mod lists;
mod message;
pub mod names;
mod simple;

use super::emit::slot;
use super::plan::{self, MAX_OPS, OP, kind, length, when};
use super::state;
use super::target::{Maps, Target};
use crate::asm::{Assembler, Label};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg, Reg::*, Size};
use crate::scratch::*;
use iov::*;
use lists::*;
use message::*;
use simple::*;

/// Where the last tail may start: the largest op must have room there.
const LAST_TAIL: i32 = 0x3fff;
/// The most bytes that a byte op reads.
const MAX_BYTES: i32 = 32768;
/// The most bytes that a string op reads, with two to tell "cut".
const MAX_STR: i32 = 4002;
const _: () = assert!(LAST_TAIL as usize + MAX_BYTES as usize + 64 <= EVENT);
/// Strings of an array that are read; the rest is counted.
const MAX_STRINGS: i32 = 512;
/// Strings of an array that are counted.
const MAX_COUNT: i32 = 4096;
/// iovecs that are read.
const MAX_IOV: i32 = 1024;
/// Bytes of control messages.
const MAX_CONTROL: i32 = 512;

// Fields of the op in its stack slot.
const KIND: i16 = slot::OP;
const ARG: i16 = slot::OP + 1;
const WHEN: i16 = slot::OP + 2;
const LENGTH: i16 = slot::OP + 3;
const LEN_ARG: i16 = slot::OP + 4;
const GUARD: i16 = slot::OP + 5;
const ELEM: i16 = slot::OP + 6;
const MUL: i16 = slot::OP + 8;
const EXIT: i16 = slot::OP + 9;
const DIV: i16 = slot::OP + 12;
const N: i16 = slot::OP + 10;
const MAX: i16 = slot::OP + 14;

const WHOLE: i32 = 1;
const CUT: i32 = 2;
const FAULT: i32 = 3;

/// Which nested kinds a phase can meet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Nested {
    /// String arrays (at entry).
    Strings,
    /// All kinds.
    All,
}

/// A function that is called back by bpf_loop, emitted behind the program that uses it.
pub struct Callback {
    label: Label,
    body: Body,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Body {
    /// An op of the row.
    Ops(Nested),
    /// The pointers of an array, counted.
    Count,
    /// The strings of an array.
    Strings,
    /// The iovecs of an array.
    Iovecs,
    /// A descriptor whose name is said.
    Descriptor,
    /// A component of its path.
    Component,
}

/// What is still to be emitted.
pub type Callbacks = Vec<Callback>;

/// The label of the function with this body, which will be emitted once.
fn callback(a: &mut Assembler, cbs: &mut Callbacks, body: Body) -> Label {
    if let Some(c) = cbs.iter().find(|c| c.body == body) {
        return c.label;
    }
    let label = a.new_label();
    cbs.push(Callback { label, body });
    label
}

/// Emits the functions that the program calls back. One function may add others.
pub fn emit_callbacks(a: &mut Assembler, maps: &Maps, target: &Target, cbs: &mut Callbacks) {
    let mut i = 0;
    while i < cbs.len() {
        let (label, body) = (cbs[i].label, cbs[i].body);
        a.bind(label);
        match body {
            Body::Ops(nested) => ops_function(a, maps, target, cbs, nested),
            Body::Count => count_function(a),
            Body::Strings => strings_function(a),
            Body::Iovecs => iovecs_function(a),
            Body::Descriptor => names::descriptor_function(a, maps, target, cbs),
            Body::Component => names::component_function(a, target),
        }
        i += 1;
    }
}

/// Calls `function` up to `n` times with this frame. r8 travels in a noted word.
fn call_back(a: &mut Assembler, function: Label, n: i32) {
    note(a, OFFSET, R8);
    a.mov(R1, n);
    a.func(R2, function);
    a.mov(R3, R10);
    a.mov(R4, 0);
    a.call(Helper::Loop);
    noted(a, R8, OFFSET);
}

/// Runs the ops that [`choose`] has chosen; `drop` where the event becomes too long.
///
/// One op is a function called back by bpf_loop: the verifier looks at it once, and not once per op and way through the others.
/// The ops of entry and exit are neighbours in the row, so that one call runs both.
pub fn run(a: &mut Assembler, cbs: &mut Callbacks, nested: Nested, drop: Label) {
    let none = a.new_label();
    a.note("tails");
    a.store(Size::D, R10, slot::STATE, R6);
    a.store(Size::D, R10, slot::SCRATCH, R7);
    a.store(Size::D, R10, slot::ROW, R9);
    let function = callback(a, cbs, Body::Ops(nested));
    noted(a, R1, FROM);
    noted(a, R2, TO);
    a.alu(Alu::Sub, R2, R1);
    a.jump_if(Cond::Eq, R2, 0, none);
    a.jump_if(Cond::Gt, R2, i32::from(MAX_OPS), none);
    noted(a, R1, FROM);
    note(a, NEXT, R1);
    a.mov(R1, 0);
    note(a, MORE, R1);
    // The last op ends it.
    call_back(a, function, i32::from(MAX_OPS) + 2 * MAX_MESSAGE_COUNT);
    a.jump_if(Cond::Gt, R8, MAX_EVENT, drop);
    a.bind(none);
}

/// Says which ops `run` runs: from number r1 up to (not including) number r2.
pub fn choose(a: &mut Assembler) {
    note(a, FROM, R1);
    note(a, TO, R2);
}

/// r6 … r9 from the frame that called back (its r10 in r2), which is kept in CTX.
fn enter(a: &mut Assembler) {
    a.store(Size::D, R10, slot::CTX, R2);
    a.store(Size::D, R10, slot::I, R1);
    a.load(Size::D, R7, R2, slot::SCRATCH);
    noted(a, R8, OFFSET);
}

/// Goes back: 0 for more, 1 for enough. r8 travels in a noted word.
fn leave(a: &mut Assembler, enough: i32) {
    note(a, OFFSET, R8);
    a.mov(R0, enough);
    a.exit();
}

fn ops_function(a: &mut Assembler, maps: &Maps, target: &Target, cbs: &mut Callbacks, nested: Nested) {
    let [end, drop, more] = std::array::from_fn(|_| a.new_label());
    a.note("an op");
    enter(a);
    a.load(Size::D, R6, R2, slot::STATE);
    a.load(Size::D, R9, R2, slot::ROW);
    // Functions that this one calls back find the scratch buffer here.
    a.store(Size::D, R10, slot::SCRATCH, R7);
    noted(a, R1, NEXT);
    a.jump_if(Cond::Ge, R1, i32::from(MAX_OPS), end);
    a.alu(Alu::Lsh, R1, 4);
    a.alu(Alu::Add, R1, R9);
    for half in [0, 8] {
        a.load(Size::D, R3, R1, plan::OPS + half);
        a.store(Size::D, R10, slot::OP + half, R3);
    }
    forget_range(a, drop);
    one(a, maps, target, cbs, nested);
    noted(a, R1, MORE);
    a.jump_if(Cond::Ne, R1, 0, more);
    noted(a, R1, NEXT);
    a.alu(Alu::Add, R1, 1);
    note(a, NEXT, R1);
    noted(a, R2, TO);
    a.jump_if(Cond::Ge, R1, R2, end);
    a.bind(more);
    leave(a, 0);
    a.bind(drop);
    a.mov(R8, i32::MAX);
    a.bind(end);
    leave(a, 1);
}

/// Bounds r8, the same for every way that leads here: through memory, because the verifier would otherwise keep apart what it
/// knows of r8 on each of them, and look at all that follows once for each.
fn forget_range(a: &mut Assembler, drop: Label) {
    words(a, R1);
    a.store(Size::D, R1, SPARE, R8);
    a.load(Size::D, R8, R1, SPARE);
    a.jump_if(Cond::Gt, R8, LAST_TAIL, drop);
}

/// r = the argument whose index stands at `at` of the op.
fn argument(a: &mut Assembler, r: Reg, at: i16) {
    a.load(Size::B, r, R10, at);
    a.alu(Alu::And, r, 7);
    a.alu(Alu::Lsh, r, 3);
    a.alu(Alu::Add, r, R6);
    a.load(Size::D, r, r, state::ARGS);
}

/// r = the scratch buffer at r8 + `off`.
fn place(a: &mut Assembler, r: Reg, off: i32) {
    a.mov(r, R7);
    a.alu(Alu::Add, r, R8);
    if off != 0 {
        a.alu(Alu::Add, r, off);
    }
}

/// An op of one of the kinds that the session has.
fn one(a: &mut Assembler, maps: &Maps, target: &Target, cbs: &mut Callbacks, nested: Nested) {
    let [done, empty] = [a.new_label(), a.new_label()];
    let met = |k: u8| target.kinds.is_none_or(|mask| mask >> k & 1 == 1);
    a.store(Size::D, R10, slot::CAP, 0);
    if met(kind::SWITCH) {
        switch(a, maps, empty);
    }
    if let Some(own_frames) = target.captures {
        for k in [kind::COMM, kind::KSTACK, kind::USTACK].into_iter().filter(|k| met(*k)) {
            let next = a.new_label();
            a.load(Size::B, R1, R10, KIND);
            a.jump_if(Cond::Ne, R1, i32::from(k), next);
            capture::op(a, k, own_frames);
            a.jump(done);
            a.bind(next);
        }
    }
    wanted(a, empty);
    argument(a, R1, ARG);
    a.store(Size::D, R10, slot::ADDR, R1);
    a.jump_if(Cond::Eq, R1, 0, empty);
    length_of(a);
    type Emit = fn(&mut Assembler, &mut Callbacks, Label);
    let mut kinds: Vec<(u8, Emit)> = vec![
        (kind::BYTES, bytes),
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
        let [here, next] = [a.new_label(), a.new_label()];
        a.load(Size::B, R1, R10, KIND);
        if k == kind::MSG {
            a.jump_if(Cond::Eq, R1, i32::from(kind::MMSG), here);
        }
        a.jump_if(Cond::Ne, R1, i32::from(k), next);
        a.bind(here);
        emit(a, cbs, empty);
        a.jump(done);
        a.bind(next);
    }
    a.bind(empty);
    empty_tail(a);
    a.bind(done);
    caps(a);
}

/// Jumps to `empty` unless the result is one that this op waits for: there is none where the task ends. Ops of entry wait for
/// none.
fn wanted(a: &mut Assembler, empty: Label) {
    let [interrupted, always] = [a.new_label(), a.new_label()];
    a.load(Size::B, R1, R10, EXIT);
    a.jump_if(Cond::Eq, R1, 0, always);
    get_ended(a, R1);
    a.jump_if(Cond::Ne, R1, 0, empty);
    a.load(Size::B, R1, R10, WHEN);
    result(a, R2);
    a.jump_if(Cond::Eq, R1, i32::from(when::ALWAYS), always);
    a.jump_if(Cond::Eq, R1, i32::from(when::INTERRUPTED), interrupted);
    a.jump_if(Cond::Sge, R2, 0, always);
    // Only -4095…-1 are errors (include/linux/err.h).
    a.jump_if(Cond::Sge, R2, -4095, empty);
    a.jump(always);
    a.bind(interrupted);
    a.jump_if(Cond::Eq, R2, -4, always); // EINTR
    a.jump_if(Cond::Sgt, R2, -512, empty); // ERESTARTSYS … ERESTART_RESTARTBLOCK
    a.jump_if(Cond::Slt, R2, -516, empty);
    a.bind(always);
}

/// Replaces a switch op by the op that the selector's value chooses.
fn switch(a: &mut Assembler, maps: &Maps, empty: Label) {
    let [other, one, found] = [a.new_label(), a.new_label(), a.new_label()];
    a.load(Size::B, R1, R10, KIND);
    a.jump_if(Cond::Ne, R1, i32::from(kind::SWITCH), other);
    a.load(Size::D, R1, R6, state::NR);
    a.store(Size::D, R10, slot::KEY, R1);
    a.load(Size::B, R1, R10, ARG);
    a.store(Size::B, R10, slot::KEY + 4, R1);
    // The selector: one argument of 32 bits, or two.
    argument(a, R1, LEN_ARG);
    a.alu(Alu::Lsh, R1, 32);
    a.load(Size::B, R2, R10, GUARD);
    a.jump_if(Cond::Eq, R2, 255, one);
    a.store(Size::D, R10, slot::TEMP, R1);
    argument(a, R2, GUARD);
    a.alu(Alu::Lsh, R2, 32);
    a.alu(Alu::Rsh, R2, 32);
    a.load(Size::D, R1, R10, slot::TEMP);
    a.alu(Alu::Or, R1, R2);
    a.jump(found);
    a.bind(one);
    a.alu(Alu::Rsh, R1, 32);
    a.bind(found);
    a.store(Size::D, R10, slot::KEY + 8, R1);
    for default in [false, true] {
        let hit = a.new_label();
        let miss = a.new_label();
        if default {
            a.store(Size::D, R10, slot::KEY + 8, -1);
        }
        a.map_fd(R1, maps.switches);
        a.mov(R2, R10);
        a.alu(Alu::Add, R2, i32::from(slot::KEY));
        a.call(Helper::MapLookup);
        a.jump_if(Cond::Ne, R0, 0, hit);
        a.jump(if default { empty } else { miss });
        a.bind(hit);
        // Two ops: of entry, of exit.
        let entry = a.new_label();
        a.load(Size::B, R1, R10, EXIT);
        a.jump_if(Cond::Eq, R1, 0, entry);
        a.alu(Alu::Add, R0, i32::from(OP));
        a.bind(entry);
        for half in [0, 8] {
            a.load(Size::D, R1, R0, half);
            a.store(Size::D, R10, slot::OP + half, R1);
        }
        a.jump(other);
        a.bind(miss);
    }
    a.bind(other);
}

/// The op's length into its slot.
fn length_of(a: &mut Assembler) {
    let [constant, ret, deref, signed, wide, ready] =
        [a.new_label(), a.new_label(), a.new_label(), a.new_label(), a.new_label(), a.new_label()];
    let [guarded, small, nothing, wide_signed] = [a.new_label(), a.new_label(), a.new_label(), a.new_label()];
    // An argument that must not be 0.
    a.load(Size::B, R1, R10, GUARD);
    a.jump_if(Cond::Eq, R1, 255, guarded);
    argument(a, R1, GUARD);
    a.jump_if(Cond::Eq, R1, 0, nothing);
    a.bind(guarded);
    a.load(Size::B, R2, R10, LENGTH);
    a.jump_if(Cond::Eq, R2, i32::from(length::CONST), constant);
    a.jump_if(Cond::Eq, R2, i32::from(length::RET), ret);
    a.load(Size::B, R3, R10, LENGTH);
    argument(a, R1, LEN_ARG);
    a.jump_if(Cond::Eq, R3, i32::from(length::DEREF), deref);
    a.jump_if(Cond::Eq, R3, i32::from(length::ARG64), wide);
    a.jump_if(Cond::Eq, R3, i32::from(length::ARG64S), wide_signed);
    a.jump_if(Cond::Eq, R3, i32::from(length::ARG32S), signed);
    a.mov32(R1, R1);
    a.jump(ready);
    a.bind(signed);
    a.mov32(R1, R1);
    a.jump_if(Cond::Le, R1, i32::MAX, ready);
    a.mov(R1, 0);
    a.jump(ready);
    a.bind(wide_signed);
    a.jump_if(Cond::Sge, R1, 0, ready);
    a.bind(nothing);
    a.mov(R1, 0);
    a.jump(ready);
    a.bind(constant);
    a.load(Size::H, R1, R10, N);
    a.jump(ready);
    a.bind(ret);
    result(a, R1);
    a.jump_if(Cond::Sgt, R1, 0, ready);
    a.mov(R1, 0);
    a.jump(ready);
    a.bind(deref);
    a.store(Size::D, R10, slot::WORD, 0);
    a.mov(R3, R1);
    a.mov(R1, R10);
    a.alu(Alu::Add, R1, i32::from(slot::WORD));
    a.mov(R2, 4);
    a.call(Helper::ProbeReadUser);
    a.load(Size::W, R1, R10, slot::WORD);
    a.bind(wide);
    a.bind(ready);
    // So large a length cannot be read anyway, and must not wrap.
    a.mov(R2, R1);
    a.alu(Alu::Rsh, R2, 32);
    a.jump_if(Cond::Eq, R2, 0, small);
    a.constant(R1, 0xffff_ffff);
    a.bind(small);
    a.load(Size::B, R2, R10, MUL);
    a.alu(Alu::Mul, R1, R2);
    a.load(Size::H, R2, R10, DIV);
    a.alu(Alu::Add, R1, R2);
    a.alu(Alu::Sub, R1, 1);
    a.alu(Alu::Div, R1, R2);
    note(a, LEN, R1);
}

fn set_cap(a: &mut Assembler, cap: i32) {
    a.store(Size::D, R10, slot::CAP, cap);
}

/// Jumps to `empty` with the mark of a fault when r0 says so.
fn fault(a: &mut Assembler, empty: Label) {
    let fine = a.new_label();
    a.jump_if(Cond::Sge, R0, 0, fine);
    set_cap(a, FAULT);
    a.jump(empty);
    a.bind(fine);
}

/// r2 = the op's most bytes, at most `most`.
fn max(a: &mut Assembler, r: Reg, most: i32) {
    let fine = a.new_label();
    a.load(Size::H, r, R10, MAX);
    a.jump_if(Cond::Le, r, most, fine);
    a.mov(r, most);
    a.bind(fine);
}

/// r = a noted word: a new unknown to the verifier at each look.
fn noted(a: &mut Assembler, r: Reg, word: i16) {
    words(a, r);
    a.load(Size::D, r, r, word);
}

/// Makes r a new unknown to the verifier.
pub fn unknown(a: &mut Assembler, r: Reg) {
    note(a, SPARE, r);
    noted(a, r, SPARE);
}

/// Notes r. Uses r0, which no op keeps anything in.
fn note(a: &mut Assembler, word: i16, r: Reg) {
    words(a, R0);
    a.store(Size::D, R0, word, r);
}

/// r = the raw result: a new unknown to the verifier at each look, or what one op learns of it would multiply the ways through
/// the next.
pub fn result(a: &mut Assembler, r: Reg) {
    words(a, r);
    a.load(Size::D, r, r, RESULT);
}

/// Notes the raw result (in r1) for the ops.
pub fn set_result(a: &mut Assembler) {
    words(a, R2);
    a.store(Size::D, R2, RESULT, R1);
}

/// Sets the capture bits to r.
pub fn set_caps(a: &mut Assembler, r: Reg) {
    note(a, CAPS, r);
}

/// Says whether the call ends without a result: the ops of exit then leave their empty tails.
pub fn set_ended(a: &mut Assembler, ended: bool) {
    a.mov(R1, i32::from(ended));
    note(a, CUT_OFF, R1);
}

/// r = what [`set_ended`] has said.
pub fn get_ended(a: &mut Assembler, r: Reg) {
    noted(a, r, CUT_OFF);
}

/// r = the capture bits.
pub fn get_caps(a: &mut Assembler, r: Reg) {
    noted(a, r, CAPS);
}

/// Tells the verifier again what r8 is at most: what comes back from a function is unknown to it.
fn bound_offset(a: &mut Assembler, no: Label) {
    a.jump_if(Cond::Gt, R8, MAX_EVENT, no);
}

/// The empty tail of the op's shape.
fn empty_tail(a: &mut Assembler) {
    let [one, four, two, done] = [a.new_label(), a.new_label(), a.new_label(), a.new_label()];
    place(a, R2, 0);
    a.load(Size::B, R1, R10, KIND);
    for k in [kind::STR, kind::ONE, kind::EMPTY1] {
        a.jump_if(Cond::Eq, R1, i32::from(k), one);
    }
    for k in [kind::STRV, kind::COUNT, kind::EMPTY4] {
        a.jump_if(Cond::Eq, R1, i32::from(k), four);
    }
    a.bind(two);
    a.store(Size::H, R2, 0, 0);
    a.alu(Alu::Add, R8, 2);
    a.jump(done);
    a.bind(one);
    a.store(Size::B, R2, 0, 0);
    a.alu(Alu::Add, R8, 1);
    a.jump(done);
    a.bind(four);
    a.store(Size::W, R2, 0, 0);
    a.alu(Alu::Add, R8, 4);
    a.bind(done);
}

/// Adds the op's mark to the capture bits, unless entry has left one.
fn caps(a: &mut Assembler) {
    let taken = a.new_label();
    a.load(Size::B, R1, R10, ARG);
    // There are marks of six arguments.
    a.jump_if(Cond::Ge, R1, 6, taken);
    a.alu(Alu::Lsh, R1, 1);
    noted(a, R2, CAPS);
    a.mov(R3, R2);
    a.alu(Alu::Rsh, R3, R1);
    a.alu(Alu::And, R3, 3);
    a.jump_if(Cond::Ne, R3, 0, taken);
    a.load(Size::D, R3, R10, slot::CAP);
    a.alu(Alu::Lsh, R3, R1);
    a.alu(Alu::Or, R2, R3);
    note(a, CAPS, R2);
    a.bind(taken);
}
