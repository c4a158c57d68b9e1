//! Lines of events, and the table of calls after them.

use super::screen::{Clocks, options};
use super::{Kind, Make, unknown};
use crate::ask::{Ask, Tables};
use crate::output::Output;
use crate::show::Shown;
use engine::{Error, Result};
use views::View;
use views::reorder::Reorder;

/// What the command line asks for: lines of that kind, a table, or both.
pub fn shown(ask: &Ask, output: &Output, kind: &Kind, clocks: Clocks) -> Result<Shown> {
    let opts = options(ask, output, clocks)?;
    let order = ask.format.sort.as_ref().is_some_and(|s| s == "start").then(Reorder::default);
    if order.is_some() && opts.relative.is_some() {
        return Err(Error::usage(
            "--sort start",
            "-r shows the time since the line before",
            "use -ttt, or leave -r out",
        ));
    }
    let summary = ask.table.summary_only || ask.table.summary;
    // Made in any case, so that a bad -S or -U is never overlooked.
    let table = Some(summary_view(&ask.table)?).filter(|_| summary);
    let lines: Option<Box<dyn View>> = match kind.make {
        _ if ask.table.summary_only => None,
        Make::Table(make) if !summary => return Ok(Shown::table(make())),
        Make::Lines(make) => Some(make(opts)),
        _ => return Err(unknown(kind.name, &super::names(&[super::Of::Events]))),
    };
    Ok(Shown::new(lines, table, order))
}

fn summary_view(table: &Tables) -> Result<Box<dyn View>> {
    use views::summary::{Column, Sort, Summary};
    let sort = match &table.sort_by {
        None => Sort::Time,
        Some(s) => Sort::parse(s).ok_or_else(|| {
            Error::usage(format!("-S {s}"), "no such order", "time, calls, errors, name, min, max, avg or nothing")
        })?,
    };
    let summary = Summary::new(sort);
    Ok(Box::new(match &table.columns {
        None => summary,
        Some(list) => summary.columns(Column::parse(list).ok_or_else(|| {
            let all = "time-percent, total-time, min-time, max-time, avg-time, calls, errors, name";
            Error::usage(format!("-U {list}"), "no such column, or one twice", all)
        })?),
    }))
}
