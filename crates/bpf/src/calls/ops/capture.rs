//! Ops of what is captured beside a call's arguments: the thread's name, and stacks.
//!
//! Invariant: as in the module above: exactly one tail, and the empty one where anything fails.

use super::*;
use crate::probes::{FRAMES, USER_STACK};

/// Bytes of a name with its NUL (TASK_COMM_LEN).
const COMM: i32 = 16;
/// Frames of the functions that ops are called back by: where the context of the program is found.
fn context(a: &mut Assembler, to: Reg) {
    a.load(Size::D, to, R10, slot::CTX);
    a.load(Size::D, to, to, slot::CONTEXT);
}

pub(super) fn op(a: &mut Assembler, kind: u8, own_frames: u8) {
    match kind {
        kind::COMM => comm(a),
        // The lowest eight bits of the flags are how many frames are left out.
        kind::KSTACK => stack(a, own_frames.into()),
        _ => stack(a, USER_STACK),
    }
}

fn comm(a: &mut Assembler) {
    let [bounded, bad] = [a.new_label(), a.new_label()];
    a.mov(R1, R10);
    a.alu(Alu::Add, R1, i32::from(slot::KEY));
    a.mov(R2, COMM);
    a.call(Helper::GetCurrentComm);
    place(a, R1, 0);
    a.mov(R2, COMM);
    a.mov(R3, R10);
    a.alu(Alu::Add, R3, i32::from(slot::KEY));
    a.call(Helper::ProbeReadKernelStr);
    a.jump_if(Cond::Sle, R0, 0, bad);
    a.jump_if(Cond::Le, R0, COMM, bounded);
    a.bind(bad);
    place(a, R1, 0);
    a.store(Size::B, R1, 0, 0);
    a.mov(R0, 1);
    a.bind(bounded);
    a.alu(Alu::Add, R8, R0);
    set_cap(a, WHOLE);
}

/// `u16 n`, n × u64.
fn stack(a: &mut Assembler, flags: i32) {
    let [bad, done, bounded] = std::array::from_fn(|_| a.new_label());
    set_cap(a, WHOLE);
    context(a, R1);
    place(a, R2, 2);
    a.load(Size::H, R3, R10, N);
    a.jump_if(Cond::Le, R3, FRAMES, bounded);
    a.mov(R3, FRAMES);
    a.bind(bounded);
    a.alu(Alu::Lsh, R3, 3);
    a.mov(R4, flags);
    a.call(Helper::GetStack);
    a.jump_if(Cond::Sle, R0, 0, bad);
    a.jump_if(Cond::Gt, R0, FRAMES * 8, bad);
    place(a, R1, 0);
    a.mov(R2, R0);
    a.alu(Alu::Rsh, R2, 3);
    a.store(Size::H, R1, 0, R2);
    a.alu(Alu::Add, R8, R0);
    a.alu(Alu::Add, R8, 2);
    a.jump(done);
    // Where there is none, no frames are the truth.
    a.bind(bad);
    place(a, R1, 0);
    a.store(Size::H, R1, 0, 0);
    a.alu(Alu::Add, R8, 2);
    a.bind(done);
}
