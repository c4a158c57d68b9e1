//! Processes are seen to their very end: after a task has announced it, its memory is freed, its parent is told, and it switches
//! for the last time.

use crate::kernel::possible;
use crate::lab;
use crate::probes::record;
use serde_json::Value;

/// Whether a `sched_switch` is that of a task that has ended: EXIT_ZOMBIE, or EXIT_DEAD where its parent has collected it before
/// (`__trace_sched_switch_state`, include/trace/events/sched.h).
fn is_last(switch: &Value) -> bool {
    switch["args"]["prev_state"] == 32 || switch["args"]["prev_state"] == 16
}

#[test]
fn what_a_process_does_after_it_has_announced_its_end_is_recorded() {
    let Some(program) = lab::program("pages").filter(|_| possible()) else { return };
    let [freed, switch, signal] =
        ["kmem:mm_page_free", "sched:sched_switch", "signal:signal_generate"].map(|name| format!("tracepoint:{name}"));
    for _ in 0..4 {
        let r = record(&["-e", &freed, "-e", &format!("{switch},{signal}")], &[&program, "20000"]);
        assert_eq!(r.count(&freed, "dropped"), 0);
        assert!(r.count(&freed, "recorded") >= 20_000, "{} of 20000 pages", r.count(&freed, "recorded"));
        let signals = r.of(&signal);
        assert!(signals.iter().any(|e| e["args"]["sig"] == 17), "the parent is told: {signals:?}");
        let switches = r.of(&switch);
        let last = switches.last().expect("a switch");
        assert!(is_last(last), "the last switch is missing: {last}");
        assert!(!r.out.stderr.contains("took too long"), "{}", r.out.stderr);
    }
}

#[test]
fn every_thread_of_a_storm_has_its_last_switch() {
    let Some(program) = lab::program("forkstorm").filter(|_| possible()) else { return };
    let [switch, free] = ["sched:sched_switch", "sched:sched_process_exit"].map(|name| format!("tracepoint:{name}"));
    let r = record(&["--buffer", "32M", "-e", &switch, "-e", &free], &[&program, "200"]);
    assert_eq!((r.count(&switch, "dropped"), r.count(&free, "dropped")), (0, 0));
    let dead = r.of(&switch).iter().filter(|e| is_last(e)).count();
    assert!(dead > 50, "{dead} ends");
    assert_eq!(dead, r.of(&free).len());
}

#[test]
fn a_process_that_nobody_collects_does_not_hold_its_session() {
    if !possible() {
        return;
    }
    let scratch = lab::scratch();
    // The shell becomes a sleep, which never waits for the child that is attached to.
    let script = "sleep 3 & echo $! >pid.new; mv pid.new pid; exec sleep 30";
    let _parent = lab::start(lab::as_user(lab::User::Me, &["sh", "-c", script]).current_dir(&scratch));
    lab::until("the child", || scratch.join("pid").exists());
    let child = std::fs::read_to_string(scratch.join("pid")).expect("pid");
    let args = ["record", "-q", "-e", "tracepoint:sched:sched_switch", "-o", "trace", "-p", child.trim()];
    let out = lab::run(lab::trapline(lab::User::Kernel, &args).current_dir(&scratch));
    assert_eq!((out.code(), out.stderr.as_str()), (0, ""));
}
