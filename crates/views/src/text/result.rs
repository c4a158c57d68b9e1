//! What follows the ` = `.

use super::sink::TextSink;
use super::{Colour, coloured, quirks};
use crate::names as constants;
use crate::options::Options;
use crate::write::number::{dec, hex, octal, signed};
use events::names::Names;
use events::schema::Ret;
use events::walk::Sink;
use events::{Event, Fmt, Int};

/// Result, error, and what a call's result means.
#[inline]
pub fn write(ev: &Event<'_>, names: &dyn Names, opts: &Options, out: &mut Vec<u8>) {
    if let Some(e) = ev.errno() {
        return coloured(opts, Colour::Error, out, |o| error(e, o));
    }
    let ret = ev.ret() as u64;
    if opts.is_raw(ev.schema) {
        return hex(ret, out);
    }
    let mut sink = TextSink::new(out, opts, names, ev);
    let ty = ev.ret_type();
    match ty {
        Ret::Never => signed(ev.ret(), sink.out),
        // What a switch returns is explained, as strace does for F_GETFL: `0x8002 (flags O_RDWR|O_LARGEFILE)`.
        Ret::Int(int) => value(ret, &int, || ty != ev.schema.ret, &mut sink),
    }
    if !opts.is_opaque(ev.schema) {
        quirks::after_result(ev, &mut sink);
    }
}

fn error(e: i64, out: &mut Vec<u8>) {
    if events::errno::is_restart(e) {
        out.extend_from_slice(b"? ");
    } else {
        out.extend_from_slice(b"-1 ");
    }
    match events::errno::lookup(e) {
        Some((name, text)) => {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b" (");
            out.extend_from_slice(text.as_bytes());
            out.push(b')');
        }
        None => {
            out.extend_from_slice(b"ERRNO_");
            dec(e as u64, out);
        }
    }
}

fn value(ret: u64, int: &Int, switched: impl Fn() -> bool, sink: &mut TextSink<'_>) {
    let v = int.fit(ret);
    match int.fmt {
        Fmt::Addr | Fmt::Hex | Fmt::Stack => hex(ret, sink.out),
        Fmt::Oct => octal(v, sink.out),
        Fmt::Fd | Fmt::Dirfd => sink.int(v, int),
        Fmt::Flags(t) => {
            hex(v, sink.out);
            let zero_named = t.entries().any(|e| e.value == 0);
            if v != 0 || zero_named {
                sink.raw(match switched() {
                    true if t.name.contains("seal") => " (seals ",
                    true => " (flags ",
                    false => " (",
                });
                sink.int(v, int);
                sink.out.push(b')');
            }
        }
        Fmt::Enum(t) => {
            signed(ret as i64, sink.out);
            if let Some(name) = constants::enumerated(t, v, int.size) {
                sink.raw(" (");
                sink.raw(name);
                sink.out.push(b')');
            }
        }
        Fmt::Signal => {
            signed(ret as i64, sink.out);
            if let Some(name) = constants::signal(ret) {
                sink.raw(" (");
                sink.raw(name);
                sink.out.push(b')');
            }
        }
        _ if int.signed || int.size < 8 => signed(Int { signed: true, ..*int }.fit(ret) as i64, sink.out),
        _ => dec(ret, sink.out),
    }
}
