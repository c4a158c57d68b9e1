//! Writes packs, which name the functions that a trace has addresses of, into the directory of the trace.
//!
//! ```text
//!  DIR/.trapline/symbols/NAME.pack.new  ── written, synced, renamed ──►  NAME.pack
//! ```
//!
//! Nothing else in the directory is changed, and no link in it is followed.

use crate::folder::{Folder, reason};
use crate::repair::to_change;
use crate::store::{OWN, PACKS};
use std::io::{self, Write};
use std::path::Path;

/// What the name of a pack ends with, and of one that is being written.
const SUFFIX: &str = ".pack";
const NEW: &str = ".new";

/// Whether a name is that of a pack, or of one that was not finished.
pub(crate) fn is_pack(name: &str) -> bool {
    let stem = name.strip_suffix(NEW).unwrap_or(name).strip_suffix(SUFFIX);
    stem.is_some_and(|s| !s.is_empty() && s.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'))
}

/// Writes packs, each a name and its bytes, in place of those that have the same names. The trace must belong to the user `owner`.
///
/// # Errors
/// A message: `dir` is not a trace, belongs to another user, is still being recorded, or could not be written to.
pub fn write(dir: &Path, owner: u32, packs: &[(&str, &[u8])]) -> Result<(), String> {
    let (folder, .., _lock) = to_change(dir, owner)?;
    let place = own(&folder, OWN, owner).and_then(|f| own(&f, PACKS, owner));
    let place = place.map_err(|e| format!("{OWN}/{PACKS}: {}", reason(&e)))?;
    for (name, bytes) in packs.iter().filter(|(name, _)| is_pack(name)) {
        replace(&place, name, bytes).map_err(|e| format!("{OWN}/{PACKS}/{name}: {}", reason(&e)))?;
    }
    Ok(())
}

/// A directory in it, which is made where it is missing.
fn own(folder: &Folder, name: &str, owner: u32) -> io::Result<Folder> {
    let inner = match folder.make_inner(name) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => folder.inner(name)?.writable()?,
        made => made?,
    };
    inner.check_owner(owner)?;
    Ok(inner)
}

fn replace(place: &Folder, name: &str, bytes: &[u8]) -> io::Result<()> {
    let new = format!("{name}{NEW}");
    match place.remove(&new) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let mut file = place.create(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    place.rename(&new, place, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use testkit::Scratch;

    #[test]
    fn names_are_those_of_packs() {
        assert!(["ab12.pack", "path-00ff.pack", "ab.pack.new"].iter().all(|n| is_pack(n)));
        assert!(["", ".pack", "a/b.pack", "..pack", "lock", "a.new", "a.pack.old"].iter().all(|n| !is_pack(n)));
    }

    #[test]
    fn packs_are_new_files_whatever_was_planted() {
        let dir = Scratch::new("packs");
        let folder = Folder::open(&dir).unwrap();
        let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&*dir).unwrap());
        std::fs::write(dir.join("mine"), "mine").unwrap();
        let place = own(&own(&folder, OWN, owner).unwrap(), PACKS, owner).unwrap();
        for name in ["ab.pack", "ab.pack.new"] {
            symlink(dir.join("mine"), dir.join(OWN).join(PACKS).join(name)).unwrap();
        }
        for text in ["one", "two"] {
            replace(&place, "ab.pack", text.as_bytes()).unwrap();
            let path = dir.join(OWN).join(PACKS).join("ab.pack");
            let meta = std::fs::symlink_metadata(&path).unwrap();
            assert!(meta.is_file() && meta.permissions().mode() & 0o777 == 0o600);
            assert_eq!(std::fs::read(path).unwrap(), text.as_bytes());
        }
        assert_eq!(place.names().unwrap(), ["ab.pack"]);
        assert_eq!(std::fs::read(dir.join("mine")).unwrap(), b"mine");
        // A link in place of the directory is not followed.
        symlink("/tmp", dir.join("link")).unwrap();
        assert!(own(&folder, "link", owner).is_err());
        assert!(write(&dir, owner, &[]).unwrap_err().contains("not a trace"));
    }
}
