//! `--by host` and `--by trace`: a table for each.

use super::Set;
use crate::ask::Ask;
use crate::heap::{Drawing, Feed, HeapSink, Kept, Style};
use crate::output::Output;
use crate::show::Shown;
use crate::view::{Form, Kind};
use engine::pipeline::pump::{Flow, Sink};
use engine::pipeline::world::World;
use engine::{Error, Result};
use events::{Event, traces};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use views::escape;

/// Which traces belong together.
#[derive(Clone)]
pub struct Grouping {
    /// What it is by: `host`, `trace`.
    by: &'static str,
    /// The name of each group, in the order of the first trace of each.
    names: Vec<String>,
    /// The group of each trace.
    of: Vec<usize>,
}

impl Grouping {
    /// What the command line asks for.
    pub fn of(ask: &Ask, set: &Set) -> Option<Grouping> {
        let by = match ask.table.by.as_deref() {
            Some("host") => "host",
            Some("trace") => "trace",
            _ => return None,
        };
        let (mut names, mut of) = (Vec::new(), Vec::new());
        for origin in &set.origins {
            let name = if by == "host" { &origin.host } else { &origin.trace };
            let known = names.iter().position(|n| n == name);
            of.push(known.unwrap_or(names.len()));
            if known.is_none() {
                names.push(name.clone());
            }
        }
        Some(Grouping { by, names, of })
    }

    /// The group of a trace.
    pub fn of_trace(&self, nth: usize) -> usize {
        self.of.get(nth).copied().unwrap_or(0)
    }

    /// The group of a thread.
    fn at(&self, tid: u32) -> usize {
        self.of_trace(traces::of(tid))
    }

    /// Writes what a group has: below its name, or, of JSON, with its name as the first member of the object.
    fn write(&self, nth: usize, is_json: bool, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        let name = &self.names[nth];
        if !is_json {
            out.extend_from_slice(if nth == 0 { b"" } else { b"\n" });
            escape::name(name.as_bytes(), out);
            out.extend_from_slice(b":\n");
            return write(out);
        }
        let from = out.len();
        write(out);
        if out.get(from) == Some(&b'{') {
            let is_empty = out.get(from + 1) == Some(&b'}');
            let mut member = format!("\"{}\":", self.by).into_bytes();
            views::json::string(name, &mut member);
            member.extend_from_slice(if is_empty { b"" } else { b"," });
            out.splice(from + 1..from + 1, member);
        }
    }
}

/// A view for each group, one after the other.
pub struct Groups {
    grouping: Grouping,
    all: Vec<Shown>,
    is_json: bool,
    out: Output,
}

impl Groups {
    /// Of a view of this kind.
    ///
    /// # Errors
    /// It is no table.
    pub fn new(
        grouping: &Grouping,
        kind: &Kind,
        out: Output,
        make: impl Fn(&Output) -> Result<Shown>,
    ) -> Result<Groups> {
        let all = grouping.names.iter().map(|_| make(&out)).collect::<Result<Vec<Shown>>>()?;
        if all.iter().any(Shown::has_lines) {
            let what = format!("--by {} --as {}", grouping.by, kind.name);
            return Err(Error::usage(
                what,
                "lines have their host and trace anyway",
                "leave it out, or add -c or --latency",
            ));
        }
        Ok(Groups { grouping: grouping.clone(), all, is_json: kind.form == Form::Data, out })
    }
}

impl Sink for Groups {
    fn observe(&mut self, ev: &Event<'_>) {
        self.all[self.grouping.at(ev.tid())].see(ev);
    }

    fn event(&mut self, ev: &Event<'_>, world: &World) -> Result<Flow> {
        self.all[self.grouping.at(ev.tid())].event(ev, world, &mut self.out);
        Ok(Flow::Continue)
    }

    fn end(&mut self) -> Result<()> {
        for (nth, shown) in self.all.iter_mut().enumerate() {
            let mut kept = Output::kept();
            shown.end(&mut kept);
            let text = std::mem::take(kept.buffer());
            self.grouping.write(nth, self.is_json, self.out.buffer(), |out| out.extend_from_slice(&text));
        }
        self.out.flush();
        self.out.close();
        self.out.take_trouble().map_or(Ok(()), Err)
    }

    fn has_written(&self) -> bool {
        self.out.has_written()
    }
}

/// A heap for each group, one after the other.
pub struct HeapGroups {
    grouping: Grouping,
    all: Vec<(HeapSink, Kept)>,
    drawings: Vec<Drawing>,
    style: Style,
    drawn: bool,
}

impl HeapGroups {
    /// Heaps by group; `lost` gives the number of events that a group lacks.
    pub fn new(grouping: Grouping, drawings: Vec<Drawing>, style: &Style, lost: impl Fn(usize) -> u64) -> HeapGroups {
        let of = |group| {
            let (feed, kept) = (Arc::new(Mutex::new(Feed::lacking(lost(group)))), Kept::default());
            (HeapSink::new(feed, Vec::new(), style.clone()).keeps(Rc::clone(&kept)), kept)
        };
        let all = (0..grouping.names.len()).map(of).collect();
        HeapGroups { grouping, all, drawings, style: style.clone(), drawn: false }
    }
}

impl Sink for HeapGroups {
    fn observe(&mut self, ev: &Event<'_>) {
        self.all[self.grouping.at(ev.tid())].0.observe(ev);
    }

    fn event(&mut self, ev: &Event<'_>, world: &World) -> Result<Flow> {
        self.all[self.grouping.at(ev.tid())].0.event(ev, world)
    }

    fn catch_up(&mut self, now: u64, world: &World) -> Result<Flow> {
        if now != u64::MAX || std::mem::replace(&mut self.drawn, true) {
            return Ok(Flow::Continue);
        }
        for (nth, (sink, kept)) in self.all.iter_mut().enumerate() {
            sink.catch_up(now, world)?;
            let Some(rows) = kept.borrow_mut().take() else { continue };
            for drawing in &mut self.drawings {
                let is_json = drawing.kind.form == Form::Data;
                let mut text = Vec::new();
                drawing.write(&rows, &self.style, &mut text);
                self.grouping.write(nth, is_json, drawing.output.buffer(), |out| out.extend_from_slice(&text));
            }
        }
        Ok(Flow::Continue)
    }

    fn end(&mut self) -> Result<()> {
        crate::heap::close(&mut self.drawings)
    }

    fn has_written(&self) -> bool {
        self.drawn
    }
}
