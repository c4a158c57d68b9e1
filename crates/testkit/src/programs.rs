//! Programs that tests run: those of the machine, and those of `tests/programs`, compiled.

use crate::{dir, open_to_all, skip};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

/// What everybody may search; that of whoever runs the tests may have directories of his own.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Whether a program is in [`PATH`].
pub fn has(program: &str) -> bool {
    PATH.split(':').any(|d| Path::new(d).join(program).is_file())
}

/// A program of `tests/programs` of any language, optimised, compiled once under a name of its own, with further flags. None where there
/// is no compiler, which is [skipped](skip).
#[track_caller]
pub fn compiled(name: &str, source: &str, flags: &[&str]) -> Option<String> {
    let (compiler, usual): (_, &[&str]) = match source.rsplit_once('.') {
        Some((_, "rs")) => ("rustc", &["-O"]),
        Some((_, "cc")) => ("g++", &["-O1", "-pthread"]),
        _ => ("gcc", &["-O1", "-pthread"]),
    };
    compile(compiler, name, source, &[usual, flags].concat())
}

/// A program of `tests/programs`, compiled once under a name of its own, with these flags only.
///
/// # Panics
/// The compiler refuses it.
#[track_caller]
pub fn compile(compiler: &str, name: &str, source: &str, flags: &[&str]) -> Option<String> {
    /// A program, locked during its build. Builds of different programs run side by side.
    type Built = Arc<Mutex<Option<String>>>;
    static ALL: Mutex<BTreeMap<String, Built>> = Mutex::new(BTreeMap::new());
    // Where rustc is, only who runs the tests knows.
    if !has(compiler) && Command::new(compiler).arg("--version").output().is_err() {
        skip(&format!("package:{compiler}"), "no compiler");
        return None;
    }
    let built = ALL.lock().unwrap_or_else(PoisonError::into_inner).entry(name.to_string()).or_default().clone();
    let mut built = built.lock().unwrap_or_else(PoisonError::into_inner);
    if built.is_some() {
        return built.clone();
    }
    let source = format!("{}/../../tests/programs/{source}", env!("CARGO_MANIFEST_DIR"));
    let target = dir().join(name).to_str().expect("UTF-8").to_string();
    let out = Command::new(compiler).args(flags).args(["-o", &target, &source]).output().expect(compiler);
    assert!(out.status.success(), "{compiler} {flags:?}: {}", String::from_utf8_lossy(&out.stderr));
    open_to_all(Path::new(&target), 0o755);
    *built = Some(target);
    built.clone()
}
