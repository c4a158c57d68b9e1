//! The fake kernel of unit tests: a closure per thread that answers bpf(2) and sees each attribute block.

use super::{Attr, Command};
use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::fd::IntoRawFd;

type Hook = Box<dyn FnMut(Command, &mut Attr) -> io::Result<i32>>;

thread_local! {
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// Runs `body` with `hook` in the kernel's place, for this thread only.
pub fn with<T>(hook: impl FnMut(Command, &mut Attr) -> io::Result<i32> + 'static, body: impl FnOnce() -> T) -> T {
    HOOK.with(|h| *h.borrow_mut() = Some(Box::new(hook)));
    let result = body();
    HOOK.with(|h| *h.borrow_mut() = None);
    result
}

pub(super) fn answer(command: Command, attr: &mut Attr) -> Option<io::Result<i32>> {
    HOOK.with(|h| h.borrow_mut().as_mut().map(|hook| hook(command, attr)))
}

/// A descriptor that may be closed, to be returned in place of a new object's.
pub fn object() -> io::Result<i32> {
    File::open("/dev/null").map(IntoRawFd::into_raw_fd)
}

/// The error of an errno.
pub fn refuse(errno: i32) -> io::Result<i32> {
    Err(io::Error::from_raw_os_error(errno))
}
