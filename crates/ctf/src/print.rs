//! Metadata as text: CTF 1.8's language TSDL, as babeltrace2 2.0.4 reads it without a warning.
//!
//! Integer types are declared once each, with names that follow from what they are (`u32`, `x64`, `u64_a64_mono`), so that
//! hundreds of event classes stay small. [`tsdl`] prints all; [`tsdl_with`], [`stream`] and [`event_class`] print a head and, later,
//! further classes of the same trace.
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
    let mut p = Printer::new(aliases);
    p.out += "/* CTF 1.8 */\n\n";
    p.trace(metadata);
    for c in &metadata.clocks {
        clock(&mut p.out, c);
    }
    for stream in &metadata.streams {
        p.stream(stream);
    }
    p.out
}

/// Appends a stream class with its events, as [`tsdl`] prints it.
pub fn stream(aliases: &mut Aliases, out: &mut String, stream: &StreamClass) {
    let mut p = Printer::new(aliases);
    p.out = std::mem::take(out);
    p.stream(stream);
    *out = p.out;
}

/// One event class with the types that it is the first to use, to be appended to metadata.
pub fn event_class(aliases: &mut Aliases, stream_id: u64, event: &EventClass) -> String {
    let mut p = Printer::new(aliases);
    p.event_class(stream_id, event);
    p.out
}

fn clock(out: &mut String, c: &Clock) {
    let _ = write!(out, "clock {{\n\tname = {};\n", identifiers::sanitize(&c.name));
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
    quote(&mut out, text);
    out
}

fn quote(out: &mut String, text: &str) {
    out.push('"');
    for byte in text.bytes() {
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            0x20..0x7f => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "\\{byte:03o}");
            }
        }
    }
    out.push('"');
}

fn number(out: &mut String, n: impl itoa::Integer) {
    out.push_str(itoa::Buffer::new().format(n));
}

/// Text of blocks. There are hundreds, so nothing is made for each of their parts.
struct Printer<'a> {
    aliases: &'a mut Aliases,
    /// Blocks that are complete.
    out: String,
    /// The block that is being made, and the types that must be declared before it.
    block: String,
    declared: String,
    /// The name of an integer type.
    alias: String,
}

impl Printer<'_> {
    fn new(aliases: &mut Aliases) -> Printer<'_> {
        let [out, block, declared, alias] = [const { String::new() }; 4];
        Printer { aliases, out, block, declared, alias }
    }

    fn end(&mut self) {
        if !self.declared.is_empty() {
            self.out += &self.declared;
            self.out.push('\n');
            self.declared.clear();
        }
        self.out += &self.block;
        self.out += "};\n\n";
        self.block.clear();
    }

    fn trace(&mut self, metadata: &Metadata) {
        self.block += "trace {\n\tmajor = 1;\n\tminor = 8;\n";
        if let Some(uuid) = &metadata.uuid {
            let _ = writeln!(self.block, "\tuuid = \"{}\";", uuid_text(uuid));
        }
        let _ = writeln!(self.block, "\tbyte_order = {};", order(metadata.order));
        self.scope("packet.header", metadata.packet_header.as_ref());
        self.end();
        if !metadata.env.is_empty() {
            self.block += "env {\n";
            for (name, value) in &metadata.env {
                let _ = write!(self.block, "\t{} = ", identifiers::field_name(name));
                match value {
                    EnvValue::Int(i) => number(&mut self.block, *i),
                    EnvValue::Str(s) => quote(&mut self.block, s),
                }
                self.block += ";\n";
            }
            self.end();
        }
    }

    fn stream(&mut self, stream: &StreamClass) {
        self.stream_class(stream);
        for event in &stream.events {
            self.event_class(stream.id, event);
        }
    }

    fn stream_class(&mut self, stream: &StreamClass) {
        self.block += "stream {\n\tid = ";
        number(&mut self.block, stream.id);
        self.block += ";\n";
        self.scope("packet.context", stream.packet_context.as_ref());
        self.scope("event.header", stream.event_header.as_ref());
        self.scope("event.context", stream.event_context.as_ref());
        self.end();
    }

    fn event_class(&mut self, stream_id: u64, event: &EventClass) {
        self.block += "event {\n\tname = ";
        quote(&mut self.block, &event.name);
        self.block += ";\n\tid = ";
        number(&mut self.block, event.id);
        self.block += ";\n\tstream_id = ";
        number(&mut self.block, stream_id);
        self.block += ";\n";
        if let Some(level) = event.loglevel {
            let _ = writeln!(self.block, "\tloglevel = {level};");
        }
        self.scope("context", event.context.as_ref());
        self.scope("fields", event.fields.as_ref());
        self.end();
    }

    /// `NAME := struct { … };` of a block.
    fn scope(&mut self, name: &str, ty: Option<&StructType>) {
        if let Some(ty) = ty {
            self.block.push('\t');
            self.block += name;
            self.block += " := ";
            self.structure(ty, 1);
            self.block += ";\n";
        }
    }

    fn structure(&mut self, ty: &StructType, depth: usize) {
        self.block += "struct ";
        self.fields(&ty.fields, depth);
        if ty.align > 1 {
            self.block += " align(";
            number(&mut self.block, ty.align);
            self.block.push(')');
        }
    }

    fn indent(&mut self, depth: usize) {
        self.block.extend(std::iter::repeat_n('\t', depth));
    }

    fn fields(&mut self, fields: &[Field], depth: usize) {
        self.block += "{\n";
        for field in fields {
            self.indent(depth + 1);
            self.specifier(&field.ty, depth + 1);
            self.block.push(' ');
            self.block += &identifiers::field_name(&field.name);
            self.dimensions(&field.ty);
            self.block += ";\n";
        }
        self.indent(depth);
        self.block.push('}');
    }

    /// The part of a declaration before the field's name.
    fn specifier(&mut self, ty: &Type, depth: usize) {
        match ty {
            Type::Int(i) => self.int(i),
            Type::Float(f) => self.float(f),
            Type::Enum(i, labels) => self.enumeration(i, labels),
            Type::Str(Encoding::Utf8) => self.block += "string",
            Type::Str(Encoding::Ascii) => self.block += "string { encoding = ASCII; }",
            Type::Str(Encoding::None) => self.block += "string { encoding = none; }",
            Type::Struct(s) => self.structure(s, depth),
            Type::Variant(tag, options) => {
                self.block += "variant <";
                path(&mut self.block, tag);
                self.block += "> ";
                self.fields(options, depth);
            }
            Type::Array(element, _) | Type::Sequence(element, _) => self.specifier(element, depth),
        }
    }

    /// The part behind it.
    fn dimensions(&mut self, ty: &Type) {
        let element = match ty {
            Type::Array(element, n) => {
                self.block.push('[');
                number(&mut self.block, *n);
                element
            }
            Type::Sequence(element, length) => {
                self.block.push('[');
                path(&mut self.block, length);
                element
            }
            _ => return,
        };
        self.block.push(']');
        self.dimensions(element);
    }

    fn enumeration(&mut self, int: &IntType, labels: &[Label]) {
        self.block += "enum : ";
        self.int(int);
        self.block += " {";
        for (i, label) in labels.iter().enumerate() {
            self.block += if i == 0 { " " } else { ", " };
            quote(&mut self.block, &label.name);
            self.block += " = ";
            number(&mut self.block, label.first);
            if label.last != label.first {
                self.block += " ... ";
                number(&mut self.block, label.last);
            }
        }
        self.block += " }";
    }

    fn float(&mut self, f: &FloatType) {
        let FloatType { exp, mant, align, .. } = f;
        let _ = write!(self.block, "floating_point {{ exp_dig = {exp}; mant_dig = {mant}; align = {align};");
        if f.order != self.aliases.order {
            let _ = write!(self.block, " byte_order = {};", order(f.order));
        }
        self.block += " }";
    }

    /// The name of an integer type, which is declared if it is not yet.
    fn int(&mut self, int: &IntType) {
        self.alias.clear();
        alias_name(&mut self.alias, int, self.aliases.order);
        if !self.aliases.names.contains(&self.alias) {
            let text = integer(int, self.aliases.order);
            let _ = writeln!(self.declared, "typealias {text} := {};", self.alias);
            self.aliases.names.insert(self.alias.clone());
        }
        self.block += &self.alias;
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
fn alias_name(out: &mut String, int: &IntType, trace: ByteOrder) {
    out.push_str(match (int.base, int.signed) {
        (Base::Decimal, false) => "u",
        (Base::Decimal, true) => "i",
        (Base::Hexadecimal, false) => "x",
        (Base::Hexadecimal, true) => "ix",
        (Base::Octal, false) => "o",
        (Base::Octal, true) => "io",
        (Base::Binary, false) => "b",
        (Base::Binary, true) => "ib",
    });
    number(out, int.size);
    if int.align != 8 {
        out.push_str("_a");
        number(out, int.align);
    }
    match int.encoding {
        Encoding::None => {}
        Encoding::Utf8 => out.push_str("_utf8"),
        Encoding::Ascii => out.push_str("_ascii"),
    }
    if int.order != trace {
        out.push('_');
        out.push_str(order(int.order));
    }
    if let Some(clock) = &int.clock {
        out.push_str("_clock_");
        out.push_str(&identifiers::sanitize(clock));
    }
}

fn path(out: &mut String, path: &Path) {
    let scope = identifiers::scope(path).map_or(0, |(_, rest)| path.len() - rest.len());
    for (i, word) in path.iter().enumerate() {
        if i > 0 {
            out.push('.');
        }
        if i < scope {
            out.push_str(word);
        } else {
            out.push_str(&identifiers::field_name(word));
        }
    }
}
