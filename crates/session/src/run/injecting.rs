//! What only the agent records joins a session whose processes run without it: functions, allocations, and probes in files where the kernel
//! backend does not reach them.
//!
//! ```text
//!  files are read ─► the session stops ─► a ptracer lets go ─► the agent is injected ─► the ptracer attaches again ─► the session goes on
//! ```
//!
//! Calls that injecting makes in the processes are none of theirs, and fall into the pause, which the trace shows (`process:paused`,
//! `process:resumed`).

use super::Run;
use crate::of_agent::OfAgent;
use crate::{complain, in_process};
use collector::{Agent, Injection, attach};
use engine::control::Order;
use engine::plan::Backend;
use engine::request::enabling::Enabling;
use engine::request::functions::{Functions, Probes, matches};
use engine::request::heap_enabling::{HeapEnabling, Wanted};
use engine::request::parse::Request;
use engine::{Error, Result};
use std::collections::BTreeSet;
use std::sync::Arc;
use sys::{caps, proc};

impl Run {
    /// Whether the agent can be injected: it is in no process yet, or can be taken out of them, as of all in a session that has a name.
    pub(super) fn may_inject(&self) -> bool {
        self.plan.may_get_agent()
    }

    /// Takes the names out of a request that the agent is to be injected for: those that it does not record yet.
    pub(super) fn leave_to_agent(&self, request: &mut Request) -> Request {
        let is_patched = |pattern: &str| {
            let known = self.plan.functions.iter().flat_map(|functions| &functions.enabled);
            // A pattern of any character says nothing of another pattern.
            known.into_iter().any(|of| of == pattern || !of.contains(['?', '[']) && matches(of, pattern))
        };
        let is_left = |name: &String| match name.strip_prefix(Functions::PROVIDER) {
            Some(pattern) => !is_patched(pattern),
            None => OfAgent::has(name) || self.plan.backend != Backend::Kernel && in_process::is_in_file(name),
        };
        let (names, rest) = std::mem::take(&mut request.names).into_iter().partition(is_left);
        request.names = rest;
        Request { names, ..request.clone() }
    }

    /// How the agent records what is enabled of it with these requests, which are added to `all`; none: nothing.
    pub(super) fn of_agent(&self, mut requests: Vec<Request>, all: &mut Vec<Enabling>) -> Result<Option<Functions>> {
        let Some(named) = self.named.as_ref().filter(|_| !requests.is_empty()) else { return Ok(None) };
        let (more, strings, libraries) = (named.captures, named.strings, named.libraries);
        let probes = match self.plan.backend {
            Backend::Kernel => Vec::new(),
            _ => in_process::enable(&mut requests, more, &self.plan.target)?,
        };
        let expression = self.pump.selection.expression.as_ref();
        let Some(mut of_agent) = OfAgent::taken(&mut requests, probes, more, expression.is_some())? else {
            return Ok(None);
        };
        of_agent.prepare(expression, strings)?;
        of_agent.functions.libraries = libraries;
        let first = all.len();
        let fresh = of_agent.join(all);
        let (known, new) = all.split_at(first);
        let is_known = |e: &&Enabling| known.iter().any(|k| !k.removed && k.label() == e.label());
        if let Some(e) = new.iter().find(is_known) {
            let todo = "take it away first, or give it another filter";
            return Err(Error::failed(format!("-e +{}", e.label()), "it is enabled already", todo));
        }
        Ok(Some(self.with_all(fresh, all, expression.is_some())))
    }

    /// How the agent records all that is enabled of it.
    fn with_all(&self, fresh: Functions, all: &[Enabling], whole: bool) -> Functions {
        let live = || all.iter().filter(|e| !e.removed);
        let enabled: Vec<String> = live().filter_map(|e| Some(e.functions()?.pattern.clone())).collect();
        let heap: Vec<HeapEnabling> = live().filter_map(|e| e.heap().cloned()).collect();
        let probes = live().filter_map(|e| Some((e.id, Arc::clone(e.in_process()?)))).collect();
        let buffer = if self.plan.buffer_is_asked { self.plan.buffer } else { Backend::Agent.buffer() };
        let before = self.plan.functions.clone();
        let wanted = (!heap.is_empty()).then(|| Wanted::events(&heap, whole));
        let stacks = fresh.heap.as_ref().is_some_and(|h| h.stacks);
        let heap = match wanted {
            None => fresh.heap.clone(),
            Some(wanted) => Some(Wanted { stacks: wanted.stacks || stacks, ..wanted }),
        };
        let none = enabled.is_empty();
        let buffer = Some(before.as_ref().and_then(|f| f.buffer).unwrap_or(buffer));
        let callers = self.plan.callers.is_some();
        Functions { enabled, none, heap, probes: Probes(probes), buffer, callers, ..before.unwrap_or(fresh) }
    }

    /// Has the agent injected, but for processes that were just `released`, and all of this enabled from now on. `named`: functions are named
    /// that must be there. Returns where it could not be injected.
    pub(super) fn inject(
        &mut self,
        (functions, named): (Functions, bool),
        released: &[i32],
        all: Vec<Enabling>,
        calls_change: bool,
    ) -> Result<Vec<String>> {
        let state = self.pump.source.control(Order::Status)?;
        let pids: Vec<i32> = processes(&state.running).filter(|pid| !released.contains(pid)).collect();
        let last = state.agents.map_or(0, |agents| agents.numbers);
        let mut injection = Injection::new(&functions, &pids, last)?;
        injection.read();
        if let Some(line) = injection.unmatched().into_iter().next().filter(|_| named) {
            let (what, why) = line.split_once(": ").unwrap_or(("-e", &line));
            return Err(Error::failed(format!("-e +{what}"), why, "see 'trapline list function'"));
        }
        let is_running = self.named.as_ref().is_some_and(|named| !named.is_stopped());
        if is_running {
            self.pump.source.control(Order::Stop)?;
        }
        let injected = self.inject_now(injection, functions, &pids, &all);
        let done = injected.and_then(|(agent, said)| {
            let enabled = self.enable(all, calls_change, vec![Box::new(agent)]);
            if enabled.is_err() {
                self.plan.functions = None;
            }
            enabled.map(|()| said)
        });
        if is_running {
            self.pump.source.control(Order::Start)?;
        }
        done
    }

    /// Injects it, in the place of one that is there.
    fn inject_now(
        &mut self,
        mut injection: Injection,
        functions: Functions,
        pids: &[i32],
        all: &[Enabling],
    ) -> Result<(Agent, Vec<String>)> {
        let known = descendants(pids);
        let lent = pids.iter().try_for_each(|pid| match self.pump.source.control(Order::Lend(*pid)) {
            Err(e) if !sys::process::has_ended(*pid) => Err(e),
            _ => Ok(()),
        });
        let free = if lent.is_ok() && self.plan.functions.is_some() {
            self.pump.source.control(Order::TakeOut).map(drop)
        } else {
            lent
        };
        // What there was is out of the processes, unless a ptracer has them still.
        let had = self.plan.functions.take_if(|_| free.is_ok());
        let before = std::mem::replace(&mut self.plan.enablings, all.to_vec());
        let agent = free.and_then(|()| {
            caps::with(caps::TO_ATTACH, || {
                injection.look();
                injection.inject(&self.plan)
            })
        });
        self.plan.enablings = before;
        let mut said = self.take_back(pids, &known);
        if had.is_some() && agent.is_err() {
            complain("what the agent has recorded before is not recorded from now on");
        }
        let (agent, refused) = agent?;
        said.extend(refused.iter().map(Error::to_string));
        said.iter().for_each(|line| complain(line));
        self.plan.functions = Some(functions);
        Ok((agent, said))
    }

    /// Has a ptracer attach again, to what the processes have started meanwhile too: not to those that were `known` before. Returns what it
    /// has not got.
    fn take_back(&mut self, pids: &[i32], known: &[i32]) -> Vec<String> {
        let mut all = pids.to_vec();
        if self.plan.backend == Backend::Ptrace {
            let is_new = |pid: &i32| !known.contains(pid) && !pids.contains(pid);
            all.extend(descendants(pids).into_iter().filter(is_new));
        }
        let mut said = Vec::new();
        for pid in all {
            match self.pump.source.control(Order::TakeBack(pid)) {
                Err(_) if sys::process::has_ended(pid) => {}
                Err(e) => said.push(e.to_string()),
                Ok(_) if attach::has_agent(pid) || pids.contains(&pid) => {}
                Ok(_) => said.push(format!("-p {pid}: it has begun while the agent was injected, and has none")),
            }
        }
        said
    }
}

/// The processes of these threads, without trapline.
fn processes(running: &[i32]) -> impl Iterator<Item = i32> {
    let there = running.iter().filter(|tid| !sys::process::has_ended(**tid));
    let all: BTreeSet<i32> = there.filter_map(|tid| proc::process_of(*tid)).collect();
    all.into_iter().filter(|pid| *pid != sys::process::own_pid())
}

/// What these processes have started, and what that has.
fn descendants(pids: &[i32]) -> Vec<i32> {
    pids.iter().flat_map(|pid| proc::descendants(*pid)).collect()
}
