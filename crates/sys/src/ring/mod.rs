//! The shared ring between the ptracer and the front end: one writer, one reader, events as whole frames.
//!
//! ```text
//!  0           4096            12288                                            12288 + size
//!  ┌───────────┬───────────────┬───────────────────────────────────────────────┐
//!  │ positions │ control page  │ frame │ frame │ … │ skip │                     │   frame = u32 length, u32 0, bytes, pad to 8
//!  └───────────┴───────────────┴───────────────────────────────────────────────┘
//! ```
//!
//! Positions count bytes from the start and never wrap; a frame never crosses the end (a `SKIP` frame fills the rest). Full: the
//! writer gets an error, and waits or counts. The memory is a memfd that both map; either side may die at any moment
//! and the other only sees that nothing more comes.
//!
//! [`new`] makes both sides; the front end forks the ptracer and hands it the [`Writer`]. The owner of one side cannot do what the other
//! does. Neither side trusts the other. Each keeps its own position where only it can write, and checks the other's, and every
//! length, by [`crate::span`]. Invalid values end the use of the ring: the reader gives it up, the writer treats it as having no
//! reader.

pub mod control;
mod memory;
mod reader;
mod writer;

pub use reader::Reader;
pub use writer::{NoRoom, Writer};

use std::io;
use std::sync::Arc;

/// Both sides of a new ring of `size` data bytes, a power of two of at least 4096.
pub fn new(size: usize) -> io::Result<(Reader, Writer)> {
    let memory = Arc::new(memory::Memory::new(size)?);
    Ok((Reader::new(Arc::clone(&memory)), Writer::new(memory)))
}

#[cfg(test)]
mod tests {
    use super::memory::{Memory, SKIP};
    use super::*;
    use proptest::prelude::*;
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    /// A ring, and the memory that an enemy of one side writes to.
    fn ring() -> (Reader, Writer, Arc<Memory>) {
        let memory = Arc::new(Memory::new(4096).unwrap());
        (Reader::new(Arc::clone(&memory)), Writer::new(Arc::clone(&memory)), memory)
    }

    #[test]
    fn frames_come_out_in_order_across_many_wraps() {
        let (mut reader, mut writer) = new(4096).unwrap();
        let (mut next_in, mut next_out, mut scratch) = (0u32, 0u32, Vec::new());
        while next_out < 5000 {
            let len = 4 + (next_in as usize * 37) % 900;
            let mut frame = vec![next_in as u8; len];
            frame[..4].copy_from_slice(&next_in.to_le_bytes());
            if next_in < 5000 && writer.push(&frame).is_ok() {
                next_in += 1;
                continue;
            }
            reader.drain(&mut scratch, |f| {
                assert_eq!(f[..4], next_out.to_le_bytes());
                assert_eq!(f.len(), 4 + (next_out as usize * 37) % 900);
                next_out += 1;
            });
        }
        assert_eq!(reader.used(), 0);
    }

    /// Miri tries orders of both sides, and finds what they do not order.
    #[test]
    fn two_threads_meet_at_every_place_of_the_ring() {
        let (mut reader, mut writer) = new(4096).unwrap();
        let frames = if cfg!(miri) { 40 } else { 20_000 };
        let frame = |n: usize| vec![n as u8; 1 + n * 137 % 900];
        let writes = move || {
            for n in 0..frames {
                while writer.push(&frame(n)) == Err(NoRoom::Yet) {
                    writer.wait_for_room(Duration::from_millis(50));
                }
            }
            writer.finish();
        };
        std::thread::scope(|s| {
            s.spawn(writes);
            let (mut next, mut scratch, mut over) = (0, Vec::new(), false);
            while !over {
                reader.wait_for_frames(Duration::from_millis(50));
                over = reader.is_finished();
                reader.drain(&mut scratch, |f| {
                    assert_eq!(f, frame(next));
                    next += 1;
                });
            }
            assert_eq!(next, frames);
        });
    }

    #[test]
    fn a_frame_that_can_never_fit_is_refused() {
        let (_reader, mut writer) = new(4096).unwrap();
        let most = vec![0; writer.max_frame()];
        assert_eq!(writer.push(&vec![0; 4096]), Err(NoRoom::Ever));
        assert_eq!(writer.push(&most), Ok(()));
        assert_eq!(writer.push(&most), Ok(()));
        assert_eq!(writer.push(&[]), Ok(()));
        assert_eq!(writer.push(&most), Err(NoRoom::Yet));
    }

    #[test]
    #[should_panic = "an offset of the ring"]
    fn no_word_is_beyond_the_end() {
        ring().2.word(4096);
    }

    fn fill(memory: &Memory, words: &[u32]) {
        for (i, word) in words.iter().take(memory.size() as usize / 4).enumerate() {
            // SAFETY: a part of the ring's data, which nobody else uses.
            unsafe { memory.word(i / 2 * 8).add(i % 2).write(*word) };
        }
    }

    proptest! {
        #[test]
        fn a_hostile_writer_is_not_followed(
            tail in prop_oneof![any::<u64>(), 0u64..9000, (0u64..1125).prop_map(|n| n * 8)],
            head in prop_oneof![any::<u64>(), 0u64..9000],
            words in proptest::collection::vec(prop_oneof![Just(SKIP), 0u32..64, any::<u32>()], 1024),
        ) {
            let (mut ring, _writer, memory) = ring();
            fill(&memory, &words);
            memory.positions().tail.store(tail, Ordering::Relaxed);
            // The reader's own position is not the writer's to move.
            memory.positions().head.store(head, Ordering::Relaxed);
            let (mut scratch, mut seen) = (Vec::new(), 0);
            let n = ring.drain(&mut scratch, |f| seen += f.len() + 8);
            prop_assert!(n <= 512 && seen <= 4096);
            let read = ring.read;
            prop_assert!(read <= 4096 && (read == tail || ring.is_given_up()), "{read} of {tail}");
            prop_assert!(!ring.is_given_up() || ring.drain(&mut scratch, |_| panic!("read on")) == 0);
            prop_assert!(ring.used() <= 4096);
        }

        #[test]
        fn a_hostile_reader_is_not_followed(head in prop_oneof![any::<u64>(), 0u64..9000], n in 0usize..9) {
            let (_reader, mut ring, memory) = ring();
            for _ in 0..n {
                ring.push(&[7; 500]).unwrap_or_else(|e| assert_eq!(e, NoRoom::Yet));
            }
            let tail = memory.positions().tail.load(Ordering::Relaxed);
            memory.positions().head.store(head, Ordering::Relaxed);
            let possible = head <= tail && head % 8 == 0;
            prop_assert_eq!(matches!(ring.push(&[1]), Err(NoRoom::Reader(_))), !possible);
            prop_assert!(memory.used() <= 4096);
        }
    }
}
