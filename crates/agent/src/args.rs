//! Functions with captured arguments: the slow code of stubs of the variant Called in areas that have programs (`abi::values`).
//!
//! ```text
//!  begins:  entry in the shadow stack ─► room in the chunk ─► the program copies values to this stack ─► record, values, then its word
//!  returns: as above, and the entry goes
//! ```
//!
//! Registers are in the frame. Memory that an argument leads to is read with process_vm_readv(2), which answers for any address, and
//! once: what another thread changes meanwhile is copied as it was. While a record is written, the thread is busy: calls of a handler that
//! interrupts it then are counted as lost.

use crate::calls::{in_tracer, slow};
use crate::kernel;
use crate::memory::load;
use crate::slow::{CLEAR, SET, has_stack};
use crate::thread::{IN_TRACER, Local, local};
use crate::{areas, chunks, permits, shadow};
use abi::plan::Area;
use abi::shared::VALUES;
use abi::stub::{Variant, layout};
use abi::thread::{RECORDED, WRITTEN};
use abi::values::{self, CUT, ENDS, FAULT, LENGTH, MOST, NULL, Offsets, Op, STEPS, Step, TABLE};
use core::arch::asm;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::compiler_fence;

/// What the stub and the code before this have pushed, from the lowest address upwards ([`crate::calls`]).
#[repr(C)]
pub struct Saved {
    _kept: [u64; 7],
    r9: u64,
    r8: u64,
    rdi: u64,
    rsi: u64,
    _flags: u64,
    _rbp: u64,
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

/// Bytes of a record before its values: time, word, length.
const HEAD: u64 = 10;
/// Bytes of the longest record, with a marker before it.
const ROOM: u64 = 8 + HEAD + MOST as u64;

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

/// A function begins.
extern "C" fn begins(saved: &Saved, _: u32) -> u8 {
    let (local, place) = (local(), saved.slot());
    if !has_stack(local) || in_tracer(local, place) {
        chunks::drop_records(local, 2);
        return SET;
    }
    let programs = saved.programs();
    let word = programs.map_or(0, |(_, offsets)| offsets.number) | WRITTEN | RECORDED;
    // The sign is extended: the entry is not to be written late.
    let extended = i64::from(word as i32) as u64;
    // SAFETY: the stub has just been called, and the thread has a shadow stack.
    if unsafe { !shadow::push_below(local, place, extended, 0) && !shadow::push(local, place, word, false) } {
        chunks::drop_records(local, 2);
        return SET;
    }
    record(local, saved, programs, 0);
    CLEAR
}

/// A function returns.
extern "C" fn returns(saved: &Saved, _: u32) -> u8 {
    let (local, place) = (local(), saved.slot());
    // SAFETY: the call returns to its stub.
    let entry = unsafe { shadow::top_of(local, place) };
    if in_tracer(local, place) {
        chunks::drop_records(local, 1);
    } else {
        record(local, saved, saved.programs(), 1);
    }
    // SAFETY: as above.
    unsafe { shadow::pop(local, entry) };
    CLEAR
}

/// Writes the record of a call or of its return, or counts it.
#[inline(always)]
fn record(local: &Local, saved: &Saved, programs: Option<(&'static Area, Offsets)>, exit: u32) {
    let tsc = kernel::tsc();
    let Some((area, offsets)) = programs else { return chunks::drop_records(local, 1) };
    if !chunks::has_room(local, ROOM) {
        return chunks::drop_records(local, 1);
    }
    let program = if exit == 0 { offsets.entry } else { offsets.exit };
    let mut values = Values { bytes: [0; BYTES], len: 0, base: None };
    if program != 0 {
        values.run(local, saved, (area.address + u64::from(program), area.address + area.content));
    }
    // The time of capturing is not the function's.
    let tsc = if exit == 0 { kernel::tsc() } else { tsc };
    let word = offsets.number << 1 | exit;
    let len = if values.len == 0 { 8 } else { (HEAD + values.len as u64).next_multiple_of(8) };
    // A handler may have taken the room.
    if !chunks::has_room(local, len + 8) {
        return chunks::drop_records(local, 1);
    }
    local.in_tracer.store(core::ptr::from_ref(saved) as u64, Relaxed);
    local.busy.store(IN_TRACER, Relaxed);
    compiler_fence(SeqCst);
    // A handler's stubs find no room.
    let (end, mut at) = (local.end.swap(0, Relaxed), local.cur.load(Relaxed));
    compiler_fence(SeqCst);
    // It may have come before that, and have begun another chunk.
    if at + len + 8 <= end {
        let high = (tsc >> 32) as u32;
        // SAFETY: the room lies in the thread's own chunk. The collector reads the word after the rest.
        unsafe {
            if local.high.load(Relaxed) != high {
                put(at, high, abi::shared::HIGH);
                local.high.store(high, Relaxed);
                at += 8;
            }
            if len > 8 {
                ((at + 8) as *mut u16).write_volatile((len - HEAD) as u16);
                // The end is zeros, as the rest of the chunk.
                values.copy_to(at + HEAD, len - HEAD);
            }
            compiler_fence(SeqCst);
            put(at, tsc as u32, if len > 8 { word | VALUES } else { word });
        }
        at += len;
    } else {
        chunks::drop_records(local, 1);
    }
    compiler_fence(SeqCst);
    // A handler that has forked meanwhile has given up the chunk.
    if local.chunk.load(Relaxed) != 0 {
        local.cur.store(at, Relaxed);
        compiler_fence(SeqCst);
        local.end.store(end, Relaxed);
    }
    compiler_fence(SeqCst);
    local.busy.store(0, Relaxed);
}

/// Writes a time and a word.
///
/// # Safety
/// They are the thread's.
unsafe fn put(at: u64, time: u32, word: u32) {
    // SAFETY: so says the caller.
    unsafe {
        (at as *mut u32).write_volatile(time);
        (at as *mut u32).add(1).write_volatile(word);
    }
}

/// Bytes of [`Values::bytes`]: stores may go beyond the last value.
const BYTES: usize = MOST + 18;

/// What a program has copied.
struct Values {
    bytes: [u8; BYTES],
    len: usize,
    base: Option<usize>,
}

impl Values {
    fn run(&mut self, local: &Local, saved: &Saved, (mut at, end): (u64, u64)) {
        let mut next = || {
            // SAFETY: within the area, which is mapped for good.
            let step = (at + 8 <= end).then(|| Step::parse(unsafe { load(at) }.to_le_bytes()))?;
            at += 8;
            Some(step)
        };
        for _ in 0..STEPS {
            let Some(step) = next() else { return };
            let size = usize::from(step.size);
            let source = self.place(local, saved, step.place, step.offset);
            let done = match step.op {
                op if op == Op::Load as u8 => source.map(|[low, high]| self.load(low, high, size)),
                op if op == Op::Text as u8 => source.map(|[from, _]| self.text(local, from, size)),
                op if op == Op::Slice as u8 => {
                    let Some(second) = next() else { return };
                    let len = self.place(local, saved, second.place, second.offset);
                    source.zip(len).map(|([from, _], [len, _])| self.slice(local, from, len, size))
                }
                op if op == Op::Pointee as u8 => source.map(|[from, _]| self.pointee(local, from, size)),
                op if op == Op::Base as u8 => {
                    self.base = self.len.checked_sub(size);
                    Some(true)
                }
                _ => return,
            };
            // What is missing because of a pointer that leads nowhere is left out; the rest follows.
            if done == Some(false) {
                return;
            }
        }
    }

    /// The words at a place; None: it lies in what could not be read.
    #[inline(always)]
    fn place(&self, local: &Local, saved: &Saved, place: u8, offset: i32) -> Option<[u64; 2]> {
        Some(match place {
            0 => [saved.rdi, 0],
            1 => [saved.rsi, 0],
            values::RDX => [saved.rdx, 0],
            3 => [saved.rcx, 0],
            4 => [saved.r8, 0],
            5 => [saved.r9, 0],
            xmm @ values::XMM..values::RAX => saved.xmm(xmm - values::XMM),
            values::RAX => [saved.rax, 0],
            values::STACK => stack(local, saved, offset),
            values::ST0 => st0(),
            values::FIELD => {
                let at = self.base?.checked_add(usize::try_from(offset).ok()?)?;
                let word = self.bytes.get(at..self.len)?.first_chunk()?;
                [u64::from_le_bytes(*word), 0]
            }
            _ => return None,
        })
    }

    /// Appends bytes of two words. False: there is no room.
    #[inline(always)]
    fn load(&mut self, low: u64, high: u64, size: usize) -> bool {
        if size > 16 || self.len + size > MOST {
            return false;
        }
        if let Some(to) = self.bytes.get_mut(self.len..).and_then(<[u8]>::first_chunk_mut) {
            *to = low.to_le_bytes();
        }
        if size > 8
            && let Some(to) = self.bytes.get_mut(self.len + 8..).and_then(<[u8]>::first_chunk_mut)
        {
            *to = high.to_le_bytes();
        }
        self.len += size;
        self.wipe();
        true
    }

    /// What is behind the values is zeros, up to where stores may have been.
    fn wipe(&mut self) {
        if let Some(to) = self.bytes.get_mut(self.len..).and_then(<[u8]>::first_chunk_mut::<8>) {
            *to = [0; 8];
        }
    }

    /// Writes a head before `len` bytes, which are there.
    fn head(&mut self, len: usize, flags: u16) -> bool {
        if let Some(to) = self.bytes.get_mut(self.len..).and_then(<[u8]>::first_chunk_mut) {
            *to = (len as u16 & LENGTH | flags).to_le_bytes();
        }
        self.len += 2 + len;
        true
    }

    /// Reads memory to behind a head, and returns how many bytes were there.
    fn read(&mut self, local: &Local, from: u64, size: usize) -> usize {
        let at = self.len + 2;
        self.bytes.get_mut(at..at + size).map_or(0, |to| read(local, from, to))
    }

    fn text(&mut self, local: &Local, from: u64, size: usize) -> bool {
        if self.len + 2 + size > MOST {
            return false;
        }
        if from == 0 {
            return self.head(0, NULL);
        }
        // One more shows whether that is all.
        let got = self.read(local, from, size + 1);
        let at = self.len + 2;
        let nul = self.bytes.get(at..at + got).and_then(|b| b.iter().position(|b| *b == 0));
        let (len, flags) = match nul {
            Some(len) => (len, 0),
            None if got > size => (size, CUT),
            None if got == 0 => return self.fault(from),
            None => (got, ENDS),
        };
        self.clear(at + len, at + got);
        self.head(len, flags)
    }

    fn slice(&mut self, local: &Local, from: u64, len: u64, size: usize) -> bool {
        if self.len + 2 + size > MOST {
            return false;
        }
        let (wanted, cut) = if len > size as u64 { (size, CUT) } else { (len as usize, 0) };
        if wanted == 0 {
            return self.head(0, cut);
        }
        let got = self.read(local, from, wanted);
        if got == 0 {
            return self.fault(from);
        }
        self.head(got, if got < wanted { ENDS } else { cut })
    }

    fn pointee(&mut self, local: &Local, from: u64, size: usize) -> bool {
        self.base = None;
        if self.len + 2 + size > MOST {
            return false;
        }
        if from == 0 {
            return self.head(0, NULL);
        }
        let got = self.read(local, from, size);
        if got < size {
            let at = self.len + 2;
            self.clear(at, at + got);
            return self.fault(from);
        }
        self.base = Some(self.len + 2);
        self.head(size, 0)
    }

    /// An address where nothing could be read.
    fn fault(&mut self, from: u64) -> bool {
        if self.len + 10 > MOST {
            return false;
        }
        if let Some(to) = self.bytes.get_mut(self.len + 2..).and_then(<[u8]>::first_chunk_mut) {
            *to = from.to_le_bytes();
        }
        self.head(8, FAULT)
    }

    fn clear(&mut self, from: usize, to: usize) {
        if let Some(part) = self.bytes.get_mut(from..to) {
            part.fill(0);
        }
    }

    /// Copies the first so many bytes, which are no more than there are.
    ///
    /// # Safety
    /// The memory is the thread's.
    unsafe fn copy_to(&self, to: u64, len: u64) {
        // Words, but for the first: `to` is 2 bytes behind a multiple of 8, and the length likewise less than one.
        let mut at = 0;
        while at < len as usize {
            if let Some(word) = self.bytes.get(at..).and_then(<[u8]>::first_chunk::<2>) {
                // SAFETY: so says the caller.
                unsafe { ((to + at as u64) as *mut u16).write_volatile(u16::from_le_bytes(*word)) };
            }
            at += 2;
        }
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

/// Reads memory of the program, up to where there is none. Returns how many bytes those are.
fn read(local: &Local, from: u64, to: &mut [u8]) -> usize {
    // A call does not transfer a part of a range.
    let page = (4096 - (from & 4095)) as usize;
    let first = to.len().min(page);
    let ranges = [[from, first as u64], [from.wrapping_add(first as u64), (to.len() - first) as u64]];
    let tid = local.tid.load(Relaxed) as i32;
    match permits::reads() {
        true => usize::try_from(kernel::read_process(tid, to, &ranges)).unwrap_or(0),
        false => 0,
    }
}
