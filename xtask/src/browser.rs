//! `cargo xtask browser [DIR | --docs]`: opens flame graphs and pages of `--as html` in a headless Chromium, and leaves pictures of them in DIR,
//! else in `target/browser`; with `--docs`, those that the documentation shows also in `docs/pictures`.
//!
//! The tests are those of `crates/views/tests/browser.rs`, which `cargo xtask ci` runs with all others; there they are skipped where there is
//! no browser (tier `browser`), here that is an error. Debian's chromium-headless-shell is the smallest that they take: 100 MB to fetch, 306
//! MB on disk.

use crate::lab::target;
use crate::programs;
use crate::root;
use crate::skips::{self, Skips};
use crate::test;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::PathBuf;

/// The tier of the tests.
const TIER: &str = "browser";
/// Where the tests put pictures.
const PICTURES: &str = "TRAPLINE_SCREENSHOTS";

/// Pictures that the documentation shows.
const SHOWN: [&str; 2] = ["timeline.png", "timeline-dark.png"];

pub fn run(args: &[String]) -> Result<()> {
    let is_for_docs = args == ["--docs"];
    let dir = match args {
        [dir] if !dir.starts_with('-') => PathBuf::from(dir),
        _ if is_for_docs || args.is_empty() => target().join("browser"),
        _ => bail!("usage: cargo xtask browser [DIR | --docs]"),
    };
    fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let dir = dir.canonicalize()?;
    let skips = Skips::new()?;
    let words = ["-p", "views", "--test", "browser"].map(String::from);
    let mut outcome =
        test::run_all(&programs::build(&words)?, &[], &skips, &[(PICTURES, dir.as_os_str())])?.outcome(&skips)?;
    if outcome.trouble.is_none() && skips::missing(TIER, &skips.read()?).is_some() {
        outcome.trouble = Some("browser: none is here: install chromium-headless-shell or chromium".to_string());
    }
    println!("{}", dir.display());
    if is_for_docs && outcome.trouble.is_none() {
        for name in SHOWN {
            let to = root().join("docs/pictures").join(name);
            fs::copy(dir.join(name), &to).with_context(|| format!("cannot write {}", to.display()))?;
        }
    }
    outcome.finish()
}
