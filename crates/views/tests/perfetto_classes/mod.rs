//! Reads files with the protobuf classes of Perfetto.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A python3 that has the classes of the PyPI package `perfetto`: that of `.ci/run`, or any other.
fn python() -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python3");
    let has_them = |python: &PathBuf| {
        let import = "import google.protobuf.unknown_fields, perfetto.protos.perfetto.trace.perfetto_trace_pb2";
        let run = Command::new(python).args(["-c", import]).stderr(Stdio::null()).status();
        run.is_ok_and(|status| status.success())
    };
    [own, "python3".into()].into_iter().find(has_them)
}

/// What Perfetto's classes find in a file; none without them.
#[track_caller]
pub fn read_by_perfetto(file: &[u8]) -> Option<String> {
    let Some(python) = python() else {
        testkit::skip("package:perfetto", "no python3 with the package perfetto");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/read_timeline.py");
    let mut child = Command::new(python)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("python3");
    child.stdin.take().expect("a pipe").write_all(file).expect("python3 reads");
    let said = child.wait_with_output().expect("python3 ends");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    Some(String::from_utf8(said.stdout).expect("UTF-8"))
}
