//! Processes that are traced and have said nothing yet: children of fork(2) ask for memory when they write their first record. Until they are
//! answered they have that of their parent mapped, or a page of it, by which they are found.

use std::collections::HashSet;
use std::time::{Duration, Instant};
use sys::agent::Shared;
use sys::{maps, proc};

/// How often it is looked which there are.
const LOOK: Duration = Duration::from_millis(100);

/// How often it is looked again whether others have begun meanwhile.
const ROUNDS: usize = 8;

/// They, once they are asked for.
#[derive(Default)]
pub struct Silent {
    /// Device and inode of all memory of the session.
    memories: HashSet<(u32, u32, u64)>,
    found: Vec<i32>,
    looked: Option<Instant>,
}

impl Silent {
    /// A process has got this memory.
    pub fn add(&mut self, memory: &Shared) {
        self.memories.extend(memory.identity());
    }

    /// Whether there may be any. One that was found last time and is not there now is about to ask, or has ended: the next look decides.
    pub fn may_be_there(&mut self) -> bool {
        if self.looked.is_some_and(|at| at.elapsed() < LOOK) {
            return !self.found.is_empty();
        }
        self.looked = Some(Instant::now());
        let has = |pid: &i32| maps::of(*pid).is_ok_and(|all| all.iter().any(|m| self.memories.contains(&m.file)));
        // One may have begun another and ended since it was listed.
        let (mut seen, mut now) = (HashSet::new(), Vec::new());
        for _ in 0..ROUNDS {
            let new: Vec<i32> = proc::younger().into_iter().filter(|pid| seen.insert(*pid)).collect();
            if new.is_empty() {
                break;
            }
            now.extend(new.into_iter().filter(has));
        }
        let before = std::mem::replace(&mut self.found, now);
        !before.is_empty() || !self.found.is_empty()
    }

    /// Those that were found last.
    pub fn found(&self) -> &[i32] {
        &self.found
    }
}
