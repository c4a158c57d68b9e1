//! What a session has recorded, at one moment.
//!
//! The table is read bucket by bucket: an object that is there all the time is read exactly once. What was allocated after the reading
//! began is left out, so that a snapshot has the objects of one moment, without those that were released while it was taken.

use super::session::Session;
use super::unable;
use crate::error::Result;
use bpf::slab::{FRAMES, counter, value};
use std::collections::HashMap;
use std::io;

/// Entries that one call reads.
const ROOM: usize = 4096;
/// What is remembered under this key is the moment, and not a stack.
const MOMENT: u64 = 0;

/// An outstanding object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// When it was allocated, ns of CLOCK_MONOTONIC.
    pub time: u64,
    /// The process that has allocated it, in the initial pid namespace.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// The thread's name.
    pub comm: [u8; 16],
    /// The instruction in user space at which the thread has entered the kernel; 0: none.
    pub user_pc: u64,
    /// The inode of the executable; 0: none.
    pub inode: u64,
    /// The place that has called the allocator; 0: not known.
    pub call_site: u64,
    /// The kernel's stack, innermost first; 0 after the last frame.
    pub stack: [u64; FRAMES],
}

/// The objects, and what is to be said of them.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Oldest first.
    pub objects: Vec<Object>,
    /// When they were read, ns of CLOCK_MONOTONIC.
    pub time: u64,
    /// Allocations are recorded.
    pub running: bool,
    /// Allocations that did not fit, since the start or the last reset.
    pub full: u64,
    /// Allocations that the kernel's table refused for another reason.
    pub failed: u64,
    /// Objects that were replaced by another one of the same address: their release has passed no tracepoint.
    pub replaced: u64,
    /// Releases that the kernel's table refused, at most: objects that are shown and are gone.
    pub kept: u64,
    /// Runs of programs that the kernel has skipped, since the session was made.
    pub missed: u64,
}

impl Object {
    fn parse(key: &[u8], bytes: &[u8]) -> Option<Object> {
        let word = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
        let half = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
        let mut stack = [0; FRAMES];
        for (nth, frame) in stack.iter_mut().enumerate() {
            *frame = word(value::STACK + 8 * nth)?;
        }
        Some(Object {
            address: u64::from_le_bytes(key.try_into().ok()?),
            size: word(value::SIZE)?,
            time: word(value::TIME)?,
            pid: half(value::PID)?,
            tid: half(value::TID)?,
            comm: bytes.get(value::COMM..value::COMM + 16)?.try_into().ok()?,
            user_pc: word(value::USER_PC)?,
            inode: word(value::INODE)?,
            call_site: word(value::CALL_SITE)?,
            stack,
        })
    }

    /// The frames of its stack.
    pub fn frames(&self) -> &[u64] {
        let end = self.stack.iter().position(|f| *f == 0).unwrap_or(FRAMES);
        &self.stack[..end]
    }

    /// A number that is the same for objects of one stack (FNV-1a), and never 0.
    pub fn stack_hash(&self) -> u64 {
        let mix = |hash: u64, b: u8| (hash ^ u64::from(b)).wrapping_mul(0x100_0000_01b3);
        let hash = self.frames().iter().flat_map(|f| f.to_le_bytes()).fold(0xcbf2_9ce4_8422_2325, mix);
        hash.max(1)
    }

    /// The thread's name, without the bytes after its end.
    pub fn comm(&self) -> &[u8] {
        self.comm.split(|b| *b == 0).next().unwrap_or_default()
    }
}

impl Session {
    /// Reads what was recorded. Objects of trapline itself are left out.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.read().map_err(|e| unable(&self.name, &e))
    }

    fn read(&self) -> io::Result<Snapshot> {
        let (table, own) = (self.table()?, sys::process::own_pid() as u32);
        let mut taken = Snapshot { time: sys::time::monotonic(), running: self.is_running(), ..Snapshot::default() };
        table.each(ROOM, |key, bytes| {
            let Some(object) = Object::parse(key, bytes) else { return };
            if object.address == 0 {
                let count = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
                taken.full = count(counter::FULL);
                taken.failed = count(counter::FAILED);
                taken.replaced = count(counter::REPLACED);
                taken.kept = count(counter::KEPT);
            } else if object.time <= taken.time && object.pid != own {
                taken.objects.push(object);
            }
        })?;
        order::by_key(&mut taken.objects, |o| (o.time, o.address));
        taken.missed = self.missed();
        Ok(taken)
    }

    /// How many objects of each stack there were when this was called last; and remembers these counts. None: it is the first time.
    pub fn exchange_counts(&self, counts: &HashMap<u64, (u64, u64)>) -> Result<Option<HashMap<u64, (u64, u64)>>> {
        self.exchange(counts).map_err(|e| unable(&self.name, &e))
    }

    fn exchange(&self, counts: &HashMap<u64, (u64, u64)>) -> io::Result<Option<HashMap<u64, (u64, u64)>>> {
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        let mut before = HashMap::new();
        self.remembered.each(ROOM, |key, value| {
            let (objects, bytes) = value.split_at(8);
            before.insert(word(key), (word(objects), word(bytes)));
        })?;
        for key in before.keys().filter(|k| !counts.contains_key(k) && **k != MOMENT) {
            self.remembered.delete(&key.to_le_bytes())?;
        }
        let mut largest: Vec<_> = counts.iter().collect();
        order::by_key(&mut largest, |(_, (objects, _))| std::cmp::Reverse(*objects));
        let most = self.remembered.entries() as usize - 1;
        let (mut keys, mut values) = (MOMENT.to_le_bytes().to_vec(), [0; 16].to_vec());
        for (key, (objects, bytes)) in largest.into_iter().take(most) {
            keys.extend(key.to_le_bytes());
            values.extend([objects.to_le_bytes(), bytes.to_le_bytes()].concat());
        }
        self.remembered.update_all(&keys, &values)?;
        Ok(before.remove(&MOMENT).map(|_| before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_read_from_its_bytes() {
        let mut bytes = vec![0; value::BYTES];
        bytes[value::PID] = 7;
        bytes[value::TID] = 8;
        bytes[value::COMM..value::COMM + 3].copy_from_slice(b"cat");
        bytes[value::STACK] = 1;
        bytes[value::STACK + 8] = 2;
        let object = Object::parse(&5u64.to_le_bytes(), &bytes).unwrap();
        assert_eq!((object.address, object.pid, object.tid, object.comm()), (5, 7, 8, &b"cat"[..]));
        assert_eq!(object.frames(), [1, 2]);
        let other = Object { stack: [1; FRAMES], ..object.clone() };
        assert_eq!(other.frames().len(), FRAMES);
        assert!(object.stack_hash() != other.stack_hash() && object.stack_hash() != 0);
        assert!(Object::parse(&[0; 8], &bytes[..200]).is_none());
    }
}
