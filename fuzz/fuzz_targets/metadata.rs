//! Any bytes as metadata: parsed or refused, and what is parsed can be printed and parsed again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(model) = ctf::tsdl::parse_bytes("metadata", data) {
        let text = ctf::print::tsdl(&model);
        assert!(ctf::tsdl::parse("metadata", &text).is_ok(), "{text}");
    }
});
