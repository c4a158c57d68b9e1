//! Whose events a session has.

use std::ffi::CString;
use sys::process::{Identity, Image};

/// Whose events.
#[derive(Debug)]
pub enum Target {
    /// A command that the session starts.
    Command(Command),
    /// Processes that run already.
    Pids(Vec<i32>),
    /// Every process of the machine but trapline's own.
    All {
        /// Processes that are left out too: they read what trapline writes (see [`crate::output_readers`]).
        left_out: Vec<i32>,
    },
}

/// A command to start.
#[derive(Debug)]
pub struct Command {
    /// What to execute.
    pub image: Image,
    /// Its path, for messages.
    pub path: CString,
    /// Who it runs as, where that is not the caller.
    pub user: Option<Identity>,
}
