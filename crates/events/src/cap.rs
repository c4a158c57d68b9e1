//! The outcome of reads from the target's memory.

/// The bytes are not an event of their class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("malformed event")
    }
}
impl std::error::Error for Malformed {}

/// The outcome of a read from the target's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cap {
    /// Not tried.
    None,
    /// All of it was read.
    Whole,
    /// Only a part of it was asked for.
    Cut,
    /// The memory could not be read.
    Fault,
}

impl Cap {
    /// From the lowest two bits.
    pub fn from_bits(b: u8) -> Cap {
        match b & 3 {
            0 => Cap::None,
            1 => Cap::Whole,
            2 => Cap::Cut,
            _ => Cap::Fault,
        }
    }
    /// As two bits.
    pub fn bits(self) -> u8 {
        self as u8
    }
}
