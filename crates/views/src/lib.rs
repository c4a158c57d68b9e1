//! Views: decoded events in, readable output out. One view per file; pure: bytes are appended to a buffer.
//!
//! A view reads an event through [`events::Event`] and [`events::walk`], and asks [`events::names::Names`] for what the
//! collector knows. It never asks the system.

pub mod advance;
pub mod as_json;
pub mod call_diff;
pub mod call_events;
pub mod calls;
mod descriptors;
pub mod escape;
pub mod heap;
pub mod json;
pub mod kind;
pub mod latency;
pub mod names;
pub mod open_files;
pub mod options;
pub mod parquet;
mod perfetto;
pub mod profile;
mod protobuf;
pub mod record;
pub mod reorder;
pub mod row;
pub mod schema;
pub mod script;
mod spill;
mod spread;

pub mod stack;
pub mod stack_table;
pub mod summary;
pub mod table;
pub mod text;
pub mod threads;
pub mod timeline;
pub mod trace_stats;
pub mod units;
mod values;
pub mod violations;
mod write;

use events::Event;
use events::names::Names;

use kind::Make;
use row::{Form, Row};

pub use options::{Options, Xlat};
pub use spill::Spill;

/// The views of events.
const EVENTS: &[Row<Make>] = &[
    Row::new("text", Form::Text, "lines as strace's", Make::Lines(|options| Box::new(text::Text::new(options)))),
    Row::new(
        "json",
        Form::Data,
        "an object for each event (docs/JSON.md)",
        Make::Lines(|options| Box::new(json::Json::new(options))),
    ),
    Row::new("record", Form::Data, "a line for each event, for scripts (docs/RECORD.md)", Make::Lines(record::open)),
    Row::new(
        "open",
        Form::Text,
        "descriptors that were opened and not closed, by stack",
        Make::Table(|| Box::new(open_files::OpenFiles::default())),
    ),
];

/// The views of whole traces; those of everything over time are in [`timeline`].
const TRACES: &[Row<Make>] = &[
    Row::new("stats", Form::Text, "what is in the trace", Make::Trace(|trace| Box::new(trace))),
    Row::new(
        "stats-json",
        Form::Data,
        "what is in the trace, as one object",
        Make::Trace(|table| Box::new(as_json::AsJson { table, write: trace_stats::TraceStats::write_json })),
    ),
    Row::new(
        "parquet",
        Form::Directory,
        "tables of everything, for SQL (docs/PARQUET.md)",
        Make::Directory(parquet::Parquet::new),
    ),
];

/// Shows events, one at a time, in the order of their emission.
pub trait View {
    /// Appends the text of `ev` to `out`; nothing if the view does not show it.
    fn event(&mut self, ev: &Event<'_>, names: &dyn Names, out: &mut Vec<u8>);
    /// Learns from an event, whether it will be shown or not; before [`View::event`].
    fn see(&mut self, ev: &Event<'_>) {
        let _ = ev;
    }
    /// Expects several threads from the start (a second `-p`).
    fn expect_several(&mut self) {}
    /// The number of events that were lost before they could be shown; before [`View::end`], where it is known.
    fn lost(&mut self, events: u64) {
        let _ = events;
    }
    /// Appends what is shown at the end.
    fn end(&mut self, out: &mut Vec<u8>) {
        let _ = out;
    }
    /// What [`View::end`] appends, part by part where it may be much: `spill` takes what was appended so far.
    fn end_in_parts(&mut self, out: &mut Vec<u8>, spill: Spill<'_>) {
        let _ = spill;
        self.end(out);
    }
}
