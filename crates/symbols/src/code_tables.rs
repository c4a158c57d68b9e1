//! What is needed to plan patches of a file's functions: where its code is, its functions with their names, the labels in the code, and
//! the entries that compilers' profiling calls lead to.

use crate::ReadAt;
use crate::frames::{Frame, Frames};
use crate::headers::Headers;
use crate::plt::Plt;
use crate::{Elf, ElfError};
use object::LittleEndian as Le;
use object::SectionIndex;
use object::elf::{FileHeader64, SHF_EXECINSTR, SHT_DYNSYM, SHT_RELA, SHT_SYMTAB};
use object::elf::{PF_X, PT_LOAD, STT_FILE, STT_FUNC, STT_GNU_IFUNC, STT_SECTION, STT_TLS};
use object::read::elf::{FileHeader, ProgramHeader, Rela, SectionHeader, Sym};
use object::read::{ReadCache, ReadRef};
use std::fs::File;

/// The functions that compilers call at the beginning of others for profilers (`-pg`, `-mfentry`).
const PROFILERS: [&str; 3] = ["mcount", "_mcount", "__fentry__"];
/// The most functions of a file, and bytes of its code.
const MAX_FUNCTIONS: usize = 2 << 20;
const MAX_CODE: u64 = 1 << 30;

/// An executable segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// Its address in the file's own address space.
    pub address: u64,
    /// Its offset in the file.
    pub offset: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A function by one of its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The linker's name, without a version.
    pub name: String,
    /// Where it begins.
    pub address: u64,
    /// Its bytes; 0: not known.
    pub size: u64,
    /// It chooses a function when the file is loaded (IFUNC).
    pub indirect: bool,
}

/// Where an executable segment is: address, offset, bytes.
type Place = (u64, u64, u64);

/// The tables.
#[derive(Debug, Default)]
pub struct CodeTables {
    /// Executable segments.
    pub code: Vec<Code>,
    /// Functions of `.symtab`, or where that is missing of `.dynsym`. Several may have one address.
    pub functions: Vec<Named>,
    /// Addresses of all symbols in code, sorted.
    pub labels: Vec<u64>,
    /// Addresses of the functions that compilers call for profilers, of their entries in the PLT and of their pointers in the GOT, sorted.
    pub profilers: Vec<u64>,
    /// Where the program begins; 0 in a library without a beginning.
    pub entry: u64,
    /// It has what Go's linker leaves in every program (`.go.buildinfo`, or the tables of its runtime).
    pub is_go: bool,
    /// Entries of `.eh_frame`, sorted, and whether each begins as a function that was called does.
    pub frames: Vec<(Frame, bool)>,
}

impl CodeTables {
    /// Reads them.
    ///
    /// # Errors
    /// It is no ELF file for x86-64, or a damaged one.
    pub fn read(file: &File) -> Result<CodeTables, ElfError> {
        let cache = ReadCache::new(file);
        let (mut tables, segments) = CodeTables::of(&cache)?;
        let elf = Elf::parse(&cache)?;
        if let Some(headers) = Headers::read(file) {
            let plt = Plt::read(&headers, file);
            let entries = plt.entries().iter().filter(|e| is_profiler(&e.2));
            tables.profilers.extend(entries.map(|e| e.0));
        }
        let frames = Frames::read(&elf, file);
        tables.frames = frames.all().iter().map(|f| (*f, frames.is_as_called(f.start) == Some(true))).collect();
        tables.profilers.sort_unstable();
        tables.labels.sort_unstable();
        tables.labels.dedup();
        let mut left = MAX_CODE;
        for (address, offset, len) in segments {
            left = left.checked_sub(len).ok_or_else(|| ElfError::Damaged("its code is too large".into()))?;
            let mut bytes = vec![0; len as usize];
            file.read_at(offset, &mut bytes).map_err(|e| ElfError::Damaged(e.to_string()))?;
            tables.code.push(Code { address, offset, bytes });
        }
        Ok(tables)
    }

    /// What symbols and headers say, and the executable segments: address, offset, bytes.
    fn of<'a>(data: impl ReadRef<'a>) -> Result<(CodeTables, Vec<Place>), ElfError> {
        let header = FileHeader64::<Le>::parse(data)?;
        let (mut tables, mut segments) = (CodeTables::default(), Vec::new());
        for p in header.program_headers(Le, data)? {
            if p.p_type(Le) == PT_LOAD && p.p_flags(Le) & PF_X != 0 {
                segments.push((p.p_vaddr(Le), p.p_offset(Le), p.p_filesz(Le)));
            }
        }
        tables.entry = header.e_entry(Le);
        let sections = header.sections(Le, data)?;
        let is_go = |s: &<FileHeader64<Le> as FileHeader>::SectionHeader| {
            sections.section_name(Le, s).is_ok_and(|name| name == b".go.buildinfo" || name == b".gopclntab")
        };
        tables.is_go = sections.iter().any(is_go);
        let has_symtab = sections.iter().any(|s| s.sh_type(Le) == SHT_SYMTAB);
        let symbols = sections.symbols(Le, data, if has_symtab { SHT_SYMTAB } else { SHT_DYNSYM })?;
        for symbol in symbols.iter() {
            let kind = symbol.st_type();
            let section = sections.section(SectionIndex(symbol.st_shndx(Le).into()));
            let is_code = section.is_ok_and(|s| s.sh_flags(Le) & u64::from(SHF_EXECINSTR) != 0);
            if !is_code || [STT_FILE, STT_SECTION, STT_TLS].contains(&kind) {
                continue;
            }
            let address = symbol.st_value(Le);
            tables.labels.push(address);
            let name = String::from_utf8_lossy(symbol.name(Le, symbols.strings()).unwrap_or_default()).into_owned();
            if is_profiler(&name) {
                tables.profilers.push(address);
            }
            if (kind == STT_FUNC || kind == STT_GNU_IFUNC) && tables.functions.len() < MAX_FUNCTIONS {
                let name = name.split('@').next().unwrap_or_default().to_string();
                let indirect = kind == STT_GNU_IFUNC;
                tables.functions.push(Named { name, address, size: symbol.st_size(Le), indirect });
            }
        }
        let dynamic = sections.symbols(Le, data, SHT_DYNSYM)?;
        for section in sections.iter().filter(|s| s.sh_type(Le) == SHT_RELA) {
            let Ok(Some((relocations, _))) = section.rela(Le, data) else { continue };
            for relocation in relocations {
                let Some(Ok(symbol)) = relocation.symbol(Le, false).map(|s| dynamic.symbol(s)) else { continue };
                let name = symbol.name(Le, dynamic.strings()).unwrap_or_default();
                if PROFILERS.iter().any(|p| p.as_bytes() == name) {
                    tables.profilers.push(relocation.r_offset(Le));
                }
            }
        }
        Ok((tables, segments))
    }
}

fn is_profiler(name: &str) -> bool {
    PROFILERS.contains(&name.split('@').next().unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_of_this_program() {
        let tables = CodeTables::read(&File::open("/proc/self/exe").unwrap()).unwrap();
        let code = |a: u64| tables.code.iter().any(|c| c.address <= a && a - c.address < c.bytes.len() as u64);
        assert!(tables.functions.len() > 100 && tables.frames.len() > 100);
        assert!(tables.functions.iter().all(|f| code(f.address)));
        assert!(
            tables.labels.is_sorted()
                && tables.functions.iter().all(|f| tables.labels.binary_search(&f.address).is_ok())
        );
        let starts = tables.frames.iter().filter(|(_, as_called)| *as_called).count();
        assert!(starts * 2 > tables.frames.len(), "{starts} of {}", tables.frames.len());
    }

    #[test]
    fn other_files_are_refused() {
        assert!(CodeTables::read(&File::open("/etc/passwd").unwrap()).is_err());
    }
}
