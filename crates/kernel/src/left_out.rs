//! Marks the threads that a session of the whole machine does not trace.

use bpf::syscalls::state;
use std::os::fd::AsRawFd;
use sys::bpf::map::Map;
use sys::{proc, process};

/// Marks every thread of trapline, of its descendants and of `readers` as not to be traced. A thread that begins later inherits the mark.
pub fn leave_out(tasks: &Map, readers: &[i32]) {
    let own: Vec<i32> = std::iter::once(process::own_pid()).chain(proc::descendants(process::own_pid())).collect();
    for (pids, mark) in [(readers, state::LEFT_OUT), (&own[..], state::OWN)] {
        for &pid in pids {
            for tid in proc::threads(pid).unwrap_or_default() {
                // One that is gone needs no mark.
                if let Ok(fd) = process::pidfd(tid, tid != pid) {
                    let _ = tasks.update(&fd.as_raw_fd().to_le_bytes(), &super::initial(mark, tid), 0);
                }
            }
        }
    }
}
