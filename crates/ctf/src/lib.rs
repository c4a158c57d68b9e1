//! Traces in the Common Trace Format (CTF) 1.8: a directory with a text file `metadata`, which describes the bytes, and
//! data streams, which are packets of events.
//!
//! ```text
//! events::Schema ─► classes ─► model ─► print ─► metadata (text)      metadata ─► tsdl ─► model, plan ─► generic: any CTF trace
//! event bytes ─► packet::PacketWriter ─► stream files                 stream files of trapline ─► native: the same bytes
//! ```
//!
//! One model describes traces of trapline and of others. The events of trapline are read without the model: their bytes in the
//! trace are the bytes that were in the ring.

pub mod classes;
pub mod end;
pub mod folder;
pub mod format;
pub mod functions;
pub mod generic;
mod identifiers;
pub mod labels;
pub mod model;
pub mod native;
pub mod packed;
pub mod packet;
pub mod packs;
pub mod plan;
pub mod print;
mod records;
pub mod repair;
pub mod replace;
pub mod rewrite;
pub mod show;
pub mod store;
pub mod trace;
pub mod tsdl;
