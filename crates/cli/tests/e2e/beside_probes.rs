//! Probes that the kernel sets (uprobes) on functions that the agent has patched, and the other way round: the program runs as without
//! both, and both see its calls.

use crate::lab::{self, User};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// What stays where it is when a function is patched.
const STAYS: [&str; 11] = [
    "f_push",
    "f_push_twice",
    "f_sub",
    "f_sub_far",
    "f_mov",
    "f_xor",
    "f_lea",
    "f_test",
    "f_load",
    "f_endbr",
    "f_argument",
];
const MOVES: [&str; 2] = ["f_adds", "f_stores"];

/// The program, as a file of this test's own: probes are on a file.
fn program(name: &str) -> Option<String> {
    testkit::compile("gcc", name, "first_instructions.c", &["-O1"])
}

/// A session of trapline around the program, which runs until its input ends.
fn start(args: &[&str], program: &str) -> lab::Running {
    started(lab::trapline(User::Me, &[args, &["--", program]].concat()))
}

fn started(mut command: Command) -> lab::Running {
    lab::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()))
}

/// Waits until the program that a session has started is in its main loop.
fn until_it_runs(session: &lab::Running, program: &str) {
    let name = Path::new(program).file_name().expect("a name").to_str().expect("text");
    lab::until("the program polls", || {
        let children =
            Command::new("pgrep").args(["-g", &session.pid().to_string(), "-x", &name[..15.min(name.len())]]).output();
        let pid = String::from_utf8_lossy(&children.expect("pgrep").stdout).trim().parse::<u32>();
        pid.is_ok_and(|pid| {
            let waits = std::fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
            waits.contains("poll")
        })
    });
}

/// Ends the program's input; how often it has called each function.
#[track_caller]
fn end(mut session: lab::Running) -> (u64, lab::Outcome) {
    drop(session.child.stdin.take());
    let out = session.end();
    assert_eq!(out.code(), 0, "{}{}", out.out(), out.stderr);
    let rounds = out.out().lines().next().and_then(|l| l.parse().ok());
    (rounds.unwrap_or_else(|| panic!("{}{}", out.out(), out.stderr)), out)
}

/// The calls of each function in a trace.
fn calls(trace: &str) -> BTreeMap<String, u64> {
    let report = lab::run(&mut lab::trapline(User::Me, &["report", "-q", "--as", "functions-json", trace]));
    let lines = report.out();
    let parsed = lines.lines().map(|l| serde_json::from_str::<Value>(l).expect("JSON"));
    parsed.filter_map(|f| Some((f["function"].as_str()?.to_string(), f["calls"].as_u64()?))).collect()
}

/// Sets probes for a moment: how often each was hit, and what was said.
fn probe(pattern: &str, trace: &str) -> (BTreeMap<String, u64>, lab::Outcome) {
    let args = ["record", "-a", "-e", pattern, "--duration", "0.2", "-o", trace];
    let out = lab::run(&mut lab::trapline(User::Me, &args));
    (hits(trace), out)
}

/// How often each probe of a trace was hit.
fn hits(trace: &str) -> BTreeMap<String, u64> {
    let report = lab::run(&mut lab::trapline(User::Me, &["report", "-q", "--as", "json", trace]));
    let mut hits = BTreeMap::new();
    for line in report.out().lines() {
        let event: Value = serde_json::from_str(line).expect("JSON");
        if let Some(name) = event["name"].as_str().filter(|_| event["type"] == "probe") {
            *hits.entry(name.rsplit(':').next().unwrap_or_default().to_string()).or_default() += 1;
        }
    }
    hits
}

fn is_possible() -> bool {
    if !lab::kernel_backend_is_possible() {
        testkit::skip("root", "uprobes need it");
        return false;
    }
    true
}

#[test]
fn probes_on_patched_functions() {
    let Some(program) = program("probed_later").filter(|_| is_possible()) else { return };
    let dir = lab::scratch();
    let trace = dir.join("trace").display().to_string();
    let session = start(&["graph", "-q", "--on-full", "block", "-o", &trace], &program);
    until_it_runs(&session, &program);
    for round in 0..2 {
        let (hits, out) = probe(&format!("uprobe:{program}:f_*"), &dir.join(format!("p{round}")).display().to_string());
        assert_eq!(out.code(), 0, "{}", out.stderr);
        let seen: Vec<&str> = hits.keys().map(String::as_str).collect();
        let mut stay = STAYS;
        stay.sort_unstable();
        assert_eq!(seen, stay, "{}", out.stderr);
        assert!(MOVES.iter().all(|f| out.stderr.contains(f)), "{}", out.stderr);
    }
    let (_, out) = probe(&format!("uprobe:{program}:f_stores"), &dir.join("one").display().to_string());
    assert_ne!(out.code(), 0);
    assert!(out.stderr.contains("trapline has patched this instruction in process"), "{}", out.stderr);
    let (rounds, _) = end(session);
    let calls = calls(&trace);
    assert!(STAYS.iter().chain(&MOVES).all(|f| calls.get(*f) == Some(&rounds)), "{rounds}: {calls:?}");
}

#[test]
fn patches_on_probed_functions() {
    let Some(program) = program("probed_before").filter(|_| is_possible()) else { return };
    let dir = lab::scratch();
    let [trace, probes] = ["trace", "probes"].map(|n| dir.join(n).display().to_string());
    let args = ["record", "-a", "-e", &format!("uprobe:{program}:f_*"), "-o", &probes];
    let first = lab::start(lab::trapline(User::Me, &args).stdout(Stdio::piped()).stderr(Stdio::piped()));
    lab::until("probes are set", || {
        let out = Command::new(&program).stdin(Stdio::null()).status();
        assert!(out.expect("it runs").success());
        std::fs::read_dir(&probes)
            .is_ok_and(|d| d.flatten().any(|e| e.file_name().to_string_lossy().starts_with("probe")))
    });
    let session = start(&["graph", "--on-full", "block", "-o", &trace], &program);
    until_it_runs(&session, &program);
    let (rounds, out) = end(session);
    let calls = calls(&trace);
    assert!(STAYS.iter().all(|f| calls.get(*f) == Some(&rounds)), "{rounds}: {calls:?}");
    assert!(MOVES.iter().all(|f| !calls.contains_key(*f)), "{calls:?}");
    assert!(out.stderr.contains("2 functions could not be patched: f_adds, f_stores (a breakpoint"), "{}", out.stderr);
    lab::kill("INT", first.pid().into());
    assert_eq!(first.end().code(), 0);
}

/// Static probes in the first bytes of functions, by their notes: in no process of the file is a patch where they are.
#[test]
fn static_probes_in_patched_functions() {
    let Some(program) = program("probed_static").filter(|_| is_possible()) else { return };
    let dir = lab::scratch();
    let trace = dir.join("trace").display().to_string();
    let session = start(&["graph", "-q", "--explain", "--on-full", "block", "-o", &trace], &program);
    until_it_runs(&session, &program);
    for round in 0..2 {
        let (hits, out) =
            probe(&format!("usdt:{program}:first:*"), &dir.join(format!("p{round}")).display().to_string());
        assert_eq!(out.code(), 0, "{}", out.stderr);
        assert_eq!(hits.keys().collect::<Vec<_>>(), ["behind", "first", "moved"], "{}", out.stderr);
        assert!(!out.stderr.contains("patched"), "{}", out.stderr);
    }
    let (rounds, out) = end(session);
    let calls = calls(&trace);
    assert!(["s_behind", "s_first"].iter().all(|f| calls.get(*f) == Some(&rounds)), "{rounds}: {calls:?}");
    assert!(!calls.contains_key("s_moved"), "{calls:?}");
    assert!(out.stderr.contains("a static probe lies in the bytes that would be replaced"), "{}", out.stderr);
}

/// Several probes of one pattern, in a library, that are set after its functions were patched and before they are first called.
#[test]
fn probes_on_patched_functions_of_a_library() {
    const CALLS: u64 = 100;
    let build = |name: &str, flags: &[&str]| testkit::compile("gcc", name, "probed_library.c", flags);
    let Some(library) = build("libprobed.so", &["-O1", "-shared", "-fPIC", "-DLIBRARY"]).filter(|_| is_possible())
    else {
        return;
    };
    let path = format!("-Wl,--no-as-needed,-rpath,{}", Path::new(&library).parent().expect("a directory").display());
    let Some(program) = build("calls_library", &["-O1", &path, &library]) else { return };
    let dir = lab::scratch();
    let [trace, probes] = ["trace", "probes"].map(|n| dir.join(n).display().to_string());
    let session = start(&["graph", "-q", "--lib", "-F", "u_*", "--on-full", "block", "-o", &trace], &program);
    until_it_runs(&session, &program);
    let args = ["record", "-a", "-e", &format!("uprobe:{library}:u_*"), "-o", &probes];
    let recording = lab::start(lab::trapline(User::Me, &args).stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut others = 0;
    lab::until("probes are set", || {
        let out = Command::new(&program).stdin(Stdio::null()).output().expect("it runs");
        others += 1;
        assert!(out.status.success());
        std::fs::read_dir(&probes)
            .is_ok_and(|d| d.flatten().any(|e| e.file_name().to_string_lossy().starts_with("probe")))
    });
    let (said, _) = end(session);
    lab::kill("INT", recording.pid().into());
    let out = recording.end();
    assert_eq!((said, out.code()), (CALLS, 0), "{}", out.stderr);
    let (calls, hits) = (calls(&trace), hits(&probes));
    for function in ["u_a", "u_b", "u_c"] {
        let hit = hits.get(function).copied().unwrap_or_default();
        assert_eq!(calls.get(function), Some(&CALLS), "{calls:?}");
        // Of the patched process all, of the others those that ran when the probe was there.
        assert!(
            hit.is_multiple_of(CALLS) && (2 * CALLS..=(others + 1) * CALLS).contains(&hit),
            "{hits:?} {}",
            out.stderr
        );
    }
}

#[test]
fn probes_on_the_functions_of_the_heap() {
    let Some(program) = program("probed_heap").filter(|_| is_possible()) else { return };
    let dir = lab::scratch();
    let json = dir.join("json").display().to_string();
    // A libc of its own: a probe of the system's would be in every program.
    let libc = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6"].into_iter().find(|p| Path::new(p).exists());
    let Some(libc) = libc else { return testkit::skip("package", "no glibc") };
    let own = dir.join("libc.so.6");
    std::fs::copy(libc, &own).expect("a copy");
    let mut command = lab::trapline(User::Me, &["heap", "-q", "--as", &format!("json={json}"), "--", &program]);
    command.env("LD_LIBRARY_PATH", &dir);
    let session = started(command);
    until_it_runs(&session, &program);
    for (i, function) in ["malloc", "free"].iter().enumerate() {
        let (hits, out) =
            probe(&format!("uprobe:{}:{function}", own.display()), &dir.join(i.to_string()).display().to_string());
        assert!(out.code() == 0 && hits.values().sum::<u64>() > 0, "{}", out.stderr);
    }
    let (rounds, _) = end(session);
    let heap: Value = serde_json::from_slice(&std::fs::read(&json).expect("a report")).expect("JSON");
    // The program's own, and the buffer of its output.
    assert_eq!(heap["total"]["blocks"].as_u64(), Some(rounds + 1));
}
