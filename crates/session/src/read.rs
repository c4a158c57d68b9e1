//! The events of a recorded trace, for programs that embed trapline.

use ctf::trace::{Found, Trace};
use engine::backend::recorded::Recorded;
use engine::pipeline::pump::{Flow, Pump, Sink};
use engine::pipeline::selection::Selection;
use engine::pipeline::source::Source;
use engine::pipeline::world::World;
use engine::{Error, Result};
use events::Event;
use std::path::Path;

/// Gives each event of a trace to a function, in the order of their times, with what is known of threads and descriptors then. Returns how
/// many events the recording has lost; none: that is not known, because its end is missing.
///
/// # Errors
/// The directory has no trace of trapline, or the function has failed.
pub fn read(dir: &Path, each: impl FnMut(&Event<'_>, &World) -> Result<()>) -> Result<Option<u64>> {
    let failed =
        |why: String| Error::failed(dir.display().to_string(), why, "name the DIR of 'trapline record -o DIR'");
    let trace: Box<Trace> = match ctf::trace::open(dir).map_err(|e| failed(e.to_string()))? {
        Found::Native(trace) => trace,
        Found::Foreign => return Err(failed("it is not a trace of trapline".into())),
    };
    let source = Source::new(Box::new(Recorded::new(&trace, 0, u64::MAX)), None);
    let mut pump = Pump::new(source, Selection::all(), vec![Box::new(Each(each))]);
    pump.keep_descriptors();
    while !pump.turn().ended && !pump.is_unread() {}
    pump.end_sinks(trace.lost());
    match pump.take_failures().into_iter().next() {
        Some(e) => Err(e),
        None => Ok(trace.lost()),
    }
}

struct Each<F>(F);

impl<F: FnMut(&Event<'_>, &World) -> Result<()>> Sink for Each<F> {
    fn event(&mut self, ev: &Event<'_>, world: &World) -> Result<Flow> {
        (self.0)(ev, world).map(|()| Flow::Continue)
    }

    fn has_written(&self) -> bool {
        true
    }
}
