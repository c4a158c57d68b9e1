//! How the views of profiles are drawn.

use super::functions::Sort;
use super::lens::Lens;
use super::{By, Stacks};

/// Columns and lines of a terminal.
pub type Terminal = (usize, usize);

/// Appends a view of a profile, for a terminal if there is one.
pub type Draw = fn(&Stacks, &Style, Option<Terminal>, &mut Vec<u8>);

/// How a profile is drawn.
#[derive(Clone)]
pub struct Style {
    /// What stacks are grouped by.
    pub by: By,
    /// The order of functions.
    pub sort: Sort,
    /// The most rows, where somebody has asked for a number.
    pub rows: Option<usize>,
    /// Callers above those that they call.
    pub icicle: bool,
    /// What of stacks is shown.
    pub lens: Lens,
    /// Nodes of trees that weigh less, in thousandths of the whole, are not shown.
    pub least: u64,
    /// The heading of graphs.
    pub title: String,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC, ns.
    pub realtime_offset: i64,
}
