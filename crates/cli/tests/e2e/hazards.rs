//! Programs that do what breaks tracers, under `trapline graph`: what they print, how they end and what they write is what an untraced
//! run prints, and each call of their functions is recorded or counted.
//!
//! A test for each scenario of `tests/programs/hazards*`, which runs it twice: linked with the shared libgcc, and with a static one, so
//! that the unwinder is found in both places. Then all scenarios of a program at once, for each way to compile it.

use crate::lab::{self, Outcome, User};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program of hazards: its name, its compiler, flags for both builds, and those that link it statically with libgcc.
pub struct Program {
    pub name: &'static str,
    source: &'static str,
    compiler: &'static str,
    flags: &'static [&'static str],
}

pub const STACKS: Program = Program { name: "stacks", source: "hazards.c", compiler: "gcc", flags: C };
pub const SIGNALS: Program = Program { name: "signals", source: "hazards_signals.c", compiler: "gcc", flags: C };
pub const PROCESSES: Program = Program { name: "processes", source: "hazards_processes.c", compiler: "gcc", flags: C };
pub const CPP: Program = Program { name: "cpp", source: "hazards.cc", compiler: "g++", flags: CC };
pub const RUST: Program = Program {
    name: "rust",
    source: "hazards.rs",
    compiler: "rustc",
    flags: &["-O", "--edition=2024", "-Cstrip=debuginfo"],
};
const C: &[&str] = &["-O2", "-pthread", "-fexceptions", "-Wl,--no-as-needed", "-lm"];
const CC: &[&str] = &["-O2", "-pthread", "-std=c++20", "-fnon-call-exceptions"];

impl Program {
    #[track_caller]
    pub fn build(&self, build: &str, more: &[&str]) -> Option<String> {
        let name = format!("hazards_{}_{build}", self.name);
        testkit::compile(self.compiler, &name, self.source, &[self.flags, more].concat())
    }

    /// Linked with libgcc as usual, and statically.
    #[track_caller]
    fn both(&self) -> Vec<String> {
        let with_eh;
        let fixed: &[&str] = match self.compiler {
            "gcc" => &["-static-libgcc"],
            "g++" => &["-static-libgcc", "-static-libstdc++"],
            _ => {
                // rustc always asks for libgcc_s; here the linker finds a script of this name, which leads to the static library.
                let dir = lab::dir().join("static_libgcc");
                let _ = fs::create_dir(&dir);
                fs::write(dir.join("libgcc_s.so"), "GROUP ( -lgcc_eh -lgcc -lc )\n").expect("a linker script");
                with_eh = format!("-Lnative={}", dir.display());
                &[&with_eh]
            }
        };
        [self.build("shared", &[]), self.build("static", fixed)].into_iter().flatten().collect()
    }
}

fn library(compiler: &str, source: &str) -> Option<String> {
    testkit::compile(compiler, &format!("{source}.so"), source, &["-O2", "-shared", "-fPIC"])
}

/// What a run has left: its files but for `counts`, whose contents are the second part.
pub fn files(dir: &Path) -> (BTreeMap<PathBuf, Vec<u8>>, String) {
    let mut files: BTreeMap<_, _> = lab::contents(dir)
        .into_iter()
        .map(|(path, bytes)| (path.strip_prefix(dir).expect("a file of it").to_path_buf(), bytes))
        .collect();
    let counts = files.remove(Path::new("counts")).unwrap_or_default();
    // A profile of `-pg` is of one run.
    files.remove(Path::new("gmon.out"));
    (files, String::from_utf8_lossy(&counts).into_owned())
}

fn prepared(mut command: Command, dir: &Path) -> Outcome {
    lab::run(prepare(&mut command, dir))
}

/// Has a command run in a directory of its own, with what the scenarios need.
pub fn prepare<'c>(command: &'c mut Command, dir: &Path) -> &'c mut Command {
    let own = dir.join("w");
    let _ = fs::remove_dir_all(&own);
    fs::create_dir(&own).expect("a directory");
    testkit::open_to_all(&own, 0o777);
    for (variable, compiler, source) in
        [("HAZARDS_LIBRARY", "gcc", "hazards_library.c"), ("HAZARDS_LIBRARY_CC", "g++", "hazards_library.cc")]
    {
        if let Some(path) = library(compiler, source) {
            command.env(variable, path);
        }
    }
    // A backtrace is the program's business.
    command.env("RUST_BACKTRACE", "0").current_dir(own)
}

/// Runs a scenario bare and under `graph`, and compares. Each call of a counting function has an entry and an exit, or is counted as lost.
#[track_caller]
fn same(command: &[&str], options: &[&str]) {
    let dir = lab::scratch();
    let bare = prepared(lab::as_user(User::Me, command), &dir);
    let (bare_files, _) = files(&dir.join("w"));
    let [trace, stats] = ["trace", "stats"].map(|n| dir.join(n).display().to_string());
    let usual = ["graph", "-q", "--on-full", "block", "--stats", &stats, "-o", &trace];
    let traced = prepared(lab::trapline(User::Me, &[&usual[..], options, &["--"], command].concat()), &dir);
    let (traced_files, counts) = files(&dir.join("w"));
    // trapline's own lines say what it cannot show.
    let said: String =
        traced.stderr.lines().filter(|l| !l.starts_with("trapline: ")).map(|l| format!("{l}\n")).collect();
    assert_eq!((traced.code(), traced.out(), said), (bare.code(), bare.out(), bare.stderr), "{command:?}");
    assert_eq!(traced_files, bare_files, "{command:?}");
    let stats: Value = serde_json::from_slice(&fs::read(&stats).expect("statistics")).expect("JSON");
    check_counts(&trace, &counts, stats["dropped"].as_u64().expect("a number"), command);
    let _ = fs::remove_dir_all(dir);
}

#[track_caller]
fn check_counts(trace: &str, counts: &str, dropped: u64, command: &[&str]) {
    let mut wanted: BTreeMap<&str, u64> = BTreeMap::new();
    for line in counts.lines() {
        let (name, count) = line.split_once(' ').expect("a name and a number");
        *wanted.entry(name).or_default() += count.parse::<u64>().expect("a number");
    }
    let report = lab::run(&mut lab::trapline(User::Me, &["report", "-q", "--as", "functions-json", trace]));
    assert_eq!(report.code(), 0, "{}", report.stderr);
    let mut recorded: BTreeMap<String, u64> = BTreeMap::new();
    for line in report.out().lines() {
        let function: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        if let (Some(name), Some(calls)) = (function["function"].as_str(), function["calls"].as_u64())
            && wanted.contains_key(name)
        {
            *recorded.entry(name.to_string()).or_default() += calls;
        }
    }
    let missing: u64 = wanted.iter().map(|(name, n)| n.abs_diff(recorded.get(*name).copied().unwrap_or(0))).sum();
    // A call that is lost has lost its entry and its exit.
    assert!(2 * missing <= dropped, "{command:?}: {wanted:?} counted, {recorded:?} recorded, {dropped} dropped");
}

#[track_caller]
fn scenario(program: &Program, name: &str) {
    for built in program.both() {
        same(&[&built, name], &[]);
    }
}

/// All scenarios of a program at once, with the functions of libc, libstdc++ and libgcc's neighbours traced too.
// Slow: every function of the C and C++ libraries is traced, in all scenarios.
#[test]
fn with_libraries() {
    for program in [STACKS, CPP] {
        for built in program.both() {
            same(&[&built, "all"], &["--lib"]);
        }
    }
}

/// Runs the scenarios bare and while their calls are recorded, by the processes themselves where that can be.
#[track_caller]
fn with_recorded_calls(program: &Program, names: &[&str]) {
    let ends_the_process = |name: &&&str| name.starts_with(|c: char| c.is_ascii_uppercase());
    lab::each_ptracer(|user| {
        let Some(built) = program.build("shared", &[]) else { return };
        for name in std::iter::once(&"all").chain(names.iter().filter(ends_the_process)) {
            let command = [&*built, name];
            let dir = lab::scratch();
            let out = dir.join("out").display().to_string();
            let run = |traced: &[&str]| {
                let mut command = match traced {
                    [] => lab::as_user(user, &command),
                    _ => lab::trapline(user, &[traced, &["-o", &out, "--"], &command].concat()),
                };
                let outcome = lab::run(prepare(&mut command, &dir));
                let own = outcome.stderr.lines().filter(|l| !l.starts_with("trapline: "));
                (outcome.code(), outcome.out(), own.map(str::to_string).collect::<Vec<_>>(), files(&dir.join("w")).0)
            };
            let bare = run(&[]);
            for traced in [&["trace", "-f"][..], &["record", "-q", "-f", "--force"]] {
                let got = run(traced);
                assert!(got == bare, "{traced:?} {command:?}: {got:?} instead of {bare:?}");
                let _ = fs::remove_file(&out);
            }
            let _ = fs::remove_dir_all(dir);
        }
    });
}

macro_rules! scenarios {
    ($module:ident, $program:expr, $($test:ident $name:literal),* $(,)?) => {
        mod $module {
            $(#[test] fn $test() { super::scenario(&$program, $name) })*
            // Slow: all scenarios, three times.
            #[test] fn with_recorded_calls() { super::with_recorded_calls(&$program, &[$($name),*]) }
        }
    };
}

scenarios! { stacks, super::STACKS,
    calls "calls", longjmps "longjmps", tail_calls "tail_calls", long_tail_calls "long_tail_calls",
    leaving_threads "leaving_threads", asynchronous_cancel "asynchronous_cancel", sixty_four_threads "sixty_four_threads",
    stacks_that_go "stacks_that_go",
    small_stacks "small_stacks", thread_destructors "thread_destructors", coroutines "coroutines", setcontexts "setcontexts",
    coroutine_in_threads "coroutine_in_threads", handed_near "handed_near", handed_far "handed_far",
    handed_by_jump "handed_by_jump",
    registers "registers", nested_functions "nested_functions", other_conventions "other_conventions", callbacks "callbacks",
    backtraces "backtraces", modules "modules", next_symbol "next_symbol", exit_handlers "Exit_handlers",
}

scenarios! { signals, super::SIGNALS,
    timer_of_50_us "timer_of_50_us", timer_of_10_khz "timer_of_10_khz", timer_and_threads "timer_and_threads",
    small_signal_stack "small_signal_stack", jumps_out_of_handlers "jumps_out_of_handlers",
    jumps_out_of_a_timer "jumps_out_of_a_timer", jumps_off_another_stack "jumps_off_another_stack",
    setcontext_in_a_handler "setcontext_in_a_handler", stack_overflow "stack_overflow", dies_of_overflow "Dies_of_overflow",
    actions "actions", masks_in_handlers "masks_in_handlers", changed_masks "changed_masks", breakpoints "breakpoints", faults "Faults",
    interrupted "interrupted", other_ways "other_ways", children_that_signal "children_that_signal",
    nested_handlers "nested_handlers", storm "storm", killed "Killed", aborted "Aborted",
}

scenarios! { processes, super::PROCESSES,
    forks "forks", fork_inside_of_calls "fork_inside_of_calls", forks_of_forks "forks_of_forks",
    forks_in_threads "forks_in_threads", threads_in_forks "threads_in_forks", vforks "vforks", spawns "spawns", chain "Chain",
    exec_in_a_thread "Exec_in_a_thread", few_resources "few_resources", closed_descriptors "closed_descriptors",
    another_user "another_user", clones "clones", environment "environment", seccomp_strict "Seccomp_strict",
    seccomp_kill "Seccomp_kill", seccomp_kill_by_syscall "Seccomp_kill_by_syscall", seccomp_refuse "Seccomp_refuse",
    seccomp_signals "Seccomp_signals", dispatch "Dispatch",
}

scenarios! { cpp, super::CPP,
    exceptions "exceptions", deep_exceptions "deep_exceptions", rethrown "rethrown", while_unwinding "while_unwinding",
    across_threads "across_threads", through_c "through_c", through_handlers "through_handlers",
    across_libraries "across_libraries", coroutines "coroutines", handed_exceptions "handed_exceptions", thunks "thunks", thread_storage "thread_storage",
    statics "statics", uncaught "Uncaught", not_allowed "Not_allowed", terminated "Terminated",
}

scenarios! { rust, super::RUST,
    panics "panics", resumed_panics "resumed_panics", panics_while_unwinding "panics_while_unwinding",
    panics_of_threads "panics_of_threads", backtraces "backtraces", backtraces_of_panics "backtraces_of_panics",
    futures "futures", channels "channels", children "children", panic_message "Panic_message",
    aborting_panic "Aborting_panic", unwinds_main "Unwinds_main",
}

/// A program whose filter lets it execute another, but make no socket: that one runs without the agent.
#[test]
fn a_filter_is_inherited() {
    for built in PROCESSES.both() {
        let bare = lab::run(lab::as_user(User::Me, &[&built, "Seccomp_exec"]).current_dir(lab::scratch()));
        let args = ["graph", "--as", "functions", "--", &built, "Seccomp_exec"];
        let traced = lab::run(lab::trapline(User::Me, &args).current_dir(lab::scratch()));
        assert_eq!((traced.code(), bare.code()), (0, 0), "{}", traced.stderr);
        assert!(traced.out().starts_with(&bare.out()), "{}", traced.out());
        assert!(traced.stderr.contains("not traced: 1 program: trapline cannot be reached"), "{}", traced.stderr);
    }
}

/// Faults of five kinds in the first instructions of functions, by which handlers leave them.
#[test]
fn faults_whose_handlers_throw() {
    let ways: [(&str, &str, &[&str]); 4] = [
        ("g++", "faults_small", &["-Os"]),
        ("g++", "faults_whole", &["-O3", "-flto", "-fcf-protection", "-static-libgcc", "-static-libstdc++"]),
        ("clang++", "faults_clang", &["-O2"]),
        ("clang++", "faults_frames", &["-O0", "-fcf-protection"]),
    ];
    for (compiler, name, flags) in ways {
        let flags = [flags, &["-fnon-call-exceptions", "-pthread"]].concat();
        let Some(program) = testkit::compile(compiler, name, "faults_that_throw.cc", &flags) else { continue };
        same(&[&program], &[]);
        same(&[&program], &["-t", "1ns"]);
        if name == "faults_small" {
            same(&[&program], &["--args", "--lib"]);
        }
    }
}

/// Programs that start another one: its environment and its status are as without trapline.
#[test]
fn wrappers() {
    let Some(built) = STACKS.build("shared", &[]) else { return };
    for wrapper in [&["timeout", "50"][..], &["env"], &["nice"], &["setsid", "-w"], &["sh", "-c", "\"$0\" \"$@\""]] {
        same(&[wrapper, &[&*built, "longjmps"]].concat(), &[]);
    }
}

/// In a child of fork, memory for calls belongs to the thread that goes on, also while none of its calls is open.
#[test]
fn threads_of_a_child_that_begin_first() {
    let flags = ["-O2", "-fno-optimize-sibling-calls", "-pthread"];
    let Some(program) = testkit::compile("gcc", "forked_threads", "forked_threads.c", &flags) else { return };
    let dir = lab::scratch();
    let trace = dir.join("trace").display().to_string();
    let args = ["record", "-q", "--on-full", "block", "-e", "function:work", "-o", &trace, "--", &program];
    let out = lab::run(&mut lab::trapline(User::Me, &args));
    assert_eq!((out.code(), out.out().as_str()), (0, "20 right\n"), "{}", out.stderr);
    let report = lab::run(&mut lab::trapline(User::Me, &["report", "-q", "--as", "functions-json", &trace]));
    let work: Value = serde_json::from_str(report.out().lines().next_back().expect("a function")).expect("JSON");
    // Four calls before each fork; four threads that make 50 calls, each with 100 inside.
    assert_eq!(work["calls"].as_u64(), Some(20 * (4 + 4 * 50 * 101)), "{work}");
}

/// All scenarios of both programs, compiled in one way; the flags are behind the usual ones. Coroutines call at each depth once: how the
/// code looks is what is new here, not how threads meet.
#[track_caller]
fn compiled_in(way: &str, clang: bool, flags: &[&str]) {
    for program in [STACKS, CPP] {
        let compiler = match program.compiler {
            "g++" if clang => "clang++",
            _ if clang => "clang",
            usual => usual,
        };
        if !lab::has(compiler) {
            lab::skip(&format!("package:{compiler}"), "no compiler");
        } else if let Some(built) = (Program { compiler, ..program }).build(way, &[flags, &["-DHANDS=13"]].concat()) {
            same(&[&built, "all"], &[]);
        }
    }
}

// A split stack that is handed to another thread keeps the limit of the first: exceptions on it end the program untraced too, now and then.
macro_rules! ways_to_compile {
    ($($way:ident $flags:expr),* $(,)?) => {
        mod ways_to_compile {
            $(#[test] fn $way() { super::compiled_in(stringify!($way), stringify!($way) == "clang", &$flags) })*
        }
    };
}

ways_to_compile! {
    o0 ["-O0"], o1 ["-O1"], o3 ["-O3", "-march=x86-64-v2"], os ["-Os"], no_frame ["-fomit-frame-pointer"],
    frame ["-fno-omit-frame-pointer", "-mno-red-zone"], cf_protection ["-fcf-protection=full"],
    no_cf_protection ["-fcf-protection=none"], pie ["-fPIE", "-pie"], no_pie ["-fno-pie", "-no-pie"], pg ["-pg"],
    mfentry ["-pg", "-mfentry"], patchable ["-fpatchable-function-entry=5"],
    patchable_before ["-fpatchable-function-entry=16,8"], lto ["-flto"], split_stack ["-fsplit-stack", "-DNO_HANDS"],
    stack_clash ["-fstack-clash-protection", "-fstack-protector-strong"],
    sections ["-ffunction-sections", "-Wl,--gc-sections", "-Wl,-z,now"],
    retpolines ["-mindirect-branch=thunk", "-mfunction-return=thunk", "-fcf-protection=none"], clang [],
}
