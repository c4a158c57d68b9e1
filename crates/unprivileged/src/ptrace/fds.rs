//! Reports what descriptors are in `process:fd` events, so that no view ever asks the system.

use super::emit::Emitter;
use super::intercept::Record;
use super::renames::{Renamed, renamed};
use super::thread::{Pending, Thread};
use engine::backend::fds::{Fd, described, look, open_fds};
use events::generated as g;
use events::names::AT_FDCWD;
use events::types::{Fmt, Mem, Type};
use events::{Class, Schema};

/// Reports every open descriptor of `pid` and its working directory; `made`: the call that follows has made some of them, and
/// `now` is its end.
pub fn seed(out: &mut Emitter, pid: i32, now: u64, details: bool, made: bool) {
    for fd in open_fds(pid) {
        say(out, (pid, pid), fd, now, details, made);
    }
}

fn say(out: &mut Emitter, (pid, tid): (i32, i32), fd: i32, time: u64, details: bool, made: bool) {
    put(out, (pid, tid), time, look(pid, fd, details, made));
}

fn put(out: &mut Emitter, who: (i32, i32), time: u64, fd: Option<Fd>) {
    if let Some((args, path, detail)) = fd {
        out.process_at(time, &g::P_FD, who, &args, &[&path, &detail]);
    }
}

/// Reports what the record of a successful call says of descriptors: those that it has made, before its own line, or those that it has changed.
pub fn recorded(
    out: &mut Emitter,
    t: &Thread,
    p: &Pending,
    record: &Record<'_>,
    time: u64,
    (details, made): (bool, bool),
) {
    let renames = renamed(p.schema).is_some();
    // If another argument decides what a call does, its result is a descriptor only sometimes.
    let has_some = renames || makes_fd(p.schema, &p.args) || !makes_sometimes(p.schema);
    if made == renames || !has_some {
        return;
    }
    for d in record.descriptors().filter(|d| made || details || d.fd() == AT_FDCWD) {
        put(out, (t.pid, t.tid), time, described(t.pid, &d, details, made));
    }
}

fn makes_sometimes(s: &Schema) -> bool {
    s.args.iter().any(|a| matches!(a.ty, Type::Switch { .. }))
}

/// Reports how a successful call has changed its descriptors. The call's own line still shows them as they were.
pub fn changed(out: &mut Emitter, t: &Thread, p: &Pending, time: u64, details: bool) {
    let fd = match renamed(p.schema) {
        Some(Renamed::Directory) => AT_FDCWD,
        Some(Renamed::Argument(at)) if details => p.args[usize::from(at)] as i32,
        _ => return,
    };
    say(out, (t.pid, t.tid), fd, time, details, false);
}

/// Reports the descriptors that a successful call has made.
pub fn made(out: &mut Emitter, t: &Thread, p: &Pending, ret: i64, time: u64, details: bool) {
    let who = (t.pid, t.tid);
    if makes_fd(p.schema, &p.args) {
        say(out, who, ret as i32, time, details, true);
    }
    match p.schema.name {
        "recvmsg" | "recvmmsg" => {
            // SCM_RIGHTS: the new descriptors are those that the table does not know; the table reads their numbers
            // from the control message, and here all open ones are reported again.
            seed(out, t.pid, time, details, true);
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
                            say(
                                out,
                                who,
                                i32::from_le_bytes([half[0], half[1], half[2], half[3]]),
                                time,
                                details,
                                true,
                            );
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
