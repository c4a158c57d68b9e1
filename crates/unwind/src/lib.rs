//! Call stacks of programs without frame pointers, by compact tables made of `.eh_frame`.
#![no_std]

#[cfg(feature = "build")]
extern crate std;

#[cfg(feature = "build")]
pub mod build;
#[cfg(feature = "cfi")]
pub mod cfi;
pub mod rule;
pub mod stack;
pub mod table;
pub mod walk;

pub use rule::{Kind, Rule, SavedBp};
pub use stack::{Ended, Frame, Record};
pub use table::{Mapping, Page, Row, Tables};
pub use walk::{Registers, Target, Walk};
