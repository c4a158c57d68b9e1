//! Build ids of mapped files, where the kernel does not report them: read once per file.

use std::collections::HashMap;
use sys::perf::record::Mapping;

/// Files whose build ids are kept.
const MOST: usize = 4096;

/// Build ids by device and inode; empty for files that have none.
#[derive(Default)]
pub struct BuildIds(HashMap<(u32, u32, u64), Vec<u8>>);

impl BuildIds {
    /// The build id of the file of a mapping; empty where there is none, or where it cannot be read (any more).
    pub fn of(&mut self, m: &Mapping<'_>, file: (u32, u32, u64)) -> Vec<u8> {
        if file.2 == 0 {
            return Vec::new();
        }
        if let Some(id) = self.0.get(&file) {
            return id.clone();
        }
        let range = (m.addr, m.addr.wrapping_add(m.len));
        let Ok(opened) = sys::maps::open(m.who.0 as i32, range, m.path, file) else { return Vec::new() };
        let id = symbols::build_id::of(&opened).unwrap_or_default();
        if self.0.len() == MOST {
            self.0.clear();
        }
        self.0.insert(file, id.clone());
        id
    }
}
