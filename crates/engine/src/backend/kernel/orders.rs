//! Orders to a running session: the switch that makes programs skip events, and the rows of the calls that are wanted.

use super::Kernel;
use crate::control::{Order, State, Stream};
use crate::own_events;
use crate::plan::Plan;
use crate::select::Calls;
use bpf::capture_row::{FLAGS, ROW, WANTED};
use bpf::scratch::{self, Shape};
use bpf::syscalls::session_switch::{NO_UNKNOWN, STOPPED};
use events::generated::{P_PAUSED, P_RESUMED, X86_64};
use events::{Schema, StreamId};
use std::io;
use std::sync::atomic::Ordering;
use sys::bpf::map::{Map, Values};
use sys::time;

/// What the switch of a session says at first; none where it has no switch.
pub fn first(plan: &Plan) -> Option<u64> {
    plan.named.then(|| word(plan.paused, &plan.seen_calls()))
}

fn word(stopped: bool, calls: &Calls) -> u64 {
    (if stopped { STOPPED } else { 0 }) | if calls.has_unknown() { 0 } else { NO_UNKNOWN }
}

/// Sets the switch in the scratch buffers of all processors, before a program reads it.
pub fn begin(buffers: &Map, shape: Shape, switch: Option<u64>) -> io::Result<()> {
    if let Some(switch) = switch {
        set(&buffers.mmap()?, shape, buffers.entries(), switch);
    }
    Ok(())
}

/// Sets the switch in the scratch buffers of `cpus` processors.
pub fn set(buffers: &Values, shape: Shape, cpus: u32, switch: u64) {
    for cpu in 0..cpus {
        if let Some(word) = buffers.word(shape.index(cpu, scratch::SWITCH)) {
            word.store(switch, Ordering::Release);
        }
    }
}

/// Sets in the rows which calls are wanted.
pub fn select(rows: &Values, calls: &Calls) {
    let bit = u64::from(WANTED) << (8 * FLAGS);
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
    calls: Calls,
}

impl Held {
    /// What a plan begins with.
    pub fn of(plan: &Plan) -> Held {
        Held { stopped: plan.named && plan.paused, calls: plan.seen_calls() }
    }
}

impl Kernel {
    /// Carries an order out.
    pub(super) fn obey(&mut self, order: Order) -> State {
        match order {
            Order::Status => {}
            Order::Stop => {
                self.held.stopped = true;
                self.switch();
                self.mark(&P_PAUSED);
            }
            Order::Start => {
                self.mark(&P_RESUMED);
                self.held.stopped = false;
                self.switch();
            }
            Order::Select(calls) => {
                // Calls that are wanted no more go first, so that no moment has both selections.
                if let Some(rows) = &self.loaded.rows_of_calls {
                    select(rows, &calls);
                }
                self.held.calls = calls;
                self.switch();
            }
        }
        self.state()
    }

    /// The event that reports that the session was stopped or resumed.
    pub(super) fn mark(&mut self, schema: &'static Schema) {
        let own = sys::process::own_pid() as u32;
        self.merge.push(&own_events::process(schema, time::monotonic(), (own, own), &[], &[]));
    }

    fn switch(&self) {
        self.loaded.switch(word(self.held.stopped, &self.held.calls));
    }

    fn state(&self) -> State {
        let missed = self.attribution.count(&self.loaded.misses());
        let fill = |stream: StreamId| self.loaded.ring_of(stream).map_or((0, 0), |r| (r.available(), r.size() as u64));
        let streams = self.loaded.streams().into_iter().map(|stream| {
            let (used, size) = fill(stream);
            Stream { name: stream.to_string(), used, size, dropped: self.loaded.dropped_on(stream) }
        });
        State {
            streams: streams.collect(),
            kept: None,
            losses: self.loaded.losses(),
            missed,
            enablings: self.loaded.probe_counts(),
        }
    }
}
