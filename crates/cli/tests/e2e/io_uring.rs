//! Operations of io_uring: what a program counts itself is what is shown, however they are submitted and completed.

use crate::kernel::possible;
use crate::lab::{self, User};
use crate::probes::{Recorded, record, refused};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

/// `tests/programs/uring.c`, where the kernel has io_uring and lets it be used.
fn uring() -> Option<String> {
    let program = lab::program("uring")?;
    let works = lab::run(&mut lab::as_user(User::Me, &[&program, "load", "1"])).code() == 0;
    if !works {
        lab::skip("kernel:io_uring", "io_uring cannot be used here");
    }
    works.then_some(program)
}

/// What the program says that it has counted: by operation, submissions and completions.
fn counted(out: &str) -> BTreeMap<String, (u64, u64)> {
    let line = |l: &str| {
        let words: Vec<&str> = l.split_whitespace().collect();
        let [name, submitted, completed, ..] = words[..] else { panic!("{l}") };
        (format!("io_uring:{name}"), (submitted.parse().expect("a number"), completed.parse().expect("a number")))
    };
    out.lines().map(line).collect()
}

/// What was recorded of each operation: events, and those with a result.
fn shown(of: &Recorded) -> BTreeMap<String, (u64, u64)> {
    let mut all = BTreeMap::new();
    for event in of.events.iter().filter(|e| e["type"] == "probe") {
        let (events, completed): &mut (u64, u64) = all.entry(event["name"].as_str().unwrap().to_string()).or_default();
        *events += 1;
        *completed += u64::from(!event["ret"].is_null());
    }
    all
}

/// The only event of an operation that passes.
#[track_caller]
fn one<'e>(of: &'e Recorded, probe: &str, is: impl Fn(&Value) -> bool) -> &'e Value {
    let found: Vec<&Value> = of.of(probe).into_iter().filter(|e| is(e)).collect();
    let [event] = found[..] else { panic!("{probe}: {found:?}") };
    event
}

#[test]
fn every_operation_is_an_event_with_its_result() {
    let (true, Some(program)) = (possible(), uring()) else { return };
    let r = record(&["-e", "io_uring:*"], &[&program, "kinds"]);
    let (own, shown) = (counted(&r.out.out()), shown(&r));
    assert_eq!(own.keys().collect::<Vec<_>>(), shown.keys().collect::<Vec<_>>());
    for (name, (submitted, completed)) in &own {
        let expected = match name.as_str() {
            // Nothing is posted for its success; and what is posted for a failure comes by itself.
            "io_uring:fadvise" => (1, 0),
            "io_uring:shutdown" => (2, 1),
            // The last one never completes, unless the kernel cancels it at the end of the program.
            "io_uring:poll_add" => (completed + 1, shown[name].1),
            _ => (*submitted, *completed),
        };
        assert_eq!(shown[name], expected, "{name}");
        assert_eq!(r.count(name, "recorded"), expected.0, "{name}");
    }

    let failed = one(&r, "io_uring:openat", |_| true);
    assert_eq!((&failed["args"]["filename"], &failed["args"]["dfd"]), (&"/no such file".into(), &"AT_FDCWD".into()));
    assert_eq!((&failed["ret"], &failed["errno"]), (&(-1).into(), &"ENOENT".into()));
    let read = one(&r, "io_uring:read", |e| e["args"]["count"] == 100);
    assert_eq!((read["ret"].as_i64(), read["errno"].is_null()), (Some(100), true));
    assert!(read["start_ns"].as_u64() < read["end_ns"].as_u64(), "{read}");
    // A worker of the kernel does it, for the thread that has submitted it.
    let worked = one(&r, "io_uring:read", |e| e["args"]["sqe_flags"] == serde_json::json!(["IOSQE_ASYNC"]));
    assert_eq!((worked["tid"].as_u64(), worked["ret"].as_i64()), (read["tid"].as_u64(), Some(4096)));
    assert_eq!(one(&r, "io_uring:fallocate", |_| true)["errno"], "ECANCELED");
    assert_eq!(one(&r, "io_uring:other", |_| true)["errno"], "EINVAL");
    let registered = &one(&r, "io_uring:readv", |_| true)["args"];
    assert_eq!((registered["fd"].as_i64(), registered["registered"].as_i64()), (Some(-1), Some(1)));
    // Two with one user_data are two.
    let timeouts = r.of("io_uring:timeout");
    assert!(timeouts.iter().all(|e| e["errno"] == "ETIME" && e["start_ns"].is_u64()), "{timeouts:?}");
    // Each completion begins where the one before has ended.
    let several: Vec<&Value> = r.of("io_uring:poll_add").into_iter().filter(|e| e["args"]["poll_flags"] == 1).collect();
    assert_eq!(several.len(), 4);
    assert_eq!(several[0]["args"]["events"], serde_json::json!(["POLLIN"]));
    assert!(several.windows(2).all(|w| w[0]["end_ns"].as_u64() <= w[1]["start_ns"].as_u64()), "{several:?}");
    let more = |e: &&&Value| e["args"]["cqe_flags"] == serde_json::json!(["IORING_CQE_F_MORE"]);
    assert_eq!(several.iter().filter(more).count(), 3);
    assert!(one(&r, "io_uring:shutdown", |e| e["start_ns"].is_null())["errno"] == "EBADF");
}

#[test]
fn counts_are_equal_under_load() {
    let (true, Some(program)) = (possible(), uring()) else { return };
    for (words, process) in [(["load", "6000"], true), (["sqpoll", "6000"], false), (["overflow", "240"], true)] {
        let r = record(&["-e", "io_uring:*"], &[&[program.as_str()][..], &words].concat());
        assert_eq!(shown(&r), counted(&r.out.out()), "{words:?}");
        let events: Vec<&Value> = r.events.iter().filter(|e| e["type"] == "probe").collect();
        let tids: BTreeSet<_> = events.iter().map(|e| e["tid"].as_u64()).collect();
        let pids: BTreeSet<_> = events.iter().map(|e| e["pid"].as_u64()).collect();
        assert_eq!((tids.len(), pids.len(), tids == pids), (1, 1, process), "{words:?}: {tids:?} {pids:?}");
        let known = |e: &&Value| e["start_ns"].is_u64() && e["args"]["user_data"] != "0x0";
        assert!(events.iter().all(known), "{words:?}");
    }
}

#[test]
fn a_copy_by_liburing_has_done_what_it_has_counted() {
    if !Path::new("/usr/include/liburing.h").exists() {
        return lab::skip("package:liburing-dev", "no liburing");
    }
    let (true, Some(_)) = (possible(), uring()) else { return };
    let Some(copy) = lab::compiled("uring_copy", "uring_copy.c", &["-Wl,--no-as-needed", "-luring"]) else { return };
    let dir = lab::scratch();
    let (from, to) = (dir.join("from"), dir.join("to"));
    std::fs::write(&from, vec![7; 1_000_001]).unwrap();
    let words = [from.to_str().unwrap(), to.to_str().unwrap()];
    let r = record(&["-y", "-e", "io_uring:*", "--ustack"], &[&copy, words[0], words[1]]);
    assert_eq!(shown(&r), counted(&r.out.out()));
    let bytes = |name: &str| r.of(name).iter().filter_map(|e| e["ret"].as_i64()).sum::<i64>();
    assert_eq!((bytes("io_uring:read"), bytes("io_uring:write")), (1_000_001, 1_000_001));
    let read = r.of("io_uring:read")[0];
    let names = |e: &Value| e["ustack"].as_array().unwrap().iter().map(|f| f["function"].clone()).collect::<Vec<_>>();
    assert!(names(read).contains(&"main".into()), "{read}");

    let text = lab::run(&mut lab::trapline(User::Me, &["report", "-y", r.dir.to_str().unwrap()])).out();
    let line = format!("io_uring:read(fd=3<{}>, buf=0x", words[0]);
    assert!(text.contains(&line), "{line}: {text}");

    // The table of calls has the same numbers.
    let table = lab::run(&mut lab::trapline(User::Me, &["report", "-c", r.dir.to_str().unwrap()]));
    let rows = table.out();
    for (name, (_, completed)) in counted(&r.out.out()) {
        let row = rows.lines().find(|l| l.ends_with(&name)).unwrap_or_else(|| panic!("{rows}"));
        assert_eq!(row.split_whitespace().nth(3), Some(completed.to_string().as_str()), "{row}");
    }
}

#[test]
fn descriptors_of_operations_have_names() {
    let (true, Some(program)) = (possible(), uring()) else { return };
    let dir = lab::scratch();
    let file = dir.join("named");
    std::fs::write(&file, "text").unwrap();
    let file = file.to_str().unwrap();
    let r = record(&["-y", "-e", "io_uring:*", "-e", "read"], &[&program, "files", file]);
    let text = lab::run(&mut lab::trapline(User::Me, &["report", "-y", r.dir.to_str().unwrap()])).out();
    let reads: Vec<&str> = text.lines().filter_map(|l| Some(&l[l.find(" read(")? + 1..])).collect();
    let of = |count: usize| format!(", {count}");
    let last = |count| reads.iter().rfind(|l| l.contains(&of(count))).unwrap_or_else(|| panic!("{text}"));
    // One of the file, one of the socket; and one of its number when it is closed.
    assert!(reads.iter().any(|l| l.contains(&format!("<{file}>, "))), "{text}");
    assert!(last(1).contains("<socket:["), "{text}");
    assert!(!last(2).contains('<'), "{text}");
    let direct = one(&r, "io_uring:openat", |e| e["args"]["file_index"] == 1);
    assert_eq!((direct["ret"].as_i64(), &direct["args"]["filename"]), (Some(0), &file.into()));
}

/// What is not remembered is counted, and the others are events without a result.
#[test]
fn more_operations_than_are_remembered_are_counted() {
    let (true, Some(program)) = (possible(), uring()) else { return };
    let (most, more) = (16_384, 1000);
    let r = record(&["-e", "io_uring:*"], &[&program, "flood", &(most + more).to_string()]);
    // Which operation it was that is not remembered is not counted.
    assert_eq!(r.count("io_uring:poll_add", "recorded"), most);
    assert_eq!(["dropped", "seen"].map(|what| r.count("io_uring:*", what)), [more, more]);
}

#[test]
fn filters_are_those_of_spans() {
    let (true, Some(program)) = (possible(), uring()) else { return };
    for (filter, expected) in [
        ("retval < 0", 9),
        ("args.addr == \"/no such file\"", 1),
        ("args.len == 100 && retval == 100", 2),
        ("dur >= 1ms && args.offset == 0 && retval == -62", 2),
        ("tid != pid", 0),
    ] {
        let r = record(&["-e", &format!("io_uring:* /{filter}/")], &[&program, "kinds"]);
        let found: Vec<&Value> = r.events.iter().filter(|e| e["type"] == "probe").collect();
        // What the kernel cancels at the end of the program may come, or not.
        let at_the_end = |e: &&&Value| e["name"] == "io_uring:poll_add" && e["args"]["poll_flags"] == 0;
        let n = found.len() - found.iter().filter(at_the_end).count();
        assert_eq!(n, expected, "{filter}: {found:?}");
    }
}

#[test]
fn what_is_submitted_before_the_attach_has_no_start() {
    let (true, Some(program)) = (possible(), uring()) else { return };
    let dir = lab::scratch();
    let fifo = dir.join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut command = lab::as_user(User::Me, &[program.as_str(), "wait", fifo.to_str().unwrap()]);
    let mut target = lab::start(command.stdin(Stdio::piped()).stdout(Stdio::null()));
    let mut input = target.child.stdin.take().unwrap();
    let (seen, pid) = (dir.join("seen"), target.pid().to_string());
    let mut trapline = lab::trapline(User::Me, &["record", "-p", &pid, "-e", "io_uring:*", "--as", "json"]);
    let run = lab::start(trapline.stdout(std::fs::File::create(&seen).unwrap()));
    let has = |name: &str| std::fs::read_to_string(&seen).unwrap().contains(name);
    lab::until("the attach", || {
        input.write_all(b"x").unwrap();
        has("io_uring:nop")
    });
    std::fs::write(&fifo, "x").unwrap();
    lab::until("the completion", || has("io_uring:read"));
    drop(input);
    assert_eq!((target.end().code(), run.end().code()), (0, 0));
    let text = std::fs::read_to_string(&seen).unwrap();
    let events: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let read = events.iter().find(|e| e["name"] == "io_uring:read").unwrap();
    assert_eq!(
        (read["start_ns"].is_null(), read["ret"].as_i64(), read["pid"].as_u64()),
        (true, Some(1), pid.parse().ok())
    );
    assert!(events.iter().filter(|e| e["name"] == "io_uring:nop").all(|e| e["pid"] == read["pid"]));
}

#[test]
fn it_is_for_root() {
    let (true, true, Some(_)) = (possible(), lab::is_root(), uring()) else { return };
    let (code, line) = refused(User::Nobody, &["-e", "io_uring:*"]);
    assert!(code != 0 && line.contains("root"), "{line}");
}
