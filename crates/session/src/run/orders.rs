//! Requests to a named session, carried out.

use super::{Run, Wish};
use crate::ask::Ask;
use crate::named::{Request, Server};
use crate::stats::Stats;
use engine::capture::captures::Captures;
use engine::control::{Order, State, ended};
use engine::plan::Plan;
use engine::target::Target;
use engine::{Error, Result};
use serde_json::{Value, json};
use sys::time;

/// The state of a named session.
pub struct Named {
    server: Server,
    stopped: bool,
    began: u64,
    /// The command, or `-a`; empty for processes.
    target: String,
    /// Processes that were attached to.
    pids: Vec<i32>,
    /// What all its probes capture.
    pub captures: Captures,
    /// Strings are captured.
    pub strings: bool,
    /// Functions of libraries can be added too.
    pub libraries: bool,
    /// Return probes are set that may break the program.
    pub force: bool,
    /// Where the trace goes.
    dir: Option<String>,
    flight: bool,
    /// Connections that wait for a snapshot, and for the end.
    snapshots: Vec<u64>,
    farewells: Vec<u64>,
    /// A request has ended the session.
    pub is_ended: bool,
}

impl Named {
    /// Opens the socket for the name on the command line, if there is one, and sets it in the plan.
    pub fn open(ask: &Ask, plan: &mut Plan) -> Result<Option<Named>> {
        let Some(name) = ask.keep.name.as_ref() else { return Ok(None) };
        (plan.named, plan.paused) = (true, ask.keep.paused);
        if !plan.paused && plan.enables_nothing() {
            return Err(Error::usage(
                format!("--name {name}"),
                "nothing is enabled",
                "name calls or probes with -e, or begin --paused",
            ));
        }
        let target = match &plan.target {
            Target::Command(_) => ask.target.words(),
            Target::Pids(_) => String::new(),
            Target::All { .. } => "-a".into(),
        };
        Ok(Some(Named {
            server: Server::open(name)?,
            stopped: plan.paused,
            began: time::monotonic(),
            target,
            pids: if let Target::Pids(pids) = &plan.target { pids.clone() } else { Vec::new() },
            captures: crate::captures::captures(&ask.capture)?,
            strings: crate::captures::has_strings(&ask.capture),
            libraries: ask.capture.lib,
            force: ask.tracing.force,
            dir: ask.keep.output.as_ref().map(|dir| dir.to_string_lossy().into_owned()),
            flight: ask.keep.flight.is_some(),
            snapshots: Vec::new(),
            farewells: Vec::new(),
            is_ended: false,
        }))
    }
}

impl Named {
    /// Whether it is stopped.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// A process was added to the targets, or taken away.
    pub fn retarget(&mut self, pid: i32, gone: bool) {
        self.pids.retain(|p| *p != pid);
        self.pids.extend((!gone).then_some(pid));
    }

    /// What is traced, as the command line would say it.
    fn target(&self) -> String {
        let pids = self.pids.iter().map(i32::to_string).collect::<Vec<_>>().join(",");
        let pids = if pids.is_empty() { pids } else { format!("-p {pids}") };
        [self.target.as_str(), &pids].into_iter().filter(|t| !t.is_empty()).collect::<Vec<_>>().join(" ")
    }
}

/// When a request is answered.
enum Answer {
    Now(Value),
    /// When the snapshot is written.
    Snapshot,
    /// When the session has ended.
    Farewell,
}

impl Run {
    /// Takes requests and answers them, once everything is attached; a session without a name has none.
    pub(super) fn serve(&mut self) {
        if !self.pump.source.has_begun() {
            return;
        }
        let Some(named) = &mut self.named else { return };
        for (id, request) in named.server.poll() {
            let answer = self.answer(request);
            let Some(named) = &mut self.named else { return };
            match answer {
                Ok(Answer::Now(v)) => named.server.answer(id, &Ok(v)),
                Ok(Answer::Snapshot) => named.snapshots.push(id),
                Ok(Answer::Farewell) => named.farewells.push(id),
                Err(e) => named.server.answer(id, &Err(e)),
            }
        }
    }

    fn answer(&mut self, request: Request) -> Result<Answer> {
        let Some(named) = &mut self.named else { return Err(ended()) };
        if named.is_ended {
            return Err(ended());
        }
        match request {
            Request::Status => return self.state().map(Answer::Now),
            Request::Set { texts, pids } => {
                let said = self.set(&texts, &pids)?;
                return Ok(Answer::Now(json!({"said": said})));
            }
            Request::Start if !named.stopped => {
                return Err(Error::failed("start", "already running", "stop pauses it"));
            }
            Request::Stop if named.stopped => {
                return Err(Error::failed("stop", "already stopped", "start resumes it"));
            }
            Request::Start if self.plan.enables_nothing() => {
                return Err(Error::failed(
                    "start",
                    "nothing is enabled",
                    "name calls: trapline session set NAME -e CALL",
                ));
            }
            Request::Start | Request::Stop => {
                let stop = request == Request::Stop;
                self.pump.source.control(if stop { Order::Stop } else { Order::Start })?;
                self.named.iter_mut().for_each(|n| n.stopped = stop);
            }
            Request::Print(_) | Request::Reset => {
                return Err(Error::failed("session", "it records no heap", "see 'trapline heap --help'"));
            }
            Request::Snapshot if !named.flight => {
                return Err(Error::failed("snapshot", "not a flight recorder", "record with --flight SIZE"));
            }
            Request::Snapshot => {
                self.obey(Wish::Snapshot);
                return Ok(Answer::Snapshot);
            }
            Request::End => {
                named.is_ended = true;
                self.obey(Wish::Leave);
                return Ok(Answer::Farewell);
            }
        }
        Ok(Answer::Now(json!({})))
    }

    /// The state of the session, as `status` shows it.
    fn state(&mut self) -> Result<Value> {
        let state = self.pump.source.control(Order::Status)?;
        let Some(named) = &self.named else { return Err(ended()) };
        let mut v = self.counted(&state, named.began);
        let calls = self.plan.calls();
        let some = if calls.is_all() {
            "all".into()
        } else if calls.len() > 8 {
            format!("{} of them", calls.len())
        } else {
            calls.names().join(",")
        };
        let agents = state.agents.map(|a| {
            json!({
                "processes": a.processes,
                "threads": a.threads,
                "modules": a.modules,
                "patched": a.patched,
                "refused": a.refused,
            })
        });
        let streams = state.streams.iter();
        let streams = streams.map(|s| json!({"name": s.name, "used": s.used, "size": s.size, "dropped": s.dropped}));
        for (key, value) in [
            ("name", json!(named.server.name())),
            ("kind", json!("recording")),
            ("state", json!(if named.stopped { "stopped" } else { "running" })),
            ("user", json!(sys::users::name(sys::process::ruid()))),
            ("pid", json!(sys::process::own_pid())),
            ("target", json!(named.target())),
            ("dir", json!(named.dir)),
            ("elapsed_ns", json!(time::monotonic().saturating_sub(named.began))),
            ("calls", json!(some)),
            ("bytes", json!(state.kept.as_ref().map(|k| k.bytes))),
            ("streams", streams.collect()),
            ("agents", json!(agents)),
        ] {
            v[key] = value;
        }
        Ok(v)
    }

    /// The counters, in the form of `--stats`.
    fn counted(&self, state: &State, began: u64) -> Value {
        let mut stats = match &state.kept {
            None => Stats::gather(&self.pump, &state.losses, &state.missed, began),
            Some(kept) => Stats::kept(kept, &state.losses, &state.missed, began),
        };
        stats.add_filtered(&state.filtered, None);
        stats.add_enablings(&self.plan, &state.enablings, state.kept.as_ref());
        serde_json::from_str(&stats.to_json(self.pump.source.name())).unwrap_or_default()
    }

    /// Answers the requests that wait for a snapshot.
    pub(super) fn tell_snapshot(&mut self, result: &Result<Value>) {
        let Some(named) = &mut self.named else { return };
        for id in std::mem::take(&mut named.snapshots) {
            named.server.answer(id, result);
        }
    }

    /// Ends the session: removes its socket, and answers the requests for the end.
    pub(super) fn farewell(&mut self, stats: &Stats) {
        let Some(named) = &mut self.named else { return };
        named.server.close();
        let last = Ok(json!({"events": stats.events, "dropped": stats.dropped}));
        for id in std::mem::take(&mut named.farewells) {
            named.server.answer(id, &last);
        }
    }
}
