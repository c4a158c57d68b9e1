//! Tables in place of lines: latencies, and events by stack.

use crate::ask::Ask;
use crate::output::Output;
use crate::show::Shown;
use engine::{Error, Result};
use views::as_json::AsJson;
use views::latency::{By, Column, Latency, Order};
use views::stack_table::StackTable;

/// `--latency`: the table, where it is asked for.
pub fn latency(ask: &Ask, kind: &str, output: &Output) -> Result<Option<Shown>> {
    let Some(by) = ask.table.latency.as_ref() else { return Ok(None) };
    if !matches!(kind, "text" | "json") {
        return Err(Error::usage(
            format!("--latency --as {kind}"),
            "not available for a table of latencies",
            "text or json",
        ));
    }
    let by = By::parse(by)
        .ok_or_else(|| Error::usage(format!("--latency={by}"), "no such grouping", "call, thread, path or fd"))?;
    let mut view = Latency::new(by).histograms(ask.table.hist);
    if !output.is_terminal() {
        view = view.width(usize::MAX);
    }
    if let Some(s) = ask.table.sort_by.as_ref() {
        let all = "time, calls, errors, name, min, max, avg, p50, p90, p99 or nothing";
        view = view.order(Order::parse(s).ok_or_else(|| Error::usage(format!("-S {s}"), "no such order", all))?);
    }
    if let Some(list) = ask.table.columns.as_ref() {
        let all = "calls, errors, total-time, min-time, avg-time, p50, p90, p99, max-time, name";
        let columns = Column::parse(list)
            .ok_or_else(|| Error::usage(format!("-U {list}"), "no such column, or one twice", all))?;
        view = view.columns(columns);
    }
    Ok(Some(if kind == "json" {
        Shown::table(Box::new(AsJson { table: view, write: Latency::write_json }))
    } else {
        Shown::table(Box::new(view))
    }))
}

/// `--by stack`: the table, where it is asked for.
pub fn by_stack(ask: &Ask, kind: &str) -> Result<Option<Shown>> {
    let Some(by) = ask.table.by.as_ref().filter(|by| !super::is_of_traces(by)) else { return Ok(None) };
    if ask.table.latency.is_some() {
        return Err(Error::usage(
            format!("--by {by} --latency"),
            "a table of stacks has no latencies",
            "leave out one of them",
        ));
    }
    if kind != "text" {
        return Err(Error::usage(format!("--by --as {kind}"), "not available for a table of stacks", "text"));
    }
    let field = match by.split_once('=') {
        None if by == "stack" => None,
        Some(("stack", field)) if events::stacks::FIELDS.contains(&field) => Some(field),
        _ => {
            return Err(Error::usage(
                format!("--by {by}"),
                "no such table",
                "stack, stack=ustack, stack=kstack, host or trace",
            ));
        }
    };
    Ok(Some(Shown::table(Box::new(StackTable::new(field)))))
}
