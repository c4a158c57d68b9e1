//! `trapline profile`: stacks and their weights, live, of a trace, and compared.

use crate::kernel::possible;
use crate::lab::{self, Outcome, User, has};
use crate::record::stats_of;
use crate::terminal::on_terminal;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program that spends known shares of its time in its functions.
fn shares() -> Option<String> {
    let flags = ["-O2", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread"];
    testkit::compile("gcc", "shares", "shares.c", &flags)
}

fn profile(user: User, args: &[&str]) -> Outcome {
    let mut all = vec!["profile"];
    all.extend(args);
    lab::run(&mut lab::trapline(user, &all))
}

/// Runs a profile with these options of a command, and reads its statistics.
#[track_caller]
fn with_stats(options: &[&str], command: &[&str]) -> (Outcome, Value) {
    let file = lab::scratch().join("stats");
    let file_name = file.display().to_string();
    let out = profile(User::Me, &[&["--stats", &file_name], options, &["--"], command].concat());
    assert_eq!(out.code(), 0, "{}", out.stderr);
    (out, stats_of(&file))
}

/// Lines of folded stacks: names, and the weight.
#[track_caller]
fn folded(text: &str) -> Vec<(Vec<String>, u64)> {
    let line = |l: &str| {
        let (names, weight) = l.rsplit_once(' ').unwrap_or_else(|| panic!("{l}"));
        (names.split(';').map(str::to_string).collect(), weight.parse().unwrap_or_else(|_| panic!("{l}")))
    };
    text.lines().map(line).collect()
}

/// The weight of the stacks with all these functions, each within the ones before.
fn weight(lines: &[(Vec<String>, u64)], functions: &[&str]) -> u64 {
    let has = |names: &[String]| {
        let mut names = names.iter();
        functions.iter().all(|f| names.any(|n| n == f))
    };
    lines.iter().filter(|(names, _)| has(names)).map(|(_, n)| n).sum()
}

fn sum(lines: &[(Vec<String>, u64)]) -> u64 {
    lines.iter().map(|(_, n)| n).sum()
}

#[test]
fn known_shares_are_found_and_no_sample_is_missing() {
    let Some(program) = shares().filter(|_| possible()) else { return };
    let (out, stats) = with_stats(&["--as", "folded"], &[&program, "burn", "800"]);
    let lines = folded(&out.out());
    let samples = stats["profile"]["samples"].as_u64().unwrap();
    assert_eq!((sum(&lines), stats["profile"]["weight"].as_u64()), (samples, Some(samples)), "{stats}");
    assert_eq!(stats["events"].as_u64(), Some(samples), "{stats}");
    assert!(samples > 300, "{stats}");
    let (three, one) = (weight(&lines, &["main", "three_parts"]), weight(&lines, &["main", "one_part"]));
    assert!((three + one) * 10 > samples * 9, "{}", out.out());
    let share = 100 * three / (three + one);
    assert!((65..=85).contains(&share), "{share} of 75: {}", out.out());
    assert!(lines.iter().all(|(names, _)| names[0] == "shares" || names[0] == "trapline"), "{}", out.out());
    // The clock of this process is a system call.
    assert!(weight(&lines, &["main", "three_parts", "do_syscall_64_[k]"]) > 0, "{}", out.out());
}

/// The number before these words.
#[track_caller]
fn before(text: &str, words: &str) -> u64 {
    let (front, _) = text.split_once(words).unwrap_or_else(|| panic!("no '{words}'"));
    let digits = front.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().unwrap_or_else(|_| panic!("no number before '{words}'"))
}

#[test]
fn every_view_has_the_losses_of_the_trace() {
    let Some(program) = lab::program("alarms").filter(|_| possible()) else { return };
    let dir = lab::scratch();
    let trace = dir.join("trace").display().to_string();
    let views = |json: &str, when: &str| {
        [json, "folded", "flame", "pprof", "table"]
            .map(|v| format!("--as={v}={}", dir.join(format!("{}-{when}", v.trim_start_matches("profile-"))).display()))
    };
    let now = views("json", "now");
    let events = ["-e", "syscall:getppid ustack", "--buffer", "8K", "-o", &trace];
    let options: Vec<&str> = events.into_iter().chain(now.iter().map(String::as_str)).collect();
    let (_, stats) = with_stats(&options, &[&program, "ignored", "40000"]);
    let lost = ["dropped", "bookkeeping_dropped"].map(|n| stats[n].as_u64().unwrap()).iter().sum::<u64>();
    assert!(lost > 100, "{stats}");
    let later = views("profile-json", "later");
    let args: Vec<&str> =
        ["report", "-q", &trace, "--as", "stats-json"].into_iter().chain(later.iter().map(String::as_str)).collect();
    let out = lab::run(&mut lab::trapline(User::Me, &args));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let of_trace: Value = serde_json::from_str(&out.out()).unwrap();
    assert_eq!(of_trace["discarded"], lost);
    for when in ["now", "later"] {
        let text =
            |view: &str| String::from_utf8_lossy(&fs::read(dir.join(format!("{view}-{when}"))).unwrap()).into_owned();
        let json: Value = serde_json::from_str(&text("json")).unwrap();
        assert_eq!((&json["trapline"]["lost"], &json["trapline"]["not_held"]["samples"]), (&lost.into(), &0.into()));
        for view in ["folded", "flame", "pprof", "table"] {
            assert_eq!(before(&text(view), " events were lost"), lost, "{view}, {when}");
        }
    }
    // A file of folded stacks says it too.
    let file = dir.join("folded-later").display().to_string();
    let diff = profile(User::Me, &["diff", &file, &trace]).out();
    assert_eq!(diff.matches(&format!("; {lost} events were lost\n")).count(), 2, "{diff}");
}

/// The lines without programs of the kernel's own machine, whose names are known only while they are loaded.
fn lasting(text: &str) -> Vec<&str> {
    text.lines().filter(|l| !l.contains("bpf") && !l.contains("[kernel]")).collect()
}

#[test]
fn a_trace_draws_the_same_later() {
    let Some(program) = shares().filter(|_| possible()) else { return };
    let dir = lab::scratch();
    let (trace, now) = (dir.join("trace").display().to_string(), dir.join("now").display().to_string());
    let view = format!("folded={now}");
    let (out, stats) = with_stats(&["-F", "499", "-o", &trace, "--as", &view], &[&program, "burn", "100"]);
    assert_eq!(out.out(), "");
    let samples = stats["profile"]["samples"].as_u64().unwrap();
    let report = |args: &[&str]| {
        let out = lab::run(&mut lab::trapline(User::Me, &[&["report", trace.as_str()], args].concat()));
        // On a busy machine the first samples may be taken before the process has tables, which is said.
        let cut = |l: &&str| l.starts_with("trapline: stacks that do not reach the outermost frame: ");
        assert_eq!((out.code(), out.stderr.lines().find(|l| !cut(l))), (0, None), "{}", out.stderr);
        out.out()
    };
    let later = report(&["--as", "folded"]);
    let now = fs::read_to_string(&now).unwrap();
    assert_eq!(lasting(&later), lasting(&now));
    assert_eq!((sum(&folded(&later)), sum(&folded(&now))), (samples, samples));
    let table = report(&["--as", "table", "--rows", "3"]);
    let period = 1_000_000_000 / 499;
    assert!(table.starts_with(&format!("{samples} samples, one every {}.0", period / 1_000_000)), "{table}");
    assert!(table.contains("shares") && table.contains(" more functions\n"), "{table}");
    let json: Value = serde_json::from_str(&report(&["--as", "profile-json"])).unwrap();
    assert_eq!(
        (&json["trapline"]["total"]["samples"], &json["profiles"][0]["name"]),
        (&samples.into(), &"shares".into())
    );
    // A recording with stacks is a profile too.
    let other = dir.join("other").display().to_string();
    let args = ["record", "-q", "-o", &other, "-e", "profile:hz:499 ustack comm", "--", &program, "burn", "50"];
    assert_eq!(lab::run(&mut lab::trapline(User::Kernel, &args)).code(), 0);
    let args = ["report", &other, "--as", "folded", "--group", "none"];
    let out = lab::run(&mut lab::trapline(User::Me, &args)).out();
    assert!(weight(&folded(&out), &["main", "three_parts", "spin"]) > 0, "{out}");
    let file = dir.join("later");
    fs::write(&file, later).unwrap();
    diffs(&trace, &other, &file);
}

/// Differences of two traces, and of a file and a trace.
fn diffs(trace: &str, other: &str, file: &Path) {
    let file = file.display().to_string();
    let diff = |args: &[&str]| {
        let out = profile(User::Me, &[&["diff"], args].concat());
        assert_eq!(out.code(), 0, "{}", out.stderr);
        out.out()
    };
    let table = diff(&[trace, other]);
    assert!(table.starts_with("before: ") && table.contains("\nafter: "), "{table}");
    let all = diff(&[&file, other, "--as", "folded"]);
    let both = |l: &str| -> (u64, u64) {
        let mut words = l.rsplitn(3, ' ').map(|n| n.parse().unwrap_or(0));
        let after = words.next().unwrap();
        (words.next().unwrap(), after)
    };
    let same = diff(&[&file, trace, "--as", "folded"]);
    assert!(lasting(&same).iter().all(|l| both(l).0 == both(l).1), "{same}");
    assert!(diff(&[&file, &file]).ends_with("No function has changed.\n"));
    let before: u64 = all.lines().map(|l| both(l).0).sum();
    assert_eq!(before, sum(&folded(&fs::read_to_string(&file).unwrap())));
    assert!(diff(&[trace, other, "--as", "flame"]).starts_with("<?xml"));
}

#[test]
fn graphs_are_well_formed() {
    let Some(program) = shares().filter(|_| possible()) else { return };
    let dir = lab::scratch();
    let file = |name: &str| dir.join(name).display().to_string();
    let (up, down, pprof) = (file("up.svg"), file("down.svg"), file("p.pb"));
    let flame = |f: &str| format!("flame={f}");
    let views = [flame(&up), format!("pprof={pprof}")];
    with_stats(&["--as", &views[0], "--as", &views[1]], &[&program, "burn", "20"]);
    with_stats(&["--as", &flame(&down), "--icicle", "--group", "thread"], &[&program, "burn", "20"]);
    assert!(fs::metadata(&pprof).unwrap().len() > 100);
    for svg in [&up, &down] {
        let text = fs::read_to_string(svg).unwrap();
        assert!(text.contains("three_parts") && text.contains("burn 20"), "{svg}");
        if has("python3") {
            let parse = "import sys, xml.dom.minidom as m; print(m.parse(sys.argv[1]).documentElement.tagName)";
            let out = lab::run(Command::new("python3").args(["-c", parse, svg]));
            assert_eq!(out.out().trim(), "svg", "{}", out.stderr);
        }
    }
}

#[test]
fn an_interpreter_is_profiled() {
    if !has("python3") || !possible() {
        return;
    }
    let script = "n = 0\nfor i in range(3000000): n += i % 7";
    let (out, stats) = with_stats(&["--as", "folded"], &["python3", "-c", script]);
    let lines = folded(&out.out());
    assert_eq!(Some(sum(&lines)), stats["profile"]["samples"].as_u64());
    let eval = |(names, n): &(Vec<String>, u64)| if names.iter().any(|f| f.contains("Eval")) { *n } else { 0 };
    assert!(lines.iter().map(eval).sum::<u64>() > 0, "{}", out.out());
}

#[test]
fn events_are_counted_and_their_arguments_added_up() {
    let Some(program) = shares().filter(|_| possible()) else { return };
    let (out, stats) = with_stats(&["-e", "nanosleep", "--as", "folded"], &[&program, "sleep", "3"]);
    let lines = folded(&out.out());
    assert_eq!(stats["profile"]["unit"], "events");
    assert_eq!((weight(&lines, &["sleeps_long"]), weight(&lines, &["sleeps_short"])), (3, 3), "{}", out.out());
    let (out, stats) = with_stats(&["-e", "nanosleep", "--by", "dur", "--as", "folded"], &[&program, "sleep", "3"]);
    let lines = folded(&out.out());
    assert_eq!((&stats["profile"]["unit"], &stats["profile"]["samples"]), (&"nanoseconds".into(), &6.into()));
    assert!(weight(&lines, &["sleeps_long"]) >= 90_000_000 && weight(&lines, &["sleeps_short"]) >= 30_000_000);
    // What a read returns are bytes where somebody says so.
    let passwd = fs::metadata("/etc/passwd").unwrap().len();
    let options = ["-e", "read /retval >= 0/", "--by", "retval", "--unit", "bytes", "--as", "folded"];
    let (out, stats) = with_stats(&options, &["sh", "-c", "exec cat /etc/passwd >/dev/null"]);
    assert_eq!(stats["profile"]["unit"], "bytes");
    assert!(sum(&folded(&out.out())) >= passwd, "{}", out.out());
    let (out, _) = with_stats(&["-e", "software:page-faults:1", "--rows", "1"], &["true"]);
    assert!(out.out().contains(" events, of "), "{}", out.out());
}

/// Whether the kernel reports when a thread is back on a CPU.
fn has_off_cpu() -> bool {
    if !possible() {
        return false;
    }
    let known = lab::run(&mut lab::trapline(User::Me, &["list", "rawtracepoint:sched_exit_tp"])).code() == 0;
    if !known {
        testkit::skip("kernel:6.16", "no tracepoint sched_exit_tp");
    }
    known && Path::new("/sys/kernel/tracing/events/sched").is_dir()
}

#[test]
fn time_asleep_is_measured_by_stack() {
    let Some(program) = shares().filter(|_| has_off_cpu()) else { return };
    let options = ["--off-cpu", "--as", "folded"];
    let (out, stats) = with_stats(&options, &[&program, "sleep", "5"]);
    let lines = folded(&out.out());
    // No sleep is shorter than was asked for, and a busy machine makes both longer.
    let (long, short) = (weight(&lines, &["main", "sleeps_long"]), weight(&lines, &["main", "sleeps_short"]));
    assert!(long >= 150_000_000 && short >= 50_000_000, "{}", out.out());
    let off = &stats["profile"]["off_cpu"];
    assert_eq!((&off["unpaired"], &off["blocked_at_begin"]), (&0.into(), &0.into()), "{stats}");
    assert_eq!(stats["profile"]["weight"].as_u64(), Some(sum(&lines)));
}

#[test]
fn running_and_blocked_time_are_in_one_profile() {
    let Some(program) = testkit::compile("gcc", "cookbook_shop", "cookbook/shop.c", &["-g", "-O1"]) else { return };
    lab::each_user(|user| {
        let dir = lab::scratch();
        testkit::open_to_all(&dir, 0o777);
        let args = ["profile", "--wall", "--as", "folded", "-o", "trace", "--", &program];
        let out = lab::run(lab::trapline(user, &args).current_dir(&dir));
        assert_eq!(out.code(), 0, "{}", out.stderr);
        // What is recorded is what was shown.
        let report = lab::run(lab::trapline(user, &["report", "trace", "--as", "folded"]).current_dir(&dir));
        assert_eq!((report.code(), report.out()), (0, out.out()), "{}", report.stderr);
        // Sixteen naps of 2 ms and four of 30; a look every few milliseconds sees them as it can.
        let blocked = weight(&folded(&out.out()), &["main", "order", "ask_the_store", "[blocked]"]);
        let least = if user == User::Me && testkit::is_root() { 150_000_000 } else { 20_000_000 };
        assert!(blocked >= least, "{blocked}: {}", out.out());
    });
}

#[test]
fn threads_that_do_not_run_are_recorded_by_themselves() {
    let Some(program) = shares() else { return };
    lab::each_user(|user| {
        let dir = lab::scratch();
        testkit::open_to_all(&dir, 0o777);
        let run = |args: &[&str]| lab::run(lab::trapline(user, args).current_dir(&dir));
        let probe = "blocked:ms:2 ustack comm";
        let out = run(&["record", "-o", "trace", "-e", probe, "--", &program, "sleep", "5"]);
        assert_eq!(out.code(), 0, "{}", out.stderr);
        let lines = folded(&run(&["report", "trace", "--as", "folded"]).out());
        // 150 ms and 50; looks see all of it but the first and the last part of each sleep. The caller is kept in rbp.
        let (long, short) = (weight(&lines, &["sleeps_long"]), weight(&lines, &["sleeps_short"]));
        assert!(long >= 75_000_000 && short >= 10_000_000, "{long} {short} {}", out.stderr);
        let refused = run(&["record", "-o", "other", "--backend", "kernel", "-e", probe, "--", &program, "sleep", "5"]);
        assert!(refused.code() == 125 && !dir.join("other").exists(), "{}", refused.stderr);
        let why = ["do not see threads that do not run", "kernel backend", "root"];
        assert!(why.iter().any(|why| refused.stderr.contains(why)), "{}", refused.stderr);
    });
}

#[test]
fn who_woke_a_thread_is_in_its_stack() {
    let Some(program) = shares().filter(|_| has_off_cpu()) else { return };
    let dir = lab::scratch().join("trace").display().to_string();
    let (live, _) = with_stats(&["--off-cpu", "--wakers", "--as", "folded", "-o", &dir], &[&program, "wake", "10"]);
    let out = lab::run(&mut lab::trapline(User::Me, &["report", &dir, "--as", "folded", "--wakers"]));
    assert_eq!(out.out(), live.out());
    let lines = folded(&out.out());
    let woken = weight(&lines, &["main", "waits", "-- waker --", "wakes", "waker", "[shares]"]);
    assert!(woken >= 50_000_000, "{}", out.out());
    // Without wakers the same time has the stacks of who was blocked alone.
    let out = lab::run(&mut lab::trapline(User::Me, &["report", &dir, "--as", "folded"])).out();
    assert_eq!((sum(&folded(&out)), weight(&folded(&out), &["-- waker --"])), (sum(&lines), 0));
}

#[test]
fn a_thread_that_was_blocked_before_is_counted_and_not_guessed() {
    let Some(program) = shares().filter(|_| has_off_cpu()) else { return };
    let mut target = lab::start(&mut lab::as_user(User::Me, &[program.as_str(), "forever"]));
    target.must_run();
    let stats = lab::scratch().join("stats");
    let (pid, file) = (target.pid().to_string(), stats.display().to_string());
    let out = profile(User::Me, &["--off-cpu", "--duration", "0.5", "-p", &pid, "--stats", &file, "--as", "folded"]);
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let stats = stats_of(&stats);
    let off = &stats["profile"]["off_cpu"];
    assert_eq!((&off["unpaired"], &off["idle"]), (&0.into(), &0.into()), "{stats}");
    assert!(off["blocked_at_begin"].as_u64() <= Some(1) && off["blocked_at_end"].as_u64() <= Some(1), "{stats}");
    assert!(weight(&folded(&out.out()), &["main", "sleeps_short"]) >= 10_000_000, "{}", out.out());
}

#[test]
fn the_table_is_drawn_again_on_a_terminal_until_ctrl_c() {
    let Some(program) = shares().filter(|_| possible()) else { return };
    let mut target = lab::start(&mut lab::as_user(User::Me, &[program.as_str(), "burn", "100000"]));
    target.must_run();
    let pid = target.pid().to_string();
    let steps = ["spin", "", "spin", r"\x03"];
    let Some(shown) = on_terminal(User::Me, &steps, &["profile", "-p", &pid]) else { return };
    assert!(shown.contains("STATUS 0"), "{shown}");
    let (live, last) = shown.rsplit_once("\x1b[H\x1b[J").unwrap_or_else(|| panic!("{shown}"));
    assert!(live.matches("\x1b[H").count() >= 2, "{shown}");
    // What stays is the table alone.
    assert!(!last.contains('\x1b') && last.contains("spin") && last.contains(" samples, one every "), "{shown}");
    target.must_run();
    // What is binary is not for a terminal.
    let args = ["profile", "--as", "pprof", "true"];
    let shown = on_terminal(User::Me, &[], &args).unwrap_or_default();
    assert!(shown.contains("--as pprof=FILE") && shown.contains("STATUS 2"), "{shown}");
}

#[test]
fn a_mistake_is_one_line() {
    let dir = lab::scratch();
    let file = |name: &str, text: &str| -> String {
        let path: PathBuf = dir.join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (no_lines, no_trace) = (file("no_lines", "a;b\n"), dir.display().to_string());
    let cases: &[(&[&str], i32, &str)] = &[
        (&["-F", "0", "true"], 2, "not a number of samples per second"),
        (&["--as", "tree", "true"], 2, "no such view"),
        (&["-F", "99", "-e", "openat", "true"], 2, "cannot be used with"),
        (&["--wakers", "true"], 2, "--off-cpu"),
        (&["-ff", "true"], 2, "covers all threads"),
        (&["--off-cpu", "-e", "openat", "true"], 2, "given together with -e"),
        (&["-e", "openat", "--by", "args.nope", "true"], 2, "has no such number"),
        (&["-e", "openat", "--by", "filename", "true"], 2, "has no such number"),
        (&["--by", "dur", "true"], 2, "has no duration"),
        (&["-e", "no_such_call", "true"], 2, "no_such_call"),
        (&["--backend", "ptrace", "true"], 125, "only the kernel backend"),
        (&["diff", "/no/such", "/etc/passwd"], 125, "/no/such"),
        (&["diff", &no_lines, &no_lines], 125, "line 1 is no folded stack"),
        (&["diff", &no_trace, &no_trace], 125, "name a trace"),
        (&["diff", &no_lines], 2, "not given"),
        (&["diff", "--as", "pprof", &no_lines, &no_lines], 2, "no such view of a difference"),
        (&[], 2, "nothing to trace"),
    ];
    for (args, code, words) in cases {
        let out = profile(User::Me, args);
        assert_eq!((out.code(), out.stderr.lines().count()), (*code, 1), "{args:?}: {}", out.stderr);
        assert!(out.stderr.contains(words) && out.out().is_empty(), "{args:?}: {}", out.stderr);
    }
}

#[test]
fn a_trace_without_stacks_has_no_profile() {
    let trace = lab::scratch().join("trace").display().to_string();
    let args = ["record", "--backend", "ptrace", "-q", "-o", &trace, "-e", "getppid", "--", "true"];
    assert_eq!(lab::run(&mut lab::trapline(User::Me, &args)).code(), 0);
    let cases: &[(&[&str], i32, &str)] = &[
        (&["--as", "table"], 125, "none of its selected events has a stack"),
        (&["--icicle"], 2, "it is for flame graphs"),
        (&["--order", "self"], 2, "it is for profiles"),
        (&["--as", "flame", "--off-cpu"], 125, "none of its selected events has a stack"),
    ];
    for (args, code, words) in cases {
        let out = lab::run(&mut lab::trapline(User::Me, &[&["report", trace.as_str()], *args].concat()));
        assert_eq!((out.code(), out.stderr.lines().count()), (*code, 1), "{args:?}: {}", out.stderr);
        assert!(out.stderr.contains(words) && out.out().is_empty(), "{args:?}: {}", out.stderr);
    }
    let out = profile(User::Me, &["diff", &trace, &trace]);
    assert!(out.code() == 125 && out.stderr.contains("none of its selected events has a stack"), "{}", out.stderr);
}

#[test]
fn who_may_not_use_it_is_told_how_to() {
    if !lab::is_root() || !has("setpriv") {
        return lab::skip("unprivileged", "nobody to be");
    }
    for options in [&["--unwind", "tables", "true"][..], &["--off-cpu", "true"], &["-e", "uprobe:libc:malloc", "true"]]
    {
        let out = profile(User::Nobody, options);
        assert_eq!((out.code(), out.stderr.lines().count()), (125, 1), "{}", out.stderr);
        assert!(out.stderr.contains("root"), "{}", out.stderr);
    }
}
