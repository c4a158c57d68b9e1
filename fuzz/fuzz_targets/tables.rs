//! Any bytes as a table of symbols that is no ELF file: kallsyms, a map of a just-in-time compiler, a pack, what xz has packed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use symbols::kallsyms::Kallsyms;
use symbols::pack::Pack;
use symbols::perf_map::PerfMap;
use symbols::xz;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(kernel) = Kallsyms::parse(bytes) {
        for f in kernel.functions().take(100) {
            assert!(kernel.find(f.start).is_none_or(|found| found.start == f.start));
        }
    }
    let map = PerfMap::parse(bytes);
    let _ = (map.find(0), map.find(u64::MAX), map.find(0x1000));
    if let Ok(pack) = Pack::parse(bytes) {
        let mut calls = Vec::new();
        pack.calls(0x1000, &mut calls);
        let _ = (pack.function(0x1000), pack.address_of(0x1000));
    }
    let _ = xz::unpack(bytes);
});
