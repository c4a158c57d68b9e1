//! Traces that earlier versions have written are shown as they were then.
//!
//! `tests/traces/first` holds recordings of the first format. Four are by the version that introduced it: of a shell with either
//! backend, of probes, and one whose buffer was too small. `captures` is by the last version that wrote this format: of calls with
//! captures beside their arguments, and of probes with more than six fields. `UPDATE_EXPECT=1` writes what is expected of them
//! anew; a change there must be one of the views, never of the traces.

use crate::babeltrace;
use crate::lab::{User, contents};
use crate::record::report;
use expect_test::expect_file;
use std::path::{Path, PathBuf};

const TRACES: [&str; 5] = ["kernel", "ptrace", "probes", "dropped", "captures"];

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces/first").join(name)
}

#[test]
fn traces_of_the_first_format_are_shown_as_ever() {
    for name in TRACES {
        let before = contents(&path(name));
        for (view, options) in [
            ("text", &["-ttt", "-T", "-yy", "-v"][..]),
            ("json", &["--as", "json", "--mappings"]),
            ("stats", &["--as", "stats"]),
        ] {
            let out = report(User::Me, &path(name), options);
            assert_eq!(out.code(), 0, "{name} {view}: {}", out.stderr);
            expect_file![path(&format!("{name}.{view}"))].assert_eq(&out.out());
        }
        assert!(before == contents(&path(name)), "{name}: a report has changed the trace");
    }
}

#[test]
fn traces_of_the_first_format_are_read_by_babeltrace2() {
    let counts =
        [("kernel", 234, 0), ("ptrace", 226, 0), ("probes", 50, 0), ("dropped", 114, 492), ("captures", 57, 0)];
    for (name, events, discarded) in counts {
        if let Some(found) = babeltrace::counts(User::Me, &path(name)) {
            assert_eq!(found, (events, discarded), "{name}");
        }
    }
}
