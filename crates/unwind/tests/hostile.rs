//! Damaged files: whatever is in them, there is an answer, and soon.

use object::LittleEndian;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};
use proptest::prelude::*;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use testkit::{Random, rounds, skip};
use unwind::build::{Module, Space};
use unwind::walk::{Registers, Target, Walk};
use unwind::{Ended, Rule};

/// Where `.eh_frame` lies in a file, and its length.
fn eh_frame(bytes: &[u8]) -> Option<(usize, usize)> {
    let e = LittleEndian;
    let header = FileHeader64::<LittleEndian>::parse(bytes).ok()?;
    let sections = header.sections(e, bytes).ok()?;
    let s = sections.iter().find(|s| sections.section_name(e, s) == Ok(b".eh_frame"))?;
    Some((s.sh_offset(e) as usize, s.sh_size(e) as usize))
}

/// A small program, and where its `.eh_frame` lies.
fn seed() -> Option<&'static (Vec<u8>, usize, usize)> {
    static SEED: OnceLock<Option<(Vec<u8>, usize, usize)>> = OnceLock::new();
    SEED.get_or_init(|| {
        let bytes = ["/usr/bin/true", "/bin/true"].iter().find_map(|p| std::fs::read(p).ok())?;
        let (at, len) = eh_frame(&bytes)?;
        Some((bytes, at, len))
    })
    .as_ref()
}

/// Everything that is asked of a file.
fn ask(bytes: &[u8]) {
    let Ok(module) = Module::build(bytes) else { return };
    let tables = module.tables();
    for page in tables.pages {
        let rows = &tables.rows[page.first as usize..][..page.rows as usize];
        assert!(rows.first().is_some_and(|r| r.low() == 0), "a page begins with the row in effect");
        assert!(rows.is_sorted_by_key(|r| r.low()) && rows.len() <= 1 << 16);
        assert!(rows.windows(2).all(|w| w[0].low() < w[1].low()));
        assert!(rows.iter().all(|r| usize::from(r.rule()) < tables.rules.len()));
    }
    let mut space = Space::new(4, 1 << 16);
    let _ = space.add(&module, |first, rows| assert!(first % 2 == 0 && !rows.is_empty()));
    let mut walk = Walk::new(
        Anywhere(&module, 7),
        Registers { pc: module.base().wrapping_add(0x1234), sp: 0x1000, bp: 0x2000 },
        512,
    );
    assert!(walk.by_ref().count() <= 512 && walk.ended() != Ended::Running);
}

/// Memory full of addresses of the file's code.
struct Anywhere<'m>(&'m Module, u64);

impl Target for Anywhere<'_> {
    fn read(&mut self, address: u64) -> Option<u64> {
        self.1 = self.1.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(address | 1);
        Some(self.0.base() + (self.1 >> 48))
    }
    fn rule(&mut self, address: u64) -> Option<Rule> {
        Some(self.0.rule(address))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_unwind_information(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40)) {
        if let Some((whole, at, len)) = seed() {
            let mut bytes = whole.clone();
            for (index, value) in changes {
                bytes[at + index.index(*len)] = value;
            }
            ask(&bytes);
        }
    }
}

#[test]
fn damaged_files_are_answered_soon() {
    let Some((whole, _, _)) = seed() else { return skip("package:coreutils", "no true") };
    let mut r = Random::new(42);
    let started = Instant::now();
    for _ in 0..rounds(500) {
        let mut bytes = whole.clone();
        for _ in 0..=r.index(8) {
            let at = match r.index(3) {
                0 => r.index(1024),
                1 => bytes.len() - 1 - r.index(4096),
                _ => r.index(bytes.len()),
            };
            bytes[at] = r.of(&[0, 1, 0x7f, 0x80, 0xff, 0x10]);
        }
        if r.index(5) == 0 {
            bytes.truncate(r.index(bytes.len()));
        }
        ask(&bytes);
    }
    assert!(started.elapsed() < Duration::from_millis(100 * rounds(500) as u64), "{:?}", started.elapsed());
    for empty in [&b""[..], b"\x7fELF", &whole[..64]] {
        assert!(Module::build(empty).is_err());
    }
}

/// Common instructions that are long, and others for each function: the work is cut.
#[test]
fn long_common_instructions_end_soon() {
    // Its own file: that is large enough.
    let mut bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let (at, len) = eh_frame(&bytes).unwrap();
    // In half of the section there are CIEs in each other, each up to the end of that half. They consist of DW_CFA_def_cfa_expression,
    // with the head of the next one in the expression. Then functions of 16 bytes each.
    const UNIT: usize = 32;
    let half = (len / 2) & !(UNIT - 1);
    let section = &mut bytes[at..at + len];
    for start in (0..half).step_by(UNIT) {
        let unit = &mut section[start..start + UNIT];
        unit.fill(0);
        unit[..4].copy_from_slice(&((half - start) as u32 - 4).to_le_bytes());
        unit[8..17].copy_from_slice(&[1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x03]);
        unit[17..19].copy_from_slice(&[0x0f, UNIT as u8 - 2]);
    }
    for (nth, place) in (half..len - 20).step_by(20).enumerate() {
        let cie = nth * UNIT % half;
        let mut fde = [0u8; 20];
        fde[..4].copy_from_slice(&16u32.to_le_bytes());
        fde[4..8].copy_from_slice(&((place + 4 - cie) as u32).to_le_bytes());
        fde[8..12].copy_from_slice(&0x2800u32.to_le_bytes());
        fde[12..16].copy_from_slice(&1u32.to_le_bytes());
        section[place..place + 20].copy_from_slice(&fde);
    }
    let started = Instant::now();
    let module = Module::build(&bytes).unwrap();
    assert!(module.counts().cut, "{:?}", module.counts());
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}
