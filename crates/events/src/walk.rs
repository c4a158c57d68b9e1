//! Walks the values of an event and calls a [`Sink`] for each: the one place that knows how types and bytes fit together.
//!
//! Text and JSON are two sinks; neither reads bytes itself. Nothing here allocates but what a sink does.

pub use crate::memory::{DEC, HEX, mem, sigset, structure};
use crate::memory::{array, bitmap, sigset_pack, slice};
pub use crate::sink::{Group, Sink, Text};

use crate::event::{Cap, Event, Tail};
use crate::layout::Shape;
use crate::message::{Cursor, Iov, Msg};
use crate::schema::Dir;
use crate::types::{Fmt, Int, MTYPE, Mem, StrKind, Type};

/// Which of an argument's two captures is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// From entry where there is one, and from exit.
    Both,
    /// From entry.
    In,
    /// From exit.
    Out,
}

/// Shows argument `i` and returns true, if it exists.
#[inline]
pub fn arg(ev: &Event<'_>, i: usize, phase: Phase, sink: &mut impl Sink) -> bool {
    let Some((ty, dir)) = ev.resolve(i) else { return false };
    match ty {
        Type::Int(int) => sink.int(int.fit(ev.arg(i)), int),
        _ => memory(ev, i, (ty, dir), phase, sink),
    }
    true
}

/// Shows what argument `i` of a resolved type points to.
#[inline]
fn memory(ev: &Event<'_>, i: usize, (ty, dir): (&Type, Dir), phase: Phase, sink: &mut dyn Sink) {
    let addr = ev.arg(i);
    let cap = ev.cap(i);
    let tail = |out: bool| {
        let t = ev.tail(i, out)?;
        let read = match (dir, out) {
            (Dir::InOut, true) => !is_empty(&t),
            _ => matches!(cap, Cap::Whole | Cap::Cut),
        };
        read.then_some(t)
    };
    let before = if dir.reads_in() && phase != Phase::Out { tail(false) } else { None };
    let after = if dir.reads_out() && phase != Phase::In { tail(true) } else { None };
    let mut cx = Context { addr, cut: cap == Cap::Cut, ev, entry: after.is_none() && dir == Dir::InOut };
    match (before, after) {
        _ if addr == 0 => sink.addr(0),
        (None, None) if cap == Cap::Fault => sink.fault(addr),
        (None, None) => sink.addr(addr),
        (Some(t), None) | (None, Some(t)) => cx.value(ty, &t, sink),
        (Some(a), Some(b)) => {
            cx.entry = false;
            cx.pair(ty, &a, &b, sink);
        }
    }
}

fn is_empty(t: &Tail<'_>) -> bool {
    match t.shape {
        Shape::One(_) | Shape::Many(_) => t.n == 0,
        Shape::Str | Shape::Bytes => t.bytes.is_empty(),
        Shape::Strv | Shape::Iov | Shape::Msg => t.bytes.starts_with(&[0, 0]),
    }
}

struct Context<'e> {
    addr: u64,
    cut: bool,
    ev: &'e Event<'e>,
    /// The value is what an in+out argument held before the call.
    entry: bool,
}

impl Context<'_> {
    fn pair(&self, ty: &Type, a: &Tail<'_>, b: &Tail<'_>, sink: &mut dyn Sink) {
        match ty {
            // [128 => 16], and [16] where nothing changed.
            Type::Ptr { elem: Mem::Int(int), len: None } => {
                sink.open(Group::Array);
                sink.item();
                let (x, y) = (int.read(a.bytes), int.read(b.bytes));
                sink.int(x, int);
                // Offsets are shown one after the other, lengths in one pair of brackets, as strace does.
                if x != y && int.size == 8 {
                    sink.close(Group::Array, false);
                    sink.becomes();
                    sink.open(Group::Array);
                    sink.item();
                    sink.int(y, int);
                } else if x != y {
                    sink.becomes();
                    sink.int(y, int);
                }
                sink.close(Group::Array, false);
            }
            _ if a.bytes == b.bytes => self.value(ty, a, sink),
            // What a message held before it was received into is of no interest.
            Type::Msghdr | Type::Mmsghdr(_) => self.value(ty, b, sink),
            _ => {
                self.value(ty, a, sink);
                sink.becomes();
                self.value(ty, b, sink);
            }
        }
    }

    #[inline]
    fn value(&self, ty: &Type, t: &Tail<'_>, sink: &mut dyn Sink) {
        match ty {
            Type::Int(_) | Type::Switch { .. } => sink.addr(self.addr),
            Type::Str(StrKind::Path) => sink.text(t.bytes, self.cut, Text::Path),
            Type::Str(StrKind::Text) => limited(t.bytes, self.cut, Text::Str, sink),
            Type::Bytes(_) => limited(t.bytes, self.cut, Text::Buf, sink),
            Type::Ptr { elem, len: None } => match elem {
                Mem::Int(_) => array(elem, t.bytes, 1, false, sink),
                _ if t.bytes.is_empty() => sink.addr(self.addr),
                _ => mem(elem, t.bytes, sink),
            },
            Type::Ptr { elem: Mem::Struct(s), len: Some(_) } if self.entry && s.name == "pollfd" => {
                let elem = Mem::Struct(&crate::generated::structs::S_POLLFD_IN);
                array(&elem, t.bytes, t.bytes.len() / elem.size(), self.cut, sink);
            }
            Type::Ptr { elem, len: Some(_) } => {
                array(elem, t.bytes, t.bytes.len() / elem.size().max(1), self.cut, sink);
            }
            Type::Strv => self.strv(t, sink),
            Type::Envv if sink.verbose() => self.strv(t, sink),
            Type::Envv => {
                let n = u16::from_le_bytes([t.bytes[0], t.bytes[1]]);
                sink.count(self.addr, n.into(), false, if n == 1 { "var" } else { "vars" });
            }
            Type::Iov(_) => match Cursor::new(t.bytes).iov() {
                Ok(v) => iov(&v, self.cut, sink),
                Err(_) => sink.fault(self.addr),
            },
            Type::Msghdr | Type::Mmsghdr(_) => self.messages(ty, t, sink),
            Type::Msgbuf(_) => self.msgbuf(t.bytes, sink),
            Type::Sockaddr(_) => crate::sockaddr::walk(t.bytes, sink),
            Type::Sigset(_) => sigset(t.bytes, sink),
            Type::SigsetPack => sigset_pack(t.bytes, sink),
            Type::Fdset(_) => {
                let max = self.ev.schema.args.iter().position(|a| a.name == "n" || a.name == "nfds");
                bitmap(t.bytes, max.map_or(usize::MAX, |i| self.ev.arg(i) as usize), sink);
            }
            Type::Cpuset(_) => bitmap(t.bytes, usize::MAX, sink),
            Type::Dirents { wide, .. } => self.dirents(t.bytes, *wide, sink),
        }
    }

    fn strv(&self, t: &Tail<'_>, sink: &mut dyn Sink) {
        let Ok(v) = Cursor::new(t.bytes).strv() else { return sink.fault(self.addr) };
        sink.open(Group::Array);
        for (addr, cap, s) in v.iter() {
            sink.item();
            match cap {
                Cap::Whole | Cap::Cut => limited(s, cap == Cap::Cut, Text::Str, sink),
                Cap::None | Cap::Fault => sink.fault(addr),
            }
        }
        sink.close(Group::Array, self.cut);
    }

    /// A System V message: of a text that could not be read nothing is there, though there was some.
    fn msgbuf(&self, bytes: &[u8], sink: &mut dyn Sink) {
        let Some((mtype, text)) = bytes.split_at_checked(MTYPE) else { return sink.fault(self.addr) };
        sink.open(Group::Struct);
        sink.field("mtype");
        sink.int(DEC.read(mtype), &Int { signed: true, ..DEC });
        sink.field("mtext");
        match text {
            [] if self.cut => sink.fault(self.addr.wrapping_add(MTYPE as u64)),
            text => limited(text, self.cut, Text::Buf, sink),
        }
        sink.close(Group::Struct, false);
    }

    fn messages(&self, ty: &Type, t: &Tail<'_>, sink: &mut dyn Sink) {
        let n = u16::from_le_bytes([t.bytes[0], t.bytes[1]]);
        let mut c = Cursor::new(&t.bytes[2..]);
        if *ty == Type::Msghdr {
            return match c.msg() {
                Ok(m) if n > 0 => message(&m, sink),
                _ => sink.addr(self.addr),
            };
        }
        sink.open(Group::Array);
        for _ in 0..n {
            let Ok(m) = c.msg() else { break };
            sink.item();
            sink.open(Group::Struct);
            sink.field("msg_hdr");
            message(&m, sink);
            if self.ev.ret() > 0 {
                sink.field("msg_len");
                sink.int(m.msg_len.into(), &DEC);
            }
            sink.close(Group::Struct, false);
        }
        sink.close(Group::Array, self.cut);
    }

    fn dirents(&self, b: &[u8], wide: bool, sink: &mut dyn Sink) {
        if !sink.verbose() {
            let n = entries(b).count() as u64;
            return sink.count(self.addr, n, self.cut, if n == 1 && !self.cut { "entry" } else { "entries" });
        }
        sink.open(Group::Array);
        for e in entries(b) {
            sink.item();
            dirent(e, wide, sink);
        }
        sink.close(Group::Array, self.cut);
    }
}

/// No more of a string than the sink wants.
#[inline]
fn limited(bytes: &[u8], cut: bool, kind: Text, sink: &mut dyn Sink) {
    match sink.string_limit().and_then(|most| bytes.get(..most)) {
        Some(shown) => sink.text(shown, cut || shown.len() < bytes.len(), kind),
        None => sink.text(bytes, cut, kind),
    }
}

fn iov(v: &Iov<'_>, more: bool, sink: &mut dyn Sink) {
    sink.open(Group::Array);
    for e in v.iter() {
        sink.item();
        sink.open(Group::Struct);
        sink.field("iov_base");
        match e.cap {
            Cap::Whole | Cap::Cut => limited(e.bytes, e.cap == Cap::Cut, Text::Buf, sink),
            Cap::None => sink.addr(e.base),
            Cap::Fault if e.base == 0 => sink.addr(0),
            Cap::Fault => sink.fault(e.base),
        }
        sink.field("iov_len");
        sink.int(e.len, &DEC);
        sink.close(Group::Struct, false);
    }
    sink.close(Group::Array, more);
}

/// Capture bits of a message that was not received: only its header is valid.
pub const HEADER_ONLY: u8 = 0x80;

/// `struct user_msghdr` (include/linux/socket.h): name 0, namelen 8, iov 16, iovlen 24, control 32, controllen 40, flags 48.
fn message(m: &Msg<'_>, sink: &mut dyn Sink) {
    sink.open(Group::Struct);
    if m.caps == HEADER_ONLY {
        sink.field("msg_namelen");
        sink.int(m.word(8) & 0xffff_ffff, &DEC);
        return sink.close(Group::Struct, false);
    }
    sink.field("msg_name");
    match m.cap(0) {
        Cap::Whole | Cap::Cut if !m.name.is_empty() => crate::sockaddr::walk(m.name, sink),
        Cap::Fault => sink.fault(m.word(0)),
        _ => sink.addr(m.word(0)),
    }
    sink.field("msg_namelen");
    sink.int(m.word(8) & 0xffff_ffff, &DEC);
    sink.field("msg_iov");
    match m.cap(1) {
        Cap::Whole | Cap::Cut => iov(&m.iov, m.cap(1) == Cap::Cut, sink),
        Cap::Fault => sink.fault(m.word(16)),
        Cap::None => sink.addr(m.word(16)),
    }
    sink.field("msg_iovlen");
    sink.int(m.word(24), &DEC);
    if m.word(40) != 0 && m.word(32) != 0 {
        sink.field("msg_control");
        match m.cap(2) {
            Cap::Whole | Cap::Cut => crate::sockaddr::control(m.control, m.cap(2) == Cap::Cut, sink),
            _ => sink.addr(m.word(32)),
        }
    }
    sink.field("msg_controllen");
    sink.int(m.word(40), &DEC);
    sink.field("msg_flags");
    sink.int(
        m.word(48) & 0xffff_ffff,
        &Int { size: 4, signed: false, fmt: Fmt::Flags(&crate::generated::flags::T_MSG) },
    );
    sink.close(Group::Struct, false);
}

/// The records of a directory buffer: both layouts have `d_reclen` (u16) at 16 (`include/linux/dirent.h`).
pub(crate) fn entries(b: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let len = usize::from(u16::from_le_bytes([*b.get(at + 16)?, *b.get(at + 17)?]));
        let e = b.get(at..at + len.max(19))?;
        at += len.max(19);
        Some(e)
    })
}

fn dirent(e: &[u8], wide: bool, sink: &mut dyn Sink) {
    let d_type = Int { size: 1, signed: false, fmt: Fmt::Enum(&crate::generated::flags::T_DIRENT_TYPE) };
    let kind = if wide { e[18] } else { e[e.len() - 1] };
    sink.open(Group::Struct);
    for (name, at) in [("d_ino", 0), ("d_off", 8)] {
        sink.field(name);
        sink.int(DEC.read(slice(e, at, 8)), &Int { signed: name == "d_off", ..DEC });
    }
    sink.field("d_reclen");
    sink.int(e.len() as u64, &DEC);
    if wide {
        sink.field("d_type");
        sink.int(kind.into(), &d_type);
    }
    let name = &e[if wide { 19 } else { 18 }..];
    let end = name.iter().position(|&c| c == 0).unwrap_or(name.len());
    sink.field("d_name");
    sink.text(&name[..end], false, Text::Path);
    if !wide {
        sink.field("d_type");
        sink.int(kind.into(), &d_type);
    }
    sink.close(Group::Struct, false);
}
