//! What the other options and commands do.

use crate::lab::{self, each_user};
use crate::trace::{on_stderr, trace};

#[test]
fn explain_says_what_will_be_done() {
    each_user(|user| {
        let explained = |options: &[&str]| {
            on_stderr(user, &[&["--explain", "-q"], options, &["-o", "/dev/null", "true"]].concat()).stderr
        };
        let all = explained(&[]);
        assert!(all.lines().all(|l| l.starts_with("trapline: ")), "{all}");
        assert!(all.contains("backend: ptrace") && all.contains("no filter, because every call is wanted"), "{all}");
        let some = explained(&["-e", "openat"]);
        assert!(some.contains("1 wanted") && some.contains("--no-seccomp"), "{some}");
        assert!(explained(&["-e", "openat", "--no-seccomp"]).contains("no filter (--no-seccomp)"));
        assert!(explained(&["-e", "openat", "--no-follow"]).contains("no filter"));
        assert!(explained(&["--on-full", "drop"]).contains("dropped and counted"));
        assert!(explained(&["-y", "-e", "read"]).contains("1 wanted"));
    });
}

#[test]
fn backends_and_follow_are_accepted() {
    each_user(|user| {
        for options in [
            &["--backend", "ptrace"][..],
            &["--backend", "auto"],
            &["-f"],
            &["-w"],
            &["--buffer", "64K"],
            &["--seccomp-bpf", "-f"],
        ] {
            let t = trace(user, options, &["sh", "-c", "/bin/true; exit 3"]);
            assert_eq!(t.outcome.code(), 3, "{options:?} {}", t.text());
            assert_eq!(t.calls("execve").len(), 2, "{options:?}");
        }
    });
}

#[test]
fn the_first_line_is_the_start_of_the_command() {
    each_user(|user| {
        for options in [&[][..], &["-e", "execve"], &["-e", "%process"], &["--no-seccomp"], &["-y"]] {
            let t = trace(user, options, &["/bin/true", "one", "two"]);
            assert!(
                t.lines[0].text.starts_with("execve(\"/bin/true\", [\"/bin/true\", \"one\", \"two\"], 0x"),
                "{}",
                t.text()
            );
            assert_eq!(t.calls("execve").len(), 1);
        }
    });
}

#[test]
fn no_new_privileges_only_with_a_filter_and_without_root() {
    each_user(|user| {
        let bit = |options: &[&str]| {
            let out = on_stderr(user, &[&["-q"], options, &["grep", "NoNewPrivs", "/proc/self/status"]].concat());
            out.out().split_whitespace().last().map(str::to_string)
        };
        assert_eq!(bit(&[]).as_deref(), Some("0"));
        assert_eq!(bit(&["--no-seccomp", "-e", "read"]).as_deref(), Some("0"));
        let filtered = bit(&["-e", "read"]);
        assert!(filtered.as_deref() == Some("1") || user == lab::User::Me, "{filtered:?}");
    });
}

#[test]
fn list_names_calls() {
    each_user(|user| {
        let list = |args: &[&str]| lab::run(&mut lab::trapline(user, &[&["list"], args].concat()));
        let all = list(&[]);
        assert!(all.code() == 0 && all.out().lines().count() > 350);
        assert!(all.out().lines().all(|l| l.starts_with("syscall:")));
        assert_eq!(list(&["openat*"]).out(), "syscall:openat\nsyscall:openat2\n");
        assert!(list(&["%network"]).out().contains("syscall:socket\n"));
        assert_eq!(list(&["/^dup[23]$/"]).out(), "syscall:dup2\nsyscall:dup3\n");
        let verbose = list(&["-v", "openat"]).out();
        assert!(
            verbose.starts_with("syscall:openat(int dfd, const char *filename, int flags, umode_t mode)\n")
                || verbose.contains("const char *filename"),
            "{verbose}"
        );
        assert!(verbose.contains("x86_64 257"), "{verbose}");
        let wrong = list(&["opennat"]);
        assert!(wrong.code() == 2 && wrong.stderr.contains("openat"), "{}", wrong.stderr);
    });
}

#[test]
fn doctor_help_man_and_completions() {
    each_user(|user| {
        let run = |args: &[&str]| lab::run(&mut lab::trapline(user, args));
        let doctor = run(&["doctor"]);
        assert_eq!(doctor.code(), 0, "{}", doctor.stderr);
        assert!(doctor.out().to_lowercase().contains("ptrace"), "{}", doctor.out());
        assert!(doctor.out().lines().all(|l| l.starts_with("ok ") || l.starts_with("no ")), "{}", doctor.out());
        assert!(run(&["trace", "--help"]).out().contains("--no-follow"));
        assert!(run(&["--version"]).out().starts_with("trapline "));
        assert!(run(&["man"]).out().contains(".TH"));
        assert!(run(&["completions", "bash"]).out().contains("trapline"));
        assert_eq!(run(&[]).code(), 2);
    });
}
