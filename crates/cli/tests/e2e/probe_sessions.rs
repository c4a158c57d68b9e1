//! Sessions with probes: how they begin and end, what they refuse, and what they report of their probes.

use crate::kernel::possible;
use crate::lab::{self, User};
use crate::probes::{drains, options, read, record, refused, tools};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Stdio;

#[test]
fn two_sessions_are_independent() {
    let Some(p) = tools("probes") else { return };
    let entry = format!("uprobe:{p}:worked");
    let start = |filter: &str, n: &str| {
        let (words, dir, stats) = options(&["-e", &format!("{entry} /{filter}/")], &[&p, n]);
        let mut child = lab::trapline(User::Me, &words);
        child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        (lab::start(&mut child), dir, stats)
    };
    let (mut a, b) = (start("args.arg0 < 3", "20"), start("args.arg0 >= 3", "30"));
    // Both have begun; the first ends before the second goes on.
    let ends = |mut s: (lab::Running, PathBuf, PathBuf)| {
        drop(s.0.child.stdin.take());
        let out = s.0.end();
        assert_eq!(out.code(), 0, "{}", out.stderr);
        read(s.1, s.2, out)
    };
    lab::until("both sessions", || drains(a.0.pid()) && drains(b.0.pid()));
    assert!(a.0.child.try_wait().expect("wait").is_none());
    let (a, b) = (ends(a), ends(b));
    assert_eq!((a.count(&entry, "seen"), b.count(&entry, "seen")), (20, 30));
    assert_eq!((a.count(&entry, "recorded"), b.count(&entry, "recorded")), (3, 27));
}

#[test]
fn a_process_that_runs_is_attached_to() {
    let Some(p) = tools("hits") else { return };
    let mut target = lab::as_user(User::Me, &[&p, "wait"]);
    let mut target = lab::start(target.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let probe = format!("uprobe:{p}:rare");
    let (words, dir, stats) = options(&["-e", &probe, "-p", &target.pid().to_string()], &[]);
    let words: Vec<String> = words.into_iter().filter(|w| w != "--").collect();
    let running = lab::start(lab::trapline(User::Me, &words).stdout(Stdio::piped()).stderr(Stdio::piped()));
    lab::until("the attach", || drains(running.pid()));
    drop(target.child.stdin.take());
    let out = running.end();
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let r = read(dir, stats, out);
    assert_eq!(r.numbers(&probe, "arg0"), [0, 1, 2]);
    drop(target);
}

#[test]
fn nothing_is_left_behind_when_trapline_is_killed() {
    let Some(p) = tools("hits") else { return };
    let probe = |f: &str| format!("uprobe:{p}:{f}");
    for round in 0..4u64 {
        let before = crate::kernel::objects();
        let (words, ..) = options(
            &[
                "-e",
                &probe("*"),
                "-e",
                &format!("uretprobe:{p}:rare"),
                "-e",
                "profile:hz:99,tracepoint:sched:sched_switch",
            ],
            &[&p, "wait"],
        );
        let mut running = lab::trapline(User::Me, &words);
        let running = lab::start(running.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()));
        if round % 2 == 0 {
            lab::until("the session", || drains(running.pid()));
        } else {
            std::thread::sleep(std::time::Duration::from_millis(20 * round));
        }
        let mut ours: BTreeSet<_> = crate::kernel::objects().difference(&before).copied().collect();
        assert!(round % 2 == 1 || ours.iter().any(|o| o.0 == "link"), "{ours:?}");
        lab::kill("KILL", running.pid().into());
        let gone = || lab::status_field(running.pid(), "State").is_none_or(|s| s.starts_with('Z'));
        lab::until("trapline's end", gone);
        ours.extend(crate::kernel::objects().difference(&before));
        let left = || crate::kernel::objects().intersection(&ours).next().is_some();
        lab::until("an end of all programs, maps and links", || !left());
    }
}

#[test]
fn trapline_itself_is_never_an_event() {
    if !possible() {
        return;
    }
    let mut other = lab::as_user(User::Me, &["sh", "-c", "while sleep 0.01; do echo; done"]);
    let other = lab::start(other.stdout(Stdio::null()));
    let scratch = lab::scratch();
    let text = scratch.join("text");
    let view = format!("text={}", text.display());
    let write = "tracepoint:syscalls:sys_enter_write";
    let switch = "tracepoint:sched:sched_switch";
    let (words, dir, stats) =
        options(&["-a", "--duration", "0.4", "--as", &view, "-e", write, "-e", switch, "-e", "profile:hz:199"], &[]);
    let words: Vec<String> = words.into_iter().filter(|w| w != "--").collect();
    let running = lab::start(lab::trapline(User::Me, &words).stdout(Stdio::piped()).stderr(Stdio::piped()));
    let own = running.pid();
    let out = running.end();
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let r = read(dir, stats, out);
    assert!(r.events.iter().any(|e| e["pid"] == other.pid() && e["name"] == write), "nobody else was seen");
    let mine: Vec<&Value> = r.events.iter().filter(|e| e["pid"] == own).collect();
    assert!(mine.is_empty(), "{mine:?}");
}

#[test]
fn what_cannot_be_enabled_is_refused_in_one_line() {
    let Some(p) = tools("probes") else { return };
    let u = |rest: &str| format!("uprobe:{p}:{rest}");
    let says = |words: &[&str], code: i32, parts: &[&str]| {
        let (status, line) = refused(User::Me, words);
        assert_eq!(status, code, "{line}");
        for part in parts {
            assert!(line.contains(part), "no '{part}' in {line}");
        }
    };
    says(&["-e", &u("wroked")], 2, &["no such probe", "did you mean", "worked"]);
    says(&["-e", "tracepiont:a:b"], 2, &["no such provider", "did you mean tracepoint"]);
    says(&["-e", &u("worked"), "-e", &u("wor*")], 2, &["worked", "enabled twice"]);
    says(&["-e", "begin,begin"], 2, &["begin", "enabled twice"]);
    says(&["-e", "begin /pid == 1/"], 2, &["takes no filter"]);
    says(&["-e", "read /retval < 0/", "-e", "read,write /retval < 0/"], 2, &["syscall:read", "enabled twice"]);
    let counters = |n: u32| (1..=n).map(|i| format!("software:context-switches:{i}")).collect::<Vec<_>>().join(",");
    says(&["-e", &counters(4097)], 2, &["4097 probes are enabled", "at most 4096"]);
    says(&["-e", &format!("{} /args.no == 1/", u("worked"))], 2, &["F0003", "args.no", "column 1", "arg0, arg1"]);
    says(&["-e", &format!("{} /args.arg0 ==/", u("worked"))], 2, &["column"]);
    says(&["-e", &format!("{} /dur > 1/", u("worked"))], 2, &["F0012", "dur"]);
    says(&["-e", &format!("{} /pid == 1", u("worked"))], 2, &["not closed"]);
    says(&["-e", "read /args.no == 1/"], 2, &["F0003", "args.no"]);
    says(&["-e", ""], 2, &["no probe"]);
    says(&["-e", "!all"], 2, &["nothing is enabled"]);
    says(&["-e", &u("worked"), "--backend", "ptrace"], 125, &["only the kernel backend", "--backend ptrace"]);
    says(&["-e", "read kstack", "--backend", "ptrace"], 125, &["only the kernel backend"]);
    says(&["-e", &u("worked"), "--on-full", "block"], 125, &["only the kernel backend", "--on-full block"]);
    if lab::has("setpriv") {
        let (code, line) = refused(User::Nobody, &["-e", "interval:s:1"]);
        assert_eq!(code, 125, "{line}");
        let needed = if lab::paranoid() > 2 { "kernel.perf_event_paranoid" } else { "cap_bpf" };
        assert!(line.contains("run as root") && line.contains(needed), "{line}");
    }
}

#[test]
fn what_has_not_fired_is_explained() {
    let Some(p) = tools("hits") else { return };
    let says = |probe: &str, command: &[&str], why: &str| {
        let r = record(&["-e", probe], command);
        let of: Vec<&str> = r.out.stderr.lines().filter(|l| l.contains("nothing recorded")).collect();
        let [line] = of[..] else { panic!("{}", r.out.stderr) };
        assert!(line.ends_with(why), "{line}");
    };
    let probe = format!("uprobe:{p}:down");
    says(&probe, &[&p, "calls", "1"], "nothing recorded: never reached");
    says(&format!("{probe} /args.arg0 > 9 && pid > 0/"), &[&p, "deep", "9"], "all 9 filtered by 'args.arg0 > 9'");
    says(&probe, &["true"], "hits was never executed or mapped by the target");
    // The same name elsewhere.
    let copy = lab::scratch().join("hits");
    std::fs::copy(&p, &copy).expect("a copy");
    says(&probe, &[copy.to_str().expect("UTF-8"), "deep", "3"], &format!("; {} was", copy.display()));
}

#[test]
fn other_readers_find_as_many_events() {
    let Some(p) = tools("probes") else { return };
    if !lab::has("babeltrace2") {
        return lab::skip("package:babeltrace2", "no babeltrace2");
    }
    let r = record(
        &[
            "-e",
            &format!("uprobe:{p}:worked,uretprobe:{p}:worked,usdt:{p}:lab:* ustack=4 kstack comm"),
            "-e",
            "tracepoint:sched:sched_process_exec,tracepoint:sched:sched_switch kstack=8",
            "-e",
            "openat /retval >= 0/",
            "-e",
            "profile:hz:499,software:page-faults:1,begin,end",
        ],
        &[&p, "100"],
    );
    let argv = ["timeout", "60", "prlimit", "--as=2147483648", "babeltrace2", r.dir.to_str().expect("UTF-8")];
    let out = lab::run(&mut lab::as_user(User::Me, &argv));
    assert_eq!((out.code(), out.stderr.as_str()), (0, ""));
    let counts = |probe: &str| out.out().lines().filter(|l| l.contains(&format!(" {probe}: "))).count();
    let probes: BTreeSet<&str> =
        r.events.iter().filter(|e| e["type"] == "probe").filter_map(|e| e["name"].as_str()).collect();
    assert!(probes.len() >= 8, "{probes:?}");
    for probe in probes {
        assert_eq!(counts(probe), r.of(probe).len(), "{probe}");
    }
    assert_eq!(counts("syscall:openat"), r.of("openat").len());
    let switches = out.out();
    let mut switches = switches.lines().filter(|l| l.contains(" tracepoint:sched:sched_switch: "));
    assert!(switches.all(|l| l.contains("kstack = 0x")), "{}", out.out());
    assert!(counts("process:stack") > 0);
}

#[test]
fn the_plan_names_each_probe_and_the_cost_is_measured() {
    let Some(tool) = tools("probes") else { return };
    // A file of its own: a program at a place runs for every process that
    // comes by there, so for those of other tests too.
    let p = lab::scratch().join("probes").display().to_string();
    std::fs::copy(tool, &p).expect("a copy");
    let entry = format!("uprobe:{p}:worked");
    let r = record(
        &["--explain", "--cost", "-e", &format!("{entry} /args.arg0 < 5/ comm"), "-e", "profile:hz:99"],
        &[&p, "50"],
    );
    for line in [
        &format!("trapline: probe: {entry}: uprobe_multi, else perf uprobes, at 1 place") as &str,
        "trapline:   fields: arg0, arg1, arg2, arg3, arg4, arg5, comm",
        "trapline:   filter, in its program: args.arg0 < 5",
        "trapline: probe: profile:hz:99: a perf clock on every CPU",
        "trapline: probes: rings of",
    ] {
        assert!(r.out.stderr.lines().any(|l| l.starts_with(line)), "no '{line}' in {}", r.out.stderr);
    }
    let programs = r.stats["cost"]["programs"].as_array().expect("measured");
    let own = programs.iter().find(|c| c["name"] == entry.as_str()).unwrap_or_else(|| panic!("{}", r.stats));
    assert_eq!(own["runs"], 50);
    assert!(own["ns"].as_u64().unwrap() > 0 && r.stats["cost"]["drain_ns"].as_u64().unwrap() > 0);
    assert!(r.out.stderr.contains(&format!("cost: {entry}: ")), "{}", r.out.stderr);
}

#[test]
fn a_session_that_ends_before_its_target_counts_exactly() {
    let Some(p) = tools("hits") else { return };
    let mut target = lab::as_user(User::Me, &[&p, "flood", "4000000000", "0"]);
    let target = lab::start(target.stdout(Stdio::null()));
    let (hot, call) = (format!("uprobe:{p}:hot"), "tracepoint:sched:sched_switch");
    let pid = target.pid().to_string();
    let filter = format!("{hot} /args.arg0 % 1000 == 0/");
    let (words, dir, stats) = options(&["-p", &pid, "--duration", "0.3", "-e", &filter, "-e", &hot, "-e", call], &[]);
    let words: Vec<String> = words.into_iter().filter(|w| w != "--").collect();
    let out = lab::run(&mut lab::trapline(User::Me, &words));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let r = read(dir, stats, out);
    assert!(r.count(&hot, "filtered") > 0 && r.count(&hot, "recorded") > 0, "{}", r.stats);
    r.count(call, "seen");
    drop(target);
}
