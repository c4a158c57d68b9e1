//! A request of ptrace(2) that a signal ends. The kernel begins it anew after any handler (`ERESTARTNOINTR`, `ptrace_attach` in
//! `kernel/ptrace.c`); the handler here passes the instruction by.
//!
//! ```text
//!  timer ─► SIGURG to this thread ─► handler: is the pc at the call? ─► behind it, with EINTR
//! ```

use crate::check::check;
use std::io;
use std::sync::Once;
use std::time::Duration;

/// When a request takes long.
pub const AFTER: Duration = Duration::from_millis(20);

core::arch::global_asm!(
    ".text",
    ".p2align 4",
    ".hidden trapline_ptrace",
    ".globl trapline_ptrace",
    "trapline_ptrace:",
    "mov r10, rcx",
    // __NR_ptrace
    "mov eax, 101",
    ".hidden trapline_ptrace_call",
    ".globl trapline_ptrace_call",
    "trapline_ptrace_call:",
    "syscall",
    ".hidden trapline_ptrace_end",
    ".globl trapline_ptrace_end",
    "trapline_ptrace_end:",
    "ret",
);

unsafe extern "C" {
    fn trapline_ptrace(request: u64, tid: u64, address: u64, data: u64) -> i64;
    fn trapline_ptrace_call();
    fn trapline_ptrace_end();
}

extern "C" fn pass_by(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel passes a valid ucontext, which is this handler's until it returns.
    let Some(context) = (unsafe { context.cast::<libc::ucontext_t>().as_mut() }) else { return };
    let registers = &mut context.uc_mcontext.gregs;
    let [call, end] = [trapline_ptrace_call, trapline_ptrace_end].map(|label| label as *const () as i64);
    if registers[libc::REG_RIP as usize] == call {
        registers[libc::REG_RIP as usize] = end;
        registers[libc::REG_RAX as usize] = -i64::from(libc::EINTR);
    }
}

/// `PTRACE_SEIZE`.
pub fn seize(tid: i32, options: u64) -> io::Result<()> {
    // SAFETY: the request takes no address.
    let answer = unsafe { trapline_ptrace(libc::PTRACE_SEIZE as u64, tid as u64, 0, options) };
    if answer < 0 { Err(io::Error::from_raw_os_error(-answer as i32)) } else { Ok(()) }
}

/// Interrupts this thread's request again and again, until it is dropped.
pub struct Timer(libc::timer_t);

impl Timer {
    /// Begins now.
    ///
    /// # Errors
    /// Of timer_create(2): there are too many.
    pub fn start(every: Duration) -> io::Result<Timer> {
        static HANDLER: Once = Once::new();
        HANDLER.call_once(|| {
            // SAFETY: a zeroed sigaction with a handler and flags is valid; the handler changes nothing but its own context.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = pass_by as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
                libc::sigaction(libc::SIGURG, &action, std::ptr::null_mut());
            }
        });
        let mut timer = std::ptr::null_mut();
        // SAFETY: a zeroed sigevent is valid, and so are the places that the call reads and writes.
        unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = libc::SIGURG;
            event.sigev_notify_thread_id = libc::gettid();
            check(libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer).into())?;
        }
        let timer = Timer(timer);
        let every = libc::timespec { tv_sec: every.as_secs() as _, tv_nsec: every.subsec_nanos().into() };
        let times = libc::itimerspec { it_interval: every, it_value: every };
        // SAFETY: the timer is there, and the times are valid for the call.
        check(unsafe { libc::timer_settime(timer.0, 0, &times, std::ptr::null_mut()) }.into())?;
        Ok(timer)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the timer is there, and is deleted once.
        unsafe { libc::timer_delete(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// A thread that executes a program waits for another thread of its process, which has ended and is traced here: attaching to it is
    /// interrupted until that one is waited for.
    #[test]
    fn attaching_to_a_process_that_executes_a_program_is_interrupted() {
        let source = "import os, threading, time\n\
            def execute():\n    os.read(0, 1)\n    os.execv('/bin/sleep', ['sleep', '100'])\n\
            for work in execute, lambda: time.sleep(100): threading.Thread(target=work).start()\n\
            print(*(t.native_id for t in threading.enumerate()[1:]), flush=True)\n";
        let python = std::process::Command::new("/usr/bin/python3")
            .args(["-c", source])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn();
        let Ok(mut child) = python else { return testkit::skip("package", "no python3") };
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line).unwrap();
        let tids: Vec<i32> = line.split_whitespace().map(|tid| tid.parse().unwrap()).collect();
        let [executes, other] = tids[..] else { panic!("{line}") };
        let (tell, told) = channel();
        // Who traces must be one thread.
        let tracer = std::thread::spawn(move || {
            crate::ptrace::seize_or_interrupted(other, 0).unwrap();
            tell.send(()).unwrap();
            let mut interrupted = 0;
            let since = std::time::Instant::now();
            loop {
                if crate::proc::status_field(other, "State").is_some_and(|s| s.starts_with('Z')) {
                    match crate::ptrace::seize_or_interrupted(executes, 0) {
                        Err(e) if e.kind() == io::ErrorKind::Interrupted => interrupted += 1,
                        _ => break,
                    }
                    if interrupted == 3 {
                        let _ = crate::ptrace::wait_for(other, false);
                    }
                } else if interrupted > 0 {
                    break;
                }
                if since.elapsed() > Duration::from_secs(10) {
                    break;
                }
            }
            interrupted
        });
        told.recv().unwrap();
        std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"x").unwrap();
        let interrupted = tracer.join().unwrap();
        let _ = child.kill();
        let _ = child.wait();
        assert!((3..100).contains(&interrupted), "{interrupted}");
    }
}
