//! Reads traces of trapline: the bytes of each event as they were in the ring, in the order of time.
//!
//! What is held in memory is one packet per stream, and where the packets are: 200 bytes for each 256 KiB of the trace. Packets
//! outside of a window of time are not read.
//!
//! Reading changes nothing. A file is a stream of the trace if it begins with the trace's sign ([`crate::packet::sign`]); links are not
//! followed, and whatever else is in the directory is named and ignored.

mod find;
mod merge;

use crate::folder::reason;
use crate::format::{Format, Unknown};
use crate::packed;
use crate::packet::{Info, SIGN, event_length};
use events::functions::Table;
use events::generated::{P_EXEC, P_EXIT, P_INFLIGHT, P_PAUSED, P_RESUMED};
use events::rules::Rules;
use events::{Event, StreamId};
pub use merge::Merged;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// What is wrong with a trace.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("{}: {}", .path.display(), reason(.error))]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The metadata cannot be read, or is invalid.
    #[error(transparent)]
    Metadata(#[from] crate::generic::Error),
    /// A later trapline has written it.
    #[error(transparent)]
    Format(#[from] Unknown),
    /// Its bytes are not what they should be.
    #[error("{}: at byte {at}: {what}", .path.display())]
    Bad {
        /// The file.
        path: PathBuf,
        /// Offset in the file.
        at: u64,
        /// What is wrong.
        what: String,
    },
}

/// Makes of a linker's name the one that is shown; none where that is the same.
pub type Demangle = fn(&str) -> Option<String>;

/// The place of a packet, and its header.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Index of its file.
    pub file: u32,
    /// Offset in the file.
    pub at: u64,
    /// Its header.
    pub info: Info,
}

/// A stream: its packets in order, in one file or several.
#[derive(Debug)]
pub struct Stream {
    /// Which stream.
    pub id: StreamId,
    /// The name of its file, without the number of a part.
    pub name: String,
    /// Its packets.
    pub packets: Vec<Place>,
}

impl Stream {
    /// Packets whose numbers are missing between others.
    pub fn gap(&self) -> u64 {
        let gaps = self.packets.windows(2).map(|w| (w[1].info.seq - w[0].info.seq).saturating_sub(1));
        gaps.fold(0, u64::saturating_add)
    }
}

/// A file whose last packet is not whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truncated {
    /// The file.
    pub path: PathBuf,
    /// Where its last whole packet ends.
    pub at: u64,
    /// Bytes after it.
    pub rest: u64,
}

/// Damaged bytes. They are skipped; what is around them is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Where in it.
    pub at: u64,
    /// What is wrong.
    pub what: String,
    /// Bytes that are skipped: up to the next packet, or the end of the file.
    pub rest: u64,
}

/// All damage that was found: of a hostile trace there may be millions of places.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Damages {
    /// The first.
    pub first: Option<Damage>,
    /// How many.
    pub places: u64,
    /// Bytes that were skipped because of them.
    pub bytes: u64,
}

/// Names of a directory, of which there may be any number: the first few, and how many.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// The first ones.
    pub first: Vec<String>,
    /// How many.
    pub count: u64,
}

impl Names {
    fn add(&mut self, name: &OsStr, what: Option<&io::Error>) {
        const SHOWN: usize = 3;
        self.count += 1;
        if self.first.len() < SHOWN {
            let name = name.to_string_lossy();
            self.first.push(what.map_or_else(|| name.to_string(), |e| format!("{name} ({})", reason(e))));
        }
    }
}

impl std::fmt::Display for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.first.join(", "))?;
        match self.count - self.first.len() as u64 {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// The data of a trace, opened.
#[derive(Debug)]
pub struct Data {
    files: Vec<(PathBuf, File)>,
    /// The version of the format.
    format: Format,
    /// What every packet begins with.
    sign: [u8; SIGN],
    /// Streams, in their order.
    pub streams: Vec<Stream>,
    /// Files that end within a packet, or with zeros that were never written.
    pub truncated: Vec<Truncated>,
    /// What is in the directory and is not a stream of the trace: it was ignored.
    pub others: Names,
    /// Files that could not be read.
    pub unreadable: Names,
    /// Packets that are there twice: they are read once.
    pub doubled: u64,
    damage: Mutex<Damages>,
}

impl Data {
    /// The damage found so far: headers of packets when the trace was opened, events when they were read.
    pub fn damage(&self) -> Damages {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn damaged(&self, path: &Path, at: u64, what: String, rest: u64) {
        let mut all = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        all.places += 1;
        all.bytes += rest;
        all.first.get_or_insert_with(|| Damage { path: path.into(), at, what, rest });
    }

    /// Whether a packet has more than its header.
    pub fn has_events(&self, packet: &Info) -> bool {
        packet.content > self.head_of(packet) as u64
    }

    /// Bytes of a packet before its first event or record.
    pub(crate) fn head_of(&self, packet: &Info) -> usize {
        if packet.functions.is_some() { packet.head() } else { self.format.head() }
    }

    /// First and last time of the trace, ns.
    pub fn span(&self) -> Option<(u64, u64)> {
        let all = || self.streams.iter().flat_map(|s| &s.packets).filter(|p| self.has_events(&p.info));
        Some((all().map(|p| p.info.begin).min()?, all().map(|p| p.info.end).max()?))
    }

    /// Events that were lost before they could be stored, over all streams.
    pub fn discarded(&self) -> u64 {
        let last = self.streams.iter().filter_map(|s| s.packets.last());
        last.fold(0, |n, p| n.saturating_add(p.info.discarded))
    }

    /// Events of a stream that were lost, by the counter in its last packet.
    pub fn discarded_of(&self, id: StreamId) -> u64 {
        let stream = self.streams.iter().find(|s| s.id == id);
        stream.and_then(|s| s.packets.last()).map_or(0, |p| p.info.discarded)
    }

    /// Bytes of all packets.
    pub fn bytes(&self) -> u64 {
        self.streams.iter().flat_map(|s| &s.packets).fold(0, |n, p| n.saturating_add(p.info.size))
    }

    /// The events from `from` to `to`, ns, both included, of all streams in the order of time. `known` maps the classes of the
    /// trace to this program's ([`crate::classes::known`]).
    pub fn events<'a>(&'a self, known: &'a [Option<u16>], from: u64, to: u64) -> Merged<'a> {
        self.events_from(known, |_| from, to)
    }

    /// [`Data::events`], of each stream from a time of its own on.
    pub fn events_from<'a>(&'a self, known: &'a [Option<u16>], from: impl Fn(StreamId) -> u64, to: u64) -> Merged<'a> {
        let cursors = self.streams.iter().map(|s| merge::Cursor::new(s, (from(s.id), to))).collect();
        Merged::new(self, known, to, cursors)
    }

    /// The events of one stream.
    pub fn events_of<'a>(&'a self, known: &'a [Option<u16>], id: StreamId) -> Merged<'a> {
        let streams = self.streams.iter().filter(|s| s.id == id);
        Merged::new(self, known, u64::MAX, streams.map(|s| merge::Cursor::new(s, (0, u64::MAX))).collect())
    }

    /// The `process:function` events up to a moment, ns: the names in what comes later need them.
    pub fn functions_until<'a>(&'a self, known: &'a [Option<u16>], to: u64) -> Merged<'a> {
        let streams = self.streams.iter().filter(|s| s.id == StreamId::FUNCTIONS);
        Merged::new(self, known, to, streams.map(|s| merge::Cursor::new(s, (0, to))).collect())
    }

    /// The functions that records have by number. `demangle` makes of a linker's name the one that is shown; none where that is the same.
    /// `rules` are about the names.
    pub fn functions(&self, known: &[Option<u16>], demangle: Demangle, rules: Option<Arc<dyn Rules>>) -> Table {
        let (mut table, mut events) = (Table::default(), self.functions_until(known, u64::MAX));
        table.redact(rules);
        while let Some((bytes, _)) = events.next() {
            if let Ok(ev) = Event::parse(bytes) {
                table.note(&ev, demangle);
            }
        }
        table
    }

    /// Moments in the midst of each time in which the session was stopped, ns, in order.
    pub fn pauses(&self, known: &[Option<u16>]) -> Vec<u64> {
        let streams = self.streams.iter().filter(|s| s.id == StreamId::TRACER);
        let cursors = streams.map(|s| merge::Cursor::new(s, (0, u64::MAX))).collect();
        let mut events = Merged::new(self, known, u64::MAX, cursors);
        let (mut stopped, mut all) = (None, Vec::new());
        while let Some((bytes, _)) = events.next() {
            match Event::parse(bytes) {
                Ok(ev) if ev.schema.id == P_PAUSED.id => stopped = Some(ev.time()),
                Ok(ev) if ev.schema.id == P_RESUMED.id => {
                    all.extend(stopped.take().map(|from| from + ev.time().saturating_sub(from) / 2));
                }
                _ => {}
            }
        }
        all
    }

    /// When threads have ended, or have executed another program, ns, in order.
    pub fn ends(&self, known: &[Option<u16>]) -> HashMap<u32, Vec<u64>> {
        let streams = self.streams.iter().filter(|s| s.packets.iter().all(|p| p.info.functions.is_none()));
        let cursors = streams.map(|s| merge::Cursor::new(s, (0, u64::MAX))).collect();
        let mut events = Merged::new(self, known, u64::MAX, cursors);
        let mut all: HashMap<u32, Vec<u64>> = HashMap::new();
        while let Some((bytes, _)) = events.next() {
            match Event::parse(bytes) {
                Ok(ev) if ev.schema.id == P_EXIT.id || ev.schema.id == P_EXEC.id => {
                    all.entry(ev.tid()).or_default().push(ev.time());
                }
                _ => {}
            }
        }
        all
    }

    /// How many events of a stream can be read.
    pub fn count(&self, known: &[Option<u16>], id: StreamId) -> u64 {
        let Some(stream) = self.streams.iter().find(|s| s.id == id) else { return 0 };
        let (mut n, mut bytes) = (0, Vec::new());
        for place in &stream.packets {
            if place.info.functions.is_some() {
                n += crate::records::records_of(&place.info);
                continue;
            }
            if self.load(place, &mut bytes).is_err() {
                continue;
            }
            let mut at = self.format.head();
            while at < bytes.len()
                && let Ok((_, len)) = event(&mut bytes, at, known, &place.info)
            {
                n += 1;
                at = (at + len).next_multiple_of(8);
            }
        }
        n
    }

    /// Reads a packet, or notes that it is damaged; whether it was read.
    pub(crate) fn load_or_note(&self, place: &Place, into: &mut Vec<u8>) -> bool {
        let Err(e) = self.load(place, into) else { return true };
        let path = &self.files[place.file as usize].0;
        self.damaged(path, place.at, reason(&e), place.info.size);
        into.clear();
        false
    }

    fn load(&self, place: &Place, into: &mut Vec<u8>) -> io::Result<()> {
        into.resize(place.info.size as usize, 0);
        self.files[place.file as usize].1.read_exact_at(into, place.at)?;
        into.truncate(place.info.content as usize);
        if let Some(size) = place.info.unpacked {
            let head = self.format.head();
            let (packed, size) = (into.split_off(head), size as usize - head);
            let mut content = Vec::new();
            let damaged = || io::Error::other("a compressed packet that is damaged");
            // An empty packet has nothing but its header.
            if size > 0 {
                packed::unpack(&packed, size, &mut content).ok_or_else(damaged)?;
            }
            into.append(&mut content);
        }
        Ok(())
    }
}

/// Gives the call in the notice of one in flight this program's number for its class, as [`event`] does.
fn contained(notice: &mut [u8], known: &[Option<u16>]) {
    let head = events::registry::layout(P_INFLIGHT.id).map_or(usize::MAX, |l| l.fixed + 2);
    let id = head.checked_add(8).and_then(|at| notice.get_mut(at..at + 2));
    if let Some(id) = id
        && let Some(own) = known.get(usize::from(u16::from_le_bytes([id[0], id[1]]))).copied().flatten()
    {
        id.copy_from_slice(&own.to_le_bytes());
    }
}

/// Time and length of the event at `at`, which gets this program's number for its class; else what is wrong with it.
#[inline]
pub(crate) fn event(bytes: &mut [u8], at: usize, known: &[Option<u16>], of: &Info) -> Result<(u64, usize), String> {
    let Some(id) = bytes.get(at + 8..at + 10).map(|b| u16::from_le_bytes([b[0], b[1]])) else {
        return Err("the packet ends within an event header".into());
    };
    match known.get(usize::from(id)).copied().flatten() {
        Some(own) if own == id => {}
        Some(own) => bytes[at + 8..at + 10].copy_from_slice(&own.to_le_bytes()),
        None => return Err(format!("an event of class {id}, which the metadata does not have")),
    }
    let Some(n) = event_length(&bytes[at..]) else {
        return Err(format!("an event of class {id} that is not whole"));
    };
    if bytes[at + 8..at + 10] == P_INFLIGHT.id.to_le_bytes() {
        contained(&mut bytes[at..at + n], known);
    }
    let mut time = [0; 8];
    time.copy_from_slice(&bytes[at..at + 8]);
    let time = u64::from_le_bytes(time);
    if !(of.begin..=of.end).contains(&time) {
        return Err(format!("an event of class {id} at {time}, outside of its packet's time"));
    }
    Ok((time, n))
}
