//! Stubs, as the agent sees them: where a pc in one is, in numbers. `patch::stub` says what they do, and its tests compare these numbers
//! with the code. An area begins with an array of stubs of one [`Variant`] and so of one size.

/// What stubs do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Variant {
    /// A record at the entry and one at the exit, with times.
    Paired = 0,
    /// Records of calls that take a minimum of time, or make one that does; written when that is known.
    Timed = 1,
    /// A record at the entry only, and no shadow entry.
    Entry = 2,
    /// Calls are counted, and nothing else.
    Count = 3,
    /// Calls are counted, and their time.
    CountTimed = 4,
    /// Tracers are called at the entry and at the exit.
    Called = 5,
    /// Calls are counted, and what is wanted of their durations.
    Measured = 6,
    /// [`Variant::Paired`], with a record of the caller in front of that of the entry ([`crate::caller`]).
    Callers = 7,
}

impl Variant {
    /// All of them.
    pub const ALL: [Variant; 8] = {
        use Variant::{Called, Callers, Count, CountTimed, Entry, Measured, Paired, Timed};
        [Paired, Timed, Entry, Count, CountTimed, Called, Measured, Callers]
    };

    /// The variant with a number.
    pub const fn of(number: u32) -> Option<Variant> {
        use Variant::{Called, Callers, Count, CountTimed, Entry, Measured, Paired, Timed};
        Some(match number {
            0 => Paired,
            1 => Timed,
            2 => Entry,
            3 => Count,
            4 => CountTimed,
            5 => Called,
            6 => Measured,
            7 => Callers,
            _ => return None,
        })
    }
}

/// Bytes of the instruction in front of a stub's entry that raises the stack pointer (`lea rsp, [rsp+N]`, with 32 bits of distance): where
/// functions whose first instruction has lowered it jump to.
pub const UNDO: u32 = 8;
/// The instruction without its distance.
pub const RAISE: [u8; 4] = [0x48, 0x8d, 0xa4, 0x24];

/// Prefixes that mean nothing to a pop, and that of the upper eight registers.
const NOTHING: u8 = 0x2e;
const UPPER: u8 = 0x41;
const POP: u8 = 0x58;

/// A pop of [`UNDO`] bytes, of a register by its number: what functions jump to that have pushed it and written it since.
pub const fn pop(register: u8) -> [u8; UNDO as usize] {
    let prefix = if register < 8 { NOTHING } else { UPPER };
    [NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, prefix, POP + (register & 7)]
}

/// The register of such a pop.
pub fn popped(code: &[u8; UNDO as usize]) -> Option<u8> {
    let [.., prefix, last] = *code;
    let register = last.wrapping_sub(POP) & 7 | if prefix == UPPER { 8 } else { 0 };
    (*code == pop(register)).then_some(register)
}

/// The offsets of one variant, from the beginning of a stub.
#[derive(Debug)]
pub struct Layout {
    /// Bytes of a stub.
    pub size: u32,
    /// Where a patched function jumps to, or [`UNDO`] bytes before it.
    pub entry: u32,
    /// The return address that the function sees; 0 without one.
    pub returns: u32,
    /// Where 4 bytes have the function's number ([`number`]).
    pub number: u32,
    /// Parts that are begun anew when a signal interrupts them.
    pub again: &'static [Again],
    /// The instructions `add [cur], N`: each where a record counts.
    pub commit: &'static [Commit],
    /// Where the CFA is, by ascending offset; each counts up to the next.
    pub frames: &'static [Frame],
}

/// The instruction that makes a record count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its offset.
    pub at: u32,
    /// That of the next one.
    pub next: u32,
    /// Bytes of the record, with what is before it.
    pub bytes: u32,
}

/// A pc from `start` to before `end` is set to `at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Again {
    /// The first pc.
    pub start: u32,
    /// Behind the last one.
    pub end: u32,
    /// Where the thread goes on.
    pub at: u32,
}

/// The frame of a stub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The first offset.
    pub from: u32,
    /// The CFA is rsp plus this.
    pub cfa: u32,
    /// The return address is in the shadow stack, not below the CFA.
    pub shadow: bool,
}

/// The layout of a variant.
pub const fn layout(variant: Variant) -> &'static Layout {
    match variant {
        Variant::Paired => &PAIRED,
        Variant::Timed => &TIMED,
        Variant::Entry => &ENTRY,
        Variant::Count => &COUNT,
        Variant::CountTimed => &COUNT_TIMED,
        Variant::Called => &CALLED,
        Variant::Measured => &MEASURED,
        Variant::Callers => &CALLERS,
    }
}

/// The function's number, from the bytes of a stub at [`Layout::number`].
pub const fn number(variant: Variant, word: u32) -> u32 {
    match variant {
        Variant::Paired | Variant::Callers => word & !(crate::thread::WRITTEN | crate::thread::RECORDED),
        Variant::Entry => word >> 1,
        Variant::Timed => word,
        Variant::Count => word / size_of::<crate::thread::Row>() as u32,
        Variant::CountTimed | Variant::Called | Variant::Measured => word & !crate::thread::WRITTEN,
    }
}

const fn again(start: u32, end: u32, at: u32) -> Again {
    Again { start, end, at }
}

const fn commit(at: u32, next: u32, bytes: u32) -> Commit {
    Commit { at, next, bytes }
}

const fn frame(from: u32, cfa: u32, shadow: bool) -> Frame {
    Frame { from, cfa, shadow }
}

const PAIRED: Layout = Layout {
    size: 384,
    entry: 64,
    returns: 213,
    number: 13,
    again: &[
        again(12, 18, 67),
        again(33, 34, 145),
        again(43, 44, 145),
        again(67, 131, 67),
        again(145, 190, 145),
        again(221, 273, 221),
        again(273, 314, 273),
        again(328, 329, 221),
        again(336, 337, 273),
        again(346, 347, 273),
    ],
    commit: &[commit(190, 200, 8), commit(314, 324, 8)],
    frames: &[
        frame(0, 32, false),
        frame(26, 24, false),
        frame(27, 16, false),
        frame(28, 8, false),
        frame(33, 32, false),
        frame(64, 8, false),
        frame(65, 16, false),
        frame(66, 24, false),
        frame(67, 32, false),
        frame(201, 24, false),
        frame(202, 16, false),
        frame(203, 8, false),
        frame(208, 0, false),
        frame(213, 0, true),
        frame(218, 8, true),
        frame(219, 16, true),
        frame(220, 24, true),
        frame(221, 32, true),
        frame(250, 32, false),
        frame(325, 24, false),
        frame(326, 16, false),
        frame(327, 8, false),
        frame(328, 32, true),
        frame(336, 32, false),
    ],
};

const TIMED: Layout = Layout {
    size: 288,
    entry: 32,
    returns: 150,
    number: 4,
    again: &[
        again(3, 9, 35),
        again(35, 123, 35),
        again(158, 200, 158),
        again(200, 241, 200),
        again(245, 246, 158),
        again(253, 254, 158),
    ],
    commit: &[],
    frames: &[
        frame(0, 32, false),
        frame(17, 24, false),
        frame(18, 16, false),
        frame(19, 8, false),
        frame(33, 16, false),
        frame(34, 24, false),
        frame(35, 32, false),
        frame(138, 24, false),
        frame(139, 16, false),
        frame(140, 8, false),
        frame(145, 0, false),
        frame(150, 0, true),
        frame(155, 8, true),
        frame(156, 16, true),
        frame(157, 24, true),
        frame(158, 32, true),
        frame(218, 32, false),
        frame(242, 24, false),
        frame(243, 16, false),
        frame(244, 8, false),
        frame(245, 32, true),
        frame(261, 32, false),
    ],
};

const ENTRY: Layout = Layout {
    size: 112,
    entry: 32,
    returns: 0,
    number: 76,
    again: &[again(1, 2, 35), again(11, 12, 35), again(35, 80, 35)],
    commit: &[commit(80, 90, 8)],
    frames: &[
        frame(0, 32, false),
        frame(32, 8, false),
        frame(33, 16, false),
        frame(34, 24, false),
        frame(35, 32, false),
        frame(91, 24, false),
        frame(92, 16, false),
        frame(93, 8, false),
    ],
};

const COUNT: Layout = Layout {
    size: 80,
    entry: 32,
    returns: 0,
    number: 52,
    again: &[again(14, 15, 35), again(35, 57, 35)],
    commit: &[],
    frames: &[
        frame(0, 32, false),
        frame(32, 8, false),
        frame(33, 16, false),
        frame(34, 24, false),
        frame(35, 32, false),
        frame(58, 24, false),
        frame(59, 16, false),
        frame(60, 8, false),
    ],
};

const COUNT_TIMED: Layout = Layout {
    size: 336,
    entry: 48,
    returns: 188,
    number: 16,
    again: &[
        again(5, 6, 51),
        again(15, 21, 73),
        again(51, 73, 51),
        again(73, 161, 73),
        again(196, 264, 196),
        again(311, 312, 196),
    ],
    commit: &[],
    frames: &[
        frame(0, 32, false),
        frame(33, 24, false),
        frame(34, 16, false),
        frame(35, 8, false),
        frame(49, 16, false),
        frame(50, 24, false),
        frame(51, 32, false),
        frame(176, 24, false),
        frame(177, 16, false),
        frame(178, 8, false),
        frame(183, 0, false),
        frame(188, 0, true),
        frame(193, 8, true),
        frame(194, 16, true),
        frame(195, 24, true),
        frame(196, 32, true),
        frame(225, 32, false),
        frame(308, 24, false),
        frame(309, 16, false),
        frame(310, 8, false),
        frame(311, 32, true),
        frame(319, 32, false),
    ],
};

const MEASURED: Layout = Layout {
    size: 416,
    entry: 48,
    returns: 188,
    number: 16,
    again: &[
        again(5, 6, 51),
        again(15, 21, 73),
        again(51, 73, 51),
        again(73, 161, 73),
        again(196, 264, 196),
        again(271, 285, 271),
        again(297, 298, 196),
        again(305, 306, 271),
    ],
    commit: &[],
    frames: &[
        frame(0, 32, false),
        frame(33, 24, false),
        frame(34, 16, false),
        frame(35, 8, false),
        frame(49, 16, false),
        frame(50, 24, false),
        frame(51, 32, false),
        frame(176, 24, false),
        frame(177, 16, false),
        frame(178, 8, false),
        frame(183, 0, false),
        frame(188, 0, true),
        frame(193, 8, true),
        frame(194, 16, true),
        frame(195, 24, true),
        frame(196, 32, true),
        frame(225, 32, false),
        frame(286, 40, false),
        frame(293, 32, false),
        frame(297, 32, true),
        frame(305, 32, false),
        frame(389, 24, false),
        frame(390, 16, false),
        frame(391, 8, false),
        frame(392, 32, false),
    ],
};

const CALLED: Layout = Layout {
    size: 64,
    entry: 16,
    returns: 45,
    number: 20,
    again: &[],
    commit: &[],
    frames: &[
        frame(0, 32, false),
        frame(1, 24, false),
        frame(2, 16, false),
        frame(3, 8, false),
        frame(17, 16, false),
        frame(18, 24, false),
        frame(19, 32, false),
        frame(33, 24, false),
        frame(34, 16, false),
        frame(35, 8, false),
        frame(40, 0, false),
        frame(45, 0, true),
        frame(50, 8, true),
        frame(51, 16, true),
        frame(52, 24, true),
        frame(53, 32, true),
        frame(59, 32, false),
        frame(60, 24, false),
        frame(61, 16, false),
        frame(62, 8, false),
    ],
};

const CALLERS: Layout = Layout {
    size: 448,
    entry: 64,
    returns: 282,
    number: 13,
    again: &[
        again(12, 18, 67),
        again(33, 34, 151),
        again(43, 44, 151),
        again(67, 137, 67),
        again(151, 259, 151),
        again(290, 342, 290),
        again(342, 383, 342),
        again(397, 398, 290),
        again(405, 406, 342),
        again(415, 416, 342),
    ],
    commit: &[commit(259, 269, 32), commit(383, 393, 8)],
    frames: &[
        frame(0, 32, false),
        frame(26, 24, false),
        frame(27, 16, false),
        frame(28, 8, false),
        frame(33, 32, false),
        frame(64, 8, false),
        frame(65, 16, false),
        frame(66, 24, false),
        frame(67, 32, false),
        frame(270, 24, false),
        frame(271, 16, false),
        frame(272, 8, false),
        frame(277, 0, false),
        frame(282, 0, true),
        frame(287, 8, true),
        frame(288, 16, true),
        frame(289, 24, true),
        frame(290, 32, true),
        frame(319, 32, false),
        frame(394, 24, false),
        frame(395, 16, false),
        frame(396, 8, false),
        frame(397, 32, true),
        frame(405, 32, false),
    ],
};
