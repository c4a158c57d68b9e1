//! What the tests of all crates share: random numbers, skips, programs, directories. A development dependency only, which uses no
//! crate of the workspace, so that each may use it.

pub mod clauses;
mod dirs;
mod programs;
mod python;
mod random;
mod skips;

pub use dirs::{Scratch, dir, open_to_all};
pub use programs::{PATH, compile, compiled, has};
pub use python::python;
pub use random::{Random, rounds, seeded};
pub use skips::{is_root, own_pid_namespace, skip};
