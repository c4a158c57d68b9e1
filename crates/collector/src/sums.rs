//! The rows of a process's threads, where sums are kept instead of records: what has been added since they were last read.
//!
//! ```text
//!  thread: stub ─► its row: calls, ended, total, longest, shortest, buckets       collector, each round: row - the row of the last round
//! ```
//!
//! Rows are read while threads add to them. What is read of a call's row may lack a part of the call, which the next round has. The longest
//! and the shortest duration are taken out of the row: they are those of the round.

use abi::thread::{BUCKETS, Measured, Row};
use engine::request::functions;
use events::functions::Sums;
use std::io;
use std::mem::offset_of;
use std::time::{Duration, Instant};
use sys::agent::Shared;

/// How many bytes are read at a time: whole rows of either kind (32 and 576 bytes).
const PART: usize = 36 << 10;
const _: () = assert!(PART.is_multiple_of(size_of::<Row>()) && PART.is_multiple_of(size_of::<Measured>()));
const _: () = assert!(BUCKETS == events::functions::BUCKETS);
/// The longest duration and, behind it, the complement of the shortest one.
const EXTREMES: usize = offset_of!(Measured, most);
const _: () = assert!(offset_of!(Measured, least) == EXTREMES + 8);

/// What kind of rows the threads of a session have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of a row.
    pub row: usize,
    /// How many there are: numbers of functions are below that.
    pub rows: u32,
    /// What a tick is, as stubs have it.
    pub scale: u64,
}

impl Shape {
    /// Of what a session keeps. `ticks_per_ms`: the rate of the time stamp counter.
    pub fn of(sums: functions::Sums, ticks_per_ms: u64) -> Shape {
        let (row, scale) = match sums {
            functions::Sums::Calls => (size_of::<Row>(), 0),
            functions::Sums::Durations(unit) => (size_of::<Measured>(), scale(ticks_per_ms, unit)),
        };
        Shape { row, rows: sums.numbers(), scale }
    }
}

/// A tick in units of so many ns, as a fraction of 2^64. A counter that is slower than that is none of this processor's.
fn scale(ticks_per_ms: u64, unit: u64) -> u64 {
    let of = u128::from(ticks_per_ms.max(1)) * u128::from(unit.max(1));
    ((1_000_000u128 << 64) / of).try_into().unwrap_or(u64::MAX)
}

/// How often rows are read.
const ROUND: Duration = Duration::from_millis(20);
/// How long rows are read that a thread has given up.
const KEPT: Duration = Duration::from_secs(1);

/// The rows of a process.
pub struct Rows {
    shape: Shape,
    /// By chunk: the thread and the chunk's number among its chunks, and what was read.
    readers: Vec<((u32, u32), Reader)>,
    last: Option<Instant>,
    /// When they were read last, ns.
    read: u64,
}

impl Rows {
    /// Of so many chunks.
    pub fn new(shape: Shape, chunks: usize) -> Rows {
        let readers = (0..chunks).map(|_| Default::default()).collect();
        Rows { shape, readers, last: None, read: sys::time::monotonic() }
    }

    /// They are read at this time. Returns when that was done before: what was added since is that old at most.
    pub fn begin_round(&mut self, now: u64) -> u64 {
        std::mem::replace(&mut self.read, now)
    }

    /// Up to when all is known.
    pub fn complete(&self) -> u64 {
        self.read
    }

    /// Whether a chunk that its thread has given up is not added to any more: a handler may have forked between two additions, and waits for
    /// the child. `wanted`: there are few others.
    pub fn is_left(&mut self, chunk: usize, wanted: bool) -> bool {
        let Some((_, reader)) = self.readers.get_mut(chunk) else { return true };
        let since = *reader.given_up.get_or_insert_with(Instant::now);
        since.elapsed() >= if wanted { ROUND } else { KEPT }
    }

    /// Whether it is time to read them.
    pub fn is_due(&mut self) -> bool {
        let is_due = self.last.is_none_or(|at| at.elapsed() >= ROUND);
        if is_due {
            self.last = Some(Instant::now());
        }
        is_due
    }

    /// Reads a chunk of this owner; whether that is the first time.
    ///
    /// # Errors
    /// Those of [`Reader::read`].
    pub fn read(
        &mut self,
        shared: &Shared,
        (chunk, owner): (usize, (u32, u32)),
        each: impl FnMut(Sums),
    ) -> io::Result<bool> {
        let Some((of, reader)) = self.readers.get_mut(chunk) else { return Ok(false) };
        let is_new = *of != owner;
        if is_new {
            (*of, *reader) = (owner, Reader::default());
        }
        reader.read(shared, chunk, self.shape, each)?;
        Ok(is_new)
    }

    /// The chunk is nobody's.
    pub fn forget(&mut self, chunk: usize) {
        self.readers.iter_mut().skip(chunk).take(1).for_each(|reader| *reader = Default::default());
    }
}

/// The rows of a chunk, as they were last read.
#[derive(Default)]
struct Reader {
    before: Vec<u8>,
    given_up: Option<Instant>,
}

impl Reader {
    /// What was added to rows of a chunk, by number of the function.
    ///
    /// # Errors
    /// Those of reading the memory.
    fn read(&mut self, shared: &Shared, chunk: usize, shape: Shape, mut each: impl FnMut(Sums)) -> io::Result<()> {
        let (row, mut part) = (shape.row, vec![0; PART]);
        let before = &mut self.before;
        // Data begins and ends with pages, rows do not: the rest of a row before a page is zeros, or was read with the page before.
        let mut pending: Vec<usize> = Vec::new();
        shared.rows(chunk, &mut part, |at, bytes| {
            let end = at + bytes.len();
            if before.len() < end {
                before.resize(end.next_multiple_of(row), 0);
            }
            let known = &mut before[at..end];
            for (first, (old, new)) in known.chunks(8).zip(bytes.chunks(8)).enumerate() {
                let number = (at + 8 * first) / row;
                if old != new && number > 0 && number < shape.rows as usize && pending.last() != Some(&number) {
                    pending.push(number);
                }
            }
        })?;
        for number in pending {
            let now = shared.row(chunk, number * row, row);
            let old = &mut before[number * row..(number + 1) * row];
            let words =
                |bytes: &[u8]| bytes.as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w)).collect::<Vec<_>>();
            let (then, mut words_now) = (words(old), now);
            let added: Vec<u64> = words_now.iter().zip(&then).map(|(now, then)| now.wrapping_sub(*then)).collect();
            let mut sums = Sums { number: number as u32, calls: added[0], ..Sums::default() };
            if row == size_of::<Measured>() {
                // The shortest one first: stubs put it there last.
                let least = shared.take_word(chunk, number * row + EXTREMES + 8);
                let most = shared.take_word(chunk, number * row + EXTREMES);
                (sums.ended, sums.total) = (added[1], added[2]);
                sums.most = (most != 0 || least != 0).then_some(most);
                sums.least = (least != 0).then_some(!least);
                sums.buckets.copy_from_slice(&added[offset_of!(Measured, buckets) / 8..][..BUCKETS]);
                words_now[EXTREMES / 8..EXTREMES / 8 + 2].fill(0);
            }
            old.as_chunks_mut::<8>().0.iter_mut().zip(words_now).for_each(|(old, now)| *old = now.to_le_bytes());
            each(sums);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_is_what_the_counter_says() {
        // Two ticks are a nanosecond, and so a tick half a one.
        assert_eq!(scale(2_000_000, 1), 1 << 63);
        assert_eq!(scale(2_000_000, 1000), (1u64 << 63) / 1000);
        assert_eq!(scale(500_000, 1), u64::MAX);
    }

    #[test]
    fn each_round_has_what_was_added_since() {
        let shape = Shape::of(functions::Sums::Durations(1), 2_000_000);
        let mut shared = Shared::for_sums(2, (shape.rows, shape.row as u32), shape.scale, true).unwrap();
        let word = |field: usize, bucket: usize| 7 * shape.row + field + 8 * bucket;
        let add = |shared: &Shared, calls: u64, dur: u64| {
            for (at, n) in [
                (word(offset_of!(Measured, calls), 0), calls),
                (word(offset_of!(Measured, ended), 0), 1),
                (word(offset_of!(Measured, total), 0), dur),
                (word(offset_of!(Measured, buckets), 3), 1),
            ] {
                shared.add_to_word(1, at, n);
            }
            shared.add_to_word(1, word(EXTREMES, 0), dur);
            shared.add_to_word(1, word(EXTREMES, 1), !dur);
        };
        let mut reader = Reader::default();
        let mut round = |shared: &Shared| {
            let mut all = Vec::new();
            reader.read(shared, 1, shape, |sums| all.push(sums)).unwrap();
            all
        };
        assert_eq!(round(&shared), []);
        add(&shared, 2, 5);
        let [one] = round(&shared)[..] else { panic!("one function") };
        assert_eq!((one.number, one.calls, one.ended, one.total), (7, 2, 1, 5));
        assert_eq!((one.most, one.least, one.buckets[3]), (Some(5), Some(5), 1));
        assert_eq!(round(&shared), []);
        add(&shared, 0, 4);
        let [two] = round(&shared)[..] else { panic!("one function") };
        assert_eq!((two.calls, two.ended, two.total, two.most, two.buckets[3]), (0, 1, 4, Some(4), 1));
        shared.recycle_rows(1).unwrap();
        assert_eq!(shared.take_word(1, word(offset_of!(Measured, total), 0)), 0);
    }
}
