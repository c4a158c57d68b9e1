//! pprof's format, read by protoc with the fields of profile.proto (google/pprof) that are used here. Skipped without protoc.

mod stacks;

use expect_test::expect_file;
use stacks::usual;
use std::io::Write;
use std::process::{Command, Stdio};
use views::profile::{Frame, Labels, Stacks, Unit, pprof};

/// Numbers and types of the fields, by profile.proto.
const PROTO: &str = r#"syntax = "proto3";
message Profile {
    repeated ValueType sample_type = 1; repeated Sample sample = 2; repeated Mapping mapping = 3; repeated Location location = 4;
    repeated Function function = 5; repeated string string_table = 6; int64 drop_frames = 7; int64 keep_frames = 8;
    int64 time_nanos = 9; int64 duration_nanos = 10; ValueType period_type = 11; int64 period = 12; repeated int64 comment = 13;
    int64 default_sample_type = 14;
}
message ValueType { int64 type = 1; int64 unit = 2; }
message Sample { repeated uint64 location_id = 1; repeated int64 value = 2; repeated Label label = 3; }
message Label { int64 key = 1; int64 str = 2; int64 num = 3; int64 num_unit = 4; }
message Mapping {
    uint64 id = 1; uint64 memory_start = 2; uint64 memory_limit = 3; uint64 file_offset = 4; int64 filename = 5; int64 build_id = 6;
    bool has_functions = 7; bool has_filenames = 8; bool has_line_numbers = 9; bool has_inline_frames = 10;
}
message Location { uint64 id = 1; uint64 mapping_id = 2; uint64 address = 3; repeated Line line = 4; bool is_folded = 5; }
message Line { uint64 function_id = 1; int64 line = 2; }
message Function { uint64 id = 1; int64 name = 2; int64 system_name = 3; int64 filename = 4; int64 start_line = 5; }
"#;

/// A profile as text; none without protoc.
#[track_caller]
fn decoded(s: &Stacks, realtime_offset: i64) -> Option<String> {
    if !testkit::has("protoc") {
        testkit::skip("package:protobuf-compiler", "no protoc");
        return None;
    }
    let dir = testkit::Scratch::new("pprof");
    dir.write("profile.proto", PROTO.as_bytes());
    let mut protoc = Command::new("protoc");
    protoc.arg("--proto_path").arg(&*dir).args(["--decode=Profile", "profile.proto"]);
    let mut child = protoc.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("protoc");
    let mut out = Vec::new();
    pprof::write(s, realtime_offset, &mut out);
    child.stdin.take().expect("a pipe").write_all(&out).expect("protoc reads");
    let said = child.wait_with_output().expect("protoc ends");
    assert!(said.status.success());
    let text = String::from_utf8(said.stdout).expect("UTF-8");
    // Fields that the description lacks are shown as numbers.
    assert!(!text.lines().any(|l| l.trim_start().starts_with(|c: char| c.is_ascii_digit())), "{text}");
    Some(text)
}

#[test]
fn protoc_reads_it() {
    if let Some(text) = decoded(&usual(), 1_700_000_000_000_000_000) {
        expect_file!["golden/profile_pprof.txt"].assert_eq(&text);
    }
}

#[test]
fn numbers_that_are_too_large_for_the_format_are_its_largest() {
    let mut s = Stacks::new(Unit::Samples { period: u64::MAX });
    let frame = s.frame(&Frame { function: "f\0", line: u32::MAX, ..Frame::default() });
    let (stack, labels) = (s.stack(&[frame]), s.labels(Labels { pid: u32::MAX, tid: 0, comm: "" }));
    s.add(stack, labels, u64::MAX, 5);
    if let Some(text) = decoded(&s, -10) {
        let large = format!("value: {0}\n  value: {0}\n", i64::MAX);
        assert!(text.contains(&large) && text.contains("line: 4294967295"), "{text}");
        assert!(text.contains(r#"string_table: "f\\u{0}""#) && !text.contains("time_nanos"), "{text}");
    }
}
