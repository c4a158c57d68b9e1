//! Tracers of a process: what trapline asks the agent to do with them, and what the agent answers.
//!
//! ```text
//!  agent: called with the name of a socket, all other threads stopped       trapline: made the socket, and the call
//!        [`crate::message::Hello`] without maps, [`crate::message::Reason::Tracers`] ──►
//!        ◄── [`Request`] + count · [`Target`] (+ descriptor of a plan)
//!        [`Reply`] + payload ──►                                            … until the socket is closed
//! ```
//!
//! The agent keeps a table of *sites*: functions that have stubs, by their numbers, which are given in order from 1. A site keeps its stubs
//! for good, one of each variant that was needed once, and has its original bytes while no tracer is on it.
//!
//! A recording ([`crate::message::Reason::Start`], `Attach`) is the tracer `graph`, which is enabled as long as the recording lasts. Its
//! functions become sites when another tracer is enabled on them; sites that have tracers get it by [`Operation::Join`].

use crate::message::Words;

/// The longest name of a tracer, and a NUL.
pub const NAME: usize = 32;
/// The most tracers that are enabled at once.
pub const ENABLED: usize = 8;
/// The most tracers that a process knows.
pub const TRACERS: usize = 64;

/// The section of the agent's file with the tracers that a process knows: [`TRACERS`] of [`Entry::SIZE`] bytes.
pub const SECTION: &str = ".trapline_tracers";

/// What is known of a tracer without asking the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name, filled up with NULs.
    pub name: [u8; NAME],
    /// It is enabled.
    pub enabled: bool,
}

impl Entry {
    /// Bytes of an entry: name, kind (4 bytes), slot (4 bytes; 0: it is disabled), and what only the agent reads.
    pub const SIZE: usize = 80;

    /// Reads one; none where there is no tracer.
    pub fn parse(bytes: &[u8]) -> Option<Entry> {
        let name = *bytes.first_chunk::<NAME>()?;
        let slot = bytes.get(NAME + 4..)?.first_chunk::<4>()?;
        (name[0] != 0).then(|| Entry { name, enabled: *slot != [0; 4] })
    }
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Operation {
    /// Which tracers and sites there are: [`State`], then [`Known`] and [`Site`]s.
    Status = 1,
    /// Enable a tracer on the targets.
    Enable = 2,
    /// Disable a tracer on all sites.
    Disable = 3,
    /// What a tracer has so far: [`Printed`], then [`Counted`] or [`Violation`]s.
    Print = 4,
    /// Have the recording on targets that have its stubs, and other tracers.
    Join = 5,
}

/// A request. `count` targets follow.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Request {
    /// [`crate::message::MAGIC`].
    pub magic: u32,
    /// [`crate::VERSION`].
    pub version: u32,
    /// An [`Operation`].
    pub operation: u32,
    /// How many targets follow.
    pub count: u32,
    /// The tracer, filled up with NULs.
    pub name: [u8; NAME],
    /// What the tracer's row says ([`crate::built_in::Row::options`]).
    pub options: [u64; 8],
    /// Bytes of the plan, whose descriptor comes with the request; 0: none.
    pub plan: u64,
}

/// A site that a tracer is enabled on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Target {
    /// Its number. A new one is one more than the last.
    pub number: u32,
    /// The patch of the plan that leads to a new stub of it; [`NO_PATCH`]: it has all stubs that it needs.
    pub patch: u32,
}

/// Bit of [`Known::reported`] of a recording: it began with the program.
pub const PRELOADED: u64 = 1 << 32;
/// No patch.
pub const NO_PATCH: u32 = u32::MAX;

/// Why nothing was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Refused {
    /// No tracer has this name.
    NoSuch = 1,
    /// It is enabled already.
    Already = 2,
    /// It is not enabled.
    NotEnabled = 3,
    /// As many as possible are enabled.
    TooMany = 4,
    /// A thread of the process is patching it.
    Busy = 5,
    /// There is no memory for it.
    Memory = 6,
    /// The request is not what it should be.
    Wrong = 7,
    /// The processor lacks what a tracer that may use all vector registers needs: XSAVEC.
    Processor = 8,
    /// A session keeps sums of its functions, in the place of what tracers count.
    Sums = 9,
}

/// The answer to a request. `len` bytes follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Reply {
    /// [`crate::message::MAGIC`].
    pub magic: u32,
    /// 0, or why nothing was done: a [`Refused`].
    pub error: u32,
    /// Sites whose bytes were changed.
    pub patched: u32,
    /// Sites that have other bytes than are expected: they stay as they are.
    pub other_bytes: u32,
    /// Sites whose stubs could not be mapped.
    pub no_area: u32,
    /// Sites that could not be written.
    pub failed: u32,
    /// Bytes that follow.
    pub len: u64,
}

/// Of [`Operation::Status`]. The tracers follow, then the sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct State {
    /// How many tracers.
    pub tracers: u32,
    /// How many sites.
    pub sites: u32,
}

/// A tracer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Known {
    /// Its name, filled up with NULs.
    pub name: [u8; NAME],
    /// A [`crate::built_in::Kind`].
    pub kind: u32,
    /// 0: it is disabled; else its place in the order of enabling, from 1.
    pub place: u32,
    /// Calls that no tracer saw, because there was no memory for their threads.
    pub missed: u64,
    /// Calls that no tracer saw, because their threads were in a tracer.
    pub nested: u64,
    /// What it has reported: violations, or complaints of a tracer about itself. Of [`crate::built_in::Kind::Graph`]: the collector's thread, as it
    /// numbers itself, and [`PRELOADED`].
    pub reported: u64,
    /// Panics of it that the crate `tracer` has caught. It gets no more calls.
    pub panics: u64,
}

/// A site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Site {
    /// The function's address.
    pub address: u64,
    /// The bytes at the address when it is not patched.
    pub old: [u8; 8],
    /// The stubs that it has: bit n is set for [`STUBS`]`[n]`.
    pub stubs: u32,
    /// The enabled tracers that are on it: bits.
    pub tracers: u32,
}

/// The variants of stubs that a site may have. The last three are those of a recording, which go with it.
pub const STUBS: [crate::stub::Variant; 6] = [
    crate::stub::Variant::Count,
    crate::stub::Variant::CountTimed,
    crate::stub::Variant::Called,
    crate::stub::Variant::Paired,
    crate::stub::Variant::Timed,
    crate::stub::Variant::Callers,
];

/// Whether a stub of a variant writes records.
pub const fn records(variant: crate::stub::Variant) -> bool {
    use crate::stub::Variant::{Callers, Paired, Timed};
    matches!(variant, Callers | Paired | Timed)
}

/// Of [`Operation::Print`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Printed {
    /// How many [`Counted`] follow.
    pub counted: u32,
    /// How many [`Violation`]s follow.
    pub violations: u32,
    /// Violations that there was no room for.
    pub lost: u64,
    /// The time stamp counter and the monotonic clock, in ns, when the tracer was enabled.
    pub begun: [u64; 2],
    /// The same now.
    pub now: [u64; 2],
}

/// What all threads have counted of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counted {
    /// The function's number.
    pub number: u64,
    /// As in [`crate::thread::Row`].
    pub calls: u64,
    /// Ticks.
    pub total: u64,
    /// Ticks; signed.
    pub own: i64,
}

/// Bytes of stack that a violation has at most.
pub const STACK: usize = 32 << 10;

/// A call that broke a rule.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Violation {
    /// 0: it is not complete.
    pub state: u32,
    /// The thread.
    pub tid: u32,
    /// Its name, filled up with NULs.
    pub thread: [u8; 16],
    /// The function's number.
    pub number: u32,
    /// A [`crate::built_in::Kind`]: the tracer that says so.
    pub kind: u32,
    /// When, by the monotonic clock, in ns.
    pub time: u64,
    /// Ticks that the call has taken; 0 where only the call counts.
    pub took: u64,
    /// Registers when the function was called, rsp at its return address: rip, rsp, rbp, rbx, r12 to r15. One that has returned has restored
    /// them.
    pub registers: [u64; 8],
    /// Bytes of `stack` that are there.
    pub len: u64,
    /// The stack from rsp upwards. Return addresses of calls that are traced are those of the program.
    pub stack: [u8; STACK],
}

impl Default for Violation {
    fn default() -> Violation {
        Violation {
            state: 0,
            tid: 0,
            thread: [0; 16],
            number: 0,
            kind: 0,
            time: 0,
            took: 0,
            registers: [0; 8],
            len: 0,
            stack: [0; STACK],
        }
    }
}

impl Request {
    /// Its bytes on the socket.
    pub const SIZE: usize = size_of::<Request>();

    /// Writes it.
    pub fn bytes(&self) -> [u8; Request::SIZE] {
        let mut out = [0; Request::SIZE];
        let words = [self.magic, self.version, self.operation, self.count];
        out.chunks_exact_mut(4).zip(words).for_each(|(to, w)| to.copy_from_slice(&w.to_le_bytes()));
        let (_, rest) = out.split_at_mut(16);
        let (name, rest) = rest.split_at_mut(NAME);
        name.copy_from_slice(&self.name);
        let longs = self.options.iter().chain([&self.plan]);
        rest.chunks_exact_mut(8).zip(longs).for_each(|(to, l)| to.copy_from_slice(&l.to_le_bytes()));
        out
    }
}

impl Target {
    /// Its bytes on the socket.
    pub fn bytes(&self) -> [u8; 8] {
        (u64::from(self.number) | u64::from(self.patch) << 32).to_le_bytes()
    }
}

/// What comes over the socket as bytes.
pub trait Message: Sized {
    /// Bytes of one.
    const SIZE: usize = size_of::<Self>();

    /// Takes one off the front of bytes; what is missing is 0.
    fn take(words: &mut Words<'_>) -> Self;

    /// The first one in these bytes.
    fn parse(bytes: &[u8]) -> Self {
        Self::take(&mut Words::of(bytes))
    }
}

impl Message for Reply {
    fn take(w: &mut Words<'_>) -> Reply {
        Reply {
            magic: w.u32(),
            error: w.u32(),
            patched: w.u32(),
            other_bytes: w.u32(),
            no_area: w.u32(),
            failed: w.u32(),
            len: w.u64(),
        }
    }
}

impl Message for State {
    fn take(w: &mut Words<'_>) -> State {
        State { tracers: w.u32(), sites: w.u32() }
    }
}

impl Message for Known {
    fn take(w: &mut Words<'_>) -> Known {
        Known {
            name: w.bytes(),
            kind: w.u32(),
            place: w.u32(),
            missed: w.u64(),
            nested: w.u64(),
            reported: w.u64(),
            panics: w.u64(),
        }
    }
}

impl Message for Site {
    fn take(w: &mut Words<'_>) -> Site {
        Site { address: w.u64(), old: w.bytes(), stubs: w.u32(), tracers: w.u32() }
    }
}

impl Message for Printed {
    fn take(w: &mut Words<'_>) -> Printed {
        Printed {
            counted: w.u32(),
            violations: w.u32(),
            lost: w.u64(),
            begun: [w.u64(), w.u64()],
            now: [w.u64(), w.u64()],
        }
    }
}

impl Message for Counted {
    fn take(w: &mut Words<'_>) -> Counted {
        Counted { number: w.u64(), calls: w.u64(), total: w.u64(), own: w.u64() as i64 }
    }
}

impl Message for Violation {
    fn take(w: &mut Words<'_>) -> Violation {
        Violation {
            state: w.u32(),
            tid: w.u32(),
            thread: w.bytes(),
            number: w.u32(),
            kind: w.u32(),
            time: w.u64(),
            took: w.u64(),
            registers: core::array::from_fn(|_| w.u64()),
            len: w.u64(),
            stack: w.bytes(),
        }
    }
}

/// A tracer's name as messages have it; None: it is too long or empty.
pub fn name(text: &str) -> Option<[u8; NAME]> {
    let mut name = [0; NAME];
    let fits = !text.is_empty() && text.len() < NAME;
    name.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
    fits.then_some(name)
}
