//! Events of any trace as text: a line as babeltrace2 writes it, or an object of JSON.
//!
//! Whatever a trace contains, no control character of it reaches the output.

use std::fmt::Write;

use crate::generic::{Event, Item, Value};
use crate::model::{Base, Metadata};

/// Fields of a packet's context that are not about the event.
const OF_THE_PACKET: &[&str] =
    &["timestamp_begin", "timestamp_end", "content_size", "packet_size", "events_discarded", "packet_seq_num"];

/// How times are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TimeFormat {
    /// `12:34:56.123456789`; the seconds east of Greenwich.
    TimeOfDay(i32),
    /// Seconds since the clock's zero, nine digits after the point.
    #[default]
    Seconds,
}

/// Writes lines. Remembers the time of the line before.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    format: TimeFormat,
    last: Option<i64>,
}

impl Lines {
    /// With times in that format.
    pub fn new(format: TimeFormat) -> Lines {
        Lines { format, last: None }
    }

    /// Appends `[time] (+delta) host name: { context }, { fields }` and a newline.
    pub fn event(&mut self, out: &mut String, metadata: &Metadata, event: &Event) {
        if let Some(time) = event.time {
            self.time(out, time);
            match self.last.map(|last| time.saturating_sub(last)) {
                Some(delta) => {
                    let sign = if delta < 0 { '-' } else { '+' };
                    let delta = delta.unsigned_abs();
                    let _ = write!(out, " ({sign}{}.{:09}) ", delta / SECOND, delta % SECOND);
                }
                None => out.push_str(" (+?.?????????) "),
            }
            self.last = Some(time);
        }
        origin(out, metadata);
        escape(out, event.class.name.as_bytes(), false);
        out.push(':');
        let mut first = true;
        let mut part = |out: &mut String, value: Option<&Value>, skip: &[&str]| {
            let Some(value) = value else { return };
            out.push_str(if first { " " } else { ", " });
            first = false;
            structure(out, value, skip);
        };
        part(
            out,
            event.packet.as_deref().filter(|p| p.fields().any(|(n, _)| !OF_THE_PACKET.contains(&n))),
            OF_THE_PACKET,
        );
        part(out, event.stream_context.as_ref(), &[]);
        part(out, event.context.as_ref(), &[]);
        part(out, event.fields.as_ref(), &[]);
        out.push('\n');
    }

    /// Appends a line for what is not an event: what is missing, and where.
    pub fn notice(&self, out: &mut String, item: &Item) {
        let _ = match item {
            Item::Event(_) => return,
            Item::Discarded { stream, count, .. } => write!(out, "{count} events were discarded in stream {stream}"),
            Item::LostPackets { stream, count, .. } => write!(out, "{count} packets are missing in stream {stream}"),
            Item::IncompleteEnd { file, offset, .. } => {
                out.push_str("the end is missing: ");
                escape(out, file.as_os_str().as_encoded_bytes(), false);
                write!(out, " is cut in the packet at byte {offset}")
            }
        };
        if let Item::Discarded { from, to, .. } | Item::LostPackets { from, to, .. } = item {
            for (word, time) in [(" after ", from), (" until ", to)] {
                if let Some(time) = time {
                    out.push_str(word);
                    self.time(out, *time);
                }
            }
        }
        out.push('\n');
    }

    fn time(&self, out: &mut String, time: i64) {
        let _ = match self.format {
            TimeFormat::TimeOfDay(east) => {
                let seconds = time.div_euclid(SECOND as i64).saturating_add(east.into()).rem_euclid(86400);
                let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
                write!(out, "[{h:02}:{m:02}:{s:02}.{:09}]", time.rem_euclid(SECOND as i64))
            }
            TimeFormat::Seconds => {
                let sign = if time < 0 { "-" } else { "" };
                let time = time.unsigned_abs();
                write!(out, "[{sign}{}.{:09}]", time / SECOND, time % SECOND)
            }
        };
    }
}

const SECOND: u64 = 1_000_000_000;

/// `host:program:(pid) `, as far as the environment has them.
fn origin(out: &mut String, metadata: &Metadata) {
    let before = out.len();
    for name in ["hostname", "procname"] {
        if let Some(text) = metadata.env_str(name) {
            if out.len() > before {
                out.push(':');
            }
            escape(out, text.as_bytes(), false);
        }
    }
    if let Some(pid) = metadata.env_int("vpid") {
        let _ = write!(out, "{}({pid})", if out.len() > before { ":" } else { "" });
    }
    if out.len() > before {
        out.push(' ');
    }
}

/// Appends bytes as text. What is not printable is escaped as in C, and so are quotes and backslashes in a `quoted` text.
fn escape(out: &mut String, bytes: &[u8], quoted: bool) {
    let plain = |b: &u8| (0x20..0x7f).contains(b) && !(quoted && matches!(b, b'"' | b'\\'));
    if let (true, Ok(text)) = (bytes.iter().all(plain), std::str::from_utf8(bytes)) {
        return out.push_str(text);
    }
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                '\r' => out.push_str("\\r"),
                '"' | '\\' if quoted => {
                    out.push('\\');
                    out.push(c);
                }
                _ if c.is_ascii_control() => {
                    let _ = write!(out, "\\x{:02x}", u32::from(c));
                }
                _ if invisible(c) => {
                    let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
                }
                _ => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
}

/// Characters that a terminal obeys instead of showing them.
fn invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn structure(out: &mut String, value: &Value, skip: &[&str]) {
    out.push('{');
    let mut first = true;
    for (name, value) in value.fields().filter(|(name, _)| !skip.contains(name)) {
        out.push_str(if first { " " } else { ", " });
        first = false;
        escape(out, name.as_bytes(), false);
        out.push_str(" = ");
        text(out, value);
    }
    out.push_str(" }");
}

/// Appends a value as text.
pub fn text(out: &mut String, value: &Value) {
    let _ = match value {
        Value::Unsigned(n, base) => return number(out, *n, *base),
        Value::Signed(n, Base::Decimal, _) => return out.push_str(itoa::Buffer::new().format(*n)),
        Value::Signed(n, base, size) => {
            return number(out, *n as u64 & (u64::MAX >> (64 - (*size).clamp(1, 64))), *base);
        }
        Value::Float(f) => write!(out, "{f}"),
        Value::Enum(n, labels) => return enumeration(out, *n, labels),
        Value::Text(bytes) => {
            out.push('"');
            escape(out, bytes, true);
            out.push('"');
            return;
        }
        Value::Bytes(bytes, base) => {
            return elements(out, bytes.iter(), |out, byte| number(out, u64::from(*byte), *base));
        }
        Value::Array(values) => return elements(out, values.iter(), text),
        Value::Struct(..) => return structure(out, value, &[]),
        Value::Variant(_, _, value) => {
            out.push_str("{ ");
            text(out, value);
            out.push_str(" }");
            return;
        }
    };
}

fn number(out: &mut String, n: u64, base: Base) {
    let _ = match base {
        Base::Binary => write!(out, "0b{n:b}"),
        Base::Octal => write!(out, "0{n:o}"),
        Base::Decimal => return out.push_str(itoa::Buffer::new().format(n)),
        Base::Hexadecimal => write!(out, "0x{n:X}"),
    };
}

fn enumeration(out: &mut String, n: i128, labels: &[std::sync::Arc<str>]) {
    out.push_str("( ");
    for (i, label) in labels.iter().enumerate() {
        out.push_str(if i == 0 { "\"" } else { ", \"" });
        escape(out, label.as_bytes(), true);
        out.push('"');
    }
    if labels.is_empty() {
        out.push_str("<unknown>");
    }
    let _ = write!(out, " : container = {n} )");
}

fn elements<T>(out: &mut String, all: impl Iterator<Item = T>, mut one: impl FnMut(&mut String, T)) {
    out.push('[');
    for (i, element) in all.enumerate() {
        let _ = write!(out, "{} [{i}] = ", if i == 0 { "" } else { "," });
        one(out, element);
    }
    out.push_str(" ]");
}

/// Appends an event as an object of JSON, without a newline: `time` in nanoseconds, `name`, `packet`, `context` and `fields`.
/// Text that is not UTF-8 and arrays of bytes are `{"bytes":"00ff"}`, enumerations `{"value":1,"labels":["A"]}`, variants an
/// object with the chosen option, numbers that JSON cannot represent are strings.
pub fn json(out: &mut String, metadata: &Metadata, event: &Event) {
    out.push('{');
    if let Some(time) = event.time {
        let _ = write!(out, "\"time\":{time},");
    }
    if let Some(host) = metadata.env_str("hostname") {
        out.push_str("\"host\":");
        json_string(out, host);
        out.push(',');
    }
    out.push_str("\"name\":");
    json_string(out, &event.class.name);
    if let Some(level) = event.class.loglevel {
        let _ = write!(out, ",\"loglevel\":{level}");
    }
    let parts = [
        ("packet", event.packet.as_deref()),
        ("stream_context", event.stream_context.as_ref()),
        ("context", event.context.as_ref()),
        ("fields", event.fields.as_ref()),
    ];
    for (name, value) in parts {
        if let Some(value) = value {
            let _ = write!(out, ",\"{name}\":");
            json_value(out, value);
        }
    }
    out.push('}');
}

/// Appends a value as JSON.
pub fn json_value(out: &mut String, value: &Value) {
    let _ = match value {
        Value::Unsigned(n, _) => write!(out, "{n}"),
        Value::Signed(n, ..) => write!(out, "{n}"),
        Value::Float(f) if f.is_finite() => write!(out, "{f}"),
        Value::Float(f) => write!(out, "\"{f}\""),
        Value::Enum(n, labels) => {
            let _ = write!(out, "{{\"value\":{n},\"labels\":");
            json_list(out, labels.iter(), |out, label| json_string(out, label));
            out.push('}');
            return;
        }
        Value::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => return json_string(out, text),
            Err(_) => return json_bytes(out, bytes),
        },
        Value::Bytes(bytes, _) => return json_bytes(out, bytes),
        Value::Array(values) => return json_list(out, values.iter(), json_value),
        Value::Struct(..) => return json_fields(out, value.fields()),
        Value::Variant(names, option, value) => {
            return json_fields(out, names.get(*option).map(|n| (n.as_str(), &**value)).into_iter());
        }
    };
}

fn json_list<T>(out: &mut String, all: impl Iterator<Item = T>, mut one: impl FnMut(&mut String, T)) {
    out.push('[');
    for (i, element) in all.enumerate() {
        if i > 0 {
            out.push(',');
        }
        one(out, element);
    }
    out.push(']');
}

fn json_fields<'a>(out: &mut String, fields: impl Iterator<Item = (&'a str, &'a Value)>) {
    out.push('{');
    for (i, (name, value)) in fields.enumerate() {
        if i > 0 {
            out.push(',');
        }
        json_string(out, name);
        out.push(':');
        json_value(out, value);
    }
    out.push('}');
}

fn json_bytes(out: &mut String, bytes: &[u8]) {
    out.push_str("{\"bytes\":\"");
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
    out.push_str("\"}");
}

fn json_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            _ if invisible(c) => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}
