//! The ring that an event's records are written to, and its only reader.
//!
//! ```text
//!  page 0: struct perf_event_mmap_page               pages 1 … n (a power of two)
//!  ┌──────────────────────────────────────────────┐ ┌──────────────────────────────────────┐
//!  │ 1024: u64 data_head (kernel) · 1032: u64 tail │ │ records: u32 kind, u16 misc, u16 size │
//!  └──────────────────────────────────────────────┘ └──────────────────────────────────────┘
//! ```
//!
//! Positions count bytes and never wrap; records may cross the end, so each is copied out before it is handed on. A reader
//! that is too slow loses records, which a later record reports ([`super::record::Record::Lost`]). [`crate::span`] checks the
//! positions and each length; a ring with invalid ones is given up.

use super::Event;
use super::record::HEADER;
use crate::mapping::{Mapping, Mode, page_size};
use crate::span::{self, Nonsense};
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// The mapped ring of one event.
pub struct Ring {
    map: Mapping,
    /// Bytes of data, a power of two.
    size: usize,
    page: usize,
    record: Vec<u8>,
    /// The reader's position. The page's word is only a copy for the kernel.
    read: u64,
    /// It had invalid contents, and is no longer read.
    given_up: bool,
}

impl Ring {
    /// Maps a ring of `pages` pages of data (a power of two) for `event`.
    ///
    /// # Errors
    /// `EPERM`: more than `kernel.perf_event_mlock_kb` allows; fewer pages may do. `EINVAL`: an inherited event of all CPUs.
    /// `ResourceBusy`: it has a reader.
    pub fn new(event: &Event, pages: usize) -> io::Result<Ring> {
        if !pages.is_power_of_two() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let page = page_size();
        let map = Mapping::new(event.as_fd(), 0, page * (pages + 1), Mode::Shared)?;
        if !event.claim_reader() {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        Ok(Ring::of(map, page, pages))
    }

    fn of(map: Mapping, page: usize, pages: usize) -> Ring {
        let mut ring = Ring { map, size: page * pages, page, record: Vec::new(), read: 0, given_up: false };
        ring.read = ring.position(TAIL).load(Ordering::Relaxed);
        ring
    }

    fn position(&self, at: usize) -> &AtomicU64 {
        // SAFETY: a word of the first page, aligned, mapped as long as `self`; the kernel accesses it as one word too.
        unsafe { &*self.map.base().add(at).cast::<AtomicU64>() }
    }

    /// Copies the beginning of a span that has at least as many bytes.
    fn copy(&self, from: &span::Span, out: &mut [u8]) {
        assert!(out.len() as u64 <= from.left() && from.left() <= self.size as u64, "within the ring's data");
        let first = out.len().min(from.contiguous() as usize);
        // SAFETY: both parts are within the data pages; the kernel does not write there before the tail has passed them.
        unsafe {
            let data = self.map.base().add(self.page);
            std::ptr::copy_nonoverlapping(data.add(from.offset()), out.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(data, out.as_mut_ptr().add(first), out.len() - first);
        }
    }

    /// Hands the records that are there at the time of the call to `each`, in order; returns how many.
    pub fn drain(&mut self, each: impl FnMut(&[u8])) -> usize {
        let (mut record, mut count) = (std::mem::take(&mut self.record), 0);
        if !self.given_up
            && let Err(why) = self.read(&mut record, each, &mut count)
        {
            self.given_up = true;
            span::give_up("a ring of perf events", why);
        }
        self.record = record;
        count
    }

    fn read(&mut self, record: &mut Vec<u8>, mut each: impl FnMut(&[u8]), count: &mut usize) -> Result<(), Nonsense> {
        // Acquire pairs with the kernel's barrier before it moves the head.
        let head = self.position(HEAD).load(Ordering::Acquire);
        let mut span = span::readable(self.read, head, self.size as u64)?;
        while !span.is_empty() {
            let (start, mut header) = (span, [0; HEADER]);
            self.copy(&start, &mut header);
            let len = u16::from_ne_bytes([header[6], header[7]]);
            span.take(len.into())?;
            record.resize(len.into(), 0);
            self.copy(&start, record);
            self.read = span.head();
            // Release: the bytes are copied before the kernel may write there again.
            self.position(TAIL).store(self.read, Ordering::Release);
            each(record);
            *count += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fake(head: u64, tail: u64, words: &[u16]) -> Ring {
        let map = Mapping::anonymous(8192).expect("a mapping");
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).take(4096).collect();
        // SAFETY: the page of data, which nobody else uses.
        unsafe { map.base().add(4096).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        let mut ring = Ring { map, size: 4096, page: 4096, record: Vec::new(), read: tail, given_up: false };
        ring.position(HEAD).store(head, Ordering::Relaxed);
        ring.position(TAIL).store(!tail, Ordering::Relaxed);
        ring.record.clear();
        ring
    }

    proptest! {
        #[test]
        fn hostile_contents_are_not_followed(
            tail in prop_oneof![any::<u64>(), (0u64..1200).prop_map(|n| n * 8)],
            ahead in prop_oneof![any::<u64>(), (0u64..520).prop_map(|n| n * 8)],
            words in proptest::collection::vec(prop_oneof![any::<u16>(), (1u16..9).prop_map(|n| n * 8)], 2048),
        ) {
            let mut ring = fake(tail.wrapping_add(ahead), tail, &words);
            let mut seen = 0;
            let n = ring.drain(|r| seen += r.len());
            prop_assert!(n <= 512 && seen <= 4096);
            prop_assert_eq!(ring.read.wrapping_sub(tail), seen as u64);
            prop_assert!(ring.given_up || seen as u64 == ahead);
            prop_assert!(!ring.given_up || ring.drain(|_| panic!("read on")) == 0);
        }
    }

    #[test]
    #[should_panic = "within the ring's data"]
    fn no_more_is_copied_than_there_is() {
        let ring = fake(16, 0, &[]);
        ring.copy(&span::readable(0, 16, 4096).unwrap(), &mut [0; 24]);
    }

    #[test]
    fn records_across_the_end_are_whole() {
        let mut words = vec![0u16; 2048];
        // A record of 24 bytes that begins 8 before the end: its size is the fourth word of its header.
        words[2047] = 24;
        let mut ring = fake(4096 + 16, 4088, &words);
        let mut lens = Vec::new();
        assert_eq!((ring.drain(|r| lens.push(r.len())), lens), (1, vec![24]));
        assert_eq!(ring.position(TAIL).load(Ordering::Relaxed), 4112);
    }
}
