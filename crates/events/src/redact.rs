//! Takes text out of events: an event in, one of the same class out, whose texts are as [`Rules`] want them.
//!
//! Numbers, times and what they say of a call stay as they are. What cannot hold other text (an address in binary) is set to zero.
//!
//! Invariant: no byte of memory that a rule is about is copied, whatever its shape.

use crate::dynamic::{self, Field};
use crate::encode::{bytes_tail, empty_tail, many_tail, one_tail, str_tail};
use crate::event::{Cap, Event, Tail};
use crate::generated::{P_INFLIGHT, P_STACK};
use crate::layout::{FIELDS, ID, Shape};
use crate::memory::exists;
use crate::message::Cursor;
use crate::names::Frame;
use crate::rules::{Rules, What, bytes, string};
use crate::schema::{Class, Schema};
use crate::types::{Fmt, Int, MTYPE, Mem, StrKind, Struct, Type};
use crate::{functions, sockaddr};
use std::borrow::Cow;

/// Hands over a frame as the rules want it. Modules of the kernel are no files.
pub fn frame(rules: &dyn Rules, frame: &Frame<'_>, each: &mut dyn FnMut(&Frame<'_>)) {
    let of_module = if frame.kernel { What::Name } else { What::Path };
    let (function, module) = (string(rules, What::Name, frame.function), string(rules, of_module, frame.module));
    let file = string(rules, What::Path, frame.file);
    each(&Frame { function: &function, module: &module, file: &file, ..*frame });
}

/// Writes an event as the rules want it into `out`, which is cleared.
pub fn event(ev: &Event<'_>, rules: &dyn Rules, out: &mut Vec<u8>) {
    out.clear();
    fixed_part(ev, out);
    if let Some(other) = class(ev.schema, rules) {
        out[ID..ID + 2].copy_from_slice(&other.id.to_le_bytes());
    }
    for spec in &ev.layout.tails {
        let i = usize::from(spec.arg);
        match (ev.tail(i, spec.out), ev.resolve(i)) {
            (Some(found), Some((ty, _))) => tail(&Argument { ev, i, ty, rules }, &found, out),
            _ => empty_tail(out, spec.shape),
        }
    }
}

/// Copies the fields of fixed size, and zeros where there are none: a backend leaves there what its buffer had before. That is so for the
/// addresses of trapline's own events too, which have nothing but what was read.
fn fixed_part(ev: &Event<'_>, out: &mut Vec<u8>) {
    let layout = ev.layout;
    out.resize(layout.fixed, 0);
    let mut copy = |at: usize, width: usize| out[at..at + width].copy_from_slice(&ev.bytes[at..at + width]);
    copy(0, FIELDS);
    for (arg, (at, width)) in ev.schema.args.iter().zip(layout.args) {
        if ev.schema.class != Class::Process || matches!(arg.ty, Type::Int(_)) {
            copy(at.into(), width.into());
        }
    }
    if ev.schema.is_span() {
        [(layout.start, 8), (layout.ret, 8), (layout.cpu.0, 2), (layout.cpu.1, 2)]
            .iter()
            .for_each(|(at, n)| copy(*at, *n));
    }
    layout.more_caps.iter().for_each(|at| copy(*at, 8));
}

/// The class of a probe with another name, where that is not to be shown.
pub fn class(schema: &'static Schema, rules: &dyn Rules) -> Option<&'static Schema> {
    if schema.class != Class::Probe || functions::kind(schema).is_some() {
        return None;
    }
    let name = rules.text(What::Probe, schema.name.as_bytes())?;
    let fields: Vec<Field> = schema.args.iter().map(|a| Field { name: a.name.into(), ty: a.ty }).collect();
    let name = String::from_utf8_lossy(&name).into_owned();
    dynamic::shaped(&name, schema.extent, schema.more_caps, &fields).ok()
}

/// Whether values of a function are left out. What a part of them is, only their signature says, so that all or none are.
pub fn leaves_out(values: &[u8], rules: &dyn Rules) -> bool {
    [What::Text, What::Buffer].iter().any(|what| rules.text(*what, values).is_some())
}

/// An argument of an event, and its type with these values.
struct Argument<'a> {
    ev: &'a Event<'a>,
    i: usize,
    ty: &'static Type,
    rules: &'a dyn Rules,
}

impl Argument<'_> {
    /// What its text is; none: its bytes are no text.
    fn what(&self) -> Option<What> {
        let schema = self.ev.schema;
        let name = schema.args[self.i].name;
        match (schema.name, name) {
            (_, "build_id") if schema.class == Class::Process => return None,
            ("function", "name") if schema.class == Class::Process => return Some(What::Name),
            ("untraced", _) if schema.class == Class::Process => return Some(What::Path),
            (_, "detail") if schema.class == Class::Process => return Some(What::Address),
            ("readlink" | "readlinkat", "buf") => return Some(What::Path),
            ("sethostname" | "setdomainname", "name") => return Some(What::Host),
            ("function:entry" | "function:exit", "function") => return Some(What::Name),
            (_, "comm" | "prev_comm" | "next_comm" | "oldcomm" | "newcomm" | "parent_comm" | "child_comm") => {
                return Some(What::Program);
            }
            (_, "path" | "filename" | "pathname") => return Some(What::Path),
            // What is read there is a path.
            _ if self.i == crate::io_uring::ADDRESS && crate::io_uring::is_operation(schema) => {
                return Some(What::Path);
            }
            _ => {}
        }
        Some(match self.ty {
            Type::Str(StrKind::Path) => What::Path,
            Type::Str(StrKind::Text) => What::Text,
            Type::Strv => What::CommandLine,
            Type::Envv => What::Environment,
            Type::Ptr { .. } => What::Text,
            _ => What::Buffer,
        })
    }

    fn text<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        let text = self.what().map_or(text.into(), |what| bytes(self.rules, what, text));
        // The address of a Unix socket is a path.
        if text.starts_with(b"UNIX") && self.ev.schema.args[self.i].name == "detail" {
            return bytes(self.rules, What::Path, &text).into_owned().into();
        }
        text
    }
}

fn tail(arg: &Argument<'_>, found: &Tail<'_>, out: &mut Vec<u8>) {
    match found.shape {
        Shape::Str => str_tail(out, &arg.text(found.bytes)),
        Shape::Bytes => bytes_tail(out, &of_bytes(arg, found.bytes)),
        Shape::One(_) => {
            let elements = of_elements(arg, found.bytes);
            one_tail(out, (found.n > 0).then_some(&elements));
        }
        Shape::Many(size) => many_tail(out, &of_elements(arg, found.bytes), size.into()),
        Shape::Strv => strings(arg, found.bytes, out),
        Shape::Iov => match Cursor::new(found.bytes).iov() {
            Ok(_) => iov(&mut Cursor::new(found.bytes), arg.rules, out),
            Err(_) => empty_tail(out, found.shape),
        },
        Shape::Msg => messages(arg.rules, found.bytes, out),
    }
}

/// A tail of bytes: those of a switch have the type that other arguments decide.
fn of_bytes<'t>(arg: &Argument<'_>, raw: &'t [u8]) -> Cow<'t, [u8]> {
    match arg.ty {
        _ if arg.ev.schema.id == P_INFLIGHT.id => contained(raw, arg.rules),
        Type::Bytes(_) if arg.ev.schema.args[arg.i].name == "values" && functions::kind(arg.ev.schema).is_some() => {
            if leaves_out(raw, arg.rules) {
                Cow::Borrowed(&[])
            } else {
                raw.into()
            }
        }
        Type::Sockaddr(_) => address(arg.rules, raw),
        Type::Msgbuf(_) => {
            let (mtype, text) = raw.split_at(raw.len().min(MTYPE));
            [mtype, &arg.text(text)].concat().into()
        }
        Type::Dirents { wide, .. } => entries(arg.rules, raw, *wide),
        Type::Ptr { .. } => of_elements(arg, raw).into(),
        Type::Int(_) | Type::Sigset(_) | Type::SigsetPack | Type::Fdset(_) | Type::Cpuset(_) => raw.into(),
        _ => arg.text(raw),
    }
}

/// The call in the notice of one in flight.
fn contained<'t>(raw: &[u8], rules: &dyn Rules) -> Cow<'t, [u8]> {
    let mut inner = Vec::new();
    if let Ok(call) = Event::parse(raw) {
        event(&call, rules, &mut inner);
    }
    inner.into()
}

fn of_elements(arg: &Argument<'_>, raw: &[u8]) -> Vec<u8> {
    let mut all = raw.to_vec();
    let name = arg.ev.schema.args[arg.i].name;
    let of_address = matches!(name, "saddr" | "daddr" | "saddr_v6" | "daddr_v6");
    if of_address && arg.rules.text(What::Address, name.as_bytes()).is_some() {
        all.fill(0);
    } else if let Type::Ptr { elem, .. } = arg.ty
        && arg.ev.schema.id != P_STACK.id
    {
        let what = arg.what().unwrap_or(What::Text);
        all.chunks_mut(elem.size().max(1)).for_each(|b| of_mem(elem, what, b, arg.rules));
    }
    all
}

/// Something of a fixed size; `what` its characters are, where its field does not decide that.
fn of_mem(mem: &Mem, what: What, b: &mut [u8], rules: &dyn Rules) {
    match mem {
        Mem::Chars(_) => fixed(what, b, true, rules),
        Mem::Bytes(_) => fixed(What::Buffer, b, false, rules),
        Mem::Inet6 => clear_if(sockaddr::inet6_text(b).as_bytes(), b, rules),
        Mem::Int(int @ Int { fmt: Fmt::Inet4, .. }) => {
            let text = sockaddr::inet4_text(int.read(b));
            clear_if(text.as_bytes(), b, rules);
        }
        Mem::Struct(s) => of_struct(s, what, b, rules),
        Mem::Array(elem, _) => b.chunks_mut(elem.size().max(1)).for_each(|b| of_mem(elem, what, b, rules)),
        Mem::Int(_) | Mem::Sigset(_) => {}
    }
}

fn of_struct(s: &Struct, what: What, b: &mut [u8], rules: &dyn Rules) {
    let there: Vec<bool> = s.fields.iter().map(|f| exists(s, f, b)).collect();
    between_fields(s, &there, b, rules);
    for (f, _) in s.fields.iter().zip(there).filter(|(_, there)| *there) {
        let what = match f.name {
            "nodename" | "domainname" => What::Host,
            "sysname" | "release" | "version" | "machine" => What::Name,
            _ => what,
        };
        let from = usize::from(f.offset).min(b.len());
        let to = (from + f.mem.size()).min(b.len());
        of_mem(&f.mem, what, &mut b[from..to], rules);
    }
}

/// Bytes that belong to no field: whatever the program had there before.
fn between_fields(s: &Struct, there: &[bool], b: &mut [u8], rules: &dyn Rules) {
    let fields =
        || s.fields.iter().zip(there).filter(|(_, there)| **there).map(|(f, _)| (usize::from(f.offset), f.mem.size()));
    let is_of = |at: usize| fields().any(|(from, size)| (from..from + size).contains(&at));
    let free: Vec<usize> = (0..b.len()).filter(|at| !is_of(*at)).collect();
    let bytes: Vec<u8> = free.iter().map(|at| b[*at]).collect();
    if rules.text(What::Buffer, &bytes).is_some() {
        free.into_iter().for_each(|at| b[at] = 0);
    }
}

/// Characters or bytes in a field: a replacement is cut to its size.
fn fixed(what: What, b: &mut [u8], ends: bool, rules: &dyn Rules) {
    let length = b.iter().position(|&c| c == 0).filter(|_| ends).unwrap_or(b.len());
    if let Some(other) = rules.text(what, &b[..length]) {
        let most = b.len().saturating_sub(usize::from(ends));
        let other = &other[..other.len().min(most)];
        b.fill(0);
        b[..other.len()].copy_from_slice(other);
    }
}

fn clear_if(text: &[u8], b: &mut [u8], rules: &dyn Rules) {
    if rules.text(What::Address, text).is_some() {
        b.fill(0);
    }
}

/// The address of a socket: its family alone where the rest is not to be shown.
fn address<'t>(rules: &dyn Rules, raw: &'t [u8]) -> Cow<'t, [u8]> {
    const FAMILY: usize = 2;
    let Some((family, rest)) = raw.split_at_checked(FAMILY) else { return raw.into() };
    let text = sockaddr::text(raw);
    if rules.text(What::Address, text.as_ref().map_or(rest, |text| text.as_bytes())).is_some() {
        return family.into();
    }
    match sockaddr::path(raw).and_then(|path| rules.text(What::Path, path)) {
        Some(path) => [family, &path].concat().into(),
        None => raw.into(),
    }
}

/// Records of a directory buffer, which get the length of their names.
fn entries<'t>(rules: &dyn Rules, raw: &'t [u8], wide: bool) -> Cow<'t, [u8]> {
    let mut all = Vec::new();
    for e in crate::walk::entries(raw) {
        let (head, kind) = if wide { (19, None) } else { (18, e.last()) };
        let name = &e[head.min(e.len())..];
        let end = name.iter().position(|&c| c == 0).unwrap_or(name.len());
        let Some(name) = rules.text(What::Path, &name[..end]) else {
            all.extend_from_slice(e);
            continue;
        };
        let length = head + name.len() + 2;
        let at = all.len();
        all.extend_from_slice(&e[..head]);
        all.extend_from_slice(&name);
        all.push(0);
        all.push(kind.copied().unwrap_or(0));
        all[at + 16..at + 18].copy_from_slice(&(length as u16).to_le_bytes());
    }
    all.into()
}

fn strings(arg: &Argument<'_>, raw: &[u8], out: &mut Vec<u8>) {
    let Ok(all) = Cursor::new(raw).strv() else { return empty_tail(out, Shape::Strv) };
    out.extend_from_slice(&all.total.to_le_bytes());
    out.extend_from_slice(&all.n.to_le_bytes());
    for (address, cap, text) in all.iter() {
        out.extend_from_slice(&address.to_le_bytes());
        out.push(cap.bits());
        str_tail(out, &arg.text(text));
    }
}

fn iov(c: &mut Cursor<'_>, rules: &dyn Rules, out: &mut Vec<u8>) {
    let Ok(all) = c.iov() else { return empty_tail(out, Shape::Iov) };
    out.extend_from_slice(&all.n.to_le_bytes());
    for e in all.iter() {
        out.extend_from_slice(&e.base.to_le_bytes());
        out.extend_from_slice(&e.len.to_le_bytes());
        out.push(e.cap.bits());
        bytes_tail(out, &bytes(rules, What::Buffer, e.bytes));
    }
}

fn messages(rules: &dyn Rules, raw: &[u8], out: &mut Vec<u8>) {
    let mut c = Cursor::new(raw);
    let n = c.u16().unwrap_or(0);
    let at = out.len();
    out.extend_from_slice(&0u16.to_le_bytes());
    for done in 1..=n {
        let Ok(m) = c.msg() else { break };
        out.extend_from_slice(m.header);
        out.extend_from_slice(&m.msg_len.to_le_bytes());
        // Control messages are numbers and data; changed data would not be one.
        let control = rules.text(What::Buffer, m.control).is_none();
        out.push(if control { m.caps } else { m.caps & 0b1100_1111 | Cap::None.bits() << 4 });
        bytes_tail(out, &address(rules, m.name));
        out.extend_from_slice(&m.iov.n.to_le_bytes());
        for e in m.iov.iter() {
            out.extend_from_slice(&e.base.to_le_bytes());
            out.extend_from_slice(&e.len.to_le_bytes());
            out.push(e.cap.bits());
            bytes_tail(out, &bytes(rules, What::Buffer, e.bytes));
        }
        bytes_tail(out, if control { m.control } else { &[] });
        out[at..at + 2].copy_from_slice(&done.to_le_bytes());
    }
}
