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
}

impl Variant {
    /// The variant with a number.
    pub const fn of(number: u32) -> Option<Variant> {
        use Variant::{Called, Count, CountTimed, Entry, Measured, Paired, Timed};
        Some(match number {
            0 => Paired,
            1 => Timed,
            2 => Entry,
            3 => Count,
            4 => CountTimed,
            5 => Called,
            6 => Measured,
            _ => return None,
        })
    }
}

/// Bytes of the instruction in front of a stub's entry that raises the stack pointer (`lea rsp, [rsp+N]`, with 32 bits of distance): where
/// functions whose first instruction has lowered it jump to.
pub const UNDO: u32 = 8;
/// The instruction without its distance.
pub const RAISE: [u8; 4] = [0x48, 0x8d, 0xa4, 0x24];

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
    /// The instructions `add [cur], 8`: offset, and that of the next.
    pub commit: &'static [(u32, u32)],
    /// Where the CFA is, by ascending offset; each counts up to the next.
    pub frames: &'static [Frame],
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
    }
}

/// The function's number, from the bytes of a stub at [`Layout::number`].
pub const fn number(variant: Variant, word: u32) -> u32 {
    match variant {
        Variant::Paired => word & !(crate::thread::WRITTEN | crate::thread::RECORDED),
        Variant::Entry => word >> 1,
        Variant::Timed => word,
        Variant::Count => word / size_of::<crate::thread::Row>() as u32,
        Variant::CountTimed | Variant::Called | Variant::Measured => word & !crate::thread::WRITTEN,
    }
}

const fn again(start: u32, end: u32, at: u32) -> Again {
    Again { start, end, at }
}

const fn frame(from: u32, cfa: u32, shadow: bool) -> Frame {
    Frame { from, cfa, shadow }
}

const PAIRED: Layout = Layout {
    size: 352,
    entry: 64,
    returns: 195,
    number: 16,
    again: &[
        again(15, 21, 67),
        again(36, 37, 131),
        again(46, 47, 131),
        again(67, 131, 67),
        again(131, 172, 131),
        again(203, 255, 203),
        again(255, 296, 255),
        again(310, 311, 203),
        again(318, 319, 255),
        again(328, 329, 255),
    ],
    commit: &[(172, 182), (296, 306)],
    frames: &[
        frame(0, 32, false),
        frame(29, 24, false),
        frame(30, 16, false),
        frame(31, 8, false),
        frame(36, 32, false),
        frame(64, 8, false),
        frame(65, 16, false),
        frame(66, 24, false),
        frame(67, 32, false),
        frame(183, 24, false),
        frame(184, 16, false),
        frame(185, 8, false),
        frame(190, 0, false),
        frame(195, 0, true),
        frame(200, 8, true),
        frame(201, 16, true),
        frame(202, 24, true),
        frame(203, 32, true),
        frame(232, 32, false),
        frame(307, 24, false),
        frame(308, 16, false),
        frame(309, 8, false),
        frame(310, 32, true),
        frame(318, 32, false),
    ],
};

const TIMED: Layout = Layout {
    size: 240,
    entry: 32,
    returns: 125,
    number: 4,
    again: &[
        again(3, 9, 35),
        again(35, 112, 35),
        again(133, 175, 133),
        again(175, 216, 175),
        again(220, 221, 133),
        again(228, 229, 133),
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
        frame(113, 24, false),
        frame(114, 16, false),
        frame(115, 8, false),
        frame(120, 0, false),
        frame(125, 0, true),
        frame(130, 8, true),
        frame(131, 16, true),
        frame(132, 24, true),
        frame(133, 32, true),
        frame(193, 32, false),
        frame(217, 24, false),
        frame(218, 16, false),
        frame(219, 8, false),
        frame(220, 32, true),
    ],
};

const ENTRY: Layout = Layout {
    size: 96,
    entry: 32,
    returns: 0,
    number: 72,
    again: &[again(4, 5, 35), again(14, 15, 35), again(35, 76, 35)],
    commit: &[(76, 86)],
    frames: &[
        frame(0, 32, false),
        frame(32, 8, false),
        frame(33, 16, false),
        frame(34, 24, false),
        frame(35, 32, false),
        frame(87, 24, false),
        frame(88, 16, false),
        frame(89, 8, false),
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
    size: 304,
    entry: 48,
    returns: 163,
    number: 20,
    again: &[
        again(9, 10, 51),
        again(19, 25, 73),
        again(51, 73, 51),
        again(73, 150, 73),
        again(171, 239, 171),
        again(286, 287, 171),
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
        frame(151, 24, false),
        frame(152, 16, false),
        frame(153, 8, false),
        frame(158, 0, false),
        frame(163, 0, true),
        frame(168, 8, true),
        frame(169, 16, true),
        frame(170, 24, true),
        frame(171, 32, true),
        frame(200, 32, false),
        frame(283, 24, false),
        frame(284, 16, false),
        frame(285, 8, false),
        frame(286, 32, true),
    ],
};

const MEASURED: Layout = Layout {
    size: 368,
    entry: 48,
    returns: 163,
    number: 20,
    again: &[
        again(9, 10, 51),
        again(19, 25, 73),
        again(51, 73, 51),
        again(73, 150, 73),
        again(171, 239, 171),
        again(246, 260, 246),
        again(272, 273, 171),
        again(280, 281, 246),
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
        frame(151, 24, false),
        frame(152, 16, false),
        frame(153, 8, false),
        frame(158, 0, false),
        frame(163, 0, true),
        frame(168, 8, true),
        frame(169, 16, true),
        frame(170, 24, true),
        frame(171, 32, true),
        frame(200, 32, false),
        frame(261, 40, false),
        frame(268, 32, false),
        frame(272, 32, true),
        frame(280, 32, false),
        frame(364, 24, false),
        frame(365, 16, false),
        frame(366, 8, false),
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
