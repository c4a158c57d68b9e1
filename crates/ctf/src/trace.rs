//! A trace of trapline, opened: its metadata, where its packets are, what its recorder counted, and what is missing of it.

use crate::end::{self, End};
use crate::folder::Folder;
use crate::format::{Format, Unknown};
use crate::model::Metadata;
use crate::native::{Data, Demangle, Error};
use crate::store::OWN;
use crate::{classes, generic};
use events::functions::Table;
use events::rules::{self, Rules, What};
use events::{Schema, StreamId, functions};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the metadata calls the name of the host.
pub const HOST: &str = "hostname";

/// An open trace.
#[derive(Debug)]
pub struct Trace {
    /// Its directory.
    pub dir: PathBuf,
    /// Its metadata.
    pub metadata: Metadata,
    /// The class of this program for each of its classes.
    pub known: Vec<Option<u16>>,
    /// Its packets.
    pub data: Data,
    /// What the recorder counted; `None` where the recording has not ended, or was killed.
    pub end: Option<End>,
    /// It is still being written.
    pub live: bool,
    /// Streams of which packets are missing that the recorder has written.
    pub missing: Vec<Missing>,
    /// Texts that are not to be shown.
    pub rules: Option<Arc<dyn Rules>>,
    /// What its host is called, where it has another name than the rules give it.
    pub host: Option<String>,
}

/// What is missing of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The name of its file.
    pub stream: String,
    /// Packets.
    pub packets: u64,
    /// Events in them, where the recorder has counted them.
    pub events: Option<u64>,
}

impl Trace {
    /// Whether the trace is all that was recorded: it has an end, and nothing of it is missing, truncated or damaged, as
    /// far as it has been read.
    pub fn is_whole(&self) -> bool {
        let data = &self.data;
        self.end.is_some()
            && self.missing.is_empty()
            && data.truncated.is_empty()
            && data.unreadable.count == 0
            && data.damage().places == 0
    }

    /// What its metadata says under this name, to be shown; empty where it says nothing.
    pub fn said(&self, name: &str) -> String {
        if let (HOST, Some(host)) = (name, &self.host) {
            return host.clone();
        }
        let what = match name {
            HOST => What::Host,
            "command" => What::CommandLine,
            _ => What::Name,
        };
        self.shown(what, self.metadata.env_str(name).unwrap_or_default())
    }

    /// A text of the trace, to be shown.
    pub fn shown(&self, what: What, text: &str) -> String {
        self.rules.as_ref().map_or_else(|| text.into(), |rules| rules::string(&**rules, what, text).into_owned())
    }

    /// The functions that records have by number, with the names that are to be shown ([`Data::functions`]).
    pub fn functions(&self, demangle: Demangle) -> Table {
        self.data.functions(&self.known, demangle, self.rules.clone())
    }

    /// The classes of its events, as this program has them: those of function records too.
    pub fn classes(&self) -> impl Iterator<Item = &'static Schema> + '_ {
        let known = self.known.iter().flatten().filter_map(|id| events::registry::by_id(*id));
        let functions = [functions::entry, functions::exit, functions::lost, functions::begun];
        let has = classes::has_functions(&self.metadata);
        let values = classes::has_values(&self.metadata).then(functions::with_values);
        known.chain(functions.into_iter().filter(move |_| has).map(|class| class())).chain(values.into_iter().flatten())
    }

    /// Events that were lost before they could be stored, over all streams: the counters of the packets, or of the end record, which includes
    /// streams and packets that are missing.
    pub fn discarded(&self) -> u64 {
        let said = self.end.iter().flat_map(|e| &e.streams).fold(0u64, |n, s| n.saturating_add(s.discarded));
        self.data.discarded().max(said)
    }

    /// The lost events ([`Trace::discarded`]); None for a trace without an end record in which none has been counted so far.
    pub fn lost(&self) -> Option<u64> {
        Some(self.discarded()).filter(|n| *n > 0 || self.end.is_some())
    }
}

/// What is found in a directory.
#[derive(Debug)]
pub enum Found {
    /// A trace of trapline whose classes are this program's.
    Native(Box<Trace>),
    /// A trace of another tracer, or of a trapline with other classes: to be read by its metadata.
    Foreign,
}

/// The version of the format, if a trapline has written a trace with this metadata in packets as [`crate::packet`] reads them.
///
/// # Errors
/// A later version than is known.
pub(crate) fn native_format(metadata: &Metadata) -> Result<Option<Format>, Unknown> {
    if metadata.env_str("tracer_name") != Some("trapline") {
        return Ok(None);
    }
    let format = Format::of(metadata)?;
    Ok(classes::has_packets(metadata, format).then_some(format))
}

/// Opens the trace in `dir`. Nothing in it is changed, and no link in it is followed.
///
/// # Errors
/// A directory or metadata that cannot be read, a trace of which no packet can be, and one of a later format.
pub fn open(dir: &Path) -> Result<Found, Error> {
    let failed = |path: &Path, error| Error::Io { path: path.into(), error };
    let folder = Folder::open(dir).map_err(|e| failed(dir, e))?;
    let metadata = generic::read_metadata(&folder)?;
    let format = native_format(&metadata)?;
    let known = classes::known(&metadata);
    let (Some(format), Some(uuid), false) = (format, metadata.uuid, known.is_empty()) else {
        return Ok(Found::Foreign);
    };
    // Tested before the files are read: what is written in between is not a truncated packet. The lock is held only for the test.
    let lock = lock_of(&folder);
    let locked = lock.as_ref().is_ok_and(|l| l.try_lock_shared().is_err());
    let mut data = Data::open(&folder, &uuid, format)?;
    let end = end_of(&folder, format);
    if locked && end.is_some() {
        // After the end record nothing more is written, but packets may have been written before it, after the files were read.
        data = Data::open(&folder, &uuid, format)?;
    }
    let live = locked && end.is_none();
    let mut trace =
        Trace { dir: dir.into(), metadata, known, data, end, live, missing: Vec::new(), rules: None, host: None };
    trace.missing = missing(&trace);
    Ok(Found::Native(Box::new(trace)))
}

/// The lock of a trace, which its recorder holds.
pub(crate) fn lock_of(folder: &Folder) -> io::Result<File> {
    folder.inner(OWN)?.read("lock")
}

fn end_of(folder: &Folder, format: Format) -> Option<End> {
    let mut bytes = Vec::new();
    folder.inner(OWN).ok()?.read("end").ok()?.take(end::MAX).read_to_end(&mut bytes).ok()?;
    End::parse(&String::from_utf8_lossy(&bytes), format)
}

/// Whether a trace is being written in `dir` now.
pub fn is_being_written(dir: &Path) -> bool {
    let lock = Folder::open(dir).and_then(|folder| lock_of(&folder));
    lock.is_ok_and(|l| l.try_lock_shared().is_err())
}

/// What the end record has of each stream and the files have not; without one, the packets whose numbers are missing.
fn missing(trace: &Trace) -> Vec<Missing> {
    let Some(end) = &trace.end else {
        let gaps = trace.data.streams.iter().map(|s| (s, s.gap()));
        return gaps
            .filter(|(_, gap)| *gap > 0)
            .map(|(s, packets)| Missing { stream: s.name.clone(), packets, events: None })
            .collect();
    };
    let there: HashMap<StreamId, u64> = trace.data.streams.iter().map(|s| (s.id, s.packets.len() as u64)).collect();
    let mut seen = HashSet::new();
    let less = end.streams.iter().map(|s| (s, there.get(&s.id).copied().unwrap_or(0)));
    less.filter(|(s, there)| *there < s.packets && seen.insert(s.id))
        .map(|(s, there)| Missing {
            stream: s.name.clone(),
            packets: s.packets - there,
            events: Some(s.events.saturating_sub(trace.data.count(&trace.known, s.id))),
        })
        .collect()
}
