//! What runs until it is ended, in one list and with one vocabulary, wherever its state is:
//!
//! | kind | state | name | what it is |
//! |---|---|---|---|
//! | recording, heap | a trapline that runs, behind a socket ([`crate::named`]) | as it was named; `heap-PID`, `graph-PID` | `record --name`, `heap start`, `tracer enable graph -o` |
//! | tracer | the traced process | `TRACER-PID` | `tracer enable` |
//! | slab | the kernel | `slab-CACHE` | `slab start` |

use crate::named::{self, Reply};
use collector::attach::tracers;
use engine::slab::{self, Command, Session, Settings};
use engine::{Error, Result};
use serde_json::{Value, json};

/// What the name of a slab trace begins with.
const SLAB: &str = "slab-";

/// Something that runs.
pub trait Running {
    /// Its state, with the members that `session list` shows: name, kind, user, pid, state, backend, target.
    ///
    /// # Errors
    /// It has ended, or cannot be asked.
    fn state(&self) -> Result<Value>;

    /// Has it do what `trapline session` calls so; `more` are further members of the request.
    ///
    /// # Errors
    /// It cannot, or has ended.
    fn request(&self, what: &str, more: Value) -> Result<Reply>;
}

/// Whatever has this name. A recording goes before a tracer and a slab trace.
///
/// # Errors
/// Two users have one of that name, or the directories of sockets cannot be trusted.
pub fn find(name: &str) -> Result<Box<dyn Running>> {
    let recording = || Box::new(Recording(name.to_string())) as Box<dyn Running>;
    if named::is_there(name)? {
        return Ok(recording());
    }
    if let Some((tracer, pid)) = name.rsplit_once('-').and_then(|(tracer, pid)| Some((tracer, pid.parse().ok()?)))
        && tracers::enabled(pid).iter().any(|t| t == tracer)
    {
        return Ok(Box::new(Tracer { pid, name: tracer.into() }));
    }
    match name.strip_prefix(SLAB) {
        Some(cache) if slab::sessions()?.iter().any(|s| s.name == cache) => Ok(Box::new(Slab(cache.into()))),
        _ => Ok(recording()),
    }
}

/// The states of everything that runs and that the user may see. What has refused is reported.
///
/// # Errors
/// The directories of sockets cannot be trusted.
pub fn all() -> Result<Vec<Value>> {
    let mut found = named::states()?;
    let is_there = |name: &str, found: &[Value]| found.iter().any(|s| s["name"] == name);
    for (pid, name) in tracers::enabled_everywhere() {
        if !is_there(&format!("{name}-{pid}"), &found) {
            found.push(tracer_state(pid, &name, true));
        }
    }
    let slabs = if engine::rights::is_root() { slab::sessions()? } else { Vec::new() };
    found.extend(slabs.iter().map(|s| slab_state(&s.name, s.running)));
    Ok(found)
}

/// A trapline that records.
struct Recording(String);

impl Running for Recording {
    fn state(&self) -> Result<Value> {
        match self.request("status", json!({}))? {
            Reply::Yes(state) => Ok(state),
            Reply::No(line, _) => {
                Err(Error::failed(format!("session {}", self.0), line, "see 'trapline session list'"))
            }
        }
    }

    fn request(&self, what: &str, more: Value) -> Result<Reply> {
        named::request(&self.0, what, more)
    }
}

/// A tracer in a process.
struct Tracer {
    pid: i32,
    name: String,
}

fn tracer_state(pid: i32, name: &str, enabled: bool) -> Value {
    let user = sys::proc::ids(pid).map(|(uid, _)| sys::users::name(uid));
    json!({
        "name": format!("{name}-{pid}"),
        "kind": "tracer",
        "user": user,
        "pid": pid,
        "state": if enabled { "running" } else { "ended" },
        "backend": "agent",
        "target": format!("-p {pid}"),
    })
}

impl Running for Tracer {
    fn state(&self) -> Result<Value> {
        Ok(tracer_state(self.pid, &self.name, tracers::enabled(self.pid).contains(&self.name)))
    }

    fn request(&self, what: &str, _: Value) -> Result<Reply> {
        match what {
            "status" => Ok(Reply::Yes(self.state()?)),
            "end" => crate::tracer::disable(self.pid, &self.name).map(|()| Reply::Yes(json!({}))),
            _ => {
                Err(no_such(what, &format!("{}-{}", self.name, self.pid), "a tracer, which has status, print and end"))
            }
        }
    }
}

/// A slab trace.
struct Slab(String);

fn slab_state(name: &str, running: Option<bool>) -> Value {
    let state = match running {
        Some(true) => "running",
        Some(false) => "stopped",
        None => "incomplete",
    };
    json!({
        "name": format!("{SLAB}{name}"),
        "kind": "slab",
        "user": "root",
        "pid": null,
        "state": state,
        "backend": "kernel",
        "target": name,
    })
}

impl Running for Slab {
    fn state(&self) -> Result<Value> {
        let running = slab::sessions()?.into_iter().find(|s| s.name == self.0).and_then(|s| s.running);
        Ok(slab_state(&self.0, running))
    }

    fn request(&self, what: &str, _: Value) -> Result<Reply> {
        match what {
            "status" => return Ok(Reply::Yes(self.state()?)),
            "start" => {
                let started = slab::start(&Settings { name: self.0.clone(), room: None })?;
                started.notes.iter().for_each(|note| crate::complain(note));
            }
            "stop" => Session::find(&self.0)?.act(Command::Stop)?,
            "reset" => Session::find(&self.0)?.act(Command::Reset)?,
            "end" => slab::clear(&self.0)?,
            _ => {
                let has = "a slab trace, which has status, print, stop, start, reset and end";
                return Err(no_such(what, &format!("{SLAB}{}", self.0), has));
            }
        }
        Ok(Reply::Yes(json!({})))
    }
}

fn no_such(what: &str, name: &str, has: &str) -> Error {
    Error::failed(format!("session {what} {name}"), format!("it is {has}"), "see 'trapline session list'")
}
