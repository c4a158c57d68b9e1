//! What lies between whoever brings the events and the writer thread.

use super::StreamTotals;
use ctf::packet::Packet;
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
    /// Write what is in memory to a directory.
    Snapshot,
}

/// Something that the user should know while the recording goes on.
#[derive(Debug)]
pub enum News {
    /// The trace ends here: the disk is full, or worse.
    Failed(PathBuf, io::Error),
    /// A snapshot was written: where, and how many events of enabled probes are in it.
    Snapshot(PathBuf, u64),
    /// A snapshot could not be written, or not whole.
    NoSnapshot(PathBuf, io::Error),
}

/// What the writer has done so far.
#[derive(Clone, Default)]
pub struct Done {
    /// Bytes on disk, with everything that is in the directory.
    pub bytes: u64,
    /// Events that went for newer ones.
    pub overwritten: u64,
    /// Events that could not be written, by class.
    pub unwritten: Vec<u64>,
    /// What became of the events of each stream; without what the recorder took.
    pub streams: BTreeMap<StreamId, StreamTotals>,
}

/// All under the lock.
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
    /// Somebody has asked for a snapshot.
    pub snapshot_wanted: bool,
    /// What was counted of enablings, a line each.
    pub counts: Vec<String>,
    /// Records of mappings that the kernel could not write.
    pub lost_mappings: u64,
}

/// The queue. Legend: the bringing side adds jobs, the writer takes them; both, and handles of the front end, take the lock.
#[derive(Default)]
pub struct Shared {
    queue: Mutex<Queue>,
    /// There is a job, or there will be no more.
    pub ready: Condvar,
    /// Mappings, on their way to whoever brings the events.
    pub maps: Mutex<Vec<Vec<u8>>>,
}

impl Shared {
    /// Takes the lock.
    pub fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next job, once there is one; none when no more will come.
    pub fn next(&self) -> Option<Job> {
        let mut queue = self.queue();
        while queue.jobs.is_empty() && !queue.done {
            queue = self.ready.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.jobs.pop_front()
    }

    /// Mappings that have come since the last time.
    pub fn take_maps(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut *self.maps.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
