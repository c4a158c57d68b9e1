//! Backends: how a session is carried out. All bring the same events through the same few functions.

pub mod kernel;
pub mod ptrace;

use crate::error::{Error, Result};
use crate::plan::{Backend, OnFull, Plan};
use std::time::Duration;
use sys::ptrace::Change;

/// A running session of either backend.
pub enum Session {
    /// ptrace(2).
    Ptrace(ptrace::Session),
    /// eBPF.
    Kernel(kernel::Session),
}

impl Session {
    /// Starts what the plan asks for. Must be called before any thread is started.
    pub fn start(plan: &Plan) -> Result<Session> {
        match plan.backend {
            Backend::Kernel if plan.on_full == OnFull::Block => Err(Error::usage(
                "--on-full block",
                "the kernel backend cannot block the target",
                "use --backend ptrace, or --on-full drop",
            )),
            Backend::Kernel => Ok(Session::Kernel(kernel::Session::start(plan)?)),
            Backend::Auto | Backend::Ptrace => Ok(Session::Ptrace(ptrace::Session::start(plan)?)),
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Session::Ptrace(_) => "ptrace",
            Session::Kernel(_) => "kernel",
        }
    }

    /// Hands over every event that is there; returns how many.
    pub fn drain(&mut self, scratch: &mut Vec<u8>, each: impl FnMut(&[u8])) -> usize {
        match self {
            Session::Ptrace(s) => s.ring().drain(scratch, each),
            Session::Kernel(s) => s.drain(each),
        }
    }

    /// Sleeps until there are events, the end, or `timeout`.
    pub fn wait(&self, timeout: Duration) {
        match self {
            Session::Ptrace(s) => s.ring().wait_for_frames(timeout),
            Session::Kernel(s) => s.wait(timeout),
        }
    }

    /// Asks for the end: running processes are let go.
    pub fn stop(&self) {
        match self {
            Session::Ptrace(s) => s.stop(),
            Session::Kernel(s) => s.stop(),
        }
    }

    /// Whether no more events will come.
    pub fn finished(&mut self) -> bool {
        match self {
            Session::Ptrace(s) => s.finished(),
            Session::Kernel(s) => s.finished(),
        }
    }

    /// The command's process id, once it is known.
    pub fn command(&self) -> Option<i32> {
        match self {
            Session::Ptrace(s) => s.command(),
            Session::Kernel(s) => s.command(),
        }
    }

    /// How the command ended.
    pub fn command_status(&mut self) -> Option<Change> {
        match self {
            Session::Ptrace(s) => s.command_status(),
            Session::Kernel(s) => s.command_status(),
        }
    }

    /// Whether the tracer process was killed before its work was done.
    pub fn tracer_was_killed(&self) -> bool {
        match self {
            Session::Ptrace(s) => s.tracer_was_killed(),
            Session::Kernel(_) => false,
        }
    }

    /// Events that found no room.
    pub fn dropped(&self) -> u64 {
        match self {
            Session::Ptrace(s) => s.dropped(),
            Session::Kernel(s) => s.dropped(),
        }
    }

    /// What went wrong on the way, and what that has cost.
    pub fn trouble(&self) -> Option<String> {
        match self {
            Session::Ptrace(_) => None,
            Session::Kernel(s) => s.trouble(),
        }
    }

    /// Calls that the attach interrupted for good.
    pub fn interrupted(&self) -> u64 {
        match self {
            Session::Ptrace(s) => s.interrupted(),
            Session::Kernel(_) => 0,
        }
    }

    /// Why the session could not start, if it could not.
    pub fn failure(&self, plan: &Plan) -> Option<Error> {
        match self {
            Session::Ptrace(s) => s.failure(plan),
            Session::Kernel(s) => s.failure(plan),
        }
    }
}
