//! The short list of calls whose text is not just their arguments in order.

use super::sink::TextSink;
use events::Event;
use events::generated::structs;
use events::walk::{self, Phase};

/// Calls whose in+out arguments are shown as they were at entry, with what came back after the result.
fn splits(name: &str) -> bool {
    matches!(name, "poll" | "ppoll" | "select" | "pselect6")
}

/// Which captures the arguments of this call are shown from.
#[inline]
pub fn phase(ev: &Event<'_>) -> Phase {
    if splits(ev.schema.name) { Phase::In } else { Phase::Both }
}

/// Writes the arguments of calls with an order or a form of their own; false for all others.
#[inline]
pub fn arguments(ev: &Event<'_>, sink: &mut TextSink<'_>) -> bool {
    match ev.schema.name {
        "clone" => clone(ev, sink),
        "clone3" => {
            walk::arg(ev, 0, Phase::Both, sink);
            clone3_parent_tid(ev, sink);
            sink.raw(", ");
            walk::arg(ev, 1, Phase::Both, sink);
        }
        // Random bytes are no text.
        "getrandom" => {
            let bytes = ev.tail(0, true).map(|t| t.bytes).filter(|b| !b.is_empty());
            match bytes {
                Some(b) => {
                    sink.raw("\"");
                    crate::escape::hex_string(b, sink.out);
                    sink.raw(if ev.cap(0) == events::Cap::Cut { "\"..." } else { "\"" });
                }
                None => {
                    walk::arg(ev, 0, Phase::Both, sink);
                }
            }
            for i in [1, 2] {
                sink.raw(", ");
                walk::arg(ev, i, Phase::Both, sink);
            }
        }
        "execve" | "execveat" if ev.arguments_are_gone() => sink.raw("?"),
        "rt_sigreturn" => {
            sink.raw("{mask=");
            walk::arg(ev, 0, Phase::Both, sink);
            sink.raw("}");
        }
        _ => return false,
    }
    true
}

/// clone(child_stack=…, flags=…, parent_tid=…, tls=…, child_tidptr=…), each where the flags give it a meaning
/// (`include/uapi/linux/sched.h`).
fn clone(ev: &Event<'_>, sink: &mut TextSink<'_>) {
    const CHILD_CLEARTID: u64 = 0x20_0000;
    const CHILD_SETTID: u64 = 0x100_0000;
    const PARENT_SETTID: u64 = 0x10_0000;
    const SETTLS: u64 = 0x8_0000;
    const PIDFD: u64 = 0x1000;
    let flags = ev.value_of("flags");
    let mut any = false;
    let wanted = [
        ("child_stack", true),
        ("flags", true),
        ("parent_tid", flags & (PARENT_SETTID | PIDFD) != 0),
        ("tls", flags & SETTLS != 0),
        ("child_tidptr", flags & (CHILD_SETTID | CHILD_CLEARTID) != 0),
    ];
    for (name, _) in wanted.iter().filter(|w| w.1) {
        let Some(i) = ev.schema.arg(name) else { continue };
        if any {
            sink.raw(", ");
        }
        any = true;
        sink.raw(name);
        sink.raw("=");
        walk::arg(ev, i, Phase::Both, sink);
    }
}

/// What the kernel stored through `parent_tid` is the new thread's id, which is also the result.
fn clone3_parent_tid(ev: &Event<'_>, sink: &mut TextSink<'_>) {
    const PARENT_SETTID: u64 = 0x10_0000;
    let flags = ev.tail(0, false).and_then(|t| Some(u64::from_le_bytes(t.bytes.get(..8)?.try_into().ok()?)));
    if ev.ret() > 0 && flags.is_some_and(|f| f & PARENT_SETTID != 0) {
        sink.raw(" => {parent_tid=[");
        sink.raw(&ev.ret().to_string());
        sink.raw("]}");
    }
}

/// Writes what is known only when the call has returned.
#[inline]
pub fn after_result(ev: &Event<'_>, sink: &mut TextSink<'_>) {
    match ev.schema.name {
        "poll" | "ppoll" => {
            if ev.ret() == 0 {
                return sink.raw(" (Timeout)");
            }
            sink.raw(" ([");
            poll_events(ev, sink);
            sink.raw("]");
            left(ev, sink);
            sink.raw(")");
        }
        "select" | "pselect6" => {
            if ev.ret() == 0 {
                return sink.raw(" (Timeout)");
            }
            sink.raw(" (");
            let mut any = false;
            for (i, word) in [(1, "in"), (2, "out"), (3, "except")] {
                let ready = ev.tail(i, true).is_some_and(|t| t.bytes.iter().any(|&b| b != 0));
                if ready {
                    sink.raw(if any { ", " } else { "" });
                    any = true;
                    sink.raw(word);
                    sink.raw(" ");
                    walk::arg(ev, i, Phase::Out, sink);
                }
            }
            left(ev, sink);
            sink.raw(")");
        }
        _ => {}
    }
}

/// The descriptors of a poll that something happened on.
fn poll_events(ev: &Event<'_>, sink: &mut TextSink<'_>) {
    let Some(t) = ev.tail(0, true) else { return };
    let mut any = false;
    let size = usize::from(structs::S_POLLFD.size);
    for p in t.bytes.chunks_exact(size).filter(|p| p[6] != 0 || p[7] != 0) {
        sink.raw(if any { ", {fd=" } else { "{fd=" });
        any = true;
        sink.raw(&i32::from_le_bytes([p[0], p[1], p[2], p[3]]).to_string());
        sink.raw(", revents=");
        if let Some(f) = structs::S_POLLFD.fields.iter().find(|f| f.name == "events") {
            walk::mem(&f.mem, &p[6..8], sink);
        }
        sink.raw("}");
    }
}

/// The time that was left, where the kernel has changed it.
fn left(ev: &Event<'_>, sink: &mut TextSink<'_>) {
    let Some(i) = ev.schema.args.iter().position(|a| matches!(a.name, "tvp" | "tsp" | "timeout" | "tmo_p")) else {
        return;
    };
    if ev.arg(i) != 0 && ev.tail(i, true).is_some_and(|t| t.n > 0) {
        sink.raw(", left ");
        walk::arg(ev, i, Phase::Out, sink);
    }
}
