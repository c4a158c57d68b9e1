//! What a walk leaves: frames, and why there are no more of them. Layout of the record that programs of the kernel leave.
//!
//! ```text
//! record   u32 guessed frames │ u8 ended │ u8 0 │ u16 frames │ u64 frame …        innermost first
//! ```

/// The most frames of a stack.
pub const MAX_FRAMES: usize = 512;
/// Bytes of a record before its frames.
pub const HEAD: usize = 8;
/// Bytes of the largest record.
pub const RECORD: usize = HEAD + 8 * MAX_FRAMES;

/// A frame: an address, and how it was found.
///
/// The address has at most 57 bits. Bit 63 is set where the frame was guessed: the frame that returns to it has no rows, and rbp was
/// taken as a frame pointer. Bit 62 is set where the address is that of the next instruction to be executed (of the
/// innermost frame, or one that a signal has interrupted), and not a return address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Frame(pub u64);

impl Frame {
    /// Bit of a guessed frame.
    pub const GUESSED: u64 = 1 << 63;
    /// Bit of a frame that was interrupted.
    pub const EXACT: u64 = 1 << 62;

    /// The address as it was found: the instruction pointer, or a return address.
    pub fn address(self) -> u64 {
        self.0 & !(Frame::GUESSED | Frame::EXACT)
    }
    /// It was found by rbp, without rows.
    pub fn is_guessed(self) -> bool {
        self.0 & Frame::GUESSED != 0
    }
    /// It is the address of the next instruction, and not a return address.
    pub fn is_exact(self) -> bool {
        self.0 & Frame::EXACT != 0
    }
    /// The address by which its function and line are found: within the call instruction, where it is a return address.
    pub fn lookup(self) -> u64 {
        self.address().wrapping_sub(u64::from(!self.is_exact()))
    }
}

macro_rules! endings {
    ($($name:ident = $n:literal $text:literal;)*) => {
        /// Why a walk has ended. The numbers are part of the format.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Ended { $(#[doc = $text] $name = $n,)* }

        impl Ended {
            /// All of them, in order of their numbers.
            pub const ALL: &[Ended] = &[$(Ended::$name,)*];

            /// In words.
            pub fn text(self) -> &'static str {
                match self { $(Ended::$name => $text,)* }
            }
        }
    };
}

endings! {
    Running = 0 "not ended";
    Outermost = 1 "the outermost frame was reached";
    Full = 2 "there are more frames than are kept";
    NoProcess = 3 "the process has no tables";
    NoMapping = 4 "an address is in no mapping that the tables know";
    NoRow = 5 "code without unwind information, and rbp is no frame pointer";
    Unknown = 6 "unwind information that the tables cannot express";
    ReadFault = 7 "stack memory could not be read";
    NotGrowing = 8 "the caller's frame is not further out";
    NotX86_64 = 9 "32-bit code";
    NotUser = 10 "no registers of a user space: a thread of the kernel";
    ReturnProbe = 11 "the return address that a return probe hides was not found";
    Damaged = 12 "the tables contradict themselves";
    NoMemory = 13 "the process is executing a program or has ended: it has no user stack";
    Cut = 14 "the copy of the stack ends there";
    Stub = 15 "where a traced function was called from is not known";
    NotStopped = 16 "the callers are kept in rbp, which is known of stopped threads only";
}

impl Ended {
    /// From a record; numbers that no reason has are [`Ended::Damaged`].
    pub fn of(number: u8) -> Ended {
        Ended::ALL.get(usize::from(number)).copied().unwrap_or(Ended::Damaged)
    }
}

/// How many reasons there are: as many counters has a program.
pub const ENDINGS: usize = Ended::ALL.len();

/// A record that a program of the kernel has left.
#[derive(Clone, Copy, Debug)]
pub struct Record<'r> {
    /// Why there are no more frames.
    pub ended: Ended,
    /// How many frames are guessed.
    pub guessed: u32,
    frames: &'r [u8],
}

impl<'r> Record<'r> {
    /// Reads it; none where the bytes are too few.
    pub fn parse(bytes: &'r [u8]) -> Option<Record<'r>> {
        let (&[g0, g1, g2, g3, ended, _, a, b], rest) = bytes.split_first_chunk::<HEAD>()?;
        let frames = rest.get(..8 * usize::from(u16::from_le_bytes([a, b])))?;
        Some(Record { ended: Ended::of(ended), guessed: u32::from_le_bytes([g0, g1, g2, g3]), frames })
    }

    /// The frames, innermost first.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = Frame> + use<'r> {
        self.frames.as_chunks::<8>().0.iter().map(|b| Frame(u64::from_le_bytes(*b)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read() {
        let mut bytes = [0u8; 24];
        bytes[..8].copy_from_slice(&[1, 0, 0, 0, 1, 0, 2, 0]);
        bytes[8..16].copy_from_slice(&(0x1234 | Frame::EXACT).to_le_bytes());
        bytes[16..].copy_from_slice(&(0x5678 | Frame::GUESSED).to_le_bytes());
        let record = Record::parse(&bytes).unwrap();
        assert_eq!((record.ended, record.guessed, record.frames().len()), (Ended::Outermost, 1, 2));
        assert!(record.frames().map(Frame::lookup).eq([0x1234, 0x5677]));
        assert!(record.frames().map(Frame::is_guessed).eq([false, true]));
        assert!(Record::parse(&bytes[..23]).is_none() && Record::parse(&bytes[..7]).is_none());
        assert_eq!(Ended::of(200), Ended::Damaged);
        for (n, ended) in Ended::ALL.iter().enumerate() {
            assert_eq!((Ended::of(n as u8), *ended as usize), (*ended, n));
        }
    }
}
