//! Traces that both babeltrace2 and we read: equal lines.

use std::process::Command;

use ctf::generic::{Item, Reader, Trace};
use ctf::show::{Lines, TimeFormat};

use super::encode::{PacketSpec, packet};
use super::samples;
use testkit::Scratch;
use testkit::{has, skip};

/// Our lines of a trace, which has neither errors nor gaps.
pub fn ours(dir: &std::path::Path) -> String {
    let mut reader = Reader::new(vec![Trace::open(dir).expect("a trace")]);
    let mut lines = Lines::new(TimeFormat::TimeOfDay(0));
    let mut out = String::new();
    while let Some(item) = reader.next() {
        if let Item::Event(event) = item.expect("no error") {
            let metadata = &reader.stream(event.stream).expect("its stream").metadata;
            lines.event(&mut out, metadata, &event);
        }
    }
    out
}

/// Lines of babeltrace2 within 20 s and 1 GB, and what it says besides.
fn theirs(dir: &std::path::Path) -> (String, String) {
    let script = "ulimit -v 1000000; exec timeout 20 babeltrace2 --clock-gmt \"$0\"";
    let out = Command::new("sh").args(["-c", script]).arg(dir).output().expect("babeltrace2");
    let errors = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{} {errors}", out.status);
    (String::from_utf8_lossy(&out.stdout).into_owned(), errors)
}

fn compare(name: &str, metadata: &str, streams: &[usize], spec: PacketSpec) {
    if !has("babeltrace2") {
        return skip("package:babeltrace2", "no babeltrace2");
    }
    let model = ctf::tsdl::parse("metadata", metadata).expect("metadata");
    for seed in 0..8 {
        let dir = Scratch::new(&format!("{name}-{seed}"));
        dir.write("metadata", metadata.as_bytes());
        let mut count = 0;
        for stream in streams {
            let mut file = Vec::new();
            for sequence in 0..3 {
                let begin = spec.begin + sequence * spec.events * spec.step;
                // babeltrace2 2.0.4 shows an empty string as what was in the same field of the event before: none are empty.
                let seed = seed * 100 + sequence;
                let spec = PacketSpec { stream: *stream, seed, begin, sequence, least: 1, ..spec };
                let (bytes, written) = packet(&model, spec);
                count += written.len();
                file.extend(bytes);
            }
            dir.write(&format!("stream{stream}"), &file);
        }
        let (mut lines, mut errors) = theirs(&dir);
        assert_eq!(errors, "");
        // Events read with the metadata that our printer makes.
        assert_eq!(ours(&dir).lines().count(), count);
        for _ in 0..2 {
            let (ours, theirs) = (ours(&dir), &lines);
            for (ours, theirs) in ours.lines().zip(theirs.lines()) {
                assert_eq!(ours, theirs);
            }
            assert_eq!(ours.lines().count(), theirs.lines().count());
            dir.write("metadata", ctf::print::tsdl(&model).as_bytes());
            (lines, errors) = self::theirs(&dir);
            assert_eq!(errors, "");
        }
    }
}

#[test]
fn big_endian_and_packed() {
    compare("packed", samples::PACKED, &[0], PacketSpec { begin: 77, step: 2000, events: 20, ..PacketSpec::default() });
}

#[test]
fn two_clocks() {
    compare("clocks", samples::PACKED, &[0, 1], PacketSpec { begin: 9, step: 3, events: 20, ..PacketSpec::default() });
}

#[test]
fn lttng_shaped() {
    let spec = PacketSpec { begin: (1 << 33) - 100_000_000, step: 120_000_000, events: 40, ..PacketSpec::default() };
    compare("lttng", samples::LTTNG, &[0, 1], spec);
}

/// A program with an event of every type of field of `lttng/tracepoint.h`, recorded with buffers of its own (LTTng 2.13.9).
#[test]
fn recorded_by_lttng() {
    if !has("babeltrace2") {
        return skip("package:babeltrace2", "no babeltrace2");
    }
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/lttng_ust");
    let (lines, errors) = theirs(&dir);
    assert_eq!((ours(&dir), errors.as_str()), (lines, ""));
}

#[test]
fn discarded_events_are_counted_alike() {
    if !has("babeltrace2") {
        return skip("package:babeltrace2", "no babeltrace2");
    }
    let dir = Scratch::new("discarded");
    let model = ctf::tsdl::parse("m", samples::LTTNG).expect("metadata");
    dir.write("metadata", samples::LTTNG.as_bytes());
    let discarded = [0, 0, 5, 5, 1005, 1006];
    let made = discarded.iter().enumerate().map(|(sequence, discarded)| {
        let (sequence, discarded) = (sequence as u64, *discarded);
        packet(&model, PacketSpec { sequence, discarded, begin: 5000 * sequence, ..PacketSpec::default() }).0
    });
    dir.write("stream", &made.flatten().collect::<Vec<u8>>());
    let (_, errors) = theirs(&dir);
    // "WARNING: Tracer discarded 5 events between …"
    let count = |line: &str| line.split_once("discarded ")?.1.split_once(" event")?.0.parse().ok();
    let theirs: Vec<u64> = errors.lines().filter_map(count).collect();
    let reader = Reader::new(vec![Trace::open(&dir).expect("a trace")]);
    let ours = reader.filter_map(|item| match item.expect("no error") {
        Item::Discarded { count, .. } => Some(count),
        _ => None,
    });
    assert_eq!(ours.collect::<Vec<u64>>(), theirs, "{errors}");
    assert_eq!(theirs, [5, 1000, 1]);
}
