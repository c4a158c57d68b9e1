//! Where the agent comes to, what the target notices of it, and what is said about programs that it does not come to.

use crate::lab::{self, Outcome, User, each_user};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

#[track_caller]
fn calls_program() -> Option<String> {
    testkit::compile("gcc", "delivery_calls", "agent_calls.c", &["-O1", "-fno-inline"])
}

#[track_caller]
fn static_program() -> Option<String> {
    testkit::compile("gcc", "delivery_static", "agent_calls.c", &["-O1", "-static"])
}

/// A recorded command: how it ended, the trace, the statistics.
struct Recorded {
    out: Outcome,
    dir: PathBuf,
    stats: Value,
}

impl Recorded {
    /// The programs that were not traced, as the trace has them: path and reason.
    fn untraced(&self) -> Vec<(String, String)> {
        let dir = self.dir.to_str().expect("UTF-8");
        let out = lab::run(&mut lab::trapline(User::Me, &["report", "-q", "--as", "cat", dir]));
        let marked = |l: &str| {
            let text = l.split_once("/* not traced: ")?.1.strip_suffix(" */")?;
            text.split_once(": ").map(|(path, why)| (path.to_string(), why.to_string()))
        };
        out.out().lines().filter_map(marked).collect()
    }

    fn counted(&self) -> u64 {
        self.stats["probes"]["process:untraced"]["recorded"].as_u64().unwrap_or(0)
    }
}

#[track_caller]
fn record(user: User, command: &[&str]) -> Recorded {
    let (dir, stats) = (lab::scratch().join("trace"), lab::scratch().join("stats"));
    let options = ["graph", "-o", dir.to_str().expect("UTF-8"), "--stats", stats.to_str().expect("UTF-8"), "--"];
    let out = lab::run(&mut lab::trapline(user, &[&options[..], command].concat()));
    let stats = fs::read(&stats).ok().and_then(|s| serde_json::from_slice(&s).ok()).unwrap_or(Value::Null);
    Recorded { out, dir, stats }
}

#[test]
fn a_static_child_is_a_gap_that_is_seen_everywhere() {
    let (Some(traced), Some(fixed)) = (calls_program(), static_program()) else { return };
    each_user(|user| {
        let r = record(user, &["sh", "-c", &format!("{fixed} 3; {traced} 3; {fixed} 2")]);
        assert_eq!((r.out.code(), r.out.out().as_str()), (0, "2\n2\n1\n"), "{}", r.out.stderr);
        let why = "a static program loads no agent";
        let said = format!("trapline: not traced: 2 programs: {why}: {fixed}, …");
        assert!(r.out.stderr.lines().any(|l| l == said), "{}", r.out.stderr);
        assert_eq!(r.counted(), 2, "{}", r.stats);
        if user == User::Me {
            assert_eq!(r.untraced(), vec![(fixed.clone(), why.to_string()); 2]);
            let dir = r.dir.to_str().expect("UTF-8");
            let report = lab::run(&mut lab::trapline(User::Me, &["report", "--as", "functions", dir]));
            assert!(report.stderr.contains(&format!("not traced: 2 programs: {why}")), "{}", report.stderr);
        }
    });
}

#[test]
fn a_child_of_32_bits_is_a_gap() {
    let Some(elf32) = testkit::compile("gcc", "delivery_elf32", "elf32.c", &["-m32", "-nostdlib", "-static"]) else {
        return;
    };
    let r = record(User::Me, &["sh", "-c", &format!("{elf32}; exit 0")]);
    assert_eq!(
        r.untraced(),
        [(elf32, "a program of another architecture, or of 32 bits".to_string())],
        "{}",
        r.out.stderr
    );
}

#[test]
fn a_set_user_id_child_is_a_gap() {
    let Some(program) = calls_program() else { return };
    if !lab::is_root() {
        return testkit::skip("root", "a file cannot be given to another user");
    }
    let setuid = lab::dir().join("delivery_setuid");
    fs::copy(&program, &setuid).expect("a copy");
    std::os::unix::fs::chown(&setuid, Some(65534), None).expect("another owner");
    fs::set_permissions(&setuid, PermissionsExt::from_mode(0o4755)).expect("a mode");
    let setuid = setuid.to_str().expect("UTF-8");
    let r = record(User::Me, &["sh", "-c", &format!("{setuid} 3; :")]);
    assert_eq!(r.out.out(), "2\n");
    let why = "a program that changes its user or group loads no agent";
    assert_eq!(r.untraced(), [(setuid.to_string(), why.to_string())], "{}", r.out.stderr);
    let out = record(User::Me, &[setuid, "3"]).out;
    assert_eq!((out.code(), out.stderr.lines().count()), (125, 1), "{}", out.stderr);
    assert!(out.stderr.contains(why) && out.stderr.contains("(run trapline as that user)"), "{}", out.stderr);
}

/// What comes to another root, another user, or another file system has no agent, and no message of ld.so.
#[test]
fn children_that_cannot_see_the_agent_run_as_they_do() {
    let Some(program) = calls_program() else { return };
    if !lab::is_root() || !lab::has("unshare") || !lab::has("chroot") {
        return testkit::skip("root", "no other root directory to enter");
    }
    let root = lab::dir().join("delivery_root");
    let ldd = lab::run(&mut lab::as_user(User::Me, &["ldd", &program])).out();
    let libraries = ldd.split_whitespace().filter(|w| w.starts_with('/')).map(str::to_string);
    for file in libraries.chain([program.clone()]) {
        let to = root.join(Path::new(&file).strip_prefix("/").expect("absolute"));
        fs::create_dir_all(to.parent().expect("a parent")).expect("a directory");
        fs::copy(&file, &to).expect("a copy");
    }
    let why = "the agent's file cannot be loaded there (another root, user or noexec)";
    for (script, wanted) in [
        (format!("chroot {} {program} 3", root.display()), "2\n"),
        ("unshare -m sh -c 'mount -t tmpfs none /tmp && mount -t tmpfs none /var/tmp; exec /bin/true'".into(), ""),
        ("unshare -m sh -c 'mount --bind /tmp /tmp && mount -o remount,bind,noexec /tmp; exec /bin/true'".into(), ""),
    ] {
        let r = record(User::Me, &["sh", "-c", &script]);
        if r.out.stderr.contains("mount: ") {
            testkit::skip("mount", "mount(2) is refused");
            continue;
        }
        assert_eq!((r.out.code(), r.out.out().as_str()), (0, wanted), "{script}: {}", r.out.stderr);
        assert!(!r.out.stderr.contains("ld.so") && !r.out.stderr.contains("preload"), "{script}: {}", r.out.stderr);
        let gaps = r.untraced();
        assert!(gaps.iter().any(|(_, w)| w == why), "{script}: {gaps:?}\n{}", r.out.stderr);
    }
}

#[test]
fn children_in_other_namespaces_and_of_other_users_are_traced() {
    let Some(program) = calls_program() else { return };
    if !lab::is_root() || !lab::has("unshare") || !lab::has("setpriv") {
        return testkit::skip("root", "no namespace to enter");
    }
    for script in [
        format!("unshare -n {program} 3"),
        format!("unshare -m -p -f {program} 3"),
        format!("setpriv --reuid 65534 --regid 65534 --clear-groups {program} 3"),
        format!("env -i {program} 3"),
        format!("timeout 100 {program} 3"),
    ] {
        let r = record(User::Me, &["sh", "-c", &script]);
        assert_eq!((r.out.code(), r.out.out().as_str()), (0, "2\n"), "{script}: {}", r.out.stderr);
        assert_eq!(r.counted(), 0, "{script}: {}", r.out.stderr);
        assert_eq!(r.stats["probes"]["function:entry"]["recorded"], 6, "{script}: {}", r.stats);
    }
}

/// Environment, descriptors and preloaded libraries are those that the user gave.
#[test]
fn the_target_sees_nothing_of_the_agent() {
    let Some(library) = testkit::compile("gcc", "delivery_own.so", "agent_module.c", &["-shared", "-fPIC"]) else {
        return;
    };
    each_user(|user| {
        for (preload, script) in [
            (
                "",
                "env | grep -v -e ^_= -e ^PWD= -e ^OLDPWD= | sort; tr '\\0' '\\n' < /proc/self/environ | grep -c -i -e trapline -e preload",
            ),
            (
                &library,
                "env | grep PRELOAD; sh -c 'env | grep PRELOAD'; tr '\\0' '\\n' < /proc/self/environ | grep -c PRELOAD",
            ),
            ("", "ls /proc/self/fd; sh -c 'ls /proc/self/fd' | cat"),
            (
                "",
                "cat /proc/self/limits; umask; ulimit -a; cat /proc/self/status | grep -e ^Sig -e ^Cap -e NoNew -e Seccomp: | grep -v SigQ",
            ),
        ] {
            let command = ["sh", "-c", script];
            let mut bare = lab::as_user(user, &command);
            let mut traced =
                lab::trapline(user, &["graph", "-q", "--as", "functions=/dev/null", "--", "sh", "-c", script]);
            for command in [&mut bare, &mut traced] {
                command.env_remove("LD_PRELOAD");
                if !preload.is_empty() {
                    command.env("LD_PRELOAD", preload);
                }
            }
            let (bare, traced) = (lab::run(&mut bare), lab::run(&mut traced));
            assert_eq!(traced.out(), bare.out(), "{script}: {}", traced.stderr);
        }
    });
}

/// A command that runs on when trapline was killed executes programs as if there had been no agent.
#[test]
fn nobody_is_preloaded_once_trapline_has_gone() {
    let scratch = lab::scratch();
    let (begun, go, done) = (scratch.join("begun"), scratch.join("go"), scratch.join("done"));
    let script = format!(
        "touch {0}; while ! [ -e {1} ]; do sleep 0.1; done; sh -c 'env; grep -c agent- /proc/self/maps' > {2}.new 2>&1; mv {2}.new {2}",
        begun.display(),
        go.display(),
        done.display()
    );
    let dir = scratch.join("trace");
    let mut run = lab::start(&mut lab::trapline(
        User::Me,
        &["graph", "-q", "-o", dir.to_str().expect("UTF-8"), "--", "sh", "-c", &script],
    ));
    lab::until("it has begun", || begun.exists());
    lab::kill("KILL", run.pid().into());
    let _ = run.child.wait();
    fs::write(&go, "").expect("a file");
    lab::until("the command has ended", || done.exists());
    let said = fs::read_to_string(&done).expect("its output");
    assert!(!said.contains("LD_PRELOAD") && !said.contains("ld.so") && !said.contains("TRAPLINE_AGENT"), "{said}");
    assert_eq!(said.lines().last(), Some("0"), "{said}");
}

#[test]
fn owners_of_jit_compilers_are_left_alone() {
    let node = ["node", "-e", "console.log([3,1,2].sort().join())"];
    let java = ["java", "-version"];
    for (command, runtime) in [(&node[..], "V8"), (&java[..], "Java")] {
        if !lab::has(command[0]) {
            testkit::skip(&format!("package:{}", command[0]), "it is not installed");
            continue;
        }
        let bare = lab::run(&mut lab::as_user(User::Me, command));
        let r = record(User::Me, command);
        assert_eq!((r.out.code(), r.out.out()), (bare.code(), bare.out()), "{}", r.out.stderr);
        let why = format!("the JIT compiler of {runtime} walks stacks");
        assert!(r.out.stderr.contains(&why), "{}", r.out.stderr);
        assert_eq!(r.counted(), 1, "{}", r.stats);
    }
}

#[test]
fn explain_says_what_is_not_patched_and_why() {
    let Some(program) = calls_program() else { return };
    let explain = |how: &str| {
        let options = ["graph", how, "--as", "functions=/dev/null", "--", &program, "3"];
        lab::run(&mut lab::trapline(User::Me, &options)).stderr
    };
    let said = explain("--explain");
    assert!(said.contains(&format!("trapline: functions: {program}: ")), "{said}");
    let refused = said.lines().find(|l| l.contains("it is not called like a function")).expect("a reason");
    assert!(refused.contains("_start") && refused.starts_with("trapline:   not traced: 3: "), "{refused}");
    assert!(explain("--explain=functions").contains("_start"));
    // Where the entry point has another name, it is refused all the same.
    let other = testkit::compile(
        "gcc",
        "delivery_entry",
        "agent_calls.c",
        &["-O1", "-fno-inline", "-Wl,-e,begins_here", "-Wl,--defsym,begins_here=_start"],
    );
    if let Some(other) = other {
        let out = lab::run(&mut lab::trapline(User::Me, &["graph", "--as", "functions", "--", &other, "3"]));
        assert_eq!(out.code(), 0, "{}", out.stderr);
        assert!(!out.out().contains("begins_here") && out.out().contains(" fib"), "{}", out.out());
    }
}

#[test]
fn doctor_tries_the_agent() {
    each_user(|user| {
        let out = lab::run(&mut lab::trapline(user, &["doctor"])).out();
        let line = |what: &str| {
            out.lines().find(|l| l.get(4..).is_some_and(|l| l.starts_with(what))).unwrap_or_default().to_string()
        };
        assert!(line("agent: its file").contains("/agent-"), "{out}");
        let tried = line("agent backend (functions)");
        assert!(tried.starts_with("ok ") && tried.contains("exit() of "), "{tried}");
    });
}

/// The directory of another user, links and files with other contents are not used.
#[test]
fn planted_files_are_not_loaded() {
    if !lab::is_root() || !lab::has("unshare") {
        return testkit::skip("root", "no /tmp of its own to plant files in");
    }
    let trapline = env!("CARGO_BIN_EXE_trapline");
    let run = format!("{trapline} graph -q --lib --as functions -- /bin/true");
    for plant in [
        "mkdir -m 777 /tmp/trapline-agent-0",
        "mkdir /tmp/trapline-agent-0; chown 65534 /tmp/trapline-agent-0",
        "mkdir /tmp/x; ln -s /tmp/x /tmp/trapline-agent-0",
        "touch /tmp/trapline-agent-0",
        "true",
    ] {
        // /tmp is its own; /var/tmp is the next choice.
        let script = format!(
            "mount -t tmpfs none /tmp && mount -t tmpfs none /var/tmp && {plant} && {run} && ls /tmp/x 2>/dev/null; ls -d /var/tmp/trapline-agent-0 2>/dev/null; true"
        );
        let mut command = lab::as_user(User::Me, &["unshare", "-m", "sh", "-c", &script]);
        let out = lab::run(command.env_remove("TMPDIR"));
        if out.stderr.contains("mount: ") || out.stderr.contains("not found") {
            return testkit::skip("mount", "mount(2) is refused, or trapline lies in /tmp");
        }
        assert!(out.out().contains(" exit"), "{plant}: {}{}", out.out(), out.stderr);
        assert_eq!(out.out().contains("/var/tmp/trapline-agent-0"), plant != "true", "{plant}: {}", out.out());
    }
}
