//! A flight recorder: the last packets, in memory.

use crate::packet::Packet;
use events::StreamId;
use std::collections::{BTreeMap, VecDeque};

/// The last packets of all streams.
#[derive(Debug, Default)]
pub struct Flight {
    /// Each with its number among all packets that came.
    packets: VecDeque<(u64, Packet)>,
    /// Packets so far.
    puts: u64,
    bytes: u64,
    /// Bytes of streams that are needed ([`StreamId::is_needed`]).
    needed: u64,
    max: u64,
    /// Events that were overwritten by newer ones. by stream.
    overwritten: BTreeMap<StreamId, u64>,
    /// Streams of which events were overwritten.
    touched: Vec<StreamId>,
}

impl Flight {
    /// Keeps this many bytes.
    pub fn new(max: u64) -> Flight {
        Flight { max, ..Flight::default() }
    }

    /// Keeps a packet; the oldest ones are overwritten where there is no room. Mappings and stacks, which other events need, go last, as
    /// long as they take at most half of the room.
    pub fn put(&mut self, packet: Packet) {
        self.count(&packet, u64::wrapping_add);
        self.packets.push_back((self.puts, packet));
        self.puts += 1;
        while self.bytes > self.max && self.packets.len() > 1 {
            let spare = self.needed > self.max / 2;
            let others = self.packets.iter().position(|(_, p)| spare || !p.stream.is_needed());
            let Some((_, p)) = self.packets.remove(others.unwrap_or(0)) else { return };
            self.count(&p, u64::wrapping_sub);
            *self.overwritten.entry(p.stream).or_default() += p.events;
            self.touched.push(p.stream);
        }
    }

    fn count(&mut self, packet: &Packet, change: fn(u64, u64) -> u64) {
        let bytes = packet.bytes.len() as u64;
        self.bytes = change(self.bytes, bytes);
        if packet.stream.is_needed() {
            self.needed = change(self.needed, bytes);
        }
    }

    /// What is kept, oldest first, each with its number among all packets that came.
    pub fn packets(&self) -> impl Iterator<Item = (u64, &Packet)> {
        self.packets.iter().map(|(n, packet)| (*n, packet))
    }

    /// Events that were overwritten by newer ones.
    pub fn overwritten(&self) -> u64 {
        self.overwritten.values().sum()
    }

    /// Events of a stream that were overwritten by newer ones.
    pub fn overwritten_of(&self, id: StreamId) -> u64 {
        self.overwritten.get(&id).copied().unwrap_or(0)
    }

    /// Streams of which events were overwritten since the last call.
    pub fn touched(&mut self) -> Vec<StreamId> {
        std::mem::take(&mut self.touched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(cpu: u32, n: usize, events: u64) -> Packet {
        Packet { stream: StreamId::cpu(cpu), bytes: vec![1; n], events }
    }

    #[test]
    fn a_flight_recorder_keeps_the_last() {
        let mut f = Flight::new(100);
        (0..10).for_each(|i| f.put(packet(i, 30, 1)));
        assert_eq!(f.packets().map(|(n, p)| (n, p.stream.scope_id())).collect::<Vec<_>>(), [(7, 7), (8, 8), (9, 9)]);
        assert_eq!(f.overwritten(), 7);
        f.put(packet(11, 500, 1));
        assert_eq!(f.packets().map(|(n, p)| (n, p.stream.scope_id())).collect::<Vec<_>>(), [(10, 11)]);
        assert_eq!((f.overwritten(), f.overwritten_of(StreamId::cpu(9)), f.touched().len()), (10, 1, 10));
    }

    #[test]
    fn what_other_events_need_goes_last() {
        let of = |stream| Packet { stream, bytes: vec![1; 20], events: 1 };
        let mut f = Flight::new(100);
        f.put(of(StreamId::STACKS));
        f.put(of(StreamId::MAPS));
        (0..10).for_each(|i| f.put(packet(i, 20, 1)));
        let kept: Vec<_> = f.packets().map(|(n, p)| (n, p.stream)).collect();
        assert_eq!(kept[..2], [(0, StreamId::STACKS), (1, StreamId::MAPS)]);
        assert_eq!(kept[2..].iter().map(|k| k.0).collect::<Vec<_>>(), [9, 10, 11]);
        // More than half of the room they do not get.
        (0..10).for_each(|_| f.put(of(StreamId::STACKS)));
        assert!(f.packets().all(|(n, _)| n > 2) && f.packets().count() == 5);
    }
}
