//! `count`: calls of functions and their time, which the agent adds up in rows of the thread.

use super::{BuiltIn, Choice, Results};
use crate::stub::Variant;

pub struct Tracer;

impl BuiltIn for Tracer {
    const NAME: &'static str = "count";
    const ABOUT: &'static str = "calls and time of functions";
    const RESULTS: Results = Results::Counts;
    const OPTIONS: [Choice; 8] = {
        use Choice::{Time, Unused};
        [Time, Unused, Unused, Unused, Unused, Unused, Unused, Unused]
    };

    fn stub(time: u64) -> Variant {
        if time == 1 { Variant::CountTimed } else { Variant::Count }
    }

    fn is_timed(time: u64) -> bool {
        time == 1
    }
}
