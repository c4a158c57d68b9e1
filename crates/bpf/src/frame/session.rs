//! The part of a session that its programs must know: maps, whose events, which of them, and where the programs are attached.

#[cfg(doc)]
use super::{session_switch, state};
#[cfg(doc)]
use crate::capture_row;
use crate::capture_row::Frames;
use crate::scratch::Shape;
use crate::unwind::Tables;

/// The maps that the programs use, by their descriptors.
#[derive(Clone, Debug, Default)]
pub struct Maps {
    /// Task storage of [`state::SIZE`] bytes.
    pub tasks: i32,
    /// Array of scratch buffers by CPU.
    pub scratch: i32,
    /// What the scratch buffers are made for.
    pub shape: Shape,
    /// Ring buffers by CPU.
    pub rings: Vec<i32>,
    /// Array of [`capture_row::ROW`] bytes by call number; its size is `row_count`.
    pub rows: i32,
    /// Number of rows.
    pub row_count: i32,
    /// Hash from [`capture_row::switch_key`] to two ops, of entry and of exit.
    pub switches: i32,
    /// Where stacks are captured; none where no event has any.
    pub stacks: Option<Stacks>,
    /// Slots for the words of calls; none: they are in the task storage.
    pub slots: Option<Slots>,
}

/// The map of slots (`frame::slots`): an array of [`state::SLOT`] bytes, with spare ones for each CPU at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// Its descriptor.
    pub map: i32,
    /// There are 2 to this power, 1 to 31, and the spare ones.
    pub bits: u32,
}

impl Slots {
    /// Spare slots of a CPU.
    pub const SPARE: u32 = 2;

    /// How many there are, without the spare ones.
    pub const fn count(self) -> u32 {
        1 << self.bits
    }

    /// Entries of the map on a machine with this many CPUs.
    pub const fn entries(self, cpus: u32) -> u32 {
        self.count() + Slots::SPARE * cpus
    }
}

/// What stacks are captured with.
#[derive(Clone, Copy, Debug)]
pub struct Stacks {
    /// Array of areas of [`crate::stacks::SIZE`] bytes, by CPU.
    pub areas: i32,
    /// Tables for user stacks; none: by frame pointers, by the kernel.
    pub tables: Option<Tables>,
}

/// The settings of a session.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// The kinds of ops that the rows have, a bit each ([`capture_row::kinds`]): what is not there costs the verifier nothing.
    /// None: all.
    pub kinds: Option<u32>,
    /// Some calls have captures: a thread's name, stacks. The number is how many frames at the top of a kernel stack are the
    /// programs' own.
    pub captures: Option<u8>,
    /// Frames of the calls' stacks, at most; 0: no call has any.
    pub frames: Frames,
    /// The class of signals, where they have the stack of the process.
    pub signals: Option<&'static events::Schema>,
    /// Calls that no row describes, and 32-bit ones, are wanted.
    pub unknown: bool,
    /// The session can be stopped, and its calls chosen anew: the first value of [`crate::scratch::SWITCH`] (see
    /// [`session_switch`]).
    pub switch: Option<u64>,
    /// Filters of the selected calls by their numbers, sorted, all of one text; empty: all events pass.
    pub filters: Vec<(u32, lang::Filter)>,
    /// The upper half of the addresses of code whose calls are not the program's, but those of a tracer in its process. They are not
    /// shown, except for an execve that succeeds, which such code makes on the program's behalf. Only with [`Source::All`].
    pub hidden: Option<u32>,
    /// No program runs at the entry of a call: what is known of the call is what its end finds in the registers. Events have no start
    /// and no processor of entry, calls that do not return have none, and memory that is read at entry is not captured. Rows are those of
    /// [`crate::rows_at_exit`]. Not with [`Session::hidden`].
    pub no_entry: bool,
    /// Every process is traced but those whose task storage says [`state::LEFT_OUT`] or [`state::OWN`]; else only those with task
    /// storage are.
    pub system_wide: bool,
    /// The rights that tasks may have, where the session is not root's: a task that executes a program with other rights is released.
    pub only: Option<Rights>,
}

/// What a traced task may be, by the rules of ptrace(2): of one user, without a capability that the tracer does not have, and
/// dumpable (a program that its user may not read is not). Where the kernel keeps that is in [`crate::btf_offsets::Credentials`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// Real user of the session.
    pub uid: u32,
    /// Capabilities, as bits.
    pub capabilities: u64,
}

/// Where the programs of calls are attached, which decides what their context looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// `sys_enter` (tp_btf) and `sys_exit` (a raw tracepoint): { pt_regs, number } and { pt_regs, result }. Every task of the
    /// machine passes there.
    All,
    /// The tracepoints of single calls, `syscalls:sys_enter_NAME`: `{ u64 common, int number, long arguments[] }` and
    /// `{ u64 common, int number, long result }`. Other calls are not slowed down. With the call's number of arguments: the kernel
    /// refuses a program that reads beyond them.
    Single(u8),
}
