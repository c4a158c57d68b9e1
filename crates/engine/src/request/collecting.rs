//! Clauses of scripts that collect in maps of the kernel: what an enabling's program does instead of reporting events.
//!
//! ```text
//! program ─► map of maps ─► map                      Collected::take: an empty map takes its place; what it has held is read and forgotten
//!                 ▲──────── another one, empty
//! ```
//!
//! Putting a map into a map of maps returns when every program that may still see the old one has ended (`maybe_wait_bpf_programs`,
//! kernel/bpf/syscall.c, 6.18): the map that was there is complete, and nobody writes it any more.

use crate::error::{Error, Result};
use bpf::probes::check::is_possible;
pub use bpf::probes::check::{bytes_of, is_readable};
pub use bpf::probes::clause::{Clause, From, Number};
pub use bpf::probes::collect::{Counter, KeyPart, Loops, layout};
use bpf::probes::collect::{Descriptors, faults, key, words};
pub use bpf::probes::predicates::is_decidable;
use lang::Span;
use lang::script::Program;
use lang::script::run::Fault;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use sys::bpf::map::{MMAPABLE, Map, MapKind, MapSpec, NO_PREALLOC, Values};

/// The most threads that put maps into others at the same time.
const WAITING: usize = 16;

/// The clauses of a script that run in the kernel, and the maps in which they collect.
pub struct Collected {
    /// The script.
    pub script: Arc<Program>,
    /// By the numbers of its maps: whether it is the kernel's.
    maps: Vec<bool>,
    /// What may go wrong in those clauses, and where.
    pub faults: Vec<(Fault, Span)>,
    made: OnceLock<Made>,
}

/// The maps, once the kernel has them.
struct Made {
    maps: Vec<Option<OneMap>>,
    zeros: Map,
    /// For programs with loops: no program is in it.
    programs: Option<Map>,
    counters: Map,
    counted: Values,
    /// What was read of the counters already.
    told: Mutex<Vec<u64>>,
}

struct OneMap {
    outer: Map,
    /// The one that is in it.
    inner: Mutex<Map>,
    parts: Vec<KeyPart>,
    words: usize,
    entries: u32,
    /// Of its keys, the least recently used one goes where a new one finds it full.
    drops_keys: bool,
}

/// What clauses have collected at a key, on one processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// As the executor encodes keys.
    pub key: Vec<u8>,
    /// As `lang::script::maps::words_of` has them.
    pub words: Vec<u64>,
}

/// What was counted since the last time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Reads of memory that is not there.
    pub bad_reads: u64,
    /// New keys that were refused, by map.
    pub refused: Vec<(usize, u64)>,
    /// What has gone wrong, where, and how often.
    pub faults: Vec<(Fault, Span, u64)>,
}

/// Of one enabling: its clauses, in their order.
#[derive(Clone)]
pub struct Collecting {
    /// The clauses of the script that run in the kernel.
    pub collected: Arc<Collected>,
    /// Those of this enabling.
    pub clauses: Vec<Clause>,
}

/// Of one enabling: its clauses see events, and have predicates that its program evaluates first.
#[derive(Clone)]
pub struct Predicates {
    /// The script.
    pub script: Arc<Program>,
    /// All its clauses.
    pub clauses: Vec<Clause>,
}

/// The kernel has refused the best program of a probe of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub why: String,
    /// What is done instead.
    pub instead: Instead,
}

/// What is done instead of what was wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instead {
    /// Loops are called back, not in place.
    CalledBack,
    /// The program reports events.
    Events,
}

impl Refusal {
    /// What became of the programs of a probe. `refused`: why it is none of these, in their order. The first `collecting` of all collect: with loops
    /// in place, and called back.
    pub fn of(refused: &[Option<String>], collecting: usize) -> Option<Refusal> {
        let whys: Vec<&str> = refused.iter().take(collecting.max(1)).flatten().map(|why| &why[..]).collect();
        let why = match whys[..] {
            [] => return None,
            [why] => why.to_owned(),
            [why, also, ..] if why == also => format!("{why}; with loops that are called back, too"),
            [why, also, ..] => format!("{why}; with loops that are called back: {also}"),
        };
        let instead = if refused.len() < collecting { Instead::CalledBack } else { Instead::Events };
        Some(Refusal { why, instead })
    }
}

/// What the kernel has refused of what was to run in it of a script, by probe.
#[derive(Clone, Debug, Default)]
pub struct Refusals(Arc<Mutex<BTreeMap<String, Refusal>>>);

impl Refusals {
    /// The program of a probe was loaded. None: it is the one that was wanted.
    pub fn set(&self, probe: &str, refusal: Option<Refusal>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match refusal {
            Some(refusal) => all.insert(probe.into(), refusal),
            None => all.remove(probe),
        };
    }

    /// Of a probe.
    pub fn of(&self, probe: &str) -> Option<Refusal> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(probe).cloned()
    }
}

impl Predicates {
    /// What its program is made with.
    pub fn of_program(&self) -> bpf::probes::predicates::Predicates<'_> {
        bpf::probes::predicates::Predicates { script: &self.script, clauses: &self.clauses }
    }
}

impl fmt::Debug for Collecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collecting").field("clauses", &self.clauses).finish_non_exhaustive()
    }
}

fn are_of_loops(faults: &[(Fault, Span)]) -> bool {
    faults.iter().any(|(fault, _)| *fault == Fault::TooManyRounds)
}

impl Collecting {
    /// How the loops of its clauses may be made, the best way first: in place, where the kernel has such loops. They take more of what the verifier
    /// is ready to do than functions, in which it knows less. Clauses without loops are made in the best way.
    pub fn loops(&self) -> &'static [Loops] {
        const ALL: [Loops; 2] = [Loops::InPlace, Loops::CalledBack];
        static HAS_MAY_GOTO: OnceLock<bool> = OnceLock::new();
        let first = usize::from(!HAS_MAY_GOTO.get_or_init(sys::bpf::probe::may_goto));
        let numbers: Vec<usize> = self.clauses.iter().map(|c| c.number).collect();
        match are_of_loops(&faults(&self.collected.script, &numbers)) {
            true => &ALL[first..],
            false => &ALL[first..=first],
        }
    }
}

/// Whether a clause can run in the kernel. Only root's may read the kernel's memory.
pub fn can_collect(script: &Program, clause: &Clause) -> bool {
    is_possible(script, clause, crate::rights::is_root())
}

impl Collected {
    /// For these clauses, in these maps.
    pub fn new(script: Arc<Program>, clauses: &[usize], maps: Vec<bool>) -> Collected {
        let faults = faults(&script, clauses);
        Collected { script, maps, faults, made: OnceLock::new() }
    }

    /// Whether a map is the kernel's.
    pub fn has(&self, map: usize) -> bool {
        self.maps.get(map).copied().unwrap_or(false)
    }

    fn has_loops(&self) -> bool {
        are_of_loops(&self.faults)
    }

    /// Makes the maps, where they are not made yet.
    ///
    /// # Errors
    /// The kernel refuses, for instance for lack of memory.
    pub fn make(&self) -> Result<()> {
        if self.made.get().is_none() {
            let failed =
                |e: io::Error| Error::failed("the maps of the script", e.to_string(), "use fewer, or smaller ones");
            let made = Made::new(self).map_err(failed)?;
            // Somebody else was faster.
            let _ = self.made.set(made);
        }
        Ok(())
    }

    /// What programs are made with. None before [`Collected::make`].
    pub fn descriptors(&self) -> Option<Descriptors> {
        use std::os::fd::{AsFd, AsRawFd};
        let made = self.made.get()?;
        let fd = |m: &Map| m.as_fd().as_raw_fd();
        Some(Descriptors {
            maps: made.maps.iter().map(|m| m.as_ref().map(|m| fd(&m.outer))).collect(),
            zeros: fd(&made.zeros),
            counters: fd(&made.counters),
            programs: made.programs.as_ref().map(fd),
        })
    }

    /// Takes what a map has held: it is empty from then on.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn take(&self, map: usize) -> io::Result<Vec<Taken>> {
        let Some(one) = self.made.get().and_then(|made| made.maps.get(map)?.as_ref()) else { return Ok(Vec::new()) };
        let mut inner = one.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = one.empty()?;
        one.outer.put_map(&[0; 4], &fresh)?;
        let full = std::mem::replace(&mut *inner, fresh);
        drop(inner);
        one.read(&full)
    }

    /// Takes what several maps have held.
    pub fn take_all(&self, maps: &[usize]) -> Vec<io::Result<Vec<Taken>>> {
        at_once(maps.len(), |nth| self.take(maps[nth]))
    }

    /// What was counted since the last time.
    pub fn told(&self) -> Told {
        let mut told = Told::default();
        let Some(made) = self.made.get() else { return told };
        let mut before = made.told.lock().unwrap_or_else(PoisonError::into_inner);
        let mut since = |counter: Counter| {
            let nth = counter.word(self.maps.len());
            let now = made.counted.word(8 * nth).map_or(0, |w| w.load(Ordering::Relaxed));
            before.get_mut(nth).map_or(0, |before| now.saturating_sub(std::mem::replace(before, now)))
        };
        told.bad_reads = since(Counter::BadReads);
        told.refused = (0..self.maps.len()).map(|m| (m, since(Counter::Refused(m)))).filter(|m| m.1 > 0).collect();
        let places = self.faults.iter().enumerate();
        let n = |(nth, (fault, at)): (usize, &(Fault, Span))| (*fault, *at, since(Counter::Fault(nth)));
        told.faults = places.map(n).filter(|f| f.2 > 0).collect();
        told
    }
}

/// The results of `each` for the numbers below `count`, from up to [`WAITING`] threads: putting a map into a map waits 14 ms for the kernel
/// (6.18).
fn at_once<T: Send>(count: usize, each: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            if nth >= count {
                return;
            }
            let one = each(nth);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((nth, one));
        }
    };
    thread::scope(|scope| {
        for _ in 1..count.min(WAITING) {
            // Where no thread can be started, this one does it all.
            let _ = thread::Builder::new().name("trapline-maps".into()).spawn_scoped(scope, work);
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|one| one.0);
    done.into_iter().map(|one| one.1).collect()
}

impl Made {
    fn new(of: &Collected) -> io::Result<Made> {
        let one = |map: usize| if of.has(map) { OneMap::new(&of.script.maps[map]) } else { Ok(None) };
        let maps = at_once(of.script.maps.len(), one).into_iter().collect::<io::Result<Vec<_>>>()?;
        let most = maps.iter().flatten().map(|m| m.words).max().unwrap_or(1);
        let words = 1 + of.maps.len() + of.faults.len();
        let zeros = Map::array("script_zeros", 8 * most as u32, 1, 0)?;
        let counters = Map::array("script_counts", 8 * words as u32, 1, MMAPABLE)?;
        let counted = counters.mmap()?;
        let programs = of.has_loops().then(|| Map::programs("script_programs", 1)).transpose()?;
        Ok(Made { maps, zeros, programs, counters, counted, told: Mutex::new(vec![0; words]) })
    }
}

impl OneMap {
    fn new(map: &lang::script::ir::Map) -> io::Result<Option<OneMap>> {
        let Some((parts, words)) = layout(map) else { return Ok(None) };
        let entries = u32::try_from(map.entries).unwrap_or(u32::MAX).max(1);
        let drops_keys = map.drops_keys();
        let first = empty(&parts, words, entries, drops_keys)?;
        let outer = Map::array_of("script_map", &first, 1)?;
        outer.put_map(&[0; 4], &first)?;
        Ok(Some(OneMap { outer, inner: Mutex::new(first), parts, words, entries, drops_keys }))
    }

    fn empty(&self) -> io::Result<Map> {
        empty(&self.parts, self.words, self.entries, self.drops_keys)
    }

    /// All that a map holds.
    fn read(&self, map: &Map) -> io::Result<Vec<Taken>> {
        let mut all = Vec::new();
        let mut of = |raw: &[u8]| -> io::Result<()> {
            for value in map.lookup_per_cpu(raw)?.unwrap_or_default() {
                let words = words(&value);
                if words.iter().any(|w| *w != 0) {
                    all.push(Taken { key: key(&self.parts, raw), words });
                }
            }
            Ok(())
        };
        if self.parts.is_empty() {
            of(&[0; 4])?;
            return Ok(all);
        }
        let mut next = vec![0; map.sizes().0];
        let mut before: Option<Vec<u8>> = None;
        while map.next_key(before.as_deref(), &mut next)? {
            of(&next)?;
            before = Some(next.clone());
        }
        Ok(all)
    }
}

/// A map that holds nothing.
fn empty(parts: &[KeyPart], words: usize, entries: u32, drops_keys: bool) -> io::Result<Map> {
    let value_size = 8 * words as u32;
    if parts.is_empty() {
        return Map::per_cpu_array("script_value", value_size, 1);
    }
    let key_size = parts.iter().map(|p| p.size() as u32).sum();
    let spec = |kind, flags| MapSpec {
        kind,
        name: "script_keys",
        key_size,
        value_size,
        entries,
        flags,
        inner: None,
        types: None,
    };
    // The kernel makes a map that drops keys with the memory for all of them (htab_map_alloc_check, kernel/bpf/hashtab.c, 6.18).
    if drops_keys {
        return Map::create(&spec(MapKind::LruPerCpuHash, 0));
    }
    // Memory is taken when it is needed: from Linux 6.1 on that is safe in any program.
    Map::create(&spec(MapKind::PerCpuHash, if sys::proc::kernel_is_at_least(6, 1) { NO_PREALLOC } else { 0 }))
}

#[cfg(test)]
mod tests {
    use super::{Instead, Refusal};

    #[test]
    fn a_refusal_names_all_programs_that_collect() {
        let of = |refused: &[&str], collecting| {
            let refused: Vec<_> = refused.iter().map(|why| Some((*why).to_owned())).collect();
            Refusal::of(&refused, collecting).map(|r| (r.why, r.instead))
        };
        let is = |why: &str, instead| Some((why.to_owned(), instead));
        assert_eq!(of(&[], 2), None);
        assert_eq!(of(&["large"], 2), is("large", Instead::CalledBack));
        assert_eq!(of(&["large", "deep"], 2), is("large; with loops that are called back: deep", Instead::Events));
        assert_eq!(of(&["large", "large", "p"], 2), is("large; with loops that are called back, too", Instead::Events));
        // Without loops, and of predicates alone.
        assert_eq!(of(&["large", "p"], 1), is("large", Instead::Events));
        assert_eq!(of(&["p"], 0), is("p", Instead::Events));
    }

    #[test]
    fn what_is_done_at_once_stays_in_order() {
        for count in [0, 1, 2, 40] {
            assert_eq!(super::at_once(count, |nth| 3 * nth), (0..count).map(|nth| 3 * nth).collect::<Vec<_>>());
        }
    }
}
