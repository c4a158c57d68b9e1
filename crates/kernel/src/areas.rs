//! Where the programs of an enabling capture stacks, and what they have counted of them.

use bpf::stacks::{LOST, SIZE, Stacks};
use bpf::unwind::{Tables, area};
use engine::stats::StackCounts;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::Ordering;
use sys::bpf::map::{MMAPABLE, Map, Values};

/// An area per CPU.
pub struct Areas {
    map: Map,
    values: Values,
    cpus: u32,
}

impl Areas {
    /// Makes them.
    ///
    /// # Errors
    /// The kernel has no memory for the map.
    pub fn new(cpus: u32) -> io::Result<Areas> {
        let map = Map::array("trapline_stacks", SIZE as u32, cpus, MMAPABLE)?;
        let values = map.mmap()?;
        Ok(Areas { map, values, cpus })
    }

    /// What programs are made with.
    pub fn stacks(&self, tables: Option<Tables>) -> Stacks {
        Stacks { areas: self.map.as_fd().as_raw_fd(), tables }
    }

    /// What was counted so far.
    pub fn counts(&self) -> StackCounts {
        let word = |cpu: u32, at: i16| {
            let word = self.values.word(cpu as usize * SIZE + at as usize);
            word.map_or(0, |w| w.load(Ordering::Relaxed))
        };
        let sum = |at: i16| (0..self.cpus).map(|cpu| word(cpu, at)).sum::<u64>();
        let endings = (0..unwind::stack::ENDINGS as i16).map(|n| sum(area::ENDINGS_AT + 8 * n)).collect();
        StackCounts { endings, repaired: sum(area::REPAIRED), lost: sum(LOST), tables: Vec::new() }
    }
}
