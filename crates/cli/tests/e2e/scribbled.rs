//! Programs that write over the memory that they share with trapline (`agent_scribbles.c`): what trapline believes, writes and prints is bounded.

use crate::lab::{self, User};
use std::fs;

/// The id that was given last, in this PID namespace, and how many there are.
fn last_id() -> (u64, u64) {
    let number = |path: &str| {
        let text = fs::read_to_string(path).expect("a number");
        text.split_whitespace().next_back().and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{text}"))
    };
    (number("/proc/loadavg"), number("/proc/sys/kernel/pid_max"))
}

#[test]
fn what_cannot_be_true_is_not_believed() {
    let Some(program) = testkit::compile("gcc", "agent_scribbles", "agent_scribbles.c", &["-O1"]) else { return };
    let dir = lab::scratch();
    for mode in ["0", "1", "2", "3", "4", "5", "6", "7"] {
        for what in [&["-e", "function:*"][..], &["-e", "function:*", "-e", "heap:*"]] {
            let trace = dir.join(format!("{mode}-{}", what.len()));
            let path = trace.to_str().expect("UTF-8");
            let argv = [&["record", "-o", path], what, &["--", &program, mode, "7"]].concat();
            let before = last_id().0;
            let out = lab::run(&mut lab::trapline(User::Me, &argv));
            let (after, ids) = last_id();
            // It may end itself, but not by files that it cuts off, nor by what a child of its does.
            let ends: &[i32] = if ["6", "7"].contains(&mode) { &[0] } else { &[0, 139, 134, 135, 136, 132] };
            assert!(ends.contains(&out.code()), "{mode}: {} {}", out.code(), out.stderr);
            let files: Vec<u64> = fs::read_dir(&trace)
                .expect("a trace")
                .map(|f| f.expect("a file").metadata().expect("its size").len())
                .collect();
            let bytes: u64 = files.iter().sum();
            assert!(bytes < 64 << 20 && out.stderr.len() < 4000, "{mode}: {bytes} bytes, {}", out.stderr);
            // As many as threads have begun on this machine, each of which may have several: none of the thousands that it invents.
            let begun = (after + ids - before) % ids;
            assert!(files.len() as u64 <= 4 * (begun + 50), "{mode}: {} files, {begun} threads", files.len());
            let said = out.stderr.contains("has written over the memory");
            assert_eq!(said, mode != "6", "{mode}: {}", out.stderr);
            assert!(!out.stderr.contains("1844674407"), "{mode}: {}", out.stderr);
            if mode == "6" {
                let table = lab::run(&mut lab::trapline(User::Me, &["report", "-q", "--as", "functions-json", path]));
                let is_whole = |l: &str| l.contains(r#""function":"work""#) && l.contains(r#""calls":41000,"#);
                assert!(table.out().lines().any(is_whole), "{}", table.out());
            }
            let report = lab::run(&mut lab::trapline(User::Me, &["report", path, "--as", "stats"]));
            assert!(report.code() == 0 && report.out().len() < 200_000, "{mode}: {}", report.stderr);
            assert!(!report.out().contains("1844674407"), "{mode}: {}", report.out());
        }
    }
}
