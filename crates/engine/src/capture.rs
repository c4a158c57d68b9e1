//! Reads what a call's arguments point to, as its schema says, and writes the tails of its event.
//!
//! Shared by every backend that reads memory from user space. Nothing is formatted; what cannot be read becomes
//! [`Cap::Fault`], what is longer than wanted [`Cap::Cut`]. Bounded: a tail holds at most 64 KiB per piece and an event's tails
//! at most [`BUDGET`] bytes together, so that a hostile length or a million iovecs cost nothing.

pub mod captures;

use events::encode;
use events::event::Cap;
use events::keep::KeepByCall;
use events::layout::{Layout, Shape};
use events::message::MSGHDR;
use events::schema::{Dir, Schema};
use events::types::{Len, LenFrom, MTYPE, StrKind, Type};

/// Bytes of strings and buffers that the ptracer captures at most: the length of a tail has 16 bits.
pub const MOST: usize = 60_000;
/// The most that the kernel backend's programs read.
pub const MOST_IN_PROGRAMS: usize = 4000;

/// The most bytes that all tails of one event take.
pub const BUDGET: usize = 384 * 1024;
/// `PATH_MAX` (`include/uapi/linux/limits.h`).
const PATH_MAX: usize = 4096;
/// `UIO_MAXIOV` (`include/uapi/linux/uio.h`).
const MAX_IOV: usize = 1024;
const MAX_ENV: usize = 4096;
/// Strings of an array that are captured; the rest is counted.
const MAX_STRINGS: usize = 512;

/// The target's memory.
pub trait Memory {
    /// Reads at `addr`; returns how many bytes could be read from the start.
    fn read(&mut self, addr: u64, buf: &mut [u8]) -> usize;
}

/// Limits on what is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a string or buffer (`-s`).
    pub string: usize,
    /// At least this many bytes of a string, because a filter asks for them.
    pub text: usize,
    /// Strings of the environment too, not only their number (`-v`).
    pub verbose: bool,
    /// Which memory of which call.
    pub keep: KeepByCall,
}

/// A call at entry (`result` none) or exit.
pub struct Call<'a> {
    /// What it is.
    pub schema: &'static Schema,
    /// Its layout.
    pub layout: &'static Layout,
    /// Argument registers.
    pub args: &'a [u64],
    /// Raw result.
    pub result: Option<i64>,
}

impl Limits {
    /// Items of an array: as many as bytes of a string, as strace does; all of them when everything is wanted.
    pub fn items(&self) -> usize {
        if self.verbose { MAX_IOV } else { self.string.max(1) }
    }
}

struct Reader<'a, M> {
    mem: &'a mut M,
    limits: Limits,
    scratch: Vec<u8>,
}

/// Appends the tails of entry (`call.result` none) or of exit, and returns `caps` with their capture bits added.
pub fn tails(call: &Call<'_>, mem: &mut impl Memory, limits: Limits, mut caps: u16, out: &mut Vec<u8>) -> u16 {
    let exit = call.result.is_some();
    let (start, keep) = (out.len(), limits.keep.of(call.schema));
    let mut r = Reader { mem, limits, scratch: Vec::new() };
    for spec in call.layout.tails.iter().filter(|t| t.out == exit) {
        let i = usize::from(spec.arg);
        let wanted = call.schema.resolve(i, call.args).filter(|(ty, dir)| {
            // Of a scatter read that failed, the addresses are still of interest.
            let always = exit && matches!(ty, Type::Iov(_) | Type::Msghdr) && dir.reads_out();
            always || wants(*dir, call.result)
        });
        let addr = call.args.get(i).copied().unwrap_or(0);
        let at = out.len();
        let cap = match wanted {
            Some((ty, _)) if addr != 0 && at - start < BUDGET && keep.has(ty) => {
                r.tail(call, ty, addr, spec.shape, out)
            }
            _ => Cap::None,
        };
        if matches!(cap, Cap::None | Cap::Fault) {
            out.truncate(at);
            encode::empty_tail(out, spec.shape);
        }
        // For inout arguments the capture bits of the entry count; a fault at exit shows as an empty tail.
        if i < 6 && caps >> (2 * i) & 3 == 0 {
            caps |= u16::from(cap.bits()) << (2 * i);
        }
    }
    caps
}

fn wants(dir: Dir, result: Option<i64>) -> bool {
    let Some(ret) = result else { return dir.reads_in() };
    let failed = events::errno::of_result(ret);
    match dir {
        Dir::In => false,
        Dir::Out | Dir::InOut => failed.is_none(),
        Dir::OutPositive => failed.is_none() && ret != 0,
        Dir::OutIntr => failed.is_some_and(|e| e == 4 || events::errno::is_restart(e)),
    }
}

fn word(b: &[u8], at: usize) -> u64 {
    let mut le = [0; 8];
    le.copy_from_slice(&b[at..at + 8]);
    u64::from_le_bytes(le)
}

/// A size of 0 asks getxattr(2), listxattr(2) and getgroups(2) how much there would be, and nothing is stored.
fn asks_for_size(call: &Call<'_>) -> bool {
    ["size", "gidsetsize"].iter().any(|n| call.schema.arg(n).is_some_and(|i| call.args[i] == 0))
}

impl<M: Memory> Reader<'_, M> {
    /// Reads up to `n` bytes into the scratch buffer; none when not even the first can be read.
    fn fetch(&mut self, addr: u64, n: usize) -> Option<&[u8]> {
        self.scratch.resize(n, 0);
        let got = self.mem.read(addr, &mut self.scratch[..n]);
        self.scratch.truncate(got);
        if n > 0 && got == 0 { None } else { Some(&self.scratch) }
    }

    fn len(&mut self, len: &Len, call: &Call<'_>) -> u64 {
        let n = match len.from {
            LenFrom::Const(n) => n.into(),
            LenFrom::Arg(i) => match call.schema.args[usize::from(i)].ty {
                Type::Int(int) => {
                    let v = int.fit(call.args[usize::from(i)]);
                    if int.signed && (v as i64) < 0 { 0 } else { v }
                }
                _ => call.args[usize::from(i)],
            },
            LenFrom::Ret => call.result.unwrap_or(0).max(0) as u64 * u64::from(!asks_for_size(call)),
            LenFrom::Deref(i) => {
                let mut b = [0; 4];
                match self.mem.read(call.args[usize::from(i)], &mut b) {
                    4 => u32::from_le_bytes(b).into(),
                    _ => 0,
                }
            }
        };
        n.saturating_mul(len.mul.into()).div_ceil(u64::from(len.div.max(1)))
    }

    fn tail(&mut self, call: &Call<'_>, ty: &Type, addr: u64, shape: Shape, out: &mut Vec<u8>) -> Cap {
        match ty {
            Type::Int(_) | Type::Switch { .. } => Cap::None,
            Type::Str(kind) => self.string(addr, *kind, shape, out),
            Type::Bytes(len) => {
                let n = self.len(len, call);
                let want = (n as usize).min(self.limits.string).min(MOST);
                self.bytes(addr, want, n, out)
            }
            Type::Sockaddr(len) => {
                let n = self.len(len, call);
                self.bytes(addr, n.min(128) as usize, n.min(128), out)
            }
            Type::SigsetPack => self.sigset_pack(addr, out),
            Type::Msgbuf(len) => {
                let n = self.len(len, call);
                self.msgbuf(addr, n, out)
            }
            Type::Sigset(len) | Type::Cpuset(len) => {
                let n = self.len(len, call);
                self.bytes(addr, n.min(1024) as usize, n.min(1024), out)
            }
            Type::Fdset(len) => {
                let n = self.len(len, call).min(65536).div_ceil(8);
                self.bytes(addr, n as usize, n, out)
            }
            Type::Dirents { len, .. } => {
                let n = self.len(len, call);
                self.bytes(addr, (n as usize).min(usize::from(u16::MAX)), n, out)
            }
            Type::Ptr { elem, len } => {
                let n = len.as_ref().map(|l| self.len(l, call));
                self.elements(addr, elem.size(), n, shape, out)
            }
            Type::Strv => self.strv(addr, self.limits.string.max(1), true, out),
            Type::Envv => self.strv(addr, self.limits.string.max(1), self.limits.verbose, out),
            Type::Iov(len) => {
                let n = self.len(len, call).min(MAX_IOV as u64) as usize;
                let failed = call.result.is_some_and(|r| r < 0);
                let limit = call.result.map_or(u64::MAX, |r| r.max(0) as u64);
                self.iov(addr, n, (!failed).then_some(limit), out)
            }
            Type::Msghdr => {
                out.extend_from_slice(&1u16.to_le_bytes());
                self.msg(addr, 0, call.result, out)
            }
            Type::Mmsghdr(len) => self.mmsg(addr, len, call, out),
        }
    }

    /// This many bytes at an address, straight into the tail.
    fn bytes(&mut self, addr: u64, want: usize, all: u64, out: &mut Vec<u8>) -> Cap {
        let (want, at) = (want.min(usize::from(u16::MAX)), out.len());
        encode::bytes_tail(out, &[]);
        let from = out.len();
        out.resize(from + want, 0);
        let got = self.mem.read(addr, &mut out[from..]);
        if want > 0 && got == 0 {
            out.truncate(at);
            return Cap::Fault;
        }
        out.truncate(from + got);
        out[at..from].copy_from_slice(&(got as u16).to_le_bytes());
        if got < want {
            Cap::Fault
        } else if (want as u64) < all {
            Cap::Cut
        } else {
            Cap::Whole
        }
    }

    /// A C string, read page by page so that one that ends before an unmapped page is not a fault.
    fn cstr(&mut self, addr: u64, max: usize) -> Option<(Vec<u8>, bool)> {
        let mut s = Vec::new();
        let mut chunk = [0u8; 256];
        while s.len() < max {
            let at = addr.wrapping_add(s.len() as u64);
            let to_page_end = (sys::mem::PAGE - at % sys::mem::PAGE) as usize;
            let n = chunk.len().min(max - s.len()).min(to_page_end);
            let got = self.mem.read(at, &mut chunk[..n]);
            if let Some(end) = chunk[..got].iter().position(|&b| b == 0) {
                s.extend_from_slice(&chunk[..end]);
                return Some((s, true));
            }
            s.extend_from_slice(&chunk[..got]);
            if got < n {
                return None;
            }
        }
        Some((s, false))
    }

    /// The pair of pointer and size, and the set (at most 128 bytes) that it leads to.
    fn sigset_pack(&mut self, addr: u64, out: &mut Vec<u8>) -> Cap {
        let mut b = [0u8; 16 + 128];
        if self.mem.read(addr, &mut b[..16]) < 16 {
            return Cap::Fault;
        }
        let (set, size) = (word(&b, 0), (word(&b, 8) as usize).min(128));
        let got = if set == 0 { 0 } else { self.mem.read(set, &mut b[16..16 + size]) };
        encode::bytes_tail(out, &b[..16 + got]);
        Cap::Whole
    }

    fn string(&mut self, addr: u64, kind: StrKind, shape: Shape, out: &mut Vec<u8>) -> Cap {
        let limit = self.limits.string.max(self.limits.text);
        let max = match kind {
            StrKind::Path => PATH_MAX,
            StrKind::Text => limit + 1,
        };
        let Some((mut s, mut whole)) = self.cstr(addr, max.min(MOST)) else { return Cap::Fault };
        if kind == StrKind::Text && s.len() > limit {
            s.truncate(limit);
            whole = false;
        }
        match shape {
            Shape::Str => encode::str_tail(out, &s),
            _ => encode::bytes_tail(out, &s),
        }
        if whole { Cap::Whole } else { Cap::Cut }
    }

    fn elements(&mut self, addr: u64, size: usize, n: Option<u64>, shape: Shape, out: &mut Vec<u8>) -> Cap {
        let room = usize::from(u16::MAX) / size.max(1);
        let all = n.unwrap_or(1);
        // Arrays are shortened as strings are: by the number of elements.
        let want = (all as usize).min(room).min(if n.is_some() { self.limits.items() } else { 1 });
        let Some(b) = self.fetch(addr, want * size) else { return Cap::Fault };
        let got = b.len() / size.max(1);
        let b = &b[..got * size];
        match shape {
            Shape::One(_) if got == 1 => encode::one_tail(out, Some(b)),
            Shape::Many(_) => encode::many_tail(out, b, size),
            Shape::Bytes => encode::bytes_tail(out, b),
            _ => return Cap::Fault,
        }
        if got < want {
            if got == 0 { Cap::Fault } else { Cap::Cut }
        } else if (want as u64) < all {
            Cap::Cut
        } else {
            Cap::Whole
        }
    }

    fn strv(&mut self, addr: u64, string: usize, contents: bool, out: &mut Vec<u8>) -> Cap {
        let head = out.len();
        out.extend_from_slice(&[0; 4]);
        let (mut total, mut n, mut faulted) = (0u16, 0u16, false);
        let mut pointers = [0u8; 256];
        let most = if self.limits.verbose { MAX_STRINGS } else { self.limits.string.clamp(1, MAX_STRINGS) };
        'all: loop {
            let at = addr.wrapping_add(u64::from(total) * 8);
            let to_page_end = (sys::mem::PAGE - at % sys::mem::PAGE) as usize;
            let want = pointers.len().min(to_page_end.max(8));
            let got = self.mem.read(at, &mut pointers[..want]) / 8;
            for p in 0..got {
                let ptr = word(&pointers, p * 8);
                if ptr == 0 || usize::from(total) >= MAX_ENV {
                    break 'all;
                }
                total += 1;
                if !contents || usize::from(n) >= most || out.len() - head > BUDGET / 2 {
                    continue;
                }
                n += 1;
                let item = self.cstr(ptr, string + 1);
                let (cap, s) = match &item {
                    None => (Cap::Fault, &[][..]),
                    Some((s, true)) if s.len() <= string => (Cap::Whole, &s[..]),
                    Some((s, _)) => (Cap::Cut, &s[..string.min(s.len())]),
                };
                out.extend_from_slice(&ptr.to_le_bytes());
                out.push(cap.bits());
                encode::str_tail(out, s);
            }
            if got == 0 {
                faulted = true;
                break;
            }
        }
        if faulted && total == 0 {
            return Cap::Fault;
        }
        out[head..head + 2].copy_from_slice(&total.to_le_bytes());
        out[head + 2..head + 4].copy_from_slice(&n.to_le_bytes());
        if faulted || (contents && n < total) { Cap::Cut } else { Cap::Whole }
    }

    /// `n` iovecs; their contents up to `limit` bytes in all, or not at all.
    fn iov(&mut self, addr: u64, n: usize, limit: Option<u64>, out: &mut Vec<u8>) -> Cap {
        let Some(raw) = self.fetch(addr, n * 16).map(<[u8]>::to_vec) else { return Cap::Fault };
        let got = raw.len() / 16;
        if got == 0 && n > 0 {
            return Cap::Fault;
        }
        let head = out.len();
        out.extend_from_slice(&[0; 2]);
        let (mut left, mut done) = (limit.unwrap_or(0), 0u16);
        for i in 0..got.min(self.limits.items()) {
            if out.len() - head > BUDGET / 2 {
                break;
            }
            let (base, len) = (word(&raw, i * 16), word(&raw, i * 16 + 8));
            out.extend_from_slice(&base.to_le_bytes());
            out.extend_from_slice(&len.to_le_bytes());
            let valid = len.min(left);
            left -= valid;
            let want = (valid as usize).min(self.limits.string).min(MOST);
            let at = out.len();
            out.push(0);
            let cap = if limit.is_none() {
                encode::bytes_tail(out, &[]);
                Cap::None
            } else {
                let cap = self.bytes(base, want, valid, out);
                if out.len() == at + 1 {
                    encode::bytes_tail(out, &[]);
                }
                cap
            };
            out[at] = cap.bits();
            done += 1;
        }
        out[head..head + 2].copy_from_slice(&done.to_le_bytes());
        if usize::from(done) < n { Cap::Cut } else { Cap::Whole }
    }

    /// One message (`include/linux/socket.h`, struct user_msghdr), what it leads to, and its `msg_len`.
    fn msg(&mut self, addr: u64, msg_len: u32, result: Option<i64>, out: &mut Vec<u8>) -> Cap {
        let mut h = [0u8; MSGHDR];
        if self.mem.read(addr, &mut h) < MSGHDR {
            return Cap::Fault;
        }
        out.extend_from_slice(&h);
        out.extend_from_slice(&msg_len.to_le_bytes());
        if result.is_some_and(|r| r < 0) {
            out.push(events::walk::HEADER_ONLY);
            out.extend_from_slice(&[0; 6]);
            return Cap::Whole;
        }
        let caps_at = out.len();
        out.push(0);
        let name_len = u64::from(u32::from_le_bytes([h[8], h[9], h[10], h[11]]));
        let (name, iov, iov_len) = (word(&h, 0), word(&h, 16), word(&h, 24));
        let (control, control_len) = (word(&h, 32), word(&h, 40));
        let name = self.part(name, name_len.min(128), name_len.min(128), out);
        let at = out.len();
        let contents = Some(result.map_or(u64::MAX, |r| r.max(0) as u64));
        let iov = match iov {
            0 => Cap::None,
            a => self.iov(a, iov_len.min(MAX_IOV as u64) as usize, contents, out),
        };
        if matches!(iov, Cap::None | Cap::Fault) {
            out.truncate(at);
            out.extend_from_slice(&[0; 2]);
        }
        let control = self.part(control, control_len.min(4096), control_len, out);
        out[caps_at] = name.bits() | iov.bits() << 2 | control.bits() << 4;
        Cap::Whole
    }

    fn part(&mut self, addr: u64, want: u64, all: u64, out: &mut Vec<u8>) -> Cap {
        let at = out.len();
        let cap = if addr == 0 { Cap::None } else { self.bytes(addr, want as usize, all, out) };
        if matches!(cap, Cap::None | Cap::Fault) {
            out.truncate(at);
            encode::bytes_tail(out, &[]);
        }
        cap
    }

    /// A System V message whose text has so many bytes. Where the text cannot be read, the type alone, cut.
    fn msgbuf(&mut self, addr: u64, n: u64, out: &mut Vec<u8>) -> Cap {
        let (want, at) = ((n as usize).min(self.limits.string.max(1)).min(MOST), out.len());
        match self.bytes(addr, MTYPE + want, n.saturating_add(MTYPE as u64), out) {
            Cap::Fault if out.len() >= at + 2 + MTYPE => {
                out.truncate(at + 2 + MTYPE);
                out[at..at + 2].copy_from_slice(&(MTYPE as u16).to_le_bytes());
                Cap::Cut
            }
            cap => cap,
        }
    }

    fn mmsg(&mut self, addr: u64, len: &Len, call: &Call<'_>, out: &mut Vec<u8>) -> Cap {
        const SIZE: u64 = 64;
        let n = match call.result {
            Some(r) => r.max(0) as u64,
            None => self.len(len, call),
        };
        let n = n.min(MAX_IOV as u64);
        let head = out.len();
        out.extend_from_slice(&[0; 2]);
        let mut done = 0u16;
        for i in 0..n {
            let at = addr.wrapping_add(i * SIZE);
            let mut len = [0; 4];
            if out.len() - head > BUDGET / 2 || self.mem.read(at.wrapping_add(MSGHDR as u64), &mut len) < 4 {
                break;
            }
            let len = u32::from_le_bytes(len);
            let valid = call.result.map(|_| i64::from(len));
            if self.msg(at, len, valid, out) == Cap::Fault {
                break;
            }
            done += 1;
        }
        out[head..head + 2].copy_from_slice(&done.to_le_bytes());
        match done {
            0 if n > 0 => Cap::Fault,
            d if u64::from(d) < n => Cap::Cut,
            _ => Cap::Whole,
        }
    }
}
