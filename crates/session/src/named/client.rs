//! The asking side of named sessions.

use super::VERSION;
use super::place::{self, Place, is_stale};
use engine::{Error, Result};
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long an answer to `snapshot` and `end` may take, which write to disk.
const LONG: Duration = Duration::from_secs(120);
/// How long the end of a session that was killed may take.
const DYING: Duration = Duration::from_millis(300);
/// The most bytes of an answer.
const MOST: u64 = 256 << 20;

/// Asks a session, by its name or by the path of its socket, to do what `trapline session` calls so; `more` are further members.
///
/// # Errors
/// There is no such session, it may not be asked, or it does not answer.
pub fn request(name: &str, what: &str, more: Value) -> Result<Reply> {
    let mut request = more;
    (request["v"], request["do"]) = (json!(VERSION), json!(what));
    let patience = if matches!(what, "snapshot" | "end" | "set") { LONG } else { PATIENCE };
    ask(&find(name)?, name, &request, patience)
}

/// Whether there is a session of that name, or a socket at that path.
///
/// # Errors
/// The directories of sockets cannot be trusted.
pub fn is_there(name: &str) -> Result<bool> {
    let path = |place: &Place| place.socket(name);
    Ok(name.contains('/')
        || super::is_name(name) && Place::visible()?.iter().map(path).any(|p| p.symlink_metadata().is_ok()))
}

/// The states of all sessions that the user may see; what has refused is reported.
///
/// # Errors
/// The directories of sockets cannot be trusted.
pub fn states() -> Result<Vec<Value>> {
    let mut found = Vec::new();
    for place in Place::visible()? {
        for name in place.names() {
            let request = json!({"v": VERSION, "do": "status"});
            match ask(&place.socket(&name), &name, &request, Duration::from_secs(2)) {
                Ok(Reply::Yes(answer)) => found.push(answer),
                Ok(Reply::No(error, _)) => crate::complain(&error),
                // It has just ended, or it was killed and its socket is removed now.
                Err(_) if !place.socket(&name).exists() => {}
                Err(e) => crate::complain(&e.to_string()),
            }
        }
    }
    Ok(found)
}

/// The process of a session of the user's, once it records.
pub fn process_of(name: &str) -> Option<u32> {
    let request = json!({"v": VERSION, "do": "status"});
    let there = Place::all().into_iter().flatten().map(|p| p.socket(name)).find(|p| p.exists());
    match ask(&there?, name, &request, PATIENCE) {
        Ok(Reply::Yes(answer)) => answer["pid"].as_u64().and_then(|pid| pid.try_into().ok()),
        _ => None,
    }
}

/// The socket of a session: by its name, or, of another user's as root, by its path.
fn find(name: &str) -> Result<PathBuf> {
    if name.contains('/') {
        return Ok(PathBuf::from(name));
    }
    let what = format!("session {name}");
    if !super::is_name(name) {
        return Err(Error::usage(what, "not a name", "letters, digits, '.', '_' and '-', at most 64"));
    }
    let is_there = |p: &PathBuf| p.symlink_metadata().is_ok();
    if let Some(own) = Place::all()?.iter().map(|p| p.socket(name)).find(is_there) {
        return Ok(own);
    }
    let places = Place::visible()?;
    let mut of_others: Vec<PathBuf> = places.iter().map(|p| p.socket(name)).filter(is_there).collect();
    match of_others.len() {
        0 => Err(unknown(&what, name, &places)),
        1 => Ok(of_others.remove(0)),
        n => {
            let paths = of_others.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ");
            Err(Error::failed(what, format!("{n} users have one of that name"), format!("give its path: {paths}")))
        }
    }
}

fn unknown(what: &str, name: &str, places: &[Place]) -> Error {
    let names: Vec<String> = places.iter().flat_map(Place::names).collect();
    let near = lang::near::nearest(name, names.iter().map(String::as_str));
    let todo = if near.is_empty() {
        "no session is running: start one with 'trapline record --name NAME'".to_string()
    } else {
        format!("did you mean {}?", near.join(", "))
    };
    Error::failed(what, "no such session", todo)
}

/// Asks a session that is not the user's to name: one of another user's too, where that may be seen. None: there is no such session, or it
/// was killed, and its socket is gone now.
pub fn reach(name: &str, request: &Value, patience: Duration) -> Result<Option<Reply>> {
    for path in Place::visible()?.iter().map(|p| p.socket(name)).filter(|p| p.symlink_metadata().is_ok()) {
        let is_gone =
            || place::connect(&path, patience).is_err_and(|e| is_stale(&e) || e.kind() == io::ErrorKind::NotFound);
        if !is_gone() {
            let reply = ask(&path, name, request, patience);
            // It may be ending just now.
            if reply.is_ok() || !(0..DYING.as_millis() / 10).any(|_| is_gone() || pause()) {
                return reply.map(Some);
            }
        }
        forget(name);
    }
    Ok(None)
}

/// False, 10 ms later.
fn pause() -> bool {
    std::thread::sleep(Duration::from_millis(10));
    false
}

/// A session's reply to a request.
pub enum Reply {
    /// The answer.
    Yes(Value),
    /// Its error line and exit status.
    No(String, u8),
}

fn ask(path: &Path, name: &str, request: &Value, patience: Duration) -> Result<Reply> {
    let what = || format!("session {name}");
    let ended = || Error::failed(what(), "it has ended", "see 'trapline session list'");
    let mut connected = place::connect(path, patience);
    if connected.as_ref().is_err_and(is_stale) {
        // A session that is just beginning has made its socket and does not listen yet: it holds the lock that is waited for here.
        forget(name);
        connected = place::connect(path, patience).map_err(|_| io::ErrorKind::ConnectionRefused.into());
    }
    let mut stream = match connected {
        Ok(stream) => stream,
        Err(e) if is_stale(&e) => return Err(ended()),
        Err(e) => {
            return Err(match e.kind() {
                io::ErrorKind::NotFound => Error::failed(what(), "no such session", "see 'trapline session list'"),
                io::ErrorKind::PermissionDenied => {
                    Error::failed(what(), "not permitted: it is another user's", "ask as that user, or as root")
                }
                io::ErrorKind::WouldBlock => silent(name),
                _ => Error::failed(what(), e.to_string(), "see 'trapline session list'"),
            });
        }
    };
    let sent = stream.write_all((request.to_string() + "\n").as_bytes());
    let mut line = String::new();
    match sent.and_then(|()| BufReader::new(stream.take(MOST)).read_line(&mut line)) {
        Ok(_) => {}
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => return Err(silent(name)),
        Err(_) => return Err(ended()),
    }
    if line.is_empty() {
        return Err(ended());
    }
    let strange = || Error::failed(what(), "its answer is not understood", "is it a trapline of another version?");
    let reply: Value = serde_json::from_str(&line).map_err(|_| strange())?;
    match (reply["ok"].as_bool(), reply["error"].as_str()) {
        (Some(true), _) => Ok(Reply::Yes(reply["answer"].clone())),
        (_, Some(error)) => {
            Ok(Reply::No(format!("session {name}: {error}"), reply["status"].as_u64().unwrap_or(125).min(255) as u8))
        }
        _ => Err(strange()),
    }
}

fn silent(name: &str) -> Error {
    Error::failed(format!("session {name}"), "it does not answer", "is it stopped (SIGSTOP), or very busy?")
}

/// Removes the socket of a killed session.
fn forget(name: &str) {
    for place in Place::all().unwrap_or_default() {
        if super::is_name(name)
            && let Ok(lock) = place.lock()
        {
            lock.remove_stale(name);
        }
    }
}
