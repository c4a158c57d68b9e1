//! Where packets go: files of a directory that grow by whole packets.
//!
//! ```text
//! DIR/metadata             text; there before the first packet
//! DIR/cpu_0, cpu_1, …      a stream each; with a limit of size in parts: cpu_0.0, cpu_0.1, …
//! DIR/.trapline/labels.json  names of flags
//! DIR/.trapline/end        there once the recording has ended in order: what was counted
//! DIR/.trapline/lock       locked while somebody writes
//! ```
//!
//! A packet that cannot be written whole is taken back, so that what is in the directory can always be read.

use crate::packet::Sealed;
use std::collections::{BTreeMap, VecDeque};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What a store of packets needs of a file system.
pub trait Store {
    /// An open file.
    type File;
    /// Makes a file that only its owner can read.
    fn create(&mut self, name: &str) -> io::Result<Self::File>;
    /// Writes `bytes` at `at`, which is the file's end: all of them, or the file stays as it was.
    fn append(&mut self, file: &mut Self::File, at: u64, bytes: &[u8]) -> io::Result<()>;
    /// Removes a file.
    fn remove(&mut self, name: &str) -> io::Result<()>;
}

/// A directory of a trace.
#[derive(Debug)]
pub struct Dir {
    path: PathBuf,
    /// Held while the trace is written.
    _lock: File,
}

/// The directory of what is trapline's own; other readers leave it alone.
pub const OWN: &str = ".trapline";

fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(path)
}

impl Dir {
    /// Makes the directory (0700); it must not exist, or be empty. It is no trace before [`Dir::describe`].
    pub fn create(path: &Path) -> io::Result<Dir> {
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        match builder.create(path) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {
                if std::fs::read_dir(path)?.next().is_some() {
                    return Err(io::Error::new(io::ErrorKind::DirectoryNotEmpty, "the directory is not empty"));
                }
            }
            Err(e) => return Err(e),
        }
        builder.create(path.join(OWN))?;
        let lock = private(&path.join(OWN).join("lock"))?;
        lock.lock()?;
        Ok(Dir { path: path.to_path_buf(), _lock: lock })
    }

    /// Writes the metadata, and names of flags: before the first packet.
    pub fn describe(&self, metadata: &str) -> io::Result<()> {
        private(&self.path.join(OWN).join("labels.json"))?.write_all(crate::labels::json().as_bytes())?;
        // Under another name until it is whole.
        let temporary = self.path.join(OWN).join("metadata");
        private(&temporary)?.write_all(metadata.as_bytes())?;
        std::fs::rename(&temporary, self.path.join("metadata"))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Says that the trace is complete, and what was counted.
    pub fn end(&self, text: &str) -> io::Result<()> {
        let temporary = self.path.join(OWN).join("end.new");
        private(&temporary)?.write_all(text.as_bytes())?;
        std::fs::rename(&temporary, self.path.join(OWN).join("end"))
    }
}

impl Store for Dir {
    type File = File;
    fn create(&mut self, name: &str) -> io::Result<File> {
        private(&self.path.join(name))
    }
    fn append(&mut self, file: &mut File, at: u64, bytes: &[u8]) -> io::Result<()> {
        file.write_all_at(bytes, at).inspect_err(|_| {
            let _ = file.set_len(at);
        })
    }
    fn remove(&mut self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }
}

/// Less than this is no limit to work with, bytes.
pub const MIN_LIMIT: u64 = 64 << 10;

/// At how many bytes packets are full where at most `limit` bytes are kept: what goes at once is little.
pub fn packet_size(limit: u64) -> usize {
    (limit / 64).clamp(4096, crate::packet::FULL as u64) as usize
}

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Everything.
    None,
    /// So many bytes of files; the oldest go.
    Files(u64),
}

/// What was lost on the way to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Events of packets that could not be written.
    pub unwritten: u64,
    /// Events that were written and had to go for newer ones.
    pub overwritten: u64,
}

struct Part<F> {
    file: F,
    size: Size,
}

/// What is known of a part, open or not.
struct Size {
    name: String,
    bytes: u64,
    events: u64,
    /// When its last packet came.
    last: u64,
}

/// The files of a trace.
pub struct Files<S: Store> {
    store: S,
    limit: Limit,
    open: BTreeMap<u64, Part<S::File>>,
    /// Parts that are full.
    closed: Vec<Size>,
    parts: BTreeMap<u64, u64>,
    /// Packets so far.
    puts: u64,
    bytes: u64,
    lost: Lost,
    failed: bool,
}

impl<S: Store> Files<S> {
    /// No files yet.
    pub fn new(store: S, limit: Limit) -> Files<S> {
        Files {
            store,
            limit,
            open: BTreeMap::new(),
            closed: Vec::new(),
            parts: BTreeMap::new(),
            puts: 0,
            bytes: 0,
            lost: Lost::default(),
            failed: false,
        }
    }

    /// Stores a packet of the stream of that name. After the first failure nothing more is written, so that the trace has no hole;
    /// the failure is returned once.
    pub fn put(&mut self, name: &str, packet: &Sealed) -> io::Result<()> {
        if self.failed {
            self.lost.unwritten += packet.events;
            return Ok(());
        }
        let result = self.try_put(name, packet);
        if result.is_err() {
            self.failed = true;
            self.lost.unwritten += packet.events;
        }
        result
    }

    fn try_put(&mut self, name: &str, packet: &Sealed) -> io::Result<()> {
        let (id, size) = (packet.instance, packet.bytes.len() as u64);
        self.puts += 1;
        if let Limit::Files(max) = self.limit {
            // A part is a small share of what may be kept, so that what goes at once is little.
            let share = max / (8 * (self.open.len() as u64 + 1));
            if self.open.get(&id).is_some_and(|p| p.size.bytes + size > share) {
                self.close(id);
            }
            self.make_room(max, size)?;
            if self.bytes + size > max {
                self.lost.overwritten += packet.events;
                return Ok(());
            }
        }
        if !self.open.contains_key(&id) {
            let part = self.parts.entry(id).or_insert(0);
            let name = if self.limit == Limit::None { name.to_string() } else { format!("{name}.{part}") };
            *part += 1;
            let file = self.store.create(&name)?;
            self.open.insert(id, Part { file, size: Size { name, bytes: 0, events: 0, last: 0 } });
        }
        let Some(part) = self.open.get_mut(&id) else { return Ok(()) };
        self.store.append(&mut part.file, part.size.bytes, &packet.bytes)?;
        part.size.bytes += size;
        part.size.events += packet.events;
        part.size.last = self.puts;
        self.bytes += size;
        Ok(())
    }

    fn close(&mut self, id: u64) {
        self.closed.extend(self.open.remove(&id).map(|p| p.size));
    }

    /// Removes the oldest parts until there is room for `size` more bytes, if there can be.
    fn make_room(&mut self, max: u64, size: u64) -> io::Result<()> {
        while self.bytes + size > max {
            let closed = self.closed.iter().map(|s| s.last).min();
            // A stream on which nothing happens any more has its oldest events in a part that is not full.
            let open = self.open.iter().map(|(id, p)| (p.size.last, *id)).min();
            match (closed, open) {
                (None, None) => return Ok(()),
                (Some(c), Some((o, id))) if o < c => self.close(id),
                (None, Some((_, id))) => self.close(id),
                _ => {}
            }
            let Some(at) = (0..self.closed.len()).min_by_key(|i| self.closed[*i].last) else { return Ok(()) };
            let old = self.closed.remove(at);
            self.store.remove(&old.name)?;
            self.bytes -= old.bytes;
            self.lost.overwritten += old.events;
        }
        Ok(())
    }

    /// What was lost.
    pub fn lost(&self) -> Lost {
        self.lost
    }

    /// Bytes that are in the files.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The store, for what else is to be written there.
    pub fn store(&mut self) -> &mut S {
        &mut self.store
    }

    /// Nothing more is written: what should stand in front of the packets could not be.
    pub fn fail(&mut self) {
        self.failed = true;
    }

    /// Whether a write has failed.
    pub fn failed(&self) -> bool {
        self.failed
    }
}

/// The last packets, in memory: a flight recorder.
#[derive(Debug, Default)]
pub struct Flight {
    packets: VecDeque<Sealed>,
    bytes: u64,
    max: u64,
    overwritten: u64,
}

impl Flight {
    /// Keeps so many bytes.
    pub fn new(max: u64) -> Flight {
        Flight { max, ..Flight::default() }
    }

    /// Keeps a packet; the oldest ones go where there is no room.
    pub fn put(&mut self, packet: Sealed) {
        self.bytes += packet.bytes.len() as u64;
        self.packets.push_back(packet);
        while self.bytes > self.max
            && self.packets.len() > 1
            && let Some(p) = self.packets.pop_front()
        {
            self.bytes -= p.bytes.len() as u64;
            self.overwritten += p.events;
        }
    }

    /// What is kept, oldest first.
    pub fn packets(&self) -> impl Iterator<Item = &Sealed> {
        self.packets.iter()
    }

    /// Events that had to go for newer ones.
    pub fn overwritten(&self) -> u64 {
        self.overwritten
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files in memory, and a disk that is full after so many bytes.
    #[derive(Default)]
    struct Memory {
        files: BTreeMap<String, Vec<u8>>,
        room: Option<u64>,
        /// The most bytes that were there at once.
        most: u64,
    }
    impl Store for Memory {
        type File = String;
        fn create(&mut self, name: &str) -> io::Result<String> {
            self.files.insert(name.into(), Vec::new());
            Ok(name.into())
        }
        fn append(&mut self, file: &mut String, at: u64, bytes: &[u8]) -> io::Result<()> {
            let used: u64 = self.files.values().map(|f| f.len() as u64).sum();
            if self.room.is_some_and(|r| used + bytes.len() as u64 > r) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let f = self.files.get_mut(file).unwrap();
            assert_eq!(f.len() as u64, at);
            f.extend_from_slice(bytes);
            self.most = self.most.max(used + bytes.len() as u64);
            Ok(())
        }
        fn remove(&mut self, name: &str) -> io::Result<()> {
            self.files.remove(name).map(drop).ok_or(io::ErrorKind::NotFound.into())
        }
    }

    fn packet(instance: u64, n: usize, events: u64) -> Sealed {
        Sealed { instance, bytes: vec![1; n], events }
    }

    #[test]
    fn the_oldest_parts_go_and_are_counted() {
        let mut f = Files::new(Memory::default(), Limit::Files(1000));
        for i in 0..200 {
            f.put(if i % 2 == 0 { "a" } else { "b" }, &packet(i % 2, 20, 3)).unwrap();
        }
        let on_disk: u64 = f.store.files.values().map(|f| f.len() as u64).sum();
        assert_eq!(f.bytes(), on_disk);
        assert!(on_disk <= 1000 && on_disk > 700, "{on_disk}");
        assert!(f.store.most <= 1000, "{}", f.store.most);
        assert_eq!(f.lost(), Lost { unwritten: 0, overwritten: 600 - on_disk / 20 * 3 });
        assert!(!f.store.files.contains_key("a.0") && f.store.files.keys().any(|k| k.starts_with("b.")));
    }

    #[test]
    fn a_stream_that_has_gone_quiet_loses_its_events_too() {
        let mut f = Files::new(Memory::default(), Limit::Files(1000));
        f.put("old", &packet(0, 20, 1)).unwrap();
        (0..100).for_each(|_| f.put("new", &packet(1, 20, 1)).unwrap());
        assert!(!f.store.files.contains_key("old.0"), "{:?}", f.store.files.keys());
        f.put("old", &packet(0, 20, 1)).unwrap();
        assert!(f.store.files.contains_key("old.1"));
        // What can never be kept is counted, and the limit holds.
        f.put("new", &packet(1, 1001, 50)).unwrap();
        let kept: u64 = f.store.files.values().map(|f| f.len() as u64 / 20).sum();
        assert_eq!(f.lost().overwritten + kept, 152);
        assert!(f.store.most <= 1000);
    }

    #[test]
    fn a_full_disk_is_said_once_and_what_follows_is_counted() {
        let mut f = Files::new(Memory { room: Some(50), ..Memory::default() }, Limit::None);
        assert!(f.put("a", &packet(0, 40, 5)).is_ok());
        assert_eq!(f.put("a", &packet(0, 40, 6)).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(f.put("a", &packet(0, 1, 7)).is_ok());
        assert_eq!((f.lost(), f.bytes()), (Lost { unwritten: 13, overwritten: 0 }, 40));
    }

    #[test]
    fn a_flight_recorder_keeps_the_last() {
        let mut f = Flight::new(100);
        (0..10).for_each(|i| f.put(packet(i, 30, 1)));
        assert_eq!(f.packets().map(|p| p.instance).collect::<Vec<_>>(), [7, 8, 9]);
        assert_eq!(f.overwritten(), 7);
        f.put(packet(11, 500, 1));
        assert_eq!(f.packets().map(|p| p.instance).collect::<Vec<_>>(), [11]);
    }

    #[test]
    fn a_directory_is_private_and_must_be_empty() {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("trapline-store-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        let mut dir = Dir::create(&path).unwrap();
        dir.describe("/* CTF 1.8 */\n").unwrap();
        let mut file = dir.create("cpu_0").unwrap();
        dir.append(&mut file, 0, b"abc").unwrap();
        let mode = |name: &str| std::fs::metadata(path.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(""), mode("metadata"), mode("cpu_0"), mode(OWN)), (0o700, 0o600, 0o600, 0o700));
        assert_eq!(Dir::create(&path).unwrap_err().kind(), io::ErrorKind::DirectoryNotEmpty);
        dir.end("{}").unwrap();
        assert_eq!(std::fs::read(path.join(OWN).join("end")).unwrap(), b"{}");
        std::fs::remove_dir_all(&path).unwrap();
    }
}
