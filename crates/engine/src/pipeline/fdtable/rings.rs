//! Files that rings of io_uring have in tables of their own: direct descriptors, by the calls and operations that register them.
//!
//! A call names a ring by its descriptor, and an operation by the kernel's address of it. They are the same ring where the process has one, or
//! where the operation has begun within an `io_uring_enter` of its thread: then all further ones of that ring are known too.

use super::FdTable;
use events::event::Event;
use events::hash::Table;
use events::names::FdName;

/// io_uring_register: the operations (include/uapi/linux/io_uring.h, Linux 6.18).
mod register {
    pub const FILES: u64 = 2;
    pub const UNREGISTER_FILES: u64 = 3;
    pub const FILES_UPDATE: u64 = 6;
    pub const FILES2: u64 = 13;
    pub const FILES_UPDATE2: u64 = 14;
    /// The descriptor is the index of a ring that is registered itself.
    pub const OF_REGISTERED_RING: u64 = 1 << 31;
}

/// `IORING_ENTER_REGISTERED_RING`
const ENTER_REGISTERED: u64 = 1 << 4;
/// `IORING_FILE_INDEX_ALLOC`: the kernel chooses the index, and returns it.
const CHOSEN: u64 = u32::MAX as u64;
/// Names that are kept of a ring: a table may have a million files.
const MOST: usize = 1 << 16;
/// Threads of whose last operation the ring is remembered.
const MOST_BEGUN: usize = 1 << 12;

/// A ring, by the process and the descriptor there.
type Id = (u32, i32);

/// The rings that are known.
#[derive(Default)]
pub(super) struct Rings {
    /// The registered files of each, by their indices.
    files: Table<Id, Table<u32, FdName>>,
    /// The descriptors of rings, by the kernel's addresses.
    known: Table<(u32, u64), i32>,
    /// The last operation of threads whose ring is not known: when it began, and the ring's address.
    begun: Table<u32, (u64, u64)>,
    /// The ring of the operation that is shown.
    now: Option<Id>,
}

impl Rings {
    /// The file of the operation's ring with this index.
    pub fn file(&self, index: i32) -> Option<&FdName> {
        self.files.get(&self.now?)?.get(&u32::try_from(index).ok()?)
    }

    /// An operation: finds its ring.
    pub fn operation(&mut self, ev: &Event<'_>) {
        self.now = None;
        let (pid, address) = (ev.pid(), ev.value_of("ring"));
        if let Some(fd) = self.known.get(&(pid, address)) {
            self.now = Some((pid, *fd));
            return;
        }
        if self.begun.len() < MOST_BEGUN || self.begun.contains_key(&ev.tid()) {
            self.begun.insert(ev.tid(), (ev.start(), address));
        }
        let mut own = self.files.keys().filter(|(of, _)| *of == pid);
        if let (Some(one), None) = (own.next(), own.next()) {
            self.now = Some(*one);
        }
    }

    /// The operation's ring has a file of this name, or of none that is known, at an index.
    fn set(&mut self, index: u32, name: Option<FdName>) {
        let Some(files) = self.now.and_then(|id| self.files.get_mut(&id)) else { return };
        match name {
            Some(name) if files.len() < MOST || files.contains_key(&index) => drop(files.insert(index, name)),
            _ => drop(files.remove(&index)),
        }
    }

    /// Files of the operation's ring have got others in their places.
    fn forget_some(&mut self, from: u64, n: u64) {
        if let Some(files) = self.now.and_then(|id| self.files.get_mut(&id)) {
            files.retain(|index, _| !(from..from.saturating_add(n)).contains(&u64::from(*index)));
        }
    }

    /// A ring is made.
    pub fn made(&mut self, pid: u32, fd: i32) {
        self.forget(|id| id == (pid, fd));
        self.files.insert((pid, fd), Table::default());
    }

    /// Rings are closed, or nothing is known of them any more.
    pub fn forget(&mut self, is: impl Fn(Id) -> bool) {
        self.files.retain(|id, _| !is(*id));
        self.known.retain(|(pid, _), fd| !is((*pid, *fd)));
    }

    /// A descriptor is closed: seldom that of a ring.
    #[inline]
    pub fn close(&mut self, pid: u32, fd: i32) {
        if !self.files.is_empty() && self.files.contains_key(&(pid, fd)) {
            self.forget(|id| id == (pid, fd));
        }
    }

    /// `io_uring_enter`: which ring the operations are of that have begun within it.
    pub fn entered(&mut self, ev: &Event<'_>) {
        let within = |begun: &(u64, u64)| (ev.start()..=ev.time()).contains(&begun.0);
        if ev.value_of("flags") & ENTER_REGISTERED == 0
            && let Some((_, ring)) = self.begun.remove(&ev.tid()).filter(within)
        {
            let fd = ev.value_of("fd") as i32;
            self.known.insert((ev.pid(), ring), fd);
            self.files.entry((ev.pid(), fd)).or_default();
        }
    }
}

impl FdTable {
    /// `io_uring_register`: files get names where the call's array has their descriptors. Other ways to register files have it behind
    /// another address: nothing is known of those.
    pub(super) fn registered(&mut self, ev: &Event<'_>) {
        let (pid, fd, what) = (ev.pid(), ev.value_of("fd") as i32, ev.value_of("opcode"));
        match what & !register::OF_REGISTERED_RING {
            register::FILES if what & register::OF_REGISTERED_RING == 0 => {
                let listed = ev.schema.arg("arg").and_then(|i| ev.tail(i, false)).map_or(&[][..], |tail| tail.bytes);
                let numbers = listed.as_chunks().0.iter().map(|fd| i32::from_le_bytes(*fd)).take(MOST);
                let name = |(index, fd): (usize, i32)| Some((index as u32, self.view.get(&(pid, fd))?.clone()));
                let files = numbers.enumerate().filter_map(name).collect();
                self.rings.files.insert((pid, fd), files);
            }
            register::FILES
            | register::UNREGISTER_FILES
            | register::FILES_UPDATE
            | register::FILES2
            | register::FILES_UPDATE2 => {
                let any = what & register::OF_REGISTERED_RING != 0;
                let of = |id: &Id| id.0 == pid && (any || id.1 == fd);
                self.rings.files.iter_mut().filter(|(id, _)| of(id)).for_each(|(_, files)| files.clear());
            }
            _ => {}
        }
    }

    /// An operation that has succeeded, on a ring's table of files.
    pub(super) fn direct(&mut self, ev: &Event<'_>, operation: &str) {
        let path = match operation {
            "openat" | "openat2" => self.path_of(ev),
            "accept" | "socket" => Some(b"socket:[?]".to_vec()),
            _ => return,
        };
        let index = match ev.value_of("file_index") {
            CHOSEN => ev.ret() as u32,
            index => (index as u32).wrapping_sub(1),
        };
        self.rings.set(index, path.map(|path| FdName { path, detail: Vec::new() }));
    }

    /// An operation that has succeeded, and is shown, ends files of a ring's table.
    pub(super) fn direct_ended(&mut self, ev: &Event<'_>, operation: &str) {
        match (operation, ev.value_of("file_index")) {
            ("close", index @ 1..) => self.rings.forget_some(index - 1, 1),
            // Both ends, in two places (`io_pipe_fixed`, io_uring/openclose.c), which the kernel chooses among those that are free.
            ("pipe", index @ 1..CHOSEN) => self.rings.forget_some(index - 1, 2),
            ("files_update", _) => self.rings.forget_some(ev.value_of("offset"), ev.value_of("len")),
            _ => {}
        }
    }
}
