//! Attaching: a link is a descriptor, and closing it detaches.
//!
//! A raw tracepoint closes in 0.1 ms, a classic one in some 35 ms (it waits for RCU): who holds many of those lets another
//! process close them.

use super::prog::{ATTACH_ITER, Program};
use super::{Attr, Command, at, call_fd};
use crate::check;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// `PERF_TYPE_TRACEPOINT`.
const TYPE_TRACEPOINT: u32 = 2;
/// `PERF_ATTR_SIZE_VER0`, enough for a tracepoint.
const PERF_ATTR_SIZE: usize = 64;
/// `PERF_FLAG_FD_CLOEXEC`.
const FLAG_CLOEXEC: libc::c_ulong = 8;
/// `PERF_EVENT_IOC_ENABLE`.
const IOC_ENABLE: libc::c_ulong = 0x2400;
/// `PERF_EVENT_IOC_SET_BPF`.
const IOC_SET_BPF: libc::c_ulong = 0x4004_2408;

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
        let fd = open_perf_tracepoint(id)?;
        // SAFETY: integers only.
        unsafe {
            check(libc::ioctl(fd.as_raw_fd(), IOC_SET_BPF as _, program.as_fd().as_raw_fd()).into())?;
            check(libc::ioctl(fd.as_raw_fd(), IOC_ENABLE as _, 0).into())?;
        }
        Ok(Link(fd))
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

/// Opens the event of a tracepoint on CPU 0: a program set on it runs on every CPU nevertheless (it belongs to the
/// tracepoint, `perf_event_set_bpf_prog`).
fn open_perf_tracepoint(id: u64) -> io::Result<OwnedFd> {
    let mut attr = [0u64; PERF_ATTR_SIZE / 8];
    attr[0] = u64::from(TYPE_TRACEPOINT) | (PERF_ATTR_SIZE as u64) << 32;
    attr[1] = id;
    #[cfg(target_endian = "big")]
    compile_error!("type and size are two u32");
    // SAFETY: the block is as long as it says; pid -1, cpu 0, no group; the descriptor is ours.
    unsafe {
        let fd = check(libc::syscall(libc::SYS_perf_event_open, attr.as_ptr(), -1, 0, -1, FLAG_CLOEXEC))?;
        Ok(OwnedFd::from_raw_fd(fd as i32))
    }
}

/// Where tracefs is. `NotFound`: not mounted; `PermissionDenied`: only root may look (its directory has mode 700).
pub fn tracefs() -> io::Result<&'static str> {
    let mut error = io::Error::new(io::ErrorKind::NotFound, "tracefs is not mounted");
    for dir in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
        match std::fs::metadata(format!("{dir}/events")) {
            Ok(_) => return Ok(dir),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => error = e,
        }
    }
    Err(error)
}

/// The number of a classic tracepoint, for instance `syscalls` and `sys_enter_openat`.
pub fn tracepoint_id(category: &str, name: &str) -> io::Result<u64> {
    if category.contains('/') || name.contains('/') {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let text = std::fs::read_to_string(format!("{}/events/{category}/{name}/id", tracefs()?))?;
    text.trim().parse().map_err(|_| io::ErrorKind::InvalidData.into())
}
