//! `trapline pack`: puts the names of functions into a trace, or into a copy of it that lacks what is not to leave.

mod said;
mod write;

use crate::ask::Ask;
use crate::{pack, report};
use engine::resolver::Packed;
use engine::{Error, Result};
use std::io::Write;
use std::path::Path;

/// Runs the command.
///
/// # Errors
/// The trace cannot be read, or not be written to; texts are to be left out of the trace itself.
pub fn run(ask: &Ask) -> Result<u8> {
    let dir = ask.trace.dir.clone().unwrap_or_default();
    let (packed, status) = match ask.keep.dir() {
        Some(to) => copied(ask, &dir, &to)?,
        None if ask.trace.redact.is_empty() => (pack::pack(ask, &dir)?, 0),
        None => {
            let why = "the trace itself keeps all that its program has said";
            return Err(Error::usage("pack --redact", why, "add -o NEW: the copy that is written there has not"));
        }
    };
    let mut line = Vec::new();
    for p in &packed {
        let text = format!("{}: {} addresses, {} bytes", p.module, p.addresses, p.bytes.len());
        views::escape::line(text.as_bytes(), &mut line);
        line.push(b'\n');
    }
    if packed.is_empty() {
        line.extend_from_slice(b"nothing to pack: no stack of the trace has an address in a file that was found\n");
    }
    let unwritten = |e: std::io::Error| Error::failed("pack", e.to_string(), "stdout cannot be written");
    std::io::stdout().write_all(&line).map_err(unwritten)?;
    Ok(status)
}

/// Writes a packed copy. Returns the status too: that of a report.
fn copied(ask: &Ask, dir: &Path, to: &Path) -> Result<(Vec<Packed>, u8)> {
    let _ = sys::process::raise_file_limit();
    let failed = |why: String| {
        Error::failed(
            format!("pack {}", dir.display()),
            why,
            "name the directory of a trace that is not being recorded",
        )
    };
    let trace = pack::open(dir).map_err(failed)?;
    if trace.live {
        return Err(failed("it is still being recorded".into()));
    }
    let packed = write::write(ask, &trace, to)?;
    Ok((packed, report::damage(&trace, report::whole::tell(ask, &trace, None))?))
}
