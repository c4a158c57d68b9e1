//! `session set`: what a session records from now on.
//!
//! ```text
//! -e SET     these calls, and no others        -e +PROBE  this too, with a filter and captures     -e -PROBE  this no more
//! -p PID     this process too                  -p -PID    this no more
//! ```

use super::Run;
use engine::control::{Addition, Order};
use engine::enabling::{self, Enabling, Request};
use engine::near::nearest;
use engine::provider::glob;
use engine::select::Calls;
use engine::target::Target;
use engine::{Error, Result, returns};
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
        let mut calls: Option<Calls> = None;
        let (mut added, mut removed) = (Vec::new(), Vec::new());
        for text in texts.iter().filter(|t| !t.trim().is_empty()) {
            let (change, rest) = change(text);
            let request = Request::parse(rest)?;
            let (probes, names): (Vec<String>, Vec<String>) =
                request.names.iter().cloned().partition(|n| enabling::is_probe(n));
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
        if left == 0 && calls.as_ref().unwrap_or(&self.plan.calls).is_empty() {
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
        if let Some(calls) = calls {
            self.plan.calls = calls.clone();
            self.pump.selection.calls = calls;
            self.pump.source.control(Order::Select(self.plan.seen_calls()))?;
        }
        Ok(())
    }

    fn change_calls(&self, change: Change, request: &Request, names: &str, calls: &mut Option<Calls>) -> Result<()> {
        let named = Calls::parse(names)?;
        if request.filter.is_some() || request.captures != Default::default() {
            let what = "the filters and captures of calls are part of their programs, which are loaded at the start";
            return Err(Error::usage(format!("-e {names}"), what, "record another session beside this one"));
        }
        match change {
            // Several without a sign add up.
            Change::Replace => calls.get_or_insert_with(Calls::none).join(&named),
            Change::Add => calls.get_or_insert_with(|| self.plan.calls.clone()).join(&named),
            Change::Remove => calls.get_or_insert_with(|| self.plan.calls.clone()).remove(&named),
        }
        Ok(())
    }

    /// What a request enables, with the filter of `--where`.
    fn new_probes(&self, request: &Request) -> Result<Vec<Enabling>> {
        let Some(named) = &self.named else { return Ok(Vec::new()) };
        if let Some(own) = request.names.iter().find(|n| matches!(n.as_str(), "begin" | "end")) {
            let todo = "name it when the recording starts";
            return Err(Error::usage(format!("-e +{own}"), "the session has begun", todo));
        }
        let mut probes = enabling::enable(std::slice::from_ref(request), named.captures, &self.plan.target)?;
        if let Some(expression) = &self.pump.selection.expression {
            enabling::narrow(&mut probes, expression)?;
        }
        returns::guard(&mut probes, &self.plan.target, named.force)?;
        for probe in &probes {
            if self.enabled_probes().any(|(_, e)| e.label() == probe.label()) {
                let todo = "take it away first, or give it another filter";
                return Err(Error::failed(format!("-e +{}", probe.name), "it is enabled already", todo));
            }
        }
        if self.plan.probes.len() + probes.len() > enabling::MAX {
            let why = format!("a session has at most {} probes, those that were taken away included", enabling::MAX);
            return Err(Error::failed(request.names.join(","), why, "record another session beside this one"));
        }
        Ok(probes)
    }

    /// The probes that are enabled, each with its number among those that are attached.
    fn enabled_probes(&self) -> impl Iterator<Item = (usize, &Arc<Enabling>)> {
        let disabled = self.named.as_ref().map_or(&[][..], |n| &n.disabled[..]);
        let attached = self.plan.probes.iter().filter(|e| e.point.is_some());
        attached.enumerate().filter(|(nth, _)| !disabled.contains(nth))
    }

    /// The numbers of the enabled probes that a name matches, and a filter where one is given.
    fn enabled(&self, name: &str, filter: Option<&str>) -> Result<Vec<usize>> {
        let label = filter.map(|filter| format!("{name} /{filter}/"));
        let is_it = |e: &Enabling| match &label {
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

    fn enable(&mut self, probe: Enabling) -> Result<()> {
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
