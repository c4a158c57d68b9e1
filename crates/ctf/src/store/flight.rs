//! A flight recorder: the last packets, in memory.

use crate::packet::Packet;
use events::StreamId;
use std::collections::{BTreeMap, VecDeque};

/// The last packets of all streams.
#[derive(Debug, Default)]
pub struct Flight {
    packets: VecDeque<Packet>,
    /// Packets that came before the first of them.
    before: u64,
    bytes: u64,
    max: u64,
    /// Events that were overwritten by newer ones. by stream.
    overwritten: BTreeMap<StreamId, u64>,
    /// Streams of which events were overwritten.
    touched: Vec<StreamId>,
}

impl Flight {
    /// Keeps so many bytes.
    pub fn new(max: u64) -> Flight {
        Flight { max, ..Flight::default() }
    }

    /// Keeps a packet; the oldest ones are overwritten where there is no room.
    pub fn put(&mut self, packet: Packet) {
        self.bytes += packet.bytes.len() as u64;
        self.packets.push_back(packet);
        while self.bytes > self.max
            && self.packets.len() > 1
            && let Some(p) = self.packets.pop_front()
        {
            self.before += 1;
            self.bytes -= p.bytes.len() as u64;
            *self.overwritten.entry(p.stream).or_default() += p.events;
            self.touched.push(p.stream);
        }
    }

    /// What is kept, oldest first, each with its number among all packets that came.
    pub fn packets(&self) -> impl Iterator<Item = (u64, &Packet)> {
        (self.before..).zip(&self.packets)
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
}
