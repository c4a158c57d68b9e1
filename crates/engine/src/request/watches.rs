//! Addresses that debug registers watch because functions were called with them: those that are to be watched no more, and calls whose
//! address could not be.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Those of one enabling. The session sets them, views read them.
#[derive(Clone, Debug, Default)]
pub struct Watches(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    released: Mutex<Vec<u64>>,
    without_register: AtomicU64,
    misaligned: AtomicU64,
}

impl Watches {
    /// An address is to be watched no more.
    pub fn release(&self, address: u64) {
        let mut all = self.0.released.lock().unwrap_or_else(PoisonError::into_inner);
        if all.last() != Some(&address) {
            all.push(address);
        }
    }

    /// What is to be watched no more, since the last time.
    pub fn take_released(&self) -> Vec<u64> {
        std::mem::take(&mut self.0.released.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// This many calls were given an address that is not watched, because no register was free, and because it is no multiple of the length.
    pub fn count(&self, without_register: u64, misaligned: u64) {
        self.0.without_register.store(without_register, Ordering::Relaxed);
        self.0.misaligned.store(misaligned, Ordering::Relaxed);
    }

    /// What was not watched, a line each.
    pub fn unwatched(&self, probe: &str) -> Vec<String> {
        let line = |n: &AtomicU64, why: &str| {
            let n = n.load(Ordering::Relaxed);
            (n > 0).then(|| format!("{probe}: the addresses of {n} calls were not watched: {why}"))
        };
        let registers = "all debug registers of a processor were taken, and x86 has four";
        let multiples = "x86 watches multiples of the length only";
        line(&self.0.without_register, registers).into_iter().chain(line(&self.0.misaligned, multiples)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_released_is_taken_once_and_what_is_not_watched_is_said() {
        let watches = Watches::default();
        [8, 8, 16].into_iter().for_each(|a| watches.clone().release(a));
        assert_eq!(watches.take_released(), [8, 16]);
        assert_eq!(watches.take_released(), []);
        assert!(watches.unwatched("w").is_empty());
        watches.count(3, 0);
        assert_eq!(
            watches.unwatched("w"),
            [
                "w: the addresses of 3 calls were not watched: all debug registers of a processor were taken, and x86 has four"
            ]
        );
    }
}
