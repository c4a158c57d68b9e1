//! The call tree: stacks joined where they have their outer frames in common.
//!
//! A node is a function below its callers; frames that differ only in lines are one node, and so are guessed and other ones. No
//! function here calls itself: a stack may have thousands of frames.

use super::functions::Key;
use super::stacks::Stacks;
use super::{By, Frame, name};
use events::hash::Table;

/// What a node shows.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape {
    /// What it is called.
    pub name: String,
    /// The file that contains it; empty for groups.
    pub module: String,
    /// What kind of frame it is.
    pub kind: Kind,
}

impl Shape {
    fn group(name: String) -> Shape {
        Shape { name, module: String::new(), kind: Kind::Group }
    }

    fn of(f: &Frame<'_>) -> Shape {
        let kind = match (f.kernel, f.inlined) {
            (true, _) => Kind::Kernel,
            (_, true) => Kind::Inlined,
            _ => Kind::User,
        };
        Shape { name: name::function(f).into_owned(), module: f.module.to_owned(), kind }
    }
}

/// Kinds of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The whole, or a group: no function.
    Group,
    /// A function of a program.
    User,
    /// A function whose code is in that of its caller.
    Inlined,
    /// A function of the kernel.
    Kernel,
}

/// A node.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// Which of the shapes it has.
    pub shape: u32,
    /// The node around it: itself for the root, else a smaller number.
    pub parent: u32,
    /// How far it is from the root, which has 0.
    pub depth: u32,
    /// The weight of the stacks that end here.
    pub own: u64,
    /// The weight of all stacks through it.
    pub total: u64,
    /// The weight of those in which this frame is guessed.
    pub guessed: u64,
    /// In the tree of a difference, the weight of all stacks through it in the profile before.
    pub before: u64,
}

/// The tree. Node 0 is the root.
pub struct Tree {
    /// The nodes, each after its parent.
    pub nodes: Vec<Node>,
    shapes: Vec<Shape>,
}

impl Tree {
    /// The tree of a profile: below the root are groups, unless nothing is grouped.
    pub fn new(stacks: &Stacks, by: By) -> Tree {
        let mut builder = Builder::new();
        builder.add(stacks, by, false);
        builder.tree
    }

    /// The tree of two profiles, with weights before and after.
    pub fn of_both(before: &Stacks, after: &Stacks, by: By) -> Tree {
        let mut builder = Builder::new();
        builder.add(before, by, true);
        builder.add(after, by, false);
        builder.tree
    }

    /// What a node shows.
    pub fn shape(&self, node: &Node) -> &Shape {
        &self.shapes[node.shape as usize]
    }
}

struct Builder {
    tree: Tree,
    shapes: Table<Shape, u32>,
    /// Parent and shape to node.
    edges: Table<(u32, u32), u32>,
}

impl Builder {
    fn new() -> Builder {
        let mut builder = Builder {
            tree: Tree { nodes: Vec::new(), shapes: Vec::new() },
            shapes: Table::default(),
            edges: Table::default(),
        };
        let shape = builder.shape(Shape::group("all".to_owned()));
        builder.tree.nodes.push(Node { shape, parent: 0, depth: 0, own: 0, total: 0, guessed: 0, before: 0 });
        builder
    }

    fn shape(&mut self, shape: Shape) -> u32 {
        if let Some(&id) = self.shapes.get(&shape) {
            return id;
        }
        let id = self.tree.shapes.len() as u32;
        self.tree.shapes.push(shape.clone());
        self.shapes.insert(shape, id);
        id
    }

    fn child(&mut self, parent: u32, shape: u32) -> u32 {
        let nodes = &mut self.tree.nodes;
        *self.edges.entry((parent, shape)).or_insert_with(|| {
            let depth = nodes[parent as usize].depth + 1;
            nodes.push(Node { shape, parent, depth, own: 0, total: 0, guessed: 0, before: 0 });
            nodes.len() as u32 - 1
        })
    }

    fn add(&mut self, stacks: &Stacks, by: By, before: bool) {
        let mut of_key = Table::default();
        let shapes: Vec<(u32, bool)> = (0..stacks.frame_count() as u32)
            .map(|id| {
                let f = stacks.frame_at(id);
                let shape = of_key.entry((Key::of(&f), f.inlined)).or_insert_with(|| self.shape(Shape::of(&f)));
                (*shape, f.guessed)
            })
            .collect();
        for e in stacks.entries() {
            let weight = e.tally.weight;
            let mut at = 0;
            self.tree.nodes[0].count(weight, false, before);
            if let Some(group) = by.group(stacks.labels_of(e.labels)) {
                let shape = self.shape(Shape::group(group));
                at = self.child(0, shape);
                self.tree.nodes[at as usize].count(weight, false, before);
            }
            for &frame in stacks.frames_of(e.stack).iter().rev() {
                let (shape, guessed) = shapes[frame as usize];
                at = self.child(at, shape);
                self.tree.nodes[at as usize].count(weight, guessed, before);
            }
            if !before {
                let own = &mut self.tree.nodes[at as usize].own;
                *own = own.saturating_add(weight);
            }
        }
    }
}

impl Node {
    fn count(&mut self, weight: u64, guessed: bool, before: bool) {
        let total = if before { &mut self.before } else { &mut self.total };
        *total = total.saturating_add(weight);
        if guessed && !before {
            self.guessed = self.guessed.saturating_add(weight);
        }
    }
}
