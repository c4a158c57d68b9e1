//! Sessions: the request of a command ([`ask::Ask`]) becomes a recording, its views, or a report.
//!
//! ```text
//! Ask ─► record, trace, profile, graph, heap: engine::plan ─► run::Run ─► engine's pump ─► sinks: views, a trace
//!     └► report, diff: a trace ─► the same sinks
//! ```
//!
//! Nothing here knows the command line. docs/EMBED.md has an example.

pub mod ask;
mod call_diff;
mod captures;
mod combinations;
pub mod copy;
pub mod diagnosis;
pub mod diff;
mod durations;
mod filter;
pub mod graph;
pub mod heap;
mod in_process;
mod joined;
pub mod manner;
pub mod named;
mod nothing;
pub mod of_agent;
pub mod open;
pub mod output;
pub mod pack;
mod preface;
pub mod profile;
mod read;
pub mod record;
pub mod redact;
pub mod report;
pub mod run;
pub mod running;
pub mod script;
mod script_text;
mod show;
mod spans;
mod stacks;
pub mod start;
mod stats;
pub mod strace_flags;
pub mod target;
pub mod threads;
pub mod trace;
pub mod tracer;
pub mod view;

use output::complain;
pub use read::read;
