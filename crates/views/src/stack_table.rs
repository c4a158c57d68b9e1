//! `--by stack`: how many events have each distinct stack.

use crate::View;
use crate::profile::{By, Frame, FrameId, Labels, Stacks, Unit};
use crate::stack::{counts, frames};
use events::names::Names;
use events::{Event, stacks};

/// The most stacks that are shown.
const ROWS: usize = 1000;

/// What stands for a stack that was lost.
const LOST: Frame<'_> =
    Frame { function: "", module: "[lost]", file: "", line: 0, inlined: false, guessed: false, kernel: false };

/// The table.
pub struct StackTable {
    stacks: Stacks,
    /// The only field that counts; none for both.
    field: Option<String>,
    ids: Vec<FrameId>,
}

impl StackTable {
    /// Of the stacks in one field, or in both.
    pub fn new(field: Option<&str>) -> StackTable {
        StackTable { stacks: Stacks::new(Unit::Events), field: field.map(str::to_string), ids: Vec::new() }
    }
}

impl View for StackTable {
    fn event(&mut self, ev: &Event<'_>, names: &dyn Names, _: &mut Vec<u8>) {
        let StackTable { stacks, field, ids } = self;
        ids.clear();
        let mut any = false;
        // The kernel's frames are further in than those of the process.
        for stack in stacks::of(ev, names).filter(|s| field.as_deref().is_none_or(|f| f == s.field)) {
            any = true;
            if stack.frames.is_empty() {
                ids.push(stacks.frame(&LOST));
            }
            frames(ev, &stack, names, &mut |p| ids.push(stacks.frame(&p.frame)));
        }
        if any {
            let id = stacks.stack(ids);
            let comm = names.called(ev.tid());
            let labels = stacks.labels(Labels { pid: ev.pid(), tid: ev.tid(), comm: &comm });
            stacks.add(id, labels, 1, ev.time());
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        counts::write(&self.stacks, By::Nothing, ROWS, out);
    }
}
