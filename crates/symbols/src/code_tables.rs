//! What is needed to plan patches of a file's functions: where its code is, its functions with their names, the labels in the code, and
//! the entries that compilers' profiling calls lead to.

use crate::ElfError;
use crate::frames::{Frame, Frames};
use crate::headers::{Headers, SectionHeader, read_bytes, u16_at, u32_at, u64_at};
use crate::plt::Plt;
use crate::pointers;
use crate::segment::{damaged, table};
use crate::usdt;
use object::elf::{EM_X86_64, SHT_DYNSYM, SHT_RELA, SHT_SYMTAB};
use object::elf::{STT_FILE, STT_FUNC, STT_GNU_IFUNC, STT_SECTION, STT_TLS};
use std::ffi::CStr;
use std::fs::File;

pub use crate::segment::Segment;

/// The functions that compilers call at the beginning of others for profilers (`-pg`, `-mfentry`).
const PROFILERS: [&str; 3] = ["mcount", "_mcount", "__fentry__"];
/// The most functions of a file, and bytes of its segments.
const MAX_FUNCTIONS: usize = 2 << 20;
const MAX_CODE: u64 = 1 << 30;
/// Bytes of a symbol, and of a relocation with an addend (elf(5)).
const SYMBOL: usize = 24;
const RELOCATION: usize = 24;

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

/// The tables.
#[derive(Debug, Default)]
pub struct CodeTables {
    /// Executable segments.
    pub code: Vec<Segment>,
    /// The other segments.
    pub data: Vec<Segment>,
    /// Addresses of code outside of the code: relocations of pointers, landing places of exceptions.
    pub pointers: Vec<u64>,
    /// The instructions of static probes, sorted.
    pub statics: Vec<u64>,
    /// It is linked to fixed addresses (`ET_EXEC`).
    pub is_fixed: bool,
    /// Functions of `.symtab`, or where that is missing of `.dynsym`, as far as they were asked for. Several may have one address.
    pub functions: Vec<Named>,
    /// Addresses of all symbols in code, sorted.
    pub labels: Vec<u64>,
    /// Addresses of the functions that compilers call for profilers, of their entries in the PLT and of their pointers in the GOT, sorted.
    pub profilers: Vec<u64>,
    /// Where the program begins; 0 in a library without a beginning.
    pub entry: u64,
    /// It has what Go's linker leaves in every program (`.go.buildinfo`, or the tables of its runtime).
    pub is_go: bool,
    /// Entries of `.eh_frame`, sorted, and whether each begins as a function that was called does: false where nobody asked.
    pub frames: Vec<(Frame, bool)>,
}

impl CodeTables {
    /// Reads them.
    ///
    /// # Errors
    /// It is no ELF file for x86-64, or a damaged one.
    pub fn read(file: &File) -> Result<CodeTables, ElfError> {
        let mut tables = CodeTables::symbols(file, |_| true)?;
        tables.read_code(file, |_| true)?;
        Ok(tables)
    }

    /// Reads what symbols and headers say: functions of which a name is to be kept, labels, where profilers are. Large libraries take
    /// seconds to read whole, and most have nothing to be patched.
    ///
    /// # Errors
    /// It is no ELF file for x86-64, or a damaged one.
    pub fn symbols(file: &File, keep: impl Fn(&str) -> bool) -> Result<CodeTables, ElfError> {
        let headers = Headers::read(file).filter(|h| h.machine == EM_X86_64).ok_or(ElfError::Kind)?;
        let mut tables = CodeTables { entry: headers.entry, ..CodeTables::default() };
        tables.is_go = headers.sections.iter().any(|s| s.name == ".go.buildinfo" || s.name == ".gopclntab");
        let find = |kind: u32| headers.sections.iter().find(|s| s.kind == kind);
        if let Some(section) = find(SHT_SYMTAB).or_else(|| find(SHT_DYNSYM)) {
            let symbols = Symbols::read(&headers, file, section)?;
            for symbol in symbols.all() {
                tables.add(&headers, &symbol, &keep);
            }
        }
        tables.pointers_to_profilers(&headers, file)?;
        tables.labels.sort_unstable();
        tables.labels.dedup();
        tables.profilers.sort_unstable();
        Ok(tables)
    }

    /// Reads the code, the entries of `.eh_frame`, the data, and the pointers in that. How an entry begins is found out, which takes longer
    /// than to read it, where `asks` has its first address.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn read_code(&mut self, file: &File, asks: impl Fn(u64) -> bool) -> Result<(), ElfError> {
        let headers = Headers::read(file).ok_or(ElfError::Kind)?;
        let frames = Frames::of_headers(&headers, file);
        let is_as_called = |start: u64| asks(start) && frames.is_as_called(start) == Some(true);
        self.frames = frames.all().iter().map(|f| (*f, is_as_called(f.start))).collect();
        let mut left = MAX_CODE;
        for s in &headers.segments {
            left = left.checked_sub(s.len).ok_or_else(|| ElfError::Damaged("it is too large".into()))?;
            let bytes = read_bytes(file, s.offset, s.len).ok_or_else(|| damaged("a segment"))?;
            let segment = Segment { address: s.address, offset: s.offset, bytes };
            if s.executable { &mut self.code } else { &mut self.data }.push(segment);
        }
        self.is_fixed = headers.is_fixed;
        self.pointers = pointers::relocated(&headers, file, &self.data);
        self.pointers.extend(pointers::landing(&frames, &self.data));
        let section = |name: &str| headers.sections.iter().find(|s| s.name == name);
        let notes = section(".note.stapsdt").and_then(|s| read_bytes(file, s.offset, s.size));
        let base = section(".stapsdt.base").map(|s| s.address);
        self.statics = notes.map_or_else(Vec::new, |notes| usdt::addresses(&notes, base));
        Ok(())
    }

    fn add(&mut self, headers: &Headers, symbol: &Symbol<'_>, keep: &impl Fn(&str) -> bool) {
        let is_code = headers.sections.get(usize::from(symbol.section)).is_some_and(|s| s.executable);
        if !is_code || [STT_FILE, STT_SECTION, STT_TLS].contains(&symbol.kind) {
            return;
        }
        self.labels.push(symbol.address);
        let name = String::from_utf8_lossy(symbol.name);
        if is_profiler(&name) {
            self.profilers.push(symbol.address);
        }
        let is_function = symbol.kind == STT_FUNC || symbol.kind == STT_GNU_IFUNC;
        let name = name.split('@').next().unwrap_or_default();
        if is_function && self.functions.len() < MAX_FUNCTIONS && keep(name) {
            let indirect = symbol.kind == STT_GNU_IFUNC;
            self.functions.push(Named { name: name.into(), address: symbol.address, size: symbol.size, indirect });
        }
    }

    /// Where the file keeps the addresses of profilers' functions that are in other files, and its jumps there.
    fn pointers_to_profilers(&mut self, headers: &Headers, file: &File) -> Result<(), ElfError> {
        let Some(dynamic) = headers.sections.iter().find(|s| s.kind == SHT_DYNSYM) else { return Ok(()) };
        let symbols = Symbols::read(headers, file, dynamic)?;
        let wanted: Vec<u32> = (0..)
            .zip(symbols.all())
            .filter(|(_, s)| PROFILERS.iter().any(|p| p.as_bytes() == s.name))
            .map(|(n, _)| n)
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }
        for section in headers.sections.iter().filter(|s| s.kind == SHT_RELA) {
            let table = table(file, section)?;
            let relocations = table.chunks_exact(RELOCATION);
            let ours = relocations.filter(|r| u32_at(r, 12).is_some_and(|symbol| wanted.contains(&symbol)));
            self.profilers.extend(ours.filter_map(|r| u64_at(r, 0)));
        }
        let plt = Plt::read(headers, file);
        self.profilers.extend(plt.entries().iter().filter(|e| is_profiler(&e.2)).map(|e| e.0));
        Ok(())
    }
}

/// A table of symbols with its names.
struct Symbols {
    table: Vec<u8>,
    names: Vec<u8>,
}

/// A symbol.
struct Symbol<'t> {
    name: &'t [u8],
    /// `STT_*`.
    kind: u8,
    section: u16,
    address: u64,
    size: u64,
}

impl Symbols {
    fn read(headers: &Headers, file: &File, section: &SectionHeader) -> Result<Symbols, ElfError> {
        let names = headers.sections.get(section.link as usize).map(|names| table(file, names)).transpose()?;
        Ok(Symbols { table: table(file, section)?, names: names.unwrap_or_default() })
    }

    fn all(&self) -> impl Iterator<Item = Symbol<'_>> {
        self.table.chunks_exact(SYMBOL).filter_map(|s| {
            let name = self.names.get(u32_at(s, 0)? as usize..).and_then(|n| CStr::from_bytes_until_nul(n).ok());
            Some(Symbol {
                name: name.unwrap_or_default().to_bytes(),
                kind: s[4] & 0xf,
                section: u16_at(s, 6)?,
                address: u64_at(s, 8)?,
                size: u64_at(s, 16)?,
            })
        })
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
