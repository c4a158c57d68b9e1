//! What the other options and commands do.

use crate::lab::{self, each_backend, each_ptracer, each_user};
use crate::trace::{on_stderr, trace};

#[test]
fn explain_says_what_will_be_done() {
    each_ptracer(|user| {
        let explained = |options: &[&str]| {
            on_stderr(user, &[&["--explain", "-q"], options, &["-o", "/dev/null", "true"]].concat()).stderr
        };
        let all = explained(&[]);
        assert!(all.lines().all(|l| l.starts_with("trapline: ")), "{all}");
        assert!(all.contains("backend: ptrace") && all.contains("recorded by the process"), "{all}");
        assert!(explained(&["-k"]).contains("no filter, because every call is wanted"));
        let some = explained(&["-e", "openat"]);
        assert!(some.contains("1 wanted") && some.contains("--no-seccomp"), "{some}");
        assert!(explained(&["-e", "openat", "--no-seccomp"]).contains("no filter (--no-seccomp)"));
        assert!(explained(&["-e", "openat", "--no-follow"]).contains("no filter"));
        assert!(explained(&["--on-full", "drop"]).contains("dropped and counted"));
        assert!(explained(&["-y", "-e", "read"]).contains("1 wanted"));
    });
}

#[test]
fn the_backend_is_the_kernels_where_it_may_be() {
    each_user(|user| {
        let said = |options: &[&str]| {
            let out = on_stderr(user, &[options, &["-o", "/dev/null", "sh", "-c", "exit 3"]].concat());
            assert_eq!(out.code(), 3, "{}", out.stderr);
            out.stderr
        };
        for (options, backend) in [
            (&[][..], user.backend()),
            (&["--backend", "auto"], user.backend()),
            (&["--on-full", "drop"], user.backend()),
            (&["--on-full", "block"], "ptrace"),
        ] {
            let end = format!(" events, 0 dropped, {backend} backend\n");
            let stderr = said(options);
            // Whichever it is, nothing more is said.
            assert!(stderr.ends_with(&end) && stderr.lines().count() == 1, "{options:?} {stderr}");
            let explained = said(&[options, &["--explain"]].concat());
            assert!(explained.contains(&format!("trapline: backend: {backend} (auto: ")), "{options:?} {explained}");
        }
        let doctor = lab::run(&mut lab::trapline(user, &["doctor"])).out();
        let taken = doctor.lines().find(|l| l.starts_with("ok  trapline trace takes")).expect("what is taken");
        assert!(taken.contains(&format!(" {} (auto: ", user.backend())), "{taken}");
    });
}

#[test]
fn explain_says_what_the_kernel_backend_loses() {
    if !lab::kernel_backend_is_possible() {
        return;
    }
    let explained = |options: &[&str]| {
        on_stderr(lab::User::Kernel, &[&["--explain", "-q"], options, &["-o", "/dev/null", "true"]].concat()).stderr
    };
    let all = explained(&[]);
    for part in [
        "backend: kernel (as requested)",
        "per CPU",
        "dropped and counted",
        "attach: ",
        "lost: events on a full buffer: ",
        "nothing is left",
    ] {
        assert!(all.contains(part), "no '{part}' in: {all}");
    }
    assert!(!all.contains("seccomp") && explained(&["-e", "openat"]).contains("1 wanted"), "{all}");
}

#[test]
fn backends_and_follow_are_accepted() {
    each_backend(|user| {
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
    each_backend(|user| {
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
    each_ptracer(|user| {
        let bit = |options: &[&str]| {
            let out = on_stderr(user, &[&["-q"], options, &["grep", "NoNewPrivs", "/proc/self/status"]].concat());
            out.out().split_whitespace().last().map(str::to_string)
        };
        assert_eq!(bit(&["--no-seccomp"]).as_deref(), Some("0"));
        assert_eq!(bit(&["--no-seccomp", "-e", "read"]).as_deref(), Some("0"));
        for options in [&[][..], &["-e", "read"]] {
            let filtered = bit(options);
            assert!(filtered.as_deref() == Some("1") || user == lab::User::Ptrace && lab::is_root(), "{filtered:?}");
        }
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
fn doctor_version_and_completions() {
    each_user(|user| {
        let run = |args: &[&str]| lab::run(&mut lab::trapline(user, args));
        let doctor = run(&["doctor"]);
        assert_eq!(doctor.code(), 0, "{}", doctor.stderr);
        assert!(doctor.out().to_lowercase().contains("ptrace"), "{}", doctor.out());
        let text = doctor.out();
        let (found, rest) = text.split_once("\n\nLimits of the backends, on every machine:\n").expect("limits");
        let (limits, next) = rest.split_once("\n\nWhat to do next:\n").expect("what to do");
        assert!(found.lines().all(|l| l.starts_with("ok ") || l.starts_with("no ")), "{text}");
        assert!(!found.contains("kernel: long buffers") && limits.contains("kernel: long buffers"), "{text}");
        assert!(next.lines().last().is_some_and(|l| l.contains("trapline trace -- CMD")), "{text}");
        // Where the kernel backend cannot be used, what would allow it is a step.
        let lacks = found.contains("\nno  capabilities for bpf(2)");
        assert_eq!(next.contains("setcap cap_bpf,cap_perfmon+ep /"), lacks, "{text}");
        assert!(run(&["--version"]).out().starts_with("trapline "));
        assert!(run(&["completions", "bash"]).out().contains("trapline"));
    });
}

#[test]
fn help_goes_from_questions_to_all_options() {
    let run = |args: &[&str]| lab::run(&mut lab::trapline(lab::User::Me, args));
    let first = run(&[]);
    assert_eq!((first.code(), first.out().as_str()), (2, ""));
    assert_eq!(first.stderr.lines().count(), 11, "{}", first.stderr);
    assert!(first.stderr.contains("What is it waiting for?") && first.stderr.contains("trapline stacks -p PID"));
    for (args, words, lacks) in [
        (
            &["trace", "--help"][..],
            &["--stack-trace", "trapline trace --help-all", "trapline trace -Z -- CMD"][..],
            "--no-follow",
        ),
        (&["trace", "-h"], &["--stack-trace"], "--no-follow"),
        (&["help", "trace"], &["--stack-trace"], "--no-follow"),
        (
            &["trace", "--help-all"],
            &["--no-follow", "What is selected:\n", "Options and output follow strace"],
            "Examples:",
        ),
        (&["help", "tracer", "enable"], &["--section", "Usage: trapline tracer enable"], "Examples:"),
        (&["help"], &["memory   Who holds the memory?", "signals "], "`"),
        (&["help", "memory"], &["Who holds the memory?\n", "trapline heap -- CMD "], "`"),
        (&["help", "killed"], &["nothing of trapline is left in the kernel"], "`"),
        (
            &["man", "trace"],
            &[".TH TRAPLINE\\-TRACE 1", ".SH EXAMPLES", ".SS \"Views and tables\"", "\\-\\-no\\-follow"],
            "`",
        ),
        (&["man", "trapline-heap"], &[".SH \"HEAP START\""], "`"),
        (&["man"], &[".TH TRAPLINE 1", "Why does it fail?", "trapline\\-trace\\fR(1)", ".SH \"EXIT STATUS\""], "`"),
    ] {
        let out = run(args);
        assert_eq!((out.code(), out.stderr.as_str()), (0, ""), "{args:?}");
        for word in words {
            assert!(out.out().contains(word), "{args:?}: no {word} in {}", out.out());
        }
        assert!(!out.out().contains(lacks), "{args:?}: {}", out.out());
    }
    for args in [&["help", "sessoins"][..], &["help", "session", "nothing"], &["man", "sesion"]] {
        let out = run(args);
        assert!(out.code() == 2 && out.stderr.contains("did you mean session"), "{}", out.stderr);
    }
    // A command's own.
    assert!(run(&["trace", "-q", "-o", "/dev/null", "echo", "--help-all"]).out().contains("--help-all"));
    let dir = lab::scratch().join("pages");
    assert_eq!(run(&["man", "-o", &dir.to_string_lossy()]).code(), 0);
    let page = std::fs::read_to_string(dir.join("trapline-trace.1")).expect("a page");
    assert_eq!(page, run(&["man", "trace"]).out());
}

#[test]
fn explain_lists_the_programs_when_asked_to() {
    let explained = |backend: &str, how: &str| {
        on_stderr(lab::User::Me, &["--backend", backend, how, "-q", "-o", "/dev/null", "true"]).stderr
    };
    assert!(explained("ptrace", "--explain=programs").contains("programs: none"));
    if !crate::kernel::possible() {
        return;
    }
    assert!(!explained("kernel", "--explain").contains("program of"));
    let all = explained("kernel", "--explain=programs");
    let listings: Vec<(&str, &str)> =
        all.split("trapline: program of ").skip(1).filter_map(|l| l.split_once('\n')).collect();
    for place in ["sys_enter", "sys_exit", "sched_process_fork", "sched_process_exit", "the task iterator"] {
        // One program may serve several places.
        let (_, listing) = listings.iter().find(|(of, _)| of.split(", ").any(|p| p == place)).expect(place);
        let first = listing.lines().next().unwrap_or_default();
        assert!(first.trim_start().starts_with("0: ("), "{place}: {first}");
    }
    assert!(all.contains("bpf_probe_read_user") && all.contains("bpf_seq_write"));
}

#[test]
fn explain_says_where_the_kernel_s_rings_are_used() {
    if !crate::kernel::possible() {
        return;
    }
    const LINE: &str = "trapline: events of calls go through the kernel's ring buffers: ";
    let explained = |options: &[&str]| {
        let r = crate::record::record(lab::User::Kernel, &[&["--explain"], options].concat(), &["true"]);
        let line = r.outcome.stderr.lines().find_map(|l| l.strip_prefix(LINE)).map(String::from);
        (line, r.events() > 0)
    };
    assert_eq!(explained(&["-e", "all kstack"]), (Some("calls have stacks".into()), true));
    let (line, recorded) = explained(&["-e", "all"]);
    let refused = "this kernel refuses programs that write rings themselves";
    assert!(recorded && line.is_none_or(|why| why == refused));
}
