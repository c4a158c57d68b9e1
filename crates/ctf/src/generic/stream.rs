//! One stream of packets: a file, or several that follow each other.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::folder::open_regular;

use super::cursor::{Cursor, Fault, State};
use super::{Error, Event, Item, MAX_PACKET, Value, nanoseconds};
use crate::plan::{Plan, Role, StreamPlan};

/// First word of a packet.
const MAGIC: u64 = 0xC1FC_1FC1;
/// What is read of a packet before its size is known.
const FIRST_CHUNK: u64 = 4096;

/// A stream. Ends after the first error.
#[derive(Debug)]
pub(super) struct Stream {
    /// Its place among all streams.
    pub index: usize,
    plan: Arc<Plan>,
    left: VecDeque<PathBuf>,
    file: Option<Open>,
    packet: Option<Packet>,
    state: State,
    /// Bytes of the packet.
    data: Vec<u8>,
    ready: VecDeque<Item>,
    before: Option<Before>,
    failed: bool,
}

/// A file being read.
#[derive(Debug)]
struct Open {
    path: PathBuf,
    file: File,
    size: u64,
    /// Where the next packet begins.
    next: u64,
}

/// A packet whose header and context are read.
#[derive(Debug)]
struct Packet {
    start: u64,
    /// Bit of the next event.
    at: u64,
    /// Bit at which content ends, or what is there of it.
    end: u64,
    /// Whether the file ends before the packet.
    cut: bool,
    class: Arc<StreamPlan>,
    context: Option<Arc<Value>>,
    begin: Option<i64>,
    finish: Option<i64>,
    discarded: Option<u64>,
    sequence: Option<u64>,
    /// The time of the last event.
    last: Option<i64>,
}

/// What is known about the packet before.
#[derive(Clone, Copy, Debug)]
struct Before {
    finish: Option<i64>,
    discarded: Option<u64>,
    sequence: Option<u64>,
}

/// Sizes in a packet's context.
struct Sizes {
    /// Bits of content, if the context has them.
    content: Option<u64>,
    /// Bytes of the packet, if the context has them.
    packet: Option<u64>,
}

/// Puts files into streams: those of one stream instance, where packets name it, follow each other by time.
pub(super) fn group(plan: &Arc<Plan>, files: Vec<PathBuf>) -> Vec<Stream> {
    let mut groups: Vec<Vec<(i64, PathBuf)>> = Vec::new();
    let mut by_key = std::collections::HashMap::new();
    for path in files {
        let mut stream = Stream::new(plan.clone(), VecDeque::from([path.clone()]));
        let first = if stream.load().is_ok() { stream.packet.as_ref() } else { None };
        let begin = first.and_then(|p| p.begin).unwrap_or(i64::MIN);
        let instance = first.and_then(|_| stream.state.role(Role::StreamInstance));
        let key = instance.map(|i| (stream.state.role(Role::StreamId).unwrap_or(0), i));
        let at = match key {
            Some(key) => *by_key.entry(key).or_insert(groups.len()),
            None => groups.len(),
        };
        if at == groups.len() {
            groups.push(Vec::new());
        }
        groups[at].push((begin, path));
    }
    let ordered = groups.into_iter().map(|mut files| {
        files.sort_by_key(|f| f.0);
        Stream::new(plan.clone(), files.into_iter().map(|f| f.1).collect())
    });
    ordered.collect()
}

impl Stream {
    fn new(plan: Arc<Plan>, left: VecDeque<PathBuf>) -> Stream {
        let state = State::new(&plan);
        Stream {
            index: 0,
            plan,
            left,
            file: None,
            packet: None,
            state,
            data: Vec::new(),
            ready: VecDeque::new(),
            before: None,
            failed: false,
        }
    }

    /// Its files.
    pub fn files(&self) -> Vec<PathBuf> {
        self.left.iter().cloned().collect()
    }

    /// What comes next.
    pub fn next(&mut self) -> Option<Result<Item, Error>> {
        if self.failed {
            return None;
        }
        match self.step() {
            Ok(item) => item.map(Ok),
            Err(e) => {
                self.failed = true;
                Some(Err(e))
            }
        }
    }

    fn step(&mut self) -> Result<Option<Item>, Error> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(Some(item));
            }
            match &self.packet {
                Some(packet) if packet.at < packet.end => {
                    if let Some(event) = self.event()? {
                        return Ok(Some(Item::Event(event)));
                    }
                }
                Some(_) => self.finish(),
                None => {
                    if !self.load()? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    fn fail<T>(&self, offset: u64, message: impl Into<String>) -> Result<T, Error> {
        let file = self.file.as_ref().map(|f| f.path.clone()).unwrap_or_default();
        Err(Error::Data { file, offset, message: message.into() })
    }

    /// Goes to the next packet, in the next file if there is none in this one. False at the end of the last.
    fn load(&mut self) -> Result<bool, Error> {
        loop {
            match &self.file {
                Some(file) if file.next < file.size => {
                    self.read_packet()?;
                    return Ok(true);
                }
                _ => {}
            }
            let Some(path) = self.left.pop_front() else {
                self.data = Vec::new();
                self.file = None;
                return Ok(false);
            };
            let opened = open_regular(&path, OpenOptions::new().read(true));
            let opened = opened.and_then(|file| Ok((file.metadata()?.len(), file)));
            let (size, file) = opened.map_err(|source| Error::Io { file: path.clone(), source })?;
            self.file = Some(Open { path, file, size, next: 0 });
        }
    }

    /// Makes `data` the first bytes of the packet at `start`.
    fn fill(&mut self, start: u64, bytes: u64) -> Result<(), Error> {
        let Some(open) = &self.file else { return Ok(()) };
        let have = self.data.len();
        let want = bytes as usize;
        if want <= have {
            self.data.truncate(want);
            return Ok(());
        }
        self.data.resize(want, 0);
        let result = open.file.read_exact_at(&mut self.data[have..], start + have as u64);
        result.map_err(|source| Error::Io { file: open.path.clone(), source })
    }

    fn read_packet(&mut self) -> Result<(), Error> {
        let Some((start, size)) = self.file.as_ref().map(|f| (f.next, f.size)) else { return Ok(()) };
        let rest = size - start;
        self.data.clear();
        let mut chunk = FIRST_CHUNK.min(rest);
        let (class, context, at) = loop {
            self.fill(start, chunk)?;
            match self.header() {
                Ok(found) => break found,
                Err(Fault { message: Some(message), bit }) => return self.fail(start + bit / 8, message),
                Err(Fault { message: None, .. }) if chunk < rest.min(MAX_PACKET) => {
                    chunk = (chunk * 4).min(rest).min(MAX_PACKET);
                }
                Err(Fault { message: None, .. }) if chunk < rest => {
                    return self.fail(start, format!("a packet header of more than {MAX_PACKET} bytes"));
                }
                Err(_) => {
                    self.end_of_file(start);
                    return Ok(());
                }
            }
        };
        let sizes = self.sizes(start, at)?;
        let whole = sizes.packet.unwrap_or(rest);
        let there = whole.min(rest);
        if there > MAX_PACKET {
            return self.fail(start, format!("a packet of {whole} bytes, more than {MAX_PACKET}"));
        }
        self.fill(start, there)?;
        let end = sizes.content.unwrap_or(whole.saturating_mul(8));
        self.state.packet(there * 8);
        let packet = self.packet(start, at, (end.min(there * 8), whole > rest), class, context);
        if let Some(open) = &mut self.file {
            open.next = start + there;
        }
        self.gap(&packet);
        self.packet = Some(packet);
        Ok(())
    }

    /// A packet of which not even header and context are there.
    fn end_of_file(&mut self, start: u64) {
        let at = self.before.and_then(|b| b.finish);
        if let Some(open) = &mut self.file {
            let file = open.path.clone();
            open.next = open.size;
            self.ready.push_back(Item::IncompleteEnd { stream: self.index, file, offset: start, at });
        }
    }

    /// Header and context of the packet in `data`, and the bit at which they end.
    #[allow(clippy::type_complexity)]
    fn header(&mut self) -> Result<(Arc<StreamPlan>, Option<Arc<Value>>, u64), Fault> {
        self.state.packet(self.data.len() as u64 * 8);
        self.state.begin();
        self.state.moves = false;
        self.state.forget(&[
            Role::Magic,
            Role::StreamId,
            Role::StreamInstance,
            Role::Begin,
            Role::End,
            Role::ContentSize,
            Role::PacketSize,
            Role::Discarded,
            Role::Sequence,
        ]);
        let plan = self.plan.clone();
        let end = self.data.len() as u64 * 8;
        let mut cursor = Cursor { plan: &plan, state: &mut self.state, data: &self.data, at: 0, end };
        let fail = |message: String| Err(Fault { bit: 0, message: Some(message) });
        let header = plan.packet_header.map(|node| cursor.value(node)).transpose()?;
        if let Some(magic) = cursor.state.role(Role::Magic)
            && magic != MAGIC
        {
            return fail(format!("no packet begins here: the magic number is {magic:#x}, not {MAGIC:#x}"));
        }
        if let (Some(expected), Some(uuid)) = (&plan.uuid, header.as_ref().and_then(|h| h.field("uuid")))
            && uuid_bytes(uuid).is_some_and(|u| u != *expected)
        {
            return fail("the packet belongs to another trace: its UUID is not that of the metadata".into());
        }
        let class = match cursor.state.role(Role::StreamId) {
            Some(id) => match plan.streams.get(&id) {
                Some(class) => class.clone(),
                None => return fail(format!("the metadata has no stream {id}")),
            },
            None => match plan.streams.values().next() {
                Some(class) if plan.streams.len() == 1 => class.clone(),
                _ => return fail("packets do not say which of several streams they belong to".into()),
            },
        };
        let context = class.packet_context.map(|node| cursor.value(node)).transpose()?;
        Ok((class, context.map(Arc::new), cursor.at))
    }

    fn sizes(&self, start: u64, at: u64) -> Result<Sizes, Error> {
        let (content, packet) = (self.state.role(Role::ContentSize), self.state.role(Role::PacketSize));
        let whole = packet.or(content.map(|c| c.saturating_add(7) & !7));
        let Some(bits) = whole else { return Ok(Sizes { content: None, packet: None }) };
        let content_bits = content.unwrap_or(bits);
        if bits % 8 != 0 {
            return self.fail(start, format!("a packet of {bits} bits, which are not whole bytes"));
        }
        if content_bits > bits {
            return self.fail(start, format!("{content_bits} bits of content in a packet of {bits} bits"));
        }
        if content_bits < at || bits == 0 {
            let message = format!("{content_bits} bits of content, less than the {at} of the packet's own header");
            return self.fail(start, message);
        }
        Ok(Sizes { content: Some(content_bits), packet: Some(bits / 8) })
    }

    fn packet(
        &mut self,
        start: u64,
        at: u64,
        (end, cut): (u64, bool),
        class: Arc<StreamPlan>,
        context: Option<Arc<Value>>,
    ) -> Packet {
        let mut begin = None;
        let mut finish = None;
        if let (Some(value), Some((clock, size))) = (self.state.role(Role::Begin), class.begin) {
            self.state.advance(clock, value, size);
            begin = Some(nanoseconds(&self.plan.clocks[clock], self.state.clocks[clock]));
        }
        if let (Some(value), Some((clock, size))) = (self.state.role(Role::End), class.end) {
            let now = self.state.clocks[clock];
            self.state.advance(clock, value, size);
            finish = Some(nanoseconds(&self.plan.clocks[clock], self.state.clocks[clock]));
            self.state.clocks[clock] = now;
        }
        let (discarded, sequence) = (self.state.role(Role::Discarded), self.state.role(Role::Sequence));
        Packet { start, at, end, cut, class, context, begin, finish, discarded, sequence, last: None }
    }

    /// Reports packets that are missing before this one.
    fn gap(&mut self, packet: &Packet) {
        let Some(before) = self.before else { return };
        if let (Some(old), Some(new)) = (before.sequence, packet.sequence) {
            let count = difference(old, new, packet.class.sequence_size).saturating_sub(1);
            // A number that goes back is that of another run, not a gap of nearly all numbers.
            if count > 0 && new > old {
                let (stream, from, to) = (self.index, before.finish, packet.begin);
                self.ready.push_back(Item::LostPackets { stream, from, to, count });
            }
        }
    }

    /// Leaves a packet that has been read.
    fn finish(&mut self) {
        let Some(packet) = self.packet.take() else { return };
        let ended = packet.finish.or(packet.last).or(packet.begin);
        if packet.cut {
            let at = packet.last.or(packet.begin).or(self.before.and_then(|b| b.finish));
            self.cut(packet.start + packet.at / 8, at);
            return;
        }
        let first = if packet.sequence == Some(0) { Some(0) } else { None };
        let known = self.before.map_or(first, |b| b.discarded);
        if let (Some(old), Some(new)) = (known, packet.discarded) {
            let count = difference(old, new, packet.class.discarded_size);
            if count > 0 {
                let from = self.before.map_or(packet.begin, |b| b.finish);
                self.ready.push_back(Item::Discarded { stream: self.index, from, to: ended, count });
            }
        }
        self.before = Some(Before { finish: ended, discarded: packet.discarded, sequence: packet.sequence });
    }

    /// Reports that the file ends in a packet.
    fn cut(&mut self, offset: u64, at: Option<i64>) {
        if let Some(open) = &mut self.file {
            open.next = open.size;
            let file = open.path.clone();
            self.ready.push_back(Item::IncompleteEnd { stream: self.index, file, offset, at });
        }
    }

    /// The next event of the packet; nothing if the packet ends in it because its file does.
    fn event(&mut self) -> Result<Option<Event>, Error> {
        let Some(packet) = &mut self.packet else { return Ok(None) };
        let (start, before, cut) = (packet.start, packet.at, packet.cut);
        let plan = &*self.plan;
        self.state.begin();
        let mut cursor = Cursor { plan, state: &mut self.state, data: &self.data, at: packet.at, end: packet.end };
        let result = read_event(&mut cursor, packet);
        let at = cursor.at;
        match result {
            Ok(mut event) if at > before => {
                event.stream = self.index;
                packet.at = at;
                packet.last = event.time.or(packet.last);
                Ok(Some(event))
            }
            Ok(event) => {
                let name = event.class.name.escape_debug().to_string();
                self.fail(start + before / 8, format!("event `{name}` takes no space, so its events cannot be counted"))
            }
            Err(Fault { message: None, .. }) if cut => {
                packet.end = packet.at;
                Ok(None)
            }
            Err(Fault { bit, message }) => {
                let message = message.unwrap_or_else(|| "the packet's content ends within an event".into());
                self.fail(start + bit / 8, message)
            }
        }
    }
}

fn read_event(cursor: &mut Cursor<'_>, packet: &Packet) -> Result<Event, Fault> {
    let plan = cursor.plan;
    let stream = &packet.class;
    let begin = cursor.at;
    cursor.state.moves = true;
    cursor.state.forget(&[Role::EventId]);
    let header = stream.event_header.map(|node| cursor.value(node)).transpose()?;
    cursor.state.moves = false;
    let class = match cursor.state.role(Role::EventId) {
        Some(id) => stream.events.get(&id),
        None if stream.events.len() == 1 => stream.events.values().next(),
        None => None,
    };
    let Some(class) = class else {
        let message = match cursor.state.role(Role::EventId) {
            Some(id) => format!("the metadata has no event {id} in this stream"),
            None => "events do not say which of several classes they belong to".into(),
        };
        return Err(Fault { bit: begin, message: Some(message) });
    };
    let class = class.clone();
    let clock = cursor.state.moved;
    let cycles = clock.map(|c| cursor.state.clocks[c]);
    let time = clock.map(|c| nanoseconds(&plan.clocks[c], cursor.state.clocks[c]));
    let mut part = |node: Option<u32>| node.map(|node| cursor.value(node)).transpose();
    let stream_context = part(stream.event_context)?;
    let context = part(class.context)?;
    let fields = part(class.fields)?;
    Ok(Event {
        time,
        cycles,
        stream: 0,
        class,
        packet: packet.context.clone(),
        header,
        stream_context,
        context,
        fields,
    })
}

/// How much a counter of this many bits has grown.
fn difference(old: u64, new: u64, size: u32) -> u64 {
    let mask = if size >= 64 { u64::MAX } else { (1 << size) - 1 };
    new.wrapping_sub(old) & mask
}

fn uuid_bytes(value: &Value) -> Option<[u8; 16]> {
    match value {
        Value::Bytes(bytes, _) => bytes.as_slice().try_into().ok(),
        _ => None,
    }
}
