//! Views as sinks of the pump, with where they write to.

use crate::output::Output;
use engine::Result;
use engine::pipeline::pump::{Flow, Sink};
use engine::pipeline::world::World;
use events::Event;
use views::View;
use views::reorder::Reorder;

/// Views and where they write to.
pub type Views = Vec<(Shown, Output)>;

/// What a session shows, and to whom.
pub struct Sinks {
    /// Each gets the events that are selected.
    pub all: Vec<Box<dyn Sink>>,
    /// The descriptors that they write to.
    pub places: Vec<i32>,
    /// What they have to say at the end: for the last line, and for `--stats`.
    pub told: Option<Told>,
    /// Some of them show source files and lines.
    pub lines: bool,
}

/// Words for the last line, and counters.
pub type Told = Box<dyn Fn() -> (Vec<String>, serde_json::Value)>;

impl From<Views> for Sinks {
    fn from(views: Views) -> Sinks {
        let places = views.iter().flat_map(|(_, out)| out.descriptors()).collect();
        let sink = |(shown, out)| Box::new(ToOutput { shown, out }) as Box<dyn Sink>;
        Sinks { all: views.into_iter().map(sink).collect(), places, told: None, lines: true }
    }
}

/// The views of a trace.
pub struct Shown {
    lines: Option<Box<dyn View>>,
    table: Option<Box<dyn View>>,
    /// `--sort start`: lines wait here.
    order: Option<Reorder>,
    line: Vec<u8>,
}

impl Shown {
    /// Lines, which may wait for their turn, and a table at the end.
    pub fn new(lines: Option<Box<dyn View>>, table: Option<Box<dyn View>>, order: Option<Reorder>) -> Shown {
        Shown { lines, table, order, line: Vec::new() }
    }
    /// A table at the end, and nothing else.
    pub fn table(table: Box<dyn View>) -> Shown {
        Shown::new(None, Some(table), None)
    }
    /// Whether it shows lines in the order of the events, and nothing else.
    pub fn is_lines_only(&self) -> bool {
        self.lines.is_some() && self.table.is_none() && self.order.is_none()
    }
    /// Whether it shows lines while events come.
    pub fn has_lines(&self) -> bool {
        self.lines.is_some()
    }
    /// Learns from an event, whether it will be shown or not.
    pub fn see(&mut self, ev: &Event<'_>) {
        self.lines.iter_mut().chain(&mut self.table).for_each(|view| view.see(ev));
        if let Some(order) = &mut self.order {
            order.see(ev);
        }
    }
    /// Shows an event.
    pub fn event(&mut self, ev: &Event<'_>, world: &World, out: &mut Output) {
        if let Some(t) = &mut self.table {
            t.event(ev, world, out.buffer());
        }
        let Some(order) = &mut self.order else {
            if let Some(v) = &mut self.lines {
                v.event(ev, world, out.buffer());
            }
            return out.event_done(ev.tid(), ev.schema.id);
        };
        self.line.clear();
        if let Some(v) = &mut self.lines {
            v.event(ev, world, &mut self.line);
        }
        order.push(ev, &self.line);
        release(order, out);
    }
    /// Every event before `now` has been seen.
    pub fn passed(&mut self, now: u64, out: &mut Output) {
        if let Some(order) = &mut self.order {
            order.passed(now);
            release(order, out);
        }
    }
    /// This many events were lost.
    pub fn lost(&mut self, events: u64) {
        self.lines.iter_mut().chain(&mut self.table).for_each(|view| view.lost(events));
    }
    /// Shows what is shown at the end.
    pub fn end(&mut self, out: &mut Output) {
        if let Some(order) = &mut self.order {
            order.finish();
            release(order, out);
        }
        if let Some(v) = &mut self.lines {
            v.end(out.buffer());
        }
        if let Some(t) = &mut self.table {
            out.parts(|text, spill| t.end_in_parts(text, spill));
        }
    }
    /// Expects several threads from the start.
    pub fn expect_several(&mut self) {
        if let Some(v) = &mut self.lines {
            v.expect_several();
        }
    }
}

/// A view and where it writes to.
pub struct ToOutput {
    /// The view.
    pub shown: Shown,
    /// Its destination.
    pub out: Output,
}

impl ToOutput {
    fn flow(&mut self) -> Result<Flow> {
        match self.out.take_trouble() {
            Some(e) => Err(e),
            None if self.out.failed() => Ok(Flow::Stop),
            None => Ok(Flow::Continue),
        }
    }
}

impl Sink for ToOutput {
    fn expect_several(&mut self) {
        self.shown.expect_several();
    }

    fn observe(&mut self, ev: &Event<'_>) {
        self.shown.see(ev);
    }

    fn event(&mut self, ev: &Event<'_>, world: &World) -> Result<Flow> {
        self.shown.event(ev, world, &mut self.out);
        self.flow()
    }

    fn idle(&mut self, now: u64) -> Result<Flow> {
        self.shown.passed(now, &mut self.out);
        self.flow()
    }

    fn flush(&mut self) -> Result<Flow> {
        self.out.flush();
        self.flow()
    }

    fn lost(&mut self, events: u64) {
        self.shown.lost(events);
    }

    fn end(&mut self) -> Result<()> {
        self.shown.end(&mut self.out);
        self.out.close();
        self.out.take_trouble().map_or(Ok(()), Err)
    }

    fn take_lost(&mut self) -> Vec<u16> {
        self.out.take_lost()
    }

    fn has_written(&self) -> bool {
        self.out.has_written()
    }
}

/// Writes the lines whose turn it is. Until its line is written, an event may still be lost.
fn release(order: &mut Reorder, out: &mut Output) {
    while let Some(held) = order.pop() {
        out.buffer().extend_from_slice(&held.text);
        out.event_done(held.tid, held.id);
    }
}
