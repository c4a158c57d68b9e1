//! Call stacks of programs without frame pointers: compact tables made of `.eh_frame`, and a walker that follows them.
//!
//! ```text
//!  ELF file ──build::Module::build──► rows, pages, rules of one file          (feature build: std, gimli, object)
//!                    │ build::Space::add: places, common rule numbers
//!                    ▼
//!  the tables of a session                                                    who writes        who reads
//!  ┌──────────────────────────────────────────────────────────────────────┐
//!  │ Mapping { start, end, bias, first page, flags }      per process     │  collector: at exec, mmap, fork   program, walker
//!  │ Page    { u32 first row, u32 rows }                  per 64 KiB      │  collector: Space::pages          program, walker
//!  │ Row     u32 = low 16 bits of the address << 16 | rule, in chunks     │  collector: Space::add's closure  program, walker
//!  │ Rule    u64: CFA, rbp                                by number       │  collector: Space::rules          program, walker
//!  └──────────────────────────────────────────────────────────────────────┘
//!                    │                                   │
//!     bpf::unwind: a program of the kernel      walk::Walk: copied stacks, registers and
//!     walks the live stack, and leaves          memory from wherever the caller has them
//!     a stack::Record                           (no_std, allocates nothing)
//! ```
//!
//! A thread that walks its own stack, at each allocation, has [`replay::Replay`]: it takes the steps of [`walk`], and remembers what it
//! has found. The tables come to it as a file ([`shared`]).
//!
//! Where functions are traced by the agent, walks lead through its stubs ([`patched`]).
//!
//! Layouts are described once: rules in [`rule`], rows, pages and mappings in [`table`], frames and records in [`stack`]. Both walkers
//! take the same steps; `bpf::unwind`'s tests compare them. The maps of the kernel are described in `bpf::unwind`.
//!
//! What a collector does: it builds a [`build::Module`] of each file that a process maps with executable pages (several at a time on
//! several threads, if it likes), adds it to the session's [`build::Space`], which calls back for the rows of each page, and makes the
//! process's mappings with [`build::Placed::mapping`]. It writes rows first, then pages, rules, and at last the process: the program may run
//! in between. Code without unwind information is a mapping with [`Mapping::NO_ROWS`]. The mappings `[uprobes]` and `[vsyscall]` are left out:
//! that an address is in no mapping is how a walk notices what uprobes have replaced.
//!
//! Exactness: for each address the rule is what the file's unwind information says, or [`Rule::UNKNOWN`], which ends a walk. The only
//! guesses are frames of code without any information; they are marked ([`Frame::is_guessed`]). Padding of less than 16 bytes between
//! functions takes the rule before it.
//!
//! Hostile files and stacks are answered in bounded time and memory, with tables or frames that may be wrong.
//!
//! Not here: finding files and mappings, symbols, other processors than x86-64.
#![no_std]

#[cfg(feature = "build")]
extern crate std;

#[cfg(feature = "build")]
pub mod build;
pub mod patched;
pub mod replay;
pub mod rule;
pub mod shared;
pub mod stack;
pub mod table;
pub mod walk;

pub use rule::{Kind, Rule, SavedBp};
pub use stack::{Ended, Frame, Record};
pub use table::{Mapping, Page, Row, Tables};
pub use walk::{Registers, Target, Walk};
