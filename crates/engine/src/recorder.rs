//! Keeps events as a trace on disk, or the last ones in memory.
//!
//! ```text
//! events, in order of time ─► a Filler per stream ─► sealed packets ─► queue (bounded) ─► writer thread ─► Files | Flight
//! ```
//!
//! Whoever brings the events never waits for the disk: the queue is bounded, and [`Recorder::has_room`] says when to leave
//! events where they are. Packets are sealed when they are full, and after a second in any case, so that little is lost when
//! trapline is killed.

use crate::backend::kernel::load::PROBE_SHIFT;
use crate::error::{Error, Result};
use crate::sieve::Gate;
use ctf::model::{ByteOrder, Clock, EnvValue, Metadata};
use ctf::packet::{self, Filler, Sealed};
use ctf::store::{Dir, Files, Flight, Limit, packet_size};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use sys::{proc, time};

/// The stream of events that come from no processor's ring.
pub const TRACER: u32 = u32::MAX;
/// The stream of what processes have mapped.
pub const MAPS: u32 = u32::MAX - 1;
/// Mappings are told of late, and each processor's for itself: they wait so long for older ones, ns.
const LATE: u64 = 100_000_000;
/// Bytes of packets that may wait for the disk.
const QUEUE: usize = 64 << 20;
/// A packet is sealed after this, ns, full or not.
const AGE: u64 = 1_000_000_000;
/// Buffers of packets that are kept for the next ones.
const SPARE: usize = 8;

/// Where events are kept.
#[derive(Clone, Debug)]
pub struct Config {
    /// The directory of the trace.
    pub dir: PathBuf,
    /// The most bytes on disk; the oldest packets go.
    pub max_size: Option<u64>,
    /// Only the last so many bytes, in memory until asked for.
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
    /// The filter that calls had to pass (`--where`), and its parameters.
    pub filter: Option<(String, Vec<String>)>,
    /// Bytes shown of a string, of which the filter may have wanted more.
    pub string: usize,
}

/// What was kept and what was lost.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Events that were taken, by class id.
    pub taken: Vec<u64>,
    /// Of these, events that could not be written, by class id.
    pub unwritten: Vec<u64>,
    /// Events that went for newer ones (`--max-size`, `--flight`).
    pub overwritten: u64,
    /// Events whose time was set to that of the event in front of them.
    pub clamped: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// Time of the first event that is a call, ns of the monotonic clock.
    pub first_event: Option<u64>,
}

enum Job {
    Packet(Sealed),
    Snapshot,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    bytes: usize,
    spare: Vec<Vec<u8>>,
    /// No more will come.
    done: bool,
    /// What the writer has on disk, bytes; what went for newer events; what could not be written, by class.
    kept: (u64, u64, Vec<u64>),
    /// What to tell the user, oldest first.
    news: Vec<News>,
    snapshot_wanted: bool,
    /// What was counted of enablings, a line each.
    counts: Vec<String>,
}

/// Something that the user should know while the recording goes on.
#[derive(Debug)]
pub enum News {
    /// The trace ends here: the disk is full, or worse.
    Failed(PathBuf, io::Error),
    /// A snapshot was written: where, and how many events.
    Snapshot(PathBuf, u64),
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    ready: Condvar,
    /// Mappings, on their way to whoever brings the events.
    maps: Mutex<Vec<Vec<u8>>>,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handle for those who do not bring events: to ask for a snapshot, and for news.
#[derive(Clone)]
pub struct Monitor(Arc<Shared>);

impl Monitor {
    /// Asks for what is in memory to be written; a [`News::Snapshot`] follows.
    pub fn snapshot(&self) {
        self.0.queue().snapshot_wanted = true;
    }
    /// Keeps an encoded event of a mapping.
    pub fn mapping(&self, event: &[u8]) {
        self.0.maps.lock().unwrap_or_else(PoisonError::into_inner).push(event.to_vec());
    }
    /// What has happened since the last time.
    pub fn news(&self) -> Vec<News> {
        std::mem::take(&mut self.0.queue().news)
    }
}

/// Takes events and keeps them.
pub struct Recorder {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<Written>>,
    /// Until the writer starts: with the first packet, because a process that will fork should have no threads.
    target: Option<Target>,
    /// What the metadata says, too.
    config: Config,
    fillers: BTreeMap<u32, Filler>,
    /// Mappings that wait for older ones: time, event.
    maps: Vec<(u64, Vec<u8>)>,
    uuid: [u8; 16],
    /// At how many bytes packets are full.
    packet: usize,
    began: u64,
    next_tick: u64,
    taken: Vec<u64>,
    first_event: Option<u64>,
    full: bool,
    gate: Option<Gate>,
}

/// What the writer thread brings back.
struct Written {
    target: Target,
    unwritten: Vec<u64>,
}

enum Target {
    Disk(Files<Dir>),
    Flight { flight: Flight, parent: PathBuf, metadata: String, written: u64 },
}

fn cannot(path: &Path, e: &io::Error) -> Error {
    let what = format!("-o {}", path.display());
    let todo = match e.kind() {
        io::ErrorKind::DirectoryNotEmpty => "choose another directory, or --force to replace a trace",
        _ => "choose a directory that you may write to",
    };
    let why = e.to_string();
    Error::failed(what, why.split(" (os error").next().unwrap_or_default(), todo)
}

impl Recorder {
    /// Makes the directory. Starts no thread: what is in it is written by one that starts with the first packet.
    pub fn new(config: &Config) -> Result<Recorder> {
        let mut uuid = [0; 16];
        sys::process::random(&mut uuid)
            .map_err(|e| Error::failed("random numbers", e.to_string(), "see getrandom(2)"))?;
        // RFC 4122: version 4, variant 1.
        uuid[6] = uuid[6] & 0x0f | 0x40;
        uuid[8] = uuid[8] & 0x3f | 0x80;
        let target = match config.flight {
            None => {
                let dir = Dir::create(&config.dir).map_err(|e| cannot(&config.dir, &e))?;
                Target::Disk(Files::new(dir, config.max_size.map_or(Limit::None, Limit::Files)))
            }
            Some(max) => {
                sys::process::make_private_dir(&config.dir).map_err(|e| cannot(&config.dir, &e))?;
                Target::Flight {
                    flight: Flight::new(max),
                    parent: config.dir.clone(),
                    metadata: String::new(),
                    written: 0,
                }
            }
        };
        Ok(Recorder {
            shared: Arc::default(),
            writer: None,
            target: Some(target),
            config: config.clone(),
            fillers: BTreeMap::new(),
            maps: Vec::new(),
            uuid,
            packet: config.max_size.or(config.flight).map_or(packet::FULL, packet_size),
            began: time::monotonic(),
            next_tick: 0,
            taken: vec![0; events::generated::SCHEMAS.len()],
            first_event: None,
            full: false,
            gate: None,
        })
    }

    /// Keeps only what passes.
    pub fn set_gate(&mut self, gate: Option<Gate>) {
        self.gate = gate;
    }

    /// Lines to keep with the trace: what was counted of enablings.
    pub fn set_counts(&mut self, lines: Vec<String>) {
        self.shared.queue().counts = lines;
    }

    /// A handle for the front end.
    pub fn monitor(&self) -> Monitor {
        Monitor(Arc::clone(&self.shared))
    }

    /// Whether there is room for more events.
    pub fn has_room(&self) -> bool {
        !self.full || self.shared.queue().bytes < QUEUE
    }

    /// Keeps an event of a stream: the number of its processor, or [`TRACER`].
    pub fn event(&mut self, stream: u32, event: &[u8]) {
        if self.gate.as_mut().is_some_and(|g| !g.passes(event)) {
            return;
        }
        let Some(id) = event.get(8..10).map(|b| u16::from_le_bytes([b[0], b[1]])) else { return };
        if usize::from(id) >= self.taken.len() {
            self.taken.resize(usize::from(id) + 1, 0);
        }
        self.taken[usize::from(id)] += 1;
        if self.first_event.is_none() && events::schema::by_id(id).is_some_and(|s| s.class != events::Class::Process) {
            self.first_event = event.first_chunk::<8>().map(|b| u64::from_le_bytes(*b));
        }
        if !self.fillers.contains_key(&stream) {
            self.begin(stream);
        }
        let Some(filler) = self.fillers.get_mut(&stream) else { return };
        if filler.push(event) {
            self.seal(stream);
        }
    }

    /// The first packet of a stream is empty, so that what is lost in the second is known.
    fn begin(&mut self, stream: u32) {
        let cpu = if stream >= MAPS { packet::NO_CPU } else { stream & ((1 << PROBE_SHIFT) - 1) };
        self.fillers.insert(stream, Filler::new(self.uuid, stream.into(), cpu, self.began).full_at(self.packet));
        self.seal(stream);
    }

    fn seal(&mut self, stream: u32) {
        if self.writer.is_none() {
            self.launch(false);
        }
        let Some(filler) = self.fillers.get_mut(&stream) else { return };
        let sealed = filler.seal();
        let mut queue = self.shared.queue();
        if let Some(spare) = queue.spare.pop() {
            filler.reuse(spare);
        }
        queue.bytes += sealed.bytes.len();
        self.full = queue.bytes >= QUEUE;
        queue.jobs.push_back(Job::Packet(sealed));
        drop(queue);
        self.shared.ready.notify_one();
    }

    /// Starts the writer now, with the highest priority that the calling thread may give: it shares a lock with whoever brings the
    /// events, who would wait for it where it waits for its turn on a busy processor.
    pub fn start_writer(&mut self) {
        self.launch(true);
    }

    fn launch(&mut self, raised: bool) {
        let Some(target) = self.target.take() else { return };
        let shared = Arc::clone(&self.shared);
        let (config, uuid) = (self.config.clone(), self.uuid);
        let work = move || {
            if raised {
                let _ = sys::priority::raise();
                let _ = sys::caps::drop_to(sys::caps::AFTER_ATTACH);
            }
            let metadata = ctf::print::tsdl(&metadata(&config, uuid));
            write(&shared, target, metadata)
        };
        self.writer = std::thread::Builder::new().name("trapline-write".into()).spawn(work).ok();
    }

    /// Now and then, at `now`: seals what has waited for long. `discarded` says how many events each stream has lost so far.
    pub fn tick(&mut self, now: u64, discarded: impl Fn(u32) -> u64) {
        let wanted = self.next_tick <= now && std::mem::take(&mut self.shared.queue().snapshot_wanted);
        if now < self.next_tick {
            return;
        }
        self.next_tick = now.saturating_add(20_000_000);
        self.keep_maps(now.saturating_sub(LATE));
        let streams: Vec<u32> = self.fillers.keys().copied().collect();
        for stream in &streams {
            let Some(filler) = self.fillers.get_mut(stream) else { continue };
            filler.set_discarded(discarded(*stream));
            if filler.waiting_since().is_some_and(|t| wanted || now.saturating_sub(t) > AGE) {
                self.seal(*stream);
            }
        }
        if wanted {
            self.shared.queue().jobs.push_back(Job::Snapshot);
            self.shared.ready.notify_one();
        }
    }

    /// Keeps the mappings up to a time.
    fn keep_maps(&mut self, until: u64) {
        let fresh = std::mem::take(&mut *self.shared.maps.lock().unwrap_or_else(PoisonError::into_inner));
        let time = |e: &[u8]| e.first_chunk::<8>().map_or(0, |b| u64::from_le_bytes(*b));
        self.maps.extend(fresh.into_iter().map(|e| (time(&e), e)));
        self.maps.sort_by_key(|m| m.0);
        let n = self.maps.partition_point(|m| m.0 <= until);
        for (_, event) in self.maps.drain(..n).collect::<Vec<_>>() {
            self.event(MAPS, &event);
        }
    }

    /// So many events of a stream were lost, in all.
    pub fn set_lost(&mut self, stream: u32, n: u64) {
        if n > 0 && !self.fillers.contains_key(&stream) {
            self.begin(stream);
        }
        if let Some(f) = self.fillers.get_mut(&stream) {
            f.set_discarded(n);
        }
    }

    /// What was kept so far. What waits to be written is not on disk yet.
    pub fn so_far(&self) -> Totals {
        let (bytes, overwritten, unwritten) = self.shared.queue().kept.clone();
        Totals {
            taken: self.taken.clone(),
            unwritten,
            overwritten,
            clamped: self.fillers.values().map(Filler::clamped).sum(),
            bytes,
            first_event: self.first_event,
        }
    }

    /// Writes what is left.
    pub fn finish(mut self) -> Result<Totals> {
        self.keep_maps(u64::MAX);
        let now = time::monotonic();
        let streams: Vec<u32> = self.fillers.keys().copied().collect();
        for stream in streams {
            self.seal(stream);
            // What was lost after the last event shows in a packet that reaches up to now.
            if let Some(f) = self.fillers.get_mut(&stream).filter(|f| f.discarded() > 0) {
                f.advance(now);
                self.seal(stream);
            }
        }
        if self.writer.is_none() {
            self.launch(false);
        }
        self.shared.queue().done = true;
        self.shared.ready.notify_one();
        let written = self.writer.take().and_then(|t| t.join().ok());
        let Some(Written { target, unwritten }) = written else {
            return Err(Error::failed("writer thread", "it could not run", "free some memory or processes"));
        };
        let clamped = self.fillers.values().map(Filler::clamped).sum();
        let mut totals =
            Totals { taken: self.taken, unwritten, clamped, first_event: self.first_event, ..Totals::default() };
        match target {
            Target::Disk(mut files) => {
                (totals.overwritten, totals.bytes) = (files.lost().overwritten, files.bytes());
                if !files.failed() {
                    let counts = std::mem::take(&mut self.shared.queue().counts);
                    let text = counts.iter().fold(totals.text(), |text, line| text + line + "\n");
                    let dir = files.store();
                    if let Err(e) = dir.end(&text) {
                        self.shared.queue().news.push(News::Failed(dir.path().to_path_buf(), e));
                    }
                }
            }
            Target::Flight { flight, .. } => totals.overwritten = flight.overwritten(),
        }
        Ok(totals)
    }
}

impl Totals {
    /// What is kept with the trace, a line each: `taken NAME N`, `overwritten N`, `clamped N`.
    pub fn text(&self) -> String {
        let mut out = String::from("trapline 1\n");
        for (id, n) in self.taken.iter().enumerate().filter(|(_, n)| **n > 0) {
            if let Some(s) = events::schema::by_id(id as u16) {
                out += &format!("taken {} {n}\n", s.probe());
            }
        }
        out += &format!("overwritten {}\nclamped {}\n", self.overwritten, self.clamped);
        out
    }
}

/// The writer thread.
fn write(shared: &Shared, mut target: Target, text: String) -> Written {
    match &mut target {
        Target::Disk(files) => {
            if let Err(e) = files.store().describe(&text) {
                files.fail();
                let path = files.store().path().to_path_buf();
                shared.queue().news.push(News::Failed(path, e));
            }
        }
        Target::Flight { metadata, .. } => *metadata = text,
    }
    let mut unwritten = Vec::new();
    loop {
        let mut queue = shared.queue();
        while queue.jobs.is_empty() && !queue.done {
            queue = shared.ready.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        let Some(job) = queue.jobs.pop_front() else { break };
        drop(queue);
        match job {
            Job::Packet(packet) => put(shared, &mut target, packet, &mut unwritten),
            Job::Snapshot => snapshot(shared, &mut target),
        }
    }
    // What a flight recorder has at the end is what it is for.
    if matches!(target, Target::Flight { .. }) {
        snapshot(shared, &mut target);
    }
    Written { target, unwritten }
}

/// The name of a stream's file.
pub(crate) fn name_of(instance: u64) -> String {
    match (instance >> PROBE_SHIFT, instance & ((1 << PROBE_SHIFT) - 1)) {
        _ if instance == u64::from(TRACER) => "tracer".into(),
        _ if instance == u64::from(MAPS) => "maps".into(),
        (0, cpu) => format!("cpu_{cpu}"),
        (nth, cpu) => format!("probe_{nth}_cpu_{cpu}"),
    }
}

fn put(shared: &Shared, target: &mut Target, packet: Sealed, unwritten: &mut Vec<u64>) {
    let size = packet.bytes.len();
    let spare = match target {
        Target::Disk(files) => {
            let result = files.put(&name_of(packet.instance), &packet);
            if files.failed() {
                count(&packet, unwritten);
            }
            if let Err(e) = result {
                let path = files.store().path().to_path_buf();
                shared.queue().news.push(News::Failed(path, e));
            }
            Some(packet.bytes)
        }
        Target::Flight { flight, .. } => {
            flight.put(packet);
            None
        }
    };
    let mut queue = shared.queue();
    match target {
        Target::Disk(files) => (queue.kept.0, queue.kept.1) = (files.bytes(), files.lost().overwritten),
        Target::Flight { flight, .. } => queue.kept.1 = flight.overwritten(),
    }
    if !unwritten.is_empty() {
        queue.kept.2.clone_from(unwritten);
    }
    queue.bytes -= size;
    if let Some(mut spare) = spare.filter(|_| queue.spare.len() < SPARE) {
        spare.clear();
        queue.spare.push(spare);
    }
}

/// Counts the events of a packet by class.
fn count(packet: &Sealed, by_class: &mut Vec<u64>) {
    for e in packet::events(&packet.bytes, packet::own_length).flatten() {
        let id = u16::from_le_bytes([e[8], e[9]]);
        if usize::from(id) >= by_class.len() {
            by_class.resize(usize::from(id) + 1, 0);
        }
        by_class[usize::from(id)] += 1;
    }
}

fn snapshot(shared: &Shared, target: &mut Target) {
    let Target::Flight { flight, parent, metadata, written } = target else { return };
    *written += 1;
    let path = parent.join(format!("snapshot-{written}"));
    let mut events = 0;
    let result = Dir::create(&path).and_then(|dir| {
        dir.describe(metadata)?;
        let mut files = Files::new(dir, Limit::None);
        for packet in flight.packets() {
            files.put(&name_of(packet.instance), packet)?;
            events += packet.events;
        }
        files.store().end(&format!("trapline 1\noverwritten {}\n", flight.overwritten()))
    });
    shared.queue().news.push(match result {
        Ok(()) => News::Snapshot(path, events),
        Err(e) => News::Failed(path, e),
    });
}

/// What is said of the trace as a whole.
fn metadata(config: &Config, uuid: [u8; 16]) -> Metadata {
    let offset = config.realtime_offset;
    let text = |s: &str| EnvValue::Str(s.to_string());
    let version: Vec<i64> = env!("CARGO_PKG_VERSION").split('.').map(|n| n.parse().unwrap_or(0)).collect();
    let part = |i: usize| EnvValue::Int(version.get(i).copied().unwrap_or(0));
    let env = vec![
        ("hostname".into(), text(&proc::host_name())),
        ("domain".into(), text("trapline")),
        ("tracer_name".into(), text("trapline")),
        ("tracer_major".into(), part(0)),
        ("tracer_minor".into(), part(1)),
        ("tracer_patchlevel".into(), part(2)),
        ("sysname".into(), text("Linux")),
        ("kernel_release".into(), text(&proc::kernel_release())),
        ("architecture".into(), text(std::env::consts::ARCH)),
        ("command".into(), text(&config.command)),
        ("backend".into(), text(&config.backend)),
        ("utc_offset".into(), EnvValue::Int(config.utc_offset)),
    ];
    let mut env = env;
    if let Some((filter, params)) = &config.filter {
        env.push(("where".into(), text(filter)));
        env.push(("string_limit".into(), EnvValue::Int(config.string.try_into().unwrap_or(i64::MAX))));
        env.extend(params.iter().enumerate().map(|(i, p)| (format!("where_{}", i + 1), text(p))));
    }
    env.extend(config.select.iter().map(|s| ("select".to_string(), text(s))));
    let mut stream = ctf::classes::stream_class();
    stream.events.extend(config.classes.iter().map(|s| ctf::classes::event_class(s)));
    let clock = Clock {
        name: ctf::classes::CLOCK.into(),
        uuid: None,
        description: "CLOCK_MONOTONIC".into(),
        freq: 1_000_000_000,
        precision: 0,
        offset_s: offset.div_euclid(1_000_000_000),
        offset: offset.rem_euclid(1_000_000_000),
        absolute: true,
    };
    Metadata {
        order: ByteOrder::Little,
        uuid: Some(uuid),
        packet_header: Some(ctf::classes::packet_header()),
        env,
        clocks: vec![clock],
        streams: vec![stream],
    }
}
