//! What the views read: the numbers of each stack with its frames.
//!
//! A row is all stacks of the model that have the same functions, files and lines: those of several processes of one program, and
//! those that differ only in addresses. [`Rows::folded`] makes one row of stacks that differ in how often a recursion was entered, too.

use super::Of;
use super::model::{Model, Summary};
use super::numbers::{Kind, Numbers, Sum};
use super::series::Series;
use crate::profile::{Frame, FrameId, StackId, Stacks, Unit};
use std::cmp::Reverse;
use std::collections::HashMap;

/// Who knows the frames of stacks.
pub trait Frames {
    /// Calls `each` for each frame of a stack, innermost first: the caller of the allocator. Never for a stack that is not known.
    fn frames(&self, stack: u32, each: &mut dyn FnMut(Frame<'_>));
}

/// The most functions of a recursion that are found: each calls the next, the last one the first.
const RECURSION: usize = 8;

/// Leaves the innermost round of each recursion. `functions`: the function of each frame, none where it is not known.
fn fold<T: Copy, F: Copy + PartialEq>(frames: &mut Vec<T>, functions: &mut [Option<F>]) {
    let mut kept = 0;
    for n in 0..frames.len() {
        (frames[kept], functions[kept]) = (frames[n], functions[n]);
        kept += 1;
        let repeats = |len: &usize| {
            let rounds = kept.checked_sub(2 * len).map(|first| functions[first..kept].split_at(*len));
            rounds.is_some_and(|(first, second)| first == second && first.iter().all(Option::is_some))
        };
        kept -= (1..=RECURSION).find(repeats).unwrap_or(0);
    }
    frames.truncate(kept);
}

/// Stacks with the same frames.
#[derive(Clone, Debug, Default)]
pub struct Row {
    stack: Option<StackId>,
    /// Their numbers.
    pub numbers: Numbers,
    /// Malloc'd blocks that are outstanding and old enough.
    pub old: Sum,
    /// Mappings that are outstanding and old enough.
    pub old_mapped: Sum,
    /// The age of the oldest malloc'd block, ns.
    pub oldest: u64,
    /// The age of the oldest mapping, ns.
    pub oldest_mapped: u64,
    /// Bytes over time: points of [`Series::coarse_step`].
    pub series: Vec<u64>,
}

impl Row {
    /// Malloc'd memory.
    pub fn malloc(&self, of: Of) -> Sum {
        match of {
            Of::Outstanding => self.old,
            Of::Peak => self.numbers.at_peak,
            Of::Total => self.numbers.total,
        }
    }

    /// Mapped memory; none at the peak, which is that of malloc'd memory.
    pub fn mapped(&self, of: Of) -> Sum {
        match of {
            Of::Outstanding => self.old_mapped,
            Of::Peak => Sum::default(),
            Of::Total => self.numbers.mapped_total,
        }
    }

    fn join(&mut self, numbers: &Numbers, series: &[u64]) {
        self.numbers.join(numbers);
        if self.series.len() < series.len() {
            self.series.resize(series.len(), 0);
        }
        self.series.iter_mut().zip(series).for_each(|(sum, n)| *sum = sum.saturating_add(*n));
    }

    fn add_old(&mut self, kind: Kind, sum: Sum, age: u64) {
        let (old, oldest) = match kind {
            Kind::Malloc => (&mut self.old, &mut self.oldest),
            Kind::Mmap => (&mut self.old_mapped, &mut self.oldest_mapped),
        };
        old.join(sum);
        *oldest = age.max(*oldest);
    }
}

/// A heap by stack.
pub struct Rows {
    /// What there is in all.
    pub summary: Summary,
    /// All of it over time.
    pub series: Series,
    /// The least age of [`Row::old`], ns.
    pub min_age: u64,
    names: Stacks,
    all: Vec<Row>,
}

impl Rows {
    /// The rows of a model.
    pub fn new(model: &Model, frames: &dyn Frames, min_age: u64) -> Rows {
        let mut rows = Rows {
            summary: model.summary(),
            series: model.series().clone(),
            min_age,
            names: Stacks::new(Unit::Bytes),
            all: Vec::new(),
        };
        let (mut of_stack, mut of_frames) = (HashMap::new(), HashMap::new());
        let mut ids = Vec::new();
        for (stack, numbers) in model.stacks() {
            ids.clear();
            frames.frames(stack, &mut |frame| ids.push(rows.names.frame(&frame)));
            let id = rows.names.stack(&ids);
            let at = *of_frames.entry(id).or_insert_with(|| {
                rows.all.push(Row { stack: Some(id), ..Row::default() });
                rows.all.len() - 1
            });
            rows.all[at].join(&numbers, &model.stack_series(stack));
            of_stack.insert(stack, at);
        }
        model.outstanding(min_age, &mut |stack, kind, sum, age| {
            if let Some(at) = of_stack.get(&stack) {
                rows.all[*at].add_old(kind, sum, age);
            }
        });
        rows
    }

    /// These rows with each recursion in their stacks folded into one frame.
    pub fn folded(&self) -> Rows {
        let mut rows = Rows {
            summary: self.summary,
            series: self.series.clone(),
            min_age: self.min_age,
            names: Stacks::new(Unit::Bytes),
            all: Vec::new(),
        };
        let mut of_frames = HashMap::new();
        for row in &self.all {
            let mut frames: Vec<Frame<'_>> = self.frames(row).collect();
            let function = |f: &Frame<'_>| {
                (!f.function.is_empty())
                    .then(|| rows.names.frame(&Frame { function: f.function, module: f.module, ..Frame::default() }))
            };
            let mut functions: Vec<Option<FrameId>> = frames.iter().map(function).collect();
            fold(&mut frames, &mut functions);
            let ids: Vec<FrameId> = frames.iter().map(|f| rows.names.frame(f)).collect();
            let id = row.stack.map(|_| rows.names.stack(&ids));
            let at = *of_frames.entry(id).or_insert_with(|| {
                rows.all.push(Row { stack: id, ..Row::default() });
                rows.all.len() - 1
            });
            let into = &mut rows.all[at];
            into.join(&row.numbers, &row.series);
            into.add_old(Kind::Malloc, row.old, row.oldest);
            into.add_old(Kind::Mmap, row.old_mapped, row.oldest_mapped);
        }
        rows
    }

    /// All rows, in the order of the model's stacks.
    pub fn all(&self) -> &[Row] {
        &self.all
    }

    /// The frames of a row, innermost first.
    pub fn frames(&self, row: &Row) -> impl DoubleEndedIterator<Item = Frame<'_>> {
        let ids = row.stack.map_or(&[][..], |id| self.names.frames_of(id));
        ids.iter().map(|id| self.names.frame_at(*id))
    }

    /// The rows that have something, those with the most bytes first, and of these those with the most blocks.
    pub fn sorted(&self, sum: impl Fn(&Row) -> Sum) -> Vec<&Row> {
        self.by(|row| (sum(row).bytes, sum(row).blocks))
    }

    /// The rows whose key is not 0, the largest first.
    pub fn by<K: Ord + Default>(&self, key: impl Fn(&Row) -> K) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self.all.iter().filter(|row| key(row) > K::default()).collect();
        order::by_key(&mut rows, |row| Reverse(key(row)));
        rows
    }

    /// The sum of something of all rows.
    pub fn sum(&self, sum: impl Fn(&Row) -> Sum) -> Sum {
        self.all.iter().fold(Sum::default(), |all, row| all.and(sum(row)))
    }

    /// Whether anything was mapped.
    pub fn has_mappings(&self) -> bool {
        self.summary.numbers.mapped_total.blocks > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recursions_are_folded() {
        let folded = |text: &str| {
            let mut frames: Vec<char> = text.chars().collect();
            // A function that is not known is no recursion.
            let mut functions: Vec<Option<char>> = frames.iter().map(|c| Some(*c).filter(|c| *c != '?')).collect();
            fold(&mut frames, &mut functions);
            String::from_iter(frames)
        };
        for (stack, shown) in [
            ("", ""),
            ("mfffz", "mfz"),
            ("mfgfgfgz", "mfgz"),
            ("mffgffgz", "mfgz"),
            ("mf", "mf"),
            ("m??z", "m??z"),
            ("abcabcd", "abcd"),
            ("123456789123456789", "123456789123456789"),
        ] {
            assert_eq!(folded(stack), shown, "{stack}");
        }
    }
}
