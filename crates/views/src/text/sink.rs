//! The sink that writes values as strace does.

use crate::options::{FdNames, HexStrings, Options, Xlat};
use crate::write::number::{self, dec, hex, octal, signed};
use crate::{escape, names as constants};
use events::generated::flags;
use events::names::{FdName, Names};
use events::types::TableKind;
use events::walk::{Group, Sink, Text};
use events::{Event, Fmt, Int, Table};

/// The `unknown` text of tables whose other bits are a mode.
const OCTAL: &str = "0o";

/// Writes values to a buffer.
pub struct TextSink<'a> {
    /// Where to.
    pub out: &'a mut Vec<u8>,
    /// How.
    pub opts: &'a Options,
    /// Names of descriptors.
    pub names: &'a dyn Names,
    /// Whose descriptors.
    pub pid: u32,
    verbose: bool,
    /// Descriptors are shown as they are after the call (results and what the call has stored), not as they were given to it.
    pub after: bool,
    /// One bit per open group: something was written in it.
    filled: u64,
}

impl<'a> TextSink<'a> {
    /// A sink for values of an event.
    pub fn new(out: &'a mut Vec<u8>, opts: &'a Options, names: &'a dyn Names, ev: &Event<'_>) -> Self {
        let verbose = opts.is_verbose(ev.schema);
        TextSink { out, opts, names, pid: ev.pid(), verbose, after: true, filled: 0 }
    }

    /// Writes literally.
    #[inline]
    pub fn raw(&mut self, s: &str) {
        self.out.extend_from_slice(s.as_bytes());
    }

    fn separate(&mut self, with: &[u8]) {
        if self.filled & 1 == 1 {
            self.out.extend_from_slice(with);
        }
        self.filled |= 1;
    }

    /// A descriptor and its name.
    pub fn fd(&mut self, fd: i32) {
        if fd == events::names::AT_FDCWD && self.opts.xlat != Xlat::Raw {
            self.raw(if self.opts.xlat == Xlat::Verbose { "-100 /* AT_FDCWD */" } else { "AT_FDCWD" });
        } else {
            signed(fd.into(), self.out);
        }
        let names = self.names;
        self.fd_name(|pid, after| if after { names.new_fd(pid, fd) } else { names.fd(pid, fd) });
    }

    /// The name of a descriptor, where it is wanted and known: of a process, before or after the event.
    fn fd_name<'n>(&mut self, name: impl FnOnce(u32, bool) -> Option<&'n FdName>) {
        let wanted = self.opts.fd_names;
        if wanted == FdNames::NONE {
            return;
        }
        let Some(name) = name(self.pid, self.after) else { return };
        let is_socket = name.path.starts_with(b"socket:[");
        let detail = if is_socket { wanted.socket } else { wanted.device } && !name.detail.is_empty();
        if !detail && !wanted.path {
            return;
        }
        self.out.push(b'<');
        if is_socket && detail {
            // The socket's own text is made of addresses and escaped paths.
            escape::name_in_brackets(&name.detail, self.out);
        } else {
            // The kernel appends this to the link of a file without a name.
            let gone = name.path.strip_suffix(b" (deleted)");
            escape::name(gone.unwrap_or(&name.path), self.out);
            if gone.is_some() {
                return self.raw(">(deleted)");
            }
            if detail {
                self.out.push(b'<');
                escape::name(&name.detail, self.out);
                self.out.push(b'>');
            }
        }
        self.out.push(b'>');
    }

    /// A value of a table, as `-X` wants it.
    fn named(&mut self, v: u64, size: u8, table: &'static Table) {
        match self.opts.xlat {
            Xlat::Raw => hex(v, self.out),
            Xlat::Abbrev => self.names_of(v, size, table),
            Xlat::Verbose => {
                hex(v, self.out);
                self.raw(" /* ");
                self.names_of(v, size, table);
                self.raw(" */");
            }
        }
    }

    fn unknown(&mut self, v: u64, table: &'static Table) {
        if table.unknown == OCTAL {
            return octal(v, self.out);
        }
        hex(v, self.out);
        if table.unknown != "-" && self.opts.xlat != Xlat::Verbose {
            self.raw(" /* ");
            self.raw(table.unknown);
            self.raw(" */");
        }
    }

    fn names_of(&mut self, v: u64, size: u8, table: &'static Table) {
        if table.kind == TableKind::Enum {
            return match constants::enumerated(table, v, size) {
                Some(name) => self.raw(name),
                None => self.unknown(v, table),
            };
        }
        let mut any = false;
        let out = &mut *self.out;
        let rest = table.split(v, |name| {
            if any {
                out.push(b'|');
            }
            out.extend_from_slice(name.as_bytes());
            any = true;
        });
        match (any, rest) {
            (true, 0) => {}
            (false, 0) if table.unknown == OCTAL => octal(0, self.out),
            (false, 0) => self.out.push(b'0'),
            (true, rest) => {
                self.out.push(b'|');
                if table.unknown == OCTAL { octal(rest, self.out) } else { hex(rest, self.out) }
            }
            (false, rest) => self.unknown(rest, table),
        }
    }

    fn mode_type(&mut self, v: u64) {
        const S_IFMT: u64 = 0o170_000;
        match flags::T_FILETYPE.name_of(v & S_IFMT) {
            Some(name) if v & S_IFMT != 0 => {
                self.raw(name);
                self.out.push(b'|');
                for (bit, name) in [(0o4000, "S_ISUID|"), (0o2000, "S_ISGID|"), (0o1000, "S_ISVTX|")] {
                    if v & bit != 0 {
                        self.raw(name);
                    }
                }
                octal(v & 0o777 & !S_IFMT, self.out);
            }
            _ => octal(v, self.out),
        }
    }

    /// A wait status (`include/uapi/linux/wait.h`, W* macros).
    fn wait_status(&mut self, s: u64) {
        let (low, high) = (s & 0x7f, s >> 8 & 0xff);
        self.out.push(b'{');
        if s & 0xffff == 0xffff {
            self.raw("WIFCONTINUED(s)");
        } else if s & 0xff == 0x7f {
            self.raw("WIFSTOPPED(s) && WSTOPSIG(s) == ");
            self.signal(high & 0x7f);
            if high & 0x80 != 0 {
                self.raw(" | 0x80");
            }
        } else if low == 0 {
            self.raw("WIFEXITED(s) && WEXITSTATUS(s) == ");
            dec(high, self.out);
        } else {
            self.raw("WIFSIGNALED(s) && WTERMSIG(s) == ");
            self.signal(low);
            if s & 0x80 != 0 {
                self.raw(" && WCOREDUMP(s)");
            }
        }
        self.out.push(b'}');
        let event = s >> 16;
        if s & 0xff == 0x7f && event != 0 && s & 0xffff != 0xffff {
            self.raw(" | ");
            match flags::T_PTRACE_EVENT.name_of(event) {
                Some(name) => {
                    self.raw(name);
                    self.raw(" << 16");
                }
                None => hex(event << 16, self.out),
            }
        }
    }

    /// A signal by name, an unknown one by number.
    pub fn signal(&mut self, n: u64) {
        match constants::signal(n) {
            Some(name) => self.raw(name),
            None => signed(n as i64, self.out),
        }
    }

    fn function(&mut self, name: &str, inner: impl FnOnce(&mut Vec<u8>)) {
        self.raw(name);
        self.out.push(b'(');
        inner(self.out);
        self.out.push(b')');
    }

    fn ioctl(&mut self, v: u64) {
        if let Some(name) = flags::T_IOCTL.name_of(v) {
            return self.raw(name);
        }
        // _IOC: 8 bits nr, 8 bits type, 14 bits size, 2 bits direction (include/uapi/asm-generic/ioctl.h).
        self.raw("_IOC(");
        self.raw(match v >> 30 & 3 {
            0 => "_IOC_NONE",
            1 => "_IOC_WRITE",
            2 => "_IOC_READ",
            _ => "_IOC_READ|_IOC_WRITE",
        });
        for part in [v >> 8 & 0xff, v & 0xff, v >> 16 & 0x3fff] {
            self.raw(", ");
            hex(part, self.out);
        }
        self.out.push(b')');
    }
}

impl Sink for TextSink<'_> {
    fn verbose(&self) -> bool {
        self.verbose
    }

    fn string_limit(&self) -> Option<usize> {
        self.opts.string
    }

    #[inline]
    fn int(&mut self, v: u64, int: &Int) {
        let bits = 8 * u32::from(int.size);
        let unsigned = if bits == 64 { v } else { v & ((1 << bits) - 1) };
        match int.fmt {
            Fmt::ClockTicks => {
                signed(v as i64, self.out);
                number::ticks(v, self.out);
            }
            Fmt::Dec | Fmt::Pid | Fmt::Tid | Fmt::Time => {
                if int.signed {
                    signed(v as i64, self.out);
                } else {
                    dec(v, self.out);
                }
            }
            Fmt::Hex => hex(unsigned, self.out),
            Fmt::Oct => octal(unsigned, self.out),
            Fmt::ModeType => self.mode_type(unsigned),
            Fmt::Flags(t) | Fmt::Enum(t) => self.named(unsigned, int.size, t),
            Fmt::Fd if v as i32 == events::names::AT_FDCWD => signed(v as i64, self.out),
            Fmt::Fd | Fmt::Dirfd => self.fd(v as i32),
            Fmt::Registered => {
                signed(v as i64, self.out);
                let names = self.names;
                self.fd_name(|_, _| names.registered(v as i32));
            }
            Fmt::Uid => match unsigned == u64::from(u32::MAX) {
                true => self.raw("-1"),
                false => dec(unsigned, self.out),
            },
            Fmt::Signal => self.signal(v),
            Fmt::Addr => self.addr(v),
            Fmt::Stack => self.addr(v),
            Fmt::Dev => {
                // The kernel's encoding of dev_t for user space (include/linux/kdev_t.h, new_encode_dev / huge_encode_dev).
                let major = (v >> 8 & 0xfff) | (v >> 32 & 0xffff_f000);
                let minor = (v & 0xff) | (v >> 12 & 0xffff_ff00);
                self.raw("makedev(");
                hex(major, self.out);
                self.raw(", ");
                hex(minor, self.out);
                self.out.push(b')');
            }
            Fmt::Rlim if v == u64::MAX => self.raw("RLIM64_INFINITY"),
            Fmt::Rlim if v > 1024 && v.is_multiple_of(1024) => {
                dec(v / 1024, self.out);
                self.raw("*1024");
            }
            Fmt::Rlim => dec(v, self.out),
            Fmt::Handler => match v {
                0 => self.raw("SIG_DFL"),
                1 => self.raw("SIG_IGN"),
                u64::MAX => self.raw("SIG_ERR"),
                _ => hex(v, self.out),
            },
            Fmt::Be16 => self.function("htons", |o| dec(u16::swap_bytes(v as u16).into(), o)),
            Fmt::Be32 => self.function("htonl", |o| dec(u32::swap_bytes(v as u32).into(), o)),
            Fmt::Inet4 => self.inet(2, &events::sockaddr::inet4_text(v), ""),
            Fmt::EpollData => {
                self.raw("{u32=");
                dec(v & 0xffff_ffff, self.out);
                self.raw(", u64=");
                dec(v, self.out);
                self.out.push(b'}');
            }
            Fmt::IoctlCmd => match self.opts.xlat {
                Xlat::Raw => hex(unsigned, self.out),
                _ => self.ioctl(unsigned),
            },
            Fmt::WaitStatus => self.wait_status(v & 0xffff_ffff),
        }
    }

    #[inline]
    fn text(&mut self, b: &[u8], cut: bool, kind: Text) {
        // An abstract socket address.
        let b = match b {
            [0, rest @ ..] if kind == Text::Path => {
                self.out.push(b'@');
                rest
            }
            b => b,
        };
        self.out.push(b'"');
        let plain = |c: &u8| (0x20..0x7f).contains(c) || (9..=13).contains(c);
        match self.opts.hex_strings {
            HexStrings::All => escape::hex_string(b, self.out),
            HexStrings::NonAscii if !b.iter().all(plain) => escape::hex_string(b, self.out),
            HexStrings::NonAsciiChars => escape::c_string_in_hex(b, self.out),
            _ => escape::c_string(b, self.out),
        }
        self.out.push(b'"');
        if cut {
            self.raw("...");
        }
    }

    fn addr(&mut self, a: u64) {
        if a == 0 { self.raw("NULL") } else { hex(a, self.out) }
    }

    fn fault(&mut self, a: u64) {
        self.addr(a);
    }

    fn open(&mut self, g: Group) {
        self.out.extend_from_slice(match g {
            Group::Struct => b"{",
            Group::Array | Group::Set { negated: false } => b"[",
            Group::Set { negated: true } => b"~[",
        });
        self.filled <<= 1;
    }

    fn field(&mut self, name: &str) {
        self.separate(b", ");
        if !name.is_empty() {
            self.raw(name);
            self.out.push(b'=');
        }
    }

    fn item(&mut self) {
        self.separate(b", ");
    }

    fn close(&mut self, g: Group, more: bool) {
        if more {
            self.separate(b", ");
            self.raw("...");
        }
        self.out.push(if g == Group::Struct { b'}' } else { b']' });
        self.filled >>= 1;
    }

    fn member(&mut self, name: &str) {
        self.separate(b" ");
        self.raw(name);
    }

    fn count(&mut self, addr: u64, n: u64, more: bool, what: &str) {
        hex(addr, self.out);
        self.raw(" /* ");
        dec(n, self.out);
        if more {
            self.raw(" or more");
        }
        self.out.push(b' ');
        self.raw(what);
        self.raw(" */");
    }

    fn symbol(&mut self, name: &str) {
        self.raw(name);
    }

    fn date(&mut self, secs: i64, nanos: u64) {
        number::date(secs, nanos, self.opts.utc_offset, self.out);
    }

    fn becomes(&mut self) {
        self.raw(" => ");
    }

    fn inet(&mut self, family: u16, text: &str, field: &str) {
        if family == 2 {
            self.raw("inet_addr(\"");
            self.raw(text);
            return self.raw("\")");
        }
        self.raw("inet_pton(AF_INET6, \"");
        self.raw(text);
        self.out.push(b'"');
        if !field.is_empty() {
            self.raw(", &");
            self.raw(field);
        }
        self.out.push(b')');
    }
}
