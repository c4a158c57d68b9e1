//! The slowest tests, each with the reason that its source gives: a comment `// Slow: …` directly above its attribute or its name.

use crate::root;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// How many are listed.
const LISTED: usize = 20;
/// What introduces a reason.
const MARK: &str = "// Slow: ";

/// A line for each of the slowest tests.
pub fn list(times: &BTreeMap<String, f64>) -> String {
    let mut all: Vec<(&str, f64)> = times.iter().map(|(name, took)| (name.as_str(), *took)).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut reasons = BTreeMap::new();
    read(&root().join("crates"), &mut reasons);
    read(&root().join("xtask/src"), &mut reasons);
    let line = |(name, took): &(&str, f64)| {
        let function = name.rsplit([':', ' ']).next().unwrap_or(name);
        let reason = reasons.get(function).map_or("no reason given", String::as_str);
        format!("{took:7.1} s  {name}: {reason}\n")
    };
    all.iter().take(LISTED).map(line).collect()
}

/// The reasons in all sources below a directory, by the name of the function.
fn read(dir: &Path, reasons: &mut BTreeMap<String, String>) {
    let paths: Vec<PathBuf> = fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path()).collect();
    for path in paths {
        match path.extension().and_then(|e| e.to_str()) {
            Some("rs") => reasons.extend(in_source(&fs::read_to_string(&path).unwrap_or_default())),
            None if path.is_dir() && !path.is_symlink() => read(&path, reasons),
            _ => {}
        }
    }
}

/// The reasons in a source: of the function that follows each.
fn in_source(text: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut reason = None;
    for line in text.lines().map(str::trim) {
        if let Some(said) = line.strip_prefix(MARK) {
            reason = Some(said.to_string());
        } else if let Some((_, rest)) = line.split_once("fn ") {
            let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            all.extend(reason.take().map(|reason| (name.to_string(), reason)));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_belongs_to_the_next_function() {
        let text = "// Slow: it waits\n#[test]\nfn a() {\n}\n#[test]\nfn b() {}\n";
        assert_eq!(in_source(text), [("a".to_string(), "it waits".to_string())]);
    }
}
