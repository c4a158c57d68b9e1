//! Records as events.

use super::{WITH_VALUES, begun, entry, exit, lost};
use crate::encode::{self, Fixed};
use crate::layout::{self, Layout};
use crate::schema::Schema;

/// Makes the events of records.
#[derive(Debug)]
pub struct Encoder {
    /// Events of an entry and of an exit, without a name.
    events: [Vec<u8>; 2],
    /// Where the number of the function is in each.
    number: [usize; 2],
}

impl Default for Encoder {
    fn default() -> Encoder {
        let of = |schema: &'static Schema| {
            let (mut event, layout) = (Vec::new(), Layout::of(schema));
            // The name is there as a whole.
            encode::fixed(&mut event, schema, &layout, &Fixed { cap: 1, ..Fixed::default() }, &[1, 0]);
            (event, usize::from(layout.args[1].0))
        };
        let [(entry, a), (exit, b)] = [entry(), exit()].map(of);
        Encoder { events: [entry, exit], number: [a, b] }
    }
}

impl Encoder {
    /// Writes the event of a record of thread `tid` of `pid` into `out`, which is cleared. `name` is the function's name.
    pub fn record(&self, out: &mut Vec<u8>, time: u64, (pid, tid): (u32, u32), word: u32, name: &[u8]) {
        let which = (word & 1) as usize;
        out.clear();
        out.extend_from_slice(&self.events[which]);
        let mut put = |at: usize, bytes: &[u8]| {
            if let Some(to) = out.get_mut(at..at + bytes.len()) {
                to.copy_from_slice(bytes);
            }
        };
        put(0, &time.to_le_bytes());
        put(layout::TID, &tid.to_le_bytes());
        put(layout::PID, &pid.to_le_bytes());
        put(self.number[which], &u64::from(word >> 1).to_le_bytes());
        out.extend_from_slice(name);
        out.push(0);
    }

    /// Writes the event of a record with captured values into `out`, which is cleared. Without values it has the bytes of [`Encoder::record`].
    #[allow(clippy::too_many_arguments)]
    pub fn record_with(
        &self,
        out: &mut Vec<u8>,
        time: u64,
        (pid, tid): (u32, u32),
        word: u32,
        name: &[u8],
        values: &[u8],
    ) {
        let Some(classes) = WITH_VALUES.as_ref().filter(|_| !values.is_empty()) else {
            return self.record(out, time, (pid, tid), word, name);
        };
        let schema = classes[(word & 1) as usize];
        out.clear();
        let fixed = Fixed { time, tid, pid, cap: 0b1_0001, ..Fixed::default() };
        encode::fixed(out, schema, &Layout::of(schema), &fixed, &[1, u64::from(word >> 1), 1]);
        encode::str_tail(out, name);
        encode::bytes_tail(out, values);
    }

    /// Writes the event that stands where `records` records are missing into `out`, which is cleared.
    pub fn lost(&self, out: &mut Vec<u8>, time: u64, who: (u32, u32), records: u64) {
        one_number(lost(), out, time, who, records);
    }

    /// Writes the event that stands where another thread or program begins into `out`, which is cleared.
    pub fn begun(&self, out: &mut Vec<u8>, time: u64, who: (u32, u32), number: u64) {
        one_number(begun(), out, time, who, number);
    }
}

fn one_number(schema: &'static Schema, out: &mut Vec<u8>, time: u64, (pid, tid): (u32, u32), number: u64) {
    out.clear();
    encode::fixed(out, schema, &Layout::of(schema), &Fixed { time, tid, pid, ..Fixed::default() }, &[number]);
}
