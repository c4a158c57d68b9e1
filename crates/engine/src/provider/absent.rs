//! Why a file has no function of a name: inlined, imported, stripped away; or which names come nearest.

use super::elf_file::ElfFile;
use super::names;
use super::{Refusal, names::Named};
use crate::provider::quoting::quote;
use crate::target::modules::{self, Module};
use lang::near::nearest;
use lang::pattern::is_pattern;
use std::fs::File;
use std::path::Path;
use symbols::demangle;
use symbols::dwarf::{Debug, Inlined};
use symbols::finder::split_files;

/// The refusal for a function that a file does not have; `provider` is the provider of the probe.
pub fn refusal(provider: &str, file: &ElfFile, name: &str) -> Refusal {
    let prefix = format!("{provider}:{}", quote(&file.path.to_string_lossy()));
    if !is_pattern(name) {
        if let Some(symbol) = imported(file, name) {
            return from_elsewhere(provider, file, &symbol);
        }
        if let Some(why) = inlined(file, name) {
            return Refusal::Wrong(
                format!("no such probe: {why}"),
                "set it on the function that it is inlined into".into(),
            );
        }
    }
    let near = near(file, name);
    if file.elf.is_stripped() {
        let n = file.elf.functions().len();
        let why = format!("no such probe: the file is stripped, and only its {n} exported functions have names");
        let names: Vec<String> = near.iter().map(|n| format!("{prefix}:{}", quote(n))).collect();
        let todo = if names.is_empty() {
            "use a file with symbols".into()
        } else {
            format!("did you mean {}?", names.join(", "))
        };
        return Refusal::Wrong(why, todo);
    }
    Refusal::Nothing(near.iter().map(|n| format!("{prefix}:{}", quote(n))).collect())
}

/// The names that come nearest.
fn near(file: &ElfFile, name: &str) -> Vec<String> {
    // Much longer names are unlikely to be meant, and take long to compare.
    let all: Vec<String> = names::all(&file.elf).filter(|n| n.len() <= 2 * name.len() + 8).collect();
    let mut near: Vec<String> = nearest(name, all.iter().map(String::as_str)).into_iter().map(str::to_string).collect();
    near.dedup();
    near
}

/// The symbol that a file imports under a name.
fn imported(file: &ElfFile, name: &str) -> Option<String> {
    let is =
        |symbol: &&String| *symbol == name || demangle::of(symbol).is_some_and(|d| d.plain == name || d.full == name);
    file.elf.imports().iter().find(is).cloned()
}

/// The library that has a symbol that a file imports.
fn from_elsewhere(provider: &str, file: &ElfFile, symbol: &str) -> Refusal {
    match modules::of_file(&file.path).into_iter().skip(1).find(|m| !m.elf.function(symbol).is_empty()) {
        Some(m) => {
            let probe = probe_in(provider, &m, symbol);
            Refusal::Wrong(format!("no such probe: it is imported from {}", m.path.display()), probe)
        }
        None => Refusal::Wrong(
            "no such probe: it is imported from a library that is not found".into(),
            "name the library".into(),
        ),
    }
}

/// The probe of a function in a library, as it would be named.
fn probe_in(provider: &str, module: &Module, symbol: &str) -> String {
    let name = names::find(&module.elf, symbol).first().map_or(symbol.to_string(), |Named { name, .. }| name.clone());
    format!("{provider}:{}:{}", quote(&module.path.to_string_lossy()), quote(&name))
}

/// Where a function was inlined.
fn inlined(file: &ElfFile, name: &str) -> Option<String> {
    let raw: &File = &file.file;
    let places = Debug::open(&file.elf, raw)?.with_split_files(split_files(&file.path)).inlined(name);
    let place = |p: &Inlined| match (&p.file, p.line) {
        (Some(file), line @ 1..) => {
            let file = Path::new(file).file_name().map_or_else(|| file.clone(), |f| f.to_string_lossy().into_owned());
            format!("{} ({file}:{line})", p.into)
        }
        _ => p.into.clone(),
    };
    let text = places.iter().map(place).collect::<Vec<_>>().join(", ");
    (!places.is_empty()).then(|| format!("it is inlined, into {text}"))
}

/// Which of the files that processes have mapped has a function of this name: probes of it, at most three.
pub fn in_processes(provider: &str, pids: &[i32], name: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for pid in pids {
        for m in modules::of_process(*pid) {
            if all.len() < 3 && !names::find(&m.elf, name).is_empty() {
                all.push(probe_in(provider, &m, name));
            }
        }
    }
    all.sort();
    all.dedup();
    all
}
