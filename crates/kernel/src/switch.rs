//! What a running session records, as its programs read it: a switch for each processor, and a row for each call.

use bpf::capture_row::{FLAGS, ROW, WANTED};
use bpf::syscalls::session_switch::{NO_UNKNOWN, STOPPED};
use engine::capture::Limits;
use engine::plan::Plan;
use engine::request::select::Calls;
use events::generated::X86_64;
use std::sync::atomic::Ordering;
use sys::bpf::map::Values;

/// What the switch of a session says at first; none where it has no switch.
pub fn first(plan: &Plan) -> Option<u64> {
    plan.named.then(|| word(plan.paused, &plan.seen_calls()))
}

pub fn word(stopped: bool, calls: &Calls) -> u64 {
    (if stopped { STOPPED } else { 0 }) | if calls.has_unknown() { 0 } else { NO_UNKNOWN }
}

/// Sets in the rows which calls are wanted.
pub fn select(rows: &Values, calls: &Calls) {
    mark(rows, calls, WANTED);
}

/// Sets a flag in the rows of these calls, and clears it in all others.
pub fn mark(rows: &Values, calls: &Calls, flag: u16) {
    let bit = u64::from(flag) << (8 * FLAGS);
    for nr in 0..X86_64.len() {
        let (Some(row), Some(schema)) = (rows.word(nr * ROW), events::registry::by_number(nr as u64)) else { continue };
        if calls.contains(schema) {
            row.fetch_or(bit, Ordering::Relaxed);
        } else {
            row.fetch_and(!bit, Ordering::Relaxed);
        }
    }
}

/// What holds at the moment.
pub struct Held {
    /// Nothing is recorded.
    pub stopped: bool,
    pub(super) calls: Calls,
    pub(super) limits: Limits,
}

impl Held {
    /// What a plan begins with.
    pub fn of(plan: &Plan) -> Held {
        Held { stopped: plan.named && plan.paused, calls: plan.seen_calls(), limits: plan.limits }
    }

    /// What the switch says.
    pub(super) fn word(&self) -> u64 {
        word(self.stopped, &self.calls)
    }
}
