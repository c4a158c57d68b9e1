//! What a thread waits for at a descriptor, at locks of files, and who can end it.

use super::holders::{End, Holders, process};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use sys::proc;
use views::threads::{Actor, Wait};

/// Descriptors of poll(2) and epoll_wait(2) that are named.
const MOST_NAMED: usize = 6;

/// What comes out of a descriptor, or has room in it.
pub fn transfer(pid: i32, fd: i32, end: End, holders: &mut Holders) -> Option<Wait> {
    let link = proc::fd_link(pid, Some(fd))?;
    let name = String::from_utf8_lossy(&link).into_owned();
    let what = if end == End::Read { "data from" } else { "room in" };
    let (other, relation) = match end {
        End::Read => (End::Write, "written by"),
        _ => (End::Read, "read by"),
    };
    if name.starts_with("socket:") {
        return Some(socket(pid, fd, &link, what, holders));
    }
    if name.starts_with("pipe:") || is_fifo(pid, fd) {
        let (by, all) = holders.of(&link, other);
        let own = by.len() == 1 && by.iter().all(|a| a.pid == pid);
        let note = match (own, by.is_empty()) {
            (true, _) => "nobody else has the other end".into(),
            (_, true) => "nobody that may be looked at has the other end".into(),
            _ => String::new(),
        };
        let complete = all && !by.is_empty();
        let likely = !complete && !by.is_empty();
        let object = format!("{what} {name}");
        return Some(Wait { kind: "pipe", object, relation, by, complete, likely, note, ..Wait::default() });
    }
    let (kind, object) = match &*name {
        n if n.starts_with("/dev/pts/") || n.starts_with("/dev/tty") => {
            ("terminal", format!("{what} the terminal {n}"))
        }
        n if n.starts_with("anon_inode:[") => ("file", format!("fd {fd}, {n}")),
        n => ("file", format!("{what} {n}")),
    };
    Some(Wait { kind, object, ..Wait::default() })
}

fn is_fifo(pid: i32, fd: i32) -> bool {
    use std::os::unix::fs::FileTypeExt;
    fs::metadata(format!("/proc/{pid}/fd/{fd}")).is_ok_and(|m| m.file_type().is_fifo())
}

/// The other end of a socket, where it is one of this machine's.
fn socket(pid: i32, fd: i32, link: &[u8], what: &str, holders: &mut Holders) -> Wait {
    let inode = inode_of(link);
    let described = sys::fdinfo::socket(pid, fd).ok();
    let text =
        described.as_ref().map(|s| events::sockaddr::describe_socket(s.domain, s.kind, s.protocol, &s.local, &s.peer));
    let name = text.filter(|t| !t.is_empty()).unwrap_or_else(|| String::from_utf8_lossy(link).into_owned());
    let peer = inode.and_then(|inode| match sys::diag::unix_peer(inode).ok().flatten() {
        Some(peer) => Some(peer.into()),
        None => tcp_peer(pid, inode.into()),
    });
    let by = peer.map(|peer| holders.of(format!("socket:[{peer}]").as_bytes(), End::Any));
    let object = format!("{what} {name} (fd {fd})");
    let (by, complete) = by.unwrap_or_default();
    let complete = complete && !by.is_empty();
    let likely = !complete && !by.is_empty();
    Wait { kind: "socket", object, relation: "other end:", by, complete, likely, ..Wait::default() }
}

fn inode_of(link: &[u8]) -> Option<u32> {
    std::str::from_utf8(link).ok()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// The inode of the other end of a TCP connection that has both ends here (`/proc/net/tcp`, proc(5)).
fn tcp_peer(pid: i32, inode: u64) -> Option<u64> {
    let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/net/{name}")).unwrap_or_default();
    let all: Vec<(String, String, u64)> = ["tcp", "tcp6"].iter().flat_map(|name| connections(&read(name))).collect();
    let (local, remote, _) = all.iter().find(|c| c.2 == inode)?;
    all.iter().find(|c| c.0 == *remote && c.1 == *local).map(|c| c.2).filter(|inode| *inode != 0)
}

/// Local address, remote address and inode of each connection, in the kernel's hexadecimal; IPv4 in IPv6 as IPv4.
fn connections(text: &str) -> Vec<(String, String, u64)> {
    /// `::ffff:` as the file has it.
    const MAPPED: &str = "0000000000000000FFFF0000";
    let plain = |address: &str| address.strip_prefix(MAPPED).unwrap_or(address).to_string();
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace().skip(1);
            let (local, remote) = (words.next()?, words.next()?);
            let inode = words.nth(6)?.parse().ok()?;
            Some((plain(local), plain(remote), inode))
        })
        .collect()
}

/// A connection that somebody is to make.
pub fn accept(pid: i32, fd: i32) -> Wait {
    let text = sys::fdinfo::socket(pid, fd)
        .map(|s| events::sockaddr::describe_socket(s.domain, s.kind, s.protocol, &s.local, &s.peer))
        .unwrap_or_default();
    Wait { kind: "connection", object: format!("a connection to {text} (fd {fd})"), ..Wait::default() }
}

/// The end of processes, where all of these descriptors are those of pidfd_open(2).
pub fn ends(pid: i32, fds: &[i32], timed: bool) -> Option<Wait> {
    let all: Option<Vec<i32>> = fds.iter().map(|fd| proc::pidfd_process(pid, *fd)).collect();
    let by: Vec<Actor> = all?.into_iter().map(process).collect();
    let (object, relation) = match &by[..] {
        [] => return None,
        [one] => (format!("the end of process {} ({})", one.pid, one.name), ""),
        _ => ("the end of a process".into(), "which are"),
    };
    Some(Wait { kind: "process", object, relation, by, complete: true, timed, ..Wait::default() })
}

/// Any of several descriptors.
pub fn any_of(pid: i32, fds: &[i32], timed: bool) -> Option<Wait> {
    let name = |fd: &i32| {
        let link = proc::fd_link(pid, Some(*fd)).unwrap_or_default();
        match proc::pidfd_process(pid, *fd).map(process) {
            Some(of) => format!("{fd}<pidfd of {} ({})>", of.pid, of.name),
            None => format!("{fd}<{}>", String::from_utf8_lossy(&link)),
        }
    };
    let mut names: Vec<String> = fds.iter().take(MOST_NAMED).map(name).collect();
    if fds.is_empty() {
        return None;
    }
    if fds.len() > MOST_NAMED {
        names.push(format!("{} more", fds.len() - MOST_NAMED));
    }
    let object = format!("{} {}", if fds.len() == 1 { "descriptor" } else { "one of" }, names.join(", "));
    Some(Wait { kind: "descriptors", object, timed, ..Wait::default() })
}

/// Which lock of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// flock(2).
    Flock,
    /// fcntl(2), `F_SETLKW`.
    Posix,
    /// fcntl(2), `F_OFD_SETLKW`.
    Description,
}

impl Lock {
    /// As `/proc/locks` has it.
    fn name(self) -> &'static str {
        match self {
            Lock::Flock => "FLOCK",
            Lock::Posix => "POSIX",
            Lock::Description => "OFDLCK",
        }
    }
}

/// A lock of a file.
pub fn lock(pid: i32, fd: i32, lock: Lock, holders: &mut Holders) -> Option<Wait> {
    let link = proc::fd_link(pid, Some(fd))?;
    let meta = fs::metadata(format!("/proc/{pid}/fd/{fd}")).ok()?;
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let holder = holder_of(&locks, lock, pid, meta.ino());
    let kind = if lock == Lock::Flock { "flock" } else { "file lock" };
    let object = format!("{kind} of {}", Path::new(std::ffi::OsStr::from_bytes(&link)).display());
    let base = Wait { kind, object, relation: "held by", ..Wait::default() };
    Some(match holder {
        // Locks of an open file description belong to all processes that have it: those that have the file open may.
        Some(holder) if holder <= 0 => {
            let (by, _) = holders.of(&link, End::Any);
            let by: Vec<Actor> = by.into_iter().filter(|a| a.pid != pid).collect();
            Wait { relation: "held through an open file of one of", likely: by.len() == 1, by, ..base }
        }
        Some(holder) => Wait { by: vec![process(holder)], complete: true, ..base },
        None => base,
    })
}

/// Who holds the lock that a process waits for (`/proc/locks`, proc(5)): the waiter's line has an arrow and comes behind the holder's.
fn holder_of(locks: &str, lock: Lock, pid: i32, inode: u64) -> Option<i32> {
    let mut holder = None;
    for line in locks.lines() {
        let mut words = line.split_whitespace().skip(1).peekable();
        let waits = words.next_if_eq(&"->").is_some();
        let (Some(kind), Some(of), Some(file)) = (words.next(), words.nth(2), words.next()) else { continue };
        let Ok(of) = of.parse::<i32>() else { continue };
        let same = kind == lock.name() && file.rsplit(':').next().is_some_and(|i| i.parse() == Ok(inode));
        match (waits, same) {
            (false, _) => holder = same.then_some(of),
            (true, true) if of == pid || of <= 0 => return holder,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_lock_stands_before_its_waiters() {
        let text = "1: POSIX  ADVISORY  WRITE 100 08:01:77 0 EOF\n\
                    2: FLOCK  ADVISORY  WRITE 101 08:01:42 0 EOF\n\
                    2: -> FLOCK  ADVISORY  WRITE 102 08:01:42 0 EOF\n\
                    2: -> FLOCK  ADVISORY  WRITE 103 08:01:42 0 EOF\n\
                    3: OFDLCK ADVISORY  WRITE -1 08:01:43 0 EOF\n\
                    3: -> OFDLCK ADVISORY  WRITE -1 08:01:43 0 EOF\n";
        assert_eq!(holder_of(text, Lock::Flock, 103, 42), Some(101));
        assert_eq!(holder_of(text, Lock::Flock, 104, 42), None);
        assert_eq!(holder_of(text, Lock::Posix, 103, 42), None);
        assert_eq!(holder_of(text, Lock::Description, 103, 43), Some(-1));
    }

    #[test]
    fn both_ends_of_a_connection_are_found_across_families() {
        let tcp = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 0100007F:1F90 0100007F:B2C4 01 00000000:00000000 00:00000000 00000000     0        0 501 1\n";
        let tcp6 = "   0: 0000000000000000FFFF00000100007F:B2C4 0000000000000000FFFF00000100007F:1F90 01 \
            00000000:00000000 00:00000000 00000000     0        0 502 1\n";
        let (a, b) = (connections(tcp), connections(tcp6));
        assert_eq!((a.len(), b.len()), (1, 1));
        assert_eq!((&a[0].0, &a[0].1, a[0].2), (&b[0].1, &b[0].0, 501));
        assert_eq!(b[0].2, 502);
    }
}
