//! Packets that are missing, cut, empty or wrong.

use ctf::generic::{Item, Reader, Trace};
use ctf::show::{Lines, TimeFormat};
use expect_test::{Expect, expect};

use super::encode::{PacketSpec, packet};
use super::samples::{self, SMALL};
use testkit::Scratch;

/// Lines of the trace, errors without the directory.
fn lines(dir: &Scratch) -> String {
    let mut reader = Reader::new(vec![Trace::open(dir).expect("a trace")]);
    let mut lines = Lines::new(TimeFormat::Seconds);
    let mut out = String::new();
    while let Some(item) = reader.next() {
        match item {
            Ok(Item::Event(event)) => {
                lines.event(&mut out, &reader.stream(event.stream).expect("its stream").metadata, &event);
            }
            Ok(other) => lines.notice(&mut out, &other),
            Err(e) => out += &format!("{e}\n"),
        }
    }
    out.replace(&format!("{}/", dir.display()), "")
}

fn check(name: &str, metadata: &str, file: &[u8], expected: Expect) {
    let dir = Scratch::new(name);
    dir.write("metadata", metadata.as_bytes());
    dir.write("stream", file);
    expected.assert_eq(&lines(&dir));
}

fn small(spec: PacketSpec) -> Vec<u8> {
    packet(&ctf::tsdl::parse("m", SMALL).expect("metadata"), PacketSpec { events: spec.events.min(2), ..spec }).0
}

fn numbered(sequence: u64, discarded: u64, events: u64) -> Vec<u8> {
    let begin = 70_000 * (sequence + 1);
    small(PacketSpec { sequence, discarded, events, begin, seed: sequence, ..PacketSpec::default() })
}

#[test]
fn discarded_and_lost() {
    let file = [numbered(0, 3, 1), numbered(1, 3, 0), numbered(4, 65_535, 1), numbered(5, 7, 2)].concat();
    check(
        "lost",
        SMALL,
        &file,
        expect![[r#"
        [0.000070035] (+?.?????????) tick: { len = 3, s = "rqxi", a = [ [0] = 16487906, [1] = 405, [2] = 68675 ] }
        3 events were discarded in stream 0 after [0.000070000] until [0.000070035]
        2 packets are missing in stream 0 after [0.000140000] until [0.000350000]
        [0.000350028] (+0.000279993) tick: { len = 3, s = "", a = [ [0] = 847355148, [1] = 1804172759, [2] = 1441297878 ] }
        65532 events were discarded in stream 0 after [0.000140000] until [0.000350028]
        [0.000420018] (+0.000069990) tick: { len = 3, s = "fqlha", a = [ [0] = 20248105, [1] = 4, [2] = 3376278201 ] }
        [0.000420044] (+0.000000026) tick: { len = 3, s = "kzv", a = [ [0] = 23603, [1] = 2835097372, [2] = 2010833916 ] }
        8 events were discarded in stream 0 after [0.000350028] until [0.000420044]
    "#]],
    );
}

#[test]
fn cut_anywhere() {
    let file = [numbered(0, 0, 2), numbered(1, 0, 2)].concat();
    let first = numbered(0, 0, 2).len();
    let dir = Scratch::new("cut");
    dir.write("metadata", SMALL.as_bytes());
    for length in 1..file.len() {
        dir.write("stream", &file[..length]);
        let text = lines(&dir);
        let events = text.lines().filter(|l| l.contains("tick: ")).count();
        let whole = if length < first { 0 } else { 2 };
        assert!((whole..=whole + 2).contains(&events), "{length}: {text}");
        assert_eq!(text.contains("the end is missing"), length != first, "{length}: {text}");
        assert!(!text.contains("stream: byte"), "{length}: {text}");
    }
    dir.write("stream", &file[..file.len() - 20]);
    expect![[r#"
        [0.000070035] (+?.?????????) tick: { len = 3, s = "rqxi", a = [ [0] = 16487906, [1] = 405, [2] = 68675 ] }
        [0.000070052] (+0.000000017) tick: { len = 1, s = "ek", a = [ [0] = 22577244 ] }
        [0.000140015] (+0.000069963) tick: { len = 2, s = "fcrly", a = [ [0] = 1705094727, [1] = 349146110 ] }
        the end is missing: stream is cut in the packet at byte 146
    "#]]
    .assert_eq(&lines(&dir));
}

#[test]
fn wrong() {
    let good = numbered(0, 0, 2);
    let with = |at: usize, bytes: &[u8]| {
        let mut file = [good.clone(), good.clone()].concat();
        let at = at + good.len();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    check(
        "magic",
        SMALL,
        &with(0, &[1, 2, 3, 4]),
        expect![[r#"
        [0.000070035] (+?.?????????) tick: { len = 3, s = "rqxi", a = [ [0] = 16487906, [1] = 405, [2] = 68675 ] }
        [0.000070052] (+0.000000017) tick: { len = 1, s = "ek", a = [ [0] = 22577244 ] }
        stream: byte 81: no packet begins here: the magic number is 0x4030201, not 0xc1fc1fc1
    "#]],
    );
    check(
        "uuid",
        SMALL,
        &with(4, &[9]),
        expect![[r#"
        [0.000070035] (+?.?????????) tick: { len = 3, s = "rqxi", a = [ [0] = 16487906, [1] = 405, [2] = 68675 ] }
        [0.000070052] (+0.000000017) tick: { len = 1, s = "ek", a = [ [0] = 22577244 ] }
        stream: byte 81: the packet belongs to another trace: its UUID is not that of the metadata
    "#]],
    );
    check(
        "content",
        SMALL,
        &with(36, &u32::MAX.to_le_bytes()),
        expect![[r#"
        [0.000070035] (+?.?????????) tick: { len = 3, s = "rqxi", a = [ [0] = 16487906, [1] = 405, [2] = 68675 ] }
        [0.000070052] (+0.000000017) tick: { len = 1, s = "ek", a = [ [0] = 22577244 ] }
        stream: byte 81: 4294967295 bits of content in a packet of 648 bits
    "#]],
    );
    check(
        "nothing",
        SMALL,
        &with(36, &[0; 8]),
        expect![[r#"
        [0.000070035] (+?.?????????) tick: { len = 3, s = "rqxi", a = [ [0] = 16487906, [1] = 405, [2] = 68675 ] }
        [0.000070052] (+0.000000017) tick: { len = 1, s = "ek", a = [ [0] = 22577244 ] }
        stream: byte 81: 0 bits of content, less than the 384 of the packet's own header
    "#]],
    );
    check(
        "odd",
        SMALL,
        &with(40, &1001u32.to_le_bytes()),
        expect![[r#"
        [0.000070035] (+?.?????????) tick: { len = 3, s = "rqxi", a = [ [0] = 16487906, [1] = 405, [2] = 68675 ] }
        [0.000070052] (+0.000000017) tick: { len = 1, s = "ek", a = [ [0] = 22577244 ] }
        stream: byte 81: a packet of 1001 bits, which are not whole bytes
    "#]],
    );
    check(
        "huge",
        SMALL,
        &with(40, &(!7u32).to_le_bytes()),
        expect![[r#"
        [0.000070035] (+?.?????????) tick: { len = 3, s = "rqxi", a = [ [0] = 16487906, [1] = 405, [2] = 68675 ] }
        [0.000070052] (+0.000000017) tick: { len = 1, s = "ek", a = [ [0] = 22577244 ] }
        [0.000070035] (-0.000000017) tick: { len = 3, s = "rqxi", a = [ [0] = 16487906, [1] = 405, [2] = 68675 ] }
        [0.000070052] (+0.000000017) tick: { len = 1, s = "ek", a = [ [0] = 22577244 ] }
        the end is missing: stream is cut in the packet at byte 159
    "#]],
    );
    check(
        "length",
        SMALL,
        &with(50, &[255]),
        expect![[r#"
        [0.000070035] (+?.?????????) tick: { len = 3, s = "rqxi", a = [ [0] = 16487906, [1] = 405, [2] = 68675 ] }
        [0.000070052] (+0.000000017) tick: { len = 1, s = "ek", a = [ [0] = 22577244 ] }
        stream: byte 137: the packet's content ends within an event
    "#]],
    );
}

#[test]
fn sizes_that_no_memory_has() {
    let metadata = "trace { byte_order = le; };
        event { name = many; fields := struct { integer { size = 64; } n; struct { } s[n]; }; };";
    check(
        "empty",
        metadata,
        &[255; 8],
        expect![[r#"
        stream: byte 8: more than 1048576 values in an event
    "#]],
    );
    let metadata = "trace { byte_order = le; };
        event { name = many; fields := struct { integer { size = 64; } n; integer { size = 16; } s[n]; }; };";
    check(
        "sequence",
        metadata,
        &[255; 64],
        expect![[r#"
        stream: byte 8: the packet's content ends within an event
    "#]],
    );
    let metadata = "trace { byte_order = le; };
        event { name = many; fields := struct { integer { size = 8; } x; struct { } s[4000]; }; };";
    let dir = Scratch::new("slow");
    dir.write("metadata", metadata.as_bytes());
    dir.write("stream", &[0; 64]);
    let text = lines(&dir);
    assert_eq!(text.lines().filter(|l| l.starts_with("many: ")).count(), 3);
    expect!["stream: byte 4: more values than a packet of this size can have"]
        .assert_eq(text.lines().last().unwrap_or(""));
    let metadata = "trace { byte_order = le; };
        event { name = many; fields := struct { struct { } a[1000][1000][1000]; }; };";
    check(
        "nested",
        metadata,
        &[0; 64],
        expect![[r#"
            stream: byte 0: more values than a packet of this size can have
        "#]],
    );
    check(
        "none",
        "trace { byte_order = le; }; event { name = none; };",
        &[0; 64],
        expect![[r#"
        stream: byte 0: event `none` takes no space, so its events cannot be counted
    "#]],
    );
    check(
        "negative",
        "trace { byte_order = le; };
        event { name = x; fields := struct { integer { size = 8; signed = true; } n; string s[n]; }; };",
        &[255; 4],
        expect![[r#"
            stream: byte 1: the length of a sequence is negative
        "#]],
    );
}

#[test]
fn without_sizes_and_clock() {
    let metadata = "trace { byte_order = be; }; event { name = \"a\\033b\"; fields := struct {
        integer { size = 4; } a; integer { size = 12; base = 16; } b; string s; }; };";
    check(
        "plain",
        metadata,
        b"\x12\x34x\0\xff\xffy\x1b\x80\0",
        expect![[r#"
        a\x1bb: { a = 1, b = 0x234, s = "x" }
        a\x1bb: { a = 15, b = 0xFFF, s = "y\x1b\x80" }
    "#]],
    );
}

#[test]
fn streams_are_merged_by_time() {
    let dir = Scratch::new("merged");
    dir.write("metadata", samples::LTTNG.as_bytes());
    let metadata = ctf::tsdl::parse("m", samples::LTTNG).expect("metadata");
    let mut count = 0;
    for stream in 0..2 {
        for file in 0..3 {
            // Of one instance: the files follow each other, whatever their names are.
            let spec = PacketSpec { stream, begin: 1000 * (3 - file), step: 40, events: 20, ..PacketSpec::default() };
            let (bytes, written) = packet(&metadata, PacketSpec { sequence: 2 - file, ..spec });
            count += written.len();
            dir.write(&format!("channel{stream}_{file}"), &bytes);
        }
    }
    let reader = Reader::new(vec![Trace::open(&dir).expect("a trace")]);
    assert_eq!(reader.streams(), 2);
    let times: Vec<i64> = reader.map(|item| item.expect("no error").time().expect("a time")).collect();
    assert!(times.is_sorted(), "{times:?}");
    assert_eq!(times.len(), count);
}

#[test]
fn json() {
    let metadata = ctf::tsdl::parse("m", samples::PACKED).expect("metadata");
    let dir = Scratch::new("json");
    dir.write("metadata", samples::PACKED.as_bytes());
    dir.write("stream", &packet(&metadata, PacketSpec { events: 30, seed: 3, ..PacketSpec::default() }).0);
    let mut out = String::new();
    for event in super::property::events(&dir) {
        let mut line = String::new();
        ctf::show::json(&mut line, &metadata, &event);
        serde_json::from_str::<serde_json::Value>(&line).expect("JSON");
        if !out.contains(&event.class.name) {
            out += &format!("{line}\n");
        }
    }
    expect![[r#"
        {"time":100001008000,"host":"be","name":"plain","packet":{"timestamp_begin":1000,"timestamp_end":1813,"content_size":2416,"packet_size":2440,"cpu_id":0,"events_discarded":0},"stream_context":{"len":1},"fields":{"a":3482,"b":162,"m":[[0,6],[3,1]],"o":73,"by_context":[3]}}
        {"time":100001035000,"host":"be","name":"empty","packet":{"timestamp_begin":1000,"timestamp_end":1813,"content_size":2416,"packet_size":2440,"cpu_id":0,"events_discarded":0},"stream_context":{"len":2}}
        {"time":100001076000,"host":"be","name":"nested","packet":{"timestamp_begin":1000,"timestamp_end":1813,"content_size":2416,"packet_size":2440,"cpu_id":0,"events_discarded":0},"stream_context":{"len":0},"context":{"len2":1},"fields":{"tag":{"value":-3,"labels":["minus"]},"outer":[{"len3":1,"inner":[{"deep":-2032,"s":"rdg"}]},{"len3":3,"inner":[{"deep":2237,"s":"qspk"},{"deep":1854,"s":"rrbk"},{"deep":2541,"s":"ffk"}]}],"v":{"minus":5},"seq":[[0,0]]}}
    "#]].assert_eq(&out);
}
