//! What all programs share: registers, stack slots, the states of tasks, ids, the scratch buffer with its counters, and the output.
//!
//! ```text
//! program ─► Emitter: assembler, maps, offsets of the kernel's structs, settings of the session, functions to be called back
//!
//! r6  reg::STATE   the state of the current task      r8  reg::END  bytes of the event so far
//! r7  reg::BUFFER  the scratch buffer of this CPU     r9  reg::ROW  the row of the call
//! ```
//!
//! A register that a program needs for something else goes by its number there. `slot` names the words of the stack, `field` the
//! first fields of an event.

mod buffer;
mod counters;
mod event;
pub(crate) mod field;
mod ids;
mod output;
pub(crate) mod registers;
mod session;
pub mod session_switch;
pub(crate) mod slot;
pub mod state;
mod system_wide;
mod task;
mod words;

pub(crate) use counters::Lost;
pub(crate) use registers::reg;
pub use session::{Maps, Rights, Session, Source};
pub use state::held;

use crate::asm::{AsmError, Assembler, Label};
use crate::btf_offsets::BtfOffsets;
use crate::filter::Unfit;
use crate::insn::{Alu, Reg, Reg::*, Size};
use crate::program::Program;
use events::Schema;
use std::ops::{Deref, DerefMut};

/// A program, or why there is none: a filter for which there is no code, or a mistake of the generator's.
pub type Generated = Result<Program, AsmError<Unfit>>;

/// The most frames of a stack that a program captures.
pub const FRAMES: i32 = 127;
/// `BPF_F_USER_STACK` (include/uapi/linux/bpf.h, 6.18); the lowest eight bits of the flags are how many frames are left out.
pub(crate) const USER_STACK: i32 = 256;

/// Emits the instructions of one program: an assembler that knows what the program is made for.
pub(crate) struct Emitter<'s> {
    assembler: Assembler<Unfit>,
    pub(crate) maps: &'s Maps,
    pub(crate) offsets: &'s BtfOffsets,
    pub(crate) session: &'s Session,
    /// The class of the event under construction, after [`Emitter::begin`].
    event: Option<&'static Schema>,
    callbacks: Vec<Callback>,
}

/// A function that is called back by bpf_loop, emitted once, after the program that uses it.
struct Callback {
    name: &'static str,
    label: Label,
    emit: fn(&mut Emitter<'_>),
}

impl Deref for Emitter<'_> {
    type Target = Assembler<Unfit>;

    fn deref(&self) -> &Assembler<Unfit> {
        &self.assembler
    }
}

impl DerefMut for Emitter<'_> {
    fn deref_mut(&mut self) -> &mut Assembler<Unfit> {
        &mut self.assembler
    }
}

/// Emits a program around `body`, which jumps to the label to end without an event.
pub(crate) fn program<'s>(
    maps: &'s Maps,
    offsets: &'s BtfOffsets,
    session: &'s Session,
    body: impl FnOnce(&mut Emitter<'s>, Label),
) -> Generated {
    let mut e = Emitter::new(maps, offsets, session);
    let out = e.new_label();
    e.unclaimed();
    if session.captures.is_some() {
        e.store_slot(slot::CONTEXT, R1);
    }
    body(&mut e, out);
    e.bind(out);
    e.release();
    e.mov(R0, 0);
    e.exit();
    e.finish()
}

impl<'s> Emitter<'s> {
    /// Nothing is emitted yet.
    pub(crate) fn new(maps: &'s Maps, offsets: &'s BtfOffsets, session: &'s Session) -> Emitter<'s> {
        let assembler = Assembler::default();
        Emitter { assembler, maps, offsets, session, event: None, callbacks: Vec::new() }
    }

    /// Emits the functions that are called back, one of which may add others, and makes the program.
    pub(crate) fn finish(mut self) -> Generated {
        let mut next = 0;
        while let Some(&Callback { label, emit, .. }) = self.callbacks.get(next) {
            self.bind(label);
            emit(&mut self);
            next += 1;
        }
        self.assembler.finish()
    }

    /// The label of the function of this name, which `emit` emits later.
    pub(crate) fn callback(&mut self, name: &'static str, emit: fn(&mut Emitter<'_>)) -> Label {
        if let Some(c) = self.callbacks.iter().find(|c| c.name == name) {
            return c.label;
        }
        let label = self.new_label();
        self.callbacks.push(Callback { name, label, emit });
        label
    }

    /// `r` = a field of the current task's state.
    pub(crate) fn load_state(&mut self, r: Reg, field: i16) {
        self.load(Size::D, r, reg::STATE, field);
    }

    /// Sets a field of the current task's state.
    pub(crate) fn store_state(&mut self, field: i16, value: impl Into<crate::asm::Operand>) {
        self.store(Size::D, reg::STATE, field, value);
    }

    /// `r` = a field of the call's row.
    pub(crate) fn load_row(&mut self, size: Size, r: Reg, field: i16) {
        self.load(size, r, reg::ROW, field);
    }

    /// `r` = what is at this offset of the event.
    pub(crate) fn load_event(&mut self, size: Size, r: Reg, at: i16) {
        self.load(size, r, reg::BUFFER, at);
    }

    /// Stores at this offset of the event.
    pub(crate) fn store_event(&mut self, size: Size, at: i16, value: impl Into<crate::asm::Operand>) {
        self.store(size, reg::BUFFER, at, value);
    }

    /// `r` = the word in a stack slot.
    pub(crate) fn load_slot(&mut self, r: Reg, slot: i16) {
        self.load(Size::D, r, R10, slot);
    }

    /// Sets the word in a stack slot.
    pub(crate) fn store_slot(&mut self, slot: i16, value: impl Into<crate::asm::Operand>) {
        self.store(Size::D, R10, slot, value);
    }

    /// `r` = the address of a stack slot.
    pub(crate) fn slot_address(&mut self, r: Reg, slot: i16) {
        self.mov(r, R10);
        self.alu(Alu::Add, r, i32::from(slot));
    }

    /// `r` = the address of byte `END + off` of the event: where it goes on.
    pub(crate) fn place(&mut self, r: Reg, off: i32) {
        self.mov(r, reg::BUFFER);
        self.alu(Alu::Add, r, reg::END);
        if off != 0 {
            self.alu(Alu::Add, r, off);
        }
    }
}
