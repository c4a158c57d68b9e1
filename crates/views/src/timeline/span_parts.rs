//! What spans were made of: what their threads did between begin and end.

use super::runs::ON;
use super::spans::Span;
use super::{Kind, Of, Timeline};
use events::hash::Table;

/// What a thread did in a span.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Made {
    pub thread: usize,
    /// System calls and functions, those with the most time first.
    pub parts: Vec<Part>,
    /// Off the processors, waiting for something else than one, ns; waiting for one. None where switches are not recorded.
    pub blocked: Option<u64>,
    pub ready: Option<u64>,
    /// Blocks that were allocated, and their bytes. None where allocations are not recorded.
    pub allocated: Option<(u64, u64)>,
}

/// A system call or a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub is_function: bool,
    pub name: String,
    /// How often.
    pub times: u64,
    /// The time in it that is within the span, ns; of a function that calls itself, once.
    pub time: u64,
}

/// What is gathered of one thread in one span.
#[derive(Default)]
struct Gathered {
    span: usize,
    from: u64,
    to: u64,
    /// By kind and name: how often, and when.
    parts: Table<(bool, u32), Vec<(u64, u64)>>,
    blocked: u64,
    ready: u64,
}

/// What each of these spans was made of: its thread, or that of its begin and that of its end.
pub(super) fn of(timeline: &Timeline, spans: &[&Span]) -> Vec<Vec<Made>> {
    let mut by_thread: Table<usize, Vec<Gathered>> = Table::default();
    for (n, span) in spans.iter().enumerate() {
        for thread in threads(span) {
            let gathered = Gathered { span: n, from: span.start, to: span.end, ..Gathered::default() };
            by_thread.entry(thread).or_default().push(gathered);
        }
    }
    let strings: Vec<&str> = timeline.strings.all().collect();
    let functions: Vec<&str> = timeline.functions.view().all().iter().map(|f| f.name.as_str()).collect();
    // Several functions may have one name.
    let mut first: Table<&str, u32> = Table::default();
    let numbers: Vec<u32> = (1..).zip(&functions).map(|(n, name)| *first.entry(name).or_insert(n)).collect();
    let function = |n: u32| numbers.get((n as usize).wrapping_sub(1)).copied().unwrap_or(n);
    let string = |n: u32| strings.get((n as usize).wrapping_sub(1)).copied().unwrap_or_default();
    let mut has_runs = false;
    for row in timeline.rows.all().iter().chain(timeline.functions.view().rows()) {
        has_runs |= row.kind == Kind::Run;
        let Of::Thread(thread) = row.of else { continue };
        let (Some(all), Kind::Call | Kind::Function | Kind::Run) = (by_thread.get_mut(&thread), row.kind) else {
            continue;
        };
        for item in row.items() {
            let end = item.start.saturating_add(item.length);
            for g in all.iter_mut().filter(|g| item.start < g.to && end > g.from) {
                let (from, to) = (item.start.max(g.from), end.min(g.to));
                match row.kind {
                    Kind::Run if string(item.name).starts_with("waits for a processor") => g.ready += to - from,
                    Kind::Run if string(item.name) == ON || string(item.name).contains(ON) => {}
                    Kind::Run => g.blocked += to - from,
                    Kind::Function => g.parts.entry((true, function(item.name))).or_default().push((from, to)),
                    _ => g.parts.entry((false, item.name)).or_default().push((from, to)),
                }
            }
        }
    }
    let mut made: Vec<Vec<Made>> = vec![Vec::new(); spans.len()];
    for (thread, gathered) in by_thread {
        for g in gathered {
            let name = |is_function: bool, n: u32| match is_function {
                true => functions.get((n as usize).wrapping_sub(1)).copied().unwrap_or_default(),
                false => string(n),
            };
            let mut parts: Vec<Part> = g
                .parts
                .into_iter()
                .map(|((is_function, n), times)| Part {
                    is_function,
                    name: name(is_function, n).to_owned(),
                    times: times.len() as u64,
                    time: together(times),
                })
                .collect();
            order::by(&mut parts, |a, b| (b.time, &a.name).cmp(&(a.time, &b.name)));
            let blocks = timeline.spans.allocated.get(&thread).map_or(&[][..], Vec::as_slice);
            let blocks = blocks.iter().filter(|(time, _)| (g.from..=g.to).contains(time));
            let allocated = blocks.fold((0, 0u64), |(n, sum), (_, size)| (n + 1, sum.saturating_add(*size)));
            let has_heap = !timeline.spans.allocated.is_empty();
            made[g.span].push(Made {
                thread,
                parts,
                blocked: has_runs.then_some(g.blocked),
                ready: has_runs.then_some(g.ready),
                allocated: has_heap.then_some(allocated),
            });
        }
    }
    // The thread of the begin first.
    made.iter_mut().zip(spans).for_each(|(made, span)| made.sort_by_key(|m| m.thread != span.threads[0]));
    made
}

/// The threads of a span, each once.
fn threads(span: &Span) -> impl Iterator<Item = usize> + use<> {
    let [from, to] = span.threads;
    std::iter::once(from).chain((to != from).then_some(to))
}

/// The length of the union of these times.
fn together(mut times: Vec<(u64, u64)>) -> u64 {
    times.sort_unstable();
    let (mut sum, mut until) = (0, 0);
    for (from, to) in times {
        sum += to.saturating_sub(from.max(until));
        until = until.max(to);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_counts_once() {
        assert_eq!(together(vec![(10, 20), (0, 5), (12, 15), (18, 30)]), 25);
        assert_eq!(together(Vec::new()), 0);
    }
}
