//! Counters of the scratch buffer.

use super::Emitter;
use crate::insn::{Alu, Atomic, Cond, Reg, Reg::*, Size};
use crate::scratch::*;

/// The class of an event that is lost.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lost {
    /// Its id is in r3.
    InR3,
    /// This one.
    Class(u16),
    /// It is not known.
    Unknown,
}

impl Emitter<'_> {
    /// Adds 1 to a counter. Atomic, because an interrupt may come between. Uses r1 and r2.
    pub(crate) fn count(&mut self, which: i16) {
        let at = self.word(which);
        self.words(R1);
        self.mov(R2, 1);
        self.atomic(Atomic::Add, Size::D, R1, at, R2);
    }

    /// Adds 1 to counter number `nth` (a register other than r1 and r2, which are used) of the `n` that begin at `first`, if
    /// there are so many.
    pub(crate) fn count_nth(&mut self, (first, n): (i16, usize), nth: Reg) {
        let (beyond, at) = (self.new_label(), self.word(first));
        self.jump_if(Cond::Ge, nth, n as i32, beyond);
        self.words(R1);
        self.mov(R2, nth);
        self.alu(Alu::Lsh, R2, 3);
        self.alu(Alu::Add, R1, R2);
        self.mov(R2, 1);
        self.atomic(Atomic::Add, Size::D, R1, at, R2);
        self.bind(beyond);
    }

    /// Counts an event that happened and is lost. Uses r1, r2 and r3.
    pub(crate) fn count_lost(&mut self, lost: Lost) {
        self.count(SEEN);
        self.count_dropped(lost);
    }

    /// Counts an event as lost that is counted as seen.
    pub(crate) fn count_dropped(&mut self, lost: Lost) {
        match lost {
            Lost::InR3 => self.count_nth((DROPPED_CLASSES, CLASSES), R3),
            Lost::Class(id) if usize::from(id) < CLASSES => self.count(DROPPED_CLASSES + 8 * id as i16),
            Lost::Class(_) | Lost::Unknown => {}
        }
        self.count(DROPPED);
    }
}
