//! The bounded queue of chunks between the drain thread and the views.
//!
//! ```text
//! push ─► head (memory, up to its limit) · segments (unlinked files, oldest first) · tail (memory, after a failed write) ─► pop
//! ```
//!
//! Invariant: chunks come out in the order in which they went in; a part is only added to while all parts after it are empty.
//! A segment that has been read is closed, which gives its room on the disk back. Files are written under the lock, which
//! makes the reader wait, and read outside of it, so that the drain thread never waits for a reader's disk. The backlog knows
//! nothing of events.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// `O_TMPFILE` (`include/uapi/asm-generic/fcntl.h`): with the architecture's `O_DIRECTORY`.
#[cfg(target_arch = "aarch64")]
const O_TMPFILE: i32 = 0o20_040_000;
#[cfg(not(target_arch = "aarch64"))]
const O_TMPFILE: i32 = 0o20_200_000;

/// How much a backlog holds, in bytes.
#[derive(Clone, Debug)]
pub struct Limits {
    /// In memory; what is beyond it goes to files.
    pub memory: usize,
    /// In one file.
    pub segment: u64,
    /// In all files; beyond it the backlog is full.
    pub files: u64,
    /// Where the files are made.
    pub dir: PathBuf,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { memory: 64 << 20, segment: 64 << 20, files: 4 << 30, dir: std::env::temp_dir() }
    }
}

/// The queue. Any thread may push and pop; the order is that of the pushes.
pub struct Backlog {
    limits: Limits,
    parts: Mutex<Parts>,
    /// Something was pushed, or the end has come.
    ready: Condvar,
}

/// The fields that the lock protects.
#[derive(Default)]
struct Parts {
    head: VecDeque<Vec<u8>>,
    segments: VecDeque<Segment>,
    tail: VecDeque<Vec<u8>>,
    /// Bytes of head and tail.
    memory: usize,
    /// Bytes of the chunks that wait in files.
    spooled: u64,
    /// Bytes that the files occupy: what was read of a segment that is still being read, too.
    occupied: u64,
    finished: bool,
    error: Option<io::Error>,
    lost: u64,
}

/// A file of chunks. Only what was written whole is in `chunks`.
struct Segment {
    file: Arc<File>,
    chunks: VecDeque<usize>,
    read: u64,
    written: u64,
}

/// Where a popped chunk is.
enum Place {
    Memory(Vec<u8>),
    File(Arc<File>, u64, usize),
}

impl Default for Backlog {
    fn default() -> Backlog {
        Backlog::new(Limits::default())
    }
}

impl Backlog {
    /// Empty.
    pub fn new(limits: Limits) -> Backlog {
        Backlog { limits, parts: Mutex::default(), ready: Condvar::new() }
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a chunk. Never refuses: see [`Backlog::is_full`].
    pub fn push(&self, chunk: Vec<u8>) {
        self.parts().push(chunk, &self.limits);
        self.ready.notify_one();
    }

    /// Takes the oldest chunk into `chunk`, in place of what is there; false: there is none.
    pub fn pop(&self, chunk: &mut Vec<u8>) -> bool {
        loop {
            let Some(place) = self.parts().pop() else { return false };
            match place {
                Place::Memory(bytes) => {
                    *chunk = bytes;
                    return true;
                }
                Place::File(file, at, len) => {
                    chunk.clear();
                    chunk.resize(len, 0);
                    match file.read_exact_at(chunk, at) {
                        Ok(()) => return true,
                        Err(e) => self.parts().unreadable(e, len),
                    }
                }
            }
        }
    }

    #[cfg(test)]
    /// Bytes that wait.
    pub fn len_bytes(&self) -> u64 {
        let p = self.parts();
        p.memory as u64 + p.spooled
    }

    #[cfg(test)]
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.parts().is_empty()
    }

    /// Whether the limits are reached: the memory's, where files cannot be written, or that of all files. A caller that can leave its
    /// events where they are should do so.
    pub fn is_full(&self) -> bool {
        let p = self.parts();
        !p.tail.is_empty() && p.memory >= self.limits.memory
    }

    /// The first failure of a file, once; for a message.
    pub fn take_error(&self) -> Option<io::Error> {
        self.parts().error.take()
    }

    /// Bytes of chunks that could not be read again.
    pub fn lost_bytes(&self) -> u64 {
        self.parts().lost
    }

    /// Sleeps until there is a chunk, the end has come, or `timeout` has passed.
    pub fn wait(&self, timeout: Duration) {
        let waits = |p: &mut Parts| p.is_empty() && !p.finished;
        drop(self.ready.wait_timeout_while(self.parts(), timeout, waits));
    }

    /// No more chunks will come.
    pub fn finish(&self) {
        self.parts().finished = true;
        self.ready.notify_all();
    }

    /// Whether [`Backlog::finish`] was called and no chunk waits any more.
    pub fn is_finished(&self) -> bool {
        let p = self.parts();
        p.finished && p.is_empty()
    }
}

impl Parts {
    fn is_empty(&self) -> bool {
        self.head.is_empty() && self.segments.is_empty() && self.tail.is_empty()
    }

    fn push(&mut self, chunk: Vec<u8>, limits: &Limits) {
        let fits = self.memory + chunk.len() <= limits.memory;
        if self.segments.is_empty() && self.tail.is_empty() && fits {
            self.memory += chunk.len();
            self.head.push_back(chunk);
            return;
        }
        if self.tail.is_empty() && self.occupied + chunk.len() as u64 <= limits.files {
            match self.spool(&chunk, limits) {
                Ok(()) => return,
                Err(e) => self.error = self.error.take().or(Some(e)),
            }
        }
        self.memory += chunk.len();
        self.tail.push_back(chunk);
    }

    /// Appends a chunk to the last segment, or to a new one.
    fn spool(&mut self, chunk: &[u8], limits: &Limits) -> io::Result<()> {
        if self.segments.back().is_none_or(|s| s.written >= limits.segment) {
            let mut segment =
                Segment { file: Arc::new(unnamed(limits)?), chunks: VecDeque::new(), read: 0, written: 0 };
            segment.write(chunk)?;
            self.segments.push_back(segment);
        } else if let Some(last) = self.segments.back_mut() {
            last.write(chunk)?;
        }
        self.spooled += chunk.len() as u64;
        self.occupied += chunk.len() as u64;
        Ok(())
    }

    fn pop(&mut self) -> Option<Place> {
        if let Some(chunk) = self.head.pop_front() {
            self.memory -= chunk.len();
            return Some(Place::Memory(chunk));
        }
        let Some(first) = self.segments.front_mut() else {
            self.head = std::mem::take(&mut self.tail);
            let chunk = self.head.pop_front()?;
            self.memory -= chunk.len();
            return Some(Place::Memory(chunk));
        };
        // Never empty: a segment is made with a chunk, and goes with its last.
        let len = first.chunks.pop_front()?;
        let place = Place::File(Arc::clone(&first.file), first.read, len);
        first.read += len as u64;
        self.spooled -= len as u64;
        if first.chunks.is_empty() {
            self.occupied -= first.written;
            self.segments.pop_front();
        }
        Some(place)
    }

    fn unreadable(&mut self, e: io::Error, len: usize) {
        self.error = self.error.take().or(Some(e));
        self.lost += len as u64;
    }
}

impl Segment {
    /// A write that fails in the middle has no effect: the next one goes to the same place.
    fn write(&mut self, chunk: &[u8]) -> io::Result<()> {
        self.file.write_all_at(chunk, self.written)?;
        self.written += chunk.len() as u64;
        self.chunks.push_back(chunk.len());
        Ok(())
    }
}

/// A file without a name, that nobody else can open: gone with the process, however it ends.
fn unnamed(limits: &Limits) -> io::Result<File> {
    let options = || {
        let mut o = OpenOptions::new();
        o.read(true).write(true).mode(0o600);
        o
    };
    if let Ok(file) = options().custom_flags(O_TMPFILE).open(&limits.dir) {
        return Ok(file);
    }
    // Not every file system has O_TMPFILE (overlayfs before Linux 6.1, NFS).
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("trapline-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let path = limits.dir.join(name);
    let file = options().create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiny(memory: usize, segment: u64, files: u64) -> Backlog {
        Backlog::new(Limits { memory, segment, files, dir: std::env::temp_dir() })
    }

    fn chunk(n: u32) -> Vec<u8> {
        let mut c = n.to_le_bytes().to_vec();
        c.resize(4 + (n as usize * 7) % 50, n as u8);
        c
    }

    fn next(b: &Backlog) -> Option<u32> {
        let mut c = b"old".to_vec();
        if !b.pop(&mut c) {
            return None;
        }
        let n = u32::from_le_bytes(c[..4].try_into().unwrap());
        assert_eq!(c, chunk(n));
        Some(n)
    }

    #[test]
    fn what_is_beyond_the_memory_goes_through_files_in_order() {
        let b = tiny(100, 200, u64::MAX);
        (0..500).for_each(|n| b.push(chunk(n)));
        let all: usize = (0..500).map(|n| chunk(n).len()).sum();
        assert_eq!(b.len_bytes(), all as u64);
        assert!(b.parts().memory <= 100);
        assert!(b.parts().segments.len() > 10);
        for n in 0..500 {
            assert_eq!(next(&b), Some(n));
        }
        assert_eq!((next(&b), b.len_bytes(), b.is_empty()), (None, 0, true));
        assert_eq!(b.parts().occupied, 0);
        b.push(chunk(7));
        assert_eq!(b.parts().memory, chunk(7).len());
        assert_eq!(next(&b), Some(7));
    }

    #[test]
    fn segments_that_were_read_give_their_room_back() {
        let b = tiny(0, 100, u64::MAX);
        (0..20).for_each(|n| b.push(chunk(n)));
        for n in 20..2000 {
            b.push(chunk(n));
            assert_eq!(next(&b), Some(n - 20));
            assert!(b.parts().occupied < 1000);
        }
    }

    #[test]
    fn without_a_file_chunks_stay_in_memory_in_order_and_the_error_is_told_once() {
        let b = Backlog::new(Limits { memory: 60, segment: 100, files: 1000, dir: "/nonexistent".into() });
        (0..30).for_each(|n| b.push(chunk(n)));
        assert!(b.is_full());
        assert_eq!(b.take_error().map(|e| e.kind()), Some(io::ErrorKind::NotFound));
        assert!(b.take_error().is_none());
        for n in 0..30 {
            assert_eq!(next(&b), Some(n));
        }
        assert!(!b.is_full() && b.is_empty());
    }

    #[test]
    fn files_are_bounded_and_are_used_again_once_they_are_read() {
        let b = tiny(50, 100, 300);
        (0..100).for_each(|n| b.push(chunk(n)));
        assert!(b.is_full() && b.take_error().is_none());
        assert!(b.parts().occupied <= 300);
        for n in 0..100 {
            assert_eq!(next(&b), Some(n));
            b.push(chunk(100 + n));
        }
        for n in 100..200 {
            assert_eq!(next(&b), Some(n));
        }
        assert!(b.is_empty() && !b.is_full());
    }

    #[test]
    fn a_full_disk_leaves_chunks_in_memory() {
        let b = tiny(0, u64::MAX, u64::MAX);
        let full = OpenOptions::new().read(true).write(true).open("/dev/full").unwrap();
        let segment = Segment { file: Arc::new(full), chunks: VecDeque::new(), read: 0, written: 0 };
        b.parts().segments.push_back(segment);
        b.push(chunk(1));
        assert_eq!(b.take_error().map(|e| e.kind()), Some(io::ErrorKind::StorageFull));
        let p = b.parts();
        assert_eq!((p.tail.len(), p.segments[0].chunks.len()), (1, 0));
    }

    #[test]
    fn a_chunk_that_cannot_be_read_is_counted_and_the_next_is_taken() {
        let b = tiny(0, 1, u64::MAX);
        (0..3).for_each(|n| b.push(chunk(n)));
        b.parts().segments[1].file.set_len(0).unwrap();
        assert_eq!((next(&b), next(&b), next(&b)), (Some(0), Some(2), None));
        assert_eq!(b.lost_bytes(), chunk(1).len() as u64);
        assert!(b.take_error().is_some());
    }

    #[test]
    fn files_have_no_name_and_are_private() {
        use std::os::unix::fs::MetadataExt;
        let meta = unnamed(&Limits::default()).unwrap().metadata().unwrap();
        assert_eq!((meta.nlink(), meta.mode() & 0o777 & !0o600), (0, 0));
    }

    #[test]
    fn threads_see_every_chunk_once_and_in_order_of_their_pusher() {
        let b = Arc::new(tiny(300, 500, 5000));
        let pushers: Vec<_> = (0..3u32)
            .map(|t| {
                let b = Arc::clone(&b);
                std::thread::spawn(move || (0..3000).for_each(|n| b.push(chunk(t * 10_000 + n))))
            })
            .collect();
        let reader = {
            let b = Arc::clone(&b);
            std::thread::spawn(move || {
                let mut next_of = [0; 3];
                loop {
                    let last = b.is_finished();
                    while let Some(n) = next(&b) {
                        let of = &mut next_of[n as usize / 10_000];
                        assert_eq!(n % 10_000, *of);
                        *of += 1;
                    }
                    if last {
                        return next_of;
                    }
                    b.wait(Duration::from_millis(20));
                }
            })
        };
        pushers.into_iter().for_each(|t| t.join().unwrap());
        b.finish();
        assert_eq!(reader.join().unwrap(), [3000; 3]);
    }

    #[test]
    fn waiting_ends_with_a_chunk_the_end_or_the_time() {
        let b = tiny(100, 100, 100);
        b.wait(Duration::from_millis(1));
        std::thread::scope(|s| {
            s.spawn(|| b.push(chunk(1)));
            b.wait(Duration::from_secs(60));
            assert_eq!(next(&b), Some(1));
            s.spawn(|| b.finish());
            b.wait(Duration::from_secs(60));
        });
        assert!(b.is_finished());
    }
}
