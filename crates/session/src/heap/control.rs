//! `trapline heap start|stop|print|reset|clear -p PID`: the asking side.

use super::collector::{ATTACHED, already, name_of};
use super::{Drawing, style};
use crate::ask::{Ask, Collector};
use crate::complain;
use crate::named::{Reply, VERSION, reach};
use crate::view;
use collector::attach;
use engine::{Error, Result};
use serde_json::{Value, json};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long one may take for which symbols are read, or threads are waited for.
const LONG: Duration = Duration::from_secs(120);

/// Runs a command.
pub fn run(asked: &Collector) -> Result<u8> {
    let Collector { what: verb, pid, ask: options } = asked;
    let pid = *pid;
    let what = format!("heap {verb} -p {pid}");
    match verb.as_str() {
        "start" => start(pid, options),
        "print" => print(pid, &what, options),
        "clear" => clear(pid, &what),
        _ => done(ask(pid, verb, json!({}), PATIENCE)?, pid, &what),
    }
}

/// Asks the collector of a process; `None` for a process without a collector.
fn ask(pid: i32, verb: &str, mut request: Value, patience: Duration) -> Result<Option<Reply>> {
    request["v"] = json!(VERSION);
    request["do"] = json!(verb);
    reach(&name_of(pid), &request, patience)
}

/// What a reply means where there is nothing to show.
fn done(reply: Option<Reply>, pid: i32, what: &str) -> Result<u8> {
    match reply {
        Some(Reply::Yes(_)) => Ok(0),
        Some(Reply::No(line, status)) => Ok(refused(pid, &line, status)),
        None => Err(nothing(pid, what)),
    }
}

/// Says what the collector has said.
fn refused(pid: i32, line: &str, status: u8) -> u8 {
    complain(line.strip_prefix(&format!("session {}: ", name_of(pid))).unwrap_or(line));
    status
}

/// What to say where no collector is.
fn nothing(pid: i32, what: &str) -> Error {
    let start = format!("begin with: trapline heap start -p {pid}");
    if sys::process::has_ended(pid) {
        return Error::failed(what, "no such process, and nothing is kept of it", "see 'trapline session list'");
    }
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    if maps.contains("memfd:trapline-tables") {
        let why = "another trapline records its heap and shows it at its end, or was killed";
        return Error::failed(what, why, format!("after a kill: trapline heap clear -p {pid}"));
    }
    Error::failed(what, "its heap is not recorded", start)
}

/// Starts a collector, or has the one there is go on.
fn start(pid: i32, options: &Ask) -> Result<u8> {
    let sample = options.heap.sample.as_ref();
    let wanted = sample.map(|s| crate::target::bytes("--sample", s)).transpose()?;
    match ask(pid, "status", json!({}), PATIENCE)? {
        None => {}
        Some(Reply::No(line, status)) => return Ok(refused(pid, &line, status)),
        Some(Reply::Yes(answer)) => match answer["state"].as_str() {
            Some("stopped") => {
                let has = answer["sample"].as_u64().unwrap_or(0);
                if wanted.is_some_and(|n| n != has) {
                    let todo = format!("leave --sample out, or begin anew after: trapline heap clear -p {pid}");
                    return Err(Error::failed(
                        format!("heap start -p {pid}"),
                        "it was started with another --sample",
                        todo,
                    ));
                }
                return done(ask(pid, "start", json!({}), PATIENCE)?, pid, &format!("heap start -p {pid}"));
            }
            // A process of that number has ended, and this is another one.
            Some("ended") => drop(ask(pid, "end", json!({}), LONG)?),
            _ => return Err(already(pid)),
        },
    }
    spawn(pid, sample)
}

/// Starts a collector, and waits until it is attached.
fn spawn(pid: i32, sample: Option<&String>) -> Result<u8> {
    let failed = |why: String| Error::failed(format!("heap start -p {pid}"), why, "the process runs on untraced");
    let mut command = Command::new("/proc/self/exe");
    command.arg0("trapline").args(["heap", "--collector", "-q", "-p", &pid.to_string()]);
    if let Some(sample) = sample {
        command.args(["--sample", sample]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| failed(e.to_string()))?;
    let mut said = Vec::new();
    // It lets go of the pipe when it is attached, or ends.
    child.stderr.take().map(|mut pipe| pipe.read_to_end(&mut said)).transpose().map_err(|e| failed(e.to_string()))?;
    let said = String::from_utf8_lossy(&said);
    let (attached, words) = match said.split_once(ATTACHED) {
        Some((words, _)) => (true, words),
        None => (false, &*said),
    };
    eprint!("{words}");
    if attached {
        return Ok(0);
    }
    let status = child.wait().map_err(|e| failed(e.to_string()))?;
    match status.code() {
        Some(code) if !words.is_empty() => Ok(code as u8),
        _ => Err(failed("the collector has ended".into())),
    }
}

/// Shows what is outstanding.
fn print(pid: i32, what: &str, options: &Ask) -> Result<u8> {
    let wanted = view::wanted(options, "leaks");
    let names: Vec<&str> = wanted.iter().map(|show| show.view.as_str()).collect();
    let style = style(options)?;
    // Before anything is asked for: a view that does not exist, a file that cannot be made.
    let mut drawings = wanted.iter().map(Drawing::open).collect::<Result<Vec<_>>>()?;
    let how = json!({
        "views": names,
        "of": style.options.of.name(),
        "top": style.options.top,
        "min_age": style.min_age,
    });
    let answer = match ask(pid, "print", how, LONG)? {
        Some(Reply::Yes(answer)) => answer,
        other => return done(other, pid, what),
    };
    let mut first = Ok(0);
    for (n, drawing) in drawings.iter_mut().enumerate() {
        let text = answer["views"][n].as_str().unwrap_or_default();
        // A character is a byte.
        drawing.output.buffer().extend(text.chars().map(|c| c as u8));
        drawing.output.flush();
        drawing.output.close();
        if let Some(e) = drawing.output.take_trouble() {
            first = first.and(Err(e));
        }
    }
    if answer["allocations"] == 0 {
        complain(&format!("{what}: no allocation was made since it is recorded (print again later)"));
    }
    first
}

/// Ends a collector, and takes out what one has left that was killed.
fn clear(pid: i32, what: &str) -> Result<u8> {
    let reply = ask(pid, "end", json!({}), LONG)?;
    if reply.is_some() || sys::process::has_ended(pid) {
        return done(reply, pid, what);
    }
    match attach::sweep(pid)? {
        true => Ok(0),
        false => Err(nothing(pid, what)),
    }
}
