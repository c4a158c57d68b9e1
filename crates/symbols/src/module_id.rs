//! The number of a module.

/// A module of a [`crate::symbolizer::Symbolizer`], by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleId(pub(crate) u32);
