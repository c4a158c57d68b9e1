//! Stacks of allocations are those that gdb shows at the same calls.

use crate::heap::address_of;
use crate::heap_accounts::{CPP, EVENTS, PLAIN, Program};
use crate::lab::{self, User};
use serde_json::Value;

/// An allocation: its size, and its functions from the allocator's caller to main, or to a coroutine's first one.
type Call = (u64, Vec<String>);

/// Functions of allocators, which are above their callers.
fn is_allocator(name: &str) -> bool {
    let bare = name.split('(').next().unwrap_or(name);
    let of_libc = ["malloc", "calloc", "realloc", "__libc_malloc", "__libc_calloc", "__GI___libc_malloc"];
    of_libc.contains(&bare) || bare.starts_with("operator new")
}

/// The name of a function alone: tools differ in what they say of its arguments.
fn bare(name: &str) -> String {
    let name = name.split(['(', '<']).next().unwrap_or(name);
    let name = name.rsplit_once("::h").filter(|(_, hash)| hash.len() == 16).map_or(name, |(n, _)| n);
    name.to_string()
}

fn below_allocators<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    names.skip_while(|n| is_allocator(n)).map(bare).collect()
}

#[track_caller]
fn by_gdb(command: &[&str]) -> Option<Vec<Call>> {
    if !lab::has("gdb") {
        lab::skip("package:gdb", "no gdb to compare stacks with");
        return None;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/heap_walks.py");
    let argv = [&["gdb", "-nx", "-q", "-batch", "-x", script, "--args"], command].concat();
    let out = lab::run(&mut lab::as_user(User::Me, &argv));
    let (text, mut calls) = (out.out(), Vec::<(u64, Vec<&str>)>::new());
    for line in text.lines() {
        if let Some(call) = line.strip_prefix("call ") {
            let size = call.rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{line}"));
            calls.push((size, Vec::new()));
        } else if let (Some(frame), Some(last)) = (line.strip_prefix("frame "), calls.last_mut()) {
            last.1.push(frame);
        }
    }
    assert!(!calls.is_empty(), "{text} {}", out.stderr);
    Some(calls.into_iter().map(|(size, names)| (size, below_allocators(names.into_iter()))).collect())
}

#[track_caller]
fn by_trapline(user: User, command: &[&str]) -> Vec<Call> {
    let trace = lab::scratch().join("trace").display().to_string();
    let args = ["record", "-q", "-e", "heap:malloc ustack", "--on-full", "block", "-o", &trace, "--"];
    let out = lab::run(&mut lab::trapline(user, &[&args[..], command].concat()));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let report = lab::run(&mut lab::trapline(user, &["report", "-q", "--as", EVENTS, &trace]));
    let mut calls = Vec::new();
    for line in report.out().lines() {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        let Some(frames) = event["ustack"].as_array().filter(|_| event["name"] == "heap:malloc") else { continue };
        let names: Vec<&str> = frames.iter().map(|f| f["function"].as_str().unwrap_or("?")).collect();
        let Some(end) = names.iter().position(|n| ["main", "coroutine"].contains(n)) else { continue };
        let size = event.get("size").or_else(|| event["args"].get("size")).map_or(0, address_of);
        calls.push((size, below_allocators(names[..=end].iter().copied())));
    }
    calls
}

#[track_caller]
fn same(program: &Program, scenario: &str) {
    let Some(program) = program.build() else { return };
    let command = [&*program, scenario];
    let Some(want) = by_gdb(&command) else { return };
    lab::each_user(|user| {
        let got = by_trapline(user, &command);
        // gdb stops at malloc and calloc only.
        let mut got_too = got.iter();
        for (nth, want) in want.iter().enumerate() {
            assert!(got_too.any(|got| got == want), "call {nth} of {scenario} as {user:?}: {want:?} {got:?}");
        }
    });
}

#[test]
fn of_c() {
    for scenario in ["leaks", "deep", "jumps", "coroutines"] {
        same(&PLAIN, scenario);
    }
}

#[test]
fn of_cpp() {
    for scenario in ["news", "containers"] {
        same(&CPP, scenario);
    }
}
