//! `-e` in all its forms, `-P`, `-z`, `-Z`.

use crate::lab::{self, each_backend};
use crate::trace::{on_stderr, trace};

/// Names of the calls that `cat /etc/passwd` makes under a set.
fn names(user: lab::User, options: &[&str]) -> Vec<String> {
    let t = trace(user, options, &["cat", "/etc/passwd"]);
    assert_eq!(t.outcome.code(), 0, "{}", t.text());
    t.names().into_iter().map(str::to_string).collect()
}

#[test]
fn sets_of_calls() {
    each_backend(|user| {
        for set in [
            "openat,close",
            "trace=openat,close",
            "t=openat,close",
            "/^(openat|close)$",
            "trace=/^openat$/,close",
            "257,3",
            "?nosuch,openat,close",
        ] {
            assert_eq!(names(user, &["-e", set]), ["close", "openat"], "{set}");
        }
        assert_eq!(names(user, &["--trace", "openat"]), ["openat"]);
        assert_eq!(names(user, &["-e", "none"]), [""; 0]);
        assert_eq!(names(user, &["-e", "all"]), names(user, &[]));
        let file = names(user, &["-e", "%file"]);
        assert!(file.iter().any(|n| n == "openat") && file.iter().any(|n| n == "execve"), "{file:?}");
        assert!(!file.iter().any(|n| n == "read" || n == "mmap"), "{file:?}");
        let memory = names(user, &["-e", "%memory"]);
        assert!(memory.iter().any(|n| n == "mmap") && !memory.iter().any(|n| n == "openat"), "{memory:?}");
        let desc = names(user, &["-e", "%desc"]);
        assert!(desc.iter().any(|n| n == "read") && desc.iter().any(|n| n == "close"), "{desc:?}");
        let process = names(user, &["-e", "%process"]);
        assert!(process.iter().any(|n| n == "execve") && process.iter().any(|n| n == "exit_group"), "{process:?}");
        for none in ["%network", "%ipc"] {
            assert_eq!(names(user, &["-e", none]), [""; 0], "{none}");
        }
    });
}

#[test]
fn negated_sets() {
    each_backend(|user| {
        let all = names(user, &[]);
        let without = |gone: &dyn Fn(&str) -> bool| all.iter().filter(|n| !gone(n)).cloned().collect::<Vec<_>>();
        assert_eq!(names(user, &["-e", "!openat"]), without(&|n| n == "openat"));
        assert_eq!(names(user, &["-e", "trace=!openat,close"]), without(&|n| n == "openat" || n == "close"));
        assert_eq!(names(user, &["-e", "!/^m/"]), without(&|n| n.starts_with('m')));
        assert_eq!(names(user, &["-e", "!all"]), [""; 0]);
    });
}

#[test]
fn network_and_ipc_classes() {
    each_backend(|user| {
        let Some(program) = lab::program("families_net") else { return };
        let t = trace(user, &["-e", "%network"], &[&program]);
        let names = t.names();
        assert!(names.contains(&"socket") && names.contains(&"sendmsg") && !names.contains(&"openat"), "{names:?}");
        let Some(program) = lab::program("families") else { return };
        let t = trace(user, &["-e", "trace=%ipc"], &[&program]);
        assert!(
            t.names().contains(&"shmget") && t.names().iter().all(|n| n.starts_with(['s', 'm'])),
            "{:?}",
            t.names()
        );
        let t = trace(user, &["-e", "%signal"], &["sh", "-c", "trap : USR1; kill -USR1 $$"]);
        assert!(t.names().contains(&"rt_sigaction") && t.names().contains(&"kill"), "{:?}", t.names());
    });
}

#[test]
fn sets_of_signals() {
    each_backend(|user| {
        let Some(program) = lab::program("signals") else { return };
        let shown = |options: &[&str]| -> Vec<String> {
            let t = trace(user, options, &[&program]);
            let lines = t.lines.iter().filter(|l| l.text.starts_with("--- "));
            lines.filter_map(|l| l.text.split(' ').nth(1).map(str::to_string)).collect()
        };
        for set in ["signal=USR2,SIGHUP", "signal=12,1", "signals=usr2,hup", "s=SIGUSR2,HUP"] {
            assert_eq!(shown(&["-e", set]), ["SIGUSR2", "SIGHUP"], "{set}");
        }
        assert_eq!(shown(&["--signal", "TERM"]), ["SIGTERM"]);
        assert_eq!(shown(&["-e", "signal=none"]), [""; 0]);
        assert_eq!(
            shown(&["-e", "signal=!TERM,INT,RTMIN", "-e", "kill"]).iter().filter(|n| *n == "SIGTERM").count(),
            0
        );
        assert_eq!(shown(&["-e", "signal=all"]).len(), 9);
    });
}

#[test]
fn outcomes() {
    each_backend(|user| {
        let command = ["sh", "-c", "cat /etc/passwd /nonexistent/file; exit 0"];
        let all = trace(user, &["-e", "openat"], &command);
        for option in
            [&["-z"][..], &["-e", "status=successful"], &["--status", "successful"], &["-e", "status=!failed"]]
        {
            let t = trace(user, &[&["-e", "openat"], option].concat(), &command);
            assert!(t.calls("openat").iter().all(|l| !l.result().starts_with("-1")), "{}", t.text());
            t.has("\"/etc/passwd\"");
        }
        for option in [&["-Z"][..], &["-e", "status=failed"]] {
            let t = trace(user, &[&["-e", "openat"], option].concat(), &command);
            assert!(t.calls("openat").iter().all(|l| l.result().starts_with("-1 ")), "{}", t.text());
            t.has("\"/nonexistent/file\"");
        }
        let t = trace(user, &["-e", "openat", "-e", "status=none"], &command);
        assert!(t.calls("openat").is_empty() && !all.calls("openat").is_empty());
        let t = trace(user, &["-e", "status=unfinished"], &command);
        assert_eq!(t.names(), ["exit_group"]);
        let t = trace(user, &["-e", "status=successful,failed"], &command);
        assert!(!t.names().contains(&"exit_group") && t.names().contains(&"mmap"));
    });
}

#[test]
fn raw_arguments_of_a_set() {
    each_backend(|user| {
        let t = trace(user, &["-e", "openat,close", "-e", "raw=openat"], &["cat", "/etc/passwd"]);
        for l in t.calls("openat") {
            // An int.
            assert!(l.text.starts_with("openat(0xffffff9c, 0x"), "{}", l.text);
            assert!(!l.text.contains('"'), "{}", l.text);
        }
        t.has("close(3)");
    });
}

#[test]
fn one_path() {
    each_backend(|user| {
        for options in [
            &["-P", "/etc/passwd"][..],
            &["-P", "/etc/../etc/passwd", "-P", "/nonexistent"],
            &["--trace-path", "/etc/passwd", "-e", "%desc"],
        ] {
            let t = trace(user, options, &["sh", "-c", "cat /etc/passwd /etc/group; cat </etc/passwd"]);
            assert_eq!(t.outcome.code(), 0);
            // cat opens it by name, the shell for a child: read and close through the descriptor, and through its copy.
            assert!(t.calls("openat").len() >= 2, "{}", t.text());
            t.has("read(3, \"root:");
            t.has("read(0, \"root:");
            t.has("close(3)");
            t.lacks("ld.so");
            t.lacks("group");
            t.lacks("mprotect");
        }
    });
}

#[test]
fn wrong_sets_name_what_is_near() {
    each_backend(|user| {
        let cases = [
            ("opennat", "openat"),
            ("trace=raed", "read"),
            ("%netwrk", "%network"),
            ("trace=%flie", "%file"),
            ("signal=TREM", "SIGTERM"),
            ("status=sucessful", "successful"),
            ("/(/", "expression"),
            ("nonsense=all", "trace="),
            ("inject=openat:error=EIO", "never changes"),
            ("fault=openat", "never changes"),
            ("read=x", "a number, all or none"),
            ("write=", "names nothing"),
        ];
        for (set, hint) in cases {
            let out = on_stderr(user, &["-e", set, "touch", "/nonexistent/must-not-run"]);
            assert_eq!(out.code(), 2, "{set}: {}", out.stderr);
            assert_eq!(out.stderr.lines().count(), 1, "{set}: {}", out.stderr);
            assert!(out.stderr.contains(hint), "{set}: {}", out.stderr);
        }
    });
}
