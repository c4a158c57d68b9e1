//! Sites: functions with stubs that tracers are enabled on. A site keeps its stubs as long as a thread may need any; its bytes change with its
//! tracers.

use crate::plan::Plan;
use crate::text::{read_text, write_text};
use crate::{areas, kernel, tracers};
use abi::plan::Patch;
use abi::stub::Variant;
use abi::thread::ROWS;
use abi::tracer::{Reply, STUBS};
use core::mem::size_of;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// Bytes of a jump.
const JUMP: usize = 5;

/// A site. Tracers get its address, and see the first two fields (`trapline_function` of trapline_tracer.h).
#[repr(C)]
pub struct Site {
    /// The function's address.
    pub address: AtomicU64,
    /// Its number.
    pub number: AtomicU32,
    /// Enabled tracers that are on it, as bits.
    pub tracers: AtomicU32,
    /// Where its patch is, with the bytes that are there without it.
    patch: AtomicU64,
    old: AtomicU64,
    /// Addresses of its stubs, by [`STUBS`]; 0: it has none of these.
    stubs: [AtomicU64; STUBS.len()],
    /// Which stub its bytes lead to, plus 1; 0: it has its own bytes, or leads to a stub of a recording that is no tracer of it yet.
    now: AtomicU32,
    /// Its number in the records of the recording that is under way.
    pub record: AtomicU32,
}

static TABLE: AtomicU64 = AtomicU64::new(0);
static USED: AtomicU32 = AtomicU32::new(0);

/// Sites, by their numbers, from 1.
#[inline(always)]
pub fn get(number: u32) -> Option<&'static Site> {
    if number == 0 || number > USED.load(Acquire) {
        return None;
    }
    // SAFETY: the table has this many entries, and is never unmapped; all fields are atomic.
    Some(unsafe { &*(TABLE.load(Relaxed) as *const Site).add(number as usize) })
}

/// How many there are.
pub fn used() -> u32 {
    USED.load(Acquire)
}

/// The next one, for a patch of a plan.
fn add(number: u32, patch: &Patch) -> Option<&'static Site> {
    let used = USED.load(Relaxed);
    if number != used + 1 || number >= ROWS {
        return None;
    }
    if TABLE.load(Relaxed) == 0 {
        TABLE.store(kernel::reserve(u64::from(ROWS) * size_of::<Site>() as u64)?, Release);
    }
    USED.store(number, Release);
    let site = get(number)?;
    site.address.store(patch.address - u64::from(patch.skipped), Relaxed);
    site.patch.store(patch.address, Relaxed);
    site.number.store(number, Relaxed);
    site.old.store(u64::from_le_bytes(*patch.old.first_chunk()?), Relaxed);
    Some(site)
}

impl Site {
    /// What is reported to trapline.
    pub fn state(&self) -> abi::tracer::Site {
        let has = |(i, stub): (usize, &AtomicU64)| u32::from(stub.load(Relaxed) != 0) << i;
        abi::tracer::Site {
            address: self.address.load(Relaxed),
            old: self.old.load(Relaxed).to_le_bytes(),
            stubs: self.stubs.iter().enumerate().map(has).sum(),
            tracers: self.tracers.load(Relaxed),
        }
    }

    /// The bytes that lead to a stub, or its own.
    fn bytes(&self, stub: u32) -> Option<[u8; JUMP]> {
        let Some(stub) = stub.checked_sub(1) else {
            return self.old.load(Relaxed).to_le_bytes().first_chunk().copied();
        };
        let to = self.stubs.get(stub as usize).map(|s| s.load(Relaxed)).filter(|s| *s != 0)?;
        let [a, b, c, d, ..] = to.wrapping_sub(self.patch.load(Relaxed) + JUMP as u64).to_le_bytes();
        Some([0xe9, a, b, c, d])
    }

    /// The stub that it needs for its tracers, plus 1.
    fn wanted(&self) -> u32 {
        let has = |v: Variant| {
            let i = STUBS.iter().position(|s| *s == v)?;
            (self.stubs.get(i)?.load(Relaxed) != 0).then_some(i as u32 + 1)
        };
        match self.tracers.load(Relaxed) {
            0 => 0,
            tracers => tracers::fast_variant(tracers).and_then(has).or_else(|| has(Variant::Called)).unwrap_or(0),
        }
    }

    /// Takes over what its bytes lead to, if that is a stub of the recording: the recording is a tracer of it from now on.
    fn adopt(&self, memory: i32) {
        let graph = tracers::graph();
        if graph == 0 || self.now.load(Relaxed) != 0 || self.tracers.load(Relaxed) & graph != 0 {
            return;
        }
        let address = self.patch.load(Relaxed);
        // SAFETY: a site's module is there as long as its threads are stopped.
        let there = unsafe { read_text(memory, address, JUMP) };
        let Some(stub) = there.and_then(|b| target_of(address, &b)) else { return };
        if let Some(place) = self.offer(stub) {
            self.tracers.fetch_or(graph, Relaxed);
            self.now.store(place + 1, Relaxed);
        }
    }

    /// Notes a stub of a recording. Its place in [`STUBS`]; none: it is no such stub.
    fn offer(&self, stub: u64) -> Option<u32> {
        let (variant, number) = areas::function_of(stub).filter(|(v, _)| abi::tracer::records(*v))?;
        let place = STUBS.iter().position(|s| *s == variant)?;
        self.stubs.get(place)?.store(stub, Relaxed);
        self.record.store(number, Relaxed);
        Some(place as u32)
    }

    /// A recording has ended, and its stubs go.
    pub fn forget_record(&self) {
        for (stub, variant) in self.stubs.iter().zip(STUBS) {
            if abi::tracer::records(variant) {
                stub.store(0, Relaxed);
            }
        }
        self.record.store(0, Relaxed);
    }

    /// Whether it has a stub of a recording.
    fn is_recorded(&self) -> bool {
        let has = |(stub, v): (&AtomicU64, Variant)| abi::tracer::records(v) && stub.load(Relaxed) != 0;
        self.stubs.iter().zip(STUBS).any(has)
    }

    /// A probe or breakpoint that has gone from the patch has put the first byte of the file in front of the rest of a jump.
    fn is_broken(&self, there: Option<&[u8; JUMP]>, expected: &[u8; JUMP]) -> bool {
        let own = self.old.load(Relaxed).to_le_bytes();
        there.is_some_and(|t| t.first() == own.first() && t.get(1..) == expected.get(1..))
    }

    /// Gives it the bytes that its tracers need.
    fn apply(&self, memory: i32, reply: &mut Reply) {
        let (now, wanted) = (self.now.load(Relaxed), self.wanted());
        if now == wanted {
            return;
        }
        let (Some(old), Some(new)) = (self.bytes(now), self.bytes(wanted)) else {
            reply.failed += 1;
            return;
        };
        let address = self.patch.load(Relaxed);
        // SAFETY: as in `adopt`.
        match unsafe { read_text(memory, address, JUMP) } {
            Some(there) if there.first_chunk() == Some(&old) || self.is_broken(there.first_chunk(), &old) => {
                // SAFETY: as above; a jump to a stub, or what was there before it, and all other threads are stopped, none of them in between.
                if unsafe { write_text(memory, address, &new) } {
                    self.now.store(wanted, Relaxed);
                    reply.patched += 1;
                } else {
                    reply.failed += 1;
                }
            }
            // The module has gone and come again.
            Some(there) if wanted == 0 && there.first_chunk() == self.bytes(0).as_ref() => self.now.store(0, Relaxed),
            _ => {
                self.now.store(0, Relaxed);
                reply.other_bytes += 1;
            }
        }
    }
}

/// Where the jump at an address leads to.
fn target_of(address: u64, bytes: &[u8]) -> Option<u64> {
    match bytes {
        [0xe9, a, b, c, d, ..] => {
            Some((address + JUMP as u64).wrapping_add_signed(i32::from_le_bytes([*a, *b, *c, *d]).into()))
        }
        _ => None,
    }
}

/// A patch of a recording meets these bytes, which are not the function's own. True: they lead to a stub of a site, which notes the patch's
/// stub: the recording will be one of its tracers ([`join`]).
pub fn meet(patch: &Patch, there: &[u8]) -> bool {
    let met = || {
        let (_, number) = areas::function_of(target_of(patch.address, there)?)?;
        let site = get(number).filter(|s| s.patch.load(Relaxed) == patch.address && s.now.load(Relaxed) != 0)?;
        site.offer(target_of(patch.address, &patch.new)?)
    };
    used() != 0 && met().is_some()
}

/// Has the recording on these sites, which have a stub of it. False: there is no recording.
pub fn join(targets: &[abi::tracer::Target]) -> bool {
    let graph = tracers::graph();
    for site in targets.iter().filter_map(|t| get(t.number)).filter(|s| s.is_recorded()) {
        site.tracers.fetch_or(graph, Relaxed);
    }
    graph != 0
}

/// Has all sites forget their stubs, before areas are unmapped. False: bytes of functions lead to stubs. All other threads are stopped.
pub fn release() -> bool {
    let all = || (1..=used()).filter_map(get);
    if all().any(|s| s.now.load(Relaxed) != 0 || s.tracers.load(Relaxed) != 0) {
        return false;
    }
    all().for_each(|s| s.stubs.iter().for_each(|stub| stub.store(0, Relaxed)));
    true
}

/// Adds new stubs of sites, and new sites. `targets`: numbers, and patches of the plan. False: they are not what they should be.
pub fn extend(plan: Option<&Plan<'_>>, targets: &[abi::tracer::Target], reply: &mut Reply) -> bool {
    if let Some(plan) = plan {
        for area in 0..plan.areas() {
            if plan.map_area(area).is_none() {
                reply.no_area += 1;
            }
        }
    }
    for target in targets {
        if target.patch == abi::tracer::NO_PATCH {
            if get(target.number).is_none() {
                return false;
            }
            continue;
        }
        let Some(patch) = plan.and_then(|p| p.patches.get(target.patch as usize)) else { return false };
        let Some(site) = get(target.number).or_else(|| add(target.number, patch)) else { return false };
        let Some(stub) = target_of(patch.address, &patch.new) else { return false };
        let same = site.patch.load(Relaxed) == patch.address
            && patch.len as usize == JUMP
            && patch.old.first_chunk() == Some(&site.old.load(Relaxed).to_le_bytes());
        let place = areas::variant_at(stub).and_then(|v| STUBS.iter().position(|s| *s == v));
        match place.and_then(|p| site.stubs.get(p)).filter(|_| same) {
            Some(place) => place.store(stub, Relaxed),
            None => reply.failed += 1,
        }
    }
    let memory = kernel::open_own(c"/proc/self/mem", kernel::O_RDWR) as i32;
    targets.iter().filter_map(|t| get(t.number)).for_each(|s| s.adopt(memory));
    if memory >= 0 {
        kernel::close(memory);
    }
    true
}

/// Gives all sites the bytes that their tracers need.
pub fn apply_all(reply: &mut Reply) {
    let memory = kernel::open_own(c"/proc/self/mem", kernel::O_RDWR) as i32;
    (1..=used()).filter_map(get).for_each(|s| s.apply(memory, reply));
    if memory >= 0 {
        kernel::close(memory);
    }
}
