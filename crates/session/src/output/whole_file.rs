//! A file that gets its name when it is whole.
//!
//! ```text
//! DIR/.trapline-PID-N~ ─► written ─► renamed to FILE       a failure, SIGINT or SIGTERM: removed; FILE is as it was
//! ```
//!
//! What is no regular file (a FIFO, a terminal), and a file that the process has open already (`/dev/stdout`), is written directly. So is a file in
//! a directory that takes no new ones.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use sys::passing::Passing;
use sys::signal;

/// Where a file is written until it is whole.
pub struct Unfinished {
    temporary: PathBuf,
    path: PathBuf,
    passing: Passing,
    renamed: bool,
}

/// Opens a file that is to be written whole; none: it is written directly.
///
/// # Errors
/// It cannot be written, or not be made.
pub fn create(path: &Path) -> io::Result<(File, Option<Unfinished>)> {
    let is_link = fs::symlink_metadata(path).is_ok_and(|m| m.is_symlink());
    let (target, is_there) = match fs::canonicalize(path) {
        Ok(target) if is_open(&fs::metadata(&target)?) => return Ok((direct(path)?, None)),
        Ok(target) => {
            let is_regular = fs::metadata(&target)?.is_file();
            if !is_regular {
                return Ok((direct(path)?, None));
            }
            // Whoever may not write it may not replace it either.
            OpenOptions::new().write(true).open(&target)?;
            (target, true)
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound && !is_link => {
            let (dir, name) = (path.parent().filter(|dir| !dir.as_os_str().is_empty()), path.file_name());
            let name = name.ok_or(io::ErrorKind::InvalidFilename)?;
            (fs::canonicalize(dir.unwrap_or(Path::new(".")))?.join(name), false)
        }
        // The link leads to a file that is not there.
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok((direct(path)?, None)),
        Err(e) => return Err(e),
    };
    match beside(&target) {
        Ok((file, unfinished)) => Ok((file, Some(unfinished))),
        Err(_) if is_there => Ok((direct(path)?, None)),
        Err(e) => Err(e),
    }
}

/// Opens a file that may be read while it is written.
///
/// # Errors
/// It cannot be written.
pub fn direct(path: &Path) -> io::Result<File> {
    private().truncate(true).create(true).open(path)
}

/// What a program reads and writes may be secret: only the owner may read the file.
pub fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

/// A new file in the directory of another one.
fn beside(path: &Path) -> io::Result<(File, Unfinished)> {
    const MOST: u32 = 1000;
    let mut n = 0;
    loop {
        let temporary = path.with_file_name(format!(".trapline-{}-{n}~", std::process::id()));
        match private().create_new(true).open(&temporary) {
            Ok(file) => {
                let passing = signal::remove_at_end(&temporary);
                let passing = passing.inspect_err(|_| drop(fs::remove_file(&temporary)))?;
                let path = path.to_path_buf();
                return Ok((file, Unfinished { temporary, path, passing, renamed: false }));
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && n < MOST => n += 1,
            Err(e) => return Err(e),
        }
    }
}

/// Whether the process has this file open.
fn is_open(file: &fs::Metadata) -> bool {
    let of = |m: &fs::Metadata| (m.dev(), m.ino());
    let all = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    all.filter_map(|entry| fs::metadata(entry.path()).ok()).any(|open| of(&open) == of(file))
}

impl Unfinished {
    /// It is whole: it gets its name.
    ///
    /// # Errors
    /// The directory no longer takes it.
    pub fn finish(mut self) -> io::Result<()> {
        fs::rename(&self.temporary, &self.path)?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.renamed {
            let _ = fs::remove_file(&self.temporary);
        }
        self.passing.done();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn names(dir: &Path) -> Vec<String> {
        let name = |e: io::Result<fs::DirEntry>| e.map(|e| e.file_name().to_string_lossy().into_owned());
        let mut all: Vec<String> = fs::read_dir(dir).expect("a directory").filter_map(|e| name(e).ok()).collect();
        all.sort();
        all
    }

    #[test]
    fn a_file_has_its_name_when_it_is_whole() {
        let scratch = testkit::Scratch::new("whole-file");
        let dir = scratch.to_path_buf();
        let path = dir.join("out");
        for text in ["first", "second"] {
            let before = fs::read(&path).ok();
            let (mut file, unfinished) = create(&path).expect("a file");
            file.write_all(text.as_bytes()).expect("written");
            assert_eq!(fs::read(&path).ok(), before);
            unfinished.expect("a regular file").finish().expect("renamed");
            assert_eq!(fs::read(&path).expect("a file"), text.as_bytes());
            assert_eq!(fs::metadata(&path).expect("a file").mode() & 0o7777, 0o600);
        }
        // What is not finished leaves the old one.
        drop(create(&path).expect("a file"));
        assert_eq!((names(&dir), fs::read(&path).expect("a file")), (vec!["out".to_owned()], b"second".to_vec()));
        // A link stays one.
        std::os::unix::fs::symlink("out", dir.join("link")).expect("a link");
        let (mut file, unfinished) = create(&dir.join("link")).expect("a file");
        file.write_all(b"third").expect("written");
        unfinished.expect("a regular file").finish().expect("renamed");
        assert_eq!(fs::read(&path).expect("a file"), b"third");
        assert!(fs::symlink_metadata(dir.join("link")).expect("a link").is_symlink());
    }

    #[test]
    fn open_files_and_others_than_regular_ones_are_written_directly() {
        let dir = testkit::Scratch::new("whole-file-direct");
        assert!(create(Path::new("/dev/null")).expect("a device").1.is_none());
        let open = File::create(dir.join("open")).expect("a file");
        let same = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&open));
        assert!(create(Path::new(&same)).expect("a file").1.is_none());
        drop(open);
        assert_eq!(create(&dir.join("none/out")).err().map(|e| e.kind()), Some(io::ErrorKind::NotFound));
    }
}
