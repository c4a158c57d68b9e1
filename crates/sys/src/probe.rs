//! Tries what this machine allows, instead of guessing it from versions.

use crate::process;
use crate::{ptrace, signal};
use std::io;

/// Traces a child of its own for a moment; returns whether PTRACE_GET_SYSCALL_INFO works. See [`process::fork`] for what it needs.
pub fn ptrace_child() -> io::Result<bool> {
    let (read, write) = process::pipe()?;
    let (pid, write) = process::fork(write, move || {
        let _ = process::read_byte(&read);
        0
    })?;
    let result = try_it(pid);
    drop(write);
    let _ = signal::kill(pid, 9);
    while let Ok(Some(s)) = ptrace::wait_for(pid, true) {
        if !matches!(s.change(), ptrace::Change::Stopped(..)) {
            break;
        }
        let _ = ptrace::cont(pid, 0);
    }
    result
}

fn try_it(pid: i32) -> io::Result<bool> {
    ptrace::seize(pid, 0)?;
    ptrace::interrupt(pid)?;
    ptrace::wait_for(pid, true)?;
    Ok(ptrace::syscall_info(pid).is_ok())
}
