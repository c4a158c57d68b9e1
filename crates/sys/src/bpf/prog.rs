//! Loading programs and the BTF that describes their types, with the kernel's log where it refuses.
//!
//! The first try asks for no log, which is faster; only a refusal is repeated with one.

use super::{Attr, Command, at, call, call_fd};
use std::ffi::CStr;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

const LOG_SIZE: usize = 1 << 20;
const INSN: usize = 8;
/// `struct bpf_func_info`: u32 instruction, u32 type id.
const FUNC_INFO: usize = 8;

/// The kind of a program (`enum bpf_prog_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs)]
pub enum ProgramKind {
    Kprobe = 2,
    Tracepoint = 5,
    PerfEvent = 7,
    RawTracepoint = 17,
    Tracing = 26,
    Lsm = 29,
    Syscall = 31,
}

/// `BPF_TRACE_RAW_TP`: a tracepoint with typed arguments (a `Tracing` program).
pub const ATTACH_RAW_TP: u32 = 23;
/// `BPF_TRACE_FENTRY`.
pub const ATTACH_FENTRY: u32 = 24;
/// `BPF_TRACE_FEXIT`.
pub const ATTACH_FEXIT: u32 = 25;
/// `BPF_TRACE_ITER`: an iterator (a `Tracing` program).
pub const ATTACH_ITER: u32 = 28;
/// `BPF_PERF_EVENT`.
pub const ATTACH_PERF_EVENT: u32 = 41;

/// `BPF_TRACE_UPROBE_MULTI`: many places of one file (a `Kprobe` program, Linux 6.6).
pub const ATTACH_UPROBE_MULTI: u32 = 48;

/// The licence of trapline's programs: that of the project, in the words that the kernel knows.
pub const LICENSE: &CStr = c"Dual MIT/GPL";

/// A program to load.
#[derive(Clone, Copy, Debug)]
pub struct ProgramSpec<'a> {
    /// Kind.
    pub kind: ProgramKind,
    /// Name as tools show it; 15 characters are kept.
    pub name: &'a str,
    /// Instructions, 8 bytes each.
    pub insns: &'a [u8],
    /// Licence; [`LICENSE`].
    pub license: &'a CStr,
    /// `ATTACH_*`, or 0.
    pub expected_attach: u32,
    /// Type of the kernel that it attaches to, or 0.
    pub attach_btf_id: u32,
    /// The types that the id is one of, where they are a module's ([`super::info::types_of_module`]).
    pub attach_btf: Option<BorrowedFd<'a>>,
    /// `BPF_F_*`.
    pub flags: u32,
    /// Loaded BTF and function records (instruction, type id; 4 bytes each): wanted for callbacks.
    pub functions: Option<(BorrowedFd<'a>, &'a [u8])>,
}

impl<'a> ProgramSpec<'a> {
    /// A program without types.
    pub fn new(kind: ProgramKind, name: &'a str, insns: &'a [u8]) -> ProgramSpec<'a> {
        ProgramSpec {
            kind,
            name,
            insns,
            license: LICENSE,
            expected_attach: 0,
            attach_btf_id: 0,
            attach_btf: None,
            flags: 0,
            functions: None,
        }
    }

    /// For the function of the kernel with this id, entered or returning (fentry, fexit).
    pub fn function(name: &'a str, insns: &'a [u8], attach_btf_id: u32, at_return: bool) -> ProgramSpec<'a> {
        let spec = ProgramSpec::new(ProgramKind::Tracing, name, insns);
        let expected_attach = if at_return { ATTACH_FEXIT } else { ATTACH_FENTRY };
        ProgramSpec { expected_attach, attach_btf_id, ..spec }
    }

    /// For many places of a file at once ([`super::link::UprobeMulti`]).
    pub fn uprobe_multi(name: &'a str, insns: &'a [u8]) -> ProgramSpec<'a> {
        let spec = ProgramSpec::new(ProgramKind::Kprobe, name, insns);
        ProgramSpec { expected_attach: ATTACH_UPROBE_MULTI, ..spec }
    }

    /// For the tracepoint whose typedef `btf_trace_NAME` has this id.
    pub fn typed_tracepoint(name: &'a str, insns: &'a [u8], attach_btf_id: u32) -> ProgramSpec<'a> {
        let spec = ProgramSpec::new(ProgramKind::Tracing, name, insns);
        ProgramSpec { expected_attach: ATTACH_RAW_TP, attach_btf_id, ..spec }
    }

    /// For the iterator whose function `bpf_iter_NAME` has this id.
    pub fn iterator(name: &'a str, insns: &'a [u8], attach_btf_id: u32) -> ProgramSpec<'a> {
        let spec = ProgramSpec::new(ProgramKind::Tracing, name, insns);
        ProgramSpec { expected_attach: ATTACH_ITER, attach_btf_id, ..spec }
    }
}

/// A refusal: the first try's error, and what the kernel's log says (it may be empty).
#[derive(Debug)]
pub struct LoadError {
    /// What was loaded.
    pub name: String,
    /// The error.
    pub error: io::Error,
    /// The whole log.
    pub log: String,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.error)?;
        // The last line only counts instructions; the one before says what is wrong.
        let said = self.log.lines().rev().find(|l| !l.is_empty() && !l.starts_with("processed "));
        said.map_or(Ok(()), |line| write!(f, " ({line})"))
    }
}

impl std::error::Error for LoadError {}

/// A loaded program. Dropping it closes the descriptor; links keep the program.
#[derive(Debug)]
pub struct Program(OwnedFd);

impl Program {
    /// Loads a program.
    pub fn load(spec: &ProgramSpec) -> Result<Program, LoadError> {
        let invalid = |_| LoadError { name: spec.name.into(), error: invalid_input(), log: String::new() };
        let count = u32::try_from(spec.insns.len() / INSN).map_err(invalid)?;
        let attr = || {
            let attr = Attr::new()
                .u32(at::PROG_TYPE, spec.kind as u32)
                .u32(at::PROG_COUNT, count)
                .input(at::PROG_INSNS, spec.insns)
                .u64(at::PROG_LICENSE, spec.license.as_ptr() as u64)
                .u32(at::PROG_FLAGS, spec.flags)
                .name(at::PROG_NAME, spec.name)
                .u32(at::PROG_EXPECTED_ATTACH, spec.expected_attach)
                .u32(at::PROG_ATTACH_BTF_ID, spec.attach_btf_id);
            let attr = match spec.attach_btf {
                Some(types) => attr.fd(at::PROG_ATTACH_BTF, types),
                None => attr,
            };
            let Some((btf, records)) = spec.functions else { return attr };
            attr.fd(at::PROG_BTF_FD, btf)
                .u32(at::PROG_FUNC_INFO_SIZE, FUNC_INFO as u32)
                .input(at::PROG_FUNC_INFO, records)
                .u32(at::PROG_FUNC_INFO_COUNT, (records.len() / FUNC_INFO) as u32)
        };
        let log = [at::PROG_LOG, at::PROG_LOG_SIZE, at::PROG_LOG_LEVEL];
        // SAFETY: instructions, licence (with its NUL), records and log live through the calls; their counts do not exceed
        // their lengths.
        unsafe { load_with_log(Command::ProgLoad, spec.name, attr, log) }.map(Program)
    }

    /// Another descriptor of it.
    pub fn try_clone(&self) -> io::Result<Program> {
        self.0.try_clone().map(Program)
    }

    /// Runs a raw tracepoint's program once, in this thread, with these arguments; what it returns (Linux 5.10).
    pub fn test_run(&self, arguments: &[u64]) -> io::Result<u32> {
        let size = u32::try_from(size_of_val(arguments)).map_err(|_| invalid_input())?;
        let mut attr = Attr::new()
            .fd(at::TEST_PROG, self.as_fd())
            .u32(at::TEST_CONTEXT_SIZE, size)
            .u64(at::TEST_CONTEXT, arguments.as_ptr() as u64);
        // SAFETY: the arguments live through the call, and are as long as said.
        unsafe { call(Command::ProgTestRun, &mut attr) }?;
        Ok(attr.get_u32(at::TEST_RESULT))
    }
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Loads BTF (see [`crate::btf::build`]) for maps and programs that need types.
pub fn btf_load(blob: &[u8]) -> Result<OwnedFd, LoadError> {
    let attr = || Attr::new().input(at::BTF, blob).u32(at::BTF_SIZE, blob.len() as u32);
    let log = [at::BTF_LOG, at::BTF_LOG_SIZE, at::BTF_LOG_LEVEL];
    // SAFETY: the blob lives through the calls, and a size cut to 32 bits is smaller than the blob.
    unsafe { load_with_log(Command::BtfLoad, "btf", attr, log) }
}

/// Tries without log, again while a signal interrupts it, then with one; `log`: the offsets of its address, size and level.
///
/// # Safety
/// What `attr` makes must meet [`super::call`]'s demands, but for the log.
unsafe fn load_with_log(
    command: Command,
    name: &str,
    attr: impl Fn() -> Attr,
    log: [usize; 3],
) -> Result<OwnedFd, LoadError> {
    let mut error = invalid_input();
    for _ in 0..5 {
        // SAFETY: the caller's promise.
        match unsafe { call_fd(command, &mut attr()) } {
            Ok(fd) => return Ok(fd),
            Err(e) => error = e,
        }
        // The verifier gives up with EAGAIN when a signal is pending.
        if error.raw_os_error() != Some(libc::EAGAIN) {
            break;
        }
    }
    let mut text = vec![0; LOG_SIZE];
    let mut attr = attr().output(log[0], &mut text).u32(log[1], LOG_SIZE as u32).u32(log[2], 1);
    // SAFETY: the caller's promise; the log is as long as said.
    if let Ok(fd) = unsafe { call_fd(command, &mut attr) } {
        return Ok(fd);
    }
    text.truncate(text.iter().position(|b| *b == 0).unwrap_or(LOG_SIZE));
    Err(LoadError { name: name.into(), error, log: String::from_utf8_lossy(&text).into_owned() })
}

fn invalid_input() -> io::Error {
    io::ErrorKind::InvalidInput.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::fake;
    use std::cell::RefCell;
    use std::rc::Rc;

    #[test]
    fn a_refusal_is_repeated_with_a_log_and_keeps_the_first_error() {
        let levels = Rc::new(RefCell::new(Vec::new()));
        let seen = levels.clone();
        let hook = move |_, attr: &mut Attr| {
            let level = attr.get_u32(at::PROG_LOG_LEVEL);
            seen.borrow_mut().push(level);
            if level == 0 {
                return fake::refuse(libc::EACCES);
            }
            let said = b"R0 !read_ok\nprocessed 1 insns\n";
            assert_eq!(attr.get_u32(at::PROG_LOG_SIZE), 1 << 20);
            // SAFETY: the log that the block names is a megabyte long.
            let log = unsafe { std::slice::from_raw_parts_mut(attr.get_u64(at::PROG_LOG) as *mut u8, said.len()) };
            log.copy_from_slice(said);
            fake::refuse(libc::ENOSPC)
        };
        let spec = ProgramSpec::new(ProgramKind::RawTracepoint, "t", &[0; 8]);
        let e = fake::with(hook, || Program::load(&spec)).unwrap_err();
        assert_eq!(*levels.borrow(), [0, 1]);
        assert_eq!(e.error.raw_os_error(), Some(libc::EACCES));
        assert_eq!(e.to_string(), "t: Permission denied (os error 13) (R0 !read_ok)");
    }

    #[test]
    fn an_interrupted_load_is_tried_again_without_a_log() {
        let mut tries = 0;
        let hook = move |_, attr: &mut Attr| {
            tries += 1;
            assert_eq!(attr.get_u32(at::PROG_LOG_LEVEL), 0);
            assert_eq!(attr.get_u32(at::PROG_COUNT), 2);
            if tries < 3 { fake::refuse(libc::EAGAIN) } else { fake::object() }
        };
        let spec = ProgramSpec::new(ProgramKind::RawTracepoint, "t", &[0; 16]);
        assert!(fake::with(hook, || Program::load(&spec)).is_ok());
    }
}
