//! `trapline session set`: probes and processes join and leave a session that runs; a call has several enablings.

use crate::kernel::possible;
use crate::lab::{self, User};
use crate::rights::{as_it_is, with_capabilities};
use crate::sessions::{Phases, Room, each_backend, record};
use serde_json::Value;

const FORK: &str = "tracepoint:sched:sched_process_fork";

#[track_caller]
fn counted(room: &Room, session: &str, probe: &str) -> Vec<[Option<u64>; 3]> {
    let s = room.status(session);
    let all = s["enablings"].as_array().expect("enablings").iter().filter(|e| e["probe"] == probe);
    all.map(|e| ["seen", "recorded", "filtered"].map(|k| e[k].as_u64())).collect()
}

#[test]
fn probes_join_and_leave_a_running_session() {
    if !possible() {
        return;
    }
    let room = Room::new(User::Me);
    let Some(mut p) = record(&room, "kernel", "add", &["-e", "getppid"]) else { return };
    p.make("fork", 5);
    room.does(&["set", "add", "-e", &format!("+{FORK} /args.child_pid > 0/ comm")]);
    p.make("fork", 3);
    room.refuses(&["set", "add", "-e", &format!("+{FORK} /args.child_pid > 0/")], 125, "enabled already");
    room.does(&["set", "add", "-e", &format!("+{FORK} /args.child_pid == 1/")]);
    p.make("fork", 4);
    room.does(&["stop", "add"]);
    // What joins a stopped session is stopped too.
    let main = format!("+uprobe:{}:main", lab::program("phases").expect("a program"));
    room.does(&["set", "add", "-e", &main, "-e", "+syscall:getuid:entry"]);
    p.make("uid", 6);
    room.does(&["start", "add"]);
    p.make("uid", 2);
    lab::until("its counters", || counted(&room, "add", "syscall:getuid:entry") == [[Some(2), Some(2), Some(0)]]);
    assert_eq!(counted(&room, "add", FORK), [[Some(7), Some(7), Some(0)], [Some(4), Some(0), Some(4)]]);
    room.does(&["set", "add", "-e", &format!("-{FORK}"), "-e", "-syscall:getuid:*"]);
    p.make("fork", 9);
    p.make("uid", 9);
    // What was counted stays, and a probe can come back.
    room.does(&["set", "add", "-e", &format!("+{FORK}")]);
    p.make("fork", 2);
    lab::until("its counters", || counted(&room, "add", FORK).last() == Some(&[Some(2), Some(2), Some(0)]));
    assert_eq!(counted(&room, "add", FORK)[..2], [[Some(7), Some(7), Some(0)], [Some(4), Some(0), Some(4)]]);
    let text = room.does(&["status", "add"]);
    assert!(text.contains("removed") && text.contains("/args.child_pid == 1/"), "{text}");
    for (set, code, why) in [
        (format!("-{FORK} /args.child_pid == 3/"), 125, "no such probe is enabled"),
        (format!("-{FORK}s"), 125, "did you mean"),
        (format!("+{FORK}s"), 2, "did you mean"),
        (FORK.to_string(), 2, "added or taken away"),
        ("+begin".into(), 2, "the session has begun"),
        ("+getppid kstack".into(), 2, "what calls capture"),
        ("-getuid".into(), 125, "no such call is enabled"),
    ] {
        room.refuses(&["set", "add", "-e", &set], code, why);
    }
    let again = "+syscall:getuid:entry";
    room.refuses(&["set", "add", "-e", again, "-e", again], 125, "enabled already");
    assert_eq!(p.end().code(), 0);
    assert_eq!(room.counts("add.trace", [FORK, "syscall:getuid:entry"]), [9, 2]);
}

/// Who shows a session with a name may get stacks at any time: live, and of the trace while it is written.
#[test]
fn stacks_of_a_probe_that_joins_are_named() {
    if !possible() {
        return;
    }
    let room = Room::new(User::Me);
    let Some(mut p) = record(&room, "kernel", "st", &["-e", "getppid", "--as", "text=live"]) else { return };
    let followed = room.path.join("followed");
    let file = std::fs::File::create(&followed).expect("a file");
    lab::until("the trace", || room.path.join("st.trace/metadata").exists());
    let follow = lab::start(room.trapline(&["report", "-q", "--follow", "st.trace"]).stdout(file));
    p.make("ppid", 3);
    room.does(&["set", "st", "-e", &format!("+{FORK} ustack")]);
    p.make("fork", 3);
    assert_eq!(p.end().code(), 0);
    assert_eq!(follow.end().code(), 0);
    for shown in [room.path.join("live"), followed] {
        let text = std::fs::read_to_string(&shown).expect("its text");
        let forks = text.lines().filter(|l| l.contains("sched_process_fork(")).count();
        let named = text.lines().filter(|l| l.starts_with(" > ") && l.contains("(main+0x")).count();
        assert!(forks == 3 && named == 3, "{}: {text}", shown.display());
        assert!(!text.contains("(lost)") && !text.contains("[unknown]"), "{}: {text}", shown.display());
    }
}

#[test]
fn a_flight_recorder_describes_what_joined() {
    if !possible() {
        return;
    }
    let room = Room::new(User::Me);
    let Some(mut p) = record(&room, "kernel", "fl", &["-e", "getppid", "--flight", "1M"]) else { return };
    room.does(&["snapshot", "fl"]);
    room.does(&["set", "fl", "-e", &format!("+{FORK}")]);
    p.make("fork", 3);
    lab::until("its counters", || counted(&room, "fl", FORK) == [[Some(3), Some(3), Some(0)]]);
    room.does(&["snapshot", "fl"]);
    assert_eq!(room.counts("fl.trace/snapshot-2", [FORK]), [3]);
    assert_eq!(p.end().code(), 0);
}

#[test]
fn many_probes_come_and_go() {
    if !possible() {
        return;
    }
    let room = Room::new(User::Me);
    let Some(mut p) = record(&room, "kernel", "many", &["-e", "getppid", "--buffer", "64K"]) else { return };
    for _ in 0..20 {
        room.does(&["set", "many", "-e", &format!("+{FORK}"), "-e", "+software:context-switches:1"]);
        p.make("fork", 2);
        room.does(&["set", "many", "-e", &format!("-{FORK}"), "-e", "-software:*"]);
        p.make("fork", 1);
    }
    let all = counted(&room, "many", FORK);
    assert_eq!((all.len(), all.iter().filter(|c| c[0] == Some(2)).count()), (20, 20), "{all:?}");
    assert_eq!(p.end().code(), 0);
    assert_eq!(room.counts("many.trace", [FORK]), [40]);
}

#[test]
fn processes_join_and_leave_a_running_session() {
    each_backend(|user, backend| {
        if !lab::may_attach(user) {
            return;
        }
        let Some(program) = lab::program("phases") else { return };
        let room = Room::new(user);
        let other = &mut Phases::start(&mut lab::as_user(user, &[&program]));
        other.make("ppid", 30);
        let Some(mut p) = record(&room, backend, "pids", &["-e", "getppid,getuid"]) else { return };
        p.make("ppid", 5);
        let pid = other.child.id().to_string();
        room.refuses(
            &["set", "pids", "-p", &format!("-{pid}")],
            125,
            if backend == "kernel" { "not traced" } else { "no such process" },
        );
        room.does(&["set", "pids", "-p", &pid]);
        other.make("ppid", 7);
        other.make("fork", 2);
        p.make("uid", 3);
        let target = room.status("pids")["target"].as_str().unwrap_or_default().to_string();
        assert!(target.contains("phases") && target.ends_with(&format!("-p {pid}")), "{target}");
        room.does(&["set", "pids", "-p", &format!("-{pid}")]);
        other.make("ppid", 50);
        other.make("fork", 2);
        room.does(&["set", "pids", "-p", &pid, "-e", "-getuid"]);
        other.make("ppid", 4);
        p.make("uid", 9);
        room.does(&["set", "pids", "-p", &format!("-{pid}")]);
        for (pid, code, why) in
            [("x", 2, "not a process id"), ("0", 2, "not a process id"), ("999999999", 125, "no such process")]
        {
            room.refuses(&["set", "pids", "-p", pid], code, why);
        }
        // Whoever is traced alone stays.
        let own =
            std::fs::read_dir("/proc").expect("/proc").flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
        let of_session =
            |pid: &u32| lab::status_field(*pid, "Name").is_some_and(|n| n == "phases") && *pid != other.child.id();
        for own in own.filter(of_session) {
            let parent = lab::status_field(own, "PPid").and_then(|p| p.parse().ok());
            if parent == Some(p.child.id()) {
                room.refuses(&["set", "pids", "-p", &format!("-{own}")], 125, "no other process is traced");
            }
        }
        assert_eq!(p.end().code(), 0);
        // Each child that is made makes one getppid.
        assert_eq!(room.counts("pids.trace", ["getppid", "getuid"]), [5 + 7 + 2 + 4, 3], "{user:?} {backend}");
        other.make("ppid", 1);
    });
}

#[test]
fn a_call_has_several_enablings_with_filters_and_counters_of_their_own() {
    each_backend(|user, backend| {
        let room = Room::new(user);
        let filters = ["-e", "getppid /pid == 1/", "-e", "getppid,getuid /retval >= 0/", "-e", "getuid /pid == 1/"];
        let Some(mut p) = record(&room, backend, "calls", &filters) else { return };
        p.make("ppid", 5);
        p.make("uid", 3);
        let rows = |name: &str| counted(&room, "calls", name);
        let n = |seen: u64, recorded: u64| [Some(seen), Some(recorded), Some(seen - recorded)];
        lab::until("its counters", || rows("getppid,getuid") == [n(8, 8)]);
        assert_eq!((rows("getppid"), rows("getuid")), (vec![n(5, 0)], vec![n(3, 0)]));
        room.does(&["set", "calls", "-e", "-getppid,getuid /retval >= 0/"]);
        p.make("ppid", 10);
        room.does(&["set", "calls", "-e", "+getppid /retval > 0/"]);
        p.make("ppid", 2);
        lab::until("its counters", || rows("getppid") == [n(17, 0), n(2, 2)]);
        assert_eq!(rows("getppid,getuid"), [n(8, 8)]);
        // Without filters everything is recorded again.
        room.does(&["set", "calls", "-e", "getppid"]);
        p.make("ppid", 4);
        p.make("uid", 4);
        assert_eq!(p.end().code(), 0);
        assert_eq!(room.counts("calls.trace", ["getppid", "getuid"]), [5 + 2 + 4, 3], "{user:?} {backend}");
    });
}

#[test]
fn an_ordinary_user_adds_what_he_may_see() {
    if !possible() {
        return;
    }
    let Some(trapline) = with_capabilities() else { return };
    let Some(_paranoid) = as_it_is() else { return };
    let room = Room::new(User::Nobody);
    let Some(program) = lab::program("phases") else { return };
    let as_nobody = |args: &[&str]| {
        let mut c = lab::as_user(User::Nobody, &[&[&trapline[..]], args].concat());
        c.env("XDG_RUNTIME_DIR", &room.path).current_dir(&room.path);
        c
    };
    let record = ["record", "--backend", "kernel", "--name", "own", "-o", "own.trace", "-e", "getppid", "--", &program];
    let mut p = Phases::start(&mut as_nobody(&record));
    lab::until("its socket", || room.socket("own").exists());
    let probe = &format!("uprobe:{program}:nothing");
    room.does(&["set", "own", "-e", &format!("+{probe}")]);
    p.make("kill", 3);
    room.refuses(&["set", "own", "-e", "+kprobe:vfs_read"], 125, "for root");
    room.refuses(&["set", "own", "-p", "1"], 125, "1");
    // Root sees the states that the user sees.
    let root = Room::new(User::Me);
    let socket = room.socket("own").to_str().expect("UTF-8").to_string();
    let key = |v: &Value, k: &str| v[k].clone();
    let (own, of_root) = (room.status("own"), root.status(&socket));
    for k in ["state", "target", "calls", "probes", "enablings", "user"] {
        assert_eq!(key(&own, k), key(&of_root, k));
    }
    assert_eq!(of_root["user"], "nobody");
    assert_eq!(p.end().code(), 0);
    assert_eq!(room.counts("own.trace", [probe]), [3]);
}

#[test]
fn the_stacks_of_a_process_that_joins_are_whole() {
    if !possible() {
        return;
    }
    let Some(program) = lab::program("phases") else { return };
    let room = Room::new(User::Me);
    let other = &mut Phases::start(&mut lab::as_user(User::Me, &[&program]));
    other.make("ppid", 1);
    let probe = "syscall:getuid:entry";
    let Some(p) = record(&room, "kernel", "joins", &["-e", &format!("{probe} ustack")]) else { return };
    room.does(&["set", "joins", "-p", &other.child.id().to_string()]);
    // Its tables are built by another thread.
    std::thread::sleep(std::time::Duration::from_millis(500));
    other.make("uid", 5);
    room.does(&["destroy", "joins"]);
    assert_eq!(p.end().code(), 0);
    let out = lab::run(&mut room.trapline(&["report", "-q", "--as", "json", "joins.trace"]));
    let text = out.out();
    let of: Vec<Value> =
        text.lines().filter(|l| l.contains(probe)).map(|l| serde_json::from_str(l).expect("JSON")).collect();
    assert_eq!(of.len(), 5, "{text}");
    for event in of {
        let names = event["ustack"].as_array().expect("a stack").iter().filter_map(|f| f["function"].as_str());
        assert!(names.into_iter().any(|n| n == "main"), "{event}");
    }
}
