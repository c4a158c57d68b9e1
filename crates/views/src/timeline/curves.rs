//! Curves of processes: the bytes that are outstanding, and the descriptors that are open. Each item of such a row changes the level.
//!
//! ```text
//! items    +4096 +100 -4096 ...     64 of them are a step: the level behind it, the highest and the lowest in it
//! ```
//!
//! A picture of many items is drawn from the steps. Items of a row are in the order of time, so that steps are ranges of time.

use super::columns::{Item, Row, number, zigzag};
use super::{Kind, Of, Timeline, tally};
use crate::descriptors::{Added, Descriptors, made};
use events::Event;
use events::generated::P_EXEC;
use events::hash::Table;
use events::names::Names;

/// How many items a step has.
pub(super) const STEP: usize = 64;

/// The state of curves: outstanding blocks and open descriptors.
#[derive(Debug, Default)]
pub(super) struct Curves {
    /// Blocks that are outstanding, of each process: their addresses; the number of the allocation in the row, and its size.
    blocks: Vec<Table<u64, (u64, u64)>>,
    /// Those that are open, with their files; and whether any was closed: a trace without the calls that close knows of none what became of it.
    descriptors: Descriptors<u32>,
    pub closes: bool,
}

impl Curves {
    fn blocks(&mut self, process: usize) -> &mut Table<u64, (u64, u64)> {
        if self.blocks.len() <= process {
            self.blocks.resize_with(process + 1, Table::default);
        }
        &mut self.blocks[process]
    }
}

fn signed(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

/// Appends an item, not before the last one.
fn push(row: &mut Row, item: Item) {
    row.push(&Item { start: item.start.max(row.end()), ..item });
}

impl Timeline {
    /// An allocation, or a release.
    pub(super) fn heap(&mut self, ev: &Event<'_>, names: &dyn Names, process: usize) {
        let (address, size) = (ev.value_of("address"), ev.value_of("size"));
        let name = self.strings.number(&ev.schema.probe());
        let stack = self.stack(ev, names);
        let row = self.rows.of(Of::Process(process), Kind::Heap, 0);
        let item = Item { start: ev.time(), name, stack, ..Item::default() };
        let blocks = self.curves.blocks(process);
        if ev.schema.name == "heap:malloc" {
            blocks.insert(address, (row.len(), size));
            push(row, Item { value: signed(size), ..item });
        } else if let Some((nth, size)) = blocks.remove(&address) {
            push(row, Item { value: -signed(size), subject: nth + 1, ..item });
        }
    }

    /// The losses of curves by an event, shown or not: closed descriptors, and the memory before an exec.
    pub(super) fn taken(&mut self, ev: &Event<'_>) {
        if ev.schema.id == P_EXEC.id
            && let Some(thread) = self.processes.known(ev.pid()).or_else(|| self.processes.known(ev.tid()))
        {
            let process = self.processes.of_thread(thread);
            let closed = self.curves.descriptors.closed_on_exec(ev.pid());
            self.processes.closed(process, closed.into_iter().map(|(fd, file)| (fd, *file)).collect());
            self.forget(ev, process);
        }
        let closed = self.curves.descriptors.closed_by(ev);
        if closed > 0 {
            self.curves.closes = true;
            self.files(ev, -signed(closed));
        }
    }

    /// A process executes another program: its memory is gone.
    fn forget(&mut self, ev: &Event<'_>, process: usize) {
        let gone = std::mem::take(self.curves.blocks(process));
        if gone.is_empty() {
            return;
        }
        let size = gone.values().fold(0u64, |sum, (_, size)| sum.saturating_add(*size));
        let name = self.strings.number(&ev.schema.probe());
        let row = self.rows.of(Of::Process(process), Kind::Heap, 0);
        let item = Item { start: ev.time(), name, value: -signed(size), subject: row.len() + 1, ..Item::default() };
        push(row, item);
    }

    /// This many more descriptors of a table are open since a call, or another event.
    fn files(&mut self, ev: &Event<'_>, value: i64) {
        let table = self.curves.descriptors.table(ev.pid());
        let Some(thread) = self.processes.known(table).or_else(|| self.processes.known(ev.tid())) else { return };
        let name = self.strings.number(ev.schema.name);
        let row = self.rows.of(Of::Process(self.processes.of_thread(thread)), Kind::Files, 0);
        push(row, Item { start: ev.time(), name, value, ..Item::default() });
    }

    /// Adds the descriptors that a call has opened, and their file.
    pub(super) fn opened(&mut self, ev: &Event<'_>, file: u32) {
        let fds = made(ev);
        let added = |fd: &i32| self.curves.descriptors.add(ev, *fd, file) == Added::New;
        let more = fds.iter().map(added).filter(|is_new| *is_new).count();
        if more > 0 {
            self.files(ev, more as i64);
        }
    }
}

/// Whether an item of a heap is no event of its own: an exec that has taken what was outstanding.
pub(super) fn is_exec(row: &Row, nth: usize, item: &Item) -> bool {
    row.kind == Kind::Heap && item.subject == nth as u64 + 1
}

/// Whether a row is a curve.
pub(super) fn is_curve(row: &Row) -> bool {
    matches!(row.kind, Kind::Heap | Kind::Files)
}

/// The levels of a curve, with their times, which do not go back: what a process had is gone with it.
pub(super) fn levels<'r>(timeline: &'r Timeline, row: &'r Row) -> impl Iterator<Item = (u64, i64)> + use<'r> {
    let process = tally::process(timeline, row).and_then(|process| timeline.processes.all().get(process));
    let mut ends = process.filter(|p| p.exit.is_some());
    let (mut sum, mut last, mut items) = (0i64, 0, row.items());
    std::iter::from_fn(move || {
        if let Some(item) = items.next() {
            sum = sum.saturating_add(item.value);
            last = item.start.max(last);
            return Some((last, sum));
        }
        let process = ends.take().filter(|_| sum != 0)?;
        Some((process.last.max(last), 0))
    })
}

/// Appends the steps of a curve, of each three numbers as columns have them: the level behind it, since that behind the step before; how much
/// higher than that its highest level is, and its lowest.
pub(super) fn steps(row: &Row, out: &mut Vec<u8>) {
    let (mut level, mut left) = (0i64, 0);
    let (mut before, mut highest, mut lowest) = (0, i64::MIN, i64::MAX);
    for item in row.items() {
        level = level.saturating_add(item.value);
        (highest, lowest, left) = (highest.max(level), lowest.min(level), left + 1);
        if left == STEP {
            step(&[level.wrapping_sub(before), highest.wrapping_sub(level), lowest.wrapping_sub(level)], out);
            (before, highest, lowest, left) = (level, i64::MIN, i64::MAX, 0);
        }
    }
    if left > 0 {
        step(&[level.wrapping_sub(before), highest.wrapping_sub(level), lowest.wrapping_sub(level)], out);
    }
}

fn step(numbers: &[i64; 3], out: &mut Vec<u8>) {
    numbers.iter().for_each(|n| number(zigzag(*n), out));
}

#[cfg(test)]
mod tests {
    use super::super::columns::{read, unzigzag};
    use super::*;

    #[test]
    fn steps_have_the_extremes_of_their_items() {
        for n in [0, 1, STEP, STEP + 1, 3 * STEP + 7] {
            let mut row = Row::new(Of::Process(0), Kind::Heap, 0);
            let values: Vec<i64> = (0..n as i64).map(|n| n * 7919 % 101 - 45).collect();
            values.iter().for_each(|value| row.push(&Item { value: *value, ..Item::default() }));
            let levels: Vec<i64> = values
                .iter()
                .scan(0, |sum, v| {
                    *sum += v;
                    Some(*sum)
                })
                .collect();
            let mut expected = Vec::new();
            for of in levels.chunks(STEP) {
                let extremes = (of.iter().max().copied(), of.iter().min().copied());
                expected.push((of.last().copied(), extremes.0, extremes.1));
            }
            let (mut bytes, mut at, mut level, mut found) = (Vec::new(), 0, 0, Vec::new());
            steps(&row, &mut bytes);
            while at < bytes.len() {
                level += unzigzag(read(&bytes, &mut at));
                let [highest, lowest] = [(); 2].map(|()| level + unzigzag(read(&bytes, &mut at)));
                found.push((Some(level), Some(highest), Some(lowest)));
            }
            assert_eq!(found, expected, "{n}");
        }
    }
}
