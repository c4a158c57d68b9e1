//! Operations of io_uring: the programs that join a completion with its submission.
//!
//! ```text
//! submitted ─► whose? ─► record: the entry of the queue ─► the event, but for its end ─► map ──┐
//! refused   ─►            (refused at once: the entry is an argument)                          │ ring and user_data, or the request
//! completed ─► looked up ◄─────────────────────────────────────────────────────────────────────┘
//!    │             └ not there: whose? ─► an event whose start is not known
//!    └─► end, result, flags ─► filter ─► the enabling's ring of this CPU
//! overflown ─► the same, of a completion that found the queue of the program full
//! ```
//!
//! The event belongs to the thread that has submitted, wherever it ends. An operation that completes several times (`IORING_CQE_F_MORE`) is an
//! event each time, and each begins where the one before has ended. One whose success posts no completion (`IOSQE_CQE_SKIP_SUCCESS`) is an event
//! without a result when it is submitted.
//!
//! Keys: the kernel does not say at every completion which request it is for, but it does say the ring and `user_data`. Where several operations have
//! the same, all but the first have the request for a key.

mod complete;
mod record;
mod submit;

use super::fields::{Field, Tail, Value, Whose, going, value};
use super::filter;
use super::tails::tail;
use crate::btf_offsets::BtfOffsets;
use crate::frame::{Emitter, slot, state};
use crate::insn::{Alu, Cond, Reg::*, Size};
use crate::scratch::Shape;
use crate::{asm::Label, helper::Helper};
use events::Schema;
use events::layout::Layout;

pub use complete::{Arguments, complete};
pub use submit::{From, submit};

/// Offsets in the kernel's structs, and of arguments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offsets {
    /// In `struct io_kiocb`: `opcode`, `ctx`, `cqe.user_data`.
    pub request: [i16; 3],
    /// In `struct io_ring_ctx`: `flags`, `sq_array`, `sq_sqes`, `cached_sq_head`, `sq_entries`.
    pub ring: [i16; 5],
}

/// What the programs of an enabling are made from.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// The class of its events; of several, one: their fields are equal.
    pub schema: &'a Schema,
    /// Its arguments: [`super::Value::Context`] is the record.
    pub fields: Vec<Field>,
    /// The field with the flags of the completion.
    pub cqe_flags: usize,
    /// The field that is the address of a path for some operations.
    pub path: usize,
    /// Whose submissions are wanted.
    pub whose: Whose,
    /// Its filter.
    pub filter: Option<lang::Filter>,
    /// Offsets.
    pub offsets: Offsets,
    /// The map of submitted operations: keys of [`KEY_SIZE`] bytes, values of [`Plan::value_size`].
    pub pending: i32,
    /// An array of 256 words: by opcode, the class and whether the address is that of a path ([`class_word`]); 0: not wanted.
    pub classes: i32,
}

/// Bytes of a key of the map of operations.
pub const KEY_SIZE: u32 = 16;
/// Operations that may be submitted and not completed. The map has memory for all from the start: to get it for each costs 2 µs, where an
/// interrupt of the processor itself is slow, as in virtual machines.
pub const MOST: u32 = 1 << 14;
/// The opcode of what is no operation that the table names.
pub const OTHER: u8 = u8::MAX;

/// The word of an opcode in the array of classes.
pub fn class_word(id: u16, has_path: bool) -> u32 {
    u32::from(id) | u32::from(has_path) << PATH_BIT
}

const PATH_BIT: u32 = 16;
/// Behind the event in a value: its length, and the request.
const TRAILER: usize = 16;

impl Plan<'_> {
    /// Bytes for the event in a value of the map.
    fn room(&self) -> usize {
        let tails: usize = self.fields.iter().filter_map(|f| f.tail).map(|t| t.most()).sum();
        (Layout::of(self.schema).fixed + tails).next_multiple_of(8)
    }

    /// Bytes of a value of the map.
    pub fn value_size(&self) -> u32 {
        (self.room() + TRAILER) as u32
    }

    /// What its scratch buffers are made for.
    pub fn shape(&self, offsets: &BtfOffsets) -> Shape {
        let of_filter = self.filter.as_ref().map_or(0, |f| filter::room(f, offsets));
        Shape::of_probe((self.room() + TRAILER).max(of_filter))
    }

    /// The event of a value of the map.
    pub fn event_of<'v>(&self, value: &'v [u8]) -> Option<&'v [u8]> {
        let len = value.get(self.room()..)?.first_chunk().map(|b| u64::from_le_bytes(*b))?;
        value.get(..usize::try_from(len).ok()?.min(self.room()))
    }
}

// Stack slots, below those that all programs share. A filter uses the same room: nothing here is needed any more then.
/// The record that arguments lie in (`provider::operations::record` in crate `engine`).
const RECORD: i16 = slot::LAST - RECORD_SIZE;
const RECORD_SIZE: i16 = 96;
/// Bytes of an entry of the submission queue.
const ENTRY: i32 = 64;
/// In the record: the flags of the entry, its descriptor, `user_data`; and what is behind the entry.
const ENTRY_FLAGS: i16 = RECORD + 1;
const ENTRY_FD: i16 = RECORD + 4;
const ENTRY_USER_DATA: i16 = RECORD + 32;
const RING: i16 = RECORD + 64;
const DESCRIPTOR: i16 = RECORD + 72;
const REGISTERED: i16 = RECORD + 80;
const RECORD_CQE_FLAGS: i16 = RECORD + 88;
/// A key of the map of operations: two words.
const KEY: i16 = RECORD - 16;
/// The request.
const REQUEST: i16 = KEY - 8;
/// `user_data`.
const USER_DATA: i16 = REQUEST - 8;
/// The result and the flags of a completion, 4 bytes each.
const COMPLETION: i16 = USER_DATA - 8;
/// The word of the operation's class.
const CLASS: i16 = COMPLETION - 8;
/// The value that was found in the map.
const FOUND: i16 = CLASS - 8;

/// `CLASS` = the word of the opcode in that slot; `out` where it is not wanted.
fn class(e: &mut Emitter<'_>, plan: &Plan<'_>, out: Label) {
    e.note("the class of the operation");
    e.load_slot(R1, CLASS);
    e.store(Size::W, R10, slot::KEY, R1);
    e.map_fd(R1, plan.classes);
    e.slot_address(R2, slot::KEY);
    e.call(Helper::MapLookup);
    e.jump_if(Cond::Eq, R0, 0, out);
    e.load(Size::W, R1, R0, 0);
    e.jump_if(Cond::Eq, R1, 0, out);
    e.store_slot(CLASS, R1);
}

/// Goes on for submissions of the session's threads. The threads that the kernel makes for a process (`IORING_SETUP_SQPOLL`) are not seen when they
/// are made: they are traced where the first thread of their process is.
fn whose(e: &mut Emitter<'_>, plan: &Plan<'_>, out: Label) {
    const PF_IO_WORKER: i32 = 0x10; // include/linux/sched.h, 6.1 to 6.18
    if plan.whose != Whose::Tasks || e.session.system_wide {
        return super::whose(e, &plan.whose, out);
    }
    let offsets = e.offsets;
    let found = e.new_label();
    e.know_task();
    e.mov(R2, R0);
    e.storage(false);
    e.jump_if(Cond::Ne, R0, 0, found);
    e.task(R2);
    e.load(Size::W, R1, R2, offsets.task_flags);
    e.alu(Alu::And, R1, PF_IO_WORKER);
    e.jump_if(Cond::Eq, R1, 0, out);
    e.load(Size::D, R2, R2, offsets.ids.group_leader as i16);
    e.jump_if(Cond::Eq, R2, 0, out);
    e.storage(false);
    e.jump_if(Cond::Eq, R0, 0, out);
    e.bind(found);
    e.load(Size::D, R1, R0, state::FLAGS);
    e.alu(Alu::And, R1, state::STARTING);
    e.jump_if(Cond::Ne, R1, 0, out);
}

/// Filters the event in the buffer, and puts it into the ring.
fn finish(e: &mut Emitter<'_>, plan: &Plan<'_>, out: Label) {
    if let Some(filter) = &plan.filter {
        filter::of_built(e, (plan.schema, filter), out);
    }
    e.output();
}
