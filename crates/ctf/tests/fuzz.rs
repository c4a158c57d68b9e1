//! Hostile metadata and packets: whatever they are, reading them ends with events or with errors.
//!
//! Each trace in `tests/corpus` is changed at random, the same way in each run. `TRAPLINE_FUZZ_ROUNDS=N` runs N times as many
//! changes as usual. `fuzz/` has the same for a fuzzer that watches which code its inputs reach.

use std::fs;
use std::path::{Path, PathBuf};

use ctf::end::{self, End, StreamEnd};
use ctf::format::{self, Format};
use ctf::generic::{Item, Reader, Trace};
use ctf::model::{ByteOrder, Clock, EnvValue, Metadata};
use ctf::packet::{Packet, PacketWriter};
use ctf::show::{Lines, TimeFormat};
use ctf::trace::{self, Found};
use events::StreamId;

use testkit::{Random, Scratch, rounds};

/// Traces of the corpus: name, metadata, streams.
fn corpus() -> Vec<(String, Vec<u8>, Vec<Vec<u8>>)> {
    let mut dirs: Vec<PathBuf> = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus"))
        .expect("the corpus")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    dirs.sort();
    let load = |dir: &PathBuf| {
        let mut files: Vec<PathBuf> =
            fs::read_dir(dir).expect("a trace").map(|e| e.expect("an entry").path()).collect();
        files.sort();
        let streams = files.iter().filter(|f| !f.ends_with("metadata")).map(|f| fs::read(f).expect("a stream"));
        let name = dir.file_name().expect("a name").to_string_lossy().into_owned();
        (name, fs::read(dir.join("metadata")).expect("metadata"), streams.collect())
    };
    dirs.iter().map(load).collect()
}

/// Reads all of a trace, as text too. Returns how many events and errors it has.
fn read(dir: &Scratch, bytes: usize) -> (usize, usize) {
    let Ok(trace) = Trace::open(dir) else { return (0, 1) };
    let mut reader = Reader::new(vec![trace]);
    let mut lines = Lines::new(TimeFormat::TimeOfDay(0));
    let (mut events, mut errors, mut items) = (0, 0, 0);
    while let Some(item) = reader.next() {
        let mut out = String::new();
        match item {
            Ok(Item::Event(event)) => {
                events += 1;
                let metadata = &reader.stream(event.stream).expect("its stream").metadata;
                lines.event(&mut out, metadata, &event);
                ctf::show::json(&mut out, metadata, &event);
            }
            Ok(other) => lines.notice(&mut out, &other),
            Err(e) => {
                errors += 1;
                assert!(e.to_string().contains(": "), "{e}");
            }
        }
        // One line of text, and JSON after it.
        assert!(out.matches(char::is_control).eq(out.matches('\n').take(1)), "{out:?}");
        // Each event takes at least one bit, each packet one byte.
        items += 1;
        assert!(items <= bytes * 16 + 16, "more items than there can be");
    }
    (events, errors)
}

fn mutate(rng: &mut Random, bytes: &mut Vec<u8>, words: &[&[u8]]) {
    for _ in 0..=rng.index(2) {
        let at = rng.index(bytes.len());
        match rng.index(10) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << rng.index(8),
            1 if !bytes.is_empty() => bytes[at] = [0, 1, 127, 128, 255][rng.index(5)],
            2 => {
                let end = (at + rng.index(40)).min(bytes.len());
                bytes.drain(at.min(end)..end);
            }
            3 => {
                let end = (at + rng.index(60)).min(bytes.len());
                let copy = bytes[at.min(end)..end].to_vec();
                let to = rng.index(bytes.len());
                bytes.splice(to..to, copy);
            }
            4 => {
                for byte in bytes.iter_mut().skip(at).take(8) {
                    *byte = 255;
                }
            }
            5 if rng.index(4) == 0 => bytes.truncate(at),
            // Another number, so that metadata stays metadata.
            6..=8 => {
                if let Some(digit) = bytes.iter_mut().skip(at).find(|b| b.is_ascii_digit()) {
                    *digit = b'0' + rng.index(10) as u8;
                }
            }
            _ => {
                let word = words[rng.index(words.len())];
                let end = (at + rng.index(2) * word.len()).min(bytes.len());
                bytes.splice(at.min(end)..end, word.iter().copied());
            }
        }
    }
}

const WORDS: &[&[u8]] = &[
    b"struct { ",
    b"}",
    b"variant <",
    b"enum : ",
    b"integer { size = ",
    b"[",
    b"]",
    b"[4294967295]",
    b"align(64)",
    b";",
    b" ",
    b"18446744073709551615",
    b"-9223372036854775808",
    b"0x",
    b"1 ... 5",
    b":=",
    b"=",
    b"stream.event.header.id",
    b"\"",
    b"/*",
    b"typealias ",
    b"event.fields.len",
    b"clock.one.value",
    b"signed = true;",
    b"byte_order = be;",
    b"string",
    b"id",
    b"_",
    b"\\",
];

const NUMBERS: &[&[u8]] = &[
    &[0; 4],
    &[255; 4],
    &[0; 8],
    &[255; 8],
    &[0xC1, 0x1F, 0xFC, 0xC1],
    &[0xC1, 0xFC, 0x1F, 0xC1],
    &[0, 0, 0, 128],
    &[8],
];

#[test]
fn every_prefix_of_metadata() {
    for (name, metadata, _) in corpus() {
        let whole = ctf::tsdl::parse_bytes(&name, &metadata).expect("metadata");
        for length in 0..metadata.len() {
            if let Ok(part) = ctf::tsdl::parse_bytes(&name, &metadata[..length]) {
                assert!(part.streams.len() <= whole.streams.len());
            }
        }
    }
}

// Slow: the traces of the corpus are read once for each of their bytes.
#[test]
fn every_prefix_of_streams() {
    for (name, metadata, streams) in corpus() {
        let dir = Scratch::new(&format!("prefix-{name}"));
        dir.write("metadata", &metadata);
        for stream in streams {
            dir.write("stream", &stream);
            let (all, errors) = read(&dir, stream.len());
            assert_eq!(errors, 0);
            for length in 0..stream.len() {
                dir.write("stream", &stream[..length]);
                let (events, errors) = read(&dir, length);
                assert!(events <= all && errors == 0, "{name} {length}");
            }
        }
    }
}

#[test]
fn changed_metadata() {
    let mut rng = Random::new(0x1234_5678_9ABC_DEF1);
    for (name, original, streams) in corpus() {
        let dir = Scratch::new(&format!("metadata-{name}"));
        for (i, stream) in streams.iter().enumerate() {
            dir.write(&format!("stream{i}"), stream);
        }
        let bytes = streams.iter().map(Vec::len).sum();
        let mut parsed = 0;
        for _ in 0..rounds(500) {
            let mut metadata = original.clone();
            mutate(&mut rng, &mut metadata, WORDS);
            let Ok(model) = ctf::tsdl::parse_bytes(&name, &metadata) else { continue };
            parsed += 1;
            let text = ctf::print::tsdl(&model);
            assert!(ctf::tsdl::parse(&name, &text).is_ok(), "{text}");
            dir.write("metadata", &metadata);
            read(&dir, bytes);
        }
        // Changes that leave nothing to read would test nothing.
        assert!(parsed > 50, "{name}: {parsed}");
    }
}

#[test]
fn changed_streams() {
    let mut rng = Random::new(0xFEDC_BA98_7654_3211);
    for (name, metadata, streams) in corpus() {
        let dir = Scratch::new(&format!("streams-{name}"));
        dir.write("metadata", &metadata);
        let mut read_events = 0;
        for _ in 0..rounds(500) {
            let mut stream = streams[rng.index(streams.len())].clone();
            mutate(&mut rng, &mut stream, NUMBERS);
            dir.write("stream", &stream);
            read_events += read(&dir, stream.len()).0;
        }
        assert!(read_events > 1000, "{name}: {read_events}");
    }
}

#[test]
fn noise() {
    let mut rng = Random::new(99);
    for _ in 0..rounds(2000) {
        let length = rng.index(300);
        let mut text: Vec<u8> = b"trace { byte_order = le; }; ".to_vec();
        while text.len() < length {
            text.extend_from_slice(WORDS[rng.index(WORDS.len())]);
        }
        let _ = ctf::tsdl::parse_bytes("noise", &text);
        let bytes: Vec<u8> = (0..length).map(|_| rng.index(256) as u8).collect();
        let _ = ctf::tsdl::parse_bytes("noise", &bytes);
    }
}

const UUID: [u8; 16] = [5; 16];

/// Metadata of a trace of trapline that has two classes of events.
fn own_metadata() -> String {
    let mut stream = ctf::classes::stream_class();
    stream.events.retain(|e| matches!(e.name.as_str(), "syscall:getppid" | "syscall:read"));
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
        uuid: Some(UUID),
        packet_header: Some(ctf::classes::packet_header()),
        env: vec![
            ("tracer_name".into(), EnvValue::Str("trapline".into())),
            (format::KEY.into(), EnvValue::Int(Format::NOW.version())),
        ],
        clocks: vec![clock],
        streams: vec![stream],
    })
}

/// An event without arguments.
fn own_event(time: u64) -> Vec<u8> {
    use events::encode::{self, Fixed};
    let schema = events::generated::SCHEMAS.iter().find(|s| s.name == "getppid").expect("getppid");
    let (layout, fixed) = (events::layout::Layout::of(schema), Fixed { time, tid: 1, pid: 1, ..Fixed::default() });
    let mut out = Vec::new();
    encode::fixed(&mut out, schema, &layout, &fixed, &[0; 12]);
    out
}

/// A stream of a trace of trapline: packets of five events.
fn own_stream(cpu: u32) -> (Vec<u8>, StreamEnd) {
    let id = StreamId::cpu(cpu);
    let mut writer = PacketWriter::new(UUID, id, 10);
    let mut packets: Vec<Packet> = vec![writer.close()];
    for n in 0..4 {
        for i in 0..5 {
            writer.push(&own_event(100 + n * 10 + i));
        }
        writer.set_discarded(n);
        packets.push(writer.close());
    }
    let end = StreamEnd { packets: 5, events: 20, discarded: 3, taken: 20, ..StreamEnd::new(id.to_string(), id) };
    (packets.iter().flat_map(|p| p.bytes.clone()).collect(), end)
}

/// Every file of a trace, changed at random: it is opened, and read, or an error says what is wrong; and it stays as it is.
// Slow: thousands of changed traces are read.
#[test]
fn changed_traces_of_trapline() {
    let mut rng = Random::new(0x0DDB_A115_EED5_EED5);
    let dir = Scratch::new("own");
    fs::create_dir(dir.join(".trapline")).expect("a directory");
    let (a, b) = (own_stream(0), own_stream(1));
    let end = End { overwritten: Some(0), taken: vec![("syscall:getppid".into(), 40)], ..End::default() };
    let end = End { streams: vec![a.1, b.1], ..end };
    let files = [
        ("metadata", own_metadata().into_bytes()),
        ("cpu_0", a.0),
        ("cpu_1", b.0),
        (".trapline/end", end.text().into_bytes()),
        (".trapline/lock", Vec::new()),
    ];
    files.iter().for_each(|(name, bytes)| dir.write(name, bytes));
    let open = || match trace::open(&dir) {
        Ok(Found::Native(trace)) => Some(trace),
        Ok(Found::Foreign) | Err(_) => None,
    };
    let read = |trace: &trace::Trace| {
        let mut events = trace.data.events(&trace.known, 0, u64::MAX);
        while events.next().is_some() {}
        events.events_read()
    };
    let whole = open().expect("a trace");
    assert_eq!((whole.is_whole(), read(&whole), whole.discarded()), (true, 40, 6));
    let (mut opened, mut whole) = (0, 0);
    for round in 0..rounds(3000) {
        let (name, bytes) = &files[[1, 2, 3, 3, 0][round % 5]];
        let mut changed = bytes.clone();
        mutate(&mut rng, &mut changed, if name.contains("end") { END_WORDS } else { NUMBERS });
        dir.write(name, &changed);
        if let Some(trace) = open() {
            opened += 1;
            whole += usize::from(trace.is_whole());
            let n = read(&trace);
            // At least a head for each packet, and some bytes for each event.
            assert!(n <= 2 * changed.len() as u64 + 100, "{n}");
            // What is missing has a number, whatever the record says.
            let _ = (trace.discarded(), trace.end.as_ref().and_then(End::events));
        }
        assert_eq!(fs::read(dir.join(name)).expect("a file"), changed, "reading has changed it");
        dir.write(name, bytes);
    }
    assert!(opened > rounds(1500) && whole < opened, "{opened} {whole}");
}

const END_WORDS: &[&[u8]] = &[
    b"\n",
    b" ",
    b"stream ",
    b"id ",
    b"packets 18446744073709551615",
    b"events 18446744073709551615 ",
    b"discarded 18446744073709551615 ",
    b"taken ",
    b"trapline 1\n",
    b"\0\0\0\0",
    b"-1",
    b"\xff",
];

#[test]
fn changed_end_records() {
    let mut rng = Random::new(0x5151_5151_5151_5151);
    let streams = (0..3).map(|i| own_stream(i).1).collect();
    let taken = vec![("syscall:read".into(), 57), ("uprobe:/a b:f".into(), 3)];
    let more = vec!["enabling 9 0 0 0 uprobe:/a b:f".to_string()];
    let all = End {
        overwritten: Some(7),
        clamped: Some(0),
        failed: Some("disk".into()),
        streams,
        taken,
        more,
        ..End::default()
    };
    for _ in 0..rounds(20_000) {
        let mut bytes = all.text().into_bytes();
        mutate(&mut rng, &mut bytes, END_WORDS);
        let text = String::from_utf8_lossy(&bytes);
        let Some(read) = End::parse(&text, Format::NOW) else { continue };
        assert!(read.streams.len() + read.taken.len() + read.more.len() <= text.lines().count());
        let again = End::parse(&read.text(), Format::NOW).expect("what was read can be written");
        assert_eq!((again.events(), again.streams), (read.events(), read.streams));
        assert!(end::fit(&text, 100).len() <= 100);
    }
}
