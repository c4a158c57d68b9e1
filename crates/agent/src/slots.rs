//! The table of threads' memory: whose it is, and the calls in it from which another thread may return.
//!
//! A coroutine that was suspended in a call, and is continued by another thread, returns to a stub whose shadow entry is in the memory of
//! the thread that made the call. The thread that returns takes the entry over ([`take`], [`take_buried`]), and leaves one that is
//! [`GONE`]. Who moves entries, or takes them, has the memory's lock: the owner in its slow code only, since a fast path never touches an
//! entry that another thread may need.
//!
//! ```text
//!  where entries end:   Owner        the owner's top, as long as its thread-local storage is there
//!                       Noted        else what its slow code noted last: there is slow code wherever a coroutine's calls are left behind
//!                       Descending   or further: the fast pushes after that have descending places
//! ```

use crate::memory::{load, store};
use crate::{areas, kernel, permits};
use abi::thread::{BARRIER, Shadow};
use core::mem::size_of;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// Bytes of a shadow entry.
pub const ENTRY: u64 = size_of::<Shadow>() as u64;
/// Bytes for descriptions of frames, at the beginning of a thread's memory.
pub const FRAMES: u64 = 4096;
/// Bytes of a part of the graveyard, which has buried entries: {place, address, time, 0}, found by the place. The first part lies behind the
/// descriptions; the others, behind where the shadow stack can grow to, are mapped when they are needed.
pub const PART: u64 = 16 << 10;
/// How many parts there are.
pub const PARTS: u64 = 64;
/// What lies in front of the shadow stack.
pub const FRONT: u64 = FRAMES + PART;
/// How many graves an entry may have.
const SPOTS: u64 = 16;
/// The address in an entry that another thread has taken. Its slot is odd.
pub const GONE: u64 = 2;
/// Function and flags of an entry that is no call: written, of no function.
pub const NO_CALL: u64 = u64::MAX << 31;
/// The most entries that are taken at once: a call and the tail calls that it has made. What is left is taken by the next exit.
pub const CHAIN: usize = 8;
/// Entries of memory whose owner has ended that are looked at.
const LOOKS: u32 = 64;
/// The most memory of ended threads that is kept for the calls in it.
const KEPT: u32 = 1024;
/// Bytes below a thread's storage that belong to its own stack.
const OWN: u64 = 64 << 10;
/// How it is known where entries end; see above.
#[derive(Clone, Copy, PartialEq)]
pub enum End {
    Owner,
    Noted,
    Descending,
}

/// The owner of memory that has none, and whose id another thread has now. Ids are smaller.
const NOBODY: u32 = i32::MAX as u32;

/// A thread's memory, and who has it.
#[repr(C)]
pub struct Slot {
    pub tid: AtomicU32,
    /// Bytes / 4096 that are mapped.
    pages: AtomicU32,
    /// Up to which it can grow.
    most: AtomicU32,
    pub memory: AtomicU64,
    /// Its rows; 0: none. They stay when it ends: the thread that comes after it counts on.
    pub counts: AtomicU64,
    /// What it has for its allocations; 0: nothing. It stays for the thread that comes after it.
    pub heap: AtomicU64,
    /// The owner's data: top, base and memory are in the first words.
    local: AtomicU64,
    /// Where entries ended when the owner's slow code moved one, or pushed one.
    top: AtomicU64,
    /// Which parts of the graveyard have had entries, and which are mapped beside the first.
    graves: AtomicU64,
    yard: AtomicU64,
    /// The id of the thread that moves entries; 0: nobody does.
    lock: AtomicU32,
    /// Entries that were taken since the owner removed such.
    gone: AtomicU32,
    /// 1: the owner has ended, and calls in it have not.
    kept: AtomicU32,
    /// The last owner that is known to have ended.
    ended: AtomicU32,
    /// The process in which the owner has called fork(2) last. In the child, that is the thread that goes on, under another id.
    forker: AtomicU32,
}

const _: () = {
    use abi::thread::slot;
    assert!(core::mem::offset_of!(Slot, tid) == slot::TID && core::mem::offset_of!(Slot, memory) == slot::MEMORY);
    assert!(core::mem::offset_of!(Slot, local) == slot::LOCAL && size_of::<Slot>() == slot::SIZE);
};

const SLOTS: usize = 1 << 16;
static TABLE: AtomicU64 = AtomicU64::new(0);
/// How many bytes of the table are mapped, and how many more at a time.
static MAPPED: AtomicU64 = AtomicU64::new(0);
const STEP: u64 = 64 << 10;
/// How many slots are used, and the number of the shared memory that the process has.
#[repr(C)]
struct Count {
    used: AtomicU32,
    shared: AtomicU32,
}
static COUNT: Count = Count { used: AtomicU32::new(0), shared: AtomicU32::new(0) };
static NEXT: AtomicU32 = AtomicU32::new(0);
static ALL_KEPT: AtomicU32 = AtomicU32::new(0);

/// Makes the table. At the start, once.
pub fn begin() -> bool {
    if TABLE.load(Relaxed) != 0 {
        return true;
    }
    let Some(table) = kernel::reserve_first((SLOTS * size_of::<Slot>()) as u64, STEP) else { return false };
    MAPPED.store(STEP, Release);
    TABLE.store(table, Release);
    true
}

/// Has a slot's place in the table mapped.
fn is_mapped(i: u32) -> bool {
    let end = (u64::from(i) + 1) * size_of::<Slot>() as u64;
    loop {
        let there = MAPPED.load(Acquire);
        if there >= end {
            return true;
        }
        if !kernel::extend(TABLE.load(Acquire) + there, STEP) {
            return false;
        }
        MAPPED.fetch_max(there + STEP, AcqRel);
    }
}

/// All slots.
pub fn all() -> &'static [Slot] {
    let table = TABLE.load(Acquire);
    if table == 0 {
        return &[];
    }
    let used = (COUNT.used.load(Acquire) as usize).min(SLOTS);
    // SAFETY: those that are used are mapped and stay so, and zeros are valid.
    unsafe { core::slice::from_raw_parts(table as *const Slot, used) }
}

/// Where the first slot has its owner's data, how far apart slots are, and where the number of slots is.
pub fn locals() -> (u64, u8, u64) {
    let first = TABLE.load(Acquire) + core::mem::offset_of!(Slot, local) as u64;
    (first, size_of::<Slot>() as u8, &raw const COUNT as u64)
}

/// Where the table is, and where the number of slots is. The process has this shared memory now.
pub fn table(shared: u32) -> [u64; 2] {
    COUNT.shared.store(shared, Relaxed);
    [TABLE.load(Acquire), &raw const COUNT as u64]
}

/// The slot of a place in the table, which counts from 1.
pub fn at(place: u32) -> Option<&'static Slot> {
    (place as usize).checked_sub(1).and_then(|i| all().get(i))
}

/// Memory of a thread that has ended: the process's threads before fork(2) and those of the same id count as such. Its beginning, its
/// length, and its place in the table. `local`: the data of the thread that asks.
pub fn inherit(tid: u32, local: u64) -> Option<(u64, u64, u32)> {
    let slots = all();
    let own = |i: usize, slot: &Slot| {
        slot.renew(local);
        Some((slot.memory.load(Relaxed), slot.len(), i as u32 + 1))
    };
    if let Some((i, slot)) = slots.iter().enumerate().find(|(_, s)| s.tid.load(Relaxed) == tid) {
        if !slot.is_kept(local) {
            return own(i, slot);
        }
        slot.tid.store(NOBODY, Release);
    }
    // A few at each time: a new mapping costs less than many questions.
    for _ in 0..slots.len().min(16) {
        let i = NEXT.fetch_add(1, Relaxed) as usize % slots.len();
        let slot = slots.get(i)?;
        let owner = slot.tid.load(Acquire);
        if owner != 0
            && slot.memory.load(Relaxed) != 0
            && slot.has_ended()
            && !slot.is_kept(local)
            && slot.tid.compare_exchange(owner, tid, AcqRel, Relaxed).is_ok()
        {
            return own(i, slot);
        }
    }
    None
}

/// Notes new memory, how much of it is mapped, and can be; 0: there is no room in the table.
pub fn add(tid: u32, local: u64, memory: u64, (len, most): (u64, u64)) -> u32 {
    let i = loop {
        let used = COUNT.used.load(Acquire);
        if used as usize >= SLOTS || !is_mapped(used) {
            return 0;
        }
        if COUNT.used.compare_exchange(used, used + 1, AcqRel, Relaxed).is_ok() {
            break used;
        }
    };
    if let Some(slot) = all().get(i as usize) {
        slot.pages.store((len >> 12) as u32, Relaxed);
        slot.most.store((most >> 12) as u32, Relaxed);
        slot.memory.store(memory, Relaxed);
        slot.renew(local);
        slot.tid.store(tid, Release);
    }
    i + 1
}

/// Whether calls that have not returned are in the memory of threads that have ended.
pub fn owe() -> bool {
    all().iter().any(|s| s.memory.load(Acquire) != 0 && s.owes(0, s.has_ended()))
}

/// Offset of `memory` in the storage of a thread.
const MEMORY: u64 = abi::thread::MEMORY as u64;

impl Slot {
    /// How many bytes are mapped.
    pub fn len(&self) -> u64 {
        u64::from(self.pages.load(Acquire)) << 12
    }

    /// Maps twice as much. False: there is no more, or none to be had.
    pub fn grow(&self) -> bool {
        let (there, most) = (self.pages.load(Acquire), self.most.load(Relaxed));
        let new = most.min(there.saturating_mul(2));
        let bytes = |pages: u32| u64::from(pages) << 12;
        let grown = new > there && kernel::extend(self.memory.load(Relaxed) + bytes(there), bytes(new - there));
        if grown {
            self.pages.fetch_max(new, AcqRel);
        }
        grown
    }

    /// The lowest entry.
    fn base(&self) -> u64 {
        self.memory.load(Relaxed) + FRONT + ENTRY
    }

    /// Whether its owner has ended, as far as the kernel may be asked.
    fn has_ended(&self) -> bool {
        let owner = self.tid.load(Acquire);
        if owner == NOBODY || owner != 0 && owner == self.ended.load(Relaxed) {
            return true;
        }
        if !permits::records() {
            return false;
        }
        let pid = kernel::getpid() as u32;
        let forker = self.forker.load(Relaxed);
        let ended = (forker == 0 || forker == pid) && kernel::tgkill(pid, owner, 0) == kernel::ESRCH;
        if ended {
            self.ended.store(owner, Relaxed);
        }
        ended
    }

    /// Whether a place is in the inner part of the owner's own stack.
    fn is_own(&self, place: u64) -> bool {
        let local = self.local.load(Relaxed);
        local != 0 && local.wrapping_sub(place) < OWN
    }

    /// It has a new owner, whose shadow stack is empty, and so is its graveyard: the new thread's stack may lie where that of the one before did.
    fn renew(&self, local: u64) {
        if self.kept.swap(0, Relaxed) != 0 {
            ALL_KEPT.fetch_sub(1, Relaxed);
        }
        self.local.store(local, Relaxed);
        self.top.store(self.base(), Relaxed);
        for at in self.parts(self.graves.swap(0, Relaxed)) {
            // SAFETY: the memory is the new thread's now.
            unsafe { kernel::map_over(at, PART, kernel::PROT_READ | kernel::PROT_WRITE) };
        }
        self.gone.store(0, Relaxed);
        self.ended.store(0, Relaxed);
        self.forker.store(0, Relaxed);
    }

    /// Whether it is kept for calls in it, though its owner has ended.
    fn is_kept(&self, local: u64) -> bool {
        if !self.owes(local, true) {
            return false;
        }
        if self.kept.load(Relaxed) == 0 {
            if ALL_KEPT.load(Relaxed) >= KEPT {
                return false;
            }
            self.kept.store(1, Relaxed);
            ALL_KEPT.fetch_add(1, Relaxed);
        }
        true
    }

    /// Where entries begin and end, if that is known in this way; that of the owner is better than any other.
    fn range(&self, how: End) -> Option<(u64, u64)> {
        let (local, base) = (self.local.load(Acquire), self.base());
        let end = self.memory.load(Relaxed) + self.len();
        // The owner's storage goes when the owner ends, at any moment, or becomes that of another thread: then it is zero at first.
        let words = [local + abi::thread::TOP as u64, local + MEMORY];
        if local != 0 && permits::records() && self.tid.load(Relaxed) != self.ended.load(Relaxed) {
            if let Some([top, memory]) = permits::peek(words)
                && memory == self.memory.load(Relaxed)
                && top != 0
            {
                return Some((base, top.clamp(base, end)));
            }
            // Each look at the storage is a system call: no further one once it is known that the owner has ended.
            self.has_ended();
        }
        let mut top = self.top.load(Acquire).clamp(base, end);
        // SAFETY: between the sentinel and the end of the memory.
        let goes_on = |top: u64| unsafe { load(top) != 0 && load(top) < load(top - ENTRY) && load(top + 8) > GONE };
        while how == End::Descending && top < end && goes_on(top) {
            top += ENTRY;
        }
        (how != End::Owner).then_some((base, top))
    }

    /// Whether a call that has not returned is in it. What lies in the stack of the thread with this data has been left, and so has what lies in
    /// that of an owner that has ended: their bytes may still look like calls.
    fn owes(&self, local: u64, ended: bool) -> bool {
        let Some((base, top)) = self.range(End::Descending).filter(|_| permits::records()) else { return false };
        let ended = ended || self.local.load(Relaxed) == local;
        let is_left = |place: u64| ended && self.is_own(place);
        let is_alive = |entry: u64| {
            // SAFETY: an entry, or a grave, of the memory.
            let (place, address) = unsafe { (load(entry), load(entry + 8)) };
            place != 0 && address > GONE && !is_left(place) && permits::peek_one(place).is_some_and(areas::is_return)
        };
        let (mut at, mut looks) = (top, 0);
        while at > base && looks < LOOKS {
            at -= ENTRY;
            if is_alive(at) {
                return true;
            }
            // SAFETY: an entry.
            looks += u32::from(!is_left(unsafe { load(at) }));
        }
        let mut graves = self.parts(self.graves.load(Relaxed)).flat_map(|at| (at..at + PART).step_by(ENTRY as usize));
        at > base || graves.any(is_alive)
    }

    /// Keeps other threads from the entries. None: this thread does so already, in what a handler has interrupted.
    pub fn lock(&self, tid: u32) -> Option<Locked<'_>> {
        let mut rounds = 0u32;
        while let Err(holder) = self.lock.compare_exchange(0, tid, Acquire, Relaxed) {
            if holder == tid {
                return None;
            }
            rounds += 1;
            core::hint::spin_loop();
            if !rounds.is_multiple_of(256) || !permits::records() {
                continue;
            }
            // A thread of the parent may have had it when the process was forked.
            if kernel::tgkill(kernel::getpid() as u32, holder, 0) == kernel::ESRCH {
                let _ = self.lock.compare_exchange(holder, 0, Relaxed, Relaxed);
            } else {
                kernel::sleep(20_000);
            }
        }
        Some(Locked(self, tid))
    }

    /// The owner is about to call fork(2).
    pub fn forks(&self) {
        self.forker.store(kernel::getpid() as u32, Relaxed);
    }

    /// The owner has this id, in a child of fork(2).
    pub fn is_now(&self, tid: u32) {
        self.tid.store(tid, Release);
        self.forker.store(0, Relaxed);
    }

    /// Notes where entries end now.
    pub fn note(&self, top: u64) {
        self.top.store(top, Release);
    }

    /// How many entries were taken since this was asked.
    pub fn take_gone(&self, least: u32) -> bool {
        self.gone.load(Relaxed) >= least && self.gone.swap(0, Relaxed) != 0
    }

    /// Buries an entry. The owner does, with the lock.
    pub fn bury(&self, place: u64, address: u64) {
        let grave = self.buried(place).or_else(|| {
            let open = |(part, offset)| (self.open(part), offset);
            // SAFETY: a grave.
            let is_free = |(part, offset): &(u64, u64)| unsafe { load(self.part(*part) + offset + 8) == 0 };
            let first = || spots(place).map(open).next();
            let (part, offset) = spots(place).map(open).find(is_free).or_else(first)?;
            self.graves.fetch_or(1 << part, Relaxed);
            Some(self.part(part) + offset)
        });
        let Some(grave) = grave else { return };
        // SAFETY: the graveyard is the memory's.
        unsafe {
            store(grave, place);
            store(grave + 8, address);
            store(grave + 16, if permits::records() { kernel::tsc() } else { 0 });
        }
    }

    /// A part of the graveyard, which is mapped if it is not yet; where that cannot be, the first part stands for it.
    fn open(&self, part: u64) -> u64 {
        let is_there = part == 0 || self.yard.load(Relaxed) >> part & 1 != 0;
        if is_there || permits::records() && kernel::extend(self.part(part), PART) {
            self.yard.fetch_or(1 << part, Relaxed);
            part
        } else {
            0
        }
    }

    /// Where a part of the graveyard is.
    fn part(&self, part: u64) -> u64 {
        let most = u64::from(self.most.load(Relaxed)) << 12;
        self.memory.load(Relaxed) + if part == 0 { FRAMES } else { most + (part - 1) * PART }
    }

    /// Where the parts of a mask are.
    fn parts(&self, mask: u64) -> impl Iterator<Item = u64> + '_ {
        (0..PARTS).filter(move |i| mask >> i & 1 != 0).map(|i| self.part(i))
    }

    /// The grave of a place.
    fn buried(&self, place: u64) -> Option<u64> {
        let graves = self.graves.load(Relaxed);
        if graves == 0 {
            return None;
        }
        let has_any = |part: &u64| graves >> part & 1 != 0;
        let each = |(part, offset)| [part, 0].into_iter().filter(has_any).map(move |part| self.part(part) + offset);
        // SAFETY: graves.
        spots(place).flat_map(each).find(|g| unsafe { load(*g) == place && load(g + 8) != 0 })
    }
}

/// Where an entry may be buried: parts of the graveyard, and offsets in them. At first in the part of the stack's surroundings, so that
/// few parts are needed.
fn spots(place: u64) -> impl Iterator<Item = (u64, u64)> {
    const HASH: u64 = 0x9e37_79b9_7f4a_7c15;
    let hash = (place >> 3).wrapping_mul(HASH);
    let surroundings = (place >> 13).wrapping_mul(HASH);
    (0..SPOTS).map(move |n| {
        let part = if n < SPOTS / 2 { surroundings } else { hash } >> 58;
        (part, (((hash >> 40) + n) * ENTRY) & (PART - 1))
    })
}

/// [`Slot::lock`], until it is dropped.
pub struct Locked<'a>(&'a Slot, u32);

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // It may have a new owner, which has the lock now.
        let _ = self.0.lock.compare_exchange(self.1, 0, Release, Relaxed);
    }
}

/// The newest entry of a place, if there is one.
///
/// # Safety
/// From `base` to `top` there are entries of a shadow stack.
pub unsafe fn find(base: u64, top: u64, place: u64) -> Option<u64> {
    let mut at = top;
    while at > base {
        at -= ENTRY;
        // SAFETY: so says the caller.
        let (there, address) = unsafe { (load(at), load(at + 8)) };
        if address == BARRIER {
            // The two below a barrier belong to the code that it has interrupted.
            at -= 2 * ENTRY;
        } else if there == place {
            return Some(at);
        }
    }
    None
}

/// The lowest entry of the chain of tail calls that ends with an entry.
///
/// # Safety
/// From below `base` to `found` there are entries of a shadow stack.
pub unsafe fn chain(base: u64, found: u64, place: u64) -> u64 {
    let mut at = found;
    // SAFETY: so says the caller.
    while at > base && unsafe { areas::is_return(load(at + 8)) && load(at - ENTRY) == place } {
        at -= ENTRY;
    }
    at
}

/// The entries of a place that are taken, the oldest first.
#[derive(Default)]
pub struct Taken {
    pub entries: [[u64; 4]; CHAIN],
    pub len: usize,
}

/// Takes the entries of a place from the memory of another thread; `remove` false: they stay there. Signals are blocked.
///
/// A look without the lock may miss an entry that its owner moves meanwhile. `sure`: there is none if none is found.
pub fn take(tid: u32, own: u32, place: u64, (how, sure): (End, bool), remove: bool, taken: &mut Taken) -> bool {
    let others = all().iter().enumerate().filter(|(i, s)| *i as u32 + 1 != own && s.memory.load(Acquire) != 0);
    for (_, slot) in others {
        let found = || {
            slot.range(how).and_then(|(base, top)| {
                // SAFETY: within the slot's memory, which is never unmapped.
                Some((base, unsafe { find(base, top, place) }?))
            })
        };
        // Another thread has that stack now.
        if slot.is_own(place) && slot.has_ended() {
            continue;
        }
        let may_be_there = match sure {
            true => slot.range(how).is_some(),
            false => slot.lock.load(Acquire) != 0 || found().is_some(),
        };
        if !may_be_there {
            continue;
        }
        // Only a handler's own thread could have it already.
        let Some(_locked) = slot.lock(tid) else { continue };
        let Some((base, newest)) = found() else { continue };
        // SAFETY: as in `found`.
        let oldest = unsafe { chain(base, newest, place) }.max(newest.saturating_sub((CHAIN as u64 - 1) * ENTRY));
        taken.len = 0;
        for (to, at) in taken.entries.iter_mut().zip((oldest..=newest).step_by(ENTRY as usize)) {
            // SAFETY: an entry that nobody else touches: its owner is not in that call, and has not the lock.
            unsafe {
                *to = [load(at), load(at + 8), load(at + 16), load(at + 24)];
                if remove {
                    store(at, place ^ 1);
                    store(at + 8, GONE);
                    store(at + 24, NO_CALL);
                }
            }
            taken.len += 1;
        }
        slot.gone.fetch_add(if remove { taken.len as u32 } else { 0 }, Relaxed);
        return true;
    }
    false
}

/// The return address of a place that was buried last, by whatever thread; `remove`: it leaves its grave.
pub fn buried(place: u64, remove: bool) -> Option<u64> {
    // SAFETY: graves.
    let time = |grave: &u64| unsafe { load(grave + 16) };
    let graves = all().iter().filter(|s| s.memory.load(Acquire) != 0).filter_map(|s| s.buried(place));
    let grave = graves.max_by_key(time)?;
    // SAFETY: a grave, whose place is in the stack that this thread has now.
    unsafe {
        let address = load(grave + 8);
        if remove {
            store(grave + 8, 0);
        }
        (address != 0).then_some(address)
    }
}
