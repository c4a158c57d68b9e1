//! Return probes, and what leaves a function otherwise than by returning: refused where that can happen, and what happens if it is forced.
//!
//! All of them are in files that nobody else has mapped: the kernel makes calls of its own (`uretprobe`) in every process.

use crate::kernel::possible;
use crate::lab::{self, User};
use crate::probes::{options, read, record, refused, tools};

#[track_caller]
fn built(name: &str, source: &str, flags: &[&str]) -> Option<String> {
    if possible() { lab::compiled(name, source, flags) } else { None }
}

/// Refuses a return probe in one line that says why and names `--force`; `list -v` and `--explain` say it too.
#[track_caller]
fn is_refused(program: &str, function: &str, outcome: &str, means: &str) {
    let probe = format!("uretprobe:{program}:{function}");
    let (code, said) = refused(User::Me, &["-e", &probe]);
    assert!(code == 125 && said.contains("--force sets it nevertheless"), "{said}");
    assert!(said.contains(&format!("{outcome}: {program} {means}")), "{said}");
    let listed = lab::run(&mut lab::trapline(User::Me, &["list", "-v", &probe])).out();
    assert!(listed.contains(&format!("needs --force: {program} {means}")), "{listed}");
    // Entries are safe.
    let (entry, want) =
        (format!("uprobe:{program}:{function}"), lab::run(&mut lab::as_user(User::Me, &[program])).out());
    assert_eq!(record(&["-e", &entry], &[program]).out.out(), want);
}

/// With `--force`: how the program ends, and what it prints.
#[track_caller]
fn forced(program: &str, function: &str) -> lab::Outcome {
    let probe = format!("uretprobe:{program}:{function}");
    let out = lab::run(&mut lab::trapline(User::Me, &["record", "--force", "--explain", "-e", &probe, "--", program]));
    assert!(out.stderr.contains("  danger, accepted by --force: "), "{}", out.stderr);
    out
}

#[test]
fn exceptions_of_cpp() {
    let Some(p) = built("throws", "throws.cc", &[]) else { return };
    for function in ["passes", "thrower"] {
        let outcome = "an exception that leaves it would abort the program";
        is_refused(&p, function, outcome, "can raise exceptions (__cxa_throw)");
    }
    let out = forced(&p, "passes");
    // SIGABRT, by std::terminate.
    assert_eq!(out.code(), 134, "{}", out.stderr);
    assert!(out.stderr.contains("terminate called"), "{}", out.stderr);
    // What calls nothing, nothing leaves.
    let alone = format!("uretprobe:{p}:alone");
    let r = record(&["-e", &alone], &[&p]);
    assert_eq!((r.out.out().as_str(), r.count(&alone, "seen")), ("110\n", 2));
}

#[test]
fn panics_of_rust() {
    let Some(p) = built("panics", "panics.rs", &[]) else { return };
    let outcome = "an exception that leaves it would abort the program";
    is_refused(&p, "panics::passes", outcome, "can raise exceptions (_Unwind_RaiseException)");
    let out = forced(&p, "panics::passes");
    assert_eq!(out.code(), 134, "{}", out.stderr);
    // Where a panic ends the program, none is raised.
    let Some(p) = built("panics_abort", "panics.rs", &["-C", "panic=abort", "--crate-name", "panics"]) else { return };
    let probe = format!("uretprobe:{p}:panics::passes");
    let (words, dir, stats) = options(&["-e", &probe], &[&p]);
    let out = lab::run(&mut lab::trapline(User::Me, &words));
    assert_eq!(out.code(), 134, "{}", out.stderr);
    assert_eq!(read(dir, stats, out).count(&probe, "seen"), 1);
}

#[test]
fn threads_that_are_cancelled() {
    let Some(p) = built("ends", "ends.c", &["-fexceptions"]) else { return };
    let outcome = "a thread that ends in it would skip the cleanup of its callers";
    is_refused(&p, "waits", outcome, "can end threads in the middle of functions (pthread_cancel)");
    let out = forced(&p, "waits");
    // Without the probe: 5 joined.
    assert_eq!((out.code(), out.out().lines().last()), (0, Some("0 joined")), "{}", out.stderr);
    // It is not the file's own doing where a library is probed, but the command's.
    let Some(probe) = in_a_library() else { return };
    let out = lab::run(&mut lab::trapline(User::Me, &["record", "-e", &probe, "--", "true"]));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let out = lab::run(&mut lab::trapline(User::Me, &["record", "-e", &probe, "--", &p]));
    assert_eq!(out.code(), 125, "{}", out.stderr);
    assert!(out.stderr.contains(&format!("{p} can end threads")), "{}", out.stderr);
}

#[test]
fn switches_of_stacks() {
    let Some(p) = tools("switches") else { return };
    is_refused(&p, "yields", "a switch of stacks in it would kill the program", "can switch stacks (swapcontext)");
    // SIGILL: the kernel has mixed up the returns of two stacks.
    assert_eq!(forced(&p, "yields").code(), 132);
}

/// A return probe in a copy of libc; none where libc is not found by its name.
#[track_caller]
fn in_a_library() -> Option<String> {
    let listed = lab::run(&mut lab::trapline(User::Me, &["list", "uprobe:libc:getenv"])).out();
    let Some(libc) = listed.trim().strip_prefix("uprobe:").and_then(|l| l.strip_suffix(":getenv")) else {
        lab::skip("package:libc", "no /etc/ld.so.cache that knows libc");
        return None;
    };
    let copy = lab::scratch().join("libc.so.6");
    std::fs::copy(libc, &copy).expect("a copy");
    Some(format!("uretprobe:{}:getenv", copy.display()))
}

/// longjmp over functions with return probes: the kernel drops the returns that do not come, and the program works.
#[test]
fn jumps_are_harmless() {
    let Some(p) = tools("jumps") else { return };
    let [deep, leaf] = ["deep", "leaf"].map(|f| format!("uretprobe:{p}:{f}"));
    let r = record(&["-e", &deep, "-e", &leaf], &[&p]);
    let want = lab::run(&mut lab::as_user(User::Me, &[&p])).out();
    assert_eq!(r.out.out(), want);
    // Of 300 calls, 200 were left by a jump.
    assert_eq!(r.count(&leaf, "seen"), 100);
    assert_eq!(r.count(&deep, "seen"), 21 * 100);
    let said =
        "200 of 300 calls without a return: nested deeper than 64, which the kernel does not follow, left by longjmp";
    assert!(r.out.stderr.contains(said), "{}", r.out.stderr);
}

/// A program that is linked statically, so that its functions are nobody else's; none where there is no libc for that.
#[track_caller]
fn static_program(name: &str, source: &str) -> Option<String> {
    let found =
        lab::run(&mut lab::as_user(User::Me, &["sh", "-c", "ls /usr/lib/*/libc.a /usr/lib*/libc.a 2>/dev/null"]));
    if found.out().is_empty() {
        lab::skip("package:libc6-dev", "no static libc");
        return None;
    }
    built(name, source, &["-static"])
}

/// setjmp keeps its return address: what jumps there later would die, also long after trapline.
#[test]
fn functions_that_look_at_their_return_address() {
    let Some(p) = static_program("jumps_static", "jumps.c") else { return };
    let probe = format!("uretprobe:{p}:__sigsetjmp");
    let (code, said) = refused(User::Me, &["-e", &probe]);
    assert!(code == 125 && said.contains("it reads its return address") && said.contains("--force"), "{said}");
    let listed = lab::run(&mut lab::trapline(User::Me, &["list", "-v", &probe])).out();
    assert!(listed.contains("needs --force: it reads its return address"), "{listed}");
    // SIGILL.
    assert_eq!(forced(&p, "__sigsetjmp").code(), 132);
    // All functions of a program and of its libc: without those, the program works.
    let want = lab::run(&mut lab::as_user(User::Me, &[&p])).out();
    let r = record(&["-e", &format!("uretprobe:{p}:*")], &[&p]);
    assert_eq!(r.out.out(), want, "{}", r.out.stderr);
    assert_eq!(r.count(&format!("uretprobe:{p}:leaf"), "seen"), 100);
    let left_out = r.out.stderr.lines().any(|l| l.contains("skipped, because they read their return addresses"));
    assert!(left_out && !r.out.stderr.contains("sigsetjmp: nothing recorded"), "{}", r.out.stderr);
}

/// What lies where a part's return address would be is something else.
#[test]
fn parts_of_functions_have_no_return() {
    let Some(p) = tools("odd_code") else { return };
    let (code, said) = refused(User::Me, &["--force", "-e", &format!("uretprobe:{p}:whole.cold")]);
    assert!(code == 2 && said.contains("parts of functions are jumped to"), "{said}");
    let whole = format!("uretprobe:{p}:whole");
    let r = record(&["-e", &format!("{whole}*,uprobe:{p}:whole.cold")], &[&p]);
    assert_eq!(r.out.out(), lab::run(&mut lab::as_user(User::Me, &[&p])).out());
    assert_eq!((r.numbers(&whole, "retval"), r.count(&format!("uprobe:{p}:whole.cold"), "seen")), (vec![42], 1));
    assert!(r.out.stderr.contains("skipped, because parts of functions are jumped to"), "{}", r.out.stderr);
}

/// A program of C that ends no threads: also linked statically, where the unwinder is part of it, and unused.
#[test]
fn plain_programs_have_return_probes() {
    let Some(p) = tools("strings") else { return };
    let mut programs = vec![p];
    match lab::run(&mut lab::as_user(User::Me, &["sh", "-c", "ls /usr/lib/*/libc.a /usr/lib*/libc.a 2>/dev/null"]))
        .out()
    {
        found if found.is_empty() => lab::skip("package:libc6-dev", "no static libc"),
        _ => programs.extend(built("strings_static", "strings.c", &["-static"])),
    }
    for p in programs {
        let probe = format!("uretprobe:{p}:find");
        let r = record(&["-e", &probe], &[&p]);
        assert_eq!((r.out.out().as_str(), r.count(&probe, "seen")), ("found\n1\n", 4), "{}", r.out.stderr);
    }
}

/// Processes that are attached to are looked at as they are.
#[test]
fn what_a_process_has_mapped_counts() {
    let (Some(p), Some(probe)) = (built("ends", "ends.c", &["-fexceptions"]), in_a_library()) else { return };
    let script = format!("exec 3<>/dev/null; {p} & wait; sleep 60");
    let shell = lab::as_user(User::Me, &["sh", "-c", &script]).stdout(std::process::Stdio::null()).spawn().expect("sh");
    let shell = lab::start_with(shell);
    let pid = shell.pid().to_string();
    // The shell itself ends no threads: it is only its child that does.
    let argv = ["record", "-p", &pid, "--duration", "0.1", "-e", &probe];
    let out = lab::run(&mut lab::trapline(User::Me, &argv));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let argv = ["record", "-p", &std::process::id().to_string(), "--duration", "0.1", "-e", &probe];
    let out = lab::run(&mut lab::trapline(User::Me, &argv));
    assert!(out.code() == 125 && out.stderr.contains("can raise exceptions"), "{}", out.stderr);
    drop(shell);
}
