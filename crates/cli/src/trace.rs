//! `trapline trace`: system calls, live.

use crate::complain;
use crate::filter::Filter;
use crate::output::Output;
use crate::stats::Stats;
use clap::ArgMatches;
use engine::backend::Session;
use engine::capture::Limits;
use engine::collector::{Collector, Fate};
use engine::command::{self, Variable};
use engine::fdtable::FdTable;
use engine::plan::{Backend, OnFull, Plan, Target};
use engine::select::{Calls, Outcomes, Signals};
use engine::{Error, Result};
use events::Event;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use sys::ptrace::Change;
use sys::{signal, time};
use views::View;
use views::options::{FdNames, HexStrings, Options, Prefix, Stamp, Xlat};
use views::sorted::Reorder;

const INT: i32 = 2;
const HUP: i32 = 1;
const QUIT: i32 = 3;
const TERM: i32 = 15;

/// Runs the command.
pub fn run(m: &ArgMatches, started: u64) -> Result<u8> {
    if m.get_flag("stack-trace") {
        return Err(Error::usage("-k", "stacks are not shown yet", "leave it out"));
    }
    let (filter, raw) = filter(m)?;
    let (plan, why) = plan(m, &filter)?;
    let output = m.get_one::<OsString>("output");
    let per_thread = m.get_count("follow") > 1 && output.is_some();
    // Opened before the command starts: a file that cannot be written is an error, not a surprise.
    let output = Output::open(output, m.get_flag("output-append-mode"), per_thread)?;
    let mut view = views_for(m, &output, raw)?;
    if m.get_flag("explain") {
        let text: String = plan.explain(&why).iter().map(|l| format!("trapline: {l}\n")).collect();
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
    if let Target::Pids(p) = &plan.target
        && p.len() > 1
    {
        view.expect_several();
    }
    let session = Session::start(&plan)?;
    let mut run = Run {
        plan,
        session,
        collector: Collector::default(),
        filter,
        view,
        output,
        interrupts: Interrupts::watch(),
        stopping: false,
    };
    if run.plan.fd_names {
        run.collector.fds.enable();
    }
    run.follow_through();
    run.finish(m, started)
}

/// A trace under way.
struct Run {
    plan: Plan,
    session: Session,
    collector: Collector,
    filter: Filter,
    view: Shown,
    output: Output,
    interrupts: Interrupts,
    stopping: bool,
}

impl Run {
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
                self.view.passed(asked, &mut self.output);
            }
            self.output.flush();
            if last || (self.stopping && matches!(self.plan.target, Target::Command(_)) && idle > 8) {
                return;
            }
            if let Some(wish) = self.interrupts.poll() {
                self.obey(wish);
            }
            if idle > 0 {
                self.session.wait(Collector::pause(idle));
            }
        }
    }

    fn drain(&mut self) -> usize {
        let Run { collector, session, filter, view, output, .. } = self;
        collector.drain(session, |ev, fds| show(ev, fds, filter, view, output))
    }

    fn obey(&mut self, wish: Wish) {
        match (wish, &self.plan.target) {
            (_, Target::Pids(_)) | (Wish::Leave, _) => {
                self.stopping = true;
                self.session.stop();
            }
            (Wish::PassOn(sig), Target::Command(_)) => {
                if let Some(pid) = self.session.command() {
                    let _ = signal::kill(pid, sig);
                }
            }
            (Wish::Nothing, _) => {}
        }
    }

    /// Says how it went, and passes the command's status on.
    fn finish(mut self, m: &ArgMatches, started: u64) -> Result<u8> {
        self.view.end(&mut self.output);
        let failure = self.session.failure(&self.plan);
        self.output.close();
        self.collector.take_back(&self.output.take_lost());
        let stats = Stats::gather(&self.collector, self.session.dropped(), started);
        if let Some(e) = failure {
            return Err(e);
        }
        if let Some(path) = m.get_one::<OsString>("stats")
            && let Err(e) = std::fs::write(path, stats.to_json(self.session.name()) + "\n")
        {
            complain(&format!("--stats {}: {e} (choose a file that you may write)", path.to_string_lossy()));
        }
        if self.session.interrupted() > 0 && m.get_flag("explain") {
            complain(&format!(
                "{} call(s) failed with EINTR because of the attach, see signal(7)",
                self.session.interrupted()
            ));
        }
        if let Some(trouble) = self.session.trouble() {
            complain(&format!("event backlog: {trouble}"));
        }
        if m.get_count("quiet") == 0 {
            complain(&format!("{} events, {} dropped, {} backend", stats.events, stats.dropped, self.session.name()));
        }
        match (&self.plan.target, self.session.command_status()) {
            (Target::Pids(_), _) if !self.session.tracer_was_killed() => Ok(0),
            (_, Some(Change::Exited(code))) => Ok(code as u8),
            (_, Some(Change::Killed(sig, _))) => {
                signal::die_of(sig);
                Ok((128 + sig) as u8)
            }
            _ if self.stopping => Ok(130),
            _ => Err(Error::failed(
                "the tracer process was killed",
                if self.plan.filters() { "the command was killed with it" } else { "the target runs on untraced" },
                "--no-seccomp lets a command survive its tracer",
            )),
        }
    }
}

fn show(ev: &Event<'_>, fds: &FdTable, filter: &Filter, view: &mut Shown, output: &mut Output) -> Fate {
    view.see(ev);
    if !filter.passes(ev, fds) {
        // What else a view learns from an event it does not show (that there are several threads) is in `fork` and
        // `attach`, which always pass.
        return Fate::Filtered;
    }
    if output.failed() {
        return Fate::Dropped;
    }
    view.event(ev, fds, output);
    // What cannot be written after all is taken back at the end.
    Fate::Recorded
}

/// The views of a trace.
struct Shown {
    lines: Option<Box<dyn View>>,
    table: Option<Box<dyn View>>,
    /// `--sort start`: lines wait here.
    order: Option<Reorder>,
    line: Vec<u8>,
}

impl Shown {
    /// Learns from an event, whether it will be shown or not.
    fn see(&mut self, ev: &Event<'_>) {
        if let Some(order) = &mut self.order {
            order.see(ev);
        }
    }
    fn event(&mut self, ev: &Event<'_>, fds: &FdTable, out: &mut Output) {
        if let Some(t) = &mut self.table {
            t.event(ev, fds, out.buffer());
        }
        let Some(order) = &mut self.order else {
            if let Some(v) = &mut self.lines {
                v.event(ev, fds, out.buffer());
            }
            return out.event_done(ev.tid(), ev.schema.id);
        };
        self.line.clear();
        if let Some(v) = &mut self.lines {
            v.event(ev, fds, &mut self.line);
        }
        order.push(ev, &self.line);
        release(order, out);
    }
    /// Every event before `now` has been seen.
    fn passed(&mut self, now: u64, out: &mut Output) {
        if let Some(order) = &mut self.order {
            order.passed(now);
            release(order, out);
        }
    }
    fn end(&mut self, out: &mut Output) {
        if let Some(order) = &mut self.order {
            order.finish();
            release(order, out);
        }
        if let Some(v) = &mut self.lines {
            v.end(out.buffer());
        }
        if let Some(t) = &mut self.table {
            t.end(out.buffer());
        }
    }
    fn expect_several(&mut self) {
        if let Some(v) = &mut self.lines {
            v.expect_several();
        }
    }
}

/// Writes the lines whose turn it is. An event is done when its line is out: it may be lost until then.
fn release(order: &mut Reorder, out: &mut Output) {
    while let Some(held) = order.pop() {
        out.buffer().extend_from_slice(&held.text);
        out.event_done(held.tid, held.id);
    }
}

fn views_for(m: &ArgMatches, output: &Output, raw: Vec<bool>) -> Result<Shown> {
    let opts = options(m, output, raw)?;
    let order = m.get_one::<String>("sort").is_some_and(|s| s == "start").then(Reorder::default);
    if order.is_some() && opts.stamp == Stamp::Relative {
        return Err(Error::usage(
            "--sort start",
            "-r tells the time since the line before",
            "use -ttt, or leave -r out",
        ));
    }
    let summary = m.get_flag("summary-only") || m.get_flag("summary");
    // Made in any case, so that a bad -S or -U is never overlooked.
    let table = Some(summary_view(m)?).filter(|_| summary);
    let lines: Option<Box<dyn View>> = match m.get_one::<String>("as").map(String::as_str) {
        _ if m.get_flag("summary-only") => None,
        Some("json") => Some(Box::new(views::json::Json::new(opts))),
        Some("record") => Some(Box::new(views::record::Record::new())),
        _ => Some(Box::new(views::text::Text::new(opts))),
    };
    Ok(Shown { lines, table, order, line: Vec::new() })
}

fn summary_view(m: &ArgMatches) -> Result<Box<dyn View>> {
    use views::summary::{Column, Sort, Summary};
    let sort = match m.get_one::<String>("summary-sort-by") {
        None => Sort::Time,
        Some(s) => Sort::parse(s).ok_or_else(|| {
            Error::usage(format!("-S {s}"), "no such order", "time, calls, errors, name, min, max, avg or nothing")
        })?,
    };
    let table = Summary::new(sort);
    Ok(Box::new(match m.get_one::<String>("summary-columns") {
        None => table,
        Some(list) => table.columns(Column::parse(list).ok_or_else(|| {
            let all = "time-percent, total-time, min-time, max-time, avg-time, calls, errors, name";
            Error::usage(format!("-U {list}"), "no such column, or one twice", all)
        })?),
    }))
}

fn options(m: &ArgMatches, output: &Output, raw: Vec<bool>) -> Result<Options> {
    let colour = match m.get_one::<String>("color").map(String::as_str) {
        Some("always") => true,
        Some("never") => false,
        _ => {
            !output.is_file() && sys::process::is_terminal(&std::io::stderr()) && std::env::var_os("NO_COLOR").is_none()
        }
    };
    let (mono, real) = (time::monotonic(), time::realtime());
    Ok(Options {
        stamp: match m.get_count("time") {
            _ if m.get_flag("relative-timestamps") => Stamp::Relative,
            0 => Stamp::None,
            1 => Stamp::Clock,
            2 => Stamp::ClockMicros,
            _ => Stamp::Epoch,
        },
        duration: m.get_flag("syscall-times"),
        verbose: m.get_flag("no-abbrev"),
        xlat: match m.get_one::<String>("const-print-style").map(String::as_str) {
            Some("raw") => Xlat::Raw,
            Some("verbose") => Xlat::Verbose,
            _ => Xlat::Abbrev,
        },
        hex_strings: match m.get_count("hex") {
            0 => HexStrings::No,
            1 => HexStrings::NonAscii,
            _ => HexStrings::All,
        },
        fd_names: match m.get_count("fd") {
            0 => FdNames::No,
            1 => FdNames::Path,
            _ => FdNames::Full,
        },
        comm: m.contains_id("decode-pids"),
        numbers: m.get_flag("syscall-number"),
        types: m.get_flag("types"),
        column: m.get_one::<u16>("columns").copied().unwrap_or(40).into(),
        prefix: match output {
            o if o.is_per_thread() => Prefix::Never,
            o if o.is_file() => Prefix::Always,
            _ => Prefix::WhenSeveral,
        },
        colour,
        realtime_offset: real as i64 - mono as i64,
        utc_offset: time::utc_offset((real / 1_000_000_000) as i64),
        raw,
    })
}

fn filter(m: &ArgMatches) -> Result<(Filter, Vec<bool>)> {
    let mut f = Filter { calls: Calls::all(), outcomes: Outcomes::ALL, signals: Signals::all(), paths: Vec::new() };
    let mut raw = Vec::new();
    let strings = |id: &str| m.get_many::<String>(id).into_iter().flatten().cloned();
    let exprs = strings("expr")
        .chain(strings("trace").map(|s| format!("trace={s}")))
        .chain(strings("signal").map(|s| format!("signal={s}")))
        .chain(strings("status").map(|s| format!("status={s}")));
    for e in exprs {
        let (kind, set) = match e.split_once('=') {
            Some((k, s)) if !k.contains(['/', ',', '%']) => (k, s),
            _ => ("trace", e.as_str()),
        };
        match kind {
            "trace" | "t" => f.calls = Calls::parse(set)?,
            "signal" | "signals" | "s" => f.signals = Signals::parse(set)?,
            "status" => f.outcomes = Outcomes::parse(set)?,
            "raw" | "x" => {
                let calls = Calls::parse(set)?;
                raw = events::generated::SCHEMAS.iter().map(|s| calls.contains(s)).collect();
            }
            other => {
                let hint = crate::strace_flags::equivalent(&format!("--{other}"))
                    .unwrap_or("trace=, signal=, status= or raw=");
                return Err(Error::usage(format!("-e {other}=…"), "no such qualifier", hint));
            }
        }
    }
    if m.get_flag("successful-only") {
        f.outcomes = Outcomes { successful: true, ..Outcomes::NONE };
    }
    if m.get_flag("failed-only") {
        f.outcomes = Outcomes { failed: true, ..Outcomes::NONE };
    }
    for p in m.get_many::<OsString>("trace-path").into_iter().flatten() {
        f.paths.push(p.as_bytes().to_vec());
        if let Ok(full) = std::fs::canonicalize(p) {
            f.paths.push(full.into_os_string().into_vec());
        }
    }
    Ok((f, raw))
}

/// The plan, and why it takes this backend.
fn plan(m: &ArgMatches, filter: &Filter) -> Result<(Plan, String)> {
    let asked = match m.get_one::<String>("backend").map(String::as_str) {
        Some("kernel") => Backend::Kernel,
        Some(b @ "agent") => {
            return Err(Error::usage(format!("--backend {b}"), "not in this build", "use --backend ptrace"));
        }
        Some("ptrace") => Backend::Ptrace,
        _ => Backend::Auto,
    };
    if m.get_flag("all") {
        return Err(Error::usage(
            "-a",
            "the whole machine needs the kernel backend",
            "use -p PID; strace's -a COLUMN is --columns",
        ));
    }
    let fds = m.get_count("fd");
    let on_full = m.get_one::<String>("on-full").map(|s| if s == "drop" { OnFull::Drop } else { OnFull::Block });
    let (backend, why) = asked.taken(on_full);
    let plan = Plan {
        target: target(m)?,
        calls: filter.calls.clone(),
        follow: !m.get_flag("no-follow"),
        limits: Limits {
            string: m.get_one::<u32>("string-limit").map_or(32, |&s| s as usize),
            verbose: m.get_flag("no-abbrev"),
        },
        fd_names: fds > 0 || !filter.paths.is_empty(),
        fd_details: fds > 1,
        seccomp: !m.get_flag("no-seccomp"),
        on_full: on_full.unwrap_or(backend.on_full()),
        buffer: m
            .get_one::<String>("buffer")
            .map_or(Ok(if backend == Backend::Kernel { 4 << 20 } else { 1 << 20 }), |s| size(s))?,
        backend,
        notice_ms: 200,
    };
    Ok((plan, why))
}

/// A size such as `65536`, `64K`, `4M`, rounded up to a power of two.
fn size(s: &str) -> Result<usize> {
    let bad = || Error::usage(format!("--buffer {s}"), "not a size", "for instance 64K or 4M, at most 1G");
    let (digits, unit) = match s.trim_end_matches(['B', 'b', 'i']).char_indices().last() {
        Some((i, 'k' | 'K')) => (&s[..i], 1usize << 10),
        Some((i, 'm' | 'M')) => (&s[..i], 1 << 20),
        Some((i, 'g' | 'G')) => (&s[..i], 1 << 30),
        _ => (s, 1),
    };
    let n: usize = digits.parse().map_err(|_| bad())?;
    let bytes = n.checked_mul(unit).filter(|&b| b > 0 && b <= 1 << 30).ok_or_else(bad)?;
    Ok(bytes.next_power_of_two().max(4096))
}

fn target(m: &ArgMatches) -> Result<Target> {
    let mut pids = Vec::new();
    for list in m.get_many::<String>("attach").into_iter().flatten() {
        for p in list.split([',', ' ', '\n', '\t']).filter(|p| !p.is_empty()) {
            match p.parse::<i32>() {
                Ok(n) if n > 0 && n == sys::process::own_pid() => {
                    return Err(Error::usage(format!("-p {p}"), "is trapline itself", "name another process"));
                }
                Ok(n) if n > 0 => pids.push(n),
                _ => return Err(Error::usage(format!("-p {p}"), "not a process id", "for instance -p $(pidof NAME)")),
            }
        }
    }
    let argv: Vec<OsString> = m.get_many::<OsString>("command").into_iter().flatten().cloned().collect();
    match (pids.is_empty(), argv.is_empty()) {
        (true, true) => Err(Error::usage("trace", "nothing to trace", "trapline trace -- COMMAND, or -p PID")),
        (false, false) => Err(Error::usage("-p", "given together with a command", "trace one or the other")),
        (false, true) => Ok(Target::Pids(pids)),
        (true, false) => {
            let user = match m.get_one::<String>("user") {
                None => None,
                Some(u) => Some(
                    sys::users::lookup(u)
                        .ok_or_else(|| Error::usage(format!("-u {u}"), "no such user", "see 'getent passwd'"))?,
                ),
            };
            if user.is_some() && sys::process::euid() != 0 {
                return Err(Error::failed("-u", "only root may change the user", "run trapline as root"));
            }
            Ok(Target::Command(command::prepare(&argv, &variables(m), user)?))
        }
    }
}

fn variables(m: &ArgMatches) -> Vec<Variable> {
    let mut out = Vec::new();
    for v in m.get_many::<OsString>("env").into_iter().flatten() {
        let b = v.as_bytes();
        out.push(match b.iter().position(|&c| c == b'=') {
            Some(i) => Variable::Set(OsString::from_vec(b[..i].to_vec()), OsString::from_vec(b[i + 1..].to_vec())),
            None => Variable::Remove(v.clone()),
        });
    }
    out
}

/// What a signal to trapline asks for.
enum Wish {
    Nothing,
    /// The command is to have it.
    PassOn(i32),
    /// End the trace.
    Leave,
}

/// Signals to trapline, by how many have been dealt with.
struct Interrupts {
    seen: [(i32, u32, u32); 4],
    last: Option<u64>,
}

impl Interrupts {
    fn watch() -> Interrupts {
        for sig in [INT, QUIT, TERM, HUP] {
            if !signal::is_ignored(sig) {
                let _ = signal::count_signal(sig);
            }
        }
        Interrupts { seen: [INT, QUIT, TERM, HUP].map(|s| (s, 0, 0)), last: None }
    }

    /// The terminal's Ctrl-C reaches the command by itself; what a process sends to trapline alone is passed on. The second
    /// within a second is for trapline.
    fn poll(&mut self) -> Option<Wish> {
        for (sig, seen, sent) in &mut self.seen {
            let n = signal::counted(*sig);
            if n == *seen {
                continue;
            }
            let fresh = n - *seen;
            *seen = n;
            let by_process = signal::sent(*sig) != *sent;
            *sent = signal::sent(*sig);
            let now = time::monotonic();
            let again = fresh > 1 || self.last.is_some_and(|t| now - t < 1_000_000_000);
            self.last = Some(now);
            if again && *sig != QUIT {
                return Some(Wish::Leave);
            }
            return Some(if by_process { Wish::PassOn(*sig) } else { Wish::Nothing });
        }
        None
    }
}
