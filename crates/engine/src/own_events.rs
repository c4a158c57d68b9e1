//! Events that trapline writes itself (`process:…`).

use events::encode::{self, Fixed};
use events::layout::Shape;
use events::schema::Schema;

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
