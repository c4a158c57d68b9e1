//! The answer first: the slowest outermost call with what it called, in about a screenful, and a line about what is not shown.
//!
//! ```text
//! # DURATION     TID     FUNCTION
//!  100.000 ms [ 4711] | main() {
//!   90.000 ms [ 4711] |   parse() {  × 12
//!   80.000 ms [ 4711] |     read_line();  × 1000
//!             [ 4711] |     … 3 more functions, 4.00 ms
//! # …
//! ```
//!
//! Calls of a function that have the same functions around them are one line, with how many they are and the sum of their times, in the order
//! of their first calls; so are calls that a function makes of itself. Where there is not room for all, those with the most time are shown. Calls that fit as they are, are shown as
//! [`Tree`] does it.

pub use super::making::Screen;

use super::by_thread::{ByThread, How};
use super::contexts::{Contexts, NONE};
use super::label::Labels;
use super::selection::{Place, Selected, Selection, Verdicts};
use super::stack::{Call, Calls, Counts, Stack};
use super::threads::Threads;
use super::tree::Tree;
use super::tree::style::{Style, indent};
use super::{CallView, Functions, Making, Step, SystemCall, Thread};
use crate::units::duration;
use events::traces::own;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Nodes of all calls together.
const NODES: usize = 200_000;
/// Slow outermost calls that are kept, to fill the screen.
const KEPT: usize = 8;

/// Calls of a function that have the same functions around them. Calls that it makes of itself are among them.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    function: u32,
    parent: u32,
    calls: u64,
    /// Their time, ns; of calls inside of each other, only that of the outermost.
    total: u64,
    calls_itself: bool,
}

/// An outermost call with the calls in it.
#[derive(Clone, Debug)]
struct Root {
    tid: u32,
    time: u64,
    /// The first is the call itself; the others are in the order of their first calls, their parents before them.
    nodes: Vec<Node>,
    /// Calls that did not fit.
    unplaced: u64,
}

/// The outermost call of a thread that is open.
#[derive(Debug, Default)]
struct Building {
    nodes: Vec<Node>,
    /// For each open call, its place among all contexts and among the nodes.
    open: Vec<(u32, u32)>,
    /// Which outermost call of all threads it is.
    number: u64,
    unplaced: u64,
}

/// What was seen of all threads.
#[derive(Debug)]
struct Seen {
    contexts: Contexts,
    /// For each context, the last outermost call with it, and its node there.
    nodes: Vec<(u64, u32)>,
    roots: u64,
    calls: u64,
    slowest: Vec<Root>,
}

#[derive(Debug, Default)]
struct State {
    stack: Stack,
    place: Place,
    building: Building,
}

/// The view. It shows everything at the end.
pub struct Brief {
    style: Style,
    screen: Screen,
    verdicts: Verdicts,
    threads: Threads<State>,
    seen: Seen,
    /// All calls as they are, as long as they fit.
    whole: Option<Whole>,
}

/// Calls below their callers. On a terminal a tree is a short one.
pub fn open(making: Making) -> Box<dyn CallView> {
    let Making { style, selection, .. } = making;
    match making.screen {
        Some(screen) => Box::new(Brief::new(style, selection, screen)),
        None => Box::new(Tree::new(style, selection)),
    }
}

/// The slowest outermost calls.
pub fn show(calls: &dyn ByThread, _: &How, out: &mut Vec<u8>) {
    calls.slowest(out);
}

/// All calls as they are.
struct Whole {
    tree: Tree,
    text: Vec<u8>,
    /// Lines in this many bytes of the text.
    counted: (usize, usize),
}

impl Whole {
    fn is_too_long(&mut self, rows: usize) -> bool {
        let (lines, bytes) = self.counted;
        let lines = lines + self.text[bytes..].iter().filter(|b| **b == b'\n').count();
        self.counted = (lines, self.text.len());
        lines > rows || self.text.len() > rows.saturating_mul(4096)
    }
}

impl Brief {
    /// What is selected, on a screen.
    pub fn new(style: Style, selection: Selection, screen: Screen) -> Brief {
        let seen = Seen { contexts: Contexts::new(NODES), nodes: Vec::new(), roots: 0, calls: 0, slowest: Vec::new() };
        let whole = Some(Whole { tree: Tree::new(style, selection.clone()), text: Vec::new(), counted: (0, 0) });
        let verdicts = Verdicts::new(selection);
        Brief { style, screen, verdicts, threads: Threads::new(), seen, whole }
    }

    /// For threads one after the other: calls are not shown as they are, however few there are.
    pub fn by_thread(self) -> Brief {
        Brief { whole: None, ..self }
    }

    fn with(&mut self, index: usize, functions: &dyn Functions, work: impl FnOnce(&mut Stack, &mut dyn Calls)) {
        let (identity, state) = self.threads.at(index);
        let thread = u32::try_from(index).unwrap_or(NONE);
        let builder = Builder { thread, tid: own(identity.tid), building: &mut state.building, seen: &mut self.seen };
        let mut calls = Selected { place: &mut state.place, verdicts: &mut self.verdicts, functions, calls: builder };
        work(&mut state.stack, &mut calls);
    }

    /// Gives the view of all calls up where it has become too long.
    fn limit(&mut self) {
        if self.whole.as_mut().is_some_and(|w| w.is_too_long(self.screen.rows)) {
            self.whole = None;
        }
    }

    fn counts(&self) -> Counts {
        let mut all = Counts::default();
        self.threads.iter().for_each(|(_, s)| all.join(s.stack.counts()));
        all
    }

    fn summary(&self, shown: usize, roots: usize) -> String {
        let (calls, all_roots) = (self.seen.calls, self.seen.roots);
        let outermost = match (roots, all_roots) {
            (_, 1) => "1 outermost call".to_owned(),
            (1, n) => format!("the slowest of {n} outermost calls"),
            (m, n) => format!("the {m} slowest of {n} outermost calls"),
        };
        let doubts = self.counts().doubts().map_or(String::new(), |doubts| format!("# {doubts}\n"));
        format!("{doubts}# {shown} lines for {outermost}; {calls} calls in all. {}\n", self.screen.hint)
    }
}

struct Builder<'a> {
    /// Index of the thread, whose contexts are apart from those of others.
    thread: u32,
    tid: u32,
    building: &'a mut Building,
    seen: &'a mut Seen,
}

impl Builder<'_> {
    /// The node of a function that is called where `parent` is.
    fn node(&mut self, parent: (u32, u32), function: u32) -> (u32, u32) {
        if parent.0 == NONE {
            return parent;
        }
        let context = self.seen.contexts.child(parent.0, function);
        let Some(index) = Some(context as usize).filter(|_| context != NONE) else { return (NONE, 0) };
        if self.seen.nodes.len() <= index {
            self.seen.nodes.resize((index + 1).next_power_of_two(), (0, 0));
        }
        let (number, node) = self.seen.nodes[index];
        if number == self.building.number {
            return (context, node);
        }
        let node = self.building.nodes.len() as u32;
        self.building.nodes.push(Node { function, parent: parent.1, ..Node::default() });
        self.seen.nodes[index] = (self.building.number, node);
        (context, node)
    }

    fn end_of_root(&mut self, time: u64) {
        let slowest = &mut self.seen.slowest;
        let place = slowest.partition_point(|r| r.time >= time);
        if place < KEPT && !self.building.nodes.is_empty() {
            slowest.truncate(KEPT - 1);
            let nodes = self.building.nodes.clone();
            slowest.insert(place, Root { tid: self.tid, time, nodes, unplaced: self.building.unplaced });
        }
        self.building.nodes.clear();
        self.building.unplaced = 0;
    }
}

impl Calls for Builder<'_> {
    fn entered(&mut self, function: u32, _start: u64, depth: usize) {
        self.seen.calls += 1;
        if depth == 0 {
            self.seen.roots += 1;
            self.building.number = self.seen.roots;
        }
        let parent = match self.building.open.last() {
            Some(caller) => *caller,
            None => (self.seen.contexts.child(0, self.thread), 0),
        };
        let is_recursion = depth > 0
            && parent.0 != NONE
            && self.building.nodes.get(parent.1 as usize).is_some_and(|n| n.function == function);
        let node = if is_recursion { parent } else { self.node(parent, function) };
        self.building.open.push(node);
    }

    fn ended(&mut self, call: &Call) {
        let Some((context, node)) = self.building.open.pop() else { return };
        match self.building.nodes.get_mut(node as usize).filter(|_| context != NONE) {
            Some(n) => {
                n.calls += 1;
                if self.building.open.last() == Some(&(context, node)) {
                    n.calls_itself = true;
                } else {
                    n.total = n.total.saturating_add(call.duration());
                }
            }
            None => self.building.unplaced += 1,
        }
        if self.building.open.is_empty() {
            self.end_of_root(call.duration());
        }
    }
}

impl CallView for Brief {
    fn step(&mut self, thread: Thread<'_>, step: Step, functions: &dyn Functions, _out: &mut Vec<u8>) {
        if let Some(Whole { tree, text, .. }) = &mut self.whole {
            tree.step(thread, step, functions, text);
            self.limit();
        }
        let (index, _) = self.threads.index(thread);
        self.with(index, functions, |stack, mut calls| stack.step(step, &mut calls));
    }

    fn system_call(
        &mut self,
        thread: Thread<'_>,
        call: &SystemCall<'_>,
        functions: &dyn Functions,
        _out: &mut Vec<u8>,
    ) {
        if let Some(Whole { tree, text, .. }) = &mut self.whole {
            tree.system_call(thread, call, functions, text);
            self.limit();
        }
    }

    fn end(&mut self, functions: &dyn Functions, out: &mut Vec<u8>) {
        if let Some(Whole { tree, text, .. }) = &mut self.whole {
            tree.end(functions, text);
        }
        self.limit();
        if let Some(Whole { text, .. }) = &self.whole {
            out.extend_from_slice(text);
            return;
        }
        for index in 0..self.threads.len() {
            self.with(index, functions, |stack, mut calls| stack.finish(0, &mut calls));
        }
        self.style.heading(out);
        let mut room = self.screen.rows.saturating_sub(2).max(1);
        let (all, mut roots) = (room, 0);
        let mut labels = Labels::default();
        for root in &self.seen.slowest {
            if room == 0 || root.time < self.verdicts.selection().shortest {
                break;
            }
            // What hardly matters in this one leaves room for the others.
            let least = if self.seen.slowest.len() > 1 { root.time / 1000 } else { 0 };
            let shown = Outline::new(root, room, (self.verdicts.selection().shortest, least));
            room = room.saturating_sub(shown.write(&self.style, &mut labels, functions, out));
            roots += 1;
        }
        out.extend_from_slice(self.summary(all - room, roots).as_bytes());
    }
}

/// The nodes of an outermost call that are shown.
struct Outline<'a> {
    root: &'a Root,
    is_shown: Vec<bool>,
    children: Vec<Vec<u32>>,
    /// For each node, how many of those below it are not shown, and their time.
    hidden: Vec<(usize, u64)>,
}

impl<'a> Outline<'a> {
    /// As many nodes as `room` lines have room for, those with the most time, each with those around it. Where much of a node's time is that
    /// of nodes below it which are not shown, one more line says so. Nodes of less than `shortest` are not shown, those of less than
    /// `least` not if that takes a line.
    fn new(root: &'a Root, room: usize, (shortest, least): (u64, u64)) -> Outline<'a> {
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); root.nodes.len()];
        let mut hidden = vec![(0usize, 0u64); root.nodes.len()];
        for (i, n) in root.nodes.iter().enumerate().skip(1) {
            children[n.parent as usize].push(i as u32);
            let below = &mut hidden[n.parent as usize];
            *below = (below.0 + 1, below.1.saturating_add(n.total));
        }
        let is_shown = vec![false; root.nodes.len()];
        let mut outline = Outline { root, is_shown, children, hidden };
        let mut heap: BinaryHeap<(u64, Reverse<u32>)> = BinaryHeap::new();
        heap.push((u64::MAX, Reverse(0)));
        let mut lines = 0;
        while let Some((_, Reverse(node))) = heap.pop() {
            let n = &root.nodes[node as usize];
            let above = Some(n.parent).filter(|_| node > 0);
            let rest = |o: &Outline<'_>| above.map_or(0, |parent| usize::from(o.has_rest(parent)));
            let before = rest(&outline);
            if let Some(below) = above.and_then(|parent| outline.hidden.get_mut(parent as usize)) {
                *below = (below.0 - 1, below.1.saturating_sub(n.total));
            }
            let with = lines + 1 + usize::from(outline.has_rest(node)) + rest(&outline) - before;
            if lines > 0 && with > room {
                if let Some(below) = above.and_then(|parent| outline.hidden.get_mut(parent as usize)) {
                    *below = (below.0 + 1, below.1.saturating_add(n.total));
                }
                break;
            }
            lines = with;
            outline.is_shown[node as usize] = true;
            let below = outline.children[node as usize].iter().map(|c| (root.nodes[*c as usize].total, Reverse(*c)));
            heap.extend(below.filter(|(total, _)| *total >= shortest.max(least)));
        }
        outline.show_single(shortest);
        outline
    }

    /// A line about one call that is left out is no shorter than its own.
    fn show_single(&mut self, shortest: u64) {
        for (node, children) in self.children.iter().enumerate() {
            let mut hidden = children.iter().filter(|c| !self.is_shown[**c as usize]);
            if let (Some(&c), None) = (hidden.next(), hidden.next())
                && self.is_shown[node]
                && self.has_rest(node as u32)
                && self.children[c as usize].is_empty()
                && self.root.nodes[c as usize].total >= shortest
            {
                self.is_shown[c as usize] = true;
                self.hidden[node] = (0, 0);
            }
        }
    }

    /// Whether a line says what is not shown below a node: it is a hundredth of its time, or calls of which nothing is known.
    fn has_rest(&self, node: u32) -> bool {
        let (hidden, time) = self.hidden[node as usize];
        let is_much = time >= self.root.nodes[node as usize].total / 100;
        hidden > 0 && is_much || node == 0 && self.root.unplaced > 0
    }

    /// Appends the lines; returns how many they are.
    fn write(&self, style: &Style, labels: &mut Labels, functions: &dyn Functions, out: &mut Vec<u8>) -> usize {
        let mut lines = 0;
        // Nodes, and ends of nodes: the number of the node plus 1.
        let mut todo = vec![(0u32, 0usize, false)];
        while let Some((node, depth, is_end)) = todo.pop() {
            if is_end {
                lines += usize::from(self.rest(node, depth, style, out));
                continue;
            }
            let children = &self.children[node as usize];
            self.line(node, depth, style, labels, functions, out);
            lines += 1;
            todo.push((node, depth + 1, true));
            todo.extend(children.iter().rev().filter(|c| self.is_shown[**c as usize]).map(|c| (*c, depth + 1, false)));
        }
        lines
    }

    /// Whether no line follows that is inside of the node's.
    fn is_leaf(&self, node: u32) -> bool {
        !self.has_rest(node) && !self.children[node as usize].iter().any(|c| self.is_shown[*c as usize])
    }

    fn line(
        &self,
        node: u32,
        depth: usize,
        style: &Style,
        labels: &mut Labels,
        functions: &dyn Functions,
        out: &mut Vec<u8>,
    ) {
        let n = &self.root.nodes[node as usize];
        let module = style.module.then(|| labels.module(n.function, functions));
        style.columns(Some(n.total), Some(self.root.tid), module.as_deref(), out);
        indent(depth, out);
        let name = labels.call(n.function, functions);
        out.extend_from_slice(style.fitting(&name, depth).as_bytes());
        out.extend_from_slice(if self.is_leaf(node) { b";" } else { b" {" });
        if n.calls > 1 {
            let recursive = if n.calls_itself { ", recursive" } else { "" };
            out.extend_from_slice(format!("  × {}{recursive}", n.calls).as_bytes());
        }
        out.push(b'\n');
    }

    /// Appends a line about what is not shown below a node, if there is one.
    fn rest(&self, node: u32, depth: usize, style: &Style, out: &mut Vec<u8>) -> bool {
        if !self.has_rest(node) {
            return false;
        }
        let (hidden, time) = self.hidden[node as usize];
        let unplaced = if node == 0 { self.root.unplaced } else { 0 };
        let mut parts = Vec::new();
        if hidden > 0 {
            let what = if hidden == 1 { "function" } else { "functions" };
            parts.push(format!("{hidden} more {what}, {}", duration(time)));
        }
        if unplaced > 0 {
            parts.push(format!("{unplaced} calls on more paths than are kept"));
        }
        style.columns(None, Some(self.root.tid), style.module.then_some(""), out);
        indent(depth, out);
        out.extend_from_slice(format!("… {}\n", parts.join("; ")).as_bytes());
        true
    }
}
