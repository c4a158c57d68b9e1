//! `--as record`: the lines of the research tracers that trapline descends from. The format is docs/RECORD.md.
//!
//! ```text
//! E START CPU PID TID NAME NUMBER A0 A1 A2 A3 A4 A5         entry of a call: registers in hexadecimal
//! D ARGUMENT OFFSET  16 bytes  |ASCII|                      what was read at entry
//! X START END DURATION CPU PID TID NAME RESULT ERRNO        its exit: times in ns, the raw result in decimal
//! D ARGUMENT OFFSET  16 bytes  |ASCII|                      what was read at exit, and of an error its text
//! P TIME PID TID EVENT NAME=VALUE …                         anything else
//! S FIELD MODULE(FUNCTION+OFFSET) [ADDRESS]                 a frame of its stack, innermost first
//! T HOST TRACE                                              of several traces: where the events that follow were traced
//! ```
//!
//! Invariant: every line is printable ASCII without a control character; fields are separated by one space, and a field that
//! is not known is `-`. An event's lines follow each other.

mod dump;

use crate::names as constants;
use crate::options::{Options, Stacks};
use crate::{View, escape};
use events::event::Cap;
use events::layout::{CAP_INTERRUPTED, CAP_NO_RESULT, CAP_START_UNKNOWN};
use events::names::Names;
use events::types::{Fmt, Int, Type};
use events::{Event, Tail, traces};

/// The record view.
#[derive(Default)]
pub struct Record {
    /// The label of the lines being dumped; a buffer that is used again.
    label: Vec<u8>,
    /// Stacks are shown with names.
    stacks: bool,
    /// Of several traces, the one of the last event.
    trace: Option<usize>,
}

/// The view, with the names of functions in stacks unless they are fields of their own.
pub fn open(options: Options) -> Box<dyn View + Send> {
    Box::new(Record::new().stacks(options.stacks != Stacks::Fields))
}

impl Record {
    /// A view of everything that an event carries.
    pub fn new() -> Record {
        Record::default()
    }

    /// With names of the functions in stacks.
    pub fn stacks(mut self, named: bool) -> Record {
        self.stacks = named;
        self
    }
}

impl View for Record {
    fn event(&mut self, ev: &Event<'_>, names: &dyn Names, out: &mut Vec<u8>) {
        self.origin(ev, names, out);
        self.lines(ev, names, out);
        if self.stacks {
            crate::stack::records(&events::stacks::bearer(ev), names, out);
        }
    }
}

impl Record {
    /// Where the event was traced, if the one before was traced elsewhere.
    fn origin(&mut self, ev: &Event<'_>, names: &dyn Names, out: &mut Vec<u8>) {
        let Some(origin) = names.origin(ev.tid()) else { return };
        if self.trace.replace(traces::of(ev.tid())) == Some(traces::of(ev.tid())) {
            return;
        }
        out.push(b'T');
        for name in [&origin.host, &origin.trace] {
            space(out);
            quoted(name.as_bytes(), out);
        }
        out.push(b'\n');
    }

    fn lines(&mut self, ev: &Event<'_>, names: &dyn Names, out: &mut Vec<u8>) {
        if !ev.is_syscall() {
            return process(ev, names, out);
        }
        entry(ev, names, out);
        self.tails(ev, false, out);
        exit(ev, names, out);
        self.tails(ev, true, out);
        if let Some((_, text)) = ev.errno().and_then(events::errno::lookup) {
            self.label.clear();
            self.label.extend_from_slice(b"error");
            dump::lines(&self.label, text.as_bytes(), out);
        }
    }

    /// What was read from memory at entry, or at exit.
    fn tails(&mut self, ev: &Event<'_>, at_exit: bool, out: &mut Vec<u8>) {
        for (i, arg) in ev.schema.args.iter().enumerate() {
            let Some((ty, dir)) = ev.resolve(i) else { continue };
            let read = if at_exit { dir.reads_out() } else { dir.reads_in() };
            if !read || matches!(ty, Type::Int(_)) || ev.arg(i) == 0 {
                continue;
            }
            let Some(tail) = ev.tail(i, at_exit) else { continue };
            // One state is shown for both moments: where both were read it is that of entry.
            let second = at_exit && dir.reads_in();
            self.label.clear();
            self.label.extend_from_slice(arg.name.as_bytes());
            dump_tail(&mut self.label, ty, &tail, ev.cap(i), second, out);
        }
    }
}

fn dump_tail(label: &mut Vec<u8>, ty: &Type, tail: &Tail<'_>, cap: Cap, second: bool, out: &mut Vec<u8>) {
    let empty = dump::is_empty(tail);
    match cap {
        _ if second && empty => {}
        Cap::None => {}
        Cap::Fault if empty => dump::note(label, "fault", out),
        Cap::Whole if empty => dump::note(label, "empty", out),
        _ => {
            dump::tail(label, *ty == Type::Msghdr, tail, out);
            if cap == Cap::Cut && !second {
                dump::note(label, "cut", out);
            }
        }
    }
}

fn space(out: &mut Vec<u8>) {
    out.push(b' ');
}

fn decimal(out: &mut Vec<u8>, n: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
}

fn hex(out: &mut Vec<u8>, v: u64) {
    out.extend_from_slice(b"0x");
    let digits = (67 - (v | 1).leading_zeros()) / 4;
    for i in (0..digits).rev() {
        out.push(dump::digit((v >> (4 * i)) as u8));
    }
}

/// A number after a space, `-` where it is not known.
fn field(out: &mut Vec<u8>, n: Option<impl itoa::Integer>) {
    space(out);
    known(out, n);
}

/// A number, `-` where it is not known.
fn known(out: &mut Vec<u8>, n: Option<impl itoa::Integer>) {
    match n {
        Some(n) => decimal(out, n),
        None => out.push(b'-'),
    }
}

fn start(ev: &Event<'_>) -> Option<u64> {
    (ev.caps() & CAP_START_UNKNOWN == 0).then(|| ev.start())
}

fn who(ev: &Event<'_>, names: &dyn Names, out: &mut Vec<u8>) {
    field(out, Some(names.own(ev.pid())));
    field(out, Some(names.own(ev.tid())));
}

fn is_raw(ev: &Event<'_>) -> bool {
    ev.schema.name == "raw"
}

/// The call's name; `read@i386` of a 32-bit call, `syscall_0x…` where it has none.
fn name(ev: &Event<'_>, out: &mut Vec<u8>) {
    space(out);
    if !is_raw(ev) {
        return out.extend_from_slice(ev.schema.name.as_bytes());
    }
    match crate::json::i386_name(ev) {
        Some(name) => {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b"@i386");
        }
        None => {
            out.extend_from_slice(b"syscall_");
            hex(out, ev.value_of("nr") as u32 as u64);
        }
    }
}

fn number(ev: &Event<'_>) -> Option<u32> {
    if is_raw(ev) { Some(ev.value_of("nr") as u32) } else { ev.schema.x86_64 }
}

/// The six argument registers, as far as the event holds them, each after `separator`.
fn registers(ev: &Event<'_>, separator: u8, out: &mut Vec<u8>) {
    let first = if is_raw(ev) { 2 } else { 0 };
    for i in first..first + 6 {
        out.push(separator);
        match ev.schema.args.get(i).filter(|a| !events::stacks::is_stack(a)) {
            // Four bytes of the register are kept of an argument that is no wider.
            Some(_) if ev.layout.args[i].1 == 4 => hex(out, ev.arg(i) & 0xffff_ffff),
            Some(_) => hex(out, ev.arg(i)),
            None => out.push(b'-'),
        }
    }
}

fn entry(ev: &Event<'_>, names: &dyn Names, out: &mut Vec<u8>) {
    out.push(b'E');
    field(out, start(ev));
    field(out, ev.cpus().0);
    who(ev, names, out);
    name(ev, out);
    field(out, number(ev));
    registers(ev, b' ', out);
    out.push(b'\n');
}

fn exit(ev: &Event<'_>, names: &dyn Names, out: &mut Vec<u8>) {
    out.push(b'X');
    field(out, start(ev));
    field(out, Some(ev.time()));
    field(out, start(ev).map(|s| ev.time().saturating_sub(s)));
    field(out, ev.cpus().1);
    who(ev, names, out);
    name(ev, out);
    field(out, (ev.caps() & CAP_NO_RESULT == 0).then(|| ev.ret()));
    match ev.errno().map(|n| (n, events::errno::lookup(n))) {
        Some((_, Some((name, _)))) => {
            space(out);
            out.extend_from_slice(name.as_bytes());
        }
        other => field(out, other.map(|(n, _)| n)),
    }
    if ev.caps() & CAP_INTERRUPTED != 0 {
        out.extend_from_slice(b" interrupted");
    }
    out.push(b'\n');
}

/// An event that is not a call, on one line.
fn process(ev: &Event<'_>, names: &dyn Names, out: &mut Vec<u8>) {
    out.push(b'P');
    field(out, Some(ev.time()));
    who(ev, names, out);
    space(out);
    out.extend_from_slice(ev.schema.name.as_bytes());
    let args = ev.schema.args.iter().enumerate().take(events::registry::own_args(ev.schema));
    for (i, arg) in args {
        space(out);
        out.extend_from_slice(arg.name.as_bytes());
        out.push(b'=');
        match arg.ty {
            Type::Int(_) if traces::is_thread(ev.schema, arg.name) => decimal(out, names.own(ev.arg(i) as u32)),
            Type::Int(int) => value(ev.arg(i), &int, out),
            Type::Str(_) => quoted(ev.bytes_of(arg.name), out),
            _ if ev.schema.name == "inflight" => contained(ev.bytes_of(arg.name), out),
            _ => digits(ev.bytes_of(arg.name), out),
        }
    }
    if ev.is_span() {
        out.extend_from_slice(b" start=");
        known(out, start(ev));
        out.extend_from_slice(b" result=");
        known(out, (ev.caps() & CAP_NO_RESULT == 0).then(|| ev.ret()));
    }
    out.push(b'\n');
}

fn quoted(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    escape::c_string(text, out);
    out.push(b'"');
}

fn value(v: u64, int: &Int, out: &mut Vec<u8>) {
    match (int.fmt, constants::signal(v)) {
        (Fmt::Signal, Some(name)) => out.extend_from_slice(name.as_bytes()),
        (Fmt::Hex | Fmt::Addr | Fmt::Stack, _) => hex(out, v),
        _ if int.signed => decimal(out, v as i64),
        _ => decimal(out, v),
    }
}

/// Bytes as pairs of hexadecimal digits.
fn digits(bytes: &[u8], out: &mut Vec<u8>) {
    if bytes.is_empty() {
        out.push(b'-');
    }
    for b in bytes {
        out.extend([dump::digit(b >> 4), dump::digit(*b)]);
    }
}

/// A call within an event: name, start, number and registers.
fn contained(bytes: &[u8], out: &mut Vec<u8>) {
    let Some(call) = Event::parse(bytes).ok().filter(Event::is_syscall) else { return out.push(b'-') };
    let at = out.len();
    name(&call, out);
    // The name's own space.
    out.remove(at);
    out.extend_from_slice(b" start=");
    let at = out.len();
    field(out, start(&call));
    out.remove(at);
    out.extend_from_slice(b" args=");
    let at = out.len();
    registers(&call, b',', out);
    out.remove(at);
}
