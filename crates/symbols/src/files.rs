//! Where the bytes of modules come from. A [`Files`] is asked; this crate has one, [`crate::finder::Finder`], and the owner of a running
//! process may have a better one, which opens what is mapped.

use crate::ReadAt;
use crate::debug_link::{DebugLink, SharedLink};
use crate::dwarf::split::Split;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The time and size of a file, which distinguish versions of it that have no build id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Bytes.
    pub size: u64,
    /// When its bytes were last changed, ns since 1970.
    pub modified: i64,
}

/// What is known of a file that a process has mapped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Its path as the process, or the kernel, has it; `[vdso]`.
    pub path: PathBuf,
    /// Its build id; empty where it has none, or nobody knows.
    pub build_id: Vec<u8>,
    /// What it was when it was mapped, where that is known. It counts only where there is no build id.
    pub stamp: Option<Stamp>,
}

impl Identity {
    /// Of a path with a build id, which may be empty.
    pub fn new(path: impl Into<PathBuf>, build_id: &[u8]) -> Identity {
        Identity { path: path.into(), build_id: build_id.to_vec(), stamp: None }
    }

    /// Of what the kernel calls a mapping; none for memory that has no file with code: `//anon`, `[heap]`, `/memfd:jit (deleted)`, shared
    /// memory. Functions there are those of a just-in-time compiler.
    pub fn of_mapping(path: &[u8], build_id: &[u8]) -> Option<Identity> {
        use std::os::unix::ffi::OsStrExt;
        let is_memory = |p: &[u8]| {
            ["//anon", "/memfd:", "/dev/zero", "/anon_hugepage", "/SYSV", "/dev/shm/"]
                .iter()
                .any(|m| p.starts_with(m.as_bytes()))
        };
        let is_file = path.starts_with(b"/") && !(is_memory(path) && build_id.is_empty());
        (is_file || path == b"[vdso]").then(|| Identity::new(std::ffi::OsStr::from_bytes(path), build_id))
    }

    /// The build id in hexadecimal.
    pub fn hex(&self) -> String {
        hex(&self.build_id)
    }
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, b| {
        let _ = write!(text, "{b:02x}");
        text
    })
}

/// A file that is open.
#[derive(Clone)]
pub struct OpenFile {
    /// Where it was found.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: Rc<dyn ReadAt>,
}

/// Opens files for a [`crate::symbolizer::Symbolizer`]. Whoever implements it decides which paths are opened, with whose rights; the
/// symbolizer compares build ids again.
pub trait Files {
    /// The file that was mapped.
    fn program(&self, wanted: &Identity) -> Option<OpenFile>;

    /// The file with the debug information of a file that has none, which may name it.
    fn debug(&self, wanted: &Identity, link: Option<&DebugLink>) -> Option<OpenFile> {
        let _ = (wanted, link);
        None
    }

    /// The file that the file at `by` shares with others.
    fn shared(&self, link: &SharedLink, by: &Path) -> Option<OpenFile> {
        let _ = (link, by);
        None
    }

    /// Files that may be a split one of the program at `by`: their contents decide.
    fn split(&self, wanted: &Split, by: &Path) -> Vec<OpenFile> {
        let _ = (wanted, by);
        Vec::new()
    }

    /// What was packed for it ([`crate::pack`]).
    fn pack(&self, wanted: &Identity) -> Option<Vec<u8>> {
        let _ = wanted;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_without_a_file_is_no_module() {
        for path in [
            "//anon",
            "[heap]",
            "[stack]",
            "[anon: jit]",
            "",
            "/memfd:jit (deleted)",
            "/dev/zero (deleted)",
            "/SYSV00000000",
        ] {
            assert_eq!(Identity::of_mapping(path.as_bytes(), &[]), None, "{path}");
        }
        for path in ["/bin/true", "[vdso]", "/tmp/x (deleted)"] {
            assert_eq!(Identity::of_mapping(path.as_bytes(), &[1, 0xab]).unwrap().hex(), "01ab", "{path}");
        }
        // A program that runs from memory is a file, and has a build id.
        assert!(Identity::of_mapping(b"/memfd:program (deleted)", &[1]).is_some());
    }
}
