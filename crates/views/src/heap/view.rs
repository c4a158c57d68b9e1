//! The views of a heap by their names.

use super::rows::Rows;
use super::{Options, growth, json, leaks, peak, profile, temporary, totals};
use crate::profile::flame::Flame;
use crate::profile::{folded, pprof};

/// A view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// What is outstanding.
    Leaks,
    /// What was outstanding at the peak.
    Peak,
    /// All allocations.
    Totals,
    /// Temporary allocations.
    Temporary,
    /// Memory over time.
    Growth,
    /// A flame graph: SVG.
    Flame,
    /// pprof's format, not compressed.
    Pprof,
    /// Folded stacks.
    Folded,
    /// One object with all numbers.
    Json,
}

impl View {
    /// All views, with their names.
    pub const ALL: [(&'static str, View); 9] = [
        ("leaks", View::Leaks),
        ("peak", View::Peak),
        ("totals", View::Totals),
        ("temporary", View::Temporary),
        ("growth", View::Growth),
        ("flame", View::Flame),
        ("pprof", View::Pprof),
        ("folded", View::Folded),
        ("json", View::Json),
    ];

    /// The view that is called `name`.
    pub fn parse(name: &str) -> Option<View> {
        View::ALL.iter().find(|(n, _)| *n == name).map(|(_, view)| *view)
    }

    /// Appends the view. `realtime_offset` is CLOCK_REALTIME minus the clock of the events, ns.
    pub fn write(self, rows: &Rows, options: &Options, realtime_offset: i64, out: &mut Vec<u8>) {
        match self {
            View::Leaks => leaks::write(&rows.folded(), options, out),
            View::Peak => peak::write(&rows.folded(), options, out),
            View::Totals => totals::write(&rows.folded(), options, out),
            View::Temporary => temporary::write(&rows.folded(), options, out),
            View::Growth => growth::write(&rows.folded(), options, out),
            View::Json => json::write(rows, options, out),
            View::Flame | View::Pprof | View::Folded => {
                let (mut stacks, by) = profile::profile(rows, options.of);
                stacks.set_lost(Some(options.lost.unwrap_or(0).max(rows.summary.lost)));
                match self {
                    View::Flame => {
                        let mut title = format!("{}: memory, {}", options.name, options.of.name());
                        if rows.summary.sample > 0 {
                            let bytes = crate::units::size(rows.summary.sample);
                            title += &format!(" (estimates: one sample for {bytes})");
                        }
                        Flame { title, by, ..Flame::default() }.write(&stacks, out);
                    }
                    View::Pprof => pprof::write(&stacks, realtime_offset, out),
                    _ => folded::write(&stacks, by, out),
                }
            }
        }
    }
}
