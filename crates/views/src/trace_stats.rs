//! `--as stats`: what is in a trace, in numbers: as a whole, per stream, per probe.
//!
//! Events are counted as they come; what only the trace itself knows (streams, losses, where it comes from) is given. Memory is
//! bounded: at most [`MAX_FOREIGN`] names of probes that no schema describes; the events of further ones are counted together.

mod table;

use crate::View;
use crate::write::json as w;
use events::Event;
use events::functions::{self, Kind};
use events::names::Names;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The most names of probes that no schema describes.
pub const MAX_FOREIGN: usize = 10_000;
/// The most bytes of the names of hosts and commands of several traces.
const MAX_JOINED: usize = 1000;

/// What is known of the trace as a whole. What is not known is `None` or empty, and not shown.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The command that was traced.
    pub command: String,
    /// The backend that recorded it.
    pub backend: String,
    /// The machine.
    pub host: String,
    /// Its kernel's release, and its architecture.
    pub kernel: String,
    /// What wrote the trace, and its version.
    pub tracer: String,
    /// First and last time of its events, ns of the trace's clock.
    pub span: Option<(u64, u64)>,
    /// What to add to a time of the trace's clock for ns since the epoch.
    pub realtime_offset: Option<i64>,
    /// Seconds to add to UTC for the time that is shown.
    pub utc_offset: i64,
    /// Whether the recording came to its end. What is counted at the end is not known otherwise.
    pub ended: bool,
    /// Whether the recording is still running.
    pub live: bool,
    /// What was written and is not there any more.
    pub missing: Vec<Missing>,
    /// Bytes after the last whole packets.
    pub truncated: u64,
    /// Events that could not be written, because the disk was full or worse.
    pub unwritten: u64,
    /// Events that were overwritten by newer ones (`--max-size`, `--flight`).
    pub overwritten: Option<u64>,
    /// Events whose time was set to that of the event before them.
    pub clamped: Option<u64>,
}

impl Trace {
    /// Takes another trace, called `name`, in, which is shown with it as one.
    pub fn join(&mut self, other: Trace, name: &str) {
        let both = [
            (&mut self.command, other.command),
            (&mut self.backend, other.backend),
            (&mut self.host, other.host),
            (&mut self.kernel, other.kernel),
            (&mut self.tracer, other.tracer),
        ];
        for (all, text) in both {
            let known = all.split(", ").any(|one| one == text);
            if !known && all.len() < MAX_JOINED {
                *all += if all.is_empty() { "" } else { ", " };
                *all += &text;
            }
        }
        self.span = joined(self.span, other.span);
        self.ended &= other.ended;
        self.live |= other.live;
        let missing = other.missing.into_iter().map(|m| Missing { stream: format!("{name}/{}", m.stream), ..m });
        self.missing.extend(missing);
        self.truncated = self.truncated.saturating_add(other.truncated);
        self.unwritten = self.unwritten.saturating_add(other.unwritten);
        let sum = |a: Option<u64>, b: Option<u64>| a.map_or(b, |n| Some(n.saturating_add(b.unwrap_or(0))));
        self.overwritten = sum(self.overwritten, other.overwritten);
        self.clamped = sum(self.clamped, other.clamped);
    }
}

/// What is missing of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// The name of its file.
    pub stream: String,
    /// Packets.
    pub packets: u64,
    /// Events in them, where that is known.
    pub events: Option<u64>,
}

/// What is known of a stream.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// The name of its file.
    pub name: String,
    /// Packets.
    pub packets: u64,
    /// Events, where they were counted.
    pub events: Option<u64>,
    /// Bytes of its packets, with their heads.
    pub bytes: u64,
    /// Events that were lost before they could be stored.
    pub discarded: u64,
    /// First and last time of its events, ns of the trace's clock.
    pub span: Option<(u64, u64)>,
}

/// What the programs of an enabling have counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Enabling {
    /// Probe and filter.
    pub name: String,
    /// Events that happened.
    pub seen: u64,
    /// Events that found a ring full.
    pub dropped: u64,
    /// Events that the filter rejected.
    pub filtered: u64,
    /// Runs that the kernel skipped because the program was already running on that CPU.
    pub missed: u64,
    /// Events that the recorder has kept; `None` where it has not counted them.
    pub kept: Option<u64>,
}

impl Enabling {
    /// Events that were recorded: as counted, else what was not lost before.
    pub fn recorded(&self) -> u64 {
        self.kept.unwrap_or(self.seen.saturating_sub(self.dropped).saturating_sub(self.filtered))
    }

    /// From `SEEN DROPPED FILTERED MISSED NAME`.
    pub fn parse(text: &str) -> Option<Enabling> {
        let mut words = text.splitn(5, ' ');
        let mut number = || words.next()?.parse().ok();
        let (seen, dropped, filtered, missed) = (number()?, number()?, number()?, number()?);
        Some(Enabling { name: words.next()?.to_owned(), seen, dropped, filtered, missed, kept: None })
    }
}

/// What was counted of a probe.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    events: u64,
    bytes: u64,
    span: Option<(u64, u64)>,
    /// Events that the recorder took, where that is known.
    taken: Option<u64>,
    /// Events that found a ring full, where that is known.
    dropped: Option<u64>,
}

impl Count {
    fn add(&mut self, bytes: u64, time: u64) {
        self.events += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.span = joined(self.span, Some((time, time)));
    }

    fn join(&mut self, other: &Count) {
        self.events += other.events;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.span = joined(self.span, other.span);
        let sum = |a: Option<u64>, b: Option<u64>| a.map_or(b, |n| Some(n.saturating_add(b.unwrap_or(0))));
        (self.taken, self.dropped) = (sum(self.taken, other.taken), sum(self.dropped, other.dropped));
    }

    /// Events that the recorder took and that are not there.
    fn missing(&self) -> Option<u64> {
        self.taken.map(|t| t.saturating_sub(self.events))
    }
}

fn joined(a: Option<(u64, u64)>, b: Option<(u64, u64)>) -> Option<(u64, u64)> {
    match (a, b) {
        (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
        (a, b) => a.or(b),
    }
}

/// The view: silent until the end.
pub struct TraceStats {
    trace: Trace,
    enablings: Vec<Enabling>,
    streams: Vec<Stream>,
    /// By class id.
    own: Vec<Count>,
    foreign: BTreeMap<String, Count>,
    /// Events for which there was no room in `foreign`.
    others: Count,
}

impl TraceStats {
    /// Nothing counted yet.
    pub fn new(trace: Trace) -> TraceStats {
        TraceStats {
            trace,
            enablings: Vec::new(),
            streams: Vec::new(),
            own: vec![Count::default(); events::generated::SCHEMAS.len()],
            foreign: BTreeMap::new(),
            others: Count::default(),
        }
    }

    /// Of a recording that is followed: its streams have more in the end than now, and are left out.
    #[must_use]
    pub fn followed(mut self) -> TraceStats {
        if self.trace.live {
            self.streams.clear();
            self.trace.span = None;
        }
        self
    }

    /// Adds what was counted of an enabling.
    pub fn enabling(&mut self, enabling: Enabling) {
        self.enablings.push(enabling);
    }

    /// Adds a stream; they are shown in the order in which they were added.
    pub fn stream(&mut self, stream: Stream) {
        self.streams.push(stream);
    }

    /// Counts an event of `bytes` bytes at `time` (ns) of a probe that no schema describes.
    pub fn foreign(&mut self, probe: &str, bytes: u64, time: u64) {
        if let Some(count) = self.foreign.get_mut(probe) {
            count.add(bytes, time);
        } else if self.foreign.len() < MAX_FOREIGN {
            self.foreign.entry(probe.to_owned()).or_default().add(bytes, time);
        } else {
            self.others.add(bytes, time);
        }
    }

    /// Says that the recorder took `n` events of `probe` (`syscall:openat`), for the number of those that are missing. Only for a
    /// trace of which every event is counted. False where no schema has this name.
    pub fn taken(&mut self, probe: &str, n: u64) -> bool {
        self.by_name(probe).map(|c| c.taken = Some(c.taken.unwrap_or(0) + n)).is_some()
    }

    /// Says that `n` events of `probe` found a ring full while it was recorded. False where no schema has this name.
    pub fn dropped(&mut self, probe: &str, n: u64) -> bool {
        self.by_name(probe).map(|c| c.dropped = Some(c.dropped.unwrap_or(0) + n)).is_some()
    }

    fn by_name(&mut self, probe: &str) -> Option<&mut Count> {
        let id = events::generated::SCHEMAS.iter().position(|s| probe_name(s) == probe);
        let id = id.or_else(|| events::dynamic::by_name(probe).map(usize::from))?;
        Some(self.count(id))
    }

    fn count(&mut self, id: usize) -> &mut Count {
        if id >= self.own.len() {
            self.own.resize(id + 1, Count::default());
        }
        &mut self.own[id]
    }

    /// Name and counts of each probe, the most bytes first.
    fn probes(&self) -> Vec<(String, Count)> {
        let own = self
            .own
            .iter()
            .enumerate()
            .filter(|(_, c)| c.events > 0 || c.taken.is_some_and(|t| t > 0) || c.dropped.is_some_and(|t| t > 0));
        // Classes of one name differ in what is captured.
        let mut by_name: BTreeMap<String, Count> = BTreeMap::new();
        for (id, c) in own {
            if let Some(schema) = events::registry::by_id(id as u16) {
                by_name.entry(probe_name(schema)).or_default().join(c);
            }
        }
        let mut all: Vec<(String, Count)> = by_name.into_iter().collect();
        all.extend(self.foreign.iter().map(|(name, c)| (name.clone(), *c)));
        order::by(&mut all, |a, b| (b.1.bytes, b.1.events, &a.0).cmp(&(a.1.bytes, a.1.events, &b.0)));
        if self.others.events > 0 {
            all.push(("(others)".to_owned(), self.others));
        }
        all
    }

    /// First and last time: what was given of the trace, else of what was counted.
    fn span(&self) -> Option<(u64, u64)> {
        let counted = || self.probes().iter().fold(None, |span, (_, c)| joined(span, c.span));
        let streams = || self.streams.iter().fold(None, |span, s| joined(span, s.span));
        self.trace.span.or_else(streams).or_else(counted)
    }

    /// What to add to a time of the trace's clock for ns since the epoch.
    pub(crate) fn realtime_offset(&self) -> Option<i64> {
        self.trace.realtime_offset
    }

    /// Events of enabled probes, and trapline's own.
    pub(crate) fn events(&self) -> (u64, u64) {
        let is_own = |id: usize| {
            let schema = u16::try_from(id).ok().and_then(events::registry::by_id);
            schema.is_some_and(|s| s.class == events::Class::Process)
        };
        let (mut enabled, mut own) = (self.others.events, 0);
        for (id, c) in self.own.iter().enumerate().filter(|(_, c)| c.events > 0) {
            *(if is_own(id) { &mut own } else { &mut enabled }) += c.events;
        }
        (self.foreign.values().fold(enabled, |n, c| n + c.events), own)
    }

    /// Events that the recorder has written and that are not there: of the streams, or, where those have no counts, of all probes.
    fn missing_events(&self) -> Option<u64> {
        let of_streams = self.trace.missing.iter().filter_map(|m| m.events).reduce(u64::saturating_add);
        let of_probes = self.probes().iter().filter_map(|(_, c)| c.missing()).reduce(u64::saturating_add);
        let gone = self.trace.overwritten.unwrap_or(0).saturating_add(self.trace.unwritten);
        of_streams.or(of_probes.map(|n| n.saturating_sub(gone)))
    }

    /// Whether the trace is all that was written.
    fn is_whole(&self) -> bool {
        let t = &self.trace;
        t.ended && t.missing.is_empty() && t.truncated == 0 && self.missing_events().is_none_or(|n| n == 0)
    }

    fn discarded(&self) -> u64 {
        self.streams.iter().fold(0, |n, s| n.saturating_add(s.discarded))
    }

    /// Everything as JSON; docs/REPORT.md describes the members.
    pub fn to_json(&self) -> Value {
        let t = &self.trace;
        let known = |s: &str| (!s.is_empty()).then(|| s.to_owned());
        let first = |span: Option<(u64, u64)>| span.map(|s| s.0);
        let last = |span: Option<(u64, u64)>| span.map(|s| s.1);
        let span = self.span();
        let stream = |s: &Stream| {
            json!({
                "name": s.name, "packets": s.packets, "events": s.events, "bytes": s.bytes, "discarded": s.discarded,
                "first_ns": first(s.span), "last_ns": last(s.span),
            })
        };
        let probe = |(name, c): &(String, Count)| {
            json!({
                "name": name, "events": c.events, "bytes": c.bytes, "missing": c.missing(), "dropped": c.dropped,
                "first_ns": first(c.span), "last_ns": last(c.span),
            })
        };
        let enabling = |e: &Enabling| {
            json!({
                "name": e.name, "seen": e.seen, "recorded": e.recorded(), "dropped": e.dropped, "filtered": e.filtered,
                "missed": e.missed,
            })
        };
        let missing = |m: &Missing| json!({ "stream": m.stream, "packets": m.packets, "events": m.events });
        json!({
            "enablings": self.enablings.iter().map(enabling).collect::<Vec<_>>(),
            "command": known(&t.command),
            "backend": known(&t.backend),
            "host": known(&t.host),
            "kernel": known(&t.kernel),
            "tracer": known(&t.tracer),
            "first_ns": first(span),
            "last_ns": last(span),
            "realtime_offset_ns": t.realtime_offset,
            "complete": self.is_whole(),
            "live": t.live,
            "missing": t.missing.iter().map(missing).collect::<Vec<_>>(),
            "missing_events": self.missing_events(),
            "torn_bytes": t.truncated,
            "events": self.events().0,
            "bookkeeping": self.events().1,
            "discarded": self.discarded(),
            "unwritten": t.unwritten,
            "overwritten": t.overwritten,
            "clamped": t.clamped,
            "streams": self.streams.iter().map(stream).collect::<Vec<_>>(),
            "probes": self.probes().iter().map(probe).collect::<Vec<_>>(),
        })
    }

    /// Appends [`TraceStats::to_json`] on one line that is safe to show on a terminal.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        w::value(out, &self.to_json());
        out.push(b'\n');
    }
}

fn probe_name(s: &events::Schema) -> String {
    s.probe().into_owned()
}

impl View for TraceStats {
    fn event(&mut self, ev: &Event<'_>, _: &dyn Names, _: &mut Vec<u8>) {
        let bytes = match functions::kind(ev.schema) {
            None => ev.bytes.len(),
            Some(Kind::Entry | Kind::Exit) => functions::RECORD,
            // No events that were recorded: what is missing, the streams say.
            Some(Kind::Lost | Kind::Begun) => return,
        };
        self.count(usize::from(ev.schema.id)).add(bytes as u64, ev.time());
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        table::write(self, out);
    }
}
