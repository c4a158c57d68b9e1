//! Events that are not calls, each with a type of its own.

use super::members::{self as m, Member};
use super::sink::Values;
use super::{PROBE, arguments, call_name, head, int, key, moment, result, span, stacks, start, who};
use crate::names as constants;
use crate::values;
use crate::write::json as w;
use events::functions::{self, Kind};
use events::generated::flags;
use events::traces::own;
use events::walk::{Phase, Sink};
use events::{Event, Fmt, Int};

/// Writes the line of a `process:` event, without its newline.
pub fn line(ev: &Event<'_>, v: &mut Values<'_>) {
    head(v.out, ev.schema.name);
    match ev.schema.name {
        "inflight" => return in_flight(ev, v),
        _ => who(ev, v),
    }
    moment(v, &m::TIME, Some(ev.time()));
    members(ev, v);
    stacks(ev, v);
    v.out.push(b'}');
}

/// Writes the members that only events of trapline itself have, as one object.
pub fn object(ev: &Event<'_>, v: &mut Values<'_>) {
    v.out.push(b'{');
    match (ev.schema.name, Event::parse(ev.bytes_of("call")).ok().filter(Event::is_syscall)) {
        ("inflight", Some(call)) => {
            call_name(&call, v);
            arguments(&call, Phase::In, v);
        }
        ("inflight", None) => {}
        _ => members(ev, v),
    }
    v.out.push(b'}');
}

fn members(ev: &Event<'_>, v: &mut Values<'_>) {
    match ev.schema.name {
        "signal" => signal(ev, v),
        "stop" => signal_name(v, &m::SIGNAL, ev.value_of("signo")),
        "exit" => exit(ev, v),
        "fork" => fork(ev, v),
        "fd" => descriptor(ev, v),
        "map" => mapping(ev, v),
        _ => fields(ev, v),
    }
}

/// Writes the line of a probe that is not a call, without its newline.
pub fn probe(ev: &Event<'_>, v: &mut Values<'_>) {
    head(v.out, PROBE);
    key(v, &m::PROBE);
    w::string(v.out, ev.schema.name);
    who(ev, v);
    if ev.is_span() {
        span(ev, v);
    } else {
        moment(v, &m::MOMENT, Some(ev.time()));
    }
    arguments(ev, Phase::In, v);
    let kind = functions::kind(ev.schema);
    if ev.is_span() {
        result(ev, v);
    } else if let (true, Some(kind)) = (has_values(ev, v), kind) {
        let (found, none) = (ev.bytes_of("values"), &[][..]);
        let (entry, exit) = if kind == Kind::Entry { (found, none) } else { (none, found) };
        values::json(v.names.signature(ev.value_of("number") as u32), m::VALUES.name, entry, exit, v.out);
    }
    stacks(ev, v);
    v.out.push(b'}');
}

/// Whether it is an entry or exit of a function whose `values` have types.
#[inline]
pub fn has_values(ev: &Event<'_>, v: &Values<'_>) -> bool {
    let kind = functions::kind(ev.schema).filter(|k| matches!(k, Kind::Entry | Kind::Exit));
    kind.is_some() && v.names.signature(ev.value_of("number") as u32).is_some()
}

fn number(v: &mut Values<'_>, member: &Member, n: i64) {
    key(v, member);
    w::number(v.out, n);
}

fn flag(v: &mut Values<'_>, member: &Member, b: bool) {
    key(v, member);
    w::boolean(v.out, b);
}

/// A member of the event, in the form of its type.
fn typed(v: &mut Values<'_>, name: &str, value: u64, int: &Int) {
    w::key(v.out, name);
    v.value(false);
    v.int(value, int);
}

fn signal_name(v: &mut Values<'_>, member: &Member, signo: u64) {
    typed(v, member.name, signo, &Int { size: 4, signed: true, fmt: Fmt::Signal });
}

fn text(v: &mut Values<'_>, member: &Member, b: &[u8]) {
    if !b.is_empty() {
        key(v, member);
        w::bytes(v.out, b, false);
    }
}

/// A signal: the members of `siginfo_t` that are valid for its code (sigaction(2)).
fn signal(ev: &Event<'_>, v: &mut Values<'_>) {
    const CODES_OF_KERNEL: std::ops::Range<i64> = 1..0x80;
    let (signo, code, errno) = (ev.value_of("signo"), ev.value_of("code") as i64, ev.value_of("errno") as i64);
    signal_name(v, &m::SIGNAL, signo);
    key(v, &m::SI_CODE);
    match constants::si_code(signo, code) {
        Some(name) => w::string(v.out, name),
        None => w::number(v.out, code),
    }
    if errno != 0 {
        key(v, &m::SI_ERRNO);
        match events::errno::lookup(errno) {
            Some((name, _)) => w::string(v.out, name),
            None => w::number(v.out, errno),
        }
    }
    match signo {
        4 | 5 | 7 | 8 | 11 if code > 0 => address(ev, v, &m::SI_ADDR),
        17 if CODES_OF_KERNEL.contains(&code) => child(ev, v, code),
        29 if CODES_OF_KERNEL.contains(&code) => {
            let band = ev.value_of("pid") & 0xffff_ffff | ev.value_of("uid") << 32;
            number(v, &m::SI_BAND, band as i64);
            number(v, &m::SI_FD, ev.value_of("value") as i32 as i64);
        }
        31 if CODES_OF_KERNEL.contains(&code) => {
            address(ev, v, &m::SI_CALL_ADDR);
            number(v, &m::SI_SYSCALL, ev.value_of("nr") as i64);
            let arch = Fmt::Enum(&flags::T_AUDIT_ARCH);
            typed(v, m::SI_ARCH.name, ev.value_of("arch"), &Int { size: 4, signed: false, fmt: arch });
        }
        _ if code > 0 => {}
        _ => sender(ev, v, code),
    }
}

fn address(ev: &Event<'_>, v: &mut Values<'_>, member: &Member) {
    key(v, member);
    w::addr(v.out, ev.value_of("addr"));
}

/// Why a child's state changed: an exit status, or a signal.
fn child(ev: &Event<'_>, v: &mut Values<'_>, code: i64) {
    const CLD_EXITED: i64 = 1;
    number(v, &m::SI_PID, ev.value_of("pid") as i64);
    number(v, &m::SI_UID, ev.value_of("uid") as u32 as i64);
    match code {
        CLD_EXITED => number(v, &m::SI_STATUS, ev.value_of("status") as i64),
        _ => signal_name(v, &m::SI_STATUS, ev.value_of("status")),
    }
    number(v, &m::SI_UTIME, ev.value_of("utime") as i64);
    number(v, &m::SI_STIME, ev.value_of("stime") as i64);
}

/// Sent by a process (kill, sigqueue), or by a timer.
fn sender(ev: &Event<'_>, v: &mut Values<'_>, code: i64) {
    const SI_USER: i64 = 0;
    const SI_TIMER: i64 = -2;
    const SI_TKILL: i64 = -6;
    let (a, b) = if code == SI_TIMER { (&m::SI_TIMERID, &m::SI_OVERRUN) } else { (&m::SI_PID, &m::SI_UID) };
    number(v, a, ev.value_of("pid") as i64);
    number(v, b, ev.value_of("uid") as u32 as i64);
    if !matches!(code, SI_USER | SI_TKILL) {
        key(v, &m::SI_VALUE);
        w::hex(v.out, ev.value_of("value"));
    }
}

fn exit(ev: &Event<'_>, v: &mut Values<'_>) {
    match ev.value_of("signo") {
        0 => number(v, &m::CODE, ev.value_of("code") as i64),
        signo => {
            signal_name(v, &m::KILLED, signo);
            flag(v, &m::CORE, ev.value_of("core") != 0);
        }
    }
}

/// A member that is a thread or process of the trace.
fn thread(ev: &Event<'_>, v: &Values<'_>, value: u64) -> u64 {
    if v.names.origin(ev.tid()).is_some() { own(value as u32).into() } else { value }
}

fn fork(ev: &Event<'_>, v: &mut Values<'_>) {
    text(v, &m::CHILD_COMM, ev.bytes_of("comm"));
    let [pid, tid] = ["child", "tid"].map(|name| thread(ev, v, ev.value_of(name)) as i64);
    number(v, &m::CHILD, pid);
    number(v, &m::CHILD_TID, tid);
    key(v, &m::CLONE_FLAGS);
    int::names(v.out, &flags::T_CLONE_EXITSIG, ev.value_of("flags"));
}

fn descriptor(ev: &Event<'_>, v: &mut Values<'_>) {
    number(v, &m::FD, ev.value_of("fd") as i64);
    key(v, &m::FD_PATH);
    w::bytes(v.out, ev.bytes_of("path"), false);
    text(v, &m::DETAIL, ev.bytes_of("detail"));
    flag(v, &m::CLOEXEC, ev.value_of("flags") & 1 != 0);
}

/// A mapping: its build id in hexadecimal, and only where it is known; so are device and inode.
fn mapping(ev: &Event<'_>, v: &mut Values<'_>) {
    let id: String = ev.bytes_of("build_id").iter().map(|b| format!("{b:02x}")).collect();
    for (i, arg) in ev.schema.args.iter().enumerate() {
        match (arg.name, arg.ty) {
            ("build_id", _) if id.is_empty() => {}
            ("build_id", _) => {
                w::key(v.out, arg.name);
                w::string(v.out, &id);
            }
            ("dev" | "inode", _) if ev.value_of("inode") == 0 => {}
            (_, events::Type::Int(int)) => typed(v, arg.name, ev.arg(i), &int),
            _ => {
                w::key(v.out, arg.name);
                w::bytes(v.out, ev.bytes_of(arg.name), false);
            }
        }
    }
}

/// All fields by name, in the form of their types: for events without special treatment.
fn fields(ev: &Event<'_>, v: &mut Values<'_>) {
    for (i, arg) in ev.schema.args.iter().enumerate() {
        w::key(v.out, arg.name);
        v.value(false);
        match arg.ty {
            events::Type::Int(int) if int.fmt == Fmt::Tid => v.int(thread(ev, v, ev.arg(i)), &int),
            events::Type::Int(int) => v.int(ev.arg(i), &int),
            _ => v.put(|out| w::bytes(out, ev.bytes_of(arg.name), false)),
        }
    }
}

/// A call that has not ended: its name and its arguments as far as they are known.
fn in_flight(ev: &Event<'_>, v: &mut Values<'_>) {
    const AT_ATTACH: u64 = 1;
    const AT_DETACH: u64 = 2;
    let contained = Event::parse(ev.bytes_of("call")).ok().filter(Event::is_syscall);
    match &contained {
        Some(call) => call_name(call, v),
        None => {
            key(v, &m::CALL_IN_FLIGHT);
            w::null(v.out);
        }
    }
    who(ev, v);
    moment(v, &m::START, contained.as_ref().and_then(start));
    moment(v, &m::TIME, Some(ev.time()));
    match &contained {
        Some(call) => arguments(call, Phase::In, v),
        None => {
            key(v, &m::ARGS);
            v.out.extend_from_slice(b"{}");
        }
    }
    flag(v, &m::ATTACH, ev.value_of("attach") == AT_ATTACH);
    flag(v, &m::DETACH, ev.value_of("attach") == AT_DETACH);
    contained.iter().for_each(|call| stacks(call, v));
    v.out.push(b'}');
}
