//! Programs that turn their system calls into signals, but for those of a range of their code, as emulators do (Syscall User Dispatch): none of the
//! calls that they find is trapline's, and each is what it is untraced.

use crate::lab::{self, User};

/// How it is turned on: by libc's prctl(2), and by its syscall(2).
const WAYS: [(&str, &str); 2] =
    [("dispatched_by_prctl", "-DSET=prctl"), ("dispatched_by_syscall", "-DSET(...)=syscall(SYS_prctl, __VA_ARGS__)")];
/// What the program prints untraced.
const RIGHT: &str = "600 600 600, foreign 0, enough\n";

/// The program, built in a way; none where the kernel does not do that.
fn program(name: &str, flag: &[&str]) -> Option<String> {
    let program = testkit::compile("gcc", name, "dispatched.c", &[&["-O2", "-pthread"], flag].concat())?;
    let bare = lab::run(&mut lab::as_user(User::Me, &[&program]));
    if bare.out().starts_with("-1 ") {
        lab::skip("kernel:syscall_user_dispatch", "no Syscall User Dispatch");
        return None;
    }
    assert_eq!((bare.code(), bare.out().as_str()), (0, RIGHT), "{}", bare.stderr);
    Some(program)
}

#[track_caller]
fn right(user: User, options: &[&str], program: &str) {
    let dir = lab::scratch();
    testkit::open_to_all(&dir, 0o777);
    let argv = [options, &["--", program]].concat();
    let out = lab::run(lab::trapline(user, &argv).current_dir(dir));
    assert_eq!((out.code(), out.out().as_str()), (0, RIGHT), "{options:?}: {}", out.stderr);
}

#[test]
fn the_agent_makes_no_call_there() {
    for (name, flag) in WAYS {
        let Some(program) = program(name, &[flag]) else { return };
        for options in [
            &["graph", "-q", "--as", "functions=table"][..],
            &["graph", "-q", "--as", "functions=table", "-t", "1us"],
            &["graph", "-q", "--as", "functions=table", "--args"],
            &["graph", "-q", "--as", "functions=table", "--lib"],
            &["heap", "-q", "--as", "totals=table"],
            &["record", "-q", "-o", "trace", "-e", "function:*", "-e", "heap:*", "--ustack"],
        ] {
            right(User::Me, options, &program);
        }
    }
}

#[test]
fn calls_that_are_made_from_the_range_stay_there() {
    for (name, flags) in WAYS.map(|(name, flag)| (name, vec![flag])).into_iter().chain([("dispatched", vec![])]) {
        let Some(program) = program(name, &flags) else { return };
        lab::each_backend(|user| {
            for options in [&["-f"][..], &["-f", "-y"], &["-f", "-e", "getppid,mmap"]] {
                right(user, &[&["trace", "-o", "trace"], options].concat(), &program);
            }
        });
    }
}
