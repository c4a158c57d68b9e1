//! `trapline stacks`: what threads do now, what they wait for, and deadlocks.

use crate::lab::{self, Outcome, Running, User};
use serde_json::Value;
use std::collections::HashMap;

fn stacks(user: User, pid: u32, more: &[&str]) -> Outcome {
    let pid = pid.to_string();
    lab::run(&mut lab::trapline(user, &[&["stacks", "-p", &pid], more].concat()))
}

/// What is found; nothing as long as the process is still that of setpriv, which this user may not look into.
fn json(user: User, pid: u32) -> Value {
    let out = stacks(user, pid, &["--as", "json", "-q"]);
    if user == User::Nobody && out.stderr.contains("you may not look into it") {
        return Value::Null;
    }
    assert_eq!((out.code(), out.stderr.as_str()), (0, ""), "{}", out.out());
    serde_json::from_str(&out.out()).expect("JSON")
}

fn functions(thread: &Value) -> Vec<&str> {
    thread["stack"].as_array().expect("frames").iter().filter_map(|f| f["function"].as_str()).collect()
}

/// Where a program runs: in this pid namespace, or in one of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Here,
    Contained,
}

impl Place {
    /// What starts a program there.
    fn wrapper(self, user: User) -> &'static [&'static str] {
        match (self, user) {
            (Place::Here, _) => &[],
            (Place::Contained, User::Me) => &["unshare", "-mpf", "--kill-child", "--mount-proc"],
            (Place::Contained, _) => &["unshare", "-rmpf", "--kill-child", "--mount-proc"],
        }
    }

    /// Whether this user has such a place.
    fn is_to_be_had(self, user: User) -> bool {
        let had = lab::run(&mut lab::as_user(user, &[self.wrapper(user), &["true"]].concat())).code() == 0;
        if !had {
            testkit::skip("kernel:namespaces", "no namespaces are to be had");
        }
        had
    }

    /// Starts it, and the process that it is in; the wrapper has begun it once that has another name.
    fn start(self, user: User, argv: &[&str]) -> (Running, u32) {
        let mut running = lab::start(&mut lab::as_user(user, &[self.wrapper(user), argv].concat()));
        let wrapper = running.pid();
        let mut pid = wrapper;
        lab::until("the program runs", || {
            running.must_run();
            let children = std::fs::read_to_string(format!("/proc/{wrapper}/task/{wrapper}/children"));
            pid = match self {
                Place::Here => wrapper,
                Place::Contained => match children.unwrap_or_default().trim().parse() {
                    Ok(child) => child,
                    Err(_) => return false,
                },
            };
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            !["unshare", "setpriv"].contains(&name.trim())
        });
        (running, pid)
    }
}

/// Functions that a session traces return to stubs: who may stop a thread sees through that, others say why they do not.
#[test]
fn a_thread_in_traced_functions_has_its_callers() {
    let Some(program) = testkit::compiled("waits", "waits.c", &["-fno-inline"]) else { return };
    for user in [User::Me, User::Nobody] {
        let trace = lab::scratch();
        let session = ["graph", "-o", trace.join("t").to_str().expect("text"), "--", &program].map(String::from);
        let mut running = lab::start(&mut lab::trapline(user, &session));
        let mut pid = 0;
        let mut found = Value::Null;
        lab::until("it waits", || {
            running.must_run();
            let own = running.pid();
            let children = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
            pid = children.trim().parse().unwrap_or(0);
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            if name.trim() != "waits" {
                return false;
            }
            found = json(user, pid);
            found["processes"][0]["threads"][0]["call"].as_str().is_some_and(|call| call.contains("pause"))
        });
        let whole = functions(&found["processes"][0]["threads"][0]).join(" ");
        assert!(whole.contains("inner outer main"), "{user:?}: {found}");
        assert!(whole.ends_with("_start"), "{user:?}: {found}");
        let text = stacks(user, pid, &["--no-stop"]).out();
        let why = "the callers of functions that are traced are in the agent's memory, and --no-stop is given";
        assert!(text.contains(why), "{user:?}: {text}");
        lab::kill("KILL", pid.into());
        running.end();
    }
}

/// The program as this user, once all of its threads wait for one another.
fn deadlocked(user: User, place: Place, program: &str) -> (Running, u32, Value) {
    let (mut running, pid) = place.start(user, &[program]);
    let mut found = Value::Null;
    lab::until("a deadlock", || {
        running.must_run();
        found = json(user, pid);
        found["deadlocks"].as_array().is_some_and(|all| !all.is_empty())
    });
    (running, pid, found)
}

/// Eight threads in a circle, each where it waits for the next one; and the first thread waits for one of them.
#[track_caller]
fn eight_in_a_circle(user: User, place: Place, program: &str, function: &str, likely: bool) {
    let (mut running, pid, found) = deadlocked(user, place, program);
    let deadlocks = found["deadlocks"].as_array().expect("deadlocks");
    assert_eq!(deadlocks.len(), 1, "{program}: {found}");
    let deadlock = &deadlocks[0];
    let numbers = |key: &str| -> Vec<u64> {
        deadlock[key].as_array().expect("threads").iter().filter_map(Value::as_u64).collect()
    };
    let (circle, behind) = (numbers("threads"), numbers("behind"));
    assert_eq!((circle.len(), behind), (8, vec![u64::from(pid)]), "{program}: {found}");
    assert_eq!(deadlock["likely"] == true, likely, "{program}");
    let threads: HashMap<u64, &Value> = found["processes"][0]["threads"]
        .as_array()
        .expect("threads")
        .iter()
        .filter_map(|t| Some((t["tid"].as_u64()?, t)))
        .collect();
    assert_eq!(threads.len(), 9, "{program}");
    for (nth, tid) in circle.iter().enumerate() {
        let thread = threads[tid];
        let (wait, next) = (&thread["waits_for"], circle[(nth + 1) % 8]);
        assert_eq!((&wait["kind"], &wait["by"][0]["tid"]), (&"mutex".into(), &next.into()), "{program}: {thread}");
        assert!(thread.get("incomplete").is_none(), "{program}: {thread}");
        let functions = functions(thread);
        assert!(functions.iter().any(|f| f.contains(function)), "{program}: {functions:?}");
        // To the outermost: what a thread begins with.
        assert!(functions.last().is_some_and(|f| f.contains("clone")), "{program}: {functions:?}");
    }
    let text = stacks(user, pid, &[]).out();
    let first = if likely { "likely deadlock: 8 threads" } else { "deadlock: 8 threads" };
    assert!(text.starts_with(&format!("{first} wait for one another\n")), "{text}");
    let process = &found["processes"][0];
    assert_eq!(process.get("own_pid"), (place == Place::Contained).then_some(&Value::from(1)), "{process}");
    assert_eq!(text.contains(": 9 threads, in another pid namespace as 1\n"), place == Place::Contained, "{text}");
    running.must_run();
    lab::kill("KILL", pid.into());
    running.end();
}

#[test]
fn a_deadlock_in_c_is_named_with_and_without_optimization() {
    for (name, flags) in [
        ("deadlock_o2", &["-g", "-O2", "-pthread"][..]),
        ("deadlock_o0", &["-g", "-O0", "-pthread"]),
        ("deadlock_static", &["-g", "-O1", "-static", "-pthread"]),
    ] {
        let Some(program) = testkit::compile("gcc", name, "deadlock.c", flags) else { return };
        lab::each_attacher(|user| eight_in_a_circle(user, Place::Here, &program, "philosopher", false));
    }
}

#[test]
fn a_deadlock_in_cpp_is_named() {
    let Some(program) = testkit::compiled("deadlock_cc", "deadlock.cc", &["-g"]) else { return };
    lab::each_attacher(|user| eight_in_a_circle(user, Place::Here, &program, "philosopher", false));
}

#[test]
fn a_deadlock_in_rust_is_likely_because_the_locks_do_not_say_who_holds_them() {
    let Some(program) = testkit::compiled("deadlock_rs", "deadlock.rs", &["-g"]) else { return };
    lab::each_attacher(|user| eight_in_a_circle(user, Place::Here, &program, "philosopher", true));
}

#[test]
fn a_deadlock_in_another_pid_namespace_is_named() {
    for (name, source, likely) in [("deadlock_o2", "deadlock.c", false), ("deadlock_rs", "deadlock.rs", true)] {
        let Some(program) = testkit::compiled(name, source, &["-g"]) else { return };
        lab::each_attacher(|user| {
            if Place::Contained.is_to_be_had(user) {
                eight_in_a_circle(user, Place::Contained, &program, "philosopher", likely);
            }
        });
    }
}

// Slow: 25 threads wait, in three programs, for each user.
#[test]
fn each_thread_says_what_it_waits_for_and_notices_nothing() {
    let Some(program) = testkit::compile("gcc", "waiting", "waiting.c", &["-g", "-O1", "-pthread"]) else { return };
    // Whose parent's frames are found by rbp only.
    let Some(unoptimized) = testkit::compile("gcc", "waiting_o0", "waiting.c", &["-g", "-O0", "-pthread"]) else {
        return;
    };
    lab::each_attacher(|user| {
        for (place, program) in [(Place::Here, &program), (Place::Here, &unoptimized), (Place::Contained, &program)] {
            if !place.is_to_be_had(user) {
                continue;
            }
            let dir = lab::scratch();
            testkit::open_to_all(&dir, 0o777);
            let (mut running, pid) = place.start(user, &[program.as_str(), dir.to_str().expect("UTF-8")]);
            let mut found = Value::Null;
            lab::until("all threads to wait", || {
                running.must_run();
                found = json(user, pid);
                let threads = found["processes"][0]["threads"].as_array().map_or(&[][..], |all| all);
                let waits = |t: &&Value| t.get("waits_for").is_some();
                threads.len() == 25 && threads.iter().filter(waits).count() == 22
            });
            let threads = found["processes"][0]["threads"].as_array().expect("threads");
            let thread = |name: &str| threads.iter().find(|t| t["comm"] == name).expect(name);
            let child = found["processes"].as_array().expect("processes").iter().find(|p| p["other"] == true);
            let child = child.expect("the child")["pid"].as_u64().expect("a number");
            for (name, kind, by) in [
                ("t_condition", "condition variable", None),
                ("t_semaphore", "semaphore", None),
                ("t_reader", "rwlock", Some(pid.into())),
                ("t_writer", "rwlock", Some(pid.into())),
                ("t_mutex", "mutex", Some(pid.into())),
                ("t_robust", "mutex", Some(pid.into())),
                ("t_inheriting", "mutex", Some(pid.into())),
                ("t_timed", "mutex", Some(pid.into())),
                ("t_lone_pipe", "pipe", Some(pid.into())),
                ("t_pipe", "pipe", Some(child)),
                ("t_unix", "socket", Some(child)),
                ("t_accept", "connection", None),
                ("t_tcp", "socket", Some(child)),
                ("t_epoll", "descriptors", None),
                ("t_poll", "descriptors", None),
                ("t_child", "child", Some(child)),
                ("t_its_child", "child", Some(child)),
                ("t_pidfd", "process", Some(child)),
                ("t_poll_pidfd", "process", Some(child)),
                ("t_flock", "flock", Some(child)),
                ("t_posix", "file lock", Some(child)),
            ] {
                let wait = &thread(name)["waits_for"];
                assert_eq!(wait["kind"], kind, "{name}: {wait}");
                let by = by.map_or(Value::Null, Value::from);
                let known = if wait["by"][0]["tid"].is_null() { &wait["by"][0]["pid"] } else { &wait["by"][0]["tid"] };
                assert_eq!(*known, by, "{name}: {wait}");
            }
            let spins = thread("t_spins");
            assert_eq!((&spins["state"], functions(spins)[0]), (&"R".into(), "t_spins"), "{spins}");
            assert_eq!(thread("t_join")["waits_for"]["by"][0]["tid"], spins["tid"]);
            assert_eq!(found["deadlocks"], serde_json::json!([]));
            for t in threads.iter().filter(|t| t.get("incomplete").is_none()) {
                let functions = functions(t);
                assert!(functions.last().is_some_and(|f| f.contains("clone") || *f == "_start"), "{functions:?}");
            }
            // Calls that would fail with EINTR if their threads were stopped: as root they are read whole.
            let partly: Vec<&str> =
                threads.iter().filter(|t| t.get("incomplete").is_some()).filter_map(|t| t["comm"].as_str()).collect();
            let may_be_partly = user != User::Me || !testkit::is_root();
            assert!(partly.iter().all(|name| may_be_partly && ["t_epoll", "t_signal"].contains(name)), "{partly:?}");
            for _ in 0..5 {
                stacks(user, pid, &[]);
            }
            running.must_run();
            lab::kill("KILL", pid.into());
            assert_eq!(running.end().stderr, "");
        }
    });
}

#[test]
fn the_processes_that_others_wait_for_are_looked_at_too() {
    // Nobody else can write what it reads.
    let script = "mkfifo $0; cat <>$0; true";
    let name = lab::scratch().join("fifo").to_str().expect("UTF-8").to_string();
    let mut running = lab::start(std::process::Command::new("sh").args(["-c", script, &name]));
    let mut found = Value::Null;
    lab::until("cat to wait", || {
        running.must_run();
        found = json(User::Me, running.pid());
        found["deadlocks"].as_array().is_some_and(|all| !all.is_empty())
    });
    let (cat, deadlock) = (&found["processes"][1], &found["deadlocks"][0]);
    lab::kill("KILL", cat["pid"].as_i64().expect("a number"));
    let pid = running.pid();
    running.end();
    assert_eq!((&cat["comm"], &cat["other"]), (&"cat".into(), &true.into()), "{found}");
    let all = [&deadlock["threads"], &deadlock["behind"]].map(|v| v.as_array().expect("threads").clone()).concat();
    assert_eq!(all, [Value::from(pid), cat["pid"].clone()], "{found}");
    // Of processes that may not be looked into nobody knows what they have open.
    assert!(!testkit::is_root() || deadlock.get("likely").is_none(), "{found}");
}

#[test]
fn who_may_not_look_is_told_so() {
    let out = stacks(User::Me, 4_194_304, &[]);
    assert_eq!(out.code(), 125, "{}", out.stderr);
    assert!(out.stderr.contains("no such process"), "{}", out.stderr);
    lab::each_user(|user| {
        if user == User::Me {
            return;
        }
        let out = stacks(user, 1, &[]);
        assert_eq!(out.code(), 125, "{}", out.stderr);
        assert!(out.stderr.contains("you may not look into it"), "{}", out.stderr);
        let all = lab::run(&mut lab::trapline(user, &["stacks", "-a"]));
        // Whatever else this user runs.
        let said = ["may not be looked into", "there is no process that you may look into"];
        assert!(said.iter().any(|s| all.stderr.contains(s)), "{} {}", all.code(), all.stderr);
    });
}
