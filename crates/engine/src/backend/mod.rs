//! Backends: how a session is carried out. All deliver the same events through one trait.

pub mod agent;
mod code;
mod elf_file;
mod fds;
mod ids;
pub mod joined;
pub mod kernel;
mod launch;
pub mod perf;
pub mod ptrace;
pub mod recorded;
