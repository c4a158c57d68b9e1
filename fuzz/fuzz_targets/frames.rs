//! Any bytes as a module: its symbols, its debug information, what is packed of it and read back. Names, inlined functions and lines of
//! many addresses.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::Path;
use std::rc::Rc;
use symbols::debug_link::{DebugLink, SharedLink};
use symbols::files::{Files, Identity, OpenFile};
use symbols::headers::Headers;
use symbols::module::Module;
use symbols::pack::Pack;

/// The bytes are what a file shares with others, too.
struct Same(Rc<Vec<u8>>);

impl Files for Same {
    fn program(&self, _: &Identity) -> Option<OpenFile> {
        None
    }

    fn shared(&self, _: &SharedLink, by: &Path) -> Option<OpenFile> {
        Some(OpenFile { path: by.to_path_buf(), bytes: self.0.clone() })
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some(headers) = Headers::read(bytes) else { return };
    let _ = DebugLink::read(&headers, bytes);
    let bytes = Rc::new(bytes.to_vec());
    let files = Rc::new(Same(bytes.clone()));
    let module = Module::of_bytes(Identity::new("/x", &[]), bytes, files, true);
    let code = headers.sections.iter().filter(|s| s.executable).take(8);
    let addresses: Vec<u64> = code.flat_map(|s| (0..32).map(|i| s.address.wrapping_add(s.memory / 32 * i))).collect();
    let mut calls = Vec::new();
    for address in &addresses {
        calls.clear();
        module.calls(*address, &mut calls);
    }
    let pack = Pack::parse(&module.packed(addresses, true)).expect("a pack of its own");
    let _ = pack.function(0x1000);
});
