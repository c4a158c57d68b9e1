//! `session set`: what a session records from now on.
//!
//! ```text
//! -e SET     these calls, and no others        -e +PROBE  this too, with a filter and captures     -e -PROBE  this no more
//! -e +function:GLOB, -e -function:GLOB: functions that have stubs, and these no more
//! -p PID     this process too                  -p -PID    this no more
//! ```

use super::Run;
use crate::durations;
use engine::control::{Addition, Order};
use engine::heap::classes::PROVIDER;
use engine::plan::Backend;
use engine::request::call_enabling;
use engine::request::call_enabling::CallEnabling;
use engine::request::functions;
use engine::request::functions::{FunctionEnabling, Functions};
use engine::request::parse;
use engine::request::parse::Request;
use engine::request::probe_enabling::{self, ProbeEnabling};
use engine::request::returns;
use engine::request::select::Calls;
use engine::target::Target;
use engine::{Error, Result};
use lang::near::nearest;
use lang::pattern::glob;
use std::sync::Arc;
use sys::proc;

/// What an `-e` changes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Replace,
    Add,
    Remove,
}

/// The change that the first character asks for, and the rest.
fn change(text: &str) -> (Change, &str) {
    let text = text.trim();
    match text.as_bytes().first() {
        Some(b'+') => (Change::Add, &text[1..]),
        Some(b'-') => (Change::Remove, &text[1..]),
        _ => (Change::Replace, text),
    }
}

impl Run {
    /// Carries a `set` out: what is wrong with any of it is found before any of it is done, as far as that can be known.
    pub(super) fn set(&mut self, texts: &[String], pids: &[String]) -> Result<()> {
        let pids: Vec<(bool, i32)> = pids.iter().map(|text| process(text)).collect::<Result<_>>()?;
        if !pids.is_empty() && matches!(self.plan.target, Target::All { .. }) {
            return Err(Error::usage("-p", "the session is of the whole machine", "leave it out"));
        }
        let (mut calls, mut functions) = (None, None);
        let (mut added, mut removed) = (Vec::new(), Vec::new());
        for text in texts {
            let (change, rest) = change(text);
            let mut request = Request::parse(rest)?;
            if let Some(name) = request.names.iter().find(|n| n.starts_with(PROVIDER)) {
                let todo = "name it when the recording starts";
                return Err(Error::failed(format!("-e {name}"), "probes of the heap stay as they are", todo));
            }
            if change != Change::Replace && self.plan.functions.is_some() {
                self.change_functions(change, &request, &mut functions)?;
                request.names.retain(|n| !n.starts_with(Functions::PROVIDER));
            }
            let (probes, names): (Vec<String>, Vec<String>) = request
                .names
                .iter()
                .cloned()
                .partition(|n| parse::is_probe(n) || change == Change::Remove && self.enabled(n, None).is_ok());
            let others = !names.is_empty() || change != Change::Replace && !probes.is_empty();
            if self.plan.backend == Backend::Agent && others {
                let todo = "record another session beside this one";
                let what = self.plan.functions.as_ref().map_or("functions", Functions::what);
                return Err(Error::failed(format!("-e {text}"), format!("the session records {what}"), todo));
            }
            if !names.is_empty() {
                self.change_calls(change, &request, &names.join(","), &mut calls)?;
            }
            match change {
                _ if probes.is_empty() => {}
                Change::Replace => {
                    let what = "a probe other than a call is added or taken away";
                    return Err(Error::usage(format!("-e {rest}"), what, format!("-e '+{rest}', or -e '-{rest}'")));
                }
                Change::Add => added.extend(self.new_probes(&Request { names: probes, ..request })?),
                Change::Remove => {
                    for name in probes {
                        removed.extend(self.enabled(&name, request.filter.as_deref())?);
                    }
                }
            }
        }
        let left = self.enabled_probes().filter(|(nth, _)| !removed.contains(nth)).count() + added.len();
        let wanted = calls.as_ref().map_or_else(|| self.plan.calls.clone(), |all| union(all));
        let had = || self.plan.functions.as_ref().map_or(&[][..], |f| &f.enablings);
        let heap = self.plan.functions.as_ref().is_some_and(|f| f.heap.is_some());
        let no_functions = !heap && functions.as_deref().unwrap_or_else(had).is_empty();
        if left == 0 && wanted.is_empty() && no_functions {
            return Err(Error::usage("set", "nothing would be enabled", "name calls, or use stop"));
        }
        for (gone, pid) in pids {
            self.change_process(pid, gone)?;
        }
        for probe in added {
            self.enable(probe)?;
        }
        for nth in removed {
            self.disable(nth)?;
        }
        if let Some(functions) = functions {
            self.pump.source.control(Order::Functions(functions.clone()))?;
            self.plan.functions.iter_mut().for_each(|f| f.enablings.clone_from(&functions));
        }
        if let Some(calls) = calls {
            self.enable_calls(calls, wanted)?;
        }
        Ok(())
    }

    /// Adds and removes enablings of functions, in `all`; none there: those that the session has.
    fn change_functions(
        &mut self,
        change: Change,
        request: &Request,
        all: &mut Option<Vec<FunctionEnabling>>,
    ) -> Result<()> {
        let (Some(functions), Some(named)) = (&self.plan.functions, &mut self.named) else { return Ok(()) };
        let fresh = functions::function_enablings(std::slice::from_ref(request), named.next_function)?;
        if fresh.is_empty() {
            return Ok(());
        }
        let all = all.get_or_insert_with(|| functions.enablings.clone());
        for e in fresh {
            let same = all.iter().any(|known| known.label() == e.label());
            match change {
                Change::Remove if e.filter.is_some() && !same => {
                    let todo = "see 'trapline session status'";
                    return Err(Error::failed(format!("-e -{}", e.label()), "no such probe is enabled", todo));
                }
                Change::Remove if e.filter.is_some() => all.retain(|known| known.label() != e.label()),
                Change::Remove => {
                    all.retain(|known| !glob(e.pattern.as_bytes(), known.pattern.as_bytes()));
                    all.iter_mut().for_each(|known| known.without.push(e.pattern.clone()));
                }
                _ if same => {
                    let todo = "take it away first, or give it another filter";
                    return Err(Error::failed(format!("-e +{}", e.label()), "it is enabled already", todo));
                }
                _ => {
                    named.next_function += 1;
                    all.push(FunctionEnabling { id: named.next_function - 1, ..e });
                }
            }
        }
        Ok(())
    }

    fn enable_calls(&mut self, enablings: Vec<CallEnabling>, wanted: Calls) -> Result<()> {
        let had_filters = self.plan.call_enablings.iter().any(|e| e.filter.is_some());
        if had_filters || self.plan.refiltered || enablings.iter().any(|e| e.filter.is_some()) {
            self.plan.refiltered = true;
            let all = std::mem::replace(&mut self.plan.call_enablings, enablings.clone());
            let gone = all.into_iter().filter(|e| !enablings.iter().any(|now| now.id == e.id));
            self.plan.former_calls.extend(gone);
            let mut evaluated = self.plan.evaluated_calls();
            // The programs have filters of these that are not theirs any more.
            for (nr, _) in &self.plan.call_filters {
                events::registry::by_number(u64::from(*nr)).iter().for_each(|s| evaluated.insert(s));
            }
            self.pump.source.control(Order::Filter(enablings.clone(), evaluated))?;
        }
        (self.plan.call_enablings, self.plan.calls) = (enablings, wanted.clone());
        self.pump.selection.calls = wanted;
        self.pump.source.control(Order::Select(self.plan.seen_calls()))?;
        Ok(())
    }

    /// The enablings of calls as they are, each call in one of them at least.
    fn call_enablings(&self) -> Vec<CallEnabling> {
        let mut all = self.plan.call_enablings.clone();
        let mut others = self.plan.calls.clone();
        others.remove(&union(&all));
        if !others.is_empty() {
            let names = if others.is_all() { "all".into() } else { others.names().join(",") };
            all.push(CallEnabling { id: u32::MAX, names, filter: None, calls: others, typed: Default::default() });
        }
        all
    }

    fn change_calls(
        &mut self,
        change: Change,
        request: &Request,
        names: &str,
        calls: &mut Option<Vec<CallEnabling>>,
    ) -> Result<()> {
        let what = |sign: &str| format!("-e {sign}{names}");
        if request.captures != Default::default() || !request.strings.is_empty() {
            let why = "what calls capture is part of their programs, which are loaded at the start";
            return Err(Error::usage(what(""), why, "record another session beside this one"));
        }
        // Several without a sign add up.
        let replaced = calls.is_none() && change == Change::Replace;
        let mut all = calls.take().unwrap_or_else(|| if replaced { Vec::new() } else { self.call_enablings() });
        let named = Calls::parse(names)?;
        if change == Change::Remove {
            let is_it = |e: &CallEnabling| request.filter.is_none() || e.filter == request.filter;
            if !all.iter().any(|e| is_it(e) && !shared(&e.calls, &named).is_empty()) {
                let todo = "see 'trapline session status'";
                return Err(Error::failed(what("-"), "no such call is enabled", todo));
            }
            all.iter_mut().filter(|e| is_it(e)).for_each(|e| e.calls.remove(&named));
            all.retain(|e| !e.calls.is_empty());
        } else {
            all.extend(self.new_calls(request, names, &all)?);
        }
        *calls = Some(all);
        Ok(())
    }

    /// What a request enables of calls that is not enabled.
    fn new_calls(&mut self, request: &Request, names: &str, known: &[CallEnabling]) -> Result<Option<CallEnabling>> {
        let Some(named) = &mut self.named else { return Ok(None) };
        let of_calls = Request { names: vec![names.to_string()], filter: request.filter.clone(), ..Request::default() };
        let fresh = call_enabling::call_enablings(std::slice::from_ref(&of_calls), named.next_enabling)?;
        let Some(mut fresh) = fresh.into_iter().next() else { return Ok(None) };
        named.next_enabling += 1;
        if fresh.filter.is_some() && self.plan.filter.is_some() {
            return Err(Error::usage(format!("-e {names}"), "the session has a --where", "leave the filter out"));
        }
        let of_entry = || fresh.typed.values().find_map(|f| durations::of_entry(f.needs()));
        if let Some(what) = self.plan.no_duration.then(of_entry).flatten() {
            let why = format!("its filter names {what}, and the session has --no-duration");
            return Err(Error::failed(format!("-e {names}"), why, "record another session beside this one"));
        }
        let (wants, has) = (fresh.text_bytes(), self.plan.limits.string.max(self.plan.limits.text));
        if wants > has {
            let why = format!("its filter compares {wants} bytes of a string, and the session captures {has}");
            return Err(Error::failed(format!("-e {names}"), why, "record with -s SIZE"));
        }
        for enabling in known.iter().filter(|e| e.filter == fresh.filter) {
            fresh.calls.remove(&enabling.calls);
        }
        Ok(Some(fresh).filter(|e| !e.calls.is_empty()))
    }

    /// What a request enables, with the filter of `--where`.
    fn new_probes(&self, request: &Request) -> Result<Vec<ProbeEnabling>> {
        let Some(named) = &self.named else { return Ok(Vec::new()) };
        if let Some(own) = request.names.iter().find(|n| matches!(n.as_str(), "begin" | "end")) {
            let todo = "name it when the recording starts";
            return Err(Error::usage(format!("-e +{own}"), "the session has begun", todo));
        }
        let mut probes = probe_enabling::enable(std::slice::from_ref(request), named.captures, &self.plan.target)?;
        if let Some(expression) = &self.pump.selection.expression {
            probe_enabling::narrow(&mut probes, expression)?;
        }
        if !named.strings {
            probe_enabling::without_strings(&mut probes);
        }
        returns::guard(&mut probes, &self.plan.target, named.force)?;
        for probe in &probes {
            if self.enabled_probes().any(|(_, e)| e.label() == probe.label()) {
                let todo = "take it away first, or give it another filter";
                return Err(Error::failed(format!("-e +{}", probe.name), "it is enabled already", todo));
            }
        }
        if self.plan.probes.len() + probes.len() > probe_enabling::MAX {
            let why =
                format!("a session has at most {} probes, those that were taken away included", probe_enabling::MAX);
            return Err(Error::failed(request.names.join(","), why, "record another session beside this one"));
        }
        Ok(probes)
    }

    /// The probes that are enabled, each with its number among those that are attached.
    fn enabled_probes(&self) -> impl Iterator<Item = (usize, &Arc<ProbeEnabling>)> {
        let disabled = self.named.as_ref().map_or(&[][..], |n| &n.disabled[..]);
        let attached = self.plan.probes.iter().filter(|e| e.point.is_some());
        attached.enumerate().filter(|(nth, _)| !disabled.contains(nth))
    }

    /// The numbers of the enabled probes that a name matches, and a filter where one is given.
    fn enabled(&self, name: &str, filter: Option<&str>) -> Result<Vec<usize>> {
        let label = filter.map(|filter| format!("{name} /{filter}/"));
        let is_it = |e: &ProbeEnabling| match &label {
            Some(label) => e.label() == *label,
            None => glob(name.as_bytes(), e.name.as_bytes()),
        };
        let found: Vec<usize> = self.enabled_probes().filter(|(_, e)| is_it(e)).map(|(nth, _)| nth).collect();
        if found.is_empty() {
            let near = nearest(name, self.enabled_probes().map(|(_, e)| e.name.as_str()));
            let todo = match near.is_empty() {
                true => "see 'trapline session status'".to_string(),
                false => format!("did you mean {}?", near.join(", ")),
            };
            return Err(Error::failed(format!("-e -{name}"), "no such probe is enabled", todo));
        }
        Ok(found)
    }

    fn enable(&mut self, probe: ProbeEnabling) -> Result<()> {
        let enabling = Arc::new(probe);
        let addition = Addition { enabling: Arc::clone(&enabling), prepared: None };
        self.pump.source.control(Order::Enable(addition))?;
        self.plan.probes.push(enabling);
        Ok(())
    }

    fn disable(&mut self, nth: usize) -> Result<()> {
        self.pump.source.control(Order::Disable(nth))?;
        self.named.iter_mut().for_each(|n| n.disabled.push(nth));
        Ok(())
    }

    fn change_process(&mut self, pid: i32, gone: bool) -> Result<()> {
        if gone {
            self.pump.source.control(Order::Detach(pid))?;
        } else {
            self.pump.watch_process(pid);
            self.pump.source.control(Order::Attach(pid))?;
        }
        self.named.iter_mut().for_each(|n| n.retarget(pid, gone));
        Ok(())
    }
}

/// The calls of all of them.
fn union(all: &[CallEnabling]) -> Calls {
    let mut calls = Calls::none();
    all.iter().for_each(|e| calls.join(&e.calls));
    calls
}

/// The calls of both.
fn shared(a: &Calls, b: &Calls) -> Calls {
    let (mut rest, mut both) = (a.clone(), a.clone());
    rest.remove(b);
    both.remove(&rest);
    both
}

/// A process, and whether it is to be let go of.
fn process(text: &str) -> Result<(bool, i32)> {
    let bad = |why: &str, todo: &str| Error::usage(format!("-p {text}"), why, todo);
    let (gone, number) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let pid = number.parse().ok().filter(|pid: &i32| *pid > 0);
    let pid = pid.ok_or_else(|| bad("not a process id", "for instance -p $(pidof NAME), or -p -PID"))?;
    if pid == sys::process::own_pid() {
        return Err(bad("is trapline itself", "name another process"));
    }
    let pid = proc::process_of(pid).unwrap_or(pid);
    if !gone && proc::is_kernel_thread(pid) {
        return Err(bad("a thread of the kernel, which makes no system calls", "name a process"));
    }
    Ok((gone, pid))
}
