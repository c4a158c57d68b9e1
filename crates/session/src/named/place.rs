//! Where sockets are: `$XDG_RUNTIME_DIR/trapline`, or `/tmp/trapline-UID` where there is no such directory of the
//! user's own.
//!
//! Whoever makes, removes or judges a socket holds the lock of its directory, so that two sessions of one name cannot
//! both find the name free.

use engine::{Error, Result};
use std::fs::File;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use sys::socket;

/// What the name of a socket ends in.
const SUFFIX: &str = ".sock";

/// A directory of sockets, the user's own.
pub struct Place {
    path: PathBuf,
    dir: File,
}

/// The directory that the user's sessions are made in, and others that they may be in; none needs to exist.
fn paths() -> Vec<PathBuf> {
    let uid = sys::process::euid();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|p| p.is_absolute() && socket::private_dir(p, uid).is_ok());
    let mut all: Vec<PathBuf> = runtime.map(|p| p.join("trapline")).into_iter().collect();
    all.push(PathBuf::from(format!("/tmp/trapline-{uid}")));
    all
}

impl Place {
    /// The directory for new sessions, made where it is missing.
    pub fn make() -> Result<Place> {
        let path = paths().swap_remove(0);
        let dir = socket::make_private_dir(&path, sys::process::euid()).map_err(|e| refused(&path, &e))?;
        Ok(Place { path, dir })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directories that exist. One that cannot be trusted is an error where nothing else is left.
    pub fn all() -> Result<Vec<Place>> {
        let (mut found, mut refusal) = (Vec::new(), None);
        for path in paths() {
            match socket::private_dir(&path, sys::process::euid()) {
                Ok(dir) => found.push(Place { path, dir }),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => refusal = Some(refused(&path, &e)),
            }
        }
        match refusal {
            Some(e) if found.is_empty() => Err(e),
            _ => Ok(found),
        }
    }

    /// The directories that the user may look into: those of all users for root, else the user's own. Of a user with an
    /// XDG_RUNTIME_DIR elsewhere, root does not know.
    pub fn visible() -> Result<Vec<Place>> {
        let mut found = Place::all()?;
        if sys::process::euid() != 0 {
            return Ok(found);
        }
        let entries = |dir: &str| std::fs::read_dir(dir).into_iter().flatten().flatten().collect::<Vec<_>>();
        let uid = |text: &str| text.parse::<u32>().ok();
        let runtime = entries("/run/user")
            .into_iter()
            .map(|e| (e.path().join("trapline"), uid(&e.file_name().to_string_lossy())));
        let tmp = entries("/tmp").into_iter().map(|e| {
            let name = e.file_name().to_string_lossy().into_owned();
            (e.path(), name.strip_prefix("trapline-").and_then(uid))
        });
        for (path, uid) in runtime.chain(tmp) {
            if let Some(uid) = uid
                && !found.iter().any(|p| p.path == path)
                && let Ok(dir) = socket::private_dir(&path, uid)
            {
                found.push(Place { path, dir });
            }
        }
        Ok(found)
    }

    /// The socket of a session.
    pub fn socket(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}{SUFFIX}"))
    }

    /// The names that have a socket, sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let file = entry.file_name().to_string_lossy().into_owned();
            names.extend(file.strip_suffix(SUFFIX).filter(|n| super::is_name(n)).map(str::to_string));
        }
        names.sort();
        names
    }

    /// Holds everybody else off until the lock is dropped.
    pub fn lock(&self) -> Result<Lock<'_>> {
        self.dir.lock().map_err(|e| refused(&self.path, &e))?;
        Ok(Lock(self))
    }
}

/// The lock of a directory.
pub struct Lock<'p>(&'p Place);

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        let _ = self.0.dir.unlock();
    }
}

impl Lock<'_> {
    /// Removes the socket of `name` where nobody listens at it any more; whether there was one, and it is gone.
    pub fn remove_stale(&self, name: &str) -> bool {
        let path = self.0.socket(name);
        let stale = matches!(connect(&path, Duration::from_secs(1)), Err(e) if is_stale(&e));
        stale && std::fs::remove_file(&path).is_ok()
    }
}

/// Connects to a socket.
pub fn connect(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    socket::connect(path, patience)
}

/// Whether an error of [`connect`] means that nobody listens any more.
pub fn is_stale(e: &io::Error) -> bool {
    e.kind() == io::ErrorKind::ConnectionRefused
}

fn refused(path: &Path, e: &io::Error) -> Error {
    let why = e.to_string();
    let why = why.split(" (os error").next().unwrap_or_default().to_string();
    Error::failed(path.display().to_string(), why, "set XDG_RUNTIME_DIR to a directory of yours with mode 0700")
}
