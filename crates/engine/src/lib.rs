//! Sessions: a request becomes a [`plan::Plan`], a [`backend`] carries it out, and the [`pipeline`] delivers the events.
//!
//! ```text
//! command line ─► request, plan ─► backend: ptrace, kernel, recorded ─► pipeline: recorder, world, filter ─► sinks
//! ```

pub mod backend;
pub mod callers;
pub mod capture;
pub mod control;
pub mod error;
pub mod heap;
pub mod maps;
pub mod own_events;
pub mod pipeline;
pub mod plan;
pub mod probe_diagnosis;
pub mod provider;
pub mod redact;
pub mod request;
pub mod resolver;
pub mod rights;
pub mod slab;
pub mod stats;
pub mod target;

pub use error::{Error, Result};
