//! Traces of trapline as a script reads them: one, or several as one.

use super::several::{self, Set};
use super::trouble::unreadable;
use super::window::Window;
use super::{Progress, clocks_of, damage, filter_of, in_order, pids, the_trace, whole};
use crate::ask::Ask;
use crate::run::interrupts::Interrupts;
use crate::show::Sinks;
use crate::stacks;
use crate::view::screen::Clocks;
use ctf::trace::{Found, HOST, Trace};
use engine::backend::recorded::Recorded;
use engine::pipeline::pump::Sink;
use engine::pipeline::selection::Selection;
use engine::pipeline::source::Source;
use engine::resolver::{Origin as Whence, Resolver};
use engine::{Error, Result};
use events::traces::Origin;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a script reads.
pub enum Traces {
    /// A trace, by its own clock.
    One(Box<Trace>),
    /// Several, by the wall clock.
    Several(Set),
}

impl Traces {
    /// Opens the traces that the request names: a trace names itself, another directory the traces below it.
    ///
    /// # Errors
    /// A trace cannot be read, or was written by another tracer.
    pub fn open(ask: &Ask) -> Result<Traces> {
        let _ = sys::process::raise_file_limit();
        let dirs: Vec<PathBuf> = ask.trace.dir.iter().chain(&ask.trace.more).cloned().collect();
        let foreign = |dir: &Path| {
            let todo = "'trapline report DIR' shows it";
            Error::failed(dir.display().to_string(), "scripts read traces of trapline only", todo)
        };
        let [dir] = &dirs[..] else { return Ok(Traces::Several(Set::open(ask, several::named(&dirs)?, None)?)) };
        let (dir, is_parent) = the_trace(dir.clone())?;
        if is_parent || !ask.trace.clock_offset.is_empty() {
            let set = Set::open(ask, several::named(std::slice::from_ref(&dir))?, None)?;
            return if set.traces.is_empty() { Err(foreign(&dir)) } else { Ok(Traces::Several(set)) };
        }
        match ctf::trace::open(&dir).map_err(|e| unreadable(&dir, &e))? {
            Found::Native(trace) => Ok(Traces::One(trace)),
            Found::Foreign => Err(foreign(&dir)),
        }
    }

    /// All of them.
    pub fn all(&self) -> &[Trace] {
        match self {
            Traces::One(trace) => std::slice::from_ref(trace),
            Traces::Several(set) => &set.traces,
        }
    }

    /// The time of the first event, ns of the clock that events have.
    pub fn begin(&self) -> u64 {
        match self {
            Traces::One(trace) => trace.data.span().map_or(0, |s| s.0),
            Traces::Several(set) => set.begin(),
        }
    }

    /// Where all events are from: of several traces, nothing.
    pub fn origin(&self) -> Origin {
        let Traces::One(trace) = self else { return Origin::default() };
        let dir = trace.dir.canonicalize().unwrap_or_else(|_| trace.dir.clone());
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Origin { host: trace.said(HOST), trace: name, ..Origin::default() }
    }

    /// What is selected of them, and their clocks.
    ///
    /// # Errors
    /// The request selects something that does not exist.
    pub fn selected(&self, ask: &Ask) -> Result<(Selection, Clocks)> {
        match self {
            Traces::One(trace) => selected_of(ask, trace),
            Traces::Several(set) => several::selected(ask, set),
        }
    }

    /// Gives their events to a sink, in their order, with all names.
    ///
    /// # Errors
    /// A trace cannot be read, or the sink has failed.
    pub fn through(&self, ask: &Ask, of: (Selection, Clocks), sink: Box<dyn Sink>) -> Result<u8> {
        match self {
            Traces::One(trace) => through(ask, trace, of, sink),
            Traces::Several(set) => several::through(ask, set, of, sink),
        }
    }
}

/// What is selected of a trace, and its clocks.
///
/// # Errors
/// The request selects something that does not exist.
pub fn selected_of(ask: &Ask, trace: &Trace) -> Result<(Selection, Clocks)> {
    let mut selection = filter_of(ask, trace)?;
    selection.pids = pids(ask)?;
    selection.lives = true;
    let clocks = clocks_of(trace, &selection);
    Ok((selection, clocks))
}

fn through(ask: &Ask, trace: &Trace, (selection, clocks): (Selection, Clocks), sink: Box<dyn Sink>) -> Result<u8> {
    let window = Window::parse(ask, trace.data.span().map_or(0, |s| s.0), clocks)?;
    let selection = Selection { from: window.from, ..selection };
    let recorded = Recorded::new(trace, 0, window.to);
    let progress = Progress::new(true, trace.data.bytes(), recorded.progress(), Arc::default());
    let source = Source::new(Box::new(recorded), None);
    let resolver = Resolver::new(Whence::of_trace(&trace.dir, &trace.metadata), stacks::places(&ask.names)?);
    let sinks = Sinks { all: vec![sink], places: Vec::new(), told: None, lines: false };
    let interrupts = Some(Interrupts::watch(false));
    let (shown, _) = in_order(ask, (trace, source), selection, (true, Some(resolver)), sinks, &progress, interrupts);
    if let Some(trouble) = shown.trouble {
        return Err(trouble);
    }
    damage(trace, whole::tell(ask, trace, None))
}
