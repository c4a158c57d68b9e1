//! Patches of functions: from code, symbols and FDEs to stubs and the bytes that lead into them. Pure: bytes in, bytes out.

pub mod file;
pub mod hole;
mod input;
pub mod link;
mod plan;
mod refusal;
mod relocate;
pub mod stub;
mod targets;

pub use input::{Frame, Function, Module, Segment};
pub use plan::{Plan, Site};
pub use refusal::Refusal;
pub use relocate::{Fix, FixKind};
