//! Debian's source package of bpftrace, in `target/bpftrace-VERSION`: fetched once, by apt with lists of its own.

use crate::lab::{run, target};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version of Debian 12.
pub const VERSION: &str = "0.17.0";
/// Debian's revision of it.
const REVISION: &str = "0.17.0-1";
/// Where apt finds it.
const SOURCE: &str =
    "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main\n";

/// The directory `tests/runtime` of the package.
pub fn suite() -> Result<PathBuf> {
    let dir = target().join(format!("bpftrace-{VERSION}"));
    let suite = dir.join("src/tests/runtime");
    if !suite.is_dir() {
        fetch(&dir).context("cannot have Debian's source package of bpftrace")?;
    }
    ensure!(suite.is_dir(), "the package has no {}", suite.display());
    Ok(suite)
}

/// Fetches the package with lists and a cache of its own: what the machine's apt knows stays as it is.
fn fetch(dir: &Path) -> Result<()> {
    let _ = fs::remove_dir_all(dir);
    for part in ["lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(dir.join(part))?;
    }
    let dir = dir.canonicalize()?;
    fs::write(dir.join("sources.list"), SOURCE)?;
    let apt = |words: &[&str]| -> Result<()> {
        let place = |name: &str, file: &str| format!("{name}={}", dir.join(file).display());
        let mut command = Command::new("apt-get");
        command.arg("-qq").current_dir(&dir);
        let own = [place("Dir::Etc::sourcelist", "sources.list"), place("Dir::State::lists", "lists")];
        let more = [place("Dir::Cache", "cache"), "Dir::Etc::sourceparts=-".into(), "APT::Sandbox::User=root".into()];
        own.iter().chain(&more).for_each(|option| {
            command.args(["-o", option]);
        });
        run(command.args(words))
    };
    apt(&["update"])?;
    apt(&["source", "--download-only", &format!("bpftrace={REVISION}")])?;
    let description = format!("bpftrace_{REVISION}.dsc");
    run(Command::new("dpkg-source").args(["--no-check", "-x", &description, "src"]).current_dir(&dir))?;
    for part in ["lists", "cache"] {
        fs::remove_dir_all(dir.join(part))?;
    }
    Ok(())
}
