//! Function records in packets: what is written comes back at the right times, and whatever the bytes are, reading them ends.

use ctf::folder::Folder;
use ctf::format::Format;
use ctf::native::Data;
use ctf::packet::PacketWriter;
use events::functions::{HIGH, Kind, Moment, RECORD, kind};
use events::stream::Scope;
use events::{Event, StreamId};
use testkit::{Random, Scratch, rounds};

const UUID: [u8; 16] = [9; 16];
const STREAM: StreamId = StreamId::new(Scope::Thread(7), 1);

fn open(dir: &Scratch) -> Option<Data> {
    Data::open(&Folder::open(dir).expect("a directory"), &UUID, Format::NOW).ok()
}

/// Records with these times and words.
fn records(all: &[(u64, u32)]) -> Vec<u8> {
    all.iter().flat_map(|(t, w)| [*t as u32, *w].map(u32::to_le_bytes).concat()).collect()
}

/// Two moments, and the records between them.
type Between = (Moment, Moment, Vec<(u64, u32)>);

/// Writes runs: records with one upper half, between two moments. The bytes of all packets.
fn written(writer: &mut PacketWriter, runs: &[Between]) -> Vec<u8> {
    let mut file = writer.close().bytes;
    for (first, last, all) in runs {
        let (bytes, high) = (records(all), (all[0].0 >> 32) as u32);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            if !writer.takes_records(high) {
                file.extend(writer.close().bytes);
            }
            let n = writer.push_records(rest, high, *first, *last);
            rest = &rest[n..];
        }
        file.extend(writer.close().bytes);
    }
    file
}

/// Time and word of each record, thread by thread; and merged, as many and at the same times.
fn read(data: &Data) -> Vec<(u64, u32)> {
    let mut all = Vec::new();
    for thread in data.function_threads() {
        let (mut last, mut packets) = (0, thread.packets(0..=u64::MAX));
        while let Some(packet) = packets.next() {
            for r in packet.records() {
                assert!(r.time >= last && (packet.begin..=packet.end).contains(&r.time), "{r:?} {packet:?}");
                last = r.time;
                all.push((r.time, r.function << 1 | u32::from(r.exit)));
            }
        }
    }
    let mut events = data.events(&[], 0, u64::MAX);
    let (mut merged, mut last) = (Vec::new(), 0);
    while let Some((bytes, _)) = events.next() {
        let ev = Event::parse(bytes).expect("an event");
        assert!(ev.time() >= last);
        last = ev.time();
        match kind(ev.schema) {
            Some(Kind::Lost | Kind::Begun) => {}
            which => {
                merged.push((ev.time(), (ev.value_of("number") as u32) << 1 | u32::from(which == Some(Kind::Exit))))
            }
        }
    }
    let mut sorted = all.clone();
    sorted.sort();
    merged.sort();
    assert_eq!(sorted, merged);
    all
}

#[test]
fn each_packet_has_its_own_clock() {
    // A second each; the counter runs at 2.5 GHz, then at 2.5005 GHz, then more slowly.
    let (mut tsc, mut ns, mut runs, mut wanted) = (7 << 32, 1_000_000_000u64, Vec::new(), Vec::new());
    for rate in [2.5, 2.5005, 2.499] {
        // A new upper half, as after a marker.
        let from = Moment { tsc: ((tsc >> 32) + 1) << 32, monotonic: ns };
        let times: Vec<u64> = (0..1000u64).map(|i| i * 1_000_000).collect();
        let at = |t: u64| from.tsc + (t as f64 * rate) as u64;
        // One upper half has 1.7 s.
        runs.push((from, Moment { tsc: at(1_000_000_000), monotonic: ns + 1_000_000_000 }, {
            times.iter().map(|t| (at(*t), 2)).collect::<Vec<_>>()
        }));
        wanted.extend(times.iter().map(|t| ns + t));
        (tsc, ns) = (at(1_000_000_000), ns + 1_000_000_000);
    }
    let dir = Scratch::new("functions-clock");
    let mut writer = PacketWriter::of_functions(UUID, STREAM, 3, runs[0].0);
    dir.write("thread", &written(&mut writer, &runs));
    let all = read(&open(&dir).expect("a trace"));
    assert_eq!((all.len(), writer.clamped()), (wanted.len(), 0));
    for ((time, _), wanted) in all.iter().zip(&wanted) {
        assert!(time.abs_diff(*wanted) <= 3, "{time} {wanted}");
    }
}

#[test]
fn times_that_go_back_are_set_to_the_one_before_and_counted() {
    let moment = |tsc: u64| Moment { tsc, monotonic: tsc };
    let h = 5 << 32;
    let runs = [
        (moment(h), moment(h + 100), vec![(h + 10, 2), (h + 30, 4), (h + 20, 5), (h + 40, 3)]),
        // All of it, with another upper half.
        (moment(h), moment(h + 100), vec![(10, 2), (20, 3)]),
        (moment(h), moment(h + 200), vec![(h + 35, 2), (h + 50, 3)]),
    ];
    let dir = Scratch::new("functions-back");
    let mut writer = PacketWriter::of_functions(UUID, STREAM, 3, moment(h));
    dir.write("thread", &written(&mut writer, &runs));
    let all = read(&open(&dir).expect("a trace"));
    let [a, b, c, d] = [10, 30, 40, 50].map(|t| h + t);
    assert_eq!(all, [(a, 2), (b, 4), (b, 5), (c, 3), (c, 2), (c, 3), (c, 2), (d, 3)]);
    assert_eq!(writer.clamped(), 4);
}

#[test]
fn packets_are_full_and_records_whole() {
    let moment = |tsc: u64| Moment { tsc, monotonic: tsc };
    let all: Vec<(u64, u32)> = (0..100_000).map(|i| (1 << 33 | i, (i as u32 + 1) << 1)).collect();
    let dir = Scratch::new("functions-full");
    for full in [0, 200, 4096, ctf::packet::FULL] {
        let some = if full < 4096 { &all[..100] } else { &all };
        let mut writer = PacketWriter::of_functions(UUID, STREAM, 3, moment(1 << 33)).full_at(full);
        dir.write("thread", &written(&mut writer, &[(moment(1 << 33), moment(2 << 33), some.to_vec())]));
        let data = open(&dir).expect("a trace");
        assert!(
            data.streams[0].packets.iter().all(|p| p.info.size <= full.max(136 + RECORD) as u64 || p.info.seq == 0)
        );
        assert_eq!((read(&data).len(), data.discarded(), data.damage().places), (some.len(), 0, 0));
    }
}

#[test]
fn a_window_has_the_records_in_it() {
    let moment = |tsc: u64| Moment { tsc, monotonic: tsc };
    let run = |from: u64| (moment(from), moment(from + 10), (0..10).map(|i| (from + i, 2)).collect::<Vec<_>>());
    let dir = Scratch::new("functions-window");
    let mut writer = PacketWriter::of_functions(UUID, STREAM, 3, moment(0));
    dir.write("thread", &written(&mut writer, &[run(100), run(200), run(300)]));
    let data = open(&dir).expect("a trace");
    let mut events = data.events(&[], 205, 304);
    let mut times = Vec::new();
    while let Some((bytes, _)) = events.next() {
        times.push(Event::parse(bytes).expect("an event").time());
    }
    assert_eq!(times, [205, 206, 207, 208, 209, 300, 301, 302, 303, 304]);
}

#[test]
fn changed_packets() {
    let moment = |tsc: u64| Moment { tsc, monotonic: tsc * 2 / 5 };
    let mut rng = Random::new(7);
    let run = |rng: &mut Random, from: u64| {
        let all = (0..40).map(|i| (from + i * 10, (rng.below(5) as u32) << 1 | i as u32 & 1)).collect::<Vec<_>>();
        (moment(from), moment(from + 400), all)
    };
    let runs: Vec<_> = (0..6).map(|i| run(&mut rng, i << 31)).collect();
    let mut writer = PacketWriter::of_functions(UUID, STREAM, 3, moment(0));
    let whole = written(&mut writer, &runs);
    let dir = Scratch::new("functions-changed");
    let mut found = 0;
    for _ in 0..rounds(2000) {
        let mut bytes = whole.clone();
        for _ in 0..=rng.index(4) {
            let at = rng.index(bytes.len());
            match rng.index(6) {
                0 => bytes[at] ^= 1 << rng.index(8),
                1 => bytes.iter_mut().skip(at & !7).take(8).for_each(|b| *b = 255),
                2 => bytes.iter_mut().skip(at & !7).take(8).for_each(|b| *b = 0),
                3 => bytes.truncate(at.max(40)),
                4 => {
                    // Words that are no records.
                    let word = [0, HIGH, u32::MAX][rng.index(3)].to_le_bytes();
                    bytes.iter_mut().skip(at & !3).zip(word).for_each(|(b, w)| *b = w);
                }
                _ => {
                    let end = (at + rng.index(200)).min(bytes.len());
                    let copy = bytes[at..end].to_vec();
                    let to = rng.index(bytes.len());
                    bytes.splice(to..to, copy);
                }
            }
        }
        dir.write("thread", &bytes);
        if let Some(data) = open(&dir) {
            found += read(&data).len();
            // A version without function records takes them for events that it does not know.
            if let Ok(old) = Data::open(&Folder::open(&dir).expect("a directory"), &UUID, Format::V2) {
                let mut events = old.events(&[], 0, u64::MAX);
                while events.next().is_some() {}
            }
        }
    }
    assert!(found > 1000, "{found}");
}
