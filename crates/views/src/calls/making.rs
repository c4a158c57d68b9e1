//! What a view of calls is made from.

use super::Selection;
use super::tree::style::Style;

/// What a view of calls is made from.
pub struct Making {
    /// The calls that are shown.
    pub selection: Selection,
    /// What lines of trees look like.
    pub style: Style,
    /// The screen, if somebody looks at it.
    pub screen: Option<Screen>,
}

/// How much is shown, and what is said about the rest.
#[derive(Clone, Debug)]
pub struct Screen {
    /// Lines.
    pub rows: usize,
    /// How to see everything, for the last line.
    pub hint: String,
}

/// How functions are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demangle {
    /// By their demangled names, without template arguments and parameters.
    Simple,
    /// By their demangled names without parameters.
    Plain,
    /// By their demangled names.
    Full,
    /// As the linker calls them.
    No,
}
