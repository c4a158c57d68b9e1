//! The order of functions.

use super::totals::Total;

/// What the rows are sorted by, the largest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Sort {
    /// Total time.
    #[default]
    Total,
    /// Time in the function itself.
    Own,
    /// Number of calls.
    Calls,
    /// The shortest call.
    Min,
    /// The average call.
    Avg,
    /// The longest call.
    Max,
    /// The name, in the order of its characters.
    Name,
}

/// The orders and their names.
pub const SORTS: [(&str, Sort); 7] = [
    ("total", Sort::Total),
    ("self", Sort::Own),
    ("calls", Sort::Calls),
    ("min", Sort::Min),
    ("avg", Sort::Avg),
    ("max", Sort::Max),
    ("name", Sort::Name),
];

impl Sort {
    /// The order that is called `name`.
    pub fn parse(name: &str) -> Option<Sort> {
        SORTS.iter().find(|(n, _)| *n == name).map(|(_, sort)| *sort)
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        SORTS.iter().find(|(_, sort)| *sort == self).map_or("", |(name, _)| name)
    }

    /// The number that a row is sorted by.
    pub(super) fn number(self, t: &Total) -> u64 {
        match self {
            Sort::Total => t.total,
            Sort::Own => t.own,
            Sort::Calls => t.calls,
            Sort::Min => t.shortest().unwrap_or(0),
            Sort::Avg => t.average(),
            Sort::Max => t.max,
            Sort::Name => 0,
        }
    }
}
