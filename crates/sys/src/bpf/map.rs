//! Maps: made, read and written from outside. Keys and values are bytes of exactly the map's sizes.
//!
//! A map that holds one value per CPU is read and written as one block: the values of all possible CPUs in a row, each
//! padded to 8 bytes. Task storage is keyed by a pidfd.

use super::{Attr, Command, at, call, call_fd};
use crate::mapping::page_size;
use crate::mapping::{Mapping, Mode};
use crate::processors;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The kind of a map (`enum bpf_map_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs)]
pub enum MapKind {
    Hash = 1,
    Array = 2,
    ProgramArray = 3,
    PerCpuHash = 5,
    PerCpuArray = 6,
    StackTrace = 7,
    LruHash = 9,
    LruPerCpuHash = 10,
    ArrayOfMaps = 12,
    HashOfMaps = 13,
    RingBuf = 27,
    TaskStorage = 29,
}

impl MapKind {
    fn from_number(kind: u32) -> Option<MapKind> {
        use MapKind::*;
        let plain = [Hash, Array, ProgramArray, PerCpuHash, PerCpuArray, StackTrace, LruHash, LruPerCpuHash];
        let mut all = plain.into_iter().chain([ArrayOfMaps, HashOfMaps, RingBuf, TaskStorage]);
        all.find(|k| *k as u32 == kind)
    }

    /// It holds one value for each CPU.
    fn is_per_cpu(self) -> bool {
        matches!(self, MapKind::PerCpuHash | MapKind::LruPerCpuHash | MapKind::PerCpuArray)
    }

    /// Bytes that a lookup fills, where values have this size.
    fn block(self, value_size: usize) -> io::Result<usize> {
        Ok(if self.is_per_cpu() { stride(value_size) * processors::possible()?.len() } else { value_size })
    }
}

/// `BPF_F_NO_PREALLOC`.
pub const NO_PREALLOC: u32 = 1;
/// `BPF_F_RDONLY_PROG`: programs only read.
pub const READ_ONLY_PROGRAM: u32 = 1 << 7;
/// `BPF_F_MMAPABLE`: an array that [`Map::mmap`] maps.
pub const MMAPABLE: u32 = 1 << 10;

/// `BPF_ANY`: make or overwrite.
pub const ANY: u64 = 0;
/// `BPF_NOEXIST`: make only.
pub const NO_EXIST: u64 = 1;
/// `BPF_EXIST`: overwrite only.
pub const EXIST: u64 = 2;

/// The properties of a new map.
#[derive(Clone, Copy, Debug)]
pub struct MapSpec<'a> {
    /// Kind.
    pub kind: MapKind,
    /// Name as tools show it; 15 characters are kept.
    pub name: &'a str,
    /// Bytes of a key.
    pub key_size: u32,
    /// Bytes of a value.
    pub value_size: u32,
    /// Entries; a ring's size in bytes.
    pub entries: u32,
    /// `BPF_F_*`.
    pub flags: u32,
    /// For a map of maps: a map like those that it holds.
    pub inner: Option<BorrowedFd<'a>>,
    /// Loaded BTF with the type ids of key and value.
    pub types: Option<(BorrowedFd<'a>, u32, u32)>,
}

/// A map. Dropping it closes the descriptor; programs that use the map keep it.
#[derive(Debug)]
pub struct Map {
    fd: OwnedFd,
    kind: MapKind,
    key_size: usize,
    value_size: usize,
    entries: u32,
    /// Bytes of the block that one lookup fills.
    block: usize,
    /// It is a ring that has a reader.
    has_reader: AtomicBool,
}

impl Map {
    /// Makes a map.
    pub fn create(spec: &MapSpec) -> io::Result<Map> {
        let mut attr = Attr::new()
            .u32(at::MAP_TYPE, spec.kind as u32)
            .u32(at::MAP_KEY_SIZE, spec.key_size)
            .u32(at::MAP_VALUE_SIZE, spec.value_size)
            .u32(at::MAP_ENTRIES, spec.entries)
            .u32(at::MAP_FLAGS, spec.flags)
            .name(at::MAP_NAME, spec.name);
        if let Some(inner) = spec.inner {
            attr = attr.fd(at::MAP_INNER_FD, inner);
        }
        if let Some((btf, key, value)) = spec.types {
            attr = attr.fd(at::MAP_BTF_FD, btf).u32(at::MAP_KEY_TYPE, key).u32(at::MAP_VALUE_TYPE, value);
        }
        let block = spec.kind.block(spec.value_size as usize)?;
        // SAFETY: no addresses in it.
        let fd = unsafe { call_fd(Command::MapCreate, &mut attr) }?;
        let (key_size, value_size) = (spec.key_size as usize, spec.value_size as usize);
        Ok(Map { fd, kind: spec.kind, key_size, value_size, entries: spec.entries, block, has_reader: false.into() })
    }

    fn simple(kind: MapKind, name: &str, key_size: u32, value_size: u32, entries: u32, flags: u32) -> io::Result<Map> {
        Map::create(&MapSpec { kind, name, key_size, value_size, entries, flags, inner: None, types: None })
    }

    /// An array, indexed by a `u32`.
    pub fn array(name: &str, value_size: u32, entries: u32, flags: u32) -> io::Result<Map> {
        Map::simple(MapKind::Array, name, 4, value_size, entries, flags)
    }

    /// An array with a value per CPU.
    pub fn per_cpu_array(name: &str, value_size: u32, entries: u32) -> io::Result<Map> {
        Map::simple(MapKind::PerCpuArray, name, 4, value_size, entries, 0)
    }

    /// An array of programs, none of which is there.
    pub fn programs(name: &str, entries: u32) -> io::Result<Map> {
        Map::simple(MapKind::ProgramArray, name, 4, 4, entries, 0)
    }

    /// A hash table.
    pub fn hash(name: &str, key_size: u32, value_size: u32, entries: u32, flags: u32) -> io::Result<Map> {
        Map::simple(MapKind::Hash, name, key_size, value_size, entries, flags)
    }

    /// A ring of `size` bytes: a power of two of at least a page.
    pub fn ring(name: &str, size: u32) -> io::Result<Map> {
        Map::simple(MapKind::RingBuf, name, 0, 0, size, 0)
    }

    /// Storage that each task carries. `btf` is loaded BTF; `key_type` is a 4-byte int in it, `value_type` has `value_size`.
    pub fn task_storage(
        name: &str,
        btf: BorrowedFd,
        key_type: u32,
        value_type: u32,
        value_size: u32,
    ) -> io::Result<Map> {
        Map::create(&MapSpec {
            kind: MapKind::TaskStorage,
            name,
            key_size: 4,
            value_size,
            entries: 0,
            flags: NO_PREALLOC,
            inner: None,
            types: Some((btf, key_type, value_type)),
        })
        .map_err(|e| match e.raw_os_error() {
            Some(libc::EINVAL) => io::Error::other("no task storage (Linux 5.11)"),
            _ => e,
        })
    }

    /// An array of maps like `inner`; filled with [`Map::put_map`].
    pub fn array_of(name: &str, inner: &Map, entries: u32) -> io::Result<Map> {
        let kind = MapKind::ArrayOfMaps;
        let inner = Some(inner.as_fd());
        Map::create(&MapSpec { kind, name, key_size: 4, value_size: 4, entries, flags: 0, inner, types: None })
    }

    /// A hash table of maps like `inner`.
    pub fn hash_of(name: &str, inner: &Map, key_size: u32, entries: u32) -> io::Result<Map> {
        let kind = MapKind::HashOfMaps;
        let inner = Some(inner.as_fd());
        Map::create(&MapSpec { kind, name, key_size, value_size: 4, entries, flags: 0, inner, types: None })
    }

    /// A map that somebody else has made. The kernel reports its kind and its sizes.
    ///
    /// # Errors
    /// `InvalidData`: not a map, or of a kind that is not known here.
    pub fn of_descriptor(fd: OwnedFd) -> io::Result<Map> {
        let info = super::info::map(&fd).map_err(|_| io::ErrorKind::InvalidData)?;
        let kind = MapKind::from_number(info.kind).ok_or(io::ErrorKind::InvalidData)?;
        let (key_size, value_size) = (info.key_size as usize, info.value_size as usize);
        let block = kind.block(value_size)?;
        Ok(Map { fd, kind, key_size, value_size, entries: info.entries, block, has_reader: false.into() })
    }

    /// Bytes of a key and of a value.
    pub fn sizes(&self) -> (usize, usize) {
        (self.key_size, self.value_size)
    }

    /// Hands over all entries of a hash table, key and value, in pieces of `room` entries at most (more where a bucket has more). Entries
    /// that are there all the time are handed over exactly once; entries that come or go meanwhile may or may not be (Linux 5.6).
    pub fn each(&self, room: usize, mut each: impl FnMut(&[u8], &[u8])) -> io::Result<()> {
        if self.kind != MapKind::Hash || self.key_size == 0 || self.value_size == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let most = self.entries.max(1) as usize;
        let (mut room, mut at, mut begun) = (room.clamp(1, most), [0u8; 4], false);
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        loop {
            keys.resize(room * self.key_size, 0);
            values.resize(room * self.value_size, 0);
            let mut next = [0; 4];
            let mut attr = Attr::new().fd(at::BATCH_FD, self.as_fd()).u32(at::BATCH_COUNT, room as u32);
            attr = attr.output(at::BATCH_KEYS, &mut keys).output(at::BATCH_VALUES, &mut values);
            attr = attr.output(at::BATCH_OUT, &mut next);
            if begun {
                attr = attr.input(at::BATCH_IN, &at);
            }
            // SAFETY: room for that many keys and values of the map's sizes; positions of hash tables have four bytes.
            let result = unsafe { call(Command::MapLookupBatch, &mut attr) };
            let ended = match &result {
                Ok(_) => false,
                Err(e) if e.raw_os_error() == Some(libc::ENOENT) => true,
                // One bucket has more entries than there is room for, and nothing was read of it.
                Err(e) if e.raw_os_error() == Some(libc::ENOSPC) && room < most => {
                    room = (room * 2).min(most);
                    continue;
                }
                Err(_) => return result.map(drop),
            };
            let count = (attr.get_u32(at::BATCH_COUNT) as usize).min(room);
            let pairs = keys.chunks_exact(self.key_size).zip(values.chunks_exact(self.value_size));
            pairs.take(count).for_each(|(key, value)| each(key, value));
            if ended {
                return Ok(());
            }
            (at, begun) = (next, true);
        }
    }

    /// The map that a map of maps has under `key`. Needs CAP_SYS_ADMIN.
    pub fn inner(&self, key: &[u8]) -> io::Result<Option<Map>> {
        if !matches!(self.kind, MapKind::ArrayOfMaps | MapKind::HashOfMaps) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut id = [0; 4];
        match self.lookup(key, &mut id)? {
            true => Map::of_descriptor(super::info::by_id(super::info::Object::Map, u32::from_ne_bytes(id))?).map(Some),
            false => Ok(None),
        }
    }

    /// Its kind.
    pub fn kind(&self) -> MapKind {
        self.kind
    }

    /// Entries; of a ring, bytes.
    pub fn entries(&self) -> u32 {
        self.entries
    }

    /// Claims the one place of a ring's reader; false: it is taken.
    pub(super) fn claim_reader(&self) -> bool {
        !self.has_reader.swap(true, Ordering::Relaxed)
    }

    fn element(&self, key: &[u8]) -> io::Result<Attr> {
        sized(key.len(), self.key_size)?;
        Ok(Attr::new().fd(at::ELEM_FD, self.as_fd()).input(at::ELEM_KEY, key))
    }

    /// Reads the value of `key` into `value`; false: there is none. `value` is a block where the map has one per CPU.
    pub fn lookup(&self, key: &[u8], value: &mut [u8]) -> io::Result<bool> {
        sized(value.len(), self.block)?;
        let mut attr = self.element(key)?.output(at::ELEM_VALUE, value);
        // SAFETY: key and value have the map's sizes (checked).
        found(unsafe { call(Command::MapLookup, &mut attr) })
    }

    /// The values of `key` on the possible CPUs, in the order of [`processors::possible`]; none: no such key.
    pub fn lookup_per_cpu(&self, key: &[u8]) -> io::Result<Option<Vec<Vec<u8>>>> {
        if !self.kind.is_per_cpu() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut block = vec![0; self.block];
        let found = self.lookup(key, &mut block)?;
        let values = block.chunks_exact(stride(self.value_size)).map(|v| v[..self.value_size].to_vec());
        Ok(found.then(|| values.collect()))
    }

    /// Sets the value of `key`.
    pub fn update(&self, key: &[u8], value: &[u8], flags: u64) -> io::Result<()> {
        sized(value.len(), self.block)?;
        let mut attr = self.element(key)?.input(at::ELEM_VALUE, value).u64(at::ELEM_FLAGS, flags);
        // SAFETY: key and value have the map's sizes (checked).
        unsafe { call(Command::MapUpdate, &mut attr) }.map(drop)
    }

    /// Sets many values: keys and values in a row, in the same order, each of the map's size. One call on Linux 5.6 and later,
    /// one for each key before. Where it fails, some of them may be set.
    pub fn update_all(&self, keys: &[u8], values: &[u8]) -> io::Result<()> {
        let (key, value) = (self.key_size.max(1), self.block.max(1));
        let count = keys.len() / key;
        sized(keys.len(), count * self.key_size)?;
        sized(values.len(), count * self.block)?;
        if count == 0 {
            return Ok(());
        }
        let mut attr = Attr::new().fd(at::BATCH_FD, self.as_fd()).u32(at::BATCH_COUNT, count as u32);
        attr = attr.input(at::BATCH_KEYS, keys).input(at::BATCH_VALUES, values);
        // SAFETY: keys and values are as many as said, of the map's sizes (checked).
        match unsafe { call(Command::MapUpdateBatch, &mut attr) } {
            // EINVAL: no such command; ENOTSUPP (524): not for such a map.
            Err(e) if matches!(e.raw_os_error(), Some(libc::EINVAL | 524)) => {
                let mut pairs = keys.chunks_exact(key).zip(values.chunks_exact(value));
                pairs.try_for_each(|(k, v)| self.update(k, v, ANY))
            }
            other => other.map(drop),
        }
    }

    /// Puts `inner` into a map of maps.
    pub fn put_map(&self, key: &[u8], inner: &Map) -> io::Result<()> {
        self.update(key, &inner.fd.as_raw_fd().to_ne_bytes(), ANY)
    }

    /// Removes `key`; false: it was not there.
    pub fn delete(&self, key: &[u8]) -> io::Result<bool> {
        let mut attr = self.element(key)?;
        // SAFETY: the key has the map's size (checked).
        found(unsafe { call(Command::MapDelete, &mut attr) })
    }

    /// The key after `key`, or the first; false: there is none. A key that is gone starts anew.
    pub fn next_key(&self, key: Option<&[u8]>, next: &mut [u8]) -> io::Result<bool> {
        sized(next.len(), self.key_size)?;
        let mut attr = match key {
            Some(key) => self.element(key)?,
            None => Attr::new().fd(at::ELEM_FD, self.as_fd()),
        };
        attr = attr.output(at::ELEM_VALUE, next);
        // SAFETY: both keys have the map's size (checked).
        found(unsafe { call(Command::MapNextKey, &mut attr) })
    }

    /// Forbids writes from user space; with [`READ_ONLY_PROGRAM`] the verifier then treats the contents as constants.
    pub fn freeze(&self) -> io::Result<()> {
        let mut attr = Attr::new().fd(at::ELEM_FD, self.as_fd());
        // SAFETY: no addresses in it.
        unsafe { call(Command::MapFreeze, &mut attr) }.map(drop)
    }

    /// Maps the values of an array made with [`MMAPABLE`].
    pub fn mmap(&self) -> io::Result<Values> {
        if self.kind != MapKind::Array {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let len = (stride(self.value_size) * self.entries as usize).next_multiple_of(page_size());
        Ok(Values(Mapping::new(self.as_fd(), 0, len, Mode::Shared)?))
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The values of an array, shared with programs: each starts at a multiple of 8 bytes.
pub struct Values(Mapping);

// SAFETY: all that is given out of it is atomic words.
unsafe impl Sync for Values {}

impl Values {
    /// The word at byte `offset`, which is a multiple of 8; none beyond the end.
    #[inline]
    pub fn word(&self, offset: usize) -> Option<&AtomicU64> {
        if !offset.is_multiple_of(8) || offset >= self.0.len() {
            return None;
        }
        // SAFETY: inside the mapping, which is a multiple of 8 long, aligned, and lives as long as `self`; programs write it
        // at any time, which is what an atomic allows.
        Some(unsafe { &*self.0.base().add(offset).cast::<AtomicU64>() })
    }

    /// Bytes of all values.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none: never.
    pub fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    /// The words of a range, whose ends are multiples of 8; none where they are not, and beyond the end.
    #[inline]
    pub fn words(&self, range: Range<usize>) -> Option<&[AtomicU64]> {
        let Range { start, end } = range;
        if !start.is_multiple_of(8) || !end.is_multiple_of(8) || start > end || end > self.0.len() {
            return None;
        }
        // SAFETY: as in `word`.
        Some(unsafe { std::slice::from_raw_parts(self.0.base().add(start).cast::<AtomicU64>(), (end - start) / 8) })
    }

    /// Values of no map.
    #[cfg(test)]
    pub(crate) fn anonymous(len: usize) -> io::Result<Values> {
        Ok(Values(Mapping::anonymous(len)?))
    }
}

fn stride(value_size: usize) -> usize {
    value_size.next_multiple_of(8)
}

fn sized(is: usize, wanted: usize) -> io::Result<()> {
    if is == wanted { Ok(()) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

fn found(result: io::Result<i32>) -> io::Result<bool> {
    match result {
        Err(e) if e.raw_os_error() == Some(libc::ENOENT) => Ok(false),
        other => other.map(|_| true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::fake;

    #[test]
    fn creation_fills_the_block_by_the_abi() {
        let hook = |command, attr: &mut Attr| {
            assert_eq!(command, Command::MapCreate);
            let words: Vec<u32> = [0, 4, 8, 12, 16, 52, 56].map(|at| attr.get_u32(at)).to_vec();
            assert_eq!(words, [29, 4, 64, 0, 1, 1, 3]);
            fake::object()
        };
        let btf = std::fs::File::open("/dev/null").unwrap();
        let map = fake::with(hook, || Map::task_storage("calls", btf.as_fd(), 1, 3, 64)).unwrap();
        assert_eq!(map.kind(), MapKind::TaskStorage);
    }

    #[test]
    fn keys_and_values_of_another_size_never_reach_the_kernel() {
        let map = fake::with(|_, _| fake::object(), || Map::hash("h", 4, 8, 16, 0)).unwrap();
        let never = |_, _: &mut Attr| panic!("reached the kernel");
        fake::with(never, || {
            assert!(map.lookup(&[0; 3], &mut [0; 8]).is_err());
            assert!(map.lookup(&[0; 4], &mut [0; 7]).is_err());
            assert!(map.update(&[0; 4], &[0; 9], ANY).is_err());
            assert!(map.next_key(None, &mut [0; 5]).is_err());
            assert!(map.update_all(&[0; 8], &[0; 8]).is_err());
            assert!(map.update_all(&[0; 7], &[0; 8]).is_err());
            assert!(map.update_all(&[], &[]).is_ok());
        });
        let absent = fake::with(|_, _| fake::refuse(libc::ENOENT), || map.lookup(&[0; 4], &mut [0; 8]));
        assert!(!absent.unwrap());
    }

    #[test]
    fn many_values_are_set_at_once_or_else_one_by_one() {
        let map = fake::with(|_, _| fake::object(), || Map::hash("h", 4, 8, 16, 0)).unwrap();
        let at_once = |command, attr: &mut Attr| {
            assert_eq!((command, attr.get_u32(at::BATCH_COUNT)), (Command::MapUpdateBatch, 3));
            Ok(0)
        };
        fake::with(at_once, || map.update_all(&[0; 12], &[0; 24])).unwrap();
        let seen = std::rc::Rc::new(std::cell::Cell::new(0));
        let count = seen.clone();
        let old_kernel = move |command, _: &mut Attr| match command {
            Command::MapUpdateBatch => fake::refuse(libc::EINVAL),
            other => {
                assert_eq!(other, Command::MapUpdate);
                count.set(count.get() + 1);
                Ok(0)
            }
        };
        fake::with(old_kernel, || map.update_all(&[0; 12], &[0; 24])).unwrap();
        assert_eq!(seen.get(), 3);
        assert!(fake::with(|_, _| fake::refuse(libc::ENOMEM), || map.update_all(&[0; 12], &[0; 24])).is_err());
    }
}
