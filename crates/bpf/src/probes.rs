//! The program of a probe that is no system call: where each field of its event comes from, and what it takes along.
//!
//! ```text
//! attached to a tracepoint, a function, a timer ─► whose? ─► filter ─► fields ─► tails ─► the enabling's ring of this CPU
//! ```
//!
//! Each enabling has maps of its own: a scratch buffer, because one program can interrupt another on the same processor, and
//! rings, so that a flood of one enabling's events costs no other any.

mod filter;

use crate::asm::{Assembler, Label};
use crate::calls::emit::{output, program, slot, who};
use crate::calls::pause;
use crate::calls::whole::state_or_new;
use crate::calls::{Maps, Target, state};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg, Reg::*, Size};
use crate::scratch::{self, Lost, Shape};
use events::Schema;
use events::layout::{CAP, Layout};
use events::schema::FIRST_CAPS;

/// The most bytes of a string that is read, its NUL included.
pub const STRING: i32 = 256;
/// The most frames of a stack.
pub const FRAMES: i32 = 127;

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
    /// The same.
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
        /// Frames that are left out: the program's own.
        skip: u8,
    },
    /// Return addresses in the process.
    UserStack(u8),
    /// A string that is not shown to whoever has started the session.
    Hidden,
}

/// A field of the event.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The number in the fixed part.
    pub value: Value,
    /// What stands behind the fixed part.
    pub tail: Option<Tail>,
}

/// Whose events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Those of the tasks of the session, or of all but its own on a whole machine.
    Tasks,
    /// Those of whatever task is there: of clocks.
    Anyone,
    /// The same, and they do not say which task that is.
    Nobody,
}

impl Tail {
    /// The most bytes that it takes behind the fixed part.
    fn most(self) -> usize {
        match self {
            Tail::KernelStack { frames, .. } | Tail::UserStack(frames) => 2 + 8 * usize::from(frames),
            Tail::Hidden => 1,
            _ => STRING as usize,
        }
    }
}

/// What a program is to do.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// The class of its events.
    pub schema: &'a Schema,
    /// Its arguments, in order.
    pub fields: Vec<Field>,
    /// Whose events.
    pub whose: Whose,
    /// Which of them: typed for the class.
    pub filter: Option<lang::Filter>,
    /// It stands for several classes of the same fields: the cookie of the place that was reached is the number of its class.
    pub by_cookie: bool,
}

impl Plan<'_> {
    /// What its scratch buffers are made for.
    pub fn shape(&self, target: &Target) -> Shape {
        let tails: usize = self.fields.iter().filter_map(|f| f.tail).map(Tail::most).sum();
        let event = Layout::of(self.schema).fixed + tails;
        Shape::of_probe(event.max(self.filter.as_ref().map_or(0, |f| filter::room(f, target))))
    }
}

/// r7 = the scratch buffer of this CPU, for its words; `out` where the session is over. `found`: r7 is it already.
fn going(a: &mut Assembler, maps: &Maps, found: bool, out: Label) {
    if !found {
        scratch::find(a, maps, out);
    }
    scratch::words(a, R2);
    a.load(Size::D, R1, R2, scratch::STOPPED);
    a.jump_if(Cond::Ne, R1, 0, out);
}

/// r7 = the scratch buffer of this CPU, claimed; `out` where the session is over, or where another run has it, which is counted.
fn ready(a: &mut Assembler, maps: &Maps, found: bool, out: Label) {
    let [taken, ready] = [a.new_label(), a.new_label()];
    going(a, maps, found, out);
    scratch::claim(a, taken);
    a.jump(ready);
    a.bind(taken);
    scratch::count_lost(a, Lost::Unknown);
    a.jump(out);
    a.bind(ready);
}

/// The program that counts the entries of functions whose returns another one is for: the kernel follows only so many returns.
pub fn entered(maps: &Maps, target: &Target, plan: &Plan<'_>) -> Result<crate::Program, crate::AsmError> {
    program(maps, target, |a, _, out| {
        a.store(Size::D, R10, slot::CTX, R1);
        whose(a, maps, target, plan, out);
        going(a, maps, false, out);
        scratch::count(a, scratch::ENTERED);
    })
}

/// `to` = the address of the thread's name, on the stack.
fn comm(a: &mut Assembler, to: Reg) {
    a.mov(R1, R10);
    a.alu(Alu::Add, R1, i32::from(slot::KEY));
    a.mov(R2, 16);
    a.call(Helper::GetCurrentComm);
    a.mov(to, R10);
    a.alu(Alu::Add, to, i32::from(slot::KEY));
}

/// The context of the program, while a field is read: r2.
fn context(a: &mut Assembler) {
    a.load(Size::D, R2, R10, slot::CTX);
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
fn extend(a: &mut Assembler, r: Reg, bytes: u8, signed: bool) {
    let shift = 64 - 8 * i32::from(bytes);
    if signed && shift > 0 {
        a.alu(Alu::Lsh, r, shift);
        a.alu(Alu::Arsh, r, shift);
    }
}

/// r1 = the value; what cannot be read is 0, and `faults` is jumped over.
fn value(a: &mut Assembler, value: &Value) {
    match value {
        Value::Constant(n) => a.constant(R1, *n as u64),
        Value::Context { off, size, signed } => {
            context(a);
            a.load(size_of(*size), R1, R2, *off);
            extend(a, R1, *size, *signed);
        }
        Value::User { base, index, disp, size, signed } => {
            context(a);
            a.constant(R3, *disp as u64);
            if let Some(base) = base {
                a.load(Size::D, R1, R2, *base);
                a.alu(Alu::Add, R3, R1);
            }
            if let Some((index, factor)) = index {
                a.load(Size::D, R1, R2, *index);
                a.alu(Alu::Mul, R1, i32::from(*factor));
                a.alu(Alu::Add, R3, R1);
            }
            a.store(Size::D, R10, slot::WORD, 0);
            a.mov(R1, R10);
            a.alu(Alu::Add, R1, i32::from(slot::WORD));
            a.mov(R2, i32::from(*size));
            a.call(Helper::ProbeReadUser);
            a.load(size_of(*size), R1, R10, slot::WORD);
            extend(a, R1, *size, *signed);
        }
    }
}

/// r1 = the place behind what the event has so far.
fn end(a: &mut Assembler) {
    a.mov(R1, R7);
    a.alu(Alu::Add, R1, R8);
}

/// Where the two capture bits of an argument are.
#[derive(Clone, Copy)]
struct CapBits {
    size: Size,
    at: i16,
    shift: i32,
}

impl CapBits {
    /// Those of argument `i`; none where the class has no bits for it.
    fn of(layout: &Layout, i: usize) -> Option<CapBits> {
        match i.checked_sub(FIRST_CAPS) {
            None => Some(CapBits { size: Size::H, at: CAP as i16, shift: 2 * i as i32 }),
            // A byte has those of four arguments.
            Some(i) => {
                let at = layout.more_caps?;
                Some(CapBits { size: Size::B, at: (at + i / 4) as i16, shift: 2 * (i % 4) as i32 })
            }
        }
    }
}

/// Reads a string at the address in r3; sets its capture bits.
fn string(a: &mut Assembler, helper: Helper, cap: Option<CapBits>) {
    let [bad, good, done] = [a.new_label(), a.new_label(), a.new_label()];
    end(a);
    a.mov(R2, STRING);
    a.call(helper);
    a.jump_if(Cond::Sle, R0, 0, bad);
    a.jump_if(Cond::Le, R0, STRING, good);
    a.bind(bad);
    end(a);
    a.store(Size::B, R1, 0, 0);
    capture(a, cap, 3);
    a.alu(Alu::Add, R8, 1);
    a.jump(done);
    a.bind(good);
    // A string that fills the buffer was cut: 2; else whole: 1.
    let whole = a.new_label();
    a.alu(Alu::Add, R8, R0);
    a.mov(R9, 1);
    a.jump_if(Cond::Lt, R0, STRING, whole);
    a.mov(R9, 2);
    a.bind(whole);
    if let Some(CapBits { size, at, shift }) = cap {
        a.alu(Alu::Lsh, R9, shift);
        a.load(size, R1, R7, at);
        a.alu(Alu::Or, R1, R9);
        a.store(size, R7, at, R1);
    }
    a.bind(done);
}

fn capture(a: &mut Assembler, cap: Option<CapBits>, bits: i32) {
    if let Some(CapBits { size, at, shift }) = cap {
        a.load(size, R1, R7, at);
        a.alu(Alu::Or, R1, bits << shift);
        a.store(size, R7, at, R1);
    }
}

/// `BPF_F_USER_STACK` (include/uapi/linux/bpf.h, 6.18); the lowest eight bits of the flags are how many frames are left out.
pub(crate) const USER_STACK: i32 = 256;

/// Return addresses: `u16 n`, n × u64.
fn stack(a: &mut Assembler, cap: Option<CapBits>, frames: u8, flags: i32) {
    let [bad, done] = [a.new_label(), a.new_label()];
    let most = i32::from(frames).clamp(1, FRAMES) * 8;
    context(a);
    a.mov(R1, R2);
    a.mov(R2, R7);
    a.alu(Alu::Add, R2, R8);
    a.alu(Alu::Add, R2, 2);
    a.mov(R3, most);
    a.mov(R4, flags);
    a.call(Helper::GetStack);
    a.jump_if(Cond::Slt, R0, 0, bad);
    a.jump_if(Cond::Gt, R0, most, bad);
    end(a);
    a.mov(R2, R0);
    a.alu(Alu::Rsh, R2, 3);
    a.store(Size::H, R1, 0, R2);
    a.alu(Alu::Add, R8, R0);
    a.alu(Alu::Add, R8, 2);
    capture(a, cap, 1);
    a.jump(done);
    // Where there is none, no frames are the truth.
    a.bind(bad);
    end(a);
    a.store(Size::H, R1, 0, 0);
    a.alu(Alu::Add, R8, 2);
    capture(a, cap, 1);
    a.bind(done);
}

fn tail(a: &mut Assembler, cap: Option<CapBits>, at: i16, tail: Tail) {
    match tail {
        Tail::UserString | Tail::KernelString => {
            a.load(Size::D, R3, R7, at);
            let user = tail == Tail::UserString;
            string(a, if user { Helper::ProbeReadUserStr } else { Helper::ProbeReadKernelStr }, cap);
        }
        Tail::ContextString { off } => {
            context(a);
            a.mov(R3, R2);
            a.alu(Alu::Add, R3, i32::from(off));
            string(a, Helper::ProbeReadKernelStr, cap);
        }
        Tail::DataLoc { off } => {
            context(a);
            a.load(Size::W, R1, R2, off);
            a.alu(Alu::And, R1, 0xffff);
            a.mov(R3, R2);
            a.alu(Alu::Add, R3, R1);
            string(a, Helper::ProbeReadKernelStr, cap);
        }
        Tail::Comm => {
            comm(a, R3);
            string(a, Helper::ProbeReadKernelStr, cap);
        }
        Tail::KernelStack { frames, skip } => stack(a, cap, frames, i32::from(skip)),
        Tail::UserStack(n) => stack(a, cap, n, USER_STACK),
        Tail::Hidden => {
            end(a);
            a.store(Size::B, R1, 0, 0);
            a.alu(Alu::Add, R8, 1);
        }
    }
}

fn whose(a: &mut Assembler, maps: &Maps, target: &Target, plan: &Plan<'_>, out: Label) {
    if plan.whose == Whose::Tasks {
        state_or_new(a, maps, target, out);
        a.load(Size::D, R1, R6, state::FLAGS);
        a.alu(Alu::And, R1, state::STARTING);
        a.jump_if(Cond::Ne, R1, 0, out);
    }
}

/// The program.
///
/// # Errors
/// [`crate::AsmError::Filter`] where the filter is too complex.
pub fn probe(maps: &Maps, target: &Target, plan: &Plan<'_>) -> Result<crate::Program, crate::AsmError> {
    let layout = Layout::of(plan.schema);
    debug_assert!(!plan.schema.is_span(), "{}: a program of one place has no start", plan.schema.name);
    program(maps, target, |a, _, out| {
        a.store(Size::D, R10, slot::CTX, R1);
        whose(a, maps, target, plan, out);
        let found = pause::stopped_before(a, maps, target, out);
        let known = filter::before(a, maps, target, plan, found, out);
        if !known.scratch {
            ready(a, maps, found, out);
        }
        a.note("fixed part");
        if !known.time {
            a.call(Helper::KtimeGetNs);
            a.store(Size::D, R7, 0, R0);
        }
        if plan.by_cookie {
            context(a);
            a.mov(R1, R2);
            a.call(Helper::GetAttachCookie);
            a.store(Size::H, R7, 8, R0);
        } else {
            a.store(Size::H, R7, 8, i32::from(plan.schema.id));
        }
        a.store(Size::H, R7, CAP as i16, 0);
        if let Some(at) = layout.more_caps {
            a.store(Size::D, R7, at as i16, 0);
        }
        match plan.whose {
            Whose::Tasks | Whose::Anyone => who(a, target),
            Whose::Nobody => [12, 16].into_iter().for_each(|at| a.store(Size::W, R7, at, 0)),
        }
        a.store(Size::W, R7, 20, 0);
        for (field, (at, _)) in plan.fields.iter().zip(layout.args) {
            value(a, &field.value);
            a.store(Size::D, R7, at as i16, R1);
        }
        a.mov(R8, layout.fixed as i32);
        for (i, (field, (at, _))) in plan.fields.iter().zip(layout.args).enumerate() {
            if let Some(t) = field.tail {
                a.note(format!("tail of {}", plan.schema.args.get(i).map_or("", |a| a.name)));
                tail(a, CapBits::of(&layout, i), at as i16, t);
            }
        }
        output(a, maps);
    })
}
