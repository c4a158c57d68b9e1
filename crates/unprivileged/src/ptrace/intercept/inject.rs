//! System calls that a thread makes on the ptracer's behalf, while it is stopped at the entry of one of its own.

use std::io;
use sys::ptrace::{self, Change, Registers, Status, event};

/// A thread at the stop of the filter at one of its calls. It makes other calls there, and then its own from the beginning. Signals are
/// blocked meanwhile.
pub struct Guest {
    tid: i32,
    /// The `syscall` instruction that it is at.
    at: u64,
    own: Registers,
    mask: u64,
    /// It has made a call, so that it is at the end of one.
    moved: bool,
    /// It was told to stop meanwhile, which cannot be blocked.
    stop: bool,
    /// It has ended meanwhile.
    pub ended: Option<Status>,
}

const SIGSTOP: i32 = 19;

impl Guest {
    /// # Errors
    /// The thread has ended.
    pub fn new(tid: i32, at: u64) -> io::Result<Guest> {
        let (own, mask) = (ptrace::all_registers(tid)?, ptrace::signal_mask(tid)?);
        Ok(Guest { tid, at, own, mask, moved: false, stop: false, ended: None })
    }

    /// Its id.
    pub fn tid(&self) -> i32 {
        self.tid
    }

    /// Its stack pointer.
    pub fn sp(&self) -> u64 {
        self.own.sp()
    }

    /// Its registers.
    pub fn registers(&self) -> &Registers {
        &self.own
    }

    /// What `gs` leads to from now on.
    pub fn set_gs_base(&mut self, to: u64) {
        self.own.set_gs_base(to);
    }

    /// Whether it has made a call.
    pub fn has_moved(&self) -> bool {
        self.moved
    }

    /// The code at these addresses, at the end of which is a call that stops and is not made: the registers there.
    ///
    /// # Errors
    /// The thread has ended, or is elsewhere.
    pub fn run(&mut self, (from, end): (u64, u64), arguments: [u64; 3]) -> io::Result<Registers> {
        let mut registers = self.own;
        registers.make_function(from, arguments);
        ptrace::set_all_registers(self.tid, &registers)?;
        loop {
            ptrace::cont(self.tid, 0)?;
            self.wait()?;
            let there = ptrace::all_registers(self.tid)?;
            if there.pc() == end {
                return Ok(there);
            }
            if !(from..end).contains(&there.pc()) {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
    }

    /// A call; its raw result.
    ///
    /// # Errors
    /// The thread has ended.
    pub fn call(&mut self, number: i64, arguments: [u64; 6]) -> io::Result<i64> {
        let mut registers = self.own;
        if self.moved {
            registers.make_call(self.at, number, arguments);
        } else {
            ptrace::set_signal_mask(self.tid, u64::MAX)?;
            registers.replace_call(number, arguments);
            self.moved = true;
        }
        ptrace::set_all_registers(self.tid, &registers)?;
        loop {
            ptrace::syscall(self.tid, 0)?;
            if self.wait()? && ptrace::syscall_info(self.tid)?.op == 2 {
                return ptrace::all_registers(self.tid).map(|r| r.result());
            }
        }
    }

    /// Waits for its next stop: whether that is at a call.
    fn wait(&mut self) -> io::Result<bool> {
        let status = loop {
            match ptrace::wait_for(self.tid, true) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Ok(None) => {}
                other => break other?.ok_or(io::ErrorKind::NotFound)?,
            }
        };
        match status.change() {
            Change::Stopped(sig, 0) if sig & 0x80 != 0 => Ok(true),
            Change::Stopped(_, event::SECCOMP) => Ok(false),
            Change::Stopped(SIGSTOP, 0) => {
                self.stop = true;
                Ok(false)
            }
            Change::Stopped(..) => Ok(false),
            _ => {
                self.ended = Some(status);
                Err(io::ErrorKind::NotFound.into())
            }
        }
    }
}

impl Guest {
    /// Gives the thread back: it makes its call again, from `from` on; none: if it has made others, where that was.
    ///
    /// # Errors
    /// The thread has ended.
    pub fn give_back(self, number: u64, from: Option<u64>) -> io::Result<()> {
        let mut registers = self.own;
        if self.moved || from.is_some() {
            registers.begin_again(from.unwrap_or(self.at), number);
            ptrace::set_all_registers(self.tid, &registers)?;
        }
        if self.moved {
            ptrace::set_signal_mask(self.tid, self.mask)?;
        }
        if self.stop {
            sys::signal::kill(self.tid, SIGSTOP)?;
        }
        Ok(())
    }
}
