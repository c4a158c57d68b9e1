//! Patches of `syscall` instructions: where a jump goes in front of one, or in its place, and the stub that it leads to.
//!
//! ```text
//!  instruction (5 bytes or more) ─► jmp stub   up to `syscall`, instructions are in the stub; all but the first stay where they are, too
//!  syscall     (2 bytes) ─► jmp hole           where no such instruction is in front of it
//!  hole: 5 bytes of padding between two functions ─► jmp stub
//!
//!  stub:  instructions │ lea r11, [words] │ jmp [code] │ syscall; jmp back │ words: back, raw, code, from
//! ```
//!
//! Whatever jumps to the `syscall`, or to one of the instructions in front of it, or was in one, finds it or the jump in its place. The stub's own
//! `syscall` is for holes.

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::ops::Range;

/// Bytes of a stub.
pub const STUB: usize = 64;
/// The instruction `syscall`.
pub const INSTRUCTION: [u8; 2] = [0x0f, 0x05];
/// Its bytes.
pub const SYSCALL: u64 = INSTRUCTION.len() as u64;
/// Bytes of a jump.
pub const JUMP: u64 = 5;
/// Where the words of a stub are.
pub const WORDS: u64 = 32;
/// Where its own `syscall` is, behind its instructions.
const RAW: u64 = 13;
/// The most bytes of instructions that have room in a stub.
const MOST: usize = (WORDS - RAW) as usize;
const INT3: u8 = 0xcc;
const SHORT_JUMP: u8 = 0xeb;
const LONG_JUMP: u8 = 0xe9;

/// How a `syscall` is patched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// At these instructions in front of it.
    Front(Front),
    /// In its place, by way of the hole at this address.
    Hole(u64),
}

/// The instructions in front of a `syscall`, of which a jump can replace the first. They may be executed anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Front {
    bytes: [u8; MOST],
    len: u8,
    number: Option<u32>,
}

impl Front {
    /// Their bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// The number of the call, where it is all that they load: where a thread is at a call with this number, they may be executed once more. Whatever else they
    /// load, the thread may have come to the call by another way, with other values.
    pub fn number(&self) -> Option<u32> {
        self.number
    }

    /// Takes the last of these instructions: as few as begin with one that a jump can replace. `lengths` has the bytes of each.
    fn run(instructions: &[(Instruction, usize)], code: &[u8]) -> Option<Front> {
        let first = instructions.iter().rposition(|(_, len)| *len >= JUMP as usize)?;
        let taken = &instructions[first..];
        let number = if let [(instruction, _)] = taken { number_of(instruction) } else { None };
        let len: usize = taken.iter().map(|(_, len)| len).sum();
        Front::copy(code.get(code.len().checked_sub(len)?..)?, number)
    }

    fn copy(from: &[u8], number: Option<u32>) -> Option<Front> {
        let mut front = Front { bytes: [0; MOST], len: from.len() as u8, number };
        front.bytes.get_mut(..from.len())?.copy_from_slice(from);
        Some(front)
    }

    /// `mov eax, NUMBER`, if that is what the 6 bytes in front of a `syscall` end with.
    pub fn of_number(before: &[u8; 6], number: u32) -> Option<Front> {
        // A prefix would make another register of it.
        let is_prefix = (0x40..0x50).contains(&before[0]);
        let loads = !is_prefix && before[1] == 0xb8 && before[2..] == number.to_le_bytes();
        if loads { Front::copy(&before[1..], Some(number)) } else { None }
    }
}

/// The number that an instruction loads into eax.
fn number_of(instruction: &Instruction) -> Option<u32> {
    let loads = instruction.code() == Code::Mov_r32_imm32 && instruction.op0_register() == Register::EAX;
    loads.then(|| instruction.immediate32())
}

/// Whether an instruction does the same elsewhere: it says nothing of its own address, and the next one follows it. The stack stays where it is.
fn may_move(instruction: &Instruction) -> bool {
    let moves_stack = instruction.stack_pointer_increment() != 0
        || (instruction.op0_kind() == OpKind::Register && instruction.op0_register().full_register() == Register::RSP);
    instruction.flow_control() == FlowControl::Next
        && !instruction.is_privileged()
        && !instruction.is_ip_rel_memory_operand()
        && !moves_stack
}

/// A `syscall`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its address.
    pub at: u64,
    /// The instructions in front of it, if a jump can replace the first of them.
    pub front: Option<Front>,
    /// The number of the call, where instructions before say it.
    pub number: Option<u32>,
}

/// Bytes to be written, and where. A thread may execute what is there meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// Address.
    pub at: u64,
    /// The bytes that have to be there.
    pub old: Vec<u8>,
    /// Those that replace them: as many.
    pub new: Vec<u8>,
}

/// The `syscall` instructions of a function. `code` is the whole function, which begins at `start`.
/// Behind bytes that are no instruction nothing is found.
pub fn sites(code: &[u8], start: u64) -> Vec<Site> {
    let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    let (mut instruction, mut before, mut number, mut found) = (Instruction::default(), vec![], None, vec![]);
    while decoder.can_decode() {
        let from = decoder.position();
        decoder.decode_out(&mut instruction);
        let to = instruction.op0_register().full_register();
        let keeps = matches!(instruction.mnemonic(), Mnemonic::Mov | Mnemonic::Lea | Mnemonic::Xor | Mnemonic::Nop);
        match instruction.code() {
            Code::INVALID => break,
            Code::Syscall => {
                found.push(Site { at: instruction.ip(), front: Front::run(&before, &code[..from]), number });
                number = None;
            }
            _ if number_of(&instruction).is_some() => number = number_of(&instruction),
            Code::Xor_rm32_r32 | Code::Xor_r32_rm32
                if [instruction.op0_register(), instruction.op1_register()] == [Register::EAX; 2] =>
            {
                number = Some(0);
            }
            _ if keeps && to != Register::RAX => {}
            _ => number = None,
        }
        if may_move(&instruction) {
            before.push((instruction, decoder.position() - from));
        } else {
            before.clear();
        }
    }
    found
}

/// Has the decoder make its tables, which takes as long as a few stops, before there is an instruction for it.
pub fn prepare() {
    let _ = Decoder::new(64, &INSTRUCTION, DecoderOptions::NONE).decode();
}

/// What can be reached from a `syscall` by a jump of two bytes.
pub fn near(syscall: u64) -> Range<u64> {
    let back = syscall.wrapping_add(SYSCALL);
    back.saturating_sub(128)..back.saturating_add(128)
}

/// A hole near a `syscall`: bytes between two functions, of which nothing is executed. `gap` is what lies between them, `bytes` its contents.
pub fn hole(syscall: u64, gap: &Range<u64>, bytes: &[u8], used: impl Fn(u64) -> bool) -> Option<u64> {
    let padding = padding(bytes) as u64;
    let near = near(syscall);
    let last = (gap.start + padding).checked_sub(JUMP)?;
    (gap.start..=last).rev().find(|at| near.contains(at) && !(at.saturating_sub(JUMP - 1)..at + JUMP).any(&used))
}

/// How many of the bytes are instructions that do nothing: `nop` or `int3`.
fn padding(bytes: &[u8]) -> usize {
    let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
    let mut len = 0;
    while decoder.can_decode() && matches!(decoder.decode().mnemonic(), Mnemonic::Nop | Mnemonic::Int3) {
        len = decoder.position();
    }
    len
}

/// The stub at `at` for a `syscall`, which leads to the code at `code`.
pub fn stub(at: u64, syscall: u64, way: Way, code: u64) -> Option<[u8; STUB]> {
    let back = syscall + SYSCALL;
    let front = match &way {
        Way::Front(front) => front.bytes(),
        Way::Hole(_) => &[],
    };
    let len = front.len() as u64;
    let (raw, from) = if front.is_empty() { (at + RAW, syscall) } else { (syscall, syscall - len) };
    let mut bytes = [INT3; STUB];
    let (first, rest) = bytes.split_at_mut(front.len());
    first.copy_from_slice(front);
    rest[..3].copy_from_slice(&[0x4c, 0x8d, 0x1d]);
    rest[3..7].copy_from_slice(&((WORDS - len) as u32 - 7).to_le_bytes());
    rest[7..9].copy_from_slice(&[0xff, 0x25]);
    rest[9..13].copy_from_slice(&((WORDS - len) as u32 + 16 - 13).to_le_bytes());
    if front.is_empty() {
        rest[13..15].copy_from_slice(&INSTRUCTION);
        rest[15..20].copy_from_slice(&jump(at + RAW + SYSCALL, back)?);
    }
    for (to, word) in bytes[WORDS as usize..].chunks_exact_mut(8).zip([back, raw, code, from]) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    Some(bytes)
}

/// The program's address for a thread at an `offset` in a stub, whose words (at [`WORDS`]) are these. None: the thread is in its call.
pub fn in_program(words: &[u64; 4], offset: u64) -> Option<u64> {
    let [back, _, _, from] = *words;
    let syscall = back.checked_sub(SYSCALL)?;
    let len = syscall.checked_sub(from)?;
    let call = len.checked_add(RAW)?;
    match offset {
        // The instructions behind the first are where they were, too.
        _ if offset < len => Some(from + offset),
        _ if offset < call => Some(syscall),
        _ if offset == call + SYSCALL => Some(back),
        _ => None,
    }
}

/// Where a patched call begins.
pub fn from(syscall: u64, way: Way) -> u64 {
    match way {
        Way::Front(front) => syscall - u64::from(front.len),
        Way::Hole(_) => syscall,
    }
}

/// The patches that lead a `syscall` to its stub, in the order in which they are made.
pub fn patches(syscall: u64, way: Way, stub: u64, hole: &[u8]) -> Option<Vec<Patch>> {
    Some(match way {
        Way::Front(front) => {
            let (old, at) = (front.bytes().to_vec(), syscall - u64::from(front.len));
            let mut new = jump(at, stub)?.to_vec();
            new.extend_from_slice(&old[JUMP as usize..]);
            vec![Patch { at, old, new }]
        }
        Way::Hole(at) => {
            let to = jump(at, stub)?.to_vec();
            let short = i8::try_from(at.wrapping_sub(syscall + SYSCALL) as i64).ok()?;
            let first = Patch { at, old: hole.get(..JUMP as usize)?.to_vec(), new: to };
            vec![first, Patch { at: syscall, old: INSTRUCTION.to_vec(), new: vec![SHORT_JUMP, short as u8] }]
        }
    })
}

/// What the patch at an address has replaced, but for one of a hole. `read` reads memory of the process. None: there is no patch.
pub fn replaced(at: u64, read: impl Fn(u64, &mut [u8]) -> bool) -> Option<Vec<u8>> {
    let word = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_le_bytes);
    let mut jump = [0; JUMP as usize];
    let (first, rest) = jump.split_at_mut(INSTRUCTION.len());
    if !read(at, first) {
        return None;
    }
    if first[0] == SHORT_JUMP {
        return Some(INSTRUCTION.to_vec());
    }
    if first[0] != LONG_JUMP || !read(at + SYSCALL, rest) {
        return None;
    }
    let distance = i32::from_le_bytes(jump[1..].try_into().ok()?);
    let mut stub = [0; STUB];
    if !read((at + JUMP).wrapping_add_signed(distance.into()), &mut stub) {
        return None;
    }
    let words = &stub[WORDS as usize..];
    let (back, from) = (word(&words[..8])?, word(&words[24..])?);
    let len = back.checked_sub(SYSCALL + at).filter(|_| from == at)?;
    stub.get(..len as usize).filter(|bytes| bytes.len() >= jump.len()).map(<[u8]>::to_vec)
}

/// A jump of five bytes.
fn jump(at: u64, to: u64) -> Option<[u8; JUMP as usize]> {
    let distance = i32::try_from(to.wrapping_sub(at + JUMP) as i64).ok()?;
    let mut bytes = [LONG_JUMP, 0, 0, 0, 0];
    bytes[1..].copy_from_slice(&distance.to_le_bytes());
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first instructions, and what each leads to or speaks of.
    fn code(at: u64, bytes: &[u8]) -> Vec<(Mnemonic, u64)> {
        let mut decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
        let mut lines = vec![];
        while decoder.can_decode() && lines.len() < 5 {
            let i = decoder.decode();
            let to = [i.near_branch_target(), if i.is_ip_rel_memory_operand() { i.memory_displacement64() } else { 0 }];
            lines.push((i.mnemonic(), to.into_iter().max().unwrap()));
        }
        lines
    }

    fn number(number: u32) -> Front {
        let mut before = [0x90, 0xb8, 0, 0, 0, 0];
        before[2..].copy_from_slice(&number.to_le_bytes());
        Front::of_number(&before, number).unwrap()
    }

    #[test]
    fn a_number_is_loaded_by_a_whole_instruction() {
        assert_eq!(number(257).bytes(), [0xb8, 1, 1, 0, 0]);
        assert_eq!(Front::of_number(&[0x41, 0xb8, 1, 1, 0, 0], 257), None);
        assert_eq!(Front::of_number(&[0x90, 0xb8, 1, 1, 0, 0], 1), None);
        assert_eq!(Front::of_number(&[0x90, 0xb9, 1, 1, 0, 0], 257), None);
    }

    #[test]
    fn sites_have_an_instruction_in_front_that_may_move() {
        let code = [
            &[0xf3, 0x0f, 0x1e, 0xfa, 0xb8, 0, 0, 0, 0, 0x0f, 0x05][..], // endbr64; mov eax, 0; syscall
            &[0x31, 0xc0, 0x0f, 0x05],                                   // xor eax, eax; syscall
            &[0xb8, 1, 1, 0, 0, 0x90, 0x0f, 0x05],                       // mov eax, 257; nop; syscall
            &[0x48, 0xb8, 0xb8, 1, 0, 0, 0, 0x0f, 0x05, 0x90],           // mov rax, of bytes like the instructions
            &[0xb8, 1, 1, 0, 0, 0x48, 0x89, 0xfe, 0xbf, 0x9c, 0xff, 0xff, 0xff, 0x0f, 0x05], // mov eax, 257; mov rsi, rdi; mov edi, -100; syscall
            &[0xbf, 1, 0, 0, 0, 0x0f, 0x05],                                                 // mov edi, 1; syscall
            &[0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3], // mov eax, 39; syscall; ret
        ];
        let found = sites(&code.concat(), 0x1000);
        let len = |n: usize| code[..n].concat().len() as u64;
        let from = |s: &Site| s.front.map_or(0, |front| s.at - front.bytes().len() as u64);
        let places: Vec<_> = found.iter().map(|s| (from(s), s.at, s.number)).collect();
        let [xor, nop, _, openat, other, last] = [1, 2, 3, 4, 5, 6].map(|n| 0x1000 + len(n));
        let wanted = [
            (0x1004, 0x1009, Some(0)),
            (0, xor + 2, Some(0)),
            (nop, nop + 6, Some(257)),
            (openat + 8, openat + 13, Some(257)),
            (other, other + 5, None),
            (last, last + 5, Some(39)),
        ];
        assert_eq!(places, wanted);
        // What follows something that is no instruction may be anything.
        assert_eq!(sites(&[&[0x06][..], code[6]].concat(), 0x1000), []);
    }

    #[test]
    fn a_stub_goes_back_behind_the_call() {
        let bytes = stub(0x5000, 0x1000, Way::Front(number(39)), 0x10fe_0000_0000).unwrap();
        use Mnemonic::{Jmp, Lea, Mov, Syscall};
        let lines = code(0x5000, &bytes);
        assert_eq!(lines[..3], [(Mov, 0), (Lea, 0x5020), (Jmp, 0x5030)]);
        let word = |bytes: &[u8], at: u64| u64::from_le_bytes(bytes[at as usize..][..8].try_into().unwrap());
        let words = [32, 40, 48, 56].map(|at| word(&bytes, at));
        assert_eq!(words, [0x1002, 0x1000, 0x10fe_0000_0000, 0xffb]);
        let found = [0, 5, 12, 18, 20].map(|offset| in_program(&words, offset));
        assert_eq!(found, [Some(0xffb), Some(0x1000), Some(0x1000), None, Some(0x1002)]);
        let by_hole = stub(0x5000, 0x1000, Way::Hole(0x1040), 1).unwrap();
        assert_eq!(code(0x5000, &by_hole)[..4], [(Lea, 0x5020), (Jmp, 0x5030), (Syscall, 0), (Jmp, 0x1002)]);
        let words = [32, 40, 48, 56].map(|at| word(&by_hole, at));
        assert_eq!(words, [0x1002, 0x500d, 1, 0x1000]);
        assert_eq!([7, 13, 15].map(|offset| in_program(&words, offset)), [Some(0x1000), None, Some(0x1002)]);
    }

    #[test]
    fn several_instructions_are_in_a_stub() {
        // mov rsi, [rsp + 16]; mov r8d, eax; mov edi, [rsp + 8]; xor eax, eax; syscall
        let read = [
            &[0x48, 0x8b, 0x74, 0x24, 0x10][..],
            &[0x41, 0x89, 0xc0],
            &[0x8b, 0x7c, 0x24, 0x08],
            &[0x31, 0xc0],
            &INSTRUCTION,
        ];
        let found = sites(&[&[0x90][..], &read.concat()].concat(), 0x1000);
        let [Site { at, front: Some(front), number: Some(0) }] = found[..] else { panic!("{found:?}") };
        assert_eq!((at, front.bytes().len(), front.number()), (0x100f, 14, None));
        let bytes = stub(0x5000, at, Way::Front(front), 1).unwrap();
        use Mnemonic::{Jmp, Lea, Mov, Xor};
        assert_eq!(code(0x5000, &bytes), [(Mov, 0), (Mov, 0), (Mov, 0), (Xor, 0), (Lea, 0x5020)]);
        assert_eq!(code(0x500e, &bytes[14..])[..2], [(Lea, 0x5020), (Jmp, 0x5030)]);
        // A thread in the stub is where it would be without it.
        let words = [32, 40].map(|at| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()));
        let words = [words[0], words[1], 1, 0x1001];
        let found = [0, 5, 8, 12, 14, 21].map(|offset| in_program(&words, offset));
        assert_eq!(found, [0x1001, 0x1006, 0x1009, 0x100d, 0x100f, 0x100f].map(Some));
        let made = patches(at, Way::Front(front), 0x5000, &[]).unwrap();
        assert_eq!((&made[0].old[..], &made[0].new[5..]), (&read.concat()[..14], &read.concat()[5..14]));
    }

    #[test]
    fn what_a_patch_has_replaced_is_found() {
        let number = number(39);
        let site = |way| {
            let hole = if way == Way::Hole(0x1040) { &[0x90; JUMP as usize][..] } else { &[] };
            let patches = patches(0x1005, way, 0x5000, hole).unwrap();
            let stub = stub(0x5000, 0x1005, way, 1).unwrap();
            let mut memory: Vec<(u64, Vec<u8>)> = patches.iter().map(|p| (p.at, p.new.clone())).collect();
            memory.push((0x5000, stub.to_vec()));
            (patches, memory)
        };
        let read = |memory: &[(u64, Vec<u8>)], at: u64, bytes: &mut [u8]| {
            let found =
                memory.iter().find_map(|(from, all)| all.get(at.checked_sub(*from)? as usize..)?.get(..bytes.len()));
            found.is_some_and(|found| {
                bytes.copy_from_slice(found);
                true
            })
        };
        for way in [Way::Front(number), Way::Hole(0x1040)] {
            let (patches, memory) = site(way);
            let patch = patches.last().unwrap();
            let found = replaced(patch.at, |at, bytes| read(&memory, at, bytes));
            assert_eq!(found.as_ref(), Some(&patch.old), "{way:?}");
            // What was not patched, or leads elsewhere, is left alone.
            let plain = [(patch.at, patch.old.clone())];
            assert_eq!(replaced(patch.at, |at, bytes| read(&plain, at, bytes)), None, "{way:?}");
        }
        let elsewhere = [(0x1000, jump(0x1000, 0x5000).unwrap().to_vec()), (0x5000, vec![0x90; STUB])];
        assert_eq!(replaced(0x1000, |at, bytes| read(&elsewhere, at, bytes)), None);
    }

    #[test]
    fn what_says_something_of_its_place_stays() {
        let sites_of = |parts: &[&[u8]]| sites(&parts.concat(), 0x1000).iter().filter(|s| s.front.is_some()).count();
        let long = &[0x48, 0x8b, 0x74, 0x24, 0x10][..];
        assert_eq!(sites_of(&[long, &[0x31, 0xff], &INSTRUCTION]), 1);
        // lea rsi, [rip + 16]; call; je; sub rsp, 256; push: none of them, and nothing across them.
        let relative = &[0x48, 0x8d, 0x35, 16, 0, 0, 0][..];
        for parts in [relative, &[0xe8, 0, 0, 0, 0], &[0x74, 0], &[0x48, 0x81, 0xec, 0, 1, 0, 0], &[0x55]] {
            assert_eq!(sites_of(&[long, parts, &[0x31, 0xff], &INSTRUCTION]), 0, "{parts:x?}");
        }
        // Too many bytes.
        assert_eq!(sites_of(&[long, &[0x41, 0x89, 0xc0].repeat(5), &INSTRUCTION]), 0);
    }

    #[test]
    fn patches_lead_to_the_stub() {
        let made = patches(0x1000, Way::Front(number(39)), 0x5000, &[]).unwrap();
        assert_eq!((made[0].at, &made[0].old[..]), (0xffb, &[0xb8, 39, 0, 0, 0][..]));
        assert_eq!(code(0xffb, &made[0].new), [(Mnemonic::Jmp, 0x5000)]);
        let made = patches(0x1000, Way::Hole(0x1040), 0x5000, &[0x90; 8]).unwrap();
        assert_eq!(code(0x1040, &made[0].new), [(Mnemonic::Jmp, 0x5000)]);
        assert_eq!(code(0x1000, &made[1].new), [(Mnemonic::Jmp, 0x1040)]);
        assert_eq!(patches(0x1000, Way::Front(number(39)), 0x1_8000_0000, &[]), None);
        let long = [0x49, 0xc7, 0xc2, 8, 0, 0, 0, 0x0f, 0x05]; // mov r10, 8; syscall
        let site = sites(&long, 0x1000)[0];
        let made = patches(site.at, Way::Front(site.front.unwrap()), 0x5000, &[]).unwrap();
        assert_eq!((made[0].at, &made[0].old[..], &made[0].new[5..]), (0x1000, &long[..7], &long[5..7]));
    }

    #[test]
    fn a_hole_is_padding_in_reach() {
        let nops = [0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0];
        let gap = 0x1037..0x1040;
        assert_eq!(hole(0x1000, &gap, &nops, |_| false), Some(0x103b));
        assert_eq!(hole(0x1000, &gap, &nops, |at| at == 0x103b), None);
        assert_eq!(hole(0x1100, &gap, &nops, |_| false), None);
        // Code between the functions is none.
        assert_eq!(hole(0x1000, &(0x1037..0x1040), &[0xc3; 9], |_| false), None);
        assert_eq!(hole(0x1000, &(0x1037..0x103b), &[0x90; 4], |_| false), None);
    }
}
