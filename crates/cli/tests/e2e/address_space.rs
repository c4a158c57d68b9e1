//! What the agent takes of a process's address space, and that it gets no more as libraries come and go.

use crate::lab::{self, User};

fn program() -> Option<String> {
    testkit::compile("gcc", "agent_space", "agent_space.c", &["-O1", "-fno-optimize-sibling-calls", "-pthread"])
}

/// What the program prints, a number, under trapline.
#[track_caller]
fn traced(options: &[&str], command: &[&str]) -> u64 {
    let argv = [options, &["--"], command].concat();
    let out = lab::run(&mut lab::trapline(User::Me, &argv));
    assert_eq!(out.code(), 0, "{options:?}: {}", out.stderr);
    let number = out.out().lines().next().and_then(|l| l.parse().ok());
    number.unwrap_or_else(|| panic!("{options:?}: {}", out.out()))
}

/// The agent starts on a stack of its own: a program finds what the loader leaves below its own stack where it loads one library more.
#[test]
fn the_stack_is_as_the_loader_leaves_it() {
    let Some(program) = testkit::compile("gcc", "stack_below", "stack_below.c", &["-O1"]) else { return };
    let library = ["-O1", "-shared", "-fPIC"];
    let Some(library) = testkit::compile("gcc", "agent_module.so", "agent_module.c", &library) else { return };
    let with_library = lab::run(lab::as_user(User::Me, &[&program]).env("LD_PRELOAD", library));
    let words: u64 = with_library.out().trim().parse().expect("a number");
    assert!(words > 0);
    let more = traced(&["heap", "-q"], &[&program]).saturating_sub(words);
    assert!(more < 64, "{words} words, {more} more under heap");
}

/// The modes in which functions and allocations are traced; with `-t`, stubs look for the end of the shadow stack.
const MODES: [&[&str]; 4] = [
    &["graph", "-q", "-o", "/dev/null/none"],
    &["graph", "-q", "-t", "1ms", "-o", "/dev/null/none"],
    &["graph", "-q", "--args", "-o", "/dev/null/none"],
    &["heap", "-q", "--as", "json=/dev/null"],
];

/// A mode, whose trace goes into a directory.
fn modes(dir: &std::path::Path) -> impl Iterator<Item = Vec<String>> {
    MODES.into_iter().enumerate().map(move |(n, mode)| {
        let place =
            |o: &&str| if *o == "/dev/null/none" { dir.join(n.to_string()).display().to_string() } else { (*o).into() };
        mode.iter().map(place).collect()
    })
}

#[test]
fn the_agent_takes_little_of_the_address_space() {
    let Some(program) = program() else { return };
    let dir = lab::scratch();
    for mode in modes(&dir) {
        let mode: Vec<&str> = mode.iter().map(String::as_str).collect();
        for threads in ["1", "2", "11", "64"] {
            let command = [program.as_str(), "space", threads];
            let own: u64 = lab::run(&mut lab::as_user(User::Me, &command)).out().trim().parse().expect("a number");
            let kilobytes = traced(&mode, &command).saturating_sub(own);
            assert!((1_000..64 << 10).contains(&kilobytes), "{mode:?}: {kilobytes} KB with {threads} threads");
            let _ = std::fs::remove_dir_all(&dir);
            std::fs::create_dir(&dir).expect("a directory");
        }
    }
}

#[test]
fn libraries_that_come_and_go_leave_nothing_behind() {
    let Some(program) = program() else { return };
    let Some(library) =
        testkit::compile("gcc", "agent_module.so", "agent_module.c", &["-g", "-O1", "-shared", "-fPIC"])
    else {
        return;
    };
    let dir = lab::scratch();
    for mode in modes(&dir) {
        let mode: Vec<&str> =
            mode.iter().map(String::as_str).chain(["--lib"].into_iter().filter(|_| mode[0] == "graph")).collect();
        // Something else may have taken the library's place once: it and its area then lie elsewhere.
        let left = traced(&mode, &[&program, "load", &library, "200"]);
        assert!(left <= 2, "{left} {mode:?}");
    }
    let place = dir.join("probes").display().to_string();
    let [entry, exit] = ["uprobe", "uretprobe"].map(|p| format!("{p}:{library}:module_function"));
    let probes = ["record", "-q", "-o", &place, "--backend", "agent", "-e", &entry, "-e", &exit];
    let left = traced(&probes, &[&program, "load", &library, "200"]);
    assert!(left <= 2, "{left} {probes:?}");
}

/// More calls are open than the shadow stack has room for at first, and than it ever has: those beyond are counted as lost.
#[test]
fn many_open_calls() {
    let Some(program) = program() else { return };
    let dir = lab::scratch();
    for calls in ["100000", "3000000"] {
        for mode in modes(&dir) {
            let mode: Vec<&str> = mode.iter().map(String::as_str).collect();
            assert_eq!(traced(&mode, &[&program, "deep", calls]).to_string(), calls, "{mode:?}");
            let _ = std::fs::remove_dir_all(&dir);
            std::fs::create_dir(&dir).expect("a directory");
        }
    }
}

/// A program that allocates until there is no more ends as without trapline, and gets nearly as many blocks.
#[test]
fn what_a_limit_leaves_is_the_programs() {
    const KILOBYTES: u64 = 400_000;
    const BLOCK: u64 = 100_000;
    let Some(program) = testkit::compile("g++", "fills_memory", "fills_memory.cc", &["-O1", "-pthread"]) else {
        return;
    };
    let dir = lab::scratch();
    for how in ["malloc", "new", "realloc"] {
        let script = format!("ulimit -v {KILOBYTES}; exec {program} {how}");
        let bare = lab::run(&mut lab::as_user(User::Me, &["sh", "-c", &script]));
        let blocks = |said: &str| said.lines().next().and_then(|l| l.parse::<u64>().ok());
        let wanted = blocks(&bare.stderr).unwrap_or_else(|| panic!("{}", bare.stderr));
        let json = dir.join(how).display().to_string();
        let heap = ["heap", "-q", "--as", &format!("json={json}")];
        for mode in modes(&dir).map(|m| m.to_vec()).chain([heap.map(str::to_string).to_vec()]) {
            let argv = [mode.clone(), ["--", "sh", "-c", &script].map(str::to_string).to_vec()].concat();
            let out = lab::run(&mut lab::trapline(User::Me, &argv));
            let got = blocks(&out.stderr).unwrap_or_else(|| panic!("{mode:?} {how}: {}", out.stderr));
            assert_eq!(out.code(), bare.code(), "{mode:?} {how}: {}", out.stderr);
            assert!((wanted - (64 << 20) / BLOCK..=wanted).contains(&got), "{mode:?} {how}: {got} of {wanted}");
            let Ok(report) = std::fs::read(&json) else { continue };
            let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
            let total = report["total"]["blocks"].as_u64().expect("a number");
            // Those of the shell, the C++ library and realloc's first ones are beside.
            assert!((got..=2 * got + 200).contains(&total), "{how}: {total} recorded, {got} made");
        }
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir(&dir).expect("a directory");
    }
}
