//! An interpreter for tests: what a program would do, without a kernel and without root.
//!
//! ```text
//! Machine (clock, ids, memory, maps, rings) ──run(program, ctx)──► R0, or a Fault with its pc
//!    run: one call frame after the other   alu: arithmetic      helpers: what `call` does
//!    memory: regions and user memory       maps: tables, rings
//! ```
//!
//! Not a verifier: it follows the one path that the inputs take. On that path it is stricter than the kernel where
//! strictness finds mistakes: reading a register or stack byte that was never written, leaving memory by one byte, leaving a
//! ring record neither submitted nor discarded are faults.
//!
//! Invariant: no program and no input makes it panic or run longer than [`Machine::limit`] steps.

mod alu;
mod helpers;
mod maps;
mod memory;
mod places;
#[cfg(test)]
mod properties;
mod run;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use maps::{Kind, Map};
pub use memory::{Access, Memory};

use crate::program::Program;

/// Why a program stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Not an instruction that this interpreter knows.
    Opcode(u8),
    /// The register was never written, or is lost since the last call.
    Uninitialised(u8),
    /// There is no register of that number, or R10 was to be written.
    Register(u8),
    /// Nothing is at this address, or not that many bytes, or it may not be read or written.
    Memory {
        /// The address.
        address: u64,
        /// How many bytes from there.
        len: u64,
        /// It was a write.
        write: bool,
    },
    /// Stack bytes were read that were never written.
    StackUnwritten(u64),
    /// Stack and context want natural alignment.
    Unaligned(u64),
    /// A helper that the interpreter lacks.
    Helper(i32),
    /// A kernel function that [`Machine::kfuncs`] lacks.
    Kfunc(i32),
    /// No map has this descriptor.
    NoMap(i32),
    /// A helper's argument is of the wrong kind; the verifier would refuse it.
    Argument(&'static str),
    /// Control left the program.
    Pc,
    /// Functions nest deeper than eight (`MAX_CALL_FRAMES`, include/linux/bpf_verifier.h, 6.18).
    Depth,
    /// More than [`Machine::limit`] steps.
    Limit,
    /// The program ended with that many ring records neither submitted nor discarded.
    Unreleased(usize),
}

/// A cause and the slot where it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The slot.
    pub pc: usize,
    /// What went wrong.
    pub cause: Cause,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "instruction {}: {:?}", self.pc, self.cause)
    }
}
impl std::error::Error for Fault {}

/// What `get_ns_current_pid_tgid` answers, for the namespace (`dev`, `ino`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PidNs {
    /// Device of the namespace's file.
    pub dev: u64,
    /// Its inode.
    pub ino: u64,
    /// Thread there.
    pub tid: u32,
    /// Process there.
    pub tgid: u32,
}

/// A kernel function for tests: it gets R1 to R5, 0 where they were never written, and gives R0.
pub type Kfunc = fn(&mut Machine, [u64; 5]) -> u64;

/// The machine a program runs on. What is public may be set between runs; maps and memory stay from run to run.
#[derive(Clone, Debug)]
pub struct Machine {
    /// What `ktime_get_ns` gives next.
    pub time: u64,
    /// How far the clock advances at each read.
    pub tick: u64,
    /// `tgid << 32 | tid`.
    pub pid_tgid: u64,
    /// `gid << 32 | uid`.
    pub uid_gid: u64,
    /// The CPU.
    pub cpu: u32,
    /// The thread's name, padded with NULs.
    pub comm: [u8; 16],
    /// Address of the current task; [`Machine::new`] makes one of no bytes.
    pub task: u64,
    /// Address of the `struct pt_regs` of the current task in user space, for [`Machine::add_kernel`] to make.
    pub user_registers: u64,
    /// The attach cookie.
    pub cookie: u64,
    /// The pid namespace that `get_ns_current_pid_tgid` knows.
    pub pid_ns: Option<PidNs>,
    /// The kernel's part of the stack, innermost first.
    pub kernel_stack: Vec<u64>,
    /// The user's part of the stack, innermost first.
    pub user_stack: Vec<u64>,
    /// Steps that a run may take.
    pub limit: u64,
    /// How often `may_goto` does not jump in one run (`BPF_MAX_LOOPS`, include/linux/bpf.h, 6.18).
    pub loop_budget: u32,
    /// Kernel functions by BTF id.
    pub kfuncs: BTreeMap<i32, Kfunc>,
    /// What `seq_write` wrote.
    pub seq: Vec<u8>,
    /// Memory.
    pub memory: Memory,
    maps: BTreeMap<i32, Map>,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine::new()
    }
}

impl Machine {
    /// A machine with a task, a clock at 0 and nothing else.
    pub fn new() -> Machine {
        let mut memory = Memory::default();
        let task = memory.add(Vec::new(), Access::ReadOnly);
        Machine {
            time: 0,
            tick: 1,
            pid_tgid: 0,
            uid_gid: 0,
            cpu: 0,
            comm: [0; 16],
            task,
            user_registers: 0,
            cookie: 0,
            pid_ns: None,
            kernel_stack: Vec::new(),
            user_stack: Vec::new(),
            limit: 1_000_000,
            loop_budget: 8 << 20,
            kfuncs: BTreeMap::new(),
            seq: Vec::new(),
            memory,
            maps: BTreeMap::new(),
        }
    }

    /// Puts bytes into user memory, which only the helpers for that read.
    pub fn add_user(&mut self, address: u64, bytes: &[u8]) {
        self.memory.add_user(address, bytes);
    }

    /// Puts an object into kernel memory and gives its address.
    pub fn add_kernel(&mut self, bytes: &[u8], access: Access) -> u64 {
        self.memory.add(bytes.to_vec(), access)
    }

    /// Runs a program; `ctx` is what R1 points to, 8 bytes per argument for a raw tracepoint. Gives R0.
    pub fn run(&mut self, program: &Program, ctx: &[u8]) -> Result<u64, Fault> {
        run::run(self, helpers::call, &program.insns, ctx)
    }

    /// Runs a program whose context is an array of words.
    pub fn run_words(&mut self, program: &Program, ctx: &[u64]) -> Result<u64, Fault> {
        let bytes: Vec<u8> = ctx.iter().flat_map(|w| w.to_le_bytes()).collect();
        self.run(program, &bytes)
    }
}
