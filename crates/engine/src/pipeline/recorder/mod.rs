//! Keeps events as a trace on disk, or the last ones in memory.
//!
//! ```text
//! events, in order of time ─► a PacketWriter per stream ─► packets ─► queue (bounded) ─► writer thread ─► Files | Flight
//! ```
//!
//! The thread that adds events never waits for the disk: the queue is bounded, and [`Recorder::has_room`] reports when to leave
//! events where they are. Packets are closed when they are full, and after half a second in any case, so that little is lost
//! when trapline is killed. Where no thread can be started, nothing is written, and every event is counted as unwritten.

mod function_records;
mod metadata;
mod queue;
mod writer;

use crate::error::{Error, Result};
use crate::pipeline::filter::RecorderFilter;
use crate::stats::Losses;
use crate::stats::totals::{StreamTotals, Totals};
use ctf::folder::reason;
use ctf::packet::{self, PacketWriter};
use ctf::store::{Dir, Files, Flight, Limit, Snapshots, packet_size};
use events::StreamId;
use events::functions::Moment;
pub use queue::News;
use queue::{Job, Shared};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use sys::{process, time};
pub use writer::least_size;
use writer::{Target, Writer};

/// The kernel reports mappings late, and for each processor on its own: they wait this long for older ones, ns.
const LATE: u64 = 100_000_000;
/// Bytes of packets that may wait for the disk.
const QUEUE: usize = 64 << 20;
/// A packet is closed after this time, ns, full or not: together with the writer's delay, a killed trapline loses less than a second.
const AGE: u64 = 500_000_000;
/// The most function records of a stream that are counted as lost: the number comes from the traced process, and is added to others.
const MOST_LOST: u64 = 1 << 48;
/// The interval between two checks of the packets' age, ns.
const TICK: u64 = 20_000_000;

/// Where events are kept.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The directory of the trace.
    pub dir: PathBuf,
    /// The most bytes on disk; the oldest packets are deleted.
    pub max_size: Option<u64>,
    /// Flight recorder: how many bytes of the newest events are kept in memory.
    pub flight: Option<u64>,
    /// What the trace is of, for its metadata: the command line, words, and the backend.
    pub command: String,
    /// The backend.
    pub backend: String,
    /// Classes of events that were made at run time.
    pub classes: Vec<&'static events::Schema>,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC, ns.
    pub realtime_offset: i64,
    /// Local time zone: seconds to add to UTC.
    pub utc_offset: i64,
    /// The calls that were asked for (`-e`), where others were recorded too because names of descriptors need them.
    pub select: Option<String>,
    /// It is of the whole machine: whether in part only.
    pub machine_in_part: Option<bool>,
    /// Calls have no start (`--no-duration`).
    pub no_duration: bool,
    /// Packets are compressed: of a trace without calls and without function records.
    pub packed: bool,
    /// The filter that calls had to pass (`--where`), and its parameters.
    pub filter: Option<(String, Vec<String>)>,
    /// Bytes shown of a string, of which the filter may have wanted more.
    pub string: usize,
    /// What else is said of the trace, by name.
    pub said: Vec<(String, String)>,
}

impl Config {
    /// Whether function records may have values.
    pub fn has_values(&self) -> bool {
        self.classes.iter().any(|c| c.name == events::values::CLASS)
    }
}

/// A handle for threads that do not add events: requests snapshots, adds mappings, and returns the news.
#[derive(Clone)]
pub struct Monitor(Arc<Shared>);

impl Monitor {
    /// Requests that the events in memory be written; a [`News::Snapshot`] follows.
    pub fn snapshot(&self) {
        self.0.queue().snapshot_wanted = true;
    }
    /// Keeps an encoded event of a mapping.
    pub fn mapping(&self, event: &[u8]) {
        self.0.maps.lock().unwrap_or_else(PoisonError::into_inner).push(event.to_vec());
    }
    /// Sets how many records of mappings the kernel has lost so far.
    pub fn lost_mappings(&self, n: u64) {
        self.0.queue().lost_mappings = n;
    }
    /// Adds a line to the record of the end.
    pub fn say(&self, line: String) {
        self.0.queue().counts.push(line);
    }
    /// The news since the last call.
    pub fn news(&self) -> Vec<News> {
        std::mem::take(&mut self.0.queue().news)
    }
}

/// A stream that is being recorded.
struct Stream {
    packets: PacketWriter,
    /// Events that were taken.
    taken: u64,
}

/// The time stamp counter, as far as it is known.
#[derive(Clone, Copy)]
struct Tsc {
    first: Moment,
    last: Moment,
    /// How far the two were apart when the metadata was written, ns.
    described: u64,
}

/// Where packets go.
enum Outlet {
    /// Nowhere yet: the thread starts with the first packet, because a process that will fork should have no threads.
    Waiting(Box<Writer>),
    /// Into the queue, from which the writer thread takes them.
    Thread(writer::Thread),
    /// To a writer without a thread, which only counts them, or keeps them in memory.
    Inline(Box<Writer>),
    /// The writer has ended.
    Lost,
}

/// Records events.
pub struct Recorder {
    shared: Arc<Shared>,
    outlet: Outlet,
    spawn: writer::Spawn,
    streams: BTreeMap<StreamId, Stream>,
    /// Mappings that wait for older ones: time, event.
    maps: Vec<(u64, Vec<u8>)>,
    uuid: [u8; 16],
    /// The size at which a packet is full, bytes.
    packet: usize,
    began: u64,
    next_tick: u64,
    taken: Vec<u64>,
    first_event: Option<u64>,
    full: bool,
    filter: Option<RecorderFilter>,
    /// The clock of function records, once there are any.
    tsc: Option<Tsc>,
    /// Events that were lost before they came here, by class.
    dropped: Vec<(u16, u64)>,
    /// Function records may have values.
    values: bool,
    begun: Arc<Begun>,
}

fn cannot(path: &Path, e: &io::Error) -> Error {
    let todo = match e.kind() {
        io::ErrorKind::DirectoryNotEmpty => "choose another directory, or --force to replace a trace",
        _ => "choose one that does not exist yet, where you may write",
    };
    Error::failed(format!("-o {}", path.display()), reason(e), todo)
}

/// A random identity (RFC 4122: version 4, variant 1) of a trace.
///
/// # Errors
/// The kernel gives no random numbers.
pub fn identity() -> Result<[u8; 16]> {
    let mut uuid = [0; 16];
    process::random(&mut uuid).map_err(|e| Error::failed("random numbers", e.to_string(), "see getrandom(2)"))?;
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    Ok(uuid)
}

/// The directory that a recorder has begun, for a start that fails.
pub struct Begun {
    dir: PathBuf,
    /// The recorder has made it.
    is_new: bool,
}

impl Begun {
    /// Removes what the recorder has written there, and the directory, if it has made that.
    pub fn discard(&self) {
        if ctf::replace::clear(&self.dir, process::euid()).is_ok() && self.is_new {
            let _ = std::fs::remove_dir(&self.dir);
        }
    }
}

fn target(config: &Config) -> io::Result<Target> {
    let owner = process::euid();
    Ok(match config.flight {
        Some(max) => Target::Flight(Flight::new(max), Snapshots::create(&config.dir, owner)?, 0),
        None => {
            let limit = config.max_size.map_or(Limit::None, Limit::Files);
            Target::Disk(Box::new(Files::new(Dir::create(&config.dir, owner)?, limit).packed(config.packed)))
        }
    })
}

impl Recorder {
    /// Makes the directory. Starts no thread: what is in it is written by one that starts with the first packet.
    pub fn new(config: &Config) -> Result<Recorder> {
        let uuid = identity()?;
        let begun = Arc::new(Begun { dir: config.dir.clone(), is_new: !config.dir.exists() });
        let target = target(config).map_err(|e| cannot(&config.dir, &e))?;
        let shared = Arc::default();
        let full = if config.packed { packet::FULL_UNPACKED } else { packet::FULL };
        Ok(Recorder {
            outlet: Outlet::Waiting(Box::new(Writer::new(&shared, config, uuid, target))),
            shared,
            spawn: writer::spawn,
            streams: BTreeMap::new(),
            maps: Vec::new(),
            uuid,
            packet: config.max_size.or(config.flight).map_or(full, packet_size),
            began: time::monotonic(),
            next_tick: 0,
            taken: vec![0; events::generated::SCHEMAS.len()],
            first_event: None,
            full: false,
            filter: None,
            tsc: None,
            dropped: Vec::new(),
            values: config.has_values(),
            begun,
        })
    }

    /// Records only events that pass this filter.
    pub fn set_filter(&mut self, filter: Option<RecorderFilter>) {
        self.filter = filter;
    }

    /// Lines to keep with the trace: what was counted of enablings.
    pub fn set_counts(&mut self, lines: Vec<String>) {
        self.shared.queue().counts = lines;
    }

    /// Sets the counts of events that were lost before they reached the recorder, for the end record.
    pub fn set_losses(&mut self, lost: &Losses) {
        self.dropped.clone_from(&lost.classes);
    }

    /// Events of these classes will come too.
    pub fn add_classes(&mut self, classes: &[&'static events::Schema]) {
        match &mut self.outlet {
            Outlet::Waiting(writer) | Outlet::Inline(writer) => writer.add_classes(classes),
            Outlet::Thread(_) => {
                // Before the first packet that has any of their events.
                self.shared.queue().jobs.push_back(Job::Classes(classes.to_vec()));
                self.shared.ready.notify_one();
            }
            Outlet::Lost => {}
        }
    }

    /// Its directory.
    pub fn begun(&self) -> Arc<Begun> {
        Arc::clone(&self.begun)
    }

    /// A handle for the front end.
    pub fn monitor(&self) -> Monitor {
        Monitor(Arc::clone(&self.shared))
    }

    /// Whether there is room for more events.
    pub fn has_room(&self) -> bool {
        !self.full || self.shared.queue().bytes < QUEUE
    }

    /// Keeps an event of a stream.
    pub fn event(&mut self, stream: StreamId, event: &[u8]) {
        if self.filter.as_mut().is_some_and(|f| !f.passes(event)) {
            return;
        }
        let Some(time) = event.first_chunk::<8>().map(|b| u64::from_le_bytes(*b)) else { return };
        let Some(id) = event.get(8..10).map(|b| u16::from_le_bytes([b[0], b[1]])) else { return };
        if usize::from(id) >= self.taken.len() {
            self.taken.resize(usize::from(id) + 1, 0);
        }
        self.taken[usize::from(id)] += 1;
        if self.first_event.is_none() && events::registry::by_id(id).is_some_and(|s| s.class != events::Class::Process)
        {
            self.first_event = Some(time);
        }
        match self.streams.get(&stream) {
            None => self.begin(stream),
            // Not only at ticks, which come late when the caller is busy.
            Some(s) if is_old(&s.packets, time) => self.close(stream),
            Some(_) => {}
        }
        let Some(s) = self.streams.get_mut(&stream) else { return };
        s.taken += 1;
        if s.packets.push(event) {
            self.close(stream);
        }
    }

    /// Closes the open packet of a stream, if there is one.
    fn close_open(&mut self, stream: StreamId) {
        if self.streams.get(&stream).is_some_and(|s| s.packets.waiting_since().is_some()) {
            self.close(stream);
        }
    }

    /// The first packet of a stream is empty, so that losses during the second are known.
    fn begin(&mut self, stream: StreamId) {
        let packets = PacketWriter::new(self.uuid, stream, self.began).full_at(self.packet);
        self.streams.insert(stream, Stream { packets, taken: 0 });
        self.close(stream);
    }

    fn close(&mut self, stream: StreamId) {
        self.launch();
        let Some(s) = self.streams.get_mut(&stream) else { return };
        let packet = s.packets.close();
        if let Outlet::Inline(writer) = &mut self.outlet {
            if let Some(buffer) = writer.store(packet) {
                s.packets.reuse(buffer);
            }
            return;
        }
        let mut queue = self.shared.queue();
        if let Some(spare) = queue.spare.pop() {
            s.packets.reuse(spare);
        }
        queue.bytes += packet.bytes.len();
        self.full = queue.bytes >= QUEUE;
        queue.jobs.push_back(Job::Packet(packet));
        drop(queue);
        self.shared.ready.notify_one();
    }

    /// Has the writer thread stay off this processor, or run anywhere.
    pub fn keep_writer_off(&mut self, cpu: Option<u32>) {
        self.shared.queue().jobs.push_back(Job::KeepOff(cpu));
        self.shared.ready.notify_one();
    }

    /// Starts the writer now, with the highest priority that the calling thread may give: it shares a lock with the thread that adds
    /// events, which would otherwise wait while the writer waits for a busy CPU.
    pub fn start_writer(&mut self) {
        if let Outlet::Waiting(writer) = &mut self.outlet {
            writer.raise();
        }
        self.launch();
    }

    /// Starts the writer thread, if it has not been tried before.
    fn launch(&mut self) {
        let writer = match std::mem::replace(&mut self.outlet, Outlet::Lost) {
            Outlet::Waiting(writer) => writer,
            other => return self.outlet = other,
        };
        let slot = Arc::new(Mutex::new(Some(*writer)));
        self.outlet = match (self.spawn)(Arc::clone(&slot)) {
            Ok(thread) => Outlet::Thread(thread),
            Err(e) => match writer::take(&slot) {
                Some(mut writer) => {
                    writer.fail(io::Error::new(e.kind(), format!("cannot start a thread: {}", reason(&e))));
                    Outlet::Inline(Box::new(writer))
                }
                None => Outlet::Lost,
            },
        };
    }

    /// To be called now and then: closes packets that are old at `now`. `discarded`: how many events each stream has lost so far;
    /// of [`StreamId::MAPS`] that is known here.
    pub fn tick(&mut self, now: u64, discarded: impl Fn(StreamId) -> u64) {
        let wanted = self.next_tick <= now && std::mem::take(&mut self.shared.queue().snapshot_wanted);
        if now < self.next_tick {
            return;
        }
        self.next_tick = now.saturating_add(TICK);
        self.keep_maps(now.saturating_sub(LATE));
        let streams: Vec<StreamId> = self.streams.keys().copied().collect();
        for stream in &streams {
            let Some(s) = self.streams.get_mut(stream) else { continue };
            // Runs of function records say what was lost between them.
            if *stream != StreamId::MAPS && !s.packets.has_records() {
                s.packets.set_discarded(discarded(*stream));
            }
            if is_old(&s.packets, now) || wanted && s.packets.waiting_since().is_some() {
                self.close(*stream);
            }
        }
        if wanted {
            self.snapshot();
        }
    }

    fn snapshot(&mut self) {
        if let Outlet::Inline(writer) = &mut self.outlet {
            return writer.snapshot();
        }
        self.shared.queue().jobs.push_back(Job::Snapshot);
        self.shared.ready.notify_one();
    }

    /// Keeps the mappings up to a time.
    fn keep_maps(&mut self, until: u64) {
        let fresh = self.shared.take_maps();
        let time = |e: &[u8]| e.first_chunk::<8>().map_or(0, |b| u64::from_le_bytes(*b));
        self.maps.extend(fresh.into_iter().map(|e| (time(&e), e)));
        order::by_key(&mut self.maps, |m| m.0);
        let n = self.maps.partition_point(|m| m.0 <= until);
        for (_, event) in self.maps.drain(..n).collect::<Vec<_>>() {
            self.event(StreamId::MAPS, &event);
        }
        let lost = self.shared.queue().lost_mappings;
        self.set_lost(StreamId::MAPS, lost);
    }

    /// Sets how many events of a stream were lost, in all.
    pub fn set_lost(&mut self, stream: StreamId, n: u64) {
        if n > 0 && !self.streams.contains_key(&stream) {
            self.begin(stream);
        }
        let of_functions = self.streams.get(&stream).is_some_and(|s| s.packets.has_records());
        let n = if of_functions { n.min(MOST_LOST) } else { n };
        // What was lost after a run is said after it.
        if self.streams.get(&stream).is_some_and(|s| of_functions && s.packets.discarded() < n) {
            self.close_open(stream);
        }
        if let Some(s) = self.streams.get_mut(&stream) {
            s.packets.set_discarded(n);
        }
    }

    /// The totals so far. Packets that wait to be written are not on disk yet.
    pub fn so_far(&self) -> Totals {
        let queue = self.shared.queue();
        let (done, lost_mappings) = (queue.written.clone(), queue.lost_mappings);
        drop(queue);
        let mut totals = Totals {
            unwritten: done.unwritten,
            overwritten: done.overwritten,
            bytes: done.bytes,
            lost_mappings,
            ..self.counted()
        };
        for (id, of) in done.streams {
            let s = totals.streams.entry(id).or_default();
            (s.unwritten, s.overwritten) = (of.unwritten, of.overwritten);
        }
        totals
    }

    /// The counters of this side.
    fn counted(&self) -> Totals {
        let of =
            |s: &Stream| StreamTotals { taken: s.taken, discarded: s.packets.discarded(), ..StreamTotals::default() };
        Totals {
            taken: self.taken.clone(),
            streams: self.streams.iter().map(|(id, s)| (*id, of(s))).collect(),
            clamped: self.streams.values().map(|s| s.packets.clamped()).sum(),
            first_event: self.first_event,
            dropped: self.dropped.clone(),
            ..Totals::default()
        }
    }

    /// Writes what is left.
    pub fn finish(mut self) -> Result<Totals> {
        self.keep_maps(u64::MAX);
        self.describe_clock();
        let now = time::monotonic();
        let streams: Vec<StreamId> = self.streams.keys().copied().collect();
        for stream in streams {
            self.close(stream);
            // What was lost after the last event shows in a packet that reaches up to now.
            if let Some(s) = self.streams.get_mut(&stream).filter(|s| s.packets.discarded() > 0) {
                s.packets.advance(now);
                self.close(stream);
            }
        }
        let mut totals = self.counted();
        let mut queue = self.shared.queue();
        queue.done = true;
        totals.lost_mappings = queue.lost_mappings;
        let lines = std::mem::take(&mut queue.counts);
        drop(queue);
        self.shared.ready.notify_one();
        let writer = match std::mem::replace(&mut self.outlet, Outlet::Lost) {
            Outlet::Waiting(writer) | Outlet::Inline(writer) => Some(*writer),
            Outlet::Thread(thread) => thread.join().ok().flatten(),
            Outlet::Lost => None,
        };
        let Some(writer) = writer else {
            return Err(Error::failed("writer thread", "it has died", "please report it"));
        };
        writer.end(&mut totals, lines);
        Ok(totals)
    }
}

/// Whether a packet is so old at `now` that it should be closed.
fn is_old(packets: &PacketWriter, now: u64) -> bool {
    packets.waiting_since().is_some_and(|t| now.saturating_sub(t) > AGE)
}

#[cfg(test)]
mod tests;
