//! The files of a process whose functions may have tracers, and names in them.

use super::linker::Module;
use super::sections;
use crate::module::{Known, Role};
use engine::request::functions::{Functions, matches};
use lang::near::nearest;
use std::fs::File;
use std::sync::Arc;
use sys::maps::{self, Map, PROT_EXEC};

/// The most names that are compared with one that is not there.
const MOST_NAMES: usize = 20_000;

/// Files with code that a process has mapped, whose functions may be wanted: mapping, path, role, file.
pub(super) fn files<'m>(pid: i32, maps: &'m [Map], functions: &Functions) -> Vec<(&'m Map, String, Role, File)> {
    let program = std::fs::metadata(format!("/proc/{pid}/exe")).ok().map(|m| maps::identity(&m));
    let code = maps.iter().filter(|m| m.prot & PROT_EXEC != 0 && m.file.2 != 0);
    let file = |m: &'_ Map| {
        let path = String::from_utf8_lossy(&m.path).into_owned();
        let role = Role::of(&path, Some(m.file) == program);
        if !role.is_traced(functions) || path.contains("trapline-agent") || path.contains("/agent-") {
            return None;
        }
        let file = maps::open(pid, m.range, &m.path, m.file).ok()?;
        Some((path, role, file))
    };
    code.filter_map(|m| file(m).map(|(path, role, file)| (m, path, role, file))).collect()
}

/// Those whose functions are wanted.
pub(super) fn modules(pid: i32, maps: &[Map], functions: &Functions) -> Vec<Module> {
    let module = |(m, path, role, file): (&Map, String, Role, File)| {
        let known = Known::read(&file, &path, role, functions).ok()?;
        let bias = known.bias(m.range.0, m.offset)?;
        Some(Module { known: Arc::new(known), bias, sections: sections::of(&file) })
    };
    files(pid, maps, functions).into_iter().filter_map(module).collect()
}

/// Names of functions like one that is not there, for a message.
pub(super) fn near_functions(modules: &[Module], name: &str) -> String {
    let linker = modules.iter().flat_map(|m| m.known.names.iter().chain(&m.known.others));
    let all: Vec<String> = linker.take(MOST_NAMES).map(|n| plain(n)).collect();
    let near = nearest(name, all.iter().map(String::as_str));
    if near.is_empty() { String::new() } else { format!("nearest: {}; ", near.join(", ")) }
}

/// Whether one of the linker's names is that of a function, which may be a pattern.
pub(super) fn is(name: &str) -> impl Fn(&str) -> bool {
    move |linker| matches(name, linker) || matches(name, &plain(linker))
}

pub(super) fn plain(name: &str) -> String {
    symbols::demangle::of(name).map_or_else(|| name.to_string(), |d| d.plain)
}
