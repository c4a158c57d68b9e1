//! Stopping the threads of a running process, and calling functions in it.
//!
//! ```text
//!  Threads::stop ─► all threads stand still ──┐
//!  Thread::stop  ─► one does                 ─┴─► Caller: memory for code and a stack ─► call ─► result ─► registers as they were
//! ```
//!
//! Every request comes from the thread of trapline that has stopped a thread of the target (ptrace(2)); values of this module stay there.
//! Dropped, they let the target run on.

mod call;
mod frame;
mod threads;

pub use call::{Caller, instruction};
pub use threads::{Thread, Threads};
