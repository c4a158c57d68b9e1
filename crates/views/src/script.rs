//! What scripts print, as bpftrace prints it: text, or JSON lines.
//!
//! ```text
//! lang::script::run::Output ─► text | json ─► value (of a type) · printf (by a format) · chart (of a histogram)
//! ```
//!
//! Strings of the traced system are escaped: no control character of them reaches the output. Those that stand in the script are not.

mod chart;
pub mod json;
mod printf;
pub mod text;
mod value;

use lang::script::Program;
use lang::script::types::Space;

/// A frame of a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Its address.
    pub address: u64,
    /// The symbol; none where it is not known.
    pub name: Option<String>,
    /// Bytes from the symbol's start.
    pub offset: u64,
}

/// Names for values that are numbers of something: stacks, symbols, users.
pub trait Names {
    /// The frames of a stack, the innermost one first.
    fn stack(&self, _space: Space, _stack: u64, _pid: u32) -> Vec<Frame> {
        Vec::new()
    }

    /// The symbol at an address.
    fn symbol(&self, _space: Space, _address: u64, _pid: u32) -> Option<String> {
        None
    }

    /// A user.
    fn user(&self, _uid: u32) -> Option<String> {
        None
    }
}

/// No names.
pub struct Nameless;

impl Names for Nameless {}

/// What is needed to print.
pub struct Printer<'p> {
    /// The script.
    pub program: &'p Program,
    /// The script's text, and the name of its file.
    pub source: (&'p str, &'p str),
    /// Names.
    pub names: &'p dyn Names,
    /// Strings of the traced system as they are.
    pub raw_strings: bool,
}

/// The destination of printed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goes {
    /// To the output.
    Out,
    /// To the errors.
    Err,
    /// It is a path, whose file is shown.
    File,
    /// It is a command: what it writes is shown.
    Command,
}
