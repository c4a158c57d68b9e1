//! Stacks of threads that are in calls: registers and a copy of the stack in, `process:stack` events and their ids out.
//!
//! ```text
//!  registers, of a stop or by a task iterator ──┐
//!  process_vm_readv: 64 KiB ────────────────────┼─► unwind::Walk ─► frames ─► id ─► reported once
//!  /proc/PID/maps ─► tables ────────────────────┘
//! ```
//!
//! What a process has mapped is read when it is first needed, again when it may have changed ([`Stacks::forget`]), and when an address
//! is in no mapping.

use super::code::{Building, Code, Files, id_of};
use super::copied::{Copied, ShadowStack};
use crate::own_events::Stack;
use std::collections::{HashMap, HashSet};
use sys::ptrace::FrameRegisters;
use unwind::walk::{Registers, Walk};

/// Bytes of a stack that are copied at once.
const COPY: usize = 64 << 10;
/// Processes; stacks whose ids are remembered.
const MOST_PROCESSES: usize = 4096;
const MOST_STACKS: usize = 1 << 20;

/// Calls that replace or end the program: their stacks are those of the entry.
const AT_ENTRY: [&str; 5] = ["execve", "execveat", "exit", "exit_group", "rt_sigreturn"];
/// Calls that change what is mapped.
const MAPPING: [&str; 5] = ["mmap", "munmap", "mremap", "mprotect", "pkey_mprotect"];

/// Whether the stack of a call is taken at its entry.
pub fn is_at_entry(call: &str) -> bool {
    AT_ENTRY.contains(&call)
}

/// Whether a call changes what is mapped.
pub fn changes_mappings(call: &str) -> bool {
    MAPPING.contains(&call)
}

/// The tables of all files, what each process has mapped, and the stacks that were reported.
#[derive(Default)]
pub struct Stacks {
    files: Files,
    processes: HashMap<i32, Code>,
    reported: HashSet<u64>,
    copy: Vec<u8>,
    frames: Vec<u64>,
}

impl Stacks {
    /// What the process has mapped is not known any more.
    pub fn forget(&mut self, pid: i32) {
        self.processes.remove(&pid);
    }

    /// What no process has mapped is known any more.
    pub fn forget_all(&mut self) {
        self.processes.clear();
    }

    /// The id of the stack of a thread (process, thread) that is in a call, at most `most` frames of it; 0: `report` has refused it. A stack
    /// is reported where it was not before. `build` makes tables of files.
    pub fn of(
        &mut self,
        (pid, tid): (i32, i32),
        of: FrameRegisters,
        most: usize,
        build: &mut Building<'_>,
        report: impl FnOnce(Stack<'_>) -> bool,
    ) -> u64 {
        let FrameRegisters { pc, by_number: registers, fs_base } = of;
        let (bp, sp) = (registers[6], registers[7]);
        self.copy.resize(COPY, 0);
        let copied = sys::mem::read(tid, sp, &mut self.copy).unwrap_or(0);
        let mut fresh = !self.processes.contains_key(&pid);
        let (mut ended, mut guessed);
        loop {
            if fresh {
                self.look_at(pid, build);
            }
            let Stacks { processes, copy, frames, .. } = self;
            let code = processes.get(&pid);
            let shadow = ShadowStack::new(tid, Some(fs_base));
            let target = Copied { tid, sp, registers, copy: &copy[..copied], code, reads: 0, shadow };
            let mut walk = Walk::new(target, Registers { pc, sp, bp }, most.min(unwind::stack::MAX_FRAMES));
            frames.clear();
            guessed = 0;
            for frame in walk.by_ref() {
                guessed += u64::from(frame.is_guessed());
                frames.push(frame.0);
            }
            ended = walk.ended() as u64;
            // Perhaps it was mapped since.
            if fresh || walk.ended() != unwind::Ended::NoMapping {
                break;
            }
            fresh = true;
        }
        let id = id_of(&self.frames, ended);
        if !self.reported.contains(&id) {
            if !report(Stack { numbers: [id, 0, ended, guessed], frames: &self.frames }) {
                return 0;
            }
            if self.reported.len() >= MOST_STACKS {
                self.reported.clear();
            }
            self.reported.insert(id);
        }
        id
    }

    /// Reads what a process has mapped.
    fn look_at(&mut self, pid: i32, build: &mut Building<'_>) {
        let code = Code::of(pid, &mut self.files, build).unwrap_or_default();
        if self.processes.len() >= MOST_PROCESSES {
            self.processes.clear();
        }
        self.processes.insert(pid, code);
    }
}
