//! bpffs, the file system whose files keep maps and links of bpf(2): whether it is mounted, and mounting it.

use crate::check::check;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Where it is mounted.
pub const PATH: &str = "/sys/fs/bpf";
/// `BPF_FS_MAGIC` (include/uapi/linux/magic.h).
const MAGIC: i64 = 0xcafe_4a11;

/// Whether an open directory is in bpffs.
pub fn has(dir: &File) -> io::Result<bool> {
    // SAFETY: integers and arrays of them, for which zero is a value.
    let mut stat: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: a descriptor that is open, and a structure of that type.
    check(unsafe { libc::fstatfs(dir.as_raw_fd(), &mut stat) }.into())?;
    Ok(stat.f_type as i64 == MAGIC)
}

/// Whether it is mounted at [`PATH`].
pub fn is_mounted() -> io::Result<bool> {
    has(&File::open(PATH)?)
}

/// Mounts it at `path`, for its owner alone.
pub fn mount(path: &Path) -> io::Result<()> {
    let target = CString::new(path.as_os_str().as_bytes())?;
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC | libc::MS_RELATIME;
    // SAFETY: strings that end with NUL and live through the call.
    let done =
        unsafe { libc::mount(c"bpf".as_ptr(), target.as_ptr(), c"bpf".as_ptr(), flags, c"mode=700".as_ptr().cast()) };
    check(done.into()).map(drop)
}
