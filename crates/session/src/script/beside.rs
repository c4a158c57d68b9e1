//! Scripts of `record` and `trace`: clauses beside what else is enabled, on the same events.
//!
//! ```text
//! -e PROBE ───────────────┐ join: a probe of both is enabled once
//! -e 'PROBE { … }' ─┐     ├─► requests ─► record::through ─► pump ┬► Among: Unasked ─► a view, and the script's lines between its own
//! --script FILE ────┴► places                                     └► the trace, which has the script too (recorded)
//! ```

use super::among::{Among, Asked, Unasked};
use super::catalogue::{Catalogue, Found};
use super::collecting;
use super::places::Places;
use super::sink::Script;
use super::{Manner, compile, find, has_no_tracepoints, known, pid_of, recorded, source};
use crate::ask::Ask;
use crate::output::{Output, complain};
use crate::record::{self, Adjust, OfCalls, With};
use crate::run::{Run, Status};
use crate::show::{Sinks, ToOutput, Views};
use crate::view::screen::Clocks;
use crate::view::{self, Of, lines};
use crate::{combinations, filter, spans};
use engine::capture::captures::Captures;
use engine::pipeline::pump::Sink;
use engine::pipeline::recorder::Monitor;
use engine::provider::{self, quoting};
use engine::request::enabling::Enabling;
use engine::request::parse::{Request, is_clause, is_probe, label};
use engine::request::probe_enabling;
use engine::request::select::Calls;
use engine::target::Target;
use engine::{Error, Result};
use lang::script::Program;
use std::cell::RefCell;
use std::rc::Rc;

/// More probes of one pattern are known by the pattern.
const NAMED: usize = 64;

/// Runs `record`.
pub fn record(ask: &Ask) -> Result<Status> {
    let ask = &*spans::recorded(ask)?;
    let Some(Clauses { ask, script, requests, found, of_calls, adjust }) = Clauses::of(ask)? else {
        return record::run(ask);
    };
    let own = record::requests(&ask)?;
    let calls = if own.is_empty() { vec!["none".into()] } else { record::calls_of(&own) };
    let mut selection = record::selection(&ask, calls)?;
    let hidden = add(&mut selection.calls, &requests)?;
    let lives = !own.is_empty() && !record::is_without_calls(&own);
    let Joined { requests, probes, asked } = join(own, requests)?;
    let is_kept = ask.keep.output.is_some();
    let (default, adjust) = (Some("text"), Some(adjust));
    let with = |sinks, said| With { selection, requests, default, sinks, said, adjust, calls: of_calls };
    let Some(script) = script else {
        let said = if is_kept { recorded::of_reader(&found) } else { Vec::new() };
        return record::through(&ask, with(Box::new(|views, _| Sinks::from(views)), said));
    };
    let unasked = Unasked::new(&hidden, lives, probes, asked, &found)?;
    let (running, said) = Running::new(&ask, script, unasked);
    let said = match said {
        Some(said) if is_kept => said,
        None if is_kept => {
            let todo = "'trapline run --trace DIR FILE' runs it";
            complain(&format!("{}: too long: the trace does not keep it ({todo})", running.name));
            recorded::of_reader(&found)
        }
        _ => Vec::new(),
    };
    let status = record::through(&ask, with(Box::new(|views, monitor| running.sinks(views, monitor)), said));
    running.status(status)
}

/// Runs `trace`.
pub fn trace(ask: &Ask) -> Result<Status> {
    let Some(Clauses { ask, script: Some(script), requests, found, of_calls, adjust }) = Clauses::of(ask)? else {
        return crate::trace::run(ask);
    };
    let kind = view::find(ask.show.first().map_or("text", |show| &show.view), &[Of::Events])?;
    let mut ask = crate::trace::for_view(&ask, kind).into_owned();
    if ask.select.expressions().all(filter::is_qualified) {
        ask.select.expr.push("none".into());
    }
    let mut selection = filter::selection(&ask)?;
    let own = Request { names: vec![text_of(&selection.calls)], ..Request::default() };
    let own = if selection.calls.is_empty() { Vec::new() } else { vec![own] };
    let lives = !own.is_empty();
    let hidden = add(&mut selection.calls, &requests)?;
    let Joined { requests, probes, asked } = join(own, requests)?;
    let unasked = Unasked::new(&hidden, lives, probes, asked, &found)?;
    let record::Planned { mut plan, why, selection } = record::planned(&ask, requests, selection, of_calls)?;
    adjust(&mut plan.enablings)?;
    combinations::say_without_effect(&ask, true);
    combinations::say_without_file(&ask);
    let file = ask.keep.output.as_ref();
    let output = Output::open(file, ask.keep.append, ask.target.is_per_thread() && file.is_some())?;
    let clocks = Clocks::session(&ask.format).of_machine(ask.target.all, &selection);
    let lines = lines::shown(&ask, &output, kind, clocks)?;
    let (running, _) = Running::new(&ask, script, unasked);
    let sinks = running.sinks(vec![(lines, output)], None);
    running.status(Run::through(&ask, plan, &why, selection, sinks, None, None).and_then(|run| run.finish(&ask)))
}

/// Calls in the form of `-e`.
fn text_of(calls: &Calls) -> String {
    match (calls.is_all(), calls.is_empty()) {
        (true, _) => "all".into(),
        (_, true) => "none".into(),
        _ => calls.names().join(","),
    }
}

/// Adds the calls of a script to others. Which of them only the script wants, in the form of `-e`.
fn add(calls: &mut Calls, of_script: &[Request]) -> Result<String> {
    let mut all = Calls::none();
    for name in of_script.iter().flat_map(|r| &r.names).filter(|n| !is_probe(n)) {
        all.join(&Calls::parse(name)?);
    }
    let mut hidden = all.clone();
    hidden.remove(calls);
    calls.join(&all);
    Ok(text_of(&hidden))
}

/// What clauses ask for.
struct Clauses {
    /// The rest of the command line.
    ask: Ask,
    /// The script, if it is to run.
    script: Option<Ready>,
    requests: Vec<Request>,
    /// What its patterns are.
    found: Found,
    /// What it reads of calls of functions.
    of_calls: OfCalls,
    /// Has programs read the memory that the clauses want.
    adjust: Box<Adjust>,
}

/// A script that is checked.
struct Ready {
    program: Program,
    places: Places,
    /// Name and text.
    source: (String, String),
    catalogue: Catalogue,
}

impl Clauses {
    /// Of the command line; none where it has none.
    fn of(ask: &Ask) -> Result<Option<Clauses>> {
        let (clauses, expr): (Vec<String>, Vec<String>) = ask.select.expr.iter().cloned().partition(|e| is_clause(e));
        let file = ask.script.reader.as_ref().or(ask.script.file.as_ref());
        if clauses.is_empty() && file.is_none() {
            return Ok(None);
        }
        let reads = ask.script.reader.is_some();
        if reads && !clauses.is_empty() {
            let why = "nothing runs with it, and an -e has statements";
            return Err(Error::usage("--for", why, "use --script, or leave the statements out"));
        }
        let mut ask = ask.clone();
        ask.select.expr = expr;
        ask.script.args = ask.select.param.clone();
        let (mut name, mut text) = ("-e".to_string(), String::new());
        if let Some(file) = file {
            let mut of_file = ask.clone();
            (of_file.script.text, of_file.script.file) = (None, Some(file.clone()));
            (name, text) = source(&of_file)?;
            text.push('\n');
        }
        text += &clauses.iter().map(|clause| with_calls(clause)).collect::<Vec<_>>().join("\n");
        let of_calls = !ask.target.all && has_no_tracepoints(&ask);
        let catalogue = Catalogue::new(of_calls, pid_of(&ask), ask.target.command.first());
        let program = compile(&ask, (&name, &text), &catalogue)?;
        let places = find(&program, (&name, &text), &catalogue)?;
        known(&program, (&name, &text))?;
        if let Some((objects, _)) = places.objects.first() {
            let todo = "run it by trapline run";
            return Err(Error::usage(format!("iter:{}", objects.name), "objects of the kernel are no events", todo));
        }
        let requests = places.requests.iter().map(|r| Request::parse(r)).collect::<Result<Vec<_>>>()?;
        let (found, of_calls) = (catalogue.found(), OfCalls { values: places.values, ..OfCalls::default() });
        let reader = (program.clone(), places.clone());
        let adjust = Box::new(move |all: &mut [Enabling]| {
            collecting::read_registers(&reader.0, &reader.1, all)?;
            collecting::read_memory(&reader.0, &reader.1, all)
        });
        let script = (!reads).then_some(Ready { program, places, source: (name, text), catalogue });
        Ok(Some(Clauses { ask, script, requests, found, of_calls, adjust }))
    }
}

/// A clause in which calls have their names as elsewhere in `-e`: `openat`, `%file`.
fn with_calls(clause: &str) -> String {
    let end = quoting::find(clause, |rest| rest.starts_with(['{', ' '])).unwrap_or(0);
    let named = |name: &str| {
        let is_own = name.contains(':') || ["begin", "end"].iter().any(|own| name.eq_ignore_ascii_case(own));
        match Calls::parse(name) {
            Ok(calls) if !is_own && calls.is_all() => "syscall:*".to_string(),
            Ok(_) if !is_own && !name.starts_with('%') => format!("syscall:{name}"),
            Ok(calls) if !is_own => calls.names().iter().map(|n| format!("syscall:{n}")).collect::<Vec<_>>().join(","),
            _ => name.to_string(),
        }
    };
    let names: Vec<String> = quoting::split(&clause[..end]).into_iter().map(|name| named(name.trim())).collect();
    names.join(",") + &clause[end..]
}

/// What is enabled for the command line and for its script together.
struct Joined {
    requests: Vec<Request>,
    /// The probes of the script, which others may have asked for too.
    probes: Vec<String>,
    /// What was asked for otherwise, as `-e` has it: probes and filters.
    asked: Vec<String>,
}

/// Enables a probe once that both want, with what both capture. A filter of the one is no filter of the other: it is applied to what is shown.
fn join(own: Vec<Request>, of_script: Vec<Request>) -> Result<Joined> {
    // Calls, functions and allocations have one event, however many enablings want it.
    let is_apart = |name: &str| is_probe(name) && !name.starts_with("function:") && !name.starts_with("heap:");
    let provider = |name: &str| name.split(':').next().unwrap_or_default().to_string();
    let mut asked: Vec<String> = Vec::new();
    for request in &own {
        let names: Vec<&str> = request.names.iter().map(String::as_str).filter(|n| !is_apart(n)).collect();
        if !names.is_empty() {
            asked.push(label(&names.join(","), request.filter.as_deref()));
        }
    }
    let (mut own, mut probes, mut rest) = (own, Vec::new(), Vec::new());
    let mut joined: Vec<(Request, Vec<String>)> = Vec::new();
    for mut request in of_script {
        let name = request.names.first().cloned().unwrap_or_default();
        let is_same = |other: &String| is_apart(other) && provider(other) == provider(&name);
        let others = own.iter().chain(joined.iter().map(|(r, _)| r)).flat_map(|r| &r.names);
        if !is_apart(&name) || !{ others }.any(is_same) {
            probes.extend(is_probe(&name).then_some(name));
            rest.push(request);
            continue;
        }
        let set = names_of(&name);
        probes.extend(known_as(&name, &set));
        let mut all = set.clone();
        let mut take = |other: &Request, name: &str, theirs: &[String]| -> Result<()> {
            if !theirs.iter().all(|n| all.contains(n)) {
                if !all.iter().all(|n| theirs.contains(n)) {
                    let why = format!("{} of the script has some of these probes, and others", request.names[0]);
                    return Err(Error::usage(format!("-e {name}"), why, "name those of the script by themselves"));
                }
                (request.names, all) = (vec![name.to_string()], theirs.to_vec());
            }
            request.captures = request.captures.join(other.captures);
            let more = other.strings.iter().filter(|s| !request.strings.contains(s)).cloned().collect::<Vec<_>>();
            request.strings.extend(more);
            Ok(())
        };
        for other in &mut own {
            for name in other.names.clone().iter().filter(|n| is_same(n)) {
                let theirs = names_of(name);
                if overlap(&theirs, &set) {
                    check(name, other)?;
                    take(other, name, &theirs)?;
                    asked.push(label(&known_as(name, &theirs).join(","), other.filter.as_deref()));
                    other.names.retain(|n| n != name);
                }
            }
        }
        let (same, others): (Vec<_>, Vec<_>) = joined.into_iter().partition(|(_, theirs)| overlap(theirs, &set));
        for (other, theirs) in &same {
            take(other, &other.names[0], theirs)?;
        }
        joined = others;
        joined.push((request, all));
    }
    let mut requests = own;
    requests.retain(|r| !r.names.is_empty());
    requests.extend(joined.into_iter().map(|(request, _)| request));
    requests.extend(rest);
    Ok(Joined { requests, probes, asked })
}

/// Refuses a filter that is invalid for its probe: the probe is enabled without it, so nothing else checks it.
fn check(name: &str, of: &Request) -> Result<()> {
    let alone = Request { names: vec![name.into()], filter: of.filter.clone(), ..Request::default() };
    let found =
        of.filter.as_ref().map(|_| probe_enabling::enable(&[alone], Captures::default(), &Target::Pids(Vec::new())));
    found.map_or(Ok(()), |found| found.map(drop))
}

fn overlap(a: &[String], b: &[String]) -> bool {
    a.iter().any(|name| b.contains(name))
}

/// The names of the probes of a pattern; those that there are not are complained of where they are enabled.
fn names_of(pattern: &str) -> Vec<String> {
    match provider::list(pattern, false) {
        Ok(found) if !found.is_empty() => found.into_iter().map(|p| p.name).collect(),
        _ => vec![pattern.to_string()],
    }
}

/// By what many probes are known: a pattern with the path of their file.
fn known_as(pattern: &str, all: &[String]) -> Vec<String> {
    let of_file = |name: &str| name.splitn(3, ':').take(2).map(str::to_string).collect::<Vec<_>>().join(":");
    match (all, pattern.splitn(3, ':').nth(2)) {
        ([first, ..], Some(rest)) if all.len() > NAMED => vec![format!("{}:{rest}", of_file(first))],
        _ if all.len() > NAMED => vec![pattern.to_string()],
        _ => all.to_vec(),
    }
}

/// A script that runs beside views.
struct Running {
    name: String,
    script: Rc<RefCell<Script>>,
    unasked: Rc<RefCell<Unasked>>,
    says: bool,
}

impl Running {
    /// One that has not begun, and what a trace says of it; none where that is too much.
    fn new(ask: &Ask, ready: Ready, unasked: Unasked) -> (Running, Option<Vec<(String, String)>>) {
        let Ready { program, places, source, catalogue } = ready;
        let clocks = Clocks::now();
        let script = Script::new(program, places, source.clone(), Output::kept(), &Manner::default(), clocks);
        let said =
            recorded::said((&source.0, &source.1), &ask.script.args, &catalogue, &unasked, script.origin(), clocks);
        let (script, unasked) = (Rc::new(RefCell::new(script)), Rc::new(RefCell::new(unasked)));
        (Running { name: source.0, script, unasked, says: ask.quiet < 2 }, said)
    }

    /// Runs `begin`. Its lines are among those of the first view that goes to stdout.
    fn sinks(&self, views: Views, monitor: Option<Monitor>) -> Sinks {
        let Sinks { mut places, .. } = Sinks::from(Views::new());
        places.extend(views.iter().flat_map(|(_, out)| out.descriptors()).chain([1]));
        let mut asked: Vec<Asked> = Vec::new();
        let mut among = None;
        for (shown, out) in views {
            let is_place = among.is_none() && out.is_stdout();
            let view = Asked { unasked: Rc::clone(&self.unasked), view: ToOutput { shown, out } };
            if is_place { among = Some(view) } else { asked.push(view) }
        }
        self.script.borrow_mut().begin(None);
        let mut among = Among::new(&self.script, among, self.says);
        among.monitor = monitor;
        let all = std::iter::once(Box::new(among) as Box<dyn Sink>);
        let all = all.chain(asked.into_iter().map(|view| Box::new(view) as Box<dyn Sink>)).collect();
        Sinks { all, places, told: None, lines: true }
    }

    /// How it has ended.
    fn status(&self, status: Result<Status>) -> Result<Status> {
        let exit = self.script.borrow().exit();
        status.map(|status| exit.map_or(status, |code| Status::Exit(code as u8)))
    }
}

#[cfg(test)]
mod tests {
    use super::with_calls;

    #[test]
    fn calls_have_short_names_in_clauses() {
        for (clause, is) in [
            ("openat { @ = 1; }", "syscall:openat { @ = 1; }"),
            ("read,uprobe:/bin/sh:main /pid == 1/ { }", "syscall:read,uprobe:/bin/sh:main /pid == 1/ { }"),
            ("all{ @++; }", "syscall:*{ @++; }"),
            ("BEGIN { } end { }", "BEGIN { } end { }"),
            ("config = { } begin { }", "config = { } begin { }"),
            ("opennat { }", "opennat { }"),
        ] {
            assert_eq!(with_calls(clause), is);
        }
        let clocks = with_calls("%clock { }");
        assert!(clocks.starts_with("syscall:") && clocks.contains("syscall:clock_gettime"), "{clocks}");
    }
}
