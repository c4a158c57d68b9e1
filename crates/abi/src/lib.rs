//! What the agent in a traced process and the collector share: the messages on their socket, the plan of patches, and the shared memory
//! of a process.
//!
//! ```text
//!  agent (in the process)                                collector (trapline)
//!  at its start, after fork, dlopen: [`message::Hello`] ──► reads the files of the modules, plans, links stubs
//!        + text of /proc/self/maps
//!        ◄── [`message::Welcome`] + descriptors: shared memory (sealed), [`plan`] (sealed, read only), unwind tables
//!  maps areas, checks bytes, patches
//!        [`message::Installed`] ──►                       closes the socket
//!  before exec, and where that fails:
//!        [`message::Hello`] + the program's path ──►      knows which program has no agent
//!
//!  collector calls the agent's entry point in a stopped process ([`message::Invocation`]): attach, detach
//!
//!  stubs ──► records in chunks of the shared memory ([`shared`]) ──► read while they are written
//!  stubs ──► tracers: their table and rules ([`built_in`])
//! ```
//!
//! Everything is little-endian and laid out by `repr(C)` with explicit padding. Both sides are built from one source; [`VERSION`] distinguishes
//! a mismatch (an agent of another trapline). Neither side trusts the other: every number that comes from shared memory or a message is
//! checked before it is used.

#![no_std]

pub mod built_in;
pub mod caller;
pub mod heap;
pub mod message;
pub mod pattern;
pub mod permits;
pub mod plan;
pub mod shared;
pub mod stub;
pub mod thread;
pub mod tracer;
pub mod values;

/// Version of everything in this crate. It changes with any of it.
pub const VERSION: u32 = 15;

/// Where the agent's file is mapped: it is linked at the beginning of this range, and loaders map a library where it is linked, if there
/// is room. So a system call whose instruction lies here is the agent's own, not the program's. The agent's other mappings are above.
pub const CODE: core::ops::Range<u64> = 0x10ff_0000_0000..0x1100_0000_0000;

/// The environment variable that has the name of the collector's socket: a path, or a name in the abstract namespace of unix(7) without
/// the leading NUL.
/// The agent takes it, and itself in `LD_PRELOAD`, out of the environment that the program sees, and puts both into that of a program
/// which the process executes.
pub const SOCKET: &str = "TRAPLINE_AGENT";
