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
//! Where a debugger would put its breakpoint a little further on, several pushes stay, or a push and a move to that register, which a pop undoes.
//!
//! The moved beginning repeats the instruction. That is the same where it writes nothing but registers that it does not read and that no
//! callee has to keep, or the flags, or what lies below the stack pointer of the call. Of a register that an argument may be in, the stub
//! then sees what the instruction has written.

use abi::stub::{RAISE, UNDO};
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, Mnemonic, OpAccess, Register};
use std::collections::HashSet;

/// What makes the stack what it was at the call again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo {
    /// The stack pointer is raised by this.
    Raise(i32),
    /// This register is popped, by its number in instructions: it was pushed, and written since.
    Pop(u8),
}

impl Undo {
    /// Nothing is to be done.
    pub const NOTHING: Undo = Undo::Raise(0);

    /// One instruction: `lea rsp, [rsp+N]`, or a pop with prefixes that mean nothing to it.
    pub(crate) fn code(self) -> [u8; UNDO as usize] {
        match self {
            Undo::Raise(by) => {
                let ([a, b, c, d], [e, f, g, h]) = (RAISE, by.to_le_bytes());
                [a, b, c, d, e, f, g, h]
            }
            Undo::Pop(register) => abi::stub::pop(register),
        }
    }
}

/// An instruction that can be repeated, or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct First {
    /// Their bytes.
    pub len: usize,
    /// Those of the first one.
    pub first: usize,
    /// It does nothing: it need not be repeated.
    pub is_empty: bool,
    /// What takes back what it does to the stack.
    pub undo: Undo,
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
    let it = First { len: i.len(), first: i.len(), is_empty: false, undo: Undo::NOTHING, keeps_arguments: true };
    match i.code() {
        Code::Push_r64 | Code::Push_rm64 | Code::Pushq_imm32 | Code::Pushq_imm8 => {
            return Some(First { undo: Undo::Raise(8), ..it });
        }
        Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 | Code::Add_rm64_imm8 | Code::Add_rm64_imm32
            if i.op0_register() == Register::RSP =>
        {
            let number = i64::from(i.immediate(1) as i32);
            let undo = i32::try_from(if i.mnemonic() == Mnemonic::Sub { number } else { -number }).ok()?;
            return (undo > 0).then_some(First { undo: Undo::Raise(undo), ..it });
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

/// What a function begins with, two instructions or more, up to each: instructions that can stay together, as one can. None writes what one before
/// it has read, but for the one register that is pushed, and set (`push rbp; mov rbp, rsp`, `push rbx; xor ebx, ebx`).
pub(crate) fn prologue(address: u64, bytes: &[u8]) -> Vec<First> {
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let mut factory = InstructionInfoFactory::new();
    let (mut all, mut pushed, mut raise, mut popped) = (Vec::new(), Vec::new(), 0i32, None);
    let (mut read, mut written) = (HashSet::new(), HashSet::new());
    let (mut one, mut keeps_arguments) = (0, true);
    for n in 0..MOST {
        let at = decoder.position();
        if !decoder.can_decode() {
            break;
        }
        let i = decoder.decode();
        let len = decoder.position();
        let used: Vec<(Register, OpAccess)> = factory
            .info(&i)
            .used_registers()
            .iter()
            .map(|r| (r.register().full_register(), r.access()))
            .filter(|(r, _)| *r != Register::RSP)
            .collect();
        let its = |is: fn(OpAccess) -> bool| used.iter().filter(move |(_, access)| is(*access)).map(|(r, _)| *r);
        let one_pushed = pushed.first().copied().filter(|r| raise == 8 && pushed.len() == 1 && KEPT.contains(r));
        let writes_memory = factory.info(&i).used_memory().iter().any(|m| writes(m.access()));
        let sets = |to: Register| its(writes).eq([to]) && !its(reads).any(|r| r == to);
        let is_plain = i.flow_control() == FlowControl::Next && i.stack_pointer_increment() == 0 && !writes_memory;
        if let Some(to) = one_pushed.filter(|to| is_plain && !i.is_invalid() && popped.is_none() && sets(*to)) {
            popped = Some(to);
        } else {
            let Some(it) = first(address.wrapping_add(at as u64), &bytes[at..]) else { break };
            let Undo::Raise(by) = it.undo else { break };
            let Some(sum) = raise.checked_add(by).filter(|_| by == 0 || popped.is_none()) else { break };
            if i.code() == Code::Push_r64 {
                pushed.push(i.op0_register());
            }
            if its(writes).any(|r| read.contains(&r)) || its(reads).any(|r| popped == Some(r)) {
                break;
            }
            (raise, keeps_arguments) = (sum, keeps_arguments && it.keeps_arguments);
        }
        read.extend(its(reads).filter(|r| !written.contains(r)));
        written.extend(its(writes));
        if n == 0 {
            one = len;
        } else if len <= LONGEST {
            let undo = popped.map_or(Undo::Raise(raise), |r| Undo::Pop(r.number() as u8));
            all.push(First { len, first: one, is_empty: false, undo, keeps_arguments });
        }
    }
    all
}

/// The most instructions that stay, and the most bytes that several have.
const MOST: usize = 6;
const LONGEST: usize = 15;

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
            let undo = Undo::Raise(undo);
            assert_eq!(of(hex).map(|f| (f.undo, f.is_empty, f.keeps_arguments)), Some((undo, false, true)), "{hex}");
        }
    }

    #[test]
    fn what_stays_of_a_prologue() {
        let of = |bytes: &[u8]| prologue(0x1000, bytes).iter().map(|f| (f.len, f.undo)).collect::<Vec<_>>();
        // push r15; push r14; push rbx; sub rsp, 16; ret
        let four = [0x41, 0x57, 0x41, 0x56, 0x53, 0x48, 0x83, 0xec, 0x10, 0xc3];
        assert_eq!(of(&four), [(4, Undo::Raise(16)), (5, Undo::Raise(24)), (9, Undo::Raise(40))]);
        // push rbp; mov rbp, rsp, in both ways; push rbx
        assert_eq!(of(&[0x55, 0x48, 0x89, 0xe5, 0x53]), [(4, Undo::Pop(5))]);
        assert_eq!(of(&[0x55, 0x48, 0x8b, 0xec]), [(4, Undo::Pop(5))]);
        // push rbx; mov rbx, rdi; mov eax, esi. push r14; mov r14d, esi. push rbx; mov rbx, [rdi]
        assert_eq!(of(&[0x53, 0x48, 0x89, 0xfb, 0x89, 0xf0]), [(4, Undo::Pop(3)), (6, Undo::Pop(3))]);
        assert_eq!(of(&[0x41, 0x56, 0x41, 0x89, 0xf6]), [(5, Undo::Pop(14))]);
        assert_eq!(of(&[0x53, 0x48, 0x8b, 0x1f]), [(4, Undo::Pop(3))]);
        // push rbx; xor ebx, ebx. push rbx; inc ebx. push rbx; pop rbx. push rbx; mov [rdi], rbx
        assert_eq!(of(&[0x53, 0x31, 0xdb]), [(3, Undo::Pop(3))]);
        assert_eq!(
            [&[0x53, 0xff, 0xc3][..], &[0x53, 0x5b], &[0x53, 0x48, 0x89, 0x1f]].map(of),
            [vec![], vec![], vec![]]
        );
        // push rbx; mov rbx, rdi; mov eax, ebx
        assert_eq!(of(&[0x53, 0x48, 0x89, 0xfb, 0x89, 0xd8]), [(4, Undo::Pop(3))]);
        // push rax; mov edx, esi; mov esi, edi. mov edx, esi; mov eax, edx. mov eax, esi; mov esi, edi. push rax; mov rax, rdi
        assert_eq!(of(&[0x50, 0x89, 0xf2, 0x89, 0xfe]), [(3, Undo::Raise(8))]);
        assert_eq!(of(&[0x89, 0xf2, 0x89, 0xd0]), [(4, Undo::NOTHING)]);
        assert_eq!(of(&[0x89, 0xf0, 0x89, 0xfe]), []);
        assert_eq!(of(&[0x50, 0x48, 0x89, 0xf8]), []);
        // push rbx; mov rbp, rsp. push rbp; push rbx; mov rbp, rsp. mov rbp, rsp. push rbp; mov rbp, rbp
        assert_eq!(of(&[0x53, 0x48, 0x89, 0xe5]), []);
        assert_eq!(of(&[0x55, 0x53, 0x48, 0x89, 0xe5]), [(2, Undo::Raise(16))]);
        assert_eq!(of(&[0x48, 0x89, 0xe5]), []);
        assert_eq!(of(&[0x55, 0x48, 0x89, 0xed]), []);
    }

    #[test]
    fn undoing_is_one_instruction() {
        let of = |undo: Undo| {
            let code = undo.code();
            let i = Decoder::with_ip(64, &code, 0, DecoderOptions::NONE).decode();
            assert_eq!(i.len(), code.len());
            (i.mnemonic(), i.op0_register())
        };
        assert_eq!(of(Undo::Raise(0x28)), (Mnemonic::Lea, Register::RSP));
        let registers = KEPT.iter().filter(|r| **r != Register::RSP);
        registers.for_each(|r| {
            let undo = Undo::Pop(r.number() as u8);
            assert_eq!(of(undo), (Mnemonic::Pop, *r));
            assert_eq!(abi::stub::popped(&undo.code()), Some(r.number() as u8));
        });
        assert_eq!(abi::stub::popped(&Undo::Raise(0x28).code()), None);
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
            assert_eq!(
                of(hex).map(|f| (f.undo, f.is_empty, f.keeps_arguments)),
                Some((Undo::NOTHING, false, keeps)),
                "{hex}"
            );
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
