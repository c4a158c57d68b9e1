//! A script as a sink of the pump: its clauses run for the events, in the order of the events; its intervals between them.

use super::called::Called;
use super::catalogue::As;
use super::cgroups::Cgroups;
use super::collecting;
use super::from_records::FromRecords;
use super::in_kernel::InKernel;
use super::places::{self, Places, Run};
use super::predicates;
use super::prints::{Names, Prints};
use super::seen::{self, Get, Seen, Stacks};
use super::tick::Tick;
use crate::output::{Output, complain};
use crate::view::screen::Clocks;
use engine::pipeline::functions::Records;
use engine::pipeline::pump::{Flow, Sink};
use engine::pipeline::world::World;
use engine::provider::AttachPoint;
use engine::request::collecting::Collected;
use engine::request::enabling::{self, Enabling};
use engine::request::watches::Watches;
use engine::rights;
use engine::{Error, Result};
use events::functions::{self, Kind};
use events::names::Names as _;
use events::{Class, Event as Happened, Schema};
use kernel::peek::Peek;
use lang::diag::{place, start};
use lang::script::Program;
use lang::script::ir::What;
use lang::script::run::{Event, Fault, Host, Machine};
use lang::script::types::Space;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use sys::signal;
use views::script::{self as view};

/// SIGUSR1: who sends it wants to see the maps as they are now, or has a clause for it.
const PRINT: i32 = 10;
/// Events come so much later than they happen, ns, at most.
const ON_THE_WAY: u64 = 50_000_000;
/// Intervals that are later than this, ns, are left out.
const LATEST: u64 = 1_000_000_000;
/// Over a trace, all but so many at once.
const MOST_TICKS: u64 = 10_000_000;

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
    /// It comes with a trace, and files and commands of this machine are none of its business: so many were not shown.
    strange: Option<u64>,
    cgroups: Cgroups,
    /// When it has ended, ns: there are no intervals any more.
    ended: Option<u64>,
    /// The process that `-c` started.
    child: Option<u32>,
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

/// Of so many open calls of a thread the arguments are kept.
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
            peek: OnceCell::new(),
        }
    }

    /// Its events are those of a trace, which begins at this time.
    pub fn of_the_past(&mut self, started: u64) {
        (self.past, self.started, self.last) = (true, started, started);
    }

    /// It is the only one that sees the events of a session: clauses of functions that only collect take records.
    pub fn take_records(&mut self) {
        self.from_records = FromRecords::of(&self.program, &self.places);
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

    /// Where each clause runs, a line each.
    fn explained(&self) -> Vec<String> {
        let line = |(nth, clause): (usize, &lang::script::ir::Clause)| {
            let at = start(&self.source.0, clause.span, &self.source.1);
            let probes = clause.points.iter().map(|p| p.name()).collect::<Vec<_>>().join(", ");
            let own = clause.points.iter().all(|p| p.is_own());
            let from_records = self.from_records.as_ref().is_some_and(|w| w.has(nth));
            let how = match own {
                true => "in trapline".into(),
                false if from_records => "in trapline, over the records of each thread".into(),
                false => self.in_kernel.place(nth).unwrap_or("in trapline, over the events of its probes".into()),
            };
            format!("{at}: {probes}: {how}")
        };
        self.program.clauses.iter().enumerate().map(line).collect()
    }

    /// Adds what was collected elsewhere to maps that are about to be read.
    fn sync(&mut self, maps: impl Iterator<Item = usize>) {
        self.sync_records();
        let Some(collected) = self.collected.clone() else { return };
        let machine = &mut self.machine;
        let failed = collecting::taken(&collected, maps, |map, t| machine.merge(map, &t.key, &t.words));
        self.unread.extend(failed);
    }

    /// Adds what was collected of the records of functions.
    fn sync_records(&mut self) {
        let Some(mut from_records) = self.from_records.take() else { return };
        let mut unknown = Vec::new();
        self.with_host(None, self.last, |machine, host, _| {
            let each = |clause, event: &dyn Event, held| machine.collected(clause, event, held, host);
            from_records.drain(each, |clause, n| unknown.push((clause, n)));
        });
        unknown.iter().for_each(|(clause, n)| self.machine.unknown(*clause, *n));
        self.from_records = Some(from_records);
    }

    /// It is to say when its probes are attached, and where its clauses run then.
    pub fn announce(&mut self, wanted: bool, explains: bool) {
        // A signal that cannot be taken ends the script, as it would without this.
        let _ = signal::count_signal(PRINT);
        (self.announces, self.explains) = (wanted, explains);
    }

    /// Its probes are attached.
    pub fn attached(&mut self) {
        if std::mem::take(&mut self.explains) {
            self.explained().iter().for_each(|line| complain(line));
        }
        if !std::mem::take(&mut self.announces) {
            return;
        }
        self.in_kernel.refused().iter().for_each(|line| complain(line));
        let n = self.places.count();
        if self.json {
            let mut line = Vec::new();
            view::json::line("attached_probes", &mut line, |out| {
                out.extend_from_slice(format!("{{\"probes\": {n}}}").as_bytes());
            });
            self.output.write_lines(&line);
            self.output.flush();
        } else {
            eprintln!("Attached {n} probe{}", if n == 1 { "" } else { "s" });
        }
    }

    /// Runs `begin`.
    pub fn begin(&mut self, world: Option<&World>) {
        for clause in self.places.begin.clone() {
            self.tick(clause, self.started, world);
        }
        self.set_out(self.started);
        self.output.flush();
    }

    /// Runs the clauses that walk over objects of the kernel: each of its objects once.
    ///
    /// # Errors
    /// The kernel does not walk over them.
    pub fn walk(&mut self) -> Result<()> {
        for (objects, clause) in self.places.objects.clone() {
            let walked = objects.each(|values| {
                let words: Vec<(&str, u64)> = objects.words.iter().map(|w| w.0).zip(values.iter().copied()).collect();
                self.moment(clause, sys::time::monotonic(), None, &words);
                self.machine.exit().is_none() && !self.is_unread()
            });
            let todo = "it takes Linux 5.8 with BTF; task_vma takes 5.12";
            walked.map_err(|e| Error::failed(format!("iter:{}", objects.name), e.to_string(), todo))?;
        }
        self.output.flush();
        Ok(())
    }

    /// Intervals begin now.
    pub fn set_out(&mut self, now: u64) {
        self.due = self.places.intervals.iter().map(|(period, _)| now.saturating_add(*period)).collect();
    }

    /// Runs a clause for which nothing has happened but that it is time.
    fn tick(&mut self, clause: usize, time: u64, world: Option<&World>) {
        self.moment(clause, time, world, &[]);
    }

    /// Runs a clause for a moment, or for an object of which these words are known.
    fn moment(&mut self, clause: usize, time: u64, world: Option<&World>, words: &[(&str, u64)]) {
        let program = Rc::clone(&self.program);
        let Some(c) = program.clauses.get(clause) else { return };
        if (self.collected.is_some() || self.from_records.is_some()) && !self.places.begin.contains(&clause) {
            self.sync(c.maps.iter().copied());
        }
        let own = c.points.iter().find(|p| p.is_own());
        let probe = own.map(|p| p.name()).unwrap_or_default();
        let comm = std::mem::take(&mut self.comm);
        self.last = self.last.max(time);
        let (started, own, child, past) = (self.started, self.own, self.child, self.past);
        let peek = std::mem::take(&mut self.peek);
        // Over a trace, the memory would be that of now.
        let reader = (rights::is_root() && !past && self.strange.is_none()).then_some(&peek);
        let tick = Tick { leaves: &c.leaves, time, started, probe, comm: &comm, own, child, past, peek: reader, words };
        self.with_host(world, time, |machine, host, _| machine.run(clause, &tick, host));
        (self.comm, self.peek) = (comm, peek);
    }

    /// Runs something that prints.
    fn with_host(
        &mut self,
        world: Option<&World>,
        now: u64,
        run: impl FnOnce(&mut Machine, &mut dyn Host, &RefCell<Stacks>),
    ) {
        let Script {
            machine,
            program,
            source,
            output,
            json,
            one_stream,
            raw_strings,
            clocks,
            stacks,
            strange,
            cgroups,
            failures,
            watches,
            ..
        } = self;
        let mut prints = Prints {
            program,
            source: (&source.0, &source.1),
            names: Names { world, stacks, now },
            output,
            json: *json,
            one_stream: *one_stream,
            raw_strings: *raw_strings,
            clocks: *clocks,
            strange,
            cgroups,
            failures: *failures,
            watches,
        };
        run(machine, &mut prints, stacks);
    }

    /// Runs the intervals that are due until then, in the order of their times.
    pub fn until(&mut self, time: u64, world: Option<&World>) {
        while let Some((due, nth)) = self.due.iter().enumerate().map(|(nth, due)| (*due, nth)).min() {
            if due > time || self.machine.exit().is_some() {
                return;
            }
            let (period, clause) = self.places.intervals[nth];
            self.tick(clause, due, world);
            // What could not be kept up with is made up for, but not without end.
            let late = if self.past { period.saturating_mul(MOST_TICKS) } else { LATEST.max(period) };
            let next = due.saturating_add(period);
            self.due[nth] = if next < time.saturating_sub(late) { time.saturating_add(period) } else { next };
        }
    }

    /// What runs for the events of a class.
    fn runs_of(&mut self, schema: &'static Schema) -> Runs {
        if let Some(known) = self.classes.get(&schema.id) {
            return Rc::clone(known);
        }
        let probe = schema.probe();
        let aliases = self.places.aliases_of(&probe);
        let gets =
            |run: &Run| seen::gets(&self.program.clauses[run.1].leaves, &self.program.hoisted, schema, run.0, aliases);
        let mut runs: Vec<(Run, Vec<Get>)> = Vec::new();
        match functions::kind(schema) {
            // All functions have one class.
            Some(Kind::Entry | Kind::Exit) => {
                let one = |(pattern, run): &(String, Run)| {
                    let mut gets = gets(run);
                    // A function's probe is what the script calls it.
                    let end = if run.0 == As::Exit { ":return" } else { "" };
                    for (get, leaf) in gets.iter_mut().zip(&self.program.clauses[run.1].leaves) {
                        if leaf.what == What::Value("probe") {
                            *get = Get::Own(format!("function:{pattern}{end}"));
                        }
                    }
                    (*run, gets)
                };
                runs.extend(self.places.functions.iter().map(one));
            }
            _ => {
                let own = self.places.probes.get(probe.as_ref()).into_iter().flatten();
                runs.extend(own.map(|run| (*run, gets(run))));
            }
        }
        let runs: Rc<[_]> = runs.into();
        self.classes.insert(schema.id, Rc::clone(&runs));
        runs
    }

    /// The clauses of a function, at its entry or its return: places among those of the class.
    fn clauses_of(&mut self, number: u32, world: &World, at_return: bool) -> Rc<[Run]> {
        let Script { functions, places, .. } = self;
        let found = functions.entry((number, at_return)).or_insert_with(|| {
            let name = world.function(number);
            let fits = |(_, (pattern, run)): &(usize, &(String, Run))| {
                let named = name.as_ref().is_some_and(|name| places::fits(pattern, name));
                named && (run.0 == As::Exit) == at_return
            };
            let all = places.functions.iter().enumerate().filter(fits);
            all.map(|(nth, (_, run))| (run.0, nth)).collect()
        });
        Rc::clone(found)
    }

    fn run_all(
        &mut self,
        ev: &Happened<'_>,
        world: &World,
        wanted: Option<Rc<[Run]>>,
        (duration, called): (Option<u64>, Option<&Called<'_>>),
    ) {
        let runs = self.runs_of(ev.schema);
        let (started, child) = (self.started, self.child);
        let one = |script: &mut Script, ((role, clause), gets): &(Run, Vec<Get>)| {
            // A call that is cut off by the end has no exit.
            if *role == As::Exit && ev.is_syscall() && ev.caps() & events::layout::CAP_NO_RESULT != 0 {
                return;
            }
            script.with_host(Some(world), ev.time(), |machine, host, stacks| {
                let seen = Seen { ev, world, gets, role: *role, started, duration, called, stacks, child };
                machine.run(*clause, &seen, host);
            });
        };
        match wanted {
            Some(wanted) => wanted.iter().filter_map(|(_, nth)| runs.get(*nth)).for_each(|run| one(self, run)),
            None => runs.iter().for_each(|run| one(self, run)),
        }
    }

    fn function(&mut self, ev: &Happened<'_>, kind: Kind, world: &World) {
        let number = ev.value_of("number") as u32;
        let calls = self.calls.entry(ev.tid()).or_default();
        let signature = self.places.values.and_then(|_| world.signature(number));
        match kind {
            Kind::Entry => {
                let values = ev.bytes_of("values");
                let keeps = self.places.keeps_arguments && calls.len() < MOST_KEPT;
                let arguments = if keeps { values.into() } else { Box::default() };
                calls.push(Open { number, time: ev.time(), arguments });
                let runs = self.clauses_of(number, world, false);
                let called = signature.filter(|_| !runs.is_empty()).map(|s| Called::new(s, values, &[]));
                self.run_all(ev, world, Some(runs), (None, called.as_ref()));
            }
            Kind::Exit => {
                // What an exception or longjmp has left returns never.
                let at = calls.iter().rposition(|open| open.number == number);
                let open = at.and_then(|at| calls.drain(at..).next());
                let duration = open.as_ref().map(|open| ev.time().saturating_sub(open.time));
                let arguments = open.map_or_else(Box::default, |open| open.arguments);
                let runs = self.clauses_of(number, world, true);
                let result = ev.bytes_of("values");
                let called = signature.filter(|_| !runs.is_empty()).map(|s| Called::new(s, &arguments, result));
                self.run_all(ev, world, Some(runs), (duration, called.as_ref()));
            }
            Kind::Lost | Kind::Begun => calls.clear(),
        }
    }

    /// A thread that had records has ended.
    fn forget_records(&mut self, tid: u32) {
        if let Some(from_records) = &mut self.from_records {
            from_records.forget_thread(tid);
            if from_records.is_full() {
                self.sync_records();
            }
        }
    }

    /// Writes what was printed.
    pub fn flush(&mut self) {
        self.output.flush();
    }

    /// Runs `end`, and prints the maps.
    pub fn finish(&mut self, world: Option<&World>) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        let time = self.ended.unwrap_or(self.last.max(self.idle));
        self.ended = Some(time);
        self.until(time, world);
        for clause in self.places.end.clone() {
            self.tick(clause, time, world);
        }
        self.sync(0..self.program.maps.len());
        if let Some(told) = self.collected.as_ref().map(|c| c.told()) {
            self.machine.bad_read(told.bad_reads);
            told.refused.iter().for_each(|(map, n)| self.machine.refuse(*map, *n));
            told.faults.iter().for_each(|(fault, at, n)| self.machine.fault(*fault, *at, *n));
        }
        if !self.json {
            self.output.write_lines(b"\n\n");
        }
        self.with_host(world, time, |machine, host, _| machine.print_maps(host));
        self.output.flush();
    }

    /// Runs the clauses of SIGUSR1 as often as it has come; prints all maps, where there are none.
    pub fn print_if_asked(&mut self, world: Option<&World>) {
        let asked = signal::counted(PRINT);
        let before = std::mem::replace(&mut self.asked, asked);
        if before != asked && !self.places.signals.is_empty() {
            for _ in 0..asked.wrapping_sub(before) {
                for clause in self.places.signals.clone() {
                    self.tick(clause, sys::time::monotonic(), world);
                }
            }
            self.output.flush();
        } else if before != asked {
            self.sync(0..self.program.maps.len());
            self.with_host(world, self.last, |machine, host, _| machine.print_maps(host));
            self.output.flush();
        }
    }

    /// What it has to say at the end, a line each.
    pub fn troubles(&self) -> Vec<String> {
        let mut all = Vec::new();
        let (name, text) = (&self.source.0, &self.source.1);
        for (clause, counts) in self.program.clauses.iter().zip(self.machine.counts()) {
            if counts.unknown > 0 {
                let point = clause.points.first().map(|p| p.name()).unwrap_or_default();
                let at = start(name, clause.span, text);
                all.push(format!(
                    "{at}: {point}: did not run {} times: a value that it reads was not known",
                    counts.unknown
                ));
            }
        }
        for (fault, span, n) in self.machine.faults() {
            let what = match fault {
                Fault::DivisionByZero => "a division by zero, whose result is 1",
                Fault::TooManyRounds => "too many rounds of loops, and the run was ended",
            };
            all.push(format!("{}: {what} ({n} times)", place(name, span, text)));
        }
        let (refused, lost) = self.machine.speculations_lost();
        if refused > 0 {
            let most = lang::script::run::MAX_OPEN;
            all.push(format!(
                "{name}: {refused} speculations were not opened: {most} were open (commit or discard them)"
            ));
        }
        if lost > 0 {
            all.push(format!("{name}: {lost} lines of speculations were lost: they kept too many"));
        }
        for (map, n) in self.machine.refused() {
            all.push(if self.machine.is_full(map) {
                format!("@{map}: full: {n} new keys were refused (config = {{ max_map_keys = N }} makes it larger)")
            } else {
                format!("@{map}: {n} new keys were refused: the kernel had no memory for them at that moment")
            });
        }
        all.extend(self.unread.iter().cloned());
        all.extend(self.watches.iter().flat_map(|(probe, watches)| watches.unwatched(probe)));
        if let Some(n @ 1..) = self.strange {
            all.push(format!(
                "{name}: cat(), system() and cgroup_path() show nothing over a trace ({n} times): it would be of now, and of this machine"
            ));
        }
        if self.lost > 0 {
            all.push(format!("{} events were lost: what the script shows is too little (--buffer SIZE)", self.lost));
        }
        all
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
