//! What an event is: fields, types, schemas, and the bytes that follow from them.
//!
//! ```text
//! tables/*.def ──codegen──► generated::* (Schema, Table, Struct, Switch)
//!                               │
//!              layout::Layout ◄─┘   offsets of the fixed fields, shapes of the tails
//!               │           │
//!   encode ─► bytes ─► event::Event ─► walk (calls a Sink per value) ─► text, JSON, record
//! ```
//!
//! Pure: nothing here reads a file, a clock or another process. Every stage of trapline reads the schemas of this crate
//! and nothing else; no stage knows a system call by name unless it is one of the few named overrides.

pub mod cap;
pub mod dynamic;
pub mod encode;
pub mod errno;
pub mod event;
pub mod functions;
#[rustfmt::skip]
pub mod generated;
pub mod hash;
pub mod io_uring;
pub mod keep;
pub mod layout;
pub mod memory;
pub mod message;
pub mod names;
mod operation_fields;
mod origin;
pub mod redact;
pub mod registry;
pub mod rules;
pub mod schema;
pub mod sink;
pub mod sockaddr;
pub mod stacks;
pub mod stream;
pub mod traces;
pub mod types;
pub mod values;
pub mod walk;

pub use event::{Cap, Event, Tail};
pub use layout::Layout;
pub use schema::{Arg, Class, Dir, Extent, Schema, Sets};
pub use stream::StreamId;
pub use types::{Fmt, Int, Len, Mem, Struct, Switch, Table, Type};
