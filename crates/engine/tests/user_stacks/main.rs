//! User stacks that the program of `bpf::unwind` walks, against those that are known, and against the walker in user space.

mod lab;

use bpf::{Assembler, Label, Reg};
use lab::{Lab, Makes, walked};
use std::collections::HashMap;
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
    let started = Instant::now();
    let program = lab.program(pid, makes, no_guard);
    let generated = started.elapsed();
    let loaded = lab.load(&program, |insns| ProgramSpec::new(ProgramKind::PerfEvent, "tl_clock", insns));
    let about = info::program(&loaded).unwrap();
    eprintln!(
        "{makes:?}: {} slots, {} verified, generated in {generated:?}, loaded by {:?}",
        program.insns.len(),
        about.verified_insns,
        started.elapsed()
    );
    let cpus = sys::perf::online_cpus().unwrap();
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

/// From `leaf` outward; in between lies the library's sort.
fn check_known(names: &[&str]) {
    let mut want = vec!["leaf".to_string()];
    want.extend((0..30).map(|n| format!("f{n}")));
    want.push("called_back".into());
    let leaf = names.iter().position(|n| *n == "leaf").unwrap_or_else(|| panic!("{names:?}"));
    assert_eq!(names[leaf..leaf + 32], want[..], "{names:?}");
    let rest: Vec<&&str> = names[leaf + 32..].iter().filter(|n| !n.is_empty()).collect();
    assert_eq!(rest, [&"aligned", &"outer", &"main", &"_start"], "{names:?}");
}

#[test]
fn a_function_s_callers_are_those_of_the_source() {
    let Some((_alone, mut lab)) = start() else { return };
    let Some(path) = deep() else { return };
    for times in [false, true] {
        let mut child = Running::waiting(&path, &["loop", "3000"]);
        let pid = child.0.id();
        assert!(lab.add(pid));
        let names = Names::of(pid, &path);
        let makes = if times { Makes::Times } else { Makes::Records };
        let attached = uprobe(&lab, pid, makes, &path, "leaf", false);
        let mut ring = lab.reader();
        child.go_on();
        child.0.wait().unwrap();
        let mut stacks = Vec::new();
        ring.drain(|bytes| stacks.push(bytes.to_vec()));
        drop(attached);
        // qsort of two calls back once.
        assert_eq!(stacks.len(), 3000);
        if times {
            let number = |s: &[u8], at: usize| u64::from_le_bytes(*s[at..].first_chunk().unwrap());
            let mut ns: Vec<u64> = stacks.iter().map(|s| number(s, 8)).collect();
            ns.sort_unstable();
            let frames = number(&stacks[0], 0) - 1;
            eprintln!("{frames} frames: median {} ns, {} ns per frame", ns[ns.len() / 2], ns[ns.len() / 2] / frames);
            continue;
        }
        for stack in &stacks {
            let record = Record::parse(stack).unwrap();
            assert_eq!((record.ended, record.guessed), (Ended::Outermost, 0));
            check_known(&record.frames().map(|f| names.name(f)).collect::<Vec<_>>());
        }
    }
    eprintln!("{:?}", lab.endings());
}
