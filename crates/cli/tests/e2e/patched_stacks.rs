//! Stacks of samples while all functions of the program are traced: each is whole, and has only callers that the untraced program has.

use crate::kernel::possible;
use crate::lab::User;
use crate::record::{Recorded, record};
use serde_json::Value;
use testkit::compile;

/// A way to spend time.
struct Way {
    name: &'static str,
    /// What takes long enough for some hundred samples.
    rounds: &'static str,
    /// Who calls whom.
    calls: &'static [(&'static str, &'static str)],
}

const WAYS: &[Way] = &[
    Way { name: "fib", rounds: "3000", calls: &[("fib", "fib"), ("works", "fib")] },
    Way { name: "sort", rounds: "300", calls: &[("works", "sort")] },
    Way {
        name: "throw",
        rounds: "3000",
        calls: &[("works", "catcher"), ("catcher", "thrower"), ("thrower", "thrower"), ("catcher", "spin")],
    },
    // Tail calls: each of the functions returns to `works`, which is the caller of all of them.
    Way {
        name: "tail",
        rounds: "400000",
        calls: &[("works", "tail"), ("works", "middle"), ("works", "last"), ("works", "spin")],
    },
    Way {
        name: "jump",
        rounds: "60000",
        calls: &[("works", "lands"), ("lands", "jumper"), ("jumper", "jumper"), ("lands", "spin")],
    },
    Way { name: "deep", rounds: "8000", calls: &[("works", "deep"), ("deep", "deep"), ("deep", "spin")] },
    Way { name: "signal", rounds: "3000", calls: &[("fib", "fib"), ("works", "fib"), ("handler", "spin")] },
    Way { name: "threads", rounds: "1000", calls: &[("fib", "fib"), ("works", "fib")] },
];

#[track_caller]
fn program() -> Option<String> {
    compile("g++", "patched", "patched.cc", &["-O2", "-fomit-frame-pointer", "-pthread", "-Wno-infinite-recursion"])
}

/// Where stacks end that are whole: the program's first function, and that of a thread.
const OUTERMOST: [&str; 3] = ["_start", "clone3", "__clone3"];

/// A stack, innermost frame first.
struct Stack {
    /// Functions of the program's own; none for frames of others.
    own: Vec<Option<String>>,
    is_whole: bool,
}

impl Stack {
    fn has(&self, function: &str) -> bool {
        self.own.iter().flatten().any(|f| f == function)
    }
}

/// The stacks of samples from the first to the last one within `works`: before, the kernel may not know yet what is mapped.
#[track_caller]
fn stacks(r: &Recorded, program: &str, event: &str) -> Vec<Stack> {
    let out = r.report(&["-q", "-e", event, "--as", "json"]);
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let of = |line: &str| -> Option<Stack> {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        let frames = event["ustack"].as_array()?.iter().filter(|f| f["inlined"] != true);
        let names: Vec<(&str, bool)> =
            frames.map(|f| (f["function"].as_str().unwrap_or("?"), f["module"] == program)).collect();
        let is_whole = names.last().is_some_and(|last| OUTERMOST.contains(&last.0));
        let own = |(name, is_own): &(&str, bool)| is_own.then(|| name.trim_end_matches(".cold").to_string());
        Some(Stack { own: names.iter().map(own).collect(), is_whole })
    };
    let all: Vec<Stack> = out.out().lines().filter_map(of).collect();
    let first = all.iter().position(|s| s.has("works")).unwrap_or(all.len());
    let last = all.iter().rposition(|s| s.has("works")).map_or(first, |last| last + 1);
    all.into_iter().take(last).skip(first).collect()
}

/// Takes samples of each way, with these options.
#[track_caller]
fn sampled(user: User, options: &[&str]) {
    let Some(program) = program() else { return };
    let (mut good, mut all) = (0, 0);
    for Way { name, rounds, calls } in WAYS {
        let options = [&["-e", "function:*", "-e", "profile:hz:4999 ustack"], options].concat();
        let r = record(user, &options, &[&program, name, rounds]);
        assert_eq!(r.outcome.code(), 0, "{name}: {}", r.outcome.stderr);
        let stacks = stacks(&r, &program, "profile:hz:4999");
        assert!(stacks.len() > 20, "{name}: {}", r.stats);
        good += stacks.iter().filter(|s| s.is_whole).count();
        all += stacks.len();
        for pair in stacks.iter().flat_map(|s| s.own.windows(2)) {
            let [Some(callee), Some(caller)] = pair else { continue };
            // Functions of libraries are called by way of stubs of the linker.
            let is_stub = callee.ends_with("@plt");
            let is_known = is_stub || calls.contains(&(caller, callee)) || callee == "works" && caller == "main";
            let is_start = ["main", "_start", "on_a_stack_of_its_own"].contains(&caller.as_str());
            assert!(is_known || is_start, "{name}: {caller} does not call {callee}");
        }
    }
    assert!(good * 1000 >= all * 995, "{good} of {all} stacks are whole");
}

// Slow: eight kinds of programs are sampled.
#[test]
fn samples_of_the_kernel_are_whole() {
    if possible() {
        sampled(User::Kernel, &[]);
    }
}

/// When a copy is walked, the calls that it shows have returned: records say from where they were called. There is room for all, on a busy
/// machine, too.
// Slow: eight kinds of programs are sampled.
#[test]
fn copied_samples_are_whole() {
    if possible() {
        sampled(User::Me, &["--backend", "perf", "--buffer", "64M"]);
    }
}

/// Samples beside calls, which the ptracer traces.
// Slow: eight kinds of programs are sampled, under the ptracer.
#[test]
fn copied_samples_beside_calls_are_whole() {
    if possible() {
        sampled(User::Me, &["--backend", "ptrace", "-e", "write", "--buffer", "64M"]);
    }
}

/// Samples of two functions that are called at the same place of the stack, each by its own caller: how many callers are known, which are the
/// right ones, and how many stacks are whole.
#[track_caller]
fn turns(rounds: &str, buffer: &[&str]) -> Option<(Recorded, usize, usize)> {
    let program = compile("gcc", "turns", "turns.c", &["-O1", "-fno-inline"])?;
    let options = [&["--backend", "perf", "-e", "function:*", "-e", "profile:hz:1999 ustack"], buffer].concat();
    let r = record(User::Me, &options, &[&program, rounds]);
    assert_eq!(r.outcome.code(), 0, "{}", r.outcome.stderr);
    let out = r.report(&["-q", "-e", "profile:hz:1999", "--as", "json"]).out();
    let (mut known, mut whole) = (0, 0);
    for event in out.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let Some(frames) = event["ustack"].as_array() else { continue };
        let names: Vec<&str> = frames.iter().filter_map(|f| f["function"].as_str()).collect();
        whole += usize::from(names.last() == Some(&"_start"));
        for pair in names.windows(2) {
            let wanted = match pair[0] {
                "left" => "of_left",
                "right" => "of_right",
                "of_left" | "of_right" => "main",
                _ => continue,
            };
            assert_eq!(pair[1], wanted, "{names:?}");
            known += 1;
        }
    }
    Some((r, known, whole))
}

/// Each sample has the callers of its time, and of none before or after it.
#[test]
fn callers_are_those_of_the_sample() {
    let Some((r, known, whole)) = turns("100000", &["--buffer", "256M"]).filter(|_| possible()) else { return };
    assert_eq!(r.stats["probes"]["function:entry"]["dropped"], 0, "{}", r.stats);
    assert!(known > 50 && whole > 50, "{known} callers, {whole} stacks: {}", r.stats);
}

/// Where records were lost, callers are not guessed.
#[test]
fn what_is_lost_gives_no_caller() {
    let Some((r, known, _)) = turns("1000000", &["--buffer", "256K"]).filter(|_| possible()) else { return };
    assert!(known > 20, "{known} callers: {}", r.stats);
    let why = r.stats["stacks"]["ended"]["where a traced function was called from is not known"].as_u64();
    assert!(why.is_some_and(|n| n > 0), "{}", r.stats);
}
