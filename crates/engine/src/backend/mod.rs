//! What backends share, and the one that reads a recorded trace. The others are crates of their own, which know this one and not each other.

pub mod code;
pub mod copied;
pub mod elf_file;
pub mod fds;
pub mod ids;
pub mod in_flight;
pub mod launch;
pub mod patched;
pub mod recorded;
pub mod stacks;
