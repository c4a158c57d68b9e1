//! The command before it runs: a child that waits until its task storage is set.

use super::load::{Later, Loaded};
use super::{initial, seed_fds};
use crate::error::{Error, Result};
use crate::pipeline::merge::Merge;
use crate::plan::Plan;
use crate::target::Command;
use bpf::syscalls::state;
use std::io;
use std::os::fd::OwnedFd;
use sys::process;
use sys::ptrace;
use sys::signal::{self, Held};

/// Where a command fails before it runs its program.
const FAILED_USER: u8 = 1;
const FAILED_EXEC: u8 = 2;

/// Where and with which error the command failed to start.
#[derive(Clone, Copy)]
pub(super) struct Failure {
    at: u8,
    errno: i32,
}

impl Failure {
    /// The error to report.
    pub(super) fn error(self, cmd: &Command) -> Error {
        if self.at == FAILED_USER {
            let why = io::Error::from_raw_os_error(self.errno).to_string();
            return Error::failed("-u", why, "run trapline as root to change the user");
        }
        crate::command::exec_error(cmd, self.errno)
    }
}

/// The forked command, which waits for its release. If this is dropped before, the command ends.
pub(super) struct Waiting {
    pub(super) pid: i32,
    /// Closed without a byte, the command ends.
    gate: Option<OwnedFd>,
    /// Closes at the exec, or delivers the error.
    report: OwnedFd,
}

fn cannot(what: &str, e: &io::Error) -> Error {
    Error::failed(what, e.to_string(), "free some memory or processes")
}

impl Waiting {
    pub(super) fn fork(cmd: &Command) -> Result<Waiting> {
        let (wait, gate) = process::pipe().map_err(|e| cannot("pipe", &e))?;
        let (report, to_parent) = process::pipe().map_err(|e| cannot("pipe", &e))?;
        let held = signal::hold_counted();
        let (pid, gate) =
            process::fork(gate, move || command_main(cmd, &wait, &to_parent, held)).map_err(|e| cannot("fork", &e))?;
        Ok(Waiting { pid, gate: Some(gate), report })
    }

    /// Traces the command and releases it. Returns the pidfd that reports its end, or why its exec failed.
    ///
    /// What of loading can wait is done while the command executes its program.
    pub(super) fn start(
        mut self,
        plan: &Plan,
        loaded: &mut Loaded,
        later: &Later,
        merge: &mut Merge,
    ) -> Result<(Option<Failure>, Option<OwnedFd>)> {
        let traced = process::pidfd(self.pid, false).and_then(|fd| {
            loaded.trace(&fd, &initial(state::STARTING, self.pid))?;
            Ok(fd)
        });
        let pidfd =
            traced.map_err(|e| Error::failed("task storage of the command", e.to_string(), "use --backend ptrace"))?;
        // Before it runs; what is trapline's own among them closes at the exec.
        seed_fds(self.pid, plan, merge);
        // A short program has ended before its tables could be built.
        loaded.wait_for_tables(plan);
        loaded.begin();
        if let Some(gate) = self.gate.take() {
            let _ = process::write_byte(&gate, 1);
        }
        loaded.add_iterator(later);
        let failed = match process::read_byte(&self.report) {
            Ok(Some(at)) => {
                let mut errno = [0u8; 4];
                for b in &mut errno {
                    *b = process::read_byte(&self.report).ok().flatten().unwrap_or(0);
                }
                Some(Failure { at, errno: i32::from_le_bytes(errno) })
            }
            _ => None,
        };
        Ok((failed, Some(pidfd)))
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

/// Becomes the command once it is released; returns the exit code where that fails.
fn command_main(cmd: &Command, gate: &OwnedFd, report: &OwnedFd, held: Held) -> i32 {
    if !matches!(process::read_byte(gate), Ok(Some(_))) {
        return 125;
    }
    let _ = signal::restore_sigpipe();
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
    let e = cmd.image.exec();
    let code = if e.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
    fail(FAILED_EXEC, &e, code)
}
