//! Where operations of io_uring are seen: tracepoints, and offsets in the kernel's structs.

use super::{Refusal, kernel_types};
use sys::btf::{KernelBtf, Kind};

/// The record of an operation that its arguments lie in ([`super::ArgLocation::Record`]): the entry of the submission queue as the program has
/// written it (`struct io_uring_sqe`, include/uapi/linux/io_uring.h of Linux 6.18), and what else is known of it then.
///
/// ```text
/// 0 opcode  1 flags  2 ioprio  4 fd  8 off  16 addr  24 len  28 flags of the operation  32 user_data  44 file_index  48 …
/// 64 ring  72 descriptor, or -1  80 index of a registered file, or -1  88 flags of the completion
/// ```
pub mod record {
    /// `flags`.
    pub const SQE_FLAGS: u32 = 1;
    /// `off`.
    pub const OFFSET: u32 = 8;
    /// `addr`.
    pub const ADDR: u32 = 16;
    /// `len`.
    pub const LEN: u32 = 24;
    /// `rw_flags` and the others at the same place.
    pub const OP_FLAGS: u32 = 28;
    /// `user_data`.
    pub const USER_DATA: u32 = 32;
    /// `file_index` and the others at the same place.
    pub const FILE_INDEX: u32 = 44;
    /// The address of the ring (`struct io_ring_ctx`).
    pub const RING: u32 = 64;
    /// `fd`, where it is a descriptor.
    pub const DESCRIPTOR: u32 = 72;
    /// `fd`, where it is the index of a registered file.
    pub const REGISTERED: u32 = 80;
    /// Flags of the completion: known at its end.
    pub const CQE_FLAGS: u32 = 88;
}

/// Operations that are seen: which opcodes, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operations {
    /// Of the probes, in their order: the opcode; none: what no other probe of the table is for.
    pub opcodes: Vec<Option<u8>>,
    /// Of the probes: whether their address is that of a path, which is read.
    pub paths: Vec<bool>,
    /// How this kernel shows them.
    pub kernel: Kernel,
}

/// How this kernel shows operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The tracepoint of a submission, whose first argument is the request.
    pub submitted: &'static str,
    /// The tracepoint of a completion has the address of the entry of the queue, and not its values.
    pub entry_by_address: bool,
    /// Offsets in `struct io_kiocb`.
    pub request: Request,
    /// Offsets in `struct io_ring_ctx`.
    pub ring: Ring,
}

/// Offsets in `struct io_kiocb`, a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// `opcode`.
    pub opcode: i16,
    /// `ctx`.
    pub ring: i16,
    /// `cqe.user_data`.
    pub user_data: i16,
}

/// Offsets in `struct io_ring_ctx`, a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    /// `flags`.
    pub flags: i16,
    /// `sq_array`.
    pub array: i16,
    /// `sq_sqes`.
    pub entries: i16,
    /// `cached_sq_head`.
    pub head: i16,
    /// `sq_entries`.
    pub count: i16,
}

/// The tracepoint of a completion.
pub const COMPLETED: &str = "io_uring_complete";
/// The tracepoint of a completion that finds the queue full.
pub const OVERFLOWN: &str = "io_uring_cqe_overflow";
/// The tracepoint of a submission that the kernel refuses: its arguments are the entry of the queue and the request.
pub const REFUSED: &str = "io_uring_req_failed";
/// The tracepoint of a submission; before Linux 6.3 it has the second name.
const SUBMITTED: [&str; 2] = ["io_uring_submit_req", "io_uring_submit_sqe"];

impl Kernel {
    /// What this kernel's types say.
    pub fn read() -> Result<Kernel, Refusal> {
        let btf = kernel_types::kernel_types()?;
        let missing = |what: &str| {
            let why = format!("this kernel's types do not have {what}");
            Refusal::Closed(why, "use a kernel with CONFIG_IO_URING, Linux 6.1 or later".into())
        };
        let submitted = SUBMITTED.into_iter().find(|name| tracepoint(&btf, name).is_some());
        let completed = tracepoint(&btf, COMPLETED).ok_or_else(|| missing(COMPLETED))?;
        let of = |root: &str, path: &[&str]| {
            let found = btf.field_of(root, path).filter(|f| f.loads.is_empty());
            found
                .and_then(|f| i16::try_from(f.offset).ok())
                .ok_or_else(|| missing(&format!("{root}.{}", path.join("."))))
        };
        let (request, ring) = (|path: &[&str]| of("io_kiocb", path), |name: &str| of("io_ring_ctx", &[name]));
        Ok(Kernel {
            submitted: submitted.ok_or_else(|| missing(SUBMITTED[0]))?,
            // Behind the attachment's own argument, the ring and the request.
            entry_by_address: completed == 4,
            request: Request {
                opcode: request(&["opcode"])?,
                ring: request(&["ctx"])?,
                user_data: request(&["cqe", "user_data"])?,
            },
            ring: Ring {
                flags: ring("flags")?,
                array: ring("sq_array")?,
                entries: ring("sq_sqes")?,
                head: ring("cached_sq_head")?,
                count: ring("sq_entries")?,
            },
        })
    }
}

/// How many arguments the function of a tracepoint has.
fn tracepoint(btf: &KernelBtf, name: &str) -> Option<usize> {
    let id = btf.find(Kind::Typedef, &format!("btf_trace_{name}"))?;
    Some(btf.prototype(id)?.params.len())
}
