//! Which of the events that arrive are shown: calls, probes, outcomes, signals, paths, processes, a window of time.

use super::filter::EventFilter;
use crate::request::expression::Expression;
use crate::request::select::{Calls, Outcomes, Signals};
use events::layout::CAP_NO_RESULT;
use events::names::{Descriptors, Names};
use events::traces::{self, own};
use events::types::{Fmt, Mem, StrKind, Type};
use events::{Class, Event, Int, Schema, functions};
use lang::pattern::glob;
use std::sync::Arc;

/// What names of functions' probes begin with.
const FUNCTION: &str = "function:";

/// A selection.
pub struct Selection {
    /// Calls.
    pub calls: Calls,
    /// Probes other than calls, by pattern; none for all.
    pub probes: Option<Vec<String>>,
    /// Outcomes.
    pub outcomes: Outcomes,
    /// Signals.
    pub signals: Signals,
    /// Paths; all calls where there are neither paths nor descriptors.
    pub paths: Vec<Vec<u8>>,
    /// Descriptors that calls are about, beside the paths.
    pub fds: Option<Descriptors>,
    /// Whether `process:map` events are shown.
    pub mappings: bool,
    /// Signals, stops and ends: not where only probes other than calls are enabled.
    pub lives: bool,
    /// `--where`.
    pub expression: Option<Arc<Expression>>,
    /// The filters that are evaluated here: `--where`, and the one that a trace was recorded with.
    pub filters: Vec<EventFilter>,
    /// Processes and threads; empty for all.
    pub pids: Vec<u32>,
    /// Events before this are not shown, ns of the monotonic clock; names are learnt from them.
    pub from: u64,
    /// What is selected of further traces, in their order: each may have been recorded with a filter of its own.
    pub others: Vec<Selection>,
}

impl Selection {
    /// All calls and probes, without what processes map.
    pub fn all() -> Selection {
        Selection {
            calls: Calls::all(),
            probes: None,
            outcomes: Outcomes::ALL,
            signals: Signals::all(),
            paths: Vec::new(),
            fds: None,
            mappings: false,
            lives: true,
            expression: None,
            filters: Vec::new(),
            pids: Vec::new(),
            from: 0,
            others: Vec::new(),
        }
    }

    /// Whether the event is in the window and of the selected processes; views learn nothing from any other.
    #[inline]
    pub fn covers(&self, ev: &Event<'_>) -> bool {
        ev.time() >= self.from
            && (self.pids.is_empty() || [ev.pid(), ev.tid()].iter().any(|id| self.pids.contains(&own(*id))))
    }

    /// What is selected of the trace that has the event.
    #[inline]
    fn of(&self, ev: &Event<'_>) -> &Selection {
        match traces::of(ev.tid()) {
            0 => self,
            nth => self.others.get(nth - 1).unwrap_or(self),
        }
    }

    /// Whether calls, or probes, are shown in part only.
    pub fn is_partial(&self) -> bool {
        !(self.calls.is_all()
            && self.probes.is_none()
            && self.outcomes == Outcomes::ALL
            && self.paths.is_empty()
            && self.fds.is_none()
            && self.expression.is_none()
            && self.pids.is_empty())
    }

    /// Whether every event passes.
    pub fn is_all(&self) -> bool {
        self.calls.is_all()
            && self.probes.is_none()
            && self.outcomes == Outcomes::ALL
            && self.paths.is_empty()
            && self.fds.is_none()
            && self.mappings
            && self.lives
            && self.filters.is_empty()
            && self.pids.is_empty()
            && self.from == 0
            && (1..65).all(|n| self.signals.contains(n))
    }

    /// Whether the event passes.
    #[inline]
    pub fn passes(&self, ev: &Event<'_>, names: &dyn Names) -> bool {
        self.of(ev).passes_itself(ev, names)
    }

    #[inline]
    fn passes_itself(&self, ev: &Event<'_>, names: &dyn Names) -> bool {
        if ev.is_syscall() {
            return self.calls.contains(ev.schema)
                && self.filters.iter().all(|s| s.passes(ev, names))
                && self.outcome(ev)
                && self.is_about(ev, names);
        }
        // What functions' values are, views have from the world.
        if ev.schema.name == events::values::CLASS {
            return self.mappings;
        }
        if ev.schema.class == Class::Probe {
            return self.selects(ev) && self.filters.iter().all(|s| s.passes(ev, names));
        }
        let lives = || self.lives && self.filters.iter().all(|s| s.passes(ev, names));
        match ev.schema.name {
            "exit" => {
                let signal = ev.value_of("signo");
                (signal == 0 || self.signals.contains(signal)) && lives()
            }
            "superseded" => lives(),
            "signal" | "stop" => self.signals.contains(ev.value_of("signo")) && lives(),
            "inflight" => self.in_flight(ev, names),
            // Views have stacks from the world.
            "map" | "stack" | "function" => self.mappings,
            _ => true,
        }
    }

    /// Whether events of a class of probes other than calls may be selected.
    pub fn is_selected(&self, schema: &Schema) -> bool {
        let of_functions = functions::kind(schema).is_some();
        let matches = |pattern: &String| match of_functions {
            // Functions are selected by their names.
            true => pattern.starts_with("function") || pattern.starts_with('*'),
            false => glob(pattern.as_bytes(), schema.name.as_bytes()),
        };
        self.probes.as_ref().is_none_or(|patterns| patterns.iter().any(matches))
    }

    /// Whether an event of a probe other than a call is selected.
    fn selects(&self, ev: &Event<'_>) -> bool {
        let Some(patterns) = &self.probes else { return true };
        let end: &[u8] = match functions::kind(ev.schema) {
            Some(functions::Kind::Entry) => b":entry",
            Some(functions::Kind::Exit) => b":exit",
            _ => return self.is_selected(ev.schema),
        };
        let name = [FUNCTION.as_bytes(), ev.bytes_of("function")].concat();
        let matches = |p: &[u8]| glob(p, &name) || p.strip_suffix(end).is_some_and(|p| glob(p, &name));
        patterns.iter().any(|p| matches(p.as_bytes()))
    }

    fn in_flight(&self, ev: &Event<'_>, names: &dyn Names) -> bool {
        let wanted = if ev.value_of("attach") == 2 { self.outcomes.detached } else { self.outcomes == Outcomes::ALL };
        let Ok(inner) = Event::parse(ev.bytes_of("call")) else { return false };
        wanted
            && self.calls.contains(inner.schema)
            && self.filters.iter().all(|s| s.passes(ev, names))
            && self.is_about(&inner, names)
    }

    #[inline]
    fn outcome(&self, ev: &Event<'_>) -> bool {
        if ev.caps() & CAP_NO_RESULT != 0 {
            self.outcomes.unfinished
        } else if ev.errno().is_some() {
            self.outcomes.failed
        } else {
            self.outcomes.successful
        }
    }

    /// Whether a call names one of the paths or of the descriptors.
    #[inline]
    fn is_about(&self, ev: &Event<'_>, names: &dyn Names) -> bool {
        if self.paths.is_empty() && self.fds.is_none() {
            return true;
        }
        let wanted = |fd: i32| self.fds.as_ref().is_some_and(|set| set.contains(fd));
        ev.schema.args.iter().enumerate().any(|(i, a)| match a.ty {
            Type::Str(StrKind::Path) => {
                let t = ev.tail(i, false).or_else(|| ev.tail(i, true));
                t.is_some_and(|t| self.paths.iter().any(|p| p == t.bytes))
            }
            Type::Int(Int { fmt: Fmt::Fd | Fmt::Dirfd, .. }) => {
                let fd = ev.arg(i) as i32;
                let named = || names.fd(ev.pid(), fd).is_some_and(|n| self.paths.contains(&n.path));
                fd >= 0 && (wanted(fd) || !self.paths.is_empty() && named())
            }
            Type::Ptr { elem: Mem::Struct(s), len: Some(_) } if s.name == "pollfd" => {
                let t = ev.tail(i, false);
                t.is_some_and(|t| t.bytes.chunks_exact(8).any(|p| wanted(i32::from_le_bytes([p[0], p[1], p[2], p[3]]))))
            }
            Type::Fdset(_) => {
                let bits = ev.tail(i, false).map_or(&[][..], |t| t.bytes);
                (0..8 * bits.len()).any(|n| bits[n / 8] >> (n % 8) & 1 == 1 && wanted(n as i32))
            }
            _ => false,
        })
    }
}
