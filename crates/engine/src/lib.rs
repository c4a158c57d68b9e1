//! Sessions: a request becomes a [`plan::Plan`], a [`backend`] carries it out, and the [`pipeline`] delivers the events.
//!
//! ```text
//! command line ─► select, plan ─► backend: ptrace, kernel, recorded ─► pipeline: recorder, world, filter ─► sinks
//! ```

pub mod backend;
pub mod call_enabling;
pub mod capture;
pub mod captures;
pub mod command;
pub mod control;
pub mod danger;
pub mod doctor;
pub mod enabling;
pub mod error;
mod explain;
pub mod expression;
pub mod functions;
pub mod heap;
pub mod heap_enabling;
pub mod maps;
pub mod modules;
pub mod moved;
pub mod output_readers;
pub mod own_events;
pub mod pipeline;
pub mod plan;
mod plan_filters;
pub mod probe_diagnostics;
pub mod provider;
pub mod quoting;
mod refusal;
pub mod resolver;
pub mod returns;
pub mod rights;
pub mod select;
pub mod session;
pub mod slab;
pub mod stats;
pub mod target;

pub use error::{Error, Result};
