//! The agent: the code that runs in traced processes. A shared library without libc, loaded by `LD_PRELOAD`, which installs the patches
//! that the collector has planned, and has the slow code of stubs and the functions that replace some of libc's.
//!
//! ```text
//!  invoke ─┐ (attach, detach)
//!  start ──┴─► session ──► talk (socket) · install (areas, patches)
//!  stubs ──► slow ──► shadow (calls that have not returned) · chunks (memory for records) ──► child (of fork) ──► talk
//!  stubs ──► calls (lists of tracers) ──► tracers of the program · counts · checks (rules of `abi::built_in`) · record (graph)
//!  command (socket) ──► tracers (which are enabled) · sites (where: stubs, bytes)
//!  hooks: frames (unwinding) · signals · exec · fork · modules ──► permits (what the program has forbidden itself)
//! ```
//!
//! Rules of this crate:
//!
//! - **Nothing of the program is used**: no libc, no malloc, no lock that the program or another thread may hold, no descriptor that
//!   stays open, no errno. Calls of the kernel are bare (`kernel`).
//! - **Code that touches a thread's chunk runs with all signals blocked.** Stubs, and `record`, do not block signals: the stand-in for handlers puts
//!   right what it interrupts (`hooks::signals`). So there are no half-made states but those that `patch::stub` lists.
//! - **No panic**: there is nothing that could report it. Indices are checked by `get`, numbers from shared memory and messages before use.
//! - **Little stack**: a few hundred bytes in slow code, because coroutines and alternate signal stacks are small.
//!
//! Everything that is mapped stays mapped, except what only the start needs: a thread may be in a stub, or in slow code, at any time.
//!
//! `cargo build --release --manifest-path crates/agent/Cargo.toml --target-dir DIR --offline --locked` makes `DIR/release/libagent.so`.

#![no_std]

mod again;
mod areas;
mod args;
mod calls;
mod checks;
mod child;
mod chunks;
mod command;
mod context;
mod counts;
mod debugger;
mod dwarf;
mod entries;
mod frame;
mod heap;
mod hooks;
mod install;
mod invoke;
mod kernel;
mod loader;
mod memory;
mod op;
mod originals;
mod own;
mod permits;
mod plain;
mod plan;
mod plans;
mod probes;
mod record;
mod registers;
mod session;
mod shadow;
mod shared;
mod sites;
mod slots;
mod slow;
mod start;
mod tables;
mod talk;
mod text;
mod thread;
mod tracers;
mod values;
mod vectors;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    kernel::abort()
}
