//! The file: heading, frames, script.

use super::MAX_FRAMES;
use super::colour::{Colours, LEGEND};
use crate::profile::name::{percent, shortened, xml};
use crate::profile::tree::{Kind, Node, Tree};
use std::fmt::Write;

/// Pixels.
const WIDTH: f64 = 1200.0;
const PAD: f64 = 10.0;
const ROW: u32 = 17;
/// What is left free at the right end of frames that are wider than `WIDE`; narrow ones together look like one.
const GAP: f64 = 0.6;
const WIDE: f64 = 2.0;
/// Advance of a character of 12 pixels in common monospaced fonts (0.60 em, DejaVu 0.602).
const CHAR: f64 = 7.23;
/// The most characters of a name.
const MAX_NAME: usize = 1000;

/// Names are not shortened to less: then a frame has none.
const LEAST_LABEL: usize = 5;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// What is drawn, beside the tree.
pub struct Picture<'a> {
    pub title: &'a str,
    pub notes: Vec<String>,
    pub icicle: bool,
    pub colours: Colours,
    /// What is said about a node, after its name.
    pub about: &'a dyn Fn(&Node) -> String,
}

/// A node that is drawn.
struct Placed {
    node: usize,
    /// Where it begins, in units of weight.
    x: u64,
}

/// Nodes that are not drawn.
struct LeftOut {
    frames: usize,
    /// The weight of the heaviest.
    most: u64,
}

impl Picture<'_> {
    pub fn write(&self, tree: &Tree, out: &mut Vec<u8>) {
        let (placed, left_out) = place(tree);
        let levels = placed.iter().map(|p| tree.nodes[p.node].depth + 1).max().unwrap_or(0);
        let legend = self.legend(tree, &placed);
        // Title, notes, legend, and what the mouse is on.
        let lines = self.notes.len() as u32 + u32::from(left_out.frames > 0) + u32::from(!legend.is_empty());
        let head = 34 + 16 * lines + 24;
        let height = head + levels * ROW + 10;
        let mut s = String::new();
        let total = tree.nodes[0].total;
        let _ = write!(
            s,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" \
             height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" data-pad=\"{PAD}\" data-char=\"{CHAR}\" \
             data-gap=\"{GAP}\" data-wide=\"{WIDE}\" \
             data-total=\"{total}\" data-up=\"{}\">\n<style>{STYLE}</style>\n",
            u32::from(!self.icicle)
        );
        for (n, p) in placed.iter().enumerate() {
            self.frame(tree, n, p, (head, levels), &mut s);
        }
        self.head(tree, &left_out, &legend, head, &mut s);
        let _ = write!(s, "<script><![CDATA[\n{SCRIPT}]]></script>\n</svg>\n");
        out.extend_from_slice(s.as_bytes());
    }

    fn frame(&self, tree: &Tree, n: usize, p: &Placed, (head, levels): (u32, u32), s: &mut String) {
        let node = &tree.nodes[p.node];
        let shape = tree.shape(node);
        let scale = (WIDTH - 2.0 * PAD) / tree.nodes[0].total.max(1) as f64;
        let (x, width) = (PAD + p.x as f64 * scale, node.total as f64 * scale);
        let level = if self.icicle { node.depth } else { levels - 1 - node.depth };
        let y = head + level * ROW;
        let class = if node.guessed > 0 { "f g" } else { "f" };
        let _ = write!(
            s,
            "<g class=\"{class}\" data-n=\"{n}\" data-d=\"{}\" data-x=\"{}\" data-w=\"{}\"><title>",
            node.depth, p.x, node.total
        );
        let name = crate::profile::name::visible(&shape.name);
        xml(&shortened(&name, MAX_NAME), s);
        s.push('\n');
        if !shape.module.is_empty() {
            xml(&shortened(&shape.module, MAX_NAME), s);
            s.push('\n');
        }
        xml(&(self.about)(node), s);
        let fill = self.colours.of(tree, node);
        let _ = write!(
            s,
            "</title><rect x=\"{x:.2}\" y=\"{y}\" width=\"{:.2}\" height=\"{}\" fill=\"{fill}\" rx=\"1\"/>\
             <text x=\"{:.2}\" y=\"{}\">",
            if width > WIDE { width - GAP } else { width },
            ROW - 1,
            x + 4.0,
            y + 12
        );
        let room = ((width - 7.0) / CHAR) as usize;
        if room >= LEAST_LABEL || name.chars().count() <= room {
            xml(&shortened(&name, room), s);
        }
        s.push_str("</text></g>\n");
    }

    /// What the colours mean, where they are used: a text and a colour.
    fn legend(&self, tree: &Tree, placed: &[Placed]) -> Vec<(&'static str, &'static str, bool)> {
        let nodes = || placed.iter().map(|p| &tree.nodes[p.node]);
        let mut all = Vec::new();
        match self.colours {
            Colours::ByModule => {
                let is_there = |kind: Kind| nodes().any(|n| tree.shape(n).kind == kind);
                all.extend(LEGEND.iter().filter(|l| is_there(l.0)).map(|l| (l.1, l.2, false)));
            }
            Colours::ByChange { .. } => {
                all.push(("larger share", "rgb(255,120,120)", false));
                all.push(("smaller share", "rgb(120,120,255)", false));
            }
        }
        if nodes().any(|n| n.guessed > 0) {
            all.push(("guessed", "#fff", true));
        }
        all
    }

    fn not_drawn(&self, tree: &Tree, left_out: &LeftOut) -> Option<String> {
        let share = percent(left_out.most, tree.nodes[0].total);
        match left_out.frames {
            0 => None,
            1 => Some(format!("1 frame, {share} of the whole, is not drawn")),
            n => Some(format!("{n} frames, each at most {share} of the whole, are not drawn")),
        }
    }

    /// The heading: above the frames also where the page is scrolled.
    fn head(&self, tree: &Tree, left_out: &LeftOut, legend: &[(&str, &str, bool)], head: u32, s: &mut String) {
        let _ = write!(
            s,
            "<g id=\"head\"><rect id=\"back\" width=\"{WIDTH}\" height=\"{}\" fill=\"#fff\"/>\
             <text id=\"title\" x=\"{PAD}\" y=\"24\">",
            head - 4
        );
        xml(&shortened(self.title, 80), s);
        s.push_str("</text>\n");
        let mut y = 42;
        let mut notes = self.notes.clone();
        notes.extend(self.not_drawn(tree, left_out));
        for note in &notes {
            let _ = write!(s, "<text class=\"note\" x=\"{PAD}\" y=\"{y}\">");
            xml(note, s);
            s.push_str("</text>\n");
            y += 16;
        }
        let mut x = PAD;
        for (text, colour, dashed) in legend {
            let stroke = if *dashed { " stroke=\"#444\" stroke-dasharray=\"3 2\"" } else { "" };
            let _ = writeln!(
                s,
                "<rect x=\"{x:.1}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{colour}\"{stroke}/>\
                 <text class=\"note\" x=\"{:.1}\" y=\"{y}\">{text}</text>",
                y - 10,
                x + 17.0
            );
            x += 17.0 + CHAR * text.len() as f64 + 18.0;
        }
        if !legend.is_empty() {
            y += 16;
        }
        let _ = write!(
            s,
            "<text id=\"detail\" x=\"{PAD}\" y=\"{}\"/>\n<g id=\"tools\" hidden=\"\">\
             <foreignObject id=\"box\" x=\"{}\" y=\"8\" width=\"260\" height=\"24\">\
             <input xmlns=\"http://www.w3.org/1999/xhtml\" id=\"query\" type=\"search\" spellcheck=\"false\" \
             placeholder=\"search: regular expression\"/></foreignObject>\
             <text id=\"found\" class=\"note\" text-anchor=\"end\" y=\"24\"/>\n\
             <text id=\"reset\" class=\"b\" text-anchor=\"end\" y=\"24\" hidden=\"\">reset zoom</text></g></g>\n",
            y + 4,
            WIDTH - PAD - 260.0
        );
    }
}

/// The nodes that are drawn, parents first, and how many are not. A child weighs no more than its parent, so a parent is drawn if its
/// child is.
fn place(tree: &Tree) -> (Vec<Placed>, LeftOut) {
    let mut weights: Vec<u64> = tree.nodes.iter().map(|n| n.total).filter(|&w| w > 0).collect();
    let present = weights.len();
    // The heaviest that is not drawn, and 0 where all are.
    let limit = if present > MAX_FRAMES { *weights.select_nth_unstable_by(MAX_FRAMES, |a, b| b.cmp(a)).1 } else { 0 };
    let mut kept: Vec<usize> = (0..tree.nodes.len()).filter(|&i| i == 0 || tree.nodes[i].total > limit).collect();
    // By parent, so that siblings are neighbours, then by name, so that a program has the same picture each time.
    order::by_key(&mut kept, |&i| {
        let n = &tree.nodes[i];
        (n.depth, n.parent, tree.shape(n))
    });
    let mut begin = vec![0u64; tree.nodes.len()];
    let mut placed = Vec::with_capacity(kept.len());
    // Where the next child of each parent begins.
    let mut next = vec![0u64; tree.nodes.len()];
    for node in kept {
        let n = &tree.nodes[node];
        if node > 0 {
            let parent = n.parent as usize;
            begin[node] = next[parent];
            next[parent] = next[parent].saturating_add(n.total);
        }
        next[node] = begin[node];
        placed.push(Placed { node, x: begin[node] });
    }
    let left_out = LeftOut { frames: present.saturating_sub(placed.len()), most: limit };
    (placed, left_out)
}
