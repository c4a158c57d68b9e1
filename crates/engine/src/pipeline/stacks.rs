//! The stacks of a session or a trace: `process:stack` events report each once, other events have its id.

use events::Event;
use events::generated::P_STACK;
use events::hash::Table;
use events::names::Stack;
pub use unwind::stack::{ENDINGS, Ended};

/// The most frames that are kept, of all stacks: 256 MiB of them. Stacks that come later are counted, and not known.
const MOST: usize = 32 << 20;

/// The table.
pub struct Stacks {
    stacks: Table<u64, Known>,
    frames: usize,
    /// How many frames are kept.
    most: usize,
    not_held: u64,
}

impl Default for Stacks {
    fn default() -> Stacks {
        Stacks::with_frames(MOST)
    }
}

struct Known {
    kernel: bool,
    ended: u8,
    guessed: u32,
    frames: Box<[u64]>,
}

impl Stacks {
    /// A table of this many frames of all stacks together.
    pub fn with_frames(most: usize) -> Stacks {
        Stacks { stacks: Table::default(), frames: 0, most, not_held: 0 }
    }

    /// Stacks that did not fit: events with their ids have no stack.
    pub fn not_held(&self) -> u64 {
        self.not_held
    }

    /// Learns a stack, where `ev` reports one.
    #[inline]
    pub fn note(&mut self, ev: &Event<'_>) {
        if ev.schema.id != P_STACK.id {
            return;
        }
        let bytes = ev.bytes_of("frames");
        let frames: Box<[u64]> = bytes.as_chunks::<8>().0.iter().map(|b| u64::from_le_bytes(*b)).collect();
        if self.frames + frames.len() > self.most {
            // It may be there already: each limited file of a trace has its own report of a stack.
            self.not_held += u64::from(!self.stacks.contains_key(&ev.value_of("id")));
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

    fn note(stacks: &mut Stacks, id: u64) {
        let layout = Layout::of(&P_STACK);
        let mut bytes = Vec::new();
        encode::fixed(&mut bytes, &P_STACK, &layout, &Fixed { time: 1, cap: 1, ..Fixed::default() }, &[1, id, 0, 1, 2]);
        let frames: Vec<u8> = [5u64, 6].iter().flat_map(|f| f.to_le_bytes()).collect();
        encode::many_tail(&mut bytes, &frames, 8);
        stacks.note(&Event::parse(&bytes).unwrap());
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let mut stacks = Stacks::with_frames(5);
        [1, 2, 3, 2, 4].into_iter().for_each(|id| note(&mut stacks, id));
        let known = |id| stacks.get(id).is_some();
        assert_eq!(([1, 2, 3, 4].map(known), stacks.not_held()), ([true, true, false, false], 2));
    }

    #[test]
    fn a_stack_is_known_by_its_id() {
        let mut stacks = Stacks::default();
        note(&mut stacks, 77);
        assert_eq!(stacks.get(77), Some(Stack { kernel: false, ended: 1, guessed: 2, frames: &[5, 6] }));
        assert_eq!(stacks.get(78), None);
    }
}
