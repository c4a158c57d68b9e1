//! `processes`: who started whom, when, with what, and what became of it.
//!
//! ```text
//!   pid    began      for     exit calls errors  read written process
//! 25867  0.000 s   58.4 s        0  5012     12 1.2 K     300 sh load.sh
//! 25870  0.001 s   3.29 s        0 41234      3  20 M       0 ├ find /usr
//! 25871  3.292 s   1.10 s SIGSEGV   312       0 1.0 K       0 └ grep -r x
//!                                                               grep: environment: +LANG=C; closed: 3 /etc/passwd
//! ```

use super::execs;
use super::processes::Process;
use super::tally::{self, Tally};
use super::words::line_of_loss;
use super::{Timeline, Writer};
use crate::calls::totals_json::lost;
use crate::profile::words::ascii;
use crate::table::{Align, Table};
use crate::units::{duration, size};
use crate::write::json as w;
use crate::{escape, names};
use events::traces::own;
use serde_json::{Value, json};

/// Bytes of a command line that are shown.
const LINE: usize = 200;

/// Writes the tree.
pub const WRITER: Writer = Writer::whole(write);
/// Writes an object for each process.
pub const JSON: Writer = Writer::whole(write_json);

/// Appends the tree.
fn write(timeline: &Timeline, out: &mut Vec<u8>) {
    let (all, tallies) = (timeline.processes.all(), tally::of(timeline));
    let has = |what: fn(&Tally) -> bool| tallies.iter().any(what);
    let (ran, functions, bytes) =
        (has(|t| t.ran.is_some()), has(|t| t.functions > 0), has(|t| t.read > 0 || t.written > 0));
    let right = |name: &'static str| (name, Align::Right);
    let mut head = vec![right("pid"), right("began"), right("for"), right("exit")];
    head.extend(ran.then_some(right("ran")));
    head.extend([right("calls"), right("errors")]);
    head.extend(bytes.then_some([right("read"), right("written")]).into_iter().flatten());
    head.extend(functions.then_some(right("functions")));
    let origins = all.iter().any(|p| p.origin.is_some());
    head.extend(origins.then_some(("trace", Align::Left)));
    head.push(("process", Align::Left));
    let mut table = Table::list(head);
    let strings: Vec<&str> = timeline.strings.all().collect();
    let string = |n: u32| strings.get((n as usize).wrapping_sub(1)).copied().unwrap_or_default().to_owned();
    in_order(all, &mut |n, branch, below| {
        let (Some(p), Some(t)) = (all.get(n), tallies.get(n)) else { return };
        let some = |n: u64| if n == 0 { String::new() } else { n.to_string() };
        let began = p.first.saturating_sub(timeline.begin);
        let mut cells =
            vec![own(p.pid).to_string(), duration(began), duration(p.last.saturating_sub(p.first)), exit(p)];
        cells.extend(ran.then(|| t.ran.map_or_else(String::new, duration)));
        cells.extend([some(t.calls), some(t.errors)]);
        let bytes_of = |n| if n == 0 { String::new() } else { size(n) };
        cells.extend(bytes.then(|| [bytes_of(t.read), bytes_of(t.written)]).into_iter().flatten());
        cells.extend(functions.then(|| some(t.functions)));
        cells.extend(origins.then(|| ascii(p.origin.as_ref().map_or("", |origin| &origin.label))));
        cells.push(branch + &line(p));
        let empty = cells.len() - 1;
        table.row(cells);
        // What each exec has changed is below the process, in front of its children.
        for c in &p.commands {
            let changed = execs::line(c.environment.as_ref(), &c.closed, &string);
            if !changed.is_empty() {
                let program = c.file.rsplit('/').next().unwrap_or_default();
                let text = format!("{below}{}: {changed}", printable(program));
                table.row(vec![String::new(); empty].into_iter().chain([text]).collect());
            }
        }
    });
    table.write(out);
    line_of_loss(timeline, out);
}

/// The programs of a process: the present one, and in brackets the earlier ones, the latest first.
fn line(p: &Process) -> String {
    let mut text = printable(p.commands.last().map_or(&p.name, |c| &c.line));
    for c in p.commands.iter().rev().skip(1) {
        text += &format!("  (was: {})", printable(&c.line));
    }
    match text.char_indices().nth(LINE) {
        Some((end, _)) => text[..end].to_owned() + "...",
        None if text.is_empty() => "?".into(),
        None => text,
    }
}

fn printable(text: &str) -> String {
    let mut out = Vec::new();
    escape::name(text.as_bytes(), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// The exit status of a process, or the signal that has ended it; empty without an end in the trace.
fn exit(p: &Process) -> String {
    match p.exit {
        None => String::new(),
        Some(code @ 0..) => code.to_string(),
        Some(signal) => {
            names::signal(signal.unsigned_abs()).map_or_else(|| format!("signal {}", -signal), str::to_owned)
        }
    }
}

/// Calls `each` with each process, below its parent and in the order of their beginnings, and with the branches of the tree in front of its line
/// and of further lines about it.
fn in_order(all: &[Process], each: &mut dyn FnMut(usize, String, &str)) {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); all.len()];
    let mut tops = Vec::new();
    for (n, p) in all.iter().enumerate() {
        // A parent is met before its children: no circle is possible.
        match p.parent.filter(|parent| *parent < n) {
            Some(parent) => children[parent].push(n),
            None => tops.push(n),
        }
    }
    // A stack of processes to show: the process, the branches in front of it, and whether it is the last child of its parent.
    let mut rest: Vec<(usize, String, Option<bool>)> =
        tops.into_iter().rev().map(|n| (n, String::new(), None)).collect();
    while let Some((n, before, last)) = rest.pop() {
        let (branch, below) = match last {
            None => ("", ""),
            Some(true) => ("└ ", "  "),
            Some(false) => ("├ ", "│ "),
        };
        let of = &children[n];
        let branch = format!("{before}{branch}");
        let below = before + below;
        each(n, branch, &format!("{below}{}", if of.is_empty() { "  " } else { "│ " }));
        rest.extend(of.iter().enumerate().rev().map(|(i, c)| (*c, below.clone(), Some(i + 1 == of.len()))));
    }
}

/// Appends an object for each process, in the order in which they are met (docs/JSON.md).
fn write_json(timeline: &Timeline, out: &mut Vec<u8>) {
    let strings: Vec<&str> = timeline.strings.all().collect();
    let string = |n: u32| strings.get((n as usize).wrapping_sub(1)).copied().unwrap_or_default().to_owned();
    for (p, t) in timeline.processes.all().iter().zip(tally::of(timeline)) {
        let parent = p.parent.and_then(|n| timeline.processes.all().get(n));
        let commands: Vec<Value> = p
            .commands
            .iter()
            .map(|c| {
                let [environment, closed] = execs::json(c.environment.as_ref(), &c.closed, &string);
                json!({
                    "time_ns": c.time, "file": c.file, "argv": c.line, "cwd": c.cwd, "environment": environment, "closed": closed,
                })
            })
            .collect();
        let mut object = json!({
            "pid": own(p.pid), "parent": parent.map(|p| own(p.pid)), "comm": p.name, "commands": commands,
            "first_ns": p.first, "last_ns": p.last,
            "exit": p.exit.filter(|code| *code >= 0), "signal": p.exit.filter(|code| *code < 0).map(|signal| -signal),
            "cpu_ns": t.ran, "calls": t.calls, "errors": t.errors, "read_bytes": t.read, "written_bytes": t.written,
            "functions": t.functions, "samples": t.samples, "blocks": t.blocks,
        });
        if let Some(origin) = &p.origin {
            (object["host"], object["trace"]) = (origin.host.as_str().into(), origin.trace.as_str().into());
        }
        // As of all objects, what says what it is stands first.
        out.extend_from_slice(br#"{"v":1,"type":"process","#);
        let begin = out.len();
        w::value(out, &object);
        out.remove(begin);
        out.push(b'\n');
    }
    lost(timeline.lost.unwrap_or(0), out);
}
