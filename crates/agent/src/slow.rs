//! The slow code of stubs. `patch::stub` has the contract: registers, stack, what each does, and what it answers by the carry flag.
//!
//! In assembly: everything that the program may have in registers is saved, but for the upper halves of vectors, which code that is
//! compiled for the base of x86_64 leaves alone. Then the Rust part gets the frame of the stub.

use crate::child::State;
use crate::entries::Entry;
use crate::kernel;
use crate::thread::{self, IN_TRACER, Local, local};
use crate::{child, chunks, permits, record, shadow, shared, vectors};
use abi::shared::Control;
use core::arch::global_asm;
use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;

/// What the stub has pushed, from the return address upwards.
#[repr(C)]
struct Frame {
    resume: u64,
    rcx: u64,
    rdx: u64,
    rax: u64,
    /// The slot: the return address of the function.
    address: u64,
}

impl Frame {
    fn slot(&self) -> u64 {
        &raw const self.address as u64
    }
}

macro_rules! slow {
    ($($name:literal => $function:path;)*) => {$(
        global_asm!(
            ".text",
            concat!(".globl ", $name), concat!(".hidden ", $name), concat!(".type ", $name, ",@function"),
            ".balign 16",
            concat!($name, ":"),
            ".cfi_startproc",
            "push rbp",
            ".cfi_adjust_cfa_offset 8",
            ".cfi_rel_offset rbp, 0",
            "mov rbp, rsp",
            ".cfi_def_cfa_register rbp",
            "pushfq",
            "push rsi", "push rdi", "push r8", "push r9", "push r10", "push r11",
            "cld",
            vectors::save!(),
            "lea rdi, [rbp+8]",
            "mov esi, edx",
            "call {function}",
            vectors::restore!(),
            "lea rsp, [rbp-56]",
            "pop r11", "pop r10", "pop r9", "pop r8", "pop rdi", "pop rsi",
            // Of the flags the direction alone matters. The trap flag is not put back: a debugger that stepped here may have gone.
            "test dword ptr [rsp], 0x400",
            "je 7f",
            "std",
            "7:",
            "lea rsp, [rsp+8]",
            "pop rbp",
            ".cfi_def_cfa rsp, 8",
            // Carry: the answer is not 0.
            "neg al",
            "ret",
            ".cfi_endproc",
            concat!(".size ", $name, ", .-", $name),
            function = sym $function,
        );
    )*};
}

slow! {
    "trapline_room" => chunk;
    "trapline_enter" => enter;
    "trapline_exit" => exit;
    "trapline_high" => high;
    "trapline_late" => late;
    "trapline_count" => count;
}

// Most records come here while the session is stopped: then nothing is to be done, and no register needs saving. A child of fork that has
// no memory of its own yet, and a thread that has a chunk to give up, go on to the rest.
global_asm!(
    ".text",
    ".globl trapline_chunk",
    ".hidden trapline_chunk",
    ".type trapline_chunk,@function",
    ".balign 16",
    "trapline_chunk:",
    ".cfi_startproc",
    "mov rcx, qword ptr [rip + {shared}]",
    "test rcx, rcx",
    "jz 3f",
    "cmp dword ptr [rcx + {running}], 0",
    "jne 3f",
    "mov rcx, qword ptr [rip + trapline_thread@GOTTPOFF]",
    "cmp dword ptr fs:[rcx + {chunk}], 0",
    "jne 3f",
    // As `thread::has_room`.
    "mov rdx, qword ptr fs:[rcx + {top}]",
    "test rdx, rdx",
    "jz 4f",
    "cmp rdx, qword ptr fs:[rcx + {full}]",
    "jae 3f",
    "4:",
    "mov rcx, qword ptr [rip + {state}]",
    "test rcx, rcx",
    "jz 2f",
    "cmp dword ptr [rcx + {asked}], {done}",
    "jne 3f",
    "2:",
    "stc",
    "ret",
    "3:",
    "jmp trapline_room",
    ".cfi_endproc",
    ".size trapline_chunk, .-trapline_chunk",
    shared = sym shared::SHARED,
    running = const offset_of!(Control, running),
    chunk = const offset_of!(Local, chunk),
    full = const offset_of!(Local, full),
    top = const offset_of!(Local, top),
    state = sym child::STATE,
    asked = const offset_of!(State, asked),
    done = const child::DONE,
);

unsafe extern "C" {
    safe static trapline_chunk: u8;
    safe static trapline_enter: u8;
    safe static trapline_exit: u8;
    safe static trapline_high: u8;
    safe static trapline_late: u8;
    safe static trapline_count: u8;
}

/// Where a stub comes for a chunk, at an entry, at an exit, at the end of the shadow stack, late, and for counts.
pub fn code() -> [&'static u8; 6] {
    [&trapline_chunk, &trapline_enter, &trapline_exit, &trapline_high, &trapline_late, &trapline_count]
}

/// Bytes of the longest record of a stub, with what is before it.
const LONGEST: u64 = abi::caller::SIZE as u64 + 8;

/// The answer with the carry flag clear, and set.
pub const CLEAR: u8 = 0;
pub const SET: u8 = 1;

/// [`Slow::Chunk`]: room for a record, or the record is counted.
extern "C" fn chunk(_: &Frame, _: u32) -> u8 {
    let local = local();
    if local.busy.load(Relaxed) != 0 || !thread::has_room(local) || chunks::hopeless(local) {
        chunks::drop_records(local, 1);
        return SET;
    }
    let mask = kernel::block();
    let room = chunks::make_room(local, LONGEST, mask);
    if !room {
        chunks::drop_records(local, 1);
    }
    kernel::set_mask(mask);
    if room { CLEAR } else { SET }
}

/// [`Slow::High`]: a record with the new upper half.
extern "C" fn high(_: &Frame, _: u32) -> u8 {
    let local = local();
    if local.busy.load(Relaxed) != 0 || !thread::has_room(local) || chunks::hopeless(local) {
        chunks::drop_records(local, 1);
        return SET;
    }
    let mask = kernel::block();
    let room = chunks::make_room(local, 16, mask);
    let high = (kernel::tsc() >> 32) as u32;
    if !room {
        chunks::drop_records(local, 1);
    } else if local.high.load(Relaxed) != high {
        chunks::write_high(local, high);
    }
    kernel::set_mask(mask);
    if room { CLEAR } else { SET }
}

/// [`Slow::Enter`].
extern "C" fn enter(frame: &Frame, word: u32) -> u8 {
    let local = local();
    // SAFETY: the stub has just been called, and the thread has a shadow stack.
    let push = || unsafe { shadow::push(local, frame.slot(), word, true) };
    if has_stack(local) && local.busy.load(Relaxed) == 0 && push() {
        return CLEAR;
    }
    // Its entry and its exit. What tracers call is not traced.
    if local.busy.load(Relaxed) != IN_TRACER {
        chunks::drop_records(local, 2);
    }
    SET
}

/// Whether the thread has a shadow stack; a new one gets it.
pub fn has_stack(local: &Local) -> bool {
    if local.top.load(Relaxed) != 0 {
        return true;
    }
    if local.without.load(Relaxed) != 0 || !permits::records() {
        return false;
    }
    let mask = kernel::block();
    let there = thread::enter(local);
    kernel::set_mask(mask);
    there
}

/// [`Slow::Exit`].
extern "C" fn exit(frame: &Frame, _: u32) -> u8 {
    shadow::bring(local(), frame.slot());
    CLEAR
}

/// [`Slow::Late`]: the call at the top took long enough.
extern "C" fn late(_: &Frame, _: u32) -> u8 {
    let local = local();
    // SAFETY: the stub has an entry for the call.
    let entry = unsafe { Entry::top(local) };
    record::write_late(local, entry, (entry.word() as u32) << 1 | 1);
    CLEAR
}

/// Gives a thread rows of its own, or in the memory of a session that keeps sums.
fn gives_rows(local: &Local) -> bool {
    if shared::sums() != 0 {
        return chunks::give_rows(local);
    }
    let mask = kernel::block();
    let given = thread::give_counts(local);
    kernel::set_mask(mask);
    given
}

/// [`Slow::Count`]: the thread gets its rows.
extern "C" fn count(_: &Frame, _: u32) -> u8 {
    let local = local();
    if local.busy.load(Relaxed) == 0 && permits::records() && has_stack(local) && gives_rows(local) {
        return CLEAR;
    }
    if shared::sums() != 0 {
        chunks::drop_records(local, 1);
    }
    thread::miss();
    SET
}
