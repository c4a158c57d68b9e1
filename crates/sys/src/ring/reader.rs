//! The reading side, which trusts nothing that the writer writes.

use super::control::FrontEnd;
use super::memory::{Memory, PREFIX, SKIP};
use crate::span::{self, Nonsense, Span};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The only reader of a ring.
pub struct Reader {
    memory: Arc<Memory>,
    /// Its position. The shared word is only a copy for the writer.
    pub(super) read: u64,
    /// It has found invalid contents.
    given_up: bool,
}

impl Reader {
    /// The reader of memory that is new.
    pub(super) fn new(memory: Arc<Memory>) -> Reader {
        Reader { memory, read: 0, given_up: false }
    }

    /// The front end's side of the control page.
    pub fn control(&self) -> FrontEnd<'_> {
        FrontEnd::new(self.memory.page())
    }

    /// Bytes of room.
    pub fn size(&self) -> u64 {
        self.memory.size()
    }

    /// Bytes in the ring; all of it where that is not known.
    pub fn used(&self) -> u64 {
        self.memory.used()
    }

    /// Whether the writer has marked the end of the frames.
    pub fn is_finished(&self) -> bool {
        self.memory.positions().finished.load(Ordering::SeqCst) != 0
    }

    /// Whether the ring is no longer read, because it has invalid contents.
    pub fn is_given_up(&self) -> bool {
        self.given_up
    }

    /// Passes every available frame to `each`; returns how many.
    ///
    /// The frame's bytes are copied out of shared memory into `scratch` first, so that `each` sees them unchanging.
    pub fn drain(&mut self, scratch: &mut Vec<u8>, each: impl FnMut(&[u8])) -> usize {
        let mut n = 0;
        if !self.given_up
            && let Err(why) = self.read(scratch, each, &mut n)
        {
            self.given_up = true;
            span::give_up("the tracer's ring", why);
        }
        n
    }

    fn read(&mut self, scratch: &mut Vec<u8>, mut each: impl FnMut(&[u8]), n: &mut usize) -> Result<(), Nonsense> {
        let p = self.memory.positions();
        let mut span = self.memory.readable(self.read, p.tail.load(Ordering::Acquire))?;
        while !span.is_empty() {
            if self.next(&mut span, scratch)? {
                each(scratch);
                *n += 1;
            }
            self.read = span.head();
            p.head.store(self.read, Ordering::Release);
            if p.writer.is_used() && self.used() <= self.size() / 2 {
                p.writer.wake();
            }
        }
        Ok(())
    }

    /// Takes the next frame and copies it out; false where it only fills the end of the ring.
    fn next(&self, span: &mut Span, scratch: &mut Vec<u8>) -> Result<bool, Nonsense> {
        let start = *span;
        // SAFETY: the word lies in the mapping. An atomic, because a writer that is not ours may write it meanwhile: it is read
        // once.
        let len = unsafe { AtomicU32::from_ptr(self.memory.word(span.offset())) }.load(Ordering::Relaxed);
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
            let from = self.memory.word(start.offset()).add(2).cast::<u8>();
            scratch.extend_from_slice(std::slice::from_raw_parts(from, len as usize));
        }
        Ok(true)
    }

    /// Sleeps until the ring fills up, the writer finishes, or `timeout` has passed.
    pub fn wait_for_frames(&self, timeout: Duration) {
        let fills = || !self.given_up && self.used() >= self.size() / 8;
        self.memory.positions().reader.until(|| fills() || self.is_finished(), timeout);
    }
}
