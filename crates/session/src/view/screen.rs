//! What views must know of the session, of the screen and of the options for lines.

use crate::ask::{Ask, Format};
use crate::output::Output;
use engine::Result;
use sys::time;
use views::options::{FdNames, HexStrings, Options, Prefix, Stamp, Xlat};

/// What views must know of the session: its clocks, and how much of a string was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC, ns.
    pub realtime_offset: i64,
    /// Local time zone: seconds to add to UTC.
    pub utc_offset: i64,
    /// Bytes shown of a string, where more was captured for a filter.
    pub string: Option<usize>,
}

impl Clocks {
    /// Those of this machine.
    pub fn now() -> Clocks {
        let (mono, real) = (time::monotonic(), time::realtime());
        Clocks {
            realtime_offset: real as i64 - mono as i64,
            utc_offset: time::utc_offset((real / 1_000_000_000) as i64),
            string: None,
        }
    }

    /// The clocks of a live session with this command line.
    pub fn session(format: &Format) -> Clocks {
        Clocks { string: Some(format.string()), ..Clocks::now() }
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

/// Rows and columns of a table of functions that fit on a terminal; any number where the output is none.
pub fn table_size(output: &Output) -> (usize, usize) {
    if !output.is_terminal() {
        return (usize::MAX, usize::MAX);
    }
    let (columns, lines) = sys::process::terminal_size(&std::io::stdout()).unwrap_or((100, 24));
    (usize::from(lines).saturating_sub(5).max(5), columns.into())
}

/// The options of views that the command line asks for.
pub fn options(ask: &Ask, output: &Output, raw: Vec<bool>, clocks: Clocks) -> Result<Options> {
    Ok(Options {
        stamp: match ask.format.time {
            _ if ask.format.relative_timestamps => Stamp::Relative,
            0 => Stamp::None,
            1 => Stamp::Clock,
            2 => Stamp::ClockMicros,
            _ => Stamp::Epoch,
        },
        duration: ask.format.syscall_times,
        verbose: ask.format.no_abbrev,
        xlat: match ask.format.const_print_style.as_deref() {
            Some("raw") => Xlat::Raw,
            Some("verbose") => Xlat::Verbose,
            _ => Xlat::Abbrev,
        },
        hex_strings: match ask.format.hex {
            0 => HexStrings::No,
            1 => HexStrings::NonAscii,
            _ => HexStrings::All,
        },
        fd_names: match ask.format.fd {
            0 => FdNames::No,
            1 => FdNames::Path,
            _ => FdNames::Full,
        },
        comm: ask.format.decode_pids,
        numbers: ask.format.syscall_number,
        types: ask.format.types,
        column: ask.format.columns.unwrap_or(40).into(),
        prefix: match output {
            o if o.is_per_thread() => Prefix::Never,
            o if o.is_file() => Prefix::Always,
            _ => Prefix::WhenSeveral,
        },
        colour: colour(&ask.format, output),
        realtime_offset: clocks.realtime_offset,
        utc_offset: clocks.utc_offset,
        raw,
        string: clocks.string,
        stacks: crate::stacks::form(&ask.format)?,
    })
}
