//! What a session does: targets, selection, limits, and which backend carries it out.

use crate::callers;
use crate::capture::captures::Captures;
use crate::capture::{self, Limits};
use crate::error::{Error, Result};
use crate::provider::AttachPoint;
use crate::request::call_enabling::CallCaptures;
use crate::request::call_enabling::{self, CallEnabling};
use crate::request::enabling::{self, Enabling};
use crate::request::expression::Expression;
use crate::request::functions::Functions;
use crate::request::heap_enabling;
use crate::request::probe_enabling::{ProbeEnabling, Source};
use crate::request::select::{Calls, FD_CALLS, ID_CALLS, NAME_CALLS, for_descriptors};
use crate::rights;
use crate::target::Target;
use events::Schema;
use std::sync::Arc;

/// What a full ring does to the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFull {
    /// The target waits.
    Block,
    /// The event is dropped and counted.
    Drop,
}

/// Which backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The first of kernel, agent, ptrace that can do what is asked.
    Auto,
    /// ptrace(2): always there, never loses.
    Ptrace,
    /// eBPF: a fraction of the cost, needs privilege.
    Kernel,
    /// An agent in the process: functions.
    Agent,
    /// perf_event_open(2): samples with copied stacks, for ordinary users.
    Perf,
}

/// Bytes of a stack that the perf backend copies, if nothing else is asked for: with 16 KiB, 24 % of the stacks of rustc are whole, with
/// 32 KiB 91 %.
pub const COPIED_STACK: u32 = 32 << 10;

/// Calls by which the loader loads the agent's file, which are known by its descriptor.
const LOADING: &[&str] = &["read", "pread64", "fstat", "newfstatat", "close"];
/// Calls that show which descriptor that is.
const LOADER_FILES: &[&str] = &["open", "openat", "close"];

/// How user stacks are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unwind {
    /// By tables where the kernel can walk them, else by frame pointers.
    #[default]
    Auto,
    /// By tables made from `.eh_frame`.
    Tables,
    /// By frame pointers.
    FramePointers,
    /// By tables, in copies of the stacks: what the perf backend does.
    Copy,
}

/// The plan of a session.
#[derive(Debug)]
pub struct Plan {
    /// Whose events.
    pub target: Target,
    /// What is enabled, and what was.
    pub enablings: Vec<Enabling>,
    /// How the agent records functions and allocations; none: there is no agent.
    pub functions: Option<Functions>,
    /// Calls have other filters than at the start, which those in the programs are not.
    pub refiltered: bool,
    /// Calls, and signals, that have captures in addition to their arguments.
    pub call_captures: Vec<CallCaptures>,
    /// How user stacks are found.
    pub unwind: Unwind,
    /// Samples are taken by the perf backend beside the ptracer, which traces the calls: bytes of its rings.
    pub samples_beside: Option<usize>,
    /// Bytes of each stack that the perf backend copies: a multiple of 8.
    pub copied_stack: u32,
    /// What tells the perf backend where traced functions were called from, where the agent joins it, or may.
    pub callers: Option<callers::Handle>,
    /// The kernel is to measure what programs cost, which costs them some more.
    pub measure: bool,
    /// Nothing runs at the entry of calls (`--no-duration`): events have no start, and what was to be read there is counted. For the kernel
    /// backend.
    pub no_duration: bool,
    /// Children and new threads are traced too.
    pub follow: bool,
    /// How much memory is read per argument.
    pub limits: Limits,
    /// Names of descriptors are needed (`-y`, `-P`).
    pub fd_names: bool,
    /// The ends of sockets and device numbers are needed too (`-yy`).
    pub fd_details: bool,
    /// A seccomp filter may be put on the command.
    pub seccomp: bool,
    /// What is traced is killed when the tracing ends (ptrace).
    pub kill_on_exit: bool,
    /// What a full ring does.
    pub on_full: OnFull,
    /// Bytes of the ring.
    pub buffer: usize,
    /// The kernel's programs find the words of a call in 2 to this power slots; none: in as many as suit.
    pub slots: Option<u32>,
    /// They were asked for (`--buffer`); else the kernel backend's ring of calls fits what is selected.
    pub buffer_is_asked: bool,
    /// Backend asked for.
    pub backend: Backend,
    /// The session takes orders while it runs ([`crate::control`]): everything is traced that an order may ask for.
    pub named: bool,
    /// The session begins stopped. Only named sessions can.
    pub paused: bool,
    /// Calls longer than this get a notice, in ms; 0 for never.
    pub notice_ms: u32,
    /// Only calls that pass this (`--where`).
    pub filter: Option<Arc<Expression>>,
}

impl Plan {
    /// Whether nothing is enabled.
    pub fn enables_nothing(&self) -> bool {
        self.enablings.iter().all(|e| e.removed)
    }

    /// The calls whose events are wanted.
    pub fn calls(&self) -> Calls {
        enabling::calls_of(&self.enablings)
    }

    /// Calls as they are enabled, each with its filter.
    pub fn call_enablings(&self) -> impl Iterator<Item = &CallEnabling> + Clone {
        self.enablings.iter().filter(|e| !e.removed).filter_map(Enabling::calls)
    }

    /// Probes other than calls, those that were taken away included.
    pub fn probes(&self) -> impl Iterator<Item = &Arc<ProbeEnabling>> + Clone {
        self.enablings.iter().filter_map(Enabling::probe)
    }

    /// Probes that the agent reaches in processes.
    pub fn in_process(&self) -> impl Iterator<Item = &Arc<ProbeEnabling>> + Clone {
        self.enablings.iter().filter_map(Enabling::in_process)
    }

    /// How allocations are recorded, where they are.
    pub fn heap(&self) -> Option<&heap_enabling::Wanted> {
        self.functions.as_ref()?.heap.as_ref()
    }

    /// The calls that the backend must see: those that it delivers, and those by which the loading of the agent is known.
    pub fn seen_calls(&self) -> Calls {
        let mut calls = self.delivered_calls();
        let named = |names: &'static [&str]| names.iter().filter_map(|name| events::registry::by_name(name));
        let wanted = self.calls();
        if self.is_joined() && named(LOADING).any(|s| wanted.contains(s)) {
            named(LOADER_FILES).for_each(|s| calls.insert(s));
        }
        calls
    }

    /// The calls that views and traces get: those wanted, and those that the descriptor table and names of threads need.
    pub fn delivered_calls(&self) -> Calls {
        let mut calls = self.calls();
        let mut also = |names: &[&str]| {
            names.iter().filter_map(|name| events::registry::by_name(name)).for_each(|s| calls.insert(s));
        };
        if self.fd_names {
            also(FD_CALLS);
        }
        // The programs know the thread that they run in; elsewhere its name and ids are known from what it does.
        let outside = |f: &&Arc<Expression>| self.backend != Backend::Kernel || self.fd_names || f.searches();
        if let Some(filter) = self.filter.as_ref().filter(outside) {
            also(if filter.asks_comm() { NAME_CALLS } else { &[] });
            also(if filter.asks_ids() { ID_CALLS } else { &[] });
        }
        if !self.evaluated_calls().is_empty() {
            let any = |asks: fn(&CallEnabling) -> bool| self.call_enablings().any(asks);
            also(if any(CallEnabling::asks_comm) { NAME_CALLS } else { &[] });
            also(if any(CallEnabling::asks_ids) { ID_CALLS } else { &[] });
        }
        calls
    }

    /// Whether functions are traced together with calls or probes, by the agent beside another backend.
    pub fn is_joined(&self) -> bool {
        self.functions.is_some() && self.backend != Backend::Agent
    }

    /// The name of what carries it out.
    pub fn backend_name(&self) -> &'static str {
        match (self.is_joined(), self.samples_beside) {
            (true, Some(_)) => "ptrace+perf+agent",
            (false, Some(_)) => "ptrace+perf",
            (true, None) => self.backend.with_agent(),
            (false, None) => self.backend.name(),
        }
    }

    /// The upper half of the addresses of code whose calls are not the program's: the agent's, which may join a named session later.
    pub fn hidden_code(&self) -> Option<u32> {
        (self.is_joined() || self.may_get_agent()).then_some((abi::CODE.start >> 32) as u32)
    }

    /// Whether stacks of samples are copied, and walked later.
    pub fn copies_stacks(&self) -> bool {
        self.backend == Backend::Perf || self.samples_beside.is_some()
    }

    /// Has the agent tell where traced functions were called from, where stacks are copied meanwhile.
    pub fn share_callers(&mut self) {
        if self.copies_stacks() && (self.functions.is_some() || self.may_get_agent()) {
            self.callers = Some(callers::Handle::default());
            self.functions.iter_mut().for_each(|functions| functions.callers = true);
        }
    }

    /// Whether an order may have the agent injected into the processes.
    pub fn may_get_agent(&self) -> bool {
        self.named && self.backend != Backend::Agent && !matches!(self.target, Target::All { .. })
    }

    /// The calls whose filters are evaluated outside of the backend.
    pub fn evaluated_calls(&self) -> Calls {
        call_enabling::evaluated(self.call_enablings(), self.refiltered || self.backend != Backend::Kernel)
    }

    /// The class of a call's events.
    pub fn class_of(&self, call: &'static Schema) -> &'static Schema {
        self.call_captures.iter().find(|c| c.schema.base == call.id).map_or(call, |c| c.schema)
    }

    /// The most frames of the stacks of calls: one program captures those of all.
    pub fn frames_of_calls(&self) -> Captures {
        self.call_captures.iter().map(|c| c.frames).fold(Captures::default(), Captures::join)
    }

    /// Whether any event has a user stack, or may have one later.
    pub fn has_user_stacks(&self) -> bool {
        let ids = |e: &Arc<ProbeEnabling>| e.fields.iter().any(|f| matches!(f, Source::UserStack(_)));
        self.named || self.frames_of_calls().ustack > 0 || self.probes().any(ids)
    }

    /// Whether nothing needs to be known of tasks: a session of the whole machine whose probes see every task, and need no more than
    /// their events.
    pub fn is_bare(&self) -> bool {
        let bare = |e: &Enabling| e.probe().is_some_and(|p| p.bare && p.everyone && p.point.is_some());
        matches!(self.target, Target::All { .. })
            && self.functions.is_none()
            && self.filter.is_none()
            && !self.fd_names
            && !self.has_user_stacks()
            && !self.enablings.is_empty()
            && self.enablings.iter().all(bare)
    }

    /// Whether a clock on every CPU takes user stacks: a profile.
    pub fn samples_stacks(&self) -> bool {
        let stack = |e: &ProbeEnabling| e.fields.iter().any(|f| matches!(f, Source::UserStack(_)));
        self.probes().any(|e| matches!(e.point, Some(AttachPoint::Clock { every_cpu: true, .. })) && stack(e))
    }

    /// The calls that are reported if a thread is in one of them at the start: none for a session that begins stopped.
    pub fn calls_at_attach(&self) -> Calls {
        if self.paused { Calls::none() } else { self.seen_calls() }
    }

    /// Whether calls of this class are filtered by the programs of the kernel backend. Calls that the table of descriptors needs are
    /// not, for the table's sake, nor is what searches strings.
    pub fn filters_in_kernel(&self, s: &Schema) -> bool {
        let has_filter = self.filter.as_ref().is_some_and(|f| f.of(s).is_some_and(|f| !f.needs().search));
        has_filter && self.backend == Backend::Kernel && s.name != "raw" && !(self.fd_names && for_descriptors(s))
    }

    /// Whether the filter of calls of this class is evaluated on their events.
    pub fn evaluates(&self, s: &Schema) -> bool {
        let has_filter = self.filter.as_ref().is_some_and(|f| f.of(s).is_some());
        has_filter && !self.filters_in_kernel(s) || self.evaluated_calls().contains(s)
    }

    /// Whether events may have addresses of code, which only mean something beside what was mapped where. A selection of calls has
    /// none, and to watch mappings makes the start wait for a grace period of RCU.
    pub fn has_addresses(&self) -> bool {
        self.named
            || self.calls().is_all()
            || self.probes().next().is_some()
            || !self.call_captures.is_empty()
            || self.is_joined() && self.has_heap()
    }

    /// Whether allocations go to a model, and are no events.
    pub fn has_consumer(&self) -> bool {
        self.heap().is_some_and(|h| h.consumer.is_some())
    }

    /// Whether allocations are recorded with stacks.
    pub fn has_heap(&self) -> bool {
        self.heap().is_some_and(|h| h.stacks)
    }

    /// Bytes of strings and buffers of calls that the backend captures at most, if fewer than asked for.
    pub fn less_captured(&self) -> Option<usize> {
        let most = self.backend.most_captured()?;
        (self.limits.string > most && !self.calls().is_empty()).then_some(most)
    }

    /// Whether a seccomp filter is put on the command: only if trapline starts it, and only if it spares some calls their stops.
    pub fn filters(&self) -> bool {
        self.may_filter() && (!self.seen_calls().is_all() || self.records_calls())
    }

    fn may_filter(&self) -> bool {
        self.seccomp && !self.named && self.follow && matches!(self.target, Target::Command(_))
    }

    /// Whether processes record calls themselves, and have code patched for that, under ptrace. Without a filter all their calls would stop.
    /// Stacks are walked at stops.
    pub fn records_calls(&self) -> bool {
        self.backend == Backend::Ptrace
            && self.may_filter()
            && self.call_captures.is_empty()
            && !self.seen_calls().is_empty()
            && sys::intercept::is_possible()
    }
}

/// A limit of every backend that shows calls.
const CPU_TIME: (&str, &str) =
    ("processor time of calls", "not measured: -c and -T show the time of the wall clock, as strace -c -w does");

impl Backend {
    /// Bytes of a string or buffer of a call that it captures at most; none where it traces no calls.
    pub fn most_captured(self) -> Option<usize> {
        match self {
            Backend::Kernel => Some(capture::MOST_IN_PROGRAMS),
            Backend::Ptrace => Some(capture::MOST),
            _ => None,
        }
    }
    /// The name that `--backend` takes.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Auto => "auto",
            Backend::Ptrace => "ptrace",
            Backend::Kernel => "kernel",
            Backend::Agent => "agent",
            Backend::Perf => "perf",
        }
    }

    /// The name that it has together with the agent.
    pub fn with_agent(self) -> &'static str {
        match self {
            Backend::Kernel => "kernel+agent",
            Backend::Perf => "perf+agent",
            Backend::Agent => "agent",
            Backend::Auto | Backend::Ptrace => "ptrace+agent",
        }
    }

    /// The backend that is taken, and why. `on_full`: what was asked for, if anything; `attaches`: to processes that run already.
    pub fn taken(self, on_full: Option<OnFull>, attaches: bool) -> (Backend, String) {
        if self != Backend::Auto {
            return (self, "as requested".into());
        }
        let ptrace = |why: String| (Backend::Ptrace, format!("auto: {why}"));
        if on_full == Some(OnFull::Block) {
            return ptrace("--on-full block, and only ptrace can make the target wait".into());
        }
        if let Err(why) = rights::kernel_backend_is_usable() {
            return ptrace(why);
        }
        if attaches
            && sys::proc::pid_namespace().is_some()
            && let Err(e) = sys::bpf::probe::thread_pidfd()
        {
            return ptrace(format!(
                "-p, and threads cannot be named (Linux 6.9, or in the initial pid namespace): {e}"
            ));
        }
        (Backend::Kernel, "auto: bpf(2) may be used".into())
    }

    /// The backend for the whole machine (`-a`), which only the kernel backend can see. Errors: another one was asked for, or this one
    /// cannot be used.
    pub fn taken_for_all(self) -> Result<(Backend, String)> {
        let todo = "use -p PID; strace's -a COLUMN is --columns";
        match self {
            Backend::Ptrace | Backend::Agent => {
                let what = format!("-a --backend {}", self.name());
                Err(Error::usage(what, "the whole machine needs the kernel backend", todo))
            }
            Backend::Perf => {
                Err(Error::usage("-a --backend perf", "the whole machine needs the kernel backend", "use -p PID"))
            }
            Backend::Kernel => Ok((self, "as requested".into())),
            Backend::Auto => match rights::kernel_backend_is_usable() {
                Ok(()) => Ok((Backend::Kernel, "auto: the whole machine".into())),
                Err(why) => Err(Error::failed(
                    "-a",
                    "the whole machine needs the kernel backend",
                    format!("{why}; or use -p PID"),
                )),
            },
        }
    }

    /// What a full ring does by default.
    pub fn on_full(self) -> OnFull {
        if self == Backend::Ptrace { OnFull::Block } else { OnFull::Drop }
    }

    /// Bytes of the ring by default: of each CPU with the kernel and perf backends, of each process with the agent.
    pub fn buffer(self) -> usize {
        match self {
            Backend::Kernel => 4 << 20,
            Backend::Perf => 2 << 20,
            Backend::Agent => 64 << 20,
            Backend::Auto | Backend::Ptrace => 1 << 20,
        }
    }

    /// What it does not show, and what it costs: each as a name and a description.
    pub fn lost(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Backend::Kernel => &[
                (
                    "stops",
                    "a thread that runs in user space when another one takes a stop signal is not shown to stop; with up \
                     to four selected calls, only the one that takes it is; nor is a process that was stopped before -p",
                ),
                CPU_TIME,
                ("long buffers", "cut after 4000 bytes, whatever -s says"),
                ("arrays of messages", "recvmmsg and sendmmsg show the first 6 KiB of them"),
                ("events on a full buffer", "they are dropped and counted; the target never waits"),
            ],
            Backend::Agent => &[
                (
                    "static programs",
                    "and those that change their user or group load no agent: each exec of one is counted",
                ),
                ("functions without unwind information", "and those shorter than 5 bytes are not patched"),
                ("records on a full buffer", "they are dropped and counted; with --on-full block the thread waits"),
            ],
            Backend::Perf => &[
                (
                    "time in the kernel",
                    "the clocks of an ordinary user tick in programs only, where kernel.perf_event_paranoid is 2",
                ),
                ("threads shorter than a period", "the clock of a thread starts with it: some never reach a tick"),
                (
                    "deep stacks",
                    "a copy has a size: what lies further out is cut off, and counted (--unwind copy,SIZE)",
                ),
                ("how processes end", "exits are shown without status"),
                ("events on a full buffer", "they are dropped and counted; the target never waits"),
            ],
            Backend::Auto | Backend::Ptrace => &[
                ("time", "a call that stops takes some 50 times as long, one that its process records some 1.5 times"),
                CPU_TIME,
                (
                    "cpu",
                    "at entry from the thread's rseq area, where it has one and memory is read anyway; at exit unknown: \
                     the kernel updates rseq only after the exit stop",
                ),
            ],
        }
    }
}
