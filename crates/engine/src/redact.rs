//! `--redact`: which texts of a trace do not leave it.
//!
//! ```text
//! WHAT[,WHAT]... ─► Redact ─► the rules of a trace ─► pump: events, stacks and names as they are shown │ what is said of the trace
//! ```

use crate::error::{Error, Result};
use events::rules::{Rules, What};
use regex_lite::Regex;
use std::borrow::Cow;
use std::sync::Arc;

/// The replacement of a text, or of the part that an expression has found.
pub const MARK: &str = "[redacted]";

/// The words, with what they are about.
pub const WORDS: [(&str, &[What]); 7] = [
    ("env", &[What::Environment]),
    ("argv", &[What::CommandLine]),
    ("buffers", &[What::Buffer]),
    ("strings", &[What::Text]),
    ("paths", &[What::Path, What::Program]),
    ("addresses", &[What::Address]),
    ("host", &[What::Host]),
];

/// What the kernel calls mappings that are of no file: these names are no paths.
const NOT_PATHS: [&[u8]; 6] = [b"[vdso]", b"[vvar]", b"[vsyscall]", b"[heap]", b"[stack]", b"//anon"];

/// Which texts are replaced.
#[derive(Debug, Default)]
pub struct Redact {
    /// Whole texts.
    all: Vec<What>,
    /// What these find in any text.
    found: Vec<Regex>,
}

impl Redact {
    /// The rules of several options; none where there are none.
    ///
    /// # Errors
    /// A word that is not known, or an expression that is not one.
    pub fn parse(options: &[String]) -> Result<Option<Arc<Redact>>> {
        let mut redact = Redact::default();
        options.iter().try_for_each(|text| redact.add(text))?;
        Ok((!options.is_empty()).then(|| Arc::new(redact)))
    }

    fn add(&mut self, text: &str) -> Result<()> {
        let mut rest = text;
        loop {
            let after = match rest.strip_prefix('/') {
                Some(begun) => self.add_expression(text, begun)?,
                None => {
                    let (word, after) = rest.find(',').map_or((rest, ""), |at| rest.split_at(at));
                    self.add_word(word)?;
                    after
                }
            };
            match after.strip_prefix(',') {
                Some(more) => rest = more,
                None if after.is_empty() => return Ok(()),
                None => return Err(unknown(after)),
            }
        }
    }

    fn add_word(&mut self, word: &str) -> Result<()> {
        let known = WORDS.iter().filter(|(name, _)| *name == word || word == "all");
        let whats: Vec<What> = known.flat_map(|(_, whats)| whats.iter().copied()).collect();
        if whats.is_empty() {
            return Err(unknown(word));
        }
        self.all.extend(whats);
        Ok(())
    }

    /// Takes an expression up to its `/`, which stands before a comma or the end. Returns what is behind it.
    fn add_expression<'t>(&mut self, text: &str, begun: &'t str) -> Result<&'t str> {
        let refused = |why: &str| Error::usage(format!("--redact {text}"), why, "for instance '/password=[^&]*/'");
        let is_end = |at: &usize| matches!(begun.as_bytes().get(at + 1), None | Some(b','));
        let end = begun.match_indices('/').map(|(at, _)| at).find(is_end);
        let end = end.ok_or_else(|| refused("an expression that does not end in /"))?;
        let expression = Regex::new(&begun[..end]).map_err(|e| refused(&e.to_string()))?;
        if expression.is_match("") {
            return Err(refused("an expression that finds nothing everywhere"));
        }
        self.found.push(expression);
        Ok(&begun[end + 1..])
    }

    /// A text with marks instead of what the expressions find; none where they find nothing.
    fn without(&self, text: &str) -> Option<String> {
        let mut text = Cow::Borrowed(text);
        for expression in &self.found {
            if expression.is_match(&text) {
                text = expression.replace_all(&text, regex_lite::NoExpand(MARK)).into_owned().into();
            }
        }
        match text {
            Cow::Borrowed(_) => None,
            Cow::Owned(text) => Some(text),
        }
    }
}

fn unknown(word: &str) -> Error {
    let words: Vec<&str> = WORDS.iter().map(|(name, _)| *name).collect();
    Error::usage(format!("--redact {word}"), "nothing of this name", format!("{}, all or /REGEX/", words.join(", ")))
}

impl Rules for Redact {
    fn text(&self, what: What, text: &[u8]) -> Option<Vec<u8>> {
        if text.is_empty() {
            return None;
        }
        if self.all.contains(&what) && !(what == What::Path && NOT_PATHS.contains(&text)) {
            return Some(MARK.into());
        }
        // What is not UTF-8 stays between what is.
        let (mut out, mut changed) = (Vec::new(), false);
        let own = if what == What::Probe && self.all.contains(&What::Path) { without_path(text) } else { None };
        for part in own.as_deref().unwrap_or(text).utf8_chunks() {
            let other = self.without(part.valid());
            changed |= other.is_some();
            out.extend_from_slice(other.as_deref().unwrap_or(part.valid()).as_bytes());
            out.extend_from_slice(part.invalid());
        }
        (changed || own.is_some()).then_some(out)
    }
}

/// A probe's name without the path in it: `uprobe:[redacted]:main`.
fn without_path(name: &[u8]) -> Option<Vec<u8>> {
    let name = std::str::from_utf8(name).ok().filter(|name| name.contains('/'))?;
    let (provider, rest) = name.split_once(':')?;
    let (_, point) = rest.rsplit_once(':')?;
    Some(format!("{provider}:{MARK}:{point}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redact(text: &str) -> Arc<Redact> {
        Redact::parse(&[text.to_owned()]).expect("rules").expect("some")
    }

    fn shown(rules: &Redact, what: What, text: &str) -> String {
        let text = rules.text(what, text.as_bytes()).unwrap_or_else(|| text.into());
        String::from_utf8(text).expect("UTF-8")
    }

    #[test]
    fn words_are_about_whole_texts() {
        let rules = redact("env,paths");
        assert_eq!(shown(&rules, What::Environment, "A=b"), "[redacted]");
        assert_eq!(shown(&rules, What::Program, "cat"), "[redacted]");
        assert_eq!(shown(&rules, What::Probe, "uprobe:/bin/cat:main"), "uprobe:[redacted]:main");
        assert_eq!(shown(&rules, What::Buffer, "data"), "data");
        assert_eq!(shown(&rules, What::Environment, ""), "");
        assert_eq!(shown(&rules, What::Path, "[vdso]"), "[vdso]");
        assert_eq!(shown(&redact("/vdso/"), What::Path, "[vdso]"), "[[redacted]]");
        for (_, whats) in WORDS {
            whats.iter().for_each(|what| assert_eq!(shown(&redact("all"), *what, "x"), "[redacted]"));
        }
        assert_eq!(shown(&redact("all"), What::Name, "main"), "main");
    }

    #[test]
    fn expressions_are_about_what_they_find() {
        let rules = redact("host,/pass=[^&]*/,/a,b/");
        assert_eq!(shown(&rules, What::Buffer, "GET /?pass=x,y&z a,b"), "GET /?[redacted]&z [redacted]");
        assert_eq!(rules.text(What::Path, b"\xffpass=\xfe&"), Some(b"\xff[redacted]\xfe&".to_vec()));
        assert_eq!(rules.text(What::Path, b"\xffpas"), None);
        assert_eq!(shown(&rules, What::Host, "web"), "[redacted]");
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for text in ["", "envs", "env,", "/a", "/(/", "/x*/", "/a/b"] {
            let said = Redact::parse(&[text.to_owned()]).map(drop).map_err(|e| e.to_string());
            assert!(said.is_err(), "{text}");
        }
        assert!(Redact::parse(&[]).expect("nothing").is_none());
    }
}
