//! The collector's side of what it shares with the agents in traced processes (`abi`): the socket, the shared memory, and the word by
//! which an agent learns that the collector has ended.

mod life;
mod place;
mod shared;
mod socket;
mod tables;
mod tracers;

pub use life::{Held, Life};
pub use place::open_to_all;
pub use shared::{Chunk, Shared, State};
pub(crate) use socket::seal;
pub use socket::{Backlog, Listener, Request, SocketFile, sealed};
pub use tables::Tables;
pub use tracers::{Print, Status, Talk};
