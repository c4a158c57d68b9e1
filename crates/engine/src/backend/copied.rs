//! Threads that do not run meanwhile, for walks up their stacks: registers, and a copy of the inner part of the stack.

use super::code::Code;
use unwind::Rule;
use unwind::patched::{Patched, Shadow};
use unwind::walk::{Registers, Target};

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
    /// Where its traced functions were called from.
    pub shadow: ShadowStack,
}

/// The shadow stack of a thread, read as it is needed.
pub struct ShadowStack {
    tid: i32,
    /// The thread's `fs` base, by which it is found; none where that is not known.
    fs_base: Option<u64>,
    found: Option<Shadow>,
    /// The part that was read last, and where that is.
    part: (u64, Vec<u8>),
}

/// Bytes that are read at once: several entries, each of which lies in one part.
const PART: u64 = 1024;

impl ShadowStack {
    /// That of a thread.
    pub fn new(tid: i32, fs_base: Option<u64>) -> ShadowStack {
        ShadowStack { tid, fs_base, found: None, part: (0, Vec::new()) }
    }

    /// The return address that was at a place of the stack; `tls`: the distance of what stubs have of the thread from its `fs` base.
    fn address(&mut self, place: u64, tls: i64) -> Option<u64> {
        let ShadowStack { tid, fs_base, found, part } = self;
        let mut read = |at: u64| word(*tid, part, at);
        if found.is_none() {
            *found = Shadow::of((*fs_base)?.wrapping_add_signed(tls), &mut read);
        }
        found.as_mut()?.address(place, read)
    }
}

/// A word of a thread's memory, by parts.
fn word(tid: i32, (begin, bytes): &mut (u64, Vec<u8>), at: u64) -> Option<u64> {
    if at.wrapping_sub(*begin) >= bytes.len() as u64 {
        bytes.resize(PART as usize, 0);
        *begin = at & !(PART - 1);
        let read = sys::mem::read(tid, *begin, bytes).unwrap_or(0);
        bytes.truncate(read);
    }
    let at = usize::try_from(at.wrapping_sub(*begin)).ok()?;
    bytes.get(at..)?.first_chunk().map(|word| u64::from_le_bytes(*word))
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

    fn patched(&mut self, frame: Registers, exact: bool) -> Option<Patched> {
        match self.code?.patched(frame.pc, exact)? {
            Patched::Return(_) if !exact => {
                let tls = self.code?.tls()?;
                Some(Patched::Return(self.shadow.address(frame.sp.wrapping_sub(8), tls)))
            }
            other => Some(other),
        }
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
        let shadow = ShadowStack::new(tid, None);
        let mut stopped = Copied { tid, sp: 0x1000, registers: [0; 16], copy: &copy, code: None, reads: 0, shadow };
        assert_eq!((stopped.read(0x1000), stopped.read(address)), (Some(5), Some(7)));
        stopped.reads = MOST_READS;
        assert_eq!((stopped.read(0x1000), stopped.read(address), stopped.rule(1)), (Some(5), None, None));
    }
}
