//! What a tracer has so far, with the names of functions.

use super::linker::Module;
use super::modules::{modules, plain};
use super::served::with;
use super::tracers::{Listed, checked, listed, refusal};
use super::violations::{self, Violation};
use super::{io_failed, target};
use crate::ticks::ticks_per_ms;
use abi::built_in::{Results, Row};
use engine::error::Result;
use engine::request::functions::Functions;
use sys::agent::{Print, Status};

/// What a tracer has, with names.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// The tracer.
    pub tracer: Listed,
    /// It counts calls.
    pub counts: bool,
    /// Functions that were called.
    pub counted: Vec<Counted>,
    /// Violations, in their order.
    pub violations: Vec<Violation>,
    /// Violations that there was no room for.
    pub lost: u64,
}

/// What was counted of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Its name.
    pub function: String,
    /// The file that contains it; empty where it is not known.
    pub module: String,
    /// Calls.
    pub calls: u64,
    /// Their time in all, in ns.
    pub total: u64,
    /// Without that of other counted functions, in ns.
    pub own: u64,
}

/// What a tracer has so far.
///
/// # Errors
/// There is no such tracer, or the process cannot be stopped.
pub fn print(pid: i32, name: &str) -> Result<Shown> {
    let id = checked(pid, name)?;
    let maps = target::check(pid)?;
    let everything = Functions { libraries: true, ..Functions::default() };
    let (status, print) = with(pid, &[], false, |talk| {
        let (reply, print) = talk.print(id).map_err(|e| io_failed(pid, "the agent", &e))?;
        if let Some(e) = refusal(pid, name, &reply, talk) {
            return Err(e);
        }
        Ok((talk.status().map_err(|e| io_failed(pid, "the agent", &e))?, print))
    })?;
    let known = status.tracers.iter().find(|t| t.name == id);
    let counts = known.and_then(|t| Row::find(t.kind)).is_some_and(|row| row.results == Results::Counts);
    let shown = shown(pid, &status, &print, &modules(pid, &maps, &everything));
    Ok(Shown { tracer: known.map(listed).unwrap_or_default(), counts, ..shown })
}

fn shown(pid: i32, status: &Status, print: &Print, modules: &[Module]) -> Shown {
    let mut places: Vec<(u64, &str, &str)> = Vec::new();
    for m in modules {
        let named = m.known.names.iter().zip(&m.known.addresses);
        places.extend(named.map(|(n, a)| (a.wrapping_add(m.bias), n.as_str(), m.known.path.as_str())));
    }
    places.sort_unstable();
    let of = |number: u64| {
        let site = number.checked_sub(1).and_then(|i| status.sites.get(i as usize));
        let Some(address) = site.map(|s| s.address) else { return (number.to_string(), String::new()) };
        match places.binary_search_by_key(&address, |p| p.0).ok().and_then(|i| places.get(i)) {
            Some((_, name, module)) => (plain(name), (*module).to_string()),
            None => (format!("{address:#x}"), String::new()),
        }
    };
    let ticks_per_ms = u128::from(ticks_per_ms().max(1));
    let ns = |ticks: u64| (u128::from(ticks) * 1_000_000 / ticks_per_ms) as u64;
    let counted = print.counted.iter().map(|c| {
        let (function, module) = of(c.number);
        let own = ns(c.own.clamp(0, c.total as i64) as u64);
        Counted { function, module, calls: c.calls, total: ns(c.total), own }
    });
    let counted = counted.collect();
    let violations = violations::of(pid, &print.violations, |v| (of(v.number.into()).0, ns(v.took)));
    Shown { counted, violations, lost: print.head.lost, ..Shown::default() }
}
