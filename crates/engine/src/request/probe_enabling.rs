//! Enablings: a probe that is enabled, with what it captures and its own filter ([`crate::request::parse`] reads what is asked for).
//!
//! A bare name is a system call, as in strace; those of one session are carried out together ([`crate::request::select::Calls`]). Any
//! other probe is a [`ProbeEnabling`] with programs, rings and counters of its own.

use crate::capture::captures::Captures;
use crate::error::{Error, Result};
use crate::provider::{self, ArgInfo, ArgLocation, AttachPoint, Encoding, LeftOut};
use crate::request::collecting::Refusals;
use crate::request::expression::Expression;
use crate::request::parse::{Request, class, is_probe, label, mistake};
use crate::request::watches::Watches;
use crate::rights::{self, Sight};
use crate::target::Target;
use events::dynamic;
use events::types::{Fmt, Int, StrKind, Type};
use events::{Extent, Schema};
use lang::filter::ir::{Leaf, Subject};
use lang::{Filter, Parsed};
use std::collections::HashSet;

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
    /// The processor.
    Cpu,
    /// The thread's user.
    Uid,
    /// The thread's group.
    Gid,
    /// A number of a script's clause; or what is in memory at that address.
    Script(Script),
    /// Return addresses in the kernel: this many at most.
    KernelStack(u8),
    /// Return addresses in the process: this many at most.
    UserStack(u16),
    /// Hidden from the user who started the session: 0, or an empty string.
    Hidden {
        /// It is a string.
        text: bool,
    },
}

/// A number of a script's clause, as a field of events.
#[derive(Clone, Debug)]
pub struct Script {
    /// The number, or the address of the memory.
    pub number: std::sync::Arc<crate::request::collecting::Number>,
    /// The read at that address; None: the field is the number itself.
    pub read: Option<Read>,
}

/// A read of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// It is the process's memory, and not the kernel's.
    pub of_process: bool,
    /// What is read.
    pub what: ReadWhat,
    /// Of bytes: as many of them as the field with this number says.
    pub length: Option<u16>,
}

/// What is read of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadWhat {
    /// This many bytes.
    Bytes(u16),
    /// A string.
    Text,
    /// The strings at the addresses of an array.
    Strings,
}

impl PartialEq for Script {
    fn eq(&self, other: &Script) -> bool {
        std::sync::Arc::ptr_eq(&self.number, &other.number) && self.read == other.read
    }
}

impl Eq for Script {}

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

/// A probe that is enabled.
pub struct ProbeEnabling {
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
    /// In a session of the whole machine: events of the kernel's own threads too.
    pub everyone: bool,
    /// Its events are all that is needed: not the names of the tasks that they are of, nor what is mapped there.
    pub bare: bool,
    /// Clauses of a script that collect instead of reporting events.
    pub collects: Option<crate::request::collecting::Collecting>,
    /// Clauses of a script of which one must want the event; of those that collect, where the kernel refuses their program.
    pub predicates: Option<crate::request::collecting::Predicates>,
    /// Where it is said which of both the kernel has refused.
    pub refusals: Refusals,
    /// Of addresses that are an argument: what is watched.
    pub watches: Watches,
}

impl ProbeEnabling {
    /// The classes of its events.
    pub fn classes(&self) -> &[&'static Schema] {
        if self.members.is_empty() { std::slice::from_ref(&self.schema) } else { &self.members }
    }

    /// Its filter, as text.
    pub fn filter_text(&self) -> Option<String> {
        let parts = |f: &Filter| f.parts().iter().map(|p| p.text.as_str()).collect::<Vec<_>>().join(" && ");
        self.filter.as_ref().map(parts)
    }

    /// Its name and its filter.
    pub fn label(&self) -> String {
        label(&self.name, self.filter_text().as_deref())
    }

    /// Adds fields to its events.
    ///
    /// # Errors
    /// Too many classes of events, or fields of one.
    pub fn extend(&mut self, more: Vec<(dynamic::Field, Source)>) -> Result<()> {
        let longer = |name: &str, s: &'static Schema| {
            let own = s.args.iter().map(|a| dynamic::Field { name: a.name.into(), ty: a.ty });
            let fields: Vec<_> = own.chain(more.iter().map(|(field, _)| field.clone())).collect();
            class(name, s.extent, &fields)
        };
        self.members = self.members.iter().map(|s| longer(s.name, s)).collect::<Result<_>>()?;
        self.schema = self.members.first().map_or_else(|| longer(&self.name, self.schema), |first| Ok(*first))?;
        self.fields.extend(more.into_iter().map(|(_, source)| source));
        Ok(())
    }
}

impl std::fmt::Debug for ProbeEnabling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProbeEnabling").field("name", &self.name).field("fields", &self.fields).finish_non_exhaustive()
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
pub fn enable(requests: &[Request], more: Captures, target: &Target) -> Result<Vec<ProbeEnabling>> {
    let pids = if let Target::Pids(pids) = target { &pids[..] } else { &[] };
    let mut all: Vec<ProbeEnabling> = Vec::new();
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
pub fn without_strings(enablings: &mut [ProbeEnabling]) {
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
pub fn narrow(enablings: &mut Vec<ProbeEnabling>, expression: &Expression) -> Result<()> {
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
        no_search(&e.name, first)?;
        no_other_task(&e.name, e.schema, first)?;
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

/// Fields with the names and types that this probe has for them: its arguments lie where those of `all` do.
fn named(probe: &provider::Probe, all: &[ArgInfo], fields: &[dynamic::Field]) -> Vec<dynamic::Field> {
    let mut named = fields.to_vec();
    if probe.args.iter().map(|arg| &arg.location).eq(all.iter().map(|arg| &arg.location)) {
        let own = probe.args.iter().filter_map(|arg| Some((&arg.name, field_type(arg)?)));
        named.iter_mut().zip(own).for_each(|(field, (name, ty))| *field = dynamic::Field { name: name.clone(), ty });
    }
    named
}

/// One enabling for all probes that a pattern matches, where their provider has them share a program, and where the filter is the
/// same for all: one that asks for the probe's name is not.
fn together(pattern: &str, wanted: Wanted<'_>) -> Result<Option<ProbeEnabling>> {
    let Some((probes, ready)) = provider::together(pattern)? else { return Ok(None) };
    if probes.len() > dynamic::MAX {
        let why = format!("it matches {} functions, and a session has at most {}", probes.len(), dynamic::MAX);
        return Err(Error::usage(format!("-e {pattern}"), why, "name fewer"));
    }
    let args = ready.probe.args.clone();
    let mut enabling = of(ready, wanted)?;
    let fields: Vec<dynamic::Field> =
        enabling.schema.args.iter().map(|a| dynamic::Field { name: a.name.into(), ty: a.ty }).collect();
    let members = probes.iter().map(|p| class(&p.name, enabling.schema.extent, &named(p, &args, &fields)));
    let members = members.collect::<Result<Vec<_>>>()?;
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

/// The session's own beginning or end.
fn of_session(name: &str, request: &Request) -> Result<ProbeEnabling> {
    if request.filter.is_some() {
        return Err(Error::usage(format!("-e {name}"), "it happens once and takes no filter", "leave the filter out"));
    }
    let (schema, fields) = (class(name, Extent::Point, &[])?, Vec::new());
    let (members, missing) = (Vec::new(), Vec::new());
    Ok(ProbeEnabling {
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
        everyone: false,
        bare: false,
        collects: None,
        predicates: None,
        refusals: Refusals::default(),
        watches: Watches::default(),
    })
}

fn of(ready: provider::Ready, wanted: Wanted<'_>) -> Result<ProbeEnabling> {
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
            "cpu" => Source::Cpu,
            "uid" => Source::Uid,
            "gid" => Source::Gid,
            "kstack" => Source::KernelStack(captures.kstack),
            _ => Source::UserStack(captures.ustack),
        });
    }
    let schema = class(&probe.name, point.extent(), &types)?;
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
    filter.iter().try_for_each(|f| {
        rights::of_filter(&probe.name, sight, f)?;
        no_search(&probe.name, f)?;
        no_other_task(&probe.name, schema, f)
    })?;
    Ok(ProbeEnabling {
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
        everyone: false,
        bare: false,
        collects: None,
        predicates: None,
        refusals: Refusals::default(),
        watches: Watches::default(),
    })
}

/// Refuses a filter that asks for what a program knows of the current task only, of events that another task may end.
fn no_other_task(probe: &str, schema: &Schema, filter: &Filter) -> Result<()> {
    let needs = filter.needs();
    if !schema.is_span() || !(needs.comm || needs.uid || needs.gid) {
        return Ok(());
    }
    let why = "comm, uid and gid are not known where another task completes an operation";
    Err(Error::usage(format!("-e {probe}"), why, "use pid or tid here, and them with 'trapline report --where'"))
}

/// Refuses a filter that no program in the kernel carries out: only those of calls and of functions are carried out elsewhere too.
fn no_search(probe: &str, filter: &Filter) -> Result<()> {
    let part =
        filter.needs().search.then(|| filter.parts().iter().map(|p| p.text.as_str()).collect::<Vec<_>>().join(" && "));
    part.map_or(Ok(()), |text| {
        let why = "endswith, contains and glob are for calls and functions";
        Err(Error::usage(
            format!("-e {probe}: /{text}/"),
            why,
            "use == or startswith here, and them with 'trapline report --where'",
        ))
    })
}

/// Whether a filter reads strings at addresses that arguments are.
fn reads_addresses(filter: &Filter, schema: &Schema) -> bool {
    let mut reads = false;
    for part in filter.parts() {
        part.cond.leaves(&mut |leaf| {
            if let Leaf::Test(lang::filter::ir::Text { subject: Subject::Arg(i), .. }) = leaf {
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

/// The type of the field that an argument becomes in events; none where no program can find it.
pub fn field_type(arg: &ArgInfo) -> Option<Type> {
    argument(arg, false).map(|(ty, _)| ty)
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
        (Encoding::Shown(fmt), _) => (int(fmt, signed), Source::Number(number(size, signed))),
        (Encoding::Pointer | Encoding::Float, _) if matches!(size, 4 | 8) => {
            (int(Fmt::Hex, false), Source::Number(number(size, false)))
        }
        _ => return None,
    })
}
