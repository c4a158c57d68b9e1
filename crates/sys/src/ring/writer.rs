//! The writing side: frames in, whole or not at all.

use super::control::Ptracer;
use super::memory::{Memory, PREFIX, SKIP};
use crate::span::Nonsense;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Why a frame was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// There may be room later.
    Yet,
    /// It is longer than any that fits.
    Ever,
    /// The reader's position is invalid: nobody reads.
    Reader(Nonsense),
}

/// The only writer of a ring.
pub struct Writer {
    memory: Arc<Memory>,
    /// Its position. The shared word is only a copy for the reader.
    written: u64,
}

impl Writer {
    /// The writer of memory that is new.
    pub(super) fn new(memory: Arc<Memory>) -> Writer {
        Writer { memory, written: 0 }
    }

    /// The ptracer's side of the control page.
    pub fn control(&self) -> Ptracer<'_> {
        Ptracer::new(self.memory.page())
    }

    /// The largest frame that always fits an empty ring.
    pub fn max_frame(&self) -> usize {
        (self.memory.size() / 2 - 16) as usize
    }

    /// Appends one frame.
    pub fn push(&mut self, frame: &[u8]) -> Result<(), NoRoom> {
        if frame.len() > self.max_frame() {
            return Err(NoRoom::Ever);
        }
        let (m, p) = (&*self.memory, self.memory.positions());
        let need = (frame.len() as u64 + PREFIX).next_multiple_of(8);
        let tail = self.written;
        let full = m.readable(p.head.load(Ordering::Acquire), tail).map_err(NoRoom::Reader)?;
        // What is free begins where the ring's contents end.
        let offset = |at: u64| (at & (m.size() - 1)) as usize;
        let to_end = m.size() - offset(tail) as u64;
        let skip = if need > to_end { to_end } else { 0 };
        if need + skip > full.free() {
            return Err(NoRoom::Yet);
        }
        // SAFETY: [tail, tail + skip + need) is free, so that a reader of ours does not touch it, and neither the skip word nor
        // the frame crosses the end of the mapping.
        unsafe {
            if skip > 0 {
                m.word(offset(tail)).write(SKIP);
            }
            let w = m.word(offset(tail + skip));
            w.write(frame.len() as u32);
            w.add(1).write(0);
            w.add(2).cast::<u8>().copy_from_nonoverlapping(frame.as_ptr(), frame.len());
        }
        self.written = tail + skip + need;
        p.tail.store(self.written, Ordering::Release);
        if p.reader.is_used() && m.used() >= m.size() / 8 {
            p.reader.wake();
        }
        Ok(())
    }

    /// Waits until the reader has made room, or `timeout` has passed.
    pub fn wait_for_room(&self, timeout: Duration) {
        let p = self.memory.positions();
        p.reader.wake();
        p.writer.until(|| self.memory.used() <= self.memory.size() / 2, timeout);
    }

    /// Marks the end of the frames, and wakes the reader.
    pub fn finish(&self) {
        let p = self.memory.positions();
        p.finished.store(1, Ordering::SeqCst);
        p.reader.wake();
    }
}
