//! Formats lines that need nothing but the event, on all CPUs, in order.
//!
//! ```text
//! reader: polls, fills batches ─► worker n mod N: lines of a batch ─► caller: writes batch after batch
//! ```
//!
//! Batches go round the workers, and come back round the workers, so that order needs no sorting. Each queue holds two.

use super::pump::Flow;
use super::source::Source;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Bytes of events in a batch.
const BATCH: usize = 256 << 10;

/// Makes the lines of one event after another.
pub type Lines<'l> = Box<dyn FnMut(&[u8], &mut Vec<u8>) + Send + 'l>;

/// Writes the lines of all events of a source until `write` wants no more. `make` makes one worker's formatter. Returns whether all events were
/// read.
pub fn lines<'l>(source: Source<'_>, make: impl Fn() -> Lines<'l>, mut write: impl FnMut(&[u8]) -> Flow) -> bool {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(16);
    std::thread::scope(|scope| {
        let (mut to, mut from) = (Vec::new(), Vec::new());
        for _ in 0..workers {
            let lines = make();
            let (batches, inbox) = sync_channel(2);
            let (outbox, texts) = sync_channel(2);
            scope.spawn(move || work(lines, &inbox, &outbox));
            to.push(batches);
            from.push(texts);
        }
        let reader = scope.spawn(move || read(source, &to));
        'all: loop {
            for texts in &from {
                let Ok(text) = texts.recv() else { break 'all };
                if write(&text) == Flow::Stop {
                    break 'all;
                }
            }
        }
        drop(from);
        reader.join().unwrap_or(false)
    })
}

/// Fills batches until there are no more events, or nobody wants them; whether there are no more.
fn read(mut source: Source<'_>, to: &[SyncSender<Vec<u8>>]) -> bool {
    for worker in (0..to.len()).cycle() {
        let mut batch = Vec::with_capacity(BATCH + (64 << 10));
        let mut ended = false;
        while !ended && batch.len() < BATCH {
            let polled = source.poll(true, &mut |_, event: &[u8]| {
                batch.extend_from_slice(&(event.len() as u32).to_le_bytes());
                batch.extend_from_slice(event);
            });
            ended = polled.ended;
        }
        if to[worker].send(batch).is_err() {
            return false;
        }
        if ended {
            break;
        }
    }
    true
}

fn work(mut lines: Lines<'_>, inbox: &Receiver<Vec<u8>>, outbox: &SyncSender<Vec<u8>>) {
    for batch in inbox {
        let mut text = Vec::with_capacity(batch.len() * 2);
        let mut rest = &batch[..];
        while let Some((len, tail)) = rest.split_first_chunk::<4>() {
            let (event, next) = tail.split_at((u32::from_le_bytes(*len) as usize).min(tail.len()));
            lines(event, &mut text);
            rest = next;
        }
        if outbox.send(text).is_err() {
            return;
        }
    }
}
