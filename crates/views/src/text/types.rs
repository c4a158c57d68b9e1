//! C-like names of argument types, for `--types` and `trapline list`.

use events::types::{Fmt, Int, Mem, StrKind, Type};
use events::{Arg, Dir};

fn int(i: &Int) -> String {
    let width = match (i.size, i.signed) {
        (1, true) => "char",
        (1, false) => "unsigned char",
        (2, true) => "short",
        (2, false) => "unsigned short",
        (4, true) => "int",
        (4, false) => "unsigned int",
        (_, true) => "long",
        (_, false) => "unsigned long",
    };
    match i.fmt {
        Fmt::Flags(t) => format!("{width} /* flags {} */", t.name),
        Fmt::Enum(t) => format!("{width} /* enum {} */", t.name),
        Fmt::Fd | Fmt::Dirfd => "int".into(),
        Fmt::Oct | Fmt::ModeType => "umode_t".into(),
        Fmt::Pid | Fmt::Tid => "pid_t".into(),
        Fmt::Uid => "uid_t".into(),
        Fmt::Addr => "void *".into(),
        Fmt::Stack => "unsigned long".into(),
        Fmt::Dev => "dev_t".into(),
        Fmt::Dec if i.size == 8 && !i.signed => "size_t".into(),
        _ => width.into(),
    }
}

fn mem(m: &Mem) -> String {
    match m {
        Mem::Int(i) => int(i),
        Mem::Chars(_) | Mem::Bytes(_) => "char".into(),
        Mem::Inet6 => "struct in6_addr".into(),
        Mem::Sigset(_) => "sigset_t".into(),
        Mem::Struct(s) => format!("struct {}", s.name),
        Mem::Array(e, n) => format!("{}[{n}]", mem(e)),
    }
}

/// The type of an argument as a C programmer would write it.
pub fn c_type(a: &Arg) -> String {
    let constant = if a.dir == Dir::In { "const " } else { "" };
    match &a.ty {
        Type::Int(i) => int(i),
        Type::Str(StrKind::Path | StrKind::Text) => format!("{constant}char *"),
        Type::Bytes(_) => format!("{constant}void *"),
        Type::Ptr { elem, .. } => format!("{constant}{} *", mem(elem)),
        Type::Strv | Type::Envv => "char *const *".into(),
        Type::Iov(_) => "const struct iovec *".into(),
        Type::Msghdr => format!("{constant}struct msghdr *"),
        Type::Mmsghdr(_) => format!("{constant}struct mmsghdr *"),
        Type::Msgbuf(_) => format!("{constant}struct msgbuf *"),
        Type::Sockaddr(_) => format!("{constant}struct sockaddr *"),
        Type::Sigset(_) => format!("{constant}sigset_t *"),
        Type::SigsetPack => "const void *".into(),
        Type::Fdset(_) => "fd_set *".into(),
        Type::Cpuset(_) => format!("{constant}cpu_set_t *"),
        Type::Dirents { wide: true, .. } => "struct linux_dirent64 *".into(),
        Type::Dirents { .. } => "struct linux_dirent *".into(),
        Type::Switch { table, .. } => format!("unsigned long /* by {} */", table.name),
    }
}

/// Writes `type name: ` before an argument.
pub fn declare(a: &Arg, out: &mut Vec<u8>) {
    let t = c_type(a);
    out.extend_from_slice(t.as_bytes());
    if !t.ends_with('*') {
        out.push(b' ');
    }
    out.extend_from_slice(a.name.as_bytes());
    out.extend_from_slice(b": ");
}
