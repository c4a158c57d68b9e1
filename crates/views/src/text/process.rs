//! Lines of `process:` events: signals, stops, ends.

use super::{Colour, coloured};
use crate::names as constants;
use crate::options::Options;
use crate::write::number::{self, dec, hex, signed};
use events::Event;
use events::traces::own;

/// Writes the line of a signal, stop, exit or superseded event.
pub fn line(ev: &Event<'_>, opts: &Options, out: &mut Vec<u8>) {
    match ev.schema.name {
        "signal" => coloured(opts, Colour::Signal, out, |o| signal(ev, o)),
        "stop" => coloured(opts, Colour::Signal, out, |o| {
            o.extend_from_slice(b"--- stopped by ");
            signal_name(ev.value_of("signo"), o);
            o.extend_from_slice(b" ---");
        }),
        "exit" => coloured(opts, Colour::Faint, out, |o| exit(ev, o)),
        "superseded" => coloured(opts, Colour::Faint, out, |o| {
            o.extend_from_slice(b"+++ superseded by execve in pid ");
            dec(own(ev.value_of("by") as u32).into(), o);
            o.extend_from_slice(b" +++");
        }),
        _ => {}
    }
}

fn signal_name(n: u64, out: &mut Vec<u8>) {
    match constants::signal(n) {
        Some(name) => out.extend_from_slice(name.as_bytes()),
        None => signed(n as i64, out),
    }
}

fn exit(ev: &Event<'_>, out: &mut Vec<u8>) {
    let sig = ev.value_of("signo");
    if sig == 0 {
        out.extend_from_slice(b"+++ exited with ");
        dec(ev.value_of("code"), out);
    } else {
        out.extend_from_slice(b"+++ killed by ");
        signal_name(sig, out);
        if ev.value_of("core") != 0 {
            out.extend_from_slice(b" (core dumped)");
        }
    }
    out.extend_from_slice(b" +++");
}

/// The fields that a siginfo has for its signal and code (sigaction(2)).
fn signal(ev: &Event<'_>, out: &mut Vec<u8>) {
    let v = |name: &str| ev.value_of(name);
    let (sig, code) = (v("signo"), v("code") as i64);
    out.extend_from_slice(b"--- ");
    signal_name(sig, out);
    out.extend_from_slice(b" {si_signo=");
    signal_name(sig, out);
    out.extend_from_slice(b", si_code=");
    match constants::si_code(sig, code) {
        Some(name) => out.extend_from_slice(name.as_bytes()),
        None => signed(code, out),
    }
    if v("errno") != 0 {
        out.extend_from_slice(b", si_errno=");
        match events::errno::lookup(v("errno") as i64) {
            Some((name, _)) => out.extend_from_slice(name.as_bytes()),
            None => signed(v("errno") as i64, out),
        }
    }
    details(ev, sig, code, out);
    out.extend_from_slice(b"} ---");
}

fn field(name: &str, v: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b", ");
    out.extend_from_slice(name.as_bytes());
    out.push(b'=');
    signed(v as i64, out);
}

fn details(ev: &Event<'_>, sig: u64, code: i64, out: &mut Vec<u8>) {
    const SI_KERNEL: i64 = 0x80;
    const SI_USER: i64 = 0;
    const SI_QUEUE: i64 = -1;
    const SI_TIMER: i64 = -2;
    const SI_TKILL: i64 = -6;
    const CHLD: u64 = 17;
    const SYS: u64 = 31;
    const POLL: u64 = 29;
    let v = |name: &str| ev.value_of(name);
    let addr = |name: &str, v: u64, out: &mut Vec<u8>| {
        out.extend_from_slice(b", ");
        out.extend_from_slice(name.as_bytes());
        out.push(b'=');
        if v == 0 { out.extend_from_slice(b"NULL") } else { hex(v, out) }
    };
    let sender = |out: &mut Vec<u8>| {
        field("si_pid", v("pid"), out);
        field("si_uid", v("uid"), out);
    };
    match (sig, code) {
        (_, SI_USER | SI_TKILL) => sender(out),
        (CHLD, c) if c > 0 => {
            sender(out);
            out.extend_from_slice(b", si_status=");
            match code {
                1 => signed(v("status") as i64, out), // CLD_EXITED
                _ => signal_name(v("status"), out),
            }
            field("si_utime", v("utime"), out);
            number::ticks(v("utime"), out);
            field("si_stime", v("stime"), out);
            number::ticks(v("stime"), out);
        }
        (_, SI_KERNEL) if !matches!(sig, 4 | 5 | 7 | 8 | 11) => {}
        (4 | 5 | 7 | 8 | 11, c) if c > 0 => addr("si_addr", v("addr"), out),
        (SYS, c) if c > 0 => {
            addr("si_call_addr", v("addr"), out);
            out.extend_from_slice(b", si_syscall=");
            match events::registry::by_number(v("nr")) {
                Some(s) => {
                    out.extend_from_slice(b"__NR_");
                    out.extend_from_slice(s.name.as_bytes());
                }
                None => signed(v("nr") as i64, out),
            }
            out.extend_from_slice(b", si_arch=");
            match v("arch") {
                0xc000_003e => out.extend_from_slice(b"AUDIT_ARCH_X86_64"),
                0x4000_0003 => out.extend_from_slice(b"AUDIT_ARCH_I386"),
                a => hex(a, out),
            }
        }
        (POLL, c) if c > 0 => field("si_band", (v("uid") << 32) | (v("pid") & 0xffff_ffff), out),
        (_, SI_TIMER) => {
            out.extend_from_slice(b", si_timerid=");
            hex(v("pid"), out);
            field("si_overrun", v("uid"), out);
            field("si_int", v("value") as i32 as i64 as u64, out);
            addr("si_ptr", v("value"), out);
        }
        (_, c) if c <= SI_QUEUE => {
            sender(out);
            field("si_int", v("value") as i32 as i64 as u64, out);
            addr("si_ptr", v("value"), out);
        }
        _ => {}
    }
}
