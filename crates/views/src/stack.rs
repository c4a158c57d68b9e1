//! A stack with an event: as lines below it, on its own line, and as JSON.
//!
//! Lines are those of strace -k, with what strace does not know behind them:
//! ```text
//!  > /usr/lib/x86_64-linux-gnu/libc.so.6(__write+0x10) [0xf8350]
//!  > /usr/bin/echo() [0x60c4]
//!  > /usr/bin/app(flush) [0x2ea2] (inlined)
//!  > /usr/bin/app(main+0x1d) [0x2ea2] main.c:42 (guessed)
//! ```
//! An address in brackets is an offset in the file, or the address in the kernel. An inlined function has no code of its own, so no
//! offset.

pub mod counts;
mod event;

use crate::escape;
use crate::profile::{Frame, name};
use crate::write::json as w;
use crate::write::number::{dec, hex};
pub(crate) use event::frames;
pub use event::{below, instruction, members, records};

/// A frame and its address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place<'a> {
    /// The function, and where in the source.
    pub frame: Frame<'a>,
    /// Bytes from the beginning of the function, where that is known.
    pub offset: Option<u64>,
    /// The offset in the module's file, or the address in the kernel.
    pub address: Option<u64>,
}

/// A frame with names of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// The demangled name; empty where it is not known.
    pub function: String,
    /// The file that contains the code; empty where it is not known.
    pub module: String,
    /// The source file; empty where it is not known.
    pub file: String,
    /// The line in it.
    pub line: u32,
    /// Bytes from the beginning of the function.
    pub offset: Option<u64>,
    /// The offset in the file, or the address.
    pub address: Option<u64>,
    /// The compiler has put the function's code into that of the next frame.
    pub inlined: bool,
    /// The unwinder has guessed it.
    pub guessed: bool,
}

impl Named {
    /// Of a process, with what is known of it.
    pub fn of(f: &events::names::Frame<'_>) -> Named {
        Named {
            function: f.function.into(),
            module: f.module.into(),
            file: f.file.into(),
            line: f.line,
            offset: f.offset,
            address: f.address,
            inlined: f.inlined,
            guessed: f.guessed,
        }
    }

    /// The frame and its address.
    pub fn place(&self) -> Place<'_> {
        let Named { function, module, file, line, inlined, guessed, .. } = self;
        let (line, inlined, guessed) = (*line, *inlined, *guessed);
        let frame = Frame { function, module, file, line, inlined, guessed, ..Frame::default() };
        Place { frame, offset: self.offset, address: self.address }
    }
}

/// Appends a line for each frame, innermost first; with source files and lines (strace -kk) where `sources`.
pub fn text(stack: &[Place<'_>], sources: bool, out: &mut Vec<u8>) {
    stack.iter().for_each(|p| line(p, sources, out));
}

/// Appends the line of a frame.
pub fn line(p: &Place<'_>, sources: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(b" > ");
    place(p, sources, out);
    out.push(b'\n');
}

/// Appends what the line of a frame says.
fn place(p: &Place<'_>, sources: bool, out: &mut Vec<u8>) {
    let f = &p.frame;
    let module = if f.module.is_empty() { if f.kernel { "[kernel]" } else { "[unknown]" } } else { f.module };
    escape::name_in_brackets(module.as_bytes(), out);
    out.push(b'(');
    escape::name_in_brackets(f.function.as_bytes(), out);
    if let (Some(offset), false, false) = (p.offset, f.inlined, f.function.is_empty()) {
        out.extend_from_slice(b"+");
        address(offset, out);
    }
    out.push(b')');
    if let Some(a) = p.address {
        out.extend_from_slice(b" [");
        address(a, out);
        out.push(b']');
    }
    if sources && !f.file.is_empty() {
        out.push(b' ');
        escape::name_in_brackets(f.file.as_bytes(), out);
        if f.line > 0 {
            out.push(b':');
            dec(f.line.into(), out);
        }
    }
    for (set, word) in [(f.inlined, " (inlined)"), (f.guessed, " (guessed)")] {
        if set {
            out.extend_from_slice(word.as_bytes());
        }
    }
}

fn address(a: u64, out: &mut Vec<u8>) {
    if a == 0 { out.extend_from_slice(b"0x0") } else { hex(a, out) }
}

/// Appends a stack on one line without its end, folded: outermost first, separated by `;`, with the marks of
/// [`name::mark`].
pub fn fold(stack: &[Place<'_>], out: &mut Vec<u8>) {
    for (i, p) in stack.iter().rev().enumerate() {
        if i > 0 {
            out.push(b';');
        }
        folded(p, out);
    }
}

fn folded(p: &Place<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(name::without_separator(&name::function(&p.frame)).as_bytes());
    out.extend_from_slice(name::mark(&p.frame).as_bytes());
}

/// Appends a stack as an array of objects, innermost first; docs/JSON.md describes the members.
pub fn json(stack: &[Place<'_>], out: &mut Vec<u8>) {
    out.push(b'[');
    stack.iter().for_each(|p| object(p, out));
    out.push(b']');
}

/// Appends a frame as an object.
fn object(p: &Place<'_>, out: &mut Vec<u8>) {
    w::comma(out);
    out.push(b'{');
    let f = &p.frame;
    for (key, value) in [("function", f.function), ("module", f.module), ("file", f.file)] {
        if !value.is_empty() {
            member(key, out);
            w::string(out, value);
        }
    }
    if f.line > 0 {
        member("line", out);
        w::number(out, f.line);
    }
    for (key, value) in [("offset", p.offset), ("address", p.address)] {
        if let Some(value) = value {
            member(key, out);
            w::hex(out, value);
        }
    }
    for (key, set) in [("inlined", f.inlined), ("guessed", f.guessed), ("kernel", f.kernel)] {
        if set {
            member(key, out);
            w::boolean(out, true);
        }
    }
    out.push(b'}');
}

fn member(key: &str, out: &mut Vec<u8>) {
    w::key(out, key);
}
