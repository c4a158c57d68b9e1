//! Libraries that are loaded again: at the same place, at another one, after their file was replaced, in a process of several threads. Every call
//! of their functions and every allocation of theirs is recorded.

use crate::lab::{self, User};
use std::path::Path;

const TIMES: u64 = 20;
/// How often the function is called, with what it has been loaded from first.
const CALLS: u64 = 6 * TIMES + 2;

fn libraries(options: &[&str]) -> Option<Vec<String>> {
    let build = |name: &str, more: &[&str]| {
        let all = [&["-g", "-O1", "-shared", "-fPIC"], options, more].concat();
        testkit::compile("gcc", name, "reloaded.c", &all)
    };
    let name = |n: &str| format!("reloaded_{n}{}.so", options.len());
    [("first", &["-DVALUE=1"][..]), ("second", &["-DVALUE=2"]), ("next", &["-DVALUE=3", "-DPADDING"])]
        .into_iter()
        .map(|(n, more)| build(&name(n), more))
        .collect()
}

/// The program's command: it renames a file, so it has copies of the libraries.
fn command(dir: &Path, libraries: &[String]) -> Option<Vec<String>> {
    let program = testkit::compile("gcc", "reloads", "reloads.c", &["-g", "-O1", "-pthread"])?;
    let copy = |from: &String| {
        let to = dir.join(Path::new(from).file_name().expect("a name"));
        std::fs::copy(from, &to).expect("a copy");
        to.display().to_string()
    };
    Some([vec![program], libraries.iter().map(copy).collect(), vec![TIMES.to_string()]].concat())
}

/// What the program prints untraced: n is 3, and the builds have 1, 2 and 3.
const PRINTED: u64 = 3 * (3 * TIMES + TIMES * 2 + 3 + 2 * TIMES * 3);

#[track_caller]
fn traced(options: &[&str], libraries: &[String]) -> Option<(std::path::PathBuf, String)> {
    let dir = lab::scratch();
    let command = command(&dir, libraries)?;
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let place = dir.join("trace").display().to_string();
    let out = lab::run(&mut lab::trapline(User::Me, &[options, &["-o", &place, "--"], &command].concat()));
    assert_eq!((out.code(), out.out().trim()), (0, &*PRINTED.to_string()), "{options:?}: {}", out.stderr);
    Some((dir, place))
}

#[track_caller]
fn reported(place: &str, view: &str) -> String {
    let out = lab::run(&mut lab::trapline(User::Me, &["report", place, "--as", view]));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    out.out()
}

/// With build ids, by which the agent knows what has come again, and without.
const BUILDS: [&[&str]; 2] = [&[], &["-Wl,--build-id=none"]];

#[test]
fn every_call_is_recorded() {
    for build in BUILDS {
        let Some(libraries) = libraries(build) else { return };
        let Some((_, place)) = traced(&["graph", "-q", "--lib"], &libraries) else { return };
        let text = reported(&place, "functions");
        let calls = text.lines().filter(|l| l.contains("module_function")).filter_map(calls_of).sum::<u64>();
        assert_eq!(calls, CALLS, "{build:?}\n{text}");
    }
}

/// The number of calls in a row of the table of functions.
fn calls_of(row: &str) -> Option<u64> {
    row.split_whitespace().find_map(|word| word.replace(',', "").parse().ok())
}

#[test]
fn every_allocation_has_its_stack() {
    for build in BUILDS {
        let Some(libraries) = libraries(build) else { return };
        let Some((_, place)) = traced(&["record", "-q", "-e", "heap:malloc ustack"], &libraries) else { return };
        let text = reported(&place, "text");
        // The second library has its name; the first one has been replaced by then.
        let count = |name: &str| text.lines().filter(|l| l.contains(name)).count() as u64;
        assert_eq!((count("_first"), count("_second")), (CALLS - TIMES - 1, TIMES + 1), "{build:?}\n{text}");
    }
}
