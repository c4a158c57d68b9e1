//! What a script prints, as text.

use super::{Goes, Printer, chart, printf, value};
use lang::diag::{Span, place};
use lang::script::ir::{Map, Writing};
use lang::script::maps::{Held, Row};
use lang::script::run::{Failure, Output};
use lang::script::types::{Aggregate, Type};
use lang::script::value::Value;

/// An operation of the script has failed there.
pub fn failure((name, text): (&str, &str), what: Failure, at: Span, out: &mut Vec<u8>) {
    let (helper, code) = what.named();
    let why = match std::io::Error::from_raw_os_error(-code).to_string().split_once(" (") {
        Some((why, _)) if code < 0 => format!("{why} ({code})"),
        _ => code.to_string(),
    };
    out.extend_from_slice(format!("{}: WARNING: Failed to {helper}: {why}\n", place(name, at, text)).as_bytes());
}

/// Appends it, and says where it belongs.
pub fn output(p: &Printer<'_>, output: &Output<'_>, out: &mut Vec<u8>) -> Goes {
    match output {
        Output::Write { writing, site, args } => {
            let level = match writing {
                Writing::Printf => None,
                Writing::Cat => {
                    printf::write(p, site, args, out);
                    return Goes::File;
                }
                Writing::System => {
                    printf::write(p, site, args, out);
                    return Goes::Command;
                }
                Writing::Error => Some("ERROR"),
                Writing::Warning => Some("WARNING"),
            };
            if let Some(level) = level {
                out.extend_from_slice(format!("{}: {level}: ", place(p.source.0, site.span, p.source.1)).as_bytes());
            }
            printf::write(p, site, args, out);
            if level.is_some() {
                out.push(b'\n');
                return Goes::Err;
            }
        }
        Output::Value { ty, value: v, own } => {
            value::value(p, ty, v, *own, out);
            out.push(b'\n');
        }
        Output::Map { map, rows, div } => rows.iter().for_each(|r| row(p, map, r, *div, out)),
        Output::Time(text) | Output::Join(text) => {
            let join = matches!(output, Output::Join(_));
            if join {
                value::escaped(p, text, out)
            } else {
                out.extend_from_slice(text)
            }
            if join {
                out.push(b'\n');
            }
        }
    }
    Goes::Out
}

/// `@name[key]: value`
fn row(p: &Printer<'_>, map: &Map, row: &Row, div: i64, out: &mut Vec<u8>) {
    out.push(b'@');
    out.extend_from_slice(map.name.as_bytes());
    if !row.key.is_empty() {
        out.push(b'[');
        key(p, map, &row.key, ", ", out);
        out.push(b']');
    }
    out.push(b':');
    match (&row.held, &map.value) {
        (Held::Buckets(counts), Type::Aggregate(a)) => {
            out.push(b'\n');
            chart::lines(*a, counts, div, out);
        }
        (held, ty) => {
            out.push(b' ');
            self::held(p, ty, held, div, out);
        }
    }
    out.push(b'\n');
}

/// The parts of a key: without parentheses around them.
pub(super) fn key(p: &Printer<'_>, map: &Map, parts: &[Value], between: &str, out: &mut Vec<u8>) {
    for (i, (v, ty)) in parts.iter().zip(&map.key).enumerate() {
        out.extend_from_slice(if i > 0 { between.as_bytes() } else { b"" });
        value::value(p, ty, v, false, out);
    }
}

/// What a map holds at a key, histograms aside.
fn held(p: &Printer<'_>, ty: &Type, held: &Held, div: i64, out: &mut Vec<u8>) {
    match (ty, held) {
        (Type::Aggregate(Aggregate::Stats { signed }), Held::Total { count, total }) => {
            let number = |v: i64| integer(divided(v, div, *signed), *signed);
            let (average, total) = (number(held.average(*signed)), number(*total));
            let text = format!("{{ .count = {count}, .average = {average}, .total = {total} }}");
            out.extend_from_slice(text.as_bytes());
        }
        (Type::Aggregate(a), held) => {
            let ty = a.value();
            let signed = ty.as_int().is_some_and(|c| c.signed);
            let v = held.read(&ty).int();
            out.extend_from_slice(integer(divided(v, div, signed), signed).as_bytes());
        }
        (Type::Int(c), Held::Value(Value::Int(v))) => {
            out.extend_from_slice(integer(divided(*v, div, c.signed), c.signed).as_bytes());
        }
        (ty, Held::Value(v)) => value::value(p, ty, v, false, out),
        _ => {}
    }
}

/// A value of a map, divided.
pub(super) fn divided(v: i64, div: i64, signed: bool) -> i64 {
    match div {
        0 | 1 => v,
        div if signed => v.wrapping_div(div),
        div => (v as u64 / div as u64) as i64,
    }
}

fn integer(v: i64, signed: bool) -> String {
    if signed { v.to_string() } else { (v as u64).to_string() }
}
