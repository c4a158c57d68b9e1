//! Words that the tables and trees of a profile share.

use super::name::base;
use super::stacks::Stacks;
use super::{Unit, functions};
use crate::escape;
use crate::units::duration;

/// What a table calls a function's module.
pub(crate) fn module(key: &functions::Key<'_>) -> String {
    match base(key.module) {
        "" if key.kernel => "[kernel]".to_owned(),
        "" => "-".to_owned(),
        module => ascii(module),
    }
}

/// A name in printable ASCII.
pub(crate) fn ascii(text: &str) -> String {
    let mut out = Vec::new();
    escape::name_in_brackets(text.as_bytes(), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// What there is in all, in a sentence without a full stop.
pub(crate) fn in_all(stacks: &Stacks) -> String {
    let (unit, total, not_held) = (stacks.unit(), stacks.total(), stacks.not_held());
    let mut text = unit.text(total.weight);
    match unit {
        Unit::Samples { period } if period > 0 => {
            let time = duration(total.weight.saturating_mul(period));
            text += &format!(", one every {} ({time} in all)", duration(period));
        }
        Unit::Bytes if stacks.blocks().is_some() => {
            text += &format!(" in {} block{}", total.samples, if total.samples == 1 { "" } else { "s" });
        }
        Unit::Nanoseconds | Unit::Bytes => text += &format!(" in {}", Unit::Events.text(total.samples)),
        _ => {}
    }
    text += &match stacks.len() {
        1 => ", of 1 stack".to_owned(),
        n => format!(", of {n} stacks"),
    };
    if not_held.samples > 0 {
        text += &format!("; {} did not fit and are not shown", unit.text(not_held.weight));
    }
    if let Some(lost) = losses(stacks.lost()) {
        text += &format!("; {lost}");
    }
    text
}

/// How many events were lost, if it is known that any were.
pub(crate) fn losses(events: Option<u64>) -> Option<String> {
    match events {
        None | Some(0) => None,
        Some(1) => Some("1 event was lost".to_owned()),
        Some(n) => Some(format!("{n} events were lost")),
    }
}

/// Appends how many functions are not shown.
pub(crate) fn rest(n: usize, out: &mut Vec<u8>) {
    match n {
        0 => {}
        1 => out.extend_from_slice(b"1 more function\n"),
        n => out.extend_from_slice(format!("{n} more functions\n").as_bytes()),
    }
}
