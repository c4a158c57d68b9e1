//! Which program a process executes. Between two looks at a process it may have executed another program, in which no address of the first
//! one means anything.

use super::{failed, io_failed, target};
use engine::error::Result;
use std::fs::File;
use std::os::unix::fs::FileExt;
use sys::proc;

/// The memory of the program that a process executes, and no later one's.
pub struct Image(File);

impl Image {
    /// That of the program that it executes now. Addresses are looked up behind this.
    ///
    /// # Errors
    /// The process has ended, or its memory may not be read.
    pub fn of(pid: i32) -> Result<Image> {
        File::open(format!("/proc/{pid}/mem")).map(Image).map_err(|e| io_failed(pid, "memory", &e))
    }

    /// For a process of which a thread is stopped, so that it executes no other program meanwhile.
    ///
    /// # Errors
    /// It has executed another program, or has ended.
    pub fn is_still_there(&self, pid: i32) -> Result<()> {
        // A descriptor keeps to its memory (proc_pid_mem(5)): when that is gone, it is at its end, and nothing is an error.
        match self.0.read_at(&mut [0], 0) {
            Ok(0) if has_ended(pid) => Err(target::ended(pid)),
            Ok(0) => Err(failed(pid, "it has executed another program meanwhile", "try again")),
            _ => Ok(()),
        }
    }
}

/// Whether a process has ended, whether or not its parent has waited for it.
fn has_ended(pid: i32) -> bool {
    proc::status_field(pid, "State").is_none_or(|state| state.starts_with(['Z', 'X']))
}
