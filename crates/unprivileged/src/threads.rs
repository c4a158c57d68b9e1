//! What the threads of a process are doing now: their calls, since when, and their stacks.
//!
//! ```text
//!  /proc/PID/task/TID/syscall: call, rip, rsp ─┐
//!  process_vm_readv: the stack ────────────────┼─► unwind::Walk ─► frames
//!  /proc/PID/maps ─► tables ───────────────────┘      │ rbp is wanted, or the thread runs
//!                                                     └─► PTRACE_INTERRUPT, registers, the same again, PTRACE_DETACH
//! ```
//!
//! A thread that is blocked is read without being stopped: what was read counts if the thread has not run meanwhile. It is stopped only
//! where the walk wants rbp, which `/proc` does not have, and only in calls that the kernel restarts: others would fail with EINTR
//! (signal(7)), which their program would see. A thread that runs is stopped for as long as its registers and its stack are copied.

use engine::backend::code::{Code, Files, build_here};
use engine::backend::copied::{Copied, ShadowStack, UNKNOWN};
use engine::backend::in_flight::InFlight;
use engine::capture::Limits;
use events::keep::KeepByCall;
use events::layout::NO_CPU;
use std::collections::HashMap;
use std::io;
use sys::proc::{self, Doing};
use sys::processors::Processors;
use sys::ptrace::{self, Change, FrameRegisters};
use unwind::Ended;
use unwind::walk::{Registers, Walk};

/// Bytes of a stack that are copied at once.
const COPY: usize = 256 << 10;
/// How often a thread that runs meanwhile is read again.
const TRIES: usize = 4;
/// What is read of a call's arguments.
const LIMITS: Limits = Limits { string: 32, text: 0, verbose: false, keep: KeepByCall::ALL };

/// A thread as it was when it was looked at.
#[derive(Debug)]
pub struct Thread {
    /// Its id.
    pub tid: i32,
    /// The id by which it knows itself, in its own pid namespace: what its process writes into locks.
    pub own: i32,
    /// Its name.
    pub name: Vec<u8>,
    /// `R`, `S`, `D`, `T`, `t` or `Z`, as proc(5) has them.
    pub state: char,
    /// The call that it is in.
    pub call: Option<InFlight>,
    /// For how long it has not run, ns; none where it runs, or the kernel does not say.
    pub idle: Option<u64>,
    /// Its frames, innermost first, with the bits of [`unwind::Frame`].
    pub frames: Vec<u64>,
    /// Why there are no more of them.
    pub ended: Ended,
    /// Why there are none, or not all.
    pub missing: Option<Missing>,
    /// The live part of its stack, from rsp on.
    pub stack: Vec<u8>,
    /// rsp.
    pub sp: u64,
    /// Its registers by their numbers in the ABI, as far as they are known; others are no address.
    pub registers: [u64; 16],
}

/// Why a stack is not whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// A frame pointer is wanted, and the call would fail with EINTR if its thread were stopped.
    NotRestarted,
    /// A frame pointer is wanted, or the thread runs, and it was not to be stopped.
    NotStopped,
    /// It could not be stopped or read: why.
    Refused(String),
    /// It ran whenever it was looked at.
    Busy,
}

/// Looks at threads, and remembers the tables of files.
#[derive(Default)]
pub struct Reader {
    files: Files,
    /// Of each processor: the clock of its scheduler minus the monotonic one, ns.
    clocks: HashMap<u16, Option<i64>>,
    /// Nobody is stopped.
    no_stop: bool,
    /// Who knows the registers of blocked threads.
    registers: Option<ReadRegisters>,
    /// Of processes that are looked at again and again: their code, when it was read, and their threads as they were.
    seen: HashMap<i32, Seen>,
    /// How often a thread was stopped.
    pub stops: u32,
    /// How long threads were stopped, ns, all together.
    pub stopped: u64,
}

/// The code of a process is read again after so long, ns.
const CODE_NS: u64 = 1_000_000_000;

/// What is known of a process that is looked at again and again.
#[derive(Default)]
struct Seen {
    code: Code,
    read: u64,
    is_64_bit: bool,
    /// Threads that were asleep, with how often they had been taken off a processor.
    asleep: HashMap<i32, (u64, Asleep)>,
}

/// A thread that did not run.
#[derive(Clone, Debug)]
pub struct Asleep {
    /// Its id.
    pub tid: i32,
    /// Its name.
    pub name: Vec<u8>,
    /// Its frames, innermost first, with the bits of [`unwind::Frame`].
    pub frames: std::sync::Arc<[u64]>,
    /// Why there are no more of them.
    pub ended: Ended,
}

/// Reads the registers of blocked threads, by their ids: rip, rsp, rbp, rbx, r12 to r15. Those of a thread that runs may be
/// anything.
pub type ReadRegisters = Box<dyn FnMut() -> HashMap<i32, Kept> + Send>;

/// The registers that a call keeps: rip, rsp, rbp, rbx, r12 to r15.
type Kept = [u64; 8];

/// What was found of a thread that was not stopped.
enum Found {
    /// All that is wanted.
    Whole(Thread),
    /// It has to be stopped for more.
    Partly(Thread),
    /// It has ended.
    Gone,
}

impl Reader {
    /// One that knows no file yet; with `no_stop` it stops nobody. `registers` are asked for before anybody is stopped.
    pub fn new(no_stop: bool, registers: Option<ReadRegisters>) -> Reader {
        Reader { no_stop, registers, ..Reader::default() }
    }

    /// The threads of a process.
    ///
    /// # Errors
    /// `ENOENT`: there is no such process. `EACCES`, `EPERM`: the rights of ptrace are wanted.
    pub fn read(&mut self, pid: i32) -> io::Result<Vec<Thread>> {
        let tids = proc::threads(pid)?;
        if let Some(first) = tids.first() {
            match proc::doing(pid, *first) {
                Err(e) if matches!(e.kind(), io::ErrorKind::PermissionDenied) => return Err(e),
                _ => {}
            }
        }
        // The slow part comes before anybody is stopped.
        let mut code = Code::of(pid, &mut self.files, &mut build_here).unwrap_or_default();
        let mut is_read_again = false;
        let is_64_bit = is_64_bit(pid);
        let own: Vec<i32> = tids.iter().map(|tid| proc::own_id(*tid).unwrap_or(*tid)).collect();
        let mut threads = Vec::with_capacity(tids.len());
        let mut registers: Option<HashMap<i32, Kept>> = None;
        for (tid, own_id) in tids.iter().copied().zip(own.iter().copied()) {
            let mut found = self.thread(pid, tid, &own, &code, is_64_bit, &mut registers);
            // What was mapped while tables were made: by a loader, by an agent.
            if found.as_ref().is_some_and(|thread| thread.ended == Ended::NoMapping) && !is_read_again {
                is_read_again = true;
                code = Code::of(pid, &mut self.files, &mut build_here).unwrap_or_default();
                let idle = found.and_then(|thread| thread.idle);
                found = self.thread(pid, tid, &own, &code, is_64_bit, &mut registers);
                // If it was stopped, it has run since.
                found = found.map(|thread| Thread { idle: idle.or(thread.idle), ..thread });
            }
            threads.extend(found.map(|thread| Thread { own: own_id, ..thread }));
        }
        Ok(threads)
    }

    /// A thread; none that has ended. `own`: the ids of all of its process.
    fn thread(
        &mut self,
        pid: i32,
        tid: i32,
        own: &[i32],
        code: &Code,
        is_64_bit: bool,
        registers: &mut Option<HashMap<i32, Kept>>,
    ) -> Option<Thread> {
        let mut found = self.look(pid, tid, code, is_64_bit, None);
        if let Found::Whole(thread) = found {
            // Whose lock it waits for is seen in registers too.
            let wants = thread.waits_for_anonymous_lock(own);
            found = if wants { Found::Partly(thread) } else { Found::Whole(thread) };
        }
        if let (Found::Partly(thread), Some(read)) = (&found, &mut self.registers)
            && thread.sp != 0
        {
            let registers = registers.get_or_insert_with(read).get(&tid).copied();
            found = self.look(pid, tid, code, is_64_bit, registers);
        }
        let (Found::Whole(thread) | Found::Partly(thread)) = &found else { return None };
        // A thread that is stopped has run when it is looked at again.
        let idle = self.idle(pid, thread);
        let thread = match found {
            Found::Partly(thread) => self.stop(pid, thread, code),
            Found::Whole(thread) => thread,
            Found::Gone => return None,
        };
        Some(Thread { idle, ..thread })
    }

    /// The threads of a process that are blocked, of which nobody is stopped: those that are seen so again and again have their stacks from
    /// the first time.
    ///
    /// # Errors
    /// Those of [`Reader::read`].
    pub fn asleep(&mut self, pid: i32) -> io::Result<Vec<Asleep>> {
        let tids = proc::threads(pid)?;
        let now = sys::time::monotonic();
        let mut seen = self.seen.remove(&pid).unwrap_or_default();
        if seen.read == 0 || now.saturating_sub(seen.read) > CODE_NS {
            seen.code = Code::of(pid, &mut self.files, &mut build_here).unwrap_or_default();
            (seen.read, seen.is_64_bit) = (now, is_64_bit(pid));
        }
        let mut found = Vec::new();
        for tid in &tids {
            let switches = proc::switches(pid, *tid);
            if let (Some((then, known)), Some(switches)) = (seen.asleep.get(tid), switches)
                && *then == switches
            {
                found.push(known.clone());
                continue;
            }
            seen.asleep.remove(tid);
            let (Found::Whole(thread) | Found::Partly(thread)) = self.look(pid, *tid, &seen.code, seen.is_64_bit, None)
            else {
                continue;
            };
            if thread.frames.is_empty() || !matches!(thread.state, 'S' | 'D') {
                continue;
            }
            let known = Asleep { tid: *tid, name: thread.name, frames: thread.frames.into(), ended: thread.ended };
            if let Some(switches) = switches.filter(|s| proc::switches(pid, *tid) == Some(*s)) {
                seen.asleep.insert(*tid, (switches, known.clone()));
            }
            found.push(known);
        }
        seen.asleep.retain(|tid, _| tids.contains(tid));
        self.seen.insert(pid, seen);
        Ok(found)
    }

    /// What [`Reader::asleep`] remembers of this process is of no use any more: it has executed a program or mapped code.
    pub fn forget(&mut self, pid: i32) {
        self.seen.remove(&pid);
    }

    /// Looks at a thread without stopping it. `known` are the registers that it had a moment ago.
    fn look(&self, pid: i32, tid: i32, code: &Code, is_64_bit: bool, known: Option<Kept>) -> Found {
        let mut last = None;
        for _ in 0..TRIES {
            let Some(name) = proc::comm(tid) else { return Found::Gone };
            let before = proc::switches(pid, tid);
            let (Ok(doing), Some(state)) = (proc::doing(pid, tid), proc::state(pid, tid)) else { return Found::Gone };
            let mut thread = Thread {
                tid,
                own: tid,
                name,
                state,
                call: None,
                idle: None,
                frames: Vec::new(),
                ended: Ended::NoMemory,
                missing: None,
                stack: Vec::new(),
                sp: 0,
                registers: [UNKNOWN; 16],
            };
            if !is_64_bit {
                thread.ended = Ended::NotX86_64;
            }
            let Doing::Blocked { call, sp, pc } = doing else {
                if is_64_bit && !matches!(state, 'Z' | 'X') {
                    last = Some(Found::Partly(thread));
                    // It may be blocked in a moment.
                    std::thread::yield_now();
                    continue;
                }
                return Found::Whole(thread);
            };
            if matches!(state, 'Z' | 'X') {
                return Found::Whole(thread);
            }
            thread.call = call.map(|call| in_flight(pid, tid, call, !is_64_bit));
            thread.sp = sp;
            let mut partly = false;
            if is_64_bit {
                thread.stack = copy(tid, sp);
                let mut registers = [UNKNOWN; 16];
                registers[7] = sp;
                if let Some(kept) = known.filter(|kept| kept[..2] == [pc, sp]) {
                    // By their numbers in the ABI.
                    for (value, number) in kept.iter().skip(2).zip([6, 3, 12, 13, 14, 15]) {
                        registers[number] = *value;
                    }
                }
                let unknown_bp = thread.walk(code, pc, registers, None);
                let needs_bp = unknown_bp && matches!(thread.ended, Ended::ReadFault | Ended::NoRow | Ended::Unknown);
                // The shadow stack of a thread in functions that are traced is found by its `fs` base.
                partly = needs_bp || thread.ended == Ended::Stub;
                if needs_bp {
                    thread.ended = Ended::NotStopped;
                }
            }
            if proc::switches(pid, tid) == before && proc::doing(pid, tid).ok() == Some(doing) {
                return if partly { Found::Partly(thread) } else { Found::Whole(thread) };
            }
            thread.frames.clear();
            thread.call = None;
            last = Some(Found::Partly(thread));
        }
        last.unwrap_or(Found::Gone)
    }

    /// Stops a thread where it may be, and takes its stack.
    fn stop(&mut self, pid: i32, mut thread: Thread, code: &Code) -> Thread {
        let tid = thread.tid;
        let in_call = match proc::doing(pid, tid) {
            Ok(Doing::Blocked { call: Some((nr, args)), .. }) => Some((nr, args)),
            _ => None,
        };
        let harmless = in_call.is_none_or(|(nr, args)| is_restarted(pid, nr, &args));
        // Only its registers would be more.
        let whole = thread.ended == Ended::Outermost;
        if whole && (self.no_stop || !harmless) {
            return thread;
        }
        if self.no_stop || !harmless {
            thread.missing = Some(match (self.no_stop, thread.frames.is_empty()) {
                (true, _) => Missing::NotStopped,
                (false, true) => Missing::Busy,
                (false, false) => Missing::NotRestarted,
            });
            return thread;
        }
        let began = sys::time::monotonic();
        match stopped(tid) {
            Ok((FrameRegisters { pc, by_number, fs_base }, stack)) => {
                self.stopped += sys::time::monotonic().saturating_sub(began);
                self.stops += 1;
                thread.call = in_call.map(|call| in_flight(pid, tid, call, false));
                (thread.sp, thread.stack) = (by_number[7], stack);
                thread.walk(code, pc, by_number, Some(fs_base));
            }
            Err(_) if whole => {}
            Err(e) => thread.missing = Some(Missing::Refused(e.to_string())),
        }
        thread
    }

    /// For how long a thread has not run, ns.
    fn idle(&mut self, pid: i32, thread: &Thread) -> Option<u64> {
        if matches!(thread.state, 'R' | 'Z' | 'X') {
            return None;
        }
        let then = proc::last_ran(pid, thread.tid)?;
        let cpu = proc::cpu(thread.tid)?;
        let offset = (*self.clocks.entry(cpu).or_insert_with(|| clock_of(cpu)))?;
        let now = i64::try_from(sys::time::monotonic()).ok()?.checked_add(offset)?;
        u64::try_from(now.checked_sub(i64::try_from(then).ok()?)?).ok()
    }
}

/// The clock of a processor's scheduler minus the monotonic one, ns: a thread of trapline's runs there, and is told when.
fn clock_of(cpu: u16) -> Option<i64> {
    let there = move || -> Option<i64> {
        Processors::only(cpu.into())?.restrict().ok()?;
        // Put on the processor anew, it has the time of just now.
        std::thread::sleep(std::time::Duration::from_micros(1));
        let now = sys::time::monotonic();
        let pid = sys::process::own_pid();
        let ran = proc::last_ran(pid, sys::process::own_tid())?;
        i64::try_from(ran).ok()?.checked_sub(i64::try_from(now).ok()?)
    };
    std::thread::Builder::new().name("trapline-clock".into()).spawn(there).ok()?.join().ok()?
}

/// The call that a thread is in, with what its arguments point to.
fn in_flight(pid: i32, tid: i32, (nr, args): (i64, [u64; 6]), compat: bool) -> InFlight {
    let mut call = InFlight {
        now: sys::time::monotonic(),
        tid: tid as u32,
        pid: pid as u32,
        compat,
        nr: nr as u64,
        args,
        cpu: NO_CPU,
        ..InFlight::default()
    };
    call.start = call.now;
    call.complete(LIMITS);
    call
}

/// The inner part of a stack.
fn copy(tid: i32, sp: u64) -> Vec<u8> {
    let mut bytes = vec![0; COPY];
    let n = sys::mem::read(tid, sp, &mut bytes).unwrap_or(0);
    bytes.truncate(n);
    bytes
}

/// The registers and the stack of a thread, which is stopped meanwhile.
fn stopped(tid: i32) -> io::Result<(FrameRegisters, Vec<u8>)> {
    ptrace::seize(tid, 0)?;
    ptrace::interrupt(tid)?;
    let change = loop {
        match ptrace::wait_for(tid, true) {
            Ok(Some(status)) => break status.change(),
            Err(e) if e.kind() != io::ErrorKind::Interrupted => return Err(e),
            _ => {}
        }
    };
    let Change::Stopped(signal, event) = change else { return Err(io::ErrorKind::NotFound.into()) };
    let found = ptrace::frame_registers(tid).map(|r| (r, copy(tid, r.by_number[7])));
    // A signal that was about to be delivered is delivered.
    ptrace::detach(tid, if event == 0 { signal } else { 0 })?;
    found
}

impl Thread {
    /// Whether it waits for a lock that does not say whose it is: a futex with the value that locks with waiters have, without the id of one
    /// of these threads (as they know themselves) where a mutex of the GNU C library has it. It is in a call that is restarted.
    fn waits_for_anonymous_lock(&self, own: &[i32]) -> bool {
        const CONTENDED: u64 = 2;
        const PRIVATE: u64 = 128;
        const OWNER: u64 = 8;
        let Some(call) = self.call.as_ref().filter(|c| !c.compat && name_of(c.nr as i64) == "futex") else {
            return false;
        };
        let mut owner = [0; 4];
        let known = sys::mem::read(self.tid, call.args[0].wrapping_add(OWNER), &mut owner).is_ok();
        call.args[2] == CONTENDED && call.args[1] & PRIVATE != 0 && !(known && own.contains(&i32::from_le_bytes(owner)))
    }

    /// Whether this word is in the live part of its stack, or in one of its registers, as far as they are known.
    pub fn has_word(&self, word: u64) -> bool {
        let bytes = word.to_le_bytes();
        self.registers.contains(&word) || self.stack.chunks_exact(8).any(|at| at == bytes)
    }

    /// Walks its stack; says whether rbp was still unknown where the walk ended.
    fn walk(&mut self, code: &Code, pc: u64, registers: [u64; 16], fs_base: Option<u64>) -> bool {
        let (bp, sp) = (registers[6], registers[7]);
        self.registers = registers;
        let shadow = ShadowStack::new(self.tid, fs_base);
        let target = Copied { tid: self.tid, sp, registers, copy: &self.stack, code: Some(code), reads: 0, shadow };
        let mut walk = Walk::new(target, Registers { pc, sp, bp }, unwind::stack::MAX_FRAMES);
        self.frames = walk.by_ref().map(|frame| frame.0).collect();
        self.ended = walk.ended();
        walk.registers().bp == UNKNOWN
    }
}

/// Whether a process executes a 64-bit program (`EI_CLASS`, elf(5)). One whose program cannot be read is taken for one.
fn is_64_bit(pid: i32) -> bool {
    use std::io::Read;
    let mut head = [0; 5];
    match std::fs::File::open(format!("/proc/{pid}/exe")).and_then(|mut f| f.read_exact(&mut head)) {
        Ok(()) => head != *b"\x7fELF\x01",
        Err(_) => true,
    }
}

/// Whether a call goes on by itself after its thread has been stopped, without its program's noticing: those of signal(7) that are restarted,
/// whatever they wait for.
fn is_restarted(pid: i32, nr: i64, args: &[u64; 6]) -> bool {
    /// `FUTEX_CMD_MASK` (`include/uapi/linux/futex.h`); FUTEX_WAIT, LOCK_PI, WAIT_BITSET, LOCK_PI2.
    const FUTEX_COMMAND: u64 = 0x7f;
    const FUTEX_WAITS: [u64; 4] = [0, 6, 9, 13];
    /// `F_SETLKW`, `F_OFD_SETLKW` (`include/uapi/asm-generic/fcntl.h`).
    const LOCKS: [u64; 2] = [7, 38];
    match name_of(nr) {
        "futex" => FUTEX_WAITS.contains(&(args[1] & FUTEX_COMMAND)),
        "fcntl" => LOCKS.contains(&args[1]),
        "wait4" | "waitid" | "nanosleep" | "clock_nanosleep" | "restart_syscall" | "poll" | "ppoll" | "select"
        | "pselect6" | "pause" | "rt_sigsuspend" | "flock" => true,
        "read" | "readv" | "write" | "writev" | "recvfrom" | "recvmsg" | "sendto" | "sendmsg" | "accept"
        | "accept4" | "connect" => is_of_restarting_file(pid, args[0] as i32),
        _ => false,
    }
}

/// The name of a 64-bit call; empty where it has none.
fn name_of(nr: i64) -> &'static str {
    u64::try_from(nr).ok().and_then(events::registry::by_number).map_or("", |schema| schema.name)
}

/// Whether a call that waits for a descriptor of this kind is restarted.
fn is_of_restarting_file(pid: i32, fd: i32) -> bool {
    let link = proc::fd_link(pid, Some(fd)).unwrap_or_default();
    let is = |what: &str| link.starts_with(what.as_bytes());
    if is("socket:") {
        return sys::fdinfo::socket_times_out(pid, fd).is_ok_and(|times_out| !times_out);
    }
    ["pipe:", "/dev/pts/", "/dev/tty", "anon_inode:[eventfd", "anon_inode:[timerfd", "anon_inode:[signalfd"]
        .iter()
        .any(|what| is(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(name: &str) -> i64 {
        events::registry::by_name(name).and_then(|s| s.x86_64).expect("a call").into()
    }

    #[test]
    fn only_calls_that_are_restarted_may_be_stopped() {
        let own = sys::process::own_pid();
        let one = |first: u64, second: u64| [first, second, 0, 0, 0, 0];
        for (name, args, restarted) in [
            ("futex", one(0, 128), true),
            ("futex", one(0, 128 | 11), false),
            ("wait4", one(0, 0), true),
            ("epoll_wait", one(0, 0), false),
            ("semop", one(0, 0), false),
            ("fcntl", one(0, 7), true),
            ("fcntl", one(0, 6), false),
            ("read", one(9999, 0), false),
        ] {
            assert_eq!(is_restarted(own, number(name), &args), restarted, "{name} {args:?}");
        }
    }

    #[test]
    fn sockets_with_a_timeout_are_left_alone() {
        use std::os::fd::AsRawFd;
        let (a, _b) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let own = sys::process::own_pid();
        let args = [a.as_raw_fd() as u64, 0, 0, 0, 0, 0];
        assert!(is_restarted(own, number("recvfrom"), &args));
        a.set_read_timeout(Some(std::time::Duration::from_secs(9))).expect("a timeout");
        assert!(!is_restarted(own, number("recvfrom"), &args));
    }

    #[test]
    fn own_threads_are_seen_where_they_wait() {
        let (to, from) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::Builder::new().name("waits".into()).spawn(move || from.recv()).expect("a thread");
        let own = sys::process::own_pid();
        let mut reader = Reader::new(true, None);
        let found = loop {
            let threads = reader.read(own).expect("own threads");
            let waits = threads.into_iter().find(|t| t.name == b"waits").expect("the thread");
            if waits.call.as_ref().is_some_and(|call| call.nr == number("futex") as u64) {
                break waits;
            }
            std::thread::yield_now();
        };
        assert!(found.frames.len() > 1 && found.state == 'S', "{:?}", found.frames.len());
        // Whole, unless the standard library is built with frame pointers: one's own threads cannot be stopped.
        let whole = (found.ended, found.missing.clone()) == (Ended::Outermost, None);
        assert!(whole || found.missing == Some(Missing::NotStopped), "{:?} {:?}", found.ended, found.missing);
        assert_eq!(reader.stopped, 0);
        assert!(found.idle.is_none_or(|ns| ns < 60_000_000_000), "{:?}", found.idle);
        drop(to);
        assert!(thread.join().is_ok());
    }
}
