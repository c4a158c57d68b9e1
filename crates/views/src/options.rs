//! What a user asks of the views: strace's switches, in one struct.

/// How constants are shown (`-X`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Xlat {
    /// Names.
    #[default]
    Abbrev,
    /// Numbers.
    Raw,
    /// Number and name in a comment.
    Verbose,
}

/// Which bytes of strings are shown as `\x..` (`-x`, `-xx`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum HexStrings {
    /// Octal escapes for bytes that are not printable.
    #[default]
    No,
    /// Strings with bytes that are not printable are shown in hexadecimal whole.
    NonAscii,
    /// All strings.
    All,
}

/// Timestamps at the start of a line (`-t -tt -ttt -r`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Stamp {
    /// None.
    #[default]
    None,
    /// Time of day, seconds.
    Clock,
    /// Time of day, microseconds.
    ClockMicros,
    /// Seconds since the epoch, microseconds.
    Epoch,
    /// Seconds since the line before.
    Relative,
}

/// Names of descriptors (`-y`, `-yy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FdNames {
    /// Numbers only.
    #[default]
    No,
    /// Paths.
    Path,
    /// Paths, ends of sockets, numbers of devices.
    Full,
}

/// Which thread is named at the start of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Prefix {
    /// `PID  ` on every line (`-o FILE`).
    #[default]
    Always,
    /// `[pid N] ` once there are several threads (terminal).
    WhenSeveral,
    /// Nobody.
    Never,
}

/// Stacks (`-k`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Stacks {
    /// As the event has them: addresses among the other fields, or nothing where it has only the id of a stack.
    #[default]
    Fields,
    /// A line for each frame below the event's.
    Lines,
    /// With source files.
    Sources,
    /// All frames on one line below the event's.
    Fold,
}

/// Everything together.
#[derive(Clone, Debug)]
pub struct Options {
    /// Timestamp.
    pub stamp: Stamp,
    /// Time in the call at the end of the line (`-T`).
    pub duration: bool,
    /// Verbose fields and environments (`-v`).
    pub verbose: bool,
    /// Constants.
    pub xlat: Xlat,
    /// Strings.
    pub hex_strings: HexStrings,
    /// Names of descriptors.
    pub fd_names: FdNames,
    /// Command names after pids (`--decode-pids=comm`).
    pub comm: bool,
    /// Call numbers before names (`-n`).
    pub numbers: bool,
    /// Argument names and types (`--types`).
    pub types: bool,
    /// Column of the ` = ` (`--columns`).
    pub column: usize,
    /// The thread that a line is about.
    pub prefix: Prefix,
    /// Escape sequences for colour.
    pub colour: bool,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC, ns, for timestamps.
    pub realtime_offset: i64,
    /// Local time zone: seconds to add to UTC.
    pub utc_offset: i64,
    /// Calls whose arguments are shown as registers (`-e raw=`), by class id; empty for none.
    pub raw: Vec<bool>,
    /// Bytes shown of a string, where more of it may have been captured than is to be shown.
    pub string: Option<usize>,
    /// Stacks.
    pub stacks: Stacks,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            stamp: Stamp::None,
            duration: false,
            verbose: false,
            xlat: Xlat::Abbrev,
            hex_strings: HexStrings::No,
            fd_names: FdNames::No,
            comm: false,
            numbers: false,
            types: false,
            column: 40,
            prefix: Prefix::Always,
            colour: false,
            realtime_offset: 0,
            utc_offset: 0,
            raw: Vec::new(),
            string: None,
            stacks: Stacks::Fields,
        }
    }
}
