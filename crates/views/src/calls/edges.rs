//! Who calls whom, as a drawing: functions and the calls from one to another, in the languages of Graphviz and Mermaid.
//!
//! The time of an edge is that of the calls along it; of those inside of other calls along the same edge, only the outermost counts. Of
//! many edges only those with the most time are drawn, and a note says how many are not.

mod dot;
mod mermaid;

use super::by_thread::{ByThread, How};
use super::contexts::Contexts;
use super::totals::Total;
use super::{Functions, label};
use crate::profile::name::shortened;
use crate::profile::words::losses;
use crate::units::duration;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// The most characters of a name in a node.
const LONGEST: usize = 200;
/// Edges that are drawn where nobody has asked for another number.
pub const MOST: usize = 100;

/// Appends the graph of a trace, in Graphviz's language.
pub fn dot(calls: &dyn ByThread, how: &How, out: &mut Vec<u8>) {
    graph(calls, how, Language::Dot, out);
}

/// Appends the graph of a trace, in Mermaid's language.
pub fn mermaid(calls: &dyn ByThread, how: &How, out: &mut Vec<u8>) {
    graph(calls, how, Language::Mermaid, out);
}

fn graph(calls: &dyn ByThread, how: &How, language: Language, out: &mut Vec<u8>) {
    let mut all = Contexts::default();
    calls.contexts(&mut |_, contexts| all.join(contexts));
    let mut edges = Edges::new(&all);
    edges.lost = calls.lost();
    edges.write(language, how.rows.unwrap_or(MOST), calls.functions(), out);
}

/// Calls of one function by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The caller.
    pub from: u32,
    /// Who is called.
    pub to: u32,
    /// How many calls.
    pub calls: u64,
    /// Their time, ns.
    pub time: u64,
}

/// The languages of drawings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Graphviz.
    Dot,
    /// Mermaid, which is drawn by code hosts and by many editors.
    Mermaid,
}

/// The edges, and the totals of the functions at their ends.
#[derive(Clone, Debug, Default)]
pub struct Edges {
    edges: Vec<Edge>,
    functions: HashMap<u32, Total>,
    /// Calls that are in no edge, because there were too many contexts.
    unplaced: u64,
    /// Events that were lost, where that is known.
    pub lost: Option<u64>,
}

impl Edges {
    /// The edges of calls.
    pub fn new(contexts: &Contexts) -> Edges {
        let mut walk = Walk::default();
        walk.run(contexts);
        let mut edges: Vec<Edge> = walk
            .edges
            .into_iter()
            .map(|((from, to), sum)| Edge { from, to, calls: sum.total.calls, time: sum.total.total })
            .collect();
        order::by_key(&mut edges, |e| (Reverse((e.time, e.calls)), e.from, e.to));
        let functions = walk.functions.into_iter().map(|(f, sum)| (f, sum.total)).collect();
        Edges { edges, functions, unplaced: contexts.unplaced, lost: None }
    }

    /// All edges, those with the most time first.
    pub fn all(&self) -> &[Edge] {
        &self.edges
    }

    /// Appends a drawing of at most `most` edges.
    pub fn write(&self, language: Language, most: usize, functions: &dyn Functions, out: &mut Vec<u8>) {
        let shown = &self.edges[..self.edges.len().min(most)];
        let mut nodes: BTreeMap<u32, Vec<String>> =
            shown.iter().flat_map(|e| [e.from, e.to]).map(|f| (f, self.lines(f, functions))).collect();
        if self.edges.is_empty() {
            nodes = self.functions.keys().take(most).map(|f| (*f, self.lines(*f, functions))).collect();
        }
        let note = self.note(shown.len());
        match language {
            Language::Dot => dot::write(&nodes, shown, self.whole(), note.as_deref(), out),
            Language::Mermaid => mermaid::write(&nodes, shown, note.as_deref(), out),
        }
    }

    /// The lines of a function's node.
    fn lines(&self, function: u32, functions: &dyn Functions) -> Vec<String> {
        let t = self.functions.get(&function).copied().unwrap_or_default();
        vec![
            shortened(&label::plain(function, functions), LONGEST).into_owned(),
            label::module(function, functions),
            format!("{} (self {}), {}x", duration(t.total), duration(t.own), t.calls),
        ]
    }

    fn whole(&self) -> u64 {
        self.functions.values().map(|t| t.total).max().unwrap_or(0)
    }

    fn note(&self, shown: usize) -> Option<String> {
        let mut parts = Vec::new();
        let rest = &self.edges[shown..];
        if !rest.is_empty() {
            let most = duration(rest[0].time);
            parts.push(format!("{} of {} edges are not drawn, each of {most} at most", rest.len(), self.edges.len()));
        }
        if self.unplaced > 0 {
            parts.push(format!("{} calls are missing: too many call paths", self.unplaced));
        }
        parts.extend(losses(self.lost));
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// A sum over nodes, and how many open nodes it contains.
#[derive(Clone, Copy, Default)]
struct Sum {
    total: Total,
    open: u32,
}

impl Sum {
    fn enter(&mut self, calls: u64, time: u64, own: u64) {
        self.total.calls += calls;
        self.total.own = self.total.own.saturating_add(own);
        if self.open == 0 {
            self.total.total = self.total.total.saturating_add(time);
        }
        self.open += 1;
    }
}

/// A walk through all nodes, callers first, that knows which functions and edges are open.
#[derive(Default)]
struct Walk {
    edges: HashMap<(u32, u32), Sum>,
    functions: HashMap<u32, Sum>,
}

impl Walk {
    fn run(&mut self, contexts: &Contexts) {
        let nodes = &contexts.nodes;
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); nodes.len()];
        for (i, n) in nodes.iter().enumerate().skip(1) {
            children[n.parent as usize].push(i as u32);
        }
        // A node is there twice: to be entered, and to be left.
        let mut todo: Vec<(u32, bool)> = children[0].iter().map(|c| (*c, false)).collect();
        while let Some((node, leave)) = todo.pop() {
            let n = &nodes[node as usize];
            let edge = (n.parent != 0).then(|| (nodes[n.parent as usize].function, n.function));
            let function = self.functions.entry(n.function).or_default();
            if leave {
                function.open -= 1;
            } else {
                function.enter(n.calls, n.total, n.own);
                todo.push((node, true));
                todo.extend(children[node as usize].iter().map(|c| (*c, false)));
            }
            let Some(edge) = edge else { continue };
            let edge = self.edges.entry(edge).or_default();
            if leave {
                edge.open -= 1;
            } else {
                edge.enter(n.calls, n.total, 0);
            }
        }
    }
}
