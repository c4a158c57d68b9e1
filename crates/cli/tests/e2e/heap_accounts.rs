//! Who says what of a program's heap: the programs of `tests/programs/heap*` of themselves, valgrind, and `trapline heap`.
//!
//! They are compared by function: a block is one of the innermost function of its stack that the program's account has. What no
//! function of an account has allocated is libc's, and in no account; valgrind and trapline count it both.

use crate::lab::{self, Outcome, User};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The view of `report` that shows a trace's heap as one object, and that which shows events of any kind.
pub const HEAP: &str = "heap-json";
pub const EVENTS: &str = "json";

/// Blocks and their bytes.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Sum {
    pub blocks: u64,
    pub bytes: u64,
}

impl Sum {
    fn add(&mut self, other: Sum) {
        self.blocks += other.blocks;
        self.bytes += other.bytes;
    }
}

/// Of each function.
pub type Sums = BTreeMap<String, Sum>;

/// What is outstanding in the end and what was allocated and freed until then, whoever has done it.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Totals {
    pub outstanding: Sum,
    pub allocated: Sum,
    pub frees: u64,
}

/// A program of `tests/programs/heap*`.
pub struct Program {
    name: &'static str,
    compiler: &'static str,
    flags: &'static [&'static str],
}

const C: &[&str] = &["-O2", "-g", "-pthread"];
pub const PLAIN: Program = Program { name: "heap.c", compiler: "gcc", flags: C };
pub const THREADS: Program = Program { name: "heap_threads.c", compiler: "gcc", flags: C };
pub const SIGNALS: Program = Program { name: "heap_signals.c", compiler: "gcc", flags: C };
pub const PROCESSES: Program = Program { name: "heap_processes.c", compiler: "gcc", flags: C };
pub const CPP: Program = Program { name: "heap.cc", compiler: "g++", flags: &["-O2", "-g", "-pthread", "-std=c++17"] };
pub const RUST: Program =
    Program { name: "heap.rs", compiler: "rustc", flags: &["-O", "-g", "--edition=2024", "-Cforce-frame-pointers=no"] };

impl Program {
    /// Compiled as distributions do it, without frame pointers.
    #[track_caller]
    pub fn build(&self) -> Option<String> {
        self.linked("", &[])
    }

    /// Compiled with more flags, under a name of its own.
    #[track_caller]
    pub fn linked(&self, with: &str, more: &[&str]) -> Option<String> {
        let name = format!("{}{with}", self.name.replace('.', "_"));
        testkit::compile(self.compiler, &name, self.name, &[self.flags, more].concat())
    }
}

/// Gives a command what the scenarios need; the first word after the program is the scenario.
pub fn prepare<'c>(command: &'c mut Command, scenario: &str) -> &'c mut Command {
    if let Some(library) =
        testkit::compile("gcc", "heap_library.so", "heap_library.c", &["-O2", "-g", "-shared", "-fPIC"])
    {
        command.env("HEAP_LIBRARY", library);
    }
    if scenario == "statics" {
        command.env("HEAP_STATICS", "1");
    }
    command.env("RUST_BACKTRACE", "0")
}

/// What a program, or all processes of it, have said of themselves.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub struct Account {
    pub outstanding: Sums,
    pub allocated: Sums,
    /// What children have from their parents: those have it too.
    pub inherited: Sums,
    pub frees: u64,
    /// Functions of which it only says that what they have allocated is not their callers'.
    aside: Vec<String>,
}

impl Account {
    /// Reads what a program has printed.
    #[track_caller]
    pub fn of(printed: &str) -> Account {
        let mut all = Account::default();
        let sum = |blocks: &str, bytes: &str| {
            let [blocks, bytes] = [blocks, bytes].map(|n| n.parse().expect("a number"));
            Sum { blocks, bytes }
        };
        for line in printed.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["heap", function, "?", ..] => all.aside.push(function.into()),
                ["heap", function, blocks, bytes, allocations, allocated] => {
                    all.outstanding.entry(function.into()).or_default().add(sum(blocks, bytes));
                    all.allocated.entry(function.into()).or_default().add(sum(allocations, allocated));
                }
                ["inherited", function, blocks, bytes] => {
                    all.inherited.entry(function.into()).or_default().add(sum(blocks, bytes));
                }
                ["heap_frees", n] => all.frees += n.parse::<u64>().expect("a number"),
                _ => {}
            }
        }
        all
    }

    /// What valgrind has to find in all processes: inherited blocks are a child's own there.
    pub fn with_inherited(&self) -> Sums {
        let mut all = self.outstanding.clone();
        self.inherited.iter().for_each(|(function, sum)| all.entry(function.clone()).or_default().add(*sum));
        all
    }

    /// Everything it has, by nobody's count but its own.
    pub fn totals(&self) -> Totals {
        let sum = |of: &Sums| of.values().fold(Sum::default(), |mut all, s| (all.add(*s), all).1);
        Totals { outstanding: sum(&self.outstanding), allocated: sum(&self.allocated), frees: self.frees }
    }

    /// Sums of stacks by the functions of this account, those with nothing too.
    fn by_function<'a>(&self, stacks: impl Iterator<Item = (Vec<&'a str>, Sum)>) -> Sums {
        let mut all: Sums = self.outstanding.keys().map(|f| (f.clone(), Sum::default())).collect();
        for (names, sum) in stacks {
            let owner = names.iter().find_map(|name| {
                let mut known = self.outstanding.keys().chain(&self.aside);
                known.find(|f| is_called(name, f))
            });
            if let Some(sums) = owner.and_then(|f| all.get_mut(f)) {
                sums.add(sum);
            }
        }
        all
    }
}

/// Whether a tool's name of a function is that of an account, which has no arguments, no crate, no hash and no clone.
fn is_called(name: &str, function: &str) -> bool {
    let name = name.split_once(" [clone").map_or(name, |(n, _)| n);
    let name = name.split_once('(').map_or(name, |(n, _)| n);
    let name = name.rsplit_once("::h").filter(|(_, hash)| hash.len() == 16).map_or(name, |(n, _)| n);
    name == function || name.strip_prefix("heap::") == Some(function)
}

/// What valgrind says of a command, all processes together.
#[derive(Debug)]
pub struct Valgrind {
    pub outcome: Outcome,
    /// Of each process, those that only became another program among them.
    pub processes: Vec<Totals>,
    stacks: Vec<(Vec<String>, Sum)>,
}

impl Valgrind {
    /// Runs a command under it, once for all tests; none where there is no valgrind.
    #[track_caller]
    pub fn of(command: &[&str], environment: &[(&str, &str)]) -> Option<Arc<Valgrind>> {
        static RUNS: Mutex<BTreeMap<String, Arc<OnceLock<Arc<Valgrind>>>>> = Mutex::new(BTreeMap::new());
        if !lab::has("valgrind") {
            lab::skip("package:valgrind", "no valgrind to compare with");
            return None;
        }
        let key = format!("{command:?} {environment:?}");
        let run = RUNS.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default().clone();
        // Who comes second waits for the first.
        Some(run.get_or_init(|| Arc::new(Valgrind::run(command, environment))).clone())
    }

    fn run(command: &[&str], environment: &[(&str, &str)]) -> Valgrind {
        const OPTIONS: [&str; 11] = [
            "valgrind",
            "--leak-check=full",
            "--show-leak-kinds=all",
            "--leak-resolution=high",
            "--run-libc-freeres=no",
            "--run-cxx-freeres=no",
            "--trace-children=yes",
            "--num-callers=250",
            "--keep-debuginfo=yes",
            "--read-inline-info=yes",
            // Threads take turns.
            "--fair-sched=yes",
        ];
        let dir = lab::scratch();
        let log = format!("--log-file={}/%p", dir.display());
        let argv = [&OPTIONS[..], &[&log], command].concat();
        let mut run = lab::as_user(User::Me, &argv);
        let outcome = lab::run(prepare(&mut run, command.get(1).unwrap_or(&"")).envs(environment.iter().copied()));
        let (mut processes, mut stacks) = (Vec::new(), Vec::new());
        for log in lab::contents(&dir).values() {
            let log = String::from_utf8_lossy(log);
            processes.extend(totals(&log));
            records(&log, &mut stacks);
        }
        assert!(!processes.is_empty(), "{command:?}: valgrind said nothing: {}", outcome.stderr);
        Valgrind { outcome, processes, stacks }
    }

    /// What is outstanding, by the functions of an account.
    pub fn by_function(&self, account: &Account) -> Sums {
        account.by_function(self.stacks.iter().map(|(names, sum)| (names.iter().map(String::as_str).collect(), *sum)))
    }
}

/// The numbers of a line, without their commas.
fn numbers(line: &str) -> Vec<u64> {
    line.split([' ', '(']).filter_map(|w| w.trim_end_matches(',').replace(',', "").parse().ok()).collect()
}

/// The summary of a valgrind log.
fn totals(log: &str) -> Option<Totals> {
    let line = |what: &str| log.lines().find_map(|l| l.split_once(what).map(|(_, rest)| numbers(rest)));
    let (at_exit, usage) = (line("in use at exit:")?, line("total heap usage:")?);
    let (&[bytes, blocks], &[allocations, frees, allocated]) = (&at_exit[..], &usage[..]) else { return None };
    let (outstanding, allocated) = (Sum { blocks, bytes }, Sum { blocks: allocations, bytes: allocated });
    Some(Totals { outstanding, allocated, frees })
}

/// The loss records of a valgrind log: names of functions, innermost first, and what was allocated there.
fn records(log: &str, into: &mut Vec<(Vec<String>, Sum)>) {
    let mut open = false;
    for line in log.lines() {
        let Some((_, text)) = line.strip_prefix("==").and_then(|l| l.split_once("== ")) else { continue };
        if text.contains(" in loss record ") {
            // `4,096 (96 direct, 4,000 indirect) bytes in 1 blocks are …`: the direct ones are its own.
            let all = numbers(text);
            let (bytes, blocks) = if text.contains(" direct,") { (all[1], all[3]) } else { (all[0], all[1]) };
            into.push((Vec::new(), Sum { blocks, bytes }));
            open = true;
        } else if let Some((_, frame)) = text.trim_start().split_once(": ").filter(|_| open && text.contains(" 0x")) {
            let name = frame.rsplit_once(" (").map_or(frame, |(name, _)| name);
            into.last_mut().expect("a record").0.push(name.into());
        } else {
            open = false;
        }
    }
}

/// What `trapline heap` shows.
pub struct Shown {
    pub outcome: Outcome,
    pub json: Value,
}

impl Shown {
    /// Runs a command under it, with options of its own.
    #[track_caller]
    pub fn of(user: User, options: &[&str], command: &[&str], environment: &[(&str, &str)]) -> Shown {
        let dir = lab::scratch();
        let file = dir.join("heap.json");
        let view = format!("json={}", file.display());
        let argv = [&["heap", "-q", "--as", &view][..], options, &["--"], command].concat();
        let mut run = lab::trapline(user, &argv);
        let outcome = lab::run(prepare(&mut run, command.get(1).unwrap_or(&"")).envs(environment.iter().copied()));
        Shown { json: read(&file, &outcome), outcome }
    }

    /// What the whole has: as many frees as it needs for what is outstanding of what was allocated.
    #[track_caller]
    pub fn totals(&self) -> Totals {
        let summary = &self.json;
        let [outstanding, allocated] = ["outstanding", "total"].map(|key| sum_of(&summary[key]));
        assert_eq!(number(&summary["lost"]), 0, "{summary}");
        Totals { outstanding, allocated, frees: allocated.blocks - outstanding.blocks }
    }

    /// What is outstanding, by the functions of an account.
    #[track_caller]
    pub fn outstanding(&self, account: &Account) -> Sums {
        by_function(&self.json, "outstanding", account)
    }

    /// What was allocated.
    #[track_caller]
    pub fn allocated(&self, account: &Account) -> Sums {
        by_function(&self.json, "total", account)
    }
}

#[track_caller]
fn read(file: &Path, outcome: &Outcome) -> Value {
    let text = fs::read(file).unwrap_or_else(|e| panic!("no JSON: {e}; {}", outcome.stderr));
    serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&text)))
}

#[track_caller]
pub fn number(of: &Value) -> u64 {
    of.as_u64().unwrap_or_else(|| panic!("no number: {of}"))
}

/// `{bytes, blocks}` of a JSON document.
#[track_caller]
pub fn sum_of(value: &Value) -> Sum {
    Sum { blocks: number(&value["blocks"]), bytes: number(&value["bytes"]) }
}

/// The functions of a stack of a JSON document, innermost first, inlined ones too.
pub fn functions(stack: &Value) -> Vec<&str> {
    stack["frames"].as_array().into_iter().flatten().map(|f| f["function"].as_str().unwrap_or("?")).collect()
}

/// A sum of the `stacks` of a JSON document (`outstanding`, `total`), by the functions of an account.
#[track_caller]
pub fn by_function(json: &Value, key: &str, account: &Account) -> Sums {
    let stacks = json["stacks"].as_array().expect("stacks");
    account.by_function(stacks.iter().map(|s| (functions(s), sum_of(&s[key]))))
}

/// The heap of a trace.
#[track_caller]
pub fn heap_of(trace: &str) -> Value {
    let out = lab::run(&mut lab::trapline(User::Me, &["report", "-q", "--as", HEAP, trace]));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    serde_json::from_str(&out.out()).unwrap_or_else(|e| panic!("{e}: {}", out.out()))
}

/// Runs a command bare.
#[track_caller]
pub fn bare(user: User, command: &[&str], environment: &[(&str, &str)]) -> Outcome {
    let mut run = lab::as_user(user, command);
    lab::run(prepare(&mut run, command.get(1).unwrap_or(&"")).envs(environment.iter().copied()))
}

#[test]
fn accounts_and_logs_are_read() {
    let account =
        Account::of("begin\nheap f 1 10 2 30\nheap B::B 0 0 1 5\nheap f 1 1 1 1\nheap g ? ? ? ?\nheap_frees 2\n");
    assert_eq!(account.outstanding["f"], Sum { blocks: 2, bytes: 11 });
    assert_eq!(account.totals().allocated, Sum { blocks: 4, bytes: 36 });
    let log = "==7== HEAP SUMMARY:\n==7==     in use at exit: 1,011 bytes in 4 blocks\n\
        ==7==   total heap usage: 1,004 allocs, 2 frees, 36 bytes allocated\n==7== \n\
        ==7== 1,000 (96 direct, 904 indirect) bytes in 2 blocks are definitely lost in loss record 1 of 2\n\
        ==7==    at 0x1: malloc (in /x/vgpreload.so)\n==7==    by 0x2: f(int (*)(long)) [clone .cold] (a.cc:3)\n==7== \n\
        ==7== 5 bytes in 1 blocks are still reachable in loss record 2 of 2\n==7==    at 0x1: malloc (in /x)\n\
        ==7==    by 0x2: g (a.c:1)\n==7==    by 0x2: f (a.c:1)\n==7== \n==7== LEAK SUMMARY:\n";
    let totals = totals(log).expect("a summary");
    assert_eq!((totals.outstanding, totals.frees), (Sum { blocks: 4, bytes: 1011 }, 2));
    assert_eq!(totals.allocated, Sum { blocks: 1004, bytes: 36 });
    let mut stacks = Vec::new();
    records(log, &mut stacks);
    let stacks = stacks.iter().map(|(names, sum)| (names.iter().map(String::as_str).collect(), *sum));
    let sums = account.by_function(stacks);
    assert_eq!((sums["f"], sums["B::B"]), (Sum { blocks: 2, bytes: 96 }, Sum::default()));
    let json: Value = serde_json::from_str(
        r#"{"stacks":[{"outstanding":{"bytes":7,"blocks":1},"frames":[{"function":"malloc"},{"function":"f"},{"function":"B::B"}]},
            {"outstanding":{"bytes":2,"blocks":2},"frames":[{"module":"x"},{"function":"g"},{"function":"f"}]}]}"#,
    )
    .expect("JSON");
    let sums = by_function(&json, "outstanding", &account);
    assert_eq!((sums["f"], sums["B::B"]), (Sum { blocks: 1, bytes: 7 }, Sum::default()));
    assert!(
        is_called("heap::f::h0123456789abcdef", "f")
            && is_called("B::B(unsigned long)", "B::B")
            && !is_called("ff", "f")
    );
}
