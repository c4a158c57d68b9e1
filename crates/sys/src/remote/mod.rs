//! Stopping the threads of a running process, and calling functions in it.
//!
//! ```text
//!  Threads::stop ─► all threads stand still ──┐
//!  Thread::ask   ─► one does                 ─┴─► Caller: memory for code and a stack ─► call ─► result ─► registers as they were
//! ```
//!
//! Every request comes from the thread of trapline that has stopped a thread of the target (ptrace(2)); values of this module stay there, but
//! for [`Memory`].
//! Dropped, they let the target run on. [`alone`] runs a job in a thread of its own: at its end, whatever happens in it, the kernel lets
//! go of everything that it has stopped or has asked to stop.

mod call;
mod frame;
mod thread;
mod threads;

pub use call::{Caller, Instructions, Memory};
pub use thread::{Thread, Walk};
pub use threads::Threads;

/// Runs a job that stops threads of other processes, in a thread of its own.
///
/// # Errors
/// No thread is to be had.
pub fn alone<T: Send>(job: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("trapline-attach".into()).spawn_scoped(scope, job)?;
        thread.join().map_err(|_| std::io::Error::other("the thread that stops others has failed"))
    })
}
