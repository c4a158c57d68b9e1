//! What operations call the words of their entries: as the system call that does the same calls its arguments, and as the kernel does otherwise.
//!
//! Words without a name here are those of [`super::FIELDS`]. No name is that of another word there, so that a filter for several operations may
//! use those for all of them.

use crate::generated::flags::{T_POLL, T_RWF};
use crate::registry;
use crate::types::{Fmt, Int, Type};

/// How many words of an entry have names of their own: the first of [`super::FIELDS`].
pub(super) const NAMED: usize = 6;

/// Operations whose words have the same names.
pub(super) struct Row {
    /// The operations, with blanks between.
    operations: &'static str,
    /// The call that gives the numbers of these names their formats.
    call: &'static str,
    /// `fd`, `addr`, `len`, `off`, the flags, and what is at byte 44; an empty name is the one that all operations have.
    pub names: [&'static str; NAMED],
}

/// From the functions `io_…_prep` of io_uring/*.c, Linux 6.18.
#[rustfmt::skip]
static ROWS: &[Row] = &[
    row("read write read_fixed write_fixed read_multishot", "pread64", ["fd", "buf", "count", "pos", "rw_flags", ""]),
    row("readv writev readv_fixed writev_fixed", "preadv2", ["fd", "vec", "vlen", "pos", "rw_flags", ""]),
    row("fsync", "fsync", ["fd", "", "", "", "fsync_flags", ""]),
    row("sync_file_range", "sync_file_range", ["fd", "", "nbytes", "offset", "flags", ""]),
    row("fallocate", "fallocate", ["fd", "length", "mode", "offset", "", ""]),
    row("ftruncate", "ftruncate", ["fd", "", "", "length", "", ""]),
    row("fadvise", "fadvise64", ["fd", "", "len", "offset", "advice", ""]),
    row("madvise", "madvise", ["", "start", "len", "", "behavior", ""]),
    row("openat", "openat", ["dfd", "filename", "mode", "", "flags", "file_index"]),
    row("openat2", "openat2", ["dfd", "filename", "size", "how", "", "file_index"]),
    row("statx", "statx", ["dfd", "filename", "mask", "buffer", "flags", ""]),
    row("renameat", "renameat2", ["olddfd", "oldname", "newdfd", "newname", "flags", ""]),
    row("unlinkat", "unlinkat", ["dfd", "pathname", "", "", "flag", ""]),
    row("mkdirat", "mkdirat", ["dfd", "pathname", "mode", "", "", ""]),
    row("symlinkat", "symlinkat", ["newdfd", "oldname", "", "newname", "", ""]),
    row("linkat", "linkat", ["olddfd", "oldname", "newdfd", "newname", "flags", ""]),
    row("setxattr fsetxattr", "fsetxattr", ["fd", "name", "size", "value", "flags", ""]),
    row("getxattr fgetxattr", "fgetxattr", ["fd", "name", "size", "value", "", ""]),
    row("splice", "splice", ["fd_out", "off_in", "len", "off_out", "flags", "fd_in"]),
    row("tee", "tee", ["fdout", "", "len", "", "flags", "fdin"]),
    row("pipe", "pipe2", ["", "fildes", "", "", "flags", "file_index"]),
    row("socket", "socket", ["family", "", "protocol", "type", "", "file_index"]),
    row("bind", "bind", ["fd", "umyaddr", "", "addrlen", "", ""]),
    row("listen", "listen", ["fd", "", "backlog", "", "", ""]),
    row("connect", "connect", ["fd", "uservaddr", "", "addrlen", "", ""]),
    row("accept", "accept4", ["fd", "upeer_sockaddr", "", "upeer_addrlen", "flags", "file_index"]),
    row("send send_zc", "sendto", ["fd", "buff", "len", "dest_addr", "flags", "addr_len"]),
    row("recv recv_zc", "recvfrom", ["fd", "ubuf", "size", "", "flags", ""]),
    row("sendmsg sendmsg_zc recvmsg", "sendmsg", ["fd", "msg", "", "", "flags", ""]),
    row("shutdown", "shutdown", ["fd", "", "how", "", "", ""]),
    row("poll_add", "poll", ["fd", "", "poll_flags", "", "events", ""]),
    row("poll_remove", "poll", ["", "target", "poll_flags", "new_user_data", "events", ""]),
    row("epoll_ctl", "epoll_ctl", ["epfd", "event", "op", "target_fd", "", ""]),
    row("epoll_wait", "epoll_wait", ["epfd", "epoll_events", "maxevents", "", "", ""]),
    row("timeout link_timeout", "", ["", "ts", "", "completions", "timeout_flags", ""]),
    row("timeout_remove", "", ["", "target", "", "ts", "timeout_flags", ""]),
    row("async_cancel", "", ["fd", "target", "opcode", "", "cancel_flags", ""]),
    row("files_update", "", ["", "fds", "nr_fds", "", "", ""]),
    row("provide_buffers", "", ["nbufs", "buf", "", "bid", "", ""]),
    row("remove_buffers", "", ["nbufs", "", "", "", "", ""]),
    row("msg_ring", "", ["fd", "command", "data", "target_user_data", "msg_ring_flags", "file_index"]),
    row("waitid", "waitid", ["upid", "", "which", "infop", "", "options"]),
    row("futex_wait", "futex_wait", ["flags", "uaddr", "", "val", "", ""]),
    row("futex_wake", "futex_wake", ["flags", "uaddr", "", "nr", "", ""]),
    row("futex_waitv", "futex_waitv", ["", "waiters", "nr_futexes", "", "", ""]),
    row("close", "close", ["fd", "", "", "", "", "file_index"]),
    row("uring_cmd uring_cmd128", "", ["fd", "", "", "cmd_op", "", ""]),
    row("fixed_fd_install", "", ["", "", "", "", "install_fd_flags", ""]),
];

const fn row(operations: &'static str, call: &'static str, names: [&'static str; NAMED]) -> Row {
    Row { operations, call, names }
}

/// The names of an operation, where it has some of its own.
pub(super) fn of(operation: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.operations.split(' ').any(|name| name == operation))
}

impl Row {
    /// The format of the number of this name; none: that of its word.
    pub fn format(&self, name: &str) -> Option<Fmt> {
        match name {
            "rw_flags" => return Some(Fmt::Flags(&T_RWF)),
            "events" => return Some(Fmt::Flags(&T_POLL)),
            "target_fd" => return Some(Fmt::Fd),
            // `SPLICE_F_FD_IN_FIXED`: it may be the index of a registered file.
            "fd_in" | "fdin" => return None,
            // Numbers of the program.
            "new_user_data" | "target_user_data" | "cmd_op" => return Some(Fmt::Hex),
            _ => {}
        }
        let call = registry::by_name(self.call)?;
        match call.args.iter().find(|arg| arg.name == name)?.ty {
            // The word of descriptors may be AT_FDCWD in all operations.
            Type::Int(Int { fmt: Fmt::Fd, .. }) => None,
            Type::Int(Int { fmt, .. }) => Some(fmt),
            // It is not read.
            _ => Some(Fmt::Addr),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FIELDS, operations};
    use super::*;

    #[test]
    fn rows_are_of_operations_and_calls() {
        let known: Vec<String> = operations().map(|(_, name)| name).collect();
        for row in ROWS {
            assert!(row.operations.split(' ').all(|name| known.iter().any(|k| k == name)), "{}", row.operations);
            assert!(row.call.is_empty() || registry::by_name(row.call).is_some(), "{}", row.call);
            for (nth, name) in row.names.iter().enumerate() {
                let elsewhere = FIELDS.iter().position(|generic| generic == name).is_some_and(|at| at != nth);
                assert!(!elsewhere, "{}: {name}", row.operations);
            }
        }
    }
}
