//! The sink of profiles: it gathers samples and draws them.

use super::gather::{Gather, has_stacks};
use super::off_cpu::OffCpu;
use super::weight::Weight;
use crate::view::stacks::Drawing;
use engine::pipeline::pump::{Flow, Sink};
use engine::pipeline::world::World;
use engine::{Error, Result, provider};
use events::Event;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::rc::Rc;
use views::profile::Stacks;
use views::profile::style::Style;

/// Between two drawings of the live table, ns.
const REDRAW: u64 = 1_000_000_000;
/// Between two times that samples are resolved, ns.
const SETTLE: u64 = 200_000_000;

/// What is gathered, and by what.
pub struct Profile {
    gather: Gather,
    weight: Weight,
    off_cpu: Option<OffCpu>,
}

impl Profile {
    /// Nothing yet.
    pub fn new(gather: Gather, weight: Weight, off_cpu: Option<OffCpu>) -> Rc<RefCell<Profile>> {
        Rc::new(RefCell::new(Profile { gather, weight, off_cpu }))
    }

    /// What was gathered.
    pub fn stacks(&self) -> &Stacks {
        &self.gather.stacks
    }

    fn event(&mut self, ev: &Event<'_>, world: &World) {
        if self.gather.has_wall_clock()
            && let Some(period) = provider::clock_period(ev.schema.name)
        {
            return self.gather.event(ev, period, world);
        }
        if self.gather.has_wall_clock() && provider::is_of_blocked(ev.schema.name) {
            return self.gather.blocked(ev, ev.value_of("ns"), world);
        }
        if let Some(off_cpu) = &mut self.off_cpu {
            return off_cpu.event(ev, world, &mut self.gather);
        }
        if has_stacks(ev.schema) {
            let weight = self.weight.of(ev);
            self.gather.event(ev, weight, world);
        }
    }

    /// What it lacks: words for the last line, and counters.
    pub fn told(&self) -> (Vec<String>, Value) {
        let mut counters = self.gather.to_json();
        let mut lines = self.gather.missing.lines();
        if self.weight.nothing > 0 {
            counters["weightless"] = json!(self.weight.nothing);
            lines.push(format!(
                "events whose number is negative or not known, which weigh nothing: {}",
                self.weight.nothing
            ));
        }
        if let Some(off_cpu) = &self.off_cpu {
            off_cpu.tell(&mut lines, &mut counters);
            if self.gather.stacks.is_empty() && !self.gather.has_wall_clock() {
                lines.push("no thread was blocked and ran again: leave --off-cpu out to see where they run".into());
            }
        }
        (lines, counters)
    }
}

/// Gathers, and draws at the end or all the time.
pub struct ProfileSink {
    profile: Rc<RefCell<Profile>>,
    drawings: Vec<Drawing>,
    style: Style,
    /// The table is drawn again and again: when it was drawn last.
    live: Option<u64>,
    settled: u64,
    /// Something was drawn.
    drawn: bool,
}

impl ProfileSink {
    /// A sink; with `live`, the table on a terminal is drawn every second.
    pub fn new(profile: Rc<RefCell<Profile>>, drawings: Vec<Drawing>, style: Style, live: bool) -> ProfileSink {
        let live = (live && drawings.iter().any(Drawing::is_on_terminal)).then_some(0);
        ProfileSink { profile, drawings, style, live, settled: 0, drawn: false }
    }

    fn redraw(&mut self, now: u64) -> Result<()> {
        let profile = self.profile.borrow();
        for drawing in self.drawings.iter_mut().filter(|d| d.is_on_terminal()) {
            drawing.screen(&profile.gather.stacks, &self.style)?;
        }
        self.live = Some(now);
        Ok(())
    }
}

impl Sink for ProfileSink {
    fn observe(&mut self, ev: &Event<'_>) {
        let mut profile = self.profile.borrow_mut();
        profile.gather.observe(ev);
        profile.off_cpu.iter_mut().for_each(|o| o.observe(ev));
    }

    fn event(&mut self, ev: &Event<'_>, world: &World) -> Result<Flow> {
        let mut profile = self.profile.borrow_mut();
        profile.event(ev, world);
        if profile.gather.is_full() {
            profile.gather.settle(ev.time(), world);
        }
        Ok(Flow::Continue)
    }

    fn catch_up(&mut self, now: u64, world: &World) -> std::result::Result<Flow, Error> {
        let due = now.saturating_sub(self.settled) >= SETTLE;
        if due {
            let mut profile = self.profile.borrow_mut();
            let Profile { gather, off_cpu, .. } = &mut *profile;
            if let Some(off_cpu) = off_cpu.as_mut().filter(|_| now == u64::MAX) {
                off_cpu.end(gather);
            }
            gather.settle(now, world);
            self.settled = now;
        }
        if now != u64::MAX && self.live.is_some_and(|last| now.saturating_sub(last) >= REDRAW) {
            self.redraw(now)?;
        }
        let read = self.drawings.is_empty() || self.drawings.iter().any(|d| !d.output.failed());
        Ok(if read { Flow::Continue } else { Flow::Stop })
    }

    fn lost(&mut self, events: u64) {
        self.profile.borrow_mut().gather.stacks.set_lost(Some(events));
    }

    fn end(&mut self) -> Result<()> {
        let profile = self.profile.borrow();
        let mut first = Ok(());
        for drawing in &mut self.drawings {
            let cleared = if self.live.is_some() && drawing.is_on_terminal() { drawing.clear() } else { Ok(()) };
            let drawn = cleared.and_then(|()| drawing.draw(&profile.gather.stacks, &self.style));
            drawing.output.close();
            first = first.and(drawn).and(drawing.output.take_trouble().map_or(Ok(()), Err));
        }
        self.drawn = true;
        first
    }

    fn has_written(&self) -> bool {
        self.drawn
    }
}
