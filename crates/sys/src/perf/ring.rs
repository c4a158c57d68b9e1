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
//! that is too slow loses records, which the next one says ([`super::record::Record::Lost`]).

use super::Event;
use super::record::HEADER;
use crate::bpf::mapping::{Mapping, Mode};
use crate::bpf::page_size;
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
}

impl Ring {
    /// Maps a ring of `pages` pages of data (a power of two) for `event`.
    ///
    /// # Errors
    /// `EPERM`: more than `kernel.perf_event_mlock_kb` allows; fewer pages may do. `EINVAL`: an inherited event of all CPUs.
    pub fn new(event: &Event, pages: usize) -> io::Result<Ring> {
        if !pages.is_power_of_two() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let page = page_size();
        let map = Mapping::new(event.as_fd(), 0, page * (pages + 1), Mode::Shared)?;
        Ok(Ring { map, size: page * pages, page, record: Vec::new() })
    }

    fn position(&self, at: usize) -> &AtomicU64 {
        // SAFETY: a word of the first page, aligned, mapped as long as `self`; the kernel accesses it as one word too.
        unsafe { &*self.map.base().add(at).cast::<AtomicU64>() }
    }

    /// Copies `out.len()` bytes of data from position `at`.
    fn copy(&self, at: u64, out: &mut [u8]) {
        let offset = at as usize & (self.size - 1);
        let first = out.len().min(self.size - offset);
        // SAFETY: both parts are within the data pages; the kernel does not write there before the tail has passed them.
        unsafe {
            let data = self.map.base().add(self.page);
            std::ptr::copy_nonoverlapping(data.add(offset), out.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(data, out.as_mut_ptr().add(first), out.len() - first);
        }
    }

    /// Hands the records that are there at the time of the call to `each`, in order; returns how many.
    pub fn drain(&mut self, mut each: impl FnMut(&[u8])) -> usize {
        // Ours alone: relaxed. Acquire pairs with the kernel's barrier before it moves the head.
        let mut at = self.position(TAIL).load(Ordering::Relaxed);
        let head = self.position(HEAD).load(Ordering::Acquire);
        let mut record = std::mem::take(&mut self.record);
        let mut count = 0;
        while head.wrapping_sub(at) >= HEADER as u64 {
            let mut header = [0; HEADER];
            self.copy(at, &mut header);
            let len = usize::from(u16::from_ne_bytes([header[6], header[7]]));
            if len < HEADER || len as u64 > head.wrapping_sub(at) || len > self.size {
                at = head; // Not a ring: read nothing more of it.
                break;
            }
            record.resize(len, 0);
            self.copy(at, &mut record);
            at = at.wrapping_add(len as u64);
            // Release: the bytes are copied before the kernel may write there again.
            self.position(TAIL).store(at, Ordering::Release);
            each(&record);
            count += 1;
        }
        self.position(TAIL).store(at, Ordering::Release);
        self.record = record;
        count
    }
}
