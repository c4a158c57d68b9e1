//! Metadata as text: CTF 1.8's language TSDL, as babeltrace2 2.0.4 reads it without a warning.
//!
//! Integer types are declared once each, with names that follow from what they are (`u32`, `x64`, `u64_a64_mono`), so that
//! hundreds of event classes stay small. [`tsdl`] prints all; [`tsdl_with`] and [`event_class`] print a head and, later, further
//! classes of the same trace.
//!
//! Names of fields that clash with a keyword, with a declared type or begin with an underscore are written with an underscore
//! more, which readers take away (babeltrace2 does not do that for the labels of enumerations, so an option of a variant that
//! needs the underscore also needs it in its label). Characters that no identifier can have become underscores.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::identifiers;
use crate::model::{
    Base, ByteOrder, Clock, Encoding, EnvValue, EventClass, Field, FloatType, IntType, Label, Metadata, Path,
    StreamClass, StructType, Type,
};

/// The integer types that are declared already. Each is declared before its first use.
#[derive(Clone, Debug)]
pub struct Aliases {
    order: ByteOrder,
    names: BTreeSet<String>,
}

impl Aliases {
    /// None yet, in a trace of that order of bytes.
    pub fn new(order: ByteOrder) -> Aliases {
        Aliases { order, names: BTreeSet::new() }
    }
}

/// The metadata of a trace.
pub fn tsdl(metadata: &Metadata) -> String {
    tsdl_with(&mut Aliases::new(metadata.order), metadata)
}

/// The metadata of a trace. `aliases` can then be given to [`event_class`] for classes that are added.
pub fn tsdl_with(aliases: &mut Aliases, metadata: &Metadata) -> String {
    let mut out = String::from("/* CTF 1.8 */\n\n");
    out += &trace(aliases, metadata);
    for c in &metadata.clocks {
        out += &clock(c);
    }
    for stream in &metadata.streams {
        out += &stream_class(aliases, stream);
        for event in &stream.events {
            out += &event_class(aliases, stream.id, event);
        }
    }
    out
}

/// One event class with the types that it is the first to use, to be appended to metadata.
pub fn event_class(aliases: &mut Aliases, stream_id: u64, event: &EventClass) -> String {
    let mut p = Printer { aliases, declared: String::new(), out: String::new() };
    let _ = write!(
        p.out,
        "event {{\n\tname = {};\n\tid = {};\n\tstream_id = {stream_id};\n",
        quoted(&event.name),
        event.id
    );
    if let Some(level) = event.loglevel {
        let _ = writeln!(p.out, "\tloglevel = {level};");
    }
    p.scope("context", event.context.as_ref());
    p.scope("fields", event.fields.as_ref());
    p.end()
}

/// A stream class without its events, as [`tsdl`] prints it.
pub fn stream_class(aliases: &mut Aliases, stream: &StreamClass) -> String {
    let mut p = Printer { aliases, declared: String::new(), out: String::new() };
    let _ = write!(p.out, "stream {{\n\tid = {};\n", stream.id);
    p.scope("packet.context", stream.packet_context.as_ref());
    p.scope("event.header", stream.event_header.as_ref());
    p.scope("event.context", stream.event_context.as_ref());
    p.end()
}

fn trace(aliases: &mut Aliases, metadata: &Metadata) -> String {
    let mut p = Printer { aliases, declared: String::new(), out: String::new() };
    p.out += "trace {\n\tmajor = 1;\n\tminor = 8;\n";
    if let Some(uuid) = &metadata.uuid {
        let _ = writeln!(p.out, "\tuuid = \"{}\";", uuid_text(uuid));
    }
    let _ = writeln!(p.out, "\tbyte_order = {};", order(metadata.order));
    p.scope("packet.header", metadata.packet_header.as_ref());
    let mut out = p.end();
    if !metadata.env.is_empty() {
        out += "env {\n";
        for (name, value) in &metadata.env {
            let _ = match value {
                EnvValue::Int(i) => writeln!(out, "\t{} = {i};", identifiers::field_name(name)),
                EnvValue::Str(s) => writeln!(out, "\t{} = {};", identifiers::field_name(name), quoted(s)),
            };
        }
        out += "};\n\n";
    }
    out
}

fn clock(c: &Clock) -> String {
    let mut out = format!("clock {{\n\tname = {};\n", identifiers::sanitize(&c.name));
    if let Some(uuid) = &c.uuid {
        let _ = writeln!(out, "\tuuid = \"{}\";", uuid_text(uuid));
    }
    if !c.description.is_empty() {
        let _ = writeln!(out, "\tdescription = {};", quoted(&c.description));
    }
    let _ = writeln!(out, "\tfreq = {};\n\tprecision = {};", c.freq, c.precision);
    let (seconds, ticks) = offsets(c);
    let _ = writeln!(out, "\toffset_s = {seconds};\n\toffset = {ticks};");
    let absolute = if c.absolute { "true" } else { "false" };
    let _ = writeln!(out, "\tabsolute = {absolute};\n}};\n");
    out
}

/// The offsets of a clock with ticks that are not negative, which babeltrace2 would refuse.
fn offsets(c: &Clock) -> (i64, i64) {
    let freq = i128::from(c.freq.max(1));
    let borrow = if c.offset < 0 { (-i128::from(c.offset) + freq - 1) / freq } else { 0 };
    let ticks = i128::from(c.offset) + borrow * freq;
    match (i64::try_from(i128::from(c.offset_s) - borrow), i64::try_from(ticks)) {
        (Ok(seconds), Ok(ticks)) => (seconds, ticks),
        _ => (c.offset_s, c.offset),
    }
}

fn order(order: ByteOrder) -> &'static str {
    match order {
        ByteOrder::Little => "le",
        ByteOrder::Big => "be",
    }
}

/// An identity as `8-4-4-4-12` hexadecimal digits.
pub fn uuid_text(uuid: &[u8; 16]) -> String {
    let mut out = String::with_capacity(36);
    for (i, byte) in uuid.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        let _ = write!(out, "{byte:02x}");
    }
    out
}

/// A string literal of TSDL: what is not printable ASCII is written as three octal digits per byte.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for byte in text.bytes() {
        match byte {
            b'"' => out += "\\\"",
            b'\\' => out += "\\\\",
            b'\n' => out += "\\n",
            b'\t' => out += "\\t",
            0x20..0x7f => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "\\{byte:03o}");
            }
        }
    }
    out.push('"');
    out
}

/// Text of one block, and of the types that must be declared before it.
struct Printer<'a> {
    aliases: &'a mut Aliases,
    declared: String,
    out: String,
}

impl Printer<'_> {
    fn end(mut self) -> String {
        self.out += "};\n\n";
        if !self.declared.is_empty() {
            self.declared.push('\n');
        }
        self.declared + &self.out
    }

    /// `NAME := struct { … };` of a block.
    fn scope(&mut self, name: &str, ty: Option<&StructType>) {
        if let Some(ty) = ty {
            let text = self.structure(ty, 1);
            let _ = writeln!(self.out, "\t{name} := {text};");
        }
    }

    fn structure(&mut self, ty: &StructType, depth: usize) -> String {
        let mut out = format!("struct {}", self.fields(&ty.fields, depth));
        if ty.align > 1 {
            let _ = write!(out, " align({})", ty.align);
        }
        out
    }

    fn fields(&mut self, fields: &[Field], depth: usize) -> String {
        let mut out = String::from("{\n");
        for field in fields {
            let (spec, dimensions) = self.ty(&field.ty, depth + 1);
            let indent = "\t".repeat(depth + 1);
            let _ = writeln!(out, "{indent}{spec} {}{dimensions};", identifiers::field_name(&field.name));
        }
        out + &"\t".repeat(depth) + "}"
    }

    /// The parts of a declaration before and after a field's name.
    fn ty(&mut self, ty: &Type, depth: usize) -> (String, String) {
        let spec = match ty {
            Type::Int(i) => self.int(i),
            Type::Float(f) => self.float(f),
            Type::Enum(i, labels) => self.enumeration(i, labels),
            Type::Str(Encoding::Utf8) => "string".into(),
            Type::Str(Encoding::Ascii) => "string { encoding = ASCII; }".into(),
            Type::Str(Encoding::None) => "string { encoding = none; }".into(),
            Type::Struct(s) => self.structure(s, depth),
            Type::Variant(tag, options) => format!("variant <{}> {}", path(tag), self.fields(options, depth)),
            Type::Array(element, n) => {
                let (spec, dimensions) = self.ty(element, depth);
                return (spec, format!("[{n}]{dimensions}"));
            }
            Type::Sequence(element, length) => {
                let (spec, dimensions) = self.ty(element, depth);
                return (spec, format!("[{}]{dimensions}", path(length)));
            }
        };
        (spec, String::new())
    }

    fn enumeration(&mut self, int: &IntType, labels: &[Label]) -> String {
        let mut out = format!("enum : {} {{", self.int(int));
        for (i, label) in labels.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let _ = write!(out, "{comma} {} = {}", quoted(&label.name), label.first);
            if label.last != label.first {
                let _ = write!(out, " ... {}", label.last);
            }
        }
        out + " }"
    }

    fn float(&mut self, f: &FloatType) -> String {
        let mut out = format!("floating_point {{ exp_dig = {}; mant_dig = {}; align = {};", f.exp, f.mant, f.align);
        if f.order != self.aliases.order {
            let _ = write!(out, " byte_order = {};", order(f.order));
        }
        out + " }"
    }

    /// The name of an integer type, which is declared if it is not yet.
    fn int(&mut self, int: &IntType) -> String {
        let name = alias_name(int, self.aliases.order);
        if !self.aliases.names.contains(&name) {
            let text = integer(int, self.aliases.order);
            let _ = writeln!(self.declared, "typealias {text} := {name};");
            self.aliases.names.insert(name.clone());
        }
        name
    }
}

fn integer(int: &IntType, trace: ByteOrder) -> String {
    let mut out = format!("integer {{ size = {}; align = {}; signed = {};", int.size, int.align, int.signed);
    match int.base {
        Base::Decimal => {}
        Base::Binary => out += " base = 2;",
        Base::Octal => out += " base = 8;",
        Base::Hexadecimal => out += " base = 16;",
    }
    match int.encoding {
        Encoding::None => {}
        Encoding::Utf8 => out += " encoding = UTF8;",
        Encoding::Ascii => out += " encoding = ASCII;",
    }
    if int.order != trace {
        let _ = write!(out, " byte_order = {};", order(int.order));
    }
    if let Some(clock) = &int.clock {
        let _ = write!(out, " map = clock.{}.value;", identifiers::sanitize(clock));
    }
    out + " }"
}

/// A name that contains all properties of an integer type, so that equal names are equal types.
fn alias_name(int: &IntType, trace: ByteOrder) -> String {
    let letters = match (int.base, int.signed) {
        (Base::Decimal, false) => "u",
        (Base::Decimal, true) => "i",
        (Base::Hexadecimal, false) => "x",
        (Base::Hexadecimal, true) => "ix",
        (Base::Octal, false) => "o",
        (Base::Octal, true) => "io",
        (Base::Binary, false) => "b",
        (Base::Binary, true) => "ib",
    };
    let mut out = format!("{letters}{}", int.size);
    if int.align != 8 {
        let _ = write!(out, "_a{}", int.align);
    }
    match int.encoding {
        Encoding::None => {}
        Encoding::Utf8 => out += "_utf8",
        Encoding::Ascii => out += "_ascii",
    }
    if int.order != trace {
        let _ = write!(out, "_{}", order(int.order));
    }
    if let Some(clock) = &int.clock {
        let _ = write!(out, "_clock_{}", identifiers::sanitize(clock));
    }
    out
}

fn path(path: &Path) -> String {
    let scope = identifiers::scope(path).map_or(0, |(_, rest)| path.len() - rest.len());
    let words =
        path.iter().enumerate().map(|(i, word)| if i < scope { word.clone() } else { identifiers::field_name(word) });
    words.collect::<Vec<_>>().join(".")
}
