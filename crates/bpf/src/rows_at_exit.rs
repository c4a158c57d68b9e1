//! The rows of a session in which no program runs at the entry of a call: like [`capture_row`]'s, but that everything is read at the end.
//!
//! What a call only reads is there still. What it changes is not: of an in+out argument there is what the call has left there, and
//! the op of entry is [`when::TOO_LATE`].

use crate::capture_row::{self, AT_ENTRY, FLAGS, Limits, N_IN, OP, OPS, ROW, is_changed, is_gone, kind, when};
use events::schema::{Dir, Schema};
use events::types::Type;

/// Offset of [`capture_row::Op::when`] in an op, and of its kind and argument.
const WHEN: usize = 2;
const KIND: usize = 0;
const ARG: usize = 1;

/// The row of a call, as [`capture_row::row`] has it otherwise. [`AT_ENTRY`] is left to calls that replace or end their program, whose
/// stacks are not to be taken afterwards.
pub fn row(schema: &Schema, wanted: bool, limits: Limits) -> [u8; ROW] {
    let mut row = capture_row::row(schema, wanted, limits);
    if !is_gone(schema) {
        row[FLAGS as usize] &= !(AT_ENTRY as u8);
    }
    let of_entry = usize::from(row[N_IN as usize]);
    for op in row[OPS as usize..].chunks_exact_mut(OP as usize).take(of_entry) {
        if schema.args.get(usize::from(op[ARG])).is_some_and(is_changed) {
            too_late(op);
        }
    }
    row
}

/// The op of a switch's argument, as [`capture_row::switch_op`] has it otherwise.
pub fn switch_op(schema: &Schema, arg: u8, ty: &Type, dir: Dir, exit: bool, limits: Limits) -> [u8; OP as usize] {
    let mut op = capture_row::switch_op(schema, arg, ty, dir, exit, limits).bytes();
    if dir == Dir::InOut && !exit {
        too_late(&mut op);
    }
    op
}

/// Marks an op that reads something.
fn too_late(op: &mut [u8]) {
    if ![kind::EMPTY1, kind::EMPTY2, kind::EMPTY4, kind::SWITCH].contains(&op[KIND]) {
        op[WHEN] = when::TOO_LATE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use events::keep::Keep;

    const LIMITS: Limits = Limits { string: 32, text: 0, verbose: false, keep: Keep::All };

    fn of(name: &str) -> (u16, Vec<(u8, u8)>) {
        let row = row(events::registry::by_name(name).expect("a call"), true, LIMITS);
        let flags = u16::from_le_bytes([row[FLAGS as usize], row[FLAGS as usize + 1]]);
        let ops = row[OPS as usize..].chunks_exact(OP as usize).take(row[capture_row::N as usize].into());
        (flags, ops.map(|op| (op[ARG], op[WHEN])).collect())
    }

    #[test]
    fn what_a_call_changes_is_too_late() {
        // ppoll: of entry ufds, tsp, sigmask; of exit ufds, tsp.
        let (flags, ops) = of("ppoll");
        assert_eq!(ops, [(0, when::TOO_LATE), (2, when::TOO_LATE), (3, 0), (0, 0), (2, 0)]);
        assert_eq!(flags & AT_ENTRY, 0);
        // What is only read is there at the end too.
        assert_eq!(of("openat").1, [(1, 0)]);
        assert!(of("sendmmsg").1.iter().all(|(_, w)| *w != when::TOO_LATE));
        for name in ["execve", "rt_sigreturn"] {
            assert_ne!(of(name).0 & AT_ENTRY, 0, "{name}");
        }
    }
}
