//! The rules that a program must obey before it is worth showing to a kernel:
//!
//! 1. it has between 1 and 1,000,000 slots, and every register is at most R10;
//! 2. every 64-bit immediate has its second slot, and nothing goes into the middle of one;
//! 3. every jump, and every name of a function, stays inside the program; no jump leaves its function;
//! 4. control never runs off the end of a function;
//! 5. from every instruction an exit can be reached;
//! 6. R10 is not written.
//!
//! Not here: what the verifier knows about values, types and bounds. The kernel's own rules are in
//! `kernel/bpf/verifier.c` (`check_subprogs`, `check_cfg`), 6.18.
//!
//! Invariant: a generator's mistake is found here with its slot, instead of by a log of the verifier.

use std::collections::BTreeSet;

use crate::insn::*;

/// A rule that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// There are no instructions.
    Empty,
    /// There are more than [`MAX_INSNS`].
    TooLong,
    /// The bytes end inside a slot.
    HalfSlot,
    /// A register above R10.
    Register,
    /// R10 is read-only.
    FrameWritten,
    /// A 64-bit immediate lacks its second slot, or that is not all zero but for `imm`.
    SecondSlot,
    /// The target is outside the program.
    Outside,
    /// The target is the second slot of a 64-bit immediate.
    Middle,
    /// A jump leads into another function.
    OtherFunction,
    /// Control runs off the end of a function.
    FallsOff,
    /// No path from here ends in exit.
    NeverExits,
}

/// A rule and the slot that broke it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The slot.
    pub pc: usize,
    /// The rule.
    pub rule: Rule,
}

impl std::fmt::Display for Rejected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match self.rule {
            Rule::Empty => "no instructions",
            Rule::TooLong => "more than 1,000,000 instructions",
            Rule::HalfSlot => "the bytes end inside an instruction",
            Rule::Register => "no such register",
            Rule::FrameWritten => "r10 is read-only",
            Rule::SecondSlot => "bad second half of a 64-bit immediate",
            Rule::Outside => "the target is outside the program",
            Rule::Middle => "the target is the middle of a 64-bit immediate",
            Rule::OtherFunction => "the jump leaves its function",
            Rule::FallsOff => "control runs off the end of the function",
            Rule::NeverExits => "no path from here ends in exit",
        };
        write!(f, "instruction {}: {what}", self.pc)
    }
}
impl std::error::Error for Rejected {}

/// Checks every rule; the first that is broken is the answer.
pub fn check(insns: &[Insn]) -> Result<(), Rejected> {
    if insns.is_empty() {
        return Err(Rejected { pc: 0, rule: Rule::Empty });
    }
    if insns.len() > MAX_INSNS {
        return Err(Rejected { pc: MAX_INSNS, rule: Rule::TooLong });
    }
    let second = second_slots(insns)?;
    for (pc, insn) in insns.iter().enumerate().filter(|(pc, _)| !second[*pc]) {
        registers(*insn).map_err(|rule| Rejected { pc, rule })?;
    }
    let ends = function_ends(insns, &second)?;
    let code = Code { insns, second, ends };
    for pc in code.starts() {
        code.edges(pc).map_err(|rule| Rejected { pc, rule })?;
    }
    code.exits()
}

/// The slots at which functions start, in order, the first being 0.
pub fn functions(insns: &[Insn]) -> Vec<usize> {
    let named = insns.iter().enumerate().filter(|(_, i)| i.names_function());
    let starts = named.filter_map(|(pc, i)| usize::try_from(named_function(pc, *i)).ok());
    BTreeSet::from_iter(starts.chain([0])).into_iter().collect()
}

/// The slot that a call or a function's address means (`add_subprog(env, i + insn->imm + 1)` for both).
pub(crate) fn named_function(pc: usize, insn: Insn) -> i64 {
    pc as i64 + 1 + i64::from(insn.imm)
}

/// By slot: is it the second of a 64-bit immediate?
fn second_slots(insns: &[Insn]) -> Result<Vec<bool>, Rejected> {
    let mut second = vec![false; insns.len()];
    let mut pc = 0;
    while pc < insns.len() {
        if insns[pc].is_wide() {
            match insns.get(pc + 1) {
                Some(Insn { opcode: 0, dst: 0, src: 0, off: 0, .. }) => second[pc + 1] = true,
                _ => return Err(Rejected { pc, rule: Rule::SecondSlot }),
            }
            pc += 1;
        }
        pc += 1;
    }
    Ok(second)
}

fn registers(insn: Insn) -> Result<(), Rule> {
    let frame = Reg::R10 as u8;
    if insn.dst > frame || insn.src > frame {
        return Err(Rule::Register);
    }
    let writes = matches!(insn.class(), LD | LDX | ALU | ALU64);
    if writes && insn.dst == frame { Err(Rule::FrameWritten) } else { Ok(()) }
}

/// By slot: the end of its function.
fn function_ends(insns: &[Insn], second: &[bool]) -> Result<Vec<usize>, Rejected> {
    for (pc, insn) in insns.iter().enumerate().filter(|(_, i)| i.names_function()) {
        target(named_function(pc, *insn), second).map_err(|rule| Rejected { pc, rule })?;
    }
    let starts = functions(insns);
    let next = starts.iter().copied().skip(1).chain([insns.len()]);
    Ok(starts.iter().zip(next).flat_map(|(from, to)| std::iter::repeat_n(to, to - from)).collect())
}

fn target(to: i64, second: &[bool]) -> Result<usize, Rule> {
    let to = usize::try_from(to).map_err(|_| Rule::Outside)?;
    match second.get(to) {
        None => Err(Rule::Outside),
        Some(true) => Err(Rule::Middle),
        Some(false) => Ok(to),
    }
}

/// Instructions with what the rules on control need to know of each slot.
struct Code<'a> {
    insns: &'a [Insn],
    second: Vec<bool>,
    ends: Vec<usize>,
}

impl Code<'_> {
    fn starts(&self) -> impl DoubleEndedIterator<Item = usize> {
        (0..self.insns.len()).filter(|pc| !self.second[*pc])
    }

    /// The slots that may follow: (the next one, the target).
    fn edges(&self, pc: usize) -> Result<(Option<usize>, Option<usize>), Rule> {
        let insn = self.insns[pc];
        let next = || self.next(pc);
        let jump = || self.jump(pc);
        match insn.flow() {
            Flow::Next => Ok((Some(next()?), None)),
            Flow::Goto => Ok((None, Some(jump()?))),
            Flow::Branch => Ok((Some(next()?), Some(jump()?))),
            Flow::Exit => Ok((None, None)),
        }
    }

    fn next(&self, pc: usize) -> Result<usize, Rule> {
        let next = pc + if self.insns[pc].is_wide() { 2 } else { 1 };
        if next < self.ends[pc] { Ok(next) } else { Err(Rule::FallsOff) }
    }

    fn jump(&self, pc: usize) -> Result<usize, Rule> {
        let to = target(pc as i64 + 1 + self.insns[pc].distance(), &self.second)?;
        if self.ends[to] == self.ends[pc] { Ok(to) } else { Err(Rule::OtherFunction) }
    }

    /// Rule 5: marks what leads to an exit until nothing new is found. Backwards, so that one pass does most of it.
    fn exits(&self) -> Result<(), Rejected> {
        let mut good = vec![false; self.insns.len()];
        let leads = |pc: usize, good: &[bool]| match self.edges(pc) {
            Ok((None, None)) => true,
            Ok((next, jump)) => [next, jump].into_iter().flatten().any(|to| good[to]),
            Err(_) => false,
        };
        loop {
            let mut more = false;
            for pc in self.starts().rev() {
                if !good[pc] && leads(pc, &good) {
                    good[pc] = true;
                    more = true;
                }
            }
            if !more {
                break;
            }
        }
        match self.starts().find(|pc| !good[*pc]) {
            Some(pc) => Err(Rejected { pc, rule: Rule::NeverExits }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insn(opcode: u8, dst: u8, off: i16) -> Insn {
        Insn { opcode, dst, off, ..Insn::default() }
    }
    fn broken(insns: &[Insn]) -> Option<(usize, Rule)> {
        check(insns).err().map(|r| (r.pc, r.rule))
    }
    const MOV0: Insn = Insn { opcode: 0xb7, dst: 0, src: 0, off: 0, imm: 0 };
    const DONE: Insn = Insn { opcode: 0x95, dst: 0, src: 0, off: 0, imm: 0 };

    #[test]
    fn each_rule() {
        assert_eq!(broken(&[MOV0, DONE]), None);
        assert_eq!(broken(&[]), Some((0, Rule::Empty)));
        assert_eq!(broken(&[insn(0xb7, 11, 0), DONE]), Some((0, Rule::Register)));
        assert_eq!(broken(&[insn(0xb7, 10, 0), DONE]), Some((0, Rule::FrameWritten)));
        assert_eq!(broken(&[insn(0x18, 0, 0)]), Some((0, Rule::SecondSlot)));
        assert_eq!(broken(&[insn(0x18, 0, 0), DONE]), Some((0, Rule::SecondSlot)));
        assert_eq!(broken(&[insn(0x05, 0, 1), DONE]), Some((0, Rule::Outside)));
        assert_eq!(broken(&[insn(0x05, 0, -2), DONE]), Some((0, Rule::Outside)));
        assert_eq!(broken(&[insn(0x05, 0, 1), insn(0x18, 0, 0), Insn::default(), DONE]), Some((0, Rule::Middle)));
        assert_eq!(broken(&[MOV0]), Some((0, Rule::FallsOff)));
        assert_eq!(broken(&[insn(0x05, 0, -1)]), Some((0, Rule::NeverExits)));
        assert_eq!(broken(&[insn(0x15, 0, 1), DONE, insn(0x05, 0, -1)]), Some((2, Rule::NeverExits)));
    }

    #[test]
    fn functions_keep_apart() {
        let call = |imm| Insn { opcode: 0x85, src: 1, imm, ..Insn::default() };
        assert_eq!(broken(&[call(1), DONE, MOV0, DONE]), None);
        assert_eq!(functions(&[call(1), DONE, MOV0, DONE]), [0, 2]);
        assert_eq!(broken(&[call(1), MOV0, MOV0, DONE]), Some((1, Rule::FallsOff)));
        assert_eq!(broken(&[call(1), insn(0x05, 0, 0), MOV0, DONE]), Some((1, Rule::OtherFunction)));
        assert_eq!(broken(&[call(9), DONE]), Some((0, Rule::Outside)));
    }

    #[test]
    fn a_loop_with_a_way_out_is_fine() {
        assert_eq!(broken(&[MOV0, insn(0x15, 0, -2), DONE]), None);
    }
}
