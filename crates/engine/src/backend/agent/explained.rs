//! What became of the functions of a file: `--explain`.

use super::module::Known;
use crate::functions::matches;
use crate::near::nearest;
use std::sync::Arc;
use symbols::demangle;

/// The most names that are compared with one that is not there.
const MOST_NAMES: usize = 20_000;

/// A file whose functions were to be traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFile {
    /// Its path in the process that had it first.
    pub path: String,
    /// Functions that were asked for, by all their names.
    pub functions: usize,
    /// Of these, names of functions that get a patch.
    pub patched: usize,
    /// Why the others get none, the most frequent reason first, and the demangled names of the functions.
    pub refused: Vec<(String, Vec<String>)>,
    /// Why nothing of the file is patched, if so.
    pub left_alone: Option<String>,
}

impl PlannedFile {
    /// That of a file that was read.
    pub fn of(known: &Known) -> PlannedFile {
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

    /// In lines, with so many names of functions for each reason.
    pub fn lines(&self, names: usize) -> Vec<String> {
        let PlannedFile { path, functions, patched, .. } = self;
        if let Some(why) = &self.left_alone {
            return vec![format!("functions: {path}: left alone: {why}")];
        }
        let mut lines = vec![format!("functions: {path}: {patched} of {functions} can be traced")];
        for (why, all) in &self.refused {
            let shown = &all[..all.len().min(names)];
            let more = if all.len() > shown.len() { ", …" } else { "" };
            lines.push(format!("  not traced: {}: {why}: {}{more}", all.len(), shown.join(", ")));
        }
        lines
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
        todo.extend((!libraries).then(|| "graph --lib traces those of libraries".to_string()));
        todo.extend((libraries && near.is_empty()).then(|| "--explain=functions shows what is traced".to_string()));
        Some(format!("{label}: no function of the traced programs has this name ({})", todo.join("; ")))
    };
    asked.iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_each_reason_with_examples() {
        let names = |n: usize| (0..n).map(|i| format!("f{i}")).collect::<Vec<_>>();
        let file = PlannedFile {
            path: "/x".into(),
            functions: 10,
            patched: 5,
            refused: vec![("a loop".into(), names(4)), ("cold".into(), names(1))],
            left_alone: None,
        };
        let want = [
            "functions: /x: 5 of 10 can be traced",
            "  not traced: 4: a loop: f0, f1, f2, …",
            "  not traced: 1: cold: f0",
        ];
        assert_eq!(file.lines(3), want);
        assert!(file.lines(usize::MAX)[1].ends_with("f3"));
        let alone = PlannedFile { left_alone: Some("a JIT".into()), ..file };
        assert_eq!(alone.lines(3), ["functions: /x: left alone: a JIT"]);
    }
}
