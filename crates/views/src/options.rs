//! What a user asks of the views: strace's switches, in one struct.

use events::names::Descriptors;
use events::{Schema, Type};

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

/// Which bytes of strings are shown as `\x..` (`-x`, `-xx`, `--strings-in-hex`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum HexStrings {
    /// Octal escapes for bytes that are not printable.
    #[default]
    No,
    /// Hexadecimal escapes for these bytes.
    NonAsciiChars,
    /// Strings with bytes that are not printable are shown in hexadecimal whole.
    NonAscii,
    /// All strings.
    All,
}

/// How many digits a time has behind the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Precision {
    /// Seconds.
    S,
    /// Milliseconds.
    Ms,
    /// Microseconds.
    #[default]
    Us,
    /// Nanoseconds.
    Ns,
}

impl Precision {
    /// Its name on the command line.
    pub fn parse(name: &str) -> Option<Precision> {
        Some(match name {
            "s" => Precision::S,
            "ms" => Precision::Ms,
            "us" => Precision::Us,
            "ns" => Precision::Ns,
            _ => return None,
        })
    }
}

/// Timestamps at the start of a line (`-t -tt -ttt`, `--absolute-timestamps`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Stamp {
    /// None.
    #[default]
    None,
    /// Time of day.
    Clock(Precision),
    /// Seconds since the epoch.
    Epoch(Precision),
}

/// What is shown of descriptors beside their numbers (`-y`, `-yy`, `--decode-fds`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FdNames {
    /// Paths.
    pub path: bool,
    /// Ends of sockets.
    pub socket: bool,
    /// Numbers of devices, with their paths.
    pub device: bool,
}

impl FdNames {
    /// Numbers only.
    pub const NONE: FdNames = FdNames { path: false, socket: false, device: false };
    /// Paths.
    pub const PATH: FdNames = FdNames { path: true, ..FdNames::NONE };
    /// Everything.
    pub const FULL: FdNames = FdNames { path: true, socket: true, device: true };

    /// Whether more than paths is shown.
    pub fn has_details(self) -> bool {
        self.socket || self.device
    }
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
    /// Time since the line before (`-r`).
    pub relative: Option<Precision>,
    /// Time in the call at the end of the line (`-T`).
    pub duration: Option<Precision>,
    /// Verbose fields and environments (`-v`).
    pub verbose: bool,
    /// Calls that have none nevertheless (`-e abbrev=`), by class id; empty for none.
    pub abbrev: Vec<bool>,
    /// Constants.
    pub xlat: Xlat,
    /// Strings.
    pub hex_strings: HexStrings,
    /// Names of descriptors.
    pub fd_names: FdNames,
    /// Command names after pids (`--decode-pids=comm`).
    pub comm: bool,
    /// Call numbers before names, and those of the threads' last calls in other lines (`-n`).
    pub numbers: bool,
    /// Addresses of the instructions that make the calls, from their stacks (`-i`).
    pub instruction: bool,
    /// Argument names and types (`--types`).
    pub types: bool,
    /// Argument names (`-N`).
    pub arg_names: bool,
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
    /// Calls whose structs are shown as addresses (`-e verbose=`), by class id; empty for none.
    pub opaque: Vec<bool>,
    /// Descriptors whose data is shown as a dump when it is read (`-e read=`).
    pub read: Descriptors,
    /// Descriptors whose data is shown as a dump when it is written (`-e write=`).
    pub write: Descriptors,
    /// No lines about threads that exit (`-qq`).
    pub no_exits: bool,
    /// No lines about threads that an execve replaces (`-qqq`).
    pub no_superseded: bool,
    /// No lines about the ends of processes of which no other line was shown: strangers, where the whole machine is traced.
    pub no_strangers: bool,
    /// Bytes shown of a string, where more of it may have been captured than is to be shown.
    pub string: Option<usize>,
    /// Stacks.
    pub stacks: Stacks,
}

/// Whether a set of calls by class id has a call.
fn has(set: &[bool], schema: &Schema) -> bool {
    set.get(usize::from(schema.base)) == Some(&true)
}

impl Options {
    /// Whether a call's verbose fields are shown.
    pub fn is_verbose(&self, schema: &Schema) -> bool {
        self.verbose && !has(&self.abbrev, schema)
    }
    /// Whether a call's arguments are shown as registers.
    pub fn is_raw(&self, schema: &Schema) -> bool {
        has(&self.raw, schema)
    }
    /// Whether a call's structs are shown as addresses.
    pub fn is_opaque(&self, schema: &Schema) -> bool {
        has(&self.opaque, schema)
    }
    /// Whether an argument of a call is shown as an address: memory that is neither a string nor a buffer.
    pub fn hides(&self, schema: &Schema, ty: &Type) -> bool {
        self.is_opaque(schema) && !matches!(ty, Type::Int(_) | Type::Str(_) | Type::Bytes(_))
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            stamp: Stamp::None,
            relative: None,
            duration: None,
            verbose: false,
            abbrev: Vec::new(),
            xlat: Xlat::Abbrev,
            hex_strings: HexStrings::No,
            fd_names: FdNames::NONE,
            comm: false,
            numbers: false,
            instruction: false,
            types: false,
            arg_names: false,
            column: 40,
            prefix: Prefix::Always,
            colour: false,
            realtime_offset: 0,
            utc_offset: 0,
            raw: Vec::new(),
            opaque: Vec::new(),
            read: Descriptors::default(),
            write: Descriptors::default(),
            no_exits: false,
            no_superseded: false,
            no_strangers: false,
            string: None,
            stacks: Stacks::Fields,
        }
    }
}
