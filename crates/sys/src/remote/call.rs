//! Calls of functions in a stopped thread of another process.
//!
//! ```text
//!  memory in the target:  code │ stack ◄── │ block: result, done, … │ bytes for the function │ signal frame
//! ```
//!
//! The thread runs on a stack of its own, with all signals blocked. When the function has returned, the code notes the result
//! and that it is done, and waits for trapline to stop the thread and to give it its registers back. If trapline has died meanwhile, the
//! code gives them back itself after a second, by the signal frame: a killed trapline does not kill the program.
//!
//! The memory is mapped by system calls that need none: at a `syscall` instruction of the program's, behind which a signal frame on the
//! thread's own stack gives the registers back, if trapline has died. That takes no more of the stack than a signal that comes then. Whatever
//! a thread is given, its registers lead to a signal frame before its mask blocks signals, until its mask is its own again.
//!
//! Blocked signals stay pending in the kernel, whole, until the thread has its own mask again. A system call from which the thread was
//! stopped is repeated or continued as if nothing had happened.

use super::frame;
use super::thread::Thread;
use crate::mem;
use crate::ptrace::{self, Change, Registers, event};
use std::io;
use std::time::{Duration, Instant};

/// Bytes of the memory: a page of code, and the rest.
const CODE: u64 = 4096;
const MEMORY: u64 = 448 << 10;
/// Room for the block, the bytes for the function, and the signal frame, at the end of the memory.
const ROOM: u64 = 96 << 10;
/// The most bytes for a function.
const DATA: usize = 16 << 10;
/// Offset of those from the block.
const DATA_AT: u64 = 64;

/// `rbx`: the block; `r12`: the function.
///
/// ```text
///       call r12
///       mov [rbx], rax; mov dword [rbx+8], 1
///       rdtsc; shl rdx, 32; or rax, rdx; mov r13, rax
///  1:   mov eax, SYS_sched_yield; syscall
///       rdtsc; shl rdx, 32; or rax, rdx; sub rax, r13; cmp rax, [rbx+16]; jb 1b
///       mov rsp, [rbx+24]; mov eax, SYS_rt_sigreturn; syscall
/// ```
const CALL: &[u8] = &[
    0x41, 0xff, 0xd4, 0x48, 0x89, 0x03, 0xc7, 0x43, 0x08, 1, 0, 0, 0, 0x0f, 0x31, 0x48, 0xc1, 0xe2, 32, 0x48, 0x09,
    0xd0, 0x49, 0x89, 0xc5, 0xb8, 24, 0, 0, 0, 0x0f, 0x05, 0x0f, 0x31, 0x48, 0xc1, 0xe2, 32, 0x48, 0x09, 0xd0, 0x4c,
    0x29, 0xe8, 0x48, 0x3b, 0x43, 16, 0x72, 0xe7, 0x48, 0x8b, 0x63, 24, 0xb8, 15, 0, 0, 0, 0x0f, 0x05,
];
/// A function of libc's kind: (number, six arguments).
///
/// ```text
///  mov rax, rdi; mov rdi, rsi; mov rsi, rdx; mov rdx, rcx; mov r10, r8; mov r8, r9; mov r9, [rsp+8]; syscall; ret
/// ```
const SYSCALL: &[u8] = &[
    0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x48, 0x89, 0xd6, 0x48, 0x89, 0xca, 0x4d, 0x89, 0xc2, 0x4d, 0x89, 0xc8, 0x4c,
    0x8b, 0x4c, 0x24, 8, 0x0f, 0x05, 0xc3,
];
const SYSCALL_AT: u64 = 256;
/// What a function may use below its stack pointer (System V ABI for x86-64, "The Stack Frame").
const RED_ZONE: u64 = 128;
/// How long the code waits for trapline, in ticks of the time stamp counter: about a second.
const ALONE: u64 = 3_000_000_000;
/// How long a thread that runs may take to stop.
const STOP: Duration = Duration::from_millis(500);

/// How long a thread may take to begin a system call, on a loaded machine too.
const BEGIN: Duration = Duration::from_secs(5);

fn pause(since: Instant) {
    if since.elapsed() < Duration::from_micros(50) {
        std::thread::yield_now();
    } else {
        std::thread::sleep(Duration::from_micros(20));
    }
}

/// Calls functions in a stopped thread. Dropped, the thread is as it was, and still stopped.
pub struct Caller<'t> {
    thread: &'t mut Thread,
    /// What the thread has of its own.
    own: Registers,
    state: Vec<u8>,
    mask: u64,
    /// Where the memory in the target is.
    memory: u64,
    instructions: Instructions,
    /// The memory stays when the value goes.
    kept: bool,
    /// A call has not come back: the thread is not to be touched.
    lost: bool,
}

/// Memory for calls that stays mapped in the target between two [`Caller`]s: making and removing it takes longer than a call. Dropped, it is
/// unmapped by any thread of the target that can be stopped.
#[derive(Debug)]
#[must_use]
pub struct Memory {
    pid: i32,
    /// 0: a [`Caller`] has it.
    at: u64,
    instructions: Instructions,
}

impl Memory {
    /// Whether it is in the process of a thread: neither another process's, nor gone with a program that was executed.
    fn is_of(&self, tid: i32) -> bool {
        let mut there = vec![0; CODE as usize];
        mem::read(tid, self.at, &mut there).is_ok_and(|len| len == there.len()) && there == code()
    }

    fn unmap_by(&self, tid: i32) -> io::Result<()> {
        let mut thread = Thread::ask(tid)?;
        if !thread.has_stopped()? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut caller = Caller::prepare(&mut thread, self.instructions)?;
        caller.memory = self.at;
        Ok(())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.at != 0 && self.is_of(self.pid) {
            let threads = crate::proc::threads(self.pid).unwrap_or_default();
            let _ = threads.into_iter().any(|tid| self.unmap_by(tid).is_ok());
        }
    }
}

/// The page of code.
fn code() -> Vec<u8> {
    let mut code = vec![0xcc; CODE as usize];
    code[..CALL.len()].copy_from_slice(CALL);
    code[SYSCALL_AT as usize..SYSCALL_AT as usize + SYSCALL.len()].copy_from_slice(SYSCALL);
    code
}

impl<'t> Caller<'t> {
    /// Prepares a thread.
    ///
    /// # Errors
    /// The thread has ended, runs 32-bit code, or may not map memory.
    pub fn new(thread: &'t mut Thread, instructions: Instructions) -> io::Result<Caller<'t>> {
        let mut caller = Caller::prepare(thread, instructions)?;
        caller.map()?;
        Ok(caller)
    }

    /// As [`Caller::new`], with the memory of an earlier one, which goes with the value.
    ///
    /// # Errors
    /// The thread has ended, or runs 32-bit code. `InvalidInput`: the memory is not in its process.
    pub fn again(thread: &'t mut Thread, mut memory: Memory) -> io::Result<Caller<'t>> {
        if !memory.is_of(thread.tid()) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut caller = Caller::prepare(thread, memory.instructions)?;
        caller.memory = std::mem::take(&mut memory.at);
        Ok(caller)
    }

    /// Ends as if dropped, but leaves the memory, for [`Caller::again`].
    pub fn keep(mut self) -> Memory {
        let tid = self.thread.tid();
        let pid = crate::proc::status_field(tid, "Tgid").and_then(|id| id.parse().ok()).unwrap_or(tid);
        self.kept = true;
        Memory { pid, at: self.memory, instructions: self.instructions }
    }

    fn prepare(thread: &'t mut Thread, instructions: Instructions) -> io::Result<Caller<'t>> {
        let tid = thread.tid();
        let own = thread.registers()?;
        if !own.is_64_bit() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let (state, mask) = (ptrace::extended_state(tid)?, ptrace::signal_mask(tid)?);
        Ok(Caller { thread, own, state, mask, memory: 0, instructions, kept: false, lost: false })
    }

    fn map(&mut self) -> io::Result<()> {
        let (rw, rx) = ((libc::PROT_READ | libc::PROT_WRITE) as u64, (libc::PROT_READ | libc::PROT_EXEC) as u64);
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
        let at = self.bare(libc::SYS_mmap, [0, MEMORY, rw, flags, u64::MAX, 0])?;
        if at < 0 {
            return Err(in_target("mmap", at));
        }
        self.memory = at as u64;
        let code = code();
        self.thread.write(self.memory, &code)?;
        if self.bare(libc::SYS_mprotect, [self.memory, CODE, rx, 0, 0, 0])? >= 0 {
            return Ok(());
        }
        // Memory that has been written to may not become code (PR_SET_MDWE, a filter): new memory is mapped as code, and written through
        // the process's file of its memory.
        let fixed = flags | libc::MAP_FIXED as u64;
        let at = self.bare(libc::SYS_mmap, [self.memory, CODE, rx, fixed, u64::MAX, 0])?;
        if at < 0 {
            return Err(in_target("mmap of code", at));
        }
        self.thread.write_code(self.memory, &code)
    }

    /// A system call without any memory in the target: at an instruction of its own, between the two stops of the call.
    fn bare(&mut self, number: i64, arguments: [u64; 6]) -> io::Result<i64> {
        let tid = self.thread.tid();
        let mut to = self.own;
        let r = &mut to.0;
        [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9] = arguments;
        (r.rip, r.rax, r.orig_rax) = (self.instructions.call, number as u64, u64::MAX);
        r.eflags &= !0x100;
        if let Some(sp) = self.put_way_back()? {
            r.rsp = sp;
        }
        self.leave_to(&to)?;
        if let Err(e) = self.step_call() {
            if e.kind() == io::ErrorKind::TimedOut {
                self.thread.hold(STOP)?;
                self.restore()?;
            }
            return Err(e);
        }
        // From the end of a call the thread would go on without a look at the registers that it gets: only after a stop of this kind
        // does the kernel repeat the call that the thread was in before.
        self.thread.hold_on(STOP)?;
        let answer = ptrace::all_registers(tid)?;
        self.restore()?;
        Ok(answer.0.rax as i64)
    }

    /// Puts on the thread's own stack what `syscall; ret` returns to: rt_sigreturn(2), and a signal frame for it. The stack pointer for that.
    /// None: the thread runs on a stack that somebody else has made, of a coroutine or for signals, and nobody knows where that ends.
    fn put_way_back(&self) -> io::Result<Option<u64>> {
        let (sp, tls) = (self.own.sp(), self.own.fs_base());
        let map = crate::maps::at(self.thread.tid(), sp)?;
        let is_own = |m: &crate::maps::Map| m.path == b"[stack]" || sp < tls && tls < m.range.1;
        let Some(map) = map.filter(is_own).filter(|_| self.instructions.back != 0) else { return Ok(None) };
        let len = frame::build(0, &self.own, &self.state, self.mask).len() as u64;
        let at = sp.saturating_sub(RED_ZONE + len) & !63;
        if at.saturating_sub(8) < map.range.0 {
            return Ok(None);
        }
        let mut bytes = self.instructions.back.to_le_bytes().to_vec();
        bytes.extend(frame::build(at, &self.own, &self.state, self.mask));
        self.thread.write(at - 8, &bytes)?;
        Ok(Some(at - 8))
    }

    /// Gives the thread registers that lead to a signal frame, and blocks its signals.
    fn leave_to(&self, to: &Registers) -> io::Result<()> {
        let tid = self.thread.tid();
        ptrace::set_all_registers(tid, to)?;
        ptrace::set_signal_mask(tid, u64::MAX)
    }

    /// From where the thread is through one system call. `TimedOut`: it has not begun the call, because it is frozen (cgroups(7)).
    fn step_call(&mut self) -> io::Result<()> {
        let tid = self.thread.tid();
        for is_in_call in [false, true] {
            ptrace::syscall(tid, 0)?;
            let since = Instant::now();
            loop {
                let status = match ptrace::wait_for(tid, is_in_call) {
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    Ok(None) if since.elapsed() > BEGIN => return Err(io::ErrorKind::TimedOut.into()),
                    Ok(None) => {
                        pause(since);
                        continue;
                    }
                    other => other?.ok_or(io::ErrorKind::NotFound)?,
                };
                match status.change() {
                    Change::Stopped(signal, 0) if signal & 0x80 != 0 || signal == libc::SIGTRAP => break,
                    // SIGSTOP, which cannot be blocked: the process stops when it is let go.
                    Change::Stopped(signal, 0) => ptrace::syscall(tid, signal)?,
                    Change::Stopped(..) => ptrace::syscall(tid, 0)?,
                    _ => return Err(io::Error::from_raw_os_error(libc::ESRCH)),
                }
            }
        }
        Ok(())
    }

    /// Where the block begins.
    fn block(&self) -> u64 {
        self.memory + MEMORY - ROOM
    }

    /// Where `data` of a [`Caller::call`] is, in the target.
    pub fn data(&self) -> u64 {
        self.block() + DATA_AT
    }

    /// A system call; its result, negative for an error number.
    ///
    /// # Errors
    /// Those of [`Caller::call`].
    pub fn syscall(&mut self, number: i64, arguments: [u64; 6], data: &[u8]) -> io::Result<i64> {
        let [a, b, c, d, e, f] = arguments;
        let function = self.memory + SYSCALL_AT;
        self.begin(function, [number as u64, a, b, c, d, e], f, data)?;
        self.finish(Duration::from_secs(2)).map(|n| n as i64)
    }

    /// Calls the function at an address, with `data` in memory at [`Caller::data`]. All signals are blocked meanwhile; other threads
    /// stay as they are.
    ///
    /// # Errors
    /// `InvalidInput`: too many bytes. `TimedOut`: it has not returned; the thread goes on in it, and then where it was. ESRCH: the thread
    /// has ended.
    pub fn call(&mut self, function: u64, arguments: [u64; 6], data: &[u8], limit: Duration) -> io::Result<u64> {
        self.begin(function, arguments, 0, data)?;
        self.finish(limit)
    }

    fn begin(&mut self, function: u64, arguments: [u64; 6], seventh: u64, data: &[u8]) -> io::Result<()> {
        if data.len() > DATA {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let block = self.block();
        let frame = (block + DATA_AT + data.len() as u64).next_multiple_of(64);
        let words = [0, 0, ALONE, frame, 0, 0, 0, 0];
        let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        bytes.extend_from_slice(data);
        bytes.resize((frame - block) as usize, 0);
        bytes.extend(frame::build(frame, &self.own, &self.state, self.mask));
        if bytes.len() as u64 > ROOM {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let stack = block - 64;
        self.thread.write(stack, &seventh.to_le_bytes())?;
        self.thread.write(block, &bytes)?;
        let mut to = self.own;
        let r = &mut to.0;
        [r.rdi, r.rsi, r.rdx, r.rcx, r.r8, r.r9] = arguments;
        (r.rip, r.rsp, r.rbp, r.rax, r.orig_rax) = (self.memory, stack, 0, 0, u64::MAX);
        (r.rbx, r.r12) = (block, function);
        // The direction flag is clear in every function. With the trap flag, and its signal blocked, the first instruction would be the last.
        r.eflags &= !0x500;
        self.leave_to(&to)?;
        self.thread.run()
    }

    fn finish(&mut self, limit: Duration) -> io::Result<u64> {
        let (tid, block, since) = (self.thread.tid(), self.block(), Instant::now());
        loop {
            // SIGSTOP cannot be blocked: the call goes on, and the process stops when it is let go.
            if self.thread.look()? == Some(event::STOP) {
                self.thread.run()?;
            }
            let mut answer = [0; 12];
            if mem::read(tid, block, &mut answer)? == answer.len() && answer[8] != 0 {
                self.thread.hold(STOP)?;
                self.restore()?;
                return Ok(u64::from_le_bytes(std::array::from_fn(|i| answer[i])));
            }
            if since.elapsed() > limit {
                self.lost = true;
                return Err(io::ErrorKind::TimedOut.into());
            }
            pause(since);
        }
    }

    /// Gives the thread what it had: last the registers, which lead to the signal frame until then.
    fn restore(&mut self) -> io::Result<()> {
        let tid = self.thread.tid();
        ptrace::set_signal_mask(tid, self.mask)?;
        ptrace::set_extended_state(tid, &self.state)?;
        ptrace::set_all_registers(tid, &self.own)
    }
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        if self.lost {
            return;
        }
        if self.memory != 0 && !self.kept {
            let _ = self.bare(libc::SYS_munmap, [self.memory, MEMORY, 0, 0, 0, 0]);
        }
        let _ = self.restore();
    }
}

/// The error of a call that was made in the target: not to be taken for one of trapline's own.
fn in_target(call: &str, answer: i64) -> io::Error {
    let error = io::Error::from_raw_os_error(-answer as i32);
    let kind = if error.kind() == io::ErrorKind::OutOfMemory { error.kind() } else { io::ErrorKind::Other };
    io::Error::new(kind, format!("{call} in the process: {error}"))
}

/// Instructions that a process has, for calls that need no memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Instructions {
    /// Where `syscall; ret` is.
    call: u64,
    /// Where `mov eax, SYS_rt_sigreturn; syscall` is; 0: nowhere.
    back: u64,
}

impl Instructions {
    /// Finds them in the code of a process: glibc has both.
    ///
    /// # Errors
    /// Its memory may not be read (`PermissionDenied`); `NotFound`: there are none.
    pub fn of(pid: i32) -> io::Result<Instructions> {
        const MOST: usize = 2 << 20;
        let maps = crate::maps::of(pid)?;
        let code = maps.iter().filter(|m| m.prot & crate::maps::PROT_EXEC != 0 && m.path != b"[vsyscall]");
        let (libc, others): (Vec<_>, Vec<_>) = code.partition(|m| m.path.windows(6).any(|w| w == b"/libc."));
        let mut found = Instructions::default();
        for map in libc.into_iter().chain(others) {
            let mut bytes = vec![0; ((map.range.1 - map.range.0) as usize).min(MOST)];
            let len = mem::read(pid, map.range.0, &mut bytes)?;
            found.look_in(&bytes[..len], map.range.0);
            if found.call != 0 && found.back != 0 {
                break;
            }
        }
        if found.call == 0 { Err(io::ErrorKind::NotFound.into()) } else { Ok(found) }
    }

    fn look_in(&mut self, code: &[u8], at: u64) {
        // mov eax, 15; and mov rax, 15, as glibc has it.
        const NUMBERS: [&[u8]; 2] = [&[0xb8, 15, 0, 0, 0], &[0x48, 0xc7, 0xc0, 15, 0, 0, 0]];
        for place in code.windows(2).enumerate().filter(|(_, w)| *w == [0x0f, 0x05]).map(|(place, _)| place) {
            if self.call == 0 && code.get(place + 2) == Some(&0xc3) {
                self.call = at + place as u64;
            }
            let before = NUMBERS.iter().find(|n| code[..place].ends_with(n));
            if let Some(number) = before.filter(|_| self.back == 0) {
                self.back = at + (place - number.len()) as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Threads;
    use super::*;
    use crate::proc;
    use std::process::{Child, Command};
    use std::time::Instant;

    fn sleeper(seconds: &str) -> Child {
        let child = Command::new("sleep").arg(seconds).spawn().unwrap();
        let since = Instant::now();
        while proc::call_in_flight(child.id() as i32, child.id() as i32)
            .is_none_or(|(nr, _)| nr != libc::SYS_clock_nanosleep)
        {
            assert!(since.elapsed() < Duration::from_secs(5), "it does not sleep");
            std::thread::sleep(Duration::from_millis(1));
        }
        child
    }

    #[test]
    fn calls_are_made_and_the_sleep_goes_on() {
        let mut child = sleeper("1");
        let (pid, since) = (child.id() as i32, Instant::now());
        let maps = crate::maps::of(pid).unwrap();
        for _ in 0..20 {
            let mut threads = Threads::stop(pid).unwrap();
            let at = Instructions::of(pid).unwrap();
            let before = threads.all()[0].registers().unwrap();
            {
                let mut caller = Caller::new(&mut threads.all()[0], at).unwrap();
                assert_eq!(caller.syscall(libc::SYS_getpid, [0; 6], &[]).unwrap(), pid.into());
                let text = c"/nowhere at all";
                let path = caller.data();
                let answer = caller.syscall(libc::SYS_access, [path, 0, 0, 0, 0, 0], text.to_bytes_with_nul()).unwrap();
                assert_eq!(answer, -i64::from(libc::ENOENT));
            }
            let after = threads.all()[0].registers().unwrap();
            assert_eq!((before.pc(), before.sp(), before.0.rax), (after.pc(), after.sp(), after.0.rax));
            threads.release();
        }
        assert_eq!(crate::maps::of(pid).unwrap(), maps);
        assert!(child.wait().unwrap().success());
        assert!(since.elapsed() > Duration::from_millis(900), "the sleep was cut short");
    }

    #[test]
    fn memory_that_is_kept_fits_its_process_alone_and_goes_with_the_value() {
        let mut children = [sleeper("10"), sleeper("10")];
        let [pid, other] = [0, 1].map(|i| children[i].id() as i32);
        let before = crate::maps::of(pid).unwrap();
        let kept = || {
            let mut threads = Threads::stop(pid).unwrap();
            Caller::new(&mut threads.all()[0], Instructions::of(pid).unwrap()).unwrap().keep()
        };
        let memory = kept();
        {
            let mut threads = Threads::stop(pid).unwrap();
            let mut caller = Caller::again(&mut threads.all()[0], memory).unwrap();
            assert_eq!(caller.syscall(libc::SYS_getpid, [0; 6], &[]).unwrap(), pid.into());
        }
        assert_eq!(crate::maps::of(pid).unwrap(), before);
        let memory = kept();
        assert_ne!(crate::maps::of(pid).unwrap(), before);
        let mut threads = Threads::stop(other).unwrap();
        let refused = Caller::again(&mut threads.all()[0], memory).map(drop);
        assert_eq!(refused.map_err(|e| e.kind()), Err(io::ErrorKind::InvalidInput));
        assert_eq!(crate::maps::of(pid).unwrap(), before);
        drop(threads);
        children.iter_mut().for_each(|c| c.kill().and_then(|()| c.wait()).map(drop).unwrap());
    }

    #[test]
    fn only_a_stopped_thread_of_another_process_is_written_to() {
        assert!(Thread::ask(crate::process::own_pid()).is_err());
        let mut child = sleeper("10");
        let mut thread = Thread::ask(child.id() as i32).unwrap();
        assert!(thread.write(0, &[]).is_err());
        assert!(thread.has_stopped().unwrap());
        let (sp, mut there) = (thread.registers().unwrap().sp() & !7, [0; 8]);
        mem::read(thread.tid(), sp, &mut there).unwrap();
        thread.write(sp, &there).unwrap();
        assert!(thread.write(0, &there).is_err());
        drop(thread);
        child.kill().and_then(|()| child.wait()).unwrap();
    }

    #[test]
    fn a_call_that_does_not_return_is_given_up_and_a_thread_goes_on_by_itself() {
        let mut child = sleeper("0.5");
        let pid = child.id() as i32;
        let mut threads = Threads::stop(pid).unwrap();
        let at = Instructions::of(pid).unwrap();
        let mut caller = Caller::new(&mut threads.all()[0], at).unwrap();
        caller.begin(caller.memory + SYSCALL_AT, [libc::SYS_getpid as u64, 0, 0, 0, 0, 0], 0, &[]).unwrap();
        // As if trapline were killed now.
        caller.lost = true;
        drop(caller);
        threads.release();
        assert!(child.wait().unwrap().success());
    }

    /// Where the process that the test below starts has the target's id, and at which request it dies.
    const TARGET: &str = "TRAPLINE_TEST_TARGET";

    /// Not a test of its own: what the test below has done, and killed at one of its requests.
    #[test]
    fn helper_that_is_killed() {
        let Ok(words) = std::env::var(TARGET) else { return };
        let (pid, at) = words.split_once(' ').unwrap();
        let (pid, at): (i32, u64) = (pid.parse().unwrap(), at.parse().unwrap());
        ptrace::tests::die_at(at);
        let mut threads = Threads::stop(pid).unwrap();
        let mut caller = Caller::new(&mut threads.all()[0], Instructions::of(pid).unwrap()).unwrap();
        assert_eq!(caller.syscall(libc::SYS_getpid, [0; 6], &[]).unwrap(), pid.into());
        let memory = caller.keep();
        let mut caller = Caller::again(&mut threads.all()[0], memory).unwrap();
        assert_eq!(caller.syscall(libc::SYS_getpid, [0; 6], &[]).unwrap(), pid.into());
        drop(caller);
        threads.release();
        std::process::exit(77);
    }

    /// Whenever trapline is killed, the program goes on as if nothing had been.
    #[test]
    fn a_trapline_that_is_killed_at_any_request_leaves_the_program_as_it_was() {
        use std::io::{BufRead, BufReader, Write};
        use std::process::Stdio;
        let Some(program) = testkit::compiled("undisturbed", "undisturbed.c", &[]) else { return };
        for what in ["busy", "reads"] {
            let mut targets = Vec::new();
            for at in 1.. {
                let mut target = Command::new(&program);
                let target = target.arg(what).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
                let mut target = target.unwrap();
                BufReader::new(target.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
                let mut helper = Command::new(std::env::current_exe().unwrap());
                helper.args(["--exact", "remote::call::tests::helper_that_is_killed", "--nocapture"]);
                helper.env(TARGET, format!("{} {at}", target.id())).stdout(Stdio::null());
                let end = helper.status().unwrap();
                // A thread that waits for trapline gets the signal when it has given itself its mask.
                target.stdin.take().unwrap().write_all(b"x").unwrap();
                if what == "busy" {
                    // SAFETY: a child that nobody has waited for.
                    unsafe { libc::kill(target.id() as i32, libc::SIGTERM) };
                }
                targets.push(target);
                if end.code() == Some(77) {
                    break;
                }
                assert_eq!(
                    std::os::unix::process::ExitStatusExt::signal(&end),
                    Some(libc::SIGKILL),
                    "{what} {at}: {end}"
                );
                assert!(at < 1000, "there is no end");
            }
            assert!(targets.len() > 30, "{} requests", targets.len());
            for (at, target) in targets.iter_mut().enumerate() {
                let since = Instant::now();
                let end = loop {
                    if let Some(end) = target.try_wait().unwrap() {
                        break end.to_string();
                    }
                    if since.elapsed() > Duration::from_secs(20) {
                        target.kill().and_then(|()| target.wait()).unwrap();
                        break "it does not end".into();
                    }
                    std::thread::sleep(Duration::from_millis(1));
                };
                assert_eq!(end, "exit status: 0", "{what}: killed at request {}", at + 1);
            }
        }
    }
}
