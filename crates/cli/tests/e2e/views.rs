//! The other views of a trace: JSON, record, summary.

use crate::lab::{self, each_backend};
use serde_json::Value;

/// The lines of `-o FILE` under a view.
fn lines(user: lab::User, options: &[&str], command: &[&str]) -> Vec<String> {
    let (args, file) = crate::trace::arguments(options, command);
    let out = lab::run(&mut lab::trapline(user, &args));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    std::fs::read_to_string(file).expect("trace").lines().map(str::to_string).collect()
}

#[test]
fn json_has_every_call_and_end() {
    each_backend(|user| {
        let Some(program) = lab::program("forkstorm") else { return };
        let objects: Vec<Value> = lines(user, &["--as", "json"], &[&program, "60"])
            .iter()
            .map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}")))
            .collect();
        assert!(objects.iter().all(|o| o["v"] == 1 && o["type"].is_string() && o["pid"].is_u64()));
        let count = |key: &str, value: &str| objects.iter().filter(|o| o[key] == value).count();
        assert_eq!((count("name", "getppid"), count("type", "exit")), (60, 61));
        let call = objects.iter().find(|o| o["type"] == "syscall" && o["errno"] == "ENOENT").expect("a failure");
        assert!(call["ret"] == -1 && call["start_ns"].as_u64() <= call["end_ns"].as_u64(), "{call}");
    });
}

#[test]
fn json_of_hostile_input_is_json() {
    each_backend(|user| {
        for name in ["names", "bad_pointers", "bad_number", "huge_iov", "signals", "ia32"] {
            let Some(program) = lab::program(name) else { return };
            let (args, file) = crate::trace::arguments(&["--as", "json", "-y"], &[&program, "/tmp"]);
            lab::run(&mut lab::trapline(user, &args));
            let text = std::fs::read_to_string(file).expect("UTF-8");
            for l in text.lines() {
                serde_json::from_str::<Value>(l).unwrap_or_else(|e| panic!("{name} {e}: {l}"));
            }
            assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{name}");
        }
    });
}

#[test]
fn record_has_a_start_and_an_end_of_every_call() {
    each_backend(|user| {
        let Some(program) = lab::program("threads") else { return };
        let all = lines(user, &["--as", "record", "-e", "getppid,nanosleep"], &[&program, "25"]);
        for letter in ["E ", "X "] {
            assert_eq!(all.iter().filter(|l| l.starts_with(letter)).count(), 8 * 25 * 2, "{letter}");
        }
        assert!(all.iter().all(|l| l.starts_with(['E', 'X', 'D', 'P', '#'])), "{all:#?}");
    });
}

#[test]
fn the_summary_counts_what_was_made() {
    each_backend(|user| {
        let Some(program) = lab::program("threads") else { return };
        for (option, calls) in [("-c", 0), ("-C", 8 * 25 * 2)] {
            let all = lines(user, &[option, "-e", "getppid,nanosleep"], &[&program, "25"]);
            for (name, n) in [("getppid", "200"), ("nanosleep", "200"), ("total", "400")] {
                let row = all.iter().find(|l| l.trim_end().ends_with(&format!(" {name}"))).expect(name);
                assert_eq!(row.split_whitespace().nth(3), Some(n), "{row}");
            }
            let shown = all.iter().filter(|l| l.contains("getppid(") || l.contains("nanosleep(")).count();
            assert_eq!(shown, calls, "{option}");
        }
    });
}
