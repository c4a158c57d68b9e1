//! Sections of files, by which functions are chosen: a program puts functions together with `__attribute__((section(".text.ui")))` or
//! `#[unsafe(link_section = ".text.ui")]`.
//!
//! Linkers keep such names, unless theirs say otherwise: GNU ld puts `.text.hot*`, `.text.unlikely*`, `.text.startup*`, `.text.exit*` and all
//! other `.text.*` into `.text`. So names outside of `.text.*` are the ones to take.

use lang::near::nearest;
use lang::pattern::glob;
use std::fs::File;
use symbols::headers::Headers;

/// A section with code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    name: String,
    address: u64,
    size: u64,
}

/// The sections of a file that have code; none where it has no section headers.
pub fn of(file: &File) -> Option<Vec<Section>> {
    let headers = Headers::read(file)?;
    let section =
        |s: &symbols::headers::SectionHeader| Section { name: s.name.clone(), address: s.address, size: s.size };
    let all: Vec<Section> = headers.sections.iter().filter(|s| s.executable).map(section).collect();
    (!all.is_empty()).then_some(all)
}

/// Checks that each pattern has a section in some file, by their paths and sections.
///
/// # Errors
/// Why not, and what to do.
pub fn check(
    wanted: &[String],
    files: impl Iterator<Item = (String, Option<Vec<Section>>)>,
) -> Result<(), (String, String)> {
    let mut names: Vec<String> = Vec::new();
    for (path, sections) in files {
        let Some(sections) = sections else {
            let todo = "choose functions by their names: -F".to_string();
            return Err((format!("{path} has no section headers, so --section cannot be used"), todo));
        };
        names.extend(sections.into_iter().map(|s| s.name));
    }
    names.sort_unstable();
    names.dedup();
    match wanted.iter().find(|w| !names.iter().any(|n| glob(w.as_bytes(), n.as_bytes()))) {
        None => Ok(()),
        Some(missing) => {
            let near = nearest(missing, names.iter().map(String::as_str)).join(", ");
            Err((format!("no section with code matches {missing}"), format!("nearest: {near}")))
        }
    }
}

/// Whether an address of the file lies in a section that one of the patterns matches.
pub fn have(sections: &[Section], wanted: &[String], address: u64) -> bool {
    let holds = |s: &&Section| address.checked_sub(s.address).is_some_and(|at| at < s.size);
    sections.iter().filter(holds).any(|s| wanted.iter().any(|w| glob(w.as_bytes(), s.name.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(name: &str, address: u64, size: u64) -> Section {
        Section { name: name.into(), address, size }
    }

    fn list(patterns: &[&str]) -> Vec<String> {
        patterns.iter().map(|p| p.to_string()).collect()
    }

    #[test]
    fn addresses_are_in_sections() {
        let all = [section(".text", 100, 50), section("ui_main", 150, 10), section("ui_other", 160, 0)];
        let have = |patterns: &[&str], at| have(&all, &list(patterns), at);
        assert!(have(&["ui_*"], 150) && have(&["ui_*"], 159) && have(&["x", ".text"], 100));
        assert!(!have(&["ui_*"], 149) && !have(&["ui_*"], 160) && !have(&["ui_*"], 0) && !have(&[], 150));
    }

    #[test]
    fn what_no_file_has_is_refused() {
        let all = [section(".text", 100, 50), section("ui_main", 150, 10)];
        let check =
            |patterns: &[&str], sections| check(&list(patterns), [("/bin/a".to_string(), sections)].into_iter());
        assert_eq!(check(&["ui_*"], Some(all.to_vec())), Ok(()));
        let (why, todo) = check(&["ui_mian"], Some(all.to_vec())).unwrap_err();
        assert_eq!((why.as_str(), todo.as_str()), ("no section with code matches ui_mian", "nearest: ui_main, .text"));
        assert!(check(&["ui_*"], None).unwrap_err().0.starts_with("/bin/a has no section headers"));
    }

    #[test]
    fn own_file_has_sections() {
        let all = of(&File::open("/proc/self/exe").unwrap()).unwrap();
        assert!(all.iter().any(|s| s.name == ".text" && s.size > 0), "{all:?}");
    }
}
