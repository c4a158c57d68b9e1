//! Calls of functions with tracers: the slow code of stubs of the variant Called.
//!
//! Tracers are called in the order of enabling when a function begins, in reverse when it returns. The entry of the call in the shadow
//! stack says which tracers have seen its beginning, and in which epoch: the epoch changes whenever a tracer is enabled, so that one that
//! has come later, in the same place, is not taken for it. The list may change between any two instructions, while a thread is here.

use crate::entries::Entry;
use crate::frame::Frame;
use crate::kernel;
use crate::slow::{CLEAR, SET, has_stack};
use crate::thread::{IN_TRACER, Local, local};
use crate::{checks, chunks, counts, entries, record, shadow, sites, thread, tracers};
use abi::built_in::Kind;
use abi::thread::WRITTEN;
use core::sync::atomic::Ordering::Relaxed;

macro_rules! slow {
    ($($name:literal => $function:path;)*) => {$(
        core::arch::global_asm!(
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
            "push rbx", "push r12", "push r13", "push r14", "push r15",
            ".cfi_offset rbx, -80",
            ".cfi_offset r12, -88",
            ".cfi_offset r13, -96",
            ".cfi_offset r14, -104",
            ".cfi_offset r15, -112",
            "cld",
            "mov rdi, rsp",
            "mov esi, edx",
            "and rsp, -64",
            "sub rsp, 512",
            "mov r12, rsp",
            "mov r14d, [rip + {wide}]",
            "cmp r14d, {avx}",
            "je 4f",
            "movaps [rsp], xmm0", "movaps [rsp+32], xmm1", "movaps [rsp+64], xmm2", "movaps [rsp+96], xmm3",
            "movaps [rsp+128], xmm4", "movaps [rsp+160], xmm5", "movaps [rsp+192], xmm6", "movaps [rsp+224], xmm7",
            "movaps [rsp+256], xmm8", "movaps [rsp+288], xmm9", "movaps [rsp+320], xmm10", "movaps [rsp+352], xmm11",
            "movaps [rsp+384], xmm12", "movaps [rsp+416], xmm13", "movaps [rsp+448], xmm14", "movaps [rsp+480], xmm15",
            "test r14d, r14d",
            "je 2f",
            "sub rsp, {area}",
            "xor eax, eax",
            "mov [rsp+512], rax", "mov [rsp+520], rax", "mov [rsp+528], rax", "mov [rsp+536], rax",
            "mov [rsp+544], rax", "mov [rsp+552], rax", "mov [rsp+560], rax", "mov [rsp+568], rax",
            "mov eax, {parts}",
            "xor edx, edx",
            "xsavec [rsp]",
            "2:",
            "call {function}",
            "mov r15d, eax",
            "test r14d, r14d",
            "je 3f",
            "mov eax, {parts}",
            "xor edx, edx",
            "xrstor [rsp]",
            "mov rsp, r12",
            "3:",
            "movaps xmm0, [rsp]", "movaps xmm1, [rsp+32]", "movaps xmm2, [rsp+64]", "movaps xmm3, [rsp+96]",
            "movaps xmm4, [rsp+128]", "movaps xmm5, [rsp+160]", "movaps xmm6, [rsp+192]", "movaps xmm7, [rsp+224]",
            "movaps xmm8, [rsp+256]", "movaps xmm9, [rsp+288]", "movaps xmm10, [rsp+320]", "movaps xmm11, [rsp+352]",
            "movaps xmm12, [rsp+384]", "movaps xmm13, [rsp+416]", "movaps xmm14, [rsp+448]", "movaps xmm15, [rsp+480]",
            "jmp 6f",
            "4:",
            "vmovups [rsp], ymm0", "vmovups [rsp+32], ymm1", "vmovups [rsp+64], ymm2", "vmovups [rsp+96], ymm3",
            "vmovups [rsp+128], ymm4", "vmovups [rsp+160], ymm5", "vmovups [rsp+192], ymm6", "vmovups [rsp+224], ymm7",
            "vmovups [rsp+256], ymm8", "vmovups [rsp+288], ymm9", "vmovups [rsp+320], ymm10", "vmovups [rsp+352], ymm11",
            "vmovups [rsp+384], ymm12", "vmovups [rsp+416], ymm13", "vmovups [rsp+448], ymm14", "vmovups [rsp+480], ymm15",
            // Whether any upper half is in use: if not, none is left in use, because that makes SSE code slow.
            "vorps ymm0, ymm0, ymm1", "vorps ymm2, ymm2, ymm3", "vorps ymm4, ymm4, ymm5", "vorps ymm6, ymm6, ymm7",
            "vorps ymm8, ymm8, ymm9", "vorps ymm10, ymm10, ymm11", "vorps ymm12, ymm12, ymm13", "vorps ymm14, ymm14, ymm15",
            "vorps ymm0, ymm0, ymm2", "vorps ymm4, ymm4, ymm6", "vorps ymm8, ymm8, ymm10", "vorps ymm12, ymm12, ymm14",
            "vorps ymm0, ymm0, ymm4", "vorps ymm8, ymm8, ymm12", "vorps ymm0, ymm0, ymm8",
            "vextractf128 xmm0, ymm0, 1",
            "xor ebx, ebx",
            "vptest xmm0, xmm0",
            "setne bl",
            "vzeroupper",
            "call {function}",
            "mov r15d, eax",
            "vzeroupper",
            "test ebx, ebx",
            "jne 5f",
            "vmovups xmm0, [rsp]", "vmovups xmm1, [rsp+32]", "vmovups xmm2, [rsp+64]", "vmovups xmm3, [rsp+96]",
            "vmovups xmm4, [rsp+128]", "vmovups xmm5, [rsp+160]", "vmovups xmm6, [rsp+192]", "vmovups xmm7, [rsp+224]",
            "vmovups xmm8, [rsp+256]", "vmovups xmm9, [rsp+288]", "vmovups xmm10, [rsp+320]", "vmovups xmm11, [rsp+352]",
            "vmovups xmm12, [rsp+384]", "vmovups xmm13, [rsp+416]", "vmovups xmm14, [rsp+448]", "vmovups xmm15, [rsp+480]",
            "jmp 6f",
            "5:",
            "vmovups ymm0, [rsp]", "vmovups ymm1, [rsp+32]", "vmovups ymm2, [rsp+64]", "vmovups ymm3, [rsp+96]",
            "vmovups ymm4, [rsp+128]", "vmovups ymm5, [rsp+160]", "vmovups ymm6, [rsp+192]", "vmovups ymm7, [rsp+224]",
            "vmovups ymm8, [rsp+256]", "vmovups ymm9, [rsp+288]", "vmovups ymm10, [rsp+320]", "vmovups ymm11, [rsp+352]",
            "vmovups ymm12, [rsp+384]", "vmovups ymm13, [rsp+416]", "vmovups ymm14, [rsp+448]", "vmovups ymm15, [rsp+480]",
            "6:",
            "mov eax, r15d",
            "lea rsp, [rbp-96]",
            "pop r15", "pop r14", "pop r13", "pop r12", "pop rbx",
            "pop r11", "pop r10", "pop r9", "pop r8", "pop rdi", "pop rsi",
            // popfq takes longer than all of the above: the direction flag alone matters.
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
            wide = sym $crate::registers::WIDE,
            avx = const $crate::registers::AVX,
            parts = const $crate::registers::PARTS,
            area = const $crate::registers::AREA,
        );
    )*};
}
pub(crate) use slow;

slow! {
    "trapline_call" => call;
    "trapline_return" => left;
}

unsafe extern "C" {
    safe static trapline_call: u8;
    safe static trapline_return: u8;
}

/// The code that stubs call, for [`abi::message::Slow::Call`] and [`abi::message::Slow::Return`].
pub fn code() -> [&'static u8; 2] {
    [&trapline_call, &trapline_return]
}

/// Whether the thread is in a tracer. One that was left by a jump out of a signal's handler has its frame below.
pub fn in_tracer(local: &Local, place: u64) -> bool {
    if local.busy.load(Relaxed) == 0 {
        return false;
    }
    if local.busy.load(Relaxed) == IN_TRACER && place > local.in_tracer.load(Relaxed) {
        local.busy.store(0, Relaxed);
        return false;
    }
    true
}

/// A function begins.
extern "C" fn call(frame: &Frame, number: u32) -> u8 {
    let (local, place) = (local(), frame.slot());
    if in_tracer(local, place) {
        thread::nest();
        return SET;
    }
    let Some(site) = sites::get(number).filter(|_| has_stack(local)) else {
        thread::miss();
        return SET;
    };
    let tracers = site.tracers.load(Relaxed);
    // Its bytes have just been restored.
    if tracers == 0 {
        return SET;
    }
    let tsc = if tracers::timed() & tracers != 0 { kernel::tsc() } else { 0 };
    let graph = record::of(tracers);
    let late = graph.map_or(0, record::flags);
    let word = u64::from(number | WRITTEN) | u64::from(tracers | tracers::epoch() << 8 | late) << 32;
    // SAFETY: the stub has just been called, and the thread has a shadow stack, whose top entry is that of this call once it is pushed.
    let pushed = unsafe {
        shadow::push_below(local, place, word, tsc)
            || shadow::push(local, place, number | WRITTEN, tsc != 0) && {
                Entry::top(local).set_word(word);
                true
            }
    };
    if !pushed {
        thread::miss();
        // Its entry and its exit.
        chunks::drop_records(local, if graph.is_some() { 2 } else { 0 });
        return SET;
    }
    let mut own = None;
    for slot in tracers::order(tracers) {
        match slot.kind() {
            k if k == Kind::Own as u32 => {
                let enter = slot.enter.load(Relaxed);
                if enter != 0 {
                    own.get_or_insert_with(|| Inside::new(local, frame)).enter(enter, site, frame.address, local);
                }
            }
            k if k == Kind::Count as u32 => counts::count(local, number),
            k if k == Kind::Graph as u32 => {
                // The thread gets its chunk back.
                own = None;
                record::enter(local, site, slot);
            }
            _ => checks::enter(local, frame, site, slot),
        }
    }
    CLEAR
}

/// A function returns.
extern "C" fn left(frame: &Frame, _: u32) -> u8 {
    let (local, place) = (local(), frame.slot());
    // SAFETY: the call returns to its stub.
    let entry = unsafe { shadow::top_of(local, place) };
    let (tsc, word) = (entry.time(), entry.word());
    let (number, flags) = (word as u32 & !WRITTEN, (word >> 32) as u32);
    if let Some(site) = sites::get(number).filter(|_| !in_tracer(local, place)) {
        let (seen, epoch) = entries::seen(flags);
        let now = if tsc != 0 { kernel::tsc().wrapping_sub(tsc) } else { 0 };
        let mut own = None;
        for slot in tracers::reverse(seen | site.tracers.load(Relaxed)) {
            let saw = seen & slot.bit() != 0 && slot.is_older(epoch);
            match slot.kind() {
                k if k == Kind::Own as u32 => {
                    let exit = slot.exit.load(Relaxed);
                    if exit != 0 && (saw || slot.enter.load(Relaxed) == 0) {
                        own.get_or_insert_with(|| Inside::new(local, frame)).exit(exit, site, local);
                    }
                }
                k if k == Kind::Count as u32 && saw && tsc != 0 => counts::add_time(local, number, entry, now),
                k if k == Kind::Graph as u32 && saw => {
                    own = None;
                    record::exit(local, entry, site, slot, now);
                }
                _ if saw => checks::exit(local, frame, site, slot, (entry, now)),
                _ => {}
            }
        }
    }
    // SAFETY: as above.
    unsafe { shadow::pop(local, entry) };
    CLEAR
}

/// The thread is in a tracer that is not the agent's: what it calls is not traced.
struct Inside<'a> {
    local: &'a Local,
    before: [u64; 4],
}

impl<'a> Inside<'a> {
    #[inline(always)]
    fn new(local: &'a Local, frame: &Frame) -> Inside<'a> {
        let fields = [&local.top_slot, &local.cur, &local.end, &local.counts];
        local.in_tracer.store(core::ptr::from_ref(frame) as u64, Relaxed);
        local.busy.store(IN_TRACER, Relaxed);
        Inside {
            local,
            before: fields.map(|f| {
                let value = f.load(Relaxed);
                f.store(0, Relaxed);
                value
            }),
        }
    }

    #[inline(always)]
    fn enter(&self, code: u64, site: &'static sites::Site, caller: u64, local: &Local) {
        // SAFETY: the tracer's own function, which keeps to the rules of docs/TRACERS.md.
        let code: extern "C" fn(*const sites::Site, u64, u32) = unsafe { core::mem::transmute(code) };
        code(site, caller, shadow::depth(local));
    }

    #[inline(always)]
    fn exit(&self, code: u64, site: &'static sites::Site, local: &Local) {
        // SAFETY: as above.
        let code: extern "C" fn(*const sites::Site, u32) = unsafe { core::mem::transmute(code) };
        code(site, shadow::depth(local));
    }
}

impl Drop for Inside<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        let [top_slot, mut cur, mut end, counts] = self.before;
        // A handler that has forked meanwhile has given up the chunk.
        if self.local.chunk.load(Relaxed) == 0 {
            (cur, end) = (0, 0);
        }
        self.local.counts.store(counts, Relaxed);
        self.local.cur.store(cur, Relaxed);
        self.local.end.store(end, Relaxed);
        self.local.top_slot.store(top_slot, Relaxed);
        self.local.busy.store(0, Relaxed);
    }
}
