//! The event classes of trapline as CTF types: [`events::layout::Layout`] in the terms of the format.
//!
//! Every number has its argument's name; the address of an argument that leads to memory is `NAME_ptr`, and what was
//! read there is `NAME`, or `NAME` and `NAME_out` where it was read at entry and at exit. Counts of what follows are `NAME_length`
//! and `NAME_count`. Spans ([`events::Extent`]) have `entry_time` (so called because there are arguments named `start`), `ret`,
//! `cpu_entry` and `cpu_exit`; where an argument of a class made at run time has that name, an underscore follows.

mod known;
mod streams;

use crate::model::{Base, ByteOrder, Encoding, EventClass, Field, IntType, Label, StructType, Type};
use events::layout::{Layout, Shape, TailSpec};
use events::schema::Schema;
use events::types::{Fmt, Int, Mem, Struct, Table, TableKind};

pub use known::known;
pub(crate) use streams::has_packets;
pub use streams::{
    CLOCK, FUNCTIONS_CLASS, STREAM_CLASS, TSC, functions_class, has_functions, has_values, packet_context,
    packet_header, stream_class,
};

/// An enumeration with more labels than this is shown as a number: labels cost every reader time to open the trace.
const MAX_LABELS: usize = 40;

fn field(name: impl Into<String>, ty: Type) -> Field {
    Field { name: name.into(), ty }
}

fn unsigned(name: impl Into<String>, bits: u32) -> Field {
    field(name, Type::Int(IntType::unsigned(bits)))
}

fn hex(name: impl Into<String>, bits: u32) -> Field {
    field(name, Type::Int(IntType::unsigned(bits).hex()))
}

fn structure(fields: Vec<Field>) -> StructType {
    StructType { align: 8, fields }
}

/// An integer of `size` bytes in the trace, shown as `int`.
fn integer(int: &Int, size: u8) -> Type {
    let bits = u32::from(size) * 8;
    let base = match int.fmt {
        Fmt::Hex
        | Fmt::Flags(_)
        | Fmt::Addr
        | Fmt::Stack
        | Fmt::IoctlCmd
        | Fmt::Handler
        | Fmt::EpollData
        | Fmt::Dev => Base::Hexadecimal,
        Fmt::Oct | Fmt::ModeType => Base::Octal,
        _ => Base::Decimal,
    };
    let order = match int.fmt {
        Fmt::Be16 | Fmt::Be32 | Fmt::Inet4 => ByteOrder::Big,
        _ => ByteOrder::Little,
    };
    let ty = IntType { base, order, signed: int.signed, ..IntType::unsigned(bits) };
    match int.fmt {
        Fmt::Enum(table) if fits(table, &ty) => Type::Enum(ty.clone(), labels(table, &ty)),
        _ => Type::Int(ty),
    }
}

/// Whether all values of the table are values of the integer, and are few.
fn fits(table: &Table, ty: &IntType) -> bool {
    table.kind == TableKind::Enum
        && (1..=MAX_LABELS).contains(&table.rows.len())
        && table.entries().all(|e| {
            let v = e.value as i64;
            let shift = 64 - ty.size;
            if ty.signed { v << shift >> shift == v } else { e.value << shift >> shift == e.value }
        })
}

fn labels(table: &Table, ty: &IntType) -> Vec<Label> {
    let value = |v: u64| if ty.signed { i128::from(v as i64) } else { i128::from(v) };
    table.entries().map(|e| Label { name: e.name.into(), first: value(e.value), last: value(e.value) }).collect()
}

fn bytes(n: u64) -> Type {
    Type::Array(Box::new(Type::Int(IntType::unsigned(8).hex())), n)
}

fn sequence(element: Type, length: &str) -> Type {
    Type::Sequence(Box::new(element), vec![length.into()])
}

fn byte_sequence(length: &str) -> Type {
    sequence(Type::Int(IntType::unsigned(8).hex()), length)
}

fn memory(m: &Mem) -> Type {
    match m {
        Mem::Int(i) => integer(i, i.size),
        Mem::Chars(n) => {
            let char = IntType { encoding: Encoding::Utf8, ..IntType::unsigned(8) };
            Type::Array(Box::new(Type::Int(char)), u64::from(*n))
        }
        Mem::Bytes(n) | Mem::Sigset(n) => bytes(u64::from(*n)),
        Mem::Inet6 => bytes(16),
        Mem::Struct(s) => Type::Struct(packed(s)),
        Mem::Array(e, n) => Type::Array(Box::new(memory(e)), u64::from(*n)),
    }
}

/// A struct in the order of its bytes, with explicit pads. Where fields share bytes (unions), only the first one is kept.
fn packed(s: &Struct) -> StructType {
    let mut order: Vec<_> = s.fields.iter().collect();
    order::by_key(&mut order, |f| f.offset);
    let mut fields: Vec<Field> = Vec::new();
    let mut at = 0usize;
    let pad = |fields: &mut Vec<Field>, from: usize, to: usize| {
        if to > from {
            fields.push(field(format!("pad{from}"), bytes((to - from) as u64)));
        }
    };
    for f in order {
        let from = usize::from(f.offset);
        let to = from + f.mem.size();
        if from < at || to > usize::from(s.size) || f.mem.size() == 0 {
            continue;
        }
        pad(&mut fields, at, from);
        let name = plain(f.name);
        let taken = name.is_empty() || fields.iter().any(|x| x.name == name);
        let name = if taken { format!("{}{from}", if name.is_empty() { "at" } else { name }) } else { name.into() };
        fields.push(field(name, memory(&f.mem)));
        at = to;
    }
    pad(&mut fields, at, usize::from(s.size));
    structure(fields)
}

fn iovec(prefix: &str) -> [Field; 2] {
    let n = format!("{prefix}_count");
    let element = structure(vec![
        hex("base", 64),
        unsigned("len", 64),
        unsigned("cap", 8),
        unsigned("data_length", 16),
        field("data", byte_sequence("data_length")),
    ]);
    [unsigned(&n, 16), field(prefix, sequence(Type::Struct(element), &n))]
}

/// `struct user_msghdr` (`include/linux/socket.h`, 6.18) and what it leads to, as [`events::message`] writes them.
fn message() -> StructType {
    let mut fields = vec![
        hex("msg_name_ptr", 64),
        unsigned("msg_namelen", 32),
        hex("pad12", 32),
        hex("msg_iov_ptr", 64),
        unsigned("msg_iovlen", 64),
        hex("msg_control_ptr", 64),
        unsigned("msg_controllen", 64),
        hex("msg_flags", 32),
        hex("pad52", 32),
        unsigned("msg_len", 32),
        hex("caps", 8),
        unsigned("msg_name_length", 16),
        field("msg_name", byte_sequence("msg_name_length")),
    ];
    fields.extend(iovec("msg_iov"));
    fields.push(unsigned("msg_control_length", 16));
    fields.push(field("msg_control", byte_sequence("msg_control_length")));
    structure(fields)
}

/// The element of a tail of structs or integers.
fn element(schema: &Schema, spec: &TailSpec) -> Type {
    match schema.args[usize::from(spec.arg)].ty {
        events::types::Type::Ptr { elem, .. } => memory(&elem),
        _ => bytes(1),
    }
}

fn tail(schema: &Schema, spec: &TailSpec, name: &str, out: &mut Vec<Field>) {
    let (n, len) = (format!("{name}_count"), format!("{name}_length"));
    match spec.shape {
        Shape::Str => out.push(field(name, Type::Str(Encoding::Utf8))),
        Shape::Bytes => out.extend([unsigned(&len, 16), field(name, byte_sequence(&len))]),
        Shape::One(_) => out.extend([unsigned(&n, 8), field(name, sequence(element(schema, spec), &n))]),
        Shape::Many(_) => out.extend([unsigned(&n, 16), field(name, sequence(element(schema, spec), &n))]),
        Shape::Strv => {
            let string = structure(vec![hex("addr", 64), unsigned("cap", 8), field("str", Type::Str(Encoding::Utf8))]);
            let items = sequence(Type::Struct(string), &n);
            out.extend([unsigned(format!("{name}_total"), 16), unsigned(&n, 16), field(name, items)]);
        }
        Shape::Iov => out.extend(iovec(name)),
        Shape::Msg => out.extend([unsigned(&n, 16), field(name, sequence(Type::Struct(message()), &n))]),
    }
}

/// The name without the underscore that distinguishes it from a keyword: readers remove it too.
fn plain(name: &str) -> &str {
    name.trim_start_matches('_')
}

/// The class of `schema`'s events.
pub fn event_class(schema: &Schema) -> EventClass {
    let layout = Layout::of(schema);
    let mut fixed: Vec<(usize, Field)> = Vec::new();
    for (i, arg) in schema.args.iter().enumerate() {
        let (at, width) = layout.args[i];
        let f = match &arg.ty {
            events::types::Type::Int(int) => field(plain(arg.name), integer(int, width)),
            // A process: event has nothing but what was read.
            _ => hex(format!("{}_ptr", plain(arg.name)), u32::from(width) * 8),
        };
        fixed.push((usize::from(at), f));
    }
    let free = |name: &str| {
        let taken = |name: &str| schema.args.iter().any(|a| plain(a.name) == name);
        let mut name = name.to_string();
        while taken(&name) {
            name.push('_');
        }
        name
    };
    if schema.is_span() {
        fixed.push((layout.start, unsigned(free("entry_time"), 64)));
        fixed.push((layout.ret, field(free("ret"), Type::Int(IntType::signed(64)))));
        fixed.push((layout.cpu.0, unsigned(free("cpu_entry"), 16)));
        fixed.push((layout.cpu.1, unsigned(free("cpu_exit"), 16)));
    }
    if let Some(at) = layout.more_caps {
        fixed.push((at, field(free("cap_more"), bytes(MORE_CAPS))));
    }
    order::by_key(&mut fixed, |(at, _)| *at);
    let mut fields = Vec::new();
    let mut at = events::layout::FIELDS;
    for (from, f) in fixed {
        if from > at {
            fields.push(field(format!("pad{at}"), bytes((from - at) as u64)));
        }
        at = from + size(&f.ty) as usize;
        fields.push(f);
    }
    if layout.fixed > at {
        fields.push(field(format!("pad{at}"), bytes((layout.fixed - at) as u64)));
    }
    for spec in &layout.tails {
        let name = plain(schema.args[usize::from(spec.arg)].name);
        let both = layout.tails.iter().filter(|t| t.arg == spec.arg).count() > 1;
        let name = if both && spec.out { format!("{name}_out") } else { name.into() };
        tail(schema, spec, &name, &mut fields);
    }
    EventClass {
        id: u64::from(schema.id),
        name: schema.probe().into_owned(),
        loglevel: None,
        context: None,
        fields: Some(structure(fields)),
    }
}

/// Bytes of the capture bits of arguments from the seventh on.
const MORE_CAPS: u64 = 8;

/// Bytes of a field of the fixed part.
fn size(ty: &Type) -> u64 {
    match ty {
        Type::Int(i) | Type::Enum(i, _) => u64::from(i.size / 8),
        Type::Array(_, n) => *n,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::known::{captured, made};
    use super::*;
    use crate::model::{Metadata, StreamClass};
    use events::schema::Extent;
    use std::collections::HashSet;

    /// Bytes of the fields before the first one whose place depends on the contents.
    fn fixed_bytes(fields: &[Field]) -> usize {
        fields.iter().map_while(|f| size(&f.ty)).sum()
    }
    fn size(ty: &Type) -> Option<usize> {
        Some(match ty {
            Type::Int(i) | Type::Enum(i, _) => i.size as usize / 8,
            Type::Array(e, n) => size(e)? * *n as usize,
            Type::Struct(s) => s.fields.iter().map(|f| size(&f.ty)).sum::<Option<usize>>()?,
            _ => return None,
        })
    }

    #[test]
    fn the_class_of_a_call_with_captures_is_known_again() {
        use events::dynamic::{ADDRESS, Field, READ, with_captures};
        use events::types::{StrKind, Type as T};
        let stack = T::Ptr { elem: ADDRESS, len: Some(READ) };
        let fields = [("comm", T::Str(StrKind::Text)), ("kstack", stack), ("ustack", stack)];
        let fields = fields.map(|(name, ty)| Field { name: name.into(), ty });
        for base in events::registry::syscalls() {
            for wanted in [&fields[..], &fields[..1], &fields[2..]] {
                let schema = with_captures(base, wanted).unwrap();
                assert_eq!(captured(base.id, &event_class(schema)), Some(schema.id), "{}", base.name);
            }
            // Another layout of the call itself is not taken for captures.
            let mut other = event_class(with_captures(base, &fields).unwrap());
            other.fields.as_mut().unwrap().fields.insert(0, unsigned("new", 32));
            assert_eq!(captured(base.id, &other), None, "{}", base.name);
        }
    }

    #[test]
    fn every_class_has_its_fields_where_the_layout_has_them_and_no_name_twice() {
        for s in events::generated::SCHEMAS {
            let layout = Layout::of(s);
            let class = event_class(s);
            let fields = class.fields.unwrap().fields;
            let mut names = HashSet::new();
            assert!(fields.iter().all(|f| names.insert(f.name.clone())), "{}: {fields:?}", s.name);
            // What follows the fixed part begins with a count or is a string.
            let tail: usize = match layout.tails.first().map(|t| t.shape) {
                None | Some(Shape::Str) => 0,
                Some(Shape::One(_)) => 1,
                Some(Shape::Strv) => 4,
                Some(_) => 2,
            };
            assert_eq!(events::layout::FIELDS + fixed_bytes(&fields) - tail, layout.fixed, "{}", s.name);
        }
    }

    #[test]
    fn elements_have_the_size_that_the_layout_says() {
        for s in events::generated::SCHEMAS {
            for spec in &Layout::of(s).tails {
                if let Shape::One(n) | Shape::Many(n) = spec.shape {
                    assert_eq!(size(&element(s, spec)), Some(usize::from(n)), "{}", s.name);
                }
            }
        }
        assert_eq!(
            message().fields.iter().map_while(|f| size(&f.ty)).sum::<usize>(),
            events::message::MSGHDR + 4 + 1 + 2
        );
    }

    #[test]
    fn structs_name_each_field_once() {
        fn look(ty: &Type) {
            match ty {
                Type::Struct(s) => {
                    let mut names = HashSet::new();
                    for f in &s.fields {
                        assert!(names.insert(&f.name) && !f.name.starts_with("_"), "{}", f.name);
                        look(&f.ty);
                    }
                }
                Type::Array(e, _) | Type::Sequence(e, _) => look(e),
                _ => {}
            }
        }
        stream_class().events.iter().for_each(|e| look(&Type::Struct(e.fields.clone().unwrap())));
    }

    #[test]
    fn classes_of_probes_are_made_from_the_metadata_in_the_order_of_their_arguments() {
        use events::dynamic::Field as F;
        use events::types::{StrKind, Type as T};
        let int = |signed, fmt| T::Int(Int { size: 4, signed, fmt });
        let f = |name: &str, ty| F { name: name.into(), ty };
        let fields = [
            f("prev_comm", T::Str(StrKind::Text)),
            f("prev_pid", int(true, Fmt::Dec)),
            f("ip", T::Int(Int { size: 8, signed: false, fmt: Fmt::Hex })),
            f("mode", int(false, Fmt::Oct)),
            f("data", T::Bytes(events::dynamic::READ)),
            f("argv", T::Strv),
            f("kstack", T::Ptr { elem: events::dynamic::ADDRESS, len: Some(events::dynamic::READ) }),
        ];
        let schema = events::dynamic::class("tracepoint:x:y", &fields).unwrap();
        let class = event_class(schema);
        assert_eq!(made(&class), Some(schema.id));
    }

    #[test]
    fn classes_of_all_operations_of_io_uring_are_known_again() {
        use events::dynamic::{self, Field as F};
        use events::io_uring::{PREFIX, field, names, operations};
        for (_, name) in operations() {
            let of = |n: &&'static str| F { name: (*n).into(), ty: field(&name, n).expect("a type") };
            let schema = dynamic::span(&format!("{PREFIX}{name}"), &names(&name).iter().map(of).collect::<Vec<_>>());
            let schema = schema.expect("a class");
            assert_eq!(made(&event_class(schema)), Some(schema.id), "{name}");
        }
    }

    #[test]
    fn points_and_spans_with_and_without_more_capture_bits_are_told_apart() {
        use events::dynamic::{self, Field as F};
        use events::types::{StrKind, Type as T};
        let int = T::Int(Int { size: 8, signed: true, fmt: Fmt::Dec });
        let names = ["ret", "entry_time", "cpu_entry", "a", "b", "cap_more", "c", "d"];
        let fields = |n: usize, text: usize| -> Vec<F> {
            let ty = |i| if i == text { T::Str(StrKind::Text) } else { int };
            names[..n].iter().enumerate().map(|(i, name)| F { name: (*name).into(), ty: ty(i) }).collect()
        };
        for (n, text) in [(0, 9), (1, 9), (3, 0), (8, 9), (8, 2), (8, 6), (8, 7)] {
            let fields = fields(n, text);
            for extent in [Extent::Point, Extent::Span] {
                for more_caps in [false, true] {
                    let schema = dynamic::shaped("uprobe:/bin/x:f", extent, more_caps, &fields).unwrap();
                    let class = event_class(schema);
                    assert_eq!(made(&class), Some(schema.id), "{class:?}");
                    let mut seen = HashSet::new();
                    assert!(
                        class.fields.iter().flat_map(|s| &s.fields).all(|f| seen.insert(f.name.clone())),
                        "{class:?}"
                    );
                }
            }
            let (point, span) = (dynamic::class("p:x", &fields).unwrap(), dynamic::span("p:x", &fields).unwrap());
            assert_eq!((point.more_caps, span.more_caps), (text > 5 && text < 9, text > 5 && text < 9));
            assert_eq!((point.extent, span.extent), (Extent::Point, Extent::Span));
        }
    }

    /// A version before had the types of System V messages without their texts.
    #[test]
    fn messages_without_text_are_those_of_earlier_versions() {
        let mut stream = stream_class();
        let msgsnd = events::registry::by_name("msgsnd").unwrap();
        let earlier = events::dynamic::without_text(msgsnd).unwrap();
        assert!(events::dynamic::without_text(events::registry::by_name("read").unwrap()).is_none());
        let at = stream.events.iter().position(|e| e.name == "syscall:msgsnd").unwrap();
        stream.events[at].fields = event_class(earlier).fields;
        let known = known(&metadata(stream));
        assert_eq!((known[at], earlier.name, earlier.base), (Some(earlier.id), "msgsnd", msgsnd.id));
    }

    fn metadata(stream: StreamClass) -> Metadata {
        Metadata {
            order: ByteOrder::Little,
            uuid: None,
            packet_header: None,
            env: Vec::new(),
            clocks: Vec::new(),
            streams: vec![stream],
        }
    }

    #[test]
    fn classes_are_recognised_by_name_and_layout() {
        let mut stream = stream_class();
        let at = |s: &StreamClass, name: &str| s.events.iter().position(|e| e.name == name).unwrap();
        let (read, write) = (at(&stream, "syscall:read"), at(&stream, "syscall:write"));
        stream.events[read].id = 900;
        stream.events[write].fields.as_mut().unwrap().fields.pop();
        let known = known(&metadata(stream));
        assert_eq!(known[900], Some(read as u16));
        assert_eq!((known[read], known[write]), (None, None));
        let close = events::registry::by_name("close").unwrap().id;
        assert_eq!(known[usize::from(close)], Some(close));
    }
}
