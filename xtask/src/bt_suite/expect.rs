//! What a case expects of its output: Python's regular expressions, and the wording of the version that the dialect is pinned to.

use super::cases::Case;
use super::wording;
use anyhow::{Context, Result};
use regex_lite::Regex;

/// An expectation.
pub enum Expect {
    Found(Regex),
    /// No line has it.
    Without(String),
}

impl Expect {
    pub fn is_met(&self, output: &str) -> bool {
        match self {
            Expect::Found(regex) => regex.is_match(output),
            Expect::Without(text) => !output.contains(text.as_str()),
        }
    }
}

/// What the case's output must have.
pub fn of(case: &Case) -> Result<Vec<Expect>> {
    if let Some(pattern) = wording::of(&case.path()) {
        return Ok(vec![Expect::Found(regex(pattern)?)]);
    }
    // Pointers are printed as such.
    if let Some(address) =
        case.expect[0].strip_prefix("^@: ").filter(|_| case.file == "pointers").and_then(|n| n.parse::<u64>().ok())
    {
        return Ok(vec![Expect::Found(regex(&format!("^@: {address:#x}$"))?)]);
    }
    case.expect.iter().map(|text| expect(text).with_context(|| format!("EXPECT {text}"))).collect()
}

fn expect(text: &str) -> Result<Expect> {
    // There is no look-ahead, and only this form of it is used.
    if let Some(without) = text.strip_prefix("^((?!").and_then(|t| t.strip_suffix(").)*$")) {
        return Ok(Expect::Without(without.into()));
    }
    Ok(Expect::Found(regex(&reworded(text))?))
}

/// Of `Attaching 2 probes...`: that many are attached when it is said.
fn reworded(text: &str) -> String {
    let text = text.replace("probes...", "probes").replace("probe...", "probe");
    text.replace("Attaching", "Attached")
}

fn regex(python: &str) -> Result<Regex> {
    Ok(Regex::new(&format!("(?m){}", with_braces(python)))?)
}

/// Braces that repeat nothing stand for themselves in Python.
fn with_braces(pattern: &str) -> String {
    let mut out = String::new();
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let (this, next) = rest.split_at(c.len_utf8());
        rest = next;
        match c {
            '\\' => {
                let escaped = next.chars().next().map_or(0, char::len_utf8);
                out.push('\\');
                out.push_str(&next[..escaped]);
                rest = &next[escaped..];
            }
            '{' => {
                let count = next.split_once('}').map(|(count, _)| count);
                let repeats =
                    count.is_some_and(|t| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit() || b == b','));
                out.push_str(if repeats { "{" } else { "\\{" });
            }
            _ => out.push_str(this),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations_are_python_s() {
        let met = |pattern: &str, output: &str| expect(pattern).unwrap().is_met(output);
        assert!(met(r#"^{"a": \[1,{ "m": 2 }\]}$"#, "x\n{\"a\": [1,{ \"m\": 2 }]}\n"));
        assert!(met(r"\[[0-9]{2}\/[0-9]{2}\]", "[12/34]") && !met(r"^a{2}$", "a{2}"));
        assert!(met("^((?!not found).)*$", "found\n") && !met("^((?!not found).)*$", "x\nnot found\n"));
        assert!(met("Attaching 3 probes...", "Attached 3 probes\n") && met("^Attaching 1 probe", "Attached 1 probe\n"));
        for (_, pattern, _) in wording::REWORDED {
            regex(pattern).unwrap();
        }
    }
}
