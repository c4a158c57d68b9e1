//! `--watch`: the script runs anew each time its file is saved.
//!
//! ```text
//! file ─► trapline run, without --watch ─► file has changed, and is as it was a moment ago: SIGTERM, its end ─► trapline run …
//! ```

use crate::ask::Ask;
use crate::output::complain;
use crate::run::Status;
use crate::run::interrupts::{Interrupts, Wish};
use engine::{Error, Result};
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Child;
use std::time::Duration;
use sys::signal;

/// How often the file is looked at. Who saves it has written all of it by then.
const LOOK: Duration = Duration::from_millis(100);
const TERM: i32 = 15;

/// What changes when a file is saved, in place or by another one that takes its name.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    size: u64,
    changed: (i64, i64),
}

impl Stamp {
    /// None: there is no file, for instance because it is just being replaced.
    fn of(path: &Path) -> Option<Stamp> {
        let m = path.metadata().ok()?;
        Some(Stamp { file: (m.dev(), m.ino()), size: m.len(), changed: (m.mtime(), m.mtime_nsec()) })
    }
}

/// Runs the script of a file until a signal ends it.
pub fn watch(ask: &Ask) -> Result<Status> {
    let Some(path) = ask.script.file.as_ref().filter(|p| *p != "-") else {
        return Err(Error::usage("--watch", "it is for a script in a file", "trapline run --watch FILE"));
    };
    let path = Path::new(path);
    let mut ran = Stamp::of(path);
    if ran.is_none() {
        return Err(Error::failed(path.display().to_string(), "there is no such file", "name a script"));
    }
    let mut interrupts = Interrupts::watch(false);
    let mut child = Some(start()?);
    let mut before = ran;
    loop {
        if let Some(wish) = interrupts.poll() {
            return Ok(end(child, wish));
        }
        std::thread::sleep(LOOK);
        if let Some(own) = &mut child
            && own.try_wait().is_ok_and(|ended| ended.is_some())
        {
            child = None;
            if ask.quiet == 0 {
                complain(&format!("{}: ended; runs again when it is saved", path.display()));
            }
        }
        let now = Stamp::of(path);
        if now.is_none() || now == ran || std::mem::replace(&mut before, now) != now {
            continue;
        }
        ran = now;
        if let Some(own) = child.take() {
            end(Some(own), Wish::PassOn(TERM));
        }
        if ask.quiet == 0 {
            complain(&format!("{}: saved; runs again", path.display()));
        }
        child = Some(start()?);
    }
}

/// Starts trapline with its own arguments, `--watch` left out.
fn start() -> Result<Child> {
    let failed = |e: std::io::Error| Error::failed("--watch", e.to_string(), "run the script without it");
    sys::process::command("/proc/self/exe").args(without(std::env::args_os().skip(1))).spawn().map_err(failed)
}

/// What follows `--` is the script's.
fn without(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut own = true;
    args.filter(|a| {
        own &= a != "--";
        !own || a != OsStr::new("--watch")
    })
    .collect()
}

/// Waits for the end of the script, which has the terminal's signals by itself.
fn end(child: Option<Child>, wish: Wish) -> Status {
    let Some(mut child) = child else { return Status::Exit(0) };
    let sig = match wish {
        Wish::Nothing => None,
        Wish::PassOn(sig) => Some(sig),
        _ => Some(TERM),
    };
    if let (Some(sig), Ok(None)) = (sig, child.try_wait()) {
        // It has not been waited for: the number is still its own.
        let _ = signal::kill(child.id() as i32, sig);
    }
    let status = child.wait().ok().and_then(|s| s.code());
    Status::Exit(status.map_or(0, |code| code as u8))
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_the_option_of_trapline_is_left_out() {
        let args = ["run", "--watch", "a.bt", "5", "--", "--watch", "--n=1"];
        let left = super::without(args.into_iter().map(Into::into));
        assert_eq!(left, ["run", "a.bt", "5", "--", "--watch", "--n=1"]);
    }
}
