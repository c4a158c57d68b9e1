//! The events of all streams in the order of time. Function records become events.

use super::{Data, Demangle, Place, Stream, event};
use crate::packet::Info;
use crate::records::{Decoder, Gap, Record};
use events::StreamId;
use events::functions::{Encoder, Table};

/// The position in one stream.
pub(super) struct Cursor<'a> {
    packets: &'a [Place],
    stream: StreamId,
    /// The packet before the first of `packets`.
    before: Option<Info>,
    /// Earlier events are left out.
    from: u64,
    /// Content of the packet that is being read: the first of `packets`.
    bytes: Vec<u8>,
    /// Its next event or record.
    at: usize,
    /// Makes records of its bytes, if it has records.
    decoder: Decoder,
    /// The time of the current event, and what it is.
    now: Option<(u64, Now)>,
    /// Records that are missing before the first one of the packet, to be reported.
    lost: Option<u64>,
}

/// The current event.
enum Now {
    /// Where it is in the packet.
    Event(std::ops::Range<usize>),
    /// A function record, and where its values are in the packet.
    Record(Record, std::ops::Range<usize>),
    /// Its first packet was not read yet: one packet of each stream may be more than there is memory for.
    Unread,
    /// This many records are missing here; 0: not known.
    Lost(u64),
    /// Another thread or program of this number begins here.
    Begun(u64),
}

impl<'a> Cursor<'a> {
    /// At the first packet of a stream in a window of time.
    pub(super) fn new(stream: &'a Stream, (from, to): (u64, u64)) -> Cursor<'a> {
        let first = stream.packets.partition_point(|p| p.info.end < from);
        let last = stream.packets.partition_point(|p| p.info.begin <= to).max(first);
        let before = stream.packets[..first].last().map(|p| p.info);
        Cursor {
            packets: &stream.packets[first..last],
            stream: stream.id,
            from,
            before,
            bytes: Vec::new(),
            at: 0,
            decoder: Decoder::default(),
            now: None,
            lost: None,
        }
    }
}

/// Events of all streams in the order of time; those of one moment in the order of their streams.
pub struct Merged<'a> {
    data: &'a Data,
    known: &'a [Option<u16>],
    to: u64,
    cursors: Vec<Cursor<'a>>,
    started: bool,
    last: usize,
    /// The first of the events of all streams but the last one's: time, stream.
    limit: Option<(u64, usize)>,
    read: u64,
    events: u64,
    demangle: Demangle,
    /// Names of functions, once they are needed, and what makes events of records.
    functions: Option<(Table, Encoder)>,
    made: Vec<u8>,
}

impl<'a> Merged<'a> {
    /// The events of these streams up to a time, itself included.
    pub(super) fn new(data: &'a Data, known: &'a [Option<u16>], to: u64, cursors: Vec<Cursor<'a>>) -> Merged<'a> {
        Merged {
            data,
            known,
            to,
            cursors,
            started: false,
            last: usize::MAX,
            limit: None,
            read: 0,
            events: 0,
            demangle: |_| None,
            functions: None,
            made: Vec::new(),
        }
    }

    /// Events of function records have demangled names.
    pub fn named(self, demangle: Demangle) -> Merged<'a> {
        Merged { demangle, ..self }
    }
}

impl Merged<'_> {
    /// The next event: its bytes, and its stream.
    #[allow(clippy::should_implement_trait, reason = "what it lends lives until the next call")]
    #[inline]
    pub fn next(&mut self) -> Option<(&[u8], StreamId)> {
        if !self.started {
            self.started = true;
            (0..self.cursors.len()).for_each(|i| self.begin(i));
        } else if self.last < self.cursors.len() {
            self.advance(self.last);
        }
        self.choose();
        while let Some(Cursor { now: Some((_, Now::Unread)), .. }) = self.cursors.get(self.last) {
            self.advance(self.last);
            self.choose();
        }
        let c = self.cursors.get(self.last)?;
        self.events += 1;
        let who = || (c.packets.first().and_then(|p| p.info.functions).map_or(0, |f| f.pid), c.stream.scope_id());
        match c.now.as_ref()? {
            (_, Now::Event(range)) => return Some((&c.bytes[range.clone()], c.stream)),
            (time, Now::Record(r, values)) => {
                let (data, known, demangle) = (self.data, self.known, self.demangle);
                let make = || (data.functions(known, demangle, None), Encoder::default());
                let (table, encoder) = self.functions.get_or_insert_with(make);
                let word = r.function << 1 | u32::from(r.exit);
                let (name, values) = (table.name(r.function), c.bytes.get(values.clone()).unwrap_or_default());
                encoder.record_with(&mut self.made, *time, who(), word, name.as_bytes(), values);
            }
            (_, Now::Unread) => return None,
            (time, Now::Lost(n)) => Encoder::default().lost(&mut self.made, *time, who(), *n),
            (time, Now::Begun(n)) => Encoder::default().begun(&mut self.made, *time, who(), *n),
        }
        Some((&self.made, c.stream))
    }

    /// Bytes of packets read so far.
    pub fn bytes_read(&self) -> u64 {
        self.read
    }

    /// Events handed out so far.
    pub fn events_read(&self) -> u64 {
        self.events
    }

    /// Finds the stream that has the first of all events.
    #[inline]
    fn choose(&mut self) {
        let time = |i: usize| Some((self.cursors.get(i)?.now.as_ref()?.0, i));
        // Most often the stream goes on that has had the last one.
        if time(self.last).is_none_or(|now| self.limit.is_some_and(|limit| limit < now)) {
            (self.last, self.limit) = (usize::MAX, None);
            for now in (0..self.cursors.len()).filter_map(time) {
                match time(self.last) {
                    Some(first) if first < now => self.limit = Some(self.limit.map_or(now, |l| l.min(now))),
                    first => (self.last, self.limit) = (now.1, [first, self.limit].into_iter().flatten().min()),
                }
            }
        }
    }

    /// Puts stream `i` before its first event. One of events alone is not read before its time has come.
    fn begin(&mut self, i: usize) {
        let c = &mut self.cursors[i];
        if c.packets.iter().any(|p| p.info.functions.is_some()) {
            return self.advance(i);
        }
        let empty = c.packets.iter().take_while(|p| !self.data.has_events(&p.info)).count();
        c.packets = &c.packets[empty..];
        c.now = c.packets.first().map(|p| (p.info.begin, Now::Unread));
    }

    /// Moves stream `i` to its next event within the window.
    #[inline]
    fn advance(&mut self, i: usize) {
        let Merged { data, known, to, cursors, read, .. } = self;
        let c = &mut cursors[i];
        c.now = None;
        if let (Some(n), Some(place)) = (c.lost.take(), c.packets.first()) {
            return c.now = Some((place.info.begin, Now::Lost(n)));
        }
        loop {
            while c.at >= c.bytes.len() {
                if c.at > 0 {
                    c.before = c.packets.first().map(|p| p.info);
                    c.packets = &c.packets[1..];
                    (c.at, c.bytes) = (0, std::mem::take(&mut c.bytes));
                    c.bytes.clear();
                }
                let Some(place) = c.packets.first() else { return };
                *read += place.info.size;
                c.at = data.head_of(&place.info);
                let whole = data.load_or_note(place, &mut c.bytes);
                if let Some(functions) = place.info.functions {
                    c.decoder = Decoder::new(&place.info);
                    let gap = Gap::before(&place.info, c.before.as_ref());
                    let begin = place.info.begin;
                    let is_shown = (c.from..=*to).contains(&begin);
                    let lost = (gap.is_one() || !whole).then_some(gap.lost).filter(|_| is_shown);
                    let before = c.before.and_then(|info| info.functions);
                    if is_shown && before.is_some_and(|b| (b.number, b.pid) != (functions.number, functions.pid)) {
                        c.lost = lost;
                        return c.now = Some((begin, Now::Begun(functions.number.into())));
                    }
                    if let Some(lost) = lost {
                        return c.now = Some((begin, Now::Lost(lost)));
                    }
                }
            }
            let at = c.at;
            let Some(place) = c.packets.first() else { return };
            if place.info.functions.is_some()
                && let Some((record, values, len)) = c.decoder.first(&c.bytes[at..])
            {
                c.at += len;
                let values = c.at - values.len()..c.at;
                if record.time > *to {
                    c.packets = &[];
                    (c.at, c.bytes) = (0, Vec::new());
                    return;
                }
                if record.time >= c.from {
                    return c.now = Some((record.time, Now::Record(record, values)));
                }
                continue;
            }
            let parsed = match place.info.functions {
                None => event(&mut c.bytes, at, known, &place.info),
                Some(_) => Err("a function record that is not whole".into()),
            };
            let (time, n) = match parsed {
                Ok(event) => event,
                Err(what) => {
                    let path = &data.files[place.file as usize].0;
                    // Where an event lies in a compressed packet, nothing in the file corresponds to.
                    let (from, rest) = match place.info.unpacked {
                        None => (place.at + at as u64, (c.bytes.len() - at) as u64),
                        Some(_) => (place.at, place.info.size),
                    };
                    data.damaged(path, from, what, rest);
                    c.at = c.bytes.len();
                    continue;
                }
            };
            c.at = (at + n).next_multiple_of(8);
            if time > *to {
                c.packets = &[];
                (c.at, c.bytes) = (0, Vec::new());
                return;
            }
            if time >= c.from {
                c.now = Some((time, Now::Event(at..at + n)));
                return;
            }
        }
    }
}
