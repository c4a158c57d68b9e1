//! Functions with captured arguments: the slow code of stubs of the variant Called in areas that have programs (`abi::values`).
//!
//! ```text
//!  begins:  entry in the shadow stack ─► room in the chunk ─► the program copies values to this stack ─► record, values, then its word
//!  returns: as above, and the entry goes
//! ```
//!
//! Registers are in the frame. `values` copies and writes.

use crate::calls::{in_tracer, slow};
use crate::kernel;
use crate::memory::load;
use crate::shared::control;
use crate::slow::{CLEAR, SET, has_stack};
use crate::thread::{Local, local};
use crate::values::{ANY, Frame, caller, read, record};
use crate::{areas, chunks, heap, shadow};
use abi::plan::Area;
use abi::stub::{Variant, layout};
use abi::thread::{RECORDED, WRITTEN};
use abi::values::{self, Offsets, PROBE_HEAD, STACK_HASH, TABLE, WALKS};
use core::arch::asm;
use core::sync::atomic::Ordering::Relaxed;

/// What the stub and the code before this have pushed, from the lowest address upwards ([`crate::calls`]).
#[repr(C)]
pub struct Saved {
    _kept: [u64; 7],
    r9: u64,
    r8: u64,
    rdi: u64,
    rsi: u64,
    _flags: u64,
    rbp: u64,
    resume: u64,
    rcx: u64,
    rdx: u64,
    rax: u64,
    /// The slot: the return address of the function.
    address: u64,
}

slow! {
    "trapline_arguments" => begins;
    "trapline_result" => returns;
}

unsafe extern "C" {
    safe static trapline_arguments: u8;
    safe static trapline_result: u8;
}

/// The code that stubs call, for [`abi::message::Slow::Arguments`] and [`abi::message::Slow::Result`].
pub fn code() -> [&'static u8; 2] {
    [&trapline_arguments, &trapline_result]
}

impl Saved {
    fn slot(&self) -> u64 {
        &raw const self.address as u64
    }

    /// Where the code before this has put a register of floating-point numbers.
    fn xmm(&self, number: u8) -> [u64; 2] {
        let at = (core::ptr::from_ref(self) as u64 & !63) - 512 + 32 * u64::from(number);
        // SAFETY: the registers lie below the frame, at a multiple of 64.
        unsafe { [load(at), load(at + 8)] }
    }

    /// The stack of the caller of a function that has returned to this address.
    #[cold]
    fn walk(&self, local: &Local, address: u64, tsc: u64) -> u64 {
        let start = unwind::Registers { pc: address, sp: self.slot() + 8, bp: self.rbp };
        heap::stack(local, start, false, tsc)
    }

    /// The stub's function, if it has programs: the area, and where they are.
    fn programs(&self) -> Option<(&'static Area, Offsets)> {
        let area = areas::all().iter().find(|a| self.resume.wrapping_sub(a.address) < a.stubs)?;
        // SAFETY: an area that is in the list is mapped for good, and has its pointers behind its stubs.
        let table = unsafe { load(area.address + area.stubs + 8 * TABLE as u64) };
        let stub = (self.resume - area.address) / u64::from(layout(Variant::Called).size);
        let at = table.checked_add(stub * size_of::<Offsets>() as u64)?;
        if table == 0 || at.checked_add(size_of::<Offsets>() as u64)? > area.content {
            return None;
        }
        // SAFETY: within the area; it is aligned to 4 bytes, as the collector has put it there.
        Some((area, unsafe { ((area.address + at) as *const Offsets).read_unaligned() }))
    }
}

/// How many records a return makes, and with the beginning of the call.
fn records(programs: Option<(&Area, Offsets)>, begins: bool) -> u64 {
    let of_function = 1 + u64::from(begins);
    programs.map_or(of_function, |(_, offsets)| {
        u64::from(offsets.number != 0) * of_function + u64::from(offsets.returns != 0)
    })
}

/// A function begins.
extern "C" fn begins(saved: &Saved, _: u32) -> u8 {
    let (local, place) = (local(), saved.slot());
    let programs = saved.programs();
    if !has_stack(local) || in_tracer(local, place) {
        chunks::drop_records(local, records(programs, true));
        return SET;
    }
    let word = programs.map_or(0, |(_, offsets)| offsets.number) | WRITTEN | RECORDED;
    // The sign is extended: the entry is not to be written late.
    let extended = i64::from(word as i32) as u64;
    let timed = records_callers();
    let tsc = if timed { kernel::tsc() } else { 0 };
    // SAFETY: the stub has just been called, and the thread has a shadow stack.
    if unsafe { !shadow::push_below(local, place, extended, tsc) && !shadow::push(local, place, word, timed) } {
        chunks::drop_records(local, records(programs, true));
        return SET;
    }
    if timed {
        caller(local, core::ptr::from_ref(saved) as u64, place, saved.address);
    }
    if let Some((area, offsets)) = programs
        && offsets.number != 0
    {
        record::<ANY>(local, saved, offsets.number << 1, None, program(area, offsets.entry));
    }
    CLEAR
}

/// A function returns.
extern "C" fn returns(saved: &Saved, _: u32) -> u8 {
    let (local, place) = (local(), saved.slot());
    // SAFETY: the call returns to its stub.
    let entry = unsafe { shadow::top_of(local, place) };
    let programs = saved.programs();
    match programs.filter(|_| !in_tracer(local, place)) {
        None => chunks::drop_records(local, records(programs, false)),
        Some((area, offsets)) => {
            // The time of capturing is not the function's.
            let tsc = kernel::tsc();
            if offsets.number != 0 {
                record::<ANY>(local, saved, offsets.number << 1 | 1, Some(tsc), program(area, offsets.exit));
            }
            if offsets.returns != 0 {
                let at = area.address + u64::from(offsets.returns);
                // SAFETY: the program of a probe lies within the area, as the collector has put it there.
                let head = unsafe { load(at) };
                let stack = if (head >> 32) as u32 & WALKS == 0 { 0 } else { saved.walk(local, entry.address(), tsc) };
                let program = (at + PROBE_HEAD as u64, area.address + area.content);
                record::<ANY>(local, &Returned { saved, stack }, (head as u32) << 1, Some(tsc), program);
            }
            if offsets.number == 0 && records_callers() {
                caller(local, core::ptr::from_ref(saved) as u64, entry.place(), 0);
            }
        }
    }
    // SAFETY: as above.
    unsafe { shadow::pop(local, entry) };
    CLEAR
}

/// Whether records say where functions were called from.
fn records_callers() -> bool {
    control().is_some_and(|control| control.callers.load(Relaxed) != 0)
}

/// Where a program of an area is, and where the area ends; it is empty where there is none.
fn program(area: &Area, offset: u32) -> (u64, u64) {
    let end = area.address + area.content;
    if offset == 0 { (end, end) } else { (area.address + u64::from(offset), end) }
}

/// A function that has returned to where it was called from.
struct Returned<'s> {
    saved: &'s Saved,
    /// The hash of the caller's stack.
    stack: u64,
}

impl Frame for Returned<'_> {
    fn place(&self, local: &Local, place: u8, offset: i32) -> Option<[u64; 2]> {
        if place == STACK_HASH { Some([self.stack, 0]) } else { self.saved.place(local, place, offset) }
    }
}

impl Frame for Saved {
    #[inline(always)]
    fn place(&self, local: &Local, place: u8, offset: i32) -> Option<[u64; 2]> {
        Some(match place {
            0 => [self.rdi, 0],
            1 => [self.rsi, 0],
            values::RDX => [self.rdx, 0],
            3 => [self.rcx, 0],
            4 => [self.r8, 0],
            5 => [self.r9, 0],
            xmm @ values::XMM..values::RAX => self.xmm(xmm - values::XMM),
            values::RAX => [self.rax, 0],
            values::STACK => stack(local, self, offset),
            values::ST0 => st0(),
            _ => return None,
        })
    }
}

/// Two words above the return address.
#[inline(always)]
fn stack(local: &Local, saved: &Saved, offset: i32) -> [u64; 2] {
    let at = saved.slot().wrapping_add_signed(offset.into());
    // The return address has just been pushed: the rest of its page is there.
    if (at + 15) >> 12 == saved.slot() >> 12 && at >= saved.slot() {
        // SAFETY: as above.
        return unsafe { [load(at), load(at + 8)] };
    }
    let mut bytes = [0; 16];
    read(local, at, &mut bytes);
    let [low, high] = [&bytes[..8], &bytes[8..]].map(|b| b.first_chunk().map_or(0, |b| u64::from_le_bytes(*b)));
    [low, high]
}

/// The number on top of the x87 stack, which stays there.
fn st0() -> [u64; 2] {
    let mut bytes = [0u64; 2];
    // SAFETY: copies the register, if there is one, to 10 bytes of the array.
    unsafe { asm!("fld st(0)", "fstp tbyte ptr [{}]", in(reg) &mut bytes, options(nostack)) };
    bytes
}
