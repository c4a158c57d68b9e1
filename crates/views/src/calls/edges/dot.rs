//! A drawing in Graphviz's language.

use super::Edge;
use crate::units::duration;
use std::collections::BTreeMap;

/// Appends the drawing. Edges are the wider and nodes the darker, the more of `whole` they take.
pub fn write(nodes: &BTreeMap<u32, Vec<String>>, edges: &[Edge], whole: u64, note: Option<&str>, out: &mut Vec<u8>) {
    let mut text = "digraph calls {\n".to_owned();
    if let Some(note) = note {
        text += &format!("  label={}; labelloc=t;\n", quoted(&[note.to_owned()]));
    }
    text += "  node [shape=box, style=filled, fillcolor=\"#fff4e6\", fontname=\"sans-serif\", fontsize=10];\n";
    text += "  edge [fontname=\"sans-serif\", fontsize=9];\n";
    for (number, lines) in nodes {
        text += &format!("  f{number} [label={}];\n", quoted(lines));
    }
    for e in edges {
        let width = 1.0 + 4.0 * e.time as f64 / whole.max(1) as f64;
        let label = quoted(&[format!("{}x", e.calls), duration(e.time)]);
        text += &format!("  f{} -> f{} [label={label}, penwidth={width:.1}];\n", e.from, e.to);
    }
    text += "}\n";
    out.extend_from_slice(text.as_bytes());
}

/// Lines as a string of the language: a backslash begins an escape sequence there.
fn quoted(lines: &[String]) -> String {
    let lines: Vec<_> = lines.iter().map(|l| l.replace('\\', "\\\\").replace('"', "\\\"")).collect();
    format!("\"{}\"", lines.join("\\n"))
}
