//! The colours of frames. All are light enough for black text.

use super::change;
use crate::profile::tree::{Kind, Node, Tree};

/// What a colour means.
pub enum Colours {
    /// Kind and module; functions of a module differ a little.
    ByModule,
    /// The change of a share.
    ByChange {
        /// The largest change, in points of a percent.
        most: f64,
        /// The weights of the whole, before and after.
        wholes: (u64, u64),
    },
}

/// Colours of groups, and of what has not changed.
const GREY: &str = "#e2e2e2";

/// What the kinds look like, for the legend.
pub const LEGEND: [(Kind, &str, &str); 3] =
    [(Kind::User, "program", "#f5a55c"), (Kind::Inlined, "inlined", "#b8e0a4"), (Kind::Kernel, "kernel", "#8fbfe8")];

impl Colours {
    /// The colour of a node.
    pub fn of(&self, tree: &Tree, n: &Node) -> String {
        match self {
            Colours::ByModule => by_module(tree, n),
            Colours::ByChange { most, wholes } => by_change(change(n, *wholes), *most),
        }
    }
}

fn by_module(tree: &Tree, n: &Node) -> String {
    let shape = tree.shape(n);
    let (module, function) = (hash(&shape.module), hash(&shape.name));
    // Degrees, and percent of saturation and lightness.
    let (hue, saturation, light) = match shape.kind {
        Kind::Group => return GREY.to_owned(),
        Kind::User => (12 + module % 40, 88, 66),
        Kind::Inlined => (85 + module % 35, 48, 75),
        Kind::Kernel => (203 + module % 18, 62, 73),
    };
    format!("hsl({hue},{saturation}%,{}%)", light - 3 + function % 8)
}

fn by_change(points: f64, most: f64) -> String {
    // Less than is shown with two digits is nothing.
    if points.abs() < 0.005 || most <= 0.0 {
        return GREY.to_owned();
    }
    // The square root shows small changes beside a large one.
    let strength = (points.abs() / most).min(1.0).sqrt();
    let faded = 235 - (strength * 115.0) as u32;
    if points > 0.0 { format!("rgb(255,{faded},{faded})") } else { format!("rgb({faded},{faded},255)") }
}

/// FNV-1a: the same name has the same colour in every graph.
fn hash(text: &str) -> u32 {
    let hash = text.bytes().fold(0x811c_9dc5u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
    hash ^ hash >> 15
}
