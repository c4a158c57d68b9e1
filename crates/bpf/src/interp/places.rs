//! Rings that programs write themselves ([`crate::own_ring`]), as user space sets them up and reads them.

use super::Machine;
use crate::own_ring::HEADER;
use crate::scratch::{HEAD, Shape, TAIL};

impl Machine {
    /// Adds the scratch buffer of the one CPU, with its rings, where it has any.
    pub fn add_buffer(&mut self, fd: i32, shape: Shape) {
        self.add_array(fd, shape.size() as usize, 1);
        if let Some(base) = self.lookup(fd, &[0; 4]) {
            for (at, word) in shape.first_words() {
                self.put_word(base + at as u64, word);
            }
        }
    }

    fn put_word(&mut self, at: u64, word: u64) {
        let _ = self.memory.write(at, &word.to_le_bytes());
    }

    fn get_word(&self, at: u64) -> u64 {
        self.memory.peek(at, 8).and_then(|b| b.first_chunk().copied()).map_or(0, u64::from_le_bytes)
    }

    /// The events in the rings of a scratch buffer that were not drained yet, place by place.
    pub fn drain_buffer(&mut self, fd: i32, shape: Shape) -> Vec<Vec<u8>> {
        let mut events = Vec::new();
        let (Some(base), Some(places)) = (self.lookup(fd, &[0; 4]), shape.levels()) else { return events };
        for place in places {
            let word = |word: i16| base + shape.word_of(&place, word) as u64;
            let (mut head, tail) = (self.get_word(word(HEAD)), self.get_word(word(TAIL)));
            while head < tail {
                let offset = head % u64::from(place.size);
                let at = base + u64::from(place.data) + offset;
                let len = self.get_word(at);
                let event = self.memory.peek(at + u64::from(HEADER), len as usize).map(<[u8]>::to_vec);
                events.push(event.unwrap_or_default());
                head += (len + u64::from(HEADER)).next_multiple_of(8).min(u64::from(place.size) - offset);
            }
            self.put_word(word(HEAD), head);
        }
        events
    }
}
