//! The command before it runs: a child that waits until everything that is to see it is attached.

use crate::error::{Error, Result};
use crate::target::{Command, Target};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;
use sys::process::{self, Image};
use sys::ptrace::{self, Change};
use sys::signal::{self, Held};

/// Where a command fails before it runs its program.
const FAILED_USER: u8 = 1;
const FAILED_EXEC: u8 = 2;

/// Where and with which error the command failed to start.
#[derive(Clone, Copy)]
pub struct Failure {
    at: u8,
    errno: i32,
}

impl Failure {
    /// The error to report.
    pub fn error(self, cmd: &Command) -> Error {
        if self.at == FAILED_USER {
            let why = io::Error::from_raw_os_error(self.errno).to_string();
            return Error::failed("-u", why, "run trapline as root to change the user");
        }
        crate::target::command::exec_error(cmd, self.errno)
    }
}

/// The forked command, which waits for its release. If this is dropped before, the command ends.
pub struct Waiting {
    /// Its process id.
    pub pid: i32,
    /// Closed without a byte, the command ends.
    gate: Option<OwnedFd>,
    /// Closes at the exec, or delivers the error.
    report: OwnedFd,
}

impl Waiting {
    /// Forks it, with some variables in addition to those of its environment; it waits.
    ///
    /// # Errors
    /// There is no memory, or there are too many processes.
    pub fn fork(cmd: &Command, variables: &[(&str, &[u8])]) -> Result<Waiting> {
        let image = cmd.image.with(variables);
        let (wait, gate) = process::pipe().map_err(|e| Error::scarce("pipe", &e))?;
        let (report, to_parent) = process::pipe().map_err(|e| Error::scarce("pipe", &e))?;
        let held = signal::hold_counted();
        let (pid, gate) = process::fork(gate, move || command_main(cmd, &image, &wait, &to_parent, held))
            .map_err(|e| Error::scarce("fork", &e))?;
        Ok(Waiting { pid, gate: Some(gate), report })
    }

    /// Lets it execute its program.
    pub fn release(&mut self) {
        if let Some(gate) = self.gate.take() {
            let _ = process::write_byte(&gate, 1);
        }
    }

    /// Waits until it has executed its program; why that failed, if it has.
    pub fn failure(&self) -> Option<Failure> {
        let at = process::read_byte(&self.report).ok().flatten()?;
        let mut errno = [0u8; 4];
        for b in &mut errno {
            *b = process::read_byte(&self.report).ok().flatten().unwrap_or(0);
        }
        Some(Failure { at, errno: i32::from_le_bytes(errno) })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // Still waiting: it sees the end of the pipe, and leaves no zombie.
        if self.gate.take().is_some() {
            let _ = ptrace::wait_for(self.pid, true);
        }
    }
}

/// The command of a session, if it has one, from its release on.
#[derive(Default)]
pub struct Launched {
    /// Its process id.
    pub pid: Option<i32>,
    /// How it ended, once that was asked for.
    status: Option<Change>,
    /// Why it could not execute its program.
    failure: Option<Failure>,
    /// Readable once it has ended.
    end: Option<OwnedFd>,
}

impl Launched {
    /// One that was released, and has executed its program, or has failed to and ends. That end is waited for: until then the process has
    /// trapline's descriptors, and with them the lock of the trace that is to be removed.
    pub fn new(pid: i32, failure: Option<Failure>) -> Launched {
        let mut launched = Launched { pid: Some(pid), status: None, failure, end: process::pidfd(pid, false).ok() };
        if launched.has_failed() {
            let _ = launched.status(true);
        }
        launched
    }

    /// Whether it could not execute its program.
    pub fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// The error to report where it could not execute its program.
    pub fn error(&self, target: &Target) -> Option<Error> {
        match (self.failure, target) {
            (Some(failure), Target::Command(cmd)) => Some(failure.error(cmd)),
            _ => None,
        }
    }

    /// How it ended, as far as that was asked for.
    pub fn known_status(&self) -> Option<Change> {
        self.status
    }

    /// How it ended, if it has. With `wait`, its end is waited for.
    ///
    /// Nothing else is asked of it before its end: another thread of trapline's may have stopped it (ptrace(2)), and wait(2) in any thread takes the
    /// news of that away from the one that waits for it.
    pub fn status(&mut self, wait: bool) -> Option<Change> {
        let limit = if wait { None } else { Some(Duration::ZERO) };
        let has_ended = |end: &OwnedFd| process::wait_any(&[end.as_fd()], limit).unwrap_or(true);
        if self.status.is_none()
            && let Some(pid) = self.pid
            && self.end.as_ref().is_none_or(has_ended)
            && let Ok(Some(s)) = ptrace::wait_for(pid, wait)
            && !matches!(s.change(), Change::Stopped(..))
        {
            self.status = Some(s.change());
        }
        self.status
    }
}

/// Becomes the command once it is released; returns the exit code where that fails.
fn command_main(cmd: &Command, image: &Image, gate: &OwnedFd, report: &OwnedFd, held: Held) -> i32 {
    if !matches!(process::read_byte(gate), Ok(Some(_))) {
        return 125;
    }
    let _ = signal::as_at_start();
    let fail = |at: u8, e: &io::Error, code: i32| {
        let _ = process::write_byte(report, at);
        for b in e.raw_os_error().unwrap_or(22).to_le_bytes() {
            let _ = process::write_byte(report, b);
        }
        code
    };
    if let Some(user) = &cmd.user
        && let Err(e) = process::become_user(user)
    {
        return fail(FAILED_USER, &e, 125);
    }
    held.give_back();
    let e = image.exec();
    let code = if e.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
    fail(FAILED_EXEC, &e, code)
}
