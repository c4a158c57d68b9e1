//! What a call has read or written, as a dump below its line (`-e read=`, `-e write=`), in strace's form.

use crate::options::Options;
use events::event::{Cap, Event, Tail};
use events::layout::{CAP_NO_RESULT, Shape};
use events::message::{Cursor, Iov};

/// Calls that read from the descriptor in their first argument.
const READ: [&str; 9] =
    ["read", "pread64", "recvfrom", "readv", "preadv", "preadv2", "recvmsg", "recvmmsg", "mq_timedreceive"];
/// Calls that write to it.
const WRITE: [&str; 10] =
    ["write", "pwrite64", "sendto", "writev", "pwritev", "pwritev2", "vmsplice", "sendmsg", "sendmmsg", "mq_timedsend"];

/// Appends the dump of a call that was successful.
#[inline]
pub fn below(ev: &Event<'_>, opts: &Options, out: &mut Vec<u8>) {
    if opts.read.is_empty() && opts.write.is_empty() || ev.caps() & CAP_NO_RESULT != 0 || ev.errno().is_some() {
        return;
    }
    let (fd, name) = (ev.arg(0) as i32, ev.schema.name);
    let reads = READ.contains(&name) && opts.read.contains(fd);
    if reads || WRITE.contains(&name) && opts.write.contains(fd) {
        data(ev, reads, out);
    }
}

fn data(ev: &Event<'_>, reads: bool, out: &mut Vec<u8>) {
    let tail = |i: usize| ev.tail(i, reads).filter(|t| matches!(t.shape, Shape::Bytes | Shape::Iov | Shape::Msg));
    let Some((i, t)) = (0..events::registry::own_args(ev.schema)).find_map(|i| Some((i, tail(i)?))) else { return };
    // Of what is written all is shown, whatever was taken.
    let moved = if reads { ev.ret().max(0) as u64 } else { u64::MAX };
    match t.shape {
        Shape::Bytes if matches!(ev.cap(i), Cap::Whole | Cap::Cut) => lines(t.bytes, moved.min(ev.arg(2)), out),
        Shape::Iov => {
            if let Ok(v) = Cursor::new(t.bytes).iov() {
                buffers(&v, moved, out);
            }
        }
        Shape::Msg => messages(ev, &t, moved, out),
        _ => {}
    }
}

fn messages(ev: &Event<'_>, t: &Tail<'_>, moved: u64, out: &mut Vec<u8>) {
    let mut c = Cursor::new(t.bytes);
    let Ok(n) = c.u16() else { return };
    let several = ev.schema.name.ends_with("mmsg");
    let n = if several { u64::from(n).min(ev.ret().max(0) as u64) } else { 1 };
    for i in 0..n {
        let Ok(m) = c.msg() else { return };
        if several {
            out.extend_from_slice(format!(" = {} buffers in vector {i}\n", m.word(24)).as_bytes());
        }
        let moved = if several && moved != u64::MAX { m.msg_len.into() } else { moved };
        buffers(&m.iov, moved, out);
    }
}

/// The buffers that hold the bytes that were moved.
fn buffers(v: &Iov<'_>, moved: u64, out: &mut Vec<u8>) {
    let mut left = moved;
    for (i, e) in v.iter().enumerate() {
        let n = left.min(e.len);
        if n == 0 {
            continue;
        }
        left -= n;
        out.extend_from_slice(format!(" * {n} bytes in buffer {i}\n").as_bytes());
        if matches!(e.cap, Cap::Whole | Cap::Cut) {
            lines(e.bytes, n, out);
        }
    }
}

/// Sixteen bytes in a line, and what of `moved` bytes was not captured.
fn lines(bytes: &[u8], moved: u64, out: &mut Vec<u8>) {
    let bytes = &bytes[..bytes.len().min(usize::try_from(moved).unwrap_or(usize::MAX))];
    for (i, row) in bytes.chunks(16).enumerate() {
        out.extend_from_slice(format!(" | {:05x} ", 16 * i).as_bytes());
        for k in 0..16 {
            out.extend_from_slice(if k == 8 { b"  " } else { b" " });
            match row.get(k) {
                Some(b) => out.extend_from_slice(format!("{b:02x}").as_bytes()),
                None => out.extend_from_slice(b"  "),
            }
        }
        out.extend_from_slice(b"  ");
        out.extend(row.iter().map(|&b| if (0x20..0x7f).contains(&b) { b } else { b'.' }));
        out.resize(out.len() + 16 - row.len(), b' ');
        out.extend_from_slice(b" |\n");
    }
    let missing = moved - bytes.len() as u64;
    if missing > 0 {
        out.extend_from_slice(format!(" | {missing} bytes more were not captured\n").as_bytes());
    }
}
