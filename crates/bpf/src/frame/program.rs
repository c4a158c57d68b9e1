//! The beginning and the end of every program.

use super::{Emitter, Generated, Maps, Session, slot};
use crate::asm::Label;
use crate::btf_offsets::BtfOffsets;
use crate::insn::Reg::{R0, R1};

/// Emits a program around `body`, which jumps to the label to end without an event.
pub(crate) fn program<'s>(
    maps: &'s Maps,
    offsets: &'s BtfOffsets,
    session: &'s Session,
    body: impl FnOnce(&mut Emitter<'s>, Label),
) -> Generated {
    let mut e = Emitter::new(maps, offsets, session);
    let out = e.ends_at;
    e.unclaimed();
    if session.captures.is_some() || maps.stacks.is_some() {
        e.store_slot(slot::CONTEXT, R1);
    }
    body(&mut e, out);
    e.bind(out);
    if e.has_state {
        e.leave_slot();
    }
    let untraced = e.untraced;
    e.bind(untraced);
    e.release();
    e.mov(R0, 0);
    e.exit();
    e.finish()
}
