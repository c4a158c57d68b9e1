//! A word in each shared memory that the kernel changes when the collector ends, however it ends: a robust futex (get_robust_list(2)).
//!
//! The list belongs to a thread that does nothing but sleep. Its nodes are private: a process that writes into its shared memory can
//! only change its own word. The kernel finds a word at a constant distance from its node, so nodes and control pages are mapped at
//! the same stride:
//!
//! ```text
//!  nodes     N ─► page 0 │ page 1 │ …      private, one node in each page
//!  controls  C ─► page 0 │ page 1 │ …      shared memory of process 0, 1, …
//! ```

use super::shared::Shared;
use crate::check::check;
use crate::mapping::page_size;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

/// The most processes at a time: the kernel looks at no more nodes (`ROBUST_LIST_LIMIT`, linux/futex.h).
const MOST: usize = 2000;

/// `struct robust_list_head` (linux/futex.h).
#[repr(C)]
struct Head {
    next: AtomicU64,
    offset: AtomicU64,
    pending: AtomicU64,
}

/// Address space for one control page and one node per process.
struct Slots {
    nodes: *mut u8,
    controls: *mut u8,
    page: usize,
    head: Box<Head>,
    /// Slots in use, in the order of the list; the first is the one that the head leads to.
    used: Mutex<Vec<usize>>,
}

// SAFETY: addresses of memory that lives as long as this value; nodes are atomic words, changed under the lock.
unsafe impl Send for Slots {}
// SAFETY: as above.
unsafe impl Sync for Slots {}

impl Slots {
    fn new() -> io::Result<Slots> {
        let page = page_size();
        let len = 2 * MOST * page;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice; the result is checked.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let nodes: *mut u8 = base.cast();
        let controls = nodes.wrapping_add(MOST * page);
        let word = std::mem::offset_of!(abi::shared::Control, collector);
        let offset = (MOST * page + word) as u64;
        let zero = || AtomicU64::new(0);
        let head = Box::new(Head { next: zero(), offset: AtomicU64::new(offset), pending: zero() });
        let slots = Slots { nodes, controls, page, head, used: Mutex::default() };
        slots.link(&[]);
        Ok(slots)
    }

    /// The first word of a node's page: the address of the next node.
    fn node(&self, slot: usize) -> &AtomicU64 {
        // SAFETY: within the mapping, aligned, and only ever used as an atomic word.
        unsafe { AtomicU64::from_ptr(self.nodes.add(slot * self.page).cast()) }
    }

    fn word(&self, slot: usize) -> &AtomicU32 {
        let at = slot * self.page + std::mem::offset_of!(abi::shared::Control, collector);
        // SAFETY: within the mapping (of a slot: at least a page), aligned, and only ever used as an atomic word.
        unsafe { AtomicU32::from_ptr(self.controls.add(at).cast()) }
    }

    /// Makes the list: each node leads to the next, the last one to the head.
    fn link(&self, used: &[usize]) {
        let head = std::ptr::from_ref::<Head>(&self.head) as u64;
        let mut next = head;
        for slot in used.iter().rev() {
            self.node(*slot).store(next, Ordering::Release);
            next = self.node(*slot).as_ptr() as u64;
        }
        self.head.next.store(next, Ordering::Release);
    }

    fn unmap(&self, slot: usize) {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
        // SAFETY: replaces the page of a slot that nobody uses any more.
        unsafe { libc::mmap(self.controls.add(slot * self.page).cast(), self.page, libc::PROT_NONE, flags, -1, 0) };
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        // SAFETY: mapped with this length; the thread of the list has ended, and nobody holds a slot.
        unsafe { libc::munmap(self.nodes.cast(), 2 * MOST * self.page) };
    }
}

/// The thread whose end the kernel reports to all processes.
pub struct Life {
    slots: Arc<Slots>,
    tid: u32,
    /// Dropped, the thread ends.
    end: Option<mpsc::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Life {
    /// Starts the thread.
    ///
    /// # Errors
    /// No memory, or no thread is to be had.
    pub fn new() -> io::Result<Life> {
        let slots = Arc::new(Slots::new()?);
        let (end, ended) = mpsc::channel::<()>();
        let (say, said) = mpsc::channel();
        let head = std::ptr::from_ref::<Head>(&slots.head) as usize;
        let keep = Arc::clone(&slots);
        let thread = std::thread::Builder::new().name("trapline-life".into()).spawn(move || {
            // SAFETY: the head lives as long as the slots, which this thread holds until the list has been walked: the last
            // reference goes no earlier than in `Life::drop`, after the join. The thread uses no robust mutexes of libc.
            let set = unsafe { check(libc::syscall(libc::SYS_set_robust_list, head, size_of::<Head>())) };
            // SAFETY: no arguments.
            let tid = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
            let _ = say.send(set.map(|_| tid));
            let _ = ended.recv();
            drop(keep);
        })?;
        let tid = said.recv().map_err(|_| io::Error::from(io::ErrorKind::Other))??;
        Ok(Life { slots, tid, end: Some(end), thread: Some(thread) })
    }

    /// Marks a shared memory as read by this process, until the value is dropped or the process ends.
    ///
    /// # Errors
    /// There are too many, or its first page cannot be mapped.
    pub fn hold(&self, shared: &Shared) -> io::Result<Held> {
        let mut used = self.slots.used.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = (0..MOST).find(|s| !used.contains(s)).ok_or(io::ErrorKind::OutOfMemory)?;
        let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED);
        // SAFETY: replaces the page of a slot that nobody uses; the file has at least a page and cannot shrink.
        let at = unsafe {
            let at = self.slots.controls.add(slot * self.slots.page);
            libc::mmap(at.cast(), self.slots.page, prot, flags, shared.fd().as_raw_fd(), 0)
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        self.slots.word(slot).store(self.tid, Ordering::Release);
        used.push(slot);
        self.slots.link(&used);
        Ok(Held { slots: Arc::clone(&self.slots), slot })
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.end.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A shared memory that is read.
pub struct Held {
    slots: Arc<Slots>,
    slot: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut used = self.slots.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.retain(|s| *s != self.slot);
        self.slots.link(&used);
        let word = self.slots.word(self.slot);
        word.store(abi::shared::OWNER_DIED, Ordering::Release);
        self.slots.unmap(self.slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::shared::Shared;
    use crate::process;

    #[test]
    fn the_end_of_the_collector_is_seen_by_all_processes() {
        // The test process has threads: so the collector is a thread here, which ends as a killed process would end it.
        let all: Vec<Shared> = (0..3).map(|_| Shared::new(4, 4096, false, true).unwrap()).collect();
        let life = Life::new().unwrap();
        let held: Vec<Held> = all.iter().map(|s| life.hold(s).unwrap()).collect();
        let words = || -> Vec<u32> { all.iter().map(Shared::collector_word).collect() };
        assert_eq!(words(), [life.tid; 3]);
        let mut held = held.into_iter();
        drop(held.next());
        assert_eq!(words(), [abi::shared::OWNER_DIED, life.tid, life.tid]);
        drop(life);
        let died = |w: u32| w & abi::shared::OWNER_DIED != 0;
        assert!(words().into_iter().all(died), "{:x?}", words());
        drop(held);
        assert!(process::own_pid() > 0);
    }
}
