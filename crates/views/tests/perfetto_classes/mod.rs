//! Reads files with the protobuf classes of Perfetto.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// What Perfetto's classes find in a file; none without them.
#[track_caller]
pub fn read_by_perfetto(file: &[u8]) -> Option<String> {
    const CLASSES: &str = "google.protobuf.unknown_fields, perfetto.protos.perfetto.trace.perfetto_trace_pb2";
    let python = testkit::python("perfetto", CLASSES)?;
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
