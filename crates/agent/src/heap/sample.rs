//! Which allocations are recorded where not all are: one per a number of bytes on average, by chance, and the frees of those.
//!
//! Each thread counts bytes down to its next sample. The distances are exponentially distributed, so that a block of `size` bytes is
//! recorded with the probability 1 - exp(-size / rate), whatever came before it: `views::heap` weighs it by the inverse.
//!
//! The addresses of recorded blocks are in a set, from when the allocator has returned them until they are about to be freed. Only who
//! holds a block puts its address there or takes it out. Counts by hash say at once of most addresses that they are not there.
//!
//! ```text
//! hash ─┬► COUNTS: how many addresses of the set have it; 255 stays
//!       └► bucket: 8 addresses in a cache line, 0 where there is none; the next three where it is full
//! ```

use crate::{kernel, shared};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use core::sync::atomic::{AtomicU8, AtomicU64};

/// A thread's way to its next sample. All bytes zero are a valid beginning.
#[repr(C)]
pub struct Countdown {
    /// Bytes until then.
    left: u64,
    /// The distance on average that this was drawn for; 0: nothing was drawn yet.
    rate: u64,
    /// Not 0 once there is one.
    random: u64,
}

impl Countdown {
    /// Counts a block. Whether it is recorded, of which one is for `rate` bytes.
    #[inline(always)]
    pub fn takes(&mut self, rate: u64, size: u64) -> bool {
        let size = size.max(1);
        if self.left >= size && self.rate == rate {
            self.left -= size;
            return false;
        }
        self.draws(rate, size)
    }

    #[cold]
    fn draws(&mut self, rate: u64, size: u64) -> bool {
        if self.rate != rate {
            if self.random == 0 {
                self.random = mix(kernel::tsc() ^ core::ptr::from_ref(self) as u64) | 1;
            }
            self.rate = rate;
            self.left = self.distance();
            if self.left >= size {
                self.left -= size;
                return false;
            }
        }
        self.left = self.distance();
        true
    }

    fn distance(&mut self) -> u64 {
        // xorshift64
        let mut x = self.random;
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random = x;
        exponential(self.rate, mix(x))
    }
}

/// Spreads the bits of a number (the end of splitmix64).
fn mix(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// -ln(u) * rate for the random number u = x / 2^64.
fn exponential(rate: u64, x: u64) -> u64 {
    /// Bits of a logarithm behind the point.
    const BITS: u32 = 24;
    /// ln(2) * 2^32.
    const LN_2: u128 = 2_977_044_472;
    let x = x | 1;
    let zeros = x.leading_zeros();
    // log2 of 1 ≤ m < 2: each squaring gives a bit.
    let (mut m, mut log) = (u128::from(x << zeros), 0u64);
    for bit in (0..BITS).rev() {
        m = (m * m) >> 63;
        if m >> 64 != 0 {
            log |= 1 << bit;
            m >>= 1;
        }
    }
    let minus_log = ((u64::from(zeros) + 1) << BITS) - log;
    let distance = (u128::from(minus_log) * LN_2 * u128::from(rate.min(1 << 48))) >> (32 + BITS);
    distance as u64
}

/// How many counts.
const COUNTS: u64 = 1 << 14;
/// Addresses of a bucket.
const WIDTH: u64 = 8;
/// How many buckets: 8 MB, of which the kernel gives pages when they are used.
const BUCKETS: u64 = 1 << 17;
/// How many buckets an address may be in.
const REACH: u64 = 4;
const LEN: u64 = COUNTS + 8 * WIDTH * BUCKETS;

/// Where counts, and behind them buckets are.
static SET: AtomicU64 = AtomicU64::new(0);

#[inline(always)]
fn hash(address: u64) -> u64 {
    (address >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[inline(always)]
fn count(set: u64, hash: u64) -> &'static AtomicU8 {
    // SAFETY: the set begins with this many, and is never unmapped.
    unsafe { &*((set + (hash >> 50) % COUNTS) as *const AtomicU8) }
}

fn slots(set: u64, hash: u64) -> impl Iterator<Item = &'static AtomicU64> {
    let first = (hash >> 20) % BUCKETS * WIDTH;
    // SAFETY: behind the counts are this many.
    let slot = move |n: u64| unsafe { &*((set + COUNTS + 8 * ((first + n) % (BUCKETS * WIDTH))) as *const AtomicU64) };
    (0..REACH * WIDTH).map(slot)
}

/// Puts the address of a block there. False: there is no room.
pub fn add(address: u64) -> bool {
    let mut set = SET.load(Acquire);
    if set == 0 {
        let Some(new) = kernel::reserve(LEN) else { return false };
        set = match SET.compare_exchange(0, new, AcqRel, Acquire) {
            Ok(_) => new,
            Err(there) => {
                // SAFETY: nobody has seen it.
                unsafe { kernel::unmap(new, LEN) };
                there
            }
        };
    }
    let hash = hash(address);
    // Of a block whose free was not seen.
    if count(set, hash).load(Relaxed) != 0 && slots(set, hash).any(|s| s.load(Relaxed) == address) {
        return true;
    }
    let added =
        slots(set, hash).any(|s| s.load(Relaxed) == 0 && s.compare_exchange(0, address, Relaxed, Relaxed).is_ok());
    if added {
        let _ = count(set, hash).fetch_update(Relaxed, Relaxed, |n| n.checked_add(1));
    }
    added
}

/// Takes the address of a block out. Whether it was there.
#[inline(always)]
pub fn remove(address: u64) -> bool {
    let set = SET.load(Acquire);
    set != 0 && count(set, hash(address)).load(Relaxed) != 0 && take(set, address)
}

#[cold]
fn take(set: u64, address: u64) -> bool {
    let hash = hash(address);
    let taken = slots(set, hash)
        .any(|s| s.load(Relaxed) == address && s.compare_exchange(address, 0, Relaxed, Relaxed).is_ok());
    if taken {
        let _ = count(set, hash).fetch_update(Relaxed, Relaxed, |n| if n == u8::MAX { None } else { n.checked_sub(1) });
    }
    taken
}

/// No blocks: another collector knows none. Other threads are stopped.
pub fn forget() {
    let set = SET.load(Acquire);
    if set != 0 {
        // SAFETY: the agent's own, and zeros are valid.
        unsafe { kernel::discard(set, LEN) };
    }
}

/// How many bytes one record is for; 0: all allocations are recorded.
#[inline(always)]
pub fn rate() -> u64 {
    shared::control().map_or(0, |c| c.sample.load(Relaxed))
}

/// Whether the free of a block is recorded, which is about to happen.
#[inline(always)]
pub fn frees(address: u64) -> bool {
    rate() == 0 || remove(address)
}
