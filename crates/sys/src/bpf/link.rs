//! Attaching: a link is a descriptor, and closing it detaches.
//!
//! A raw tracepoint closes in 0.1 ms, a classic one in some 35 ms (it waits for RCU): a caller with many of those lets another
//! process close them. A uprobe of a perf event takes some 100 ms, each; many places with one link ([`Link::uprobe_multi`]) take
//! 35 to 55 ms, however many they are (measured: 200).

use super::prog::{ATTACH_ITER, ATTACH_PERF_EVENT, ATTACH_UPROBE_MULTI, Program};
use super::{Attr, Command, at, call_fd};
use crate::perf::{self, Event};
pub use crate::tracefs::tracepoint_id;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// `BPF_F_UPROBE_MULTI_RETURN`.
const MULTI_RETURN: u32 = 1;

/// Places of one file that a program is attached to with one call (Linux 6.6).
#[derive(Clone, Copy, Debug)]
pub struct UprobeMulti<'a> {
    /// The file.
    pub path: &'a CStr,
    /// Where the instructions lie in the file.
    pub offsets: &'a [u64],
    /// Offsets of counters in the file that are raised while it is attached (semaphores of static probes; 0: none), one per offset; or empty.
    pub counters: &'a [u64],
    /// Cookies, one per offset; or empty.
    pub cookies: &'a [u64],
    /// When the functions that begin there return, instead.
    pub at_return: bool,
    /// One process only.
    pub pid: Option<u32>,
}

/// An attachment. Dropping it detaches.
#[derive(Debug)]
pub struct Link(OwnedFd);

impl Link {
    /// Attaches a `RawTracepoint` program to the tracepoint `name`.
    pub fn raw_tracepoint(program: &Program, name: &str) -> io::Result<Link> {
        let name = CString::new(name)?;
        let mut attr = Attr::new().u64(at::RAW_NAME, name.as_ptr() as u64).fd(at::RAW_PROG, program.as_fd());
        // SAFETY: the name ends with NUL and lives through the call.
        unsafe { call_fd(Command::RawTracepointOpen, &mut attr) }.map(Link)
    }

    /// Attaches a `Tracing` program where it was loaded for: a typed tracepoint, fentry, fexit.
    pub fn tracing(program: &Program) -> io::Result<Link> {
        let mut attr = Attr::new().fd(at::RAW_PROG, program.as_fd());
        // SAFETY: no addresses in it.
        unsafe { call_fd(Command::RawTracepointOpen, &mut attr) }.map(Link)
    }

    /// Attaches a `Tracepoint` program to the classic tracepoint `id` (see [`tracepoint_id`]), on all CPUs.
    pub fn tracepoint(program: &Program, id: u64) -> io::Result<Link> {
        let event = perf::attach::tracepoint(id)?;
        event.set_bpf(program.as_fd())?;
        event.enable()?;
        Ok(Link(event.into()))
    }

    /// Attaches a program to an event and switches it on: a `Kprobe` program to a uprobe or kprobe, a `Tracepoint` program to
    /// a classic tracepoint, a `PerfEvent` program to a clock or counter. The program gets `cookie` (Linux 5.15; before, only
    /// 0 is possible).
    pub fn perf(program: &Program, event: Event, cookie: u64) -> io::Result<Link> {
        let mut attr = Attr::new()
            .fd(at::LINK_PROG, program.as_fd())
            .fd(at::LINK_TARGET, event.as_fd())
            .u32(at::LINK_ATTACH, ATTACH_PERF_EVENT)
            .u64(at::LINK_PERF_COOKIE, cookie);
        // SAFETY: no addresses in it.
        match unsafe { call_fd(Command::LinkCreate, &mut attr) } {
            Ok(fd) => {
                event.enable()?;
                // The link keeps the event.
                Ok(Link(fd))
            }
            Err(e) if e.kind() == io::ErrorKind::InvalidInput && cookie == 0 => {
                event.set_bpf(program.as_fd())?;
                event.enable()?;
                Ok(Link(event.into()))
            }
            Err(e) => Err(e),
        }
    }

    /// Attaches a `Tracing` program where it was loaded for; it gets `cookie` (fentry and fexit: Linux 5.19; typed tracepoints: 6.10).
    pub fn tracing_with_cookie(program: &Program, attach: u32, cookie: u64) -> io::Result<Link> {
        let mut attr = Attr::new()
            .fd(at::LINK_PROG, program.as_fd())
            .u32(at::LINK_ATTACH, attach)
            .u64(at::LINK_TRACING_COOKIE, cookie);
        // SAFETY: no addresses in it.
        unsafe { call_fd(Command::LinkCreate, &mut attr) }.map(Link)
    }

    /// Attaches a program that was loaded as [`super::prog::ProgramSpec::uprobe_multi`] to all places at once.
    ///
    /// # Errors
    /// `InvalidInput`: a kernel before 6.6, a place that cannot be probed, or lists of different lengths. `ESRCH`: no such process.
    pub fn uprobe_multi(program: &Program, at_places: &UprobeMulti) -> io::Result<Link> {
        let u = at_places;
        let count = u.offsets.len();
        if [u.counters.len(), u.cookies.len()].iter().any(|n| *n != 0 && *n != count) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let list = |list: &[u64]| if list.is_empty() { 0 } else { list.as_ptr() as u64 };
        let mut attr = Attr::new()
            .fd(at::LINK_PROG, program.as_fd())
            .u32(at::LINK_ATTACH, ATTACH_UPROBE_MULTI)
            .u64(at::LINK_UPROBE_PATH, u.path.as_ptr() as u64)
            .u64(at::LINK_UPROBE_OFFSETS, list(u.offsets))
            .u64(at::LINK_UPROBE_COUNTERS, list(u.counters))
            .u64(at::LINK_UPROBE_COOKIES, list(u.cookies))
            .u32(at::LINK_UPROBE_COUNT, u32::try_from(count).map_err(|_| io::ErrorKind::InvalidInput)?)
            .u32(at::LINK_UPROBE_FLAGS, if u.at_return { MULTI_RETURN } else { 0 })
            .u32(at::LINK_UPROBE_PID, u.pid.unwrap_or(0));
        // SAFETY: the path ends with NUL; the lists have `count` entries or are none (checked); all live through the call.
        unsafe { call_fd(Command::LinkCreate, &mut attr) }.map(Link)
    }

    /// Attaches an iterator program. `target` is a `union bpf_iter_link_info` (for instance a map's descriptor), or empty.
    pub fn iterator(program: &Program, target: &[u8]) -> io::Result<Link> {
        let mut attr = Attr::new().fd(at::LINK_PROG, program.as_fd()).u32(at::LINK_ATTACH, ATTACH_ITER);
        if !target.is_empty() {
            attr = attr.input(at::LINK_ITER, target).u32(at::LINK_ITER_SIZE, target.len() as u32);
        }
        // SAFETY: the target lives through the call and is as long as said.
        unsafe { call_fd(Command::LinkCreate, &mut attr) }.map(Link)
    }
}

impl Link {
    /// An attachment that somebody else has made.
    ///
    /// # Errors
    /// `InvalidData`: not a link.
    pub fn of_descriptor(fd: OwnedFd) -> io::Result<Link> {
        super::info::link(&fd).map_err(|_| io::ErrorKind::InvalidData)?;
        Ok(Link(fd))
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<Link> for OwnedFd {
    fn from(link: Link) -> OwnedFd {
        link.0
    }
}
