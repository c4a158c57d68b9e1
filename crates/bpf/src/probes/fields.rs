//! What a probe's program is made from, and how its fields are read.

use crate::asm::Label;
use crate::frame::{Emitter, Lost, slot};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg, Reg::*, Size};
use crate::scratch;
use crate::slab;
use crate::stacks::{self, Stacks};
use events::Schema;

/// The most bytes of a string that is read, its NUL included.
pub const STRING: i32 = 256;
/// The most strings of an array that are read.
pub const STRINGS: usize = 16;

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
    /// 8 bytes of the program's context at `off`, and a constant.
    Sum {
        /// Offset in the context.
        off: i16,
        /// The constant.
        plus: i64,
    },
    /// The id of the kernel's stack.
    KernelStack {
        /// At most this many frames.
        frames: u8,
        /// Frames that are skipped: the program's own.
        skip: u8,
    },
    /// The id of the process's stack: at most this many frames.
    UserStack(u16),
    /// The processor.
    Cpu,
    /// The thread's user.
    Uid,
    /// The thread's group.
    Gid,
    /// A number of a script's clause.
    Script(std::sync::Arc<super::clause::Number>),
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

/// What is read in addition to a field's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// The string of the process at the address that the number is.
    UserString,
    /// The string of the kernel at that address.
    KernelString,
    /// This many bytes of memory at the address that the number is.
    Memory {
        /// It is the process's memory.
        user: bool,
        /// Bytes, [`MOST_MEMORY`](super::check::MOST_MEMORY) at most.
        size: u16,
        /// As many of them as this field says.
        length: Option<u16>,
    },
    /// The strings at the addresses that are an array at the address that the number is: as `Shape::Strv` of [`events::layout`].
    Strings {
        /// They are the process's memory.
        user: bool,
    },
    /// The string in the context at `off`, at most this many bytes.
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
    /// A string that the session's user may not see.
    Hidden,
}

impl Tail {
    /// The most bytes that it takes after the fixed part.
    pub(super) fn most(self) -> usize {
        match self {
            Tail::Hidden => 1,
            Tail::Memory { size, .. } => 2 + usize::from(size),
            Tail::Strings { .. } => 4 + STRINGS * (9 + STRING as usize),
            _ => STRING as usize,
        }
    }

    /// Whether it comes behind those that are not.
    pub(super) fn is_nested(self) -> bool {
        matches!(self, Tail::Strings { .. })
    }
}

/// A field of the event.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The number in the fixed part.
    pub value: Value,
    /// What follows the fixed part.
    pub tail: Option<Tail>,
}

/// Whose events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Those of the tasks of the session, or of all but its own in a system-wide session.
    Tasks,
    /// Those of any task that is running: of clocks.
    Anyone,
    /// Those of any task that is running, without its ids.
    Nobody,
    /// Those of all tasks, threads of the kernel among them, but for these processes, whose ids are those of the initial pid namespace.
    AllBut(Vec<u32>),
}

/// What the program of a probe does.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// The class of its events.
    pub schema: &'a Schema,
    /// Its arguments, in order.
    pub fields: Vec<Field>,
    /// The tasks whose events are wanted.
    pub whose: Whose,
    /// Its filter, typed for the class.
    pub filter: Option<lang::Filter>,
    /// Its events are of several classes with equal fields: the cookie of the place that was reached is the number of the class.
    pub by_cookie: bool,
    /// Only objects of this slab are events: what is not one is not counted.
    pub slab: Option<slab::Place>,
}

/// The scratch buffer of this CPU is found; `out` where the session is over. `found`: it is set already.
pub(super) fn going(e: &mut Emitter<'_>, found: bool, out: Label) {
    if !found {
        e.find(out);
    }
    e.reload(R1, scratch::STOPPED);
    e.jump_if(Cond::Ne, R1, 0, out);
}

/// `BUFFER` = the scratch buffer of this CPU, claimed; `out` where the session is over, or where another run has it, which is
/// counted.
pub(super) fn ready(e: &mut Emitter<'_>, found: bool, out: Label) {
    let [taken, ready] = [e.new_label(), e.new_label()];
    going(e, found, out);
    e.claim(taken);
    e.jump(ready);
    e.bind(taken);
    e.count_lost(Lost::Unknown);
    e.jump(out);
    e.bind(ready);
    e.place_event();
}

/// `to` = the address of the thread's name, on the stack.
pub(super) fn comm(e: &mut Emitter<'_>, to: Reg) {
    e.slot_address(R1, slot::KEY);
    e.mov(R2, 16);
    e.call(Helper::GetCurrentComm);
    e.slot_address(to, slot::KEY);
}

/// r2 = the context of the program.
pub(super) fn context(e: &mut Emitter<'_>) {
    e.load_slot(R2, slot::CTX);
}

pub(super) fn size_of(bytes: u8) -> Size {
    match bytes {
        1 => Size::B,
        2 => Size::H,
        4 => Size::W,
        _ => Size::D,
    }
}

/// Extends the low `bytes` of a register whose other bits are zero.
pub(super) fn extend(e: &mut Emitter<'_>, r: Reg, bytes: u8, signed: bool) {
    let shift = 64 - 8 * i32::from(bytes);
    if signed && shift > 0 {
        e.alu(Alu::Lsh, r, shift);
        e.alu(Alu::Arsh, r, shift);
    }
}

/// r1 = the id of a stack.
fn stack(e: &mut Emitter<'_>, capture: impl FnOnce(&mut Emitter<'_>, Stacks)) {
    match e.maps.stacks {
        Some(stacks) => capture(e, stacks),
        None => e.mov(R0, 0),
    }
    e.mov(R1, R0);
}

/// r1 = the value; 0 where it cannot be read.
pub(super) fn value(e: &mut Emitter<'_>, value: &Value) {
    match value {
        // It needs the other fields: [`super::values::number`].
        Value::Script(_) => e.mov(R1, 0),
        Value::Constant(n) => e.constant(R1, *n as u64),
        Value::Sum { off, plus } => {
            context(e);
            e.constant(R1, *plus as u64);
            e.load(Size::D, R3, R2, *off);
            e.alu(Alu::Add, R1, R3);
        }
        Value::KernelStack { frames, skip } => stack(e, |e, stacks| stacks::kernel(e, stacks, *frames, *skip)),
        Value::Cpu => {
            e.call(Helper::GetSmpProcessorId);
            e.mov(R1, R0);
        }
        Value::Uid | Value::Gid => {
            e.call(Helper::GetCurrentUidGid);
            e.mov(R1, R0);
            // The user is in the low half.
            if matches!(value, Value::Uid) {
                e.alu(Alu::Lsh, R1, 32);
            }
            e.alu(Alu::Rsh, R1, 32);
        }
        Value::UserStack(frames) => stack(e, |e, stacks| stacks::user(e, stacks, *frames)),
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
