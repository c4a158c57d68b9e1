//! The one loop that moves events from a source to the views, whether they come from a ring or from a directory.

use super::functions::{ByThread, Ordered, Records};
use super::recorder::Monitor;
use super::selection::Selection;
use super::source::Source;
use super::world::World;
use crate::error::Error;
use crate::maps::Maps;
use crate::pipeline::backend::Deliver;
use crate::resolver::Resolver;
use events::functions::{self, Run};
use events::generated::P_FUNCTION;
use events::hash::Table;
use events::traces::Origin;
use events::{Class, Event, Schema, StreamId};
use std::time::Duration;
use sys::time;

/// Whether a sink wants more events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The next one too.
    Continue,
    /// No more: it has seen enough (a reader that has gone, a limit that is reached).
    Stop,
    /// The session is to end. What comes until then is still shown.
    End,
}

/// Receives the events of a session or of a trace, in the order of their emission.
///
/// For each event that the selection covers, [`observe`](Sink::observe) is called, and then [`event`](Sink::event) if it is
/// selected. A sink that returns [`Flow::Stop`] or an error gets no more events; the other sinks and the target continue.
/// An error says what could not be written and why; the pump keeps it for [`Pump::take_failures`], and every later event that only
/// failed sinks would have shown is counted as dropped. [`end`](Sink::end) is called once, in any case.
pub trait Sink {
    /// Several threads are expected from the start.
    fn expect_several(&mut self) {}

    /// Whether it shows the names of addresses that are in no stack.
    fn names_addresses(&self) -> bool {
        false
    }

    /// The command has this process id, which comes before its first event where the backend knows it by then.
    fn command(&mut self, pid: i32) {
        let _ = pid;
    }

    /// Learns from an event, whether it is selected or not.
    fn observe(&mut self, ev: &Event<'_>) {
        let _ = ev;
    }

    /// Shows a selected event. `world` is what is known at its moment.
    ///
    /// # Errors
    /// What was shown could not be written.
    fn event(&mut self, ev: &Event<'_>, world: &World) -> Result<Flow, Error>;

    /// Whether it takes the records of functions thread by thread ([`Sink::records`]) where it is the only sink, instead of events in one
    /// order. All of them are selected then.
    fn by_thread(&self) -> bool {
        false
    }

    /// Up to this time, ns, it wants the records of all threads before any later one.
    fn due(&self) -> Option<u64> {
        None
    }

    /// It has all records and events before that time.
    ///
    /// # Errors
    /// What was shown could not be written.
    fn reached(&mut self, time: u64, world: &World) -> Result<Flow, Error> {
        let _ = (time, world);
        Ok(Flow::Continue)
    }

    /// Takes records of a thread.
    fn records(&mut self, records: &Records<'_>, world: &World) {
        let _ = (records, world);
    }

    /// There are no more events for now; all that happened before `now` (ns of the monotonic clock) have come.
    ///
    /// # Errors
    /// What was shown could not be written.
    fn idle(&mut self, now: u64) -> Result<Flow, Error> {
        let _ = now;
        Ok(Flow::Continue)
    }

    /// After the events of a turn, and before the end, with [`u64::MAX`]: `world` is what is known now. Names of what was mapped come
    /// later than the events that have its addresses.
    ///
    /// # Errors
    /// What was shown could not be written.
    fn catch_up(&mut self, now: u64, world: &World) -> Result<Flow, Error> {
        let _ = (now, world);
        Ok(Flow::Continue)
    }

    /// Writes what waits to be written.
    ///
    /// # Errors
    /// It could not be written.
    fn flush(&mut self) -> Result<Flow, Error> {
        Ok(Flow::Continue)
    }

    /// The number of events that were lost before they came, as far as that is known; before the last [`catch_up`](Sink::catch_up).
    fn lost(&mut self, events: u64) {
        let _ = events;
    }

    /// No more events will come: shows what is shown at the end, and writes everything.
    ///
    /// # Errors
    /// It could not be written.
    fn end(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Classes of events that [`event`](Sink::event) has taken and that could not be written after all, since the last call.
    fn take_lost(&mut self) -> Vec<u16> {
        Vec::new()
    }

    /// Whether something was written, or is waiting to be.
    fn has_written(&self) -> bool;
}

/// Counters of one probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Events that reached the pump.
    pub seen: u64,
    /// Events that were shown.
    pub recorded: u64,
    /// Events that could not be written.
    pub dropped: u64,
    /// Events that were not selected.
    pub filtered: u64,
}

/// A sink and whether it wants more.
struct Outlet<'b> {
    sink: Box<dyn Sink + 'b>,
    open: bool,
}

/// The result of a turn.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// Turns without an event, this one included; 0: there were some.
    pub idle: u32,
    /// No more events will come.
    pub ended: bool,
}

/// Moves events.
pub struct Pump<'b> {
    /// Where they come from.
    pub source: Source<'b>,
    /// Which of them are shown.
    pub selection: Selection,
    world: World,
    outlets: Vec<Outlet<'b>>,
    /// The watched mappings, and the recorder that keeps them.
    maps: Maps,
    monitor: Option<Monitor>,
    ordered: Ordered,
    counters: Table<u16, Counters>,
    /// Time of the first event of an enabled probe, ns of the monotonic clock.
    first_event: Option<u64>,
    malformed: u64,
    failures: Vec<Error>,
    /// A sink has asked for the end.
    ends: bool,
    /// The sinks know the command.
    told_command: bool,
    idle: u32,
}

impl<'b> Pump<'b> {
    /// Events of `source` that are selected go to `sinks`.
    pub fn new(source: Source<'b>, selection: Selection, sinks: Vec<Box<dyn Sink + 'b>>) -> Pump<'b> {
        let world = World::redacted(source.rules());
        Pump {
            source,
            selection,
            world,
            outlets: sinks.into_iter().map(|sink| Outlet { sink, open: true }).collect(),
            maps: Maps::new(),
            monitor: None,
            ordered: Ordered::default(),
            counters: Table::default(),
            first_event: None,
            malformed: 0,
            failures: Vec::new(),
            ends: false,
            told_command: false,
            idle: 0,
        }
    }

    /// Keeps names of descriptors.
    pub fn keep_descriptors(&mut self) {
        self.world.keep_descriptors();
    }

    /// Names the functions of stacks.
    pub fn resolve_stacks(&mut self, resolver: Resolver) {
        self.world.resolve_stacks(resolver);
    }

    /// The events are those of several traces, which come from there.
    pub fn join(&mut self, origins: Vec<Origin>) {
        self.world.join(origins);
    }

    /// What names functions, if anything does.
    pub fn resolver(&mut self) -> Option<&mut Resolver> {
        self.world.resolver()
    }

    /// Stacks that did not fit into memory: events that refer to them are shown without.
    pub fn stacks_not_held(&self) -> u64 {
        self.world.stacks_not_held()
    }

    /// What could not be resolved or held of stacks, and why: a line for each file.
    pub fn stack_troubles(&mut self) -> Vec<String> {
        let mut all = self.world.troubles();
        match self.stacks_not_held() {
            0 => {}
            n => all.insert(0, format!("{n} do not fit into memory, and are shown as lost (select fewer events)")),
        }
        all
    }

    /// What processes map joins the events, and goes to `monitor`'s recorder.
    pub fn watch_maps(&mut self, maps: Maps, monitor: Option<Monitor>) {
        (self.maps, self.monitor) = (maps, monitor);
    }

    /// What a process that is attached to later maps joins the events too, where mappings are watched.
    pub fn watch_process(&mut self, pid: i32) {
        if self.monitor.is_some() {
            // What cannot be looked at cannot be attached to either, which is reported then.
            let _ = sys::caps::with(sys::caps::TO_ATTACH, || self.maps.watch_pid(pid));
        }
    }

    /// Sleeps if nothing came the last time, then moves what is there.
    pub fn turn(&mut self) -> Turn {
        if self.idle > 0 {
            self.source.wait(pause(self.idle));
        }
        let now = time::monotonic();
        if !self.told_command
            && let Some(pid) = self.source.command()
        {
            self.told_command = true;
            self.outlets.iter_mut().for_each(|o| o.sink.command(pid));
        }
        self.take_maps();
        let Pump {
            source,
            selection,
            world,
            outlets,
            maps,
            counters,
            first_event,
            malformed,
            failures,
            ordered,
            ends,
            ..
        } = self;
        let by_thread = outlets.len() == 1 && outlets.iter().all(|o| o.sink.by_thread());
        let mut show = Show { selection, outlets, maps, counters, first_event, malformed, failures, ends };
        let mut incoming = Incoming { ordered, world, by_thread, show: &mut show };
        let polled = source.poll(true, &mut incoming);
        if polled.ended {
            incoming.settled(u64::MAX);
        }
        self.idle = if polled.events > 0 { 0 } else { self.idle + 1 };
        // The source is empty: all events before that moment have been seen.
        let idle = self.idle > 0;
        self.each_open(|sink, world| {
            let flow = if idle { sink.idle(now)? } else { Flow::Continue };
            if flow == Flow::Continue { sink.catch_up(now, world) } else { Ok(flow) }
        });
        self.each_open(|sink, _| sink.flush());
        Turn { idle: self.idle, ended: polled.ended }
    }

    fn each_open(&mut self, mut act: impl FnMut(&mut (dyn Sink + 'b), &World) -> Result<Flow, Error>) {
        for outlet in self.outlets.iter_mut().filter(|o| o.open) {
            let flow = act(outlet.sink.as_mut(), &self.world);
            settle(outlet, flow, (&mut self.failures, &mut self.ends));
        }
    }

    /// Mappings come late, and each processor's by itself: views see them when they come.
    fn take_maps(&mut self) {
        let Pump { maps, monitor, selection, world, outlets, failures, ends, .. } = self;
        maps.drain(|mapping| {
            if let Some(monitor) = monitor {
                monitor.mapping(mapping);
            }
            if let Ok(ev) = Event::parse(mapping) {
                show(&ev, selection, world, outlets, (&mut *failures, &mut *ends));
            }
        });
        if let Some(monitor) = monitor {
            monitor.lost_mappings(maps.lost());
        }
    }

    /// Whether no sink wants more; false where there are none.
    pub fn is_unread(&self) -> bool {
        !self.outlets.is_empty() && self.outlets.iter().all(|o| !o.open)
    }

    /// Whether a sink has asked for the end of the session.
    pub fn is_to_end(&self) -> bool {
        self.ends
    }

    /// Ends the sinks. What they could not write is counted as dropped. `lost`: events that never reached the pump, where that is known.
    pub fn end_sinks(&mut self, lost: Option<u64>) {
        self.take_maps();
        if let Some(lost) = lost {
            let lost = lost.saturating_add(self.maps.lost()).saturating_add(self.malformed);
            self.outlets.iter_mut().for_each(|o| o.sink.lost(lost));
        }
        self.each_open(|sink, world| sink.catch_up(u64::MAX, world));
        for outlet in &mut self.outlets {
            if let Err(e) = outlet.sink.end() {
                self.failures.push(e);
            }
            for id in outlet.sink.take_lost() {
                if let Some(c) = self.counters.get_mut(&id) {
                    c.recorded -= 1;
                    c.dropped += 1;
                }
            }
        }
    }

    /// Why sinks have failed, since the last call.
    pub fn take_failures(&mut self) -> Vec<Error> {
        std::mem::take(&mut self.failures)
    }

    /// Whether a sink has something to show.
    pub fn has_written(&self) -> bool {
        self.outlets.iter().any(|o| o.sink.has_written())
    }

    /// Counters per event class.
    pub fn counters(&self) -> impl Iterator<Item = (&'static Schema, Counters)> + '_ {
        let mut all: Vec<(u16, Counters)> = self.counters.iter().map(|(id, c)| (*id, *c)).collect();
        order::by_key(&mut all, |(id, _)| *id);
        all.into_iter().filter_map(|(id, c)| Some((events::registry::by_id(id)?, c)))
    }

    /// Time of the first event of an enabled probe, ns of the monotonic clock.
    pub fn first_event(&self) -> Option<u64> {
        self.first_event
    }

    /// Bytes that were not events. Always 0 unless something else wrote into the rings.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }
}

/// Shows events to the sinks, and counts them.
struct Show<'a, 'b> {
    selection: &'a Selection,
    outlets: &'a mut Vec<Outlet<'b>>,
    maps: &'a mut Maps,
    counters: &'a mut Table<u16, Counters>,
    first_event: &'a mut Option<u64>,
    malformed: &'a mut u64,
    failures: &'a mut Vec<Error>,
    ends: &'a mut bool,
}

impl Show<'_, '_> {
    #[inline]
    fn event(&mut self, bytes: &[u8], world: &mut World) {
        let Ok(ev) = Event::parse(bytes) else {
            *self.malformed += 1;
            return;
        };
        self.maps.note(&ev);
        if ev.schema.class != Class::Process && self.first_event.is_none() {
            *self.first_event = Some(ev.time());
        }
        let counter = show(&ev, self.selection, world, self.outlets, (self.failures, self.ends));
        let counters = self.counters.entry(ev.schema.id).or_default();
        counters.seen += 1;
        *counter(counters) += 1;
    }
}

/// Shows events as [`Show`] does, and hands records of functions to the sink thread by thread.
struct Threads<'s, 'a, 'b> {
    show: &'s mut Show<'a, 'b>,
    world: &'s mut World,
}

impl ByThread for Threads<'_, '_, '_> {
    fn due(&self) -> Option<u64> {
        self.show.outlets.iter().filter(|o| o.open).find_map(|o| o.sink.due())
    }

    fn reached(&mut self, time: u64) {
        let Show { outlets, failures, ends, .. } = &mut *self.show;
        for outlet in outlets.iter_mut().filter(|o| o.open) {
            let flow = outlet.sink.reached(time, self.world);
            settle(outlet, flow, (&mut *failures, &mut *ends));
        }
    }

    fn records(&mut self, records: &Records<'_>) {
        if self.show.first_event.is_none() {
            *self.show.first_event = records.each().next().map(|(time, _)| time);
        }
        let (mut number, mut exits) = (0, 0);
        for word in records.words() {
            (number, exits) = (number + 1, exits + u64::from(word & 1));
        }
        let open = self.show.outlets.iter().any(|o| o.open);
        for (class, n) in [(functions::entry(), number - exits), (functions::exit(), exits)] {
            let counters = self.show.counters.entry(class.id).or_default();
            counters.seen += n;
            *if open { &mut counters.recorded } else { &mut counters.dropped } += n;
        }
        for outlet in self.show.outlets.iter_mut().filter(|o| o.open) {
            outlet.sink.records(records, self.world);
        }
    }

    fn event(&mut self, event: &[u8]) {
        self.show.event(event, self.world);
    }
}

/// What arrives at the pump: in order, or, with function records, to be put in order.
struct Incoming<'s, 'a, 'b> {
    ordered: &'s mut Ordered,
    world: &'s mut World,
    /// The records of functions go to the sink thread by thread.
    by_thread: bool,
    show: &'s mut Show<'a, 'b>,
}

impl Deliver for Incoming<'_, '_, '_> {
    #[inline]
    fn event(&mut self, stream: StreamId, event: &[u8]) {
        if !self.ordered.is_active() {
            self.world.comes_from(stream);
            return self.show.event(event, self.world);
        }
        // Names of functions are known before their order is.
        if let Ok(ev) = Event::parse(event)
            && (ev.schema.id == P_FUNCTION.id || ev.schema.name == events::values::CLASS)
        {
            self.world.note_function(&ev);
        }
        self.ordered.event(stream, event);
    }

    fn functions(&mut self, run: &Run<'_>) {
        self.ordered.run(run);
    }

    fn settled(&mut self, until: u64) {
        if self.by_thread {
            let mut threads = Threads { show: self.show, world: self.world };
            return self.ordered.release_by_thread(until, &mut threads);
        }
        self.ordered.release(until, self.world, |event, world| self.show.event(event, world));
    }
}

/// How long to sleep after this many turns without an event.
fn pause(times: u32) -> Duration {
    Duration::from_millis((1u64 << times.min(4)).min(16))
}

/// Shows an event, without the texts that are not to be shown, to all sinks that want it. Filters have the whole event. Returns the counter that it belongs to.
#[inline]
fn show(
    ev: &Event<'_>,
    selection: &Selection,
    world: &mut World,
    outlets: &mut [Outlet<'_>],
    (failures, ends): (&mut Vec<Error>, &mut bool),
) -> fn(&mut Counters) -> &mut u64 {
    let (redacted, original) = (world.redact(ev), ev);
    let Some(ev) = &redacted.as_deref().map_or(Some(*ev), |bytes| Event::parse(bytes).ok()) else {
        return |c| &mut c.filtered;
    };
    world.before(original, ev);
    let mut counter: fn(&mut Counters) -> &mut u64 = |c| &mut c.filtered;
    if selection.covers(ev) {
        outlets.iter_mut().for_each(|o| o.sink.observe(ev));
        if selection.passes(original, world.whole()) {
            counter = |c| &mut c.dropped;
            for outlet in outlets.iter_mut().filter(|o| o.open) {
                let flow = outlet.sink.event(ev, world);
                settle(outlet, flow, (&mut *failures, &mut *ends));
                // What cannot be written after all is taken back at the end.
                counter = |c| &mut c.recorded;
            }
        }
    }
    world.after(original, ev);
    counter
}

fn settle(outlet: &mut Outlet<'_>, flow: Result<Flow, Error>, (failures, ends): (&mut Vec<Error>, &mut bool)) {
    match flow {
        Ok(Flow::Continue) => {}
        Ok(Flow::End) => *ends = true,
        Ok(Flow::Stop) => outlet.open = false,
        Err(e) => {
            outlet.open = false;
            failures.push(e);
        }
    }
}
