//! User stacks that the program of `bpf::unwind` walks, against those that are known, and against the walker in user space.

mod lab;

use bpf::{Assembler, Label};
use lab::{Lab, Makes, walked};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use sys::bpf::info;
use sys::bpf::link::Link;
use sys::bpf::prog::{Program, ProgramKind, ProgramSpec};
use sys::perf::attach::{Rate, Uprobe, profile};
use testkit::{compile, skip};
use unwind::{Ended, Frame, Record};

/// One test at a time: each measures.
static ALONE: Mutex<()> = Mutex::new(());

#[track_caller]
fn start() -> Option<(MutexGuard<'static, ()>, Lab)> {
    let guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    if sys::process::euid() != 0 {
        skip("root", "bpf(2) needs privilege");
        return None;
    }
    if testkit::own_pid_namespace() {
        skip("root", "in a pid namespace of its own");
        return None;
    }
    let _ = sys::bpf::raise_memory_limit();
    Some((guard, Lab::new()))
}

/// A child that is killed.
struct Running(Child);

impl Running {
    fn start(program: &str, args: &[&str]) -> Running {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        Running(command.spawn().unwrap())
    }
    /// A program that says `here`, and then waits for a byte.
    fn waiting(program: &str, args: &[&str]) -> Running {
        let mut child = Running::start(program, args);
        let mut said = [0; 5];
        child.0.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
        child
    }
    fn go_on(&mut self) {
        self.0.stdin.as_mut().unwrap().write_all(b"x").unwrap();
    }
    fn is_there(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn no_guard(_: &mut Assembler, _: Label) {}

/// Loads a program for a clock and attaches it to each CPU.
fn clock(lab: &Lab, pid: u32, makes: Makes, rate: Rate) -> (Program, Vec<Link>) {
    let program = lab.program(pid, makes, no_guard);
    let started = Instant::now();
    let loaded = lab.load(&program, |insns| ProgramSpec::new(ProgramKind::PerfEvent, "tl_clock", insns));
    let took = started.elapsed();
    let verified = info::program(&loaded).unwrap().verified_insns;
    eprintln!("{makes:?}: {} slots, {verified} verified, loaded in {took:?}", program.insns.len());
    let cpus = sys::processors::online().unwrap();
    let links = cpus.into_iter().map(|cpu| Link::perf(&loaded, profile(cpu, rate).unwrap(), 0).unwrap()).collect();
    (loaded, links)
}

fn uprobe(lab: &Lab, pid: u32, makes: Makes, path: &str, function: &str, at_return: bool) -> (Program, Link) {
    let bytes = std::fs::read(path).unwrap();
    let elf = symbols::Elf::parse(&bytes[..]).unwrap();
    let [f] = elf.function(function) else { panic!("one {function}") };
    let program = lab.program(pid, makes, no_guard);
    let loaded = lab.load(&program, |insns| ProgramSpec::new(ProgramKind::Kprobe, "tl_uprobe", insns));
    let place = Uprobe { path: path.as_ref(), offset: f.offset, at_return, counter: 0, pid: Some(pid as i32) };
    let link = Link::perf(&loaded, place.open().unwrap(), 0).unwrap();
    (loaded, link)
}

fn deep() -> Option<String> {
    compile("gcc", "deep", "deep.c", &["-O2", "-fomit-frame-pointer"])
}

/// Names of a program's functions by frames.
struct Names(Vec<(u64, u64, String)>);

impl Names {
    fn of(pid: u32, path: &str) -> Names {
        let bytes = std::fs::read(path).unwrap();
        let elf = symbols::Elf::parse(&bytes[..]).unwrap();
        let maps = sys::maps::of(pid as i32).unwrap();
        let code = maps.iter().find(|m| m.prot & 4 != 0 && m.path == path.as_bytes()).unwrap();
        let at =
            |f: &symbols::elf::Function| (code.range.0 + f.offset.wrapping_sub(code.offset), f.size, f.name.clone());
        Names(elf.functions().iter().map(at).collect())
    }
    fn name(&self, frame: Frame) -> &str {
        let at = frame.lookup();
        self.0.iter().find(|f| (f.0..f.0 + f.1).contains(&at)).map_or("", |f| &f.2)
    }
}

/// The functions of the program, from the one named outward. Between them and before them is the library's code only.
fn check_known(names: &[&str], innermost: &str) {
    let mut want = vec!["leaf".to_string()];
    want.extend((0..30).map(|n| format!("f{n}")));
    want.extend(["called_back", "aligned", "outer", "main", "_start"].map(String::from));
    want.drain(..want.iter().position(|f| f == innermost).unwrap());
    let from = names.iter().position(|n| *n == innermost).unwrap_or_else(|| panic!("{names:?}"));
    let have: Vec<&str> = names[from..].iter().copied().filter(|n| !n.is_empty()).collect();
    assert_eq!(have, want, "{names:?}");
}

#[test]
fn a_function_s_callers_are_those_of_the_source() {
    let Some((_alone, mut lab)) = start() else { return };
    let Some(path) = deep() else { return };
    let mut ring = lab.reader();
    let mut child = Running::waiting(&path, &["loop", "3000"]);
    let pid = child.0.id();
    assert!(lab.add(pid));
    let names = Names::of(pid, &path);
    let attached = uprobe(&lab, pid, Makes::Records, &path, "leaf", false);
    child.go_on();
    child.0.wait().unwrap();
    let mut stacks = Vec::new();
    ring.drain(|bytes| stacks.push(bytes.to_vec()));
    drop(attached);
    // The sort of two calls back once.
    assert_eq!(stacks.len(), 3000);
    for stack in &stacks {
        let record = Record::parse(stack).unwrap();
        assert_eq!((record.ended, record.guessed), (Ended::Outermost, 0));
        check_known(&record.frames().map(|f| names.name(f)).collect::<Vec<_>>(), "leaf");
    }
    // For information: what a walk costs, of stacks of several depths.
    let mut costs = Vec::new();
    for function in ["f29", "f10", "leaf"] {
        let mut child = Running::waiting(&path, &["loop", "5000"]);
        let pid = child.0.id();
        assert!(lab.add(pid));
        let attached = uprobe(&lab, pid, Makes::Times, &path, function, false);
        child.go_on();
        child.0.wait().unwrap();
        let (mut frames, mut ns) = (0, Vec::new());
        ring.drain(|bytes| {
            let number = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().unwrap());
            // Of the record's length in words the first is its head.
            frames = number(0) - 1;
            ns.push(number(8));
        });
        drop(attached);
        ns.sort_unstable();
        costs.push((frames, ns[ns.len() / 2]));
        eprintln!("{frames} frames: median {} ns, {} ns per frame", ns[ns.len() / 2], ns[ns.len() / 2] / frames);
    }
    let [first, .., last] = costs[..] else { return };
    eprintln!("each further frame: {:.1} ns", (last.1 as f64 - first.1 as f64) / (last.0 - first.0) as f64);
    eprintln!("{:?}", lab.endings());
}

/// This many samples of a program that was started; fewer where it ends.
fn sample(lab: &mut Lab, child: &mut Running, makes: Makes, rate: Rate, n: usize) -> Vec<Vec<u8>> {
    let pid = child.0.id();
    lab.add(pid);
    let mut ring = lab.reader();
    let attached = clock(lab, pid, makes, rate);
    let mut samples = Vec::new();
    while samples.len() < n && child.is_there() {
        std::thread::sleep(Duration::from_millis(10));
        ring.drain(|bytes| samples.push(bytes.to_vec()));
    }
    drop(attached);
    ring.drain(|bytes| samples.push(bytes.to_vec()));
    samples
}

/// Frames of the kernel's walk and of the walker's equal each other, as far as the copied stack goes.
#[test]
fn samples_are_what_the_walker_finds() {
    let Some((_alone, mut lab)) = start() else { return };
    let Some(path) = deep() else { return };
    let mut child = Running::start(&path, &["spin", "60000"]);
    std::thread::sleep(Duration::from_millis(100));
    let samples = sample(&mut lab, &mut child, Makes::Copies, Rate::Hz(400), 600);
    let pid = child.0.id();
    let names = Names::of(pid, &path);
    let (mut deepest, mut known, mut cut) = (0, 0, 0);
    for sample in &samples {
        let record = Record::parse(sample).unwrap();
        let (frames, ended) = walked(&lab, pid, sample);
        let kernels: Vec<Frame> = record.frames().collect();
        // A page that the kernel moves at this moment is not in the copy, and may be there again for the walk.
        if ended == Ended::ReadFault && record.ended == Ended::Outermost {
            assert!(kernels.starts_with(&frames), "{kernels:?} {frames:?}");
            cut += 1;
            continue;
        }
        assert_eq!((&kernels, record.ended), (&frames, ended));
        assert_eq!(ended, Ended::Outermost);
        deepest = deepest.max(frames.len());
        let names: Vec<&str> = frames.iter().map(|f| names.name(*f)).collect();
        if names.contains(&"leaf") {
            check_known(&names, "leaf");
            known += 1;
        }
    }
    eprintln!("{} samples, {known} in the innermost function, deepest {deepest}, {:?}", samples.len(), lab.endings());
    assert!(cut * 50 < samples.len(), "{cut} copies of {} are cut", samples.len());
    assert!(samples.len() > 200 && known > samples.len() / 4 && deepest > 35);
}

/// Programs that nobody here wrote, and how long they take to start.
fn programs() -> Vec<(&'static str, String, Vec<String>)> {
    let dir = testkit::dir();
    let write = |name: &str, text: String| {
        let path = dir.join(name).to_string_lossy().into_owned();
        std::fs::write(&path, text).unwrap();
        path
    };
    let cc = (0..400).map(|n| {
        format!("template<class T> struct S{n} {{ std::map<T, std::vector<std::string>> m; T f(T x) {{ m[x].push_back(\"a\"); return x + m.size(); }} }};\nint g{n}(int x) {{ S{n}<int> s; return s.f(x); }}\n")
    });
    let cc =
        write("many.cc", format!("#include <map>\n#include <string>\n#include <vector>\n{}", cc.collect::<String>()));
    let rs = (0..1500).map(|n| {
        format!("pub fn f{n}(v: &[u64]) -> String {{ let mut m = std::collections::BTreeMap::new(); for x in v {{ m.insert(x.wrapping_mul({n}), format!(\"{{x}}\")); }} m.values().cloned().collect() }}\n")
    });
    let rs = write("many.rs", rs.collect());
    let py = "import json, sys\nsys.setrecursionlimit(10000)\ndef f(n):\n    return f(n - 1) + 1 if n else len(json.dumps([{'a': [1, 2, 'x'] * 9}] * 9, indent=1)) + sum(sorted([3, 1, 2], key=lambda x: -x))\nwhile True:\n    f(40)\n";
    let js = "function f(n) { return n ? f(n - 1) + 1 : JSON.stringify({ a: [1, 2, 3].map(x => x * 2) }).length } for (;;) f(20)";
    let cc1plus =
        (10..16).map(|n| format!("/usr/lib/gcc/x86_64-linux-gnu/{n}/cc1plus")).find(|p| std::fs::metadata(p).is_ok());
    let strings = |args: &[&str]| args.iter().map(|a| a.to_string()).collect::<Vec<_>>();
    let mut all = vec![
        ("python3", "/usr/bin/python3".into(), strings(&["-c", py])),
        ("openssl speed", "openssl".into(), strings(&["speed", "-seconds", "1", "rsa2048", "sha256"])),
        ("rustc", "rustc".into(), strings(&["-O", "--crate-type=lib", "-o", "/dev/null", &rs])),
        ("node", "node".into(), strings(&["-e", js])),
    ];
    if let Some(cc1plus) = cc1plus {
        all.push((
            "cc1plus",
            cc1plus,
            strings(&["-quiet", "-imultiarch", "x86_64-linux-gnu", "-O2", &cc, "-o", "/dev/null"]),
        ));
    }
    all.extend(deep().map(|deep| ("C -O2", deep, strings(&["spin", "10000"]))));
    all
}

// Slow: compilers, interpreters and debuggers run, each with a session of its own.
#[test]
fn stacks_of_real_programs_are_whole() {
    let mut missing = Vec::new();
    for (name, program, args) in programs() {
        if Command::new(&program).arg("--version").stdin(Stdio::null()).output().is_err() {
            missing.push(name);
            continue;
        }
        let Some((_alone, mut lab)) = start() else { return };
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        // The dynamic loader's work, and what the program loads first. Tables are built of a first run, which may be over by then.
        let run = |lab: &mut Lab| {
            let child = Running::start(&program, &args);
            std::thread::sleep(Duration::from_millis(300));
            lab.add(child.0.id());
            child
        };
        drop(run(&mut lab));
        let mut child = run(&mut lab);
        let pid = child.0.id();
        let stats = info::enable_stats();
        let (program, links) = clock(&lab, pid, Makes::Records, Rate::Hz(997));
        let mut ring = lab.reader();
        let (mut frames, mut guessed, mut most) = (0, 0, 0);
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(2000) && child.is_there() {
            std::thread::sleep(Duration::from_millis(5));
            lab.add(pid);
            ring.drain(|bytes| {
                let record = Record::parse(bytes).unwrap();
                frames += record.frames().len();
                guessed += u64::from(record.guessed);
                most = most.max(record.frames().len());
            });
        }
        drop(links);
        let (endings, _) = lab.endings();
        let all: u64 = endings.iter().map(|e| e.1).sum();
        let whole = endings.iter().find(|e| e.0 == Ended::Outermost).map_or(0, |e| e.1);
        let per_run = info::program(&program).map_or(0, |p| p.run_time_ns / all.max(1));
        drop(stats);
        eprintln!(
            "{name}: {whole} of {all} whole ({:.2} %), {:.1} frames on average, at most {most}, {guessed} guessed, {per_run} ns a sample, tables built in {:?}; {endings:?}",
            100.0 * whole as f64 / all.max(1) as f64,
            frames as f64 / all.max(1) as f64,
            lab.built,
        );
        assert!(all > 50, "{name}: {endings:?}");
        // A program that has only begun, or forks, maps code before this test sees it.
        assert!(whole * 1000 >= all * 990, "{name}: {endings:?}");
    }
    if !missing.is_empty() {
        skip("package:several", &format!("not there: {missing:?}"));
    }
}

/// Return probes replace return addresses on the stack; the kernel's list has the real ones.
#[test]
fn return_probes_hide_nothing() {
    let Some((_alone, mut lab)) = start() else { return };
    let Some(path) = deep() else { return };
    let mut ring = lab.reader();
    let mut child = Running::waiting(&path, &["loop", "500"]);
    let pid = child.0.id();
    lab.add(pid);
    let names = Names::of(pid, &path);
    // All of these are entered and not left while leaf runs.
    let hiding: Vec<_> =
        ["f7", "f8", "f20", "aligned"].map(|f| uprobe(&lab, pid, Makes::Counts, &path, f, true)).into_iter().collect();
    let leaf = uprobe(&lab, pid, Makes::Records, &path, "leaf", false);
    let f3 = uprobe(&lab, pid, Makes::Records, &path, "f3", true);
    child.go_on();
    assert!(child.0.wait().unwrap().success());
    let (mut of_leaf, mut of_f3) = (0, 0);
    ring.drain(|bytes| {
        let record = Record::parse(bytes).unwrap();
        let all: Vec<&str> = record.frames().map(|f| names.name(f)).collect();
        assert_eq!(record.ended, Ended::Outermost, "{all:?}");
        // At the return of a function its caller is what runs.
        let innermost = if all[0] == "leaf" { "leaf" } else { "f4" };
        assert_eq!(all[0], innermost);
        check_known(&all, innermost);
        *(if innermost == "leaf" { &mut of_leaf } else { &mut of_f3 }) += 1;
    });
    drop((leaf, f3, hiding));
    let (endings, repaired) = lab.endings();
    eprintln!("{endings:?}, {repaired} repaired");
    assert_eq!((of_leaf, of_f3), (500, 500));
    assert!(repaired >= 500 * (5 + 4), "{repaired}");
}

/// What a signal has interrupted, and what its handler calls.
#[test]
fn signal_handlers_lead_to_what_they_interrupt() {
    let Some((_alone, mut lab)) = start() else { return };
    let Some(path) = deep() else { return };
    let mut ring = lab.reader();
    let mut child = Running::waiting(&path, &["signal"]);
    let pid = child.0.id();
    lab.add(pid);
    let names = Names::of(pid, &path);
    let program = lab.program(pid, Makes::Records, no_guard);
    let loaded = lab.load(&program, |insns| ProgramSpec::new(ProgramKind::RawTracepoint, "tl_raw", insns));
    let link = Link::raw_tracepoint(&loaded, "sys_exit").unwrap();
    child.go_on();
    assert!(child.0.wait().unwrap().success());
    drop(link);
    let mut in_handler = 0;
    ring.drain(|bytes| {
        let record = Record::parse(bytes).unwrap();
        let all: Vec<&str> = record.frames().map(|f| names.name(f)).collect();
        if all.contains(&"handler") {
            assert_eq!(record.ended, Ended::Outermost, "{all:?}");
            // The innermost frame, and the one that the signal has interrupted.
            assert_eq!(record.frames().filter(|f| f.is_exact()).count(), 2);
            check_known(&all, "leaf");
            in_handler += 1;
        }
    });
    eprintln!("{in_handler} in the handler, {:?}", lab.endings());
    assert!(in_handler > 0);
}

/// A clock interrupts the walk of another program on the same CPU: each has an area of its own.
#[test]
fn walks_that_interrupt_each_other_keep_apart() {
    let Some((_alone, mut of_clock)) = start() else { return };
    let Some(path) = deep() else { return };
    let mut of_uprobe = Lab::new();
    let mut child = Running::waiting(&path, &["loop", "40000"]);
    let pid = child.0.id();
    of_clock.add(pid);
    of_uprobe.add(pid);
    let names = Names::of(pid, &path);
    let (mut ticks, mut entries) = (of_clock.reader(), of_uprobe.reader());
    let clock = clock(&of_clock, pid, Makes::Records, Rate::Ns(50_000));
    let back = uprobe(&of_uprobe, pid, Makes::Counts, &path, "f1", true);
    let leaf = uprobe(&of_uprobe, pid, Makes::Records, &path, "leaf", false);
    child.go_on();
    let (mut known, mut sampled) = (0, 0);
    let mut there = true;
    while there {
        there = child.is_there();
        entries.drain(|bytes| {
            let record = Record::parse(bytes).unwrap();
            assert_eq!(record.ended, Ended::Outermost);
            check_known(&record.frames().map(|f| names.name(f)).collect::<Vec<_>>(), "leaf");
            known += 1;
        });
        ticks.drain(|bytes| {
            let record = Record::parse(bytes).unwrap();
            sampled += u64::from(record.ended == Ended::Outermost);
        });
        std::thread::sleep(Duration::from_millis(1));
    }
    drop((leaf, back, clock));
    let (endings, repaired) = of_clock.endings();
    let all: u64 = endings.iter().map(|e| e.1).sum();
    eprintln!("{known} at the function, {sampled} of {all} by the clock: {endings:?}, {repaired} repaired");
    // A ring may have been full.
    assert!(known >= 30_000 && sampled > 500, "{known} {sampled}");
    // Not whole: what the kernel does itself when a function returns to its probe.
    assert!(sampled * 100 >= all * 90 && repaired > 0, "{endings:?} {repaired}");
}
