//! A session under way: events go from the backend to views and to a trace, signals to whom they are meant for, and the end is
//! told as it was.

mod interrupts;
mod orders;

use crate::complain;
use crate::filter::Filter;
use crate::output::Output;
use crate::show::Shown;
use crate::stats::Stats;
use crate::{preface, target, wheres};
use clap::ArgMatches;
use ctf::folder::reason;
use engine::backend::Session;
use engine::collector::{Collector, Fate};
use engine::fdtable::FdTable;
use engine::maps::Maps;
use engine::plan::{Plan, Target};
use engine::recorder::{Monitor, News, Recorder, Totals};
use engine::sieve::{Gate, Sieve, Tally};
use engine::silence::{self, Reach};
use engine::{Error, Result};
use events::{Event, Schema};
use interrupts::{Interrupts, Wish};
pub use orders::Named;
use serde_json::json;
use std::ffi::OsString;
use std::sync::Arc;
use sys::ptrace::Change;
use sys::{signal, time};

/// Views and where they write to.
pub type Views = Vec<(Shown, Output)>;

/// A session under way.
pub struct Run {
    plan: Plan,
    session: Session,
    collector: Collector,
    filter: Filter,
    views: Views,
    interrupts: Interrupts,
    stopping: bool,
    /// The signal that has ended the session, and ends trapline where a command runs on.
    ends_by: Option<i32>,
    /// `--duration`: when the session ends, ns of the monotonic clock.
    until: Option<u64>,
    /// It has ended then.
    in_time: bool,
    /// Of the recorder, where events are kept.
    monitor: Option<Monitor>,
    /// What is mapped: kept with the events.
    maps: Maps,
    /// What `--where` holds back outside of the kernel.
    tally: Option<Arc<Tally>>,
    /// Whether the files of probes are mapped.
    reach: Option<Reach>,
    /// `--name`: takes requests.
    named: Option<Named>,
}

impl Run {
    /// Carries the plan out to its end.
    pub fn through(
        m: &ArgMatches,
        mut plan: Plan,
        why: &str,
        mut filter: Filter,
        mut views: Views,
        mut keep: Option<Recorder>,
        named: Option<Named>,
    ) -> Result<Run> {
        filter.sieves.extend(Sieve::shown(&plan));
        let mut tally = filter.sieves.first().map(Sieve::tally);
        if let (Some(keep), Some(gate)) = (&mut keep, Gate::of(&plan)) {
            tally = Some(gate.tally());
            keep.set_gate(Some(gate));
        }
        let duration = m.get_one::<String>("duration").map(|s| target::duration("--duration", s)).transpose()?;
        let readers = preface::readers(&mut plan.target, &views);
        if m.contains_id("explain") {
            preface::explain(&plan, why);
        }
        if matches!(&plan.target, Target::All { .. }) || matches!(&plan.target, Target::Pids(p) if p.len() > 1) {
            views.iter_mut().for_each(|(v, _)| v.expect_several());
        }
        let monitor = keep.as_ref().map(Recorder::monitor);
        let maps = if monitor.is_some() && plan.has_addresses() { maps_of(&plan.target) } else { Maps::new() };
        // From before the start: the command may send signals, or be sent some, before trapline is back from it, and who
        // attaches may be interrupted in the midst of it.
        let interrupts = Interrupts::watch(m.try_contains_id("flight").unwrap_or(false));
        let reach = Reach::watch(&plan);
        let session = Session::start(&plan, keep, !views.is_empty())?;
        if m.contains_id("explain") {
            preface::explain_attached(&session);
        }
        if m.get_one::<String>("explain").is_some_and(|w| w == "programs") {
            preface::list_programs(&session);
        }
        if let Some(said) = readers {
            complain(&said);
        }
        let mut collector = Collector::default();
        if plan.fd_names {
            collector.fds.enable();
        }
        let mut run = Run {
            plan,
            session,
            collector,
            filter,
            views,
            interrupts,
            stopping: false,
            ends_by: None,
            until: duration.map(|d| time::monotonic() + d),
            in_time: false,
            monitor,
            maps,
            tally,
            reach,
            named,
        };
        run.follow_through();
        Ok(run)
    }

    fn follow_through(&mut self) {
        let mut idle = 0;
        loop {
            let last = self.session.finished();
            let asked = time::monotonic();
            if self.drain() > 0 {
                idle = 0;
            } else {
                idle += 1;
                // Nothing was left: all events before that moment have been seen.
                self.views.iter_mut().for_each(|(v, out)| v.passed(asked, out));
            }
            self.views.iter_mut().for_each(|(_, out)| out.flush());
            self.tell_news();
            self.serve();
            // The recorder comes back only from a session that has finished.
            let enough = if self.monitor.is_some() { 512 } else { 8 };
            if last || (self.stopping && matches!(self.plan.target, Target::Command(_)) && idle > enough) {
                return;
            }
            if let Some(wish) = self.interrupts.poll() {
                self.obey(wish);
            }
            if self.until.is_some_and(|t| time::monotonic() >= t) && !self.stopping {
                self.in_time = true;
                self.obey(Wish::Leave);
            }
            if self.is_for_nobody() && !self.stopping {
                self.obey(Wish::Leave);
            }
            if idle > 0 {
                self.session.wait(Collector::pause(idle));
            }
        }
    }

    /// Whether nobody is left to write to, and no command whose end is to be passed on.
    fn is_for_nobody(&self) -> bool {
        let unread = !self.views.is_empty() && self.views.iter().all(|(_, out)| out.failed());
        unread && self.monitor.is_none() && !matches!(self.plan.target, Target::Command(_))
    }

    fn drain(&mut self) -> usize {
        self.reach.iter_mut().for_each(Reach::look);
        let Run { collector, session, filter, views, monitor, maps, .. } = self;
        if let Some(monitor) = monitor {
            maps.drain(|mapping| monitor.mapping(mapping));
            monitor.lost_mappings(maps.lost());
        }
        collector.drain(session, |ev, fds| {
            maps.note(ev);
            show(ev, fds, filter, views)
        })
    }

    fn tell_news(&mut self) {
        let news: Vec<News> = self.monitor.iter().flat_map(Monitor::news).collect();
        for news in news {
            let snapshot = match &news {
                News::Snapshot(path, n) => Ok(json!({"dir": path.to_string_lossy(), "events": n})),
                News::Failed(path, e) | News::NoSnapshot(path, e) => {
                    Err(Error::failed(path.display().to_string(), e.to_string(), "see the recording trapline"))
                }
            };
            self.tell_snapshot(&snapshot);
            complain(&match news {
                News::Failed(path, e) => {
                    let what = "what is there can be read; the command runs on; the rest is counted as dropped";
                    format!("{}: {} ({what})", path.display(), reason(&e))
                }
                News::NoSnapshot(path, e) => {
                    let what = "no whole snapshot was written; the recording goes on, and the command";
                    format!("{}: {} ({what})", path.display(), reason(&e))
                }
                News::Snapshot(path, n) => format!("{}: {n} events", path.display()),
            });
        }
    }

    fn leave(&mut self) {
        self.stopping = true;
        self.session.stop();
    }

    fn obey(&mut self, wish: Wish) {
        match (wish, &self.plan.target) {
            (Wish::Snapshot, _) => self.monitor.iter().for_each(Monitor::snapshot),
            (Wish::End(sig), _) => {
                self.ends_by = Some(sig);
                self.leave();
            }
            (_, Target::Pids(_) | Target::All { .. }) | (Wish::Leave, _) => self.leave(),
            (Wish::PassOn(sig), Target::Command(_)) => {
                if let Some(pid) = self.session.command() {
                    let _ = signal::kill(pid, sig);
                }
            }
            (Wish::Nothing, _) => {}
        }
    }

    /// Says how it went, and passes the command's status on.
    pub fn finish(mut self, m: &ArgMatches, started: u64) -> Result<u8> {
        let failure = self.session.failure(&self.plan);
        for (view, output) in &mut self.views {
            view.end(output);
            output.close();
            self.collector.take_back(&output.take_lost());
        }
        if let Some(monitor) = &self.monitor {
            self.maps.drain(|mapping| monitor.mapping(mapping));
            monitor.lost_mappings(self.maps.lost());
        }
        let lost = self.session.losses();
        let kept = self.session.take_recorder().map(|mut recorder| {
            recorder.set_losses(&lost);
            recorder.finish()
        });
        self.tell_news();
        let kept: Option<Totals> = kept.transpose()?;
        if let Some(e) = failure {
            return Err(e);
        }
        let skipped = self.session.skipped();
        let in_kernel = self.session.filtered();
        let mut filtered = self.tally.as_ref().map(|t| t.total()).unwrap_or_default();
        filtered.add(&in_kernel);
        self.reach.iter_mut().for_each(Reach::look);
        let mut stats = match &kept {
            None => Stats::gather(&self.collector, &lost, &skipped, started),
            Some(totals) => Stats::kept(totals, &lost, &skipped, started),
        };
        // The collector has counted what it has seen, a recorder what it has taken.
        let unseen = if kept.is_some() { &filtered } else { &in_kernel };
        stats.add_filtered(unseen, self.filter.filter.as_deref().map(|w| (w, &filtered)));
        let why = wheres::nothing_matched(&self.filter, &filtered, self.passed(kept.as_ref()));
        stats.add_enablings(&self.plan, self.session.enablings().iter().map(|(_, n)| n), kept.as_ref());
        stats.add_cost(&self.session);
        self.tell(m, &stats, why.as_deref());
        self.farewell(&stats);
        self.status()
    }

    /// Selected calls that passed `--where`.
    fn passed(&self, kept: Option<&Totals>) -> u64 {
        let of = |s: Option<&Schema>, n: u64| {
            n * u64::from(s.is_some_and(|s| s.class == events::Class::Syscall && self.filter.calls.contains(s)))
        };
        match kept {
            Some(totals) => (0..).zip(&totals.taken).map(|(id, n)| of(events::schema::by_id(id), *n)).sum(),
            None => {
                let seen: u64 = self.collector.counters().map(|(s, n)| of(Some(s), n.seen)).sum();
                seen.saturating_sub(self.tally.as_ref().map_or(0, |t| t.total().total()))
            }
        }
    }

    fn tell(&self, m: &ArgMatches, stats: &Stats, nothing: Option<&str>) {
        if let Some(path) = m.get_one::<OsString>("stats")
            && let Err(e) = std::fs::write(path, stats.to_json(self.session.name()) + "\n")
        {
            complain(&format!("--stats {}: {e} (choose a file that you may write)", path.to_string_lossy()));
        }
        if self.session.interrupted() > 0 && m.contains_id("explain") {
            complain(&format!(
                "{} call(s) failed with EINTR because of the attach, see signal(7)",
                self.session.interrupted()
            ));
        }
        self.session.trouble().iter().for_each(|line| complain(line));
        let (names, n) = self.session.let_go();
        if n > 0 && m.get_count("quiet") == 0 {
            let others = if n as usize > names.len() { " and others" } else { "" };
            complain(&format!(
                "{}{others}: not shown, because it has rights that uid {} has not, or may not be read by it (run trapline as root)",
                names.join(", "),
                sys::process::ruid()
            ));
        }
        if self.session.cut_off() > 0 {
            let n = self.session.cut_off();
            complain(&format!(
                "{n} threads took too long to end: what they did last is missing (--duration has no such limit)"
            ));
        }
        if m.get_count("quiet") == 0 {
            nothing.into_iter().for_each(complain);
            self.explain_silence();
            let more = stats.more();
            let name = self.session.name();
            let enough = self.session.large_enough_buffer().filter(|_| stats.dropped > 0);
            let enough = enough.map(|n| format!(" (--buffer {} would have held them)", target::in_units(n)));
            let enough = enough.unwrap_or_default();
            complain(&format!("{} events, {} dropped{more}, {name} backend{enough}", stats.events, stats.dropped));
            if self.plan.measure {
                stats.cost_lines().iter().for_each(|line| complain(line));
            }
        }
    }

    /// A line for each probe that has recorded nothing, but not for hundreds of them.
    fn explain_silence(&self) {
        const MOST: usize = 10;
        let counts = self.session.enablings().iter().map(|(_, n)| n);
        let lines = silence::explain(&self.plan, counts, self.reach.as_ref());
        lines.iter().take(MOST).for_each(|line| complain(line));
        if lines.len() > MOST {
            complain(&format!("{} more probes have recorded nothing (see --stats)", lines.len() - MOST));
        }
    }

    fn status(&mut self) -> Result<u8> {
        match (&self.plan.target, self.session.command_status()) {
            _ if self.session.is_unreadable() => Err(Error::failed(
                "the trace",
                "it ends here, because its events cannot be read any more",
                "what is traced runs on; somebody has written to trapline's memory, or trapline is at fault",
            )),
            // What could not be written has been said.
            (Target::Pids(_) | Target::All { .. }, _) if self.ends_by.is_none() && self.is_for_nobody() => Ok(125),
            (Target::Pids(_) | Target::All { .. }, _) if !self.session.tracer_was_killed() => Ok(0),
            (_, Some(Change::Exited(code))) => Ok(code as u8),
            (_, Some(Change::Killed(sig, _))) => die_of(sig),
            _ if self.in_time || self.named.as_ref().is_some_and(|n| n.destroyed) => Ok(0),
            _ if self.stopping => self.ends_by.map_or(Ok(130), die_of),
            _ => Err(Error::failed(
                "the tracer process was killed",
                if self.plan.filters() { "the command was killed with it" } else { "the target runs on untraced" },
                "--no-seccomp lets a command survive its tracer",
            )),
        }
    }
}

/// Ends trapline by a signal, or where that does not kill with the status that a shell makes of it.
fn die_of(sig: i32) -> Result<u8> {
    signal::die_of(sig);
    Ok((128 + sig) as u8)
}

/// Watches what the target maps.
fn maps_of(target: &Target) -> Maps {
    let mut maps = Maps::new();
    match target {
        Target::Command(_) => maps.watch_children(),
        // What cannot be looked at cannot be attached to either, and that is said then.
        Target::Pids(pids) => pids.iter().for_each(|p| drop(maps.watch_pid(*p))),
        Target::All { .. } => maps.watch_all(),
    }
    maps
}

fn show(ev: &Event<'_>, fds: &FdTable, filter: &Filter, views: &mut Views) -> Fate {
    views.iter_mut().for_each(|(v, _)| v.see(ev));
    if !filter.passes(ev, fds) {
        // What else a view learns from an event it does not show (that there are several threads) is in `fork` and
        // `attach`, which always pass.
        return Fate::Filtered;
    }
    let mut fate = Fate::Dropped;
    for (view, output) in views.iter_mut().filter(|(_, out)| !out.failed()) {
        view.event(ev, fds, output);
        // What cannot be written after all is taken back at the end.
        fate = Fate::Recorded;
    }
    fate
}
