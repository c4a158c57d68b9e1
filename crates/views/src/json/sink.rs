//! The values of an event as JSON, written as the walk meets them.
//!
//! Invariant: between two calls of a [`Sink`] method the buffer holds a valid prefix of a line. What can only be known after a
//! value has been written (that another one follows it, that a list was cut) is inserted before it afterwards; so the start of
//! the last value and of every open group is kept.

use crate::Options;
use crate::write::json as w;
use events::names::Names;
use events::walk::{Group, Sink, Text};
use events::{Fmt, Int};

/// Writes values into a line.
pub struct Values<'a> {
    /// The line.
    pub out: &'a mut Vec<u8>,
    /// What the user asked for.
    pub opts: &'a Options,
    /// Provides the names of descriptors.
    pub names: &'a dyn Names,
    /// The process that the event is about.
    pub pid: u32,
    /// Verbose fields are written.
    pub verbose: bool,
    /// Starts of the open groups; a buffer that is used again.
    stack: &'a mut Vec<usize>,
    /// Start of the last complete value.
    last: usize,
    /// Depth at which a value at exit is awaited.
    awaited: Option<usize>,
    /// The outermost array holds one number, which is written instead of it.
    single: bool,
    /// A field without a name awaits its value.
    nameless: bool,
}

impl<'a> Values<'a> {
    /// Writes to `out`; `stack` is a buffer for this sink's own use.
    pub fn new(
        out: &'a mut Vec<u8>,
        stack: &'a mut Vec<usize>,
        opts: &'a Options,
        names: &'a dyn Names,
        pid: u32,
    ) -> Self {
        stack.clear();
        let verbose = opts.verbose;
        Values { out, opts, names, pid, verbose, stack, last: 0, awaited: None, single: false, nameless: false }
    }

    /// Starts a value that is in no group. With `single`, an array of one number is written as the number.
    pub fn value(&mut self, single: bool) {
        self.stack.clear();
        self.awaited = None;
        self.nameless = false;
        self.single = single;
    }

    /// Writes one value that is no group.
    pub fn put(&mut self, f: impl FnOnce(&mut Vec<u8>)) {
        let start = self.start();
        f(self.out);
        self.done(start);
    }

    /// Where the next value starts, after the key that a field without a name still needs.
    fn start(&mut self) -> usize {
        if std::mem::take(&mut self.nameless) {
            w::key(self.out, "value");
        }
        self.out.len()
    }

    fn done(&mut self, start: usize) {
        self.last = start;
        if self.awaited == Some(self.stack.len()) {
            self.awaited = None;
            self.out.push(b'}');
        }
    }

    /// Whether the group being opened or closed is the array that is not shown.
    fn left_out(&self, g: Group) -> bool {
        self.single && self.stack.len() == 1 && g == Group::Array
    }

    fn insert(&mut self, at: usize, s: &[u8]) {
        self.out.splice(at..at, s.iter().copied());
    }

    fn object(&mut self, members: impl FnOnce(&mut Vec<u8>)) {
        self.put(|out| {
            out.push(b'{');
            members(out);
            out.push(b'}');
        });
    }
}

impl Sink for Values<'_> {
    fn verbose(&self) -> bool {
        self.verbose
    }

    fn string_limit(&self) -> Option<usize> {
        self.opts.string
    }

    #[inline]
    fn int(&mut self, v: u64, int: &Int) {
        let (opts, names, pid) = (self.opts, self.names, self.pid);
        self.put(|out| {
            super::int::write(out, v, int, opts, |fd| match int.fmt {
                Fmt::Registered => names.registered(fd),
                _ => names.fd(pid, fd),
            })
        });
    }

    #[inline]
    fn text(&mut self, b: &[u8], cut: bool, _: Text) {
        self.put(|out| w::bytes(out, b, cut));
    }

    fn addr(&mut self, a: u64) {
        self.put(|out| w::addr(out, a));
    }

    fn fault(&mut self, a: u64) {
        self.object(|out| {
            w::key(out, "addr");
            w::addr(out, a);
            w::key(out, "fault");
            w::boolean(out, true);
        });
    }

    fn open(&mut self, g: Group) {
        let start = self.start();
        self.stack.push(start);
        match g {
            Group::Struct => self.out.push(b'{'),
            Group::Array if self.left_out(g) => {}
            Group::Array | Group::Set { negated: false } => self.out.push(b'['),
            Group::Set { negated: true } => self.out.extend_from_slice(b"{\"not\":["),
        }
    }

    fn field(&mut self, name: &str) {
        match name.trim_start_matches('_') {
            "" => self.nameless = true,
            name => w::key(self.out, name),
        }
    }

    fn item(&mut self) {
        w::comma(self.out);
    }

    fn close(&mut self, g: Group, more: bool) {
        let left_out = self.left_out(g);
        let Some(start) = self.stack.pop() else { return };
        match g {
            Group::Struct => self.out.push(b'}'),
            Group::Array if left_out && self.out.len() == start => w::null(self.out),
            Group::Array if left_out => {}
            Group::Array | Group::Set { negated: false } => self.out.push(b']'),
            Group::Set { negated: true } => self.out.extend_from_slice(b"]}"),
        }
        if more && g == Group::Array {
            self.insert(start, b"{\"data\":");
            self.out.extend_from_slice(b",\"truncated\":true}");
        }
        self.done(start);
    }

    fn member(&mut self, name: &str) {
        w::comma(self.out);
        if name.starts_with(|c: char| c.is_ascii_digit()) {
            return self.out.extend_from_slice(name.as_bytes());
        }
        self.out.extend_from_slice(b"\"SIG");
        self.out.extend_from_slice(name.as_bytes());
        self.out.push(b'"');
    }

    fn count(&mut self, addr: u64, n: u64, more: bool, what: &str) {
        let what = match what {
            "var" => "vars",
            "entry" => "entries",
            other => other,
        };
        self.object(|out| {
            w::key(out, "addr");
            w::addr(out, addr);
            w::key(out, what);
            w::number(out, n);
            if more {
                w::key(out, "cut");
                out.extend_from_slice(b"true");
            }
        });
    }

    fn becomes(&mut self) {
        let at = self.last;
        self.insert(at, b"{\"in\":");
        self.out.extend_from_slice(b",\"out\":");
        self.last = at;
        self.awaited = Some(self.stack.len());
    }

    fn inet(&mut self, _family: u16, text: &str, field: &str) {
        if !field.is_empty() && std::mem::take(&mut self.nameless) {
            w::key(self.out, field);
        }
        self.put(|out| w::string(out, text));
    }
}
