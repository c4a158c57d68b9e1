//! The backends that need no privilege: system calls by ptrace(2), and samples by perf_event_open(2) with copies of stacks. And what threads
//! are doing now.

pub mod perf;
pub mod ptrace;
pub mod threads;
