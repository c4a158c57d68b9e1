//! What stacks are walked by: the collector's unwind tables, and the mappings of the process.

use crate::{kernel, permits};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicU64, AtomicUsize, compiler_fence};
use unwind::replay::Space;
use unwind::shared::{PAGES, PAGES_AT, ROWS_AT, RULES, RULES_AT};
use unwind::{Mapping, Page, Row, Rule, Tables};

/// Tables of the collector; 0: none.
static TABLES: AtomicU64 = AtomicU64::new(0);
/// How many bytes of them are mapped.
static TABLES_LEN: AtomicU64 = AtomicU64::new(0);
/// The mappings of the process: address, number, and the bytes that are mapped for them, in two places of which one is read while the
/// other is written.
static MAPPINGS: [[AtomicU64; 3]; 2] = [const { [const { AtomicU64::new(0) }; 3] }; 2];
/// The most bytes of each.
const MOST_MAPPINGS: u64 = 16 << 20;
/// How often they were set. The lowest bit is the place.
static GENERATION: AtomicUsize = AtomicUsize::new(0);

/// Tables of earlier sessions that could not go yet.
static LEFT: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];

/// Bytes of address space for tables.
pub const SIZE: u64 = unwind::shared::SIZE as u64;

/// Uses unwind tables, of which `len` bytes are mapped, until [`leave`]. False: they are not of this version.
///
/// # Safety
/// They are mapped there, and nobody unmaps them before that.
pub unsafe fn begin(at: u64, len: u64) -> bool {
    if len < ROWS_AT as u64 || len > SIZE {
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

/// Maps this many bytes of the tables, which have grown. Where that fails, stacks end in the modules that came last.
pub fn extend(len: u64) {
    let (at, there) = (TABLES.load(Relaxed), TABLES_LEN.load(Relaxed));
    if at != 0 && there < len && len <= SIZE && permits::grows() && kernel::extend_file(at, there, len) {
        TABLES_LEN.store(len, Release);
    }
}

/// Forgets what belongs to a session. All other threads are stopped. `free`: none of them is in the agent, so the tables go. Else they stay
/// mapped for good: a walk may be under way.
pub fn leave(free: bool) {
    forget_mappings();
    for at in LEFT.iter().chain([&TABLES]).filter(|_| free).map(|t| t.swap(0, Relaxed)).filter(|at| *at != 0) {
        // SAFETY: nobody reads them any more, and what is not mapped of their address space is nobody else's.
        unsafe { kernel::unmap(at, SIZE) };
    }
}

/// No mappings.
fn forget_mappings() {
    for [_, count, _] in &MAPPINGS {
        count.store(0, Release);
    }
    // Walkers forget what they have found.
    GENERATION.fetch_add(1, Release);
}

/// Uses a copy of these mappings, if there are any. A walk that they overtake is begun anew ([`is_current`]).
pub fn map_of_process(mappings: &[Mapping]) {
    if !mappings.is_empty() {
        set(mappings.len(), mappings.iter());
    }
}

/// Uses mappings of earlier too, where nothing else is known, or where these are of modules that have come again, as `has_come` says.
pub fn map_again(mappings: &[Mapping], has_come: impl Fn(&Mapping) -> bool) {
    let now = mappings_now();
    let overlaps = |a: &Mapping, b: &Mapping| a.start < b.end && b.start < a.end;
    let is_new = |m: &&Mapping| !now.contains(m) && (has_come(m) || !now.iter().any(|n| overlaps(n, m)));
    let added = mappings.iter().filter(is_new).count();
    if added == 0 {
        return;
    }
    let stays = |n: &&Mapping| !mappings.iter().any(|m| overlaps(n, m) && is_new(&m));
    let (mut new, mut old) = (mappings.iter().filter(is_new).peekable(), now.iter().filter(stays).peekable());
    let both = core::iter::from_fn(|| match (new.peek(), old.peek()) {
        (Some(a), Some(b)) if a.start < b.start => new.next(),
        (_, Some(_)) => old.next(),
        _ => new.next(),
    });
    set(added + now.iter().filter(stays).count(), both);
}

/// Whether stacks are walked.
pub fn are_used() -> bool {
    TABLES.load(Relaxed) != 0
}

/// The mappings that are in use.
fn mappings_now() -> &'static [Mapping] {
    let Some([at, count, _]) = MAPPINGS.get(GENERATION.load(Relaxed) & 1) else { return &[] };
    let count = count.load(Acquire) as usize;
    // SAFETY: they were set before their number, and are never unmapped; only the loader's thread sets others.
    if count == 0 { &[] } else { unsafe { core::slice::from_raw_parts(at.load(Relaxed) as *const Mapping, count) } }
}

/// Uses so many mappings, in order.
fn set<'m>(count: usize, mappings: impl Iterator<Item = &'m Mapping>) {
    let generation = GENERATION.load(Relaxed) + 1;
    if let Some([at, used, mapped]) = MAPPINGS.get(generation & 1) {
        used.store(0, Release);
        compiler_fence(SeqCst);
        if let Some(room) = room(at, mapped, (count * size_of::<Mapping>()) as u64) {
            for (i, mapping) in mappings.take(count).enumerate() {
                // SAFETY: there is room, and only this thread writes there: the loader's lock is held, or other threads are stopped.
                unsafe { (room as *mut Mapping).add(i).write_volatile(*mapping) };
            }
            used.store(count as u64, Release);
        }
    }
    GENERATION.store(generation, Release);
    compiler_fence(SeqCst);
}

/// Room for this many bytes of mappings, in one of the two places.
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

/// Whether mappings are still those of a space.
#[inline(always)]
pub fn is_current(space: &Space<'_>) -> bool {
    GENERATION.load(Acquire) as u64 == space.generation
}

/// Where rules are found.
#[inline(always)]
pub fn space() -> Option<Space<'static>> {
    let (tables, generation) = (TABLES.load(Acquire), GENERATION.load(Acquire));
    let rows = TABLES_LEN.load(Acquire).saturating_sub(ROWS_AT as u64) / size_of::<Row>() as u64;
    let [at, count, _] = MAPPINGS.get(generation & 1)?;
    let count = count.load(Acquire);
    // The length may be that of others, of another session.
    if tables == 0 || count == 0 || TABLES.load(Acquire) != tables {
        return None;
    }
    // SAFETY: so much of the tables is mapped, and as long as `begin` asks. Mappings were set before their number, and are never unmapped;
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
