//! The streams of the corpus are what the writer of the tests makes of its metadata; `lttng_ust` is a recording of LTTng 2.13.

use super::encode::{PacketSpec, packet};
use super::samples;

#[test]
fn streams_are_up_to_date() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    for (name, text) in [("lttng", samples::LTTNG), ("packed", samples::PACKED), ("small", samples::SMALL)] {
        let metadata = ctf::tsdl::parse(name, text).expect("metadata");
        for stream in 0..metadata.streams.len() {
            let spec =
                |sequence| PacketSpec { stream, sequence, begin: 2000 * (sequence + 1), ..PacketSpec::default() };
            let file: Vec<u8> = (0..2).flat_map(|sequence| packet(&metadata, spec(sequence)).0).collect();
            let path = dir.join(name).join(format!("stream{stream}"));
            if std::env::var_os("UPDATE_EXPECT").is_some() {
                std::fs::write(&path, &file).expect("a file");
            }
            assert!(
                std::fs::read(&path).expect("a file") == file,
                "{}: UPDATE_EXPECT=1 writes it anew",
                path.display()
            );
        }
    }
}

#[test]
fn lines_of_the_corpus() {
    for name in ["lttng", "lttng_ust", "packed", "small"] {
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(name);
        let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/it/golden/{name}.txt"));
        expect_test::expect_file![golden].assert_eq(&super::babeltrace::ours(&dir));
    }
}
