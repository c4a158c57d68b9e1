//! Backends: how a session is carried out. All bring the same events through one trait.

pub mod kernel;
pub mod ptrace;
pub mod recorded;
pub mod stats;

use crate::control::{Order, State};
use crate::error::{Error, Result};
use crate::pipeline::recorder::Recorder;
use crate::pipeline::source::Source;
use crate::pipeline::thread::Threaded;
use crate::plan::{self, OnFull, Plan, Target};
use events::StreamId;
use stats::Report;
use std::time::Duration;
use sys::ptrace::Change;

/// Real user and group of a thread as arguments of an event; (uid_t)-1 where they are not known.
fn ids(tid: i32) -> (u64, u64) {
    let (uid, gid) = sys::proc::ids(tid).unwrap_or((u32::MAX, u32::MAX));
    (uid.into(), gid.into())
}

/// What a call of [`Backend::poll`] has brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Polled {
    /// Events that were handed over.
    pub events: usize,
    /// No more will come.
    pub ended: bool,
}

/// What was attached, for `--explain`.
#[derive(Clone, Debug, Default)]
pub struct Attached {
    /// What runs in the kernel: where, and the program.
    pub programs: Vec<(String, bpf::Program)>,
    /// Probes that are attached in their second way, because the kernel has refused the first.
    pub fell_back: Vec<String>,
}

/// Carries a session out, and brings its events.
///
/// The calls are: [`poll`](Backend::poll) and [`wait`](Backend::wait) in turn until `poll` says that it has ended, then
/// [`report`](Backend::report). Anything else may be called at any time.
pub trait Backend: Send {
    /// Its name, as `--backend` has it.
    fn name(&self) -> &'static str;

    /// Hands over the events that are there, each with its stream, in the order in which views are to have them.
    /// Without `room`, events that can wait where they are do.
    fn poll(&mut self, room: bool, each: &mut dyn FnMut(StreamId, &[u8])) -> Polled;

    /// Sleeps until there may be events, or for `timeout`.
    fn wait(&mut self, timeout: Duration);

    /// Carries an order out, and says how the session is then; none where it takes none.
    fn control(&mut self, order: Order) -> Option<State>;

    /// Asks for the end: running processes are let go. [`Backend::poll`] brings what is left.
    fn stop(&mut self);

    /// The command's process id, once it is known.
    fn command(&self) -> Option<i32> {
        None
    }

    /// How the command ended, if it has.
    fn command_status(&mut self) -> Option<Change> {
        None
    }

    /// What was attached; once.
    fn take_attached(&mut self) -> Attached {
        Attached::default()
    }

    /// Why the session could not start, if it could not; once.
    fn failure(&mut self, _plan: &Plan) -> Option<Error> {
        None
    }

    /// The streams that events come from.
    fn streams(&self) -> Vec<StreamId>;

    /// Events of a stream that found no room so far.
    fn dropped_on(&self, stream: StreamId) -> u64;

    /// What is known at the end.
    fn report(&mut self) -> Report;

    /// What has kept the events, where they were kept on the other side of a thread.
    fn take_recorder(&mut self) -> Option<Recorder> {
        None
    }
}

/// Starts what the plan asks for. Must be called before any thread is started. Events go to `keep`, where they are to be kept, and
/// with `live` to whoever polls too.
pub fn start(plan: &Plan, keep: Option<Recorder>, live: bool) -> Result<Source<'static>> {
    match plan.backend {
        plan::Backend::Kernel if plan.on_full == OnFull::Block => Err(Error::usage(
            "--on-full block",
            "the kernel backend cannot block the target",
            if matches!(plan.target, Target::All { .. }) {
                "leave it out: the rest is dropped and counted"
            } else {
                "use --backend ptrace, or --on-full drop"
            },
        )),
        plan::Backend::Kernel => {
            crate::rights::of_targets(plan)?;
            let source = Source::new(Box::new(kernel::Kernel::start(plan)?), keep);
            Ok(Source::new(Box::new(Threaded::start(source, plan, live)?), None))
        }
        _ if matches!(plan.target, Target::All { .. }) => {
            Err(Error::usage("-a", "the whole machine needs the kernel backend", "leave --backend out, or use -p PID"))
        }
        plan::Backend::Auto | plan::Backend::Ptrace => Ok(Source::new(Box::new(ptrace::Session::start(plan)?), keep)),
    }
}
