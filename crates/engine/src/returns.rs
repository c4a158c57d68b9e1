//! May return probes be set? They replace return addresses, so what leaves a function otherwise than by returning breaks the program: an
//! exception, the end of a thread, another stack ([`symbols::raise`]). They are refused where that can happen, unless it is forced.
//!
//! ```text
//!  the probe's file and what it is linked with ─┐
//!  the command, LD_PRELOAD, what they are linked with ─┼─► one that can raise? ─► functions of which it is not proven ─► refused
//!  the processes of -p: what they have mapped; of -a: those that have the file mapped ─┘
//! ```
//!
//! libc by itself raises nothing: it ends threads for who imports pthread_cancel or pthread_exit. So a program of C that does not, and
//! is linked with nothing that can raise, has return probes as before.

use crate::enabling::Enabling;
use crate::error::{Error, Result};
use crate::modules::{self, Module};
use crate::plan::{Plan, Target};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use symbols::raise::Means;

/// What can leave functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Danger {
    /// The file that does it.
    pub path: PathBuf,
    /// How.
    pub means: Means,
}

impl Danger {
    /// Of the first of some files that has means to.
    fn among(modules: impl Iterator<Item = Module>) -> Option<Danger> {
        modules.into_iter().find_map(|m| Some(Danger { means: m.means()?, path: m.path }))
    }

    /// Of a file and what it is linked with.
    pub fn of_file(path: &Path) -> Option<Danger> {
        Danger::among(modules::of_file(path).into_iter())
    }

    /// What would happen to the program.
    fn outcome(&self) -> &'static str {
        match self.means {
            Means::Exception(_) | Means::Unknown => "an exception that leaves it would abort the program",
            Means::ThreadEnd(_) => "a thread that ends in it would leave out the cleanup of its callers",
            Means::OtherStack(_) | Means::Go => "a switch of stacks in it would kill the program",
        }
    }
}

impl std::fmt::Display for Danger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} {}", self.outcome(), self.path.display(), self.means)
    }
}

/// Looks at every enabling of returns. Where one may harm its program, it is noted in it with `force`, and refused without.
///
/// # Errors
/// The first that may, and why.
pub fn guard(plan: &mut Plan, force: bool) -> Result<()> {
    if !plan.probes.iter().any(replaces_returns) {
        return Ok(());
    }
    let of_target = of_target(&plan.target);
    let all = matches!(plan.target, Target::All { .. });
    for enabling in plan.probes.iter_mut().filter(|e| replaces_returns(e)) {
        let Some(path) = enabling.hook.as_ref().and_then(|h| h.file()) else { continue };
        let of_users = || if all { of_users(path) } else { of_target.clone() };
        let Some(danger) = Danger::of_file(path).or_else(of_users) else { continue };
        let unproven = enabling.hook.as_ref().map_or(0, |h| h.unproven_returns());
        if unproven == 0 {
            continue;
        }
        let functions = if unproven > 1 { format!("of {unproven} functions, ") } else { String::new() };
        if !force {
            let why = format!("{functions}{danger}");
            return Err(Error::failed(&enabling.name, why, "--force sets it nevertheless; entries (uprobe) are safe"));
        }
        enabling.danger = Some(format!("{functions}{danger}"));
    }
    Ok(())
}

fn replaces_returns(e: &Enabling) -> bool {
    e.hook.as_ref().is_some_and(|h| h.replaces_returns())
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
        Target::Pids(pids) => pids.iter().find_map(|pid| Danger::among(modules::of_process(*pid).into_iter())),
        Target::All { .. } => None,
    }
}

/// What of the processes that have a file mapped can leave functions.
fn of_users(path: &Path) -> Option<Danger> {
    let meta = std::fs::metadata(path).ok()?;
    let file = sys::maps::identity(&meta);
    let uses = |pid: &i32| sys::maps::of(*pid).unwrap_or_default().iter().any(|m| m.file == file);
    sys::proc::processes().into_iter().filter(uses).find_map(|pid| Danger::among(modules::of_process(pid).into_iter()))
}
