//! A script as a sink of the pump: its clauses run for the events, in the order of the events; its intervals between them.
//!
//! ```text
//!  pump ──► ScriptSink ─┬─► lifetime (begin, intervals, end) ─┬─► running (clauses) ──► the machine ──► prints
//!                       └─► events, calls of functions ───────┘        └─► maps (what the kernel has collected)
//! ```

mod lifetime;
mod maps;
mod running;
mod troubles;

use super::cgroups::Cgroups;
use super::from_records::FromRecords;
use super::in_kernel::InKernel;
use super::places::{Places, Run};
use super::seen::{Get, Stacks};
use super::{collecting, predicates};
use crate::output::Output;
use crate::view::screen::Clocks;
use engine::Result;
use engine::pipeline::functions::Records;
use engine::pipeline::pump::{Flow, Sink};
use engine::pipeline::world::World;
use engine::provider::AttachPoint;
use engine::request::collecting::Collected;
use engine::request::enabling::{self, Enabling};
use engine::request::functions::Sums;
use engine::request::watches::Watches;
use events::functions;
use events::traces::Origin;
use events::{Class, Event as Happened};
use kernel::peek::Peek;
use lang::script::Program;
use lang::script::run::Machine;
use lang::script::types::Space;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// The longest time from an event to its arrival, ns.
const ON_THE_WAY: u64 = 50_000_000;

/// What runs for events of a class, and where the values come from.
type Runs = Rc<[(Run, Vec<Get>)]>;

/// A script and where its output goes.
pub struct Script {
    machine: Machine,
    program: Rc<Program>,
    places: Places,
    /// Name and text.
    source: (String, String),
    /// The name of trapline's own thread.
    comm: Vec<u8>,
    output: Output,
    json: bool,
    one_stream: bool,
    raw_strings: bool,
    clocks: Clocks,
    /// When it began, ns.
    started: u64,
    /// What runs for the events of a class.
    classes: HashMap<u16, Runs>,
    /// What runs for a function, by its number: at its entry, and at its return.
    functions: HashMap<(u32, bool), Rc<[Run]>>,
    /// Open calls of functions, by thread.
    calls: HashMap<u32, Vec<Open>>,
    stacks: RefCell<Stacks>,
    /// When each interval is due next.
    due: Vec<u64>,
    /// All events before that time were seen.
    idle: u64,
    /// The time of the event that was seen last.
    last: u64,
    /// The events are those of a trace.
    past: bool,
    /// What runs in the kernel, unless the kernel has refused it.
    collected: Option<Arc<Collected>>,
    /// Its clauses that take the records of functions as they come.
    from_records: Option<FromRecords>,
    /// These take sums, and no records.
    takes_sums: bool,
    /// What it has printed could not be written.
    is_unwritten: bool,
    /// Why what it has collected could not be read.
    unread: Vec<String>,
    /// What else was to run in the kernel, and what the kernel has refused of both.
    in_kernel: InKernel,
    /// What its watchpoints at functions' arguments watch, by probe.
    watches: Vec<(String, Watches)>,
    /// Operations that fail are said.
    failures: bool,
    /// It was not said yet that the probes are attached, and is to be said.
    announces: bool,
    /// Where each clause runs is to be said once the probes are attached.
    explains: bool,
    /// How often it was asked to print its maps.
    asked: u32,
    lost: u64,
    has_ended: bool,
    /// Who runs it: process, user and group.
    own: (u32, u32, u32),
    /// It comes with a trace, and files and commands of this machine are none of its business: how many were not shown.
    strange: Option<u64>,
    cgroups: Cgroups,
    /// When it has ended, ns: there are no intervals any more.
    ended: Option<u64>,
    /// The process that `-c` started.
    child: Option<u32>,
    /// Where it runs, or its trace is from; of several traces, nothing.
    origin: Rc<Origin>,
    /// Reads the kernel's memory for root.
    peek: OnceCell<Option<Peek>>,
}

/// A call of a function that has not returned.
struct Open {
    /// The number of the function.
    number: u32,
    /// When it was entered, ns.
    time: u64,
    /// Its arguments, where a clause reads them at the return.
    arguments: Box<[u8]>,
}

/// The most open calls of a thread whose arguments are kept.
const MOST_KEPT: usize = 1 << 16;

/// What a script looks like from outside.
#[derive(Clone, Debug, Default)]
pub struct Manner {
    /// JSON lines.
    pub json: bool,
    /// Strings as they are.
    pub raw_strings: bool,
    /// Errors are among what is printed, not on stderr.
    pub one_stream: bool,
    /// Operations that fail are said.
    pub failures: bool,
}

impl Script {
    /// One that has not begun.
    pub fn new(
        program: Program,
        places: Places,
        source: (String, String),
        output: Output,
        manner: &Manner,
        clocks: Clocks,
    ) -> Script {
        let started = sys::time::monotonic();
        Script {
            machine: Machine::new(program.clone(), started),
            program: Rc::new(program),
            places,
            source,
            comm: sys::proc::comm(std::process::id() as i32).unwrap_or_default(),
            output,
            json: manner.json,
            one_stream: manner.one_stream,
            raw_strings: manner.raw_strings,
            clocks,
            started,
            classes: HashMap::new(),
            functions: HashMap::new(),
            calls: HashMap::new(),
            stacks: RefCell::default(),
            due: Vec::new(),
            idle: 0,
            last: started,
            past: false,
            collected: None,
            from_records: None,
            takes_sums: false,
            is_unwritten: false,
            unread: Vec::new(),
            in_kernel: InKernel::default(),
            watches: Vec::new(),
            failures: manner.failures,
            announces: false,
            explains: false,
            asked: 0,
            lost: 0,
            has_ended: false,
            own: (std::process::id(), sys::process::ruid(), sys::process::rgid()),
            strange: None,
            cgroups: Cgroups::default(),
            ended: None,
            child: None,
            origin: Rc::new(Origin { host: sys::proc::host_name(), ..Origin::default() }),
            peek: OnceCell::new(),
        }
    }

    /// Its events are those of a trace, which begins at this time and is from there.
    pub fn of_the_past(&mut self, started: u64, origin: Origin) {
        (self.past, self.started, self.last) = (true, started, started);
        self.origin = Rc::new(origin);
    }

    /// It is the only one that sees the events of a session: clauses of functions that only collect take records.
    pub fn take_records(&mut self) {
        self.from_records = FromRecords::of(&self.program, &self.places);
    }

    /// What threads can keep of calls of functions in the place of records.
    pub fn sums(&self) -> Option<Sums> {
        self.from_records.as_ref().and_then(FromRecords::sums)
    }

    /// Threads keep that.
    pub fn take_sums(&mut self) {
        self.takes_sums = true;
    }

    /// Whether nothing of it looks at the ends of calls of functions.
    pub fn takes_entries_alone(&self) -> bool {
        self.from_records.as_ref().is_some_and(FromRecords::takes_entries_alone)
    }

    /// It comes with a trace, where these had run it: process, user and group. It ended at this time, as far as that is known.
    pub fn of_others(&mut self, own: (u32, u32, u32), ended: Option<u64>) {
        (self.own, self.strange, self.ended) = (own, Some(0), ended);
    }

    /// When it has ended, ns.
    pub fn ended(&self) -> Option<u64> {
        self.ended
    }

    /// Whether its events are those of a trace.
    pub fn is_past(&self) -> bool {
        self.past
    }

    /// When it began, ns, and who runs it.
    pub fn origin(&self) -> (u64, (u32, u32, u32)) {
        (self.started, self.own)
    }

    /// What was printed, where nobody has written it yet.
    pub fn printed(&mut self) -> &mut Vec<u8> {
        self.output.buffer()
    }

    /// What `exit` was given.
    pub fn exit(&self) -> Option<i32> {
        self.machine.exit()
    }

    /// Whether what it has printed could not be written, though somebody may read it; that was reported.
    pub fn is_unwritten(&self) -> bool {
        self.is_unwritten
    }

    /// Whether nobody reads what it prints.
    pub fn is_unread(&self) -> bool {
        self.output.failed()
    }

    /// When the next interval is due, ns.
    pub fn next_due(&self) -> Option<u64> {
        self.due.iter().min().copied()
    }

    /// Has clauses run in the kernel, where they can. With `everyone`, the kernel's own threads have events too.
    pub fn assign(&mut self, enablings: &mut [Enabling], everyone: bool) -> Result<()> {
        for enabling in enablings.iter_mut() {
            if let enabling::What::Probe(probe) = &mut enabling.what
                && let Some(probe) = Arc::get_mut(probe)
            {
                probe.everyone = everyone;
                if let Some(AttachPoint::WatchArgument(_)) = &probe.point {
                    self.watches.push((probe.name.clone(), probe.watches.clone()));
                }
            }
        }
        let program = Arc::new(self.program.as_ref().clone());
        collecting::read_registers(&program, &self.places, enablings)?;
        // In the kernel nobody says what fails.
        if !self.failures {
            self.collected = collecting::assign(&program, &self.places, enablings);
        }
        predicates::assign(&program, &self.places, enablings);
        collecting::read_memory(&program, &self.places, enablings)?;
        self.in_kernel = InKernel::of(enablings);
        if !program.symbols.contains(&Space::User) {
            super::bare::assign(&program, &self.places, enablings);
        }
        Ok(())
    }

    /// Writes what was printed.
    pub fn flush(&mut self) {
        self.output.flush();
    }

    fn flow(&mut self) -> Result<Flow> {
        self.written()?;
        Ok(match self.output.failed() {
            true => Flow::Stop,
            false if self.machine.exit().is_some() => Flow::End,
            false => Flow::Continue,
        })
    }

    /// Why something could not be written, once.
    fn written(&mut self) -> Result<()> {
        let trouble = self.output.take_trouble();
        self.is_unwritten |= trouble.is_some();
        trouble.map_or(Ok(()), Err)
    }
}

/// The sink of a script, which others look at too.
pub struct ScriptSink(pub Rc<RefCell<Script>>);

impl Sink for ScriptSink {
    fn event(&mut self, ev: &Happened<'_>, world: &World) -> Result<Flow> {
        let mut script = self.0.borrow_mut();
        script.attached();
        if script.machine.exit().is_some() {
            return script.flow();
        }
        script.until(ev.time(), Some(world));
        script.last = ev.time();
        match functions::kind(ev.schema) {
            Some(kind) => script.function(ev, kind, world),
            None if ev.schema.id == functions::sums().id => {
                let sums = functions::Sums::of(ev);
                script.from_records.iter_mut().for_each(|all| all.add((ev.pid(), ev.tid()), &sums, world));
            }
            None => script.run_all(ev, world, None, (None, None)),
        }
        if ev.schema.class == Class::Process && ev.schema.name == "exit" {
            script.machine.forget_thread(ev.tid());
            script.forget_records(ev.tid());
        }
        script.flow()
    }

    fn by_thread(&self) -> bool {
        self.0.borrow().from_records.is_some()
    }

    fn due(&self) -> Option<u64> {
        let script = self.0.borrow();
        script.next_due().filter(|_| script.machine.exit().is_none())
    }

    fn reached(&mut self, time: u64, world: &World) -> Result<Flow> {
        let mut script = self.0.borrow_mut();
        script.until(time, Some(world));
        script.flow()
    }

    fn records(&mut self, records: &Records<'_>, world: &World) {
        let mut script = self.0.borrow_mut();
        script.attached();
        if script.machine.exit().is_some() {
            return;
        }
        if let Some(from_records) = &mut script.from_records {
            from_records.take(records, world);
        }
        script.last = script.last.max(records.end());
    }

    fn idle(&mut self, now: u64) -> Result<Flow> {
        let mut script = self.0.borrow_mut();
        if !script.past {
            script.idle = now;
        }
        Ok(Flow::Continue)
    }

    fn catch_up(&mut self, now: u64, world: &World) -> Result<Flow> {
        let mut script = self.0.borrow_mut();
        if now == u64::MAX {
            script.attached();
            script.finish(Some(world));
            return Ok(Flow::Continue);
        }
        script.attached();
        script.print_if_asked(Some(world));
        // What has happened shortly before may still be on its way.
        let idle = script.idle.saturating_sub(ON_THE_WAY);
        script.until(idle, Some(world));
        script.flow()
    }

    fn flush(&mut self) -> Result<Flow> {
        let mut script = self.0.borrow_mut();
        script.output.flush();
        script.flow()
    }

    fn command(&mut self, pid: i32) {
        self.0.borrow_mut().child = u32::try_from(pid).ok();
    }

    fn lost(&mut self, events: u64) {
        self.0.borrow_mut().lost = events;
    }

    fn names_addresses(&self) -> bool {
        !self.0.borrow().program.symbols.is_empty()
    }

    fn end(&mut self) -> Result<()> {
        let mut script = self.0.borrow_mut();
        script.finish(None);
        script.output.close();
        script.written()
    }

    fn has_written(&self) -> bool {
        true
    }
}
