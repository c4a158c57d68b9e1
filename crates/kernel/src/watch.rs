//! Watches what functions are called with: debug registers that are armed while the session runs.
//!
//! ```text
//! program at the function's entry (bpf::probes::watch) ─► requests in shared memory ─► a thread ─► perf events of all CPUs ─► the probe's program
//!                                                              addresses that are watched ◄┘ └► SIGCONT
//! ```
//!
//! A thread of its own, because the process waits for it; where the session's own thread is busy with events, it would wait longer.

use super::attach::attempt::{attach_somehow, mistake};
use super::attach::perf_event;
use super::attach::{self, Attached, Way};
use super::functions::Functions;
use super::moved::Agents;
use bpf::BtfOffsets;
use bpf::probes::watch::{Asked, REGISTERS, REQUESTS, ask, at};
use bpf::probes::{Value, Whose};
use bpf::syscalls::{Maps, Session};
use engine::error::{Error, Result};
use engine::provider::ArgLocation;
use engine::provider::attach_point::ArgumentWatch;
use engine::request::probe_enabling::ProbeEnabling;
use engine::request::watches::Watches;
use engine::rights::refusal::refused;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use sys::bpf::link::Link;
use sys::bpf::map::{MMAPABLE, Map, Values};
use sys::bpf::prog::Program;
use sys::perf::attach::Access;
use sys::{process, signal};

/// How often the thread looks for requests.
const LOOK: Duration = Duration::from_micros(500);
/// SIGCONT of x86 (include/uapi/asm-generic/signal.h).
const SIGCONT: i32 = 18;

/// What an enabling watches. Dropping it ends that: nobody asks any more, and nobody stays stopped.
pub struct Watching {
    /// Of the program that asks.
    links: Vec<Link>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What the program that asks is made with.
pub struct Kit<'a> {
    pub maps: &'a Maps,
    pub offsets: &'a BtfOffsets,
    pub session: &'a Session,
    pub functions: &'a Functions,
    pub agents: &'a Agents,
    pub whose: &'a Whose,
}

impl Watching {
    /// Loads and attaches the program that asks, and begins to watch. `program`: of the probe.
    ///
    /// # Errors
    /// The kernel has no memory or takes no such program; no thread can be started.
    pub fn begin(of: &ArgumentWatch, enabling: &ProbeEnabling, program: &Program, kit: &Kit<'_>) -> Result<Watching> {
        let failed = |e: io::Error| refused(&enabling.name, &e);
        let map = Map::array("trapline_watch", at::SIZE, 1, MMAPABLE).map_err(failed)?;
        let memory = map.mmap().map_err(failed)?;
        let place = ArgLocation::Argument(of.argument);
        let asking = |way: &dyn Way| {
            let address = way.value(&place, 8, false).unwrap_or(Value::Constant(0));
            let alignment = if of.access == Access::Execute { 1 } else { of.len };
            let asked = Asked { address: &address, alignment, stops: of.stops, memory: map.as_fd().as_raw_fd() };
            ask(kit.maps, kit.offsets, kit.session, kit.whose, asked).map_err(mistake)
        };
        let ways = attach::in_file(&of.entries, &[], kit.agents);
        let links = attach_somehow(&ways, &enabling.name, kit.functions, &[&asking])?.attached.links;
        let mut thread = Arming {
            memory,
            armed: Default::default(),
            program: program.try_clone().map_err(failed)?,
            len: of.len,
            access: of.access,
            stops: of.stops,
            watches: enabling.watches.clone(),
        };
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let thread = std::thread::Builder::new().name("trapline-watch".into()).spawn(move || thread.run(&ends));
        let thread =
            thread.map_err(|e| Error::failed("the thread of watchpoints", e.to_string(), "free some processes"))?;
        Ok(Watching { links, over, thread: Some(thread) })
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // Closing them waits until the program runs nowhere: what it has stopped is continued after that.
        self.links.clear();
        self.over.store(true, Ordering::Release);
        self.thread.take().map(JoinHandle::join);
    }
}

/// The thread.
struct Arming {
    memory: Values,
    armed: [Option<Armed>; REGISTERS],
    program: Program,
    len: u8,
    access: Access,
    stops: bool,
    watches: Watches,
}

/// An address that is watched.
struct Armed {
    address: u64,
    /// The process that has asked for it.
    pid: i32,
    /// Dropping it ends that.
    _events: Attached,
}

impl Arming {
    fn run(&mut self, over: &AtomicBool) {
        while !over.load(Ordering::Acquire) {
            self.look();
            std::thread::sleep(LOOK);
        }
        self.look();
    }

    fn word(&self, at: i16) -> Option<&AtomicU64> {
        self.memory.word(at as usize)
    }

    fn get(&self, at: i16) -> u64 {
        self.word(at).map_or(0, |w| w.load(Ordering::Acquire))
    }

    fn set(&self, at: i16, to: u64) {
        self.word(at).into_iter().for_each(|w| w.store(to, Ordering::Release));
    }

    fn look(&mut self) {
        for address in self.watches.take_released() {
            self.release(|armed| armed.address == address);
        }
        for place in (0..REQUESTS as i16).map(|nth| at::REQUESTS + 16 * nth) {
            let address = self.get(place);
            if address == 0 {
                continue;
            }
            let pid = self.get(place + 8) as i32;
            self.watch(address, pid);
            self.set(place, 0);
            if self.stops {
                let _ = signal::kill(pid, SIGCONT);
            }
        }
        self.watches.count(self.get(at::UNWATCHED), self.get(at::MISALIGNED));
    }

    /// Watches an address, if there is a register for it.
    fn watch(&mut self, address: u64, pid: i32) {
        if self.armed.iter().flatten().any(|a| a.address == address) {
            return;
        }
        if !self.arm(address, pid) {
            // Addresses of processes that have ended mean nothing.
            self.release(|armed| process::has_ended(armed.pid));
            if !self.arm(address, pid) {
                self.set(at::FULL, 1);
                if let Some(n) = self.word(at::UNWATCHED) {
                    n.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// Whether there is a register for an address.
    fn arm(&mut self, address: u64, pid: i32) -> bool {
        let Some(nth) = self.armed.iter().position(Option::is_none) else { return false };
        let Ok(events) = perf_event::watch(&self.program, address, self.len, self.access) else { return false };
        self.armed[nth] = Some(Armed { address, pid, _events: events });
        self.set(at::WATCHED + 8 * nth as i16, address);
        true
    }

    /// Gives registers back.
    fn release(&mut self, which: impl Fn(&Armed) -> bool) {
        for nth in 0..REGISTERS {
            if self.armed[nth].as_ref().is_some_and(&which) {
                self.set(at::WATCHED + 8 * nth as i16, 0);
                self.armed[nth] = None;
                self.set(at::FULL, 0);
            }
        }
    }
}
