//! Any bytes as an ELF file whose unwind tables are built, and then as a stack that is walked with them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unwind::build::{Module, Space};
use unwind::{Ended, Registers, Rule, Target, Walk};

struct Fuzzed<'f>(&'f [u8], &'f Module);

impl Target for Fuzzed<'_> {
    fn read(&mut self, address: u64) -> Option<u64> {
        let bytes = self.0.get(address as usize..)?.first_chunk()?;
        Some(u64::from_le_bytes(*bytes))
    }
    fn rule(&mut self, address: u64) -> Option<Rule> {
        Some(self.1.rule(address))
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(module) = Module::build(bytes) else { return };
    let mut space = Space::new(4, 1 << 12);
    let _ = space.add(&module, |first, rows| assert!(first % 2 == 0 && !rows.is_empty()));
    let word = |at| bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u64::from_le_bytes(*b));
    for at in (0..bytes.len()).step_by(64).take(64) {
        let registers = Registers { pc: module.base().wrapping_add(word(at) & 0xf_ffff), sp: at as u64, bp: word(at + 8) };
        let mut walk = Walk::new(Fuzzed(bytes, &module), registers, 512);
        assert!(walk.by_ref().count() <= 512 && walk.ended() != Ended::Running);
    }
});
