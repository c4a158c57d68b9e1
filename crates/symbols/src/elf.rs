//! The functions of an ELF file of 64 bits, and where in the file their first instructions lie.
//!
//! ```text
//!  .symtab, .dynsym: name, address ──► PT_LOAD that holds the address ──► offset in the file (what a uprobe is set on)
//! ```

use object::elf::{FileHeader64, PF_X, PT_LOAD, SHT_DYNSYM, SHT_NOTE, SHT_SYMTAB, STT_FUNC, STT_GNU_IFUNC, Sym64};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};
use object::read::{ReadCache, ReadRef};
use object::{Endianness, SectionIndex};
use std::io::{Read, Seek};

/// The largest file that is read.
const MAX_FILE: u64 = 4 << 30;
/// The most symbols per table, and segments, that are looked at.
const MAX_SYMBOLS: usize = 4 << 20;
const MAX_SEGMENTS: usize = 1024;

/// Why a file has no functions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ElfError {
    /// It is no ELF file of 64 bits.
    #[error("not an ELF file of 64 bits")]
    Kind,
    /// It is larger than what is read.
    #[error("larger than 4 GiB")]
    Size,
    /// It contradicts itself.
    #[error("a damaged ELF file ({0})")]
    Damaged(String),
}

impl From<object::Error> for ElfError {
    fn from(e: object::Error) -> ElfError {
        ElfError::Damaged(e.to_string())
    }
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Function {
    /// Name as it stands in the file: mangled, without a version.
    pub name: String,
    /// Address in the file's own address space.
    pub address: u64,
    /// Bytes; 0 where the file does not say.
    pub size: u64,
    /// Where its first instruction lies in the file.
    pub offset: u64,
    /// It is not the function but what chooses one when the file is loaded (`STT_GNU_IFUNC`): calls do not come here.
    pub indirect: bool,
}

/// A segment that is loaded.
#[derive(Clone, Copy, Debug)]
struct Load {
    address: u64,
    offset: u64,
    /// Bytes in the file.
    len: u64,
    code: bool,
}

/// What was read of a file.
#[derive(Clone, Debug, Default)]
pub struct Elf {
    loads: Vec<Load>,
    functions: Vec<Function>,
    pub(crate) notes: Vec<u8>,
    /// Address of `.stapsdt.base`.
    pub(crate) note_base: Option<u64>,
    machine: u16,
}

impl Elf {
    /// Reads the tables of a file.
    pub fn read(file: impl Read + Seek) -> Result<Elf, ElfError> {
        let cache = ReadCache::new(file);
        Elf::parse(&cache)
    }

    /// The same of bytes, or of anything that `object` reads.
    pub fn parse<'a>(data: impl ReadRef<'a>) -> Result<Elf, ElfError> {
        if data.len().map_err(|()| ElfError::Kind)? > MAX_FILE {
            return Err(ElfError::Size);
        }
        let header = FileHeader64::<Endianness>::parse(data).map_err(|_| ElfError::Kind)?;
        let endian = header.endian()?;
        let mut elf = Elf { machine: header.e_machine(endian), ..Elf::default() };
        for p in header.program_headers(endian, data)?.iter().take(MAX_SEGMENTS) {
            if p.p_type(endian) == PT_LOAD {
                elf.loads.push(Load {
                    address: p.p_vaddr(endian),
                    offset: p.p_offset(endian),
                    len: p.p_filesz(endian),
                    code: p.p_flags(endian) & PF_X != 0,
                });
            }
        }
        let sections = header.sections(endian, data)?;
        for s in sections.iter() {
            match s.sh_type(endian) {
                SHT_SYMTAB | SHT_DYNSYM => {
                    let symbols = s.data_as_array::<Sym64<Endianness>, _>(endian, data)?;
                    let strings = sections.section(SectionIndex(s.sh_link(endian) as usize))?.data(endian, data)?;
                    elf.add(symbols, strings, endian);
                }
                SHT_NOTE if sections.section_name(endian, s) == Ok(b".note.stapsdt") => {
                    elf.notes = s.data(endian, data)?.to_vec();
                }
                _ if sections.section_name(endian, s) == Ok(b".stapsdt.base") => {
                    elf.note_base = Some(s.sh_addr(endian));
                }
                _ => {}
            }
        }
        elf.functions.sort();
        elf.functions.dedup_by(|a, b| a.name == b.name && a.offset == b.offset);
        Ok(elf)
    }

    fn add(&mut self, symbols: &[Sym64<Endianness>], strings: &[u8], endian: Endianness) {
        for s in symbols.iter().take(MAX_SYMBOLS) {
            if !matches!(s.st_type(), STT_FUNC | STT_GNU_IFUNC) || s.st_shndx(endian) == 0 {
                continue;
            }
            let (address, size) = (s.st_value(endian), s.st_size(endian));
            let Some(offset) = self.code_offset(address) else { continue };
            let name = strings.get(s.st_name(endian) as usize..).unwrap_or_default();
            let name = name.split(|b| *b == 0).next().unwrap_or_default();
            if name.is_empty() || name.len() > 4096 {
                continue;
            }
            let name = String::from_utf8_lossy(name).into_owned();
            let indirect = s.st_type() == STT_GNU_IFUNC;
            self.functions.push(Function { name, address, size, offset, indirect });
        }
    }

    /// All functions, in order of names. A name may stand for several (static functions of several sources).
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The functions of this name.
    pub fn function(&self, name: &str) -> &[Function] {
        let from = self.functions.partition_point(|f| f.name.as_str() < name);
        let len = self.functions[from..].partition_point(|f| f.name == name);
        &self.functions[from..from + len]
    }

    /// Where the byte at `address` lies in the file; none: not in the file.
    pub fn file_offset(&self, address: u64) -> Option<u64> {
        self.offset(address, |_| true)
    }

    /// The same, if the byte can be executed.
    pub fn code_offset(&self, address: u64) -> Option<u64> {
        self.offset(address, |l| l.code)
    }

    fn offset(&self, address: u64, wanted: impl Fn(&Load) -> bool) -> Option<u64> {
        let inside = |l: &&Load| wanted(l) && address.checked_sub(l.address).is_some_and(|at| at < l.len);
        let load = self.loads.iter().find(inside)?;
        (address - load.address).checked_add(load.offset)
    }

    /// `EM_*`, for instance 62 for x86_64.
    pub fn machine(&self) -> u16 {
        self.machine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Vec<u8> {
        std::fs::read(std::env::current_exe().unwrap()).unwrap()
    }

    #[test]
    fn functions_of_this_program_lie_where_the_file_says() {
        let bytes = own();
        let elf = Elf::parse(&bytes[..]).unwrap();
        let [main] = elf.function("main") else { panic!("one main") };
        assert_eq!(elf.code_offset(main.address), Some(main.offset));
        assert!(main.offset < bytes.len() as u64);
        assert!(elf.functions().is_sorted());
        assert_eq!(elf.function("no such function"), []);
        let file = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(Elf::read(file).unwrap().functions(), elf.functions());
    }

    #[test]
    fn damaged_files_are_refused_or_read_in_part() {
        assert_eq!(Elf::parse(&b"#!/bin/sh\n"[..]).unwrap_err(), ElfError::Kind);
        let mut bytes = own();
        for n in [0, 16, 63, 64, 200, 4096] {
            let _ = Elf::parse(&bytes[..n]);
        }
        let table = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
        for at in (0..64).chain((table..table + 64 * 40).step_by(61)) {
            let old = bytes[at];
            for new in [0x7f, 0xff] {
                bytes[at] = new;
                let _ = Elf::parse(&bytes[..]);
            }
            bytes[at] = old;
        }
    }
}
