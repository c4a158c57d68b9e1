//! `trapline snapshot PID`: makes a flight recorder write its events.

use engine::{Error, Result};
use session::run::interrupts::SNAPSHOT;
use sys::{proc, signal};

/// Runs the command.
pub fn run(text: &str) -> Result<u8> {
    let Some(pid) = text.parse::<i32>().ok().filter(|p| *p > 0) else {
        return Err(Error::usage(text, "not a process id", "give that of a 'trapline record --flight'"));
    };
    let refuse = |why: &str| Error::failed(format!("process {pid}"), why, "name a 'trapline record --flight -o DIR'");
    // The signal would kill any other process.
    let caught = proc::status_field(pid, "SigCgt").ok_or_else(|| refuse("no such process"))?;
    let caught = u64::from_str_radix(caught.trim(), 16).unwrap_or(0);
    if proc::comm(pid).as_deref() != Some(b"trapline") || caught >> (SNAPSHOT - 1) & 1 == 0 {
        return Err(refuse("not a flight recorder"));
    }
    signal::kill(pid, SNAPSHOT).map_err(|e| refuse(&e.to_string()))?;
    Ok(0)
}
