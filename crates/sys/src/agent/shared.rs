//! The memory that a traced process writes records into (`abi::shared`). Whatever it writes there, nothing outside of it is read or
//! written: numbers and sizes are the collector's own.

use super::socket::{memfd, seal};
use crate::check::check;
use crate::mapping::{Mapping, Mode, page_size};
use abi::shared::{self as layout, ChunkHeader, Control};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Bytes of a record.
const RECORD: usize = 8;
/// Bytes that a thread may have written behind its last record.
const UNFINISHED: usize = abi::heap::LONGEST + 2 * RECORD;
const _: () = assert!(abi::values::MOST + 2 < abi::heap::LONGEST);

/// The number of the next memory.
static NUMBERS: AtomicU32 = AtomicU32::new(1);

/// The state of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nobody's.
    Free,
    /// A thread writes to it.
    Owned,
    /// Complete.
    Full,
}

/// What the header of a chunk says: the process's words, not checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Its state.
    pub state: State,
    /// The thread, as the process numbers it.
    pub tid: u32,
    /// Which of the thread's chunks it is.
    pub sequence: u32,
    /// A time stamp.
    pub tsc: u64,
    /// The monotonic clock at that moment, ns.
    pub monotonic: u64,
    /// Records dropped before it.
    pub dropped: u64,
}

/// The memory of one process.
pub struct Shared {
    fd: OwnedFd,
    map: Mapping,
    chunks: usize,
    chunk_size: usize,
    /// Offset of the first chunk.
    first: usize,
    number: u32,
}

impl Shared {
    /// Makes one: the number of its chunks, and the bytes of each (rounded up to pages). Memory is used where something is written.
    ///
    /// # Errors
    /// Those of memfd_create(2) and mmap(2).
    pub fn new(chunks: u32, chunk_size: u32, block: bool, running: bool) -> io::Result<Shared> {
        Shared::with(chunks, chunk_size, (block, running), (0, 0))
    }

    /// Makes one for sums of so many threads: a chunk has `rows` of `row` bytes. `scale`: as in [`Control::scale`].
    ///
    /// # Errors
    /// Those of memfd_create(2) and mmap(2).
    pub fn for_sums(threads: u32, (rows, row): (u32, u32), scale: u64, running: bool) -> io::Result<Shared> {
        Shared::with(threads, rows * row, (false, running), (row.into(), scale))
    }

    fn with(
        chunks: u32,
        chunk_size: u32,
        (block, running): (bool, bool),
        (sums, scale): (u64, u64),
    ) -> io::Result<Shared> {
        let page = page_size();
        let (chunks, chunk_size) = (chunks.max(1) as usize, (chunk_size as usize).max(page).next_multiple_of(page));
        let first = (layout::HEADERS + chunks * size_of::<ChunkHeader>()).next_multiple_of(page);
        let len = first + chunks * chunk_size;
        let fd = memfd(c"trapline")?;
        // SAFETY: a descriptor that is open, and a length.
        check(unsafe { libc::ftruncate(fd.as_raw_fd(), len as libc::off_t) }.into())?;
        seal(&fd, 0)?;
        let map = Mapping::new(fd.as_fd(), 0, len, Mode::Shared)?;
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let control = Control {
            magic: layout::MAGIC,
            version: abi::VERSION,
            chunks: chunks as u32,
            chunk_size: chunk_size as u32,
            running: AtomicU32::new(running.into()),
            on_full: AtomicU32::new(if block { layout::BLOCK } else { layout::DROP }),
            collector: AtomicU32::new(0),
            freed: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            filled: AtomicU32::new(0),
            dropped: AtomicU64::new(0),
            orphaned: AtomicU64::new(0),
            left: AtomicU64::new(0),
            hint: AtomicU32::new(0),
            heap: AtomicU32::new(0),
            now: AtomicU64::new(0),
            sample: AtomicU64::new(0),
            sums,
            scale,
            number,
            callers: AtomicU32::new(0),
            threads: AtomicU64::new(0),
            used: AtomicU64::new(0),
            born: AtomicU64::new(0),
        };
        // SAFETY: the mapping is larger than the page in front, aligned, and nobody else has it yet.
        unsafe { map.base().cast::<Control>().write(control) };
        Ok(Shared { fd, map, chunks, chunk_size, first, number })
    }

    /// Its file, for the process.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Device and inode of its file, as a mapping of it has them.
    ///
    /// # Errors
    /// Those of fcntl(2) and fstat(2).
    pub fn identity(&self) -> io::Result<(u32, u32, u64)> {
        Ok(crate::maps::identity(&File::from(self.fd.try_clone()?).metadata()?))
    }

    /// Its bytes.
    pub fn size(&self) -> u64 {
        self.map.len() as u64
    }

    /// How many chunks it has.
    pub fn chunks(&self) -> usize {
        self.chunks
    }

    /// Bytes of a chunk.
    pub fn chunk_size(&self) -> usize {
        self.chunk_size
    }

    fn control(&self) -> &Control {
        // SAFETY: the mapping begins with one, made in `new`. Fields that the process writes are atomic; the others are not read.
        unsafe { &*self.map.base().cast::<Control>() }
    }

    fn header(&self, chunk: usize) -> &ChunkHeader {
        assert!(chunk < self.chunks, "a chunk of this memory");
        // SAFETY: within the mapping, aligned; all fields that are used are atomic.
        unsafe { &*self.map.base().add(layout::HEADERS).cast::<ChunkHeader>().add(chunk) }
    }

    /// The word by which agents see whether the collector is alive.
    pub fn collector_word(&self) -> u32 {
        self.control().collector.load(Ordering::Acquire)
    }

    /// Starts or stops recording. Stopping makes threads give their chunks up, at their next record.
    pub fn set_running(&self, running: bool) {
        self.control().running.store(running.into(), Ordering::Release);
        if !running {
            for chunk in 0..self.chunks {
                let header = self.header(chunk);
                if header.state.load(Ordering::Acquire) == layout::OWNED {
                    header.give_up.store(1, Ordering::Release);
                }
            }
        }
        self.wake();
    }

    /// Has allocations recorded: bits of [`abi::heap`], and one allocation per this many bytes; 0: all. Before the process has the memory.
    pub fn record_heap(&self, bits: u32, sample: u64) {
        let control = self.control();
        control.sample.store(sample, Ordering::Relaxed);
        control.now.store(crate::time::stamp().0, Ordering::Relaxed);
        control.heap.store(bits, Ordering::Release);
    }

    /// Has records say where functions were called from. Before the process has the memory.
    pub fn record_callers(&self) {
        self.control().callers.store(1, Ordering::Release);
    }

    /// Publishes the time for threads, for records whose times are cheap.
    pub fn tell_time(&self, tsc: u64) {
        self.control().now.store(tsc, Ordering::Relaxed);
    }

    /// What the process has counted: records dropped without a chunk to say so, calls while no collector was there, execs that the agent
    /// could not follow.
    pub fn counts(&self) -> [u64; 3] {
        let c = self.control();
        [&c.dropped, &c.orphaned, &c.left].map(|n| n.load(Ordering::Relaxed))
    }

    /// Its number among the collector's.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Where the process has the table of its threads, where the number of slots in that is, and when the process was forked; zeros before it
    /// has said so.
    pub fn threads(&self) -> [u64; 3] {
        let c = self.control();
        [&c.threads, &c.used, &c.born].map(|n| n.load(Ordering::Acquire))
    }

    /// The header of a chunk.
    pub fn chunk(&self, chunk: usize) -> Chunk {
        let h = self.header(chunk);
        let state = match h.state.load(Ordering::Acquire) {
            layout::FREE => State::Free,
            layout::FULL => State::Full,
            _ => State::Owned,
        };
        Chunk {
            state,
            tid: h.tid.load(Ordering::Relaxed),
            sequence: h.sequence.load(Ordering::Relaxed),
            tsc: h.tsc.load(Ordering::Relaxed),
            monotonic: h.monotonic.load(Ordering::Relaxed),
            dropped: h.dropped.load(Ordering::Relaxed),
        }
    }

    /// Whether the owner of a chunk has written to it: its header is whole from then on.
    #[inline]
    pub fn has_begun(&self, chunk: usize) -> bool {
        assert!(chunk < self.chunks, "a chunk of this memory");
        // SAFETY: within the mapping, aligned, and used as an atomic word only.
        let first = unsafe { &*self.map.base().add(self.first + chunk * self.chunk_size).cast::<AtomicU64>() };
        first.load(Ordering::Acquire) >> 32 != 0
    }

    /// Appends the records of a chunk to `into`, from byte `from` of the chunk up to the first one that is not written yet. Returns how
    /// many bytes they are.
    #[inline]
    pub fn read(&self, chunk: usize, from: usize, into: &mut Vec<u8>) -> usize {
        assert!(chunk < self.chunks, "a chunk of this memory");
        let (from, end) = (from.next_multiple_of(RECORD), self.chunk_size);
        if from >= end {
            return 0;
        }
        let at = self.first + chunk * self.chunk_size + from;
        // SAFETY: within the mapping, aligned to 8 bytes, and used as atomic words only.
        let records =
            unsafe { std::slice::from_raw_parts(self.map.base().add(at).cast::<AtomicU64>(), (end - from) / RECORD) };
        let before = into.len();
        into.reserve(end - from);
        let mut at = 0;
        while let Some(record) = records.get(at) {
            // Both halves of an aligned record are read at once; the process writes the second one last.
            let record = record.load(Ordering::Acquire);
            if record >> 32 == 0 {
                break;
            }
            let start = into.len();
            into.extend_from_slice(&record.to_le_bytes());
            at += 1;
            if (record >> 32) as u32 & layout::VALUES == 0 {
                continue;
            }
            // Values were written before the word: the length, and what it says.
            let Some(first) = records.get(at).map(|r| r.load(Ordering::Relaxed)) else {
                into.truncate(start);
                break;
            };
            let len = usize::from(first as u16) + 2;
            let Some(rest) = records.get(at..at + len / RECORD).filter(|_| len.is_multiple_of(RECORD)) else {
                into.truncate(start);
                break;
            };
            // The process may change the length meanwhile: what was checked is what is handed on.
            into.extend_from_slice(&first.to_le_bytes());
            rest.iter().skip(1).for_each(|r| into.extend_from_slice(&r.load(Ordering::Relaxed).to_le_bytes()));
            at += rest.len();
        }
        into.len() - before
    }

    /// The rows of a chunk, as far as the process has written to their pages: where they begin, and bytes from there on. `page` is room for them.
    ///
    /// # Errors
    /// Those of lseek(2) and pread(2).
    pub fn rows(&self, chunk: usize, page: &mut [u8], mut each: impl FnMut(usize, &[u8])) -> io::Result<()> {
        assert!(chunk < self.chunks, "a chunk of this memory");
        let file = File::from(self.fd.try_clone()?);
        let first = (self.first + chunk * self.chunk_size) as u64;
        let (mut at, end) = (first, first + self.chunk_size as u64);
        while let Some(data) = seek(&file, at, libc::SEEK_DATA)?.filter(|data| *data < end) {
            let hole = seek(&file, data, libc::SEEK_HOLE)?.unwrap_or(end).min(end);
            at = data;
            while at < hole {
                let len = page.len().min((hole - at) as usize);
                file.read_exact_at(&mut page[..len], at)?;
                each((at - first) as usize, &page[..len]);
                at += len as u64;
            }
        }
        Ok(())
    }

    fn word(&self, chunk: usize, at: usize) -> &AtomicU64 {
        assert!(chunk < self.chunks && at.is_multiple_of(8) && at < self.chunk_size, "a word of a chunk");
        // SAFETY: within the mapping, aligned, and used as an atomic word only.
        unsafe { &*self.map.base().add(self.first + chunk * self.chunk_size + at).cast::<AtomicU64>() }
    }

    /// The words of a row that begins at a byte of a chunk, each as it is now.
    pub fn row(&self, chunk: usize, at: usize, len: usize) -> Vec<u64> {
        (at..at + len).step_by(8).map(|at| self.word(chunk, at).load(Ordering::Relaxed)).collect()
    }

    /// Takes a word out of a chunk: 0 is left there.
    pub fn take_word(&self, chunk: usize, at: usize) -> u64 {
        self.word(chunk, at).swap(0, Ordering::AcqRel)
    }

    /// Adds to a word of a chunk, as a process does. For tests.
    pub fn add_to_word(&self, chunk: usize, at: usize, n: u64) {
        self.word(chunk, at).fetch_add(n, Ordering::Relaxed);
    }

    /// Sets the rows of a chunk, to which nobody adds any more, to zero, and gives it back.
    ///
    /// # Errors
    /// Those of fallocate(2).
    pub fn recycle_rows(&mut self, chunk: usize) -> io::Result<()> {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let (at, len) = ((self.first + chunk * self.chunk_size) as libc::off_t, self.chunk_size as libc::off_t);
        // SAFETY: a descriptor that is open; the range lies in the file, whose memory is used as atomic words only.
        check(unsafe { libc::fallocate(self.fd.as_raw_fd(), mode, at, len) }.into())?;
        self.recycle(chunk, 0);
        Ok(())
    }

    /// Empties a chunk whose thread writes to it no more, and gives it back. `used`: bytes that were read of it; a record with values that
    /// was never finished may follow.
    pub fn recycle(&mut self, chunk: usize, used: usize) {
        let header = self.header(chunk);
        let at = self.first + chunk * self.chunk_size;
        let len = used.saturating_add(UNFINISHED).min(self.chunk_size);
        // SAFETY: within the mapping, of which this is the only borrow; the thread that wrote there has given the chunk up or is gone. A process
        // that goes on writing spoils its own records only.
        unsafe { self.map.base().add(at).write_bytes(0, len) };
        header.dropped.store(0, Ordering::Relaxed);
        header.give_up.store(0, Ordering::Relaxed);
        header.state.store(layout::FREE, Ordering::Release);
    }

    /// Notifies threads that chunks have become free.
    pub fn wake(&self) {
        let control = self.control();
        control.freed.fetch_add(1, Ordering::SeqCst);
        if control.waiting.load(Ordering::SeqCst) != 0 {
            // SAFETY: the word lives in the mapping; no other address is passed. Shared, because the process sleeps on it.
            unsafe { libc::syscall(libc::SYS_futex, control.freed.as_ptr(), libc::FUTEX_WAKE, i32::MAX, 0, 0, 0) };
        }
    }
}

/// The next data or the next hole of a file; None: there is none.
fn seek(file: &File, from: u64, whence: libc::c_int) -> io::Result<Option<u64>> {
    // SAFETY: a descriptor that is open.
    match check(unsafe { libc::lseek(file.as_raw_fd(), from as libc::off_t, whence) }) {
        Ok(at) => Ok(Some(at as u64)),
        Err(e) if e.raw_os_error() == Some(libc::ENXIO) => Ok(None),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Chunks are emptied by plain writes.
    crate::check::has_not!(Shared: Sync);

    /// Writes a record as an agent does.
    fn write(s: &Shared, chunk: usize, n: usize, time: u32, word: u32) {
        let record = u64::from(word) << 32 | u64::from(time);
        let at = s.first + chunk * s.chunk_size + n * RECORD;
        // SAFETY: within the mapping of the test.
        unsafe { s.map.base().add(at).cast::<u64>().write_volatile(record) };
    }

    #[test]
    fn records_are_read_while_they_are_written() {
        let mut s = Shared::new(3, 4096, true, true).unwrap();
        s.header(1).state.store(layout::OWNED, Ordering::Release);
        let mut all = Vec::new();
        assert_eq!(s.read(1, 0, &mut all), 0);
        (0..3).for_each(|n| write(&s, 1, n, n as u32, 7));
        assert_eq!(s.read(1, 0, &mut all), 24);
        write(&s, 1, 3, 3, 8);
        assert_eq!(s.read(1, 24, &mut all), 8);
        let times: Vec<u8> = all.chunks(8).map(|r| r[0]).collect();
        assert_eq!(times, [0, 1, 2, 3]);
        assert_eq!((s.read(1, 4096, &mut all), s.read(1, usize::MAX - 16, &mut all)), (0, 0));
        assert_eq!(s.chunk(1).state, State::Owned);
        s.recycle(1, 32);
        assert_eq!((s.chunk(1).state, s.read(1, 0, &mut all)), (State::Free, 0));
    }

    #[test]
    fn the_size_cannot_be_changed() {
        let s = Shared::new(3, 1, false, false).unwrap();
        assert_eq!(s.chunk_size(), page_size());
        let file = std::fs::File::from(s.fd().try_clone_to_owned().unwrap());
        assert!(file.set_len(0).is_err() && file.set_len(1 << 30).is_err());
        assert_eq!(file.metadata().unwrap().len(), s.size());
    }

    #[test]
    fn stopping_asks_owners_for_their_chunks() {
        let s = Shared::new(2, 4096, false, true).unwrap();
        s.header(0).state.store(layout::OWNED, Ordering::Release);
        s.set_running(false);
        let asked = |n| s.header(n).give_up.load(Ordering::Acquire);
        assert_eq!((asked(0), asked(1)), (1, 0));
    }
}
