//! `trapline slab print --by stack`: how many objects each kernel stack has allocated, those with the most first.

use super::{View, age, array, escaped, headline};
use engine::slab::symbols::Symbols;
use engine::slab::{Object, Snapshot};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// Objects of one stack.
pub struct Group<'a> {
    hash: u64,
    count: u64,
    bytes: u64,
    oldest: &'a Object,
    /// How many of each thread's name.
    comms: BTreeMap<&'a [u8], u64>,
}

/// Names of threads that are shown with a stack.
const NAMES: usize = 3;

/// The objects, which come oldest first, by stack.
pub fn groups(objects: &[Object]) -> Vec<Group<'_>> {
    let mut found: HashMap<&[u64], Group<'_>> = HashMap::new();
    for o in objects {
        let new = || Group { hash: o.stack_hash(), count: 0, bytes: 0, oldest: o, comms: BTreeMap::new() };
        let group = found.entry(o.frames()).or_insert_with(new);
        group.count += 1;
        group.bytes += o.size;
        *group.comms.entry(o.comm()).or_default() += 1;
    }
    let mut all: Vec<Group<'_>> = found.into_values().collect();
    order::by_key(&mut all, |g| (std::cmp::Reverse((g.count, g.bytes)), g.oldest.time, g.hash));
    all
}

/// What is remembered of them: objects and bytes of each stack.
pub fn counts(groups: &[Group<'_>]) -> HashMap<u64, (u64, u64)> {
    groups.iter().map(|g| (g.hash, (g.count, g.bytes))).collect()
}

type Before<'a> = Option<&'a HashMap<u64, (u64, u64)>>;

/// The text, or the JSON. `before`: the counts that were shown last.
pub fn show(
    view: &View<'_>,
    taken: &Snapshot,
    groups: Vec<Group<'_>>,
    before: Before<'_>,
    symbols: &mut Symbols,
) -> Vec<u8> {
    let shown = groups.iter().take(view.top);
    if view.json {
        return array(shown.map(|g| item(taken, g, before, symbols)).collect());
    }
    let mut out = headline(view, taken, groups.len(), "stacks");
    shown.for_each(|g| out.push_str(&lines(taken, g, before, symbols)));
    out.into_bytes()
}

/// How many objects more than when they were shown last; none: they were not.
fn growth(g: &Group<'_>, before: Before<'_>) -> Option<i64> {
    before.map(|b| g.count as i64 - b.get(&g.hash).map_or(0, |(count, _)| *count as i64))
}

fn names(g: &Group<'_>) -> Vec<String> {
    let mut all: Vec<_> = g.comms.iter().collect();
    order::by_key(&mut all, |(_, n)| std::cmp::Reverse(**n));
    all.iter().map(|(name, _)| String::from_utf8_lossy(name).into_owned()).collect()
}

fn lines(taken: &Snapshot, g: &Group<'_>, before: Before<'_>, symbols: &mut Symbols) -> String {
    let growth = growth(g, before).map(|n| format!("  {n:+} since the last table")).unwrap_or_default();
    let all = names(g);
    let more = if all.len() > NAMES { ", …" } else { "" };
    let names = escaped(all[..all.len().min(NAMES)].join(", ").as_bytes());
    let (objects, oldest) =
        (if g.count == 1 { "object" } else { "objects" }, views::units::duration(age(taken, g.oldest)));
    let mut out = format!("{} {objects}  {} bytes  oldest {oldest}{growth}  {names}{more}\n", g.count, g.bytes);
    symbols.stack(g.oldest.frames()).iter().for_each(|frame| out.push_str(&format!("    {frame}\n")));
    out
}

fn item(taken: &Snapshot, g: &Group<'_>, before: Before<'_>, symbols: &mut Symbols) -> Value {
    json!({
        "count": g.count,
        "bytes": g.bytes,
        "oldest_ns": age(taken, g.oldest),
        "growth": growth(g, before),
        "comms": names(g),
        "stack": symbols.stack(g.oldest.frames()),
    })
}
