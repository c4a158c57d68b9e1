//! Output part by part.

/// Takes what a view has appended, and leaves nothing of it.
pub type Spill<'a> = &'a mut dyn FnMut(&mut Vec<u8>);
