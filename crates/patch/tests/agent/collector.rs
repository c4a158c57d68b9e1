//! A collector for tests: answers agents with plans that are made here, and reads their records.

use crate::elf::File;
use abi::message::{HOOKS, Hello, Hook, Installed, MAGIC, Reason, SLOWS, Verdict, Welcome};
use abi::stub::Variant;
use patch::hole::{self, Kind, Mapping};
use patch::link::{Beside, Linked, Places, area_len, link};
use patch::{Module, Plan, file};
use std::collections::{BTreeMap, HashMap};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use sys::agent::{Held, Life, Listener, Request, Shared, State, sealed};
use sys::maps::{Map, PROT_EXEC};

const HOOKED: [(&str, Hook); 12] = [
    ("_Unwind_Find_FDE", Hook::FindFde),
    ("sigaction", Hook::Sigaction),
    ("execve", Hook::Execve),
    ("execveat", Hook::Execveat),
    ("fork", Hook::Fork),
    ("_Fork", Hook::ForkAsyncSafe),
    ("clone", Hook::Clone),
    ("syscall", Hook::Syscall),
    ("_dl_debug_state", Hook::Modules),
    ("_Unwind_Backtrace", Hook::Backtrace),
    ("prctl", Hook::Prctl),
    ("fexecve", Hook::Fexecve),
];

/// The agent, built once.
pub fn agent() -> &'static str {
    static AGENT: OnceLock<String> = OnceLock::new();
    AGENT.get_or_init(|| {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace");
        let target = root.join("target/agent");
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--release", "--offline", "--locked", "--manifest-path"])
            .arg(root.join("crates/agent/Cargo.toml"))
            .arg("--target-dir")
            .arg(&target)
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_BUILD_TARGET")
            .status()
            .expect("cargo");
        assert!(built.success(), "the agent is built");
        target.join("release/libagent.so").to_str().expect("UTF-8").to_string()
    })
}

/// What is asked of a process.
#[derive(Clone)]
pub struct Wish {
    /// Whether a function of a file is traced.
    pub functions: fn(&str, &str) -> bool,
    pub hooks: bool,
    pub variant: Variant,
    pub chunks: u32,
    pub chunk_size: u32,
    pub block: bool,
    /// Ticks; for [`Variant::Timed`].
    pub minimum: u64,
}

impl Default for Wish {
    fn default() -> Wish {
        Wish {
            functions: |file, _| file.contains("/trapline-tests-"),
            hooks: true,
            variant: Variant::Paired,
            chunks: 256,
            chunk_size: 64 << 10,
            block: true,
            minimum: 0,
        }
    }
}

/// A process that was answered.
pub struct Process {
    pub installed: Installed,
    shared: Shared,
    _held: Held,
    /// Of each chunk in use: its thread, its number there, the records, how far it has been read.
    open: HashMap<usize, usize>,
    chunks: BTreeMap<(u32, u32), Vec<u8>>,
    pub dropped: u64,
}

impl Process {
    /// Reads what is there. At the end all of it.
    fn drain(&mut self) {
        let mut freed = false;
        for chunk in 0..self.shared.chunks() {
            let head = self.shared.chunk(chunk);
            if head.state == State::Free {
                continue;
            }
            let from = self.open.get(&chunk).copied().unwrap_or(0);
            let mut bytes = vec![];
            let n = self.shared.read(chunk, from, &mut bytes);
            if n > 0 || from > 0 {
                // Its header is complete when its first record is there.
                let head = self.shared.chunk(chunk);
                self.chunks.entry((head.tid, head.sequence)).or_default().extend(bytes);
                self.open.insert(chunk, from + n);
                if head.state == State::Full {
                    // It may have been filled after it was read.
                    let mut rest = vec![];
                    let more = self.shared.read(chunk, from + n, &mut rest);
                    self.chunks.entry((head.tid, head.sequence)).or_default().extend(rest);
                    self.dropped += head.dropped;
                    self.shared.recycle(chunk, from + n + more);
                    self.open.remove(&chunk);
                    freed = true;
                }
            }
        }
        if freed {
            self.shared.wake();
        }
    }

    /// The records of each thread: time, function, whether it is an exit.
    pub fn threads(&self) -> BTreeMap<u32, Vec<(u64, u32, bool)>> {
        let mut threads: BTreeMap<u32, Vec<_>> = BTreeMap::new();
        for ((tid, _), bytes) in &self.chunks {
            let mut high = 0;
            let records = threads.entry(*tid).or_default();
            for record in bytes.chunks_exact(8) {
                let [time, word] = [0, 4].map(|at| u32::from_le_bytes(record[at..at + 4].try_into().expect("4 bytes")));
                if word == abi::shared::HIGH {
                    high = u64::from(time) << 32;
                } else {
                    records.push((high | u64::from(time), word >> 1, word & 1 == 1));
                }
            }
        }
        threads
    }

    /// dropped, orphaned, left.
    pub fn counts(&self) -> [u64; 3] {
        self.shared.counts()
    }
}

struct Session {
    wish: Wish,
    life: Life,
    names: Mutex<Vec<String>>,
    numbers: Mutex<HashMap<(String, u32), u32>>,
    processes: Mutex<Vec<Process>>,
    requests: Mutex<Vec<(u32, u32)>>,
    stop: AtomicBool,
}

/// What came of a command.
pub struct Run {
    pub output: Output,
    pub processes: Vec<Process>,
    /// Names of functions, by number.
    pub names: Vec<String>,
    /// Reasons and pids, in order.
    pub requests: Vec<(u32, u32)>,
    pub took: Duration,
}

impl Run {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    /// Entries and exits of a function, in all processes.
    pub fn count(&self, name: &str) -> (u64, u64) {
        let mut count = (0, 0);
        for (_, function, exit) in self.processes.iter().flat_map(|p| p.threads().into_values().flatten()) {
            if self.names.get(function as usize).map(String::as_str) == Some(name) {
                if exit { count.1 += 1 } else { count.0 += 1 }
            }
        }
        count
    }

    pub fn dropped(&self) -> u64 {
        let last = |p: &Process| p.open.keys().map(|c| p.shared.chunk(*c).dropped).sum::<u64>();
        self.processes.iter().map(|p| p.dropped + last(p) + p.counts()[0]).sum()
    }
}

/// Runs a command under the agent.
pub fn run(command: &mut Command, wish: Wish) -> Run {
    let listener = Listener::new().expect("a socket");
    command.env("LD_PRELOAD", agent()).env(abi::SOCKET, listener.name());
    let session = Arc::new(Session {
        wish,
        life: Life::new().expect("a thread"),
        names: Mutex::new(vec![String::new()]),
        numbers: Mutex::default(),
        processes: Mutex::default(),
        requests: Mutex::default(),
        stop: AtomicBool::new(false),
    });
    let server = serve(listener, Arc::clone(&session));
    let reader = drain(Arc::clone(&session));
    let begin = Instant::now();
    let output = command.output().expect("the command");
    let took = begin.elapsed();
    session.stop.store(true, Ordering::Release);
    server.join().expect("the server");
    reader.join().expect("the reader");
    let session = Arc::into_inner(session).expect("all threads have ended");
    let mut processes = session.processes.into_inner().expect("no panic");
    processes.iter_mut().for_each(Process::drain);
    Run {
        output,
        processes,
        names: session.names.into_inner().expect("no panic"),
        requests: session.requests.into_inner().expect("no panic"),
        took,
    }
}

fn serve(listener: Listener, session: Arc<Session>) -> JoinHandle<()> {
    thread::spawn(move || {
        while !session.stop.load(Ordering::Acquire) {
            match listener.accept().expect("accept") {
                Some(request) => answer(request, &session),
                None => thread::sleep(Duration::from_millis(1)),
            }
        }
    })
}

fn drain(session: Arc<Session>) -> JoinHandle<()> {
    thread::spawn(move || {
        while !session.stop.load(Ordering::Acquire) {
            session.processes.lock().expect("no panic").iter_mut().for_each(Process::drain);
            thread::sleep(Duration::from_millis(1));
        }
    })
}

fn answer(mut request: Request, session: &Session) {
    let mut bytes = [0; Hello::SIZE];
    request.read(&mut bytes).expect("a Hello");
    let hello = Hello::parse(&bytes);
    assert_eq!((hello.magic, hello.version), (MAGIC, abi::VERSION));
    let mut maps = vec![0; hello.maps_len as usize];
    request.read(&mut maps).expect("maps");
    session.requests.lock().expect("no panic").push((hello.reason, hello.pid));
    if [Reason::Exec as u32, Reason::Failed as u32].contains(&hello.reason) {
        return;
    }
    let fork = hello.reason == Reason::Fork as u32;
    let modules = hello.reason == Reason::Modules as u32;
    let plan = if fork { vec![] } else { plan(&hello, &sys::maps::in_text(&maps), session) };
    let wish = &session.wish;
    let shared = Shared::new(wish.chunks, wish.chunk_size, wish.block, true).expect("memory");
    let held = session.life.hold(&shared).expect("a place");
    let file = sealed(c"plan", &plan).expect("a plan");
    let welcome = Welcome {
        magic: MAGIC,
        version: abi::VERSION,
        verdict: Verdict::Trace as u32,
        descriptors: 2,
        shared: shared.size(),
        plan: plan.len() as u64,
        tables: 0,
        keep: 0,
    };
    request.answer(&welcome.bytes(), &[shared.fd(), file.as_fd()]).expect("it takes the answer");
    let mut bytes = [0; Installed::SIZE];
    request.read(&mut bytes).expect("Installed");
    let installed = Installed::parse(&bytes);
    if !modules {
        session.processes.lock().expect("no panic").push(Process {
            installed,
            shared,
            _held: held,
            open: HashMap::new(),
            chunks: BTreeMap::new(),
            dropped: 0,
        });
    }
}

fn plan(hello: &Hello, maps: &[Map], session: &Session) -> Vec<u8> {
    static FILES: Mutex<Option<HashMap<String, Arc<File>>>> = Mutex::new(None);
    let wish = &session.wish;
    let kind = |m: &Map| match &*m.path {
        b"[heap]" => Kind::Heap,
        b"[stack]" => Kind::Stack,
        _ => Kind::Other,
    };
    let mut mappings: Vec<Mapping> =
        maps.iter().map(|m| Mapping { range: m.range.0..m.range.1, kind: kind(m) }).collect();
    let mut linked: Vec<Linked> = vec![];
    for map in maps.iter().filter(|m| m.prot & PROT_EXEC != 0 && m.path.starts_with(b"/")) {
        let path = String::from_utf8_lossy(&map.path).into_owned();
        if path.ends_with("libagent.so") {
            continue;
        }
        let mut files = FILES.lock().expect("no panic");
        let files = files.get_or_insert_default();
        if !files.contains_key(&path) {
            let Some(file) = File::read(&path) else { continue };
            files.insert(path.clone(), Arc::new(file));
        }
        let file = Arc::clone(&files[&path]);
        let Some((address, ..)) = file.segments().find(|s| s.1 as u64 & !4095 == map.offset) else { continue };
        let bias = map.range.0.wrapping_sub(address & !4095);
        let hooks: Vec<(Hook, u64)> = HOOKED
            .iter()
            .filter(|_| wish.hooks)
            .filter_map(|(name, hook)| {
                let found = file.names.iter().position(|n| n == name)?;
                Some((*hook, file.functions.iter().find(|f| f.number as usize == found)?.address))
            })
            .collect();
        let traced: Vec<_> = file
            .functions
            .iter()
            .filter(|f| (wish.functions)(&path, &file.names[f.number as usize]))
            .copied()
            .collect();
        let plan = file.module(|m| Plan::new(&Module { functions: &traced, hooks: &hooks, ..*m }));
        let number = |n: u32| {
            let mut names = session.names.lock().expect("no panic");
            let mut numbers = session.numbers.lock().expect("no panic");
            Some(*numbers.entry((path.clone(), n)).or_insert_with(|| {
                names.push(file.names[n as usize].clone());
                names.len() as u32 - 1
            }))
        };
        let len = area_len(&plan, (plan.sites.len(), 0), wish.variant);
        let reach = plan.reach.start.wrapping_add(bias)..plan.reach.end.wrapping_add(bias);
        let Some(area) = hole::nearest(&mappings, &reach, len) else { continue };
        let slow: [u64; SLOWS] = hello.slow;
        let hooks: [u64; HOOKS] = hello.hooks;
        let (tls, variant) = (hello.tls as i32, wish.variant);
        let places = Places { bias, area, tls, slow, hooks, variant, minimum: wish.minimum };
        let module = link(&plan, &places, number, Beside::default()).expect("it reaches");
        mappings.push(Mapping { range: area..area + module.len(), kind: Kind::Other });
        mappings.sort_by_key(|m| m.range.start);
        linked.push(module);
    }
    file::write(&linked, &[])
}
