//! The program that asks for an address to be watched: at the entry of a function, of which it is an argument.
//!
//! ```text
//! entry ─► whose? ─► watched already, or no register free? ─► a place among the requests ─► SIGSTOP ─► process, address
//!                                                                     └► a thread of trapline: debug registers, SIGCONT
//! ```
//!
//! The signal comes before the address is there to be seen, so that it cannot arrive after the one that continues the process.

use super::{Value, going, value, whose};
use crate::frame::{Emitter, Generated, Maps, Session, program, slot};
use crate::helper::Helper;
use crate::insn::{Alu, Atomic, Cond, Reg::*, Size};
use crate::{btf_offsets::BtfOffsets, probes::Whose};

/// Debug registers that x86 has.
pub const REGISTERS: usize = 4;
/// Requests that may wait: as many threads can enter the function at a time without one being overlooked.
pub const REQUESTS: usize = 64;

/// Offsets in the memory that the program and the thread share, of words of 8 bytes.
pub mod at {
    /// The addresses that are watched, in [`super::REGISTERS`] words; 0: none.
    pub const WATCHED: i16 = 0;
    /// How many requests were made.
    pub const NEXT: i16 = 32;
    /// Not 0: no register is free.
    pub const FULL: i16 = 40;
    /// Calls whose address is not watched, because no register was free.
    pub const UNWATCHED: i16 = 48;
    /// Calls whose address is no multiple of the length.
    pub const MISALIGNED: i16 = 56;
    /// [`super::REQUESTS`] requests: the address, which is 0 where the place is free, and the process.
    pub const REQUESTS: i16 = 64;
    /// All of it.
    pub const SIZE: u32 = REQUESTS as u32 + 16 * super::REQUESTS as u32;
}

/// SIGSTOP of x86 (include/uapi/asm-generic/signal.h).
const SIGSTOP: i32 = 19;

/// What is to be watched.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Where the address is.
    pub address: &'a Value,
    /// It must be a multiple of this; 1: any is.
    pub alignment: u8,
    /// The process is stopped until the address is watched.
    pub stops: bool,
    /// The array that has [`at::SIZE`] bytes.
    pub memory: i32,
}

/// The program.
pub fn ask(maps: &Maps, offsets: &BtfOffsets, session: &Session, tasks: &Whose, asked: Asked<'_>) -> Generated {
    program(maps, offsets, session, |e, out| {
        e.store_slot(slot::CTX, R1);
        whose(e, tasks, out);
        going(e, false, out);
        let [free, unwatched, misaligned] = [e.new_label(), e.new_label(), e.new_label()];
        value(e, asked.address);
        e.note("NULL, and addresses of the kernel");
        e.jump_if(Cond::Eq, R1, 0, out);
        e.mov(R2, R1);
        e.alu(Alu::Rsh, R2, 47);
        e.jump_if(Cond::Ne, R2, 0, out);
        e.map_value(R2, asked.memory, 0);
        if asked.alignment > 1 {
            e.mov(R3, R1);
            e.alu(Alu::And, R3, i32::from(asked.alignment) - 1);
            e.jump_if(Cond::Ne, R3, 0, misaligned);
        }
        for nth in 0..REGISTERS {
            e.load(Size::D, R3, R2, at::WATCHED + 8 * nth as i16);
            e.jump_if(Cond::Eq, R3, R1, out);
        }
        e.load(Size::D, R3, R2, at::FULL);
        e.jump_if(Cond::Ne, R3, 0, unwatched);
        e.store_slot(slot::WORD, R1);
        e.mov(R3, 1);
        e.atomic(Atomic::FetchAdd, Size::D, R2, at::NEXT, R3);
        e.alu(Alu::And, R3, REQUESTS as i32 - 1);
        e.alu(Alu::Lsh, R3, 4);
        e.mov(R4, R2);
        e.alu(Alu::Add, R4, R3);
        e.load(Size::D, R5, R4, at::REQUESTS);
        e.jump_if(Cond::Eq, R5, 0, free);
        e.bind(unwatched);
        count(e, at::UNWATCHED);
        e.jump(out);
        e.bind(misaligned);
        count(e, at::MISALIGNED);
        e.jump(out);
        e.bind(free);
        e.store_slot(slot::TEMP, R4);
        e.current_id(true);
        e.load_slot(R4, slot::TEMP);
        e.store(Size::D, R4, at::REQUESTS + 8, R1);
        if asked.stops {
            e.mov(R1, SIGSTOP);
            e.call(Helper::SendSignal);
            e.load_slot(R4, slot::TEMP);
        }
        e.load_slot(R1, slot::WORD);
        e.store(Size::D, R4, at::REQUESTS, R1);
    })
}

/// Adds 1 to a word; r2 has the memory's address.
fn count(e: &mut Emitter<'_>, word: i16) {
    e.mov(R1, 1);
    e.atomic(Atomic::Add, Size::D, R2, word, R1);
}
