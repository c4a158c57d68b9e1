//! Any bytes as an ELF file: its tables, its code, its debug information, and as a cache of the dynamic loader.
#![no_main]

use libfuzzer_sys::fuzz_target;
use symbols::dwarf::Debug;
use symbols::ld_cache::LdCache;
use symbols::places::Places;
use symbols::{Elf, build_id, demangle, raise, usdt};

fuzz_target!(|bytes: &[u8]| {
    let _ = LdCache::parse(bytes).map(|c| c.named("libc").len());
    let _ = std::str::from_utf8(bytes).map(demangle::of);
    let _ = build_id::of(bytes);
    let bytes = bytes.to_vec();
    let Ok(elf) = Elf::parse(&bytes[..]) else { return };
    let places = Places::new(&elf, &bytes);
    for f in elf.functions().iter().take(50) {
        let _ = (places.entry(f.address), places.offset(f.address, f.size, 5), places.is_closed(f.address, f.size));
    }
    for s in usdt::of(&elf).iter().take(50) {
        let _ = places.noted(s.address);
    }
    let _ = raise::of(&elf, &bytes);
    if let Some(debug) = Debug::open(&elf, &bytes) {
        for f in elf.functions().iter().take(20) {
            let _ = debug.prototype(f);
        }
        let _ = debug.inlined("main");
    }
});
