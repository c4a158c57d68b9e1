//! Backends: how an enabling is carried out.

pub mod ptrace;
