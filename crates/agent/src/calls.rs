//! Calls of functions with tracers: the slow code of stubs of the variant Called.
//!
//! Tracers are called in the order of enabling when a function begins, in reverse when it returns. The entry of the call in the shadow
//! stack says which tracers have seen its beginning, and in which epoch: the epoch changes whenever a tracer is enabled, so that one that
//! has come later, in the same place, is not taken for it. The list may change between any two instructions, while a thread is here.

use crate::kernel;
use crate::slow::{CLEAR, SET, has_stack};
use crate::thread::{Local, local};
use crate::{checks, shadow, sites, thread, tracers};
use abi::thread::WRITTEN;
use abi::tracer::Kind;
use core::arch::global_asm;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

/// What the stub and the code below have pushed, from the lowest address upwards.
#[repr(C)]
pub struct Frame {
    pub r15: u64,
    pub r14: u64,
    pub r13: u64,
    pub r12: u64,
    pub rbx: u64,
    _free: [u64; 7],
    pub rbp: u64,
    _resume: u64,
    _rcx: u64,
    _rdx: u64,
    _rax: u64,
    /// The slot: the return address of the function.
    address: u64,
}

impl Frame {
    /// Where the return address is.
    pub fn slot(&self) -> u64 {
        &raw const self.address as u64
    }
}

/// 1: tracers that are not the agent's are enabled. They may use the upper halves of vectors, which the agent's own code leaves alone.
pub static WIDE: AtomicU32 = AtomicU32::new(0);

/// The parts of the processor's state that are looked at then, as bits of XCR0: upper halves of ymm, mask registers, upper halves of zmm,
/// zmm16 to zmm31.
const PARTS: u32 = 0xe4;
/// Those of them that vzeroupper leaves.
const REST: u32 = 0xa0;
/// Bytes for them: 576 before the first one, 256 + 64 + 512 + 1024.
const AREA: u32 = 2560;

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
            "sub rsp, 256",
            "movaps [rsp], xmm0", "movaps [rsp+16], xmm1", "movaps [rsp+32], xmm2", "movaps [rsp+48], xmm3",
            "movaps [rsp+64], xmm4", "movaps [rsp+80], xmm5", "movaps [rsp+96], xmm6", "movaps [rsp+112], xmm7",
            "movaps [rsp+128], xmm8", "movaps [rsp+144], xmm9", "movaps [rsp+160], xmm10", "movaps [rsp+176], xmm11",
            "movaps [rsp+192], xmm12", "movaps [rsp+208], xmm13", "movaps [rsp+224], xmm14", "movaps [rsp+240], xmm15",
            "mov r14d, [rip + {wide}]",
            "mov r12, rsp",
            "xor ebx, ebx",
            "test r14d, r14d",
            "je 2f",
            // XINUSE: what is not in use is all zeros.
            "mov ecx, 1",
            "xgetbv",
            "and eax, {parts}",
            "mov ebx, eax",
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
            "test r14d, r14d",
            "je 5f",
            "mov r15d, eax",
            "test ebx, ebx",
            "je 3f",
            "mov eax, {parts}",
            "xor edx, edx",
            "xrstor [rsp]",
            "jmp 4f",
            "3:",
            "mov ecx, 1",
            "xgetbv",
            "test eax, {parts}",
            "je 4f",
            "vzeroupper",
            "test eax, {rest}",
            "je 4f",
            "kxorw k0, k0, k0", "kxorw k1, k1, k1", "kxorw k2, k2, k2", "kxorw k3, k3, k3",
            "kxorw k4, k4, k4", "kxorw k5, k5, k5", "kxorw k6, k6, k6", "kxorw k7, k7, k7",
            "vpxord zmm16, zmm16, zmm16", "vpxord zmm17, zmm17, zmm17", "vpxord zmm18, zmm18, zmm18",
            "vpxord zmm19, zmm19, zmm19", "vpxord zmm20, zmm20, zmm20", "vpxord zmm21, zmm21, zmm21",
            "vpxord zmm22, zmm22, zmm22", "vpxord zmm23, zmm23, zmm23", "vpxord zmm24, zmm24, zmm24",
            "vpxord zmm25, zmm25, zmm25", "vpxord zmm26, zmm26, zmm26", "vpxord zmm27, zmm27, zmm27",
            "vpxord zmm28, zmm28, zmm28", "vpxord zmm29, zmm29, zmm29", "vpxord zmm30, zmm30, zmm30",
            "vpxord zmm31, zmm31, zmm31",
            "4:",
            "mov eax, r15d",
            "mov rsp, r12",
            "5:",
            "movaps xmm0, [rsp]", "movaps xmm1, [rsp+16]", "movaps xmm2, [rsp+32]", "movaps xmm3, [rsp+48]",
            "movaps xmm4, [rsp+64]", "movaps xmm5, [rsp+80]", "movaps xmm6, [rsp+96]", "movaps xmm7, [rsp+112]",
            "movaps xmm8, [rsp+128]", "movaps xmm9, [rsp+144]", "movaps xmm10, [rsp+160]", "movaps xmm11, [rsp+176]",
            "movaps xmm12, [rsp+192]", "movaps xmm13, [rsp+208]", "movaps xmm14, [rsp+224]", "movaps xmm15, [rsp+240]",
            "lea rsp, [rbp-96]",
            "pop r15", "pop r14", "pop r13", "pop r12", "pop rbx",
            "pop r11", "pop r10", "pop r9", "pop r8", "pop rdi", "pop rsi",
            // popfq takes longer than all of the above: the direction flag alone matters.
            "test dword ptr [rsp], 0x400",
            "je 6f",
            "std",
            "6:",
            "lea rsp, [rsp+8]",
            "pop rbp",
            ".cfi_def_cfa rsp, 8",
            // Carry: the answer is not 0.
            "neg al",
            "ret",
            ".cfi_endproc",
            concat!(".size ", $name, ", .-", $name),
            function = sym $function,
            wide = sym WIDE,
            parts = const PARTS,
            rest = const REST,
            area = const AREA,
        );
    )*};
}

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
fn in_tracer(local: &Local, place: u64) -> bool {
    if local.busy.load(Relaxed) == 0 {
        return false;
    }
    if place > local.in_tracer.load(Relaxed) {
        local.busy.store(0, Relaxed);
        return false;
    }
    true
}

/// A function begins.
extern "C" fn call(frame: &Frame, number: u32) -> u8 {
    let (local, place) = (local(), frame.slot());
    let Some(site) = sites::get(number).filter(|_| has_stack(local) && !in_tracer(local, place)) else {
        thread::miss();
        return SET;
    };
    let tracers = site.tracers.load(Relaxed);
    // Its bytes have just been restored.
    if tracers == 0 {
        return SET;
    }
    let tsc = if tracers::timed() & tracers != 0 { kernel::tsc() } else { 0 };
    let word = u64::from(number | WRITTEN) | u64::from(tracers | tracers::epoch() << 8) << 32;
    if place < local.top_slot.load(Relaxed) {
        shadow::push_below(local, place, word, tsc);
    } else if shadow::push(local, place, number | WRITTEN, tsc) {
        shadow::set_word(local, word);
    } else {
        thread::miss();
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
            k if k == Kind::Count as u32 => checks::count(local, number),
            k if k == Kind::ThreadChecker as u32 => checks::thread(local, frame, site, slot),
            _ => {}
        }
    }
    CLEAR
}

/// A function returns.
extern "C" fn left(frame: &Frame, _: u32) -> u8 {
    let (local, place) = (local(), frame.slot());
    let entry = shadow::top_of(local, place);
    let (tsc, word) = shadow::time_and_word(entry);
    let (number, flags) = (word as u32 & !WRITTEN, (word >> 32) as u32);
    if let Some(site) = sites::get(number).filter(|_| !in_tracer(local, place)) {
        let (seen, epoch) = (flags & 0xff, flags >> 8);
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
                k if k == Kind::Count as u32 && saw && tsc != 0 => checks::add_time(local, number, entry, now),
                k if k == Kind::LoopChecker as u32 && saw => checks::duration(local, frame, site, slot, entry, now),
                _ => {}
            }
        }
    }
    shadow::pop(local, entry);
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
        local.busy.store(1, Relaxed);
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
