//! A call that is enabled: by its name, with a filter of its own.

use crate::capture::captures::Captures;
use crate::error::{Error, Result};
use crate::request::parse::{Request, is_probe, mistake};
use crate::request::select::Calls;
use crate::rights;
use events::Schema;
use events::dynamic;
use events::types::Type;
use lang::Filter;
use std::collections::HashMap;
use std::sync::Arc;

/// Calls that were enabled together, and their filter.
#[derive(Clone, Debug)]
pub struct CallEnabling {
    /// As it was written.
    pub names: String,
    /// Its filter, as it was written.
    pub filter: Option<String>,
    /// The calls.
    pub calls: Calls,
    /// The filter, by class; of those in `calls`, all or none.
    pub typed: Arc<HashMap<u16, Filter>>,
}

impl CallEnabling {
    fn needs(&self, asks: impl Fn(&lang::Needs) -> bool) -> bool {
        self.typed.values().any(|f| asks(f.needs()))
    }

    /// How many bytes of strings decide.
    pub fn text_bytes(&self) -> usize {
        self.typed.values().flat_map(|f| &f.needs().strings).map(|s| s.bytes).max().unwrap_or(0)
    }

    /// Whether names of threads are asked for.
    pub fn asks_comm(&self) -> bool {
        self.needs(|n| n.comm)
    }

    /// Whether users or groups are asked for.
    pub fn asks_ids(&self) -> bool {
        self.needs(|n| n.uid || n.gid)
    }
}

/// The calls among `all` whose filters are evaluated here: those with several enablings one of which has a filter, and those with a filter
/// that no program carries out; with `every`, all that have one.
pub fn evaluated<'e>(all: impl Iterator<Item = &'e CallEnabling>, every: bool) -> Calls {
    let (mut calls, all) = (Calls::none(), all.collect::<Vec<_>>());
    if all.iter().all(|e| e.filter.is_none()) {
        return calls;
    }
    for call in events::registry::syscalls().filter(|s| s.name != "raw") {
        let of: Vec<_> = all.iter().filter(|e| e.calls.contains(call)).collect();
        let searches = || of.iter().any(|e| e.typed.get(&call.id).is_some_and(|f| f.needs().search));
        if of.iter().any(|e| e.filter.is_some()) && (every || of.len() > 1 || searches()) {
            calls.insert(call);
        }
    }
    calls
}

/// What is captured in addition to the arguments of a call.
#[derive(Clone, Debug)]
pub struct CallCaptures {
    /// The class of its events: the call's, or that of signals, with captures.
    pub schema: &'static Schema,
    /// Frames of its stacks.
    pub frames: Captures,
}

impl CallCaptures {
    /// Whether it captures the stack of the process and nothing else, which every backend can.
    pub fn is_user_stack(&self) -> bool {
        let captures = &self.schema.args[events::registry::own_args(self.schema)..];
        matches!(captures, [one] if one.name == events::stacks::FIELDS[1])
    }
}

/// What is captured in addition to the arguments of calls; `more` is captured by all of them.
///
/// # Errors
/// A capture that is for root; too many classes.
pub fn call_captures(requests: &[Request], more: Captures, seen: &Calls) -> Result<Vec<CallCaptures>> {
    let mut of_calls: Vec<(Calls, Captures)> = vec![(seen.clone(), more)];
    for request in requests {
        let names: Vec<&str> = request.names.iter().filter(|n| !is_probe(n)).map(String::as_str).collect();
        if !names.is_empty() {
            of_calls.push((Calls::parse(&names.join(","))?, request.captures));
        }
    }
    let mut all = Vec::new();
    for call in events::registry::syscalls().filter(|s| s.name != "raw" && seen.contains(s)) {
        let own = of_calls.iter().filter(|(calls, _)| calls.contains(call));
        let captures = own.fold(Captures::default(), |sum, (_, captures)| sum.join(*captures));
        if captures == Captures::default() {
            continue;
        }
        if let Some(name) = captures.not_of_calls() {
            let why = "a call has its processors, and who made it is known";
            return Err(Error::usage(
                format!("-e {}: {name}", call.name),
                why,
                "leave it out; a filter may ask for it",
            ));
        }
        let name = call.probe();
        rights::of_probe(&name, captures)?;
        let fields: Vec<dynamic::Field> =
            captures.fields().into_iter().map(|(name, ty)| dynamic::Field { name: name.into(), ty }).collect();
        let schema = dynamic::with_captures(call, &fields);
        let schema = schema.map_err(|e| Error::failed(&*name, e.to_string(), "enable fewer probes"))?;
        all.push(CallCaptures { schema, frames: Captures { comm: false, ..captures } });
    }
    Ok(all)
}

/// The stacks of signals, as those of all calls: none where these have none.
///
/// # Errors
/// Too many classes.
pub fn signal_captures(more: Captures) -> Result<Option<CallCaptures>> {
    let ustack = Captures { ustack: more.ustack, ..Captures::default() };
    let field = |(name, ty): (&str, Type)| dynamic::Field { name: name.into(), ty };
    let fields: Vec<dynamic::Field> = ustack.fields().into_iter().map(field).collect();
    if fields.is_empty() {
        return Ok(None);
    }
    let schema = dynamic::with_captures(&events::generated::P_SIGNAL, &fields);
    let schema = schema.map_err(|e| Error::failed("process:signal", e.to_string(), "enable fewer probes"))?;
    Ok(Some(CallCaptures { schema, frames: Captures { ustack: more.ustack, ..Captures::default() } }))
}

/// The enablings of calls that requests ask for.
///
/// # Errors
/// A filter that suits none of its calls; a call that is enabled twice with the same filter, which would count it twice.
pub fn call_enablings(requests: &[Request]) -> Result<Vec<CallEnabling>> {
    let mut all: Vec<CallEnabling> = Vec::new();
    for request in requests {
        let names: Vec<&str> = request.names.iter().filter(|n| !is_probe(n)).map(String::as_str).collect();
        if names.is_empty() {
            continue;
        }
        let names = names.join(",");
        let calls = Calls::parse(&names)?;
        let selected: Vec<&Schema> =
            events::registry::syscalls().filter(|s| s.name != "raw" && calls.contains(s)).collect();
        let mut typed = HashMap::new();
        if let Some(text) = &request.filter {
            let filters = lang::filter::parse(text, &[]).and_then(|parsed| parsed.check_all(&selected));
            let filters = filters.map_err(|d| mistake(selected.first().map_or("", |s| s.name), text, &d))?;
            typed.extend(selected.iter().map(|s| s.id).zip(filters));
            let other = all.iter().filter(|e| e.filter == request.filter);
            if let Some(s) = other.flat_map(|e| selected.iter().filter(|s| e.calls.contains(s))).next() {
                let why = "enabled twice with the same filter";
                return Err(Error::usage(
                    format!("-e syscall:{}", s.name),
                    why,
                    "name it once, or with another filter",
                ));
            }
        }
        all.push(CallEnabling { names, filter: request.filter.clone(), calls, typed: Arc::new(typed) });
    }
    Ok(all)
}

/// Has each of the `wanted` calls enabled, and no other: what no enabling has gets one without a filter.
pub fn of_wanted(mut all: Vec<CallEnabling>, wanted: &Calls) -> Vec<CallEnabling> {
    let mut others = wanted.clone();
    for e in &mut all {
        e.calls.retain(wanted);
        others.remove(&e.calls);
    }
    all.retain(|e| !e.calls.is_empty());
    if !others.is_empty() {
        let names = if others.is_all() { "all".into() } else { others.names().join(",") };
        all.push(CallEnabling { names, filter: None, calls: others, typed: Arc::default() });
    }
    all
}

/// The filters of calls, by number, as the programs want them: what one of the call's enablings wants passes. Of the calls that are
/// `seen`, those that an enabling without a filter has, or none, have one that is always true. Empty where nothing is filtered.
pub fn call_filters<'e>(all: impl Iterator<Item = &'e CallEnabling>, seen: &Calls) -> Vec<(u32, Filter)> {
    let enablings: Vec<_> = all.collect();
    if enablings.iter().all(|e| e.filter.is_none()) {
        return Vec::new();
    }
    let Ok(always) = lang::filter::parse("true", &[]) else { return Vec::new() };
    let wanted = |s: &Schema| -> Option<Filter> {
        let of: Vec<_> = enablings.iter().filter(|e| e.calls.contains(s)).collect();
        match of[..] {
            [only] => only.typed.get(&s.id).cloned(),
            _ => {
                let texts: Option<Vec<String>> = of.iter().map(|e| Some(format!("({})", e.filter.as_ref()?))).collect();
                let text = texts.filter(|t| !t.is_empty())?.join(" || ");
                lang::filter::parse(&text, &[]).and_then(|parsed| parsed.check(s)).ok()
            }
        }
    };
    let mut filters = Vec::new();
    for nr in 0..events::generated::X86_64.len() as u32 {
        let Some(s) = events::registry::by_number(nr.into()).filter(|s| s.name != "raw" && seen.contains(s)) else {
            continue;
        };
        let wanted = wanted(s).filter(|f| !f.needs().search);
        filters.extend(wanted.or_else(|| always.check(s).ok()).map(|f| (nr, f)));
    }
    filters
}
