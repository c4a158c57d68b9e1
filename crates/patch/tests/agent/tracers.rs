//! Tracers, switched on and off by requests in a running program.

use crate::collector::{Run, Wish, run};
use crate::elf::File;
use abi::stub::Variant;
use abi::tracer::{Known, NO_PATCH, Refused, Reply, STUBS, Target, name};
use patch::hole::{self, Kind, Mapping};
use patch::link::{Beside, Linked, Places, area_len, link};
use patch::{Module, Plan, file};
use std::process::Command;
use std::thread;
use std::time::Duration;
use sys::agent::{Listener, Status, Talk};
use sys::maps::{Map, PROT_EXEC};
use testkit::compile;

/// The options of a tracer, and where it is to be.
pub struct Wanted {
    pub name: &'static str,
    pub options: [u64; 8],
    pub functions: &'static [&'static str],
    pub variant: Variant,
}

/// The tracer count.
pub fn count(timed: bool, functions: &'static [&'static str]) -> Wanted {
    let variant = if timed { Variant::CountTimed } else { Variant::Count };
    Wanted { name: "count", options: [timed.into(), 0, 0, 0, 0, 0, 0, 0], functions, variant }
}

/// A tracer that is told of each call.
pub fn called(name: &'static str, functions: &'static [&'static str]) -> Wanted {
    let options = [0, abi::built_in::MAIN, 0, 0, 0, 0, 0, 0];
    Wanted { name, options, functions, variant: Variant::Called }
}

pub const ALL: &[&str] = &["fib", "middle", "leaf", "worker_only", "main_only", "slow", "loop"];

/// The program's file, and where it is in the process.
struct Program {
    file: File,
    maps: Vec<Map>,
    path: String,
}

impl Program {
    fn of(pid: i32) -> Program {
        let path = std::fs::read_link(format!("/proc/{pid}/exe")).expect("a program");
        let path = path.to_str().expect("UTF-8").to_string();
        Program { file: File::read(&path).expect("ELF"), maps: sys::maps::of(pid).expect("maps"), path }
    }

    fn bias(&self) -> u64 {
        let code = |m: &&Map| m.prot & PROT_EXEC != 0 && *m.path == *self.path.as_bytes();
        let map = self.maps.iter().find(code).expect("its code");
        let (address, ..) = self.file.segments().find(|s| s.1 as u64 & !4095 == map.offset).expect("a segment");
        map.range.0.wrapping_sub(address & !4095)
    }

    fn address(&self, name: &str) -> u64 {
        let n = self.file.names.iter().position(|n| n == name).unwrap_or_else(|| panic!("{name}"));
        let function = self.file.functions.iter().find(|f| f.number as usize == n).expect("a function");
        function.address.wrapping_add(self.bias())
    }

    fn name(&self, status: &Status, number: u64) -> String {
        let address = status.sites[number as usize - 1].address.wrapping_sub(self.bias());
        let f = self.file.functions.iter().find(|f| f.address == address).expect("a function");
        self.file.names[f.number as usize].clone()
    }

    fn bytes(&self, pid: i32) -> Vec<u8> {
        use std::os::unix::fs::FileExt;
        let memory = std::fs::File::open(format!("/proc/{pid}/mem")).expect("memory");
        let code = |m: &&Map| m.prot & PROT_EXEC != 0 && *m.path == *self.path.as_bytes();
        let map = self.maps.iter().find(code).expect("its code");
        let mut bytes = vec![0; (map.range.1 - map.range.0) as usize];
        memory.read_exact_at(&mut bytes, map.range.0).expect("text");
        bytes
    }
}

/// A request, from a program that waits for it.
pub struct Step {
    talk: Talk,
    pid: i32,
    program: Program,
}

impl Step {
    fn status(&mut self) -> Status {
        self.talk.status().expect("an answer")
    }

    /// What is known of a tracer.
    pub fn tracer(&mut self, name: &str) -> Known {
        let wanted = abi::tracer::name(name).expect("a name");
        *self.status().tracers.iter().find(|t| t.name == wanted).unwrap_or_else(|| panic!("{name}"))
    }

    /// Enables a tracer, with new stubs where they are needed.
    pub fn enable(&mut self, wanted: &Wanted) -> Reply {
        let status = self.status();
        let mut targets = vec![];
        let mut linked: Vec<Linked> = vec![];
        let bit = |v| 1 << STUBS.iter().position(|s| *s == v).expect("a variant");
        let mut next = status.sites.len() as u32 + 1;
        // Sites that have another tracer need the stub for several.
        let (mut fast, mut several) = (vec![], vec![]);
        for f in wanted.functions {
            let address = self.program.address(f);
            let known = status.sites.iter().position(|s| s.address == address);
            let number = known.map_or_else(|| (next, next += 1).0, |i| i as u32 + 1);
            let site = known.map(|i| status.sites[i]).unwrap_or_default();
            let variant = if site.tracers == 0 { wanted.variant } else { Variant::Called };
            if site.stubs & bit(variant) != 0 {
                targets.push(Target { number, patch: NO_PATCH });
            } else if variant == Variant::Called {
                several.push((number, address));
            } else {
                fast.push((number, address));
            }
        }
        for (variant, sites) in [(wanted.variant, fast), (Variant::Called, several)] {
            if !sites.is_empty() {
                let first: usize = linked.iter().map(|l| l.patches.len()).sum();
                let module = self.link(variant, &sites);
                for (i, number) in module.functions.iter().enumerate() {
                    targets.push(Target { number: *number, patch: (first + i) as u32 });
                }
                linked.push(module);
            }
        }
        targets.sort_by_key(|t| t.number);
        let plan = if linked.is_empty() { vec![] } else { file::write(&linked, &[]) };
        self.talk.enable(name(wanted.name).expect("a name"), wanted.options, &targets, &plan).expect("an answer")
    }

    fn link(&self, variant: Variant, sites: &[(u32, u64)]) -> Linked {
        let (file, bias) = (&self.program.file, self.program.bias());
        let address = |n: &(u32, u64)| n.1.wrapping_sub(bias);
        let functions: Vec<_> =
            file.functions.iter().filter(|f| sites.iter().any(|s| address(s) == f.address)).copied().collect();
        let plan = file.module(|m| Plan::new(&Module { functions: &functions, hooks: &[], ..*m }));
        assert_eq!(plan.sites.len(), sites.len(), "all of them can be patched");
        let kind = |m: &Map| if &*m.path == b"[heap]" { Kind::Heap } else { Kind::Other };
        let maps = sys::maps::of(self.pid).expect("maps");
        let mut taken: Vec<Mapping> =
            maps.iter().map(|m| Mapping { range: m.range.0..m.range.1, kind: kind(m) }).collect();
        taken.sort_by_key(|m| m.range.start);
        let len = area_len(&plan, (plan.sites.len(), 0), variant);
        let reach = plan.reach.start.wrapping_add(bias)..plan.reach.end.wrapping_add(bias);
        let area = hole::nearest(&taken, &reach, len).expect("room");
        let hello = &self.talk.hello;
        let (tls, slow, hooks) = (hello.tls as i32, hello.slow, [0; abi::message::HOOKS]);
        let places = Places { bias, area, tls, slow, hooks, variant, minimum: 0 };
        let number = |n: u32| {
            let at = functions.iter().find(|f| f.number == n)?.address;
            sites.iter().find(|s| address(s) == at).map(|s| s.0)
        };
        link(&plan, &places, number, Beside::default()).expect("it reaches")
    }

    /// Disables one.
    pub fn disable(&mut self, tracer: &str) -> Reply {
        self.talk.disable(name(tracer).expect("a name")).expect("an answer")
    }

    /// Calls and time by function.
    pub fn counted(&mut self) -> Vec<(String, u64, u64, i64)> {
        let status = self.status();
        let (_, print) = self.talk.print(name("count").expect("a name")).expect("an answer");
        let mut rows: Vec<_> =
            print.counted.iter().map(|c| (self.program.name(&status, c.number), c.calls, c.total, c.own)).collect();
        rows.sort();
        rows
    }

    fn is_whole(&self) -> bool {
        let file = std::fs::read(&self.program.path).expect("the program");
        let bytes = self.program.bytes(self.pid);
        let (_, at, len) = self.program.file.segments().next().expect("code");
        let page = at & !4095;
        bytes[at - page..at - page + len] == file[at..at + len]
    }
}

/// What is done in one.
pub type Job = Box<dyn FnOnce(&mut Step) + Send>;

/// Runs the program: each step serves one request. Returns what it printed.
pub fn steps(program: &str, arguments: &[&str], steps: Vec<Job>) -> Option<Vec<String>> {
    let wish = Wish { functions: |_, _| false, ..Wish::default() };
    let run = steps_of(program, arguments, wish, steps)?;
    Some(run.text().lines().map(str::to_string).collect())
}

/// The same with this wish.
pub fn steps_of(program: &str, arguments: &[&str], wish: Wish, steps: Vec<Job>) -> Option<Run> {
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../tracer/include");
    let program = compile("gcc", program, &format!("{program}.c"), &["-O1", "-pthread", include])?;
    let listener = Listener::new().expect("a socket");
    let (socket, rounds) = (listener.name().to_string(), steps.len().to_string());
    let server = thread::spawn(move || {
        for step in steps {
            let request = loop {
                match listener.accept().expect("accept") {
                    Some(request) => break request,
                    None => thread::sleep(Duration::from_millis(1)),
                }
            };
            let pid = request.peer.pid;
            let talk = Talk::begin(request).expect("an agent");
            step(&mut Step { talk, pid, program: Program::of(pid) });
        }
    });
    let mut command = Command::new(&program);
    command.args([&socket, &rounds]).args(arguments);
    let run = run(&mut command, wish);
    assert!(run.output.status.success(), "{:?} {}", run.output, run.text());
    server.join().expect("every step was served");
    Some(run)
}

/// The sum that the program prints in each round.
fn sum(line: &str) -> &str {
    line.split(' ').next().expect("a word")
}

fn numbers(line: &str) -> Vec<u64> {
    line.split(' ').map(|n| n.parse().expect("a number")).collect()
}

/// Calls of each function in one round.
const FIB: u64 = 1973;
pub const ROUND: [(&str, u64); 7] =
    [("fib", FIB), ("leaf", 1000), ("loop", 1), ("main_only", 1), ("middle", 500), ("slow", 2), ("worker_only", 4)];
const CALLS: u64 = FIB + 1000 + 1 + 1 + 500 + 2 + 4;

pub fn calls(rows: &[(String, u64, u64, i64)]) -> Vec<(&str, u64)> {
    rows.iter().map(|r| (r.0.as_str(), r.1)).collect()
}

#[test]
fn counts_are_exact() {
    let lines = steps(
        "agent_tracers",
        &[],
        vec![
            Box::new(|s| {
                let reply = s.enable(&count(false, ALL));
                assert_eq!((reply.error, reply.patched), (0, 7), "{reply:?}");
            }),
            Box::new(|s| {
                assert_eq!(calls(&s.counted()), ROUND);
                assert!(s.counted().iter().all(|r| r.2 == 0));
            }),
            Box::new(|s| {
                assert_eq!(calls(&s.counted()), ROUND.map(|(n, c)| (n, 2 * c)));
                let reply = s.disable("count");
                assert_eq!((reply.error, reply.patched), (0, 7), "{reply:?}");
                assert!(s.is_whole());
            }),
            Box::new(|s| {
                assert_eq!(calls(&s.counted()), ROUND.map(|(n, c)| (n, 2 * c)));
                // With time, it begins again.
                let reply = s.enable(&count(true, ALL));
                assert_eq!((reply.error, reply.patched), (0, 7), "{reply:?}");
                assert_eq!(calls(&s.counted()), []);
            }),
            Box::new(|s| {
                let rows = s.counted();
                assert_eq!(calls(&rows), ROUND);
                for (name, _, total, own) in &rows {
                    assert!(*total > 0 && *own > 0 && *own as u64 <= *total, "{name} {total} {own}");
                }
                let row = |n: &str| rows.iter().find(|r| r.0 == n).expect("a row").clone();
                // A leaf's time is its own; that of its caller is without it.
                assert_eq!(row("leaf").2, row("leaf").3 as u64);
                assert_eq!(row("middle").2, row("middle").3 as u64 + row("leaf").2);
                s.disable("count");
                assert!(s.is_whole());
            }),
        ],
    );
    let Some(lines) = lines else { return };
    assert_eq!(lines[0], "0 0");
    assert!(lines[1..].iter().all(|l| sum(l) == sum(&lines[1])), "{lines:?}");
}

#[test]
fn what_cannot_be_is_refused() {
    steps(
        "agent_tracers",
        &[],
        vec![Box::new(|s| {
            let error = |r: Refused| r as u32;
            assert_eq!(s.disable("count").error, error(Refused::NotEnabled));
            assert_eq!(s.disable("none").error, error(Refused::NoSuch));
            assert_eq!(s.enable(&called("none", ALL)).error, error(Refused::NoSuch));
            assert_eq!(s.enable(&count(false, ALL)).error, 0);
            assert_eq!(s.enable(&count(false, ALL)).error, error(Refused::Already));
            assert_eq!(s.disable("count").error, 0);
            assert_eq!(s.disable("count").error, error(Refused::NotEnabled));
            let names: Vec<String> = s
                .status()
                .tracers
                .iter()
                .map(|t| String::from_utf8_lossy(&t.name).trim_end_matches('\0').to_string())
                .collect();
            let built_in = abi::built_in::BUILT_IN.iter().map(|row| row.name);
            assert_eq!(names, built_in.chain(["mine", "exits"]).collect::<Vec<_>>());
            assert!(s.is_whole());
        })],
    );
}

#[test]
fn tracers_of_the_program() {
    let lines = steps(
        "agent_tracers",
        &[],
        vec![
            Box::new(|s| {
                let reply = s.enable(&called("mine", ALL));
                assert_eq!((reply.error, reply.patched), (0, 7), "{reply:?}");
            }),
            Box::new(|s| {
                assert_eq!(s.disable("mine").patched, 7);
                assert!(s.is_whole());
            }),
            // Two with different lifetimes, on some of the same functions.
            Box::new(|s| assert_eq!(s.enable(&count(true, &["fib", "leaf"])).patched, 2)),
            Box::new(|s| {
                assert_eq!(calls(&s.counted()), [("fib", FIB), ("leaf", 1000)]);
                assert_eq!(s.enable(&called("mine", &["leaf", "middle"])).patched, 2);
                assert_eq!((s.tracer("count").place, s.tracer("mine").place), (1, 2));
            }),
            Box::new(|s| {
                assert_eq!(calls(&s.counted()), [("fib", 2 * FIB), ("leaf", 2000)]);
                assert_eq!(s.enable(&called("exits", &["leaf"])).patched, 0);
                // fib gets its own bytes, leaf keeps the stub that it has.
                assert_eq!(s.disable("count").patched, 1);
            }),
            Box::new(|s| {
                assert_eq!(s.disable("mine").patched, 1);
                assert_eq!(s.disable("exits").patched, 1);
                assert!(s.is_whole());
            }),
        ],
    );
    let Some(lines) = lines else { return };
    let rounds: Vec<Vec<u64>> = lines[1..].iter().map(|l| numbers(l)).collect();
    assert!(rounds.iter().all(|r| r[0] == rounds[0][0]), "{lines:?}");
    // entered, left, left only; depth, mistakes, open calls.
    assert_eq!(rounds[0][1..], [CALLS, CALLS, 0, 14, 0, 0], "{lines:?}");
    assert_eq!(rounds[1][1..4], [0, 0, 0]);
    assert_eq!(rounds[2][1..4], [0, 0, 0]);
    assert_eq!(rounds[3][1..4], [1500, 1500, 0]);
    assert_eq!(rounds[4][1..4], [1500, 1500, 1000]);
    assert_eq!(rounds[5][1..4], [0, 0, 0]);
}

#[test]
fn checkers_name_what_breaks_a_rule() {
    for planted in [false, true] {
        let arguments: &[&str] = if planted { &["plant"] } else { &[] };
        steps(
            "agent_tracers",
            arguments,
            vec![
                Box::new(|s| {
                    assert_eq!(s.enable(&called("thread_checker", &["main_only"])).error, 0);
                    let number = |s: &mut Step, f: &str| {
                        let address = s.program.address(f);
                        s.status().sites.iter().position(|s| s.address == address).map_or(0, |i| i as u64 + 1)
                    };
                    // The functions get numbers in the order of their names here: `loop` is the next one.
                    let mut wanted = called("loop_checker", &["loop", "slow"]);
                    let next = s.status().sites.len() as u64 + 1;
                    wanted.options[0] = next;
                    wanted.options[2] = 2_000_000;
                    assert_eq!(s.enable(&wanted).error, 0);
                    assert_eq!(number(s, "loop"), next);
                }),
                Box::new(move |s| {
                    let status = s.status();
                    for (checker, function, violations) in
                        [("thread_checker", "main_only", 4), ("loop_checker", "slow", 1)]
                    {
                        let (_, print) = s.talk.print(name(checker).expect("a name")).expect("an answer");
                        let expected = if planted { violations } else { 0 };
                        assert_eq!(print.violations.len(), expected, "{checker}");
                        assert_eq!(s.tracer(checker).reported, expected as u64);
                        for v in &print.violations {
                            assert_eq!(s.program.name(&status, v.number.into()), function);
                            assert_eq!(v.tid == s.pid as u32, checker == "loop_checker");
                            assert_eq!(v.took > 2_000_000, checker == "loop_checker");
                            // The caller, whose return address is the program's own.
                            let caller = u64::from_le_bytes(v.stack[..8].try_into().expect("8 bytes"));
                            let in_program = |a: u64| {
                                s.program
                                    .maps
                                    .iter()
                                    .any(|m| m.range.0 <= a && a < m.range.1 && *m.path == *s.program.path.as_bytes())
                            };
                            assert!(v.len > 64 && in_program(caller), "{caller:x}");
                            assert_eq!(v.registers[0], s.program.address(function));
                        }
                        assert_eq!(s.disable(checker).error, 0);
                    }
                    assert!(s.is_whole());
                }),
            ],
        );
    }
}

/// Not a test: prints what a call of fib costs, in ns, bare and with each tracer. `cargo test -p patch --test agent -- --ignored
/// --nocapture tracers_cost`
#[test]
#[ignore = "measures"]
fn tracers_cost() {
    const FIB: &[&str] = &["fib"];
    let with = |wanted: Option<Wanted>| -> f64 {
        let step: Box<dyn FnOnce(&mut Step) + Send> = Box::new(move |s| {
            if let Some(wanted) = &wanted {
                assert_eq!(s.enable(wanted).patched, 1);
            }
        });
        let lines = steps("agent_tracers_cost", &[], vec![step]).expect("a compiler");
        lines[1].parse().expect("a number")
    };
    let least = |f: &dyn Fn() -> Option<Wanted>| (0..5).map(|_| with(f())).fold(f64::MAX, f64::min);
    let bare = least(&|| None);
    println!("bare {bare:.1}");
    println!("count, no time +{:.1}", least(&|| Some(count(false, FIB))) - bare);
    println!("count +{:.1}", least(&|| Some(count(true, FIB))) - bare);
    println!("own +{:.1}", least(&|| Some(called("mine", FIB))) - bare);
    println!("thread_checker +{:.1}", least(&|| Some(called("thread_checker", FIB))) - bare);
    println!("loop_checker +{:.1}", least(&|| Some(called("loop_checker", FIB))) - bare);
}
