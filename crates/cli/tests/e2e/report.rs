//! `trapline report`: its selections, its errors, and what it makes of traces that have no end.

use crate::babeltrace;
use crate::lab::{self, User, each_user};
use crate::record::{Recorded, each_backend, record, report, text};
use serde_json::Value;
use std::fs;
use std::path::Path;

const SCRIPT: &str = "cat /etc/hostname >/dev/null; ls /nonexistent 2>/dev/null; exec 7</etc/passwd; dd <&7 >copy 2>/dev/null; \
    for i in 1 2 3; do /bin/true; done; sleep 0.25; rm copy; exit 3";

fn recorded(user: User, backend: &str) -> Recorded {
    let r = record(user, &["--backend", backend], &["sh", "-c", SCRIPT]);
    assert_eq!(r.outcome.code(), 3, "{}", r.outcome.stderr);
    r
}

/// Lines of a report without complaints.
#[track_caller]
fn lines(r: &Recorded, options: &[&str]) -> Vec<String> {
    text(r.user, &r.trace, options).lines().map(str::to_string).collect()
}

fn tid(line: &str) -> &str {
    line.split_whitespace().next().unwrap_or_default()
}

/// The name of a call; none for other lines.
fn call(line: &str) -> Option<&str> {
    let text = line.split_once(' ')?.1.trim_start();
    let name = text.split_once('(')?.0;
    (!text.starts_with(['-', '+']) && !line.contains("<in flight")).then_some(name)
}

#[test]
fn selections_pick_lines_of_the_whole() {
    each_backend(|user, backend| {
        let r = recorded(user, backend);
        let whole = lines(&r, &[]);
        let calls = |l: &[String]| l.iter().filter(|l| call(l).is_some()).cloned().collect::<Vec<_>>();
        let of = |names: &[&str]| {
            calls(&whole).into_iter().filter(|l| names.contains(&call(l).unwrap_or(""))).collect::<Vec<_>>()
        };
        let shown = calls(&lines(&r, &["-e", "openat,execve"]));
        assert!(shown.len() > 10 && shown == of(&["openat", "execve"]), "{shown:#?}");
        let but = calls(&lines(&r, &["-e", "!openat"]));
        assert_eq!(but.len() + of(&["openat"]).len(), calls(&whole).len());
        let failed = calls(&lines(&r, &["-Z"]));
        let wanted: Vec<_> = calls(&whole).into_iter().filter(|l| l.contains(" = -1 E")).collect();
        assert!(!wanted.is_empty() && failed == wanted, "{failed:#?}");
        let short = lines(&r, &["-e", "write", "-s", "1"]);
        assert!(short.iter().any(|l| l.contains("write(1, \"r\"..., ")), "{short:?}");
        let quiet = lines(&r, &["-e", "signal=none"]);
        assert!(!quiet.iter().any(|l| l.contains("--- SIG")));
        assert_eq!(quiet, whole.iter().filter(|l| !l.contains("--- SIG")).cloned().collect::<Vec<_>>());
        let none = lines(&r, &["-q", "-e", "none", "-e", "signal=none"]);
        assert!(none.iter().all(|l| l.contains("+++ exited")) && !none.is_empty(), "{none:?}");
        // Each process for itself, and all together.
        let mut pids: Vec<&str> = whole.iter().map(|l| tid(l)).collect();
        pids.sort_unstable();
        pids.dedup();
        assert!(pids.len() >= 6, "{pids:?}");
        for pid in &pids {
            let own = lines(&r, &["-p", pid]);
            let wanted: Vec<_> = whole.iter().filter(|l| tid(l) == *pid).cloned().collect();
            assert_eq!(own, wanted, "{pid}");
        }
        let all = pids.join(",");
        assert_eq!(lines(&r, &["-p", &all]), whole);
        assert_eq!(lines(&r, &["-p", pids[0], "-p", pids[1]]), lines(&r, &["-p", &pids[..2].join(",")]));
        // Paths; only with names behind descriptors is a read one of /etc/passwd's.
        let path = lines(&r, &["-P", "/etc/passwd", "-y"]);
        assert!(path.iter().any(|l| l.contains("openat(") && l.contains("\"/etc/passwd\"")), "{path:#?}");
        assert!(path.iter().any(|l| l.contains("read(0</etc/passwd>")), "{path:#?}");
        assert!(path.iter().all(|l| l.contains("/etc/passwd") || call(l).is_none()), "{path:#?}");
    });
}

/// ns since the epoch of the lines of a report with -ttt.
fn times(lines: &[String]) -> Vec<u64> {
    let time = |l: &String| l.split_whitespace().nth(1).and_then(|t| t.replace('.', "").parse::<u64>().ok());
    lines.iter().map(|l| time(l).unwrap_or_else(|| panic!("{l}"))).collect()
}

#[test]
fn windows_that_touch_are_the_whole() {
    each_backend(|user, backend| {
        let r = recorded(user, backend);
        for (options, ns) in [
            (&["-y", "-s", "60"][..], 40_000_000),
            (&["-yy", "-T"], 90_000_000),
            (&["--as", "json", "-y"], 70_000_000),
            (&[], 50_000_000),
        ] {
            // A window in which nothing happened says so.
            let window = |from: &str, to: &str| lines(&r, &[options, &["-q", "--from", from, "--to", to]].concat());
            let whole = lines(&r, options);
            let (mut all, mut parts) = (Vec::new(), 0);
            for i in 0..2000u64 {
                // Both ends belong to a window.
                let part = window(&format!("+{}ns", i * ns), &format!("+{}ns", (i + 1) * ns - 1));
                parts += u32::from(!part.is_empty());
                all.extend(part);
                if all.len() >= whole.len() {
                    break;
                }
            }
            assert_eq!(all, whole, "{options:?} {ns}");
            assert!(parts > 1, "all in one window, the test shows nothing");
        }
        assert_eq!(lines(&r, &["-q", "--from", "+1h"]), Vec::<String>::new());
        assert_eq!(lines(&r, &["--to", "+1h"]), lines(&r, &[]));
        assert_eq!(lines(&r, &["-q", "--from", "+5s", "--to", "+1s"]), Vec::<String>::new());
    });
}

#[test]
fn a_moment_can_be_said_in_three_ways() {
    each_backend(|user, backend| {
        let r = recorded(user, backend);
        let json: Vec<Value> = babeltrace::json(user, &r.trace);
        let time = |e: &Value| e["end_ns"].as_u64().or_else(|| e["time_ns"].as_u64());
        let first = json.iter().filter_map(time).min().expect("an event");
        let middle = json.iter().filter(|e| e["type"] == "syscall").nth(200).and_then(time).expect("200 calls");
        // The clock's offset to real time, as others learn it: from the metadata.
        let metadata = fs::read_to_string(r.trace.join("metadata")).expect("metadata");
        let value = |key: &str| -> i128 {
            let at = metadata.find(&format!("\t{key} = ")).unwrap_or_else(|| panic!("no {key}")) + key.len() + 4;
            metadata[at..].split(';').next().and_then(|n| n.trim().parse().ok()).unwrap_or_else(|| panic!("{key}"))
        };
        let epoch = value("offset_s") * 1_000_000_000 + value("offset") + i128::from(middle);
        let of_day = (epoch + value("utc_offset") * 1_000_000_000).rem_euclid(86_400_000_000_000);
        let (h, m, s) = (of_day / 3_600_000_000_000, of_day / 60_000_000_000 % 60, of_day / 1_000_000_000 % 60);
        let forms = [
            format!("+{}ns", middle - first),
            format!("{}.{:09}", epoch / 1_000_000_000, epoch % 1_000_000_000),
            format!("{h:02}:{m:02}:{s:02}.{:09}", epoch % 1_000_000_000),
        ];
        let json_of = |options: &[&str]| lines(&r, &[options, &["--mappings", "--as", "json", "-s", "65535"]].concat());
        let wanted: Vec<&Value> = json.iter().filter(|e| time(e) >= Some(middle)).collect();
        assert!(wanted.len() > 50 && wanted.len() < json.len());
        for from in &forms {
            let got: Vec<Value> =
                json_of(&["--from", from]).iter().map(|l| serde_json::from_str(l).expect("JSON")).collect();
            assert_eq!(got.iter().collect::<Vec<_>>(), wanted, "--from {from}");
        }
        for to in &forms {
            assert_eq!(
                json_of(&["--to", to]).len(),
                json.iter().filter(|e| time(e) <= Some(middle)).count(),
                "--to {to}"
            );
        }
        // -ttt shows when calls began, so with --sort start times rise.
        let shown = times(&lines(&r, &["-ttt", "--sort", "start", "-e", "signal=none", "-e", "openat,read,close"]));
        assert!(shown.len() > 50);
    });
}

#[test]
fn several_views_at_once() {
    each_user(|user| {
        let r = recorded(user, "ptrace");
        let dir = &r.dir;
        let name = |n: &str| dir.join(n).display().to_string();
        let (a, b, c) = (name("a"), name("b"), name("c"));
        let out = r.report(&[
            "-y",
            "--as",
            &format!("json={a}"),
            "--as",
            "text",
            "--as",
            &format!("record={b}"),
            "--as",
            &format!("text={c}"),
        ]);
        assert_eq!((out.code(), out.stderr.as_str()), (0, ""));
        for (file, view) in [(&a, "json"), (&b, "record"), (&c, "text")] {
            assert_eq!(
                fs::read_to_string(file).expect("a view"),
                text(user, &r.trace, &["-y", "--as", view]),
                "{view}"
            );
        }
        assert_eq!(out.out(), text(user, &r.trace, &["-y"]));
    });
}

#[test]
fn mistakes_are_one_line() {
    each_user(|user| {
        let r = recorded(user, "ptrace");
        for (options, code, words) in [
            (&["--from", "soon"][..], 2, &["--from soon", "not a time", "+1.5"][..]),
            (&["--to", "25:00"], 2, &["--to 25:00", "not a time"]),
            (&["--from=-3"], 2, &["--from -3", "not a time"]),
            (&["--as", "picture"], 2, &["--as picture", "no such view", "json"]),
            (&["-p", "nobody"], 2, &["-p nobody", "process id"]),
            (&["-e", "opennat"], 2, &["opennat", "openat"]),
            (&["--as", "text=/nonexistent/x"], 125, &["/nonexistent/x"]),
            (&["--as", "text=/dev/full"], 125, &["/dev/full", "No space left"]),
            (&["-y", "--as", "json=/dev/full"], 125, &["/dev/full", "No space left"]),
            (&["--nonsense"], 2, &["--nonsense"]),
        ] {
            let out = r.report(options);
            assert_eq!(
                (out.code(), out.out().as_str(), out.stderr.lines().count()),
                (code, "", 1),
                "{options:?} {}",
                out.stderr
            );
            assert!(words.iter().all(|w| out.stderr.contains(w)), "{options:?} {}", out.stderr);
        }
        let empty = lab::scratch();
        for (dir, words) in [
            (Path::new("/nonexistent"), &["/nonexistent", "no such directory"][..]),
            (empty.as_path(), &["no metadata"]),
            (Path::new("/etc/passwd"), &["/etc/passwd"]),
        ] {
            let out = report(user, dir, &[]);
            assert_eq!((out.code(), out.out().as_str(), out.stderr.lines().count()), (125, "", 1), "{}", out.stderr);
            assert!(words.iter().all(|w| out.stderr.contains(w)), "{}", out.stderr);
        }
        // A trace of somebody else's format, and one whose metadata is gone or no metadata.
        let metadata = r.trace.join("metadata");
        let whole = fs::read_to_string(&metadata).expect("metadata");
        for (bytes, words) in [
            (&b"nonsense"[..], &["metadata"][..]),
            (b"", &["metadata"]),
            (&whole.as_bytes()[..whole.len() / 2], &["metadata"]),
        ] {
            fs::write(&metadata, bytes).expect("metadata");
            let out = r.report(&[]);
            assert_eq!((out.code(), out.out().as_str(), out.stderr.lines().count()), (125, "", 1), "{}", out.stderr);
            assert!(words.iter().all(|w| out.stderr.contains(w)), "{}", out.stderr);
        }
        fs::remove_file(&metadata).expect("remove");
        let out = r.report(&[]);
        assert_eq!((out.code(), out.stderr.lines().count()), (125, 1), "{}", out.stderr);
        assert!(out.stderr.contains("no metadata"), "{}", out.stderr);
    });
}

#[test]
fn a_reader_that_leaves_early_is_no_trouble() {
    each_user(|user| {
        let r = recorded(user, "ptrace");
        let exe = lab::dir().join("trapline");
        for options in ["", "-y", "--as json"] {
            let script = format!("{} report {options} trace 2>err | head -n 1; cat err", exe.display());
            let out = lab::run(lab::as_user(user, &["sh", "-c", &script]).current_dir(&r.dir));
            assert_eq!((out.code(), out.out().lines().count()), (0, 1), "{}", out.out());
        }
    });
}
