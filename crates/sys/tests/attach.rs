//! Programs on functions, static probes, tracepoints, clocks and counters: exact hits. Probes are set on programs that the tests
//! start themselves.

mod lab;

use lab::*;
use std::ffi::CString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use symbols::Elf;
use sys::bpf::info;
use sys::bpf::link::{Link, UprobeMulti, tracepoint_id};
use sys::bpf::map::Map;
use sys::bpf::prog::{ATTACH_FENTRY, ATTACH_RAW_TP, Program, ProgramKind, ProgramSpec};
use sys::btf::{KernelBtf, Kind};
use sys::perf::attach::{self, Counter, Rate, Target, Uprobe};
use sys::perf::{self, Attr, Event, SW_DUMMY, TYPE_SOFTWARE};
use sys::processors;

/// Counts per cookie.
const COOKIES: u32 = 8;

/// Adds 1 to the counter of the program's cookie; r1 is the context.
fn by_cookie(map: &Map) -> Vec<Insn> {
    let [a, b] = load_map(1, map);
    let cookie = [call(174), (0x63, 10, 0, -4, 0), (0xbf, 2, 10, 0, 0), (0x07, 2, 0, 0, -4)];
    let add = [call(1), (0x15, 0, 0, 2, 0), (0xb7, 1, 0, 0, 1), (0xdb, 0, 1, 0, 0)];
    [&cookie[..], &[a, b], &add].concat()
}

fn counters() -> Map {
    Map::per_cpu_array("tl_cookies", 8, COOKIES).unwrap()
}

/// What was counted, by cookie.
fn counted(map: &Map) -> Vec<u64> {
    (0..COOKIES).map(|i| sum(map, i)).collect()
}

fn counting(kind: ProgramKind, map: &Map) -> Program {
    let insns = assemble(&[by_cookie(map), EXIT.to_vec()].concat());
    load(&ProgramSpec::new(kind, "tl_attach", &insns))
}

fn counting_multi(map: &Map) -> Option<Program> {
    let insns = assemble(&[by_cookie(map), EXIT.to_vec()].concat());
    match Program::load(&ProgramSpec::uprobe_multi("tl_multi", &insns)) {
        Ok(program) => Some(program),
        Err(e) if e.error.kind() == std::io::ErrorKind::InvalidInput => {
            skip("kernel:uprobe_multi", "this kernel does not know it");
            None
        }
        Err(e) => panic!("{e}\n{}", e.log),
    }
}

/// The program `probes`.
#[track_caller]
fn program() -> Option<PathBuf> {
    testkit::compiled("probes", "probes.c", &[]).map(PathBuf::from)
}

fn elf(path: &Path) -> Elf {
    Elf::read(std::fs::File::open(path).unwrap()).unwrap()
}

fn offset(path: &Path, function: &str) -> u64 {
    elf(path).function(function)[0].offset
}

/// A run of `probes` that waits until it is told to go on.
struct Run(Child, BufReader<ChildStdout>);

impl Run {
    fn start(path: &Path, times: u32) -> Run {
        let mut command = Command::new(path);
        let mut child = command.arg(times.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Run(child, out)
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Lets it run to its end; returns how often it saw its semaphore raised.
    fn end(mut self) -> u32 {
        self.0.stdin.take().unwrap().write_all(b"\n").unwrap();
        let mut text = String::new();
        self.1.read_to_string(&mut text).unwrap();
        assert!(self.0.wait().unwrap().success());
        text.trim().rsplit(' ').next().unwrap().parse().unwrap()
    }
}

#[test]
fn uprobes_and_uretprobes_through_perf() {
    let (Some(_alone), Some(path)) = (start(), program()) else { return };
    let path = path.as_path();
    let map = counters();
    let program = counting(ProgramKind::Kprobe, &map);
    let place = Uprobe { path, offset: offset(path, "worked"), at_return: false, counter: 0, pid: None };
    let run = Run::start(path, 1000);
    let links = [
        Link::perf(&program, place.open().unwrap(), 1).unwrap(),
        Link::perf(&program, Uprobe { at_return: true, ..place }.open().unwrap(), 2).unwrap(),
        Link::perf(&program, Uprobe { offset: offset(path, "main"), ..place }.open().unwrap(), 3).unwrap(),
    ];
    // `main` of this one is running already.
    assert_eq!(run.end(), 0);
    assert_eq!(counted(&map)[1..4], [1000, 1000, 0]);
    Run::start(path, 10).end();
    assert_eq!(counted(&map)[1..4], [1010, 1010, 1]);
    drop(links);
    Run::start(path, 10).end();
    assert_eq!(counted(&map)[1..4], [1010, 1010, 1]);
    assert!(Uprobe { offset: 1 << 40, ..place }.open().is_err());
    assert!(Uprobe { path: Path::new("/no/such/file"), ..place }.open().is_err());
}

#[test]
fn a_uprobe_of_one_process() {
    let (Some(_alone), Some(path)) = (start(), program()) else { return };
    let path = path.as_path();
    let map = counters();
    let program = counting(ProgramKind::Kprobe, &map);
    let (one, other) = (Run::start(path, 100), Run::start(path, 7));
    let pid = Some(one.pid() as i32);
    let place = Uprobe { path, offset: offset(path, "worked"), at_return: false, counter: 0, pid };
    let _link = Link::perf(&program, place.open().unwrap(), 1).unwrap();
    let multi = counting_multi(&map);
    let c_path = CString::new(path.to_str().unwrap()).unwrap();
    let spec = UprobeMulti {
        path: &c_path,
        offsets: &[place.offset],
        counters: &[],
        cookies: &[2],
        at_return: false,
        pid: Some(other.pid()),
    };
    let _multi = multi.as_ref().map(|m| Link::uprobe_multi(m, &spec).unwrap());
    one.end();
    other.end();
    let want = if multi.is_some() { 7 } else { 0 };
    assert_eq!(counted(&map)[1..3], [100, want]);
}

#[test]
fn static_probes_raise_their_semaphores() {
    let (Some(_alone), Some(path)) = (start(), program()) else { return };
    let path = path.as_path();
    let probes = symbols::usdt::of(&elf(path));
    let find = |name: &str| probes.iter().find(|p| p.name == name).unwrap();
    let (step, plain) = (find("step"), find("plain"));
    assert!(step.semaphore != 0 && plain.semaphore == 0);
    let map = counters();
    let program = counting(ProgramKind::Kprobe, &map);
    let place = |p: &symbols::usdt::Static| Uprobe {
        path,
        offset: p.offset,
        at_return: false,
        counter: p.semaphore,
        pid: None,
    };
    let links = [
        Link::perf(&program, place(step).open().unwrap(), 1).unwrap(),
        Link::perf(&program, place(plain).open().unwrap(), 2).unwrap(),
    ];
    assert_eq!(Run::start(path, 50).end(), 50);
    assert_eq!(counted(&map)[1..3], [50, 50]);
    drop(links);
    assert_eq!(Run::start(path, 50).end(), 0);
    let Some(multi) = counting_multi(&map) else { return };
    let c_path = CString::new(path.to_str().unwrap()).unwrap();
    let spec = UprobeMulti {
        path: &c_path,
        offsets: &[step.offset, plain.offset],
        counters: &[step.semaphore, 0],
        cookies: &[3, 4],
        at_return: false,
        pid: None,
    };
    let run = Run::start(path, 60);
    let link = Link::uprobe_multi(&multi, &spec).unwrap();
    assert_eq!(run.end(), 60);
    drop(link);
    assert_eq!(Run::start(path, 60).end(), 0);
    assert_eq!(counted(&map)[1..5], [50, 50, 60, 60]);
}

#[test]
fn many_places_at_once() {
    let (Some(_alone), Some(path)) = (start(), program()) else { return };
    let path = path.as_path();
    let map = counters();
    let Some(program) = counting_multi(&map) else { return };
    let c_path = CString::new(path.to_str().unwrap()).unwrap();
    let offsets = [offset(path, "worked"), offset(path, "main")];
    let (path_of, counters, pid) = (&*c_path, &[][..], None);
    let entry = UprobeMulti { path: path_of, offsets: &offsets, counters, cookies: &[1, 2], at_return: false, pid };
    let links = [
        Link::uprobe_multi(&program, &entry).unwrap(),
        Link::uprobe_multi(&program, &UprobeMulti { cookies: &[3, 4], at_return: true, ..entry }).unwrap(),
    ];
    Run::start(path, 500).end();
    assert_eq!(counted(&map)[1..5], [500, 1, 500, 1]);
    let bad = Link::uprobe_multi(&program, &UprobeMulti { cookies: &[1], ..entry }).unwrap_err();
    assert_eq!(bad.kind(), std::io::ErrorKind::InvalidInput);
    assert!(Link::uprobe_multi(&program, &UprobeMulti { offsets: &[1 << 40], cookies: &[], ..entry }).is_err());
    let ids: Vec<u32> = links.iter().map(|l| info::link(l).unwrap().id).collect();
    drop(links);
    Run::start(path, 500).end();
    assert_eq!(counted(&map)[1..5], [500, 1, 500, 1]);
    let there = info::ids(info::Object::Link).unwrap();
    assert!(ids.iter().all(|id| !there.contains(id)));
}

#[test]
fn a_classic_tracepoint_with_a_cookie() {
    let Some(_alone) = start() else { return };
    let map = counters();
    // by_cookie wants the context, which `mine` keeps in r6.
    let insns = mine(&[vec![(0xbf, 1, 6, 0, 0)], by_cookie(&map)].concat());
    let program = load(&ProgramSpec::new(ProgramKind::Tracepoint, "tl_attach", &insns));
    let id = tracepoint_id("syscalls", "sys_enter_getppid").unwrap();
    let link = Link::perf(&program, attach::tracepoint(id).unwrap(), 5).unwrap();
    getppid(321);
    drop(link);
    getppid(5);
    assert_eq!(counted(&map)[5], 321);
}

#[test]
fn a_typed_tracepoint_with_a_cookie() {
    let Some(_alone) = start() else { return };
    let map = counters();
    let insns = mine(&[vec![(0xbf, 1, 6, 0, 0)], by_cookie(&map)].concat());
    let btf = KernelBtf::kernel().unwrap();
    let id = btf.find(Kind::Typedef, "btf_trace_sys_enter").unwrap();
    let program = match Program::load(&ProgramSpec::typed_tracepoint("tl_attach", &insns, id)) {
        Ok(program) => program,
        Err(e) if e.log.contains("cannot use helper") || e.log.contains("unknown func") => {
            return skip("kernel:tracing_cookie", "the helper is not known to typed tracepoints");
        }
        Err(e) => panic!("{e}\n{}", e.log),
    };
    let link = Link::tracing_with_cookie(&program, ATTACH_RAW_TP, 6).unwrap();
    getppid(100);
    drop(link);
    let seen = counted(&map);
    assert!(seen[6] >= 100 && seen[0] == 0, "{seen:?}");
}

#[test]
fn faults_are_counted_one_by_one() {
    const PAGES: usize = 300;
    const PAGE: usize = 4096;
    let Some(_alone) = start() else { return };
    let map = counters();
    // SAFETY: a mapping of our own, used below and unmapped at the end.
    let base = unsafe {
        let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let p = libc::mmap(std::ptr::null_mut(), PAGES * PAGE, prot, flags, -1, 0);
        assert_ne!(p, libc::MAP_FAILED);
        assert_eq!(libc::madvise(p, PAGES * PAGE, libc::MADV_NOHUGEPAGE), 0);
        p.cast::<u8>()
    };
    // struct bpf_perf_event_data: registers, u64 period, u64 address. Only faults of the mapping count.
    let registers = KernelBtf::kernel().unwrap().field_of("bpf_perf_event_data", &["addr"]).unwrap().offset;
    let wide = |dst, value: u64| [(0x18, dst, 0, 0, value as i32), (0, 0, 0, 0, (value >> 32) as i32)];
    let count = by_cookie(&map);
    let mut body: Vec<Insn> = vec![(0x79, 7, 1, registers as i16, 0)];
    body.extend(wide(8, base as u64));
    // Behind the check for the end: an instruction of two words, and one more.
    body.push((0xad, 7, 8, (3 + count.len()) as i16, 0));
    body.extend(wide(8, base as u64 + (PAGES * PAGE) as u64));
    body.push((0x3d, 7, 8, count.len() as i16, 0));
    body.extend(count);
    body.extend(EXIT);
    let program = load(&ProgramSpec::new(ProgramKind::PerfEvent, "tl_faults", &assemble(&body)));
    let config = perf::SOFTWARE.iter().find(|s| s.0 == "page-faults").unwrap().1;
    let event = attach::counter(Counter::Software(config), 1, Target::Thread(0)).unwrap();
    let link = Link::perf(&program, event, 7).unwrap();
    for i in 0..PAGES {
        // SAFETY: within the mapping.
        unsafe { base.add(i * PAGE).write_volatile(1) };
    }
    assert_eq!(counted(&map)[7], PAGES as u64);
    drop(link);
    // SAFETY: mapped above with this length; nobody uses it any more.
    unsafe { libc::munmap(base.cast(), PAGES * PAGE) };
}

#[test]
fn clocks_tick_on_every_cpu() {
    let Some(_alone) = start() else { return };
    for rate in [Rate::Hz(999), Rate::Ns(1_000_000)] {
        let map = counters();
        // The cookie is the CPU's number, as far as there are counters.
        let program = counting(ProgramKind::PerfEvent, &map);
        let cpus: Vec<u32> = processors::online().unwrap().into_iter().take(COOKIES as usize).collect();
        let links: Vec<Link> = cpus
            .iter()
            .map(|c| Link::perf(&program, attach::profile(*c, rate).unwrap(), u64::from(*c % COOKIES)).unwrap())
            .collect();
        let started = Instant::now();
        let threads: Vec<_> = cpus
            .iter()
            .map(|cpu| {
                let cpu = *cpu as usize;
                std::thread::spawn(move || {
                    // SAFETY: a set of our own; 0 is the calling thread.
                    unsafe {
                        let mut set: libc::cpu_set_t = std::mem::zeroed();
                        libc::CPU_SET(cpu, &mut set);
                        libc::sched_setaffinity(0, size_of_val(&set), &set);
                    }
                    let begun = Instant::now();
                    while begun.elapsed() < Duration::from_millis(50) {
                        std::hint::spin_loop();
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        while started.elapsed() < Duration::from_secs(20) && counted(&map)[..cpus.len()].contains(&0) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let seen = counted(&map);
        assert!(!seen[..cpus.len()].contains(&0), "{seen:?}");
        drop(links);
        let after = counted(&map);
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(counted(&map), after);
    }
}

/// A kernel may forbid programs on functions, or lack them; that it rejects the program is a mistake of the test.
#[track_caller]
fn refused(what: &str, e: &sys::bpf::prog::LoadError) {
    const ENOTSUPP: i32 = 524;
    let allowed = [libc::EPERM, libc::EOPNOTSUPP, ENOTSUPP].map(Some);
    assert!(allowed.contains(&e.error.raw_os_error()), "{e}\n{}", e.log);
    skip("fentry", &format!("{what} is refused: {}", e.error));
}

#[test]
fn functions_of_the_kernel() {
    let Some(_alone) = start() else { return };
    let map = counters();
    let insns = mine(&[vec![(0xbf, 1, 6, 0, 0)], by_cookie(&map)].concat());
    let function = "__do_sys_getppid";
    let btf = KernelBtf::kernel().unwrap();
    match btf.find(Kind::Func, function) {
        None => skip("fentry", "the kernel's types do not name the function"),
        Some(id) => {
            match Program::load(&ProgramSpec::function("tl_fentry", &insns, id, false)) {
                Err(e) => refused("fentry", &e),
                Ok(program) => {
                    let link = Link::tracing_with_cookie(&program, ATTACH_FENTRY, 1).unwrap();
                    getppid(40);
                    drop(link);
                    assert_eq!(counted(&map)[1], 40);
                }
            }
            match Program::load(&ProgramSpec::function("tl_fexit", &insns, id, true)) {
                Err(e) => refused("fexit", &e),
                Ok(program) => {
                    let link = Link::tracing(&program).unwrap();
                    getppid(40);
                    drop(link);
                    assert_eq!(counted(&map)[0], 40);
                }
            }
        }
    }
    for (at_return, cookie) in [(false, 2), (true, 3)] {
        match attach::kprobe("__x64_sys_getppid", 0, at_return) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                skip("kprobe", "a kernel without kprobes");
            }
            Err(e) => panic!("{e}"),
            Ok(event) => {
                let program = load(&ProgramSpec::new(ProgramKind::Kprobe, "tl_kprobe", &insns));
                let link = Link::perf(&program, event, cookie).unwrap();
                getppid(30);
                drop(link);
                assert_eq!(counted(&map)[cookie as usize], 30);
            }
        }
    }
}

#[test]
fn events_have_ids_and_are_switched() {
    let event = match Event::open(&Attr::new(TYPE_SOFTWARE, SW_DUMMY).flags(perf::bit::EXCLUDE_KERNEL), 0, -1) {
        Ok(event) => event,
        Err(e) => return skip("kernel:perf", &e.to_string()),
    };
    assert_ne!(event.id().unwrap(), 0);
    event.disable().unwrap();
    event.enable().unwrap();
    assert!(Event::open(&Attr::new(TYPE_SOFTWARE, SW_DUMMY), i32::MAX, -1).is_err());
}
