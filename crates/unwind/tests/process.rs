//! The stack of another process, with tables of the very files that it has mapped: every function of a program whose stack is known.
//!
//! The process waits in a system call. `/proc/PID/syscall` has its pc and its stack pointer; rbp is not there, and the code between
//! that call and the first function that has saved rbp does without.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};
use symbols::Elf;
use testkit::{compile, skip};
use unwind::build::{Module, Placed, Space};
use unwind::replay::{self, MAX, Replay};
use unwind::table::{CHUNK, Mapping, Row, Tables, find};
use unwind::walk::{Caller, Registers, Target, Walk};
use unwind::{Ended, Frame, Rule};

/// A child that is killed.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program in one of its modes, waiting.
fn start(program: &str, mode: &[&str]) -> Running {
    let child = Command::new(program).args(mode).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut child = Running(child);
    let mut said = [0; 5];
    child.0.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
    // It says that it is there just before it waits.
    until(child.0.id(), ") S ");
    child
}

/// Waits for a state of the process.
fn until(pid: u32, state: &str) {
    while !std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(state) {
        std::thread::yield_now();
    }
}

/// The pc and the stack pointer of a process that waits or was stopped.
fn registers(pid: u32) -> Option<Registers> {
    let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/syscall")) else {
        skip("kernel:proc-syscall", "no /proc/PID/syscall");
        return None;
    };
    let number = |n: &str| u64::from_str_radix(n.trim_start_matches("0x"), 16).unwrap();
    let numbers: Vec<u64> = text.split_whitespace().rev().take(2).map(number).collect();
    Some(Registers { pc: numbers[0], sp: numbers[1], bp: 0 })
}

struct Process {
    memory: File,
    mappings: Vec<Mapping>,
    space: Space,
    rows: Vec<Row>,
    /// Names of functions by the addresses that they have in the process.
    functions: Vec<(u64, u64, String)>,
}

impl Process {
    fn of(pid: u32) -> Process {
        let memory = File::open(format!("/proc/{pid}/mem")).unwrap();
        let mut p = Process {
            memory,
            mappings: Vec::new(),
            space: Space::new(64, 1 << 16),
            rows: Vec::new(),
            functions: Vec::new(),
        };
        let mut known: HashMap<String, Placed> = HashMap::new();
        let text = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let (range, bits, offset) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
            let Some(path) = words.nth(2).filter(|p| p.starts_with('/') && bits.contains('x')) else { continue };
            let (start, end) = range.split_once('-').unwrap();
            let hex = |s: &str| u64::from_str_radix(s, 16).unwrap();
            let (start, end, offset) = (hex(start), hex(end), hex(offset));
            let placed = known
                .entry(path.into())
                .or_insert_with(|| p.add(&Module::build(&std::fs::read(path).unwrap()).unwrap()));
            let mapping = placed.mapping(start, end, offset).unwrap();
            let elf = Elf::parse(&std::fs::read(path).unwrap()[..]).unwrap();
            // Functions lie in the file as they do in the mapping.
            let bias = |f: &symbols::elf::Function| (start + f.offset.wrapping_sub(offset), f.size, f.name.clone());
            let inside = |f: &&symbols::elf::Function| (offset..offset + (end - start)).contains(&f.offset);
            p.functions.extend(elf.functions().iter().filter(inside).map(bias));
            p.mappings.push(mapping);
        }
        p
    }

    fn add(&mut self, module: &Module) -> Placed {
        let rows = &mut self.rows;
        let placed = self.space.add(module, |first, some| {
            rows.resize((first as usize + some.len()).next_multiple_of(CHUNK), Row(0));
            rows[first as usize..][..some.len()].copy_from_slice(some);
        });
        placed.unwrap()
    }

    /// A walk that remembers is as one that does not, from each frame of the stack that is at a return address. How many frames there are.
    fn compare(&self, replay: &mut Replay, registers: Registers) -> usize {
        let tables = Tables { pages: self.space.pages(), rows: &self.rows, rules: self.space.rules().all() };
        let space = replay::Space { tables, mappings: &self.mappings, unmapped: None, generation: 1 };
        let mut walk = Walk::new(self, registers, MAX);
        let mut starts = Vec::new();
        while let Some(frame) = walk.next() {
            starts.extend((!frame.is_exact()).then(|| walk.registers()));
        }
        // Outward, inward, the innermost one.
        for start in starts.iter().chain(starts.iter().rev()).chain(starts.first()) {
            let mut walk = Walk::from(self, Caller::returning(*start), MAX);
            let frames: Vec<u64> = walk.by_ref().map(|f| f.0).collect();
            for again in [false, true] {
                let walked = replay.walk(&space, *start, |address| (&mut &*self).read(address));
                assert_eq!((replay.frames(), walked.ended), (&frames[..], walk.ended()));
                assert!(walked.same || !again);
            }
        }
        starts.len()
    }

    fn name(&self, frame: Frame) -> String {
        let at = frame.lookup();
        let found = self.functions.iter().find(|f| (f.0..f.0 + f.1).contains(&at));
        found.map_or_else(|| format!("{at:x}"), |f| f.2.clone())
    }
}

impl Target for &Process {
    fn read(&mut self, address: u64) -> Option<u64> {
        let mut word = [0; 8];
        self.memory.read_exact_at(&mut word, address).ok()?;
        Some(u64::from_le_bytes(word))
    }
    fn rule(&mut self, address: u64) -> Option<Rule> {
        let tables = Tables { pages: self.space.pages(), rows: &self.rows, rules: self.space.rules().all() };
        find(&self.mappings, address).map(|m| tables.rule(m, address))
    }
}

/// Names of the frames from `leaf` outward, and how the walk ended.
fn names(program: &str, mode: &str) -> Option<(Vec<String>, Ended)> {
    let mut child = start(program, &[mode]);
    let pid = child.0.id();
    let registers = registers(pid)?;
    let process = Process::of(pid);
    let mut walk = Walk::new(&process, registers, 512);
    let frames: Vec<Frame> = walk.by_ref().collect();
    assert!(frames.iter().all(|f| !f.is_guessed()) && frames[0].is_exact());
    let names: Vec<String> = frames.iter().map(|f| process.name(*f)).collect();
    // It still does what it did before.
    child.0.stdin.as_mut().unwrap().write_all(b"x").unwrap();
    assert!(child.0.wait().unwrap().success());
    Some((names, walk.ended()))
}

fn known() -> Vec<String> {
    let mut known = vec!["leaf".to_string()];
    known.extend((0..30).map(|n| format!("f{n}")));
    known.push("called_back".into());
    known
}

#[test]
fn each_frame_of_a_waiting_process_is_found() {
    let flags = ["-O2", "-fomit-frame-pointer"];
    let Some(program) = compile("gcc", "deep", "deep.c", &flags) else { return };
    for mode in ["block", "signal"] {
        let Some((names, ended)) = names(&program, mode) else { return };
        assert_eq!(ended, Ended::Outermost, "{names:?}");
        let leaf = names.iter().position(|n| n == "leaf").unwrap_or_else(|| panic!("{names:?}"));
        assert_eq!(names[leaf..leaf + 32], known()[..], "{names:?}");
        // Between these lies the library's sort.
        let rest: Vec<&str> = names[leaf + 32..]
            .iter()
            .map(String::as_str)
            .filter(|n| ["aligned", "outer", "main", "_start"].contains(n))
            .collect();
        assert_eq!(rest, ["aligned", "outer", "main", "_start"], "{names:?}");
        assert_eq!(names[..leaf].contains(&"handler".to_string()), mode == "signal", "{names:?}");
    }
}

#[test]
fn walks_that_remember_find_the_frames_of_a_process() {
    let flags = ["-O2", "-fomit-frame-pointer"];
    let Some(program) = compile("gcc", "deep", "deep.c", &flags) else { return };
    for mode in ["block", "signal"] {
        let child = start(&program, &[mode]);
        let Some(registers) = registers(child.0.id()) else { return };
        let frames = Process::of(child.0.id()).compare(&mut Replay::default(), registers);
        assert!(frames > 35, "{frames}");
    }
    // One that runs and is stopped anywhere.
    let mut child = start(&program, &["loop", "1000000000"]);
    let pid = child.0.id();
    let (process, mut replay) = (Process::of(pid), Box::new(Replay::EMPTY));
    let signal = |name: &str| assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
    child.0.stdin.as_mut().unwrap().write_all(b"x").unwrap();
    let mut deepest = 0;
    for _ in 0..100 {
        signal("-STOP");
        until(pid, ") T ");
        let Some(registers) = registers(pid) else { return };
        deepest = deepest.max(process.compare(&mut replay, registers));
        signal("-CONT");
    }
    assert!(deepest > 30, "{deepest}");
}
