//! How fast the time stamp counter is.

use std::sync::OnceLock;
use std::time::Duration;

/// Ticks of the time stamp counter in a millisecond, measured once for two of them.
pub fn ticks_per_ms() -> u64 {
    static MEASURED: OnceLock<u64> = OnceLock::new();
    *MEASURED.get_or_init(|| {
        let from = sys::time::stamp();
        std::thread::sleep(Duration::from_millis(2));
        let to = sys::time::stamp();
        let ns = u128::from(to.1.saturating_sub(from.1)).max(1);
        (u128::from(to.0.saturating_sub(from.0)) * 1_000_000 / ns) as u64
    })
}

/// A duration in ticks.
pub fn ticks_of(ns: u64, ticks_per_ms: u64) -> u64 {
    ns.saturating_mul(ticks_per_ms) / 1_000_000
}
