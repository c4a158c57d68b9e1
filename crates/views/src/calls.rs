//! Views of function calls: entries and exits of functions in, trees, tables, graphs and timelines out.
//!
//! ```text
//! Step ─► stack::Stack ─► stack::Calls ─┬► tree · cat · json · timeline      a line or a slice for each call
//!         calls of a      (selection    ├► totals ─► functions · stat        a row for each function
//!         thread           between)     └► contexts ─► brief · profile (flame, folded) · edges (dot, mermaid)
//! ```
//!
//! A [`Step`] is what a thread has recorded: a time and the number of a function that it has entered or left. Records can be missing, so
//! a stack assumes as little as possible and counts what it assumes ([`stack::Counts`]). Names are asked for when something is shown
//! ([`Functions`]); they may contain any characters, and each view escapes them as its format needs.
//!
//! A view that implements [`CallView`] takes the steps of all threads in the order of their times. The others take the steps of one thread
//! after another.

pub mod brief;
pub mod by_function;
pub mod cat;
pub mod contexts;
pub mod counted;
pub mod diff;
pub mod edges;
pub mod functions;
mod input;
pub mod json;
mod label;
pub(crate) mod pattern;
pub mod profile;
pub mod runs;
pub mod selection;
pub mod short;
pub mod stack;
pub mod stat;
mod threads;
pub mod timeline;
pub mod totals;
pub mod totals_json;
pub mod tree;

pub use input::{CallView, Functions, Step, SystemCall, Thread, What};
pub use selection::Selection;
