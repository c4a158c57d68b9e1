//! The programs of the hazard suite, attached to while they run and detached from again: what they print, how they end and what they write is
//! what an untraced run prints.
//!
//! A program waits until a FIFO is closed, so that the first session has begun when the scenario does, and ends in the middle of it. A scenario
//! that can be repeated runs many times in its process, while trapline comes and goes. Moments are random, from a seed.

use crate::hazards::{CPP, PROCESSES, Program, RUST, SIGNALS, STACKS, files, prepare};
use crate::lab::{self, Outcome, Running, User};
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use testkit::Random;

/// How long a program runs at least without trapline, so that trapline meets it: there is no use in attaching to what has ended.
const LONG: Duration = Duration::from_millis(400);
/// [`LONG`] for recursion 100,000 calls deep, which takes a hundred times as long with recorded calls.
const LONG_OVERFLOWING: Duration = Duration::from_millis(50);
/// The most rounds of a scenario.
const MOST: u32 = 1 << 16;

fn command(dir: &Path, built: &str, scenario: &str, rounds: u32) -> Command {
    let mut command = lab::as_user(User::Me, &[built, scenario]);
    prepare(&mut command, dir).env("HAZARDS_ROUNDS", rounds.to_string());
    command
}

/// A run without trapline that takes its time, and how many rounds that were.
fn bare(dir: &Path, built: &str, scenario: &str, once: bool) -> (Outcome, u32) {
    let mut rounds = 1;
    let long = if scenario == "stack_overflow" { LONG_OVERFLOWING } else { LONG };
    loop {
        let since = Instant::now();
        let out = lab::run(&mut command(dir, built, scenario, rounds));
        let took = since.elapsed();
        if once || took > long || rounds >= MOST {
            return (out, rounds);
        }
        // A little more than that, if the start of the process takes no time: a few runs find the number.
        let wanted = u128::from(rounds) * 5 * long.as_micros() / (4 * took.as_micros().max(1));
        rounds = wanted.clamp(u128::from(rounds) + 1, MOST.into()) as u32;
    }
}

/// Comes and goes once: a session, or a tracer. The process may end at any moment.
fn visit(pid: u32, random: &mut Random) {
    let pid = pid.to_string();
    let duration = format!("0.{:03}", 1 + random.below(150));
    let commands: &[&[&str]] = if random.below(4) == 0 {
        &[&["tracer", "enable", "-p", &pid, "count"], &["tracer", "disable", "-p", &pid, "count"]]
    } else {
        &[&["graph", "-q", "-p", &pid, "--as", "functions", "--duration", &duration]]
    };
    for command in commands {
        lab::run(&mut lab::trapline(User::Me, command));
    }
}

struct Fifo(PathBuf);

impl Fifo {
    fn new(dir: &Path) -> Fifo {
        let path = dir.join("fifo");
        let made = Command::new("mkfifo").arg(&path).status().expect("mkfifo");
        assert!(made.success());
        Fifo(path)
    }

    /// Waits until the program is about to begin, and has it begin when what this returns is dropped.
    fn opened(&self) -> fs::File {
        OpenOptions::new().write(true).open(&self.0).expect("a FIFO")
    }
}

/// Runs a scenario bare and attached to, and compares. `once`: its process ends by it.
#[track_caller]
fn same(program: &Program, scenario: &str, once: bool) {
    if !lab::may_attach(User::Me) {
        return;
    }
    let Some(built) = program.build("shared", &[]) else { return };
    let dir = lab::scratch();
    let fifo = Fifo::new(&dir);
    let mut random = Random::new(scenario.bytes().map(u64::from).sum());
    let (bare, rounds) = bare(&dir, &built, scenario, once);
    let (bare_files, _) = files(&dir.join("w"));
    for _ in 0..crate::injected::rounds(if once { 3 } else { 1 }) {
        let mut command = command(&dir, &built, scenario, rounds);
        let child = command.env("HAZARDS_FIFO", &fifo.0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut run = lab::start_with(child.expect("it starts"));
        let begins = fifo.opened();
        let first = attached(run.pid(), &mut random);
        drop(begins);
        if !once {
            // A thread that stays where bytes would change is an answer.
            let first = first.end();
            assert!([0, 125].contains(&first.code()), "{}: {}", first.code(), first.stderr);
            while run.child.try_wait().expect("wait").is_none() {
                visit(run.pid(), &mut random);
                std::thread::sleep(Duration::from_millis(random.below(30)));
            }
        }
        let out = run.end();
        let what = (&built, scenario, rounds);
        assert_eq!((out.code(), out.out(), &out.stderr), (bare.code(), bare.out(), &bare.stderr), "{what:?}");
        assert_eq!(files(&dir.join("w")).0, bare_files, "{what:?}");
    }
    let _ = fs::remove_dir_all(dir);
}

/// A session that has begun, and ends by itself or with the process.
fn attached(pid: u32, random: &mut Random) -> Running {
    let duration = format!("0.{:03}", 1 + random.below(250));
    let text = pid.to_string();
    let mut session = lab::start(
        lab::trapline(User::Me, &["graph", "-q", "-p", &text, "--as", "functions", "--duration", &duration])
            .stdout(Stdio::null())
            .stderr(Stdio::piped()),
    );
    let maps = || fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    lab::until("it is attached to", || {
        // A short one may have come and gone, and one that could not patch has said so.
        session.child.try_wait().expect("wait").is_some()
            || maps().contains("memfd:trapline-agent") && lab::tracer_of(pid) == 0
    });
    session
}

macro_rules! attached {
    ($module:ident, $program:expr, $($test:ident $name:literal),* $(,)?) => {
        mod $module {
            $(#[test] fn $test() {
                super::same(&$program, $name, $name.starts_with(|c: char| c.is_ascii_uppercase()));
            })*
        }
    };
}

attached! { stacks, super::STACKS,
    calls "calls", longjmps "longjmps", tail_calls "tail_calls", long_tail_calls "long_tail_calls",
    leaving_threads "leaving_threads", asynchronous_cancel "asynchronous_cancel", sixty_four_threads "sixty_four_threads",
    stacks_that_go "stacks_that_go",
    small_stacks "small_stacks", thread_destructors "thread_destructors", coroutines "coroutines", setcontexts "setcontexts",
    registers "registers", nested_functions "nested_functions", other_conventions "other_conventions", callbacks "callbacks",
    backtraces "backtraces", modules "modules", next_symbol "next_symbol", exit_handlers "Exit_handlers",
}

attached! { signals, super::SIGNALS,
    timer_of_50_us "timer_of_50_us", timer_of_10_khz "timer_of_10_khz", timer_and_threads "timer_and_threads",
    small_signal_stack "small_signal_stack", jumps_out_of_handlers "jumps_out_of_handlers",
    jumps_out_of_a_timer "jumps_out_of_a_timer", jumps_off_another_stack "jumps_off_another_stack",
    setcontext_in_a_handler "setcontext_in_a_handler", stack_overflow "stack_overflow", dies_of_overflow "Dies_of_overflow",
    actions "actions", masks_in_handlers "masks_in_handlers", changed_masks "changed_masks", breakpoints "breakpoints",
    interrupted "interrupted", other_ways "other_ways", children_that_signal "children_that_signal",
    nested_handlers "nested_handlers", storm "storm", killed "Killed", aborted "Aborted",
}

attached! { processes, super::PROCESSES,
    forks "forks", fork_inside_of_calls "fork_inside_of_calls", forks_of_forks "forks_of_forks",
    forks_in_threads "forks_in_threads", threads_in_forks "threads_in_forks", vforks "vforks", spawns "spawns", chain "Chain",
    exec_in_a_thread "Exec_in_a_thread", few_resources "few_resources", closed_descriptors "closed_descriptors",
    another_user "another_user", clones "clones", environment "environment", seccomp_strict "Seccomp_strict",
    seccomp_kill "Seccomp_kill", seccomp_kill_by_syscall "Seccomp_kill_by_syscall", seccomp_refuse "Seccomp_refuse",
    seccomp_signals "Seccomp_signals",
}

attached! { cpp, super::CPP,
    exceptions "exceptions", deep_exceptions "deep_exceptions", rethrown "rethrown", while_unwinding "while_unwinding",
    across_threads "across_threads", through_c "through_c", through_handlers "through_handlers",
    across_libraries "across_libraries", coroutines "coroutines", thunks "thunks", thread_storage "thread_storage",
    statics "statics", uncaught "Uncaught", not_allowed "Not_allowed", terminated "Terminated",
}

attached! { rust, super::RUST,
    panics "panics", resumed_panics "resumed_panics", panics_while_unwinding "panics_while_unwinding",
    panics_of_threads "panics_of_threads", backtraces "backtraces", backtraces_of_panics "backtraces_of_panics",
    futures "futures", channels "channels", children "children", panic_message "Panic_message",
    aborting_panic "Aborting_panic", unwinds_main "Unwinds_main",
}

/// Handlers that the program has set by a `syscall` instruction of its own, before a session comes, and which a timer calls within any instruction.
#[test]
fn handlers_that_libc_has_not_set() {
    if !lab::may_attach(User::Me) {
        return;
    }
    let flags = ["-O2", "-fnon-call-exceptions", "-DOWN_INSTRUCTION", "-DTICKS=20000"];
    let Some(built) = testkit::compile("g++", "handlers_by_own_call", "handlers_by_number.cc", &flags) else { return };
    let dir = lab::scratch();
    let mut command = lab::as_user(User::Me, &[&built]);
    let target = lab::start(command.stdout(Stdio::piped()));
    let pid = target.pid().to_string();
    // The timer is the last thing that it sets.
    lab::until("its handler", || {
        lab::status_field(target.pid(), "SigCgt")
            .is_some_and(|set| u64::from_str_radix(&set, 16).is_ok_and(|s| s >> 13 & 1 == 1))
    });
    for round in 0..3 {
        let trace = dir.join(round.to_string()).display().to_string();
        let args = ["graph", "-q", "--on-full", "block", "--duration", "0.1", "-p", &pid, "-o", &trace];
        let out = lab::run(&mut lab::trapline(User::Me, &args));
        assert_eq!(out.code(), 0, "{}", out.stderr);
    }
    let out = target.end();
    assert_eq!((out.code(), out.out().lines().last()), (0, Some("caught 10, 1 1 1, right")), "{}", out.stderr);
}
