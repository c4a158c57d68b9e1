//! Patches of `syscall` instructions: where a jump goes in front of one, or in its place, and the stub that it leads to.
//!
//! ```text
//!  mov eax, NUMBER   (5 bytes) ─► jmp stub                the number is in the stub; `syscall` stays as it is
//!  syscall           (2 bytes) ─► jmp hole                where the number comes from elsewhere
//!  hole: 5 bytes of padding between two functions ─► jmp stub
//!
//!  stub:  mov eax, NUMBER │ lea r11, [words] │ jmp [code] │ syscall; jmp back │ words: back, raw, code
//! ```
//!
//! No instruction is moved: whatever jumps to the `syscall`, or was in it, finds it or the jump in its place.

use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use std::ops::Range;

/// Bytes of a stub.
pub const STUB: usize = 64;
/// Bytes of a `syscall`.
pub const SYSCALL: u64 = 2;
/// Bytes of `mov eax, imm32`.
pub const NUMBER: u64 = JUMP;
/// Bytes of a jump.
const JUMP: u64 = 5;
/// Offsets in a stub: behind the number, of its own `syscall`, of its words.
const BEHIND_NUMBER: u64 = 5;
const RAW: u64 = 18;
const WORDS: u64 = 32;
const INT3: u8 = 0xcc;

/// How a `syscall` is patched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// At the instruction in front of it, which loads this number.
    Number(u32),
    /// In its place, by way of the hole at this address.
    Hole(u64),
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

/// Whether the instruction in front of the `syscall` loads `number` into eax: the 6 bytes in front of it.
pub fn loads(before: &[u8; 6], number: u32) -> bool {
    // A prefix would make another register of it.
    let is_prefix = (0x40..0x50).contains(&before[0]);
    !is_prefix && before[1] == 0xb8 && before[2..] == number.to_le_bytes()
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
    let (number, raw) = match way {
        Way::Number(number) => (number, syscall),
        Way::Hole(_) => (0, at + RAW),
    };
    let mut bytes = [INT3; STUB];
    bytes[0] = 0xb8;
    bytes[1..5].copy_from_slice(&number.to_le_bytes());
    bytes[5..8].copy_from_slice(&[0x4c, 0x8d, 0x1d]);
    bytes[8..12].copy_from_slice(&(WORDS as u32 - 12).to_le_bytes());
    bytes[12..14].copy_from_slice(&[0xff, 0x25]);
    bytes[14..18].copy_from_slice(&(WORDS as u32 + 16 - 18).to_le_bytes());
    bytes[18..20].copy_from_slice(&[0x0f, 0x05]);
    bytes[20..25].copy_from_slice(&jump(at + RAW + SYSCALL, back)?);
    for (to, word) in bytes[WORDS as usize..].chunks_exact_mut(8).zip([back, raw, code, 0]) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    Some(bytes)
}

/// The patches that lead a `syscall` to its stub, in the order in which they are made.
pub fn patches(syscall: u64, way: Way, stub: u64, hole: &[u8]) -> Option<Vec<Patch>> {
    Some(match way {
        Way::Number(number) => {
            let at = syscall - NUMBER;
            let mut old = vec![0xb8];
            old.extend_from_slice(&number.to_le_bytes());
            vec![Patch { at, old, new: jump(at, stub)?.to_vec() }]
        }
        Way::Hole(at) => {
            let to = jump(at, stub + BEHIND_NUMBER)?.to_vec();
            let short = i8::try_from(at.wrapping_sub(syscall + SYSCALL) as i64).ok()?;
            let first = Patch { at, old: hole.get(..JUMP as usize)?.to_vec(), new: to };
            vec![first, Patch { at: syscall, old: vec![0x0f, 0x05], new: vec![0xeb, short as u8] }]
        }
    })
}

/// A jump of five bytes.
fn jump(at: u64, to: u64) -> Option<[u8; JUMP as usize]> {
    let distance = i32::try_from(to.wrapping_sub(at + JUMP) as i64).ok()?;
    let mut bytes = [0xe9, 0, 0, 0, 0];
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

    #[test]
    fn a_number_is_loaded_by_a_whole_instruction() {
        assert!(loads(&[0x90, 0xb8, 1, 1, 0, 0], 257));
        assert!(!loads(&[0x41, 0xb8, 1, 1, 0, 0], 257));
        assert!(!loads(&[0x90, 0xb8, 1, 1, 0, 0], 1));
        assert!(!loads(&[0x90, 0xb9, 1, 1, 0, 0], 257));
    }

    #[test]
    fn a_stub_goes_back_behind_the_call() {
        let bytes = stub(0x5000, 0x1000, Way::Number(39), 0x10fe_0000_0000).unwrap();
        use Mnemonic::{Jmp, Lea, Mov, Syscall};
        let lines = code(0x5000, &bytes);
        assert_eq!(lines, [(Mov, 0), (Lea, 0x5020), (Jmp, 0x5030), (Syscall, 0), (Jmp, 0x1002)]);
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        assert_eq!([word(32), word(40), word(48)], [0x1002, 0x1000, 0x10fe_0000_0000]);
        let by_hole = stub(0x5000, 0x1000, Way::Hole(0x1040), 1).unwrap();
        assert_eq!(u64::from_le_bytes(by_hole[40..48].try_into().unwrap()), 0x5012);
    }

    #[test]
    fn patches_lead_to_the_stub() {
        let made = patches(0x1000, Way::Number(39), 0x5000, &[]).unwrap();
        assert_eq!((made[0].at, &made[0].old[..]), (0xffb, &[0xb8, 39, 0, 0, 0][..]));
        assert_eq!(code(0xffb, &made[0].new), [(Mnemonic::Jmp, 0x5000)]);
        let made = patches(0x1000, Way::Hole(0x1040), 0x5000, &[0x90; 8]).unwrap();
        assert_eq!(code(0x1040, &made[0].new), [(Mnemonic::Jmp, 0x5005)]);
        assert_eq!(code(0x1000, &made[1].new), [(Mnemonic::Jmp, 0x1040)]);
        assert_eq!(patches(0x1000, Way::Number(39), 0x1_8000_0000, &[]), None);
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
