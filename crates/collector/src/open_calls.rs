//! Calls that are open, of which nothing is written yet. With a minimum of time, an entry is written when its call has taken long enough, and the
//! thread comes to code of the agent: a process that is killed writes no more, and neither does a thread that waits when another ends the process.
//! So the collector looks at the threads' shadow stacks from time to time.
//!
//! ```text
//!  table of threads ─► data of each ─► entries of its shadow stack, twice ─► calls that have taken long enough
//!  records of a thread ─► those of its calls that were written since then are out of it
//!  the end ─► the others' entries
//! ```
//!
//! The process runs meanwhile. An entry counts if it is the same in both looks, and was below the top between them: stubs write an entry above the
//! top before it counts.

use abi::thread::{BARRIER, BASE, MEMORY, RECORDED, Shadow, TID, TOP, WRITTEN, slot};
use engine::callers;
use events::functions::{HIGH, RECORD, VALUES, each as each_record, time, word};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use sys::agent::Shared;
use sys::mem;

/// How often the threads are looked at, unless that takes long.
const LOOK: Duration = Duration::from_millis(20);
/// The part of the collector's time that it may take: one of so many.
const PART: u32 = 20;
/// The most slots, and the most bytes of a shadow stack, that are looked at: the outermost calls.
const SLOTS: usize = 1 << 16;
const MOST: usize = 2 << 20;
/// Bytes of an entry of a shadow stack.
const ENTRY: usize = size_of::<abi::thread::Shadow>();
/// What is read of a thread's data.
const LOCAL: usize = MEMORY as usize + 8;

/// A call: when it began, and the function's number.
type Call = (u64, u32);

/// The open calls of a process, by its own numbers of threads, the outermost ones first.
pub struct OpenCalls {
    minimum: u64,
    calls: HashMap<u32, Vec<Call>>,
    next: Instant,
}

/// A process whose memory is read.
struct Reader {
    tid: i32,
}

fn number(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u64::from_le_bytes(*b))
}

fn small(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u32::from_le_bytes(*b))
}

impl Reader {
    /// All of these bytes. None: they are not there, or may not be read.
    fn bytes(&self, at: u64, len: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; len];
        (mem::read(self.tid, at, &mut bytes).ok()? == len).then_some(bytes)
    }

    /// The entries of the shadow stack of the thread with a slot that are the same in two looks, the outermost first. None: they are not known.
    fn entries(&self, slot: &[u8]) -> Option<Vec<Shadow>> {
        let place = number(slot, slot::LOCAL);
        let local = self.bytes(place, LOCAL)?;
        let is_owner = number(&local, MEMORY as usize) == number(slot, slot::MEMORY)
            && small(&local, TID as usize) == small(slot, slot::TID);
        let (top, base) = (number(&local, TOP as usize), number(&local, BASE as usize));
        if !is_owner || top == 0 {
            return None;
        }
        let len = top.checked_sub(base).filter(|len| len.is_multiple_of(ENTRY as u64))?.min(MOST as u64) as usize;
        let first = self.bytes(base, len)?;
        let there = number(&self.bytes(place + TOP as u64, 8)?, 0).saturating_sub(base).min(len as u64) as usize;
        let second = self.bytes(base, there)?;
        let entries = || first.chunks_exact(ENTRY).zip(second.chunks_exact(ENTRY));
        let is_barrier = |n: usize| second.get(n * ENTRY..).is_some_and(|e| number(e, 8) == BARRIER);
        // The two below a barrier belong to what its handler has interrupted.
        let of_handler = |n: usize| (n..n + 3).any(is_barrier);
        let entry = |(n, (entry, again)): (usize, (&[u8], &[u8]))| {
            let [slot, address, tsc, word] = [0, 8, 16, 24].map(|at| number(entry, at));
            let entry_of = Shadow { slot, address, tsc, function: word as u32, flags: (word >> 32) as u32 };
            (entry == again && address != BARRIER && !of_handler(n)).then_some(entry_of)
        };
        Some(entries().enumerate().filter_map(entry).collect())
    }

    /// The open calls of the thread with a slot that began at `born` or later, and whose entries are to be written late. None: they are not known.
    fn calls(&self, slot: &[u8], born: u64) -> Option<Vec<Call>> {
        // Others are written, or not to be written late.
        let is_pending = |e: &Shadow| e.flags == 0 && e.function != 0 && e.function & WRITTEN == 0;
        let entries = self.entries(slot)?.into_iter();
        Some(entries.filter(|e| is_pending(e) && e.tsc >= born.max(1)).map(|e| (e.tsc, e.function)).collect())
    }

    /// The slots of the threads of a process that has this table of them.
    fn slots(&self, [table, used, _]: [u64; 3]) -> Option<Vec<u8>> {
        let count = self.bytes(used, 8).filter(|_| table != 0)?;
        self.bytes(table, slot::SIZE * (small(&count, 0) as usize).min(SLOTS))
    }
}

/// The calls of a thread that were open before the counter had this value and are still open, with their return addresses, the outermost first.
/// `table`: where the process has its threads (`Shared::threads`).
pub fn held(pid: i32, table: [u64; 3], own_tid: u32, before: u64) -> Box<[callers::Call]> {
    let reader = Reader { tid: pid };
    let slots = reader.slots(table).unwrap_or_default();
    let of_thread = slots.chunks_exact(slot::SIZE).find(|s| small(s, slot::TID) == own_tid);
    let entries = of_thread.and_then(|slot| reader.entries(slot)).unwrap_or_default();
    let is_held = |e: &Shadow| e.tsc != 0 && e.tsc < before;
    let call =
        |e: Shadow| callers::Call { place: e.slot, address: e.address, number: e.function & !(WRITTEN | RECORDED) };
    entries.into_iter().filter(is_held).map(call).collect()
}

impl OpenCalls {
    /// Of a process whose calls are recorded if they take so many ticks.
    pub fn new(minimum: u64) -> OpenCalls {
        OpenCalls { minimum, calls: HashMap::new(), next: Instant::now() + LOOK }
    }

    /// Looks which calls are open, if it is time to, or `now`. `tids`: threads of the process, as trapline numbers them.
    pub fn look(&mut self, shared: &Shared, tids: impl Iterator<Item = i32>, now: bool) {
        let began = Instant::now();
        if !now && began < self.next {
            return;
        }
        // The first thread may have ended.
        tids.take(4).find(|tid| self.look_at(shared, &Reader { tid: *tid }).is_some());
        self.next = Instant::now() + LOOK.max(began.elapsed() * PART);
    }

    fn look_at(&mut self, shared: &Shared, reader: &Reader) -> Option<()> {
        let [table, used, born] = shared.threads();
        let now = sys::time::stamp().0;
        let slots = reader.slots([table, used, born])?;
        let of = |slot: &[u8]| Some((small(slot, slot::TID), reader.calls(slot, born)?));
        let found: Vec<_> =
            slots.chunks_exact(slot::SIZE).filter(|s| small(s, slot::TID) != 0).filter_map(of).collect();
        // Another program may have taken its place meanwhile.
        if small(&reader.bytes(used, 8)?, 4) != shared.number() {
            return None;
        }
        for (tid, mut calls) in found {
            calls.retain(|(tsc, _)| now.saturating_sub(*tsc) >= self.minimum);
            self.calls.insert(tid, calls);
        }
        Some(())
    }

    /// What a thread has written since: the upper half of the counter before it, and records.
    pub fn written(&mut self, tid: u32, mut high: u32, records: &[u8]) {
        let Some(calls) = self.calls.get_mut(&tid) else { return };
        for record in each_record(records) {
            let (Some(&(last, _)), Some(head)) = (calls.last(), record.first_chunk::<RECORD>()) else { return };
            let tsc = u64::from(high) << 32 | u64::from(time(head));
            match word(head) {
                HIGH => high = time(head),
                word if tsc <= last && word & (VALUES | 1) == 0 => calls.retain(|c| *c != (tsc, word >> 1)),
                _ => {}
            }
        }
    }

    /// The entries of calls that are open at the end, by thread: when the first began, and records.
    pub fn end(&mut self) -> impl Iterator<Item = (u32, u64, Vec<u8>)> + '_ {
        self.calls.drain().filter_map(|(tid, calls)| {
            let (mut high, mut records) = (None, Vec::new());
            let mut record = |time: u32, word: u32| records.extend([time.to_le_bytes(), word.to_le_bytes()].concat());
            for (tsc, function) in &calls {
                let upper = (tsc >> 32) as u32;
                if high.replace(upper) != Some(upper) {
                    record(upper, HIGH);
                }
                record(*tsc as u32, function << 1);
            }
            Some((tid, calls.first()?.0, records))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(time: u32, word: u32) -> Vec<u8> {
        [time.to_le_bytes(), word.to_le_bytes()].concat()
    }

    #[test]
    fn what_was_written_is_not_written_again() {
        let mut open = OpenCalls::new(10);
        let at = |high: u64, low: u64| high << 32 | low;
        open.calls.insert(7, vec![(at(1, 5), 3), (at(1, 9), 4), (at(2, 1), 5)]);
        open.calls.insert(8, vec![(at(1, 5), 3)]);
        // An exit, a function of the same time, the same function at another time.
        open.written(7, 1, &[record(5, 3 << 1 | 1), record(5, 8 << 1), record(9, 3 << 1)].concat());
        open.written(7, 1, &record(9, 4 << 1));
        open.written(7, 1, &[record(2, HIGH), record(9, 4 << 1)].concat());
        open.written(9, 1, &record(5, 3 << 1));
        let mut rest: Vec<_> = open.end().collect();
        rest.sort();
        let of_7 = [record(1, HIGH), record(5, 3 << 1), record(2, HIGH), record(1, 5 << 1)].concat();
        let of_8 = [record(1, HIGH), record(5, 3 << 1)].concat();
        assert_eq!(rest, [(7, at(1, 5), of_7), (8, at(1, 5), of_8)]);
        assert_eq!(open.end().count(), 0);
    }

    /// The shadow stack of a thread, as it is in this process: entries of place, address, time and word.
    fn calls(entries: &[[u64; 4]], born: u64) -> Option<Vec<Call>> {
        let entries: Vec<u8> = entries.iter().flatten().flat_map(|w| w.to_le_bytes()).collect();
        let mut local = [0u8; LOCAL];
        let mut put = |at: i32, word: u64| local[at as usize..][..8].copy_from_slice(&word.to_le_bytes());
        put(BASE, entries.as_ptr() as u64);
        put(TOP, entries.as_ptr() as u64 + entries.len() as u64);
        put(TID, 7);
        put(MEMORY, 99);
        let mut of = [0u8; slot::SIZE];
        for (at, word) in [(slot::TID, 7), (slot::MEMORY, 99), (slot::LOCAL, local.as_ptr() as u64)] {
            of[at..][..8].copy_from_slice(&word.to_le_bytes());
        }
        let own = Reader { tid: sys::process::own_pid() };
        let all = own.calls(&of, born);
        of[slot::MEMORY] = 98;
        assert_eq!(own.calls(&of, born), None, "another thread has that storage");
        all
    }

    #[test]
    fn calls_of_a_stack_are_those_to_be_written_late() {
        const LATE: u64 = 1 << 32;
        let written = u64::from(WRITTEN) | u64::MAX << 32;
        let entries = [
            [900, 5000, 10, 3 | LATE],
            [800, 5000, 20, 4],
            [700, 5000, 0, 5],
            [650, 5000, 25, 6 | written],
            [600, 5000, 30, 7],
            // A handler has interrupted what is in these two.
            [500, 5000, 40, 8],
            [500, 5000, 40, 8],
            [400, BARRIER, 0, u64::MAX << 31],
            [300, 5000, 50, 9],
        ];
        assert_eq!(calls(&entries, 0), Some(vec![(20, 4), (30, 7), (50, 9)]));
        assert_eq!(calls(&entries, 21), Some(vec![(30, 7), (50, 9)]));
        assert_eq!(calls(&[], 0), Some(vec![]));
    }
}
