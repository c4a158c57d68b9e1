//! What the command gets and gives is untouched: status, streams, environment, signals, descriptors.

use crate::lab::{self, Outcome, User, each_backend};
use crate::trace::{on_stderr, trace};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

fn plain(user: User, script: &str) -> Outcome {
    lab::run(&mut lab::as_user(user, &["sh", "-c", script]))
}

#[test]
fn exit_status_is_passed_on() {
    each_backend(|user| {
        for options in
            [&[][..], &["-e", "openat"], &["--no-seccomp", "-e", "openat"], &["-e", "none"], &["--no-follow"]]
        {
            for code in [0, 3, 255] {
                let t = trace(user, options, &["sh", "-c", &format!("exit {code}")]);
                assert_eq!(t.outcome.status.code(), Some(code), "{options:?} {}", t.text());
                t.has(&format!("+++ exited with {code} +++"));
            }
        }
    });
}

#[test]
fn death_by_a_signal_is_passed_on() {
    each_backend(|user| {
        for (name, number) in [("TERM", 15), ("KILL", 9), ("INT", 2), ("USR1", 10), ("PIPE", 13)] {
            for options in [&[][..], &["-e", "openat"]] {
                let t = trace(user, options, &["sh", "-c", &format!("kill -{name} $$")]);
                assert_eq!(t.outcome.status.signal(), Some(number), "{}", t.text());
                t.has(&format!("+++ killed by SIG{name}"));
            }
        }
    });
}

#[test]
fn streams_are_untouched() {
    each_backend(|user| {
        let file = lab::scratch().join("in");
        let bytes: Vec<u8> = (0..200_000u32).map(|i| (i % 251) as u8).collect();
        std::fs::write(&file, &bytes).expect("input");
        let mut c = lab::trapline(user, &["trace", "-q", "-e", "none", "sh", "-c", "cat; echo words >&2"]);
        c.stdin(std::fs::File::open(&file).expect("input"));
        let out = lab::run(&mut c);
        assert_eq!(out.stdout, bytes);
        assert!(out.stderr.lines().any(|l| l == "words"), "{}", out.stderr);
    });
}

#[test]
fn environment_is_unchanged_but_for_e() {
    each_backend(|user| {
        let sorted = |o: Outcome| {
            let mut v: Vec<String> = o.out().lines().filter(|l| !l.starts_with("_=")).map(str::to_string).collect();
            v.sort();
            v
        };
        let before = sorted(plain(user, "env"));
        assert_eq!(sorted(on_stderr(user, &["-e", "none", "sh", "-c", "env"])), before);
        let changed = on_stderr(user, &["-E", "TRAP=line=1", "-E", "LC_ALL", "-e", "none", "sh", "-c", "env"]);
        let mut expected = before;
        expected.retain(|l| !l.starts_with("LC_ALL="));
        expected.push("TRAP=line=1".into());
        expected.sort();
        assert_eq!(sorted(changed), expected);
    });
}

#[test]
fn signal_dispositions_and_masks_are_inherited() {
    let fields = "grep -E '^(Sig(Ign|Blk|Cgt|Q)|ShdPnd)' /proc/self/status | grep -v SigQ";
    each_backend(|user| {
        for setup in ["", "trap '' PIPE;", "trap '' INT QUIT;", "trap '' HUP TERM;"] {
            let trace = lab::trace_in_a_shell(user);
            let traced = plain(user, &format!("{setup} exec {trace} -q -o /dev/null sh -c \"{fields}\""));
            let untraced = plain(user, &format!("{setup} exec sh -c \"{fields}\""));
            assert_eq!(traced.out(), untraced.out(), "{setup} {}", traced.stderr);
        }
    });
}

#[test]
fn sigpipe_kills_the_command_as_it_would_alone() {
    each_backend(|user| {
        let trace = lab::trace_in_a_shell(user);
        let script = format!("{{ {trace} -q -e none -o /dev/null yes; echo $? >&2; }} | head -1");
        let out = plain(user, &script);
        assert_eq!((out.out().as_str(), out.stderr.trim()), ("y\n", "141"));
    });
}

/// Long numbers (inodes, pids) differ from run to run.
fn blur(text: &str) -> String {
    let blurred = |w: &str| if w.len() > 2 { "#".to_string() } else { w.to_string() };
    let mut out = String::new();
    let mut word = String::new();
    for c in text.chars().chain(['\n']) {
        if c.is_ascii_digit() {
            word.push(c);
        } else {
            out.push_str(&blurred(&word));
            word.clear();
            out.push(c);
        }
    }
    out
}

#[test]
fn no_descriptor_leaks_into_the_command() {
    let list = "ls -l --time-style=+ /proc/self/fd";
    each_backend(|user| {
        let alone = blur(&plain(user, &format!("exec {list}")).out());
        let file = lab::scratch().join("trace").display().to_string();
        for options in [
            &["-o", &file][..],
            &["-e", "openat"],
            &["-q", "-yy"],
            &["-o", "|cat >/dev/null"],
            &["--no-seccomp", "-e", "read"],
        ] {
            let mut args = options.to_vec();
            args.extend(["sh", "-c"]);
            let script = format!("exec {list}");
            args.push(&script);
            assert_eq!(blur(&on_stderr(user, &args).out()), alone, "{options:?}");
        }
    });
}

#[test]
fn session_group_limits_and_directory_are_the_callers() {
    each_backend(|user| {
        // Columns 5 to 8: process group, session, terminal and its group.
        let script = "pwd; umask; ulimit -a; cut -d' ' -f6-7 /proc/self/stat";
        let alone = plain(user, script);
        let traced = on_stderr(user, &["-q", "-e", "none", "sh", "-c", script]);
        assert_eq!(traced.out(), alone.out());
    });
}

#[test]
fn quiet_prints_nothing_of_its_own() {
    each_backend(|user| {
        let t = trace(user, &["-q"], &["sh", "-c", "echo only >&2"]);
        assert_eq!(t.outcome.stderr, "only\n");
        let t = trace(user, &[], &["true"]);
        let end = format!(" events, 0 dropped, {} backend\n", user.backend());
        assert!(t.outcome.stderr.starts_with("trapline: ") && t.outcome.stderr.ends_with(&end), "{}", t.outcome.stderr);
        assert_eq!(t.outcome.stderr.lines().count(), 1);
    });
}

#[test]
fn runs_the_command_as_another_user() {
    if !lab::is_root() {
        return lab::skip("root", "-u needs root");
    }
    let out = on_stderr(User::Me, &["-q", "-e", "none", "-u", "nobody", "sh", "-c", "id -u; id -G"]);
    let expected =
        Command::new("sh").args(["-c", "id -u nobody; id -G nobody"]).stdin(Stdio::null()).output().expect("id");
    assert_eq!(out.out(), String::from_utf8_lossy(&expected.stdout), "{}", out.stderr);
    let out = on_stderr(User::Me, &["-u", "no-such-user", "true"]);
    assert_eq!(out.code(), 2);
    assert!(out.stderr.contains("no such user"), "{}", out.stderr);
}

#[test]
fn only_root_changes_the_user() {
    each_backend(|user| {
        if user != User::Nobody && lab::is_root() {
            return;
        }
        let out = on_stderr(user, &["-u", "root", "true"]);
        assert_eq!(out.code(), 125);
        assert!(out.stderr.contains("root"), "{}", out.stderr);
    });
}

/// A user in more groups than most: all of them are his, not none.
#[test]
fn a_user_in_hundreds_of_groups_keeps_them() {
    if !lab::is_root() {
        return lab::skip("root", "only root may run commands as somebody else");
    }
    let scratch = lab::scratch();
    let write = |name: &str, text: String| {
        let path = scratch.join(name);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let passwd = write("passwd", "root:x:0:0::/:/bin/sh\ncrowd:x:4711:4711::/:/bin/sh\n".into());
    let groups: Vec<u32> = (5000..5300).collect();
    let group = write("group", groups.iter().map(|g| format!("g{g}:x:{g}:crowd\n")).collect());
    let trapline = lab::dir().join("trapline").display().to_string();
    // A table of users of its own.
    let script = format!(
        "mount --bind {passwd} /etc/passwd && mount --bind {group} /etc/group && exec {trapline} trace -q -e none -u crowd -- id -G"
    );
    let out = lab::run(&mut lab::as_user(User::Me, &["unshare", "-m", "sh", "-c", &script]));
    if out.stderr.contains("unshare failed") || out.stderr.contains("mount: ") {
        return lab::skip("kernel:namespaces", out.stderr.trim());
    }
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let mut found: Vec<u32> = out.out().split_whitespace().map(|g| g.parse().expect("a number")).collect();
    found.sort_unstable();
    assert_eq!(found, [vec![4711], groups].concat());
}

#[test]
fn closed_standard_descriptors_stay_closed() {
    let exe = lab::dir().join("trapline").display().to_string();
    let run = |user, line: String, dir: &std::path::Path| {
        let out = lab::run(lab::as_user(user, &["sh", "-c", &line]).current_dir(dir));
        assert_eq!(out.code(), 0, "{line} {}", out.stderr);
        std::fs::read_to_string(dir.join("said")).expect("said")
    };
    lab::each_user(|user| {
        let Some(program) = lab::program("standard") else { return };
        for closed in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
            let untraced = run(user, format!("{program} said {closed}"), &lab::scratch());
            let ptrace = ["trace --backend ptrace -e openat -o /dev/null", "trace --backend ptrace -o /dev/null"];
            let others = ["trace -o /dev/null", "record -e openat -o rec", "graph", "graph --lib", "heap", "profile"];
            for command in ptrace.iter().chain(&others) {
                let said = run(user, format!("{exe} {command} {program} said {closed}"), &lab::scratch());
                assert_eq!(said, untraced, "{command} {closed}");
            }
        }
    });
}
