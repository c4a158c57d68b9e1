//! Reads traces of trapline: the bytes of each event as they were in the ring, in the order of time.
//!
//! What is held in memory is one packet per stream, and where the packets are: 80 bytes for each 256 KiB of the trace. Packets
//! outside of a window of time are not read.

use crate::packet::{HEADER, Info, own_length};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A packet larger than this is not taken for one, bytes.
const MAX_PACKET: u64 = 64 << 20;

/// What is wrong with a trace.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The metadata says something that it may not say: file, line, column, what.
    #[error("{0}")]
    Metadata(String),
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

/// Where a packet is, and what its head says.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Index of its file.
    pub file: u32,
    /// Offset in the file.
    pub at: u64,
    /// What is said of it.
    pub info: Info,
}

/// A stream: its packets in order, in one file or several.
#[derive(Debug)]
pub struct Stream {
    /// Number.
    pub instance: u64,
    /// The name of its file, without the number of a part.
    pub name: String,
    /// Its packets.
    pub packets: Vec<Place>,
}

/// A file whose last packet is not whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torn {
    /// The file.
    pub path: PathBuf,
    /// Where its last whole packet ends.
    pub at: u64,
    /// Bytes behind it.
    pub rest: u64,
}

/// Bytes that are not what they should be. They are left out; what is around them is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Where in it.
    pub at: u64,
    /// What is wrong.
    pub what: String,
    /// Bytes that are left out: up to the next packet, or the end of the file.
    pub rest: u64,
}

/// All damage that was found: of a hostile trace there may be millions of places.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Damages {
    /// The first.
    pub first: Option<Damage>,
    /// How many.
    pub places: u64,
    /// Bytes that were left out for them.
    pub bytes: u64,
}

/// The data of a trace, opened.
#[derive(Debug)]
pub struct Data {
    files: Vec<(PathBuf, File)>,
    /// Streams by number.
    pub streams: Vec<Stream>,
    /// Files that end within a packet, or with zeros that were never written.
    pub torn: Vec<Torn>,
    damage: Mutex<Damages>,
}

impl Data {
    /// Finds the packets of every stream of the trace in `dir`.
    pub fn open(dir: &Path) -> Result<Data, Error> {
        let io_error = |path: &Path, error| Error::Io { path: path.into(), error };
        let mut names: Vec<PathBuf> = std::fs::read_dir(dir)
            .map_err(|e| io_error(dir, e))?
            .filter_map(|e| e.ok().map(|e| e.path()))
            .filter(|p| {
                p.is_file() && p.file_name().is_some_and(|n| n != "metadata" && !n.as_encoded_bytes().starts_with(b"."))
            })
            .collect();
        names.sort();
        let mut data = Data { files: Vec::new(), streams: Vec::new(), torn: Vec::new(), damage: Mutex::default() };
        for path in names {
            match File::open(&path) {
                Ok(file) => data.scan(path, file)?,
                // It had to go for newer ones, just now.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(io_error(&path, e)),
            }
        }
        for s in &mut data.streams {
            s.packets.sort_by_key(|p| (p.info.seq, p.file, p.at));
        }
        data.streams.sort_by_key(|s| s.instance);
        match data.damage().first {
            Some(Damage { path, at, what, .. }) if data.streams.is_empty() => Err(Error::Bad { path, at, what }),
            _ => Ok(data),
        }
    }

    /// What was found damaged so far: heads of packets when the trace was opened, events when they were read.
    pub fn damage(&self) -> Damages {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn damaged(&self, path: &Path, at: u64, what: String, rest: u64) {
        let mut all = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        all.places += 1;
        all.bytes += rest;
        all.first.get_or_insert_with(|| Damage { path: path.into(), at, what, rest });
    }

    fn scan(&mut self, path: PathBuf, file: File) -> Result<(), Error> {
        let size = file.metadata().map_err(|error| Error::Io { path: path.clone(), error })?.len();
        let index = self.files.len() as u32;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.split('.').next().unwrap_or_default().to_string();
        let failed = |error| Error::Io { path: path.clone(), error };
        let mut at = 0;
        while at < size {
            let mut head = [0; HEADER];
            let whole = size - at >= HEADER as u64;
            if whole {
                file.read_exact_at(&mut head, at).map_err(failed)?;
            }
            let what = match Info::read(&head[..if whole { HEADER } else { 0 }]) {
                Ok(i) if i.size > MAX_PACKET => format!("a packet of {} bytes (at most {MAX_PACKET})", i.size),
                Ok(i) if at + i.size <= size => {
                    self.add(index, &name, at, i);
                    at += i.size;
                    continue;
                }
                Ok(i) => format!("a packet of {} bytes, of which {} are there", i.size, size - at),
                Err(e) => e.to_string(),
            };
            let next = self.next_head(&file, at + 1, size).map_err(failed)?;
            let end = matches!(Info::read(&head), Ok(i) if i.size <= MAX_PACKET) || !whole;
            if next.is_none() && (end || zeros(&file, at, size).map_err(failed)?) {
                self.torn.push(Torn { path: path.clone(), at, rest: size - at });
                break;
            }
            let next = next.unwrap_or(size);
            self.damaged(&path, at, what, next - at);
            at = next;
        }
        self.files.push((path, file));
        Ok(())
    }

    fn add(&mut self, file: u32, name: &str, at: u64, info: Info) {
        let place = Place { file, at, info };
        match self.streams.iter_mut().find(|s| s.instance == info.instance) {
            Some(s) => s.packets.push(place),
            None => {
                self.streams.push(Stream { instance: info.instance, name: name.into(), packets: vec![place] });
            }
        }
    }

    /// Where, at `from` or behind, the next whole packet of this trace begins: one with the identity of the packets that are known.
    fn next_head(&self, file: &File, from: u64, size: u64) -> io::Result<Option<u64>> {
        let Some(known) = self.streams.first().and_then(|s| s.packets.first()) else { return Ok(None) };
        let mut sign = [0; HEADER];
        known.info.write(&mut sign);
        // The magic number and the identity.
        let sign = &sign[..20];
        let mut from = from;
        // It is near as a rule; what is read for nothing stays in proportion.
        let mut bytes = vec![0; CHUNK >> 6];
        while from + HEADER as u64 <= size {
            let n = (size - from).min(bytes.len() as u64) as usize;
            file.read_exact_at(&mut bytes[..n], from)?;
            for (found, _) in bytes[..n].windows(sign.len()).enumerate().filter(|(_, bytes)| *bytes == sign) {
                let at = from + found as u64;
                let mut head = [0; HEADER];
                if at + HEADER as u64 <= size {
                    file.read_exact_at(&mut head, at)?;
                }
                if Info::read(&head).is_ok_and(|i| i.size <= MAX_PACKET && at + i.size <= size) {
                    return Ok(Some(at));
                }
            }
            if n < bytes.len() {
                break;
            }
            from += (n - sign.len() + 1) as u64;
            bytes.resize((2 * n).min(CHUNK), 0);
        }
        Ok(None)
    }
}

/// Bytes that are looked at together where something is looked for.
const CHUNK: usize = 64 << 10;

/// Whether a file holds nothing but zeros from `at` on: what a filesystem leaves of a write that the machine did not live to see.
fn zeros(file: &File, at: u64, size: u64) -> io::Result<bool> {
    let mut bytes = vec![0; CHUNK];
    for from in (at..size).step_by(CHUNK) {
        let n = (size - from).min(CHUNK as u64) as usize;
        file.read_exact_at(&mut bytes[..n], from)?;
        if bytes[..n].iter().any(|b| *b != 0) {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Data {
    /// First and last time of the trace, ns.
    pub fn span(&self) -> Option<(u64, u64)> {
        let all = || self.streams.iter().flat_map(|s| &s.packets).filter(|p| p.info.content > HEADER as u64);
        Some((all().map(|p| p.info.begin).min()?, all().map(|p| p.info.end).max()?))
    }

    /// Events that were lost before they could be stored, over all streams.
    pub fn discarded(&self) -> u64 {
        self.streams.iter().filter_map(|s| s.packets.last()).map(|p| p.info.discarded).sum()
    }

    /// Bytes of all packets.
    pub fn bytes(&self) -> u64 {
        self.streams.iter().flat_map(|s| &s.packets).map(|p| p.info.size).sum()
    }

    /// The events from `from` to `to`, ns, both included, of all streams in the order of time. `known` says which class of the
    /// trace is which of this program's ([`crate::classes::known`]).
    pub fn events<'a>(&'a self, known: &'a [Option<u16>], from: u64, to: u64) -> Merged<'a> {
        let cursors = self
            .streams
            .iter()
            .map(|s| {
                let first = s.packets.partition_point(|p| p.info.end < from);
                let last = s.packets.partition_point(|p| p.info.begin <= to).max(first);
                Cursor { packets: &s.packets[first..last], instance: s.instance, bytes: Vec::new(), at: 0, now: None }
            })
            .collect();
        Merged { data: self, known, from, to, cursors, started: false, last: usize::MAX, read: 0 }
    }

    fn load(&self, place: &Place, into: &mut Vec<u8>) -> Result<(), Error> {
        let (path, file) = &self.files[place.file as usize];
        into.resize(place.info.size as usize, 0);
        file.read_exact_at(into, place.at).map_err(|error| Error::Io { path: path.clone(), error })?;
        into.truncate(place.info.content as usize);
        Ok(())
    }
}

/// Where the reading of one stream is.
struct Cursor<'a> {
    packets: &'a [Place],
    instance: u64,
    /// Content of the packet that is being read: the first of `packets`.
    bytes: Vec<u8>,
    /// Its next event.
    at: usize,
    /// The current event: time, where it is.
    now: Option<(u64, std::ops::Range<usize>)>,
}

/// Events of all streams in the order of time; those of one moment in the order of their streams.
pub struct Merged<'a> {
    data: &'a Data,
    known: &'a [Option<u16>],
    from: u64,
    to: u64,
    cursors: Vec<Cursor<'a>>,
    started: bool,
    last: usize,
    read: u64,
}

impl Merged<'_> {
    /// The next event: its bytes, and the number of its stream.
    #[allow(clippy::should_implement_trait, reason = "what it lends lives until the next call")]
    pub fn next(&mut self) -> Result<Option<(&[u8], u64)>, Error> {
        if !self.started {
            self.started = true;
            for i in 0..self.cursors.len() {
                self.advance(i)?;
            }
        } else if self.last < self.cursors.len() {
            self.advance(self.last)?;
        }
        let first = self.cursors.iter().enumerate().filter_map(|(i, c)| Some((c.now.as_ref()?.0, i))).min();
        let Some((_, i)) = first else {
            self.last = usize::MAX;
            return Ok(None);
        };
        self.last = i;
        let c = &self.cursors[i];
        let range = c.now.as_ref().map(|n| n.1.clone()).unwrap_or_default();
        Ok(Some((&c.bytes[range], c.instance)))
    }

    /// Bytes of packets read so far.
    pub fn bytes_read(&self) -> u64 {
        self.read
    }

    /// Moves stream `i` to its next event within the window.
    fn advance(&mut self, i: usize) -> Result<(), Error> {
        let Merged { data, known, from, to, cursors, read, .. } = self;
        let c = &mut cursors[i];
        c.now = None;
        loop {
            while c.at >= c.bytes.len() {
                if c.at > 0 {
                    c.packets = &c.packets[1..];
                    (c.at, c.bytes) = (0, std::mem::take(&mut c.bytes));
                    c.bytes.clear();
                }
                let Some(place) = c.packets.first() else { return Ok(()) };
                data.load(place, &mut c.bytes)?;
                *read += place.info.size;
                c.at = HEADER;
            }
            let at = c.at;
            let Some(place) = c.packets.first() else { return Ok(()) };
            let (time, n) = match event(&mut c.bytes, at, known, &place.info) {
                Ok(event) => event,
                Err(what) => {
                    let path = &data.files[place.file as usize].0;
                    data.damaged(path, place.at + at as u64, what, (c.bytes.len() - at) as u64);
                    c.at = c.bytes.len();
                    continue;
                }
            };
            c.at = (at + n).next_multiple_of(8);
            if time > *to {
                c.packets = &[];
                (c.at, c.bytes) = (0, Vec::new());
                return Ok(());
            }
            if time >= *from {
                c.now = Some((time, at..at + n));
                return Ok(());
            }
        }
    }
}

/// Time and length of the event at `at`, which gets this program's number for its class; else what is wrong with it.
fn event(bytes: &mut [u8], at: usize, known: &[Option<u16>], of: &Info) -> Result<(u64, usize), String> {
    let Some(id) = bytes.get(at + 8..at + 10).map(|b| u16::from_le_bytes([b[0], b[1]])) else {
        return Err("the packet ends within the head of an event".into());
    };
    match known.get(usize::from(id)).copied().flatten() {
        Some(own) if own == id => {}
        Some(own) => bytes[at + 8..at + 10].copy_from_slice(&own.to_le_bytes()),
        None => return Err(format!("an event of class {id}, which the metadata does not have")),
    }
    let Some(n) = own_length(&bytes[at..]) else {
        return Err(format!("an event of class {id} that is not whole"));
    };
    let mut time = [0; 8];
    time.copy_from_slice(&bytes[at..at + 8]);
    let time = u64::from_le_bytes(time);
    if !(of.begin..=of.end).contains(&time) {
        return Err(format!("an event of class {id} at {time}, outside of its packet's time"));
    }
    Ok((time, n))
}
