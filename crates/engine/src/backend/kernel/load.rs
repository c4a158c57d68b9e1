//! Makes the maps, generates the programs for this kernel, loads and attaches them.
//!
//! Nothing is pinned: when the process ends, however it ends, the kernel drops its links, programs and maps.

use super::notice;
use crate::error::{Error, Result};
use crate::plan::Plan;
use bpf::calls::plan::{self as rows, Limits, NO_ROW};
use bpf::calls::{self, Maps, SCRATCH, Source, Target, counter, state};
use events::schema::{Dir, Schema};
use events::types::{Switch, Type};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;
use sys::bpf::map::{MMAPABLE, Map, Values, possible_cpus};
use sys::bpf::prog::{LoadError, Program, ProgramKind, ProgramSpec, btf_load};
use sys::bpf::{link::Link, ring::Ring};
use sys::btf::build::Builder;
use sys::btf::{KernelBtf, Kind};

/// The kernel's side of a session. Dropping it detaches everything.
pub struct Loaded {
    /// Task storage: who is traced.
    pub tasks: Map,
    /// A ring per CPU.
    pub rings: Vec<Ring>,
    /// Shows the calls in flight, where this kernel can.
    pub iterator: Option<notice::TaskIterator>,
    counters: Values,
    cpus: u32,
    links: Vec<Link>,
    /// Links that take a grace period of RCU each to close.
    slow_links: Vec<Link>,
    // The rest is kept for the programs.
    _maps: Vec<Map>,
    _programs: Vec<Program>,
}

fn refused(what: &str, e: &io::Error) -> Error {
    let todo = match e.raw_os_error() {
        Some(1 | 13) => "run as root, or with CAP_BPF and CAP_PERFMON; --backend ptrace needs neither",
        _ => "use --backend ptrace",
    };
    Error::failed(what, e.to_string(), todo)
}

/// A rejection by the verifier is trapline's mistake: the program and the kernel's log are kept.
fn rejected(e: &LoadError, program: &bpf::Program) -> Error {
    if matches!(e.error.raw_os_error(), Some(1)) && e.log.is_empty() {
        return refused("bpf(2)", &e.error);
    }
    let path = std::env::temp_dir().join(format!("trapline-rejected-{}-{}.log", e.name, std::process::id()));
    let text = format!("{}: {}\n\n{program}\n\n{}\n", e.name, e.error, e.log);
    let kept = sys::process::write_private(&path, text.as_bytes());
    let last = e.log.lines().rev().find(|l| !l.trim().is_empty() && !l.starts_with("processed")).unwrap_or_default();
    let where_ =
        if kept.is_ok() { format!("please report it with {}", path.display()) } else { "please report it".into() };
    Error::failed(
        format!("BPF program {}", e.name),
        format!("the kernel's verifier rejects it, which is a mistake of trapline's: {last}"),
        format!("{where_}; --backend ptrace works meanwhile"),
    )
}

/// Loads everything for `plan`.
pub fn load(plan: &Plan) -> Result<Loaded> {
    let _ = sys::bpf::raise_memory_limit();
    let btf = KernelBtf::kernel().map_err(|e| refused("/sys/kernel/btf/vmlinux", &e))?;
    let made = MapSet::make(plan).map_err(|e| refused("BPF maps", &e))?;
    let target = target(&btf, plan)?;
    let maps = made.descriptors();
    let assemble = |e: bpf::AsmError| Error::failed("BPF generator", e.to_string(), "please report it");
    let single = single_calls(plan);
    let mut programs = vec![
        ("sched_process_exec", "trapline_exec", calls::exec(&maps, &target).map_err(assemble)?),
        ("sched_process_exit", "trapline_end", calls::exit(&maps, &target).map_err(assemble)?),
        ("signal_deliver", "trapline_signal", calls::signal(&maps, &target).map_err(assemble)?),
        ("signal_generate", "trapline_ignore", calls::ignored_signal(&maps, &target).map_err(assemble)?),
    ];
    if plan.follow {
        programs.push(("sched_process_fork", "trapline_fork", calls::fork(&maps, &target).map_err(assemble)?));
    }
    let functions = Functions::load().map_err(|e| refused("BTF of the programs", &e.error))?;
    let (mut loaded, mut links) = (Vec::new(), Vec::new());
    let mut slow_links = Vec::new();
    match &single {
        None => {
            let enter = calls::sys_enter(&maps, &target, Source::All).map_err(assemble)?;
            let exit = calls::sys_exit(&maps, &target, Source::All).map_err(assemble)?;
            programs.splice(0..0, [("sys_exit", "trapline_exit", exit), ("sys_enter", "trapline_enter", enter)]);
        }
        Some(calls) => {
            let exit = calls::sys_exit(&maps, &target, Source::Single(0)).map_err(assemble)?;
            let exit = load_one(ProgramKind::Tracepoint, "trapline_exit", &exit, 0, &functions)?;
            for call in calls {
                let enter = calls::sys_enter(&maps, &target, Source::Single(call.args)).map_err(assemble)?;
                let enter = load_one(ProgramKind::Tracepoint, "trapline_enter", &enter, 0, &functions)?;
                for (program, id) in [(&exit, call.exit), (&enter, call.enter)] {
                    slow_links.push(Link::tracepoint(program, id).map_err(|e| refused("tracepoint", &e))?);
                }
                loaded.push(enter);
            }
            loaded.push(exit);
        }
    }
    for (tracepoint, name, program) in &programs {
        let typedef = format!("btf_trace_{tracepoint}");
        let id = btf.find(Kind::Typedef, &typedef).ok_or_else(|| {
            Error::failed(format!("tracepoint {tracepoint}"), "this kernel does not have it", "use --backend ptrace")
        })?;
        let p = load_one(ProgramKind::Tracing, name, program, id, &functions)?;
        links.push(Link::tracing(&p).map_err(|e| refused(tracepoint, &e))?);
        loaded.push(p);
    }
    let rings = made.ring_maps.iter().map(Ring::new).collect::<io::Result<_>>().map_err(|e| refused("BPF ring", &e))?;
    let iterator = notice::load(&btf, &maps, target.unknown).ok();
    let MapSet { tasks, counters, cpus, others, ring_maps } = made;
    Ok(Loaded {
        tasks,
        rings,
        iterator,
        counters,
        cpus,
        links,
        slow_links,
        _maps: others.into_iter().chain(ring_maps).collect(),
        _programs: loaded,
    })
}

fn load_one(
    kind: ProgramKind,
    name: &str,
    program: &bpf::Program,
    btf_id: u32,
    functions: &Functions,
) -> Result<Program> {
    let (bytes, records) = (program.bytes(), functions.records(program));
    let mut spec = match kind {
        ProgramKind::Tracing => ProgramSpec::typed_tracepoint(name, &bytes, btf_id),
        _ => ProgramSpec::new(kind, name, &bytes),
    };
    if program.functions().len() > 1 {
        spec.functions = Some((functions.btf.as_fd(), &records));
    }
    Program::load(&spec).map_err(|e| rejected(&e, program))
}

/// The most calls for which tracepoints of their own are used: each costs 35 ms to close.
const MAX_SINGLE: usize = 4;

/// A call with tracepoints of its own.
struct Single {
    enter: u64,
    exit: u64,
    args: u8,
}

/// The tracepoints of entry and exit of each call, where few are wanted and tracefs can be read; the rest of the machine
/// then hardly notices.
fn single_calls(plan: &Plan) -> Option<Vec<Single>> {
    let seen = plan.seen_calls();
    if seen.has_unknown() || seen.is_empty() || seen.len() > MAX_SINGLE {
        return None;
    }
    let mut ids = Vec::new();
    for s in events::schema::syscalls().filter(|s| seen.contains(s)) {
        // The mask of rt_sigreturn is found through registers, which these tracepoints do not show.
        if s.name == "rt_sigreturn" {
            return None;
        }
        let name = kernel_name(s.name);
        let id = |way: &str| sys::bpf::link::tracepoint_id("syscalls", &format!("sys_{way}_{name}")).ok();
        ids.push(Single { enter: id("enter")?, exit: id("exit")?, args: s.args.len() as u8 });
    }
    Some(ids)
}

/// The kernel's name of a call where its tracepoints differ from the call's (`arch/x86/entry/syscalls/syscall_64.tbl`).
fn kernel_name(name: &str) -> &str {
    match name {
        "stat" => "newstat",
        "fstat" => "newfstat",
        "lstat" => "newlstat",
        "uname" => "newuname",
        "sendfile" => "sendfile64",
        "umount2" => "umount",
        name => name,
    }
}

/// Types of the functions that programs consist of: callbacks are only taken with them.
struct Functions {
    btf: OwnedFd,
    main: u32,
    callback: u32,
}

impl Functions {
    fn load() -> std::result::Result<Functions, LoadError> {
        let mut b = Builder::new();
        let long = b.int("long", 8, true);
        let index = b.int("u64", 8, false);
        let pointer = b.pointer(0);
        let main = b.function("trapline_main", long, &[("context", pointer)]);
        let callback = b.function("trapline_callback", long, &[("index", index), ("frame", pointer)]);
        Ok(Functions { btf: btf_load(&b.finish())?, main, callback })
    }

    /// Instruction and type of every function of `program`.
    fn records(&self, program: &bpf::Program) -> Vec<u8> {
        let starts = program.functions();
        let types = std::iter::once(self.main).chain(std::iter::repeat(self.callback));
        starts.iter().zip(types).flat_map(|(at, id)| [(*at as u32).to_ne_bytes(), id.to_ne_bytes()].concat()).collect()
    }
}

impl Loaded {
    /// Detaches the programs: no event comes after this.
    pub fn detach(&mut self) {
        self.links.clear();
        // Closing these takes long: a process that nobody waits for does it when trapline has ended.
        let fds: Vec<i32> = self.slow_links.iter().map(|l| l.as_fd().as_raw_fd()).collect();
        if !fds.is_empty() {
            sys::process::leave_behind(&fds);
        }
    }

    /// Events seen by the programs, and events that found a ring full.
    pub fn counts(&self) -> (u64, u64) {
        let sum = |which: i16| -> u64 {
            let at = |cpu: u32| cpu as usize * SCRATCH as usize + counter::BASE + which as usize;
            (0..self.cpus).filter_map(|cpu| self.counters.word(at(cpu))).map(|w| w.load(Ordering::Relaxed)).sum()
        };
        (sum(counter::SEEN), sum(counter::DROPPED))
    }

    /// Traces the task behind a pidfd, starting in this state.
    pub fn trace(&self, pidfd: &impl AsRawFd, value: &[u8; state::SIZE as usize]) -> io::Result<()> {
        self.tasks.update(&pidfd.as_raw_fd().to_le_bytes(), value, 0)
    }
}

struct MapSet {
    tasks: Map,
    counters: Values,
    cpus: u32,
    /// scratch, rows, switches.
    others: Vec<Map>,
    ring_maps: Vec<Map>,
}

impl MapSet {
    fn make(plan: &Plan) -> io::Result<MapSet> {
        let cpus = possible_cpus()?.into_iter().max().unwrap_or(0) + 1;
        let (blob, key, value) = sys::btf::build::value_types("trapline_state", state::SIZE);
        let types = btf_load(&blob).map_err(|e| e.error)?;
        let tasks = Map::task_storage("trapline_tasks", types.as_fd(), key, value, state::SIZE)?;
        let ring_size = plan.buffer.max(4096) as u32;
        let ring_maps = (0..cpus).map(|_| Map::ring("trapline_ring", ring_size)).collect::<io::Result<Vec<_>>>()?;
        let scratch = Map::array("trapline_scrat", SCRATCH, cpus, MMAPABLE)?;
        let (rows, switches) = tables(plan)?;
        let counters = scratch.mmap()?;
        Ok(MapSet { tasks, counters, cpus, others: vec![scratch, rows, switches], ring_maps })
    }

    fn descriptors(&self) -> Maps {
        let fd = |m: &Map| m.as_fd().as_raw_fd();
        let [scratch, rows, switches] = &self.others[..] else { unreachable!("made with three") };
        Maps {
            tasks: fd(&self.tasks),
            scratch: fd(scratch),
            rings: self.ring_maps.iter().map(fd).collect(),
            rows: fd(rows),
            row_count: rows.entries() as i32,
            switches: fd(switches),
        }
    }
}

/// The rows of all calls, and the switches of those wanted.
fn tables(plan: &Plan) -> io::Result<(Map, Map)> {
    let seen = plan.seen_calls();
    let numbers = events::generated::X86_64.len() as u32;
    let limits = Limits { string: plan.limits.string.min(u32::MAX as usize) as u32, verbose: plan.limits.verbose };
    // Written through a mapping: one system call instead of one per row.
    let rows = Map::array("trapline_rows", rows::ROW as u32, numbers, MMAPABLE)?;
    let words = rows.mmap()?;
    let mut ops = Vec::new();
    for nr in 0..numbers {
        let mut row = [0u8; rows::ROW];
        match events::schema::by_number(nr.into()) {
            Some(s) => {
                let wanted = seen.contains(s);
                row = rows::row(s, wanted, limits);
                if wanted {
                    switch_ops(s, nr, limits, &mut ops);
                }
            }
            None => row[rows::FLAGS as usize..][..2].copy_from_slice(&NO_ROW.to_le_bytes()),
        }
        for (i, word) in row.chunks_exact(8).enumerate() {
            if let (Some(to), Ok(bytes)) = (words.word(nr as usize * rows::ROW + 8 * i), word.try_into()) {
                to.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
            }
        }
    }
    let switches = Map::hash("trapline_switch", 16, 32, (ops.len() as u32).max(1), 0)?;
    for (key, value) in ops {
        switches.update(&key, &value, 0)?;
    }
    Ok((rows, switches))
}

/// Keys and ops of every argument of `s` that a switch decides.
fn switch_ops(s: &'static Schema, nr: u32, limits: Limits, out: &mut Vec<([u8; 16], [u8; 32])>) {
    for (i, a) in s.args.iter().enumerate() {
        let Type::Switch { table, nth, .. } = a.ty else { continue };
        let table: &'static Switch = table;
        let mut add = |selector: u64, types: &'static [Option<(Type, Dir)>]| {
            let Some((ty, dir)) = types.get(usize::from(nth)).copied().flatten() else { return };
            let mut value = [0u8; 32];
            for (out, at) in [(false, 0), (true, 16)] {
                value[at..at + 16].copy_from_slice(&rows::switch_op(s, i as u8, &ty, dir, out, limits).bytes());
            }
            out.push((rows::switch_key(nr, i as u8, selector), value));
        };
        add(u64::MAX, table.default.args);
        for case in table.cases {
            add(case.key, case.types.args);
        }
    }
}

fn target(btf: &KernelBtf, plan: &Plan) -> Result<Target> {
    let of = |what: &str, path: &[&str]| -> Result<i16> {
        btf.field_of(what, path).filter(|f| f.loads.is_empty()).and_then(|f| i16::try_from(f.offset).ok()).ok_or_else(
            || {
                Error::failed(
                    format!("{what}.{}", path.join(".")),
                    "not found in the kernel's type information",
                    "use --backend ptrace",
                )
            },
        )
    };
    let field = |path: &[&str]| of("task_struct", path);
    Ok(Target {
        task_signal: field(&["signal"])?,
        signal_flags: of("signal_struct", &["flags"])?,
        signal_exec: of("signal_struct", &["group_exec_task"])?,
        task_tgid: field(&["tgid"])?,
        task_pid: field(&["pid"])?,
        task_exit_code: field(&["exit_code"])?,
        task_files: field(&["files"])?,
        thread_status: field(&["thread_info", "status"])?,
        unknown: plan.seen_calls().has_unknown(),
        all_but: None,
        pid_namespace: sys::proc::pid_namespace(),
    })
}
