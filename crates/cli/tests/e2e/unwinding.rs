//! Stacks of programs whose callers are known, frame by frame: by the tables in the kernel (a function, a call), by the ptracer, and by
//! gdb, where all of them stop at the same call.

use crate::kernel::possible;
use crate::lab::{self, User};
use crate::record::{Recorded, number, record, stats_of};
use serde_json::Value;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use testkit::compile;

/// A frame: function, module, offset in the module's file.
type Frame = (String, String, String);

/// The stacks of all events of this name, without inlined functions.
#[track_caller]
fn stacks(r: &Recorded, name: &str) -> Vec<Vec<Frame>> {
    let out = r.report(&["-q", "--as", "json"]);
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let text = |f: &Value, key: &str| f[key].as_str().unwrap_or("?").to_string();
    let of = |event: Value| -> Option<Vec<Frame>> {
        let frames = event["ustack"].as_array().filter(|_| event["name"] == name)?;
        let real = frames.iter().filter(|f| f["inlined"] != true);
        Some(real.map(|f| (text(f, "function"), text(f, "module"), text(f, "address"))).collect())
    };
    out.out().lines().filter_map(|l| of(serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}")))).collect()
}

/// The only stack of an event of this name.
#[track_caller]
fn stack(r: &Recorded, name: &str) -> Vec<Frame> {
    let mut all = stacks(r, name);
    assert_eq!(all.len(), 1, "{name}: {} {}", r.stats, r.outcome.stderr);
    all.remove(0)
}

/// Names of functions up to `main`.
fn names(stack: &[Frame]) -> Vec<&str> {
    let all: Vec<&str> = stack.iter().map(|f| f.0.as_str()).collect();
    let end = all.iter().position(|n| *n == "main").map_or(all.len(), |at| at + 1);
    all[..end].to_vec()
}

fn places(stack: &[Frame]) -> Vec<String> {
    stack.iter().map(|f| format!("{} {}", f.1, f.2)).collect()
}

/// What gdb finds at the program's call; none where there is no gdb.
#[track_caller]
fn by_gdb(command: &[&str]) -> Option<Vec<String>> {
    if !lab::has("gdb") {
        lab::skip("package:gdb", "no gdb to compare stacks with");
        return None;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/walks.py");
    let argv = [&["gdb", "-nx", "-q", "-batch", "-x", script, "--args"], command].concat();
    let out = lab::run(&mut lab::as_user(User::Me, &argv));
    let text = out.out();
    let frames: Vec<String> = text.lines().filter_map(|l| l.strip_prefix("frame ").map(String::from)).collect();
    assert!(!frames.is_empty(), "{text} {}", out.stderr);
    Some(frames)
}

/// The stack at the call of `here` while all functions of the program are traced: what the agent does in it is its own. No agent comes into static
/// programs.
#[track_caller]
fn is_the_same_with_functions(user: User, command: &[&str], want: &[Frame]) {
    if command[0].contains("walks_static") {
        return;
    }
    let r = record(user, &["-e", "function:*", "-e", "getppid ustack"], command);
    let mut found = stack(&r, "getppid");
    found.retain(|f| !f.1.contains("trapline-agent"));
    assert_eq!(found, want, "{user:?} {command:?} {} {}", r.stats, r.outcome.stderr);
}

/// No probe is set in a file while functions of it are patched, which several tests may have: they take turns.
static TURNS: Mutex<()> = Mutex::new(());

/// With the ptracer, and with the tables in the kernel: the stack at the call of `here`, and at the function itself where it has a name.
/// They must be equal; returns one of them.
#[track_caller]
fn walked(module: Option<&str>, command: &[&str]) -> Vec<Frame> {
    let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let by_ptrace = stack(&record(User::Ptrace, &["-e", "getppid ustack"], command), "getppid");
    is_the_same_with_functions(User::Ptrace, command, &by_ptrace);
    if !possible() {
        return by_ptrace;
    }
    is_the_same_with_functions(User::Kernel, command, &by_ptrace);
    let probe = module.map(|m| format!("uprobe:{m}:here"));
    let entry = probe.as_ref().map(|p| format!("{p} ustack"));
    let mut options = vec!["-e", "getppid ustack"];
    options.extend(entry.iter().flat_map(|e| ["-e", e]));
    let r = record(User::Kernel, &options, command);
    let by_kernel = stack(&r, "getppid");
    assert_eq!(by_kernel, by_ptrace, "{}", r.stats);
    if let Some(probe) = probe {
        let at_entry = stack(&r, &probe);
        assert_eq!((at_entry[0].0.as_str(), &at_entry[1..]), ("here", &by_kernel[1..]), "{}", r.stats);
    }
    let ended = &r.stats["stacks"]["ended"];
    let whole = ended["the outermost frame was reached"].as_u64();
    assert_eq!(whole, Some(1 + u64::from(module.is_some())), "{}", r.stats);
    by_kernel
}

/// [`walked`], equal to gdb, and with these functions up to `main`.
#[track_caller]
fn known(program: &str, args: &[&str], functions: &[&str]) {
    let command = [&[program], args].concat();
    let stack = walked(Some(program), &command);
    assert_eq!(names(&stack), functions, "{args:?}");
    same_as_gdb(&command, &stack);
}

#[track_caller]
fn same_as_gdb(command: &[&str], stack: &[Frame]) {
    if let Some(want) = by_gdb(command) {
        assert_eq!(places(stack), want, "{command:?}");
    }
}

/// No frame pointers, no jumps in place of calls.
const PLAIN: [&str; 3] = ["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"];

fn walks(name: &str, more: &[&str]) -> Option<String> {
    compile("gcc", name, "walks.c", &[&PLAIN, more].concat())
}

fn library() -> Option<String> {
    compile("gcc", "libwalks.so", "walks_library.c", &[&PLAIN[..], &["-shared", "-fPIC"]].concat())
}

const SIGNAL: [&str; 7] = ["here", "inner", "handler", "?", "interrupted", "on_a_stack_of_its_own", "main"];

// Slow: gdb walks each stack too.
#[test]
fn programs_without_frame_pointers() {
    let Some(p) = walks("walks", &[]) else { return };
    known(&p, &["plain"], &["here", "inner", "middle", "outer", "main"]);
    known(&p, &["large"], &["here", "inner", "large", "main"]);
    let command = [p.as_str(), "callback"];
    let stack = walked(Some(&p), &command);
    let own: Vec<&str> = stack.iter().filter(|f| f.1 == p).map(|f| f.0.as_str()).collect();
    assert_eq!(own, ["here", "inner", "called_back", "sorts", "main", "_start"]);
    same_as_gdb(&command, &stack);
}

/// From the handler's stack to what the signal has interrupted, at the very instruction.
#[test]
fn handlers_on_a_stack_of_their_own() {
    let Some(p) = walks("walks", &[]) else { return };
    known(&p, &["signal"], &SIGNAL);
}

#[test]
fn deep_stacks_are_whole_up_to_512_frames_and_then_counted() {
    let Some(p) = walks("walks", &[]) else { return };
    let command = [p.as_str(), "deep", "200"];
    let stack = walked(Some(&p), &command);
    assert_eq!(names(&stack).iter().filter(|n| **n == "deep").count(), 200);
    assert_eq!((stack.len(), stack.last().map(|f| f.0.as_str())), (205, Some("_start")));
    same_as_gdb(&command, &stack);
    for user in [User::Ptrace, User::Kernel] {
        if user == User::Kernel && !possible() {
            continue;
        }
        let r = record(user, &["-e", "getppid ustack"], &[&p, "deep", "600"]);
        let all = self::stack(&r, "getppid");
        assert_eq!((all.len(), all.last().map(|f| f.0.as_str())), (512, Some("deep")), "{user:?}");
        if user == User::Kernel {
            assert_eq!(number(&r.stats["stacks"]["ended"], "there are more frames than are kept"), 1, "{}", r.stats);
        }
    }
}

// Slow: gdb walks each stack too.
#[test]
fn programs_that_are_linked_statically() {
    let found =
        lab::run(&mut lab::as_user(User::Me, &["sh", "-c", "ls /usr/lib/*/libc.a /usr/lib*/libc.a 2>/dev/null"]));
    if found.out().is_empty() {
        return lab::skip("package:libc6-dev", "no static libc");
    }
    for (name, how) in [("walks_static", "-static"), ("walks_static_pie", "-static-pie")] {
        // dlopen is no matter of these.
        let Some(p) = walks(name, &[how, "-Wno-error", "-w"]) else { return };
        known(&p, &["plain"], &["here", "inner", "middle", "outer", "main"]);
        known(&p, &["signal"], &SIGNAL);
    }
}

/// Without names there are the same frames: what a walk needs is not in the symbol table.
// Slow: gdb walks each stack too.
#[test]
fn programs_without_symbols() {
    let (Some(whole), Some(p)) = (walks("walks", &[]), walks("walks_stripped", &["-s"])) else { return };
    for way in ["plain", "signal"] {
        let stack = walked(None, &[&p, way]);
        let named = walked(Some(&whole), &[&whole, way]);
        assert_eq!(stack.len(), named.len(), "{stack:?}");
        same_as_gdb(&[&p, way], &stack);
    }
}

/// A function of a library is called as soon as that is loaded, and once more later. The kernel learns what is mapped a moment after it was:
/// the first stack is whole, or counted.
#[test]
fn libraries_that_were_loaded_a_moment_ago() {
    let (Some(p), Some(library)) = (walks("walks", &[]), library()) else { return };
    let command = [p.as_str(), "dlopen", &library];
    let by_ptrace = stacks(&record(User::Ptrace, &["-e", "getppid ustack"], &command), "getppid");
    let [first, second] = &by_ptrace[..] else { panic!("{by_ptrace:?}") };
    let names: Vec<&str> = names(first).into_iter().map(|n| n.split('.').next().unwrap_or(n)).collect();
    assert_eq!(names, ["here", "library_inner", "library_enters", "loads", "main"]);
    assert!(first[..3].iter().all(|f| f.1 == library) && first[3].1 == p && first == second, "{by_ptrace:?}");
    same_as_gdb(&command, first);
    if !possible() {
        return;
    }
    let probe = format!("uprobe:{library}:here");
    let r = record(User::Kernel, &["-e", "getppid ustack", "-e", &format!("{probe} ustack")], &command);
    let (calls, entries) = (stacks(&r, "getppid"), stacks(&r, &probe));
    let [(at_once, entry), (later, later_entry)] = [0, 1].map(|i| (&calls[i], &entries[i]));
    assert_eq!((later, &later_entry[1..]), (first, &first[1..]), "{}", r.stats);
    let whole = [at_once, entry].into_iter().filter(|s| s.len() == first.len()).count() as u64;
    assert!([at_once, entry].iter().all(|s| s[0].0 == "here"), "{calls:?} {entries:?}");
    let ended = &r.stats["stacks"]["ended"];
    let of = |why: &str| ended[why].as_u64().unwrap_or(0);
    let (good, cut) = (of("the outermost frame was reached"), of("an address is in no mapping that the tables know"));
    assert_eq!((good, cut), (2 + whole, 2 - whole), "{}", r.stats);
}

/// Code without tables that keeps frame pointers: its callers are found, marked as guessed, and named by what its compiler lists.
#[test]
fn code_made_at_run_time() {
    let Some(p) = walks("walks", &[]) else { return };
    for user in [User::Ptrace, User::Kernel] {
        if user == User::Kernel && !possible() {
            continue;
        }
        let out = lab::run(&mut lab::trapline(user, &["trace", "-k", "-e", "getppid", &p, "jit"]));
        assert_eq!(out.code(), 0, "{}", out.stderr);
        let lines: Vec<&str> = out.stderr.lines().filter(|l| l.starts_with(" > ")).take(5).collect();
        let want = ["(here+0x", "(first jitted+0xa)", "(second jitted+0xd)", "(jit+0x", "(main+0x"];
        assert!(lines.len() == 5 && lines.iter().zip(want).all(|(l, w)| l.contains(w)), "{user:?} {}", out.stderr);
        let guessed: Vec<bool> = lines.iter().map(|l| l.ends_with("(guessed)")).collect();
        assert_eq!(guessed, [false, false, true, true, false], "{}", out.stderr);
    }
}

#[test]
fn exceptions_of_cpp_on_their_way() {
    let Some(p) = compile("g++", "walks_cc", "walks.cc", &PLAIN) else { return };
    for (way, want) in [
        ("catch", &["here", "tells(long)", "catches(long)", "main"][..]),
        ("destructor", &["here", "tells(long)", "Guard::~Guard()", "guarded(long)", "lands(long)", "main"]),
        (
            "terminate",
            &["here", "tells(long)", "gives_up()", "std::terminate()", "__cxa_throw", "throws(long)", "main"],
        ),
    ] {
        let command = [p.as_str(), way];
        let stack = walked(Some(&p), &command);
        // Handlers are in parts of functions of their own; what libstdc++ does not name is its own.
        let names = names(&stack).into_iter().filter(|n| *n != "?").map(|n| n.trim_end_matches(".cold"));
        assert_eq!(names.collect::<Vec<_>>(), want, "{way}");
        same_as_gdb(&command, &stack);
    }
}

#[test]
fn panics_of_rust_on_their_way() {
    let Some(p) = compile("rustc", "walks_rs", "walks.rs", &["-O", "-C", "panic=unwind", "--crate-name", "walks"])
    else {
        return;
    };
    for (way, want) in [
        ("hook", &["here", "tells", "core::panicking::panic_bounds_check", "panics", "walks::main", "main"][..]),
        ("drop", &["here", "tells", "<walks::Guard as core::ops::drop::Drop>::drop", "guarded", "walks::main", "main"]),
        ("caught", &["here", "tells", "walks::main", "main"]),
    ] {
        let command = [p.as_str(), way];
        let stack = walked(Some(&p), &command);
        let mut names = names(&stack).into_iter();
        assert!(want.iter().all(|w| names.any(|n| n == *w)), "{way}: {stack:?}");
        same_as_gdb(&command, &stack);
    }
}

/// Return addresses on the stack are replaced, all the way; the stacks are those without the probes.
#[test]
fn return_probes_in_the_way() {
    let Some(p) = walks("walks", &[]).filter(|_| possible()) else { return };
    let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let probe = format!("uprobe:{p}:here");
    let entry = format!("{probe} ustack");
    let back = format!("uretprobe:{p}:deep");
    let middle = format!("uretprobe:{p}:main");
    let command = [p.as_str(), "deep", "40"];
    let options = ["-e", "getppid ustack", "-e", &entry];
    let plain = record(User::Kernel, &options, &command);
    let probed = record(User::Kernel, &[&options[..], &["-e", &back, "-e", &middle]].concat(), &command);
    assert_eq!(number(&probed.stats["probes"][&back], "seen"), 40, "{}", probed.stats);
    for name in ["getppid", &probe] {
        let want = stack(&plain, name);
        assert_eq!(want.iter().filter(|f| f.0 == "deep").count(), 40);
        assert_eq!(stack(&probed, name), want, "{name}: {}", probed.stats);
    }
    assert_eq!(number(&probed.stats["stacks"], "repaired"), 2 * 41, "{}", probed.stats);
}

/// Folded lines of a profile of a command, and its statistics.
#[track_caller]
fn profiled(command: &[&str]) -> (Vec<(Vec<String>, u64)>, Value) {
    let file = lab::scratch().join("stats").display().to_string();
    let options = ["profile", "-F", "4999", "--stats", &file, "--as", "folded", "--"];
    let out = lab::run(&mut lab::trapline(User::Me, &[&options, command].concat()));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let line = |l: &str| {
        let (names, weight) = l.rsplit_once(' ').unwrap_or_else(|| panic!("{l}"));
        let user = names.split(';').filter(|n| !n.ends_with("_[k]")).map(str::to_string).collect();
        (user, weight.parse().unwrap_or_else(|_| panic!("{l}")))
    };
    (out.out().lines().map(line).collect(), stats_of(file.as_ref()))
}

/// Code of the kernel in the process: its tables are in its own image.
#[test]
fn samples_in_the_vdso() {
    let Some(p) = walks("walks", &[]).filter(|_| possible()) else { return };
    let (lines, stats) = profiled(&[&p, "clock", "300"]);
    let is_clock = |n: &String| n.contains("clock_gettime") || n.contains("[vdso]");
    let in_clock = |names: &[String]| names.iter().any(is_clock);
    // The program asks in this function, and once in `main`.
    let caller = |names: &[String]| names.iter().take_while(|n| !is_clock(n)).last().cloned();
    let has_caller = |names: &[String]| caller(names).is_some_and(|n| n == "asks" || n == "main");
    let vdso: Vec<_> = lines.iter().filter(|(names, _)| in_clock(names)).collect();
    if vdso.is_empty() {
        return lab::skip("kernel:vdso", "the clock of this machine is a system call");
    }
    assert!(vdso.iter().all(|(names, _)| has_caller(names)), "{lines:?} {stats}");
}

/// Calls by stubs of the linker, which GNU ld describes and lld does not: no sample in them lacks its caller.
#[test]
fn samples_in_stubs_of_the_linker() {
    let Some(library) = library().filter(|_| possible()) else { return };
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().map(|o| o.stdout).unwrap_or_default();
    let sysroot = String::from_utf8_lossy(&sysroot).trim().to_string();
    let lld = format!("{sysroot}/lib/rustlib/x86_64-unknown-linux-gnu/bin/gcc-ld");
    let directory = format!("-B{lld}");
    let mut ways = vec![
        ("walks_lazy", vec!["-Wl,-z,lazy"]),
        ("walks_now", vec!["-Wl,-z,now"]),
        ("walks_ibt", vec!["-Wl,-z,now", "-fcf-protection", "-Wl,-z,ibtplt"]),
    ];
    if std::path::Path::new(&lld).join("ld.lld").exists() {
        ways.push(("walks_lld", vec!["-fuse-ld=lld", &directory, "-Wl,-z,lazy"]));
        ways.push(("walks_lld_now", vec!["-fuse-ld=lld", &directory, "-Wl,-z,now"]));
    } else {
        lab::skip("package:lld", "no lld beside rustc");
    }
    for (name, flags) in ways {
        // The compiler takes libraries behind what needs them.
        let link = ["-DLIBRARY", "-Wl,--no-as-needed", &library];
        let Some(p) = walks(name, &[&link[..], &flags].concat()) else { return };
        let (lines, stats) = profiled(&[&p, "stubs", "40000000"]);
        let at = |names: &[String], what: &str| names.iter().position(|n| n == what);
        let inside: Vec<_> = lines.iter().filter(|(names, _)| at(names, "stubs").is_some()).collect();
        let all: u64 = inside.iter().map(|l| l.1).sum();
        assert!(all > 200, "{name}: {lines:?} {stats}");
        // Each frame below is one of the stub or of the library, and there is none that lacks `stubs`.
        let lost = lines.iter().filter(|(names, _)| at(names, "stubs").is_none());
        let lost: u64 = lost.filter(|(names, _)| names.iter().any(|n| n.contains("library_adds"))).map(|l| l.1).sum();
        assert_eq!(lost, 0, "{name}: {lines:?}");
        assert!(inside.iter().all(|(names, _)| names.windows(2).any(|w| w == ["main", "stubs"])), "{name}: {lines:?}");
    }
}

/// The loader binds a function when it is first called, in a stub whose CFA is relative to rbx, by whichever walker.
#[test]
fn functions_that_are_bound_when_they_are_called() {
    let built = |name, flags: &[&str]| lab::compiled(name, "bound_lazily.c", flags);
    let Some(library) = built("libbound_lazily.so", &["-DLIBRARY", "-shared", "-fPIC", "-O1", "-g"]) else { return };
    let Some(p) = built("bound_lazily", &["-O1", "-g", "-Wl,--no-as-needed", &library, "-Wl,-z,lazy"]) else { return };
    // A stack that comes before the tables of a library that was mapped just now ends where they end, in the kernel.
    let whole = |user, command: &[&str]| {
        let r = record(user, &["-e", "getppid ustack"], command);
        assert_eq!(r.outcome.code(), 0, "{}", r.outcome.stderr);
        let text = r.report(&[]).out();
        let at = |name: &str| text.lines().position(|l| l.contains(&format!("({name}")));
        assert!(at("chooses").is_some(), "{text}");
        at("chooses") < at("main") && at("main") < at("_start")
    };
    // The loader has a stub for each instruction that saves registers: xsavec, xsave, fxsave.
    let tunables = ["", "GLIBC_TUNABLES=glibc.cpu.hwcaps=-XSAVEC", "GLIBC_TUNABLES=glibc.cpu.hwcaps=-XSAVEC,-XSAVE"];
    lab::each_backend(|user| {
        let times = if user == User::Kernel { 8 } else { 1 };
        for tunable in tunables {
            let command = ["env", tunable, &p];
            let command = if tunable.is_empty() { &command[2..] } else { &command };
            assert!((0..times).any(|_| whole(user, command)), "{tunable}: no stack reaches _start");
        }
    });
}

/// Stacks of page faults below that stub; and without the stub, in a program that is bound whole at its start.
#[test]
fn faults_in_functions_that_are_bound_when_they_are_called() {
    let built = |name, flags: &[&str]| lab::compiled(name, "bound_lazily.c", flags);
    let Some(library) = built("libbound_lazily.so", &["-DLIBRARY", "-shared", "-fPIC", "-O1", "-g"]) else { return };
    let link = ["-O1", "-g", "-Wl,--no-as-needed", &library];
    let Some(lazy) = built("bound_lazily", &[&link[..], &["-Wl,-z,lazy"]].concat()).filter(|_| possible()) else {
        return;
    };
    let Some(now) = built("bound_now", &[&link[..], &["-Wl,-z,now"]].concat()) else { return };
    for (program, outermost) in [(&lazy, "main"), (&now, "dl_main")] {
        let whole = || {
            let args = ["profile", "-q", "-e", "software:page-faults:1", "--as", "folded", "--", program.as_str()];
            let out = lab::run(&mut lab::trapline(User::Me, &args));
            assert_eq!(out.code(), 0, "{}", out.stderr);
            let shown = out.out();
            let below = |l: &&str| l.contains(";chooses ") || l.contains(";chooses_") || l.starts_with("chooses ");
            let inside: Vec<&str> = shown.lines().filter(below).collect();
            let count = |l: &&&str| l.rsplit_once(' ').and_then(|(_, n)| n.parse::<u64>().ok()).unwrap_or(0);
            assert!(inside.iter().map(|l| count(&l)).sum::<u64>() >= 60, "{program} {shown}");
            assert!(!shown.lines().any(|l| l.starts_with("_dl_runtime_resolve")), "{program} {shown}");
            inside.iter().all(|l| l.split(';').any(|f| f == outermost))
        };
        assert!((0..8).any(|_| whole()), "{program}: stacks do not reach {outermost}");
    }
}

/// Thousands of processes that fork, execute and end, while others keep the processors busy: each event has its stack, or is counted, and
/// what was kept for a process goes with it: there is room for far fewer than these.
#[test]
fn a_storm_of_processes_leaves_nothing_behind() {
    let Some(storm) = lab::program("forkstorm").filter(|_| possible()) else { return };
    let busy: Vec<_> =
        (0..2).map(|_| lab::start(&mut lab::as_user(User::Me, &["sh", "-c", "while :; do :; done"]))).collect();
    let dir = lab::scratch();
    let script = format!(
        "for i in 1 2 3 4 5 6; do {storm} 1000; done; i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done"
    );
    let args =
        ["record", "-o", "trace", "--stats", "stats", "-e", "getppid,exit_group ustack", "--", "sh", "-c", &script];
    let mut command = lab::trapline(User::Kernel, &args);
    command.current_dir(&dir).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut running = lab::start(&mut command);
    let mut most = 0;
    while running.child.try_wait().expect("wait").is_none() {
        let kb = lab::status_field(running.pid(), "VmRSS");
        most = most.max(kb.and_then(|t| t.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let out = running.end();
    drop(busy);
    let r = crate::record::finished(User::Kernel, dir, out);
    assert_eq!(r.outcome.out().lines().collect::<Vec<_>>(), ["1000"; 6], "{}", r.outcome.stderr);
    let calls: u64 =
        ["syscall:getppid", "syscall:exit_group"].iter().map(|c| number(&r.stats["probes"][c], "seen")).sum();
    assert!(calls >= 2 * 6000 + 200, "{}", r.stats);
    let ended: u64 = r.stats["stacks"]["ended"].as_object().expect("ends").values().filter_map(Value::as_u64).sum();
    assert_eq!((ended, number(&r.stats, "dropped")), (calls, 0), "{}", r.stats);
    let all: Vec<_> = ["getppid", "exit_group"].iter().flat_map(|name| stacks(&r, name)).collect();
    let (some, none) =
        (all.iter().filter(|s| !s.is_empty()).count() as u64, all.iter().filter(|s| s.is_empty()).count() as u64);
    let of = |why: &str| r.stats["stacks"]["ended"][why].as_u64().unwrap_or(0);
    let whole = of("the outermost frame was reached");
    assert_eq!(some + none, calls - number(&r.stats["stacks"], "lost"), "{}", r.stats);
    assert!(none <= number(&r.stats["stacks"], "lost") + (calls - whole), "{none} {}", r.stats);
    // What begins while the processors are busy is covered from its first instruction.
    assert!(whole * 100 >= calls * 95, "{whole} of {calls}: {}", r.stats);
    assert_eq!(number(&r.stats["stacks"]["tables"], "no_room"), 0, "{}", r.stats);
    assert!(most < 400 << 10, "{most} kB");
}

/// In every instruction of a call, and of what trapline adds to it, the stack can be unwound.
#[test]
fn programs_can_unwind_from_any_instruction_of_a_traced_call() {
    let builds: [(&str, &str, &[&str]); 5] = [
        ("gcc", "each_instruction_1", &["-O1"]),
        ("gcc", "each_instruction_2", &["-O2", "-fcf-protection"]),
        ("gcc", "each_instruction_s", &["-Os"]),
        ("clang", "each_instruction_c", &["-O2"]),
        ("gcc", "each_instruction_pg", &["-O1", "-pg"]),
    ];
    let dir = lab::scratch();
    for (compiler, name, flags) in builds {
        let Some(program) = compile(compiler, name, "each_instruction.c", flags) else { continue };
        let bare = lab::run(lab::as_user(User::Me, &[&program]).current_dir(&dir));
        assert_eq!(bare.out(), "20, of some hundred steps: yes, not unwound: 0\n", "{name}: {}", bare.stderr);
        let ways: [&[&str]; 4] = [
            &["graph", "-q", "--as", "functions=/dev/null", "-F", "outer"],
            &["graph", "-q", "--as", "functions=/dev/null", "-F", "outer", "-t", "1us"],
            &["record", "-q", "-o", name, "-e", "function:deep", "-e", "function:leaf"],
            &["heap", "-q", "--as", "totals=/dev/null"],
        ];
        for way in ways {
            // The handler is one that the agent does not know of, and one that it does.
            for arguments in [&["2"][..], &["2", "known"]] {
                let command = [way, &["--", &program], arguments].concat();
                let out = lab::run(lab::trapline(User::Me, &command).current_dir(&dir));
                assert_eq!((out.code(), out.out()), (0, bare.out()), "{command:?}: {}", out.stderr);
                let _ = std::fs::remove_dir_all(dir.join(name));
            }
        }
    }
}
