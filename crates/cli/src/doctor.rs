//! `trapline doctor`: what works on this machine, and why the rest does not.

use engine::Result;

/// Prints the findings.
pub fn run() -> Result<u8> {
    let findings = session::diagnosis::doctor::examine();
    let width = findings.iter().map(|f| f.what.len()).max().unwrap_or(0);
    let mut out = String::new();
    for f in &findings {
        let mark = if f.ok { "ok " } else { "no " };
        out.push_str(&format!("{mark} {:width$}  {}\n", f.what, f.detail));
    }
    session::output::to_stdout(out.as_bytes())
}
