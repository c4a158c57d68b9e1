//! The tables of the unwinder in the kernel ([`bpf::unwind`]), kept right while a session runs.
//!
//! ```text
//!  perf records, a ring per CPU ─► records ─► table of processes ─► maps of processes ◄─ programs at fork, exec
//!  (mapped, exec, fork, exit)                  │  ▲                                      (copy, delete)
//!                                     modules ◄┘  │ built
//!                                        │        │
//!                                        └─► builders: .eh_frame ─► rows ─► chunks, pages, rules
//! ```
//!
//! A process's mappings are in the table before its first instruction where they can be: a child has its creator's, because a program copies
//! them; after an exec the table is empty until the records have come, which takes the thread tens of microseconds where the modules are
//! known. What is new is built first, by threads of its own. Nothing in the kernel waits for this: a stack that comes too early ends
//! where the tables end, and is counted so.
//!
//! Processes are distinguished by their ids in trapline's pid namespace, and what is outside of it is not followed.

mod builders;
mod counts;
mod expected;
mod identity;
mod maps;
mod modules;
mod process_table;
mod processes;
mod programs;
mod records;

pub use counts::Counts;
pub use maps::{Maps, fs_base_offset, uprobe_offsets};

use builders::{Builders, Waker, Woken};
use maps::Writer;
use process_table::ProcessTable;
use records::{Records, Said};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use sys::bpf::link::Link;
use sys::btf::{KernelBtf, Kind};
use sys::caps;
use sys::priority::Urgency;
use sys::time::monotonic;

/// What the thread needs: tables of maps, `/proc/PID/maps` and files of others.
const RIGHTS: u64 = caps::BPF | caps::SYS_PTRACE | caps::DAC_READ_SEARCH | caps::CHECKPOINT_RESTORE;

/// How much there may be.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Bytes of rows; rounded up to chunks of 1 MiB, which are allocated when they are needed.
    pub bytes: u64,
    /// Processes at a time: 4 KiB each, which are allocated in the beginning.
    pub processes: u32,
}

impl Room {
    /// For a command, or some processes, and what they start.
    pub const SOME: Room = Room { bytes: 256 << 20, processes: 1024 };

    /// For the whole machine: there may be twice as many processes as there are now, and 1024 more.
    pub fn machine() -> Room {
        let processes = 2 * sys::proc::all().len() as u32;
        Room { processes: Room::SOME.processes.saturating_add(processes).min(1 << 16), ..Room::SOME }
    }

    fn chunks(self) -> u32 {
        self.bytes.div_ceil(1 << 20).clamp(1, 1 << 14) as u32
    }
}

/// Whom to follow, with what they start from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Every process that trapline starts.
    Children,
    /// A child of trapline that has not executed its program yet.
    Command(u32),
    /// A process that runs.
    Process(u32),
    /// Every process but trapline.
    Machine,
}

/// An unwinder that does not run yet.
pub struct Unwinder {
    maps: Arc<Maps>,
    table: ProcessTable,
    records: Records,
    links: Vec<Link>,
    counts: Arc<Mutex<Counts>>,
    hurry: bool,
}

impl Unwinder {
    /// Whether this kernel can walk user stacks.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn possible(btf: &KernelBtf) -> Result<(), String> {
        match btf.find(Kind::Func, "bpf_loop") {
            Some(_) => Ok(()),
            None => Err("the kernel has no bpf_loop (Linux 5.17)".into()),
        }
    }

    /// Makes the maps, and attaches the programs that keep them. Programs that use the tables can be loaded then.
    ///
    /// # Errors
    /// The kernel refuses: CAP_BPF and CAP_PERFMON are needed.
    pub fn new(btf: &KernelBtf, room: Room) -> io::Result<Unwinder> {
        let (maps, spare) = Maps::make(btf, room)?;
        let maps = Arc::new(maps);
        let links = programs::attach(btf, &maps)?;
        let counts = Arc::default();
        let table = ProcessTable::new(&maps, Writer::new(&maps, room, spare)?, &counts);
        let records = Records::open()?;
        Ok(Unwinder { maps, table, records, links, counts, hurry: false })
    }

    /// What programs are made for. The descriptors are open as long as [`Unwinder::maps`] is kept.
    pub fn tables(&self) -> bpf::unwind::Tables {
        self.maps.tables()
    }

    /// Keeps the maps.
    pub fn maps(&self) -> Arc<Maps> {
        Arc::clone(&self.maps)
    }

    /// Follows processes.
    pub fn watch(&mut self, target: Target) {
        self.table.watch(target);
    }

    /// This program will be executed soon: the tables of what it needs are built without waiting for that, as soon as the thread runs.
    pub fn expect(&mut self, program: &Path) {
        self.table.expect(program);
    }

    /// Tables are built before anything else runs: for some tens of ms a program may stand still that has begun or has mapped a library.
    /// Else its stacks would end there meanwhile.
    pub fn hurry(&mut self) {
        self.hurry = true;
    }

    /// Keeps the tables in a thread of its own from now on.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn run(self) -> io::Result<Handle> {
        let (waker, woken) = builders::waker()?;
        let waker = Arc::new(waker);
        let builders = Builders::start(&self.maps, &waker, self.hurry)?;
        let (stop, settled) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let joining: Arc<Mutex<Vec<u32>>> = Arc::default();
        let (maps, counts) = (self.maps(), Arc::clone(&self.counts));
        let Unwinder { table, records, links, .. } = self;
        let running = Running {
            table,
            records,
            builders,
            woken,
            stop: Arc::clone(&stop),
            settled: Arc::clone(&settled),
            joining: Arc::clone(&joining),
            later: Vec::new(),
            _links: links,
        };
        let thread = std::thread::Builder::new().name("trapline-unwind".into()).spawn(move || running.run())?;
        Ok(Handle { stop, joining, settled, waker, maps, counts, thread: Some(thread) })
    }
}

/// An unwinder that runs. Dropping it stops it.
pub struct Handle {
    stop: Arc<AtomicBool>,
    /// Processes that are to be followed too.
    joining: Arc<Mutex<Vec<u32>>>,
    /// What was expected is in the tables.
    settled: Arc<AtomicBool>,
    waker: Arc<Waker>,
    maps: Arc<Maps>,
    counts: Arc<Mutex<Counts>>,
    thread: Option<JoinHandle<()>>,
}

impl Handle {
    /// Follows a process that runs too.
    pub fn watch(&self, pid: u32) {
        self.joining.lock().unwrap_or_else(PoisonError::into_inner).push(pid);
        self.waker.wake();
    }

    /// Waits until the tables of the programs that were expected are there, at most this long.
    pub fn wait_for_expected(&self, patience: Duration) {
        let until = std::time::Instant::now() + patience;
        while !self.settled.load(Ordering::Acquire) && std::time::Instant::now() < until {
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// Ends the thread; the tables stay as they are.
    pub fn stop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    /// What it has done so far.
    pub fn counts(&self) -> Counts {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut value = [0; 8];
        if self.maps.counter.lookup(&[0; 4], &mut value).unwrap_or(false) {
            counts.no_room += u64::from_le_bytes(value);
        }
        counts
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The thread's side.
struct Running {
    table: ProcessTable,
    records: Records,
    builders: Builders,
    woken: Woken,
    stop: Arc<AtomicBool>,
    /// Set once, for whoever waits for what was expected.
    settled: Arc<AtomicBool>,
    /// Processes that are to be followed too.
    joining: Arc<Mutex<Vec<u32>>>,
    /// Records that were made while the rings were read: earlier ones of other CPUs may still come.
    later: Vec<Said>,
    _links: Vec<Link>,
}

impl Running {
    fn run(mut self) {
        let _ = sys::priority::raise(Urgency::Reader);
        let _ = caps::drop_to(RIGHTS);
        while !self.stop.load(Ordering::Acquire) {
            self.turn();
            let patience = if self.later.is_empty() { self.table.patience() } else { Duration::ZERO };
            if !patience.is_zero() {
                let mut fds: Vec<_> = self.records.descriptors().collect();
                fds.push(self.woken.as_fd());
                let _ = sys::process::wait_any(&fds, Some(patience));
            }
        }
        self.table.end();
    }

    /// Takes what there is, once.
    fn turn(&mut self) {
        self.woken.clear();
        let joining = std::mem::take(&mut *self.joining.lock().unwrap_or_else(PoisonError::into_inner));
        joining.into_iter().for_each(|pid| self.table.watch(Target::Process(pid)));
        let until = monotonic();
        let (records, later) = (&mut self.records, &mut self.later);
        let lost = records.drain(|said| later.push(said));
        later.sort_by_key(|said| said.time);
        let now = later.partition_point(|said| said.time <= until);
        let any = now > 0;
        for said in later.drain(..now) {
            self.table.note(said);
        }
        if lost > 0 {
            self.table.lost(lost);
        }
        for done in self.builders.done.try_iter() {
            self.table.done(done);
        }
        if !any {
            self.table.read_some();
        }
        self.table.write(&self.builders);
        if !self.settled.load(Ordering::Relaxed) && self.table.is_settled() {
            self.settled.store(true, Ordering::Release);
        }
    }
}
