//! A profile as JSON: speedscope's file format, with members of trapline's own. docs/JSON.md describes it.
//!
//! Speedscope's format has frames, stacks, weights and a unit, which is all that a profile is, and a file of it can be opened as it is;
//! its reader ignores members that it does not know. Each group of stacks is a profile there.

use super::stacks::{Stacks, Tally};
use super::style::{Style, Terminal};
use super::{By, Labels, Unit, name};
use crate::write::json as w;
use std::collections::BTreeMap;

/// The version of trapline's members, `trapline.v`.
pub const VERSION: u32 = 2;

/// The name of the format.
const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// Draws a profile in speedscope's format.
pub fn draw(stacks: &Stacks, style: &Style, _: Option<Terminal>, out: &mut Vec<u8>) {
    style.lens.whole(stacks, |seen| write(seen, style.by, out));
}

/// Appends a profile, on one line. The groups of `by` are its profiles.
pub fn write(stacks: &Stacks, by: By, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"$schema\":");
    w::string(out, SCHEMA);
    w::key(out, "exporter");
    w::string(out, "trapline");
    w::key(out, "trapline");
    about(stacks, out);
    w::key(out, "shared");
    out.extend_from_slice(b"{\"frames\":[");
    (0..stacks.frame_count() as u32).for_each(|id| frame(stacks, id, out));
    out.extend_from_slice(b"]}");
    w::key(out, "profiles");
    out.push(b'[');
    for (name, group) in groups(stacks, by) {
        profile(stacks, by, &name, &group, out);
    }
    out.extend_from_slice(b"]}\n");
}

fn about(stacks: &Stacks, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"v\":");
    w::number(out, VERSION);
    w::key(out, "unit");
    w::string(out, stacks.unit().name());
    if let Unit::Samples { period } = stacks.unit() {
        w::key(out, "period_ns");
        if period > 0 { w::number(out, period) } else { w::null(out) }
    }
    for (key, tally) in [("total", stacks.total()), ("not_held", stacks.not_held())] {
        w::key(out, key);
        out.extend_from_slice(b"{\"samples\":");
        w::number(out, tally.samples);
        w::key(out, "weight");
        w::number(out, tally.weight);
        out.push(b'}');
    }
    let (first, last) = stacks.span().unzip();
    for (key, number) in [("lost", stacks.lost()), ("first_ns", first), ("last_ns", last)] {
        w::key(out, key);
        match number {
            Some(number) => w::number(out, number),
            None => w::null(out),
        }
    }
    out.push(b'}');
}

fn frame(stacks: &Stacks, id: u32, out: &mut Vec<u8>) {
    let f = stacks.frame_at(id);
    w::comma(out);
    out.extend_from_slice(b"{\"name\":");
    w::string(out, &name::function(&f));
    for (key, value) in [("file", f.file), ("module", f.module)] {
        if !value.is_empty() {
            w::key(out, key);
            w::string(out, value);
        }
    }
    if f.line > 0 {
        w::key(out, "line");
        w::number(out, f.line);
    }
    for (key, set) in [("inlined", f.inlined), ("guessed", f.guessed), ("kernel", f.kernel)] {
        if set {
            w::key(out, key);
            w::boolean(out, true);
        }
    }
    out.push(b'}');
}

/// The samples of a group, and whose they are.
struct Group<'a> {
    labels: Labels<'a>,
    /// By stack: frames, outermost last, and how much.
    samples: BTreeMap<super::StackId, Tally>,
}

fn groups(stacks: &Stacks, by: By) -> BTreeMap<String, Group<'_>> {
    let mut all: BTreeMap<String, Group<'_>> = BTreeMap::new();
    for e in stacks.entries() {
        let labels = stacks.labels_of(e.labels);
        let name = by.group(labels).unwrap_or_else(|| "all".to_owned());
        let group = all.entry(name).or_insert_with(|| Group { labels, samples: BTreeMap::new() });
        group.samples.entry(e.stack).or_default().join(e.tally);
    }
    all
}

fn profile(stacks: &Stacks, by: By, name: &str, group: &Group<'_>, out: &mut Vec<u8>) {
    let weights = || group.samples.values().map(|t| t.weight);
    w::comma(out);
    out.extend_from_slice(b"{\"type\":\"sampled\",\"name\":");
    w::string(out, name);
    w::key(out, "unit");
    w::string(
        out,
        match stacks.unit() {
            Unit::Nanoseconds => "nanoseconds",
            Unit::Bytes => "bytes",
            Unit::Samples { .. } | Unit::Events => "none",
        },
    );
    who(by, group.labels, out);
    w::key(out, "startValue");
    w::number(out, 0);
    w::key(out, "endValue");
    w::number(out, weights().fold(0u64, u64::saturating_add));
    w::key(out, "samples");
    out.push(b'[');
    for stack in group.samples.keys() {
        w::comma(out);
        list(stacks.frames_of(*stack).iter().rev().copied(), out);
    }
    out.push(b']');
    w::key(out, "weights");
    list(weights(), out);
    w::key(out, "counts");
    list(group.samples.values().map(|t| t.samples), out);
    out.push(b'}');
}

/// The labels that all samples of the group have in common.
fn who(by: By, labels: Labels<'_>, out: &mut Vec<u8>) {
    if by != By::Nothing {
        w::key(out, "comm");
        w::string(out, labels.comm);
    }
    for (key, id, known) in [("pid", labels.pid, By::Process), ("tid", labels.tid, By::Thread)] {
        if by == known || by == By::Thread {
            w::key(out, key);
            w::number(out, id);
        }
    }
}

fn list(numbers: impl Iterator<Item = impl itoa::Integer>, out: &mut Vec<u8>) {
    out.push(b'[');
    for n in numbers {
        w::comma(out);
        w::number(out, n);
    }
    out.push(b']');
}
