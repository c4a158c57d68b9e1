//! Views that only a whole trace has: latencies, and what is in it.

use crate::output::Output;
use crate::show::{Clocks, Shown};
use clap::ArgMatches;
use ctf::packet::HEADER;
use ctf::trace::Trace;
use engine::{Error, Result};
use views::latency::{By, Column, Latency, Order};
use views::totals::{self, Totals};

/// `--latency`: the table, where it is asked for.
pub fn latency(m: &ArgMatches, output: &Output) -> Result<Option<Shown>> {
    let Some(by) = m.get_one::<String>("latency") else { return Ok(None) };
    let by = By::parse(by)
        .ok_or_else(|| Error::usage(format!("--latency={by}"), "no such grouping", "call, thread, path or fd"))?;
    let mut view = Latency::new(by).histograms(m.get_flag("hist"));
    if !output.is_terminal() {
        view = view.width(usize::MAX);
    }
    if let Some(s) = m.get_one::<String>("summary-sort-by") {
        let all = "time, calls, errors, name, min, max, avg, p50, p90, p99 or nothing";
        view = view.order(Order::parse(s).ok_or_else(|| Error::usage(format!("-S {s}"), "no such order", all))?);
    }
    if let Some(list) = m.get_one::<String>("summary-columns") {
        let all = "calls, errors, total-time, min-time, avg-time, p50, p90, p99, max-time, name";
        let columns = Column::parse(list)
            .ok_or_else(|| Error::usage(format!("-U {list}"), "no such column, or one twice", all))?;
        view = view.columns(columns);
    }
    Ok(Some(Shown::table(Box::new(view))))
}

/// `--as stats`; `whole`: all events will be counted.
pub fn stats(trace: &Trace, clocks: Clocks, whole: bool) -> Shown {
    let env = |name: &str| trace.metadata.env_str(name).unwrap_or_default().to_string();
    let version = ["tracer_major", "tracer_minor", "tracer_patchlevel"]
        .map(|n| trace.metadata.env_int(n).unwrap_or(0).to_string())
        .join(".");
    let mut view = Totals::new(totals::Trace {
        command: env("command"),
        backend: env("backend"),
        host: env("hostname"),
        kernel: [env("sysname"), env("kernel_release"), env("architecture")].join(" "),
        tracer: format!("{} {version}", env("tracer_name")),
        span: trace.data.span(),
        realtime_offset: Some(clocks.realtime_offset),
        utc_offset: clocks.utc_offset,
        complete: trace.end.is_some(),
        torn: trace.data.torn.iter().map(|t| t.rest).sum(),
        overwritten: trace.counted("overwritten"),
        clamped: trace.counted("clamped"),
    });
    for s in &trace.data.streams {
        let full = s.packets.iter().filter(|p| p.info.content > HEADER as u64);
        let (first, last) = (full.clone().map(|p| p.info.begin).min(), full.map(|p| p.info.end).max());
        view.stream(totals::Stream {
            name: s.name.clone(),
            packets: s.packets.len() as u64,
            events: None,
            bytes: s.packets.iter().map(|p| p.info.size).sum(),
            discarded: s.packets.last().map_or(0, |p| p.info.discarded),
            span: first.zip(last),
        });
    }
    for line in trace.end.iter().filter(|_| whole).flat_map(|t| t.lines()) {
        if let Some((name, n)) = line.strip_prefix("taken ").and_then(|l| l.rsplit_once(' '))
            && let Ok(n) = n.parse()
        {
            view.taken(name, n);
        }
    }
    for line in trace.end.iter().flat_map(|t| t.lines()) {
        if let Some(enabling) = line.strip_prefix("enabling ").and_then(totals::Enabling::parse) {
            view.enabling(enabling);
        }
    }
    Shown::table(Box::new(view))
}
