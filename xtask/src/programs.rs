//! The one build of everything that is tested: libraries, trapline, and the test programs, linted while they are compiled.
//!
//! ```text
//!  cargo test --no-run, with clippy-driver as the compiler of this workspace ─► programs ─► test.rs runs them
//!                                                                                       └─► vm.rs runs some of them on another kernel
//! ```
//!
//! clippy-driver is rustc with more lints: what it compiles is the same. So nothing is read, checked and compiled twice, once for the lints
//! and once for the tests. The price: `cargo test` and `cargo clippy` by hand build on their own.

use crate::root;
use crate::test::cargo;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A test program.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its package.
    pub package: String,
    /// The name of the target: of a test in `tests/`, or that of the package's library or binary for its unit tests.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// The package's directory, in which it runs.
    pub dir: PathBuf,
}

/// Builds the tests that cargo's arguments select, all of the workspace where they select none. Warnings of rustc and of clippy are errors.
pub fn build(args: &[String]) -> Result<Vec<Program>> {
    let mut command = Command::new(cargo());
    command.args(["test", "--no-run", "--locked", "--message-format=json-render-diagnostics"]);
    if !names_packages(args) {
        command.arg("--workspace");
    }
    command.args(args).current_dir(root()).stdout(Stdio::piped());
    with_lints(&mut command);
    let mut child = command.spawn().context("cannot start cargo test")?;
    let out = child.stdout.take().context("cargo has no stdout")?;
    let mut programs = Vec::new();
    for line in BufReader::new(out).lines() {
        programs.extend(program(&serde_json::from_str(&line?)?));
    }
    let status = child.wait()?;
    ensure!(status.success(), "the tests cannot be built ({status})");
    Ok(programs)
}

/// Whether cargo's arguments select packages.
pub fn names_packages(args: &[String]) -> bool {
    args.iter()
        .any(|a| a.starts_with("-p") || a.starts_with("--package") || matches!(a.as_str(), "--workspace" | "--all"))
}

/// The test program of a line of cargo's messages, if it is one.
fn program(message: &Value) -> Option<Program> {
    let manifest = Path::new(message["manifest_path"].as_str()?);
    let test = message["profile"]["test"].as_bool()?;
    let path = message["executable"].as_str().filter(|_| test)?;
    let dir = manifest.parent()?.to_path_buf();
    let package = dir.file_name()?.to_str()?.to_string();
    Some(Program { package, name: message["target"]["name"].as_str()?.to_string(), path: path.into(), dir })
}

/// Has cargo compile this workspace with clippy-driver, with warnings as errors. Without clippy, there are rustc's lints only.
fn with_lints(command: &mut Command) {
    let driver = PathBuf::from(cargo()).with_file_name("clippy-driver");
    if driver.is_file() {
        command.env("RUSTC_WORKSPACE_WRAPPER", driver);
        // How cargo-clippy hands arguments to its driver.
        command.env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn test_programs_are_found_among_cargo_s_messages() {
        let message = |test: bool, executable: Value| {
            json!({"reason": "compiler-artifact", "manifest_path": "/w/crates/cli/Cargo.toml", "target": {"name": "e2e"},
                "profile": {"test": test}, "executable": executable})
        };
        let found = program(&message(true, json!("/t/e2e-1"))).unwrap();
        assert_eq!(
            (found.package.as_str(), found.name.as_str(), found.dir.as_path()),
            ("cli", "e2e", Path::new("/w/crates/cli"))
        );
        assert!(
            program(&message(false, json!("/t/trapline"))).is_none() && program(&message(true, Value::Null)).is_none()
        );
        assert!(program(&json!({"reason": "build-finished", "success": true})).is_none());
    }
}
