//! Probes other than calls, each on something that really happens: exact counts, arguments, filters, and what is said when
//! nothing comes.

use crate::kernel::possible;
use crate::lab::{self, Outcome, User};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Stdio;

/// A recording: its trace, what was said, what was counted.
pub struct Recorded {
    pub dir: PathBuf,
    pub out: Outcome,
    pub stats: Value,
    /// Of `report --as json`.
    pub events: Vec<Value>,
}

impl Recorded {
    pub fn of(&self, probe: &str) -> Vec<&Value> {
        self.events.iter().filter(|e| e["name"] == probe).collect()
    }

    /// A counter of `--stats`, which must hold together: seen = recorded + dropped + filtered.
    #[track_caller]
    pub fn count(&self, probe: &str, counter: &str) -> u64 {
        let counts = &self.stats["probes"][probe];
        let number = |name: &str| counts[name].as_u64().unwrap_or_else(|| panic!("{probe}.{name}: {}", self.stats));
        assert_eq!(number("seen"), number("recorded") + number("dropped") + number("filtered"), "{probe}: {counts}");
        assert_eq!(number("recorded"), self.of(probe).len() as u64, "{probe}: {counts}");
        number(counter)
    }

    pub fn numbers(&self, probe: &str, arg: &str) -> Vec<i64> {
        self.of(probe).iter().map(|e| e["args"][arg].as_i64().unwrap_or_else(|| panic!("{arg}: {e}"))).collect()
    }
}

/// The options of a recording, its trace and its statistics.
pub fn options(options: &[&str], command: &[&str]) -> (Vec<String>, PathBuf, PathBuf) {
    let scratch = lab::scratch();
    let (dir, stats) = (scratch.join("trace"), scratch.join("stats"));
    let own = ["record", "-o", dir.to_str().expect("UTF-8"), "--stats", stats.to_str().expect("UTF-8")];
    let words = own.iter().chain(options).chain(&["--"]).chain(command);
    (words.map(|w| w.to_string()).collect(), dir, stats)
}

/// Reads back what was recorded.
#[track_caller]
pub fn read(dir: PathBuf, stats: PathBuf, out: Outcome) -> Recorded {
    let text = std::fs::read_to_string(stats).unwrap_or_else(|e| panic!("{e}: {}", out.stderr));
    let report = lab::run(&mut lab::trapline(User::Me, &["report", "--as", "json", dir.to_str().expect("UTF-8")]));
    assert_eq!(
        (report.code(), report.stderr.lines().filter(|l| !l.contains("dropped")).count()),
        (0, 0),
        "{}",
        report.stderr
    );
    let events = report.out().lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    Recorded { dir, out, stats: serde_json::from_str(&text).expect("JSON"), events }
}

#[track_caller]
pub fn record(with: &[&str], command: &[&str]) -> Recorded {
    let (words, dir, stats) = options(with, command);
    let out = lab::run(&mut lab::trapline(User::Me, &words));
    assert_eq!(out.code(), 0, "{words:?}: {}", out.stderr);
    read(dir, stats, out)
}

/// What a command line that is refused says: its exit status and its only line.
#[track_caller]
pub fn refused(user: User, words: &[&str]) -> (i32, String) {
    let all = [&["record"], words, &["--", "true"]].concat();
    let out = lab::run(&mut lab::trapline(user, &all));
    assert_eq!(out.stderr.lines().count(), 1, "{words:?}: {}", out.stderr);
    (out.code(), out.stderr)
}

/// Whether trapline has attached everything: then it starts the drain thread.
pub fn drains(pid: u32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut names = tasks.map(|t| std::fs::read_to_string(t.path().join("comm")).unwrap_or_default());
    names.any(|n| n.trim() == "trapline-drain")
}

pub fn tools(program: &str) -> Option<String> {
    if possible() { lab::program(program) } else { None }
}

#[test]
fn functions_and_static_probes_are_counted_with_their_arguments() {
    let Some(p) = tools("probes") else { return };
    let [entry, back] = ["uprobe", "uretprobe"].map(|kind| format!("{kind}:{p}:worked"));
    let [step, plain] = ["step", "plain"].map(|name| format!("usdt:{p}:lab:{name}"));
    let r = record(&["-e", &entry, "-e", &back, "-e", &format!("usdt:{p}:lab:*")], &[&p, "25"]);
    // The program saw the semaphore raised each time.
    assert_eq!(r.out.out(), format!("ready\n{} 25\n", (0..25).sum::<i64>() + 25_000));
    let upto: Vec<i64> = (0..25).collect();
    assert_eq!(r.numbers(&entry, "arg0"), upto);
    assert!(r.numbers(&entry, "arg2").iter().all(|n| *n == 1000));
    assert_eq!(r.numbers(&back, "retval"), upto.iter().map(|i| i + 1000).collect::<Vec<_>>());
    assert_eq!((r.numbers(&step, "arg0"), r.numbers(&plain, "arg0")), (upto.clone(), upto));
    assert!(r.numbers(&step, "arg2").iter().all(|n| *n == -7));
    for probe in [&entry, &back, &step, &plain] {
        assert_eq!((r.count(probe, "seen"), r.count(probe, "dropped"), r.count(probe, "missed")), (25, 0, 0));
    }
    assert_eq!(r.stats["enablings"][1]["entered"], 25);
}

#[test]
fn filters_of_functions_count_what_each_part_rejects() {
    let Some(p) = tools("probes") else { return };
    let (entry, back) = (format!("uprobe:{p}:worked"), format!("uretprobe:{p}:worked"));
    let plain = format!("usdt:{p}:lab:plain");
    let r = record(
        &[
            "-e",
            &format!("{entry} /args.arg0 % 2 == 0 && args.arg0 >= 10 && comm == \"probes\"/"),
            "-e",
            &format!("{back} /retval >= 1020/"),
            "-e",
            &format!("{plain} /args.arg0 == 7 && pid == tid && cpu >= 0 && nsecs > 0 && uid < 1000000/ comm"),
            "-e",
            &format!("{entry} /args.arg0 < 0/ kstack"),
        ],
        &[&p, "30"],
    );
    assert_eq!(r.numbers(&entry, "arg0"), [10, 12, 14, 16, 18, 20, 22, 24, 26, 28]);
    assert_eq!(r.numbers(&back, "retval"), (1020..1030).collect::<Vec<_>>());
    assert_eq!(r.numbers(&plain, "arg0"), [7]);
    assert_eq!(r.of(&plain)[0]["args"]["comm"], "probes");
    // Two enablings of one probe count together there, and each for itself here.
    assert_eq!((r.count(&entry, "seen"), r.count(&entry, "filtered")), (60, 50));
    let rejected = |i: usize| -> Vec<u64> {
        let parts = r.stats["enablings"][i]["filter"].as_array().expect("parts");
        parts.iter().map(|p| p["rejected"].as_u64().expect("a number")).collect()
    };
    assert_eq!(rejected(0).iter().sum::<u64>(), 20);
    assert_eq!((rejected(0)[2], rejected(1), rejected(3)), (0, vec![20], vec![30]));
    assert_eq!((rejected(2)[0], rejected(2).iter().sum::<u64>()), (29, 29));
    assert!(r.out.stderr.contains("nothing recorded: all 30 filtered by 'args.arg0 < 0'"), "{}", r.out.stderr);
    let stats = lab::run(&mut lab::trapline(User::Me, &["report", "--as", "stats", r.dir.to_str().expect("UTF-8")]));
    let said = stats.out();
    let line = said.lines().find(|l| l.ends_with("worked /retval >= 1020/")).unwrap_or_else(|| panic!("{said}"));
    assert_eq!(line.split_whitespace().take(5).collect::<Vec<_>>(), ["30", "10", "0", "20", "0"]);
}

#[test]
fn filters_read_strings_wherever_they_are() {
    let Some(p) = tools("hits") else { return };
    // In the record of a tracepoint, in the kernel, in the process.
    let exec = "tracepoint:sched:sched_process_exec";
    let open = "tracepoint:syscalls:sys_enter_openat";
    let exit = "tracepoint:sched:sched_process_exit";
    let script = format!("{p} calls 1; {p} calls 2; cat /etc/hostname >/dev/null; :");
    let r = record(
        &[
            "-e",
            &format!("{exec} /args.filename == \"{p}\"/"),
            "-e",
            &format!("{open} /startswith(args.filename, \"/etc/host\")/"),
            "-e",
            &format!("{exit} /args.comm == \"hits\"/"),
        ],
        &["sh", "-c", &script],
    );
    let names = |probe, arg: &str| r.of(probe).iter().map(|e| e["args"][arg].clone()).collect::<Vec<_>>();
    assert_eq!(names(exec, "filename"), [p.as_str(), &p]);
    assert_eq!(names(open, "filename"), ["/etc/hostname"]);
    assert_eq!(names(exit, "comm"), ["hits", "hits"]);
    // sh, two of hits, cat.
    assert_eq!((r.count(exec, "seen"), r.count(exit, "seen")), (4, 4));
    assert!(r.count(open, "filtered") > 0);
}

#[test]
fn filters_of_calls_stand_beside_other_probes() {
    let Some(p) = tools("probes") else { return };
    let entry = format!("uprobe:{p}:worked");
    let missing = lab::scratch().join("missing").display().to_string();
    let script = format!("cat {missing} {missing} {p} >/dev/null 2>&1; {p} 3 >/dev/null");
    let r = record(
        &[
            "-e",
            "syscall:openat /retval == -ENOENT && args.flags & O_WRONLY || retval == -ENOENT/",
            "-e",
            &entry,
            "-e",
            "getppid",
        ],
        &["sh", "-c", &script],
    );
    let opened = r.of("openat");
    assert!(opened.len() >= 2 && opened.iter().all(|e| e["errno"] == "ENOENT"), "{opened:?}");
    assert_eq!(opened.iter().filter(|e| e["args"]["filename"] == missing.as_str()).count(), 2);
    let counts = &r.stats["probes"]["syscall:openat"];
    assert_eq!(counts["recorded"], opened.len());
    assert_eq!(counts["seen"].as_u64().unwrap(), opened.len() as u64 + counts["filtered"].as_u64().unwrap());
    assert!(counts["filtered"].as_u64().unwrap() >= 3, "{counts}");
    assert_eq!(r.count(&entry, "seen"), 3);
}

#[test]
fn a_call_is_the_same_by_both_of_its_names() {
    let Some(p) = tools("hits") else { return };
    for name in ["getppid", "syscall:getppid"] {
        let r = record(&["-e", name, "--backend", "kernel"], &[&p, "calls", "40"]);
        assert_eq!(r.of("getppid").len(), 40, "{name}");
    }
}

#[test]
fn the_ends_of_a_call_are_probes_of_their_own() {
    let Some(p) = tools("hits") else { return };
    let (entry, back) = ("syscall:getpgid:entry", "syscall:getpgid:return");
    let (words, dir, stats) = options(&["-e", entry, "-e", &format!("{back} /retval > 0/")], &[&p, "groups", "70"]);
    let r = read(dir, stats, lab::run(&mut lab::trapline(User::Me, &words)));
    assert_eq!((r.out.code(), r.count(entry, "seen"), r.count(back, "seen")), (0, 70, 70), "{}", r.out.stderr);
    assert_eq!((r.count(back, "filtered"), r.numbers(entry, "pid").len()), (0, 70));
    let groups = r.numbers(back, "retval");
    assert!(groups.len() == 70 && groups.iter().all(|g| *g > 0 && *g == groups[0]), "{groups:?}");
    let (code, said) = refused(User::Me, &["-e", "syscall:getpgidd:entry", "true"]);
    assert!(code == 2 && said.contains("getpgid"), "{said}");
}

#[test]
fn tracepoints_are_counted_and_only_those_of_the_target() {
    let Some(p) = tools("hits") else { return };
    let [enter, fork] = ["tracepoint:syscalls:sys_enter_getppid", "tracepoint:sched:sched_process_fork"];
    let script = format!("{p} calls 300; {p} calls 200; :");
    // Somebody else does the same meanwhile.
    let mut other = lab::as_user(User::Me, &[&p, "calls", "2000000"]);
    let other = lab::start(other.stdout(Stdio::null()));
    // The shell asks once itself.
    let own = format!("{enter} /comm == \"hits\"/");
    let r = record(&["-e", &own, "-e", fork, "-e", "begin,end"], &["sh", "-c", &script]);
    let pid = other.pid();
    drop(other);
    assert_eq!((r.count(enter, "recorded"), r.count(fork, "seen")), (500, 2));
    assert!(r.events.iter().all(|e| e["pid"] != pid));
    let names: Vec<&Value> = r.events.iter().map(|e| &e["name"]).collect();
    assert_eq!((names.first().unwrap().as_str(), names.last().unwrap().as_str()), (Some("begin"), Some("end")));
}

#[test]
fn page_faults_are_counted_with_their_addresses() {
    let Some(p) = tools("hits") else { return };
    let probe = "software:page-faults:1";
    let r = record(&["-e", probe], &[&p, "faults", "100"]);
    let first: u64 = r.out.out().trim().parse().expect("an address");
    let address = |e: &&Value| {
        let text = e["args"]["addr"].as_str().unwrap_or_else(|| panic!("{e}")).to_string();
        u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("hex")
    };
    let pages: BTreeSet<u64> = r.of(probe).iter().map(address).map(|a| a & !4095).collect();
    assert_eq!(pages.range(first..first + 100 * 4096).count(), 100);
    assert_eq!(r.count(probe, "dropped"), 0);
}

#[test]
fn clocks_tick() {
    let Some(p) = tools("hits") else { return };
    let (profile, interval) = ("profile:hz:199", "interval:ms:10");
    let started = std::time::Instant::now();
    let r = record(&["-e", &format!("{profile} ustack=5"), "-e", interval], &[&p, "burn", "300"]);
    let most = started.elapsed().as_millis() as u64 / 10 + 1;
    // 60 ticks hit the target, or fewer on a machine whose own clock is late.
    assert!((5..=most * 2).contains(&r.count(profile, "recorded")), "{}", r.stats);
    assert!((1..=most).contains(&r.count(interval, "recorded")), "{}", r.stats);
    let pids: BTreeSet<u64> = r.of(profile).iter().map(|e| e["pid"].as_u64().unwrap()).collect();
    assert_eq!(pids.len(), 1, "ticks of others");
    assert!(r.of(profile).iter().any(|e| !e["ustack"].as_array().unwrap().is_empty()));
}

#[test]
fn counters_of_the_processor_count_or_are_said_to_be_missing() {
    let Some(p) = tools("hits") else { return };
    let probe = "hardware:instructions:100000";
    let (words, dir, stats) = options(&["-e", &format!("{probe} ustack=2")], &[&p, "burn", "200"]);
    let out = lab::run(&mut lab::trapline(User::Me, &words));
    if out.code() != 0 {
        assert_eq!((out.code(), out.stderr.lines().count()), (125, 1), "{}", out.stderr);
        assert!(out.stderr.contains("hardware counters (a virtual machine often has none)"), "{}", out.stderr);
        return lab::skip("kernel:pmu", "this machine has no hardware counters");
    }
    let r = read(dir, stats, out);
    // 200 ms are at least a hundred million instructions.
    assert!(r.count(probe, "recorded") > 1000, "{}", r.stats);
    let pids: BTreeSet<u64> = r.of(probe).iter().map(|e| e["pid"].as_u64().unwrap()).collect();
    assert_eq!(pids.len(), 1, "counts of others");
    let other = record(&["-e", "hardware:cycles:1000000"], &[&p, "burn", "50"]);
    assert!(other.count("hardware:cpu-cycles:1000000", "recorded") > 0, "{}", other.stats);
}

#[test]
fn raw_tracepoints_have_the_arguments_of_the_place() {
    let Some(p) = tools("hits") else { return };
    let (enter, exit) = ("rawtracepoint:sys_enter", "rawtracepoint:sched_process_exit");
    // getppid is 110. The second argument is also known by its parameter's name.
    let own = format!("{enter} /args.arg1 == 110 && args.id == 110/ kstack=8");
    let r = record(&["-e", &own, "-e", exit], &[&p, "calls", "300"]);
    assert_eq!(r.numbers(enter, "arg1"), vec![110; 300]);
    assert_eq!((r.count(enter, "recorded"), r.count(exit, "seen")), (300, 1));
    let first = r.of(enter)[0]["kstack"].as_array().expect("a stack").clone();
    let address = |v: &Value| u64::from_str_radix(&v["address"].as_str().expect("text")[2..], 16).expect("hex");
    let names = symbols(&first.iter().map(address).collect::<Vec<_>>());
    assert!(names.iter().any(|n| n.contains("syscall")), "{names:?}");
    assert!(!names[0].starts_with("bpf"), "{names:?}");
}

#[test]
fn accesses_to_an_address_are_counted() {
    let Some(p) = tools("hits") else { return };
    let said = lab::scratch().join("said");
    let mut target = lab::as_user(User::Me, &[&p, "cells", "40"]);
    let to = std::fs::File::create(&said).expect("a file");
    let mut target = lab::start(target.stdin(Stdio::piped()).stdout(to));
    let text = || std::fs::read_to_string(&said).unwrap_or_default();
    lab::until("the addresses", || text().ends_with('\n'));
    let text = text();
    let (cell, code) = text.trim().split_once(' ').expect("two addresses");
    let [writes, all] = ["w", "rw"].map(|mode| format!("watchpoint:{cell}:4:{mode}"));
    let runs = format!("watchpoint:{code}:8:x");
    let with = ["-e", &writes, "-e", &format!("{all} /args.value >= 30/"), "-e", &runs];
    let (words, dir, stats) = options(&[&with[..], &["-p", &target.pid().to_string()]].concat(), &[]);
    let words: Vec<String> = words.into_iter().filter(|w| w != "--").collect();
    let running = lab::start(lab::trapline(User::Me, &words).stdout(Stdio::piped()).stderr(Stdio::piped()));
    lab::until("the attach", || drains(running.pid()));
    drop(target.child.stdin.take());
    let out = running.end();
    if out.stderr.contains("debug registers") {
        return lab::skip("debug registers", out.stderr.trim());
    }
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let r = read(dir, stats, out);
    assert_eq!(r.numbers(&writes, "value"), (0..40).collect::<Vec<_>>());
    assert!(r.of(&writes).iter().all(|e| e["args"]["addr"] == cell), "{:?}", r.of(&writes));
    // Ten writes of what passes, and the last number is read once.
    assert_eq!((r.count(&all, "seen"), r.count(&all, "recorded")), (41, 11));
    assert_eq!((r.count(&runs, "seen"), r.count(&runs, "dropped")), (1, 0));
    let said = lab::run(&mut lab::trapline(User::Me, &["record", "-a", "-e", &writes]));
    assert!(said.code() == 2 && said.stderr.contains("use -p PID, or a command"), "{}", said.stderr);
}

#[test]
fn what_functions_are_called_with_is_watched_from_the_first_call_on() {
    let Some(p) = tools("hits") else { return };
    let probe = format!("watchpoint:{p}:given+arg1:8:w");
    // Another session may have the registers of a moment.
    let (words, dir, stats) = options(&["-e", &probe], &[&p, "given", "6"]);
    let out = lab::run(&mut lab::trapline(User::Me, &words));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let said = out.stderr.clone();
    let r = read(dir, stats, out);
    let values = r.numbers(&probe, "value");
    let watched = values.iter().filter(|v| **v == 1).count();
    if watched == 0 {
        return lab::skip("debug registers", said.trim());
    }
    // Of each number all three writes are there: the process waits until it is watched. x86 has four registers.
    assert!(watched <= 4, "{values:?}");
    assert_eq!(values[..2 * watched], [1, 2].repeat(watched), "{said}");
    assert_eq!(values[2 * watched..], vec![12; watched], "{said}");
    let unwatched =
        format!("{probe}: the addresses of {} calls were not watched: all debug registers", 2 * (6 - watched));
    assert!(said.contains(&unwatched), "{said}");
    let odd = format!("watchpoint:{p}:given+arg0:8:w");
    let said = lab::run(&mut lab::trapline(User::Me, &["record", "-e", &odd, "--", &p, "given", "1"])).stderr;
    assert!(said.contains("nothing recorded") && !said.contains("not watched"), "{said}");
}

#[test]
fn a_flood_takes_nothing_from_a_rare_probe() {
    let Some(p) = tools("hits") else { return };
    let [hot, rare] = ["hot", "rare"].map(|f| format!("uprobe:{p}:{f}"));
    let r = record(&["--buffer", "4096", "-e", &hot, "-e", &rare], &[&p, "flood", "200000", "30"]);
    assert_eq!((r.count(&hot, "seen"), r.count(&rare, "seen")), (200_000, 30));
    assert!(r.count(&hot, "dropped") > 0, "no flood: {}", r.stats);
    assert_eq!((r.count(&rare, "dropped"), r.numbers(&rare, "arg0")), (0, (0..30).collect::<Vec<_>>()));
    let dropped = r.stats["dropped"].as_u64().unwrap();
    assert_eq!(dropped, r.count(&hot, "dropped"));
}

#[test]
fn many_probes_share_rings_and_are_counted_each_for_itself() {
    let Some(p) = tools("hits") else { return };
    let enter = "rawtracepoint:sys_enter";
    let all: Vec<String> = (1..=300).map(|n| format!("software:page-faults:{n}")).collect();
    let calls = |nr: u32| format!("{enter} /args.id == {nr}/");
    // getppid is 110; the others are three enablings of one class.
    let with = ["-e", &all.join(","), "-e", &calls(110), "-e", &calls(231), "-e", enter];
    let r = record(&with, &[&p, "calls", "200"]);
    let enablings = r.stats["enablings"].as_array().expect("a list");
    assert_eq!(enablings.len(), 303);
    for e in enablings {
        let of = |name: &str| e[name].as_u64().expect("a number");
        assert_eq!((of("seen"), of("dropped")), (of("recorded") + of("filtered"), 0), "{e}");
    }
    let recorded = |nth: usize| enablings[nth]["recorded"].as_u64().expect("a number");
    let seen = enablings[302]["seen"].as_u64().expect("a number");
    assert_eq!((recorded(300), recorded(301), recorded(302)), (200, 1, seen));
    assert_eq!(r.count(enter, "recorded"), 201 + seen);
    let faults = r.count("software:page-faults:1", "recorded");
    assert!(faults > 20 && r.count("software:page-faults:300", "recorded") < faults, "{faults}");
}

#[test]
fn returns_nested_too_deep_are_counted() {
    let Some(p) = tools("hits") else { return };
    let [entry, back] = ["uprobe", "uretprobe"].map(|kind| format!("{kind}:{p}:down"));
    let r = record(&["-e", &back, "-e", &entry], &[&p, "deep", "200"]);
    assert_eq!(r.out.out(), "200\n");
    assert_eq!(r.count(&entry, "seen"), 200);
    let returns = r.count(&back, "seen");
    // MAX_URETPROBE_DEPTH of the kernel is 64.
    assert_eq!((returns, r.stats["enablings"][0]["entered"].as_u64()), (64, Some(200)));
    assert!(r.out.stderr.contains("136 of 200 calls without a return"), "{}", r.out.stderr);
}

#[test]
fn functions_of_the_kernel_are_traced_or_refused_with_the_reason() {
    let Some(p) = tools("hits") else { return };
    for way in ["fentry", "fexit", "kprobe", "kretprobe"] {
        let probe = &format!("{way}:__x64_sys_getpgid");
        let (words, dir, stats) = options(&["-e", probe], &[&p, "groups", "70"]);
        let out = lab::run(&mut lab::trapline(User::Me, &words));
        if out.code() != 0 {
            assert_eq!((out.code(), out.stderr.lines().count()), (125, 1), "{}", out.stderr);
            assert!(out.stderr.contains("this kernel") && out.stderr.contains("kprobes"), "{}", out.stderr);
            assert!(out.stderr.contains("use a tracepoint"), "{}", out.stderr);
            lab::skip(if way.starts_with('f') { "fentry" } else { "kprobe" }, out.stderr.trim());
            continue;
        }
        assert_eq!(read(dir, stats, out).count(probe, "seen"), 70);
        let (filter, first): (_, &[&str]) = match way {
            "kretprobe" => ("retval == 7", &[]),
            "fexit" => ("args.count == 7 && retval == 7", &["vfs_read"]),
            _ => ("args.count == 7", &["vfs_read"]),
        };
        let probe = &format!("{way}:vfs_read");
        let dd = ["dd", "if=/dev/zero", "of=/dev/null", "bs=7", "count=50"];
        let r = record(&["-e", &format!("{probe} /{filter}/ kstack=3")], &dd);
        assert_eq!(r.count(probe, "recorded"), 50, "{}", r.out.stderr);
        assert_eq!(r.count(probe, "seen"), 50 + r.count(probe, "filtered"));
        let of = r.of(probe);
        let top = |e: &&Value| {
            let frame = e["kstack"][0]["address"].as_str().expect("a frame");
            u64::from_str_radix(&frame[2..], 16).expect("hex")
        };
        let tops = symbols(&of.iter().map(top).collect::<Vec<_>>());
        assert!(first.is_empty() || tops.iter().all(|t| first.contains(&t.as_str())), "{probe}: {tops:?}");
        let number = |e: &Value, of: &str| e["args"][of].as_u64().or(e[of].as_u64());
        let seven = if way.ends_with("ntry") || way == "kprobe" { "count" } else { "retval" };
        assert!(of.iter().all(|e| number(e, seven) == Some(7)), "{probe}: {of:?}");
    }
}

/// More functions than 64 share a program; a filter that is not the same for all of them has them apart.
#[test]
fn many_functions_share_a_program() {
    let Some(p) = tools("many") else { return };
    let calls = |n: u64| n % 7;
    let made: u64 = (10..100).map(calls).sum();
    for kind in ["uprobe", "uretprobe"] {
        let pattern = format!("{kind}:{p}:many_*");
        let r = record(&["-e", &format!("{pattern} comm"), "--cost"], &[&p]);
        assert_eq!(
            r.out.out(),
            format!("{}\n", (10..100).map(|n| (0..calls(n)).map(|i| i + n).sum::<u64>()).sum::<u64>())
        );
        for n in 10..100 {
            let name = format!("{kind}:{p}:many_{n}");
            let (arg, first) = if kind == "uprobe" { ("arg0", 0) } else { ("retval", n) };
            // An int in a register of 8 bytes.
            let values: Vec<u64> = r.numbers(&name, arg).iter().map(|v| *v as u64 & 0xffff_ffff).collect();
            assert_eq!(values, (0..calls(n)).map(|i| first + i).collect::<Vec<_>>(), "{name}");
            assert!(r.of(&name).iter().all(|e| e["args"]["comm"] == "many"));
            assert!(calls(n) == 0 || r.count(&name, "seen") == calls(n));
        }
        let [all] = &r.stats["enablings"].as_array().expect("a list")[..] else { panic!("{}", r.stats) };
        let entered = if kind == "uprobe" { None } else { Some(made) };
        assert_eq!((all["probe"].as_str(), all["seen"].as_u64()), (Some(&*pattern), Some(made)), "{all}");
        assert_eq!((all["recorded"].as_u64(), all["entered"].as_u64()), (Some(made), entered), "{all}");
        assert_eq!((r.count(&pattern, "seen"), r.count(&pattern, "dropped")), (0, 0));
        assert!(r.out.stderr.contains(&format!("cost: {pattern}: ")), "{}", r.out.stderr);
        let said = format!("{pattern}: the kernel can put no breakpoint at 1 of its places: {kind}:{p}:many_locked");
        assert!(r.out.stderr.contains(&said), "{}", r.out.stderr);
    }
    let pattern = format!("uprobe:{p}:many_*");
    // arg0 is an int: its upper half is whatever the register held.
    let r = record(&["-e", &format!("{pattern} /(uint32)args.arg0 >= 4/")], &[&p]);
    let passed: u64 = (10..100).map(|n| calls(n).saturating_sub(4)).sum();
    assert_eq!(r.count(&pattern, "filtered"), made - passed);
    assert_eq!(r.events.iter().filter(|e| e["type"] == "probe").count() as u64, passed);
    let r = record(&["-e", &format!("{pattern} /(uint32)args.arg0 > 6/")], &[&p]);
    let said = format!("{pattern}: nothing recorded: all {made} filtered by '(uint32)args.arg0 > 6'");
    assert!(r.out.stderr.contains(&said), "{}", r.out.stderr);
    // Beside one of them by itself, whose events come twice then.
    let one = format!("uprobe:{p}:many_97");
    let r = record(&["-e", &pattern, "-e", &one], &[&p]);
    assert_eq!(r.numbers(&one, "arg0").len() as u64, 2 * calls(97));
    let r = record(&["-e", &format!("{pattern} /probe == \"{one}\"/")], &[&p]);
    assert_eq!(r.count(&one, "recorded"), calls(97));
    assert_eq!(r.stats["enablings"].as_array().map(Vec::len), Some(91));
    let said = "many_locked: the kernel can put no breakpoint at 1 of its places: file offset 0x";
    assert!(r.out.stderr.contains(said), "{}", r.out.stderr);
    let locked = format!("uprobe:{p}:many_locked");
    let out = lab::run(&mut lab::trapline(User::Me, &["record", "-e", &locked, &p]));
    let said = format!("{locked}: the kernel can put no breakpoint at this instruction (name another place");
    assert!(out.code() == 125 && out.stderr.contains(&said), "{}", out.stderr);
    let argv = ["timeout", "60", "prlimit", "--as=2147483648", "babeltrace2", r.dir.to_str().expect("UTF-8")];
    if lab::has("babeltrace2") {
        let out = lab::run(&mut lab::as_user(User::Me, &argv));
        assert_eq!((out.code(), out.stderr.as_str()), (0, ""));
    }
}

/// The commands of docs/PROBES.md, and what of the machine they need: the word behind `sh`.
fn examples() -> Vec<(&'static str, &'static str)> {
    const DOC: &str = include_str!("../../../../docs/PROBES.md");
    let mut found = Vec::new();
    let mut kind = None;
    for line in DOC.lines() {
        match line.strip_prefix("```") {
            Some(info) => kind = info.strip_prefix("sh").map(str::trim),
            None => found.extend(kind.filter(|_| line.starts_with("trapline ")).map(|needs| (line, needs))),
        }
    }
    found
}

#[test]
fn the_examples_of_the_page_about_probes_work() {
    let (Some(_), Some(_), Some(_)) = (tools("probes"), tools("hits"), lab::program("uring")) else { return };
    let all = examples();
    assert!(all.len() >= 12, "{all:?}");
    for (line, needs) in all {
        let out = lab::run(&mut lab::as_user(User::Me, &["sh", "-c", &format!("PATH=.:$PATH; {line}")]));
        let (missing, tier) = match needs {
            "kernel" => ("this kernel", "fentry"),
            "pmu" => ("hardware counters", "kernel:pmu"),
            _ => ("", ""),
        };
        if !tier.is_empty() && out.code() == 125 && out.stderr.contains(missing) {
            lab::skip(tier, out.stderr.trim());
            continue;
        }
        assert_eq!(out.code(), 0, "{line}: {}", out.stderr);
        let events =
            out.stderr.lines().find_map(|l| l.strip_prefix("trapline: ")?.split_once(" events")?.0.parse().ok());
        assert!(events.is_some_and(|n: u64| n > 0), "{line}: {}", out.stderr);
    }
}

/// Names of the kernel's functions that return addresses are in.
fn symbols(addresses: &[u64]) -> Vec<String> {
    let text = std::fs::read_to_string("/proc/kallsyms").expect("kallsyms");
    let parse = |l: &str| {
        let mut words = l.split_whitespace();
        let at = u64::from_str_radix(words.next()?, 16).ok()?;
        Some((at, words.nth(1)?.to_string()))
    };
    let mut all: Vec<(u64, String)> = text.lines().filter_map(parse).collect();
    all.sort();
    addresses.iter().map(|a| all[all.partition_point(|s| s.0 <= *a) - 1].1.clone()).collect()
}

#[test]
fn kernel_stacks_begin_where_the_probe_is() {
    let Some(p) = tools("hits") else { return };
    let [enter, switch, profile] =
        ["tracepoint:syscalls:sys_enter_getppid", "tracepoint:sched:sched_switch", "profile:hz:999"];
    let tops = |probe: &str| -> Vec<u64> {
        // Alone: ticks may hit what other probes do.
        let r = record(&["--kstack=16", "-e", probe], &[&p, "calls", "200000"]);
        let stacks = r.of(probe).into_iter().filter_map(|e| e["kstack"][0]["address"].as_str().map(str::to_string));
        let all: BTreeSet<u64> = stacks.map(|t| u64::from_str_radix(&t[2..], 16).expect("hex")).collect();
        all.into_iter().collect()
    };
    for probe in [enter, switch, profile] {
        let names = symbols(&tops(probe));
        // Linux 6.1 has none at the tracepoints of single calls.
        if probe == enter && names.is_empty() {
            lab::skip("stacks", "this kernel gives no kernel stacks at the tracepoints of calls");
            continue;
        }
        // Ticks hit the kernel now and then only; there they may hit what somebody else's probes do.
        assert!(probe == profile || !names.is_empty(), "{probe}");
        let own: &[&str] = match probe == profile {
            true => &["perf_swevent_hrtimer", "__perf_event_overflow", "bpf_overflow_handler"],
            false => &["bpf", "perf_", "__traceiter", "__bpf", "trace_call_bpf"],
        };
        for own in own {
            assert!(!names.iter().any(|n| n.starts_with(own)), "{probe}: {names:?}");
        }
    }
}
