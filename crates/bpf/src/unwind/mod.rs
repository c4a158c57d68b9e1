//! User stacks in a program: the tables of the crate `unwind`, walked by eBPF.
//!
//! ```text
//!  user space fills                                              the program, frame by frame
//!  processes  hash[tgid]  { u32 mappings, u32 flags, i64 tls,    pc ─► mapping: that of the last frame, else a search of 7 steps
//!                           Mapping[128], sorted }                      │ pc - bias
//!  pages      array, one value: Page (u64) by number                    ├─► page ─► chunk, rows of the page
//!  chunks     array of arrays: chunk ─► one value of 1 MiB, Row (u32)   └─► search of 16 steps ─► number of the rule
//!  rules      array, one value: Rule (u64) by number             rule ─► CFA ─► rbp and return address, of 1 KiB of the stack ─► next
//!
//!  area       a map's value (area::SIZE bytes, one per CPU       the program leaves: area::RECORD, and counters of endings
//!             and per program that may interrupt another)
//! ```
//!
//! A generator makes a [`UserStacks`], calls [`UserStacks::call`] where a stack is wanted, with the address of the area in r1 and the
//! process's key in r2, and [`UserStacks::finish`] behind its last instruction. The program may be of any kind: registers come from
//! `bpf_task_pt_regs`. It needs Linux 5.17 (bpf_loop), and function records when it is loaded, as every program with callbacks does.
//!
//! One run at a time may use an area: a clock may interrupt any other program, and programs of uprobes may be preempted by each other. Who
//! calls claims the area before, as [`crate::scratch`] is claimed.
//!
//! Whatever the maps hold, the program ends: tables that contradict themselves cost frames and nothing else. Rows and pages are written
//! before the rules and mappings that lead to them, and never changed. A process is replaced by one map update; the hash may reuse the old
//! value at once, so that a stack which is walked just then may be cut or wrong. Adding a chunk to an array of maps waits for a grace
//! period of RCU. A child has a key of its own: user space copies its parent's value at fork, and removes it at exec.
//!
//! The walker in user space (`unwind::walk`) takes the same steps.
//!
//! Cost (Linux 6.18, a virtual machine): some 800 slots; a stack takes 0.7 µs, and 25 ns more for each frame of a known program.

pub mod area;
mod caller;
mod hidden;
mod mapping;
mod patched;
mod row;
mod start;
pub mod tasks;

use crate::asm::{Assembler, Label};
use crate::insn::{Alu, Cond, Reg::*, Size};
use area::*;
use unwind::stack::MAX_FRAMES;
use unwind::{Ended, Mapping};

/// The most mappings of a process.
pub const MAPPINGS: usize = 128;
/// Bytes of a process's value before its mappings: `{ u32 mappings, u32 flags, i64 tls }`. The program does not read the number: behind the
/// last mapping all entries are [`Mapping::ABSENT`]. `tls` is the distance of the agent's data of a thread from its `fs` base.
pub const PROCESS_HEAD: usize = 16;
/// Bytes of a process's value.
pub const PROCESS: usize = PROCESS_HEAD + MAPPINGS * Mapping::SIZE;
/// Flag of a process: code in no mapping of the table is a just-in-time compiler's. Its frames are guessed by rbp.
pub const GUESS_UNMAPPED: u32 = 1;

/// The value of a process; mappings must be sorted. None where there are too many.
pub fn process(flags: u32, tls: i64, mappings: &[Mapping]) -> Option<Vec<u8>> {
    let mut value = Vec::with_capacity(PROCESS);
    value.extend((mappings.len() as u32).to_le_bytes());
    value.extend(flags.to_le_bytes());
    value.extend(tls.to_le_bytes());
    let absent = MAPPINGS.checked_sub(mappings.len())?;
    for mapping in mappings.iter().chain(std::iter::repeat_n(&Mapping::ABSENT, absent)) {
        value.extend(mapping.to_words().iter().flat_map(|w| w.to_le_bytes()));
    }
    Some(value)
}

/// Maps, and what else a program is made for.
#[derive(Clone, Copy, Debug)]
pub struct Tables {
    /// Hash: key u32, value of [`PROCESS`] bytes. Preallocated where programs of perf events use it.
    pub processes: i32,
    /// Array with one value of `page_count` × 8 bytes.
    pub pages: i32,
    /// How many pages there is room for.
    pub page_count: u32,
    /// Array of maps: arrays with one value of 1 MiB.
    pub chunks: i32,
    /// Array with one value of `rule_count` × 8 bytes.
    pub rules: i32,
    /// How many rules there is room for.
    pub rule_count: u32,
    /// How many frames are kept at most, the innermost ones; [`MAX_FRAMES`] or less.
    pub frames: u16,
    /// Where the kernel keeps what uprobes replace: return addresses, instructions. None: such stacks end with
    /// [`Ended::NoMapping`].
    pub uprobes: Option<UprobeOffsets>,
    /// Where the kernel keeps a thread's memory map. None: no stack ends with [`Ended::NoMemory`].
    pub memory: Option<MemoryOffsets>,
    /// Offset of `fsbase` in `task_struct` (BTF), by which shadow stacks of traced functions are found. None: such stacks end with
    /// [`Ended::Stub`].
    pub fs_base: Option<i32>,
}

/// Offsets in the kernel's structures of memory maps (BTF).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryOffsets {
    /// `task_struct.mm`.
    pub mm: i32,
    /// `mm_struct.start_code`.
    pub start_code: i32,
}

/// Offsets in the kernel's structures of a thread with uprobes (BTF).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UprobeOffsets {
    /// `task_struct.utask`.
    pub utask: i32,
    /// `uprobe_task.return_instances`.
    pub first: i32,
    /// `uprobe_task.vaddr`.
    pub address: i32,
    /// `uprobe_task.xol_vaddr`.
    pub copy: i32,
    /// `return_instance.stack`.
    pub stack: i32,
    /// `return_instance.orig_ret_vaddr`.
    pub original: i32,
    /// `return_instance.next`.
    pub next: i32,
}

/// The functions of one program that walk user stacks.
#[derive(Clone, Debug)]
pub struct UserStacks {
    tables: Tables,
    function: Label,
    step: Label,
}

impl UserStacks {
    /// Nothing is emitted yet.
    pub fn new<E>(a: &mut Assembler<E>, tables: Tables) -> UserStacks {
        UserStacks { tables, function: a.new_label(), step: a.new_label() }
    }

    /// Walks the user stack of the current task in the area whose address is in r1; r2 is the key of its process in the table (its
    /// process id, in whichever namespace user space counts them). r0 = bytes of the record at [`area::RECORD`], of which there are at
    /// most [`unwind::stack::RECORD`]. Loses r1 to r5.
    pub fn call<E>(&self, a: &mut Assembler<E>) {
        a.call_local(self.function);
    }

    /// Emits the functions, behind the last instruction of the program.
    pub fn finish<E>(&self, a: &mut Assembler<E>) {
        a.bind(self.function);
        start::function(a, self);
        a.bind(self.step);
        step(a, &self.tables);
    }
}

/// Labels of the ends of a step.
struct Ends {
    /// By [`Ended`].
    ended: Vec<Label>,
    /// The next frame is in the area.
    more: Label,
    /// There are no rows: guess by rbp.
    guess: Label,
}

impl Ends {
    fn at(&self, ended: Ended) -> Label {
        self.ended[ended as usize]
    }
}

/// One frame, called back by bpf_loop with the addresses of the area and of the process's mappings. Result 0: go on.
///
/// r6 the area; r7 the process, then the offset of the CFA; r8 the address that is looked up; r9 the mapping, the page, the rule.
fn step<E>(a: &mut Assembler<E>, tables: &Tables) {
    let ended = Ended::ALL.iter().map(|_| a.new_label()).collect();
    let ends = Ends { ended, more: a.new_label(), guess: a.new_label() };
    a.load(Size::D, R6, R2, 0);
    a.load(Size::D, R7, R2, 8);
    let [unmapped, patched, in_stub] = std::array::from_fn(|_| a.new_label());
    mapping::find(a, unmapped);
    a.load(Size::W, R1, R9, mapping::FLAGS);
    a.alu(Alu::And, R1, (unwind::patched::STUBS | unwind::patched::MOVED) as i32);
    a.jump_if(Cond::Ne, R1, 0, patched);
    keep_frame(a, tables);
    row::place(a, &ends);
    a.bind(in_stub);
    row::rule(a, tables, &ends);
    caller::by_rule(a, &ends);
    a.bind(patched);
    patched::found(a, tables, &ends, in_stub);
    a.bind(ends.guess);
    caller::guessed(a, &ends);
    a.bind(unmapped);
    hidden::unmapped(a, tables, &ends);
    for (ended, label) in Ended::ALL.iter().zip(&ends.ended) {
        a.bind(*label);
        a.store(Size::D, R6, ENDED, *ended as i32);
        a.mov(R0, 1);
        a.exit();
    }
    a.bind(ends.more);
    a.mov(R0, 0);
    a.exit();
}

/// Adds the frame to the record; where that is full, the walk ends. Uses r1 to r4.
fn keep_frame<E>(a: &mut Assembler<E>, tables: &Tables) {
    let most = usize::from(tables.frames).min(MAX_FRAMES);
    let room = a.new_label();
    a.note("the frame");
    a.load(Size::D, R1, R6, COUNT);
    a.jump_if(Cond::Lt, R1, most as i32, room);
    a.mov(R0, 1);
    a.exit();
    a.bind(room);
    a.load(Size::D, R2, R6, PC);
    a.alu(Alu::Lsh, R2, 2);
    a.alu(Alu::Rsh, R2, 2);
    let plain = a.new_label();
    a.load(Size::D, R3, R6, BITS);
    a.jump_if(Cond::Eq, R3, 0, plain);
    a.alu(Alu::Or, R2, R3);
    a.alu(Alu::Rsh, R3, 63);
    a.load(Size::D, R4, R6, GUESSED);
    a.alu(Alu::Add, R4, R3);
    a.store(Size::D, R6, GUESSED, R4);
    a.bind(plain);
    a.mov(R3, R1);
    a.alu(Alu::Lsh, R3, 3);
    a.alu(Alu::Add, R3, R6);
    a.store(Size::D, R3, RECORD + unwind::stack::HEAD as i16, R2);
    hash_frame(a, R2);
    a.load(Size::D, R1, R6, COUNT);
    a.alu(Alu::Add, R1, 1);
    a.store(Size::D, R6, COUNT, R1);
}

/// Adds the frame in a register, r1 or r2, to the hash. Loses r0 to r4.
fn hash_frame<E>(a: &mut Assembler<E>, frame: crate::insn::Reg) {
    a.load(Size::D, R3, R6, HASH);
    mix(a, R3, frame, R0, R4);
    a.store(Size::D, R6, HASH, R3);
}

#[cfg(test)]
mod tests;
