//! `cargo xtask browser [DIR]`: opens flame graphs in a headless Chromium, and leaves pictures of them in DIR, else in
//! `target/browser`.
//!
//! The tests are those of `crates/views/tests/browser.rs`, which `cargo xtask ci` runs with all others; there they are skipped where there is
//! no browser (tier `browser`), here that is an error. Debian's chromium-headless-shell is the smallest that they take: 100 MB to fetch, 306
//! MB on disk.

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

pub fn run(args: &[String]) -> Result<()> {
    let dir = match args {
        [] => std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from).join("browser"),
        [dir] if !dir.starts_with('-') => PathBuf::from(dir),
        _ => bail!("usage: cargo xtask browser [DIR]"),
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
    outcome.finish()
}
