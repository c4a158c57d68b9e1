//! The programs that keep the table of processes right where user space would be too late: raw tracepoints at which a process begins, and
//! executes a program.
//!
//! ```text
//! sched_process_fork  a new process begins with a copy of its creator's mappings, before it first runs
//! task_rename         a process that executes a program has none: user space fills them in from perf's records, all of which come later
//! ```
//!
//! At `sched_process_exec` it would be too late to delete: the program's mappings are made before it, and user space may already have
//! written them. An exec is distinguished from other changes of a name by the new memory map, in which no program lies yet (`start_code` is 0).
//!
//! User space deletes processes that have ended: until its memory is freed, the stack of a process can be walked, and no tracepoint comes
//! between that and the time when its id may be another's.
//!
//! Processes that are not in the table are left alone, and so are their children: the table is the selection.

use crate::asm::{AsmError, Assembler, Label};
use crate::btf_offsets::Namespace;
use crate::helper::Helper;
use crate::insn::{Alu, Atomic, Cond, Reg, Reg::*, Size};
use crate::program::Program;

/// Offsets in the kernel's structures (BTF).
#[derive(Clone, Copy, Debug)]
pub struct TaskOffsets {
    /// `task_struct.tgid`.
    pub tgid: i32,
    /// `task_struct.mm`.
    pub mm: i32,
    /// `mm_struct.start_code`.
    pub start_code: i32,
    /// Keys are ids of this pid namespace; none: of the initial one.
    pub namespace: Option<Namespace>,
}

/// The maps that the programs use.
#[derive(Clone, Copy, Debug)]
pub struct TaskMaps {
    /// [`super::Tables::processes`].
    pub processes: i32,
    /// Array with one value of 8 bytes: how many new processes found no room.
    pub counter: i32,
}

/// Stack slots: what was read, two keys.
const READ: i16 = -8;
const KEY: i16 = -16;
const CHILD: i16 = -24;

/// r6 is the context in each program.
fn program(emit: impl FnOnce(&mut Assembler, Label)) -> Result<Program, AsmError> {
    let mut a = Assembler::new();
    let out = a.new_label();
    a.mov(R6, R1);
    emit(&mut a, out);
    a.bind(out);
    a.mov(R0, 0);
    a.exit();
    a.finish()
}

/// `to` = the number of `size` at `base` + `offset` in the kernel; 0 where that cannot be read. Loses r0 to r5.
fn peek(a: &mut Assembler, to: Reg, base: Reg, offset: i32, size: Size) {
    a.mov(R3, base);
    a.alu(Alu::Add, R3, offset);
    a.mov(R1, R10);
    a.alu(Alu::Add, R1, i32::from(READ));
    a.mov(R2, if size == Size::D { 8 } else { 4 });
    a.call(Helper::ProbeReadKernel);
    a.load(size, to, R10, READ);
}

/// Stores the key of the task in r7 in a slot; `out` where it has none. Loses r0 to r5 and r8.
fn key(a: &mut Assembler, at: &TaskOffsets, slot: i16, out: Label) {
    match at.namespace {
        None => peek(a, R8, R7, at.tgid, Size::W),
        Some(ns) => {
            peek(a, R8, R7, ns.group_leader.into(), Size::D);
            peek(a, R8, R8, ns.thread_pid.into(), Size::D);
            peek(a, R8, R8, ns.number.into(), Size::W);
        }
    }
    a.jump_if(Cond::Eq, R8, 0, out);
    a.store(Size::W, R10, slot, R8);
}

/// r1 = the table, r2 = a key.
fn process(a: &mut Assembler, maps: &TaskMaps, slot: i16) {
    a.map_fd(R1, maps.processes);
    a.mov(R2, R10);
    a.alu(Alu::Add, R2, i32::from(slot));
}

/// `sched_process_fork` (context: parent, child).
///
/// # Errors
/// None: the program does not depend on what it is made from.
pub fn fork(maps: &TaskMaps, at: &TaskOffsets) -> Result<Program, AsmError> {
    program(|a, out| {
        a.load(Size::D, R7, R6, 0);
        key(a, at, KEY, out);
        a.mov(R9, R8);
        a.load(Size::D, R7, R6, 8);
        key(a, at, CHILD, out);
        a.note("a new thread");
        a.jump_if(Cond::Eq, R8, R9, out);
        process(a, maps, KEY);
        a.call(Helper::MapLookup);
        a.jump_if(Cond::Eq, R0, 0, out);
        a.mov(R3, R0);
        process(a, maps, CHILD);
        a.mov(R4, 0);
        a.call(Helper::MapUpdate);
        a.jump_if(Cond::Eq, R0, 0, out);
        a.map_value(R1, maps.counter, 0);
        a.mov(R2, 1);
        a.atomic(Atomic::Add, Size::D, R1, 0, R2);
    })
}

/// `task_rename` (context: task, name).
///
/// # Errors
/// None: the program does not depend on what it is made from.
pub fn exec(maps: &TaskMaps, at: &TaskOffsets) -> Result<Program, AsmError> {
    program(|a, out| {
        a.load(Size::D, R7, R6, 0);
        peek(a, R8, R7, at.mm, Size::D);
        a.jump_if(Cond::Eq, R8, 0, out);
        peek(a, R8, R8, at.start_code, Size::D);
        a.jump_if(Cond::Ne, R8, 0, out);
        forget(a, maps, at, out);
    })
}

/// Deletes the process of the task in r7.
fn forget(a: &mut Assembler, maps: &TaskMaps, at: &TaskOffsets, out: Label) {
    key(a, at, KEY, out);
    process(a, maps, KEY);
    a.call(Helper::MapDelete);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interp::{Access, Machine};

    const MAPS: TaskMaps = TaskMaps { processes: 3, counter: 4 };
    const OFFSETS: TaskOffsets = TaskOffsets { tgid: 4, mm: 8, start_code: 8, namespace: None };

    fn machine(processes: u32) -> Machine {
        let mut m = Machine::new();
        m.add_hash(MAPS.processes, 4, 8, processes);
        m.add_array(MAPS.counter, 8, 1);
        m
    }

    fn kernel(m: &mut Machine, words: &[u64]) -> u64 {
        m.add_kernel(&words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>(), Access::Probe)
    }

    /// A task: process, where its program's code begins.
    fn task(m: &mut Machine, tgid: u64, start_code: Option<u64>) -> u64 {
        let mm = start_code.map_or(0, |at| kernel(m, &[0, at]));
        kernel(m, &[tgid << 32, mm])
    }

    fn known(m: &Machine) -> Vec<u32> {
        let mut keys: Vec<u32> =
            m.keys(MAPS.processes).iter().map(|k| u32::from_le_bytes(k[..].try_into().unwrap())).collect();
        keys.sort_unstable();
        keys
    }

    fn add(m: &mut Machine, tgid: u32, value: u64) {
        assert!(m.set_value(MAPS.processes, &tgid.to_le_bytes(), &value.to_le_bytes()));
    }

    #[test]
    fn a_child_begins_with_what_its_creator_has() {
        let program = fork(&MAPS, &OFFSETS).unwrap();
        let mut m = machine(2);
        add(&mut m, 10, 77);
        let [parent, child, thread, other] = [10, 11, 10, 12].map(|tgid| task(&mut m, tgid, Some(1)));
        for pair in [[other, child], [parent, thread]] {
            m.run_words(&program, &pair).unwrap();
            assert_eq!(known(&m), [10]);
        }
        m.run_words(&program, &[parent, child]).unwrap();
        assert_eq!(m.value(MAPS.processes, &11u32.to_le_bytes()).unwrap(), 77u64.to_le_bytes());
        assert_eq!(m.value(MAPS.counter, &[0; 4]).unwrap(), [0; 8]);
        // The table is full.
        m.run_words(&program, &[parent, other]).unwrap();
        assert_eq!((known(&m), m.value(MAPS.counter, &[0; 4]).unwrap()), (vec![10, 11], 1u64.to_le_bytes().to_vec()));
    }

    #[test]
    fn an_exec_is_a_new_memory_map() {
        let program = exec(&MAPS, &OFFSETS).unwrap();
        let mut m = machine(4);
        add(&mut m, 10, 1);
        for (start_code, left) in [(None, 1), (Some(0x5000), 1), (Some(0), 0)] {
            let task = task(&mut m, 10, start_code);
            m.run_words(&program, &[task, 0]).unwrap();
            assert_eq!(known(&m).len(), left, "{start_code:?}");
        }
    }

    #[test]
    fn keys_may_be_those_of_a_namespace() {
        let namespace = Some(Namespace { thread_pid: 8, group_leader: 16, number: 4 });
        let program = exec(&MAPS, &TaskOffsets { namespace, mm: 24, ..OFFSETS }).unwrap();
        let mut m = machine(4);
        add(&mut m, 5, 1);
        let pid = kernel(&mut m, &[5 << 32]);
        let leader = kernel(&mut m, &[0, pid]);
        let mm = kernel(&mut m, &[0, 0]);
        let task = kernel(&mut m, &[0, 0, leader, mm]);
        m.run_words(&program, &[task, 0]).unwrap();
        assert_eq!(known(&m), [] as [u32; 0]);
    }
}
