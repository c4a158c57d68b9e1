//! Events for tests: a builder that computes an event's bytes from its schema, as a backend would.
//!
//! Invariant: what [`Call::encode`] returns parses. Names that the schema does not know are a bug of the test and panic.

#![allow(dead_code, missing_docs)]

pub mod cases;
mod lives;
pub mod memory;

use events::encode::{self, Fixed};
use events::event::Cap;
use events::layout::Shape;
use events::schema::{Class, MAX_ARGS, Schema};
use events::{Mem, Type};
pub use memory::{Iov, Message, Side};

/// What an argument points to.
#[derive(Clone, Debug)]
enum Data {
    /// Bytes in memory: a string, a buffer, a struct, elements.
    Bytes(Vec<u8>),
    Strings {
        total: Option<u16>,
        items: Vec<(Cap, Vec<u8>)>,
    },
    Iov(Vec<Iov>),
    Messages(Vec<Message>),
}

/// An event in the making.
#[derive(Clone, Debug)]
pub struct Call {
    schema: &'static Schema,
    fixed: Fixed,
    args: [u64; MAX_ARGS],
    set: [bool; MAX_ARGS],
    data: Vec<(usize, Side, Data)>,
}

impl Call {
    /// A system call by name.
    pub fn new(name: &str) -> Call {
        Call::of(events::registry::by_name(name).unwrap_or_else(|| panic!("no call {name}")))
    }

    /// A `process:` event by name.
    pub fn process(name: &str) -> Call {
        let found = events::generated::SCHEMAS.iter().find(|s| s.class == Class::Process && s.name == name);
        Call::of(found.unwrap_or_else(|| panic!("no event process:{name}")))
    }

    /// Any event.
    pub fn of(schema: &'static Schema) -> Call {
        let fixed = Fixed { time: 2_000_150_000, tid: 7, pid: 7, start: 2_000_100_000, ..Fixed::default() };
        Call { schema, fixed, args: [0; MAX_ARGS], set: [false; MAX_ARGS], data: Vec::new() }
    }

    /// A call that no table knows (`arch` x86_64) or a 32-bit one.
    pub fn raw(nr: u32, arch: u32, args: [u64; 6]) -> Call {
        const I386: u32 = 0x4000_0003;
        let mut c = Call::new("raw").arg("nr", nr.into()).arg("arch", arch.into());
        for (i, v) in args.into_iter().enumerate() {
            c = c.arg(&format!("arg{i}"), v);
        }
        if arch == I386 { c.flags(events::layout::CAP_32BIT) } else { c }
    }

    fn index(&self, name: &str) -> usize {
        self.schema.arg(name).unwrap_or_else(|| panic!("{} has no argument {name}", self.schema.name))
    }

    /// Sets an argument.
    pub fn arg(mut self, name: &str, v: u64) -> Call {
        let i = self.index(name);
        (self.args[i], self.set[i]) = (v, true);
        self
    }

    fn put(mut self, name: &str, side: Side, data: Data) -> Call {
        let i = self.index(name);
        if !self.set[i] {
            (self.args[i], self.set[i]) = (0x7ffc_0000_1000 + 0x1000 * i as u64, true);
        }
        self.data.push((i, side, data));
        self.cap(i, Cap::Whole)
    }

    fn cap(mut self, i: usize, cap: Cap) -> Call {
        if i < 6 {
            self.fixed.cap = self.fixed.cap & !(3 << (2 * i)) | u16::from(cap.bits()) << (2 * i);
        }
        self
    }

    /// The memory of a string argument, a buffer, a struct or elements, read when the schema says.
    pub fn str(self, name: &str, b: &[u8]) -> Call {
        self.put(name, Side::Schema, Data::Bytes(b.to_vec()))
    }

    /// [`Call::str`] under the name that reads better for buffers.
    pub fn bytes(self, name: &str, b: &[u8]) -> Call {
        self.str(name, b)
    }

    /// The memory of an `inout` argument at entry and at exit.
    pub fn inout(self, name: &str, before: &[u8], after: &[u8]) -> Call {
        self.put(name, Side::In, Data::Bytes(before.to_vec())).put(name, Side::Out, Data::Bytes(after.to_vec()))
    }

    /// A struct by its fields (`it_value.tv_sec`), all others zero.
    pub fn fields(self, name: &str, fields: &[(&str, u64)]) -> Call {
        self.elements(name, &[fields])
    }

    /// Several structs.
    pub fn elements(self, name: &str, elements: &[&[(&str, u64)]]) -> Call {
        let i = self.index(name);
        let b = self.structs(i, elements);
        self.bytes(name, &b)
    }

    /// Structs at entry and at exit.
    pub fn elements_inout(self, name: &str, before: &[&[(&str, u64)]], after: &[&[(&str, u64)]]) -> Call {
        let i = self.index(name);
        let (a, b) = (self.structs(i, before), self.structs(i, after));
        self.inout(name, &a, &b)
    }

    fn structs(&self, i: usize, elements: &[&[(&str, u64)]]) -> Vec<u8> {
        match self.schema.resolve(i, &self.args[..self.schema.args.len()]) {
            Some((Type::Ptr { elem: Mem::Struct(s), .. }, _)) => {
                elements.iter().flat_map(|fields| memory::structure(s, fields)).collect()
            }
            other => panic!("{}: argument {i} is no struct: {other:?}", self.schema.name),
        }
    }

    /// argv or envp.
    pub fn strv(self, name: &str, items: &[&[u8]]) -> Call {
        let items = items.iter().map(|s| (Cap::Whole, s.to_vec())).collect();
        self.put(name, Side::In, Data::Strings { total: None, items })
    }

    /// argv of which some elements were not read whole, or envp of which only the number was taken.
    pub fn strv_of(self, name: &str, total: u16, items: &[(Cap, &[u8])]) -> Call {
        let items = items.iter().map(|(c, s)| (*c, s.to_vec())).collect();
        self.put(name, Side::In, Data::Strings { total: Some(total), items })
    }

    /// iovecs with their contents.
    pub fn iov(self, name: &str, iov: &[Iov]) -> Call {
        self.put(name, Side::Schema, Data::Iov(iov.to_vec()))
    }

    /// Messages.
    pub fn messages(self, name: &str, messages: &[Message]) -> Call {
        self.put(name, Side::Schema, Data::Messages(messages.to_vec()))
    }

    /// An argument of which only a part was captured.
    pub fn cut(self, name: &str) -> Call {
        let i = self.index(name);
        self.cap(i, Cap::Cut)
    }

    /// An argument whose memory could not be read.
    pub fn fault(self, name: &str, addr: u64) -> Call {
        let i = self.index(name);
        self.arg(name, addr).cap(i, Cap::Fault)
    }

    /// Raw result.
    pub fn ret(mut self, v: i64) -> Call {
        self.fixed.ret = v;
        self
    }

    /// Adds `CAP_` bits.
    pub fn flags(mut self, bits: u16) -> Call {
        self.fixed.cap |= bits;
        self
    }

    /// Start and end, ns.
    pub fn times(mut self, start: u64, end: u64) -> Call {
        (self.fixed.start, self.fixed.time) = (start, end);
        self
    }

    /// Process and thread.
    pub fn who(mut self, pid: u32, tid: u32) -> Call {
        (self.fixed.pid, self.fixed.tid) = (pid, tid);
        self
    }

    /// Processors at entry and at exit.
    pub fn cpus(mut self, at_entry: u16, at_exit: u16) -> Call {
        (self.fixed.cpu_in, self.fixed.cpu_out) = (at_entry, at_exit);
        self
    }

    /// The event's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let layout = events::registry::layout(self.schema.id).expect("a generated schema has a layout");
        let mut out = Vec::new();
        encode::fixed(&mut out, self.schema, layout, &self.fixed, &self.args[..self.schema.args.len()]);
        for spec in &layout.tails {
            let i = usize::from(spec.arg);
            match self.data.iter().find(|(arg, side, _)| *arg == i && self.out(i, *side) == spec.out) {
                Some((_, _, data)) => tail(&mut out, spec.shape, data),
                None => encode::empty_tail(&mut out, spec.shape),
            }
        }
        assert!(events::Event::parse(&out).is_ok(), "{} does not parse", self.schema.name);
        out
    }

    fn out(&self, i: usize, side: Side) -> bool {
        match side {
            Side::In => false,
            Side::Out => true,
            Side::Schema => {
                let (_, dir) = self
                    .schema
                    .resolve(i, &self.args[..self.schema.args.len()])
                    .unwrap_or_else(|| panic!("{}: argument {i} does not exist", self.schema.name));
                !dir.reads_in()
            }
        }
    }
}

fn tail(out: &mut Vec<u8>, shape: Shape, data: &Data) {
    match (shape, data) {
        (Shape::Str, Data::Bytes(b)) => encode::str_tail(out, b),
        (Shape::Bytes, Data::Bytes(b)) => encode::bytes_tail(out, b),
        (Shape::One(size), Data::Bytes(b)) => {
            assert_eq!(b.len(), usize::from(size), "size of the element");
            encode::one_tail(out, Some(b));
        }
        (Shape::Many(size), Data::Bytes(b)) => encode::many_tail(out, b, size.into()),
        (Shape::Strv, Data::Strings { total, items }) => memory::strv(out, *total, items),
        (Shape::Iov, Data::Iov(v)) => memory::iov(out, v),
        (Shape::Msg, Data::Messages(m)) => memory::messages(out, m),
        (shape, data) => panic!("{data:?} is no {shape:?}"),
    }
}
