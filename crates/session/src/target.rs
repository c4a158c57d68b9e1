//! Targets, backends and limits from the command line: the plan.

use crate::ask::Ask;
use crate::captures;
use crate::manner::Manner;
use engine::capture::Limits;
use engine::pipeline::selection::Selection;
use engine::plan::{Backend, COPIED_STACK, OnFull, Plan, Unwind};
use engine::provider::AttachPoint;
use engine::request::call_enabling::CallCaptures;
use engine::request::enabling;
use engine::rights;
use engine::target::Target;
use engine::target::command::{self, Variable};
use engine::{Error, Result};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use unprivileged::perf;
use views::options::FdNames;

/// Bytes of a thread's name (`TASK_COMM_LEN`, include/linux/sched.h).
const NAME: usize = 16;

/// The plan, and why it takes this backend.
pub fn plan(ask: &Ask, target: Target, selection: &Selection) -> Result<(Plan, String)> {
    let asked = match ask.tracing.backend.as_deref() {
        Some("kernel") => Backend::Kernel,
        Some("agent") if !selection.calls.is_empty() => {
            let todo = "leave --backend out; functions are traced by 'trapline graph'";
            return Err(Error::usage("--backend agent", "it traces functions, and no system calls", todo));
        }
        Some("agent") => Backend::Agent,
        Some("ptrace") => Backend::Ptrace,
        Some("perf") => Backend::Perf,
        _ => Backend::Auto,
    };
    if let Target::Pids(pids) = &target
        && !selection.calls.is_empty()
    {
        refuse_kernel_threads(pids)?;
    }
    let (unwind, copied_stack) = unwind(ask)?;
    if unwind == Unwind::Copy && matches!(asked, Backend::Kernel | Backend::Ptrace) {
        let todo = "leave out --backend";
        return Err(Error::usage("--unwind copy", "stacks are copied by the perf backend only", todo));
    }
    let manner = Manner::of(ask)?;
    let on_full = on_full(ask);
    let (backend, why) = match &target {
        _ if ask.tracing.kill_on_exit => kill_on_exit(asked, &target)?,
        Target::All { .. } => asked.taken_for_all()?,
        _ => asked.taken(on_full, matches!(target, Target::Pids(_))),
    };
    let string = ask.format.string();
    let plan = Plan {
        target,
        enablings: enabling::of_calls(&selection.calls),
        functions: None,
        refiltered: false,
        call_captures: Vec::new(),
        unwind,
        samples_beside: None,
        copied_stack,
        callers: None,
        measure: false,
        no_duration: false,
        follow: !ask.target.no_follow,
        limits: Limits {
            string: string.max(if manner.dumps() { backend.most_captured().unwrap_or(0) } else { 0 }),
            text: selection.expression.as_ref().map_or(0, |f| f.text_bytes().max(if f.asks_comm() { NAME } else { 0 })),
            verbose: manner.verbose,
            keep: captures::keep(&ask.capture)?,
        },
        fd_names: manner.fd_names != FdNames::NONE || !selection.paths.is_empty(),
        fd_details: manner.fd_names.has_details(),
        seccomp: !ask.tracing.no_seccomp,
        kill_on_exit: ask.tracing.kill_on_exit,
        on_full: on_full.unwrap_or(backend.on_full()),
        buffer: ask.tracing.buffer.as_ref().map_or(Ok(backend.buffer()), |s| size("--buffer", s))?,
        buffer_is_asked: ask.tracing.buffer.is_some(),
        backend,
        named: false,
        paused: false,
        notice_ms: 200,
        slots: None,
        filter: selection.expression.clone(),
    };
    Ok((plan, why))
}

/// `--kill-on-exit`: only the kernel's ptrace(2) kills whatever is traced.
fn kill_on_exit(asked: Backend, target: &Target) -> Result<(Backend, String)> {
    const OPTION: &str = "--kill-on-exit";
    match (asked, target) {
        (_, Target::Pids(_) | Target::All { .. }) => {
            Err(Error::usage(OPTION, "it is for a command, and not for processes that run already", "leave it out"))
        }
        (Backend::Auto | Backend::Ptrace, _) => Ok((Backend::Ptrace, format!("auto: {OPTION}"))),
        (other, _) => {
            let why = "only the ptrace backend kills what it has traced";
            Err(Error::usage(format!("{OPTION} --backend {}", other.name()), why, "leave out --backend"))
        }
    }
}

/// `--unwind HOW`: how user stacks are found, and how much of each is copied.
fn unwind(ask: &Ask) -> Result<(Unwind, u32)> {
    let text = ask.tracing.unwind.as_ref().map_or("auto", String::as_str);
    let bad = |why: &str| Error::usage(format!("--unwind {text}"), why, "auto, tables, fp, copy or copy,SIZE");
    let (how, bytes) = text.split_once(',').map_or((text, None), |(how, bytes)| (how, Some(bytes)));
    let how = match how {
        "auto" => Unwind::Auto,
        "tables" => Unwind::Tables,
        "fp" => Unwind::FramePointers,
        "copy" => Unwind::Copy,
        _ => return Err(bad("no such way")),
    };
    let Some(bytes) = bytes else { return Ok((how, COPIED_STACK)) };
    if how != Unwind::Copy {
        return Err(bad("only copies have a size"));
    }
    let bytes = bytes.parse().ok().map_or_else(|| self::bytes("--unwind copy,SIZE", bytes), Ok)?;
    match u32::try_from(bytes) {
        Ok(n) if (1024..=65536).contains(&n) => Ok((how, (n & !7).min(sys::perf::MOST_STACK))),
        _ => Err(Error::usage(format!("--unwind {text}"), "not a size of a copied stack", "1K to 64K")),
    }
}

/// Whether the ptrace backend can do all of a request with user stacks: only calls have them.
fn stays_with_ptrace(ask: &Ask, plan: &Plan) -> bool {
    let asked = ask.tracing.backend.as_ref().is_some_and(|b| b == "ptrace");
    let blocks = ask.tracing.on_full.as_ref().is_some_and(|w| w == "block");
    let only_ustack = plan.call_captures.iter().all(CallCaptures::is_user_stack);
    plan.probes().next().is_none() && only_ustack && (asked || blocks || rights::kernel_backend_is_usable().is_err())
}

/// Takes samples by copied stacks: by request, or where the user has no right to another way.
fn copy_stacks(ask: &Ask, plan: &mut Plan, why: &mut String) -> Result<bool> {
    let asked = plan.unwind == Unwind::Copy || plan.backend == Backend::Perf;
    let first = plan.probes().next().map(|e| format!("-e {}", e.name));
    let kernel = rights::kernel_backend_is_usable();
    let backend = ask.tracing.backend.as_deref();
    let free = plan.unwind == Unwind::Auto && backend.is_none_or(|b| b == "auto");
    // Threads that do not run are looked at by the perf backend alone.
    let looks = plan.probes().find(|e| e.point.as_ref().is_some_and(AttachPoint::is_looked_at));
    let looks = looks.filter(|_| free).map(|e| format!("-e {}", e.name));
    let falls_back = free && kernel.is_err() && first.is_some();
    let beside = falls_back || looks.is_some() || backend == Some("ptrace");
    if plan.unwind == Unwind::Auto && first.is_some() && beside && has_calls(plan) {
        return copy_stacks_beside_calls(ask, plan, why);
    }
    if !asked && !falls_back && looks.is_none() {
        return Ok(false);
    }
    let option = match (&looks, plan.unwind) {
        (Some(looks), _) => looks.as_str(),
        (None, Unwind::Copy) => "--unwind copy",
        (None, _) => "--backend perf",
    };
    let asked = asked || looks.is_some();
    let other = plan.probes().find(|e| !perf::can_carry(e));
    if let Some(e) = other.or_else(|| plan.probes().find(|e| e.point.is_none())) {
        let why = format!("-e {}: only the kernel backend has this probe, or what it captures", e.name);
        return if asked { Err(Error::failed(option, why, format!("leave out {option}"))) } else { Ok(false) };
    }
    if has_calls(plan) || first.is_none() {
        return Err(match first {
            Some(first) => {
                Error::failed(first, "it records samples, and no system calls", format!("leave out {option}"))
            }
            None => {
                let what = "it copies the stacks of samples, and there are none";
                Error::failed(option, what, "add -e profile:hz:99")
            }
        });
    }
    if matches!(plan.target, Target::All { .. }) {
        let why = "stacks are copied of the threads of a command or a process only";
        return Err(Error::failed(format!("-a {option}"), why, "use -p PID, or the kernel backend"));
    }
    may_copy_stacks(first.unwrap_or_default())?;
    *why = match kernel {
        _ if asked => "as requested".into(),
        Err(why) => format!("auto: {why}; samples with copied stacks need no privilege"),
        Ok(()) => "auto".into(),
    };
    (plan.backend, plan.on_full) = (Backend::Perf, on_full(ask).unwrap_or(OnFull::Drop));
    if ask.tracing.buffer.is_none() {
        plan.buffer = Backend::Perf.buffer();
    }
    Ok(true)
}

/// Whether calls are wanted.
fn has_calls(plan: &Plan) -> bool {
    !plan.calls().is_empty() || !plan.call_captures.is_empty()
}

/// Refuses samples where the user may take none. `first`: the first probe.
fn may_copy_stacks(first: String) -> Result<()> {
    let what = "samples can be taken neither by bpf(2) nor by perf_event_open(2)";
    rights::copied_stacks().map_err(|why| Error::failed(first, what, why))
}

/// Has the ptracer trace the calls, and the perf backend take the samples, where these two can do the whole request.
fn copy_stacks_beside_calls(ask: &Ask, plan: &mut Plan, why: &mut String) -> Result<bool> {
    let only_ustack = plan.call_captures.iter().all(CallCaptures::is_user_stack);
    if plan.probes().any(|e| e.point.is_none() || !perf::can_carry(e))
        || !only_ustack
        || matches!(plan.target, Target::All { .. })
    {
        return Ok(false);
    }
    may_copy_stacks(plan.probes().next().map(|e| format!("-e {}", e.name)).unwrap_or_default())?;
    plan.samples_beside = Some(if ask.tracing.buffer.is_some() { plan.buffer } else { Backend::Perf.buffer() });
    plan.backend = Backend::Ptrace;
    plan.on_full = on_full(ask).unwrap_or(Backend::Ptrace.on_full());
    why.push_str("; samples with copied stacks need no privilege");
    Ok(true)
}

/// `--on-full`.
fn on_full(ask: &Ask) -> Option<OnFull> {
    ask.tracing.on_full.as_ref().map(|s| if s == "drop" { OnFull::Drop } else { OnFull::Block })
}

/// Selects the backend of a request that only one backend can do.
pub fn only_in_kernel(ask: &Ask, plan: &mut Plan, why: &mut String) -> Result<()> {
    if copy_stacks(ask, plan, why)? {
        return Ok(());
    }
    let what = match (plan.probes().next(), plan.call_captures.first()) {
        _ if plan.backend == Backend::Kernel => return Ok(()),
        (Some(first), _) => (first.name.clone(), "only the kernel backend has this probe"),
        (None, Some(_)) if plan.backend == Backend::Ptrace && stays_with_ptrace(ask, plan) => return Ok(()),
        (None, Some(c)) => {
            (c.schema.name.to_string(), "only the kernel backend captures stacks of the kernel and names of threads")
        }
        (None, None) => return Ok(()),
    };
    let refuse = |todo: String| Err(Error::failed(format!("-e {}", what.0), what.1, todo));
    if plan.kill_on_exit {
        return refuse("leave out --kill-on-exit".into());
    }
    if ask.tracing.backend.as_deref() == Some("ptrace") {
        return refuse("leave out --backend ptrace".into());
    }
    if ask.tracing.on_full.as_deref() == Some("block") {
        return refuse("leave out --on-full block: events that do not fit are dropped and counted".into());
    }
    if let Err(why) = rights::kernel_backend_is_usable() {
        return refuse(why);
    }
    (plan.backend, plan.on_full) = (Backend::Kernel, Backend::Kernel.on_full());
    if ask.tracing.buffer.is_none() {
        plan.buffer = Backend::Kernel.buffer();
    }
    *why = format!("auto: {}", what.1);
    Ok(())
}

/// A time above zero, as ns.
pub fn duration(option: &str, s: &str) -> Result<u64> {
    // A century at most, so that the sum with the clock's time fits.
    const MOST: u64 = 3_200_000_000 * 1_000_000_000;
    let ns = lang::duration::parse(s).filter(|ns| (1..MOST).contains(ns));
    ns.ok_or_else(|| Error::usage(format!("{option} {s}"), "not a time above 0", lang::duration::HINT))
}

/// A size such as `65536`, `64K`, `4M`, rounded up to a power of two.
pub fn size(option: &str, s: &str) -> Result<usize> {
    let n = bytes(option, s)?;
    if n > 1 << 30 {
        return Err(Error::usage(format!("{option} {s}"), "too large", "at most 1G"));
    }
    Ok((n as usize).next_power_of_two().max(4096))
}

/// A power of two as [`bytes`] reads it.
pub fn in_units(n: u64) -> String {
    let (unit, letter) =
        [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")].into_iter().find(|u| n >= u.0).unwrap_or((1, ""));
    format!("{}{letter}", n / unit)
}

/// A number of bytes such as `65536`, `64K`, `4M`, `2G`.
pub fn bytes(option: &str, s: &str) -> Result<u64> {
    let bad = || Error::usage(format!("{option} {s}"), "not a size", "for instance 64K, 4M or 1G");
    let (digits, unit) = match s.trim_end_matches(['B', 'b', 'i']).char_indices().last() {
        Some((i, 'k' | 'K')) => (&s[..i], 1u64 << 10),
        Some((i, 'm' | 'M')) => (&s[..i], 1 << 20),
        Some((i, 'g' | 'G')) => (&s[..i], 1 << 30),
        Some((i, 't' | 'T')) => (&s[..i], 1 << 40),
        _ => (s, 1),
    };
    let n: u64 = digits.parse().map_err(|_| bad())?;
    n.checked_mul(unit).filter(|&b| b > 0).ok_or_else(bad)
}

/// The target that the command line names.
pub fn target(ask: &Ask) -> Result<Target> {
    let mut pids = Vec::new();
    for list in ask.target.attach.iter() {
        for p in list.split([',', ' ', '\n', '\t']).filter(|p| !p.is_empty()) {
            match p.parse::<i32>() {
                Ok(n) if n > 0 && n == sys::process::own_pid() => {
                    return Err(Error::usage(format!("-p {p}"), "is trapline itself", "name another process"));
                }
                Ok(n) if pids.contains(&n) => {}
                Ok(n) if n > 0 => pids.push(n),
                _ => return Err(Error::usage(format!("-p {p}"), "not a process id", "for instance -p $(pidof NAME)")),
            }
        }
    }
    let argv: Vec<OsString> = ask.target.command.to_vec();
    if ask.target.all {
        let columns = "strace's -a COLUMN is --columns";
        return match (pids.is_empty(), argv.is_empty(), ask.target.no_follow) {
            (true, true, false) => Ok(Target::All { left_out: Vec::new() }),
            (_, _, true) => Err(Error::usage("-a --no-follow", "there is nothing to follow", "leave out one of them")),
            (false, ..) => {
                Err(Error::usage("-a", "given together with -p", format!("trace one or the other; {columns}")))
            }
            _ => Err(Error::usage("-a", "the whole machine, given together with a command", columns)),
        };
    }
    match (pids.is_empty(), argv.is_empty()) {
        (true, true) => Err(Error::usage("trace", "nothing to trace", "trapline trace -- COMMAND, -p PID, or -a")),
        (false, false) => Err(Error::usage("-p", "given together with a command", "trace one or the other")),
        (false, true) => Ok(Target::Pids(pids)),
        (true, false) => {
            let user = match ask.target.user.as_ref() {
                None => None,
                Some(u) => Some(
                    sys::users::lookup(u)
                        .ok_or_else(|| Error::usage(format!("-u {u}"), "no such user", "see 'getent passwd'"))?,
                ),
            };
            if user.is_some() && sys::process::euid() != 0 {
                return Err(Error::failed("-u", "only root may change the user", "run trapline as root"));
            }
            Ok(Target::Command(command::prepare(&argv, &variables(ask), user)?))
        }
    }
}

/// Refuses kernel threads: they never make a system call, whatever `/proc` reports.
fn refuse_kernel_threads(pids: &[i32]) -> Result<()> {
    match pids.iter().find(|pid| sys::proc::is_kernel_thread(**pid)) {
        None => Ok(()),
        Some(pid) => Err(Error::failed(
            format!("-p {pid}"),
            "a kernel thread, which makes no system calls",
            "name a process; 'trapline list tracepoint:' shows what can be recorded in the kernel",
        )),
    }
}

fn variables(ask: &Ask) -> Vec<Variable> {
    let mut out = Vec::new();
    for v in ask.target.env.iter() {
        let b = v.as_bytes();
        out.push(match b.iter().position(|&c| c == b'=') {
            Some(i) => Variable::Set(OsString::from_vec(b[..i].to_vec()), OsString::from_vec(b[i + 1..].to_vec())),
            None => Variable::Remove(v.clone()),
        });
    }
    out
}
