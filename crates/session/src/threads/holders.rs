//! Who has which file open: pipes and sockets by their inodes, others by their paths.

use std::collections::HashMap;
use std::io::ErrorKind;
use sys::proc;
use views::threads::Actor;

/// Process and descriptor of each open file, by what its link in /proc leads to.
type ByLink = HashMap<Vec<u8>, Vec<(i32, i32)>>;

/// The open files of all processes that may be looked at.
#[derive(Default)]
pub struct Holders {
    by_link: Option<ByLink>,
    /// Some process could not be looked at.
    hidden: bool,
}

/// How a descriptor is open.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// For reading.
    Read,
    /// For writing.
    Write,
    /// Either way.
    Any,
}

/// `O_ACCMODE`, `O_WRONLY`, `O_RDWR` (`include/uapi/asm-generic/fcntl.h`).
const ACCESS: u32 = 3;
const WRITE_ONLY: u32 = 1;
const READ_WRITE: u32 = 2;

impl Holders {
    /// The processes that have a file open so; one may be the waiting one itself. And whether those are all.
    pub fn of(&mut self, link: &[u8], end: End) -> (Vec<Actor>, bool) {
        let hidden = &mut self.hidden;
        let all = self.by_link.get_or_insert_with(|| read(hidden));
        let open_so = |(pid, fd): (i32, i32)| {
            let flags = proc::fd_flags(pid, fd)? & ACCESS;
            let wanted = match end {
                End::Read => flags != WRITE_ONLY,
                End::Write => flags == WRITE_ONLY || flags == READ_WRITE,
                End::Any => true,
            };
            wanted.then_some((pid, fd))
        };
        let mut found: Vec<Actor> = Vec::new();
        for (pid, fd) in all.get(link).into_iter().flatten().filter_map(|at| open_so(*at)) {
            if found.iter().all(|a| a.pid != pid) {
                found.push(Actor { how: format!("fd {fd}"), ..process(pid) });
            }
        }
        (found, !self.hidden)
    }
}

/// Any thread of a process.
pub fn process(pid: i32) -> Actor {
    Actor { pid, tid: None, name: name_of(pid), how: String::new() }
}

/// The name of a thread or process.
pub fn name_of(tid: i32) -> String {
    proc::comm(tid).map(|name| String::from_utf8_lossy(&name).into_owned()).unwrap_or_default()
}

fn read(hidden: &mut bool) -> ByLink {
    let mut all = ByLink::new();
    for pid in proc::processes() {
        match proc::fds(pid) {
            Ok(fds) => {
                for fd in fds {
                    if let Some(link) = proc::fd_link(pid, Some(fd)) {
                        all.entry(link).or_default().push((pid, fd));
                    }
                }
            }
            Err(e) => *hidden |= e.kind() == ErrorKind::PermissionDenied && !proc::is_kernel_thread(pid),
        }
    }
    all
}
