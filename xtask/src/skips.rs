//! The file in which tests note that they cannot run here: one line `TIER\tTEST\tWHY` each, appended by the tests
//! themselves. A tier is what the machine must offer (`root`, `unprivileged`, `package: strace`, `kernel`, …).

use crate::lab::Scratch;
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The environment variable that names the file.
pub const VARIABLE: &str = "TRAPLINE_SKIPS";
/// The environment variable that names the tiers which must run, separated by commas: `kernel` means all of `kernel:…`, and
/// `-kernel:pmu` takes one of them out.
pub const REQUIRED: &str = "TRAPLINE_REQUIRE_TIERS";

/// One test that did not run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skip {
    pub tier: String,
    pub test: String,
    pub why: String,
}

/// A fresh file for one run; it goes away with this value.
pub struct Skips {
    path: PathBuf,
    _scratch: Scratch,
}

impl Skips {
    pub fn new() -> Result<Self> {
        let scratch = Scratch::new("skips")?;
        let path = scratch.path().join("skips.tsv");
        fs::write(&path, "").with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self { path, _scratch: scratch })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The current contents of the file, sorted and without duplicates.
    pub fn read(&self) -> Result<BTreeSet<Skip>> {
        let bytes = fs::read(&self.path).with_context(|| format!("cannot read {}", self.path.display()))?;
        parse(&String::from_utf8_lossy(&bytes))
    }
}

/// Appends one line to the file.
pub fn add(path: &Path, tier: &str, test: &str, why: &str) -> Result<()> {
    let here = || format!("cannot write {}", path.display());
    let mut file = OpenOptions::new().append(true).create(true).open(path).with_context(here)?;
    file.write_all(format!("{tier}\t{test}\t{why}\n").as_bytes()).with_context(here)
}

fn parse(text: &str) -> Result<BTreeSet<Skip>> {
    let mut skips = BTreeSet::new();
    for line in text.lines() {
        let mut columns = line.splitn(3, '\t').map(|c| c.trim().to_string());
        let (Some(tier), Some(test), Some(why)) = (columns.next(), columns.next(), columns.next()) else {
            bail!("{VARIABLE}: a line wants TIER, TEST and WHY with tabs between, not '{line}'");
        };
        skips.insert(Skip { tier, test, why });
    }
    Ok(skips)
}

/// The tests that were skipped, each once.
pub fn tests(skips: &BTreeSet<Skip>) -> BTreeSet<&str> {
    skips.iter().map(|s| s.test.as_str()).collect()
}

/// How many tests were skipped in each tier, and why.
pub fn summary(skips: &BTreeSet<Skip>) -> String {
    let mut tiers: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for s in skips {
        tiers.entry(&s.tier).or_default().entry(&s.why).or_default().push(&s.test);
    }
    let mut out = String::new();
    for (tier, reasons) in tiers {
        let of_tier: BTreeSet<&&str> = reasons.values().flatten().collect();
        out += &format!("skipped in tier {tier}: {}\n", of_tier.len());
        for (why, tests) in reasons {
            out += &format!("  {why} ({})\n", tests.join(", "));
        }
    }
    out
}

/// Says which required tier was skipped, if any; `required` is the list in [`REQUIRED`].
pub fn missing(required: &str, skips: &BTreeSet<Skip>) -> Option<String> {
    let required: BTreeSet<&str> = required.split(',').map(str::trim).filter(|t| !t.is_empty()).collect();
    let exempt: BTreeSet<&str> = required.iter().filter_map(|t| t.strip_prefix('-')).collect();
    let mut wanting: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for s in skips {
        let tier = s.tier.split(':').next().unwrap_or_default().trim();
        if required.contains(tier) && !exempt.contains(s.tier.as_str()) {
            wanting.entry(tier).or_default().insert(&s.test);
        }
    }
    let all: Vec<String> = wanting
        .iter()
        .map(|(tier, tests)| format!("tier {tier} by {}", tests.iter().copied().collect::<Vec<_>>().join(", ")))
        .collect();
    (!all.is_empty()).then(|| format!("skipped although {REQUIRED} wants it: {}", all.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "root\tb\tnot root\npackage: strace\tc\tno strace\nroot\ta\tnot root\nroot\ta\tnot root\n";

    #[test]
    fn sorted_and_deduplicated_by_tier_and_reason() {
        let skips = parse(TEXT).unwrap();
        let want = "skipped in tier package: strace: 1\n  no strace (c)\nskipped in tier root: 2\n  not root (a, b)\n";
        assert_eq!(summary(&skips), want);
        assert_eq!(tests(&skips).len(), 3);
    }

    #[test]
    fn a_required_tier_is_found_by_its_first_word() {
        let skips = parse(TEXT).unwrap();
        assert_eq!(missing("", &skips), None);
        assert_eq!(missing("kernel,unprivileged", &skips), None);
        let said = missing("kernel, package,root", &skips).unwrap();
        assert_eq!(said, "skipped although TRAPLINE_REQUIRE_TIERS wants it: tier package by c; tier root by a, b");
    }

    #[test]
    fn a_part_of_a_required_tier_may_be_skipped() {
        let skips = parse("kernel:pmu\ta\tnone\nkernel:btf\tb\tnone\n").unwrap();
        let said = missing("kernel,-kernel:pmu", &skips).unwrap();
        assert!(said.ends_with("tier kernel by b"), "{said}");
        assert_eq!(missing("kernel,-kernel:pmu,-kernel:btf", &skips), None);
    }

    #[test]
    fn a_broken_line_is_an_error() {
        assert!(parse("root a not root\n").unwrap_err().to_string().contains("'root a not root'"));
    }

    #[test]
    fn appended_lines_are_read_back() {
        let skips = Skips::new().unwrap();
        add(skips.path(), "kernel", "t", "too old").unwrap();
        add(skips.path(), "kernel", "t", "too old").unwrap();
        let want = Skip { tier: "kernel".into(), test: "t".into(), why: "too old".into() };
        assert_eq!(skips.read().unwrap(), BTreeSet::from([want]));
    }
}
