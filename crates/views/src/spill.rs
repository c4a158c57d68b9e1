//! Output part by part.

/// Takes the bytes that a view has appended, and empties the buffer.
pub type Spill<'a> = &'a mut dyn FnMut(&mut Vec<u8>);
