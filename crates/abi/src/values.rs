//! What is copied when a function with captured arguments begins and returns, and where a probe is: a program for each, which the collector makes.
//!
//! ```text
//!  area of captured functions:  stubs │ pointers │ moved beginnings │ [Offsets], one for each stub, in order │ [Step] …
//!                                        └► [`crate::values::TABLE`]: where the offsets are, from the area's beginning; 0: nowhere
//!  program of a probe:          number (4 bytes) │ flags, the most bytes that it copies (4 bytes) │ its instruction's address (8 bytes) │ [Step] …
//! ```
//!
//! A program is a row of [`Step`]s up to [`Op::End`]. Each appends to the values of the record ([`crate::shared::VALUES`]):
//!
//! | step | appends |
//! |---|---|
//! | `Load` | `size` bytes of a place |
//! | `Text` | a head, and the bytes of the string that the word at a place leads to, at most `size` and without its NUL |
//! | `Slice` | likewise, as many bytes as the word at the place of the next step says |
//! | `Pointee` | a head, and `size` bytes from where the word at a place leads to; later places in [`FIELD`] are offsets from there |
//! | `Base` | nothing: later places in [`FIELD`] are offsets from `size` bytes before the end |
//! | `Fetch` | nothing: [`FETCHED`] is `size` bytes from the sum of the place, `offset`, and the place of the next step times its size; 0 where nothing can be read |
//! | `Cpu` | 4 bytes: the processor |
//!
//! A **head** has 2 bytes: how many bytes follow, and [`CUT`], [`ENDS`], [`FAULT`] or [`NULL`]. Where the record is full, the rest is missing, and so
//! is everything behind it.

/// Index, among the pointers of an area, of the word that says where [`Offsets`] are: their distance from the area's beginning.
pub const TABLE: usize = 15;
/// The most bytes of a record's values.
pub const MOST: usize = 510;
/// The most steps of a program.
pub const STEPS: usize = 64;

/// In a head: how many bytes follow.
pub const LENGTH: u16 = 0x0fff;
/// In a head: there is more of the string.
pub const CUT: u16 = 0x1000;
/// In a head: nothing could be read there; what follows is the address.
pub const FAULT: u16 = 0x2000;
/// In a head: the memory ends within the string.
pub const ENDS: u16 = 0x8000;
/// In a head: the pointer is null.
pub const NULL: u16 = 0x4000;

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// Nothing: the program is over.
    End = 0,
    /// Copies a place.
    Load = 1,
    /// Reads a string that ends with NUL.
    Text = 2,
    /// Reads a string whose length is known.
    Slice = 3,
    /// Reads memory.
    Pointee = 4,
    /// Sets the base of fields.
    Base = 5,
    /// Reads a word for later steps.
    Fetch = 6,
    /// Notes the processor.
    Cpu = 7,
}

/// Places: rdi, rsi, rdx, rcx, r8, r9 are 0 to 5, xmm0 to xmm7 are 6 to 13.
pub const XMM: u8 = 6;
/// rax, when the function has returned.
pub const RAX: u8 = 14;
/// rdx, when the function has returned, as when it begins.
pub const RDX: u8 = 2;
/// Memory above the return address: `offset` bytes from it.
pub const STACK: u8 = 15;
/// st0, when the function has returned: 10 bytes.
pub const ST0: u8 = 16;
/// What has been copied before: `offset` bytes from the base.
pub const FIELD: u8 = 17;
/// What was read last by [`Op::Fetch`].
pub const FETCHED: u8 = 18;
/// 0.
pub const NOTHING: u8 = 19;
/// The hash of the stack of a probe whose program has [`WALKS`] (`abi::heap`).
pub const STACK_HASH: u8 = 20;
/// From this one on the general registers where a probe is, in the order of DWARF (System V ABI for x86-64, figure 3.36): rax, rdx, rcx, rbx, rsi,
/// rdi, rbp, rsp, r8 to r15.
pub const REGISTER: u8 = 32;
/// How many general registers there are.
pub const REGISTERS: usize = 16;

/// A step of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Step {
    /// An [`Op`].
    pub op: u8,
    /// A place.
    pub place: u8,
    /// Bytes.
    pub size: u16,
    /// Of the place.
    pub offset: i32,
}

impl Step {
    /// Its bytes.
    pub fn bytes(&self) -> [u8; 8] {
        let ([a, b], [c, d, e, f]) = (self.size.to_le_bytes(), self.offset.to_le_bytes());
        [self.op, self.place, a, b, c, d, e, f]
    }

    /// From bytes; anything is one.
    pub fn parse([op, place, a, b, c, d, e, f]: [u8; 8]) -> Step {
        Step { op, place, size: u16::from_le_bytes([a, b]), offset: i32::from_le_bytes([c, d, e, f]) }
    }
}

/// Where the programs of a stub's function are: offsets from the area's beginning; 0: nothing is copied.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Offsets {
    /// Of the program for its beginning.
    pub entry: u32,
    /// Of that for its return.
    pub exit: u32,
    /// The function's number; 0: its calls are not recorded.
    pub number: u32,
    /// Of the program of a probe at the function's return; 0: there is none.
    pub returns: u32,
}

/// Bytes of a probe's program before its steps.
pub const PROBE_HEAD: usize = 16;
/// In the second number of a probe's program: the stack is walked first.
pub const WALKS: u32 = 1 << 31;
/// Likewise: it copies nothing but registers, a few bytes in all ([`is_simple`]).
pub const SIMPLE: u32 = 1 << 30;
/// The most bytes of a program that is [`SIMPLE`].
pub const FEW: usize = 64;

/// Whether a probe's program copies nothing but general registers, and no more bytes than [`FEW`].
pub fn is_simple(steps: &[Step]) -> bool {
    let is_register = |place: u8| (REGISTER..REGISTER + REGISTERS as u8).contains(&place);
    let is_copy = |s: &Step| s.op == Op::Load as u8 && is_register(s.place) && (1..=8).contains(&s.size);
    steps.iter().all(is_copy) && most(steps) as usize <= FEW
}

/// The most bytes that a program copies.
pub fn most(steps: &[Step]) -> u32 {
    let of = |step: &Step| match step.op {
        op if op == Op::Load as u8 || op == Op::Cpu as u8 => u32::from(step.size),
        // A head and the string, and room for an address and one byte more.
        op if [Op::Text, Op::Slice, Op::Pointee].iter().any(|o| *o as u8 == op) => 2 + u32::from(step.size).max(8) + 1,
        _ => 0,
    };
    steps.iter().map(of).sum()
}
