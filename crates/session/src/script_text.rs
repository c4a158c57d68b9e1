//! The place of a script in a trace, which both who runs it and who leaves it out look at.

/// The name of its text in the trace's environment.
pub const TEXT: &str = "script";
