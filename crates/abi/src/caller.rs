//! Where a traced function was called from: a record in front of that of its entry, where the collector asks for it
//! ([`crate::shared::Control::callers`]). Who walks a stack that was copied finds the address of a stub where a return address was; by the time of
//! the walk, the shadow stack has other calls.
//!
//! ```text
//!  0      4      8     10               16      24
//!  ┌──────┬──────┬─────┬────────────────┬───────┐      word: [`WORD`]; len: 14; return address: 48 bits, 0 where the call has returned;
//!  │ time │ word │ len │ return address │ place │      place: where it is on the stack
//!  └──────┴──────┴─────┴────────────────┴───────┘
//! ```
//!
//! A call with records of its entry and its exit has returned with the latter. Others, of functions whose returns are probes, have a second
//! record of this kind.

use crate::heap::FIRST;
use crate::shared::VALUES;

/// The word of such a record: the number of no function, and of no operation of [`crate::heap`].
pub const WORD: u32 = VALUES | (FIRST + 63) << 1;
/// Bytes of such a record.
pub const SIZE: usize = 24;
/// What its length says: the bytes behind it.
pub const LEN: u8 = 14;

const _: () = assert!(SIZE == 10 + LEN as usize && FIRST + 63 == (1 << 30) - 1);
