//! `session set`: what a session records from now on.
//!
//! ```text
//! -e SET     these calls, and no others        -e +PROBE  this too, with a filter and captures     -e -PROBE  this no more
//! -e +function:GLOB, -e -function:GLOB: functions that have stubs, and these no more
//! -p PID     this process too                  -p -PID    this no more
//! ```

use super::Run;
use crate::durations;
use engine::control::{Enabled, Order, unable};
use engine::heap::classes::PROVIDER;
use engine::plan::Backend;
use engine::request::call_enabling::{self, CallEnabling};
use engine::request::enabling::{self, Enabling, What};
use engine::request::functions::{self, Functions};
use engine::request::parse::{self, Request};
use engine::request::probe_enabling::{self, ProbeEnabling};
use engine::request::returns;
use engine::request::select::Calls;
use engine::target::Target;
use engine::{Error, Result};
use lang::near::nearest;
use lang::pattern::glob;
use std::any::Any;
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
    /// Carries a `set` out: what is wrong with any of it is found before any of it is done, as far as that can be known. Returns what is
    /// to be said of it.
    pub(super) fn set(&mut self, texts: &[String], pids: &[String]) -> Result<Vec<String>> {
        let pids: Vec<(bool, i32)> = pids.iter().map(|text| process(text)).collect::<Result<_>>()?;
        if !pids.is_empty() && matches!(self.plan.target, Target::All { .. }) {
            return Err(Error::usage("-p", "the session is of the whole machine", "leave it out"));
        }
        let (mut all, mut calls_change) = (self.plan.enablings.clone(), false);
        let mut for_agent = Vec::new();
        for text in texts {
            let (change, rest) = change(text);
            let mut request = Request::parse(rest)?;
            if change == Change::Add && self.may_inject() {
                let left = self.leave_to_agent(&mut request);
                let nothing_else = request.names.is_empty() && !left.names.is_empty();
                for_agent.extend((!left.names.is_empty()).then_some(left));
                if nothing_else {
                    continue;
                }
            }
            let of_heap =
                |n: &&String| n.starts_with(PROVIDER) && (change != Change::Remove || self.plan.has_consumer());
            if let Some(name) = request.names.iter().find(of_heap) {
                let todo = "name it when the recording starts";
                return Err(Error::failed(format!("-e {name}"), "probes of the heap stay as they are", todo));
            }
            if change != Change::Replace && self.plan.functions.is_some() {
                change_functions(change, &request, &mut all)?;
                request.names.retain(|n| !n.starts_with(Functions::PROVIDER));
            }
            let is_probe =
                |n: &String| parse::is_probe(n) || change == Change::Remove && enabled(&all, n, None).is_ok();
            let (probes, names): (Vec<String>, Vec<String>) = request.names.iter().cloned().partition(is_probe);
            let others = !names.is_empty() || change == Change::Add && !probes.is_empty();
            if self.plan.backend == Backend::Agent && others {
                let todo =
                    "record another session beside this one; one that is started with -e none too takes calls later";
                let what = self.plan.functions.as_ref().map_or("functions", Functions::what);
                return Err(Error::failed(format!("-e {text}"), format!("the session records {what}"), todo));
            }
            if !names.is_empty() {
                // Several without a sign add up.
                let replaces = !std::mem::replace(&mut calls_change, true) && change == Change::Replace;
                all.iter_mut().filter(|e| replaces && e.calls().is_some()).for_each(|e| e.removed = true);
                self.change_calls(change, &request, &names.join(","), &mut all)?;
            }
            match change {
                _ if probes.is_empty() => {}
                Change::Replace => {
                    let what = "a probe other than a call is added or taken away";
                    return Err(Error::usage(format!("-e {rest}"), what, format!("-e '+{rest}', or -e '-{rest}'")));
                }
                Change::Add => {
                    let more = self.new_probes(&Request { names: probes, ..request }, &all)?;
                    enabling::add(&mut all, more.into_iter().map(|e| What::Probe(Arc::new(e))));
                }
                Change::Remove => {
                    for name in probes {
                        let found = enabled(&all, &name, request.filter.as_deref())?;
                        for e in all.iter_mut().filter(|e| found.contains(&e.id)) {
                            if e.probe().is_some() {
                                self.only_in_kernel("the probe")?;
                            }
                            e.removed = true;
                        }
                    }
                }
            }
        }
        let fresh = self.of_agent(for_agent, &mut all)?;
        if !all.iter().any(Enabling::is_live) {
            return Err(Error::usage("set", "nothing would be enabled", "name calls, or use stop"));
        }
        let moves = !pids.is_empty() && self.may_inject();
        let mut released = Vec::new();
        for (gone, pid) in pids {
            self.change_process(pid, gone)?;
            released.extend(gone.then_some(pid));
        }
        match fresh {
            Some(functions) => self.inject((functions, true), &released, all, calls_change),
            None if moves && let Some(functions) = self.plan.functions.clone() => {
                self.inject((functions, false), &released, all, calls_change)
            }
            None if texts.is_empty() => Ok(Vec::new()),
            None => self.enable(all, calls_change, Vec::new()).map(|()| Vec::new()),
        }
    }

    /// Has these enabled from now on.
    pub(super) fn enable(
        &mut self,
        all: Vec<Enabling>,
        calls_change: bool,
        prepared: Vec<Box<dyn Any + Send>>,
    ) -> Result<()> {
        let before = std::mem::replace(&mut self.plan.enablings, all.clone());
        self.plan.refiltered |= calls_change && all.iter().any(|e| e.calls().is_some() && e.filter().is_some());
        let seen = self.plan.seen_calls();
        // The programs have filters that are not those of the calls any more.
        let evaluated = if self.plan.refiltered { seen.known() } else { Calls::none() };
        let calls = calls_change.then_some((seen, evaluated));
        let enabled = Enabled { all, first: before.len(), calls, prepared };
        let done = self.pump.source.control(Order::Enable(enabled));
        if done.is_err() {
            // Numbers are not used again.
            let mut fresh = self.plan.enablings.split_off(before.len());
            fresh.iter_mut().for_each(|e| e.removed = true);
            self.plan.enablings = before;
            self.plan.enablings.append(&mut fresh);
        } else if calls_change {
            self.pump.selection.calls = self.plan.calls();
        }
        done.map(drop)
    }

    /// Refuses what only the kernel backend changes while a session runs.
    fn only_in_kernel(&self, what: &str) -> Result<()> {
        match self.plan.backend {
            Backend::Kernel => Ok(()),
            other => Err(unable(what, other.name())),
        }
    }

    fn change_calls(&self, change: Change, request: &Request, names: &str, all: &mut Vec<Enabling>) -> Result<()> {
        let what = |sign: &str| format!("-e {sign}{names}");
        if self.plan.backend == Backend::Perf {
            return Err(unable("the calls", self.plan.backend.name()));
        }
        if request.captures != Default::default() || !request.strings.is_empty() {
            let why = "what calls capture is part of their programs, which are loaded at the start";
            return Err(Error::usage(what(""), why, "record another session beside this one"));
        }
        let named = Calls::parse(names)?;
        if change != Change::Remove {
            let fresh = self.new_calls(request, names, all)?;
            enabling::add(all, fresh.map(What::Calls));
            return Ok(());
        }
        let mut some = false;
        for enabling in all.iter_mut().filter(|e| !e.removed) {
            let What::Calls(e) = &mut enabling.what else { continue };
            let mut gone = e.calls.clone();
            gone.retain(&named);
            if gone.is_empty() || request.filter.is_some() && e.filter != request.filter {
                continue;
            }
            some = true;
            e.calls.remove(&gone);
            enabling.removed = e.calls.is_empty();
        }
        if some {
            return Ok(());
        }
        Err(Error::failed(what("-"), "no such call is enabled", "see 'trapline session status'"))
    }

    /// What a request enables of calls that is not enabled.
    fn new_calls(&self, request: &Request, names: &str, all: &[Enabling]) -> Result<Option<CallEnabling>> {
        let of_calls = Request { names: vec![names.to_string()], filter: request.filter.clone(), ..Request::default() };
        let fresh = call_enabling::call_enablings(std::slice::from_ref(&of_calls))?;
        let Some(mut fresh) = fresh.into_iter().next() else { return Ok(None) };
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
        let known = all.iter().filter(|e| !e.removed).filter_map(Enabling::calls);
        known.filter(|e| e.filter == fresh.filter).for_each(|e| fresh.calls.remove(&e.calls));
        Ok(Some(fresh).filter(|e| !e.calls.is_empty()))
    }

    /// What a request enables, with the filter of `--where`.
    fn new_probes(&self, request: &Request, all: &[Enabling]) -> Result<Vec<ProbeEnabling>> {
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
            if enabled_probes(all).any(|e| e.label() == probe.label()) {
                let todo = "take it away first, or give it another filter";
                return Err(Error::failed(format!("-e +{}", probe.name), "it is enabled already", todo));
            }
            self.only_in_kernel(&probe.name)?;
        }
        if all.iter().filter_map(Enabling::probe).count() + probes.len() > probe_enabling::MAX {
            let why =
                format!("a session has at most {} probes, those that were taken away included", probe_enabling::MAX);
            return Err(Error::failed(request.names.join(","), why, "record another session beside this one"));
        }
        Ok(probes)
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

/// Adds enablings of functions, and takes them away.
fn change_functions(change: Change, request: &Request, all: &mut Vec<Enabling>) -> Result<()> {
    for e in functions::function_enablings(std::slice::from_ref(request))? {
        let label = parse::label(&e.probe(), e.filter.as_deref());
        let refused = |sign, why, todo| Err(Error::failed(format!("-e {sign}{label}"), why, todo));
        let is_same = |known: &&mut Enabling| known.functions().is_some() && known.label() == label;
        let same = all.iter_mut().filter(|known| !known.removed).find(is_same);
        match (change, same) {
            (Change::Remove, None) if e.filter.is_some() => {
                return refused('-', "no such probe is enabled", "see 'trapline session status'");
            }
            (Change::Remove, Some(same)) if e.filter.is_some() => same.removed = true,
            (Change::Remove, _) => {
                for known in all.iter_mut().filter(|known| !known.removed) {
                    let What::Functions(of) = &mut known.what else { continue };
                    if glob(e.pattern.as_bytes(), of.pattern.as_bytes()) {
                        known.removed = true;
                    } else {
                        of.without.push(e.pattern.clone());
                    }
                }
            }
            (_, Some(_)) => {
                return refused('+', "it is enabled already", "take it away first, or give it another filter");
            }
            (_, None) => enabling::add(all, [What::Functions(e)]),
        }
    }
    Ok(())
}

/// The enabled probes of all backends, without calls and functions.
fn enabled_probes(all: &[Enabling]) -> impl Iterator<Item = &Enabling> {
    all.iter().filter(|e| e.is_live() && matches!(e.what, What::Probe(_) | What::InProcess(_) | What::Heap(_)))
}

/// The numbers of the enabled probes that a name matches, and a filter where one is given.
fn enabled(all: &[Enabling], name: &str, filter: Option<&str>) -> Result<Vec<u32>> {
    let label = filter.map(|filter| format!("{name} /{filter}/"));
    let is_it = |e: &&Enabling| match &label {
        Some(label) => e.label() == *label,
        None => glob(name.as_bytes(), e.name().as_bytes()),
    };
    let found: Vec<u32> = enabled_probes(all).filter(is_it).map(|e| e.id).collect();
    if found.is_empty() {
        let names: Vec<_> = enabled_probes(all).map(Enabling::name).collect();
        let near = nearest(name, names.iter().map(|n| &**n));
        let todo = match near.is_empty() {
            true => "see 'trapline session status'".to_string(),
            false => format!("did you mean {}?", near.join(", ")),
        };
        return Err(Error::failed(format!("-e -{name}"), "no such probe is enabled", todo));
    }
    Ok(found)
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
