//! Reads traces of any tracer: packets of events, merged by time.
//!
//! ```no_run
//! let traces = ctf::generic::find("trace".as_ref())?;
//! let traces = traces.iter().map(|dir| ctf::generic::Trace::open(dir)).collect::<Result<Vec<_>, _>>()?;
//! for item in ctf::generic::Reader::new(traces) {
//!     match item? {
//!         ctf::generic::Item::Event(event) => println!("{:?} {}", event.time, event.class.name),
//!         other => eprintln!("{other:?}"),
//!     }
//! }
//! # Ok::<(), ctf::generic::Error>(())
//! ```
//!
//! Files are read packet by packet, so memory depends on the size of packets, which is at most [`MAX_PACKET`] per stream, and not
//! on the size of the trace. Whatever the bytes are, reading them ends, with events or with an [`Error`] that names the place.

mod cursor;
mod stream;
mod value;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::folder::{Folder, reason};
use crate::model::{Clock, Metadata};
use crate::plan::{Class, Plan};
use crate::tsdl;
use stream::Stream;
pub use value::Value;

/// Largest packet that is read: 64 MiB.
pub const MAX_PACKET: u64 = 64 << 20;

/// Why a trace cannot be read, or not further.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory cannot be read.
    #[error("{}: {}", file.display(), reason(source))]
    Io {
        /// Which.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The metadata is not understood.
    #[error(transparent)]
    Metadata(#[from] tsdl::Error),
    /// A data stream is not what the metadata says. The stream ends there; others go on.
    #[error("{}: byte {offset}: {message}", file.display())]
    Data {
        /// Which file.
        file: PathBuf,
        /// Byte of the file.
        offset: u64,
        /// What is wrong.
        message: String,
    },
}

/// An event.
#[derive(Clone, Debug)]
pub struct Event {
    /// Nanoseconds since the epoch, if its header has a clock: since the clock's zero if the clock is not absolute and has no
    /// offsets.
    pub time: Option<i64>,
    /// Value of the clock.
    pub cycles: Option<u64>,
    /// Which of the reader's streams it is from: see [`Reader::stream`].
    pub stream: usize,
    /// Its class.
    pub class: Arc<Class>,
    /// Context of its packet.
    pub packet: Option<Arc<Value>>,
    /// Header.
    pub header: Option<Value>,
    /// Context that all events of the stream have.
    pub stream_context: Option<Value>,
    /// Context of its class.
    pub context: Option<Value>,
    /// Payload.
    pub fields: Option<Value>,
}

/// What a trace contains.
#[derive(Clone, Debug)]
pub enum Item {
    /// An event.
    Event(Event),
    /// Events that the tracer counted but did not write.
    Discarded {
        /// Which of the reader's streams.
        stream: usize,
        /// End of the packet before, in nanoseconds.
        from: Option<i64>,
        /// End of the packet whose counter has grown.
        to: Option<i64>,
        /// How many.
        count: u64,
    },
    /// Packets whose numbers are missing.
    LostPackets {
        /// Which of the reader's streams.
        stream: usize,
        /// End of the packet before the gap, in nanoseconds.
        from: Option<i64>,
        /// Begin of the packet after it.
        to: Option<i64>,
        /// How many.
        count: u64,
    },
    /// The last packet of a file is incomplete. Its whole events came before this item.
    IncompleteEnd {
        /// Which of the reader's streams.
        stream: usize,
        /// Which file.
        file: PathBuf,
        /// Byte at which the last whole event ends.
        offset: u64,
        /// End of what came before, in nanoseconds.
        at: Option<i64>,
    },
}

impl Item {
    /// When, in nanoseconds.
    pub fn time(&self) -> Option<i64> {
        match self {
            Item::Event(e) => e.time,
            Item::Discarded { to, .. } | Item::LostPackets { to, .. } => *to,
            Item::IncompleteEnd { at, .. } => *at,
        }
    }
}

/// A trace that was opened: a directory with metadata and data streams.
#[derive(Debug)]
pub struct Trace {
    /// What the metadata says.
    pub metadata: Arc<Metadata>,
    /// Names of links, devices and the like, which were ignored.
    pub others: Vec<OsString>,
    dir: PathBuf,
    streams: Vec<Stream>,
}

impl Trace {
    /// Opens a directory. Files whose name begins with a dot, empty files and directories in it are not streams. Nothing in it is
    /// changed, links are not followed, and no call blocks: [`Trace::others`] names what was ignored.
    ///
    /// # Errors
    /// A directory or metadata that cannot be read. Errors in streams are reported when they are read.
    pub fn open(dir: &Path) -> Result<Trace, Error> {
        let io = |source| Error::Io { file: dir.to_path_buf(), source };
        let folder = Folder::open(dir).map_err(io)?;
        let metadata = read_metadata(&folder)?;
        let hidden = |n: &OsString| n.as_bytes().starts_with(b".") || n == "metadata";
        let (mut files, mut others) = (Vec::new(), Vec::new());
        for name in folder.names().map_err(io)?.into_iter().filter(|n| !hidden(n)) {
            match folder.metadata(&name) {
                Ok(m) if m.is_file() && m.len() > 0 => files.push(dir.join(name)),
                Ok(m) if m.is_file() || m.is_dir() => {}
                Ok(_) => others.push(name),
                // It is gone.
                Err(_) => {}
            }
        }
        Ok(Trace { others, ..Trace::with_streams(dir, metadata, files)? })
    }

    /// A trace of these files, which need not be in the directory.
    ///
    /// # Errors
    /// Metadata that does not describe readable streams.
    pub fn with_streams(dir: &Path, metadata: Metadata, files: Vec<PathBuf>) -> Result<Trace, Error> {
        let plan = Plan::new(&metadata).map_err(|e| Error::Data {
            file: dir.join("metadata"),
            offset: 0,
            message: e.message,
        })?;
        let streams = stream::group(&Arc::new(plan), files);
        Ok(Trace { metadata: Arc::new(metadata), dir: dir.to_path_buf(), streams, others: Vec::new() })
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

/// Reads the metadata of a trace.
///
/// # Errors
/// A file that cannot be read, is a link, or is larger than [`tsdl::MAX_TEXT`] allows, and what is wrong in it.
pub fn read_metadata(folder: &Folder) -> Result<Metadata, Error> {
    let path = folder.path().join("metadata");
    let io = |source| Error::Io { file: path.clone(), source };
    let mut bytes = Vec::new();
    // Packets may contain padding: more is read than text is taken.
    let most = 2 * tsdl::MAX_TEXT as u64;
    folder.read("metadata").map_err(io)?.take(most + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > most {
        return Err(io(std::io::Error::new(std::io::ErrorKind::FileTooLarge, format!("more than {most} bytes"))));
    }
    Ok(tsdl::parse_bytes(&path.display().to_string(), &bytes)?)
}

/// All traces in a directory and up to eight levels below it, sorted by path: LTTng makes several per session. Symbolic links
/// are not followed, and directories whose name begins with a dot are skipped.
///
/// # Errors
/// A directory that cannot be listed.
pub fn find(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut left = vec![(dir.to_path_buf(), 0)];
    while let Some((dir, depth)) = left.pop() {
        if fs::symlink_metadata(dir.join("metadata")).is_ok_and(|m| m.is_file()) {
            found.push(dir);
            continue;
        }
        let io = |source| Error::Io { file: dir.clone(), source };
        for entry in fs::read_dir(&dir).map_err(io)? {
            let entry = entry.map_err(io)?;
            let hidden = entry.file_name().as_bytes().starts_with(b".");
            if depth < 8 && !hidden && entry.file_type().is_ok_and(|t| t.is_dir()) {
                left.push((entry.path(), depth + 1));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// A stream as readers see it.
#[derive(Clone, Debug)]
pub struct StreamInfo {
    /// Metadata of its trace.
    pub metadata: Arc<Metadata>,
    /// Files, in the order of time.
    pub files: Vec<PathBuf>,
}

/// The events of traces by time. At equal times the order is that of the traces and of the streams' files by name.
#[derive(Debug)]
pub struct Reader {
    streams: Vec<Stream>,
    infos: Vec<StreamInfo>,
    heads: Vec<Option<Result<Item, Error>>>,
    heap: BinaryHeap<Reverse<(i64, usize)>>,
    started: bool,
}

impl Reader {
    /// Merges traces.
    pub fn new(traces: Vec<Trace>) -> Reader {
        let mut streams = Vec::new();
        let mut infos = Vec::new();
        for trace in traces {
            for mut stream in trace.streams {
                stream.index = streams.len();
                infos.push(StreamInfo { metadata: trace.metadata.clone(), files: stream.files() });
                streams.push(stream);
            }
        }
        Reader { streams, infos, heads: Vec::new(), heap: BinaryHeap::new(), started: false }
    }

    /// The stream that an item is from.
    pub fn stream(&self, index: usize) -> Option<&StreamInfo> {
        self.infos.get(index)
    }

    /// How many streams there are.
    pub fn streams(&self) -> usize {
        self.infos.len()
    }

    fn start(&mut self) {
        self.started = true;
        for (index, stream) in self.streams.iter_mut().enumerate() {
            let head = stream.next();
            if let Some(head) = &head {
                self.heap.push(Reverse((key(head), index)));
            }
            self.heads.push(head);
        }
    }
}

/// What items are sorted by: errors and what has no time come first.
fn key(head: &Result<Item, Error>) -> i64 {
    head.as_ref().ok().and_then(Item::time).unwrap_or(i64::MIN)
}

impl Iterator for Reader {
    type Item = Result<Item, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.started {
            self.start();
        }
        let mut top = self.heap.peek_mut()?;
        let index = top.0.1;
        let following = self.streams[index].next();
        match &following {
            Some(head) => top.0.0 = key(head),
            None => drop(PeekMut::pop(top)),
        }
        std::mem::replace(&mut self.heads[index], following)
    }
}

/// Nanoseconds since the epoch at a clock's value, clamped to 64 bits.
pub fn nanoseconds(clock: &Clock, cycles: u64) -> i64 {
    const SECOND: i128 = 1_000_000_000;
    let ticks = i128::from(cycles) + i128::from(clock.offset);
    let part = if clock.freq == 1_000_000_000 { ticks } else { (ticks * SECOND).div_euclid(clock.freq.max(1).into()) };
    let all = i128::from(clock.offset_s) * SECOND + part;
    all.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}
