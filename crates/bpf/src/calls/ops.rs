//! The ops: captures of memory, carried out as the row of the call says, one block of code per op of a phase.
//!
//! Invariant: every op appends exactly one tail of its shape and leaves r8 at its end; whatever fails leaves the empty tail. r8
//! stays below [`MAX_OFFSET`] before each op, so that the scratch buffer has room for the largest.

use super::emit::{Maps, slot};
use super::plan::{self, NESTED, OP, SIMPLE, kind, length, when};
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
const MAX_STRINGS: i32 = 32;
/// Strings of an array that are counted.
const MAX_COUNT: i32 = 256;
/// iovecs that are read.
const MAX_IOV: i32 = 32;
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
    /// iovecs and messages: string arrays are always read at entry.
    Io,
}

/// Runs the ops at offset `from` of the row; `drop` where the event becomes too long.
pub fn run(a: &mut Assembler, maps: &Maps, from: i16, nested: Nested, drop: Label) {
    let exit = from == plan::OPS_OUT;
    let phase = if exit { "exit" } else { "entry" };
    // Only execve has two nested arguments that matter; of process_vm_readv's the second is shown as an address.
    let most = if nested == Nested::Strings { NESTED } else { 1 };
    let lists = [(from, SIMPLE, None), (from + OP * SIMPLE, most, Some(nested))];
    for (from, n, nested) in lists {
        let end = a.new_label();
        for i in 0..n {
            a.note(format!("{phase} op {i}"));
            // The used ops of a list stand in front; a 0 ends them.
            load_op(a, from + OP * i);
            a.load(Size::B, R1, R10, KIND);
            a.jump_if(Cond::Eq, R1, 0, end);
            forget_range(a, drop);
            one(a, maps, exit, nested);
        }
        a.bind(end);
    }
    for i in most..NESTED {
        let none = a.new_label();
        load_op(a, from + OP * (SIMPLE + i));
        a.load(Size::B, R1, R10, KIND);
        a.jump_if(Cond::Eq, R1, 0, none);
        forget_range(a, drop);
        empty_tail(a);
        a.bind(none);
    }
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
    for i in 0..SIMPLE + NESTED {
        let none = a.new_label();
        load_op(a, plan::OPS_OUT + OP * i);
        a.load(Size::B, R1, R10, KIND);
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

fn one(a: &mut Assembler, maps: &Maps, exit: bool, nested: Option<Nested>) {
    let [done, empty] = [a.new_label(), a.new_label()];
    a.store(Size::D, R10, slot::CAP, 0);
    if exit {
        wanted(a, empty);
    }
    if nested.is_none() {
        switch(a, maps, exit, empty);
        if exit {
            // The row of a switch has its own word on that.
            wanted(a, empty);
        }
    }
    argument(a, R1, ARG);
    a.store(Size::D, R10, slot::ADDR, R1);
    a.jump_if(Cond::Eq, R1, 0, empty);
    length_of(a, empty);
    type Emit = fn(&mut Assembler, Label);
    let simple: &[(u8, Emit)] = &[
        (kind::BYTES, bytes),
        (kind::STR, string),
        (kind::STR_BYTES, string_bytes),
        (kind::ONE, element),
        (kind::MANY, elements),
        (kind::SIGPACK, sigpack),
    ];
    let io: &[(u8, Emit)] = &[(kind::IOV, iov_op), (kind::MSG, message)];
    let strings: &[(u8, Emit)] = &[(kind::STRV, strv), (kind::COUNT, counted)];
    let kinds = match nested {
        None => simple,
        Some(Nested::Io) => io,
        Some(Nested::Strings) => strings,
    };
    for (k, emit) in kinds {
        let next = a.new_label();
        a.load(Size::B, R1, R10, KIND);
        a.jump_if(Cond::Ne, R1, i32::from(*k), next);
        emit(a, empty);
        a.jump(done);
        a.bind(next);
    }
    a.bind(empty);
    empty_tail(a);
    a.bind(done);
    caps(a);
}

/// Jumps to `empty` unless the result is one that this op waits for.
fn wanted(a: &mut Assembler, empty: Label) {
    let [interrupted, always, failed] = [a.new_label(), a.new_label(), a.new_label()];
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
    a.jump(always);
    a.bind(failed);
    a.bind(always);
}

/// Replaces a switch op by the op that the selector's value chooses.
fn switch(a: &mut Assembler, maps: &Maps, exit: bool, empty: Label) {
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
        let off = if exit { OP } else { 0 };
        a.load(Size::D, R1, R0, off);
        a.store(Size::D, R10, slot::OP, R1);
        a.load(Size::D, R1, R0, off + 8);
        a.store(Size::D, R10, slot::OP + 8, R1);
        a.jump(other);
        a.bind(miss);
    }
    a.bind(other);
}

/// The op's length into its slot.
fn length_of(a: &mut Assembler, empty: Label) {
    let [constant, ret, deref, signed, wide, ready] =
        [a.new_label(), a.new_label(), a.new_label(), a.new_label(), a.new_label(), a.new_label()];
    let guarded = a.new_label();
    // An argument that must not be 0.
    a.load(Size::B, R1, R10, GUARD);
    a.jump_if(Cond::Eq, R1, 255, guarded);
    argument(a, R1, GUARD);
    a.jump_if(Cond::Eq, R1, 0, empty);
    a.bind(guarded);
    a.load(Size::B, R2, R10, LENGTH);
    a.jump_if(Cond::Eq, R2, i32::from(length::CONST), constant);
    a.jump_if(Cond::Eq, R2, i32::from(length::RET), ret);
    a.load(Size::B, R3, R10, LENGTH);
    argument(a, R1, LEN_ARG);
    a.jump_if(Cond::Eq, R3, i32::from(length::DEREF), deref);
    a.jump_if(Cond::Eq, R3, i32::from(length::ARG64), wide);
    a.jump_if(Cond::Eq, R3, i32::from(length::ARG32S), signed);
    a.mov32(R1, R1);
    a.jump(ready);
    a.bind(signed);
    a.mov32(R1, R1);
    a.jump_if(Cond::Le, R1, i32::MAX, ready);
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

fn bytes(a: &mut Assembler, empty: Label) {
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

fn string(a: &mut Assembler, empty: Label) {
    op_string(a, 0, empty);
    a.alu(Alu::Add, R8, R1);
    place(a, R2, 0);
    a.store(Size::B, R2, 0, 0);
    a.alu(Alu::Add, R8, 1);
}

fn string_bytes(a: &mut Assembler, empty: Label) {
    op_string(a, 2, empty);
    place(a, R2, 0);
    a.store(Size::H, R2, 0, R1);
    a.alu(Alu::Add, R8, R1);
    a.alu(Alu::Add, R8, 2);
}

fn element(a: &mut Assembler, empty: Label) {
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

fn elements(a: &mut Assembler, empty: Label) {
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
    a.load(Size::D, R1, R10, slot::ADDR);
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

/// Counts the pointers of the array up to its NULL into `TOTAL`; `BROKEN` is 1 where it could not be read to its end.
fn count_pointers(a: &mut Assembler) {
    let [more, end, broken, counted] = [a.new_label(), a.new_label(), a.new_label(), a.new_label()];
    a.store(Size::D, R10, slot::I, 0);
    a.bind(more);
    a.load(Size::D, R1, R10, slot::I);
    a.jump_if(Cond::Ge, R1, MAX_COUNT, broken);
    pointer(a);
    a.jump_if(Cond::Slt, R0, 0, broken);
    a.load(Size::D, R1, R10, slot::WORD);
    a.jump_if(Cond::Eq, R1, 0, end);
    a.load(Size::D, R1, R10, slot::I);
    a.alu(Alu::Add, R1, 1);
    a.store(Size::D, R10, slot::I, R1);
    a.jump(more);
    a.bind(broken);
    notes(a, R2);
    a.store(Size::D, R2, BROKEN, 1);
    a.jump(counted);
    a.bind(end);
    notes(a, R2);
    a.store(Size::D, R2, BROKEN, 0);
    a.bind(counted);
    // Kept where the verifier does not follow: it would look at the rest once for every number.
    a.load(Size::D, R1, R10, slot::I);
    a.store(Size::D, R2, TOTAL, R1);
    a.mov(R1, 0);
    a.store(Size::D, R10, slot::I, 0);
    a.store(Size::D, R10, slot::WORD, 0);
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

fn counted(a: &mut Assembler, empty: Label) {
    a.store(Size::D, R10, slot::WORD, 0);
    count_pointers(a);
    count_mark(a, empty);
    notes(a, R2);
    a.load(Size::D, R1, R2, TOTAL);
    place(a, R2, 0);
    a.store(Size::H, R2, 0, R1);
    a.store(Size::H, R2, 2, 0);
    a.alu(Alu::Add, R8, 4);
}

fn strv(a: &mut Assembler, empty: Label) {
    let [more, enough, give_up, done, readable, bounded, all] =
        [a.new_label(), a.new_label(), a.new_label(), a.new_label(), a.new_label(), a.new_label(), a.new_label()];
    a.store(Size::D, R10, slot::WORD, 0);
    count_pointers(a);
    count_mark(a, empty);
    a.load(Size::D, R1, R10, slot::CAP);
    notes(a, R2);
    a.store(Size::D, R2, BROKEN, R1);
    max(a, R1, 1024);
    note(a, LEN, R1);
    a.store(Size::D, R10, slot::HEAD, R8);
    a.alu(Alu::Add, R8, 4);
    a.bind(more);
    a.load(Size::D, R1, R10, slot::I);
    notes(a, R2);
    a.load(Size::D, R2, R2, TOTAL);
    a.jump_if(Cond::Ge, R1, R2, enough);
    a.jump_if(Cond::Ge, R1, MAX_STRINGS, enough);
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
    a.load(Size::D, R1, R10, slot::I);
    a.alu(Alu::Add, R1, 1);
    a.store(Size::D, R10, slot::I, R1);
    a.jump(more);
    a.bind(enough);
    a.load(Size::D, R2, R10, slot::HEAD);
    a.jump_if(Cond::Gt, R2, MAX_OFFSET, give_up);
    a.alu(Alu::Add, R2, R7);
    notes(a, R3);
    a.load(Size::D, R4, R3, TOTAL);
    a.store(Size::H, R2, 0, R4);
    a.load(Size::D, R1, R10, slot::I);
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

/// The bytes that the result covers: all there are before the call.
fn covered(a: &mut Assembler) {
    let [all, done] = [a.new_label(), a.new_label()];
    a.load(Size::D, R1, R10, slot::EXIT);
    a.jump_if(Cond::Eq, R1, 0, all);
    result(a, R1);
    note(a, LEFT, R1);
    a.jump(done);
    a.bind(all);
    a.mov(R1, -1);
    note(a, LEFT, R1);
    a.bind(done);
}

fn iov_op(a: &mut Assembler, empty: Label) {
    let [give_up, done] = [a.new_label(), a.new_label()];
    covered(a);
    iov(a, give_up);
    a.jump(done);
    a.bind(give_up);
    a.load(Size::D, R8, R10, slot::HEAD);
    set_cap(a, FAULT);
    a.jump(empty);
    a.bind(done);
}

/// `LEN` iovecs at the address; contents as far as `LEFT` goes (unsigned; a negative result covers none).
fn iov(a: &mut Assembler, give_up: Label) {
    let [more, end, short, has_left, none, contents_done, whole] =
        [a.new_label(), a.new_label(), a.new_label(), a.new_label(), a.new_label(), a.new_label(), a.new_label()];
    a.store(Size::D, R10, slot::HEAD, R8);
    a.store(Size::D, R10, slot::I, 0);
    a.alu(Alu::Add, R8, 2);
    a.bind(more);
    a.load(Size::D, R1, R10, slot::I);
    noted(a, R2, LEN);
    a.jump_if(Cond::Ge, R1, R2, end);
    a.jump_if(Cond::Ge, R1, MAX_IOV, end);
    forget_range(a, end);
    a.load(Size::D, R1, R10, slot::I);
    // struct iovec { base, len } → WORD2, WORD
    a.alu(Alu::Lsh, R1, 4);
    a.load(Size::D, R3, R10, slot::ADDR);
    a.alu(Alu::Add, R3, R1);
    a.mov(R1, R10);
    a.alu(Alu::Add, R1, i32::from(slot::WORD2));
    a.mov(R2, 16);
    a.call(Helper::ProbeReadUser);
    a.jump_if(Cond::Slt, R0, 0, short);
    place(a, R5, 0);
    a.load(Size::D, R1, R10, slot::WORD2);
    a.store(Size::D, R5, 0, R1);
    a.load(Size::D, R1, R10, slot::WORD);
    a.store(Size::D, R5, 8, R1);
    a.store(Size::B, R5, 16, 0);
    a.store(Size::H, R5, 17, 0);
    // r2 = min(len, left): what of it is valid
    noted(a, R2, LEFT);
    a.jump_if(Cond::Eq, R2, -1, has_left);
    a.jump_if(Cond::Slt, R2, 0, none);
    a.bind(has_left);
    let fits = a.new_label();
    a.jump_if(Cond::Le, R1, R2, fits);
    a.mov(R1, R2);
    a.bind(fits);
    let endless = a.new_label();
    a.jump_if(Cond::Eq, R2, -1, endless);
    a.alu(Alu::Sub, R2, R1);
    note(a, LEFT, R2);
    a.bind(endless);
    // What is captured of it.
    a.store(Size::D, R10, slot::TEMP, R1);
    max(a, R2, 4000);
    a.load(Size::D, R1, R10, slot::TEMP);
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
    let sure = a.new_label();
    a.jump_if(Cond::Le, R1, 4000, sure);
    a.mov(R1, 4000);
    a.bind(sure);
    a.store(Size::H, R5, 17, R1);
    a.alu(Alu::Add, R8, R1);
    a.jump(contents_done);
    a.bind(none);
    a.bind(contents_done);
    a.alu(Alu::Add, R8, 19);
    a.load(Size::D, R1, R10, slot::I);
    a.alu(Alu::Add, R1, 1);
    a.store(Size::D, R10, slot::I, R1);
    a.jump(more);
    a.bind(short);
    a.load(Size::D, R1, R10, slot::I);
    a.jump_if(Cond::Eq, R1, 0, give_up);
    a.bind(end);
    set_cap(a, WHOLE);
    a.load(Size::D, R1, R10, slot::I);
    noted(a, R2, LEN);
    a.jump_if(Cond::Ge, R1, R2, whole);
    set_cap(a, CUT);
    a.bind(whole);
    a.load(Size::D, R2, R10, slot::HEAD);
    a.jump_if(Cond::Gt, R2, 0x7fff, give_up);
    a.alu(Alu::Add, R2, R7);
    a.store(Size::H, R2, 0, R1);
}

fn sigpack(a: &mut Assembler, empty: Label) {
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
fn message(a: &mut Assembler, empty: Label) {
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
    iov(a, iov_fault);
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
    a.load(Size::D, R2, R10, slot::CAPS);
    a.mov(R3, R2);
    a.alu(Alu::Rsh, R3, R1);
    a.alu(Alu::And, R3, 3);
    a.jump_if(Cond::Ne, R3, 0, taken);
    a.load(Size::D, R3, R10, slot::CAP);
    a.alu(Alu::Lsh, R3, R1);
    a.alu(Alu::Or, R2, R3);
    a.store(Size::D, R10, slot::CAPS, R2);
    a.bind(taken);
}
