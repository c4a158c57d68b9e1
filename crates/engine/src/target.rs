//! Whose events a session has.

pub mod command;
pub mod danger;
pub mod modules;
pub mod output_readers;

use crate::error::Error;
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
        /// Processes that are not traced either: they read trapline's output (see [`crate::target::output_readers`]).
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
    /// The user that it runs as, if not the caller.
    pub user: Option<Identity>,
}

/// Of two tracers that trace each other, each waits for the other one.
pub fn traces_trapline(what: String) -> Error {
    Error::failed(
        what,
        "it traces this trapline: each would wait for the other",
        "trace it from outside of what it traces",
    )
}
