//! `trapline report`: any view of a trace, later, elsewhere.

mod lines;
mod other;
mod progress;
mod tables;
mod whole;
mod window;

use crate::complain;
use crate::filter::Filter;
use crate::output::Output;
use crate::run::Views;
use crate::show::{self, Clocks};
use crate::wheres;
use clap::ArgMatches;
use clap::parser::ValueSource;
use ctf::folder::{Folder, reason};
use ctf::trace::{Found, Trace};
use engine::fdtable::FdTable;
use engine::plan::for_descriptors;
use engine::select::Calls;
use engine::sieve::{Sieve, Where};
use engine::{Error, Result};
use events::Event;
use progress::Progress;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use window::Window;

/// Runs the command.
pub fn run(m: &ArgMatches) -> Result<u8> {
    let Some(dir) = m.get_one::<OsString>("dir").map(PathBuf::from) else {
        return Err(Error::usage("report", "no trace is named", "trapline report DIR, of 'trapline record -o DIR'"));
    };
    // A limited trace has many files, which are all open at once.
    let _ = sys::process::raise_file_limit();
    let (dir, several) = the_trace(dir)?;
    if several {
        return other::run(m, &dir);
    }
    match ctf::trace::open(&dir).map_err(|e| unreadable(&dir, &e))? {
        Found::Own(trace) => own(m, &trace),
        Found::Other => other::run(m, &dir),
    }
}

/// What to do about a directory or file that cannot be opened.
fn remedy(e: &io::Error) -> &'static str {
    match e.kind() {
        io::ErrorKind::NotFound => "name a trace: the DIR of 'trapline record -o DIR'",
        io::ErrorKind::NotADirectory => "a trace is a directory: name that one",
        io::ErrorKind::PermissionDenied => "read it as its owner, or as root",
        _ => "the trace is damaged, or is none",
    }
}

/// The directory that is meant, and whether it is one of LTTng with several traces, which belong together. A flight recorder's holds
/// snapshots, of which one is meant.
fn the_trace(dir: PathBuf) -> Result<(PathBuf, bool)> {
    let failed = |why: String, todo: &str| Error::failed(dir.display().to_string(), why, todo);
    let cannot = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound => failed("no such directory".into(), remedy(&e)),
        _ => failed(reason(&e), remedy(&e)),
    };
    let folder = Folder::open(&dir).map_err(cannot)?;
    match folder.metadata("metadata") {
        Ok(_) => return Ok((dir, false)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(cannot(e)),
    }
    if ctf::trace::is_being_written(&dir) {
        return Err(failed("the recording has just begun".into(), "nothing is written yet: try again"));
    }
    let found = ctf::read::find(&dir).unwrap_or_default();
    let snapshots: Vec<_> =
        found.iter().filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("snapshot-"))).collect();
    match snapshots.as_slice() {
        [] if found.is_empty() => {
            Err(failed("not a trace: it has no metadata".into(), "name the DIR of 'trapline record -o DIR'"))
        }
        [] => Ok((dir, true)),
        [one] => Ok(((*one).clone(), false)),
        [first, ..] => Err(failed(
            format!("it holds {} snapshots", snapshots.len()),
            &format!("name one, for instance {}", first.display()),
        )),
    }
}

fn unreadable(dir: &Path, e: &ctf::own::Error) -> Error {
    let todo = match e {
        ctf::own::Error::Io { error, .. } => remedy(error),
        ctf::own::Error::Metadata(ctf::read::Error::Io { source, .. }) => remedy(source),
        ctf::own::Error::Format(_) => "use the trapline that has written it, or a later one",
        _ => "the trace is damaged, or is none",
    };
    Error::failed(dir.display().to_string(), e.to_string(), todo)
}

fn own(m: &ArgMatches, trace: &Trace) -> Result<u8> {
    let (filter, raw) = filter_of(m, trace)?;
    let clocks = clocks_of(trace);
    let window = Window::parse(m, trace.data.span().map_or(0, |s| s.0), clocks)?;
    let pids = pids(m)?;
    let whole = pids.is_empty() && filter.is_all() && window == Window::ALL;
    let wanted: Vec<String> = m.get_many::<String>("as").into_iter().flatten().cloned().collect();
    let wanted = if wanted.is_empty() { vec!["text".to_string()] } else { wanted };
    let mut views = Views::new();
    for view in &wanted {
        let (kind, file) = view.split_once('=').map_or((view.as_str(), None), |(k, f)| (k, Some(f)));
        let output = Output::view(file)?.of_the_past();
        let shown = match kind {
            "stats" | "stats-json" => tables::stats(trace, clocks, whole, kind == "stats-json"),
            kind => match tables::latency(m, kind, &output)? {
                Some(table) => table,
                None => show::views(m, &output, raw.clone(), Some(kind), clocks)?,
            },
        };
        views.push((shown, output));
    }
    let names = needs_names(m, &filter);
    let keep = |ev: &Event<'_>| pids.is_empty() || pids.contains(&ev.pid()) || pids.contains(&ev.tid());
    let progress = Progress::new(m.get_count("quiet") > 0, trace.data.bytes());
    let read = match &mut views[..] {
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
    // Names need what was before the window.
    let all = window.to == u64::MAX && (names || window.from == 0);
    let status = whole::tell(m, trace, read.filter(|_| all));
    if m.get_count("quiet") == 0
        && let Some(why) = nothing_shown(m, trace, &filter, &views, read)
    {
        complain(&why);
    }
    if let Some(trouble) = views.iter_mut().find_map(|(_, output)| output.trouble()) {
        return Err(trouble);
    }
    damage(trace, status)
}

/// What is to be shown, and the calls that are shown raw.
fn filter_of(m: &ArgMatches, trace: &Trace) -> Result<(Filter, Vec<bool>)> {
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
    Ok((filter, raw))
}

/// The clocks of the machine that has recorded the trace.
fn clocks_of(trace: &Trace) -> Clocks {
    let clock = trace.metadata.clock(ctf::classes::CLOCK);
    Clocks {
        realtime_offset: clock.map_or(0, |c| c.offset_s.saturating_mul(1_000_000_000).saturating_add(c.offset)),
        utc_offset: trace.metadata.env_int("utc_offset").unwrap_or(0),
        string: trace.metadata.env_int("string_limit").and_then(|n| n.try_into().ok()),
    }
}

/// Why there is nothing to see, where that is so. `read` is how many events were looked at.
fn nothing_shown(m: &ArgMatches, trace: &Trace, filter: &Filter, views: &Views, read: Option<u64>) -> Option<String> {
    // The first sieve is the command line's.
    if let Some(tally) = filter.filter.as_ref().and(filter.sieves.first()).map(Sieve::tally)
        && let Some(why) = wheres::nothing_matched(filter, &tally.total(), tally.passed())
    {
        return Some(why);
    }
    let read = read.filter(|_| !views.iter().any(|(_, output)| output.has_written()))?;
    let given = |ids: &[&str]| ids.iter().any(|id| m.value_source(id) == Some(ValueSource::CommandLine));
    let selections = [
        ("-e", &["expr", "trace", "signal", "status"][..]),
        ("-p", &["pid"]),
        ("-P", &["trace-path"]),
        ("--where", &["where"]),
        ("-z", &["successful-only"]),
        ("-Z", &["failed-only"]),
        ("--from", &["from"]),
        ("--to", &["to"]),
    ];
    let used: Vec<&str> = selections.iter().filter(|(_, ids)| given(ids)).map(|(name, _)| *name).collect();
    let why = match (read, used.is_empty()) {
        (0, _) if given(&["from", "to"]) => "no event lies between --from and --to".into(),
        (0, _) => "there are no events in it".into(),
        (n, false) => format!("none of the {n} events that were looked at is selected by {}", used.join(", ")),
        (n, true) => format!("its {n} events are trapline's own, which --as json --mappings shows"),
    };
    Some(format!("{}: nothing to show: {why}", trace.dir.display()))
}

/// Says what could not be read; else the status is `status`.
fn damage(trace: &Trace, status: u8) -> Result<u8> {
    let all = trace.data.damage();
    let Some(first) = &all.first else { return Ok(status) };
    let places = if all.places == 1 { "1 place".into() } else { format!("{} places", all.places) };
    let file = first.path.file_name().unwrap_or_default().to_string_lossy();
    let why =
        format!("{} bytes in {places} are damaged; the first, {file} at byte {}: {}", all.bytes, first.at, first.what);
    Err(Error::failed(trace.dir.display().to_string(), why, "all else was shown"))
}

/// Shows the events one after the other, with what is known of descriptors and processes; how many were read, unless nobody
/// wanted to see more.
fn in_order(
    trace: &Trace,
    window: Window,
    filter: &Filter,
    keep: &dyn Fn(&Event<'_>) -> bool,
    names: bool,
    views: &mut Views,
    progress: &Progress,
) -> Option<u64> {
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
        let Some((bytes, _)) = events.next() else { return Some(events.events_read()) };
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
            return None;
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
    // Typed for the calls that are shown, not for those that were selected: one that is not for all of them is not asked again.
    if let Ok(recorded) = Where::new(text, &params, &filter.calls)
        && recorded.note().is_none()
    {
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
