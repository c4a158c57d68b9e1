//! Samples beside system calls for users who may not use bpf(2): the ptracer, and the perf backend.
//!
//! ```text
//!  ptracer: forks the command, and waits ─► perf opens its events on it ─► the ptracer goes on
//!
//!  ptracer: calls, signals, processes ─┐
//!  perf: samples, stacks ──────────────┴─► merged by time ─► one source
//! ```
//!
//! The ptracer reports the processes, and how they end. The session ends with it.

use super::{add_report, add_state};
use engine::control::{self, Order, Preparer, State};
use engine::error::{Error, Result};
use engine::pipeline::backend::{Attached, Backend, Deliver, Polled};
use engine::pipeline::merge::Merge;
use engine::plan::Plan;
use engine::stats::Report;
use engine::target::Target;
use events::StreamId;
use events::functions::Run;
use events::generated::{P_ATTACH, P_EXEC, P_EXIT, P_FORK, P_PAUSED, P_RESUMED};
use std::time::Duration;
use sys::ptrace::Change;
use unprivileged::perf::Perf;
use unprivileged::ptrace::Session;

/// How long samples may wait for the next round.
const ROUND: Duration = Duration::from_millis(5);

/// Both backends.
pub struct Sampled {
    first: Box<dyn Backend>,
    samples: Perf,
    merge: Merge,
    first_ended: bool,
    /// Up to which time all calls have come, ns.
    settled: u64,
}

/// Takes the ptracer's events.
struct Calls<'m> {
    merge: &'m mut Merge,
    /// Up to which time all of them are there, where it says that.
    settled: Option<u64>,
}

impl Deliver for Calls<'_> {
    fn event(&mut self, stream: StreamId, event: &[u8]) {
        self.merge.push_from(stream, event);
    }

    fn functions(&mut self, _: &Run<'_>) {}

    fn settled(&mut self, until: u64) {
        self.settled = Some(until);
    }
}

impl Sampled {
    /// What takes the samples of the session, where the plan has it beside the ptracer, which has not attached yet.
    ///
    /// # Errors
    /// The user may take none; a target that is not there.
    pub fn samples(ptracer: &mut Session, plan: &Plan) -> Result<Option<Perf>> {
        if plan.samples_beside.is_none() {
            return Ok(None);
        }
        let command = if matches!(plan.target, Target::Command(_)) { Some(ptracer.forked()?) } else { None };
        Perf::beside(plan, command).map(Some)
    }

    /// Joins them.
    pub fn new(first: Box<dyn Backend>, samples: Perf) -> Sampled {
        Sampled { first, samples, merge: Merge::default(), first_ended: false, settled: u64::MAX }
    }
}

/// Whether an event reports what the ptracer reports too.
fn is_of_processes(event: &[u8]) -> bool {
    let reported = [&P_ATTACH, &P_EXEC, &P_EXIT, &P_FORK, &P_PAUSED, &P_RESUMED];
    reported.iter().any(|schema| event.get(8..10) == Some(&schema.id.to_le_bytes()))
}

impl Backend for Sampled {
    fn name(&self) -> &'static str {
        "ptrace+perf"
    }

    fn has_begun(&self) -> bool {
        self.first.has_begun()
    }

    fn poll(&mut self, room: bool, each: &mut dyn Deliver) -> Polled {
        let round = self.samples.known();
        let merge = &mut self.merge;
        if !self.first_ended {
            let mut calls = Calls { merge, settled: None };
            self.first_ended = self.first.poll(room, &mut calls).ended;
            self.settled = calls.settled.unwrap_or(u64::MAX);
        }
        let merge = &mut self.merge;
        if self.first_ended {
            self.samples.stop();
        }
        let mut take = |stream: StreamId, event: &[u8]| {
            if !is_of_processes(event) {
                merge.push_from(stream, event);
            }
        };
        let of_samples = self.samples.poll(room || self.first_ended, &mut take);
        let ended = self.first_ended && of_samples.ended;
        // Without room, older events may still be in a ring.
        let until = if ended { u64::MAX } else { round.min(self.settled) };
        let events = if room || ended { merge.release(until, |stream, event| each.event(stream, event)) } else { 0 };
        Polled { events, ended }
    }

    fn gather(&mut self) {
        self.samples.gather();
    }

    fn wait(&mut self, timeout: Duration) {
        self.first.wait(timeout.min(ROUND));
    }

    fn control(&mut self, order: Order) -> Result<State> {
        let of_samples = match order {
            Order::Stop => Order::Stop,
            Order::Start => Order::Start,
            Order::Attach(pid) | Order::Detach(pid) => return Err(control::unable(format!("-p {pid}"), "perf")),
            Order::Status | Order::Enable(_) | Order::Lend(_) | Order::TakeBack(_) | Order::TakeOut => Order::Status,
        };
        let mut state = self.first.control(order)?;
        add_state(&mut state, self.samples.control(of_samples)?);
        Ok(state)
    }

    fn take_preparer(&mut self) -> Option<Box<dyn Preparer>> {
        self.first.take_preparer()
    }

    fn stop(&mut self) {
        // The samples stop with it.
        self.first.stop();
    }

    fn command(&self) -> Option<i32> {
        self.first.command()
    }

    fn command_status(&mut self) -> Option<Change> {
        self.first.command_status()
    }

    fn take_attached(&mut self) -> Attached {
        self.first.take_attached()
    }

    fn failure(&mut self, plan: &Plan) -> Option<Error> {
        self.first.failure(plan)
    }

    fn streams(&self) -> Vec<StreamId> {
        let mut all = self.first.streams();
        all.extend(self.samples.streams());
        all
    }

    fn dropped_on(&self, stream: StreamId) -> u64 {
        self.first.dropped_on(stream) + self.samples.dropped_on(stream)
    }

    fn report(&mut self) -> Report {
        let (mut report, mut samples) = (self.first.report(), self.samples.report());
        report.stacks = std::mem::take(&mut samples.stacks);
        report.large_enough_buffer = samples.large_enough_buffer;
        add_report(&mut report, samples);
        report
    }
}
