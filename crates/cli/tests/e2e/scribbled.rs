//! Programs that write over the memory that they share with trapline (`agent_scribbles.c`): what trapline believes, writes and prints is bounded.

use crate::lab::{self, User};
use std::fs;

#[test]
fn what_cannot_be_true_is_not_believed() {
    let Some(program) = testkit::compile("gcc", "agent_scribbles", "agent_scribbles.c", &["-O1"]) else { return };
    let dir = lab::scratch();
    for mode in ["0", "1", "2", "3", "4", "5", "6", "7"] {
        for what in [&["-e", "function:*"][..], &["-e", "function:*", "-e", "heap:*"]] {
            let trace = dir.join(format!("{mode}-{}", what.len()));
            let path = trace.to_str().expect("UTF-8");
            let argv = [&["record", "-o", path], what, &["--", &program, mode, "7"]].concat();
            let out = lab::run(&mut lab::trapline(User::Me, &argv));
            // It may end itself.
            assert!([0, 139, 134, 135, 136, 132].contains(&out.code()), "{mode}: {} {}", out.code(), out.stderr);
            let files: Vec<u64> = fs::read_dir(&trace)
                .expect("a trace")
                .map(|f| f.expect("a file").metadata().expect("its size").len())
                .collect();
            let bytes: u64 = files.iter().sum();
            assert!(bytes < 64 << 20 && out.stderr.len() < 4000, "{mode}: {bytes} bytes, {}", out.stderr);
            // As many as threads have begun on this machine: the tests begin some, but none of the thousands that it invents.
            assert!(files.len() < 1500, "{mode}: {} files", files.len());
            assert!(
                out.stderr.contains("has written over the memory") || ["2", "3", "6", "7"].contains(&mode),
                "{mode}: {}",
                out.stderr
            );
            assert!(!out.stderr.contains("1844674407"), "{mode}: {}", out.stderr);
            let report = lab::run(&mut lab::trapline(User::Me, &["report", path, "--as", "stats"]));
            assert!(report.code() == 0 && report.out().len() < 200_000, "{mode}: {}", report.stderr);
            assert!(!report.out().contains("1844674407"), "{mode}: {}", report.out());
        }
    }
}
