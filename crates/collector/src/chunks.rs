//! The chunks of a process: records out of its shared memory, in the order in which each thread wrote them.
//!
//! ```text
//!  round: states of all chunks ─► those in use, by thread and sequence ─► new records of each ─► a run ─► full or abandoned: recycle
//! ```
//!
//! The states are read before the records, so a chunk that a thread takes meanwhile waits for the next round, and never overtakes the
//! end of the thread's last one. Nothing here believes the process: a chunk whose header changes under its thread's hands gives records
//! of another thread, not of another process.

use super::sums::Rows;
use abi::shared::HIGH;
use events::functions::{RECORD, Sums, VALUES, each as each_record, time, word};
use std::io;
use sys::agent::{Shared, State};

// The trace and the agent have one marker.
const _: () = assert!(HIGH == events::functions::HIGH && abi::shared::VALUES == VALUES);

/// Records of one thread, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run<'a> {
    /// The thread, as its process numbers it.
    pub tid: u32,
    /// Upper half of the counter at the first record, unless that is a marker.
    pub high: u32,
    /// A time stamp from when the thread took the chunk, and the monotonic clock then, ns.
    pub pair: (u64, u64),
    /// Records that the thread dropped before these.
    pub dropped: u64,
    /// The records, 8 bytes each, with the markers that the thread has written among them.
    pub records: &'a [u8],
}

/// What is read of one chunk.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    /// The thread and the chunk's number among its chunks.
    owner: (u32, u32),
    /// Bytes that were read.
    read: usize,
    /// Upper half of the counter after them.
    high: u32,
    /// Whether its dropped records were said.
    begun: bool,
}

/// The chunks of a process.
pub struct Chunks {
    shared: Shared,
    readings: Vec<Reading>,
    buffer: Vec<u8>,
    in_use: Vec<(u32, u32, usize)>,
}

impl Chunks {
    /// Those of this memory.
    pub fn new(shared: Shared) -> Chunks {
        let readings = vec![Reading::default(); shared.chunks()];
        Chunks { shared, readings, buffer: Vec::new(), in_use: Vec::new() }
    }

    /// The memory.
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Bytes of records that wait to be read.
    pub fn waiting(&mut self) -> usize {
        let Chunks { shared, readings, buffer, .. } = self;
        let waiting = readings.iter().enumerate().filter(|(n, _)| shared.chunk(*n).state != State::Free);
        waiting.fold(0, |sum, (n, reading)| {
            buffer.clear();
            sum + shared.read(n, reading.read, buffer)
        })
    }

    /// Threads that had a chunk in the last round.
    pub fn threads(&self) -> impl Iterator<Item = u32> + '_ {
        self.in_use.iter().map(|(tid, ..)| *tid)
    }

    /// Looks which chunks are in use, by thread and sequence.
    fn look(&mut self, over: bool) {
        self.in_use.clear();
        for n in 0..self.readings.len() {
            let state = self.shared.chunk(n).state;
            // The owner of a chunk writes its header before the first record. A look at a chunk that nobody has would take a page of memory.
            if state == State::Full || state == State::Owned && (over || self.shared.has_begun(n)) {
                let chunk = self.shared.chunk(n);
                self.in_use.push((chunk.tid, chunk.sequence, n));
            }
        }
        self.in_use.sort_unstable();
    }

    /// Reads what was added to rows, where the chunks have those; otherwise as [`Chunks::read`]. `each` gets the thread, and what was added
    /// or, at first, how many calls the thread has dropped before.
    pub fn read_rows(
        &mut self,
        rows: &mut Rows,
        over: bool,
        gone: impl Fn(u32) -> bool,
        mut each: impl FnMut(u32, Result<Sums, u64>),
    ) -> io::Result<usize> {
        self.look(over);
        let (mut read, mut freed) = (0, false);
        for &(tid, sequence, n) in &self.in_use {
            let chunk = self.shared.chunk(n);
            // Before the rows: nothing is added to them afterwards.
            let wanted = self.in_use.len() > self.readings.len() / 4;
            let done = chunk.state == State::Full && rows.is_left(n, wanted) || over || gone(tid);
            let is_new = rows.read(&self.shared, (n, (tid, sequence)), |sums| {
                read += 1;
                each(tid, Ok(sums));
            })?;
            if is_new && chunk.dropped > 0 {
                each(tid, Err(chunk.dropped));
            }
            if done {
                self.shared.recycle_rows(n)?;
                rows.forget(n);
                freed = true;
            }
        }
        if freed {
            self.shared.wake();
        }
        Ok(read)
    }

    /// Reads what is new. Chunks of threads that are `gone` are taken back, all where the process is `over`. Returns how many records
    /// and markers were read.
    pub fn read(&mut self, over: bool, gone: impl Fn(u32) -> bool, mut each: impl FnMut(Run<'_>)) -> usize {
        self.look(over);
        let (mut records, mut freed) = (0, false);
        for &(tid, sequence, n) in &self.in_use {
            let chunk = self.shared.chunk(n);
            let reading = &mut self.readings[n];
            if reading.owner != (tid, sequence) {
                *reading = Reading { owner: (tid, sequence), ..Reading::default() };
            }
            // Before the records: what is written after this is read in the next round, or was written by a thread that is gone.
            let done = chunk.state == State::Full || over || gone(tid);
            self.buffer.clear();
            let new = self.shared.read(n, reading.read, &mut self.buffer);
            reading.read += new;
            let pair = (chunk.tsc, chunk.monotonic);
            if new > 0 {
                let dropped = if reading.begun { 0 } else { chunk.dropped };
                each(Run { tid, high: reading.high, pair, dropped, records: &self.buffer });
                reading.begun = true;
                for record in each_record(&self.buffer) {
                    let head = record.first_chunk::<RECORD>();
                    reading.high = head.filter(|r| word(r) == HIGH).map_or(reading.high, time);
                    records += 1;
                }
            }
            if done {
                // A chunk that was given up before its first record still says what was dropped.
                if !reading.begun && chunk.dropped > 0 {
                    each(Run { tid, high: (chunk.tsc >> 32) as u32, pair, dropped: chunk.dropped, records: &[] });
                }
                self.shared.recycle(n, reading.read.max(8));
                *reading = Reading::default();
                freed = true;
            }
        }
        if freed {
            self.shared.wake();
        }
        records
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::shared::{ChunkHeader, FULL, HEADERS, OWNED};
    use std::mem::offset_of;
    use std::os::unix::fs::FileExt;

    /// Writes as an agent does, through the descriptor that it gets.
    struct Agent(std::fs::File, u64, u64);

    impl Agent {
        fn of(chunks: &Chunks) -> Agent {
            let s = chunks.shared();
            let file = std::fs::File::from(s.fd().try_clone_to_owned().unwrap());
            Agent(file, s.size() - (s.chunks() * s.chunk_size()) as u64, s.chunk_size() as u64)
        }

        fn header(&self, chunk: u64, field: usize, value: &[u8]) {
            let at = HEADERS as u64 + chunk * size_of::<ChunkHeader>() as u64 + field as u64;
            self.0.write_all_at(value, at).unwrap();
        }

        fn take(&self, chunk: u64, tid: u32, sequence: u32, dropped: u64) {
            self.header(chunk, offset_of!(ChunkHeader, tid), &tid.to_le_bytes());
            self.header(chunk, offset_of!(ChunkHeader, sequence), &sequence.to_le_bytes());
            self.header(chunk, offset_of!(ChunkHeader, dropped), &dropped.to_le_bytes());
            self.header(chunk, offset_of!(ChunkHeader, state), &OWNED.to_le_bytes());
        }

        fn leave(&self, chunk: u64) {
            self.header(chunk, offset_of!(ChunkHeader, state), &FULL.to_le_bytes());
        }

        fn write(&self, chunk: u64, from: u64, records: &[(u32, u32)]) {
            let bytes: Vec<u8> =
                records.iter().flat_map(|(t, w)| [t.to_le_bytes(), w.to_le_bytes()].concat()).collect();
            self.0.write_all_at(&bytes, self.1 + chunk * self.2 + from * 8).unwrap();
        }
    }

    fn chunks() -> Chunks {
        Chunks::new(Shared::new(4, 4096, false, true).unwrap())
    }

    /// What a round gives: thread, upper half, dropped, (time, word).
    type Given = (u32, u32, u64, Vec<(u32, u32)>);

    fn round(chunks: &mut Chunks, gone: &[u32]) -> Vec<Given> {
        let word = |b: &[u8]| u32::from_le_bytes(b.try_into().unwrap());
        let mut all = Vec::new();
        chunks.read(
            gone == [u32::MAX],
            |tid| gone.contains(&tid),
            |r| {
                let records = r.records.chunks(8).map(|b| (word(&b[..4]), word(&b[4..]))).collect();
                all.push((r.tid, r.high, r.dropped, records));
            },
        );
        all
    }

    #[test]
    fn a_thread_s_chunks_come_in_order() {
        let mut chunks = chunks();
        let agent = Agent::of(&chunks);
        agent.take(3, 7, 0, 0);
        agent.write(3, 0, &[(1, HIGH), (10, 4), (11, 5)]);
        assert_eq!(round(&mut chunks, &[]), [(7, 0, 0, vec![(1, HIGH), (10, 4), (11, 5)])]);
        agent.write(3, 3, &[(12, 6), (2, HIGH), (0, 7)]);
        agent.leave(3);
        agent.take(0, 7, 1, 9);
        agent.write(0, 0, &[(2, HIGH), (1, 8)]);
        assert_eq!(
            round(&mut chunks, &[]),
            [(7, 1, 0, vec![(12, 6), (2, HIGH), (0, 7)]), (7, 0, 9, vec![(2, HIGH), (1, 8)])]
        );
        assert_eq!(chunks.shared().chunk(3).state, State::Free);
        assert_eq!(round(&mut chunks, &[]), []);
    }

    #[test]
    fn what_was_dropped_is_said_with_a_marker_alone() {
        let mut chunks = chunks();
        let agent = Agent::of(&chunks);
        agent.take(2, 7, 1, 9);
        agent.write(2, 0, &[(1, HIGH)]);
        assert_eq!(round(&mut chunks, &[]), [(7, 0, 9, vec![(1, HIGH)])]);
        agent.write(2, 1, &[(5, 4)]);
        assert_eq!(round(&mut chunks, &[]), [(7, 1, 0, vec![(5, 4)])]);
    }

    #[test]
    fn what_a_thread_leaves_behind_is_taken_back() {
        let mut chunks = chunks();
        let agent = Agent::of(&chunks);
        agent.take(1, 7, 0, 0);
        agent.write(1, 0, &[(1, HIGH), (10, 4)]);
        // Nobody knows whose this is as long as it has no record.
        agent.take(2, 8, 5, 3);
        assert_eq!(round(&mut chunks, &[7, 8]), [(7, 0, 0, vec![(1, HIGH), (10, 4)])]);
        assert_eq!(chunks.shared().chunk(2).state, State::Owned);
        assert_eq!(round(&mut chunks, &[u32::MAX]), [(8, 0, 3, vec![])]);
        assert!((0..4).all(|n| chunks.shared().chunk(n).state == State::Free));
        // The chunk is empty for its next owner.
        agent.take(1, 9, 0, 0);
        assert_eq!(round(&mut chunks, &[]), []);
    }

    #[test]
    fn nonsense_is_read_as_records_and_ends() {
        let mut chunks = chunks();
        let agent = Agent::of(&chunks);
        for n in 0..4 {
            agent.header(n, offset_of!(ChunkHeader, state), &(77 + n as u32).to_le_bytes());
            // Of two chunks, values that are longer than the chunk.
            let word = if n < 2 { u32::MAX } else { u32::MAX >> 1 };
            agent.write(n, 0, &vec![(u32::MAX, word); 512]);
        }
        let all = round(&mut chunks, &[]);
        assert_eq!(all.iter().map(|r| r.3.len()).sum::<usize>(), 2 * 512);
        assert_eq!(round(&mut chunks, &[]), []);
    }
}
