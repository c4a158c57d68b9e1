//! Stubs, as the agent sees them: where a pc in one is, in numbers. `patch::stub` says what they do, and its tests compare these numbers
//! with the code. An area begins with an array of stubs of one [`Variant`] and so of one size.

/// What stubs do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Variant {
    /// A record at the entry and one at the exit, with times.
    Paired = 0,
    /// A record at the entry and one at the exit, without times.
    NoTime = 1,
    /// Records of calls that take a minimum of time, or make one that does; written when that is known.
    Timed = 2,
    /// A record at the entry only, and no shadow entry.
    Entry = 3,
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
        Variant::NoTime => &NO_TIME,
        Variant::Timed => &TIMED,
        Variant::Entry => &ENTRY,
    }
}

const fn again(start: u32, end: u32, at: u32) -> Again {
    Again { start, end, at }
}

const fn frame(from: u32, cfa: u32, shadow: bool) -> Frame {
    Frame { from, cfa, shadow }
}

const PAIRED: Layout = Layout {
    size: 320,
    entry: 48,
    returns: 171,
    again: &[
        again(12, 13, 51),
        again(28, 29, 107),
        again(38, 39, 107),
        again(51, 107, 51),
        again(107, 148, 107),
        again(179, 231, 179),
        again(231, 272, 231),
        again(286, 287, 179),
        again(294, 295, 231),
        again(304, 305, 231),
    ],
    commit: &[(148, 158), (272, 282)],
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
        frame(159, 24, false),
        frame(160, 16, false),
        frame(161, 8, false),
        frame(166, 0, false),
        frame(171, 0, true),
        frame(176, 8, true),
        frame(177, 16, true),
        frame(178, 24, true),
        frame(179, 32, true),
        frame(208, 32, false),
        frame(283, 24, false),
        frame(284, 16, false),
        frame(285, 8, false),
        frame(286, 32, true),
        frame(294, 32, false),
    ],
};

const NO_TIME: Layout = Layout {
    size: 272,
    entry: 32,
    returns: 141,
    again: &[
        again(6, 7, 35),
        again(22, 23, 91),
        again(35, 91, 35),
        again(91, 118, 91),
        again(149, 201, 149),
        again(201, 228, 201),
        again(242, 243, 149),
        again(250, 251, 201),
    ],
    commit: &[(118, 128), (228, 238)],
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
        frame(129, 24, false),
        frame(130, 16, false),
        frame(131, 8, false),
        frame(136, 0, false),
        frame(141, 0, true),
        frame(146, 8, true),
        frame(147, 16, true),
        frame(148, 24, true),
        frame(149, 32, true),
        frame(178, 32, false),
        frame(239, 24, false),
        frame(240, 16, false),
        frame(241, 8, false),
        frame(242, 32, true),
        frame(250, 32, false),
    ],
};

const TIMED: Layout = Layout {
    size: 240,
    entry: 32,
    returns: 125,
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
