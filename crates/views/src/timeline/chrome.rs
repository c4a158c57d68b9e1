//! Everything over time in Chrome's format ("Trace Event Format", the JSON object form), for what reads no other. Times are in microseconds,
//! with three decimals.
//!
//! ```text
//! X   functions and system calls of a thread, each inside of those around it; who is on a processor, as a thread of process 0
//! b e times on a processor and off it, spans, when the session was stopped: an id for each row
//! i   marks, samples with their stacks, places where events are missing       C   heap, descriptors       s f   who begins and wakes whom
//! ```

use super::columns::{Item, Row};
use super::words::{self, Words};
use super::{Kind, Of, Timeline, Writer, curves, flows};
use crate::profile::name;
use crate::spill::Spill;
use crate::write::json as w;
use crate::write::number;

/// Writes it.
pub const WRITER: Writer = Writer::parts(write);

/// The size of a part that is written at once, bytes.
const PART: usize = 1 << 16;

struct File<'t, 's, 'o> {
    timeline: &'t Timeline,
    words: &'t Words<'t>,
    stacks: Vec<&'t [u32]>,
    /// Something was written into the list of events.
    begun: bool,
    out: &'o mut Vec<u8>,
    spill: Spill<'s>,
}

/// Appends the file.
fn write(timeline: &Timeline, out: &mut Vec<u8>, spill: Spill<'_>) {
    out.extend_from_slice(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    let stacks = timeline.frames.stacks().collect();
    let words = &Words::new(timeline);
    let mut file = File { timeline, words, stacks, begun: false, out, spill };
    let rows = timeline.ordered();
    file.names(&rows);
    for [from, to] in &timeline.pauses {
        let to = (*to).min(timeline.last).max(*from);
        file.asynchronous(("stopped", "trapline"), (0, 0), 0, (*from, to), |_| {});
    }
    for (nth, row) in rows.iter().enumerate() {
        match row.kind {
            Kind::Heap | Kind::Files => file.curve(row),
            _ => row.items().for_each(|item| file.item(row, nth as u64 + 1, &item)),
        }
    }
    file.flows();
    let lost = words::lost(timeline, &rows);
    if let Some((_, elsewhere @ 1..)) = lost {
        file.event("i", ("events are missing", "trapline"), (0, 0), timeline.last, |out| {
            scope("g", out);
            args(out, |out| text("events", &elsewhere.to_string(), out));
        });
    }
    file.end(lost.map(|(all, _)| all));
}

/// Appends a time as microseconds.
fn micros(key: &str, ns: u64, out: &mut Vec<u8>) {
    w::key(out, key);
    number::dec(ns / 1000, out);
    let part = ns % 1000;
    out.extend([b'.'].into_iter().chain([part / 100, part / 10 % 10, part % 10].map(|digit| b'0' + digit as u8)));
}

/// Appends the scope of a mark: a thread (`t`), or everything (`g`).
fn scope(of: &str, out: &mut Vec<u8>) {
    w::key(out, "s");
    w::string(out, of);
}

/// Appends a member whose value is a text.
fn text(key: &str, value: &str, out: &mut Vec<u8>) {
    w::key(out, key);
    w::string(out, value);
}

/// Appends the member `args`, unless there are none.
fn args(out: &mut Vec<u8>, members: impl FnOnce(&mut Vec<u8>)) {
    let before = out.len();
    w::key(out, "args");
    out.push(b'{');
    let empty = out.len();
    members(out);
    if out.len() == empty { out.truncate(before) } else { out.push(b'}') }
}

impl File<'_, '_, '_> {
    /// Appends an event of a process and a thread.
    fn event(
        &mut self,
        kind: &str,
        (name, category): (&str, &str),
        of: (u32, u32),
        time: u64,
        more: impl FnOnce(&mut Vec<u8>),
    ) {
        self.object(kind, name, of, |out| {
            text("cat", category, out);
            micros("ts", time, out);
            more(out);
        });
    }

    fn object(&mut self, kind: &str, name: &str, (pid, tid): (u32, u32), more: impl FnOnce(&mut Vec<u8>)) {
        self.out.extend_from_slice(if std::mem::replace(&mut self.begun, true) { b",\n" } else { b"\n" });
        self.out.extend_from_slice(b"{\"ph\":");
        w::string(self.out, kind);
        text("name", name, self.out);
        for (key, id) in [("pid", pid), ("tid", tid)] {
            w::key(self.out, key);
            w::number(self.out, id);
        }
        more(self.out);
        self.out.push(b'}');
        if self.out.len() >= PART {
            (self.spill)(self.out);
        }
    }

    /// A time that may overlap others of its thread: `id` tells rows apart.
    fn asynchronous(
        &mut self,
        called: (&str, &str),
        of: (u32, u32),
        id: u64,
        (from, to): (u64, u64),
        more: impl FnOnce(&mut Vec<u8>),
    ) {
        let id = |out: &mut Vec<u8>| {
            w::key(out, "id");
            w::hex(out, id);
        };
        self.event("b", called, of, from, |out| {
            id(out);
            more(out);
        });
        self.event("e", called, of, to, id);
    }

    /// What processes, threads and processors are called.
    fn names(&mut self, rows: &[&Row]) {
        let timeline = self.timeline;
        let mut describe = |what: &str, of: (u32, u32), called: &str| {
            self.object("M", what, of, |out| args(out, |out| text("name", called, out)));
        };
        for p in timeline.processes.all() {
            describe("process_name", (p.pid, p.pid), &name::visible(&p.name));
        }
        for t in timeline.processes.threads() {
            describe("thread_name", (pid(timeline, t.process), t.tid), &name::visible(&t.name));
        }
        let mut cpus =
            rows.iter().filter_map(|row| if let Of::Cpu(cpu) = row.of { Some(cpu) } else { None }).peekable();
        if cpus.peek().is_some() {
            describe("process_name", (0, 0), "processors");
        }
        cpus.for_each(|cpu| describe("thread_name", (0, cpu), &format!("processor {cpu}")));
    }

    /// Process and thread of a row.
    fn of(&self, row: &Row) -> (u32, u32) {
        match row.of {
            Of::Cpu(cpu) => (0, cpu),
            Of::Process(process) => (pid(self.timeline, process), pid(self.timeline, process)),
            Of::Thread(thread) => {
                let thread = self.timeline.processes.threads().get(thread);
                thread.map_or((0, 0), |t| (pid(self.timeline, t.process), t.tid))
            }
        }
    }

    fn item(&mut self, row: &Row, nth: u64, item: &Item) {
        let (words, of) = (self.words, self.of(row));
        let (name, category) = words.name(row, item);
        let called = (&*name, category);
        let stack = if row.kind == Kind::Sample { self.stack(item.stack) } else { String::new() };
        let notes = |out: &mut Vec<u8>| {
            args(out, |out| {
                words.notes(row, item, &mut |what, note| text(what, note, out));
                if !stack.is_empty() {
                    text("stack", &stack, out);
                }
            });
        };
        match row.kind {
            Kind::Run | Kind::Span => {
                let times = (item.start, item.start.saturating_add(item.length));
                self.asynchronous(called, of, nth, times, notes);
            }
            Kind::Function | Kind::Call | Kind::Cpu => self.event("X", called, of, item.start, |out| {
                micros("dur", item.length, out);
                notes(out);
            }),
            _ => self.event("i", called, of, item.start, |out| {
                scope("t", out);
                notes(out);
            }),
        }
    }

    /// A stack on one line, the outermost function first.
    fn stack(&self, stack: u64) -> String {
        let frames = self.stacks.get((stack as usize).wrapping_sub(1)).copied().unwrap_or_default();
        let names: Vec<_> = frames.iter().rev().map(|frame| self.words.frame(*frame).0).collect();
        names.join(";")
    }

    fn curve(&mut self, row: &Row) {
        let (name, of) = (self.words.row(row), self.of(row));
        for (time, level) in curves::levels(self.timeline, row) {
            self.event("C", (&name, "probe"), of, time, |out| {
                args(out, |out| {
                    w::key(out, &name);
                    w::number(out, level);
                });
            });
        }
    }

    fn flows(&mut self) {
        for end in flows::ends(self.timeline) {
            let thread = self.timeline.processes.threads().get(end.thread);
            let of = thread.map_or((0, 0), |t| (pid(self.timeline, t.process), t.tid));
            // Both sides have one name.
            let name = if end.what.starts_with("start") { "starts" } else { "wakes" };
            self.event(if end.is_last { "f" } else { "s" }, (name, "sched"), of, end.time, |out| {
                w::key(out, "id");
                w::number(out, end.flow);
            });
        }
    }

    fn end(self, lost: Option<u64>) {
        self.out.extend_from_slice(b"\n]");
        let rest: Vec<_> = lost.map(|lost| ("lost", lost)).into_iter().chain(words::left_out(self.timeline)).collect();
        if !rest.is_empty() {
            w::key(self.out, "otherData");
            self.out.push(b'{');
            for (what, n) in rest {
                w::key(self.out, what);
                w::number(self.out, n);
            }
            self.out.push(b'}');
        }
        self.out.extend_from_slice(b"}\n");
    }
}

fn pid(timeline: &Timeline, process: usize) -> u32 {
    timeline.processes.all().get(process).map_or(0, |p| p.pid)
}
