//! `trapline tracer` with tracers that misbehave: panics, reports of failures, allocations, and threads that there is no memory for.

use crate::injected::started;
use crate::lab::{self, Outcome, Running, User};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn tracer(pid: u32, command: &str, more: &[&str]) -> Outcome {
    let pid = pid.to_string();
    lab::run(&mut lab::trapline(User::Me, &[&["tracer", command, "-p", &pid], more].concat()))
}

#[track_caller]
fn done(out: &Outcome) -> String {
    assert_eq!((out.code(), out.complaints().as_str()), (0, ""), "{}", out.out());
    out.out()
}

#[track_caller]
fn program() -> Option<String> {
    testkit::compile("gcc", "checked_own", "checked.c", &["-g", "-O1", "-pthread"])
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A tracer in Rust, of this source.
fn in_rust(name: &str, source: &str) -> PathBuf {
    let dir = lab::scratch();
    fs::create_dir(dir.join("src")).expect("a directory");
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[lib]\ncrate-type = [\"cdylib\"]\n\
         [dependencies]\ntracer = {{ path = {:?} }}\n[workspace]\n",
        root().join("crates/tracer")
    );
    fs::write(dir.join("Cargo.toml"), manifest).expect("a file");
    fs::write(dir.join("src/lib.rs"), source).expect("a file");
    let cargo = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--offline", "--manifest-path"])
        .arg(dir.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(root().join("target/tracer-tests"))
        .env_remove("RUSTFLAGS")
        .status();
    assert!(cargo.expect("cargo").success());
    let library = dir.join(format!("{name}.so"));
    fs::copy(root().join(format!("target/tracer-tests/debug/lib{name}.so")), &library).expect("the library");
    library
}

/// A tracer in C, of this source.
fn in_c(name: &str, text: &str) -> PathBuf {
    let dir = lab::scratch();
    let (source, library) = (dir.join(format!("{name}.c")), dir.join(format!("{name}.so")));
    fs::write(&source, text).expect("a file");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-I"]).arg(root().join("crates/tracer/include"));
    assert!(gcc.arg("-o").arg(&library).arg(&source).status().expect("gcc").success());
    library
}

fn end(run: Running) -> Outcome {
    lab::kill("TERM", run.pid().into());
    let out = run.end();
    assert_eq!(out.code(), 0, "{}", out.stderr);
    out
}

#[test]
fn panics_are_caught_and_reported() {
    let Some(program) = program() else { return };
    let library = in_rust(
        "panics_soon",
        "use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
        struct Soon(AtomicU64);
        impl tracer::Callbacks for Soon {
            fn enter(&self, _: &tracer::Function, _: *const (), _: u32) {
                if self.0.fetch_add(1, Relaxed) == 2 {
                    panic!(\"as planned\");
                }
            }
        }
        tracer::tracer!(\"soon\", Soon, Soon(AtomicU64::new(0)));",
    );
    let run = started(User::Me, &[&program, "thread"]);
    let pid = run.pid();
    done(&tracer(pid, "enable", &[library.to_str().expect("UTF-8"), "-F", "draw"]));
    let said = format!("trapline: -p {pid}: soon: 1 panic, told of no more calls\n");
    lab::until("it has panicked", || !tracer(pid, "status", &[]).stderr.is_empty());
    for (command, stdout) in [("status", "soon\tenabled\n"), ("print", "")] {
        let out = tracer(pid, command, &["soon"]);
        assert_eq!((out.code(), out.out().as_str(), &out.stderr), (0, stdout, &said), "{command}");
    }
    // Columns are as they are without it, and others have nothing to report.
    assert!(tracer(pid, "status", &[]).out().lines().all(|l| l.split('\t').count() == 2));
    assert_eq!(done(&tracer(pid, "status", &["count"])), "count\tdisabled\n");
    done(&tracer(pid, "disable", &["soon"]));
    let out = end(run);
    assert_eq!(out.stderr.matches("as planned").count(), 1, "{}", out.stderr);
}

/// That is against the rules, but goes well where the functions are called without the allocator's locks.
#[test]
fn a_tracer_that_allocates_leaves_a_program_that_does_not_as_it_is() {
    let Some(program) = program() else { return };
    let library = in_rust(
        "allocates",
        "struct Allocates;
        impl tracer::Callbacks for Allocates {
            fn enter(&self, f: &tracer::Function, _: *const (), depth: u32) {
                let text = format!(\"{} {depth}\", f.number);
                assert!(std::hint::black_box(vec![text; 100]).len() == 100);
            }
        }
        tracer::tracer!(\"allocates\", Allocates, Allocates);",
    );
    let run = started(User::Me, &[&program, "thread"]);
    let pid = run.pid();
    done(&tracer(pid, "enable", &[library.to_str().expect("UTF-8"), "-F", "draw", "-F", "job"]));
    done(&tracer(pid, "enable", &["count", "-F", "draw", "-F", "job"]));
    lab::until("both are called", || done(&tracer(pid, "print", &["count"])).contains("of 2 functions"));
    assert_eq!(done(&tracer(pid, "status", &["allocates"])), "allocates\tenabled\n");
    assert_eq!(end(run).stderr, "");
}

#[test]
fn failures_that_a_tracer_reports_are_counted() {
    let Some(program) = program() else { return };
    let text = "#include \"trapline_tracer.h\"
        static const struct trapline_tracer tracer;
        static int calls;
        static void enter(const struct trapline_function *f, const void *c, unsigned d) {
            (void)f; (void)c; (void)d;
            if (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) <= 2) trapline_report(&tracer);
        }
        static const struct trapline_tracer tracer = { 1, TRAPLINE_ALL_REGISTERS, \"fails\", enter, 0 };
        __attribute__((constructor)) static void begin(void) { trapline_register(&tracer); }\n";
    let library = in_c("fails", text);
    let run = started(User::Me, &[&program, "thread"]);
    let pid = run.pid();
    done(&tracer(pid, "enable", &[library.to_str().expect("UTF-8"), "-F", "draw"]));
    let said = format!("trapline: -p {pid}: fails: it has reported 2 failures\n");
    lab::until("it has failed", || tracer(pid, "status", &["fails"]).stderr == said);
    end(run);
}

#[test]
fn a_library_with_a_tracer_stays_when_the_program_closes_it() {
    let Some(program) = program() else { return };
    let in_rust = in_rust(
        "stays_in_rust",
        "struct Stays;
        impl tracer::Callbacks for Stays {}
        tracer::tracer!(\"stays_in_rust\", Stays, Stays);",
    );
    let in_c = in_c(
        "stays",
        "#include \"trapline_tracer.h\"
        static void enter(const struct trapline_function *f, const void *c, unsigned d) { (void)f; (void)c; (void)d; }
        static const struct trapline_tracer tracer = { 1, TRAPLINE_FLAGS, \"stays\", enter, 0 };
        __attribute__((constructor)) static void begin(void) { trapline_register(&tracer); }\n",
    );
    for library in [in_rust, in_c] {
        let path = library.to_str().expect("UTF-8");
        let run = started(User::Me, &[&program, path]);
        let pid = run.pid();
        done(&tracer(pid, "enable", &[path, "-F", "draw"]));
        done(&tracer(pid, "enable", &["count", "-F", "quick"]));
        lab::kill("USR1", pid.into());
        let calls = || done(&tracer(pid, "print", &["count"]));
        let before = calls();
        lab::until("the program goes on", || calls() != before);
        assert!(fs::read_to_string(format!("/proc/{pid}/maps")).expect("its mappings").contains(path));
        done(&tracer(pid, "disable", &[library.file_stem().and_then(|n| n.to_str()).expect("UTF-8")]));
        let out = end(run).out();
        assert!(out.starts_with("closed\n"), "{out}");
    }
}

#[test]
fn help_and_the_man_page_have_all_options_of_tracers() {
    let run = |args: &[&str]| lab::run(&mut lab::trapline(User::Me, args)).out();
    let man = run(&["man", "tracer"]).replace('\\', "");
    for (command, options) in [
        ("enable", &["--section", "--thread", "--stop", "--loop", "--budget", "--no-time", "--lib"][..]),
        ("print", &["--as", "--rows", "--summary-sort-by", "--symbols", "--color"]),
        ("status", &["--attach"]),
    ] {
        let help = run(&["tracer", command, "--help"]);
        let title = format!(".SH \"TRACER {}\"\n", command.to_uppercase());
        let (_, part) = man.split_once(&title).unwrap_or_else(|| panic!("{title}"));
        let part = part.split(".SH \"TRACER").next().expect("a part");
        for option in options {
            assert!(help.contains(option) && part.contains(option), "{command} {option}");
        }
        assert!(part.contains(&format!("trapline tracer {command}")), "{part}");
    }
}

/// Under a limit of the address space a new thread gets no shadow stack: it runs on without, and its calls are counted.
#[test]
fn calls_of_threads_without_memory_are_counted() {
    let Some(program) = program() else { return };
    if !lab::has("prlimit") {
        return testkit::skip("package", "no prlimit");
    }
    let run = started(User::Me, &[&program, "later"]);
    let pid = run.pid();
    done(&tracer(pid, "enable", &["thread_checker", "-F", "draw"]));
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
    let size = status.lines().find_map(|l| l.strip_prefix("VmSize:")).expect("a size");
    let bytes = 1024 * size.trim().trim_end_matches(" kB").parse::<u64>().expect("a number");
    // The question needs 448 KB, and a thread 500.
    let limit = format!("--as={}", bytes + (464 << 10));
    assert!(Command::new("prlimit").args(["--pid", &pid.to_string(), &limit]).status().expect("prlimit").success());
    lab::kill("USR1", pid.into());
    lab::until("calls are missed", || tracer(pid, "status", &[]).stderr.contains("no memory"));
    let out = tracer(pid, "status", &["thread_checker"]);
    assert_eq!((out.code(), out.out().as_str()), (0, "thread_checker\tenabled\n"));
    let missed = out.stderr.strip_prefix(&format!("trapline: -p {pid}: ")).expect("a line");
    let (number, text) = missed.split_once(' ').expect("words");
    assert!(number.parse::<u64>().is_ok_and(|n| n > 0), "{missed}");
    assert!(
        text.ends_with("missed: no memory for their threads\n") || text.ends_with("no memory for its thread\n"),
        "{missed}"
    );
    assert_eq!(tracer(pid, "print", &["thread_checker"]).out(), "");
    end(run);
}
