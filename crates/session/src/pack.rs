//! `trapline pack`: puts the names of the functions in a trace's stacks into the trace, for other machines and later times.

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
use std::io::Write;
use std::path::Path;

/// Runs the command.
pub fn run(ask: &Ask) -> Result<u8> {
    if !ask.trace.redact.is_empty() {
        let todo = "what can be given away are views and tables: 'trapline report --redact WHAT --as VIEW=FILE DIR'";
        return Err(Error::usage("pack --redact", "the trace has all that its program has said", todo));
    }
    let dir = ask.trace.dir.clone().unwrap_or_default();
    let packed = pack(ask, &dir)?;
    let mut line = Vec::new();
    for p in &packed {
        let text = format!("{}: {} addresses, {} bytes", p.module, p.addresses, p.bytes.len());
        views::escape::line(text.as_bytes(), &mut line);
        line.push(b'\n');
    }
    if packed.is_empty() {
        line.extend_from_slice(b"nothing to pack: no stack of the trace has an address in a file that was found\n");
    }
    let unwritten = |e: std::io::Error| Error::failed("pack", e.to_string(), "stdout cannot be written");
    std::io::stdout().write_all(&line).map_err(unwritten)?;
    Ok(0)
}

/// `record --pack`: packs the trace that was recorded.
///
/// # Errors
/// Those of the command.
pub fn at_end(ask: &Ask) -> Result<()> {
    let Some(dir) = ask.keep.output.as_ref() else { return Ok(()) };
    pack(ask, Path::new(dir)).map(drop)
}

fn pack(ask: &Ask, dir: &Path) -> Result<Vec<Packed>> {
    let _ = sys::process::raise_file_limit();
    let failed = |why: String, todo: &str| Error::failed(format!("pack {}", dir.display()), why, todo);
    let todo = "name the directory of a trace of yours that is not being recorded";
    // Refused before the work, which may take long.
    ctf::packs::write(dir, sys::process::euid(), &[]).map_err(|why| failed(why, todo))?;
    let trace = match ctf::trace::open(dir).map_err(|e| failed(e.to_string(), todo))? {
        Found::Native(trace) => trace,
        Found::Foreign => return Err(failed("not a trace of trapline".into(), todo)),
    };
    let mut pump = stacks_of(ask, &trace)?;
    let packed = pump.resolver().map(|r| r.packed()).unwrap_or_default();
    let files: Vec<(&str, &[u8])> = packed.iter().map(|p| (p.file.as_str(), &p.bytes[..])).collect();
    ctf::packs::write(dir, sys::process::euid(), &files).map_err(|why| failed(why, todo))?;
    stacks::tell(ask.quiet, &pump.stack_troubles());
    Ok(packed)
}

/// A pump through which all stacks of a trace have gone.
fn stacks_of<'t>(ask: &Ask, trace: &'t Trace) -> Result<Pump<'t>> {
    let source = Source::new(Box::new(Recorded::new(trace, 0, u64::MAX)), None);
    let mut pump = Pump::new(source, Selection::all(), vec![Box::new(AllStacks)]);
    pump.resolve_stacks(Resolver::to_pack(Origin::of_trace(&trace.dir, &trace.metadata), stacks::places(&ask.names)?));
    while !pump.turn().ended {}
    pump.end_sinks(None);
    Ok(pump)
}

/// Asks for the functions of every stack, and shows nothing.
struct AllStacks;

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
