//! `trapline session …`: asks named sessions, and shows what they answer.

mod table;

use engine::{Error, Result};
use serde_json::{Value, json};
use session::ask::Session;
use session::ask::{Ask, Collector, Recorded, Slab, Tracer};
use session::named::Reply;
use session::output::{complain, to_stdout};
use session::running;
use session::{heap, report, tracer};

/// Runs the command.
pub fn run(asked: &Session) -> Result<u8> {
    let Session { what, name, expr, attach, json } = asked;
    if what == "list" {
        let found = running::all()?;
        if found.is_empty() && !*json {
            complain(
                "nothing runs (start a session with 'trapline record --name NAME', 'heap start', 'tracer enable' or 'slab start')",
            );
            return Ok(0);
        }
        let text = if *json { Value::Array(found).to_string() + "\n" } else { table::list(&found) };
        return to_stdout(text.as_bytes());
    }
    let pids: Vec<&str> = attach.iter().flat_map(|p| p.split(',')).collect();
    let more = if what == "set" { json!({"expr": expr, "pids": pids}) } else { json!({}) };
    let running = running::find(name)?;
    if what == "print" {
        return print(name, &running.state()?);
    }
    let answer = match running.request(what, more)? {
        Reply::Yes(answer) => answer,
        Reply::No(line, status) => {
            complain(&line);
            return Ok(status);
        }
    };
    answer["said"].as_array().into_iter().flatten().filter_map(Value::as_str).for_each(complain);
    let text = match what.as_str() {
        "status" if *json => answer.to_string() + "\n",
        "status" => table::status(&answer),
        "snapshot" => format!("{}: {} events\n", answer["dir"].as_str().unwrap_or_default(), answer["events"]),
        "end" if answer["events"].is_u64() => format!("{} events, {} dropped\n", answer["events"], answer["dropped"]),
        _ => return Ok(0),
    };
    to_stdout(text.as_bytes())
}

/// Shows what something that runs has so far, as the command that it belongs to does.
fn print(name: &str, state: &Value) -> Result<u8> {
    let what = "print".to_string();
    let of = |prefix: &str| name.strip_prefix(prefix).map(str::to_string);
    let pid = || state["target"].as_str().and_then(|t| t.strip_prefix("-p ")).and_then(|pid| pid.parse().ok());
    match state["kind"].as_str() {
        Some("slab") => crate::slab::run(&Slab { what, name: of("slab-").unwrap_or_default(), ..Slab::default() }),
        Some("tracer") => {
            let tracer = name.rsplit_once('-').map(|(tracer, _)| tracer.to_string());
            let asked = Tracer { what, pid: pid().unwrap_or(0), name: tracer, ..Tracer::default() };
            tracer::run(&asked).map(|status| status.pass_on())
        }
        Some("heap") => heap::control::run(&Collector { what, pid: pid().unwrap_or(0), ask: Ask::default() }),
        _ => {
            let Some(dir) = state["dir"].as_str() else {
                return Err(Error::failed(format!("session print {name}"), "it writes no trace", "record with -o DIR"));
            };
            let trace = Recorded { dir: Some(dir.into()), ..Recorded::default() };
            report::run(&Ask { trace, ..Ask::default() })
        }
    }
}
