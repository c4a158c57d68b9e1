//! Programs with patches run as they do without: hundreds of functions of all kinds, with each compiler flag that changes beginnings of
//! functions, and each variant of stubs. `tests/programs/patched.c` is the agent.

mod elf;
mod generated;

use abi::stub::{Layout, Variant, layout};
use elf::File;
use patch::file;
use patch::hole::{Kind, Mapping, nearest};
use patch::link::{Beside, Places, area_len, link};
use patch::{Plan, Refusal};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use testkit::{Scratch, has, skip};

const VARIANTS: [Variant; 4] = [Variant::Paired, Variant::Timed, Variant::Entry, Variant::Callers];
const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/programs");

/// `layouts.h`: abi::stub for C.
fn layouts() -> String {
    let mut out = String::from(
        "#define TIMED 1\n#define ENTRY 2\n#define CALLERS 7\nstruct again { uint32_t start, end, at; };\n\
         struct commit { uint32_t at, next, bytes; };\n\
         struct frame { uint32_t from, cfa, shadow; };\nstruct layout { uint32_t size, entry, returns; struct again again[16]; \
         struct commit commit[4]; struct frame frames[32]; };\nstatic const struct layout layouts[] = {\n",
    );
    out.insert_str(0, &format!("#define CALLER {}u\n", abi::caller::WORD));
    for variant in VARIANTS {
        let Layout { size, entry, returns, number: _, again, commit, frames } = layout(variant);
        let _ = write!(out, "[{}] = {{ {size}, {entry}, {returns}, {{", variant as u32);
        again.iter().for_each(|a| out.push_str(&format!("{{{}, {}, {}}}, ", a.start, a.end, a.at)));
        out.push_str("}, {");
        commit.iter().for_each(|c| out.push_str(&format!("{{{}, {}, {}}}, ", c.at, c.next, c.bytes)));
        out.push_str("}, {");
        frames.iter().for_each(|f| out.push_str(&format!("{{{}, {}, {}}}, ", f.from, f.cfa, u32::from(f.shadow))));
        out.push_str("} },\n");
    }
    out + "};\n"
}

/// A program that was compiled, and what it says of itself.
struct Program {
    scratch: Scratch,
    path: PathBuf,
    file: File,
    tls: i32,
    slow: [u64; abi::message::SLOWS],
}

fn gcc(arguments: &[&str]) {
    let out = Command::new("gcc").args(arguments).output().unwrap();
    assert!(out.status.success(), "gcc {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
}

fn run(path: &Path, arguments: &[&str]) -> Output {
    Command::new(path).args(arguments).output().unwrap()
}

fn text(out: &[u8]) -> String {
    String::from_utf8_lossy(out).into_owned()
}

impl Program {
    fn compile(name: &str, functions: usize, flags: &[&str]) -> Option<Program> {
        if !has("gcc") {
            skip("package:gcc", "no compiler");
            return None;
        }
        let scratch = Scratch::new(name);
        let [source, object, agent, path] = ["traced.c", "traced.o", "agent.o", "program"].map(|n| scratch.join(n));
        std::fs::write(&source, generated::source(functions)).unwrap();
        std::fs::write(scratch.join("layouts.h"), layouts()).unwrap();
        let [source, object, agent, program] = [&source, &object, &agent, &path].map(|p| p.to_str().unwrap());
        gcc(&[&["-w", "-c", "-fno-pie", "-o", object, source], flags].concat());
        let include = format!("-I{}", scratch.to_str().unwrap());
        let harness = format!("{PROGRAMS}/patched.c");
        // Slow code must not use other registers than it saves; main has numbers with a point, which run outside of it.
        gcc(&["-O1", "-c", "-fno-pie", "-mno-avx", "-fcf-protection=none", &include, "-o", agent, &harness]);
        gcc(&["-no-pie", "-z", "execstack", "-o", program, object, agent]);
        let out = text(&run(&path, &["describe"]).stdout);
        let numbers: Vec<i64> = out.split_whitespace().map(|n| n.parse().unwrap()).collect();
        let mut slow = [0; abi::message::SLOWS];
        slow.iter_mut().zip(&numbers[1..]).for_each(|(slow, n)| *slow = *n as u64);
        let mut file = File::read(program).unwrap();
        let names = &file.names;
        file.functions.retain(|f| {
            let name = &names[f.number as usize];
            name.split_once('_').is_some_and(|(kind, _)| kind.len() == 1 || name.starts_with("traced_"))
        });
        Some(Program { scratch, path, file, tls: numbers[0] as i32, slow })
    }

    /// A plan of all functions, linked and written; its path.
    fn plan(&self, variant: Variant, minimum: u64) -> (PathBuf, Plan) {
        let plan = self.file.plan();
        let program = Mapping { range: plan.reach.clone(), kind: Kind::Other };
        let len = area_len(&plan, (plan.sites.len(), 0), variant);
        // The heap begins behind the program, the stack is far away.
        let area = nearest(&[program], &plan.reach, len).unwrap() + 0x1000_0000;
        let (tls, slow) = (self.tls, self.slow);
        let places = Places { bias: 0, area, tls, slow, hooks: [0; 32], variant, minimum };
        let linked = link(&plan, &places, |number| Some(number + 1), Beside::default()).unwrap();
        let bytes = file::write(std::slice::from_ref(&linked), &[]);
        let read = file::parse(&bytes).unwrap();
        assert_eq!(read.areas[0].content, linked.content);
        assert_eq!(read.patches.iter().map(|(_, p)| *p).collect::<Vec<_>>(), linked.patches);
        let path = self.scratch.join(format!("{variant:?}{minimum}"));
        std::fs::write(&path, bytes).unwrap();
        (path, plan)
    }

    fn run(&self, what: &str, plan: &Path) -> Output {
        run(&self.path, &[what, plan.to_str().unwrap()])
    }
}

/// Runs with patches of each variant give the results of one without. Returns how many functions have patches, and how many have none
/// for a reason other than their size.
fn check(name: &str, flags: &[&str]) {
    let Some(program) = Program::compile(name, 160, flags) else { return };
    let plain = text(&run(&program.path, &["plain"]).stdout);
    assert!(plain.lines().count() == 160, "{plain}");
    let mut calls = vec![];
    for (variant, minimum) in VARIANTS.map(|v| (v, 0)).into_iter().chain([(Variant::Timed, u64::MAX)]) {
        let (path, plan) = program.plan(variant, minimum);
        let out = program.run("run", &path);
        let said = text(&out.stderr);
        assert!(out.status.success(), "{name} {variant:?}: {:?} {said}", out.status);
        assert_eq!(text(&out.stdout), plain, "{name} {variant:?}");
        assert!(said.contains("nested 1"), "{name} {variant:?}: {said}");
        let count = |what: &str| -> u64 {
            said.split_once(what).unwrap().1.split_whitespace().next().unwrap().parse().unwrap()
        };
        if minimum == 0 {
            calls.push(count("calls "));
        } else {
            assert_eq!((count("calls "), count("lates ")), (0, 0));
        }
        let others = plan.refusals.iter().filter(|(_, r)| ![Refusal::TooSmall, Refusal::Loop].contains(r)).count();
        assert!(others * 100 <= program.file.functions.len(), "{name}: {:?}", File::refusals(&plan));
    }
    // Calls that longjmp has ended have no exit, and so no records where only an exit makes them.
    assert!(calls[0] > 1000 && calls[0] == calls[2] && calls[1] <= calls[0], "{name}: {calls:?}");
    assert_eq!(calls[0], calls[3], "{name}");
}

#[test]
fn not_optimised() {
    check("o0", &["-O0"]);
}

#[test]
fn optimised() {
    for flag in ["-O1", "-O2", "-O3", "-Os"] {
        check("optimised", &[flag, "-fcf-protection=none"]);
    }
}

#[test]
fn with_landing_pads_for_indirect_calls() {
    check("cet", &["-O2", "-fcf-protection"]);
}

// Slow: every patch of a generated program runs.
#[test]
fn with_calls_of_a_profiler() {
    check("pg", &["-O2", "-pg"]);
    check("pg0", &["-O0", "-pg"]);
    check("pg-got", &["-O2", "-pg", "-fPIC", "-fno-plt"]);
    check("fentry", &["-O2", "-pg", "-mfentry"]);
    check("fentry-got", &["-O2", "-pg", "-mfentry", "-fPIC", "-fno-plt"]);
    check("fentry-cet", &["-O2", "-pg", "-mfentry", "-fcf-protection"]);
    check("fentry-nop", &["-O2", "-pg", "-mfentry", "-mnop-mcount"]);
}

#[test]
fn with_room_for_patches() {
    for entry in ["5", "16,8", "2", "3,1", "7,2"] {
        check("patchable", &["-O2", &format!("-fpatchable-function-entry={entry}")]);
    }
    check("patchable-cet", &["-O2", "-fcf-protection", "-fpatchable-function-entry=6"]);
}

/// Slow code that has no memory for records, or for the shadow stack: the program runs on, and nothing is recorded.
#[test]
fn without_memory() {
    let Some(program) = Program::compile("memory", 120, &["-O2"]) else { return };
    let plain = text(&run(&program.path, &["plain"]).stdout);
    for (variant, lacks) in [
        (Variant::Paired, "NO_CHUNK"),
        (Variant::Callers, "NO_CHUNK"),
        (Variant::Entry, "NO_CHUNK"),
        (Variant::Paired, "NO_SHADOW"),
        (Variant::Timed, "NO_SHADOW"),
    ] {
        let (path, _) = program.plan(variant, 0);
        let out = Command::new(&program.path).args(["run", path.to_str().unwrap()]).env(lacks, "1").output().unwrap();
        assert_eq!(text(&out.stdout), plain, "{variant:?} {lacks}");
        assert!(text(&out.stderr).contains("calls 0 open 0"), "{variant:?} {lacks}: {}", text(&out.stderr));
    }
}

/// Signals at every instruction of the stubs, one after the other: no call is lost or counted twice, and each frame is found.
// Slow: a signal is handled at each instruction of every stub.
#[test]
fn a_signal_at_each_instruction() {
    let Some(program) = Program::compile("step", 0, &["-O2"]) else { return };
    for (variant, minimum) in VARIANTS.map(|v| (v, 0)).into_iter().chain([(Variant::Timed, u64::MAX)]) {
        let (path, _) = program.plan(variant, minimum);
        let out = program.run("step", &path);
        assert!(out.status.success(), "{variant:?}: {:?} {}{}", out.status, text(&out.stdout), text(&out.stderr));
        let steps: u64 = text(&out.stdout).trim().strip_prefix("steps ").unwrap().parse().unwrap();
        assert!(steps > 50, "{variant:?}: {steps}");
    }
}

#[test]
fn signals_at_any_time() {
    let Some(program) = Program::compile("alarm", 0, &["-O2"]) else { return };
    for variant in [Variant::Paired, Variant::Callers] {
        let (path, _) = program.plan(variant, 0);
        let out = program.run("alarm", &path);
        assert!(out.status.success(), "{variant:?}: {:?} {}{}", out.status, text(&out.stdout), text(&out.stderr));
        assert_eq!(text(&out.stdout), "nested 1\n", "{variant:?}");
        println!("{}", text(&out.stderr));
    }
}

/// Prints what a call costs.
#[test]
#[ignore = "a measurement"]
fn costs() {
    let Some(program) = Program::compile("costs", 0, &["-O1"]) else { return };
    println!("two rdtsc {}", text(&run(&program.path, &["floor"]).stdout));
    println!("plain {}", text(&run(&program.path, &["fib", "-"]).stdout));
    for (variant, minimum) in VARIANTS.map(|v| (v, 0)).into_iter().chain([(Variant::Timed, u64::MAX)]) {
        let (path, _) = program.plan(variant, minimum);
        println!("{variant:?} {minimum} {}", text(&program.run("fib", &path).stdout));
    }
}
