//! `trapline diff A B` of system calls. A and B may be patterns, or directories of recordings: then all recordings of the one kind are
//! compared with all of the other.

use crate::ask::Ask;
use crate::output::Output;
use crate::report::whole;
use ctf::trace::{Found, Trace};
use engine::backend::recorded::Recorded;
use engine::pipeline::pump::{Flow, Pump, Sink};
use engine::pipeline::selection::Selection;
use engine::pipeline::source::Source;
use engine::pipeline::world::World;
use engine::{Error, Result};
use events::Event;
use lang::pattern::{glob, is_pattern};
use std::cell::RefCell;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use views::View;
use views::call_diff::{Counts, Diff, Sort};

/// Recordings of the same kind, and their calls.
pub struct Side {
    traces: Vec<Trace>,
    counts: Vec<Counts>,
}

impl Side {
    /// The recordings with this name, which may be a pattern.
    ///
    /// # Errors
    /// The directory has no trace, or one of them cannot be read.
    pub fn read(name: &Path) -> Result<Side> {
        Ok(Side::of(traces(name)?))
    }

    /// These recordings.
    pub fn of(traces: Vec<Trace>) -> Side {
        let counts = traces.iter().map(count).collect();
        Side { traces, counts }
    }

    /// Whether its events have stacks, which are compared then unless calls are asked for.
    pub fn has_stacks(&self) -> bool {
        self.counts.iter().any(|c| c.has_stacks)
    }

    /// Whether it has no call.
    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(Counts::is_empty)
    }
}

/// Opens the recordings with this name, which may be a pattern.
///
/// # Errors
/// There is none, or one is no trace.
pub fn traces(name: &Path) -> Result<Vec<Trace>> {
    paths(name)?.iter().map(|dir| trace(dir).map(|t| *t)).collect()
}

/// Opens a recording.
pub(crate) fn trace(dir: &Path) -> Result<Box<Trace>> {
    let failed = |why: String| Error::failed(dir.display().to_string(), why, "name the directory of a trace");
    match ctf::trace::open(dir) {
        Ok(Found::Native(trace)) => Ok(trace),
        Ok(Found::Foreign) => Err(failed("it is not a trace of trapline".into())),
        Err(e) => Err(failed(e.to_string())),
    }
}

/// Whether this name stands for calls of several recordings: a pattern, and nothing of that name; or a directory of recordings.
pub fn is_several(name: &Path) -> bool {
    is_of_names(name) || is_parent(name)
}

fn is_of_names(name: &Path) -> bool {
    name.to_str().is_some_and(is_pattern) && !name.exists()
}

fn is_parent(name: &Path) -> bool {
    name.is_dir() && !name.join("metadata").exists() && ctf::generic::find(name).is_ok_and(|found| !found.is_empty())
}

/// Whether a name means one recording of trapline's that can be read.
pub fn is_trace(dir: &Path) -> bool {
    matches!(ctf::trace::open(dir), Ok(Found::Native(_)))
}

/// The recordings with a name: in its directory, in the order of their names.
fn paths(name: &Path) -> Result<Vec<PathBuf>> {
    if is_parent(name) {
        return Ok(ctf::generic::find(name).unwrap_or_default());
    }
    if !is_of_names(name) {
        return Ok(vec![name.into()]);
    }
    let dir = name.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let pattern = name.file_name().unwrap_or_default().as_bytes();
    let found = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> =
        found.filter(|e| glob(pattern, e.file_name().as_bytes())).map(|e| dir.join(e.file_name())).collect();
    all.sort();
    match all.is_empty() {
        true => Err(Error::failed(name.display().to_string(), "no such recording", "quote a pattern, such as 'old-*'")),
        false => Ok(all),
    }
}

/// Compares, and writes the difference.
///
/// # Errors
/// A view or an order that there is not, or a file that cannot be written.
pub fn run(ask: &Ask, before: &Side, after: &Side) -> Result<u8> {
    if before.is_empty() && after.is_empty() {
        let todo = "name one trace on each side: heaps and stacks are compared by the trace; --as functions compares functions";
        return Err(Error::usage("diff", "none of these has a system call", todo));
    }
    let order = ask.table.sort_by.as_deref();
    let sort = match order.map(Sort::parse) {
        None => Sort::default(),
        Some(Some(sort)) => sort,
        Some(None) => {
            let what = format!("-S {}", order.unwrap_or_default());
            return Err(Error::usage(what, "no such order of calls", "time, calls, errors or name"));
        }
    };
    let diff = Diff { before: &before.counts, after: &after.counts };
    let shows: Vec<(&str, Option<&str>)> = match &ask.show[..] {
        [] => vec![("calls", None)],
        all => all.iter().map(|s| (s.view.as_str(), s.file.as_deref())).collect(),
    };
    for (view, file) in shows {
        let mut output = Output::view(file)?.of_the_past();
        let rows = ask.table.rows.map_or(20, |n| n as usize);
        match view {
            "calls-json" => diff.json(sort, output.buffer()),
            _ => diff.text(sort, rows, output.buffer()),
        }
        output.close();
        output.take_trouble().map_or(Ok(()), Err)?;
    }
    tell(ask, before.traces.iter().chain(&after.traces))
}

/// Reports what traces lack. Returns the exit status.
///
/// # Errors
/// One is damaged.
pub fn tell<'t>(ask: &Ask, traces: impl Iterator<Item = &'t Trace> + Clone) -> Result<u8> {
    let status = traces.clone().map(|trace| whole::tell(ask, trace, None)).collect::<Vec<_>>();
    let all = traces.zip(status).map(|(trace, status)| crate::report::damage(trace, status));
    Ok(all.collect::<Result<Vec<u8>>>()?.into_iter().max().unwrap_or(0))
}

/// The calls of a trace.
fn count(trace: &Trace) -> Counts {
    let counts = Rc::new(RefCell::new(Counts::default()));
    let source = Source::new(Box::new(Recorded::new(trace, 0, u64::MAX)), None);
    let sink = Counting(Rc::clone(&counts));
    let mut pump = Pump::new(source, Selection::all(), vec![Box::new(sink)]);
    pump.keep_descriptors();
    while !pump.turn().ended {}
    pump.end_sinks(None);
    drop(pump);
    Rc::try_unwrap(counts).map(RefCell::into_inner).unwrap_or_default()
}

/// Hands the events to the counts.
struct Counting(Rc<RefCell<Counts>>);

impl Sink for Counting {
    fn event(&mut self, ev: &Event<'_>, world: &World) -> Result<Flow> {
        self.0.borrow_mut().event(ev, world, &mut Vec::new());
        Ok(Flow::Continue)
    }

    fn lost(&mut self, events: u64) {
        self.0.borrow_mut().lost(events);
    }

    fn has_written(&self) -> bool {
        false
    }
}

/// Whether a view of a difference is one of calls.
pub fn is_view(name: &str) -> bool {
    ["calls", "calls-json"].contains(&name)
}
