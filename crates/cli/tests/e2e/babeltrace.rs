//! Another reader of the format: babeltrace2 must read every trace that these tests record, without a word of complaint, and find
//! in it what `trapline report` finds.

use crate::lab::{self, User};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;

/// An event as babeltrace2 prints it.
#[derive(Clone, Debug)]
pub struct Event {
    /// ns of the monotonic clock.
    pub time: u64,
    /// Class: `syscall:openat`.
    pub name: String,
    text: String,
}

impl Event {
    fn parse(line: &str) -> Option<Event> {
        let (time, rest) = line.strip_prefix('[')?.split_once("] ")?;
        let (_, rest) = rest.split_at(rest.find("syscall:").into_iter().chain(rest.find("process:")).min()?);
        let (name, text) = rest.split_once(": { ")?;
        Some(Event { time: time.trim_start_matches('0').parse().unwrap_or(0), name: name.into(), text: text.into() })
    }

    fn raw(&self, field: &str) -> Option<&str> {
        let key = format!(" {field} = ");
        let at = self.text.find(&key)? + key.len();
        Some(&self.text[at..])
    }

    /// An integer.
    pub fn int(&self, field: &str) -> Option<i64> {
        let raw = self.raw(field)?;
        let text = &raw[..raw.find([',', ' '])?];
        match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok().map(|n| n as i64),
            None => text.parse().ok(),
        }
    }

    /// A string.
    pub fn text(&self, field: &str) -> Option<String> {
        quoted(self.raw(field)?)
    }

    /// Bytes of a sequence.
    pub fn bytes(&self, field: &str) -> Option<Vec<u8>> {
        let raw = self.raw(field)?.strip_prefix("[ ")?;
        let list = &raw[..raw.find(']').filter(|_| raw.starts_with(']')).or_else(|| raw.find(" ]"))?];
        let items = list.split(", ").filter(|s| !s.is_empty());
        items.map(|i| u8::from_str_radix(i.split_once("= 0x")?.1, 16).ok()).collect()
    }

    /// The strings of a list such as argv.
    fn strings(&self, field: &str) -> Option<Vec<String>> {
        let count = self.int(&format!("{field}_count"))?;
        let mut rest = self.raw(field)?;
        let mut all = Vec::new();
        for _ in 0..count {
            rest = &rest[rest.find(" str = ")? + 7..];
            all.push(quoted(rest)?);
        }
        Some(all)
    }
}

/// What stands in quotes at the front.
fn quoted(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut chars = text.strip_prefix('"')?.chars();
    loop {
        match chars.next()? {
            '"' => return Some(out),
            '\\' => match chars.next()? {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                'x' => {
                    out.push(char::from(u8::from_str_radix(&format!("{}{}", chars.next()?, chars.next()?), 16).ok()?))
                }
                c => out.push(c),
            },
            c => out.push(c),
        }
    }
}

/// Runs it with bounds of time and memory: exit status 0, and on stderr only what `complaint` is in each line of.
#[track_caller]
fn read(trace: &Path, complaint: Option<&str>) -> Option<Vec<Event>> {
    if !lab::has("babeltrace2") {
        lab::skip("package:babeltrace2", "no babeltrace2");
        return None;
    }
    let dir = trace.to_str().expect("UTF-8");
    let argv = [
        "timeout",
        "60",
        "prlimit",
        "--as=2147483648",
        "babeltrace2",
        "--clock-cycles",
        "--no-delta",
        "--color=never",
        dir,
    ];
    let out = lab::run(lab::as_user(User::Me, &argv).stdin(Stdio::null()));
    assert_eq!(out.code(), 0, "{}: {}", trace.display(), out.stderr);
    match complaint {
        None => assert_eq!(out.stderr, "", "{}", trace.display()),
        Some(c) => assert!(out.stderr.contains(c), "{}: no {c} in {}", trace.display(), out.stderr),
    }
    let text = out.out();
    Some(text.lines().map(|l| Event::parse(l).unwrap_or_else(|| panic!("not an event: {l}"))).collect())
}

/// Whether babeltrace2 reads this many events from a trace without a word, and the same ones as `trapline report`.
#[track_caller]
pub fn check(user: User, trace: &Path, events: u64) -> Vec<Event> {
    let Some(found) = read(trace, None) else { return Vec::new() };
    assert_eq!(found.len() as u64, events, "{}", trace.display());
    compare(&json(user, trace), &found);
    found
}

/// Like [`check`], for a trace with dropped events, about which babeltrace2 prints a warning.
#[track_caller]
pub fn check_with_drops(user: User, trace: &Path, events: u64) {
    let Some(found) = read(trace, Some("discarded")) else { return };
    assert_eq!(found.len() as u64, events, "{}", trace.display());
    compare(&json(user, trace), &found);
}

/// Whether babeltrace2 finds without a word what `trapline report` finds in a trace of all calls; how many events that are.
#[track_caller]
pub fn check_all(user: User, trace: &Path) -> u64 {
    check_json(trace, &json(user, trace))
}

/// [`check_all`] of a trace of which a part is missing: the report exits with 125.
#[track_caller]
pub fn check_rest(user: User, trace: &Path) -> u64 {
    check_json(trace, &json_of_rest(user, trace))
}

#[track_caller]
fn check_json(trace: &Path, json: &[Value]) -> u64 {
    if let Some(found) = read(trace, None) {
        assert_eq!(found.len(), json.len(), "{}", trace.display());
        compare(json, &found);
    }
    json.len() as u64
}

/// How many events babeltrace2 finds in a trace, and how many it says were discarded; none where there is no babeltrace2.
#[track_caller]
pub fn counts(user: User, trace: &Path) -> Option<(u64, u64)> {
    if !lab::has("babeltrace2") {
        lab::skip("package:babeltrace2", "no babeltrace2");
        return None;
    }
    let dir = trace.to_str().expect("UTF-8");
    let argv = ["timeout", "120", "prlimit", "--as=2147483648", "babeltrace2", "--color=never", dir];
    let out = lab::run(lab::as_user(user, &argv).stdin(Stdio::null()));
    assert_eq!(out.code(), 0, "{}: {}", trace.display(), out.stderr);
    let lost = out.stderr.lines().map(|line| {
        let n = line.strip_prefix("WARNING: Tracer discarded ").and_then(|l| l.split(' ').next()?.parse::<u64>().ok());
        n.unwrap_or_else(|| panic!("{}: {line}", trace.display()))
    });
    Some((out.out().lines().count() as u64, lost.sum()))
}

/// Every event of the trace in JSON, as `trapline report` makes it.
#[track_caller]
pub fn json(user: User, trace: &Path) -> Vec<Value> {
    json_with(user, trace, 0)
}

/// [`json`] of a trace of which a part is missing: the report exits with 125.
#[track_caller]
pub fn json_of_rest(user: User, trace: &Path) -> Vec<Value> {
    json_with(user, trace, 125)
}

#[track_caller]
fn json_with(user: User, trace: &Path, status: i32) -> Vec<Value> {
    let dir = trace.to_str().expect("UTF-8");
    let out = lab::run(&mut lab::trapline(user, &["report", "--mappings", "--as", "json", "-s", "65535", dir]));
    assert_eq!(out.code(), status, "{}", out.stderr);
    let text = out.out();
    text.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect()
}

/// Compares calls and notices, one by one, with those of `trapline report --as json`.
#[track_caller]
fn compare(json: &[Value], found: &[Event]) {
    let mut by_key: HashMap<(u64, u64, String), Vec<&Event>> = HashMap::new();
    for e in found.iter().rev() {
        let tid = e.int("tid").expect("tid") as u64;
        by_key.entry((tid, e.time, e.name.clone())).or_default().push(e);
    }
    for line in json {
        let number = |key: &str| line[key].as_u64();
        let (name, time) = match line["type"].as_str() {
            Some("syscall") => (format!("syscall:{}", line["name"].as_str().unwrap_or_default()), number("end_ns")),
            Some("inflight") => ("process:inflight".to_string(), number("time_ns")),
            _ => continue,
        };
        let (Some(tid), Some(time)) = (number("tid"), time) else { panic!("no thread or time: {line}") };
        let Some(e) = by_key.get_mut(&(tid, time, name.clone())).and_then(Vec::pop) else {
            // A call that the table does not have is named by its number.
            assert!(by_key.contains_key(&(tid, time, "syscall:raw".into())), "babeltrace2 has no {line}");
            continue;
        };
        assert_eq!(e.int("pid").map(|p| p as u64), number("pid"), "{line}\n{e:?}");
        if name == "process:inflight" {
            let call = e.bytes("call").expect("the call");
            let start = call.get(24..32).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes);
            let simple = number("start_ns").is_some_and(|s| line["name"] == "wait4" && s != start);
            assert!(!simple, "{line}\n{e:?}");
        } else {
            same_call(line, e);
        }
    }
}

#[track_caller]
fn same_call(line: &Value, e: &Event) {
    if let Some(start) = line["start_ns"].as_i64() {
        assert_eq!(e.int("entry_time"), Some(start), "{line}\n{e:?}");
    }
    if line["errno"].is_string() {
        assert!(e.int("ret").is_some_and(|r| (-4095..0).contains(&r)), "{line}\n{e:?}");
    } else if let Some(ret) = line["ret"].as_i64() {
        assert_eq!(e.int("ret"), Some(ret), "{line}\n{e:?}");
    }
    let args = &line["args"];
    match e.name.as_str() {
        "syscall:openat" => {
            if let Some(path) = args["filename"].as_str() {
                assert_eq!(e.text("filename").as_deref(), Some(path), "{line}");
            }
        }
        "syscall:read" | "syscall:write" => {
            assert_eq!(e.int("fd"), args["fd"].as_i64().or_else(|| args["fd"]["fd"].as_i64()), "{line}");
            assert_eq!(e.int("count"), args["count"].as_i64(), "{line}");
            let data = args["buf"].as_str().or_else(|| args["buf"]["data"].as_str());
            // Where nothing could be read, the address is shown.
            if let Some(data) = data.filter(|d| d.is_ascii() && line["ret"].as_i64() > Some(0)) {
                assert_eq!(e.bytes("buf").as_deref(), Some(data.as_bytes()), "{line}");
            }
        }
        "syscall:execve" => {
            let argv: Option<Vec<String>> = serde_json::from_value(args["argv"].clone()).ok();
            if let Some(argv) = argv {
                assert_eq!(e.strings("argv"), Some(argv), "{line}");
            }
        }
        _ => {}
    }
}

#[test]
fn a_sample_has_every_kind_of_field() {
    crate::record::each_backend(|user, backend| {
        let script = "echo 'a \"word\" and \\ more' >/dev/null; /bin/cat /etc/hostname >/dev/null; sleep 0.5";
        let r = crate::record::record(user, &["--backend", backend, "-s", "200"], &["sh", "-c", script]);
        assert_eq!(r.outcome.code(), 0, "{}", r.outcome.stderr);
        let found = r.check();
        if found.is_empty() {
            return;
        }
        let with = |name: &str| found.iter().filter(|e| e.name == name).cloned().collect::<Vec<_>>();
        let opened: Vec<_> = with("syscall:openat").iter().filter_map(|e| e.text("filename")).collect();
        assert!(opened.iter().any(|f| f == "/etc/hostname"), "{opened:?}");
        let hostname = std::fs::read("/etc/hostname").expect("/etc/hostname");
        let read = with("syscall:read");
        assert!(
            read.iter().any(|e| e.bytes("buf").as_deref() == Some(&hostname)
                && e.int("ret") == Some(hostname.len() as i64)
                && e.int("count") > Some(1000)),
            "{read:?}"
        );
        let written = b"a \"word\" and \\ more\n";
        assert!(with("syscall:write").iter().any(|e| e.bytes("buf").as_deref() == Some(written)), "{backend}");
        let argv: Vec<_> = with("syscall:execve").iter().filter_map(|e| e.strings("argv")).collect();
        assert!(argv.contains(&vec!["/bin/cat".to_string(), "/etc/hostname".into()]), "{argv:?}");
        assert!(argv.contains(&vec!["sh".to_string(), "-c".into(), script.into()]), "{argv:?}");
        // The shell waits for the sleep, and the sleep sleeps.
        let notices = with("process:inflight");
        assert!(notices.len() >= 2, "{notices:?}");
        let pids: Vec<_> = notices.iter().filter_map(|e| e.int("pid")).collect();
        assert!(pids.iter().all(|p| with("syscall:execve").iter().any(|e| e.int("pid") == Some(*p))), "{pids:?}");
    });
}
