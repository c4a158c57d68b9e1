//! May return probes be set? They replace return addresses, so anything that leaves a function without returning breaks the program: an
//! exception, the end of a thread, another stack ([`symbols::throws`]); and so does a function that reads the address itself, like setjmp.
//! They are refused where that can happen, unless it is forced.
//!
//! ```text
//!  the probe's file and what it is linked with ─┐
//!  the command, LD_PRELOAD, what they are linked with ─┼─► one that can raise? ─► functions of which it is not proven ─► refused
//!  the processes of -p: what they have mapped; of -a: those that have the file mapped ─┘
//! ```
//!
//! libc by itself raises nothing: it ends threads for files that import pthread_cancel or pthread_exit. So return probes of a C program
//! that does not import them, and is linked with nothing that can raise, need no force.

use crate::error::{Error, Result};
use crate::provider::file_point::FilePoint;
use crate::request::probe_enabling::ProbeEnabling;
use crate::target::Target;
use crate::target::danger::Danger;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Checks every enabling of returns. One that may harm its program is refused; with `force`, the danger is noted in it instead.
///
/// # Errors
/// The first that may, and why.
pub fn guard(probes: &mut [ProbeEnabling], target: &Target, force: bool) -> Result<()> {
    if !probes.iter().any(replaces_returns) {
        return Ok(());
    }
    let of_target = of_target(target);
    let all = matches!(target, Target::All { .. });
    for enabling in probes.iter_mut().filter(|e| replaces_returns(e)) {
        let Some(point) = enabling.point.as_ref().and_then(|p| p.in_file()) else { continue };
        let of_users = |path: &Path| if all { of_users(path) } else { of_target.clone() };
        let Some(why) = danger_of(point, of_users) else { continue };
        if !force {
            return Err(Error::failed(&enabling.name, why, "--force sets it nevertheless; entries (uprobe) are safe"));
        }
        enabling.danger = Some(why);
    }
    Ok(())
}

/// How return probes may harm the programs that `others` examines.
fn danger_of(point: &FilePoint, others: impl Fn(&Path) -> Option<Danger>) -> Option<String> {
    let path = point.path()?;
    if point.looks_at_return() {
        return Some("it reads its return address, which the probe replaces, and would behave differently".into());
    }
    let danger = Danger::of_file(path).or_else(|| others(path))?;
    match point.unproven_returns() {
        0 => None,
        1 => Some(danger.to_string()),
        n => Some(format!("of {n} functions, {danger}")),
    }
}

/// Whether an enabling sets return probes of functions in user space.
pub fn replaces_returns(e: &ProbeEnabling) -> bool {
    e.point.as_ref().and_then(|p| p.in_file()).is_some_and(|f| f.at_return)
}

/// What of the session's programs can leave functions.
fn of_target(target: &Target) -> Option<Danger> {
    match target {
        Target::Command(command) => {
            let path = Path::new(OsStr::from_bytes(command.path.to_bytes()));
            let preload = command.image.variable("LD_PRELOAD").unwrap_or_default();
            let separator = |b: &u8| *b == b':' || b.is_ascii_whitespace();
            let preloaded = preload.split(separator).filter(|p| !p.is_empty()).map(|p| Path::new(OsStr::from_bytes(p)));
            [path].into_iter().chain(preloaded).find_map(Danger::of_file)
        }
        Target::Pids(pids) => pids.iter().find_map(|pid| Danger::of_process(*pid)),
        Target::All { .. } => None,
    }
}

/// What of the processes that have a file mapped can leave functions.
fn of_users(path: &Path) -> Option<Danger> {
    let meta = std::fs::metadata(path).ok()?;
    let file = sys::maps::identity(&meta);
    let uses = |pid: &i32| sys::maps::of(*pid).unwrap_or_default().iter().any(|m| m.file == file);
    sys::proc::processes().into_iter().filter(uses).find_map(Danger::of_process)
}
