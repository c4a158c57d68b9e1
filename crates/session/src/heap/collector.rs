//! The collector of `trapline heap start`: a trapline in the background that has the model, and shows it when it is asked.
//!
//! ```text
//!  heap start ── spawns ──► collector: attaches, then listens at heap-PID.sock ◄── heap print, reset, stop, start, clear
//!      ▲ the end of its stderr: attached, or why not │
//! ```
//!
//! It is a session (`crate::named`) that `trapline session list` shows. When the process has ended, it stays for ten minutes, so that what
//! was outstanding can still be shown.

use super::sink::{self, locked};
use super::{Feed, Style};
use crate::named::{Request, Server};
use crate::show::Sinks;
use crate::view::{self, Make};
use engine::pipeline::pump::{Flow, Sink};
use engine::pipeline::world::World;
use engine::{Error, Result};
use events::Event;
use serde_json::{Value, json};
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use sys::{signal, time};
use views::heap::Of;

/// What the parent reads when all is well.
pub const ATTACHED: &str = "attached\n";
/// How long it stays when the process has ended.
const STAY: Duration = Duration::from_secs(600);
/// How long an answer may take to be written while nothing else is done.
const WRITING: Duration = Duration::from_secs(2);
/// INT, QUIT, TERM, HUP.
const SIGNALS: [i32; 4] = [2, 3, 15, 1];

/// The name of the session of a process.
pub fn name_of(pid: i32) -> String {
    format!("heap-{pid}")
}

/// Begins a session without a terminal.
pub fn begin(pid: i32) -> Result<Server> {
    sys::process::new_session().map_err(|e| Error::failed("heap start", e.to_string(), "see setsid(2)"))?;
    // No mount is held; what is read has absolute paths.
    let _ = std::env::set_current_dir("/");
    // It holds no file, pipe or terminal of the process that has started it, but for the pipe to that process.
    let _ = sys::process::hold_no_files(std::os::fd::AsFd::as_fd(&std::io::stderr()));
    Server::open(&name_of(pid)).map_err(|e| match e {
        Error::Failed { why, .. } if why.starts_with("a session of that name") => already(pid),
        other => other,
    })
}

/// What to say where it runs already.
pub fn already(pid: i32) -> Error {
    let todo = format!("see 'trapline heap print -p {pid}', or end it: trapline heap clear -p {pid}");
    Error::failed(format!("heap start -p {pid}"), "it is started already", todo)
}

/// Serves requests.
pub struct Collector {
    feed: Arc<Mutex<Feed>>,
    server: Server,
    pid: i32,
    style: Style,
    sample: u64,
    began: u64,
    attached: bool,
    stopped: bool,
    over: bool,
    /// Requests that wait until everything before them is in the model: connection, time, request.
    waiting: Vec<(u64, u64, Request)>,
    /// Connections that wait for the end.
    farewells: Vec<u64>,
}

impl Collector {
    /// Of this process.
    pub fn new(feed: Arc<Mutex<Feed>>, server: Server, pid: i32, style: Style, sample: u64) -> Collector {
        Collector {
            feed,
            server,
            pid,
            style,
            sample,
            began: time::monotonic(),
            attached: false,
            stopped: false,
            over: false,
            waiting: Vec::new(),
            farewells: Vec::new(),
        }
    }

    /// It alone.
    pub fn sinks(self) -> Sinks {
        Sinks { all: vec![Box::new(self)], places: Vec::new(), told: None, lines: true }
    }

    /// Takes requests, and answers those that can be answered. `ended`: nothing more will come.
    fn serve(&mut self, ended: bool, world: &World) {
        let since = Instant::now();
        loop {
            let now = time::monotonic();
            let asked = self.server.poll();
            self.waiting.extend(asked.into_iter().map(|(id, request)| (id, now, request)));
            let settled = if ended { u64::MAX } else { locked(&self.feed).settled() };
            for (id, at, request) in std::mem::take(&mut self.waiting) {
                let waits = matches!(request, Request::Print(_) | Request::Reset) && at > settled;
                if waits {
                    self.waiting.push((id, at, request));
                } else if let Some(answer) = self.answer(id, at, &request, world) {
                    self.server.answer(id, &answer);
                }
            }
            if !self.server.is_writing() || since.elapsed() > WRITING {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The answer to a request; none: it comes at the end.
    fn answer(&mut self, id: u64, at: u64, request: &Request, world: &World) -> Option<Result<Value>> {
        let what = |verb: &str| format!("heap {verb} -p {}", self.pid);
        let mut feed = locked(&self.feed);
        Some(match request {
            Request::Status => Ok(self.status()),
            Request::Print(how) => {
                drop(feed);
                return Some(self.print(how, at, world));
            }
            Request::Reset => {
                feed.reset(at);
                Ok(json!({}))
            }
            Request::Start | Request::Stop if self.over => {
                Err(Error::failed(what("stop"), "the process has ended", "print shows what was outstanding"))
            }
            Request::Start if !self.stopped => Err(already(self.pid)),
            Request::Stop if self.stopped => {
                Err(Error::failed(what("stop"), "it is stopped already", "start goes on, clear ends it"))
            }
            Request::Start => {
                feed.start(at);
                self.stopped = false;
                Ok(json!({}))
            }
            Request::Stop => {
                feed.stop(at);
                self.stopped = true;
                Ok(json!({}))
            }
            Request::End => {
                self.farewells.push(id);
                return None;
            }
            Request::Set { .. } | Request::Snapshot => {
                let todo = format!("see 'trapline heap print -p {}'", self.pid);
                Err(Error::failed("session", "it records a heap in the background, which has no such thing", todo))
            }
        })
    }

    fn status(&self) -> Value {
        let state = match (self.over, self.stopped) {
            (true, _) => "ended",
            (_, true) => "stopped",
            _ => "running",
        };
        json!({
            "name": self.server.name(),
            "kind": "heap",
            "state": state,
            "user": sys::users::name(sys::process::ruid()),
            "pid": sys::process::own_pid(),
            "target": format!("-p {}", self.pid),
            "backend": "agent",
            "elapsed_ns": time::monotonic().saturating_sub(self.began),
            "calls": "none",
            "sample": self.sample,
        })
    }

    /// Views, each as text in which a character is a byte.
    fn print(&self, how: &Value, at: u64, world: &World) -> Result<Value> {
        let strange = || Error::usage("heap print", "not understood", "is it a trapline of another version?");
        let number = |key: &str| how[key].as_u64();
        let mut options = self.style.options.clone();
        options.of = how["of"].as_str().and_then(Of::parse).unwrap_or_default();
        options.top = number("top").unwrap_or(options.top as u64) as usize;
        let names = how["views"].as_array().ok_or_else(strange)?;
        let find = |name: &str| match view::find(name, &[view::Of::Heap]).ok()?.make {
            Make::Heap(write) => Some(write),
            _ => None,
        };
        let views: Option<Vec<_>> = names.iter().map(|v| v.as_str().and_then(find)).collect();
        sink::prepare(&self.feed, world);
        let (rows, allocations) = {
            let mut feed = locked(&self.feed);
            if !self.over {
                feed.model.advance(at);
            }
            let sum = feed.model.summary().numbers;
            let rows = sink::rows(&feed, world, number("min_age").unwrap_or(0));
            (rows, sum.total.blocks + sum.mapped_total.blocks)
        };
        let text = |write: fn(&_, &_, i64, &mut Vec<u8>)| {
            let mut out = Vec::new();
            write(&rows, &options, self.style.realtime_offset, &mut out);
            out.into_iter().map(char::from).collect::<String>()
        };
        let views: Vec<String> = views.ok_or_else(strange)?.into_iter().map(text).collect();
        Ok(json!({"views": views, "state": self.status()["state"], "allocations": allocations}))
    }

    /// Serves requests after the end of the process.
    fn stay(&mut self, world: &World) {
        self.over = true;
        let since = Instant::now();
        let signals = || SIGNALS.map(signal::counted);
        let before = signals();
        while since.elapsed() < STAY && self.farewells.is_empty() && signals() == before {
            self.serve(true, world);
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Sink for Collector {
    fn event(&mut self, _: &Event<'_>, _: &World) -> Result<Flow> {
        Ok(Flow::Continue)
    }

    fn catch_up(&mut self, now: u64, world: &World) -> Result<Flow> {
        if !std::mem::replace(&mut self.attached, true) {
            let _ = std::io::stderr().write_all(ATTACHED.as_bytes());
            let _ = sys::process::leave_terminal();
        }
        if now == u64::MAX {
            self.serve(true, world);
            if self.farewells.is_empty() && sys::process::has_ended(self.pid) {
                self.stay(world);
            }
            return Ok(Flow::Stop);
        }
        self.serve(false, world);
        Ok(if self.farewells.is_empty() { Flow::Continue } else { Flow::Stop })
    }

    fn end(&mut self) -> Result<()> {
        self.server.close();
        for id in std::mem::take(&mut self.farewells) {
            self.server.answer(id, &Ok(json!({"events": 0, "dropped": 0})));
        }
        Ok(())
    }

    fn has_written(&self) -> bool {
        false
    }
}
