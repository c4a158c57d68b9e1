//! The directory of bpffs in which slab sessions are: `/sys/fs/bpf/trapline-slab`, its owner's alone.
//!
//! ```text
//! trapline-slab/          mode 0700, locked by whoever changes anything
//!   filp/                 a session: about, state, objects, remembered, at-TRACEPOINT…
//!   filp~/                a session that was not finished, or not removed, when its command was killed
//! ```
//!
//! A directory is opened without following a link and checked (owner, mode, file system); what is in it is reached through that
//! descriptor, so that a path which somebody replaces meanwhile has no effect.

use super::{name, words};
use crate::error::{Error, Result};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use sys::{bpffs, process, socket};

/// The name of the directory.
const NAME: &str = "trapline-slab";
/// What the names of links begin with; a number and the tracepoint follow.
pub const LINK: &str = "at-";
/// What ends the name of a session that is not whole.
const UNFINISHED: char = '~';

/// The directory, locked until it is dropped.
pub struct Place {
    dir: File,
}

/// A session's directory.
pub struct Folder {
    dir: File,
    /// As the user knows it.
    pub path: PathBuf,
}

/// Where it is.
fn path() -> PathBuf {
    Path::new(bpffs::PATH).join(NAME)
}

fn below(dir: &File, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd())).join(name)
}

fn refused(path: &Path, e: &io::Error) -> Error {
    let todo = format!("it must be a directory of bpffs, yours, with mode 0700: remove it (rm -r {})", path.display());
    Error::failed(path.display().to_string(), words(e), todo)
}

/// Mounts bpffs where it is missing; whether it was.
fn mount() -> Result<bool> {
    let path = Path::new(bpffs::PATH);
    match bpffs::is_mounted() {
        Ok(true) => Ok(false),
        Ok(false) => bpffs::mount(path).map(|()| true).map_err(|e| {
            let todo = format!("as root: mount -t bpf bpf {}", path.display());
            Error::failed(
                path.display().to_string(),
                format!("bpffs is not mounted there, and cannot be: {}", words(&e)),
                todo,
            )
        }),
        Err(e) => {
            let todo = format!("mount sysfs, then: mount -t bpf bpf {}", path.display());
            Err(Error::failed(path.display().to_string(), words(&e), todo))
        }
    }
}

/// Opens a directory that must be in bpffs.
fn open(path: &Path, shown: &Path) -> Result<Option<File>> {
    let dir = match socket::private_dir(path, process::euid()) {
        Ok(dir) => dir,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(refused(shown, &e)),
    };
    match bpffs::has(&dir) {
        Ok(true) => Ok(Some(dir)),
        Ok(false) => Err(refused(shown, &io::Error::other("it is not in bpffs"))),
        Err(e) => Err(refused(shown, &e)),
    }
}

impl Place {
    /// The directory, made where it is missing; and whether bpffs was mounted for it.
    pub fn make() -> Result<(Place, bool)> {
        let (path, mounted) = (path(), mount()?);
        // Somebody else's `clear` may remove the empty directory before it is locked.
        for _ in 0..100 {
            socket::make_private_dir(&path, process::euid()).map_err(|e| refused(&path, &e))?;
            if let Some(place) = Place::lock(&path)? {
                return Ok((place, mounted));
            }
        }
        Err(Error::failed(path.display().to_string(), "other commands keep removing it", "try again"))
    }

    /// The directory, if there is one.
    pub fn find() -> Result<Option<Place>> {
        Place::lock(&path())
    }

    fn lock(path: &Path) -> Result<Option<Place>> {
        for _ in 0..100 {
            let Some(dir) = open(path, path)? else { return Ok(None) };
            dir.lock().map_err(|e| refused(path, &e))?;
            let inode = |m: io::Result<fs::Metadata>| m.map(|m| (m.dev(), m.ino())).ok();
            if inode(dir.metadata()) == inode(fs::symlink_metadata(path)) {
                return Ok(Some(Place { dir }));
            }
        }
        Ok(None)
    }

    /// The names that sessions have, sorted, and whether each is whole; a name that no session has is an error.
    pub fn names(&self) -> Result<Vec<(String, bool)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(below(&self.dir, "")).map_err(|e| refused(&path(), &e))?.flatten() {
            let file = entry.file_name().to_string_lossy().into_owned();
            let whole = !file.ends_with(UNFINISHED);
            match name::decode(file.trim_end_matches(UNFINISHED)) {
                Some(name) => found.push((name, whole)),
                None => return Err(refused(&path().join(file), &io::Error::other("no session has such a name"))),
            }
        }
        found.sort();
        Ok(found)
    }

    fn folder(&self, file: &str) -> Result<Option<Folder>> {
        let shown = path().join(file);
        Ok(open(&below(&self.dir, file), &shown)?.map(|dir| Folder { dir, path: shown }))
    }

    /// The directory of a session that is whole.
    pub fn session(&self, name: &str) -> Result<Option<Folder>> {
        self.folder(&name::encode(name))
    }

    /// A new directory, whose session is not whole yet.
    pub fn begin(&self, name: &str) -> Result<Folder> {
        let file = format!("{}{UNFINISHED}", name::encode(name));
        let made = socket::make_private_dir(&below(&self.dir, &file), process::euid());
        made.map_err(|e| refused(&path().join(&file), &e))?;
        self.folder(&file)?.ok_or_else(|| refused(&path().join(&file), &io::ErrorKind::NotFound.into()))
    }

    /// The session is whole.
    pub fn finish(&self, name: &str) -> Result<()> {
        let file = name::encode(name);
        let from = below(&self.dir, &format!("{file}{UNFINISHED}"));
        fs::rename(from, below(&self.dir, &file)).map_err(|e| refused(&path().join(&file), &e))
    }

    /// Removes the session of this name, and what is left of another one; whether there was any.
    pub fn remove(&self, name: &str) -> Result<bool> {
        let file = name::encode(name);
        let mut found = self.remove_unfinished(name)?;
        if self.session(name)?.is_some() {
            let (from, to) = (below(&self.dir, &file), below(&self.dir, &format!("{file}{UNFINISHED}")));
            fs::rename(from, to).map_err(|e| refused(&path().join(&file), &e))?;
            found |= self.remove_unfinished(name)?;
        }
        Ok(found)
    }

    /// Removes what is left of a session that was not finished, or not removed; whether there was any.
    pub fn remove_unfinished(&self, name: &str) -> Result<bool> {
        let file = format!("{}{UNFINISHED}", name::encode(name));
        let Some(folder) = self.folder(&file)? else { return Ok(false) };
        let removed = folder.names().and_then(|mut names| {
            // Links first: what is left then does nothing.
            order::by_key(&mut names, |n| !n.starts_with(LINK));
            names.iter().try_for_each(|n| fs::remove_file(folder.at(n)))?;
            fs::remove_dir(below(&self.dir, &file))
        });
        removed.map(|()| true).map_err(|e| refused(&folder.path, &e))
    }

    /// Removes the directory where it is empty.
    pub fn leave(self) {
        let empty = fs::read_dir(below(&self.dir, "")).is_ok_and(|mut d| d.next().is_none());
        if empty {
            let _ = fs::remove_dir(path());
        }
    }
}

impl Folder {
    /// The path of an entry.
    pub fn at(&self, name: &str) -> PathBuf {
        below(&self.dir, name)
    }

    /// The names of its entries.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(below(&self.dir, ""))?;
        entries.map(|e| Ok(e?.file_name().to_string_lossy().into_owned())).collect()
    }

    /// Whether an entry is an object: no link, no directory.
    pub fn is_object(&self, name: &str) -> bool {
        fs::symlink_metadata(self.at(name)).is_ok_and(|m| m.is_file())
    }
}
