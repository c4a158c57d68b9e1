//! Memory of a traced process, made up: structs by field names, addresses, control messages, nested tails.
//!
//! Invariant: the layouts come from the same tables that the decoder reads; only the socket families are written by hand.

use events::event::Cap;
use events::{Mem, types::Struct};

/// From which moment a piece of memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// From entry, unless the schema reads it at exit only.
    Schema,
    /// From entry.
    In,
    /// From exit.
    Out,
}

/// A `struct iovec` and what was captured of its contents.
#[derive(Clone, Debug)]
pub struct Iov {
    pub base: u64,
    pub len: u64,
    pub cap: Cap,
    pub bytes: Vec<u8>,
}

impl Iov {
    /// One whose contents were captured whole.
    pub fn whole(b: &[u8]) -> Iov {
        Iov { base: 0x7ffc_0001_0000, len: b.len() as u64, cap: Cap::Whole, bytes: b.to_vec() }
    }
    /// One of `len` bytes, of which `b` were captured.
    pub fn cut(b: &[u8], len: u64) -> Iov {
        Iov { cap: Cap::Cut, len, ..Iov::whole(b) }
    }
    /// One whose memory could not be read.
    pub fn fault(base: u64, len: u64) -> Iov {
        Iov { base, len, cap: Cap::Fault, bytes: Vec::new() }
    }
}

/// A `struct msghdr` and all it leads to.
#[derive(Clone, Debug, Default)]
pub struct Message {
    pub name: Vec<u8>,
    pub iov: Vec<Iov>,
    pub control: Vec<u8>,
    pub flags: u32,
    pub len: u32,
}

/// A control message: level, type, data, padded.
pub fn cmsg(level: u32, kind: u32, data: &[u8]) -> Vec<u8> {
    let mut b = (16 + data.len() as u64).to_le_bytes().to_vec();
    b.extend(level.to_le_bytes());
    b.extend(kind.to_le_bytes());
    b.extend(data);
    b.resize(b.len().next_multiple_of(8), 0);
    b
}

/// Little-endian 32-bit words.
pub fn words(w: &[u32]) -> Vec<u8> {
    w.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// `sockaddr_in`.
pub fn inet(a: [u8; 4], port: u16) -> Vec<u8> {
    let mut b = vec![2, 0];
    b.extend(port.to_be_bytes());
    b.extend(a);
    b.resize(16, 0);
    b
}

/// `sockaddr_in6`.
pub fn inet6(a: std::net::Ipv6Addr, port: u16, scope: u32) -> Vec<u8> {
    let mut b = vec![10, 0];
    b.extend(port.to_be_bytes());
    b.extend([0; 4]);
    b.extend(a.octets());
    b.extend(scope.to_le_bytes());
    b
}

/// `sockaddr_un`.
pub fn unix(path: &[u8]) -> Vec<u8> {
    let mut b = vec![1, 0];
    b.extend(path);
    b
}

/// `sockaddr_nl`.
pub fn netlink(pid: u32, groups: u32) -> Vec<u8> {
    let mut b = vec![16, 0, 0, 0];
    b.extend(words(&[pid, groups]));
    b
}

/// `sockaddr_ll` of an Ethernet device.
pub fn packet(ifindex: u32, mac: [u8; 6]) -> Vec<u8> {
    let mut b = vec![17, 0, 0x08, 0x00];
    b.extend(ifindex.to_le_bytes());
    b.extend([1, 0, 0, 6]);
    b.extend(mac);
    b.resize(20, 0);
    b
}

/// A `struct linux_dirent64`.
pub fn dirent64(ino: u64, off: u64, kind: u8, name: &[u8]) -> Vec<u8> {
    let len = (19 + name.len() + 1).next_multiple_of(8);
    let mut b = ino.to_le_bytes().to_vec();
    b.extend(off.to_le_bytes());
    b.extend((len as u16).to_le_bytes());
    b.push(kind);
    b.extend(name);
    b.resize(len, 0);
    b
}

/// A struct by its fields, all others zero. `a.b` is a field of a nested struct, `a.3` an element of an array.
pub fn structure(s: &'static Struct, fields: &[(&str, u64)]) -> Vec<u8> {
    let mut b = vec![0; usize::from(s.size)];
    for (name, v) in fields {
        let (at, size) = find(&Mem::Struct(s), name).unwrap_or_else(|| panic!("{} has no field {name}", s.name));
        b[at..at + size].copy_from_slice(&v.to_le_bytes()[..size]);
    }
    b
}

fn find(m: &Mem, path: &str) -> Option<(usize, usize)> {
    if path.is_empty() {
        return Some((0, m.size().min(8)));
    }
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    match m {
        Mem::Struct(s) => {
            let f = s.fields.iter().find(|f| f.name == first)?;
            find(&f.mem, rest).map(|(at, size)| (at + usize::from(f.offset), size))
        }
        Mem::Array(e, n) => {
            let i: u16 = first.parse().ok().filter(|i| i < n)?;
            find(e, rest).map(|(at, size)| (at + usize::from(i) * e.size(), size))
        }
        _ => None,
    }
}

/// A [`events::layout::Shape::Strv`] tail.
pub fn strv(out: &mut Vec<u8>, total: Option<u16>, items: &[(Cap, Vec<u8>)]) {
    let n = items.len() as u16;
    out.extend(total.unwrap_or(n).to_le_bytes());
    out.extend(n.to_le_bytes());
    for (i, (cap, s)) in items.iter().enumerate() {
        out.extend((0x7ffc_0002_0000 + 0x10 * i as u64).to_le_bytes());
        out.push(cap.bits());
        events::encode::str_tail(out, s);
    }
}

/// A [`events::layout::Shape::Iov`] tail.
pub fn iov(out: &mut Vec<u8>, v: &[Iov]) {
    out.extend((v.len() as u16).to_le_bytes());
    for e in v {
        out.extend(e.base.to_le_bytes());
        out.extend(e.len.to_le_bytes());
        out.push(e.cap.bits());
        events::encode::bytes_tail(out, &e.bytes);
    }
}

/// A [`events::layout::Shape::Msg`] tail.
pub fn messages(out: &mut Vec<u8>, messages: &[Message]) {
    out.extend((messages.len() as u16).to_le_bytes());
    for m in messages {
        let pointer = |present: bool, a: u64| if present { a } else { 0 };
        for word in [
            pointer(!m.name.is_empty(), 0x7ffc_0003_0000),
            m.name.len() as u64,
            pointer(!m.iov.is_empty(), 0x7ffc_0003_1000),
            m.iov.len() as u64,
            pointer(!m.control.is_empty(), 0x7ffc_0003_2000),
            m.control.len() as u64,
            m.flags.into(),
        ] {
            out.extend(word.to_le_bytes());
        }
        out.extend(m.len.to_le_bytes());
        let cap = |present: bool| u8::from(present);
        out.push(cap(!m.name.is_empty()) | cap(!m.iov.is_empty()) << 2 | cap(!m.control.is_empty()) << 4);
        events::encode::bytes_tail(out, &m.name);
        iov(out, &m.iov);
        events::encode::bytes_tail(out, &m.control);
    }
}
