//! Backends: how a session is carried out. All bring the same events through the same few functions.

pub mod kernel;
pub mod ptrace;

use crate::control::{Order, Standing, Stream};
use crate::error::{Error, Result};
use crate::losses::Losses;
use crate::plan::{Backend, OnFull, Plan, Target};
use crate::recorder::Recorder;
use events::StreamId;
use std::time::Duration;
use sys::ptrace::Change;
use sys::time;

/// Real user and group of a thread as arguments of an event; (uid_t)-1 where they are not known.
fn ids(tid: i32) -> (u64, u64) {
    let (uid, gid) = sys::proc::ids(tid).unwrap_or((u32::MAX, u32::MAX));
    (uid.into(), gid.into())
}

/// A running session of either backend.
pub enum Session {
    /// ptrace(2).
    Ptrace(Box<ptrace::Session>, Option<Box<Recorder>>),
    /// eBPF.
    Kernel(kernel::Session),
}

impl Session {
    /// Starts what the plan asks for. Must be called before any thread is started. Events go to `keep`, where they are to be
    /// kept, and with `live` to [`Session::drain`]; the ptrace backend always hands them to both.
    pub fn start(plan: &Plan, keep: Option<Recorder>, live: bool) -> Result<Session> {
        match plan.backend {
            Backend::Kernel if plan.on_full == OnFull::Block => Err(Error::usage(
                "--on-full block",
                "the kernel backend cannot block the target",
                if matches!(plan.target, Target::All { .. }) {
                    "leave it out: the rest is dropped and counted"
                } else {
                    "use --backend ptrace, or --on-full drop"
                },
            )),
            Backend::Kernel => {
                crate::rights::of_targets(plan)?;
                Ok(Session::Kernel(kernel::Session::start(plan, keep, live)?))
            }
            _ if matches!(plan.target, Target::All { .. }) => Err(Error::usage(
                "-a",
                "the whole machine needs the kernel backend",
                "leave --backend out, or use -p PID",
            )),
            Backend::Auto | Backend::Ptrace => {
                Ok(Session::Ptrace(Box::new(ptrace::Session::start(plan)?), keep.map(Box::new)))
            }
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Session::Ptrace(_, _) => "ptrace",
            Session::Kernel(_) => "kernel",
        }
    }

    /// Hands over every event that is there; returns how many.
    pub fn drain(&mut self, scratch: &mut Vec<u8>, mut each: impl FnMut(&[u8])) -> usize {
        match self {
            Session::Ptrace(s, None) => s.drain(scratch, each),
            Session::Ptrace(s, Some(keep)) => {
                let now = time::monotonic();
                // A disk that is slower than the command makes the command wait, or the ring fill up and count.
                let n = if keep.has_room() {
                    s.drain(scratch, |event| {
                        keep.event(StreamId::TRACER, event);
                        each(event);
                    })
                } else {
                    0
                };
                let dropped = s.dropped();
                // The ring is that of one stream; what is mapped comes another way.
                keep.tick(now, |stream| if stream == StreamId::TRACER { dropped } else { 0 });
                n
            }
            Session::Kernel(s) => s.drain(each),
        }
    }

    /// Has an order carried out; none where the session has ended, or is too busy to answer.
    pub fn order(&self, order: Order) -> Option<Standing> {
        match self {
            Session::Kernel(s) => s.order(order),
            Session::Ptrace(s, keep) => {
                s.order(&order);
                let (used, size) = (s.ring().used(), s.ring().size());
                let stream = Stream { name: StreamId::TRACER.to_string(), used, size, dropped: s.dropped() };
                Some(Standing {
                    streams: vec![stream],
                    kept: keep.as_ref().map(|k| k.so_far()),
                    losses: s.losses(),
                    ..Standing::default()
                })
            }
        }
    }

    /// What has kept the events, once the session has [finished](Session::finished).
    pub fn take_recorder(&mut self) -> Option<Recorder> {
        match self {
            Session::Ptrace(s, keep) => {
                let mut recorder = keep.take()?;
                recorder.set_lost(StreamId::TRACER, s.dropped());
                Some(*recorder)
            }
            Session::Kernel(s) => s.take_recorder(),
        }
    }

    /// Sleeps until there are events, the end, or `timeout`.
    pub fn wait(&self, timeout: Duration) {
        match self {
            Session::Ptrace(s, _) => s.ring().wait_for_frames(timeout),
            Session::Kernel(s) => s.wait(timeout),
        }
    }

    /// Asks for the end: running processes are let go.
    pub fn stop(&self) {
        match self {
            Session::Ptrace(s, _) => s.stop(),
            Session::Kernel(s) => s.stop(),
        }
    }

    /// Whether no more events will come.
    pub fn finished(&mut self) -> bool {
        match self {
            Session::Ptrace(s, _) => s.finished(),
            Session::Kernel(s) => s.finished(),
        }
    }

    /// The command's process id, once it is known.
    pub fn command(&self) -> Option<i32> {
        match self {
            Session::Ptrace(s, _) => s.command(),
            Session::Kernel(s) => s.command(),
        }
    }

    /// How the command ended.
    pub fn command_status(&mut self) -> Option<Change> {
        match self {
            Session::Ptrace(s, _) => s.command_status(),
            Session::Kernel(s) => s.command_status(),
        }
    }

    /// Whether the tracer process was killed before its work was done.
    pub fn tracer_was_killed(&self) -> bool {
        match self {
            Session::Ptrace(s, _) => s.tracer_was_killed(),
            Session::Kernel(_) => false,
        }
    }

    /// Whether the events cannot be read any more, so that the session has ended.
    pub fn is_unreadable(&self) -> bool {
        match self {
            Session::Ptrace(s, _) => s.ring().is_given_up(),
            Session::Kernel(_) => false,
        }
    }

    /// Events that found no room.
    pub fn dropped(&self) -> u64 {
        match self {
            Session::Ptrace(s, _) => s.dropped(),
            // Of a ring that is not read any more at least what stood there next.
            Session::Kernel(s) => s.dropped() + sys::span::given_up().map_or(0, |(rings, _)| rings),
        }
    }

    /// What found no room, in all and by class; known when the session has finished.
    pub fn losses(&self) -> Losses {
        match self {
            Session::Ptrace(s, _) => s.losses(),
            Session::Kernel(s) => s.losses(),
        }
    }

    /// The `--buffer` with which all would have found room, in bytes, where that is known.
    pub fn large_enough_buffer(&self) -> Option<u64> {
        match self {
            Session::Ptrace(_, _) => None,
            Session::Kernel(s) => s.large_enough_buffer(),
        }
    }

    /// Runs of programs that the kernel has left out: events that nobody has seen.
    pub fn skipped(&self) -> kernel::Skipped {
        match self {
            Session::Ptrace(_, _) => kernel::Skipped::default(),
            Session::Kernel(s) => s.skipped(),
        }
    }

    /// What filters in the kernel have held back.
    pub fn filtered(&self) -> crate::sieve::Filtered {
        match self {
            Session::Ptrace(_, _) => crate::sieve::Filtered::default(),
            Session::Kernel(s) => s.filtered(),
        }
    }

    /// What was counted of each enabling of a probe other than a call, in the plan's order; known when the session has finished.
    pub fn enablings(&self) -> &[(String, kernel::probes::Counts)] {
        match self {
            Session::Ptrace(_, _) => &[],
            Session::Kernel(s) => s.enablings(),
        }
    }

    /// Probes that are attached in their second way, because the kernel has refused the first.
    pub fn fell_back(&self) -> &[String] {
        match self {
            Session::Ptrace(_, _) => &[],
            Session::Kernel(s) => s.fell_back(),
        }
    }

    /// What the session has cost in the kernel; known when it has finished.
    pub fn cost(&self) -> Option<&kernel::cost::Cost> {
        match self {
            Session::Ptrace(_, _) => None,
            Session::Kernel(s) => s.cost(),
        }
    }

    /// What runs in the kernel: where, and the program.
    pub fn programs(&self) -> &[(String, bpf::Program)] {
        match self {
            Session::Ptrace(_, _) => &[],
            Session::Kernel(s) => s.programs(),
        }
    }

    /// Programs that are not shown to the session's user: names of the first ones, and how many.
    pub fn let_go(&self) -> kernel::LetGo {
        match self {
            Session::Ptrace(_, _) => kernel::LetGo::default(),
            Session::Kernel(s) => s.let_go(),
        }
    }

    /// Threads that were still on their way out when the session ended: what they did then is not in it.
    pub fn cut_off(&self) -> u64 {
        match self {
            Session::Ptrace(_, _) => 0,
            Session::Kernel(s) => s.cut_off(),
        }
    }

    /// What went wrong on the way, and what that has cost.
    pub fn trouble(&self) -> Vec<String> {
        let own = match self {
            Session::Ptrace(s, _) => s.trouble(),
            Session::Kernel(s) => s.trouble().map(|t| format!("event backlog: {t}")),
        };
        own.into_iter().chain(sys::span::given_up().map(|(_, first)| first.to_string())).collect()
    }

    /// Calls that the attach interrupted for good.
    pub fn interrupted(&self) -> u64 {
        match self {
            Session::Ptrace(s, _) => s.interrupted(),
            Session::Kernel(_) => 0,
        }
    }

    /// Why the session could not start, if it could not.
    pub fn failure(&self, plan: &Plan) -> Option<Error> {
        match self {
            Session::Ptrace(s, _) => s.failure(plan),
            Session::Kernel(s) => s.failure(plan),
        }
    }
}
