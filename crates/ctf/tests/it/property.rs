//! What is printed is parsed to the same, what is written is read to the same, for random metadata.

use ctf::generic::{Event, Item, Reader, Trace};
use ctf::model::{
    Base, ByteOrder, Clock, Encoding, EnvValue, EventClass, Field, FloatType, IntType, Label, Metadata, StreamClass,
    StructType, Type,
};
use proptest::prelude::*;

use super::encode::{PacketSpec, Written, packet};
use super::samples;
use testkit::Scratch;

/// All events of a directory; no errors, nothing else.
pub fn events(dir: &std::path::Path) -> Vec<Event> {
    let reader = Reader::new(vec![Trace::open(dir).expect("a trace")]);
    let event = |item| match item {
        Ok(Item::Event(e)) => e,
        other => panic!("{other:?}"),
    };
    reader.map(event).collect()
}

fn check(read: &[Event], written: &[Written]) {
    for (r, w) in read.iter().zip(written) {
        assert_eq!(r.class.id, w.id);
        assert_eq!(r.header, w.header);
        assert_eq!(r.stream_context, w.stream_context);
        assert_eq!(r.context, w.context);
        assert_eq!(r.fields, w.fields);
        if r.cycles.is_some() {
            assert_eq!(r.cycles, Some(w.timestamp));
        }
    }
    assert_eq!(read.len(), written.len());
}

fn read_back(metadata: &Metadata, text: &str, name: &str, spec: PacketSpec) {
    let dir = Scratch::new(name);
    dir.write("metadata", text.as_bytes());
    let mut file = Vec::new();
    let mut written = Vec::new();
    for sequence in 0..2 {
        let begin = spec.begin + sequence * spec.events * spec.step;
        let (bytes, events) = packet(metadata, PacketSpec { sequence, seed: spec.seed + sequence, begin, ..spec });
        file.extend(bytes);
        written.extend(events);
    }
    dir.write("stream", &file);
    check(&events(&dir), &written);
}

#[test]
fn samples_are_read_as_written() {
    for (name, text) in [("lttng", samples::LTTNG), ("packed", samples::PACKED)] {
        let metadata = ctf::tsdl::parse(name, text).expect("metadata");
        for (stream, seed) in (0..2).flat_map(|s| (0..50).map(move |seed| (s, seed))) {
            let spec = PacketSpec { stream, seed: 10 * seed, events: 10, ..PacketSpec::default() };
            read_back(&metadata, text, "samples", spec);
        }
    }
}

/// What a random integer is made of.
type IntParts = (u32, u32, bool, usize, usize, bool);

fn int_parts() -> impl Strategy<Value = IntParts> {
    (1u32..=64, 0u32..7, any::<bool>(), 0usize..4, 0usize..3, any::<bool>())
}

/// In traces, bits of different orders do not share a byte: what has the other order is made of whole bytes.
fn int((size, align, signed, base, encoding, swapped): IntParts, native: ByteOrder) -> IntType {
    let order = match (native, swapped) {
        (ByteOrder::Little, true) => ByteOrder::Big,
        (ByteOrder::Big, true) => ByteOrder::Little,
        (order, false) => order,
    };
    let whole = swapped && align >= 3;
    IntType {
        size: if whole { size.div_ceil(8) * 8 } else { size },
        align: 1 << align,
        signed,
        order: if whole { order } else { native },
        base: [Base::Binary, Base::Octal, Base::Decimal, Base::Hexadecimal][base],
        encoding: [Encoding::None, Encoding::Utf8, Encoding::Ascii][encoding],
        clock: None,
    }
}

/// A type and the fields that it needs before it.
#[derive(Clone, Debug)]
enum Shape {
    Int(IntParts),
    Float(bool, u32),
    Str(bool),
    Enum(Vec<(String, i8, u8)>),
    Array(Box<Shape>, u64),
    Sequence(Box<Shape>, bool),
    Struct(Vec<Shape>, u32),
    Variant(Vec<Shape>),
}

fn shape() -> impl Strategy<Value = Shape> {
    let labels = prop::collection::vec((".{0,8}", -100i8..100, 0u8..20), 1..5);
    let leaf = prop_oneof![
        4 => int_parts().prop_map(Shape::Int),
        1 => (any::<bool>(), 0u32..6).prop_map(|(double, align)| Shape::Float(double, align)),
        1 => any::<bool>().prop_map(Shape::Str),
        1 => labels.prop_map(Shape::Enum),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            (inner.clone(), 0u64..4).prop_map(|(s, n)| Shape::Array(Box::new(s), n)),
            (inner.clone(), any::<bool>()).prop_map(|(s, outside)| Shape::Sequence(Box::new(s), outside)),
            (prop::collection::vec(inner.clone(), 0..4), 0u32..7).prop_map(|(s, a)| Shape::Struct(s, 1 << a)),
            prop::collection::vec(inner, 1..4).prop_map(Shape::Variant),
        ]
    })
}

const NAMES: &[&str] = &["event", "_x", "u32", "string", "plain", "__", "Align", "x64_a1"];

/// Fields of shapes, with lengths and tags before what needs them.
fn fields(shapes: &[Shape], native: ByteOrder, context: bool) -> Vec<Field> {
    let mut out = Vec::new();
    for (i, shape) in shapes.iter().enumerate() {
        let name = NAMES.get(i).filter(|_| shapes.len() % 2 == 1).map_or(format!("f{i}"), |n| (*n).into());
        let ty = ty(shape, i, native, context, &mut out);
        out.push(Field { name, ty });
    }
    out
}

fn ty(shape: &Shape, i: usize, native: ByteOrder, context: bool, before: &mut Vec<Field>) -> Type {
    let native_int = |size| IntType { order: native, align: 1, ..IntType::unsigned(size) };
    match shape {
        Shape::Int(parts) => Type::Int(int(*parts, native)),
        Shape::Float(double, align) => {
            let (exp, mant) = if *double { (11, 53) } else { (8, 24) };
            Type::Float(FloatType { exp, mant, align: 1 << align, order: native })
        }
        Shape::Str(ascii) => Type::Str(if *ascii { Encoding::Ascii } else { Encoding::Utf8 }),
        Shape::Enum(labels) => {
            let label = |(name, first, more): &(String, i8, u8)| {
                let first = i128::from(*first);
                Label { name: name.clone(), first, last: first + i128::from(*more) }
            };
            Type::Enum(IntType { signed: true, ..native_int(11) }, labels.iter().map(label).collect())
        }
        Shape::Array(element, n) => Type::Array(Box::new(ty(element, i + 100, native, context, before)), *n),
        Shape::Sequence(element, outside) => {
            let element = Box::new(ty(element, i + 100, native, context, before));
            if *outside && context {
                let path = ["stream", "event", "context", "len"].map(String::from);
                return Type::Sequence(element, path.to_vec());
            }
            let name = format!("len{i}_{}", before.len());
            before.push(Field { name: name.clone(), ty: Type::Int(native_int(5)) });
            Type::Sequence(element, vec![name])
        }
        Shape::Struct(inner, align) => {
            Type::Struct(StructType { align: *align, fields: fields(inner, native, context) })
        }
        Shape::Variant(options) => {
            let name = format!("tag{i}_{}", before.len());
            let label = |k: usize| Label { name: format!("o{k}"), first: 3 * k as i128, last: 3 * k as i128 + 1 };
            let made: Vec<Field> = options
                .iter()
                .enumerate()
                .map(|(k, s)| Field { name: format!("o{k}"), ty: ty(s, i + 200 + 10 * k, native, context, before) })
                .collect();
            let labels = (0..options.len()).map(label).collect();
            before.push(Field { name: name.clone(), ty: Type::Enum(native_int(6), labels) });
            Type::Variant(vec![name], made)
        }
    }
}

fn metadata() -> impl Strategy<Value = Metadata> {
    let shapes = || prop::collection::vec(shape(), 0..5);
    let events = prop::collection::vec((".{0,12}", prop::option::of(any::<i64>()), shapes(), shapes()), 1..4);
    let env = prop::collection::vec(
        ("[a-z]{1,6}", prop_oneof![".{0,9}".prop_map(EnvValue::Str), any::<i64>().prop_map(EnvValue::Int)]),
        0..3,
    );
    let clock = (any::<i32>(), 0i64..1 << 40, any::<u64>(), any::<bool>(), ".{0,9}", 1u64..1 << 40);
    (any::<bool>(), events, env, clock, any::<[u8; 16]>(), 12u32..=64).prop_map(
        |(big, events, env, clock, uuid, bits)| {
            let order = if big { ByteOrder::Big } else { ByteOrder::Little };
            let int = |size, align| IntType { align, order, ..IntType::unsigned(size) };
            let timed = |size| Type::Int(IntType { clock: Some("c".into()), ..int(size, 1) });
            let field = |name: &str, ty| Field { name: name.into(), ty };
            let plain = |fields| Some(StructType { align: 1, fields });
            let (offset_s, offset, precision, absolute, description, freq) = clock;
            let classes = events.into_iter().enumerate().map(|(id, (name, loglevel, context, payload))| EventClass {
                id: id as u64,
                name,
                loglevel,
                context: (id % 2 == 0).then(|| StructType { align: 8, fields: fields(&context, order, true) }),
                fields: Some(StructType { align: 1, fields: fields(&payload, order, true) }),
            });
            let sizes = ["content_size", "packet_size", "packet_seq_num"].map(|n| field(n, Type::Int(int(32, 8))));
            let mut context = vec![field("timestamp_begin", timed(64)), field("timestamp_end", timed(64))];
            context.extend(sizes);
            Metadata {
                order,
                uuid: Some(uuid),
                packet_header: plain(vec![
                    field("magic", Type::Int(int(32, 8))),
                    field("uuid", Type::Array(Box::new(Type::Int(int(8, 8))), 16)),
                ]),
                env,
                clocks: vec![Clock {
                    name: "c".into(),
                    uuid: Some(uuid),
                    description,
                    freq,
                    precision,
                    offset_s: offset_s.into(),
                    offset,
                    absolute,
                }],
                streams: vec![StreamClass {
                    id: 0,
                    packet_context: plain(context),
                    event_header: plain(vec![field("id", Type::Int(int(3, 1))), field("timestamp", timed(bits))]),
                    event_context: plain(vec![field("len", Type::Int(int(4, 1)))]),
                    events: classes.collect(),
                }],
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn printed_and_parsed(metadata in metadata()) {
        let text = ctf::print::tsdl(&metadata);
        let parsed = ctf::tsdl::parse("metadata", &text);
        prop_assert_eq!(parsed, Ok(metadata), "{}", text);
    }

    #[test]
    fn written_and_read(metadata in metadata(), seed in any::<u64>()) {
        let text = ctf::print::tsdl(&metadata);
        read_back(&metadata, &text, "random", PacketSpec { seed, ..PacketSpec::default() });
    }
}
