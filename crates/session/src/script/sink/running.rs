//! What of a script runs for an event, a call of a function, or a moment.

use super::super::called::Called;
use super::super::catalogue::As;
use super::super::places::{self, Run};
use super::super::prints::{Names, Prints};
use super::super::seen::{self, Get, Seen, Stacks};
use super::super::tick::Tick;
use super::{MOST_KEPT, Open, Runs, Script};
use engine::pipeline::world::World;
use engine::rights;
use events::functions::{self, Kind};
use events::names::Names as _;
use events::{Event as Happened, Schema};
use lang::script::ir::What;
use lang::script::run::{Host, Machine};
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

impl Script {
    /// Runs a clause for which nothing has happened but that it is time.
    pub(super) fn tick(&mut self, clause: usize, time: u64, world: Option<&World>) {
        self.moment(clause, time, world, &[]);
    }

    /// Runs a clause for a moment, or for an object of which these words are known.
    pub(super) fn moment(&mut self, clause: usize, time: u64, world: Option<&World>, words: &[(&str, u64)]) {
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
        let (leaves, origin) = (&c.leaves, &Rc::clone(&self.origin));
        let tick = Tick { leaves, time, started, probe, comm: &comm, own, child, past, origin, peek: reader, words };
        self.with_host(world, time, |machine, host, _| machine.run(clause, &tick, host));
        (self.comm, self.peek) = (comm, peek);
    }

    /// Runs something that prints.
    pub(super) fn with_host(
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

    pub(super) fn run_all(
        &mut self,
        ev: &Happened<'_>,
        world: &World,
        wanted: Option<Rc<[Run]>>,
        (duration, called): (Option<u64>, Option<&Called<'_>>),
    ) {
        let runs = self.runs_of(ev.schema);
        let (started, child, origin) = (self.started, self.child, &*Rc::clone(&self.origin));
        let one = |script: &mut Script, ((role, clause), gets): &(Run, Vec<Get>)| {
            // A call that is cut off by the end has no exit.
            if *role == As::Exit && ev.is_syscall() && ev.caps() & events::layout::CAP_NO_RESULT != 0 {
                return;
            }
            script.with_host(Some(world), ev.time(), |machine, host, stacks| {
                let (role, line) = (*role, OnceCell::new());
                let seen = Seen { ev, world, gets, role, started, duration, called, stacks, child, origin, line };
                machine.run(*clause, &seen, host);
            });
        };
        match wanted {
            Some(wanted) => wanted.iter().filter_map(|(_, nth)| runs.get(*nth)).for_each(|run| one(self, run)),
            None => runs.iter().for_each(|run| one(self, run)),
        }
    }

    pub(super) fn function(&mut self, ev: &Happened<'_>, kind: Kind, world: &World) {
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
}
