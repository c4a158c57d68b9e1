//! What events have in addition to the probe's arguments: stacks and thread names.

use events::types::{Fmt, Int, StrKind, Type};

/// The most frames of a kernel stack (`PERF_MAX_STACK_DEPTH`, include/uapi/linux/perf_event.h, 6.18).
pub const KERNEL: u8 = 127;
/// The most frames of a user stack.
pub const USER: u16 = 512;

/// What events capture in addition to the probe's arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Captures {
    /// Frames of the kernel's stack, at most 127; 0: none.
    pub kstack: u8,
    /// Frames of the process's stack, at most [`USER`]; 0: none.
    pub ustack: u16,
    /// The thread's name.
    pub comm: bool,
    /// The processor.
    pub cpu: bool,
    /// The thread's user.
    pub uid: bool,
    /// The thread's group.
    pub gid: bool,
}

impl Captures {
    /// Names and types of what is captured, in their order in an event.
    pub fn fields(self) -> Vec<(&'static str, Type)> {
        let stack = Type::Int(Int { size: 8, signed: false, fmt: Fmt::Stack });
        let number = Type::Int(Int { size: 8, signed: false, fmt: Fmt::Dec });
        let all = [
            ("comm", Type::Str(StrKind::Text), self.comm),
            ("cpu", number, self.cpu),
            ("uid", number, self.uid),
            ("gid", number, self.gid),
            ("kstack", stack, self.kstack > 0),
            ("ustack", stack, self.ustack > 0),
        ];
        all.into_iter().filter(|(.., wanted)| *wanted).map(|(name, ty, _)| (name, ty)).collect()
    }

    /// The union of both: the larger number of frames of each stack.
    pub fn join(self, other: Captures) -> Captures {
        Captures {
            kstack: self.kstack.max(other.kstack),
            ustack: self.ustack.max(other.ustack),
            comm: self.comm || other.comm,
            cpu: self.cpu || other.cpu,
            uid: self.uid || other.uid,
            gid: self.gid || other.gid,
        }
    }

    /// Those that calls do not have: they have their processors, and the ids of their threads are known.
    pub fn not_of_calls(self) -> Option<&'static str> {
        [("cpu", self.cpu), ("uid", self.uid), ("gid", self.gid)].into_iter().find(|c| c.1).map(|c| c.0)
    }
}
