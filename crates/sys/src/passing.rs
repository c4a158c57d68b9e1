//! Files that exist only as long as the process makes them: their names are in a list that a handler of a signal can read.
//!
//! Entries are added at the front and never freed; each is used by the process that has made it, and by none that it forks.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

struct Entry {
    path: CString,
    /// The process that makes it.
    pid: i32,
    is_done: AtomicBool,
    next: *const Entry,
}

static FIRST: AtomicPtr<Entry> = AtomicPtr::new(std::ptr::null_mut());

/// A file that is being made.
pub struct Passing(&'static Entry);

// SAFETY: an entry is never changed or freed but for its flag, which is atomic.
unsafe impl Send for Passing {}

impl Passing {
    /// Puts a file in the list. Its name has to be absolute where the process changes its directory.
    ///
    /// # Errors
    /// The name has a NUL.
    pub(crate) fn new(path: &Path) -> io::Result<Passing> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: getpid takes nothing and cannot fail.
        let pid = unsafe { libc::getpid() };
        let entry = Box::leak(Box::new(Entry { path, pid, is_done: AtomicBool::new(false), next: std::ptr::null() }));
        let mut first = FIRST.load(Ordering::Acquire);
        loop {
            entry.next = first;
            match FIRST.compare_exchange(first, entry, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(Passing(entry)),
                Err(now) => first = now,
            }
        }
    }

    /// It is no longer there, or stays.
    pub fn done(&self) {
        self.0.is_done.store(true, Ordering::Release);
    }
}

/// Removes the files of this process that are not done. Async-signal-safe.
pub(crate) fn remove_all() {
    let mut next: *const Entry = FIRST.load(Ordering::Acquire);
    // SAFETY: entries are valid for ever, and their links are set before they are in the list; unlink takes a string that ends with NUL.
    unsafe {
        while let Some(entry) = next.as_ref() {
            if entry.pid == libc::getpid() && !entry.is_done.load(Ordering::Acquire) {
                libc::unlink(entry.path.as_ptr());
            }
            next = entry.next;
        }
    }
}
