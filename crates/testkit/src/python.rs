//! Packages of Python that tests use: those that `.ci/run` installs, or any others.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A python3 that can import `modules` (`a, b.c`): that of `target/python`, or the machine's; none where the tests of `package` are
/// [skipped](crate::skip).
#[track_caller]
pub fn python(package: &str, modules: &str) -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python3");
    let has_them = |python: &PathBuf| {
        let run = Command::new(python).args(["-c", &format!("import {modules}")]).stderr(Stdio::null()).status();
        run.is_ok_and(|status| status.success())
    };
    let found = [own, "python3".into()].into_iter().find(has_them);
    if found.is_none() {
        crate::skip(&format!("package:{package}"), &format!("no python3 with the package {package}"));
    }
    found
}
