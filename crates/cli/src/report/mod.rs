//! `trapline report`: any view of a trace, later, elsewhere.

mod lines;
mod other;
mod progress;
mod tables;
mod window;

use crate::complain;
use crate::filter::Filter;
use crate::output::Output;
use crate::run::Views;
use crate::show::{self, Clocks};
use crate::wheres;
use clap::ArgMatches;
use ctf::trace::{Found, Trace};
use engine::fdtable::FdTable;
use engine::plan::for_descriptors;
use engine::select::Calls;
use engine::sieve::{Sieve, Where};
use engine::{Error, Result};
use events::Event;
use progress::Progress;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use window::Window;

/// Runs the command.
pub fn run(m: &ArgMatches) -> Result<u8> {
    let dir = m.get_one::<OsString>("dir").map(PathBuf::from).unwrap_or_default();
    let dir = the_trace(dir)?;
    if !dir.join("metadata").exists() {
        return other::run(m, &dir);
    }
    match ctf::trace::open(&dir).map_err(|e| unreadable(&dir, &e))? {
        Found::Own(trace) => own(m, &trace),
        Found::Other => other::run(m, &dir),
    }
}

/// A flight recorder's directory holds snapshots, of which one is meant. One of LTTng holds several traces, which belong together.
fn the_trace(dir: PathBuf) -> Result<PathBuf> {
    let refuse = |why: String, todo: String| Err(Error::failed(dir.display().to_string(), why, todo));
    if !dir.is_dir() {
        return refuse("no such directory".into(), "name a trace".into());
    }
    if dir.join("metadata").exists() {
        return Ok(dir);
    }
    let found = ctf::read::find(&dir).unwrap_or_default();
    let snapshots: Vec<_> =
        found.iter().filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("snapshot-"))).collect();
    match snapshots.as_slice() {
        [] if found.is_empty() => refuse("not a trace: it has no metadata".into(), "name a trace".into()),
        [] => Ok(dir),
        [one] => Ok((*one).clone()),
        [first, ..] => refuse(
            format!("it holds {} snapshots", snapshots.len()),
            format!("name one, for instance {}", first.display()),
        ),
    }
}

fn unreadable(dir: &Path, e: &ctf::own::Error) -> Error {
    Error::failed(dir.display().to_string(), e.to_string(), "the trace is damaged, or is none")
}

fn own(m: &ArgMatches, trace: &Trace) -> Result<u8> {
    let (mut filter, raw) = show::filter(m)?;
    // What is in the trace is counted whole; live views have no mappings.
    filter.mappings =
        m.get_flag("mappings") || m.get_many::<String>("as").into_iter().flatten().any(|v| v.starts_with("stats"));
    if let Some(selected) = trace.metadata.env_str("select").filter(|_| filter.calls.is_all())
        && let Ok(calls) = Calls::parse(selected)
    {
        filter.lives = !calls.is_empty();
        filter.calls = calls;
    }
    filter.filter = wheres::parse(m, &filter.calls)?;
    sieves(trace, &mut filter);
    let clock = trace.metadata.clock(ctf::classes::CLOCK);
    let clocks = Clocks {
        realtime_offset: clock.map_or(0, |c| c.offset_s.saturating_mul(1_000_000_000).saturating_add(c.offset)),
        utc_offset: trace.metadata.env_int("utc_offset").unwrap_or(0),
        string: trace.metadata.env_int("string_limit").and_then(|n| n.try_into().ok()),
    };
    let window = Window::parse(m, trace.data.span().map_or(0, |s| s.0), clocks)?;
    let pids = pids(m)?;
    let whole = pids.is_empty() && filter.is_all() && window == Window { from: 0, to: u64::MAX };
    let wanted: Vec<String> = m.get_many::<String>("as").into_iter().flatten().cloned().collect();
    let wanted = if wanted.is_empty() { vec!["text".to_string()] } else { wanted };
    let mut views = Views::new();
    for view in &wanted {
        let (kind, file) = view.split_once('=').map_or((view.as_str(), None), |(k, f)| (k, Some(f)));
        let output = Output::view(file)?.of_the_past();
        let shown = match kind {
            "stats" => tables::stats(trace, clocks, whole),
            kind => match tables::latency(m, &output)? {
                Some(table) => table,
                None => show::views(m, &output, raw.clone(), Some(kind), clocks)?,
            },
        };
        views.push((shown, output));
    }
    let names = needs_names(m, &filter);
    let keep = |ev: &Event<'_>| pids.is_empty() || pids.contains(&ev.pid()) || pids.contains(&ev.tid());
    let progress = Progress::new(m.get_count("quiet") > 0, trace.data.bytes());
    let result = match &mut views[..] {
        [(view, output)] if !names && view.is_lines_only() && !m.get_flag("relative-timestamps") => {
            let options = show::options(m, output, raw.clone(), clocks)?;
            let kind = wanted[0].split('=').next().unwrap_or_default();
            let make = || show::lines_of(kind, options.clone()).ok();
            lines::write(trace, window, &filter, &keep, make, output, &progress)
        }
        _ => in_order(trace, window, &filter, &keep, names, &mut views, &progress),
    };
    for (view, output) in &mut views {
        view.end(output);
        output.close();
    }
    progress.done();
    result.map_err(|e| unreadable(&trace.dir, &e))?;
    tell(m, trace);
    // The first one is the command line's.
    if let Some(tally) = filter.filter.as_ref().and(filter.sieves.first()).map(Sieve::tally)
        && m.get_count("quiet") == 0
        && let Some(why) = wheres::nothing_matched(&filter, &tally.total(), tally.passed())
    {
        complain(&why);
    }
    if let Some(trouble) = views.iter_mut().find_map(|(_, output)| output.trouble()) {
        return Err(trouble);
    }
    damage(trace)
}

/// Says what could not be read.
fn damage(trace: &Trace) -> Result<u8> {
    let all = trace.data.damage();
    let Some(first) = &all.first else { return Ok(0) };
    let places = if all.places == 1 { "1 place".into() } else { format!("{} places", all.places) };
    let file = first.path.file_name().unwrap_or_default().to_string_lossy();
    let why =
        format!("{} bytes in {places} are damaged; the first, {file} at byte {}: {}", all.bytes, first.at, first.what);
    Err(Error::failed(trace.dir.display().to_string(), why, "all else was shown"))
}

/// Shows the events one after the other, with what is known of descriptors and processes.
fn in_order(
    trace: &Trace,
    window: Window,
    filter: &Filter,
    keep: &dyn Fn(&Event<'_>) -> bool,
    names: bool,
    views: &mut Views,
    progress: &Progress,
) -> std::result::Result<(), ctf::own::Error> {
    let mut fds = FdTable::default();
    if names {
        fds.enable();
    }
    // Names come from what was before the window.
    let from = if names { 0 } else { window.from };
    let mut events = trace.data.events(&trace.known, from, window.to);
    let mut n = 0u32;
    loop {
        if n.is_multiple_of(4096) {
            progress.at(events.bytes_read());
        }
        n = n.wrapping_add(1);
        let Some((bytes, _)) = events.next()? else { return Ok(()) };
        let Ok(ev) = Event::parse(bytes) else { continue };
        fds.before(&ev);
        if ev.time() >= window.from && keep(&ev) {
            views.iter_mut().for_each(|(v, _)| v.see(&ev));
            if filter.passes(&ev, &fds) {
                for (view, output) in views.iter_mut().filter(|(_, out)| !out.failed()) {
                    view.event(&ev, &fds, output);
                }
            }
        }
        fds.after(&ev);
        if views.iter().all(|(_, out)| out.failed()) {
            return Ok(());
        }
    }
}

/// Whether a view or the filter asks for names of descriptors or threads.
fn needs_names(m: &ArgMatches, filter: &Filter) -> bool {
    m.get_count("fd") > 0
        || !filter.paths.is_empty()
        || m.contains_id("decode-pids")
        || m.get_one::<String>("latency").is_some_and(|by| by != "call")
        || filter.sieves.iter().any(|s| s.filter().asks_comm() || s.filter().asks_ids())
}

/// `--where`, and what the recording has kept in spite of its own: calls that names of descriptors need.
fn sieves(trace: &Trace, filter: &mut Filter) {
    if let Some(own) = &filter.filter {
        filter.sieves.push(Sieve::new(Arc::clone(own), |s| filter.calls.contains(s)));
    }
    let Some(text) = trace.metadata.env_str("where") else { return };
    let params: Vec<String> =
        (1..).map_while(|i| trace.metadata.env_str(&format!("where_{i}")).map(str::to_string)).collect();
    if let Ok(recorded) = Where::new(text, &params, &filter.calls) {
        filter.sieves.push(Sieve::new(Arc::new(recorded), |s| filter.calls.contains(s) && for_descriptors(s)));
    }
}

fn pids(m: &ArgMatches) -> Result<Vec<u32>> {
    let lists = m.get_many::<String>("pid").into_iter().flatten();
    lists
        .flat_map(|l| l.split([',', ' ']).map(str::to_string).collect::<Vec<_>>())
        .filter(|p| !p.is_empty())
        .map(|p| p.parse().map_err(|_| Error::usage(format!("-p {p}"), "not a process id", "for instance -p 1234")))
        .collect()
}

/// Says what is missing.
fn tell(m: &ArgMatches, trace: &Trace) {
    if m.get_count("quiet") > 0 {
        return;
    }
    let dir = trace.dir.display();
    if trace.live {
        complain(&format!("{dir}: the recording goes on (shown is what has been written so far)"));
    } else if trace.end.is_none() {
        complain(&format!(
            "{dir}: the end is missing: the recording was killed, or its disk was full (shown is what there is)"
        ));
    }
    let torn: u64 = trace.data.torn.iter().map(|t| t.rest).sum();
    if torn > 0 && !trace.live {
        complain(&format!("{dir}: {torn} bytes of packets that are not whole were left out"));
    }
    let lost = trace.data.discarded();
    if lost > 0 {
        complain(&format!("{dir}: {lost} events were dropped while it was recorded (see --buffer and --on-full)"));
    }
    let old = trace.counted("overwritten").unwrap_or(0);
    if old > 0 {
        complain(&format!("{dir}: {old} older events had to go for newer ones"));
    }
}
