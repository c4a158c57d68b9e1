//! The first instruction of a function, which stays in place where it can: a probe or a breakpoint there then executes it and comes to
//! the jump behind it, and the byte that its owner restores is the one that was there.
//!
//! ```text
//!  F:       push rbx               stays; executed before the jump
//!           jmp undo               over what follows it
//!  undo:    lea rsp, [rsp+8]       of push and of sub rsp: the stack is as at the call again
//!  stub:    … call moved beginning: push rbx, …
//! ```
//!
//! The moved beginning repeats the instruction. That is the same where it writes nothing but registers that it does not read and that no
//! callee has to keep, or the flags, or what lies below the stack pointer of the call. Of a register that an argument may be in, the stub
//! then sees what the instruction has written.

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, Mnemonic, OpAccess, Register};

/// An instruction that can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct First {
    /// Its bytes.
    pub len: usize,
    /// It does nothing: it need not be repeated.
    pub is_empty: bool,
    /// By how much it lowers the stack pointer.
    pub undo: i32,
    /// It writes no register that an argument may be in.
    pub keeps_arguments: bool,
}

/// Registers that a callee has to keep (System V ABI for x86-64), and those in which no argument is.
const KEPT: [Register; 7] =
    [Register::RSP, Register::RBX, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15];
const FREE: [Register; 3] = [Register::RAX, Register::R10, Register::R11];

/// The first instruction of a function, if it can stay; `bytes` are those of the function.
pub(crate) fn first(address: u64, bytes: &[u8]) -> Option<First> {
    let i = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
    if i.is_invalid() || i.flow_control() != FlowControl::Next || i.memory_base() == Register::EIP {
        return None;
    }
    let it = First { len: i.len(), is_empty: false, undo: 0, keeps_arguments: true };
    match i.code() {
        Code::Push_r64 | Code::Push_rm64 | Code::Pushq_imm32 | Code::Pushq_imm8 => {
            return Some(First { undo: 8, ..it });
        }
        Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 | Code::Add_rm64_imm8 | Code::Add_rm64_imm32
            if i.op0_register() == Register::RSP =>
        {
            let number = i64::from(i.immediate(1) as i32);
            let undo = i32::try_from(if i.mnemonic() == Mnemonic::Sub { number } else { -number }).ok()?;
            return (undo > 0).then_some(First { undo, ..it });
        }
        _ if matches!(i.mnemonic(), Mnemonic::Nop | Mnemonic::Endbr64) => return Some(First { is_empty: true, ..it }),
        _ => {}
    }
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(&i);
    let fpu = i.fpu_stack_increment_info();
    if info.used_memory().iter().any(|m| writes(m.access())) || fpu.writes_top() || fpu.increment() != 0 {
        return None;
    }
    let mut written = info.used_registers().iter().filter(|r| writes(r.access())).map(|r| r.register());
    let is_read =
        |full| info.used_registers().iter().any(|r| reads(r.access()) && r.register().full_register() == full);
    let may = |r: Register| {
        let full = r.full_register();
        (r.is_gpr() || r.is_vector_register()) && !KEPT.contains(&full) && !is_read(full)
    };
    let is_free = |r: Register| {
        let (full, vector) = (r.full_register(), r.is_vector_register());
        FREE.contains(&full) || vector && full.number() >= 8
    };
    let keeps_arguments = written.clone().all(is_free);
    written.all(may).then_some(First { keeps_arguments, ..it })
}

fn writes(access: OpAccess) -> bool {
    use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
    matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite)
}

fn reads(access: OpAccess) -> bool {
    use OpAccess::{CondRead, Read, ReadCondWrite, ReadWrite};
    matches!(access, Read | CondRead | ReadWrite | ReadCondWrite)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(hex: &str) -> Option<First> {
        let bytes: Vec<u8> = hex.split_whitespace().map(|b| u8::from_str_radix(b, 16).unwrap()).collect();
        let found = first(0x1000, &bytes);
        assert!(found.is_none_or(|f| f.len == bytes.len()), "{hex}");
        found
    }

    #[test]
    fn what_is_undone() {
        for (hex, undo) in [
            ("55", 8),
            ("41 57", 8),
            ("54", 8),
            ("6a 01", 8),
            ("ff 74 24 08", 8),
            ("48 83 ec 18", 0x18),
            ("48 81 ec 28 01 00 00", 0x128),
            // add rsp, -128
            ("48 83 c4 80", 128),
        ] {
            assert_eq!(of(hex).map(|f| (f.undo, f.is_empty, f.keeps_arguments)), Some((undo, false, true)), "{hex}");
        }
    }

    #[test]
    fn what_is_repeated() {
        for (hex, keeps) in [
            // xor eax, eax; mov rax, rdi; mov eax, [rip+16]; lea r10, [rsp+8]; test rdi, rdi; cmp [rdi], 1; movzx eax, dil
            ("31 c0", true),
            ("48 89 f8", true),
            ("8b 05 10 00 00 00", true),
            ("4c 8d 54 24 08", true),
            ("48 85 ff", true),
            ("80 3f 01", true),
            ("40 0f b6 c7", true),
            // mov rax, fs:0x28; imul eax, edi, 3; movaps xmm8, xmm0
            ("64 48 8b 04 25 28 00 00 00", true),
            ("6b c7 03", true),
            ("44 0f 28 c0", true),
            // mov edi, 5; mov rdx, rsi; pxor xmm0, xmm0; movsd xmm1, [rdi]
            ("bf 05 00 00 00", false),
            ("48 89 f2", false),
            ("66 0f ef c0", false),
            ("f2 0f 10 0f", false),
        ] {
            assert_eq!(of(hex).map(|f| (f.undo, f.is_empty, f.keeps_arguments)), Some((0, false, keeps)), "{hex}");
        }
        for hex in ["f3 0f 1e fa", "90", "0f 1f 44 00 00"] {
            assert!(of(hex).is_some_and(|f| f.is_empty), "{hex}");
        }
    }

    #[test]
    fn what_cannot_stay() {
        for hex in [
            // mov rdi, [rdi]; mov rax, [rax]; add rdi, 8; inc eax; cmovne eax, edi; mov [rdi], eax; add [rdi], eax; xchg rdi, rsi
            "48 8b 3f",
            "48 8b 00",
            "48 83 c7 08",
            "ff c0",
            "0f 45 c7",
            "89 07",
            "01 07",
            "48 87 fe",
            // mov rbx, rdi; mov rbp, rsp; and rsp, -32; add rsp, 8; pop rax; pushfq; enter 16, 0; leave
            "48 89 fb",
            "48 89 e5",
            "48 83 e4 e0",
            "48 83 c4 08",
            "58",
            "9c",
            "c8 10 00 00",
            "c9",
            // fld [rdi]; fld1; rep stosb; call; jmp; ret; je; syscall; int3; ud2; cpuid
            "d9 07",
            "d9 e8",
            "f3 aa",
            "e8 00 00 00 00",
            "eb 00",
            "c3",
            "74 00",
            "0f 05",
            "cc",
            "0f 0b",
            "0f a2",
        ] {
            assert_eq!(of(hex), None, "{hex}");
        }
    }
}
