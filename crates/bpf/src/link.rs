//! From items to a program: dead code is removed, each instruction gets its slot, jumps and calls get their distances.
//!
//! Not here: the rules of the result; `check` applies them to what comes out.
//!
//! ```text
//! items ──live: from item 0 along flow, jumps, calls──► live items ──trim: jumps to the next──► slots ──► insns
//! ```
//!
//! Invariant: an instruction is kept if and only if some path from the entry (or from a function that a kept instruction
//! names) reaches it, but for jumps to the instruction that follows; the order of those kept does not change.

use std::collections::BTreeMap;
use std::convert::Infallible;

use crate::check::{self, Rejected};
use crate::insn::{Flow, Insn, JA, JMP};
use crate::program::{Label, Program};

/// Why there is no program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AsmError<E = Infallible> {
    /// A label was bound a second time.
    BoundTwice(Label),
    /// A label that live code needs was never bound, or not here.
    Unbound(Label),
    /// A label is bound after the last instruction, and live code goes there.
    BoundAtEnd(Label),
    /// The distance from slot `from` to slot `to` does not fit in 16 bits.
    TooFar {
        /// Slot of the jump.
        from: usize,
        /// Slot of its target.
        to: usize,
    },
    /// `Assembler::raw` takes no jumps, calls of local functions or two-slot instructions.
    Raw(Insn),
    /// The generator found no code.
    Generator(E),
    /// The finished instructions break a rule.
    Rejected(Rejected),
}

impl<E: std::fmt::Display> std::fmt::Display for AsmError<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AsmError::BoundTwice(l) => write!(f, "label {} bound twice", l.0),
            AsmError::Unbound(l) => write!(f, "label {} never bound", l.0),
            AsmError::BoundAtEnd(l) => write!(f, "label {} is behind the last instruction", l.0),
            AsmError::TooFar { from, to } => write!(f, "jump from {from} to {to} is out of range"),
            AsmError::Raw(i) => write!(f, "opcode 0x{:02x} cannot be emitted raw", i.opcode),
            AsmError::Generator(e) => e.fmt(f),
            AsmError::Rejected(r) => r.fmt(f),
        }
    }
}
impl<E: std::error::Error> std::error::Error for AsmError<E> {}

/// An instruction before it has a slot.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub insn: Insn,
    /// `imm` of the second slot, of those that have one.
    pub high: Option<i32>,
    /// Where it jumps, or which function it names.
    pub to: Option<Label>,
    pub note: Option<String>,
}

/// Items, and by label the item that it is bound to.
struct Code<'a> {
    items: &'a [Item],
    labels: &'a [Option<usize>],
}

pub(crate) fn link<E>(items: &[Item], labels: &[Option<usize>]) -> Result<Program, AsmError<E>> {
    let code = Code { items, labels };
    let mut keep = live(&code)?;
    trim(&code, &mut keep)?;
    let slots = slots(items, &keep);
    let mut program = Program::default();
    for (at, item) in items.iter().enumerate().filter(|(at, _)| keep[*at]) {
        let to = item.to.map(|label| target(&code, label)).transpose()?.map(|to| slots[to]);
        place(&mut program.insns, &mut program.comments, item, slots[at], to)?;
    }
    check::check(&program.insns).map_err(AsmError::Rejected)?;
    program.slots = labels.iter().map(|at| at.map(|at| slots[at]).filter(|s| *s < program.insns.len())).collect();
    Ok(program)
}

/// The item that a label is bound to.
fn target<E>(code: &Code<'_>, label: Label) -> Result<usize, AsmError<E>> {
    let at = code.labels.get(label.0).copied().flatten().ok_or(AsmError::Unbound(label))?;
    if at < code.items.len() { Ok(at) } else { Err(AsmError::BoundAtEnd(label)) }
}

/// By item: is it reached?
fn live<E>(code: &Code<'_>) -> Result<Vec<bool>, AsmError<E>> {
    let mut live = vec![false; code.items.len()];
    let mut todo = vec![0];
    while let Some(at) = todo.pop() {
        let Some(seen @ false) = live.get_mut(at) else { continue };
        *seen = true;
        let item = &code.items[at];
        if let Some(label) = item.to {
            todo.push(target(code, label)?);
        }
        if matches!(item.insn.flow(), Flow::Next | Flow::Branch) {
            todo.push(at + 1);
        }
    }
    Ok(live)
}

/// Drops unconditional jumps to the next live item, from the back, so that chains of them go at once.
fn trim<E>(code: &Code<'_>, keep: &mut [bool]) -> Result<(), AsmError<E>> {
    let mut next = code.items.len();
    for at in (0..code.items.len()).rev() {
        if !keep[at] {
            continue;
        }
        if let (JA_ALWAYS, Some(label)) = (code.items[at].insn.opcode, code.items[at].to) {
            let to = target(code, label)?;
            if to > at && to <= next {
                keep[at] = false;
                continue;
            }
        }
        next = at;
    }
    Ok(())
}
const JA_ALWAYS: u8 = JMP | JA;

/// By item, and one past the last: its slot, or that of the next item that has one.
fn slots(items: &[Item], keep: &[bool]) -> Vec<usize> {
    let mut slots = vec![0];
    let mut slot = 0;
    for (item, keep) in items.iter().zip(keep) {
        if *keep {
            slot += if item.high.is_some() { 2 } else { 1 };
        }
        slots.push(slot);
    }
    slots
}

fn place<E>(
    insns: &mut Vec<Insn>,
    comments: &mut BTreeMap<usize, String>,
    item: &Item,
    slot: usize,
    to: Option<usize>,
) -> Result<(), AsmError<E>> {
    let mut insn = item.insn;
    if let Some(to) = to {
        let (from, distance) = (slot, to as i64 - (slot as i64 + 1));
        let too_far = |_| AsmError::TooFar { from, to };
        if insn.names_function() {
            insn.imm = i32::try_from(distance).map_err(too_far)?;
        } else {
            insn.off = i16::try_from(distance).map_err(too_far)?;
        }
    }
    insns.push(insn);
    insns.extend(item.high.map(|imm| Insn { imm, ..Insn::default() }));
    if let Some(note) = &item.note {
        comments.insert(slot, note.clone());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Rule;
    use crate::{Alu, Assembler, Cond, Reg::*};

    #[test]
    fn forward_and_backward() {
        let mut a = Assembler::new();
        let end = a.new_label();
        a.mov(R0, 3);
        let again = a.here();
        a.jump_if(Cond::Eq, R0, 0, end);
        a.imm64(R1, 1);
        a.alu(Alu::Sub, R0, R1);
        a.jump(again);
        a.bind(end);
        a.exit();
        let p = a.finish().unwrap();
        assert_eq!((p.insns[1].off, p.insns[5].off), (4, -5));
        assert_eq!((p.slot(again), p.slot(end)), (Some(1), Some(6)));
    }

    #[test]
    fn dead_code_goes_and_jumps_follow() {
        let mut a = Assembler::new();
        let (dead, end) = (a.new_label(), a.new_label());
        a.mov(R0, 0);
        a.jump_if(Cond::Ne, R0, 0, end);
        a.exit();
        a.note("never");
        a.bind(dead);
        a.mov(R0, 1);
        a.jump(dead);
        a.bind(end);
        a.note("here");
        a.exit();
        let p = a.finish().unwrap();
        assert_eq!(p.insns.len(), 4);
        assert_eq!(p.insns[1].off, 1);
        assert_eq!(p.comments, BTreeMap::from([(3, "here".to_owned())]));
    }

    #[test]
    fn jumps_to_the_next_go() {
        let mut a = Assembler::new();
        let (one, two) = (a.new_label(), a.new_label());
        a.mov(R0, 0);
        a.jump(two);
        a.jump(one);
        a.bind(one);
        a.mov(R0, 1);
        a.bind(two);
        a.exit();
        assert_eq!(a.finish().unwrap().insns.len(), 2);
    }

    #[test]
    fn unused_functions_go() {
        let mut a = Assembler::new();
        let (used, unused) = (a.new_label(), a.new_label());
        a.call_local(used);
        a.exit();
        a.bind(unused);
        a.mov(R0, 1);
        a.exit();
        a.bind(used);
        a.mov(R0, 2);
        a.exit();
        let p = a.finish().unwrap();
        assert_eq!((p.insns.len(), p.insns[0].imm), (4, 1));
        assert_eq!(p.functions(), [0, 2]);
    }

    fn failing(f: impl FnOnce(&mut Assembler)) -> AsmError {
        let mut a = Assembler::new();
        f(&mut a);
        a.finish().unwrap_err()
    }

    #[test]
    fn mistakes_are_reported() {
        let twice = failing(|a| {
            let l = a.here();
            a.bind(l);
            a.exit();
        });
        assert_eq!(twice, AsmError::BoundTwice(Label(0)));
        let unbound = failing(|a| {
            let l = a.new_label();
            a.jump(l);
        });
        assert_eq!(unbound, AsmError::Unbound(Label(0)));
        let end = failing(|a| {
            let l = a.new_label();
            a.jump(l);
            a.bind(l);
        });
        assert_eq!(end, AsmError::BoundAtEnd(Label(0)));
        assert!(matches!(failing(|a| a.raw(Insn { opcode: 5, ..Insn::default() })), AsmError::Raw(_)));
        let falls = failing(|a| a.mov(R0, 0));
        assert_eq!(falls, AsmError::Rejected(Rejected { pc: 0, rule: Rule::FallsOff }));
        assert_eq!(failing(|_| ()), AsmError::Rejected(Rejected { pc: 0, rule: Rule::Empty }));
    }

    #[test]
    fn too_far_is_an_error() {
        for (n, far) in [(32767, false), (32768, true)] {
            let mut a = Assembler::new();
            let end = a.new_label();
            a.mov(R0, 0);
            a.jump_if(Cond::Eq, R0, 0, end);
            (0..n).for_each(|_| a.mov(R0, 1));
            a.bind(end);
            a.exit();
            assert_eq!(a.finish().err(), far.then_some(AsmError::TooFar { from: 1, to: n + 2 }));
        }
    }
}
