//! Packs for a copy of a trace in which not all texts are shown: they have other names, and are found by other identities.
//!
//! A file with a hidden path is identified by its build id; without one, by its device and inode, in the field of its stamp.

use super::{jit, packs};
use crate::redact::MARK;
use events::Event;
use events::generated::P_MAP;
use events::rules::{Rules, What, bytes, string};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use symbols::demangle;
use symbols::files::{Identity, Stamp};
use symbols::pack::{self, Pack};

/// The most files without build ids that are remembered.
const MOST: usize = 1 << 16;

/// A file that was mapped and whose path is not shown; none where all of the path is, or of memory that is no file.
pub fn hidden(ev: &Event<'_>) -> Option<Identity> {
    let (path, build_id) = (ev.bytes_of("path"), ev.bytes_of("build_id"));
    if !path.windows(MARK.len()).any(|part| part == MARK.as_bytes()) {
        return None;
    }
    Some(identity(path, build_id, (ev.value_of("dev"), ev.value_of("inode"))))
}

fn identity(path: &[u8], build_id: &[u8], (device, inode): (u64, u64)) -> Identity {
    let stamp = build_id.is_empty().then_some(Stamp { size: device, modified: inode as i64 });
    Identity { stamp, ..Identity::new(OsStr::from_bytes(path), build_id) }
}

/// Rules about names as they are shown, for those that linkers know: what is replaced is no linker's name any more.
#[derive(Debug)]
pub struct AsShown<'r>(pub &'r dyn Rules);

impl Rules for AsShown<'_> {
    fn text(&self, what: What, text: &[u8]) -> Option<Vec<u8>> {
        let demangled = std::str::from_utf8(text).ok().filter(|_| what == What::Name).and_then(demangle::of);
        let Some(names) = demangled else { return self.0.text(what, text) };
        let plain = names.plain.as_bytes();
        let in_others = || [text, names.full.as_bytes()].iter().any(|name| self.0.text(what, name).is_some());
        self.0.text(what, plain).or_else(|| in_others().then(|| plain.to_vec()))
    }
}

/// The texts of a copy.
pub struct Texts<'r> {
    rules: &'r dyn Rules,
    /// Files without build ids whose paths are not shown: devices and inodes.
    hidden: BTreeMap<Vec<u8>, BTreeSet<(u64, u64)>>,
}

impl<'r> Texts<'r> {
    /// As these rules want them.
    pub fn new(rules: &'r dyn Rules) -> Texts<'r> {
        Texts { rules, hidden: BTreeMap::new() }
    }

    /// Learns what was mapped, of an event as it was.
    pub fn note(&mut self, ev: &Event<'_>) {
        let (path, build_id) = (ev.bytes_of("path"), ev.bytes_of("build_id"));
        let is_file = ev.schema.id == P_MAP.id && Identity::of_mapping(path, build_id).is_some();
        if is_file && build_id.is_empty() && self.hidden.len() < MOST && self.rules.text(What::Path, path).is_some() {
            let place = (ev.value_of("dev"), ev.value_of("inode"));
            self.hidden.entry(path.to_vec()).or_default().insert(place);
        }
    }

    /// Packs of the copy: a name and bytes each, of those that the trace has and of those that could be made. A file that only a pack tells
    /// from memory has one in any case.
    pub fn packs(&self, trace: &Path, made: &[packs::Packed]) -> BTreeMap<String, Vec<u8>> {
        let none = self.hidden.iter().flat_map(|(path, places)| places.iter().map(|place| self.identity(path, *place)));
        let nothing =
            |of: Identity| (pack::file_name(&of), Pack::default().renamed(&of, &str::to_owned, &str::to_owned));
        let mut all: BTreeMap<_, _> = none.map(nothing).collect();
        let made = made.iter().map(|p| (p.file.clone(), p.bytes.clone()));
        for (name, old) in packs::all(trace).into_iter().chain(made) {
            all.extend(self.renamed(name, &old));
        }
        all
    }

    fn identity(&self, path: &[u8], place: (u64, u64)) -> Identity {
        identity(&bytes(self.rules, What::Path, path), &[], place)
    }

    fn renamed(&self, name: String, old: &[u8]) -> Vec<(String, Vec<u8>)> {
        let Ok(pack) = Pack::parse(old) else {
            return jit::renamed(name, old, &|old| self.name(old)).into_iter().collect();
        };
        let is = pack.identity();
        let path = is.path.as_os_str().as_bytes();
        let identities = if *is == packs::kernel_identity() || self.rules.text(What::Path, path).is_none() {
            vec![is.clone()]
        } else if is.build_id.is_empty() {
            let places = self.hidden.get(path).into_iter().flatten();
            places.map(|place| self.identity(path, *place)).collect()
        } else {
            vec![identity(&bytes(self.rules, What::Path, path), &is.build_id, (0, 0))]
        };
        let file = |old: &str| string(self.rules, What::Path, old).into_owned();
        let new = |of: Identity| (pack::file_name(&of), pack.renamed(&of, &|old| self.name(old), &file));
        identities.into_iter().map(new).collect()
    }

    /// A linker's name as it is shown, where rules are about that.
    fn name(&self, old: &str) -> String {
        string(self.rules, What::Name, old).into_owned()
    }
}
