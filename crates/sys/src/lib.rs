//! The only crate that calls the kernel directly: ptrace, process memory, seccomp, the shared ring, processes and `/proc`.
//!
//! Each module wraps one facility in safe functions that return [`std::io::Result`]; nothing here knows events or schemas.
//! Only this crate (and later the agent and its ABI) contains unsafe code; every block says why it is sound.

pub mod agent;
pub mod bpf;
pub mod bpffs;
pub mod btf;
pub mod caps;
mod check;
pub mod diag;
pub mod fdinfo;
pub mod intercept;
mod mapping;
pub mod maps;
pub mod mem;
pub mod passing;
pub mod perf;
pub mod priority;
pub mod probe;
pub mod proc;
pub mod process;
pub mod processors;
pub mod ptrace;
pub mod remote;
pub mod ring;
pub mod seccomp;
pub mod signal;
pub mod socket;
pub mod span;
pub mod time;
pub mod tracefs;
pub mod users;
