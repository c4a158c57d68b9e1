//! `trapline session …`: asks named sessions, and shows what they answer.

mod table;

use engine::Result;
use serde_json::{Value, json};
use session::ask::Session;
use session::named::{Reply, request, states};
use session::output::{complain, to_stdout};

/// Runs the command.
pub fn run(asked: &Session) -> Result<u8> {
    let Session { what, name, expr, attach, json } = asked;
    if what == "list" {
        let found = states()?;
        let text = if *json { Value::Array(found).to_string() + "\n" } else { table::list(&found) };
        return to_stdout(text.as_bytes());
    }
    let pids: Vec<&str> = attach.iter().flat_map(|p| p.split(',')).collect();
    let more = if what == "set" { json!({"expr": expr, "pids": pids}) } else { json!({}) };
    let answer = match request(name, what, more)? {
        Reply::Yes(answer) => answer,
        Reply::No(line, status) => {
            complain(&line);
            return Ok(status);
        }
    };
    let text = match what.as_str() {
        "status" if *json => answer.to_string() + "\n",
        "status" => table::status(&answer),
        "snapshot" => format!("{}: {} events\n", answer["dir"].as_str().unwrap_or_default(), answer["events"]),
        "destroy" => format!("{} events, {} dropped\n", answer["events"], answer["dropped"]),
        _ => return Ok(0),
    };
    to_stdout(text.as_bytes())
}
