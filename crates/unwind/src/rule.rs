//! The rule of a row: how the caller's registers follow from those of a frame.
//!
//! ```text
//! u64   kind 8 │ rbp kind 8 │ CFA offset 24, signed, units of 8 bytes │ rbp offset 16, signed, bytes │ extra 8
//! bits  0      │ 8          │ 16                                      │ 40                           │ 56
//! ```
//!
//! The CFA (canonical frame address) is the stack pointer of the caller before its call instruction. The return address lies at
//! CFA - 8 for every kind but [`Kind::Signal`]. The program for the kernel (`bpf::unwind`) reads the same 64 bits.

/// How the CFA is found. The numbers are part of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// No information covers the code: the frame can only be guessed by rbp.
    None = 0,
    /// The outermost frame: it has no caller.
    End = 1,
    /// rsp + offset.
    Sp = 2,
    /// rbp + offset.
    Bp = 3,
    /// An entry of a procedure linkage table: rsp + offset, and 8 more from byte `extra` of each 16 bytes of code on.
    Plt = 4,
    /// A signal handler returns here: the interrupted registers are in the `struct ucontext` at rsp + offset.
    Signal = 5,
    /// The 8 bytes at rsp + offset, plus `extra` (signed).
    SpAt = 6,
    /// The 8 bytes at rbp + offset, plus `extra` (signed).
    BpAt = 7,
    /// There is information that no other kind can express.
    Unknown = 8,
    /// In a stub of a traced function: rsp + offset, which may be 0, because stubs read their return address below rsp too.
    Stub = 10,
    /// Register number `extra` (of the ABI) + offset. Of frames whose registers are all known: the innermost one, and one that a
    /// signal has interrupted; further out, rbx alone may be known.
    Register = 9,
}

impl Kind {
    const ALL: [Kind; 11] = {
        use Kind::*;
        [None, End, Sp, Bp, Plt, Signal, SpAt, BpAt, Unknown, Register, Stub]
    };
}

/// Where the caller's rbp is. The numbers are part of the format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SavedBp {
    /// In rbp.
    #[default]
    Same,
    /// In memory at CFA + offset.
    Cfa(i16),
    /// In memory at rbp + offset.
    Bp(i16),
    /// In memory at rsp + offset.
    Sp(i16),
}

impl SavedBp {
    /// (number, offset)
    const fn parts(self) -> (u8, i16) {
        match self {
            SavedBp::Same => (0, 0),
            SavedBp::Cfa(off) => (1, off),
            SavedBp::Bp(off) => (2, off),
            SavedBp::Sp(off) => (3, off),
        }
    }
}

/// The number of rbx in the ABI: the register that code without a frame pointer may keep its CFA in, while it calls (the stubs of lazy
/// binding).
pub const BX: u8 = 3;
/// [`Rule::extra`] where it is not known where the caller's rbx is.
pub const BX_LOST: u8 = 255;

/// Where the caller's rbx is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedBx {
    /// In rbx.
    Same,
    /// In memory, this many bytes below the CFA.
    Below(u64),
    /// That is not known.
    Lost,
}

/// Offsets in the `struct ucontext` of x86-64 (arch/x86/include/uapi/asm/sigcontext.h): rbp, rsp, rip.
pub const UCONTEXT: [u64; 3] = [0x78, 0xa0, 0xa8];

/// Offsets there of all registers, by their numbers in the ABI: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15.
pub const IN_UCONTEXT: [u16; 16] =
    [0x90, 0x88, 0x98, 0x80, 0x70, 0x68, 0x78, 0xa0, 0x28, 0x30, 0x38, 0x40, 0x48, 0x50, 0x58, 0x60];

/// A rule. Any 64 bits are one; those with an unknown number of a kind are read as [`Kind::Unknown`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Rule(pub u64);

impl Rule {
    /// No information.
    pub const NONE: Rule = Rule(0);
    /// The outermost frame.
    pub const END: Rule = Rule(Kind::End as u64);
    /// Information that cannot be expressed.
    pub const UNKNOWN: Rule = Rule(Kind::Unknown as u64);

    /// A rule; none where the offset is no multiple of 8, or does not fit.
    pub const fn new(kind: Kind, offset: i64, bp: SavedBp, extra: u8) -> Option<Rule> {
        let units = offset >> 3;
        if offset & 7 != 0 || units < -(1 << 23) || units >= 1 << 23 {
            return None;
        }
        let (bp, bp_offset) = bp.parts();
        let low = kind as u64 | (bp as u64) << 8 | (units as u64 & 0xff_ffff) << 16;
        Some(Rule(low | (bp_offset as u16 as u64) << 40 | (extra as u64) << 56))
    }

    /// How the CFA is found.
    pub fn kind(self) -> Kind {
        Kind::ALL.get(usize::from(self.0 as u8)).copied().unwrap_or(Kind::Unknown)
    }

    /// The offset of the CFA, in bytes.
    pub fn offset(self) -> i64 {
        ((self.0 << 24) as i64 >> 40) * 8
    }

    /// Where the caller's rbp is.
    pub fn bp(self) -> SavedBp {
        let offset = (self.0 >> 40) as i16;
        match (self.0 >> 8) as u8 {
            1 => SavedBp::Cfa(offset),
            2 => SavedBp::Bp(offset),
            3 => SavedBp::Sp(offset),
            _ => SavedBp::Same,
        }
    }

    /// Where the caller's rbx is, by a rule of [`Kind::Sp`] or [`Kind::Bp`].
    pub fn bx(self) -> SavedBx {
        match (self.kind(), self.extra()) {
            (Kind::Sp | Kind::Bp, 0) | (Kind::Plt | Kind::Stub, _) => SavedBx::Same,
            (Kind::Sp | Kind::Bp, words) if words != BX_LOST => SavedBx::Below(u64::from(words) * 8),
            _ => SavedBx::Lost,
        }
    }

    /// What [`Kind::Plt`], [`Kind::SpAt`], [`Kind::BpAt`] and [`Kind::Register`] need more; of [`Kind::Sp`] and [`Kind::Bp`], how many words
    /// below the CFA the caller's rbx is: 0: in rbx, [`BX_LOST`]: not known.
    pub fn extra(self) -> u8 {
        (self.0 >> 56) as u8
    }
}

impl core::fmt::Debug for Rule {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:?}({}, {:?}, {})", self.kind(), self.offset(), self.bp(), self.extra())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out() {
        for (offset, bp, extra) in [
            (8, SavedBp::Same, 0),
            (-16, SavedBp::Cfa(-16), 11),
            (540_000, SavedBp::Bp(0), 255),
            (-(1 << 26), SavedBp::Sp(i16::MIN), 1),
            ((1 << 26) - 8, SavedBp::Cfa(i16::MAX), 0),
        ] {
            for kind in Kind::ALL {
                let rule = Rule::new(kind, offset, bp, extra).unwrap();
                assert_eq!((rule.kind(), rule.offset(), rule.bp(), rule.extra()), (kind, offset, bp, extra));
            }
        }
        for bad in [4, 1 << 26, -(1 << 26) - 8, i64::MAX, i64::MIN] {
            assert_eq!(Rule::new(Kind::Sp, bad, SavedBp::Same, 0), None, "{bad}");
        }
        assert_eq!(Rule(u64::MAX).kind(), Kind::Unknown);
        assert_eq!(Rule::NONE.kind(), Kind::None);
    }
}
