//! The profile of a recorded trace.

use super::has_selected_stacks;
use super::sink::{Profile, ProfileSink};
use crate::ask::Ask;
use crate::durations;
use crate::stacks;
use crate::view::screen::Clocks;
use ctf::trace::{Found, Trace};
use engine::backend::recorded::Recorded;
use engine::pipeline::pump::Pump;
use engine::pipeline::selection::Selection;
use engine::pipeline::source::Source;
use engine::resolver::{Origin, Resolver};
use engine::{Error, Result};
use events::Schema;
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

/// The profile of all events of a trace that have stacks.
pub fn of_trace(ask: &Ask, dir: &Path) -> Result<Rc<RefCell<Profile>>> {
    let failed = |why: String, todo: &str| Error::failed(dir.display().to_string(), why, todo);
    let _ = sys::process::raise_file_limit();
    let trace = match ctf::trace::open(dir) {
        Ok(Found::Native(trace)) => trace,
        Ok(Found::Foreign) => {
            return Err(failed("it is not a trace of trapline".into(), "name one, or a file of folded stacks"));
        }
        Err(e) => return Err(failed(e.to_string(), "name a trace, or a file of folded stacks")),
    };
    durations::of_trace(ask, &trace, &Selection::all())?;
    let classes = classes(&trace);
    has_selected_stacks(dir, &classes)?;
    let profile = super::profile(ask, &classes)?;
    let style = crate::view::stacks::style(ask, String::new(), Clocks::now())?;
    let sink = ProfileSink::new(Rc::clone(&profile), Vec::new(), style, false);
    let source = Source::new(Box::new(Recorded::new(&trace, 0, u64::MAX)), None);
    let mut pump = Pump::new(source, Selection::all(), vec![Box::new(sink)]);
    pump.keep_descriptors();
    let resolver = Resolver::new(Origin::of_trace(dir, &trace.metadata), stacks::places(&ask.names)?);
    pump.resolve_stacks(resolver.without_lines());
    while !pump.turn().ended {}
    pump.end_sinks(trace.lost());
    Ok(profile)
}

/// The classes of its events.
fn classes(trace: &Trace) -> Vec<&'static Schema> {
    let known = trace.classes();
    known.collect()
}
