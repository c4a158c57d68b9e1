//! A trace of trapline, opened: its metadata, where its packets are, and whether its end is there.

use crate::model::Metadata;
use crate::own::{Data, Error};
use crate::store::OWN;
use crate::{classes, packet, read};
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};

/// An open trace.
#[derive(Debug)]
pub struct Trace {
    /// Its directory.
    pub dir: PathBuf,
    /// What it says of itself.
    pub metadata: Metadata,
    /// Which class of it is which of this program's.
    pub known: Vec<Option<u16>>,
    /// Its packets.
    pub data: Data,
    /// What the recorder counted; `None` where it did not end in order.
    pub end: Option<String>,
    /// Somebody is still writing it.
    pub live: bool,
}

impl Trace {
    /// What the recorder counted under this name; `None` where it did not end in order.
    pub fn counted(&self, name: &str) -> Option<u64> {
        let mut lines = self.end.as_ref()?.lines();
        lines.find_map(|l| l.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
    }
}

/// What is found in a directory.
#[derive(Debug)]
pub enum Found {
    /// A trace of trapline whose classes are this program's.
    Own(Box<Trace>),
    /// A trace of another tracer, or of a trapline with other classes: to be read by what its metadata says.
    Other,
}

/// Opens the trace in `dir`. The end of a file that holds only a part of a packet is cut off, unless somebody is writing it: what
/// a killed recording has left can then be read by other tools too. (Where the file cannot be written, it is only left out.)
pub fn open(dir: &Path) -> Result<Found, Error> {
    let metadata = read::read_metadata(dir).map_err(|e| Error::Metadata(e.to_string()))?;
    let known = classes::known(&metadata);
    let own = metadata.env_str("tracer_name") == Some("trapline")
        && metadata.packet_header.as_ref() == Some(&classes::packet_header())
        && !known.is_empty();
    if !own {
        return Ok(Found::Other);
    }
    // Asked before the files are looked at: what was written in between is no torn end. Held only while somebody looks.
    let lock = File::open(dir.join(OWN).join("lock"));
    let locked = lock.as_ref().is_ok_and(|l| l.try_lock_shared().is_err());
    let data = Data::open(dir)?;
    // Whoever has written the end writes no more.
    let live = locked && !dir.join(OWN).join("end").exists();
    if !locked {
        for torn in &data.torn {
            let _ = OpenOptions::new().write(true).open(&torn.path).and_then(|f| f.set_len(torn.at));
        }
    }
    let end = std::fs::read_to_string(dir.join(OWN).join("end")).ok();
    Ok(Found::Own(Box::new(Trace { dir: dir.into(), metadata, known, data, end, live })))
}

/// Whether somebody is writing the trace in `dir` now.
pub fn is_being_written(dir: &Path) -> bool {
    File::open(dir.join(OWN).join("lock")).is_ok_and(|l| l.try_lock_shared().is_err())
}

/// Everything in a directory that is nothing but a trace of trapline, in the order in which it can be removed; `None` where there
/// is anything else in it.
pub fn files_of(dir: &Path) -> Option<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).ok()? {
        let path = entry.ok()?.path();
        let name = path.file_name()?.to_string_lossy().into_owned();
        if path.is_dir() && !path.is_symlink() {
            if name == OWN {
                for inner in std::fs::read_dir(&path).ok()? {
                    let inner = inner.ok()?.path();
                    let known = ["lock", "end", "end.new", "metadata", "labels.json"];
                    if !known.iter().any(|k| inner.file_name().is_some_and(|n| n == *k)) {
                        return None;
                    }
                    found.push(inner);
                }
            } else if name.starts_with("snapshot-") {
                found.extend(files_of(&path)?);
            } else {
                return None;
            }
        } else if name != "metadata" && !is_stream(&path) {
            return None;
        }
        found.push(path);
    }
    let trace =
        found.iter().any(|p| p.file_name().is_some_and(|n| n == OWN || n.to_string_lossy().starts_with("snapshot-")));
    trace.then_some(found)
}

fn is_stream(path: &Path) -> bool {
    let mut head = [0; packet::HEADER];
    let read = File::open(path).and_then(|mut f| f.read_exact(&mut head));
    read.is_ok() && packet::Info::read(&head).is_ok()
}
