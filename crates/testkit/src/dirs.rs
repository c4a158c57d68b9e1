//! Directories of tests, which go away.

use std::fs;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// What the directories of test processes are called, before the process's id.
const PREFIX: &str = "trapline-tests-";

/// Where the directories of tests are. Those of processes that have ended are removed, once.
fn temp() -> &'static Path {
    static TEMP: OnceLock<PathBuf> = OnceLock::new();
    TEMP.get_or_init(|| {
        let temp = std::env::temp_dir();
        for entry in fs::read_dir(&temp).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let pid = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
            // This process has made none yet: what has its id is of an earlier one.
            if pid.is_some_and(|p| p == std::process::id() || !Path::new(&format!("/proc/{p}")).exists()) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        temp
    })
}

/// The directory of this test process, which everybody can read. It is removed by a later test process.
///
/// # Panics
/// It cannot be made.
pub fn dir() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let dir = temp().join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&dir).expect("a directory for the tests");
        open_to_all(&dir, 0o755);
        dir
    })
}

/// Sets the mode of a file or directory, whatever the umask.
///
/// # Panics
/// It belongs to another user.
pub fn open_to_all(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions");
}

/// A new directory of the calling test's own, with mode 0700. It is removed with this value.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes it, empty. What `name` says is found in its path.
    ///
    /// # Panics
    /// It cannot be made.
    pub fn new(name: &str) -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = temp().join(format!("{PREFIX}{}-{n}-{name}", std::process::id()));
        fs::create_dir(&path).expect("a directory for the test");
        open_to_all(&path, 0o700);
        Scratch(path)
    }

    /// Writes a file in it.
    ///
    /// # Panics
    /// It cannot be written.
    pub fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.0.join(name), bytes).expect("a file of the test");
    }
}

impl Deref for Scratch {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for Scratch {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
