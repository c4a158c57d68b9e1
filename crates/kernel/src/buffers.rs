//! The scratch buffers of programs, one per CPU, as user space has them mapped: counters, switches, and rings where the buffers are rings.

use super::ring::Ring;
use bpf::scratch::{HEAD, SWITCH, Shape, TAIL};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use sys::bpf::map::{MMAPABLE, Map, Values};
use sys::bpf::own_ring::{OwnRing, Place};

/// The buffers.
pub struct Buffers {
    memory: Memory,
    shape: Shape,
    cpus: u32,
}

enum Memory {
    Mapped(Arc<Values>),
    /// What the counters said when the memory was given back: by CPU, place and word.
    Last(Vec<Vec<Vec<u64>>>),
}

impl Buffers {
    /// Makes the map of the buffers of `cpus` processors, which programs keep. They may run once [`Buffers::of`] has set its first words.
    ///
    /// # Errors
    /// The kernel has no memory, or makes no map of this size.
    pub fn map(name: &str, shape: Shape, cpus: u32) -> io::Result<Map> {
        Map::array(name, shape.size(), cpus, MMAPABLE)
    }

    /// The buffers in their map. `switch`: what the switch of a session that takes orders says at first.
    ///
    /// # Errors
    /// The kernel has no memory.
    pub fn of(map: &Map, shape: Shape, cpus: u32, switch: Option<u64>) -> io::Result<Buffers> {
        let values = Arc::new(map.mmap()?);
        for cpu in 0..cpus {
            for (at, first) in shape.first_words() {
                if let Some(word) = values.word(cpu as usize * shape.size() as usize + at) {
                    word.store(first, Ordering::Relaxed);
                }
            }
        }
        let buffers = Buffers { memory: Memory::Mapped(values), shape, cpus };
        if let Some(switch) = switch {
            buffers.set(SWITCH, switch);
        }
        Ok(buffers)
    }

    /// The rings in the buffers, by CPU, for events of `size` bytes; there may be only one reader.
    ///
    /// # Errors
    /// The buffers are no rings.
    pub fn rings(&self, size: usize) -> io::Result<Vec<Ring>> {
        let (Memory::Mapped(values), Some(places)) = (&self.memory, self.shape.levels()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let of = |cpu: u32| {
            let base = cpu as usize * self.shape.size() as usize;
            let places = places.map(|place| Place {
                tail: base + self.shape.word_of(&place, TAIL),
                head: base + self.shape.word_of(&place, HEAD),
                data: base + place.data as usize,
                size: place.size as usize,
                slack: place.slack as usize,
            });
            Ok(Ring::Own { ring: OwnRing::new(values, &places)?, size })
        };
        (0..self.cpus).map(of).collect()
    }

    /// Sets a word of all processors.
    pub fn set(&self, word: i16, to: u64) {
        let Memory::Mapped(values) = &self.memory else { return };
        for at in (0..self.cpus).flat_map(|cpu| self.shape.indices(cpu, word)) {
            if let Some(word) = values.word(at) {
                word.store(to, Ordering::Release);
            }
        }
    }

    /// A counter, of all processors.
    pub fn sum(&self, which: i16) -> u64 {
        (0..self.cpus).map(|cpu| self.of_cpu(cpu, which)).sum()
    }

    /// A counter of a processor.
    pub fn of_cpu(&self, cpu: u32, which: i16) -> u64 {
        match &self.memory {
            Memory::Mapped(values) => {
                let word = |at| values.word(at).map_or(0, |w| w.load(Ordering::Relaxed));
                self.shape.indices(cpu, which).map(word).sum()
            }
            Memory::Last(words) => {
                let nth = self.shape.index(0, which) / 8;
                words.get(cpu as usize).map_or(0, |places| places.iter().filter_map(|words| words.get(nth)).sum())
            }
        }
    }

    /// Gives the memory back, once its rings and its programs are gone too; the counters stay what they are.
    pub fn free(&mut self) {
        let Memory::Mapped(values) = &self.memory else { return };
        let words = |at: usize| {
            (0..self.shape.words() as usize / 8)
                .map(|nth| values.word(at + 8 * nth).map_or(0, |w| w.load(Ordering::Relaxed)))
                .collect()
        };
        let first = self.shape.first_word();
        let of = |cpu: u32| self.shape.indices(cpu, first).map(words).collect();
        self.memory = Memory::Last((0..self.cpus).map(of).collect());
    }
}
