//! `overview`: lanes of processes over time, as wide as the terminal: where to look.
//!
//! ```text
//! 58.4 s, a column is 600 ms; 3809460 events
//!                   0 s               20 s                40 s
//! errors            ▂ ▁▁                                    █
//! sh 25867          ▂-----------------------------------------
//! find 25870         ███
//! tar 25875             ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇
//!
//! busiest:
//!   --from +12.6s --to +13.2s   61204 events: tar 25875 read, cat 25876 write
//! ```

use super::columns::Item;
use super::curves::is_exec;
use super::runs::ON;
use super::tally::{process, waits};
use super::{Kind, Timeline, Writer};
use crate::escape;
use crate::table::shortened;
use crate::units::duration;
use events::hash::Table as Counts;
use events::traces::own;

/// Columns of names, lanes that are shown, and ranges that are named.
const NAMES: usize = 22;
const LANES: usize = 40;
const BUSIEST: usize = 5;
/// From none to all.
const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// What a process does in a column.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    events: u64,
    /// ns in calls that wait, and off the processor.
    waits: u64,
    errors: u64,
    lost: bool,
}

/// Writes it.
pub const WRITER: Writer = Writer::whole(write);

/// Appends the picture, in the width of [`Timeline::columns`].
fn write(timeline: &Timeline, out: &mut Vec<u8>) {
    let all = timeline.processes.all();
    let columns = timeline.columns.clamp(40, 400) - NAMES - 1;
    let begin = timeline.first();
    let span = timeline.last.saturating_sub(begin).max(1);
    let wide = span.div_ceil(columns as u64).max(1);
    let at = |time: u64| ((time.saturating_sub(begin) / wide) as usize).min(columns - 1);
    let strings: Vec<&str> = timeline.strings.all().collect();
    let name = |n: u32| strings.get((n as usize).wrapping_sub(1)).copied().unwrap_or_default();
    let mut cells = vec![vec![Cell::default(); columns]; all.len()];
    // For each column, the number of events by process and name.
    let mut what: Vec<Counts<(usize, u32), u64>> = vec![Counts::default(); columns];
    for row in timeline.ordered() {
        let Some(of) = process(timeline, row) else { continue };
        let Some(lane) = cells.get_mut(of) else { continue };
        for (nth, item) in row.items().enumerate() {
            let first = at(item.start);
            let waits = match row.kind {
                Kind::Call => waits(name(item.name)),
                Kind::Run => name(item.name) != ON,
                _ => false,
            };
            if waits {
                spread(&item, begin, wide, lane);
            }
            if matches!(row.kind, Kind::Run | Kind::Files) || is_exec(row, nth, &item) {
                continue;
            }
            lane[first].events += 1;
            if row.kind == Kind::Lost {
                lane[first].lost = true;
            }
            if row.kind == Kind::Call {
                lane[first].errors += u64::from((-4095..0).contains(&item.value));
                *what[first].entry((of, item.name)).or_default() += 1;
            }
        }
    }
    let mut line = |text: String| {
        out.extend_from_slice(text.trim_end().as_bytes());
        out.push(b'\n');
    };
    let more = |n: u64, what: &str| if n == 0 { String::new() } else { format!(", {n} {what}") };
    let lost = timeline.lost.map_or_else(String::new, |n| more(n, "lost"));
    let cut = more(timeline.cut, "behind the end of this picture (--from and --to show them)");
    let events = timeline.stats.events().0;
    line(format!("{}, a column is {}; {events} events{lost}{cut}", duration(span), duration(wide)));
    line(ruler(columns, wide));
    let sum = |lane: &[Cell], of: fn(&Cell) -> u64| lane.iter().map(of).sum::<u64>();
    let errors: Vec<u64> = (0..columns).map(|c| cells.iter().map(|lane| lane[c].errors).sum()).collect();
    if errors.iter().any(|n| *n > 0) {
        let most = errors.iter().copied().max().unwrap_or(1);
        line(format!("{:NAMES$} {}", "errors", errors.iter().map(|n| level(*n, most)).collect::<String>()));
    }
    let most = cells.iter().flatten().map(|c| c.events).max().unwrap_or(1).max(1);
    // The busiest, in the order in which they began.
    let mut shown: Vec<usize> = (0..all.len()).collect();
    shown.sort_by_key(|n| std::cmp::Reverse((sum(&cells[*n], |c| c.events), all.len() - n)));
    let rest = shown.len().saturating_sub(LANES);
    let others: u64 = shown.iter().skip(LANES).map(|n| sum(&cells[*n], |c| c.events)).sum();
    shown.truncate(LANES);
    shown.sort_unstable();
    for n in shown {
        let (p, lane) = (&all[n], &cells[n]);
        let (first, last) = (at(p.first), at(p.last));
        let picture: String = lane
            .iter()
            .enumerate()
            .map(|(c, cell)| match cell {
                Cell { lost: true, .. } => '/',
                Cell { events: 1.., waits, .. } if *waits * 10 < wide * 9 || cell.events * 20 > most => {
                    level(cell.events, most)
                }
                Cell { waits, .. } if *waits * 2 > wide => '-',
                Cell { events: 1.., .. } => level(cell.events, most),
                _ if (first..=last).contains(&c) => '·',
                _ => ' ',
            })
            .collect();
        line(format!("{:NAMES$} {picture}", label(&p.name, own(p.pid))));
    }
    if rest > 0 {
        line(format!("{:NAMES$} {rest} more processes, with {others} events", ""));
    }
    line(String::new());
    line("█ busy  ▁ few events  - waits  · alive  / events are missing".to_owned());
    busiest(timeline, &cells, &what, wide, &name, &mut line);
}

/// Adds the time of an item to the columns that it is in.
fn spread(item: &Item, begin: u64, wide: u64, lane: &mut [Cell]) {
    let (mut from, to) =
        (item.start.saturating_sub(begin), item.start.saturating_add(item.length).saturating_sub(begin));
    while from < to {
        let nth = (from / wide) as usize;
        let Some(cell) = lane.get_mut(nth) else { return };
        let until = to.min((nth as u64 + 1) * wide);
        cell.waits += until - from;
        from = until;
    }
}

/// One of the levels; something is never shown as nothing.
fn level(n: u64, most: u64) -> char {
    let steps = LEVELS.len() as u64 - 1;
    LEVELS[if n == 0 { 0 } else { (n * steps).div_ceil(most.max(1)).clamp(1, steps) } as usize]
}

fn label(name: &str, pid: u32) -> String {
    let mut out = Vec::new();
    escape::name(name.as_bytes(), &mut out);
    let (name, pid) = (String::from_utf8_lossy(&out).into_owned(), pid.to_string());
    format!("{} {pid}", shortened(if name.is_empty() { "?" } else { &name }, NAMES - 1 - pid.len()))
}

/// Times above the columns.
fn ruler(columns: usize, wide: u64) -> String {
    let mut line = " ".repeat(NAMES + 1);
    let mut at = 0;
    while at < columns {
        let text = if at == 0 { "0".to_owned() } else { duration(at as u64 * wide) };
        let step = (text.len() + 6).next_multiple_of(10);
        line += &format!("{text:step$}");
        at += step;
    }
    line.chars().take(NAMES + 1 + columns).collect()
}

/// Names the columns with the most events, as options of a report.
fn busiest<'t>(
    timeline: &Timeline,
    cells: &[Vec<Cell>],
    what: &[Counts<(usize, u32), u64>],
    wide: u64,
    name: &dyn Fn(u32) -> &'t str,
    line: &mut dyn FnMut(String),
) {
    let sums = what.iter().enumerate().map(|(c, _)| (cells.iter().map(|lane| lane[c].events).sum::<u64>(), c));
    let mut sums: Vec<(u64, usize)> = sums.filter(|(n, _)| *n > 0).collect();
    sums.sort_by_key(|(n, c)| (std::cmp::Reverse(*n), *c));
    if sums.is_empty() {
        return;
    }
    line("busiest:".to_owned());
    for (n, column) in sums.into_iter().take(BUSIEST) {
        let mut of: Vec<(&(usize, u32), &u64)> = what[column].iter().collect();
        of.sort_by_key(|(key, n)| (std::cmp::Reverse(**n), **key));
        let of: Vec<String> = of
            .into_iter()
            .take(3)
            .filter_map(|((p, call), n)| {
                let p = timeline.processes.all().get(*p)?;
                Some(format!("{} {} times by {}", name(*call), n, label(&p.name, own(p.pid))))
            })
            .collect();
        let seconds = |c: usize| format!("+{:.6}s", (c as u64 * wide) as f64 / 1e9);
        let of = if of.is_empty() { String::new() } else { format!(": {}", of.join(", ")) };
        line(format!("  --from {} --to {}  {n} events{of}", seconds(column), seconds(column + 1)));
    }
}
