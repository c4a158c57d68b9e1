//! Views of the function calls of a trace.
//!
//! Trees and timelines take all events in one order. Tables and graphs need each thread's records only: they read the trace thread by thread,
//! on all CPUs.

use super::unreadable_selection;
use crate::call_views;
use crate::output::Output;
use crate::profile::Style;
use crate::show::Clocks;
use clap::ArgMatches;
use ctf::functions::{Packet, Record, Thread as Recorded};
use ctf::trace::Trace;
use engine::pipeline::functions::shown_name;
use engine::{Error, Result};
use events::functions::Table as Names;
use std::cmp::Reverse;
use std::io;
use std::iter::Peekable;
use std::ops::RangeInclusive;
use views::calls::contexts::Contexts;
use views::calls::edges::{Edges, Language, MOST};
use views::calls::functions::Table;
use views::calls::profile::{self as calls_profile, Weight};
use views::calls::selection::{Place, Selected, Verdicts};
use views::calls::stack::{self, Stack};
use views::calls::totals::{Feed, Totals, in_parallel};
use views::calls::{Functions, Selection, Step, Thread, What, stat};
use views::profile::flame::Flame;
use views::profile::folded;

/// Views that add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The table of functions.
    Functions,
    /// The table with fixed units.
    Stat,
    /// A graph of callers.
    Graph(Language),
    /// A flame graph.
    Flame,
    /// Folded stacks.
    Folded,
}

impl Kind {
    /// The view of this name. `flame` and `folded` are those of calls where the trace has no stacks.
    pub fn parse(name: &str, trace: &Trace) -> Option<Kind> {
        let has_calls_only = || {
            ctf::classes::has_functions(&trace.metadata)
                && !trace.classes().any(|c| crate::stacks::have_any([c].into_iter()))
        };
        Some(match name {
            "functions" => Kind::Functions,
            "stat" => Kind::Stat,
            "callgraph" | "dot" => Kind::Graph(Language::Dot),
            "mermaid" => Kind::Graph(Language::Mermaid),
            "flame" if has_calls_only() => Kind::Flame,
            "folded" if has_calls_only() => Kind::Folded,
            _ => return None,
        })
    }
}

/// Names of a trace's functions.
struct Known(Names);

impl Functions for Known {
    fn name(&self, number: u32) -> Option<&str> {
        self.0.get(number).map(|f| f.name)
    }

    fn module(&self, number: u32) -> &str {
        self.0.get(number).map_or("", |f| f.module)
    }
}

fn step(r: Record) -> Step {
    if r.exit { Step::exit(r.time, r.function) } else { Step::entry(r.time, r.function) }
}

/// What comes before the records of a packet: the end of an earlier thread, and what is missing.
fn before(packet: &Packet<'_>, last: u64) -> impl Iterator<Item = Step> + use<> {
    let end = packet.begins.then_some(Step { time: last, what: What::End });
    let gap = What::Gap { dropped: packet.gap.lost };
    end.into_iter().chain(packet.gap.is_one().then_some(Step { time: packet.begin, what: gap }))
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
}

struct ToTotals<'a, 'b>(&'a mut Feed<'b>);

impl Take for ToTotals<'_, '_> {
    fn steps(&mut self, _pid: u32, steps: impl Iterator<Item = Step>) {
        self.0.steps(steps);
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
}

/// The records of a trace, and how they are read.
pub struct Calls<'t> {
    trace: &'t Trace,
    window: RangeInclusive<u64>,
    pids: Vec<u32>,
    selection: Selection,
    names: Known,
    /// When the session was stopped, ns.
    pauses: Vec<u64>,
}

impl<'t> Calls<'t> {
    /// The calls in a window of time, ns, of these processes and threads; of all where there are none.
    pub fn new(m: &ArgMatches, trace: &'t Trace, window: RangeInclusive<u64>, pids: Vec<u32>) -> Result<Calls<'t>> {
        unreadable_selection(m)?;
        if trace.data.function_threads().is_empty() {
            let todo = "record function calls, or choose another view";
            return Err(Error::failed(trace.dir.display().to_string(), "it has no function calls", todo));
        }
        let names = Known(trace.data.functions(&trace.known, shown_name));
        let pauses = trace.data.pauses(&trace.known);
        Ok(Calls { trace, window, pids, selection: call_views::selection(m)?, names, pauses })
    }

    /// Threads, those with the most records first.
    fn threads(&self) -> Vec<Recorded<'t>> {
        let mut all = self.trace.data.function_threads();
        all.sort_by_key(|t| (Reverse(t.records()), t.tid()));
        all
    }

    /// Hands over the steps of a thread, packet by packet.
    fn steps(&self, thread: Recorded<'t>, take: &mut impl Take) {
        let (mut packets, mut last) = (thread.packets(self.window.clone()), 0);
        let mut pauses = self.pauses.iter().copied().skip_while(|p| p < self.window.start()).peekable();
        while let Some(packet) = packets.next() {
            if !self.pids.is_empty() && !self.pids.contains(&packet.pid) && !self.pids.contains(&thread.tid()) {
                continue;
            }
            take.steps(packet.pid, before(&packet, last));
            let steps = packet.records().map(step);
            if pauses.peek().is_some_and(|p| *p <= packet.end) {
                let inside = steps.filter(|s| self.window.contains(&s.time));
                let all: Vec<Step> = inside.flat_map(|s| after_pause(&mut pauses, s)).flatten().collect();
                take.steps(packet.pid, all.into_iter());
            } else if packet.begin >= *self.window.start() && packet.end <= *self.window.end() {
                take.steps(packet.pid, steps);
            } else {
                take.steps(packet.pid, steps.filter(|s| self.window.contains(&s.time)));
            }
            last = packet.end;
        }
    }

    fn totals(&self) -> Totals {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        in_parallel(self.threads(), workers, 0, (&self.selection, &self.names), |thread, feed| {
            self.steps(thread, &mut ToTotals(feed));
        })
    }

    /// Hands over the contexts of each thread, one after the other.
    fn contexts(&self, mut each: impl FnMut(Thread<'_>, &Contexts)) {
        let mut verdicts = Verdicts::new(self.selection.clone());
        for thread in self.threads() {
            let (mut place, mut contexts) = (Place::default(), Contexts::default());
            let selected =
                Selected { place: &mut place, verdicts: &mut verdicts, functions: &self.names, calls: &mut contexts };
            let mut to = ToContexts { pid: 0, stack: Stack::new(), calls: selected };
            self.steps(thread, &mut to);
            to.stack.finish(0, &mut to.calls);
            let pid = to.pid;
            each(Thread { pid, tid: thread.tid(), comm: "" }, &contexts);
        }
    }

    /// Writes a view.
    pub fn write(&self, m: &ArgMatches, kind: Kind, output: &mut Output, clocks: Clocks) -> Result<()> {
        let terminal = output.is_terminal();
        let (columns, lines) = sys::process::terminal_size(&io::stdout()).unwrap_or((100, 24));
        match kind {
            Kind::Functions => {
                let sort = call_views::sort(m)?;
                let rows = call_views::rows(m).unwrap_or(if terminal {
                    usize::from(lines).saturating_sub(5)
                } else {
                    usize::MAX
                });
                let width = if terminal { columns.into() } else { usize::MAX };
                Table { sort, rows, width }.write(&self.totals(), &self.names, output.buffer());
            }
            Kind::Stat => stat::write(&self.totals(), &self.names, output.buffer()),
            Kind::Graph(language) => {
                let mut all = Contexts::default();
                self.contexts(|_, contexts| all.join(contexts));
                let most = call_views::rows(m).unwrap_or(MOST);
                Edges::new(&all).write(language, most, &self.names, output.buffer());
            }
            Kind::Flame | Kind::Folded => {
                let mut stacks = Weight::Own.profile();
                self.contexts(|thread, contexts| {
                    calls_profile::add(&mut stacks, contexts, thread, Weight::Own, &self.names);
                });
                let title = self.trace.metadata.env_str("command").unwrap_or_default().to_owned();
                let style = Style::of(m, title, clocks);
                match kind {
                    Kind::Flame => {
                        let icicle = m.get_flag("icicle");
                        Flame { title: style.title, by: views::profile::By::Nothing, icicle }
                            .write(&stacks, output.buffer());
                    }
                    _ => folded::write(&stacks, views::profile::By::Nothing, output.buffer()),
                }
            }
        }
        output.flush();
        output.close();
        output.take_trouble().map_or(Ok(()), Err)
    }
}
