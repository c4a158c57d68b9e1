//! A session under way: events go from the backend to views and to a trace, signals to their targets, and the end is
//! reported.

mod injecting;
pub mod interrupts;
mod orders;
mod set;

use crate::ask::Ask;
use crate::complain;
use crate::show::{Sinks, Told};
use crate::stats::Stats;
use crate::{filter, nothing, pack, preface, stacks, start, target};
use ctf::folder::reason;
use engine::control::Order;
use engine::maps::Maps;
use engine::pipeline::filter::{EventFilter, Tally};
use engine::pipeline::pump::Pump;
use engine::pipeline::recorder::{Begun, Monitor, News, Recorder};
use engine::pipeline::selection::Selection;
use engine::plan::Plan;
use engine::probe_diagnosis::{self, Reach};
use engine::request::enabling;
use engine::request::expression::Filtered;
use engine::resolver::{Origin, Resolver};
use engine::stats::totals::Totals;
use engine::stats::{Counts, Report};
use engine::target::Target;
use engine::{Error, Result};
use events::Schema;
use interrupts::{Interrupts, Wish};
pub use orders::Named;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use sys::ptrace::Change;
use sys::{signal, time};
use views::options::Stacks;
use views::profile::name::visible;

/// `--explain`: the most functions that are named for each reason why they are not traced.
const EXAMPLES: usize = 5;

/// How a session has ended: as its command has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// With an exit status.
    Exit(u8),
    /// By a signal.
    Signal(i32),
}

impl Status {
    /// Ends the calling process by the signal; if that does not kill, or there is none, the status that a shell would report.
    pub fn pass_on(self) -> u8 {
        match self {
            Status::Exit(code) => code,
            Status::Signal(sig) => {
                signal::die_of(sig);
                (128 + sig) as u8
            }
        }
    }
}

/// A session under way.
pub struct Run {
    plan: Plan,
    pump: Pump<'static>,
    interrupts: Interrupts,
    /// When the end was asked for.
    stopping: Option<u64>,
    /// The signal that has ended the session, and ends trapline where a command runs on.
    ends_by: Option<i32>,
    /// `--duration`: when the session ends, ns of the monotonic clock.
    until: Option<u64>,
    /// It has ended at that time.
    in_time: bool,
    /// Since when the command is known to have ended, ns of the monotonic clock.
    command_ended: Option<u64>,
    /// When that is looked at next.
    next_look: u64,
    /// It was said what the session waits for.
    has_said: bool,
    /// The recorder's handle, if there is a recorder.
    monitor: Option<Monitor>,
    /// The recorder's directory.
    begun: Option<Arc<Begun>>,
    /// What `--where` rejects outside of the kernel.
    tally: Option<Arc<Tally>>,
    /// Whether the files of probes are mapped.
    reach: Option<Reach>,
    /// `--name`: takes requests.
    named: Option<Named>,
    /// What the sinks have to say at the end.
    told: Option<Told>,
}

impl Run {
    /// Runs the session to its end.
    pub fn through(
        ask: &Ask,
        mut plan: Plan,
        why: &str,
        mut selection: Selection,
        sinks: impl Into<Sinks>,
        mut keep: Option<Recorder>,
        named: Option<Named>,
    ) -> Result<Run> {
        let mut sinks: Sinks = sinks.into();
        selection.filters.extend(plan.shown_filter());
        let mut tally = selection.filters.first().map(EventFilter::tally);
        if let (Some(keep), Some(filter)) = (&mut keep, plan.recorder_filter()) {
            tally = Some(filter.tally());
            keep.set_filter(Some(filter));
        }
        let duration = ask.tracing.duration.as_ref().map(|s| target::duration("--duration", s)).transpose()?;
        let readers = preface::readers(&mut plan.target, &sinks.places);
        if ask.tracing.explain.is_some() {
            preface::explain(&plan, why);
        }
        if let Some(most) = plan.less_captured() {
            let (asked, backend) = (plan.limits.string, plan.backend.name());
            complain(&format!("-s {asked}: the {backend} backend captures at most {most} bytes of a string or buffer"));
        }
        if matches!(&plan.target, Target::All { .. }) || matches!(&plan.target, Target::Pids(p) if p.len() > 1) {
            sinks.all.iter_mut().for_each(|s| s.expect_several());
        }
        let monitor = keep.as_ref().map(Recorder::monitor);
        let classes = plan.probes().flat_map(|e| e.classes()).copied();
        let has_stacks = stacks::have_any(classes.chain(plan.call_captures.iter().map(|c| c.schema)));
        // Probes with stacks may join a session that has a name.
        let names = sinks.all.iter().any(|s| s.names_addresses());
        let may_have = has_stacks || names || plan.named || plan.has_heap();
        let shown = may_have && !sinks.all.is_empty() && stacks::form(&ask.format)? != Stacks::Fields;
        // While there are all rights.
        let resolver = if shown { Some(Resolver::new(Origin::Live, stacks::places(&ask.names)?)) } else { None };
        let resolver = if sinks.lines { resolver } else { resolver.map(Resolver::without_lines) };
        let maps =
            if (monitor.is_some() || shown) && plan.has_addresses() { maps_of(&plan.target) } else { Maps::new() };
        // From before the start: the command may send or receive signals before trapline returns from starting it, and
        // an attach may be interrupted while it runs.
        let interrupts = Interrupts::watch(ask.keep.flight.is_some());
        let reach = Reach::watch(&plan);
        let begun = keep.as_ref().map(Recorder::begun);
        let source = start::start(&mut plan, keep, !sinks.all.is_empty());
        let mut source = source.inspect_err(|_| begun.iter().for_each(|b| b.discard()))?;
        let attached = source.take_attached();
        if ask.tracing.explain.is_some() {
            preface::explain_attached(&attached);
        }
        if ask.tracing.explain.as_ref().is_some_and(|w| w == "programs") {
            preface::list_programs(&attached);
        }
        if let Some(said) = readers {
            complain(&said);
        }
        let mut pump = Pump::new(source, selection, sinks.all);
        pump.watch_maps(maps, monitor.clone());
        if plan.fd_names || sinks.told.is_some() {
            pump.keep_descriptors();
        }
        if let Some(resolver) = resolver {
            pump.resolve_stacks(resolver);
        }
        let quiet = ask.quiet > 0;
        let mut run = Run {
            plan,
            pump,
            interrupts,
            stopping: None,
            ends_by: None,
            until: duration.map(|d| time::monotonic() + d),
            in_time: false,
            command_ended: None,
            next_look: 0,
            has_said: quiet,
            monitor,
            begun,
            tally,
            reach,
            named,
            told: sinks.told,
        };
        run.follow_through();
        Ok(run)
    }

    fn follow_through(&mut self) {
        loop {
            self.reach.iter_mut().for_each(Reach::look);
            let turn = self.pump.turn();
            self.pump.take_failures().iter().for_each(|e| complain(&e.to_string()));
            self.tell_news();
            self.serve();
            // The recorder comes back only from a session that has finished. How the command has ended is known then, too.
            let enough = if self.monitor.is_some() { 512 } else { 8 };
            let leaves = self.stopping.is_some() && self.command_ended.is_none();
            if turn.ended || leaves && matches!(self.plan.target, Target::Command(_)) && turn.idle > enough {
                return;
            }
            self.watch_command();
            if let Some(wish) = self.interrupts.poll() {
                if wish != Wish::Snapshot && self.stopping.is_some_and(|t| time::monotonic() - t >= interrupts::SECOND)
                {
                    return;
                }
                self.obey(wish);
            }
            if self.until.is_some_and(|t| time::monotonic() >= t) && self.stopping.is_none() {
                self.in_time = true;
                self.obey(Wish::Leave);
            }
            if self.pump.is_to_end() && self.stopping.is_none() {
                self.in_time = true;
                self.obey(Wish::Leave);
            }
            if self.is_for_nobody() && self.stopping.is_none() {
                self.obey(Wish::Leave);
            }
        }
    }

    /// Says what the session waits for, once the command has ended and others that it has started go on for a while.
    fn watch_command(&mut self) {
        const LOOK: u64 = 100_000_000;
        const WHILE: u64 = 1_000_000_000;
        let now = time::monotonic();
        let Some(command) = self.pump.source.command().filter(|_| now >= self.next_look && self.stopping.is_none())
        else {
            return;
        };
        self.next_look = now + LOOK;
        match self.command_ended {
            None if sys::process::has_ended(command) => self.command_ended = Some(now),
            Some(at) if now - at > WHILE && !self.has_said => {
                // On a busy machine it takes a while until a session knows of a process, or answers.
                self.next_look = now + WHILE;
                let running = self.pump.source.control(Order::Status).map(|state| state.running).unwrap_or_default();
                if let Some(line) = waiting_for(&running) {
                    self.has_said = true;
                    complain(&line);
                }
            }
            _ => {}
        }
    }

    /// Whether nobody is left to write to, and no command whose end is to be passed on.
    fn is_for_nobody(&self) -> bool {
        self.pump.is_unread() && self.monitor.is_none() && !matches!(self.plan.target, Target::Command(_))
    }

    fn tell_news(&mut self) {
        let news: Vec<News> = self.monitor.iter().flat_map(Monitor::news).collect();
        for news in news {
            let snapshot = match &news {
                News::Snapshot(path, n) => Ok(json!({"dir": path.to_string_lossy(), "events": n})),
                News::Failed(path, e) | News::NoSnapshot(path, e) => Err(Error::failed(
                    path.display().to_string(),
                    e.to_string(),
                    "see the messages of the recording trapline",
                )),
            };
            self.tell_snapshot(&snapshot);
            complain(&match news {
                News::Failed(path, e) => {
                    let what =
                        "what was written can be read; the command continues; later events are counted as dropped";
                    format!("{}: {} ({what})", path.display(), reason(&e))
                }
                News::NoSnapshot(path, e) => {
                    let what = "no complete snapshot was written; the recording and the command continue";
                    format!("{}: {} ({what})", path.display(), reason(&e))
                }
                News::Snapshot(path, n) => format!("{}: {n} events", path.display()),
            });
        }
    }

    fn leave(&mut self) {
        self.stopping.get_or_insert_with(time::monotonic);
        self.pump.source.stop();
    }

    fn obey(&mut self, wish: Wish) {
        match (wish, &self.plan.target) {
            (Wish::Snapshot, _) => self.monitor.iter().for_each(Monitor::snapshot),
            (Wish::End(sig), _) => {
                self.ends_by = Some(sig);
                self.leave();
            }
            (_, Target::Pids(_) | Target::All { .. }) | (Wish::Leave, _) => self.leave(),
            // Those that it has left behind need not be in the terminal's foreground.
            _ if self.command_ended.is_some() => self.leave(),
            (Wish::PassOn(sig), Target::Command(_)) => {
                if let Some(pid) = self.pump.source.command() {
                    let _ = signal::kill(pid, sig);
                }
            }
            (Wish::Nothing, _) => {}
        }
    }

    /// Reports how the session went.
    pub fn finish(self, ask: &Ask) -> Result<Status> {
        self.finish_with(ask, |plan, events, report| {
            let seen: u64 = report.enablings.iter().map(|(_, n)| n.seen).sum();
            if events + report.losses.total + seen == 0 && ask.quiet == 0 {
                nothing::lines(plan, report).iter().for_each(|line| complain(line));
            }
            Ok(())
        })
    }

    /// Reports how the session went, as [`Run::finish`] does; `last`, which gets the number of events, is done
    /// before that.
    pub fn finish_with(mut self, ask: &Ask, last: impl FnOnce(&Plan, u64, &Report) -> Result<()>) -> Result<Status> {
        let failure = self.pump.source.failure(&self.plan);
        // What was lost is known before the sinks end: they show it.
        let report = self.pump.source.report();
        self.pump.end_sinks(Some(report.losses.total));
        self.pump.take_failures().iter().for_each(|e| complain(&e.to_string()));
        let kept = self.pump.source.finish();
        self.tell_news();
        let kept: Option<Totals> = kept?;
        if let Some(e) = failure {
            self.begun.iter().for_each(|b| b.discard());
            return Err(e);
        }
        let mut filtered = self.tally.as_ref().map(|t| t.total()).unwrap_or_default();
        filtered.add(&report.filtered);
        self.add_of_probes(&report, &mut filtered);
        self.reach.iter_mut().for_each(Reach::look);
        let mut stats = match &kept {
            None => Stats::gather(&self.pump, &report.losses, &report.missed, ask.started),
            Some(totals) => Stats::kept(totals, &report.losses, &report.missed, ask.started),
        };
        // The pump counts the events that reached it; a recorder counts those that it took.
        let unseen = if kept.is_some() { &filtered } else { &report.filtered };
        stats.add_filtered(unseen, self.pump.selection.expression.as_deref().map(|w| (w, &filtered)));
        let unmatched = filter::nothing_matched(&self.pump.selection, &filtered, self.passed(kept.as_ref()));
        let why = unmatched.or_else(|| self.no_calls(ask, &stats));
        stats.add_enablings(&self.plan, &report.enablings, kept.as_ref());
        stats.add_stacks(&report.stacks, self.pump.stacks_not_held());
        stats.add_not_captured(report.not_captured);
        stats.add_cost(report.cost.as_ref());
        if let Some(told) = &self.told {
            stats.add_told(told());
        }
        stacks::tell(ask.quiet, &self.pump.stack_troubles());
        self.tell(ask, &stats, &report, why.as_deref());
        if ask.keep.pack
            && let Err(e) = pack::at_end(ask)
        {
            complain(&e.to_string());
        }
        self.farewell(&stats);
        last(&self.plan, stats.events, &report)?;
        self.status(&report)
    }

    /// Adds what `--where` rejected of probes other than calls: their programs count it with their own filters.
    fn add_of_probes(&self, report: &Report, filtered: &mut Filtered) {
        let Some(expression) = &self.pump.selection.expression else { return };
        let counted = enabling::counted(&self.plan.enablings, &report.enablings);
        for (e, n) in counted.into_iter().filter_map(|(e, n)| Some((e.probe()?, n))) {
            let named = e.filter.iter().flat_map(|f| f.parts()).zip(&n.parts);
            for (part, n) in named {
                let is_it = |text: &String| *text == part.text || part.text == format!("({text})");
                if let Some(nth) = expression.parts().iter().position(is_it) {
                    filtered.parts.resize(filtered.parts.len().max(nth + 1), 0);
                    filtered.parts[nth] += n;
                }
            }
            filtered.unknown += n.filtered.saturating_sub(n.parts.iter().sum());
        }
    }

    /// Why no call was recorded, if calls were asked for, or nothing at all, and nothing else was recorded.
    fn no_calls(&self, ask: &Ask, stats: &Stats) -> Option<String> {
        let has_others = self.plan.functions.is_some() || self.plan.probes().next().is_some();
        let in_flight = self.pump.counters().filter(|(s, _)| s.id == events::generated::P_INFLIGHT.id);
        let shown = in_flight.map(|(_, n)| n.seen).chain([stats.recorded("process:signal")]);
        let something = [stats.events, stats.dropped, stats.missed, stats.overwritten].into_iter().chain(shown);
        if has_others || something.sum::<u64>() > 0 {
            return None;
        }
        let of_calls = self.pump.counters().filter(|(s, _)| s.class == events::Class::Syscall);
        Some(filter::no_calls(ask, &self.plan.calls(), of_calls.map(|(_, n)| n.filtered).sum()))
    }

    /// Selected events that passed `--where`.
    fn passed(&self, kept: Option<&Totals>) -> u64 {
        let of = |s: Option<&Schema>, n: u64| {
            n * u64::from(s.is_some_and(|s| s.class == events::Class::Probe || self.pump.selection.calls.contains(s)))
        };
        match kept {
            Some(totals) => (0..).zip(&totals.taken).map(|(id, n)| of(events::registry::by_id(id), *n)).sum(),
            None => {
                let seen: u64 = self.pump.counters().map(|(s, n)| of(Some(s), n.seen)).sum();
                seen.saturating_sub(self.tally.as_ref().map_or(0, |t| t.total().total()))
            }
        }
    }

    fn tell(&self, ask: &Ask, stats: &Stats, report: &Report, nothing: Option<&str>) {
        if let Some(path) = ask.keep.stats.as_ref()
            && let Err(e) = std::fs::write(path, stats.to_json(self.pump.source.name()) + "\n")
        {
            complain(&format!("--stats {}: {e} (choose a file that you may write)", path.to_string_lossy()));
        }
        if let Some(what) = ask.tracing.explain.as_ref() {
            let names = if what == "functions" { usize::MAX } else { EXAMPLES };
            report.planned.iter().flat_map(|file| file.lines(names)).for_each(|line| complain(&line));
        }
        report.trouble.iter().for_each(|line| complain(line));
        report.left_out.iter().filter(|_| ask.quiet == 0).for_each(|line| complain(line));
        let (names, n) = &report.let_go;
        if *n > 0 && ask.quiet == 0 {
            let others = if *n as usize > names.len() { " and others" } else { "" };
            complain(&format!(
                "{}{others}: not shown, because it has rights that uid {} lacks, or a file that this user may not read (run trapline as root)",
                names.join(", "),
                sys::process::ruid()
            ));
        }
        let n = report.cut_off;
        if n > 0 {
            complain(&format!(
                "{n} threads took too long to end: their last events are missing (--duration has no such limit)"
            ));
        }
        if ask.quiet == 0 {
            nothing.into_iter().for_each(complain);
            self.explain_probes(report);
            let more = stats.more();
            let name = self.pump.source.name();
            let enough = report.large_enough_buffer.filter(|_| stats.dropped > 0);
            let enough = enough.map(|n| format!(" (--buffer {} would have held them)", target::in_units(n)));
            let enough = enough.unwrap_or_default();
            complain(&format!(
                "{} events, {} dropped{more}, {name} backend{enough}{}",
                stats.events,
                stats.dropped,
                stats.told()
            ));
            if self.plan.measure {
                stats.cost_lines().iter().for_each(|line| complain(line));
            }
        }
    }

    /// A line for each probe that has recorded nothing, but not for hundreds of them.
    fn explain_probes(&self, report: &Report) {
        const MOST: usize = 10;
        let lines = probe_diagnosis::explain(&self.plan, &report.enablings, self.reach.as_ref());
        lines.iter().take(MOST).for_each(|line| complain(line));
        if lines.len() > MOST {
            complain(&format!("{} more probes have recorded nothing (see --stats)", lines.len() - MOST));
        }
    }

    /// Whether functions, or probes in files, are all that was wanted, and none of any process could be patched.
    fn has_patched_nothing(&self, report: &Report) -> bool {
        let is_refused = |(_, n): &(u32, Counts)| n.recorded == 0 && !n.refused.is_empty();
        let probes =
            self.plan.functions.as_ref().map_or(0, |f| if f.what() == "probes" { f.probes.0.len() } else { 0 });
        if probes > 0 && !self.plan.is_joined() {
            return report.enablings.iter().filter(|e| is_refused(e)).count() == probes;
        }
        let wanted = self.plan.functions.as_ref().is_some_and(|f| !f.none && f.heap.is_none());
        wanted && !self.plan.is_joined() && report.planned.iter().all(|file| file.patched == 0)
    }

    fn status(&mut self, report: &Report) -> Result<Status> {
        match (&self.plan.target, self.pump.source.command_status()) {
            _ if report.unreadable => Err(Error::failed(
                "the trace",
                "it ends here, because its events can no longer be read",
                "the target continues; another process wrote to trapline's memory, or this is a bug in trapline",
            )),
            // The write error has already been reported.
            (Target::Pids(_) | Target::All { .. }, _) if self.ends_by.is_none() && self.is_for_nobody() => {
                Ok(Status::Exit(125))
            }
            // It has been said why.
            (Target::Pids(_), _) if !report.killed && self.has_patched_nothing(report) => Ok(Status::Exit(125)),
            (Target::Pids(_) | Target::All { .. }, _) if !report.killed => Ok(Status::Exit(0)),
            (_, Some(Change::Exited(code))) => Ok(Status::Exit(code as u8)),
            (_, Some(Change::Killed(sig, _))) => Ok(Status::Signal(sig)),
            _ if self.in_time || self.named.as_ref().is_some_and(|n| n.is_ended) => Ok(Status::Exit(0)),
            _ if self.stopping.is_some() => Ok(self.ends_by.map_or(Status::Exit(130), Status::Signal)),
            _ => Err(Error::failed(
                "the tracer process was killed",
                if self.plan.filters() { "the command was killed with it" } else { "the target continues untraced" },
                "--no-seccomp lets a command survive its tracer",
            )),
        }
    }
}

/// Which processes have outlived the command, by these or their threads; none where all have ended.
fn waiting_for(running: &[i32]) -> Option<String> {
    const NAMED: usize = 4;
    let there = running.iter().filter(|tid| !sys::process::has_ended(**tid));
    let pids: BTreeSet<i32> = there.filter_map(|tid| sys::proc::process_of(*tid)).collect();
    let named = pids.iter().take(NAMED).map(|pid| {
        let comm = sys::proc::comm(*pid).unwrap_or_default();
        format!("{pid} ({})", visible(&String::from_utf8_lossy(&comm)))
    });
    let named = named.collect::<Vec<_>>().join(", ");
    let more = if pids.len() > NAMED { format!(" and {} more", pids.len() - NAMED) } else { String::new() };
    let what = "the command has ended; waiting for what it has started";
    (!pids.is_empty()).then(|| format!("{what}: {named}{more} (INT ends the session without it)"))
}

/// Watches what the target maps.
fn maps_of(target: &Target) -> Maps {
    let mut maps = Maps::new();
    match target {
        Target::Command(_) => maps.watch_children(),
        // A process that cannot be read cannot be attached to either, and the attach reports that.
        Target::Pids(pids) => pids.iter().for_each(|p| drop(maps.watch_pid(*p))),
        Target::All { .. } => maps.watch_all(),
    }
    maps
}
