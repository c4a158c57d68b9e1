//! A directory that is held open: what is in it is reached through its descriptor, and no symbolic link in it is followed.
//!
//! ```text
//! path ──opened once──► descriptor N ──/proc/self/fd/N/NAME──► files and directories in it
//! ```
//!
//! Others may change where the path leads to; what is made, read and removed stays in this directory. `std` has no openat(2),
//! but a name below `/proc/self/fd/N` is looked up in the same way. Opening a file never waits and never reaches a device:
//! what is not a regular file is an error. Files are made with a new name only, never over what is there.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// `O_DIRECTORY` and `O_NOFOLLOW` (`include/uapi/asm-generic/fcntl.h`, `arch/arm64/include/uapi/asm/fcntl.h`).
#[cfg(target_arch = "aarch64")]
const O_DIRECTORY: i32 = 0o40_000;
#[cfg(target_arch = "aarch64")]
const O_NOFOLLOW: i32 = 0o100_000;
#[cfg(not(target_arch = "aarch64"))]
const O_DIRECTORY: i32 = 0o200_000;
#[cfg(not(target_arch = "aarch64"))]
const O_NOFOLLOW: i32 = 0o400_000;
/// `O_NONBLOCK`: opening a FIFO does not wait for its other end.
const O_NONBLOCK: i32 = 0o4_000;

/// An open directory.
#[derive(Debug)]
pub struct Folder {
    /// The path that the user gave: for messages only.
    path: PathBuf,
    /// Where names are looked up: below `/proc/self/fd`, or below `path` where there is no `/proc`.
    base: PathBuf,
    /// Names are looked up through the descriptor.
    held: bool,
    file: File,
}

impl Folder {
    /// Opens a directory that the user gave, which may be a symbolic link to one.
    ///
    /// # Errors
    /// What open(2) says.
    pub fn open(path: &Path) -> io::Result<Folder> {
        Folder::open_with(path, path, 0)
    }

    /// Opens a directory, but not through a symbolic link in the last part of its path.
    ///
    /// # Errors
    /// A link; what open(2) says.
    pub fn open_itself(path: &Path) -> io::Result<Folder> {
        Folder::open_with(path, path, O_NOFOLLOW)
    }

    /// Opens `at`, which messages call `path`.
    fn open_with(path: &Path, at: &Path, flags: i32) -> io::Result<Folder> {
        let open = || OpenOptions::new().read(true).custom_flags(O_DIRECTORY | O_NONBLOCK | flags).open(at);
        let file = open().map_err(|e| if flags != 0 && is_link(at) { a_link() } else { e })?;
        let base = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let held = id(&fs::metadata(&base)).is_some_and(|there| Some(there) == id(&file.metadata()));
        Ok(Folder { path: path.into(), base: if held { base } else { at.into() }, held, file })
    }

    /// Makes a directory (0700) to write into, or takes an empty one that belongs to the user `owner`.
    ///
    /// # Errors
    /// A directory of somebody else's, one that is not empty, a symbolic link; what mkdir(2) says.
    pub fn make(path: &Path, owner: u32) -> io::Result<Folder> {
        match DirBuilder::new().mode(0o700).create(path) {
            Ok(()) => Folder::open_itself(path)?.writable(),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                let folder = Folder::open_itself(path)?.writable()?;
                folder.check_owner(owner)?;
                if folder.names()?.is_empty() {
                    return Ok(folder);
                }
                Err(io::Error::new(io::ErrorKind::DirectoryNotEmpty, "the directory is not empty"))
            }
            Err(e) => Err(e),
        }
    }

    /// Refuses a directory that does not belong to the user `owner`.
    ///
    /// # Errors
    /// `PermissionDenied`.
    pub fn check_owner(&self, owner: u32) -> io::Result<()> {
        match self.file.metadata()?.uid() {
            uid if uid == owner => Ok(()),
            _ => Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user")),
        }
    }

    /// Fails where names cannot be looked up through the descriptor: reading may use the path instead, writing may not.
    ///
    /// # Errors
    /// There is no `/proc`.
    pub fn writable(self) -> io::Result<Folder> {
        if self.held {
            Ok(self)
        } else {
            Err(io::Error::other("/proc is not mounted, and writing to a trace needs it"))
        }
    }

    /// The path that the user gave.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn at(&self, name: impl AsRef<OsStr>) -> io::Result<PathBuf> {
        let name = name.as_ref();
        match name.as_bytes() {
            b"" | b"." | b".." => Err(io::ErrorKind::InvalidInput.into()),
            n if n.contains(&b'/') => Err(io::ErrorKind::InvalidInput.into()),
            _ => Ok(self.base.join(name)),
        }
    }

    /// The names in it, sorted.
    ///
    /// # Errors
    /// What readdir(3) says.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let names: io::Result<Vec<OsString>> = fs::read_dir(&self.base)?.map(|e| Ok(e?.file_name())).collect();
        let mut names = names?;
        names.sort();
        Ok(names)
    }

    /// The metadata of a name; of a symbolic link, its own.
    ///
    /// # Errors
    /// What lstat(2) says.
    pub fn metadata(&self, name: impl AsRef<OsStr>) -> io::Result<Metadata> {
        fs::symlink_metadata(self.at(name)?)
    }

    /// Opens a regular file to read it.
    ///
    /// # Errors
    /// A symbolic link, or anything else that is no regular file; what open(2) says.
    pub fn read(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        self.open_file(name.as_ref(), OpenOptions::new().read(true))
    }

    /// Opens a regular file to read and change it.
    ///
    /// # Errors
    /// Those of [`Folder::read`].
    pub fn modify(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        self.open_file(name.as_ref(), OpenOptions::new().read(true).write(true))
    }

    fn open_file(&self, name: &OsStr, options: &mut OpenOptions) -> io::Result<File> {
        open_regular(&self.at(name)?, options)
    }

    /// Makes a file (0600), which must not exist.
    ///
    /// # Errors
    /// What open(2) says.
    pub fn create(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600).custom_flags(O_NOFOLLOW);
        options.open(self.at(name)?)
    }

    /// Opens a directory in it.
    ///
    /// # Errors
    /// A symbolic link; what open(2) says.
    pub fn inner(&self, name: impl AsRef<OsStr>) -> io::Result<Folder> {
        let name = name.as_ref();
        Folder::open_with(&self.path.join(name), &self.at(name)?, O_NOFOLLOW)
    }

    /// Makes a directory (0700) in it, which must not exist.
    ///
    /// # Errors
    /// What mkdir(2) says.
    pub fn make_inner(&self, name: &str) -> io::Result<Folder> {
        DirBuilder::new().mode(0o700).create(self.at(name)?)?;
        self.inner(name)?.writable()
    }

    /// Moves a file from it to `to`, in place of what has that name there.
    ///
    /// # Errors
    /// What rename(2) says.
    pub fn rename(&self, name: &str, to: &Folder, new: &str) -> io::Result<()> {
        fs::rename(self.at(name)?, to.at(new)?)
    }

    /// Removes a file.
    ///
    /// # Errors
    /// What unlink(2) says.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        fs::remove_file(self.at(name)?)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// What rmdir(2) says.
    pub fn remove_inner(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        fs::remove_dir(self.at(name)?)
    }
}

/// What identifies a file: device and inode.
fn id(meta: &io::Result<Metadata>) -> Option<(u64, u64)> {
    meta.as_ref().ok().map(|m| (m.dev(), m.ino()))
}

/// Opens a regular file whose name may be hostile: a symbolic link in the last part of the path is not followed.
///
/// # Errors
/// A symbolic link, or anything else that is no regular file; what open(2) says.
pub(crate) fn open_regular(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // Before it is opened: opening some devices does something.
    regular(&fs::symlink_metadata(path)?)?;
    let opened = options.custom_flags(O_NOFOLLOW | O_NONBLOCK).open(path);
    let file = opened.map_err(|e| if is_link(path) { a_link() } else { e })?;
    regular(&file.metadata()?)?;
    Ok(file)
}

fn regular(meta: &Metadata) -> io::Result<()> {
    match meta.file_type() {
        t if t.is_file() => Ok(()),
        t if t.is_symlink() => Err(a_link()),
        t if t.is_dir() => Err(io::Error::new(io::ErrorKind::IsADirectory, "a directory")),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
    }
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|m| m.is_symlink())
}

fn a_link() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "a symbolic link, which is not followed")
}

/// The words of an error, without its number.
pub fn reason(e: &io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use testkit::Scratch;

    /// A directory of the calling test's own, and the user that it belongs to.
    fn scratch(name: &str) -> (Scratch, u32) {
        let dir = Scratch::new(name);
        let uid = fs::metadata(&dir).unwrap().uid();
        (dir, uid)
    }

    fn said<T: std::fmt::Debug>(result: io::Result<T>) -> String {
        reason(&result.unwrap_err())
    }

    #[test]
    fn only_regular_files_are_opened_and_nothing_is_waited_for() {
        let (path, _) = scratch("kinds");
        fs::write(path.join("file"), "text").unwrap();
        fs::create_dir(path.join("dir")).unwrap();
        symlink("file", path.join("link")).unwrap();
        symlink("dir", path.join("dir_link")).unwrap();
        let _socket = UnixListener::bind(path.join("socket")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(path.join("fifo")).status().unwrap();
        assert!(made.success());
        let folder = Folder::open(&path).unwrap();
        let mut text = String::new();
        folder.read("file").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        for (name, why) in [
            ("dir", "a directory"),
            ("link", "a symbolic link, which is not followed"),
            ("fifo", "not a regular file"),
            ("socket", "not a regular file"),
            ("nothing", "No such file or directory"),
        ] {
            assert_eq!(said(folder.read(name)), why, "{name}");
            assert_eq!(said(folder.modify(name)), why, "{name}");
        }
        assert_eq!(said(folder.inner("dir_link")), "a symbolic link, which is not followed");
        assert_eq!(said(Folder::open_itself(&path.join("dir_link"))), "a symbolic link, which is not followed");
        assert!(Folder::open(&path.join("dir_link")).is_ok(), "the user may name a link");
        assert_eq!(said(folder.inner("file")), "Not a directory");
        for name in ["", ".", "..", "../x", "dir/x", "/etc/passwd"] {
            assert_eq!(folder.read(name).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{name:?}");
        }
    }

    #[test]
    fn what_is_made_is_new_and_stays_in_the_directory_wherever_its_path_leads() {
        let (path, owner) = scratch("made");
        let (outside, _) = scratch("made-outside");
        fs::write(outside.join("mine"), "mine").unwrap();
        let folder = Folder::make(&path.join("trace"), owner).unwrap();
        // Somebody puts a link in the directory's place.
        fs::rename(path.join("trace"), path.join("moved")).unwrap();
        symlink(&outside, path.join("trace")).unwrap();
        symlink(outside.join("mine"), path.join("moved/planted")).unwrap();
        symlink(outside.join("other"), path.join("moved/dangling")).unwrap();
        for name in ["planted", "dangling"] {
            assert_eq!(folder.create(name).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(folder.make_inner(name).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        }
        folder.create("new").unwrap().write_all(b"new").unwrap();
        let inner = folder.make_inner("inner").unwrap();
        inner.create("deep").unwrap();
        inner.rename("deep", &folder, "planted").unwrap();
        folder.remove("dangling").unwrap();
        folder.remove_inner("inner").unwrap();
        let names: Vec<_> = folder.names().unwrap();
        assert_eq!(names, ["new", "planted"]);
        assert_eq!(fs::read(outside.join("mine")).unwrap(), b"mine");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    }

    #[test]
    fn a_directory_that_exists_must_be_empty_and_ones_own() {
        let (path, owner) = scratch("own");
        assert!(Folder::make(&path, owner).is_ok());
        assert_eq!(said(Folder::make(&path, owner + 1)), "it belongs to another user");
        fs::write(path.join("file"), "").unwrap();
        assert_eq!(Folder::make(&path, owner).unwrap_err().kind(), io::ErrorKind::DirectoryNotEmpty);
        assert_eq!(said(Folder::make(&path.join("file"), owner)), "Not a directory");
        symlink(&path, path.join("link")).unwrap();
        assert_eq!(said(Folder::make(&path.join("link"), owner)), "a symbolic link, which is not followed");
    }
}
