//! The path of the events from a backend to the views, whether they come from a ring or from a directory.
//!
//! ```text
//! backend ─► source: recorder, [thread, backlog] ─► pump: world (threads, descriptors) ─► selection, filter ─► sinks
//! ```

pub mod aside;
pub mod backend;
pub mod backlog;
pub mod call_enablings;
pub mod chunk;
pub mod fdtable;
pub mod filter;
pub mod functions;
pub mod merge;
pub mod parallel;
mod plan_filters;
pub mod pump;
pub mod recorder;
pub mod selection;
pub mod source;
pub mod stacks;
pub mod thread;
pub mod threads;
pub mod world;
