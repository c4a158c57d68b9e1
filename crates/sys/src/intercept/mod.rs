//! System calls that a traced process records itself: the code and the memory for that, seen from the ptracer.
//!
//! ```text
//!  the process                                              the ptracer
//!  CODE   code │ rows: what is captured of each call   ◄──  Memory::new
//!  SLOTS  slot │ slot │ …   one per thread             ──►  Slot: records, and the call that the thread is in
//!
//!  a slot:    words (slot) │ ring of records
//!  a record:  length, number │ times │ processors │ arguments │ result │ address │ lengths │ captures of entry │ captures of exit
//!  a capture: address │ length │ bytes, up to a multiple of 8
//! ```
//!
//! Both are one file in memory (memfd_create(2)), which the process makes and the ptracer fills. Children of fork share it, and so each of
//! their threads has a slot of its own. Slots are mapped in parts of 57 MB: most processes need one.
//!
//! The process may write there what it likes: every number from there is checked, and no more than the file is read.

mod code;
mod descriptor;

pub use code::At;
pub use descriptor::Descriptor;

use crate::agent;
use crate::check::check;
use crate::mapping::{Mapping, Mode};
use std::cell::{OnceCell, RefCell};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where the code is in every process. The upper half of its addresses is its own: filters know calls that are made there by that.
pub const CODE: u64 = 0x10fe_0000_0000;
/// Where the slots are.
pub const SLOTS: u64 = 0x10fd_0000_0000;
/// Bytes of code and rows.
pub const CODE_LEN: u64 = SLOTS_AT as u64;
/// Bytes of a part of the slots.
pub const PART_LEN: u64 = (SLOT * PART) as u64;
/// How many slots a process maps at once: more when it has more threads.
const PART: usize = 96;
/// How many parts there can be.
const PARTS: usize = 64;

/// How many rows: numbers of calls.
pub const ROWS: usize = 512;
const ROWS_AT: usize = 4096;
const ROW: usize = 1 << ROW_BITS;
const ROW_BITS: usize = 7;
const SLOTS_AT: usize = ROWS_AT + ROWS * ROW;
/// What may be in a ring before it counts as full, and where its next record is the first again.
const EXIT: usize = 512 << 10;
/// The most bytes of a record.
pub const LONGEST: usize = 80 << 10;
const ROOM: usize = EXIT - LONGEST;
/// From here on, a record whose forerunners were all read begins at the beginning of the ring: memory that was never written to takes no memory.
const LITTLE: usize = 64 << 10;
const RING_AT: usize = 4096;
const SLOT: usize = RING_AT + EXIT + LONGEST;
const _: () = assert!(SLOT.is_multiple_of(4096) && SLOTS_AT.is_multiple_of(4096));
const _: () = assert!(SLOTS + PART_LEN * PARTS as u64 <= CODE);
/// Bytes of a record in front of its captures.
pub const RECORD: usize = 104;
/// Bytes of a message's control data that are read.
pub const CONTROL: u16 = 4096;
/// Bytes of a `struct mmsghdr`.
pub const MMSGHDR: usize = size_of::<libc::mmsghdr>();
/// Of a slot that is in use.
const MAGIC: u64 = 0x7261_7063;

/// The words of a slot, by offset.
mod slot {
    /// [`super::MAGIC`], or 0: calls are made where they stop.
    pub const MAGIC: usize = 0;
    /// Bytes of records that were written, and that were read.
    pub const TAIL: usize = 8;
    pub const HEAD: usize = 16;
    /// Where the next record begins in the ring.
    pub const OFF: usize = 24;
    /// Address of the ring.
    pub const RING: usize = 32;
    /// Address of the record that is written.
    pub const CUR: usize = 40;
    /// 0: in no call, 1: before it, 2: in it, 3: behind it.
    pub const STATE: usize = 48;
    /// The address behind the patched instruction, and where the call can be made instead.
    pub const RET: usize = 56;
    pub const RAW: usize = 64;
    /// Registers of the program.
    pub const RAX: usize = 72;
    pub const FLAGS: usize = 80;
    pub const R11: usize = 88;
    /// Where the captures return to.
    pub const LINK: usize = 96;
    /// The first capture of this end of the call, and where the bytes of the last one begin and end.
    pub const FIRST: usize = 104;
    pub const LAST: usize = 112;
    pub const LAST_END: usize = 120;
    /// Two `struct iovec`: where bytes are copied to, and from.
    pub const TO: usize = 128;
    pub const FROM: usize = 144;
    /// Four registers meanwhile.
    pub const SAVED: usize = 160;
    /// A name in `/proc`, put together from its end: its NUL is the last byte.
    pub const NAME: usize = 192;
    pub const NAME_END: usize = NAME + 39;
    /// What rows may say for their calls to be recorded: bits of [`super::PLAIN`] and [`super::WITH_NAMES`].
    pub const MAY: usize = 232;
    /// After how many bytes of records the next one has begun at the beginning of the ring again, because all before it were read.
    pub const AGAIN: usize = 240;
    /// The address of the next message, and how many there still are.
    pub const MESSAGE: usize = 248;
    pub const MESSAGES: usize = 256;
    pub const END: usize = 264;
}

/// In the first byte of a row: the call is recorded, and nothing is said of descriptors.
const PLAIN: u8 = 1;
/// It is recorded, and what descriptors are.
const WITH_NAMES: u8 = 2;

/// Kinds of captures.
pub mod op {
    /// A string: up to its NUL.
    pub const STRING: u8 = 1;
    /// This many bytes as the limit says.
    pub const FIXED: u8 = 2;
    /// As many elements as the result says.
    pub const RESULT: u8 = 3;
    /// As many elements as an argument of 64 bits says.
    pub const ARGUMENT: u8 = 4;
    /// As an unsigned argument of 32 bits says.
    pub const UNSIGNED: u8 = 5;
    /// As a signed argument of 32 bits says.
    pub const SIGNED: u8 = 6;
    /// As many bits as a signed argument of 32 bits says.
    pub const BITS: u8 = 7;
    /// As many bytes as the limit allows, as far as they are there: the argument may be no address, or that of less. The kernel is asked for them.
    pub const ASKED: u8 = 8;
    /// What the first capture refers to: it has the address at the offset `argument`, and a number of elements of 32 bits at the offset
    /// `count`.
    pub const FIELD: u8 = 9;
    /// What each element of the capture before refers to (`struct iovec`: an address and a number of bytes): of `size` elements, up to the limit of
    /// each.
    pub const EACH: u8 = 10;
    /// What a descriptor is ([`super::Descriptor`]), behind the call: `argument` is that which has it, or one of the following.
    pub const DESCRIPTOR: u8 = 11;
    /// The result is the descriptor.
    pub const MADE: u8 = 6;
    /// Instead of a descriptor the working directory.
    pub const DIRECTORY: u8 = 7;
    /// The descriptors are the two numbers of 32 bits that the first capture has.
    pub const FIRST_OF_TWO: u8 = 8;
    /// The second one.
    pub const SECOND_OF_TWO: u8 = 9;
    /// It is the first, or one of the next, that a message has brought (`SCM_RIGHTS`), whose header is the first capture.
    pub const PASSED: u8 = 10;
    /// Several messages (`struct mmsghdr`) are at the address: `count` is the argument, or [`COUNT_OF_RESULT`], that has their number. The following ops,
    /// from [`MESSAGE`] to [`NEXT`], are for each, and nothing is behind them.
    pub const MESSAGES: u8 = 12;
    /// The next message, unless there is no more, or the record has as many units of [`UNIT`] bytes as the limit says. To the ops behind it, it is the first capture.
    pub const MESSAGE: u8 = 13;
    /// Back to [`MESSAGE`], which is [`BODY`] ops before it.
    pub const NEXT: u8 = 14;
    /// How many ops a message has: its header, name, control data, buffers, what these refer to.
    pub const BODY: usize = 5;
    /// Several messages are at the address, and at most `size`, and their captures take no more than the limit in units of [`UNIT`] bytes: where that is not so, or they
    /// cannot be read, the call is made where it stops. `plus`: bytes that each of their buffers takes.
    pub const FEW: u8 = 15;
    /// [`FEW`], but the call stops too where a message has room for control data.
    pub const FEW_WITHOUT_CONTROL: u8 = 16;
    /// The number is the result.
    pub const COUNT_OF_RESULT: u8 = 6;
    /// Bytes of a unit.
    pub const UNIT: usize = 8;
    /// The most bytes that captures of a message take besides those of its buffers and its control data: three captures' heads and ends, a header, a name.
    pub const OF_MESSAGE: usize = 4 * (16 + 8) + 64 + 128;
}

/// What is read of one argument's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// A kind of [`op`].
    pub kind: u8,
    /// The argument that has the address: below 6. Of [`op::FIELD`] an offset.
    pub argument: u8,
    /// The argument that has the number of elements: below 6. Of [`op::FIELD`] an offset.
    pub count: u8,
    /// Bytes of an element.
    pub size: u8,
    /// The most bytes.
    pub limit: u16,
    /// Of elements: more bytes than they have.
    pub plus: u16,
}

/// What is captured of a call. At most [`Row::MOST`] ops in all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Before it.
    pub entry: Vec<Op>,
    /// After it, where it succeeds.
    pub exit: Vec<Op>,
    /// Also where it fails.
    pub always: bool,
}

impl Row {
    /// The most ops of a row.
    pub const MOST: usize = ROW / 8 - 1;

    /// Whether it fits, as its records do.
    pub fn fits(&self) -> bool {
        let times = |op: &Op| if op.kind == op::EACH { usize::from(op.size) } else { 1 };
        let most = |op: &Op| match op.kind {
            op::MESSAGES | op::NEXT | op::FEW | op::FEW_WITHOUT_CONTROL => 0,
            // No further message begins where the others leave no room for it.
            op::MESSAGE => 16 + MMSGHDR + 8,
            _ => times(op) * (16 + usize::from(op.limit) + 8),
        };
        let bytes: usize = self.entry.iter().chain(&self.exit).map(most).sum();
        self.entry.len() + self.exit.len() <= Row::MOST && RECORD + bytes <= LONGEST
    }

    /// Whether it says what descriptors are.
    pub fn has_names(&self) -> bool {
        self.exit.iter().any(|op| op.kind == op::DESCRIPTOR)
    }

    fn bytes(&self) -> [u8; ROW] {
        let mut row = [0; ROW];
        let kind = if self.has_names() { WITH_NAMES } else { PLAIN };
        (row[0], row[1], row[2], row[3]) = (kind, self.entry.len() as u8, self.exit.len() as u8, self.always.into());
        for (to, op) in row[8..].chunks_exact_mut(8).zip(self.entry.iter().chain(&self.exit)) {
            [to[0], to[1], to[2], to[3]] = [op.kind, op.argument, op.count, op.size];
            to[4..6].copy_from_slice(&op.limit.to_le_bytes());
            to[6..8].copy_from_slice(&op.plus.to_le_bytes());
        }
        row
    }
}

/// Whether this machine can: its time stamp counter runs at a constant rate, and is read together with the processor's number.
pub fn is_possible() -> bool {
    const RDTSCP: u32 = 1 << 27;
    const INVARIANT: u32 = 1 << 8;
    const EXTENDED: u32 = 0x8000_0000;
    let cpuid = std::arch::x86_64::__cpuid;
    // Newer compilers know that it is safe.
    #[allow(unused_unsafe)]
    // SAFETY: every x86-64 processor has the instruction and the first of these leaves, which says which of the others there are.
    unsafe {
        cpuid(EXTENDED).eax >= EXTENDED + 7
            && cpuid(EXTENDED + 1).edx & RDTSCP != 0
            && cpuid(EXTENDED + 7).edx & INVARIANT != 0
    }
}

/// Where the part of the code begins that maps the slots and an area, by `Registers::make_function` (the process's descriptor of the file, address and
/// length of the area), and where a thread is when it has: the results of both are the first two arguments then.
pub fn setup() -> (u64, u64) {
    let (from, to) = code::setup();
    (CODE + from, CODE + to)
}

/// Where a thread is in the code; none: it is not there.
pub fn at(pc: u64) -> Option<At> {
    code::at(pc.checked_sub(CODE)?)
}

/// Where a thread goes on that has faulted there because of the program's memory.
pub fn fixup(pc: u64) -> Option<u64> {
    code::fixup(pc.checked_sub(CODE)?).map(|offset| CODE + offset)
}

/// Whether an address is that of a slot.
pub fn is_slot(address: u64) -> bool {
    (SLOTS..SLOTS + PART_LEN * PARTS as u64).contains(&address)
}

/// The memory that a process, and its children by fork, record calls in.
pub struct Memory {
    file: OwnedFd,
    /// The code, the rows and the first part of the slots; the other parts that some thread has a slot in.
    maps: [OnceCell<Mapping>; PARTS],
    /// How many parts the file has.
    parts: usize,
    /// Which slots are taken.
    taken: RefCell<Vec<bool>>,
}

impl Memory {
    /// Takes over the file that a process has made with memfd_create(2) and MFD_ALLOW_SEALING: sets its size, fills it, and seals that. `fd` is the
    /// process's descriptor; it is stopped.
    ///
    /// # Errors
    /// Those of pidfd_open(2), pidfd_getfd(2), ftruncate(2), fcntl(2) and mmap(2).
    pub fn new(pid: i32, fd: i32, rows: &[(usize, Row)]) -> io::Result<Rc<Memory>> {
        let pidfd = crate::process::pidfd(pid, false)?;
        // SAFETY: plain integers; a descriptor that is returned is ours.
        let file = unsafe {
            let got = check(libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), fd, 0))?;
            OwnedFd::from_raw_fd(got as i32)
        };
        let set_len = |parts: usize| {
            let len = SLOTS_AT + SLOT * PART * parts;
            // SAFETY: a descriptor that is open, and a length.
            check(unsafe { libc::ftruncate(file.as_raw_fd(), len as libc::off_t) }.into()).map(|_| parts)
        };
        // Only what is written takes memory. The limit of a file's size may be less than all of it.
        let parts = set_len(PARTS).or_else(|_| set_len(1))?;
        agent::seal(&file, 0)?;
        let memory = Memory { file, maps: [const { OnceCell::new() }; PARTS], parts, taken: RefCell::default() };
        memory.map(0)?;
        memory.write(0, &code::bytes());
        for (number, row) in rows.iter().filter(|(number, row)| *number < ROWS && row.fits()) {
            memory.write(ROWS_AT + number * ROW, &row.bytes());
        }
        Ok(Rc::new(memory))
    }

    /// Maps a part here.
    fn map(&self, part: usize) -> io::Result<()> {
        if self.maps[part].get().is_none() {
            let (from, end) = (if part == 0 { 0 } else { part_at(part) }, part_at(part + 1));
            let _ = self.maps[part].set(Mapping::new(self.file.as_fd(), from, end - from, Mode::Shared)?);
        }
        Ok(())
    }

    /// Where some bytes of one part are here.
    fn place(&self, at: usize, len: usize) -> *mut u8 {
        let part = at.saturating_sub(SLOTS_AT) / (SLOT * PART);
        let map = self.maps[part].get().unwrap_or_else(|| unreachable!("the part of a slot is mapped"));
        let inside = if part == 0 { at } else { at - part_at(part) };
        assert!(inside + len <= map.len(), "inside of a part");
        map.base().wrapping_add(inside)
    }

    fn write(&self, at: usize, bytes: &[u8]) {
        // SAFETY: there is room for these; the process has not mapped it yet.
        unsafe { self.place(at, bytes.len()).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    /// A word of the file.
    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8), "a word");
        // SAFETY: there is one; the file is sealed, so its pages stay, and parts stay mapped; the process and this one use atomic accesses of aligned
        // words.
        unsafe { &*self.place(at, 8).cast::<AtomicU64>() }
    }

    /// Copies bytes out of the file, which the process may be writing to.
    fn read(&self, at: usize, out: &mut Vec<u8>, len: usize) {
        let from = self.place(at, len);
        out.reserve(len);
        // SAFETY: these bytes are there, and there is room for this many. What the process writes meanwhile may or may not be among them: they are
        // bytes.
        unsafe {
            from.copy_to_nonoverlapping(out.as_mut_ptr().add(out.len()), len);
            out.set_len(out.len() + len);
        }
    }

    /// How many parts have to be mapped in a process so that one more of its threads gets a slot; none: all slots are taken.
    pub fn parts_for_one_more(&self) -> Option<usize> {
        let parts = first_free(&self.taken.borrow()) / PART + 1;
        (parts <= self.parts).then_some(parts)
    }
}

/// Where a part begins in the file.
const fn part_at(part: usize) -> usize {
    SLOTS_AT + SLOT * PART * part
}

fn first_free(taken: &[bool]) -> usize {
    taken.iter().position(|taken| !taken).unwrap_or(taken.len())
}

/// A thread's slot.
pub struct Slot {
    memory: Rc<Memory>,
    index: usize,
    /// What was read, and where the next record begins unless it is at the beginning again.
    head: u64,
    off: usize,
}

impl Slot {
    /// A slot that nobody has, in the parts that the process has mapped; none: all of these are taken. `with_names` as in [`Slot::set_names`].
    pub fn take(memory: &Rc<Memory>, parts: usize, with_names: bool) -> Option<Slot> {
        let mut taken = memory.taken.borrow_mut();
        let index = Some(first_free(&taken)).filter(|index| *index < parts.min(memory.parts) * PART)?;
        memory.map(index / PART).ok()?;
        if index == taken.len() {
            taken.push(true);
        } else {
            taken[index] = true;
        }
        let slot = Slot { memory: Rc::clone(memory), index, head: 0, off: 0 };
        for word in (slot::MAGIC..slot::END).step_by(8) {
            slot.set(word, 0);
        }
        slot.set_names(with_names);
        slot.set(slot::RING, slot.address() + RING_AT as u64);
        slot.set(slot::MAGIC, MAGIC);
        Some(slot)
    }

    /// Its address in the process: what `gs` has to lead to.
    pub fn address(&self) -> u64 {
        SLOTS + (self.index * SLOT) as u64
    }

    /// Whether each process that has any slots has this one mapped.
    pub fn is_in_first_part(&self) -> bool {
        self.index < PART
    }

    /// The memory that it is in.
    pub fn memory(&self) -> &Rc<Memory> {
        &self.memory
    }

    /// From now on the thread's calls are made where they stop. One that is under way is recorded.
    pub fn turn_off(&self) {
        self.set(slot::MAGIC, 0);
    }

    /// Whether what the thread reads in `/proc` is what the ptracer would read: otherwise, its calls that say what descriptors are stop.
    pub fn set_names(&self, with_names: bool) {
        self.set(slot::MAY, (PLAIN | if with_names { WITH_NAMES } else { 0 }).into());
    }

    fn base(&self) -> usize {
        SLOTS_AT + self.index * SLOT
    }

    fn get(&self, word: usize) -> u64 {
        self.memory.word(self.base() + word).load(Ordering::Acquire)
    }

    fn set(&self, word: usize, to: u64) {
        self.memory.word(self.base() + word).store(to, Ordering::Release);
    }

    /// Whether the thread is behind a call, and its record is not complete: its end may be before now. Otherwise, what is not complete now ends after now.
    pub fn is_behind(&self) -> bool {
        self.get(slot::STATE) == 3
    }

    /// Where the next record begins.
    fn next(&self) -> usize {
        if self.get(slot::AGAIN) == self.head { 0 } else { self.off }
    }

    /// Appends the records that are complete to `out`, and calls `each` with where each begins there. False: what the process has written there
    /// is no such records: some are lost.
    pub fn drain(&mut self, out: &mut Vec<u8>, mut each: impl FnMut(usize)) -> bool {
        let tail = self.get(slot::TAIL);
        let mut left = tail.wrapping_sub(self.head);
        if left == 0 {
            return true;
        }
        // The thread sets it before it publishes the first of these, and not again before all are read.
        self.off = self.next();
        let mut fine = left <= (EXIT + LONGEST) as u64;
        while fine && left > 0 {
            let at = self.base() + RING_AT + self.off;
            let len = (self.memory.word(at).load(Ordering::Relaxed) & 0xffff_ffff) as usize;
            fine = (RECORD..=LONGEST).contains(&len) && len.is_multiple_of(8) && len as u64 <= left;
            if fine {
                each(out.len());
                self.memory.read(at, out, len);
                left -= len as u64;
                self.off = if self.off + len >= EXIT { 0 } else { self.off + len };
            }
        }
        if !fine {
            // What follows is read from where the thread says.
            self.off = (self.get(slot::OFF) as usize).min(EXIT - 8) & !7;
        }
        self.head = tail;
        self.set(slot::HEAD, tail);
        fine
    }

    /// The record of the call that the thread is in, as far as it is written, and the result if the call is over. The slot was drained before.
    pub fn open(&self) -> Option<(Vec<u8>, Option<i64>)> {
        let state = self.get(slot::STATE);
        let off = self.next();
        let address = self.address() + (RING_AT + off) as u64;
        if !(2..=3).contains(&state) || self.get(slot::CUR) != address {
            return None;
        }
        let at = self.base() + RING_AT + off;
        let entry = (self.memory.word(at + 96).load(Ordering::Relaxed) & 0xffff_ffff) as usize;
        if !(RECORD..=LONGEST).contains(&entry) {
            return None;
        }
        let mut out = Vec::new();
        self.memory.read(at, &mut out, entry);
        // The length is written when the record is complete.
        out[..4].fill(0);
        Some((out, (state == 3).then(|| self.get(slot::RAX) as i64)))
    }

    /// The call that the thread is in is recorded by the ptracer: its record is not written.
    pub fn close(&self) {
        self.set(slot::STATE, 0);
    }

    /// The address behind the patched instruction, and that where the call can be made instead, of the call that the thread is in.
    pub fn ways(&self) -> (u64, u64) {
        (self.get(slot::RET), self.get(slot::RAW))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.turn_off();
        self.memory.taken.borrow_mut()[self.index] = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_rows_do_not_overlap() {
        assert!(code::bytes().len() <= ROWS_AT);
        assert_eq!((at(CODE), at(CODE + code::bytes().len() as u64), at(CODE - 1)), (Some(At::Entry), None, None));
        let path = Op { kind: op::STRING, argument: 1, count: 0, size: 1, limit: 4096, plus: 0 };
        let row = Row { entry: vec![path; Row::MOST], ..Row::default() };
        assert!(row.fits() && !Row { exit: vec![path], ..row }.fits());
        let each = Op { kind: op::EACH, size: 32, limit: 2048, ..path };
        assert!(!Row { entry: vec![path, each, each], ..Row::default() }.fits());
    }
}
