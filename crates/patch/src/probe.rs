//! Code of probes, in front of the instruction of a probe: it passes the program's registers to the agent, and restores them.
//!
//! ```text
//!  undo:   lea rsp, [rsp+N]        only where the beginning of the function has lowered it
//!  entry:  lea rsp, [rsp-128]      the program may have data below rsp: it need not be at the beginning of a function
//!          push rax
//!          lea rax, [rip+program]  what is copied (`abi::values`)
//!          call [rip+pointer]      [`Slow::Probe`]: keeps all registers and flags but rax
//!          pop rax
//!          lea rsp, [rsp+128]
//!          jmp to                  the moved instructions
//! ```
//!
//! Flags live through it: no instruction of its own writes them. Each of its instructions stands for that of the program, with a lower stack
//! pointer ([`Step`]): so unwinding from here, or from the agent, leads to the program's function, and a signal may interrupt it anywhere.
//!
//! The agent finds, from rsp upwards: where the code goes on, the program's rax, 128 bytes that are not its own.

use crate::plan::Site;
use abi::message::Slow;
use abi::plan::Step;
use abi::stub::RAISE;

/// The most bytes of the code of a probe.
pub(crate) const MOST: usize = 8 + LEN;
/// How many steps it has.
pub(crate) const STEPS: usize = 6;
/// Bytes from the entry on.
const LEN: usize = 33;
/// Where instructions end, from the entry: the lea, the push, what loads the address of the program, the call, the pop, the second lea.
const LOWERED: usize = 5;
const PUSHED: usize = 6;
const LOADED: usize = 13;
const CALLED: usize = 19;
const POPPED: usize = 20;
const RAISED: usize = 28;

/// The code of a probe in an area.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Code {
    /// Where it begins in the contents of the area.
    at: usize,
    /// Where calls of the function come.
    entry: usize,
}

impl Code {
    /// Appends the code for a site to the contents of the area at an address, and has it go on at `to`. `pointers`: where the area has those to slow
    /// code. What it copies comes later ([`Code::set_program`]).
    pub fn put(content: &mut Vec<u8>, area: u64, pointers: u64, site: &Site, to: u64) -> Code {
        let at = content.len();
        if let Some(undo) = site.undo.filter(|_| site.is_undone()) {
            content.extend(undo.code());
        }
        let entry = content.len();
        let address = area.wrapping_add(entry as u64);
        let distance = |to: u64, end: usize| (to.wrapping_sub(address.wrapping_add(end as u64)) as u32).to_le_bytes();
        content.extend([0x48, 0x8d, 0x64, 0x24, 0x80, 0x50, 0x48, 0x8d, 0x05, 0, 0, 0, 0, 0xff, 0x15]);
        content.extend(distance(pointers.wrapping_add(8 * Slow::Probe as u64), CALLED));
        content.push(0x58);
        content.extend(RAISE);
        content.extend(128_u32.to_le_bytes());
        content.push(0xe9);
        content.extend(distance(to, LEN));
        Code { at, entry }
    }

    /// Where a patch leads, with the area at an address.
    pub fn begins(&self, area: u64) -> u64 {
        area.wrapping_add(self.at as u64)
    }

    /// Where stubs and hooks in front of it lead.
    pub fn entry(&self, area: u64) -> u64 {
        area.wrapping_add(self.entry as u64)
    }

    /// Has it copy by the program at an offset in the area's contents.
    pub fn set_program(&self, content: &mut [u8], program: usize) {
        let distance = (program as u32).wrapping_sub((self.entry + LOADED) as u32);
        content[self.entry + LOADED - 4..][..4].copy_from_slice(&distance.to_le_bytes());
    }

    /// What it stands for: an instruction, as a distance from the area.
    pub fn steps(&self, original: i32) -> [Step; STEPS] {
        let step = |at: usize, flags: u32, original| Step { at: (self.entry + at) as u32 | flags, original };
        [
            step(0, 0, original),
            step(LOWERED, Step::SKIPPED, original),
            step(PUSHED, Step::SKIPPED | Step::PUSHED, original),
            step(POPPED, Step::SKIPPED, original),
            step(RAISED, 0, original),
            step(LEN, 0, 0),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Mnemonic, Register};

    #[test]
    fn instructions_are_where_the_steps_say() {
        let site = Site {
            number: 0,
            start: 0x1000,
            address: 0x1001,
            undo: Some(crate::Undo::Raise(8)),
            old: [0; 5],
            splits: true,
            back: 0x1006,
            code: 0..0,
            behind: false,
        };
        let mut content = vec![0x90; 24];
        let code = Code::put(&mut content, 0x10000, 0x10100, &site, 0x1001);
        assert_eq!((code.begins(0x10000), code.entry(0x10000), content.len()), (0x10018, 0x10020, 24 + MOST));
        code.set_program(&mut content, 0x200);
        let mut decoder = Decoder::with_ip(64, &content[24..], 0x10018, DecoderOptions::NONE);
        let (mut rsp, mut seen) = (0, Vec::new());
        let of = |rsp: i64| if rsp == 8 { 0 } else { (8 - rsp) as u64 };
        while decoder.can_decode() {
            let i = decoder.decode();
            let at = (i.ip() - 0x10000) as u32;
            seen.push((at, of(rsp)));
            match i.mnemonic() {
                Mnemonic::Lea if i.op0_register() == Register::RSP => rsp += i.memory_displacement64() as i64,
                Mnemonic::Lea => assert_eq!(i.memory_displacement64(), 0x10200),
                Mnemonic::Push => rsp -= 8,
                Mnemonic::Pop => rsp += 8,
                Mnemonic::Call => assert_eq!(i.memory_displacement64(), 0x10100 + 8 * Slow::Probe as u64),
                other => assert_eq!((other, i.near_branch_target()), (Mnemonic::Jmp, 0x1001)),
            }
        }
        let steps = code.steps(-0xf000);
        for (at, lowered) in &seen[1..] {
            let step = steps.iter().rev().find(|s| s.at & Step::PLACE <= *at).unwrap();
            assert_eq!((step.lowered(), step.original), (*lowered, -0xf000), "{at:#x}");
        }
        assert_eq!(steps[STEPS - 1].original, 0);
    }
}
