//! The emitter of a program: an assembler with what the program is made for, and functions that are called back.

use super::reg;
use super::session::{Maps, Session};
use crate::asm::{AsmError, Assembler, Label, Operand};
use crate::btf_offsets::BtfOffsets;
use crate::filter::Unfit;
use crate::insn::{Alu, Reg, Reg::R10, Size};
use crate::program::Program;
use crate::unwind::{Tables, UserStacks};
use events::Schema;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

/// A program, or why there is none: a filter for which there is no code, or a mistake of the generator's.
pub type Generated = Result<Program, AsmError<Unfit>>;

/// Emits the instructions of one program: an assembler that knows what the program is made for.
pub(crate) struct Emitter<'s> {
    assembler: Assembler<Unfit>,
    pub(crate) maps: &'s Maps,
    pub(crate) offsets: &'s BtfOffsets,
    pub(crate) session: &'s Session,
    /// The class of the event under construction, after [`Emitter::begin`].
    pub(super) event: Option<&'static Schema>,
    /// Where the program ends without an event; in a function that is called back, where that ends.
    pub(crate) ends_at: Label,
    /// Where the program ends before it has found a state.
    pub(crate) untraced: Label,
    /// The program has found a state, and leaves it at [`Emitter::ends_at`].
    pub(super) has_state: bool,
    /// The current task is in its slot ([`Emitter::know_task`]).
    pub(super) knows_task: bool,
    callbacks: Vec<Callback<'s>>,
    unwinder: Option<UserStacks>,
}

/// Emits a function.
type Emit<'s> = Rc<dyn Fn(&mut Emitter<'s>) + 's>;

/// A function that is called back by bpf_loop, emitted once, after the program that uses it.
struct Callback<'s> {
    /// None: it is used in one place.
    name: Option<&'static str>,
    label: Label,
    emit: Emit<'s>,
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

impl<'s> Emitter<'s> {
    /// Nothing is emitted yet.
    pub(crate) fn new(maps: &'s Maps, offsets: &'s BtfOffsets, session: &'s Session) -> Emitter<'s> {
        let mut assembler = Assembler::default();
        let [ends_at, untraced] = [assembler.new_label(), assembler.new_label()];
        Emitter {
            assembler,
            maps,
            offsets,
            session,
            event: None,
            ends_at,
            untraced,
            has_state: false,
            knows_task: false,
            callbacks: Vec::new(),
            unwinder: None,
        }
    }

    /// Emits the functions that are called back, one of which may add others, and makes the program.
    pub(crate) fn finish(mut self) -> Generated {
        let mut next = 0;
        // Functions that are called back have a stack and registers of their own.
        (self.knows_task, self.has_state) = (false, false);
        while let Some((label, emit)) = self.callbacks.get(next).map(|c| (c.label, Rc::clone(&c.emit))) {
            self.bind(label);
            emit(&mut self);
            next += 1;
        }
        if let Some(unwinder) = self.unwinder.take() {
            unwinder.finish(&mut self.assembler);
        }
        self.assembler.finish()
    }

    /// Has the unwinder walk the user stack of the current task in the area whose address is in r1, with the tables of the process in
    /// r2; `frames` at most, in all places of the program.
    pub(crate) fn call_unwinder(&mut self, frames: u16) {
        let Some(tables) = self.maps.stacks.and_then(|s| s.tables) else { return };
        let unwinder = match self.unwinder.take() {
            Some(unwinder) => unwinder,
            None => UserStacks::new(&mut self.assembler, Tables { frames, ..tables }),
        };
        unwinder.call(&mut self.assembler);
        self.unwinder = Some(unwinder);
    }

    /// The label of the function of this name, which `emit` emits later.
    pub(crate) fn callback(&mut self, name: &'static str, emit: fn(&mut Emitter<'_>)) -> Label {
        if let Some(c) = self.callbacks.iter().find(|c| c.name == Some(name)) {
            return c.label;
        }
        self.add(Some(name), Rc::new(emit))
    }

    /// The label of a function that is used in one place, and which `emit` emits later.
    pub(crate) fn function(&mut self, emit: impl Fn(&mut Emitter<'s>) + 's) -> Label {
        self.add(None, Rc::new(emit))
    }

    fn add(&mut self, name: Option<&'static str>, emit: Emit<'s>) -> Label {
        let label = self.new_label();
        self.callbacks.push(Callback { name, label, emit });
        label
    }

    /// `r` = a field of the current task's state.
    pub(crate) fn load_state(&mut self, r: Reg, field: i16) {
        self.load(Size::D, r, reg::STATE, field);
    }

    /// Sets a field of the current task's state.
    pub(crate) fn store_state(&mut self, field: i16, value: impl Into<Operand>) {
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
    pub(crate) fn store_event(&mut self, size: Size, at: i16, value: impl Into<Operand>) {
        self.store(size, reg::BUFFER, at, value);
    }

    /// `r` = the word in a stack slot.
    pub(crate) fn load_slot(&mut self, r: Reg, slot: i16) {
        self.load(Size::D, r, R10, slot);
    }

    /// Sets the word in a stack slot.
    pub(crate) fn store_slot(&mut self, slot: i16, value: impl Into<Operand>) {
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
