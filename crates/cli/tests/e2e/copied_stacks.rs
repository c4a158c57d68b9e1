//! `--unwind copy`: samples of users without any capability, by copies of their stacks.

use crate::kernel::possible;
use crate::lab::{self, Outcome, User, has, is_root};
use crate::record::stats_of;
use crate::rights::{as_it_is, capable_copy};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::RwLockReadGuard;

/// Stacks, outermost function first, and their samples.
type Stacks = BTreeMap<Vec<String>, u64>;

/// A user without capabilities who may take samples, as long as this is held.
#[track_caller]
fn ordinary() -> Option<(User, RwLockReadGuard<'static, ()>)> {
    let held = as_it_is()?;
    if !is_root() {
        return Some((User::Me, held));
    }
    if !has("setpriv") {
        lab::skip("unprivileged", "no setpriv to become nobody");
        return None;
    }
    Some((User::Nobody, held))
}

/// Spends its time in functions of known shares; without frame pointers.
#[track_caller]
fn shares() -> Option<String> {
    let flags = ["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread"];
    lab::compiled("shares-without-rbp", "shares.c", &flags)
}

fn profile(user: User, args: &[&str]) -> Outcome {
    lab::run(&mut lab::trapline(user, &[&["profile"], args].concat()))
}

/// A profile with these options, and its statistics.
#[track_caller]
fn with_stats(user: User, options: &[&str], command: &[&str]) -> (Outcome, Value) {
    let file = lab::scratch().join("stats");
    let file_name = file.display().to_string();
    let out = profile(user, &[&["--stats", &file_name, "--as", "folded"], options, &["--"], command].concat());
    assert_eq!(out.code(), 0, "{}", out.stderr);
    (out, stats_of(&file))
}

#[track_caller]
fn folded(text: &str) -> Stacks {
    let line = |l: &str| {
        let (names, n) = l.rsplit_once(' ').unwrap_or_else(|| panic!("{l}"));
        (names.split(';').map(str::to_string).collect(), n.parse().unwrap_or_else(|_| panic!("{l}")))
    };
    text.lines().map(line).collect()
}

fn with(stacks: &Stacks, function: &str) -> u64 {
    stacks.iter().filter(|(names, _)| names.iter().any(|n| n == function)).map(|(_, n)| n).sum()
}

/// Stacks that ended at the outermost frame, and all that were walked.
fn complete(stats: &Value) -> (u64, u64) {
    let ended = stats["stacks"]["ended"].as_object().expect("endings");
    let all = ended.values().filter_map(Value::as_u64).sum();
    (ended.get("the outermost frame was reached").and_then(Value::as_u64).unwrap_or(0), all)
}

/// At least this many of a hundred stacks are whole.
#[track_caller]
fn are_complete(stats: &Value, percent: u64) {
    let (whole, all) = complete(stats);
    assert!(all > 20 && whole * 100 >= all * percent, "{whole} of {all}: {stats}");
    assert_eq!((&stats["backend"], stats["events"].as_u64()), (&"perf".into(), Some(all)), "{stats}");
}

#[test]
fn an_ordinary_user_profiles_a_program_without_frame_pointers() {
    let (Some((user, _held)), Some(program)) = (ordinary(), shares()) else { return };
    let (out, stats) = with_stats(user, &["--backend", "perf"], &[&program, "burn", "200"]);
    are_complete(&stats, 98);
    let stacks = folded(&out.out());
    let (three, one) = (with(&stacks, "three_parts"), with(&stacks, "one_part"));
    assert_eq!(stacks.values().sum::<u64>(), stats["events"].as_u64().unwrap());
    assert!(with(&stacks, "main") * 10 > stacks.values().sum::<u64>() * 9, "{}", out.out());
    let share = 100 * three / (three + one);
    assert!((60..=90).contains(&share), "{share} of 75: {}", out.out());
}

#[test]
fn an_ordinary_user_profiles_python_and_a_shell() {
    let Some((user, _held)) = ordinary() else { return };
    if !has("python3") {
        return lab::skip("program:python3", "no python3");
    }
    let deep = "def f(n): return f(n - 1) if n else sum(len(str(list(range(50)))) for _ in range(60000))\nf(40)";
    let (out, stats) = with_stats(user, &["--unwind", "copy,64K"], &["python3", "-c", deep]);
    are_complete(&stats, 95);
    let stacks = folded(&out.out());
    assert!(stacks.keys().any(|names| names.len() > 30), "{}", out.out());
    // Short programs, one after the other: each is followed from its beginning.
    let script = "for i in 1 2 3 4 5 6 7 8; do python3 -c 'str(list(range(200000)))'; ls >/dev/null; done";
    let (out, stats) = with_stats(user, &["--unwind", "copy"], &["sh", "-c", script]);
    are_complete(&stats, 95);
    let stacks = folded(&out.out());
    assert!(stacks.keys().any(|names| names[0].starts_with("python3")), "{}", out.out());
    assert_eq!(stats["dropped"], 0, "{stats}");
}

#[test]
fn a_trace_of_copied_stacks_shows_the_same_later() {
    let (Some((user, _held)), Some(program)) = (ordinary(), shares()) else { return };
    let dir = lab::scratch();
    let file = |name: &str| dir.join(name).display().to_string();
    let (trace, now) = (file("trace"), file("now"));
    let out = profile(
        user,
        &["--unwind", "copy", "-o", &trace, "--as", &format!("folded={now}"), "--", &program, "burn", "100"],
    );
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let report = |view: &str| lab::run(&mut lab::trapline(user, &["report", &trace, "--as", view])).out();
    let later = report("folded");
    assert_eq!(folded(&later), folded(&std::fs::read_to_string(&now).expect("the view")));
    assert!(with(&folded(&later), "main") > 20, "{later}");
    assert!(report("flame").contains("three_parts"));
    let events = report("text");
    assert!(events.contains("profile:hz:997"), "{events}");
}

/// Stacks of processes that at least 5 of 100 samples have.
fn frequent(stacks: &Stacks) -> Vec<Vec<String>> {
    let mut of_processes = Stacks::new();
    for (names, n) in stacks {
        let own = names.iter().filter(|n| !n.ends_with("_[k]")).cloned().collect();
        *of_processes.entry(own).or_default() += n;
    }
    let all: u64 = of_processes.values().sum();
    of_processes.into_iter().filter(|(_, n)| n * 20 >= all).map(|(names, _)| names).collect()
}

#[test]
fn copied_stacks_are_those_of_the_kernel_backend() {
    let (true, Some(program)) = (possible(), shares()) else { return };
    let of = |options: &[&str]| {
        let (out, stats) = with_stats(User::Me, options, &[&program, "burn", "200"]);
        (folded(&out.out()), stats["backend"].as_str().unwrap_or_default().to_string())
    };
    let ((copied, perf), (walked, kernel)) = (of(&["--unwind", "copy"]), of(&["--unwind", "tables"]));
    assert_eq!((perf.as_str(), kernel.as_str()), ("perf", "kernel"));
    let own = |stacks: &Stacks| -> Vec<Vec<String>> {
        let strip = |names: &Vec<String>| names.iter().filter(|n| !n.ends_with("_[k]")).cloned().collect();
        stacks.keys().map(strip).collect()
    };
    let (all_copied, all_walked) = (own(&copied), own(&walked));
    let (a, b) = (frequent(&copied), frequent(&walked));
    assert!(!a.is_empty() && !b.is_empty());
    assert!(a.iter().all(|s| all_walked.contains(s)), "{a:#?} {walked:#?}");
    assert!(b.iter().all(|s| all_copied.contains(s)), "{b:#?} {copied:#?}");
}

#[test]
fn what_a_small_ring_and_a_small_copy_lose_is_counted() {
    let (Some((user, _held)), Some(program)) = (ordinary(), shares()) else { return };
    let options = ["--unwind", "copy,64K", "--buffer", "128K", "-F", "20000"];
    let (_, stats) = with_stats(user, &options, &[&program, "burn", "200"]);
    let counts = &stats["enablings"][0];
    let n = |what: &str| counts[what].as_u64().unwrap();
    assert!(n("dropped") > 0, "{stats}");
    assert_eq!((n("recorded") + n("dropped"), stats["dropped"].as_u64()), (n("seen"), Some(n("dropped"))), "{stats}");
    assert_eq!(stats["events"].as_u64(), Some(n("recorded")), "{stats}");
    if !has("python3") {
        return lab::skip("program:python3", "no python3");
    }
    let deep = "def f(n): return f(n - 1) if n else sum(range(9000000))\nf(40)";
    let (out, stats) = with_stats(user, &["--unwind", "copy,1K"], &["python3", "-c", deep]);
    let cut = stats["stacks"]["ended"]["the copy of the stack ends there"].as_u64().unwrap_or(0);
    assert!(cut > 10, "{stats}");
    assert!(out.stderr.contains(&format!("{cut}: the copy of the stack ends there")), "{}", out.stderr);
}

#[test]
fn children_and_processes_that_run_are_followed() {
    let (Some((user, _held)), Some(program)) = (ordinary(), shares()) else { return };
    let script = format!("{program} burn 300 & {program} burn 300; wait");
    let dir = lab::scratch().join("trace").display().to_string();
    let args = ["record", "-q", "-o", &dir, "--backend", "perf", "-e", "profile:hz:997 ustack comm"];
    let out = lab::run(&mut lab::trapline(user, &[&args[..], &["--", "sh", "-c", &script]].concat()));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let out = lab::run(&mut lab::trapline(user, &["report", &dir, "--as", "folded", "--group", "process"]));
    let stacks = folded(&out.out());
    let mut processes: Vec<&str> = stacks.keys().map(|names| names[0].as_str()).collect();
    processes.dedup();
    assert!(processes.len() >= 2 && with(&stacks, "three_parts") > 10, "{}", out.out());

    let mut running = lab::start(&mut lab::as_user(user, &[&program, "burn", "3000"]));
    running.must_run();
    let pid = running.pid().to_string();
    let args = ["profile", "--backend", "perf", "-p", &pid, "--duration", "1", "--as", "folded"];
    let out = lab::run(&mut lab::trapline(user, &args));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    assert!(with(&folded(&out.out()), "main") > 5, "{} {}", out.out(), out.stderr);
    lab::kill("KILL", i64::from(running.pid()));
    running.end();
}

#[test]
fn what_copied_stacks_cannot_do_is_refused_in_one_line() {
    let Some((user, _held)) = ordinary() else { return };
    let cases: &[(&[&str], &str)] = &[
        (&["profile", "--unwind", "copy", "--backend", "ptrace"], "stacks are copied by the perf backend only"),
        (&["profile", "--unwind", "copy,3"], "not a size of a copied stack"),
        (&["profile", "--unwind", "fp,3"], "only copies have a size"),
        (&["profile", "--unwind", "what"], "no such way"),
        (&["profile", "--unwind", "copy", "--on-full", "block"], "cannot block the target"),
        (&["profile", "--off-cpu"], "tracepoints of the scheduler"),
        (
            &["record", "-e", "openat", "-e", "profile:hz:99", "--unwind", "copy"],
            "it records samples, and no system calls",
        ),
        (&["record", "-e", "openat", "--backend", "perf"], "there are none"),
        (
            &["record", "-e", "software:page-faults:1,begin", "--unwind", "copy"],
            "only the kernel backend has this probe",
        ),
    ];
    for (args, said) in cases {
        let needs_user = args.contains(&"--off-cpu") || !args.iter().any(|a| a.contains("copy") || *a == "perf");
        if needs_user && user == User::Me && lab::bpf_refused().is_none() {
            continue;
        }
        let out = lab::run(&mut lab::trapline(user, &[args, &["--", "true"][..]].concat()));
        assert!(
            out.code() != 0 && out.stderr.lines().count() == 1 && out.stderr.contains(said),
            "{args:?} {}",
            out.stderr
        );
    }
    let out = lab::run(&mut lab::trapline(user, &["profile", "-a"]));
    assert!(out.code() != 0 && out.stderr.lines().count() == 1, "{}", out.stderr);
}

/// A file with CAP_PERFMON alone is not enough for bpf(2), and lends its user nothing.
#[test]
fn a_capability_of_the_file_gives_no_privileges() {
    let Some((User::Nobody, _held)) = ordinary() else { return };
    let (Some(trapline), Some(program)) = (capable_copy("trapline-perfmon", "cap_perfmon+ep"), shares()) else {
        return;
    };
    let run = |args: &[&str]| lab::run(&mut lab::as_user(User::Nobody, &[&[&trapline, "profile"], args].concat()));
    let out = run(&["--as", "folded", "--", &program, "burn", "100"]);
    assert_eq!(out.code(), 0, "{}", out.stderr);
    assert!(out.stderr.contains("perf backend") && with(&folded(&out.out()), "main") > 20, "{}", out.stderr);
    let out = run(&["-q", "--as", "json=/dev/null", "--", "cat", "/proc/self/status"]);
    let status = out.out();
    let held: Vec<&str> = status.lines().filter(|l| l.starts_with("CapPrm") || l.starts_with("CapEff")).collect();
    assert!(held.len() == 2 && held.iter().all(|l| l.ends_with("0000000000000000")), "{held:?}");
    let out = run(&["-p", "1"]);
    assert!(out.code() == 125 && out.stderr.contains("may not look into it"), "{}", out.stderr);
}
