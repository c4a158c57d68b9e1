//! Memory of the interpreter: kernel objects, each a region of its own, and user memory.
//!
//! ```text
//! region n starts at 1<<63 | n<<32; the rest of its 4 GiB is empty, so that one byte too far is nowhere
//! user memory is what lies below 1<<63; instructions never reach it, helpers do
//! ```
//!
//! Not here: what the regions mean (maps, rings, frames).
//!
//! Invariant: every access is inside one region, alive, and allowed there; else it is a fault.

use super::Cause;

/// Start of the kernel's half.
const KERNEL: u64 = 1 << 63;
/// What a ring record holds before it is written: whatever was in the ring before.
pub(super) const STALE: u8 = 0xa5;

/// What instructions may do with a region. Helpers that probe may read all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Load and store: map values, ring records.
    ReadWrite,
    /// Load: an object that a BTF-typed pointer leads to.
    ReadOnly,
    /// Neither; for `probe_read_kernel` alone: what raw tracepoints point to.
    Probe,
}

#[derive(Clone, Debug)]
struct Region {
    bytes: Vec<u8>,
    access: Access,
    aligned: bool,
    /// By byte: was it written? Empty where that is not asked.
    written: Vec<bool>,
}

/// All memory. Regions are never moved; those freed leave a hole.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    regions: Vec<Option<Region>>,
    user: Vec<(u64, Vec<u8>)>,
}

fn parts(address: u64) -> Option<(usize, usize)> {
    let index = usize::try_from((address ^ KERNEL) >> 32).ok()?;
    (address >= KERNEL).then_some((index, address as u32 as usize))
}

impl Memory {
    /// Adds a region and gives its address.
    pub fn add(&mut self, bytes: Vec<u8>, access: Access) -> u64 {
        self.push(Region { bytes, access, aligned: false, written: Vec::new() })
    }

    /// Adds a read-only region that wants natural alignment.
    pub(super) fn add_ctx(&mut self, bytes: &[u8]) -> u64 {
        let bytes = bytes.to_vec();
        self.push(Region { bytes, access: Access::ReadOnly, aligned: true, written: Vec::new() })
    }

    /// Adds a stack whose bytes cannot be read before they are written.
    pub(super) fn add_stack(&mut self, len: usize) -> u64 {
        let (bytes, written) = (vec![0; len], vec![false; len]);
        self.push(Region { bytes, access: Access::ReadWrite, aligned: true, written })
    }

    fn push(&mut self, region: Region) -> u64 {
        self.regions.push(Some(region));
        KERNEL | ((self.regions.len() as u64 - 1) << 32)
    }

    /// Frees a region: each later access is a fault.
    pub(super) fn free(&mut self, address: u64) {
        if let Some(region) = parts(address).and_then(|(index, _)| self.regions.get_mut(index)) {
            *region = None;
        }
    }

    /// Frees the region that was added last, and gives its place to the next.
    pub(super) fn pop(&mut self, address: u64) {
        self.free(address);
        while let Some(None) = self.regions.last() {
            self.regions.pop();
        }
    }

    /// Puts bytes into user memory; an earlier byte at the same address wins.
    pub fn add_user(&mut self, address: u64, bytes: &[u8]) {
        self.user.push((address, bytes.to_vec()));
    }

    /// Removes all user memory.
    pub fn clear_user(&mut self) {
        self.user.clear();
    }

    fn at(&self, address: u64, len: usize) -> Option<(&Region, std::ops::Range<usize>)> {
        let (index, at) = parts(address)?;
        let region = self.regions.get(index)?.as_ref()?;
        let range = at..at.checked_add(len)?;
        region.bytes.get(range.clone()).map(|_| (region, range))
    }

    /// The bytes, as instructions and helpers may read them.
    pub fn read(&self, address: u64, len: usize) -> Result<&[u8], Cause> {
        let fault = Cause::Memory { address, len: len as u64, write: false };
        let (region, range) = self.at(address, len).ok_or(fault.clone())?;
        if region.access == Access::Probe {
            return Err(fault);
        }
        match region.written.get(range.clone()).and_then(|w| w.iter().position(|w| !w)) {
            Some(at) => Err(Cause::StackUnwritten(address + at as u64)),
            None => Ok(&region.bytes[range]),
        }
    }

    /// Writes the bytes, as instructions and helpers may.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Cause> {
        let fault = Cause::Memory { address, len: bytes.len() as u64, write: true };
        let (_, range) = self.at(address, bytes.len()).ok_or(fault.clone())?;
        let region = parts(address).and_then(|(index, _)| self.regions.get_mut(index)).and_then(Option::as_mut);
        let region = region.filter(|r| r.access == Access::ReadWrite).ok_or(fault)?;
        if let Some(written) = region.written.get_mut(range.clone()) {
            written.fill(true);
        }
        region.bytes[range].copy_from_slice(bytes);
        Ok(())
    }

    fn aligned(&self, address: u64, len: usize) -> Result<(), Cause> {
        let crooked = !address.is_multiple_of(len as u64);
        match self.at(address, len) {
            Some((Region { aligned: true, .. }, _)) if crooked => Err(Cause::Unaligned(address)),
            _ => Ok(()),
        }
    }

    /// A load of 1, 2, 4 or 8 bytes.
    pub(super) fn load(&self, address: u64, len: usize) -> Result<u64, Cause> {
        self.aligned(address, len)?;
        let mut word = [0; 8];
        for (to, from) in word.iter_mut().zip(self.read(address, len)?) {
            *to = *from;
        }
        Ok(u64::from_le_bytes(word))
    }

    /// A store of 1, 2, 4 or 8 bytes.
    pub(super) fn store(&mut self, address: u64, len: usize, value: u64) -> Result<(), Cause> {
        self.aligned(address, len)?;
        self.write(address, &value.to_le_bytes()[..len.min(8)])
    }

    /// The bytes of a region, whatever may be done with it.
    pub(super) fn peek(&self, address: u64, len: usize) -> Option<&[u8]> {
        self.at(address, len).map(|(region, range)| &region.bytes[range])
    }

    fn user_byte(&self, address: u64) -> Option<u8> {
        let inside = |(from, bytes): &(u64, Vec<u8>)| {
            let at = usize::try_from(address.checked_sub(*from)?).ok()?;
            bytes.get(at).copied()
        };
        self.user.iter().find_map(inside)
    }

    /// One byte of user memory, or of kernel memory as a probe reads it.
    pub(super) fn probe(&self, user: bool, address: u64) -> Option<u8> {
        if user { self.user_byte(address) } else { self.peek(address, 1).map(|b| b[0]) }
    }

    /// Whether an address is in the user's half.
    pub(super) fn is_user(address: u64) -> bool {
        address < KERNEL
    }
}
