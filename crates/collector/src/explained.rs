//! What the plans of files became, for `--explain`: which functions are traced, and patterns that nothing matches.

use super::module::Known;
use engine::request::functions::matches;
use engine::stats::planned::PlannedFile;
use lang::near::nearest;
use std::sync::Arc;
use symbols::demangle;

/// The most names that are compared with one that is not there.
const MOST_NAMES: usize = 20_000;

/// What became of the functions of a file that was read.
pub fn planned(known: &Known) -> PlannedFile {
    let mut refused: Vec<(String, Vec<String>)> = Vec::new();
    let mut refusals = known.plan.refusals.clone();
    order::by_key(&mut refusals, |(_, why)| *why);
    for same in refusals.chunk_by(|a, b| a.1 == b.1) {
        let name = |n: u32| {
            let linker = known.names.get(n as usize).cloned().unwrap_or_default();
            demangle::of(&linker).map_or(linker, |d| d.plain)
        };
        refused.push((same[0].1.to_string(), same.iter().map(|(n, _)| name(*n)).collect()));
    }
    order::by_key(&mut refused, |(_, names)| std::cmp::Reverse(names.len()));
    PlannedFile {
        path: known.path.clone(),
        functions: known.names.len(),
        patched: known.plan.sites.len() + known.plan.aliases.len(),
        refused,
        left_alone: known.runtime.map(|r| r.words()),
    }
}

/// A line for each pattern that no patched function of these files matches: `asked` has it as it was asked for, too.
pub fn unmatched(files: &[Arc<Known>], asked: &[(String, String)], libraries: bool) -> Vec<String> {
    let shown = |name: &String| demangle::of(name).map_or_else(|| name.clone(), |d| d.plain);
    let is = |pattern: &str, name: &String| matches(pattern, name) || matches(pattern, &shown(name));
    let line = |(label, pattern): &(String, String)| {
        let number = |file: &Known, n: u32| file.names.get(n as usize).filter(|name| is(pattern, name)).map(shown);
        let is_patched = |f: &Known| {
            let aliases = f.plan.aliases.iter().map(|a| a.0);
            f.plan.sites.iter().map(|s| s.number).chain(aliases).any(|n| number(f, n).is_some())
        };
        if files.iter().any(|f| f.runtime.is_some() || is_patched(f)) {
            return None;
        }
        let mut refused = files.iter().flat_map(|f| f.plan.refusals.iter().map(move |(n, why)| (number(f, *n), why)));
        if let Some((name, why)) = refused.find_map(|(name, why)| Some((name?, why))) {
            return Some(format!("{label}: {name} is not traced: {why}"));
        }
        let names = || files.iter().flat_map(|f| f.names.iter().chain(&f.others)).take(MOST_NAMES).map(shown);
        let all: Vec<String> = if pattern.contains(['*', '?']) { Vec::new() } else { names().collect() };
        let near = nearest(pattern, all.iter().map(String::as_str));
        let mut todo: Vec<String> = Vec::new();
        todo.extend((!near.is_empty()).then(|| format!("nearest: {}", near.join(", "))));
        todo.extend((!libraries).then(|| "--lib traces those of libraries".to_string()));
        todo.extend((libraries && near.is_empty()).then(|| "--explain=functions shows what is traced".to_string()));
        Some(format!("{label}: no function of the traced programs has this name ({})", todo.join("; ")))
    };
    asked.iter().filter_map(line).collect()
}
