//! What is in a trace, counted.

use super::screen::Clocks;
use ctf::end::StreamEnd;
use ctf::trace::Trace;
use engine::heap::classes as heap;
use engine::redact::MARK;
use engine::request::functions::Functions;
use events::StreamId;
use events::rules::What;
use events::stream::Scope;
use std::collections::{BTreeMap, HashMap};
use views::trace_stats::{self, TraceStats};

/// What a trace has: all that is known of it before its events are counted.
pub type Table = TraceStats;

/// The table of a trace; `whole`: all its events will be counted.
pub fn of_trace(trace: &Trace, clocks: Clocks, whole: bool) -> Table {
    let mut view = TraceStats::new(about(trace, clocks));
    streams(trace).into_iter().for_each(|s| view.stream(s));
    for (name, n) in trace.end.iter().filter(|_| whole).flat_map(|e| &e.taken) {
        view.taken(&trace.shown(What::Probe, name), *n);
    }
    for (name, n) in trace.end.iter().flat_map(|e| &e.dropped) {
        view.dropped(&trace.shown(What::Probe, name), *n);
    }
    enablings(trace).into_iter().for_each(|e| view.enabling(e));
    view
}

/// The table of several traces, each with its name and the offset of its clock; `whole`: all their events will be counted.
pub fn of_traces<'t>(traces: impl Iterator<Item = (&'t Trace, &'t str, i64)>, clocks: Clocks, whole: bool) -> Table {
    let mut all =
        trace_stats::Trace { ended: true, realtime_offset: Some(clocks.realtime_offset), ..Default::default() };
    all.utc_offset = clocks.utc_offset;
    let (mut rows, mut taken, mut dropped, mut enabled) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (trace, name, offset) in traces {
        let moved = |span: Option<(u64, u64)>| {
            let moved = |time: u64| time.saturating_add_signed(offset);
            span.map(|(from, to)| (moved(from), moved(to)))
        };
        let one = about(trace, clocks);
        all.join(trace_stats::Trace { span: moved(one.span), ..one }, name);
        let named = |s: trace_stats::Stream| trace_stats::Stream {
            name: format!("{name}/{}", s.name),
            span: moved(s.span),
            ..s
        };
        rows.extend(streams(trace).into_iter().map(named));
        let shown = |(probe, n): &(String, u64)| (trace.shown(What::Probe, probe), *n);
        taken.extend(trace.end.iter().filter(|_| whole).flat_map(|e| &e.taken).map(shown));
        dropped.extend(trace.end.iter().flat_map(|e| &e.dropped).map(shown));
        enabled.extend(enablings(trace));
    }
    let mut view = TraceStats::new(all);
    rows.into_iter().for_each(|row| view.stream(row));
    for (probe, n) in taken {
        view.taken(&probe, n);
    }
    for (probe, n) in dropped {
        view.dropped(&probe, n);
    }
    enabled.into_iter().for_each(|enabling| view.enabling(enabling));
    view
}

/// The trace as a whole.
fn about(trace: &Trace, clocks: Clocks) -> trace_stats::Trace {
    let env = |name: &str| trace.said(name);
    let version = ["tracer_major", "tracer_minor", "tracer_patchlevel"]
        .map(|n| trace.metadata.env_int(n).unwrap_or(0).to_string())
        .join(".");
    let missing = trace.missing.iter().map(|m| trace_stats::Missing {
        stream: m.stream.clone(),
        packets: m.packets,
        events: m.events,
    });
    let end = trace.end.as_ref();
    trace_stats::Trace {
        command: env("command"),
        backend: env("backend"),
        host: env("hostname"),
        kernel: [env("sysname"), env("kernel_release"), env("architecture")].join(" "),
        tracer: format!("{} {version}", env("tracer_name")),
        span: trace.data.span(),
        realtime_offset: Some(clocks.realtime_offset),
        utc_offset: clocks.utc_offset,
        ended: end.is_some(),
        live: trace.live,
        // What a running recording has not written yet is not missing.
        missing: missing.filter(|_| !trace.live).collect(),
        truncated: trace.data.truncated.iter().filter(|_| !trace.live).map(|t| t.rest).sum(),
        unwritten: end.map_or(0, |e| e.unwritten()),
        overwritten: end.and_then(|e| e.overwritten),
        clamped: end.and_then(|e| e.clamped),
    }
}

/// What is in each stream; and those of which nothing is there, though the recorder has counted something.
fn streams(trace: &Trace) -> Vec<trace_stats::Stream> {
    let counted: HashMap<StreamId, &StreamEnd> = trace.end.iter().flat_map(|e| &e.streams).map(|s| (s.id, s)).collect();
    let said = |id: StreamId| counted.get(&id).copied();
    let mut all: Vec<trace_stats::Stream> = Vec::new();
    for s in &trace.data.streams {
        let full = s.packets.iter().filter(|p| trace.data.has_events(&p.info));
        let (first, last) = (full.clone().map(|p| p.info.begin).min(), full.map(|p| p.info.end).max());
        let (packets, said) = (s.packets.len() as u64, said(s.id));
        all.push(trace_stats::Stream {
            name: s.name.clone(),
            packets,
            events: said.filter(|e| e.packets == packets).map(|e| e.events),
            bytes: s.packets.iter().map(|p| p.info.size).sum(),
            discarded: said.map_or_else(|| trace.data.discarded_of(s.id), |e| e.discarded),
            span: first.zip(last),
        });
    }
    let none = |id: StreamId| trace.data.streams.binary_search_by_key(&id, |s| s.id).is_err();
    let gone = trace.end.iter().flat_map(|e| &e.streams).filter(|s| none(s.id));
    all.extend(gone.map(|s| trace_stats::Stream {
        name: s.name.clone(),
        discarded: s.discarded,
        ..trace_stats::Stream::default()
    }));
    all
}

/// What the programs have counted of each enabling, and the recorder in its streams.
fn enablings(trace: &Trace) -> Vec<trace_stats::Enabling> {
    let Some(end) = &trace.end else { return Vec::new() };
    let mut kept: BTreeMap<u16, u64> = BTreeMap::new();
    // Those of the kernel's enablings. All functions have the streams of their threads, and all of the heap those of their processes.
    for s in end.streams.iter().filter(|s| matches!(s.id.scope(), Scope::Cpu(_))) {
        let sum = kept.entry(s.id.enabling()).or_default();
        *sum = sum.saturating_add(s.taken.saturating_sub(s.unwritten));
    }
    let lines = end.more.iter().filter_map(|l| l.strip_prefix("enabling ").and_then(trace_stats::Enabling::parse));
    let counted = |nth: u16| (!kept.is_empty()).then(|| kept.get(&nth).copied().unwrap_or(0));
    let is_agents = |name: &str| [Functions::PROVIDER, heap::PROVIDER].iter().any(|p| name.starts_with(p));
    let mut nth = 0;
    let mut kept = |e: &trace_stats::Enabling| {
        nth += u16::from(!is_agents(&e.name));
        if is_agents(&e.name) { None } else { counted(nth) }
    };
    // A filter has texts of its own.
    let shown = |name: String| match (&trace.rules, name.split_once(" /")) {
        (Some(_), Some((probe, _))) => format!("{} /{MARK}/", trace.shown(What::Probe, probe)),
        _ => trace.shown(What::Probe, &name),
    };
    lines.map(|e| trace_stats::Enabling { kept: kept(&e), name: shown(e.name), ..e }).collect()
}
