//! `sys_enter` and `sys_exit`, and what all programs share: the frame, the lookups, the output.
//!
//! Registers in every program: r6 task storage, r7 scratch buffer of this CPU, r8 bytes of the event so far, r9 the row of the
//! call. The stack slots are named in [`slot`].

use super::filters::{self, Outcome};
use super::ops::{self, Callbacks};
use super::pause;
use super::plan::{self, AT_ENTRY, NO_ROW, WANTED};
use super::target::{Maps, Source, Target};
use super::whole::{began_before, every_state, leave_out, state_or_new};
use super::{held, signals, state};
use crate::asm::{Assembler, Label};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg, Reg::*, Size};
use crate::scratch::{self, Lost, front};
use events::layout::{CAP_32BIT, CAP_NO_RESULT, CAP_START_UNKNOWN, Layout};

/// Offsets of the registers in `struct pt_regs` (arch/x86/include/asm/ptrace.h): di, si, dx, r10, r8, r9.
pub(super) const ARG_REGISTERS: [i16; 6] = [112, 104, 96, 56, 72, 64];
/// Offset of ax, which holds the result, in the same.
pub(super) const AX: i16 = 80;

/// Stack slots, from r10.
pub mod slot {
    /// The context.
    pub const CTX: i16 = -16;
    /// Raw result.
    pub const RET: i16 = -24;
    /// The op under way, 16 bytes.
    pub const OP: i16 = -40;
    /// The argument's address.
    pub const ADDR: i16 = -48;
    /// A length.
    pub const LEN: i16 = -56;
    /// A word read from the target.
    pub const WORD: i16 = -64;
    /// The second half of a pair read from the target. WORD2 lies right above WORD.
    pub const WORD2: i16 = -72;
    /// Where a list started.
    pub const HEAD: i16 = -80;
    /// Loop counters.
    pub const I: i16 = -88;
    /// What became of the read.
    pub const CAP: i16 = -112;
    /// A key of 16 bytes.
    pub const KEY: i16 = -128;
    /// Spare.
    pub const TEMP: i16 = -144;
    /// Task storage, for functions that are called back.
    pub const STATE: i16 = -152;
    /// Scratch buffer, for the same.
    pub const SCRATCH: i16 = -160;
    /// Row, for the same.
    pub const ROW: i16 = -168;
    /// The scratch buffer, where this run has claimed it; else 0.
    pub const CLAIMED: i16 = -176;
    /// The context of the program, where captures need it.
    pub const CONTEXT: i16 = -184;
    /// The lowest of all.
    pub const LAST: i16 = CONTEXT;
}

/// Emits a program around `body`, which may jump to the label it is given to end without a word.
pub fn program(
    maps: &Maps,
    target: &Target,
    body: impl FnOnce(&mut Assembler, &mut Callbacks, Label),
) -> Result<crate::Program, crate::AsmError> {
    let mut a = Assembler::new();
    let mut cbs = Callbacks::new();
    let out = a.new_label();
    scratch::unclaimed(&mut a);
    if target.captures.is_some() {
        a.store(Size::D, R10, slot::CONTEXT, R1);
    }
    body(&mut a, &mut cbs, out);
    a.bind(out);
    scratch::release(&mut a);
    a.mov(R0, 0);
    a.exit();
    ops::emit_callbacks(&mut a, maps, target, &mut cbs);
    a.finish()
}

/// r0 = the storage of the task in r2; where it has none, NULL, or a `new` one of zeros.
pub fn storage(a: &mut Assembler, maps: &Maps, new: bool) {
    a.map_fd(R1, maps.tasks);
    a.mov(R3, 0);
    // BPF_LOCAL_STORAGE_GET_F_CREATE
    a.mov(R4, i32::from(new));
    a.call(Helper::TaskStorageGet);
}

/// r6 = the current task's storage, or out.
pub fn current_state(a: &mut Assembler, maps: &Maps, out: Label) {
    a.note("the current task's state; none: not traced");
    a.call(Helper::GetCurrentTaskBtf);
    a.mov(R2, R0);
    storage(a, maps, false);
    a.jump_if(Cond::Eq, R0, 0, out);
    a.mov(R6, R0);
}

/// r7 = the scratch buffer of this CPU, claimed. Where another run has it, the event is counted as `lost`, and the program ends.
pub fn claimed(a: &mut Assembler, maps: &Maps, lost: Lost, out: Label) {
    claimed_or(a, maps, out, |a| {
        scratch::count_lost(a, lost);
        a.jump(out);
    });
}

/// r7 = the scratch buffer of this CPU, claimed. Where another run has it, r7 is only found, and `taken` says what then happens: it
/// ends with a jump.
pub fn claimed_or(a: &mut Assembler, maps: &Maps, out: Label, taken: impl FnOnce(&mut Assembler)) {
    let [fresh, ready, busy] = std::array::from_fn(|_| a.new_label());
    a.load(Size::D, R7, R10, slot::CLAIMED);
    a.jump_if(Cond::Ne, R7, 0, ready);
    a.bind(fresh);
    scratch::find(a, maps, out);
    scratch::claim(a, busy);
    a.jump(ready);
    a.bind(busy);
    taken(a);
    a.bind(ready);
}

/// r9 = the row of call `nr` (in r1), or out.
pub fn row(a: &mut Assembler, maps: &Maps, out: Label) {
    a.jump_if(Cond::Ge, R1, maps.row_count, out);
    a.store(Size::W, R10, slot::KEY, R1);
    a.map_fd(R1, maps.rows);
    a.mov(R2, R10);
    a.alu(Alu::Add, R2, i32::from(slot::KEY));
    a.call(Helper::MapLookup);
    a.jump_if(Cond::Eq, R0, 0, out);
    a.mov(R9, R0);
}

/// Puts r8 bytes of the scratch buffer into the ring of this CPU; what finds it full is counted, by the class that the event says.
pub fn output(a: &mut Assembler, maps: &Maps) {
    let (dropped, done, found) = (a.new_label(), a.new_label(), a.new_label());
    a.note("into the ring of this CPU");
    scratch::count(a, scratch::SEEN);
    a.call(Helper::GetSmpProcessorId);
    ring_of_cpu(a, &maps.rings, 0, found);
    a.bind(found);
    a.jump_if(Cond::Gt, R8, scratch::MAX_EVENT, dropped);
    a.mov(R2, R7);
    a.mov(R3, R8);
    a.mov(R4, 1); // BPF_RB_NO_WAKEUP: the collector polls.
    a.call(Helper::RingbufOutput);
    a.jump_if(Cond::Eq, R0, 0, done);
    a.bind(dropped);
    let lost = match maps.shape.counts_classes() {
        true => {
            a.load(Size::H, R3, R7, 8);
            Lost::InR3
        }
        false => Lost::Unknown,
    };
    scratch::count_dropped(a, lost);
    a.bind(done);
}

/// r1 = the ring of the CPU in r0: a tree of comparisons, because a map of maps costs a grace period of RCU for each ring that
/// user space puts into it.
pub fn ring_of_cpu(a: &mut Assembler, rings: &[i32], first: i32, found: Label) {
    if let [ring] = rings {
        a.map_fd(R1, *ring);
        a.jump(found);
        return;
    }
    let (low, high) = rings.split_at(rings.len() / 2);
    let upper = a.new_label();
    let middle = first + low.len() as i32;
    a.jump_if(Cond::Ge, R0, middle, upper);
    ring_of_cpu(a, low, first, found);
    a.bind(upper);
    ring_of_cpu(a, high, middle, found);
}

/// `to` = the thread id of `task`, as the session's namespace knows it. Both are registers, and may be the same.
pub fn thread_id(a: &mut Assembler, target: &Target, to: Reg, task: Reg) {
    match target.namespace {
        None => a.load(Size::W, to, task, target.task_pid),
        Some(ns) => {
            a.load(Size::D, to, task, ns.thread_pid);
            a.load(Size::W, to, to, ns.number);
        }
    }
}

/// `to` = the process id of `task`, as the session's namespace knows it.
pub fn process_id(a: &mut Assembler, target: &Target, to: Reg, task: Reg) {
    match target.namespace {
        None => a.load(Size::W, to, task, target.task_tgid),
        Some(ns) => {
            a.load(Size::D, to, task, ns.group_leader);
            thread_id(a, target, to, to);
        }
    }
}

/// Stores the ids of the task in r1 at 12 and 16 of the scratch buffer.
pub fn whose(a: &mut Assembler, target: &Target) {
    thread_id(a, target, R2, R1);
    a.store(Size::W, R7, 12, R2);
    process_id(a, target, R2, R1);
    a.store(Size::W, R7, 16, R2);
}

/// Stores tid and pid of the current task, as the session's namespace knows them, at 12 and 16 of the scratch buffer.
pub fn who(a: &mut Assembler, target: &Target) {
    if target.namespace.is_some() {
        a.call(Helper::GetCurrentTaskBtf);
        a.mov(R1, R0);
        return whose(a, target);
    }
    a.call(Helper::GetCurrentPidTgid);
    a.store(Size::W, R7, 12, R0);
    a.alu(Alu::Rsh, R0, 32);
    a.store(Size::W, R7, 16, R0);
}

/// Number and arguments from the registers, with the context in r2.
fn arguments(a: &mut Assembler) {
    let no_frame = a.new_label();
    a.load(Size::D, R1, R2, 8);
    a.store(Size::D, R6, state::NR, R1);
    a.load(Size::D, R3, R2, 0);
    for (i, reg) in ARG_REGISTERS.iter().enumerate() {
        a.load(Size::D, R4, R3, *reg);
        a.store(Size::D, R6, state::ARGS + 8 * i as i16, R4);
    }
    // rt_sigreturn's mask is in the signal frame: see the ptrace backend's SIGFRAME_MASK.
    a.jump_if(Cond::Ne, R1, 15, no_frame);
    a.load(Size::D, R4, R3, 152);
    a.alu(Alu::Add, R4, 296);
    a.store(Size::D, R6, state::ARGS, R4);
    a.bind(no_frame);
}

/// The program for `sys_enter` (tp_btf; context: pt_regs, number).
pub fn sys_enter(maps: &Maps, target: &Target, source: Source) -> Result<crate::Program, crate::AsmError> {
    const TS_COMPAT: i32 = 2; // arch/x86/include/asm/thread_info.h
    program(maps, target, |a, cbs, out| {
        let native = a.new_label();
        a.store(Size::D, R10, slot::CTX, R1);
        // What is not known of the call then is found at its end.
        every_state(a, maps, target, out, out);
        leave_out(a, target, out);
        a.call(Helper::GetCurrentTaskBtf);
        a.load(Size::W, R2, R0, target.thread_status);
        a.load(Size::D, R1, R6, state::FLAGS);
        a.alu(Alu::And, R1, state::STARTING);
        a.alu(Alu::Or, R1, state::IN_CALL);
        a.alu(Alu::And, R2, TS_COMPAT);
        a.jump_if(Cond::Eq, R2, 0, native);
        a.alu(Alu::Or, R1, state::COMPAT);
        a.bind(native);
        a.store(Size::D, R6, state::FLAGS, R1);
        a.note("number, arguments, start");
        a.load(Size::D, R2, R10, slot::CTX);
        match source {
            Source::All => arguments(a),
            Source::Single(n) => {
                a.load(Size::W, R1, R2, 8);
                a.store(Size::D, R6, state::NR, R1);
                for i in 0..i16::from(n.min(6)) {
                    a.load(Size::D, R4, R2, 16 + 8 * i);
                    a.store(Size::D, R6, state::ARGS + 8 * i, R4);
                }
            }
        }
        a.store(Size::D, R6, state::LEN, 0);
        a.store(Size::D, R6, state::CAPS, 0);
        filters::at_entry(a, maps, target, out);
        a.call(Helper::GetSmpProcessorId);
        a.store(Size::D, R6, state::CPU, R0);
        a.call(Helper::KtimeGetNs);
        a.store(Size::D, R6, state::START, R0);
        a.load(Size::D, R1, R6, state::FLAGS);
        a.alu(Alu::And, R1, state::COMPAT);
        a.jump_if(Cond::Ne, R1, 0, out);
        a.load(Size::D, R1, R6, state::NR);
        row(a, maps, out);
        a.load(Size::H, R1, R9, plan::FLAGS);
        a.alu(Alu::And, R1, i32::from(AT_ENTRY | WANTED));
        pause::not_read(a, target);
        a.jump_if(Cond::Ne, R1, i32::from(AT_ENTRY | WANTED), out);
        a.note("tails of entry");
        claimed_or(a, maps, out, |a| {
            a.load(Size::D, R1, R6, state::FLAGS);
            a.alu(Alu::Or, R1, state::ENTRY_LOST);
            a.store(Size::D, R6, state::FLAGS, R1);
            a.jump(out);
        });
        a.mov(R8, 0);
        a.mov(R1, 0);
        ops::set_caps(a, R1);
        a.store(Size::D, R10, slot::RET, 0);
        a.mov(R1, 0);
        ops::set_result(a);
        a.mov(R1, 0);
        a.load(Size::B, R2, R9, plan::N_IN);
        ops::choose(a);
        ops::run(a, cbs, ops::Nested::Strings, out);
        a.jump_if(Cond::Gt, R8, state::ROOM, out);
        a.jump_if(Cond::Eq, R8, 0, out);
        a.mov(R1, R6);
        a.alu(Alu::Add, R1, i32::from(state::TAILS));
        a.mov(R2, R8);
        a.mov(R3, R7);
        a.call(Helper::ProbeReadKernel);
        a.store(Size::D, R6, state::LEN, R8);
        ops::get_caps(a, R1);
        a.store(Size::D, R6, state::CAPS, R1);
    })
}

/// Writes the fixed part of the call's event into the scratch buffer, and sets r8 to its length.
fn fixed(a: &mut Assembler, target: &Target) {
    a.note("fixed part");
    if !filters::timed(target) {
        a.call(Helper::KtimeGetNs);
        a.store(Size::D, R7, 0, R0);
    }
    a.load(Size::H, R1, R9, plan::ID);
    a.store(Size::H, R7, 8, R1);
    who(a, target);
    // All are stored as if they were wide, without a branch for the verifier to follow: what is behind a narrow one is stored
    // later. An argument that does not exist goes where the tails will be.
    for i in 0..6i16 {
        a.load(Size::H, R2, R9, plan::ARGS + 2 * i);
        a.alu(Alu::And, R2, 0x7f);
        a.alu(Alu::Add, R2, R7);
        a.load(Size::D, R1, R6, state::ARGS + 8 * i);
        a.store(Size::D, R2, 0, R1);
    }
    if target.captures.is_some() {
        a.mov(R1, 1);
        for i in 0..plan::CAPTURES as i16 {
            a.load(Size::H, R2, R9, plan::CAPTURED + 2 * i);
            a.alu(Alu::And, R2, 0x7f);
            a.alu(Alu::Add, R2, R7);
            a.store(Size::D, R2, 0, R1);
        }
    }
    a.load(Size::D, R1, R6, state::START);
    a.store(Size::D, R7, 24, R1);
    ops::result(a, R1);
    a.store(Size::D, R7, 32, R1);
    // Processors at entry and exit.
    let known = a.new_label();
    a.load(Size::B, R2, R9, plan::CPU);
    a.alu(Alu::And, R2, 0x7f);
    a.alu(Alu::Add, R2, R7);
    a.load(Size::D, R1, R6, state::CPU);
    a.store(Size::H, R2, 0, R1);
    a.store(Size::D, R10, slot::TEMP, R2);
    a.mov(R0, -1);
    ops::get_ended(a, R1);
    a.jump_if(Cond::Ne, R1, 0, known);
    a.call(Helper::GetSmpProcessorId);
    a.bind(known);
    a.load(Size::D, R2, R10, slot::TEMP);
    a.store(Size::H, R2, 2, R0);
    a.load(Size::B, R8, R9, plan::FIXED);
    a.alu(Alu::And, R8, 0x7f);
}

/// The tails of the event: those of entry as they were read then, or else read now, and those of exit.
fn tails(a: &mut Assembler, cbs: &mut Callbacks, drop: Label) {
    let run = a.new_label();
    a.load(Size::D, R1, R6, state::CAPS);
    ops::set_caps(a, R1);
    a.mov(R1, 0);
    a.load(Size::B, R2, R9, plan::N);
    ops::choose(a);
    // An execve that failed has left the memory as it was, and has faulted its pages in: read it now.
    let [keep, execve] = [a.new_label(), a.new_label()];
    ops::result(a, R2);
    a.jump_if(Cond::Sge, R2, 0, keep);
    a.load(Size::D, R2, R6, state::NR);
    a.jump_if(Cond::Eq, R2, 59, execve);
    a.jump_if(Cond::Ne, R2, 322, keep);
    a.bind(execve);
    a.store(Size::D, R6, state::LEN, 0);
    a.mov(R1, 0);
    ops::set_caps(a, R1);
    a.bind(keep);
    a.load(Size::D, R2, R6, state::LEN);
    a.jump_if(Cond::Eq, R2, 0, run);
    a.jump_if(Cond::Gt, R2, state::ROOM, run);
    a.store(Size::D, R10, slot::LEN, R2);
    a.mov(R1, R7);
    a.alu(Alu::Add, R1, R8);
    a.mov(R3, R6);
    a.alu(Alu::Add, R3, i32::from(state::TAILS));
    a.call(Helper::ProbeReadKernel);
    a.load(Size::D, R2, R10, slot::LEN);
    a.alu(Alu::Add, R8, R2);
    a.load(Size::B, R1, R9, plan::N_IN);
    a.load(Size::B, R2, R9, plan::N);
    ops::choose(a);
    a.bind(run);
    ops::run(a, cbs, ops::Nested::All, drop);
}

/// `to` = the pointer at `base + off` of the kernel's memory, 0 where it cannot be read. Not a load through a typed pointer: for
/// each of those the verifier searches all of the kernel's types by name, three times, which takes a millisecond.
pub fn follow(a: &mut Assembler, to: Reg, base: Reg, off: i16) {
    super::iter::peek(a, slot::HEAD, 8, base, i32::from(off));
    a.load(Size::D, to, R10, slot::HEAD);
}

/// The event of the call in r6, with the row in r9: at its end, or at that of its task, as [`ops::set_ended`] and
/// [`ops::set_result`] have said. Emitted once, because the verifier looks at the ops once for each place from which they are run.
pub fn call_event(a: &mut Assembler, maps: &Maps, cbs: &mut Callbacks, target: &Target) {
    let [drop, done, returned] = [a.new_label(), a.new_label(), a.new_label()];
    fixed(a, target);
    tails(a, cbs, drop);
    ops::get_ended(a, R2);
    ops::get_caps(a, R1);
    a.jump_if(Cond::Eq, R2, 0, returned);
    a.alu(Alu::Or, R1, i32::from(CAP_NO_RESULT));
    a.bind(returned);
    attached_bit(a);
    a.store(Size::H, R7, 10, R1);
    output(a, maps);
    a.jump(done);
    a.bind(drop);
    a.note("too long for the scratch buffer");
    a.load(Size::H, R3, R7, 8);
    scratch::count_lost(a, Lost::InR3);
    a.bind(done);
}

/// Leaves a call open that was interrupted only because its thread is about to die (exit_group, a fatal signal, another thread's
/// execve): it has no result, and the end of the task tells of it.
fn cut_off(a: &mut Assembler, target: &Target, out: Label) {
    const SIGNAL_GROUP_EXIT: i32 = 4; // include/linux/sched/signal.h
    let goes_on = a.new_label();
    a.jump_if(Cond::Sgt, R2, -512, goes_on);
    a.jump_if(Cond::Slt, R2, -516, goes_on);
    // The thread that is given the signal which ends them all returns first.
    a.load(Size::D, R1, R6, state::HELD);
    a.jump_if(Cond::Eq, R1, held::FATAL, goes_on);
    a.call(Helper::GetCurrentTaskBtf);
    follow(a, R9, R0, target.task_signal);
    follow(a, R2, R9, target.signal_flags);
    a.alu(Alu::And, R2, SIGNAL_GROUP_EXIT);
    a.jump_if(Cond::Ne, R2, 0, out);
    follow(a, R2, R9, target.signal_exec);
    a.jump_if(Cond::Ne, R2, 0, out);
    a.bind(goes_on);
}

/// Adds to r1 the mark of a call that was in flight at attach.
fn attached_bit(a: &mut Assembler) {
    let known = a.new_label();
    a.load(Size::D, R2, R6, state::FLAGS);
    a.alu(Alu::And, R2, state::ATTACHED);
    a.jump_if(Cond::Eq, R2, 0, known);
    a.alu(Alu::Or, R1, i32::from(CAP_START_UNKNOWN));
    a.load(Size::D, R2, R6, state::FLAGS);
    a.alu(Alu::And, R2, !state::ATTACHED);
    a.store(Size::D, R6, state::FLAGS, R2);
    a.bind(known);
}

/// A call that no row describes, or a 32-bit one: number, architecture, registers. The address of the registers is in CTX.
fn raw_event(a: &mut Assembler, target: &Target) {
    const REGISTERS: i32 = 168;
    const ARCH_X86_64: u64 = 0xc000_003e;
    const ARCH_I386: u64 = 0x4000_0003;
    // 32-bit calls take their arguments from bx cx dx si di bp (arch/x86/include/asm/syscall.h).
    const ARG_REGISTERS_32: [i16; 6] = [40, 88, 96, 104, 112, 32];
    let schema = &events::generated::C_RAW;
    let layout = Layout::of(schema);
    let [compat, ready] = [a.new_label(), a.new_label()];
    let at = |i: usize| layout.args[i].0 as i16;
    a.note("a call without a row");
    a.call(Helper::KtimeGetNs);
    a.store(Size::D, R7, 0, R0);
    a.store(Size::H, R7, 8, i32::from(schema.id));
    who(a, target);
    for (from, to) in [(state::START, layout.start as i16), (state::NR, at(0))] {
        a.load(Size::D, R1, R6, from);
        a.store(if from == state::NR { Size::W } else { Size::D }, R7, to, R1);
    }
    a.load(Size::D, R1, R10, slot::RET);
    a.store(Size::D, R7, layout.ret as i16, R1);
    a.load(Size::D, R1, R6, state::CPU);
    a.store(Size::H, R7, layout.cpu.0 as i16, R1);
    a.call(Helper::GetSmpProcessorId);
    a.store(Size::H, R7, layout.cpu.1 as i16, R0);
    a.load(Size::D, R1, R6, state::FLAGS);
    a.alu(Alu::And, R1, state::COMPAT);
    a.jump_if(Cond::Ne, R1, 0, compat);
    a.store(Size::H, R7, 10, 0);
    a.constant(R1, ARCH_X86_64);
    a.store(Size::W, R7, at(1), R1);
    for i in 0..6usize {
        a.load(Size::D, R1, R6, state::ARGS + 8 * i as i16);
        a.store(Size::D, R7, at(2 + i), R1);
    }
    a.jump(ready);
    a.bind(compat);
    a.store(Size::H, R7, 10, i32::from(CAP_32BIT));
    a.constant(R1, ARCH_I386);
    a.store(Size::W, R7, at(1), R1);
    // The registers, behind the event.
    a.mov(R1, R7);
    a.alu(Alu::Add, R1, i32::from(front::REGISTERS));
    a.mov(R2, REGISTERS);
    a.load(Size::D, R3, R10, slot::CTX);
    a.call(Helper::ProbeReadKernel);
    for (i, reg) in ARG_REGISTERS_32.iter().enumerate() {
        a.load(Size::D, R1, R7, front::REGISTERS + *reg);
        a.store(Size::D, R7, at(2 + i), R1);
    }
    a.bind(ready);
    a.mov(R8, layout.fixed as i32);
}

/// Counts the call in r6, of which nothing could be read at its entry, as lost; falls through.
pub(super) fn entry_lost(a: &mut Assembler, maps: &Maps, out: Label) {
    a.note("its entry found the scratch buffer taken");
    a.load(Size::D, R1, R6, state::NR);
    row(a, maps, out);
    scratch::find(a, maps, out);
    a.load(Size::H, R3, R9, plan::ID);
    scratch::count_lost(a, Lost::InR3);
}

/// The program for `sys_exit`. From [`Source::All`] (raw tracepoint; context: pt_regs) it is also that of
/// [`super::exit`] (context: task), because it is the longest: the verifier then reads it once. The current task tells the two
/// contexts apart.
pub fn sys_exit(maps: &Maps, target: &Target, source: Source) -> Result<crate::Program, crate::AsmError> {
    program(maps, target, |a, cbs, out| {
        let [event, told, raw_call, task_ends, ended, returned, lost] = std::array::from_fn(|_| a.new_label());
        let shared = (source == Source::All).then(|| signals::Shared { show: a.new_label(), shown: a.new_label() });
        a.store(Size::D, R10, slot::CTX, R1);
        state_or_new(a, maps, target, out);
        if source == Source::All {
            a.call(Helper::GetCurrentTask);
            a.load(Size::D, R2, R10, slot::CTX);
            if target.end_has_two {
                a.load(Size::D, R3, R2, 8);
                a.store(Size::D, R10, slot::RET, R3);
            }
            a.load(Size::D, R2, R2, 0);
            a.store(Size::D, R10, slot::CTX, R2);
            a.jump_if(Cond::Eq, R0, R2, task_ends);
        }
        if target.whole {
            began_before(a, maps, target, source, out);
        }
        a.load(Size::D, R1, R6, state::FLAGS);
        a.mov(R2, R1);
        a.alu(Alu::And, R2, state::IN_CALL | state::STARTING);
        // A child's first return has no entry.
        a.jump_if(Cond::Ne, R2, state::IN_CALL, out);
        a.load(Size::D, R2, R10, slot::CTX);
        match source {
            Source::All if target.end_has_two => a.load(Size::D, R2, R10, slot::RET),
            Source::All => follow(a, R2, R2, AX),
            Source::Single(_) => a.load(Size::D, R2, R2, 16),
        }
        a.store(Size::D, R6, state::RET, R2);
        a.store(Size::D, R10, slot::RET, R2);
        cut_off(a, target, out);
        a.load(Size::D, R1, R6, state::FLAGS);
        a.mov(R3, R1);
        a.alu(Alu::And, R3, !(state::IN_CALL | state::REJECTED));
        a.store(Size::D, R6, state::FLAGS, R3);
        if filters::decide_at_entry(target) {
            a.jump_if(Cond::Set, R1, state::REJECTED, returned);
        }
        a.jump_if(Cond::Set, R1, state::ENTRY_LOST, lost);
        a.alu(Alu::And, R1, state::COMPAT);
        a.jump_if(Cond::Ne, R1, 0, raw_call);
        a.load(Size::D, R1, R6, state::NR);
        row(a, maps, raw_call);
        a.load(Size::H, R1, R9, plan::FLAGS);
        a.mov(R2, R1);
        a.alu(Alu::And, R1, i32::from(NO_ROW));
        a.jump_if(Cond::Ne, R1, 0, raw_call);
        a.alu(Alu::And, R2, i32::from(WANTED));
        a.jump_if(Cond::Eq, R2, 0, returned);
        claimed_or(a, maps, out, |a| {
            a.load(Size::H, R3, R9, plan::ID);
            scratch::count_lost(a, Lost::InR3);
            a.jump(out);
        });
        if target.names.is_some() {
            ops::names::made(a, cbs);
        }
        pause::call_is_held_back(a, target, told);
        filters::before(a, target, Outcome::Returned, told);
        ops::set_ended(a, false);
        a.load(Size::D, R1, R10, slot::RET);
        ops::set_result(a);
        a.bind(event);
        call_event(a, maps, cbs, target);
        if source == Source::All {
            ops::get_ended(a, R1);
            a.jump_if(Cond::Ne, R1, 0, ended);
        }
        a.bind(told);
        if target.names.is_some() {
            ops::names::changed(a, target, cbs);
        }
        a.jump(returned);
        if source == Source::All {
            a.bind(task_ends);
            super::events::reached_its_end(a, maps, target, out);
            super::events::unfinished(a, maps, target, event, ended, out);
            a.bind(ended);
            super::events::end(a, maps, target, shared, out);
            a.jump(out);
        }
        a.bind(raw_call);
        if target.unknown && source == Source::All {
            claimed(a, maps, Lost::Class(events::generated::C_RAW.id), out);
            pause::raw_is_held_back(a, target, returned);
            raw_event(a, target);
            a.load(Size::H, R1, R7, 10);
            attached_bit(a);
            a.store(Size::H, R7, 10, R1);
            output(a, maps);
        }
        a.jump(returned);
        a.bind(lost);
        entry_lost(a, maps, out);
        a.bind(returned);
        signals::after_call(a, maps, target, shared, out);
    })
}
