//! Views of the function calls of a trace, or of several as one.
//!
//! Trees and timelines take all events in one order. Tables and graphs need each thread's records only: they read traces thread by thread,
//! on all CPUs.

use super::calls;
use super::known::{Known, step};
use super::screen;
use crate::ask::Ask;
use crate::output::Output;
use ctf::functions::{Packet, Thread as Recorded};
use ctf::trace::Trace;
use engine::request::functions::Functions as Wanted;
use engine::{Error, Result};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::iter::Peekable;
use std::ops::RangeInclusive;
use std::sync::OnceLock;
use views::calls::by_thread::{ByThread, How, Write};
use views::calls::contexts::Contexts;
use views::calls::selection::{Place, Selected, Verdicts};
use views::calls::sort::Sort;
use views::calls::stack::{self, Stack};
use views::calls::totals::{Feed, Totals, in_parallel};
use views::calls::{CallView, Demangle, Functions, Selection, Step, Thread, What};

/// A view of calls, opened.
pub struct Opened {
    /// Writes it.
    pub write: Write,
    /// How functions are called.
    pub names: Demangle,
    /// It has rows of functions, whose order can be chosen.
    pub sorted: bool,
    /// Its destination.
    pub output: Output,
}

impl Opened {
    /// Writes the view of these calls.
    ///
    /// # Errors
    /// The order is unknown, or writing fails.
    pub fn write(mut self, calls: &Calls<'_>, ask: &Ask) -> Result<()> {
        let how = How {
            sort: if self.sorted { calls::sort(&ask.table)? } else { Sort::default() },
            rows: calls::rows(&ask.table),
            size: screen::table_size(&self.output),
            icicle: ask.profile.icicle,
        };
        let shown = Shown { calls, ask, colour: screen::colour(&ask.format, &self.output) };
        (self.write)(&shown, &how, self.output.buffer());
        self.output.flush();
        self.output.close();
        self.output.take_trouble().map_or(Ok(()), Err)
    }
}

/// Whether a trace has too many records for a screen: then they need not be put in order.
pub fn has_many(trace: &Trace) -> bool {
    trace.data.function_threads().iter().map(Recorded::records).fold(0, u64::saturating_add) > 100_000
}

/// Whether a trace has function calls and no stacks.
pub fn has_calls_only(trace: &Trace) -> bool {
    ctf::classes::has_functions(&trace.metadata) && !trace.classes().any(|c| crate::stacks::have_any([c].into_iter()))
}

/// What is missing before the records of a packet.
fn before(packet: &Packet<'_>) -> impl Iterator<Item = Step> + use<> {
    let gap = What::Gap { dropped: packet.gap.lost };
    packet.gap.is_one().then_some(Step { time: packet.begin, what: gap }).into_iter()
}

/// A step, and before it that the session was stopped, if it was since the step before.
fn after_pause(pauses: &mut Peekable<impl Iterator<Item = u64>>, step: Step) -> [Option<Step>; 2] {
    let passed = std::iter::from_fn(|| pauses.next_if(|p| *p <= step.time)).last();
    [passed.map(|_| Step { time: step.time, what: What::Pause }), Some(step)]
}

/// Who takes the steps of a thread, packet by packet.
trait Take {
    /// Takes the next steps, of a process.
    fn steps(&mut self, pid: u32, steps: impl Iterator<Item = Step>);
    /// Whether calls of the thread are open.
    fn has_open(&self) -> bool;
}

struct ToTotals<'a, 'b>(&'a mut Feed<'b>);

impl Take for ToTotals<'_, '_> {
    fn steps(&mut self, _pid: u32, steps: impl Iterator<Item = Step>) {
        self.0.steps(steps);
    }

    fn has_open(&self) -> bool {
        self.0.has_open()
    }
}

/// Hands a thread's steps over to a view that shows nothing before its end.
struct ToView<'a, V> {
    view: V,
    thread: Thread<'a>,
    functions: &'a Known,
}

impl<V: CallView> Take for ToView<'_, V> {
    fn steps(&mut self, pid: u32, steps: impl Iterator<Item = Step>) {
        self.thread.pid = pid;
        let mut nothing = Vec::new();
        steps.for_each(|step| self.view.step(self.thread, step, self.functions, &mut nothing));
    }

    fn has_open(&self) -> bool {
        true
    }
}

struct ToContexts<C> {
    pid: u32,
    stack: Stack,
    calls: C,
}

impl<C: stack::Calls> Take for ToContexts<C> {
    fn steps(&mut self, pid: u32, steps: impl Iterator<Item = Step>) {
        self.pid = pid;
        steps.for_each(|step| self.stack.step(step, &mut self.calls));
    }

    fn has_open(&self) -> bool {
        !self.stack.open().is_empty()
    }
}

/// The records of traces, and how they are read.
pub struct Calls<'t> {
    parts: Vec<Part<'t>>,
    asked: Asked,
    known: Known,
}

/// The records of a trace.
struct Part<'t> {
    trace: &'t Trace,
    /// Its window of time, on its own clock, ns.
    window: RangeInclusive<u64>,
    /// When the session was stopped, ns.
    pauses: Vec<u64>,
    /// The ends of threads, found at their first use.
    ends: OnceLock<HashMap<u32, Vec<u64>>>,
}

impl Part<'_> {
    /// When a thread has ended that has made its last step at this time, or its process; else the trace ends.
    fn end_of(&self, (pid, tid): (u32, u32), last: u64) -> u64 {
        let ends = self.ends.get_or_init(|| self.trace.data.ends(&self.trace.known));
        let of = |id: u32| ends.get(&id)?.iter().copied().find(|t| *t >= last);
        let end = || self.trace.data.span().map_or(last, |s| s.1);
        of(tid).or_else(|| of(pid)).unwrap_or_else(end).min(*self.window.end())
    }
}

/// The command that was traced; of several, how many traces there are.
pub fn command_of<'t>(mut traces: impl ExactSizeIterator<Item = &'t Trace>) -> String {
    let all = traces.len();
    let first = traces.next().map(|trace| trace.said("command")).unwrap_or_default();
    if traces.all(|trace| trace.said("command") == first) { first } else { format!("{all} traces") }
}

/// Which calls are asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Only those of these processes and threads; of all where there are none.
    pub pids: Vec<u32>,
    /// Only records of functions with these names.
    pub wanted: Wanted,
    /// What is shown of them.
    pub selection: Selection,
}

impl<'t> Calls<'t> {
    /// The calls that are asked for, of traces in windows of time, ns of their own clocks.
    ///
    /// # Errors
    /// None of them has function calls.
    pub fn new(
        traces: impl Iterator<Item = (&'t Trace, RangeInclusive<u64>)>,
        asked: Asked,
        demangle: Demangle,
    ) -> Result<Calls<'t>> {
        let part = |(trace, window): (&'t Trace, _)| {
            let pauses = trace.data.pauses(&trace.known);
            Part { trace, window, pauses, ends: OnceLock::new() }
        };
        let parts: Vec<Part<'t>> = traces.map(part).collect();
        if parts.iter().all(|part| part.trace.data.function_threads().is_empty()) {
            let todo = "record function calls, or choose another view";
            let (what, why) = match &parts[..] {
                [one] => (one.trace.dir.display().to_string(), "it has no function calls"),
                _ => ("report".into(), "none of these traces has function calls"),
            };
            return Err(Error::failed(what, why, todo));
        }
        let known = Known::new(parts.iter().map(|part| part.trace), demangle, &asked.wanted, &asked.selection);
        Ok(Calls { parts, asked, known })
    }

    /// Threads with the numbers of their traces, those with the most records first.
    fn threads(&self) -> Vec<(usize, Recorded<'t>)> {
        let of =
            |(nth, part): (usize, &Part<'t>)| part.trace.data.function_threads().into_iter().map(move |t| (nth, t));
        let mut all: Vec<_> = self.parts.iter().enumerate().flat_map(of).collect();
        all.sort_by_key(|(nth, t)| (Reverse(t.records()), *nth, t.tid()));
        all
    }

    /// Hands over the steps of a thread, packet by packet.
    fn steps(&self, (nth, thread): (usize, Recorded<'t>), take: &mut impl Take) {
        let (part, pids) = (&self.parts[nth], &self.asked.pids);
        let window = &part.window;
        let (mut packets, mut before_it) = (thread.packets(window.clone()), None);
        let mut pauses = part.pauses.iter().copied().skip_while(|p| p < window.start()).peekable();
        while let Some(packet) = packets.next() {
            if !pids.is_empty() && !pids.contains(&packet.pid) && !pids.contains(&thread.tid()) {
                continue;
            }
            if let Some((pid, last)) = before_it.filter(|_| packet.begins && take.has_open()) {
                let time = part.end_of((pid, thread.tid()), last).min(packet.begin);
                take.steps(pid, std::iter::once(Step { time, what: What::End }));
            }
            take.steps(packet.pid, before(&packet));
            let is_inside = packet.begin >= *window.start() && packet.end <= *window.end();
            if pauses.peek().is_some_and(|p| *p <= packet.end) {
                let inside = packet.records().filter(|r| is_inside || window.contains(&r.time));
                let shown = inside.filter_map(|r| self.known.step(nth, r));
                let all: Vec<Step> = shown.flat_map(|s| after_pause(&mut pauses, s)).flatten().collect();
                take.steps(packet.pid, all.into_iter());
            } else if is_inside && self.known.takes_all(nth) {
                take.steps(packet.pid, packet.records().map(step));
            } else {
                let shown = packet.records().filter(|r| is_inside || window.contains(&r.time));
                take.steps(packet.pid, shown.filter_map(|r| self.known.step(nth, r)));
            }
            before_it = Some((packet.pid, packet.end));
        }
        if let Some((pid, last)) = before_it.filter(|_| take.has_open()) {
            let time = part.end_of((pid, thread.tid()), last);
            take.steps(pid, std::iter::once(Step { time, what: What::End }));
        }
    }

    /// Events that were lost; None where that is not known of all traces.
    fn lost(&self) -> Option<u64> {
        self.parts.iter().map(|part| part.trace.lost()).try_fold(0u64, |all, lost| Some(all.saturating_add(lost?)))
    }

    /// The command that was traced; of several, how many traces there are.
    fn command(&self) -> String {
        command_of(self.parts.iter().map(|part| part.trace))
    }

    /// The names of the functions.
    pub fn functions(&self) -> &impl Functions {
        &self.known
    }

    /// What the calls of each function add up to.
    pub fn totals(&self) -> Totals {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        in_parallel(self.threads(), workers, 0, (&self.asked.selection, &self.known), |thread, feed| {
            self.steps(thread, &mut ToTotals(feed));
        })
    }

    /// Hands over the contexts of each thread, one after the other.
    fn contexts(&self, each: &mut dyn FnMut(Thread<'_>, &Contexts)) {
        let mut verdicts = Verdicts::new(self.asked.selection.clone());
        for thread in self.threads() {
            let (mut place, mut contexts) = (Place::default(), Contexts::default());
            let selected =
                Selected { place: &mut place, verdicts: &mut verdicts, functions: &self.known, calls: &mut contexts };
            let mut to = ToContexts { pid: 0, stack: Stack::new(), calls: selected };
            self.steps(thread, &mut to);
            to.stack.finish(0, &mut to.calls);
            let pid = to.pid;
            each(Thread { pid, tid: thread.1.tid(), comm: "" }, &contexts);
        }
    }
}

/// Calls, and the options of their views.
struct Shown<'a> {
    calls: &'a Calls<'a>,
    ask: &'a Ask,
    colour: bool,
}

impl ByThread for Shown<'_> {
    fn totals(&self) -> Totals {
        self.calls.totals()
    }

    fn contexts(&self, each: &mut dyn FnMut(Thread<'_>, &Contexts)) {
        self.calls.contexts(each);
    }

    fn slowest(&self, out: &mut Vec<u8>) {
        let calls = self.calls;
        let view = calls::brief(self.ask, calls.asked.selection.clone(), self.colour).by_thread();
        let mut view = ToView { view, thread: Thread::default(), functions: &calls.known };
        for thread in calls.threads() {
            view.thread.tid = thread.1.tid();
            calls.steps(thread, &mut view);
        }
        view.view.end(&calls.known, out);
    }

    fn functions(&self) -> &dyn Functions {
        &self.calls.known
    }

    fn lost(&self) -> Option<u64> {
        self.calls.lost()
    }

    fn command(&self) -> String {
        self.calls.command()
    }
}
