//! The stacks of a session or a trace: `process:stack` events report each once, other events have its id.

use events::Event;
use events::generated::P_STACK;
use events::names::Stack;
use std::collections::HashMap;
pub use unwind::stack::{ENDINGS, Ended};

/// The most frames that are kept, of all stacks: 256 MiB of them. Stacks that come later are not known.
const MOST: usize = 32 << 20;

/// The table.
#[derive(Default)]
pub struct Stacks {
    stacks: HashMap<u64, Known>,
    frames: usize,
}

struct Known {
    kernel: bool,
    ended: u8,
    guessed: u32,
    frames: Box<[u64]>,
}

impl Stacks {
    /// Learns a stack, where `ev` reports one.
    pub fn note(&mut self, ev: &Event<'_>) {
        if ev.schema.id != P_STACK.id {
            return;
        }
        let bytes = ev.bytes_of("frames");
        let frames: Box<[u64]> = bytes.as_chunks::<8>().0.iter().map(|b| u64::from_le_bytes(*b)).collect();
        if self.frames + frames.len() > MOST {
            return;
        }
        let (ended, guessed) = (ev.value_of("ended") as u8, ev.value_of("guessed") as u32);
        let known = Known { kernel: ev.value_of("kind") != 0, ended, guessed, frames };
        self.frames += known.frames.len();
        if let Some(old) = self.stacks.insert(ev.value_of("id"), known) {
            self.frames -= old.frames.len();
        }
    }

    /// The stack with this id.
    pub fn get(&self, id: u64) -> Option<Stack<'_>> {
        let Known { kernel, ended, guessed, frames } = self.stacks.get(&id)?;
        Some(Stack { kernel: *kernel, ended: *ended, guessed: *guessed, frames })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use events::encode::{self, Fixed};
    use events::layout::Layout;

    #[test]
    fn a_stack_is_known_by_its_id() {
        let layout = Layout::of(&P_STACK);
        let mut bytes = Vec::new();
        encode::fixed(&mut bytes, &P_STACK, &layout, &Fixed { time: 1, cap: 1, ..Fixed::default() }, &[1, 77, 0, 1, 2]);
        let frames: Vec<u8> = [5u64, 6].iter().flat_map(|f| f.to_le_bytes()).collect();
        encode::many_tail(&mut bytes, &frames, 8);
        let mut stacks = Stacks::default();
        stacks.note(&Event::parse(&bytes).unwrap());
        assert_eq!(stacks.get(77), Some(Stack { kernel: false, ended: 1, guessed: 2, frames: &[5, 6] }));
        assert_eq!(stacks.get(78), None);
    }
}
