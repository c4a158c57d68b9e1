//! The ops: captures of memory, carried out as the row of the call says, one block of code per op of a phase.
//!
//! Invariant: every op appends exactly one tail of its shape and leaves r8 at its end; whatever fails leaves the empty tail. r8
//! stays below [`MAX_OFFSET`] before each op, so that the scratch buffer has room for the largest.

use super::emit::{Maps, slot};
use super::plan::{self, MAX_OPS, OP, kind, length, when};
use super::state;
use crate::asm::{Assembler, Label};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg, Reg::*, Size};

/// Where the last tail may start. The largest op takes 32 KiB, the buffer has 64.
const MAX_OFFSET: i32 = 0x3fff;
/// The most bytes that a byte op reads.
const MAX_BYTES: i32 = 32768;
/// The most bytes that a string op reads, with two to tell "cut".
const MAX_STR: i32 = 4002;
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
pub fn emit_callbacks(a: &mut Assembler, maps: &Maps, cbs: &mut Callbacks) {
    let mut i = 0;
    while i < cbs.len() {
        let (label, body) = (cbs[i].label, cbs[i].body);
        a.bind(label);
        match body {
            Body::Ops(nested) => ops_function(a, maps, cbs, nested),
            Body::Count => count_function(a),
            Body::Strings => strings_function(a),
            Body::Iovecs => iovecs_function(a),
        }
        i += 1;
    }
}

/// Calls `function` up to `n` times with this frame. r8 travels in a noted word.
fn call_back(a: &mut Assembler, function: Label, n: i32) {
    note(a, OFFSET, R8);
    a.mov(R1, n);
    call_back_counted(a, function);
}

/// The same as often as r1 says; r8 is noted already.
fn call_back_counted(a: &mut Assembler, function: Label) {
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
    note(a, OFFSET, R8);
    a.mov(R1, R2);
    call_back_counted(a, function);
    a.jump_if(Cond::Gt, R8, 0xc000, drop);
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

fn ops_function(a: &mut Assembler, maps: &Maps, cbs: &mut Callbacks, nested: Nested) {
    let [end, drop] = [a.new_label(), a.new_label()];
    a.note("an op");
    enter(a);
    a.load(Size::D, R6, R2, slot::STATE);
    a.load(Size::D, R9, R2, slot::ROW);
    // Functions that this one calls back find the scratch buffer here.
    a.store(Size::D, R10, slot::SCRATCH, R7);
    noted(a, R2, FROM);
    a.alu(Alu::Add, R1, R2);
    a.jump_if(Cond::Ge, R1, i32::from(MAX_OPS), end);
    a.alu(Alu::Lsh, R1, 4);
    a.alu(Alu::Add, R1, R9);
    for half in [0, 8] {
        a.load(Size::D, R3, R1, plan::OPS + half);
        a.store(Size::D, R10, slot::OP + half, R3);
    }
    forget_range(a, drop);
    one(a, maps, cbs, nested);
    leave(a, 0);
    a.bind(drop);
    a.mov(R8, i32::MAX);
    a.bind(end);
    leave(a, 1);
}

fn load_op(a: &mut Assembler, at: i16) {
    a.load(Size::D, R1, R9, at);
    a.store(Size::D, R10, slot::OP, R1);
    a.load(Size::D, R1, R9, at + 8);
    a.store(Size::D, R10, slot::OP + 8, R1);
}

/// Bounds r8, the same for every way that leads here: through memory, because the verifier would otherwise keep apart what it
/// knows of r8 on each of them, and look at all that follows once for each.
fn forget_range(a: &mut Assembler, drop: Label) {
    const SPARE: i16 = 32752;
    a.mov(R1, R7);
    a.alu(Alu::Add, R1, 32768);
    a.store(Size::D, R1, SPARE, R8);
    a.load(Size::D, R8, R1, SPARE);
    a.jump_if(Cond::Gt, R8, MAX_OFFSET, drop);
}

/// Writes the empty tail of every op of exit, for a call that has no result.
pub fn run_empty(a: &mut Assembler, drop: Label) {
    for i in 0..MAX_OPS {
        let none = a.new_label();
        load_op(a, plan::OPS + OP * i);
        a.load(Size::B, R1, R10, EXIT);
        a.jump_if(Cond::Eq, R1, 0, none);
        forget_range(a, drop);
        empty_tail(a);
        a.bind(none);
    }
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

fn one(a: &mut Assembler, maps: &Maps, cbs: &mut Callbacks, nested: Nested) {
    let [done, empty] = [a.new_label(), a.new_label()];
    a.store(Size::D, R10, slot::CAP, 0);
    switch(a, maps, empty);
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
    for (k, emit) in kinds {
        let next = a.new_label();
        a.load(Size::B, R1, R10, KIND);
        a.jump_if(Cond::Ne, R1, i32::from(k), next);
        emit(a, cbs, empty);
        a.jump(done);
        a.bind(next);
    }
    a.bind(empty);
    empty_tail(a);
    a.bind(done);
    caps(a);
}

/// Jumps to `empty` unless the result is one that this op waits for. Ops of entry wait for none.
fn wanted(a: &mut Assembler, empty: Label) {
    let [interrupted, always] = [a.new_label(), a.new_label()];
    a.load(Size::B, R1, R10, EXIT);
    a.jump_if(Cond::Eq, R1, 0, always);
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

/// Reads r2 bytes of the target at its address to r1; r0 < 0 where that failed.
fn read_at_addr(a: &mut Assembler) {
    a.load(Size::D, R3, R10, slot::ADDR);
    a.call(Helper::ProbeReadUser);
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

/// r2 = the smaller of the length and the most; the mark says which.
fn clamp(a: &mut Assembler, most: i32) {
    let [whole, bounded] = [a.new_label(), a.new_label()];
    max(a, R1, most);
    noted(a, R2, LEN);
    set_cap(a, WHOLE);
    a.jump_if(Cond::Le, R2, R1, whole);
    set_cap(a, CUT);
    a.mov(R2, R1);
    a.bind(whole);
    a.jump_if(Cond::Le, R2, most, bounded);
    a.mov(R2, most);
    a.bind(bounded);
}

fn bytes(a: &mut Assembler, _: &mut Callbacks, empty: Label) {
    let none = a.new_label();
    clamp(a, MAX_BYTES);
    note(a, LEN, R2);
    a.mov(R0, 0);
    a.jump_if(Cond::Eq, R2, 0, none);
    place(a, R1, 2);
    read_at_addr(a);
    fault(a, empty);
    a.bind(none);
    place(a, R1, 0);
    noted(a, R2, LEN);
    a.store(Size::H, R1, 0, R2);
    a.alu(Alu::Add, R8, R2);
    a.alu(Alu::Add, R8, 2);
}

/// r0 = bytes of the string at r3, NUL included, which stands at r8 + `off` of the scratch buffer; the mark says "cut" where it
/// was longer than r4.
fn read_string(a: &mut Assembler, off: i32) {
    let [whole, bounded] = [a.new_label(), a.new_label()];
    noted(a, R2, LEN);
    a.alu(Alu::Add, R2, 2);
    a.jump_if(Cond::Le, R2, MAX_STR, bounded);
    a.mov(R2, MAX_STR);
    a.bind(bounded);
    place(a, R1, off);
    a.call(Helper::ProbeReadUserStr);
    set_cap(a, WHOLE);
    noted(a, R1, LEN);
    a.alu(Alu::Add, R1, 1);
    a.jump_if(Cond::Sle, R0, R1, whole);
    // One more byte than wanted came: end the string where it is full.
    set_cap(a, CUT);
    a.mov(R0, R1);
    a.jump_if(Cond::Le, R1, MAX_STR, whole);
    a.mov(R0, MAX_STR);
    a.bind(whole);
}

/// Reads the op's string at r8 + `off`, and leaves its bytes without NUL in r1, bounded.
fn op_string(a: &mut Assembler, off: i32, empty: Label) {
    let bounded = a.new_label();
    max(a, R1, MAX_STR - 2);
    note(a, LEN, R1);
    a.load(Size::D, R3, R10, slot::ADDR);
    read_string(a, off);
    fault(a, empty);
    a.mov(R1, R0);
    a.alu(Alu::Sub, R1, 1);
    a.jump_if(Cond::Le, R1, MAX_STR, bounded);
    a.mov(R1, 0);
    a.bind(bounded);
}

fn string(a: &mut Assembler, _: &mut Callbacks, empty: Label) {
    op_string(a, 0, empty);
    a.alu(Alu::Add, R8, R1);
    place(a, R2, 0);
    a.store(Size::B, R2, 0, 0);
    a.alu(Alu::Add, R8, 1);
}

fn string_bytes(a: &mut Assembler, _: &mut Callbacks, empty: Label) {
    op_string(a, 2, empty);
    place(a, R2, 0);
    a.store(Size::H, R2, 0, R1);
    a.alu(Alu::Add, R8, R1);
    a.alu(Alu::Add, R8, 2);
}

fn element(a: &mut Assembler, _: &mut Callbacks, empty: Label) {
    a.load(Size::H, R2, R10, ELEM);
    a.alu(Alu::And, R2, 0xfff);
    a.jump_if(Cond::Eq, R2, 0, empty);
    place(a, R1, 1);
    read_at_addr(a);
    fault(a, empty);
    set_cap(a, WHOLE);
    place(a, R1, 0);
    a.store(Size::B, R1, 0, 1);
    a.load(Size::H, R2, R10, ELEM);
    a.alu(Alu::And, R2, 0xfff);
    a.alu(Alu::Add, R8, R2);
    a.alu(Alu::Add, R8, 1);
}

fn elements(a: &mut Assembler, _: &mut Callbacks, empty: Label) {
    let none = a.new_label();
    // The length in bytes; a number so large that it would wrap is cut all the same.
    let small = a.new_label();
    noted(a, R1, LEN);
    a.jump_if(Cond::Le, R1, 0xff_ffff, small);
    a.mov(R1, 0xff_ffff);
    a.bind(small);
    a.load(Size::H, R2, R10, ELEM);
    a.alu(Alu::Mul, R1, R2);
    note(a, LEN, R1);
    clamp(a, 4096);
    note(a, LEN, R2);
    a.mov(R0, 0);
    a.jump_if(Cond::Eq, R2, 0, none);
    place(a, R1, 2);
    read_at_addr(a);
    fault(a, empty);
    a.bind(none);
    noted(a, R2, LEN);
    a.mov(R3, R2);
    a.load(Size::H, R4, R10, ELEM);
    a.alu(Alu::Div, R3, R4);
    place(a, R1, 0);
    a.store(Size::H, R1, 0, R3);
    a.alu(Alu::Add, R8, R2);
    a.alu(Alu::Add, R8, 2);
}

/// `WORD` = pointer `I` of the array at the address; r0 < 0 where it cannot be read.
fn pointer(a: &mut Assembler) {
    a.load(Size::D, R3, R10, slot::I);
    a.alu(Alu::Lsh, R3, 3);
    a.load(Size::D, R1, R10, slot::CTX);
    a.load(Size::D, R1, R1, slot::ADDR);
    a.alu(Alu::Add, R3, R1);
    a.mov(R1, R10);
    a.alu(Alu::Add, R1, i32::from(slot::WORD));
    a.mov(R2, 8);
    a.call(Helper::ProbeReadUser);
}

/// Words of the scratch buffer that the verifier knows nothing about, behind everything else.
const TOTAL: i16 = 32736;
const BROKEN: i16 = 32744;
/// The raw result.
const RESULT: i16 = 32728;

/// A length.
const LEN: i16 = 32720;
/// Bytes that a result still covers.
const LEFT: i16 = 32712;

/// r = a noted word: a new unknown to the verifier at each look.
fn noted(a: &mut Assembler, r: Reg, word: i16) {
    notes(a, r);
    a.load(Size::D, r, r, word);
}

/// Notes r. Uses r0, which no op keeps anything in.
fn note(a: &mut Assembler, word: i16, r: Reg) {
    notes(a, R0);
    a.store(Size::D, R0, word, r);
}

/// r = the raw result: a new unknown to the verifier at each look, or what one op learns of it would multiply the ways through
/// the next.
fn result(a: &mut Assembler, r: Reg) {
    notes(a, r);
    a.load(Size::D, r, r, RESULT);
}

/// Notes the raw result (in r1) for the ops.
pub fn set_result(a: &mut Assembler) {
    notes(a, R2);
    a.store(Size::D, R2, RESULT, R1);
}

/// r = the scratch buffer's second half, which `TOTAL` and `BROKEN` count from.
fn notes(a: &mut Assembler, r: Reg) {
    a.mov(r, R7);
    a.alu(Alu::Add, r, 32768);
}

/// Items that a function called back has done.
const DONE: i16 = 32704;
/// Number of the first op that is run.
const FROM: i16 = 32696;
/// Number behind the last op that is run.
const TO: i16 = 32688;
/// Bytes of the event so far, between functions.
const OFFSET: i16 = 32672;
/// Capture bits.
const CAPS: i16 = 32664;

/// Sets the capture bits to r.
pub fn set_caps(a: &mut Assembler, r: Reg) {
    note(a, CAPS, r);
}

/// r = the capture bits.
pub fn get_caps(a: &mut Assembler, r: Reg) {
    noted(a, r, CAPS);
}

/// Counts the pointers of the array up to its NULL into `TOTAL`; `BROKEN` is 1 where it could not be read to its end.
fn count_pointers(a: &mut Assembler, cbs: &mut Callbacks) {
    notes(a, R2);
    a.store(Size::D, R2, TOTAL, 0);
    a.store(Size::D, R2, BROKEN, 1);
    let function = callback(a, cbs, Body::Count);
    call_back(a, function, MAX_COUNT);
}

fn count_function(a: &mut Assembler) {
    let [end, broken] = [a.new_label(), a.new_label()];
    a.note("count a pointer");
    enter(a);
    pointer(a);
    a.jump_if(Cond::Slt, R0, 0, broken);
    notes(a, R2);
    a.load(Size::D, R1, R10, slot::WORD);
    a.jump_if(Cond::Eq, R1, 0, end);
    a.load(Size::D, R1, R10, slot::I);
    a.alu(Alu::Add, R1, 1);
    a.store(Size::D, R2, TOTAL, R1);
    leave(a, 0);
    a.bind(end);
    a.store(Size::D, R2, BROKEN, 0);
    a.bind(broken);
    leave(a, 1);
}

/// Marks what became of the count, or leaves for `empty` where nothing could be read.
fn count_mark(a: &mut Assembler, empty: Label) {
    let fine = a.new_label();
    set_cap(a, WHOLE);
    notes(a, R2);
    a.load(Size::D, R1, R2, BROKEN);
    a.jump_if(Cond::Eq, R1, 0, fine);
    set_cap(a, CUT);
    a.load(Size::D, R1, R2, TOTAL);
    a.jump_if(Cond::Ne, R1, 0, fine);
    set_cap(a, FAULT);
    a.jump(empty);
    a.bind(fine);
}

fn counted(a: &mut Assembler, cbs: &mut Callbacks, empty: Label) {
    a.store(Size::D, R10, slot::HEAD, R8);
    count_pointers(a, cbs);
    a.load(Size::D, R8, R10, slot::HEAD);
    count_mark(a, empty);
    notes(a, R2);
    a.load(Size::D, R1, R2, TOTAL);
    place(a, R2, 0);
    a.store(Size::H, R2, 0, R1);
    a.store(Size::H, R2, 2, 0);
    a.alu(Alu::Add, R8, 4);
}

/// Tells the verifier again what r8 is at most: what comes back from a function is unknown to it.
fn bound_offset(a: &mut Assembler, no: Label) {
    a.jump_if(Cond::Gt, R8, 0xc000, no);
}

fn strv(a: &mut Assembler, cbs: &mut Callbacks, empty: Label) {
    let [give_up, done, all] = [a.new_label(), a.new_label(), a.new_label()];
    a.store(Size::D, R10, slot::HEAD, R8);
    count_pointers(a, cbs);
    a.load(Size::D, R8, R10, slot::HEAD);
    count_mark(a, empty);
    a.load(Size::D, R1, R10, slot::CAP);
    notes(a, R2);
    a.store(Size::D, R2, BROKEN, R1);
    a.store(Size::D, R2, DONE, 0);
    max(a, R1, 1024);
    note(a, LEN, R1);
    a.alu(Alu::Add, R8, 4);
    let function = callback(a, cbs, Body::Strings);
    call_back(a, function, MAX_STRINGS);
    bound_offset(a, give_up);
    a.load(Size::D, R2, R10, slot::HEAD);
    a.alu(Alu::Add, R2, R7);
    notes(a, R3);
    a.load(Size::D, R4, R3, TOTAL);
    a.store(Size::H, R2, 0, R4);
    a.load(Size::D, R1, R3, DONE);
    a.store(Size::H, R2, 2, R1);
    a.load(Size::D, R5, R3, BROKEN);
    a.store(Size::D, R10, slot::CAP, R5);
    a.jump_if(Cond::Ge, R1, R4, all);
    set_cap(a, CUT);
    a.bind(all);
    a.jump(done);
    a.bind(give_up);
    a.load(Size::D, R8, R10, slot::HEAD);
    a.jump(empty);
    a.bind(done);
}

fn strings_function(a: &mut Assembler) {
    let [enough, readable, bounded] = [a.new_label(), a.new_label(), a.new_label()];
    a.note("a string of an array");
    enter(a);
    notes(a, R3);
    a.load(Size::D, R3, R3, TOTAL);
    a.jump_if(Cond::Ge, R1, R3, enough);
    // No more strings than bytes of one are wanted.
    noted(a, R3, LEN);
    a.jump_if(Cond::Ge, R1, R3, enough);
    forget_range(a, enough);
    pointer(a);
    a.jump_if(Cond::Slt, R0, 0, enough);
    a.load(Size::D, R3, R10, slot::WORD);
    place(a, R1, 0);
    a.store(Size::D, R1, 0, R3);
    read_string(a, 9);
    a.jump_if(Cond::Sgt, R0, 0, readable);
    set_cap(a, FAULT);
    a.mov(R0, 1);
    a.bind(readable);
    a.jump_if(Cond::Le, R0, 1026, bounded);
    a.mov(R0, 1026);
    a.bind(bounded);
    place(a, R1, 8);
    a.load(Size::D, R2, R10, slot::CAP);
    a.store(Size::B, R1, 0, R2);
    a.alu(Alu::Add, R8, R0);
    place(a, R1, 8);
    a.store(Size::B, R1, 0, 0);
    a.alu(Alu::Add, R8, 9);
    notes(a, R2);
    a.load(Size::D, R1, R10, slot::I);
    a.alu(Alu::Add, R1, 1);
    a.store(Size::D, R2, DONE, R1);
    leave(a, 0);
    a.bind(enough);
    leave(a, 1);
}

/// Stands for "no limit" in `LEFT`: no result has this value, and unsigned it is huge.
const ENDLESS: i32 = i32::MIN;

/// The bytes that the result covers: all there are before the call.
fn covered(a: &mut Assembler) {
    let [all, done] = [a.new_label(), a.new_label()];
    a.load(Size::B, R1, R10, EXIT);
    a.jump_if(Cond::Eq, R1, 0, all);
    result(a, R1);
    note(a, LEFT, R1);
    a.jump(done);
    a.bind(all);
    a.mov(R1, ENDLESS);
    note(a, LEFT, R1);
    a.bind(done);
}

fn iov_op(a: &mut Assembler, cbs: &mut Callbacks, empty: Label) {
    let [give_up, done] = [a.new_label(), a.new_label()];
    covered(a);
    iov(a, cbs, give_up);
    a.jump(done);
    a.bind(give_up);
    a.load(Size::D, R8, R10, slot::HEAD);
    set_cap(a, FAULT);
    a.jump(empty);
    a.bind(done);
}

/// `LEN` iovecs at the address; contents as far as `LEFT` goes (unsigned; a negative result covers none). `give_up` where not
/// even the first can be read.
fn iov(a: &mut Assembler, cbs: &mut Callbacks, give_up: Label) {
    let [whole, some] = [a.new_label(), a.new_label()];
    a.store(Size::D, R10, slot::HEAD, R8);
    a.alu(Alu::Add, R8, 2);
    notes(a, R2);
    a.store(Size::D, R2, DONE, 0);
    let function = callback(a, cbs, Body::Iovecs);
    call_back(a, function, MAX_IOV);
    bound_offset(a, give_up);
    set_cap(a, WHOLE);
    noted(a, R1, DONE);
    noted(a, R2, LEN);
    a.jump_if(Cond::Ge, R1, R2, whole);
    set_cap(a, CUT);
    a.jump_if(Cond::Ne, R1, 0, some);
    a.jump(give_up);
    a.bind(some);
    a.bind(whole);
    a.load(Size::D, R2, R10, slot::HEAD);
    a.alu(Alu::Add, R2, R7);
    a.store(Size::H, R2, 0, R1);
}

fn iovecs_function(a: &mut Assembler) {
    let [end, has_left, none, done] = [a.new_label(), a.new_label(), a.new_label(), a.new_label()];
    a.note("an iovec");
    enter(a);
    noted(a, R3, LEN);
    a.jump_if(Cond::Ge, R1, R3, end);
    // No more iovecs than bytes of one are wanted.
    a.load(Size::H, R3, R2, MAX);
    a.jump_if(Cond::Ge, R1, R3, end);
    forget_range(a, end);
    // struct iovec { base, len } → WORD2, WORD
    a.load(Size::D, R1, R10, slot::I);
    a.alu(Alu::Lsh, R1, 4);
    a.load(Size::D, R2, R10, slot::CTX);
    a.load(Size::D, R3, R2, slot::ADDR);
    a.alu(Alu::Add, R3, R1);
    a.mov(R1, R10);
    a.alu(Alu::Add, R1, i32::from(slot::WORD2));
    a.mov(R2, 16);
    a.call(Helper::ProbeReadUser);
    a.jump_if(Cond::Slt, R0, 0, end);
    place(a, R5, 0);
    a.load(Size::D, R1, R10, slot::WORD2);
    a.store(Size::D, R5, 0, R1);
    a.load(Size::D, R1, R10, slot::WORD);
    a.store(Size::D, R5, 8, R1);
    a.store(Size::B, R5, 16, 0);
    a.store(Size::H, R5, 17, 0);
    // r1 = min(len, left): what of it is valid
    noted(a, R2, LEFT);
    a.jump_if(Cond::Eq, R2, ENDLESS, has_left);
    a.jump_if(Cond::Slt, R2, 0, none);
    a.bind(has_left);
    let [fits, endless] = [a.new_label(), a.new_label()];
    a.jump_if(Cond::Le, R1, R2, fits);
    a.mov(R1, R2);
    a.bind(fits);
    a.jump_if(Cond::Eq, R2, ENDLESS, endless);
    a.alu(Alu::Sub, R2, R1);
    note(a, LEFT, R2);
    a.bind(endless);
    // What is captured of it.
    a.load(Size::D, R2, R10, slot::CTX);
    a.load(Size::H, R2, R2, MAX);
    a.store(Size::B, R5, 16, WHOLE);
    let [all, bounded] = [a.new_label(), a.new_label()];
    a.jump_if(Cond::Le, R1, R2, all);
    a.store(Size::B, R5, 16, CUT);
    a.mov(R1, R2);
    a.bind(all);
    a.jump_if(Cond::Le, R1, 4000, bounded);
    a.mov(R1, 4000);
    a.bind(bounded);
    a.store(Size::D, R10, slot::TEMP, R1);
    a.jump_if(Cond::Eq, R1, 0, none);
    a.mov(R2, R1);
    place(a, R1, 19);
    a.load(Size::D, R3, R10, slot::WORD2);
    a.call(Helper::ProbeReadUser);
    place(a, R5, 0);
    let readable = a.new_label();
    a.jump_if(Cond::Sge, R0, 0, readable);
    a.store(Size::B, R5, 16, FAULT);
    a.jump(none);
    a.bind(readable);
    a.load(Size::D, R1, R10, slot::TEMP);
    a.store(Size::H, R5, 17, R1);
    a.alu(Alu::Add, R8, R1);
    a.jump(done);
    a.bind(none);
    a.bind(done);
    a.alu(Alu::Add, R8, 19);
    notes(a, R2);
    a.load(Size::D, R1, R10, slot::I);
    a.alu(Alu::Add, R1, 1);
    a.store(Size::D, R2, DONE, R1);
    leave(a, 0);
    a.bind(end);
    leave(a, 1);
}

fn sigpack(a: &mut Assembler, _: &mut Callbacks, empty: Label) {
    let [done, set] = [a.new_label(), a.new_label()];
    place(a, R1, 2);
    a.mov(R2, 16);
    read_at_addr(a);
    fault(a, empty);
    set_cap(a, WHOLE);
    place(a, R1, 0);
    a.store(Size::H, R1, 0, 16);
    a.load(Size::D, R3, R1, 2);
    a.jump_if(Cond::Ne, R3, 0, set);
    a.alu(Alu::Add, R8, 18);
    a.jump(done);
    a.bind(set);
    // The kernel takes sets of 8 bytes only (kernel/signal.c, set_user_sigmask).
    place(a, R1, 18);
    a.mov(R2, 8);
    a.call(Helper::ProbeReadUser);
    place(a, R1, 0);
    a.alu(Alu::Add, R8, 18);
    a.jump_if(Cond::Slt, R0, 0, done);
    a.store(Size::H, R1, 0, 24);
    a.alu(Alu::Add, R8, 8);
    a.bind(done);
}

/// A struct user_msghdr and what it leads to: see `events::message`.
fn message(a: &mut Assembler, cbs: &mut Callbacks, empty: Label) {
    const HEADER_ONLY: i32 = 0x80;
    let [give_up, done, received, no_name, no_iov, no_control, iov_fault] =
        [a.new_label(), a.new_label(), a.new_label(), a.new_label(), a.new_label(), a.new_label(), a.new_label()];
    place(a, R1, 2);
    a.mov(R2, 56);
    read_at_addr(a);
    fault(a, empty);
    place(a, R1, 0);
    a.store(Size::H, R1, 0, 1);
    a.store(Size::W, R1, 58, 0);
    a.store(Size::B, R1, 62, 0);
    // The message's own capture bits stand in KEY, the header's place in KEY + 8.
    a.store(Size::D, R10, slot::KEY, 0);
    a.store(Size::D, R10, slot::KEY + 8, R8);
    a.alu(Alu::Add, R8, 63);
    // Only a message that was to be received and was not is of no interest.
    a.load(Size::B, R2, R10, EXIT);
    a.jump_if(Cond::Eq, R2, 0, received);
    result(a, R2);
    a.jump_if(Cond::Sge, R2, 0, received);
    a.store(Size::B, R1, 62, HEADER_ONLY);
    place(a, R1, 0);
    a.store(Size::W, R1, 0, 0);
    a.store(Size::H, R1, 4, 0);
    a.alu(Alu::Add, R8, 6);
    set_cap(a, WHOLE);
    a.jump(done);
    a.bind(received);
    // Name: u16 length, bytes.
    let name_bounded = a.new_label();
    a.load(Size::D, R3, R1, 2);
    a.load(Size::W, R2, R1, 10);
    place(a, R1, 0);
    a.store(Size::H, R1, 0, 0);
    a.jump_if(Cond::Eq, R3, 0, no_name);
    a.jump_if(Cond::Le, R2, 128, name_bounded);
    a.mov(R2, 128);
    a.bind(name_bounded);
    part(a, 0, WHOLE, no_name);
    a.bind(no_name);
    a.alu(Alu::Add, R8, 2);
    // iovecs.
    header(a, R1, &give_up);
    a.load(Size::D, R3, R1, 18);
    a.load(Size::D, R2, R1, 26);
    a.store(Size::D, R10, slot::ADDR, R3);
    note(a, LEN, R2);
    a.jump_if(Cond::Gt, R8, MAX_OFFSET, give_up);
    place(a, R1, 0);
    a.store(Size::H, R1, 0, 0);
    a.jump_if(Cond::Eq, R3, 0, no_iov);
    covered(a);
    iov(a, cbs, iov_fault);
    a.load(Size::D, R1, R10, slot::CAP);
    a.alu(Alu::Lsh, R1, 2);
    a.load(Size::D, R2, R10, slot::KEY);
    a.alu(Alu::Or, R2, R1);
    a.store(Size::D, R10, slot::KEY, R2);
    a.alu(Alu::Sub, R8, 2);
    a.jump(no_iov);
    a.bind(iov_fault);
    a.load(Size::D, R8, R10, slot::HEAD);
    a.load(Size::D, R2, R10, slot::KEY);
    a.alu(Alu::Or, R2, FAULT << 2);
    a.store(Size::D, R10, slot::KEY, R2);
    a.jump_if(Cond::Gt, R8, MAX_OFFSET, give_up);
    place(a, R1, 0);
    a.store(Size::H, R1, 0, 0);
    a.bind(no_iov);
    a.alu(Alu::Add, R8, 2);
    a.jump_if(Cond::Gt, R8, MAX_OFFSET, give_up);
    // Control messages: u16 length, bytes.
    let [control_bounded, control_cut] = [a.new_label(), a.new_label()];
    header(a, R1, &give_up);
    a.load(Size::D, R3, R1, 34);
    a.load(Size::D, R2, R1, 42);
    place(a, R1, 0);
    a.store(Size::H, R1, 0, 0);
    a.jump_if(Cond::Eq, R3, 0, no_control);
    a.jump_if(Cond::Gt, R2, MAX_CONTROL, control_cut);
    a.jump(control_bounded);
    a.bind(control_cut);
    a.mov(R2, MAX_CONTROL);
    part(a, 4, CUT, no_control);
    a.jump(no_control);
    a.bind(control_bounded);
    part(a, 4, WHOLE, no_control);
    a.bind(no_control);
    a.alu(Alu::Add, R8, 2);
    header(a, R1, &give_up);
    a.load(Size::D, R2, R10, slot::KEY);
    a.store(Size::B, R1, 62, R2);
    set_cap(a, WHOLE);
    a.jump(done);
    a.bind(give_up);
    a.load(Size::D, R8, R10, slot::KEY + 8);
    set_cap(a, FAULT);
    a.jump(empty);
    a.bind(done);
}

/// r = the message's header in the scratch buffer (its u16 count at 0).
fn header(a: &mut Assembler, r: Reg, give_up: &Label) {
    a.load(Size::D, r, R10, slot::KEY + 8);
    a.jump_if(Cond::Gt, r, MAX_OFFSET, *give_up);
    a.alu(Alu::Add, r, R7);
}

/// A part of a message: r2 bytes (bounded) at r3, behind a u16 length at r8, which is left in front of the length for `+ 2`.
fn part(a: &mut Assembler, shift: i32, cap: i32, none: Label) {
    let [fine, mark] = [a.new_label(), a.new_label()];
    a.store(Size::D, R10, slot::TEMP, R2);
    a.mov(R4, cap << shift);
    a.store(Size::D, R10, slot::WORD, R4);
    a.mov(R0, 0);
    a.jump_if(Cond::Eq, R2, 0, fine);
    place(a, R1, 2);
    a.call(Helper::ProbeReadUser);
    a.jump_if(Cond::Sge, R0, 0, fine);
    a.mov(R4, FAULT << shift);
    a.store(Size::D, R10, slot::WORD, R4);
    a.store(Size::D, R10, slot::TEMP, 0);
    a.bind(fine);
    a.load(Size::D, R2, R10, slot::KEY);
    a.load(Size::D, R4, R10, slot::WORD);
    a.alu(Alu::Or, R2, R4);
    a.store(Size::D, R10, slot::KEY, R2);
    a.bind(mark);
    a.load(Size::D, R2, R10, slot::TEMP);
    a.jump_if(Cond::Gt, R2, MAX_CONTROL, none);
    place(a, R1, 0);
    a.store(Size::H, R1, 0, R2);
    a.alu(Alu::Add, R8, R2);
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
    a.alu(Alu::And, R1, 7);
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
