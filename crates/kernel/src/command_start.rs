//! The start of the command: its task storage is set, then it is released.

use super::loaded::Loaded;
use super::programs::Later;
use super::{initial, seed_fds};
use bpf::syscalls::state;
use engine::backend::launch::{Failure, Waiting};
use engine::error::{Error, Result};
use engine::pipeline::merge::Merge;
use engine::plan::Plan;
use std::os::fd::OwnedFd;
use sys::process;

/// Traces the command and releases it. Returns the pidfd that reports its end, or why its exec failed.
///
/// What of loading can wait is done while the command executes its program.
pub(super) fn start(
    mut waiting: Waiting,
    plan: &Plan,
    loaded: &mut Loaded,
    later: &Later,
    merge: &mut Merge,
) -> Result<(Option<Failure>, Option<OwnedFd>)> {
    let pid = waiting.pid;
    let traced = process::pidfd(pid, false).and_then(|fd| {
        loaded.trace(&fd, &initial(state::STARTING, pid))?;
        Ok(fd)
    });
    let pidfd =
        traced.map_err(|e| Error::failed("task storage of the command", e.to_string(), "use --backend ptrace"))?;
    // Before it runs; what is trapline's own among them closes at the exec.
    seed_fds(pid, plan, merge);
    // A short program has ended before its tables could be built.
    loaded.wait_for_tables();
    loaded.begin();
    waiting.release();
    loaded.add_iterator(later);
    Ok((waiting.failure(), Some(pidfd)))
}
