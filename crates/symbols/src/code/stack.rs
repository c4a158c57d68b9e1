//! Where the return address is, instruction by instruction: whether a function reads it.
//!
//! Compilers reach into their frames from the stack pointer, or from rbp once that is set to it. Both are followed; where one is not known
//! any more, nothing is concluded.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// How far registers lie above the return address, bytes; none: not known.
#[derive(Clone, Copy)]
pub(super) struct Stack {
    rsp: Option<i64>,
    rbp: Option<i64>,
}

impl Stack {
    /// Where a call has just put the return address.
    pub(super) const AT_ENTRY: Stack = Stack { rsp: Some(0), rbp: None };
    pub(super) const UNKNOWN: Stack = Stack { rsp: None, rbp: None };

    /// Whether the return address is at the top, as where the function began.
    pub(super) fn is_at_entry(self) -> bool {
        self.rsp == Some(0)
    }

    fn of(self, register: Register) -> Option<i64> {
        match register {
            Register::RSP => self.rsp,
            Register::RBP => self.rbp,
            _ => None,
        }
    }

    /// How far the memory of an instruction lies above the return address.
    fn memory(self, i: &Instruction) -> Option<i64> {
        let plain = i.memory_index() == Register::None;
        self.of(i.memory_base()).filter(|_| plain)?.checked_add(i.memory_displacement64() as i64)
    }

    /// Whether an instruction reads, writes or points to the return address, other than by returning.
    pub(super) fn is_return_address(self, i: &Instruction) -> bool {
        let has_memory = (0..i.op_count()).any(|n| i.op_kind(n) == OpKind::Memory);
        // A barrier writes what is there, wherever that is.
        let touches = has_memory && !i.has_lock_prefix() && self.memory(i) == Some(0);
        touches || i.mnemonic() == Mnemonic::Pop && self.rsp == Some(0)
    }

    /// Follows an instruction.
    pub(super) fn step(&mut self, i: &Instruction) {
        let to = (i.op_count() > 0 && i.op0_kind() == OpKind::Register).then(|| i.op0_register());
        let moved = |from: Option<i64>| from.and_then(|at| at.checked_add(i.stack_pointer_increment().into()));
        match (i.mnemonic(), to) {
            // What a call pushes, its return has popped.
            (Mnemonic::Call, _) => {}
            (Mnemonic::Leave, _) => {
                self.rsp = self.rbp.and_then(|at| at.checked_add(8));
                self.rbp = None;
            }
            (Mnemonic::Add | Mnemonic::Sub, Some(Register::RSP)) if i.op1_kind() != OpKind::Register => {
                let by = i.try_immediate(1).unwrap_or(0) as i64;
                let by = if i.mnemonic() == Mnemonic::Sub { by.wrapping_neg() } else { by };
                self.rsp = self.rsp.and_then(|at| at.checked_add(by));
            }
            (Mnemonic::Mov, Some(to @ (Register::RSP | Register::RBP))) => {
                let from = if i.op1_kind() == OpKind::Register { self.of(i.op1_register()) } else { None };
                *self.register(to) = from;
            }
            (Mnemonic::Lea, Some(to @ (Register::RSP | Register::RBP))) => *self.register(to) = self.memory(i),
            (Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push, _) => self.rsp = moved(self.rsp),
            (Mnemonic::Pop, Some(Register::RSP)) => self.rsp = None,
            (_, Some(Register::RSP)) => self.rsp = None,
            (_, to) => {
                self.rsp = moved(self.rsp);
                if to.is_some_and(|to| to.full_register() == Register::RBP) {
                    self.rbp = None;
                }
            }
        }
    }

    fn register(&mut self, which: Register) -> &mut Option<i64> {
        if which == Register::RSP { &mut self.rsp } else { &mut self.rbp }
    }
}

#[cfg(test)]
mod tests {
    use crate::code::Code;

    const BASE: u64 = 0x1000;

    #[test]
    fn functions_that_look_at_their_return_address() {
        let takes = |bytes: &[u8]| Code::read(BASE, bytes, false).takes_return_address();
        // mov (%rsp),%rax; ret: setjmp
        assert!(takes(&[0x48, 0x8b, 0x04, 0x24, 0xc3]));
        // push %rbx; sub $16,%rsp; mov 24(%rsp),%rdi; add $16,%rsp; pop %rbx; ret: dlsym
        let framed =
            |at| [0x53, 0x48, 0x83, 0xec, 0x10, 0x48, 0x8b, 0x7c, 0x24, at, 0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3];
        assert!(takes(&framed(0x18)) && !takes(&framed(0x10)) && !takes(&framed(0x20)));
        // push %rbp; mov %rsp,%rbp; mov 8(%rbp),%rax; leave; ret
        let framed = |at| [0x55, 0x48, 0x89, 0xe5, 0x48, 0x8b, 0x45, at, 0xc9, 0xc3];
        assert!(takes(&framed(8)) && !takes(&framed(16)) && !takes(&framed(0xf8)));
        // pop %rdi; push %rdi; ret: vfork
        assert!(takes(&[0x5f, 0x57, 0xc3]));
        // push, pop, lock orl $0,(%rsp); and $-32,%rsp; mov (%rsp),%rax
        assert!(!takes(&[0x57, 0x5f, 0xf0, 0x83, 0x0c, 0x24, 0x00, 0xc3]));
        assert!(!takes(&[0x48, 0x83, 0xe4, 0xe0, 0x48, 0x8b, 0x04, 0x24, 0xc3]));
        assert!(!takes(&[0x48, 0x0f, 0xaf, 0xfe, 0xc3]));
        // jmp elsewhere, with the stack as it was; push; jmp
        assert_eq!(Code::read(BASE, &[0xe9, 0, 1, 0, 0], false).goes_on_as(), [BASE + 0x105]);
        assert_eq!(Code::read(BASE, &[0x53, 0xe9, 0, 1, 0, 0], false).goes_on_as(), [0; 0]);
    }
}
