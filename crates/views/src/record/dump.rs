//! Captured memory as the lines of `hexdump -C`, each with a label for its argument.
//!
//! Invariant: only printable ASCII is written, whatever the bytes are.

use events::Tail;
use events::event::Cap;
use events::layout::Shape;
use events::message::{Cursor, Iov, Msg};

/// A hexadecimal digit.
pub fn digit(v: u8) -> u8 {
    b"0123456789abcdef"[usize::from(v & 15)]
}

/// Whether the tail holds nothing.
pub fn is_empty(t: &Tail<'_>) -> bool {
    match t.shape {
        Shape::One(_) | Shape::Many(_) => t.n == 0,
        Shape::Str | Shape::Bytes => t.bytes.is_empty(),
        Shape::Strv | Shape::Iov | Shape::Msg => t.bytes.starts_with(&[0, 0]),
    }
}

/// One line about the memory in place of its bytes.
pub fn note(label: &[u8], what: &str, out: &mut Vec<u8>) {
    note_parts(label, &[what], out);
}

fn note_parts(label: &[u8], what: &[&str], out: &mut Vec<u8>) {
    out.extend_from_slice(b"D ");
    out.extend_from_slice(label);
    out.extend_from_slice(b" (");
    what.iter().for_each(|w| out.extend_from_slice(w.as_bytes()));
    out.extend_from_slice(b")\n");
}

/// The bytes of a tail; of nested ones each piece under its own label (`argv[1]`, `msg.name`).
pub fn tail(label: &mut Vec<u8>, single: bool, t: &Tail<'_>, out: &mut Vec<u8>) {
    let mut c = Cursor::new(t.bytes);
    match t.shape {
        Shape::Str | Shape::Bytes | Shape::One(_) | Shape::Many(_) => lines(label, t.bytes, out),
        Shape::Strv => {
            let Ok(strings) = c.strv() else { return };
            for (i, (_, cap, s)) in strings.iter().enumerate() {
                within(label, "[", Some(i), |label| piece(label, cap, s, out));
            }
            if strings.n < strings.total {
                let mut all = itoa::Buffer::new();
                note_parts(label, &[all.format(strings.total), " in all"], out);
            }
        }
        Shape::Iov => {
            let Ok(v) = c.iov() else { return };
            iov(label, &v, out);
        }
        Shape::Msg => {
            let Ok(n) = c.u16() else { return };
            for i in 0..usize::from(n) {
                let Ok(m) = c.msg() else { return };
                match single {
                    true => message(label, &m, out),
                    false => within(label, "[", Some(i), |label| message(label, &m, out)),
                }
            }
        }
    }
}

/// Does something with a longer label: `part`, and an index that closes a bracket.
fn within(label: &mut Vec<u8>, part: &str, index: Option<usize>, f: impl FnOnce(&mut Vec<u8>)) {
    let n = label.len();
    label.extend_from_slice(part.as_bytes());
    if let Some(i) = index {
        label.extend_from_slice(itoa::Buffer::new().format(i).as_bytes());
        label.push(b']');
    }
    f(label);
    label.truncate(n);
}

fn piece(label: &[u8], cap: Cap, b: &[u8], out: &mut Vec<u8>) {
    match cap {
        Cap::None => {}
        Cap::Fault => note(label, "fault", out),
        Cap::Whole | Cap::Cut if b.is_empty() => note(label, "empty", out),
        Cap::Whole | Cap::Cut => lines(label, b, out),
    }
    if cap == Cap::Cut {
        note(label, "cut", out);
    }
}

fn iov(label: &mut Vec<u8>, v: &Iov<'_>, out: &mut Vec<u8>) {
    for (i, e) in v.iter().enumerate() {
        within(label, "[", Some(i), |label| piece(label, e.cap, e.bytes, out));
    }
}

fn message(label: &mut Vec<u8>, m: &Msg<'_>, out: &mut Vec<u8>) {
    within(label, ".header", None, |label| lines(label, m.header, out));
    if m.word(0) != 0 {
        within(label, ".name", None, |label| piece(label, m.cap(0), m.name, out));
    }
    within(label, ".iov", None, |label| match m.cap(1) {
        Cap::Fault => note(label, "fault", out),
        _ => iov(label, &m.iov, out),
    });
    if m.word(32) != 0 {
        within(label, ".control", None, |label| piece(label, m.cap(2), m.control, out));
    }
}

/// `bytes` as the lines of `hexdump -C`.
pub fn lines(label: &[u8], bytes: &[u8], out: &mut Vec<u8>) {
    for (i, row) in bytes.chunks(16).enumerate() {
        out.extend_from_slice(b"D ");
        out.extend_from_slice(label);
        out.push(b' ');
        let at = 16 * i as u64;
        out.extend((0..8).rev().map(|d| digit((at >> (4 * d)) as u8)));
        for k in 0..16 {
            out.extend_from_slice(if k % 8 == 0 { b"  " } else { b" " });
            match row.get(k) {
                Some(b) => out.extend_from_slice(&[digit(b >> 4), digit(*b)]),
                None => out.extend_from_slice(b"  "),
            }
        }
        out.extend_from_slice(b"  |");
        out.extend(row.iter().map(|&b| if (0x20..0x7f).contains(&b) { b } else { b'.' }));
        out.extend_from_slice(b"|\n");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn lines_are_those_of_hexdump() {
        let mut out = Vec::new();
        super::lines(b"buf", b"0123456789\x7f\n\xff\x1b~ z", &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "D buf 00000000  30 31 32 33 34 35 36 37  38 39 7f 0a ff 1b 7e 20  |0123456789....~ |\n\
             D buf 00000010  7a                                                |z|\n"
        );
    }
}
