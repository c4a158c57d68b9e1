//! What `session list` and `session status` print.

use serde_json::Value;
use views::table::{Align, Table};

/// Lines up columns: the first `left` of them to the left, the others to the right.
fn columns(rows: &[Vec<String>], left: usize) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut table = Table::list((0..count).map(|i| ("", if i < left { Align::Left } else { Align::Right })));
    rows.iter().for_each(|row| table.row(row.clone()));
    let mut out = Vec::new();
    table.write(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// What a session says of itself is somebody's words: no control characters on the terminal.
fn text(v: &Value) -> String {
    let raw = match v {
        Value::String(s) => s.clone(),
        Value::Null => "-".into(),
        other => other.to_string(),
    };
    let mut out = Vec::new();
    views::escape::line(raw.as_bytes(), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn headed(names: &[&str]) -> Vec<Vec<String>> {
    vec![names.iter().map(|n| n.to_string()).collect()]
}

/// The sessions, a line each.
pub fn list(all: &[Value]) -> String {
    let mut rows = headed(&["NAME", "KIND", "USER", "PID", "STATE", "BACKEND", "TARGET"]);
    rows.extend(
        all.iter().map(|s| ["name", "kind", "user", "pid", "state", "backend", "target"].map(|k| text(&s[k])).to_vec()),
    );
    columns(&rows, 7)
}

/// A session: what it is, its rings, its probes.
pub fn status(s: &Value) -> String {
    let since = s["elapsed_ns"].as_u64().unwrap_or(0) as f64 / 1e9;
    let mut rows: Vec<Vec<String>> = ["name", "user", "state", "pid", "target", "backend", "dir"]
        .iter()
        .map(|k| vec![k.to_string(), text(&s[*k])])
        .collect();
    // A tracer, or a slab trace.
    if !s["elapsed_ns"].is_u64() {
        rows.retain(|row| row[0] != "dir");
        return columns(&rows, 2);
    }
    rows.push(vec!["since".into(), format!("{since:.1} s")]);
    rows.push(vec!["calls".into(), text(&s["calls"])]);
    let counts = ["events", "dropped", "missed", "overwritten"].map(|k| format!("{} {k}", text(&s[k])));
    rows.push(vec!["counted".into(), counts.join(", ")]);
    if s["agents"].is_object() {
        let of = |k: &str| text(&s["agents"][k]);
        let [patched, refused, modules] = ["patched", "refused", "modules"].map(of);
        let [processes, threads] = ["processes", "threads"].map(of);
        let patches = format!("{patched} patches, {refused} failed, functions of {modules} files");
        rows.push(vec!["agents".into(), format!("{processes} processes, {threads} threads; {patches}")]);
    }
    rows.push(vec!["on disk".into(), format!("{} bytes", text(&s["bytes"]))]);
    let mut out = columns(&rows, 2);

    let mut rows = headed(&["STREAM", "USED", "SIZE", "FULL", "DROPPED"]);
    for r in s["streams"].as_array().into_iter().flatten() {
        let (used, size) = (r["used"].as_u64().unwrap_or(0), r["size"].as_u64().unwrap_or(0));
        let full = format!("{}%", used.saturating_mul(100) / size.max(1));
        rows.push(vec![text(&r["name"]), used.to_string(), size.to_string(), full, text(&r["dropped"])]);
    }
    out += &format!("\n{}", columns(&rows, 1));

    let keys = ["seen", "recorded", "dropped", "filtered", "missed"];
    let mut rows = headed(&["PROBE", "SEEN", "RECORDED", "DROPPED", "FILTERED", "MISSED"]);
    for (name, counts) in s["probes"].as_object().into_iter().flatten() {
        let name = text(&Value::String(name.clone()));
        rows.push(std::iter::once(name).chain(keys.map(|k| text(&counts[k]))).collect());
    }
    out += &format!("\n{}", columns(&rows, 1));

    let mut rows = headed(&["ENABLING", "STATE", "SEEN", "RECORDED", "DROPPED", "FILTERED", "MISSED"]);
    for e in s["enablings"].as_array().into_iter().flatten() {
        let filter: Vec<String> =
            e["filter"].as_array().into_iter().flatten().map(|part| text(&part["part"])).collect();
        let filter = if filter.is_empty() { String::new() } else { format!(" /{}/", filter.join(" && ")) };
        let state = if e["enabled"] == Value::Bool(false) { "removed" } else { "enabled" };
        let counts = keys.map(|k| text(&e[k]));
        rows.push([text(&e["probe"]) + &filter, state.into()].into_iter().chain(counts).collect());
    }
    if rows.len() > 1 {
        out += &format!("\n{}", columns(&rows, 2));
    }
    out
}
