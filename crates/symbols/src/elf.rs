//! The tables of an ELF file of 64 bits: its functions and where in the file their first instructions lie, what it imports and
//! from where, its sections.
//!
//! ```text
//!  .symtab, .dynsym: name, address ──► PT_LOAD that holds the address ──► offset in the file (what a uprobe is set on)
//!  .dynsym: names without an address ──► imports;  .dynamic ──► the libraries that are looked through for them
//! ```

use crate::ReadAt;
use crate::headers::section_name;
use object::elf::{
    DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_SONAME, Dyn64, FileHeader64, PF_X, PT_INTERP, PT_LOAD, SHF_COMPRESSED,
    SHT_DYNAMIC, SHT_DYNSYM, SHT_NOBITS, SHT_NOTE, SHT_SYMTAB, STB_LOCAL, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE,
    STT_OBJECT, Sym64,
};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};
use object::read::{ReadCache, ReadRef};
use object::{Endianness, SectionIndex};
use std::io::{Read, Seek};

/// The largest file that is read.
const MAX_FILE: u64 = 4 << 30;
/// The most symbols per table, and segments, that are read.
const MAX_SYMBOLS: usize = 4 << 20;
const MAX_SEGMENTS: usize = 1024;
const MAX_SECTIONS: usize = 4096;
/// The most entries of `.dynamic`, and the longest name of a symbol or a file.
const MAX_DYNAMIC: usize = 4096;
const MAX_NAME: usize = 4096;

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
    /// Name as in the file: mangled, without a version.
    pub name: String,
    /// Address in the file's own address space.
    pub address: u64,
    /// Bytes; 0 where the file does not have the size.
    pub size: u64,
    /// Where its first instruction lies in the file.
    pub offset: u64,
    /// It is not the function but what chooses one when the file is loaded (`STT_GNU_IFUNC`): calls do not come here.
    pub indirect: bool,
    /// Only code that was compiled or linked together with it can call it by name.
    pub local: bool,
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

/// A section: where its bytes lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Name.
    pub name: String,
    /// Address; 0 where it is not loaded.
    pub address: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Bytes in the file.
    pub size: u64,
    /// Its bytes are compressed.
    pub compressed: bool,
}

/// The dynamic section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dynamic {
    /// The libraries that are loaded with it (`DT_NEEDED`).
    pub needed: Vec<String>,
    /// Its own name as a library (`DT_SONAME`).
    pub soname: Option<String>,
    /// Where it looks for libraries before everybody else (`DT_RPATH`, which `DT_RUNPATH` replaces).
    pub rpath: Option<String>,
    /// Where it looks for libraries after `LD_LIBRARY_PATH` (`DT_RUNPATH`).
    pub runpath: Option<String>,
}

/// What was read of a file.
#[derive(Clone, Debug, Default)]
pub struct Elf {
    loads: Vec<Load>,
    functions: Vec<Function>,
    sections: Vec<Section>,
    imports: Vec<String>,
    dynamic: Dynamic,
    interpreter: Option<String>,
    has_symtab: bool,
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

    /// Reads the tables from bytes, or from anything that `object` reads.
    pub fn parse<'a>(data: impl ReadRef<'a>) -> Result<Elf, ElfError> {
        if data.len().map_err(|()| ElfError::Kind)? > MAX_FILE {
            return Err(ElfError::Size);
        }
        let header = FileHeader64::<Endianness>::parse(data).map_err(|_| ElfError::Kind)?;
        let endian = header.endian()?;
        let mut elf = Elf { machine: header.e_machine(endian), ..Elf::default() };
        for p in header.program_headers(endian, data)?.iter().take(MAX_SEGMENTS) {
            let (offset, len) = (p.p_offset(endian), p.p_filesz(endian));
            match p.p_type(endian) {
                PT_LOAD => {
                    let code = p.p_flags(endian) & PF_X != 0;
                    elf.loads.push(Load { address: p.p_vaddr(endian), offset, len, code });
                }
                PT_INTERP if len <= MAX_NAME as u64 => {
                    elf.interpreter = data.read_bytes_at(offset, len).ok().map(|b| text_at(b, 0));
                }
                _ => {}
            }
        }
        let sections = header.sections(endian, data)?;
        let strings_of = |s: &object::elf::SectionHeader64<Endianness>| {
            sections.section(SectionIndex(s.sh_link(endian) as usize))?.data(endian, data)
        };
        for s in sections.iter().take(MAX_SECTIONS) {
            let name = sections.section_name(endian, s).unwrap_or_default();
            let (shown, is_zdebug) = section_name(String::from_utf8_lossy(name).into_owned());
            elf.sections.push(Section {
                name: shown,
                address: s.sh_addr(endian),
                offset: s.sh_offset(endian),
                size: if s.sh_type(endian) == SHT_NOBITS { 0 } else { s.sh_size(endian) },
                compressed: is_zdebug || s.sh_flags(endian) & u64::from(SHF_COMPRESSED) != 0,
            });
            match s.sh_type(endian) {
                kind @ (SHT_SYMTAB | SHT_DYNSYM) => {
                    let symbols = s.data_as_array::<Sym64<Endianness>, _>(endian, data)?;
                    let strings = strings_of(s)?;
                    elf.has_symtab |= kind == SHT_SYMTAB;
                    elf.add(symbols, strings, endian);
                    if kind == SHT_DYNSYM {
                        elf.import(symbols, strings, endian);
                    }
                }
                SHT_DYNAMIC => {
                    let entries = s.data_as_array::<Dyn64<Endianness>, _>(endian, data)?;
                    elf.dynamic = dynamic(entries, strings_of(s)?, endian);
                }
                SHT_NOTE if name == b".note.stapsdt" => elf.notes = s.data(endian, data)?.to_vec(),
                _ if name == b".stapsdt.base" => elf.note_base = Some(s.sh_addr(endian)),
                _ => {}
            }
        }
        elf.functions.sort();
        elf.functions.dedup_by(|a, b| a.name == b.name && a.offset == b.offset);
        elf.imports.sort();
        elf.imports.dedup();
        Ok(elf)
    }

    fn add(&mut self, symbols: &[Sym64<Endianness>], strings: &[u8], endian: Endianness) {
        for s in symbols.iter().take(MAX_SYMBOLS) {
            if !matches!(s.st_type(), STT_FUNC | STT_GNU_IFUNC) || s.st_shndx(endian) == 0 {
                continue;
            }
            let (address, size) = (s.st_value(endian), s.st_size(endian));
            let Some(offset) = self.code_offset(address) else { continue };
            let name = text_at(strings, s.st_name(endian) as usize);
            if name.is_empty() {
                continue;
            }
            let (indirect, local) = (s.st_type() == STT_GNU_IFUNC, s.st_bind() == STB_LOCAL);
            self.functions.push(Function { name, address, size, offset, indirect, local });
        }
    }

    /// Notes the functions that other files are to provide.
    fn import(&mut self, symbols: &[Sym64<Endianness>], strings: &[u8], endian: Endianness) {
        for s in symbols.iter().take(MAX_SYMBOLS) {
            let may_be_function = matches!(s.st_type(), STT_FUNC | STT_GNU_IFUNC | STT_NOTYPE);
            if may_be_function && s.st_shndx(endian) == 0 && s.st_bind() != STB_LOCAL {
                self.imports.push(text_at(strings, s.st_name(endian) as usize));
            }
        }
    }

    /// The names that it looks for in other files, sorted: functions, and what may be one.
    pub fn imports(&self) -> &[String] {
        &self.imports
    }

    /// Whether it looks for `name` in other files.
    pub fn is_imported(&self, name: &str) -> bool {
        self.imports.binary_search_by(|i| i.as_str().cmp(name)).is_ok()
    }

    /// The dynamic section.
    pub fn dynamic(&self) -> &Dynamic {
        &self.dynamic
    }

    /// The dynamic loader, of programs that have one.
    pub fn interpreter(&self) -> Option<&str> {
        self.interpreter.as_deref()
    }

    /// Whether it is linked with nothing: neither a loader nor libraries.
    pub fn is_static(&self) -> bool {
        self.interpreter.is_none() && self.dynamic.needed.is_empty()
    }

    /// Whether it has been stripped: only the symbols that others may use are left.
    pub fn is_stripped(&self) -> bool {
        !self.has_symtab
    }

    /// All sections.
    pub fn sections(&self) -> impl Iterator<Item = &Section> {
        self.sections.iter()
    }

    /// The section of this name.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|s| s.name == name)
    }

    /// What is loaded of it: address, offset and bytes in the file, and whether they can be executed.
    pub fn loaded(&self) -> impl Iterator<Item = (u64, u64, u64, bool)> + '_ {
        self.loads.iter().map(|l| (l.address, l.offset, l.len, l.code))
    }

    /// At most `most` bytes of code from `address` on, as many as are in the file and can be executed.
    pub fn code(&self, file: &(impl ReadAt + ?Sized), address: u64, most: usize) -> Vec<u8> {
        let inside = |l: &&Load| l.code && address.checked_sub(l.address).is_some_and(|at| at < l.len);
        let Some(load) = self.loads.iter().find(inside) else { return Vec::new() };
        let at = address - load.address;
        let mut bytes = vec![0; (load.len - at).min(most as u64) as usize];
        match load.offset.checked_add(at).map(|from| file.read_at(from, &mut bytes)) {
            Some(Ok(())) => bytes,
            _ => Vec::new(),
        }
    }

    /// All functions, in order of names. A name may belong to several (static functions of several sources).
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

    /// Where the byte at `address` lies in the file, if it can be executed.
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

/// A symbol of a function or of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Address as in the file's tables.
    pub address: u64,
    /// Bytes, 0 where that is not known.
    pub size: u64,
}

/// The function, or the data, that has this name in a file.
pub fn symbol(file: impl Read + Seek, name: &str) -> Option<Symbol> {
    let cache = ReadCache::new(file);
    let data = &cache;
    data.len().ok().filter(|len| *len <= MAX_FILE)?;
    let header = FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, data).ok()?;
    let is_table = |s: &&object::elf::SectionHeader64<Endianness>| matches!(s.sh_type(endian), SHT_SYMTAB | SHT_DYNSYM);
    sections.iter().take(MAX_SECTIONS).filter(is_table).find_map(|s| {
        let all = s.data_as_array::<Sym64<Endianness>, _>(endian, data).ok()?;
        let strings = sections.section(SectionIndex(s.sh_link(endian) as usize)).ok()?.data(endian, data).ok()?;
        let is_it = |s: &&Sym64<Endianness>| {
            let text = strings.get(s.st_name(endian) as usize..).unwrap_or_default();
            matches!(s.st_type(), STT_FUNC | STT_OBJECT)
                && s.st_shndx(endian) != 0
                && text.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
        };
        let found = all.iter().take(MAX_SYMBOLS).find(is_it)?;
        Some(Symbol { address: found.st_value(endian), size: found.st_size(endian) })
    })
}

/// The text at an offset of a string table, up to its NUL; empty where it is too long.
fn text_at(strings: &[u8], at: usize) -> String {
    let rest = strings.get(at..).unwrap_or_default();
    let rest = &rest[..rest.len().min(MAX_NAME + 1)];
    match rest.iter().position(|b| *b == 0) {
        Some(end) => String::from_utf8_lossy(&rest[..end]).into_owned(),
        None if rest.len() <= MAX_NAME => String::from_utf8_lossy(rest).into_owned(),
        None => String::new(),
    }
}

fn dynamic(entries: &[Dyn64<Endianness>], strings: &[u8], endian: Endianness) -> Dynamic {
    let mut all = Dynamic::default();
    for e in entries.iter().take(MAX_DYNAMIC) {
        let text = || Some(text_at(strings, usize::try_from(e.d_val.get(endian)).ok()?));
        match e.d_tag.get(endian) {
            0 => break,
            DT_NEEDED => all.needed.extend(text()),
            DT_SONAME => all.soname = text(),
            DT_RPATH => all.rpath = text(),
            DT_RUNPATH => all.runpath = text(),
            _ => {}
        }
    }
    all
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
    fn symbols_are_found_by_their_whole_names() {
        let of = |name: &str| symbol(std::fs::File::open(std::env::current_exe().unwrap()).unwrap(), name);
        let elf = Elf::parse(&own()[..]).unwrap();
        let main = &elf.function("main")[0];
        assert_eq!(of("main"), Some(Symbol { address: main.address, size: main.size }));
        assert_eq!((of("mai"), of("main2")), (None, None));
        assert_eq!(symbol(std::io::Cursor::new(b"#!/bin/sh\n"), "main"), None);
    }

    #[test]
    fn damaged_files_are_refused_or_read_in_part() {
        assert_eq!(Elf::parse(&b"#!/bin/sh\n"[..]).unwrap_err(), ElfError::Kind);
        let mut bytes = own();
        for n in [0, 16, 63, 64, 200, 4096] {
            let _ = Elf::parse(&bytes[..n]);
        }
        let table = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
        for at in (0..64).chain((table..bytes.len().min(table + 64 * 40)).step_by(61)) {
            let old = bytes[at];
            for new in [0x7f, 0xff] {
                bytes[at] = new;
                let _ = Elf::parse(&bytes[..]);
            }
            bytes[at] = old;
        }
    }
}
