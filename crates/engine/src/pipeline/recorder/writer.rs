//! The writing side: takes packets and puts them into files, or keeps them in memory until a snapshot is requested. Only the writer
//! touches the disk; it runs in a thread of its own.

use super::Config;
use super::metadata;
use super::queue::{Done, Job, News, Shared};
use crate::pipeline::aside::Aside;
use crate::stats::totals::{StreamTotals, Totals};
use ctf::end::{End, LINE};
use ctf::packet::{self, Packet};
use ctf::store::{Dir, Files, Flight, Limit, MIN_STREAMS, Snapshots, overhead};
use events::functions::{self, Moment};
use events::{Class, Schema};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Buffers of packets that are kept for the next ones.
const SPARE: usize = 8;
/// Room for the lines of an end record that are about the trace as a whole, bytes.
const ROOM: u64 = 4096;

/// Where packets go.
pub enum Target {
    /// Into the files of a trace.
    Disk(Box<Files<Dir>>),
    /// Into memory, and from there into snapshots.
    Flight(Flight, Snapshots, Saved),
}

/// How many of a flight recorder's packets are in a snapshot, or were overwritten before.
pub type Saved = u64;

/// The writer.
pub struct Writer {
    shared: Arc<Shared>,
    config: Config,
    uuid: [u8; 16],
    target: Target,
    /// The metadata, once it is made (and for files, written).
    described: Option<metadata::Text>,
    /// Events that could not be written, by class.
    unwritten: Vec<u64>,
    /// Two moments on the clock of function records, where there are any.
    clock: Option<(Moment, Moment)>,
    /// Whether the thread raises its priority.
    raised: bool,
}

/// Bytes that the end record of a trace needs at most, without what it says of streams: two lines for each class.
fn room(config: &Config) -> u64 {
    let numbers = 40;
    let classes = events::generated::SCHEMAS.iter().chain(&config.classes);
    ROOM + classes.map(|s| 2 * (s.probe().len() as u64 + numbers)).sum::<u64>()
}

/// The smallest size of a trace, bytes.
pub fn least_size(config: &Config) -> u64 {
    let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let streams = 3 + processors * (1 + config.classes.len() as u64);
    overhead(&metadata::text(config, [0; 16], None, None).all, metadata::labels(config), room(config))
        + streams * LINE
        + MIN_STREAMS
}

impl Writer {
    /// Writes nothing yet.
    pub fn new(shared: &Arc<Shared>, config: &Config, uuid: [u8; 16], target: Target) -> Writer {
        let (shared, config) = (Arc::clone(shared), config.clone());
        Writer { shared, config, uuid, target, described: None, unwritten: Vec::new(), clock: None, raised: false }
    }

    /// The thread, once it runs, takes the highest priority that it may, and then gives up the rights to it.
    pub fn raise(&mut self) {
        self.raised = true;
    }

    /// The life of the thread.
    pub fn run(mut self) -> Writer {
        if self.raised {
            let _ = sys::priority::raise(sys::priority::Urgency::Writer);
            let _ = sys::caps::drop_to(sys::caps::AFTER_ATTACH);
        }
        self.describe();
        let aside = Aside::here();
        while let Some(job) = self.shared.next() {
            match job {
                Job::Packet(packet) => {
                    let size = packet.bytes.len();
                    let spare = self.store(packet);
                    let mut queue = self.shared.queue();
                    queue.bytes -= size;
                    // A large one is rare, and is not kept.
                    let is_kept = |b: &Vec<u8>| queue.spare.len() < SPARE && b.capacity() <= 2 * packet::FULL;
                    if let Some(mut spare) = spare.filter(is_kept) {
                        spare.clear();
                        queue.spare.push(spare);
                    }
                }
                Job::Classes(classes) => self.add_classes(&classes),
                Job::Clock(moments) => self.set_clock(moments),
                Job::Snapshot => self.snapshot(),
                Job::KeepOff(cpu) => aside.keep_off(cpu),
            }
        }
        self
    }

    /// Makes the metadata, and writes it where packets are to follow.
    fn describe(&mut self) {
        if self.described.is_some() {
            return;
        }
        let text = metadata::text(&self.config, self.uuid, self.clock, None);
        if let Target::Disk(files) = &mut self.target
            && let Err(e) = files.store().describe(&text.all, metadata::labels(&self.config), room(&self.config))
        {
            self.fail(e);
        }
        self.described = Some(text);
    }

    /// Describes further classes: packets that have their events come later.
    pub fn add_classes(&mut self, classes: &[&'static Schema]) {
        let before = room(&self.config);
        for class in classes {
            if !self.config.classes.iter().any(|c| c.id == class.id) {
                self.config.classes.push(class);
            }
        }
        if self.described.is_none() {
            return;
        }
        let text = metadata::text(&self.config, self.uuid, self.clock, self.described.as_ref());
        if let Target::Disk(files) = &mut self.target
            && !files.failed()
            && let Err(e) = files.store().describe_again(&text.all, room(&self.config) - before)
        {
            self.fail(e);
        }
        self.described = Some(text);
    }

    /// Describes streams of function records and their clock; what was said of it before is replaced.
    pub fn set_clock(&mut self, moments: (Moment, Moment)) {
        let first = self.clock.replace(moments).is_none();
        if self.described.is_none() {
            return;
        }
        let text = metadata::text(&self.config, self.uuid, self.clock, self.described.as_ref());
        if let Target::Disk(files) = &mut self.target
            && !files.failed()
            && let Err(e) = files.store().describe_again(&text.all, 0)
            // A clock that is known less well does for the rest.
            && first
        {
            self.fail(e);
        }
        self.described = Some(text);
    }

    /// Nothing more is written to files, for this reason, which is reported once.
    pub fn fail(&mut self, why: io::Error) {
        if let Target::Disk(files) = &mut self.target
            && !files.failed()
        {
            files.fail(&why);
            let path = files.store().path().to_path_buf();
            self.shared.queue().news.push(News::Failed(path, why));
        }
    }

    /// Stores a packet, or counts its events as unwritten; and returns its buffer if it is free.
    pub fn store(&mut self, packet: Packet) -> Option<Vec<u8>> {
        let spare = match &mut self.target {
            Target::Disk(files) => {
                let result = files.put(&packet);
                if files.failed() {
                    count(&packet, self.config.has_values(), &mut self.unwritten);
                }
                if let Err(e) = result {
                    let path = files.store().path().to_path_buf();
                    self.shared.queue().news.push(News::Failed(path, e));
                }
                Some(packet.bytes)
            }
            Target::Flight(flight, ..) => {
                flight.put(packet);
                None
            }
        };
        self.publish();
        spare
    }

    /// Reports the progress to the other side.
    fn publish(&mut self) {
        let mut queue = self.shared.queue();
        let Done { bytes, overwritten, unwritten, streams } = &mut queue.written;
        match &mut self.target {
            Target::Disk(files) => {
                (*bytes, *overwritten) = (files.all_bytes(), files.lost().overwritten);
                for id in files.touched() {
                    let Some(s) = files.streams().get(&id) else { continue };
                    let of = streams.entry(id).or_default();
                    (of.unwritten, of.overwritten) = (s.unwritten, s.overwritten);
                }
            }
            Target::Flight(flight, ..) => {
                *overwritten = flight.overwritten();
                for id in flight.touched() {
                    streams.entry(id).or_insert_with(StreamTotals::default).overwritten = flight.overwritten_of(id);
                }
            }
        }
        unwritten.clone_from(&self.unwritten);
    }

    /// Writes what is in memory to the next snapshot.
    pub fn snapshot(&mut self) {
        self.describe();
        let Target::Flight(flight, snapshots, saved) = &mut self.target else { return };
        let path = snapshots.path().join(snapshots.next_name());
        let metadata = self.described.as_ref().map_or("", |text| &text.all);
        let mut until = *saved;
        let config = &self.config;
        let result = snapshots.begin().and_then(|dir| write_snapshot(dir, flight, metadata, config, &mut until));
        *saved = until.max(*saved);
        self.shared.queue().news.push(match result {
            Ok(events) => News::Snapshot(path, events),
            Err(e) => News::NoSnapshot(path, e),
        });
    }

    /// Counts events that are in memory at the end and in no snapshot as unwritten.
    fn count_unsaved(&mut self, totals: &mut Totals) {
        let Target::Flight(flight, _, saved) = &self.target else { return };
        for (_, packet) in flight.packets().filter(|(n, _)| n >= saved) {
            count(packet, self.config.has_values(), &mut self.unwritten);
            totals.streams.entry(packet.stream).or_default().unwritten += packet.events;
        }
        totals.unwritten.clone_from(&self.unwritten);
    }

    /// Ends the trace and writes its counters; on a full disk too, as far as there is room. `more` are lines
    /// for the end record.
    pub fn end(mut self, totals: &mut Totals, more: Vec<String>) {
        self.describe();
        if matches!(self.target, Target::Flight(..)) {
            // A flight recorder's last events are what it is for.
            self.snapshot();
        }
        self.publish();
        let written = self.shared.queue().written.clone();
        (totals.overwritten, totals.unwritten) = (written.overwritten, written.unwritten);
        for (id, of) in written.streams {
            let stream = totals.streams.entry(id).or_default();
            (stream.unwritten, stream.overwritten) = (of.unwritten, of.overwritten);
        }
        self.count_unsaved(totals);
        if let Target::Disk(files) = &mut self.target {
            let mut end = End { more, failed: files.failure().map(str::to_string), ..End::default() };
            totals.describe(&mut end);
            // A full disk is reported once.
            if let Err(e) = end_files(files, end)
                && !files.failed()
            {
                let path = files.store().path().to_path_buf();
                self.shared.queue().news.push(News::Failed(path, e));
            }
            totals.bytes = files.all_bytes();
        }
    }
}

/// Writes the end of a trace.
fn end_files(files: &mut Files<Dir>, mut end: End) -> io::Result<()> {
    let settled = files.settle();
    end.streams = files.ends();
    let more = files.room();
    files.store().end(&end.text(), more).and(settled)
}

/// Writes a snapshot. Returns how many events of enabled probes are in it. `saved` becomes the number of the first packet after it.
fn write_snapshot(
    mut dir: Dir,
    flight: &Flight,
    metadata: &str,
    config: &Config,
    saved: &mut Saved,
) -> io::Result<u64> {
    dir.describe(metadata, metadata::labels(config), ROOM)?;
    let mut files = Files::new(dir, Limit::None).packed(config.packed);
    let (mut by_class, mut result) = (Vec::new(), Ok(()));
    for (number, packet) in flight.packets() {
        result = result.and(files.put(packet));
        if !files.failed() {
            count(packet, config.has_values(), &mut by_class);
            *saved = number + 1;
        }
    }
    let failed = files.failure().map(str::to_string);
    let end = End { overwritten: Some(flight.overwritten()), failed, ..End::default() };
    result.and(end_files(&mut files, end))?;
    Ok((0u16..).zip(&by_class).filter(|(id, _)| !is_bookkeeping(*id)).map(|(_, n)| n).sum())
}

/// Whether a class of events is trapline's own (`process:…`), and not that of an enabled probe.
fn is_bookkeeping(class: u16) -> bool {
    events::registry::by_id(class).is_none_or(|s| s.class == Class::Process)
}

/// Counts the events of a packet by class. `values`: function records may have values.
fn count(packet: &Packet, values: bool, by_class: &mut Vec<u64>) {
    let (entries, exits) = ctf::functions::entries_and_exits(&packet.bytes, values);
    if let (true, Some(most)) = (entries + exits > 0, [functions::entry().id, functions::exit().id].iter().max()) {
        by_class.resize(by_class.len().max(usize::from(*most) + 1), 0);
        by_class[usize::from(functions::entry().id)] += entries;
        by_class[usize::from(functions::exit().id)] += exits;
    }
    for e in packet::events(&packet.bytes, packet::event_length).flatten() {
        let id = u16::from_le_bytes([e[8], e[9]]);
        if usize::from(id) >= by_class.len() {
            by_class.resize(usize::from(id) + 1, 0);
        }
        by_class[usize::from(id)] += 1;
    }
}

/// Where a writer is left for its thread, or for the caller that could not start one.
pub type Slot = Arc<Mutex<Option<Writer>>>;
/// The thread of a writer, which returns the writer.
pub type Thread = JoinHandle<Option<Writer>>;
/// What starts the thread of a writer.
pub type Spawn = fn(Slot) -> io::Result<Thread>;

/// Starts the thread. Where that fails, the writer is still in its slot.
pub fn spawn(slot: Slot) -> io::Result<Thread> {
    std::thread::Builder::new().name("trapline-write".into()).spawn(move || take(&slot).map(Writer::run))
}

/// Takes the writer out of its slot.
pub fn take(slot: &Slot) -> Option<Writer> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}
