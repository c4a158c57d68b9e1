//! The directories of control groups, by their numbers.

use lang::pattern::glob;
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};

/// This many groups are remembered.
const MOST: usize = 4096;
/// No directory is deeper below the root of its hierarchy.
const DEEPEST: usize = 64;

/// Hierarchies, and the groups that somebody has asked for.
#[derive(Default)]
pub struct Cgroups {
    roots: Option<Vec<Hierarchy>>,
    /// By number: a directory in each hierarchy.
    known: HashMap<u64, Vec<Option<String>>>,
}

/// A hierarchy that is mounted.
#[derive(Debug, PartialEq)]
struct Hierarchy {
    name: String,
    root: PathBuf,
}

impl Cgroups {
    /// The directories of a group, in the hierarchies whose names match.
    pub fn path(&mut self, id: u64, hierarchies: &[u8]) -> String {
        let roots =
            self.roots.get_or_insert_with(|| mounted(&fs::read_to_string("/proc/self/mounts").unwrap_or_default()));
        if self.known.len() >= MOST {
            self.known.clear();
        }
        // One that is not found has ended: numbers are not used again.
        let found = self.known.entry(id).or_insert_with(|| roots.iter().map(|r| find(&r.root, id)).collect());
        let shown = |(r, path): (&Hierarchy, &Option<String>)| {
            let path = path.as_ref().filter(|_| glob(hierarchies, r.name.as_bytes()))?;
            Some(format!("{}:{path}", r.name))
        };
        roots.iter().zip(found.iter()).filter_map(shown).collect::<Vec<_>>().join(";")
    }
}

/// The hierarchies of a table of mounts: the unified one, and those of version 1 by the names of their directories.
fn mounted(table: &str) -> Vec<Hierarchy> {
    let mut all: Vec<Hierarchy> = Vec::new();
    for line in table.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [_, root, kind @ ("cgroup" | "cgroup2"), ..] = words[..] else { continue };
        let root = PathBuf::from(root);
        let own = root.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = if kind == "cgroup2" { "unified".into() } else { own.unwrap_or_default() };
        // Of a hierarchy that is mounted several times, once.
        if all.iter().all(|h| h.name != name) {
            all.push(Hierarchy { name, root });
        }
    }
    all
}

/// The directory with this number, below the root of its hierarchy.
fn find(root: &Path, id: u64) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    if fs::metadata(root).is_ok_and(|m| m.ino() == id) {
        return Some("/".into());
    }
    let mut open = vec![(root.to_path_buf(), String::new(), 0)];
    while let Some((dir, path, depth)) = open.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|t| t.is_dir()) {
                continue;
            }
            let path = format!("{path}/{}", entry.file_name().to_string_lossy());
            if entry.ino() == id {
                return Some(path);
            }
            if depth < DEEPEST {
                open.push((entry.path(), path, depth + 1));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_are_named() {
        let table = "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n\
                     cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\ncgroup2 /mnt cgroup2 rw 0 0\n";
        let names: Vec<_> = mounted(table).into_iter().map(|h| (h.name, h.root)).collect();
        let expected = [("unified", "/sys/fs/cgroup"), ("cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct")];
        assert_eq!(names, expected.map(|(name, root)| (name.to_string(), PathBuf::from(root))));
    }

    #[test]
    fn groups_are_found_by_their_numbers() {
        use std::os::unix::fs::MetadataExt;
        let dir = testkit::Scratch::new("cgroups");
        let inner = dir.join("a/b");
        fs::create_dir_all(&inner).expect("a directory");
        let id = fs::metadata(&inner).expect("a directory").ino();
        let root = Hierarchy { name: "unified".into(), root: dir.to_path_buf() };
        let mut groups = Cgroups { roots: Some(vec![root]), ..Cgroups::default() };
        assert_eq!(groups.path(id, b"*"), "unified:/a/b");
        assert_eq!(groups.path(id, b"uni*"), "unified:/a/b");
        assert_eq!((groups.path(id, b"cpu"), groups.path(u64::MAX, b"*")), (String::new(), String::new()));
    }
}
