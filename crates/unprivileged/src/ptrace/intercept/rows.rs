//! What a process captures of each call that it records itself, from the call's schema.

use crate::ptrace::renames::{CHANGE_ROOT, Renamed, renamed};
use engine::capture::Limits;
use events::layout::{Layout, TailSpec};
use events::schema::{Dir, Ret, Schema};
use events::types::{Fmt, Int, Len, LenFrom, MTYPE, Mem, StrKind, Type};
use sys::intercept::{CONTROL, Descriptor, LONGEST, MMSGHDR, Op, RECORD, Row, op};

/// Calls that always stop: they make threads, replace or end programs, return from handlers, add filters, or use `gs`.
const STOPS: [&str; 14] = [
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
];
/// The most descriptors of a message that get names.
const PASSED: u8 = 8;
/// `PATH_MAX` (`include/uapi/linux/limits.h`).
const PATH_MAX: u16 = 4096;
/// Bytes of a socket address that are read, of a set, and of a set of descriptors (as `engine::capture` does).
const ADDRESS: u16 = 128;
const SET: u16 = 1024;
const DESCRIPTORS: u16 = 8192;
/// Bytes of a `struct iovec`.
const IOVEC: u8 = 16;
/// The most messages of one call, and bytes that other memory of such calls takes in their records.
const MESSAGES: u8 = 128;
const BESIDE: usize = 128;

/// Whether a row has the kernel asked for bytes, which takes calls that are not to stop.
pub fn asks(row: &Row) -> bool {
    row.entry.iter().chain(&row.exit).any(|op| op.kind == op::ASKED)
}

/// The row of a call; none: it stops. `names`: descriptors get names.
///
/// What a row reads of an argument whose type another one decides is enough for each of its types: which it was is seen where the record is read. As that may
/// be no address at all, the kernel is asked for the bytes.
pub fn of(schema: &'static Schema, layout: &Layout, limits: Limits, names: bool) -> Option<Row> {
    if STOPS.contains(&schema.name) || names && changes_root(schema) {
        return None;
    }
    let mut row = Row::default();
    for tail in &layout.tails {
        let arg = schema.args.get(usize::from(tail.arg)).filter(|_| tail.arg < 6)?;
        if arg.dir == Dir::OutIntr || !limits.keep.of(schema).has(&arg.ty) {
            // Only a handler interrupts a call, and then the ptracer reads the memory.
            continue;
        }
        let ops = if tail.out { &mut row.exit } else { &mut row.entry };
        let first = ops.len();
        captures(schema, tail, &arg.ty, limits, ops)?;
        if arg.cond.is_some() {
            match &mut ops[first..] {
                [op] if op.kind == op::FIXED => op.kind = op::ASKED,
                _ => return None,
            }
        }
        row.always |= tail.out && matches!(arg.ty, Type::Iov(_) | Type::Msghdr);
    }
    few_messages(schema, limits, &mut row)?;
    if names {
        add_names(schema, &mut row)?;
    }
    row.fits().then_some(row)
}

fn changes_root(schema: &Schema) -> bool {
    CHANGE_ROOT.iter().any(|nr| events::registry::by_number(*nr).is_some_and(|s| s.id == schema.id))
}

/// Adds what says what descriptors are, behind all other captures; none: no such captures do.
fn add_names(schema: &Schema, row: &mut Row) -> Option<()> {
    let is_fd = |int: Int| matches!(int.fmt, Fmt::Fd | Fmt::Dirfd);
    let makes = |ret: Ret| matches!(ret, Ret::Int(int) if is_fd(int));
    let fills =
        |ty: &Type, dir: Dir| matches!(ty, Type::Ptr { elem: Mem::Int(int), .. } if dir.reads_out() && is_fd(*int));
    let descriptor =
        |argument| Op { kind: op::DESCRIPTOR, argument, count: 0, size: 1, limit: Descriptor::MOST, plus: 0 };
    let mut result = makes(schema.ret);
    for a in schema.args {
        match a.ty {
            // What the call does is decided by another argument: some of its results may be no descriptors.
            Type::Switch { table, nth, .. } => {
                for types in table.cases.iter().map(|case| &case.types).chain([&table.default]) {
                    result |= types.ret.is_some_and(is_fd);
                    let ty = types.args.get(usize::from(nth)).and_then(Option::as_ref);
                    ty.is_none_or(|(ty, dir)| !fills(ty, *dir)).then_some(())?;
                }
            }
            Type::Mmsghdr(_) => {
                // Of several messages those that may bring descriptors stop.
                let few = row.entry.iter_mut().filter(|op| a.dir == Dir::Out && op.kind == op::FEW);
                few.for_each(|op| op.kind = op::FEW_WITHOUT_CONTROL);
            }
            Type::Msghdr if a.dir.reads_out() => {
                row.exit.extend((0..PASSED).map(|i| descriptor(op::PASSED + i)));
            }
            _ if fills(&a.ty, a.dir) => {
                (row.exit.len() == 1).then_some(())?;
                row.exit.extend([op::FIRST_OF_TWO, op::SECOND_OF_TWO].map(descriptor));
            }
            _ => {}
        }
    }
    row.exit.extend(result.then(|| descriptor(op::MADE)));
    row.exit.extend(renamed(schema).map(|renamed| match renamed {
        Renamed::Directory => descriptor(op::DIRECTORY),
        Renamed::Argument(at) => descriptor(at),
    }));
    Some(())
}

/// Adds what is read of an argument; none: no such simple captures do.
fn captures(schema: &Schema, tail: &TailSpec, ty: &Type, limits: Limits, ops: &mut Vec<Op>) -> Option<()> {
    let fixed = |limit: u16| Op { kind: op::FIXED, argument: tail.arg, count: 0, size: 1, limit, plus: 0 };
    let each = |size: u8, limit: u16| Op { kind: op::EACH, size, ..fixed(limit) };
    let items = u8::try_from(limits.items()).ok();
    let string = u16::try_from(limits.string).ok()?;
    match ty {
        Type::Str(_) | Type::Ptr { len: None, .. } => {
            let kind = if matches!(ty, Type::Str(_)) { op::STRING } else { op::FIXED };
            ops.push(Op { kind, ..fixed(most(ty, limits)?) });
        }
        Type::Bytes(len) => some(schema, tail, len, 1, string, ops)?,
        Type::Msgbuf(len) => {
            some(schema, tail, len, 1, string.max(1).checked_add(MTYPE as u16)?, ops)?;
            ops.last_mut()?.plus = MTYPE as u16;
        }
        Type::Sockaddr(len) => some(schema, tail, len, 1, ADDRESS, ops)?,
        Type::Sigset(len) | Type::Cpuset(len) => some(schema, tail, len, 1, SET, ops)?,
        Type::Dirents { len, .. } => some(schema, tail, len, 1, u16::MAX, ops)?,
        Type::Fdset(len) => match len.from {
            LenFrom::Arg(count) => ops.push(Op { kind: op::BITS, count, ..fixed(DESCRIPTORS) }),
            _ => return None,
        },
        Type::SigsetPack => ops.extend([fixed(IOVEC.into()), each(1, ADDRESS)]),
        Type::Ptr { elem, len: Some(len) } => {
            some(schema, tail, len, elem.size(), u16::try_from(limits.items() * elem.size()).ok()?, ops)?;
        }
        Type::Iov(len) => {
            some(schema, tail, len, IOVEC.into(), u16::from(items?) * u16::from(IOVEC), ops)?;
            ops.push(each(items?, string));
        }
        Type::Msghdr => {
            // Its other captures refer to the first.
            ops.is_empty().then_some(())?;
            ops.push(fixed(events::message::MSGHDR as u16));
            ops.extend(of_message(items?, string));
        }
        // The call has changed nothing but how much of each was sent.
        Type::Mmsghdr(_) if tail.out && schema.args.get(usize::from(tail.arg))?.dir == Dir::InOut => {
            let limit = u16::from(MESSAGES) * MMSGHDR as u16;
            ops.push(Op { kind: op::RESULT, size: MMSGHDR as u8, ..fixed(limit) });
        }
        Type::Mmsghdr(_) => {
            let count = if tail.out { op::COUNT_OF_RESULT } else { schema.arg("vlen")? as u8 };
            ops.push(Op { kind: op::MESSAGES, count, ..fixed(0) });
            ops.push(Op { kind: op::MESSAGE, ..fixed(units(room(schema, items?, string)?)) });
            ops.extend(of_message(items?, string));
            ops.push(Op { kind: op::NEXT, ..fixed(0) });
        }
        Type::Switch { table, nth, .. } => {
            let rows = table.cases.iter().map(|case| &case.types).chain([&table.default]);
            let types = rows.filter_map(|row| row.args.get(usize::from(*nth))?.as_ref());
            let keep = limits.keep.of(schema);
            let read = types.filter(|(ty, dir)| {
                let is_read = if tail.out { dir.reads_out() && *dir != Dir::OutIntr } else { dir.reads_in() };
                is_read && keep.has(ty)
            });
            let longest = read.map(|(ty, _)| most(ty, limits)).try_fold(0, |longest, most| Some(most?.max(longest)))?;
            ops.extend((longest > 0).then(|| Op { kind: op::ASKED, ..fixed(longest) }));
        }
        _ => return None,
    }
    Some(())
}

/// What the header of a message refers to (`struct user_msghdr`, include/linux/socket.h): name, control data and buffers, with their lengths.
fn of_message(items: u8, string: u16) -> [Op; op::BODY - 1] {
    let field =
        |argument: u8, count: u8, size: u8, limit: u16| Op { kind: op::FIELD, argument, count, size, limit, plus: 0 };
    [
        field(0, 8, 1, ADDRESS),
        field(32, 40, 1, CONTROL),
        field(16, 24, IOVEC, u16::from(items) * u16::from(IOVEC)),
        Op { kind: op::EACH, ..field(0, 0, items, string) },
    ]
}

/// Up to where messages may begin in a record, for all of them to be whole there; none: there is no room for one.
fn room(schema: &Schema, items: u8, string: u16) -> Option<usize> {
    let buffers = usize::from(items) * (usize::from(IOVEC) + of_buffer(string));
    let changed = schema.args.iter().any(|a| matches!(a.ty, Type::Mmsghdr(_)) && a.dir == Dir::InOut);
    let at_exit = if changed { usize::from(MESSAGES) * MMSGHDR + 24 } else { 0 };
    LONGEST
        .checked_sub(op::OF_MESSAGE + buffers + usize::from(CONTROL) + at_exit + BESIDE)
        .filter(|room| *room > RECORD)
}

/// Bytes that the contents of a buffer take in a record.
fn of_buffer(string: u16) -> usize {
    16 + usize::from(string) + 8
}

fn units(bytes: usize) -> u16 {
    (bytes / op::UNIT) as u16
}

/// Has calls with several messages recorded only where these are few.
fn few_messages(schema: &Schema, limits: Limits, row: &mut Row) -> Option<()> {
    let messages = |a: &events::schema::Arg| matches!(a.ty, Type::Mmsghdr(_)) && limits.keep.of(schema).has(&a.ty);
    let Some(argument) = schema.args.iter().position(messages) else { return Some(()) };
    let string = u16::try_from(limits.string).ok()?;
    let room = room(schema, u8::try_from(limits.items()).ok()?, string)?;
    let few = Op {
        kind: op::FEW,
        argument: argument as u8,
        count: schema.arg("vlen")? as u8,
        size: MESSAGES,
        limit: units(room.checked_sub(RECORD + BESIDE)?),
        plus: u16::try_from(usize::from(IOVEC) + of_buffer(string)).ok()?,
    };
    row.entry.insert(0, few);
    Some(())
}

/// The most bytes that are read of an argument that has one piece of memory; none: it has several.
fn most(ty: &Type, limits: Limits) -> Option<u16> {
    Some(match ty {
        Type::Int(_) => 0,
        Type::Str(StrKind::Path) => PATH_MAX,
        Type::Str(StrKind::Text) => u16::try_from(limits.string.max(limits.text) + 1).ok()?,
        Type::Bytes(_) => u16::try_from(limits.string).ok()?,
        Type::Sockaddr(_) => ADDRESS,
        Type::Sigset(_) | Type::Cpuset(_) => SET,
        Type::Ptr { elem, len: None } => u16::try_from(elem.size()).ok()?,
        Type::Ptr { elem, len: Some(_) } => u16::try_from(limits.items() * elem.size()).ok()?,
        _ => return None,
    })
}

/// Adds a capture of so many elements of a size.
fn some(schema: &Schema, tail: &TailSpec, len: &Len, size: usize, limit: u16, ops: &mut Vec<Op>) -> Option<()> {
    if len.div > 1 {
        return None;
    }
    let size = u8::try_from(usize::from(len.mul) * size).ok()?;
    let counted = |kind, count| Op { kind, argument: tail.arg, count, size, limit, plus: 0 };
    let last = match len.from {
        LenFrom::Const(n) => {
            let bytes = u16::try_from(n.saturating_mul(size.into())).unwrap_or(u16::MAX);
            Op { limit: limit.min(bytes), ..counted(op::FIXED, 0) }
        }
        LenFrom::Ret if tail.out => counted(op::RESULT, 0),
        LenFrom::Arg(i) if i < 6 => counted(width(&schema.args.get(usize::from(i))?.ty)?, i),
        LenFrom::Deref(i) if i < 6 => {
            ops.push(Op { kind: op::FIXED, argument: i, count: 0, size: 1, limit: 4, plus: 0 });
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
        let buffer = Op { kind: op::RESULT, argument: 1, count: 0, size: 1, limit: 32, plus: 0 };
        assert_eq!(row("read", false), Some(Row { exit: vec![buffer], ..Row::default() }));
        let buffer = Op { kind: op::ARGUMENT, count: 2, ..buffer };
        assert_eq!(row("write", false), Some(Row { entry: vec![buffer], ..Row::default() }));
        let path = Op { kind: op::STRING, argument: 1, count: 0, size: 1, limit: 4096, plus: 0 };
        assert_eq!(row("openat", false).map(|r| r.entry), Some(vec![path]));
        assert_eq!((row("execve", false), row("vfork", false)), (None, None));
        let arrays = Op { kind: op::ARGUMENT, argument: 1, count: 2, size: 16, limit: 512, plus: 0 };
        let each = Op { kind: op::EACH, argument: 1, count: 0, size: 32, limit: 32, plus: 0 };
        assert_eq!(row("writev", false), Some(Row { entry: vec![arrays, each], ..Row::default() }));
        assert_eq!(row("readv", false), Some(Row { exit: vec![arrays, each], always: true, ..Row::default() }));
        // struct flock has 32 bytes.
        let lock = Op { kind: op::ASKED, argument: 2, count: 0, size: 1, limit: 32, plus: 0 };
        assert_eq!(row("fcntl", false).map(|r| r.entry), Some(vec![lock]));
        // The type of a message is in front of its text.
        let text = Op { kind: op::ARGUMENT, argument: 1, count: 2, size: 1, limit: 40, plus: 8 };
        assert_eq!(row("msgsnd", false), Some(Row { entry: vec![text], ..Row::default() }));
        let text = Op { kind: op::RESULT, count: 0, ..text };
        assert_eq!(row("msgrcv", false), Some(Row { exit: vec![text], ..Row::default() }));
    }

    #[test]
    fn descriptors_get_names() {
        let of = |name: &str| {
            let row = row(name, true)?;
            let names = row.exit.iter().filter(|op| op.kind == op::DESCRIPTOR);
            Some(names.map(|op| op.argument).collect::<Vec<_>>())
        };
        for name in ["openat", "socket", "accept4", "dup2", "epoll_create1", "memfd_create", "fcntl"] {
            assert_eq!(of(name), Some(vec![op::MADE]), "{name}");
        }
        for name in ["pipe2", "socketpair"] {
            assert_eq!(of(name), Some(vec![op::FIRST_OF_TWO, op::SECOND_OF_TWO]), "{name}");
        }
        assert_eq!((of("chdir"), of("connect")), (Some(vec![op::DIRECTORY]), Some(vec![0])));
        assert_eq!((of("read"), of("close"), of("futex")), (Some(vec![]), Some(vec![]), Some(vec![])));
        assert_eq!(of("recvmsg"), Some((op::PASSED..op::PASSED + PASSED).collect()));
        assert_eq!((of("recvmmsg"), of("chroot")), (Some(vec![]), None));
        let first = |names| row("recvmmsg", names).map(|row| row.entry[0].kind);
        assert_eq!((first(false), first(true)), (Some(op::FEW), Some(op::FEW_WITHOUT_CONTROL)));
    }

    /// Calls of every day do not stop.
    #[test]
    fn few_calls_stop() {
        let often = [
            "ioctl",
            "futex",
            "getdents64",
            "epoll_ctl",
            "epoll_wait",
            "epoll_pwait",
            "poll",
            "ppoll",
            "select",
            "pselect6",
            "sendmsg",
            "recvmsg",
            "sendmmsg",
            "recvmmsg",
            "msgsnd",
            "msgrcv",
            "sendto",
            "recvfrom",
            "setsockopt",
            "getsockopt",
            "socket",
            "accept4",
            "preadv",
            "pwritev2",
            "rt_sigaction",
            "rt_sigprocmask",
            "wait4",
            "waitid",
            "io_uring_enter",
            "set_tid_address",
            "memfd_create",
            // What the code makes itself.
            "gettid",
            "process_vm_readv",
        ];
        let stop: Vec<_> = often.into_iter().filter(|name| row(name, false).is_none()).collect();
        assert!(stop.is_empty(), "{stop:?}");
    }
}
