//! The call tree as text: from the outermost functions inwards, or from the innermost ones outwards.
//!
//! ```text
//! 1000 samples, one every 1.00ms (1.00s in all), of 4 stacks
//!
//!  total%  self% total function
//! ------- ------ ----- --------
//! 100.00%         1000 _start (app)
//!                      main (app)
//!  60.00%          600   load (app)
//!         60.00%         hash (app)
//! ```
//!
//! A function that is alone below another one, with its whole weight, stands right below it without numbers of its own, and not further to
//! the right: deep stacks stay on the screen.

use super::functions::Key;
use super::lens::{Cut, Lens};
use super::name::{self, percent};
use super::stacks::Stacks;
use super::style::{Style, Terminal};
use super::tree::{Kind, Node, Tree};
use super::words::{ascii, in_all, module};
use super::{By, Frame};
use std::cmp::Reverse;

/// Steps to the right are not more than this.
const DEEPEST: usize = 40;

/// Draws functions below their callers.
pub fn draw(stacks: &Stacks, style: &Style, terminal: Option<Terminal>, out: &mut Vec<u8>) {
    CallTree::of(style, false, terminal).write(stacks, out);
}

/// Draws functions below what they call.
pub fn draw_bottom_up(stacks: &Stacks, style: &Style, terminal: Option<Terminal>, out: &mut Vec<u8>) {
    CallTree::of(style, true, terminal).write(stacks, out);
}

/// How it is drawn.
#[derive(Clone, Debug)]
pub struct CallTree {
    /// Callers below what they call.
    pub bottom_up: bool,
    /// What is left out. With a focus, the tree begins there.
    pub lens: Lens,
    /// What the outermost nodes are.
    pub by: By,
    /// Nodes that weigh less, in thousandths of the whole, are not shown.
    pub least: u64,
    /// The most lines.
    pub rows: usize,
    /// The longest line, in characters.
    pub width: usize,
}

impl CallTree {
    /// The tree of this style; on a terminal its lines are cut.
    fn of(style: &Style, bottom_up: bool, terminal: Option<Terminal>) -> CallTree {
        CallTree {
            bottom_up,
            lens: style.lens.clone(),
            by: style.by,
            least: style.least,
            rows: style.rows.unwrap_or(usize::MAX),
            width: terminal.map_or(usize::MAX, |(columns, _)| columns),
        }
    }

    /// Appends the tree.
    pub fn write(&self, stacks: &Stacks, out: &mut Vec<u8>) {
        let cut = if self.bottom_up { Cut::Callees } else { Cut::Callers };
        let seen = self.lens.through(stacks, cut, self.bottom_up);
        out.extend_from_slice(in_all(&seen).as_bytes());
        if let Some(focus) = &self.lens.focus {
            let share = percent(seen.kept(), stacks.kept());
            out.extend_from_slice(format!(", with {} in them: {share} of all", ascii(focus)).as_bytes());
        }
        out.push(b'\n');
        if seen.entries().is_empty() {
            return;
        }
        let by = if self.bottom_up { By::Nothing } else { self.by };
        let tree = Tree::new(&seen, by);
        let mut lines = Lines { tree: &tree, whole: seen.kept(), all: Vec::new(), style: self, hidden: 0 };
        lines.children(0, 0);
        lines.write(&seen, out);
    }
}

struct Lines<'t> {
    tree: &'t Tree,
    whole: u64,
    /// Node, how far to the right, and whether it has the whole weight of the one above.
    all: Vec<(u32, usize, bool)>,
    style: &'t CallTree,
    /// Nodes that weigh too little, or did not fit.
    hidden: usize,
}

impl Lines<'_> {
    /// Lines of everything below a node, heaviest first. No function here calls itself: stacks may be deep.
    fn children(&mut self, root: u32, right: usize) {
        let mut of_parent: Vec<Vec<u32>> = vec![Vec::new(); self.tree.nodes.len()];
        for (id, node) in self.tree.nodes.iter().enumerate().skip(1) {
            if let Some(list) = of_parent.get_mut(node.parent as usize) {
                list.push(id as u32);
            }
        }
        let weight = |id: &u32| self.tree.nodes.get(*id as usize).map_or(0, |n| n.total);
        for list in &mut of_parent {
            list.sort_by_key(|id| Reverse(weight(id)));
        }
        let least = u128::from(self.whole) * u128::from(self.style.least);
        let is_light = |id: &u32| u128::from(weight(id)) * 1000 < least;
        let mut open: Vec<(u32, usize, bool)> = vec![(root, right, false)];
        while let Some((id, right, goes_on)) = open.pop() {
            let below = of_parent.get(id as usize).map_or(&[][..], |list| list);
            let (light, heavy): (Vec<u32>, Vec<u32>) = below.iter().partition(|id| is_light(id));
            self.hidden += light.len();
            if id != root {
                if self.all.len() >= self.style.rows {
                    self.hidden += 1;
                    continue;
                }
                self.all.push((id, right, goes_on));
            }
            let alone = heavy.len() == 1 && light.is_empty() && self.own(id) == 0 && id != root;
            let next = if id == root || alone { right } else { right + 1 };
            open.extend(heavy.iter().rev().map(|child| (*child, next, alone)));
        }
    }

    fn node(&self, id: u32) -> Option<&Node> {
        self.tree.nodes.get(id as usize)
    }

    fn own(&self, id: u32) -> u64 {
        self.node(id).map_or(0, |n| n.own)
    }

    fn write(&self, stacks: &Stacks, out: &mut Vec<u8>) {
        let unit = stacks.unit();
        let own_column = !self.style.bottom_up;
        let numbers = |id: u32, goes_on: bool| {
            let node = self.node(id)?;
            let own = if node.own > 0 { percent(node.own, self.whole) } else { String::new() };
            Some(match goes_on {
                true => [String::new(), own, String::new()],
                false => [percent(node.total, self.whole), own, unit.short(node.total)],
            })
        };
        let rows: Vec<([String; 3], u32, usize)> =
            self.all.iter().filter_map(|(id, right, goes_on)| Some((numbers(*id, *goes_on)?, *id, *right))).collect();
        let heads = ["total%", "self%", "total"];
        let width: [usize; 3] =
            std::array::from_fn(|i| rows.iter().map(|r| r.0[i].len()).chain([heads[i].len()]).max().unwrap_or(0));
        let mut line = |cells: [&str; 3], name: &str| {
            let mut text = String::new();
            for (i, cell) in cells.iter().enumerate().filter(|(i, _)| *i != 1 || own_column) {
                text += &format!("{cell:>width$} ", width = width[i]);
            }
            let room = self.style.width.saturating_sub(text.len());
            text += &name::shortened(name, room.max(20));
            out.extend_from_slice(text.trim_end().as_bytes());
            out.push(b'\n');
        };
        line(["", "", ""], "");
        line(heads, "function");
        let rules = width.map(|n| "-".repeat(n));
        line([&rules[0], &rules[1], &rules[2]], "--------");
        for (numbers, id, right) in &rows {
            let Some(node) = self.node(*id) else { continue };
            let name = format!("{}{}", "  ".repeat((*right).min(DEEPEST)), self.name(node));
            line([&numbers[0], &numbers[1], &numbers[2]], &name);
        }
        if self.hidden > 0 {
            let s = if self.hidden == 1 { "" } else { "s" };
            let least = format!("{}.{}%", self.style.least / 10, self.style.least % 10);
            let text =
                format!("{} more node{s}: lighter than {least} (--percent-limit), or beyond --rows\n", self.hidden);
            out.extend_from_slice(text.as_bytes());
        }
    }

    fn name(&self, node: &Node) -> String {
        let shape = self.tree.shape(node);
        let key = Key { function: &shape.name, module: &shape.module, kernel: shape.kind == Kind::Kernel };
        let frame = Frame { function: &shape.name, ..Frame::default() };
        let function = ascii(&name::function(&frame));
        match shape.kind {
            Kind::Group => function,
            Kind::Inlined => format!("{function} (inlined)"),
            _ if shape.name.starts_with('[') => function,
            _ => match module(&key).as_str() {
                "-" => function,
                module if module.starts_with('[') => format!("{function} {module}"),
                module => format!("{function} ({module})"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Labels, Unit};
    use super::*;

    fn sample() -> Stacks {
        let mut s = Stacks::new(Unit::Samples { period: 1_000_000 });
        let mut add = |frames: &[&str], weight| {
            let frame = |function| Frame { function, module: "/bin/app", ..Frame::default() };
            let ids: Vec<_> = frames.iter().map(|f| s.frame(&frame(*f))).collect();
            let stack = s.stack(&ids);
            let who = s.labels(Labels { pid: 1, tid: 1, comm: "app" });
            s.add(stack, who, weight, 5);
        };
        add(&["hash", "insert", "load", "main", "_start"], 600);
        add(&["hash", "find", "serve", "main", "_start"], 250);
        add(&["serve", "main", "_start"], 147);
        add(&["tiny", "main", "_start"], 3);
        s
    }

    fn tree(bottom_up: bool, focus: Option<&str>) -> String {
        let lens = Lens { focus: focus.map(Into::into), ..Lens::default() };
        let tree = CallTree { bottom_up, lens, by: By::Nothing, least: 5, rows: 100, width: 100 };
        let mut out = Vec::new();
        tree.write(&sample(), &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn callees_stand_below_their_callers() {
        let expect = expect_test::expect![[r#"
            1000 samples, one every 1.00ms (1.00s in all), of 4 stacks

             total%  self% total function
            ------- ------ ----- --------
            100.00%         1000 _start (app)
                                 main (app)
             60.00%          600   load (app)
                                   insert (app)
                    60.00%         hash (app)
             39.70% 14.70%   397   serve (app)
             25.00%          250     find (app)
                    25.00%           hash (app)
            1 more node: lighter than 0.5% (--percent-limit), or beyond --rows
        "#]];
        expect.assert_eq(&tree(false, None));
    }

    #[test]
    fn bottom_up_shows_who_calls_the_hot_function() {
        let expect = expect_test::expect![[r#"
            1000 samples, one every 1.00ms (1.00s in all), of 4 stacks

            total% total function
            ------ ----- --------
            85.00%   850 hash (app)
            60.00%   600   insert (app)
                           load (app)
                           main (app)
                           _start (app)
            25.00%   250   find (app)
                           serve (app)
                           main (app)
                           _start (app)
            14.70%   147 serve (app)
                         main (app)
                         _start (app)
            1 more node: lighter than 0.5% (--percent-limit), or beyond --rows
        "#]];
        expect.assert_eq(&tree(true, None));
        let expect = expect_test::expect![[r#"
            850 samples, one every 1.00ms (850ms in all), of 2 stacks, with hash in them: 85.00% of all

             total% total function
            ------- ----- --------
            100.00%   850 hash (app)
             70.59%   600   insert (app)
                            load (app)
                            main (app)
                            _start (app)
             29.41%   250   find (app)
                            serve (app)
                            main (app)
                            _start (app)
        "#]];
        expect.assert_eq(&tree(true, Some("hash")));
        let expect = expect_test::expect![[r#"
            397 samples, one every 1.00ms (397ms in all), of 2 stacks, with serve in them: 39.70% of all

             total%  self% total function
            ------- ------ ----- --------
            100.00% 37.03%   397 serve (app)
             62.97%          250   find (app)
                    62.97%         hash (app)
        "#]];
        expect.assert_eq(&tree(false, Some("serve")));
    }

    #[test]
    fn nothing_is_said() {
        let tree = CallTree { bottom_up: false, lens: Lens::default(), by: By::Comm, least: 5, rows: 9, width: 80 };
        let mut out = Vec::new();
        tree.write(&Stacks::new(Unit::Events), &mut out);
        assert_eq!(String::from_utf8_lossy(&out), "0 events, of 0 stacks\n");
    }
}
