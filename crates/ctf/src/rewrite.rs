//! Writes a trace anew into another directory, with other texts ([`events::redact`]).
//!
//! ```text
//! packets ─► events ─► Rules ─► packets with the numbers, times and losses of the old ones ─► Files
//! metadata, end record: the caller's, and classes with other names
//! ```
//!
//! Invariant: nothing is copied that is not known. What is in the directory beside the streams is left out, and so are classes that this
//! program does not have.

use crate::classes;
use crate::end::End;
use crate::format::{self, Format};
use crate::labels;
use crate::model::{EnvValue, Metadata, StreamClass};
use crate::native::{self, Place};
use crate::packet::{Info, Packet};
use crate::print;
use crate::records::{self, records_of};
use crate::store::{Dir, Files, Limit};
use crate::trace::Trace;
use events::rules::Rules;
use events::{Event, redact, registry};
use std::collections::BTreeSet;
use std::io;

/// A trace, and what becomes of it.
pub struct Rewrite<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// About the texts of its events.
    pub rules: &'a dyn Rules,
    /// The identity of what is written.
    pub uuid: [u8; 16],
    /// What is said of it; the version of the format is set here.
    pub env: Vec<(String, EnvValue)>,
    /// Its end record, if it has one.
    pub end: Option<End>,
}

impl Rewrite<'_> {
    /// Writes it into a directory that has nothing yet. `keeps` has each event as it was, in the order of its stream, and says whether it is
    /// written. Damaged packets and events are left out.
    ///
    /// # Errors
    /// The directory cannot be written to.
    pub fn write(&self, mut dir: Dir, keeps: &mut dyn FnMut(&Event<'_>) -> bool) -> io::Result<()> {
        let format = Format::of(&self.trace.metadata).unwrap_or(Format::V2).max(Format::V2);
        let is_packed = format == Format::V5;
        let labels = if is_packed { String::new() } else { labels::json() };
        dir.describe(&print::tsdl(&self.metadata(format)), &labels, 0)?;
        let mut files = Files::new(dir, Limit::None).packed(is_packed);
        let mut content = Vec::new();
        for place in self.trace.data.streams.iter().flat_map(|s| &s.packets) {
            if self.trace.data.load_or_note(place, &mut content) {
                files.put(&self.packet(place, &mut content, keeps))?;
            }
        }
        match &self.end {
            Some(end) => files.store().end(&end.text(), u64::MAX),
            None => Ok(()),
        }
    }

    fn metadata(&self, format: Format) -> Metadata {
        let old = &self.trace.metadata;
        let mut env = self.env.clone();
        env.retain(|(name, _)| name != format::KEY);
        env.push((format::KEY.into(), EnvValue::Int(format.version())));
        let known = self.trace.known.iter().flatten().filter_map(|id| registry::by_id(*id));
        let ids: BTreeSet<u16> = known.map(|s| redact::class(s, self.rules).unwrap_or(s).id).collect();
        let events = ids.into_iter().filter_map(registry::by_id).map(classes::event_class).collect();
        let mut streams = vec![StreamClass { events, ..classes::stream_class() }];
        if classes::has_functions(old) {
            streams.push(classes::functions_class(classes::has_values(old)));
        }
        Metadata { uuid: Some(self.uuid), packet_header: Some(classes::packet_header()), env, streams, ..old.clone() }
    }

    /// A packet in place of another, of which this is the content.
    fn packet(&self, place: &Place, old: &mut [u8], keeps: &mut dyn FnMut(&Event<'_>) -> bool) -> Packet {
        let head = self.trace.data.head_of(&place.info);
        let (mut bytes, events) = match place.info.functions {
            Some(of) => self.records(of.values, old.get(head..).unwrap_or_default(), &place.info),
            None => self.events(place, old, head, keeps),
        };
        let content = bytes.len() as u64;
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let info = Info { uuid: self.uuid, content, size: bytes.len() as u64, unpacked: None, ..place.info };
        info.write(&mut bytes);
        Packet { stream: info.stream, bytes, events }
    }

    fn records(&self, values: bool, old: &[u8], info: &Info) -> (Vec<u8>, u64) {
        let mut bytes = vec![0; info.head()];
        match values {
            true => bytes.extend(records::without_values(old, info, &|v| redact::leaves_out(v, self.rules))),
            false => bytes.extend_from_slice(old),
        }
        (bytes, records_of(info))
    }

    fn events(
        &self,
        place: &Place,
        old: &mut [u8],
        mut at: usize,
        keeps: &mut dyn FnMut(&Event<'_>) -> bool,
    ) -> (Vec<u8>, u64) {
        let (mut bytes, mut new, mut events) = (vec![0; place.info.head()], Vec::new(), 0);
        while at < old.len()
            && let Ok((_, len)) = native::event(old, at, &self.trace.known, &place.info)
        {
            if let Ok(ev) = Event::parse(&old[at..at + len])
                && keeps(&ev)
            {
                redact::event(&ev, self.rules, &mut new);
                bytes.resize(bytes.len().next_multiple_of(8), 0);
                bytes.extend_from_slice(&new);
                events += 1;
            }
            at = (at + len).next_multiple_of(8);
        }
        (bytes, events)
    }
}
