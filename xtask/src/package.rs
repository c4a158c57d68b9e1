//! `cargo xtask package`: packages the crates, and installs trapline from the packaged files alone, offline and statically; the result is
//! tried out as `cargo xtask static --smoke` does, and as a Debian package.
//!
//! ```text
//!  cargo package ─► NAME-VERSION.crate each ─► unpacked side by side ─► cargo install, of what needs them ─► trapline, static ─┬─► tried
//!                                                                                                                        └─► .deb ─► tried
//! ```
//!
//! One build answers three questions: is everything in the packages, does a static trapline work, and does the Debian package?

use crate::lab::{self, Scratch};
use crate::test::cargo;
use crate::{deb, release, root};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is not packaged: tools and tests of this repository.
const LEFT_OUT: [&str; 2] = ["xtask", "testkit"];

pub fn run(args: &[String]) -> Result<()> {
    ensure!(args.is_empty(), "usage: cargo xtask package");
    check(None)
}

/// The same, with a file for what cannot be checked.
pub fn check(skips: Option<&Path>) -> Result<()> {
    let scratch = Scratch::new("package")?;
    let dir = scratch.path();
    let crates = unpacked(dir)?;
    let trapline = build(&crates)?;
    release::try_out(&trapline)?;
    has_agent(&trapline, dir)?;
    deb::try_out(&trapline, skips)
}

fn done(command: &mut Command, what: &str) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {what}"))?;
    ensure!(status.success(), "{what}: {status}");
    Ok(())
}

/// Packages the crates, and unpacks them. Their names with the directories.
fn unpacked(dir: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut package = Command::new(cargo());
    package.args(["package", "--quiet", "--workspace", "--no-verify", "--offline", "--locked", "--allow-dirty"]);
    // A lock file of its own would be looked up in the registry, where the crates are not.
    package.arg("--exclude-lockfile");
    package.args(LEFT_OUT.iter().flat_map(|name| ["--exclude", name]));
    package.arg("--target-dir").arg(dir.join("packed")).current_dir(root());
    done(&mut package, "cargo package")?;
    let mut all = Vec::new();
    for file in fs::read_dir(dir.join("packed/package"))?.flatten() {
        let path = file.path();
        let Some(stem) = path.to_str().and_then(|p| p.strip_suffix(".crate")) else { continue };
        let stem = stem.rsplit('/').next().unwrap_or(stem);
        let name = stem.rsplit_once('-').context("a name without a version")?.0;
        done(Command::new("tar").arg("-xzf").arg(&path).arg("-C").arg(dir), "tar")?;
        all.push((name.to_string(), dir.join(stem)));
    }
    ensure!(all.iter().any(|(name, _)| name == "trapline"), "trapline was not packaged");
    Ok(all)
}

/// Builds trapline from what was unpacked. Everything else comes from where the workspace has it from.
fn build(crates: &[(String, PathBuf)]) -> Result<PathBuf> {
    let patches: String =
        crates.iter().map(|(name, path)| format!("{name} = {{ path = {:?} }}\n", path.display().to_string())).collect();
    let (_, trapline) = crates.iter().find(|(name, _)| name == "trapline").context("checked before")?;
    let mut manifest = fs::read_to_string(trapline.join("Cargo.toml"))?;
    // Tests of the packaged crates need what was left out.
    if let Some(at) = manifest.find("\n[dev-dependencies") {
        let end = manifest[at + 1..].find("\n[lints").map_or(manifest.len(), |n| at + 1 + n);
        manifest.replace_range(at..end, "\n");
    }
    // It is built to be tried out once.
    let profile = "[profile.dev]\ndebug = false\nincremental = false\nstrip = true";
    let workspace = format!("{manifest}\n[workspace]\n\n[patch.crates-io]\n{patches}\n{profile}\n");
    fs::write(trapline.join("Cargo.toml"), workspace)?;
    fs::copy(root().join("Cargo.lock"), trapline.join("Cargo.lock"))?;
    let target = lab::target().join("packaged");
    let installed = target.join("installed");
    let mut install = Command::new(cargo());
    install.args([
        "install",
        "--quiet",
        "--offline",
        "--locked",
        "--debug",
        "--force",
        "--no-track",
        "--target",
        release::target(),
    ]);
    install.args(["--path", "."]).arg("--root").arg(&installed).arg("--target-dir").arg(&target);
    install.envs(release::STATIC).current_dir(trapline);
    done(&mut install, "cargo install of the packaged files")?;
    let file = installed.join("bin/trapline");
    release::check_is_static(&file)?;
    Ok(file)
}

/// The agent is in it, and works.
fn has_agent(trapline: &Path, dir: &Path) -> Result<()> {
    let out = Command::new(trapline).arg("doctor").current_dir(dir).output().context("cannot run trapline")?;
    let text = String::from_utf8_lossy(&out.stdout);
    let works = text.lines().any(|l| l.starts_with("ok ") && l.contains("agent backend (functions)"));
    ensure!(works, "the packaged trapline cannot trace functions: {text}");
    Ok(())
}
