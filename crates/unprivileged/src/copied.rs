//! Threads that do not run meanwhile, for walks up their stacks: registers, and a copy of the inner part of the stack.

use engine::backend::code::Code;
use unwind::Rule;
use unwind::walk::Target;

/// Reads of 8 bytes outside of the copy.
const MOST_READS: u32 = 256;
/// The value of a register that is not known: no address, and no multiple of 8.
pub const UNKNOWN: u64 = 0x4000_0000_0000_0001;

/// A thread.
pub struct Copied<'s> {
    /// Its id.
    pub tid: i32,
    /// Where the copy begins.
    pub sp: u64,
    /// Its registers, by their numbers in the ABI; those that are not known are [`UNKNOWN`].
    pub registers: [u64; 16],
    /// The inner part of its stack.
    pub copy: &'s [u8],
    /// What its process has mapped; none where that is not known.
    pub code: Option<&'s Code>,
    /// Reads outside of the copy so far.
    pub reads: u32,
}

impl Target for Copied<'_> {
    fn read(&mut self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.wrapping_sub(self.sp)).ok();
        if let Some(word) = at.and_then(|at| self.copy.get(at..)?.first_chunk::<8>()) {
            return Some(u64::from_le_bytes(*word));
        }
        if self.reads >= MOST_READS {
            return None;
        }
        self.reads += 1;
        let mut word = [0; 8];
        let n = sys::mem::read(self.tid, address, &mut word).ok()?;
        (n == 8).then(|| u64::from_le_bytes(word))
    }

    fn register(&mut self, number: u8) -> Option<u64> {
        self.registers.get(usize::from(number)).copied().filter(|value| *value != UNKNOWN)
    }

    fn rule(&mut self, address: u64) -> Option<Rule> {
        self.code?.rule(address)
    }

    fn unmapped(&mut self) -> Option<Rule> {
        self.code?.unmapped()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_outside_of_the_copy_is_read_a_bounded_number_of_times() {
        let tid = sys::process::own_pid();
        let here = [7u64; 4];
        let address = here.as_ptr() as u64;
        let copy = 5u64.to_le_bytes();
        let mut stopped = Copied { tid, sp: 0x1000, registers: [0; 16], copy: &copy, code: None, reads: 0 };
        assert_eq!((stopped.read(0x1000), stopped.read(address)), (Some(5), Some(7)));
        stopped.reads = MOST_READS;
        assert_eq!((stopped.read(0x1000), stopped.read(address), stopped.rule(1)), (Some(5), None, None));
    }
}
