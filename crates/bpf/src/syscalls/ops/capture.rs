//! Ops of what is captured in addition to a call's arguments: the thread's name, and stacks.
//!
//! Invariant: each op appends exactly one tail, the empty one where anything fails.

use super::op::*;
use crate::frame::{FRAMES, USER_STACK};

/// Bytes of a name with its NUL (TASK_COMM_LEN).
const COMM: i32 = 16;
/// `to` = the context of the program, from the frame that called the op back.
fn context(e: &mut Emitter<'_>, to: Reg) {
    e.load_slot(to, slot::CTX);
    e.load(Size::D, to, to, slot::CONTEXT);
}

pub(super) fn op(e: &mut Emitter<'_>, kind: u8, own_frames: u8) {
    match kind {
        kind::COMM => comm(e),
        // The lowest eight bits of the flags are how many frames are skipped.
        kind::KSTACK => stack(e, own_frames.into()),
        _ => stack(e, USER_STACK),
    }
}

fn comm(e: &mut Emitter<'_>) {
    let [bounded, bad] = [e.new_label(), e.new_label()];
    e.slot_address(R1, slot::KEY);
    e.mov(R2, COMM);
    e.call(Helper::GetCurrentComm);
    e.place(R1, 0);
    e.mov(R2, COMM);
    e.slot_address(R3, slot::KEY);
    e.call(Helper::ProbeReadKernelStr);
    e.jump_if(Cond::Sle, R0, 0, bad);
    e.jump_if(Cond::Le, R0, COMM, bounded);
    e.bind(bad);
    e.place(R1, 0);
    e.store(Size::B, R1, 0, 0);
    e.mov(R0, 1);
    e.bind(bounded);
    e.alu(Alu::Add, reg::END, R0);
    set_cap(e, WHOLE);
}

/// `u16 n`, n × u64.
fn stack(e: &mut Emitter<'_>, flags: i32) {
    let [bad, done, bounded] = std::array::from_fn(|_| e.new_label());
    set_cap(e, WHOLE);
    context(e, R1);
    e.place(R2, 2);
    e.load(Size::H, R3, R10, N);
    e.jump_if(Cond::Le, R3, FRAMES, bounded);
    e.mov(R3, FRAMES);
    e.bind(bounded);
    e.alu(Alu::Lsh, R3, 3);
    e.mov(R4, flags);
    e.call(Helper::GetStack);
    e.jump_if(Cond::Sle, R0, 0, bad);
    e.jump_if(Cond::Gt, R0, FRAMES * 8, bad);
    e.place(R1, 0);
    e.mov(R2, R0);
    e.alu(Alu::Rsh, R2, 3);
    e.store(Size::H, R1, 0, R2);
    e.alu(Alu::Add, reg::END, R0);
    e.alu(Alu::Add, reg::END, 2);
    e.jump(done);
    // Where there is no stack, it has no frames.
    e.bind(bad);
    e.place(R1, 0);
    e.store(Size::H, R1, 0, 0);
    e.alu(Alu::Add, reg::END, 2);
    e.bind(done);
}
