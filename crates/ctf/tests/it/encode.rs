//! Writes random events of any model, bit by bit, with nothing in common with the reader but the model.

use std::collections::HashMap;
use std::sync::Arc;

use ctf::generic::Value;
use ctf::model::{ByteOrder, Encoding, Field, IntType, Metadata, StreamClass, StructType, Type};
use testkit::Random;

/// Bits, one after the other.
#[derive(Default)]
pub struct BitWriter {
    pub bytes: Vec<u8>,
    pub at: u64,
}

impl BitWriter {
    fn bit(&mut self, bit: bool, order: ByteOrder) {
        if self.at.is_multiple_of(8) {
            self.bytes.push(0);
        }
        let within = self.at % 8;
        let shift = if order == ByteOrder::Little { within } else { 7 - within };
        *self.bytes.last_mut().unwrap() |= u8::from(bit) << shift;
        self.at += 1;
    }
    pub fn align(&mut self, align: u32) {
        while !self.at.is_multiple_of(u64::from(align)) {
            self.bit(false, ByteOrder::Little);
        }
    }
    pub fn number(&mut self, value: u64, size: u32, order: ByteOrder) {
        for i in 0..size {
            let bit = if order == ByteOrder::Little { i } else { size - 1 - i };
            self.bit(value >> bit & 1 == 1, order);
        }
    }
}

/// Writes one packet.
pub struct Encoder<'m> {
    metadata: &'m Metadata,
    pub out: BitWriter,
    pub rng: Random,
    /// Values of header fields by name.
    pub fixed: HashMap<&'static str, u64>,
    /// Fewest characters of a string.
    pub least: u64,
    steered: bool,
    roots: Vec<(&'static [&'static str], Value)>,
    frames: Vec<Vec<(String, Value)>>,
    scope: &'static [&'static str],
}

/// What an event was written as.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    pub id: u64,
    pub timestamp: u64,
    pub header: Option<Value>,
    pub stream_context: Option<Value>,
    pub context: Option<Value>,
    pub fields: Option<Value>,
}

impl<'m> Encoder<'m> {
    pub fn new(metadata: &'m Metadata, seed: u64) -> Encoder<'m> {
        Encoder {
            metadata,
            out: BitWriter::default(),
            rng: Random::new(seed),
            fixed: HashMap::new(),
            least: 0,
            steered: false,
            roots: Vec::new(),
            frames: Vec::new(),
            scope: &[],
        }
    }

    fn root(&mut self, scope: &'static [&'static str], ty: Option<&StructType>, steered: bool) -> Option<Value> {
        self.scope = scope;
        self.steered = steered;
        self.roots.retain(|r| r.0 != scope);
        let value = self.structure(ty?);
        self.roots.push((scope, value.clone()));
        Some(value)
    }

    pub fn packet_begin(&mut self, stream: &StreamClass) {
        let metadata = self.metadata;
        self.root(&["trace", "packet", "header"], metadata.packet_header.as_ref(), true);
        self.root(&["stream", "packet", "context"], stream.packet_context.as_ref(), true);
    }

    pub fn event(&mut self, stream: &StreamClass, which: usize, timestamp: u64) -> Written {
        let class = &stream.events[which];
        self.fixed.insert("id", class.id);
        self.fixed.insert("timestamp", timestamp);
        Written {
            id: class.id,
            timestamp,
            header: self.root(&["stream", "event", "header"], stream.event_header.as_ref(), true),
            stream_context: self.root(&["stream", "event", "context"], stream.event_context.as_ref(), false),
            context: self.root(&["event", "context"], class.context.as_ref(), false),
            fields: self.root(&["event", "fields"], class.fields.as_ref(), false),
        }
    }

    fn structure(&mut self, ty: &StructType) -> Value {
        self.out.align(ty.align());
        self.frames.push(Vec::new());
        for f in &ty.fields {
            let value = self.value(&f.name, &f.ty);
            self.frames.last_mut().unwrap().push((f.name.clone(), value));
        }
        let frame = self.frames.pop().unwrap();
        Value::Struct(names(&ty.fields), frame.into_iter().map(|f| f.1).collect())
    }

    fn int(&mut self, i: &IntType, bits: u64) -> i128 {
        self.out.align(i.align);
        let bits = bits & (u64::MAX >> (64 - i.size));
        self.out.number(bits, i.size, i.order);
        if i.signed && bits >> (i.size - 1) == 1 { i128::from(bits) - (1i128 << i.size) } else { i128::from(bits) }
    }

    fn pick(&mut self, name: &str) -> u64 {
        match self.fixed.get(name) {
            Some(value) if self.steered => *value,
            _ if name.starts_with("len") => self.rng.below(4),
            _ => self.rng.next() >> self.rng.below(64),
        }
    }

    fn value(&mut self, name: &str, ty: &Type) -> Value {
        match ty {
            Type::Int(i) => {
                let bits = self.pick(name);
                let n = self.int(i, bits);
                if i.signed { Value::Signed(n as i64, i.base, i.size) } else { Value::Unsigned(n as u64, i.base) }
            }
            Type::Enum(i, labels) => {
                let bits = match self.fixed.get(name) {
                    Some(id) if self.steered => {
                        let fits =
                            labels.iter().any(|l| l.name == "compact" && (l.first..=l.last).contains(&i128::from(*id)));
                        let extended = labels.iter().find(|l| l.name == "extended").map_or(0, |l| l.first as u64);
                        if fits && self.rng.below(4) > 0 { *id } else { extended }
                    }
                    _ if name.starts_with("tag") => labels[self.rng.below(labels.len() as u64) as usize].first as u64,
                    _ => self.pick(name),
                };
                let n = self.int(i, bits);
                let all = labels.iter().filter(|l| l.first <= n && n <= l.last);
                Value::Enum(n, all.map(|l| Arc::from(l.name.as_str())).collect())
            }
            Type::Float(f) => {
                self.out.align(f.align);
                let n = (self.rng.below(4001) as f64 - 2000.0) / 4.0;
                let bits = if f.exp == 8 { u64::from((n as f32).to_bits()) } else { n.to_bits() };
                self.out.number(bits, f.exp + f.mant, f.order);
                Value::Float(if f.exp == 8 { f64::from(n as f32) } else { n })
            }
            Type::Str(_) => {
                self.out.align(8);
                let text = self.text(6);
                for byte in text.iter().chain(&[0]) {
                    self.out.number(u64::from(*byte), 8, ByteOrder::Little);
                }
                Value::Text(text)
            }
            Type::Struct(s) => self.structure(s),
            Type::Array(element, n) => self.array(name, element, *n),
            Type::Sequence(element, path) => {
                let n = self.lookup(path);
                self.array(name, element, u64::try_from(n).unwrap())
            }
            Type::Variant(tag, options) => {
                let tag = self.lookup_value(tag);
                let Value::Enum(_, labels) = tag else { panic!("a tag is an enumeration") };
                let chosen =
                    labels.iter().find_map(|l| options.iter().position(|o| *o.name == **l)).expect("an option");
                let value = self.value(&options[chosen].name, &options[chosen].ty);
                Value::Variant(names(options), chosen, Box::new(value))
            }
        }
    }

    fn text(&mut self, most: u64) -> Vec<u8> {
        (0..self.least + self.rng.below(most)).map(|_| b'a' + self.rng.below(26) as u8).collect()
    }

    fn array(&mut self, name: &str, element: &Type, n: u64) -> Value {
        if let Type::Int(i) = element
            && i.size == 8
            && i.align <= 8
            && (!i.signed || i.encoding != Encoding::None)
        {
            let text = i.encoding != Encoding::None;
            self.out.align(i.align);
            let mut bytes = Vec::new();
            for k in 0..n {
                let byte = match (name, &self.metadata.uuid) {
                    ("uuid", Some(uuid)) => uuid[k as usize],
                    _ if text => b'a' + self.rng.below(26) as u8,
                    _ => self.rng.next() as u8,
                };
                self.int(i, u64::from(byte));
                bytes.push(byte);
            }
            return if text { Value::Text(bytes) } else { Value::Bytes(bytes, i.base) };
        }
        self.out.align(element.align());
        Value::Array((0..n).map(|_| self.value("", element)).collect())
    }

    fn lookup(&self, path: &[String]) -> i128 {
        self.lookup_value(path).integer().expect("an integer")
    }

    fn lookup_value(&self, path: &[String]) -> Value {
        let in_frame = |frame: &Vec<(String, Value)>, path: &[String]| {
            let value = frame.iter().find(|(n, _)| *n == path[0])?.1.clone();
            path[1..].iter().try_fold(value, |v, name| v.field(name).cloned())
        };
        let starts = |scope: &[&str]| path.len() > scope.len() && path.iter().zip(scope).all(|(a, b)| a == b);
        if !self.scope.is_empty() && starts(self.scope) {
            return in_frame(&self.frames[0], &path[self.scope.len()..]).expect("a field before");
        }
        if let Some((scope, root)) = self.roots.iter().find(|(scope, _)| starts(scope)) {
            return path[scope.len()..].iter().try_fold(root.clone(), |v, n| v.field(n).cloned()).expect("a field");
        }
        if let Some(value) = self.frames.iter().rev().find_map(|frame| in_frame(frame, path)) {
            return value;
        }
        let root = |v: &Value| path.iter().try_fold(v.clone(), |v, n| v.field(n).cloned());
        self.roots.iter().rev().find_map(|(_, v)| root(v)).unwrap_or_else(|| panic!("no field {path:?}"))
    }
}

fn names(fields: &[Field]) -> Arc<[String]> {
    fields.iter().map(|f| f.name.clone()).collect()
}

/// What a packet is to contain.
#[derive(Clone, Copy)]
pub struct PacketSpec {
    pub stream: usize,
    pub seed: u64,
    pub events: u64,
    pub begin: u64,
    /// Most ticks between events.
    pub step: u64,
    pub discarded: u64,
    pub sequence: u64,
    pub padding: u64,
    /// Fewest characters of a string.
    pub least: u64,
}

impl Default for PacketSpec {
    fn default() -> PacketSpec {
        PacketSpec {
            stream: 0,
            seed: 1,
            events: 5,
            begin: 1000,
            step: 50,
            discarded: 0,
            sequence: 0,
            padding: 3,
            least: 0,
        }
    }
}

/// A packet with random events, and these. Written twice: the second time with the sizes that the first one had.
pub fn packet(metadata: &Metadata, spec: PacketSpec) -> (Vec<u8>, Vec<Written>) {
    let (mut content, mut end) = (0u64, 0);
    loop {
        let mut e = Encoder::new(metadata, spec.seed);
        e.least = spec.least;
        let stream = &metadata.streams[spec.stream];
        let size = content.div_ceil(8) + spec.padding;
        e.fixed = HashMap::from([
            ("magic", 0xC1FC_1FC1),
            ("stream_id", stream.id),
            ("stream_instance_id", 0),
            ("timestamp_begin", spec.begin),
            ("timestamp_end", end),
            ("content_size", content),
            ("packet_size", size * 8),
            ("events_discarded", spec.discarded),
            ("packet_seq_num", spec.sequence),
            ("cpu_id", spec.stream as u64),
        ]);
        e.packet_begin(stream);
        let mut now = spec.begin;
        let mut written = Vec::new();
        for _ in 0..spec.events {
            now += e.rng.below(spec.step);
            let which = e.rng.below(stream.events.len() as u64) as usize;
            written.push(e.event(stream, which, now));
        }
        if content == e.out.at {
            let mut bytes = e.out.bytes;
            bytes.resize(size as usize, 0);
            return (bytes, written);
        }
        (content, end) = (e.out.at, now);
    }
}
