//! Shows the heap at the end: the model is fed meanwhile, by the backend itself, or here, by events.

use super::feed::Feed;
use super::from_events::FromEvents;
use crate::ask::Show;
use crate::output::Output;
use crate::show::Sinks;
use crate::view::{self, Kind, Make, Of};
use engine::Result;
use engine::pipeline::pump::{Flow, Sink};
use engine::pipeline::world::World;
use events::Event;
use events::names::{Names, Stack};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use views::heap::{Frames, Options, Rows};
use views::profile;

/// A view of the heap, and where it goes.
pub struct Drawing {
    /// The view.
    pub kind: &'static Kind,
    /// Where it is written.
    pub output: Output,
}

impl Drawing {
    /// A view, opened.
    ///
    /// # Errors
    /// There is no such view, or the file cannot be made.
    pub fn open(Show { view, file }: &Show) -> Result<Drawing> {
        Drawing::of(view::find(view, &[Of::Heap])?, file.as_deref())
    }

    /// A view of this kind.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn of(kind: &'static Kind, file: Option<&str>) -> Result<Drawing> {
        Ok(Drawing { kind, output: view::open(kind, file)? })
    }

    /// Appends the heap.
    pub fn write(&self, rows: &Rows, style: &Style, out: &mut Vec<u8>) {
        if let Make::Heap(write) = self.kind.make {
            write(rows, &style.options, style.realtime_offset, out);
        }
    }
}

/// How the heap is shown.
#[derive(Clone)]
pub struct Style {
    /// Options of all views.
    pub options: Options,
    /// Blocks that are younger are no leaks, ns.
    pub min_age: u64,
    /// CLOCK_REALTIME minus the clock of the events, ns.
    pub realtime_offset: i64,
}

/// Writes what waits, and closes all.
///
/// # Errors
/// Something could not be written.
pub fn close(drawings: &mut [Drawing]) -> Result<()> {
    let mut first = Ok(());
    for drawing in drawings {
        drawing.output.flush();
        drawing.output.close();
        if let Some(e) = drawing.output.take_trouble() {
            first = first.and(Err(e));
        }
    }
    first
}

/// The feed, for a moment.
pub fn locked(feed: &Mutex<Feed>) -> MutexGuard<'_, Feed> {
    feed.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows the heap at the end.
pub struct HeapSink {
    feed: Arc<Mutex<Feed>>,
    from_events: FromEvents,
    drawings: Vec<Drawing>,
    style: Style,
    /// Where the heap is put beside them.
    kept: Option<Kept>,
    drawn: bool,
}

/// A heap by stack, as soon as all events have come.
pub type Kept = Rc<RefCell<Option<Rows>>>;

impl HeapSink {
    /// Of what the feed gets. Events are put into it too.
    pub fn new(feed: Arc<Mutex<Feed>>, drawings: Vec<Drawing>, style: Style) -> HeapSink {
        HeapSink { feed, from_events: FromEvents::default(), drawings, style, kept: None, drawn: false }
    }

    /// Puts the heap there in the end.
    pub fn keeps(mut self, kept: Kept) -> HeapSink {
        self.kept = Some(kept);
        self
    }

    /// It alone.
    pub fn sinks(self) -> Sinks {
        let places = self.drawings.iter().flat_map(|d| d.output.descriptors()).collect();
        let all: Vec<Box<dyn Sink>> = if self.drawings.is_empty() { Vec::new() } else { vec![Box::new(self)] };
        Sinks { all, places, told: None, lines: true }
    }
}

/// The heap by stack, with the names of functions as they are known now.
pub fn rows(feed: &Feed, world: &World, min_age: u64) -> Rows {
    Rows::new(&feed.model, &Named { feed, world, frames: RefCell::default() }, min_age)
}

/// Has symbols of all stacks ready, so that [`rows`] does not hold the feed while files are read.
pub fn prepare(feed: &Mutex<Feed>, world: &World) {
    const MANY: u32 = 256;
    let mut next = 0;
    loop {
        let stacks: Vec<(u32, u64, Vec<u64>)> = {
            let feed = locked(feed);
            let range = next..feed.stacks().min(next + MANY);
            next = range.end;
            let owned = |id| feed.stack(id).map(|(pid, time, frames)| (pid, time, frames.to_vec()));
            if range.is_empty() { return } else { range.filter_map(owned).collect() }
        };
        for (pid, time, raw) in stacks {
            let stack = Stack { kernel: false, ended: 0, guessed: 0, frames: &raw };
            world.frames(pid, time, &stack, &mut |_| {});
        }
    }
}

/// Names functions.
struct Named<'a> {
    feed: &'a Feed,
    world: &'a World,
    frames: RefCell<Vec<u64>>,
}

impl Frames for Named<'_> {
    fn frames(&self, stack: u32, each: &mut dyn FnMut(profile::Frame<'_>)) {
        let Some((pid, time, raw)) = self.feed.stack(stack) else { return };
        let mut frames = self.frames.borrow_mut();
        frames.clear();
        frames.extend(raw.iter().filter(|f| !is_own(**f)));
        let stack = Stack { kernel: false, ended: 0, guessed: 0, frames: &frames };
        self.world.frames(pid, time, &stack, &mut |f| {
            each(profile::Frame {
                function: f.function,
                module: f.module,
                file: f.file,
                line: f.line,
                inlined: f.inlined,
                guessed: f.guessed,
                kernel: f.kernel,
            });
        });
    }
}

/// Whether an address is in the agent's code: what stands in for the program's handlers of signals.
fn is_own(frame: u64) -> bool {
    engine::heap::AGENT.contains(&(frame & !(events::names::GUESSED | events::names::EXACT)))
}

impl Sink for HeapSink {
    fn observe(&mut self, ev: &Event<'_>) {
        self.from_events.observe(ev, &mut locked(&self.feed));
    }

    fn event(&mut self, ev: &Event<'_>, world: &World) -> Result<Flow> {
        self.from_events.event(ev, world, &mut locked(&self.feed));
        Ok(Flow::Continue)
    }

    fn catch_up(&mut self, now: u64, world: &World) -> Result<Flow> {
        if now == u64::MAX && !self.drawn {
            self.drawn = true;
            let mut feed = locked(&self.feed);
            self.from_events.settle(&mut feed);
            feed.settle();
            let rows = rows(&feed, world, self.style.min_age);
            for drawing in &mut self.drawings {
                let mut text = Vec::new();
                drawing.write(&rows, &self.style, &mut text);
                drawing.output.buffer().extend_from_slice(&text);
            }
            if let Some(kept) = &self.kept {
                kept.replace(Some(rows));
            }
        }
        Ok(Flow::Continue)
    }

    fn lost(&mut self, events: u64) {
        self.style.options.lost = Some(events);
    }

    fn end(&mut self) -> Result<()> {
        close(&mut self.drawings)
    }

    fn has_written(&self) -> bool {
        self.drawn
    }
}
