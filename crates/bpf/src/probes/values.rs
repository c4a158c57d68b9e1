//! The code that reads the values of a clause, and that of expressions over them.
//!
//! Values lie on the stack, below the slots of the frame: a word each, then one to read memory into; intermediate numbers are at its end.

use super::clause::{From, Number};
use super::fields::{Plan, Value, context, value};
use crate::asm::Assembler;
use crate::expr::{Generator, Place};
use crate::filter;
use crate::frame::{Emitter, slot};
use crate::helper::Helper;
use crate::insn::{Reg::*, Size};
use crate::script::{Fault, Places, Unfit};
use lang::ir::Leaf;
use lang::script::ir::{Int, Kind};

/// The fewest words for intermediate numbers.
pub(super) const FEW_TEMPS: i16 = 8;
/// The lowest byte of the stack.
pub(super) const STACK_END: i16 = -512;

/// Where this many leaves are, a word to read memory into, and how many words are left for intermediate numbers, where there is nothing else.
pub(super) fn beside(leaves: usize) -> Option<(i16, i16, usize)> {
    let first = slot::LAST.checked_sub(i16::try_from(8 * leaves).ok()?)?;
    let scratch = first.checked_sub(8)?;
    let left = (scratch - STACK_END) / 8;
    (left >= FEW_TEMPS).then_some((first, scratch, left as usize))
}

/// r1 = a number of a script.
pub(super) fn number(e: &mut Emitter<'_>, plan: &Plan<'_>, number: &Number) {
    let mut wanted = vec![false; number.leaves.len()];
    mark(&number.number, &mut wanted);
    over(e, plan, &number.leaves, |i| wanted[i], |g| g.int(&number.number));
    e.mov(R1, R0);
}

/// Code over values of a clause, of which those that are `wanted` are read before. What goes wrong is not counted: what cannot be read is zero.
pub(super) fn over(
    e: &mut Emitter<'_>,
    plan: &Plan<'_>,
    leaves: &[From],
    wanted: impl Fn(usize) -> bool,
    make: impl FnOnce(&mut Generator<'_, filter::Unfit, Places<'_, filter::Unfit>>) -> Result<(), Unfit>,
) {
    let Some((first, scratch, left)) = beside(leaves.len()) else { return e.fail(filter::Unfit::Temps) };
    let at = |i: usize| first + 8 * i as i16;
    for (i, from) in leaves.iter().enumerate().filter(|(i, _)| wanted(*i)) {
        read(e, plan, *from, at(i));
    }
    let places: Vec<_> = (0..leaves.len()).map(|i| Some((Place::Memory(R10, at(i), Size::D), None))).collect();
    let count = |_: &mut Assembler<filter::Unfit>, _: Fault| {};
    let source = Places { leaves: &places, vars: (R10, scratch), scratch: (R10, scratch), count: &count, zero: None };
    if make(&mut Generator { a: e, source: &source, temps: (R10, STACK_END, left), depth: 0 }).is_err() {
        e.fail(filter::Unfit::Temps);
    }
}

/// Marks the leaves that a number names.
fn mark(number: &Int, wanted: &mut [bool]) {
    number.leaves(&mut |leaf| {
        if let Leaf::Value(value) = leaf {
            match &value.kind {
                Kind::Leaf(i) => wanted.get_mut(*i).into_iter().for_each(|w| *w = true),
                Kind::Load(address, _) => mark(address, wanted),
                _ => {}
            }
        }
    });
}

/// A word of the stack = a value.
pub(super) fn read(e: &mut Emitter<'_>, plan: &Plan<'_>, from: From, at: i16) {
    match from {
        From::Pid | From::Tid => e.current_id(from == From::Pid),
        From::Task | From::Jiffies | From::Numa | From::Cgroup | From::Boot | From::Tai => {
            e.call(match from {
                From::Task => Helper::GetCurrentTask,
                From::Jiffies => Helper::Jiffies64,
                From::Numa => Helper::GetNumaNodeId,
                From::Cgroup => Helper::GetCurrentCgroupId,
                From::Boot => Helper::KtimeGetBootNs,
                _ => Helper::KtimeGetTaiNs,
            });
            e.mov(R1, R0);
        }
        From::Context => {
            // Read from where it lies, it is a number, with which one may calculate.
            context(e);
            e.store(Size::D, R10, at, R2);
            e.slot_address(R1, at);
            e.mov(R2, 8);
            e.mov(R3, R1);
            return e.call(Helper::ProbeReadKernel);
        }
        From::Uid => value(e, &Value::Uid),
        From::Gid => value(e, &Value::Gid),
        From::Cpu => value(e, &Value::Cpu),
        From::Nsecs => {
            e.call(Helper::KtimeGetNs);
            e.mov(R1, R0);
        }
        From::Field(i) => match plan.fields.get(i) {
            Some(field) => value(e, &field.value),
            None => e.mov(R1, 0),
        },
        From::Comm | From::Memory(_) | From::Nothing => return,
    }
    e.store(Size::D, R10, at, R1);
}
