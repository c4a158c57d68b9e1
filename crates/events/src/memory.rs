//! Walks memory of a known type: numbers, structs, arrays, sets of signals.

use crate::sink::{Group, Sink, Text};
use crate::types::{Field, Fmt, Int, Mem, Struct};

/// Decimal, 8 bytes.
pub const DEC: Int = Int { size: 8, signed: true, fmt: Fmt::Dec };
/// Hexadecimal, 8 bytes.
pub const HEX: Int = Int { size: 8, signed: false, fmt: Fmt::Hex };

pub(crate) fn array(elem: &Mem, b: &[u8], n: usize, more: bool, sink: &mut dyn Sink) {
    sink.open(Group::Array);
    for e in b.chunks_exact(elem.size().max(1)).take(n) {
        sink.item();
        mem(elem, e, sink);
    }
    sink.close(Group::Array, more);
}

/// Shows something in memory. Missing bytes count as zero.
pub fn mem(m: &Mem, b: &[u8], sink: &mut dyn Sink) {
    match m {
        Mem::Int(i) => sink.int(i.read(b), i),
        Mem::Chars(n) => {
            let b = &b[..usize::from(*n).min(b.len())];
            let end = b.iter().position(|&c| c == 0);
            sink.text(&b[..end.unwrap_or(b.len())], end.is_none(), Text::Str);
        }
        Mem::Bytes(n) => sink.text(&b[..usize::from(*n).min(b.len())], false, Text::Buf),
        Mem::Inet6 => match <[u8; 16]>::try_from(&b[..16.min(b.len())]) {
            Ok(a) => sink.inet(10, &std::net::Ipv6Addr::from(a).to_string(), ""),
            Err(_) => sink.text(b, true, Text::Buf),
        },
        Mem::Sigset(n) => sigset(&b[..usize::from(*n).min(b.len())], sink),
        Mem::Struct(s) => structure(s, b, sink),
        Mem::Array(e, n) => array(e, b, usize::from(*n), false, sink),
    }
}

pub(crate) fn slice(b: &[u8], at: usize, n: usize) -> &[u8] {
    let from = at.min(b.len());
    &b[from..(at + n).min(b.len())]
}

/// Shows a struct.
pub fn structure(s: &Struct, b: &[u8], sink: &mut dyn Sink) {
    if let Some(name) = utime_name(s, b) {
        return sink.symbol(name);
    }
    sink.open(Group::Struct);
    let mut hidden = false;
    for f in s.fields.iter().filter(|f| exists(s, f, b)) {
        if f.verbose && !sink.verbose() {
            hidden = true;
            continue;
        }
        sink.field(if f.name.starts_with('_') { "" } else { f.name });
        mem(&f.mem, slice(b, f.offset.into(), f.mem.size()), sink);
        if matches!(f.name, "st_atime" | "st_mtime" | "st_ctime") {
            let at = usize::from(f.offset);
            sink.date(DEC.read(slice(b, at, 8)) as i64, DEC.read(slice(b, at + 8, 8)));
        }
    }
    sink.close(Group::Struct, hidden);
    match s.name {
        "utimespec" => sink.date(DEC.read(slice(b, 0, 8)) as i64, DEC.read(slice(b, 8, 8))),
        "statx_timestamp" => sink.date(DEC.read(slice(b, 0, 8)) as i64, DEC.read(slice(b, 8, 4))),
        _ => {}
    }
}

/// `UTIME_NOW` and `UTIME_OMIT` (include/linux/stat.h).
fn utime_name(s: &Struct, b: &[u8]) -> Option<&'static str> {
    match DEC.read(slice(b, 8, 8)) {
        0x3fff_ffff if s.name == "utimespec" => Some("UTIME_NOW"),
        0x3fff_fffe if s.name == "utimespec" => Some("UTIME_OMIT"),
        _ => None,
    }
}

/// The pointer and the size, then what the pointer leads to.
pub(crate) fn sigset_pack(b: &[u8], sink: &mut dyn Sink) {
    let (addr, size) = (HEX.read(slice(b, 0, 8)), DEC.read(slice(b, 8, 8)));
    sink.open(Group::Struct);
    sink.field("sigmask");
    if b.len() > 16 {
        sigset(&b[16..], sink)
    } else {
        sink.addr(addr)
    }
    sink.field("sigsetsize");
    sink.int(size, &DEC);
    sink.close(Group::Struct, false);
}

/// Whether a field of a struct is there with these values.
pub(crate) fn exists(s: &Struct, f: &Field, b: &[u8]) -> bool {
    let Some(c) = &f.cond else { return true };
    let on = &s.fields[usize::from(c.on)];
    let raw = slice(b, on.offset.into(), on.mem.size());
    let v = match &on.mem {
        Mem::Int(i) => Int { signed: false, ..*i }.read(raw),
        _ => HEX.read(raw),
    };
    c.test.holds(v)
}

/// The bits of a signal set are signals from 1; a set of more than two thirds is shown by what is missing, as strace does.
pub fn sigset(b: &[u8], sink: &mut dyn Sink) {
    let bits = b.len() * 8;
    let has = |n: usize| b[n / 8] >> (n % 8) & 1 == 1;
    let negated = (0..bits).filter(|&n| has(n)).count() >= (bits * 2 / 3).max(1);
    let group = Group::Set { negated };
    sink.open(group);
    for n in (0..bits).filter(|&n| has(n) != negated) {
        match crate::generated::flags::T_SIGNAL.name_of(n as u64 + 1) {
            Some(name) => sink.member(name.strip_prefix("SIG").unwrap_or(name)),
            None => sink.member(&(n + 1).to_string()),
        }
    }
    sink.close(group, false);
}

pub(crate) fn bitmap(b: &[u8], max: usize, sink: &mut dyn Sink) {
    let group = Group::Set { negated: false };
    sink.open(group);
    for n in (0..b.len() * 8).take(max).filter(|&n| b[n / 8] >> (n % 8) & 1 == 1) {
        sink.member(&n.to_string());
    }
    sink.close(group, false);
}
