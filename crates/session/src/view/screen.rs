//! What views must know of the session, of the screen and of the options for lines.

use crate::ask::{Ask, Format};
use crate::manner::Manner;
use crate::output::Output;
use engine::pipeline::selection::Selection;
use engine::{Error, Result};
use sys::time;
use views::options::{HexStrings, Options, Precision, Prefix, Stamp, Xlat};

/// What views must know of the session: its clocks, and how much of a string was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC, ns.
    pub realtime_offset: i64,
    /// Local time zone: seconds to add to UTC.
    pub utc_offset: i64,
    /// Bytes shown of a string, where more was captured for a filter.
    pub string: Option<usize>,
    /// Ends of processes of which nothing else is shown are not shown: the whole machine was traced, and some of it is shown.
    pub no_strangers: bool,
}

impl Clocks {
    /// Those of this machine.
    pub fn now() -> Clocks {
        let (mono, real) = (time::monotonic(), time::realtime());
        Clocks {
            realtime_offset: real as i64 - mono as i64,
            utc_offset: time::utc_offset((real / 1_000_000_000) as i64),
            string: None,
            no_strangers: false,
        }
    }

    /// The clocks of a live session with this command line.
    pub fn session(format: &Format) -> Clocks {
        Clocks { string: Some(format.string()), ..Clocks::now() }
    }

    /// Those of a session of the whole machine (`all`), of which this is shown.
    pub fn of_machine(self, all: bool, selection: &Selection) -> Clocks {
        Clocks { no_strangers: all && selection.is_partial(), ..self }
    }
}

/// Whether an output is shown in colour.
pub fn colour(format: &Format, output: &Output) -> bool {
    match format.color.as_deref() {
        Some("always") => true,
        Some("never") => false,
        _ => output.is_terminal() && std::env::var_os("NO_COLOR").is_none(),
    }
}

/// Rows and columns of a table of functions that fit on the terminal; unlimited where the output is no terminal.
pub fn table_size(output: &Output) -> (usize, usize) {
    if !output.is_terminal() {
        return (usize::MAX, usize::MAX);
    }
    let (columns, lines) = sys::process::terminal_size(&std::io::stdout()).unwrap_or((100, 24));
    (usize::from(lines).saturating_sub(5).max(5), columns.into())
}

/// The options of views that the command line asks for.
pub fn options(ask: &Ask, output: &Output, clocks: Clocks) -> Result<Options> {
    let manner = Manner::of(ask)?;
    let shorter = ask.format.string_limit.map(|n| n as usize);
    Ok(Options {
        stamp: stamp(&ask.format)?,
        relative: precision("--relative-timestamps", ask.format.relative_timestamps.as_deref())?,
        duration: precision("--syscall-times", ask.format.syscall_times.as_deref())?,
        verbose: manner.verbose,
        abbrev: manner.abbrev,
        xlat: match ask.format.const_print_style.as_deref() {
            Some("raw") => Xlat::Raw,
            Some("verbose") => Xlat::Verbose,
            _ => Xlat::Abbrev,
        },
        hex_strings: match (ask.format.strings_in_hex.as_deref(), ask.format.hex) {
            (Some("none"), _) | (None, 0) => HexStrings::No,
            (Some("non-ascii-chars"), _) => HexStrings::NonAsciiChars,
            (Some("non-ascii"), _) | (None, 1) => HexStrings::NonAscii,
            _ => HexStrings::All,
        },
        fd_names: manner.fd_names,
        comm: manner.comm,
        numbers: ask.format.syscall_number,
        instruction: ask.format.instruction_pointer,
        arg_names: ask.format.arg_names,
        types: ask.format.types,
        column: ask.format.columns.unwrap_or(40).into(),
        prefix: match output {
            o if o.is_per_thread() => Prefix::Never,
            o if o.is_file() || ask.format.always_show_pid => Prefix::Always,
            _ => Prefix::WhenSeveral,
        },
        colour: colour(&ask.format, output),
        realtime_offset: clocks.realtime_offset,
        utc_offset: clocks.utc_offset,
        raw: manner.raw,
        opaque: manner.opaque,
        read: manner.read,
        write: manner.write,
        no_exits: manner.quiet.exits,
        no_superseded: manner.quiet.superseded,
        no_strangers: clocks.no_strangers,
        string: clocks.string.into_iter().chain(shorter).min(),
        stacks: crate::stacks::form(&ask.format)?,
    })
}

/// How many digits a time has.
fn precision(option: &str, text: Option<&str>) -> Result<Option<Precision>> {
    let parse = |text| {
        Precision::parse(text)
            .ok_or_else(|| Error::usage(format!("{option}={text}"), "no such precision", "s, ms, us or ns"))
    };
    text.map(parse).transpose()
}

/// The time at the start of a line: `-t`, or `--absolute-timestamps=[[format:]FORMAT][,[precision:]PRECISION]`.
fn stamp(format: &Format) -> Result<Stamp> {
    const OPTION: &str = "--absolute-timestamps";
    let Some(text) = &format.absolute_timestamps else {
        return Ok(match format.time {
            0 => Stamp::None,
            1 => Stamp::Clock(Precision::S),
            2 => Stamp::Clock(Precision::Us),
            _ => Stamp::Epoch(Precision::Us),
        });
    };
    let (mut make, mut digits): (fn(Precision) -> Stamp, _) = (Stamp::Clock, Precision::S);
    for word in text.split(',') {
        match word.strip_prefix("format:").unwrap_or(word) {
            "none" => make = |_| Stamp::None,
            "time" => make = Stamp::Clock,
            "unix" => make = Stamp::Epoch,
            _ => {
                let word = word.strip_prefix("precision:").unwrap_or(word);
                digits = Precision::parse(word).ok_or_else(|| {
                    let all = "none, time or unix; s, ms, us or ns";
                    Error::usage(format!("{OPTION}={word}"), "neither a format nor a precision", all)
                })?;
            }
        }
    }
    Ok(make(digits))
}
