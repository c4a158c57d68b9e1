//! The recording side: takes requests between two drains, never waits for anybody.

use super::place::{Place, is_stale};
use super::{MOST, VERSION};
use engine::{Error, Result};
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use sys::socket;

/// Connections at a time; more wait in the kernel.
const CONNECTIONS: usize = 16;
/// How long a request may take to arrive, and a reply to be taken.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long what takes its time may take: a snapshot, the end.
const WAIT: Duration = Duration::from_secs(120);

/// What somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// `start`
    Start,
    /// `stop`
    Stop,
    /// `status`, and `list` of each session.
    Status,
    /// `set`: what `-e` and `-p` say.
    Set {
        /// Of `-e`.
        texts: Vec<String>,
        /// Of `-p`.
        pids: Vec<String>,
    },
    /// `snapshot`
    Snapshot,
    /// `end`
    End,
    /// `trapline heap print`: which views, and how.
    Print(Value),
    /// `trapline heap reset`
    Reset,
}

impl Request {
    /// Parses a request line; the error says what is wrong with it.
    fn parse(line: &[u8]) -> std::result::Result<Request, &'static str> {
        let v: Value = serde_json::from_slice(line).map_err(|_| "not JSON")?;
        if v["v"].as_u64() != Some(VERSION) {
            return Err("another version of trapline");
        }
        Ok(match v["do"].as_str().ok_or("nothing to do")? {
            "start" => Request::Start,
            "stop" => Request::Stop,
            "status" => Request::Status,
            "snapshot" => Request::Snapshot,
            "end" | "destroy" => Request::End,
            "print" => Request::Print(v),
            "reset" => Request::Reset,
            "set" => {
                let list = |key: &str| -> Option<Vec<String>> {
                    let list = v.get(key).map_or(Some(&[][..]), |l| l.as_array().map(Vec::as_slice))?;
                    list.iter().map(|e| e.as_str().map(str::to_string)).collect()
                };
                let texts = list("expr").ok_or("no list of expressions")?;
                let pids = list("pids").ok_or("no list of processes")?;
                if texts.is_empty() && pids.is_empty() {
                    return Err("nothing to set");
                }
                Request::Set { texts, pids }
            }
            _ => return Err("an unknown request"),
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Reading,
    /// For the answer to a request that takes its time.
    Waiting,
    Writing,
}

struct Connection {
    id: u64,
    stream: UnixStream,
    stage: Stage,
    input: Vec<u8>,
    output: Vec<u8>,
    until: Instant,
}

/// The socket of a session. Dropping it removes it.
pub struct Server {
    name: String,
    place: Place,
    path: PathBuf,
    /// Device and inode of the socket: another session's is not removed.
    made: Option<(u64, u64)>,
    listener: UnixListener,
    connections: Vec<Connection>,
    next: u64,
}

impl Server {
    /// Takes the name. Must be called while trapline has one thread.
    ///
    /// Errors: a bad name, one that is taken, a directory that cannot be trusted.
    pub fn open(name: &str) -> Result<Server> {
        let what = format!("--name {name}");
        if !super::is_name(name) {
            return Err(Error::usage(what, "not a name", "letters, digits, '.', '_' and '-', at most 64"));
        }
        let place = Place::make()?;
        let lock = place.lock()?;
        for other in Place::all()? {
            let path = other.socket(name);
            match super::place::connect(&path, Duration::from_secs(1)) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) if is_stale(&e) => drop(std::fs::remove_file(&path)),
                // Too long: it cannot be listened at either, which is said then.
                Err(e) if e.kind() == io::ErrorKind::InvalidInput => {}
                _ => {
                    let todo = format!("choose another name, or end it: trapline session destroy {name}");
                    return Err(Error::failed(what, "a session of that name runs already", todo));
                }
            }
        }
        let path = place.socket(name);
        let listener = socket::listen(&path).map_err(|e| {
            Error::failed(what, format!("{}: {e}", path.display()), "choose a shorter name, or another XDG_RUNTIME_DIR")
        })?;
        let made = std::fs::symlink_metadata(&path).ok().map(|m| (m.dev(), m.ino()));
        drop(lock);
        Ok(Server { name: name.into(), place, path, made, listener, connections: Vec::new(), next: 0 })
    }

    /// The session's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Requests that have come, each with the number that its answer is for. Never waits.
    pub fn poll(&mut self) -> Vec<(u64, Request)> {
        self.accept();
        let mut requests = Vec::new();
        for c in &mut self.connections {
            match c.stage {
                Stage::Reading => match c.read() {
                    Some(Ok(request)) => {
                        c.stage = Stage::Waiting;
                        c.until = Instant::now() + WAIT;
                        requests.push((c.id, request));
                    }
                    Some(Err(why)) => c.reply(&refusal(&Error::usage("request", why, "see docs/SESSIONS.md"))),
                    None => {}
                },
                Stage::Writing => c.write(),
                Stage::Waiting => {}
            }
        }
        let now = Instant::now();
        self.connections.retain(|c| now < c.until);
        requests
    }

    /// Whether an answer is not taken yet.
    pub fn is_writing(&self) -> bool {
        let now = Instant::now();
        self.connections.iter().any(|c| c.stage == Stage::Writing && now < c.until)
    }

    fn accept(&mut self) {
        while self.connections.len() < CONNECTIONS {
            let Ok((stream, _)) = self.listener.accept() else { return };
            let uid = sys::process::euid();
            let trusted = socket::peer(&stream).is_ok_and(|p| p.uid == uid || p.uid == 0);
            if !trusted || stream.set_nonblocking(true).is_err() {
                continue;
            }
            self.next += 1;
            self.connections.push(Connection {
                id: self.next,
                stream,
                stage: Stage::Reading,
                input: Vec::new(),
                output: Vec::new(),
                until: Instant::now() + PATIENCE,
            });
        }
    }

    /// Answers a request. Whoever asked may have gone.
    pub fn answer(&mut self, id: u64, answer: &Result<Value>) {
        let line = match answer {
            Ok(v) => json!({"ok": true, "session": self.name, "answer": v}),
            Err(e) => refusal(e),
        };
        if let Some(c) = self.connections.iter_mut().find(|c| c.id == id) {
            c.reply(&line);
        }
    }

    /// Removes the socket; what was answered last is still written, as far as it is taken at once.
    pub fn close(&mut self) {
        let Some(made) = self.made.take() else { return };
        let _lock = self.place.lock();
        let here = std::fs::symlink_metadata(&self.path).ok().map(|m| (m.dev(), m.ino()));
        if here == Some(made) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.close();
    }
}

fn refusal(e: &Error) -> Value {
    json!({"ok": false, "error": e.to_string(), "status": e.exit_status()})
}

impl Connection {
    /// The request, once its line is there; none: not yet, or never.
    fn read(&mut self) -> Option<std::result::Result<Request, &'static str>> {
        let mut buf = [0; 4096];
        loop {
            match self.stream.read(&mut buf) {
                Ok(0) => {
                    self.until = Instant::now();
                    return None;
                }
                Ok(n) => {
                    let fresh = self.input.len();
                    self.input.extend_from_slice(&buf[..n]);
                    if let Some(end) = self.input[fresh..].iter().position(|b| *b == b'\n') {
                        return Some(Request::parse(&self.input[..fresh + end]));
                    }
                    if self.input.len() > MOST {
                        return Some(Err("too long"));
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return None,
                Err(_) => {
                    self.until = Instant::now();
                    return None;
                }
            }
        }
    }

    fn reply(&mut self, line: &Value) {
        self.output = line.to_string().into_bytes();
        self.output.push(b'\n');
        self.stage = Stage::Writing;
        self.until = Instant::now() + PATIENCE;
        self.write();
    }

    fn write(&mut self) {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(n) if n > 0 => {
                    self.output.drain(..n);
                    self.until = Instant::now() + PATIENCE;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                _ => break,
            }
        }
        // Done, or nobody takes it: it is closed.
        self.until = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_and_everything_else_is_refused() {
        let read = |s: &str| Request::parse(s.as_bytes());
        assert_eq!(read(r#"{"v":1,"do":"stop"}"#), Ok(Request::Stop));
        assert_eq!(
            read(r#"{"v":1,"do":"set","expr":["read,write"],"x":0}"#),
            Ok(Request::Set { texts: vec!["read,write".into()], pids: Vec::new() })
        );
        let deep = "[".repeat(60_000);
        for bad in [
            "",
            "x",
            "null",
            "[]",
            "1",
            "\"stop\"",
            "{}",
            r#"{"v":1}"#,
            r#"{"v":2,"do":"stop"}"#,
            r#"{"v":1,"do":7}"#,
            r#"{"v":1,"do":"fly"}"#,
            r#"{"v":1,"do":"set"}"#,
            r#"{"v":1,"do":"set","expr":[1]}"#,
            r#"{"v":1,"do":"set","pids":["1",2]}"#,
            r#"{"v":1,"do":"set","expr":"read"}"#,
            &deep,
        ] {
            assert!(read(bad).is_err(), "{bad:.40}");
        }
        assert!(Request::parse(b"\xff\xfe{}").is_err());
    }
}
