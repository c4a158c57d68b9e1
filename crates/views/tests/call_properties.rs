//! Random calls: what views add up is what was called, and whatever records are lost, nothing is counted twice.

mod calls;

use calls::{Names, thread};
use std::collections::HashMap;
use testkit::{Random, rounds};
use views::calls::brief::{Brief, Screen};
use views::calls::cat::Cat;
use views::calls::contexts::Contexts;
use views::calls::edges::Edges;
use views::calls::json::Json;
use views::calls::stack::{Call, Calls, Stack};
use views::calls::totals::{Totals, in_parallel};
use views::calls::tree::Tree;
use views::calls::tree::style::Style;
use views::calls::{CallView, Selection, Step, What};

/// What the calls of a function add up to, computed from the tree itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Truth {
    calls: u64,
    total: u64,
    own: u64,
    sum: u64,
    min: u64,
    max: u64,
}

/// A random tree of calls while it is walked.
struct Walk<'a> {
    random: &'a mut Random,
    functions: u64,
    time: u64,
    steps: Vec<Step>,
    truth: HashMap<u32, Truth>,
    edges: HashMap<(u32, u32), (u64, u64)>,
    open: Vec<u32>,
    left: usize,
}

impl Walk<'_> {
    /// A call and what it calls; returns its duration.
    fn call(&mut self) -> u64 {
        let f = 1 + self.random.below(self.functions) as u32;
        self.left = self.left.saturating_sub(1);
        let (caller, start) = (self.open.last().copied(), self.time);
        self.steps.push(Step::entry(start, f));
        let is_outermost = !self.open.contains(&f);
        let is_outermost_edge = caller.is_none_or(|c| !self.open.windows(2).any(|w| w == [c, f]));
        self.open.push(f);
        let (mut callees, children) = (0, self.random.below(4));
        for _ in 0..children {
            self.time += self.random.below(50);
            if self.left > 0 && self.open.len() < 30 {
                callees += self.call();
            }
        }
        self.time += self.random.below(100);
        self.open.pop();
        self.steps.push(Step::exit(self.time, f));
        let duration = self.time - start;
        let t = self.truth.entry(f).or_insert(Truth { min: u64::MAX, ..Truth::default() });
        *t = Truth {
            calls: t.calls + 1,
            total: t.total + if is_outermost { duration } else { 0 },
            own: t.own + duration - callees,
            sum: t.sum + duration,
            min: t.min.min(duration),
            max: t.max.max(duration),
        };
        if let Some(c) = caller {
            let edge = self.edges.entry((c, f)).or_default();
            *edge = (edge.0 + 1, edge.1 + if is_outermost_edge { duration } else { 0 });
        }
        duration
    }
}

fn walk(random: &mut Random) -> Walk<'_> {
    let functions = 1 + random.below(8);
    let calls = 1 + random.index(200);
    let mut walk = Walk {
        random,
        functions,
        time: 1000,
        steps: Vec::new(),
        truth: HashMap::new(),
        edges: HashMap::new(),
        open: Vec::new(),
        left: calls,
    };
    while walk.left > 0 {
        walk.call();
        walk.time += walk.random.below(10);
    }
    walk
}

#[test]
fn totals_and_edges_are_those_of_the_tree() {
    let mut random = Random::new(1);
    for round in 0..rounds(300) {
        let walk = walk(&mut random);
        let totals =
            in_parallel([walk.steps.clone()], 1, 0, (&Selection::default(), &Names::default()), |steps, feed| {
                feed.steps(steps)
            });
        let of = |f| {
            totals.get(f).map(|t| Truth {
                calls: t.calls,
                total: t.total,
                own: t.own,
                sum: t.sum,
                min: t.min,
                max: t.max,
            })
        };
        assert_eq!(totals.iter().count(), walk.truth.len(), "round {round}");
        walk.truth.iter().for_each(|(f, truth)| assert_eq!(of(*f), Some(*truth), "round {round}, function {f}"));
        assert_eq!(totals.counts.steps, walk.steps.len() as u64);
        assert_eq!(totals.counts.doubts(), None);

        let (mut stack, mut contexts) = (Stack::new(), Contexts::default());
        walk.steps.iter().for_each(|s| stack.step(*s, &mut contexts));
        let edges = Edges::new(&contexts);
        // The time of an edge in different contexts is joined only where one is not inside of the other.
        assert_eq!(edges.all().len(), walk.edges.len(), "round {round}");
        for e in edges.all() {
            assert_eq!(Some(&(e.calls, e.time)), walk.edges.get(&(e.from, e.to)), "round {round}, {e:?}");
        }
    }
}

#[test]
fn workers_share_threads() {
    let mut random = Random::new(2);
    let threads: Vec<_> = (0..20).map(|_| walk(&mut random).steps).collect();
    let all = |workers| {
        let totals =
            in_parallel(threads.clone(), workers, 5000, (&Selection::default(), &Names::default()), |steps, feed| {
                feed.steps(steps)
            });
        let mut rows: Vec<_> = totals.iter().map(|(f, t)| (f, *t)).collect();
        rows.sort_by_key(|r| r.0);
        (rows, totals.counts, totals.threads)
    };
    assert_eq!(all(1), all(3));
    assert_eq!(all(1).2, 20);
    let everything = Selection { only: vec!["*".to_owned()], ..Selection::default() };
    let selected =
        in_parallel(threads.clone(), 2, 5000, (&everything, &Names::default()), |steps, feed| feed.steps(steps));
    let mut rows: Vec<_> = selected.iter().map(|(f, t)| (f, *t)).collect();
    rows.sort_by_key(|r| r.0);
    assert_eq!(rows, all(1).0);
}

/// Steps of which some are lost, doubled, of other functions, or out of order.
fn damaged(random: &mut Random) -> Vec<Step> {
    let mut steps = walk(random).steps;
    for _ in 0..random.below(20) {
        let at = random.index(steps.len());
        let Some(step) = steps.get(at).copied() else { break };
        match random.below(7) {
            0 | 1 => drop(steps.remove(at)),
            2 => steps.insert(at, step),
            3 => steps[at].what = What::Exit(random.of(&[1, 2, 3, 77, u32::MAX])),
            4 => steps[at].time = random.of(&[0, step.time / 2, step.time.saturating_mul(2), u64::MAX]),
            5 => steps.insert(at, Step { time: step.time, what: What::Gap { dropped: random.of(&[0, 1, u64::MAX]) } }),
            _ => steps.insert(at, Step { time: step.time, what: What::End }),
        }
    }
    steps
}

/// Checks that calls end innermost first, each inside of its caller, and that each ends once.
#[derive(Default)]
struct Checked {
    open: Vec<(u32, u64)>,
    entered: u64,
    ended: u64,
    own: u64,
    outermost: u64,
    last: u64,
}

impl Calls for Checked {
    fn entered(&mut self, function: u32, start: u64, depth: usize) {
        assert_eq!(depth, self.open.len());
        assert!(start >= self.last);
        self.last = start;
        self.open.push((function, start));
        self.entered += 1;
    }

    fn ended(&mut self, call: &Call) {
        let (function, start) = self.open.pop().expect("an open call");
        assert_eq!((call.function, call.start, call.depth), (function, start, self.open.len()));
        assert!(call.end >= self.last && call.own <= call.duration());
        assert_eq!(call.outermost, !self.open.iter().any(|o| o.0 == function));
        self.last = call.end;
        self.ended += 1;
        self.own += call.own;
        if call.depth == 0 {
            self.outermost += call.duration();
        }
    }
}

#[test]
fn damaged_records_are_counted_once() {
    let mut random = Random::new(3);
    for _ in 0..rounds(1000) {
        let steps = damaged(&mut random);
        let (mut stack, mut checked) = (Stack::new(), Checked::default());
        for step in &steps {
            stack.step(*step, &mut checked);
        }
        stack.finish(0, &mut checked);
        let entries = steps.iter().filter(|s| matches!(s.what, What::Entry(_))).count() as u64;
        assert_eq!((checked.entered, checked.ended, stack.open().len()), (entries, entries, 0));
        assert_eq!(checked.own, checked.outermost, "time is in the function where it was spent, once");
        let exits = steps.iter().filter(|s| matches!(s.what, What::Exit(_))).count() as u64;
        let c = *stack.counts();
        assert_eq!(entries - c.left - c.unfinished, exits - c.unmatched, "each exit ends one call, or none");
    }
}

#[test]
fn no_view_fails_on_damaged_records() {
    let mut random = Random::new(4);
    for _ in 0..rounds(100) {
        let threads: Vec<_> = (0..3).map(|_| damaged(&mut random)).collect();
        let selection = Selection {
            only: if random.below(2) == 0 { vec![] } else { vec!["f1".into(), "f3".into()] },
            without: if random.below(2) == 0 { vec![] } else { vec!["f2".into()] },
            depth: random.of(&[1, 3, usize::MAX]),
            shortest: random.of(&[0, 0, 50]),
        };
        let mut names = Names::default();
        (1..6).for_each(|n| _ = names.id(&format!("f{n}")));
        let screen = || Screen { rows: 12, hint: String::new() };
        let mut views: Vec<Box<dyn CallView>> = vec![
            Box::new(Tree::new(Style::default(), selection.clone())),
            Box::new(Cat::new(selection.clone())),
            Box::new(Json::new(selection.clone())),
            Box::new(Brief::new(Style::default(), selection.clone(), screen())),
        ];
        for (n, view) in views.iter_mut().enumerate() {
            let mut out = Vec::new();
            let mut at = vec![0; threads.len()];
            while let Some(t) =
                (0..threads.len()).filter(|t| at[*t] < threads[*t].len()).min_by_key(|t| threads[*t][at[*t]].time)
            {
                view.step(thread(100 + t as u32), threads[t][at[t]], &names, &mut out);
                at[t] += 1;
                if random.below(50) == 0 {
                    view.flush(random.below(10_000), &names, &mut out);
                }
            }
            view.end(&names, &mut out);
            if n == 0 {
                // Each line of an entry has one of its end.
                let text = String::from_utf8(out).unwrap();
                let entries = text.lines().filter(|l| l.ends_with(" {")).count();
                let without_duration =
                    |l: &&str| l.contains("| ") && l.contains("} /* ") && !l.starts_with("            [");
                assert_eq!(text.lines().filter(without_duration).count(), entries, "{selection:?}\n{text}");
            }
        }
    }
}

#[test]
fn totals_of_damaged_records_are_bounded() {
    let mut random = Random::new(5);
    for _ in 0..rounds(300) {
        let steps = damaged(&mut random);
        let mut totals = Totals::new();
        totals.thread(steps.iter().copied(), 0);
        let last = steps.iter().map(|s| s.time).max().unwrap_or(0);
        let first = steps.iter().map(|s| s.time).min().unwrap_or(0);
        for (f, t) in totals.iter() {
            assert!(t.own <= t.total && t.total <= last - first && t.total <= t.sum, "{f} {t:?}");
        }
    }
}
