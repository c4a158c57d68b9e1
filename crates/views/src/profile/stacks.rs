//! Stacks and their weights: what every view of a profile reads.
//!
//! Frames, labels and stacks get numbers when they are first seen; a stack is a list of the numbers of its frames, outermost
//! last. A caller that knows that two samples have the same stack (by its addresses) adds the second one by its number alone.
//!
//! Memory is bounded by [`Limits`]. What does not fit has the number `NONE`; samples with one are counted in
//! [`Stacks::not_held`], so that `total = kept + not held`, in samples and in weight.

use super::strings::Strings;
use super::{Frame, Labels, Unit};
use events::hash::Table;
use events::traces::own;
use std::hash::Hash;
use std::sync::Arc;

/// The most frames of a stack; outer ones beyond are cut.
pub const MAX_DEPTH: usize = 4096;

/// The number of something that did not fit.
const NONE: u32 = u32::MAX;

/// Number of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameId(u32);

/// Number of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(u32);

/// Number of a combination of labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelsId(u32);

/// How much is held.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Distinct stacks.
    pub stacks: usize,
    /// Frames of all stacks together, 4 bytes each.
    pub depth: usize,
    /// Distinct frames.
    pub frames: usize,
    /// Distinct combinations of labels.
    pub labels: usize,
    /// Distinct pairs of a stack and labels.
    pub entries: usize,
    /// Bytes of names, with 64 for each of them.
    pub names: usize,
}

impl Default for Limits {
    /// Below 300 MB in the worst case, and a flame graph takes up to 1 GB more while it is made of that. 20,000 stacks of 33 frames take
    /// 5 MB.
    fn default() -> Limits {
        Limits {
            stacks: 200_000,
            depth: 8_000_000,
            frames: 1_000_000,
            labels: 100_000,
            entries: 1_000_000,
            names: 64 << 20,
        }
    }
}

/// Samples, or other events, and their weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub samples: u64,
    /// Sum of their weights; [`u64::MAX`] where it is larger.
    pub weight: u64,
}

impl Tally {
    /// Adds another one.
    pub fn join(&mut self, other: Tally) {
        self.samples = self.samples.saturating_add(other.samples);
        self.weight = self.weight.saturating_add(other.weight);
    }
}

/// A frame with the numbers of its strings.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct HeldFrame {
    function: u32,
    module: u32,
    file: u32,
    line: u32,
    inlined: bool,
    guessed: bool,
    kernel: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct HeldLabels {
    pid: u32,
    tid: u32,
    comm: u32,
}

/// The samples with a stack and labels.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The stack.
    pub stack: StackId,
    /// Who had it.
    pub labels: LabelsId,
    /// How often, and how much.
    pub tally: Tally,
}

/// Things with numbers.
struct Numbered<T> {
    all: Vec<T>,
    ids: Table<T, u32>,
}

impl<T: Clone + Eq + Hash> Numbered<T> {
    fn new() -> Numbered<T> {
        Numbered { all: Vec::new(), ids: Table::default() }
    }

    fn id(&mut self, thing: T, most: usize) -> u32 {
        if let Some(&id) = self.ids.get(&thing) {
            return id;
        }
        if self.all.len() >= most.min(NONE as usize) {
            return NONE;
        }
        let id = self.all.len() as u32;
        self.all.push(thing.clone());
        self.ids.insert(thing, id);
        id
    }
}

/// What pprof calls blocks of memory and their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// How many.
    pub objects: &'static str,
    /// Their bytes.
    pub space: &'static str,
}

/// A profile.
pub struct Stacks {
    unit: Unit,
    blocks: Option<Blocks>,
    /// Weights are time in which threads were blocked.
    blocked: bool,
    limits: Limits,
    strings: Strings,
    /// Module and file of the last frame.
    last: (u32, u32),
    frames: Numbered<HeldFrame>,
    labels: Numbered<HeldLabels>,
    stacks: Vec<Arc<[u32]>>,
    stack_ids: Table<Arc<[u32]>, u32>,
    /// Frames of all stacks.
    depth: usize,
    entries: Vec<Entry>,
    entry_ids: Table<(u32, u32), u32>,
    total: Tally,
    not_held: Tally,
    lost: Option<u64>,
    /// First and last time.
    span: Option<(u64, u64)>,
}

impl Stacks {
    /// An empty profile.
    pub fn new(unit: Unit) -> Stacks {
        Stacks::with_limits(unit, Limits::default())
    }

    /// An empty profile that holds no more than `limits`.
    pub fn with_limits(unit: Unit, limits: Limits) -> Stacks {
        Stacks {
            unit,
            blocks: None,
            blocked: false,
            limits,
            strings: Strings::new(),
            last: (0, 0),
            frames: Numbered::new(),
            labels: Numbered::new(),
            stacks: Vec::new(),
            stack_ids: Table::default(),
            depth: 0,
            entries: Vec::new(),
            entry_ids: Table::default(),
            total: Tally::default(),
            not_held: Tally::default(),
            lost: None,
            span: None,
        }
    }

    /// The number of a frame.
    pub fn frame(&mut self, frame: &Frame<'_>) -> FrameId {
        FrameId(self.held_frame(frame).map_or(NONE, |held| self.frames.id(held, self.limits.frames)))
    }

    fn held_frame(&mut self, f: &Frame<'_>) -> Option<HeldFrame> {
        let most = self.limits.names;
        Some(HeldFrame {
            function: self.strings.id(f.function, most)?,
            module: self.strings.id_again(f.module, &mut self.last.0, most)?,
            file: self.strings.id_again(f.file, &mut self.last.1, most)?,
            line: f.line,
            inlined: f.inlined,
            guessed: f.guessed,
            kernel: f.kernel,
        })
    }

    /// The number of a combination of labels.
    pub fn labels(&mut self, labels: Labels<'_>) -> LabelsId {
        let comm = self.strings.id(labels.comm, self.limits.names);
        let held = comm.map(|comm| HeldLabels { pid: labels.pid, tid: labels.tid, comm });
        LabelsId(held.map_or(NONE, |held| self.labels.id(held, self.limits.labels)))
    }

    /// The number of a stack, outermost frame last. Beyond [`MAX_DEPTH`] frames, outer ones are cut.
    pub fn stack(&mut self, frames: &[FrameId]) -> StackId {
        let frames = &frames[..frames.len().min(MAX_DEPTH)];
        if frames.iter().any(|f| f.0 as usize >= self.frames.all.len()) {
            return StackId(NONE);
        }
        let ids: Vec<u32> = frames.iter().map(|f| f.0).collect();
        if let Some(&id) = self.stack_ids.get(&ids[..]) {
            return StackId(id);
        }
        if self.stacks.len() >= self.limits.stacks.min(NONE as usize) || self.depth + ids.len() > self.limits.depth {
            return StackId(NONE);
        }
        let id = self.stacks.len() as u32;
        self.depth += ids.len();
        let ids: Arc<[u32]> = ids.into();
        self.stacks.push(ids.clone());
        self.stack_ids.insert(ids, id);
        StackId(id)
    }

    /// Adds a sample: its stack, labels, weight and time (ns of the monotonic clock). Where the unit is samples, the weight is their number.
    pub fn add(&mut self, stack: StackId, labels: LabelsId, weight: u64, time: u64) {
        let samples = if matches!(self.unit, Unit::Samples { .. }) { weight } else { 1 };
        self.add_many(stack, labels, Tally { samples, weight }, time);
    }

    /// Adds samples that somebody has already counted, the last of them at `time`.
    pub fn add_many(&mut self, stack: StackId, labels: LabelsId, tally: Tally, time: u64) {
        self.span = Some(self.span.map_or((time, time), |(first, last)| (first.min(time), last.max(time))));
        self.total.join(tally);
        match self.entry(stack, labels) {
            Some(entry) => entry.tally.join(tally),
            None => self.not_held.join(tally),
        }
    }

    fn entry(&mut self, stack: StackId, labels: LabelsId) -> Option<&mut Entry> {
        if stack.0 as usize >= self.stacks.len() || labels.0 as usize >= self.labels.all.len() {
            return None;
        }
        let key = (stack.0, labels.0);
        let id = match self.entry_ids.get(&key) {
            Some(&id) => id,
            None if self.entries.len() >= self.limits.entries.min(NONE as usize) => return None,
            None => {
                let id = self.entries.len() as u32;
                self.entry_ids.insert(key, id);
                self.entries.push(Entry { stack, labels, tally: Tally::default() });
                id
            }
        };
        self.entries.get_mut(id as usize)
    }

    /// An empty profile of memory: samples are blocks, weights are bytes.
    pub fn of_memory(blocks: Blocks) -> Stacks {
        Stacks { blocks: Some(blocks), ..Stacks::new(Unit::Bytes) }
    }

    /// An empty profile of the same kind, with the same losses.
    pub(super) fn empty(&self) -> Stacks {
        Stacks {
            blocks: self.blocks,
            blocked: self.blocked,
            lost: self.lost,
            ..Stacks::with_limits(self.unit, self.limits)
        }
    }

    /// It lasts from the one to the other time, ns of the monotonic clock.
    pub(super) fn set_span(&mut self, span: Option<(u64, u64)>) {
        self.span = span;
    }

    /// Samples that did not fit elsewhere.
    pub(super) fn add_not_held(&mut self, tally: Tally) {
        self.total.join(tally);
        self.not_held.join(tally);
    }

    /// An empty profile of time in which threads were blocked.
    pub fn of_blocked_time() -> Stacks {
        Stacks { blocked: true, ..Stacks::new(Unit::Nanoseconds) }
    }

    /// Whether weights are time in which threads were blocked.
    pub fn is_of_blocked_time(&self) -> bool {
        self.blocked
    }

    /// What blocks are called, where samples are blocks.
    pub fn blocks(&self) -> Option<Blocks> {
        self.blocks
    }

    /// What weights measure.
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// All samples that were added.
    pub fn total(&self) -> Tally {
        self.total
    }

    /// The weight of all samples that views show; what they call the whole.
    pub fn kept(&self) -> u64 {
        self.entries.iter().fold(0, |sum, e| sum.saturating_add(e.tally.weight))
    }

    /// Samples whose stacks, frames or labels did not fit: no view shows more of them than this.
    pub fn not_held(&self) -> Tally {
        self.not_held
    }

    /// The number of events that were lost before they could become samples.
    pub fn set_lost(&mut self, events: Option<u64>) {
        self.lost = events;
    }

    /// Events that were lost before they could become samples, where that is known.
    pub fn lost(&self) -> Option<u64> {
        self.lost
    }

    /// Times of the first and of the last sample, ns of the monotonic clock; none without samples.
    pub fn span(&self) -> Option<(u64, u64)> {
        self.span
    }

    /// The samples by stack and labels, in the order in which each was first added.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// How many distinct stacks there are. Their numbers count up from 0.
    pub fn len(&self) -> usize {
        self.stacks.len()
    }

    /// Whether there is no stack.
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// How many distinct frames there are. Their numbers count up from 0.
    pub(super) fn frame_count(&self) -> usize {
        self.frames.all.len()
    }

    /// The numbers of a stack's frames, outermost last; none of an unknown one.
    pub(crate) fn frames_of(&self, stack: StackId) -> &[u32] {
        self.stacks.get(stack.0 as usize).map_or(&[], |s| s)
    }

    /// The frame with a number of [`Stacks::frames_of`].
    pub(crate) fn frame_at(&self, id: u32) -> Frame<'_> {
        self.frames.all.get(id as usize).map_or_else(Frame::default, |f| Frame {
            function: self.strings.get(f.function),
            module: self.strings.get(f.module),
            file: self.strings.get(f.file),
            line: f.line,
            inlined: f.inlined,
            guessed: f.guessed,
            kernel: f.kernel,
        })
    }

    /// The labels with a number.
    pub fn labels_of(&self, id: LabelsId) -> Labels<'_> {
        self.labels.all.get(id.0 as usize).map_or_else(Labels::default, |l| Labels {
            pid: own(l.pid),
            tid: own(l.tid),
            comm: self.strings.get(l.comm),
        })
    }

    /// The weight of each distinct stack, over all threads, by the stack's number.
    pub(super) fn by_stack(&self) -> Vec<Tally> {
        let mut all = vec![Tally::default(); self.stacks.len()];
        for e in &self.entries {
            all[e.stack.0 as usize].join(e.tally);
        }
        all
    }

    /// The number of the stack at `index` of [`Stacks::by_stack`].
    pub(super) fn nth(&self, index: usize) -> StackId {
        StackId(u32::try_from(index).unwrap_or(NONE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(s: &mut Stacks, function: &str) -> FrameId {
        s.frame(&Frame { function, ..Frame::default() })
    }

    #[test]
    fn a_stack_is_held_once() {
        let mut s = Stacks::new(Unit::Events);
        let (a, b) = (frame(&mut s, "a"), frame(&mut s, "b"));
        assert_eq!(frame(&mut s, "a"), a);
        let ab = s.stack(&[a, b]);
        assert_eq!((s.stack(&[a, b]), s.stack(&[b, a]) == ab), (ab, false));
        let me = s.labels(Labels { pid: 1, tid: 2, comm: "me" });
        s.add(ab, me, 5, 30);
        s.add(ab, me, 6, 20);
        assert_eq!((s.entries().len(), s.entries()[0].tally), (1, Tally { samples: 2, weight: 11 }));
        assert_eq!((s.span(), s.len(), s.labels_of(me).comm), (Some((20, 30)), 2, "me"));
        assert_eq!((s.total(), s.not_held()), (Tally { samples: 2, weight: 11 }, Tally::default()));
    }

    #[test]
    fn what_does_not_fit_is_counted_exactly() {
        let limits = [
            Limits { stacks: 2, ..Limits::default() },
            Limits { depth: 4, ..Limits::default() },
            Limits { frames: 3, ..Limits::default() },
            Limits { entries: 2, ..Limits::default() },
            Limits { names: 3 * 65, ..Limits::default() },
            Limits { labels: 0, ..Limits::default() },
        ];
        for limits in limits {
            let mut s = Stacks::with_limits(Unit::Events, limits);
            let root = frame(&mut s, "r");
            for weight in 1..=4 {
                let leaf = frame(&mut s, ["a", "b", "c", "d"][weight as usize - 1]);
                let (stack, labels) = (s.stack(&[leaf, root]), s.labels(Labels::default()));
                s.add(stack, labels, weight, 0);
            }
            let want = if limits.labels == 0 { (4, 10) } else { (2, 7) };
            assert_eq!((s.not_held().samples, s.not_held().weight), want, "{limits:?}");
            assert_eq!((s.total().samples, s.total().weight), (4, 10));
        }
    }

    #[test]
    fn numbers_of_another_profile_are_lost_and_no_panic() {
        let mut other = Stacks::new(Unit::Events);
        let (f, l) = (frame(&mut other, "f"), other.labels(Labels::default()));
        let stack = other.stack(&[f]);
        let mut s = Stacks::new(Unit::Events);
        assert_eq!(s.stack(&[f]), StackId(NONE));
        s.add(stack, l, u64::MAX, 0);
        s.add(stack, l, 1, 0);
        assert_eq!(s.not_held(), Tally { samples: 2, weight: u64::MAX });
    }

    #[test]
    fn outer_frames_of_an_endless_stack_are_cut() {
        let mut s = Stacks::new(Unit::Events);
        let (a, b) = (frame(&mut s, "a"), frame(&mut s, "b"));
        let mut frames = vec![b; MAX_DEPTH + 10];
        frames[0] = a;
        let id = s.stack(&frames);
        assert_eq!((s.frames_of(id).len(), s.frames_of(id)[0]), (MAX_DEPTH, a.0));
    }
}
