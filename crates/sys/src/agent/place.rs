//! Where the agent's file can lie, so that programs can map its code.

use crate::check::check;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

/// Makes sure that `path` is a directory that belongs to `uid` and in which nobody else can make or replace files, but whose files
/// everybody can open by name: mode 0711. Creates it if it is missing.
///
/// # Errors
/// `PermissionDenied`: it is somebody else's, or others can write there. `InvalidInput`: programs cannot be executed there (a mount with
/// `noexec`). Else those of mkdir(2).
pub fn open_to_all(path: &Path, uid: u32) -> io::Result<()> {
    match std::fs::DirBuilder::new().mode(0o711).create(path) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
        // A umask may have taken more.
        Ok(()) => std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o711))?,
        Err(_) => {}
    }
    let meta = std::fs::symlink_metadata(path)?;
    if !meta.is_dir() || meta.uid() != uid || meta.mode() & 0o022 != 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    if is_noexec(path)? {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(())
}

/// Whether the file system is mounted with `noexec`.
fn is_noexec(path: &Path) -> io::Result<bool> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a struct of integers, for which zeros are valid; a NUL-terminated path; room for the answer.
    unsafe {
        let mut answer: libc::statvfs = std::mem::zeroed();
        check(libc::statvfs(path.as_ptr(), &raw mut answer).into())?;
        Ok(answer.f_flag & libc::ST_NOEXEC != 0)
    }
}
