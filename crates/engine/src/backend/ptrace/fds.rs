//! Reads what descriptors are and says so in `process:fd` events, so that no view ever asks the system.

use super::emit::Emitter;
use super::thread::{Pending, Thread};
use events::generated as g;
use events::names::AT_FDCWD;
use events::types::{Fmt, Mem, Type};
use events::{Class, Schema};
use sys::{fdinfo, proc};

/// Says what every open descriptor of `pid` is, and where it works.
pub fn seed(out: &mut Emitter<'_>, pid: i32, details: bool) {
    let now = sys::time::monotonic();
    say(out, (pid, pid), AT_FDCWD, now, false);
    for fd in proc::fds(pid).unwrap_or_default() {
        say(out, (pid, pid), fd, now, details);
    }
}

fn say(out: &mut Emitter<'_>, (pid, tid): (i32, i32), fd: i32, time: u64, details: bool) {
    let cwd = fd == AT_FDCWD;
    let Some(path) = proc::fd_link(pid, (!cwd).then_some(fd)) else { return };
    let cloexec = !cwd && proc::fd_cloexec(pid, fd);
    let detail = if details && !cwd { detail(pid, fd, &path) } else { Vec::new() };
    out.process_at(time, &g::P_FD, (pid, tid), &[0, 0, fd as u64, cloexec.into()], &[&path, &detail]);
}

/// What `-yy` adds: the ends of a socket, the numbers of a device.
fn detail(pid: i32, fd: i32, path: &[u8]) -> Vec<u8> {
    if path.starts_with(b"socket:[") {
        let Ok(s) = fdinfo::socket(pid, fd) else { return Vec::new() };
        return events::sockaddr::describe_socket(s.domain, s.kind, s.protocol, &s.local, &s.peer).into_bytes();
    }
    match fdinfo::device(pid, fd) {
        Some((major, minor, block)) => format!("{} {major}:{minor}", if block { "block" } else { "char" }).into_bytes(),
        None => Vec::new(),
    }
}

/// Says what the descriptors are that a successful call has made or changed.
pub fn after_call(out: &mut Emitter<'_>, t: &Thread, p: &Pending, ret: i64, time: u64, details: bool) {
    let who = (t.pid, t.tid);
    if makes_fd(p.schema, &p.args) {
        say(out, who, ret as i32, time, details);
    }
    match p.schema.name {
        "chdir" | "fchdir" => say(out, who, AT_FDCWD, time, false),
        "connect" | "bind" | "listen" if details => say(out, who, p.args[0] as i32, time, details),
        "recvmsg" | "recvmmsg" => {
            // SCM_RIGHTS: the new descriptors are those that the table does not know; the collector reads their numbers
            // from the control message, here all open ones are said again.
            seed(out, t.pid, details);
        }
        _ => {
            for (i, a) in p.schema.args.iter().enumerate() {
                if let Type::Ptr { elem: Mem::Int(int), .. } = a.ty
                    && int.fmt == Fmt::Fd
                    && a.dir.reads_out()
                {
                    let mut pair = [0u8; 8];
                    if sys::mem::read(t.tid, p.args[i], &mut pair).is_ok_and(|n| n == 8) {
                        for half in pair.chunks_exact(4) {
                            say(out, who, i32::from_le_bytes([half[0], half[1], half[2], half[3]]), time, details);
                        }
                    }
                }
            }
        }
    }
}

fn makes_fd(s: &'static Schema, args: &[u64]) -> bool {
    s.class == Class::Syscall
        && matches!(s.ret_type(args), events::schema::Ret::Int(i) if matches!(i.fmt, Fmt::Fd | Fmt::Dirfd))
}
