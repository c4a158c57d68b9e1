//! The text view: strace's line format.
//!
//! ```text
//! 4711  12:00:00.000001 openat(AT_FDCWD, "/etc/passwd", O_RDONLY|O_CLOEXEC) = 3 <0.000012>
//! ^prefix ^stamp        ^call                                              ^result ^duration
//! ```
//!
//! Completed calls only, each on one line at its end; a call that runs long gets a notice of its own before. Control
//! characters of the target never reach the output: strings are escaped by [`crate::escape`], everything else is made of names
//! and numbers.

mod call;
mod dump;
mod process;
mod quirks;
mod result;
mod sink;
mod types;

use crate::options::{Options, Precision, Prefix, Stamp};
use crate::write::number::{dec, padded, spaces};
use crate::{View, escape, stack};
use events::Event;
use events::generated::{P_EXIT, P_SUPERSEDED};
use events::names::Names;
use std::collections::{HashMap, HashSet};

pub(crate) use call::complete;
pub use call::entered;
pub use types::c_type;

/// The text view.
pub struct Text {
    opts: Options,
    /// Several threads have been seen.
    several: bool,
    /// Start of the line before, for `-r`.
    last: Option<u64>,
    /// The number of each thread's last call, for `-n`.
    numbers: HashMap<u32, u64>,
    /// Processes of which a line was shown, where others' ends are not.
    known: HashSet<u32>,
}

/// The most threads whose last calls, and the most processes that are remembered.
const MOST: usize = 1 << 16;

/// Colours, by what they mark.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    Name,
    Error,
    Signal,
    Faint,
}

impl Colour {
    fn start(self) -> &'static [u8] {
        match self {
            Colour::Name => b"\x1b[36m",
            Colour::Error => b"\x1b[31m",
            Colour::Signal => b"\x1b[33m",
            Colour::Faint => b"\x1b[2m",
        }
    }
}

pub(crate) const COLOUR_END: &[u8] = b"\x1b[0m";

/// Appends what `write` writes, in a colour.
#[inline]
pub(crate) fn coloured(opts: &Options, c: Colour, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    if opts.colour {
        out.extend_from_slice(c.start());
        write(out);
        out.extend_from_slice(COLOUR_END);
    } else {
        write(out);
    }
}

impl Text {
    /// A view with these options.
    pub fn new(opts: Options) -> Text {
        Text { opts, several: false, last: None, numbers: HashMap::new(), known: HashSet::new() }
    }

    /// Whether a line about the end of a thread is shown.
    fn shows_end(&mut self, ev: &Event<'_>) -> bool {
        let is_exit = ev.schema.name == "exit";
        let is_known = !self.opts.no_strangers || self.known.contains(&ev.pid());
        if is_exit && ev.pid() == ev.tid() {
            self.known.remove(&ev.pid());
        }
        let hidden = if is_exit { self.opts.no_exits && ev.value_of("signo") == 0 } else { self.opts.no_superseded };
        is_known && !hidden
    }

    /// Where the line was traced, of several traces: before its column 0.
    #[inline]
    fn origin(&self, ev: &Event<'_>, names: &dyn Names, out: &mut Vec<u8>) {
        if let Some(origin) = names.origin(ev.tid()) {
            let from = out.len();
            escape::name(origin.label.as_bytes(), out);
            spaces((from + origin.width).saturating_sub(out.len()) + 1, out);
        }
    }

    #[inline]
    fn prefix(&mut self, ev: &Event<'_>, names: &dyn Names, out: &mut Vec<u8>) {
        match self.opts.prefix {
            Prefix::Never => {}
            Prefix::WhenSeveral if !self.several => {}
            Prefix::WhenSeveral => {
                out.extend_from_slice(b"[pid ");
                padded(names.own(ev.tid()).into(), 5, out);
                self.comm(ev, names, out);
                out.extend_from_slice(b"] ");
            }
            Prefix::Always => {
                let from = out.len();
                dec(names.own(ev.tid()).into(), out);
                self.comm(ev, names, out);
                spaces((from + 5).saturating_sub(out.len()) + 1, out);
            }
        }
        if self.opts.no_strangers && self.known.len() < MOST && !is_end(ev) {
            self.known.insert(ev.pid());
        }
        self.stamp(ev.start(), out);
        self.relative(ev.start(), out);
        if self.opts.numbers {
            self.number(ev, out);
        }
        if self.opts.instruction {
            stack::instruction(ev, names, out);
        }
    }

    /// The number of the call, or of the last one of the thread that a line is about.
    fn number(&mut self, ev: &Event<'_>, out: &mut Vec<u8>) {
        let number = match ev.is_syscall() {
            true => Some(call::number(ev)),
            false => self.numbers.get(&ev.tid()).copied(),
        };
        match number {
            Some(n) => {
                out.push(b'[');
                padded(n, 4, out);
                out.extend_from_slice(b"] ");
            }
            None => out.extend_from_slice(b"[????] "),
        }
        match number {
            Some(n) if self.numbers.len() < MOST => drop(self.numbers.insert(ev.tid(), n)),
            _ => {}
        }
        if is_end(ev) {
            self.numbers.remove(&ev.tid());
        }
    }

    #[inline]
    fn comm(&self, ev: &Event<'_>, names: &dyn Names, out: &mut Vec<u8>) {
        if self.opts.comm
            && let Some(c) = names.comm(ev.tid())
        {
            out.push(b'<');
            escape::name(c, out);
            out.push(b'>');
        }
    }

    fn stamp(&self, start: u64, out: &mut Vec<u8>) {
        let (Stamp::Clock(precision) | Stamp::Epoch(precision)) = self.opts.stamp else { return };
        let real = i128::from(start) + i128::from(self.opts.realtime_offset);
        let (secs, nanos) = (real.div_euclid(SECOND.into()), real.rem_euclid(SECOND.into()) as u64);
        if let Stamp::Epoch(_) = self.opts.stamp {
            dec(secs as u64, out);
        } else {
            let day = (secs + i128::from(self.opts.utc_offset)).rem_euclid(86400) as i64;
            two(day / 3600, out);
            out.push(b':');
            two(day / 60 % 60, out);
            out.push(b':');
            two(day % 60, out);
        }
        fraction(nanos, precision, out);
        out.push(b' ');
    }

    /// The time since the line before.
    fn relative(&mut self, start: u64, out: &mut Vec<u8>) {
        let Some(precision) = self.opts.relative else { return };
        let d = start.saturating_sub(self.last.unwrap_or(start));
        self.last = Some(start.max(self.last.unwrap_or(0)));
        let beside = self.opts.stamp != Stamp::None;
        out.extend_from_slice(if beside { b"(+" } else { b"" });
        padded(d / SECOND, 6, out);
        fraction(d % SECOND, precision, out);
        out.extend_from_slice(if beside { b") " } else { b" " });
    }

    #[inline]
    fn duration(&self, ev: &Event<'_>, out: &mut Vec<u8>) {
        if let Some(precision) = self.opts.duration
            && ev.caps() & events::layout::CAP_NO_RESULT == 0
            && let Some(ns) = ev.duration()
        {
            out.extend_from_slice(b" <");
            dec(ns / SECOND, out);
            fraction(ns % SECOND, precision, out);
            out.push(b'>');
        }
    }
}

/// ns
const SECOND: u64 = 1_000_000_000;

/// Appends an event without its thread, its time and the columns of lines; a call that is `entered`, with what is known then. Nothing for an
/// event that no line is about.
pub fn shown(ev: &Event<'_>, names: &dyn Names, entered: bool, out: &mut Vec<u8>) {
    let opts = Options { column: 0, ..Options::default() };
    match ev.schema.class {
        events::Class::Syscall if entered => call::entered(ev, names, &opts, out),
        events::Class::Syscall => call::complete(ev, names, &opts, out.len(), out),
        events::Class::Probe => call::probe(ev, names, &opts, out),
        _ => process::line(ev, &opts, out),
    }
}

/// Whether a thread has ended, or is replaced.
fn is_end(ev: &Event<'_>) -> bool {
    [P_EXIT.id, P_SUPERSEDED.id].contains(&ev.schema.id)
}

fn two(n: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'0' + (n / 10) as u8, b'0' + (n % 10) as u8]);
}

/// `.` and the digits of a part of a second; nothing where it has none.
fn fraction(nanos: u64, precision: Precision, out: &mut Vec<u8>) {
    let (mut div, least) = match precision {
        Precision::S => return,
        Precision::Ms => (100_000_000, 1_000_000),
        Precision::Us => (100_000_000, 1000),
        Precision::Ns => (100_000_000, 1),
    };
    out.push(b'.');
    while div >= least {
        out.push(b'0' + (nanos / div % 10) as u8);
        div /= 10;
    }
}

impl View for Text {
    fn expect_several(&mut self) {
        self.several = true;
    }

    fn event(&mut self, ev: &Event<'_>, names: &dyn Names, out: &mut Vec<u8>) {
        if ev.is_syscall() {
            self.origin(ev, names, out);
            let line = out.len();
            self.prefix(ev, names, out);
            call::complete(ev, names, &self.opts, line, out);
            self.duration(ev, out);
            out.push(b'\n');
            dump::below(ev, &self.opts, out);
            return stack::below(ev, names, self.opts.stacks, out);
        }
        if ev.schema.class == events::Class::Probe {
            self.origin(ev, names, out);
            self.prefix(ev, names, out);
            call::probe(ev, names, &self.opts, out);
            self.duration(ev, out);
            out.push(b'\n');
            return stack::below(ev, names, self.opts.stacks, out);
        }
        match ev.schema.name {
            "fork" => self.several = true,
            "attach" if ev.pid() != ev.tid() => self.several = true,
            "exit" | "superseded" if !self.shows_end(ev) => {}
            "signal" | "stop" | "exit" | "superseded" => {
                self.origin(ev, names, out);
                self.prefix(ev, names, out);
                process::line(ev, &self.opts, out);
                out.push(b'\n');
                stack::below(ev, names, self.opts.stacks, out);
            }
            "inflight" => {
                if let Ok(inner) = Event::parse(ev.bytes_of("call"))
                    && inner.is_syscall()
                {
                    self.origin(&inner, names, out);
                    self.prefix(&inner, names, out);
                    call::in_flight(&inner, ev.value_of("attach"), names, &self.opts, out);
                    out.push(b'\n');
                    stack::below(&inner, names, self.opts.stacks, out);
                }
            }
            _ => {}
        }
    }
}
