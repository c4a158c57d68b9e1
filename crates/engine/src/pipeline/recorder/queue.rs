//! The queue between the thread that adds events and the writer thread.

use crate::stats::totals::StreamTotals;
use ctf::packet::Packet;
use events::functions::Moment;
use events::{Schema, StreamId};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What the writer thread has to do.
pub enum Job {
    /// Store a packet.
    Packet(Packet),
    /// Describe classes of events that packets will have from now on.
    Classes(Vec<&'static Schema>),
    /// Describe function records, and their clock by two moments.
    Clock((Moment, Moment)),
    /// Write what is in memory to a directory.
    Snapshot,
    /// Stay off this processor, or run anywhere.
    KeepOff(Option<u32>),
}

/// Something that the user should know during the recording.
#[derive(Debug)]
pub enum News {
    /// The trace ends here: the disk is full, or worse.
    Failed(PathBuf, io::Error),
    /// A snapshot was written: where, and how many events of enabled probes are in it.
    Snapshot(PathBuf, u64),
    /// A snapshot could not be written, or not whole.
    NoSnapshot(PathBuf, io::Error),
}

/// The writer's progress.
#[derive(Clone, Default)]
pub struct Done {
    /// Bytes on disk, with everything that is in the directory.
    pub bytes: u64,
    /// Events that were overwritten by newer ones.
    pub overwritten: u64,
    /// Events that could not be written, by class.
    pub unwritten: Vec<u64>,
    /// What became of the events of each stream; without what the recorder took.
    pub streams: BTreeMap<StreamId, StreamTotals>,
}

/// The fields that the lock protects.
#[derive(Default)]
pub struct Queue {
    /// Oldest first.
    pub jobs: VecDeque<Job>,
    /// Bytes of the packets among them.
    pub bytes: usize,
    /// Buffers for new packets.
    pub spare: Vec<Vec<u8>>,
    /// No more jobs will come.
    pub done: bool,
    /// What the writer has done.
    pub written: Done,
    /// What to report to the user, oldest first.
    pub news: Vec<News>,
    /// A snapshot was requested.
    pub snapshot_wanted: bool,
    /// Lines for the record of the end, among them what was counted of enablings.
    pub counts: Vec<String>,
    /// Records of mappings that the kernel could not write.
    pub lost_mappings: u64,
}

/// The queue. Legend: the thread that adds events adds jobs, the writer takes them; both, and handles of the front end, take the lock.
#[derive(Default)]
pub struct Shared {
    queue: Mutex<Queue>,
    /// Signalled when there is a job, or when there will be no more.
    pub ready: Condvar,
    /// Mappings, on their way to the thread that adds events.
    pub maps: Mutex<Vec<Vec<u8>>>,
}

impl Shared {
    /// Takes the lock.
    pub fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next job; `None` when no more will come.
    pub fn next(&self) -> Option<Job> {
        let mut queue = self.queue();
        while queue.jobs.is_empty() && !queue.done {
            queue = self.ready.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.jobs.pop_front()
    }

    /// Mappings that have come since the last call.
    pub fn take_maps(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut *self.maps.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
