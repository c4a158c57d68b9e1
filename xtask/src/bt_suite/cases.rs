//! The cases of the suite, read from its files: blocks of lines `WORD TEXT`, with blank lines between.

use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::Path;

/// A case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Case {
    /// The file that it is in.
    pub file: String,
    pub name: String,
    /// What the shell runs, with `{{BPFTRACE}}` where the command stands.
    pub run: String,
    /// Regular expressions, all of which the output has.
    pub expect: Vec<String>,
    /// Seconds from the time when the probes are attached.
    pub timeout: u64,
    /// A command that runs before, and one that is started once the probes are attached.
    pub before: Option<String>,
    pub after: Option<String>,
    pub env: Vec<(String, String)>,
    /// Commands that succeed where the case can run.
    pub requires: Vec<String>,
    /// What the kernel or the build has; with `!` in front: has not.
    pub features: Vec<String>,
    /// Processors.
    pub arch: Vec<String>,
    pub will_fail: bool,
}

impl Case {
    /// `FILE.NAME`.
    pub fn path(&self) -> String {
        format!("{}.{}", self.file, self.name)
    }
}

/// The cases of all files in a directory.
pub fn read(dir: &Path) -> Result<Vec<Case>> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let mut files: Vec<_> = entries.collect::<std::io::Result<Vec<_>>>()?;
    files.retain(|f| f.path().is_file() && !f.file_name().to_string_lossy().contains('.'));
    files.sort_by_key(std::fs::DirEntry::file_name);
    let mut all = Vec::new();
    for file in files {
        let name = file.file_name().to_string_lossy().into_owned();
        let text = fs::read_to_string(file.path()).with_context(|| format!("cannot read {}", file.path().display()))?;
        all.extend(parse(&name, &text)?);
    }
    ensure!(!all.is_empty(), "{} has no cases", dir.display());
    Ok(all)
}

fn parse(file: &str, text: &str) -> Result<Vec<Case>> {
    let mut all = Vec::new();
    let lines: Vec<&str> = text.lines().filter(|l| !l.starts_with('#')).collect();
    for block in lines.split(|l| l.trim().is_empty()).filter(|b| !b.is_empty()) {
        all.push(case(file, block).with_context(|| format!("{file}: {}", block[0]))?);
    }
    Ok(all)
}

fn case(file: &str, block: &[&str]) -> Result<Case> {
    let mut case = Case { file: file.into(), ..Case::default() };
    for line in block {
        // Blanks are one blank, in scripts too.
        let words: Vec<&str> = line.split_whitespace().collect();
        let text = words[1..].join(" ");
        match words[0] {
            "NAME" => case.name = text,
            "RUN" => case.run = text,
            "PROG" => case.run = format!("{{{{BPFTRACE}}}} -e '{text}'"),
            "EXPECT" => case.expect.push(text),
            "TIMEOUT" => case.timeout = text.parse().context("TIMEOUT")?,
            "BEFORE" => case.before = Some(text),
            "AFTER" => case.after = Some(text),
            "ENV" => {
                case.env.extend(words[1..].iter().filter_map(|w| w.split_once('=')).map(|(k, v)| (k.into(), v.into())));
            }
            "REQUIRES" => case.requires.push(text),
            "REQUIRES_FEATURE" => case.features.extend(words[1..].iter().map(|w| w.to_string())),
            "ARCH" => case.arch = text.split('|').map(|a| a.trim().to_string()).collect(),
            "WILL_FAIL" => case.will_fail = true,
            "MIN_KERNEL" | "MAX_KERNEL" => {}
            word => bail!("{word} is unknown"),
        }
    }
    ensure!(!case.name.is_empty() && !case.run.is_empty() && !case.expect.is_empty(), "it is not complete");
    Ok(case)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_cases() {
        let text = "# about it\nNAME one\nPROG begin  { exit(); }\nEXPECT a\nEXPECT b\nTIMEOUT 2\nREQUIRES ls /\n\n\n\
                    NAME two\nRUN {{BPFTRACE}} -l\nARCH s390x|x86_64\nENV A=1 B=2\nEXPECT .\nTIMEOUT 1\nWILL_FAIL\n";
        let [one, two] = &parse("f", text).unwrap()[..] else { panic!() };
        assert_eq!((one.path().as_str(), one.run.as_str()), ("f.one", "{{BPFTRACE}} -e 'begin { exit(); }'"));
        assert_eq!(
            (&one.expect[..], one.timeout, &one.requires[..]),
            (&["a".into(), "b".into()][..], 2, &["ls /".into()][..])
        );
        assert_eq!((two.arch.len(), two.env.len(), two.will_fail, one.will_fail), (2, 2, true, false));
        assert!(parse("f", "NAME x\nEXPECT y\n").is_err() && parse("f", "NAME x\nWHAT y\n").is_err());
    }
}
