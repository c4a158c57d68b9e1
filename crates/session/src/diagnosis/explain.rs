//! What a plan does and what it loses, in words: `--explain`.

use engine::plan::{Backend, OnFull, Plan, Unwind};
use engine::request::enabling::Enabling;
use engine::request::functions::Functions;
use engine::request::select::Calls;
use engine::target::Target;
use kernel::{attach, programs, ring_set, rings_of_calls};

/// What is lost where nothing runs at the entry of calls: each as a name and a description.
const WITHOUT_ENTRY: &[(&str, &str)] = &[
    (
        "durations",
        "--no-duration: the time of a call is that of its end; neither its start nor its processor then is known",
    ),
    (
        "calls without return",
        "exit_group, and every other call that a thread ends in, or is in at the end of the trace: they are counted; nothing is shown of \
         calls that run for long",
    ),
    (
        "arguments that a call changes",
        "what poll, select, getsockopt, some ioctl and others find in memory is counted; what they leave there is shown",
    ),
    (
        "arguments of an execve that succeeds",
        "they are counted, as is rt_sigreturn's; an execveat that succeeds is shown as execve",
    ),
];

/// What will be done and what is lost, one line each. `why`: the reason for this backend.
pub fn lines(plan: &Plan, why: &str) -> Vec<String> {
    let mut out = vec![format!("backend: {} ({why})", plan.backend_name())];
    let seen = plan.seen_calls();
    out.push(format!("calls: {} wanted, {} seen by the tracer", plan.calls().len(), seen.len()));
    if let Some(filter) = &plan.filter {
        let place = if plan.backend == Backend::Kernel {
            "in the kernel's programs"
        } else {
            "by trapline, after the call was read"
        };
        out.push(format!("filter: {} part(s), evaluated {place}", filter.parts().len()));
    }
    match plan.backend {
        Backend::Kernel => kernel_of(plan, &mut out),
        Backend::Perf => perf_of(plan, &mut out),
        Backend::Agent => out.push(format!("{}: by an agent that the programs load (LD_PRELOAD)", of_agent(plan))),
        Backend::Auto | Backend::Ptrace => ptrace_of(plan, &seen, &mut out),
    }
    if plan.is_joined() {
        let what = of_agent(plan);
        out.push(format!("{what}: by an agent that the programs load (LD_PRELOAD); its own calls are left out"));
    }
    heap_of(plan, &mut out);
    probes_of(plan, &mut out);
    in_process_of(plan, &mut out);
    let per_cpu = match plan.backend {
        Backend::Kernel => " per CPU",
        Backend::Agent => " per process",
        Backend::Perf => " per CPU, or as much as the limits on locked memory allow",
        Backend::Auto | Backend::Ptrace => "",
    };
    let bytes = if plan.backend == Backend::Kernel { rings_of_calls::size(plan) } else { plan.buffer };
    // The rings of its probes are all that it has.
    if !plan.is_bare() {
        out.push(format!("buffer: {} KiB{per_cpu}", bytes >> 10));
    }
    out.push(match plan.on_full {
        OnFull::Block => "full buffer: the target waits".into(),
        OnFull::Drop => "full buffer: events are dropped and counted".into(),
    });
    let of_agent = if plan.is_joined() { Backend::Agent.lost() } else { &[] };
    let of_entry = if plan.no_duration { WITHOUT_ENTRY } else { &[] };
    out.extend(
        plan.backend
            .lost()
            .iter()
            .chain(of_agent)
            .chain(of_entry)
            .map(|(what, detail)| format!("lost: {what}: {detail}")),
    );
    out
}

/// What the agent records, in words.
fn of_agent(plan: &Plan) -> &'static str {
    plan.functions.as_ref().map_or("functions", Functions::what)
}

/// The probes of the heap that are enabled.
fn heap_of(plan: &Plan, out: &mut Vec<String>) {
    for e in plan.enablings.iter().filter_map(Enabling::heap).filter(|_| !plan.has_consumer()) {
        out.push(format!("probe: {}: in front of the allocators of each program", e.probe.name()));
        let fields = e.probe.fields(e.stack).into_iter().map(|f| f.0).collect::<Vec<_>>();
        out.push(format!("  fields: {}", fields.join(", ")));
        if let Some(filter) = &e.filter {
            out.push(format!("  filter, by trapline: {}", filter.parts().join(" && ")));
        }
    }
}

/// The probes that the agent reaches in processes.
fn in_process_of(plan: &Plan, out: &mut Vec<String>) {
    for e in plan.in_process() {
        out.push(format!("probe: {}: by a jump in the process", e.name));
        let names: Vec<&str> = e.schema.args.iter().map(|a| a.name).collect();
        out.extend((!names.is_empty()).then(|| format!("  fields: {}", names.join(", "))));
        out.extend(e.filter_text().map(|text| format!("  filter, by trapline: {text}")));
        out.extend(e.missing.iter().map(|name| format!("  lost: {name}: no program can find it")));
    }
}

/// Each probe other than a call: how it is attached, the fields of its events, its filter, what is lost.
fn probes_of(plan: &Plan, out: &mut Vec<String>) {
    for e in plan.probes() {
        let Some(point) = &e.point else {
            out.push(format!("probe: {}: the session's own", e.name));
            continue;
        };
        let how = match plan.backend {
            Backend::Perf if !point.is_looked_at() => "a perf event of each thread, on each CPU".into(),
            _ => attach::how(point),
        };
        out.push(format!("probe: {}: {how}", e.name));
        let names: Vec<&str> = e.schema.args.iter().map(|a| a.name).collect();
        if !names.is_empty() {
            out.push(format!("  fields: {}", names.join(", ")));
        }
        if let Some(filter) = &e.filter {
            let parts: Vec<&str> = filter.parts().iter().map(|p| p.text.as_str()).collect();
            let place = if plan.backend == Backend::Perf { "by trapline" } else { "in its program" };
            out.push(format!("  filter, {place}: {}", parts.join(" && ")));
        }
        let predicates = "  predicates: in its program, before an event is made";
        out.extend(e.predicates.iter().filter(|_| e.collects.is_none()).map(|_| predicates.to_owned()));
        out.extend(e.missing.iter().map(|name| format!("  lost: {name}: no program can find it")));
        out.extend(attach::lost(point).map(|what| format!("  lost: {what}")));
        out.extend(e.danger.iter().map(|danger| format!("  danger, accepted by --force: {danger}")));
    }
    if plan.backend == Backend::Kernel && plan.probes().any(|e| e.point.is_some()) {
        let probes: Vec<_> = plan.probes().cloned().collect();
        let (_, size) = ring_set::sizes(&probes, plan.buffer);
        let whose = if ring_set::are_shared(&probes) { "shared by all" } else { "one for each" };
        out.push(format!("probes: rings of {} KiB per CPU, {whose}", size >> 10));
    }
}

fn perf_of(plan: &Plan, out: &mut Vec<String>) {
    out.push(format!(
        "user stacks: {} bytes of each are copied, and walked by tables made from .eh_frame; guessed by rbp where code has none",
        plan.copied_stack
    ));
    out.push("attach: perf events of each thread, which children inherit; nothing stops".into());
    out.push("rights: as an ordinary user, whatever capabilities trapline's file has: your own processes; programs with other rights are not seen".into());
}

fn ptrace_of(plan: &Plan, seen: &Calls, out: &mut Vec<String>) {
    if plan.records_calls() {
        out.push("calls: recorded by the process, whose code is patched where it makes them; the first at each place, and those that make threads and programs, stop".into());
    }
    if plan.filters() {
        out.push("seccomp: a filter lets all other calls run without a stop; if the tracer process is killed, the command is killed with it (--no-seccomp avoids both)".into());
        if sys::process::euid() != 0 {
            out.push("  the filter sets no_new_privs: setuid programs run without their privilege, as under any tracer of yours".into());
        }
    } else if matches!(plan.target, Target::Pids(_)) {
        out.push("seccomp: no filter, because a filter would outlive the attach: every call stops".into());
    } else if !plan.follow {
        out.push("seccomp: no filter, because untraced children would inherit it".into());
    } else if plan.named {
        out.push("seccomp: no filter, because the calls of a named session may change: every call stops".into());
    } else if seen.is_all() {
        out.push("seccomp: no filter, because every call is wanted".into());
    } else {
        out.push(
            "seccomp: no filter (--no-seccomp): every call stops, and the command survives the death of the tracer"
                .into(),
        );
    }
    if matches!(plan.target, Target::Pids(_)) {
        out.push(
            "attach: each thread is stopped once. A blocked call is restarted by the kernel and shown as one call"
                .into(),
        );
    }
}

/// How the kernel backend attaches, and which features this kernel lacks, found by trying.
fn kernel_of(plan: &Plan, out: &mut Vec<String>) {
    if let Target::All { left_out } = &plan.target {
        out.push("processes: all of the machine, except trapline's own and those that read its output".into());
        let named = |pid: &i32| {
            let comm = sys::proc::comm(*pid).unwrap_or_default();
            format!("{pid} ({})", String::from_utf8_lossy(&comm))
        };
        if !left_out.is_empty() {
            out.push(format!("left out: {}", left_out.iter().map(named).collect::<Vec<_>>().join(", ")));
        }
        out.push("  a call that began before the trace has no start; ids are those of trapline's pid namespace where it has them".into());
        if plan.is_bare() {
            out.push("tasks: not followed: the clauses need no more than the events of their probes".into());
        }
    }
    if plan.has_user_stacks() {
        out.push(match plan.unwind {
            Unwind::FramePointers => "user stacks: by frame pointers, as asked for: wrong where code has none".into(),
            _ => "user stacks: by tables made from .eh_frame, which a thread keeps right; guessed by rbp where code has none".into(),
        });
    }
    out.push(match plan.is_bare() {
        true => "attach: no programs but those of the probes".into(),
        false => format!("attach: {}", how_calls_are_seen(plan)),
    });
    out.push("  nothing stops, and nothing is left in the kernel when trapline ends".into());
    out.push(match sys::priority::may_raise() {
        true => "drain: the threads that empty the rings and write the trace have a real-time priority; nothing that they or the command start inherits it".into(),
        false => "drain: at the usual priority, because CAP_SYS_NICE is missing: a busy machine may make the rings overflow".into(),
    });
    if sys::process::ruid() != 0 {
        out.push(
            "rights: your own tasks, as far as ptrace would let you; a program with other rights, or that you may not read, is let go \
             where it begins; no address of the kernel"
                .into(),
        );
    }
    let found = sys::bpf::probe::features();
    if let Err(e) = found.task_iterator {
        out.push(format!("in flight: no notices of calls that run for long, because there is no task iterator: {e}"));
    }
    if found.thread_pidfd.is_err() && sys::proc::pid_namespace().is_some() {
        out.push(
            "attach: threads cannot be named (Linux 6.9, or in the initial pid namespace): -p sees the first thread of each process only"
                .into(),
        );
    }
}

/// At which tracepoints the kernel backend sees calls.
fn how_calls_are_seen(plan: &Plan) -> String {
    if plan.named && plan.no_duration {
        return "the ends of all calls pass a typed tracepoint, because the calls of a named session may change".into();
    }
    if plan.named {
        return "all calls pass typed tracepoints, because those of a named session may change".into();
    }
    match sys::tracefs::place() {
        Ok(place) if programs::has_single_calls(plan) && plan.no_duration => {
            format!(
                "each call through its own tracepoint at its end, so that other calls run no program (tracefs: {place})"
            )
        }
        _ if plan.no_duration => "the ends of all calls pass a typed tracepoint, their entries none".into(),
        Ok(place) if programs::has_single_calls(plan) => {
            format!("each call through its own tracepoints, so that other calls run no program (tracefs: {place})")
        }
        Ok(_) => "all calls pass typed tracepoints (up to four selected ones have tracepoints of their own)".into(),
        Err(e) => format!("all calls pass typed tracepoints, because those of single calls need tracefs: {e}"),
    }
}
