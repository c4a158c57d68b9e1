//! The numbers of a trace as text.
//!
//! Invariant: printable ASCII, whatever the names in the trace are. Times are seconds since the first event.

use super::{Count, TraceStats};
use crate::escape;
use crate::table::{Align, Table};
use crate::units::seconds;
use crate::write::number;

/// Appends everything.
pub fn write(t: &TraceStats, out: &mut Vec<u8>) {
    let probes = t.probes();
    let mut total = Count::default();
    probes.iter().for_each(|(_, c)| total.join(c));
    let missing = probes.iter().filter_map(|(_, c)| c.missing()).reduce(u64::saturating_add);
    total.dropped = probes.iter().filter_map(|(_, c)| c.dropped).reduce(u64::saturating_add);
    total.taken = missing.map(|n| n.saturating_add(total.events));
    whole(t, out);
    let start = t.span().map_or(0, |s| s.0);
    if !t.streams.is_empty() {
        out.push(b'\n');
        streams(t, start, out);
    }
    if !probes.is_empty() {
        out.push(b'\n');
        table(&probes, &total, start, out);
    }
    if !t.enablings.is_empty() {
        out.push(b'\n');
        enablings(t, out);
    }
}

fn plain(text: &str) -> String {
    let mut out = Vec::new();
    escape::name_in_brackets(text.as_bytes(), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// The trace as a whole, a line for each fact.
fn whole(t: &TraceStats, out: &mut Vec<u8>) {
    let trace = &t.trace;
    let mut line = |name: &str, value: String| {
        if !value.is_empty() {
            out.extend_from_slice(format!("{name:<12}{value}\n").as_bytes());
        }
    };
    for (name, value) in [
        ("command", &trace.command),
        ("backend", &trace.backend),
        ("host", &trace.host),
        ("kernel", &trace.kernel),
        ("tracer", &trace.tracer),
    ] {
        line(name, plain(value));
    }
    if let Some((first, last)) = t.span() {
        line("began", trace.realtime_offset.map(|o| date(first, o, trace.utc_offset)).unwrap_or_default());
        line("duration", format!("{} s", seconds(last.saturating_sub(first))));
    }
    let at_end = |n: Option<u64>| match n {
        Some(n) => n.to_string(),
        None if trace.ended => String::new(),
        None => "not known".to_owned(),
    };
    line("end", ending(t).to_owned());
    line("missing", missing(t));
    if trace.truncated > 0 {
        line("torn", format!("{} bytes after the last whole packets", trace.truncated));
    }
    let (events, own) = t.events();
    line("events", events.to_string());
    line("bookkeeping", own.to_string());
    line("discarded", t.discarded().to_string());
    if trace.unwritten > 0 {
        line("unwritten", format!("{} of those discarded", trace.unwritten));
    }
    line("overwritten", at_end(trace.overwritten));
    line("clamped", at_end(trace.clamped));
}

fn ending(t: &TraceStats) -> &'static str {
    match (t.trace.live, t.trace.ended) {
        (true, _) => "not yet: the recording is still running",
        (false, false) => "missing: the recording was cut off",
        (false, true) if t.is_whole() => "complete",
        (false, true) => "incomplete: not all that was recorded is there",
    }
}

/// What was written and is not there, by stream; empty for nothing.
fn missing(t: &TraceStats) -> String {
    const SHOWN: usize = 4;
    let of = |m: &super::Missing| {
        let events = m.events.map(|n| format!(" with {n} events")).unwrap_or_default();
        format!("{} packets of {}{events}", m.packets, plain(&m.stream))
    };
    let all = &t.trace.missing;
    let mut parts: Vec<String> = all.iter().take(SHOWN).map(of).collect();
    if all.len() > SHOWN {
        parts.push(format!("more of {} other streams", all.len() - SHOWN));
    }
    match t.missing_events() {
        Some(n) if n > 0 && all.is_empty() => format!("{n} events"),
        _ => parts.join(", "),
    }
}

/// The moment `ns` of the trace's clock in the calendar; empty where it has no date.
fn date(ns: u64, offset: i64, utc_offset: i64) -> String {
    let since_epoch = i128::from(ns) + i128::from(offset);
    let (secs, nanos) = (since_epoch.div_euclid(1_000_000_000), since_epoch.rem_euclid(1_000_000_000));
    let mut out = Vec::new();
    number::date(i64::try_from(secs).unwrap_or(0), nanos as u64, utc_offset, &mut out);
    String::from_utf8_lossy(&out).trim_matches([' ', '/', '*']).to_owned()
}

/// Seconds from `start` to both ends of a span.
fn ends(span: Option<(u64, u64)>, start: u64) -> [String; 2] {
    match span {
        None => ["-".to_owned(), "-".to_owned()],
        Some((first, last)) => [first, last].map(|t| seconds(t.saturating_sub(start))),
    }
}

fn enablings(t: &TraceStats, out: &mut Vec<u8>) {
    let numbers = ["seen", "recorded", "dropped", "filtered", "missed"].map(|h| (h, Align::Right));
    let mut table = Table::new(numbers.into_iter().chain([("enabling", Align::Left)]));
    for e in &t.enablings {
        let mut cells: Vec<String> =
            [e.seen, e.recorded(), e.dropped, e.filtered, e.missed].iter().map(u64::to_string).collect();
        cells.push(plain(&e.name));
        table.row(cells);
    }
    table.write(out);
}

fn streams(t: &TraceStats, start: u64, out: &mut Vec<u8>) {
    let numbers = ["packets", "events", "bytes", "discarded", "first", "last"].map(|h| (h, Align::Right));
    let mut table = Table::new([("stream", Align::Left)].into_iter().chain(numbers));
    for s in &t.streams {
        let events = s.events.map_or_else(|| "-".to_owned(), |n| n.to_string());
        let [first, last] = ends(s.span, start);
        let (packets, bytes) = (s.packets.to_string(), s.bytes.to_string());
        table.row(vec![plain(&s.name), packets, events, bytes, s.discarded.to_string(), first, last]);
    }
    table.write(out);
}

fn table(probes: &[(String, Count)], total: &Count, start: u64, out: &mut Vec<u8>) {
    let missing = total.missing().is_some();
    let dropped = total.dropped.is_some();
    let mut head = vec!["events", "bytes", "% bytes", "avg"];
    head.extend(missing.then_some("missing"));
    head.extend(dropped.then_some("dropped"));
    head.extend(["first", "last"]);
    let numbers = head.into_iter().map(|h| (h, Align::Right));
    let mut table = Table::new(numbers.chain([("probe", Align::Left)]));
    let cells = |name: &str, c: &Count| {
        let share = 100.0 * c.bytes as f64 / total.bytes.max(1) as f64;
        let avg = c.bytes.checked_div(c.events).map_or_else(|| "-".to_owned(), |n| n.to_string());
        let mut cells = vec![c.events.to_string(), c.bytes.to_string(), format!("{share:.2}"), avg];
        let known = |n: Option<u64>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
        cells.extend(missing.then(|| known(c.missing())));
        cells.extend(dropped.then(|| known(c.dropped)));
        cells.extend(ends(c.span, start));
        cells.push(plain(name));
        cells
    };
    probes.iter().for_each(|(name, c)| table.row(cells(name, c)));
    table.total(cells("total", total));
    table.write(out);
}
