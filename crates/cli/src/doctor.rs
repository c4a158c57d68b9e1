//! `trapline doctor`: what works on this machine, why the rest does not, and what to do next.

use engine::Result;
use session::diagnosis::doctor;

/// Prints the findings; what no machine can change is apart from what this one lacks.
pub fn run() -> Result<u8> {
    let findings = doctor::examine();
    let rows: Vec<(String, &str)> = findings
        .iter()
        .map(|f| (format!("{}  {}", if f.ok { "ok" } else { "no" }, f.what), f.detail.as_str()))
        .collect();
    let mut out = lined_up(&rows);
    out.push_str("\nLimits of the backends, on every machine:\n");
    let rows: Vec<(String, &str)> =
        doctor::limits().map(|l| (format!("    {}: {}", l.backend, l.what), l.detail)).collect();
    out.push_str(&lined_up(&rows));
    out.push_str("\nWhat to do next:\n");
    for step in doctor::next(&findings) {
        out.push_str(&format!("    {step}\n"));
    }
    session::output::to_stdout(out.as_bytes())
}

/// Two columns.
fn lined_up(rows: &[(String, &str)]) -> String {
    let width = rows.iter().map(|(what, _)| what.len()).max().unwrap_or(0);
    rows.iter().map(|(what, detail)| format!("{what:width$}  {detail}\n")).collect()
}
