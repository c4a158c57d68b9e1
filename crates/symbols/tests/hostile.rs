//! Whole files with bytes overwritten, or cut off: whatever is asked of them, there is an answer, and soon.

use std::time::{Duration, Instant};
use symbols::dwarf::Debug;
use symbols::places::Places;
use symbols::{Elf, throws, usdt};
use testkit::{Random, rounds};

/// Everything that is asked of a file.
fn ask(bytes: &Vec<u8>) {
    let Ok(elf) = Elf::parse(&bytes[..]) else { return };
    let places = Places::new(&elf, bytes);
    for f in elf.functions().iter().take(200) {
        let _ = (places.entry(f.address), places.offset(f.address, f.size, 3), places.is_closed(f.address, f.size));
    }
    for s in usdt::of(&elf).iter().take(50) {
        let _ = places.noted(s.address);
    }
    let _ = throws::of(&elf, bytes);
    if let Some(debug) = Debug::open(&elf, bytes) {
        for f in elf.functions().iter().take(50) {
            let _ = debug.prototype(f);
        }
        let _ = debug.inlined("main");
    }
}

/// Programs that are small: most of what is damaged counts.
fn files() -> Vec<Vec<u8>> {
    let candidates = ["/usr/bin/true", "/bin/sh", "/lib64/ld-linux-x86-64.so.2", "/lib/ld-musl-x86_64.so.1"];
    candidates.iter().filter_map(|p| std::fs::read(p).ok()).filter(|b| b.len() < 1 << 20).collect()
}

#[test]
fn files_with_damage_are_answered_soon() {
    let mut r = Random::new(4711);
    let mut random = |n: usize| r.index(n);
    let files = files();
    if files.is_empty() {
        return testkit::skip("package:dash", "no small program or loader");
    }
    for whole in files {
        ask(&whole);
        let started = Instant::now();
        for _ in 0..rounds(1000) {
            let mut bytes = whole.clone();
            // Where most of what leads elsewhere stands: the head, the tables at the end.
            for _ in 0..=random(8) {
                let at = match random(4) {
                    0 => random(1024.min(bytes.len())),
                    1 => bytes.len() - 1 - random(4096.min(bytes.len() - 1)),
                    _ => random(bytes.len()),
                };
                bytes[at] = [0, 1, 0x7f, 0x80, 0xff, random(256) as u8][random(6)];
            }
            if random(5) == 0 {
                bytes.truncate(random(bytes.len()));
            }
            ask(&bytes);
        }
        assert!(started.elapsed() < Duration::from_millis(60 * rounds(1000) as u64), "{:?}", started.elapsed());
    }
}

/// Abbreviations that cost nothing to read, and refer to themselves: work is counted.
#[test]
fn endless_debug_information_ends() {
    use std::fs;
    let exe = fs::read(std::env::current_exe().expect("own file")).expect("own file");
    let elf = Elf::parse(&exe[..]).expect("ELF");
    let section = |name: &str| elf.section(name).expect("a debug section").clone();
    let (info, abbreviations) = (section(".debug_info"), section(".debug_abbrev"));
    let mut bytes = exe.clone();
    // One unit of DWARF 4 over the whole section, whose entries have thousands of attributes without bytes (DW_FORM_flag_present).
    let at = info.offset as usize;
    bytes[at..at + info.size as usize].fill(1);
    bytes[at..at + 4].copy_from_slice(&(info.size as u32 - 4).to_le_bytes());
    bytes[at + 4..at + 11].copy_from_slice(&[4, 0, 0, 0, 0, 0, 8]);
    let at = abbreviations.offset as usize;
    let table = &mut bytes[at..at + abbreviations.size as usize];
    table.fill(0);
    table[..3].copy_from_slice(&[1, 0x2e, 1]);
    let attributes = (table.len() - 16) / 2;
    for pair in table[3..3 + 2 * attributes].chunks_exact_mut(2) {
        pair.copy_from_slice(&[0x3f, 0x19]);
    }
    let started = Instant::now();
    let debug = Debug::open(&elf, &bytes).expect("sections");
    let [main] = elf.function("main") else { panic!("one main") };
    let _ = (debug.prototype(main), debug.inlined("main"));
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}
