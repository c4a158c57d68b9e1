//! `trapline heap`: who holds a program's memory.

mod collector;
mod control;
mod feed;
mod from_events;
pub mod past;
mod sink;

use crate::record::{self, Planned};
use crate::run::Run;
use crate::{show, target};
use clap::ArgMatches;
use engine::functions::Functions;
use engine::heap::classes::ALL;
use engine::heap::{Enabled, Shared, Wanted};
use engine::pipeline::selection::Selection;
use engine::plan::OnFull;
use engine::select::Calls;
use engine::{Error, Result};
pub use feed::Feed;
pub use sink::{Drawing, HeapSink, Style};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use views::heap::{Model, Of, Options};

/// Runs the command.
pub fn run(m: &ArgMatches, started: u64) -> Result<u8> {
    if let Some((verb, m)) = m.subcommand() {
        return control::run(verb, m);
    }
    let collects = m.get_flag("collector");
    let dir = m.get_one::<OsString>("output").map(PathBuf::from);
    let mut wanted: Vec<&str> = m.get_many::<String>("as").into_iter().flatten().map(String::as_str).collect();
    if dir.is_none() && wanted.is_empty() && !collects {
        wanted.push("leaks");
    }
    let drawings = wanted.iter().map(|text| Drawing::open(text)).collect::<Result<Vec<_>>>()?;
    let style = style(m)?;
    let sample = m.get_one::<String>("sample").map(|s| target::bytes("--sample", s)).transpose()?.unwrap_or(0);
    let feed = Arc::new(Mutex::new(Feed::new(Model::sampled(sample))));
    let heap = match dir {
        Some(_) if sample > 0 => {
            return Err(Error::usage("--sample", "a trace has all allocations", "leave -o out"));
        }
        Some(_) => Wanted { packed: true, ..Wanted::events(all(), false) },
        None => Wanted { stacks: true, sample, consumer: Some(Shared::new(&feed)), ..Wanted::default() },
    };
    let functions = Functions { none: true, heap: Some(heap), ..Functions::default() };
    let mut selection = Selection::all();
    selection.calls = Calls::parse("none")?;
    let server = if collects { Some(collector::begin(process(m))?) } else { None };
    let Planned { mut plan, why, selection } = record::plan_functions(m, functions, selection)?;
    if !m.contains_id("on-full") {
        plan.on_full = OnFull::Block;
    }
    let clocks = show::Clocks::session(m);
    let keep = dir.map(|dir| record::recorder(m, dir, &mut plan, &selection, false, clocks)).transpose()?;
    let sinks = match server {
        Some(server) => collector::Collector::new(feed, server, process(m), style, sample).sinks(),
        None => HeapSink::new(feed, drawings, style).sinks(),
    };
    Run::through(m, plan, &why, selection, sinks, keep, None)?.finish(m, started)
}

/// The process that is attached to; 0: there is none, or there are several.
fn process(m: &ArgMatches) -> i32 {
    let texts: Vec<&String> = m.try_get_many::<String>("attach").ok().flatten().into_iter().flatten().collect();
    if let [one] = texts[..] { one.parse().unwrap_or(0) } else { 0 }
}

/// All probes of the heap.
fn all() -> Vec<Enabled> {
    ALL.iter().map(|(probe, ..)| Enabled { probe: *probe, stack: true, filter: None, text: None }).collect()
}

/// How the heap is shown, as the options have it.
pub fn style(m: &ArgMatches) -> Result<Style> {
    let of = m.get_one::<String>("of").and_then(|of| Of::parse(of)).unwrap_or_default();
    let top = m.get_one::<u32>("top").map_or(Options::default().top, |n| *n as usize);
    let min_age = m.get_one::<String>("min-age").map(|t| target::duration("--min-age", t)).transpose()?.unwrap_or(0);
    let words = m.try_get_many::<OsString>("command").ok().flatten().into_iter().flatten();
    let program = words.map(|w| w.to_string_lossy().into_owned()).next();
    let name = program.map(|p| p.rsplit('/').next().unwrap_or_default().to_string());
    let comm = || sys::proc::comm(process(m)).map(|c| String::from_utf8_lossy(&c).into_owned());
    let name = name.or_else(comm).unwrap_or_default();
    let realtime_offset = sys::time::realtime() as i64 - sys::time::monotonic() as i64;
    Ok(Style { options: Options { name, top, of, lost: None }, min_age, realtime_offset })
}
