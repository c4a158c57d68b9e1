//! The beginning of a function, made to run elsewhere. Instructions keep their bytes, except where they speak of places:
//!
//! ```text
//!  op [rip+d]          the same, with a new distance
//!  jcc, jmp target     with 32 bits of distance
//!  loop/jrcxz target   the same, over a jmp with 32 bits of distance
//!  call target         push [rip+5]; jmp target; .quad return      the callee sees the address behind the original call
//!  nop                 nothing
//! ```
//!
//! Distances are left open ([`Fix`]), because the place is known only when a plan is linked.

use crate::Refusal;
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

/// Bytes of a patch: `jmp rel32`.
pub const JUMP: usize = 5;

/// A number in moved code that depends on where it lies, or on where the module lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fix {
    /// Offset in the code.
    pub at: u32,
    /// What it leads to, as an address of the file.
    pub target: u64,
    /// How it is written.
    pub kind: FixKind,
}

/// Forms of a [`Fix`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixKind {
    /// 32 bits, from the end of the instruction, which is this many bytes behind the number's beginning.
    Relative(u8),
    /// 64 bits, the address.
    Absolute,
}

/// What became of the instructions that a patch displaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Bytes of the instructions that the patch replaces.
    pub displaced: usize,
    /// Another instruction than the first begins in the patch.
    pub splits: bool,
    /// Nothing is left of them: what calls the function may go to behind the displaced bytes.
    pub is_empty: bool,
    /// The last one never goes on to what follows.
    pub ends: bool,
}

/// From where on moved code stands for an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Offset in the code.
    pub at: u32,
    /// The instruction, as an address of the file.
    pub original: u64,
    /// The stack pointer is 8 lower than it was before the instruction.
    pub pushed: bool,
}

/// Moves the instructions at `start`, of which `bytes` has what may be decoded, until a patch has room behind the first `kept` bytes: one
/// instruction, which stays in place too, or none; and at least this many bytes behind those. Appends to `code`, `fixes` and `steps`; what was appended has no meaning if it is
/// refused. `profilers`: addresses of mcount and the like, or of pointers to it, sorted: calls of these are left out.
pub fn relocate(
    (start, kept, least): (u64, usize, usize),
    bytes: &[u8],
    profilers: &[u64],
    code: &mut Vec<u8>,
    fixes: &mut Vec<Fix>,
    steps: &mut Vec<Step>,
) -> Result<Moved, Refusal> {
    let begin = code.len();
    let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
    let mut at = 0;
    let mut splits = false;
    while at < kept + least.max(JUMP) {
        splits |= at > kept;
        if !decoder.can_decode() {
            return Err(Refusal::TooSmall);
        }
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            return Err(Refusal::Undecodable);
        }
        let original = &bytes[at..at + instruction.len()];
        at += instruction.len();
        let mut mover = Mover { code, fixes, steps, instruction, original, decoder: &decoder };
        if !mover.is_dropped(profilers) && mover.step(false).one(at.saturating_sub(kept))? == Next::Ends {
            return Ok(Moved { displaced: at.saturating_sub(kept).max(JUMP), splits, is_empty: false, ends: true });
        }
    }
    let is_empty = code.len() == begin;
    if !is_empty {
        steps.push(Step { at: code.len() as u32, original: start.wrapping_add(at as u64), pushed: false });
        jump(0xe9, start.wrapping_add(at as u64), code, fixes);
    }
    Ok(Moved { displaced: at - kept, splits, is_empty, ends: false })
}

/// Whether an instruction can be followed by the next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Follows,
    Ends,
}

struct Mover<'m, 'b> {
    code: &'m mut Vec<u8>,
    fixes: &'m mut Vec<Fix>,
    steps: &'m mut Vec<Step>,
    instruction: Instruction,
    original: &'b [u8],
    decoder: &'m Decoder<'b>,
}

impl Mover<'_, '_> {
    /// It does nothing, or calls a profiler.
    fn is_dropped(&self, profilers: &[u64]) -> bool {
        let i = &self.instruction;
        let target = match i.code() {
            Code::Call_rel32_64 => i.near_branch_target(),
            Code::Call_rm64 if i.is_ip_rel_memory_operand() => i.ip_rel_memory_address(),
            _ => return i.mnemonic() == Mnemonic::Nop,
        };
        profilers.binary_search(&target).is_ok()
    }

    /// Notes that its code begins here, or its second half.
    fn step(&mut self, pushed: bool) -> &mut Self {
        self.steps.push(Step { at: self.code.len() as u32, original: self.instruction.ip(), pushed });
        self
    }

    /// Moves it. `end`: offset behind it from the beginning of the patch.
    fn one(&mut self, end: usize) -> Result<Next, Refusal> {
        let i = self.instruction;
        if i.memory_base() == Register::EIP {
            return Err(Refusal::Unmovable);
        }
        match i.flow_control() {
            FlowControl::Next => {
                self.copy();
                Ok(Next::Follows)
            }
            FlowControl::Return | FlowControl::IndirectBranch => {
                if !(i.code() == Code::Retnq || i.code() == Code::Retnq_imm16 || i.is_jmp_near_indirect()) {
                    return Err(Refusal::Unmovable);
                }
                self.copy();
                Ok(Next::Ends)
            }
            FlowControl::UnconditionalBranch if i.op0_kind() == OpKind::NearBranch64 => {
                jump(0xe9, i.near_branch_target(), self.code, self.fixes);
                Ok(Next::Ends)
            }
            FlowControl::ConditionalBranch if i.op0_kind() == OpKind::NearBranch64 => self.conditional(),
            FlowControl::Call if i.mnemonic() == Mnemonic::Syscall || i.mnemonic() == Mnemonic::Sysenter => {
                Err(Refusal::SystemCall)
            }
            FlowControl::Interrupt if i.mnemonic() == Mnemonic::Int => Err(Refusal::SystemCall),
            FlowControl::Interrupt => Err(Refusal::Patched),
            FlowControl::Call | FlowControl::IndirectCall if end < JUMP => Err(Refusal::CallInside),
            FlowControl::Call if i.code() == Code::Call_rel32_64 => {
                self.push_return();
                jump(0xe9, i.near_branch_target(), self.code, self.fixes);
                self.return_address();
                Ok(Next::Ends)
            }
            FlowControl::IndirectCall if i.code() == Code::Call_rm64 => self.indirect_call(),
            _ => Err(Refusal::Unmovable),
        }
    }

    /// The instruction's bytes, with the distance of a rip-relative operand left open.
    fn copy(&mut self) {
        let at = self.code.len();
        self.code.extend(self.original);
        if self.instruction.is_ip_rel_memory_operand() {
            let offset = self.decoder.get_constant_offsets(&self.instruction).displacement_offset();
            let kind = FixKind::Relative((self.original.len() - offset) as u8);
            let target = self.instruction.ip_rel_memory_address();
            self.fixes.push(Fix { at: (at + offset) as u32, target, kind });
        }
    }

    fn conditional(&mut self) -> Result<Next, Refusal> {
        let i = self.instruction;
        let target = i.near_branch_target();
        if i.is_jcc_short_or_near() {
            // Both forms have the condition in the lower half of the opcode's last byte: 70+cc, 0f 80+cc.
            let at = if i.is_jcc_short() { self.original.len() - 2 } else { self.original.len() - 5 };
            self.code.push(0x0f);
            jump(0x80 | self.original[at] & 0xf, target, self.code, self.fixes);
        } else if (i.is_loop() || i.is_loopcc() || i.is_jcx_short()) && self.original.len() <= 3 {
            // over two bytes of jmp to the next instruction, to a jmp to the target.
            let (_, opcode) = self.original.split_last().ok_or(Refusal::Undecodable)?;
            self.code.extend(opcode);
            self.code.extend([2, 0xeb, JUMP as u8]);
            jump(0xe9, target, self.code, self.fixes);
        } else {
            return Err(Refusal::Unmovable);
        }
        Ok(Next::Follows)
    }

    /// call [memory] or call register.
    fn indirect_call(&mut self) -> Result<Next, Refusal> {
        let i = self.instruction;
        // The push moves rsp: of what is relative to it, or rsp itself, the distance would change.
        let of_rsp = |r: Register| r == Register::RSP || r == Register::ESP;
        let is_memory = i.op0_kind() == OpKind::Memory;
        if is_memory && of_rsp(i.memory_base()) || !is_memory && of_rsp(i.op0_register()) {
            return Err(Refusal::Unmovable);
        }
        // FF /2 becomes FF /4, a jmp, behind the same prefixes.
        let opcode = self.original.iter().position(|b| *b == 0xff).ok_or(Refusal::Undecodable)?;
        let modrm = opcode + 1;
        if modrm >= self.original.len() {
            return Err(Refusal::Undecodable);
        }
        self.push_return_behind(self.original.len());
        let at = self.code.len();
        self.copy();
        self.code[at + modrm] = self.code[at + modrm] & !0x38 | 0x20;
        self.return_address();
        Ok(Next::Ends)
    }

    /// push [rip+5]: what follows the jmp behind it.
    fn push_return(&mut self) {
        self.push_return_behind(JUMP);
    }

    fn push_return_behind(&mut self, bytes: usize) {
        self.code.extend([0xff, 0x35, bytes as u8, 0, 0, 0]);
        self.step(true);
    }

    fn return_address(&mut self) {
        let at = self.code.len() as u32;
        self.code.extend([0; 8]);
        self.fixes.push(Fix { at, target: self.instruction.next_ip(), kind: FixKind::Absolute });
    }
}

/// An instruction that ends with 32 bits of distance to the target.
fn jump(opcode: u8, target: u64, code: &mut Vec<u8>, fixes: &mut Vec<Fix>) {
    code.push(opcode);
    fixes.push(Fix { at: code.len() as u32, target, kind: FixKind::Relative(4) });
    code.extend([0; 4]);
}

#[cfg(test)]
mod tests;
