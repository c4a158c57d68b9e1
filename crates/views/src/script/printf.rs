//! Values by a format, as C's printf writes them.

use super::Printer;
use super::value::{self, escaped, string};
use lang::script::format::{As, Piece, Spec};
use lang::script::ir::Site;
use lang::script::types::Type;
use lang::script::value::{Text, Value};

/// Appends what a format makes of its values.
pub(super) fn write(p: &Printer<'_>, site: &Site, args: &[Value], out: &mut Vec<u8>) {
    let mut next = 0;
    for piece in &site.format.pieces {
        match piece {
            Piece::Text(t) => out.extend_from_slice(t),
            Piece::Value(spec) => {
                if let (Some(ty), Some(v)) = (site.args.get(next), args.get(next)) {
                    one(p, spec, ty, v, site.own.get(next) == Some(&true), out);
                }
                next += 1;
            }
        }
    }
}

fn one(p: &Printer<'_>, spec: &Spec, ty: &Type, v: &Value, own: bool, out: &mut Vec<u8>) {
    let mut text = Vec::new();
    match spec.as_ {
        As::Text => characters(p, spec, ty, v, own, &mut text),
        As::Character => escaped(p, &[v.int() as u8], &mut text),
        As::Bytes => value::buffer(v.bytes(), &mut text),
        As::BytesHex => v.bytes().iter().for_each(|b| text.extend_from_slice(format!("\\x{b:02x}").as_bytes())),
        As::BytesBlanks => {
            let bytes: Vec<String> = v.bytes().iter().map(|b| format!("{b:02x}")).collect();
            text = bytes.join(" ").into_bytes();
        }
        As::Pointer if v.int() == 0 => text.extend_from_slice(b"(nil)"),
        As::Pointer | As::Gfp => text = format!("{:#x}", v.int()).into_bytes(),
        _ => return integer(spec, ty, v.int(), out),
    }
    pad(spec, &text, b' ', out);
}

/// A string; at most as many bytes as the precision says.
fn characters(p: &Printer<'_>, spec: &Spec, ty: &Type, v: &Value, own: bool, out: &mut Vec<u8>) {
    let most = spec.precision.map_or(usize::MAX, |n| n as usize);
    match v {
        Value::Text(Text { bytes, cut }) => {
            let shown = &bytes[..bytes.len().min(most)];
            string(p, shown, *cut && shown.len() == bytes.len(), own, out);
        }
        Value::Bytes(_) if ty.is_text() => {
            let chars = v.chars();
            string(p, &chars[..chars.len().min(most)], false, false, out);
        }
        v => value::value(p, ty, v, own, out),
    }
}

/// An integer, as wide as the format says; where it says nothing, as wide as the value's type, and 32 bits at least.
fn integer(spec: &Spec, ty: &Type, v: i64, out: &mut Vec<u8>) {
    let size = match spec.size {
        0 => ty.as_int().map_or(8, |c| c.size).max(4),
        n => n,
    };
    let unused = 64 - 8 * u32::from(size);
    let (signed, bits) = (v << unused >> unused, (v as u64) << unused >> unused);
    let (sign, mut digits) = match spec.as_ {
        As::Signed => {
            let sign = match signed {
                i64::MIN..0 => "-",
                _ if spec.plus => "+",
                _ if spec.blank => " ",
                _ => "",
            };
            (sign, signed.unsigned_abs().to_string())
        }
        As::Unsigned => ("", bits.to_string()),
        As::Octal => (if spec.alternate && bits != 0 { "0" } else { "" }, format!("{bits:o}")),
        As::Hex { upper: true } => (if spec.alternate && bits != 0 { "0X" } else { "" }, format!("{bits:X}")),
        _ => (if spec.alternate && bits != 0 { "0x" } else { "" }, format!("{bits:x}")),
    };
    match spec.precision {
        Some(0) if bits == 0 => digits.clear(),
        Some(n) => digits = "0".repeat((n as usize).saturating_sub(digits.len())) + &digits,
        None if spec.zeros && !spec.left => {
            let have = sign.len() + digits.len();
            digits = "0".repeat((spec.width as usize).saturating_sub(have)) + &digits;
        }
        None => {}
    }
    pad(spec, format!("{sign}{digits}").as_bytes(), b' ', out);
}

fn pad(spec: &Spec, text: &[u8], with: u8, out: &mut Vec<u8>) {
    let missing = (spec.width as usize).saturating_sub(text.len());
    if !spec.left {
        out.resize(out.len() + missing, with);
    }
    out.extend_from_slice(text);
    if spec.left {
        out.resize(out.len() + missing, with);
    }
}
