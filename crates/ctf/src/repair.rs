//! Removes what a killed recording, a crash of the machine or a truncated copy has left after the last whole packet of a
//! stream, for readers that refuse a file with a truncated packet. Nothing but this and [`crate::packs`] changes a trace that has been
//! written.
//!
//! Only regular files that belong to the caller and begin like the streams of this trace are truncated. Nothing else is
//! changed: what was lost is reported as missing after a repair too.

use crate::folder::{Folder, reason};
use crate::format::Format;
use crate::native::{Damages, Data, Truncated};
use crate::{generic, trace};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// What was done.
#[derive(Debug)]
pub struct Repaired {
    /// What was cut off.
    pub cuts: Vec<Truncated>,
    /// Damage before other packets, which stays.
    pub damage: Damages,
}

/// How often the lock is tried: a reader of the trace holds it for a moment.
const TRIES: u32 = 20;

/// Repairs the trace in `dir`, which must belong to the user `owner`.
///
/// # Errors
/// A message: `dir` is not a trace, belongs to another user, is still being recorded, or could not be read or truncated.
pub fn repair(dir: &Path, owner: u32) -> Result<Repaired, String> {
    let (folder, uuid, format, _lock) = to_change(dir, owner)?;
    let data = Data::open(&folder, &uuid, format).map_err(|e| e.to_string())?;
    for truncated in &data.truncated {
        let name = truncated.path.file_name().unwrap_or_default();
        cut(&folder, name, truncated, owner).map_err(|e| format!("{}: {}", name.to_string_lossy(), reason(&e)))?;
    }
    Ok(Repaired { damage: data.damage(), cuts: data.truncated })
}

/// Opens a trace that is to be changed, and locks out all other writers as long as what is returned lives.
pub(crate) fn to_change(dir: &Path, owner: u32) -> Result<(Folder, [u8; 16], Format, Option<File>), String> {
    let folder = Folder::open_itself(dir).and_then(Folder::writable).map_err(|e| reason(&e))?;
    folder.check_owner(owner).map_err(|e| reason(&e))?;
    if folder.metadata("metadata").is_err_and(|e| e.kind() == io::ErrorKind::NotFound) {
        return Err("not a trace: it has no metadata".into());
    }
    let metadata = generic::read_metadata(&folder).map_err(|e| e.to_string())?;
    let format = trace::native_format(&metadata).map_err(|e| e.to_string())?;
    let (Some(uuid), Some(format)) = (metadata.uuid, format) else {
        return Err("not a trace of trapline".into());
    };
    let lock = lock(&folder)?;
    Ok((folder, uuid, format, lock))
}

/// Locks out all other writers; a copy without the recorder's own directory has no lock, and no writer.
fn lock(folder: &Folder) -> Result<Option<File>, String> {
    let lock = match trace::lock_of(folder) {
        Ok(lock) => lock,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(format!(".trapline/lock: {}", reason(&e))),
    };
    for _ in 0..TRIES {
        if lock.try_lock().is_ok() {
            return Ok(Some(lock));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err("it is still being recorded".into())
}

fn cut(folder: &Folder, name: &OsStr, truncated: &Truncated, owner: u32) -> io::Result<()> {
    let file = folder.modify(name)?;
    let meta = file.metadata()?;
    if meta.uid() != owner {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"));
    }
    if meta.len() != truncated.at + truncated.rest {
        return Err(io::Error::other("it has changed in the meantime"));
    }
    file.set_len(truncated.at)?;
    file.sync_all()
}
