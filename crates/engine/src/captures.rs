//! What events have in addition to the probe's arguments: stacks and thread names.

use events::dynamic;
use events::types::{StrKind, Type};

/// What events capture in addition to the probe's arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Captures {
    /// Frames of the kernel's stack; 0: none.
    pub kstack: u8,
    /// Frames of the process's stack; 0: none.
    pub ustack: u8,
    /// The thread's name.
    pub comm: bool,
}

impl Captures {
    /// Names and types of what is captured, in their order in an event.
    pub fn fields(self) -> Vec<(&'static str, Type)> {
        let stack = Type::Ptr { elem: dynamic::ADDRESS, len: Some(dynamic::READ) };
        let all = [
            ("comm", Type::Str(StrKind::Text), self.comm),
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
        }
    }
}
