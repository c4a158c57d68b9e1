//! Calls joined by their callers: one node for all calls of a function that have the same functions around them.
//!
//! Node 0 is the root, around the outermost calls. A node's number is larger than that of its caller. [`Contexts::most`] nodes are made at
//! most, none deeper than [`DEEPEST`]; calls that would need others are counted in [`Contexts::unplaced`], and their time is that of the
//! innermost caller that has a node.

use super::stack::{Call, Calls};
use std::collections::HashMap;

/// The most nodes inside of each other, without the root: what a profile holds of a stack.
pub const DEEPEST: usize = crate::profile::stacks::MAX_DEPTH;
/// Of a call without a node.
pub(super) const NONE: u32 = u32::MAX;
/// Entries of the cache: a power of two.
const CACHE: usize = 1 << 10;

/// Calls of a function that have the same functions around them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Number of the function; 0 for the root.
    pub function: u32,
    /// The node of its callers.
    pub parent: u32,
    /// How many calls there were.
    pub calls: u64,
    /// Their time, ns.
    pub total: u64,
    /// Their time in the function itself.
    pub own: u64,
    /// How many of them did not return.
    pub unfinished: u64,
}

/// The nodes.
#[derive(Clone, Debug)]
pub struct Contexts {
    /// All nodes, callers before those that they call.
    pub nodes: Vec<Node>,
    /// The most nodes.
    pub most: usize,
    /// Calls without a node.
    pub unplaced: u64,
    children: HashMap<(u32, u32), u32>,
    /// Some children, where a hash of parent and function says.
    cache: Vec<u32>,
    /// The nodes of the open calls.
    open: Vec<u32>,
}

impl Default for Contexts {
    /// Up to a million nodes, 100 MB.
    fn default() -> Contexts {
        Contexts::new(1_000_000)
    }
}

impl Contexts {
    /// No calls; room for `most` nodes.
    pub fn new(most: usize) -> Contexts {
        Contexts {
            nodes: vec![Node::default()],
            most: most.min(NONE as usize),
            unplaced: 0,
            children: HashMap::new(),
            cache: vec![0; CACHE],
            open: Vec::new(),
        }
    }

    /// The node of a function that is called in another node; [`NONE`] where there is no room for it.
    #[inline]
    pub(super) fn child(&mut self, parent: u32, function: u32) -> u32 {
        let hash = parent.wrapping_mul(0x9e37_79b9) ^ function.wrapping_mul(0x85eb_ca6b);
        let place = (hash >> 16) as usize & (CACHE - 1);
        let node = self.cache[place];
        let n = &self.nodes[node as usize];
        if (n.parent, n.function) == (parent, function) && node != 0 {
            return node;
        }
        let node = self.held_child(parent, function);
        if node != NONE {
            self.cache[place] = node;
        }
        node
    }

    fn held_child(&mut self, parent: u32, function: u32) -> u32 {
        if let Some(&node) = self.children.get(&(parent, function)) {
            return node;
        }
        if self.nodes.len() >= self.most {
            return NONE;
        }
        let node = self.nodes.len() as u32;
        self.nodes.push(Node { function, parent, ..Node::default() });
        self.children.insert((parent, function), node);
        node
    }

    /// Adds the calls of another one, none of which is open.
    pub fn join(&mut self, other: &Contexts) {
        let mut here = vec![0; other.nodes.len()];
        for (i, n) in other.nodes.iter().enumerate() {
            let parent = here[n.parent as usize];
            here[i] = match i {
                0 => 0,
                _ if parent == NONE => NONE,
                _ => self.child(parent, n.function),
            };
            match self.nodes.get_mut(here[i] as usize) {
                Some(node) => node.add(n),
                None => self.unplaced += n.calls,
            }
        }
        self.unplaced += other.unplaced;
    }

    /// The functions around a node and its own, outermost first.
    pub fn path(&self, node: u32) -> Vec<u32> {
        let mut path = Vec::new();
        let mut at = node;
        while at != 0 {
            let n = &self.nodes[at as usize];
            path.push(n.function);
            at = n.parent;
        }
        path.reverse();
        path
    }
}

impl Node {
    fn add(&mut self, other: &Node) {
        self.calls += other.calls;
        self.total = self.total.saturating_add(other.total);
        self.own = self.own.saturating_add(other.own);
        self.unfinished += other.unfinished;
    }
}

impl Calls for Contexts {
    #[inline]
    fn entered(&mut self, function: u32, _start: u64, _depth: usize) {
        let node = match self.open.last() {
            None => self.child(0, function),
            Some(&NONE) => NONE,
            Some(_) if self.open.len() >= DEEPEST => NONE,
            Some(&parent) => self.child(parent, function),
        };
        self.open.push(node);
    }

    #[inline]
    fn ended(&mut self, call: &Call) {
        let Some(node) = self.open.pop() else { return };
        if node == NONE {
            self.unplaced += 1;
            // Its time is that of the innermost caller with a node.
            let caller = self.open.last().copied().filter(|n| *n != NONE);
            if let Some(n) = caller {
                self.nodes[n as usize].own = self.nodes[n as usize].own.saturating_add(call.duration());
            }
            return;
        }
        let n = &mut self.nodes[node as usize];
        n.calls += 1;
        n.total = n.total.saturating_add(call.duration());
        n.own = n.own.saturating_add(call.own);
        n.unfinished += u64::from(call.ending == super::stack::Ending::Unfinished);
        if self.open.is_empty() {
            let root = &mut self.nodes[0];
            root.total = root.total.saturating_add(call.duration());
        }
    }
}
