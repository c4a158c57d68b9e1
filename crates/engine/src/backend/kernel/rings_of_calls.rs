//! Which rings the events of calls go through: those that programs write themselves or, where that cannot be, the kernel's.

use super::map_set::with_own_rings;
use crate::error::Result;
use crate::plan::Plan;
use bpf::capture_row::Frames;

/// Why the kernel's rings are used where programs that write rings themselves could not be loaded.
pub const REFUSED: &str = "this kernel refuses programs that write rings themselves";

/// Begins with `with`: first without a reason for the kernel's rings, where the plan is none; then, if need be, with one. What is wrong
/// with something else is wrong with the kernel's rings too, and is reported then.
///
/// # Errors
/// What `with` says of the kernel's rings.
pub fn begin<T>(plan: &Plan, mut with: impl FnMut(Option<&'static str>) -> Result<T>) -> Result<T> {
    let why = if plan.frames_of_calls() != Frames::default() {
        // A stack is reported while the event that has it is being built.
        "calls have stacks"
    } else if with_own_rings(plan.buffer).is_none() {
        "--buffer is too large for others"
    } else {
        match with(None) {
            Ok(begun) => return Ok(begun),
            Err(_) => REFUSED,
        }
    };
    with(Some(why))
}
