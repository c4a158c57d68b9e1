//! Traces that earlier versions have written are shown as they were then.
//!
//! `tests/traces/first` holds recordings of the first format. Four are by the version that introduced it: of a shell with either
//! backend, of probes, and one whose buffer was too small. `captures` is by the last version that wrote this format: of calls with
//! captures beside their arguments, and of probes with more than six fields. `UPDATE_EXPECT=1` writes what is expected of them
//! anew; a change there must be one of the views, never of the traces.

use crate::babeltrace;
use crate::lab::{self, User, contents};
use crate::record::{record, repair, report};
use expect_test::expect_file;
use std::fs;
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
            ("text", &["-ttt", "-T", "-yy", "-v", "--no-stacks"][..]),
            ("json", &["--as", "json", "--mappings", "--no-stacks"]),
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

#[test]
fn a_trace_of_a_later_format_is_refused_in_one_line() {
    let r = record(User::Me, &["--backend", "ptrace", "-e", "exit_group"], &["true"]);
    let metadata = r.trace.join("metadata");
    let now = fs::read_to_string(&metadata).expect("metadata");
    assert!(now.contains("\ttrace_format = 2;\n"), "{now}");
    fs::write(&metadata, now.replace("trace_format = 2;", "trace_format = 6;")).expect("metadata");
    let before = contents(&r.trace);
    for out in
        [report(User::Me, &r.trace, &[]), report(User::Me, &r.trace, &["--as", "json"]), repair(User::Me, &r.trace)]
    {
        assert_eq!((out.code(), out.out().as_str(), out.stderr.lines().count()), (125, "", 1), "{}", out.stderr);
        assert!(out.stderr.contains("its format has version 6, and this trapline reads up to 5"), "{}", out.stderr);
    }
    assert!(before == contents(&r.trace), "something has changed");
    let again = record_over(&r.trace);
    assert!(again.code() == 125 && again.stderr.lines().count() == 1, "{}", again.stderr);
    assert!(before == contents(&r.trace), "something has changed");
}

/// `trapline record --force` into the directory of a trace.
fn record_over(trace: &Path) -> lab::Outcome {
    let args = ["record", "--backend", "ptrace", "--force", "-o", trace.to_str().expect("UTF-8"), "true"];
    lab::run(&mut lab::trapline(User::Me, &args))
}
