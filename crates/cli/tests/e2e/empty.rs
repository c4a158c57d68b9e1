//! What has nothing to show says why, in one line, and what to do.

use crate::lab::{self, Outcome, User, each_backend, each_user};
use crate::record::record;

/// A command of trapline that is to end well, in a directory.
#[track_caller]
fn run(user: User, dir: &std::path::Path, args: &[&str]) -> Outcome {
    let out = lab::run(lab::trapline(user, args).current_dir(dir));
    assert_eq!(out.code(), 0, "{args:?} {}", out.stderr);
    out
}

/// How many lines have these words.
fn said(out: &Outcome, words: &str) -> usize {
    out.stderr.lines().filter(|l| l.contains(words)).count()
}

#[test]
fn calls_that_were_not_made_are_explained() {
    each_backend(|user| {
        let dir = lab::scratch();
        for (options, why) in [
            (&["-e", "socket"][..], "no call that -e selects was made (leave -e out to see all calls)"),
            (&["-c", "-e", "socket"], "no call that -e selects was made"),
            (&["-e", "none"], "no call is selected (leave -e out to see all calls)"),
            (&["-P", "/nonexistent"], "calls is what -P selects (leave -P out to see them)"),
            (&["-e", "fd=777"], "calls is what -e selects"),
            (&["-Z", "-e", "exit_group"], "what -e, -Z select"),
            (&["--no-follow", "-e", "socket"], "--no-follow leaves out children and other threads"),
        ] {
            for command in [&["trace"][..], &["record", "-o", "empty"]] {
                // A recording has the calls that descriptors and results are known from.
                if command[0] == "record" && !matches!(options, ["-e", "socket" | "none"] | ["--no-follow", ..]) {
                    continue;
                }
                let args = |more: &[&'static str]| [command, options, more, &["--", "true"]].concat();
                let out = run(user, &dir, &args(&[]));
                // With the kernel backend, results are compared in the kernel, and nobody knows of the others.
                let why = if options[0] == "-Z" && said(&out, why) == 0 {
                    "no call that -e, -Z select was made"
                } else {
                    why
                };
                assert_eq!((said(&out, "nothing recorded: "), said(&out, why)), (1, 1), "{options:?} {}", out.stderr);
                let _ = std::fs::remove_dir_all(dir.join("empty"));
                assert_eq!(said(&run(user, &dir, &args(&["-q"])), "nothing"), 0);
                let _ = std::fs::remove_dir_all(dir.join("empty"));
            }
        }
        let some = run(user, &dir, &["trace", "-e", "execve", "--", "true"]);
        assert_eq!(said(&some, "nothing"), 0, "{}", some.stderr);
        let signal = run(user, &dir, &["trace", "-e", "none", "--", "sh", "-c", "kill -WINCH $$"]);
        assert_eq!(said(&signal, "nothing"), 0, "{}", signal.stderr);
    });
}

#[test]
fn each_view_without_content_is_explained() {
    each_user(|user| {
        let some = record(user, &["--backend", "ptrace"], &["true"]);
        let none = record(user, &["--backend", "ptrace", "-e", "socket"], &["true"]);
        let unselected = "is selected by -e";
        for (r, options, why) in [
            (&none, &[][..], "nothing that was to be recorded has happened"),
            (&none, &["-c"], "nothing that was to be recorded has happened"),
            (&none, &["--latency"], "nothing that was to be recorded has happened"),
            (&none, &["--as", "tree"], "nothing that was to be recorded has happened"),
            (&some, &["-e", "socket"], unselected),
            (&some, &["-c", "-e", "socket"], unselected),
            (&some, &["--latency", "-e", "socket"], unselected),
            (&some, &["--by", "stack"], "none of its events has a stack (record with --kstack or --ustack)"),
            (&some, &["--as", "tree"], "it has no function calls (record with 'trapline graph -o DIR'"),
            (&some, &["--as", "cat"], "it has no function calls"),
            (&some, &["--as", "calls-json"], "it has no function calls"),
        ] {
            let out = r.report(options);
            let found = (out.code(), said(&out, "nothing to show: "), said(&out, why));
            assert_eq!(found, (0, 1, 1), "{options:?} {}", out.stderr);
            assert_eq!(r.report(&[options, &["-q"]].concat()).stderr, "");
        }
        for options in [&[][..], &["-c"], &["--latency"], &["--as", "json"], &["--as", "tree", "--syscalls"]] {
            assert_eq!(some.report(options).stderr, "", "{options:?}");
        }
    });
}

#[test]
fn profiles_heaps_and_graphs_are_explained() {
    let dir = lab::scratch();
    if lab::kernel_backend_is_possible() {
        let none = "the target was on no processor when the clock ticked";
        let out = run(User::Me, &dir, &["profile", "-F", "1", "-o", "samples", "--", "true"]);
        assert_eq!(said(&out, none), 1, "{}", out.stderr);
        let out = run(User::Me, &dir, &["report", "--as", "table", "samples"]);
        assert_eq!(said(&out, "nothing to show"), 1, "{}", out.stderr);
        let out = run(User::Me, &dir, &["diff", "samples", "samples"]);
        assert_eq!(said(&out, "nothing to compare"), 2, "{}", out.stderr);
    }
    let out = run(User::Me, &dir, &["heap", "--", "true"]);
    let none = out.stderr.contains("0 allocations") || out.out().contains("of 0 allocations");
    assert_eq!(said(&out, "no allocation was recorded: "), usize::from(none), "{}", out.stderr);
    let out = run(User::Me, &dir, &["graph", "-F", "no_such_function", "-o", "calls", "--", "true"]);
    assert_eq!(said(&out, "no call of a function was recorded: "), 1, "{}", out.stderr);
    let record = |e| run(User::Me, &dir, &["record", "--force", "-e", e, "-o", "recorded", "--", "true"]);
    let none = "no call of a function was recorded: no function could be patched";
    assert_eq!(said(&record("function:no_such_function"), none), 1);
    // Whether `true` allocates anything is the C library's affair.
    let out = record("heap:malloc");
    let none = usize::from(out.stderr.contains(" 0 events"));
    assert_eq!(said(&out, "no allocation was recorded: "), none, "{}", out.stderr);
}

#[test]
fn a_list_of_nothing_says_so() {
    each_user(|user| {
        let dir = lab::scratch();
        let out = run(user, &dir, &["session", "list"]);
        // Other tests may have sessions.
        assert_eq!(said(&out, "nothing runs (start "), usize::from(out.out().is_empty()), "{}", out.stderr);
        assert!(out.out().is_empty() || out.out().lines().count() > 1, "{}", out.out());
    });
}

#[test]
fn a_process_without_functions_is_explained_and_fails() {
    lab::each_attacher(|user| {
        let dir = lab::scratch();
        let target = lab::start(&mut lab::as_user(user, &["sleep", "100"]));
        let pid = target.pid().to_string();
        lab::until("it sleeps", || lab::status_field(target.pid(), "State").is_some_and(|s| s.starts_with('S')));
        for args in [
            &["graph", "-p", &pid, "--duration", "0.1"][..],
            &["record", "-o", "empty", "-e", "function:nothing_like_that", "-p", &pid, "--duration", "0.1"],
        ] {
            let out = lab::run(lab::trapline(user, args).current_dir(&dir));
            assert_eq!(out.code(), 125, "{args:?} {}", out.stderr);
            assert!(
                said(&out, "no symbols of functions") + said(&out, "has this name") == 1,
                "{args:?} {}",
                out.stderr
            );
        }
    });
}
