//! Removes a trace of trapline from a directory, to make room for another one.
//!
//! Everything is checked before anything is removed: the directory must hold what a recorder writes and nothing else. No link is
//! followed, and none is removed: if there is one, nothing is removed.

use crate::folder::{Folder, reason};
use crate::packet::{SIGN, sign};
use crate::packs::is_pack;
use crate::store::{OWN, PACKS};
use crate::{generic, trace};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What is in the directory of what is trapline's own.
const OWN_FILES: [&str; 5] = ["lock", "end", "end.new", "metadata", "labels.json"];

/// Removes the trace in `dir`, or the snapshots of a flight recorder; `dir` stays. It must belong to the user `owner`. One that
/// does not exist, or is empty, is left as it is.
///
/// # Errors
/// A message: there are other files in it, it belongs to another user, is still being recorded, or could not be removed.
pub fn clear(dir: &Path, owner: u32) -> Result<(), String> {
    let folder = match Folder::open_itself(dir).and_then(Folder::writable) {
        Ok(folder) => folder,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(reason(&e)),
    };
    let found = look(&folder, owner)?;
    remove(&folder, &found).map_err(|e| reason(&e))
}

/// What is in a directory.
#[derive(Default)]
struct Contents {
    files: Vec<OsString>,
    /// Of the recorder's own directory.
    own: Option<Vec<OsString>>,
    /// Of the directory of packs in that.
    packs: Option<Vec<OsString>>,
    snapshots: Vec<(OsString, Contents)>,
}

fn look(folder: &Folder, owner: u32) -> Result<Contents, String> {
    let words = |e: io::Error| reason(&e);
    let alone = |name: &OsStr| format!("it is not a trace of trapline alone: {} is in it", name.to_string_lossy());
    folder.check_owner(owner).map_err(words)?;
    if trace::lock_of(folder).is_ok_and(|l| l.try_lock_shared().is_err()) {
        return Err("it is still being recorded".into());
    }
    let sign = sign_of(folder);
    let mut found = Contents::default();
    for name in folder.names().map_err(words)? {
        let meta = folder.metadata(&name).map_err(words)?;
        if name == OWN && meta.is_dir() {
            let inner = folder.inner(&name).map_err(words)?;
            let mut names = inner.names().map_err(words)?;
            if let Some(at) = names.iter().position(|n| n == PACKS) {
                names.remove(at);
                let packs = inner.inner(PACKS).map_err(words)?;
                let all = packs.names().map_err(words)?;
                let is_pack =
                    |n: &OsString| n.to_str().is_some_and(is_pack) && packs.metadata(n).is_ok_and(|m| m.is_file());
                if let Some(other) = all.iter().find(|n| !is_pack(n)) {
                    return Err(alone(&Path::new(OWN).join(PACKS).join(other).into_os_string()));
                }
                found.packs = Some(all);
            }
            let plain = |n: &&OsString| inner.metadata(n).is_ok_and(|m| m.is_file());
            if let Some(other) = names.iter().find(|n| !OWN_FILES.iter().any(|k| *n == k) || !plain(n)) {
                return Err(alone(&Path::new(OWN).join(other).into_os_string()));
            }
            found.own = Some(names);
        } else if name.as_bytes().starts_with(b"snapshot-") && meta.is_dir() {
            let inner = folder.inner(&name).map_err(words)?;
            let contents = look(&inner, owner)?;
            found.snapshots.push((name, contents));
        } else if meta.is_file() && (name == "metadata" || is_stream(folder, &name, sign.as_ref())) {
            found.files.push(name);
        } else {
            return Err(alone(&name));
        }
    }
    if found.own.is_none() && !found.files.is_empty() {
        return Err("it is not a trace of trapline".into());
    }
    Ok(found)
}

/// The bytes that every packet of the trace begins with; `None` if its metadata is not from trapline.
fn sign_of(folder: &Folder) -> Option<[u8; SIGN]> {
    let metadata = generic::read_metadata(folder).ok()?;
    let format = trace::native_format(&metadata).ok()??;
    metadata.uuid.as_ref().map(|uuid| sign(uuid, format))
}

/// Whether a file is a stream of the trace: it begins with its sign, or with what there is of it; or it is one that was made and
/// not written yet.
fn is_stream(folder: &Folder, name: &OsStr, sign: Option<&[u8; SIGN]>) -> bool {
    let mut head = Vec::new();
    let read = folder.read(name).and_then(|file| file.take(SIGN as u64).read_to_end(&mut head));
    let named = ["cpu_", "probe_", "thread_", "process_", "tracer", "maps"]
        .iter()
        .any(|n| name.as_bytes().starts_with(n.as_bytes()));
    match read {
        Ok(0) => named,
        Ok(n) => sign.is_some_and(|s| head == s[..n]),
        Err(_) => false,
    }
}

fn remove(folder: &Folder, found: &Contents) -> io::Result<()> {
    for (name, contents) in &found.snapshots {
        remove(&folder.inner(name)?, contents)?;
        folder.remove_inner(name)?;
    }
    // The metadata last: by it what is left can be recognised if this ends in between.
    let (metadata, streams): (Vec<_>, Vec<_>) = found.files.iter().partition(|name| *name == "metadata");
    streams.into_iter().chain(metadata).try_for_each(|name| folder.remove(name))?;
    if let Some(names) = &found.own {
        let own = folder.inner(OWN)?;
        if let Some(packs) = &found.packs {
            let place = own.inner(PACKS)?;
            packs.iter().try_for_each(|name| place.remove(name))?;
            own.remove_inner(PACKS)?;
        }
        names.iter().try_for_each(|name| own.remove(name))?;
        folder.remove_inner(OWN)?;
    }
    Ok(())
}
