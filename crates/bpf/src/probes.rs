//! The program of a probe that is no system call: where each field of its event comes from, and what it captures.
//!
//! ```text
//! attached to a tracepoint, a function, a timer ─► whose? ─► filter ─► fields ─► tails ─► the enabling's ring of this CPU
//! ```
//!
//! Each enabling has maps of its own: a scratch buffer, because one program can interrupt another on the same processor, and
//! rings, so that a flood of one enabling's events costs no other any.

use crate::asm::Label;
use crate::btf_offsets::BtfOffsets;
use crate::frame::USER_STACK;
use crate::frame::{Emitter, FRAMES, Generated, Lost, Maps, Session, field, program, reg, slot, state};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg, Reg::*, Size};
use crate::scratch;
use events::Schema;
use events::layout::Layout;

mod filter;

/// The most bytes of a string that is read, its NUL included.
pub const STRING: i32 = 256;
/// Where a number comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `size` bytes (1, 2, 4, 8) of the program's context at `off`.
    Context {
        /// Offset in the context.
        off: i16,
        /// Bytes.
        size: u8,
        /// Sign-extended.
        signed: bool,
    },
    /// A constant.
    Constant(i64),
    /// `size` bytes of the process's memory at the sum of registers and a displacement: the registers are 8 bytes of the context at
    /// these offsets, the second one is multiplied.
    User {
        /// A register.
        base: Option<i16>,
        /// A register and its factor.
        index: Option<(i16, u8)>,
        /// Displacement.
        disp: i64,
        /// Bytes.
        size: u8,
        /// Sign-extended.
        signed: bool,
    },
}

/// What is read beside a field's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// The string of the process at the address that the number is.
    UserString,
    /// The string of the kernel at that address.
    KernelString,
    /// The string in the context at `off`, at most so many bytes.
    ContextString {
        /// Offset in the context.
        off: i16,
    },
    /// The string of a `__data_loc` field: the word at `off` has its length and its offset.
    DataLoc {
        /// Offset of the word.
        off: i16,
    },
    /// The name of the current thread.
    Comm,
    /// Return addresses in the kernel: so many at most, without the first ones.
    KernelStack {
        /// At most so many.
        frames: u8,
        /// Frames that are skipped: the program's own.
        skip: u8,
    },
    /// Return addresses in the process.
    UserStack(u8),
    /// A string that the session's user may not see.
    Hidden,
}

/// A field of the event.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The number in the fixed part.
    pub value: Value,
    /// What follows the fixed part.
    pub tail: Option<Tail>,
}

impl Field {
    /// The field without anything in it: a number is 0, a string is empty and not read.
    pub fn hidden(self) -> Field {
        Field { value: Value::Constant(0), tail: self.tail.map(|_| Tail::Hidden) }
    }
}

/// Whose events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Those of the tasks of the session, or of all but its own in a system-wide session.
    Tasks,
    /// Those of any task that is running: of clocks.
    Anyone,
    /// Those of any task that is running, without its ids.
    Nobody,
}

/// What the program of a probe does.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// The class of its events.
    pub schema: &'a Schema,
    /// Its arguments, in order.
    pub fields: Vec<Field>,
    /// Whose events are wanted.
    pub whose: Whose,
    /// Which of them: typed for the class.
    pub filter: Option<lang::Filter>,
    /// Its events are of several classes with equal fields: the cookie of the place that was reached is the number of the class.
    pub by_cookie: bool,
}

/// `BUFFER` = the scratch buffer of this CPU, for its words; `out` where the session is over. `found`: it is set already.
fn going(e: &mut Emitter<'_>, found: bool, out: Label) {
    if !found {
        e.find(out);
    }
    e.words(R2);
    e.load(Size::D, R1, R2, scratch::STOPPED);
    e.jump_if(Cond::Ne, R1, 0, out);
}

/// `BUFFER` = the scratch buffer of this CPU, claimed; `out` where the session is over, or where another run has it, which is
/// counted.
fn ready(e: &mut Emitter<'_>, found: bool, out: Label) {
    let [taken, ready] = [e.new_label(), e.new_label()];
    going(e, found, out);
    e.claim(taken);
    e.jump(ready);
    e.bind(taken);
    e.count_lost(Lost::Unknown);
    e.jump(out);
    e.bind(ready);
}

/// The program that counts the entries of functions whose returns another one is for: the kernel follows a limited number of returns.
pub fn entered(maps: &Maps, offsets: &BtfOffsets, session: &Session, plan: &Plan<'_>) -> Generated {
    program(maps, offsets, session, |e, out| {
        e.store_slot(slot::CTX, R1);
        whose(e, plan, out);
        going(e, false, out);
        e.count(scratch::ENTERED);
    })
}

/// `to` = the address of the thread's name, on the stack.
fn comm(e: &mut Emitter<'_>, to: Reg) {
    e.slot_address(R1, slot::KEY);
    e.mov(R2, 16);
    e.call(Helper::GetCurrentComm);
    e.slot_address(to, slot::KEY);
}

/// r2 = the context of the program.
fn context(e: &mut Emitter<'_>) {
    e.load_slot(R2, slot::CTX);
}

fn size_of(bytes: u8) -> Size {
    match bytes {
        1 => Size::B,
        2 => Size::H,
        4 => Size::W,
        _ => Size::D,
    }
}

/// Extends the low `bytes` of a register whose other bits are zero.
fn extend(e: &mut Emitter<'_>, r: Reg, bytes: u8, signed: bool) {
    let shift = 64 - 8 * i32::from(bytes);
    if signed && shift > 0 {
        e.alu(Alu::Lsh, r, shift);
        e.alu(Alu::Arsh, r, shift);
    }
}

/// r1 = the value; 0 where it cannot be read.
fn value(e: &mut Emitter<'_>, value: &Value) {
    match value {
        Value::Constant(n) => e.constant(R1, *n as u64),
        Value::Context { off, size, signed } => {
            context(e);
            e.load(size_of(*size), R1, R2, *off);
            extend(e, R1, *size, *signed);
        }
        Value::User { base, index, disp, size, signed } => {
            context(e);
            e.constant(R3, *disp as u64);
            if let Some(base) = base {
                e.load(Size::D, R1, R2, *base);
                e.alu(Alu::Add, R3, R1);
            }
            if let Some((index, factor)) = index {
                e.load(Size::D, R1, R2, *index);
                e.alu(Alu::Mul, R1, i32::from(*factor));
                e.alu(Alu::Add, R3, R1);
            }
            e.store_slot(slot::WORD, 0);
            e.slot_address(R1, slot::WORD);
            e.mov(R2, i32::from(*size));
            e.call(Helper::ProbeReadUser);
            e.load(size_of(*size), R1, R10, slot::WORD);
            extend(e, R1, *size, *signed);
        }
    }
}

/// Reads a string at the address in r3; sets the capture bits of argument `i`.
fn string(e: &mut Emitter<'_>, helper: Helper, i: usize) {
    let [bad, good, done] = [e.new_label(), e.new_label(), e.new_label()];
    e.place(R1, 0);
    e.mov(R2, STRING);
    e.call(helper);
    e.jump_if(Cond::Sle, R0, 0, bad);
    e.jump_if(Cond::Le, R0, STRING, good);
    e.bind(bad);
    e.place(R1, 0);
    e.store(Size::B, R1, 0, 0);
    capture(e, i, 3);
    e.alu(Alu::Add, reg::END, 1);
    e.jump(done);
    e.bind(good);
    // A string that fills the buffer was cut: 2; else whole: 1.
    let whole = e.new_label();
    e.alu(Alu::Add, reg::END, R0);
    e.mov(R9, 1);
    e.jump_if(Cond::Lt, R0, STRING, whole);
    e.mov(R9, 2);
    e.bind(whole);
    if i < 6 {
        e.alu(Alu::Lsh, R9, 2 * i as i32);
        e.load_event(Size::H, R1, field::CAP);
        e.alu(Alu::Or, R1, R9);
        e.store_event(Size::H, field::CAP, R1);
    }
    e.bind(done);
}

fn capture(e: &mut Emitter<'_>, i: usize, bits: i32) {
    if i < 6 {
        e.load_event(Size::H, R1, field::CAP);
        e.alu(Alu::Or, R1, bits << (2 * i));
        e.store_event(Size::H, field::CAP, R1);
    }
}

/// Return addresses: `u16 n`, n × u64.
fn stack(e: &mut Emitter<'_>, i: usize, frames: u8, flags: i32) {
    let [bad, done] = [e.new_label(), e.new_label()];
    let most = i32::from(frames).clamp(1, FRAMES) * 8;
    context(e);
    e.mov(R1, R2);
    e.place(R2, 2);
    e.mov(R3, most);
    e.mov(R4, flags);
    e.call(Helper::GetStack);
    e.jump_if(Cond::Slt, R0, 0, bad);
    e.jump_if(Cond::Gt, R0, most, bad);
    e.place(R1, 0);
    e.mov(R2, R0);
    e.alu(Alu::Rsh, R2, 3);
    e.store(Size::H, R1, 0, R2);
    e.alu(Alu::Add, reg::END, R0);
    e.alu(Alu::Add, reg::END, 2);
    capture(e, i, 1);
    e.jump(done);
    // Where there is no stack, it has no frames.
    e.bind(bad);
    e.place(R1, 0);
    e.store(Size::H, R1, 0, 0);
    e.alu(Alu::Add, reg::END, 2);
    capture(e, i, 1);
    e.bind(done);
}

fn tail(e: &mut Emitter<'_>, i: usize, at: i16, tail: Tail) {
    match tail {
        Tail::UserString | Tail::KernelString => {
            e.load_event(Size::D, R3, at);
            let user = tail == Tail::UserString;
            string(e, if user { Helper::ProbeReadUserStr } else { Helper::ProbeReadKernelStr }, i);
        }
        Tail::ContextString { off } => {
            context(e);
            e.mov(R3, R2);
            e.alu(Alu::Add, R3, i32::from(off));
            string(e, Helper::ProbeReadKernelStr, i);
        }
        Tail::DataLoc { off } => {
            context(e);
            e.load(Size::W, R1, R2, off);
            e.alu(Alu::And, R1, 0xffff);
            e.mov(R3, R2);
            e.alu(Alu::Add, R3, R1);
            string(e, Helper::ProbeReadKernelStr, i);
        }
        Tail::Comm => {
            comm(e, R3);
            string(e, Helper::ProbeReadKernelStr, i);
        }
        Tail::KernelStack { frames, skip } => stack(e, i, frames, i32::from(skip)),
        Tail::UserStack(n) => stack(e, i, n, USER_STACK),
        Tail::Hidden => {
            e.place(R1, 0);
            e.store(Size::B, R1, 0, 0);
            e.alu(Alu::Add, reg::END, 1);
        }
    }
}

fn whose(e: &mut Emitter<'_>, plan: &Plan<'_>, out: Label) {
    if plan.whose == Whose::Tasks {
        e.state_or_new(out);
        e.load_state(R1, state::FLAGS);
        e.alu(Alu::And, R1, state::STARTING);
        e.jump_if(Cond::Ne, R1, 0, out);
    }
}

/// The program of a probe.
///
/// # Errors
/// [`crate::AsmError::Generator`] where the filter is too complex.
pub fn probe(maps: &Maps, offsets: &BtfOffsets, session: &Session, plan: &Plan<'_>) -> Generated {
    let layout = Layout::of(plan.schema);
    program(maps, offsets, session, |e, out| {
        e.store_slot(slot::CTX, R1);
        whose(e, plan, out);
        let found = e.stopped_before(out);
        let known = filter::before(e, plan, found, out);
        if !known.scratch {
            ready(e, found, out);
        }
        e.note("fixed part");
        if !known.time {
            e.call(Helper::KtimeGetNs);
            e.store_event(Size::D, field::TIME, R0);
        }
        if plan.by_cookie {
            context(e);
            e.mov(R1, R2);
            e.call(Helper::GetAttachCookie);
            e.store_event(Size::H, field::ID, R0);
        } else {
            e.store_event(Size::H, field::ID, i32::from(plan.schema.id));
        }
        e.store_event(Size::H, field::CAP, 0);
        match plan.whose {
            Whose::Tasks | Whose::Anyone => e.who(),
            Whose::Nobody => [12, 16].into_iter().for_each(|at| e.store_event(Size::W, at, 0)),
        }
        e.store_event(Size::W, 20, 0);
        for (field, (at, _)) in plan.fields.iter().zip(layout.args) {
            value(e, &field.value);
            e.store_event(Size::D, at as i16, R1);
        }
        e.mov(reg::END, layout.fixed as i32);
        for (i, (field, (at, _))) in plan.fields.iter().zip(layout.args).enumerate() {
            if let Some(t) = field.tail {
                e.note(format!("tail of {}", plan.schema.args.get(i).map_or("", |a| a.name)));
                tail(e, i, at as i16, t);
            }
        }
        e.output();
    })
}
