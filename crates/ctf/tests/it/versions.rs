//! Traces of every version of the format: those of the first are read as events of this program's classes, those of this version
//! too, by babeltrace2 as well, and a later one is refused.

use ctf::format::{Format, KEY};
use ctf::generic::{Item, Reader, Trace};
use ctf::model::{ByteOrder, Clock, EnvValue, Metadata};
use ctf::packet::PacketWriter;
use ctf::show::{Lines, TimeFormat};
use ctf::trace::{self, Found};
use events::dynamic::{self, Field, READ};
use events::encode::{self, Fixed};
use events::layout::Layout;
use events::stream::Scope;
use events::types::{Fmt, StrKind, Type};
use events::{Cap, Event, Int, Schema, StreamId};
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::Scratch;
use testkit::{has, skip};

/// The traces of the first format, and how many events they have.
const FIRST: [(&str, u64); 5] = [("kernel", 234), ("ptrace", 226), ("probes", 50), ("dropped", 114), ("captures", 57)];

fn first(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/traces/first").join(name)
}

fn native(dir: &Path) -> Box<trace::Trace> {
    match trace::open(dir).expect("a trace") {
        Found::Native(trace) => trace,
        Found::Foreign => panic!("{}: not taken for a trace of this program", dir.display()),
    }
}

/// The events of a trace, each with its stream.
fn events(trace: &trace::Trace) -> Vec<(StreamId, Vec<u8>)> {
    let mut events = trace.data.events(&trace.known, 0, u64::MAX);
    let mut all = Vec::new();
    while let Some((bytes, stream)) = events.next() {
        all.push((stream, bytes.to_vec()));
    }
    all
}

#[test]
fn traces_of_the_first_format_are_read_as_this_programs_events() {
    for (name, count) in FIRST {
        let trace = native(&first(name));
        let all = events(&trace);
        assert_eq!((all.len() as u64, trace.data.damage().places, trace.missing.len()), (count, 0, 0), "{name}");
        for (stream, bytes) in &all {
            let id = u16::from_le_bytes([bytes[8], bytes[9]]);
            assert!(Event::parse(bytes).is_ok() && trace.known.contains(&Some(id)), "{name} {stream}");
        }
        // Classes of probes are made without the capture bits that the first format has not.
        let classes = all.iter().map(|(_, bytes)| Event::parse(bytes).expect("an event").schema);
        assert!(classes.into_iter().all(|s| !s.more_caps), "{name}");
        // The names of files follow from what the packets say.
        for stream in &trace.data.streams {
            assert_eq!(stream.name, stream.id.to_string(), "{name}");
        }
        // The end record has the streams by the same numbers.
        for end in trace.end.iter().flat_map(|e| &e.streams) {
            assert_eq!(end.name, end.id.to_string(), "{name}");
        }
    }
}

#[test]
fn captures_of_the_first_format_are_whole_from_the_seventh_on() {
    let all = events(&native(&first("captures")));
    let worked = all.iter().map(|(stream, bytes)| (stream, Event::parse(bytes).expect("an event")));
    let (stream, mapped) = worked.clone().find(|(_, e)| e.schema.name == "mmap").expect("mmap");
    assert_eq!((stream.scope(), stream.enabling(), mapped.cap(6), mapped.bytes_of("comm")), {
        (Scope::Cpu(1), 0, Cap::Whole, &b"probes"[..])
    });
    let (stream, switch) = worked.clone().find(|(_, e)| e.schema.name.contains("switch")).expect("sched_switch");
    assert_eq!((stream.scope(), stream.enabling(), switch.cap(7)), (Scope::Cpu(1), 3, Cap::Whole));
    assert!(!switch.is_span() && switch.duration().is_none());
}

/// Metadata of a trace with these classes made at run time, of this version of the format.
fn metadata(classes: &[&'static Schema], version: i64) -> String {
    let mut stream = ctf::classes::stream_class();
    stream.events.extend(classes.iter().map(|s| ctf::classes::event_class(s)));
    let clock = Clock {
        name: ctf::classes::CLOCK.into(),
        uuid: None,
        description: String::new(),
        freq: 1_000_000_000,
        precision: 0,
        offset_s: 0,
        offset: 0,
        absolute: true,
    };
    ctf::print::tsdl(&Metadata {
        order: ByteOrder::Little,
        uuid: Some([5; 16]),
        packet_header: Some(ctf::classes::packet_header()),
        env: vec![("tracer_name".into(), EnvValue::Str("trapline".into())), (KEY.into(), EnvValue::Int(version))],
        clocks: vec![clock],
        streams: vec![stream],
    })
}

fn int() -> Type {
    Type::Int(Int { size: 8, signed: true, fmt: Fmt::Dec })
}

/// A function: a span with eight fields, of which the last two are read from memory.
fn function() -> &'static Schema {
    let mut fields: Vec<Field> = (0..6).map(|i| Field { name: format!("arg{i}"), ty: int() }).collect();
    fields.push(Field { name: "what".into(), ty: Type::Str(StrKind::Text) });
    fields.push(Field { name: "data".into(), ty: Type::Bytes(READ) });
    dynamic::span("function:./app:work", &fields).expect("a class")
}

/// A point with one field.
fn point() -> &'static Schema {
    dynamic::class("uprobe:./app:work", &[Field { name: "n".into(), ty: int() }]).expect("a class")
}

fn span(fixed: Fixed) -> Vec<u8> {
    let schema = function();
    let fixed = Fixed { cap: 0, more_caps: u64::from(Cap::Cut.bits()) | u64::from(Cap::Fault.bits()) << 2, ..fixed };
    let mut out = Vec::new();
    encode::fixed(&mut out, schema, &Layout::of(schema), &fixed, &[10, 11, 12, 13, 14, 15, 0x1000, 0x2000]);
    encode::str_tail(&mut out, b"step");
    encode::bytes_tail(&mut out, b"");
    out
}

/// Writes a trace of one stream of each scope, with a span and a point in each; what is in it.
fn written(dir: &Scratch) -> Vec<(StreamId, Vec<u8>)> {
    dir.write("metadata", metadata(&[function(), point()], Format::NOW.version()).as_bytes());
    let streams = [
        StreamId::cpu(1),
        StreamId::new(Scope::Cpu(0), 3),
        StreamId::new(Scope::Thread(4_194_303), 0),
        StreamId::new(Scope::Process(77), 2),
        StreamId::TRACER,
    ];
    let mut all = Vec::new();
    for (i, id) in streams.into_iter().enumerate() {
        let mut writer = PacketWriter::new([5; 16], id, 1000);
        let mut bytes = writer.close().bytes;
        let time = 2000 + 10 * i as u64;
        let fixed = Fixed { time, start: 1500, ret: -2, cpu_in: 1, cpu_out: 0, tid: 7, pid: 6, ..Fixed::default() };
        let mut n = Vec::new();
        encode::fixed(&mut n, point(), &Layout::of(point()), &Fixed { time: time + 1, ..fixed }, &[i as u64]);
        for event in [span(fixed), n] {
            writer.push(&event);
            all.push((id, event));
        }
        bytes.extend(writer.close().bytes);
        dir.write(&id.to_string(), &bytes);
    }
    all
}

#[test]
fn spans_and_streams_of_every_scope_are_read_back() {
    let dir = Scratch::new("scopes");
    let all = written(&dir);
    let trace = native(&dir);
    assert_eq!((events(&trace), trace.data.damage().places), (all, 0));
    let (_, bytes) = &events(&trace)[0];
    let ev = Event::parse(bytes).expect("a span");
    assert_eq!((ev.schema.name, ev.is_span(), ev.is_syscall()), ("function:./app:work", true, false));
    assert_eq!(
        (ev.start(), ev.duration(), ev.ret(), ev.errno(), ev.cpus()),
        (1500, Some(500), -2, None, (Some(1), Some(0)))
    );
    assert_eq!((ev.arg(5), ev.bytes_of("what"), ev.cap(6), ev.cap(7)), (15, &b"step"[..], Cap::Cut, Cap::Fault));
}

/// The lines of the generic reader.
fn lines(dir: &Path) -> String {
    let mut reader = Reader::new(vec![Trace::open(dir).expect("a trace")]);
    let (mut lines, mut out) = (Lines::new(TimeFormat::TimeOfDay(0)), String::new());
    while let Some(item) = reader.next() {
        if let Item::Event(event) = item.expect("no error") {
            let metadata = &reader.stream(event.stream).expect("its stream").metadata;
            lines.event(&mut out, metadata, &event);
        }
    }
    out
}

#[test]
fn other_readers_find_spans_and_scopes_by_the_metadata() {
    let dir = Scratch::new("generic");
    let all = written(&dir);
    let ours = lines(&dir);
    assert_eq!(ours.lines().count(), all.len());
    let span = ours.lines().next().expect("a line");
    for part in [
        "function:./app:work: ",
        "stream_scope = ( \"cpu\" : container = 0 ), stream_enabling = 0, stream_scope_id = 1",
        "{ cpu_entry = 1, cpu_exit = 0, entry_time = 1500, ret = -2, cap_more = [ [0] = 0xE, ",
        "arg0 = 10, ",
        "what = \"step\"",
    ] {
        assert!(span.contains(part), "{part}: {span}");
    }
    assert!(ours.contains("( \"thread\" : container = 1 ), stream_enabling = 0, stream_scope_id = 4194303"), "{ours}");
    assert!(ours.contains("( \"process\" : container = 2 ), stream_enabling = 2, stream_scope_id = 77"), "{ours}");
    assert!(ours.contains("( \"session\" : container = 3 ), stream_enabling = 0, stream_scope_id = 1"), "{ours}");
    if !has("babeltrace2") {
        return skip("package:babeltrace2", "no babeltrace2");
    }
    let out = Command::new("babeltrace2").arg("--clock-gmt").arg(&*dir).output().expect("babeltrace2");
    assert_eq!(String::from_utf8_lossy(&out.stderr), "");
    assert_eq!(String::from_utf8_lossy(&out.stdout), ours);
}

#[test]
fn a_later_format_is_refused_in_one_line() {
    let dir = Scratch::new("later");
    for (version, readable) in
        [(1, false), (2, true), (3, true), (4, true), (5, true), (6, false), (0, false), (i64::MAX, false)]
    {
        written(&dir);
        dir.write("metadata", metadata(&[function(), point()], version).as_bytes());
        match trace::open(&dir) {
            Ok(Found::Native(_)) => assert!(readable, "{version}"),
            // Packets that are not those of the first format.
            Ok(Found::Foreign) => assert_eq!(version, 1),
            Err(e) => {
                let said = format!("its format has version {version}, and this trapline reads up to 5");
                assert_eq!((e.to_string(), version == 1), (said, false));
            }
        }
    }
}
