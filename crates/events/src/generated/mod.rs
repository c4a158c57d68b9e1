//! Data written by `cargo xtask codegen`.

pub mod errno;
pub mod flags;
pub mod structs;
pub mod switches;
mod syscalls;

pub use syscalls::*;
