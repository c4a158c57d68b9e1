//! Where the instructions of a function begin: what a breakpoint may be put on without breaking it. x86-64.
//!
//! ```text
//!  entry ─► decode, follow every branch ─► instructions that are reached
//!                                              │ what lies between them: decoded from end to end
//!                                              ▼
//!  At::Start   reached                         At::Likely    between, and something jumps there by a table or an exception
//!  At::Inside  within an instruction           At::Doubtful  between, and nothing that is known leads there
//!                                              At::Data      between, and no code: data, padding, a table
//! ```
//!
//! Two instructions may overlap on purpose (a jump that skips a `lock` prefix): then only the outer one's start takes a breakpoint.
//! Bytes are hostile: every one is decoded at most twice.

mod stack;

use iced_x86::{Code as Opcode, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use stack::Stack;

/// The largest function that is decoded, bytes.
pub const MAX: usize = 4 << 20;
/// The longest instruction.
pub const LONGEST: usize = 15;
/// Programs that are linked to fixed addresses lie above; only they have addresses as numbers in their code.
const FIXED: u64 = 0x20_0000;

/// What is known of a place in a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// An instruction begins there that the function comes to.
    Start,
    /// An instruction begins there that only a table of jumps or an exception leads to.
    Likely,
    /// An instruction may begin there, but nothing that is known leads to it.
    Doubtful,
    /// It is inside of an instruction.
    Inside,
    /// It is no code as far as can be seen.
    Data,
}

/// An instruction that is reached begins at the byte.
const START: u8 = 1;
/// The byte is a further one of an instruction that is reached.
const BODY: u8 = 2;
/// An instruction begins at the byte that lies between those.
const BETWEEN: u8 = 4;
/// The byte lies between those and is no code.
const DATA: u8 = 8;

/// The instructions of a function.
#[derive(Debug)]
pub struct Code {
    start: u64,
    marks: Vec<u8>,
    /// Where it calls or jumps to, outside of itself.
    leaves_to: Vec<u64>,
    /// All places that it calls or jumps to are known.
    is_closed: bool,
    /// Something leads to instructions between those that are reached.
    has_other_ways: bool,
    takes_return_address: bool,
    goes_on_as: Vec<u64>,
}

impl Code {
    /// Looks at the function whose bytes lie at `start`. `lands`: exceptions may lead into it.
    pub fn read(start: u64, bytes: &[u8], lands: bool) -> Code {
        let bytes = &bytes[..bytes.len().min(MAX)];
        let mut walk = Walk::new(start, bytes);
        walk.follow();
        let data_inside = walk.references.iter().any(|at| walk.marks[*at] & START == 0);
        walk.fill();
        Code {
            start,
            is_closed: !walk.is_open,
            has_other_ways: (walk.jumps_by_table || lands) && !data_inside,
            takes_return_address: walk.takes_return_address,
            goes_on_as: walk.goes_on_as,
            marks: walk.marks,
            leaves_to: walk.leaves_to,
        }
    }

    /// Whether it reads its own return address, as setjmp and dlsym do, as far as its stack can be followed.
    pub fn takes_return_address(&self) -> bool {
        self.takes_return_address
    }

    /// What is known of an address.
    pub fn at(&self, address: u64) -> At {
        let mark = address.checked_sub(self.start).and_then(|at| self.marks.get(usize::try_from(at).ok()?));
        match mark.copied().unwrap_or(DATA) {
            // An instruction that overlaps it would be cut by a breakpoint.
            m if m & BODY != 0 => At::Inside,
            m if m & START != 0 => At::Start,
            m if m & DATA != 0 => At::Data,
            m if m & BETWEEN != 0 && self.has_other_ways => At::Likely,
            m if m & BETWEEN != 0 => At::Doubtful,
            _ => At::Inside,
        }
    }

    /// The starts of instructions nearest to an address: one below, one above.
    pub fn nearest(&self, address: u64) -> Vec<u64> {
        let at = address.saturating_sub(self.start).min(self.marks.len() as u64) as usize;
        let fits = |at: &usize| matches!(self.at(self.start + *at as u64), At::Start | At::Likely);
        let below = (0..at).rev().find(fits);
        let above = (at + 1..self.marks.len()).find(fits);
        below.into_iter().chain(above).map(|at| self.start + at as u64).collect()
    }

    /// The functions that it jumps to in its own place: they find its return address as theirs.
    pub fn goes_on_as(&self) -> &[u64] {
        &self.goes_on_as
    }

    /// The addresses outside of it that it calls or jumps to; none where not all of them can be known.
    pub fn leaves_to(&self) -> Option<&[u64]> {
        self.is_closed.then_some(&self.leaves_to)
    }
}

/// The first instruction of some bytes: none where they are none, or zeros, which fill gaps.
fn first(bytes: &[u8]) -> Option<Instruction> {
    let i = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).decode();
    (!i.is_invalid() && !bytes.starts_with(&[0, 0])).then_some(i)
}

/// Bytes of the instruction that some bytes begin with.
pub fn length(bytes: &[u8]) -> Option<usize> {
    first(bytes).map(|i| i.len())
}

/// Whether some bytes begin with an instruction.
pub fn is_instruction(bytes: &[u8]) -> bool {
    first(bytes).is_some()
}

/// Whether some bytes begin with an instruction that does nothing.
pub fn is_nop(bytes: &[u8]) -> bool {
    first(bytes).is_some_and(|i| i.mnemonic() == Mnemonic::Nop)
}

/// Whether Linux emulates an instruction wrongly when a breakpoint is on it. It reads only the byte of the opcode, also where a
/// prefix of AVX gives that another meaning, and takes it for a branch, a nop, a call, a return or popf (`branch_setup_xol_ops` and
/// `arch_uprobe_analyze_insn`, arch/x86/kernel/uprobes.c, 6.18): `vpor` is skipped as `jmp +0`, and so are comparisons.
pub fn is_misread_by_linux(instruction: &[u8]) -> bool {
    let is_prefix = |b: &&u8| matches!(b, 0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0x67);
    let rest = &instruction[instruction.iter().take_while(is_prefix).count()..];
    let opcode = match rest {
        // VEX of two and of three bytes, XOP, EVEX.
        [0xc5, _, opcode, ..] | [0xc4, _, _, opcode, ..] | [0x62, _, _, _, opcode, ..] => *opcode,
        [0x8f, map, _, opcode, ..] if map & 0x1f >= 8 => *opcode,
        _ => return false,
    };
    matches!(opcode, 0x70..=0x7f | 0x90 | 0x9a | 0x9d | 0xc2 | 0xc3 | 0xca | 0xcb | 0xe8 | 0xe9 | 0xea | 0xeb | 0xff)
}

/// The walk through a function.
struct Walk<'b> {
    start: u64,
    bytes: &'b [u8],
    marks: Vec<u8>,
    /// Offsets that are still to be decoded, and where the stack is there.
    waiting: Vec<(usize, Stack)>,
    leaves_to: Vec<u64>,
    is_open: bool,
    jumps_by_table: bool,
    /// Offsets in the function that instructions take as data, or as addresses.
    references: Vec<usize>,
    takes_return_address: bool,
    goes_on_as: Vec<u64>,
}

impl<'b> Walk<'b> {
    fn new(start: u64, bytes: &'b [u8]) -> Walk<'b> {
        Walk {
            start,
            bytes,
            marks: vec![0; bytes.len()],
            waiting: if bytes.is_empty() { Vec::new() } else { vec![(0, Stack::AT_ENTRY)] },
            leaves_to: Vec::new(),
            is_open: bytes.is_empty(),
            jumps_by_table: false,
            references: Vec::new(),
            takes_return_address: false,
            goes_on_as: Vec::new(),
        }
    }

    /// The instruction at an offset; `None` if it does not end within the function.
    fn decode(&self, at: usize) -> Option<Instruction> {
        let end = self.bytes.len().min(at + LONGEST);
        let bytes = self.bytes.get(at..end)?;
        let i = Decoder::with_ip(64, bytes, self.start.wrapping_add(at as u64), DecoderOptions::NONE).decode();
        (!i.is_invalid() && !bytes.starts_with(&[0, 0])).then_some(i)
    }

    /// The offset of an address within the function.
    fn inside(&self, address: u64) -> Option<usize> {
        let at = usize::try_from(address.checked_sub(self.start)?).ok()?;
        (at < self.bytes.len()).then_some(at)
    }

    /// Marks everything that the entry leads to.
    fn follow(&mut self) {
        while let Some((at, mut stack)) = self.waiting.pop() {
            if self.marks[at] & START != 0 {
                continue;
            }
            let Some(i) = self.decode(at) else {
                self.is_open = true;
                continue;
            };
            self.marks[at] |= START;
            self.marks[at + 1..at + i.len()].iter_mut().for_each(|m| *m |= BODY);
            self.refer(&i);
            self.takes_return_address |= stack.is_return_address(&i);
            stack.step(&i);
            self.go_on(&i, at + i.len(), stack);
        }
    }

    /// Where an instruction leads to.
    fn go_on(&mut self, i: &Instruction, next: usize, stack: Stack) {
        let falls_through = match i.flow_control() {
            FlowControl::Return | FlowControl::Exception => false,
            // int3 fills gaps, or is another program's breakpoint.
            FlowControl::Interrupt => i.code() != Opcode::Int3,
            FlowControl::Next | FlowControl::XbeginXabortXend => true,
            FlowControl::IndirectCall => {
                self.is_open = true;
                true
            }
            FlowControl::IndirectBranch => {
                (self.is_open, self.jumps_by_table) = (true, true);
                false
            }
            FlowControl::Call if !i.is_call_near() => true,
            // A call into the function itself is for its own address, or for the data after the call.
            FlowControl::Call => !self.jump(i, Stack::UNKNOWN) || i.near_branch_target() == self.start,
            FlowControl::UnconditionalBranch => {
                self.jump(i, stack);
                false
            }
            FlowControl::ConditionalBranch => {
                self.jump(i, stack);
                true
            }
        };
        match falls_through {
            true if next < self.bytes.len() => self.waiting.push((next, stack)),
            // A call that does not return may be the last instruction.
            true if i.flow_control() != FlowControl::Call => self.is_open = true,
            _ => {}
        }
    }

    /// Takes a branch; whether it stays in the function.
    fn jump(&mut self, i: &Instruction, stack: Stack) -> bool {
        if !matches!(i.op0_kind(), OpKind::NearBranch64) {
            self.is_open = true;
            return false;
        }
        match self.inside(i.near_branch_target()) {
            Some(at) => self.waiting.push((at, stack)),
            None => {
                self.leaves_to.push(i.near_branch_target());
                if stack.is_at_entry() {
                    self.goes_on_as.push(i.near_branch_target());
                }
            }
        }
        self.inside(i.near_branch_target()).is_some()
    }

    /// Notes what of the function an instruction takes as data.
    fn refer(&mut self, i: &Instruction) {
        let mut note = |address: u64| {
            if let Some(at) = address.checked_sub(self.start).filter(|at| *at < self.bytes.len() as u64) {
                self.references.push(at as usize);
            }
        };
        for n in 0..i.op_count() {
            match i.op_kind(n) {
                OpKind::Memory if i.is_ip_rel_memory_operand() => note(i.ip_rel_memory_address()),
                OpKind::Memory if i.memory_base() == Register::None => note(i.memory_displacement64()),
                OpKind::Immediate32 | OpKind::Immediate64 | OpKind::Immediate32to64 if self.start >= FIXED => {
                    note(i.immediate(n));
                }
                _ => {}
            }
        }
    }

    /// Decodes what lies between the instructions that are reached.
    fn fill(&mut self) {
        let mut targets = Vec::new();
        let mut at = 0;
        while at < self.bytes.len() {
            let from = at;
            let free = |m: &u8| *m & (START | BODY) == 0;
            at += self.marks[at..].iter().take_while(|m| free(m)).count();
            if at == from {
                at += 1;
            } else if !self.fill_gap(from, at, &mut targets) {
                self.marks[from..at].fill(DATA);
            }
        }
        // A branch into the midst of what was taken for an instruction: it was none.
        if targets.iter().any(|t| self.marks[*t] & (START | BETWEEN) == 0) {
            self.marks.iter_mut().filter(|m| **m & (START | BODY) == 0).for_each(|m| *m = DATA);
        }
    }

    /// Decodes a gap from end to end; whether it is nothing but instructions.
    fn fill_gap(&mut self, from: usize, to: usize, targets: &mut Vec<usize>) -> bool {
        let mut at = from;
        while at < to {
            let Some(i) = self.decode(at).filter(|i| at + i.len() <= to) else { return false };
            self.marks[at] |= BETWEEN;
            if matches!(i.op0_kind(), OpKind::NearBranch64) {
                targets.extend(self.inside(i.near_branch_target()));
            }
            at += i.len();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0x1000;

    fn places(bytes: &[u8], lands: bool) -> Vec<At> {
        let code = Code::read(BASE, bytes, lands);
        (0..bytes.len()).map(|at| code.at(BASE + at as u64)).collect()
    }

    /// Offsets where a breakpoint may be set.
    fn starts(bytes: &[u8]) -> Vec<usize> {
        let all = places(bytes, false);
        (0..bytes.len()).filter(|at| matches!(all[*at], At::Start | At::Likely)).collect()
    }

    /// imul %rsi,%rdi; sar $3,%rsi; lea -0x12345678(%rdi,%rsi,1),%rax; ret
    const SMALL: [u8; 17] =
        [0x48, 0x0f, 0xaf, 0xfe, 0x48, 0xc1, 0xfe, 0x03, 0x48, 0x8d, 0x84, 0x37, 0x88, 0xa9, 0xcb, 0xed, 0xc3];

    #[test]
    fn instructions_of_a_small_function() {
        assert_eq!(starts(&SMALL), [0, 4, 8, 16]);
        let code = Code::read(BASE, &SMALL, false);
        assert_eq!(code.at(BASE + 2), At::Inside);
        assert_eq!(code.nearest(BASE + 10), [BASE + 8, BASE + 16]);
        assert_eq!(code.nearest(BASE + 1), [BASE, BASE + 4]);
        assert_eq!((code.at(BASE - 1), code.at(BASE + 17), code.at(u64::MAX)), (At::Data, At::Data, At::Data));
        assert_eq!(code.leaves_to(), Some(&[][..]));
    }

    #[test]
    fn data_that_is_jumped_over_is_no_code() {
        // jmp +4; 4 bytes that look like an instruction and a half; ret
        let over = [0xeb, 0x04, 0x48, 0x8b, 0x05, 0x90, 0xc3];
        assert_eq!(starts(&over), [0, 6]);
        assert_eq!(places(&over, false)[2..6], [At::Data; 4]);
        // The data could be code, but nothing leads there.
        let over = [0xeb, 0x02, 0x31, 0xc0, 0xc3];
        assert_eq!((starts(&over), places(&over, false)[2]), (vec![0, 4], At::Doubtful));
        assert_eq!(places(&over, true)[2..4], [At::Likely, At::Inside]);
    }

    #[test]
    fn a_table_in_the_function_is_no_code() {
        // lea table(%rip),%rax; jmp *(%rax,%rdi,8); table: two words that look like instructions
        let code = [0x48, 0x8d, 0x05, 0x03, 0, 0, 0, 0xff, 0x24, 0xf8, 0x31, 0xc0, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3];
        assert_eq!(starts(&code), [0, 7]);
        // Elsewhere: what follows the jump is where it leads to.
        let code = [0x48, 0x8d, 0x05, 0x03, 0, 1, 0, 0xff, 0x24, 0xf8, 0x31, 0xc0, 0xc3];
        assert_eq!(starts(&code), [0, 7, 10, 12]);
        assert_eq!(Code::read(BASE, &code, false).leaves_to(), None);
        // Zeros after it are padding.
        let code = [0xff, 0x24, 0xf8, 0, 0, 0, 0];
        assert_eq!((starts(&code), places(&code, true)[3]), (vec![0], At::Data));
    }

    #[test]
    fn overlapping_instructions_take_no_breakpoint_inside() {
        // cmpl $0,(%rdi); je 1f; lock; 1: cmpxchg %esi,(%rdi); ret: glibc's way to leave out a prefix.
        let code = [0x83, 0x3f, 0x00, 0x74, 0x01, 0xf0, 0x0f, 0xb1, 0x37, 0xc3];
        assert_eq!((starts(&code), places(&code, false)[6]), (vec![0, 3, 5, 9], At::Inside));
    }

    #[test]
    fn where_a_function_leads_to() {
        // call +0x100; jmp +0x200: both outside.
        let code = [0xe8, 0, 1, 0, 0, 0xe9, 0, 2, 0, 0];
        assert_eq!(Code::read(BASE, &code, false).leaves_to(), Some(&[BASE + 0x105, BASE + 0x20a][..]));
        // Into the midst of itself, over data.
        let code = [0xe8, 2, 0, 0, 0, 0x48, 0x8b, 0x58, 0xc3];
        assert_eq!((starts(&code), places(&code, false)[5]), (vec![0, 7, 8], At::Data));
        // call *%rax; falls out of its end; syscall; ret
        assert_eq!(Code::read(BASE, &[0xff, 0xd0, 0xc3], false).leaves_to(), None);
        assert_eq!(Code::read(BASE, &[0x90], false).leaves_to(), None);
        assert_eq!(Code::read(BASE, &[0x0f, 0x05, 0xc3], false).leaves_to(), Some(&[][..]));
    }

    #[test]
    fn what_is_no_instruction() {
        assert!(
            is_instruction(&[0x55]) && !is_instruction(&[0, 0, 0]) && !is_instruction(&[]) && !is_instruction(&[0x06])
        );
        assert!(is_nop(&[0x90]) && is_nop(&[0x0f, 0x1f, 0x44, 0, 0]) && is_nop(&[0x66, 0x90]) && !is_nop(&[0x55]));
        assert_eq!(starts(&[]), [0usize; 0]);
        // Not decodable from its first byte.
        assert_eq!(starts(&[0x06, 0x90, 0xc3]), [0usize; 0]);
    }

    #[test]
    fn instructions_that_linux_misreads() {
        // vpor; vmovd %xmm1,%eax; vpbroadcastb %esi,%ymm17; vzeroupper; vpcmpeqb; kmovq
        let avx: [&[u8]; 6] = [
            &[0xc5, 0xe9, 0xeb, 0xc8],
            &[0xc5, 0xf9, 0x7e, 0xc8],
            &[0x62, 0xe2, 0x7d, 0x28, 0x7a, 0xce],
            &[0xc5, 0xf8, 0x77],
            &[0xc5, 0xf9, 0x74, 0xc8],
            &[0xc4, 0xe1, 0xf8, 0x90, 0xd1],
        ];
        assert!(avx.iter().all(|i| is_misread_by_linux(i)));
        // vmovd %esi,%xmm0; vpxor; por; jne; pop (8f); push; nothing
        let others: [&[u8]; 7] = [
            &[0xc5, 0xf9, 0x6e, 0xc6],
            &[0xc5, 0xf9, 0xef, 0xc8],
            &[0x66, 0x0f, 0xeb, 0xc8],
            &[0x75, 0x10],
            &[0x8f, 0xc0],
            &[0x55],
            &[],
        ];
        assert!(!others.iter().any(|i| is_misread_by_linux(i)));
    }

    /// Whatever the bytes are, it ends, and instructions do not overlap where breakpoints may be set.
    #[test]
    fn any_bytes() {
        let mut state = 7u64;
        for _ in 0..500 {
            let bytes: Vec<u8> = (0..300)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 56) as u8
                })
                .collect();
            let code = Code::read(FIXED, &bytes, true);
            for at in 0..bytes.len() as u64 {
                if matches!(code.at(FIXED + at), At::Start | At::Likely) {
                    assert!(is_instruction(&bytes[at as usize..]));
                }
            }
        }
    }
}
