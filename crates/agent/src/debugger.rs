//! What debuggers know of areas: for each an ELF file in memory with its unwind information, registered by gdb's interface for just-in-time
//! compilers ("JIT Compilation Interface" of its manual).
//!
//! ```text
//!  __jit_debug_descriptor ─► entry ─► entry ─► …     gdb reads the list when it attaches, and stops at __jit_debug_register_code
//!                              └► ELF: .text (where the area is) · .eh_frame · a symbol, [trapline]
//! ```
//!
//! Descriptions are expressions, so that one serves all stubs of an area, and another one all moved beginnings. A debugger has no `fs` base for them:
//! the thread is the one whose storage lies next above the stack, where glibc and musl put that of all threads but the first, or else the one whose
//! storage lies highest. Where its shadow stack has no entry of the place, the backtrace ends.

use crate::dwarf::{DEF_CFA_EXPRESSION, RA, RSP, VAL_EXPRESSION, Writer, op};
use crate::thread::ENTRY;
use crate::{kernel, slots};
use abi::plan::{Area, Step};
use abi::stub::{Layout, Variant, layout};
use core::arch::global_asm;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

// The names by which debuggers look. They stay in the library: a compiler in the program has its own.
global_asm!(
    ".text",
    ".globl __jit_debug_register_code",
    ".hidden __jit_debug_register_code",
    ".type __jit_debug_register_code,@function",
    "__jit_debug_register_code:",
    ".cfi_startproc",
    "ret",
    ".cfi_endproc",
    ".size __jit_debug_register_code, .-__jit_debug_register_code",
    ".data",
    ".balign 8",
    ".globl __jit_debug_descriptor",
    ".hidden __jit_debug_descriptor",
    ".type __jit_debug_descriptor,@object",
    "__jit_debug_descriptor:",
    ".quad 0, 0, 0",
    ".size __jit_debug_descriptor, .-__jit_debug_descriptor",
    ".text",
);

unsafe extern "C" {
    fn __jit_debug_register_code();
    /// `struct jit_descriptor`: version and action (u32 each), the entry that it is about, the first entry.
    static __jit_debug_descriptor: [AtomicU64; 3];
}

/// `struct jit_code_entry`, in front of its file: the next entry, the previous one, the file's address and length.
type Entry = [u64; 4];

/// Bytes of an entry with its file, at most.
const ROOM: u64 = 2048;
/// Memory for entries is mapped in such parts.
const PART: u64 = 32 * ROOM;
/// Where the next entry goes, and where the part ends.
static NEXT: AtomicU64 = AtomicU64::new(0);
static END: AtomicU64 = AtomicU64::new(0);

/// Registers an area with debuggers. Only the thread that installs does this.
pub fn add(area: &Area) {
    const VERSION: u64 = 1;
    const REGISTER: u64 = 1;
    let Some(variant) = Variant::of(area.variant) else { return };
    if NEXT.load(Relaxed) == END.load(Relaxed) {
        let Some(part) = kernel::reserve(PART) else { return };
        NEXT.store(part, Relaxed);
        END.store(part + PART, Relaxed);
    }
    let at = NEXT.load(Relaxed);
    let file = at + size_of::<Entry>() as u64;
    // SAFETY: the memory is the agent's own, and not used yet.
    let mut w = unsafe { Writer::new(file as *mut u8, ROOM as usize - size_of::<Entry>()) };
    write_file(&mut w, area, layout(variant));
    if w.full {
        return;
    }
    NEXT.store(at + ROOM, Relaxed);
    // SAFETY: it is in the data above; entries stay.
    unsafe {
        let [head, about, first] = &__jit_debug_descriptor;
        let next = first.load(Relaxed);
        (at as *mut Entry).write([next, 0, file, w.len as u64]);
        if next != 0 {
            (*(next as *mut Entry))[1] = at;
        }
        first.store(at, Relaxed);
        about.store(at, Relaxed);
        head.store(VERSION | REGISTER << 32, Relaxed);
        __jit_debug_register_code();
    }
}

/// Forgets all areas: they are about to go, in a process that trapline has stopped, and so no debugger has.
pub fn forget() {
    // SAFETY: it is in the data above.
    let [_, _, first] = unsafe { &__jit_debug_descriptor };
    first.store(0, Relaxed);
    // The last part is used again.
    let end = END.load(Relaxed);
    NEXT.store(end.saturating_sub(PART), Relaxed);
}

/// Bytes of the headers of a file, of a header of a section, and of a symbol (elf(5)).
const HEADER: u64 = 64;
const SECTION: u64 = 64;
const SYMBOL: u64 = 24;
/// How many sections.
const SECTIONS: u16 = 5;
/// The names of sections, and that of the symbol.
const NAMES: &[u8] = b"\0.text\0.eh_frame\0.symtab\0.strtab\0[trapline]\0";
const SYMBOL_NAME: u32 = 33;

/// The file of an area.
fn write_file(w: &mut Writer, area: &Area, layout: &Layout) {
    const X86_64: u8 = 62;
    const EXECUTABLE: u8 = 2;
    w.put(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0").put(&[EXECUTABLE, 0, X86_64, 0, 1, 0, 0, 0]);
    w.number(0).number(0).number(HEADER).put(&[0; 4]).put(&(HEADER as u16).to_le_bytes()).put(&[0; 4]);
    w.put(&(SECTION as u16).to_le_bytes()).put(&SECTIONS.to_le_bytes()).put(&(SECTIONS - 1).to_le_bytes());
    let names = HEADER + SECTION * u64::from(SECTIONS);
    let symbols = names + NAMES.len().next_multiple_of(8) as u64;
    let frames = symbols + 2 * SYMBOL;
    let headers = w.len;
    for _ in 0..u64::from(SECTIONS) * SECTION / 8 {
        w.number(0);
    }
    w.put(NAMES).put(&[0; 8][..NAMES.len().next_multiple_of(8) - NAMES.len()]);
    w.number(0).number(0).number(0);
    // A global function of the first section.
    w.put(&SYMBOL_NAME.to_le_bytes()).put(&[0x12, 0, 1, 0]).number(area.address).number(area.len);
    write_frames(w, area, layout);
    let len = w.len as u64 - frames;
    // Name, type, flags, address, offset, size, link and info, alignment, size of an entry.
    let (bits, code, notes, none) = (1, 8, 2, 0);
    let (allocated, executed) = (2, 4);
    for (nth, section) in [
        [1, code, allocated | executed, area.address, none, area.len, none, none],
        [7, bits, allocated, none, frames, len, none, none],
        [17, notes, none, none, symbols, 2 * SYMBOL, 4 | 1 << 32, SYMBOL],
        [25, 3, none, none, names, NAMES.len() as u64, none, none],
    ]
    .into_iter()
    .enumerate()
    {
        let [name, kind, flags, address, offset, size, link, entry] = section;
        let end = core::mem::replace(&mut w.len, headers + (nth + 1) * SECTION as usize);
        w.put(&(name as u32).to_le_bytes()).put(&(kind as u32).to_le_bytes());
        w.number(flags).number(address).number(offset).number(size).number(link).number(8).number(entry);
        w.len = end;
    }
}

/// `.eh_frame`: descriptions of the stubs, and of the moved beginnings behind them.
fn write_frames(w: &mut Writer, area: &Area, layout: &Layout) {
    let stubs = (area.address, area.stubs);
    if area.stubs > 0 {
        describe(w, b"z\0", stubs, |w| cfa_of_stub(w, area, layout), |w| caller_of_stub(w, area));
    }
    if area.steps > 0 {
        // A signal frame: the pc of its caller is an instruction, and no return address.
        let moved = (area.address + area.stubs, area.steps_at - area.stubs);
        describe(w, b"zS\0", moved, |w| cfa_of_moved(w, area), |w| original_of_moved(w, area));
    }
    w.put(&[0; 4]);
}

/// A CIE and an FDE of code: where it is and how long, where the CFA is, and what the return address is.
fn describe(
    w: &mut Writer,
    augmentation: &[u8],
    (address, len): (u64, u64),
    cfa: impl FnOnce(&mut Writer),
    returns: impl FnOnce(&mut Writer),
) {
    let cie = w.len;
    // Length, no CIE pointer, version; factors of code and data, return address, no data of the augmentation.
    w.put(&[0, 0, 0, 0, 0, 0, 0, 0, 1]).put(augmentation).put(&[1, 0x78, RA, 0]);
    w.finish(cie);
    let fde = w.len;
    w.put(&[0; 4]).put(&((fde + 4 - cie) as u32).to_le_bytes()).number(address).number(len).put(&[0]);
    w.put(&[DEF_CFA_EXPRESSION]).expression(cfa);
    w.put(&[VAL_EXPRESSION, RA]).expression(returns);
    w.finish(fde);
}

/// The distance of the pc from the area's beginning.
fn offset(w: &mut Writer, area: &Area) {
    w.put(&[op::BREG0 + RA, 0, op::CONST8U]).number(area.address).put(&[op::MINUS]);
}

/// What is added to rsp changes from row to row.
fn cfa_of_stub(w: &mut Writer, area: &Area, layout: &Layout) {
    offset(w, area);
    w.put(&[op::CONST2U]).put(&(layout.size as u16).to_le_bytes()).put(&[op::MOD, op::BREG0 + RSP, 0]);
    let mut last = 0;
    for frame in layout.frames {
        let more = frame.cfa as i16 - last;
        last = frame.cfa as i16;
        w.put(&[op::OVER, op::CONST2U]).put(&(frame.from as u16).to_le_bytes());
        w.put(&[op::GE, op::CONST2S]).put(&more.to_le_bytes()).put(&[op::MUL, op::PLUS]);
    }
}

/// What is below the CFA, or, where that is a stub's, what the thread's shadow stack has in its place. 0 where it has nothing.
fn caller_of_stub(w: &mut Writer, area: &Area) {
    w.put(&[op::LIT0 + 8, op::MINUS, op::DUP, op::DEREF, op::CONST8U]).number(area.address).put(&[op::MINUS]);
    w.put(&[op::DUP, op::LIT0, op::GE, op::SWAP, op::CONST8U]).number(area.stubs).put(&[op::LT, op::AND]);
    let is_stubs = w.jump(op::BRA);
    w.put(&[op::DEREF]);
    let in_memory = w.jump(op::SKIP);
    w.land(is_stubs);
    storage_above(w);
    // place, -, -, storage ─► its top
    w.put(&[op::DEREF, op::DUP]);
    let has_shadow = w.jump(op::BRA);
    let no_shadow = w.jump(op::SKIP);
    w.land(has_shadow);
    let size = ENTRY as u8;
    // Each round: the entry below; on while its place is not above.
    let round = w.len;
    w.put(&[op::CONST1U, size, op::MINUS, op::DUP, op::DEREF, op::PICK, 4, op::LE]).jump_to(op::BRA, round);
    w.put(&[op::PLUS_UCONST, size, op::DUP, op::DEREF, op::PICK, 4, op::EQ]);
    let found = w.jump(op::BRA);
    w.put(&[op::LIT0]);
    let not_found = w.jump(op::SKIP);
    w.land(found);
    w.put(&[op::PLUS_UCONST, 8, op::DEREF]);
    for end in [in_memory, no_shadow, not_found] {
        w.land(end);
    }
}

/// place ─► place, -, -, the thread's storage: the lowest above the place, or the highest of all.
fn storage_above(w: &mut Writer) {
    let (locals, distance, used) = slots::locals();
    w.put(&[op::CONST8U]).number(locals).put(&[op::CONST8U]).number(used).put(&[op::DEREF_SIZE, 4, op::LIT0]);
    // place, slot, how many are left, the best one so far
    let round = w.len;
    w.put(&[op::OVER, op::LIT0, op::EQ]);
    let done = w.jump(op::BRA);
    w.put(&[op::PICK, 2, op::DEREF]);
    // Both above the place, or both below: which is better? Else the one above is.
    let above = |w: &mut Writer, which: u8, place: u8| {
        w.put(&[op::PICK, which, op::PICK, place, op::GT]);
    };
    above(w, 0, 5);
    above(w, 2, 6);
    w.put(&[op::EQ]);
    let both = w.jump(op::BRA);
    above(w, 0, 5);
    let takes_above = w.jump(op::BRA);
    let keeps_above = w.jump(op::SKIP);
    w.land(both);
    // The lower one above the place, the higher one below it.
    w.put(&[op::DUP, op::PICK, 2, op::LT]);
    above(w, 1, 6);
    w.put(&[op::EQ]);
    let takes = w.jump(op::BRA);
    w.land(keeps_above);
    w.put(&[op::DROP]);
    let kept = w.jump(op::SKIP);
    w.land(takes_above);
    w.land(takes);
    w.put(&[op::SWAP, op::DROP]);
    w.land(kept);
    w.put(&[op::ROT, op::LIT0 + 1, op::MINUS, op::SWAP, op::PLUS_UCONST, distance, op::SWAP, op::ROT, op::ROT]);
    w.jump_to(op::SKIP, round);
    w.land(done);
}

/// The pc ─► the last step that begins at or below it.
fn step(w: &mut Writer, area: &Area) {
    let steps = area.address + area.steps_at;
    offset(w, area);
    w.put(&[op::LIT0, op::CONST4U]).put(&area.steps.to_le_bytes());
    // offset, low, high
    let round = w.len;
    w.put(&[op::OVER, op::OVER, op::GE]);
    let done = w.jump(op::BRA);
    w.put(&[op::OVER, op::OVER, op::PLUS, op::LIT0 + 1, op::SHR, op::DUP, op::LIT0 + 8, op::MUL, op::CONST8U])
        .number(steps);
    w.put(&[op::PLUS, op::DEREF_SIZE, 4, op::CONST4U]).put(&Step::PLACE.to_le_bytes());
    w.put(&[op::AND, op::PICK, 4, op::LE]);
    let up = w.jump(op::BRA);
    w.put(&[op::SWAP, op::DROP]).jump_to(op::SKIP, round);
    w.land(up);
    w.put(&[op::PLUS_UCONST, 1, op::ROT, op::SWAP, op::DROP]).jump_to(op::SKIP, round);
    w.land(done);
    w.put(&[op::DROP, op::LIT0 + 1, op::MINUS, op::LIT0 + 8, op::MUL, op::CONST8U]).number(steps).put(&[op::PLUS]);
}

/// rsp as it was before the instruction ([`Step::lowered`]).
fn cfa_of_moved(w: &mut Writer, area: &Area) {
    step(w, area);
    w.put(&[op::DEREF_SIZE, 4, op::DUP, op::CONST4U]).put(&Step::PUSHED.to_le_bytes());
    w.put(&[op::AND, op::LIT0 + 28, op::SHR, op::SWAP, op::CONST4U]).put(&Step::SKIPPED.to_le_bytes());
    w.put(&[op::AND, op::LIT0 + 23, op::SHR, op::PLUS, op::BREG0 + RSP, 0, op::PLUS]);
}

/// The instruction; 0 where the code stands for none.
fn original_of_moved(w: &mut Writer, area: &Area) {
    const SIGN: [u8; 4] = (1u32 << 31).to_le_bytes();
    step(w, area);
    w.put(&[op::PLUS_UCONST, 4, op::DEREF_SIZE, 4, op::DUP]);
    let some = w.jump(op::BRA);
    let none = w.jump(op::SKIP);
    w.land(some);
    w.put(&[op::CONST4U]).put(&SIGN).put(&[op::XOR, op::CONST4U]).put(&SIGN).put(&[op::MINUS, op::CONST8U]);
    w.number(area.address).put(&[op::PLUS]);
    w.land(none);
}
