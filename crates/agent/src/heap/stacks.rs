//! The stacks of allocations: walked by tables that the collector has made (`unwind::replay`), and known by their hashes.

use super::{Frame, sample};
use crate::memory::load;
use crate::thread::Local;
use crate::{areas, kernel, permits, shadow, slots};
use core::cell::Cell;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicU64, AtomicUsize, compiler_fence};
use unwind::replay::{Replay, Space};
use unwind::shared::{PAGES, PAGES_AT, ROWS_AT, RULES, RULES_AT, SIZE};
use unwind::{Mapping, Page, Registers, Row, Rule, Tables};

/// Handlers that interrupt one another while the thread is busy have walkers of their own, so many at a time.
const LEVELS: usize = 3;
/// Bytes of a page.
const PAGE: u64 = 4096;
/// The most pages of a stack that are looked at at once.
const LOOKS: u64 = 1 << 10;

/// What a thread has for its allocations. All bytes zero are a valid beginning.
#[repr(C)]
pub struct Memory {
    /// Its next sample.
    pub countdown: sample::Countdown,
    /// The end of the chunk that has the last Malloc record; 0: there is none.
    chunk: u64,
    size: u64,
    stack: u64,
    /// A stack that the collector knows.
    known: u64,
    window: Window,
    /// Which walker was used last.
    level: usize,
    /// Why its stack ends.
    ended: u8,
    walkers: [Replay; LEVELS],
}

impl Memory {
    /// Whether the last Malloc record of the chunk says the same.
    #[inline(always)]
    pub fn repeats(&self, local: &Local, size: u64, stack: u64) -> bool {
        self.chunk != 0 && self.chunk == local.end.load(Relaxed) && self.size == size && self.stack == stack
    }

    /// Notes a Malloc record.
    #[inline(always)]
    pub fn note(&mut self, local: &Local, size: u64, stack: u64) {
        (self.chunk, self.size, self.stack) = (local.end.load(Relaxed), size, stack);
    }

    /// There is no last Malloc record.
    pub fn forget(&mut self) {
        self.chunk = 0;
    }

    /// Whether the collector knows a stack.
    #[inline(always)]
    pub fn knows(&mut self, stack: u64) -> bool {
        if stack == self.known || stack == 0 {
            return true;
        }
        let known = known::has(stack);
        if known {
            self.known = stack;
        }
        known
    }

    /// The collector knows a stack from now on.
    pub fn remember(&mut self, stack: u64) {
        known::add(stack);
        self.known = stack;
    }

    /// The frames of the stack that was walked last, and why it ends.
    pub fn frames(&self, _: &Local) -> (&[u64], u64) {
        let frames = self.walkers.get(self.level).map_or(&[][..], Replay::frames);
        (frames, self.ended.into())
    }
}

/// Memory that can be read, with a thread's stack pointer.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Window {
    low: u64,
    high: u64,
    /// What could be read before, where the stack pointer was higher.
    above: [u64; 2],
}

impl Window {
    /// It, or another one around this stack pointer.
    #[inline(always)]
    fn around(self, sp: u64) -> Window {
        if self.low <= sp && sp < self.high {
            return self;
        }
        let low = sp & !(PAGE - 1);
        Window { low, high: low + PAGE, above: [self.low, self.high] }
    }

    /// Has it reach so far that a word above the stack pointer is in it. False: it cannot be read.
    #[cold]
    fn widen(&mut self, sp: u64, at: u64) -> bool {
        if at < sp || at - sp > LOOKS * PAGE {
            return false;
        }
        while at + 8 > self.high {
            if permits::peek_one(self.high).is_none() {
                return false;
            }
            self.high += PAGE;
            if self.high == self.above[0] {
                self.high = self.above[1];
            }
        }
        true
    }
}

/// A range of memory that can be read, with the word at an address: this one, this one with a page more, or a page.
#[cold]
fn page_of(at: u64, known: [u64; 2]) -> Option<[u64; 2]> {
    let [low, high] = known;
    if low <= at && at.checked_add(8)? <= high {
        return Some(known);
    }
    let (first, last) = (at & !(PAGE - 1), at.checked_add(7)? & !(PAGE - 1));
    let can_be_read = [first, last].iter().all(|page| permits::peek_one(*page).is_some());
    can_be_read.then_some([if first == high && low != 0 { low } else { first }, last + PAGE])
}

/// Memory goes: it is not read for a stack any more without another look.
pub fn forget_window(local: &Local, address: u64, len: u64) {
    let at = local.heap.load(Relaxed) as *mut Memory;
    if !at.is_null() {
        // SAFETY: the thread's own memory.
        let memory = unsafe { &mut *at };
        let Window { low, high, above: [_, other] } = memory.window;
        if address < high.max(other) && low < address.saturating_add(len) {
            memory.window = Window::default();
        }
    }
}

/// The stack of an allocation, which is that of the caller of the allocator; 0: not known.
#[inline(always)]
pub fn of(local: &Local, memory: &mut Memory, frame: &Frame) -> u64 {
    loop {
        let Some(space) = space() else { return 0 };
        let hash = walk(local, memory, frame, &space);
        compiler_fence(SeqCst);
        if GENERATION.load(Acquire) as u64 == space.generation {
            return hash;
        }
    }
}

#[inline(always)]
fn walk(local: &Local, memory: &mut Memory, frame: &Frame, space: &Space<'_>) -> u64 {
    let level = local.heap_level.load(Relaxed) as usize % LEVELS;
    let Some(walker) = memory.walkers.get_mut(level) else { return 0 };
    let start = Registers { pc: frame.address, sp: frame.cfa(), bp: frame.rbp };
    let window = Cell::new(memory.window.around(start.sp));
    let other = Cell::new([0; 2]);
    let walked = walker.walk(space, start, |at| {
        let mut w = window.get();
        if at < start.sp || at > w.high - 8 {
            // A handler may run on a stack of its own: then what it has interrupted is elsewhere.
            if w.widen(start.sp, at) {
                window.set(w);
            } else {
                other.set(page_of(at, other.get())?);
            }
        }
        // SAFETY: the word lies in memory that can be read.
        let word = unsafe { load(at) };
        // A function that is traced too returns to its stub; where it was called from is in the shadow stack.
        let is_stub = areas::may_be_stub(word) && areas::is_return(word);
        Some(if is_stub { shadow::return_address(local, at).unwrap_or(word) } else { word })
    });
    memory.window = window.get();
    (memory.level, memory.ended) = (level, walked.ended as u8);
    walked.hash
}

/// Tables of the collector; 0: none.
static TABLES: AtomicU64 = AtomicU64::new(0);
/// How many bytes of them are mapped.
static TABLES_LEN: AtomicU64 = AtomicU64::new(0);
/// The mappings of the process: address, number, and the bytes that are mapped for them, in two places of which one is read while the
/// other is written.
static MAPPINGS: [[AtomicU64; 3]; 2] = [const { [const { AtomicU64::new(0) }; 3] }; 2];
/// The most bytes of each.
const MOST_MAPPINGS: u64 = 16 << 20;
/// How often they were set. The lowest bit tells the place.
static GENERATION: AtomicUsize = AtomicUsize::new(0);

/// Tables of earlier sessions that could not go yet.
static LEFT: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];

/// Bytes of address space for tables.
pub const TABLES_SIZE: u64 = SIZE as u64;

/// Uses unwind tables, of which `len` bytes are mapped, until [`leave`]. False: they are not of this version.
pub fn use_tables(at: u64, len: u64) -> bool {
    if len < ROWS_AT as u64 || len > SIZE as u64 {
        return false;
    }
    TABLES_LEN.store(len, Release);
    let before = TABLES.swap(at, Release);
    if before != 0
        && let Some(place) = LEFT.iter().find(|l| l.load(Relaxed) == 0)
    {
        place.store(before, Relaxed);
    }
    true
}

/// Maps so many bytes of the tables, which have grown. Where that fails, stacks end in the modules that came last.
pub fn extend_tables(len: u64) {
    let (at, there) = (TABLES.load(Relaxed), TABLES_LEN.load(Relaxed));
    if at != 0 && there < len && len <= SIZE as u64 && permits::grows() && kernel::extend_file(at, there, len) {
        TABLES_LEN.store(len, Release);
    }
}

/// Forgets what belongs to a session: the next collector knows no stack, and has tables and mappings of its own. All other threads are
/// stopped. `free`: none of them is in the agent, so the tables go. Else they stay mapped for good: a walk may be under way.
pub fn leave(free: bool) {
    known::forget();
    sample::forget();
    for memory in slots::all().iter().map(|s| s.heap.load(Acquire) as *mut Memory).filter(|m| !m.is_null()) {
        // SAFETY: such memory is never unmapped; its thread is stopped, and takes any of these values.
        unsafe {
            (*memory).chunk = 0;
            (*memory).known = 0;
            (*memory).window = Window::default();
        }
    }
    forget_mappings();
    for at in LEFT.iter().chain([&TABLES]).filter(|_| free).map(|t| t.swap(0, Relaxed)).filter(|at| *at != 0) {
        // SAFETY: nobody reads them any more, and what is not mapped of their address space is nobody else's.
        unsafe { kernel::unmap(at, TABLES_SIZE) };
    }
}

/// Whether there are tables: a child of fork has its parent's.
pub fn has_tables() -> bool {
    TABLES.load(Relaxed) != 0
}

/// No mappings.
fn forget_mappings() {
    for [_, count, _] in &MAPPINGS {
        count.store(0, Release);
    }
    // Walkers forget what they have found.
    GENERATION.fetch_add(1, Release);
}

/// Uses a copy of these mappings. A walk that they overtake is begun anew ([`of`]).
pub fn map_of_process(mappings: &[Mapping]) {
    let generation = GENERATION.load(Relaxed) + 1;
    if let Some([at, count, mapped]) = MAPPINGS.get(generation & 1) {
        count.store(0, Release);
        compiler_fence(SeqCst);
        if let Some(room) = room(at, mapped, size_of_val(mappings) as u64) {
            for (i, mapping) in mappings.iter().enumerate() {
                // SAFETY: there is room, and only this thread writes there: the loader's lock is held, or other threads are stopped.
                unsafe { (room as *mut Mapping).add(i).write_volatile(*mapping) };
            }
            count.store(mappings.len() as u64, Release);
        }
    }
    GENERATION.store(generation, Release);
    compiler_fence(SeqCst);
}

/// Room for so many bytes of mappings, in one of the two places.
fn room(at: &AtomicU64, mapped: &AtomicU64, len: u64) -> Option<u64> {
    let there = mapped.load(Relaxed);
    let new = len.next_power_of_two().max(1 << 16);
    if new > MOST_MAPPINGS {
        return None;
    }
    if at.load(Relaxed) == 0 {
        at.store(kernel::reserve_first(MOST_MAPPINGS, new)?, Release);
        mapped.store(new, Relaxed);
    } else if there < new {
        kernel::extend(at.load(Relaxed) + there, new - there).then_some(())?;
        mapped.store(new, Relaxed);
    }
    Some(at.load(Relaxed))
}

/// Where rules are found.
#[inline(always)]
fn space() -> Option<Space<'static>> {
    let (tables, generation) = (TABLES.load(Acquire), GENERATION.load(Acquire));
    let rows = TABLES_LEN.load(Acquire).saturating_sub(ROWS_AT as u64) / size_of::<Row>() as u64;
    let [at, count, _] = MAPPINGS.get(generation & 1)?;
    let count = count.load(Acquire);
    // The length may be that of others, of another session.
    if tables == 0 || count == 0 || TABLES.load(Acquire) != tables {
        return None;
    }
    // SAFETY: so much of the tables is mapped, and as long as `use_tables` asks. Mappings were set before their number, and are never unmapped;
    // where others take their place while they are read, what was read is not used. Whatever is in tables and mappings is valid.
    unsafe {
        Some(Space {
            tables: Tables {
                pages: core::slice::from_raw_parts((tables + PAGES_AT as u64) as *const Page, PAGES),
                rows: core::slice::from_raw_parts((tables + ROWS_AT as u64) as *const Row, rows as usize),
                rules: core::slice::from_raw_parts((tables + RULES_AT as u64) as *const Rule, RULES),
            },
            mappings: core::slice::from_raw_parts(at.load(Relaxed) as *const Mapping, count as usize),
            unmapped: Some(Rule::NONE),
            generation: generation as u64,
        })
    }
}

/// Hashes of stacks that the collector knows. A stack that finds no place is told again each time.
mod known {
    use super::{AcqRel, Acquire, AtomicU64, Relaxed, Release, kernel};

    /// Places of the first table, which a processor's cache can hold, and of both: 8 MB more, of which the kernel gives pages when they are used.
    const FIRST: u64 = 1 << 18;
    const PLACES: u64 = FIRST + (1 << 20);
    /// How many places of each are looked at. The second one has what found no place in the first.
    const PROBES: u64 = 8;

    static TABLE: AtomicU64 = AtomicU64::new(0);

    fn place(table: u64, hash: u64, probe: u64) -> &'static AtomicU64 {
        let n = match probe.checked_sub(PROBES) {
            None => hash.wrapping_add(probe) % FIRST,
            Some(probe) => FIRST + hash.wrapping_add(probe) % (PLACES - FIRST),
        };
        // SAFETY: the table has so many places, and is never unmapped.
        unsafe { &*((table + 8 * n) as *const AtomicU64) }
    }

    /// Whether a hash is there.
    #[inline(always)]
    pub fn has(hash: u64) -> bool {
        let table = TABLE.load(Acquire);
        if table == 0 {
            return false;
        }
        for probe in 0..2 * PROBES {
            match place(table, hash, probe).load(Relaxed) {
                0 => return false,
                there if there == hash => return true,
                _ => {}
            }
        }
        false
    }

    /// Puts a hash there.
    pub fn add(hash: u64) {
        let mut table = TABLE.load(Acquire);
        if table == 0 {
            let Some(new) = kernel::reserve(8 * PLACES) else { return };
            table = match TABLE.compare_exchange(0, new, AcqRel, Acquire) {
                Ok(_) => new,
                Err(there) => {
                    // SAFETY: nobody has seen it.
                    unsafe { kernel::unmap(new, 8 * PLACES) };
                    there
                }
            };
        }
        for probe in 0..2 * PROBES {
            match place(table, hash, probe).compare_exchange(0, hash, Release, Relaxed) {
                Ok(_) => return,
                Err(there) if there == hash => return,
                Err(_) => {}
            }
        }
    }

    /// Forgets all: another collector knows none of them. Other threads are stopped.
    pub fn forget() {
        let table = TABLE.load(Acquire);
        if table != 0 {
            // SAFETY: the agent's own, and zeros are valid.
            unsafe { kernel::discard(table, 8 * PLACES) };
        }
    }
}
