//! Several traces as one: `report A B C`, `report PARENT`.

use crate::lab::{self, User};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn recorded(user: User, dir: &Path, options: &[&str], command: &[&str]) {
    let path = dir.to_str().expect("UTF-8");
    let out = lab::run(&mut lab::trapline(user, &[&["record", "-q", "-o", path], options, &["--"], command].concat()));
    assert_eq!(out.code(), 0, "{}", out.stderr);
}

fn report(user: User, dir: &Path, args: &[&str]) -> lab::Outcome {
    let mut command = lab::trapline(user, &[&["report"], args].concat());
    lab::run(command.current_dir(dir))
}

fn shown(user: User, dir: &Path, args: &[&str]) -> String {
    let out = report(user, dir, args);
    assert!(out.code() == 0 && out.complaints().is_empty(), "{args:?}: {}", out.stderr);
    out.out()
}

/// A directory for traces of a user.
fn place() -> PathBuf {
    let dir = lab::scratch().join("runs");
    fs::create_dir(&dir).expect("a directory");
    testkit::open_to_all(&dir, 0o777);
    dir
}

/// A trace that is the same but for its identity, its host, and how far its clock is off.
fn sibling(of: &Path, to: &Path, host: &str, seconds: i64) {
    let metadata = fs::read_to_string(of.join("metadata")).expect("metadata");
    let after = |key: &str| metadata.split(key).nth(1).expect("a member").split([';', '"']).next().expect("its value");
    let (uuid, offset) = (after("uuid = \""), after("offset_s = "));
    let bytes = |text: &str| {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits.chunks(2).map(|d| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap()).collect::<Vec<u8>>()
    };
    // Each digit is the next one: bytes of zeros would be found everywhere.
    let next = |c: char| c.to_digit(16).map_or(c, |digit| char::from_digit((digit + 1) % 16, 16).expect("a digit"));
    let other: String = uuid.chars().map(next).collect();
    let metadata = metadata
        .replace(uuid, &other)
        .replace(&format!("hostname = \"{}\"", after("hostname = \"")), &format!("hostname = \"{host}\""))
        .replace(&format!("offset_s = {offset}"), &format!("offset_s = {}", offset.parse::<i64>().unwrap() + seconds));
    let (from, into) = (bytes(uuid), bytes(&other));
    fs::create_dir(to).expect("a directory");
    fs::create_dir(to.join(".trapline")).expect("a directory");
    for (path, mut content) in lab::contents(of).into_iter().filter(|(path, _)| path.is_file()) {
        let at: Vec<usize> =
            (0..content.len().saturating_sub(15)).filter(|i| content[*i..].starts_with(&from)).collect();
        at.into_iter().for_each(|i| content[i..i + 16].copy_from_slice(&into));
        fs::write(to.join(path.strip_prefix(of).unwrap_or(&path)), content).expect("a file");
    }
    fs::write(to.join("metadata"), metadata).expect("a file");
    testkit::open_to_all(to, 0o755);
    testkit::open_to_all(&to.join(".trapline"), 0o755);
}

/// Calls, by name, of a table.
fn calls(table: &str) -> BTreeMap<String, u64> {
    let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.filter_map(|row| Some((row.last()?.to_string(), row.get(3)?.parse().ok()?))).collect()
}

fn objects(json: &str) -> Vec<Value> {
    json.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn all_events_of_all_traces_come_in_one_order() {
    lab::each_backend(|user| {
        let dir = place();
        recorded(user, &dir.join("a"), &[], &["cat", "/etc/hostname"]);
        recorded(user, &dir.join("b"), &[], &["ls", "/etc"]);
        recorded(user, &dir.join("c"), &[], &["sh", "-c", "cat /etc/passwd; true"]);
        let names = ["a", "b", "c"];
        let alone = names.map(|name| shown(user, &dir, &[name, "--always-show-pid"]));
        let together = shown(user, &dir, &["a", "b", "c", "--always-show-pid"]);
        let parent = shown(user, &dir, &[".", "--always-show-pid"]);
        assert_eq!(together, parent);
        for (name, alone) in names.iter().zip(&alone) {
            let of: Vec<&str> = together.lines().filter_map(|line| line.strip_prefix(&format!("{name} "))).collect();
            assert_eq!(of, alone.lines().collect::<Vec<_>>(), "{name}");
        }
        assert_eq!(together.lines().count(), alone.iter().map(|text| text.lines().count()).sum::<usize>());
        let lines = objects(&shown(user, &dir, &["c", "a", "b", "--as", "json"]));
        let times: Vec<u64> =
            lines.iter().map(|l| l["end_ns"].as_u64().or(l["time_ns"].as_u64()).expect("a time")).collect();
        assert!(times.is_sorted());
        for name in names {
            assert!(lines.iter().any(|l| l["trace"] == name && !l["host"].as_str().unwrap_or_default().is_empty()));
        }
        // Records have those of each trace, below its name.
        let (mut trace, mut exits) = ("", BTreeMap::<&str, Vec<&str>>::new());
        let records = shown(user, &dir, &[".", "--as", "record"]);
        for line in records.lines() {
            match line.strip_prefix("T ") {
                Some(origin) => trace = origin.rsplit(' ').next().expect("a trace").trim_matches('"'),
                None => exits.entry(trace).or_default().extend(line.starts_with("X ").then_some(line)),
            }
        }
        for name in names {
            let alone = shown(user, &dir, &[name, "--as", "record"]);
            // But for their times, which are those of the wall clock.
            let rest = |line: &str| line.split(' ').skip(3).collect::<Vec<_>>().join(" ");
            let alone: Vec<String> = alone.lines().filter(|line| line.starts_with("X ")).map(rest).collect();
            assert_eq!(exits[name].iter().map(|line| rest(line)).collect::<Vec<_>>(), alone, "{name}");
        }
        // Tables add up what those of each trace have.
        let mut sum = BTreeMap::new();
        for name in names {
            for (call, n) in calls(&shown(user, &dir, &[name, "-c"])) {
                *sum.entry(call).or_insert(0) += n;
            }
        }
        assert_eq!(calls(&shown(user, &dir, &[".", "-c"])), sum);
    });
}

#[test]
fn tables_are_made_by_host_and_by_trace() {
    let dir = place();
    let user = User::Me;
    recorded(user, &dir.join("a"), &[], &["cat", "/etc/hostname"]);
    sibling(&dir.join("a"), &dir.join("b"), "web-2", 0);
    recorded(user, &dir.join("c"), &[], &["ls", "/etc"]);
    let alone = |name| shown(user, &dir, &[name, "-c"]);
    let by_trace = shown(user, &dir, &[".", "-c", "--by", "trace"]);
    assert_eq!(by_trace, format!("a:\n{}\nb:\n{}\nc:\n{}", alone("a"), alone("b"), alone("c")));
    let by_host = shown(user, &dir, &[".", "-c", "--by", "host"]);
    let web = by_host.split("\nweb-2:\n").nth(1).expect("the second host");
    assert_eq!(web, alone("b"));
    let json = objects(&shown(user, &dir, &[".", "--latency", "--as", "json", "--by", "host"]));
    assert_eq!(json.len(), 2);
    assert_eq!(json[1]["host"], "web-2");
    let own = objects(&shown(user, &dir, &["b", "--latency", "--as", "json"]));
    assert_eq!(json[1]["rows"], own[0]["rows"]);
    let out = report(user, &dir, &[".", "--by", "host"]);
    assert!(out.code() == 2 && out.stderr.contains("lines have their host and trace anyway"), "{}", out.stderr);
}

#[test]
fn one_number_in_two_traces_is_two_threads() {
    let dir = place();
    let user = User::Me;
    recorded(user, &dir.join("a"), &["--comm"], &["sh", "-c", "cat /etc/hostname; true"]);
    sibling(&dir.join("a"), &dir.join("b"), "web-2", 0);
    let rows = |args: &[&str]| objects(&shown(user, &dir, args))[0]["rows"].as_array().expect("rows").clone();
    for by in ["--latency=thread", "--latency=fd"] {
        let (one, two) = (rows(&["a", by, "--as", "json"]), rows(&["a", "b", by, "--as", "json"]));
        // Calls without a descriptor are of no process.
        let of_process = |rows: Vec<Value>| rows.into_iter().filter(|r| !r["pid"].is_null()).collect::<Vec<_>>();
        let (one, two) = (of_process(one), of_process(two));
        assert_eq!(two.len(), 2 * one.len(), "{by}: {two:?}");
        let of = |row: &Value| [row["pid"].clone(), row["tid"].clone(), row["fd"].clone(), row["calls"].clone()];
        for row in &one {
            assert_eq!(two.iter().filter(|other| of(other) == of(row)).count(), 2, "{row}");
        }
        assert_eq!(two.iter().filter(|row| row["host"] == "web-2").count(), one.len());
    }
    // Filters know threads by their own numbers.
    let pid = objects(&shown(user, &dir, &["a", "--as", "json"]))[0]["pid"].to_string();
    let where_ = format!("pid == {pid}");
    for args in [["-p", pid.as_str()], ["--where", where_.as_str()]] {
        let [one, two] = [&["a"][..], &["a", "b"]].map(|of| calls(&shown(user, &dir, &[of, &args, &["-c"]].concat())));
        assert!(!one.is_empty() && one.iter().all(|(call, n)| two[call] == 2 * n), "{args:?}: {one:?} {two:?}");
    }
    // Names of descriptors are those of their own processes.
    let [one, two] = [&["a"][..], &["a", "b"]].map(|of| shown(user, &dir, &[of, &["-y", "-e", "read"]].concat()));
    assert_eq!(two.matches("</etc/hostname>").count(), 2 * one.matches("</etc/hostname>").count());
    assert!(one.contains("</etc/hostname>"));
}

#[test]
fn clocks_are_those_of_the_traces_or_given() {
    let dir = place();
    let user = User::Me;
    recorded(user, &dir.join("a"), &[], &["cat", "/etc/hostname"]);
    // The other machine's clock says a day later.
    sibling(&dir.join("a"), &dir.join("b"), "web-2", 86_400);
    let order = |args: &[&str]| {
        let mut all: Vec<String> =
            objects(&shown(user, &dir, args)).iter().map(|l| l["trace"].as_str().expect("a trace").into()).collect();
        all.dedup();
        all
    };
    assert_eq!(order(&["b", "a", "--as", "json"]), ["a", "b"]);
    assert_eq!(order(&["b", "a", "--as", "json", "--clock-offset", "web-2=-2d"]), ["b", "a"]);
    assert_eq!(order(&["b", "a", "--as", "json", "--clock-offset", "a=+2d"]), ["b", "a"]);
    // At the same times they alternate.
    assert!(order(&["b", "a", "--as", "json", "--clock-offset", "b=-1d"]).len() > 10);
    // A window is of the shared clock.
    assert_eq!(order(&["b", "a", "--as", "json", "--to", "+1h"]), ["a"]);
    assert_eq!(order(&["b", "a", "--as", "json", "--from", "+1h"]), ["b"]);
    let out = report(user, &dir, &["a", "b", "--clock-offset", "web-3=+1s"]);
    assert!(out.code() == 2 && out.stderr.contains("no trace and no host has this name"), "{}", out.stderr);
}

#[test]
fn what_is_missing_is_said_of_each_trace() {
    let dir = place();
    let user = User::Me;
    for name in ["a", "b", "c"] {
        recorded(user, &dir.join(name), &[], &["cat", "/etc/hostname"]);
    }
    let good = calls(&shown(user, &dir, &["a", "c", "-c"]));
    // Of one the end is missing, with half of its last packet.
    let stream =
        lab::contents(&dir.join("b")).into_keys().find(|p| p.to_string_lossy().contains("cpu_")).expect("a stream");
    let file = dir.join("b").join(stream);
    let len = fs::metadata(&file).expect("a file").len();
    fs::OpenOptions::new().write(true).open(&file).expect("the file").set_len(len - 100).expect("shorter");
    fs::remove_file(dir.join("b/.trapline/end")).expect("an end");
    let out = report(user, &dir, &[".", "-c"]);
    assert_eq!(out.code(), 125, "{}", out.stderr);
    assert!(out.stderr.contains("b: the end is missing") && !out.stderr.contains("a: "), "{}", out.stderr);
    // One cannot be opened at all.
    fs::write(dir.join("b/metadata"), "/* CTF 1.8 */ nothing").expect("a file");
    for args in [&["a", "b", "c", "-c"][..], &[".", "-c"]] {
        let out = report(user, &dir, args);
        assert_eq!(out.code(), 125, "{}", out.stderr);
        assert!(out.stderr.contains("b/metadata") && out.stderr.contains("; the others are shown"), "{}", out.stderr);
        assert_eq!(calls(&out.out()), good);
    }
    let out = report(user, &dir, &["a", "a", "-c"]);
    assert!(out.stderr.contains("a copy of another of these traces"), "{}", out.stderr);
    let out = report(user, &dir, &["a", "none"]);
    assert!(out.code() == 125 && out.stderr.lines().count() == 1, "{}", out.stderr);
}

/// The weights of folded stacks.
fn weights(folded: &str) -> u64 {
    folded.lines().filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

/// Has a trace below it for each of two hosts.
fn pair(user: User, dir: &Path, record: &[&str], command: &[&str]) {
    let path = dir.join("a");
    let path = path.to_str().expect("UTF-8");
    let out = lab::run(&mut lab::trapline(user, &[record, &["-q", "-o", path, "--"], command].concat()));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    sibling(&dir.join("a"), &dir.join("b"), "web-2", 0);
}

#[test]
fn heaps_are_added_up_and_made_by_host() {
    let dir = place();
    let user = User::Me;
    pair(user, &dir, &["heap"], &["ls", "/etc"]);
    let summary = |args: &[&str]| objects(&shown(user, &dir, &[args, &["--as", "heap-json", "-q"]].concat()));
    let (one, two, by) = (summary(&["a"]), summary(&["."]), summary(&[".", "--by", "host"]));
    let blocks = |heap: &Value| heap["total"]["blocks"].as_u64();
    let counted = blocks(&one[0]).unwrap_or_else(|| panic!("{}", one[0]));
    assert_eq!(blocks(&two[0]), Some(2 * counted));
    assert_eq!(by.iter().map(blocks).collect::<Vec<_>>(), [Some(counted); 2]);
    assert_eq!(by[1]["host"], "web-2");
    let table = shown(user, &dir, &[".", "--as", "leaks", "--by", "trace"]);
    assert_eq!(
        table,
        format!(
            "a:\n{}\nb:\n{}",
            shown(user, &dir, &["a", "--as", "leaks"]),
            shown(user, &dir, &["b", "--as", "leaks"])
        )
    );
    let out = report(user, &dir, &[".", "--as", "functions"]);
    assert!(out.code() == 125 && out.stderr.contains("none of these traces has function calls"), "{}", out.stderr);
}

#[test]
fn profiles_are_added_up() {
    let dir = place();
    let user = User::Me;
    if lab::paranoid() > 2 && !lab::is_root() {
        return lab::skip("kernel:perf_event_paranoid", "samples are refused");
    }
    pair(user, &dir, &["profile"], &["sh", "-c", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done"]);
    let folded = |args: &[&str]| shown(user, &dir, &[args, &["--as", "folded", "-q"]].concat());
    let (one, two) = (folded(&["a"]), folded(&["."]));
    assert!(weights(&one) > 0);
    assert_eq!(weights(&two), 2 * weights(&one));
    // Stacks are resolved by what each process has mapped, so both traces have the same ones, each below its own process.
    let of = |host: &str| {
        let mut all: Vec<&str> = two.lines().filter_map(|line| line.strip_prefix(host)).collect();
        all.sort_unstable();
        all
    };
    let mut alone: Vec<&str> = one.lines().collect();
    alone.sort_unstable();
    assert_eq!(of("web-2:"), alone);
    assert_eq!(two.lines().count(), 2 * alone.len());
    let by_process = folded(&[".", "--group", "process"]);
    let weight =
        |host: &str| weights(&by_process.lines().filter(|l| l.starts_with(host)).collect::<Vec<_>>().join("\n"));
    assert_eq!(weight("web-2:"), weights(&one), "{by_process}");
}

#[test]
fn pictures_and_tables_have_all_traces() {
    let dir = place();
    let user = User::Me;
    recorded(user, &dir.join("a"), &[], &["sh", "-c", "cat /etc/hostname; true"]);
    sibling(&dir.join("a"), &dir.join("b"), "web-2", 60);
    let processes = |args: &[&str]| objects(&shown(user, &dir, &[args, &["--as", "processes-json"]].concat()));
    let (one, two) = (processes(&["a"]), processes(&["."]));
    assert_eq!(two.len(), 2 * one.len());
    for (nth, process) in two.iter().enumerate() {
        let own = &one[nth % one.len()];
        let same = |key: &str| process[key] == own[key];
        assert!(["pid", "parent", "calls", "errors", "read_bytes"].iter().all(|key| same(key)), "{process} {own}");
        assert_eq!(process["host"] == "web-2", nth >= one.len(), "{process}");
    }
    let apart = two[one.len()]["first_ns"].as_u64().zip(two[0]["first_ns"].as_u64()).map(|(b, a)| b - a);
    assert_eq!(apart, Some(60_000_000_000));
    let overview = shown(user, &dir, &[".", "--as", "overview"]);
    assert!(overview.contains("web-2:"), "{overview}");
    let stats = objects(&shown(user, &dir, &[".", "--as", "stats-json"]));
    let streams = stats[0]["streams"].as_array().expect("streams");
    assert!(["a/", "b/"].iter().all(|t| streams.iter().any(|s| s["name"].as_str().is_some_and(|n| n.starts_with(t)))));
    shown(user, &dir, &[".", "--as", "html=page.html", "--as", "timeline=all.pftrace"]);
    let picture = fs::read(dir.join("all.pftrace")).expect("a picture");
    assert!(picture.windows(9).any(|bytes| bytes == b"web-2:cat"));
    assert!(fs::read(dir.join("page.html")).is_ok_and(|page| page.starts_with(b"<!DOCTYPE html>")));
    // A part for each trace, with the clock as it was corrected.
    shown(user, &dir, &[".", "--as", "parquet=out", "--clock-offset", "web-2=-1d"]);
    let parts = lab::contents(&dir.join("out")).into_keys().filter(|p| p.extension().is_some_and(|e| e == "parquet"));
    let calls: Vec<String> = parts.map(|p| p.display().to_string()).filter(|p| p.contains("/calls/")).collect();
    assert_eq!(calls.len(), 2, "{calls:?}");
    let dates: std::collections::BTreeSet<&str> =
        calls.iter().filter_map(|p| p.split("date=").nth(1)?.split('/').next()).collect();
    assert_eq!(dates.len(), 2, "{calls:?}");
}

#[test]
fn functions_of_traces_keep_their_own_names() {
    let dir = place();
    let user = User::Me;
    let Some(program) = lab::program("fib") else { return };
    for (name, pattern) in [("a", "*"), ("b", "main")] {
        let path = dir.join(name);
        let path = path.to_str().expect("UTF-8");
        let out = lab::run(&mut lab::trapline(user, &["graph", "-q", "-F", pattern, "-o", path, "--", &program]));
        assert_eq!(out.code(), 0, "{}", out.stderr);
    }
    let named = |args: &[&str]| {
        let calls = objects(&shown(user, &dir, &[args, &["--as", "calls-json"]].concat()));
        let mut all: Vec<String> = calls.iter().filter_map(|c| c["function"].as_str().map(str::to_string)).collect();
        all.sort();
        all
    };
    let mut apart = [named(&["a"]), named(&["b"])].concat();
    apart.sort();
    assert!(apart.len() > 1);
    assert_eq!(named(&["."]), apart);
}

/// What function calls add up to is the sum of what they do in each trace, by name.
#[test]
fn functions_of_traces_are_added_up_by_name() {
    let Some(program) = lab::program("fib") else { return };
    lab::each_user(|user| {
        let dir = place();
        for (name, n) in [("a", "8"), ("b", "10")] {
            let path = dir.join(name).display().to_string();
            let out = lab::run(&mut lab::trapline(user, &["graph", "-q", "-o", &path, "--", &program, n]));
            assert_eq!(out.code(), 0, "{}", out.stderr);
        }
        let sums = |traces: &[&str]| -> BTreeMap<String, [u64; 3]> {
            let rows = objects(&shown(user, &dir, &[traces, &["--as", "functions-json"]].concat()));
            let of = |row: &Value| ["calls", "total_ns", "self_ns"].map(|key| row[key].as_u64().expect("a number"));
            rows.iter().map(|row| (row["function"].as_str().expect("a name").to_string(), of(row))).collect()
        };
        let mut wanted = sums(&["a"]);
        for (name, numbers) in sums(&["b"]) {
            let sum = wanted.entry(name).or_default();
            sum.iter_mut().zip(numbers).for_each(|(sum, n)| *sum += n);
        }
        assert_eq!(sums(&["."]), wanted);
        assert_eq!(wanted["fib"][0], 67 + 177);
        // Whatever is written of them has all of them.
        let folded = |traces: &[&str]| weights(&shown(user, &dir, &[traces, &["--as", "folded"]].concat()));
        assert_eq!(folded(&["."]), folded(&["a"]) + folded(&["b"]));
        for (view, wanted) in [("functions", " 244 "), ("stat", " 244 fib"), ("callgraph", "244x"), ("mermaid", "244x")]
        {
            assert!(shown(user, &dir, &[".", "--as", view]).contains(wanted), "{view}");
        }
        shown(user, &dir, &[".", "--as", "flame=flame.svg"]);
        assert!(
            fs::read_to_string(dir.join("flame.svg")).is_ok_and(|svg| svg.contains(">fib<") || svg.contains("fib"))
        );
        // A window of time is one of the wall clock: nothing has been called before the first trace began, a day later.
        let out = report(user, &dir, &[".", "--as", "functions", "--from", "+1d"]);
        assert!(out.code() == 0 && !out.out().contains(" fib"), "{}", out.out());
        let out = report(user, &dir, &[".", "--as", "functions", "--by", "host"]);
        assert!(out.code() == 2 && out.stderr.contains("of all traces together"), "{}", out.stderr);
    });
}

/// Spans are those of each process of each trace, and what any trace was recorded for is shown.
#[test]
fn spans_are_of_all_traces() {
    lab::each_user(|user| {
        let dir = place();
        let span = ["--span", "file = openat .. close by retval .. fd", "-e", "openat,close"];
        recorded(user, &dir.join("a"), &["-e", "openat,close"], &["cat", "/etc/hostname"]);
        recorded(user, &dir.join("b"), &span, &["cat", "/etc/hostname", "/etc/passwd"]);
        let spans = |args: &[&str]| {
            let found = objects(&shown(user, &dir, &[args, &["--as", "spans-json"]].concat()));
            assert_eq!(found.len(), 1);
            ["spans", "total_ns", "without_begin"].map(|key| found[0][key].as_u64().expect("a number"))
        };
        let (a, b) = (spans(&["a", span[0], span[1]]), spans(&["b"]));
        assert!(a[0] > 0 && b[0] > a[0]);
        assert_eq!(spans(&["."]), [0, 1, 2].map(|i| a[i] + b[i]));
        // Nothing is joined that is of two traces: threads of equal numbers, with descriptors of equal numbers.
        sibling(&dir.join("a"), &dir.join("c"), "web-2", 0);
        assert_eq!(spans(&["a", "c", span[0], span[1]]), a.map(|n| 2 * n));
        let out = report(user, &dir, &[".", "--as", "spans", "--by", "trace"]);
        assert!(out.code() == 2 && out.stderr.contains("of all traces together"), "{}", out.stderr);
    });
}

/// Hosts without their names are told apart, in everything that is written.
#[test]
fn hosts_without_names_are_told_apart() {
    let dir = place();
    let user = User::Me;
    recorded(user, &dir.join("a"), &[], &["cat", "/etc/hostname"]);
    sibling(&dir.join("a"), &dir.join("b"), "web-2", 0);
    sibling(&dir.join("b"), &dir.join("c"), "web-3", 0);
    let redact = ["--redact", "host"];
    let table = |args: &[&str]| shown(user, &dir, &[args, &redact].concat());
    let by_host = table(&["a", "b", "c", "-c", "--by", "host"]);
    let alone = shown(user, &dir, &["a", "-c"]);
    assert_eq!(by_host, format!("host-1:\n{alone}\nhost-2:\n{alone}\nhost-3:\n{alone}"));
    for view in ["json", "processes-json"] {
        let hosts: std::collections::BTreeSet<String> = objects(&table(&["a", "b", "c", "--as", view]))
            .iter()
            .filter_map(|line| line["host"].as_str().map(str::to_string))
            .collect();
        assert_eq!(hosts.into_iter().collect::<Vec<_>>(), ["host-1", "host-2", "host-3"], "{view}");
    }
    // A clock is corrected by the name that is not shown.
    table(&["a", "b", "c", "--as", "parquet=out", "--clock-offset", "web-2=-1d"]);
    let parts: Vec<String> = lab::contents(&dir.join("out")).into_keys().map(|p| p.display().to_string()).collect();
    for host in ["host-1", "host-2", "host-3"] {
        assert!(parts.iter().any(|p| p.contains(&format!("host={host}/"))), "{host}: {parts:?}");
    }
    assert!(!parts.iter().any(|p| p.contains("web-")), "{parts:?}");
}
