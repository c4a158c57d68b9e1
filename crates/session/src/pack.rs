//! Puts the names of the functions in a trace's stacks into the trace, for other machines and later times.

use crate::ask::Ask;
use crate::stacks;
use ctf::trace::{Found, Trace};
use engine::backend::recorded::Recorded;
use engine::pipeline::pump::{Flow, Pump, Sink};
use engine::pipeline::selection::Selection;
use engine::pipeline::source::Source;
use engine::pipeline::world::World;
use engine::resolver::{Origin, Packed, Resolver};
use engine::{Error, Result};
use events::Event;
use events::names::Names;
use std::path::Path;

/// `record --pack`: packs the trace that was recorded.
///
/// # Errors
/// Those of the command.
pub fn at_end(ask: &Ask) -> Result<()> {
    let Some(dir) = ask.keep.output.as_ref() else { return Ok(()) };
    pack(ask, Path::new(dir)).map(drop)
}

/// Packs a trace. Returns its packs.
///
/// # Errors
/// The trace belongs to another user, is being recorded, or cannot be read or written.
pub fn pack(ask: &Ask, dir: &Path) -> Result<Vec<Packed>> {
    let _ = sys::process::raise_file_limit();
    let failed = |why: String, todo: &str| Error::failed(format!("pack {}", dir.display()), why, todo);
    let todo = "name the directory of a trace of yours that is not being recorded";
    // Refused before the work, which may take long.
    ctf::packs::write(dir, sys::process::euid(), &[]).map_err(|why| failed(why, todo))?;
    let trace = open(dir).map_err(|why| failed(why, todo))?;
    let packed = packs_of(ask, &trace, Box::new(AllStacks))?;
    let files: Vec<(&str, &[u8])> = packed.iter().map(|p| (p.file.as_str(), &p.bytes[..])).collect();
    ctf::packs::write(dir, sys::process::euid(), &files).map_err(|why| failed(why, todo))?;
    Ok(packed)
}

/// Opens a trace of trapline.
///
/// # Errors
/// The directory is no trace of trapline: the reason, in words.
pub fn open(dir: &Path) -> std::result::Result<Box<Trace>, String> {
    match ctf::trace::open(dir).map_err(|e| e.to_string())? {
        Found::Native(trace) => Ok(trace),
        Found::Foreign => Err("not a trace of trapline".into()),
    }
}

/// Gives all events of a trace to a sink that asks for the functions of their stacks. Returns packs of these.
///
/// # Errors
/// A place where names are to be looked for does not exist.
pub fn packs_of<'t>(ask: &Ask, trace: &'t Trace, sink: Box<dyn Sink + 't>) -> Result<Vec<Packed>> {
    let source = Source::new(Box::new(Recorded::new(trace, 0, u64::MAX)), None);
    let mut pump = Pump::new(source, Selection::all(), vec![sink]);
    pump.keep_descriptors();
    pump.resolve_stacks(Resolver::to_pack(Origin::of_trace(&trace.dir, &trace.metadata), stacks::places(&ask.names)?));
    while !pump.turn().ended {}
    pump.end_sinks(None);
    stacks::tell(ask.quiet, &pump.stack_troubles());
    Ok(pump.resolver().map(|r| r.packed()).unwrap_or_default())
}

/// Asks for the functions of every stack, and shows nothing.
pub struct AllStacks;

impl Sink for AllStacks {
    fn event(&mut self, ev: &Event<'_>, world: &World) -> Result<Flow> {
        let ev = &events::stacks::bearer(ev);
        for stack in events::stacks::of(ev, world) {
            world.frames(ev.pid(), events::stacks::time(ev), &stack.stack(), &mut |_| {});
        }
        Ok(Flow::Continue)
    }

    fn has_written(&self) -> bool {
        false
    }
}
