//! What is written into a directory is read back: the same bytes in the order of time, whatever the events are. A file that was
//! cut off gives its whole packets, and one with wrong bytes an error that says where.

use ctf::folder::Folder;
use ctf::format::Format;
use ctf::native::Data;
use ctf::packet::PacketWriter;
use ctf::store::{Dir, Files, Limit};
use events::encode::{self, Fixed};
use events::layout::{Layout, Shape};
use events::message::MSGHDR;
use events::{Event, StreamId, generated as g};
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use testkit::Scratch;

/// The identity of the traces.
const UUID: [u8; 16] = [9; 16];

/// Opens the streams in a directory.
fn open(dir: &Path) -> Data {
    open_as(dir, Format::NOW)
}

fn open_as(dir: &Path, format: Format) -> Data {
    Data::open(&Folder::open(dir).expect("a directory"), &UUID, format).expect("a trace")
}

/// Who runs the tests.
fn me(parent: &Path) -> u32 {
    use std::os::unix::fs::MetadataExt;
    let probe = parent.with_extension("probe");
    fs::write(&probe, "").expect("a file");
    let uid = fs::metadata(&probe).expect("a file").uid();
    fs::remove_file(&probe).expect("a file");
    uid
}

/// The stream of the ptrace backend, after those of two processors.
const STREAMS: [StreamId; 3] = [CPU_0, StreamId::cpu(1), StreamId::TRACER];
const CPU_0: StreamId = StreamId::cpu(0);

/// What an event is made of.
#[derive(Clone, Debug)]
struct Seed {
    stream: usize,
    class: usize,
    /// Since the event before, ns; 0 makes equal times.
    later: u64,
    /// The packet is closed after it.
    close: bool,
    cap: u16,
    args: [u64; 12],
    bytes: Vec<u8>,
}

fn seed() -> impl Strategy<Value = Seed> {
    let head = (0..STREAMS.len(), 0..g::SCHEMAS.len(), 0..4u64, prop::bool::weighted(0.2));
    let body = (any::<u16>(), prop::array::uniform12(any::<u64>()), prop::collection::vec(any::<u8>(), 0..60));
    (head, body).prop_map(|((stream, class, later, close), (cap, args, bytes))| Seed {
        stream,
        class,
        later,
        close,
        cap,
        args,
        bytes,
    })
}

fn iovecs(bytes: &[u8], out: &mut Vec<u8>) {
    let parts: Vec<&[u8]> = bytes.chunks(20).collect();
    out.extend_from_slice(&(parts.len() as u16).to_le_bytes());
    for part in parts {
        out.extend_from_slice(&[7; 16]);
        out.push(1);
        encode::bytes_tail(out, part);
    }
}

fn tail(shape: Shape, bytes: &[u8], out: &mut Vec<u8>) {
    match shape {
        Shape::Str => encode::str_tail(out, bytes),
        Shape::Bytes => encode::bytes_tail(out, bytes),
        Shape::One(n) => {
            let one: Vec<u8> = bytes.iter().copied().cycle().take(n.into()).collect();
            encode::one_tail(out, (!bytes.is_empty()).then_some(&one[..]));
        }
        Shape::Many(n) => encode::many_tail(out, bytes, n.into()),
        Shape::Strv => {
            let strings: Vec<&[u8]> = bytes.chunks(9).collect();
            out.extend_from_slice(&(strings.len() as u16 + 3).to_le_bytes());
            out.extend_from_slice(&(strings.len() as u16).to_le_bytes());
            for s in strings {
                out.extend_from_slice(&[9; 8]);
                out.push(1);
                encode::str_tail(out, s);
            }
        }
        Shape::Iov => iovecs(bytes, out),
        Shape::Msg => {
            out.extend_from_slice(&1u16.to_le_bytes());
            out.resize(out.len() + MSGHDR + 4, 5);
            out.push(0x55);
            encode::bytes_tail(out, bytes);
            iovecs(bytes, out);
            encode::bytes_tail(out, &bytes[..bytes.len() / 2]);
        }
    }
}

fn event(seed: &Seed, time: u64) -> Vec<u8> {
    let schema = g::SCHEMAS[seed.class];
    let layout = Layout::of(schema);
    let fixed =
        Fixed { time, cap: seed.cap, tid: seed.args[0] as u32, pid: 7, start: time / 2, ret: -2, ..Fixed::default() };
    let mut out = Vec::new();
    encode::fixed(&mut out, schema, &layout, &fixed, &seed.args);
    layout.tails.iter().for_each(|t| tail(t.shape, &seed.bytes, &mut out));
    out
}

/// An event as it was written: time, stream, bytes.
type Written = (u64, StreamId, Vec<u8>);

/// Writes a trace; what is in it, in the order in which it must be read.
fn write(dir: &Path, seeds: &[Seed], limit: Limit) -> Vec<Written> {
    write_and_count(dir, seeds, limit, Format::NOW).0
}

/// Writes a trace; what is in it, and how many events were overwritten by newer ones.
fn write_and_count(dir: &Path, seeds: &[Seed], limit: Limit, format: Format) -> (Vec<Written>, u64) {
    let mut dir = Dir::create(dir, me(dir)).expect("a directory");
    dir.describe("", "", 0).expect("metadata");
    let mut files = Files::new(dir, limit).packed(format == Format::V5);
    let mut writers = STREAMS.map(|s| PacketWriter::new(UUID, s, 900));
    let mut all = Vec::new();
    let mut now = 1000;
    for seed in seeds {
        now += seed.later;
        let bytes = event(seed, now);
        assert_eq!(
            Event::parse(&bytes).map(|e| e.bytes.len()).ok(),
            Some(bytes.len()),
            "{}",
            g::SCHEMAS[seed.class].name
        );
        let writer = &mut writers[seed.stream];
        if writer.push(&bytes) || seed.close {
            files.put(&writer.close()).expect("a packet");
        }
        all.push((now, STREAMS[seed.stream], bytes));
    }
    for f in &mut writers {
        files.put(&f.close()).expect("a packet");
        assert_eq!(f.clamped(), 0);
    }
    all.sort_by_key(|e| (e.0, e.1));
    (all, files.lost().overwritten)
}

fn known() -> Vec<Option<u16>> {
    (0..g::SCHEMAS.len() as u16).map(Some).collect()
}

fn read(data: &Data, from: u64, to: u64) -> Vec<Written> {
    let known = known();
    let mut events = data.events(&known, from, to);
    let mut all = Vec::new();
    while let Some((bytes, stream)) = events.next() {
        let time = bytes.first_chunk().map_or(0, |t| u64::from_le_bytes(*t));
        all.push((time, stream, bytes.to_vec()));
    }
    assert_eq!(events.events_read(), all.len() as u64);
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(seeds in prop::collection::vec(seed(), 1..200), parts: bool, packed: bool) {
        let dir = Scratch::new("streams");
        // So large that nothing goes, so small that there are several parts.
        let limit = if parts { Limit::Files(1 << 20) } else { Limit::None };
        let format = if packed { Format::V5 } else { Format::NOW };
        let (all, _) = write_and_count(&dir, &seeds, limit, format);
        let data = open_as(&dir, format);
        prop_assert!(data.truncated.is_empty());
        prop_assert_eq!(read(&data, 0, u64::MAX), all);
    }

    #[test]
    fn what_a_limit_leaves_is_the_newest_of_each_stream(
        seeds in prop::collection::vec(seed(), 50..300), limit in 2000..20_000u64,
    ) {
        let dir = Scratch::new("streams");
        let (all, overwritten) = write_and_count(&dir, &seeds, Limit::Files(limit), Format::NOW);
        let files = fs::read_dir(&dir).unwrap().map(|e| e.unwrap()).filter(|e| {
            e.file_name() != "metadata" && e.file_name() != ".trapline"
        });
        prop_assert!(files.map(|e| e.metadata().unwrap().len()).sum::<u64>() <= limit);
        let left = read(&open(&dir), 0, u64::MAX);
        prop_assert_eq!(left.len() as u64 + overwritten, all.len() as u64);
        // A packet that is larger than the limit leaves a hole; without one, what is left of a stream is its end.
        let whole = Scratch::new("streams");
        write(&whole, &seeds, Limit::None);
        let whole = open(&whole);
        let largest = whole.streams.iter().flat_map(|s| &s.packets).map(|p| p.info.size).max();
        if largest <= Some(limit) {
            for stream in STREAMS {
                let of = |l: &[Written]| l.iter().filter(|e| e.1 == stream).cloned().collect::<Vec<_>>();
                let (left, all) = (of(&left), of(&all));
                prop_assert!(left.iter().zip(&all[all.len() - left.len()..]).filter(|(a, b)| a != b).count() == 0);
            }
        }
    }

    #[test]
    fn a_window_is_what_lies_in_it(
        seeds in prop::collection::vec(seed(), 1..150), from in 0..400u64, width in 0..200u64,
    ) {
        let dir = Scratch::new("streams");
        let all = write(&dir, &seeds, Limit::None);
        let data = open(&dir);
        let last = all.last().map_or(0, |e| e.0);
        let (first, end) = (all[0].0, last);
        prop_assert!(data.span().is_some_and(|s| s.0 <= first && s.1 == end));
        let (from, to) = (990 + from, 990 + from + width);
        let inside: Vec<_> = all.iter().filter(|e| (from..=to).contains(&e.0)).cloned().collect();
        prop_assert_eq!(read(&data, from, to), inside);
    }

    #[test]
    fn wrong_bytes_are_read_or_left_out(
        seeds in prop::collection::vec(seed(), 1..40), flips in prop::collection::vec((any::<prop::sample::Index>(), 1..=255u8), 1..6),
        packed: bool,
    ) {
        let dir = Scratch::new("streams");
        let format = if packed { Format::V5 } else { Format::NOW };
        let (all, _) = write_and_count(&dir, &seeds, Limit::None, format);
        let path = dir.join("cpu_1");
        let mut bytes = fs::read(&path).unwrap();
        for (at, bits) in &flips {
            let at = at.index(bytes.len());
            bytes[at] ^= bits;
        }
        fs::write(&path, &bytes).unwrap();
        for (from, to) in [(0, u64::MAX), (1010, 1050)] {
            let data = open_as(&dir, format);
            let events = read(&data, from, to);
            prop_assert!(events.len() <= seeds.len() + bytes.len() / 16);
            // Columns have checksums: what they do not refuse is what was written.
            prop_assert!(!packed || events.iter().all(|e| all.iter().any(|a| a.2 == e.2)));
            for e in &events {
                prop_assert!(Event::parse(&e.2).is_ok());
            }
            if let Some(damage) = data.damage().first {
                prop_assert!(damage.path == path && damage.at + damage.rest <= bytes.len() as u64, "{:?}", damage);
            }
        }
    }
}

/// What is damaged is left out up to the next packet, and said; zeros at the end are what was never written.
#[test]
fn what_is_around_damage_is_read() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let seeds = prop::collection::vec(seed(), 60).new_tree(&mut runner).expect("events").current();
    let dir = Scratch::new("streams");
    let all = write(&dir, &seeds, Limit::None);
    let path = dir.join("cpu_0");
    let whole = fs::read(&path).expect("stream");
    let packets = open(&dir).streams[0].packets.clone();
    let full: Vec<_> = packets.iter().filter(|p| p.info.content > ctf::packet::HEADER as u64).collect();
    assert!(full.len() > 2, "{packets:?}");
    let without = |packet: &ctf::native::Place| {
        let inside = |e: &Written| e.1 == CPU_0 && (packet.info.begin..=packet.info.end).contains(&e.0);
        all.iter().filter(|e| !inside(e)).cloned().collect::<Vec<_>>()
    };
    let size = whole.len() as u64;
    // A head; the class of a packet's first event.
    for (at, what, from_head) in [(0, "magic", true), (ctf::packet::HEADER + 8, "class 65535", false)] {
        let packet = full[1];
        let at = packet.at + at as u64;
        let mut bytes = whole.clone();
        bytes[at as usize..at as usize + 2].fill(0xff);
        fs::write(&path, &bytes).expect("stream");
        let data = open(&dir);
        assert_eq!(read(&data, 0, u64::MAX), without(packet), "{what}");
        let damage = data.damage();
        let (1, Some(one)) = (damage.places, &damage.first) else { panic!("{damage:?}") };
        let place = if from_head { packet.at } else { packet.at + ctf::packet::HEADER as u64 };
        assert!((one.at, one.path.clone()) == (place, path.clone()) && one.what.contains(what), "{one:?}");
        let end = packet.at + if from_head { packet.info.size } else { packet.info.content };
        assert_eq!(one.at + one.rest, end);
        assert!(data.truncated.is_empty());
    }
    // A size that leads beyond the file does not make what follows a truncated end.
    let mut bytes = whole.clone();
    let at = full[1].at as usize + 56;
    bytes[at..at + 8].copy_from_slice(&(8 * 2 * size).to_le_bytes());
    fs::write(&path, &bytes).expect("stream");
    let data = open(&dir);
    assert_eq!((read(&data, 0, u64::MAX), data.truncated.len()), (without(full[1]), 0));
    assert_eq!(data.damage().places, 1);
    for zeros in [1, 100, 200_000] {
        let mut bytes = whole.clone();
        bytes.resize(whole.len() + zeros, 0);
        fs::write(&path, &bytes).expect("stream");
        let data = open(&dir);
        assert_eq!(read(&data, 0, u64::MAX), all);
        assert_eq!(data.truncated, [ctf::native::Truncated { path: path.clone(), at: size, rest: zeros as u64 }]);
        assert_eq!(data.damage(), ctf::native::Damages::default());
    }
}

#[test]
fn every_cut_leaves_the_whole_packets() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let seeds = prop::collection::vec(seed(), 40).new_tree(&mut runner).expect("events").current();
    let dir = Scratch::new("streams");
    let all = write(&dir, &seeds, Limit::None);
    let path = dir.join("cpu_0");
    let whole = fs::read(&path).expect("stream");
    let places: Vec<(u64, u64)> = {
        let data = open(&dir);
        let stream = data.streams.iter().find(|s| s.id == CPU_0).expect("stream 0");
        stream.packets.iter().map(|p| (p.at, p.info.size)).collect()
    };
    assert!(places.len() > 2, "{places:?}");
    for cut in (0..whole.len() as u64).rev() {
        fs::OpenOptions::new().write(true).open(&path).and_then(|f| f.set_len(cut)).expect("cut");
        let data = open(&dir);
        let left: Vec<_> = places.iter().copied().filter(|(at, size)| at + size <= cut).collect();
        let end = left.last().map_or(0, |(at, size)| at + size);
        let found = data.streams.iter().find(|s| s.id == CPU_0).map_or(0, |s| s.packets.len());
        assert_eq!(found, left.len(), "cut at {cut}");
        let truncated: Vec<_> = data.truncated.iter().map(|t| (t.at, t.rest)).collect();
        assert_eq!(truncated, if cut > end { vec![(end, cut - end)] } else { vec![] }, "cut at {cut}");
        let events = read(&data, 0, u64::MAX);
        // Of the other streams everything, of this one a prefix.
        let others = |l: &[Written]| l.iter().filter(|e| e.1 != CPU_0).cloned().collect::<Vec<_>>();
        assert_eq!(others(&events), others(&all));
        let of_it: Vec<_> = events.iter().filter(|e| e.1 == CPU_0).collect();
        let were: Vec<_> = all.iter().filter(|e| e.1 == CPU_0).take(of_it.len()).collect();
        assert_eq!(of_it, were, "cut at {cut}");
    }
    assert_eq!(read(&open(&dir), 0, u64::MAX).iter().filter(|e| e.1 == CPU_0).count(), 0);
}
