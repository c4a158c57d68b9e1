//! `graph`: the recording. Its options are the variant of its stubs, and the least time of calls of timed ones in ticks. It is neither enabled
//! nor disabled by requests: it is enabled as long as the recording lasts.

use super::{BuiltIn, Choice, Results};
use crate::stub::Variant;

pub struct Tracer;

impl BuiltIn for Tracer {
    const NAME: &'static str = "graph";
    const ABOUT: &'static str = "calls of functions, as a tree or in a trace";
    const RESULTS: Results = Results::Trace;
    const OPTIONS: [Choice; 8] = [Choice::Unused; 8];

    fn stub(variant: u64) -> Variant {
        Variant::of(variant as u32).unwrap_or(Variant::Called)
    }

    fn is_timed(variant: u64) -> bool {
        variant == Variant::Timed as u64
    }
}
