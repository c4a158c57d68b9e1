//! The backends that need no privilege: system calls by ptrace(2), and samples by perf_event_open(2) with copies of stacks.

pub mod perf;
pub mod ptrace;
