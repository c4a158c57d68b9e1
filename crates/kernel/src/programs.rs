//! The programs of calls and tasks: which a session needs, and where each is attached.

use super::functions::Functions;
use bpf::syscalls::{self, Maps, Session, Source};
use bpf::unwind::Tables;
use bpf::{BtfOffsets, frame::Generated};
use engine::error::{Error, Result};
use engine::plan::Plan;
use engine::provider::kernel_name;
use engine::request::probe_enabling::ProbeEnabling;
use engine::rights::refusal::{refused, rejected};
use engine::target::Target as PlanTarget;
use std::fmt;
use std::sync::Arc;
use sys::bpf::link::Link;
use sys::bpf::prog::{Program, ProgramKind, ProgramSpec};
use sys::btf::{KernelBtf, Kind};

/// What the programs that follow are made from: the iterator, and the probes that are added to a session that runs.
pub struct Later {
    /// None where nothing follows: in a session that knows nothing of tasks.
    pub(super) btf: Option<KernelBtf>,
    pub(super) maps: Maps,
    pub(super) offsets: BtfOffsets,
    pub(super) session: Session,
    pub(super) functions: Functions,
    pub(super) tables: Option<Tables>,
}

/// Where a program goes.
#[derive(Clone)]
pub(super) enum Attach {
    /// The tracepoint of this name, with typed arguments: loading it costs a search through the names of all the kernel's types.
    Typed(&'static str),
    /// The tracepoints of these names, with words for arguments.
    Raw(&'static [&'static str]),
    /// Classic tracepoints with these numbers; what they are called together.
    Single(String, Vec<u64>),
}

impl Attach {
    /// Attaches a program there.
    pub(super) fn links(&self, program: &Program) -> Result<Vec<Link>> {
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
pub(super) struct Wanted {
    attach: Attach,
    name: &'static str,
    make: Box<Generator>,
}

/// Whether some calls are seen, or may be later.
pub(super) fn sees_calls(plan: &Plan) -> bool {
    plan.named || !plan.seen_calls().is_empty() || plan.seen_calls().has_unknown()
}

/// Whether the session has to know the tasks: which there are, how they are named, and which are not traced. Else the programs of its
/// probes know by their ids which tasks are trapline's own.
pub(super) fn knows_tasks(plan: &Plan) -> bool {
    !plan.is_bare() || sys::proc::pid_namespace().is_some()
}

/// The programs, those first that the verifier takes longest for.
pub(super) fn programs(plan: &Plan, single: Option<&[Single]>) -> Vec<Wanted> {
    if !knows_tasks(plan) {
        return Vec::new();
    }
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
pub(super) fn sees_threads_go(plan: &Plan) -> bool {
    let in_kernel = |e: &Arc<ProbeEnabling>| e.point.as_ref().is_some_and(|p| p.in_file().is_none());
    !matches!(plan.target, PlanTarget::All { .. }) && (plan.named || plan.probes().any(in_kernel))
}

/// What programs are made from.
pub(super) struct CallKit<'a> {
    pub(super) btf: Option<&'a KernelBtf>,
    pub(super) maps: &'a Maps,
    pub(super) offsets: &'a BtfOffsets,
    pub(super) session: &'a Session,
    pub(super) functions: &'a Functions,
}

impl CallKit<'_> {
    /// Loads one; its instructions come with it.
    pub(super) fn load(&self, wanted: Wanted) -> Result<(Attach, Program, bpf::Program)> {
        let source = (wanted.make)(self.maps, self.offsets, self.session)
            .map_err(|e| Error::failed("BPF generator", e.to_string(), "please report it"))?;
        let (kind, id) = match wanted.attach {
            Attach::Typed(tracepoint) => (ProgramKind::Tracing, self.typed(tracepoint)?),
            Attach::Raw(_) => (ProgramKind::RawTracepoint, 0),
            Attach::Single(..) => (ProgramKind::Tracepoint, 0),
        };
        let program = self.load_one(kind, wanted.name, &source, id)?;
        Ok((wanted.attach, program, source))
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
        self.btf.and_then(|btf| btf.find(Kind::Typedef, &typedef)).ok_or_else(|| {
            Error::failed(format!("tracepoint {tracepoint}"), "this kernel does not have it", "use --backend ptrace")
        })
    }
}

/// The most calls for which tracepoints of their own are used: each costs 35 ms to close.
const MAX_SINGLE: usize = 4;

/// A call with tracepoints of its own.
pub(super) struct Single {
    name: &'static str,
    enter: u64,
    exit: u64,
    args: u8,
}

/// The tracepoints of entry and exit of each call, where few are wanted and tracefs can be read; the rest of the machine
/// then hardly notices.
pub(super) fn single_calls(plan: &Plan) -> Option<Vec<Single>> {
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
