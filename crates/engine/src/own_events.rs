//! Events that trapline writes itself (`process:…`).

use events::encode::{self, Fixed};
use events::layout::Shape;
use events::schema::Schema;

/// A stack to be reported.
pub struct Stack<'s> {
    /// Its id, its kind (0: of the process), why it ends, and how many frames are guessed.
    pub numbers: [u64; 4],
    /// The frames, innermost first, with the bits of [`unwind::Frame`].
    pub frames: &'s [u64],
}

/// A `process:` event with tails for its first arguments.
pub fn process(schema: &'static Schema, time: u64, (pid, tid): (u32, u32), args: &[u64], tails: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    let Some(layout) = events::registry::layout(schema.id) else { return out };
    let cap = (0..tails.len()).fold(0, |cap, i| cap | 1 << (2 * i));
    encode::fixed(&mut out, schema, layout, &Fixed { time, cap, tid, pid, ..Fixed::default() }, args);
    for (spec, tail) in layout.tails.iter().zip(tails) {
        match spec.shape {
            Shape::Str => encode::str_tail(&mut out, tail),
            _ => encode::bytes_tail(&mut out, tail),
        }
    }
    out
}

/// Appends the `process:stack` event that reports a stack.
pub fn stack(time: u64, (pid, tid): (u32, u32), report: &Stack<'_>, out: &mut Vec<u8>) {
    let schema = &events::generated::P_STACK;
    let Some(layout) = events::registry::layout(schema.id) else { return };
    let [id, kind, ended, guessed] = report.numbers;
    let f = Fixed { time, cap: 1, tid, pid, ..Fixed::default() };
    encode::fixed(out, schema, layout, &f, &[1, id, kind, ended, guessed]);
    let frames: Vec<u8> = report.frames.iter().flat_map(|f| f.to_le_bytes()).collect();
    encode::many_tail(out, &frames, 8);
}
