//! `trapline repair`: cuts truncated packets off the ends of streams of a trace, for readers that refuse them.

use engine::{Error, Result};
use std::io::Write;
use std::path::Path;

/// Runs the command.
pub fn run(dir: &Path) -> Result<u8> {
    let _ = sys::process::raise_file_limit();
    let failed = |why: String, todo: &str| Error::failed(format!("repair {}", dir.display()), why, todo);
    let todo = "name the directory of a trace of yours that is not being recorded";
    let done = ctf::repair::repair(dir, sys::process::euid()).map_err(|why| failed(why, todo))?;
    let mut text = String::new();
    for cut in &done.cuts {
        let name = cut.path.file_name().unwrap_or_default().to_string_lossy();
        text += &format!("{name}: removed {} bytes after its last whole packet, at byte {}\n", cut.rest, cut.at);
    }
    if done.cuts.is_empty() {
        text += "nothing to repair: every stream ends with a whole packet\n";
    }
    let mut line = Vec::new();
    text.lines().for_each(|l| {
        views::escape::line(l.as_bytes(), &mut line);
        line.push(b'\n');
    });
    std::io::stdout().write_all(&line).map_err(|e| failed(e.to_string(), "stdout cannot be written"))?;
    match done.damage.places {
        0 => Ok(0),
        n => Err(failed(
            format!("{n} places in the middle are damaged and were not repaired"),
            "'trapline report' shows the events around them",
        )),
    }
}
