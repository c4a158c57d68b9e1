//! The tracers of the process: which there are, and which are enabled. They change only while all other threads are stopped.

use crate::{kernel, registers};
use abi::built_in::{self, BUILT_IN, Kind};
use abi::stub::Variant;
use abi::thread::ROWS;
use abi::tracer::{ENABLED, NAME, Refused, TRACERS};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// A tracer that is enabled.
pub struct Slot {
    bit: u32,
    kind: AtomicU32,
    epoch: AtomicU32,
    /// Functions of a tracer that is not the agent's; 0: it has none.
    pub enter: AtomicU64,
    pub exit: AtomicU64,
    pub options: [AtomicU64; 8],
    /// The time stamp counter and the clock when it was enabled.
    pub begun: [AtomicU64; 2],
}

static SLOTS: [Slot; ENABLED] =
    [Slot::new(0), Slot::new(1), Slot::new(2), Slot::new(3), Slot::new(4), Slot::new(5), Slot::new(6), Slot::new(7)];
/// Numbers of slots, 4 bits each, in the order of enabling; 15 ends the list.
static ORDER: AtomicU64 = AtomicU64::new(u64::MAX);
/// How often a tracer was enabled, modulo 2^22: what is left of an entry's flags.
static EPOCH: AtomicU32 = AtomicU32::new(0);
const EPOCHS: u32 = 1 << 22;
/// Slots whose tracers need the time.
static TIMED: AtomicU32 = AtomicU32::new(0);
/// The slot of a recording.
static GRAPH: AtomicU32 = AtomicU32::new(0);

impl Slot {
    const fn new(number: u32) -> Slot {
        Slot {
            bit: 1 << number,
            kind: AtomicU32::new(0),
            epoch: AtomicU32::new(0),
            enter: AtomicU64::new(0),
            exit: AtomicU64::new(0),
            options: [const { AtomicU64::new(0) }; 8],
            begun: [const { AtomicU64::new(0) }; 2],
        }
    }

    /// Its bit in a site's tracers.
    #[inline(always)]
    pub fn bit(&self) -> u32 {
        self.bit
    }

    /// A [`Kind`]; 0: it is not in use.
    #[inline(always)]
    pub fn kind(&self) -> u32 {
        self.kind.load(Relaxed)
    }

    /// Whether it was enabled when the epoch was this one.
    #[inline(always)]
    pub fn is_older(&self, epoch: u32) -> bool {
        epoch.wrapping_sub(self.epoch.load(Relaxed)) % EPOCHS < EPOCHS / 2
    }

    /// An option.
    pub fn option(&self, number: usize) -> u64 {
        self.options.get(number).map_or(0, |o| o.load(Relaxed))
    }
}

/// The epoch.
#[inline(always)]
pub fn epoch() -> u32 {
    EPOCH.load(Relaxed)
}

/// The slots whose tracers need the time, as bits.
#[inline(always)]
pub fn timed() -> u32 {
    TIMED.load(Relaxed)
}

/// The slot of a recording, as a bit; 0: there is none.
#[inline(always)]
pub fn graph() -> u32 {
    GRAPH.load(Relaxed)
}

/// The slot of a bit.
#[inline(always)]
pub fn slot(bit: u32) -> Option<&'static Slot> {
    SLOTS.get(bit.trailing_zeros() as usize)
}

/// The slots of these bits in the order of enabling.
#[inline(always)]
pub fn order(bits: u32) -> impl Iterator<Item = &'static Slot> {
    let mut list = ORDER.load(Relaxed);
    core::iter::from_fn(move || {
        let slot = SLOTS.get((list & 15) as usize)?;
        list >>= 4;
        Some(slot)
    })
    .filter(move |s| s.bit & bits != 0)
}

/// Whether any tracer is enabled, beside a recording.
pub fn are_enabled() -> bool {
    order(u32::MAX).any(|s| s.kind() != Kind::Graph as u32)
}

/// The slots of these bits in reverse.
#[inline(always)]
pub fn reverse(bits: u32) -> impl Iterator<Item = &'static Slot> {
    let list = ORDER.load(Relaxed);
    let mut shift = 64;
    core::iter::from_fn(move || {
        while shift > 0 {
            shift -= 4;
            if let Some(slot) = SLOTS.get((list >> shift & 15) as usize) {
                return Some(slot);
            }
        }
        None
    })
    .filter(move |s| s.bit & bits != 0)
}

/// The variant of stubs that is enough for a site with these tracers, if there is a faster one than Called.
pub fn fast_variant(bits: u32) -> Option<Variant> {
    let mut all = order(bits);
    let (first, second) = (all.next()?, all.next());
    let stub = built_in::stub(first.kind(), first.option(0));
    (second.is_none() && stub != Variant::Called).then_some(stub)
}

/// What `trapline_tracer` of trapline_tracer.h has.
#[repr(C)]
pub struct Own {
    /// 1.
    version: u32,
    /// 1: it may use any vector registers, or calls what does.
    flags: u32,
    name: *const u8,
    enter: u64,
    exit: u64,
}

/// A tracer that the process knows. trapline reads the first fields of these from outside ([`abi::tracer::Entry`]).
#[repr(C)]
pub struct Tracer {
    name: [AtomicU64; NAME / 8],
    kind: AtomicU32,
    /// Its slot, plus 1.
    slot: AtomicU32,
    enter: AtomicU64,
    exit: AtomicU64,
    /// As in [`Own`].
    flags: AtomicU32,
    /// Violations, or what a tracer has reported about itself.
    pub reported: AtomicU64,
    /// Panics that were caught, in all the time: after one, it is told of nothing more.
    pub panics: AtomicU64,
}

const _: () = assert!(size_of::<Tracer>() == abi::tracer::Entry::SIZE);

#[unsafe(link_section = ".trapline_tracers")]
static KNOWN: [Tracer; TRACERS] = [const {
    Tracer {
        name: [const { AtomicU64::new(0) }; NAME / 8],
        kind: AtomicU32::new(0),
        slot: AtomicU32::new(0),
        enter: AtomicU64::new(0),
        exit: AtomicU64::new(0),
        flags: AtomicU32::new(0),
        reported: AtomicU64::new(0),
        panics: AtomicU64::new(0),
    }
}; TRACERS];
static KNOWN_USED: AtomicU32 = AtomicU32::new(0);

/// All tracers.
pub fn known() -> &'static [Tracer] {
    if KNOWN_USED.load(Acquire) == 0 {
        for row in BUILT_IN {
            add(row.name.as_bytes(), row.kind, [0; 2], 0);
        }
    }
    KNOWN.get(..(KNOWN_USED.load(Acquire) as usize).min(TRACERS)).unwrap_or(&[])
}

fn name_of(text: &[u8]) -> Option<[u8; NAME]> {
    let mut name = [0; NAME];
    let fits = !text.is_empty() && text.len() < NAME && text.iter().all(|b| b.is_ascii_graphic());
    name.get_mut(..text.len())?.copy_from_slice(text);
    fits.then_some(name)
}

fn add(name: &[u8], kind: Kind, [enter, exit]: [u64; 2], flags: u32) -> bool {
    let Some(name) = name_of(name) else { return false };
    let i = KNOWN_USED.load(Acquire);
    let Some(tracer) = KNOWN.get(i as usize) else { return false };
    for (to, from) in tracer.name.iter().zip(name.chunks_exact(8)) {
        to.store(from.first_chunk().map_or(0, |c| u64::from_le_bytes(*c)), Relaxed);
    }
    tracer.enter.store(enter, Relaxed);
    tracer.exit.store(exit, Relaxed);
    tracer.flags.store(flags, Relaxed);
    tracer.kind.store(kind as u32, Relaxed);
    // Registering twice at the same time loses one of them, no more.
    KNOWN_USED.store(i + 1, Release);
    true
}

/// Takes a tracer of the program. A name that is there already is refused, unless it is that of a tracer whose library has gone.
///
/// # Safety
/// It is what trapline_tracer.h makes of a tracer, and stays there.
pub unsafe fn register(own: *const Own) -> bool {
    if own.is_null() {
        return false;
    }
    // SAFETY: so says the caller.
    let (version, flags, name) = unsafe { ((*own).version, (*own).flags, (*own).name) };
    // SAFETY: as above.
    let (enter, exit) = unsafe { ((*own).enter, (*own).exit) };
    if version != 1 || name.is_null() || enter == 0 && exit == 0 {
        return false;
    }
    // SAFETY: so says the caller.
    let name = unsafe { crate::memory::string(name, NAME) };
    match name_of(name).and_then(|n| find(&n)) {
        Some(known) if known.kind.load(Relaxed) == Kind::Own as u32 && known.slot.load(Relaxed) == 0 => {
            known.enter.store(enter, Relaxed);
            known.exit.store(exit, Relaxed);
            known.flags.store(flags, Relaxed);
            known.panics.store(0, Relaxed);
            true
        }
        Some(_) => false,
        None => add(name, Kind::Own, [enter, exit], flags),
    }
}

/// A tracer by its name.
pub fn find(name: &[u8; NAME]) -> Option<&'static Tracer> {
    known().iter().find(|t| t.name() == *name)
}

impl Tracer {
    /// Its name, filled up with NULs.
    pub fn name(&self) -> [u8; NAME] {
        let mut name = [0; NAME];
        name.chunks_exact_mut(8).zip(&self.name).for_each(|(to, n)| to.copy_from_slice(&n.load(Relaxed).to_le_bytes()));
        name
    }

    /// A [`Kind`].
    pub fn kind(&self) -> u32 {
        self.kind.load(Relaxed)
    }

    /// Its slot, while it is enabled.
    pub fn slot(&self) -> Option<&'static Slot> {
        SLOTS.get((self.slot.load(Relaxed) as usize).checked_sub(1)?)
    }

    /// Its place in the order of enabling, from 1; 0: it is disabled.
    pub fn place(&self) -> u32 {
        let Some(own) = self.slot() else { return 0 };
        order(u32::MAX).position(|s| s.bit == own.bit).map_or(0, |i| i as u32 + 1)
    }

    /// Enables it, on no site yet.
    pub fn enable(&self, options: &[u64; 8]) -> Result<&'static Slot, Refused> {
        if self.slot().is_some() {
            return Err(Refused::Already);
        }
        let kind = self.kind();
        let all = kind == Kind::Own as u32 && self.flags.load(Relaxed) & 1 == 1;
        if all && !has_xsavec() {
            return Err(Refused::Processor);
        }
        let (i, slot) = SLOTS.iter().enumerate().find(|(_, s)| s.kind() == 0).ok_or(Refused::TooMany)?;
        let epoch = (EPOCH.load(Relaxed) + 1) % EPOCHS;
        EPOCH.store(epoch, Relaxed);
        slot.epoch.store(epoch, Relaxed);
        slot.enter.store(self.enter.load(Relaxed), Relaxed);
        slot.exit.store(self.exit.load(Relaxed), Relaxed);
        slot.options.iter().zip(options).for_each(|(to, from)| to.store(*from, Relaxed));
        if kind == Kind::Own as u32 {
            slot.options[7].store(all.into(), Relaxed);
        }
        slot.begun[0].store(kernel::tsc(), Relaxed);
        slot.begun[1].store(kernel::monotonic(), Relaxed);
        if built_in::is_timed(kind, options[0]) {
            TIMED.fetch_or(slot.bit, Relaxed);
        }
        if kind == Kind::Graph as u32 {
            GRAPH.store(slot.bit, Relaxed);
        }
        slot.kind.store(kind, Relaxed);
        self.slot.store(i as u32 + 1, Relaxed);
        self.reported.store(0, Relaxed);
        let list = ORDER.load(Relaxed);
        let len = order(u32::MAX).count();
        ORDER.store(list & !(15 << (4 * len)) | (i as u64) << (4 * len), Relaxed);
        set_wide();
        Ok(slot)
    }

    /// Disables it. It is on no site any more.
    pub fn disable(&self) {
        let Some(slot) = self.slot() else { return };
        let (mut list, mut len) = (u64::MAX, 0);
        for other in order(!slot.bit) {
            list = list & !(15 << (4 * len)) | u64::from(other.bit.trailing_zeros()) << (4 * len);
            len += 1;
        }
        ORDER.store(list, Relaxed);
        TIMED.fetch_and(!slot.bit, Relaxed);
        GRAPH.fetch_and(!slot.bit, Relaxed);
        slot.kind.store(0, Relaxed);
        slot.enter.store(0, Relaxed);
        slot.exit.store(0, Relaxed);
        self.slot.store(0, Relaxed);
        set_wide();
    }
}

/// Notes that a tracer reports a failure, or has panicked.
///
/// # Safety
/// As of [`register`].
pub unsafe fn report(own: *const Own, panicked: bool) {
    // SAFETY: so says the caller.
    if let Some((enter, exit)) = unsafe { own.as_ref() }.map(|o| (o.enter, o.exit)) {
        let same = |t: &&Tracer| t.enter.load(Relaxed) == enter && t.exit.load(Relaxed) == exit;
        known().iter().filter(same).for_each(|t| {
            let count = if panicked { &t.panics } else { &t.reported };
            count.fetch_add(1, Relaxed);
        });
    }
}

fn set_wide() {
    let own = |s: &&Slot| s.kind() == Kind::Own as u32;
    let wide =
        order(u32::MAX).filter(own).map(|s| if s.option(7) == 1 { registers::ALL } else { registers::AVX }).max();
    let wide = wide.unwrap_or(0);
    registers::WIDE.store(if wide == registers::AVX && !has_avx() { 0 } else { wide }, Relaxed);
}

/// Whether processor and system have ymm registers.
fn has_avx() -> bool {
    use core::arch::x86_64::__cpuid;
    // OSXSAVE and AVX, then what XCR0 has: the system saves them.
    let low: u32;
    if __cpuid(1).ecx >> 27 & 0b11 != 0b11 {
        return false;
    }
    // SAFETY: OSXSAVE says that there is the instruction.
    unsafe { core::arch::asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") _, options(nomem, nostack)) };
    low & 0b110 == 0b110
}

/// Whether the processor has XSAVEC.
fn has_xsavec() -> bool {
    use core::arch::x86_64::{__cpuid, __cpuid_count};
    has_avx() && __cpuid(0).eax >= 13 && __cpuid_count(13, 1).eax & 0b10 == 0b10
}

const _: () = assert!(ENABLED <= 8 && ROWS < 1 << 31);
