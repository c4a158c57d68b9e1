//! Probes at instructions: the slow code that their code calls (`patch::probe`). It writes a record with what the probe's program copies.

use crate::kernel;
use crate::memory::load;
use crate::slow::has_stack;
use crate::thread::{IN_TRACER, Local, local};
use crate::values::{ANY, Frame, HEAD, SMALL, record, word};
use crate::{calls, chunks, heap, vectors};
use abi::shared::VALUES;
use abi::values::{FEW, PROBE_HEAD, REGISTER, REGISTERS, SIMPLE, STACK_HASH, STEPS, WALKS};
use core::arch::global_asm;
use core::mem::offset_of;

// `rax` has the program; at [rsp + 8] is what the program had in it, and above that are 128 bytes of the program's. Registers are pushed so that they
// are in the order of DWARF. Flags are the program's.
//
// Where only registers are to be copied, and all is as it mostly is, the record is written here: as `values::record` does it, with the thread busy, so
// that a handler that comes meanwhile finds no room. Of the two words that say where there is room, a handler may change both until the end is 0:
// then the chunk is another one.
global_asm!(
    ".text",
    ".globl trapline_probe", ".hidden trapline_probe", ".type trapline_probe,@function",
    ".balign 16",
    "trapline_probe:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset rbp, 0",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "pushfq",
    "push r15", "push r14", "push r13", "push r12", "push r11", "push r10", "push r9", "push r8",
    "lea r8, [rbp + {above}]",
    "push r8",
    "push [rbp]",
    "push rdi", "push rsi", "push rbx", "push rcx", "push rdx",
    "push [rbp + 16]",
    "mov rdi, rsp",
    "mov rsi, rax",
    "cld",
    "test dword ptr [rsi + 4], {simple}",
    "jz 5f",
    "mov r8, qword ptr [rip + trapline_thread@GOTTPOFF]",
    "add r8, qword ptr fs:[0]",
    "mov r11d, [r8 + {chunk}]",
    "mov r10, [r8 + {end}]",
    "mov r9, [r8 + {cur}]",
    "lea rax, [r9 + {room}]",
    "cmp rax, r10",
    "ja 5f",
    "cmp dword ptr [r8 + {busy}], 0",
    "jne 5f",
    "rdtsc",
    "cmp edx, [r8 + {high}]",
    "jne 5f",
    "mov [r8 + {in_tracer}], rsp",
    "mov dword ptr [r8 + {busy}], {tracing}",
    "mov qword ptr [r8 + {end}], 0",
    "cmp r9, [r8 + {cur}]",
    "jne 4f",
    "cmp r11d, [r8 + {chunk}]",
    "jne 4f",
    "mov [r9], eax",
    "lea rcx, [r9 + {head}]",
    "lea r11, [rsi + {steps}]",
    "2:",
    "cmp byte ptr [r11], 0",
    "je 3f",
    "movzx eax, byte ptr [r11 + 1]",
    "movzx edx, word ptr [r11 + 2]",
    "mov rax, [rsp + 8*rax - {first}]",
    "mov [rcx], rax",
    "add rcx, rdx",
    "add r11, 8",
    "jmp 2b",
    "3:",
    // What is behind a record is zeros.
    "mov qword ptr [rcx], 0",
    "lea rax, [rcx + 7]",
    "sub rax, r9",
    "and rax, -8",
    "lea edx, [rax - {head}]",
    "mov [r9 + 8], dx",
    "mov edx, [rsi]",
    "lea edx, [rdx + rdx]",
    "or edx, {values}",
    "mov [r9 + 4], edx",
    "add rax, r9",
    // A handler that has forked meanwhile has given up the chunk.
    "cmp dword ptr [r8 + {chunk}], 0",
    "je 7f",
    "mov [r8 + {cur}], rax",
    "mov [r8 + {end}], r10",
    "7:",
    "mov dword ptr [r8 + {busy}], 0",
    "jmp 6f",
    // Nothing was written. The end is not known any more: the thread looks for room.
    "4:",
    "mov dword ptr [r8 + {busy}], 0",
    "5:",
    vectors::save!(),
    "call {function}",
    vectors::restore!(),
    "6:",
    // popfq takes longer than all of the above.
    "mov rax, [rbp - 8]",
    "test eax, 0x400",
    "je 8f",
    "std",
    "8:",
    "mov ecx, eax",
    "shr ecx, 11",
    "and ecx, 1",
    "add cl, 0x7f",
    "mov ah, al",
    "sahf",
    "lea rsp, [rbp - 128]",
    "pop rdx", "pop rcx", "pop rbx", "pop rsi", "pop rdi",
    "lea rsp, [rsp + 16]",
    "pop r8", "pop r9", "pop r10", "pop r11", "pop r12", "pop r13", "pop r14", "pop r15",
    "mov rsp, rbp",
    "pop rbp",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    ".size trapline_probe, .-trapline_probe",
    above = const ABOVE,
    simple = const SIMPLE,
    busy = const offset_of!(Local, busy),
    tracing = const IN_TRACER,
    in_tracer = const offset_of!(Local, in_tracer),
    chunk = const offset_of!(Local, chunk),
    cur = const offset_of!(Local, cur),
    end = const offset_of!(Local, end),
    high = const offset_of!(Local, high),
    room = const HEAD + FEW as u64 + 24,
    head = const HEAD,
    steps = const PROBE_HEAD,
    first = const 8 * REGISTER as u64,
    values = const VALUES,
    function = sym probe,
);

/// From the frame up to the program's stack: rbp, where the code goes on, rax, 128 bytes.
const ABOVE: u64 = 8 * 3 + 128;

unsafe extern "C" {
    safe static trapline_probe: u8;
}

/// The code that the code of probes calls, for [`abi::message::Slow::Probe`].
pub fn code() -> &'static u8 {
    &trapline_probe
}

/// The general registers, in the order of DWARF.
#[repr(C)]
pub struct Registers([u64; REGISTERS]);

/// The numbers of rbp and rsp.
const RBP: usize = 6;
const RSP: usize = 7;

impl Registers {
    /// The program's stack pointer.
    fn sp(&self) -> u64 {
        self.0[RSP]
    }
}

/// What a probe's program copies from.
struct Reached<'r> {
    registers: &'r Registers,
    /// The hash of the stack.
    stack: u64,
}

impl Frame for Reached<'_> {
    #[inline(always)]
    fn place(&self, _: &Local, place: u8, _: i32) -> Option<[u64; 2]> {
        match place {
            STACK_HASH => Some([self.stack, 0]),
            _ => Some([*self.registers.0.get(usize::from(place.checked_sub(REGISTER)?))?, 0]),
        }
    }

    #[inline(always)]
    fn word(&self, local: &Local, from: u64, size: usize) -> u64 {
        const RED_ZONE: u64 = 128;
        let sp = self.registers.sp();
        // The code in front of the probe's place has just written below the stack pointer, and the program above it: the page is there.
        let low = sp - RED_ZONE;
        if (low..sp | 4095).contains(&from) && from + 7 <= sp | 4095 && size <= 8 {
            let mask = if size == 8 { u64::MAX } else { (1 << (8 * size)) - 1 };
            // SAFETY: within the stack, as above.
            return unsafe { load(from) } & mask;
        }
        word(local, from, size)
    }
}

/// The stack of the program, from the instruction of the probe outward.
#[cold]
fn walk(local: &Local, saved: &Registers, program: u64, tsc: u64) -> u64 {
    // SAFETY: the probe's program has it there.
    let instruction = unsafe { load(program + 8) };
    let start = unwind::Registers { pc: instruction, sp: saved.sp(), bp: saved.0[RBP] };
    heap::stack(local, start, true, tsc)
}

#[inline(never)]
fn any(local: &Local, reached: &Reached<'_>, word: u32, tsc: Option<u64>, program: (u64, u64)) {
    record::<ANY>(local, reached, word, tsc, program);
}

/// The program has come to a probe. `at`: the probe's program.
extern "C" fn probe(saved: &Registers, at: u64) {
    let local = local();
    if !has_stack(local) || calls::in_tracer(local, saved.sp()) {
        return chunks::drop_records(local, 1);
    }
    // SAFETY: the collector has put the program there, in an area that is mapped for good.
    let head = unsafe { load(at) };
    let (number, flags) = (head as u32, (head >> 32) as u32);
    let (begin, tsc) = (at + PROBE_HEAD as u64, kernel::tsc());
    let stack = if flags & WALKS == 0 { 0 } else { walk(local, saved, at, tsc) };
    let (bytes, tsc, reached) = ((flags & !(WALKS | SIMPLE)) as usize, Some(tsc), Reached { registers: saved, stack });
    let program = (begin, begin + 8 * STEPS as u64);
    if bytes <= FEW {
        record::<SMALL>(local, &reached, number << 1, tsc, program);
    } else {
        any(local, &reached, number << 1, tsc, program);
    }
}
