//! perf_event_open(2): events, their rings, and the records in them.
//!
//! ```text
//!  Attr (bytes, named offsets) ──► Event (a descriptor) ──► ring::Ring ──► record::Record (copied out, parsed)
//!                                        └─ set_bpf: a program instead of records
//! ```
//!
//! Layouts are those of `include/uapi/linux/perf_event.h` (Linux 6.18). Every event is a descriptor that its owner closes:
//! nothing outlives the process. All times are those of CLOCK_MONOTONIC.

pub mod attach;
pub mod record;
pub mod ring;

use crate::check::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// `PERF_TYPE_HARDWARE`.
pub const TYPE_HARDWARE: u32 = 0;
/// `PERF_TYPE_SOFTWARE`.
pub const TYPE_SOFTWARE: u32 = 1;
/// `PERF_TYPE_TRACEPOINT`.
pub const TYPE_TRACEPOINT: u32 = 2;
/// `PERF_TYPE_BREAKPOINT`.
pub const TYPE_BREAKPOINT: u32 = 5;

/// `PERF_COUNT_SW_CPU_CLOCK`: a timer of the CPU.
pub const SW_CPU_CLOCK: u64 = 0;
/// `PERF_COUNT_SW_DUMMY`: never fires; carries records only.
pub const SW_DUMMY: u64 = 9;

/// The counters of `TYPE_SOFTWARE` that count events of the kernel (`enum perf_sw_ids`), as perf calls them.
pub const SOFTWARE: &[(&str, u64)] = &[
    ("cpu-clock", SW_CPU_CLOCK),
    ("task-clock", 1),
    ("page-faults", 2),
    ("context-switches", 3),
    ("cpu-migrations", 4),
    ("minor-faults", 5),
    ("major-faults", 6),
    ("alignment-faults", 7),
    ("emulation-faults", 8),
    ("cgroup-switches", 11),
];

/// The counters of `TYPE_HARDWARE` (`enum perf_hw_id`): name, another name, number.
pub const HARDWARE: &[(&str, Option<&str>, u64)] = &[
    ("cpu-cycles", Some("cycles"), 0),
    ("instructions", None, 1),
    ("cache-references", None, 2),
    ("cache-misses", None, 3),
    ("branch-instructions", Some("branches"), 4),
    ("branch-misses", None, 5),
    ("bus-cycles", None, 6),
    ("frontend-stalls", None, 7),
    ("backend-stalls", None, 8),
    ("ref-cycles", None, 9),
];

/// Bytes of the block: up to `PERF_ATTR_SIZE_VER5` (Linux 4.1). Nothing here is set beyond.
const ATTR_SIZE: usize = 112;
/// `PERF_FLAG_FD_CLOEXEC`.
const FLAG_CLOEXEC: libc::c_ulong = 8;

/// `PERF_EVENT_IOC_*`.
const IOC_ENABLE: libc::c_ulong = 0x2400;
const IOC_DISABLE: libc::c_ulong = 0x2401;
const IOC_SET_OUTPUT: libc::c_ulong = 0x2405;
const IOC_SET_BPF: libc::c_ulong = 0x4004_2408;
const IOC_ID: libc::c_ulong = 0x8008_2407;

/// Bits of `struct perf_event_attr`'s word of flags.
pub mod bit {
    /// Starts switched off.
    pub const DISABLED: u64 = 1;
    /// Children inherit it.
    pub const INHERIT: u64 = 1 << 1;
    /// Not in the kernel: what an ordinary user may have.
    pub const EXCLUDE_KERNEL: u64 = 1 << 5;
    /// Not in a hypervisor.
    pub const EXCLUDE_HV: u64 = 1 << 6;
    /// Records of executable mappings.
    pub const MMAP: u64 = 1 << 8;
    /// Records of names.
    pub const COMM: u64 = 1 << 9;
    /// `sample_period` is a frequency.
    pub const FREQ: u64 = 1 << 10;
    /// Switched on by an exec.
    pub const ENABLE_ON_EXEC: u64 = 1 << 12;
    /// Records of forks and exits.
    pub const TASK: u64 = 1 << 13;
    /// `wakeup_watermark` holds: readers are woken by bytes, not by samples.
    pub const WATERMARK: u64 = 1 << 14;
    /// Every record ends with the fields of `sample_type`.
    pub const SAMPLE_ID_ALL: u64 = 1 << 18;
    /// Mappings with protection, flags and inode (Linux 3.16).
    pub const MMAP2: u64 = 1 << 23;
    /// Records of names have a flag for those that an exec gave (Linux 3.16).
    pub const COMM_EXEC: u64 = 1 << 24;
    /// `clockid` holds (Linux 4.1).
    pub const USE_CLOCKID: u64 = 1 << 25;
    /// Mappings with the build id instead of the inode (Linux 5.12).
    pub const BUILD_ID: u64 = 1 << 34;
}

/// Bits of `sample_type`: what a sample, and with [`bit::SAMPLE_ID_ALL`] the end of any record, carries.
pub mod sample {
    /// Instruction pointer.
    pub const IP: u64 = 1;
    /// Process and thread.
    pub const TID: u64 = 1 << 1;
    /// Time.
    pub const TIME: u64 = 1 << 2;
    /// Address.
    pub const ADDR: u64 = 1 << 3;
    /// Id of the event.
    pub const ID: u64 = 1 << 6;
    /// Processor.
    pub const CPU: u64 = 1 << 7;
    /// Period.
    pub const PERIOD: u64 = 1 << 8;
    /// Registers of the process ([`super::Attr::copy_user`]).
    pub const REGS_USER: u64 = 1 << 12;
    /// A copy of the stack of the process ([`super::Attr::copy_user`]).
    pub const STACK_USER: u64 = 1 << 13;
}

/// `PERF_FORMAT_LOST` (Linux 6.0).
const FORMAT_LOST: u64 = 1 << 4;
/// `PERF_REG_X86_AX` to `_IP` and `_R8` to `_R15` (arch/x86/include/uapi/asm/perf_regs.h): the registers of [`Attr::copy_user`], in the
/// order of their bits.
const USER_REGISTERS: u64 = 0xff_01ff;
/// The most bytes of a copied stack: a record has 16 bits for its length.
pub const MOST_STACK: u32 = 65528;

/// Offsets in `struct perf_event_attr`.
mod at {
    pub const TYPE: usize = 0;
    pub const SIZE: usize = 4;
    pub const CONFIG: usize = 8;
    pub const PERIOD: usize = 16;
    pub const SAMPLE_TYPE: usize = 24;
    pub const READ_FORMAT: usize = 32;
    pub const FLAGS: usize = 40;
    pub const WAKEUP: usize = 48;
    pub const BREAKPOINT_TYPE: usize = 52;
    pub const CONFIG1: usize = 56;
    pub const CONFIG2: usize = 64;
    pub const REGS_USER: usize = 80;
    pub const STACK_USER: usize = 88;
    pub const CLOCKID: usize = 92;
}

/// What to open: zero but for what is set.
#[derive(Clone, Debug)]
pub struct Attr([u8; ATTR_SIZE]);

impl Attr {
    /// An event of this type and number.
    pub fn new(kind: u32, config: u64) -> Attr {
        Attr([0; ATTR_SIZE]).u32(at::TYPE, kind).u32(at::SIZE, ATTR_SIZE as u32).u64(at::CONFIG, config)
    }

    fn u32(mut self, at: usize, value: u32) -> Attr {
        self.0[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn u64(mut self, at: usize, value: u64) -> Attr {
        self.0[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn get(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.0[at..at + 8].try_into().unwrap_or_default())
    }

    /// Adds [`bit`]s.
    pub fn flags(self, bits: u64) -> Attr {
        let bits = self.get(at::FLAGS) | bits;
        self.u64(at::FLAGS, bits)
    }

    /// Samples once in this many events; of a clock: ns.
    pub fn period(self, period: u64) -> Attr {
        self.u64(at::PERIOD, period)
    }

    /// Samples this many times a second.
    pub fn frequency(self, hz: u64) -> Attr {
        self.flags(bit::FREQ).u64(at::PERIOD, hz)
    }

    /// What samples carry: bits of [`sample`].
    pub fn sample_type(self, bits: u64) -> Attr {
        self.u64(at::SAMPLE_TYPE, bits)
    }

    /// Samples carry the registers of the process, and a copy of this many bytes of its stack from rsp on: a multiple of 8, at most
    /// [`MOST_STACK`]; 0: no copy.
    pub fn copy_user(self, bytes: u32) -> Attr {
        let stack = if bytes > 0 { sample::STACK_USER } else { 0 };
        let bits = self.get(at::SAMPLE_TYPE) | sample::REGS_USER | stack;
        self.sample_type(bits).u64(at::REGS_USER, USER_REGISTERS).u32(at::STACK_USER, bytes)
    }

    /// [`Event::lost`] can be asked. Before Linux 6.0 such an event cannot be opened (`EINVAL`).
    pub fn count_lost(self) -> Attr {
        self.u64(at::READ_FORMAT, FORMAT_LOST)
    }

    /// Times of CLOCK_MONOTONIC.
    pub fn monotonic(self) -> Attr {
        self.flags(bit::USE_CLOCKID).u32(at::CLOCKID, libc::CLOCK_MONOTONIC as u32)
    }

    /// Who waits for its ring wakes up when this many bytes are there. Without, at half of a ring: records other than samples wake up nobody.
    pub fn wake_at(self, bytes: u32) -> Attr {
        self.flags(bit::WATERMARK).u32(at::WAKEUP, bytes)
    }

    /// Of a breakpoint: which accesses to it count (`HW_BREAKPOINT_*`).
    fn breakpoint(self, kind: u32) -> Attr {
        self.u32(at::BREAKPOINT_TYPE, kind)
    }

    /// The two words whose meaning depends on the type.
    fn configs(self, config1: u64, config2: u64) -> Attr {
        self.u64(at::CONFIG1, config1).u64(at::CONFIG2, config2)
    }
}

/// An open event. Dropping it closes it.
#[derive(Debug)]
pub struct Event {
    fd: OwnedFd,
    /// Its ring has a reader.
    has_reader: AtomicBool,
}

impl Event {
    /// Opens an event of thread `pid` (-1: all, 0: the caller) on CPU `cpu` (-1: all, but then one thread).
    ///
    /// # Errors
    /// `EACCES`, `EPERM`: `kernel.perf_event_paranoid`, or a process of somebody else. `ENODEV`: the CPU is offline. `ESRCH`: no
    /// such thread.
    pub fn open(attr: &Attr, pid: i32, cpu: i32) -> io::Result<Event> {
        // SAFETY: no address in the block: only `attach` sets the words that may be one, and it does not come here.
        unsafe { open(attr, pid, cpu) }
    }

    /// Switches it on.
    pub fn enable(&self) -> io::Result<()> {
        self.control(IOC_ENABLE, 0)
    }

    /// Switches it off.
    pub fn disable(&self) -> io::Result<()> {
        self.control(IOC_DISABLE, 0)
    }

    /// Sends its records to the ring of `other`, which must be on the same CPU.
    pub fn output_to(&self, other: &Event) -> io::Result<()> {
        self.control(IOC_SET_OUTPUT, other.fd.as_raw_fd())
    }

    /// Runs a program at each of its events.
    pub fn set_bpf(&self, program: BorrowedFd) -> io::Result<()> {
        self.control(IOC_SET_BPF, program.as_raw_fd())
    }

    /// Records of this event, and of those that children have inherited from it, that found its ring full. For events with
    /// [`Attr::count_lost`].
    pub fn lost(&self) -> io::Result<u64> {
        let mut values = [0u64; 2];
        let size = size_of_val(&values);
        // SAFETY: the kernel writes at most `size` bytes.
        let n = unsafe { libc::read(self.fd.as_raw_fd(), values.as_mut_ptr().cast(), size) };
        if check(n as libc::c_long)? == size as libc::c_long {
            Ok(values[1])
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }

    /// The number that records name it by.
    pub fn id(&self) -> io::Result<u64> {
        let mut id = 0u64;
        // SAFETY: the kernel writes 8 bytes.
        check(unsafe { libc::ioctl(self.fd.as_raw_fd(), IOC_ID as _, &raw mut id) }.into())?;
        Ok(id)
    }

    /// Claims the one place of its ring's reader; false: it is taken.
    fn claim_reader(&self) -> bool {
        !self.has_reader.swap(true, Ordering::Relaxed)
    }

    fn control(&self, request: libc::c_ulong, value: i32) -> io::Result<()> {
        // SAFETY: requests that take an integer.
        check(unsafe { libc::ioctl(self.fd.as_raw_fd(), request as _, libc::c_long::from(value)) }.into()).map(drop)
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<Event> for OwnedFd {
    fn from(event: Event) -> OwnedFd {
        event.fd
    }
}

/// The one call of perf_event_open(2).
///
/// # Safety
/// Where `attr` holds an address, it must be that of a string with NUL.
unsafe fn open(attr: &Attr, pid: i32, cpu: i32) -> io::Result<Event> {
    // SAFETY: the block is as long as it says; no group; the caller's promise; the descriptor is ours.
    unsafe {
        let fd = check(libc::syscall(libc::SYS_perf_event_open, attr.0.as_ptr(), pid, cpu, -1, FLAG_CLOEXEC))?;
        Ok(Event { fd: OwnedFd::from_raw_fd(fd as i32), has_reader: false.into() })
    }
}

/// Whether the kernel knows the performance counters of the processor. A virtual machine often has none.
pub fn has_hardware_counters() -> bool {
    let is_cpu = |name: &str| name == "cpu" || name.starts_with("cpu_");
    let all = std::fs::read_dir("/sys/bus/event_source/devices").into_iter().flatten().flatten();
    all.into_iter().any(|device| device.file_name().to_str().is_some_and(is_cpu))
}

/// `kernel.perf_event_paranoid`: 2 leaves ordinary users their own processes, without the kernel; 3 and more (a patch of some
/// distributions) nothing.
pub fn paranoid() -> Option<i32> {
    std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_is_laid_out_as_the_header_says() {
        let attr = Attr::new(2, 7).period(5).sample_type(sample::TID).flags(bit::MMAP).monotonic().configs(8, 9);
        let word = |at: usize| attr.get(at);
        assert_eq!(word(0), 2 | 112 << 32);
        assert_eq!((word(8), word(16), word(24)), (7, 5, 2));
        assert_eq!(word(40), 1 << 8 | 1 << 25);
        assert_eq!((word(56), word(64)), (8, 9));
        assert_eq!(attr.0[92..96], 1i32.to_ne_bytes());
        assert_eq!(Attr::new(5, 0).breakpoint(3).get(48), 3 << 32);
        let woken = Attr::new(1, 0).wake_at(1);
        assert_eq!((woken.get(40), woken.get(48)), (1 << 14, 1));
        assert_eq!(Attr::new(1, 0).frequency(99).get(40), 1 << 10);
    }
}
