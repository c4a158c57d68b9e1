//! How fast function records are written into a trace and read back: `cargo run --release -p ctf --example function_speed [MILLIONS] [DIR]`.
//!
//! Two threads' records in runs of 8,192, as an agent's chunks have them; then each thread's records, then all events in one order.

use ctf::folder::Folder;
use ctf::format::Format;
use ctf::native::Data;
use ctf::packet::PacketWriter;
use ctf::store::{Dir, Files, Limit};
use events::StreamId;
use events::functions::{Moment, RECORD, Run};
use events::stream::Scope;
use std::error::Error;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Instant;

const UUID: [u8; 16] = [9; 16];
const RUN: usize = 8192;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let millions: u64 = args.next().map_or(Ok(20), |n| n.parse())?;
    let base = args.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = base.join(format!("function-speed-{}", std::process::id()));
    let (runs, count) = (millions * 1_000_000 / RUN as u64, millions * 1_000_000 / RUN as u64 * RUN as u64);

    let mut files = Files::new(Dir::create(&dir, std::fs::metadata(&base)?.uid())?, Limit::None);
    let streams = [1, 2].map(|tid| StreamId::new(Scope::Thread(tid), 1));
    let mut writers = streams.map(|s| PacketWriter::of_functions(UUID, s, 1, Moment::default()));
    let (mut buffer, mut tsc, mut spent) = (Vec::new(), 1u64 << 31, 0);
    for nth in 0..runs {
        buffer.clear();
        let from = tsc;
        for i in 0..RUN as u64 {
            let word = ((i * 7 % 1000 + 1) << 1 | i & 1) as u32;
            buffer.extend([tsc as u32, word].map(u32::to_le_bytes).concat());
            tsc += 60;
        }
        if from >> 32 != tsc >> 32 {
            continue;
        }
        let began = Instant::now();
        let writer = &mut writers[nth as usize % 2];
        let moment = |tsc| Moment { tsc, monotonic: tsc * 2 / 5 };
        let run = Run {
            stream: streams[nth as usize % 2],
            pid: 1,
            begins: false,
            records: &buffer,
            high: (from >> 32) as u32,
            from: moment(from),
            to: moment(tsc),
            dropped: 0,
        };
        for (high, part) in run.parts() {
            let mut rest = part;
            while !rest.is_empty() {
                if !writer.takes_records(high) {
                    files.put(&writer.close())?;
                }
                let n = writer.push_records(rest, high, run.from, run.to);
                rest = &rest[n..];
                if writer.is_full() {
                    let packet = writer.close();
                    files.put(&packet)?;
                    writer.reuse(packet.bytes);
                }
            }
        }
        spent += began.elapsed().as_nanos();
    }
    for writer in &mut writers {
        files.put(&writer.close())?;
    }
    let bytes = count * RECORD as u64;
    let each = |ns: u128, n: u64| ns as f64 / n as f64;
    println!("written: {count} records, {:.2} ns each, {:.2} GB/s", each(spent, count), bytes as f64 / spent as f64);

    for what in ["cold", "warm"] {
        let began = Instant::now();
        let data = Data::open(&Folder::open(&dir)?, &UUID, Format::NOW)?;
        println!("opened ({what}): {:.1} ms", began.elapsed().as_nanos() as f64 / 1e6);
        let began = Instant::now();
        let (mut n, mut sum) = (0, 0);
        for thread in data.function_threads() {
            let mut packets = thread.packets(0..=u64::MAX);
            while let Some(packet) = packets.next() {
                for r in packet.records() {
                    n += 1;
                    sum ^= r.time + u64::from(r.function) + u64::from(r.exit);
                }
            }
        }
        let ns = began.elapsed().as_nanos();
        println!("by thread: {n} records, {:.2} ns each ({sum})", each(ns, n));
        let began = Instant::now();
        let all: u64 = std::thread::scope(|s| {
            let read = |thread: ctf::functions::Thread<'_>| {
                let (mut packets, mut sum) = (thread.packets(0..=u64::MAX), 0);
                while let Some(packet) = packets.next() {
                    packet.records().for_each(|r| sum ^= r.time + u64::from(r.function));
                }
                sum
            };
            let threads: Vec<_> = data.function_threads().into_iter().map(|t| s.spawn(move || read(t))).collect();
            threads.into_iter().filter_map(|t| t.join().ok()).fold(0, |a, b| a ^ b)
        });
        println!("by thread, in two threads: {:.2} ns each ({all})", each(began.elapsed().as_nanos(), n));
        let began = Instant::now();
        let mut events = data.events(&[], 0, u64::MAX);
        let (mut n, mut sum) = (0, 0);
        while let Some((bytes, _)) = events.next() {
            n += 1;
            sum += bytes.len();
        }
        println!("merged: {n} events, {:.2} ns each ({sum} bytes)", each(began.elapsed().as_nanos(), n));
    }
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}
