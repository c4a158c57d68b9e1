//! Templates of stubs that add to rows of the thread.

use super::*;

const JBE: u8 = 0x76;
const JS: u8 = 0x78;

/// Rows into rax; a count of the function.
const LOAD_COUNTS: Line = Field("mov rax, fs:[COUNTS]", &[0x64, 0x48, 0x8b, 0x04, 0x25], COUNTS, None);
const LOAD_ROWS: Line = Field("mov rcx, fs:[COUNTS]", &[0x64, 0x48, 0x8b, 0x0c, 0x25], COUNTS, None);
const TEST_COUNTS: Line = Code("test rax, rax", &[0x48, 0x85, 0xc0]);
const COUNT_CALL: Line = Row("add qword ptr [rax + ROW], 1", &[0x48, 0x83, 0x80], 0, Some(1));

/// [`Variant::Count`].
pub(super) fn count() -> Vec<Line> {
    let mut lines = vec![At(CallCount), Call(Slow::Count), Jump("jnc", JAE, Count), Jump("jmp", JMP, Done)];
    lines.extend([Undo, At(Entry), SAVE, At(Count), LOAD_COUNTS, TEST_COUNTS, Jump("je", JE, CallCount), COUNT_CALL]);
    lines.extend([At(Done), RESTORE, JUMP_ORIGINAL]);
    lines
}

/// The slow part of an exit.
const CALL_EXIT: [Line; 3] = [At(CallExit), Call(Slow::Exit), Jump("jmp", JMP, Exit)];

/// [`Variant::CountTimed`] and [`Variant::Measured`]. `end`: what they do with the ticks in rax, when `ecx` has the word of the entry below,
/// and the slow part.
pub(super) fn timed(end: Vec<Line>) -> Vec<Line> {
    let word = Line::Entry("mov edx, ENTRY", &[0xba], WRITTEN);
    let mut lines = vec![At(CallCount), Call(Slow::Count), Jump("jnc", JAE, Count), Jump("jmp", JMP, Bypass)];
    lines.extend([At(CallEnter), word, Call(Slow::Enter), Far("jnc", &[0x0f, 0x83], Done)]);
    lines.extend([At(Bypass), RESTORE, JUMP_ORIGINAL]);
    lines.extend([Undo, At(Entry), SAVE, At(Count), LOAD_COUNTS, TEST_COUNTS, Jump("je", JE, CallCount), COUNT_CALL]);
    lines.extend([At(Push), LOAD_SLOT, COMPARE_SLOT, Jump("jae", JAE, CallEnter), LOAD_TOP]);
    lines.extend([COMPARE_FULL, Jump("jae", JAE, CallEnter)]);
    lines.extend(PUSH_ENTRY);
    lines.push(Line::Entry("mov qword ptr [rcx+24], ENTRY", &[0x48, 0xc7, 0x41, 24], WRITTEN));
    lines.extend([WHOLE_TSC, SET_TIME, PUSHED]);
    lines.extend(CHECK_PUSHED);
    lines.extend([At(Done), RESTORE, DROP_ADDRESS, CALL_ORIGINAL]);
    lines.extend([At(Returns), TAKE_SLOT, SAVE, At(Exit), LOAD_SLOT, LOAD_TOP, COMPARE_TOP]);
    lines.extend([Jump("jne", JNE, CallExit), LOAD_ADDRESS, PUT_BACK, At(Restored), LOAD_BELOW, STORE_SLOT]);
    lines.extend([WHOLE_TSC, TAKE_TIME]);
    // The word of the entry below; what is needed of the top entry is in registers when it goes.
    lines.extend([Code("mov ecx, [rcx-40]", &[0x8b, 0x49, 0xd8]), POPPED, At(Left)]);
    lines.extend(end);
    lines.extend(PUSH_AGAIN);
    lines
}

/// The time of a call goes to its row, and off that of its caller.
pub(super) fn add_times() -> Vec<Line> {
    let mut lines = vec![Field("mov rdx, fs:[COUNTS]", &[0x64, 0x48, 0x8b, 0x14, 0x25], COUNTS, None)];
    lines.extend([Code("test rdx, rdx", &[0x48, 0x85, 0xd2]), Jump("je", JE, End)]);
    lines.push(Row("add [rdx + ROW + 8], rax", &[0x48, 0x01, 0x82], 8, None));
    lines.push(Row("add [rdx + ROW + 16], rax", &[0x48, 0x01, 0x82], 16, None));
    // [`WRITTEN`] is the carry flag, [`RECORDED`] the sign.
    lines.extend([Code("add ecx, ecx", &[0x01, 0xc9]), Jump("jnc", JAE, End), Jump("js", JS, End)]);
    lines.push(Code("shl rcx, 4", &[0x48, 0xc1, 0xe1, 4]));
    lines.push(Code("sub [rdx + rcx + 16], rax", &[0x48, 0x29, 0x44, 0x0a, 16]));
    lines.extend([At(End), RESTORE, RET]);
    lines.extend(CALL_EXIT);
    lines
}

/// The duration of a call goes to its row.
pub(super) fn measure() -> Vec<Line> {
    let compare = Code("cmp rdx, rax", &[0x48, 0x39, 0xc2]);
    let complement = Code("not rdx", &[0x48, 0xf7, 0xd2]);
    let mut lines = vec![Minimum("mul qword ptr [rip + MINIMUM]", &[0x48, 0xf7, 0x25]), At(Measure), LOAD_ROWS];
    // The slow parts lie where short jumps reach them. A child of fork has no rows when a call of its parent's returns.
    let test = Code("test rcx, rcx", &[0x48, 0x85, 0xc9]);
    lines.extend([test, Jump("jne", JNE, Rows), At(CallRows), Code("push rdx", &[0x52]), Call(Slow::Count)]);
    lines.extend([Code("pop rdx", &[0x5a]), Jump("jnc", JAE, Measure), Jump("jmp", JMP, End)]);
    lines.extend(CALL_EXIT);
    lines.extend([At(Rows), Row("add qword ptr [rcx + ROW + 8], 1", &[0x48, 0x83, 0x81], 8, Some(1))]);
    lines.push(Row("add [rcx + ROW + 16], rdx", &[0x48, 0x01, 0x91], 16, None));
    lines.extend([At(Most), Row("mov rax, [rcx + ROW + 24]", &[0x48, 0x8b, 0x81], 24, None)]);
    lines.extend([compare, Jump("jbe", JBE, NotMost)]);
    lines.push(Row("cmpxchg [rcx + ROW + 24], rdx", &[0x48, 0x0f, 0xb1, 0x91], 24, None));
    lines.extend([Jump("jne", JNE, Most), At(NotMost), complement]);
    lines.extend([At(Least), Row("mov rax, [rcx + ROW + 32]", &[0x48, 0x8b, 0x81], 32, None)]);
    lines.extend([compare, Jump("jbe", JBE, NotLeast)]);
    lines.push(Row("cmpxchg [rcx + ROW + 32], rdx", &[0x48, 0x0f, 0xb1, 0x91], 32, None));
    lines.extend([Jump("jne", JNE, Least), At(NotLeast), complement]);
    // The highest bit of twice the duration and 1.
    lines.push(Code("lea rax, [rdx + rdx + 1]", &[0x48, 0x8d, 0x44, 0x12, 1]));
    lines.push(Code("bsr rax, rax", &[0x48, 0x0f, 0xbd, 0xc0]));
    lines.push(Row("add qword ptr [rcx + 8*rax + ROW + 40], 1", &[0x48, 0x83, 0x84, 0xc1], 40, Some(1)));
    lines.extend([At(End), RESTORE, RET]);
    lines
}
