//! The directory of a trace that is being written, and that of a flight recorder.

use super::Store;
use crate::end;
use crate::folder::Folder;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A directory of a trace that is being written.
#[derive(Debug)]
pub struct Dir {
    folder: Folder,
    own: Folder,
    /// Where the end record will be: zeros, so that it finds room on a full disk.
    room: Option<File>,
    /// Bytes of `room`.
    reserved: u64,
    /// Bytes of the names of flags, and of them and the metadata.
    labels: u64,
    described: u64,
    /// Held while the trace is written.
    _lock: File,
}

/// The directory of what is trapline's own; other readers leave it alone.
pub const OWN: &str = ".trapline";
/// The directory in it where names of functions are, which `trapline pack` writes.
pub const PACKS: &str = "symbols";
/// The name of the end record during the recording.
const ROOM: &str = "end.new";
/// Zeros that are written at a time.
const ZEROS: [u8; 4096] = [0; 4096];

impl Dir {
    /// Makes the directory (0700), or takes an empty one that belongs to the user `owner`. It is no trace before
    /// [`Dir::describe`].
    pub fn create(path: &Path, owner: u32) -> io::Result<Dir> {
        Dir::begin_in(Folder::make(path, owner)?)
    }

    fn begin_in(folder: Folder) -> io::Result<Dir> {
        let own = folder.make_inner(OWN)?;
        let lock = own.create("lock")?;
        lock.lock()?;
        Ok(Dir { folder, own, room: None, reserved: 0, labels: 0, described: 0, _lock: lock })
    }

    /// Writes the metadata, and names of flags ([`crate::labels::json`]; of a trace without flags, none): before the first packet. `room` is what the end record will need, without what
    /// it says of streams.
    pub fn describe(&mut self, metadata: &str, labels: &str, room: u64) -> io::Result<()> {
        if !labels.is_empty() {
            self.own.create("labels.json")?.write_all(labels.as_bytes())?;
        }
        self.labels = labels.len() as u64;
        // Under another name until it is whole.
        self.own.create("metadata")?.write_all(metadata.as_bytes())?;
        self.own.rename("metadata", &self.folder, "metadata")?;
        self.described = self.labels + metadata.len() as u64;
        self.room = Some(self.own.create(ROOM)?);
        // Where there is no room for it now, there may be at the end.
        let _ = self.reserve(room);
        Ok(())
    }

    /// Writes the metadata anew: it has further classes, whose packets follow. `more`: room that the end record needs for them.
    pub fn describe_again(&mut self, metadata: &str, more: u64) -> io::Result<()> {
        self.own.create("metadata")?.write_all(metadata.as_bytes())?;
        self.own.rename("metadata", &self.folder, "metadata")?;
        self.described = self.labels + metadata.len() as u64;
        let _ = self.reserve(more);
        Ok(())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    fn reserve(&mut self, more: u64) -> io::Result<()> {
        let Some(file) = &self.room else { return Ok(()) };
        for at in (0..more).step_by(ZEROS.len()) {
            let n = ZEROS.len().min((more - at) as usize);
            file.write_all_at(&ZEROS[..n], self.reserved)?;
            self.reserved += n as u64;
        }
        Ok(())
    }

    /// Writes the end record: as much of it as has room, where `more` bytes may be used in addition to
    /// what was reserved for it.
    pub fn end(&mut self, text: &str, more: u64) -> io::Result<()> {
        let Some(file) = self.room.take() else { return Err(io::ErrorKind::NotFound.into()) };
        let mut said = end::fit(text, self.reserved.saturating_add(more));
        if let Err(e) = file.write_all_at(said.as_bytes(), 0) {
            said = end::fit(said, self.reserved);
            if said.is_empty() {
                return Err(e);
            }
            file.write_all_at(said.as_bytes(), 0)?;
        }
        file.set_len(said.len() as u64)?;
        self.reserved = said.len() as u64;
        self.own.rename(ROOM, &self.own, "end")
    }
}

impl Store for Dir {
    type File = File;
    fn begin(&mut self) -> io::Result<()> {
        self.reserve(end::LINE)
    }
    fn create(&mut self, name: &str) -> io::Result<File> {
        self.folder.create(name)
    }
    fn append(&mut self, file: &mut File, at: u64, bytes: &[u8]) -> io::Result<()> {
        file.write_all_at(bytes, at).inspect_err(|_| {
            let _ = file.set_len(at);
        })
    }
    fn rewrite(&mut self, name: &str, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.folder.modify(name)?.write_all_at(bytes, at)
    }
    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.folder.remove(name)
    }
    fn overhead(&self) -> u64 {
        self.described + self.reserved
    }
}

/// The directory of a flight recorder: each snapshot is a trace in it.
#[derive(Debug)]
pub struct Snapshots {
    folder: Folder,
    written: u32,
}

impl Snapshots {
    /// Makes the directory (0700), or takes an empty one that belongs to the user `owner`.
    pub fn create(path: &Path, owner: u32) -> io::Result<Snapshots> {
        Ok(Snapshots { folder: Folder::make(path, owner)?, written: 0 })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The name of the snapshot that comes next.
    pub fn next_name(&self) -> String {
        format!("snapshot-{}", self.written + 1)
    }

    /// Begins a snapshot in a directory of its own, which must not exist.
    pub fn begin(&mut self) -> io::Result<Dir> {
        let name = self.next_name();
        self.written += 1;
        Dir::begin_in(self.folder.make_inner(&name)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of the calling test's own, and who runs it.
    fn scratch(name: &str) -> (testkit::Scratch, u32) {
        use std::os::unix::fs::MetadataExt;
        let dir = testkit::Scratch::new(name);
        let uid = std::fs::metadata(&dir).unwrap().uid();
        (dir, uid)
    }

    #[test]
    fn a_directory_is_private_and_must_be_empty() {
        use std::os::unix::fs::PermissionsExt;
        let (base, me) = scratch("private");
        let path = base.join("trace");
        let mut dir = Dir::create(&path, me).unwrap();
        dir.describe("/* CTF 1.8 */\n", "{}", 5000).unwrap();
        let mut file = dir.create("cpu_0").unwrap();
        dir.append(&mut file, 0, b"abc").unwrap();
        let mode = |name: &str| std::fs::metadata(path.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(""), mode("metadata"), mode("cpu_0"), mode(OWN)), (0o700, 0o600, 0o600, 0o700));
        assert_eq!(Dir::create(&path, me).unwrap_err().kind(), io::ErrorKind::DirectoryNotEmpty);
        let on_disk = |name: &str| std::fs::metadata(path.join(OWN).join(name)).map(|m| m.len());
        assert_eq!(on_disk("end.new").unwrap(), 5000);
        let described = on_disk("labels.json").unwrap() + 14;
        dir.begin().unwrap();
        assert_eq!(dir.overhead(), described + on_disk("end.new").unwrap());
        dir.rewrite("cpu_0", 1, b"x").unwrap();
        assert_eq!(std::fs::read(path.join("cpu_0")).unwrap(), b"axc");
        dir.end("trapline 1\nmore\n", 0).unwrap();
        assert_eq!(std::fs::read(path.join(OWN).join("end")).unwrap(), b"trapline 1\nmore\n");
        assert!(on_disk("end.new").is_err());
        // Lines without room are omitted, where no more bytes may be used.
        let mut dir = Dir::create(&base.join("small"), me).unwrap();
        dir.describe("", "", 14).unwrap();
        dir.end("trapline 1\nmore\n", 1).unwrap();
        assert_eq!(std::fs::read(base.join("small").join(OWN).join("end")).unwrap(), b"trapline 1\n");
    }

    #[test]
    fn snapshots_are_new_directories_whatever_was_planted() {
        let (base, me) = scratch("snapshots");
        let outside = base.join("outside");
        std::fs::create_dir(&outside).unwrap();
        let mut flight = Snapshots::create(&base.join("flight"), me).unwrap();
        std::os::unix::fs::symlink(&outside, base.join("flight/snapshot-1")).unwrap();
        assert_eq!(flight.next_name(), "snapshot-1");
        assert_eq!(flight.begin().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(flight.next_name(), "snapshot-2");
        flight.begin().unwrap().describe("", "", 0).unwrap();
        assert!(base.join("flight/snapshot-2/metadata").exists());
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    }
}
