//! Names for objects: a file of bpffs keeps a map, a program or a link after the process that has made it.
//!
//! The paths are the caller's: whoever opens an object that is pinned checks the directory first, and then that the object is
//! what it is expected to be ([`super::map::Map::of_descriptor`], [`super::link::Link::of_descriptor`]).

use super::{Attr, Command, at, call, call_fd};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

fn text(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Gives an object the name `path`, which must not exist, and whose directory must be in bpffs.
pub fn pin(object: &impl AsFd, path: &Path) -> io::Result<()> {
    let path = text(path)?;
    let mut attr = Attr::new().u64(at::PIN_PATH, path.as_ptr() as u64).fd(at::PIN_FD, object.as_fd());
    // SAFETY: the path ends with NUL and lives through the call.
    unsafe { call(Command::ObjectPin, &mut attr) }.map(drop)
}

/// Opens the object of this name.
pub fn open(path: &Path) -> io::Result<OwnedFd> {
    let path = text(path)?;
    let mut attr = Attr::new().u64(at::PIN_PATH, path.as_ptr() as u64);
    // SAFETY: the path ends with NUL and lives through the call.
    unsafe { call_fd(Command::ObjectGet, &mut attr) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::fake;

    #[test]
    fn a_path_with_nul_never_reaches_the_kernel() {
        let never = |_, _: &mut Attr| panic!("reached the kernel");
        fake::with(never, || assert!(open(Path::new("a\0b")).is_err()));
        let seen = |command, attr: &mut Attr| {
            assert_eq!((command, attr.get_u64(at::PIN_PATH) != 0), (Command::ObjectGet, true));
            fake::refuse(libc::ENOENT)
        };
        fake::with(seen, || assert_eq!(open(Path::new("/x")).unwrap_err().kind(), io::ErrorKind::NotFound));
    }
}
