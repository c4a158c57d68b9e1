//! Which file is mapped, and how it is opened: the very file, or none.

use super::processes::Named;
use super::records::MappedFile;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What distinguishes modules.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    BuildId(Vec<u8>),
    Stat(Stat),
    /// The vDSO of this size, which all processes share.
    Vdso(u64),
    /// The rules of stubs of this variant.
    Stubs(u32),
}

/// A file without a build id: its contents are those of this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stat {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl Stat {
    fn of(meta: &Metadata) -> Stat {
        Stat { device: meta.dev(), inode: meta.ino(), size: meta.size(), changed: (meta.mtime(), meta.mtime_nsec()) }
    }
}

/// A mapping of a process, and the file that it may be opened by.
#[derive(Clone, Debug)]
pub(super) struct Mapped<'m> {
    pub pid: u32,
    pub range: (u64, u64),
    pub path: &'m [u8],
    pub file: &'m MappedFile,
}

impl Mapped<'_> {
    /// Where the file may be, the surest place first: what is mapped there (needs CAP_CHECKPOINT_RESTORE); the path as the process sees it,
    /// and as trapline does, where the process has ended.
    fn places(&self) -> Vec<PathBuf> {
        let (pid, (start, end)) = (self.pid, self.range);
        let mut places = vec![PathBuf::from(format!("/proc/{pid}/map_files/{start:x}-{end:x}"))];
        if Named::of(self.path) == Named::File {
            let mut inside = format!("/proc/{pid}/root").into_bytes();
            inside.extend(self.path);
            places.push(OsStr::from_bytes(&inside).into());
            places.push(OsStr::from_bytes(self.path).into());
        }
        places
    }

    /// Whether a file that was found is the one that is mapped. What `map_files` leads to is.
    fn is(&self, nth: usize, meta: &Metadata, id: impl FnOnce() -> Option<Vec<u8>>) -> bool {
        match self.file {
            MappedFile::BuildId(want) => id().as_ref() == Some(want),
            MappedFile::Inode(want) => nth == 0 || sys::maps::identity(meta) == *want,
        }
    }

    /// What the file is known by, if it need not be opened for that.
    pub fn stat(&self) -> Option<Stat> {
        let found = self.places().iter().enumerate().find_map(|(nth, place)| {
            let meta = fs::metadata(place).ok()?;
            (meta.is_file() && self.is(nth, &meta, || None)).then_some(meta)
        });
        found.map(|meta| Stat::of(&meta))
    }

    /// Opens it.
    ///
    /// # Errors
    /// It is not there any more, or may not be read.
    pub fn open(&self) -> io::Result<Opened> {
        let mut error = io::Error::from(io::ErrorKind::NotFound);
        for (nth, place) in self.places().iter().enumerate() {
            match Opened::at(place) {
                Ok(opened) => {
                    if self.is(nth, &opened.meta, || opened.build_id.clone()) {
                        return Ok(opened);
                    }
                    error = io::Error::other("another file has taken its place");
                }
                Err(e) => error = e,
            }
        }
        Err(error)
    }
}

/// A file, and what it is known by.
pub(super) struct Opened {
    pub file: File,
    meta: Metadata,
    build_id: Option<Vec<u8>>,
}

impl Opened {
    /// Opens a regular file.
    pub fn at(path: &Path) -> io::Result<Opened> {
        let file = sys::maps::open_regular(path)?;
        let meta = file.metadata()?;
        // The kernel's records have 20 bytes at most.
        let build_id = symbols::build_id::of(&file).filter(|id| (1..=20).contains(&id.len()));
        Ok(Opened { file, meta, build_id })
    }

    pub fn stat(&self) -> Stat {
        Stat::of(&self.meta)
    }

    pub fn key(&self) -> Key {
        self.build_id.clone().map_or_else(|| Key::Stat(self.stat()), Key::BuildId)
    }
}

/// The bytes of the vDSO, if its size is this.
pub(super) fn vdso(size: u64) -> io::Result<Vec<u8>> {
    let own = sys::maps::of(sys::process::own_pid())?.into_iter().find(|m| m.path == b"[vdso]");
    let own = own.filter(|m| m.range.1 - m.range.0 == size).ok_or(io::ErrorKind::NotFound)?;
    let mut bytes = vec![0; size as usize];
    File::open("/proc/self/mem")?.read_exact_at(&mut bytes, own.range.0)?;
    Ok(bytes)
}
