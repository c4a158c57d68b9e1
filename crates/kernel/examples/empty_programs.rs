//! Runs a command while empty programs (`r0 = 0; exit`) are attached: what reaching a place costs when nothing is done there.
//!
//! ```text
//! empty_programs PLACE… -- COMMAND
//! ```
//!
//! A place is a probe, and its program is attached as trapline attaches its own; or `raw:NAME`, a raw tracepoint.

use engine::provider;
use kernel::attach;
use std::error::Error;
use std::process::{Command, ExitCode};
use sys::bpf::link::Link;
use sys::bpf::prog::{Program, ProgramKind, ProgramSpec};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("empty_programs: {e}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<bool, Box<dyn Error>> {
    let at = args.iter().position(|arg| arg == "--").ok_or("usage: empty_programs PLACE... -- COMMAND")?;
    let insns = empty()?;
    let mut attached = Vec::new();
    for place in &args[..at] {
        attached.extend(attach_at(place, &insns)?);
    }
    let [name, rest @ ..] = &args[at + 1..] else { return Err("no command".into()) };
    Ok(Command::new(name).args(rest).status()?.success())
}

/// The instructions of a program that does nothing.
fn empty() -> Result<Vec<u8>, Box<dyn Error>> {
    let mut a = bpf::asm::Assembler::new();
    a.mov(bpf::insn::Reg::R0, 0);
    a.exit();
    Ok(a.finish()?.bytes())
}

/// A program, and where it is attached.
type Attached = (Program, Vec<Link>);

/// Attaches the instructions at a place; they stay there as long as what is returned.
fn attach_at(place: &str, insns: &[u8]) -> Result<Vec<Attached>, Box<dyn Error>> {
    if let Some(name) = place.strip_prefix("raw:") {
        let program =
            Program::load(&ProgramSpec::new(ProgramKind::RawTracepoint, "empty", insns)).map_err(|e| e.error)?;
        let link = Link::raw_tracepoint(&program, name)?;
        return Ok(vec![(program, vec![link])]);
    }
    let mut attached = Vec::new();
    for ready in provider::ready(place)? {
        let agents = kernel::moved::Agents::default();
        let ways = attach::ways(&ready.point, &[], &agents);
        let way = ways.first().ok_or("no way to attach it")?;
        let program = Program::load(&way.spec("empty", insns)).map_err(|e| e.error)?;
        let links = way.attach(&program)?.links;
        attached.push((program, links));
    }
    Ok(attached)
}
