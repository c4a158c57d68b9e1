//! Flame graphs: one SVG file with everything in it, for a browser without a network.
//!
//! Each frame is a rectangle as wide as its weight, above its caller (or below it: an icicle). The file is a drawing of
//! 1200 pixels for programs that run no script; in a browser, the script (`flame/script.js`) fits it to the window, zooms into the
//! frame that is clicked, and searches. Both the script and the style are constant: no name is ever part of them.
//!
//! At most [`MAX_FRAMES`] frames are drawn, the heaviest; the heading says how many are not.

mod colour;
mod draw;

use super::stacks::Stacks;
use super::style::{Style, Terminal};
use super::tree::{Node, Tree};
use super::words::in_all;
use super::{By, Unit, name};
use colour::Colours;

/// The most frames that are drawn.
pub const MAX_FRAMES: usize = 10_000;

/// Draws the graph of a profile.
pub fn draw(stacks: &Stacks, style: &Style, _: Option<Terminal>, out: &mut Vec<u8>) {
    style.lens.whole(stacks, |seen| Flame::of(style).write(seen, out));
}

/// How the graph is drawn.
#[derive(Clone, Debug, Default)]
pub struct Flame {
    /// The heading, for instance the command.
    pub title: String,
    /// What the stacks are grouped by.
    pub by: By,
    /// Callers above those that they call.
    pub icicle: bool,
}

impl Flame {
    /// The graph of this style.
    pub fn of(style: &Style) -> Flame {
        Flame { title: style.title.clone(), by: style.by, icicle: style.icicle }
    }

    /// Appends the graph of a profile.
    pub fn write(&self, stacks: &Stacks, out: &mut Vec<u8>) {
        let tree = Tree::new(stacks, self.by);
        let unit = stacks.unit();
        let whole = tree.nodes[0].total;
        let about = |n: &Node| {
            let share = name::percent(n.total, whole);
            let mut text = format!("{}, {share}", unit.text(n.total));
            if n.own > 0 {
                text += &format!(" (self {})", name::percent(n.own, whole));
            }
            if n.guessed > 0 {
                text += &format!("; guessed in {}", name::percent(n.guessed, n.total));
            }
            text
        };
        let picture = draw::Picture {
            title: if self.title.is_empty() { "Flame graph" } else { &self.title },
            notes: vec![in_all(stacks)],
            icicle: self.icicle,
            colours: Colours::ByModule,
            about: &about,
        };
        picture.write(&tree, out);
    }

    /// Appends the graph of `after`, coloured by what has changed since `before`: red is a larger share of the whole, blue a smaller
    /// one. The shares are compared, not the weights, so that the profiles may differ in length.
    pub fn write_difference(&self, before: &Stacks, after: &Stacks, out: &mut Vec<u8>) {
        let tree = Tree::of_both(before, after, self.by);
        let (unit, wholes) = (after.unit(), (tree.nodes[0].before, tree.nodes[0].total));
        let about = |n: &Node| {
            let (was, is) = (name::percent(n.before, wholes.0), name::percent(n.total, wholes.1));
            format!("{}, {is}, was {was} ({})", unit.text(n.total), points(change(n, wholes)))
        };
        let picture = draw::Picture {
            title: if self.title.is_empty() { "Differential flame graph" } else { &self.title },
            notes: difference_notes(&tree, before, after),
            icicle: self.icicle,
            colours: Colours::ByChange { most: most_changed(&tree, wholes), wholes },
            about: &about,
        };
        picture.write(&tree, out);
    }
}

fn difference_notes(tree: &Tree, before: &Stacks, after: &Stacks) -> Vec<String> {
    let mut notes = vec![format!("before: {}", in_all(before)), format!("after: {}", in_all(after))];
    // Where nothing is left of a caller, what it called has gone with it.
    let has_gone = |n: &Node| n.total == 0 && n.before > 0;
    let gone = tree.nodes.iter().skip(1).filter(|n| has_gone(n) && !has_gone(&tree.nodes[n.parent as usize]));
    let gone = gone.fold(0u64, |sum, n| sum.saturating_add(n.before));
    if gone > 0 && tree.nodes[0].total > 0 {
        let share = name::percent(gone, tree.nodes[0].before);
        notes[0] += &format!("; {share} of it in frames that are gone, not drawn");
    }
    if before.unit() != after.unit() {
        let units = (Unit::name(before.unit()), Unit::name(after.unit()));
        notes.push(format!("the units differ: {} and {}", units.0, units.1));
    }
    notes
}

/// The change of a node's share, in points of a percent.
fn change(n: &Node, wholes: (u64, u64)) -> f64 {
    super::percent(n.total, wholes.1) - super::percent(n.before, wholes.0)
}

/// A change as `+1.23 points`.
fn points(change: f64) -> String {
    format!("{change:+.2} points")
}

fn most_changed(tree: &Tree, wholes: (u64, u64)) -> f64 {
    tree.nodes.iter().filter(|n| n.total > 0).map(|n| change(n, wholes).abs()).fold(0.0, f64::max)
}
