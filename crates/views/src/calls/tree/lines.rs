//! Lines in the order of entries, some of which are not known yet.
//!
//! ```text
//! out ◄─ [thread 1 waits] lines after it ◄─ [thread 2 waits] lines after it
//! ```
//!
//! Each thread waits at one place at most.

use std::collections::VecDeque;

/// Bytes that wait at most behind the first place.
const MOST: usize = 64 << 10;

#[derive(Debug)]
struct Waiting {
    thread: usize,
    /// What comes after its line.
    after: Vec<u8>,
}

/// Lines that wait.
#[derive(Debug, Default)]
pub struct Lines {
    queue: VecDeque<Waiting>,
    /// Buffers that are not in use.
    free: Vec<Vec<u8>>,
}

impl Lines {
    /// An empty buffer.
    pub fn scratch(&mut self) -> Vec<u8> {
        self.free.pop().unwrap_or_default()
    }

    /// A buffer that is no longer used.
    pub fn give_back(&mut self, mut buffer: Vec<u8>) {
        if self.free.len() < 16 {
            buffer.clear();
            self.free.push(buffer);
        }
    }

    /// The next line of a thread, which does not wait, will be known later: its place is here.
    pub fn wait(&mut self, thread: usize, out: &mut Vec<u8>) {
        let after = self.scratch();
        self.queue.push_back(Waiting { thread, after });
        self.limit(out);
    }

    /// Puts lines where the thread waits, which ends that, or at the end.
    pub fn put(&mut self, thread: usize, text: &[u8], out: &mut Vec<u8>) {
        let place = self.queue.iter().rposition(|w| w.thread == thread);
        let after = place.and_then(|i| self.queue.remove(i)).map(|w| w.after);
        let before = place.unwrap_or(self.queue.len()).checked_sub(1);
        let to = match before.and_then(|i| self.queue.get_mut(i)) {
            Some(w) => &mut w.after,
            None => &mut *out,
        };
        to.extend_from_slice(text);
        if let Some(after) = after {
            to.extend_from_slice(&after);
            self.give_back(after);
        }
        self.limit(out);
    }

    /// Lets lines pass by the first place that waits, where there are too many.
    fn limit(&mut self, out: &mut Vec<u8>) {
        if let Some(first) = self.queue.front_mut()
            && first.after.len() > MOST
        {
            out.append(&mut first.after);
        }
    }
}
