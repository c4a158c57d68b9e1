//! What a script prints, as JSON: `{"type": …, "data": …}`, a line each, with the peer's blanks.

use super::{Goes, Printer, chart, printf, text, value};
use crate::write::json::{boolean, number, string};
use lang::diag::Span;
use lang::script::ir::{Map, Writing};
use lang::script::maps::{Held, Row};
use lang::script::run::{Failure, Output};
use lang::script::types::{Aggregate, Type};
use lang::script::value::Value;

/// Appends a line, and says where it belongs; a path is appended as it is.
pub fn output(p: &Printer<'_>, output: &Output<'_>, out: &mut Vec<u8>) -> Goes {
    match output {
        Output::Write { writing: Writing::Printf, site, args } => line("printf", out, |out| {
            let mut bytes = Vec::new();
            printf::write(&raw(p), site, args, &mut bytes);
            lossy(&bytes, out);
        }),
        Output::Write { .. } => return text::output(p, output, out),
        Output::Value { ty, value, .. } => line("value", out, |out| of(p, ty, value, out)),
        Output::Map { rows: [], .. } => {}
        Output::Map { map, rows, div } => line(kind(map), out, |out| of_map(p, map, rows, *div, out)),
        Output::Time(t) => line("time", out, |out| lossy(t, out)),
        Output::Join(t) => line("join", out, |out| lossy(t, out)),
    }
    Goes::Out
}

/// Appends `{"type": kind, "data": …}`.
pub fn line(kind: &str, out: &mut Vec<u8>, data: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(b"{\"type\": ");
    string(out, kind);
    out.extend_from_slice(b", \"data\": ");
    data(out);
    out.extend_from_slice(b"}\n");
}

/// An operation of the script has failed there.
pub fn failure((name, text): (&str, &str), what: Failure, at: Span, out: &mut Vec<u8>) {
    let (helper, code) = what.named();
    let (line, column) = lang::diag::line_and_column(name, at, text);
    let members = format!("\"helper\": \"{helper}\", \"retcode\": {code}, \"line\": {line}, \"col\": {column}");
    out.extend_from_slice(format!("{{\"type\": \"helper_error\", {members}}}\n").as_bytes());
}

/// JSON escapes by itself.
fn raw<'p>(p: &Printer<'p>) -> Printer<'p> {
    Printer { program: p.program, source: p.source, names: p.names, raw_strings: true }
}

fn lossy(bytes: &[u8], out: &mut Vec<u8>) {
    string(out, &String::from_utf8_lossy(bytes));
}

fn kind(map: &Map) -> &'static str {
    match map.value {
        Type::Aggregate(Aggregate::Hist { .. } | Aggregate::Lhist { .. } | Aggregate::Llquantize(_)) => "hist",
        Type::Aggregate(Aggregate::Stats { .. } | Aggregate::Avg { .. }) => "stats",
        _ => "map",
    }
}

/// Appends the items, with what opens, separates and closes a list.
fn list<T>(out: &mut Vec<u8>, brackets: [&str; 3], items: &[T], mut each: impl FnMut(&T, &mut Vec<u8>)) {
    let [open, between, close] = brackets;
    out.extend_from_slice(open.as_bytes());
    for (i, item) in items.iter().enumerate() {
        out.extend_from_slice(if i > 0 { between.as_bytes() } else { b"" });
        each(item, out);
    }
    out.extend_from_slice(close.as_bytes());
}

/// Appends `"name": `.
fn member(name: &[u8], out: &mut Vec<u8>) {
    lossy(name, out);
    out.extend_from_slice(b": ");
}

/// `{"@name": value}`, or `{"@name": {"key": value, …}}`
fn of_map(p: &Printer<'_>, map: &Map, rows: &[Row], div: i64, out: &mut Vec<u8>) {
    out.push(b'{');
    member(format!("@{}", map.name).as_bytes(), out);
    match rows {
        [one] if map.key.is_empty() => held(p, &map.value, &one.held, div, out),
        rows => list(out, ["{", ", ", "}"], rows, |r, out| {
            let mut key = Vec::new();
            text::key(&raw(p), map, &r.key, ",", &mut key);
            member(&key, out);
            held(p, &map.value, &r.held, div, out);
        }),
    }
    out.push(b'}');
}

fn held(p: &Printer<'_>, ty: &Type, held: &Held, div: i64, out: &mut Vec<u8>) {
    let divided = |v: i64, signed: bool, out: &mut Vec<u8>| integer(text::divided(v, div, signed), signed, out);
    match (ty, held) {
        (Type::Aggregate(a), Held::Buckets(counts)) => {
            list(out, ["[", ", ", "]"], &chart::buckets(*a, counts, div), |b, out| bucket(*b, out));
        }
        (Type::Aggregate(Aggregate::Stats { signed }), Held::Total { count, total }) => {
            out.extend_from_slice(b"{\"count\": ");
            number(out, *count);
            out.extend_from_slice(b", \"average\": ");
            divided(held.average(*signed), *signed, out);
            out.extend_from_slice(b", \"total\": ");
            divided(*total, *signed, out);
            out.push(b'}');
        }
        (Type::Aggregate(a), held) => {
            let ty = a.value();
            divided(held.read(&ty).int(), ty.as_int().is_some_and(|c| c.signed), out);
        }
        (Type::Int(c), Held::Value(Value::Int(v))) => divided(*v, c.signed, out),
        (ty, Held::Value(v)) => of(p, ty, v, out),
        _ => out.extend_from_slice(b"null"),
    }
}

fn bucket(b: chart::Bucket, out: &mut Vec<u8>) {
    out.push(b'{');
    for (name, v) in [("min", b.min), ("max", b.max)] {
        if let Some(v) = v {
            member(name.as_bytes(), out);
            number(out, v);
            out.extend_from_slice(b", ");
        }
    }
    member(b"count", out);
    number(out, b.count);
    out.push(b'}');
}

fn integer(v: i64, signed: bool, out: &mut Vec<u8>) {
    if signed { number(out, v) } else { number(out, v as u64) }
}

/// A value: a number, a string, a list, or members.
fn of(p: &Printer<'_>, ty: &Type, v: &Value, out: &mut Vec<u8>) {
    match (ty, v) {
        (Type::Tuple(types), Value::Tuple(parts)) => {
            let parts: Vec<_> = types.iter().zip(parts).collect();
            list(out, ["[", ",", "]"], &parts, |(t, v), out| of(p, t, v, out));
        }
        (Type::Record(names, types), Value::Tuple(parts)) => {
            let parts: Vec<_> = names.iter().zip(types.iter().zip(parts)).collect();
            list(out, ["{ ", ", ", " }"], &parts, |(name, (t, v)), out| {
                member(name.as_bytes(), out);
                of(p, t, v, out);
            });
        }
        (Type::Array(one, n), Value::Bytes(b)) if !ty.is_text() => {
            list(out, ["[", ",", "]"], &value::elements(p, one, *n, b), |v, out| of(p, one, v, out));
        }
        (Type::Struct(name), Value::Bytes(b)) => {
            list(out, ["{ ", ", ", " }"], &value::members(p, name, b), |(name, ty, v), out| {
                member(name.as_bytes(), out);
                of(p, ty, v, out);
            });
        }
        (Type::Bool, Value::Int(v)) => boolean(out, *v != 0),
        (Type::Int(c), Value::Int(v)) => integer(*v, c.signed, out),
        (ty, v) => {
            let mut bytes = Vec::new();
            value::value(&raw(p), ty, v, false, &mut bytes);
            lossy(&bytes, out);
        }
    }
}
