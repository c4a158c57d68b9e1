//! `--no-duration`, and the traces that it has made: what needs the start of calls is refused.

use crate::ask::Ask;
use ctf::format::NO_DURATION;
use ctf::trace::Trace;
use engine::pipeline::selection::Selection;
use engine::plan::{Backend, OnFull, Plan};
use engine::rights;
use engine::{Error, Result};
use lang::Needs;

/// An option that needs the start of calls: as it is written, whether it is given, and what it shows.
type Needing = (&'static str, fn(&Ask) -> bool, &'static str);

/// Options that need the start of calls.
const OPTIONS: &[Needing] = &[
    ("-T", |ask| ask.format.syscall_times.is_some(), "the time spent in each call"),
    ("--latency", |ask| ask.table.latency.is_some(), "the time spent in calls"),
    ("--hist", |ask| ask.table.hist, "the time spent in calls"),
    ("--syscalls", |ask| ask.calls.syscalls, "when calls begin"),
];
/// Columns and orders of the table of calls (`-U`, `-S`) that need none.
const COLUMNS: [&str; 3] = ["calls", "errors", "name"];
const ORDERS: [&str; 4] = ["calls", "errors", "name", "nothing"];

/// The first option that needs the start of calls, what it shows, and what to do.
fn option(ask: &Ask) -> Option<(String, &'static str, &'static str)> {
    if let Some((option, _, what)) = OPTIONS.iter().find(|(_, given, _)| given(ask)) {
        return Some(((*option).into(), what, "leave it out"));
    }
    if ask.format.sort.as_deref() == Some("start") {
        return Some(("--sort start".into(), "when calls begin", "leave it out: the order is that of their ends"));
    }
    if ask.table.by.as_deref() == Some("dur") {
        return Some(("--by dur".into(), "the time spent in calls", "leave it out, or use --by retval"));
    }
    let table = &ask.table;
    if !table.summary_only && !table.summary {
        return None;
    }
    let all_of = |list: Option<&str>, known: &[&str]| list.is_some_and(|l| l.split(',').all(|c| known.contains(&c)));
    if all_of(table.columns.as_deref(), &COLUMNS) && all_of(table.sort_by.as_deref(), &ORDERS) {
        return None;
    }
    let option = if table.summary_only { "-c" } else { "-C" };
    Some((option.into(), "the time spent in calls", "add -U calls,errors,name -S calls"))
}

/// What of the entry of a call a filter names.
pub fn of_entry(needs: &Needs) -> Option<&'static str> {
    if needs.start { Some("dur") } else { needs.cpu.then_some("cpu, the processor at entry") }
}

/// Takes `--no-duration` into the plan.
///
/// # Errors
/// Something that is asked for needs what happens at the entry of calls, or another backend than the kernel's.
pub fn apply(ask: &Ask, plan: &mut Plan, selection: &Selection) -> Result<()> {
    const FLAG: &str = "--no-duration";
    if !ask.tracing.no_duration {
        return Ok(());
    }
    if plan.functions.is_some() {
        let todo = "record the functions without it, or the calls beside them";
        return Err(Error::usage(FLAG, "functions have an entry and an exit", todo));
    }
    if plan.calls().is_empty() && !plan.named {
        return Err(Error::usage(FLAG, "no system calls are traced", "leave it out"));
    }
    if plan.backend != Backend::Kernel {
        let why = "only the kernel backend can trace the ends of calls alone";
        let asked = ask.tracing.backend.as_deref().filter(|b| !matches!(*b, "auto" | "kernel"));
        return Err(match (asked, plan.on_full, rights::kernel_backend_is_usable()) {
            (Some(other), ..) => Error::usage(format!("{FLAG} --backend {other}"), why, "leave out one of them"),
            (None, _, Err(todo)) => Error::failed(FLAG, why, todo),
            (None, OnFull::Block, _) if ask.tracing.on_full.is_some() => {
                Error::usage(format!("{FLAG} --on-full block"), why, "leave out one of them")
            }
            _ => Error::failed(FLAG, why, "add --backend kernel"),
        });
    }
    if let Some((option, what, _)) = option(ask) {
        return Err(Error::usage(option, format!("{FLAG} does not trace {what}"), "leave out one of them"));
    }
    let of_where = selection.expression.iter().flat_map(|e| e.needs());
    let of_calls = plan.call_enablings().flat_map(|e| e.typed.values().map(lang::Filter::needs));
    if let Some(what) = of_where.chain(of_calls).find_map(of_entry) {
        return Err(Error::usage(FLAG, format!("a filter names {what}"), "leave out one of them"));
    }
    plan.no_duration = true;
    Ok(())
}

/// Refuses what a trace without durations cannot show.
pub fn of_trace(ask: &Ask, trace: &Trace, selection: &Selection) -> Result<()> {
    if trace.metadata.env_int(NO_DURATION) != Some(1) {
        return Ok(());
    }
    let refused = |what: String, of: &str, todo: &str| {
        let dir = trace.dir.display();
        Err(Error::usage(what, format!("{dir} was recorded with --no-duration, without {of}"), todo))
    };
    if let Some((option, what, todo)) = option(ask) {
        return refused(option, what, todo);
    }
    match selection.expression.iter().flat_map(|e| e.needs()).find_map(of_entry) {
        Some(what) => refused("--where".into(), what, "leave it out of the filter"),
        None => Ok(()),
    }
}
