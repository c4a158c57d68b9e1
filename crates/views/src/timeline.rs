//! Everything of a trace over time: the one model that pictures are drawn from.
//!
//! ```text
//! events ─► Timeline ─► processes ─► threads ─► rows ─► columns        a row: things that follow each other in one lane of a picture
//!                       strings, stacks, frames: each once, by number
//!                    ─► html: one file with the picture and its viewer; perfetto, chrome; overview, tree
//! ```
//!
//! A row has slices (functions of one depth, system calls, times on and off the processor), marks (signals, probes, what happens to the
//! process), samples, allocations, or places where events are missing. All rows have the same columns; what a row has not is 0 there.
//! Times are those of the trace, from its first event. Names are data: each writer escapes them as its format needs.

pub mod chrome;
mod columns;
mod curves;
mod execs;
mod flows;
mod functions;
pub mod html;
mod kind;
mod lanes;
mod nested;
mod operations;
pub mod overview;
pub mod perfetto;
mod processes;
mod runs;
mod span_parts;
pub mod span_table;
pub mod spans;
mod strings;
pub(crate) mod tally;
pub mod tree;
mod words;
mod writer;

use crate::View;
use crate::advance::Advance;
use crate::call_events::{CallEvents, Shown};
use crate::calls::{Demangle, Selection};
use crate::latency::{By, Subject};
use crate::options::{Options, Prefix};
use crate::row::{self, Form};
use crate::spill::Spill;
use crate::stack::frames;
use crate::text::Text;
use crate::trace_stats::TraceStats;
use columns::{Item, Row, Rows};
use curves::Curves;
use events::generated::{P_ATTACH, P_DETACH, P_EXIT, P_FD, P_FORK, P_INFLIGHT, P_MAP, P_PAUSED, P_RESUMED};
use events::hash::Table;
use events::names::{AT_FDCWD, Names};
use events::schema::Class;
use events::traces::beside;
use events::{Event, functions as records, io_uring, stacks};
use functions::FunctionRows;
pub use kind::Kind;
use operations::Operations;
use processes::{Command, Processes};
use runs::{Runs, SWITCH};
use spans::{Definition, Spans};
use std::sync::Arc;
use strings::{Frames, Strings};
use writer::How;
pub use writer::Writer;

/// How a view of everything over time is made.
#[derive(Clone, Copy)]
pub(crate) struct Make {
    /// What writes it, for the file that it goes to.
    pub writer: fn(Option<&str>) -> Writer,
    /// How functions are called where nobody has said it.
    pub names: Demangle,
    /// It is a picture.
    pub is_picture: bool,
}

impl Make {
    const fn picture(writer: fn(Option<&str>) -> Writer) -> Make {
        Make { writer, names: Demangle::Simple, is_picture: true }
    }

    const fn table(names: Demangle, writer: fn(Option<&str>) -> Writer) -> Make {
        Make { writer, names, is_picture: false }
    }
}

/// The views of everything over time.
pub(crate) const ROWS: &[row::Row<Make>] = &[
    row::Row::new(
        "html",
        Form::Binary("for a browser"),
        "everything over time, in one file for a browser",
        Make::picture(|_| html::WRITER),
    ),
    row::Row::new(
        "timeline",
        Form::Binary("for ui.perfetto.dev"),
        "everything over time, for Perfetto; FILE.json for Chrome",
        Make::picture(for_others),
    ),
    row::Row::new(
        "overview",
        Form::Text,
        "lanes of processes over time, and when most has happened",
        Make::picture(|_| overview::WRITER),
    ),
    row::Row::new(
        "processes",
        Form::Text,
        "who started whom, and what each has done",
        Make::table(Demangle::Simple, |_| tree::WRITER),
    ),
    row::Row::new(
        "processes-json",
        Form::Data,
        "an object for each process",
        Make::table(Demangle::Plain, |_| tree::JSON),
    ),
    row::Row::new(
        "spans",
        Form::Text,
        "spans of two probes (--span): how long, and what the slowest were made of",
        Make::table(Demangle::Simple, |_| span_table::WRITER),
    ),
    row::Row::new(
        "spans-json",
        Form::Data,
        "spans of two probes, as an object for each --span",
        Make::table(Demangle::Plain, |_| span_table::JSON),
    ),
];

/// For other programs: Chrome's format in a file that is called so, else Perfetto's.
fn for_others(file: Option<&str>) -> Writer {
    if file.is_some_and(|file| file.ends_with(".json")) { chrome::WRITER } else { perfetto::WRITER }
}

/// What a row belongs to, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Of {
    Thread(usize),
    Process(usize),
    /// A processor, by its number.
    Cpu(u32),
}

/// Most calls whose text is kept whole, with arguments and results. Of more, it is kept of those that fail or take [`LONG`].
const MOST_TEXTS: u64 = 400_000;
/// What a long call is, ns.
const LONG: u64 = 100_000;
/// Most bytes of strings, and of who begins and wakes whom: as many events have them.
const MOST_BYTES: usize = 1 << 29;
/// Files and sockets whose names are remembered: of more, they are made anew.
const MOST_SUBJECTS: usize = 1 << 16;
/// Bytes of a string that are shown, and bytes of a text that are kept.
const STRING: usize = 200;
const TEXT: usize = 1000;

/// The view: it collects all events of a trace. At the end, a writer writes them.
pub struct Timeline {
    writer: Writer,
    /// How wide a picture of characters is.
    columns: usize,
    /// How far the writer is.
    advance: Arc<Advance>,
    stats: TraceStats,
    text: Text,
    line: Vec<u8>,
    strings: Strings,
    frames: Frames,
    processes: Processes,
    rows: Rows,
    functions: CallEvents<FunctionRows>,
    spans: Spans,
    operations: Operations,
    curves: Curves,
    runs: Runs,
    /// From thread to thread: time, both, and 0 of a child, 1 of a thread that was woken.
    flows: Vec<[u64; 4]>,
    /// Children that no event has come of.
    children: Table<u32, (u64, usize)>,
    /// Names of calls, by their classes; of files and sockets.
    calls_by_id: Vec<u32>,
    subjects: Table<Subject, u32>,
    /// Times in which the session was stopped.
    pauses: Vec<[u64; 2]>,
    calls: u64,
    /// Calls whose text was left out.
    untold: u64,
    /// Events that were collected, and that were not.
    collected: u64,
    cut: u64,
    lost: Option<u64>,
    begin: u64,
    last: u64,
}

impl Timeline {
    /// What is known of the trace before its events, and what writes it at the end.
    pub fn new(stats: TraceStats, writer: Writer) -> Timeline {
        let options = Options { prefix: Prefix::Never, column: 0, string: Some(STRING), ..Options::default() };
        Timeline {
            writer,
            columns: 100,
            advance: Arc::default(),
            stats,
            text: Text::new(options),
            line: Vec::new(),
            strings: Strings::default(),
            frames: Frames::default(),
            processes: Processes::default(),
            rows: Rows::default(),
            functions: CallEvents::new(FunctionRows::new(Selection::default(), writer.depths)),
            spans: Spans::default(),
            operations: Operations::default(),
            curves: Curves::default(),
            runs: Runs::default(),
            flows: Vec::new(),
            children: Table::default(),
            calls_by_id: Vec::new(),
            subjects: Table::default(),
            pauses: Vec::new(),
            calls: 0,
            untold: 0,
            collected: 0,
            cut: 0,
            lost: None,
            begin: u64::MAX,
            last: 0,
        }
    }

    /// Pictures of characters are that wide.
    pub fn columns(mut self, columns: usize) -> Timeline {
        self.columns = columns;
        self
    }

    /// With calls of functions that are selected, and the system calls in them; and with these names.
    pub fn functions(mut self, selection: Selection, shown: Shown) -> Timeline {
        self.functions = CallEvents::new(FunctionRows::new(selection, self.writer.depths)).names(shown);
        self
    }

    /// With these spans, of which a table has this many of the slowest.
    pub fn spans(mut self, definitions: Vec<Definition>, slowest: usize) -> Timeline {
        self.spans = Spans::new(definitions, slowest);
        self
    }

    /// The writer says there how far it is.
    pub fn advance(mut self, advance: Arc<Advance>) -> Timeline {
        self.advance = advance;
        self
    }

    /// The number of a stack of an event, 0 without any.
    fn stack(&mut self, ev: &Event<'_>, names: &dyn Names) -> u64 {
        if !stacks::may_have(ev.schema) {
            return 0;
        }
        let mut ids = Vec::new();
        for stack in stacks::of(ev, names) {
            frames(ev, &stack, names, &mut |p| {
                let module = p.frame.module.rsplit('/').next().unwrap_or_default();
                let unknown;
                let function = match (p.frame.function, p.address) {
                    ("", Some(address)) => {
                        unknown =
                            if module.is_empty() { format!("{address:#x}") } else { format!("{module}+{address:#x}") };
                        &unknown
                    }
                    (name, _) => name,
                };
                let (function, module) = (self.strings.number(function), self.strings.number(module));
                let file = self.strings.number(p.frame.file);
                ids.push(self.frames.frame([function, module, file, p.frame.line, u32::from(p.frame.kernel)]));
            });
        }
        if ids.is_empty() { 0 } else { u64::from(self.frames.stack(&ids)) }
    }

    /// The event as the text view shows it, on one line.
    fn line(&mut self, ev: &Event<'_>, names: &dyn Names) -> String {
        self.line.clear();
        self.text.event(ev, names, &mut self.line);
        self.line.truncate(TEXT);
        String::from_utf8_lossy(&self.line).trim_end().replace('\n', " ")
    }

    /// The file or the socket that a call is about, where that is known.
    fn subject(&mut self, ev: &Event<'_>, names: &dyn Names) -> u32 {
        let subject = Subject::of(ev, By::Path, names);
        if matches!(subject, Subject::None | Subject::Unnamed) {
            return 0;
        }
        if let Some(number) = self.subjects.get(&subject) {
            return *number;
        }
        let number = self.strings.number(&subject.name(By::Path, &[]));
        if self.subjects.len() < MOST_SUBJECTS {
            self.subjects.insert(subject, number);
        }
        number
    }

    /// What a call is called.
    fn name_of_call(&mut self, ev: &Event<'_>) -> u32 {
        let nth = usize::from(ev.schema.id);
        match self.calls_by_id.get(nth) {
            Some(number @ 1..) => *number,
            _ => {
                let number = self.strings.number(ev.schema.name);
                if self.calls_by_id.len() <= nth {
                    self.calls_by_id.resize(nth + 1, 0);
                }
                self.calls_by_id[nth] = number;
                number
            }
        }
    }

    /// A system call.
    fn call(&mut self, ev: &Event<'_>, names: &dyn Names, thread: usize) {
        self.calls += 1;
        let failed = ev.errno().is_some();
        let length = ev.time().saturating_sub(ev.start());
        let text = self.text_of_call(ev, names);
        if matches!(ev.schema.name, "execve" | "execveat") && !failed {
            let line = self.line(ev, names);
            let cwd = names.fd(ev.pid(), AT_FDCWD).map(|cwd| String::from_utf8_lossy(&cwd.path).into_owned());
            let file = String::from_utf8_lossy(ev.bytes_of("filename")).into_owned();
            let (line, cwd) = (arguments(&line), cwd.unwrap_or_default());
            let command = Command { time: ev.time(), file, line, cwd, ..Command::default() };
            self.processes.executed(self.processes.of_thread(thread), command, execs::environment(ev));
        }
        let subject = self.subject(ev, names);
        self.opened(ev, subject);
        let item = Item {
            start: ev.start(),
            length,
            name: self.name_of_call(ev),
            value: ev.errno().map_or(ev.ret(), |errno| -errno.abs()),
            text,
            stack: self.stack(ev, names),
            subject: subject.into(),
        };
        if self.functions.view().shows((ev.pid(), ev.tid())) {
            self.rows.of(Of::Thread(thread), Kind::Call, 0).push(&item);
        }
    }

    /// The line of a call or an operation, unless there are too many and it is an ordinary one; 0: none.
    fn text_of_call(&mut self, ev: &Event<'_>, names: &dyn Names) -> u32 {
        let is_long = ev.time().saturating_sub(ev.start()) >= LONG;
        if self.calls <= MOST_TEXTS || ev.errno().is_some() || is_long {
            let line = self.line(ev, names);
            return self.strings.number(&line);
        }
        self.untold += 1;
        0
    }

    /// An operation of io_uring: those of a thread overlap.
    fn operation(&mut self, ev: &Event<'_>, names: &dyn Names, process: usize) {
        self.calls += 1;
        let name = self.strings.number(ev.schema.name);
        let text = self.text_of_call(ev, names);
        let (start, length, stack) = (ev.start(), ev.time().saturating_sub(ev.start()), self.stack(ev, names));
        self.operations.add(ev.schema.name, process, Item { start, length, name, text, stack, ..Item::default() });
    }

    /// What is shown as a mark: signals, probes, what happens to a thread.
    fn mark(&mut self, ev: &Event<'_>, names: &dyn Names, thread: usize, kind: Kind) {
        let text = if kind == Kind::Mark { self.line(ev, names) } else { String::new() };
        let item = Item {
            start: ev.time(),
            name: self.strings.number(&ev.schema.probe()),
            text: self.strings.number(&text),
            stack: self.stack(ev, names),
            ..Item::default()
        };
        self.rows.of(Of::Thread(thread), kind, 0).push(&item);
    }

    /// The session was stopped, or runs again. Several streams say it.
    fn paused(&mut self, ev: &Event<'_>) {
        let time = ev.time();
        match self.pauses.last_mut() {
            Some(last) if last[1] == u64::MAX => last[1] = if ev.schema.id == P_RESUMED.id { time } else { last[1] },
            Some(last) if ev.schema.id == P_RESUMED.id => last[1] = last[1].max(time),
            Some(last) if time <= last[1] => {}
            _ if ev.schema.id == P_PAUSED.id => self.pauses.push([time, u64::MAX]),
            _ => self.pauses.push([self.begin.min(time), time]),
        }
    }

    /// The thread that an event is of.
    fn thread(&mut self, ev: &Event<'_>, names: &dyn Names) -> usize {
        let thread = self.processes.thread((ev.pid(), ev.tid()), names, ev.time());
        if !self.children.is_empty()
            && let Some((time, parent)) = self.children.remove(&ev.tid())
        {
            self.flows.push([time, parent as u64, thread as u64, 0]);
        }
        // trapline reports these, wherever the thread is.
        let is_report = [P_INFLIGHT.id, P_ATTACH.id, P_DETACH.id].contains(&ev.schema.id);
        if !self.runs.is_empty() && ev.schema.name != SWITCH && !is_report {
            self.runs(ev, thread);
        }
        thread
    }

    /// Whether there is no room for more events.
    fn is_full(&self) -> bool {
        let bytes = self.strings.bytes() + self.flows.len() * size_of::<[u64; 4]>();
        self.collected >= self.writer.most || bytes >= MOST_BYTES
    }

    /// When it begins.
    fn first(&self) -> u64 {
        if self.begin == u64::MAX { 0 } else { self.begin }
    }

    /// What it has, as a writer takes it: the rows in the order in which they are drawn.
    fn ordered(&self) -> Vec<&Row> {
        let is_known = |row: &&Row| row.kind != Kind::Files || self.curves.closes;
        let mut all: Vec<&Row> = self.rows.all().iter().chain(self.functions.view().rows()).filter(is_known).collect();
        all.sort_by_key(|row| {
            let (process, thread) = match row.of {
                Of::Cpu(_) => (0, 0),
                Of::Process(process) => (process + 1, 0),
                Of::Thread(thread) => (self.processes.of_thread(thread) + 1, thread + 1),
            };
            (process, thread, row.kind, row.depth)
        });
        all
    }
}

/// The arguments in a call of execve as strace shows it: `["ls", "-l"]` as `ls -l`, what has blanks in it in quotes.
fn arguments(line: &str) -> String {
    let (mut out, mut word, mut quoted, mut escaped, mut inside) = (String::new(), String::new(), false, false, false);
    for c in line.chars() {
        match c {
            _ if escaped => {
                escaped = false;
                word.push('\\');
                word.push(c);
            }
            '\\' if quoted => escaped = true,
            '"' => {
                quoted = !quoted;
                if inside && !quoted {
                    out += if out.is_empty() { "" } else { " " };
                    out += &if word.is_empty() || word.contains(' ') { format!("'{word}'") } else { word.clone() };
                }
                word.clear();
            }
            _ if quoted => word.push(c),
            '[' => inside = true,
            ']' if inside => break,
            '.' if inside && !out.ends_with("...") => out += ".",
            _ => {}
        }
    }
    out
}

impl View for Timeline {
    fn see(&mut self, ev: &Event<'_>) {
        self.functions.see(ev);
        self.taken(ev);
    }

    fn event(&mut self, ev: &Event<'_>, names: &dyn Names, out: &mut Vec<u8>) {
        self.stats.event(ev, names, out);
        if records::is_definition(ev.schema) {
            return;
        }
        if ev.schema.id == P_PAUSED.id || ev.schema.id == P_RESUMED.id {
            self.paused(ev);
            return self.functions.event(ev, names, out);
        }
        if self.is_full() {
            self.cut += 1;
            self.advance.leave_out(self.cut);
            return;
        }
        self.collected += 1;
        self.begin = self.begin.min(ev.start());
        self.last = self.last.max(ev.time());
        let thread = self.thread(ev, names);
        if !self.spans.is_empty() {
            self.spans.event(ev, names, thread);
        }
        if let Some(kind) = records::kind(ev.schema) {
            if kind == records::Kind::Lost {
                let item = Item { start: ev.time(), value: ev.value_of("records") as i64, ..Item::default() };
                self.rows.of(Of::Thread(thread), Kind::Lost, 0).push(&item);
            }
            self.functions.view_mut().thread = thread;
            return self.functions.event(ev, names, out);
        }
        let process = self.processes.of_thread(thread);
        let id = ev.schema.id;
        match ev.schema.class {
            Class::Syscall => self.call(ev, names, thread),
            Class::Process => {
                self.processes.happened(ev, names);
                if id == P_FORK.id {
                    let child = ev.value_of("tid") as u32;
                    self.children.insert(child, (ev.time(), thread));
                    self.runs.began(child);
                } else if id == P_EXIT.id {
                    self.runs.exited(ev.tid(), ev.time());
                }
                // Names of descriptors and of places in memory are no events of the program.
                if ![P_FD.id, P_MAP.id].contains(&id) {
                    self.mark(ev, names, thread, Kind::Mark);
                }
            }
            Class::Probe if matches!(ev.schema.name, "heap:malloc" | "heap:free") => self.heap(ev, names, process),
            Class::Probe if ev.schema.name.starts_with("profile:") => self.mark(ev, names, thread, Kind::Sample),
            Class::Probe if ev.is_span() && io_uring::is_operation(ev.schema) => self.operation(ev, names, process),
            Class::Probe if ev.schema.name == SWITCH => self.switch(ev, names),
            Class::Probe
                if matches!(ev.schema.name, "tracepoint:sched:sched_wakeup" | "tracepoint:sched:sched_waking") =>
            {
                match self.processes.known(beside(ev.tid(), ev.value_of("pid") as u32)) {
                    Some(woken) => self.flows.push([ev.time(), thread as u64, woken as u64, 1]),
                    None => self.mark(ev, names, thread, Kind::Mark),
                }
            }
            _ => self.mark(ev, names, thread, Kind::Mark),
        }
    }

    fn lost(&mut self, events: u64) {
        self.lost = Some(events);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.end_in_parts(out, &mut |_| {});
    }

    fn end_in_parts(&mut self, out: &mut Vec<u8>, spill: Spill<'_>) {
        self.functions.end(out);
        self.end_runs();
        self.spans.end(&self.processes, &mut self.rows, &mut self.strings);
        self.operations.end(&mut self.rows, self.spans.sets.len());
        match self.writer.write {
            How::Whole(write) => write(self, out),
            How::Parts(write) => write(self, out, spill),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_words() {
        for (line, words) in [
            (r#"execve("/bin/ls", ["ls", "-l"], 0x7ff /* 3 vars */) = 0"#, "ls -l"),
            (
                r#"execve("/a [\"x\"]", ["sh", "-c", "echo \"1\" 2", ""], [/* 0 vars */]) = 0"#,
                r#"sh -c 'echo \"1\" 2' ''"#,
            ),
            (r#"execveat(3, "", ["a"..., "b", ...], NULL, AT_EMPTY_PATH) = 0"#, "a... b..."),
            (r#"execve("/bin/ls", 0x7ffc, 0x7ffd) = 0"#, ""),
        ] {
            assert_eq!(arguments(line), words, "{line}");
        }
    }
}
