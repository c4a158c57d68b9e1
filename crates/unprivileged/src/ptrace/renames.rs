//! Calls that rename descriptors which are there already.

use events::Schema;

/// What a call renames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renamed {
    /// The working directory.
    Directory,
    /// The descriptor in this argument, of which only the details change.
    Argument(u8),
}

/// What a call renames, if it does.
pub fn renamed(schema: &Schema) -> Option<Renamed> {
    match schema.name {
        "chdir" | "fchdir" => Some(Renamed::Directory),
        "connect" | "bind" | "listen" => Some(Renamed::Argument(0)),
        _ => None,
    }
}

/// Calls after which a process may read other names than the ptracer: chroot, pivot_root and setns
/// (`arch/x86/entry/syscalls/syscall_64.tbl`).
pub const CHANGE_ROOT: [u64; 3] = [161, 155, 308];
