//! The hash of a stack, from the outermost frame inward: what lies outside of a frame has a hash of its own, and keeps it.

/// Any two odd numbers with as many ones as zeros (those of wyhash).
const KEYS: [u64; 2] = [0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db];

/// No frames.
pub const NONE: u64 = 0;

/// The hash of frames, of which `outer` is that of all but the innermost one.
#[inline]
pub fn add(outer: u64, frame: u64) -> u64 {
    let product = u128::from(outer ^ KEYS[0]) * u128::from(frame ^ KEYS[1]);
    product as u64 ^ (product >> 64) as u64
}

/// The hash as it is given away: never 0.
#[inline]
pub fn finish(hash: u64) -> u64 {
    if hash == 0 { 1 } else { hash }
}
