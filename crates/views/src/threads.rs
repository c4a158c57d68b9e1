//! What threads are doing now: their calls and stacks, what they wait for, and which of them wait for one another.
//!
//! ```text
//! deadlock: 2 threads wait for one another
//!   4712 (worker-0) waits for mutex 0x55d0c0, held by 4713 (worker-1)
//!   4713 (worker-1) waits for mutex 0x55d0f0, held by 4712 (worker-0)
//!
//! 4711 (app): 3 threads
//!
//! 4711 (app) futex(0x7f62, FUTEX_WAIT, 4712, NULL), for 3.2 s
//!     waits for thread 4712 (worker-0) to end
//!     #0  __pthread_clockjoin_ex+0x1b (libc.so.6)
//!     #1  main at app.c:33
//! ```

mod deadlock;
mod json;
mod text;

pub use crate::stack::Named as Frame;
pub use deadlock::{Deadlock, find};
pub use json::write as json;
pub use text::{Style, write as text};

/// A process.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// The id by which it knows itself, where that is another one: it is in another pid namespace.
    pub own: Option<i32>,
    /// Its name.
    pub name: String,
    /// Its threads, in the order of their ids.
    pub threads: Vec<Thread>,
    /// It was looked at because threads of others wait for it: shown only where it is part of a deadlock.
    pub other: bool,
}

/// A thread.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// Its id.
    pub tid: i32,
    /// The id by which it knows itself, where that is another one.
    pub own: Option<i32>,
    /// Its name.
    pub name: String,
    /// Its state, as proc(5) has it.
    pub state: char,
    /// The call that it is in: its name, and its text.
    pub call: Option<(String, String)>,
    /// For how long it has not run, ns.
    pub idle: Option<u64>,
    /// What it waits for.
    pub wait: Option<Wait>,
    /// Its stack, innermost first.
    pub stack: Vec<Frame>,
    /// Why the stack is not whole.
    pub incomplete: Option<String>,
}

/// What a thread waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// What kind of thing: `mutex`, `pipe`, `child`, …
    pub kind: &'static str,
    /// In words, after "waits for".
    pub object: String,
    /// How the others stand to it: `held by`, `written by`, …; empty where they are part of the object.
    pub relation: &'static str,
    /// Who can end it.
    pub by: Vec<Actor>,
    /// Nobody else can end it.
    pub complete: bool,
    /// The actors are likely, and not proven.
    pub likely: bool,
    /// It ends by itself after a time.
    pub timed: bool,
    /// What else is to be said of it.
    pub note: String,
}

/// Who can end a wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actor {
    /// Process.
    pub pid: i32,
    /// Thread; none is any thread of the process.
    pub tid: Option<i32>,
    /// Name.
    pub name: String,
    /// How, where the relation does not say it: a descriptor.
    pub how: String,
}

/// What was found, all together.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The processes.
    pub processes: Vec<Process>,
    /// How long threads were stopped, ns, all together.
    pub stopped: u64,
}
