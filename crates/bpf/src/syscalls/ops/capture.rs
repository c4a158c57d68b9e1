//! The op of what is captured in addition to a call's arguments: the thread's name.
//!
//! Invariant: it appends exactly one tail, the empty one where anything fails.

use super::op::*;

/// Bytes of a name with its NUL (TASK_COMM_LEN).
const COMM: i32 = 16;
pub(super) fn comm(e: &mut Emitter<'_>) {
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
