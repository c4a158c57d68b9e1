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
}

/// The offsets of one variant, from the beginning of a stub.
#[derive(Debug)]
pub struct Layout {
    /// Bytes of a stub.
    pub size: u32,
    /// Where a patched function jumps to.
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
    }
}

/// The function's number, from the bytes of a stub at [`Layout::number`].
pub const fn number(variant: Variant, word: u32) -> u32 {
    match variant {
        Variant::Paired | Variant::Entry => word >> 1,
        Variant::Timed => word,
        Variant::Count => word / size_of::<crate::thread::Row>() as u32,
        Variant::CountTimed | Variant::Called => word & !crate::thread::WRITTEN,
    }
}

const fn again(start: u32, end: u32, at: u32) -> Again {
    Again { start, end, at }
}

const fn frame(from: u32, cfa: u32, shadow: bool) -> Frame {
    Frame { from, cfa, shadow }
}

const PAIRED: Layout = Layout {
    size: 336,
    entry: 48,
    returns: 179,
    number: 152,
    again: &[
        again(7, 13, 51),
        again(28, 29, 115),
        again(38, 39, 115),
        again(51, 115, 51),
        again(115, 156, 115),
        again(187, 239, 187),
        again(239, 280, 239),
        again(294, 295, 187),
        again(302, 303, 239),
        again(312, 313, 239),
    ],
    commit: &[(156, 166), (280, 290)],
    frames: &[
        frame(0, 32, false),
        frame(21, 24, false),
        frame(22, 16, false),
        frame(23, 8, false),
        frame(28, 32, false),
        frame(48, 8, false),
        frame(49, 16, false),
        frame(50, 24, false),
        frame(51, 32, false),
        frame(167, 24, false),
        frame(168, 16, false),
        frame(169, 8, false),
        frame(174, 0, false),
        frame(179, 0, true),
        frame(184, 8, true),
        frame(185, 16, true),
        frame(186, 24, true),
        frame(187, 32, true),
        frame(216, 32, false),
        frame(291, 24, false),
        frame(292, 16, false),
        frame(293, 8, false),
        frame(294, 32, true),
        frame(302, 32, false),
    ],
};

const TIMED: Layout = Layout {
    size: 240,
    entry: 32,
    returns: 125,
    number: 12,
    again: &[
        again(11, 17, 35),
        again(35, 112, 35),
        again(133, 175, 133),
        again(175, 216, 175),
        again(220, 221, 133),
        again(228, 229, 133),
    ],
    commit: &[],
    frames: &[
        frame(0, 32, false),
        frame(25, 24, false),
        frame(26, 16, false),
        frame(27, 8, false),
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
    again: &[again(12, 13, 35), again(22, 23, 35), again(35, 76, 35)],
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
    size: 64,
    entry: 16,
    returns: 0,
    number: 36,
    again: &[],
    commit: &[],
    frames: &[
        frame(0, 32, false),
        frame(16, 8, false),
        frame(17, 16, false),
        frame(18, 24, false),
        frame(19, 32, false),
        frame(42, 24, false),
        frame(43, 16, false),
        frame(44, 8, false),
    ],
};

const COUNT_TIMED: Layout = Layout {
    size: 288,
    entry: 32,
    returns: 147,
    number: 2,
    again: &[again(1, 7, 57), again(57, 134, 57), again(155, 223, 155), again(270, 271, 155)],
    commit: &[],
    frames: &[
        frame(0, 32, false),
        frame(15, 24, false),
        frame(16, 16, false),
        frame(17, 8, false),
        frame(22, 32, false),
        frame(32, 8, false),
        frame(33, 16, false),
        frame(34, 24, false),
        frame(35, 32, false),
        frame(135, 24, false),
        frame(136, 16, false),
        frame(137, 8, false),
        frame(142, 0, false),
        frame(147, 0, true),
        frame(152, 8, true),
        frame(153, 16, true),
        frame(154, 24, true),
        frame(155, 32, true),
        frame(184, 32, false),
        frame(267, 24, false),
        frame(268, 16, false),
        frame(269, 8, false),
        frame(270, 32, true),
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
        frame(9, 24, false),
        frame(10, 16, false),
        frame(11, 8, false),
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
