//! What is added up of calls in the process, for which there are no records.

use super::class;
use crate::dynamic::{self, Field};
use crate::encode::{self, Fixed};
use crate::event::Event;
use crate::layout::Layout;
use crate::schema::Schema;
use crate::types::{Fmt, Int, Len, LenFrom, Type};
use std::sync::LazyLock;

/// Buckets of [`Sums`].
pub const BUCKETS: usize = 64;

/// What was added up of calls of a function in a thread, for which there are no records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sums {
    /// The number of the function.
    pub number: u32,
    /// Calls that have begun.
    pub calls: u64,
    /// Calls that have ended, where durations are measured, as all that follows.
    pub ended: u64,
    /// Their durations, added up.
    pub total: u64,
    /// The longest one, where there is one.
    pub most: Option<u64>,
    /// The shortest one.
    pub least: Option<u64>,
    /// Calls by duration: bucket 0 is a duration of 0, bucket n one from 2^(n-1) to before 2^n.
    pub buckets: [u64; BUCKETS],
}

impl Default for Sums {
    fn default() -> Sums {
        Sums { number: 0, calls: 0, ended: 0, total: 0, most: None, least: None, buckets: [0; BUCKETS] }
    }
}

/// Fields of events of [`Sums`], behind `buckets`.
const NUMBERS: [&str; 7] = ["number", "calls", "ended", "total", "extremes", "most", "least"];

impl Sums {
    /// Their event, of a thread `tid` of `pid`.
    pub fn event(&self, time: u64, (pid, tid): (u32, u32)) -> Vec<u8> {
        let (schema, mut out) = (sums(), Vec::new());
        let extremes = u64::from(self.most.is_some()) | u64::from(self.least.is_some()) << 1;
        let (most, least) = (self.most.unwrap_or(0), self.least.unwrap_or(0));
        let numbers = [0, self.number.into(), self.calls, self.ended, self.total, extremes, most, least];
        encode::fixed(
            &mut out,
            schema,
            &Layout::of(schema),
            &Fixed { time, cap: 1, tid, pid, ..Fixed::default() },
            &numbers,
        );
        let used = self.buckets.iter().rposition(|n| *n > 0).map_or(0, |last| last + 1);
        encode::bytes_tail(
            &mut out,
            self.buckets[..used].iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<_>>().as_slice(),
        );
        out
    }

    /// Those of an event.
    pub fn of(ev: &Event<'_>) -> Sums {
        let [number, calls, ended, total, extremes, most, least] = NUMBERS.map(|name| ev.value_of(name));
        let mut all = Sums { number: number as u32, calls, ended, total, ..Sums::default() };
        all.most = (extremes & 1 != 0).then_some(most);
        all.least = (extremes & 2 != 0).then_some(least);
        let words = ev.bytes_of("buckets").as_chunks::<8>().0;
        all.buckets.iter_mut().zip(words).for_each(|(n, word)| *n = u64::from_le_bytes(*word));
        all
    }
}

/// The class of events of [`Sums`]. It is in no trace, and no view shows it.
pub fn sums() -> &'static Schema {
    class(&SUMS)
}

static SUMS: LazyLock<Option<&'static Schema>> = LazyLock::new(|| {
    let bytes = Type::Bytes(Len { from: LenFrom::Const(0), mul: 1, div: 1 });
    let number = |name: &str| Field { name: name.into(), ty: Type::Int(Int { size: 8, signed: false, fmt: Fmt::Dec }) };
    let buckets = Field { name: "buckets".into(), ty: bytes };
    dynamic::class("function:sums", &[buckets].into_iter().chain(NUMBERS.map(number)).collect::<Vec<_>>()).ok()
});
