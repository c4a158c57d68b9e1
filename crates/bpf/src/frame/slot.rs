//! Stack slots, from r10.

/// The current task, a typed pointer, in programs that ask for it at their start.
pub const TASK: i16 = -8;
/// The context.
pub const CTX: i16 = -16;
/// Raw result.
pub const RET: i16 = -24;
/// The op under way, 16 bytes.
pub const OP: i16 = -40;
/// The argument's address.
pub const ADDR: i16 = -48;
/// A length.
pub const LEN: i16 = -56;
/// A word read from the target.
pub const WORD: i16 = -64;
/// The second half of a pair read from the target. WORD2 lies right above WORD.
pub const WORD2: i16 = -72;
/// The lowest of [`FREE_COUNT`] slots, from WORD2 to OP, that are free until an op runs.
pub const FREE: i16 = WORD2;
/// How many they are.
pub const FREE_COUNT: usize = ((RET - FREE) / 8) as usize;
/// Where a list started.
pub const HEAD: i16 = -80;
/// The words of the buffer: those of the place that is claimed, where one is.
pub const WORDS: i16 = -96;
/// Loop counters.
pub const I: i16 = -88;
/// Capture bits of the op: whether its read was complete.
pub const CAP: i16 = -112;
/// The lowest of [`UNUSED_COUNT`] slots, from CAP to OP, that are free in clauses of programs that report no event.
pub const UNUSED: i16 = CAP;
/// How many they are.
pub const UNUSED_COUNT: usize = ((RET - UNUSED) / 8) as usize;
/// A key of 16 bytes.
pub const KEY: i16 = -128;
/// Spare.
pub const TEMP: i16 = -144;
/// State of the task, for functions that are called back.
pub const STATE: i16 = -152;
/// Scratch buffer, for functions that are called back.
pub const SCRATCH: i16 = -160;
/// Row, for functions that are called back.
pub const ROW: i16 = -168;
/// The words of the buffer, where this run has claimed it; else 0.
pub const CLAIMED: i16 = -176;
/// The context of the program, where captures need it.
pub const CONTEXT: i16 = -184;
/// The area that a stack is captured in.
pub const AREA: i16 = -192;
/// The lowest slot.
pub const LAST: i16 = AREA;
