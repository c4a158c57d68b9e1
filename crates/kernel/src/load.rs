//! Makes the maps, generates the programs for this kernel, loads and attaches them.
//!
//! Nothing is pinned: when the process ends, however it ends, the kernel drops its links, programs and maps.

use super::areas::Areas;
use super::buffers::Buffers;
use super::functions::Functions;
use super::map_set::MapSet;
use super::parallel::{self, Job};
use super::probes::{AttachedProbe, Kit, Outlet};
use super::ring::Ring;
use super::ring_set::{self, RingSet};
use super::target::{offsets, session, types, users};
use super::unwinder::{self, Unwinder};
use super::{rings_of_calls, stack_tables, task_iterator};
use crate::moved::Agents;
use bpf::scratch;
use bpf::syscalls::{self, Maps, Session, Source, state};
use bpf::unwind::Tables;
use bpf::{BtfOffsets, frame::Generated};
use engine::capture::captures::Captures;
use engine::error::{Error, Result};
use engine::own_events;
use engine::plan::Plan;
use engine::provider::kernel_name;
use engine::request::probe_enabling::ProbeEnabling;
use engine::rights::refusal::{refused, rejected};
use engine::stats::{Counts, Losses, NotCaptured, Passed, Spent, StackCounts, large_enough};
use engine::target::Target as PlanTarget;
use events::StreamId;
use events::stream::Scope;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::time::Duration;
use sys::bpf::link::Link;
use sys::bpf::map::{Map, Values};
use sys::bpf::prog::{Program, ProgramKind, ProgramSpec};
use sys::btf::{KernelBtf, Kind};

/// The kernel's side of a session. Dropping it detaches everything.
pub struct Loaded {
    /// Task storage: who is traced.
    pub tasks: Arc<Map>,
    /// A ring per CPU.
    pub rings: Vec<Ring>,
    /// What was read from each ring.
    pub passed: Vec<Passed>,
    /// Probes other than calls.
    pub probes: Vec<AttachedProbe>,
    /// Their rings.
    pub sets: Vec<RingSet>,
    /// Shows the calls in flight, where this kernel can.
    pub iterator: Option<task_iterator::TaskIterator>,
    /// The rows of calls, where they may change.
    pub rows_of_calls: Option<Values>,
    counters: Buffers,
    /// Why events of calls go through the kernel's rings; none: the programs write their rings themselves.
    pub kernel_rings: Option<&'static str>,
    /// A program counts the threads that are gone.
    pub sees_threads_go: bool,
    links: Vec<Link>,
    /// Links that take a grace period of RCU each to close.
    slow_links: Vec<Link>,
    /// What was loaded: where it is attached, and its instructions.
    pub sources: Vec<(String, bpf::Program)>,
    programs: Vec<Program>,
    /// How many runs of each program the kernel had skipped when the session began.
    missed_before: Vec<u64>,
    /// Where calls capture stacks.
    areas: Option<Areas>,
    /// Keeps the tables for user stacks.
    unwinder: Option<unwinder::Handle>,
    /// Kept for the programs.
    pub(super) maps: Arc<Vec<Map>>,
}

/// Loads everything for `plan`.
///
/// Most of the time goes into the verifier, which takes several programs at once: what waits for nothing runs in threads. They
/// have all ended when this returns.
pub fn load(plan: &Plan) -> Result<Loaded> {
    load_filtered(plan, plan.program_filters())
}

/// Loads with filters of the selected calls, as [`Session::filters`] wants them.
pub fn load_filtered(plan: &Plan, filters: Vec<(u32, lang::Filter)>) -> Result<Loaded> {
    let (mut loaded, later) = begin(plan, filters, None)?;
    loaded.add_iterator(&later);
    Ok(loaded)
}

/// What the programs that follow are made from: the iterator, and the probes that are added to a session that runs.
pub struct Later {
    pub(super) btf: KernelBtf,
    pub(super) maps: Maps,
    pub(super) offsets: BtfOffsets,
    pub(super) session: Session,
    pub(super) functions: Functions,
    pub(super) tables: Option<Tables>,
}

/// Loads everything except [`Loaded::iterator`], which can wait until the command runs.
/// `command`: the command of the session, which waits.
pub fn begin(plan: &Plan, filters: Vec<(u32, lang::Filter)>, command: Option<i32>) -> Result<(Loaded, Later)> {
    let _ = sys::bpf::raise_memory_limit();
    rings_of_calls::begin(plan, |why| begin_with(plan, filters.clone(), command, why))
}

/// As [`begin`], with the rings that are asked for. `kernel_rings`: why the kernel's are used; none: the programs write theirs themselves.
pub fn begin_with(
    plan: &Plan,
    filters: Vec<(u32, lang::Filter)>,
    command: Option<i32>,
    kernel_rings: Option<&'static str>,
) -> Result<(Loaded, Later)> {
    let own = kernel_rings.is_none();
    let single = single_calls(plan);
    // The tracepoints of single calls do not show whose registers they are. A kernel that refuses rings may refuse slots too.
    let slots = single.is_none() && sees_calls(plan) && kernel_rings != Some(rings_of_calls::REFUSED);
    let mut all = filters.iter().map(|(_, f)| f).chain(plan.probes().filter_map(|p| p.filter.as_ref()));
    let asks_user = all.any(|f| f.needs().uid || f.needs().gid);
    let captures = (!plan.call_captures.is_empty()).then_some(if single.is_some() { 0 } else { RAW_FRAMES });
    let ((btf, session), made) = std::thread::scope(|s| {
        // The kernel makes the maps meanwhile.
        let read = s.spawn(|| (types(plan), session(plan, filters, captures)));
        let made = MapSet::make(plan, own, slots);
        (read.join().unwrap_or_else(|p| std::panic::resume_unwind(p)), made)
    });
    let btf = btf.map_err(|e| refused("/sys/kernel/btf/vmlinux", &e))?;
    let made = made.map_err(|e| refused("BPF maps", &e))?;
    if let PlanTarget::All { left_out } = &plan.target {
        super::left_out::leave_out(&made.tasks, left_out);
    }
    let users = if asks_user || plan.named { users(&btf) } else { None };
    let offsets = offsets(&btf, plan, &session, users)?;
    let unwinder = if plan.has_user_stacks() { stack_tables::make(plan, &btf, command)? } else { None };
    let tables = unwinder.as_ref().map(Unwinder::tables);
    let areas = if plan.frames_of_calls() == Captures::default() { None } else { Some(Areas::new(made.cpus)) };
    let areas = areas.transpose().map_err(|e| refused("BPF maps", &e))?;
    let maps = Maps { stacks: areas.as_ref().map(|a| a.stacks(tables)), ..made.descriptors() };
    let rows_of_calls = made.open_to_orders(plan).map_err(|e| refused("BPF maps", &e))?;
    let functions = Functions::new().map_err(|e| refused("BTF of the programs", &e.error))?;
    let kit = CallKit { btf: &btf, maps: &maps, offsets: &offsets, session: &session, functions: &functions };
    let kit = &kit;
    let mut jobs: Vec<Job<Result<Part>>> = Vec::new();
    for program in programs(plan, single.as_deref()) {
        jobs.push(Box::new(move || kit.load(program)));
    }
    jobs.insert(
        jobs.len().min(2),
        Box::new(|| made.fill(plan).map(|()| Part::Filled).map_err(|e| refused("BPF maps", &e))),
    );
    jobs.push(Box::new(|| made.rings(plan).map(Part::Rings).map_err(|e| refused("BPF ring", &e))));
    let (mut loaded, mut sources, mut mapped) = (Vec::new(), Vec::new(), None);
    for part in parallel::run(jobs, made.cpus as usize) {
        match part? {
            Part::Program(attach, program, source) => {
                sources.push((attach.to_string(), source));
                loaded.push((attach, program));
            }
            Part::Rings(all) => mapped = Some(all),
            Part::Filled => {}
        }
    }
    let Some((counters, rings)) = mapped else { unreachable!("one of the jobs") };
    if let PlanTarget::All { left_out } = &plan.target {
        // The threads that have loaded the programs may still be on their way out.
        super::left_out::leave_out(&made.tasks, left_out);
    }
    let (mut links, mut slow_links) = (Vec::new(), Vec::new());
    // Not while others load: a tracepoint that was let go a moment ago, by the session before this one, waits for a grace period of
    // RCU, which the verifier keeps from ending.
    for (attach, program) in &loaded {
        let to = if matches!(attach, Attach::Single(..)) { &mut slow_links } else { &mut links };
        to.extend(attach.links(program)?);
    }
    // After the others: at the same tracepoint those run first, and mark that the command has begun.
    // The tables are kept from here on, before any program asks for them.
    let unwinder = unwinder.map(Unwinder::run).transpose();
    let unwinder =
        unwinder.map_err(|e| Error::failed("the unwinder's thread", e.to_string(), "free some processes"))?;
    let mut probes = Vec::new();
    let enabled: Vec<_> = plan.probes().cloned().collect();
    // Each takes a handful of descriptors.
    if enabled.len() > 16 {
        let _ = sys::process::raise_file_limit();
    }
    let mut sets = ring_set::make_shared(&enabled, made.cpus, plan.buffer).map_err(|e| refused("BPF ring", &e))?;
    let alone = !ring_set::are_shared(&enabled);
    let (_, size) = ring_set::sizes(&enabled, plan.buffer);
    // Each attach to a file's code waits for the kernel's readers; they can wait together.
    let (tasks, cpus) = (&made.tasks, made.cpus);
    let (agents, own_rings) = (&Agents::default(), own);
    let probe_kit =
        Kit { tasks, offsets: &offsets, session: &session, functions: &functions, tables, agents, cpus, own_rings };
    let failed = &AtomicBool::new(false);
    let job = |(e, set): (_, usize)| {
        let outlet = match sets.get(set).filter(|_| !alone) {
            Some(shared) => Outlet::Rings(shared.descriptors()),
            None => Outlet::Own(size),
        };
        let load = move || match failed.load(Ordering::Relaxed) {
            true => Ok(None),
            false => AttachedProbe::load(e, probe_kit, outlet, (set, alone))
                .inspect_err(|_| failed.store(true, Ordering::Relaxed)),
        };
        Box::new(load) as Job<Result<Option<AttachedProbe>>>
    };
    let numbered = plan.enablings.iter().filter_map(|e| Some((e.id, &**e.probe()?))).zip(ring_set::numbers(&enabled));
    let mut refusal = None;
    for probe in parallel::run_waiting(numbered.map(job).collect()) {
        match probe {
            Ok(probe) => probes.extend(probe),
            Err(e) => refusal = refusal.or(Some(e)),
        }
    }
    if let Some(e) = refusal {
        take_down(&mut probes, &slow_links);
        return Err(e);
    }
    sources.extend(probes.iter().map(|p| (p.name.clone(), p.source.clone())));
    sets.extend(probes.iter_mut().filter_map(|p| p.made.take()));
    let MapSet { tasks, slots, others, ring_maps, .. } = made;
    let loaded = Loaded {
        tasks: Arc::new(tasks),
        passed: vec![Passed::default(); rings.len()],
        rings,
        probes,
        sets,
        iterator: None,
        rows_of_calls,
        counters,
        kernel_rings,
        sees_threads_go: sees_threads_go(plan),
        links,
        slow_links,
        sources,
        missed_before: Vec::new(),
        areas,
        unwinder,
        programs: loaded.into_iter().map(|(_, p)| p).collect(),
        maps: Arc::new(others.into_iter().chain(ring_maps).chain(slots.map(|(map, _)| map)).collect()),
    };
    Ok((loaded, Later { btf, maps, offsets, session, functions, tables }))
}

/// Frames at the top of a stack that a program takes at a raw tracepoint: the program, bpf_trace_run and
/// __bpf_trace_NAME. A classic tracepoint has the registers of where it is.
const RAW_FRAMES: u8 = 3;

/// What a job of [`load`] has made.
enum Part {
    /// And where it is to be attached.
    Program(Attach, Program, bpf::Program),
    /// Of calls, with the counters beside them.
    Rings((Buffers, Vec<Ring>)),
    /// The contents of the maps.
    Filled,
}

/// Where a program goes.
#[derive(Clone)]
enum Attach {
    /// The tracepoint of this name, with typed arguments: loading it costs a search through the names of all the kernel's types.
    Typed(&'static str),
    /// The tracepoints of these names, with words for arguments.
    Raw(&'static [&'static str]),
    /// Classic tracepoints with these numbers; what they are called together.
    Single(String, Vec<u64>),
}

impl Attach {
    /// Attaches a program there.
    fn links(&self, program: &Program) -> Result<Vec<Link>> {
        match self {
            Attach::Typed(name) => Ok(vec![Link::tracing(program).map_err(|e| refused(name, &e))?]),
            Attach::Raw(names) => {
                names.iter().map(|name| Link::raw_tracepoint(program, name).map_err(|e| refused(name, &e))).collect()
            }
            Attach::Single(_, ids) => {
                ids.iter().map(|id| Link::tracepoint(program, *id).map_err(|e| refused("tracepoint", &e))).collect()
            }
        }
    }
}

impl fmt::Display for Attach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Attach::Typed(name) => f.write_str(name),
            Attach::Raw(names) => f.write_str(&names.join(", ")),
            Attach::Single(name, _) => f.write_str(name),
        }
    }
}

type Generator = dyn Fn(&Maps, &BtfOffsets, &Session) -> Generated + Send;

/// A program that a session needs.
struct Wanted {
    attach: Attach,
    name: &'static str,
    make: Box<Generator>,
}

/// Whether some calls are seen, or may be later.
fn sees_calls(plan: &Plan) -> bool {
    plan.named || !plan.seen_calls().is_empty() || plan.seen_calls().has_unknown()
}

/// The programs, those first that the verifier takes longest for.
fn programs(plan: &Plan, single: Option<&[Single]>) -> Vec<Wanted> {
    let plain =
        |attach, name, make: fn(&Maps, &BtfOffsets, &Session) -> _| Wanted { attach, name, make: Box::new(make) };
    let calls = |attach, name, make: fn(&Maps, &BtfOffsets, &Session, Source) -> _, source| Wanted {
        attach,
        name,
        make: Box::new(move |maps, offsets, session| make(maps, offsets, session, source)),
    };
    let (exit, enter) = ("trapline_exit", "trapline_enter");
    let mut all = match single {
        None if !sees_calls(plan) => {
            vec![plain(Attach::Raw(&["sched_process_exit"]), "trapline_end", syscalls::exit)]
        }
        None if plan.no_duration => vec![
            calls(Attach::Typed("sys_exit"), exit, syscalls::sys_exit, Source::All),
            plain(Attach::Raw(&["sched_process_exit"]), "trapline_end", syscalls::exit),
        ],
        None => vec![
            calls(Attach::Raw(&["sys_exit", "sched_process_exit"]), exit, syscalls::sys_exit, Source::All),
            calls(Attach::Typed("sys_enter"), enter, syscalls::sys_enter, Source::All),
        ],
        Some(of) => {
            let ids = of.iter().map(|c| c.exit).collect();
            let enters = of.iter().filter(|_| !plan.no_duration).map(|c| {
                let name = format!("syscalls:sys_enter_{}", c.name);
                (Attach::Single(name, vec![c.enter]), Source::Single(c.args))
            });
            [
                plain(Attach::Raw(&["sched_process_exit"]), "trapline_end", syscalls::exit),
                calls(Attach::Single("syscalls:sys_exit_*".into(), ids), exit, syscalls::sys_exit, Source::Single(0)),
            ]
            .into_iter()
            .chain(enters.map(|(attach, source)| calls(attach, enter, syscalls::sys_enter, source)))
            .collect()
        }
    };
    all.push(plain(Attach::Raw(&["sched_process_exec"]), "trapline_exec", syscalls::exec));
    all.push(plain(Attach::Raw(&["signal_deliver"]), "trapline_signal", syscalls::delivered));
    all.push(plain(Attach::Typed("signal_generate"), "trapline_sent", syscalls::generated));
    if plan.follow {
        all.push(plain(Attach::Typed("sched_process_fork"), "trapline_fork", syscalls::fork));
    }
    if sees_threads_go(plan) {
        all.push(plain(Attach::Typed("sched_process_free"), "trapline_free", syscalls::freed));
    }
    all
}

/// Whether tasks may have events after they have announced their end: those of probes in the kernel.
fn sees_threads_go(plan: &Plan) -> bool {
    let in_kernel = |e: &Arc<ProbeEnabling>| e.point.as_ref().is_some_and(|p| p.file().is_none());
    !matches!(plan.target, PlanTarget::All { .. }) && (plan.named || plan.probes().any(in_kernel))
}

/// What programs are made from.
struct CallKit<'a> {
    btf: &'a KernelBtf,
    maps: &'a Maps,
    offsets: &'a BtfOffsets,
    session: &'a Session,
    functions: &'a Functions,
}

impl CallKit<'_> {
    fn load(&self, wanted: Wanted) -> Result<Part> {
        let source = (wanted.make)(self.maps, self.offsets, self.session)
            .map_err(|e| Error::failed("BPF generator", e.to_string(), "please report it"))?;
        let (kind, id) = match wanted.attach {
            Attach::Typed(tracepoint) => (ProgramKind::Tracing, self.typed(tracepoint)?),
            Attach::Raw(_) => (ProgramKind::RawTracepoint, 0),
            Attach::Single(..) => (ProgramKind::Tracepoint, 0),
        };
        let program = self.load_one(kind, wanted.name, &source, id)?;
        Ok(Part::Program(wanted.attach, program, source))
    }

    fn load_one(&self, kind: ProgramKind, name: &str, program: &bpf::Program, btf_id: u32) -> Result<Program> {
        let bytes = program.bytes();
        let spec = match kind {
            ProgramKind::Tracing => ProgramSpec::typed_tracepoint(name, &bytes, btf_id),
            _ => ProgramSpec::new(kind, name, &bytes),
        };
        self.functions.load(spec, program).map_err(|e| match self.maps.shape.has_rings() {
            // It is made anew for the kernel's rings.
            true => refused(name, &e.error),
            false => rejected(&e, program),
        })
    }

    /// The type of a tracepoint's arguments.
    fn typed(&self, tracepoint: &str) -> Result<u32> {
        let typedef = format!("btf_trace_{tracepoint}");
        self.btf.find(Kind::Typedef, &typedef).ok_or_else(|| {
            Error::failed(format!("tracepoint {tracepoint}"), "this kernel does not have it", "use --backend ptrace")
        })
    }
}

/// The most calls for which tracepoints of their own are used: each costs 35 ms to close.
const MAX_SINGLE: usize = 4;

/// A call with tracepoints of its own.
struct Single {
    name: &'static str,
    enter: u64,
    exit: u64,
    args: u8,
}

/// The tracepoints of entry and exit of each call, where few are wanted and tracefs can be read; the rest of the machine
/// then hardly notices.
fn single_calls(plan: &Plan) -> Option<Vec<Single>> {
    let seen = plan.seen_calls();
    // The calls of a named session may change: all must pass. Whose code makes a call is seen in registers, which these tracepoints do
    // not show.
    if plan.named || plan.is_joined() || seen.has_unknown() || seen.is_empty() || seen.len() > MAX_SINGLE {
        return None;
    }
    // Kernel stacks begin with the tracepoint's own functions there, and Linux 6.1 has none.
    if plan.call_captures.iter().any(|c| c.frames.kstack > 0) {
        return None;
    }
    let mut ids = Vec::new();
    for s in events::registry::syscalls().filter(|s| seen.contains(s)) {
        // The mask of rt_sigreturn is found through registers, which these tracepoints do not show.
        if s.name == "rt_sigreturn" {
            return None;
        }
        let name = kernel_name(s.name);
        let id = |way: &str| sys::bpf::link::tracepoint_id("syscalls", &format!("sys_{way}_{name}")).ok();
        ids.push(Single { name: s.name, enter: id("enter")?, exit: id("exit")?, args: s.args.len() as u8 });
    }
    Some(ids)
}

/// Whether the calls that are seen have tracepoints of their own here.
pub fn has_single_calls(plan: &Plan) -> bool {
    single_calls(plan).is_some()
}

/// Detaches probes and closes links. Closing some takes long: a process that nobody waits for does it when trapline has ended.
fn take_down(probes: &mut [AttachedProbe], slow_links: &[Link]) {
    probes.iter().for_each(AttachedProbe::stop);
    if !probes.is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let of_probes = probes.iter_mut().flat_map(|p| p.detach());
    let fds: Vec<BorrowedFd> = slow_links.iter().chain(of_probes).map(|l| l.as_fd()).collect();
    if !fds.is_empty() {
        sys::process::leave_behind(&fds);
    }
}

impl Loaded {
    /// Loads the iterator, where this kernel has one.
    pub fn add_iterator(&mut self, later: &Later) {
        // Without programs at entry nobody knows of them.
        if later.session.no_entry {
            return;
        }
        self.iterator = task_iterator::load(&later.btf, &later.maps, later.session.unknown).ok();
        self.sources.extend(self.iterator.as_ref().map(|i| ("the task iterator".to_string(), i.source.clone())));
    }

    /// The command is about to begin, or all processes are attached to: runs that the kernel skipped before do not count.
    pub fn begin(&mut self) {
        self.missed_before = self.missed();
        self.probes.iter_mut().for_each(AttachedProbe::begin);
    }

    /// Detaches the programs: no event comes after this.
    pub fn detach(&mut self) {
        // The process that closes slow links is made while the others are attached, so that on a whole machine it is known as
        // trapline's own from its birth.
        take_down(&mut self.probes, &self.slow_links);
        self.links.clear();
    }

    /// Without programs at entry: arguments whose memory had to be read there, and wanted calls in which threads have ended.
    pub fn not_captured(&self) -> NotCaptured {
        NotCaptured { arguments: self.sum(scratch::TOO_LATE), calls: self.sum(scratch::UNRETURNED) }
    }

    /// Events seen by the programs, and events that found a ring full.
    pub fn counts(&self) -> (u64, u64) {
        let (seen, dropped) = self.probes.iter().fold((0, 0), |n, p| (n.0 + p.seen(), n.1 + p.dropped()));
        (seen + self.sum(scratch::SEEN) + self.sum(scratch::PUBLISHED), dropped + self.sum(scratch::DROPPED))
    }

    /// Events that were lost before they were in a ring.
    pub fn losses(&self) -> Losses {
        let of = |id: usize| (id as u16, self.sum(scratch::DROPPED_CLASSES + 8 * id as i16));
        let classes = (0..scratch::CLASSES).map(of).filter(|(_, n)| *n > 0).collect();
        Losses { total: self.counts().1, classes }
    }

    /// The `--buffer` with which no ring would have been full, in bytes; none where none was, or where no ring can be so large.
    pub fn large_enough_buffer(&self) -> Option<u64> {
        /// The kernel's limit of a ring.
        const MOST: u64 = 1 << 30;
        let share = self.sets.len().next_power_of_two() as u64;
        let calls = self.passed.iter().map(|passed| (passed, 1));
        let probes = self.sets.iter().flat_map(|s| &s.passed).map(|passed| (passed, share));
        let mut all = 0;
        for ((passed, share), stream) in calls.chain(probes).zip(self.streams()) {
            let dropped = self.dropped_on(stream);
            if let Some(ring) = self.ring_of(stream).filter(|_| dropped > 0) {
                all = all.max(large_enough(ring.size() as u64, *passed, dropped)?.checked_mul(share)?);
            }
        }
        (1..=MOST).contains(&all).then_some(all)
    }

    /// Threads that traced ones have made; traced threads that have reached their end; those of them that are gone.
    pub fn threads(&self) -> (u64, u64, u64) {
        // A thread is counted as born before it is counted as ended, and the counters are of several processors: those that are read later
        // know of every thread that those read earlier have counted.
        let [gone, ended, born] = [scratch::FREED, scratch::ENDED, scratch::BORN].map(|which| {
            let n = self.sum(which);
            fence(Ordering::Acquire);
            n
        });
        (born, ended, gone)
    }

    /// Events that filters rejected: by part, where the last number is for that part and all after it; and those that lack
    /// what their filter names. They are among those seen.
    pub fn filtered(&self) -> ([u64; scratch::PARTS], u64) {
        let part = |i: usize| self.sum(scratch::FILTERED + 8 * i as i16);
        (std::array::from_fn(part), self.sum(scratch::UNKNOWN))
    }

    /// Rejected events, by number of the call.
    pub fn filtered_calls(&self) -> Vec<(u64, u64)> {
        let of = |nr: usize| (nr as u64, self.sum(scratch::FILTERED_CALLS + 8 * nr as i16));
        (0..scratch::CALLS).map(of).filter(|(_, n)| *n > 0).collect()
    }

    /// A counter, of all processors.
    fn sum(&self, which: i16) -> u64 {
        self.counters.sum(which)
    }

    /// The streams that rings feed: the processors for calls, and for each set of rings of probes processors of its own.
    pub fn streams(&self) -> Vec<StreamId> {
        let cpus = (0..self.rings.len() as u32).map(StreamId::cpu);
        let probes = (1..)
            .zip(&self.sets)
            .flat_map(|(nth, s)| (0..s.passed.len() as u32).map(move |cpu| StreamId::new(Scope::Cpu(cpu), nth)));
        cpus.chain(probes).collect()
    }

    /// Events that found the ring of a stream full.
    pub fn dropped_on(&self, stream: StreamId) -> u64 {
        let Scope::Cpu(cpu) = stream.scope() else { return 0 };
        if let Some(nth) = stream.enabling().checked_sub(1) {
            return self.probes.iter().filter(|p| p.rings.0 == usize::from(nth)).map(|p| p.dropped_on(cpu)).sum();
        }
        self.counters.of_cpu(cpu, scratch::DROPPED)
    }

    /// The ring of a stream.
    pub fn ring_of(&self, stream: StreamId) -> Option<&Ring> {
        let Scope::Cpu(cpu) = stream.scope() else { return None };
        let rings = match stream.enabling().checked_sub(1) {
            None => &self.rings,
            Some(nth) => &self.sets.get(usize::from(nth))?.rings,
        };
        rings.get(cpu as usize)
    }

    /// Sets which events are skipped, of calls and of all other probes.
    pub fn switch(&self, to: u64) {
        self.counters.set(scratch::SWITCH, to);
        self.probes.iter().for_each(|p| p.switch(to));
    }

    /// What was counted of each enabling, by number.
    pub fn probe_counts(&self) -> Vec<(u32, Counts)> {
        let counts = |p: &AttachedProbe| Some((p.id, p.counts(self.sets.get(p.rings.0)?)));
        self.probes.iter().filter_map(counts).collect()
    }

    /// Keeps the tables of a process that joins the session.
    pub fn watch_stacks(&self, pid: i32) {
        self.unwinder.iter().for_each(|u| u.watch(pid as u32));
    }

    /// Waits until the tables of the command's files are there: 0.7 ms for the C library, 24 ms for a compiler, longer on a loaded machine.
    /// Without them its first stacks would end at the first frame.
    pub fn wait_for_tables(&self) {
        /// Time for 15 MB of unwind information on a machine that has ten times as much to do as processors.
        const PATIENCE: Duration = Duration::from_secs(2);
        self.unwinder.iter().for_each(|u| u.wait_for_expected(PATIENCE));
    }

    /// What was counted of stacks.
    pub fn stack_counts(&self) -> StackCounts {
        let mut all = self.areas.as_ref().map(Areas::counts).unwrap_or_default();
        self.probes.iter().for_each(|p| all.add(&p.stacks()));
        all.tables = self.unwinder.as_ref().map(|u| stack_tables::counted(&u.counts())).unwrap_or_default();
        all
    }

    /// Events of the session itself, of these classes.
    pub fn say(&self, classes: &[&'static events::Schema], merge: &mut engine::pipeline::merge::Merge) {
        let pid = sys::process::own_pid() as u32;
        for schema in classes {
            merge.push(&own_events::process(schema, sys::time::monotonic(), (pid, pid), &[], &[]));
        }
    }

    /// Name of each program, and its missed runs since the session began.
    pub fn misses(&self) -> Vec<(String, u64)> {
        let names = self.programs.iter().map(|p| sys::bpf::info::program(p).map(|p| p.name).unwrap_or_default());
        let before = self.missed_before.iter().copied().chain(std::iter::repeat(0));
        names.zip(self.missed().iter().zip(before).map(|(now, before)| now.saturating_sub(before))).collect()
    }

    /// All missed runs of each program; 0 where the kernel does not report them.
    fn missed(&self) -> Vec<u64> {
        self.programs.iter().map(|p| sys::bpf::info::program(p).map_or(0, |p| p.recursion_misses)).collect()
    }

    /// What the programs of calls and tasks have cost, where the kernel has measured it.
    pub fn spent(&self) -> Vec<Spent> {
        let told = self.programs.iter().filter_map(|p| sys::bpf::info::program(p).ok());
        told.map(|p| Spent { name: p.name, runs: p.run_count, ns: p.run_time_ns }).collect()
    }

    /// Traces the task of a pidfd, starting in this state.
    pub fn trace(&self, pidfd: &impl AsRawFd, value: &[u8; state::SIZE as usize]) -> io::Result<()> {
        self.tasks.update(&pidfd.as_raw_fd().to_le_bytes(), value, 0)
    }
}
