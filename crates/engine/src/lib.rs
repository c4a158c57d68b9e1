//! Sessions: what is asked for becomes a [`plan::Plan`], a [`backend`] carries it out, the [`collector`] brings the events.
//!
//! ```text
//! command line ─► select, plan ─► backend::ptrace (a process of its own) ─► ring ─► collector (descriptor table) ─► views
//! ```

pub mod backend;
pub mod capture;
pub mod collector;
pub mod command;
pub mod control;
pub mod danger;
pub mod doctor;
pub mod enabling;
pub mod error;
mod explain;
pub mod fdtable;
pub mod losses;
pub mod maps;
pub mod modules;
pub mod near;
pub mod plan;
pub mod provider;
pub mod quoting;
pub mod readers;
pub mod recorder;
pub mod returns;
pub mod rights;
pub mod select;
pub mod sieve;
pub mod silence;
pub mod threads;

pub use error::{Error, Result};
