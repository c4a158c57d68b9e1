//! Makes the maps, generates the programs for this kernel, loads and attaches them.
//!
//! Nothing is pinned: when the process ends, however it ends, the kernel drops its links, programs and maps.

use super::areas::Areas;
use super::buffers::Buffers;
use super::functions::Functions;
use super::loaded::{Loaded, take_down};
use super::map_set::MapSet;
use super::parallel::{self, Job};
use super::probes::{AttachedProbe, Kit, Outlet};
use super::programs::{
    Attach, CallKit, Later, Single, knows_tasks, programs, sees_calls, sees_threads_go, single_calls,
};
use super::ring::Ring;
use super::ring_set::{self, RingSet};
use super::target::{offsets, session, types, users};
use super::unwinder::Unwinder;
use super::{rings_of_calls, stack_tables};
use crate::moved::Agents;
use bpf::syscalls::Maps;
use engine::capture::captures::Captures;
use engine::error::{Error, Result};
use engine::plan::Plan;
use engine::rights::refusal::refused;
use engine::stats::Passed;
use engine::target::Target as PlanTarget;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use sys::bpf::link::Link;
use sys::bpf::prog::Program;

/// Loads everything for `plan`.
///
/// Most of the time goes into the verifier, which takes several programs at once: what waits for nothing runs in threads. They
/// have all ended when this returns.
pub fn load(plan: &Plan) -> Result<Loaded> {
    load_filtered(plan, plan.program_filters())
}

/// Loads with filters of the selected calls, as `Session::filters` wants them.
pub fn load_filtered(plan: &Plan, filters: Vec<(u32, lang::Filter)>) -> Result<Loaded> {
    let (mut loaded, later) = begin(plan, filters, None)?;
    loaded.add_iterator(&later);
    Ok(loaded)
}

/// Loads everything except `Loaded::iterator`, which can wait until the command runs.
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
        let types = || if knows_tasks(plan) { types(plan).map(Some) } else { Ok(None) };
        let read = s.spawn(move || (types(), session(plan, filters, captures)));
        let made = MapSet::make(plan, own, slots);
        (read.join().unwrap_or_else(|p| std::panic::resume_unwind(p)), made)
    });
    let btf = btf.map_err(|e| refused("/sys/kernel/btf/vmlinux", &e))?;
    let made = made.map_err(|e| refused("BPF maps", &e))?;
    let mark_left_out = || match &plan.target {
        PlanTarget::All { left_out } if btf.is_some() => super::left_out::leave_out(&made.tasks, left_out),
        _ => {}
    };
    mark_left_out();
    let users = btf.as_ref().filter(|_| asks_user || plan.named).and_then(users);
    let offsets = btf.as_ref().map(|btf| offsets(btf, plan, &session, users)).transpose()?.unwrap_or_default();
    let unwinder = match &btf {
        Some(btf) if plan.has_user_stacks() => stack_tables::make(plan, btf, command)?,
        _ => None,
    };
    let tables = unwinder.as_ref().map(Unwinder::tables);
    let areas = if plan.frames_of_calls() == Captures::default() { None } else { Some(Areas::new(made.cpus)) };
    let areas = areas.transpose().map_err(|e| refused("BPF maps", &e))?;
    let maps = Maps { stacks: areas.as_ref().map(|a| a.stacks(tables)), ..made.descriptors() };
    let rows_of_calls = made.open_to_orders(plan).map_err(|e| refused("BPF maps", &e))?;
    let functions = Functions::new().map_err(|e| refused("BTF of the programs", &e.error))?;
    let kit = CallKit { btf: btf.as_ref(), maps: &maps, offsets: &offsets, session: &session, functions: &functions };
    let Called { programs, mut sources, counters, rings } = load_programs(plan, &kit, &made, single.as_deref())?;
    // The threads that have loaded the programs may still be on their way out.
    mark_left_out();
    let (mut links, mut slow_links) = (Vec::new(), Vec::new());
    // Not while others load: a tracepoint that was let go a moment ago, by the session before this one, waits for a grace period of
    // RCU, which the verifier keeps from ending.
    for (attach, program) in &programs {
        let to = if matches!(attach, Attach::Single(..)) { &mut slow_links } else { &mut links };
        to.extend(attach.links(program)?);
    }
    // After the others: at the same tracepoint those run first, and mark that the command has begun.
    // The tables are kept from here on, before any program asks for them.
    let unwinder = unwinder.map(Unwinder::run).transpose();
    let unwinder =
        unwinder.map_err(|e| Error::failed("the unwinder's thread", e.to_string(), "free some processes"))?;
    let left_out = match &plan.target {
        PlanTarget::All { left_out } => {
            Some(left_out.iter().map(|pid| *pid as u32).chain([std::process::id()]).collect::<Vec<u32>>())
        }
        _ => None,
    };
    let kit = Kit {
        tasks: &made.tasks,
        offsets: &offsets,
        session: &session,
        functions: &functions,
        tables,
        agents: &Agents::default(),
        cpus: made.cpus,
        own_rings: own,
        left_out: left_out.as_deref(),
    };
    let (probes, sets) = load_probes(plan, kit, &slow_links)?;
    sources.extend(probes.iter().map(|p| (p.name.clone(), p.source.clone())));
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
        programs: programs.into_iter().map(|(_, p)| p).collect(),
        maps: Arc::new(others.into_iter().chain(ring_maps).chain(slots.map(|(map, _)| map)).collect()),
    };
    Ok((loaded, Later { btf, maps, offsets, session, functions, tables }))
}

/// The programs of calls and tasks, and the memory of their events.
struct Called {
    /// And where each is to be attached.
    programs: Vec<(Attach, Program)>,
    /// Where they are attached, and their instructions.
    sources: Vec<(String, bpf::Program)>,
    counters: Buffers,
    rings: Vec<Ring>,
}

/// Loads the programs of calls and tasks; the maps are filled meanwhile.
fn load_programs(plan: &Plan, kit: &CallKit<'_>, made: &MapSet, single: Option<&[Single]>) -> Result<Called> {
    let mut jobs: Vec<Job<Result<Part>>> = Vec::new();
    for program in programs(plan, single) {
        jobs.push(Box::new(move || {
            let (attach, program, source) = kit.load(program)?;
            Ok(Part::Program(attach, program, source))
        }));
    }
    jobs.insert(
        jobs.len().min(2),
        Box::new(|| made.fill(plan).map(|()| Part::Filled).map_err(|e| refused("BPF maps", &e))),
    );
    jobs.push(Box::new(|| made.rings(plan).map(Part::Rings).map_err(|e| refused("BPF ring", &e))));
    let (mut programs, mut sources, mut mapped) = (Vec::new(), Vec::new(), None);
    for part in parallel::run(jobs, made.cpus as usize) {
        match part? {
            Part::Program(attach, program, source) => {
                sources.push((attach.to_string(), source));
                programs.push((attach, program));
            }
            Part::Rings(all) => mapped = Some(all),
            Part::Filled => {}
        }
    }
    let Some((counters, rings)) = mapped else { unreachable!("one of the jobs") };
    Ok(Called { programs, sources, counters, rings })
}

/// Loads and attaches the probes, with their rings. If one is refused, all are detached, and so are these links.
fn load_probes(plan: &Plan, kit: Kit<'_>, slow_links: &[Link]) -> Result<(Vec<AttachedProbe>, Vec<RingSet>)> {
    let enabled: Vec<_> = plan.probes().cloned().collect();
    // Each takes a handful of descriptors.
    if enabled.len() > 16 {
        let _ = sys::process::raise_file_limit();
    }
    let mut sets = ring_set::make_shared(&enabled, kit.cpus, plan.buffer).map_err(|e| refused("BPF ring", &e))?;
    let alone = !ring_set::are_shared(&enabled);
    let (_, size) = ring_set::sizes(&enabled, plan.buffer);
    // Each attach to a file's code waits for the kernel's readers; they can wait together.
    let failed = &AtomicBool::new(false);
    let job = |(e, set): (_, usize)| {
        let outlet = match sets.get(set).filter(|_| !alone) {
            Some(shared) => Outlet::Rings(shared.descriptors()),
            None => Outlet::Own(size),
        };
        let load = move || match failed.load(Ordering::Relaxed) {
            true => Ok(None),
            false => {
                AttachedProbe::load(e, kit, outlet, (set, alone)).inspect_err(|_| failed.store(true, Ordering::Relaxed))
            }
        };
        Box::new(load) as Job<Result<Option<AttachedProbe>>>
    };
    let numbered = plan.enablings.iter().filter_map(|e| Some((e.id, &**e.probe()?))).zip(ring_set::numbers(&enabled));
    let (mut probes, mut refusal) = (Vec::new(), None);
    for probe in parallel::run_waiting(numbered.map(job).collect()) {
        match probe {
            Ok(probe) => probes.extend(probe),
            Err(e) => refusal = refusal.or(Some(e)),
        }
    }
    if let Some(e) = refusal {
        take_down(&mut probes, slow_links);
        return Err(e);
    }
    sets.extend(probes.iter_mut().filter_map(|p| p.made.take()));
    Ok((probes, sets))
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
