//! What of the events that arrive is shown: calls, outcomes, signals, paths.

use engine::select::{Calls, Outcomes, Signals};
use events::layout::CAP_NO_RESULT;
use events::names::Names;
use events::types::{Fmt, StrKind, Type};
use events::{Event, Int};

/// The filter of a `trace`.
pub struct Filter {
    /// Calls.
    pub calls: Calls,
    /// Outcomes.
    pub outcomes: Outcomes,
    /// Signals.
    pub signals: Signals,
    /// Paths; empty for all.
    pub paths: Vec<Vec<u8>>,
}

impl Filter {
    /// Whether the event passes.
    pub fn passes(&self, ev: &Event<'_>, names: &dyn Names) -> bool {
        if ev.is_syscall() {
            return self.calls.contains(ev.schema) && self.outcome(ev) && self.names_path(ev, names);
        }
        match ev.schema.name {
            "signal" => self.signals.contains(ev.value_of("signo")),
            "stop" => self.signals.contains(ev.value_of("signo")),
            "inflight" => self.in_flight(ev, names),
            _ => true,
        }
    }

    fn in_flight(&self, ev: &Event<'_>, names: &dyn Names) -> bool {
        let wanted = if ev.value_of("attach") == 2 { self.outcomes.detached } else { self.outcomes == Outcomes::ALL };
        let Ok(inner) = Event::parse(ev.bytes_of("call")) else { return false };
        wanted && self.calls.contains(inner.schema) && self.names_path(&inner, names)
    }

    fn outcome(&self, ev: &Event<'_>) -> bool {
        if ev.caps() & CAP_NO_RESULT != 0 {
            self.outcomes.unfinished
        } else if ev.errno().is_some() {
            self.outcomes.failed
        } else {
            self.outcomes.successful
        }
    }

    fn names_path(&self, ev: &Event<'_>, names: &dyn Names) -> bool {
        if self.paths.is_empty() {
            return true;
        }
        ev.schema.args.iter().enumerate().any(|(i, a)| match a.ty {
            Type::Str(StrKind::Path) => {
                let t = ev.tail(i, false).or_else(|| ev.tail(i, true));
                t.is_some_and(|t| self.paths.iter().any(|p| p == t.bytes))
            }
            Type::Int(Int { fmt: Fmt::Fd | Fmt::Dirfd, .. }) => {
                let fd = ev.arg(i) as i32;
                fd >= 0 && names.fd(ev.pid(), fd).is_some_and(|n| self.paths.contains(&n.path))
            }
            _ => false,
        })
    }
}
