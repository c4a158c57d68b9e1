//! Compares two traces thread by thread, counts what is identical and groups what is not.

use super::diff::{Step, align};
use super::normal::{Line, Run};
use super::parse::{Entry, Kind};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

/// How many entries are identical, of how many in at least one trace.
#[derive(Clone, Copy, Default)]
pub struct Share {
    pub same: usize,
    pub union: usize,
}

impl Share {
    pub fn percent(self) -> f64 {
        if self.union == 0 { 100.0 } else { 100.0 * self.same as f64 / self.union as f64 }
    }
}

/// The differences of one kind: how many, and some of them as the two lines.
#[derive(Default)]
struct Group {
    count: usize,
    examples: Vec<[Option<String>; 2]>,
}

/// The outcome of comparing two traces.
#[derive(Default)]
pub struct Comparison {
    pub calls: Share,
    /// Signals, stops and exits.
    pub process: Share,
    /// The calls of the left trace.
    pub left_calls: usize,
    pub right_calls: usize,
    names: [&'static str; 2],
    groups: BTreeMap<(String, String), Group>,
}

/// An entry, its normal form, and numbers that identify the whole form and the name.
struct Item<'a> {
    entry: &'a Entry,
    thread: String,
    line: Line,
    whole: u32,
    name: u32,
}

/// Gives equal texts equal numbers.
#[derive(Default)]
struct Interner(HashMap<String, u32>);

impl Interner {
    fn number(&mut self, text: String) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(text).or_insert(next)
    }
}

/// Compares two traces; the names are those of the tracers.
pub fn compare(names: [&'static str; 2], left: &[Entry], right: &[Entry]) -> Comparison {
    let mut interner = Interner::default();
    let mut left = by_thread(left, &mut interner);
    let mut right = by_thread(right, &mut interner);
    let mut comparison = Comparison { names, ..Comparison::default() };
    let threads: Vec<String> =
        left.keys().chain(right.keys().filter(|key| !left.contains_key(*key))).cloned().collect();
    for thread in threads {
        let [left, right] = [&mut left, &mut right].map(|side| side.remove(&thread).unwrap_or_default());
        comparison.thread(&left, &right);
    }
    comparison
}

fn by_thread<'a>(entries: &'a [Entry], interner: &mut Interner) -> BTreeMap<String, Vec<Item<'a>>> {
    let run = Run::new(entries);
    let mut threads: BTreeMap<String, Vec<Item>> = BTreeMap::new();
    for (index, entry) in entries.iter().enumerate() {
        let mut line = run.line(index, entry);
        if index == 0 {
            // The first execve is made by the tracer: its environment lies in the tracer's memory.
            line.args.addresses.clear();
        }
        let name = interner.number(entry.name.clone());
        let whole = interner.number(format!("{}({}) = {}", entry.name, line.args.text, line.result.text));
        let thread = run.thread(entry.pid).to_string();
        threads.entry(thread.clone()).or_default().push(Item { entry, thread, line, whole, name });
    }
    threads
}

impl Comparison {
    fn thread(&mut self, left: &[Item], right: &[Item]) {
        let numbers = |side: &[Item]| side.iter().map(|item| item.whole).collect::<Vec<_>>();
        let (mut gap_left, mut gap_right) = (Vec::new(), Vec::new());
        for step in align(&numbers(left), &numbers(right)) {
            match step {
                Step::Left(a) => gap_left.push(&left[a]),
                Step::Right(b) => gap_right.push(&right[b]),
                Step::Both(a, b) => {
                    self.gap(&gap_left, &gap_right);
                    gap_left.clear();
                    gap_right.clear();
                    self.pair(&left[a], &right[b]);
                }
            }
        }
        self.gap(&gap_left, &gap_right);
    }

    /// Between identical entries those of the same name belong together.
    fn gap(&mut self, left: &[&Item], right: &[&Item]) {
        let names = |side: &[&Item]| side.iter().map(|item| item.name).collect::<Vec<_>>();
        for step in align(&names(left), &names(right)) {
            match step {
                Step::Both(a, b) => self.pair(left[a], right[b]),
                Step::Left(a) => self.differs(&format!("only {}", self.names[0]), Some(left[a]), None),
                Step::Right(b) => self.differs(&format!("only {}", self.names[1]), None, Some(right[b])),
            }
        }
    }

    fn pair(&mut self, left: &Item, right: &Item) {
        let reason = match (left.line.args.same(&right.line.args), left.line.result.same(&right.line.result)) {
            (true, true) => {
                self.count(Some(left), Some(right)).same += 1;
                return;
            }
            (false, true) => "arguments",
            (true, false) => "result",
            (false, false) => "arguments and result",
        };
        self.differs(reason, Some(left), Some(right));
    }

    /// Counts an entry of the union; the share that it belongs to.
    fn count(&mut self, left: Option<&Item>, right: Option<&Item>) -> &mut Share {
        let is_call = left.or(right).is_some_and(|item| item.entry.kind == Kind::Call);
        self.left_calls += usize::from(is_call && left.is_some());
        self.right_calls += usize::from(is_call && right.is_some());
        let share = if is_call { &mut self.calls } else { &mut self.process };
        share.union += 1;
        share
    }

    fn differs(&mut self, reason: &str, left: Option<&Item>, right: Option<&Item>) {
        const EXAMPLES_KEPT: usize = 100;
        self.count(left, right);
        let name = left.or(right).map_or(String::new(), |item| item.entry.name.clone());
        let group = self.groups.entry((name, reason.to_string())).or_default();
        group.count += 1;
        if group.examples.len() < EXAMPLES_KEPT {
            let text = |item: &Item| format!("{} {} {}", item.entry.pid, item.thread, item.entry.text());
            group.examples.push([left.map(text), right.map(text)]);
        }
    }

    /// The whole report, with so many examples of each kind.
    pub fn text(&self, show: usize) -> String {
        let mut out = String::new();
        let [left, right] = self.names;
        let Share { same, union } = self.calls;
        let _ = writeln!(out, "{left}: {} calls; {right}: {} calls", self.left_calls, self.right_calls);
        let _ = writeln!(out, "identical: {same} of {union} calls, {:.2} %", self.calls.percent());
        let _ = writeln!(out, "identical: {} of {} signals, stops and exits", self.process.same, self.process.union);
        let mut groups: Vec<_> = self.groups.iter().collect();
        groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.count));
        for ((name, reason), group) in groups {
            let _ = writeln!(out, "{:>7}  {name}: {reason}", group.count);
            for example in group.examples.iter().take(show) {
                for (tracer, line) in self.names.iter().zip(example) {
                    let _ = writeln!(out, "         {tracer:>10}  {}", line.as_deref().unwrap_or("-"));
                }
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::compare;
    use crate::compare::parse::parse;

    fn compared(left: &str, right: &str) -> (usize, usize, String) {
        let comparison = compare(["strace", "trapline"], &parse(left).entries, &parse(right).entries);
        (comparison.calls.same, comparison.calls.union, comparison.text(1))
    }

    #[test]
    fn runs_that_differ_in_pids_and_addresses_are_the_same() {
        let left = "10 execve(\"a\", [\"a\"], 0x7ffe12345678 /* 3 vars */) = 0\n10 mmap(NULL, 8192) = 0x7f1234567000\n10 fork() = 11\n\
                    11 getpid() = 11\n10 kill(11, SIGTERM) = 0\n10 read(3, \"11\", 2) = 2\n";
        let right = left
            .replace("10 ", "20 ")
            .replace("11", "21")
            .replace("\"21\"", "\"11\"")
            .replace("0x7f123456", "0x7faaaaaa");
        assert_eq!(compared(left, &right).0, 6);
    }

    #[test]
    fn differences_are_named() {
        let left = "10 a(1) = 0\n10 b(\"x\", {tv_sec=5, tv_nsec=1}) = 3\n10 c() = 0x7f1234567120\n10 d() = 1\n";
        let right = "10 a(1) = 0\n10 b(\"y\", {tv_sec=5, tv_nsec=1}) = 3\n10 c() = 0x7f1234567128\n10 e() = 1\n";
        let (same, union, text) = compared(left, right);
        assert_eq!((same, union), (1, 5));
        for line in ["1  b: arguments", "1  c: result", "1  d: only strace", "1  e: only trapline"] {
            assert!(text.contains(line), "{text}");
        }
    }
}
