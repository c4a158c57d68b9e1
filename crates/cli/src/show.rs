//! Views from the command line: the filter, the options, and the views themselves.

use crate::ask::{Ask, Format, Select, Tables};
use crate::output::Output;
use engine::pipeline::pump::{Flow, Sink};
use engine::pipeline::selection::Selection;
use engine::pipeline::world::World;
use engine::select::{Calls, Outcomes, Signals};
use engine::{Error, Result};
use events::Event;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use sys::time;
use views::View;
use views::options::{FdNames, HexStrings, Options, Prefix, Stacks, Stamp, Xlat};
use views::reorder::Reorder;

/// Views and where they write to.
pub type Views = Vec<(Shown, Output)>;

/// What a session shows, and to whom.
pub struct Sinks {
    /// Each gets the events that are selected.
    pub all: Vec<Box<dyn Sink>>,
    /// The descriptors that they write to.
    pub places: Vec<i32>,
    /// What they have to say at the end: for the last line, and for `--stats`.
    pub told: Option<Told>,
    /// Some of them show source files and lines.
    pub lines: bool,
}

/// Words for the last line, and counters.
pub type Told = Box<dyn Fn() -> (Vec<String>, serde_json::Value)>;

impl From<Views> for Sinks {
    fn from(views: Views) -> Sinks {
        let places = views.iter().flat_map(|(_, out)| out.descriptors()).collect();
        let sink = |(shown, out)| Box::new(ToOutput { shown, out }) as Box<dyn Sink>;
        Sinks { all: views.into_iter().map(sink).collect(), places, told: None, lines: true }
    }
}

/// The views of a trace.
pub struct Shown {
    lines: Option<Box<dyn View>>,
    table: Option<Box<dyn View>>,
    /// `--sort start`: lines wait here.
    order: Option<Reorder>,
    line: Vec<u8>,
}

impl Shown {
    /// A table at the end, and nothing else.
    pub fn table(table: Box<dyn View>) -> Shown {
        Shown { lines: None, table: Some(table), order: None, line: Vec::new() }
    }
    /// Whether it shows lines in the order of the events, and nothing else.
    pub fn is_lines_only(&self) -> bool {
        self.lines.is_some() && self.table.is_none() && self.order.is_none()
    }
    /// Whether it shows lines while events come.
    pub fn has_lines(&self) -> bool {
        self.lines.is_some()
    }
    /// Learns from an event, whether it will be shown or not.
    pub fn see(&mut self, ev: &Event<'_>) {
        self.lines.iter_mut().chain(&mut self.table).for_each(|view| view.see(ev));
        if let Some(order) = &mut self.order {
            order.see(ev);
        }
    }
    /// Shows an event.
    pub fn event(&mut self, ev: &Event<'_>, world: &World, out: &mut Output) {
        if let Some(t) = &mut self.table {
            t.event(ev, world, out.buffer());
        }
        let Some(order) = &mut self.order else {
            if let Some(v) = &mut self.lines {
                v.event(ev, world, out.buffer());
            }
            return out.event_done(ev.tid(), ev.schema.id);
        };
        self.line.clear();
        if let Some(v) = &mut self.lines {
            v.event(ev, world, &mut self.line);
        }
        order.push(ev, &self.line);
        release(order, out);
    }
    /// Every event before `now` has been seen.
    pub fn passed(&mut self, now: u64, out: &mut Output) {
        if let Some(order) = &mut self.order {
            order.passed(now);
            release(order, out);
        }
    }
    /// So many events were lost.
    pub fn lost(&mut self, events: u64) {
        self.lines.iter_mut().chain(&mut self.table).for_each(|view| view.lost(events));
    }
    /// Shows what is shown at the end.
    pub fn end(&mut self, out: &mut Output) {
        if let Some(order) = &mut self.order {
            order.finish();
            release(order, out);
        }
        if let Some(v) = &mut self.lines {
            v.end(out.buffer());
        }
        if let Some(t) = &mut self.table {
            t.end(out.buffer());
        }
    }
    /// Expects several threads from the start.
    pub fn expect_several(&mut self) {
        if let Some(v) = &mut self.lines {
            v.expect_several();
        }
    }
}

/// A view and where it writes to.
pub struct ToOutput {
    /// The view.
    pub shown: Shown,
    /// Its destination.
    pub out: Output,
}

impl ToOutput {
    fn flow(&mut self) -> Result<Flow> {
        match self.out.take_trouble() {
            Some(e) => Err(e),
            None if self.out.failed() => Ok(Flow::Stop),
            None => Ok(Flow::Continue),
        }
    }
}

impl Sink for ToOutput {
    fn expect_several(&mut self) {
        self.shown.expect_several();
    }

    fn observe(&mut self, ev: &Event<'_>) {
        self.shown.see(ev);
    }

    fn event(&mut self, ev: &Event<'_>, world: &World) -> Result<Flow> {
        self.shown.event(ev, world, &mut self.out);
        self.flow()
    }

    fn idle(&mut self, now: u64) -> Result<Flow> {
        self.shown.passed(now, &mut self.out);
        self.flow()
    }

    fn flush(&mut self) -> Result<Flow> {
        self.out.flush();
        self.flow()
    }

    fn lost(&mut self, events: u64) {
        self.shown.lost(events);
    }

    fn end(&mut self) -> Result<()> {
        self.shown.end(&mut self.out);
        self.out.close();
        self.out.take_trouble().map_or(Ok(()), Err)
    }

    fn take_lost(&mut self) -> Vec<u16> {
        self.out.take_lost()
    }

    fn has_written(&self) -> bool {
        self.out.has_written()
    }
}

/// Writes the lines whose turn it is. Until its line is written, an event may still be lost.
fn release(order: &mut Reorder, out: &mut Output) {
    while let Some(held) = order.pop() {
        out.buffer().extend_from_slice(&held.text);
        out.event_done(held.tid, held.id);
    }
}

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

/// The views that the command line asks for: lines of that kind, a table, or both.
pub fn views(ask: &Ask, output: &Output, raw: Vec<bool>, kind: Option<&str>, clocks: Clocks) -> Result<Shown> {
    let opts = options(ask, output, raw, clocks)?;
    let order = ask.format.sort.as_ref().is_some_and(|s| s == "start").then(Reorder::default);
    if order.is_some() && opts.stamp == Stamp::Relative {
        return Err(Error::usage(
            "--sort start",
            "-r shows the time since the line before",
            "use -ttt, or leave -r out",
        ));
    }
    let summary = ask.table.summary_only || ask.table.summary;
    // Made in any case, so that a bad -S or -U is never overlooked.
    let table = Some(summary_view(&ask.table)?).filter(|_| summary);
    let lines: Option<Box<dyn View>> = match kind {
        _ if ask.table.summary_only => None,
        kind => Some(lines_of(kind.unwrap_or("text"), opts)?),
    };
    Ok(Shown { lines, table, order, line: Vec::new() })
}

/// A view of lines.
pub fn lines_of(kind: &str, opts: Options) -> Result<Box<dyn View + Send>> {
    Ok(match kind {
        "text" => Box::new(views::text::Text::new(opts)),
        "json" => Box::new(views::json::Json::new(opts)),
        "record" => Box::new(views::record::Record::new().stacks(opts.stacks != Stacks::Fields)),
        other => return Err(Error::usage(format!("--as {other}"), "no such view", "text, json or record")),
    })
}

fn summary_view(table: &Tables) -> Result<Box<dyn View>> {
    use views::summary::{Column, Sort, Summary};
    let sort = match &table.sort_by {
        None => Sort::Time,
        Some(s) => Sort::parse(s).ok_or_else(|| {
            Error::usage(format!("-S {s}"), "no such order", "time, calls, errors, name, min, max, avg or nothing")
        })?,
    };
    let summary = Summary::new(sort);
    Ok(Box::new(match &table.columns {
        None => summary,
        Some(list) => summary.columns(Column::parse(list).ok_or_else(|| {
            let all = "time-percent, total-time, min-time, max-time, avg-time, calls, errors, name";
            Error::usage(format!("-U {list}"), "no such column, or one twice", all)
        })?),
    }))
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

/// The filter that the command line asks for, and the calls that are shown raw.
pub fn filter(ask: &Ask) -> Result<(Selection, Vec<bool>)> {
    filter_of(ask, expressions(&ask.select).map(str::to_owned).collect())
}

/// The expressions of `-e` and `--trace`. `trace=SET` is SET.
pub fn expressions(select: &Select) -> impl Iterator<Item = &str> {
    let set = |e| ["trace=", "t="].iter().find_map(|kind| str::strip_prefix(e, kind)).unwrap_or(e);
    select.expr.iter().map(String::as_str).map(set).chain(select.trace.iter().map(String::as_str))
}

/// The filter with these expressions in place of those of `-e`, and the calls that are shown raw.
pub fn filter_of(ask: &Ask, exprs: Vec<String>) -> Result<(Selection, Vec<bool>)> {
    crate::combinations::exclusive(ask)?;
    let mut f = Selection::all();
    let mut raw = Vec::new();
    let select = &ask.select;
    let exprs = exprs
        .into_iter()
        .chain(select.signal.iter().map(|s| format!("signal={s}")))
        .chain(select.status.iter().map(|s| format!("status={s}")));
    for e in exprs {
        let (kind, set) = match e.split_once('=') {
            Some((k, s)) if !k.contains(['/', ',', '%']) => (k, s),
            _ => ("trace", e.as_str()),
        };
        match kind {
            "trace" => f.calls = Calls::parse(set)?,
            "signal" | "signals" | "s" => f.signals = Signals::parse(set)?,
            "status" => f.outcomes = Outcomes::parse(set)?,
            "raw" | "x" => {
                let calls = Calls::parse(set)?;
                raw = events::generated::SCHEMAS.iter().map(|s| calls.contains(s)).collect();
            }
            other => {
                let hint = crate::strace_flags::equivalent(&format!("--{other}"))
                    .unwrap_or("trace=, signal=, status= or raw=");
                return Err(Error::usage(format!("-e {other}=…"), "no such qualifier", hint));
            }
        }
    }
    if select.successful_only {
        f.outcomes = Outcomes { successful: true, ..Outcomes::NONE };
    }
    if select.failed_only {
        f.outcomes = Outcomes { failed: true, ..Outcomes::NONE };
    }
    for p in &select.trace_path {
        f.paths.push(p.as_bytes().to_vec());
        if let Ok(full) = std::fs::canonicalize(p) {
            f.paths.push(full.into_os_string().into_vec());
        }
    }
    Ok((f, raw))
}

/// Whether an `-e` is one of strace's with a qualifier: `signal=…`, `status=…`, `raw=…`, `trace=…`.
pub fn is_qualified(text: &str) -> bool {
    text.split_once('=').is_some_and(|(kind, _)| !kind.is_empty() && kind.bytes().all(|b| b.is_ascii_lowercase()))
}
