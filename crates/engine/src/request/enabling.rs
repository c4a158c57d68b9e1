//! Enablings: a probe that is enabled, with what it captures and its own filter.
//!
//! ```text
//! -e 'PROBE[,PROBE]… [/FILTER/] [kstack[=N]] [ustack[=N]] [comm] [str(ARGUMENT)]…'
//! ```
//!
//! A bare name is a system call, as in strace; those of one session are carried out together ([`crate::request::select::Calls`]). Any
//! other probe is an [`Enabling`] with programs, rings and counters of its own.

use crate::capture::captures::{self, Captures};
use crate::error::{Error, Result};
use crate::heap;
use crate::provider::quoting;
use crate::provider::{self, ArgInfo, ArgLocation, AttachPoint, Encoding, LeftOut};
use crate::request::call_enabling::CallEnabling;
use crate::request::expression::Expression;
use crate::request::functions::{FunctionEnabling, Functions};
use crate::request::heap_enabling;
use crate::request::select::Calls;
use crate::rights::{self, Sight};
use crate::target::Target;
use events::Schema;
use events::dynamic;
use events::types::{Fmt, Int, StrKind, Type};
use lang::filter::ir::{Leaf, Subject};
use lang::{Diagnostic, Filter, Parsed};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What one `-e` asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Probes and calls, as they were written.
    pub names: Vec<String>,
    /// Filter.
    pub filter: Option<String>,
    /// Captures.
    pub captures: Captures,
    /// Arguments that are addresses of strings, which are captured.
    pub strings: Vec<String>,
}

impl Request {
    /// Reads an `-e`.
    pub fn parse(text: &str) -> Result<Request> {
        let mut request = Request::default();
        let mut rest = text.trim();
        let blank = quoting::find(rest, |rest| rest.starts_with(' '));
        if !quoting::is_closed(&rest[..blank.unwrap_or(rest.len())]) {
            return Err(Error::usage(
                format!("-e {text}"),
                "a quote in it is not closed",
                "PROVIDER:\"NAME, WITH BLANKS\"",
            ));
        }
        // A filter is between slashes with a blank outside, which distinguishes it from a path.
        if let Some(from) = quoting::find(rest, |rest| rest.starts_with(" /")) {
            let behind = &rest[from + 2..];
            let to = behind.rfind('/').filter(|to| behind[to + 1..].is_empty() || behind[to + 1..].starts_with(' '));
            let Some(to) = to else {
                return Err(Error::usage(format!("-e {text}"), "its filter is not closed", "PROBE /FILTER/ kstack"));
            };
            request.filter = Some(behind[..to].trim().to_string());
            request.captures(text, &behind[to + 1..])?;
            rest = &rest[..from];
        } else if let Some(from) = blank {
            request.captures(text, &rest[from..])?;
            rest = &rest[..from];
        }
        request.names = names(rest);
        if request.names.is_empty() {
            return Err(Error::usage(format!("-e {text}"), "it names no probe", "for instance -e syscall:openat"));
        }
        Ok(request)
    }

    fn captures(&mut self, text: &str, words: &str) -> Result<()> {
        for word in words.split_whitespace() {
            if let Some(argument) = word.strip_prefix("str(").and_then(|w| w.strip_suffix(')')) {
                let argument = argument.strip_prefix("args.").unwrap_or(argument);
                self.strings.push(argument.to_string());
                continue;
            }
            let (name, n) = word.split_once('=').map_or((word, None), |(name, n)| (name, Some(n)));
            let frames = |most: u16| n.map_or(Some(most), |n| n.parse().ok().filter(|n| (1..=most).contains(n)));
            match (name, frames(captures::KERNEL.into()), frames(captures::USER)) {
                ("kstack", Some(n), _) => self.captures.kstack = n as u8,
                ("ustack", _, Some(n)) => self.captures.ustack = n,
                ("comm", ..) if n.is_none() => self.captures.comm = true,
                _ => {
                    let todo = "kstack[=N] (at most 127), ustack[=N] (at most 512), comm or str(ARGUMENT)";
                    return Err(Error::usage(
                        format!("-e {text}"),
                        format!("'{word}' is not something to capture"),
                        todo,
                    ));
                }
            }
        }
        Ok(())
    }
}

/// The names between commas; those within quotes belong to a name.
pub fn names(text: &str) -> Vec<String> {
    quoting::split(text).into_iter().map(str::trim).filter(|n| !n.is_empty()).map(str::to_string).collect()
}

/// Whether a name of an `-e` is a probe other than a call: it begins with a provider's name.
pub fn is_probe(name: &str) -> bool {
    let provider = name.split(':').next().unwrap_or_default();
    // The entry or the return of a call by itself.
    if provider == "syscall" && (name.ends_with(":entry") || name.ends_with(":return")) {
        return true;
    }
    matches!(name, "begin" | "end") || name.contains(':') && provider != "syscall" && !name.starts_with(['/', '%', '!'])
}

/// The most enablings of probes other than calls in one session: each has a program, links and counters of its own.
pub const MAX: usize = 4096;

/// A number that is an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// Where it lies.
    pub at: ArgLocation,
    /// How many bytes of it count.
    pub size: u8,
    /// It has a sign.
    pub signed: bool,
}

/// Where a field of an event comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// An argument.
    Number(Number),
    /// The string at the address that an argument is: of the process, or of the kernel.
    Text {
        /// The argument.
        address: Number,
        /// The address is in the process, not in the kernel.
        of_process: bool,
    },
    /// The characters at a location.
    Chars(ArgLocation),
    /// The thread's name.
    Comm,
    /// Return addresses in the kernel: so many at most.
    KernelStack(u8),
    /// Return addresses in the process: so many at most.
    UserStack(u16),
    /// Hidden from the user who started the session: 0, or an empty string.
    Hidden {
        /// It is a string.
        text: bool,
    },
}

impl Source {
    /// What a user who may not see it gets instead.
    fn hidden(&self) -> Source {
        let is_number = |s: &Source| {
            matches!(
                s,
                Source::Number(_) | Source::KernelStack(_) | Source::UserStack(_) | Source::Hidden { text: false }
            )
        };
        Source::Hidden { text: !is_number(self) }
    }
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

/// A probe that is enabled.
pub struct Enabling {
    /// Its name.
    pub name: String,
    /// The class of its events; of several, the first.
    pub schema: &'static Schema,
    /// Of an enabling of many probes, which share an attach point: all their classes, in their order. Else empty.
    pub members: Vec<&'static Schema>,
    /// Where each field comes from.
    pub fields: Vec<Source>,
    /// Where it is; none for the session's own beginning and end.
    pub point: Option<AttachPoint>,
    /// What the same pattern matches and is not enabled.
    pub left_out: Vec<LeftOut>,
    /// Filter, typed for the class.
    pub filter: Option<Filter>,
    /// Arguments that no program can find.
    pub missing: Vec<String>,
    /// Its events do not say in which task they happened.
    pub anonymous: bool,
    /// How it may harm the program, which the user accepted with `--force` ([`crate::request::returns`]).
    pub danger: Option<String>,
}

impl Enabling {
    /// The classes of its events.
    pub fn classes(&self) -> &[&'static Schema] {
        if self.members.is_empty() { std::slice::from_ref(&self.schema) } else { &self.members }
    }

    /// Its name and its filter.
    pub fn label(&self) -> String {
        match &self.filter {
            None => self.name.clone(),
            Some(filter) => {
                let parts: Vec<&str> = filter.parts().iter().map(|p| p.text.as_str()).collect();
                format!("{} /{}/", self.name, parts.join(" && ").replace(['\n', '\r'], " "))
            }
        }
    }
}

impl std::fmt::Debug for Enabling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Enabling").field("name", &self.name).field("fields", &self.fields).finish_non_exhaustive()
    }
}

/// What an enabling captures, and which events it wants.
#[derive(Clone, Copy)]
struct Wanted<'r> {
    captures: Captures,
    strings: &'r [String],
    filter: Option<&'r Parsed>,
}

/// The enablings that requests ask for: every probe that their names match. `more` is captured by all. Of processes that are attached to,
/// libraries are those that they have mapped.
///
/// # Errors
/// A probe that does not exist, that is enabled twice with the same filter, or whose filter is none for it; too many of them.
pub fn enable(requests: &[Request], more: Captures, target: &Target) -> Result<Vec<Enabling>> {
    let pids = if let Target::Pids(pids) = target { &pids[..] } else { &[] };
    let mut all: Vec<Enabling> = Vec::new();
    let mut known: HashSet<(String, Option<&str>)> = HashSet::new();
    for request in requests {
        let filter = request.filter.as_deref();
        let parsed = filter.map(|text| lang::filter::parse(text, &[]).map_err(|d| mistake("", text, &d)));
        let parsed = parsed.transpose()?;
        let captures = request.captures.join(more);
        let wanted = Wanted { captures, strings: &request.strings, filter: parsed.as_ref() };
        for name in request.names.iter().filter(|n| is_probe(n)) {
            let name = &provider::of_processes(name, pids).unwrap_or_else(|| name.clone());
            let own = matches!(name.as_str(), "begin" | "end");
            if name.contains(['*', '?']) {
                if let Some(enabling) = together(name, wanted)? {
                    once(&mut known, &enabling.name, filter)?;
                    limit(name, all.len() + 1)?;
                    all.push(enabling);
                    continue;
                }
                limit(name, provider::list(name, false)?.len() + all.len())?;
            }
            let elsewhere = |e| provider::elsewhere(name, pids).unwrap_or(e);
            let ready = if own { Vec::new() } else { provider::ready(name).map_err(elsewhere)? };
            let several: HashSet<&str> = ready.iter().map(|r| r.probe.name.as_str()).collect();
            limit(name, several.len() + all.len())?;
            let names = several.iter().map(|n| n.to_string()).chain(own.then(|| name.clone()));
            for name in names {
                once(&mut known, &name, filter)?;
            }
            if own {
                all.push(of_session(name, request)?);
            }
            for ready in ready {
                if ready.point.is_address() && matches!(target, Target::All { .. }) {
                    let why = "an address belongs to one process, and -a traces all of them";
                    return Err(Error::usage(format!("-e {name}"), why, "use -p PID, or a command"));
                }
                all.push(of(ready, wanted)?);
            }
        }
    }
    Ok(all)
}

/// Takes the strings out of the events of these enablings (`--capture none`): each becomes an empty one. Names of threads that were asked
/// for stay.
pub fn without_strings(enablings: &mut [Enabling]) {
    for field in enablings.iter_mut().flat_map(|e| &mut e.fields) {
        if matches!(field, Source::Text { .. } | Source::Chars(_)) {
            *field = Source::Hidden { text: true };
        }
    }
}

/// Adds the filter of `--where` to each enabling's own: both must hold. Enablings that lack what it names are removed. What a session
/// reports about its own begin and end is not filtered.
///
/// # Errors
/// A filter that asks for what the session's user may not see, or that differs among probes which share a program.
pub fn narrow(enablings: &mut Vec<Enabling>, expression: &Expression) -> Result<()> {
    enablings.retain(|e| e.point.is_none() || e.classes().iter().all(|class| expression.of(class).is_some()));
    for e in enablings.iter_mut().filter(|e| e.point.is_some()) {
        let text = match &e.filter {
            None => expression.text.clone(),
            Some(own) => {
                // What binds less than && needs parentheses.
                let operand = |text: &str| if text.contains("||") { format!("({text})") } else { text.to_string() };
                let own = own.parts().iter().map(|p| operand(&p.text));
                own.chain([operand(&expression.text)]).collect::<Vec<_>>().join(" && ")
            }
        };
        let parsed = lang::filter::parse(&text, &expression.params).map_err(|d| mistake(&e.name, &text, &d))?;
        let typed = parsed.check_all(e.classes()).map_err(|d| mistake(&e.name, &text, &d))?;
        let Some((first, others)) = typed.split_first() else { continue };
        if others.iter().any(|other| other.parts() != first.parts()) {
            let why = "it is not the same filter for all functions, which share a program";
            return Err(Error::usage(
                format!("--where {}", expression.text),
                why,
                "name fewer functions, or leave probe out",
            ));
        }
        let sight = if e.anonymous { Sight::Anonymous } else { Sight::All };
        rights::of_filter(&e.name, sight, first)?;
        e.filter = Some(first.clone());
    }
    Ok(())
}

/// Every name once with the same filter.
fn once<'f>(known: &mut HashSet<(String, Option<&'f str>)>, name: &str, filter: Option<&'f str>) -> Result<()> {
    if known.insert((name.into(), filter)) {
        return Ok(());
    }
    let why = "enabled twice with the same filter";
    Err(Error::usage(format!("-e {name}"), why, "name it once, or with another filter"))
}

/// One enabling for all probes that a pattern matches, where their provider has them share a program, and where the filter is the
/// same for all: one that asks for the probe's name is not.
fn together(pattern: &str, wanted: Wanted<'_>) -> Result<Option<Enabling>> {
    let Some((probes, ready)) = provider::together(pattern)? else { return Ok(None) };
    if probes.len() > dynamic::MAX {
        let why = format!("it matches {} functions, and a session has at most {}", probes.len(), dynamic::MAX);
        return Err(Error::usage(format!("-e {pattern}"), why, "name fewer"));
    }
    let mut enabling = of(ready, wanted)?;
    let fields: Vec<dynamic::Field> =
        enabling.schema.args.iter().map(|a| dynamic::Field { name: a.name.into(), ty: a.ty }).collect();
    let members = probes.iter().map(|p| class(&p.name, &fields)).collect::<Result<Vec<_>>>()?;
    for (filter, typed) in wanted.filter.iter().zip(&enabling.filter) {
        let same = |s: &&&Schema| filter.check(s).is_ok_and(|other| other.parts() == typed.parts());
        if members.iter().filter(same).count() < members.len() {
            return Ok(None);
        }
    }
    (enabling.schema, enabling.members) = (members[0], members);
    Ok(Some(enabling))
}

fn limit(name: &str, n: usize) -> Result<()> {
    if n <= MAX {
        return Ok(());
    }
    let why = format!("with it, {n} probes are enabled, and a session has at most {MAX}");
    Err(Error::usage(format!("-e {name}"), why, "name fewer, or use several sessions"))
}

/// What the requests enable of functions: an enabling for each pattern, numbered from `first`.
///
/// # Errors
/// A filter is wrong, or they capture what records of functions do not have.
pub fn function_enablings(requests: &[Request], first: u32) -> Result<Vec<FunctionEnabling>> {
    let mut all: Vec<FunctionEnabling> = Vec::new();
    for request in requests {
        let of_functions = |n: &&String| n.starts_with(Functions::PROVIDER);
        for name in request.names.iter().filter(of_functions) {
            if request.captures != Captures::default() || !request.strings.is_empty() {
                let why = "records of functions have a time, a thread and a function, and no captures";
                return Err(Error::usage(format!("-e {name}"), why, "leave the captures out"));
            }
            if let Some(text) = &request.filter {
                let parsed = lang::filter::parse(text, &[]);
                let typed = parsed.and_then(|p| p.check_all(&[events::functions::entry(), events::functions::exit()]));
                typed.map_err(|d| mistake(name, text, &d))?;
            }
            let pattern = name[Functions::PROVIDER.len()..].to_string();
            if all.iter().any(|e| e.pattern == pattern && e.filter == request.filter) {
                continue;
            }
            all.push(FunctionEnabling {
                id: first + all.len() as u32,
                pattern,
                filter: request.filter.clone(),
                ..Default::default()
            });
        }
    }
    Ok(all)
}

/// What the requests enable of the heap. `more` is captured by all of them; the stacks of allocations are whole.
///
/// # Errors
/// A filter is wrong, or they capture what allocations do not have.
pub fn heap_enablings(requests: &[Request], more: Captures) -> Result<Vec<heap_enabling::Enabled>> {
    let mut all: Vec<heap_enabling::Enabled> = Vec::new();
    for request in requests {
        for name in request.names.iter().filter(|n| n.starts_with(heap::classes::PROVIDER)) {
            let Captures { kstack, ustack, comm } = request.captures;
            if kstack > 0 || comm || !request.strings.is_empty() {
                let why = "an allocation captures only its stack in the program";
                return Err(Error::usage(format!("-e {name}"), why, "ustack, or no capture"));
            }
            if ustack != 0 && ustack != captures::USER {
                let why = "the stacks of allocations are whole";
                return Err(Error::usage(format!("-e {name}"), why, "ustack without a number"));
            }
            for found in provider::list(name, false)? {
                let Some(probe) = heap::classes::Probe::named(&found.name) else { continue };
                let filter = request.filter.as_deref().map(|text| heap_filter(&found.name, probe, text)).transpose()?;
                let (stack, text) = ((ustack | more.ustack) > 0 && probe.allocates(), request.filter.clone());
                match all.iter_mut().find(|e| (e.probe, &e.text) == (probe, &text)) {
                    Some(known) => known.stack |= stack,
                    None => all.push(heap_enabling::Enabled { probe, stack, filter, text }),
                }
            }
        }
    }
    Ok(all)
}

/// The filter of a probe of the heap, for its events with and without a stack.
fn heap_filter(name: &str, probe: heap::classes::Probe, text: &str) -> Result<Arc<Expression>> {
    let mut classes: Vec<&'static Schema> = [false, true].into_iter().filter_map(|s| probe.class(s)).collect();
    classes.dedup_by_key(|s| s.id);
    let parsed = lang::filter::parse(text, &[]).and_then(|p| p.check_all(&classes));
    parsed.map_err(|d| mistake(name, text, &d))?;
    let filter = Expression::new(text, &[], &Calls::none(), &classes).map_err(|d| mistake(name, text, &d))?;
    if filter.asks_cpu() {
        let why = "on which CPU something is allocated is not recorded";
        return Err(Error::usage(format!("-e {name}: /{text}/"), why, "leave cpu out"));
    }
    Ok(Arc::new(filter))
}

/// A mistake in the filter of a probe.
fn mistake(probe: &str, text: &str, d: &Diagnostic) -> Error {
    let (line, column) = d.position(text);
    let place = if line == 1 { format!("column {column}") } else { format!("line {line}, column {column}") };
    let of = if probe.is_empty() { String::new() } else { format!("{probe}: ") };
    let todo = d.hint.clone().unwrap_or_else(|| "see docs/FILTERS.md".into());
    Error::usage(format!("-e {of}/{text}/"), format!("{} {} at {place}", d.code, d.message), todo)
}

/// The session's own beginning or end.
fn of_session(name: &str, request: &Request) -> Result<Enabling> {
    if request.filter.is_some() {
        return Err(Error::usage(format!("-e {name}"), "it happens once and takes no filter", "leave the filter out"));
    }
    let (schema, fields) = (class(name, &[])?, Vec::new());
    let (members, missing) = (Vec::new(), Vec::new());
    Ok(Enabling {
        name: name.into(),
        schema,
        members,
        fields,
        point: None,
        left_out: Vec::new(),
        filter: None,
        missing,
        anonymous: false,
        danger: None,
    })
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

/// The enablings of calls that requests ask for, numbered from `first`.
///
/// # Errors
/// A filter that suits none of its calls; a call that is enabled twice with the same filter, which would count it twice.
pub fn call_enablings(requests: &[Request], first: u32) -> Result<Vec<CallEnabling>> {
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
        let (id, filter) = (first + all.len() as u32, request.filter.clone());
        all.push(CallEnabling { id, names, filter, calls, typed: Arc::new(typed) });
    }
    Ok(all)
}

/// The filters of calls, by number, as the programs want them: what one of the call's enablings wants passes. Of the calls that are
/// `seen`, those that an enabling without a filter has, or none, have one that is always true. Empty where nothing is filtered.
///
/// # Errors
/// Never, unless `true` is no filter.
pub fn call_filters(enablings: &[CallEnabling], seen: &Calls) -> Result<Vec<(u32, Filter)>> {
    if enablings.iter().all(|e| e.filter.is_none()) {
        return Ok(Vec::new());
    }
    let always = lang::filter::parse("true", &[]).map_err(|d| mistake("", "true", &d))?;
    let wanted = |s: &Schema| -> Option<Filter> {
        let of: Vec<&CallEnabling> = enablings.iter().filter(|e| e.calls.contains(s)).collect();
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
        filters.extend(wanted(s).or_else(|| always.check(s).ok()).map(|f| (nr, f)));
    }
    Ok(filters)
}

fn class(name: &str, fields: &[dynamic::Field]) -> Result<&'static Schema> {
    dynamic::class(name, fields).map_err(|e| Error::failed(name, e.to_string(), "enable fewer probes"))
}

fn of(ready: provider::Ready, wanted: Wanted<'_>) -> Result<Enabling> {
    let provider::Ready { probe, point, left_out } = ready;
    let strings_are_users = point.strings_are_users();
    let Wanted { captures, strings, filter } = wanted;
    let sight = rights::of_probe(&probe.name, captures)?;
    let mut types = Vec::new();
    let mut fields = Vec::new();
    let mut missing = Vec::new();
    for arg in &probe.args {
        if let Some((ty, field)) = argument(arg, strings_are_users) {
            types.push(dynamic::Field { name: arg.name.clone(), ty });
            fields.push(if sight.has(&arg.name) { field } else { field.hidden() });
        } else {
            missing.push(arg.name.clone());
        }
    }
    let called = |name: &str| probe.aliases.iter().find(|a| a.0 == name).map(|a| a.1.clone());
    for name in strings {
        let name = called(name).unwrap_or_else(|| name.clone());
        let known = types.iter().position(|t| t.name == name);
        let Some(nth) = known.filter(|_| strings_are_users) else {
            return Err(no_string(&probe.name, &name, known.is_some(), &types));
        };
        // An argument that is already a string is captured as it is.
        if let Type::Int(_) = types[nth].ty {
            types.push(dynamic::Field { name: format!("str_{name}"), ty: Type::Str(StrKind::Text) });
            fields.push(match &fields[nth] {
                Source::Number(address) => Source::Text { address: address.clone(), of_process: true },
                _ => Source::Hidden { text: true },
            });
        }
    }
    for (name, ty) in captures.fields() {
        // Some tracepoints have an argument of that name.
        let taken = types.iter().any(|t| t.name == name);
        types.push(dynamic::Field { name: if taken { format!("task_{name}") } else { name.into() }, ty });
        fields.push(match name {
            "comm" => Source::Comm,
            "kstack" => Source::KernelStack(captures.kstack),
            _ => Source::UserStack(captures.ustack),
        });
    }
    let schema = class(&probe.name, &types)?;
    let filter = filter.map(|f| {
        let typed = f.renamed(&called).check(schema).map_err(|d| mistake(&probe.name, &f.text, &d))?;
        match reads_addresses(&typed, schema) && !strings_are_users {
            true => Err(Error::usage(
                format!("-e {}: /{}/", probe.name, f.text),
                "str() of a number reads the process's memory, and this probe's numbers are not known to be addresses there",
                "compare the number",
            )),
            false => Ok(typed),
        }
    });
    let filter = filter.transpose()?;
    filter.iter().try_for_each(|f| rights::of_filter(&probe.name, sight, f))?;
    Ok(Enabling {
        name: probe.name,
        schema,
        members: Vec::new(),
        fields,
        point: Some(point),
        left_out,
        filter,
        missing,
        anonymous: sight == Sight::Anonymous,
        danger: None,
    })
}

/// Whether a filter reads strings at addresses that arguments are.
fn reads_addresses(filter: &Filter, schema: &Schema) -> bool {
    let mut reads = false;
    for part in filter.parts() {
        part.cond.values(&mut |leaf| {
            if let Leaf::Text(lang::filter::ir::Text { subject: Subject::Arg(i), .. }) = leaf {
                reads |= matches!(schema.args[usize::from(*i)].ty, Type::Int(_));
            }
        });
    }
    reads
}

/// Why an argument cannot be read as a string.
fn no_string(probe: &str, argument: &str, known: bool, all: &[dynamic::Field]) -> Error {
    let what = format!("-e {probe}: str({argument})");
    if known {
        let why = "this probe's numbers are not known to be addresses of the process";
        return Error::usage(what, why, "functions of programs and static probes have strings");
    }
    let names: Vec<&str> = all.iter().map(|f| f.name.as_str()).collect();
    let todo = if names.is_empty() { "it has no arguments".into() } else { format!("it has {}", names.join(", ")) };
    Error::usage(what, "no such argument", todo)
}

/// Type and source of an argument; none where no program can find it.
fn argument(arg: &ArgInfo, of_process: bool) -> Option<(Type, Source)> {
    let int = |fmt, signed| Type::Int(Int { size: 8, signed, fmt });
    let at = arg.location.clone();
    let number = |size, signed| Number { at: at.clone(), size, signed };
    let (size, signed) = (arg.ty.size as u8, arg.ty.signed);
    let text = Type::Str(StrKind::Text);
    Some(match (arg.ty.encoding, &arg.location) {
        (_, ArgLocation::Unknown) => return None,
        (Encoding::Chars, ArgLocation::Record(_)) => (text, Source::Chars(at)),
        (_, ArgLocation::RecordReference(_)) if arg.ty.c.contains("char") => (text, Source::Chars(at)),
        (_, ArgLocation::RecordReference(_)) => return None,
        (Encoding::Text, _) => (text, Source::Text { address: number(8, false), of_process }),
        (Encoding::Int, _) if matches!(size, 1 | 2 | 4 | 8) => {
            (int(Fmt::Dec, signed), Source::Number(number(size, signed)))
        }
        (Encoding::Pointer | Encoding::Float, _) if matches!(size, 4 | 8) => {
            (int(Fmt::Hex, false), Source::Number(number(size, false)))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_names_a_filter_and_captures() {
        let r = Request::parse("uprobe:/bin/sh:main,read /args.fd == 3 && pid / 2 > 1/ kstack ustack=5 comm").unwrap();
        assert_eq!(r.names, ["uprobe:/bin/sh:main", "read"]);
        assert_eq!(r.filter.as_deref(), Some("args.fd == 3 && pid / 2 > 1"));
        assert_eq!(r.captures, Captures { kstack: captures::KERNEL, ustack: 5, comm: true });
        let r = Request::parse("uprobe:/usr/bin/x:y").unwrap();
        assert_eq!((r.filter, r.captures), (None, Captures::default()));
        let r = Request::parse(r#"uprobe:./p:"a::f(int, char*)",read /pid == 1/ str(arg0) str(args.why)"#).unwrap();
        assert_eq!(r.names, [r#"uprobe:./p:"a::f(int, char*)""#, "read"]);
        assert_eq!((r.filter.as_deref(), r.strings), (Some("pid == 1"), vec!["arg0".to_string(), "why".into()]));
        assert_eq!(Request::parse(r#"uprobe:"./a /b":main comm"#).unwrap().names, [r#"uprobe:"./a /b":main"#]);
        for bad in [
            r#"uprobe:./p:"a b"#,
            "read str(",
            "",
            " , ",
            "read /pid == 1",
            "read kstack=0",
            "read kstack=128",
            "read ustack=513",
            "read stack",
            "read comm=3",
        ] {
            assert!(Request::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn probes_of_the_heap_are_taken_from_requests() {
        let enabled = |texts: &[&str]| {
            let requests: Vec<Request> = texts.iter().map(|text| Request::parse(text).unwrap()).collect();
            let all = heap_enablings(&requests, Captures::default()).map_err(|e| e.to_string())?;
            Ok(all.iter().map(|e| (e.label(), e.stack)).collect::<Vec<_>>())
        };
        let some =
            enabled(&["heap:malloc,read /args.size > 9/ ustack", "heap:mun*", "heap:munmap ustack", "tracepoint:*:x"]);
        let want = [("heap:malloc /args.size > 9/", true), ("heap:munmap", false)].map(|(l, s)| (l.to_string(), s));
        assert_eq!(some, Ok(want.to_vec()));
        assert_eq!(enabled(&["heap:*"]).map(|all: Vec<(String, bool)>| all.len()), Ok(4));
        for bad in
            ["heap:malloc kstack", "heap:malloc comm", "heap:malloc str(address)", "heap:malloc ustack=4", "heap:maloc"]
        {
            assert!(enabled(&[bad]).is_err_and(|e: String| e.lines().count() == 1), "{bad}");
        }
        assert!(
            enabled(&["heap:free /args.size > 1/"]).is_err() && enabled(&["heap:malloc /args.ustack == 1/"]).is_err()
        );
    }

    #[test]
    fn calls_are_told_from_other_probes() {
        for probe in
            ["tracepoint:sched:sched_switch", "uprobe:/bin/sh:main", "begin", "profile:hz:99", "syscall:read:entry"]
        {
            assert!(is_probe(probe), "{probe}");
        }
        for call in ["read", "%file", "/^get/", "!read", "syscall:openat", "all"] {
            assert!(!is_probe(call), "{call}");
        }
    }
}
