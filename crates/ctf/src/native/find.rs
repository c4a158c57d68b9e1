//! Finds the packets of a trace: which files of the directory are its streams, and where packets begin in them.
//!
//! Only packet headers are read. Damage is skipped up to the next header; a file that does not end with a whole packet is truncated.
//! Whatever the directory holds, reading it terminates, never blocks, and changes nothing.

use super::{Damage, Data, Error, Names, Place, Stream, Truncated};
use crate::folder::Folder;
use crate::format::Format;
use crate::packet::{BadPacket, FUNCTIONS_HEADER, Info, SIGN, sign};
use events::StreamId;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// A packet larger than this is not taken for one, bytes.
const MAX_PACKET: u64 = 64 << 20;
/// A recording with a limit may replace all that a listing of its directory names before that is opened: the most listings that are tried.
const LISTINGS: usize = 16;

impl Data {
    /// Finds the packets of every stream of the trace `uuid`, in a version of the format, in a directory.
    pub fn open(folder: &Folder, uuid: &[u8; 16], format: Format) -> Result<Data, Error> {
        let mut data = Data {
            files: Vec::new(),
            format,
            sign: sign(uuid, format),
            streams: Vec::new(),
            truncated: Vec::new(),
            others: Names::default(),
            unreadable: Names::default(),
            doubled: 0,
            damage: Mutex::default(),
        };
        let mut found = HashMap::new();
        let mut known = HashSet::new();
        for _ in 0..LISTINGS {
            let names = folder.names().map_err(|error| Error::Io { path: folder.path().into(), error })?;
            let streams = names.into_iter().filter(|n| *n != "metadata" && !n.as_bytes().starts_with(b"."));
            let fresh: Vec<OsString> = streams.filter(|name| known.insert(name.clone())).collect();
            let there = fresh.iter().filter(|name| data.look_at(folder, name, &mut found)).count();
            // What has gone meanwhile has made room for newer parts.
            if there == fresh.len() {
                break;
            }
        }
        for s in &mut data.streams {
            s.packets.sort_by_key(|p| (p.info.seq, p.file, p.at));
            let all = s.packets.len();
            s.packets.dedup_by_key(|p| p.info.seq);
            data.doubled += (all - s.packets.len()) as u64;
            // Each packet of function records has a clock of its own: time does not go back between them.
            let mut last = 0;
            for info in s.packets.iter_mut().map(|p| &mut p.info).filter(|i| i.functions.is_some()) {
                info.begin = info.begin.max(last);
                info.end = info.end.max(info.begin);
                last = info.end;
            }
        }
        data.streams.sort_by_key(|s| s.id);
        match data.damage().first {
            Some(Damage { path, at, what, .. }) if data.streams.is_empty() => Err(Error::Bad { path, at, what }),
            _ => Ok(data),
        }
    }

    /// Finds the packets of a file, if it is a stream of the trace; returns whether the file is there. `found` has the place of each stream.
    fn look_at(&mut self, folder: &Folder, name: &OsStr, found: &mut HashMap<StreamId, usize>) -> bool {
        let path = folder.path().join(name);
        let scanned = folder.read(name).and_then(|file| match self.is_stream(&file)? {
            true => self.scan(path, file, found).map(|()| true),
            // What was made and not written yet.
            false => Ok(file.metadata()?.len() == 0),
        });
        match scanned {
            Ok(true) => {}
            Ok(false) => self.others.add(name, None),
            // It was deleted just now to make room for newer packets.
            Err(e) if e.kind() == io::ErrorKind::NotFound => return false,
            Err(e) if folder.metadata(name).is_ok_and(|m| !m.is_file()) => self.others.add(name, Some(&e)),
            Err(e) => self.unreadable.add(name, Some(&e)),
        }
        true
    }

    /// Whether a file begins with the sign of the trace, or with as much of it as there is; or has it nearby, because its first
    /// packet is damaged.
    fn is_stream(&self, file: &File) -> io::Result<bool> {
        let mut head = [0; SIGN];
        let n = read_some(file, &mut head)?;
        if n > 0 && head[..n] == self.sign[..n] {
            return Ok(true);
        }
        let mut near = vec![0; if n == SIGN { NEAR } else { 0 }];
        let n = read_some(file, &mut near)?;
        Ok(near[..n].windows(SIGN).any(|w| w == self.sign))
    }

    /// Finds the packets of a stream's file. What was found before an error is kept.
    fn scan(&mut self, path: PathBuf, file: File, found: &mut HashMap<StreamId, usize>) -> io::Result<()> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.split('.').next().unwrap_or_default().to_string();
        let result = match self.packets(&path, &name, &file, found) {
            // Its writer has just truncated it.
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
            result => result,
        };
        self.files.push((path, file));
        result
    }

    fn packets(
        &mut self,
        path: &Path,
        name: &str,
        file: &File,
        found: &mut HashMap<StreamId, usize>,
    ) -> io::Result<()> {
        let (index, size) = (self.files.len() as u32, file.metadata()?.len());
        let mut at = 0;
        while at < size {
            let head = read_head(file, at, size)?;
            let own = head.starts_with(&self.sign);
            let read = Info::read(&head, self.format);
            let what = match read {
                Ok(_) if !own => "a packet of another trace".into(),
                Ok(i) if i.size > MAX_PACKET => format!("a packet of {} bytes (at most {MAX_PACKET})", i.size),
                Ok(i) if i.size <= size - at => {
                    self.add(Place { file: index, at, info: i }, name, found);
                    at += i.size;
                    continue;
                }
                Ok(i) => format!("a packet of {} bytes, of which {} are there", i.size, size - at),
                Err(e) => e.to_string(),
            };
            let next = self.next_head(file, at + 1, size)?;
            let cut = read == Err(BadPacket::Short) || own && matches!(read, Ok(i) if i.size <= MAX_PACKET);
            if next.is_none() && (cut || zeros(file, at, size)?) {
                self.truncated.push(Truncated { path: path.into(), at, rest: size - at });
                return Ok(());
            }
            let next = next.unwrap_or(size);
            self.damaged(path, at, what, next - at);
            at = next;
        }
        Ok(())
    }

    fn add(&mut self, place: Place, name: &str, found: &mut HashMap<StreamId, usize>) {
        let id = place.info.stream;
        let at = *found.entry(id).or_insert_with(|| {
            self.streams.push(Stream { id, name: name.into(), packets: Vec::new() });
            self.streams.len() - 1
        });
        self.streams[at].packets.push(place);
    }

    /// Where, at `from` or after it, the next whole packet of this trace begins.
    fn next_head(&self, file: &File, from: u64, size: u64) -> io::Result<Option<u64>> {
        let mut from = from;
        // It usually is near: the reads grow, so that little is read in vain.
        let mut bytes = vec![0; CHUNK >> 6];
        while from + self.format.head() as u64 <= size {
            let n = (size - from).min(bytes.len() as u64) as usize;
            file.read_exact_at(&mut bytes[..n], from)?;
            for (found, _) in bytes[..n].windows(SIGN).enumerate().filter(|(_, bytes)| **bytes == self.sign) {
                let at = from + found as u64;
                let head = read_head(file, at, size)?;
                if Info::read(&head, self.format).is_ok_and(|i| i.size <= MAX_PACKET && i.size <= size - at) {
                    return Ok(Some(at));
                }
            }
            if n < bytes.len() {
                break;
            }
            from += (n - SIGN + 1) as u64;
            bytes.resize((2 * n).min(CHUNK), 0);
        }
        Ok(None)
    }
}

/// How far from the beginning of a file the sign of the trace is searched for: more than a packet, which is full at 256 KiB.
const NEAR: usize = 1 << 20;

/// Bytes that are read at a time in a search.
const CHUNK: usize = 64 << 10;

/// The header of a packet at `at`, or as much of it as there is.
fn read_head(file: &File, at: u64, size: u64) -> io::Result<Vec<u8>> {
    let mut head = vec![0; size.saturating_sub(at).min(FUNCTIONS_HEADER as u64) as usize];
    file.read_exact_at(&mut head, at)?;
    Ok(head)
}

/// Whether a file holds nothing but zeros from `at` on: what a filesystem leaves of a write that a crash of the machine interrupted.
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

/// Reads from the beginning of a file, up to the buffer's or the file's end. Returns the number of bytes.
fn read_some(file: &File, into: &mut [u8]) -> io::Result<usize> {
    let mut n = 0;
    while n < into.len() {
        match file.read_at(&mut into[n..], n as u64) {
            Ok(0) => break,
            Ok(more) => n += more,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(n)
}
