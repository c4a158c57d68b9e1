//! The shared ring between the ptracer and the front end: one writer, one reader, events as whole frames.
//!
//! ```text
//!  0            8192                                             8192 + size
//!  ┌────────────┬───────────────────────────────────────────────┐
//!  │ Control    │ frame │ frame │ … │ skip │                     │   frame = u32 length, u32 0, bytes, pad to 8
//!  └────────────┴───────────────────────────────────────────────┘
//! ```
//!
//! Positions count bytes from the start and never wrap; a frame never crosses the end (a `SKIP` frame fills the rest). Full: the
//! writer says no, and decides to wait or to count. The memory is a memfd that both map; either side may die at any moment
//! without the other noticing more than silence.
//!
//! Neither side trusts the other. Each keeps its own position where only it can write, and checks the other's, and every length,
//! by [`crate::span`]. What is nonsense ends the use of the ring: the reader gives it up, the writer finds no reader any more.

use crate::check;
use crate::span::{self, Nonsense, Span};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

const SKIP: u32 = u32::MAX;
/// Bytes in front of the data.
const HEAD: usize = 8192;
/// The smallest ring, bytes.
const SMALLEST: usize = 4096;
/// Bytes in front of a frame.
const PREFIX: u64 = 8;

/// What both sides see, at the start of the mapping. Legend: (w) written by the writer, (r) by the reader.
#[repr(C)]
pub struct Control {
    /// (w) Bytes written.
    tail: AtomicU64,
    /// (r) Bytes read.
    head: AtomicU64,
    /// (r) The reader sleeps; (w) clears it and wakes. Futex.
    reader_sleeps: AtomicU32,
    /// (w) The writer sleeps; (r) clears it and wakes. Futex.
    writer_sleeps: AtomicU32,
    /// (w) No more frames will come.
    pub finished: AtomicU32,
    /// (r) The reader asks the writer to detach from everything and finish.
    pub stop: AtomicU32,
    /// (w) Events that were lost.
    dropped: AtomicU64,
    /// (w) The command's process id, 0 before it is known.
    pub command: AtomicI32,
    /// (w) The command's wait status; valid when `finished` is set and `command_ended` is 1.
    pub status: AtomicI32,
    /// (w) The command has ended.
    pub command_ended: AtomicU32,
    /// (w) errno of a start that failed, 0 for none.
    pub failure: AtomicI32,
    /// (w) What failed: one of the `FAILED_` constants of the backend.
    pub failed_at: AtomicU32,
    /// (w) Process or thread that it failed for.
    pub failed_pid: AtomicI32,
    /// (w) Who traced it already, 0 for nobody.
    pub failed_tracer: AtomicI32,
    /// (w) All targets are attached, or the command runs.
    pub started: AtomicU32,
    /// (w) Stops at calls that the kernel did not tell of.
    pub unread: AtomicU64,
    /// (w) Calls that the attach interrupted for good.
    pub interrupted: AtomicU64,
    /// (r) Whether events are held back, and which calls are wanted: of sessions that take orders.
    pub orders: Orders,
    /// (w) The lost events of each class, by its id, where that is known.
    dropped_classes: [AtomicU64; Control::CLASSES],
}

impl Control {
    /// Classes that have a counter.
    const CLASSES: usize = 512;

    /// Counts a lost event; `class`: its id. Writer only.
    pub fn drop_event(&self, class: Option<u16>) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
        if let Some(n) = class.and_then(|id| self.dropped_classes.get(usize::from(id))) {
            n.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Events that were lost.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Those of each class, by its id, where there are any.
    pub fn dropped_by_class(&self) -> Vec<(u16, u64)> {
        let all = (0..).zip(&self.dropped_classes).map(|(id, n)| (id, n.load(Ordering::Relaxed)));
        all.filter(|(_, n)| *n > 0).collect()
    }
}

/// What the reader may change while the writer traces.
#[repr(C)]
pub struct Orders {
    /// Calls and signals are held back.
    pub stopped: AtomicU32,
    /// Calls of no table are wanted.
    pub unknown: AtomicU32,
    /// A bit for each number of a call that is wanted.
    wanted: [AtomicU64; Orders::NUMBERS / 64],
}

impl Orders {
    /// Numbers that have a bit.
    pub const NUMBERS: usize = 1024;

    /// Whether the call with this number is wanted; none for numbers that have no bit.
    pub fn wants(&self, nr: u64) -> Option<bool> {
        let word = self.wanted.get(usize::try_from(nr / 64).ok()?)?;
        Some(word.load(Ordering::Relaxed) >> (nr % 64) & 1 != 0)
    }

    /// These calls are wanted, by number, and no others.
    pub fn select(&self, wanted: &[bool], unknown: bool) {
        for (word, bits) in self.wanted.iter().zip(wanted.chunks(64).chain(std::iter::repeat(&[][..]))) {
            let bits = bits.iter().enumerate().fold(0, |all, (i, on)| all | u64::from(*on) << i);
            word.store(bits, Ordering::Relaxed);
        }
        self.unknown.store(unknown.into(), Ordering::Relaxed);
    }
}

const _: () = assert!(size_of::<Control>() <= HEAD);

/// Why a frame was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// There may be room later.
    Yet,
    /// It is longer than any that fits.
    Ever,
    /// The reader's position is nonsense: nobody reads.
    Reader(Nonsense),
}

/// The mapping. Dropping it unmaps; the memory goes with the last mapping.
pub struct Ring {
    base: *mut u8,
    size: usize,
    /// How far this process has read, or written: a process forked from the one that made the ring has its own.
    read: AtomicU64,
    written: AtomicU64,
    /// The reader has found nonsense.
    given_up: AtomicBool,
}

// SAFETY: the mapping is plain shared memory; all concurrent access goes through the atomics of Control, and frames are
// handed over with release and acquire on `tail` and `head`.
unsafe impl Send for Ring {}

impl Ring {
    /// Makes a ring of `size` data bytes, a power of two of at least 4096.
    pub fn new(size: usize) -> io::Result<Ring> {
        if !size.is_power_of_two() || size < SMALLEST {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: a NUL-terminated name and flags; the result is checked.
        let fd = check(unsafe { libc::memfd_create(c"trapline-ring".as_ptr(), libc::MFD_CLOEXEC) }.into())? as i32;
        // SAFETY: `fd` is ours; the length and protection are valid; the result is checked; the fd is closed once, after
        // which only the mapping keeps the memory.
        let base = unsafe {
            let sized = check(libc::ftruncate(fd, (HEAD + size) as i64).into());
            let p = match sized {
                Ok(_) => libc::mmap(
                    std::ptr::null_mut(),
                    HEAD + size,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_SHARED,
                    fd,
                    0,
                ),
                Err(_) => libc::MAP_FAILED,
            };
            let err = io::Error::last_os_error();
            libc::close(fd);
            if p == libc::MAP_FAILED {
                return Err(err);
            }
            p.cast::<u8>()
        };
        Ok(Ring { base, size, read: 0.into(), written: 0.into(), given_up: false.into() })
    }

    /// The shared words.
    pub fn control(&self) -> &Control {
        // SAFETY: the mapping starts with a page of its own, zeroed, aligned, and large enough for Control, whose fields
        // are atomics for which zero is valid; it lives as long as `self`.
        unsafe { &*self.base.cast::<Control>() }
    }

    /// The largest frame that always fits an empty ring.
    pub fn max_frame(&self) -> usize {
        self.size / 2 - 16
    }

    /// Bytes of room.
    pub fn size(&self) -> u64 {
        self.size as u64
    }

    /// Bytes in the ring; all of it where that is not known.
    pub fn used(&self) -> u64 {
        let c = self.control();
        let head = c.head.load(Ordering::Acquire);
        span::readable(head, c.tail.load(Ordering::Acquire), self.size()).map_or(self.size(), |s| s.left())
    }

    /// The word at an offset that a [`Span`] has given: below `size`, and a multiple of 8.
    fn word(&self, offset: usize) -> *mut u32 {
        debug_assert!(offset < self.size && offset.is_multiple_of(8));
        // SAFETY: so the two words from there lie inside the mapping.
        unsafe { self.base.add(HEAD + offset).cast::<u32>() }
    }

    /// Appends one frame. Writer only.
    pub fn push(&self, frame: &[u8]) -> Result<(), NoRoom> {
        if frame.len() > self.max_frame() {
            return Err(NoRoom::Ever);
        }
        let c = self.control();
        let need = (frame.len() as u64 + PREFIX).next_multiple_of(8);
        let tail = self.written.load(Ordering::Relaxed);
        let full = span::readable(c.head.load(Ordering::Acquire), tail, self.size()).map_err(NoRoom::Reader)?;
        // What is free begins where the ring's contents end.
        let offset = |at: u64| (at & (self.size() - 1)) as usize;
        let to_end = self.size() - offset(tail) as u64;
        let skip = if need > to_end { to_end } else { 0 };
        if need + skip > full.free() {
            return Err(NoRoom::Yet);
        }
        // SAFETY: [tail, tail + skip + need) is free, so that a reader of ours does not touch it, and neither the skip word nor
        // the frame crosses the end of the mapping.
        unsafe {
            if skip > 0 {
                self.word(offset(tail)).write(SKIP);
            }
            let w = self.word(offset(tail + skip));
            w.write(frame.len() as u32);
            w.add(1).write(0);
            w.add(2).cast::<u8>().copy_from_nonoverlapping(frame.as_ptr(), frame.len());
        }
        self.written.store(tail + skip + need, Ordering::Relaxed);
        c.tail.store(tail + skip + need, Ordering::Release);
        if c.reader_sleeps.load(Ordering::Relaxed) != 0 && self.used() >= self.size() / 8 {
            self.wake_reader();
        }
        Ok(())
    }

    /// Waits until the reader has made room, or `timeout` passed. Writer only.
    pub fn wait_for_room(&self, timeout: Duration) {
        let c = self.control();
        self.wake_reader();
        c.writer_sleeps.store(1, Ordering::SeqCst);
        if self.used() > self.size() / 2 {
            futex_wait(&c.writer_sleeps, 1, timeout);
        }
        c.writer_sleeps.store(0, Ordering::SeqCst);
    }

    /// Wakes the reader if it sleeps. Writer only.
    pub fn wake_reader(&self) {
        let c = self.control();
        if c.reader_sleeps.swap(0, Ordering::SeqCst) != 0 {
            futex_wake(&c.reader_sleeps);
        }
    }

    /// Hands every frame that is there to `each`; returns how many. Reader only.
    ///
    /// The frame's bytes are copied out of shared memory into `scratch` first, so that `each` sees them unchanging.
    pub fn drain(&self, scratch: &mut Vec<u8>, mut each: impl FnMut(&[u8])) -> usize {
        if self.is_given_up() {
            return 0;
        }
        let (mut n, c) = (0, self.control());
        let tail = c.tail.load(Ordering::Acquire);
        let mut span = match span::readable(self.read.load(Ordering::Relaxed), tail, self.size()) {
            Ok(span) => span,
            Err(why) => return self.give_up(why),
        };
        while !span.is_empty() {
            match self.next(&mut span, scratch) {
                Ok(true) => {
                    each(scratch);
                    n += 1;
                }
                Ok(false) => {}
                Err(why) => return n + self.give_up(why),
            }
            self.read.store(span.head(), Ordering::Relaxed);
            c.head.store(span.head(), Ordering::Release);
            if c.writer_sleeps.load(Ordering::Relaxed) != 0
                && self.used() <= self.size() / 2
                && c.writer_sleeps.swap(0, Ordering::SeqCst) != 0
            {
                futex_wake(&c.writer_sleeps);
            }
        }
        n
    }

    /// Takes the next frame and copies it out; false where it only fills the end of the ring.
    fn next(&self, span: &mut Span, scratch: &mut Vec<u8>) -> Result<bool, Nonsense> {
        let start = *span;
        // SAFETY: the word lies in the mapping. An atomic, because a writer that is not ours may write it meanwhile: it is read
        // once.
        let len = unsafe { AtomicU32::from_ptr(self.word(span.offset())) }.load(Ordering::Relaxed);
        if len == SKIP {
            span.take(span.contiguous())?;
            return Ok(false);
        }
        let padded = (u64::from(len) + PREFIX).next_multiple_of(8);
        if padded > span.contiguous() {
            return Err(Nonsense::Length { at: span.head(), len: padded, left: span.contiguous() });
        }
        span.take(padded)?;
        scratch.clear();
        // SAFETY: the frame lies in the mapping, before its end (checked). It was published by the writer, ours of which does not
        // touch it until `head` moves; from another one the bytes may be anything, which whoever parses them expects.
        unsafe {
            let from = self.word(start.offset()).add(2).cast::<u8>();
            scratch.extend_from_slice(std::slice::from_raw_parts(from, len as usize));
        }
        Ok(true)
    }

    /// Whether nothing more is read, because the ring says nonsense.
    pub fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    fn give_up(&self, why: Nonsense) -> usize {
        self.given_up.store(true, Ordering::Relaxed);
        span::give_up("the tracer's ring", why);
        0
    }

    /// Sleeps until the ring fills up, the writer finishes, or `timeout` passed. Reader only.
    pub fn wait_for_frames(&self, timeout: Duration) {
        let c = self.control();
        c.reader_sleeps.store(1, Ordering::SeqCst);
        if (self.is_given_up() || self.used() < self.size() / 8) && c.finished.load(Ordering::SeqCst) == 0 {
            futex_wait(&c.reader_sleeps, 1, timeout);
        }
        c.reader_sleeps.store(0, Ordering::SeqCst);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length and is not used after.
        unsafe { libc::munmap(self.base.cast(), HEAD + self.size) };
    }
}

fn futex_wait(word: &AtomicU32, value: u32, timeout: Duration) {
    let ts = libc::timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
    // SAFETY: the word lives in a mapping that outlives the call; the timeout is valid. Shared (not PRIVATE), because two
    // processes use it.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &raw const ts, 0, 0) };
}

fn futex_wake(word: &AtomicU32) {
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1, 0, 0, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn frames_come_out_in_order_across_many_wraps() {
        let ring = Ring::new(4096).unwrap();
        let (mut next_in, mut next_out, mut scratch) = (0u32, 0u32, Vec::new());
        while next_out < 5000 {
            let len = 4 + (next_in as usize * 37) % 900;
            let mut frame = vec![next_in as u8; len];
            frame[..4].copy_from_slice(&next_in.to_le_bytes());
            if next_in < 5000 && ring.push(&frame).is_ok() {
                next_in += 1;
                continue;
            }
            ring.drain(&mut scratch, |f| {
                assert_eq!(f[..4], next_out.to_le_bytes());
                assert_eq!(f.len(), 4 + (next_out as usize * 37) % 900);
                next_out += 1;
            });
        }
        assert_eq!(ring.used(), 0);
    }

    #[test]
    fn the_selection_is_what_was_selected_last() {
        let ring = Ring::new(4096).unwrap();
        let orders = &ring.control().orders;
        assert_eq!((orders.wants(0), orders.wants(1023), orders.wants(1024)), (Some(false), Some(false), None));
        let mut wanted = vec![false; 400];
        for nr in [0, 63, 64, 399] {
            wanted[nr] = true;
        }
        orders.select(&wanted, true);
        for nr in 0..1024 {
            assert_eq!(orders.wants(nr), Some(wanted.get(nr as usize).copied().unwrap_or(false)), "{nr}");
        }
        orders.select(&[], false);
        assert!((0..1024).all(|nr| orders.wants(nr) == Some(false)));
    }

    #[test]
    fn a_frame_that_can_never_fit_is_refused() {
        let ring = Ring::new(4096).unwrap();
        assert_eq!(ring.push(&vec![0; 4096]), Err(NoRoom::Ever));
        assert_eq!(ring.push(&vec![0; ring.max_frame()]), Ok(()));
        assert_eq!(ring.push(&vec![0; ring.max_frame()]), Ok(()));
        assert_eq!(ring.push(&[]), Ok(()));
        assert_eq!(ring.push(&vec![0; ring.max_frame()]), Err(NoRoom::Yet));
    }

    fn fill(ring: &Ring, bytes: &[u8]) {
        // SAFETY: a part of the ring's data, which nobody else uses.
        unsafe { ring.base.add(HEAD).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len().min(ring.size)) };
    }

    proptest! {
        #[test]
        fn a_hostile_writer_is_not_followed(
            tail in prop_oneof![any::<u64>(), 0u64..9000, (0u64..1125).prop_map(|n| n * 8)],
            head in prop_oneof![any::<u64>(), 0u64..9000],
            words in proptest::collection::vec(prop_oneof![Just(SKIP), 0u32..64, any::<u32>()], 1024),
        ) {
            let ring = Ring::new(4096).unwrap();
            let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            fill(&ring, &bytes);
            ring.control().tail.store(tail, Ordering::Relaxed);
            // The reader's own position is not the writer's to move.
            ring.control().head.store(head, Ordering::Relaxed);
            let (mut scratch, mut seen) = (Vec::new(), 0);
            let n = ring.drain(&mut scratch, |f| seen += f.len() + 8);
            prop_assert!(n <= 512 && seen <= 4096);
            let read = ring.read.load(Ordering::Relaxed);
            prop_assert!(read <= 4096 && (read == tail || ring.is_given_up()), "{read} of {tail}");
            prop_assert!(!ring.is_given_up() || ring.drain(&mut scratch, |_| panic!("read on")) == 0);
            prop_assert!(ring.used() <= 4096);
        }

        #[test]
        fn a_hostile_reader_is_not_followed(head in prop_oneof![any::<u64>(), 0u64..9000], n in 0usize..9) {
            let ring = Ring::new(4096).unwrap();
            for _ in 0..n {
                ring.push(&[7; 500]).unwrap_or_else(|e| assert_eq!(e, NoRoom::Yet));
            }
            let tail = ring.control().tail.load(Ordering::Relaxed);
            ring.control().head.store(head, Ordering::Relaxed);
            let possible = head <= tail && head % 8 == 0;
            prop_assert_eq!(matches!(ring.push(&[1]), Err(NoRoom::Reader(_))), !possible);
            prop_assert!(ring.used() <= 4096);
        }
    }
}
