//! Every event is in the trace or in a counter: what is decoded, dropped, filtered and missed adds up to what the load has counted
//! itself, whatever the size of the buffer.
//!
//! `TRAPLINE_ACCOUNTING_ROUNDS=N` runs N rounds of each kind; the usual number is small.

use crate::babeltrace;
use crate::kernel::possible;
use crate::lab::{self, User};
use crate::record::{Recorded, number, record, report};
use serde_json::Value;
use std::collections::HashMap;
use testkit::Random;

fn rounds() -> u64 {
    std::env::var("TRAPLINE_ACCOUNTING_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(6)
}

/// What a report decodes of each probe.
#[track_caller]
fn decoded(r: &Recorded) -> HashMap<String, u64> {
    let out = report(User::Me, &r.trace, &["-q", "--as", "json"]);
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let mut all = HashMap::new();
    for line in out.out().lines() {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        let name = event["name"].as_str().unwrap_or_default();
        let name = if event["type"] == "syscall" { format!("syscall:{name}") } else { name.to_string() };
        *all.entry(name).or_insert(0) += 1;
    }
    all
}

/// How often the load says that it has called its function, and made its call.
#[track_caller]
fn made(r: &Recorded) -> (u64, u64) {
    let out = r.outcome.out();
    let mut numbers = out.split_whitespace().map(|n| n.parse().expect("a number"));
    (numbers.next().expect("calls of the function"), numbers.next().expect("calls"))
}

/// Whether what is known of a probe adds up to what was made of it.
#[track_caller]
fn adds_up(about: &str, r: &Recorded, found: &HashMap<String, u64>, probe: &str, made: u64) {
    let counts = &r.stats["probes"][probe];
    let counter = |name: &str| counts[name].as_u64().unwrap_or_else(|| panic!("{about}: {probe}.{name}: {}", r.stats));
    let in_trace = found.get(probe).copied().unwrap_or(0);
    assert_eq!(counter("recorded"), in_trace, "{about}: {probe}: {counts}");
    assert_eq!(counter("seen"), in_trace + counter("dropped") + counter("filtered"), "{about}: {probe}: {counts}");
    assert_eq!(counter("seen") + counter("missed"), made, "{about}: {probe}: {counts}, made {made}");
}

/// Whether babeltrace2 finds as many events, and as many lost ones.
#[track_caller]
fn others_agree(about: &str, r: &Recorded) {
    let Some((events, discarded)) = babeltrace::counts(User::Me, &r.trace) else { return };
    let lost = number(&r.stats, "dropped") + number(&r.stats, "bookkeeping_dropped");
    assert_eq!((events, discarded), (r.events(), lost), "{about}: {}", r.stats);
}

#[test]
fn calls_add_up_with_any_buffer_and_either_backend() {
    let Some(program) = lab::program("tally") else { return };
    let mut random = Random::new(1);
    let mut lost = 0;
    for round in 0..rounds() {
        let backend = if round % 2 == 0 && possible() { "kernel" } else { "ptrace" };
        let (size, threads) = (4096 << random.below(6), 1 + random.below(4));
        let n = if backend == "kernel" { 500 + random.below(8000) } else { 200 + random.below(800) };
        // One of them is sure to be too small.
        let (size, n) = if round == 0 { (4096, if backend == "kernel" { 50_000 } else { 2000 }) } else { (size, n) };
        let (size, threads, n) = (size.to_string(), threads.to_string(), n.to_string());
        let filter =
            ["getppid", "getppid,write,mmap", "all", "openat,getppid,close,read,brk"][random.below(4) as usize];
        let about = format!("round {round}: {backend}, --buffer {size}, {threads} threads, {n} calls, -e {filter}");
        let options = ["--backend", backend, "--on-full", "drop", "--buffer", &size, "-e", filter];
        let mut all = options.to_vec();
        if random.below(3) == 0 {
            all.extend(["--where", "tid % 2 == 0"]);
        }
        let r = record(User::Me, &all, &[&program, &threads, &n]);
        assert_eq!(r.outcome.code(), 0, "{about}: {}", r.outcome.stderr);
        let (_, calls) = made(&r);
        adds_up(&about, &r, &decoded(&r), "syscall:getppid", calls);
        others_agree(&about, &r);
        lost += number(&r.stats, "dropped");
    }
    assert!(lost > 0, "nothing was dropped in any round, the test shows nothing");
}

// Slow: a recording for each size of the buffer.
#[test]
fn probes_add_up_with_any_buffer() {
    let Some(program) = lab::program("tally").filter(|_| possible()) else { return };
    let [entry, back] = ["uprobe", "uretprobe"].map(|kind| format!("{kind}:{program}:worked"));
    let enter = "tracepoint:syscalls:sys_enter_getppid";
    let mut random = Random::new(2);
    let mut lost = 0;
    for round in 0..rounds() {
        let (size, threads) = (4096 << random.below(6), 1 + random.below(4));
        // One of them is sure to be too small.
        let (size, n) = if round == 0 { (4096, 20_000) } else { (size, 500 + random.below(4000)) };
        let (size, threads, n) = (size.to_string(), threads.to_string(), n.to_string());
        let about = format!("round {round}: --buffer {size}, {threads} threads, {n} times");
        let filters = ["", " /args.arg0 % 3 == 0/", " comm ustack=4"];
        let entry_and = format!("{entry}{}", filters[random.below(3) as usize]);
        let back_and = format!("{back}{}", ["", " /tid % 2 == 0/"][random.below(2) as usize]);
        let options = ["--buffer", &size, "-e", &entry_and, "-e", &back_and, "-e", enter, "-e", "getppid"];
        let r = record(User::Kernel, &options, &[&program, &threads, &n]);
        assert_eq!(r.outcome.code(), 0, "{about}: {}", r.outcome.stderr);
        let ((worked, calls), found) = (made(&r), decoded(&r));
        for (probe, made) in [(&entry[..], worked), (&back, worked), (enter, calls), ("syscall:getppid", calls)] {
            adds_up(&about, &r, &found, probe, made);
        }
        others_agree(&about, &r);
        lost += number(&r.stats, "dropped");
    }
    assert!(lost > 0, "nothing was dropped in any round, the test shows nothing");
}

/// Signals that a timer sends interrupt the programs of calls: they are shown or counted, and no call is spoilt.
#[test]
fn a_storm_of_signals_on_top_of_calls_adds_up() {
    let Some(program) = lab::program("alarms").filter(|_| possible()) else { return };
    for (size, mode) in [("4M", "handled"), ("4M", "ignored"), ("8K", "handled"), ("8K", "ignored")] {
        let about = format!("--buffer {size}, {mode}");
        let r = record(User::Kernel, &["--buffer", size, "-e", "getppid,write"], &[&program, mode, "40000"]);
        assert_eq!(r.outcome.code(), 0, "{about}: {}", r.outcome.stderr);
        let found = decoded(&r);
        // One more for what it prints.
        adds_up(&about, &r, &found, "syscall:getppid", 40_001);
        others_agree(&about, &r);
        let out = report(User::Me, &r.trace, &["-q", "-e", "getppid"]).out();
        let own = r.outcome.out();
        let parent = own.split_whitespace().next().expect("its parent");
        let wrong = out.lines().filter(|l| l.contains("getppid(") && !l.ends_with(&format!(" = {parent}"))).count();
        assert_eq!(wrong, 0, "{about}: results of others");
    }
}

/// Clocks and a timer's signals interrupt the programs of calls and each other: every event is in the trace or in a counter.
#[test]
fn a_storm_of_clocks_and_signals_on_top_of_calls_adds_up() {
    const CLOCK: &str = "profile:hz:4999";
    let Some(program) = lab::program("alarms").filter(|_| possible()) else { return };
    let mut lost = 0;
    for size in ["4M", "16K"] {
        let about = format!("--buffer {size}");
        let r = record(User::Kernel, &["--buffer", size, "-e", "all", "-e", CLOCK], &[&program, "handled", "60000"]);
        assert_eq!(r.outcome.code(), 0, "{about}: {}", r.outcome.stderr);
        let found = decoded(&r);
        adds_up(&about, &r, &found, "syscall:getppid", 60_001);
        let clock = &r.stats["probes"][CLOCK];
        let counter = |name: &str| clock[name].as_u64().unwrap_or_else(|| panic!("{about}: {name}: {}", r.stats));
        let ticks = found.get(CLOCK).copied().unwrap_or(0);
        assert_eq!(counter("recorded"), ticks, "{about}: {clock}");
        assert_eq!(counter("seen"), ticks + counter("dropped"), "{about}: {clock}");
        assert!(ticks > 10, "{about}: {clock}");
        let handled: u64 = r.outcome.out().split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("signals");
        let signals = |name: &str| r.stats["probes"]["process:signal"][name].as_u64().unwrap_or_default();
        let all = [signals("seen"), signals("recorded") + signals("dropped")];
        assert_eq!(all, [handled; 2], "{about}: {}", r.stats);
        others_agree(&about, &r);
        lost += number(&r.stats, "dropped");
    }
    assert!(lost > 0, "nothing was dropped with the small buffer, the test shows nothing");
}
