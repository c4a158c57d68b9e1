//! Tables of spans: how many, how long, and what the slowest were made of.
//!
//! ```text
//! request: 3 spans of syscall:read .. syscall:write by fd, 1 begin without an end
//! total 6.30ms, average 2.10ms, p50 2.10ms, p99 4.10ms, max 4.10ms
//!
//! +0.001234 for 4.10ms: request fd 5, 17 (accepts) to 18 (works)
//!   17 (accepts): 1.00ms blocked, 2.00KiB in 2 blocks allocated
//!        1.10ms  2  futex
//!   18 (works): ...
//! ```

use super::span_parts::{self, Made};
use super::spans::{Part, Set, Span, named, printable, shown, words};
use super::words::line_of_loss;
use super::{Timeline, Writer};
use crate::calls::totals_json::lost;
use crate::table::{Align, Table};
use crate::units::{duration, seconds, size};
use crate::write::json as w;
use events::traces::own;
use serde_json::{Value, json};
use std::cmp::Reverse;

/// Calls and functions of a thread that the text has.
const MOST_PARTS: usize = 8;

/// How long spans took, ns.
struct Durations(Vec<u64>);

impl Durations {
    fn of(spans: &[Span]) -> Durations {
        let mut all: Vec<u64> = spans.iter().map(|span| span.end - span.start).collect();
        all.sort_unstable();
        Durations(all)
    }

    fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// A percentile of the durations.
    fn percentile(&self, percent: usize) -> Option<u64> {
        let nth = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(nth - 1).copied()
    }

    fn average(&self) -> Option<u64> {
        self.total().checked_div(self.0.len() as u64)
    }
}

/// The slowest, in this order.
fn slowest(set: &Set, most: usize) -> Vec<&Span> {
    let mut all: Vec<&Span> = set.spans.iter().collect();
    order::by_key(&mut all, |span| Reverse(span.end - span.start));
    all.truncate(most);
    all
}

/// Writes the tables.
pub const WRITER: Writer = Writer::whole(write);
/// Writes an object for each definition.
pub const JSON: Writer = Writer::whole(write_json);

/// Appends the tables.
fn write(timeline: &Timeline, out: &mut Vec<u8>) {
    for (n, set) in timeline.spans.sets.iter().enumerate() {
        if n > 0 {
            out.push(b'\n');
        }
        heading(set, out);
        let spans = slowest(set, timeline.spans.slowest);
        for (span, made) in spans.iter().zip(span_parts::of(timeline, &spans)) {
            let (at, took) = (seconds(span.start.saturating_sub(timeline.begin)), duration(span.end - span.start));
            let words = words(&set.definition, span, &timeline.processes);
            out.extend_from_slice(format!("\n+{at} for {took}: {words}\n").as_bytes());
            made.iter().for_each(|made| thread(timeline, made, out));
        }
    }
    if timeline.cut > 0 {
        let line = format!("\n{} events behind these were left out: --from and --to select some\n", timeline.cut);
        out.extend_from_slice(line.as_bytes());
    }
    line_of_loss(timeline, out);
}

fn heading(set: &Set, out: &mut Vec<u8>) {
    let some = |n: u64, one: &str, more: &str| match n {
        0 => String::new(),
        1 => format!(", 1 {one}"),
        n => format!(", {n} {more}"),
    };
    let count = if set.spans.len() == 1 { "1 span".into() } else { format!("{} spans", set.spans.len()) };
    // Where a probe is not met, nothing else needs to be said.
    if let Some((probe, _)) = set.definition.probes.iter().zip(set.seen).find(|(_, seen)| *seen == 0) {
        let line = format!(
            "{}: 0 spans: no event of {} is among those that are shown\n",
            set.definition.name,
            printable(probe)
        );
        return out.extend_from_slice(line.as_bytes());
    }
    let line = format!(
        "{}: {count} of {}{}{}{}\n",
        set.definition.name,
        printable(&set.definition.text()),
        some(set.unended, "begin without an end", "begins without an end"),
        some(set.unbegun, "end without a begin", "ends without a begin"),
        some(set.keyless, "event without the key", "events without the key"),
    );
    out.extend_from_slice(line.as_bytes());
    let durations = Durations::of(&set.spans);
    if let (Some(average), Some(half), Some(most), Some(max)) =
        (durations.average(), durations.percentile(50), durations.percentile(99), durations.percentile(100))
    {
        let [total, average, half, most, max] = [durations.total(), average, half, most, max].map(duration);
        let line = format!("total {total}, average {average}, p50 {half}, p99 {most}, max {max}\n");
        out.extend_from_slice(line.as_bytes());
    }
}

/// What a thread did in a span.
fn thread(timeline: &Timeline, made: &Made, out: &mut Vec<u8>) {
    let mut notes = Vec::new();
    notes.extend(made.blocked.map(|ns| format!("{} blocked", duration(ns))));
    notes.extend(made.ready.filter(|ns| *ns > 0).map(|ns| format!("{} ready", duration(ns))));
    notes.extend(made.allocated.map(|(blocks, bytes)| match blocks {
        0 => "nothing allocated".into(),
        1 => format!("{} in 1 block allocated", size(bytes)),
        n => format!("{} in {n} blocks allocated", size(bytes)),
    }));
    if made.parts.is_empty() {
        notes.push("no calls".into());
    }
    let notes = if notes.is_empty() { String::new() } else { format!(": {}", notes.join(", ")) };
    out.extend_from_slice(format!("  {}{notes}\n", named(made.thread, &timeline.processes)).as_bytes());
    let mut table = Table::list([("", Align::Left), ("", Align::Right), ("", Align::Right), ("", Align::Left)]);
    for part in made.parts.iter().take(MOST_PARTS) {
        let name = printable(&part.name);
        // Functions of C++ have their parameters.
        let name = if part.is_function && !name.ends_with(')') { name + "()" } else { name };
        table.row(vec!["  ".into(), duration(part.time), part.times.to_string(), name]);
    }
    if made.parts.len() > MOST_PARTS {
        let rest = made.parts.len() - MOST_PARTS;
        table.row(vec![String::new(), String::new(), String::new(), format!("and {rest} more")]);
    }
    table.write(out);
}

/// Appends an object for each definition (docs/JSON.md).
fn write_json(timeline: &Timeline, out: &mut Vec<u8>) {
    for set in &timeline.spans.sets {
        let durations = Durations::of(&set.spans);
        let spans = slowest(set, timeline.spans.slowest);
        let slowest: Vec<Value> = spans
            .iter()
            .zip(span_parts::of(timeline, &spans))
            .map(|(span, made)| object(timeline, span, &made))
            .collect();
        let [begin, end] = &set.definition.probes;
        let object = json!({
            "name": set.definition.name, "begin": begin, "end": end, "by": set.definition.keys,
            "spans": set.spans.len(), "without_end": set.unended, "without_begin": set.unbegun, "without_key": set.keyless,
            "total_ns": durations.total(), "avg_ns": durations.average(), "p50_ns": durations.percentile(50),
            "p99_ns": durations.percentile(99), "max_ns": durations.percentile(100),
            "left_out": timeline.cut, "slowest": slowest,
        });
        // As of all objects, what says what it is stands first.
        out.extend_from_slice(br#"{"v":1,"type":"spans","#);
        let begin = out.len();
        w::value(out, &object);
        out.remove(begin);
        out.push(b'\n');
    }
    lost(timeline.lost.unwrap_or(0), out);
}

fn object(timeline: &Timeline, span: &Span, made: &[Made]) -> Value {
    let key = match &span.key.part {
        Part::Number(n) => json!(n),
        text => json!(shown(text)),
    };
    let threads: Vec<Value> = made.iter().map(|made| of_thread(timeline, span, made)).collect();
    json!({ "begin_ns": span.start, "duration_ns": span.end - span.start, "key": key, "threads": threads })
}

fn of_thread(timeline: &Timeline, span: &Span, made: &Made) -> Value {
    let thread = timeline.processes.threads().get(made.thread);
    let process = thread.and_then(|t| timeline.processes.all().get(t.process));
    let parts = |functions: bool| -> Vec<Value> {
        let all = made.parts.iter().filter(|part| part.is_function == functions);
        all.map(|part| json!({ "name": part.name, "times": part.times, "time_ns": part.time })).collect()
    };
    json!({
        "tid": thread.map(|t| own(t.tid)), "pid": process.map(|p| own(p.pid)), "comm": thread.map(|t| &t.name),
        "begins": made.thread == span.threads[0], "ends": made.thread == span.threads[1],
        "calls": parts(false), "functions": parts(true), "blocked_ns": made.blocked, "ready_ns": made.ready,
        "blocks": made.allocated.map(|(blocks, _)| blocks), "allocated_bytes": made.allocated.map(|(_, bytes)| bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_of_spans() {
        let durations = |all: &[u64]| Durations(all.to_vec());
        let all = durations(&(1..=200).collect::<Vec<_>>());
        assert_eq!((all.percentile(50), all.percentile(99), all.percentile(100)), (Some(100), Some(198), Some(200)));
        let one = durations(&[7]);
        assert_eq!((one.percentile(50), one.average(), durations(&[]).percentile(99)), (Some(7), Some(7), None));
        assert_eq!(durations(&[]).average(), None);
    }
}
