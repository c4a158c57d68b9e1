//! How a session starts: the programs are loaded, and the command is started or processes are attached to.

use super::attach_pids::{Adopter, Attacher};
use super::in_flight::Watch;
use super::in_flight_stacks::Walker;
use super::live::Live;
use super::loaded::Loaded;
use super::programs::{Later, knows_tasks};
use super::system_wide::ProcScan;
use super::{Kernel, Phase, Reported, command_start, left_out, load, missed, seed_fds, switch};
use engine::backend::in_flight::InFlight;
use engine::backend::launch::{Launched, Waiting};
use engine::error::Result;
use engine::pipeline::aside::Origin;
use engine::pipeline::backend::Attached;
use engine::pipeline::merge::Merge;
use engine::plan::Plan;
use engine::stats::{LetGo, Report};
use engine::target::Target;
use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use sys::proc;

impl Kernel {
    /// Loads the programs, and starts the command or attaches.
    pub fn start(plan: &Plan) -> Result<Kernel> {
        // The command waits at its gate meanwhile, and inherits nothing of what is made.
        let waiting = match &plan.target {
            Target::Command(cmd) => Some(Waiting::fork(cmd, &[])?),
            _ => None,
        };
        let mut merge = Merge::default();
        let mut proc_scan = match &plan.target {
            Target::All { left_out } if knows_tasks(plan) => Some(ProcScan::begin(plan, left_out, &mut merge)),
            _ => None,
        };
        // The kernel measures as long as the descriptor is held.
        let measuring = if plan.measure { sys::bpf::info::enable_stats().ok() } else { None };
        let (mut loaded, later) = load::begin(plan, plan.program_filters(), waiting.as_ref().map(|w| w.pid))?;
        let own = |name: &str| {
            let enabled = plan.probes().filter(|e| e.point.is_none() && e.name == name);
            enabled.map(|e| e.schema).collect::<Vec<_>>()
        };
        loaded.say(&own("begin"), &mut merge);
        let Begun { alive, command, ended, calls } =
            begin(plan, waiting, proc_scan.as_mut(), &mut loaded, &later, &mut merge)?;
        if loaded.iterator.is_none() {
            loaded.add_iterator(&later);
        }
        if let (Target::All { .. }, Some(iterator)) = (&plan.target, &loaded.iterator) {
            // Those that were marked just now, and have made calls before, find their marks.
            let _ = iterator.read(0, 0);
        }
        // Before the drain thread starts, because capabilities belong to threads. It needs one more for a moment.
        let keep = sys::caps::AFTER_ATTACH | sys::caps::SYS_NICE;
        let _ = sys::caps::drop_to(if plan.named { keep | sys::caps::TO_ATTACH } else { keep });
        // Where it cannot be loaded, no more processes with several threads can be attached to.
        let adopter = if plan.named { Adopter::where_needed(&later).ok().flatten() } else { None };
        let live = plan.named.then(|| Live {
            later,
            tasks: Arc::clone(&loaded.tasks),
            _maps: Arc::clone(&loaded.maps),
            cpus: loaded.rings.len() as u32,
            buffer: plan.buffer,
            sets: loaded.sets.len(),
            own_rings: loaded.kernel_rings.is_none(),
        });
        let fell_back: Vec<_> = loaded.probes.iter().filter(|p| p.fell_back).map(|p| p.name.clone()).collect();
        let mut kernel = Kernel {
            attached_now: Attached {
                programs: std::mem::take(&mut loaded.sources)
                    .into_iter()
                    .map(|(at, p)| (at, Box::new(p) as _))
                    .collect(),
                fell_back,
                kernel_rings: loaded.kernel_rings,
            },
            end: own("end"),
            loaded,
            measuring,
            merge,
            attached: alive.len() as i64,
            adopter,
            live,
            alive,
            leaving: HashSet::new(),
            restricted: !engine::rights::is_root(),
            executed: Vec::new(),
            let_go: LetGo::default(),
            origin: Origin::Unknown,
            command,
            ended,
            watch: Watch::new(plan.notice_ms),
            walker: Walker::of(plan),
            whole: matches!(plan.target, Target::All { .. }),
            no_entry: plan.no_duration,
            proc_scan,
            attribution: missed::Attribution::of(plan),
            details: plan.fd_details,
            held: switch::Held::of(plan),
            reported: Reported::default(),
            phase: Phase::Begun,
            stopping: false,
            idle: 0,
            cut_off: 0,
            report: Report::default(),
        };
        kernel.notice_found(calls);
        Ok(kernel)
    }
}

/// Whose events come.
#[derive(Default)]
struct Begun {
    /// The threads that are traced.
    alive: HashSet<u32>,
    command: Launched,
    /// What is readable from the command's end on.
    ended: Option<OwnedFd>,
    /// The calls that threads were found in.
    calls: Vec<InFlight>,
}

/// Starts the command, or attaches.
fn begin(
    plan: &Plan,
    waiting: Option<Waiting>,
    proc_scan: Option<&mut ProcScan>,
    loaded: &mut Loaded,
    later: &Later,
    merge: &mut Merge,
) -> Result<Begun> {
    let mut begun = Begun::default();
    match &plan.target {
        Target::Command(_) => {
            let Some(waiting) = waiting else { unreachable!("forked before") };
            let pid = waiting.pid;
            let (failure, ended) = command_start::start(waiting, plan, loaded, later, merge)?;
            begun.alive.insert(pid as u32);
            return Ok(Begun { command: Launched::new(pid, failure), ended, ..begun });
        }
        Target::Pids(pids) => {
            let seen = &plan.calls_at_attach();
            let adopter = Adopter::where_needed(later)?;
            let attacher = Attacher {
                tasks: &loaded.tasks,
                seen,
                limits: plan.limits,
                adopter: adopter.as_ref(),
                no_entry: plan.no_duration,
            };
            for &pid in pids {
                let pid = proc::process_of(pid).unwrap_or(pid);
                seed_fds(pid, plan, merge);
                begun.calls.extend(attacher.attach(pid, &mut begun.alive, merge)?);
            }
            // What has become another program since it was asked is seen by the programs from now on, and was not before.
            engine::rights::of_targets(&plan.target)?;
        }
        Target::All { left_out } => {
            // Threads that began since the first time.
            if let Some(proc_scan) = proc_scan {
                left_out::leave_out(&loaded.tasks, left_out);
                proc_scan.attached(left_out);
            }
        }
    }
    loaded.begin();
    Ok(begun)
}
