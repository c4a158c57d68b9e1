//! The events of all streams in the order of time.

use super::{Data, Place, event};
use crate::folder::reason;
use events::StreamId;

/// The position in one stream.
pub(super) struct Cursor<'a> {
    packets: &'a [Place],
    stream: StreamId,
    /// Earlier events are left out.
    from: u64,
    /// Content of the packet that is being read: the first of `packets`.
    bytes: Vec<u8>,
    /// Its next event.
    at: usize,
    /// The current event: time, where it is.
    now: Option<(u64, std::ops::Range<usize>)>,
}

impl<'a> Cursor<'a> {
    /// At the first of these packets of a stream, for events from a time on.
    pub(super) fn new(packets: &'a [Place], stream: StreamId, from: u64) -> Cursor<'a> {
        Cursor { packets, stream, from, bytes: Vec::new(), at: 0, now: None }
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
    read: u64,
    events: u64,
}

impl<'a> Merged<'a> {
    /// The events of these streams up to a time, itself included.
    pub(super) fn new(data: &'a Data, known: &'a [Option<u16>], to: u64, cursors: Vec<Cursor<'a>>) -> Merged<'a> {
        Merged { data, known, to, cursors, started: false, last: usize::MAX, read: 0, events: 0 }
    }
}

impl Merged<'_> {
    /// The next event: its bytes, and its stream.
    #[allow(clippy::should_implement_trait, reason = "what it lends lives until the next call")]
    pub fn next(&mut self) -> Option<(&[u8], StreamId)> {
        if !self.started {
            self.started = true;
            (0..self.cursors.len()).for_each(|i| self.advance(i));
        } else if self.last < self.cursors.len() {
            self.advance(self.last);
        }
        let first = self.cursors.iter().enumerate().filter_map(|(i, c)| Some((c.now.as_ref()?.0, i))).min();
        let Some((_, i)) = first else {
            self.last = usize::MAX;
            return None;
        };
        self.last = i;
        self.events += 1;
        let c = &self.cursors[i];
        let range = c.now.as_ref().map(|n| n.1.clone()).unwrap_or_default();
        Some((&c.bytes[range], c.stream))
    }

    /// Bytes of packets read so far.
    pub fn bytes_read(&self) -> u64 {
        self.read
    }

    /// Events handed out so far.
    pub fn events_read(&self) -> u64 {
        self.events
    }

    /// Moves stream `i` to its next event within the window.
    fn advance(&mut self, i: usize) {
        let Merged { data, known, to, cursors, read, .. } = self;
        let c = &mut cursors[i];
        c.now = None;
        loop {
            while c.at >= c.bytes.len() {
                if c.at > 0 {
                    c.packets = &c.packets[1..];
                    (c.at, c.bytes) = (0, std::mem::take(&mut c.bytes));
                    c.bytes.clear();
                }
                let Some(place) = c.packets.first() else { return };
                *read += place.info.size;
                c.at = data.format.head();
                if let Err(e) = data.load(place, &mut c.bytes) {
                    let path = &data.files[place.file as usize].0;
                    data.damaged(path, place.at, reason(&e), place.info.size);
                    c.bytes.clear();
                }
            }
            let at = c.at;
            let Some(place) = c.packets.first() else { return };
            let (time, n) = match event(&mut c.bytes, at, known, &place.info) {
                Ok(event) => event,
                Err(what) => {
                    let path = &data.files[place.file as usize].0;
                    data.damaged(path, place.at + at as u64, what, (c.bytes.len() - at) as u64);
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
                c.now = Some((time, at..at + n));
                return;
            }
        }
    }
}
