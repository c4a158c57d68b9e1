//! Probes in files (`uprobe:`, `uretprobe:`, `usdt:`) that the agent reaches in the process: where the kernel backend cannot be used, or where that is
//! requested.

use crate::ask::Ask;
use crate::target;
use collector::points;
use engine::capture::captures::Captures;
use engine::request::heap_enabling::Wanted;
use engine::request::parse::Request;
use engine::request::probe_enabling::{self, ProbeEnabling, Source};
use engine::rights;
use engine::target::Target;
use engine::{Error, Result};

/// What their names begin with.
const PROVIDERS: [&str; 3] = ["uprobe:", "uretprobe:", "usdt:"];

/// Why the agent reaches them; none: the kernel backend does.
pub fn reason(ask: &Ask) -> Option<String> {
    let why_not = || rights::kernel_backend_is_usable().err();
    match ask.tracing.backend.as_deref() {
        Some("agent") => Some("as requested".into()),
        Some("ptrace") => why_not().map(|_| "the ptrace backend has no probes".into()),
        None | Some("auto") => why_not().map(|why| format!("auto: {why}")),
        Some(_) => None,
    }
}

/// Takes those out of the requests that the agent reaches, if it does. `more` is captured by all.
pub fn take(ask: &Ask, requests: &mut Vec<Request>, more: Captures) -> Result<Vec<ProbeEnabling>> {
    if !requests.iter().flat_map(|r| &r.names).any(|name| is_in_file(name)) || ask.target.all || reason(ask).is_none() {
        return Ok(Vec::new());
    }
    enable(requests, more, &target::target(ask)?)
}

/// Takes those out of the requests, as the agent enables them. `more` is captured by all.
///
/// # Errors
/// A file or a place in it is not there, or only the kernel backend has what is captured.
pub fn enable(requests: &mut Vec<Request>, more: Captures, target: &Target) -> Result<Vec<ProbeEnabling>> {
    let mut taken = Vec::new();
    for request in requests.iter_mut() {
        let (names, rest): (Vec<String>, Vec<String>) = request.names.drain(..).partition(|name| is_in_file(name));
        request.names = rest;
        if !names.is_empty() {
            taken.push(Request { names, ..request.clone() });
        }
    }
    requests.retain(|r| !r.names.is_empty());
    let enablings = probe_enabling::enable(&taken, more, target)?;
    match enablings.iter().find(|e| !points::can_carry(e)) {
        None => Ok(enablings),
        Some(other) => {
            let todo = rights::kernel_backend_is_usable().err().unwrap_or_else(|| "leave --backend out".into());
            let why = "only the kernel backend has what it captures";
            Err(Error::failed(format!("-e {}", other.name), why, todo))
        }
    }
}

/// Whether a name is one of theirs.
pub fn is_in_file(name: &str) -> bool {
    PROVIDERS.iter().any(|p| name.starts_with(p))
}

/// What is recorded of allocations, with the stacks that probes capture.
pub fn stacks(heap: Option<Wanted>, probes: &[ProbeEnabling]) -> Option<Wanted> {
    let has = |e: &ProbeEnabling| e.fields.iter().any(|f| matches!(f, Source::UserStack(_)));
    if !probes.iter().any(has) {
        return heap;
    }
    let only = Wanted { only_stacks: heap.is_none(), ..Wanted::default() };
    Some(Wanted { stacks: true, ..heap.unwrap_or(only) })
}
