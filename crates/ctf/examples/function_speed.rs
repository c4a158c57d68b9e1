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
use std::path::{Path, PathBuf};
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
    let (mut buffer, mut tsc) = (vec![0; RUN * RECORD], 1u64 << 31);
    let fill = |buffer: &mut [u8], tsc: &mut u64| {
        // A run does not span a change of the upper half.
        let from = if *tsc >> 32 == (*tsc + 60 * RUN as u64) >> 32 { *tsc } else { ((*tsc >> 32) + 1) << 32 };
        *tsc = from;
        for (i, record) in (0u64..).zip(buffer.as_chunks_mut::<RECORD>().0) {
            let word = (i * 7 % 1000 + 1) << 1 | i & 1;
            *record = (*tsc & 0xffff_ffff | word << 32).to_le_bytes();
            *tsc += 60;
        }
        from
    };
    let began = on_cpu();
    (0..runs).for_each(|_| assert!(fill(&mut buffer, &mut tsc) > 0));
    let made = on_cpu() - began;
    tsc = 1 << 31;
    let (began, all) = (on_cpu(), Instant::now());
    for nth in 0..runs {
        let from = fill(&mut buffer, &mut tsc);
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
    }
    let (spent, all) = (on_cpu() - began - made, all.elapsed().as_nanos() as u64);
    for writer in &mut writers {
        files.put(&writer.close())?;
    }
    let bytes = count * RECORD as u64;
    println!("times are those of the processor; in brackets, how long it took");
    let speed = bytes as f64 / spent as f64;
    println!("written: {count} records, {:.2} ns each, {speed:.2} GB/s ({:.2})", each(spent, count), each(all, count));

    read(&dir)?;
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}

/// Reads the trace: thread by thread, in two threads, and in one order.
fn read(dir: &Path) -> Result<(), Box<dyn Error>> {
    for what in ["cold", "warm"] {
        let began = Instant::now();
        let data = Data::open(&Folder::open(dir)?, &UUID, Format::NOW)?;
        println!("opened ({what}): {:.1} ms", began.elapsed().as_nanos() as f64 / 1e6);
        let (began, all) = (on_cpu(), Instant::now());
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
        let (ns, all) = (on_cpu() - began, all.elapsed().as_nanos() as u64);
        println!("by thread: {n} records, {:.2} ns each ({:.2}; {sum})", each(ns, n), each(all, n));
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
        println!("by thread, in two threads: ({:.2}; {all})", each(began.elapsed().as_nanos() as u64, n));
        let (began, all) = (on_cpu(), Instant::now());
        let mut events = data.events(&[], 0, u64::MAX);
        let (mut n, mut sum) = (0, 0);
        while let Some((bytes, _)) = events.next() {
            n += 1;
            sum += bytes.len();
        }
        let (ns, all) = (on_cpu() - began, all.elapsed().as_nanos() as u64);
        println!("merged: {n} events, {:.2} ns each ({:.2}; {sum} bytes)", each(ns, n), each(all, n));
    }
    Ok(())
}

fn each(ns: u64, n: u64) -> f64 {
    ns as f64 / n as f64
}

/// How long the calling thread has been on a processor, ns.
fn on_cpu() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0)
}
