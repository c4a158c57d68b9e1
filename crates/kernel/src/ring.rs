//! A ring of events: the kernel's, or the one that programs write themselves.

use sys::bpf::own_ring::OwnRing;
use sys::bpf::ring::Ring as KernelRing;

/// The reading side of the ring of a processor.
pub enum Ring {
    /// `BPF_MAP_TYPE_RINGBUF`.
    Kernel(KernelRing),
    /// Places in the scratch buffer of the processor.
    Own {
        /// Its reader.
        ring: OwnRing,
        /// Bytes of events that it was made for.
        size: usize,
    },
}

impl Ring {
    /// Hands every record that is finished at the time of the call to `each`; returns how many.
    pub fn drain(&mut self, each: impl FnMut(&[u8])) -> usize {
        match self {
            Ring::Kernel(ring) => ring.drain(each),
            Ring::Own { ring, .. } => ring.drain(each),
        }
    }

    /// Bytes not yet read.
    pub fn available(&self) -> u64 {
        match self {
            Ring::Kernel(ring) => ring.available(),
            Ring::Own { ring, .. } => ring.available(),
        }
    }

    /// Bytes that it holds.
    pub fn size(&self) -> usize {
        match self {
            Ring::Kernel(ring) => ring.size(),
            Ring::Own { size, .. } => *size,
        }
    }
}
