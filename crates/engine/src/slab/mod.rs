//! Outstanding objects of a slab cache: allocated since the start, and not released.
//!
//! ```text
//!  start ─► caches (which one is it?) ─► programs (bpf::slab) ─► links, maps ─► place: a directory of bpffs
//!  stop, print, reset, clear ─► place ─► session: checked, opened ─► snapshot ─► (the command line shows it)
//! ```
//!
//! There is no daemon: what is recorded lives in maps, and what keeps maps and programs is their names in bpffs. Invariants: a session
//! that is whole has its name, and everything else has a name that ends in `~` until it is whole, or gone; what is found is
//! checked before it is used; whoever changes anything holds the lock of the directory.

pub mod caches;
mod name;
pub mod offsets;
mod place;
pub mod points;
pub mod programs;
mod session;
mod snapshot;
pub mod symbols;

pub use session::{Command, Listed, Session, Settings, Started, clear, sessions, start};
pub use snapshot::{Object, Snapshot};

use crate::error::Error;
use crate::rights;
use std::io;

/// Refuses everybody but root: objects of the kernel belong to all users.
pub fn only_root() -> Result<(), Error> {
    if sys::process::euid() == 0 && rights::is_root() {
        return Ok(());
    }
    let why = format!("objects of the kernel are for root only, and uid {} started trapline", sys::process::ruid());
    Err(Error::failed("slab", why, "run trapline as root"))
}

/// The words of an error of the system, without its number.
pub fn words(e: &io::Error) -> String {
    e.to_string().split(" (os error").next().unwrap_or_default().into()
}

/// A refusal of the system about a slab.
pub fn unable(name: &str, e: &io::Error) -> Error {
    let todo = match e.raw_os_error() {
        Some(1 | 13) => "run as root, with CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN",
        Some(7 | 12) => "leave fewer objects room: --max",
        _ => "see 'trapline doctor'",
    };
    Error::failed(name, format!("unable to trace it: {}", words(e)), todo)
}
