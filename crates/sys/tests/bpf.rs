//! bpf(2) against the running kernel: hand-written programs, attached for moments, to this process only.
//!
//! Wants root; a test that may not use bpf(2) counts as skipped.

mod lab;

use lab::*;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};
use sys::bpf::info::{self, Object};
use sys::bpf::link::{Link, tracepoint_id};
use sys::bpf::map::{self, Map};
use sys::bpf::prog::{Program, ProgramKind, ProgramSpec, btf_load};
use sys::bpf::{iter, ring::Ring};
use sys::btf::{KernelBtf, Kind, build};
use sys::processors;

/// Programs and maps of ours that are still there.
fn left(names: &[&str]) -> Vec<String> {
    let mut left = Vec::new();
    for id in info::ids(Object::Program).unwrap() {
        left.extend(info::by_id(Object::Program, id).and_then(|fd| info::program(&fd)).map(|p| p.name));
    }
    for id in info::ids(Object::Map).unwrap() {
        left.extend(info::by_id(Object::Map, id).and_then(|fd| info::map(&fd)).map(|m| m.name));
    }
    left.retain(|n| names.contains(&n.as_str()));
    left
}

/// The kernel frees programs and maps a moment after their last user.
fn nothing_is_left(names: &[&str]) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(5) {
        if left(names).is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("still there: {:?}", left(names));
}

#[test]
fn a_raw_tracepoint_fills_a_ring() {
    let Some(_alone) = start() else { return };
    let map = Map::ring("tl_ring", 1 << 16).unwrap();
    let mut ring = Ring::new(&map).unwrap();
    let mut body: Vec<Insn> = vec![(0x79, 7, 6, 8, 0), (0x7b, 10, 7, -16, 0)];
    body.extend(load_map(1, &map));
    body.extend(SEND);
    let program = load(&ProgramSpec::new(ProgramKind::RawTracepoint, "tl_raw", &mine(&body)));
    let stats = info::enable_stats();
    let link = Link::raw_tracepoint(&program, "sys_enter").unwrap();
    let about = info::link(&link).unwrap();
    assert_eq!((about.kind, about.program), (1, info::program(&program).unwrap().id));
    getppid(100);
    drop(link);
    assert!(ring.available() >= 1600);
    let mut numbers = Vec::new();
    let n = ring.drain(|r| numbers.push(number(r)));
    assert_eq!(n, numbers.len());
    assert_eq!(numbers.iter().filter(|n| **n == libc::SYS_getppid as u64).count(), 100);
    assert_eq!((ring.available(), ring.drain(|_| panic!("drained"))), (0, 0));
    let about = info::program(&program).unwrap();
    assert_eq!((about.name.as_str(), about.kind, about.maps), ("tl_raw", 17, 1));
    assert!(stats.is_err() || (about.run_count >= 100 && about.run_time_ns > 0));
    drop((ring, map, program));
    nothing_is_left(&["tl_raw", "tl_ring"]);
}

#[test]
fn a_full_ring_per_cpu_counts_exactly() {
    let Some(_alone) = start() else { return };
    let cpus = processors::possible().unwrap();
    let rings: Vec<Map> = cpus.iter().map(|_| Map::ring("tl_small", 4096).unwrap()).collect();
    let outer = Map::array_of("tl_rings", &rings[0], cpus.last().unwrap() + 1).unwrap();
    for (cpu, ring) in cpus.iter().zip(&rings) {
        outer.put_map(&cpu.to_le_bytes(), ring).unwrap();
    }
    let counters = Map::per_cpu_array("tl_counters", 8, 2).unwrap();
    let mut body = count(&counters, 0);
    body.extend([(0x7a, 10, 0, -16, 7), call(8), (0x63, 10, 0, -4, 0), (0xbf, 2, 10, 0, 0), (0x07, 2, 0, 0, -4)]);
    body.extend(load_map(1, &outer));
    let dropped = count(&counters, 1);
    body.extend([call(1), (0x15, 0, 0, (1 + SEND.len() + 1 + dropped.len()) as i16, 0), (0xbf, 1, 0, 0, 0)]);
    body.extend(SEND);
    body.push((0x15, 0, 0, dropped.len() as i16, 0));
    body.extend(dropped);
    let program = load(&ProgramSpec::new(ProgramKind::RawTracepoint, "tl_full", &mine(&body)));
    let mut rings: Vec<Ring> = rings.iter().map(|r| Ring::new(r).unwrap()).collect();
    let link = Link::raw_tracepoint(&program, "sys_enter").unwrap();
    getppid(2000);
    drop(link);
    // A CPU may still be at the end of its run.
    std::thread::sleep(Duration::from_millis(20));
    let read: usize = rings.iter_mut().map(|r| r.drain(|r| assert_eq!(number(r), 7))).sum();
    let (seen, dropped) = (sum(&counters, 0), sum(&counters, 1));
    assert!(seen >= 2000 && dropped > 0, "{seen} {dropped}");
    assert_eq!(seen, read as u64 + dropped);
}

#[test]
fn task_storage_is_filled_by_typed_tracepoints_and_read_by_an_iterator() {
    let Some(_alone) = start() else { return };
    let btf = KernelBtf::kernel().unwrap();
    let (blob, key, value) = build::value_types("calls", 16);
    let types = btf_load(&blob).unwrap();
    let storage = Map::task_storage("tl_storage", types.as_fd(), key, value, 16).unwrap();
    // Entries count in the first word, exits in the second.
    let counting = |offset: i16| {
        let mut body = vec![call(158), (0xbf, 2, 0, 0, 0), (0xb7, 3, 0, 0, 0), (0xb7, 4, 0, 0, 1)];
        body.extend(load_map(1, &storage));
        body.extend([
            call(156),
            (0x15, 0, 0, 3, 0),
            (0x79, 1, 0, offset, 0),
            (0x07, 1, 0, 0, 1),
            (0x7b, 0, 1, offset, 0),
        ]);
        mine(&body)
    };
    let mut programs = Vec::new();
    for (name, offset) in [("sys_enter", 0), ("sys_exit", 8)] {
        let id = btf.find(Kind::Typedef, &format!("btf_trace_{name}")).unwrap();
        programs.push(load(&ProgramSpec::typed_tracepoint("tl_typed", &counting(offset), id)));
    }
    let links = [Link::tracing(&programs[0]).unwrap(), Link::tracing(&programs[1]).unwrap()];
    assert_eq!(info::link(&links[0]).unwrap().kind, 1); // Raw tracepoints too, to the kernel.

    // For each task with storage: write the two words.
    let mut v: Vec<Insn> = vec![(0x79, 7, 1, 0, 0), (0x79, 2, 1, 8, 0), (0x15, 2, 0, 11, 0)];
    v.extend([(0xb7, 3, 0, 0, 0), (0xb7, 4, 0, 0, 0)]);
    v.extend(load_map(1, &storage));
    v.extend([call(156), (0x15, 0, 0, 5, 0), (0x79, 1, 7, 0, 0), (0xbf, 2, 0, 0, 0), (0xb7, 3, 0, 0, 16), call(127)]);
    v.extend([(0x05, 0, 0, 0, 0)]);
    v.extend(EXIT);
    let id = btf.find(Kind::Func, "bpf_iter_task").unwrap();
    let program = load(&ProgramSpec::iterator("tl_iter", &assemble(&v), id));
    let walk = Link::iterator(&program, &[]).unwrap();

    getppid(50);
    let mut out = Vec::new();
    iter::read(&walk, &mut out).unwrap();
    assert!(!out.is_empty() && out.len() % 16 == 0);
    let most = out.chunks(16).map(|c| (number(&c[..8]), number(&c[8..]))).max().unwrap();
    assert!(most.0 >= 50 && most.1 >= 50 && most.0.abs_diff(most.1) <= 2, "{most:?}");

    let link_ids: Vec<u32> = links.iter().chain([&walk]).map(|l| info::link(l).unwrap().id).collect();
    drop((links, programs, walk, program, storage));
    nothing_is_left(&["tl_typed", "tl_iter", "tl_storage"]);
    let there = info::ids(Object::Link).unwrap();
    assert!(link_ids.iter().all(|id| !there.contains(id)), "{link_ids:?} {there:?}");
}

#[test]
fn task_storage_is_looked_up_by_pidfd() {
    let Some(_alone) = start() else { return };
    let (blob, key, value) = build::value_types("calls", 16);
    let types = btf_load(&blob).unwrap();
    let storage = Map::task_storage("tl_by_pid", types.as_fd(), key, value, 16).unwrap();
    // SAFETY: integers only; the descriptor is ours.
    let fd = unsafe { OwnedFd::from_raw_fd(libc::syscall(libc::SYS_pidfd_open, std::process::id(), 0) as i32) };
    let key = std::os::fd::AsRawFd::as_raw_fd(&fd).to_le_bytes();
    let mut value = [0; 16];
    assert!(!storage.lookup(&key, &mut value).unwrap());
    storage.update(&key, &[9; 16], map::ANY).unwrap();
    assert!(storage.lookup(&key, &mut value).unwrap());
    assert_eq!(value, [9; 16]);
    assert!(storage.delete(&key).unwrap() && !storage.delete(&key).unwrap());
}

#[test]
fn a_classic_tracepoint_counts_one_call() {
    let Some(_alone) = start() else { return };
    let counters = Map::array("tl_classic", 8, 1, map::MMAPABLE).unwrap();
    let values = counters.mmap().unwrap();
    let program = load(&ProgramSpec::new(ProgramKind::Tracepoint, "tl_classic", &mine(&count(&counters, 0))));
    let link = Link::tracepoint(&program, tracepoint_id("syscalls", "sys_enter_getppid").unwrap()).unwrap();
    getppid(5);
    drop(link);
    getppid(5);
    assert_eq!(values.word(0).unwrap().load(std::sync::atomic::Ordering::Relaxed), 5);
    assert!(values.word(4).is_none() && values.word(1 << 20).is_none());
    drop((program, counters, values));
    nothing_is_left(&["tl_classic"]);
}

/// A program at kmalloc that has the kernel allocate runs into itself. The kernel leaves those runs out, and counts them; another
/// program at the same place, which allocates nothing, is there each time.
#[test]
fn runs_that_the_kernel_leaves_out_are_told() {
    let Some(_alone) = start() else { return };
    let btf = KernelBtf::kernel().unwrap();
    let id = btf.find(Kind::Typedef, "btf_trace_kmalloc").unwrap();
    let (blob, key, value) = build::value_types("calls", 16);
    let types = btf_load(&blob).unwrap();
    let storage = Map::task_storage("tl_again", types.as_fd(), key, value, 16).unwrap();
    let counters = Map::array("tl_again", 8, 2, map::MMAPABLE).unwrap();
    let values = counters.mmap().unwrap();
    let mut allocates = vec![call(158), (0xbf, 2, 0, 0, 0), (0xb7, 3, 0, 0, 0), (0xb7, 4, 0, 0, 1)];
    allocates.extend(load_map(1, &storage));
    allocates.extend([call(156), call(158), (0xbf, 2, 0, 0, 0)]);
    allocates.extend(load_map(1, &storage));
    allocates.push(call(157));
    allocates.extend(count(&counters, 0));
    let again = load(&ProgramSpec::typed_tracepoint("tl_again", &mine(&allocates), id));
    let witness = load(&ProgramSpec::typed_tracepoint("tl_again", &mine(&count(&counters, 1)), id));
    let links = [Link::tracing(&witness).unwrap(), Link::tracing(&again).unwrap()];
    let now = || {
        let missed = info::program(&again).unwrap().recursion_misses;
        [0, 8].map(|at| values.word(at).unwrap().load(std::sync::atomic::Ordering::Relaxed)).map(|n| (n, missed))
    };
    let before = now();
    for _ in 0..50 {
        drop(sys::process::pipe().unwrap());
    }
    let after = now();
    let (seen, made, skipped) = (after[0].0 - before[0].0, after[1].0 - before[1].0, after[0].1 - before[0].1);
    assert!(seen >= 50 && skipped > 0, "{seen} {skipped}");
    assert_eq!(seen + skipped, made);
    drop((links, again, witness, storage));
}

#[test]
fn maps_are_read_and_written() {
    let Some(_alone) = start() else { return };
    let hash = Map::hash("tl_hash", 4, 8, 16, map::NO_PREALLOC).unwrap();
    for i in 0..10u32 {
        hash.update(&i.to_le_bytes(), &u64::from(i).to_le_bytes(), map::NO_EXIST).unwrap();
    }
    assert!(hash.update(&[0; 4], &[0; 8], map::NO_EXIST).is_err());
    let (mut keys, mut key) = (Vec::new(), [0; 4]);
    let mut more = hash.next_key(None, &mut key).unwrap();
    while more {
        keys.push(u32::from_le_bytes(key));
        more = hash.next_key(Some(&key.clone()), &mut key).unwrap();
    }
    keys.sort_unstable();
    assert_eq!(keys, (0..10).collect::<Vec<_>>());
    assert!(hash.delete(&3u32.to_le_bytes()).unwrap());
    assert!(!hash.lookup(&3u32.to_le_bytes(), &mut [0; 8]).unwrap());
    let per_cpu = Map::per_cpu_array("tl_per_cpu", 12, 1).unwrap();
    assert_eq!(
        per_cpu.lookup_per_cpu(&[0; 4]).unwrap().unwrap(),
        vec![vec![0; 12]; processors::possible().unwrap().len()]
    );
    let names = Map::array("tl_names", 8, 1, map::READ_ONLY_PROGRAM).unwrap();
    names.freeze().unwrap();
    assert!(names.update(&[0; 4], &[1; 8], map::ANY).is_err());
    let inner = Map::ring("tl_in", 4096).unwrap();
    let of = Map::hash_of("tl_of", &inner, 8, 4).unwrap();
    of.put_map(&[1; 8], &inner).unwrap();
    assert_eq!(info::map(&of).unwrap().kind, 13);
}

#[test]
fn what_the_verifier_says_is_kept() {
    let Some(_alone) = start() else { return };
    let program = assemble(&[(0x95, 0, 0, 0, 0)]);
    let e = Program::load(&ProgramSpec::new(ProgramKind::RawTracepoint, "tl_bad", &program)).unwrap_err();
    assert_eq!(e.error.raw_os_error(), Some(libc::EACCES));
    assert!(e.log.contains("R0 !read_ok"), "{}", e.log);
    assert!(e.to_string().ends_with("(R0 !read_ok)"), "{e}");
    let e = btf_load(&build::value_types("x", 16).0[..40]).unwrap_err();
    assert!(!e.log.is_empty());
}

#[test]
fn tracepoints_that_are_not_there_are_not_found() {
    let Some(_alone) = start() else { return };
    let program = load(&ProgramSpec::new(ProgramKind::RawTracepoint, "tl_none", &assemble(&EXIT)));
    let e = Link::raw_tracepoint(&program, "no_such_tracepoint").unwrap_err();
    assert_eq!(e.raw_os_error(), Some(libc::ENOENT));
    assert!(tracepoint_id("syscalls", "no_such").is_err());
    assert!(tracepoint_id("..", "../x").is_err());
}
