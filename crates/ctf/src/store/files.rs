//! The files of a trace's streams: packets are appended whole, the oldest parts are deleted where there is a limit, and what becomes of
//! each event is counted.
//!
//! Invariant: of each stream, events that came = events in files + overwritten + unwritten.

use super::Store;
use crate::end::{LINE, StreamEnd};
use crate::format::Format;
use crate::packed;
use crate::packet::{self, Info, Packet};
use events::StreamId;
use std::collections::BTreeMap;
use std::io;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Everything.
    None,
    /// This many bytes in the whole directory; the oldest packets are deleted.
    Files(u64),
}

/// What was lost on the way to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Events of packets that could not be written.
    pub unwritten: u64,
    /// Events that were written and then overwritten by newer ones.
    pub overwritten: u64,
}

struct Part<F> {
    file: F,
    size: Size,
}

/// What is known of a part, open or not.
struct Size {
    stream: StreamId,
    name: String,
    bytes: u64,
    packets: u64,
    events: u64,
    /// When its last packet came.
    last: u64,
}

/// What became of the packets of a stream.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// Events of all packets that came.
    pub taken: u64,
    /// Packets that are in its files.
    pub packets: u64,
    /// Events that are in its files.
    pub events: u64,
    /// Events that could not be written.
    pub unwritten: u64,
    /// Events that were overwritten by newer ones.
    pub overwritten: u64,
    /// Events that were lost before they came into a packet, as its packets say.
    pub discarded: u64,
    /// Parts so far.
    parts: u64,
    /// The time up to which its packets reach, whether they could be written or not.
    until: u64,
    /// Its last packet in a file: the file, where in it, its head.
    last: Option<(String, u64, Info)>,
}

/// The files of a trace.
pub struct Files<S: Store> {
    store: S,
    limit: Limit,
    /// Packets are compressed.
    packed: bool,
    open: BTreeMap<StreamId, Part<S::File>>,
    /// Parts that are full.
    closed: Vec<Size>,
    streams: BTreeMap<StreamId, Kept>,
    /// Packets so far.
    puts: u64,
    bytes: u64,
    /// Streams whose counters have changed.
    touched: Vec<StreamId>,
    /// Why nothing more is written.
    failure: Option<String>,
}

impl<S: Store> Files<S> {
    /// No files yet.
    pub fn new(store: S, limit: Limit) -> Files<S> {
        Files {
            store,
            limit,
            packed: false,
            open: BTreeMap::new(),
            closed: Vec::new(),
            streams: BTreeMap::new(),
            puts: 0,
            bytes: 0,
            touched: Vec::new(),
            failure: None,
        }
    }

    /// Compresses packets, which all are of events.
    pub fn packed(mut self, packed: bool) -> Files<S> {
        self.packed = packed;
        self
    }

    /// Stores a packet in the file of its stream. After the first failure nothing more is written, so that the trace has no hole;
    /// the failure is returned once.
    pub fn put(&mut self, packet: &Packet) -> io::Result<()> {
        let result = if self.failed() { Ok(false) } else { self.try_put(packet) };
        if let Err(e) = &result {
            self.fail(e);
        }
        let stream = self.streams.entry(packet.stream).or_default();
        self.touched.push(packet.stream);
        stream.taken += packet.events;
        if let Ok(info) = Info::read(&packet.bytes, Format::NOW) {
            stream.until = stream.until.max(info.end);
            stream.discarded = stream.discarded.max(info.discarded);
        }
        if self.failure.is_some() {
            stream.unwritten += packet.events;
        }
        result.map(drop)
    }

    /// Returns whether the packet is in a file now: one that is larger than the limit is not.
    fn try_put(&mut self, packet: &Packet) -> io::Result<bool> {
        let packed = match Info::read(&packet.bytes, Format::NOW) {
            Ok(info) if self.packed => Some(packed::pack(packet, &info)),
            _ => None,
        };
        let packet = packed.as_ref().unwrap_or(packet);
        let (id, size) = (packet.stream, packet.bytes.len() as u64);
        self.puts += 1;
        let new = !self.streams.contains_key(&id);
        if let Limit::Files(max) = self.limit {
            let line = if new { LINE } else { 0 };
            let max = max.saturating_sub(self.store.overhead() + line);
            // A part is a small share of the limit, so that little is deleted at once.
            let share = max / (8 * (self.open.len() as u64 + 1));
            if self.open.get(&id).is_some_and(|p| p.size.bytes + size > share) {
                self.close(id);
            }
            self.make_room(max, size)?;
            if self.bytes + size > max {
                self.streams.entry(id).or_default().overwritten += packet.events;
                return Ok(false);
            }
        }
        if new {
            self.store.begin()?;
        }
        if !self.open.contains_key(&id) {
            self.open_part(id)?;
        }
        let Some(part) = self.open.get_mut(&id) else { return Ok(false) };
        let at = part.size.bytes;
        self.store.append(&mut part.file, at, &packet.bytes)?;
        part.size.bytes += size;
        part.size.packets += 1;
        part.size.events += packet.events;
        part.size.last = self.puts;
        self.bytes += size;
        let file = part.size.name.clone();
        let format = if packed.is_some() { Format::V5 } else { Format::NOW };
        let stream = self.streams.entry(id).or_default();
        stream.packets += 1;
        stream.events += packet.events;
        stream.last = Info::read(&packet.bytes, format).ok().map(|info| (file, at, info));
        Ok(true)
    }

    fn open_part(&mut self, id: StreamId) -> io::Result<()> {
        let stream = self.streams.entry(id).or_default();
        let name = if self.limit == Limit::None { id.to_string() } else { format!("{id}.{}", stream.parts) };
        stream.parts += 1;
        let file = self.store.create(&name)?;
        let size = Size { stream: id, name, bytes: 0, packets: 0, events: 0, last: 0 };
        self.open.insert(id, Part { file, size });
        Ok(())
    }

    fn close(&mut self, id: StreamId) {
        self.closed.extend(self.open.remove(&id).map(|p| p.size));
    }

    /// Removes the oldest parts until there is room for `size` more bytes, if there can be.
    fn make_room(&mut self, max: u64, size: u64) -> io::Result<()> {
        while self.bytes + size > max {
            // Mappings and stacks, which other events need, go last, as long as they take at most half of the room.
            let spare = self.needed() > max / 2;
            let others =
                self.closed.iter().any(|s| !s.stream.is_needed()) || self.open.keys().any(|id| !id.is_needed());
            let may_go = |id: StreamId| spare || !others || !id.is_needed();
            let closed = self.closed.iter().filter(|s| may_go(s.stream)).map(|s| s.last).min();
            // A stream on which nothing happens any more has its oldest events in a part that is not full.
            let open = self.open.iter().filter(|(id, _)| may_go(**id)).map(|(id, p)| (p.size.last, *id)).min();
            match (closed, open) {
                (None, None) => return Ok(()),
                (Some(c), Some((o, id))) if o < c => self.close(id),
                (None, Some((_, id))) => self.close(id),
                _ => {}
            }
            let old = (0..self.closed.len()).filter(|i| may_go(self.closed[*i].stream));
            let Some(at) = old.min_by_key(|i| self.closed[*i].last) else { return Ok(()) };
            let old = self.closed.remove(at);
            self.store.remove(&old.name)?;
            self.bytes -= old.bytes;
            self.touched.push(old.stream);
            let stream = self.streams.entry(old.stream).or_default();
            stream.packets -= old.packets;
            stream.events -= old.events;
            stream.overwritten += old.events;
            stream.last = stream.last.take().filter(|l| l.0 != old.name);
        }
        Ok(())
    }

    /// Bytes of streams that other events need.
    fn needed(&self) -> u64 {
        let open = self.open.values().map(|p| &p.size);
        self.closed.iter().chain(open).filter(|s| s.stream.is_needed()).map(|s| s.bytes).sum()
    }

    /// What was lost.
    pub fn lost(&self) -> Lost {
        let all = self.streams.values();
        all.fold(Lost::default(), |l, s| Lost {
            unwritten: l.unwritten + s.unwritten,
            overwritten: l.overwritten + s.overwritten,
        })
    }

    /// What became of each stream.
    pub fn streams(&self) -> &BTreeMap<StreamId, Kept> {
        &self.streams
    }

    /// Streams whose counters have changed since the last call.
    pub fn touched(&mut self) -> Vec<StreamId> {
        std::mem::take(&mut self.touched)
    }

    /// Bytes that are in the files of streams.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of everything that is in the directory.
    pub fn all_bytes(&self) -> u64 {
        self.bytes + self.store.overhead()
    }

    /// The store, for what else is to be written there.
    pub fn store(&mut self) -> &mut S {
        &mut self.store
    }

    /// Stops writing, for this reason.
    pub fn fail(&mut self, why: &io::Error) {
        self.failure.get_or_insert_with(|| crate::folder::reason(why));
    }

    /// Whether a write has failed.
    pub fn failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Why nothing more was written.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Adds to the header of each stream's last packet what the stream lost after it: the header has its place on the disk,
    /// however full that is. The losses of a stream without a packet in a file are added to the first stream that has one: readers that
    /// do not know the end record would not see them otherwise.
    pub fn settle(&mut self) -> io::Result<()> {
        let lost = |s: &Kept| s.discarded + s.unwritten;
        let mut orphans: u64 = self.streams.values().filter(|s| s.last.is_none()).map(lost).sum();
        for s in self.streams.values_mut() {
            let discarded = lost(s);
            let Some((file, at, info)) = &mut s.last else { continue };
            let discarded = discarded + std::mem::take(&mut orphans);
            if info.discarded >= discarded {
                continue;
            }
            let last = Info { discarded, end: info.end.max(s.until), ..*info };
            if let Some(two) = packet::split(info, &last) {
                self.store.rewrite(file, *at, &two)?;
                s.packets += 1;
            } else {
                let mut head = vec![0; last.head()];
                last.write(&mut head);
                self.store.rewrite(file, *at, &head)?;
            }
            *info = last;
        }
        Ok(())
    }

    /// Bytes that may still be added.
    pub fn room(&self) -> u64 {
        match self.limit {
            Limit::None => u64::MAX,
            Limit::Files(max) => max.saturating_sub(self.all_bytes()),
        }
    }

    /// The lines of the streams for the end record.
    pub fn ends(&self) -> Vec<StreamEnd> {
        let of = |(id, s): (&StreamId, &Kept)| StreamEnd {
            name: id.to_string(),
            id: *id,
            packets: s.packets,
            events: s.events,
            discarded: s.discarded + s.unwritten,
            taken: s.taken,
            unwritten: s.unwritten,
        };
        self.streams.iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::PacketWriter;

    /// Files in memory, and a disk that is full after this many bytes.
    #[derive(Default)]
    struct Memory {
        files: BTreeMap<String, Vec<u8>>,
        room: Option<u64>,
        /// The most bytes that were there at once.
        most: u64,
        beside: u64,
    }
    impl Store for Memory {
        type File = String;
        fn begin(&mut self) -> io::Result<()> {
            self.beside += 10;
            Ok(())
        }
        fn rewrite(&mut self, name: &str, at: u64, bytes: &[u8]) -> io::Result<()> {
            self.files.get_mut(name).ok_or(io::ErrorKind::NotFound)?[at as usize..][..bytes.len()]
                .copy_from_slice(bytes);
            Ok(())
        }
        fn overhead(&self) -> u64 {
            self.beside
        }
        fn create(&mut self, name: &str) -> io::Result<String> {
            self.files.insert(name.into(), Vec::new());
            Ok(name.into())
        }
        fn append(&mut self, file: &mut String, at: u64, bytes: &[u8]) -> io::Result<()> {
            let used: u64 = self.files.values().map(|f| f.len() as u64).sum();
            if self.room.is_some_and(|r| used + bytes.len() as u64 > r) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let f = self.files.get_mut(file).unwrap();
            assert_eq!(f.len() as u64, at);
            f.extend_from_slice(bytes);
            self.most = self.most.max(used + bytes.len() as u64);
            Ok(())
        }
        fn remove(&mut self, name: &str) -> io::Result<()> {
            self.files.remove(name).map(drop).ok_or(io::ErrorKind::NotFound.into())
        }
    }

    fn packet(cpu: u32, n: usize, events: u64) -> Packet {
        Packet { stream: StreamId::cpu(cpu), bytes: vec![1; n], events }
    }

    #[test]
    fn the_oldest_parts_go_and_are_counted() {
        let mut f = Files::new(Memory::default(), Limit::Files(1000));
        for i in 0..200 {
            f.put(&packet(i % 2, 20, 3)).unwrap();
        }
        let on_disk: u64 = f.store.files.values().map(|f| f.len() as u64).sum();
        assert_eq!(f.bytes(), on_disk);
        assert!(on_disk <= 1000 && on_disk > 700, "{on_disk}");
        assert!(f.store.most <= 1000, "{}", f.store.most);
        assert_eq!(f.lost(), Lost { unwritten: 0, overwritten: 600 - on_disk / 20 * 3 });
        assert!(!f.store.files.contains_key("cpu_0.0") && f.store.files.keys().any(|k| k.starts_with("cpu_1.")));
    }

    #[test]
    fn a_stream_that_has_gone_quiet_loses_its_events_too() {
        let mut f = Files::new(Memory::default(), Limit::Files(1000));
        f.put(&packet(0, 20, 1)).unwrap();
        (0..100).for_each(|_| f.put(&packet(1, 20, 1)).unwrap());
        assert!(!f.store.files.contains_key("cpu_0.0"), "{:?}", f.store.files.keys());
        f.put(&packet(0, 20, 1)).unwrap();
        assert!(f.store.files.contains_key("cpu_0.1"));
        // What can never be kept is counted, and the limit holds.
        f.put(&packet(1, 1001, 50)).unwrap();
        let kept: u64 = f.store.files.values().map(|f| f.len() as u64 / 20).sum();
        assert_eq!(f.lost().overwritten + kept, 152);
        assert!(f.store.most <= 1000);
    }

    /// A packet of `events` events of a stream that has lost `discarded` so far.
    fn filled(writer: &mut PacketWriter, events: u64, discarded: u64) -> Packet {
        for i in 0..events {
            writer.push(&[&(1000 + i).to_le_bytes()[..], &[0; 24]].concat());
        }
        writer.set_discarded(discarded);
        writer.close()
    }

    /// Number, lost events and end of each packet of a file.
    fn heads(files: &Files<Memory>, name: &str) -> Vec<(u64, u64, u64)> {
        let (bytes, mut at, mut all) = (&files.store.files[name], 0, Vec::new());
        while at < bytes.len() {
            let i = Info::read(&bytes[at..], Format::NOW).unwrap();
            at += i.size as usize;
            all.push((i.seq, i.discarded, i.end));
        }
        all
    }

    #[test]
    fn what_a_full_disk_has_cost_is_in_the_heads_that_are_there() {
        let mut f = Files::new(Memory { room: Some(600), ..Memory::default() }, Limit::None);
        let mut writers: Vec<PacketWriter> =
            (0..3).map(|i| PacketWriter::new([1; 16], StreamId::cpu(i), 500)).collect();
        // One with a full packet, one with an empty one, one that comes too late.
        f.put(&filled(&mut writers[0], 0, 0)).unwrap();
        f.put(&filled(&mut writers[1], 0, 0)).unwrap();
        f.put(&filled(&mut writers[0], 3, 2)).unwrap();
        assert!(f.put(&filled(&mut writers[0], 10, 4)).is_err());
        f.put(&filled(&mut writers[1], 7, 1)).unwrap();
        f.put(&filled(&mut writers[2], 5, 6)).unwrap();
        f.settle().unwrap();
        // Its own 4 and 10, and the third one's 6 and 5.
        assert_eq!(heads(&f, "cpu_0"), [(0, 0, 500), (1, 4 + 10 + 6 + 5, 1009)]);
        assert_eq!(heads(&f, "cpu_1"), [(0, 0, 500), (1, 1 + 7, 1006)]);
        let said: Vec<_> = f.ends().iter().map(|e| (e.packets, e.events, e.discarded, e.taken, e.unwritten)).collect();
        assert_eq!(said, [(2, 3, 14, 13, 10), (2, 0, 8, 7, 7), (0, 0, 11, 5, 5)]);
        // Once is enough.
        f.settle().unwrap();
        assert_eq!(heads(&f, "cpu_1").len(), 2);
    }

    #[test]
    fn a_full_disk_is_said_once_and_what_follows_is_counted() {
        let mut f = Files::new(Memory { room: Some(50), ..Memory::default() }, Limit::None);
        assert!(f.put(&packet(0, 40, 5)).is_ok());
        assert_eq!(f.put(&packet(0, 40, 6)).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(f.put(&packet(0, 1, 7)).is_ok());
        assert_eq!((f.lost(), f.bytes()), (Lost { unwritten: 13, overwritten: 0 }, 40));
    }
}
