//! Any bytes as a stream of each trace of the corpus: read to the end or to an error, and shown.
#![no_main]

use std::path::PathBuf;
use std::sync::OnceLock;

use ctf::model::Metadata;
use ctf::generic::{Item, Reader, Trace};
use ctf::show::{Lines, TimeFormat};
use libfuzzer_sys::fuzz_target;

const CORPUS: [&[u8]; 4] = [
    include_bytes!("../../crates/ctf/tests/corpus/lttng/metadata"),
    include_bytes!("../../crates/ctf/tests/corpus/lttng_ust/metadata"),
    include_bytes!("../../crates/ctf/tests/corpus/packed/metadata"),
    include_bytes!("../../crates/ctf/tests/corpus/small/metadata"),
];

fn metadata() -> &'static [Metadata] {
    static ALL: OnceLock<Vec<Metadata>> = OnceLock::new();
    ALL.get_or_init(|| CORPUS.iter().map(|text| ctf::tsdl::parse_bytes("metadata", text).unwrap()).collect())
}

fn file() -> PathBuf {
    std::env::temp_dir().join(format!("trapline-fuzz-{}", std::process::id()))
}

fuzz_target!(|data: &[u8]| {
    std::fs::write(file(), data).unwrap();
    for metadata in metadata() {
        let trace = Trace::with_streams(&std::env::temp_dir(), metadata.clone(), vec![file()]).unwrap();
        let mut lines = Lines::new(TimeFormat::Seconds);
        for item in Reader::new(vec![trace]) {
            let mut out = String::new();
            match item {
                Ok(Item::Event(event)) => lines.event(&mut out, metadata, &event),
                Ok(other) => lines.notice(&mut out, &other),
                Err(_) => {}
            }
        }
    }
});
