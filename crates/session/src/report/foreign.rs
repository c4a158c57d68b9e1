//! Traces of other tracers: shown by what their metadata says.

use super::window::Window;
use crate::ask::Ask;
use crate::complain;
use crate::output::Output;
use crate::view::screen::Clocks;
use ctf::generic::{Error as ReadError, Item, Reader, Trace, find};
use ctf::show::{Lines, TimeFormat};
use engine::{Error, Result};
use std::path::Path;

/// Shows all traces in a directory.
pub fn run(ask: &Ask, dir: &Path) -> Result<u8> {
    let cannot = |e: ReadError| {
        Error::failed(dir.display().to_string(), e.to_string(), "the trace is damaged, or this is not a trace")
    };
    let (kind, file) = match &ask.show[..] {
        [] => ("text", None),
        [one] => (one.view.as_str(), one.file.as_deref()),
        _ => return Err(Error::usage("--as", "given twice", "a trace of another tracer has one view at a time")),
    };
    if !matches!(kind, "text" | "json") {
        return Err(Error::usage(format!("--as {kind}"), "not for a trace of another tracer", "text or json"));
    }
    if !ask.trace.redact.is_empty() {
        let todo = "record with trapline, whose events have types";
        return Err(Error::usage("--redact", "not for a trace of another tracer", todo));
    }
    if ask.trace.follow {
        return Err(Error::usage("--follow", "not for a trace of another tracer", "show it when it is complete"));
    }
    if !ask.table.spans.is_empty() {
        return Err(Error::usage("--span", "not for a trace of another tracer", "leave it out"));
    }
    if ask.table.by.is_some() {
        return Err(Error::usage("--by", "not for a trace of another tracer", "leave it out"));
    }
    if ask.select.filter.is_some() {
        return Err(Error::usage("--where", "not for a trace of another tracer", "use babeltrace2 and grep(1)"));
    }
    let mut output = Output::view(file)?;
    let dirs = find(dir).map_err(cannot)?;
    let traces: std::result::Result<Vec<Trace>, _> = dirs.iter().map(|d| Trace::open(d)).collect();
    let traces = traces.map_err(cannot)?;
    for trace in traces.iter().filter(|t| !t.others.is_empty() && ask.quiet == 0) {
        let names: Vec<_> = trace.others.iter().take(3).map(|n| n.to_string_lossy()).collect();
        let more = if trace.others.len() > 3 { " and others" } else { "" };
        let dir = trace.dir().display();
        complain(&format!("{dir}: ignored, because they are not part of this trace: {}{more}", names.join(", ")));
    }
    let reader = Reader::new(traces);
    let infos: Vec<_> = (0..reader.streams()).filter_map(|i| reader.stream(i).cloned()).collect();
    let clocks = Clocks { realtime_offset: 0, ..Clocks::now() };
    let mut lines = Lines::new(TimeFormat::TimeOfDay(clocks.utc_offset as i32));
    let mut window: Option<Window> = None;
    let mut damaged = 0;
    let mut text = String::new();
    for item in reader {
        text.clear();
        match item {
            Err(e) => {
                // The others go on.
                complain(&e.to_string());
                damaged += 1;
            }
            Ok(Item::Event(event)) => {
                let time = event.time.map(|t| u64::try_from(t).unwrap_or(0));
                let window = match window {
                    Some(w) => w,
                    None => *window.insert(Window::parse(ask, time.unwrap_or(0), clocks)?),
                };
                if time.is_some_and(|t| t < window.from) {
                    continue;
                }
                if time.is_some_and(|t| t > window.to) || output.failed() {
                    break;
                }
                let Some(info) = infos.get(event.stream) else { continue };
                if kind == "json" {
                    ctf::show::json(&mut text, &info.metadata, &event);
                    text.push('\n');
                } else {
                    lines.event(&mut text, &info.metadata, &event);
                }
                output.write_lines(text.as_bytes());
            }
            Ok(notice) => {
                lines.notice(&mut text, &notice);
                if ask.quiet == 0 {
                    text.lines().for_each(complain);
                }
            }
        }
    }
    output.close();
    output.take_trouble().map_or(Ok(()), Err)?;
    if damaged > 0 {
        let why = format!("{damaged} of its streams could not be read to their ends");
        return Err(Error::failed(dir.display().to_string(), why, "what could be read was shown"));
    }
    Ok(0)
}
