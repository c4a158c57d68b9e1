//! What is copied at a call, a return or a probe, and the record that has it (`abi::values`).
//!
//! ```text
//!  room in the chunk ─► the program copies values to this stack ─► record, values, then its word
//! ```
//!
//! Memory that a register leads to is read with process_vm_readv(2), which answers for any address, and once: what another thread changes
//! meanwhile is copied as it was. While a record is written, the thread is busy: calls of a handler that interrupts it then are counted as lost.

use crate::memory::load;
use crate::thread::{IN_TRACER, Local};
use crate::{chunks, kernel, permits};
use abi::caller;
use abi::shared::VALUES;
use abi::values::{self, CUT, ENDS, FAULT, FEW, LENGTH, MOST, NULL, Op, STEPS, Step};
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::compiler_fence;

/// What the program had in registers and on its stack.
pub trait Frame {
    /// The words at a place; None: there is nothing.
    fn place(&self, local: &Local, place: u8, offset: i32) -> Option<[u64; 2]>;

    /// This many bytes of the program's memory as a number; 0 where they cannot be read.
    #[inline(always)]
    fn word(&self, local: &Local, from: u64, size: usize) -> u64 {
        word(local, from, size)
    }
}

/// This many bytes of the program's memory as a number; 0 where they cannot be read.
pub fn word(local: &Local, from: u64, size: usize) -> u64 {
    let mut word = [0; 8];
    let wanted = word.get_mut(..size).unwrap_or_default();
    if read(local, from, wanted) < size { 0 } else { u64::from_le_bytes(word) }
}

/// Bytes of a record before its values: time, word, length.
pub const HEAD: u64 = 10;
/// What stores may go beyond the last value.
const SPARE: usize = 18;
/// Bytes of [`Values`] that any program fits.
pub const ANY: usize = MOST + SPARE;
/// Bytes of [`Values`] that programs fit which copy up to [`FEW`] bytes.
pub const SMALL: usize = FEW + SPARE;

/// Writes a record with this word, and what a program copies: its place, and where it ends at the latest. Where there is no room, it is counted. The time
/// is that after copying, if none is given. `N`: [`ANY`] or [`SMALL`].
#[inline(always)]
pub fn record<const N: usize>(local: &Local, frame: &impl Frame, word: u32, tsc: Option<u64>, program: (u64, u64)) {
    // With a marker before it.
    if !chunks::has_room(local, 8 + HEAD + N as u64) {
        return chunks::drop_records(local, 1);
    }
    let mut values = Values { bytes: [0; N], len: 0, base: None, fetched: 0 };
    values.run(local, frame, program);
    let tsc = tsc.unwrap_or_else(kernel::tsc);
    let len = if values.len == 0 { 8 } else { (HEAD + values.len as u64).next_multiple_of(8) };
    // A handler may have taken the room.
    if !chunks::has_room(local, len + 8) {
        return chunks::drop_records(local, 1);
    }
    let done = whole(local, core::ptr::from_ref(frame) as u64, (tsc >> 32) as u32, len, |at| {
        // SAFETY: the room lies in the thread's own chunk. The collector reads the word after the rest.
        unsafe {
            if len > 8 {
                ((at + 8) as *mut u16).write_volatile((len - HEAD) as u16);
                // The end is zeros, as the rest of the chunk.
                values.copy_to(at + HEAD, len - HEAD);
            }
            compiler_fence(SeqCst);
            put(at, tsc as u32, if len > 8 { word | VALUES } else { word });
        }
    });
    if !done {
        chunks::drop_records(local, 1);
    }
}

/// Writes a record of where the function was called from whose return address is at this place ([`abi::caller`]); 0: it has returned. Without
/// room there is none, and so is none of what comes next. `frame`: the place of the stub's.
pub fn caller(local: &Local, frame: u64, place: u64, address: u64) {
    const LEN: u64 = caller::SIZE as u64;
    if !chunks::has_room(local, LEN + 8) {
        return;
    }
    let tsc = kernel::tsc();
    whole(local, frame, (tsc >> 32) as u32, LEN, |at| {
        // SAFETY: as in `record`.
        unsafe {
            ((at + 8) as *mut u64).write_volatile(address << 16 | u64::from(caller::LEN));
            ((at + 16) as *mut u64).write_volatile(place);
            compiler_fence(SeqCst);
            put(at, tsc as u32, caller::WORD);
        }
    });
}

/// Has `write` write a record of this length, for which there is room, behind a marker where the counter's upper half is another. The thread is
/// busy meanwhile. False: a handler has taken the room.
#[inline(always)]
fn whole(local: &Local, frame: u64, high: u32, len: u64, write: impl FnOnce(u64)) -> bool {
    local.in_tracer.store(frame, Relaxed);
    local.busy.store(IN_TRACER, Relaxed);
    compiler_fence(SeqCst);
    // A handler's stubs find no room.
    let (end, mut at) = (local.end.swap(0, Relaxed), local.cur.load(Relaxed));
    compiler_fence(SeqCst);
    // It may have come before that, and have begun another chunk.
    let fits = at + len + 8 <= end;
    if fits {
        if local.high.load(Relaxed) != high {
            // SAFETY: the room lies in the thread's own chunk.
            unsafe { put(at, high, abi::shared::HIGH) };
            local.high.store(high, Relaxed);
            at += 8;
        }
        write(at);
        at += len;
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
    fits
}

/// Zeroes what a stub has written, behind the first word, of records of so many bytes that are begun anew.
pub fn clear_behind(local: &Local, bytes: u64) {
    let cur = local.cur.load(Relaxed);
    if cur == 0 || cur + bytes > local.end.load(Relaxed) {
        return;
    }
    for at in (cur + 8..cur + bytes).step_by(8) {
        // SAFETY: the room lies in the thread's own chunk, and has no record yet.
        unsafe { (at as *mut u64).write_volatile(0) };
    }
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

/// What a program has copied.
struct Values<const N: usize> {
    bytes: [u8; N],
    len: usize,
    base: Option<usize>,
    /// What was read last by [`Op::Fetch`].
    fetched: u64,
}

impl<const N: usize> Values<N> {
    /// The most bytes of values.
    const MOST: usize = N - SPARE;

    /// The words at a place; None: it lies in what could not be read.
    #[inline(always)]
    fn place(&self, local: &Local, frame: &impl Frame, place: u8, offset: i32) -> Option<[u64; 2]> {
        Some(match place {
            values::FIELD => {
                let at = self.base?.checked_add(usize::try_from(offset).ok()?)?;
                let word = self.bytes.get(at..self.len)?.first_chunk()?;
                [u64::from_le_bytes(*word), 0]
            }
            values::FETCHED => [self.fetched, 0],
            values::NOTHING => [0, 0],
            _ => return frame.place(local, place, offset),
        })
    }

    #[inline(always)]
    fn run(&mut self, local: &Local, frame: &impl Frame, (mut at, end): (u64, u64)) {
        let mut next = || {
            // SAFETY: within the area, which is mapped for good.
            let step = (at + 8 <= end).then(|| Step::parse(unsafe { load(at) }.to_le_bytes()))?;
            at += 8;
            Some(step)
        };
        for _ in 0..STEPS {
            let Some(step) = next() else { return };
            let size = usize::from(step.size);
            let source = self.place(local, frame, step.place, step.offset);
            let done = match step.op {
                op if op == Op::Load as u8 => source.map(|[low, high]| self.load(low, high, size)),
                op if op == Op::Text as u8 => source.map(|[from, _]| self.text(local, from, size)),
                op if op == Op::Slice as u8 => {
                    let Some(second) = next() else { return };
                    let len = self.place(local, frame, second.place, second.offset);
                    source.zip(len).map(|([from, _], [len, _])| self.slice(local, from, len, size))
                }
                op if op == Op::Pointee as u8 => source.map(|[from, _]| self.pointee(local, from, size)),
                op if op == Op::Base as u8 => {
                    self.base = self.len.checked_sub(size);
                    Some(true)
                }
                op if op == Op::Fetch as u8 => {
                    let Some(second) = next() else { return };
                    let index = self.place(local, frame, second.place, 0).map_or(0, |[n, _]| n);
                    let from = source.map_or(0, |[n, _]| n).wrapping_add_signed(step.offset.into());
                    self.fetched = frame.word(local, from.wrapping_add(index.wrapping_mul(second.size.into())), size);
                    Some(true)
                }
                op if op == Op::Cpu as u8 => Some(self.load(u64::from(kernel::cpu()), 0, 4)),
                _ => return,
            };
            // What is missing because of a pointer that leads nowhere is left out; the rest follows.
            if done == Some(false) {
                return;
            }
        }
    }

    /// Appends bytes of two words. False: there is no room.
    #[inline(always)]
    fn load(&mut self, low: u64, high: u64, size: usize) -> bool {
        if size > 16 || self.len + size > Self::MOST {
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
        if self.len + 2 + size > Self::MOST {
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
        if self.len + 2 + size > Self::MOST {
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
        if self.len + 2 + size > Self::MOST {
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
        if self.len + 10 > Self::MOST {
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

    /// Copies this many bytes from the start, which are no more than there are.
    ///
    /// # Safety
    /// The memory is the thread's, and so are 8 bytes behind it.
    unsafe fn copy_to(&self, to: u64, len: u64) {
        // What is written beyond the last one is zeros, as what is there.
        let mut at = 0;
        while at < len as usize {
            if let Some(word) = self.bytes.get(at..).and_then(<[u8]>::first_chunk) {
                // SAFETY: so says the caller.
                unsafe { ((to + at as u64) as *mut u64).write_unaligned(u64::from_le_bytes(*word)) };
            }
            at += 8;
        }
    }
}

/// Reads memory of the program, up to where there is none. Returns how many bytes those are.
pub fn read(local: &Local, from: u64, to: &mut [u8]) -> usize {
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
