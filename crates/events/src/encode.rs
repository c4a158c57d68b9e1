//! Writing events: the fixed part, and one function per shape of tail.
//!
//! A backend appends the fixed part, then one tail per [`crate::layout::TailSpec`], in order. Nothing is formatted here.

use crate::layout::{CAP, ID, Layout, NO_CPU, PID, TID};
use crate::schema::Schema;

/// The values of an event's fixed part.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    /// Moment of emission, ns of the monotonic clock.
    pub time: u64,
    /// Capture bits of the first six arguments, and what is not known of a span.
    pub cap: u16,
    /// Capture bits of the arguments from the seventh on, of classes that have them.
    pub more_caps: u64,
    /// Thread.
    pub tid: u32,
    /// Process.
    pub pid: u32,
    /// Start of the span, ns of the monotonic clock.
    pub start: u64,
    /// Raw result.
    pub ret: i64,
    /// Processor at entry.
    pub cpu_in: u16,
    /// Processor at exit.
    pub cpu_out: u16,
}

impl Default for Fixed {
    fn default() -> Self {
        Fixed { time: 0, cap: 0, more_caps: 0, tid: 0, pid: 0, start: 0, ret: 0, cpu_in: NO_CPU, cpu_out: NO_CPU }
    }
}

/// Appends the fixed part of an event.
pub fn fixed(out: &mut Vec<u8>, schema: &Schema, layout: &Layout, f: &Fixed, args: &[u64]) {
    let at = out.len();
    out.resize(at + layout.fixed, 0);
    let b = &mut out[at..];
    b[..8].copy_from_slice(&f.time.to_le_bytes());
    b[ID..ID + 2].copy_from_slice(&schema.id.to_le_bytes());
    b[CAP..CAP + 2].copy_from_slice(&f.cap.to_le_bytes());
    b[TID..TID + 4].copy_from_slice(&f.tid.to_le_bytes());
    b[PID..PID + 4].copy_from_slice(&f.pid.to_le_bytes());
    if let Some(at) = layout.more_caps {
        b[at..at + 8].copy_from_slice(&f.more_caps.to_le_bytes());
    }
    if schema.is_span() {
        b[layout.start..layout.start + 8].copy_from_slice(&f.start.to_le_bytes());
        b[layout.ret..layout.ret + 8].copy_from_slice(&f.ret.to_le_bytes());
        b[layout.cpu.0..layout.cpu.0 + 2].copy_from_slice(&f.cpu_in.to_le_bytes());
        b[layout.cpu.1..layout.cpu.1 + 2].copy_from_slice(&f.cpu_out.to_le_bytes());
    }
    for (i, _) in schema.args.iter().enumerate() {
        let (off, width) = layout.args[i];
        let v = args.get(i).copied().unwrap_or(0).to_le_bytes();
        b[usize::from(off)..usize::from(off) + usize::from(width)].copy_from_slice(&v[..usize::from(width)]);
    }
}

/// Appends a string tail. A NUL inside `s` ends it.
pub fn str_tail(out: &mut Vec<u8>, s: &[u8]) {
    let n = s.iter().position(|&b| b == 0).unwrap_or(s.len());
    out.extend_from_slice(&s[..n]);
    out.push(0);
}

/// Appends a byte tail; what exceeds 65535 bytes is cut.
pub fn bytes_tail(out: &mut Vec<u8>, b: &[u8]) {
    let n = b.len().min(usize::from(u16::MAX));
    out.extend_from_slice(&(n as u16).to_le_bytes());
    out.extend_from_slice(&b[..n]);
}

/// Appends a tail of no or one element.
pub fn one_tail(out: &mut Vec<u8>, elem: Option<&[u8]>) {
    out.push(u8::from(elem.is_some()));
    out.extend_from_slice(elem.unwrap_or_default());
}

/// Appends a tail of whole elements of `size` bytes each.
pub fn many_tail(out: &mut Vec<u8>, bytes: &[u8], size: usize) {
    let n = (bytes.len() / size.max(1)).min(usize::from(u16::MAX));
    out.extend_from_slice(&(n as u16).to_le_bytes());
    out.extend_from_slice(&bytes[..n * size]);
}

/// Appends the empty tail of a shape.
pub fn empty_tail(out: &mut Vec<u8>, shape: crate::layout::Shape) {
    use crate::layout::Shape;
    let n = match shape {
        Shape::Str | Shape::One(_) => 1,
        Shape::Bytes | Shape::Many(_) | Shape::Iov | Shape::Msg => 2,
        Shape::Strv => 4,
    };
    out.resize(out.len() + n, 0);
}
