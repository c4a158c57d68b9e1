//! Integers as JSON, by the way they are shown.

use crate::names as constants;
use crate::options::{FdNames, Options, Xlat};
use crate::write::json as w;
use events::generated::flags;
use events::names::{AT_FDCWD, FdName};
use events::{Fmt, Int, Table};

/// Writes `v` in the form of `int`: a number, a name, an array of names, or an object of parts.
/// `name_of` has the names of descriptors.
pub fn write<'n>(
    out: &mut Vec<u8>,
    v: u64,
    int: &Int,
    opts: &Options,
    name_of: impl FnOnce(i32) -> Option<&'n FdName>,
) {
    let v = int.fit(v);
    let unsigned = Int { signed: false, ..*int }.fit(v);
    let raw = opts.xlat == Xlat::Raw;
    match int.fmt {
        Fmt::Dec | Fmt::Pid | Fmt::Tid | Fmt::Time | Fmt::ClockTicks => decimal(out, v, int.signed),
        Fmt::Hex | Fmt::Stack => w::hex(out, unsigned),
        Fmt::Addr => w::addr(out, unsigned),
        Fmt::Oct => w::octal(out, unsigned),
        Fmt::ModeType => mode(out, unsigned),
        Fmt::Flags(t) if !raw => names(out, t, unsigned),
        Fmt::Enum(t) if !raw => name_or(out, constants::enumerated(t, v, int.size), v, int.signed),
        Fmt::Signal if !raw => name_or(out, constants::signal(unsigned), v, true),
        Fmt::IoctlCmd if !raw => name_or(out, flags::T_IOCTL.name_of(unsigned), unsigned, false),
        Fmt::Flags(_) | Fmt::Enum(_) | Fmt::Signal | Fmt::IoctlCmd => decimal(out, v, int.signed),
        Fmt::Fd | Fmt::Registered => descriptor(out, v as i32, false, opts.fd_names, name_of),
        Fmt::Dirfd => descriptor(out, v as i32, true, opts.fd_names, name_of),
        Fmt::Uid => match unsigned == (Int { signed: false, ..*int }).fit(u64::MAX) {
            true => out.extend_from_slice(b"-1"),
            false => w::number(out, unsigned),
        },
        Fmt::Dev => device(out, unsigned),
        Fmt::Rlim => {
            let infinite = (unsigned == u64::MAX).then_some("RLIM64_INFINITY");
            name_or(out, infinite, unsigned, false);
        }
        Fmt::Handler => match unsigned {
            0 => w::string(out, "SIG_DFL"),
            1 => w::string(out, "SIG_IGN"),
            u64::MAX => w::string(out, "SIG_ERR"),
            a => w::hex(out, a),
        },
        Fmt::Be16 => w::number(out, (unsigned as u16).swap_bytes()),
        Fmt::Be32 => w::number(out, (unsigned as u32).swap_bytes()),
        Fmt::Inet4 => w::string(out, &events::sockaddr::inet4_text(unsigned)),
        Fmt::EpollData => {
            out.extend_from_slice(b"{\"u32\":");
            w::number(out, unsigned as u32);
            w::key(out, "u64");
            w::number(out, unsigned);
            out.push(b'}');
        }
        Fmt::WaitStatus => wait_status(out, unsigned as u32),
    }
}

fn decimal(out: &mut Vec<u8>, v: u64, signed: bool) {
    if signed { w::number(out, v as i64) } else { w::number(out, v) }
}

fn name_or(out: &mut Vec<u8>, name: Option<&str>, v: u64, signed: bool) {
    match name {
        Some(n) => w::string(out, constant(n)),
        None => decimal(out, v, signed),
    }
}

/// The name alone of a table's `htons(ETH_P_IP)` and `1<<CAP_CHOWN`, which are C for its value.
fn constant(name: &str) -> &str {
    let name = name.strip_prefix("1<<").unwrap_or(name);
    name.strip_prefix("htons(").and_then(|n| n.strip_suffix(')')).unwrap_or(name)
}

/// An array of the names in `v`; what has no name comes last, as one hexadecimal string.
pub fn names(out: &mut Vec<u8>, t: &Table, v: u64) {
    out.push(b'[');
    let rest = t.split(v, |name| {
        w::comma(out);
        w::string(out, constant(name));
    });
    if rest != 0 {
        w::comma(out);
        w::hex(out, rest);
    }
    out.push(b']');
}

/// File type, the three special bits, and the permissions as an octal string.
fn mode(out: &mut Vec<u8>, v: u64) {
    const S_IFMT: u64 = 0o170_000;
    const SPECIAL: [(u64, &str); 3] = [(0o4000, "S_ISUID"), (0o2000, "S_ISGID"), (0o1000, "S_ISVTX")];
    out.push(b'[');
    match v & S_IFMT {
        0 => {}
        kind => match flags::T_FILETYPE.name_of(kind) {
            Some(name) => w::string(out, name),
            None => w::octal(out, kind),
        },
    }
    for (_, name) in SPECIAL.iter().filter(|(bit, _)| v & bit != 0) {
        w::comma(out);
        w::string(out, name);
    }
    w::comma(out);
    w::octal(out, v & 0o777 | v & !0o177_777);
    out.push(b']');
}

/// Major and minor number of a `dev_t` as the kernel encodes it for 64-bit programs (`include/linux/kdev_t.h`,
/// new_encode_dev and huge_encode_dev).
fn device(out: &mut Vec<u8>, v: u64) {
    let major = v >> 8 & 0xfff | v >> 32 & 0xffff_f000;
    let minor = v & 0xff | v >> 12 & 0xffff_ff00;
    out.extend_from_slice(b"{\"major\":");
    w::number(out, major);
    w::key(out, "minor");
    w::number(out, minor);
    out.push(b'}');
}

/// What `wait4` stores (`include/uapi/linux/wait.h`; the event of a traced process is above the low 16 bits).
fn wait_status(out: &mut Vec<u8>, v: u32) {
    let signal = |out: &mut Vec<u8>, n: u32| name_or(out, constants::signal(n.into()), n.into(), false);
    if v == 0xffff {
        return w::string(out, "continued");
    }
    out.push(b'{');
    match (v & 0x7f, v >> 8 & 0xff) {
        (0, code) => {
            w::key(out, "exited");
            w::number(out, code);
        }
        (0x7f, n) => {
            w::key(out, "stopped");
            signal(out, n);
            if v >> 16 != 0 {
                w::key(out, "event");
                w::number(out, v >> 16);
            }
        }
        (n, _) => {
            w::key(out, "signaled");
            signal(out, n);
            w::key(out, "core");
            w::boolean(out, v & 0x80 != 0);
        }
    }
    out.push(b'}');
}

/// A descriptor: its number, or number and name where names are asked for and known.
#[inline]
fn descriptor<'n>(
    out: &mut Vec<u8>,
    fd: i32,
    cwd: bool,
    wanted: FdNames,
    name_of: impl FnOnce(i32) -> Option<&'n FdName>,
) {
    let number = |out: &mut Vec<u8>| match cwd && fd == AT_FDCWD {
        true => w::string(out, "AT_FDCWD"),
        false => w::number(out, fd),
    };
    let name = if wanted == FdNames::NONE { None } else { name_of(fd) };
    let Some(name) = name else { return number(out) };
    out.extend_from_slice(b"{\"fd\":");
    number(out);
    w::key(out, "path");
    w::bytes(out, &name.path, false);
    if wanted.has_details() && !name.detail.is_empty() {
        w::key(out, "detail");
        w::bytes(out, &name.detail, false);
    }
    out.push(b'}');
}
