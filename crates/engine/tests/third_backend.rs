//! A backend that nobody has heard of goes the whole way: shown live, recorded, and shown again from the trace.

use ctf::trace::{Found, Trace};
use engine::backend::recorded::Recorded;
use engine::control::{self, Order, State};
use engine::pipeline::backend::{Backend, Deliver, Polled};
use engine::pipeline::pump::{Flow, Pump, Sink};
use engine::pipeline::recorder::{Config, Recorder};
use engine::pipeline::selection::Selection;
use engine::pipeline::source::Source;
use engine::pipeline::world::World;
use engine::stats::{Losses, Report};
use engine::{Error, Result};
use events::encode::{self, Fixed};
use events::layout::Layout;
use events::{Event, StreamId};
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use testkit::Scratch;
use views::View;
use views::text::Text;

/// A backend that has made this many calls of getppid and lost two.
struct Fake {
    left: u64,
    stopped: bool,
}

impl Backend for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn poll(&mut self, room: bool, each: &mut dyn Deliver) -> Polled {
        if !room || self.left == 0 || self.stopped {
            return Polled { events: 0, ended: self.left == 0 || self.stopped };
        }
        let schema = events::registry::by_name("getppid").expect("a call");
        let fixed = Fixed { time: 1000 - self.left, start: 900, ret: 42, tid: 7, pid: 7, ..Fixed::default() };
        let mut event = Vec::new();
        encode::fixed(&mut event, schema, &Layout::of(schema), &fixed, &[]);
        each.event(StreamId::TRACER, &event);
        self.left -= 1;
        Polled { events: 1, ended: false }
    }

    fn wait(&mut self, _timeout: Duration) {}

    fn control(&mut self, _order: Order) -> Result<State> {
        Err(control::ended())
    }

    fn stop(&mut self) {
        self.stopped = true;
    }

    fn streams(&self) -> Vec<StreamId> {
        vec![StreamId::TRACER]
    }

    fn dropped_on(&self, _stream: StreamId) -> u64 {
        2
    }

    fn report(&mut self) -> Report {
        Report { losses: Losses { total: 2, classes: Vec::new() }, ..Report::default() }
    }
}

/// Lines of text into memory, of which the first `most` are wanted; `fails` after them.
struct Lines {
    view: Text,
    text: Rc<RefCell<Vec<u8>>>,
    most: usize,
    fails: bool,
}

impl Sink for Lines {
    fn event(&mut self, ev: &Event<'_>, world: &World) -> Result<Flow> {
        self.view.event(ev, world, &mut self.text.borrow_mut());
        match self.text.borrow().iter().filter(|b| **b == b'\n').count() {
            n if n < self.most => Ok(Flow::Continue),
            _ if self.fails => Err(Error::failed("lines", "no room", "choose another place")),
            _ => Ok(Flow::Stop),
        }
    }

    fn has_written(&self) -> bool {
        !self.text.borrow().is_empty()
    }
}

/// Runs a pump to its end; what it has shown.
fn shown(source: Source<'_>, most: usize, fails: bool) -> (String, Vec<Error>, u64) {
    let text = Rc::default();
    let lines = Lines { view: Text::new(views::Options::default()), text: Rc::clone(&text), most, fails };
    let mut pump = Pump::new(source, Selection::all(), vec![Box::new(lines)]);
    while !pump.turn().ended {}
    pump.end_sinks(None);
    assert_eq!(pump.source.report().losses.total, if pump.source.name() == "fake" { 2 } else { 0 });
    let _ = pump.source.finish().expect("a trace");
    let dropped = pump.counters().map(|(_, n)| n.dropped).sum();
    let failures = pump.take_failures();
    drop(pump);
    (String::from_utf8(text.take()).expect("text"), failures, dropped)
}

fn recorder(dir: &Path) -> Recorder {
    let config =
        Config { dir: dir.into(), command: "none".into(), backend: "fake".into(), string: 32, ..Config::default() };
    Recorder::new(&config).expect("a recorder")
}

fn open(dir: &Path) -> Box<Trace> {
    let Ok(Found::Native(trace)) = ctf::trace::open(dir) else { panic!("no trace of trapline's") };
    trace
}

#[test]
fn it_is_shown_recorded_and_shown_again() {
    let fake = |left| Box::new(Fake { left, stopped: false });
    let line = "7     getppid()                         = 42\n";
    let (live, failures, _) = shown(Source::new(fake(3), None), 100, false);
    assert_eq!((live.as_str(), failures.len()), (line.repeat(3).as_str(), 0));

    let scratch = Scratch::new("third-backend");
    let dir = scratch.join("trace");
    let (meanwhile, ..) = shown(Source::new(fake(3), Some(recorder(&dir))), 100, false);
    let trace = open(&dir);
    assert_eq!((meanwhile, trace.discarded()), (live.clone(), 2));
    let (later, ..) = shown(Source::new(Box::new(Recorded::new(&trace, 0, u64::MAX)), None), 100, false);
    assert_eq!(later, live);
}

#[test]
fn a_view_stops_or_fails_and_the_session_goes_on() {
    let fake = || Source::new(Box::new(Fake { left: 5, stopped: false }), None);
    let (text, failures, dropped) = shown(fake(), 2, false);
    assert_eq!((text.lines().count(), failures.len(), dropped), (2, 0, 3));
    let (text, failures, dropped) = shown(fake(), 2, true);
    assert_eq!((text.lines().count(), dropped), (2, 3));
    assert_eq!(failures[0].to_string(), "lines: no room (choose another place)");
}
