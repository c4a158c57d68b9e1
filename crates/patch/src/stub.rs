//! Stubs: the code that a patched function jumps to. One template for each [`Variant`]; a stub is its bytes with a few numbers filled in.
//!
//! This page is the contract between stubs and the agent. `abi::stub` has the offsets that it speaks of, as numbers.
//!
//! # What a stub does
//! `S` is the address of the return address when the function is entered ("the slot"), `A` the return address itself.
//!
//! ```text
//!  F:       push rbx                          the first instruction of F, if it can be repeated, stays
//!           jmp undo                          5 bytes over what follows; jmp entry if rsp has not been lowered
//!
//!  undo:    lea rsp, [rsp+N]                  as at the call; the beginning of F repeats the instruction
//!  entry:   push rax; push rdx; push rcx      the stub's three registers; rsp = S - 24
//!  push:    S < top_slot?                     else ► Slow::Enter
//!           timed variants: top < full?       else ► Slow::Enter
//!           shadow entry {S, A, …} at top; top_slot = S; top += 32
//!           the entry's slot = S?             else ► top -= 32, again
//!  record:  cur < end?                        else ► Slow::Chunk
//!           rdtsc; upper half = high?         else ► Slow::High
//!           [cur] = time, then word; cur += 8
//!  done:    pop rcx; pop rdx; pop rax; lea rsp, [rsp + 8]
//!           call beginning of F               F's return address is `returns`, at S, where A was
//!  returns: lea rsp, [rsp - 8]; push rax; push rdx; push rcx
//!  exit:    top entry's slot = S?             else ► Slow::Exit
//!           [S] = its address; top_slot = slot of the entry below; top -= 32
//!  left:    rdtsc, record as above
//!  end:     pop rcx; pop rdx; pop rax; ret    to A
//! ```
//!
//! call and ret are balanced: the processor's return predictor stays right, and so does a hardware shadow stack.
//!
//! Nothing but rax, rdx, rcx and the flags is touched, and those three are saved and restored at both ends: arguments (AL too), static
//! chain, results in rax, rdx, xmm0, xmm1 and st0 survive, and so do functions whose callers know which registers they leave alone
//! (`-fipa-ra`). The flags have no meaning at an entry or a return. In F the stack pointer and everything above the slot are as
//! without the stub. Nothing is kept below rsp but A, for the two instructions between `done` and F, where the shadow entry has it too;
//! the 128 bytes below rsp survive a signal anyway.
//!
//! # Variants
//! | variant | entry record | exit record | shadow entry |
//! |---|---|---|---|
//! | [`Variant::Paired`] | yes | yes | slot, address, function; marked as written |
//! | [`Variant::Timed`] | late, by [`Slow::Late`] | by [`Slow::Late`] | with time and function |
//! | [`Variant::Entry`] | yes | none | none |
//! | [`Variant::Count`] | none; the calls in the thread's row | none | none |
//! | [`Variant::CountTimed`] | none; the calls in the row | none; the time in the row | with time and function; marked as written |
//! | [`Variant::Called`] | by [`Slow::Call`] | by [`Slow::Return`] | by [`Slow::Call`] |
//! | [`Variant::Measured`] | none; the calls in the row | none; the duration in the row | with time and function; marked as written |
//! | [`Variant::Callers`] | yes, and before it one of S and A | yes | slot, address, time, function; marked as written |
//!
//! `Entry` has no check of the shadow stack: it records and jumps to the beginning of F; it is for
//! modules whose own code walks the stack. `Timed` has at its entry the time and the function in the shadow entry; at its exit, it
//! compares the time since then with the minimum, which is in the area ([`MINIMUM`]).
//!
//! `Count` and `CountTimed` add to rows of the thread ([`abi::thread::Row`]); a thread without rows comes to [`Slow::Count`]. What a call of
//! `CountTimed` has taken is added to its row, and taken from the own time of the function in the entry below, if that is one of
//! `CountTimed` or `Called`. `Called` leaves everything to the slow code.
//!
//! `Measured` adds to rows of another shape ([`abi::thread::Measured`]). Where `Timed` has its minimum, it has the scale: the upper half of
//! ticks times scale is the duration. The longest and the shortest one are exchanged if they are still what was compared, because a handler
//! may have put others there.
//!
//! `Callers` writes both records ([`abi::caller`]) as one: the word of the first is written last, and `cur` goes behind both. What a signal leaves of
//! them when the part is begun anew, the agent zeroes: records end where a word is 0. The time is noted in the shadow entry too, so that who
//! looks at it later knows since when it is there; it is 0 where the record is lost.
//!
//! Shadow entries ([`abi::thread::Shadow`]) are the same for all variants, so that functions of several variants can be on one stack. A
//! return leads to the stub that has made the entry, whatever the function's patch has become since then.
//!
//! # The slow code
//! A stub calls it through a pointer in its area: `call [rip + x]`. In all cases
//!
//! ```text
//!  [rsp]       address in the stub where it goes on: the slow code ends with ret
//!  [rsp + 8]   rcx of the program ┐
//!  [rsp + 16]  rdx of the program │ the stub restores them
//!  [rsp + 24]  rax of the program ┘
//!  [rsp + 32]  the slot: S = rsp + 32
//! ```
//!
//! - rax, rcx, rdx and the flags are free. Every other register survives: r8-r11, xmm/ymm/zmm, mask registers, x87 (a result may be in
//!   st0) and MXCSR included. The direction flag is as the program has it: clear, unless hand-written code calls. rsp is 8 below a
//!   multiple of 16, as at the beginning of any function, if the program keeps to the ABI, which slow code does not rely on. Only memory
//!   below rsp is free.
//! - It answers by the carry flag where this says so; else the flags do not matter.
//!
//! | slow code | called at | it does | carry clear | carry set |
//! |---|---|---|---|---|
//! | [`Slow::Enter`] | entry, `S >= top_slot`, rax = S. A new thread (0 in everything); a tail call (top_slot = S and `[S]` is a stub's `returns`); frames that were left; `top >= full`; edx = the entry's word | ends calls that were left, and removes their entries; pushes `{S, [S], tsc, word}`, sets top and top_slot | goes on at `record`, `Timed` at `done` | neither entry nor record: F runs unobserved (`jmp beginning`), S still has A. For a shadow stack that is full, `busy` |
//! | [`Slow::Chunk`] | entry and exit, `cur >= end` | makes room for at least one record, begins a chunk with a HIGH record | goes back to `record` or `left`: a new time, all checks again | goes on without the record |
//! | [`Slow::High`] | entry and exit, edx:eax = tsc, and edx is not `high` | writes a HIGH record and sets `high`; may call what Chunk calls | as above | as above |
//! | [`Slow::Exit`] | exit, the slot of the top entry is not S; rax = S, rcx = top | brings the entry of S to the top and sets top (not top_slot) | goes back to `exit`, whatever the carry flag | |
//! | [`Slow::Late`] | exit, the top entry is that of S and rax = its duration >= minimum; rcx = top | writes entry records of all entries that are not `written`, lowest first, each with its own time, sets `written`, and then the exit record of the top entry; or counts them. top and top_slot stay | goes on at `pop`, whatever the carry flag | |
//! | [`Slow::Count`] | entry of Count, CountTimed and Measured, no rows; exit of Measured, no rows, with the duration pushed above what is said here | gives the thread its rows | goes on at `count`; at the exit, at `measure` | not counted: goes on at `done`, the timed ones at the beginning of F; at the exit, at `end` |
//! | [`Slow::Call`] | entry of Called; edx = number | pushes the entry of S, calls tracers | goes on at `done` | no entry: F runs unobserved |
//! | [`Slow::Return`] | exit of Called | brings the entry of S to the top, calls tracers, sets `[S]` = A, removes the entry | goes on at `end`, whatever the carry flag | |
//!
//! In areas of functions whose values are captured ([`crate::link::capture`]) the pointers of `Call` and `Return` lead to
//! [`Slow::Arguments`] and [`Slow::Result`], which do the same, and write records with values instead of calling tracers.
//!
//! In a process without chunk (cur = end = 0) each record comes to Slow::Chunk. A thread's first stub of a variant with a shadow stack
//! comes to Slow::Enter first, which need not set cur: Chunk is called next. The first stub of the variant `Entry` comes to Chunk.
//! A stub does not look at `busy`: who sets it also sets top_slot, cur, end and counts to 0, and puts them back.
//!
//! Shadow stacks grow in slow code. A variant that pushes and writes no record looks at `full`, which is so far below the end of what is
//! mapped that a chunk of records has room for their entries: Paired comes to slow code with each chunk, and does not look. Where Enter answers
//! that there is no room, it leaves 0 in top_slot, so that the next entry comes to it again.
//!
//! A call that is *left*, by an exception or a jump, has no exit in its stub. The agent writes its exit record, when it is left or when it
//! finds that out. It takes the function from the shadow entry: of Paired, that has the number of the recording with
//! [`abi::thread::RECORDED`]. In a chain of 64 tail calls, the caller's call ends when it makes another.
//!
//! Below the lowest shadow entry is a sentinel of the same size with `slot = i64::MAX`: an exit reads the slot of the entry below its own
//! as the new top_slot.
//!
//! # Signals
//! A handler may run between any two instructions, and its calls use the same shadow stack and the same chunk. The agent stands in
//! for every handler (sigaction), and looks at the pc that was interrupted before it calls the program's. Stubs are an array at the
//! beginning of the area, so `(pc - area) % size` is the offset in the stub, which [`Layout`] explains:
//!
//! - **`again`**: the pc lies in a part that can be begun anew: the wrapper sets the pc in the ucontext to the part's beginning, and
//!   `top_slot` to the slot of the entry below top (`[top - 32]`). A part reads everything again from the
//!   stack and the thread, and it ends with the one instruction that makes it count, `add [top]`, `sub [top]` or `add [cur]`, so that what a
//!   handler does in between is a complete history before it. A record that has been begun over has a later time: order is kept.
//! - **`commit`**: the pc is at `add [cur], 8`: the record's word is written, and the collector may have read it. The wrapper adds 8 to
//!   `cur` (of `Callers` at the entry, 32) and sets the pc behind the instruction.
//! - **undo**: the wrapper does what the instruction would, `lea rsp, [rsp+N]` or a pop, so that code that unwinds finds the stack as at the call.
//! - Everywhere else nothing is to be done: the registers are the stub's own, on the stack or gone, and thread and shadow stack are whole.
//!   Between a call of slow code and the jump behind it the carry flag is live; a signal frame keeps it.
//!
//! So the parts, from one label to the next, with the instructions that call slow code belonging to the part that they leave:
//!
//! | part | pc is set to | what may have been done already |
//! |---|---|---|
//! | `entry` .. `push` | - | registers saved |
//! | `push` .. `add [top]`, call of Enter | `push` | the entry above top written; top_slot = S. Not top: nobody sees the entry |
//! | `record` .. `add [cur]`, calls of High and Chunk | `record` | the time half of a record, which the collector does not look at yet |
//! | `add [cur]` | behind it, cur += 8 | the record |
//! | `done` .. `exit` | - | F itself is between these |
//! | `exit` .. `left`, call of Exit | `exit` | `[S]` = A, top_slot. The entry is still there |
//! | `left` .. `add [cur]`, `add [cur]` | as at `record` | |
//! | `end` .. ret | - | |
//! | timed: `exit` .. `pop`, calls of Exit and Late | `exit` | nothing |
//! | timed: `pop` .. `end` | `pop` | `[S]` = A, top_slot |
//! | counts: `count` .. `push` or `done`, call of Count | `count` | nothing: the addition is its last instruction |
//! | measured: `measure` .. the first addition | `measure` | nothing |
//!
//! A handler that forks has the thread give its rows up where they are in its chunk: so what has loaded their address is begun anew. Of the
//! additions of a duration it may interrupt one, and the others go to the old rows.
//!
//! A handler that a program installs by a `syscall` instruction of its own has no stand-in. It breaks no call: where it has
//! interrupted a push, the entry on top is another call's, and the push begins anew. Where it has interrupted a record, that record or one of
//! its own may be false.
//!
//! A handler that leaves by siglongjmp, an exception or pthread_exit leaves entries that Enter and Exit remove by their slots, as any
//! longjmp does. A handler on an alternate stack needs a barrier entry: addresses of its stack say nothing about the other. A pc in slow
//! code is the agent's business.
//!
//! # Unwinding
//! [`Layout::frames`] says for each offset where the CFA of the stub is (it is that of F's caller's call: S + 8), and whether the return
//! address is at S or in the shadow stack: there from `returns` until `[S] = A` has been done. At undo, the CFA is N further. Beginnings of
//! functions (behind the stubs in an area) are code of F: [`crate::link`] maps their addresses to those of the originals.
//!
//! Every instruction may be where unwinding begins: the C library's own handler of a cancellation, which the wrapper does not replace,
//! unwinds from where the thread was.

use crate::first;
use abi::caller;
use abi::message::{SLOWS, Slow};
use abi::stub::{self, Layout, UNDO, Variant};
use abi::thread::{COUNTS, CUR, END, FULL, HIGH, RECORDED, TOP, TOP_SLOT, WRITTEN};

/// Bytes of the pointers that follow the stubs of an area: slow code by [`Slow`], then the minimum of timed stubs, in ticks.
pub const POINTERS: usize = 128;
const _: () = assert!(MINIMUM / 8 < abi::values::TABLE && 8 * (abi::values::TABLE + 1) <= POINTERS);
/// Offset of the minimum in the pointers, or of the scale.
pub const MINIMUM: usize = SLOWS * 8;

/// A place in a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Label {
    CallEnter,
    Bypass,
    CallHigh,
    CallChunk,
    Over,
    Entry,
    Push,
    Pushed,
    Record,
    Commit,
    Done,
    Returns,
    Exit,
    Restored,
    Torn,
    Pop,
    Left,
    LeftCommit,
    End,
    CallExit,
    CallLate,
    CallHighLeft,
    CallChunkLeft,
    CallCount,
    Count,
    Measure,
    CallRows,
    Rows,
    Most,
    NotMost,
    Least,
    NotLeast,
}

/// One line of a template, beginning with its text, which the tests give to an assembler.
#[cfg_attr(not(test), expect(dead_code, reason = "only the tests read the texts"))]
#[derive(Clone, Copy, Debug)]
pub(crate) enum Line {
    /// A label.
    At(Label),
    /// Bytes as they are.
    Code(&'static str, &'static [u8]),
    /// Bytes, the offset of a field of the thread, and perhaps an immediate byte.
    Field(&'static str, &'static [u8], i32, Option<u8>),
    /// A short jump with this opcode.
    Jump(&'static str, u8, Label),
    /// A long jump with this opcode.
    Far(&'static str, &'static [u8], Label),
    /// call [rip + pointer of slow code].
    Call(Slow),
    /// Bytes, then the record's word: number << 1, plus this.
    Word(&'static str, &'static [u8], u32),
    /// Bytes, then the word of a shadow entry: the function's number, and these bits.
    Entry(&'static str, &'static [u8], u32),
    /// Bytes, then the distance of a field of the function's row from the first row.
    Row(&'static str, &'static [u8], u32, Option<u8>),
    /// call or jmp to the beginning of the function.
    Original(&'static str, u8),
    /// Bytes, then the distance of the minimum or the scale from the instruction's end.
    Minimum(&'static str, &'static [u8]),
    /// lea rsp, [rsp+N].
    Undo,
}

use Label::{
    Bypass, CallChunk, CallChunkLeft, CallCount, CallEnter, CallExit, CallHigh, CallHighLeft, CallLate, CallRows,
    Commit, Count, Done, End, Entry, Exit, Least, Left, LeftCommit, Measure, Most, NotLeast, NotMost, Over, Pop, Push,
    Pushed, Record, Restored, Returns, Rows, Torn,
};
use Line::{At, Call, Code, Far, Field, Jump, Minimum, Original, Row, Undo, Word};

const JAE: u8 = 0x73;
const JNE: u8 = 0x75;
const JE: u8 = 0x74;
const JC: u8 = 0x72;
const JMP: u8 = 0xeb;

/// push rax; push rdx; push rcx.
const SAVE: Line = Code("push rax; push rdx; push rcx", &[0x50, 0x52, 0x51]);
const RESTORE: Line = Code("pop rcx; pop rdx; pop rax", &[0x59, 0x5a, 0x58]);
const LOAD_SLOT: Line = Code("lea rax, [rsp+24]", &[0x48, 0x8d, 0x44, 0x24, 24]);
const LOAD_TOP: Line = Field("mov rcx, fs:[TOP]", &[0x64, 0x48, 0x8b, 0x0c, 0x25], TOP, None);
const LOAD_CUR: Line = Field("mov rcx, fs:[CUR]", &[0x64, 0x48, 0x8b, 0x0c, 0x25], CUR, None);
const COMPARE_SLOT: Line = Field("cmp rax, fs:[TOP_SLOT]", &[0x64, 0x48, 0x3b, 0x04, 0x25], TOP_SLOT, None);
const COMPARE_FULL: Line = Field("cmp rcx, fs:[FULL]", &[0x64, 0x48, 0x3b, 0x0c, 0x25], FULL, None);
const STORE_SLOT: Line = Field("mov fs:[TOP_SLOT], rax", &[0x64, 0x48, 0x89, 0x04, 0x25], TOP_SLOT, None);
const COMPARE_END: Line = Field("cmp rcx, fs:[END]", &[0x64, 0x48, 0x3b, 0x0c, 0x25], END, None);
const COMPARE_HIGH: Line = Field("cmp edx, fs:[HIGH]", &[0x64, 0x3b, 0x14, 0x25], HIGH, None);
const ADVANCE: Line = Field("add qword ptr fs:[CUR], 8", &[0x64, 0x48, 0x83, 0x04, 0x25], CUR, Some(8));
const ADVANCE_BOTH: Line = Field("add qword ptr fs:[CUR], 32", &[0x64, 0x48, 0x83, 0x04, 0x25], CUR, Some(BOTH));
const RDTSC: Line = Code("rdtsc", &[0x0f, 0x31]);
const WHOLE_TSC: Line =
    Code("rdtsc; shl rdx, 32; or rax, rdx", &[0x0f, 0x31, 0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0]);
const TIME: Line = Code("mov [rcx], eax", &[0x89, 0x01]);
const ENTRY_WORD: Line = Word("mov dword ptr [rcx+4], WORD", &[0xc7, 0x41, 4], 0);
const EXIT_WORD: Line = Word("mov dword ptr [rcx+4], WORD", &[0xc7, 0x41, 4], 1);
/// Bytes of the records of an entry and of its caller.
const BOTH: u8 = caller::SIZE as u8 + 8;
/// The record of an entry, behind that of its caller; rcx: the end of both.
const CALLER_AND_ENTRY: [Line; 13] = [
    Code("mov [rcx-32], eax", &[0x89, 0x41, 0xe0]),
    Code("mov [rcx-8], eax", &[0x89, 0x41, 0xf8]),
    Word("mov dword ptr [rcx-4], WORD", &[0xc7, 0x41, 0xfc], 0),
    Code("shl rdx, 32; or rdx, rax", &[0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xc2]),
    Code("mov rax, [rsp+24]", &[0x48, 0x8b, 0x44, 0x24, 24]),
    Code("shl rax, 16", &[0x48, 0xc1, 0xe0, 16]),
    Code("mov al, 14", &[0xb0, caller::LEN]),
    Code("mov [rcx-24], rax", &[0x48, 0x89, 0x41, 0xe8]),
    LOAD_SLOT,
    Code("mov [rcx-16], rax", &[0x48, 0x89, 0x41, 0xf0]),
    Field("mov rax, fs:[TOP]", &[0x64, 0x48, 0x8b, 0x04, 0x25], TOP, None),
    Code("mov [rax-16], rdx", &[0x48, 0x89, 0x50, 0xf0]),
    Code("mov dword ptr [rcx-28], 0xfffffffe", &[0xc7, 0x41, 0xe4, 0xfe, 0xff, 0xff, 0xff]),
];
const _: () = assert!(caller::WORD == 0xffff_fffe && BOTH == 32);
const DROP_ADDRESS: Line = Code("lea rsp, [rsp+8]", &[0x48, 0x8d, 0x64, 0x24, 8]);
const TAKE_SLOT: Line = Code("lea rsp, [rsp-8]", &[0x48, 0x8d, 0x64, 0x24, 0xf8]);
const PUSH_ENTRY: [Line; 4] = [
    Code("mov [rcx], rax", &[0x48, 0x89, 0x01]),
    STORE_SLOT,
    Code("mov rax, [rsp+24]", &[0x48, 0x8b, 0x44, 0x24, 24]),
    Code("mov [rcx+8], rax", &[0x48, 0x89, 0x41, 8]),
];
const PUT_BACK: Line = Code("mov [rsp+24], rax", &[0x48, 0x89, 0x44, 0x24, 24]);
const RET: Line = Code("ret", &[0xc3]);
const CALL_ORIGINAL: Line = Original("call", 0xe8);
const JUMP_ORIGINAL: Line = Original("jmp", 0xe9);
const PUSHED: Line = Field("add qword ptr fs:[TOP], 32", &[0x64, 0x48, 0x83, 0x04, 0x25], TOP, Some(32));
const POPPED: Line = Field("sub qword ptr fs:[TOP], 32", &[0x64, 0x48, 0x83, 0x2c, 0x25], TOP, Some(32));
/// Compares the top entry's slot with S, and puts its address back; then top goes to the entry below.
const COMPARE_TOP: Line = Code("cmp [rcx-32], rax", &[0x48, 0x39, 0x41, 0xe0]);
const LOAD_ADDRESS: Line = Code("mov rax, [rcx-24]", &[0x48, 0x8b, 0x41, 0xe8]);
const LOAD_BELOW: Line = Code("mov rax, [rcx-64]", &[0x48, 0x8b, 0x41, 0xc0]);

const TAKE_TIME: Line = Code("sub rax, [rcx-16]", &[0x48, 0x2b, 0x41, 0xf0]);
const SET_TIME: Line = Code("mov [rcx+16], rax", &[0x48, 0x89, 0x41, 16]);

/// Looks whether the entry on top is the one that was pushed: a handler without stand-in may have interrupted the push, and its calls have put
/// theirs there.
const CHECK_PUSHED: [Line; 4] =
    [At(Pushed), LOAD_SLOT, Code("cmp [rcx], rax", &[0x48, 0x39, 0x01]), Far("jne", &[0x0f, 0x85], Torn)];
/// Pushes it again, where the entry is another one.
const PUSH_AGAIN: [Line; 3] = [At(Torn), POPPED, Far("jmp", &[0xe9], Push)];

/// A slow call of a record and what follows it: again, or on without it.
const fn slow_record(call: Label, slow: Slow, again: Label, on: Label) -> [Line; 4] {
    [At(call), Call(slow), Jump("jnc", JAE, again), Jump("jmp", JMP, on)]
}

/// What a variant consists of, in order. Slow parts of the entry lie before it, those of the exit behind, so that all jumps are short.
fn lines(variant: Variant) -> Vec<Line> {
    match variant {
        Variant::Count => return rows::count(),
        Variant::CountTimed => return rows::timed(rows::add_times()),
        Variant::Measured => return rows::timed(rows::measure()),
        Variant::Called => return called(),
        Variant::Paired | Variant::Timed | Variant::Entry | Variant::Callers => {}
    }
    let mut lines = vec![];
    let timed = variant == Variant::Timed;
    let shadow = variant != Variant::Entry;
    if shadow {
        let word = if timed { ENTER_WORD } else { Line::Entry("mov edx, ENTRY", &[0xba], WRITTEN | RECORDED) };
        let on = if timed { Done } else { Record };
        lines.extend([At(CallEnter), word, Call(Slow::Enter), Jump("jnc", JAE, on)]);
        lines.extend([At(Bypass), RESTORE, JUMP_ORIGINAL]);
    }
    if !timed {
        // The distance to `done` is too long for a short jump.
        lines.extend(slow_record(CallHigh, Slow::High, Record, Over));
        let [call, slow, again, _] = slow_record(CallChunk, Slow::Chunk, Record, Over);
        lines.extend([call, slow, again, At(Over), Far("jmp", &[0xe9], Done)]);
    }
    lines.extend([Undo, At(Entry), SAVE]);
    if shadow {
        lines.extend([At(Push), LOAD_SLOT, COMPARE_SLOT, Jump("jae", JAE, CallEnter), LOAD_TOP]);
        if timed {
            lines.extend([COMPARE_FULL, Jump("jae", JAE, CallEnter)]);
        }
        lines.extend(PUSH_ENTRY);
        // The sign is extended: the upper half, the flags, is all ones of an entry that is marked as written.
        if timed {
            lines.push(Line::Entry("mov qword ptr [rcx+24], ENTRY", &[0x48, 0xc7, 0x41, 24], 0));
            lines.extend([WHOLE_TSC, SET_TIME]);
        } else {
            let bits = WRITTEN | RECORDED;
            lines.push(Line::Entry("mov qword ptr [rcx+24], ENTRY", &[0x48, 0xc7, 0x41, 24], bits));
        }
        if variant == Variant::Callers {
            lines.extend([Code("xor eax, eax", &[0x31, 0xc0]), SET_TIME]);
        }
        lines.push(PUSHED);
        lines.extend(CHECK_PUSHED);
    }
    if variant == Variant::Callers {
        let end = Code("add rcx, 32", &[0x48, 0x83, 0xc1, BOTH]);
        lines.extend([At(Record), LOAD_CUR, end, COMPARE_END, Far("ja", &[0x0f, 0x87], CallChunk)]);
        lines.extend([RDTSC, COMPARE_HIGH, Far("jne", &[0x0f, 0x85], CallHigh)]);
        lines.extend(CALLER_AND_ENTRY);
        lines.extend([At(Commit), ADVANCE_BOTH]);
    } else if !timed {
        record(&mut lines, [Record, Commit], [CallHigh, CallChunk], ENTRY_WORD);
    }
    lines.extend([At(Done), RESTORE]);
    if !shadow {
        lines.push(JUMP_ORIGINAL);
        return lines;
    }
    lines.extend([DROP_ADDRESS, CALL_ORIGINAL, At(Returns), TAKE_SLOT, SAVE, At(Exit), LOAD_SLOT, LOAD_TOP]);
    lines.extend([COMPARE_TOP, Jump("jne", JNE, CallExit)]);
    if timed {
        lines.push(WHOLE_TSC);
        lines.extend([TAKE_TIME, Minimum("cmp rax, [rip + MINIMUM]", &[0x48, 0x3b, 0x05]), Jump("jae", JAE, CallLate)]);
        lines.extend([At(Pop), LOAD_TOP]);
    }
    lines.extend([LOAD_ADDRESS, PUT_BACK, At(Restored), LOAD_BELOW, STORE_SLOT, POPPED]);
    if !timed {
        record(&mut lines, [Left, LeftCommit], [CallHighLeft, CallChunkLeft], EXIT_WORD);
    }
    lines.extend([At(End), RESTORE, RET, At(CallExit)]);
    lines.extend([Call(Slow::Exit), Jump("jmp", JMP, Exit)]);
    if timed {
        lines.extend([At(CallLate), Call(Slow::Late), Jump("jmp", JMP, Pop)]);
    } else {
        lines.extend(slow_record(CallChunkLeft, Slow::Chunk, Left, End));
        lines.extend(slow_record(CallHighLeft, Slow::High, Left, End));
    }
    lines.extend(PUSH_AGAIN);
    lines
}

const ENTER_WORD: Line = Line::Entry("mov edx, ENTRY", &[0xba], 0);

/// [`Variant::Called`].
fn called() -> Vec<Line> {
    let mut lines = vec![At(Bypass), RESTORE, JUMP_ORIGINAL];
    lines.extend([Undo, At(Entry), SAVE, ENTER_WORD, Call(Slow::Call), Jump("jc", JC, Bypass)]);
    lines.extend([At(Done), RESTORE, DROP_ADDRESS, CALL_ORIGINAL]);
    lines.extend([At(Returns), TAKE_SLOT, SAVE, At(Exit), Call(Slow::Return), At(Restored), At(End), RESTORE, RET]);
    lines
}

/// A record: its beginning and the instruction that makes it count, its slow calls, its word.
fn record(lines: &mut Vec<Line>, [start, commit]: [Label; 2], [high, chunk]: [Label; 2], word: Line) {
    // The room first: a session that is stopped reads no clock.
    lines.extend([At(start), LOAD_CUR, COMPARE_END, Jump("jae", JAE, chunk)]);
    let to_high = if high == CallHigh { Far("jne", &[0x0f, 0x85], high) } else { Jump("jne", JNE, high) };
    lines.extend([RDTSC, COMPARE_HIGH, to_high, TIME, word, At(commit), ADVANCE]);
}

/// What is filled in for each stub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fix {
    /// The record's word: number << 1, plus this.
    Word(u32),
    /// The word of a shadow entry: the number, with these bits.
    Entry(u32),
    /// A field of the function's row.
    Row(u32),
    /// Distance to the function's beginning.
    Original,
    /// Distance to an offset of the pointers.
    Pointer(u32),
}

/// A template for one variant and one place of the thread's data.
#[derive(Debug)]
pub struct Template {
    bytes: Vec<u8>,
    fixes: Vec<(u32, Fix)>,
    layout: &'static Layout,
    /// Bytes of a function's row.
    row: usize,
}

impl Template {
    /// The template. `tls`: offset of the thread's data from its `fs` base.
    pub fn new(variant: Variant, tls: i32) -> Template {
        let lines = lines(variant);
        let layout = stub::layout(variant);
        let (labels, _) = places(&lines);
        let mut bytes = Vec::with_capacity(layout.size as usize);
        let mut fixes = vec![];
        let hole = |bytes: &mut Vec<u8>, fixes: &mut Vec<_>, fix| {
            fixes.push((bytes.len() as u32, fix));
            bytes.extend([0; 4]);
        };
        bytes.resize(padding(&lines), 0xcc);
        for line in &lines {
            match *line {
                At(_) => {}
                Code(_, code) => bytes.extend(code),
                Field(_, code, field, immediate) => {
                    bytes.extend(code);
                    bytes.extend((tls.wrapping_add(field)).to_le_bytes());
                    bytes.extend(immediate);
                }
                Jump(_, opcode, to) => {
                    let next = bytes.len() as i64 + 2;
                    let to = labels.iter().find(|(l, _)| *l == to).map_or(next, |(_, at)| *at as i64);
                    bytes.extend([opcode, (to - next) as i8 as u8]);
                }
                Far(_, opcode, to) => {
                    let next = (bytes.len() + opcode.len()) as i64 + 4;
                    let to = labels.iter().find(|(l, _)| *l == to).map_or(next, |(_, at)| *at as i64);
                    bytes.extend(opcode);
                    bytes.extend(((to - next) as i32).to_le_bytes());
                }
                Call(slow) => {
                    bytes.extend([0xff, 0x15]);
                    hole(&mut bytes, &mut fixes, Fix::Pointer(slow as u32 * 8));
                }
                Word(_, code, exit) => {
                    bytes.extend(code);
                    hole(&mut bytes, &mut fixes, Fix::Word(exit));
                }
                Line::Entry(_, code, written) => {
                    bytes.extend(code);
                    hole(&mut bytes, &mut fixes, Fix::Entry(written));
                }
                Row(_, code, field, immediate) => {
                    bytes.extend(code);
                    hole(&mut bytes, &mut fixes, Fix::Row(field));
                    bytes.extend(immediate);
                }
                Original(_, opcode) => {
                    bytes.push(opcode);
                    hole(&mut bytes, &mut fixes, Fix::Original);
                }
                Minimum(_, code) => {
                    bytes.extend(code);
                    hole(&mut bytes, &mut fixes, Fix::Pointer(MINIMUM as u32));
                }
                Undo => bytes.extend([0; UNDO as usize]),
            }
        }
        bytes.resize(bytes.len().next_multiple_of(16), 0xcc);
        Template { bytes, fixes, layout, row: row_of(variant) }
    }

    /// Bytes of a stub: a multiple of 16.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Where its parts are.
    pub fn layout(&self) -> &'static Layout {
        self.layout
    }

    /// Writes a stub, which will lie at `at`, for a function with this number and this beginning; the pointers will be at `pointers`.
    /// All three lie within 2 GiB of each other. `undo`: what takes back the effects of the instructions in front of the patch.
    pub fn write(&self, out: &mut [u8], at: u64, number: u32, original: u64, pointers: u64, undo: first::Undo) {
        out.copy_from_slice(&self.bytes);
        out[(self.layout.entry - UNDO) as usize..][..UNDO as usize].copy_from_slice(&undo.code());
        for (offset, fix) in &self.fixes {
            let next = at.wrapping_add(u64::from(*offset) + 4);
            let value = match fix {
                Fix::Word(exit) => number << 1 | exit,
                Fix::Entry(written) => number | written,
                Fix::Row(field) => number.wrapping_mul(self.row as u32).wrapping_add(*field),
                Fix::Original => original.wrapping_sub(next) as u32,
                Fix::Pointer(offset) => pointers.wrapping_add(u64::from(*offset)).wrapping_sub(next) as u32,
            };
            out[*offset as usize..][..4].copy_from_slice(&value.to_le_bytes());
        }
    }
}

/// Bytes of a row of those that a variant adds to.
pub const fn row_of(variant: Variant) -> usize {
    match variant {
        Variant::Measured => size_of::<abi::thread::Measured>(),
        _ => size_of::<abi::thread::Row>(),
    }
}

/// How long a line is.
fn length(line: &Line) -> usize {
    match line {
        At(_) => 0,
        Code(_, code) => code.len(),
        Field(_, code, _, immediate) => code.len() + 4 + usize::from(immediate.is_some()),
        Row(_, code, _, immediate) => code.len() + 4 + usize::from(immediate.is_some()),
        Jump(..) => 2,
        Far(_, opcode, _) => opcode.len() + 4,
        Call(_) => 6,
        Word(_, code, _) | Line::Entry(_, code, _) | Minimum(_, code) => code.len() + 4,
        Original(..) => 5,
        Undo => UNDO as usize,
    }
}

/// Bytes before the first line, so that the entry is at a multiple of 16.
fn padding(lines: &[Line]) -> usize {
    let before: usize = lines.iter().take_while(|l| !matches!(l, At(Entry))).map(length).sum();
    before.next_multiple_of(16) - before
}

/// Offsets of the labels, and the end.
fn places(lines: &[Line]) -> (Vec<(Label, usize)>, usize) {
    let mut at = padding(lines);
    let mut labels = vec![];
    for line in lines {
        if let At(label) = line {
            labels.push((*label, at));
        }
        at += length(line);
    }
    (labels, at)
}

mod rows;
#[cfg(test)]
mod tests;
