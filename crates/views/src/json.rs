//! `--as json`: one JSON object per line and event. The schema is docs/JSON.md.
//!
//! Invariant: every line is one valid JSON object in UTF-8, whatever the event holds; members are in a fixed order.

mod int;
pub mod members;
mod process;
mod sink;

use crate::options::Stacks;
use crate::write::json as w;
use crate::{Options, View};
use events::layout::{CAP_32BIT, CAP_INTERRUPTED, CAP_NO_RESULT, CAP_START_UNKNOWN};
use events::names::Names;
use events::schema::Ret;
use events::types::{Fmt, Mem, Type};
use events::walk::{self, Phase, Sink};
use events::{Event, Int};
use members::{self as m, Member};
use sink::Values;

/// The version of the schema, the member `v` of every line.
pub const VERSION: u32 = 1;

/// The JSON view.
pub struct Json {
    opts: Options,
    stack: Vec<usize>,
    lost: u64,
}

impl Json {
    /// A view that uses the options `verbose`, `xlat` (numbers for names when raw), `raw`, `fd_names`, `comm` and `numbers`.
    pub fn new(opts: Options) -> Json {
        Json { opts, stack: Vec::new(), lost: 0 }
    }
}

impl View for Json {
    fn event(&mut self, ev: &Event<'_>, names: &dyn Names, out: &mut Vec<u8>) {
        let mut v = Values::new(out, &mut self.stack, &self.opts, names, ev.pid());
        if ev.is_syscall() {
            call(ev, &mut v)
        } else if ev.schema.class == events::Class::Probe {
            process::probe(ev, &mut v)
        } else {
            process::line(ev, &mut v)
        }
        out.push(b'\n');
    }

    fn lost(&mut self, events: u64) {
        self.lost = events;
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if self.lost > 0 {
            head(out, LOST);
            w::key(out, m::LOST.name);
            w::number(out, self.lost);
            out.extend_from_slice(b"}\n");
        }
    }
}

/// Appends a text as a JSON string that is safe to show on a terminal.
pub fn string(text: &str, out: &mut Vec<u8>) {
    w::string(out, text);
}

/// The type of the last line, where events were lost.
pub const LOST: &str = "lost";

/// The members that every line starts with.
fn head(out: &mut Vec<u8>, kind: &str) {
    out.push(b'{');
    w::key(out, m::VERSION.name);
    w::number(out, VERSION);
    w::key(out, m::TYPE.name);
    w::string(out, kind);
}

/// Begins a member of a line.
#[inline]
fn key(v: &mut Values<'_>, member: &Member) {
    w::key(v.out, member.name);
}

/// The thread that the event is about.
#[inline]
fn who(ev: &Event<'_>, v: &mut Values<'_>) {
    if let Some(origin) = v.names.origin(ev.tid()) {
        key(v, &m::HOST);
        w::string(v.out, &origin.host);
        key(v, &m::TRACE);
        w::string(v.out, &origin.trace);
    }
    key(v, &m::PID);
    w::number(v.out, v.names.own(ev.pid()));
    key(v, &m::TID);
    w::number(v.out, v.names.own(ev.tid()));
    if v.opts.comm
        && let Some(comm) = v.names.comm(ev.tid())
    {
        key(v, &m::COMM);
        w::bytes(v.out, comm, false);
    }
}

/// A moment of the monotonic clock, null where it is not known.
fn moment(v: &mut Values<'_>, member: &Member, ns: Option<u64>) {
    key(v, member);
    match ns {
        Some(ns) => w::number(v.out, ns),
        None => w::null(v.out),
    }
}

fn call(ev: &Event<'_>, v: &mut Values<'_>) {
    head(v.out, CALL);
    call_name(ev, v);
    who(ev, v);
    span(ev, v);
    arguments(ev, Phase::Both, v);
    result(ev, v);
    stacks(ev, v);
    v.out.push(b'}');
}

/// `kstack` and `ustack`, with names.
fn stacks(ev: &Event<'_>, v: &mut Values<'_>) {
    if v.opts.stacks != Stacks::Fields {
        crate::stack::members(ev, v.names, v.out);
    }
}

/// When and where a span began and ended.
#[inline]
fn span(ev: &Event<'_>, v: &mut Values<'_>) {
    moment(v, &m::START, start(ev));
    moment(v, &m::END, Some(ev.time()));
    let (at_entry, at_exit) = ev.cpus();
    for (member, cpu) in [(&m::CPU, at_entry), (&m::CPU_EXIT, at_exit)] {
        if let Some(cpu) = cpu {
            key(v, member);
            w::number(v.out, cpu);
        }
    }
}

#[inline]
fn start(ev: &Event<'_>) -> Option<u64> {
    (ev.caps() & CAP_START_UNKNOWN == 0).then(|| ev.start())
}

/// `name`; and number and architecture where the name is not enough.
#[inline]
fn call_name(ev: &Event<'_>, v: &mut Values<'_>) {
    key(v, &m::CALL);
    if ev.schema.name != RAW {
        w::string(v.out, ev.schema.name);
        if let (true, Some(nr)) = (v.opts.numbers, ev.schema.x86_64) {
            key(v, &m::NR);
            w::number(v.out, nr);
        }
        return;
    }
    let nr = ev.value_of("nr") as u32;
    match i386_name(ev) {
        Some(name) => w::string(v.out, name),
        None => {
            v.out.extend_from_slice(b"\"syscall_");
            let at = v.out.len();
            w::hex(v.out, nr.into());
            // The number's own opening quote.
            v.out.remove(at);
        }
    }
    key(v, &m::NR);
    w::number(v.out, nr);
    key(v, &m::ARCH);
    let arch = Fmt::Enum(&events::generated::flags::T_AUDIT_ARCH);
    v.value(false);
    v.int(ev.value_of("arch"), &Int { size: 4, signed: false, fmt: arch });
}

/// The type of lines of calls.
pub const CALL: &str = "syscall";
/// The type of lines of other probes.
pub const PROBE: &str = "probe";

/// The schema of calls that no table knows, and of 32-bit ones.
const RAW: &str = "raw";

/// The name of a 32-bit call, which has no schema of its own.
pub(crate) fn i386_name(ev: &Event<'_>) -> Option<&'static str> {
    let nr = ev.value_of("nr") as u32;
    let name = *events::generated::I386.get(usize::try_from(nr).ok()?)?;
    (ev.caps() & CAP_32BIT != 0 && !name.is_empty()).then_some(name)
}

/// Appends what an event says, as one object: the member `args`, or of trapline's own events the members that only they have.
pub(crate) fn details(ev: &Event<'_>, opts: &Options, names: &dyn Names, stack: &mut Vec<usize>, out: &mut Vec<u8>) {
    let v = &mut Values::new(out, stack, opts, names, ev.pid());
    match ev.schema.class {
        events::Class::Syscall => object(ev, Phase::Both, v),
        events::Class::Probe => object(ev, Phase::In, v),
        events::Class::Process => process::object(ev, v),
    }
}

/// `args`: those that exist, by name, in the order of the registers.
#[inline]
fn arguments(ev: &Event<'_>, phase: Phase, v: &mut Values<'_>) {
    key(v, &m::ARGS);
    object(ev, phase, v);
}

#[inline]
fn object(ev: &Event<'_>, phase: Phase, v: &mut Values<'_>) {
    v.out.push(b'{');
    let n = ev.schema.args.len();
    let first = if ev.schema.name == RAW { 2 } else { 0 };
    let typed = process::has_values(ev, v);
    v.verbose = v.opts.is_verbose(ev.schema);
    let raw = v.opts.is_raw(ev.schema);
    for i in (first..n).filter(|i| !typed || ev.schema.args[*i].name != "values") {
        let Some((ty, _)) = ev.resolve(i) else { continue };
        if matches!(ty, Type::Int(Int { fmt: Fmt::Stack, .. })) {
            continue;
        }
        w::key(v.out, ev.schema.args[i].name);
        if raw {
            w::hex(v.out, ev.arg(i));
            continue;
        }
        if v.opts.hides(ev.schema, ty) {
            w::addr(v.out, ev.arg(i));
            continue;
        }
        v.value(matches!(ty, Type::Ptr { elem: Mem::Int(_), len: None }));
        walk::arg(ev, i, phase, v);
    }
    v.out.push(b'}');
}

/// `ret` and `errno`, and the flags about them.
#[inline]
fn result(ev: &Event<'_>, v: &mut Values<'_>) {
    key(v, &m::RET);
    let unfinished = ev.caps() & CAP_NO_RESULT != 0;
    let errno = ev.errno();
    match errno {
        _ if unfinished => w::null(v.out),
        Some(_) => v.out.extend_from_slice(b"-1"),
        None => {
            let int = match ev.ret_type() {
                Ret::Int(int) => int,
                Ret::Never => walk::DEC,
            };
            v.value(false);
            v.int(ev.ret() as u64, &int);
        }
    }
    if ev.is_syscall() || errno.is_some() {
        key(v, &m::ERRNO);
        match errno.map(|n| (n, events::errno::lookup(n))) {
            None => w::null(v.out),
            Some((_, Some((name, _)))) => w::string(v.out, name),
            Some((n, None)) => w::number(v.out, n),
        }
    }
    for (set, member) in [(unfinished, &m::UNFINISHED), (ev.caps() & CAP_INTERRUPTED != 0, &m::INTERRUPTED)] {
        if set {
            key(v, member);
            w::boolean(v.out, true);
        }
    }
}
