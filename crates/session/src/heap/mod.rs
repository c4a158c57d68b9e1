//! `trapline heap`: who holds a program's memory.

mod collector;
pub mod control;
mod feed;
mod from_events;
pub mod past;
mod sink;

use crate::ask::Ask;
use crate::complain;
use crate::nothing;
use crate::of_agent::OfAgent;
use crate::record::{self, Planned};
use crate::run::{Run, Status};
use crate::target;
use crate::view;
use crate::view::screen::Clocks;
use engine::heap::Shared;
use engine::pipeline::selection::Selection;
use engine::plan::OnFull;
use engine::request::enabling::What;
use engine::request::functions::Functions;
use engine::request::heap_enabling::{HeapEnabling, Wanted};
use engine::request::select::Calls;
use engine::{Error, Result};
pub use feed::Feed;
pub use sink::{Drawing, HeapSink, Kept, Style, close};
use std::sync::{Arc, Mutex};
use views::heap::{Model, Of, Options};

/// Runs the command.
pub fn run(ask: &Ask) -> Result<Status> {
    let collects = ask.heap.collector;
    let dir = ask.keep.dir();
    let wanted = if collects { Vec::new() } else { view::wanted(ask, "leaks") };
    let drawings = wanted.iter().map(Drawing::open).collect::<Result<Vec<_>>>()?;
    let style = style(ask)?;
    let sample = ask.heap.sample.as_ref().map(|s| target::bytes("--sample", s)).transpose()?.unwrap_or(0);
    let feed = Arc::new(Mutex::new(Feed::new(Model::sampled(sample))));
    let heap = match dir {
        Some(_) if sample > 0 => {
            return Err(Error::usage("--sample", "a trace has all allocations", "leave -o out"));
        }
        Some(_) => Wanted { packed: true, ..Wanted::events(&HeapEnabling::all(), false) },
        None => Wanted { stacks: true, sample, consumer: Some(Shared::new(&feed)), ..Wanted::default() },
    };
    let functions = Functions { none: true, heap: Some(heap), ..Functions::default() };
    let enablings = HeapEnabling::all().into_iter().map(What::Heap).collect();
    let of_agent = OfAgent { functions, enablings, probes: Vec::new() };
    let mut selection = Selection::all();
    selection.calls = Calls::parse("none")?;
    let server = if collects { Some(collector::begin(process(ask))?) } else { None };
    let Planned { mut plan, why, selection } = record::plan_functions(ask, of_agent, selection)?;
    if ask.tracing.on_full.is_none() {
        plan.on_full = OnFull::Block;
    }
    let clocks = Clocks::session(&ask.format);
    let keep = dir.map(|dir| record::recorder(ask, dir, &mut plan, &selection, false, clocks)).transpose()?;
    let sinks = match server {
        Some(server) => collector::Collector::new(Arc::clone(&feed), server, process(ask), style, sample).sinks(),
        None => HeapSink::new(Arc::clone(&feed), drawings, style).sinks(),
    };
    Run::through(ask, plan, &why, selection, sinks, keep, None)?.finish_with(ask, |_, events, _| {
        let sum = sink::locked(&feed).model.summary();
        let blocks = sum.numbers.total.blocks + sum.numbers.mapped_total.blocks;
        if !collects && ask.quiet == 0 && events + blocks + sum.lost == 0 {
            complain(&nothing::allocations(!ask.target.attach.is_empty(), sample > 0));
        }
        Ok(())
    })
}

/// The one process to attach to; 0 for no process, or several.
fn process(ask: &Ask) -> i32 {
    if let [one] = &ask.target.attach[..] { one.parse().unwrap_or(0) } else { 0 }
}

/// How the heap is shown, as the options have it.
pub fn style(ask: &Ask) -> Result<Style> {
    let of = ask.heap.of.as_ref().and_then(|of| Of::parse(of)).unwrap_or_default();
    let top = ask.heap.top.as_ref().map_or(Options::default().top, |n| *n as usize);
    let min_age = ask.heap.min_age.as_ref().map(|t| target::duration("--min-age", t)).transpose()?.unwrap_or(0);
    let words = ask.target.command.iter();
    let program = words.map(|w| w.to_string_lossy().into_owned()).next();
    let name = program.map(|p| p.rsplit('/').next().unwrap_or_default().to_string());
    let comm = || sys::proc::comm(process(ask)).map(|c| String::from_utf8_lossy(&c).into_owned());
    let name = name.or_else(comm).unwrap_or_default();
    let realtime_offset = sys::time::realtime() as i64 - sys::time::monotonic() as i64;
    let (lens, least) = view::stacks::lens(ask)?;
    Ok(Style { options: Options { name, top, of, lost: None, lens, least }, min_age, realtime_offset })
}
