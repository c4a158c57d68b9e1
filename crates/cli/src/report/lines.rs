//! Lines of events that need nothing but the event: made by all processors, written in order.
//!
//! ```text
//! reader: merges, fills batches ─► worker n mod N: filter, format ─► this thread: writes batch after batch
//! ```
//!
//! Batches go round the workers, and come back round the workers, so that order needs no sorting. Each queue holds two.

use super::progress::Progress;
use super::window::Window;
use crate::filter::Filter;
use crate::output::Output;
use ctf::trace::Trace;
use events::Event;
use events::names::NoNames;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use views::View;

/// Bytes of events in a batch.
const BATCH: usize = 256 << 10;

/// Events, each behind its length (u32).
type Batch = Vec<u8>;

/// Writes the lines of the events in the window; how many events were read, unless nobody wanted to see more.
pub fn write<'a>(
    trace: &Trace,
    window: Window,
    filter: &Filter,
    keep: &(dyn Fn(&Event<'_>) -> bool + Sync),
    make: impl Fn() -> Option<Box<dyn View + Send + 'a>>,
    output: &mut Output,
    progress: &Progress,
) -> Option<u64> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(16);
    std::thread::scope(|scope| {
        let mut to = Vec::new();
        let mut from = Vec::new();
        for _ in 0..workers {
            let view = make()?;
            let (batches, inbox) = sync_channel::<(Batch, u64)>(2);
            let (outbox, texts) = sync_channel::<(Vec<u8>, u64)>(2);
            scope.spawn(move || work(view, filter, keep, &inbox, &outbox));
            to.push(batches);
            from.push(texts);
        }
        let reader = scope.spawn(move || read(trace, window, &to));
        'all: loop {
            for texts in &from {
                let Ok((text, read)) = texts.recv() else { break 'all };
                output.write_lines(&text);
                progress.at(read);
                if output.failed() {
                    break 'all;
                }
            }
        }
        drop(from);
        reader.join().unwrap_or(None)
    })
}

/// Fills batches until there are no more events, or nobody wants them: then it is not known how many there are.
fn read(trace: &Trace, window: Window, to: &[SyncSender<(Batch, u64)>]) -> Option<u64> {
    let mut events = trace.data.events(&trace.known, window.from, window.to);
    for worker in (0..to.len()).cycle() {
        let mut batch = Vec::with_capacity(BATCH + 4096);
        let mut more = true;
        while more && batch.len() < BATCH {
            match events.next() {
                Some((event, _)) => {
                    batch.extend_from_slice(&(event.len() as u32).to_le_bytes());
                    batch.extend_from_slice(event);
                }
                None => more = false,
            }
        }
        to[worker].send((batch, events.bytes_read())).ok()?;
        if !more {
            break;
        }
    }
    Some(events.events_read())
}

fn work(
    mut view: Box<dyn View + Send + '_>,
    filter: &Filter,
    keep: &(dyn Fn(&Event<'_>) -> bool + Sync),
    inbox: &Receiver<(Batch, u64)>,
    outbox: &SyncSender<(Vec<u8>, u64)>,
) {
    for (batch, read) in inbox {
        let mut text = Vec::with_capacity(batch.len() * 2);
        let mut rest = &batch[..];
        while let Some((len, tail)) = rest.split_first_chunk::<4>() {
            let (event, next) = tail.split_at((u32::from_le_bytes(*len) as usize).min(tail.len()));
            rest = next;
            let Ok(ev) = Event::parse(event) else { continue };
            if keep(&ev) && filter.passes(&ev, &NoNames) {
                view.event(&ev, &NoNames, &mut text);
            }
        }
        if outbox.send((text, read)).is_err() {
            return;
        }
    }
}
