//! User stacks of programs that come and go, by tables that the unwinder of the kernel backend keeps while they run.

mod sampler;

use kernel::unwinder::{Counts, Handle, Room, Target, Unwinder};
use sampler::{Sample, Sampler};
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use sys::btf::KernelBtf;
use sys::perf::attach::Rate;
use testkit::skip;
use unwind::Ended;

/// One test at a time: each measures.
static ALONE: Mutex<()> = Mutex::new(());
/// The group of the programs that are sampled.
const GROUP: u32 = 54_321;
const RATE: Rate = Rate::Hz(997);

/// What a test runs with.
struct Stage {
    btf: KernelBtf,
    unwinder: Option<Unwinder>,
    _alone: MutexGuard<'static, ()>,
}

#[track_caller]
fn start(room: Room) -> Option<Stage> {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    if sys::process::euid() != 0 {
        skip("root", "bpf(2) needs privilege");
        return None;
    }
    let _ = sys::bpf::raise_memory_limit();
    let btf = KernelBtf::kernel().unwrap();
    if let Err(why) = Unwinder::possible(&btf) {
        skip("vm", &why);
        return None;
    }
    let began = Instant::now();
    let unwinder = Unwinder::new(&btf, room).unwrap();
    eprintln!("made in {:?}", began.elapsed());
    Some(Stage { btf, unwinder: Some(unwinder), _alone: alone })
}

impl Stage {
    fn watch(&mut self, target: Target) {
        self.unwinder.as_mut().unwrap().watch(target);
    }

    fn run(&mut self, group: Option<u32>) -> (Sampler, Handle) {
        let unwinder = self.unwinder.take().unwrap();
        let sampler = Sampler::start(&unwinder, &self.btf, group, RATE);
        (sampler, unwinder.run().unwrap())
    }
}

/// A child that is killed.
struct Running(Child);

impl Running {
    fn start(program: &str, args: &[&str]) -> Option<Running> {
        let mut command = Command::new(program);
        command.args(args).gid(GROUP).process_group(0).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().ok().map(Running)
    }

    fn is_there(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["-9", "--", &group]).status();
        let _ = self.0.wait();
    }
}

/// Samples until a time has passed or the child has ended.
fn sample(sampler: &mut Sampler, child: &mut Running, lasts: Duration) -> Vec<Sample> {
    let began = Instant::now();
    let mut samples = Vec::new();
    while began.elapsed() < lasts && child.is_there() {
        std::thread::sleep(Duration::from_millis(5));
        samples.extend(sampler.take());
    }
    samples.extend(sampler.take());
    samples
}

/// The longest wait for samples on a machine that others keep busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// This many samples of what `of` is true for; fewer where the child ends, or after [`PATIENCE`].
fn sample_some(sampler: &mut Sampler, child: &mut Running, n: usize, of: impl Fn(&Sample) -> bool) -> Vec<Sample> {
    let began = Instant::now();
    let mut samples: Vec<Sample> = Vec::new();
    while samples.len() < n && began.elapsed() < PATIENCE && child.is_there() {
        std::thread::sleep(Duration::from_millis(5));
        samples.extend(sampler.take().into_iter().filter(&of));
    }
    samples
}

/// Waits until what is mapped is built: samples are whole.
fn settle(sampler: &mut Sampler, child: &mut Running) {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let some = sample_some(sampler, child, 200, |_| true);
        if some.iter().filter(|s| s.ended == Ended::Outermost).count() * 100 >= some.len() * 97 {
            return;
        }
    }
}

/// The share of whole stacks in percent; with a table of the others.
fn whole(what: &str, samples: &[Sample], counts: &Counts) -> f64 {
    let mut others: BTreeMap<(Ended, bool), (u64, BTreeMap<String, u64>)> = BTreeMap::new();
    let mut good = 0;
    // Those that there are: while a process executes a program, and in its end, it has none.
    let some = samples.iter().filter(|s| s.ended != Ended::NoMemory).count();
    for s in samples {
        if s.ended == Ended::Outermost {
            good += 1;
        } else {
            let other = others.entry((s.ended, s.exiting)).or_default();
            other.0 += 1;
            *other.1.entry(format!("{} {}", s.comm, s.frames.len())).or_default() += 1;
        }
    }
    let share = 100.0 * good as f64 / some.max(1) as f64;
    eprintln!("{what}: {good} of {some} whole ({share:.2} %), {} samples", samples.len());
    for ((ended, exiting), (n, comms)) in others {
        eprintln!("  {n} {ended:?}{}: {comms:?}", if exiting { " while it ends" } else { "" });
    }
    eprintln!("  {counts:?}");
    eprintln!("  half of the changes within {} µs, 99 % within {} µs", counts.delay(50), counts.delay(99));
    share
}

const PYTHON: &str = "/usr/bin/python3";
/// A python that calls itself until it is killed.
const SPIN: &str = "def f(n):\n    return f(n - 1) + 1 if n else len(str([n] * 50))\nwhile True:\n    f(30)\n";

/// Programs that last for milliseconds: shells start them, fork, and become them.
// Slow: many short programs run one after the other.
#[test]
fn short_programs_are_whole_from_their_beginning() {
    let Some(mut stage) = start(Room::SOME) else { return };
    stage.watch(Target::Children);
    let (mut sampler, mut handle) = stage.run(Some(GROUP));
    let script = format!("i=0; while [ $i -lt 250 ]; do {PYTHON} -c pass; i=$((i+1)); done");
    let Some(mut child) = Running::start("sh", &["-c", &script]) else { return skip("package:python3", "no sh") };
    let samples = sample(&mut sampler, &mut child, Duration::from_secs(20));
    handle.stop();
    let share = whole("a loop of pythons", &samples, &handle.counts());
    assert!(samples.len() > 500);
    assert!(share >= 95.0, "{share}");
}

/// One short program, which nobody has run before: its tables are built while the session begins.
#[test]
fn the_first_program_is_whole_too() {
    let Some(mut stage) = start(Room::SOME) else { return };
    stage.watch(Target::Children);
    stage.unwinder.as_mut().unwrap().expect(PYTHON.as_ref());
    let (mut sampler, mut handle) = stage.run(Some(GROUP));
    // What a session does before its command begins.
    std::thread::sleep(Duration::from_millis(50));
    let script = "import json, argparse, subprocess, asyncio";
    let Some(mut child) = Running::start(PYTHON, &["-c", script]) else { return skip("package:python3", "no python3") };
    let samples = sample(&mut sampler, &mut child, Duration::from_secs(5));
    handle.stop();
    let share = whole("one python", &samples, &handle.counts());
    assert!(samples.len() > 10);
    assert!(share >= 90.0, "{share}");
}

/// Children of children, each of which does little.
#[test]
fn a_storm_of_forks_is_followed() {
    let Some(mut stage) = start(Room::SOME) else { return };
    stage.watch(Target::Children);
    let (mut sampler, mut handle) = stage.run(Some(GROUP));
    // The tables of its modules are built before: the forks are measured, not the builders beside a storm.
    let Some(mut first) = Running::start("sh", &["-c", "while :; do :; done"]) else {
        return skip("package:dash", "no sh");
    };
    settle(&mut sampler, &mut first);
    drop(first);
    sampler.take();
    let script = "i=0; while [ $i -lt 3000 ]; do ( ( : ) & ( : ) ); i=$((i+1)); done; wait";
    let Some(mut child) = Running::start("sh", &["-c", script]) else { return skip("package:dash", "no sh") };
    let samples = sample(&mut sampler, &mut child, Duration::from_secs(20));
    handle.stop();
    let share = whole("forks", &samples, &handle.counts());
    assert!(samples.len() > 300);
    assert!(share >= 95.0, "{share}");
    let counts = handle.counts();
    assert_eq!((counts.lost, counts.no_room), (0, 0));
}

/// A library that is mapped while the program runs.
#[test]
fn libraries_are_known_when_they_are_mapped() {
    let Some(mut stage) = start(Room::SOME) else { return };
    stage.watch(Target::Children);
    let (mut sampler, mut handle) = stage.run(Some(GROUP));
    let script = "import ctypes\nz = ctypes.CDLL('libz.so.1')\nb = b'x' * 300000\nwhile True: z.crc32(0, b, len(b))";
    let Some(mut child) = Running::start(PYTHON, &["-c", script]) else { return skip("package:python3", "no python3") };
    sample_some(&mut sampler, &mut child, 100, |_| true);
    let maps = sys::maps::of(child.0.id() as i32).unwrap_or_default();
    let code = maps.iter().find(|m| m.prot & 4 != 0 && m.path.windows(7).any(|w| w == b"libz.so"));
    let Some(code) = code else { return skip("package:zlib1g", "no libz.so.1") };
    let inside = |s: &Sample| s.frames.first().is_some_and(|f| (code.range.0..code.range.1).contains(&f.address()));
    // Not those while it is built.
    settle(&mut sampler, &mut child);
    let inside = sample_some(&mut sampler, &mut child, 501, inside);
    handle.stop();
    let share = whole("a library mapped late", &inside, &handle.counts());
    assert!(inside.len() > 500 && share >= 99.0, "{} {share}", inside.len());
    assert!(inside.iter().all(|s| s.frames.len() > 5));
}

/// The kernel could not write what has happened: then it is read.
#[test]
fn lost_records_are_made_up_for() {
    let Some(mut stage) = start(Room::SOME) else { return };
    stage.watch(Target::Children);
    // Nobody reads the rings yet.
    let script = "i=0; while [ $i -lt 20000 ]; do ( : ); i=$((i+1)); done";
    let Some(mut storm) = Running::start("sh", &["-c", script]) else { return skip("package:dash", "no sh") };
    storm.0.wait().unwrap();
    let Some(mut child) = Running::start(PYTHON, &["-c", SPIN]) else { return skip("package:python3", "no python3") };
    std::thread::sleep(Duration::from_millis(200));
    let (mut sampler, mut handle) = stage.run(Some(GROUP));
    for _ in 0..50 {
        // The kernel says so with the next record of each CPU.
        let _ = Command::new("true").status();
    }
    std::thread::sleep(Duration::from_millis(300));
    sampler.take();
    let samples = sample_some(&mut sampler, &mut child, 300, |_| true);
    handle.stop();
    let share = whole("after a loss", &samples, &handle.counts());
    assert!(handle.counts().lost > 0 && handle.counts().snapshots > 0);
    assert!(samples.len() > 200 && share >= 99.0, "{share}");
}

/// A process that runs already.
#[test]
fn a_process_that_runs_is_read() {
    let Some(mut stage) = start(Room::SOME) else { return };
    let Some(mut child) = Running::start(PYTHON, &["-c", SPIN]) else { return skip("package:python3", "no python3") };
    std::thread::sleep(Duration::from_millis(200));
    stage.watch(Target::Process(child.0.id()));
    let (mut sampler, mut handle) = stage.run(Some(GROUP));
    // It is read, and its modules are built.
    std::thread::sleep(Duration::from_millis(300));
    sampler.take();
    settle(&mut sampler, &mut child);
    let samples = sample_some(&mut sampler, &mut child, 501, |_| true);
    handle.stop();
    let share = whole("a process that runs", &samples, &handle.counts());
    assert!(samples.len() > 500 && samples.iter().all(|s| s.pid == child.0.id()));
    assert!(share >= 95.0, "{share}");
    assert_eq!(handle.counts().snapshots, 1);
}

/// The whole machine: what runs, what begins, and code that a program makes.
#[test]
fn the_whole_machine_is_followed() {
    let Some(mut stage) = start(Room::machine()) else { return };
    let Some(_before) = Running::start(PYTHON, &["-c", SPIN]) else { return skip("package:python3", "no python3") };
    std::thread::sleep(Duration::from_millis(200));
    stage.watch(Target::Machine);
    let (mut sampler, mut handle) = stage.run(Some(GROUP));
    let js = "function f(n) { return n ? f(n - 1) + 1 : JSON.stringify({ a: [1, 2].map(x => x * 2) }).length } for (;;) f(20)";
    let node = Running::start("node", &["-e", js]);
    if node.is_none() {
        skip("package:nodejs", "no node");
    }
    let script = format!("while :; do {PYTHON} -c pass; done");
    let mut shell = Running::start("sh", &["-c", &script]).unwrap();
    // What was there is read; what is large is built, by threads that have no more than their share of the processors.
    settle(&mut sampler, &mut shell);
    let samples = sample_some(&mut sampler, &mut shell, 2000, |_| true);
    handle.stop();
    let share = whole("the machine", &samples, &handle.counts());
    assert!(samples.len() > 500);
    assert!(share >= 95.0, "{share}");
    assert!(handle.counts().snapshots > 0);
    if node.is_some() {
        assert!(samples.iter().any(|s| s.comm == "node" && s.guessed > 0));
    }
}

/// Rows have little room: what nobody uses goes.
// Slow: compilers and interpreters run until their tables have replaced each other.
#[test]
fn modules_go_where_there_is_no_room() {
    let Some(mut stage) = start(Room { bytes: 3 << 20, processes: 256 }) else { return };
    stage.watch(Target::Children);
    let (mut sampler, mut handle) = stage.run(Some(GROUP));
    let mut last = 0.0;
    let compile = "while :; do g++ -include bits/stdc++.h -x c++ -fsyntax-only /dev/null; done";
    for (program, args) in [
        (PYTHON, ["-c", SPIN]),
        ("node", ["-e", "for (;;) JSON.stringify([1, 2])"]),
        ("sh", ["-c", compile]),
        (PYTHON, ["-c", SPIN]),
    ] {
        let Some(mut child) = Running::start(program, &args) else {
            skip("package:nodejs", &format!("no {program}"));
            continue;
        };
        std::thread::sleep(Duration::from_millis(400));
        sampler.take();
        let samples = sample(&mut sampler, &mut child, Duration::from_millis(1500));
        last = whole(program, &samples, &handle.counts());
    }
    handle.stop();
    let counts = handle.counts();
    assert!(counts.bytes <= 3 << 20, "{counts:?}");
    assert!(counts.evicted > 0, "{counts:?}");
    assert!(last >= 95.0, "{last}");
}
