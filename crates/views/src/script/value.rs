//! A value of a type, as text.

use super::{Frame, Printer};
use lang::script::types::{Space, StackMode, Type};
use lang::script::value::{Text, Value};

/// Elements of an array that are shown.
const MAX_ELEMENTS: usize = 4096;

/// Appends a value. `own` is of the script itself, and is not escaped.
pub(super) fn value(p: &Printer<'_>, ty: &Type, v: &Value, own: bool, out: &mut Vec<u8>) {
    match (ty, v) {
        (Type::Tuple(types), Value::Tuple(list)) => {
            out.push(b'(');
            for (i, (t, v)) in types.iter().zip(list).enumerate() {
                out.extend_from_slice(if i > 0 { b", " } else { b"" });
                value(p, t, v, own, out);
            }
            out.push(b')');
        }
        (Type::Record(names, types), Value::Tuple(list)) => {
            for (i, (name, (t, v))) in names.iter().zip(types.iter().zip(list)).enumerate() {
                out.extend_from_slice(if i > 0 { b", ." } else { b"{ ." });
                out.extend_from_slice(name.as_bytes());
                out.extend_from_slice(b" = ");
                value(p, t, v, own, out);
            }
            out.extend_from_slice(b" }");
        }
        (Type::Buffer(_), Value::Bytes(b)) => buffer(b, out),
        (ty, Value::Bytes(b)) if ty.is_text() => string(p, v.chars(), false, own && b.is_empty(), out),
        (Type::Array(of, n), Value::Bytes(b)) => array(p, of, *n, b, out),
        (Type::Struct(name), Value::Bytes(b)) => structure(p, name, b, out),
        (_, Value::Text(Text { bytes, cut })) => string(p, bytes, *cut, own, out),
        (_, Value::Bytes(b)) => buffer(b, out),
        (_, Value::Tuple(_)) => {}
        (Type::Stack(space, mode, limit), Value::Of { word, pid }) => {
            let mut frames = p.names.stack(*space, *word, *pid);
            frames.truncate(*limit as usize);
            stack(&frames, *mode, out);
        }
        (ty, Value::Of { word, pid }) => number(p, ty, *word as i64, *pid, out),
        (ty, Value::Int(n) | Value::At(n, _)) => number(p, ty, *n, 0, out),
    }
}

/// Appends a number, or the name that stands for it.
fn number(p: &Printer<'_>, ty: &Type, n: i64, pid: u32, out: &mut Vec<u8>) {
    let text = match ty {
        Type::Bool => if n != 0 { "true" } else { "false" }.into(),
        Type::Pointer(..) => format!("{n:#x}"),
        Type::Symbol(space) => symbol(p, *space, n as u64, pid),
        Type::User => p.names.user(n as u32).unwrap_or_else(|| (n as u32).to_string()),
        Type::Enum(name) => enumerated(p, name, n),
        ty if ty.as_int().is_some_and(|c| !c.signed) => (n as u64).to_string(),
        _ => n.to_string(),
    };
    escaped(p, text.as_bytes(), out);
}

fn symbol(p: &Printer<'_>, space: Space, address: u64, pid: u32) -> String {
    p.names.symbol(space, address, pid).unwrap_or_else(|| format!("{address:#x}"))
}

/// The name of an enumeration's value; else the number.
pub(super) fn enumerated(p: &Printer<'_>, name: &str, n: i64) -> String {
    let values = p.program.declarations.enums.get(name);
    let found = values.and_then(|all| all.iter().find(|v| v.1 == n));
    found.map_or_else(|| n.to_string(), |v| v.0.clone())
}

/// Appends a string, and what follows one that was cut.
pub(super) fn string(p: &Printer<'_>, bytes: &[u8], cut: bool, own: bool, out: &mut Vec<u8>) {
    match own {
        true => out.extend_from_slice(bytes),
        false => escaped(p, bytes, out),
    }
    if cut {
        out.extend_from_slice(p.program.config.str_trunc_trailer.as_bytes());
    }
}

/// Appends what comes from the traced system: control characters, and bytes that are no UTF-8, as C writes them.
pub(super) fn escaped(p: &Printer<'_>, bytes: &[u8], out: &mut Vec<u8>) {
    if p.raw_strings {
        return out.extend_from_slice(bytes);
    }
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => out.extend_from_slice(b"\\n"),
                '\t' => out.extend_from_slice(b"\\t"),
                '\r' => out.extend_from_slice(b"\\r"),
                c if c.is_control() || is_direction(c) => {
                    c.encode_utf8(&mut [0; 4]).bytes().for_each(|b| octal(b, out));
                }
                c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        chunk.invalid().iter().for_each(|b| octal(*b, out));
    }
}

/// Characters that turn the direction of what follows, so that a line shows something else than it has.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn octal(b: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'\\', b'0' + (b >> 6), b'0' + (b >> 3 & 7), b'0' + (b & 7)]);
}

/// Appends bytes: printable ones as they are, others as `\x00`.
pub(super) fn buffer(bytes: &[u8], out: &mut Vec<u8>) {
    for b in bytes {
        match b {
            32..=126 => out.push(*b),
            b => out.extend_from_slice(format!("\\x{b:02x}").as_bytes()),
        }
    }
}

/// The elements of an array.
pub(super) fn elements(p: &Printer<'_>, of: &Type, n: u64, bytes: &[u8]) -> Vec<Value> {
    let size = p.program.declarations.size(of).map_or(1, |s| s.0.max(1)) as usize;
    let n = usize::try_from(n).unwrap_or(usize::MAX).min(MAX_ELEMENTS);
    bytes.chunks(size).take(n).map(|element| Value::read(element, of)).collect()
}

/// The members of a structure: names, types and values.
pub(super) fn members<'p>(p: &'p Printer<'_>, name: &str, bytes: &[u8]) -> Vec<(&'p str, &'p Type, Value)> {
    let all = p.program.declarations.structs.get(name).into_iter().flat_map(|s| &s.members);
    all.map(|m| {
        let size = p.program.declarations.size(&m.ty).map_or(0, |s| s.0) as usize;
        let start = m.offset as usize;
        let piece = bytes.get(start..(start + size).min(bytes.len())).unwrap_or_default();
        let value = match m.bits {
            None => Value::read(piece, &m.ty),
            Some((shift, width)) => Value::Int(bitfield(bytes, start, shift, width, &m.ty)),
        };
        (m.name.as_str(), &m.ty, value)
    })
    .collect()
}

fn array(p: &Printer<'_>, of: &Type, n: u64, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'[');
    for (i, element) in elements(p, of, n, bytes).iter().enumerate() {
        out.extend_from_slice(if i > 0 { b"," } else { b"" });
        value(p, of, element, false, out);
    }
    out.push(b']');
}

/// Appends `{ .a = 1, .b = 2 }`.
fn structure(p: &Printer<'_>, name: &str, bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"{ ");
    for (i, (name, ty, v)) in members(p, name, bytes).iter().enumerate() {
        out.extend_from_slice(if i > 0 { b", ." } else { b"." });
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b" = ");
        value(p, ty, v, false, out);
    }
    out.extend_from_slice(b" }");
}

fn bitfield(bytes: &[u8], start: usize, shift: u8, width: u8, ty: &Type) -> i64 {
    let word = Value::read(bytes.get(start..).unwrap_or_default(), &Type::UINT).int() as u64;
    let unused = 64 - u32::from(width).clamp(1, 64);
    let v = word >> shift << unused;
    if ty.as_int().is_some_and(|c| c.signed) { v as i64 >> unused } else { (v >> unused) as i64 }
}

/// Appends a line for each frame, and one before them.
fn stack(frames: &[Frame], mode: StackMode, out: &mut Vec<u8>) {
    out.push(b'\n');
    for f in frames {
        let name = match &f.name {
            Some(name) => format!("{name}+{}", f.offset),
            None => format!("{:#x}", f.address),
        };
        let line = match mode {
            StackMode::Bpftrace => format!("        {name}\n"),
            StackMode::Perf => format!("        {:x} {name}\n", f.address),
            StackMode::Raw => format!("        {:x}\n", f.address),
        };
        out.extend_from_slice(line.as_bytes());
    }
}
