//! What a process captures of each call that it records itself, from the call's schema.

use engine::capture::Limits;
use events::layout::{Layout, TailSpec};
use events::schema::{Dir, Ret, Schema};
use events::types::{Fmt, Len, LenFrom, Mem, StrKind, Type};
use sys::intercept::{Op, Row, op};

/// Calls that always stop: they make threads, replace or end programs, return from handlers, or add filters.
const STOPS: [&str; 16] = [
    "clone",
    "clone3",
    "fork",
    "vfork",
    "execve",
    "execveat",
    "exit",
    "exit_group",
    "rt_sigreturn",
    "restart_syscall",
    "prctl",
    "arch_prctl",
    "seccomp",
    "ptrace",
    "set_tid_address",
    "memfd_create",
];
/// Calls that change what descriptors are called ([`super::super::fds`]).
const RENAMES: [&str; 7] = ["chdir", "fchdir", "connect", "bind", "listen", "recvmsg", "recvmmsg"];
/// `PATH_MAX` (`include/uapi/linux/limits.h`).
const PATH_MAX: u16 = 4096;
/// Bytes of a socket address that are read, and of a set (as `engine::capture` does).
const ADDRESS: u16 = 128;
const SET: u16 = 1024;

/// The row of a call; none: it stops. `names`: descriptors get names.
pub fn of(schema: &'static Schema, layout: &Layout, limits: Limits, names: bool) -> Option<Row> {
    if STOPS.contains(&schema.name) || names && changes_names(schema) {
        return None;
    }
    let mut row = Row::default();
    for tail in &layout.tails {
        let arg = schema.args.get(usize::from(tail.arg)).filter(|a| tail.arg < 6 && a.cond.is_none())?;
        if arg.dir == Dir::OutIntr || !limits.keep.of(schema).has(&arg.ty) {
            // Only a handler interrupts a call, and then the ptracer reads the memory.
            continue;
        }
        let ops = if tail.out { &mut row.exit } else { &mut row.entry };
        captures(schema, tail, &arg.ty, limits, ops)?;
    }
    row.fits().then_some(row)
}

fn changes_names(schema: &Schema) -> bool {
    let is_fd = |fmt: Fmt| matches!(fmt, Fmt::Fd | Fmt::Dirfd);
    let makes = matches!(schema.ret, Ret::Int(int) if is_fd(int.fmt));
    let fills = |a: &events::schema::Arg| {
        a.dir.reads_out() && matches!(a.ty, Type::Ptr { elem: Mem::Int(int), .. } if is_fd(int.fmt))
    };
    makes || schema.args.iter().any(fills) || RENAMES.contains(&schema.name)
}

/// Adds what is read of an argument; none: no such simple captures do.
fn captures(schema: &Schema, tail: &TailSpec, ty: &Type, limits: Limits, ops: &mut Vec<Op>) -> Option<()> {
    let fixed = |limit: u16| Op { kind: op::FIXED, argument: tail.arg, count: 0, size: 1, limit };
    match ty {
        Type::Str(kind) => {
            let text = u16::try_from(limits.string.max(limits.text) + 1).ok();
            let limit = if *kind == StrKind::Path { PATH_MAX } else { text? };
            ops.push(Op { kind: op::STRING, ..fixed(limit) });
        }
        Type::Bytes(len) => some(schema, tail, len, 1, u16::try_from(limits.string).ok()?, ops)?,
        Type::Sockaddr(len) => some(schema, tail, len, 1, ADDRESS, ops)?,
        Type::Sigset(len) | Type::Cpuset(len) => some(schema, tail, len, 1, SET, ops)?,
        Type::Ptr { elem, len: None } => ops.push(fixed(u16::try_from(elem.size()).ok()?)),
        Type::Ptr { elem, len: Some(len) } => {
            let limit = u16::try_from(limits.items() * elem.size()).ok()?;
            some(schema, tail, len, elem.size(), limit, ops)?;
        }
        _ => return None,
    }
    Some(())
}

/// Adds a capture of so many elements of a size.
fn some(schema: &Schema, tail: &TailSpec, len: &Len, size: usize, limit: u16, ops: &mut Vec<Op>) -> Option<()> {
    if len.div > 1 {
        return None;
    }
    let size = u8::try_from(usize::from(len.mul) * size).ok()?;
    let counted = |kind, count| Op { kind, argument: tail.arg, count, size, limit };
    let last = match len.from {
        LenFrom::Const(n) => {
            let bytes = u16::try_from(n.saturating_mul(size.into())).unwrap_or(u16::MAX);
            Op { limit: limit.min(bytes), ..counted(op::FIXED, 0) }
        }
        LenFrom::Ret if tail.out => counted(op::RESULT, 0),
        LenFrom::Arg(i) if i < 6 => counted(width(&schema.args.get(usize::from(i))?.ty)?, i),
        LenFrom::Deref(i) if i < 6 => {
            ops.push(Op { kind: op::FIXED, argument: i, count: 0, size: 1, limit: 4 });
            counted(op::FIXED, 0)
        }
        _ => return None,
    };
    ops.push(last);
    Some(())
}

/// How a number of elements is read of an argument.
fn width(ty: &Type) -> Option<u8> {
    match ty {
        Type::Int(int) if int.size == 4 && int.signed => Some(op::SIGNED),
        Type::Int(int) if int.size == 4 => Some(op::UNSIGNED),
        Type::Int(int) if int.size < 8 => None,
        _ => Some(op::ARGUMENT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use events::keep::KeepByCall;

    fn row(name: &str, names: bool) -> Option<Row> {
        let schema = events::registry::by_name(name).expect("a call");
        let limits = Limits { string: 32, text: 0, verbose: false, keep: KeepByCall::ALL };
        of(schema, events::registry::layout(schema.id)?, limits, names)
    }

    #[test]
    fn rows_are_those_of_the_schemas() {
        let buffer = Op { kind: op::RESULT, argument: 1, count: 0, size: 1, limit: 32 };
        assert_eq!(row("read", false), Some(Row { entry: vec![], exit: vec![buffer] }));
        let buffer = Op { kind: op::ARGUMENT, count: 2, ..buffer };
        assert_eq!(row("write", false), Some(Row { entry: vec![buffer], exit: vec![] }));
        let path = Op { kind: op::STRING, argument: 1, count: 0, size: 1, limit: 4096 };
        assert_eq!(row("openat", false).map(|r| r.entry), Some(vec![path]));
        assert_eq!((row("openat", true), row("read", true).is_some()), (None, true));
        assert_eq!((row("execve", false), row("vfork", false)), (None, None));
    }
}
