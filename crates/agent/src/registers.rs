//! What the slow code of calls saves of vector registers for the functions that it calls.

use core::sync::atomic::AtomicU32;

/// What is saved of vectors beside xmm0 to xmm15: 0: nothing, because the agent's own code leaves the rest alone; [`AVX`]; [`ALL`].
pub static WIDE: AtomicU32 = AtomicU32::new(0);
/// ymm0 to ymm15.
pub const AVX: u32 = 1;
/// All of them, and mask registers. That takes half a microsecond.
pub const ALL: u32 = 2;

/// The parts of the processor's state that [`ALL`] saves, as bits of XCR0: upper halves of ymm, mask registers, upper halves of zmm, zmm16
/// to zmm31. Whether they are in use (XINUSE) is no shortcut: libraries leave mask registers in use for good, and asking takes 40 ns.
pub const PARTS: u32 = 0xe4;
/// Bytes for them: 576 before the first one, 256 + 64 + 512 + 1024.
pub const AREA: u32 = 2560;
