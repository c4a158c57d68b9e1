//! Arguments and results of calls, as text and as JSON. Bytes of the target are escaped.

use crate::escape;
use crate::write::json as w;
use events::values::{Signature, Value};

/// Longer texts of a call's values are cut.
const LONGEST: usize = 4096;

/// The arguments of a call, `n=5, s="text"`, without parentheses. None: none were captured.
pub fn arguments(signature: Option<&Signature>, values: &[u8]) -> Option<String> {
    let signature = signature.filter(|_| !values.is_empty())?;
    let mut out = Vec::new();
    for (i, (name, value)) in signature.arguments(values).iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        named(name, value, &mut out);
    }
    Some(finished(out))
}

/// The result of a call; `None` for a call without a result, or with one that was not captured.
pub fn result(signature: Option<&Signature>, values: &[u8]) -> Option<String> {
    let value = signature.filter(|_| !values.is_empty())?.result(values)?;
    if value == Value::Unknown {
        return None;
    }
    let mut out = Vec::new();
    text(&value, &mut out);
    Some(finished(out))
}

fn finished(mut out: Vec<u8>) -> String {
    if out.len() > LONGEST {
        out.truncate(LONGEST);
        out.extend_from_slice(b"...");
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn named(name: &str, value: &Value<'_>, out: &mut Vec<u8>) {
    if !name.is_empty() {
        escape::name(name.as_bytes(), out);
        out.push(b'=');
    }
    text(value, out);
}

fn text(value: &Value<'_>, out: &mut Vec<u8>) {
    let mut put = |text: String| out.extend_from_slice(text.as_bytes());
    match value {
        Value::Signed(n) => put(n.to_string()),
        Value::Unsigned(n) => put(n.to_string()),
        Value::Named(name) => escape::name(name.as_bytes(), out),
        Value::Bool(b) => put(b.to_string()),
        Value::Char(c) => character(*c, out),
        Value::Float(n, 4) => put(float(*n as f32)),
        Value::Float(n, _) => put(float(*n)),
        Value::Address(0) | Value::Null => put("NULL".into()),
        Value::Address(at) => put(format!("{at:#x}")),
        Value::Text(text, more) => {
            out.push(b'"');
            escape::c_string(text, out);
            out.extend_from_slice(if *more { b"\"..." } else { b"\"" });
        }
        Value::Members(members) => match &members[..] {
            // What a reference leads to.
            [("", value)] => {
                out.push(b'&');
                text(value, out);
            }
            members => {
                out.push(b'{');
                for (i, (name, value)) in members.iter().enumerate() {
                    if i > 0 {
                        out.extend_from_slice(b", ");
                    }
                    named(name, value, out);
                }
                out.push(b'}');
            }
        },
        Value::Unknown => out.push(b'?'),
    }
}

/// A number that shows that it has a fraction, or might.
fn float(n: impl std::fmt::Debug) -> String {
    format!("{n:?}")
}

fn character(c: u32, out: &mut Vec<u8>) {
    out.push(b'\'');
    match (u8::try_from(c), char::from_u32(c)) {
        (Ok(b'\''), _) => out.extend_from_slice(b"\\'"),
        (Ok(b'"'), _) => out.push(b'"'),
        (Ok(b), _) => escape::c_string(&[b], out),
        (_, Some(c)) => out.extend_from_slice(c.escape_unicode().to_string().as_bytes()),
        _ => out.extend_from_slice(format!("\\x{c:x}").as_bytes()),
    }
    out.push(b'\'');
}

/// Appends the members `key`, an object with the arguments, and `result`, of a JSON object, as far as they were captured.
pub fn json(signature: Option<&Signature>, key: &str, entry: &[u8], exit: &[u8], out: &mut Vec<u8>) {
    let Some(signature) = signature else { return };
    if !entry.is_empty() && !signature.arguments.is_empty() {
        w::key(out, key);
        out.push(b'{');
        for (i, (name, value)) in signature.arguments(entry).iter().enumerate().filter(|(_, v)| v.1 != Value::Unknown) {
            let name = if name.is_empty() { format!("#{i}") } else { (*name).to_owned() };
            w::key(out, &name);
            of_json(value, out);
        }
        out.push(b'}');
    }
    if let Some(value) = signature.result(exit).filter(|v| *v != Value::Unknown && !exit.is_empty()) {
        w::key(out, "result");
        of_json(&value, out);
    }
}

fn of_json(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Signed(n) => match i64::try_from(*n) {
            Ok(n) => w::number(out, n),
            Err(_) => w::string(out, &n.to_string()),
        },
        Value::Unsigned(n) => match u64::try_from(*n) {
            Ok(n) => w::number(out, n),
            Err(_) => w::string(out, &n.to_string()),
        },
        Value::Named(name) => w::string(out, name),
        Value::Bool(b) => w::boolean(out, *b),
        Value::Char(c) => w::string(out, &char::from_u32(*c).map_or_else(|| format!("\\x{c:x}"), String::from)),
        Value::Float(n, size) if n.is_finite() => {
            let text = if *size == 4 { float(*n as f32) } else { float(*n) };
            out.extend_from_slice(text.as_bytes());
        }
        Value::Float(n, _) => w::string(out, &n.to_string()),
        Value::Address(at) if *at != 0 => w::hex(out, *at),
        Value::Address(_) | Value::Null | Value::Unknown => w::null(out),
        Value::Text(text, more) => w::bytes(out, text, *more),
        Value::Members(members) => match &members[..] {
            [("", value)] => of_json(value, out),
            members => {
                out.push(b'{');
                for (name, value) in members.iter().filter(|(_, v)| *v != Value::Unknown) {
                    w::key(out, name);
                    of_json(value, out);
                }
                out.push(b'}');
            }
        },
    }
}
