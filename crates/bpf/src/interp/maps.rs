//! Maps of the interpreter: arrays, hashes, task storage, stack traces, arrays of maps, and the ring.
//!
//! Not per CPU: a per-CPU array is the array of the one CPU that there is. Not here: how helpers take their arguments.
//!
//! Invariant: a value keeps its address as long as it exists; a ring hands out no more bytes than the kernel's would
//! (`__bpf_ringbuf_reserve`, `kernel/bpf/ringbuf.c`, 6.18), and counts what it refuses.

use std::collections::BTreeMap;

use super::memory::STALE;
use super::{Access, Cause, Machine};

/// What a map is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Values by index, all there from the start; also per-CPU arrays.
    Array,
    /// Values by key.
    Hash,
    /// Values by task.
    TaskStorage,
    /// Stacks by number.
    Stacks,
    /// A ring buffer.
    Ring,
    /// Maps by index.
    Maps,
}

/// A map: its shape, its values, and what went out through it.
#[derive(Clone, Debug)]
pub struct Map {
    pub(super) kind: Kind,
    pub(super) key_size: usize,
    pub(super) value_size: usize,
    pub(super) max: u64,
    handle: u64,
    /// By key: the value's address.
    values: BTreeMap<Vec<u8>, u64>,
    /// In order of reservation: (address while open, discarded, bytes).
    records: Vec<Record>,
    pub(super) produced: u64,
    pub(super) consumed: u64,
    pub(super) dropped: u64,
}

#[derive(Clone, Debug)]
struct Record {
    open: Option<u64>,
    discarded: bool,
    bytes: Vec<u8>,
}

/// Bytes that a record takes: header of 8, rounded up to 8 (`BPF_RINGBUF_HDR_SZ`).
fn footprint(len: usize) -> u64 {
    (len as u64).saturating_add(15) & !7
}

impl Machine {
    fn add_map(&mut self, fd: i32, kind: Kind, key_size: usize, value_size: usize, max: u64) {
        let handle = self.memory.add(Vec::new(), Access::Probe);
        let (values, records) = (BTreeMap::new(), Vec::new());
        let (produced, consumed, dropped) = (0, 0, 0);
        let map = Map { kind, key_size, value_size, max, handle, values, records, produced, consumed, dropped };
        self.maps.insert(fd, map);
    }
    /// Adds an array or a per-CPU array.
    pub fn add_array(&mut self, fd: i32, value_size: usize, max: u32) {
        self.add_map(fd, Kind::Array, 4, value_size, max.into());
    }
    /// Adds a hash.
    pub fn add_hash(&mut self, fd: i32, key_size: usize, value_size: usize, max: u32) {
        self.add_map(fd, Kind::Hash, key_size, value_size, max.into());
    }
    /// Adds a task storage.
    pub fn add_task_storage(&mut self, fd: i32, value_size: usize) {
        self.add_map(fd, Kind::TaskStorage, 8, value_size, u64::MAX);
    }
    /// Adds a map of stack traces of `depth` frames.
    pub fn add_stacks(&mut self, fd: i32, depth: usize, max: u32) {
        self.add_map(fd, Kind::Stacks, 4, depth * 8, max.into());
    }
    /// Adds a ring buffer of `size` bytes.
    pub fn add_ring(&mut self, fd: i32, size: u64) {
        self.add_map(fd, Kind::Ring, 0, 0, size);
    }
    /// Adds an array of maps.
    pub fn add_maps(&mut self, fd: i32, max: u32) {
        self.add_map(fd, Kind::Maps, 4, 4, max.into());
    }
    /// Puts the map `inner` into an array of maps; `false` if one of them does not exist.
    pub fn set_map(&mut self, fd: i32, index: u32, inner: i32) -> bool {
        let Ok(handle) = self.map_handle(inner) else { return false };
        let map = self.maps.get_mut(&fd).filter(|m| m.kind == Kind::Maps && u64::from(index) < m.max);
        map.map(|m| m.values.insert(index.to_le_bytes().to_vec(), handle)).is_some()
    }

    /// The bytes of a value, if it exists.
    pub fn value(&self, fd: i32, key: &[u8]) -> Option<Vec<u8>> {
        let map = self.maps.get(&fd)?;
        let value = map.values.get(key);
        match (value, map.kind) {
            (Some(address), _) => self.memory.peek(*address, map.value_size).map(<[u8]>::to_vec),
            (None, Kind::Array) if map.index(key).is_some() => Some(vec![0; map.value_size]),
            _ => None,
        }
    }
    /// Sets a value from outside; `false` if the map refuses it.
    pub fn set_value(&mut self, fd: i32, key: &[u8], value: &[u8]) -> bool {
        let right = self.maps.get(&fd).is_some_and(|m| (m.key_size, m.value_size) == (key.len(), value.len()));
        right && self.update(fd, key, value, 0) == 0
    }
    /// Removes a value from outside; `false` if there is none.
    pub fn remove_value(&mut self, fd: i32, key: &[u8]) -> bool {
        self.delete(fd, key) == 0
    }
    /// Every key of a map that has a value.
    pub fn keys(&self, fd: i32) -> Vec<Vec<u8>> {
        self.maps.get(&fd).map(|m| m.values.keys().cloned().collect()).unwrap_or_default()
    }

    /// What was submitted to a ring or a perf array and not drained yet.
    pub fn records(&self, fd: i32) -> Vec<Vec<u8>> {
        let records = self.maps.get(&fd).map(|m| m.records.as_slice()).unwrap_or_default();
        let done = records.iter().filter(|r| r.open.is_none() && !r.discarded);
        done.map(|r| r.bytes.clone()).collect()
    }
    /// Takes what was submitted, and gives the ring its room back.
    pub fn drain(&mut self, fd: i32) -> Vec<Vec<u8>> {
        let records = self.records(fd);
        if let Some(map) = self.maps.get_mut(&fd) {
            map.records.clear();
            map.consumed = map.produced;
        }
        records
    }
    /// How many records a ring had no room for.
    pub fn dropped(&self, fd: i32) -> u64 {
        self.maps.get(&fd).map_or(0, |m| m.dropped)
    }

    pub(super) fn map_handle(&self, fd: i32) -> Result<u64, Cause> {
        self.maps.get(&fd).map(|m| m.handle).ok_or(Cause::NoMap(fd))
    }
    /// The only value of an array, by the rule of `array_map_direct_value_addr` (`kernel/bpf/arraymap.c`, 6.18).
    pub(super) fn map_value(&mut self, fd: i32) -> Result<u64, Cause> {
        let map = self.maps.get(&fd).ok_or(Cause::NoMap(fd))?;
        if map.kind != Kind::Array || map.max != 1 {
            return Err(Cause::Argument("direct value of something else than an array of one"));
        }
        self.lookup(fd, &[0; 4]).ok_or(Cause::Argument("array without a value"))
    }
    /// The map that a pointer means, which must be of one of these kinds.
    pub(super) fn map_of(&self, handle: u64, kinds: &[Kind]) -> Result<(i32, &Map), Cause> {
        let found = self.maps.iter().find(|(_, m)| m.handle == handle && kinds.contains(&m.kind));
        found.map(|(fd, m)| (*fd, m)).ok_or(Cause::Argument("not a map of the right kind"))
    }

    pub(super) fn lookup(&mut self, fd: i32, key: &[u8]) -> Option<u64> {
        let map = self.maps.get_mut(&fd)?;
        if map.kind == Kind::Array {
            map.index(key)?;
            let size = map.value_size;
            return Some(
                *map.values.entry(key.to_vec()).or_insert_with(|| self.memory.add(vec![0; size], Access::ReadWrite)),
            );
        }
        map.values.get(key).copied()
    }

    /// `map_update_elem`: 0 or -errno.
    pub(super) fn update(&mut self, fd: i32, key: &[u8], value: &[u8], flags: u64) -> i64 {
        let Some(map) = self.maps.get(&fd) else { return -EBADF };
        let exists = if map.kind == Kind::Array { map.index(key).is_some() } else { map.values.contains_key(key) };
        let full = if map.kind == Kind::Array { !exists } else { map.values.len() as u64 >= map.max };
        match (flags, exists) {
            (3.., _) => return -EINVAL,
            (_, false) if map.kind == Kind::Array => return -E2BIG,
            (NOEXIST, true) => return -EEXIST,
            (EXIST, false) => return -ENOENT,
            (_, false) if full => return -E2BIG,
            _ => {}
        }
        match self.lookup(fd, key) {
            Some(address) => self.memory.write(address, value).map_or(-EINVAL, |()| 0),
            None => {
                self.insert(fd, key, value);
                0
            }
        }
    }

    /// Puts a value under a key that has none, and gives its address.
    pub(super) fn insert(&mut self, fd: i32, key: &[u8], value: &[u8]) -> u64 {
        let address = self.memory.add(value.to_vec(), Access::ReadWrite);
        if let Some(map) = self.maps.get_mut(&fd) {
            map.values.insert(key.to_vec(), address);
        }
        address
    }

    /// `map_delete_elem`: 0 or -errno. The value's memory stays readable, as under RCU.
    pub(super) fn delete(&mut self, fd: i32, key: &[u8]) -> i64 {
        let Some(map) = self.maps.get_mut(&fd) else { return -EBADF };
        if map.kind == Kind::Array {
            return -EINVAL;
        }
        map.values.remove(key).map_or(-ENOENT, |_| 0)
    }

    /// Reserves room in a ring, or counts the event as lost.
    pub(super) fn reserve(&mut self, fd: i32, len: usize) -> Option<u64> {
        let map = self.maps.get_mut(&fd)?;
        let produced = map.produced.saturating_add(footprint(len));
        if map.kind == Kind::Ring {
            // The kernel compares with the mask: a ring is never filled to its last byte.
            if produced - map.consumed > map.max.saturating_sub(1) {
                map.dropped += 1;
                return None;
            }
        }
        map.produced = produced;
        let address = self.memory.add(vec![STALE; len], Access::ReadWrite);
        map.records.push(Record { open: Some(address), discarded: false, bytes: vec![0; len] });
        Some(address)
    }

    /// Submits or discards the record at an address.
    pub(super) fn release(&mut self, address: u64, discarded: bool) -> Result<(), Cause> {
        let mut records = self.maps.values_mut().flat_map(|m| &mut m.records);
        let record = records.find(|r| r.open == Some(address)).ok_or(Cause::Argument("not an open ring record"))?;
        let bytes = self.memory.read(address, record.bytes.len())?.to_vec();
        *record = Record { open: None, discarded, bytes };
        self.memory.free(address);
        Ok(())
    }

    /// Puts a whole record out.
    pub(super) fn output(&mut self, fd: i32, bytes: &[u8]) -> Result<bool, Cause> {
        let Some(address) = self.reserve(fd, bytes.len()) else { return Ok(false) };
        self.memory.write(address, bytes)?;
        self.release(address, false)?;
        Ok(true)
    }

    /// Forgets records that are still open, and returns how many there were.
    pub(super) fn abandon_records(&mut self) -> usize {
        let mut open = 0;
        for map in self.maps.values_mut() {
            map.records.retain(|r| {
                r.open.is_none() || {
                    open += 1;
                    false
                }
            });
        }
        open
    }

    /// The number of an equal stack, or of a new one, or None if there is no room.
    pub(super) fn stack_number(&mut self, fd: i32, stack: &[u8]) -> Option<u32> {
        let map = self.maps.get(&fd)?;
        let same = |a: &u64| self.memory.peek(*a, stack.len()) == Some(stack);
        if let Some((key, _)) = map.values.iter().find(|(_, address)| same(address)) {
            return key.as_chunks::<4>().0.first().map(|k| u32::from_le_bytes(*k));
        }
        let number = u32::try_from(map.values.len()).ok().filter(|n| u64::from(*n) < map.max)?;
        self.insert(fd, &number.to_le_bytes(), stack);
        Some(number)
    }
}

impl Map {
    /// The index that a key of an array is.
    fn index(&self, key: &[u8]) -> Option<u64> {
        let index = u64::from(u32::from_le_bytes(key.try_into().ok()?));
        (index < self.max).then_some(index)
    }
}

const NOEXIST: u64 = 1;
const EXIST: u64 = 2;
pub(super) const ENOENT: i64 = 2;
pub(super) const E2BIG: i64 = 7;
pub(super) const EBADF: i64 = 9;
pub(super) const EAGAIN: i64 = 11;
pub(super) const EFAULT: i64 = 14;
pub(super) const EEXIST: i64 = 17;
pub(super) const EINVAL: i64 = 22;
