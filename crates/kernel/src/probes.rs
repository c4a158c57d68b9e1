//! Probes other than calls: a program and a scratch buffer per CPU for each enabling.

use super::areas::Areas;
use super::attach::attempt::{Make, Refused, attach_somehow, mistake};
use super::attach::{self, Way};
use super::buffers::Buffers;
use super::functions::Functions;
use super::operations::Pending;
use super::ring_set::RingSet;
use crate::moved::Agents;
use crate::watch::{self, Watching};
use bpf::BtfOffsets;
use bpf::probes::{self, Field, Tail, Value, Whose};
use bpf::scratch::{self, Shape};
use bpf::syscalls::{Maps, Session};
use bpf::unwind::Tables;
use engine::error::{Error, Result};
use engine::provider::{ArgLocation, AttachPoint};
use engine::request::collecting::Refusal;
use engine::request::probe_enabling::{Number, ProbeEnabling, ReadWhat, Source};
use engine::rights::refusal::refused;
use engine::slab;
use engine::stats::{Counts, StackCounts};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::thread::JoinHandle;
use sys::bpf::link::Link;
use sys::bpf::map::Map;
use sys::bpf::prog::Program;

/// An enabling's side in the kernel. Dropping it detaches its program.
pub struct AttachedProbe {
    /// The number of the enabling.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its name and its filter.
    pub label: String,
    /// What was loaded.
    pub source: bpf::Program,
    /// The number of its ring set, and whether that is its own.
    pub rings: (usize, bool),
    /// Its classes.
    classes: Vec<u16>,
    /// The best way to attach it was refused, and another one taken.
    pub fell_back: bool,
    /// Of several places: those where the kernel puts no breakpoint.
    refused: Vec<String>,
    buffers: Buffers,
    /// Runs of its program that the kernel had skipped when the session began: trapline's own calls of bpf(2) keep programs from running.
    missed_before: u64,
    /// Of its filter.
    parts: usize,
    /// Rings that were made for it alone, until they are taken.
    pub made: Option<RingSet>,
    links: Vec<Link>,
    slow: bool,
    /// None once it is unloaded.
    program: Option<Program>,
    /// Runs that the kernel has skipped, and what the program has cost, when it was unloaded.
    last: sys::bpf::info::ProgramInfo,
    disabled: bool,
    /// Closes the links, where the probe was disabled.
    detaching: Option<JoinHandle<()>>,
    /// Its entries are counted, for returns.
    has_entries: bool,
    /// Where it captures stacks.
    areas: Option<Areas>,
    /// Of addresses that are an argument: what is watched.
    watching: Option<Watching>,
    /// Of operations: those that have not completed.
    pending: Option<Pending>,
    /// Operations that had not completed at the end: those that are events, and those that the filter rejected.
    unfinished: (u64, u64),
}

/// Where the events of a probe go.
#[derive(Clone, Debug)]
pub enum Outlet {
    /// The kernel's rings with these descriptors.
    Rings(Vec<i32>),
    /// Rings of its own, of this many bytes.
    Own(usize),
}

/// What programs of probes are made with.
#[derive(Clone, Copy)]
pub struct Kit<'a> {
    /// The session's task storage.
    pub tasks: &'a Map,
    /// Where the kernel's structs have what.
    pub offsets: &'a BtfOffsets,
    /// The settings of the session.
    pub session: &'a Session,
    /// Types of functions.
    pub functions: &'a Functions,
    /// For user stacks; none: by frame pointers.
    pub tables: Option<Tables>,
    /// Processes whose instructions may be others than their files'.
    pub agents: &'a Agents,
    /// Processors that there may be.
    pub cpus: u32,
    /// The kernel takes programs that write rings themselves.
    pub own_rings: bool,
    /// In a session of the whole machine: trapline, and who reads what it prints.
    pub left_out: Option<&'a [u32]>,
}

/// The memory of an enabling's events.
struct Memory {
    map: Map,
    shape: Shape,
    buffers: Buffers,
    /// The descriptors of the kernel's rings that it writes.
    rings: Vec<i32>,
    /// Rings of its own.
    made: Option<RingSet>,
    /// For stacks.
    areas: Option<Areas>,
}

impl Memory {
    fn make(shape: Shape, kit: &Kit<'_>, outlet: Outlet, has_stack: bool) -> io::Result<Memory> {
        let map = Buffers::map("trapline_scratch", shape, kit.cpus)?;
        let buffers = Buffers::of(&map, shape, kit.cpus, kit.session.switch)?;
        let (rings, made) = match outlet {
            Outlet::Rings(rings) => (rings, None),
            Outlet::Own(bytes) if shape.has_rings() => (Vec::new(), Some(RingSet::of(buffers.rings(bytes)?))),
            Outlet::Own(bytes) => {
                let made = RingSet::new(kit.cpus, bytes, false)?;
                (made.descriptors(), Some(made))
            }
        };
        let areas = if has_stack { Some(Areas::new(kit.cpus)?) } else { None };
        Ok(Memory { map, shape, buffers, rings, made, areas })
    }

    fn maps(&self, kit: &Kit<'_>) -> Maps {
        Maps {
            tasks: kit.tasks.as_fd().as_raw_fd(),
            scratch: self.map.as_fd().as_raw_fd(),
            shape: self.shape,
            rings: self.rings.clone(),
            rows: -1,
            row_count: 0,
            switches: -1,
            stacks: self.areas.as_ref().map(|a| a.stacks(kit.tables)),
            slots: None,
        }
    }
}

impl AttachedProbe {
    /// Loads the enabling's program and attaches it. `set`: the number of its ring set, and whether that is its own.
    pub fn load(
        (id, enabling): (u32, &ProbeEnabling),
        kit: Kit<'_>,
        outlet: Outlet,
        set: (usize, bool),
    ) -> Result<Option<AttachedProbe>> {
        let Some(point) = &enabling.point else { return Ok(None) };
        if point.is_looked_at() {
            let todo = "leave it out, or record it with --backend perf";
            let why = "the programs of the kernel backend do not see threads that do not run";
            return Err(Error::failed(format!("-e {}", enabling.name), why, todo));
        }
        let whose = match point.is_of_the_machine() {
            _ if enabling.everyone && kit.left_out.is_some() && kit.offsets.namespace.is_none() => {
                Whose::AllBut(kit.left_out.unwrap_or_default().to_vec())
            }
            false => Whose::Tasks,
            true if enabling.anonymous => Whose::Nobody,
            true => Whose::Anyone,
        };
        let plan = |fields| probes::Plan {
            schema: enabling.schema,
            fields,
            whose: whose.clone(),
            filter: enabling.filter.clone(),
            by_cookie: !enabling.members.is_empty(),
            slab: match point {
                AttachPoint::Slab(point) => Some(slab::programs::place(point)),
                _ => None,
            },
        };
        let fields = |way: &dyn Way| -> std::result::Result<Vec<Field>, Refused> {
            let named = enabling.schema.args.iter().map(|a| a.name).zip(&enabling.fields);
            named.map(|(name, source)| field(way, source).ok_or(Refused::Argument(name))).collect()
        };
        let cookies = cookies(enabling, point);
        let ways = attach::ways(point, &cookies, kit.agents);
        // All ways have fields of the same sizes.
        let sized = ways.iter().find_map(|way| fields(way.as_ref()).ok()).unwrap_or_default();
        let mut pending = match point {
            AttachPoint::Operations(of) => Some(
                Pending::new(of, enabling, sized.clone(), whose.clone()).map_err(|e| refused(&enabling.name, &e))?,
            ),
            _ => None,
        };
        let shape = pending.as_ref().map_or_else(|| plan(sized).shape(kit.offsets), |p| p.shape(kit.offsets));
        let has_stack = enabling.fields.iter().any(|f| matches!(f, Source::KernelStack(_) | Source::UserStack(_)));
        // A stack is reported while the event that has it is being built.
        let with_ring = match outlet {
            Outlet::Own(bytes) if kit.own_rings && !has_stack => shape.with_ring(bytes),
            _ => None,
        };
        let shape = with_ring.unwrap_or(shape);
        let memory = Memory::make(shape, &kit, outlet, has_stack).map_err(|e| refused(&enabling.name, &e))?;
        let maps = memory.maps(&kit);
        let Kit { offsets, session, functions, agents, .. } = kit;
        // Entries first, so that no return comes without its entry.
        let mut links = Vec::new();
        let before = point.in_file().and_then(|f| f.entries());
        if let Some(before) = &before {
            let counts = |_: &dyn Way| probes::entered(&maps, offsets, session, &plan(Vec::new())).map_err(mistake);
            let ways = attach::in_file(before, &[], agents);
            links.extend(attach_somehow(&ways, &enabling.name, functions, &[&counts])?.attached.links);
        }
        if let Some(collecting) = &enabling.collects {
            collecting.collected.make()?;
        }
        let made = |made: bpf::frame::Generated| {
            made.map_err(|e| match e {
                bpf::AsmError::Generator(unfit) => {
                    let (what, todo) = (format!("-e {}", enabling.name), "use a simpler filter");
                    Refused::Program(Error::usage(what, unfit.to_string(), todo))
                }
                e => mistake(e),
            })
        };
        let reports =
            |way: &dyn Way, predicates| made(probes::probe(&maps, offsets, session, &plan(fields(way)?), predicates));
        let plain = |way: &dyn Way| match &pending {
            Some(pending) => made(pending.completions(&maps, offsets, session)),
            None => reports(way, None),
        };
        let predicates = enabling.predicates.as_ref().map(|p| p.of_program());
        let predicates = predicates.map(|p| move |way: &dyn Way| reports(way, Some(p)));
        let loops = enabling.collects.iter().flat_map(|c| c.loops().iter().map(move |loops| (c, *loops)));
        let collects = loops.map(|(collecting, loops)| {
            let (maps, plan, fields, made) = (&maps, &plan, &fields, &made);
            move |way: &dyn Way| {
                let clauses = probes::collect::Clauses {
                    script: &collecting.collected.script,
                    clauses: &collecting.clauses,
                    maps: &collecting.collected.descriptors().unwrap_or_default(),
                    faults: &collecting.collected.faults,
                    loops,
                };
                made(probes::collect::collect(maps, offsets, session, &plan(fields(way)?), &clauses))
            }
        });
        let collects: Vec<_> = collects.collect();
        // What the kernel does not take of a script trapline does.
        let mut makes: Vec<&Make<'_>> = Vec::new();
        makes.extend(collects.iter().map(|make| make as &Make<'_>));
        makes.extend(predicates.as_ref().map(|make| make as &Make<'_>));
        makes.push(&plain);
        let found = attach_somehow(&ways, &enabling.name, functions, &makes)?;
        enabling.refusals.set(&enabling.name, Refusal::of(&found.instead, collects.len()));
        links.extend(found.attached.links);
        if let Some(pending) = &mut pending {
            links.extend(pending.attach((&maps, offsets, session), &enabling.name, functions, made)?);
        }
        let watching = match point {
            AttachPoint::WatchArgument(of) => Some(Watching::begin(
                of,
                enabling,
                &found.program,
                &watch::Kit { maps: &maps, offsets, session, functions, agents, whose: &whose },
            )?),
            _ => None,
        };
        let moved = found.attached.moved;
        let refused_place = |nth: usize| {
            let name = name_of_site(enabling, point, nth);
            let moved = moved.iter().find(|(place, _)| *place == nth);
            moved.map_or_else(|| name.clone(), |(_, moved)| format!("{name} ({moved})"))
        };
        Ok(Some(AttachedProbe {
            id,
            name: enabling.name.clone(),
            label: enabling.label(),
            source: found.source,
            rings: set,
            classes: enabling.classes().iter().map(|s| s.id).collect(),
            fell_back: found.fell_back,
            refused: found.attached.refused.iter().map(|nth| refused_place(*nth)).collect(),
            buffers: memory.buffers,
            missed_before: 0,
            parts: enabling.filter.as_ref().map_or(0, |f| f.parts().len()),
            made: memory.made,
            links,
            slow: found.slow,
            program: Some(found.program),
            last: Default::default(),
            disabled: false,
            detaching: None,
            has_entries: before.is_some(),
            areas: memory.areas,
            watching,
            pending,
            unfinished: (0, 0),
        }))
    }

    /// Notifies the program that the session is over; one that runs meanwhile may still write an event.
    pub fn stop(&self) {
        self.buffers.set(scratch::STOPPED, 1);
    }

    /// Detaches the program; the links that take long to close are returned.
    pub fn detach(&mut self) -> &[Link] {
        self.watching = None;
        if !self.slow {
            self.links.clear();
        }
        &self.links
    }

    /// The session begins: runs that the kernel skipped before do not count.
    pub fn begin(&mut self) {
        self.missed_before = self.info().recursion_misses;
    }

    /// Nothing more is recorded or counted; the program is detached by a thread, because that may wait for a grace period of RCU.
    pub fn disable(&mut self) {
        if std::mem::replace(&mut self.disabled, true) {
            return;
        }
        self.stop();
        let (links, watching) = (std::mem::take(&mut self.links), self.watching.take());
        // Where no thread can be started, the links are closed here.
        self.detaching =
            std::thread::Builder::new().name("trapline-detach".into()).spawn(move || drop((links, watching))).ok();
    }

    /// Whether the program of a disabled probe runs no more, and is still loaded.
    pub fn is_detached(&self) -> bool {
        let detached = self.detaching.as_ref().is_none_or(JoinHandle::is_finished);
        self.disabled && detached && self.program.is_some()
    }

    /// Frees the program of a detached probe.
    pub fn unload(&mut self) {
        self.last = self.info();
        (self.program, self.pending) = (None, None);
        self.buffers.free();
    }

    /// Of all its programs together.
    fn info(&self) -> sys::bpf::info::ProgramInfo {
        let Some(program) = &self.program else { return self.last.clone() };
        let mut all = sys::bpf::info::program(program).unwrap_or_default();
        for other in self.pending.iter().flat_map(|p| &p.programs) {
            let other = sys::bpf::info::program(other).unwrap_or_default();
            all.recursion_misses += other.recursion_misses;
            all.run_count += other.run_count;
            all.run_time_ns += other.run_time_ns;
        }
        all
    }

    /// The events of what has begun and not ended, when the programs are detached.
    pub fn unfinished(&mut self, now: u64) -> Vec<Vec<u8>> {
        let pending = self.pending.as_ref().filter(|_| !self.disabled);
        let (events, rejected) = pending.map(|p| p.unfinished(now)).unwrap_or_default();
        self.unfinished = (events.len() as u64, rejected);
        events
    }

    /// Sets which events are skipped.
    pub fn switch(&self, to: u64) {
        self.buffers.set(scratch::SWITCH, to);
    }

    /// The counters so far; `set` is its ring set.
    pub fn counts(&self, set: &RingSet) -> Counts {
        let parts: Vec<u64> = (0..self.parts.min(scratch::PARTS)).map(|i| self.rejected(i)).collect();
        let program = self.info();
        let (unfinished, rejected) = self.unfinished;
        Counts {
            seen: self.seen() + unfinished + rejected,
            recorded: set.recorded(&self.classes) + unfinished,
            dropped: self.dropped(),
            filtered: parts.iter().sum::<u64>() + self.sum(scratch::UNKNOWN) + rejected,
            parts,
            missed: program.recursion_misses.saturating_sub(self.missed_before),
            entered: self.has_entries.then(|| self.sum(scratch::ENTERED)),
            refused: self.refused.clone(),
            streams: Some(self.rings.0 as u32 + 1).filter(|_| self.rings.1),
            cost: (program.run_count, program.run_time_ns),
        }
    }

    /// Events that each part of the filter rejected.
    fn rejected(&self, part: usize) -> u64 {
        self.sum(scratch::FILTERED + 8 * part as i16)
    }

    /// What was counted of its stacks.
    pub fn stacks(&self) -> StackCounts {
        self.areas.as_ref().map(Areas::counts).unwrap_or_default()
    }

    /// Events that happened. The program counts an event that its filter rejects only once.
    pub fn seen(&self) -> u64 {
        let parts = (0..self.parts.min(scratch::PARTS)).map(|i| self.rejected(i)).sum::<u64>();
        self.sum(scratch::SEEN) + self.sum(scratch::PUBLISHED) + parts + self.sum(scratch::UNKNOWN)
    }

    /// Events that found a ring full.
    pub fn dropped(&self) -> u64 {
        self.sum(scratch::DROPPED)
    }

    fn sum(&self, which: i16) -> u64 {
        self.buffers.sum(which)
    }

    /// Events that found the ring of a processor full.
    pub fn dropped_on(&self, cpu: u32) -> u64 {
        self.buffers.of_cpu(cpu, scratch::DROPPED)
    }
}

/// The cookie of each site of an enabling of several probes: the number of its probe's class.
fn cookies(enabling: &ProbeEnabling, point: &AttachPoint) -> Vec<u64> {
    let members = point.in_file().map_or(&[][..], |f| &f.member_of);
    members.iter().map(|nth| enabling.members.get(*nth).map_or(0, |s| s.id.into())).collect()
}

/// What a site is called: its probe, where there are several, or its offset.
fn name_of_site(enabling: &ProbeEnabling, point: &AttachPoint, nth: usize) -> String {
    let Some(file) = point.in_file() else { return String::new() };
    match file.member_of.get(nth).and_then(|m| enabling.members.get(*m)) {
        Some(member) => member.name.into(),
        None => format!("file offset {:#x}", file.sites[nth].offset),
    }
}

/// The field of an event as a program attached in this way makes it; none where it cannot find the argument.
fn field(way: &dyn Way, source: &Source) -> Option<Field> {
    let number = |n: &Number| way.value(&n.at, n.size, n.signed);
    let here = |tail| {
        // No real address: not NULL, so that views show what was read.
        Some(Field { value: Value::Constant(1), tail: Some(tail) })
    };
    match source {
        Source::Number(n) => Some(Field { value: number(n)?, tail: None }),
        Source::Text { address, of_process } => {
            let tail = if *of_process { Tail::UserString } else { Tail::KernelString };
            Some(Field { value: number(address)?, tail: Some(tail) })
        }
        Source::Chars(ArgLocation::Record(off)) => here(Tail::ContextString { off: i16::try_from(*off).ok()? }),
        Source::Chars(ArgLocation::RecordReference(off)) => here(Tail::DataLoc { off: i16::try_from(*off).ok()? }),
        Source::Chars(_) => None,
        Source::Script(script) => {
            let tail = script.read.map(|read| match (read.what, read.of_process) {
                (ReadWhat::Bytes(size), user) => Tail::Memory { user, size, length: read.length },
                (ReadWhat::Text, true) => Tail::UserString,
                (ReadWhat::Text, false) => Tail::KernelString,
                (ReadWhat::Strings, user) => Tail::Strings { user },
            });
            Some(Field { value: Value::Script(std::sync::Arc::clone(&script.number)), tail })
        }
        Source::Comm => here(Tail::Comm),
        Source::Cpu => Some(Field { value: Value::Cpu, tail: None }),
        Source::Uid => Some(Field { value: Value::Uid, tail: None }),
        Source::Gid => Some(Field { value: Value::Gid, tail: None }),
        Source::KernelStack(frames) => {
            let value = Value::KernelStack { frames: *frames, skip: way.own_frames() };
            Some(Field { value, tail: None })
        }
        Source::UserStack(frames) => Some(Field { value: Value::UserStack(*frames), tail: None }),
        Source::Hidden { text } => Some(Field { value: Value::Constant(0), tail: text.then_some(Tail::Hidden) }),
    }
}
