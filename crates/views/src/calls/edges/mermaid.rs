//! A drawing in Mermaid's language.

use super::Edge;
use crate::units::duration;
use std::collections::BTreeMap;

/// Appends the drawing.
pub fn write(nodes: &BTreeMap<u32, Vec<String>>, edges: &[Edge], note: Option<&str>, out: &mut Vec<u8>) {
    let mut text = String::new();
    if let Some(note) = note {
        text += &format!("%% {note}\n");
    }
    text += "flowchart TD\n";
    for (number, lines) in nodes {
        let lines: Vec<_> = lines.iter().map(|l| escaped(l)).collect();
        text += &format!("  f{number}[\"{}\"]\n", lines.join("<br/>"));
    }
    for e in edges {
        text += &format!("  f{} -->|\"{}x, {}\"| f{}\n", e.from, e.calls, duration(e.time), e.to);
    }
    if let Some(note) = note {
        text += &format!("  note[\"{}\"]\n", escaped(note));
    }
    out.extend_from_slice(text.as_bytes());
}

/// Text inside of quotes: characters with a meaning there, or in HTML, by their numbers, as Mermaid writes entities.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '#' | '&' | '<' | '>' | '\'' | '`' | ';' | '\\' | '%' => {
                out += &format!("#{};", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}
