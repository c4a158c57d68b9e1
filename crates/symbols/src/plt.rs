//! The entries of `.plt` and its like, which have no symbols: named as what they jump to, `puts@plt`.
//!
//! ```text
//!  endbr64; bnd jmp *slot(%rip) ─► slot ─► .rela.plt, .rela.dyn: relocation of that slot ─► .dynsym ─► puts
//!  push $n; jmp .plt ─► the n-th relocation of .rela.plt
//! ```

use crate::ReadAt;
use crate::headers::{Headers, SectionHeader, read_bytes, u32_at, u64_at};
use std::collections::HashMap;

/// The most bytes of a section that is read for this.
const MAX: u64 = 64 << 20;
/// The longest name.
const MAX_NAME: usize = 4096;
/// `R_X86_64_GLOB_DAT` and `R_X86_64_JUMP_SLOT`.
const NAMED: [u32; 2] = [6, 7];
/// Bytes of `Elf64_Rela` and of `Elf64_Sym`.
const RELA: usize = 24;
const SYMBOL: usize = 24;

/// The entries of a file's `.plt`, `.plt.sec` and `.plt.got`.
#[derive(Debug, Default)]
pub struct Plt {
    /// From, to, name.
    entries: Vec<(u64, u64, String)>,
}

/// Whether a section holds entries of this kind.
pub fn is_plt(section: &SectionHeader) -> bool {
    section.executable && (section.name == ".plt" || section.name.starts_with(".plt."))
}

impl Plt {
    /// Of a file.
    pub fn read(headers: &Headers, file: &(impl ReadAt + ?Sized)) -> Plt {
        let mut entries = Vec::new();
        let names = Names::read(headers, file);
        for section in headers.sections.iter().filter(|s| is_plt(s)) {
            let Some(bytes) = headers.bytes(file, &section.name, MAX) else { continue };
            let size = if section.entry == 8 { 8 } else { 16 };
            for (i, code) in bytes.chunks(size).enumerate() {
                let from = section.address.wrapping_add((i * size) as u64);
                let Some(name) = names.of_entry(code, from) else { continue };
                entries.push((from, from.saturating_add(size as u64), name));
            }
        }
        entries.sort();
        Plt { entries }
    }

    /// Name and first address of the entry that holds an address.
    pub fn find(&self, address: u64) -> Option<(&str, u64)> {
        let at = self.entries.partition_point(|e| e.0 <= address).checked_sub(1)?;
        let (from, _, name) = self.entries.get(at).filter(|e| address < e.1)?;
        Some((name, *from))
    }

    /// All entries: from, to, name.
    pub fn entries(&self) -> &[(u64, u64, String)] {
        &self.entries
    }
}

/// Which functions the slots are for.
#[derive(Default)]
struct Names {
    symbols: Vec<u8>,
    strings: Vec<u8>,
    /// Symbols by the address of the slot.
    slots: HashMap<u64, u32>,
    /// Symbols in the order of `.rela.plt`.
    order: Vec<u32>,
}

impl Names {
    fn read(headers: &Headers, file: &(impl ReadAt + ?Sized)) -> Names {
        let mut names = Names::default();
        let Some(dynsym) = headers.section(".dynsym").filter(|s| s.size <= MAX) else { return names };
        names.symbols = read_bytes(file, dynsym.offset, dynsym.size).unwrap_or_default();
        let strings = headers.sections.get(dynsym.link as usize).filter(|s| s.size <= MAX);
        names.strings = strings.and_then(|s| read_bytes(file, s.offset, s.size)).unwrap_or_default();
        for section in [".rela.plt", ".rela.dyn"] {
            let Some(bytes) = headers.bytes(file, section, MAX) else { continue };
            for r in bytes.chunks_exact(RELA) {
                let (Some(slot), Some(kind), Some(symbol)) = (u64_at(r, 0), u32_at(r, 8), u32_at(r, 12)) else {
                    continue;
                };
                if section == ".rela.plt" {
                    names.order.push(symbol);
                }
                if NAMED.contains(&kind) && symbol != 0 {
                    names.slots.entry(slot).or_insert(symbol);
                }
            }
        }
        names
    }

    /// What an entry at an address jumps to.
    fn of_entry(&self, code: &[u8], address: u64) -> Option<String> {
        let jump = code.windows(6).position(|w| w.starts_with(&[0xff, 0x25]));
        let symbol = match jump {
            Some(at) => {
                let distance = u32_at(code, at + 2)? as i32;
                let next = address.wrapping_add(at as u64 + 6);
                *self.slots.get(&next.wrapping_add_signed(distance.into()))?
            }
            None => {
                let rest = code.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(code);
                *self.order.get(u32_at(rest.strip_prefix(&[0x68])?, 0)? as usize)?
            }
        };
        let at = (symbol as usize).checked_mul(SYMBOL)?;
        let name = self.strings.get(u32_at(&self.symbols, at)? as usize..)?;
        let name = &name[..name.len().min(MAX_NAME)];
        let name = &name[..name.iter().position(|b| *b == 0)?];
        (!name.is_empty()).then(|| format!("{}@plt", String::from_utf8_lossy(name)))
    }
}
