//! Which rings the events of calls go through: those that programs write themselves or, where that cannot be, the kernel's; and how large
//! they are.

use super::programs::knows_tasks;
use bpf::scratch::Shape;
use engine::capture::captures::Captures;
use engine::error::Result;
use engine::plan::Plan;

/// Why the kernel's rings are used where programs that write rings themselves could not be loaded.
pub const REFUSED: &str = "this kernel refuses programs that write rings themselves";

/// Bytes of a ring where few calls are selected: what a CPU that only makes such calls writes in 8 ms, in which the reader has several
/// rounds. Its pages are allocated, mapped and freed at the start and the end of each session: 1 ms less than with a ring for all calls.
const FEW: usize = 2 << 20;
/// The most calls, and the most bytes that are captured of a string or buffer, with which that is enough.
const FEW_CALLS: usize = 4;
const SHORT: usize = 256;
/// The smallest ring.
const LEAST: usize = 4096;

/// Bytes of the ring of calls, per CPU: as asked for, or what fits the selection.
pub fn size(plan: &Plan) -> usize {
    if !knows_tasks(plan) {
        return LEAST;
    }
    let seen = plan.seen_calls();
    // Any call may become selected in a named session.
    let few = !plan.named && !seen.has_unknown() && seen.len() <= FEW_CALLS;
    let fits = few && plan.limits.string.max(plan.limits.text) <= SHORT;
    let size = if fits && !plan.buffer_is_asked { plan.buffer.min(FEW) } else { plan.buffer };
    size.max(LEAST)
}

/// The scratch buffers of calls as rings of this many bytes; none where they cannot be so large.
pub fn shape(size: usize) -> Option<Shape> {
    Shape::CALLS.with_ring(size)
}

/// Begins with `with`: first without a reason for the kernel's rings, where the plan is none; then, if need be, with one. What is wrong
/// with something else is wrong with the kernel's rings too, and is reported then.
///
/// # Errors
/// What `with` says of the kernel's rings.
pub fn begin<T>(plan: &Plan, mut with: impl FnMut(Option<&'static str>) -> Result<T>) -> Result<T> {
    let why = if plan.frames_of_calls() != Captures::default() {
        // A stack is reported while the event that has it is being built.
        "calls have stacks"
    } else if shape(size(plan)).is_none() {
        "--buffer is too large for others"
    } else {
        match with(None) {
            Ok(begun) => return Ok(begun),
            Err(_) => REFUSED,
        }
    };
    with(Some(why))
}
