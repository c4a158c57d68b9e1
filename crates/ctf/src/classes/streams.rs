//! The classes of streams, and the headers of their packets.

use super::{event_class, field, hex, structure, unsigned};
use crate::format::Format;
use crate::model::{EventClass, Field, IntType, Label, Metadata, StreamClass, StructType, Type};
use events::schema::Schema;

/// The name of the clock of all streams.
pub const CLOCK: &str = "mono";
/// The id of the class of streams of events.
pub const STREAM_CLASS: u64 = 0;

/// The class of streams of events, with every event class that codegen knows.
pub fn stream_class() -> StreamClass {
    StreamClass {
        id: STREAM_CLASS,
        packet_context: Some(packet_context(Format::NOW)),
        event_header: Some(structure(vec![time("timestamp"), unsigned("id", 16)])),
        event_context: Some(structure(vec![hex("cap", 16), unsigned("tid", 32), unsigned("pid", 32)])),
        events: events::generated::SCHEMAS.iter().map(|s| event_class(s)).collect(),
    }
}

/// A point in time.
fn time(name: &str) -> Field {
    field(name, Type::Int(IntType { align: 64, clock: Some(CLOCK.into()), ..IntType::unsigned(64) }))
}

/// The context of each packet in this version of the format.
pub fn packet_context(format: Format) -> StructType {
    let mut context = vec![
        time("timestamp_begin"),
        time("timestamp_end"),
        unsigned("content_size", 64),
        unsigned("packet_size", 64),
        unsigned("packet_seq_num", 64),
        unsigned("events_discarded", 64),
        unsigned("cpu_id", 32),
    ];
    match format {
        Format::V1 => context.push(hex("reserved", 32)),
        Format::V2 | Format::V3 | Format::V4 | Format::V5 => {
            context.push(scope());
            context.push(unsigned("stream_enabling", 16));
            context.push(unsigned("stream_scope_id", 32));
            context.push(hex("reserved", 32));
        }
    }
    structure(context)
}

fn scope() -> Field {
    let label = |(name, n): (&str, i128)| Label { name: name.into(), first: n, last: n };
    let scopes = [("cpu", 0), ("thread", 1), ("process", 2), ("session", 3)].map(label);
    field("stream_scope", Type::Enum(IntType::unsigned(16), scopes.to_vec()))
}

/// The name of the clock of function records: the time stamp counter.
pub const TSC: &str = "tsc";
/// The id of the class of streams of function records.
pub const FUNCTIONS_CLASS: u64 = 1;

/// The class of streams of function records: records as [`events::functions`] has them, packets as [`crate::packet`] has them.
/// `values`: records may have values, with words as the module `records` has them then.
pub fn functions_class(values: bool) -> StreamClass {
    let tsc = |bits, align| Type::Int(IntType { align, clock: Some(TSC.into()), ..IntType::unsigned(bits) });
    // A struct is aligned as its members: these are not on bytes.
    let bits = |name, n| StructType {
        align: 1,
        fields: vec![field(name, Type::Int(IntType { align: 1, ..IntType::unsigned(n) }))],
    };
    let mut header = vec![field("timestamp", tsc(32, 8))];
    let id_bits = if values { 2 } else { 1 };
    header.extend(bits("id", id_bits).fields);
    let event = |id, schema: &Schema| EventClass {
        id,
        name: schema.name.into(),
        loglevel: None,
        context: None,
        fields: Some(bits("function", 32 - id_bits)),
    };
    let with_values = |class: EventClass| {
        // They lie on bytes, but a field that says so would move the ones before it there.
        let byte = Box::new(Type::Int(IntType { align: 1, ..IntType::unsigned(8) }));
        let mut fields = bits("function", 32 - id_bits);
        fields.fields.extend(bits("values_length", 16).fields);
        fields.fields.push(field("values", Type::Sequence(byte, vec!["values_length".into()])));
        EventClass { id: class.id + 2, fields: Some(fields), ..class }
    };
    StreamClass {
        id: FUNCTIONS_CLASS,
        packet_context: Some(structure(vec![
            field("timestamp_begin", tsc(64, 64)),
            field("timestamp_end", tsc(64, 64)),
            unsigned("content_size", 64),
            unsigned("packet_size", 64),
            unsigned("packet_seq_num", 64),
            unsigned("events_discarded", 64),
            hex("reserved", 32),
            scope(),
            unsigned("stream_enabling", 16),
            unsigned("tid", 32),
            unsigned("pid", 32),
            unsigned("thread_number", 32),
            hex("reserved_too", 32),
            unsigned("first_tsc", 64),
            unsigned("first_monotonic", 64),
            unsigned("last_tsc", 64),
            unsigned("last_monotonic", 64),
        ])),
        event_header: Some(structure(header)),
        event_context: None,
        events: match [event(0, events::functions::entry()), event(1, events::functions::exit())] {
            plain if !values => plain.into(),
            plain => plain.iter().cloned().chain(plain.clone().map(with_values)).collect(),
        },
    }
}

/// Whether a trace has function records that [`crate::packet`] reads.
pub fn has_functions(metadata: &Metadata) -> bool {
    let of = |values| metadata.stream(FUNCTIONS_CLASS) == Some(&functions_class(values));
    of(false) || of(true)
}

/// Whether its function records may have values.
pub fn has_values(metadata: &Metadata) -> bool {
    metadata.stream(FUNCTIONS_CLASS) == Some(&functions_class(true))
}

/// What each packet of trapline begins with.
pub fn packet_header() -> StructType {
    structure(vec![
        hex("magic", 32),
        field("uuid", Type::Array(Box::new(Type::Int(IntType::unsigned(8))), 16)),
        unsigned("stream_id", 32),
        unsigned("stream_instance_id", 64),
    ])
}

/// Whether a trace with this metadata has packets that [`crate::packet`] reads, in this version of the format.
pub(crate) fn has_packets(metadata: &Metadata, format: Format) -> bool {
    let stream = metadata.stream(STREAM_CLASS);
    metadata.packet_header.as_ref() == Some(&packet_header())
        && stream.is_some_and(|s| s.packet_context.as_ref() == Some(&packet_context(format)))
        && (format < Format::V3
            || metadata.stream(FUNCTIONS_CLASS).is_none_or(|s| *s == functions_class(format >= Format::V4)))
}
