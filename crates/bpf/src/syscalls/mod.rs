//! The programs that trace system calls: what they read is in rows ([`capture_row`]), how they read it is here.
//!
//! ```text
//! sys_enter  task storage? ─► nr, arguments, start ─► [ops of entry, if the row has any]
//! sys_exit   task storage? ─► row ─► fixed part ─► tails of entry ─► tails of exit ─► ring of this CPU
//! fork, exec, exit, signals: task storage for the child, process: events (exit also: the call that the task ends in)
//!
//! without durations: no sys_enter; sys_exit finds nr and arguments in the registers (no_entry)
//!
//! a call whose entry no program has seen is in the registers too (unseen)
//!
//! frame ◄─ ops, filters, no_entry ◄─ unseen ◄─ call ◄─ signals, descriptors, tasks ◄─ enter, exit          each uses what is left of it
//! ```
//!
//! Pure: maps come in as descriptors, offsets of kernel structs as numbers. Every path that has counted an event as seen
//! either puts it into a ring or counts it as dropped.

mod call;
mod descriptors;
mod enter;
mod exit;
mod filters;
pub mod iterator;
mod no_entry;
mod ops;
pub mod raw;
mod signals;
mod tasks;
#[cfg(test)]
mod tests;
mod unseen;

#[cfg(doc)]
use crate::capture_row;

pub use crate::frame::{Maps, Rights, Session, Slots, Source, held, session_switch, state};
pub use enter::sys_enter;
pub use exit::sys_exit;
pub use signals::{delivered, generated};
pub use tasks::{exec, exit, fork, freed};
